import ChatMigration
import UnifiedChat

/// `unifiedchat verify`
enum VerifyCommand {
  static let command = Command(
    name: "verify", summary: "read a destination back and compare it with the archive, field by field",
    options: [
      Settings.configOption,
      .value("archive", "FILE", "what must be there", required: true),
      .value("against", "PROFILE", "where it must be", required: true),
      .value("ledger", "FILE", "what was confirmed (default <archive>.<vendor>.ledger)"),
      .value("combined", "FILE", "write the sign of every item, one a line, to this file instead of the output"),
      Settings.trustOption,
      .flag("allow-extra", "messages that the archive does not have are no error: people write there already"),
    ] + MigrateCommands.reports,
    examples: [
      "unifiedchat verify --archive rescue.uchat --against openim",
      "unifiedchat verify --archive rescue.uchat --against openim --combined signs.txt --report report.html",
    ],
    details: "A sign for each channel, and for each item that is not equal: = equal, + missing at the destination, "
      + "- not in the archive, * different, ! could not be checked. What could not be checked is not verified. Exit code "
      + "0 only when all are equal.", run: run)

  private static func run(_ invocation: Invocation) async throws -> ExitCode {
    if let file = invocation.value("combined") {
      try Files.requireWritable(file)
      guard !invocation.json || !Files.isStandardOutput(file) else {
        throw Failure(.usage, "--json and --combined \(file) both want standard output; name a file for the signs")
      }
    }
    try MigrateCommands.requireReports(invocation)
    let settings = try Settings(invocation)
    let target = try settings.profile(named: invocation.value("against"))
    var options = MigrationOptions()
    options.trustsUnsignedEnvelopes = invocation.has(Settings.trustOption.name)
    options.verify.forbidsExtra = !invocation.has("allow-extra")
    let run = MigrationRun(
      archive: invocation.value("archive") ?? "", destination: try settings.destination(target),
      readBack: try settings.source(target), ledger: invocation.value("ledger"), options: options,
      tool: ArchiveCommands.tool)
    let report = try await Running.interruptible(run.progress) { try await run.verify() }
    let lines = report.verification.map(signs) ?? []
    if let file = invocation.value("combined") {
      try Files.write(Array(lines.map { $0 + "\n" }.joined().utf8), to: file)
    } else if !invocation.json {
      for line in lines { Standard.line(line) }
    }
    for file in invocation.all("report") { try MigrateCommands.write(report, to: file) }
    Standard.line(invocation.json ? report.json().text() : report.sentence)
    return report.isPerfect ? .success : .different
  }

  /// `sign path`, as copying tools print it; what is known of a difference follows after a tab.
  private static func signs(_ result: VerifyResult) -> [String] {
    var lines = result.userExamples.map {
      "\($0.sign.rawValue) users/\(MessageText.safe($0.id))\t\(MessageText.safe($0.what))"
    }
    for channel in result.channels {
      let name = MessageText.safe("\(channel.channel)")
      lines.append("\(channel.sign.rawValue) \(name)" + (channel.failure.map { "\t\(MessageText.safe($0))" } ?? ""))
      for finding in channel.examples {
        let place = finding.kind == "channel" ? "" : "/\(finding.kind)/\(MessageText.safe(finding.id))"
        lines.append("\(finding.sign.rawValue) \(name)\(place)\t\(MessageText.safe(finding.what))")
      }
    }
    return lines
  }
}
