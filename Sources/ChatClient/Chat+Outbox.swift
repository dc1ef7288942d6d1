import ChatCache
import UnifiedChat

// One worker per channel: strictly one after the other within a channel, channels side by side. A message that may
// succeed later holds those behind it; one that is refused for good does not.

extension Chat {
  func kickOutbox() {
    do throws(ChatError) {
      guard let cache else { return }
      for channel in try cache.read({ session throws(ChatError) in try session.channelsWithOutbox() }) { kick(channel) }
    } catch {
      log(.error, "\(error)")
      // Looked at again soon; offline, when the link is back.
      if isOnline { watchOutbox() }
    }
  }

  func kick(_ channel: ChannelID) {
    guard isOnline, workers[channel] == nil else { return }
    guard cache?.takeOutbox() ?? false else { return watchOutbox() }
    workers[channel] = Task { [weak self] in await self?.work(channel) }
  }

  private enum Step {
    case done
    case again(after: Duration)
    /// The link is gone: whoever brings it back starts the worker again.
    case stop
  }

  private func work(_ channel: ChannelID) async {
    var failures = 0
    loop: while isOnline, !Task.isCancelled {
      let step: Step
      do throws(ChatError) {
        guard let entry = try next(in: channel) else { break loop }
        step = await attempt(entry, failures: failures)
      } catch {
        log(.error, "\(error)")
        step = .again(after: pause(after: error, failures: failures))
      }
      switch step {
      case .done: failures = 0
      case .again(let delay):
        failures += 1
        // Cancelled by `disconnect`.
        guard (try? await clock.sleep(for: delay)) != nil else { break loop }
        // While this one holds the outbox, another process may have written into other channels.
        kickOutbox()
      case .stop: break loop
      }
    }
    // A worker that was cancelled has a successor already, or none is wanted.
    guard !Task.isCancelled else { return }
    workers[channel] = nil
    if workers.isEmpty { cache?.leaveOutbox() }
  }

  /// Another process sends now, what was written here too. Its outcome is read from the file, and when it has ended
  /// the turn is ours.
  private func watchOutbox() {
    guard outboxWatch == nil else { return }
    outboxWatch = Task { [weak self, clock] in
      // Cancelled by `disconnect`.
      while (try? await clock.sleep(for: .milliseconds(500))) != nil {
        guard await self?.watchesOn() ?? false else { return }
      }
    }
  }

  private func watchesOn() -> Bool {
    let isOurs = !Task.isCancelled && cache?.takeOutbox() ?? true
    // After taking it: now nothing of others is under way that could end unseen.
    settleByOthers()
    guard isOurs else { return !Task.isCancelled }
    outboxWatch = nil
    kickOutbox()
    if workers.isEmpty { cache?.leaveOutbox() }
    return false
  }

  private func settleByOthers() {
    for localID in unsettled {
      // A disk that does not answer says nothing of the outcome.
      guard let outcome = try? settledOutcome(of: localID) else { continue }
      switch outcome {
      case .success(let message): publish(.messageSent(message), .local)
      case .failure:
        let failed = try? cache?.read { session throws(ChatError) in try session.message(localID) }
        if let failed = failed ?? nil { publish(.messageFailed(failed), .local) }
      }
      settle(localID, outcome)
    }
  }

  private func next(in channel: ChannelID) throws(ChatError) -> OutboxEntry? {
    try cache?.read { session throws(ChatError) in try session.nextInOutbox(of: channel) } ?? nil
  }

  private func attempt(_ entry: OutboxEntry, failures: Int) async -> Step {
    do throws(ChatError) {
      if let committed = acknowledged[entry.localID] { return confirm(committed, of: entry, isLive: false, failures) }
      if entry.state == .flying, let step = try await lookFirst(entry, failures: failures) { return step }
      guard entry.state == .flying || clock.now < entry.createdAt + options.outboxLifetime else {
        return try fail(
          entry, ChatError(.timeout, operation: .send, retry: .never, detail: "it waited too long in the outbox"))
      }
      guard let ready = try await uploaded(entry) else { return .done }
      return try await transmit(ready, failures)
    } catch {
      return after(error, entry, failures: failures)
    }
  }

  /// What became of a try whose outcome is unknown. nil: it certainly did not arrive, or sending the same id again
  /// is harmless.
  private func lookFirst(_ entry: OutboxEntry, failures: Int) async throws(ChatError) -> Step? {
    let vendor = try await vendorCapabilities()
    if vendor[.messageIdempotentSend] == .native { return nil }
    guard vendor.has(.messageClientID) else {
      // Nothing to know it by: a second try might double it.
      let error = ChatError(
        .timeout, operation: .send, retry: .never, detail: "the answer was lost and this vendor cannot be asked")
      let message = try cache?.write { session throws(ChatError) in try session.markUnknown(entry.localID, parked: true) }
      if let message = message ?? nil { publish(.messageUpdated(message), .local) }
      settle(entry.localID, .failure(error))
      return .done
    }
    return try await look(for: entry) ? .done : nil
  }

