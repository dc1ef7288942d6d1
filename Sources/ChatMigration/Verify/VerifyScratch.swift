import UnifiedChat

/// What a verification has seen, on disk, so that memory does not grow with the archive.
actor VerifyScratch {
  private let database: Database

  init() throws(ChatError) {
    let database = try Database(path: "", mode: .readWrite, operation: .verify)
    try database.execute(
      """
      CREATE TABLE seen (list TEXT, channel INTEGER, item TEXT, PRIMARY KEY (list, channel, item)) WITHOUT ROWID;
      """)
    self.database = database
  }

  enum List: String, Sendable { case users, channels, members, messages }

  /// Returns those of `items` that had been seen before.
  func mark(_ items: [String], _ list: List, channel: Int64 = 0) throws(ChatError) -> [Bool] {
    try database.transaction { () throws(ChatError) in
      try items.map { item throws(ChatError) in
        try database.run(
          "INSERT OR IGNORE INTO seen VALUES (?, ?, ?)", .text(list.rawValue), .integer(channel), .text(item))
        return database.changes == 0
      }
    }
  }

  func contains(_ items: [String], _ list: List, channel: Int64 = 0) throws(ChatError) -> [Bool] {
    try items.map { item throws(ChatError) in
      try database.count(
        "SELECT count(*) FROM seen WHERE list = ? AND channel = ? AND item = ?", .text(list.rawValue),
        .integer(channel), .text(item)) > 0
    }
  }
}
