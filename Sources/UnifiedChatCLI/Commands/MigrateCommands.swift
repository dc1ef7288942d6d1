import ChatJSON
import ChatMigration
import Foundation
import UnifiedChat

/// `unifiedchat migrate …`
enum MigrateCommands {
  static let command = Command(
    name: "migrate", summary: "move an archive, or a whole app, to another vendor",
    children: [plan, run, resume, MigrateFollow.command, MigrateRollback.command, report])

  /// From where to where.
  static let ends: [OptionSpec] = [
    Settings.configOption,
    .value("from", "ARCHIVE|PROFILE", "an archive, or a profile that is pulled first", required: true),
    .value("to", "PROFILE", "the profile that is written", required: true),
    .value("archive", "FILE", "the archive in between, when --from is a profile (default <profile>.uchat)"),
    .value("ledger", "FILE", "what is confirmed (default <archive>.<vendor>.ledger)"),
    Settings.trustOption,
  ]

  static let writing: [OptionSpec] =
    [
      .value("parallel", "N", "channels at once (default: the destination's)"),
      .flag("into-existing", "write beside channels that the destination holds already"),
      .flag("share", "let other processes that say so work on the same ledger at once"),
      .value("audit", "FILE", "append one JSON line for each write: which item, to where, how it ended"),
    ] + MigrateOptions.mapping + FilterOptions.specs + MigrateOptions.limits

  static let reports: [OptionSpec] = [
    .value("report", "FILE", "write the fidelity report (.json, .md or .html)", repeatable: true), Command.json,
  ]

  private static let runOptions =
    ends + [
      .flag("delta", "read the source again from its start: what is new, edited, recalled, deleted, read or left"),
      .flag("no-verify", "do not read the destination back"),
    ] + writing + reports

  private static let plan = Command(
    name: "plan", summary: "what would cross, what would not, and how long it takes; writes nothing",
    options: ends + MigrateOptions.mapping + FilterOptions.specs + [
      .value("report", "FILE", "write the plan to a file too (.json, .md or .html)", repeatable: true), Command.json,
    ],
    examples: [
      "unifiedchat migrate plan --from rescue.uchat --to openim",
      "unifiedchat migrate plan --from rescue.uchat --to openim --report plan.html",
    ]
  ) { invocation in
    let run = try make(invocation)
    try await requireKnownChannels(invocation, run)
    let plan = try await Running.interruptible(run.progress) { try await run.plan() }
    for file in invocation.all("report") {
      try write(plan.json(), html: plan.html(), markdown: plan.markdown(), to: file)
    }
    Standard.line(invocation.json ? plan.json().text() : plan.words())
    return .success
  }

  private static let run = Command(
    name: "run", summary: "pull if needed, load, verify; killed or not, run it again and it goes on",
    options: runOptions,
    examples: [
      "unifiedchat migrate run --from rescue.uchat --to openim --report report.html",
      "unifiedchat migrate run --from leancloud --to sendbird",
      "unifiedchat migrate run --from leancloud --to sendbird --delta",
      "unifiedchat migrate run --from rescue.uchat --to openim --users ids.csv --exclude-user spammer",
    ], run: execute)

  private static let resume = Command(
    name: "resume", summary: "the same as run, for those who look for it", options: runOptions,
    examples: ["unifiedchat migrate resume --from rescue.uchat --to openim"], run: execute)

  private static func execute(_ invocation: Invocation) async throws -> ExitCode {
    let run = try make(invocation)
    try await requireKnownChannels(invocation, run)
    let report = try await resumable("migrate resume") {
      try await Running.interruptible(run.progress) { try await run.run() }
    }
    return try finish(report, invocation)
  }

  private static let report = Command(
    name: "report", summary: "the fidelity report again, with what the last verification found; asks nobody",
    options: ends + reports,
    examples: ["unifiedchat migrate report --from rescue.uchat --to openim --report report.html --report report.md"]
  ) { invocation in
    let run = try make(invocation)
    return try finish(try await run.report(), invocation)
  }

  // MARK: Parts

  /// What a source holds is known when it has been read.
  private static func requireKnownChannels(_ invocation: Invocation, _ run: MigrationRun) async throws {
    if !run.hasSource { try await FilterOptions.requireKnownChannels(invocation, in: run.archivePath) }
  }

