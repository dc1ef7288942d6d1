import AllAdapters
import ChatEmulation
import ChatHarness
import ChatJSON
import ChatTransport
import UnifiedChat

/// A message from one client through the vendor's wire to another one, against a bare WebSocket echo, both on
/// loopback and through the same server. Time by the clock: both wait for sockets.
let roundTripBenchmarks: [Benchmark] = AllAdapters.emulators.map { factory in
  Benchmark(name: "roundtrip.\(factory.vendor)") { [try await compare(factory.vendor)] }
}

private let rounds = 400

private func compare(_ vendor: String) async throws -> Comparison {
  let chat = try await ChatPair(vendor: vendor)
  let echo = try await EchoPair()
  var ours: [Double] = []
  var theirs: [Double] = []
  for round in 0..<rounds + 50 {
    let mine = try await chat.roundTrip(round)
    let bare = try await echo.roundTrip()
    // The first ones warm up.
    if round >= 50 {
      ours.append(mine.seconds * 1e6)
      theirs.append(bare.seconds * 1e6)
    }
  }
  await chat.end()
  await echo.end()
  return Comparison(
    what: "send, ack and event over \(vendor)", peer: "bare WebSocket echo", ours: Measure.median(ours),
    theirs: Measure.median(theirs), unit: "µs", higherIsBetter: false, goal: 0.5)
}

/// Alice sends, bob hears.
private struct ChatPair {
  let harness: EmulatorHarness
  let alice: any ChatAdapter
  let bob: any ChatAdapter
  let channel: ChannelID
  let heard: ChatEventStream

  init(vendor: String) async throws {
    // As `unifiedchat emulate` and an app run it. The suite's journal would decode each frame a second time, and its
    // clock makes a task for each limit of time.
    harness = try await EmulatorHarness(
      vendor: vendor, model: nil, target: .loopback, seed: 1, limits: .off, clock: SystemClock(), journal: .off)
    let users = [try await harness.makeUser("alice"), try await harness.makeUser("bob")]
    alice = try await harness.makeAdapter(device: "a")
    bob = try await harness.makeAdapter(device: "b")
    _ = try await alice.connect(as: users[0].id, credential: users[0].credential)
    _ = try await bob.connect(as: users[1].id, credential: users[1].credential)
    heard = bob.events()
    channel = try await alice.createChannel(ChannelDraft(kind: .group, members: [users[1].id], name: "pair")).id
  }

  func roundTrip(_ number: Int) async throws -> Duration {
    let start = Measure.clock.now
    let id = ClientMessageID("benchmark-\(number)")
    let message = OutgoingMessage(
      channel: channel, localID: LocalID(id.rawValue), clientMessageID: id, draft: .text("message \(number)"))
    let sent = try await alice.send(message)
    for await event in heard {
      if case .messageReceived(let received) = event.kind, received.id == sent.id { break }
    }
    return Measure.clock.now - start
  }

  func end() async {
    await alice.disconnect()
    await bob.disconnect()
    await harness.cleanUp()
  }
}

/// One client, and a server that sends back what it gets.
private struct EchoPair {
  let server: EmulatorServer
  let connection: any WebSocketConnection

  init() async throws {
    server = try await EmulatorServer(EmulatorHost(EmulatorFactory(EchoMachine.self)))
    connection = try await Transports.system().webSocket.connect(
      WebSocketRequest("ws" + server.baseURL.dropFirst("http".count)))
  }

  func roundTrip() async throws -> Duration {
    let start = Measure.clock.now
    try await connection.send(.text("message"))
    _ = try await connection.receive()
    return Measure.clock.now - start
  }

  func end() async {
    await connection.close(code: 1000, reason: "")
    await server.stop()
  }
}

/// The least that a server can be.
struct EchoMachine: VendorEmulator {
  static let vendor = "echo"
  var baseURL: String

  init(options: EmulatorOptions) throws(EmulatorError) { baseURL = options.baseURL }

  mutating func handle(_ input: EmulatorInput, context: inout EmulatorContext) -> [EmulatorOutput] {
    switch input {
    case .http(let id, _): [.respond(id, HTTPResponse(status: 404))]
    case .open(let id, _): [.accept(id, subprotocol: nil)]
    case .message(let id, let message): [.send(id, message)]
    case .ping, .closed, .timer: []
    }
  }

  func operation(of input: EmulatorInput) -> EmulatorOperation { EmulatorOperation("other", vendorName: "echo") }
  func operation(of output: EmulatorOutput) -> EmulatorOperation { EmulatorOperation("other", vendorName: "echo") }

  mutating func perform(
    _ action: EmulatorAction, context: inout EmulatorContext
  ) throws(EmulatorError) -> [EmulatorOutput] {
    throw EmulatorError(.unsupported, "an echo has no users")
  }

  mutating func load(_ record: JSONValue, context: inout EmulatorContext) throws(EmulatorError) {
    throw EmulatorError(.unsupported, "an echo keeps nothing")
  }

  func records() -> [JSONValue] { [] }
  var coverage: [EmulatorCoverage] { [] }
  func snapshot() -> JSONValue { .null }
  mutating func restore(_ snapshot: JSONValue) throws(EmulatorError) {}
}
