import CSQLite
import Foundation
import UnifiedChat

/// A value of a column.
enum SQLValue: Sendable {
  case null
  case integer(Int64)
  case text(String)
  case blob([UInt8])

  static func text(_ value: String?) -> SQLValue { value.map { .text($0) } ?? .null }
  static func integer(_ value: Int) -> SQLValue { .integer(Int64(value)) }
  static func integer(_ value: Int64?) -> SQLValue { value.map { .integer($0) } ?? .null }
}

/// One SQLite connection. Not for sharing: an actor owns it, and its calls are serialised there.
final class Database {
  enum Mode { case readWrite, readOnly }

  private var handle: OpaquePointer?
  private var statements: [String: OpaquePointer] = [:]
  let path: String
  private let operation: ChatError.Operation

  /// Opens what is there already, or SQLite's own private temporary database when `path` is "".
  init(path: String, mode: Mode, operation: ChatError.Operation) throws(ChatError) {
    self.path = path
    self.operation = operation
    if mode != .readOnly { try PrivateFile.refuseLink(path, operation: operation) }
    try PrivateFile.refuseFolder(path, operation: operation)
    let flags =
      (mode == .readOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | (path.isEmpty ? SQLITE_OPEN_CREATE : 0))
      | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    let code = sqlite3_open_v2(path, &handle, flags, nil)
    guard code == SQLITE_OK else {
      let error = failure(code)
      sqlite3_close_v2(handle)
      handle = nil
      throw error
    }
    sqlite3_busy_timeout(handle, 5000)
    // A file from elsewhere must not run code of its own: no writing to internal tables, no functions from its schema.
    _ = csqlite_set_defensive(handle, 1)
    try execute("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA foreign_keys = ON")
  }

  deinit { close() }

  func close() {
    for statement in statements.values { sqlite3_finalize(statement) }
    statements = [:]
    sqlite3_close_v2(handle)
    handle = nil
  }

  // MARK: Statements

