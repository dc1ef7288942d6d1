import ChatCache
import UnifiedChat

// A page is made of what a walk found, which has positions, and of the messages of this device alone that stand among it.
// The walk knows nothing of those, and asks the server as if there were none.

extension Chat {
  /// Messages of this device alone in the part that the walk went through, those nearest to its start.
  func localMessages(
    beside walk: HistoryWalk, in channel: ChannelID, _ limit: Int
  ) throws(ChatError) -> [LocalMessage] {
    let (low, high): (LocalPlace, LocalPlace)
    switch walk.direction {
    case .older:
      guard let edge = walk.isAtEnd ? .lowest : walk.messages.first?.position else { return [] }
      (low, high) = (LocalPlace(of: edge), walk.start.place)
    case .newer:
      guard let edge = walk.isAtEnd ? .highest : walk.messages.last?.position else { return [] }
      (low, high) = (walk.start.place, LocalPlace(behind: edge))
    }
    return try opened(.history).read { session throws(ChatError) in
      try session.localMessages(in: channel, from: low, to: high, walk.direction, limit: limit)
    }
  }

  /// The newest messages of this device alone, where nothing else is known; nil when there are none either.
  func localPage(_ channel: ChannelID, _ query: HistoryQuery) throws(ChatError) -> MessagePage? {
    guard let cache, query.anchor == .newest, query.direction == .older else { return nil }
    let found = try cache.read { session throws(ChatError) in
      try session.localMessages(in: channel, from: LocalPlace(of: .lowest), to: .last, .older, limit: query.limit)
    }
    guard !found.isEmpty else { return nil }
    return try page(HistoryWalk(try HistoryStart(query)), channel, found, query.limit)
  }

  /// The page with cursors that say whether there is more.
  /// - Parameter local: nil: as if there were none.
  func page(
    _ walk: HistoryWalk, _ channel: ChannelID, _ local: [LocalMessage]?, _ limit: Int
  ) throws(ChatError) -> MessagePage {
    let isOlder = walk.direction == .older
    let all = LocalMessage.merge(walk.messages, local ?? [])
    let items = isOlder ? Array(all.suffix(limit)) : Array(all.prefix(limit))
    let placed = items.filter { $0.place == nil }
    // A page of those of this device alone stands beside the message that the walk met first.
    let nearest = (isOlder ? walk.messages.last : walk.messages.first)?.position ?? walk.start.position
    let first = placed.first?.message.position ?? nearest
    let last = placed.last?.message.position ?? nearest
    // What was left out for the limit is there.
    let isCut = placed.count < walk.messages.count
    // Nothing known of what is there: a cursor would lead to this page again.
    let isNowhere = walk.messages.isEmpty && walk.isAtEnd && isOlder
    let older = items.first.map { $0.edge(beside: first) } ?? walk.start.edge
    let newer = items.last.map { $0.edge(beside: last) } ?? walk.start.edge
    return try opened(.history).read { session throws(ChatError) in
      var hasOlder = try session.mayHave(.older, than: first, in: channel) && !isNowhere
      var hasNewer = try session.mayHave(.newer, than: last, in: channel) && last != .highest
      if isCut { if isOlder { hasOlder = true } else { hasNewer = true } }
      if local != nil, try session.hasLocal(.older, than: older.place, in: channel) { hasOlder = true }
      if local != nil, try session.hasLocal(.newer, than: newer.place, in: channel) { hasNewer = true }
      let messages = items.map(\.message)
      return MessagePage(
        messages: walk.hasAsked ? try session.withoutLateQuotes(messages) : messages,
        older: hasOlder ? older.cursor : nil, newer: hasNewer ? newer.cursor : nil)
    }
  }
}

extension LocalMessage {
  fileprivate func edge(beside neighbour: MessagePosition) -> PageEdge {
    place.map { PageEdge(neighbour, $0) } ?? PageEdge(message.position ?? neighbour)
  }
}

extension PageEdge {
  fileprivate var place: LocalPlace { local ?? LocalPlace(of: position) }
}

extension HistoryStart {
  fileprivate var edge: PageEdge { PageEdge(position, local) }
}

extension CacheSession {
  /// A later part of a page may have brought the recall of what an earlier part quotes.
  fileprivate func withoutLateQuotes(_ messages: [Message]) throws(ChatError) -> [Message] {
    guard messages.contains(where: { $0.replyTo?.quoted != nil }) else { return messages }
    return try messages.map { message throws(ChatError) in
      guard message.replyTo?.quoted != nil, let id = message.id else { return message }
      return try self.message(id, in: message.channel) ?? message
    }
  }

  /// Whether something may stand beyond `position`: false only when it is known that nothing does.
  fileprivate func mayHave(
    _ direction: HistoryQuery.Direction, than position: MessagePosition, in channel: ChannelID
  ) throws(ChatError) -> Bool {
    guard let range = try ranges(of: channel).first(where: { $0.contains(position) }) else { return true }
    guard direction == .older ? range.isAtStart : range.isLive else { return true }
    return try !messages(in: channel, direction, of: position, within: range, limit: 1).isEmpty
  }
}
