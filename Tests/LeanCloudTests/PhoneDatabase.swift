import CSQLite
import Foundation
import Testing

/// A database as one of the official client libraries leaves it, made with the statements that the library runs.
final class PhoneDatabase {
  enum Library: String, CaseIterable, CustomTestStringConvertible {
    case swift, objc, java
    var testDescription: String { rawValue }
  }

  enum Cell {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
    case blob([UInt8])
  }

  struct Message {
    var id: String?
    var time: Int64
    var from = "Tom"
    var body: String? = nil
    var bytes: [UInt8]? = nil
    var patched: Int64? = nil
    /// nil: sent.
    var status: Int64? = nil
    var isMarked = false
    var mentions: [String] = []
    var mentionsAll = false
  }

  let path: String
  let library: Library
  private var handle: OpaquePointer?

  static let channel = "5f0000000000000000000001"

  init(_ library: Library, at path: String) throws {
    self.path = path
    self.library = library
    guard sqlite3_open(path, &handle) == SQLITE_OK else { throw Trouble(text: "open") }
    for statement in Self.statements[library] ?? [] { try run(statement) }
  }

  deinit { close() }

  func close() {
    sqlite3_close_v2(handle)
    handle = nil
  }

  struct Trouble: Error { var text: String }

  func run(_ sql: String, _ cells: Cell...) throws { try run(sql, cells) }

  func run(_ sql: String, _ cells: [Cell]) throws {
    var statement: OpaquePointer?
    guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK, let statement else {
      throw Trouble(text: String(cString: sqlite3_errmsg(handle)))
    }
    defer { sqlite3_finalize(statement) }
    for (index, cell) in cells.enumerated() {
      let place = Int32(index + 1)
      switch cell {
      case .null: sqlite3_bind_null(statement, place)
      case .integer(let number): sqlite3_bind_int64(statement, place, number)
      case .real(let number): sqlite3_bind_double(statement, place, number)
      case .text(let text): _ = csqlite_bind_text(statement, place, text, Int32(text.utf8.count))
      case .blob(let bytes): _ = csqlite_bind_blob(statement, place, bytes, Int32(bytes.count))
      }
    }
    let code = sqlite3_step(statement)
    guard code == SQLITE_DONE || code == SQLITE_ROW else { throw Trouble(text: String(cString: sqlite3_errmsg(handle))) }
  }

  // MARK: Rows

