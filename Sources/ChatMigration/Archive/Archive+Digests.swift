import ChatCrypto
import UnifiedChat

/// Digests over what an archive holds, so that a second copy can be proved equal to the first.
extension Archive {
  /// Marks the archive as complete: counts, time span and digest of each channel, and of the whole.
  func complete(at time: Timestamp) throws(ChatError) {
    var after: Int64 = 0
    while let channel = try channels(after: after, limit: 1).first {
      after = channel.ordinal
      let digest = try digest(of: channel)
      try database.run(
        """
        UPDATE channels SET digest = ?2, (messages, first_at, last_at) =
          (SELECT count(*), min(created_at), max(created_at) FROM messages WHERE channel = ?1)
        WHERE ordinal = ?1
        """, .integer(channel.ordinal), .text(digest))
    }
    let sections = try sectionDigests { channel throws(ChatError) in channel.digest ?? "" }
    try database.transaction { () throws(ChatError) in
      // Of an earlier time; it stands among the sections where there are rows.
      try setManifest("digest.rows", nil)
      for (section, digest) in sections { try setManifest(section, digest) }
      try setManifest("completed_at", "\(time.milliseconds)")
      try setManifest("rereading", nil)
    }
  }

  /// The digest of everything as it stands in the manifest; nil while the archive is not complete.
  public func digest() throws(ChatError) -> String? { try manifestValue("digest") }

  /// A channel, its members by id, and its messages in order: each record as stored and what the vendor sent.
  func digest(of channel: ArchivedChannel) throws(ChatError) -> String {
    var digest = LineDigest()
    digest.add(channel.stored)
    var user: UserID?
    while true {
      let members = try database.rows(
        "SELECT user, record, raw FROM members WHERE channel = ? AND user > ? ORDER BY user LIMIT 1000",
        .integer(channel.ordinal), .text(user?.rawValue ?? "")
      ) { row in (UserID(row.text(0)), StoredRecord(json: row.text(1), raw: row.optionalText(2))) }
      for member in members { digest.add(member.1) }
      guard let last = members.last else { break }
      user = last.0
    }
    var after: Int64 = 0
    while true {
      let messages = try messages(in: channel.ordinal, after: after, limit: 1000)
      for message in messages { digest.add(message.stored) }
      guard let last = messages.last else { return digest.value }
      after = last.ordinal
    }
  }

  /// Digests by manifest key, the whole one last. Channels count with what `ofChannel` says of them.
  func sectionDigests(
    ofChannel: (ArchivedChannel) throws(ChatError) -> String
  ) throws(ChatError) -> [(String, String)] {
    var channels = LineDigest()
    var id = ""
    while let channel = try database.first(
      Self.selectChannels + " WHERE id > ? ORDER BY id LIMIT 1", .text(id), read: Self.channel)
    {
      id = channel.id.rawValue
      channels.add(try ofChannel(channel))
    }
    var sections = [
      ("digest.users", try rowsDigest("SELECT id, record, raw FROM users WHERE id > ? ORDER BY id LIMIT 1000")),
      ("digest.channels", channels.value),
      (
        "digest.files",
        try rowsDigest("SELECT sha256, size, NULL FROM files WHERE sha256 > ? ORDER BY sha256 LIMIT 1000")
      ),
      ("digest.unreadable", try unreadableDigest()),
    ]
    if let rows = try vendorRowsDigest() { sections.append(("digest.rows", rows)) }
    var all = LineDigest()
    for section in sections { all.add(section.1) }
    sections.append(("digest", all.value))
    return sections
  }

  private func rowsDigest(_ sql: String) throws(ChatError) -> String {
    var digest = LineDigest()
    var key = ""
    while true {
      let page = try database.rows(sql, .text(key)) { row in
        (row.text(0), StoredRecord(json: row.text(1), raw: row.optionalText(2)))
      }
      for row in page {
        digest.add(row.0)
        digest.add(row.1)
      }
      guard let last = page.last else { return digest.value }
      key = last.0
    }
  }

  /// In an order of their own, since channels that are read at the same time list theirs as they come.
  private func unreadableDigest() throws(ChatError) -> String {
    var digest = LineDigest()
    let lines = try database.rows(
      "SELECT json_array(kind, id, channel, reason, raw) AS line FROM unreadable ORDER BY line"
    ) { row in row.text(0) }
    for line in lines { digest.add(line) }
    return digest.value
  }
}

/// SHA-256 over lines. A line break ends each, and cannot be in one: JSON escapes it.
struct LineDigest: Sendable {
  private var digest = RunningDigest(.sha256)

  mutating func add(_ line: String) { add(Array(line.utf8)) }

  mutating func add(_ line: [UInt8]) {
    digest.update(line)
    digest.update([UInt8(ascii: "\n")])
  }

  /// Two lines: what the vendor sent may hold line breaks, so its own digest stands for it.
  mutating func add(_ stored: StoredRecord) {
    add(stored.json)
    if let raw = stored.raw { add("raw " + Hex.encode(Digest.sha256(Array(raw.utf8)))) }
  }

  var value: String { Hex.encode(digest.value) }
}
