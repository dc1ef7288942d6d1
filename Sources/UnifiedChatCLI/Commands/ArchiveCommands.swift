import ChatJSON
import ChatMigration
import Foundation
import UnifiedChat

/// `unifiedchat archive …`
enum ArchiveCommands {
  static let command = Command(
    name: "archive", summary: "get everything out of a vendor into one file, and read that file",
    children: [pull, show, export, importing, verify])

  static let tool = "unifiedchat 0.1.0"

  private static let pull = Command(
    name: "pull", summary: "read everything of a profile's app into an archive; run again, it goes on",
    options: [
      Settings.configOption, Settings.profileOption,
      .value("to", "FILE", "the archive; a folder FILE.files beside it holds attachments", required: true),
      .value("channel", "ID", "only this channel", repeatable: true),
      .value("exclude-user", "ID", "nothing of this user", repeatable: true),
      .value("parallel", "N", "channels read at once (default 4)"),
      .flag("no-files", "leave attachments where they are"),
      .flag("refresh", "read on in a complete archive: what is new since"),
      .flag("check", "only show that keys and endpoints are right, and what is there"), Command.json,
    ],
    examples: [
      "unifiedchat archive pull --profile leancloud --to rescue.uchat",
      "unifiedchat archive pull --profile leancloud --to rescue.uchat --check",
    ], run: runPull)

  private static func runPull(_ invocation: Invocation) async throws -> ExitCode {
    let settings = try Settings(invocation)
    let profile = try settings.profile(named: invocation.value("profile"))
    let source = try settings.source(profile)
    if invocation.has("check") { return try await check(source, invocation) }
    let path = invocation.value("to") ?? ""
    let archive = try Archive.openOrCreate(
      at: path,
      Archive.Identity(
        id: UUID().uuidString.lowercased(), tool: tool, vendor: profile.vendor, app: profile.appID,
        createdAt: SystemClock().now))
    try await archive.require(vendor: profile.vendor, app: profile.appID)
    var options = ExtractionOptions(
      parallelChannels: try invocation.integer("parallel", in: 1...64) ?? 4,
      includesFiles: !invocation.has("no-files"), refreshes: invocation.has("refresh"))
    if invocation.has("channel") { options.filter.channels = Set(invocation.all("channel").map { ChannelID($0) }) }
    options.filter.excludedUsers = Set(invocation.all("exclude-user").map { UserID($0) })
    let reporter = ProgressReporter()
    let extractor = Extractor(source: source, archive: archive, options: options, progress: reporter)
    let summary = try await Running.interruptible(reporter) { try await extractor.run() }
    try await archive.close()
    if invocation.json {
      Standard.line(Self.json(summary).text())
    } else {
      let counts = summary.counts
      Standard.line(
        "\(path): \(counts.users) users, \(counts.channels) channels, \(counts.members) members, "
          + "\(counts.messages) messages, \(counts.files) files (\(counts.fileBytes) bytes), "
          + "\(counts.unreadable) unreadable; \(summary.newMessages) messages are new")
    }
    return .success
  }

  private static func check(_ source: any ChatSource, _ invocation: Invocation) async throws -> ExitCode {
    let check = try await source.check()
    func text(_ number: Int?) -> String { number.map(String.init) ?? "not told by the vendor" }
    Standard.line("keys and endpoints are right")
    Standard.line("users: \(text(check.users))")
    Standard.line("channels: \(text(check.channels))")
    Standard.line("messages: \(text(check.messages))")
    if let messages = check.messages, let rate = check.requestsPerSecond, rate > 0 {
      let seconds = Int((Double(messages) / 100 / rate).rounded(.up))
      Standard.line("a pull takes about \(ProgressLine.duration(max(1, seconds))) at \(rate) requests a second")
    }
    for note in check.notes { Standard.line("note: \(note)") }
    return .success
  }

  static func json(_ summary: ExtractionSummary) -> JSONValue {
    let counts = summary.counts
    return [
      "users": .int(Int64(counts.users)), "placeholders": .int(Int64(counts.placeholders)),
      "channels": .int(Int64(counts.channels)), "members": .int(Int64(counts.members)),
      "messages": .int(Int64(counts.messages)), "files": .int(Int64(counts.files)),
      "fileBytes": .int(counts.fileBytes), "unreadable": .int(Int64(counts.unreadable)),
      "newMessages": .int(Int64(summary.newMessages)), "digest": summary.digest.map { .string($0) } ?? .null,
    ]
  }

  private static let show = Command(
    name: "show", summary: "what an archive holds; with --channel, its messages",
    options: [
      .value("channel", "ID", "print the messages of this channel"),
      .value("limit", "N", "at most so many messages (default 50)"), Command.json,
    ], operands: ["archive"],
    examples: ["unifiedchat archive show rescue.uchat", "unifiedchat archive show rescue.uchat --channel 5f2c…"],
    run: runShow)