  /// Runs SQL of our own without values, several statements at once.
  func execute(_ sql: String) throws(ChatError) {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw failure(code) }
  }

  /// Runs one statement that gives no rows.
  func run(_ sql: String, _ values: SQLValue...) throws(ChatError) {
    let statement = try prepared(sql, values)
    defer { sqlite3_reset(statement) }
    let code = sqlite3_step(statement)
    guard code == SQLITE_DONE || code == SQLITE_ROW else { throw failure(code) }
  }

  /// Rows that the last insert, update or delete touched.
  var changes: Int { Int(sqlite3_changes(handle)) }

  func rows<Value>(
    _ sql: String, _ values: SQLValue..., read: (Row) throws(ChatError) -> Value
  ) throws(ChatError) -> [Value] {
    let statement = try prepared(sql, values)
    defer { sqlite3_reset(statement) }
    var result: [Value] = []
    while true {
      let code = sqlite3_step(statement)
      if code == SQLITE_DONE { return result }
      guard code == SQLITE_ROW else { throw failure(code) }
      result.append(try read(Row(statement: statement)))
    }
  }

  func first<Value>(
    _ sql: String, _ values: SQLValue..., read: (Row) throws(ChatError) -> Value
  ) throws(ChatError) -> Value? {
    let statement = try prepared(sql, values)
    defer { sqlite3_reset(statement) }
    let code = sqlite3_step(statement)
    if code == SQLITE_DONE { return nil }
    guard code == SQLITE_ROW else { throw failure(code) }
    return try read(Row(statement: statement))
  }

  func count(_ sql: String, _ values: SQLValue...) throws(ChatError) -> Int {
    let statement = try prepared(sql, values)
    defer { sqlite3_reset(statement) }
    let code = sqlite3_step(statement)
    guard code == SQLITE_ROW || code == SQLITE_DONE else { throw failure(code) }
    return code == SQLITE_ROW ? Int(Row(statement: statement).integer(0)) : 0
  }

  /// Looks through the whole file, which takes about a second a gigabyte.
  /// - Throws: `.storage(.corrupt)` with the `mend` for a damaged one.
  func checkPages(mend: String) throws(ChatError) {
    let findings = try rows("PRAGMA quick_check(1)") { row in row.text(0) }
    guard findings == ["ok"] else {
      throw ChatError(.storage(.corrupt), operation: operation, detail: "\(path): damaged; \(mend)")
    }
  }

  /// All of `body`, or nothing of it.
  func transaction<Value>(_ body: () throws(ChatError) -> Value) throws(ChatError) -> Value {
    try execute("BEGIN IMMEDIATE")
    do {
      let value = try body()
      try execute("COMMIT")
      return value
    } catch {
      // Where SQLite has rolled back by itself (a full disk), there is nothing left to undo.
      sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
      throw error
    }
  }

  private func prepared(_ sql: String, _ values: [SQLValue]) throws(ChatError) -> OpaquePointer {
    // Not `??`, whose right side may throw anything.
    let statement = if let known = statements[sql] { known } else { try prepare(sql) }
    for (index, value) in values.enumerated() {
      let code = bind(value, at: Int32(index + 1), of: statement)
      guard code == SQLITE_OK else { throw failure(code) }
    }
    return statement
  }

  private func prepare(_ sql: String) throws(ChatError) -> OpaquePointer {
    guard handle != nil else {
      throw ChatError(.storage(.other), operation: operation, detail: "\(path) is closed")
    }
    var statement: OpaquePointer?
    let code = sqlite3_prepare_v2(handle, sql, -1, &statement, nil)
    guard code == SQLITE_OK, let statement else { throw failure(code) }
    statements[sql] = statement
    return statement
  }

  private func bind(_ value: SQLValue, at index: Int32, of statement: OpaquePointer) -> Int32 {
    switch value {
    case .null: return sqlite3_bind_null(statement, index)
    case .integer(let number): return sqlite3_bind_int64(statement, index, number)
    case .text(var text):
      return text.withUTF8 { bytes in
        // A nil pointer would bind NULL in place of the empty text.
        guard let start = bytes.baseAddress else { return csqlite_bind_text(statement, index, "", 0) }
        return start.withMemoryRebound(to: CChar.self, capacity: bytes.count) {
          csqlite_bind_text(statement, index, $0, Int32(clamping: bytes.count))
        }
      }
    case .blob(let bytes): return csqlite_bind_blob(statement, index, bytes, Int32(clamping: bytes.count))
    }
  }

  // MARK: Errors

  /// What SQLite's code means to whoever must act, with the path and the mend.
  private func failure(_ code: Int32) -> ChatError {
    let system = handle.map { sqlite3_system_errno($0) } ?? 0
    let (reason, mend): (ChatError.StorageReason, String) =
      switch code & 0xFF {
      case SQLITE_FULL: (.full, "no space left; free some and run the same command again")
      case SQLITE_CORRUPT, SQLITE_NOTADB: (.corrupt, "damaged or truncated; take a copy that verifies")
      case SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_READONLY, SQLITE_AUTH:
        (.denied, "cannot be opened; check that it exists and may be read and written")
      case SQLITE_BUSY, SQLITE_LOCKED: (.busy, "in use by another process")
      case SQLITE_IOERR where [ENOSPC, EFBIG, EDQUOT].contains(system):
        (.full, "no space left; free some and run the same command again")
      default: (.other, "SQLite says \(handle.map { String(cString: sqlite3_errmsg($0)) } ?? "error \(code)")")
      }
    return ChatError(.storage(reason), operation: operation, detail: "\(path): \(mend)")
  }
}

/// The row that a statement stands on; valid within the closure that gets it.
struct Row {
  fileprivate let statement: OpaquePointer

  fileprivate init(statement: OpaquePointer) { self.statement = statement }

  func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }

  func optionalInteger(_ column: Int32) -> Int64? {
    sqlite3_column_type(statement, column) == SQLITE_NULL ? nil : integer(column)
  }

  func text(_ column: Int32) -> String { optionalText(column) ?? "" }

  /// Ill-formed UTF-8 of a damaged file is repaired, not trusted.
  func optionalText(_ column: Int32) -> String? {
    guard let start = sqlite3_column_text(statement, column) else { return nil }
    let count = Int(sqlite3_column_bytes(statement, column))
    return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  }
}
