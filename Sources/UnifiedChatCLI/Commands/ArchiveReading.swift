import ChatJSON
import ChatMigration
import UnifiedChat

/// `unifiedchat archive show` and `search`: what an archive holds, when its vendor is gone.
enum ArchiveReading {
  private static let times: [OptionSpec] = FilterOptions.specs.filter { ["since", "until"].contains($0.name) }

  static let show = Command(
    name: "show",
    summary: "what an archive holds; with --channel, its messages; with --user, who that is; with --rows, a list",
    options: [
      .value("channel", "ID", "print the messages of this channel"),
      .value("user", "ID", "print this user and the channels in which they are"),
      .value("rows", "LIST", "print what is kept of this list of the vendor, as received, one a line"),
      .value("limit", "N", "at most so many messages or rows (default 50)"),
      .flag("last", "the newest ones, not the oldest"), Command.json,
    ] + times, operands: ["archive"],
    examples: [
      "unifiedchat archive show rescue.uchat", "unifiedchat archive show rescue.uchat --channel 5f2c… --last",
      "unifiedchat archive show rescue.uchat --user alice",
    ], run: runShow)

  private static func runShow(_ invocation: Invocation) async throws -> ExitCode {
    guard ["user", "channel", "rows"].count(where: { invocation.has($0) }) <= 1 else {
      throw Failure(.usage, "archive show takes one of --user, --channel and --rows")
    }
    for name in ["limit", "last", "since", "until"]
    where invocation.has(name) && !invocation.has("channel") && !(name == "limit" && invocation.has("rows")) {
      throw Failure(.usage, "--\(name) is of messages: say which with --channel ID")
    }
    let archive = try Archive.open(at: invocation.operands[0])
    if let id = invocation.value("user") { return try await showUser(UserID(id), archive, invocation.json) }
    if let kind = invocation.value("rows") {
      return try await showRows(kind, archive, try invocation.integer("limit", in: 1...1_000_000) ?? 50)
    }
    if let id = invocation.value("channel") { return try await showMessages(ChannelID(id), archive, invocation) }
    let identity = try await archive.identity()
    let counts = try await archive.counts()
    let others = try await ArchiveCommands.Others(of: archive)
    var table = Table(head: ["channel", "kind", "name", "messages", "first", "last"])
    try await forEachChannel(archive) { channel in
      let name = (try? channel.stored.channel().channel.name) ?? ""
      table.rows.append([
        MessageText.safe(channel.id.rawValue), channel.kind, MessageText.safe(name), channel.messages.map(String.init) ?? "",
        channel.firstAt?.description ?? "", channel.lastAt?.description ?? "",
      ])
    }
    guard !invocation.json else {
      Standard.line(json(identity, counts, others, table).text())
      return .success
    }
    Standard.line("\(identity.vendor) app \(identity.app ?? "?"), taken by \(identity.tool) at \(identity.createdAt)")
    Standard.line(identity.completedAt.map { "complete since \($0)" } ?? "not complete: run archive pull again")
    Standard.line(
      "\(counts.users) users, \(counts.channels) channels, \(counts.members) members, \(counts.messages) messages, "
        + "\(counts.files) files (\(counts.fileBytes) bytes), \(counts.unreadable) unreadable"
        + (counts.envelopes == 0 ? "" : ", \(counts.envelopes) envelopes not believed"))
    for line in others.lines { Standard.line(line) }
    Standard.line(table.text)
    return .success
  }

  private static func showRows(_ kind: String, _ archive: Archive, _ limit: Int) async throws -> ExitCode {
    guard let count = try await archive.rowCounts().first(where: { $0.kind == kind })?.count else {
      throw Failure(.configuration, "\(archive.path) holds no rows of \(kind.inert); archive show lists what it holds")
    }
    var last: VendorRow?
    var left = limit
    while left > 0 {
      let page = try await archive.rows(of: kind, after: last, limit: min(left, 500))
      for row in page { Standard.line(row.raw.text.inert) }
      guard let end = page.last else { break }
      last = end
      left -= page.count
    }
    if count > limit {
      Standard.error("unifiedchat: \(count - limit) more rows of \(kind.inert) are there; --limit \(count) prints all")
    }
    return .success
  }

