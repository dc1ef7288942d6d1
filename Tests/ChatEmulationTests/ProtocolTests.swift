import ChatEmulation
import ChatTransport
import Testing

@Suite("RFC 6455 at the server, case by case")
struct ProtocolTests {
  private static func start(messageLimit: Int = 100_000) async throws -> EmulatorServer {
    let host = try EmulatorHost(EmulatorFactory(EchoEmulator.self), clock: .virtual(start: 1_000_000))
    return try await EmulatorServer(host, messageLimit: messageLimit)
  }

  /// What the server sent after its switch of protocols, but for what the emulator says by itself.
  private static func frames(_ answer: RawSocket.Answer) throws -> [ProtocolCase.Frame] {
    let bytes = answer.bytes
    let end = try #require(bytes.indices.first { bytes[$0...].starts(with: [13, 10, 13, 10]) })
    var rest = bytes[(end + 4)...]
    var frames: [ProtocolCase.Frame] = []
    while rest.count >= 2 {
      let first = rest.removeFirst()
      let short = Int(rest.removeFirst())
      let extra = short == 126 ? 2 : short == 127 ? 8 : 0
      let count = extra == 0 ? short : rest.prefix(extra).reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(extra)
      let payload = Array(rest.prefix(count))
      try #require(payload.count == count, "a frame breaks off")
      rest = rest.dropFirst(count)
      if !["hello raw", "pinged"].contains(where: { Array($0.utf8) == payload }) {
        frames.append(ProtocolCase.Frame(first: first, payload: payload))
      }
    }
    return frames
  }

  /// Bytes until these answers are there, with what the emulator says by itself: a greeting, and a text for each ping.
  private static func size(_ answers: [ProtocolCase.Frame]) -> Int {
    let own = [ProtocolCase.Frame.text("hello raw")] + answers.filter { $0.first == 0x8A }.map { _ in .text("pinged") }
    return EmulatorServerTests.switching.utf8.count + (own + answers).reduce(0) { $0 + $1.size }
  }

  /// One server for all: a case that breaks it shows in the next ones.
  @Test("each case is answered and closed as the RFC says")
  func cases() async throws {
    let server = try await Self.start()
    for test in ProtocolCase.all {
      let bytes = test.sent
      let step = test.piece ?? bytes.count
      let parts = stride(from: 0, to: bytes.count, by: step).map { Array(bytes[$0..<min($0 + step, bytes.count)]) }
      let answer = await RawSocket.exchange(
        [RawSocket.upgrade] + parts, port: server.port, upTo: Self.size(test.answers), last: ProtocolCase.closing(1000))
      #expect(!answer.wasReset, "\(test.title)")
      var frames = try Self.frames(answer)
      let ending = frames.popLast()
      let last = try #require(ending, "\(test.title): no answer")
      #expect(last.first == 0x88, "\(test.title): it ends with \(last)")
      let code = last.payload.count < 2 ? 1005 : UInt16(last.payload[0]) << 8 | UInt16(last.payload[1])
      #expect(code == test.close, "\(test.title): closed with \(code)")
      let isBroken = [1002, 1007, 1009].contains(test.close)
      #expect(Self.sorted(frames) == Self.sorted(test.answers) || (isBroken && frames.isEmpty), "\(test.title)")
    }
    await server.stop()
  }

  /// Pongs come from the connection and messages from the machine: their order among each other is free.
  private static func sorted(_ frames: [ProtocolCase.Frame]) -> [ProtocolCase.Frame] {
    frames.filter { $0.first == 0x8A } + frames.filter { $0.first != 0x8A }
  }

  @Test("a message of the largest size comes back whole, and one byte more is refused before it is read")
  func largest() async throws {
    let server = try await Self.start(messageLimit: 4 << 20)
    let payload = [UInt8](repeating: 0x5A, count: 4 << 20)
    let head: [UInt8] = [0x82, 0xFF, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0]
    let answer = await RawSocket.exchange(
      [RawSocket.upgrade + head, payload], port: server.port, upTo: Self.size([.binary(payload)]),
      last: ProtocolCase.closing(1000))
    #expect(try Self.frames(answer).first?.payload == payload)
    let larger: [UInt8] = [0x82, 0xFF, 0, 0, 0, 0, 0, 0x40, 0, 1, 0, 0, 0, 0]
    let refused = try Self.frames(await RawSocket.exchange([RawSocket.upgrade + larger], port: server.port))
    #expect(refused.map(\.payload.first) == [3] && refused[0].payload[1] == 241)
    await server.stop()
  }
}