  private static func runShow(_ invocation: Invocation) async throws -> ExitCode {
    let archive = try Archive.open(at: invocation.operands[0])
    if let id = invocation.value("channel") {
      let limit = try invocation.integer("limit", in: 1...1_000_000) ?? 50
      return try await showMessages(ChannelID(id), archive, limit, invocation.json)
    }
    let identity = try await archive.identity()
    let counts = try await archive.counts()
    Standard.line("\(identity.vendor) app \(identity.app ?? "?"), taken by \(identity.tool) at \(identity.createdAt)")
    Standard.line(identity.completedAt.map { "complete since \($0)" } ?? "not complete: run archive pull again")
    Standard.line(
      "\(counts.users) users, \(counts.channels) channels, \(counts.members) members, \(counts.messages) messages, "
        + "\(counts.files) files (\(counts.fileBytes) bytes), \(counts.unreadable) unreadable")
    var table = Table(head: ["channel", "kind", "messages", "first", "last"])
    var after: Int64 = 0
    while true {
      let page = try await archive.channels(after: after, limit: 500)
      for channel in page {
        table.rows.append([
          channel.id.rawValue, channel.kind, channel.messages.map(String.init) ?? "",
          channel.firstAt?.description ?? "", channel.lastAt?.description ?? "",
        ])
      }
      guard let last = page.last else { break }
      after = last.ordinal
    }
    Standard.line(table.text)
    return .success
  }

  private static func showMessages(
    _ id: ChannelID, _ archive: Archive, _ limit: Int, _ json: Bool
  ) async throws -> ExitCode {
    guard let channel = try await archive.channel(id) else {
      throw Failure(.configuration, "\(archive.path) holds no channel \(id); archive show lists them")
    }
    for stored in try await archive.messages(in: channel.ordinal, limit: limit) {
      if json {
        Standard.line(stored.stored.json)
      } else {
        let message = try stored.stored.message().message
        Standard.line(MessageText.line(message))
      }
    }
    return .success
  }

  private static let export = Command(
    name: "export", summary: "write an archive as JSON Lines",
    options: [
      .value("to", "FILE", "the lines; FILE.manifest.json is written beside them", required: true),
      .flag("no-files", "leave the bytes of attachments out"),
    ], operands: ["archive"], examples: ["unifiedchat archive export rescue.uchat --to rescue.jsonl"]
  ) { invocation in
    let archive = try Archive.open(at: invocation.operands[0])
    let count = try await ArchiveLines.export(
      archive, to: invocation.value("to") ?? "", inlinesFiles: !invocation.has("no-files"))
    Standard.line("\(count) records written to \(invocation.value("to") ?? "")")
    return .success
  }

  private static let importing = Command(
    name: "import", summary: "make an archive of JSON Lines, or merge them into one",
    options: [
      .value("to", "FILE", "the archive", required: true),
      .value("vendor", "NAME", "where the records came from, when no manifest tells"),
    ], operands: ["lines"], examples: ["unifiedchat archive import rescue.jsonl --to copy.uchat"]
  ) { invocation in
    let now = SystemClock().now
    let identity = Archive.Identity(
      id: UUID().uuidString.lowercased(), tool: tool, vendor: VendorName(invocation.value("vendor") ?? "records"),
      app: nil, createdAt: now)
    let (archive, summary) = try await ArchiveLines.importing(
      invocation.operands[0], into: invocation.value("to") ?? "", identity, at: now)
    try await archive.close()
    Standard.line(
      "\(summary.lines) lines: \(summary.newMessages) new messages, \(summary.unreadable) unreadable")
    return summary.unreadable == 0 ? .success : .different
  }

  private static let verify = Command(
    name: "verify", summary: "prove that an archive is whole, or equal to a copy",
    options: [.value("copy", "FILE", "the archive that must be equal")], operands: ["archive"],
    examples: ["unifiedchat archive verify rescue.uchat", "unifiedchat archive verify rescue.uchat --copy backup.uchat"]
  ) { invocation in
    let archive = try Archive.open(at: invocation.operands[0])
    let copy = try invocation.value("copy").map { path throws(ChatError) in try Archive.open(at: path) }
    let verification = try await archive.verify(against: copy)
    for finding in verification.findings.prefix(100) { Standard.line("\(finding)") }
    guard verification.isWhole else {
      Standard.line("\(verification.findings.count) findings: the archive is not whole, or the copy is not equal")
      return .different
    }
    Standard.line(
      "\(verification.counts.messages) messages and \(verification.counts.files) files are whole"
        + (copy == nil ? "" : ", and the copy is equal") + "; digest \(verification.digest ?? "not sealed")")
    return .success
  }
}
