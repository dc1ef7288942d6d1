import ChatCache
import ChatClient
import ChatJSON
import UnifiedChat

/// `unifiedchat cache`
enum CacheCommands {
  private static let common = [
    Settings.configOption, Settings.profileOption, OptionSpec.value("as", "USER", "whose cache", required: true),
  ]
  private static let server = OptionSpec.flag("online", "compare with the server, message by message")

  static let command = Command(
    name: "cache", summary: "look into the cache of a user on this device, check it, mend it, empty it",
    examples: ["unifiedchat cache stats --as alice", "unifiedchat cache search --as alice 明天"],
    details: """
      Works without a connection, except with --online. The file belongs to one user of one app at one vendor; --profile \
      and --as name it.
      """,
    children: [
      Command(
        name: "stats", summary: "size, channels, messages, what is not sent and what is not known",
        options: common + [Command.json], examples: ["unifiedchat cache stats --as alice --json"], run: stats),
      Command(
        name: "verify", summary: "check the file, and with --online what it says against the server",
        options: common + [server, .value("channel", "ID", "this channel alone", repeatable: true), Command.json],
        examples: ["unifiedchat cache verify --as alice --online"],
        details: "Exit code 1: damaged, or not what the server has. Parts that were never read are told and are no fault.",
        run: verify),
      Command(
        name: "repair", summary: "make the search index anew, and with --online close every hole",
        options: common + [server, .value("channel", "ID", "this channel alone", repeatable: true), Command.json],
        examples: ["unifiedchat cache repair --as alice --online"],
        details: """
          A damaged file is set aside on opening, never deleted, and what can be read of unsent messages goes on in a new \
          one. Exit code 1: something was mended.
          """,
        run: repair),
      Command(
        name: "clear", summary: "remove everything of a user from this device",
        options: common + [.flag("yes", "do it, although unsent messages are lost")],
        examples: ["unifiedchat cache clear --as alice --yes"], run: clear),
      Command(
        name: "search", summary: "find messages that this device has",
        options: common + [
          .value("channel", "ID", "in this channel"), .value("from", "USER", "written by this user"),
          .value("kind", "KIND", "text, file, image and so on", repeatable: true),
          .value("order", "ORDER", "which first (default newest)", choices: ["newest", "oldest", "relevance"]),
          .value("limit", "N", "how many (default 20)"), Command.json,
        ],
        operands: ["WORDS"], examples: ["unifiedchat cache search --as alice --order relevance 明天"], run: search),
    ])

  /// The client of a command, its cache open; a file that does not exist is not made.
  private static func open(_ invocation: Invocation, connects: Bool = false) async throws -> (chat: Chat, user: UserID) {
    let settings = try Settings(invocation)
    let chat = try Chat(
      configuration: settings.configuration, registry: settings.registry, profile: invocation.value("profile"),
      options: ChatOptions(syncsChannels: false))
    let user = UserID(invocation.value("as") ?? "")
    guard await chat.hasCache(of: user) else {
      throw Failure(.storage, "there is no cache of \(user) for this profile: chat as \(user) first, or look at cache.directory")
    }
    if connects { _ = try await chat.connect(as: user) } else { try await chat.open(for: user) }
    if let recovery = await chat.cacheRecovery {
      Standard.error(
        "unifiedchat: the file was damaged; it lies at \(recovery.quarantined), \(recovery.savedMessages) unsent messages were saved")
    }
    return (chat, user)
  }

  // MARK: Commands

  private static func stats(_ invocation: Invocation) async throws -> ExitCode {
    let (chat, _) = try await open(invocation)
    let report = try await chat.cacheReport()
    if invocation.json {
      Standard.line(JSONValue.object(object(report)).text())
      return .success
    }
    Standard.line(
      "\(report.path ?? "memory"): \(report.bytes) bytes, schema \(report.schemaVersion), \(report.channels.count) channels, "
        + "\(report.messages) messages, \(report.unsent) unsent, \(report.gaps) holes")
    var table = Table(head: ["channel", "name", "messages", "unsent", "holes", "whole"])
    for part in report.channels {
      table.rows.append([
        MessageText.safe(part.id.rawValue), MessageText.safe(part.name ?? ""), "\(part.messages)", "\(part.unsent)", "\(part.gaps)",
        part.isWhole ? "yes" : "no",
      ])
    }
    Standard.line(table.text)
    return .success
  }

