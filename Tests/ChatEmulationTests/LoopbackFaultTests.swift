import ChatEmulation
import ChatTransport
import Testing

@Suite("Faults that only a socket can show")
struct LoopbackFaultTests {
  static let head = EmulatorServerTests.switching
  static let hello = [0x81, 9] + Array("hello raw".utf8)

  /// What a client that upgrades and sends `text` reads after the greeting, up to `count` bytes.
  func exchange(
    _ text: String, _ rule: FaultRule, upTo count: Int = 1 << 20, alsoSending more: [UInt8] = []
  ) async throws -> RawSocket.Answer {
    let host = try EmulatorHost(EmulatorFactory(EchoEmulator.self), clock: .virtual)
    let server = try await EmulatorServer(host)
    try await host.control.add(rule)
    let frame = RawSocket.frame(0x81, Array(text.utf8))
    let skip = Self.head.utf8.count + Self.hello.count
    var answer = await RawSocket.exchange(
      [RawSocket.upgrade + frame + more], port: server.port, upTo: count == 1 << 20 ? .max : skip + count)
    #expect(await host.control.missedRules() == [])
    await server.stop()
    #expect(answer.bytes.starts(with: Array(Self.head.utf8) + Self.hello))
    answer.bytes.removeFirst(min(skip, answer.bytes.count))
    return answer
  }

  @Test("a message in fragments of given sizes")
  func fragments() async throws {
    let rule = FaultRule(.init("ack", clientID: "abcdef"), do: .fragment([1, 0, 2, 99]))
    let answer = try await exchange("abcdef", rule, upTo: 14)
    let expected: [UInt8] = [0x01, 1, 0x61, 0x00, 0, 0x00, 2, 0x62, 0x63, 0x80, 3, 0x64, 0x65, 0x66]
    #expect(answer.bytes == expected)
  }

  @Test("a frame with a reserved bit, and one with a byte that is not UTF-8")
  func corruption() async throws {
    let bit = FaultRule(.init("ack", clientID: "abc"), do: .corrupt(offset: 0, xor: 0x40))
    #expect(try await exchange("abc", bit, upTo: 5).bytes == [0xC1, 3, 0x61, 0x62, 0x63])
    let byte = FaultRule(.init("ack", clientID: "abc"), do: .corrupt(offset: 3, xor: 0x80))
    #expect(try await exchange("abc", byte, upTo: 5).bytes == [0x81, 3, 0x61, 0xE2, 0x63])
  }

  @Test("a half-closed connection ends for the client, whose messages still arrive")
  func halfClose() async throws {
    let host = try EmulatorHost(EmulatorFactory(EchoEmulator.self), clock: .virtual, journal: .on)
    let server = try await EmulatorServer(host)
    try await host.control.add(FaultRule(.init("send", clientID: "a"), at: .afterCommit, do: .closeSocket(.halfClose)))
    let frames = RawSocket.frame(0x81, [0x61]) + RawSocket.frame(0x81, [0x62])
    let answer = await RawSocket.exchange([RawSocket.upgrade + frames], port: server.port)
    #expect(!answer.wasReset)
    #expect(await host.control.wait(for: .init("send", direction: .inbound, clientID: "b")))
    await server.stop()
  }

  @Test("a server that refuses connections leaves open ones alone and comes back on its port")
  func refusing() async throws {
    let host = try EmulatorHost(EmulatorFactory(EchoEmulator.self), clock: .virtual)
    let server = try await EmulatorServer(host)
    let request = "GET /echo HTTP/1.1\r\nConnection: close\r\n\r\n"
    await host.control.refuseConnections(true)
    // The loop closes its port soon after the call: until then it may still answer.
    while await !RawSocket.exchange(request, port: server.port).bytes.isEmpty { await Task.yield() }
    await host.control.refuseConnections(false)
    while await RawSocket.exchange(request, port: server.port).bytes.isEmpty { await Task.yield() }
    await server.stop()
  }
}