  private static func json(
    _ identity: Archive.Identity, _ counts: ArchiveCounts, _ others: ArchiveCommands.Others, _ table: Table
  ) -> JSONValue {
    var object = JSONObject()
    object["id"] = .string(identity.id)
    object["vendor"] = .string(identity.vendor.rawValue)
    object["app"] = identity.app.map { .string($0) }
    object["complete"] = .bool(identity.completedAt != nil)
    for (key, value) in [
      ("users", counts.users), ("members", counts.members), ("messages", counts.messages), ("files", counts.files),
      ("unreadable", counts.unreadable), ("envelopes", counts.envelopes),
    ] { object[key] = JSONValue(value) }
    object["rows"] = others.rowsJSON
    object["notRead"] = others.notReadJSON
    object["channels"] = .array(
      table.rows.map { row in
        ["id": .string(row[0]), "kind": .string(row[1]), "name": .string(row[2]), "messages": JSONValue(Int(row[3]) ?? 0)]
      })
    return .object(object)
  }

  private static func forEachChannel(
    _ archive: Archive, _ body: (ArchivedChannel) async throws -> Void
  ) async throws {
    var after: Int64 = 0
    while true {
      let page = try await archive.channels(after: after, limit: 500)
      for channel in page { try await body(channel) }
      guard let last = page.last else { return }
      after = last.ordinal
    }
  }

  private static func showMessages(
    _ id: ChannelID, _ archive: Archive, _ invocation: Invocation
  ) async throws -> ExitCode {
    guard try await archive.channel(id) != nil else {
      throw Failure(.configuration, "\(archive.path) holds no channel \(id.rawValue.inert); archive show lists them")
    }
    let limit = try invocation.integer("limit", in: 1...1_000_000) ?? 50
    let query = ArchiveQuery(
      channel: id, since: try FilterOptions.time("since", invocation), until: try FilterOptions.time("until", invocation))
    var hits: [ArchiveHit] = []
    var place: ArchivePlace?
    repeat {
      let page = try await archive.search(query, after: place, limit: 500)
      hits += page
      place = page.last?.place
      if invocation.has("last") {
        hits = hits.suffix(limit)
      } else if hits.count >= limit {
        hits = Array(hits.prefix(limit))
        break
      }
    } while place != nil
    for hit in hits { Standard.line(invocation.json ? hit.message.json().text() : MessageText.line(hit.message)) }
    return .success
  }

  private static func showUser(_ id: UserID, _ archive: Archive, _ json: Bool) async throws -> ExitCode {
    guard let stored = try await archive.user(id) else {
      throw Failure(.configuration, "\(archive.path) holds no user \(id.rawValue.inert)")
    }
    if json {
      Standard.line(stored.stored.json)
      return .success
    }
    let user = try stored.stored.user()
    Standard.line(
      "\(MessageText.safe(id.rawValue)): \(MessageText.safe(user.user.name ?? "no name"))"
        + (user.isPlaceholder ? " (known only from messages and memberships)" : ""))
    if let data = user.user.customData { Standard.line("custom data: \(MessageText.safe(data.text))") }
    try await forEachChannel(archive) { channel in
      guard let member = try await archive.membership(of: id, in: channel.ordinal) else { return }
      let place = MessageText.safe("\(channel.id)  \(member.member.role)")
      Standard.line("\(place)  \(MessageText.safe(try channel.stored.channel().channel.name ?? ""))")
    }
    return .success
  }

  // MARK: Search

  static let search = Command(
    name: "search", summary: "find messages by their words, Chinese too, of one character and more",
    options: [
      .value("channel", "ID", "only in this channel"), .value("sender", "ID", "only of this user"),
      .value("limit", "N", "at most so many hits (default 50)"), Command.json,
    ] + times, operands: ["archive", "words"],
    examples: [
      "unifiedchat archive search rescue.uchat 发票", "unifiedchat archive search rescue.uchat \"invoice march\" --sender bob",
    ],
    details: "All words must occur in a message, in any order and case. Exit code 1 when nothing is found.",
    run: runSearch)

  private static func runSearch(_ invocation: Invocation) async throws -> ExitCode {
    let archive = try Archive.open(at: invocation.operands[0], checks: false)
    let query = ArchiveQuery(
      text: invocation.operands[1], channel: invocation.value("channel").map { ChannelID($0) },
      sender: invocation.value("sender").map { UserID($0) }, since: try FilterOptions.time("since", invocation),
      until: try FilterOptions.time("until", invocation))
    guard !query.words.isEmpty else { throw Failure(.usage, "archive search needs a word to look for") }
    let hits = try await archive.search(query, limit: try invocation.integer("limit", in: 1...1_000_000) ?? 50)
    for hit in hits {
      Standard.line(
        invocation.json ? hit.message.json().text() : "\(MessageText.safe("\(hit.channel)"))  \(MessageText.line(hit.message))")
    }
    return hits.isEmpty ? .different : .success
  }
}
