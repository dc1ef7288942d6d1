import UnifiedChat

/// What a cache holds, for tools.
public struct CacheReport: Sendable, Hashable {
  public struct ChannelPart: Sendable, Hashable {
    public var id: ChannelID
    public var name: String?
    /// Committed messages, in sight or not.
    public var messages: Int
    /// What is known without holes.
    public var ranges: [CachedRange]
    /// Messages of this device that are not sent.
    public var unsent: Int

    /// Parts between known ones of which nothing is known.
    public var gaps: Int { max(0, ranges.count - 1) }
    /// All of it is here, from the first message on.
    public var isWhole: Bool { ranges.count == 1 && ranges[0].isAtStart }
  }

  /// nil in memory.
  public var path: String?
  /// Of the file and its log.
  public var bytes: Int64
  public var schemaVersion: Int
  /// "ok", or the first damage that SQLite finds.
  public var integrity: String
  public var channels: [ChannelPart]

  public var messages: Int { channels.reduce(0) { $0 + $1.messages } }
  public var unsent: Int { channels.reduce(0) { $0 + $1.unsent } }
  public var gaps: Int { channels.reduce(0) { $0 + $1.gaps } }
}

extension LocalCache {
  /// Reads the whole file: takes time with its size.
  public func report() throws(ChatError) -> CacheReport {
    let integrity = try integrity()
    let (version, channels) = try read { session throws(ChatError) in
      (try CacheMigrations.version(of: session.database), try session.parts())
    }
    return CacheReport(
      path: path, bytes: size, schemaVersion: Int(clamping: version), integrity: integrity, channels: channels)
  }

  /// Makes the search index anew from the messages.
  /// - Returns: how many messages are in it.
  @discardableResult
  public func rebuildSearch() throws(ChatError) -> Int {
    try write { session throws(ChatError) in
      try session.database.run("INSERT INTO search (search) VALUES ('delete-all')")
      return try session.indexAll()
    }
  }
}

extension CacheSession {
  /// Messages that are to be sent; failed ones not counted, which only the user can send again.
  public func unsentCount() throws(ChatError) -> Int {
    try outboxCount("WHERE state IN ('queued', 'flying')")
  }

  /// Messages that only this file has, the failed ones too.
  public func unconfirmedCount() throws(ChatError) -> Int { try outboxCount("") }

  private func outboxCount(_ condition: String) throws(ChatError) -> Int {
    let count = try database.first("SELECT count(*) FROM outbox \(condition)") { row throws(ChatError) in row.int(0) }
    return Int(clamping: count ?? 0)
  }

  /// Ids of the main list in sight and inside what is known without holes: what the server must have.
  public func provenIDs(in channel: ChannelID) throws(ChatError) -> [MessageID] {
    var ids: [MessageID] = []
    for range in try ranges(of: channel) {
      try database.query(
        """
        SELECT id FROM messages
        WHERE channel = ? AND major IS NOT NULL AND visibility = 'visible' AND thread_parent IS NULL
          AND (major, minor, tail) >= (?, ?, ?) AND (major, minor, tail) <= (?, ?, ?)
        ORDER BY major, minor, tail
        """, [.text(channel.rawValue)] + range.low.values + range.high.values
      ) { row throws(ChatError) in ids.append(MessageID(row.text(0))) }
    }
    return ids
  }

  /// The message is here, in sight or not, or the user cleared it.
  public func isAccountedFor(_ message: Message) throws(ChatError) -> Bool {
    if let id = message.id, try row(of: id, in: message.channel) != nil { return true }
    guard let position = message.position, let cleared = try clearedPosition(of: message.channel) else { return false }
    return position <= cleared
  }

  /// Removes a message that the server does not have.
  public func remove(_ id: MessageID, in channel: ChannelID) throws(ChatError) {
    guard let known = try row(of: id, in: channel) else { return }
    try delete(known)
    database.hasErased = true
  }

  fileprivate func parts() throws(ChatError) -> [CacheReport.ChannelPart] {
    let rows = try database.all(
      """
      SELECT id, json_extract(payload, '$.name'),
        (SELECT count(*) FROM messages WHERE channel = channels.id AND messages.id IS NOT NULL),
        (SELECT count(*) FROM outbox WHERE channel = channels.id)
      FROM channels ORDER BY id
      """
    ) { row throws(ChatError) in
      CacheReport.ChannelPart(
        id: ChannelID(row.text(0)), name: row.optionalText(1), messages: Int(clamping: row.int(2)), ranges: [],
        unsent: Int(clamping: row.int(3)))
    }
    var parts = rows
    for place in parts.indices { parts[place].ranges = try ranges(of: parts[place].id) }
    return parts
  }

  /// Puts every message in sight into the empty search index.
  @discardableResult
  func indexAll() throws(ChatError) -> Int {
    var last = Int64.min
    var count = 0
    while true {
      let rows = try database.all(
        "SELECT \(MessageRow.columns) FROM messages WHERE row > ? AND visibility = 'visible' ORDER BY row LIMIT 500",
        [.int(last)]
      ) { row throws(ChatError) in try MessageRow(row) }
      for row in rows { try index(row.message, row: row.row) }
      guard let next = rows.last?.row else { return count }
      count += rows.count
      last = next
    }
  }
}
