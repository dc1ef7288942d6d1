import CSQLite
import Foundation
import UnifiedChat

/// A database from a device, read through a copy of its own: the original is neither written nor locked, and what its
/// `-wal` or `-journal` holds is taken in as the device itself would have done.
///
/// Not for sharing between tasks.
final class LeanCloudDeviceDatabase {
  enum Value: Sendable, Hashable {
    case null
    case integer(Int64)
    case real(Double)
    case text([UInt8])
    case blob([UInt8])
  }

  /// What messages call the file.
  let name: String
  /// Of each table its columns, in the order of the table.
  private(set) var tables: [String: [String]] = [:]
  private var handle: OpaquePointer?
  private let folder: URL
  /// Of one value; a small file can stand for gigabytes of nothing.
  static let valueLimit: Int32 = 64 << 20
  static let header = Array("SQLite format 3\0".utf8)
  private static let companions = ["-wal", "-journal"]

  /// - Throws: `.storage(.corrupt)` for what is damaged, cut off, or does not go with its `-wal`; `.storage(.denied)` for
  ///   a link and for what cannot be read; `.storage(.full)`; `.conflict` if the file changes meanwhile.
  init(path: String, name: String) throws(ChatError) {
    self.name = name
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("unifiedchat-\(UUID().uuidString)")
    do throws(ChatError) {
      let copy = try Self.copy(path, name, to: folder)
      try open(copy)
      try requireWholeLog(copy)
      try requireSound()
      try listTables()
    } catch {
      close()
      throw error
    }
  }

  deinit { close() }

  private func close() {
    sqlite3_close_v2(handle)
    handle = nil
    // A copy that cannot be removed lies in a folder that only its owner may enter.
    try? FileManager.default.removeItem(at: folder)
  }

  // MARK: Finding

  static func isDatabase(_ path: String) -> Bool {
    var information = stat()
    // A pipe would wait for somebody who writes.
    guard stat(path, &information) == 0, information.st_mode & S_IFMT == S_IFREG,
      let file = FileHandle(forReadingAtPath: path)
    else { return false }
    defer { try? file.close() }
    return (try? file.read(upToCount: header.count)).map { Array($0) == header } ?? false
  }

  /// The name of the database beside which a file with this name lies; nil for any other file.
  static func owner(of name: String) -> String? {
    for suffix in companions + ["-shm"] where name.hasSuffix(suffix) { return String(name.dropLast(suffix.count)) }
    return nil
  }

  // MARK: Copying

  private struct State: Equatable {
    var size: Int64
    var seconds: Int
    var isRegular: Bool
    var isLink: Bool

    /// nil: nothing is there.
    init?(_ path: String) {
      var information = stat()
      guard lstat(path, &information) == 0 else { return nil }
      size = Int64(information.st_size)
      #if canImport(Darwin)
        seconds = information.st_mtimespec.tv_sec
      #else
        seconds = information.st_mtim.tv_sec
      #endif
      isRegular = information.st_mode & S_IFMT == S_IFREG
      isLink = information.st_mode & S_IFMT == S_IFLNK
    }
  }

  private static func copy(_ path: String, _ name: String, to folder: URL) throws(ChatError) -> String {
    let files = [""] + companions.filter { State(path + $0) != nil }
    let before = files.map { State(path + $0) }
    for (suffix, state) in zip(files, before) where state?.isRegular != true {
      let what = state?.isLink == true ? "is a symbolic link; name the file itself" : "is no regular file"
      throw failure(.denied, "\(name)\(suffix): \(what)")
    }
    let target = folder.appendingPathComponent("database").path
    do {
      try FileManager.default.createDirectory(
        at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      for suffix in files {
        try FileManager.default.copyItem(atPath: path + suffix, toPath: target + suffix)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: target + suffix)
      }
    } catch {
      let isFull = (error as? CocoaError)?.code == .fileWriteOutOfSpace
      throw failure(
        isFull ? .full : .denied,
        "\(name): cannot be copied into the temporary folder; check that it may be read and that there is room"
      )
    }
    guard files.map({ State(path + $0) }) == before, companions.filter({ State(path + $0) != nil }).count == files.count - 1
    else {
      throw ChatError(
        .conflict, operation: .readSource,
        detail: "\(name): changes while it is read; end what writes to it and run the command again")
    }
    return target
  }

  // MARK: Opening

