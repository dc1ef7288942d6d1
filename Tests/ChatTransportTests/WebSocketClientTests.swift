import ChatTransport
import Synchronization
import Testing

@Suite("The WebSocket client", .timeLimit(.minutes(5)))
struct WebSocketClientTests {
  let client = LWSWebSocketClient()

  @Test("the upgrade request says what the caller wants, and the server's choice comes back")
  func handshake() async throws {
    let seen = Mutex("")
    let server = ScriptedServer { connection in
      connection.acceptUpgrade(
        fields: "Sec-WebSocket-Protocol: lc.json.3\r\n", seeing: { head in seen.withLock { $0 = head } })
      connection.echo()
    }
    let request = WebSocketRequest(
      server.webSocketURL + "/a%20b/?token=x&y=%2F",
      headers: ["Origin": "https://app.example", "X-Mixed": "v: 1", "Upgrade": "nonsense"],
      subprotocols: ["lc.protobuf2.3", "lc.json.3"])
    let connection = try await client.connect(request)
    #expect(connection.subprotocol == "lc.json.3")
    let lines = seen.withLock { $0 }.split(separator: "\r\n").map(String.init)
    #expect(lines.first == "GET /a%20b/?token=x&y=%2F HTTP/1.1")
    for line in [
      "Host: 127.0.0.1:\(server.port)", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Protocol: lc.protobuf2.3, lc.json.3", "Origin: https://app.example", "X-Mixed: v: 1",
    ] { #expect(lines.filter { $0 == line }.count == 1, "\(line)") }
    #expect(!lines.contains { $0.lowercased().hasPrefix("sec-websocket-extensions") })
    await connection.close(code: 1000, reason: "")
  }

  @Test(
    "without an offer none is chosen, and a server need not choose from an offer", arguments: [[], ["a"], ["a", "b"]])
  func noSubprotocol(offer: [String]) async throws {
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      connection.echo()
    }
    let connection = try await client.connect(WebSocketRequest(server.webSocketURL, subprotocols: offer))
    #expect(connection.subprotocol == nil)
  }

