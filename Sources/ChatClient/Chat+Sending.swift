import ChatCache
import UnifiedChat

extension Chat {
  /// Stores a message to be sent and returns it as pending, before any byte has left. It goes out in its turn, now or
  /// when the link is back, also after a restart; the outcome comes as an event.
  /// - Throws: `.invalidArgument`, `.unsupported`, or `.storage` when it cannot be stored: then it will not be sent.
  @discardableResult
  public func enqueue(
    _ draft: MessageDraft, to channel: ChannelID, progress: (@Sendable (_ sent: Int64, _ total: Int64) -> Void)? = nil
  ) async throws(ChatError) -> Message {
    let id = options.makeID()
    return try await enqueue(draft, to: channel, localID: LocalID(id), clientID: ClientMessageID(id), progress)
  }

  /// Sends and waits for the outcome: the committed message with id and position.
  ///
  /// A lost link does not end the waiting: the message goes out when the link is back. Cancelling the task ends the
  /// waiting, not the send.
  /// - Throws: the final refusal; `.timeout` or `.network` only where the outcome can never be learnt.
  public func send(
    _ draft: MessageDraft, to channel: ChannelID, progress: (@Sendable (_ sent: Int64, _ total: Int64) -> Void)? = nil
  ) async throws(ChatError) -> Message {
    if draft.isTransient { return try await sendOnce(draft, to: channel) }
    let pending = try await enqueue(draft, to: channel, progress: progress)
    return try await outcome(of: pending)
  }

  /// As `send(_:to:)`, with ids of the caller. The same client id again is one message: both calls return it.
  public func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    if message.draft.isTransient { return try await sendOnce(message.draft, to: message.channel) }
    let pending = try await enqueue(
      message.draft, to: message.channel, localID: message.localID, clientID: message.clientMessageID, nil)
    return try await outcome(of: pending)
  }

  /// Puts a failed message at the end of its queue again, with the same ids; pressing it five times is once.
  /// - Returns: the message, pending.
  /// - Throws: `.notFound` for a message that this device never sent or has cancelled.
  @discardableResult
  public func resend(_ localID: LocalID) async throws(ChatError) -> Message {
    let cache = try opened(.send)
    guard let pending = try cache.write({ session throws(ChatError) in try session.resend(localID) }) else {
      guard let known = try cache.read({ session throws(ChatError) in try session.message(localID) }) else {
        throw ChatError(.notFound, operation: .send, detail: "no such message in the outbox")
      }
      return known
    }
    publish(.messagePending(pending), .local)
    unsettled.insert(localID)
    kick(pending.channel)
    return pending
  }

  /// Takes back a message that has not left.
  /// - Returns: false when it is too late: the outcome stands.
  public func cancel(_ localID: LocalID) async throws(ChatError) -> Bool {
    let cache = try opened(.send)
    guard var message = try cache.write({ session throws(ChatError) in try session.cancel(localID) }) else {
      return false
    }
    message.state = .cancelled
    uploadProgress[localID] = nil
    stopUpload(of: localID)
    publish(.messageCancelled(message), .local)
    settle(localID, .failure(.cancelled(.send)))
    return true
  }

  /// Messages of this device that the server has not confirmed: pending, unknown and failed, oldest first. They stand
  /// after all others of the channel.
  public func waitingMessages(in channel: ChannelID) throws(ChatError) -> [Message] {
    try opened(.history).read { session throws(ChatError) in try session.waitingMessages(in: channel) }
  }

  private func enqueue(
    _ draft: MessageDraft, to channel: ChannelID, localID: LocalID, clientID: ClientMessageID,
    _ progress: (@Sendable (Int64, Int64) -> Void)?
  ) async throws(ChatError) -> Message {
    try Arguments.id(channel, .send)
    try draft.check(try await ownCapabilities())
    let cache = try opened(.send)
    let entry = OutboxEntry(
      localID: localID, channel: channel, clientMessageID: clientID, draft: draft, createdAt: clock.now)
    let (message, isNew) = try cache.write { session throws(ChatError) in
      let isNew = try session.message(localID) == nil
      let message = try session.enqueue(entry)
      return (message, isNew && message.localID == localID && message.id == nil)
    }
    if isNew {
      uploadProgress[localID] = progress.map { UploadProgress($0) }
      unsettled.insert(localID)
      // A message ends typing for who receives it: the next key stroke is news.
      typingTold[channel] = nil
      publish(.messagePending(message), .local)
      kick(channel)
    }
    return message
  }

  /// For those online only: one try, nothing kept.
  private func sendOnce(_ draft: MessageDraft, to channel: ChannelID) async throws(ChatError) -> Message {
    try Arguments.id(channel, .send)
    try draft.check(try await ownCapabilities())
    let id = options.makeID()
    return try await ask(await adapter.send(
      OutgoingMessage(channel: channel, localID: LocalID(id), clientMessageID: ClientMessageID(id), draft: draft)))
  }

  // MARK: Waiting for the outcome

  private func outcome(of message: Message) async throws(ChatError) -> Message {
    if message.id != nil { return message }
    guard let localID = message.localID else { throw ChatError.cancelled(.send) }
    if case .failed(let error) = message.state { throw error }
    lastWaiter += 1
    let number = lastWaiter
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        wait(for: localID, number, continuation)
      }
    } onCancel: {
      Task { await self.stopWaiting(for: localID, number) }
    }
    return try result.get()
  }

  private func wait(
    for localID: LocalID, _ number: UInt64, _ continuation: CheckedContinuation<Result<Message, ChatError>, Never>
  ) {
    if Task.isCancelled { return continuation.resume(returning: .failure(.cancelled(.send))) }
    // It may have been settled between the call and now.
    do throws(ChatError) {
      if let settled = try settledOutcome(of: localID) { return continuation.resume(returning: settled) }
    } catch {
      return continuation.resume(returning: .failure(error))
    }
    waiters[localID, default: [:]][number] = continuation
  }

  /// nil while it is on its way.
  func settledOutcome(of localID: LocalID) throws(ChatError) -> Result<Message, ChatError>? {
    guard let cache else { return .failure(.cancelled(.send)) }
    guard let message = try cache.read({ session throws(ChatError) in try session.message(localID) }) else {
      return .failure(.cancelled(.send))
    }
    if message.id != nil { return .success(message) }
    if case .failed(let error) = message.state { return .failure(error) }
    return nil
  }

  private func stopWaiting(for localID: LocalID, _ number: UInt64) {
    waiters[localID]?.removeValue(forKey: number)?.resume(returning: .failure(.cancelled(.send)))
    if waiters[localID]?.isEmpty == true { waiters[localID] = nil }
  }

  func settle(_ localID: LocalID?, _ result: Result<Message, ChatError>) {
    guard let localID else { return }
    uploadProgress[localID] = nil
    unsettled.remove(localID)
    for waiter in (waiters.removeValue(forKey: localID) ?? [:]).values { waiter.resume(returning: result) }
  }
}
