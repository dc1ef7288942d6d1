import ChatEmulation
import ChatJSON
import ChatTransport
import Testing

@Suite("Faults that an emulator makes on demand")
struct FaultTests {
  let host: EmulatorHost
  var control: EmulatorControl { host.control }

  init() throws {
    host = try EmulatorHost(EmulatorFactory(EchoEmulator.self), clock: .virtual(start: 1_000_000), journal: .on)
  }

  func open(_ user: String) async throws -> any WebSocketConnection {
    let connection = try await host.transports.webSocket.connect(WebSocketRequest("ws://h/ws?user=\(user)"))
    #expect(try await connection.receive() == .text("hello \(user)"))
    return connection
  }

  func send(_ texts: String..., to connection: any WebSocketConnection) async throws {
    for text in texts { try await connection.send(.text(text)) }
  }

  /// What arrives until the text `end`, which is sent last.
  func rest(of connection: any WebSocketConnection) async throws -> [String] {
    await control.removeRules()
    try await connection.send(.text("end"))
    var texts: [String] = []
    while case .text(let text) = try await connection.receive(), text != "end" { texts.append(text) }
    return texts
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var title: String
    var rule: FaultRule
    /// Of the texts a, b, c, d that are sent and echoed.
    var echoes: [String]
    var testDescription: String { title }

    init(_ title: String, _ rule: FaultRule, _ echoes: String...) {
      self.title = title
      self.rule = rule
      self.echoes = echoes
    }
  }

  static let send = FaultRule.Match("send")
  static let ack = FaultRule.Match("ack")
  static let cases: [Case] = [
    Case("a dropped input", FaultRule(send, do: .drop, nth: 2), "a", "c", "d"),
    Case("a dropped reply", FaultRule(send, at: .afterCommit, do: .drop, nth: 2), "a", "c", "d"),
    Case("a dropped output", FaultRule(ack, do: .drop, nth: 3), "a", "b", "d"),
    Case("every second", FaultRule(send, do: .drop, every: 2, times: nil), "a", "c"),
    Case("from the second on, twice", FaultRule(send, do: .drop, from: 2, times: 2), "a", "d"),
    Case("at most twice", FaultRule(send, do: .drop, times: 2), "c", "d"),
    Case("by client id", FaultRule(.init("send", clientID: "c"), do: .drop, times: nil), "a", "b", "d"),
    Case("by user", FaultRule(.init("send", user: "bob"), do: .drop, times: nil, mustFire: false), "a", "b", "c", "d"),
    Case("a doubled input", FaultRule(send, do: .duplicate(), nth: 2), "a", "b", "b", "c", "d"),
    Case("a doubled output", FaultRule(ack, at: .beforePush, do: .duplicate(times: 2), nth: 4), "a", "b", "c", "d", "d", "d"),
    Case("outputs in another order", FaultRule(ack, do: .reorder(window: 3), times: 3), "c", "b", "a", "d"),
    Case("inputs in another order", FaultRule(send, do: .reorder(window: 2), times: 2), "b", "a", "c", "d"),
    Case("a refusal", FaultRule(send, do: .fail(EmulatorFailure("permission")), nth: 1), "refused permission", "b", "c", "d"),
    Case("a refusal after the commit", FaultRule(send, at: .afterCommit, do: .fail(EmulatorFailure("server")), nth: 4), "a", "b", "c", "refused server"),
    Case("a raw frame", FaultRule(send, do: .raw(.text("raw")), nth: 2), "a", "raw", "b", "c", "d"),
    Case("a shortened frame", FaultRule(ack, do: .truncateBody(0), nth: 1), "", "b", "c", "d"),
    Case("two actions", FaultRule(send, do: .duplicate(), .raw(.text("raw")), nth: 1), "raw", "a", "a", "b", "c", "d"),
    Case("nothing matches", FaultRule(.init("recall"), do: .drop, mustFire: false), "a", "b", "c", "d"),
  ]

  @Test("change exactly what they say", arguments: cases)
  func changes(_ test: Case) async throws {
    let alice = try await open("alice")
    try await control.add(test.rule)
    try await send("a", "b", "c", "d", to: alice)
    #expect(await control.missedRules() == [])
    #expect(try await rest(of: alice) == test.echoes)
  }

