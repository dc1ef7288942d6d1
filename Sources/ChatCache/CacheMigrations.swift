import UnifiedChat

/// Brings a file of any older version to the present one, in one transaction: killed anywhere, the file is the old one
/// or the new one.
enum CacheMigrations {
  static let current: Int64 = 3

  static func version(of database: Database) throws(ChatError) -> Int64 {
    try database.first("PRAGMA user_version") { row throws(ChatError) in row.int(0) } ?? 0
  }

  /// - Throws: `.storage(.newerVersion)`, with nothing written.
  static func run(on database: Database) throws(ChatError) {
    try refuseNewer(try version(of: database), path: database.path)
    try database.transaction { () throws(ChatError) in
      // A second process may migrate at the same moment: the version is read again inside the transaction.
      let version = try version(of: database)
      guard version < current else { return }
      if version == 0 { try database.execute(CacheSchema.sql) }
      if version == 1 { try orderRowsByTime(database) }
      if version == 1 || version == 2 { try indexAnew(database) }
      try database.execute("PRAGMA user_version = \(current)")
    }
  }

  static func refuseNewer(_ version: Int64, path: String) throws(ChatError) {
    guard version > current || version < 0 else { return }
    // SQLite's field has a sign, and no program uses it.
    guard (0...Int64(Int32.max)).contains(version) else {
      throw StorageFault(reason: .corrupt, cause: "\(version) is no version of a schema").error(path: path)
    }
    throw StorageFault(
      reason: .newerVersion, cause: "its schema is version \(version), this program knows up to \(current)"
    ).error(path: path)
  }

  // MARK: Steps; one is never changed once released

  /// 1 to 2: rows in the order of time, and a search index with tags and beginnings. Filled by the last step.
  private static func orderRowsByTime(_ database: Database) throws(ChatError) {
    try database.execute(
      """
      CREATE TABLE renumbered (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);
      INSERT INTO renumbered
        SELECT row, time * \(MessageRow.rowsPerMillisecond) + row_number() OVER (PARTITION BY time ORDER BY row) - 1
        FROM (SELECT row, min(max(created_at, 0), 1 << 42) AS time FROM messages);
      UPDATE messages SET row = -row;
      UPDATE messages SET row = (SELECT new FROM renumbered WHERE old = -row);
      DROP TABLE renumbered;
      DROP TABLE search;
      CREATE VIRTUAL TABLE search USING fts5 (
        terms, tags, content = '', tokenize = 'ascii', columnsize = 0, prefix = '1 3 4 5 6'
      );
      """)
  }

  /// 2 to 3: beginnings of two letters, and shorter tags.
  private static func indexAnew(_ database: Database) throws(ChatError) {
    try database.execute("INSERT INTO search (search) VALUES ('delete-all')")
    try CacheSession(database: database, user: "").indexAll()
  }
}