  private static func object(_ report: CacheReport) -> JSONObject {
    var object = JSONObject()
    object["path"] = report.path.map { .string($0) }
    object["bytes"] = .int(report.bytes)
    object["schemaVersion"] = .int(Int64(report.schemaVersion))
    object["integrity"] = .string(report.integrity)
    object["messages"] = .int(Int64(report.messages))
    object["unsent"] = .int(Int64(report.unsent))
    object["holes"] = .int(Int64(report.gaps))
    object["channels"] = .array(
      report.channels.map { part in
        var channel = JSONObject()
        channel["id"] = .string(part.id.rawValue)
        channel["name"] = part.name.map { .string($0) }
        channel["messages"] = .int(Int64(part.messages))
        channel["unsent"] = .int(Int64(part.unsent))
        channel["holes"] = .int(Int64(part.gaps))
        channel["whole"] = .bool(part.isWhole)
        return .object(channel)
      })
    return object
  }

  private static func verify(_ invocation: Invocation) async throws -> ExitCode {
    let isOnline = invocation.has("online")
    let (chat, _) = try await open(invocation, connects: isOnline)
    let report = try await chat.cacheReport()
    let wasDamaged = await chat.cacheRecovery != nil
    var isGood = report.integrity == "ok" && !wasDamaged
    say(invocation, "file", isGood ? "ok" : (wasDamaged ? "was damaged and is set aside" : report.integrity))
    for part in chosen(report, invocation) {
      if !isOnline {
        if part.gaps > 0 { say(invocation, MessageText.safe(part.id.rawValue), "\(part.gaps) holes, to be filled when read") }
        continue
      }
      let difference = try await chat.compareWithServer(part.id)
      isGood = isGood && difference.isEqual
      say(
        invocation, MessageText.safe(part.id.rawValue),
        "\(difference.onServer) on the server, \(difference.missing.count) missing, \(difference.surplus.count) surplus, "
          + "\(difference.notFetched) not fetched yet")
    }
    await chat.disconnect()
    return isGood ? .success : .different
  }

  private static func repair(_ invocation: Invocation) async throws -> ExitCode {
    let isOnline = invocation.has("online")
    let (chat, _) = try await open(invocation, connects: isOnline)
    var mended = await chat.cacheRecovery == nil ? 0 : 1
    say(invocation, "search", "\(try await chat.rebuildSearchIndex()) messages in the index")
    let report = try await chat.cacheReport()
    if isOnline {
      for part in chosen(report, invocation) {
        let count = try await chat.repair(part.id)
        mended += count
        say(invocation, MessageText.safe(part.id.rawValue), count == 0 ? "nothing to mend" : "\(count) messages mended")
      }
    }
    await chat.disconnect()
    return mended == 0 ? .success : .different
  }

  private static func clear(_ invocation: Invocation) async throws -> ExitCode {
    let (chat, user) = try await open(invocation)
    let unsent = try await chat.unconfirmedCount()
    guard unsent == 0 || invocation.has("yes") else {
      throw Failure(.usage, "\(unsent) messages of \(user) are not sent yet and would be lost; say --yes")
    }
    try await chat.clearCachedData()
    Standard.line("nothing of \(user) is left here")
    return .success
  }

  private static func search(_ invocation: Invocation) async throws -> ExitCode {
    let (chat, user) = try await open(invocation)
    let orders: [String: CacheSearch.Order] = ["newest": .newestFirst, "oldest": .oldestFirst, "relevance": .relevance]
    let query = CacheSearch(
      invocation.operands.first ?? "", channel: invocation.value("channel").map { ChannelID($0) },
      sender: invocation.value("from").map { UserID($0) }, kinds: invocation.has("kind") ? Set(invocation.all("kind")) : nil,
      order: invocation.value("order").flatMap { orders[$0] } ?? .newestFirst,
      limit: try invocation.integer("limit", in: 1...10_000) ?? 20)
    let found = try await chat.searchCache(query)
    let screen = ChatScreen(user: user, json: invocation.json)
    let names = Dictionary(try await chat.cachedChannels().map { ($0.id, $0.name) }) { first, _ in first }
    for message in found.items {
      screen.hit(
        message, place: (names[message.channel] ?? nil) ?? message.channel.rawValue,
        ranges: query.highlights(in: message.content.searchableText ?? ""))
    }
    if found.items.isEmpty { Standard.error("nothing found") }
    return found.items.isEmpty ? .different : .success
  }

  private static func chosen(_ report: CacheReport, _ invocation: Invocation) -> [CacheReport.ChannelPart] {
    let wanted = Set(invocation.all("channel").map { ChannelID($0) })
    return wanted.isEmpty ? report.channels : report.channels.filter { wanted.contains($0.id) }
  }

  private static func say(_ invocation: Invocation, _ what: String, _ text: String) {
    if invocation.json {
      Standard.line(JSONValue.object(["what": .string(what), "result": .string(text)]).text())
    } else {
      Standard.line("\(what): \(text)")
    }
  }
}
