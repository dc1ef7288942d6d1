import ChatClient
import Foundation
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
    ],
    examples: ["unifiedchat chat --as alice --with bob", "echo hi | unifiedchat chat --as alice --channel sg_1"],
    run: run)

  private static func run(_ invocation: Invocation) async throws -> ExitCode {
    guard invocation.has("with") != invocation.has("channel") else {
      throw Failure(.usage, "chat needs either --with USER or --channel ID")
    }
    let settings = try Settings(invocation)
    let chat = try Chat(
      configuration: settings.configuration, registry: settings.registry, profile: invocation.value("profile"))
    let user = UserID(invocation.value("as") ?? "")
    _ = try await chat.connect(as: user)
    let channel: Channel
    if let other = invocation.value("with") {
      channel = try await chat.createChannel(.direct(with: UserID(other)))
    } else {
      channel = try await chat.channel(ChannelID(invocation.value("channel") ?? ""))
    }
    let events = chat.events()
    let limit = try invocation.integer("history", in: 1...10_000) ?? 20
    for message in try await chat.history(of: channel.id, .newest(limit)).messages {
      Standard.line(MessageText.line(message))
    }
    let printing = Task {
      for await event in events {
        switch event.kind {
        case .messageReceived(let message) where message.channel == channel.id:
          Standard.line(MessageText.line(message))
        case .messageRecalled(let message) where message.channel == channel.id:
          Standard.line(MessageText.line(message))
        case .connectionChanged(let state): Standard.error("connection: \(state)")
        default: break
        }
      }
    }
    for await line in Self.lines() where !line.isEmpty {
      let sent = try await chat.send(.text(line), to: channel.id)
      Standard.line(MessageText.line(sent))
    }
    printing.cancel()
    await chat.disconnect()
    return .success
  }

  /// Lines of standard input, read on a thread of their own: the read blocks until somebody types.
  private static func lines() -> AsyncStream<String> {
    AsyncStream { continuation in
      Thread.detachNewThread {
        while let line = readLine() { continuation.yield(line) }
        continuation.finish()
      }
    }
  }
}