  private func open(_ path: String) throws(ChatError) {
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    let code = sqlite3_open_v2(path, &handle, flags, nil)
    guard code == SQLITE_OK else { throw failure(code) }
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, Self.valueLimit)
    // A file from elsewhere must not run code of its own.
    _ = csqlite_set_defensive(handle, 1)
    for pragma in ["trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"] {
      let code = sqlite3_exec(handle, "PRAGMA \(pragma)", nil, nil, nil)
      guard code == SQLITE_OK else { throw failure(code) }
    }
  }

  /// SQLite takes a log that it cannot use for an empty one, and the newest messages would be gone without a word.
  private func requireWholeLog(_ path: String) throws(ChatError) {
    guard let log = State(path + "-wal"), log.size > 0 else { return }
    // The log is opened with the first reading, not with the file.
    _ = try rows("SELECT count(*) FROM sqlite_master") { _ in true }
    let frames = try rows("PRAGMA wal_checkpoint(PASSIVE)") { $0.integer(1) }.first.flatMap(\.self) ?? -1
    guard frames > 0 else {
      throw Self.failure(
        .corrupt,
        "\(name)-wal: holds \(log.size) bytes that do not go with \(name); take both from the device once more, or move "
          + "the -wal away to read what there is without it")
    }
  }

  private func requireSound() throws(ChatError) {
    let found = try rows("PRAGMA quick_check(1)") { $0.string(0) }.first.flatMap(\.self) ?? "no answer"
    guard found == "ok" else { throw failure(SQLITE_CORRUPT) }
  }

  /// Tables as such, no views and no virtual ones; columns as such, no computed ones.
  private func listTables() throws(ChatError) {
    let names = try rows(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' LIMIT 1000"
    ) { $0.string(0) }
    for name in names.compactMap(\.self) {
      tables[name] = try rows("PRAGMA table_xinfo(\(Self.quoted(name)))") { $0.integer(6) == 0 ? $0.string(1) : nil }
        .compactMap(\.self)
    }
  }

  // MARK: Reading

  /// One row of a query.
  struct Row {
    fileprivate var statement: OpaquePointer

    func value(_ column: Int32) -> Value {
      switch sqlite3_column_type(statement, column) {
      case SQLITE_INTEGER: return .integer(sqlite3_column_int64(statement, column))
      case SQLITE_FLOAT: return .real(sqlite3_column_double(statement, column))
      case SQLITE_TEXT:
        guard let start = sqlite3_column_text(statement, column) else { return .text([]) }
        return .text(Array(UnsafeBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column)))))
      case SQLITE_BLOB:
        guard let start = sqlite3_column_blob(statement, column) else { return .blob([]) }
        return .blob(Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column)))))
      default: return .null
      }
    }

    fileprivate func integer(_ column: Int32) -> Int64? {
      if case .integer(let number) = value(column) { number } else { nil }
    }

    fileprivate func string(_ column: Int32) -> String? {
      if case .text(let bytes) = value(column) { String(validating: bytes, as: UTF8.self) } else { nil }
    }
  }

  /// Every row of a table, with the values of those of `columns` that the table has.
  func read(
    _ table: String, columns: [String], orderedBy order: [String] = [],
    _ body: ([String: Value]) throws(ChatError) -> Void
  ) throws(ChatError) {
    let present = columns.filter { tables[table]?.contains($0) == true }
    guard !present.isEmpty else { return }
    let sorting = order.filter { present.contains($0) }.map(Self.quoted)
    let sql =
      "SELECT \(present.map(Self.quoted).joined(separator: ", ")) FROM main.\(Self.quoted(table))"
      + (sorting.isEmpty ? "" : " ORDER BY \(sorting.joined(separator: ", "))")
    _ = try rows(sql) { row throws(ChatError) in
      var values: [String: Value] = [:]
      for (index, column) in present.enumerated() { values[column] = row.value(Int32(index)) }
      try body(values)
    }
  }

  private static func quoted(_ name: String) -> String {
    "\"\(name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\""))\""
  }

  private func rows<Result>(
    _ sql: String, _ read: (Row) throws(ChatError) -> Result
  ) throws(ChatError) -> [Result] {
    var statement: OpaquePointer?
    let code = sqlite3_prepare_v2(handle, sql, -1, &statement, nil)
    guard code == SQLITE_OK, let statement else { throw failure(code) }
    defer { sqlite3_finalize(statement) }
    var result: [Result] = []
    while true {
      let code = sqlite3_step(statement)
      if code == SQLITE_DONE { return result }
      guard code == SQLITE_ROW else { throw failure(code) }
      result.append(try read(Row(statement: statement)))
    }
  }

  // MARK: Errors

  private func failure(_ code: Int32) -> ChatError {
    switch code & 0xFF {
    case SQLITE_CORRUPT, SQLITE_NOTADB:
      Self.failure(
        .corrupt,
        "\(name): is damaged or cut off; take it from the device once more, or recover what is left (sqlite3 FILE .recover)")
    case SQLITE_TOOBIG:
      Self.failure(.corrupt, "\(name): holds a value of more than \(Self.valueLimit >> 20) MiB, which no message is")
    case SQLITE_FULL: Self.failure(.full, "\(name): there is no room for a copy in the temporary folder")
    default:
      Self.failure(.other, "\(name): SQLite says \(handle.map { String(cString: sqlite3_errmsg($0)) } ?? "error \(code)")")
    }
  }

  private static func failure(_ reason: ChatError.StorageReason, _ detail: String) -> ChatError {
    ChatError(.storage(reason), operation: .readSource, detail: detail)
  }
}
