import ChatTransport
import Synchronization
import Testing

/// What a server answers to an upgrade, and what the client must make of it.
struct OpeningCase: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let kind: TransportError.Kind
  var subprotocols: [String] = []
  let script: @Sendable (Connection) -> Void

  private static func refused(_ status: Int, _ body: String, _ fields: HTTPHeaders = [:]) -> TransportError.Kind {
    .upgradeRefused(HTTPResponse(status: status, headers: fields, body: Array(body.utf8)))
  }

  static let refusals = [
    OpeningCase(
      testDescription: "200 with JSON",
      kind: refused(
        200, #"{"errCode":1506}"#, ["content-length": "16", "content-type": "application/json; charset=utf-8"])
    ) {
      _ = $0.readHead()
      $0.answer(200, Array(#"{"errCode":1506}"#.utf8), fields: "Content-Type: application/json; charset=utf-8\r\n")
      $0.waitForEnd()
    },
    OpeningCase(testDescription: "200, body in a second packet", kind: refused(200, "later", ["content-length": "5"])) {
      _ = $0.readHead()
      $0.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
      $0.write("la")
      $0.write("ter")
      $0.waitForEnd()
    },
    OpeningCase(
      testDescription: "401 with a challenge",
      kind: refused(401, "no", ["content-length": "2", "www-authenticate": "Basic"])
    ) {
      _ = $0.readHead()
      $0.answer(401, Array("no".utf8), fields: "WWW-Authenticate: Basic\r\n")
      $0.waitForEnd()
    },
    OpeningCase(testDescription: "302", kind: refused(302, "", ["content-length": "0", "location": "/other"])) {
      _ = $0.readHead()
      $0.answer(302, fields: "Location: /other\r\n")
      $0.waitForEnd()
    },
    OpeningCase(testDescription: "403 until the end", kind: refused(403, "because")) {
      _ = $0.readHead()
      $0.write("HTTP/1.1 403 Forbidden\r\n\r\nbecause")
    },
    OpeningCase(testDescription: "404 in chunks", kind: refused(404, "abcde", ["transfer-encoding": "chunked"])) {
      _ = $0.readHead()
      $0.write("HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
      $0.waitForEnd()
    },
    OpeningCase(
      testDescription: "503 whose body breaks off",
      kind: refused(503, "abc", ["content-length": "9", "retry-after": "7"])
    ) {
      _ = $0.readHead()
      $0.write("HTTP/1.1 503 X\r\nRetry-After: 7\r\nContent-Length: 9\r\n\r\nabc")
    },
    OpeningCase(testDescription: "HTTP/1.0", kind: refused(400, "old")) {
      _ = $0.readHead()
      $0.write("HTTP/1.0 400 Bad Request\r\n\r\nold")
    },
  ]

  static let failures = [
    OpeningCase(testDescription: "a wrong accept key", kind: .protocolViolation) {
      $0.acceptUpgrade(key: "dGhlIHNhbXBsZSBub25jZQ==")
      $0.waitForEnd()
    },
    OpeningCase(
      testDescription: "a subprotocol that was not offered", kind: .protocolViolation, subprotocols: ["a", "b"]
    ) {
      $0.acceptUpgrade(fields: "Sec-WebSocket-Protocol: c\r\n")
      $0.waitForEnd()
    },
    OpeningCase(testDescription: "a subprotocol where none was offered", kind: .protocolViolation) {
      $0.acceptUpgrade(fields: "Sec-WebSocket-Protocol: a\r\n")
      $0.waitForEnd()
    },
    OpeningCase(testDescription: "an extension that was not offered", kind: .protocolViolation) {
      $0.acceptUpgrade(fields: "Sec-WebSocket-Extensions: permessage-deflate\r\n")
      $0.waitForEnd()
    },
    OpeningCase(testDescription: "a switch to something else", kind: .protocolViolation) {
      _ = $0.readHead()
      $0.write("HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n")
      $0.waitForEnd()
    },
    OpeningCase(testDescription: "the end instead of an answer", kind: .closed) { _ = $0.readHead() },
    OpeningCase(testDescription: "a reset instead of an answer", kind: .closed) {
      _ = $0.readHead()
      $0.reset()
    },
    OpeningCase(testDescription: "the end within the head", kind: .closed) {
      _ = $0.readHead()
      $0.write("HTTP/1.1 101 Switch")
    },
  ]
}

@Suite("Opening a WebSocket", .timeLimit(.minutes(5)))
struct WebSocketOpeningTests {
  let client = LWSWebSocketClient()

  @Test("a refusal comes back with its status, its fields and its body", arguments: OpeningCase.refusals)
  func refusals(_ opening: OpeningCase) async {
    let server = ScriptedServer(opening.script)
    let error = await #expect(throws: TransportError.self) {
      try await client.connect(WebSocketRequest(server.webSocketURL + "/?token=secret"))
    }
    guard case .upgradeRefused(var response) = error?.kind else { return #expect(error?.kind == opening.kind) }
    response.headers.fields.sort { $0.name < $1.name }
    #expect(TransportError.Kind.upgradeRefused(response) == opening.kind)
    #expect(error.map { "\($0)" }?.contains("secret") == false)
    #expect(server.acceptedConnections == 1)
  }

  @Test("an answer that opens nothing is a failure", arguments: OpeningCase.failures)
  func failures(_ opening: OpeningCase) async {
    let server = ScriptedServer(opening.script)
    let error = await #expect(throws: TransportError.self) {
      try await client.connect(
        WebSocketRequest(server.webSocketURL + "/?token=secret", subprotocols: opening.subprotocols))
    }
    #expect(error?.kind == opening.kind)
    #expect(error?.peer == "127.0.0.1:\(server.port)")
    #expect(error?.nothingSent == false)
    #expect(error.map { "\($0)" }?.contains("secret") == false)
  }

  @Test("a closed port is refused, by name and by number", arguments: ["127.0.0.1", "localhost"])
  func refused(host: String) async {
    let server = ScriptedServer { _ in }
    server.stop()
    let error = await #expect(throws: TransportError.self) {
      try await client.connect(WebSocketRequest("ws://\(host):\(server.port)/"))
    }
    #expect(error?.kind == .refused)
    #expect(error?.nothingSent == true)
  }

  @Test("a host that does not exist is not resolved")
  func unresolved() async {
    let error = await #expect(throws: TransportError.self) {
      try await client.connect(WebSocketRequest("ws://does-not-exist.invalid/", timeout: .seconds(20)))
    }
    // Without any name server the look-up may end by time instead.
    #expect([.unresolvedHost, .timeout].contains(error?.kind))
    #expect(error?.nothingSent == true)
  }

  @Test(
    "a server that keeps silent runs into the timeout, whatever it has said before",
    arguments: ["", "HTTP/1.1 101 X\r\nUpgrade: "])
  func timeout(beginning: String) async {
    let server = ScriptedServer { connection in
      _ = connection.readHead()
      connection.write(beginning)
      connection.waitForEnd()
    }
    let error = await #expect(throws: TransportError.self) {
      try await client.connect(WebSocketRequest(server.webSocketURL, timeout: .milliseconds(100)))
    }
    #expect(error?.kind == .timeout)
  }

  @Test("a server that does not speak TLS is a failure of TLS")
  func notTLS() async {
    let server = ScriptedServer { connection in
      _ = connection.read(1)
      connection.write("HTTP/1.1 400 Bad Request\r\n\r\n")
    }
    let error = await #expect(throws: TransportError.self) {
      try await client.connect(WebSocketRequest("wss://127.0.0.1:\(server.port)/"))
    }
    #expect(error?.kind == .tls)
    #expect(error?.nothingSent == true)
  }

  @Test("cancelling ends the opening at once, at both ends")
  func cancellation() async {
    let arrived = Gate()
    let ended = Gate()
    let server = ScriptedServer { connection in
      _ = connection.readHead()
      arrived.open()
      connection.waitForEnd()
      ended.open()
    }
    let task = Task { try await client.connect(WebSocketRequest(server.webSocketURL)) }
    await arrived.opened()
    task.cancel()
    let error = await #expect(throws: TransportError.self) { try await task.value }
    #expect(error?.kind == .cancelled)
    await ended.opened()
  }

  @Test("opening and cancelling at random moments settles each once")
  func cancellationStorm() async {
    let server = ScriptedServer { connection in
      connection.acceptUpgrade()
      connection.echo()
    }
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<100 {
        let task = Task { try await client.connect(WebSocketRequest(server.webSocketURL)) }
        group.addTask {
          for _ in 0..<(number % 10) { await Task.yield() }
          task.cancel()
          switch await task.result {
          case .success(let connection): await connection.close(code: 1000, reason: "")
          case .failure(let error): #expect((error as? TransportError)?.kind == .cancelled)
          }
        }
      }
    }
  }

  @Test(
    "a URL that leads nowhere is refused before any byte leaves",
    arguments: [
      "", "http://a/", "ws://", "ws://a b/", "ws://a/\r\n", "ws://a:0/", "ws://user:secret@a/",
      "ws://a/" + String(repeating: "x", count: 2048), "ws://" + String(repeating: "x", count: 200) + "/",
    ])
  func badURLs(_ url: String) async {
    let error = await #expect(throws: TransportError.self) { try await client.connect(WebSocketRequest(url)) }
    #expect(error?.kind == .invalidURL)
    #expect(error?.nothingSent == true)
  }

  @Test("the longest path is sent whole")
  func longPath() async throws {
    let seen = Mutex("")
    let server = ScriptedServer { connection in
      connection.acceptUpgrade(seeing: { head in seen.withLock { $0 = head } })
    }
    let path = "/" + String(repeating: "x", count: 2000)
    _ = try await client.connect(WebSocketRequest(server.webSocketURL + path))
    #expect(seen.withLock { $0 }.hasPrefix("GET \(path) HTTP/1.1\r\n"))
  }

  @Test(
    "a header or a subprotocol that would end early is refused before any byte leaves",
    arguments: [
      WebSocketRequest("ws://127.0.0.1:1/", headers: ["X": "a\r\nEvil: 1"]),
      WebSocketRequest("ws://127.0.0.1:1/", subprotocols: ["a\r\nEvil: 1"]),
      WebSocketRequest("ws://127.0.0.1:1/", subprotocols: ["a,b"]),
      WebSocketRequest("ws://127.0.0.1:1/", subprotocols: [""]),
    ])
  func injections(_ request: WebSocketRequest) async {
    let error = await #expect(throws: TransportError.self) { try await client.connect(request) }
    #expect(error?.kind == .other)
    #expect(error?.nothingSent == true)
  }

  @Test("fields are sent up to the library's limit, and refused beyond", arguments: [(32_000, true), (33_000, false)])
  func longFields(length: Int, isSent: Bool) async {
    let seen = Mutex("")
    let server = ScriptedServer { connection in
      connection.acceptUpgrade(seeing: { head in seen.withLock { $0 = head } })
      connection.waitForEnd()
    }
    let value = String(repeating: "x", count: length)
    let request = WebSocketRequest(server.webSocketURL, headers: ["X": value])
    if isSent {
      await #expect(throws: Never.self) { try await client.connect(request) }
      #expect(seen.withLock { $0 }.contains("\r\nX: \(value)\r\n"))
    } else {
      let error = await #expect(throws: TransportError.self) { try await client.connect(request) }
      #expect(error?.nothingSent == true)
    }
  }
}
