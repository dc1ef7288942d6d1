import Foundation
import UnifiedChat

/// Reads what can be read of the outbox of a damaged file.
enum OutboxRescue {
  static func rows(of file: CacheFile) -> [OutboxRow] {
    if let rows = read(file.path) { return rows }
    // The header may be all that is damaged: another one before the same pages, in a copy.
    let copy = CacheFile(path: file.path + ".rescue")
    defer { copy.removeFiles() }
    guard file.copyWithNewHeader(to: copy) else { return [] }
    return read(copy.path) ?? []
  }

  /// nil when nothing at all can be read there.
  private static func read(_ path: String) -> [OutboxRow]? {
    guard let database = try? Database(path: path, mode: .readOnly) else { return nil }
    // Lets SQLite read a file that is shorter than its header says. Nothing is written.
    try? database.execute("PRAGMA writable_schema = ON")
    var rows: [Int64: OutboxRow] = [:]
    var isReadable = false
    // From both ends: a damaged page in the middle hides only itself.
    for direction in ["ASC", "DESC"] {
      do throws(ChatError) {
        try database.query("SELECT \(OutboxRow.columns) FROM outbox ORDER BY turn \(direction)") {
          row throws(ChatError) in
          isReadable = true
          if let entry = try? OutboxRow(row) { rows[entry.turn] = entry }
        }
        isReadable = true
      } catch {
        // Whatever was read before the damage counts; the damage itself is known already.
        continue
      }
    }
    return isReadable ? rows.values.sorted { $0.turn < $1.turn } : nil
  }
}

extension CacheFile {
  /// SQLite's own page size; nothing of ours changes it.
  private static let pageSize = 4096

  /// Writes the file again, with a header as the cache makes it in place of its first 100 bytes, and its log beside it.
  /// - Returns: false when that cannot be done.
  fileprivate func copyWithNewHeader(to copy: CacheFile) -> Bool {
    guard var bytes = FileManager.default.contents(atPath: path), bytes.count >= Self.pageSize else { return false }
    bytes.replaceSubrange(0..<100, with: Self.header(pages: UInt32(clamping: bytes.count / Self.pageSize)))
    // A killed rescue may have left one.
    copy.removeFiles()
    guard Self.write(Array(bytes), to: copy.path) else { return false }
    guard let log = FileManager.default.contents(atPath: path + "-wal") else { return true }
    return Self.write(Array(log), to: copy.path + "-wal")
  }

  /// A new file, its owner's from the first byte; never one that is there already, nor one that a link leads to.
  private static func write(_ bytes: [UInt8], to path: String) -> Bool {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  /// The fields of <https://www.sqlite.org/fileformat2.html#the_database_header>; those that only a writer needs are 0.
  private static func header(pages: UInt32) -> [UInt8] {
    func field(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
    let format: [UInt8] = [UInt8(pageSize >> 8), 0, 2, 2, 0, 64, 32, 32]
    let counters = field(1) + field(pages) + field(0) + field(0)
    let schema = field(1) + field(4) + field(0) + field(0) + field(1) + field(UInt32(CacheMigrations.current))
    return Array("SQLite format 3\0".utf8) + format + counters + schema + [UInt8](repeating: 0, count: 28) + field(1) + field(0)
  }

  fileprivate func removeFiles() {
    for suffix in Self.suffixes { try? FileManager.default.removeItem(atPath: path + suffix) }
  }
}
