import ChatInterchange
import UnifiedChat

/// Reading in pieces: nothing here gives more than `limit` rows, so that memory does not grow with the archive.
extension Archive {
  public func counts() throws(ChatError) -> ArchiveCounts {
    var counts = ArchiveCounts()
    counts.users = try database.count("SELECT count(*) FROM users")
    counts.placeholders = try database.count("SELECT count(*) FROM users WHERE placeholder = 1")
    counts.channels = try database.count("SELECT count(*) FROM channels")
    counts.members = try database.count("SELECT count(*) FROM members")
    counts.messages = try database.count("SELECT count(*) FROM messages")
    counts.files = try database.count("SELECT count(*) FROM files")
    counts.fileBytes = Int64(try database.count("SELECT coalesce(sum(size), 0) FROM files"))
    counts.unreadable = try database.count("SELECT count(*) FROM unreadable")
    counts.envelopes = try database.count(
      "SELECT count(*) FROM unreadable WHERE kind = ?", .text(UnreadableRecord.envelopeKind))
    counts.unreadable -= counts.envelopes
    return counts
  }

  /// Whether every list has been read to its end.
  public func isComplete() throws(ChatError) -> Bool { try manifestValue("completed_at") != nil }

  public func users(after ordinal: Int64 = 0, limit: Int) throws(ChatError) -> [ArchivedUser] {
    try database.rows(
      "SELECT ordinal, id, record, raw FROM users WHERE ordinal > ? ORDER BY ordinal LIMIT ?", .integer(ordinal),
      .integer(limit)
    ) { row in
      ArchivedUser(
        ordinal: row.integer(0), id: UserID(row.text(1)),
        stored: StoredRecord(json: row.text(2), raw: row.optionalText(3)))
    }
  }

  public func user(_ id: UserID) throws(ChatError) -> ArchivedUser? {
    try database.first("SELECT ordinal, id, record, raw FROM users WHERE id = ?", .text(id.rawValue)) { row in
      ArchivedUser(
        ordinal: row.integer(0), id: UserID(row.text(1)),
        stored: StoredRecord(json: row.text(2), raw: row.optionalText(3)))
    }
  }

  public func channels(after ordinal: Int64 = 0, limit: Int) throws(ChatError) -> [ArchivedChannel] {
    try database.rows(
      Self.selectChannels + " WHERE ordinal > ? ORDER BY ordinal LIMIT ?", .integer(ordinal), .integer(limit),
      read: Self.channel)
  }

  public func channel(_ ordinal: Int64) throws(ChatError) -> ArchivedChannel? {
    try database.first(Self.selectChannels + " WHERE ordinal = ?", .integer(ordinal), read: Self.channel)
  }

  public func channel(_ id: ChannelID) throws(ChatError) -> ArchivedChannel? {
    try database.first(Self.selectChannels + " WHERE id = ?", .text(id.rawValue), read: Self.channel)
  }

  static let selectChannels =
    "SELECT ordinal, id, kind, record, raw, messages, first_at, last_at, digest FROM channels"

  static func channel(_ row: Row) -> ArchivedChannel {
    ArchivedChannel(
      ordinal: row.integer(0), id: ChannelID(row.text(1)), kind: row.text(2),
      stored: StoredRecord(json: row.text(3), raw: row.optionalText(4)),
      messages: row.optionalInteger(5).map { Int($0) },
      firstAt: row.optionalInteger(6).map { Timestamp(milliseconds: $0) },
      lastAt: row.optionalInteger(7).map { Timestamp(milliseconds: $0) }, digest: row.optionalText(8))
  }

  /// By user id, ascending.
  public func members(
    of channel: Int64, after user: UserID? = nil, limit: Int
  ) throws(ChatError) -> [StoredRecord] {
    try database.rows(
      "SELECT record, raw FROM members WHERE channel = ? AND user > ? ORDER BY user LIMIT ?", .integer(channel),
      .text(user?.rawValue ?? ""), .integer(limit)
    ) { row in StoredRecord(json: row.text(0), raw: row.optionalText(1)) }
  }

  public func memberCount(of channel: Int64) throws(ChatError) -> Int {
    try database.count("SELECT count(*) FROM members WHERE channel = ?", .integer(channel))
  }

  public func messageCount(of channel: Int64) throws(ChatError) -> Int {
    try database.count("SELECT count(*) FROM messages WHERE channel = ?", .integer(channel))
  }

