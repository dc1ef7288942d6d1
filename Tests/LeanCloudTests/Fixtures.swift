import ChatEmulation
import ChatJSON
import LeanCloudAdapter
import LeanCloudEmulator
import UnifiedChat

extension Bench {
  func profile(_ options: [String: JSONText] = [:], model: String? = nil) -> Profile {
    Profile(
      name: "test", vendor: "leancloud", model: model, appID: "emulated-app", endpoints: .init(api: Bench.base),
      options: options)
  }

  func environment(device: String = "device", credentials: (any CredentialProvider)? = nil) -> AdapterEnvironment {
    AdapterEnvironment(
      appKey: "app-key", adminSecret: "emulated-secret", clock: clock, credentials: credentials, device: device, seed: 1
    )
  }

  /// A connected adapter with a stream from before the connection.
  func connect(
    _ user: UserID, device: String = "device", _ options: [String: JSONText] = [:],
    credentials: (any CredentialProvider)? = nil
  ) async throws -> Client {
    let adapter = try LeanCloudAdapter(
      profile: profile(options), environment: environment(device: device, credentials: credentials),
      transports: host.transports)
    let client = Client(adapter: adapter)
    _ = try await adapter.connect(as: user, credential: .none)
    return client
  }

  func source() throws -> LeanCloudSource {
    try LeanCloudSource(profile: profile(), environment: environment(), transports: host.transports)
  }

  func destination() throws -> LeanCloudDestination {
    try LeanCloudDestination(profile: profile(), environment: environment(), transports: host.transports)
  }
}

/// An adapter and its events.
final class Client {
  let adapter: any ChatAdapter
  private var iterator: ChatEventStream.AsyncIterator

  init(adapter: any ChatAdapter) {
    self.adapter = adapter
    iterator = adapter.events().makeAsyncIterator()
  }

  /// The next event for which `read` gives a value.
  func next<Value>(_ read: (ChatEvent) -> Value?) async -> Value? {
    while let event = await iterator.next() {
      if let value = read(event) { return value }
    }
    return nil
  }

  func nextMessage() async -> Message? {
    await next { if case .messageReceived(let message) = $0.kind { message } else { nil } }
  }

  func text(_ text: String, to channel: ChannelID, id: String = "c-1") -> OutgoingMessage {
    OutgoingMessage(
      channel: channel, localID: LocalID(id), clientMessageID: ClientMessageID(id), draft: .text(text))
  }
}

func text(_ message: Message?) -> String? {
  if case .text(let text)? = message?.content { text } else { nil }
}
