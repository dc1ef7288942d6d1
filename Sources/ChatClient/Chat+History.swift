import ChatCache
import UnifiedChat

extension Chat {
  /// A page of a channel, from the cache as far as it holds it without holes, across a gap from the server.
  ///
  /// The newest page never waits for the network when something was read before: it comes from the cache, and what
  /// turns out to have changed comes as events (`messagesBackfilled`, `messageUpdated`, `messageRecalled`). Messages
  /// of this device that are not confirmed are in `waitingMessages(in:)`; those of this device alone (`insertLocal`)
  /// stand where they were put, count for the limit, and have no position. Cursors name a place and hold for the life of
  /// the channel, also over restarts.
  /// - Throws: `.invalidArgument` for a limit below 1 or a foreign cursor; offline, what the adapter throws when
  ///   nothing at all is cached there.
  public func history(of channel: ChannelID, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    let walk: HistoryWalk
    do throws(ChatError) { walk = try await self.walk(through: channel, query) } catch {
      // Nothing is known here but what this device has alone.
      switch error.kind {
      case .network, .timeout: if let page = try localPage(channel, query) { return page }
      default: break
      }
      throw error
    }
    return try page(walk, channel, try localMessages(beside: walk, in: channel, query.limit), query.limit)
  }

  /// As `history(of:_:)`, without messages of this device alone: every message of it has a position.
  func placedHistory(of channel: ChannelID, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    try page(try await walk(through: channel, query), channel, nil, query.limit)
  }

  private func walk(through channel: ChannelID, _ query: HistoryQuery) async throws(ChatError) -> HistoryWalk {
    try Arguments.id(channel, .history)
    try Arguments.limit(query.limit, .history)
    _ = try opened(.history)
    retryHoles(of: channel)
    var walk = HistoryWalk(try HistoryStart(query))
    if walk.start.position == .highest, walk.direction == .older { try await prepareNewest(of: channel, &walk) }
    while walk.messages.count < query.limit, !walk.isAtEnd {
      if try advanceInCache(&walk, channel, query.limit) { continue }
      guard try await mayAsk(walk.direction) else {
        if walk.messages.isEmpty { try await refuse(walk.direction) }
        break
      }
      do throws(ChatError) { try await advanceOnline(&walk, channel, query.limit) } catch {
        // What is here is better than nothing; the cursor leads on when the link is back.
        if walk.messages.isEmpty { throw error }
        break
      }
    }
    return walk
  }

  /// Where the newest page starts when the channel is not live: at the newest that is known, with a refresh behind.
  private func prepareNewest(of channel: ChannelID, _ walk: inout HistoryWalk) async throws(ChatError) {
    let (ranges, loaded) = try opened(.history).read { session throws(ChatError) in
      (try session.ranges(of: channel), try session.loadedRange(of: channel))
    }
    if ranges.last?.isLive == true { return }
    guard let loaded, loaded.high > .lowest else {
      // Offline, a message that a list brought is all there is.
      if !isOnline, let last = ranges.last { walk.move(to: last.high, inclusive: true) }
      return
    }
    walk.move(to: loaded.high, inclusive: true)
    walk.isStale = true
    if isOnline { refresh(channel) }
  }

  /// What the disk refused before is not shown as if nothing were missing, once it takes something again.
  private func retryHoles(of channel: ChannelID) {
    guard isLossDue || unstored[channel] != nil else { return }
    do throws(ChatError) { try store(in: channel) { _ throws(ChatError) in } } catch { log(.error, "\(error)") }
  }

  /// v1 of a vendor may have only one direction.
  private func mayAsk(_ direction: HistoryQuery.Direction) async throws(ChatError) -> Bool {
    try await vendorCapabilities().has(direction == .older ? .historyBackward : .historyForward)
  }

  private func refuse(_ direction: HistoryQuery.Direction) async throws(ChatError) {
    try await require(direction == .older ? .historyBackward : .historyForward, .history)
  }

