import ChatCache
import UnifiedChat

extension Chat {
  /// Whether a message whose acknowledgement was lost is in the channel: reads from what was known before the send to
  /// the end, and keeps what it finds.
  /// - Throws: what reading throws: then nothing is proved.
  func look(for entry: OutboxEntry) async throws(ChatError) -> Bool {
    let hasForward = try await vendorCapabilities().has(.historyForward)
    var query = HistoryQuery(anchor: .newest, direction: .older, limit: options.catchUpPage)
    if hasForward, let seen = entry.seen { query = .after(seen, limit: options.catchUpPage) }
    var walk = PageWalk()
    while true {
      let page = try await ask(await adapter.history(of: entry.channel, query))
      try absorb(page.messages, in: entry.channel, .catchUp, covering: span(of: page.messages))
      if try isCommitted(entry) { return true }
      guard let cursor = query.direction == .newer ? page.newer : page.older else { return false }
      if query.direction == .older, reaches(page.messages, before: entry) { return false }
      try walk.advance(to: cursor.rawValue, .history)
      query.anchor = .cursor(cursor)
    }
  }

  private func isCommitted(_ entry: OutboxEntry) throws(ChatError) -> Bool {
    // The row is promoted by the page that holds the message; a cancelled one is gone.
    try cache?.read { session throws(ChatError) in try session.outboxEntry(entry.localID) == nil } ?? true
  }

  /// Reading backwards has come to what was there before the message was made: by position, or without one by a day
  /// more than any clock is wrong.
  private func reaches(_ messages: [Message], before entry: OutboxEntry) -> Bool {
    guard let oldest = messages.first else { return false }
    if let seen = entry.seen { return (oldest.position ?? .highest) <= seen }
    return oldest.createdAt < entry.createdAt + .seconds(-86_400)
  }

  /// What a page proves to be without holes by itself: from its first to its last message.
  func span(of messages: [Message]) -> CachedRange? {
    guard let low = messages.first?.position, let high = messages.last?.position else { return nil }
    return CachedRange(low: low, high: high)
  }

  /// Stores what was read from the server in one transaction, then tells what changed. New messages are counted in
  /// one event, not announced one by one.
  /// - Returns: how many were new.
  @discardableResult
  func absorb(
    _ messages: [Message], in channel: ChannelID, _ source: ChatEvent.Source, covering range: CachedRange?,
    tellsNew: Bool = true
  ) throws(ChatError) -> Int {
    guard cache != nil else { return 0 }
    let told = max(lastAnnounced[channel] ?? .lowest, lastCounted[channel] ?? .lowest)
    let shown = unannounced[channel] ?? [:]
    let toldBefore = toldUnstored[channel] ?? []
    // A page that somebody reads may bring what was missed before the catch-up does: then it is told now.
    let missedFrom = tellsNew ? .lowest : behind[channel] ?? .highest
    // What is read alone closes over a hole of the disk like a push; what the catch-up reads begins behind it.
    let (missed, kinds, expected) = try store(in: tellsNew ? nil : channel) { session throws(ChatError) in
      var missed: [MessageID] = []
      var kinds: [ChatEvent.Kind] = []
      var newest: [MessageID: Unannounced] = [:]
      let top = try session.newestPosition(in: channel) ?? .lowest
      // One that a channel list brought stands alone, and nobody was told of it.
      let known = try session.ranges(of: channel).filter { $0.low < $0.high }
      for message in messages {
        let change = try session.merge(message, from: .read)
        guard let id = message.id, let position = message.position else { continue }
        if case .inserted(_, let replies) = change {
          kinds += replies.map { .messageUpdated($0) }
          if toldBefore.contains(id) { continue }
          if position > missedFrom {
            missed.append(id)
          } else if position > top {
            newest[id] = Unannounced(position: position, isIsland: true)
          }
        } else {
          kinds += try session.events(of: change, isNew: false)
          // Nor is it counted when its push has come since, or when it was sent here.
          if case .unchanged = change, position > missedFrom, !known.contains(where: { $0.contains(position) }),
            position > told || shown[id] != nil, !toldBefore.contains(id), try session.message(id, in: channel)?.localID == nil
          {
            missed.append(id)
          }
        }
      }
      if let range { try session.cover(range, in: channel) }
      if !missed.isEmpty { try session.showAgain(channel) }
      // Told as part of what was missed, not once more when its push comes late.
      var expected = shown
      for id in source == .catchUp ? messages.compactMap(\.id) : missed + toldBefore { expected[id] = nil }
      if !tellsNew, isOnline { expected = Self.expecting(newest, beside: expected) }
      // Behind its last message the newest page says nothing.
      let end = range.flatMap { $0.isLive ? messages.last?.position : $0.high }
      expected = expected.mapValues { $0.read(from: range?.low, to: end) }
      if !shown.isEmpty || !expected.isEmpty { try session.noteAhead(Self.islands(expected), of: channel) }
      return (missed, kinds, expected)
    }
    setUnannounced(expected, in: channel)
    if !toldBefore.isEmpty {
      let rest = toldBefore.subtracting(messages.compactMap(\.id))
      toldUnstored[channel] = rest.isEmpty ? nil : rest
    }
    purgeErased()
    for kind in kinds { publish(kind, source) }
    settle(kinds)
    // With a page of the catch-up all of it has been told, now or before.
    let counted = tellsNew ? messages.last : messages.last { $0.id.map { missed.contains($0) || toldBefore.contains($0) } ?? false }
    if let newest = counted?.position { lastCounted[channel] = max(newest, lastCounted[channel] ?? newest) }
    if !missed.isEmpty { publish(.messagesBackfilled(channel, count: missed.count), source) }
    return missed.count
  }
}