  /// Tells how to go on when `body` was stopped.
  static func resumable<Value>(_ command: String, _ body: () async throws -> Value) async throws -> Value {
    do { return try await body() } catch let error as ChatError where error.kind == .cancelled {
      let reason = error.detail.isEmpty ? "interrupted; what was confirmed is kept" : error.detail
      throw Failure(.interrupted, "\(reason); go on with: \(again(command))")
    }
  }

  /// The command line as it was given, with another command.
  private static func again(_ command: String) -> String {
    let words = CommandLine.arguments.dropFirst(3).map { word in
      let isPlain = word.allSatisfy { $0.isLetter || $0.isNumber || "-_./=:@,".contains($0) } && !word.isEmpty
      return isPlain ? word : "'" + word.replacingOccurrences(of: "'", with: "'\\''") + "'"
    }
    return (["unifiedchat", command] + words).joined(separator: " ")
  }

  static func finish(_ report: FidelityReport, _ invocation: Invocation) throws -> ExitCode {
    for file in invocation.all("report") { try write(report, to: file) }
    Standard.line(invocation.json ? report.json().text() : report.words())
    return report.isGood ? .success : .different
  }

  static func write(_ report: FidelityReport, to file: String) throws {
    try write(report.json(), html: report.html(), markdown: report.markdown(), to: file)
  }

  private static func write(
    _ json: @autoclosure () -> JSONValue, html: @autoclosure () -> String, markdown: @autoclosure () -> String,
    to file: String
  ) throws {
    switch (file as NSString).pathExtension {
    case "json": try Files.write(json().bytes() + [0x0A], to: file)
    case "html": try Files.write(Array(html().utf8), to: file)
    case "md": try Files.write(Array(markdown().utf8), to: file)
    default: throw wrongEnding(file)
    }
  }

  /// To be asked before long work: every report has an ending that is known and a place where it can be written.
  static func requireReports(_ invocation: Invocation) throws {
    for file in invocation.all("report") {
      guard ["json", "html", "md"].contains((file as NSString).pathExtension) else { throw wrongEnding(file) }
      try Files.requireWritable(file)
    }
  }

  private static func wrongEnding(_ file: String) -> Failure {
    Failure(.usage, "--report takes a name that ends with .json, .md or .html, not \"\(file)\"")
  }

  static func make(_ invocation: Invocation) throws -> MigrationRun {
    try requireReports(invocation)
    let settings = try Settings(invocation)
    let target = try settings.profile(named: invocation.value("to"))
    let from = invocation.value("from") ?? ""
    var options = MigrationOptions(
      verifies: !invocation.has("no-verify") && !invocation.has("share"),
      refusesNonEmpty: !invocation.has("into-existing"), sharesLedger: invocation.has("share"),
      auditPath: invocation.value("audit"))
    options.trustsUnsignedEnvelopes = invocation.has(Settings.trustOption.name)
    options.extraction.rereads = invocation.has("delta")
    options.load.users = try MigrateOptions.users(invocation)
    options.load.rules = try MigrateOptions.rules(invocation)
    // What is not wanted does not come into the archive either.
    options.extraction.filter = try FilterOptions.filter(invocation)
    options.load.limits = try MigrateOptions.limits(invocation)
    if let parallel = try invocation.integer("parallel", in: 1...64) {
      options.extraction.parallelChannels = parallel
      options.load.parallelChannels = parallel
    }
    let readBack = try settings.source(target)
    if let profile = settings.configuration.profiles[from] {
      guard profile.name != target.name else { throw Failure(.usage, "--from and --to name the same profile") }
      return MigrationRun(
        source: try settings.source(profile), app: profile.appID,
        archive: invocation.value("archive") ?? "\(from).uchat", destination: try settings.destination(target),
        readBack: readBack, ledger: invocation.value("ledger"), options: options, tool: ArchiveCommands.tool)
    }
    guard FileManager.default.fileExists(atPath: from) else {
      let near = Nearest.name(to: from, among: settings.configuration.profiles.keys.sorted())
      throw Failure(
        .configuration,
        "--from \(from): neither a file nor a profile" + (near.map { "; did you mean the profile \"\($0)\"?" } ?? ""))
    }
    guard !invocation.has("delta") else {
      throw Failure(.usage, "--delta needs a profile as --from: an archive does not change by itself")
    }
    return MigrationRun(
      archive: from, destination: try settings.destination(target), readBack: readBack,
      ledger: invocation.value("ledger"), options: options, tool: ArchiveCommands.tool)
  }
}
