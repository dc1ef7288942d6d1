import ChatCrypto
import ChatJSON
import Foundation
import UnifiedChat

/// Everything that a source gave, in one file (`Schemas/archive.sql`) with the bytes of attachments beside it.
///
/// One process writes at a time. Whatever stops the process, the file holds whole pages with the cursors that belong
/// to them, and the next run goes on from there.
public actor Archive {
  /// Where the file is.
  public nonisolated let path: String
  /// The bytes of attachments.
  public nonisolated let files: FileStore
  let database: Database
  private var isClosed = false

  /// The version of the form that this program writes, and the newest that it reads.
  public static let formatVersion = Int(ArchiveSchema.version)

  /// Who made the archive, and from what.
  public struct Identity: Sendable, Hashable {
    /// Random, so that a ledger knows which archive it belongs to.
    public var id: String
    /// Name and version of the program that made it.
    public var tool: String
    public var vendor: VendorName
    /// The app's id at the vendor.
    public var app: String?
    public var createdAt: Timestamp
    /// nil while the reading is not complete.
    public var completedAt: Timestamp?

    public init(
      id: String? = nil, tool: String = "unifiedchat", vendor: VendorName, app: String? = nil, createdAt: Timestamp
    ) {
      var random = SystemRandomNumberGenerator()
      self.id = id ?? Hex.encode((0..<16).map { _ in UInt8.random(in: 0...255, using: &random) })
      self.tool = tool
      self.vendor = vendor
      self.app = app
      self.createdAt = createdAt
    }
  }

  private init(path: String, database: sending Database) {
    self.path = path
    files = FileStore(folder: path + ".files")
    self.database = database
  }

  /// A new, empty archive, readable by its owner alone.
  /// - Throws: `.conflict` if something is at `path`; `.storage`.
  public static func create(at path: String, _ identity: Identity) throws(ChatError) -> Archive {
    try PrivateFile.create(path, operation: .archive)
    let database = try Database(path: path, mode: .readWrite, operation: .archive)
    try database.transaction { () throws(ChatError) in
      try database.execute(ArchiveSchema.sql)
      for (key, value) in [
        ("id", identity.id), ("tool", identity.tool), ("vendor", identity.vendor.rawValue), ("app", identity.app),
        ("created_at", "\(identity.createdAt.milliseconds)"),
      ] {
        if let value { try database.run("INSERT INTO manifest VALUES (?, ?)", .text(key), .text(value)) }
      }
    }
    try database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
    return Archive(path: path, database: database)
  }

  /// An archive that is there.
  /// - Parameter checks: whether SQLite looks through the whole file for damage first, which takes about a second a
  ///   gigabyte.
  /// - Throws: `.storage(.denied)`; `.storage(.corrupt)` for what is no archive, or a damaged or truncated one;
  ///   `.storage(.newerVersion)`.
  public static func open(at path: String, checks: Bool = true) throws(ChatError) -> Archive {
    try checkHeader(path)
    let mode: Database.Mode = access(path, W_OK) == 0 ? .readWrite : .readOnly
    let database = try Database(path: path, mode: mode, operation: .archive)
    let version = try check(database, path: path)
    if checks { try database.checkPages(mend: "take a copy that verifies") }
    if mode == .readWrite {
      try database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
      if version < formatVersion { try upgrade(database) }
    }
    return Archive(path: path, database: database)
  }

  /// Opens the archive at `path`, or creates it if nothing is there, or only what a killed creation left.
  public static func openOrCreate(at path: String, _ identity: Identity) throws(ChatError) -> Archive {
    try PrivateFile.requireReplaceable(path, operation: .archive)
    if let size = PrivateFile.size(path), size > 0 { return try open(at: path) }
    // Another one that is about to create it must not lose its file.
    let lock = try ProcessLock(path + ".lock", operation: .archive)
    defer { lock.release(removesFile: true) }
    if PrivateFile.size(path) == 0 { unlink(path) }
    guard PrivateFile.exists(path) else { return try create(at: path, identity) }
    return try open(at: path)
  }

  /// Brings everything into the one file and lets go of it. Later calls throw.
  public func close() throws(ChatError) {
    guard !isClosed else { return }
    isClosed = true
    if access(path, W_OK) == 0 {
      do throws(ChatError) {
        try database.execute("PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)")
        try database.execute("PRAGMA journal_mode = DELETE")
      } catch where error.kind == .storage(.busy) {
        // Another process has the archive open, and does this when it closes.
      }
    }
    database.close()
  }

  /// - Throws: `.invalidArgument(field: "vendor")` for an archive of another vendor or app.
  public func require(vendor: VendorName, app: String?) throws(ChatError) {
    let own = try identity()
    guard own.vendor == vendor, app == nil || own.app == nil || own.app == app else {
      throw ChatError(
        .invalidArgument(field: "vendor"), operation: .archive,
        detail: "\(path) holds \(own.vendor) \(own.app ?? ""), not \(vendor) \(app ?? ""); name another archive")
    }
  }

  public func identity() throws(ChatError) -> Identity {
    let vendor = VendorName(try manifestValue("vendor") ?? "")
    let created = try manifestValue("created_at").flatMap { Int64($0) } ?? 0
    var identity = Identity(
      id: try manifestValue("id"), tool: try manifestValue("tool") ?? "", vendor: vendor,
      app: try manifestValue("app"), createdAt: Timestamp(milliseconds: created))
    identity.completedAt = try manifestValue("completed_at").flatMap { Int64($0) }.map { Timestamp(milliseconds: $0) }
    return identity
  }

  func manifestValue(_ key: String) throws(ChatError) -> String? {
    try database.first("SELECT value FROM manifest WHERE key = ?", .text(key)) { row in row.text(0) }
  }

  func setManifest(_ key: String, _ value: String?) throws(ChatError) {
    guard let value else { return try database.run("DELETE FROM manifest WHERE key = ?", .text(key)) }
    try database.run(
      "INSERT INTO manifest VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", .text(key),
      .text(value))
  }

  /// Lets the file grow to `pages` pages at most: how a full disk is tried.
  func limitPages(_ pages: Int) throws(ChatError) { try database.execute("PRAGMA max_page_count = \(pages)") }
}

