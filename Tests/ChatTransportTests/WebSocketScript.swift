import ChatCrypto

/// WebSocket frames by hand: what a script of `ScriptedServer` needs to say and to hear, right or wrong.
extension Connection {
  struct Frame: Equatable {
    var opcode: UInt8
    var payload: [UInt8]
    var isFinal = true
  }

  enum Opcode {
    static let continuation: UInt8 = 0
    static let text: UInt8 = 1
    static let binary: UInt8 = 2
    static let close: UInt8 = 8
    static let ping: UInt8 = 9
    static let pong: UInt8 = 10
  }

  /// Reads the upgrade request and answers it.
  /// - Parameters:
  ///   - fields: more lines, each with CR LF.
  ///   - rest: what follows the head in the same packet.
  ///   - seeing: gets the request before it is answered.
  func acceptUpgrade(
    fields: String = "", key wrongKey: String? = nil, rest: [UInt8] = [], seeing: (String) -> Void = { _ in }
  ) {
    guard let head = readHead() else { return }
    seeing(head)
    let key = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("sec-websocket-key: ") }?.dropFirst(19)
    let accept = Digest.sha1(Array(((key ?? "") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
    let answer = """
      HTTP/1.1 101 Switching Protocols\r
      Upgrade: websocket\r
      Connection: Upgrade\r
      Sec-WebSocket-Accept: \(wrongKey ?? Base64.encode(accept))\r
      \(fields)\r

      """
    write(Array(answer.utf8) + rest)
  }

  static func bytes(of frame: Frame, reserved: UInt8 = 0, mask: [UInt8]? = nil) -> [UInt8] {
    var bytes = [(frame.isFinal ? 0x80 : 0) | reserved << 4 | frame.opcode]
    let maskBit: UInt8 = mask == nil ? 0 : 0x80
    switch frame.payload.count {
    case 0..<126: bytes.append(maskBit | UInt8(frame.payload.count))
    case 126..<65_536:
      bytes += [maskBit | 126, UInt8(frame.payload.count >> 8), UInt8(frame.payload.count & 255)]
    default: bytes += [maskBit | 127] + (0..<8).map { UInt8(truncatingIfNeeded: frame.payload.count >> (56 - $0 * 8)) }
    }
    guard let mask else { return bytes + frame.payload }
    return bytes + mask + frame.payload.enumerated().map { $1 ^ mask[$0 % 4] }
  }

  func send(_ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true) {
    write(Self.bytes(of: Frame(opcode: opcode, payload: payload, isFinal: isFinal)))
  }

  func sendText(_ text: String) { send(Opcode.text, Array(text.utf8)) }

  /// The client's next frame, or nil if the link ended. A frame without a mask, which clients must not send, is nil.
  func readFrame() -> Frame? {
    guard let start = read(2), start[1] & 0x80 != 0 else { return nil }
    var length = Int(start[1] & 0x7F)
    if length > 125 {
      guard let more = read(length == 126 ? 2 : 8) else { return nil }
      length = more.reduce(0) { $0 << 8 | Int($1) }
    }
    guard let mask = read(4), var payload = read(length) else { return nil }
    for index in payload.indices { payload[index] ^= mask[index % 4] }
    return Frame(opcode: start[0] & 0x0F, payload: payload, isFinal: start[0] & 0x80 != 0)
  }

  /// Sends every message back until the client closes, and answers the close.
  func echo() {
    while let frame = readFrame() {
      switch frame.opcode {
      case Opcode.ping: send(Opcode.pong, frame.payload)
      case Opcode.close: return send(Opcode.close, frame.payload)
      case Opcode.pong: continue
      default: send(frame.opcode, frame.payload)
      }
    }
  }
}
