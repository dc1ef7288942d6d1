import ChatTransport
import Testing

@testable import ChatEmulation

@Suite("Frames of a WebSocket client")
struct WebSocketFramesTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var title: String
    var frames: [UInt8]
    var events: [WebSocketFrameReader.Event]
    var testDescription: String { title }

    init(_ title: String, _ frames: [UInt8], _ events: WebSocketFrameReader.Event...) {
      self.title = title
      self.frames = frames
      self.events = events
    }
  }

  static func broken(_ code: UInt16, _ reason: String) -> WebSocketFrameReader.Event {
    .violation(WebSocketClose(code: code, reason: reason))
  }

  static let cases: [Case] = [
    Case("text", RawSocket.frame(0x81, Array("héllo 😀".utf8)), .message(.text("héllo 😀"))),
    Case("empty text", RawSocket.frame(0x81, []), .message(.text(""))),
    Case("binary of 125", RawSocket.frame(0x82, Array(repeating: 9, count: 125)), .message(.binary(Array(repeating: 9, count: 125)))),
    Case("binary of 126", RawSocket.frame(0x82, Array(repeating: 9, count: 126)), .message(.binary(Array(repeating: 9, count: 126)))),
    Case("binary of 65536", RawSocket.frame(0x82, Array(repeating: 9, count: 65536)), .message(.binary(Array(repeating: 9, count: 65536)))),
    Case(
      "a message in three frames with a ping between",
      RawSocket.frame(0x01, Array("a😀".utf8.prefix(3))) + RawSocket.frame(0x89, [7]) + RawSocket.frame(0x00, Array("a😀".utf8.dropFirst(3)))
        + RawSocket.frame(0x80, [0x21]), .ping([7]), .message(.text("a😀!"))),
    Case("pings in a row", RawSocket.frame(0x89, [1]) + RawSocket.frame(0x89, [2]), .ping([1]), .ping([2])),
    Case("a pong is ignored", RawSocket.frame(0x8A, [1]) + RawSocket.frame(0x81, [65]), .message(.text("A"))),
    Case("close with code", RawSocket.frame(0x88, [3, 232] + Array("bye".utf8)), .close(WebSocketClose(code: 1000, reason: "bye"))),
    Case("close without code", RawSocket.frame(0x88, []), .close(WebSocketClose(code: 1005))),
    Case("close with half a code", RawSocket.frame(0x88, [3]), broken(1002, "half a close code")),
    Case("close with 1006", RawSocket.frame(0x88, [3, 238]), broken(1002, "invalid close frame")),
    Case("close with a reason that is not UTF-8", RawSocket.frame(0x88, [3, 232, 0xFF]), broken(1007, "invalid close frame")),
    Case("not masked", [0x81, 1, 65], broken(1002, "a frame of a client must be masked")),
    Case("a reserved bit", RawSocket.frame(0xC1, [65]), broken(1002, "reserved bits or an unknown opcode")),
    Case("an unknown opcode", RawSocket.frame(0x83, [65]), broken(1002, "reserved bits or an unknown opcode")),
    Case("a long ping", RawSocket.frame(0x89, Array(repeating: 1, count: 126)), broken(1002, "a control frame is short and whole")),
    Case("a ping in parts", RawSocket.frame(0x09, [1]), broken(1002, "a control frame is short and whole")),
    Case("a continuation of nothing", RawSocket.frame(0x80, [1]), broken(1002, "a continuation of nothing")),
    Case("a message inside a message", RawSocket.frame(0x01, [65]) + RawSocket.frame(0x81, [65]), broken(1002, "a message inside a message")),
    Case("text that is not UTF-8", RawSocket.frame(0x81, [0xC3, 0x28]), broken(1007, "text is not UTF-8")),
    Case("above the limit", RawSocket.frame(0x82, Array(repeating: 0, count: 100_001)), broken(1009, "message too big")),
    Case(
      "above the limit in parts", RawSocket.frame(0x02, Array(repeating: 0, count: 60_000)) + RawSocket.frame(0x80, Array(repeating: 0, count: 60_000)),
      broken(1009, "message too big")),
    Case("a length of 2^63", [0x82, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4], broken(1009, "message too big")),
  ]

  @Test("give the same events whole, byte by byte and in pieces", arguments: cases)
  func events(_ test: Case) {
    for step in [test.frames.count, 1, 7] where step > 0 {
      var reader = WebSocketFrameReader(maxMessageSize: 100_000)
      var input = InputBuffer()
      var events: [WebSocketFrameReader.Event] = []
      reading: for start in stride(from: 0, to: test.frames.count, by: step) {
        input.append(Array(test.frames[start..<min(start + step, test.frames.count)]))
        while let event = reader.next(&input) {
          events.append(event)
          if case .violation = event { break reading }
        }
      }
      #expect(events == test.events)
    }
  }

  @Test("any bytes give events or an end, never a trap")
  func anyBytes() {
    var random = EmulatorRandom(seed: 11)
    for _ in 0..<2000 {
      var reader = WebSocketFrameReader(maxMessageSize: 1000)
      var input = InputBuffer()
      input.append((0..<Int.random(in: 0..<200, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) })
      for _ in 0..<300 { if reader.next(&input) == nil { break } }
    }
  }

  @Test("a server's frames have the shortest length and no mask", arguments: [0, 125, 126, 65535, 65536])
  func serverFrames(_ count: Int) {
    let frame = WebSocketFrame.bytes(.binary(Array(repeating: 5, count: count)))
    let head: [UInt8] =
      count < 126
      ? [0x82, UInt8(count)]
      : count < 65536 ? [0x82, 126, UInt8(count >> 8), UInt8(count & 255)] : [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]
    #expect(frame == head + Array(repeating: 5, count: count))
  }

  @Test("a long reason is cut at a character")
  func longReason() {
    let frame = WebSocketFrame.bytes(WebSocketClose(code: 4000, reason: String(repeating: "😀", count: 40)))
    #expect(frame.count == 2 + 2 + 120)
    #expect(String(validating: frame[4...], as: UTF8.self) == String(repeating: "😀", count: 30))
  }
}
