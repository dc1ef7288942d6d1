import ChatHarness
import ChatTransport
import Foundation
import Testing

@Suite("TLS", .enabled(if: OpenSSLServer.isAvailable, "the openssl program is not there"), .timeLimit(.minutes(5)))
struct TLSTests {
  @Test("a certificate that the given authorities vouch for is accepted")
  func trusted() async throws {
    let server = try await OpenSSLServer.start()
    let http = CurlHTTPClient(certificateAuthorities: server.certificate)
    let response = try await http.send(HTTPRequest("GET", "https://localhost:\(server.port)/"))
    #expect(response.status == 200)
    #expect(String(decoding: response.body, as: UTF8.self).contains("s_server"))
    // The page is no WebSocket, but that it arrives shows that the tunnel stands.
    let webSocket = LWSWebSocketClient(certificateAuthorities: server.certificate)
    let error = await #expect(throws: TransportError.self) {
      try await webSocket.connect(WebSocketRequest("wss://localhost:\(server.port)/"))
    }
    guard case .upgradeRefused(let answer) = error?.kind else { return #expect(error == nil) }
    #expect(answer.status == 200)
    #expect(String(decoding: answer.body, as: UTF8.self).contains("s_server"))
  }

  @Test("a certificate that nobody vouches for is refused before anything is sent")
  func untrusted() async throws {
    let server = try await OpenSSLServer.start()
    await expectTLSFailure(CurlHTTPClient(), LWSWebSocketClient(), "localhost:\(server.port)")
  }

  @Test("a certificate for another name is refused before anything is sent")
  func otherName() async throws {
    let server = try await OpenSSLServer.start(name: "chat.example")
    await expectTLSFailure(
      CurlHTTPClient(certificateAuthorities: server.certificate),
      LWSWebSocketClient(certificateAuthorities: server.certificate), "localhost:\(server.port)")
  }

  @Test("a certificate that has expired is refused before anything is sent, whoever vouches for it")
  func expired() async throws {
    let server = try await OpenSSLServer.start(isExpired: true)
    await expectTLSFailure(
      CurlHTTPClient(certificateAuthorities: server.certificate),
      LWSWebSocketClient(certificateAuthorities: server.certificate), "localhost:\(server.port)")
  }

  @Test("a file of authorities that is not there is a failure of TLS")
  func missingFile() async throws {
    let server = try await OpenSSLServer.start()
    let file = "/nonexistent/authorities.pem"
    await expectTLSFailure(
      CurlHTTPClient(certificateAuthorities: file), LWSWebSocketClient(certificateAuthorities: file),
      "localhost:\(server.port)")
  }

  private func expectTLSFailure(_ http: CurlHTTPClient, _ webSocket: LWSWebSocketClient, _ authority: String) async {
    let first = await #expect(throws: TransportError.self) {
      try await http.send(HTTPRequest("POST", "https://\(authority)/", body: [1]))
    }
    #expect(first?.kind == .tls)
    #expect(first?.nothingSent == true)
    let second = await #expect(throws: TransportError.self) {
      try await webSocket.connect(WebSocketRequest("wss://\(authority)/"))
    }
    #expect(second?.kind == .tls)
    #expect(second?.nothingSent == true)
  }
}
