import UnifiedChat

/// How a cache file is opened, checked, set aside and rebuilt.
enum CacheOpening {
  /// Up to this size a file is checked whole on each opening; a larger one only if it was not closed in order.
  static let alwaysCheckedSize: Int64 = 32 << 20

  /// - Parameter observer: for tests; see `LocalCache`.
  static func open(
    _ file: CacheFile, identity: CacheIdentity, observer: Database.Observer? = nil
  ) throws(ChatError) -> (database: Database, recovery: CacheRecovery?) {
    do throws(ChatError) {
      // Before anything is written. A header of which nothing can be believed goes the way of all damage.
      if let header = file.header() { try CacheMigrations.refuse(header, path: file.path) }
      try file.create()
      let database = try fresh(path: file.path, identity: identity, observer: observer)
      try check(database, size: file.size)
      try database.run("INSERT OR REPLACE INTO meta VALUES ('closed', 'no')")
      return (database, nil)
    } catch {
      guard case .storage(.corrupt) = error.kind else { throw error }
    }
    return try rebuild(file, identity: identity)
  }

  /// Opens `path`, sets it up and brings it to the present schema.
  static func fresh(
    path: String, identity: CacheIdentity, observer: Database.Observer? = nil
  ) throws(ChatError) -> Database {
    let database = try Database(path: path, mode: .create)
    // The set-up writes; the file may be somebody else's.
    try CacheMigrations.refuseForeign(database)
    try database.setUp()
    database.observer = observer
    defer { database.observer = nil }
    try CacheMigrations.run(on: database)
    try claim(database, for: identity)
    return database
  }

  static func sayGoodbye(_ database: Database) {
    // Best effort: a file that is not marked as closed is only checked more closely next time.
    _ = try? database.run("INSERT OR REPLACE INTO meta VALUES ('closed', 'yes')")
    try? database.execute("PRAGMA optimize")
  }

  /// Writes the identity into a new file and compares it in an old one.
  private static func claim(_ database: Database, for identity: CacheIdentity) throws(ChatError) {
    let parts = [("vendor", identity.vendor.rawValue), ("app", identity.app), ("user", identity.user.rawValue)]
    for (key, value) in parts {
      try database.run("INSERT OR IGNORE INTO meta VALUES (?, ?)", [.text(key), .text(value)])
      let kept = try database.first("SELECT value FROM meta WHERE key = ?", [.text(key)]) { row throws(ChatError) in
        row.bytes(0)
      }
      guard kept == Array(value.utf8) else {
        throw StorageFault(reason: .corrupt, cause: "it belongs to another \(key)").error(path: database.path)
      }
    }
  }

  private static func check(_ database: Database, size: Int64) throws(ChatError) {
    let closed = try database.first("SELECT value FROM meta WHERE key = 'closed'") { row throws(ChatError) in
      row.text(0)
    }
    guard closed != "yes" || size <= alwaysCheckedSize else { return }
    let verdict = try database.first("PRAGMA quick_check(1)") { row throws(ChatError) in row.text(0) }
    guard verdict == "ok" else {
      throw StorageFault(reason: .corrupt, cause: "the check found damage").error(path: database.path)
    }
  }

  private static func rebuild(
    _ file: CacheFile, identity: CacheIdentity
  ) throws(ChatError) -> (database: Database, recovery: CacheRecovery?) {
    let aside = try file.quarantine()
    let saved = OutboxRescue.rows(of: aside)
    try file.create()
    let database = try fresh(path: file.path, identity: identity)
    try database.transaction { () throws(ChatError) in
      let session = CacheSession(database: database, user: identity.user)
      for row in saved { try session.restore(row) }
    }
    return (database, CacheRecovery(quarantined: aside.path, savedMessages: saved.count))
  }
}
