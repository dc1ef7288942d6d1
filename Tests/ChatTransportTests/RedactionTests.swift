import ChatJSON
import ChatTransport
import Synchronization
import Testing

@Suite("Redaction")
struct RedactionTests {
  @Test(
    "names that carry secrets are known in any case and spelling",
    arguments: [
      "Authorization", "token", "Api-Token", "api_token", "X-LC-Key", "x-lc-sign", "X-LC-Session", "Session-Key",
      "access_token", "key", "apiKey", "sessionToken", "refreshToken", "imToken", "secret", "client_secret", "password",
      "signature", "sig", "Cookie", "Set-Cookie", "Proxy-Authorization", "ticket", "masterKey", "private_data",
    ])
  func secretNames(_ name: String) { #expect(Redaction.isSecret(name)) }

  @Test(
    "names that carry none are left alone",
    arguments: ["Content-Type", "X-LC-Id", "operationID", "user_id", "channel_url", "limit", "Date", "message"])
  func harmlessNames(_ name: String) { #expect(!Redaction.isSecret(name)) }

  @Test(
    "a URL shows where it leads, and of its query what is harmless",
    arguments: [
      ("https://a.example/v3/users?limit=10&token=T&next=N", "https://a.example/v3/users?limit=10&token=…&next=…"),
      ("wss://a:8443?token=T", "wss://a:8443?token=…"), ("https://user:T@a/p#T", "https://a/p"),
      ("https://a/p?T", "https://a/p?T"), ("https://a/p?", "https://a/p?"), ("https://a/\np?x=T\n", "https://a/?p?x=…"),
      ("not a url T", "…"), ("", "…"),
      ("https://a/?where=%7B%22T%22%7D&limit=1&order=-createdAt", "https://a/?where=…&limit=1&order=-createdAt"),
    ])
  func urls(url: String, shown: String) { #expect(Redaction.url(url) == shown) }

  @Test("JSON keeps its shape and loses its secrets, at any depth")
  func json() throws {
    let value = try JSONValue(
      parsing: #"{"user":"u","token":"T","list":[{"sessionToken":{"a":"T"},"n":1}],"secret":["T"],"text":"x"}"#)
    #expect(
      Redaction.json(value).text()
        == #"{"user":"u","token":"…","list":[{"sessionToken":"…","n":1}],"secret":"…","text":"x"}"#)
  }
}

@Suite("The log", .timeLimit(.minutes(5)))
struct RedactingLogTests {
  private final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func log(_ detail: RedactingLog.Detail) -> RedactingLog {
      RedactingLog(detail: detail, clock: { .zero }, write: { line in self.lines.withLock { $0.append(line) } })
    }
  }

  /// Planted wherever a secret may be.
  private static let secret = "S3CR3T"

  private let headers: HTTPHeaders = [
    "Authorization": "Bearer \(secret)", "token": secret, "api-token": secret, "X-LC-Key": secret, "X-LC-Sign": secret,
    "Session-Key": secret, "Cookie": "a=\(secret)", "Referer": "https://a/?token=\(secret)", "X-LC-Id": "app",
  ]

  @Test(
    "a request and its answer are two lines with sizes and time, and no secret",
    arguments: [RedactingLog.Detail.lines, .headers])
  func http(_ detail: RedactingLog.Detail) async throws {
    let server = ScriptedServer { connection in
      while connection.readRequest() != nil {
        connection.answer(
          201, Array(Self.secret.utf8),
          fields: "Set-Cookie: \(Self.secret)\r\nLocation: https://a/?sig=\(Self.secret)\r\nX-Request: r1\r\n")
      }
    }
    let lines = Lines()
    let client = LoggingHTTPClient(CurlHTTPClient(), log: lines.log(detail))
    let url = server.httpURL + "/v3/x?limit=2&access_token=\(Self.secret)&key=\(Self.secret)&other=\(Self.secret)"
    _ = try await client.send(HTTPRequest("POST", url, headers: headers, body: Array(Self.secret.utf8)))
    let all = lines.all
    #expect(all.first == "#1 → POST \(server.httpURL)/v3/x?limit=2&access_token=…&key=…&other=… 6 B")
    #expect(all.contains("#1 ← 201 6 B 0.0 ms"))
    #expect(all.contains("#1   X-LC-Id: app") == (detail == .headers))
    #expect(all.contains("#1   X-Request: r1") == (detail == .headers))
    #expect(all.contains("#1   Authorization: …") == (detail == .headers))
    #expect(detail == .headers || all.count == 2)
    #expect(!all.contains { $0.contains(Self.secret) })
  }

  @Test("a failure is a line that names the peer, and no secret")
  func httpFailure() async {
    let server = ScriptedServer { _ in }
    server.stop()
    let lines = Lines()
    let client = LoggingHTTPClient(CurlHTTPClient(), log: lines.log(.headers))
    await #expect(throws: TransportError.self) {
      try await client.send(HTTPRequest("GET", server.httpURL + "/?token=\(Self.secret)", headers: headers))
    }
    #expect(lines.all.last?.hasPrefix("#1 ✗ refused: 127.0.0.1:\(server.port): ") == true)
    #expect(lines.all.last?.hasSuffix("(nothing sent) 0.0 ms") == true)
    #expect(!lines.all.contains { $0.contains(Self.secret) })
  }

  @Test("a WebSocket is a line for each frame, from its opening to its end, and no secret")
  func webSocket() async throws {
    let server = ScriptedServer { connection in
      connection.acceptUpgrade(fields: "Sec-WebSocket-Protocol: p\r\n")
      connection.echo()
    }
    let lines = Lines()
    let client = LoggingWebSocketClient(LWSWebSocketClient(), log: lines.log(.lines))
    let connection = try await client.connect(
      WebSocketRequest(server.webSocketURL + "/?token=\(Self.secret)", headers: headers, subprotocols: ["p"]))
    try await connection.send(.text(Self.secret))
    _ = try await connection.receive()
    try await connection.send(.binary(Array(Self.secret.utf8)))
    _ = try await connection.receive()
    try await connection.roundTrip()
    await connection.close(code: 4000, reason: Self.secret)
    await #expect(throws: WebSocketClose.self) { try await connection.receive() }
    #expect(
      lines.all == [
        "#1 → open \(server.webSocketURL)/?token=…", "#1 ← opened p 0.0 ms", "#1 → text 6 B", "#1 ← text 6 B",
        "#1 → binary 6 B", "#1 ← binary 6 B", "#1 → ping", "#1 ← pong 0.0 ms", "#1 → close 4000", "#1 ← closed 4000",
      ])
  }

  @Test("a refused WebSocket does not show what the server said")
  func refusedWebSocket() async throws {
    let server = ScriptedServer { connection in
      _ = connection.readHead()
      connection.answer(200, Array(#"{"token":"\#(Self.secret)"}"#.utf8), fields: "Set-Cookie: \(Self.secret)\r\n")
    }
    let lines = Lines()
    let client = LoggingWebSocketClient(LWSWebSocketClient(), log: lines.log(.headers))
    await #expect(throws: TransportError.self) {
      try await client.connect(WebSocketRequest(server.webSocketURL + "/?token=\(Self.secret)", headers: headers))
    }
    #expect(lines.all.last == "#1 ✗ upgrade refused, HTTP 200: 127.0.0.1:\(server.port) 0.0 ms")
    #expect(!lines.all.contains { $0.contains(Self.secret) })
  }
}
