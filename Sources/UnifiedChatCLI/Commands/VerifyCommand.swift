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
      .value("report", "FILE", "write the fidelity report (.json, .md or .html)", repeatable: true), Command.json,
    ],
    examples: ["unifiedchat verify --archive rescue.uchat --against openim"],
    details: "A sign for each channel: = equal, + missing at the destination, - not in the archive, * different, "
      + "! not verified. Exit code 0 only when all are equal.", run: run)

  private static func run(_ invocation: Invocation) async throws -> ExitCode {
    let settings = try Settings(invocation)
    let target = try settings.profile(named: invocation.value("against"))
    let run = MigrationRun(
      archive: invocation.value("archive") ?? "", destination: try settings.destination(target),
      readBack: try settings.source(target), ledger: invocation.value("ledger"), tool: ArchiveCommands.tool)
    let report = try await Running.interruptible(run.progress) { try await run.verify() }
    if !invocation.json {
      for channel in report.verification?.channels ?? [] { Standard.line("\(channel.sign.rawValue) \(channel.channel)") }
    }
    return try MigrateCommands.finish(report, invocation)
  }
}