  func add(_ message: Message, to channel: String = PhoneDatabase.channel) throws {
    let patched = message.patched.map { Cell.integer($0) }
    let marked = Cell.integer(message.isMarked ? 1 : 0)
    let all = Cell.integer(message.mentionsAll ? 1 : 0)
    let id = message.id.map { Cell.text($0) } ?? .null
    switch library {
    case .swift:
      let text = message.bytes.map { String(decoding: $0, as: UTF8.self) } ?? message.body
      try run(
        """
        insert or replace into message (conversation_id,sent_timestamp,message_id,from_peer_id,content,binary,
        delivered_timestamp,read_timestamp,patched_timestamp,all_mentioned,mentioned_list,status,breakpoint)
        values(?,?,?,?,?,?,?,?,?,?,?,?,?)
        """, .text(channel), .integer(message.time), id, .text(message.from), text.map { .text($0) } ?? .null,
        text == nil ? .null : .integer(message.bytes == nil ? 0 : 1), .integer(message.time + 7), .null, patched ?? .null,
        all, message.mentions.isEmpty ? .null : .text("[\"\(message.mentions.joined(separator: "\",\""))\"]"),
        .integer(message.status ?? 2), marked)
    case .objc:
      let mentions = message.mentions.isEmpty ? Cell.null : .blob(try Self.archived(message.mentions as NSArray))
      try run(
        """
        insert or replace into message (message_id, conversation_id, from_peer_id, mention_all, mention_list, timestamp,
        receipt_timestamp, read_timestamp, patch_timestamp, payload, status, breakpoint)
        values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """, id, .text(channel), .text(message.from), all, mentions, .real(Double(message.time)),
        .real(Double(message.time + 7)), .real(0), .real(Double(message.patched ?? 0)),
        message.body.map { .blob(Array($0.utf8)) } ?? .null, .integer(message.status ?? 3), marked)
    case .java:
      try run(
        """
        INSERT OR IGNORE INTO messages (conversation_id, message_id, timestamp, from_peer_id, receipt_timestamp, readAt,
        updateAt, payload, status, breakpoint, mentionAll, mentionList, iType) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)
        """, .text(channel), id, .integer(message.time), .text(message.from), .integer(message.time + 7), .integer(0),
        patched ?? .integer(0), (message.bytes ?? message.body.map { Array($0.utf8) }).map { .blob($0) } ?? .null,
        .integer(message.status ?? 2), marked, all, .text(message.mentions.joined(separator: ",")),
        .integer(message.bytes == nil ? 0 : 1))
    }
  }

  /// A group with two members and custom data.
  func addConversation(
    _ id: String = PhoneDatabase.channel, name: String, updated: String = "2020-07-02T00:00:00.000Z",
    members: [String] = ["Tom", "杰瑞"]
  ) throws {
    let list = "[\"\(members.joined(separator: "\",\""))\"]"
    let json = """
      {"objectId":"\(id)","name":"\(name)","m":\(list),"c":"Tom","attr":{"k":1},"own":"column",\
      "createdAt":"2020-07-01T00:00:00.000Z","updatedAt":"\(updated)","unique":false}
      """
    switch library {
    case .swift:
      try run(
        "insert or replace into conversation (id,raw_data,updated_timestamp,created_timestamp,outdated) values(?,?,?,?,?)",
        .text(id), .blob(Array(json.utf8)), .integer(1), .integer(1), .integer(0))
    case .objc:
      let row: NSDictionary = [
        "objectId": id as NSString, "name": name as NSString, "m": members as NSArray, "c": "Tom" as NSString,
        "attr": ["k": NSNumber(value: 1)] as NSDictionary, "own": "column" as NSString,
        "createdAt": "2020-07-01T00:00:00.000Z" as NSString, "updatedAt": updated as NSString,
        "unique": NSNumber(value: false),
      ]
      try run(
        """
        INSERT OR REPLACE INTO conversation_v2 (conversation_id, name, creator, transient, members, attr, create_at,
        update_at, last_message_at, last_message, muted, raw_data, expire_at) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """, .text(id), .text(name), .text("Tom"), .integer(0), .text(members.joined(separator: ",")), .null,
        .real(1_593_561_600), .real(1_593_648_000), .null, .null, .integer(0), .blob(try Self.archived(row)), .real(0))
    case .java:
      try run(
        """
        INSERT OR IGNORE INTO conversations (conversation_id, attr, instanceData, createdAt, updatedAt, creator, members,
        isTransient, lm) VALUES (?,?,?,?,?,?,?,?,?)
        """, .text(id), .text(#"{"k":1}"#), .text(json), .text("2020-07-01T00:00:00.000Z"), .text(updated), .text("Tom"),
        .text(list), .integer(0), .integer(1_594_000_000_000))
    }
  }

  static func archived(_ object: NSObject) throws -> [UInt8] {
    Array(try NSKeyedArchiver.archivedData(withRootObject: object, requiringSecureCoding: false))
  }

  private static let statements: [Library: [String]] = [
    .swift: [
      """
      create table if not exists conversation (id text primary key, raw_data blob, updated_timestamp integer,
      created_timestamp integer, outdated integer)
      """,
      """
      create table if not exists last_message (conversation_id text primary key, raw_data blob, sent_timestamp integer)
      """,
      """
      create table if not exists message (conversation_id text, sent_timestamp integer, message_id text, from_peer_id text,
      content blob, binary integer, delivered_timestamp integer, read_timestamp integer, patched_timestamp integer,
      all_mentioned integer, mentioned_list blob, status integer, breakpoint integer,
      primary key (conversation_id,sent_timestamp,message_id))
      """,
    ],
    .objc: [
      """
      create table if not exists message(seq integer primary key autoincrement, message_id text, conversation_id text,
      from_peer_id text, timestamp real, receipt_timestamp real, read_timestamp real, patch_timestamp real,
      mention_all integer, mention_list blob, payload blob, status integer, breakpoint bool)
      """,
      "create unique index message_unique_index on message(conversation_id, message_id, timestamp)",
      """
      CREATE TABLE IF NOT EXISTS conversation_v2 (conversation_id TEXT, name TEXT, creator TEXT, transient INTEGER,
      members TEXT, attr BLOB, create_at REAL, update_at REAL, last_message_at REAL, last_message BLOB, muted INTEGER,
      raw_data BLOB, expire_at REAL, PRIMARY KEY(conversation_id))
      """,
    ],
    .java: [
      """
      CREATE TABLE IF NOT EXISTS messages (conversation_id VARCHAR(32) NOT NULL, message_id VARCHAR(32) NOT NULL,
      timestamp NUMBERIC, from_peer_id TEXT NOT NULL, receipt_timestamp NUMBERIC, readAt NUMBERIC, updateAt NUMBERIC,
      payload BLOB, status INTEGER, breakpoint INTEGER, dtoken VARCHAR(32), mentionAll INTEGER default 0,
      mentionList TEXT NULL, iType INTEGER default 0, PRIMARY KEY(conversation_id,message_id))
      """,
      "CREATE UNIQUE INDEX message_index on messages (conversation_id, timestamp, message_id)",
      """
      CREATE TABLE IF NOT EXISTS conversations (conversation_id VARCHAR(32) NOT NULL,expireAt NUMBERIC,attr BLOB,
      instanceData BLOB,updatedAt VARCHAR(64),createdAt VARCHAR(64),creator TEXT,members TEXT,isTransient INTEGER,
      unread_count INTEGER,readAt NUMBERIC,deliveredAt NUMBERIC,lm NUMBERIC,last_message TEXT,mentioned INTEGER default 0,
      last_msg_iType INTEGER default 0, sys INTEGER default 0, temp INTEGER default 0, temp_ttl NUMBERIC,
      PRIMARY KEY(conversation_id))
      """,
    ],
  ]
}
