import Foundation
import UnifiedChat

/// A ledger in one SQLite file.
///
/// One run has it for itself, or several processes share its work: a lock that ends with the process tells them apart,
/// and leases of a process that ended, however it ended, are void.
public actor SQLiteLedger: Ledger {
  public nonisolated let path: String
  let database: Database
  let owners: LeaseOwners?
  private let lock: ProcessLock?
  private let isShared: Bool
  /// On a medium that takes no writing: what is there can be read, and nothing is noted.
  private let isReadOnly: Bool

  static let applicationID: Int64 = 1_430_473_842  // "UCLr"
  static let version: Int64 = 2

  /// - Parameters:
  ///   - isShared: whether other processes may work on the ledger at the same time, if they say so too.
  ///   - creates: whether one is made where there is none; else that is `.storage(.denied)`, and nothing is made.
  ///   - checks: whether SQLite looks through the whole file for damage first, which takes about a second a gigabyte.
  /// - Throws: `.storage(.busy)` while another run uses it; `.storage` for what is no ledger, or a damaged one.
  public init(
    at path: String, isShared: Bool = false, creates: Bool = true, checks: Bool = true
  ) throws(ChatError) {
    guard creates || (PrivateFile.size(path) ?? 0) > 0 else {
      throw ChatError(
        .storage(.denied), operation: .writeDestination,
        detail: "\(path): there is no ledger; nothing was written with it, or it has another name")
    }
    self.path = path
    self.isShared = isShared
    isReadOnly = !creates && Self.takesNoWriting(path)
    guard !isReadOnly else {
      (lock, owners) = (nil, nil)
      database = try Database(path: path, mode: .readOnly, operation: .writeDestination)
      try Self.check(database, path: path)
      if checks { try database.checkPages(mend: Self.mend) }
      return
    }
    lock = try ProcessLock(path + ".lock", isShared: isShared)
    if !PrivateFile.exists(path) {
      do throws(ChatError) { try PrivateFile.create(path, operation: .writeDestination) } catch {
        // Another process was faster.
        guard isShared, error.kind == .conflict else { throw error }
      }
    }
    let database = try Database(path: path, mode: .readWrite, operation: .writeDestination)
    try Self.prepare(database, path: path, isShared: isShared, checks: checks)
    owners = try LeaseOwners(path)
    self.database = database
  }

  private static let mend = "put a copy of it in its place, or name another ledger"

  private static func prepare(
    _ database: Database, path: String, isShared: Bool, checks: Bool
  ) throws(ChatError) {
    // Before anything is written: the file may be another program's, or no longer whole.
    let begins = try isNew(database)
    if !begins {
      try check(database, path: path)
      if checks { try database.checkPages(mend: mend) }
    }
    try database.transaction { () throws(ChatError) in
      // Another process may have been faster.
      if begins, try isNew(database) { try database.execute(schema) }
      try check(database, path: path)
      if try database.count("PRAGMA user_version") < Int(version) { try database.execute(upgradeFrom1) }
      try database.execute(openChannels)
    }
    try database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
    if !isShared { try database.run("UPDATE channels SET owner = NULL") }
  }

  /// Neither the file nor its folder, which needs room for a lock and a journal.
  private static func takesNoWriting(_ path: String) -> Bool {
    let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    return access(path, W_OK) != 0 || access(folder, W_OK) != 0
  }

  private static func isNew(_ database: Database) throws(ChatError) -> Bool {
    guard try database.count("PRAGMA application_id") == 0, try database.count("PRAGMA user_version") == 0 else { return false }
    return try database.count("SELECT count(*) FROM sqlite_master") == 0
  }

  private static func check(_ database: Database, path: String) throws(ChatError) {
    guard try database.count("PRAGMA application_id") == Int(applicationID) else {
      throw ChatError(
        .storage(.corrupt), operation: .writeDestination,
        detail: "\(path): not a ledger of this program; name another path")
    }
    guard try database.count("PRAGMA user_version") <= Int(version) else {
      throw ChatError(
        .storage(.newerVersion), operation: .writeDestination,
        detail: "\(path): a newer version of this program wrote it; use that one")
    }
  }

  /// Brings everything into the one file. Later calls throw.
  public func close() throws(ChatError) {
    owners?.end()
    if isReadOnly { return database.close() }
    do throws(ChatError) {
      try database.execute("PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)")
      try database.execute("PRAGMA journal_mode = DELETE")
    } catch where isShared && error.kind == .storage(.busy) {
      // Another process has it open, and does this when it closes.
    }
    database.close()
    lock?.release()
  }

  private static let schema = """
    PRAGMA application_id = \(applicationID);
    PRAGMA user_version = \(version);
    CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE users (
      original TEXT PRIMARY KEY,
      destination TEXT NOT NULL UNIQUE,
      own INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE TABLE channels (
      channel INTEGER PRIMARY KEY,
      state TEXT NOT NULL,
      destination TEXT UNIQUE,
      is_group INTEGER NOT NULL DEFAULT 0,
      watermark INTEGER NOT NULL DEFAULT 0,
      owner TEXT,
      change INTEGER NOT NULL DEFAULT 0,
      intended INTEGER NOT NULL DEFAULT 0,
      own INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE messages (
      channel INTEGER NOT NULL,
      original TEXT NOT NULL,
      destination TEXT NOT NULL,
      own INTEGER NOT NULL DEFAULT 0,
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
    \(lateSchema)
    """

  /// Finds the next channel to lease without a walk through those that are done; an index needs no version.
  private static let openChannels = """
    CREATE INDEX IF NOT EXISTS channels_open ON channels (channel)
      WHERE owner IS NULL AND state IN ('pending', 'created')
    """

  private static let lateSchema = """
    CREATE TABLE late (
      kind TEXT NOT NULL,
      channel INTEGER NOT NULL,
      id TEXT NOT NULL,
      field TEXT NOT NULL,
      treatment TEXT NOT NULL,
      explanation TEXT NOT NULL,
      PRIMARY KEY (kind, channel, id, field)
    ) WITHOUT ROWID;
    """

  /// What the first version wrote is not known to be its own, so that nothing of it is ever taken back.
  private static let upgradeFrom1 = """
    ALTER TABLE users ADD COLUMN own INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE channels ADD COLUMN change INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE channels ADD COLUMN intended INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE channels ADD COLUMN own INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE messages ADD COLUMN own INTEGER NOT NULL DEFAULT 0;
    \(lateSchema)
    PRAGMA user_version = \(version);
    """

  // MARK: Run

  public func bind(
    archive: String, vendor: VendorName, destination: VendorName, rules: String
  ) throws(ChatError) {
    for (key, value) in [
      ("archive", archive), ("vendor", vendor.rawValue), ("destination", destination.rawValue), ("rules", rules),
    ] {
      if !isReadOnly { try database.run("INSERT OR IGNORE INTO run VALUES (?, ?)", .text(key), .text(value)) }
      guard try note(key)?.utf8.elementsEqual(value.utf8) == true else {
        throw ChatError(
          .conflict, operation: .writeDestination,
          detail: key == "rules"
            ? "\(path) was begun with another filter or mapping; repeat that one, or name another ledger"
            : "\(path) belongs to \(key) \(try note(key) ?? ""), not \(value); name another ledger")
      }
    }
  }

  public func note(_ name: String) throws(ChatError) -> String? {
    try database.first("SELECT value FROM run WHERE key = ?", .text(name)) { row in row.text(0) }
  }

  /// Forgotten on a medium that takes no writing.
  public func setNote(_ name: String, _ value: String?) throws(ChatError) {
    if isReadOnly { return }
    guard let value else { return try database.run("DELETE FROM run WHERE key = ?", .text(name)) }
    try database.run("INSERT OR REPLACE INTO run VALUES (?, ?)", .text(name), .text(value))
  }

  public func claim(_ stage: String) throws(ChatError) -> Bool {
    try database.transaction { () throws(ChatError) in
      let own = try leases
      if let owner = try note("stage.\(stage)"), owner != own.own, !own.isGone(owner) { return false }
      try setNote("stage.\(stage)", own.own)
      return true
    }
  }

  /// - Throws: `.storage(.denied)` where nothing can be written.
  var leases: LeaseOwners {
    get throws(ChatError) {
      if let owners { return owners }
      throw ChatError(.storage(.denied), operation: .writeDestination, detail: "\(path): takes no writing")
    }
  }

  public func abandon(_ stage: String) throws(ChatError) { try setNote("stage.\(stage)", nil) }

  // MARK: Users

  public func userWatermark() throws(ChatError) -> Int64 { Int64(try note("users") ?? "") ?? 0 }

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
        "INSERT OR IGNORE INTO users (original, destination) VALUES (?, ?)", .text(user.rawValue),
        .text(candidate.rawValue))
      if database.changes == 1 { return candidate }
      // Another process may have been faster with the same user.
      if let known = try destination(of: user) { return known }
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
      "INSERT INTO users (original, destination) VALUES (?1, ?2) ON CONFLICT (original) DO UPDATE SET destination = ?2",
      .text(user.rawValue), .text(destination.rawValue))
  }

  public func commit(usersUpTo ordinal: Int64, created: [UserID], _ tally: LoadTally) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      // Two processes may have done the same page.
      guard try userWatermark() < ordinal else { return }
      try setNote("users", "\(ordinal)")
      try setNote("crossed.users", "\((Int(try note("crossed.users") ?? "") ?? 0) + tally.crossed)")
      for user in created { try database.run("UPDATE users SET own = 1 WHERE original = ?", .text(user.rawValue)) }
      try put(tally)
    }
  }

  public func original(ofUser destination: UserID) throws(ChatError) -> UserID? {
    try database.first("SELECT original FROM users WHERE destination = ?", .text(destination.rawValue)) { row in
      UserID(row.text(0))
    }
  }
}
