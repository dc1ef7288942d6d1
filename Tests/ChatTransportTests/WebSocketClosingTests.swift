import ChatTransport
import Synchronization
import Testing

/// How a server ends an open link, and what the reader must be told.
struct EndingCase: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let end: WebSocketClose
  var limit = 1 << 20
  let script: @Sendable (Connection) -> Void

  private static func frame(_ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true) -> Connection.Frame {
    Connection.Frame(opcode: opcode, payload: payload, isFinal: isFinal)
  }

  static let byClose = [
    EndingCase(testDescription: "1000", end: WebSocketClose(code: 1000)) { $0.send(8, [0x03, 0xE8]) },
    EndingCase(testDescription: "1001 with a reason", end: WebSocketClose(code: 1001, reason: "bye 😀")) {
      $0.send(8, [0x03, 0xE9] + Array("bye 😀".utf8))
    },
    EndingCase(testDescription: "4001", end: WebSocketClose(code: 4001, reason: "kicked")) {
      $0.send(8, [0x0F, 0xA1] + Array("kicked".utf8))
    },
    EndingCase(
      testDescription: "the longest reason", end: WebSocketClose(code: 4999, reason: String(repeating: "r", count: 123))
    ) {
      $0.send(8, [0x13, 0x87] + [UInt8](repeating: 0x72, count: 123))
    },
    EndingCase(testDescription: "no code", end: WebSocketClose(code: 1005)) { $0.send(8, []) },
  ]

  static let abrupt = [
    EndingCase(testDescription: "the end without a frame", end: WebSocketClose()) { $0.end() },
    EndingCase(testDescription: "half of the link is closed", end: WebSocketClose()) {
      $0.endWriting()
      $0.waitForEnd()
    },
    EndingCase(testDescription: "a reset", end: WebSocketClose()) { $0.reset() },
    EndingCase(testDescription: "a reset within a frame", end: WebSocketClose()) {
      $0.write([0x82, 0x7E, 0x01, 0x00, 1, 2, 3])
      $0.reset()
    },
    EndingCase(testDescription: "the end within a frame's head", end: WebSocketClose()) {
      $0.write([0x82, 0x7E, 0x01])
      $0.end()
    },
    EndingCase(testDescription: "the end between two fragments", end: WebSocketClose()) {
      $0.send(1, [0x61], isFinal: false)
      $0.end()
    },
    EndingCase(testDescription: "reserved bits", end: WebSocketClose()) {
      $0.write(Connection.bytes(of: frame(1, [0x61]), reserved: 4))
      $0.waitForEnd()
    },
    EndingCase(testDescription: "an unknown data frame", end: WebSocketClose()) {
      $0.send(3, [0x61])
      $0.waitForEnd()
    },
    EndingCase(testDescription: "an unknown control frame", end: WebSocketClose()) {
      $0.send(11, [])
      $0.waitForEnd()
    },
    EndingCase(testDescription: "a continuation of nothing", end: WebSocketClose()) {
      $0.send(0, [0x61])
      $0.waitForEnd()
    },
    EndingCase(testDescription: "a message within a message", end: WebSocketClose()) {
      $0.send(1, [0x61], isFinal: false)
      $0.send(1, [0x61])
      $0.waitForEnd()
    },
    EndingCase(testDescription: "a ping in fragments", end: WebSocketClose()) {
      $0.send(9, [0x61], isFinal: false)
      $0.waitForEnd()
    },
    EndingCase(testDescription: "a ping that is too long", end: WebSocketClose()) {
      $0.send(9, [UInt8](repeating: 0, count: 126))
      $0.waitForEnd()
    },
    EndingCase(testDescription: "a length of more than 63 bits", end: WebSocketClose()) {
      $0.write([0x82, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 1])
      $0.waitForEnd()
    },
  ]

  static let byUs = [
    EndingCase(testDescription: "a text that is not UTF-8", end: WebSocketClose(code: 1007, reason: "invalid UTF-8")) {
      $0.send(1, [0x61, 0xFF])
    },
    EndingCase(
      testDescription: "a text that ends within a character", end: WebSocketClose(code: 1007, reason: "invalid UTF-8")
    ) {
      $0.send(1, [0xE6, 0xBC], isFinal: false)
      $0.send(0, [])
    },
    EndingCase(testDescription: "a surrogate in UTF-8", end: WebSocketClose(code: 1007, reason: "invalid UTF-8")) {
      $0.send(1, [0xED, 0xA0, 0x80])
    },
    EndingCase(
      testDescription: "one byte too many", end: WebSocketClose(code: 1009, reason: "message too big"), limit: 125
    ) {
      $0.send(2, [UInt8](repeating: 0, count: 126))
    },
    EndingCase(
      testDescription: "fragments that are too much", end: WebSocketClose(code: 1009, reason: "message too big"),
      limit: 125
    ) {
      $0.send(2, [UInt8](repeating: 0, count: 100), isFinal: false)
      $0.send(0, [UInt8](repeating: 0, count: 100))
    },
    EndingCase(testDescription: "a gigabyte announced", end: WebSocketClose(code: 1009, reason: "message too big")) {
      $0.write([0x82, 0x7F, 0, 0, 0, 0, 0x40, 0, 0, 0] + [UInt8](repeating: 0, count: 70_000))
    },
    EndingCase(
      testDescription: "a gigabyte announced in a later fragment", end: WebSocketClose(code: 1009, reason: "message too big")
    ) {
      $0.send(1, [0x61], isFinal: false)
      $0.write([0x80, 0x7F, 0, 0, 0, 0, 0x40, 0, 0, 0] + [UInt8](repeating: 0x61, count: 70_000))
    },
    EndingCase(testDescription: "exabytes announced", end: WebSocketClose(code: 1009, reason: "message too big")) {
      $0.write([0x82, 0x7F, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF] + [UInt8](repeating: 0, count: 70_000))
    },
  ]
}

