import ChatCrypto
import ChatInterchange
import UnifiedChat

/// Which list a cursor belongs to.
enum ArchiveList: String, Sendable { case users, channels, members, messages, rows }

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
  /// The list ends here because it could not be read on: what was not seen may be there.
  var isGivenUp = false
  /// Ids that are at the source and that the filter leaves out: what is here of them is not gone.
  var leftOut: [String] = []
}

extension Archive {
  func readingState(of list: ArchiveList, channel: Int64 = 0) throws(ChatError) -> ReadingState {
    let state = try database.first(
      "SELECT cursor, done FROM cursors WHERE list = ? AND channel = ?", .text(list.rawValue), .integer(channel)
    ) { row in ReadingState(cursor: row.optionalText(0).map { Cursor($0) }, isDone: row.integer(1) != 0) }
    return state ?? ReadingState(cursor: nil, isDone: false)
  }

  /// Every list is to be read on: what a second run does.
  /// - Parameter rereading: from the start of each list, so that changes of what is here already are found as well;
  ///   else new messages are sought only after the last page of each channel, and rows not at all once all were read.
  func reopen(rereading: Bool) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      // New users and channels may come anywhere in their lists, new messages only after the last page.
      try database.run(
        "DELETE FROM cursors WHERE list NOT IN ('messages', 'rows') OR ?", .integer(rereading ? 1 : 0))
      // Rows may be new anywhere and cost a reading of all: that is for a whole rereading, not for each look at what is
      // new.
      try database.run("UPDATE cursors SET done = 0 WHERE done = 1 AND list <> 'rows'")
      try database.run("DELETE FROM manifest WHERE key = 'completed_at'")
      try database.run("DELETE FROM seen")
      // Found again where they still are not believed.
      try database.run(
        "DELETE FROM unreadable WHERE kind = ? AND (? OR reason NOT LIKE 'message:%')",
        .text(UnreadableRecord.envelopeKind), .integer(rereading ? 1 : 0))
      try setManifest("rereading", rereading ? "all" : "lists")
    }
  }

  func commit(users: [UserRow], _ end: PageEnd) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      for row in users { try put(row) }
      try commit(end, of: .users, channel: 0, seen: [])
    }
  }

  func commit(channels: [ChannelRow], _ end: PageEnd) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      for row in channels { try put(row) }
      try commit(end, of: .channels, channel: 0, seen: channels.map(\.id.rawValue))
    }
  }

  func commit(members: [MemberRow], channel: Int64, _ end: PageEnd) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      for row in members { try put(row, channel: channel) }
      try commit(end, of: .members, channel: channel, seen: members.map(\.user.rawValue))
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
      try commit(end, of: .messages, channel: channel, seen: messages.map(\.id.rawValue))
      return new
    }
  }

  func commit(rows: [VendorRow], _ end: PageEnd) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      for row in rows { try put(row, replaces: true) }
      try commit(end, of: .rows, channel: 0, seen: [])
    }
  }

  private func commit(
    _ end: PageEnd, of list: ArchiveList, channel: Int64, seen: [String]
  ) throws(ChatError) {
    for record in end.unreadable { try put(record) }
    if let mode = try manifestValue("rereading"), mode == "all" || list != .messages {
      // What cannot be read any more is there all the same.
      try sweep(list, channel, seen + end.leftOut + end.unreadable.compactMap(\.id), end)
    }
    try database.run(
      """
      INSERT INTO cursors VALUES (?, ?, ?, ?)
      ON CONFLICT (list, channel) DO UPDATE SET cursor = excluded.cursor, done = excluded.done
      """, .text(list.rawValue), .integer(channel), .text((end.next ?? end.cursor)?.rawValue),
      .integer(end.next == nil ? 1 : 0))
  }

  // MARK: Rows; within a transaction

  func put(_ row: UserRow) throws(ChatError) {
    try database.run(
      "INSERT OR IGNORE INTO users (id, placeholder, record, raw) VALUES (?, ?, ?, ?)", .text(row.id.rawValue),
      .integer(row.isPlaceholder ? 1 : 0), .text(row.stored.json), .text(row.stored.raw))
    guard database.changes == 0 else { return }
    // A placeholder never replaces what is known; a record replaces a placeholder.
    try database.run(
      "UPDATE users SET placeholder = ?2, record = ?3 WHERE id = ?1 AND placeholder >= ?2 AND record <> ?3",
      .text(row.id.rawValue), .integer(row.isPlaceholder ? 1 : 0), .text(row.stored.json))
    if database.changes > 0 { try note(.users, row.id.rawValue, channel: 0) }
    try database.run(
      "UPDATE users SET raw = ?3 WHERE id = ?1 AND placeholder >= ?2 AND raw IS NOT ?3", .text(row.id.rawValue),
      .integer(row.isPlaceholder ? 1 : 0), .text(row.stored.raw))
  }

  func put(_ row: ChannelRow) throws(ChatError) {
    for person in row.people { try putPlaceholder(person) }
    try database.run(
      "INSERT OR IGNORE INTO channels (id, kind, record, raw) VALUES (?, ?, ?, ?)", .text(row.id.rawValue),
      .text(row.kind), .text(row.stored.json), .text(row.stored.raw))
    guard database.changes == 0 else { return }
    let isAdmitted = try admits(row.stored) { () throws(ChatError) in
      try database.first("SELECT raw FROM channels WHERE id = ?", .text(row.id.rawValue)) { $0.text(0) }
    }
    guard isAdmitted else { return }
    let ordinal = try database.first("SELECT ordinal FROM channels WHERE id = ?", .text(row.id.rawValue)) { row in
      row.integer(0)
    }
    try database.run(
      "UPDATE channels SET kind = ?2, record = ?3 WHERE id = ?1 AND record <> ?3", .text(row.id.rawValue),
      .text(row.kind), .text(row.stored.json))
    if database.changes > 0, let ordinal { try note(.channels, row.id.rawValue, channel: ordinal) }
    try database.run(
      "UPDATE channels SET raw = ?2 WHERE id = ?1 AND raw IS NOT ?2", .text(row.id.rawValue), .text(row.stored.raw))
  }

  func put(_ row: MemberRow, channel: Int64) throws(ChatError) {
    try putPlaceholder(row.user)
    try database.run(
      "INSERT OR IGNORE INTO members VALUES (?, ?, ?, ?)", .integer(channel), .text(row.user.rawValue),
      .text(row.stored.json), .text(row.stored.raw))
    guard database.changes == 0 else {
      // Who joins a channel that is complete already changes it.
      if try manifestValue("rereading") != nil { try note(.members, row.user.rawValue, channel: channel) }
      return
    }
    try database.run(
      "UPDATE members SET record = ?3 WHERE channel = ?1 AND user = ?2 AND record <> ?3", .integer(channel),
      .text(row.user.rawValue), .text(row.stored.json))
    if database.changes > 0 { try note(.members, row.user.rawValue, channel: channel) }
    try database.run(
      "UPDATE members SET raw = ?3 WHERE channel = ?1 AND user = ?2 AND raw IS NOT ?3", .integer(channel),
      .text(row.user.rawValue), .text(row.stored.raw))
  }

  /// Returns how many were new.
  func put(_ rows: [MessageRow], channel: Int64) throws(ChatError) -> Int {
    let first = try lastOrdinal(of: channel)
    var next = first
    for person in rows.reduce(into: Set<UserID>(), { $0.formUnion($1.people) }).sorted() { try putPlaceholder(person) }
    for row in rows {
      try database.run(
        "INSERT OR IGNORE INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", .integer(channel), .integer(next + 1),
        .text(row.id.rawValue), .text(row.sender?.rawValue), .integer(row.createdAt.milliseconds), .text(row.kind),
        .text(row.stored.json), .text(row.stored.raw))
      if database.changes > 0 { next += 1 } else { try replace(row, channel: channel) }
    }
    return Int(next - first)
  }

  /// The highest number that a message of the channel has or had.
  private func lastOrdinal(of channel: Int64) throws(ChatError) -> Int64 {
    let last = try database.count("SELECT max(ordinal) FROM messages WHERE channel = ?", .integer(channel))
    let removed = try database.count(
      "SELECT max(ordinal) FROM changes WHERE channel = ? AND ordinal IS NOT NULL", .integer(channel))
    return Int64(max(last, removed))
  }

  /// What is known at second hand takes the place of nothing but what is so too and knows less.
  private func admits(_ new: StoredRecord, known: () throws(ChatError) -> String?) throws(ChatError) -> Bool {
    guard SecondHand.knowledge(of: new.raw) != nil else { return true }
    return SecondHand.replaces(try known(), with: new.raw)
  }

  private func replace(_ row: MessageRow, channel: Int64) throws(ChatError) {
    let isAdmitted = try admits(row.stored) { () throws(ChatError) in
      try database.first(
        "SELECT raw FROM messages WHERE channel = ? AND id = ?", .integer(channel), .text(row.id.rawValue)
      ) { $0.text(0) }
    }
    guard isAdmitted else { return }
    try database.run(
      """
      UPDATE messages SET sender = ?3, created_at = ?4, kind = ?5, record = ?6
      WHERE channel = ?1 AND id = ?2 AND record <> ?6
      """, .integer(channel), .text(row.id.rawValue), .text(row.sender?.rawValue),
      .integer(row.createdAt.milliseconds), .text(row.kind), .text(row.stored.json))
    if database.changes > 0 { try note(.messages, row.id.rawValue, channel: channel) }
    try database.run(
      "UPDATE messages SET raw = ?3 WHERE channel = ?1 AND id = ?2 AND raw IS NOT ?3", .integer(channel),
      .text(row.id.rawValue), .text(row.stored.raw))
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
