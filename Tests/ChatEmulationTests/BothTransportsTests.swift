import ChatEmulation
import ChatTransport
import Testing
import UnifiedChat

#if os(Linux)
  /// The same emulator reached without sockets and with the clients that apps use.
  enum Reach: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case inProcess, loopback
    var testDescription: String { rawValue }
  }

  /// A host with its clients, and what must be stopped.
  struct Reached {
    let host: EmulatorHost
    let transports: Transports
    let baseURL: String
    let server: EmulatorServer?

    init(_ reach: Reach) async throws {
      host = try EmulatorHost(EmulatorFactory(EchoEmulator.self), clock: .virtual, journal: .on)
      switch reach {
      case .inProcess:
        server = nil
        transports = host.transports
        baseURL = "http://vendor.example"
      case .loopback:
        let server = try await EmulatorServer(host)
        self.server = server
        transports = .system()
        baseURL = server.baseURL
      }
    }

    func open(_ query: String, protocols: [String] = []) async throws -> any WebSocketConnection {
      let url = "ws" + baseURL.dropFirst(4) + "/ws" + query
      return try await transports.webSocket.connect(WebSocketRequest(url, subprotocols: protocols))
    }

    func stop() async { await server?.stop() }
  }

  @Suite("An emulator means the same in process and on a port")
  struct BothTransportsTests {
    @Test("a request's method, target, fields and bytes arrive, and the answer's come back", arguments: Reach.allCases)
    func http(_ reach: Reach) async throws {
      let reached = try await Reached(reach)
      let url = reached.baseURL + "/echo/a%2Fb//c?x=1%2B2+3&y=%E4%BD%A0"
      let body = (0..<70_000).map { UInt8(truncatingIfNeeded: $0) }
      let response = try await reached.transports.http.send(
        HTTPRequest("PUT", url, headers: ["X-LC-Id": "你 b"], body: body))
      #expect(response.status == 200)
      #expect(response.headers["x-echo"] == "yes")
      #expect(response.body == Array("PUT \(url) ".utf8) + body)
      let large = try await reached.transports.http.send(HTTPRequest("GET", reached.baseURL + "/size/3000000"))
      #expect(large.body.count == 3_000_000)
      await reached.stop()
    }

    @Test("messages keep their order, kind and bytes", arguments: Reach.allCases)
    func messages(_ reach: Reach) async throws {
      let reached = try await Reached(reach)
      let connection = try await reached.open("?user=alice", protocols: ["lc.protobuf2.3", "lc.json.3"])
      #expect(connection.subprotocol == "lc.protobuf2.3")
      #expect(try await connection.receive() == .text("hello alice"))
      let messages: [WebSocketMessage] =
        (0..<50).map { .text("\($0) 你好 😀") } + [.text(""), .binary([0, 1, 255]), .binary(Array(repeating: 7, count: 70_000))]
      for message in messages { try await connection.send(message) }
      for message in messages { #expect(try await connection.receive() == message) }
      await connection.close(code: 1000, reason: "")
      await reached.stop()
    }

    @Test("a refused upgrade gives status and body, also with 200", arguments: Reach.allCases)
    func refusal(_ reach: Reach) async throws {
      let reached = try await Reached(reach)
      let error = await #expect(throws: TransportError.self) { try await reached.open("") }
      guard case .upgradeRefused(let response)? = error?.kind else { throw WebSocketClose(reason: "\(String(describing: error))") }
      #expect(response.status == 200)
      #expect(response.body == Array(#"{"errCode":1001}"#.utf8))
      await reached.stop()
    }

    @Test("the emulator's close has its code after all messages; a cut has none", arguments: Reach.allCases)
    func endings(_ reach: Reach) async throws {
      let reached = try await Reached(reach)
      let first = try await reached.open("?user=alice")
      try await first.send(.text("close"))
      #expect(try await first.receive() == .text("hello alice"))
      #expect(try await first.receive() == .text("bye"))
      let close = await #expect(throws: WebSocketClose.self) { try await first.receive() }
      #expect(close == WebSocketClose(code: 4001, reason: "asked"))
      let second = try await reached.open("?user=bob")
      #expect(try await second.receive() == .text("hello bob"))
      try await second.send(.text("cut"))
      let cut = await #expect(throws: WebSocketClose.self) { try await second.receive() }
      #expect(cut?.code == nil)
      await reached.stop()
    }

    @Test("the client's close reaches the machine with its code", arguments: Reach.allCases)
    func clientClose(_ reach: Reach) async throws {
      let reached = try await Reached(reach)
      let connection = try await reached.open("?user=alice")
      #expect(try await connection.receive() == .text("hello alice"))
      await connection.close(code: 4567, reason: "mine")
      #expect(await reached.host.control.wait(for: .init("other", direction: .inbound, vendorName: "closed")))
      let journal = try await reached.transports.http.send(HTTPRequest("GET", reached.baseURL + "/journal")).body
      #expect(String(decoding: journal, as: UTF8.self) == "closed alice 4567")
      await reached.stop()
    }

    @Test("an acknowledgement lost after the commit looks the same", arguments: Reach.allCases)
    func ackLost(_ reach: Reach) async throws {
      let reached = try await Reached(reach)
      let alice = try await reached.open("?user=alice")
      let bob = try await reached.open("?user=bob")
      #expect(try await alice.receive() == .text("hello alice"))
      #expect(try await bob.receive() == .text("hello bob"))
      try await reached.host.control.add(
        FaultRule(.init("send", user: "alice"), at: .afterCommit, do: .closeSocket(.abrupt)))
      try await alice.send(.text("all hands"))
      let cut = await #expect(throws: WebSocketClose.self) { try await alice.receive() }
      #expect(cut?.code == nil)
      #expect(try await bob.receive() == .text("all hands"))
      await reached.stop()
    }

    @Test("many clients at once each get their own answers", arguments: Reach.allCases)
    func many(_ reach: Reach) async throws {
      let reached = try await Reached(reach)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for client in 0..<30 {
          group.addTask {
            let connection = try await reached.open("?user=u\(client)")
            #expect(try await connection.receive() == .text("hello u\(client)"))
            for index in 0..<30 {
              try await connection.send(.text("\(client) \(index)"))
              #expect(try await connection.receive() == .text("\(client) \(index)"))
            }
            let url = reached.baseURL + "/echo?\(client)"
            let answer = try await reached.transports.http.send(HTTPRequest("GET", url))
            #expect(answer.body == Array("GET \(url) ".utf8))
            await connection.close(code: 1000, reason: "")
          }
        }
        try await group.waitForAll()
      }
      await reached.stop()
    }
  }
#endif