@Suite("The end of a WebSocket", .timeLimit(.minutes(5)))
struct WebSocketClosingTests {
  let client = LWSWebSocketClient()

  @Test("the server's code and reason come after the messages before, and stay", arguments: EndingCase.byClose)
  func peerCloses(_ ending: EndingCase) async throws {
    let echoed = Mutex<Connection.Frame?>(nil)
    let answered = Gate()
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      connection.sendText("last words")
      ending.script(connection)
      let frame = connection.readFrame()
      echoed.withLock { $0 = frame }
      answered.open()
    }
    let connection = try await client.connect(WebSocketRequest(server.webSocketURL))
    await answered.opened()
    #expect(echoed.withLock { $0?.opcode } == 8)
    #expect(try await connection.receive() == .text("last words"))
    for _ in 0..<3 { await #expect(throws: ending.end) { try await connection.receive() } }
    let error = await #expect(throws: TransportError.self) { try await connection.send(.text("too late")) }
    #expect(error?.kind == .closed)
  }

  @Test("an end without a close frame, or a breach of the protocol, has no code", arguments: EndingCase.abrupt)
  func abruptEnds(_ ending: EndingCase) async throws {
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      connection.sendText("last words")
      ending.script(connection)
    }
    let connection = try await client.connect(WebSocketRequest(server.webSocketURL))
    #expect(try await connection.receive() == .text("last words"))
    for _ in 0..<3 { await #expect(throws: ending.end) { try await connection.receive() } }
    await #expect(throws: TransportError.self) { try await connection.roundTrip() }
  }

