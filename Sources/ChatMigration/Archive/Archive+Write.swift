import ChatCrypto
import ChatInterchange
import UnifiedChat

/// Which list a cursor belongs to.
enum ArchiveList: String, Sendable { case users, channels, members, messages }

/// How far one list has been read.
struct ReadingState: Sendable, Hashable {
  var cursor: Cursor?
  var isDone: Bool
}

/// One page on its way into an archive, with the cursor that follows it.
struct PageEnd: Sendable {
  /// The cursor that this page was asked with: kept at the end of a list, so that a later run finds what is new.
  var cursor: Cursor?
  var next: Cursor?
  var unreadable: [UnreadableRecord]
}

extension Archive {
  func readingState(of list: ArchiveList, channel: Int64 = 0) throws(ChatError) -> ReadingState {
    let state = try database.first(
      "SELECT cursor, done FROM cursors WHERE list = ? AND channel = ?", .text(list.rawValue), .integer(channel)
    ) { row in ReadingState(cursor: row.optionalText(0).map { Cursor($0) }, isDone: row.integer(1) != 0) }
    return state ?? ReadingState(cursor: nil, isDone: false)
  }

  /// Everything is to be looked at again from the last page of each list: what a second run does.
  func reopen() throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      // New users and channels may come anywhere in their lists, new messages only after the last page.
      try database.run("DELETE FROM cursors WHERE list <> 'messages' AND done = 1")
      try database.run("UPDATE cursors SET done = 0 WHERE done = 1")
      try database.run("DELETE FROM manifest WHERE key = 'completed_at'")
    }
  }

  func commit(users: [UserRow], _ end: PageEnd) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      for row in users { try put(row) }
      try commit(end, of: .users, channel: 0)
    }
  }

  func commit(channels: [ChannelRow], _ end: PageEnd) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      for row in channels { try put(row) }
      try commit(end, of: .channels, channel: 0)
    }
  }

  func commit(members: [MemberRow], channel: Int64, _ end: PageEnd) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      for row in members { try put(row, channel: channel) }
      try commit(end, of: .members, channel: channel)
    }
  }

  /// Returns how many messages were new.
  @discardableResult
  func commit(
    messages: [MessageRow], files: [FetchedFile], channel: Int64, _ end: PageEnd
  ) throws(ChatError) -> Int {
    try database.transaction { () throws(ChatError) in
      for file in files { try put(file) }
      let new = try put(messages, channel: channel)
      try commit(end, of: .messages, channel: channel)
      return new
    }
  }

  private func commit(_ end: PageEnd, of list: ArchiveList, channel: Int64) throws(ChatError) {
    for record in end.unreadable { try put(record) }
    try database.run(
      """
      INSERT INTO cursors VALUES (?, ?, ?, ?)
      ON CONFLICT (list, channel) DO UPDATE SET cursor = excluded.cursor, done = excluded.done
      """, .text(list.rawValue), .integer(channel), .text((end.next ?? end.cursor)?.rawValue),
      .integer(end.next == nil ? 1 : 0))
  }

  // MARK: Rows; within a transaction

  func put(_ row: UserRow) throws(ChatError) {
    // A placeholder never replaces what is known; a record replaces a placeholder.
    try database.run(
      """
      INSERT INTO users (id, placeholder, record, raw) VALUES (?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET placeholder = excluded.placeholder, record = excluded.record, raw = excluded.raw
      WHERE excluded.placeholder <= placeholder
      """, .text(row.id.rawValue), .integer(row.isPlaceholder ? 1 : 0), .text(row.stored.json),
      .text(row.stored.raw))
  }

  func put(_ row: ChannelRow) throws(ChatError) {
    for person in row.people { try putPlaceholder(person) }
    try database.run(
      """
      INSERT INTO channels (id, kind, record, raw) VALUES (?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, record = excluded.record, raw = excluded.raw
      """, .text(row.id.rawValue), .text(row.kind), .text(row.stored.json), .text(row.stored.raw))
  }

  func put(_ row: MemberRow, channel: Int64) throws(ChatError) {
    try putPlaceholder(row.user)
    try database.run(
      """
      INSERT INTO members VALUES (?, ?, ?, ?)
      ON CONFLICT (channel, user) DO UPDATE SET record = excluded.record, raw = excluded.raw
      """, .integer(channel), .text(row.user.rawValue), .text(row.stored.json), .text(row.stored.raw))
  }

  /// Returns how many were new.
  func put(_ rows: [MessageRow], channel: Int64) throws(ChatError) -> Int {
    var next = try database.count(
      "SELECT coalesce(max(ordinal), 0) FROM messages WHERE channel = ?", .integer(channel))
    var new = 0
    for person in rows.reduce(into: Set<UserID>(), { $0.formUnion($1.people) }).sorted() { try putPlaceholder(person) }
    for row in rows {
      let ordinal = try database.first(
        """
        INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (channel, id) DO UPDATE SET sender = excluded.sender, created_at = excluded.created_at,
          kind = excluded.kind, record = excluded.record, raw = excluded.raw
        RETURNING ordinal
        """, .integer(channel), .integer(next + 1), .text(row.id.rawValue), .text(row.sender?.rawValue),
        .integer(row.createdAt.milliseconds), .text(row.kind), .text(row.stored.json), .text(row.stored.raw)
      ) { row in row.integer(0) }
      guard ordinal == Int64(next + 1) else { continue }
      next += 1
      new += 1
    }
    return new
  }

  private func putPlaceholder(_ user: UserID) throws(ChatError) {
    let known = try database.count("SELECT count(*) FROM users WHERE id = ?", .text(user.rawValue))
    if known == 0 { try put(UserRow.placeholder(user)) }
  }

  func put(_ file: FetchedFile) throws(ChatError) {
    try database.run(
      "INSERT OR IGNORE INTO files VALUES (?, ?, ?, ?)", .text(file.stored.sha256), .integer(file.stored.size),
      .text(file.name), .text(file.mimeType))
    guard let url = file.url else { return }
    try database.run(
      "INSERT OR REPLACE INTO file_urls VALUES (?, ?)", .text(url), .text(file.stored.sha256))
  }

  func put(_ record: UnreadableRecord) throws(ChatError) {
    // The last page of a list is read again by a later run; what it could not read then is the same item.
    try database.run(
      """
      INSERT INTO unreadable (kind, id, channel, reason, raw) SELECT ?1, ?2, ?3, ?4, ?5 WHERE NOT EXISTS (
        SELECT 1 FROM unreadable WHERE kind = ?1 AND id IS ?2 AND channel IS ?3 AND reason = ?4 AND raw IS ?5)
      """, .text(record.kind), .text(record.id), .text(record.channel?.rawValue), .text(record.reason),
      .text(record.raw?.text))
  }
}

/// An attachment whose bytes are in the store.
struct FetchedFile: Sendable, Hashable {
  var stored: StoredFile
  var url: String?
  var name: String?
  var mimeType: String?
}
