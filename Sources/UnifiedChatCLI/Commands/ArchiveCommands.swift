import ChatJSON
import ChatMigration
import Foundation
import UnifiedChat

/// `unifiedchat archive …`
enum ArchiveCommands {
  static let command = Command(
    name: "archive", summary: "get everything out of a vendor into one file, and read that file",
    children: [
      pull, ArchiveReading.show, ArchiveReading.search, ArchiveWriting.export, ArchiveWriting.importing,
      ArchiveWriting.redact, verify,
    ])

  static let tool = "unifiedchat \(Program.version)"

  private static let pull = Command(
    name: "pull", summary: "read everything of a profile's app into an archive; run again, it goes on",
    options: [
      Settings.configOption, Settings.profileOption,
      .value("to", "FILE", "the archive; a folder FILE.files beside it holds attachments", required: true),
      .value("parallel", "N", "channels read at once (default 4)"),
      .flag("no-files", "leave attachments where they are"),
      .flag("refresh", "read on in a complete archive: what is new since"),
      .flag("delta", "read a complete archive's source again: what is new, edited, recalled, deleted, read or left"),
      .flag("check", "only show that keys and endpoints are right, and what is there"), Settings.trustOption,
      Command.json,
    ] + FilterOptions.specs,
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
      includesFiles: !invocation.has("no-files"), refreshes: invocation.has("refresh"),
      rereads: invocation.has("delta"))
    options.filter = try FilterOptions.filter(invocation)
    let reporter = ProgressReporter()
    let extractor = Extractor(source: source, archive: archive, options: options, progress: reporter)
    let summary = try await MigrateCommands.resumable("archive pull") {
      try await Running.interruptible(reporter) { try await extractor.run() }
    }
    let others = try await Others(of: archive)
    try await archive.close()
    if invocation.json {
      Standard.line(Self.json(summary, others).text())
    } else {
      let counts = summary.counts
      Standard.line(
        "\(path): \(counts.users) users, \(counts.channels) channels, \(counts.members) members, "
          + "\(counts.messages) messages, \(counts.files) files (\(counts.fileBytes) bytes), "
          + "\(counts.unreadable) unreadable; \(summary.newMessages) messages are new, \(summary.changed) items changed, "
          + "\(summary.removed) are gone")
      for line in others.lines { Standard.line(line) }
    }
    tellEnvelopes(summary.counts.envelopes, in: path)
    return .success
  }

  /// What an archive keeps beside records, and what of the app is not in it.
  struct Others {
    private let rows: [VendorRowCount]
    private let notRead: [String]

    init(of archive: Archive) async throws(ChatError) {
      rows = try await archive.rowCounts()
      notRead = try await archive.leftOut()
    }

    var lines: [String] {
      let kinds = rows.map { "\($0.count) of \(MessageText.safe($0.kind))" }.joined(separator: ", ")
      return (rows.isEmpty ? [] : ["kept as the vendor gave it: \(kinds)"])
        + notRead.map { "not read: \(MessageText.safe($0))" }
    }

    var rowsJSON: JSONValue { .object(JSONObject(rows.map { ($0.kind, JSONValue($0.count)) })) }
    var notReadJSON: JSONValue { .array(notRead.map { .string($0) }) }
  }

  /// On standard error, where a script that reads the result still finds it alone.
  static func tellEnvelopes(_ count: Int, in path: String) {
    guard count > 0 else { return }
    Standard.error(
      "unifiedchat: \(count) envelopes of imports are not signed with this admin secret and stand in \(path) as their "
        + "writers' own data; a report of migrate lists them, archive pull --delta --trust-unsigned-envelopes believes them")
  }

  private static func check(_ source: any ChatSource, _ invocation: Invocation) async throws -> ExitCode {
    let check = try await source.check()
    let estimate = try await source.estimate()
    func text(_ number: Int?) -> String { number.map(String.init) ?? "not told by the vendor" }
    Standard.line("keys and endpoints are right")
    Standard.line("users: \(text(check.users))")
    Standard.line("channels: \(text(check.channels))")
    let seen = estimate.map { $0.isExact ? "\($0.messages)" : "about \($0.messages), from some looks; none are counted" }
    Standard.line("messages: \(check.messages.map(String.init) ?? seen ?? text(nil))")
    // Where the source cannot tell, a hundred messages a request are usual.
    if let requests = estimate.map({ Double($0.requests) }) ?? check.messages.map({ Double($0) / 100 }),
      let rate = check.requestsPerSecond, rate > 0
    {
      let time = ProgressLine.duration(Int(max(1, min(requests / rate, 1e15)).rounded(.up)))
      let number = estimate.map { "\($0.requests) requests, files not counted, " } ?? ""
      Standard.line("a pull takes about \(time): \(number)at \(rate) requests a second")
    }
    for note in check.notes + (estimate?.notes ?? []) { Standard.line("note: \(note)") }
    for thing in check.leftOut { Standard.line("not read: \(MessageText.safe(thing))") }
    return .success
  }

  private static func json(_ summary: ExtractionSummary, _ others: Others) -> JSONValue {
    let counts = summary.counts
    return [
      "users": .int(Int64(counts.users)), "placeholders": .int(Int64(counts.placeholders)),
      "channels": .int(Int64(counts.channels)), "members": .int(Int64(counts.members)),
      "messages": .int(Int64(counts.messages)), "files": .int(Int64(counts.files)),
      "fileBytes": .int(counts.fileBytes), "unreadable": .int(Int64(counts.unreadable)),
      "envelopes": .int(Int64(counts.envelopes)), "rows": others.rowsJSON,
      "notRead": others.notReadJSON, "newMessages": .int(Int64(summary.newMessages)),
      "changed": .int(Int64(summary.changed)), "removed": .int(Int64(summary.removed)), "digest": summary.digest.map { .string($0) } ?? .null,
    ]
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
