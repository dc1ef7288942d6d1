import ChatEmulation
import ChatJSON
import ChatTransport
import Testing
import UnifiedChat

@Suite("The in-process transport")
struct InProcessTransportTests {
  let host: EmulatorHost

  init() throws { host = try EmulatorHost(EmulatorFactory(EchoEmulator.self), clock: .virtual(start: 1_000_000)) }

  func open(_ user: String, protocols: [String] = []) async throws -> any WebSocketConnection {
    let request = WebSocketRequest("ws://any.example/ws?user=\(user)", subprotocols: protocols)
    let connection = try await host.transports.webSocket.connect(request)
    #expect(try await connection.receive() == .text("hello \(user)"))
    return connection
  }

  func get(_ path: String) async throws -> String {
    let response = try await host.transports.http.send(HTTPRequest("GET", "http://any.example\(path)"))
    return String(decoding: response.body, as: UTF8.self)
  }

  @Test("a request reaches the machine with its URL, and any host is accepted")
  func http() async throws {
    let request = HTTPRequest("POST", "https://api.vendor.example/echo?a=1", body: [1, 2])
    let response = try await host.transports.http.send(request)
    #expect(response.headers["x-echo"] == "yes")
    #expect(response.body == Array("POST https://api.vendor.example/echo?a=1 ".utf8) + [1, 2])
  }