  /// In the channel's order.
  public func messages(
    in channel: Int64, after ordinal: Int64 = 0, limit: Int
  ) throws(ChatError) -> [ArchivedMessage] {
    try database.rows(
      "SELECT ordinal, id, record, raw FROM messages WHERE channel = ? AND ordinal > ? ORDER BY ordinal LIMIT ?",
      .integer(channel), .integer(ordinal), .integer(limit), read: Self.message)
  }

  /// Those of `ids` that are in the channel.
  public func messages(
    in channel: Int64, ids: [MessageID]
  ) throws(ChatError) -> [MessageID: ArchivedMessage] {
    var found: [MessageID: ArchivedMessage] = [:]
    for id in ids where found[id] == nil {
      found[id] = try database.first(
        "SELECT ordinal, id, record, raw FROM messages WHERE channel = ? AND id = ?", .integer(channel),
        .text(id.rawValue), read: Self.message)
    }
    return found
  }

  /// Places in the channel's order of those of `ids` that are in it, from the index alone.
  func ordinals(of ids: [MessageID], in channel: Int64) throws(ChatError) -> [MessageID: Int64] {
    var found: [MessageID: Int64] = [:]
    for id in ids where found[id] == nil {
      found[id] = try database.first(
        "SELECT ordinal FROM messages WHERE channel = ? AND id = ?", .integer(channel), .text(id.rawValue)
      ) { row in row.integer(0) }
    }
    return found
  }

  private static func message(_ row: Row) -> ArchivedMessage {
    ArchivedMessage(
      ordinal: row.integer(0), id: MessageID(row.text(1)),
      stored: StoredRecord(json: row.text(2), raw: row.optionalText(3)))
  }

  /// What the source could not read or did not believe.
  /// - Parameter envelopes: only envelopes that were not believed, or only the others; nil: all.
  public func unreadable(
    after ordinal: Int64 = 0, limit: Int, envelopes: Bool? = nil
  ) throws(ChatError) -> [UnreadableRecord] {
    try database.rows(
      """
      SELECT kind, id, channel, reason, raw FROM unreadable WHERE ordinal > ?1 AND (?3 IS NULL OR (kind = ?4) = ?3)
      ORDER BY ordinal LIMIT ?2
      """, .integer(ordinal), .integer(limit), envelopes.map { .integer($0 ? 1 : 0) } ?? .text(nil),
      .text(UnreadableRecord.envelopeKind)
    ) { row in
      UnreadableRecord(
        kind: row.text(0), id: row.optionalText(1), channel: row.optionalText(2).map { ChannelID($0) },
        reason: row.text(3), raw: row.optionalText(4).map { JSONText(unchecked: $0) })
    }
  }

  /// Attachments by SHA-256, ascending.
  func storedFiles(after sha256: String = "", limit: Int) throws(ChatError) -> [FetchedFile] {
    try database.rows(
      "SELECT sha256, size, name, mime_type FROM files WHERE sha256 > ? ORDER BY sha256 LIMIT ?", .text(sha256),
      .integer(limit)
    ) { row in
      FetchedFile(
        stored: StoredFile(sha256: row.text(0), size: row.integer(1)), url: nil, name: row.optionalText(2),
        mimeType: row.optionalText(3))
    }
  }

  func file(at url: String) throws(ChatError) -> StoredFile? {
    try database.first(
      "SELECT f.sha256, f.size FROM file_urls u JOIN files f ON f.sha256 = u.sha256 WHERE u.url = ?", .text(url)
    ) { row in StoredFile(sha256: row.text(0), size: row.integer(1)) }
  }

  /// Of direct channels with the same two members, all but the first: a vendor that has one such channel a pair would
  /// melt them into one.
  func repeatedDirectChannels() throws(ChatError) -> Set<Int64> {
    Set(
      try database.rows(
        """
        SELECT ordinal FROM (
          SELECT m.channel AS ordinal,
            row_number() OVER (PARTITION BY min(m.user), max(m.user) ORDER BY m.channel) AS number
          FROM members m JOIN channels c ON c.ordinal = m.channel WHERE c.kind = 'direct'
          GROUP BY m.channel HAVING count(*) = 2)
        WHERE number > 1
        """
      ) { row in row.integer(0) })
  }
}
