import ChatCache
import UnifiedChat

extension Chat {
  /// Brings one event of the adapter into the cache and tells it on, if it changed anything.
  func receive(_ event: ChatEvent, _ pumpNumber: Int) {
    guard !isSilent, pumpNumber == self.pumpNumber else { return }
    // Behind the event itself.
    defer { if let cursor = event.cursor { keepChanges(cursor) } }
    switch event.kind {
    case .connectionChanged(let next): connectionChanged(to: next)
    case .missedEvents(let channels):
      missed(in: channels)
      publish(event.kind, event.source)
    case .overflow:
      hasLostChanges = true
      missed(in: nil)
    // Told by the client itself.
    case .syncChanged, .messagePending, .messageFailed, .messageCancelled: break
    case .messageSent(let message), .messageReceived(let message): received(message, event.source)
    case .typingStarted(let channel, let user): startedTyping(user, in: channel)
    case .typingEnded(let channel, let user): endedTyping(user, in: channel)
    default:
      for told in stored(event) { publish(told.kind, told.source) }
    }
  }

  // MARK: Changes of messages, from process to process

  private static let stream = "stream"

  /// So that the next process asks for what changes while none runs. Not behind an event that got lost: it comes again
  /// then.
  private func keepChanges(_ cursor: Cursor) {
    guard !hasLostChanges, let cache else { return }
    do throws(ChatError) {
      try cache.write { session throws(ChatError) in try session.setCursor(cursor, Self.stream) }
    } catch { log(.error, "\(error)") }
  }

  /// Before a session begins.
  func continueChanges() async {
    guard let cache else { return }
    do throws(ChatError) {
      guard let cursor = try cache.read({ session throws(ChatError) in try session.cursor(Self.stream) }) else { return }
      await adapter.continueChanges(from: cursor)
    } catch { log(.error, "\(error)") }
  }

  /// Hands an event to all subscribers, or keeps it until its channel is described.
  func publish(_ kind: ChatEvent.Kind, _ source: ChatEvent.Source) {
    guard !isSilent else { return }
    let event = ChatEvent(kind, source: source)
    if let channel = kind.channel, held[channel] != nil {
      held[channel]?.events.append(event)
    } else {
      hub.publish(event)
    }
  }

  private func missed(in channels: [ChannelID]?) {
    epoch += 1
    noteMissed(in: channels)
    startSync()
  }

  // MARK: Messages

  private func received(_ message: Message, _ source: ChatEvent.Source) {
    guard message.id != nil, let position = message.position, cache != nil else {
      // For those online only: shown, not kept.
      return publish(.messageReceived(message), source)
    }
    if source == .live { joinedMeanwhile.insert(message.channel) }
    let isUnknownChannel: Bool
    var told: [ChatEvent.Kind]
    let expected = unannounced[message.channel]
    var others = expected ?? [:]
    let wasShown = message.id.flatMap { others.removeValue(forKey: $0) } != nil
    do throws(ChatError) {
      let lifts = sendClears && message.threadParent == nil
      (told, isUnknownChannel) = try store(in: message.channel) { session throws(ChatError) in
        let change = try session.merge(message)
        if case .inserted = change { try session.showAgain(message.channel) }
        if isOnline, message.threadParent == nil {
          // Whatever is newer arrives by itself from now on.
          try session.cover(CachedRange(low: position, high: .highest), in: message.channel)
        }
        if let expected, !Self.islands(expected).isEmpty {
          try session.noteAhead(Self.islands(others), of: message.channel)
        }
        let lifted = lifts && message.sender == session.owner ? try session.liftMark(by: message) : []
        let kinds = try session.events(of: change, isNew: true) + lifted
        // One that was never described counts as one that was left.
        return (kinds, try !session.isMember(of: message.channel))
      }
    } catch {
      log(.error, "\(error)")
      return receivedUnstored(message, at: position, wasShown: wasShown, source)
    }
    setUnannounced(others, in: message.channel)
    purgeErased()
    if isUnknownChannel {
      describe(message.channel)
      if let id = message.id, told.contains(where: \.isMessageReceived) { held[message.channel]?.new.append(id) }
    }
    followChanges(in: message.channel)
    endedTyping(message.sender, in: message.channel)
    // Told before, when the disk refused it.
    let wasTold = message.id.flatMap { toldUnstored[message.channel]?.remove($0) } != nil
    if wasTold { told.removeAll(where: \.isMessageReceived) }
    if wasShown, !wasTold, !told.contains(where: \.isMessageReceived) {
      // The number of unread messages came with the list. Shown as the newest one, it is told as received in any case.
      lastAnnounced[message.channel] = max(position, lastAnnounced[message.channel] ?? position)
      told.insert(.messageReceived(message), at: 0)
    } else {
      told = told.map { announced($0) }
    }
    for kind in told { publish(kind, source) }
    settle(told)
  }

