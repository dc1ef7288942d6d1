import ChatJSON
import ChatMigration
import Foundation
import UnifiedChat

/// `unifiedchat migrate follow`
enum MigrateFollow {
  static let command = Command(
    name: "follow", summary: "keep the destination up to date until people are moved over",
    options: MigrateCommands.ends + [
      .value(
        "cut-over", "FILE", "once this file exists, nobody writes at the source any more: look through all of it, verify, end",
        required: true),
      .value("every", "SECONDS", "between two looks (default 10)"),
      .value("reread-every", "N", "each N-th look reads everything again: edits, deletions, read marks (default 30)"),
    ] + MigrateCommands.writing + MigrateCommands.reports,
    examples: [
      "unifiedchat migrate follow --from leancloud --to openim --cut-over /tmp/moved",
      "touch /tmp/moved   # in another terminal, once no app writes at the source any more",
    ],
    details: "One line a look: how far the destination was behind. Ends with a look that finds nothing, and the "
      + "verification; exit code 0 only if all is there.", run: execute)

  private static func execute(_ invocation: Invocation) async throws -> ExitCode {
    let run = try MigrateCommands.make(invocation)
    guard run.hasSource else {
      throw Failure(.usage, "migrate follow needs a profile as --from: an archive does not change by itself")
    }
    let signal = invocation.value("cut-over") ?? ""
    let isJSON = invocation.json
    let options = FollowOptions(
      interval: .seconds(try invocation.integer("every", in: 0...86_400) ?? 10),
      passesPerRereading: try invocation.integer("reread-every", in: 1...1_000_000) ?? 30
    ) { FileManager.default.fileExists(atPath: signal) }
    let report = try await MigrateCommands.resumable("migrate follow") {
      try await Running.interruptible(run.progress) {
        try await run.follow(options) { pass in Standard.line(isJSON ? json(pass).text() : text(pass)) }
      }
    }
    for file in invocation.all("report") { try MigrateCommands.write(report, to: file) }
    Standard.line(isJSON ? report.json().text() : "cut over: lag 0, verified. \(report.sentence)")
    return report.isPerfect ? .success : .different
  }

  private static func text(_ pass: FollowPass) -> String {
    "\(pass.at)  look \(pass.number)\(pass.isWhole ? " through everything" : ""): lag \(pass.lag) "
      + "(\(pass.new) new, \(pass.changed) changed, \(pass.removed) removed)"
  }

  private static func json(_ pass: FollowPass) -> JSONValue {
    [
      "look": JSONValue(pass.number), "at": .int(pass.at.milliseconds), "lag": JSONValue(pass.lag),
      "new": JSONValue(pass.new), "changed": JSONValue(pass.changed), "removed": JSONValue(pass.removed),
      "whole": .bool(pass.isWhole), "cutOver": .bool(pass.isCutOver),
    ]
  }
}

/// `unifiedchat migrate rollback`
enum MigrateRollback {
  static let command = Command(
    name: "rollback", summary: "remove from the destination what this ledger's runs made there, and nothing else",
    options: MigrateCommands.ends + [
      .flag("yes", "do it; without it, only tell what would go"), .flag("keep-users", "leave the accounts"),
      .value("audit", "FILE", "append one JSON line for each removal"), Command.json,
    ],
    examples: ["unifiedchat migrate rollback --from rescue.uchat --to openim --yes"],
    details: "What was there before the first run stays: channels, messages and accounts that no run of this ledger "
      + "made.", run: execute)

  private static func execute(_ invocation: Invocation) async throws -> ExitCode {
    let run = try MigrateCommands.make(invocation)
    guard invocation.has("yes") else {
      let counts = try await run.own()
      Standard.line(
        invocation.json
          ? JSONValue.object(["channels": JSONValue(counts.channels), "messages": JSONValue(counts.messages),
            "users": JSONValue(counts.users)]).text()
          : "would remove \(counts.channels) channels, \(counts.messages) messages and \(counts.users) accounts; "
            + "say --yes to do it; what the service cannot remove is told then")
      return .success
    }
    let keepsUsers = invocation.has("keep-users")
    let summary = try await MigrateCommands.resumable("migrate rollback") {
      try await Running.interruptible(run.progress) { try await run.rollback(keepsUsers: keepsUsers) }
    }
    Standard.line(invocation.json ? json(summary).text() : text(summary))
    return summary.isComplete ? .success : .different
  }

  private static func text(_ summary: RollbackSummary) -> String {
    var lines = [
      "removed \(summary.channels) channels with all that was in them, \(summary.messages) other messages and "
        + "\(summary.users) accounts"
    ]
    lines += summary.left.map { "left: \($0)" }
    lines.append(summary.isComplete ? "nothing of the run is left" : "\(summary.leftCount) things could not be removed")
    return lines.joined(separator: "\n")
  }

  private static func json(_ summary: RollbackSummary) -> JSONValue {
    [
      "channels": JSONValue(summary.channels), "messages": JSONValue(summary.messages),
      "users": JSONValue(summary.users), "left": .array(summary.left.map { .string($0) }),
      "leftCount": JSONValue(summary.leftCount), "complete": .bool(summary.isComplete),
    ]
  }
}