  @Test(
    "messages of every length go both ways whole",
    arguments: [0, 1, 125, 126, 127, 65_535, 65_536, 65_537, 1 << 20, 5 << 20])
  func lengths(_ length: Int) async throws {
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      connection.echo()
    }
    let connection = try await client.connect(WebSocketRequest(server.webSocketURL))
    let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 2) }
    let text = String((0..<length).map { Character(UnicodeScalar(UInt8(0x20 + $0 % 0x5F))) })
    for message in [WebSocketMessage.binary(bytes), .text(text)] {
      try await connection.send(message)
      #expect(try await connection.receive() == message)
    }
  }

  @Test(
    "a message in fragments with pings between is one message, and the pings are answered",
    arguments: [1, 125, 126, 65_535, 65_536])
  func fragments(_ length: Int) async throws {
    let pongs = Mutex<[[UInt8]]>([])
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      let piece = [UInt8](repeating: 0x61, count: length)
      connection.send(Connection.Opcode.text, piece, isFinal: false)
      for number in UInt8(0)..<3 {
        connection.send(Connection.Opcode.ping, [number, 9])
        // One ping at a time: the library answers the first of several.
        guard let pong = connection.readFrame() else { return }
        pongs.withLock { $0.append(pong.payload) }
        connection.send(Connection.Opcode.continuation, piece, isFinal: false)
      }
      connection.send(Connection.Opcode.continuation, [])
      connection.send(Connection.Opcode.binary, piece, isFinal: false)
      connection.send(Connection.Opcode.continuation, piece)
      connection.waitForEnd()
    }
    let connection = try await client.connect(WebSocketRequest(server.webSocketURL))
    #expect(try await connection.receive() == .text(String(repeating: "a", count: 4 * length)))
    #expect(try await connection.receive() == .binary([UInt8](repeating: 0x61, count: 2 * length)))
    #expect(pongs.withLock { $0 } == [[0, 9], [1, 9], [2, 9]])
  }

  @Test("a character split between fragments and packets is whole again")
  func splitCharacters() async throws {
    let text = "é😀漢"
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      let bytes = Array(text.utf8)
      for (index, byte) in bytes.enumerated() {
        let opcode = index == 0 ? Connection.Opcode.text : Connection.Opcode.continuation
        let frame = Connection.Frame(opcode: opcode, payload: [byte], isFinal: index == bytes.count - 1)
        for byte in Connection.bytes(of: frame) { connection.write([byte]) }
      }
      connection.waitForEnd()
    }
    let connection = try await client.connect(WebSocketRequest(server.webSocketURL))
    #expect(try await connection.receive() == .text(text))
  }

  @Test("frames in the same packet as the handshake are not lost")
  func coalesced() async throws {
    let server = ScriptedServer { connection in
      let frames = ["one", "two"].flatMap { text in
        Connection.bytes(of: Connection.Frame(opcode: Connection.Opcode.text, payload: Array(text.utf8)))
      }
      connection.acceptUpgrade(rest: frames)
      connection.waitForEnd()
    }
    let connection = try await client.connect(WebSocketRequest(server.webSocketURL))
    #expect(try await connection.receive() == .text("one"))
    #expect(try await connection.receive() == .text("two"))
  }

  @Test("a thousand messages keep their order, whole frames each")
  func order() async throws {
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      connection.echo()
    }
    let connection = try await client.connect(WebSocketRequest(server.webSocketURL))
    let messages = (0..<1000).map { WebSocketMessage.text("message \($0)") }
    async let sending: Void = {
      for message in messages { try await connection.send(message) }
    }()
    for message in messages { #expect(try await connection.receive() == message) }
    try await sending
  }

  @Test("a reader that comes late still gets everything, in order")
  func lateReader() async throws {
    let count = 30_000
    let sent = Gate()
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      let padding = String(repeating: "x", count: 500)
      for number in 0..<count {
        connection.sendText("\(number) \(padding)")
        // By now the client has stopped reading; the socket holds the rest.
        if number == 9000 { sent.open() }
      }
      connection.send(Connection.Opcode.close, [0x03, 0xE8])
      connection.waitForEnd()
    }
    let connection = try await client.connect(WebSocketRequest(server.webSocketURL))
    await sent.opened()
    for number in 0..<count {
      guard case .text(let text) = try await connection.receive() else { return #expect(Bool(false), "not text") }
      guard text.hasPrefix("\(number) ") else { return #expect(Bool(false), "\(number) is \(text.prefix(8))") }
    }
    await #expect(throws: WebSocketClose(code: 1000)) { try await connection.receive() }
  }

  @Test("a hundred connections at once all get their own echoes")
  func manyConnections() async throws {
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      connection.echo()
    }
    try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<100 {
        group.addTask {
          let connection = try await client.connect(WebSocketRequest(server.webSocketURL))
          for round in 0..<5 {
            let message = WebSocketMessage.text("\(number) \(round)")
            try await connection.send(message)
            guard try await connection.receive() == message else { return false }
          }
          await connection.close(code: 1000, reason: "")
          return true
        }
      }
      for try await isRight in group { #expect(isRight) }
    }
  }

  @Test("a ping reaches the server, and a round trip ends with its pong")
  func pings() async throws {
    let opcodes = Mutex<[UInt8]>([])
    let pinged = Gate()
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      while let frame = connection.readFrame() {
        let count = opcodes.withLock { opcodes in
          opcodes.append(frame.opcode)
          return opcodes.count
        }
        // The first ping stays without its pong, which could otherwise end a later round trip too early.
        if count == 1 { pinged.open() } else { connection.send(Connection.Opcode.pong, frame.payload) }
      }
    }
    let connection = try await client.connect(WebSocketRequest(server.webSocketURL))
    try await connection.ping()
    await pinged.opened()
    try await connection.roundTrip()
    try await connection.roundTrip()
    #expect(opcodes.withLock { $0 } == [9, 9, 9])
  }

  @Test("a name is resolved, and each of its addresses is tried")
  func names() async throws {
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      connection.sendText("hello")
      connection.waitForEnd()
    }
    // Where `localhost` is ::1 first, that port is closed.
    let connection = try await client.connect(WebSocketRequest("ws://localhost:\(server.port)"))
    #expect(try await connection.receive() == .text("hello"))
  }
}
