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
  private let clock = ManualClock()

  private func service(_ vendor: String) async throws -> VendorService {
    let service = try VendorService(vendor, clock: clock, device: "phone")
    _ = try await service.destination().putUsers(["alice", "bob"].map { UserRecord(user: User(id: UserID($0), name: $0)) })
    return service
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
    let service = try await service(vendor)
    weak var adapter: AnyObject?
    do {
      let used = try service.adapter()
      adapter = used as AnyObject
      try await use(used, service, end)
      await used.disconnect()
    }
    while adapter != nil { await Task.yield() }
  }

  private func use(_ adapter: any ChatAdapter, _ service: VendorService, _ end: End) async throws {
    switch end {
    case .unused: return
    case .afterRefusal:
      _ = try? await adapter.connect(as: "alice", credential: .token("of nobody"))
      return
    case .afterUse, .whileReconnecting: break
    }
    let events = adapter.events()
    _ = try await adapter.connect(as: "alice", credential: try await service.credential(of: "alice"))
    let channel = try await adapter.createChannel(ChannelDraft(kind: .group, members: ["bob"], name: "room"))
    let message = OutgoingMessage(
      channel: channel.id, localID: "l", clientMessageID: "k", draft: MessageDraft(.text("hi")))
    _ = try await adapter.send(message)
    // Where the vendor has it; the adapter may wait to tell of its end.
    try? await adapter.setTyping(true, in: channel.id)
    guard end == .whileReconnecting else { return }
    try await EmulatorControl(service.host).act(.end(.abrupt), on: "alice")
    for await event in events {
      if case .connectionChanged(.reconnecting) = event.kind { break }
    }
  }

  @Test("a client with its cache, its listeners and its adapter", arguments: VendorService.names, [true, false])
  func client(_ vendor: String, isCut: Bool) async throws {
    let service = try await service(vendor)
    weak var client: Chat?
    weak var adapter: AnyObject?
    do {
      let inner = try service.adapter()
      let chat = Chat(adapter: inner, clock: clock)
      (client, adapter) = (chat, inner as AnyObject)
      let events = chat.events()
      _ = try await chat.connect(as: "alice", credential: try await service.credential(of: "alice"))
      let channel = try await chat.createChannel(ChannelDraft(kind: .group, members: ["bob"], name: "room"))
      _ = try await chat.send(.text("hi"), to: channel.id)
      _ = try await chat.history(of: channel.id, .newest(10))
      if isCut {
        try await EmulatorControl(service.host).act(.end(.abrupt), on: "alice")
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
