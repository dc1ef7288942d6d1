import UnifiedChat

/// Brings a file of any older version to the present one, in one transaction: killed anywhere, the file is the old one
/// or the new one.
enum CacheMigrations {
  static let current: Int64 = 4
  /// "UCCa" in ASCII. Files that were made before there was one have 0.
  static let applicationID: Int64 = 1_430_471_521

  static func version(of database: Database) throws(ChatError) -> Int64 {
    try database.first("PRAGMA user_version") { row throws(ChatError) in row.int(0) } ?? 0
  }

  static func header(of database: Database) throws(ChatError) -> CacheHeader {
    let id = try database.first("PRAGMA application_id") { row throws(ChatError) in row.int(0) } ?? 0
    // SQLite gives the field with a sign.
    return CacheHeader(version: try version(of: database), applicationID: id & 0xFFFF_FFFF)
  }

  /// - Throws: `.storage(.newerVersion)`, with nothing written.
  static func run(on database: Database) throws(ChatError) {
    try database.transaction { () throws(ChatError) in
      // A second process may migrate at the same moment: the header is read again inside the transaction.
      let header = try header(of: database)
      try refuse(header, path: database.path)
      if header.applicationID == 0 { try database.execute("PRAGMA application_id = \(applicationID)") }
      let version = header.version
      guard version < current else { return }
      if version == 0 { try database.execute(CacheSchema.sql) }
      if version == 1 { try orderRowsByTime(database) }
      if version == 1 || version == 2 { try indexAnew(database) }
      if (1...3).contains(version) { try noteAnswers(database) }
      try database.execute("PRAGMA user_version = \(current)")
    }
  }

  /// - Throws: `.storage(.denied)` for the file of another program, `.storage(.newerVersion)` for one of a newer version
  ///   of this program, `.storage(.corrupt)` for a header that no program writes.
  static func refuse(_ header: CacheHeader, path: String) throws(ChatError) {
    guard header.applicationID == applicationID || header.applicationID == 0 else {
      throw foreign("application id \(header.applicationID)", path: path)
    }
    try refuseNewer(header.version, path: path)
  }

  /// Older versions wrote no application id: their tables tell whose a file is. Reads, and writes nothing.
  static func refuseForeign(_ database: Database) throws(ChatError) {
    let header = try header(of: database)
    try refuse(header, path: database.path)
    guard header.applicationID == 0 else { return }
    let tables = try database.all("SELECT name FROM sqlite_master WHERE type = 'table'") { row throws(ChatError) in row.text(0) }
    guard tables.isEmpty ? header.version == 0 : Set(tables).isSuperset(of: ownTables) && header.version > 0 else {
      throw foreign("no application id, other tables", path: database.path)
    }
  }

  /// In every version.
  private static let ownTables: Set<String> = ["meta", "channels", "messages", "outbox"]

  private static func foreign(_ what: String, path: String) -> ChatError {
    StorageFault(
      reason: .denied, cause: "it is a SQLite file of another program (\(what)) and stays as it is",
      mend: "move it away, or choose another cache.directory"
    ).error(path: path)
  }

  private static func refuseNewer(_ version: Int64, path: String) throws(ChatError) {
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

  /// 3 to 4: answers are found by what they answer, and messages of this device alone have a place.
  private static func noteAnswers(_ database: Database) throws(ChatError) {
    try database.execute(
      """
      ALTER TABLE messages ADD COLUMN reply_to TEXT;
      UPDATE messages SET reply_to = json_extract(payload, '$.replyTo.id')
        WHERE instr(payload, '"replyTo"') > 0 AND json_valid(payload);
      CREATE INDEX messages_answers ON messages (channel, reply_to) WHERE reply_to IS NOT NULL;
      ALTER TABLE messages ADD COLUMN after_major INTEGER;
      ALTER TABLE messages ADD COLUMN after_minor INTEGER;
      ALTER TABLE messages ADD COLUMN after_tail TEXT;
      CREATE INDEX messages_here ON messages (channel, after_major, after_minor, after_tail) WHERE after_major IS NOT NULL;
      """)
  }
}
