import ChatInterchange
import Foundation
import UnifiedChat

/// What a merge added.
public struct MergeSummary: Sendable, Hashable {
  public var users = 0
  public var channels = 0
  public var members = 0
  public var messages = 0
  /// Channels whose messages were put into order again.
  public var reordered = 0
  /// Channels and messages that were known at second hand and took a better form.
  public var replaced = 0
  public var unreadable = 0
  /// Of what is no record.
  public var rows = 0
  /// Envelopes of imports that were not believed.
  public var envelopes = 0

  public init() {}
}

extension Archive {
  /// Takes in what another archive has and this one has not, by id: what is here already stays as it is, unless it is
  /// known at second hand (`SecondHand`) and the other one knows it from the service, or knows more.
  ///
  /// Older messages come before newer ones, wherever they are from: messages of such channels get new numbers, so that a
  /// ledger of an earlier load does not go on with them.
  public func merge(_ other: Archive, at time: Timestamp) async throws(ChatError) -> MergeSummary {
    var summary = MergeSummary()
    let wasComplete = try manifestValue("completed_at") != nil
    try setManifest("completed_at", nil)
    try await mergeUsers(of: other, &summary)
    var after: Int64 = 0
    while let channel = try await other.channels(after: after, limit: 1).first {
      if Task.isCancelled { throw ChatError.cancelled(.archive) }
      after = channel.ordinal
      try await merge(channel, of: other, &summary)
    }
    let unreadable = try await other.unreadable(limit: .max)
    summary.envelopes = unreadable.count(where: \.isEnvelope)
    summary.unreadable = unreadable.count - summary.envelopes
    try put(unreadable: unreadable)
    try await mergeRows(of: other, &summary)
    if summary.reordered > 0 { try setManifest("order", "\((Int(try manifestValue("order") ?? "") ?? 0) + 1)") }
    // An archive whose own reading did not end is not complete by a merge.
    let isOfImports = try !hasCursors
    if wasComplete || isOfImports { try complete(at: time) }
    return summary
  }

  private var hasCursors: Bool {
    get throws(ChatError) { try database.count("SELECT count(*) FROM cursors") > 0 }
  }

  private func mergeRows(of other: Archive, _ summary: inout MergeSummary) async throws(ChatError) {
    var last: VendorRow?
    while true {
      let page = try await other.rows(after: last, limit: 500)
      guard let end = page.last else { break }
      last = end
      summary.rows += try put(rows: page, replaces: false)
    }
    try put(leftOut: try await other.leftOut(), replaces: false)
  }

  private func mergeUsers(of other: Archive, _ summary: inout MergeSummary) async throws(ChatError) {
    var after: Int64 = 0
    while true {
      let page = try await other.users(after: after, limit: 500)
      guard let last = page.last else { return }
      after = last.ordinal
      let rows = try page.map { stored throws(ChatError) in UserRow(try stored.stored.user()) }
      summary.users += try database.transaction { () throws(ChatError) in
        var new = 0
        for row in rows {
          let known = try database.first("SELECT placeholder FROM users WHERE id = ?", .text(row.id.rawValue)) { row in
            row.integer(0)
          }
          if known == nil { new += 1 }
          // A record takes the place of a bare id, and of nothing else.
          if known ?? 1 == 1 { try put(row) }
        }
        return new
      }
    }
  }

  private func merge(
    _ channel: ArchivedChannel, of other: Archive, _ summary: inout MergeSummary
  ) async throws(ChatError) {
    let known = try self.channel(channel.id)
    let isBetter = known.map { SecondHand.replaces($0.stored.raw, with: channel.stored.raw) } ?? true
    func putChannel() throws(ChatError) {
      let row = ChannelRow(try channel.stored.channel())
      try database.transaction { () throws(ChatError) in try put(row) }
      if known == nil { summary.channels += 1 } else { summary.replaced += 1 }
    }
    if known == nil { try putChannel() }
    guard let own = try self.channel(channel.id)?.ordinal else { return }
    // Where the channel is known better, a list of members at second hand is an old one.
    if isBetter || SecondHand.knowledge(of: channel.stored.raw) == nil {
      try await mergeMembers(of: channel.ordinal, other, into: own, replaces: known != nil && isBetter, &summary)
    }
    // Behind its members: an import that is killed between the two has still to replace them.
    if known != nil, isBetter { try putChannel() }
    let last = Int64(try database.count("SELECT max(ordinal) FROM messages WHERE channel = ?", .integer(own)))
    var after: Int64 = 0
    while true {
      let page = try await other.messages(in: channel.ordinal, after: after, limit: 500)
      guard let end = page.last else { break }
      after = end.ordinal
      let known = try messages(in: own, ids: page.map(\.id))
      var rows: [MessageRow] = []
      var fetched: [FetchedFile] = []
      for stored in page {
        if let old = known[stored.id] {
          guard SecondHand.replaces(old.stored.raw, with: stored.stored.raw) else { continue }
          summary.replaced += 1
        }
        let record = try stored.stored.message()
        for attachment in record.message.content.attachments {
          if let file = try await other.carry(attachment, to: self) { fetched.append(file) }
        }
        if let row = MessageRow(record) { rows.append(row) }
      }
      summary.messages += try database.transaction { [rows, fetched] () throws(ChatError) in
        for file in fetched { try put(file) }
        return try put(rows, channel: own)
      }
    }
    if try reorder(own, since: last) { summary.reordered += 1 }
  }

