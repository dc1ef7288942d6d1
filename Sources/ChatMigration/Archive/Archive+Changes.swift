import UnifiedChat

/// An item that a later reading found different or gone.
struct ArchivedChange: Sendable, Hashable {
  /// Counts up over the whole archive.
  var number: Int64
  var list: ArchiveList
  /// The archive's number; 0 for users.
  var channel: Int64
  var id: String
  var isRemoved: Bool
}

/// What has changed since an item came into the archive. Initial readings leave nothing here.
extension Archive {
  /// Of one channel, or of the users if `channel` is 0; in the order in which they were found.
  func changes(of channel: Int64, after number: Int64, limit: Int) throws(ChatError) -> [ArchivedChange] {
    guard try hasChanges else { return [] }
    return try database.rows(
      "SELECT number, list, channel, id, removed FROM changes WHERE channel = ? AND number > ? ORDER BY number LIMIT ?",
      .integer(channel), .integer(number), .integer(limit)
    ) { row in
      ArchivedChange(
        number: row.integer(0), list: ArchiveList(rawValue: row.text(1)) ?? .messages, channel: row.integer(2),
        id: row.text(3), isRemoved: row.integer(4) != 0)
    }
  }

  /// The number of the last change of a channel, or of the users if `channel` is 0; 0 if there is none.
  func lastChange(of channel: Int64) throws(ChatError) -> Int64 {
    guard try hasChanges else { return 0 }
    return Int64(try database.count("SELECT max(number) FROM changes WHERE channel = ?", .integer(channel)))
  }

  /// How many items were found different, and how many gone, after the change `number`.
  func changeCounts(after number: Int64) throws(ChatError) -> (changed: Int, removed: Int) {
    guard try hasChanges else { return (0, 0) }
    return (
      try database.count("SELECT count(*) FROM changes WHERE removed = 0 AND number > ?", .integer(number)),
      try database.count("SELECT count(*) FROM changes WHERE removed = 1 AND number > ?", .integer(number))
    )
  }

  func lastChange() throws(ChatError) -> Int64 {
    guard try hasChanges else { return 0 }
    return Int64(try database.count("SELECT max(number) FROM changes"))
  }

  /// False for an archive of version 1 on a disk that may not be written.
  var hasChanges: Bool { get throws(ChatError) { try database.count("PRAGMA user_version") >= 2 } }

  // MARK: Within a transaction

  func note(_ list: ArchiveList, _ id: String, channel: Int64) throws(ChatError) {
    try database.run(
      "INSERT INTO changes (list, channel, id, removed) VALUES (?, ?, ?, 0)", .text(list.rawValue),
      .integer(channel), .text(id))
  }

  /// Remembers what a second reading has seen; at the end of the list, what it has not seen is gone.
  func sweep(_ list: ArchiveList, _ channel: Int64, _ seen: [String], _ end: PageEnd) throws(ChatError) {
    // Users who are gone stay: they wrote. So do rows, which are kept for nothing but to be there.
    guard list != .users, list != .rows else { return }
    for id in seen {
      try database.run(
        "INSERT OR IGNORE INTO seen VALUES (?, ?, ?)", .text(list.rawValue), .integer(channel), .text(id))
    }
    guard end.next == nil else { return }
    if !end.isGivenUp {
      switch list {
      case .users, .rows: break
      case .channels: try noteGoneChannels()
      case .members: try removeGoneMembers(of: channel)
      case .messages: try removeGoneMessages(of: channel)
      }
    }
    try database.run("DELETE FROM seen WHERE list = ? AND channel = ?", .text(list.rawValue), .integer(channel))
  }

  /// A channel that is no longer listed keeps what is here of it: vendors remove idle ones by themselves.
  private func noteGoneChannels() throws(ChatError) {
    try database.run(
      """
      INSERT INTO changes (list, channel, id, removed)
      SELECT 'channels', ordinal, id, 1 FROM channels c
      WHERE id NOT IN (SELECT id FROM seen WHERE list = 'channels' AND channel = 0)
        AND NOT EXISTS (SELECT 1 FROM changes WHERE list = 'channels' AND channel = c.ordinal AND removed = 1)
      """)
  }

  private func removeGoneMembers(of channel: Int64) throws(ChatError) {
    let gone = "channel = ?1 AND user NOT IN (SELECT id FROM seen WHERE list = 'members' AND channel = ?1)"
    try database.run(
      "INSERT INTO changes (list, channel, id, removed) SELECT 'members', ?1, user, 1 FROM members WHERE " + gone,
      .integer(channel))
    try database.run("DELETE FROM members WHERE " + gone, .integer(channel))
  }

  /// Those whom a better list than the one that is here does not name.
  func removeMembers(of channel: Int64, except listed: Set<UserID>) throws(ChatError) {
    var last: UserID?
    while true {
      let page = try members(of: channel, after: last, limit: 500)
      guard !page.isEmpty else { return }
      var gone: [UserID] = []
      for stored in page {
        let user = try stored.member().member.user.id
        last = user
        if !listed.contains(user) { gone.append(user) }
      }
      try database.transaction { [gone] () throws(ChatError) in
        for user in gone {
          try database.run(
            "INSERT INTO changes (list, channel, id, removed) VALUES ('members', ?, ?, 1)", .integer(channel),
            .text(user.rawValue))
          try database.run(
            "DELETE FROM members WHERE channel = ? AND user = ?", .integer(channel), .text(user.rawValue))
        }
      }
    }
  }

  /// What is older than the oldest message that can still be read has expired at the source, and was not deleted.
  private func removeGoneMessages(of channel: Int64) throws(ChatError) {
    let gone = """
      channel = ?1 AND id NOT IN (SELECT id FROM seen WHERE list = 'messages' AND channel = ?1)
        AND ordinal > (SELECT min(m.ordinal) FROM seen s JOIN messages m ON m.channel = ?1 AND m.id = s.id
          WHERE s.list = 'messages' AND s.channel = ?1)
      """
    try database.run(
      """
      INSERT INTO changes (list, channel, id, removed, ordinal)
      SELECT 'messages', ?1, id, 1, ordinal FROM messages WHERE \(gone)
      """, .integer(channel))
    try database.run("DELETE FROM messages WHERE \(gone)", .integer(channel))
  }
}
