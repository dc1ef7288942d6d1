import UnifiedChat

/// From `low` to `high`, both included, every message of the main list is in the cache.
public struct CachedRange: Sendable, Hashable {
  public var low: MessagePosition
  public var high: MessagePosition

  public init(low: MessagePosition, high: MessagePosition) {
    self.low = low
    self.high = high
  }

  /// Nothing older exists.
  public var isAtStart: Bool { low == .lowest }
  /// Newer ones arrive by themselves.
  public var isLive: Bool { high == .highest }

  public func contains(_ position: MessagePosition) -> Bool { low <= position && position <= high }
}

extension CacheSession {
  /// In ascending order, never touching one another. What lies between two of them is a gap.
  public func ranges(of channel: ChannelID) throws(ChatError) -> [CachedRange] {
    try database.all(
      """
      SELECT low_major, low_minor, low_tail, high_major, high_minor, high_tail FROM ranges WHERE channel = ?
      ORDER BY low_major, low_minor, low_tail
      """, [.text(channel.rawValue)]
    ) { row throws(ChatError) in
      CachedRange(
        low: MessagePosition(row, from: 0) ?? .lowest, high: MessagePosition(row, from: 3) ?? .lowest)
    }
  }

  /// Says that everything in `range` is here; ranges that share a position become one.
  public func cover(_ range: CachedRange, in channel: ChannelID) throws(ChatError) {
    guard range.low <= range.high else { return }
    try touchChannel(channel)
    var whole = range
    for other in try ranges(of: channel) where other.low <= whole.high && whole.low <= other.high {
      if other == range { return }
      whole.low = min(whole.low, other.low)
      whole.high = max(whole.high, other.high)
      try remove(other, in: channel)
    }
    try insert(whole, in: channel)
  }

  /// Says that nothing is known any more about what lies strictly between `low` and `high`.
  public func forget(between low: MessagePosition, and high: MessagePosition, in channel: ChannelID) throws(ChatError) {
    for range in try ranges(of: channel) where range.low < high && low < range.high {
      try remove(range, in: channel)
      if range.low <= low { try insert(CachedRange(low: range.low, high: low), in: channel) }
      if high <= range.high { try insert(CachedRange(low: high, high: range.high), in: channel) }
    }
  }

  /// The link was lost: what is newer than the newest known message is unknown from now on, in `channels` or in all.
  /// - Parameter doubts: messages of channels that prove nothing of what lies before them: one that could not be
  ///   stored, or one that a list brought before its push. Those of `noteAhead` count without being named.
  /// - Returns: the channels that were live, with the position from which they are to be read on.
  @discardableResult
  public func openGaps(
    in channels: [ChannelID]? = nil, before doubts: [ChannelID: [MessagePosition]] = [:]
  ) throws(ChatError) -> [ChannelID: MessagePosition] {
    let live = try database.all(
      "SELECT channel, low_major, low_minor, low_tail FROM ranges WHERE high_major = ? AND high_minor = ?",
      [.int(.max), .int(.max)]
    ) { row throws(ChatError) in (channel: ChannelID(row.text(0)), low: MessagePosition(row, from: 1) ?? .lowest) }
    let wanted = channels.map { Set($0) }
    let ahead = try aheadPositions()
    var opened: [ChannelID: MessagePosition] = [:]
    for (channel, low) in live where wanted?.contains(channel) ?? true {
      // What lies before the range says nothing of it.
      let doubt = ((doubts[channel] ?? []) + [ahead[channel]].compactMap(\.self)).filter { $0 > low }.min()
      let newest = max(low, try provenPosition(in: channel, before: doubt ?? .highest) ?? .lowest)
      try remove(CachedRange(low: low, high: .highest), in: channel)
      try insert(CachedRange(low: low, high: newest), in: channel)
      if ahead[channel] != nil { try setCursor(nil, Self.ahead, of: channel) }
      opened[channel] = newest
    }
    return opened
  }

  /// Says which messages of a channel are here although the connection has not told them: a list or a page was ahead
  /// of the pushes, and those of what lies before them may still be on the way. Kept with the file, since after a kill
  /// nobody else knows. Call it after the range of the channel has changed, with all of them.
  public func noteAhead(_ positions: some Sequence<MessagePosition>, of channel: ChannelID) throws(ChatError) {
    let live = try ranges(of: channel).last.flatMap { $0.isLive ? $0 : nil }
    let lowest = live.flatMap { live in positions.filter { $0 > live.low }.min() }
    let next = lowest.map { Cursor($0.description) }
    if try cursor(Self.ahead, of: channel) != next { try setCursor(next, Self.ahead, of: channel) }
  }

  private static let ahead = "ahead"

  private func aheadPositions() throws(ChatError) -> [ChannelID: MessagePosition] {
    let rows = try database.all("SELECT channel, value FROM cursors WHERE name = ?", [.text(Self.ahead)]) {
      row throws(ChatError) in (ChannelID(row.text(0)), MessagePosition(row.text(1)) ?? .lowest)
    }
    return Dictionary(rows) { min($0, $1) }
  }

