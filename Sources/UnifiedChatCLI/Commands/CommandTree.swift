/// Every command, in the order of the help.
enum CommandTree {
  static let root = Command(
    name: "unifiedchat",
    summary: "one chat API above three vendors, and the tools to leave any of them",
    options: [.flag("version", "show the version")],
    examples: [
      "unifiedchat emulate --vendor sendbird --port 7001",
      "unifiedchat archive pull --profile leancloud --to rescue.uchat",
      "unifiedchat migrate run --from rescue.uchat --to openim",
      "unifiedchat verify --archive rescue.uchat --against openim",
    ],
    details: """
      Exit codes: 0 done · 1 not equal, or a case failed · 2 wrong arguments · 3 wrong configuration or input file · \
      4 the source failed · 5 the destination failed · 6 archive, cache or disk failed · 130 interrupted, and what was \
      confirmed is kept.
      """,
    children: [
      EmulateCommand.command, SeedCommand.command, ChatCommand.command, CacheCommands.command,
      ConformanceCommand.command,
      ArchiveCommands.command, MigrateCommands.command, VerifyCommand.command, CapabilitiesCommand.command,
      ConfigCommands.command, DemoCommand.command,
    ])
}
