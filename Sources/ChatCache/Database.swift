import CSQLite
import UnifiedChat

/// A value that goes into a column.
enum SQLValue {
  case null
  case int(Int64)
  case text(String)
  case blob([UInt8])

  init(_ text: String?) { self = text.map { .text($0) } ?? .null }
  init(_ number: Int64?) { self = number.map { .int($0) } ?? .null }
  init(_ flag: Bool) { self = .int(flag ? 1 : 0) }
}

/// One SQLite connection. Used by one thread at a time: `LocalCache` holds it under a lock, hence unchecked.
final class Database: @unchecked Sendable {
  let path: String
  private let handle: OpaquePointer
  private var statements: [String: OpaquePointer] = [:]
  private var isInTransaction = false
  /// Something was taken out whose bytes may still lie in the log and in the search index.
  var hasErased = false
  /// What SQLite is made to answer in place of beginning or ending a transaction; nil: it is asked. For tests.
  var injected: ((_ sql: String) -> Int32?)?
  /// Called after each statement, with a way to run further ones. For tests.
  typealias Observer = (_ run: (String) throws(ChatError) -> Void) -> Void
  var observer: Observer?

  /// How long another process may hold the lock before a call of ours gives up, in milliseconds.
  static let patience: Int32 = 10_000
  /// Tries of a whole transaction, each with that patience.
  private static let busyTries = 6

  enum Mode { case create, readOnly }

  init(path: String, mode: Mode) throws(ChatError) {
    var opened: OpaquePointer?
    var flags = SQLITE_OPEN_NOMUTEX
    switch mode {
    case .create: flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
    case .readOnly: flags |= SQLITE_OPEN_READONLY
    }
    let code = sqlite3_open_v2(path, &opened, flags, nil)
    guard code == SQLITE_OK, let opened else {
      let error = StorageFault(code: code, database: opened).error(path: path)
      sqlite3_close_v2(opened)
      throw error
    }
    self.path = path
    handle = opened
    sqlite3_extended_result_codes(handle, 1)
    sqlite3_busy_timeout(handle, Self.patience)
  }

  deinit {
    for statement in statements.values { sqlite3_finalize(statement) }
    sqlite3_close_v2(handle)
  }

  func setUp() throws(ChatError) {
    // Erased rows are overwritten, so that what was recalled is gone from the disk as well.
    try execute(
      """
      PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;
      PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000;
      PRAGMA trusted_schema = OFF;
      """)
    csqlite_set_defensive(handle, 1)
  }

  /// Brings everything from the log into the file and cuts the log to nothing.
  /// - Returns: false when another connection was in the middle of reading or writing; it is not waited for long.
  @discardableResult
  func emptyLog() throws(ChatError) -> Bool {
    sqlite3_busy_timeout(handle, 200)
    defer { sqlite3_busy_timeout(handle, Self.patience) }
    let busy = try first("PRAGMA wal_checkpoint(TRUNCATE)") { row throws(ChatError) in row.flag(0) }
    return busy == false
  }

  /// Runs statements that give no rows, separated by semicolons.
  func execute(_ sql: String) throws(ChatError) {
    guard observer != nil else { return try executeAll(sql) }
    try sql.utf8CString.withUnsafeBufferPointer { text throws(ChatError) in
      var rest = text.baseAddress
      while let start = rest, start.pointee != 0 {
        guard try executeFirst(start, &rest) else { continue }
        observer?(executeAll)
      }
    }
  }

  /// - Parameter rest: what comes behind the statement.
  /// - Returns: false where only space and comments are left.
  private func executeFirst(_ sql: UnsafePointer<CChar>, _ rest: inout UnsafePointer<CChar>?) throws(ChatError) -> Bool {
    var statement: OpaquePointer?
    let code = sqlite3_prepare_v2(handle, sql, -1, &statement, &rest)
    guard code == SQLITE_OK else { throw failure(code) }
    guard let statement else { return false }
    defer { sqlite3_finalize(statement) }
    while try step(statement) {}
    return true
  }