  /// The highest range of a channel that is more than one message from a list; nil when nothing was ever read.
  public func loadedRange(of channel: ChannelID) throws(ChatError) -> CachedRange? {
    try ranges(of: channel).last { $0.low < $0.high }
  }

  /// Channels that were read and whose newest messages may be missing now, with the position from which they are to
  /// be read on.
  public func channelsBehind() throws(ChatError) -> [ChannelID: MessagePosition] {
    let behind = try database.all(
      """
      SELECT channel, high_major, high_minor, high_tail FROM ranges
      WHERE (low_major, low_minor, low_tail) < (high_major, high_minor, high_tail)
        AND channel NOT IN (SELECT channel FROM ranges WHERE high_major = ?1 AND high_minor = ?1)
      ORDER BY channel, low_major, low_minor, low_tail
      """, [.int(.max)]
    ) { row throws(ChatError) in (ChannelID(row.text(0)), MessagePosition(row, from: 1) ?? .lowest) }
    // The highest range of each.
    return Dictionary(behind) { _, higher in higher }
  }

  /// Up to where nothing can be missing after a lost link: the newest message of somebody else that stands before
  /// `doubt`, since an acknowledgement of an own message may overtake a push that then got lost. Looks back a bounded
  /// way: behind so many acknowledgements no push is on its way.
  /// - Returns: nil when there are own messages alone, or none.
  private func provenPosition(
    in channel: ChannelID, before doubt: MessagePosition
  ) throws(ChatError) -> MessagePosition? {
    let limit = 50
    let found = try newest(Int64(limit), in: channel, before: doubt)
    if let other = found.first(where: { $0.sender != user }) { return other.position }
    return found.count < limit ? nil : found.last?.position
  }

  private func newest(
    _ limit: Int64, in channel: ChannelID, before end: MessagePosition = .highest
  ) throws(ChatError) -> [(position: MessagePosition?, sender: UserID?)] {
    try database.all(
      """
      SELECT major, minor, tail, sender FROM messages
      WHERE channel = ? AND major IS NOT NULL AND visibility = 'visible' AND thread_parent IS NULL
        AND (major, minor, tail) < (?, ?, ?)
      ORDER BY major DESC, minor DESC, tail DESC LIMIT ?
      """, [.text(channel.rawValue)] + end.values + [.int(limit)]
    ) { row throws(ChatError) in (MessagePosition(row, from: 0), row.optionalText(3).map { UserID($0) }) }
  }

  /// The newest committed message of the owner, as far as it is among the newest 200.
  public func newestOwnPosition(in channel: ChannelID) throws(ChatError) -> MessagePosition? {
    try newest(200, in: channel).first { $0.sender == user }?.position
  }

  /// The newest committed message in sight.
  public func newestPosition(in channel: ChannelID) throws(ChatError) -> MessagePosition? {
    try newest(1, in: channel).first?.position
  }

  /// Removes the older half of the messages of the channel that was quiet longest.
  /// - Returns: how many were removed.
  func evictOldest() throws(ChatError) -> Int {
    let quietest = try database.first(
      "SELECT channel, count(*) FROM messages WHERE id IS NOT NULL GROUP BY channel ORDER BY max(created_at) LIMIT 1"
    ) { row throws(ChatError) in (channel: ChannelID(row.text(0)), count: row.int(1)) }
    guard let quietest else { return 0 }
    let rows = try database.all(
      """
      SELECT row, major, minor, tail FROM messages WHERE channel = ? AND id IS NOT NULL ORDER BY major, minor, tail LIMIT ?
      """, [.text(quietest.channel.rawValue), .int((quietest.count + 1) / 2)]
    ) { row throws(ChatError) in (row: row.int(0), position: MessagePosition(row, from: 1)) }
    for row in rows {
      try unindex(row.row)
      try database.run("DELETE FROM messages WHERE row = ?", [.int(row.row)])
    }
    if let last = rows.last?.position { try forget(upTo: last, in: quietest.channel) }
    return rows.count
  }

  /// Nothing is known any more of what lies at `position` or before it.
  private func forget(upTo position: MessagePosition, in channel: ChannelID) throws(ChatError) {
    for range in try ranges(of: channel) where range.low <= position {
      try remove(range, in: channel)
      // What is left begins at its first message.
      let first = try messages(in: channel, .newer, of: position, within: range, limit: 1).first?.position
      if let first, first <= range.high { try insert(CachedRange(low: first, high: range.high), in: channel) }
    }
  }

  private func remove(_ range: CachedRange, in channel: ChannelID) throws(ChatError) {
    try database.run(
      "DELETE FROM ranges WHERE channel = ? AND low_major = ? AND low_minor = ? AND low_tail = ?",
      [.text(channel.rawValue)] + range.low.values)
  }

  private func insert(_ range: CachedRange, in channel: ChannelID) throws(ChatError) {
    try database.run(
      "INSERT OR REPLACE INTO ranges VALUES (?, ?, ?, ?, ?, ?, ?)",
      [.text(channel.rawValue)] + range.low.values + range.high.values)
  }
}
