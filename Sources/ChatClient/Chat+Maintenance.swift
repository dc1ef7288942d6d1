import ChatCache
import UnifiedChat

/// How the cached part of a channel differs from the server.
public struct CacheDifference: Sendable, Hashable {
  public var channel: ChannelID
  /// Messages of the server in all.
  public var onServer: Int
  /// Messages of the server that the cache claims to hold, and does not.
  public var missing: [MessageID]
  /// Messages of the cache that the server does not have any more.
  public var surplus: [MessageID]
  /// Messages of the server of which the cache knows that it does not have them.
  public var notFetched: Int

  public var isEqual: Bool { missing.isEmpty && surplus.isEmpty }
}

extension Chat {
  /// Messages that are to be sent, in all channels; failed ones not counted.
  public func unsentCount() throws(ChatError) -> Int {
    try opened(.cache).read { session throws(ChatError) in try session.unsentCount() }
  }

  /// Messages that only this device has: those to be sent, and those that failed and can be sent again.
  public func unconfirmedCount() throws(ChatError) -> Int {
    try opened(.cache).read { session throws(ChatError) in try session.unconfirmedCount() }
  }

  /// Whether this device has a cache of `user`. Nothing is opened or made.
  public func hasCache(of user: UserID) -> Bool {
    LocalCache.exists(CacheIdentity(vendor: vendor, app: options.app, user: user), at: options.cacheLocation)
  }

  /// What the cache holds. Needs no connection.
  public func cacheReport() throws(ChatError) -> CacheReport { try opened(.cache).report() }

  /// Makes the search index anew. Needs no connection.
  /// - Returns: how many messages are in it.
  public func rebuildSearchIndex() throws(ChatError) -> Int { try opened(.cache).rebuildSearch() }

  /// Reads a whole channel from the server and compares it with the cache, which stays as it is.
  /// - Throws: what reading history throws.
  public func compareWithServer(_ channel: ChannelID) async throws(ChatError) -> CacheDifference {
    try await difference(of: channel).found
  }

  /// Fetches what is missing in a channel, from its first message to its newest, and removes what the server does not
  /// have any more.
  /// - Returns: how many messages were added or removed.
  /// - Throws: what reading history throws; what was fetched before stays.
  public func repair(_ channel: ChannelID) async throws(ChatError) -> Int {
    let (server, difference) = try await self.difference(of: channel)
    let cache = try opened(.cache)
    let added = try absorb(server, in: channel, .catchUp, covering: nil)
    try cache.write { session throws(ChatError) in
      for id in difference.surplus { try session.remove(id, in: channel) }
      guard let first = server.first?.position, let last = server.last?.position else { return }
      try session.cover(CachedRange(low: .lowest, high: max(first, last)), in: channel)
    }
    if !difference.surplus.isEmpty { publish(.messagesBackfilled(channel, count: 0), .catchUp) }
    return max(added, difference.missing.count + difference.notFetched) + difference.surplus.count
  }

  private func difference(
    of channel: ChannelID
  ) async throws(ChatError) -> (server: [Message], found: CacheDifference) {
    let cache = try opened(.cache)
    // Before the server is asked: what events bring meanwhile is no surplus.
    let proven = try cache.read { session throws(ChatError) in try session.provenIDs(in: channel) }
    let server = try await serverMessages(of: channel)
    let found = try cache.read { session throws(ChatError) in try session.compare(server, proven, in: channel) }
    return (server, found)
  }

  /// Ascending, without the replies of threads.
  private func serverMessages(of channel: ChannelID) async throws(ChatError) -> [Message] {
    try await require(.historyBackward, .history)
    var found: [[Message]] = []
    var query = HistoryQuery.newest(500)
    var walk = PageWalk()
    while true {
      let page = try await ask(await adapter.history(of: channel, query))
      found.append(page.messages.filter { $0.threadParent == nil && $0.id != nil && $0.position != nil })
      guard let older = page.older else { return found.reversed().flatMap(\.self) }
      try walk.advance(to: older.rawValue, .history)
      query.anchor = .cursor(older)
    }
  }
}

extension CacheSession {
  /// - Parameter proven: what the cache held as committed before the server was asked.
  fileprivate func compare(
    _ server: [Message], _ proven: [MessageID], in channel: ChannelID
  ) throws(ChatError) -> CacheDifference {
    let ranges = try ranges(of: channel)
    var difference = CacheDifference(channel: channel, onServer: server.count, missing: [], surplus: [], notFetched: 0)
    var present: Set<MessageID> = []
    for message in server {
      guard let id = message.id, let position = message.position else { continue }
      present.insert(id)
      if try isAccountedFor(message) { continue }
      if ranges.contains(where: { $0.contains(position) }) { difference.missing.append(id) } else { difference.notFetched += 1 }
    }
    difference.surplus = proven.filter { !present.contains($0) }
    return difference
  }
}
