import ChatMigration
import Foundation
import UnifiedChat

/// `unifiedchat archive export`, `import` and `redact`
enum ArchiveWriting {
  static let export = Command(
    name: "export", summary: "write an archive as JSON Lines",
    options: [
      .value("to", "FILE", "the lines; FILE.manifest.json and FILE.rows.jsonl are written beside them", required: true),
      .flag("no-files", "leave the bytes of attachments out"),
    ], operands: ["archive"], examples: ["unifiedchat archive export rescue.uchat --to rescue.jsonl"]
  ) { invocation in
    let archive = try Archive.open(at: invocation.operands[0])
    let target = invocation.value("to") ?? ""
    guard !Files.isStandardOutput(target) else {
      throw Failure(.usage, "archive export writes two files, the lines and their manifest; name one with --to")
    }
    try Files.requireWritable(target)
    let inlinesFiles = !invocation.has("no-files")
    let exported = try await whole {
      try await ArchiveLines.export(archive, to: target, inlinesFiles: inlinesFiles)
    }
    Standard.line("\(exported.records) records written to \(target)")
    guard !exported.missingFiles.isEmpty else { return .success }
    Standard.error(
      "unifiedchat: \(exported.missingFiles.count) attachments are not there, the first is \(exported.missingFiles[0]); "
        + "put \(invocation.operands[0]).files beside the archive, or say --no-files")
    return .different
  }

  /// What appears when it is whole, or not at all.
  private static func whole<Value: Sendable>(
    _ body: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    do { return try await Running.interruptible(ProgressReporter(), body) } catch let error as ChatError
      where error.kind == .cancelled
    {
      throw Failure(.interrupted, "interrupted; nothing of it is left, run it again")
    }
  }

  static let importing = Command(
    name: "import", summary: "make an archive of JSON Lines or of a vendor's export files, or merge them into one",
    options: [
      .value("to", "FILE", "the archive", required: true),
      .value("export", "VENDOR", "the input is what this vendor's dashboard or its clients export or keep on devices: a file or a folder"),
      .value("vendor", "NAME", "where records came from, when no manifest tells"),
      Settings.configOption,
      .value("profile", "NAME", "with --export: whose admin secret checks what an import kept beside items"),
      Settings.trustOption,
    ], operands: ["input"],
    examples: [
      "unifiedchat archive import rescue.jsonl --to copy.uchat",
      "unifiedchat archive import leancloud-export/ --export leancloud --to rescue.uchat",
      "unifiedchat archive import phones/ --export leancloud --to rescue.uchat",
    ],
    details: "What an archive holds already stays as it is; older messages come before newer ones. What a device kept "
      + "yields to what the service told, and to a device that knows a later change. Devices' databases are copied, "
      + "never opened; leave a -wal beside its database.",
    run: runImport)

  private static func runImport(_ invocation: Invocation) async throws -> ExitCode {
    if let vendor = invocation.value("export") { return try await importExport(of: VendorName(vendor), invocation) }
    for name in ["profile", Settings.trustOption.name] where invocation.has(name) {
      throw Failure(.usage, "--\(name) goes with --export: records hold no envelopes")
    }
    let now = SystemClock().now
    let identity = Archive.Identity(
      id: UUID().uuidString.lowercased(), tool: ArchiveCommands.tool,
      vendor: VendorName(invocation.value("vendor") ?? "records"), app: nil, createdAt: now)
    let (archive, summary) = try await ArchiveLines.importing(
      invocation.operands[0], into: invocation.value("to") ?? "", identity, at: now)
    try await archive.close()
    Standard.line(
      "\(summary.lines) lines: \(summary.newMessages) new messages, \(summary.unreadable) unreadable"
        + (summary.rows == 0 ? "" : "; \(summary.rows) rows of the vendor's own"))
    return summary.unreadable == 0 ? .success : .different
  }

