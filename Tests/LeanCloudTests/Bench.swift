import ChatEmulation
import ChatJSON
import ChatTransport
import LeanCloudEmulator
import LeanCloudWire
import Testing
import UnifiedChat

/// An emulator without sockets on a clock that stands still, and what tests say to it.
struct Bench {
  let host: EmulatorHost
  let clock = ManualClock(start: Timestamp(milliseconds: Self.start))
  static let start: Int64 = 1_700_000_000_000
  static let base = "http://leancloud.example"

  init(start: Int64 = Self.start, _ change: (inout EmulatorOptions) -> Void = { _ in }) throws {
    var options = EmulatorOptions(baseURL: Self.base)
    change(&options)
    host = try EmulatorHost(EmulatorFactory(LeanCloudEmulator.self), options: options, clock: .virtual(start: start))
  }

  func load(_ records: [JSONValue]) async throws {
    for record in records { try await host.load(record) }
  }

  func socket(_ protocols: [String] = ["lc.json.3"]) async throws -> RawSocket {
    let request = WebSocketRequest("ws://leancloud.example/", subprotocols: protocols)
    let link = try await host.transports.webSocket.connect(request)
    let subprotocol = protocols.first.flatMap { LeanCloudSubprotocol(name: $0) } ?? .unnamed
    return RawSocket(link: link, codec: LeanCloudCodec(subprotocol))
  }

  /// Both clocks, a second at a time.
  func pass(seconds: Int) async {
    for _ in 0..<seconds {
      await host.advance(by: .seconds(1))
      clock.advance(by: .seconds(1))
      for _ in 0..<20 { await Task.yield() }
    }
  }

  /// Lets the adapters' clock pass on to whatever is due within `limit`, until `body` has its result.
  ///
  /// For what an adapter does of itself after a while: a test can't know when it has begun to wait. The limit is below
  /// every time-out of a request, so that a slow machine loses none.
  func whileTimePasses<Value>(atMost limit: Duration = .seconds(5), _ body: () async throws -> Value) async rethrows
    -> Value
  {
    let end = clock.now + limit
    let passing = Task { [clock] in
      while !Task.isCancelled {
        if let due = clock.nextWakeUp, due <= end { clock.advance(to: due) }
        // Real time, so that a wait does not take a core from the tests beside it; nothing depends on how long it is.
        try? await Task.sleep(for: .milliseconds(1))
      }
    }
    defer { passing.cancel() }
    return try await body()
  }

  /// A socket with `peer` logged in on it.
  func login(
    _ peer: String, _ protocols: [String] = ["lc.json.3"], fields: JSONObject = ["ua": "test", "configBitmap": 187]
  ) async throws -> RawSocket {
    let socket = try await socket(protocols)
    var open = LeanCloudFrame("session", "open")
    open["appId"] = "emulated-app"
    open.peerID = peer
    for member in fields { open[member.key] = member.value }
    let opened = try await socket.ask(open)
    #expect(opened.operation == "opened")
    return socket
  }

  func rest(
    _ method: String, _ path: String, _ body: JSONValue? = nil, key: String = "emulated-secret,master"
  ) async throws -> (status: Int, body: JSONValue) {
    let request = HTTPRequest(
      method, Self.base + path, headers: ["X-LC-Id": "emulated-app", "X-LC-Key": key], body: body?.bytes() ?? [])
    let response = try await host.transports.http.send(request)
    return (response.status, (try? JSONValue(parsing: response.body)) ?? .null)
  }
}

/// Frames as a client of the vendor sends and sees them.
final class RawSocket {
  let link: any WebSocketConnection
  let codec: LeanCloudCodec
  private var serial: Int64 = 0
  /// What came while an answer was waited for.
  private var pushed: [LeanCloudFrame] = []

  init(link: any WebSocketConnection, codec: LeanCloudCodec) {
    self.link = link
    self.codec = codec
  }

  func send(_ frame: LeanCloudFrame) async throws {
    switch try codec.encode(frame) {
    case .text(let text): try await link.send(.text(text))
    case .binary(let bytes): try await link.send(.binary(bytes))
    }
  }

  func receive() async throws -> LeanCloudFrame {
    switch try await link.receive() {
    case .text(let text): try codec.decode(.text(text))
    case .binary(let bytes): try codec.decode(.binary(bytes))
    }
  }

  /// Sends with a serial and waits for the answer to it.
  func ask(_ frame: LeanCloudFrame) async throws -> LeanCloudFrame {
    serial += 1
    var frame = frame
    frame.serial = serial
    try await send(frame)
    while true {
      let answer = try await receive()
      if answer.serial == serial { return answer }
      pushed.append(answer)
    }
  }

  func ask(_ command: String, _ operation: String? = nil, _ fields: JSONObject) async throws -> LeanCloudFrame {
    var frame = LeanCloudFrame(command, operation)
    for member in fields { frame[member.key] = member.value }
    return try await ask(frame)
  }

  func tell(_ command: String, _ operation: String? = nil, _ fields: JSONObject) async throws {
    var frame = LeanCloudFrame(command, operation)
    for member in fields { frame[member.key] = member.value }
    try await send(frame)
  }

  /// The next push of this command, skipping others.
  func next(_ command: String, _ operation: String = "") async throws -> LeanCloudFrame {
    func fits(_ frame: LeanCloudFrame) -> Bool {
      frame.command == command && (operation.isEmpty || frame.operation == operation)
    }
    if let index = pushed.firstIndex(where: fits) { return pushed.remove(at: index) }
    while true {
      let frame = try await receive()
      if fits(frame) { return frame }
      pushed.append(frame)
    }
  }
}
