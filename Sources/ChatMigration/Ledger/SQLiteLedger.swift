import Foundation
import UnifiedChat

/// A ledger in one SQLite file, for one process at a time.
///
/// A lock that ends with the process keeps a second run out; leases of a run that was killed are void.
public actor SQLiteLedger: Ledger {
  public nonisolated let path: String
  let database: Database
  private let lock: ProcessLock

  static let applicationID: Int64 = 1_430_473_842  // "UCLr"
  static let version: Int64 = 1

  /// - Throws: `.storage(.busy)` while another run uses it; `.storage` for what is no ledger.
  public init(at path: String) throws(ChatError) {
    lock = try ProcessLock(path + ".lock")
    self.path = path
    if !PrivateFile.exists(path) { try PrivateFile.create(path, operation: .writeDestination) }
    let database = try Database(path: path, mode: .readWrite, operation: .writeDestination)
    try Self.prepare(database, path: path)
    self.database = database
  }

  private static func prepare(_ database: Database, path: String) throws(ChatError) {
    if try database.count("SELECT count(*) FROM sqlite_master") == 0 {
      try database.transaction { () throws(ChatError) in try database.execute(schema) }
    }
    guard try database.count("PRAGMA application_id") == Int(applicationID),
      try database.count("PRAGMA user_version") <= Int(version)
    else {
      throw ChatError(
        .storage(.corrupt), operation: .writeDestination,
        detail: "\(path): not a ledger of this program; name another path")
    }
    try database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
    try database.run("UPDATE channels SET owner = NULL")
  }

  /// Brings everything into the one file. Later calls throw.
  public func close() throws(ChatError) {
    try database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    try database.execute("PRAGMA journal_mode = DELETE")
    database.close()
    lock.release()
  }

  private static let schema = """
    PRAGMA application_id = \(applicationID);
    PRAGMA user_version = \(version);
    CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE users (original TEXT PRIMARY KEY, destination TEXT NOT NULL UNIQUE) WITHOUT ROWID;
    CREATE TABLE channels (
      channel INTEGER PRIMARY KEY,
      state TEXT NOT NULL,
      destination TEXT UNIQUE,
      is_group INTEGER NOT NULL DEFAULT 0,
      watermark INTEGER NOT NULL DEFAULT 0,
      owner TEXT
    );
    CREATE TABLE messages (
      channel INTEGER NOT NULL,
      original TEXT NOT NULL,
      destination TEXT NOT NULL,
      PRIMARY KEY (channel, original)
    ) WITHOUT ROWID;
    CREATE INDEX messages_by_destination ON messages (channel, destination);
    CREATE TABLE losses (
      number INTEGER PRIMARY KEY,
      field TEXT NOT NULL,
      treatment TEXT NOT NULL,
      explanation TEXT NOT NULL,
      count INTEGER NOT NULL,
      UNIQUE (field, treatment, explanation)
    );
    CREATE TABLE loss_examples (loss INTEGER NOT NULL, id TEXT NOT NULL, PRIMARY KEY (loss, id)) WITHOUT ROWID;
    CREATE TABLE exceptions (
      number INTEGER PRIMARY KEY,
      kind TEXT NOT NULL,
      outcome TEXT NOT NULL,
      channel INTEGER NOT NULL,
      id TEXT NOT NULL,
      reason TEXT NOT NULL,
      UNIQUE (kind, channel, id)
    );
    """

  // MARK: Run

  public func bind(archive: String, vendor: VendorName, destination: VendorName) throws(ChatError) {
    for (key, value) in [
      ("archive", archive), ("vendor", vendor.rawValue), ("destination", destination.rawValue),
    ] {
      try database.run("INSERT OR IGNORE INTO run VALUES (?, ?)", .text(key), .text(value))
      guard try runValue(key)?.utf8.elementsEqual(value.utf8) == true else {
        throw ChatError(
          .conflict, operation: .writeDestination,
          detail: "\(path) belongs to \(key) \(try runValue(key) ?? ""), not \(value); name another ledger")
      }
    }
  }

  func runValue(_ key: String) throws(ChatError) -> String? {
    try database.first("SELECT value FROM run WHERE key = ?", .text(key)) { row in row.text(0) }
  }

  private func setRun(_ key: String, _ value: String) throws(ChatError) {
    try database.run("INSERT OR REPLACE INTO run VALUES (?, ?)", .text(key), .text(value))
  }

  // MARK: Users

  public func userWatermark() throws(ChatError) -> Int64 { Int64(try runValue("users") ?? "") ?? 0 }

  public func destinations(of users: [UserID]) throws(ChatError) -> [UserID: UserID] {
    var found: [UserID: UserID] = [:]
    for user in users where found[user] == nil { found[user] = try destination(of: user) }
    return found
  }

  private func destination(of user: UserID) throws(ChatError) -> UserID? {
    try database.first("SELECT destination FROM users WHERE original = ?", .text(user.rawValue)) { row in
      UserID(row.text(0))
    }
  }

  public func assign(_ user: UserID, oneOf candidates: [UserID]) throws(ChatError) -> UserID {
    if let known = try destination(of: user) { return known }
    for candidate in candidates {
      try database.run(
        "INSERT OR IGNORE INTO users VALUES (?, ?)", .text(user.rawValue), .text(candidate.rawValue))
      if database.changes == 1 { return candidate }
    }
    throw ChatError(
      .conflict, operation: .writeDestination, detail: "every id tried for user \(user) belongs to another user")
  }

  public func reassign(_ user: UserID, to destination: UserID) throws(ChatError) {
    if let owner = try original(ofUser: destination), owner != user {
      throw ChatError(
        .conflict, operation: .writeDestination, detail: "users \(owner) and \(user) would both be \(destination)")
    }
    try database.run(
      "INSERT INTO users VALUES (?1, ?2) ON CONFLICT (original) DO UPDATE SET destination = ?2",
      .text(user.rawValue), .text(destination.rawValue))
  }

  public func commit(usersUpTo ordinal: Int64, _ tally: LoadTally) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      try setRun("users", "\(ordinal)")
      try setRun("crossed.users", "\((Int(try runValue("crossed.users") ?? "") ?? 0) + tally.crossed)")
      try put(tally)
    }
  }

  public func original(ofUser destination: UserID) throws(ChatError) -> UserID? {
    try database.first("SELECT original FROM users WHERE destination = ?", .text(destination.rawValue)) { row in
      UserID(row.text(0))
    }
  }
}

/// A lock on a file that the system releases when the process ends, however it ends.
final class ProcessLock: Sendable {
  private let descriptor: Int32

  init(_ path: String) throws(ChatError) {
    descriptor = open(path, O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw PrivateFile.failure(errno, path, .writeDestination) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      close(descriptor)
      throw ChatError(
        .storage(.busy), operation: .writeDestination, detail: "\(path): another run is at work; wait for its end")
    }
  }

  deinit { close(descriptor) }

  func release() { flock(descriptor, LOCK_UN) }
}
