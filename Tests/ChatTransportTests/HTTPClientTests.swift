import ChatCrypto
import ChatTransport
import Synchronization
import Testing

@Suite("The HTTP client", .timeLimit(.minutes(5)))
struct HTTPClientTests {
  let client = CurlHTTPClient()

  @Test("a request arrives as given, and its answer comes back as sent")
  func exchange() async throws {
    let seen = Mutex("")
    let server = ScriptedServer { connection in
      guard let (head, body) = connection.readRequest() else { return }
      seen.withLock { $0 = head + String(decoding: body, as: UTF8.self) }
      connection.answer(201, Array("done".utf8), fields: "X-Mixed-Case: a: b \r\nSet-Cookie: 1\r\nset-cookie: 2\r\n")
    }
    let request = HTTPRequest(
      "POST", server.httpURL + "/v3/a%2Fb/../c?x=%20&y=1#part",
      headers: ["Content-Type": "application/json", "api-token": "tok", "x-Empty": "", "X-Two": "1", "x-two": "2"],
      body: Array(#"{"a":1}"#.utf8))
    let response = try await client.send(request)
    #expect(
      seen.withLock { $0 } == """
        POST /v3/a%2Fb/../c?x=%20&y=1 HTTP/1.1\r
        Host: 127.0.0.1:\(server.port)\r
        Accept-Encoding: gzip, deflate\r
        Content-Type: application/json\r
        api-token: tok\r
        x-Empty:\r
        X-Two: 1\r
        x-two: 2\r
        Content-Length: 7\r
        \r
        {"a":1}
        """)
    #expect(response.status == 201)
    #expect(response.body == Array("done".utf8))
    #expect(response.headers["x-mixed-case"] == "a: b")
    #expect(response.headers.fields.filter { $0.name.lowercased() == "set-cookie" }.map(\.value) == ["1", "2"])
    #expect(response.headers.fields.map(\.name) == ["Content-Length", "X-Mixed-Case", "Set-Cookie", "set-cookie"])
  }

  @Test(
    "each method sends a length where a body may be, and none where not",
    arguments: [
      ("GET", nil), ("HEAD", nil), ("DELETE", nil), ("OPTIONS", nil), ("POST", "0"), ("PUT", "0"), ("PATCH", "0"),
    ] as [(String, String?)])
  func emptyBodies(method: String, length: String?) async throws {
    let seen = Mutex("")
    let server = ScriptedServer { connection in
      guard let (head, _) = connection.readRequest() else { return }
      seen.withLock { $0 = head }
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    }
    let response = try await client.send(HTTPRequest(method, server.httpURL + "/"))
    #expect(response.status == 200)
    let head = seen.withLock { $0 }
    #expect(head.hasPrefix("\(method) / HTTP/1.1\r\n"))
    let sent = head.split(separator: "\r\n").first { $0.hasPrefix("Content-Length:") }
    #expect(sent.map(String.init) == length.map { "Content-Length: \($0)" })
  }

  @Test("a body goes with any method", arguments: ["GET", "DELETE", "PUT", "PATCH", "QUERY-IT"])
  func bodies(method: String) async throws {
    let server = ScriptedServer { connection in
      guard let (head, body) = connection.readRequest() else { return }
      connection.answer(200, Array((head.prefix { $0 != " " } + ":").utf8) + body)
    }
    let response = try await client.send(HTTPRequest(method, server.httpURL, body: Array("abc".utf8)))
    #expect(response.body == Array("\(method):abc".utf8))
  }

  @Test("the answer to HEAD may tell of a body that is larger than the limit")
  func head() async throws {
    let server = ScriptedServer { connection in
      _ = connection.readRequest()
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 123456789\r\n\r\n")
    }
    let response = try await client.send(HTTPRequest("HEAD", server.httpURL, maxResponseSize: 10))
    #expect(response.headers["content-length"] == "123456789")
    #expect(response.body.isEmpty)
  }

  @Test(
    "a status is an answer, never an error, and nothing is followed or retried",
    arguments: [200, 204, 301, 302, 304, 307, 401, 403, 404, 407, 429, 500, 503, 599])
  func statuses(_ status: Int) async throws {
    let server = ScriptedServer { connection in
      _ = connection.readRequest()
      connection.answer(
        status, status == 204 || status == 304 ? [] : [1],
        fields: "Location: http://127.0.0.1:1/\r\nWWW-Authenticate: Basic realm=\"x\"\r\nRetry-After: 1\r\n")
      connection.waitForEnd()
    }
    let response = try await client.send(HTTPRequest("POST", server.httpURL, body: [1, 2]))
    #expect(response.status == status)
    #expect(response.headers["www-authenticate"] == "Basic realm=\"x\"")
    #expect(server.acceptedConnections == 1)
  }

  @Test("a connection is kept and used again")
  func reuse() async throws {
    let server = ScriptedServer { connection in
      while connection.readRequest() != nil { connection.answer(200, [UInt8(connection.number)]) }
    }
    for _ in 0..<5 {
      #expect(try await client.send(HTTPRequest("POST", server.httpURL, body: [1])).body == [1])
    }
    #expect(server.acceptedConnections == 1)
  }

  @Test("a hundred requests at once all get their own answers")
  func concurrency() async throws {
    let server = ScriptedServer { connection in
      while let (_, body) = connection.readRequest() { connection.answer(200, body) }
    }
    try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<100 {
        group.addTask {
          let body = Array("request \(number)".utf8)
          return try await client.send(HTTPRequest("POST", server.httpURL, body: body)).body == body
        }
      }
      for try await isRight in group { #expect(isRight) }
    }
  }

  @Test("a mebibyte goes both ways", arguments: [1 << 20, 5 << 20])
  func large(size: Int) async throws {
    let server = ScriptedServer { connection in
      while let (_, body) = connection.readRequest() { connection.answer(200, body) }
    }
    let body = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    #expect(try await client.send(HTTPRequest("PUT", server.httpURL, body: body)).body == body)
  }

  @Test("progress only grows, and ends at the whole")
  func progress() async throws {
    let size = 1 << 20
    let server = ScriptedServer { connection in
      if let (_, body) = connection.readRequest() { connection.answer(200, body) }
    }
    let reports = Mutex<[TransferProgress]>([])
    _ = try await client.send(HTTPRequest("POST", server.httpURL, body: [UInt8](repeating: 1, count: size))) { report in
      reports.withLock { $0.append(report) }
    }
    let all = reports.withLock { $0 }
    #expect(zip(all, all.dropFirst()).allSatisfy { $0.sent <= $1.sent && $0.received <= $1.received })
    let last = try #require(all.last)
    let whole = Int64(size)
    #expect(last == TransferProgress(sent: whole, received: whole, sentTotal: whole, receivedTotal: whole))
  }

  @Test("interim answers and trailers do not confuse")
  func interim() async throws {
    let server = ScriptedServer { connection in
      _ = connection.readRequest()
      connection.write("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
      connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nFolded: a\r\n  b\r\n\r\n")
      connection.write("3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nX-Trailer: t\r\n\r\n")
    }
    let response = try await client.send(HTTPRequest("GET", server.httpURL))
    #expect(response.status == 200)
    #expect(response.body == Array("abcde".utf8))
    #expect(response.headers["link"] == nil)
    #expect(response.headers["folded"] == "a b")
    #expect(response.headers["x-trailer"] == "t")
  }

  @Test("a body without a length ends with the connection")
  func untilClose() async throws {
    let server = ScriptedServer { connection in
      _ = connection.readRequest()
      connection.write("HTTP/1.0 200 OK\r\n\r\nall of it")
    }
    #expect(try await client.send(HTTPRequest("GET", server.httpURL)).body == Array("all of it".utf8))
  }

  @Test("a compressed body is decoded, unless the caller named its own encodings")
  func gzip() async throws {
    let plain = Array(String(repeating: "hello ", count: 1000).utf8)
    let packed = try Gzip.compress(plain)
    let server = ScriptedServer { connection in
      while connection.readRequest() != nil { connection.answer(200, packed, fields: "Content-Encoding: gzip\r\n") }
    }
    #expect(try await client.send(HTTPRequest("GET", server.httpURL)).body == plain)
    let raw = HTTPRequest("GET", server.httpURL, headers: ["accept-encoding": "gzip"])
    #expect(try await client.send(raw).body == packed)
  }

  @Test("bytes arrive one by one all the same")
  func slowly() async throws {
    let server = ScriptedServer { connection in
      _ = connection.readRequest()
      for byte in "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc".utf8 { connection.write([byte]) }
    }
    #expect(try await client.send(HTTPRequest("GET", server.httpURL)).body == Array("abc".utf8))
  }
}
