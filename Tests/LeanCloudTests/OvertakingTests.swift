import ChatEmulation
import ChatTransport
import LeanCloudAdapter
import LeanCloudWire
import Synchronization
import Testing
import UnifiedChat

/// A socket on which one answer comes late: it is kept back until a certain push has been handed over.
///
/// A push can always be handled before the task that waits for an earlier answer goes on; here it is, once.
final class Overtaking: WebSocketClient {
  let inner: any WebSocketClient
  let codec: LeanCloudCodec
  let held: @Sendable (LeanCloudFrame) -> Bool
  let overtaking: @Sendable (LeanCloudFrame) -> Bool
  private let links = Mutex(0)

  init(
    inner: any WebSocketClient, codec: LeanCloudCodec, held: @escaping @Sendable (LeanCloudFrame) -> Bool,
    overtaking: @escaping @Sendable (LeanCloudFrame) -> Bool
  ) {
    self.inner = inner
    self.codec = codec
    self.held = held
    self.overtaking = overtaking
  }

  func connect(_ request: WebSocketRequest) async throws(TransportError) -> any WebSocketConnection {
    let link = try await inner.connect(request)
    let isFirst = links.withLock { links in
      links += 1
      return links == 1
    }
    return isFirst ? OvertakingLink(inner: link, client: self) : link
  }

  func frame(_ message: WebSocketMessage) -> LeanCloudFrame? {
    switch message {
    case .text(let text): try? codec.decode(.text(text))
    case .binary(let bytes): try? codec.decode(.binary(bytes))
    }
  }
}

actor OvertakingLink: WebSocketConnection {
  let inner: any WebSocketConnection
  let client: Overtaking
  nonisolated var subprotocol: String? { inner.subprotocol }
  private var kept: WebSocketMessage?
  private var isReleased = false
  private var isDone = false

  init(inner: any WebSocketConnection, client: Overtaking) {
    self.inner = inner
    self.client = client
  }

  func send(_ message: WebSocketMessage) async throws(TransportError) { try await inner.send(message) }
  func ping() async throws(TransportError) { try await inner.ping() }
  func close(code: UInt16, reason: String) async { await inner.close(code: code, reason: reason) }

  func receive() async throws(WebSocketClose) -> WebSocketMessage {
    if isReleased, let kept {
      self.kept = nil
      return kept
    }
    while true {
      let message = try await inner.receive()
      guard !isDone, let frame = client.frame(message) else { return message }
      if kept == nil, client.held(frame) {
        kept = message
        continue
      }
      if kept != nil, client.overtaking(frame) {
        isReleased = true
        isDone = true
      }
      return message
    }
  }
}

@Suite("A push that overtakes an answer", .timeLimit(.minutes(1)))
struct OvertakingTests {
  let bench: Bench

  init() throws { bench = try Bench() }

  func transports(
    _ codec: LeanCloudCodec, holding held: @escaping @Sendable (LeanCloudFrame) -> Bool,
    until overtaking: @escaping @Sendable (LeanCloudFrame) -> Bool
  ) -> Transports {
    Transports(
      http: bench.host.transports.http,
      webSocket: Overtaking(inner: bench.host.transports.webSocket, codec: codec, held: held, overtaking: overtaking))
  }

  func current(
    _ user: UserID, holding held: @escaping @Sendable (LeanCloudFrame) -> Bool,
    until overtaking: @escaping @Sendable (LeanCloudFrame) -> Bool
  ) async throws -> Client {
    let transports = transports(LeanCloudCodec(LeanCloudSubprotocol(.protobuf2)), holding: held, until: overtaking)
    let client = Client(
      adapter: try LeanCloudAdapter(profile: bench.profile(), environment: bench.environment(), transports: transports))
    _ = try await client.adapter.connect(as: user, credential: .none)
    return client
  }

  func first(
    _ user: UserID, holding held: @escaping @Sendable (LeanCloudFrame) -> Bool = { _ in false },
    until overtaking: @escaping @Sendable (LeanCloudFrame) -> Bool = { _ in false }
  ) async throws -> Client {
    let transports = transports(LeanCloudCodec(.unnamed), holding: held, until: overtaking)
    let client = Client(
      adapter: try LeanCloudPeerAdapter(
        profile: bench.profile(model: "session"), environment: bench.environment(), transports: transports))
    _ = try await client.adapter.connect(as: user, credential: .none)
    return client
  }

  func count(_ endpoint: String) async -> Int {
    await bench.host.coverage.first { $0.endpoint == endpoint }?.calls ?? 0
  }

  func calls(_ endpoint: String, reach number: Int) async {
    while await count(endpoint) < number { await Task.yield() }
  }

  static let isAck: @Sendable (LeanCloudFrame) -> Bool = { $0.command == "ack" }
  static let isReceipt: @Sendable (LeanCloudFrame) -> Bool = { $0.command == "rcp" }