  private func transmit(_ entry: OutboxEntry, _ failures: Int) async throws(ChatError) -> Step {
    // By `disconnect`: a worker that came after it may have the message now.
    guard !Task.isCancelled else { return .stop }
    let cache = try opened(.send)
    // Cancelled, changed or proved to be sent by an event while something else was awaited.
    let current = try cache.write { session throws(ChatError) in
      let current = try session.outboxEntry(entry.localID)
      if current != nil { try session.beginTry(entry.localID) }
      return current
    }
    guard let current else { return .done }
    let epochBefore = epoch
    let message = OutgoingMessage(
      channel: current.channel, localID: current.localID, clientMessageID: current.clientMessageID,
      draft: current.draft, attempt: current.attempts + 1)
    let committed: Message
    do throws(ChatError) { committed = try await ask(await adapter.send(message)) } catch {
      // "Exists already" on a later try: an earlier one arrived.
      guard error.kind == .conflict, current.attempts > 0, try await vendorCapabilities().has(.messageClientID),
        try await look(for: current)
      else { throw error }
      return .done
    }
    // One that an earlier try committed stands where it was then: others may have come behind it.
    let isNewest = current.attempts == 0 && isOnline && epoch == epochBefore
    return confirm(committed, of: current, isLive: isNewest, failures)
  }

  /// Writes the acknowledgement down. A disk that refuses it is asked again until it takes it: the message is
  /// committed, and a second try could double it.
  private func confirm(_ committed: Message, of entry: OutboxEntry, isLive: Bool, _ failures: Int) -> Step {
    do throws(ChatError) {
      try confirm(committed, of: entry, isLive: isLive)
      acknowledged[entry.localID] = nil
      return .done
    } catch {
      log(.error, "\(error)")
      acknowledged[entry.localID] = committed
      return isOnline && !Task.isCancelled ? .again(after: pause(after: error, failures: failures)) : .stop
    }
  }

  private func confirm(_ committed: Message, of entry: OutboxEntry, isLive: Bool) throws(ChatError) {
    guard let cache else { return }
    let lifts = sendClears && committed.threadParent == nil
    let islands = Self.islands(unannounced[committed.channel] ?? [:])
    let kinds = try store { session throws(ChatError) in
      let change = try session.confirm(entry.localID, as: committed)
      if isLive, let position = committed.position, committed.threadParent == nil {
        try session.cover(CachedRange(low: position, high: .highest), in: committed.channel)
        if !islands.isEmpty { try session.noteAhead(islands, of: committed.channel) }
      }
      let lifted = lifts ? try session.liftMark(by: committed) : []
      return try session.events(of: change, isNew: false) + lifted
    }
    for kind in kinds { publish(kind, .local) }
    settle(kinds)
    if let settled = try cache.read({ session throws(ChatError) in try session.message(entry.localID) }) {
      settle(entry.localID, .success(settled))
    }
  }

  // MARK: After an error

  private func after(_ error: ChatError, _ entry: OutboxEntry, failures: Int) -> Step {
    do throws(ChatError) {
      guard let cache else { return .stop }
      // Proved to be sent, or cancelled, while the error was on its way.
      guard let current = try cache.read({ session throws(ChatError) in try session.outboxEntry(entry.localID) }) else {
        return .done
      }
      // Tries of an upload are not begun as tries of the message.
      switch SendOutcome(of: error, attempts: error.operation == .upload ? failures + 1 : current.attempts) {
      case .final: return try fail(entry, error)
      case .notSent:
        // Not where a later worker has it in flight.
        if current.state == .flying, entry.state != .flying, current.attempts == entry.attempts + 1 {
          try cache.write { session throws(ChatError) in try session.requeue(entry.localID) }
        }
      // An upload or a look that failed says nothing of the send.
      case .unknown where current.state != .flying: break
      case .unknown:
        let message = try cache.write { session throws(ChatError) in
          try session.markUnknown(entry.localID, parked: false)
        }
        if let message { publish(.messageUpdated(message), .local) }
      }
      if let limit = options.retry.maxAttempts, current.attempts >= limit { return try fail(entry, error) }
      guard isOnline, !Task.isCancelled else { return .stop }
      return .again(after: pause(after: error, failures: failures))
    } catch {
      log(.error, "\(error)")
      return .again(after: pause(after: error, failures: failures))
    }
  }

  private func fail(_ entry: OutboxEntry, _ error: ChatError) throws(ChatError) -> Step {
    let message = try cache?.write { session throws(ChatError) in try session.fail(entry.localID, with: error) }
    if let message = message ?? nil { publish(.messageFailed(message), .local) }
    settle(entry.localID, .failure(error))
    return .done
  }

  /// Full jitter between nothing and a limit that doubles; never less than the server asks for.
  private func pause(after error: ChatError, failures: Int) -> Duration {
    let doubled = options.retry.baseDelay * Int(1 << min(failures, 20))
    let limit = min(doubled, options.retry.maxDelay)
    let drawn = Duration.milliseconds(Int64(Double(limit.wholeMilliseconds) * jitter.next()))
    if case .after(let wait) = error.retry { return wait + min(drawn, .seconds(1)) }
    return drawn
  }
}

/// What an error says about a try.
enum SendOutcome {
  /// Certainly not committed; may succeed later.
  case notSent
  case unknown
  case final

  init(of error: ChatError, attempts: Int) {
    switch error.kind {
    case .network(.offline), .network(.unreachable), .network(.refused), .rateLimited, .storage: self = .notSent
    case .network, .timeout, .cancelled: self = .unknown
    // An answer that cannot be read says nothing; but not for ever.
    case .protocolViolation: self = attempts < 3 ? .unknown : .final
    // A gateway may answer for a server that has stored the message.
    case .server: self = error.isRetryable ? .unknown : .final
    default: self = error.isRetryable ? .notSent : .final
    }
  }
}
