import ChatEmulation
import ChatTransport
import Foundation
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

  /// Autobahn's list; of 12 and 13, compression, see `noCompression`.
  static let groups: [String] =
    ["1.1", "1.2"] + (1...11).map { "2.\($0)" } + (1...7).map { "3.\($0)" } + ["4.1", "4.2"] + (1...20).map { "5.\($0)" }
    + (1...23).map { "6.\($0)" } + ["7.1", "7.3", "7.5", "7.7", "7.9", "7.13", "9.7", "9.8", "10.1"]

  @Test("no group of Autobahn's list is without a case", arguments: groups)
  func group(_ group: String) {
    #expect(ProtocolCase.all.contains { $0.title.split(separator: " ").first.map(String.init) == group })
  }

  struct Large: Sendable, CustomTestStringConvertible {
    var title: String
    var first: UInt8
    var size: Int
    /// Bytes in a frame.
    var frame = Int.max
    /// Bytes in a packet.
    var packet = Int.max
    var testDescription: String { title }
  }

  static let large = [
    Large(title: "9.1 text of 16 MiB", first: 0x01, size: 16 << 20),
    Large(title: "9.2 binary of 16 MiB", first: 0x02, size: 16 << 20),
    Large(title: "9.3 text in frames of 64 KiB", first: 0x01, size: 4 << 20, frame: 1 << 16),
    Large(title: "9.3 text in frames of 64 bytes", first: 0x01, size: 1 << 18, frame: 64),
    Large(title: "9.4 binary in frames of 64 KiB", first: 0x02, size: 4 << 20, frame: 1 << 16),
    Large(title: "9.4 binary in frames of 64 bytes", first: 0x02, size: 1 << 18, frame: 64),
    Large(title: "9.5 text in packets of 512 bytes", first: 0x01, size: 1 << 20, packet: 512),
    Large(title: "9.6 binary in packets of 512 bytes", first: 0x02, size: 1 << 20, packet: 512),
  ]

  @Test("a large message comes back whole, in however many frames and packets it came", arguments: large)
  func comesBack(_ large: Large) async throws {
    let server = try await Self.start(messageLimit: 16 << 20)
    let payload = [UInt8](repeating: 0x5A, count: large.size)
    let bytes = ProtocolCase.pieces(of: payload, size: min(large.frame, large.size), first: large.first)
    let step = min(large.packet, bytes.count)
    let parts = stride(from: 0, to: bytes.count, by: step).map { Array(bytes[$0..<min($0 + step, bytes.count)]) }
    let expected = ProtocolCase.Frame(first: 0x80 | large.first, payload: payload)
    let answer = await RawSocket.exchange(
      [RawSocket.upgrade] + parts, port: server.port, upTo: Self.size([expected]), last: ProtocolCase.closing(1000))
    #expect(try Self.frames(answer).first == expected)
    await server.stop()
  }

  @Test("compression that a client offers is not taken, in any of its forms", arguments: [
    "permessage-deflate", "permessage-deflate; client_max_window_bits", "permessage-deflate; server_max_window_bits=8",
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover", "permessage-bzip2, x-webkit-deflate-frame",
  ])
  func noCompression(_ offer: String) async throws {
    let server = try await Self.start()
    let upgrade = String(decoding: RawSocket.upgrade, as: UTF8.self)
      .replacingOccurrences(of: "\r\n\r\n", with: "\r\nSec-WebSocket-Extensions: \(offer)\r\n\r\n")
    let answer = await RawSocket.exchange(
      [Array(upgrade.utf8) + RawSocket.frame(0xC1, [0x2A, 0, 0])], port: server.port)
    #expect(answer.text.hasPrefix("HTTP/1.1 101"))
    #expect(!answer.text.lowercased().contains("sec-websocket-extensions"))
    // Whoever compresses all the same breaks the protocol.
    #expect(try Self.frames(answer).last?.payload.starts(with: [3, 234]) == true)
    await server.stop()
  }

  @Test("one byte more than the largest message is refused before it is read")
  func largest() async throws {
    let server = try await Self.start(messageLimit: 4 << 20)
    let larger: [UInt8] = [0x82, 0xFF, 0, 0, 0, 0, 0, 0x40, 0, 1, 0, 0, 0, 0]
    let refused = try Self.frames(await RawSocket.exchange([RawSocket.upgrade + larger], port: server.port))
    #expect(refused.map(\.payload.first) == [3] && refused[0].payload[1] == 241)
    await server.stop()
  }
}
