#if os(Linux)
  import Foundation
  import Glibc
  import Testing

  @testable import ChatTransport

  @Suite("A name with several addresses", .timeLimit(.minutes(2)))
  struct WebSocketAddressTests {
    /// A port of 127.0.0.2 on which nobody accepts and whose queue is full: the system drops what comes for it.
    private final class Swallower {
      private var descriptors: [Int32] = []

      init?(port: UInt16) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        descriptors.append(listener)
        guard Self.withAddress(port, { bind(listener, $0, $1) }) == 0, listen(listener, 0) == 0 else { return nil }
        for _ in 0..<4 {
          let filler = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
          descriptors.append(filler)
          _ = Self.withAddress(port) { connect(filler, $0, $1) }
        }
      }

      deinit { for descriptor in descriptors { close(descriptor) } }

      private static func withAddress(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0002).bigEndian
        return withUnsafePointer(to: &address) {
          $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
      }
    }

    private func client(_ addresses: [String]) -> LWSWebSocketClient {
      LWSWebSocketClient(certificateAuthorities: nil, resolve: { _ in addresses }, longestAttempt: .milliseconds(200))
    }

    @Test(
      "one that swallows what it is sent, or refuses, is left for the next one, which connects",
      arguments: [
        ["127.0.0.2", "127.0.0.1"], ["127.0.0.2", "127.0.0.2", "127.0.0.1"], ["127.0.0.3", "127.0.0.1"],
        ["127.0.0.2", "127.0.0.3", "127.0.0.1"], ["127.0.0.1", "127.0.0.2"],
      ])
    func next(_ addresses: [String]) async throws {
      let server = ScriptedServer {
        $0.acceptUpgrade()
        $0.sendText("here")
        $0.waitForEnd()
      }
      let swallower = try #require(Swallower(port: server.port))
      let connection = try await client(addresses).connect(WebSocketRequest("ws://several.example:\(server.port)/"))
      #expect(try await connection.receive() == .text("here"))
      await connection.close(code: 1000, reason: "")
      #expect(server.acceptedConnections == 1)
      withExtendedLifetime(swallower) { server.stop() }
    }

    @Test("where all swallow, the limit of the opening counts")
    func none() async throws {
      let server = ScriptedServer { _ in }
      let swallower = try #require(Swallower(port: server.port))
      let request = WebSocketRequest("ws://several.example:\(server.port)/", timeout: .milliseconds(700))
      await #expect { _ = try await client(["127.0.0.2", "127.0.0.2"]).connect(request) } throws: { error in
        guard let error = error as? TransportError else { return false }
        return error.kind == .timeout && error.nothingSent
      }
      withExtendedLifetime(swallower) { server.stop() }
    }
  }

  @Suite("TLS whose name can't be checked")
  struct UncheckableNameTests {
    @Test("is refused before a byte leaves, with the reason", arguments: ["wss://[::1]:8443/", "wss://name.example/"])
    func refused(_ url: String) async {
      var request = WebSocketRequest(url)
      if url.contains("name") { request.headers["Host"] = "other.example" }
      await #expect { _ = try await LWSWebSocketClient().connect(request) } throws: { error in
        guard let error = error as? TransportError else { return false }
        return error.kind == .invalidURL && error.nothingSent && error.detail.contains("Host")
      }
    }
  }
#endif