  @Test("what must not be is closed by us, with the code that says why", arguments: EndingCase.byUs)
  func weClose(_ ending: EndingCase) async throws {
    let received = Mutex<Connection.Frame?>(nil)
    let closed = Gate()
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      ending.script(connection)
      let frame = connection.readFrame()
      received.withLock { $0 = frame }
      closed.open()
    }
    let request = WebSocketRequest(server.webSocketURL, maxMessageSize: ending.limit)
    let connection = try await client.connect(request)
    await #expect(throws: ending.end) { try await connection.receive() }
    await closed.opened()
    let code = ending.end.code ?? 0
    let payload = [UInt8(code >> 8), UInt8(code & 255)] + Array(ending.end.reason.utf8)
    #expect(received.withLock { $0 } == Connection.Frame(opcode: 8, payload: payload))
  }

  @Test("a message of exactly the limit is taken")
  func exactLimit() async throws {
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      connection.send(2, [1, 2, 3], isFinal: false)
      connection.send(0, [4])
      connection.waitForEnd()
    }
    let connection = try await client.connect(WebSocketRequest(server.webSocketURL, maxMessageSize: 4))
    #expect(try await connection.receive() == .binary([1, 2, 3, 4]))
  }

  @Test(
    "closing sends what was queued, then code and reason, and ends the reader",
    arguments: [
      (1000, "", [0x03, 0xE8]), (4000, "bye", [0x0F, 0xA0, 0x62, 0x79, 0x65]), (1005, "", [0x03, 0xE8]),
      (0, "", [0x03, 0xE8]),
      (3000, String(repeating: "é", count: 100), [0x0B, 0xB8] + Array(String(repeating: "é", count: 61).utf8)),
    ] as [(UInt16, String, [UInt8])])
  func close(code: UInt16, reason: String, payload: [UInt8]) async throws {
    let frames = Mutex<[Connection.Frame]>([])
    let closed = Gate()
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      while let frame = connection.readFrame() {
        frames.withLock { $0.append(frame) }
        if frame.opcode == 8 { connection.send(8, frame.payload) }
      }
      closed.open()
    }
    let connection = try await client.connect(WebSocketRequest(server.webSocketURL))
    let reading = Task { try await connection.receive() }
    try await connection.send(.text("a"))
    await connection.close(code: code, reason: reason)
    await #expect(throws: WebSocketClose(code: code, reason: reason)) { try await reading.value }
    let error = await #expect(throws: TransportError.self) { try await connection.send(.text("b")) }
    #expect(error?.kind == .closed)
    #expect(error?.nothingSent == true)
    await closed.opened()
    #expect(
      frames.withLock { $0 } == [
        Connection.Frame(opcode: 1, payload: [0x61]), Connection.Frame(opcode: 8, payload: payload),
      ])
  }

  @Test("a link that nobody holds any more is closed with 1001")
  func dropped() async throws {
    let frame = Mutex<Connection.Frame?>(nil)
    let closed = Gate()
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      let first = connection.readFrame()
      frame.withLock { $0 = first }
      closed.open()
    }
    _ = try await client.connect(WebSocketRequest(server.webSocketURL))
    await closed.opened()
    #expect(frame.withLock { $0 } == Connection.Frame(opcode: 8, payload: [0x03, 0xE9]))
  }

  @Test("cancelling a reader ends its wait and leaves the link alone")
  func cancelledReader() async throws {
    let go = Gate()
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      go.wait()
      connection.sendText("still here")
      connection.waitForEnd()
    }
    let connection = try await client.connect(WebSocketRequest(server.webSocketURL))
    let reader = Task { try await connection.receive() }
    reader.cancel()
    await #expect(throws: WebSocketClose(code: nil, reason: "cancelled")) { try await reader.value }
    go.open()
    #expect(try await connection.receive() == .text("still here"))
  }

  @Test("a message that waits behind a full socket can be taken back, the one under way can't")
  func cancelledSend() async throws {
    let go = Gate()
    let counts = Mutex<[Int]>([])
    let done = Gate()
    let arriving = Gate()
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      connection.waitForBytes()
      arriving.open()
      go.wait()
      while let frame = connection.readFrame(), frame.opcode == 2 { counts.withLock { $0.append(frame.payload.count) } }
      done.open()
    }
    let connection = try await client.connect(WebSocketRequest(server.webSocketURL))
    // More than the sockets between hold.
    let bytes = [UInt8](repeating: 1, count: 32 << 20)
    let large = Task { try await connection.send(.binary(bytes)) }
    await arriving.opened()
    let waiting = Task {
      try await connection.send(.binary([1]))
    }
    waiting.cancel()
    let error = await #expect(throws: TransportError.self) { try await waiting.value }
    #expect(error?.kind == .cancelled)
    #expect(error?.nothingSent == true)
    go.open()
    try await large.value
    try await connection.send(.binary([1, 2]))
    await connection.close(code: 1000, reason: "")
    await done.opened()
    #expect(counts.withLock { $0 } == [32 << 20, 2])
  }

  @Test("messages that wait when the link is cut are told so")
  func cutWhileSending() async throws {
    let go = Gate()
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      go.wait()
      connection.reset()
    }
    let connection = try await client.connect(WebSocketRequest(server.webSocketURL))
    let sends = (0..<3).map { _ in
      Task { try await connection.send(.binary([UInt8](repeating: 1, count: 32 << 20))) }
    }
    go.open()
    for send in sends {
      let error = await #expect(throws: TransportError.self) { try await send.value }
      #expect(error?.kind == .closed)
    }
  }
}
