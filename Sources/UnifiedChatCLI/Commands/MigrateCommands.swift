import ChatJSON
import ChatMigration
import Foundation
import UnifiedChat

/// `unifiedchat migrate …`
enum MigrateCommands {
  static let command = Command(
    name: "migrate", summary: "move an archive, or a whole app, to another vendor",
    children: [plan, run, resume])

  static let options: [OptionSpec] = [
    Settings.configOption,
    .value("from", "ARCHIVE|PROFILE", "an archive, or a profile that is pulled first", required: true),
    .value("to", "PROFILE", "the profile that is written", required: true),
    .value("archive", "FILE", "the archive in between, when --from is a profile (default <profile>.uchat)"),
    .value("ledger", "FILE", "what is confirmed (default <archive>.<vendor>.ledger)"),
    .value("parallel", "N", "channels at once (default: the destination's)"),
    .value("report", "FILE", "write the fidelity report (.json, .md or .html)", repeatable: true),
    .flag("no-verify", "do not read the destination back"), Command.json,
  ]

  private static let plan = Command(
    name: "plan", summary: "what would cross, what would not, and how long it takes; writes nothing",
    options: options.filter { !["report", "no-verify"].contains($0.name) },
    examples: ["unifiedchat migrate plan --from rescue.uchat --to openim"]
  ) { invocation in
    let run = try make(invocation)
    let plan = try await Running.interruptible(run.progress) { try await run.plan() }
    Standard.line(invocation.json ? plan.json().text() : text(plan))
    return .success
  }

  private static func text(_ plan: MigrationPlan) -> String {
    let kinds = plan.channelsByKind.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
    var lines = [
      "\(plan.source) to \(plan.destination): \(plan.users) users, \(plan.channels) channels (\(kinds)), "
        + "\(plan.members) members, \(plan.messages) messages, \(plan.attachments) attachments "
        + "(\(plan.attachmentBytes) bytes)",
      "\(plan.requests) requests, about \(ProgressLine.duration(Int(plan.estimate.components.seconds))) at "
        + "\(plan.requestsPerSecond) a second",
    ]
    if plan.unreadable > 0 { lines.append("\(plan.unreadable) items of the source could not be read") }
    for counted in plan.losses + plan.overLimit {
      lines.append(
        "\(counted.count) × \(counted.loss.field), \(counted.loss.treatment.rawValue): \(counted.loss.explanation)"
          + " (for example \(counted.examples.prefix(3).joined(separator: ", ")))")
    }
    return lines.joined(separator: "\n")
  }

  private static let run = Command(
    name: "run", summary: "pull if needed, load, verify; killed or not, run it again and it goes on", options: options,
    examples: [
      "unifiedchat migrate run --from rescue.uchat --to openim --report report.html",
      "unifiedchat migrate run --from leancloud --to sendbird",
    ], run: execute)

  private static let resume = Command(
    name: "resume", summary: "the same as run, for those who look for it", options: options,
    examples: ["unifiedchat migrate resume --from rescue.uchat --to openim"], run: execute)

  private static func execute(_ invocation: Invocation) async throws -> ExitCode {
    let run = try make(invocation)
    let report = try await Running.interruptible(run.progress) { try await run.run() }
    return try finish(report, invocation)
  }

  static func finish(_ report: FidelityReport, _ invocation: Invocation) throws -> ExitCode {
    for file in invocation.all("report") { try write(report, to: file) }
    Standard.line(invocation.json ? report.json().text() : report.markdown())
    return report.isPerfect ? .success : .different
  }

  private static func write(_ report: FidelityReport, to file: String) throws {
    switch (file as NSString).pathExtension {
    case "json": try Files.write(report.json().bytes() + [0x0A], to: file)
    case "html": try Files.write(Array(report.html().utf8), to: file)
    case "md": try Files.write(Array(report.markdown().utf8), to: file)
    default: throw Failure(.usage, "--report takes a name that ends with .json, .md or .html, not \"\(file)\"")
    }
  }

  static func make(_ invocation: Invocation) throws -> MigrationRun {
    let settings = try Settings(invocation)
    let target = try settings.profile(named: invocation.value("to"))
    let from = invocation.value("from") ?? ""
    var options = MigrationOptions()
    if let parallel = try invocation.integer("parallel", in: 1...64) {
      options.extraction.parallelChannels = parallel
      options.load.parallelChannels = parallel
    }
    let verifies = !invocation.has("no-verify")
    let readBack = verifies ? try settings.source(target) : nil
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
    return MigrationRun(
      archive: from, destination: try settings.destination(target), readBack: readBack,
      ledger: invocation.value("ledger"), options: options, tool: ArchiveCommands.tool)
  }
}