  @Test(
    "a receipt before the send's own answer is told all the same", arguments: [LeanCloudModels.conversation, .session])
  func receipt(_ model: LeanCloudModels) async throws {
    let alice: Client
    let bob: Client
    switch model {
    case .conversation:
      alice = try await current("alice", holding: Self.isAck, until: Self.isReceipt)
      bob = try await bench.connect("bob")
    case .session:
      alice = try await first("alice", holding: Self.isAck, until: Self.isReceipt)
      bob = try await first("bob")
    }
    let channel = try await alice.adapter.createChannel(.direct(with: "bob"))
    // The ack of this send comes only after bob's receipt of it: without a peer that answers it would never end.
    let sent = try await alice.adapter.send(alice.text("hi", to: channel.id))
    #expect(await bob.nextMessage()?.id == sent.id)
    let delivered = await alice.next { event -> MessagePosition? in
      if case .deliveredChanged(channel.id, "bob", let position) = event.kind { position } else { nil }
    }
    #expect(delivered == sent.position)
  }

  enum LeanCloudModels: String, Sendable, CaseIterable { case conversation, session }

  @Test("an invitation before the answer to leaving is told", arguments: LeanCloudModels.allCases)
  func invitation(_ model: LeanCloudModels) async throws {
    let alice: Client
    let bob: Client
    let isJoined: @Sendable (LeanCloudFrame) -> Bool = { $0.operation == "joined" && $0.serial == nil }
    switch model {
    case .conversation:
      alice = try await bench.connect("alice")
      bob = try await current("bob", holding: { $0.operation == "removed" && $0.serial != nil }, until: isJoined)
    case .session:
      alice = try await first("alice")
      bob = try await first("bob", holding: { $0.operation == "left" && $0.serial != nil }, until: isJoined)
    }
    let channel = try await alice.adapter.createChannel(ChannelDraft(members: ["bob"], name: nil))
    let joined = await bob.next { if case .channelJoined(let channel) = $0.kind { channel.id } else { nil } }
    #expect(joined == channel.id)
    let adapter = bob.adapter
    async let leaving: Void = adapter.leave(channel.id)
    let left = await alice.next { if case .memberLeft(channel.id, "bob", _) = $0.kind { true } else { nil } }
    #expect(left == true)
    try await alice.adapter.invite(["bob"], to: channel.id)
    let again = await bob.next { if case .channelJoined(let channel) = $0.kind { channel.id } else { nil } }
    #expect(again == channel.id)
    try await leaving
  }

  @Test("a peer that comes while it is being subscribed to is told")
  func presence() async throws {
    let tom = try await first("Tom", holding: { $0.operation == "added" }, until: { $0.command == "presence" })
    let adapter = tom.adapter
    async let subscribing: Void = adapter.subscribePresence(of: ["Jerry"])
    // The server has the subscription before the peer comes.
    await calls("session/add", reach: 1)
    _ = try await first("Jerry")
    let presence = await tom.next {
      if case .presenceChanged("Jerry", let presence) = $0.kind { presence } else { nil }
    }
    #expect(presence == .online)
    try await subscribing
  }

  @Test("a server that asks to be left before the login's answer is left")
  func goaway() async throws {
    let transports = transports(
      LeanCloudCodec(LeanCloudSubprotocol(.protobuf2)), holding: { $0.operation == "opened" },
      until: { $0.command == "goaway" })
    let alice = Client(
      adapter: try LeanCloudAdapter(profile: bench.profile(), environment: bench.environment(), transports: transports))
    let adapter = alice.adapter
    async let connecting = adapter.connect(as: "alice", credential: .none)
    await calls("session/open", reach: 1)
    try await bench.host.control.perform(.goaway(user: "alice"))
    let states = await alice.next { if case .connectionChanged(.reconnecting) = $0.kind { true } else { nil } }
    #expect(states == true)
    _ = await alice.next { if case .connectionChanged(.connected) = $0.kind { true } else { nil } }
    #expect(await alice.adapter.state == .connected)
    _ = try await connecting
  }

  @Test("a message that comes before a read mark's own answer stays unread")
  func unread() async throws {
    // With the flag for the last message: that is what the mark asks for.
    let alice = try await current(
      "alice", holding: { $0.operation == "results" && $0["results"]?[0]?["msg_mid"] != nil },
      until: { $0.command == "direct" })
    let bob = try await bench.connect("bob")
    let channel = try await bob.adapter.createChannel(.direct(with: "alice"))
    _ = await alice.next { if case .channelJoined = $0.kind { true } else { nil } }
    _ = try await bob.adapter.send(bob.text("one", to: channel.id))
    #expect(text(await alice.nextMessage()) == "one")
    let adapter = alice.adapter
    let queries = await count("conv/query")
    async let marking: Void = adapter.markRead(channel.id, upTo: nil)
    await calls("conv/query", reach: queries + 1)
    _ = try await bob.adapter.send(bob.text("two", to: channel.id, id: "c-2"))
    #expect(text(await alice.nextMessage()) == "two")
    try await marking
    #expect(try await alice.adapter.channel(channel.id).unread.number == 1)
  }
}
