import ChatTransport
import Foundation
import Testing

@testable import ChatEmulation

@Suite("A length that nobody can send is refused by name, and no room is made for it")
struct LengthFieldTests {
  static let announced: [UInt64] = [1 << 30, 1 << 31, 1 << 32, 1 << 62, UInt64(Int64.max)]

  /// The room for bytes that `value` has made anywhere inside, filled or not.
  private func room(_ value: Any) -> Int {
    if let bytes = value as? [UInt8] { return bytes.capacity }
    return Mirror(reflecting: value).children.reduce(0) { $0 + room($1.value) }
  }

  private func expectLittleRoom(_ reader: Any, _ input: InputBuffer) {
    #expect(room(reader) + room(input) < 4 << 20)
  }

  @Test("room is counted where it is only reserved")
  func control() {
    var bytes: [UInt8] = [1]
    bytes.reserveCapacity(1 << 23)
    let nested: (opcode: Int, payload: [UInt8])? = (1, bytes)
    #expect(room(nested as Any) >= 1 << 23)
  }

  @Test("HTTP bodies by length", arguments: announced)
  func body(_ length: UInt64) {
    #expect(failure(of: "PUT /a HTTP/1.1\r\nContent-Length: \(length)\r\n\r\nabc") == 413)
    // A host that takes such a body waits for it in what has come so far.
    var reader = HTTPRequestReader(bodyLimit: .max)
    var input = InputBuffer()
    input.append(Array("PUT /a HTTP/1.1\r\nContent-Length: \(length)\r\n\r\nabc".utf8))
    #expect(reader.next(&input) == nil && reader.heldBytes == 3)
    expectLittleRoom(reader, input)
  }

  @Test("HTTP chunks", arguments: announced)
  func chunk(_ length: UInt64) {
    let head = "PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    let size = String(length, radix: 16)
    #expect(failure(of: head + "\(size)\r\nabc") == 413)
    #expect(failure(of: head + "1\r\na\r\n\(size);x=y\r\nabc") == 413)
  }

  private func failure(of text: String) -> Int? {
    var reader = HTTPRequestReader(bodyLimit: 1 << 20)
    var input = InputBuffer()
    input.append(Array(text.utf8))
    while let event = reader.next(&input) {
      expectLittleRoom(reader, input)
      if case .failure(let status, _) = event { return status }
    }
    return nil
  }

  @Test("WebSocket frames: whole, a first fragment, a later one", arguments: announced, [0x82, 0x01, 0x80] as [UInt8])
  func frame(_ length: UInt64, first: UInt8) {
    let start: [UInt8] = first == 0x80 ? [0x01, 0x81, 0, 0, 0, 0, 0x61] : []
    let frame = [first, 0xFF] + (0..<8).map { UInt8(truncatingIfNeeded: length >> (56 - 8 * UInt64($0))) } + [1, 2, 3, 4, 5, 6]
    var input = InputBuffer()
    input.append(start + frame)
    var reader = WebSocketFrameReader(maxMessageSize: 16 << 20)
    #expect(reader.next(&input) == .violation(WebSocketClose(code: 1009, reason: "message too big")))
    expectLittleRoom(reader, input)
    // A host that takes such a message waits for it in what has come so far.
    reader = WebSocketFrameReader(maxMessageSize: .max)
    input = InputBuffer()
    input.append(start + frame)
    let event = reader.next(&input)
    // Only with a byte before it the longest length that there is goes over this limit too.
    let isOver = first == 0x80 && length == UInt64(Int64.max)
    #expect(event == (isOver ? .violation(WebSocketClose(code: 1009, reason: "message too big")) : nil))
    expectLittleRoom(reader, input)
  }

  @Test("control frames have no such length", arguments: [0x88, 0x89, 0x8A] as [UInt8])
  func controlFrame(_ first: UInt8) {
    var input = InputBuffer()
    input.append([first, 0xFF, 0, 0, 0, 0, 0x40, 0, 0, 0, 1, 2, 3, 4])
    var reader = WebSocketFrameReader(maxMessageSize: .max)
    #expect(reader.next(&input) == .violation(WebSocketClose(code: 1002, reason: "a control frame is short and whole")))
  }
}
