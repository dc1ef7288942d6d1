import ChatTransport
import Testing

@testable import ChatEmulation

@Suite("Only programs of this machine, and pages of this machine, drive an emulator")
struct EmulatorAccessTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var host: String?
    var origin: String?
    var target = "/"
    var isServed: Bool
    var testDescription: String {
      "\(isServed ? "served" : "refused"): \(target), Host \(host ?? "none"), Origin \(origin ?? "none")"
    }

    init(_ isServed: Bool, host: String? = "127.0.0.1:7001", origin: String? = nil, target: String = "/") {
      self.isServed = isServed
      self.host = host
      self.origin = origin
      self.target = target
    }
  }

  static let cases: [Case] = [
    Case(true), Case(true, host: nil), Case(true, host: "localhost"), Case(true, host: "LOCALHOST:7001"),
    Case(true, host: "localhost.:7001"), Case(true, host: "app.localhost:7001"), Case(true, host: "[::1]:7001"),
    Case(true, host: "127.9.9.9"), Case(true, host: "192.168.1.5:7001"), Case(true, host: "emulator.test:7001"),
    Case(true, origin: "http://localhost:3000"), Case(true, origin: "http://127.0.0.1"),
    Case(true, origin: "https://[::1]:8443"), Case(true, origin: "https://app.example"),
    // A name that its owner may lead to 127.0.0.1 at any time.
    Case(false, host: "evil.example"), Case(false, host: "evil.example:7001"), Case(false, host: "127.0.0.1.evil.example"),
    Case(false, host: "localhost.evil.example"), Case(false, host: "1.2.3"), Case(false, host: "0x7f.0.0.1"),
    Case(false, host: "256.0.0.1"), Case(false, host: "notlocalhost"), Case(false, host: ""), Case(false, host: "[::1"),
    Case(false, host: "a@localhost"), Case(false, target: "http://evil.example/"),
    Case(true, target: "http://localhost/"),
    // A page of elsewhere.
    Case(false, origin: "https://evil.example"), Case(false, origin: "null"), Case(false, origin: ""),
    Case(false, origin: "http://localhost.evil.example"), Case(false, origin: "localhost"),
    Case(false, origin: "http://127.0.0.1.evil.example"), Case(false, origin: "https://app.example.evil.example"),
    Case(false, origin: "https://app.example:444"),
  ]

  @Test("host and origin decide", arguments: cases)
  func decisions(_ item: Case) {
    let access = EmulatorAccess(hosts: ["Emulator.test"], origins: ["https://App.example"])
    var headers = HTTPHeaders()
    if let host = item.host { headers.fields.append(.init("Host", host)) }
    if let origin = item.origin { headers.fields.append(.init("Origin", origin)) }
    let head = HTTPRequestHead(method: "GET", target: item.target, minorVersion: 1, headers: headers)
    #expect((access.refusal(of: head) == nil) == item.isServed)
  }

  @Test("neither a request nor an upgrade nor a preflight of a foreign page reaches the emulator")
  func overSockets() async throws {
    let host = try EmulatorHost(EmulatorFactory(EchoEmulator.self), clock: .virtual(start: 1_000_000), journal: .on)
    let server = try await EmulatorServer(host)
    let control = try ControlServer(host.control)
    let foreign = ["Host: evil.example", "Host: localhost\r\nOrigin: https://evil.example"]
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    for fields in foreign {
      for request in [
        "GET /echo HTTP/1.1\r\n\(fields)\r\n\r\n", "GET /ws?user=a HTTP/1.1\r\n\(fields)\r\n\(upgrade)\r\n",
        "OPTIONS /echo HTTP/1.1\r\n\(fields)\r\nAccess-Control-Request-Method: PUT\r\n\r\n",
      ] {
        for port in [server.port, control.port] {
          let answer = await RawSocket.exchange(request, port: port)
          #expect(answer.text.hasPrefix("HTTP/1.1 403 "))
          #expect(!answer.text.contains("Access-Control-Allow"))
        }
      }
    }
    #expect(await host.control.journal().isEmpty)
    await control.stop()
    await server.stop()
  }
}