  /// Takes what the cache holds without holes from where the walk stands.
  /// - Returns: false when nothing is known there.
  private func advanceInCache(
    _ walk: inout HistoryWalk, _ channel: ChannelID, _ limit: Int
  ) throws(ChatError) -> Bool {
    let here = walk.position
    let (isInclusive, direction, wanted) = (walk.isInclusive, walk.direction, limit - walk.messages.count)
    let found = try opened(.history).read { session throws(ChatError) in
      let range = try session.ranges(of: channel).first { $0.leadsOn(from: here, direction, inclusive: isInclusive) }
      guard let range else { return nil as (CachedRange, [Message])? }
      let messages = try session.messages(
        in: channel, direction, of: here, inclusive: isInclusive, within: range, limit: wanted)
      return (range, messages)
    }
    guard let (range, messages) = found else { return false }
    walk.take(messages)
    if messages.count < wanted { walk.reach(direction == .older ? range.low : range.high) }
    return true
  }

  private func advanceOnline(_ walk: inout HistoryWalk, _ channel: ChannelID, _ limit: Int) async throws(ChatError) {
    let (epochBefore, onlineBefore) = (epoch, isOnline)
    walk.hasAsked = true
    let query = HistoryQuery(
      anchor: walk.networkAnchor, direction: walk.direction, limit: limit - walk.messages.count,
      isInclusive: walk.isInclusive)
    let page = try await ask(await adapter.history(of: channel, query))
    let isLive = onlineBefore && isOnline && epoch == epochBefore
    let here = walk.position
    let isKnown = try opened(.history).read { session throws(ChatError) in
      try session.ranges(of: channel).contains { $0.contains(here) }
    }
    let range = walk.span(of: page, isLive: isLive, startsInRange: isKnown && !walk.isInclusive)
    try absorb(page.messages, in: channel, .backfill, covering: range, tellsNew: false)
    followChanges(in: channel)
    // From the cache, which leaves out what is hidden there; directly where it is not known to hold everything.
    if try advanceInCache(&walk, channel, limit) { return }
    walk.take(try visible(page.messages, in: channel))
    try walk.passOver(page)
  }

  private func visible(_ messages: [Message], in channel: ChannelID) throws(ChatError) -> [Message] {
    try opened(.history).read { session throws(ChatError) in
      var visible: [Message] = []
      for message in messages where message.threadParent == nil {
        guard let id = message.id, let known = try session.message(id, in: channel) else { continue }
        visible.append(known)
      }
      return visible
    }
  }

  /// One message, from the cache if it is there.
  public func message(_ id: MessageID, in channel: ChannelID) async throws(ChatError) -> Message {
    let cache = try opened(.fetchMessage)
    if let known = try cache.read({ session throws(ChatError) in try session.message(id, in: channel) }) { return known }
    let found = try await ask(await adapter.message(id, in: channel))
    try absorb([found], in: channel, .backfill, covering: span(of: [found]), tellsNew: false)
    return try cache.read({ session throws(ChatError) in try session.message(id, in: channel) }) ?? found
  }

  public func changes(in channel: ChannelID, since: Cursor?) async throws(ChatError) -> ChangePage {
    try await require(.historyChangelog, .changelog)
    return try await ask(await adapter.changes(in: channel, since: since))
  }

  public func thread(under parent: Message, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    try await require(.messageThread, .history)
    try Arguments.limit(query.limit, .history)
    let page = try await ask(await adapter.thread(under: parent, query))
    try absorb(page.messages, in: parent.channel, .backfill, covering: nil, tellsNew: false)
    return page
  }

  /// Messages of the cache that say `query.text`; found without the network.
  public func searchCache(_ query: CacheSearch, page: PageToken? = nil) throws(ChatError) -> Page<Message> {
    try opened(.search).read { session throws(ChatError) in try session.search(query, page: page) }
  }

  /// On the server where it can search, else in the cache.
  public func search(_ text: String, in channel: ChannelID?, limit: Int, page: PageToken?) async throws(ChatError)
    -> Page<Message>
  {
    try Arguments.limit(limit, .search)
    guard try await vendorCapabilities().has(.searchServer) else {
      return try searchCache(CacheSearch(text, channel: channel, limit: limit), page: page)
    }
    return try await ask(await adapter.search(text, in: channel, limit: limit, page: page))
  }
}

extension CachedRange {
  /// Whether a walk that stands at `position` can go on in this range.
  fileprivate func leadsOn(
    from position: MessagePosition, _ direction: HistoryQuery.Direction, inclusive: Bool
  ) -> Bool {
    if inclusive { return contains(position) }
    return switch direction {
    case .older: low < position && position <= high
    case .newer: low <= position && position < high
    }
  }
}
