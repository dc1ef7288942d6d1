import UnifiedChat

/// Brings a file of any older version to the present one, each step in a transaction of its own.
enum CacheMigrations {
  /// The version that a step leads to, and its statements. Steps are never changed once released.
  static let steps: [(version: Int64, sql: String)] = [(1, CacheSchema.sql)]

  static var current: Int64 { steps.last?.version ?? 0 }

  static func version(of database: Database) throws(ChatError) -> Int64 {
    try database.first("PRAGMA user_version") { row throws(ChatError) in row.int(0) } ?? 0
  }

  /// - Throws: `.storage(.newerVersion)`, with nothing written.
  static func run(on database: Database) throws(ChatError) {
    try refuseNewer(try version(of: database), path: database.path)
    // A second process may migrate at the same moment: the version is read again inside the transaction.
    for step in steps {
      try database.transaction { () throws(ChatError) in
        guard try version(of: database) < step.version else { return }
        try database.execute(step.sql)
        try database.execute("PRAGMA user_version = \(step.version)")
      }
    }
  }

  static func refuseNewer(_ version: Int64, path: String) throws(ChatError) {
    guard version > current else { return }
    throw StorageFault(
      reason: .newerVersion, cause: "its schema is version \(version), this program knows up to \(current)"
    ).error(path: path)
  }
}