  private static func importExport(of vendor: VendorName, _ invocation: Invocation) async throws -> ExitCode {
    let registry = Settings.registry()
    guard let read = try registry.entry(for: vendor).readExport else {
      let known = registry.entries.filter { $0.readExport != nil }.map(\.vendor.rawValue)
      throw Failure(
        .usage, "nobody here reads exports of \(vendor)" + (known.isEmpty ? "" : "; known: \(known.joined(separator: ", "))"))
    }
    let source = try read(invocation.operands[0], environment(invocation))
    let check = try await source.check()
    let isEmpty = check.users == 0 && check.channels == 0 && check.messages == 0
    if isEmpty, try await source.rows(after: nil).items.isEmpty {
      throw Failure(.configuration, "\(invocation.operands[0]): holds no users, channels or messages of \(vendor)")
    }
    let archive = try Archive.openOrCreate(
      at: invocation.value("to") ?? "",
      Archive.Identity(
        id: UUID().uuidString.lowercased(), tool: ArchiveCommands.tool, vendor: vendor, app: nil,
        createdAt: SystemClock().now))
    try await archive.require(vendor: vendor, app: nil)
    let reporter = ProgressReporter()
    let summary = try await Running.interruptible(reporter) {
      try await archive.importing(source, progress: reporter)
    }
    try await archive.close()
    Standard.line(
      "new: \(summary.users) users, \(summary.channels) channels, \(summary.members) members, \(summary.messages) "
        + "messages, \(summary.rows) rows of the vendor's own; \(summary.unreadable) unreadable; messages of "
        + "\(summary.reordered) channels were put into order"
        + (summary.replaced == 0 ? "" : "; \(summary.replaced) took a better form"))
    for thing in check.leftOut { Standard.line("not read: \(MessageText.safe(thing))") }
    ArchiveCommands.tellEnvelopes(summary.envelopes, in: invocation.value("to") ?? "")
    return summary.unreadable == 0 ? .success : .different
  }

  /// Files need no account; a secret only checks signatures in them.
  private static func environment(_ invocation: Invocation) throws -> AdapterEnvironment {
    guard let name = invocation.value("profile") else {
      var environment = AdapterEnvironment()
      environment.trustsUnsignedEnvelopes = invocation.has(Settings.trustOption.name)
      return environment
    }
    let settings = try Settings(invocation)
    return try settings.environment(settings.profile(named: name), device: "export")
  }

  static let redact = Command(
    name: "redact", summary: "a copy of an archive without some users, or without what people wrote",
    options: [
      .value("to", "FILE", "the new archive", required: true),
      .value("drop-user", "ID", "leave out this user, their messages, and every mention of their id", repeatable: true),
      .flag("mask-bodies", "texts become as many dots; attachments and custom data go"),
    ], operands: ["archive"],
    examples: [
      "unifiedchat archive redact rescue.uchat --to without-bob.uchat --drop-user bob",
      "unifiedchat archive redact rescue.uchat --to shape.uchat --mask-bodies",
    ],
    details: "What the vendor sent beside the neutral form never comes along. A text of somebody else that names a "
      + "dropped user stays as it is."
  ) { invocation in
    let archive = try Archive.open(at: invocation.operands[0])
    let rules = RedactionRules(
      droppedUsers: Set(invocation.all("drop-user").map { UserID($0) }), masksBodies: invocation.has("mask-bodies"))
    guard rules != RedactionRules() else { throw Failure(.usage, "archive redact needs --drop-user ID or --mask-bodies") }
    let target = invocation.value("to") ?? ""
    let copy = try await whole {
      try await archive.redacted(to: target, rules, at: SystemClock().now)
    }
    let counts = try await copy.counts()
    try await copy.close()
    Standard.line(
      "\(invocation.value("to") ?? ""): \(counts.users) users, \(counts.channels) channels, \(counts.members) members, "
        + "\(counts.messages) messages, \(counts.files) files")
    return .success
  }
}