  @Test("messages come back in order, from many senders at once")
  func order() async throws {
    let connection = try await open("alice")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for sender in 0..<10 {
        group.addTask { for index in 0..<50 { try await connection.send(.text("\(sender) \(index)")) } }
      }
      try await group.waitForAll()
    }
    var next = [Int](repeating: 0, count: 10)
    for _ in 0..<500 {
      guard case .text(let text) = try await connection.receive() else { throw WebSocketClose(reason: "no text") }
      let numbers = text.split(separator: " ").compactMap { Int($0) }
      #expect(numbers[1] == next[numbers[0]])
      next[numbers[0]] += 1
    }
  }

  @Test("the machine chooses the sub-protocol")
  func subprotocol() async throws {
    #expect(try await open("alice", protocols: ["lc.protobuf2.3", "other"]).subprotocol == "lc.protobuf2.3")
    #expect(try await open("alice").subprotocol == nil)
  }

  @Test("a refused upgrade gives the response, and one that the machine forgets gives 500")
  func refusal() async throws {
    let refused = await #expect(throws: TransportError.self) {
      try await host.transports.webSocket.connect(WebSocketRequest("ws://any.example/ws"))
    }
    guard case .upgradeRefused(let response)? = refused?.kind else { throw WebSocketClose(reason: "wrong kind") }
    #expect(response.status == 200)
    #expect(response.headers["content-type"] == "application/json")
    let forgotten = await #expect(throws: TransportError.self) {
      try await host.transports.webSocket.connect(WebSocketRequest("ws://any.example/mute"))
    }
    guard case .upgradeRefused(let answer)? = forgotten?.kind else { throw WebSocketClose(reason: "wrong kind") }
    #expect(answer.status == 500)
  }

  @Test("what was sent before a close is read before it; nothing after")
  func close() async throws {
    let connection = try await open("alice")
    try await connection.send(.text("close"))
    #expect(try await connection.receive() == .text("bye"))
    for _ in 0..<2 {
      let close = await #expect(throws: WebSocketClose.self) { try await connection.receive() }
      #expect(close == WebSocketClose(code: 4001, reason: "asked"))
    }
    let error = await #expect(throws: TransportError.self) { try await connection.send(.text("more")) }
    #expect(error?.kind == .closed)
    #expect(try await get("/journal") == "closed alice 4001")
  }

  @Test("a cut has no code, and the machine hears of it after its other outputs")
  func cut() async throws {
    let connection = try await open("alice")
    try await connection.send(.text("cut"))
    let close = await #expect(throws: WebSocketClose.self) { try await connection.receive() }
    #expect(close?.code == nil)
    await host.advance(by: .seconds(1))
    #expect(try await get("/journal") == "closed alice cut")
  }

  @Test("a client's close reaches the machine once and ends a pending receive")
  func clientClose() async throws {
    let connection = try await open("alice")
    let received = Task { try await connection.receive() }
    await connection.close(code: 1000, reason: "done")
    await connection.close(code: 1001, reason: "again")
    let close = await #expect(throws: WebSocketClose.self) { try await received.value }
    #expect(close?.code == 1000)
    #expect(try await get("/journal") == "closed alice 1000")
  }

  @Test("cancelling a receive leaves the link open and loses nothing")
  func cancelledReceive() async throws {
    let connection = try await open("alice")
    let task = Task { try await connection.receive() }
    task.cancel()
    _ = await task.result
    try await connection.send(.text("still here"))
    #expect(try await connection.receive() == .text("still here"))
  }

  @Test("pings reach the machine")
  func ping() async throws {
    let connection = try await open("alice")
    try await connection.ping()
    #expect(try await connection.receive() == .text("pinged"))
  }

  @Test("a message above the client's limit ends the link with 1009")
  func tooLarge() async throws {
    let request = WebSocketRequest("ws://any.example/ws?user=alice", maxMessageSize: 20)
    let connection = try await host.transports.webSocket.connect(request)
    #expect(try await connection.receive() == .text("hello alice"))
    try await connection.send(.binary(Array(repeating: 7, count: 21)))
    let close = await #expect(throws: WebSocketClose.self) { try await connection.receive() }
    #expect(close?.code == 1009)
    #expect(try await get("/journal") == "closed alice 1009")
  }

  @Test("an unanswered request ends by its timeout on the emulator's clock")
  func timeout() async throws {
    let task = Task {
      try await host.transports.http.send(HTTPRequest("GET", "http://any.example/silent", timeout: .seconds(5)))
    }
    while await host.nextTimer == nil { await Task.yield() }
    await host.advance(by: .milliseconds(4999))
    #expect(await host.nextTimer == 1_005_000)
    await host.advance(by: .milliseconds(1))
    let error = await #expect(throws: TransportError.self) { try await task.value }
    #expect(error?.kind == .timeout)
  }

  @Test("cancelling an unanswered request ends it")
  func cancelledRequest() async throws {
    let task = Task { try await host.transports.http.send(HTTPRequest("GET", "http://any.example/silent")) }
    task.cancel()
    let error = await #expect(throws: TransportError.self) { try await task.value }
    #expect(error?.kind == .cancelled)
  }

  @Test("timers fire in order at their own times; moved and cancelled ones do not fire twice or at all")
  func timers() async throws {
    let connection = try await open("alice")
    for command in ["timer 300 c", "timer 100 a", "timer 200 b", "timer 100 a2", "timer 50 x", "stop x", "timer 250 b"] {
      try await connection.send(.text(command))
    }
    #expect(await host.nextTimer == 1_000_100)
    await host.advance(by: .seconds(1))
    let expected = ["a at 1000100", "a2 at 1000100", "b at 1000250", "c at 1000300"].map { "timer \($0)" }
    #expect(try await get("/journal") == expected.joined(separator: "\n"))
    #expect(await host.now == 1_001_000)
    #expect(await host.nextTimer == nil)
  }

  @Test("a late answer comes when its timer is due")
  func lateAnswer() async throws {
    async let answer = get("/late/name")
    while await host.nextTimer == nil { await Task.yield() }
    await host.advance(by: .seconds(1))
    #expect(try await answer == "name")
  }

  @Test("a real clock fires timers by itself")
  func realClock() async throws {
    let host = try EmulatorHost(EmulatorFactory(EchoEmulator.self), clock: .real)
    let response = try await host.transports.http.send(HTTPRequest("GET", "http://any.example/late/name"))
    #expect(response.status == 200)
  }

  @Test("the same seed gives the same random numbers, another seed others")
  func randomness() async throws {
    func draw(_ seed: UInt64) async throws -> [[UInt8]] {
      let host = try EmulatorHost(
        EmulatorFactory(EchoEmulator.self), options: EmulatorOptions(seed: seed), clock: .virtual)
      var numbers: [[UInt8]] = []
      for _ in 0..<3 {
        numbers.append(try await host.transports.http.send(HTTPRequest("GET", "http://h/random")).body)
      }
      return numbers
    }
    let first = try await draw(7)
    #expect(first == (try await draw(7)))
    #expect(first != (try await draw(8)))
    #expect(Set(first).count == 3)
  }

  @Test("a wrong option is refused by name")
  func wrongOption() {
    let error = #expect(throws: EmulatorError.self) {
      try EmulatorHost(EmulatorFactory(EchoEmulator.self), options: EmulatorOptions(settings: ["colour": "red"]))
    }
    #expect(error?.description.contains("colour") == true)
  }
}

@Suite("A clock that an emulator shares with its clients")
struct SharedClockTests {
  @Test("timers of the emulator and sleeps of a client happen in the order of their times")
  func order() async throws {
    let clock = ManualClock(start: Timestamp(milliseconds: 1_000_000))
    let host = try EmulatorHost(EmulatorFactory(EchoEmulator.self), clock: .shared(clock))
    let connection = try await host.transports.webSocket.connect(WebSocketRequest("ws://h/ws?user=a"))
    try await connection.send(.text("timer 150 emulator"))
    let client = Task {
      try await clock.sleep(for: .milliseconds(100))
      try await connection.send(.text("timer 30 client"))
    }
    while clock.nextWakeUp != Timestamp(milliseconds: 1_000_100) { await Task.yield() }
    await host.advance(by: .seconds(1))
    try await client.value
    #expect(clock.now == Timestamp(milliseconds: 1_001_000))
    let journal = try await host.transports.http.send(HTTPRequest("GET", "http://h/journal")).body
    #expect(String(decoding: journal, as: UTF8.self) == "timer client at 1000130\ntimer emulator at 1000150")
  }
}
