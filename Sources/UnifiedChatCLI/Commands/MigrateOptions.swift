import ChatMigration
import Foundation
import UnifiedChat

/// What decides how an archive is written: mapping, choices and limits.
enum MigrateOptions {
  static let mapping: [OptionSpec] = [
    .value("users", "FILE", "ids of users at the destination: old,new a line, or a JSON object"),
    .value("user-rule", "s/PATTERN/NEW/", "ids of the other users, by a regular expression; $1 is the first group"),
    .value("channels", "FILE", "ids of channels at the destination, as with --users"),
    .value("role", "OLD=NEW", "another role: owner, admin, member, or a vendor's own", repeatable: true),
    .value("attachments", "CHOICE", "store them at the destination, or leave them where they are",
      choices: LoadRules.Attachments.allCases.map(\.rawValue)),
    .value("reactions", "CHOICE", "keep them with their message, or make each a message that answers it",
      choices: LoadRules.Reactions.allCases.map(\.rawValue)),
    .value("system", "CHOICE", "notices of the service: keep them, write each as a text, or leave them out",
      choices: LoadRules.SystemMessages.allCases.map(\.rawValue)),
    .flag("keep-mentions", "leave @id in texts as it is, even where the id changes"),
  ]

  static let limits: [OptionSpec] = [
    .value("max-users", "N", "stop after so many users; the next run goes on"),
    .value("max-channels", "N", "stop after so many new channels"),
    .value("max-messages", "N", "stop after so many messages"),
    .value("max-bytes", "N", "stop before more bytes of attachments are stored"),
    .value("max-seconds", "N", "stop after so long"),
  ]

  static func users(_ invocation: Invocation) throws -> UserMapping {
    var users = UserMapping()
    if let path = invocation.value("users") {
      for (old, new) in try MappingFile.read(path) { users.explicit[UserID(old)] = UserID(new) }
    }
    if let text = invocation.value("user-rule") { users.rule = try rule(text) }
    return users
  }

  /// As of sed: the character after `s` parts the rest.
  private static func rule(_ text: String) throws -> UserMapping.Rule {
    let wrong = Failure(.usage, "--user-rule takes s/PATTERN/NEW/, not \"\(text)\"")
    guard text.first == "s", let mark = text.dropFirst().first else { throw wrong }
    let parts = text.dropFirst(2).split(separator: mark, omittingEmptySubsequences: false)
    guard parts.count == 3, parts[2].isEmpty, !parts[0].isEmpty else { throw wrong }
    do { return try UserMapping.Rule(pattern: String(parts[0]), template: String(parts[1])) } catch {
      throw Failure(.usage, "--user-rule: \"\(parts[0])\" is no regular expression")
    }
  }

  /// nil when nothing is said: the ledger's rules then hold.
  static func rules(_ invocation: Invocation) throws -> LoadRules? {
    let names = FilterOptions.specs.map(\.name) + ["channels", "role", "attachments", "reactions", "system", "keep-mentions"]
    guard names.contains(where: invocation.has) else { return nil }
    var rules = LoadRules(filter: try FilterOptions.filter(invocation))
    if let path = invocation.value("channels") {
      for (old, new) in try MappingFile.read(path) { rules.channels[ChannelID(old)] = ChannelID(new) }
    }
    for text in invocation.all("role") {
      let parts = text.split(separator: "=", omittingEmptySubsequences: false).map(String.init)
      guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }) else {
        throw Failure(.usage, "--role takes OLD=NEW, not \"\(text)\"")
      }
      rules.roles[parts[0]] = parts[1]
    }
    if let choice = invocation.value("attachments") { rules.attachments = LoadRules.Attachments(rawValue: choice) ?? .upload }
    if let choice = invocation.value("reactions") { rules.reactions = LoadRules.Reactions(rawValue: choice) ?? .data }
    if let choice = invocation.value("system") { rules.system = LoadRules.SystemMessages(rawValue: choice) ?? .notice }
    rules.rewritesMentions = !invocation.has("keep-mentions")
    return rules
  }

  static func limits(_ invocation: Invocation) throws -> RunLimits {
    func number(_ name: String) throws -> Int? { try invocation.integer(name, in: 1...(1 << 50)) }
    return RunLimits(
      users: try number("max-users"), channels: try number("max-channels"), messages: try number("max-messages"),
      bytes: try number("max-bytes").map(Int64.init), duration: try number("max-seconds").map { .seconds($0) })
  }
}
