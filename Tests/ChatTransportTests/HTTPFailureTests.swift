import ChatCrypto
import ChatTransport
import Synchronization
import Testing

/// What a server does to a request, and what the client must make of it.
struct HTTPFailureCase: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let kind: TransportError.Kind
  var limit = 1 << 20
  let script: @Sendable (Connection) -> Void

  static let all = [
    HTTPFailureCase(testDescription: "the end before any byte of an answer", kind: .closed) {
      _ = $0.readRequest()
    },
    HTTPFailureCase(testDescription: "a reset before any byte of an answer", kind: .closed) {
      _ = $0.readRequest()
      $0.reset()
    },
    HTTPFailureCase(testDescription: "the end within the head", kind: .closed) {
      _ = $0.readRequest()
      $0.write("HTTP/1.1 200 OK\r\nContent-")
    },
    HTTPFailureCase(testDescription: "the end within the body", kind: .closed) {
      _ = $0.readRequest()
      $0.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
    },
    HTTPFailureCase(testDescription: "a reset within the body", kind: .closed) {
      _ = $0.readRequest()
      $0.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
      $0.reset()
    },
    HTTPFailureCase(testDescription: "the end within a chunk", kind: .closed) {
      _ = $0.readRequest()
      $0.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab")
    },
    HTTPFailureCase(testDescription: "a chunk whose size is no number", kind: .closed) {
      _ = $0.readRequest()
      $0.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nab\r\n")
    },
    HTTPFailureCase(testDescription: "an answer that is not HTTP", kind: .protocolViolation) {
      _ = $0.readRequest()
      $0.write("SSH-2.0-OpenSSH_9.2\r\n")
    },
    HTTPFailureCase(testDescription: "a body that is not gzip as it says", kind: .protocolViolation) {
      _ = $0.readRequest()
      $0.answer(200, Array("not gzip".utf8), fields: "Content-Encoding: gzip\r\n")
    },
    HTTPFailureCase(testDescription: "a length over the limit", kind: .tooLarge(limit: 100), limit: 100) {
      _ = $0.readRequest()
      $0.answer(200, [UInt8](repeating: 0, count: 101))
    },
    HTTPFailureCase(testDescription: "a gigabyte announced", kind: .tooLarge(limit: 1 << 20)) {
      _ = $0.readRequest()
      $0.write("HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\nabc")
    },
    HTTPFailureCase(testDescription: "the longest length announced", kind: .tooLarge(limit: 1 << 20)) {
      _ = $0.readRequest()
      $0.write("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nabc")
    },
    HTTPFailureCase(testDescription: "a chunk of a gigabyte announced, and then the end", kind: .closed) {
      _ = $0.readRequest()
      $0.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40000000\r\nabc")
    },
    HTTPFailureCase(testDescription: "a chunk of a gigabyte announced, and more than the limit of it", kind: .tooLarge(limit: 1000), limit: 1000) {
      _ = $0.readRequest()
      $0.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40000000\r\n" + String(repeating: "a", count: 1001))
    },
    HTTPFailureCase(testDescription: "chunks over the limit", kind: .tooLarge(limit: 4), limit: 4) {
      _ = $0.readRequest()
      $0.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n")
    },
    HTTPFailureCase(testDescription: "no body at all allowed", kind: .tooLarge(limit: 0), limit: 0) {
      _ = $0.readRequest()
      $0.answer(200, [1])
    },
    HTTPFailureCase(testDescription: "gzip that grows over the limit", kind: .tooLarge(limit: 1 << 20)) {
      _ = $0.readRequest()
      let bomb = (try? Gzip.compress([UInt8](repeating: 0, count: 8 << 20))) ?? []
      $0.answer(200, bomb, fields: "Content-Encoding: gzip\r\n")
    },
    HTTPFailureCase(testDescription: "header fields without an end", kind: .tooLarge(limit: 256 << 10)) {
      _ = $0.readRequest()
      $0.write("HTTP/1.1 200 OK\r\n")
      for number in 0..<400 { $0.write("X-\(number): \(String(repeating: "x", count: 1000))\r\n") }
    },
  ]
}

@Suite("The HTTP client in trouble", .timeLimit(.minutes(5)))
struct HTTPFailureTests {
  let client = CurlHTTPClient()

