import ChatClient
import UnifiedChat

/// `unifiedchat chat`
enum ChatCommand {
  static let command = Command(
    name: "chat", summary: "chat from the terminal: lines in are sent, messages are printed",
    options: [
      Settings.configOption, Settings.profileOption,
      .value("as", "USER", "who speaks", required: true),
      .value("with", "USER", "the other one of a direct channel"),
      .value("channel", "ID", "a channel to speak in"),
      .value("history", "N", "messages shown first (default 20)"),
      Command.json,
    ],
    examples: [
      "unifiedchat chat --as alice --with bob", "echo hi | unifiedchat chat --as alice --channel sg_1",
      "unifiedchat chat --as alice --with bob --json < lines.txt",
    ],
    details: """
      A line is stored before it is sent: killed at any point and started again, it goes out once. With --json every \
      event is one JSON line, and a line of input counts as taken once its "pending" is printed. Input that is no \
      terminal ends with exit code 5 when a line of it was not done or not sent; while the service cannot be reached it \
      waits.

      \(ChatInput.guide)
      """,
    run: run)

  private static func run(_ invocation: Invocation) async throws -> ExitCode {
    guard invocation.has("with") != invocation.has("channel") else {
      throw Failure(.usage, "chat needs either --with USER or --channel ID")
    }
    let limit = try invocation.integer("history", in: 0...100_000) ?? 20
    let settings = try Settings(invocation)
    Secrets.warn(try settings.profile(named: invocation.value("profile")).credentials)
    let chat = try Chat(
      configuration: settings.configuration, registry: settings.registry, profile: invocation.value("profile"))
    let user = UserID(invocation.value("as") ?? "")
    let screen = ChatScreen(user: user, json: invocation.json)
    let room = ChatRoom(chat: chat, screen: screen, user: user)
    // Before the connect, so that what it brings is not missed.
    await room.listen()
    let events = chat.events()
    _ = try await chat.connect(as: user)
    // Lines cannot be printed in between later on: the history is shown once it is the present one.
    if limit > 0 { await caughtUp(events) }
    if let other = invocation.value("with") {
      try await room.enter(try await chat.createChannel(.direct(with: UserID(other))), history: limit)
    } else {
      try await room.enter(try await chat.channel(ChannelID(invocation.value("channel") ?? "")), history: limit)
    }
    screen.hint("type and press return; /help shows what else there is")
    for await line in ChatInput.lines() {
      guard try await room.take(line) else { break }
    }
    await room.finish()
    // A person has seen it; a script looks at the code.
    let failures = await room.failures
    return screen.isInteractive || failures == 0 ? .success : .destination
  }

  private static func caughtUp(_ events: ChatEventStream) async {
    for await event in events {
      switch event.kind {
      case .syncChanged(.upToDate), .syncChanged(.idle), .connectionChanged(.refused): return
      default: break
      }
    }
  }
}
