import AllAdapters
import ChatClient
import UnifiedChat

/// Says hello to bob and shows what was said: the same program for every vendor. `use` in unifiedchat.json decides.
@main
struct HelloChat {
  static func main() async throws {
    let configuration = try ConfigurationFile.load(path: "unifiedchat.json", registry: AllAdapters.registry())
    let chat = try Chat(configuration: configuration, registry: AllAdapters.registry())
    let me = try await chat.connect(as: "alice")
    let channel = try await chat.createChannel(.direct(with: "bob"))

    let sent = try await chat.send(.text("Hello from \(me.id) on \(chat.vendor)"), to: channel.id)
    print("sent \(sent.id ?? "?") at \(sent.createdAt)")
    for message in try await chat.history(of: channel.id, .newest(10)).messages {
      if case .text(let text) = message.content { print("\(message.sender ?? "?"): \(text)") }
    }
    await chat.disconnect()
  }
}