// MARK: What is an archive

extension Archive {
  private static func checkHeader(_ path: String) throws(ChatError) {
    let header = Array(try PrivateFile.prefix(path, count: 100, operation: .archive))
    let magic = Array("SQLite format 3\0".utf8)
    guard header.count == 100, header.starts(with: magic) else {
      throw ChatError(
        .storage(.corrupt), operation: .archive, detail: "\(path): not an archive (no SQLite file); name another path")
    }
    let written = Int64(header[16]) << 8 | Int64(header[17])
    let pageSize = written == 1 ? 65536 : written
    let pages = header[28..<32].reduce(Int64(0)) { $0 << 8 | Int64($1) }
    // The page count in the header holds only while no WAL stands beside the file.
    guard let size = PrivateFile.size(path), size >= pages &* pageSize || PrivateFile.exists(path + "-wal") else {
      throw ChatError(
        .storage(.corrupt), operation: .archive,
        detail: "\(path): truncated (\(pages &* pageSize) bytes expected); take a copy that verifies")
    }
  }

  /// Returns the version of its form.
  private static func check(_ database: Database, path: String) throws(ChatError) -> Int {
    let application = try database.count("PRAGMA application_id")
    guard application == Int(ArchiveSchema.applicationID) else {
      throw ChatError(.storage(.corrupt), operation: .archive, detail: "\(path): not an archive (other SQLite file); name another path")
    }
    let version = try database.count("PRAGMA user_version")
    guard version <= Archive.formatVersion else {
      throw ChatError(
        .storage(.newerVersion), operation: .archive,
        detail: "\(path): made by a newer program (form \(version), this one reads up to \(Archive.formatVersion)); use that one")
    }
    return version
  }

  /// All or nothing, so that a killed upgrade is done again.
  private static func upgrade(_ database: Database) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      // Another process may have been faster.
      let version = try database.count("PRAGMA user_version")
      guard version < formatVersion else { return }
      try database.execute(ArchiveSchema.upgrade(from: version))
      try database.execute("PRAGMA user_version = \(ArchiveSchema.version)")
    }
  }
}
