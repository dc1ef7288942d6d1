import UnifiedChat

// MARK: Identity

struct ForgetsIdentity: RetellingAdapter {
  let inner: any ChatAdapter
  let retelling: Retelling

  init(_ inner: any ChatAdapter) {
    self.inner = inner
    let seen = Mutex2<Set<String>>([])
    retelling = Retelling(inner) { event in
      guard case .messageReceived(var message) = event.kind, let id = message.id else { return [event] }
      let isNew = seen.withLock { $0.insert(id.rawValue).inserted }
      if !isNew {
        message.id = MessageID(id.rawValue + "-again")
        message.clientMessageID = nil
      }
      return [ChatEvent(.messageReceived(message), source: event.source)]
    }
  }

  func history(of channel: ChannelID, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    var page = try await inner.history(of: channel, query)
    page.messages = page.messages.map { message in
      var copy = message
      copy.id = message.id.map { MessageID("read-" + $0.rawValue) }
      copy.clientMessageID = nil
      return copy
    }
    return page
  }
}

struct NewClientIDs: ForwardingAdapter {
  let inner: any ChatAdapter

  func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    var message = message
    if message.attempt > 1 {
      message.clientMessageID = ClientMessageID("\(message.clientMessageID)-\(message.attempt)")
    }
    return try await inner.send(message)
  }
}

struct SettlesByAnybody: RetellingAdapter {
  let inner: any ChatAdapter
  private let flying = Mutex2<Set<ClientMessageID>>([])
  let retelling: Retelling

  init(_ inner: any ChatAdapter) {
    self.inner = inner
    let flying = flying
    retelling = Retelling(inner) { event in
      guard case .messageReceived(var message) = event.kind, let id = message.clientMessageID,
        flying.withLock({ $0.contains(id) })
      else { return [event] }
      message.sender = await inner.currentUser?.id
      return [ChatEvent(.messageReceived(message), source: .echo)]
    }
  }

  func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    flying.withLock { _ = $0.insert(message.clientMessageID) }
    defer { flying.withLock { _ = $0.remove(message.clientMessageID) } }
    return try await inner.send(message)
  }
}

// MARK: Order and history

struct SortsByClientTime: ForwardingAdapter {
  let inner: any ChatAdapter
  let clock: any ChatClock

  func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    var sent = try await inner.send(message)
    sent.position = MessagePosition(sequence: clock.now.milliseconds)
    return sent
  }
}

struct CursorByTime: ForwardingAdapter {
  let inner: any ChatAdapter

  func history(of channel: ChannelID, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    guard case .position(let position) = query.anchor else { return try await inner.history(of: channel, query) }
    var page = try await inner.history(of: channel, query)
    page.messages.removeAll { $0.position?.major == position.major }
    return page
  }
}

struct InclusiveCursors: ForwardingAdapter {
  let inner: any ChatAdapter

  func history(of channel: ChannelID, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    var query = query
    query.isInclusive = true
    return try await inner.history(of: channel, query)
  }
}

extension Retold {
  static func forgetsGaps(_ inner: any ChatAdapter) -> Retold {
    let wasConnected = Mutex2(false)
    return Retold(inner) { event in
      switch event.kind {
      case .missedEvents: return []
      case .connectionChanged(let state):
        let isFirst = wasConnected.withLock { was in
          defer { was = was || state == .connected }
          return !was
        }
        return isFirst ? [event] : []
      default: return [event]
      }
    }
  }
}

extension Retold {
  static func roundsNumbers(_ inner: any ChatAdapter) -> Retold {
    return Retold(inner) { event in
      guard case .messageReceived(var message) = event.kind,
        let rounded = Int64(exactly: Double(message.createdAt.milliseconds))
      else { return [event] }
      message.createdAt = Timestamp(milliseconds: rounded)
      return [ChatEvent(.messageReceived(message), source: event.source)]
    }
  }
}

extension Retold {
  static func dropsUnknown(_ inner: any ChatAdapter) -> Retold {
    return Retold(inner) { event in
      if case .messageReceived(let message) = event.kind, case .unknown = message.content { return [] }
      return [event]
    }
  }
}

// MARK: Changes

extension Retold {
  static func olderEditWins(_ inner: any ChatAdapter) -> Retold {
    let newest = Mutex2<[MessageID: Timestamp]>([:])
    return Retold(inner) { event in
      guard case .messageUpdated(var message) = event.kind, let id = message.id, let time = message.editedAt else {
        return [event]
      }
      // Whatever comes last looks newest.
      message.editedAt = newest.withLock { newest in
        let later = newest[id].map { max(time, $0 + .milliseconds(1)) } ?? time
        newest[id] = later
        return later
      }
      return [ChatEvent(.messageUpdated(message), source: event.source)]
    }
  }
}

extension Retold {
  static func recallHides(_ inner: any ChatAdapter) -> Retold {
    return Retold(inner) { event in
      guard case .messageRecalled(let message) = event.kind, let id = message.id else { return [event] }
      return [ChatEvent(.messageHidden(message.channel, id), source: event.source)]
    }
  }
}

// MARK: Unread

struct MarkGoesBack: RetellingAdapter {
  let inner: any ChatAdapter
  let retelling: Retelling

  init(_ inner: any ChatAdapter) {
    self.inner = inner
    retelling = Retelling(inner) { [$0] }
  }

  func markRead(_ id: ChannelID, upTo position: MessagePosition?) async throws(ChatError) {
    try await inner.markRead(id, upTo: position)
    guard let position else { return }
    // Counts from this mark, whatever was marked before.
    let query = HistoryQuery(anchor: .position(position), direction: .newer, limit: 50)
    let newer = try await inner.history(of: id, query).messages.count
    if newer > 0 { retelling.hub.publish(ChatEvent(.unreadChanged(id, .exact(newer)))) }
  }
}

struct CountsOwn: RetellingAdapter {
  let inner: any ChatAdapter
  let retelling: Retelling

  init(_ inner: any ChatAdapter) {
    self.inner = inner
    retelling = Retelling(inner) { [$0] }
  }

  func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    let sent = try await inner.send(message)
    retelling.hub.publish(ChatEvent(.unreadChanged(message.channel, .exact(1))))
    return sent
  }
}

// MARK: Cache

extension EventHub: ChatListening {}

extension Retold {
  /// Who listens hears of a message through `early`, a moment before the client gets it.
  static func tellsFirst(_ inner: any ChatAdapter, _ early: EventHub, _ clock: any ChatClock) -> Retold {
    Retold(inner) { event in
      guard case .messageReceived = event.kind, event.source == .live else { return [event] }
      early.publish(event)
      try? await clock.sleep(for: .seconds(1))
      return [event]
    }
  }
}
