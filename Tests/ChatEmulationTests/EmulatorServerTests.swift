import ChatEmulation
import ChatTransport
import Foundation
import Testing

@Suite("An emulator on a port")
struct EmulatorServerTests {
  func start(_ port: UInt16 = 0) async throws -> EmulatorServer {
    let host = try EmulatorHost(EmulatorFactory(EchoEmulator.self), clock: .virtual(start: 1_000_000))
    return try await EmulatorServer(host, port: port, bodyLimit: 1 << 20, messageLimit: 100_000)
  }

  @Test("several requests on one connection are answered in order, also when the client has ended its half")
  func pipelining() async throws {
    let server = try await start()
    let text = "GET /echo?1 HTTP/1.1\r\nHost: localhost:1\r\n\r\nPOST /echo?2 HTTP/1.1\r\nContent-Length: 2\r\n\r\nok"
    let answer = await RawSocket.exchange(text, port: server.port, endingHalf: true)
    #expect(
      answer.text == """
        HTTP/1.1 200 OK\r
        X-Echo: yes\r
        Content-Length: \("GET http://localhost:1/echo?1 ".utf8.count)\r
        Connection: keep-alive\r
        \r
        GET http://localhost:1/echo?1 HTTP/1.1 200 OK\r
        X-Echo: yes\r
        Content-Length: \("POST \(server.baseURL)/echo?2 ok".utf8.count)\r
        Connection: keep-alive\r
        \r
        POST \(server.baseURL)/echo?2 ok
        """)
    await server.stop()
  }

  struct Refusal: Sendable, CustomTestStringConvertible {
    var request: String
    var status: Int
    var testDescription: String { "\(status)" }
  }

  @Test(
    "what is no request is refused with a status, and the connection ends",
    arguments: [
      Refusal(request: "GARBAGE\r\n\r\n", status: 400),
      Refusal(request: "POST / HTTP/1.1\r\nContent-Length: 2000000\r\n\r\n", status: 413),
      Refusal(request: "GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", status: 426),
      Refusal(
        request: "GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n",
        status: 400),
    ])
  func refusals(_ refusal: Refusal) async throws {
    let server = try await start()
    let answer = await RawSocket.exchange(refusal.request, port: server.port)
    #expect(answer.text.hasPrefix("HTTP/1.1 \(refusal.status) "))
    #expect(answer.text.contains("Connection: close\r\n"))
    await server.stop()
  }

  @Test("an answer to HEAD has the length and no body")
  func head() async throws {
    let server = try await start()
    let request = "HEAD /size/7 HTTP/1.1\r\nConnection: close\r\n\r\n"
    let answer = await RawSocket.exchange(request, port: server.port)
    #expect(answer.text == "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\n")
    await server.stop()
  }

  @Test("a browser's preflight is answered, and its requests may be read by the page")
  func browsers() async throws {
    let server = try await start()
    let preflight = """
      OPTIONS /echo HTTP/1.1\r
      Origin: http://localhost:3000\r
      Access-Control-Request-Method: PUT\r
      Access-Control-Request-Headers: x-lc-id, content-type\r
      \r
      GET /echo HTTP/1.1\r
      Origin: http://localhost:3000\r
      Connection: close\r
      \r

      """
    let answer = await RawSocket.exchange(preflight, port: server.port)
    let parts = answer.text.components(separatedBy: "\r\n\r\n")
    #expect(parts[0].hasPrefix("HTTP/1.1 204 No Content\r\n"))
    for field in ["Methods: PUT", "Headers: x-lc-id, content-type", "Origin: http://localhost:3000", "Credentials: true"] {
      #expect(parts[0].contains("Access-Control-Allow-\(field)"))
    }
    #expect(parts[1].contains("Access-Control-Allow-Origin: http://localhost:3000"))
    #expect(parts[1].contains("Access-Control-Expose-Headers: X-Echo"))
    await server.stop()
  }

  static let switching =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

  @Test("an upgrade, a message and every ping are answered as RFC 6455 says, although they come at once")
  func webSocket() async throws {
    let server = try await start()
    let frames = RawSocket.frame(0x89, [1]) + RawSocket.frame(0x89, [2]) + RawSocket.frame(0x82, [7, 8])
    let hello = [0x81, 9] + Array("hello raw".utf8)
    let pinged = [0x81, 6] + Array("pinged".utf8)
    let expected: [[UInt8]] = [hello, [0x8A, 1, 1], [0x8A, 1, 2], pinged, pinged, [0x82, 2, 7, 8]]
    let length = Self.switching.utf8.count + expected.reduce(0) { $0 + $1.count }
    let answer = await RawSocket.exchange([RawSocket.upgrade + frames], port: server.port, upTo: length)
    #expect(answer.text.hasPrefix(Self.switching))
    let rest = Array(answer.bytes.dropFirst(Self.switching.utf8.count))
    // Pongs come from the connection, messages from the machine: their order among each other is free.
    for frame in expected { #expect(rest.contains(frame)) }
    #expect(answer.bytes.count == length)
    await server.stop()
  }

  @Test("a close is answered with its code, and the connection ends without a reset")
  func close() async throws {
    let server = try await start()
    let answer = await RawSocket.exchange([RawSocket.upgrade + RawSocket.frame(0x88, [3, 232])], port: server.port)
    #expect(answer.bytes.suffix(4) == [0x88, 2, 3, 232])
    #expect(!answer.wasReset)
    await server.stop()
  }

  @Test("a cut is a reset without a close frame")
  func cut() async throws {
    let server = try await start()
    let answer = await RawSocket.exchange([RawSocket.upgrade + RawSocket.frame(0x81, Array("cut".utf8))], port: server.port)
    #expect(answer.wasReset)
    await server.stop()
  }

  @Test("a port in use is named with the mend")
  func portInUse() async throws {
    let server = try await start()
    let error = await #expect(throws: EmulatorServerError.self) { try await start(server.port) }
    #expect(error == .portInUse(server.port))
    #expect(error?.description.contains("choose another port") == true)
    await server.stop()
  }

  @Test("an address that is not of this machine is named")
  func wrongAddress() async throws {
    let host = try EmulatorHost(EmulatorFactory(EchoEmulator.self))
    for address in ["192.0.2.1", "no address"] {
      let error = await #expect(throws: EmulatorServerError.self) { try await EmulatorServer(host, address: address) }
      #expect(error == .addressNotAvailable(address))
    }
  }

  @Test("a stopped server frees its port and ends its connections")
  func stop() async throws {
    let server = try await start()
    let port = server.port
    async let answer = RawSocket.exchange("GET /silent HTTP/1.1\r\n\r\n", port: port)
    while await server.host.pendingExchanges == 0 { await Task.yield() }
    await server.stop()
    #expect(await answer.bytes.isEmpty)
    let again = try await start(port)
    await again.stop()
  }
}