  @Test("a delay holds the frame and those behind it, on the emulator's clock")
  func delay() async throws {
    let alice = try await open("alice")
    let bob = try await open("bob")
    try await control.add(FaultRule(Self.send, do: .delay(.milliseconds(500)), nth: 1))
    try await send("a", "b", to: alice)
    try await send("c", to: bob)
    #expect(try await bob.receive() == .text("c"))
    await control.advance(by: .milliseconds(499))
    #expect(await control.journal().filter { $0.direction == .outbound && $0.connection?.number == 1 }.count == 2)
    await control.advance(by: .milliseconds(1))
    #expect(try await rest(of: alice) == ["a", "b"])
  }

  @Test("a close after the commit loses the reply and nothing else")
  func ackLost() async throws {
    let alice = try await open("alice")
    let bob = try await open("bob")
    try await control.add(FaultRule(.init("send", user: "alice"), at: .afterCommit, do: .closeSocket(.abrupt)))
    try await send("all hands", to: alice)
    let close = await #expect(throws: WebSocketClose.self) { try await alice.receive() }
    #expect(close == WebSocketClose())
    #expect(try await bob.receive() == .text("all hands"))
  }

  @Test("a clean close has its code")
  func cleanClose() async throws {
    let alice = try await open("alice")
    try await control.add(FaultRule(Self.send, do: .closeSocket(.clean(code: 1012, reason: "restart"))))
    try await send("a", to: alice)
    let close = await #expect(throws: WebSocketClose.self) { try await alice.receive() }
    #expect(close == WebSocketClose(code: 1012, reason: "restart"))
  }

  @Test("a gate stops frames until it is opened, in order")
  func gate() async throws {
    let alice = try await open("alice")
    try await control.closeGate("commit", .init("send", clientID: "b"))
    try await send("a", "b", "c", to: alice)
    #expect(try await alice.receive() == .text("a"))
    #expect(await control.wait(for: .init("send", direction: .inbound, clientID: "b"), timeout: .seconds(5)))
    #expect(await !control.wait(for: .init("ack", clientID: "b"), timeout: .milliseconds(1)))
    await control.openGate("commit")
    #expect(try await rest(of: alice) == ["b", "c"])
  }

  @Test("a stalled session is silent in both directions until it goes on")
  func stall() async throws {
    let alice = try await open("alice")
    let bob = try await open("bob")
    try await control.act(.stall(), on: "alice")
    try await send("a", to: alice)
    try await send("all b", to: bob)
    #expect(try await bob.receive() == .text("all b"))
    try await control.act(.resume, on: "alice")
    #expect(Set(try await rest(of: alice)) == ["a", "all b"])
  }

  @Test("requests are answered in the emulator's place, shortened, cut or lost")
  func requests() async throws {
    let http = host.transports.http
    let request = HTTPRequest("POST", "http://h/echo", body: Array("x".utf8), timeout: .seconds(1))
    let busy = HTTPResponse(status: 503, headers: ["Retry-After": "2"], body: [1])
    try await control.add(FaultRule(.init("history"), do: .http(busy)))
    #expect(try await http.send(request) == busy)
    try await control.add(FaultRule(.init("history"), at: .afterCommit, do: .truncateBody(4)))
    #expect(try await http.send(request).body == Array("POST".utf8))
    try await control.add(FaultRule(.init("history"), at: .beforeReply, do: .closeSocket(.abrupt)))
    let cut = await #expect(throws: TransportError.self) { try await http.send(request) }
    #expect(cut?.kind == .closed)
    try await control.add(FaultRule(.init("history"), at: .afterCommit, do: .drop))
    let lost = Task { try await http.send(request) }
    while await host.nextTimer == nil { await Task.yield() }
    await control.advance(by: .seconds(1))
    let error = await #expect(throws: TransportError.self) { try await lost.value }
    #expect(error?.kind == .timeout)
    #expect(await control.missedRules() == [])
  }

  @Test("a patch changes values in JSON, also behind a command word, and reports where it can't")
  func patch() async throws {
    let alice = try await open("alice")
    let changes: [String: JSONValue?] = ["/id": .int(.max), "/gone": nil]
    let rule = FaultRule(.init("ack", values: ["/kind": "x"]), do: .patch(changes), times: nil)
    try await control.add(rule)
    try await send("MESG{\"kind\":\"x\",\"id\":1,\"gone\":true}", "{\"kind\":\"y\",\"id\":1}", to: alice)
    #expect(try await alice.receive() == .text("MESG{\"kind\":\"x\",\"id\":9223372036854775807}"))
    #expect(try await alice.receive() == .text("{\"kind\":\"y\",\"id\":1}"))
    #expect(await control.missedRules() == [])
    try await control.add(FaultRule(.init("ack", clientID: "plain"), do: .patch(changes)))
    try await send("plain", to: alice)
    #expect(await control.missedRules().map(\.failure) == ["patch does not fit this frame"])
  }

