import AllAdapters
import ChatEmulation
import ChatTransport

extension FuzzTarget {
  static let servers: [FuzzTarget] = [requests, frames]

  /// The first byte is the size of the pieces in which the rest arrives.
  static let requests = FuzzTarget(
    "http",
    seeds: [
      "\u{3}POST /a%2Fb?c=d HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nxyzGET / HTTP/1.0\r\n\r\n",
      "\u{7}PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n",
    ]
  ) { bytes throws(BrokenLaw) in
    guard let first = bytes.first else { return }
    let limit = 1 << 12
    var input = InputBuffer()
    var reader = HTTPRequestReader(bodyLimit: limit)
    var rest = bytes.dropFirst()
    while !rest.isEmpty {
      input.append(Array(rest.prefix(Int(first) + 1)))
      rest = rest.dropFirst(Int(first) + 1)
      while let event = reader.next(&input) {
        switch event {
        case .failure: return
        case .expectsContinue: break
        case .request(let head, let body):
          try require(body.count <= limit, "a body above the limit")
          let lines = head.headers.fields.flatMap { [$0.name, $0.value] } + [head.method, head.target]
          try require(
            lines.allSatisfy { $0.utf8.allSatisfy { $0 != 13 && $0 != 10 && $0 != 0 } }, "a line break in the head")
        }
      }
    }
  }

  /// The first byte is the size of the pieces in which the rest arrives.
  static let frames = FuzzTarget(
    "websocket",
    seeds: [
      [2, 0x81, 0x82, 1, 2, 3, 4, 0x60, 0x60, 0x89, 0x80, 0, 0, 0, 0],
      [9, 0x01, 0x81, 0, 0, 0, 0, 0x61, 0x80, 0x81, 0, 0, 0, 0, 0x62, 0x88, 0x82, 0, 0, 0, 0, 0x03, 0xE8],
      [50, 0x82, 0xFE, 0x00, 0x7E, 0, 0, 0, 0] + [UInt8](repeating: 7, count: 126),
      [50, 0x82, 0xFF, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0],
    ]
  ) { bytes throws(BrokenLaw) in
    guard let first = bytes.first else { return }
    let limit = 1 << 12
    var input = InputBuffer()
    var reader = WebSocketFrameReader(maxMessageSize: limit)
    var rest = bytes.dropFirst()
    while !rest.isEmpty {
      input.append(Array(rest.prefix(Int(first) + 1)))
      rest = rest.dropFirst(Int(first) + 1)
      while let event = reader.next(&input) {
        switch event {
        case .close, .violation: return
        case .ping(let payload): try require(payload.count <= 125, "a long ping")
        case .message(.text(let text)): try require(text.utf8.count <= limit, "a message above the limit")
        case .message(.binary(let payload)): try require(payload.count <= limit, "a message above the limit")
        }
      }
    }
  }

  /// A vendor's whole server, given requests and frames: each line of the input is one. `GET /path body` is a request,
  /// `>text` a frame of the open WebSocket, `<` and hex digits a binary one, `!` the end of the connection.
  static let emulators: [FuzzTarget] = AllAdapters.emulators.map { factory in
    FuzzTarget("emulator.\(factory.vendor)", seeds: EmulatorSeeds.of(factory.vendor)) { bytes throws(BrokenLaw) in
      let options = EmulatorOptions(users: [(id: "alice", token: "tok"), (id: "bob", token: "b"), (id: "imAdmin", token: "admintok")], applicationID: "app", adminSecret: "admin")
      guard var machine = try? factory.make(options) else { throw BrokenLaw("the emulator does not start") }
      // A server's clock may stand anywhere between 1970 and the end of 9999.
      let now = [1_767_225_600_000, 0, 253_402_300_799_000][bytes.count % 3]
      var context = EmulatorContext(now: Int64(now), random: EmulatorRandom(seed: 1))
      var session = EmulatorScript(machine.baseURL)
      for line in bytes.split(separator: 10).prefix(32) {
        for input in session.inputs(of: Array(line)) {
          _ = machine.operation(of: input)
          let outputs = machine.handle(input, context: &context)
          for output in outputs { _ = machine.operation(of: output) }
          if case .http(let id, _) = input {
            let answers = outputs.count { if case .respond(id, _) = $0 { true } else { false } }
            try require(answers <= 1, "\(answers) answers to one request")
          }
        }
        context.now &+= 1
      }
      let snapshot = machine.snapshot()
      guard var again = try? factory.make(options) else { return }
      do { try again.restore(snapshot) } catch { throw BrokenLaw("its own snapshot is refused: \(error)") }
      try require(again.snapshot() == snapshot, "a snapshot changes when it is restored")
    }
  }
}

/// Turns lines into what happens to an emulator.
private struct EmulatorScript {
  private let baseURL: String
  private var connection = EmulatorConnectionID(0)
  private var isOpen = false
  private var exchange: UInt64 = 0

  init(_ baseURL: String) { self.baseURL = baseURL }

  mutating func inputs(of line: [UInt8]) -> [EmulatorInput] {
    guard let first = line.first else { return [] }
    let rest = Array(line.dropFirst())
    switch first {
    case UInt8(ascii: "!"):
      guard isOpen else { return [] }
      isOpen = false
      return [.closed(connection, WebSocketClose())]
    case UInt8(ascii: "~"):
      isOpen = true
      connection = EmulatorConnectionID(connection.number + 1)
      let words = String(decoding: rest, as: UTF8.self).split(separator: " ").map(String.init)
      return [
        .open(connection, WebSocketRequest("ws://h" + (words.first ?? "/"), subprotocols: Array(words.dropFirst())))
      ]
    case UInt8(ascii: ">"):
      return isOpen ? [.message(connection, .text(String(decoding: rest, as: UTF8.self)))] : []
    case UInt8(ascii: "<"): return isOpen ? [.message(connection, .binary(rest))] : []
    default:
      let words = line.split(separator: 32, maxSplits: 2, omittingEmptySubsequences: false)
      exchange += 1
      let target = words.count > 1 ? String(decoding: words[1], as: UTF8.self) : "/"
      let request = HTTPRequest(
        String(decoding: words[0], as: UTF8.self), baseURL + target, headers: EmulatorSeeds.headers,
        body: words.count > 2 ? Array(words[2]) : [])
      return [.http(EmulatorExchangeID(exchange), request)]
    }
  }
}