  /// The disk refuses: better shown than lost, and read again later.
  private func receivedUnstored(
    _ message: Message, at position: MessagePosition, wasShown: Bool, _ source: ChatEvent.Source
  ) {
    doubt(message.channel, from: position)
    epoch += 1
    // Told with what was missed, before its push came.
    guard let id = message.id, wasShown || !isStored(message) else { return }
    // What cannot be stored must not pile up.
    if toldUnstored[message.channel]?.count ?? 0 >= 500 { toldUnstored[message.channel] = [] }
    let isNews = toldUnstored[message.channel, default: []].insert(id).inserted
    if isNews { publish(.messageReceived(message), source) }
  }

  private func isStored(_ message: Message) -> Bool {
    do throws(ChatError) {
      return try opened(.cache).read { session throws(ChatError) in try session.knows(message) }
    } catch {
      return false
    }
  }

  /// A message that comes late is not announced as the newest one.
  private func announced(_ kind: ChatEvent.Kind) -> ChatEvent.Kind {
    guard case .messageReceived(let message) = kind, let position = message.position, message.threadParent == nil
    else { return kind }
    if let last = lastAnnounced[message.channel], position < last {
      return .messagesBackfilled(message.channel, count: 1)
    }
    lastAnnounced[message.channel] = position
    return kind
  }

  /// Ends the waiting of sends that an event proved to be committed.
  func settle(_ kinds: [ChatEvent.Kind]) {
    for case .messageSent(let message) in kinds { settle(message.localID, .success(message)) }
  }

  /// The first message of a channel that was never described, or was left: the channel is told first, then the message.
  /// When the server does not say, the message is told all the same; when it says that this user has no part in the
  /// channel, the message was not for them and is thrown away.
  private func describe(_ channel: ChannelID) {
    guard held[channel] == nil else { return }
    held[channel] = HeldEvents()
    Task { [weak self, adapter, session] in
      do throws(ChatError) {
        await self?.described(channel, as: try await adapter.channel(channel), session)
      } catch {
        await self?.notDescribed(channel, error, session)
      }
    }
  }

  private func described(_ channel: ChannelID, as found: Channel, _ session: Int) {
    guard session == self.session else { return }
    if found.myState == .left || found.myState == .banned { return drop(channel) }
    let waiting = held.removeValue(forKey: channel)?.events ?? []
    for told in stored(ChatEvent(.channelJoined(found))) { publish(told.kind, told.source) }
    for event in waiting { hub.publish(event) }
  }

  private func notDescribed(_ channel: ChannelID, _ error: ChatError, _ session: Int) {
    guard session == self.session else { return }
    switch error.kind {
    case .permission, .notFound: return drop(channel)
    default: break
    }
    log(.error, "\(error)")
    for event in held.removeValue(forKey: channel)?.events ?? [] { hub.publish(event) }
  }

  /// Throws away what was held of a channel that is not this user's.
  private func drop(_ channel: ChannelID) {
    let dropped = held.removeValue(forKey: channel) ?? HeldEvents()
    for event in dropped.events {
      switch event.kind {
      case .messageReceived, .messagesBackfilled, .unreadChanged: break
      default: hub.publish(event)
      }
    }
    do throws(ChatError) {
      try store(in: channel) { session throws(ChatError) in
        for id in dropped.new { try session.remove(id, in: channel) }
        // Nothing comes by itself any more.
        _ = try session.openGaps(in: [channel])
      }
      purgeErased()
    } catch {
      log(.error, "\(error)")
    }
    log(.error, "dropped \(dropped.new.count) messages of a channel that is not this user's: \(channel)")
  }