  /// - Parameter replaces: whether the other's list takes the place of the one that is here.
  private func mergeMembers(
    of channel: Int64, _ other: Archive, into own: Int64, replaces: Bool, _ summary: inout MergeSummary
  ) async throws(ChatError) {
    var last: UserID?
    var listed: Set<UserID> = []
    while true {
      let page = try await other.members(of: channel, after: last, limit: 500)
      guard !page.isEmpty else { break }
      var rows: [MemberRow] = []
      for stored in page {
        let row = MemberRow(try stored.member())
        last = row.user
        let isNew = try member(row.user, of: own) == nil
        if isNew { summary.members += 1 }
        if isNew || replaces { rows.append(row) }
        if replaces { listed.insert(row.user) }
      }
      try database.transaction { [rows] () throws(ChatError) in for row in rows { try put(row, channel: own) } }
    }
    if replaces { try removeMembers(of: own, except: listed) }
  }

  /// Puts the messages that came after `last` among the older ones, by their times. The older ones keep their order,
  /// whatever their times say. False if they all belong behind them.
  private func reorder(_ channel: Int64, since last: Int64) throws(ChatError) -> Bool {
    try database.transaction { () throws(ChatError) in
      try database.execute("CREATE TEMP TABLE IF NOT EXISTS sorted (id TEXT PRIMARY KEY, number INTEGER) WITHOUT ROWID")
      try database.execute("DELETE FROM sorted")
      try database.run(
        """
        INSERT INTO sorted SELECT id, row_number() OVER (ORDER BY key, fresh, ordinal) FROM (
          SELECT id, ordinal, 0 AS fresh, max(created_at) OVER (ORDER BY ordinal) AS key
          FROM messages WHERE channel = ?1 AND ordinal <= ?2
          UNION ALL
          SELECT id, ordinal, 1, created_at FROM messages WHERE channel = ?1 AND ordinal > ?2)
        """, .integer(channel), .integer(last))
      let displaced = try database.count(
        """
        SELECT count(*) FROM (SELECT s.number, row_number() OVER (ORDER BY m.ordinal) AS place FROM messages m
          JOIN sorted s ON s.id = m.id WHERE m.channel = ?) WHERE number <> place
        """, .integer(channel))
      guard displaced > 0 else { return false }
      let base = try database.count("SELECT max(ordinal) FROM messages WHERE channel = ?", .integer(channel))
      try database.run(
        "UPDATE messages SET ordinal = ?2 + (SELECT number FROM sorted s WHERE s.id = messages.id) WHERE channel = ?1",
        .integer(channel), .integer(base))
      return true
    }
  }

  /// Takes in what `source` reads from a vendor's export files.
  public func importing(
    _ source: any ChatSource, clock: any ChatClock = SystemClock(), progress: ProgressReporter? = nil
  ) async throws(ChatError) -> MergeSummary {
    let path = self.path + ".importing"
    // Another import would take this one's half-read files for what a killed one left.
    let lock = try ProcessLock(path + "-lock", operation: .archive)
    defer { lock.release(removesFile: true) }
    for left in [path, path + "-wal", path + "-shm", path + ".lock"] { unlink(left) }
    try? FileManager.default.removeItem(atPath: path + ".files")
    let between = try Archive.create(
      at: path, Identity(tool: try identity().tool, vendor: source.vendor, createdAt: clock.now))
    defer {
      for left in [path, path + "-wal", path + "-shm", path + ".lock"] { unlink(left) }
      // What is left over is in the way of nobody.
      try? FileManager.default.removeItem(atPath: path + ".files")
    }
    _ = try await Extractor(source: source, archive: between, clock: clock, progress: progress).run()
    let summary = try await merge(between, at: clock.now)
    try await between.close()
    return summary
  }
}