  private func executeAll(_ sql: String) throws(ChatError) {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw failure(code) }
  }

  /// Runs one statement and returns how many rows it changed.
  @discardableResult
  func run(_ sql: String, _ values: [SQLValue] = []) throws(ChatError) -> Int {
    try query(sql, values) { _ throws(ChatError) in }
    return Int(sqlite3_changes(handle))
  }

  /// Calls `body` for each row; the row is valid during the call only.
  func query(
    _ sql: String, _ values: [SQLValue] = [], _ body: (Row) throws(ChatError) -> Void
  ) throws(ChatError) {
    let statement = try prepare(sql)
    do {
      defer { rest(statement) }
      try bind(values, to: statement)
      while try step(statement) { try body(Row(statement: statement)) }
    }
    observer?(executeAll)
  }

  /// The first row, mapped; nil when there is none.
  func first<Value>(
    _ sql: String, _ values: [SQLValue] = [], _ body: (Row) throws(ChatError) -> Value
  ) throws(ChatError) -> Value? {
    let statement = try prepare(sql)
    defer { rest(statement) }
    try bind(values, to: statement)
    return try step(statement) ? try body(Row(statement: statement)) : nil
  }

  func all<Value>(
    _ sql: String, _ values: [SQLValue] = [], _ body: (Row) throws(ChatError) -> Value
  ) throws(ChatError) -> [Value] {
    var result: [Value] = []
    try query(sql, values) { row throws(ChatError) in result.append(try body(row)) }
    return result
  }

  var lastInsertedRow: Int64 { sqlite3_last_insert_rowid(handle) }

  /// Begins IMMEDIATE, because a transaction that starts with a read and then writes may be refused at once,
  /// whatever the busy time-out. Nested calls join the outer one.
  func transaction<Value>(_ body: () throws(ChatError) -> Value) throws(ChatError) -> Value {
    if isInTransaction { return try body() }
    try patiently("BEGIN IMMEDIATE")
    isInTransaction = true
    defer { isInTransaction = false }
    do throws(ChatError) {
      let value = try body()
      try patiently("COMMIT")
      return value
    } catch {
      // Some failures have rolled back already; a second rollback is refused and that is fine.
      sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
      throw error
    }
  }

  /// Sees the file as it is at the first statement, whatever other connections write meanwhile. The first statement
  /// can find the file locked for a moment, when another process opens or closes it: then all of `body` runs again.
  func reading<Value>(_ body: () throws(ChatError) -> Value) throws(ChatError) -> Value {
    if isInTransaction { return try body() }
    var attempts = 1
    while true {
      do throws(ChatError) { return try readOnce(body) } catch {
        guard error.kind == .storage(.busy), attempts < Self.busyTries else { throw error }
        attempts += 1
      }
    }
  }

  private func readOnce<Value>(_ body: () throws(ChatError) -> Value) throws(ChatError) -> Value {
    try patiently("BEGIN")
    isInTransaction = true
    defer {
      isInTransaction = false
      // Nothing was written; this gives the snapshot back.
      sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
    }
    return try body()
  }

  /// "Busy" is waited for, so that no caller ever sees it short of a minute.
  private func patiently(_ sql: String) throws(ChatError) {
    for attempt in 1... {
      let code = injected?(sql) ?? sqlite3_exec(handle, sql, nil, nil, nil)
      if code == SQLITE_OK { return }
      let isBusy = code & 0xFF == SQLITE_BUSY || code & 0xFF == SQLITE_LOCKED
      guard isBusy, attempt < Self.busyTries else { throw failure(code) }
    }
  }

  private func prepare(_ sql: String) throws(ChatError) -> OpaquePointer {
    if let known = statements[sql] { return known }
    var statement: OpaquePointer?
    let code = sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
    guard code == SQLITE_OK, let statement else { throw failure(code) }
    statements[sql] = statement
    return statement
  }

  private func step(_ statement: OpaquePointer) throws(ChatError) -> Bool {
    switch sqlite3_step(statement) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let code: throw failure(code)
    }
  }

  private func rest(_ statement: OpaquePointer) {
    sqlite3_reset(statement)
    sqlite3_clear_bindings(statement)
  }

  private func bind(_ values: [SQLValue], to statement: OpaquePointer) throws(ChatError) {
    for (place, value) in values.enumerated() {
      let code = bind(value, to: Int32(place + 1), of: statement)
      guard code == SQLITE_OK else { throw failure(code) }
    }
  }

  private func bind(_ value: SQLValue, to index: Int32, of statement: OpaquePointer) -> Int32 {
    switch value {
    case .null: return sqlite3_bind_null(statement, index)
    case .int(let number): return sqlite3_bind_int64(statement, index, number)
    case .text(var text):
      return text.withUTF8 { bytes in
        guard let start = bytes.baseAddress else { return csqlite_bind_text(statement, index, "", 0) }
        return start.withMemoryRebound(to: CChar.self, capacity: bytes.count) {
          csqlite_bind_text(statement, index, $0, Int32(clamping: bytes.count))
        }
      }
    case .blob(let bytes):
      // An empty array may have no base address, and a NULL pointer would bind NULL.
      guard !bytes.isEmpty else { return sqlite3_bind_zeroblob(statement, index, 0) }
      return bytes.withUnsafeBytes {
        csqlite_bind_blob(statement, index, $0.baseAddress, Int32(clamping: $0.count))
      }
    }
  }

  private func failure(_ code: Int32) -> ChatError { StorageFault(code: code, database: handle).error(path: path) }
}

/// One row of a running query. Columns are counted from 0.
struct Row {
  fileprivate let statement: OpaquePointer

  func int(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }
  func flag(_ column: Int32) -> Bool { sqlite3_column_int64(statement, column) != 0 }
  func optionalInt(_ column: Int32) -> Int64? { isNull(column) ? nil : int(column) }
  func text(_ column: Int32) -> String { String(decoding: bytes(column), as: UTF8.self) }
  func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }

  func bytes(_ column: Int32) -> [UInt8] {
    // The pointer before the count: the first call may convert the value.
    guard let start = sqlite3_column_blob(statement, column) else { return [] }
    let count = Int(sqlite3_column_bytes(statement, column))
    return Array(UnsafeRawBufferPointer(start: start, count: count))
  }

  func isNull(_ column: Int32) -> Bool { sqlite3_column_type(statement, column) == SQLITE_NULL }
}
