import AllAdapters
import ChatClient
import ChatEmulation
import ChatHarness
import ChatTransport
import Testing
import UnifiedChat

/// A task that outlives its owner holds it: what was let go would never be gone.
@Suite("What is disconnected and let go is gone, with all its tasks", .timeLimit(.minutes(1)))
struct OwnerTests {
  private struct Town {
    let host: EmulatorHost
    let entry: AdapterRegistry.Entry
    let profile: Profile
    let environment: AdapterEnvironment
    let clock = ManualClock()

    init(_ vendor: String) async throws {
      let options = EmulatorOptions(
        limits: .off, applicationID: "app", adminSecret: "secret", baseURL: "http://\(vendor).test")
      host = try EmulatorHost(try #require(AllAdapters.emulator(for: vendor)), options: options, clock: .shared(clock))
      entry = try AllAdapters.registry(transports: host.transports).entry(for: VendorName(vendor))
      profile = EmulatorHarness.profile(vendor: vendor, model: nil, baseURL: "http://\(vendor).test", applicationID: "app")
      environment = AdapterEnvironment(appKey: "key", adminSecret: "secret", clock: clock, device: "phone", seed: 1)
      let destination = try entry.makeDestination(profile, environment)
      _ = try await destination.putUsers(["alice", "bob"].map { UserRecord(user: User(id: UserID($0), name: $0)) })
    }

    func credential() async throws -> Credential { try await entry.issueCredential("alice", profile, environment) }
  }

  /// How a session comes to its end.
  enum End: CaseIterable, Sendable {
    /// After messages both ways, typing, a listener.
    case afterUse
    /// The link is gone, and the adapter waits to try again.
    case whileReconnecting
    /// The credential was refused.
    case afterRefusal
    case unused
  }

  @Test("an adapter", arguments: VendorService.names, End.allCases)
  func adapter(_ vendor: String, _ end: End) async throws {
    let town = try await Town(vendor)
    weak var adapter: AnyObject?
    do {
      let used = try town.entry.makeAdapter(town.profile, town.environment)
      adapter = used as AnyObject
      try await use(used, town, end)
      await used.disconnect()
    }
    while adapter != nil { await Task.yield() }
  }

  private func use(_ adapter: any ChatAdapter, _ town: Town, _ end: End) async throws {
    switch end {
    case .unused: return
    case .afterRefusal:
      _ = try? await adapter.connect(as: "alice", credential: .token("of nobody"))
      return
    case .afterUse, .whileReconnecting: break
    }
    let events = adapter.events()
    _ = try await adapter.connect(as: "alice", credential: try await town.credential())
    let channel = try await adapter.createChannel(ChannelDraft(kind: .group, members: ["bob"], name: "room"))
    let message = OutgoingMessage(
      channel: channel.id, localID: "l", clientMessageID: "k", draft: MessageDraft(.text("hi")))
    _ = try await adapter.send(message)
    // Where the vendor has it; the adapter may wait to tell of its end.
    try? await adapter.setTyping(true, in: channel.id)
    guard end == .whileReconnecting else { return }
    try await EmulatorControl(town.host).act(.end(.abrupt), on: "alice")
    for await event in events {
      if case .connectionChanged(.reconnecting) = event.kind { break }
    }
  }

  @Test("a client with its cache, its listeners and its adapter", arguments: VendorService.names, [true, false])
  func client(_ vendor: String, isCut: Bool) async throws {
    let town = try await Town(vendor)
    weak var client: Chat?
    weak var adapter: AnyObject?
    do {
      let inner = try town.entry.makeAdapter(town.profile, town.environment)
      let chat = Chat(adapter: inner, clock: town.clock)
      (client, adapter) = (chat, inner as AnyObject)
      let events = chat.events()
      _ = try await chat.connect(as: "alice", credential: try await town.credential())
      let channel = try await chat.createChannel(ChannelDraft(kind: .group, members: ["bob"], name: "room"))
      _ = try await chat.send(.text("hi"), to: channel.id)
      _ = try await chat.history(of: channel.id, .newest(10))
      if isCut {
        try await EmulatorControl(town.host).act(.end(.abrupt), on: "alice")
        for await event in events {
          if case .connectionChanged(.reconnecting) = event.kind { break }
        }
        try await chat.enqueue(.text("unsent"), to: channel.id)
      }
      await chat.disconnect()
    }
    while client != nil || adapter != nil { await Task.yield() }
  }
}
