import ChatTransport

enum WebSocketOpcode: UInt8 {
  case continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10
  var isControl: Bool { rawValue >= 8 }
}

/// Reads the frames that a client sends (RFC 6455), whole messages out. No extension is ever negotiated.
///
/// Own code, because an emulator must be able to send what a correct library refuses to send, answer every ping, and
/// decide an upgrade after it saw the exact request.
package struct WebSocketFrameReader {
  package enum Event: Equatable {
    case message(WebSocketMessage)
    case ping([UInt8])
    /// 1005 for a close frame without a code.
    case close(WebSocketClose)
    /// The client broke the protocol; the link is to be closed with this.
    case violation(WebSocketClose)
  }

  private struct Header {
    var isFinal: Bool
    var opcode: WebSocketOpcode
    var length: Int
    var mask: (UInt8, UInt8, UInt8, UInt8)
    var size: Int
  }

  let maxMessageSize: Int
  /// The kind and the bytes so far of a fragmented message.
  private var fragments: (opcode: WebSocketOpcode, payload: [UInt8])?

  /// Bytes of a message whose rest is still to come.
  var heldBytes: Int { fragments?.payload.count ?? 0 }

  package init(maxMessageSize: Int) { self.maxMessageSize = maxMessageSize }

  /// The next event, or nil when more bytes are needed.
  package mutating func next(_ input: inout InputBuffer) -> Event? {
    while true {
      switch header(input) {
      case .failure(let close): return .violation(close)
      case .success(nil): return nil
      case .success(let header?):
        guard input.count - header.size >= header.length else { return nil }
        input.consume(header.size)
        let payload = Self.unmask(input.take(header.length), header.mask)
        if let event = handle(header, payload) { return event }
      }
    }
  }

  private func header(_ input: InputBuffer) -> Result<Header?, WebSocketClose> {
    guard input.count >= 2 else { return .success(nil) }
    let first = input[0]
    let second = input[1]
    guard first & 0x70 == 0, let opcode = WebSocketOpcode(rawValue: first & 0x0F) else {
      return violation("reserved bits or an unknown opcode")
    }
    guard second & 0x80 != 0 else { return violation("a frame of a client must be masked") }
    let short = Int(second & 0x7F)
    let extra = short == 126 ? 2 : short == 127 ? 8 : 0
    if opcode.isControl, first & 0x80 == 0 || short > 125 { return violation("a control frame is short and whole") }
    guard input.count >= 6 + extra else { return .success(nil) }
    let long = (0..<extra).reduce(UInt64(0)) { $0 << 8 | UInt64(input[2 + $1]) }
    let length = extra == 0 ? UInt64(short) : long
    let before = opcode.isControl ? 0 : fragments?.payload.count ?? 0
    guard let length = Int(exactly: length), length <= maxMessageSize - before || opcode.isControl else {
      return .failure(WebSocketClose(code: 1009, reason: "message too big"))
    }
    let at = 2 + extra
    let mask = (input[at], input[at + 1], input[at + 2], input[at + 3])
    return .success(Header(isFinal: first & 0x80 != 0, opcode: opcode, length: length, mask: mask, size: at + 4))
  }

  private func violation(_ reason: String) -> Result<Header?, WebSocketClose> {
    .failure(WebSocketClose(code: 1002, reason: reason))
  }

  private mutating func handle(_ header: Header, _ payload: [UInt8]) -> Event? {
    switch header.opcode {
    case .ping: return .ping(payload)
    case .pong: return nil
    case .close: return Self.close(payload)
    case .text, .binary:
      if fragments != nil { return .violation(WebSocketClose(code: 1002, reason: "a message inside a message")) }
      if header.isFinal { return Self.message(header.opcode, payload) }
      fragments = (header.opcode, payload)
      return nil
    case .continuation:
      guard let opcode = fragments?.opcode else {
        return .violation(WebSocketClose(code: 1002, reason: "a continuation of nothing"))
      }
      fragments?.payload.append(contentsOf: payload)
      guard header.isFinal else { return nil }
      let whole = fragments?.payload ?? []
      fragments = nil
      return Self.message(opcode, whole)
    }
  }

  private static func message(_ opcode: WebSocketOpcode, _ payload: [UInt8]) -> Event {
    if opcode == .binary { return .message(.binary(payload)) }
    guard let text = String(validating: payload, as: UTF8.self) else {
      return .violation(WebSocketClose(code: 1007, reason: "text is not UTF-8"))
    }
    return .message(.text(text))
  }

  private static func close(_ payload: [UInt8]) -> Event {
    if payload.isEmpty { return .close(WebSocketClose(code: 1005)) }
    guard payload.count >= 2 else { return .violation(WebSocketClose(code: 1002, reason: "half a close code")) }
    let code = UInt16(payload[0]) << 8 | UInt16(payload[1])
    // RFC 6455 §7.4: 1004 to 1006 and 1015 never travel, 1016 to 2999 are not assigned.
    let isValid = (1000...1003).contains(code) || (1007...1014).contains(code) || (3000...4999).contains(code)
    guard isValid, let reason = String(validating: payload[2...], as: UTF8.self) else {
      return .violation(WebSocketClose(code: isValid ? 1007 : 1002, reason: "invalid close frame"))
    }
    return .close(WebSocketClose(code: code, reason: reason))
  }

  private static func unmask(_ masked: ArraySlice<UInt8>, _ mask: (UInt8, UInt8, UInt8, UInt8)) -> [UInt8] {
    let key = UInt32(mask.0) | UInt32(mask.1) << 8 | UInt32(mask.2) << 16 | UInt32(mask.3) << 24
    return [UInt8](unsafeUninitializedCapacity: masked.count) { output, count in
      masked.withUnsafeBytes { input in
        let target = UnsafeMutableRawBufferPointer(output)
        var index = 0
        while index + 4 <= input.count {
          let word = UInt32(littleEndian: input.loadUnaligned(fromByteOffset: index, as: UInt32.self)) ^ key
          target.storeBytes(of: word.littleEndian, toByteOffset: index, as: UInt32.self)
          index += 4
        }
        while index < input.count {
          target[index] = input[index] ^ UInt8(truncatingIfNeeded: key >> (8 * UInt32(index & 3)))
          index += 1
        }
      }
      count = masked.count
    }
  }
}