  @Test("a patch reaches into frames that only the emulator can read")
  func patchBinary() async throws {
    let alice = try await open("alice")
    func frame(_ json: JSONValue) -> WebSocketMessage { .binary(json.bytes().map { ~$0 }) }
    try await control.add(FaultRule(.init(direction: .outbound, values: ["/a": 1]), do: .patch(["/b": 3])))
    try await alice.send(frame(["a": 0, "b": 2]))
    try await alice.send(frame(["a": 1, "b": 2]))
    #expect(try await alice.receive() == frame(["a": 0, "b": 2]))
    #expect(try await alice.receive() == frame(["a": 1, "b": 3]))
    #expect(await control.missedRules() == [])
  }

  @Test("a kick is done as the vendor does it; what the vendor lacks is said")
  func kick() async throws {
    let alice = try await open("alice")
    try await control.add(FaultRule(.init("send", user: "alice"), at: .afterCommit, do: .act(.kick)))
    try await send("a", to: alice)
    let close = await #expect(throws: WebSocketClose.self) { _ = try await alice.receive() }
    #expect(close?.code == 4111)
    let error = await #expect(throws: EmulatorControlError.self) {
      try await control.perform(.expireCredential(user: "alice"))
    }
    #expect(error?.description == "echo only kicks")
  }

  @Test("what only a socket can do is refused without one")
  func noHook() async throws {
    for action in [FaultRule.Action.fragment([1]), .corrupt(offset: 0, xor: 1), .closeSocket(.halfClose)] {
      let error = await #expect(throws: EmulatorControlError.self) {
        try await control.add(FaultRule(Self.send, do: action))
      }
      guard case .noHook? = error else { throw WebSocketClose(reason: "wrong error") }
    }
  }

  @Test("a rule that did not fire is missed")
  func missed() async throws {
    let id = try await control.add(FaultRule(Self.send, do: .drop, nth: 3))
    let alice = try await open("alice")
    try await send("a", "b", to: alice)
    let missed = await control.missedRules()
    #expect(missed.map(\.id) == [id])
    #expect(missed.map(\.matches) == [2])
    try await control.removeRule(id)
    await #expect(throws: EmulatorControlError.notFound("rule \(id)")) { try await control.removeRule(id) }
  }

  @Test("the journal names each frame and request, with the rules that fired")
  func journal() async throws {
    let alice = try await open("alice")
    let id = try await control.add(FaultRule(.init("ack", clientID: "b"), do: .drop))
    try await send("a", "b", to: alice)
    _ = try await host.transports.http.send(HTTPRequest("GET", "http://h/echo"))
    await alice.close(code: 1000, reason: "")
    let lines = await control.journal().map {
      "\($0.direction.rawValue) \($0.kind) \($0.operation.name) \($0.operation.clientID ?? "-") \($0.size) \($0.rules)"
    }
    #expect(
      lines == [
        "in open auth - 0 []", "out accept other - 0 []", "out text ack hello alice 11 []", "in text send a 1 []",
        "out text ack a 1 []", "in text send b 1 []", "out text ack b 1 [\(id)]", "in http history - 0 []",
        "out http history - 18 []", "in close other - 0 []",
      ])
    #expect(await control.journal(since: 8).count == 2)
    #expect(await control.journal().allSatisfy { $0.bytes == nil })
  }

  @Test("a wait counts frames from before and after the call, and gives up in time")
  func waiting() async throws {
    let alice = try await open("alice")
    try await send("a", to: alice)
    let second = Task { await control.wait(for: Self.send, count: 2, timeout: .seconds(20)) }
    while await host.journalWaiters == 0 { await Task.yield() }
    try await send("b", to: alice)
    #expect(await second.value)
    #expect(await !control.wait(for: Self.send, count: 3, timeout: .milliseconds(5)))
  }

  @Test("sessions show their users and activity")
  func sessions() async throws {
    _ = try await open("alice")
    await control.advance(by: .seconds(1))
    let bob = try await open("bob")
    await control.advance(by: .seconds(1))
    try await send("a", to: bob)
    let all = await control.sessions()
    #expect(all.map(\.user) == ["alice", "bob"])
    #expect(all.map(\.openedAt) == [1_000_000, 1_001_000])
    #expect(all.map(\.lastActivity) == [1_000_000, 1_002_000])
    #expect(await control.sessions(of: "bob").count == 1)
    let error = await #expect(throws: EmulatorControlError.self) { try await control.act(.end(.abrupt), on: "carl") }
    #expect(error == .notFound("a connection of carl"))
  }

  @Test("a restart cuts connections and keeps or loses the state")
  func restart() async throws {
    let alice = try await open("alice")
    try await control.load(["type": "user", "id": "u"])
    try await control.restart(keepingState: true)
    let close = await #expect(throws: WebSocketClose.self) { try await alice.receive() }
    #expect(close?.code == nil)
    #expect(await control.records() == [["type": "user", "id": "u"]])
    try await control.restart(keepingState: false)
    #expect(await control.records() == [])
  }

  @Test("a server that refuses connections is not there for new ones, and is again later")
  func refusing() async throws {
    await control.refuseConnections(true)
    let error = await #expect(throws: TransportError.self) { try await open("alice") }
    #expect(error?.kind == .refused)
    #expect(error?.nothingSent == true)
    await control.refuseConnections(false)
    _ = try await open("alice")
  }

  @Test("a paused server handles what waited when it goes on")
  func pausing() async throws {
    let alice = try await open("alice")
    await control.pause()
    try await send("a", to: alice)
    #expect(await control.journal().last?.kind == .text)
    let before = await control.journal().count
    await host.quiesce()
    #expect(await control.journal().count == before)
    await control.resume()
    #expect(try await alice.receive() == .text("a"))
  }

  @Test("a snapshot brings state, clock and randomness back; a wrong one changes nothing")
  func snapshot() async throws {
    func random() async throws -> [UInt8] { try await host.transports.http.send(HTTPRequest("GET", "http://h/random")).body }
    _ = try await random()
    try await control.load(["type": "user"])
    let snapshot = await control.snapshot()
    let next = try await random()
    try await control.load(["type": "channel"])
    try await control.restore(snapshot)
    #expect(await control.records() == [["type": "user"]])
    #expect(try await random() == next)
    for wrong in [["vendor": "other", "now": 1, "random": 1, "machine": [:]], ["machine": [:]], "text"] as [JSONValue] {
      await #expect(throws: EmulatorControlError.self) { try await control.restore(wrong) }
    }
    #expect(await control.records() == [["type": "user"]])
  }

  @Test("a reset is the beginning: state, rules, journal and clock")
  func reset() async throws {
    try await control.load(["type": "user"])
    try await control.add(FaultRule(Self.send, do: .drop))
    await control.advance(by: .seconds(9))
    try await control.reset()
    #expect(await control.records() == [])
    #expect(await control.rules() == [])
    #expect(await control.journal() == [])
    #expect(await control.now() == 1_000_000)
  }

  @Test("a skewed clock is what the machine sees; timers keep their distance")
  func skew() async throws {
    await control.setSkew(.seconds(3600))
    let alice = try await open("alice")
    try await send("timer 100 t", to: alice)
    await control.advance(by: .milliseconds(100))
    let journal = try await host.transports.http.send(HTTPRequest("GET", "http://h/journal")).body
    #expect(String(decoding: journal, as: UTF8.self) == "timer t at 4600100")
  }

  @Test("the same seed fires by chance on the same frames")
  func probability() async throws {
    func dropped() async throws -> [String] {
      let host = try EmulatorHost(EmulatorFactory(EchoEmulator.self), options: EmulatorOptions(seed: 3), clock: .virtual)
      let connection = try await host.transports.webSocket.connect(WebSocketRequest("ws://h/ws?user=a"))
      try await host.control.add(FaultRule(Self.send, do: .drop, times: nil, probability: 0.5))
      for index in 0..<20 { try await connection.send(.text("\(index)")) }
      await host.control.removeRules()
      try await connection.send(.text("end"))
      var texts: [String] = []
      while case .text(let text) = try await connection.receive(), text != "end" { texts.append(text) }
      return texts
    }
    let first = try await dropped()
    #expect((2..<20).contains(first.count))
    #expect(first == (try await dropped()))
  }
}