  @Test("each trouble has its kind, and a request that left is never said not to have", arguments: HTTPFailureCase.all)
  func failures(_ failure: HTTPFailureCase) async {
    let server = ScriptedServer(failure.script)
    let request = HTTPRequest(
      "POST", server.httpURL + "/path?token=secret", body: Array("secret".utf8), maxResponseSize: failure.limit)
    let error = await #expect(throws: TransportError.self) { try await client.send(request) }
    #expect(error?.kind == failure.kind)
    #expect(error?.nothingSent == false)
    #expect(error?.peer == "127.0.0.1:\(server.port)")
    #expect(error.map { "\($0)" }?.contains("secret") == false)
  }

  @Test("a closed port is refused, and nothing was sent")
  func refused() async {
    let server = ScriptedServer { _ in }
    server.stop()
    let error = await #expect(throws: TransportError.self) {
      try await client.send(HTTPRequest("POST", server.httpURL, body: [1]))
    }
    #expect(error?.kind == .refused)
    #expect(error?.nothingSent == true)
  }

  @Test("a host that does not exist is not resolved, and nothing was sent")
  func unresolved() async {
    let error = await #expect(throws: TransportError.self) {
      try await client.send(HTTPRequest("GET", "http://does-not-exist.invalid/?token=secret", timeout: .seconds(20)))
    }
    // Without any name server the look-up may end by time instead.
    #expect([.unresolvedHost, .timeout].contains(error?.kind))
    #expect(error?.nothingSent == true)
  }

  @Test("a server that does not speak TLS is a failure of TLS, and nothing was sent")
  func notTLS() async {
    let server = ScriptedServer { connection in
      _ = connection.read(1)
      connection.write("HTTP/1.1 400 Bad Request\r\n\r\n")
    }
    let error = await #expect(throws: TransportError.self) {
      try await client.send(HTTPRequest("POST", "https://127.0.0.1:\(server.port)/", body: [1]))
    }
    #expect(error?.kind == .tls)
    #expect(error?.nothingSent == true)
  }

  @Test(
    "a server that keeps silent runs into the timeout",
    arguments: ["", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"])
  func timeout(beginning: String) async {
    let server = ScriptedServer { connection in
      _ = connection.readRequest()
      connection.write(beginning)
      connection.waitForEnd()
    }
    let error = await #expect(throws: TransportError.self) {
      try await client.send(HTTPRequest("POST", server.httpURL, body: [1], timeout: .milliseconds(100)))
    }
    #expect(error?.kind == .timeout)
    #expect(error?.nothingSent == false)
  }

  @Test("cancelling ends the transfer at once, at both ends")
  func cancellation() async {
    let arrived = Gate()
    let ended = Gate()
    let server = ScriptedServer { connection in
      _ = connection.readRequest()
      arrived.open()
      connection.waitForEnd()
      ended.open()
    }
    let task = Task { try await client.send(HTTPRequest("POST", server.httpURL, body: [1])) }
    await arrived.opened()
    task.cancel()
    let error = await #expect(throws: TransportError.self) { try await task.value }
    #expect(error?.kind == .cancelled)
    #expect(error?.nothingSent == false)
    await ended.opened()
  }

  @Test("a task that is cancelled already sends nothing")
  func cancelledBefore() async {
    let server = ScriptedServer { _ in }
    let gate = Gate()
    let task = Task {
      await gate.opened()
      return try await client.send(HTTPRequest("POST", server.httpURL, body: [1]))
    }
    task.cancel()
    gate.open()
    let error = await #expect(throws: TransportError.self) { try await task.value }
    #expect(error?.kind == .cancelled)
    #expect(error?.nothingSent == true)
    #expect(server.acceptedConnections == 0)
  }

  @Test("cancelling a hundred requests at random moments settles each of them once")
  func cancellationStorm() async {
    let server = ScriptedServer { connection in
      while let (_, body) = connection.readRequest() { connection.answer(200, body) }
    }
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<100 {
        let task = Task { try await client.send(HTTPRequest("POST", server.httpURL, body: [UInt8(number)])) }
        group.addTask {
          for _ in 0..<(number % 10) { await Task.yield() }
          task.cancel()
          switch await task.result {
          case .success(let response): #expect(response.body == [UInt8(number)])
          case .failure(let error): #expect((error as? TransportError)?.kind == .cancelled)
          }
        }
      }
    }
  }

  @Test("a POST that meets the end of a kept connection is not sent twice, a GET is")
  func keepAliveRace() async throws {
    let methods = Mutex<[Substring]>([])
    let server = ScriptedServer { connection in
      // Takes every second request and ends without an answer, as a server does that dies after its work is done.
      while let (head, _) = connection.readRequest() {
        let count = methods.withLock { all in
          all.append(head.prefix { $0 != " " })
          return all.count
        }
        if count.isMultiple(of: 2) { return }
        connection.answer(200)
      }
    }
    #expect(try await client.send(HTTPRequest("POST", server.httpURL, body: [1])).status == 200)
    let error = await #expect(throws: TransportError.self) {
      try await client.send(HTTPRequest("POST", server.httpURL, body: [1]))
    }
    #expect(error?.kind == .closed)
    #expect(error?.nothingSent == false)
    #expect(try await client.send(HTTPRequest("GET", server.httpURL)).status == 200)
    #expect(try await client.send(HTTPRequest("GET", server.httpURL)).status == 200)
    #expect(methods.withLock { $0 } == ["POST", "POST", "GET", "GET", "GET"])
  }

  @Test("a POST without a body and a DELETE are not sent twice either", arguments: ["POST", "DELETE", "PUT"])
  func keepAliveRaceWithoutBody(method: String) async throws {
    let server = ScriptedServer { connection in
      guard connection.readRequest() != nil else { return }
      connection.answer(200)
      _ = connection.readRequest()
    }
    _ = try await client.send(HTTPRequest(method, server.httpURL))
    let error = await #expect(throws: TransportError.self) {
      try await client.send(HTTPRequest(method, server.httpURL))
    }
    #expect(error?.kind == .closed)
    #expect(error?.nothingSent == false)
    #expect(server.acceptedConnections <= 2)
  }

  @Test("a kept connection that the server has closed meanwhile is replaced without a word")
  func closedMeanwhile() async throws {
    let ended = Gate()
    let server = ScriptedServer { connection in
      _ = connection.readRequest()
      connection.answer(200, [UInt8(connection.number)])
      connection.end()
      ended.open()
    }
    #expect(try await client.send(HTTPRequest("POST", server.httpURL, body: [1])).body == [1])
    await ended.opened()
    #expect(try await client.send(HTTPRequest("POST", server.httpURL, body: [1])).body == [2])
  }

  @Test(
    "a URL that leads nowhere is refused before any byte leaves",
    arguments: [
      "", "/path", "example.com", "ftp://example.com", "file:///etc/passwd", "http://", "http:///path", "http://:80/",
      "http://a b/", "http://a/ b", "http://a/\r\nX: y", "http://ä.example/", "http://a:0/", "http://a:65536/",
      "http://a:99999999999999999999/", "http://a:b/", "http://user:secret@a/", "http://[::1/", "http://[x]/",
      "http://a%00/", "ws://a/",
    ])
  func badURLs(_ url: String) async {
    let error = await #expect(throws: TransportError.self) { try await client.send(HTTPRequest("GET", url)) }
    #expect(error?.kind == .invalidURL)
    #expect(error?.nothingSent == true)
    #expect(error.map { "\($0)" }?.contains("secret") == false)
  }

  @Test(
    "a header that would end early is refused before any byte leaves",
    arguments: [("X", "a\r\nEvil: 1"), ("X", "a\nb"), ("X", "\0"), ("", "a"), ("X Y", "a"), ("X:", "a"), ("Ä", "a")])
  func badHeaders(name: String, value: String) async {
    let request = HTTPRequest("GET", "http://127.0.0.1:1/", headers: HTTPHeaders([HTTPHeaders.Field(name, value)]))
    let error = await #expect(throws: TransportError.self) { try await client.send(request) }
    #expect(error?.kind == .other)
    #expect(error?.nothingSent == true)
  }

  @Test("a client that is gone has answered everyone")
  func shutDown() async throws {
    let server = ScriptedServer { connection in
      while connection.readRequest() != nil { connection.answer(200) }
    }
    for _ in 0..<20 { #expect(try await CurlHTTPClient().send(HTTPRequest("GET", server.httpURL)).status == 200) }
  }
}