/// Frames as a server writes them: unmasked.
enum WebSocketFrame {
  static func bytes(_ message: WebSocketMessage) -> [UInt8] {
    switch message {
    case .text(let text): bytes(.text, text.utf8)
    case .binary(let payload): bytes(.binary, payload)
    }
  }

  static func bytes(_ opcode: WebSocketOpcode, _ payload: some Collection<UInt8>, isFinal: Bool = true) -> [UInt8] {
    let count = payload.count
    var frame: [UInt8] = []
    frame.reserveCapacity(count + 10)
    frame.append(opcode.rawValue | (isFinal ? 0x80 : 0))
    switch count {
    case ..<126: frame.append(UInt8(count))
    case ..<65536:
      frame.append(126)
      frame.append(contentsOf: [UInt8(count >> 8), UInt8(count & 0xFF)])
    default:
      frame.append(127)
      for shift in stride(from: 56, through: 0, by: -8) { frame.append(UInt8(truncatingIfNeeded: count >> shift)) }
    }
    frame.append(contentsOf: payload)
    return frame
  }

  /// A close frame; without a code for 1005, and with a reason of at most 123 bytes.
  static func bytes(_ close: WebSocketClose) -> [UInt8] {
    guard let code = close.code, code != 1005 else { return bytes(.close, []) }
    return bytes(.close, [UInt8(code >> 8), UInt8(code & 0xFF)] + prefix(of: close.reason, bytes: 123))
  }

  /// The longest beginning of `text` that has at most `bytes` bytes and splits no character.
  private static func prefix(of text: String, bytes: Int) -> [UInt8] {
    var result: [UInt8] = []
    for scalar in text.unicodeScalars {
      let encoded = Array(String(scalar).utf8)
      if result.count + encoded.count > bytes { break }
      result += encoded
    }
    return result
  }
}