  func releaseHeld() {
    let waiting = held.values.flatMap(\.events)
    held = [:]
    guard !isSilent else { return }
    for event in waiting { hub.publish(event) }
  }

  // MARK: Everything else

  /// Stores an event and returns what is to be told: nothing when it was known.
  func stored(_ event: ChatEvent) -> [ChatEvent] {
    guard cache != nil else { return [event] }
    if case .channelJoined(let channel) = event.kind { joinedMeanwhile.insert(channel.id) }
    do throws(ChatError) {
      let preview = event.kind.preview
      var expected = preview.flatMap { unannounced[$0.channel] } ?? [:]
      let told = preview.flatMap { toldUnstored[$0.channel] } ?? []
      let kinds = try store(in: event.kind.channel) { session throws(ChatError) in
        let wasKnown = try session.knows(preview)
        let kinds = try session.apply(event.kind)
        // Without a link too: nobody was told of it, and the catch-up tells it then.
        if !wasKnown, let preview, let id = preview.id, let position = preview.position, !told.contains(id),
          try session.knows(preview)
        {
          expected = Self.expecting([id: Unannounced(position: position, isIsland: true)], beside: expected)
          try session.noteAhead(Self.islands(expected), of: preview.channel)
        }
        return kinds
      }
      if let preview { setUnannounced(expected, in: preview.channel) }
      purgeErased()
      return kinds.map { ChatEvent($0, source: event.source) }
    } catch {
      log(.error, "\(error)")
      hasLostChanges = true
      if let channel = event.kind.channel { doubt(channel, from: .highest) }
      return [event]
    }
  }

  // MARK: Typing

  private func startedTyping(_ user: UserID, in channel: ChannelID) {
    let key = TypingKey(channel: channel, user: user)
    let isNew = typing[key] == nil
    typing[key]?.cancel()
    typing[key] = Task { [weak self, clock, lifetime = options.typingLifetime] in
      // Cancelled when the hint is repeated or ended.
      guard (try? await clock.sleep(for: lifetime)) != nil else { return }
      await self?.endedTyping(user, in: channel)
    }
    if isNew { publish(.typingStarted(channel, user), .live) }
  }

  func endedTyping(_ user: UserID?, in channel: ChannelID) {
    guard let user, let task = typing.removeValue(forKey: TypingKey(channel: channel, user: user)) else { return }
    task.cancel()
    publish(.typingEnded(channel, user), .live)
  }
}

/// What waits until its channel is described.
struct HeldEvents {
  var events: [ChatEvent] = []
  /// Messages that were not in the cache before, in whatever form they are told.
  var new: [MessageID] = []
}

extension CacheSession {
  fileprivate func knows(_ message: Message?) throws(ChatError) -> Bool {
    guard let message, let id = message.id else { return false }
    return try self.message(id, in: message.channel) != nil
  }
}

extension ChatEvent.Kind {
  fileprivate var isMessageReceived: Bool { if case .messageReceived = self { true } else { false } }

  /// The last message of the channel that an event describes.
  fileprivate var preview: Message? {
    switch self {
    case .channelJoined(let channel), .channelChanged(let channel): channel.lastMessage
    default: nil
    }
  }

  /// The channel that an event is about.
  var channel: ChannelID? {
    switch self {
    case .messagePending(let message), .messageSent(let message), .messageFailed(let message),
      .messageCancelled(let message), .messageReceived(let message), .messageUpdated(let message),
      .messageRecalled(let message):
      message.channel
    case .messageHidden(let id, _), .messagesBackfilled(let id, _), .historyCleared(let id, _),
      .reactionsChanged(let id, _, _), .channelLeft(let id, _), .channelDeleted(let id), .invited(let id, _),
      .memberJoined(let id, _), .memberLeft(let id, _, _), .memberChanged(let id, _), .readChanged(let id, _, _),
      .deliveredChanged(let id, _, _), .unreadChanged(let id, _), .typingStarted(let id, _), .typingEnded(let id, _):
      id
    case .channelJoined(let channel), .channelChanged(let channel): channel.id
    case .connectionChanged, .syncChanged, .credentialRequested, .credentialRenewed, .missedEvents,
      .totalUnreadChanged, .presenceChanged, .overflow:
      nil
    }
  }
}
