import Testing

/// What a WebSocket server must do with what a client sends, after the published list of Autobahn's cases: framing,
/// pings, reserved bits, opcodes, fragmentation, UTF-8, closing, sizes.
struct ProtocolCase: Sendable, CustomTestStringConvertible {
  struct Frame: Sendable, Equatable, CustomStringConvertible {
    /// The frame's first byte.
    var first: UInt8
    var payload: [UInt8]
    var description: String { "\(String(first, radix: 16)):\(payload.prefix(24)) (\(payload.count))" }

    /// Bytes on the wire.
    var size: Int { payload.count + (payload.count < 126 ? 2 : payload.count < 65_536 ? 4 : 10) }

    static func text(_ payload: [UInt8]) -> Frame { Frame(first: 0x81, payload: payload) }
    static func text(_ text: String) -> Frame { .text(Array(text.utf8)) }
    static func binary(_ payload: [UInt8]) -> Frame { Frame(first: 0x82, payload: payload) }
    static func pong(_ payload: [UInt8]) -> Frame { Frame(first: 0x8A, payload: payload) }
  }

  var title: String
  /// What the client sends; a close with 1000 follows once the answers are there.
  var sent: [UInt8]
  /// How the bytes are cut on their way; nil: all at once.
  var piece: Int?
  /// What the server answers before its close frame. Where the client breaks a rule, the answers to what came before
  /// may or may not be among them.
  var answers: [Frame]
  /// The code of the server's close frame; 1005 for one without a code.
  var close: UInt16
  var testDescription: String { title }

  init(_ title: String, _ sent: [UInt8], piece: Int? = nil, _ answers: [Frame] = [], close: UInt16 = 1000) {
    self.title = title
    self.sent = sent
    self.piece = piece
    self.answers = answers
    self.close = close
  }

  // MARK: Frames of the client

  static func text(_ text: String, isFinal: Bool = true) -> [UInt8] { text_(Array(text.utf8), isFinal: isFinal) }
  static func text_(_ bytes: [UInt8], isFinal: Bool = true) -> [UInt8] {
    RawSocket.frame(isFinal ? 0x81 : 0x01, bytes)
  }
  static func binary(_ bytes: [UInt8]) -> [UInt8] { RawSocket.frame(0x82, bytes) }
  /// A message in frames of `size` bytes each.
  static func pieces(of bytes: [UInt8], size: Int, first: UInt8) -> [UInt8] {
    stride(from: 0, to: bytes.count, by: size).flatMap { start in
      let end = min(start + size, bytes.count)
      return RawSocket.frame((start == 0 ? first : 0) | (end == bytes.count ? 0x80 : 0), Array(bytes[start..<end]), mask: [0, 0, 0, 0])
    }
  }
  static func more(_ text: String, isFinal: Bool) -> [UInt8] {
    RawSocket.frame(isFinal ? 0x80 : 0x00, Array(text.utf8))
  }
  static func ping(_ payload: [UInt8]) -> [UInt8] { RawSocket.frame(0x89, payload) }
  static func pong(_ payload: [UInt8]) -> [UInt8] { RawSocket.frame(0x8A, payload) }
  static func closing(_ code: UInt16, _ reason: [UInt8] = []) -> [UInt8] {
    RawSocket.frame(0x88, [UInt8(code >> 8), UInt8(code & 0xFF)] + reason)
  }

  // MARK: The list

  static let all: [ProtocolCase] =
    sizes + pings + reserved + opcodes + fragments + validText + invalidText + longText + closes

  static let sizes: [ProtocolCase] = [0, 1, 125, 126, 127, 128, 65_535, 65_536].flatMap { size -> [ProtocolCase] in
    let bytes = [UInt8](repeating: 0x2A, count: size)
    return [
      ProtocolCase("1.1 text of \(size)", text_(bytes), [.text(bytes)]),
      ProtocolCase("1.2 binary of \(size)", binary(bytes), [.binary(bytes)]),
      ProtocolCase("1.1 text of \(size) in pieces of 997", text_(bytes), piece: 997, [.text(bytes)]),
    ]
  } + [
    ProtocolCase("1.1 text byte by byte", text("byte by byte"), piece: 1, [.text("byte by byte")]),
    ProtocolCase("9.7 a thousand small messages", (0..<1000).flatMap { _ in text("x") }, Array(repeating: .text("x"), count: 1000)),
    ProtocolCase("9.8 a thousand small messages of bytes", (0..<1000).flatMap { _ in binary([0xFF]) }, Array(repeating: .binary([0xFF]), count: 1000)),
    ProtocolCase("10.1 a message in frames of 1300", pieces(of: [UInt8](repeating: 0x2A, count: 65_536), size: 1300, first: 0x01), [.text([UInt8](repeating: 0x2A, count: 65_536))]),
    ProtocolCase("9.x a length above the limit", [0x82, 0xFF, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0], close: 1009),
    ProtocolCase("9.x the longest length that can be written", [0x82, 0xFF] + [UInt8](repeating: 0xFF, count: 12), close: 1009),
    ProtocolCase("9.x pieces that sum up above the limit", (0..<3).flatMap { index in
      RawSocket.frame(index == 0 ? 0x02 : 0x00, [UInt8](repeating: 0, count: 30_000), mask: [0, 0, 0, 0])
    } + RawSocket.frame(0x80, [UInt8](repeating: 0, count: 30_000), mask: [0, 0, 0, 0]), close: 1009),
  ]

  static let pings: [ProtocolCase] = [
    ProtocolCase("2.1 a ping without payload", ping([]), [.pong([])]),
    ProtocolCase("2.2 a ping with text", ping(Array("Hello".utf8)), [.pong(Array("Hello".utf8))]),
    ProtocolCase("2.3 a ping with what is no text", ping([0, 0xFF, 0xFE, 0xFD, 0]), [.pong([0, 0xFF, 0xFE, 0xFD, 0])]),
    ProtocolCase("2.4 a ping of 125 bytes", ping(Array(repeating: 7, count: 125)), [.pong(Array(repeating: 7, count: 125))]),
    ProtocolCase("2.5 a ping of 126 bytes", ping(Array(repeating: 7, count: 126)), close: 1002),
    ProtocolCase("2.6 a ping byte by byte", ping([1, 2, 3]), piece: 1, [.pong([1, 2, 3])]),
    ProtocolCase("2.7 a pong that nobody asked for", pong([]), []),
    ProtocolCase("2.8 a pong with payload that nobody asked for", pong(Array("unasked".utf8)), []),
    ProtocolCase("2.9 such a pong, then a ping", pong([1]) + ping([2]), [.pong([2])]),
    ProtocolCase("2.10 ten pings", (0..<10).flatMap { ping([$0]) }, (0..<10).map { .pong([$0]) }),
    ProtocolCase("2.11 ten pings byte by byte", (0..<10).flatMap { ping([$0]) }, piece: 1, (0..<10).map { .pong([$0]) }),
  ]

  static let reserved: [ProtocolCase] = (1...7).map { bits in
    ProtocolCase("3.\(bits) reserved bits \(bits)", RawSocket.frame(0x81 | UInt8(bits) << 4, [0x61]), close: 1002)
  } + [
    ProtocolCase("3.3 a good message before", text("a") + RawSocket.frame(0xA1, [0x61]) + text("b"), [.text("a")], close: 1002),
    ProtocolCase("5.1 of RFC 6455: a frame without mask", [0x81, 0x01, 0x61], close: 1002),
    ProtocolCase("5.1 of RFC 6455: a close without mask", [0x88, 0x00], close: 1002),
  ]

  static let opcodes: [ProtocolCase] = ([3, 4, 5, 6, 7, 11, 12, 13, 14, 15] as [UInt8]).flatMap { opcode in
    let group = opcode < 8 ? "4.1" : "4.2"
    return [
      ProtocolCase("\(group) opcode \(opcode)", RawSocket.frame(0x80 | opcode, []), close: 1002),
      ProtocolCase("\(group) opcode \(opcode) with payload, after a message", text("a") + RawSocket.frame(0x80 | opcode, [1]), [.text("a")], close: 1002),
    ]
  }

  static let fragments: [ProtocolCase] = [
    ProtocolCase("5.1 a ping in pieces", RawSocket.frame(0x09, [1]) + RawSocket.frame(0x80, [2]), close: 1002),
    ProtocolCase("5.2 a pong in pieces", RawSocket.frame(0x0A, [1]) + RawSocket.frame(0x80, [2]), close: 1002),
    ProtocolCase("5.3 text in two pieces", text("a", isFinal: false) + more("b", isFinal: true), [.text("ab")]),
    ProtocolCase("5.4 text in two pieces, in packets of three bytes", text("a", isFinal: false) + more("b", isFinal: true), piece: 3, [.text("ab")]),
    ProtocolCase("5.5 text in two pieces byte by byte", text("a", isFinal: false) + more("b", isFinal: true), piece: 1, [.text("ab")]),
    ProtocolCase("5.6 a ping between two pieces", text("a", isFinal: false) + ping([9]) + more("b", isFinal: true), [.pong([9]), .text("ab")]),
    ProtocolCase("5.7 a ping between two pieces, in packets of three bytes", text("a", isFinal: false) + ping([9]) + more("b", isFinal: true), piece: 3, [.pong([9]), .text("ab")]),
    ProtocolCase("5.8 a ping between two pieces, byte by byte", text("a", isFinal: false) + ping([9]) + more("b", isFinal: true), piece: 1, [.pong([9]), .text("ab")]),
    ProtocolCase("5.9 a continuation of nothing", more("a", isFinal: true) + text("b"), close: 1002),
    ProtocolCase("5.10 a continuation of nothing, in packets of three bytes", more("a", isFinal: true) + text("b"), piece: 3, close: 1002),
    ProtocolCase("5.11 a continuation of nothing, byte by byte", more("a", isFinal: true) + text("b"), piece: 1, close: 1002),
    ProtocolCase("5.12 an unfinished continuation of nothing", more("a", isFinal: false) + text("b"), close: 1002),
    ProtocolCase("5.13 an unfinished continuation of nothing, in packets of three bytes", more("a", isFinal: false) + text("b"), piece: 3, close: 1002),
    ProtocolCase("5.14 an unfinished continuation of nothing, byte by byte", more("a", isFinal: false) + text("b"), piece: 1, close: 1002),
    ProtocolCase("5.15 a continuation after the end", text("a", isFinal: false) + more("b", isFinal: true) + more("c", isFinal: false), [.text("ab")], close: 1002),
    ProtocolCase("5.16 an unfinished continuation of nothing before pieces, twice", twice(more("a", isFinal: false) + text("b", isFinal: false) + more("c", isFinal: true)), close: 1002),
    ProtocolCase("5.17 a continuation of nothing before pieces, twice", twice(more("a", isFinal: true) + text("b", isFinal: false) + more("c", isFinal: true)), close: 1002),
    ProtocolCase("5.18 a message inside a message", text("a", isFinal: false) + text("b"), close: 1002),
    ProtocolCase("5.19 five pieces and two pings", text("a", isFinal: false) + more("b", isFinal: false) + ping([1]) + more("c", isFinal: false) + more("d", isFinal: false) + ping([2]) + more("e", isFinal: true), [.pong([1]), .pong([2]), .text("abcde")]),
    ProtocolCase("5.20 five pieces and two pings byte by byte", text("a", isFinal: false) + more("b", isFinal: false) + ping([1]) + more("c", isFinal: false) + more("d", isFinal: false) + ping([2]) + more("e", isFinal: true), piece: 1, [.pong([1]), .pong([2]), .text("abcde")]),
    ProtocolCase("6.1 empty pieces", text("", isFinal: false) + more("", isFinal: false) + more("", isFinal: true), [.text("")]),
    ProtocolCase("6.1 text between empty pieces", text("", isFinal: false) + more("m", isFinal: false) + more("", isFinal: true), [.text("m")]),
    ProtocolCase("5.x a hundred pieces of one byte", text("0", isFinal: false) + (0..<98).flatMap { _ in more("1", isFinal: false) } + more("2", isFinal: true), [.text("0" + String(repeating: "1", count: 98) + "2")]),
  ]

  /// Also where a character is split between two pieces.
  static let validText: [ProtocolCase] = [
    "48 65 6C 6C 6F 2D C2 B5 40 C3 9F C3 B6 C3 A4 C3 BC", "CE BA E1 BD B9 CF 83 CE BC CE B5", "00", "7F", "C2 80",
    "DF BF", "E0 A0 80", "EF BF BF", "ED 9F BF", "EE 80 80", "EF BF BD", "F0 90 80 80", "F4 8F BF BF", "F0 9F 98 80",
    "EF BF BE", "F0 9F BF BF",
  ].flatMap { hex -> [ProtocolCase] in
    let bytes = Self.bytes(hex)
    let split = bytes.enumerated().flatMap { index, byte in
      RawSocket.frame((index == 0 ? 0x01 : 0x00) | (index == bytes.count - 1 ? 0x80 : 0), [byte])
    }
    return [
      ProtocolCase("6.x UTF-8 \(hex)", text_(bytes), [.text(bytes)]),
      ProtocolCase("6.2 UTF-8 \(hex), a frame a byte", split, [.text(bytes)]),
    ]
  }

  static let invalidText: [ProtocolCase] = [
    "80", "BF", "80 BF", "C0", "C0 AF", "C1 BF", "C2", "E0 80 AF", "E0 9F BF", "ED A0 80", "ED AF BF", "ED BF BF",
    "F0 80 80 AF", "F0 8F BF BF", "F4 90 80 80", "F5 80 80 80", "F8 88 80 80 80", "FC 84 80 80 80 80", "FE", "FF",
    "FE FE FF FF", "ED A0 80 ED B0 80", "CE BA E1 BD B9 CF 83 CE BC CE B5 ED A0 80 65 64", "F0 9F 98", "E4 BD", "61 C3",
  ].flatMap { hex in
    let bytes = Self.bytes(hex)
    return [
      ProtocolCase("6.x no UTF-8 \(hex)", text_(bytes), close: 1007),
      ProtocolCase("6.3 no UTF-8 \(hex), in two frames", text_([], isFinal: false) + RawSocket.frame(0x80, bytes), close: 1007),
    ]
  }

  private static func twice(_ bytes: [UInt8]) -> [UInt8] { bytes + bytes }

  /// Autobahn's texts of section 6 that are not above, by their groups: sequences of every length at both ends of what
  /// is allowed, and beyond; each whole and with a frame for each byte.
  static let longText: [ProtocolCase] = textGroups.flatMap { group, isValid, texts in
    texts.flatMap { hex in
      let bytes = Self.bytes(hex)
      let title = "\(group) \(isValid ? "UTF-8" : "no UTF-8") \(hex.prefix(40))"
      let answers: [Frame] = isValid ? [.text(bytes)] : []
      let close: UInt16 = isValid ? 1000 : 1007
      return [
        ProtocolCase(title, text_(bytes), answers, close: close),
        ProtocolCase(title + ", a frame a byte", pieces(of: bytes, size: 1, first: 0x01), answers, close: close),
      ]
    }
  } + [
    ProtocolCase("6.4 no UTF-8 in the first of three frames", text_([0xCE, 0xBA, 0xF4, 0x90, 0x80, 0x80], isFinal: false) + more("edited", isFinal: false) + more("", isFinal: true), close: 1007),
    ProtocolCase("6.4 no UTF-8 from the second frame on", text_([0xCE, 0xBA, 0xF4], isFinal: false) + RawSocket.frame(0x00, [0x90]) + RawSocket.frame(0x80, [0x80, 0x80]), close: 1007),
  ]

  private static func list(_ codes: some Sequence<Int>, _ after: String = "") -> String {
    codes.map { String($0, radix: 16) + (after.isEmpty ? "" : " " + after) }.joined(separator: " ")
  }

  private static let textGroups: [(group: String, isValid: Bool, texts: [String])] = [
    ("6.5", true, ["CE BA E1 BD B9 CF 83 CE BC CE B5"]),
    ("6.6", true, ["CE BA", "CE BA E1 BD B9", "CE BA E1 BD B9 CF 83", "CE BA E1 BD B9 CF 83 CE BC"]),
    ("6.6", false, ["CE", "CE BA E1", "CE BA E1 BD", "CE BA E1 BD B9 CF", "CE BA E1 BD B9 CF 83 CE", "CE BA E1 BD B9 CF 83 CE BC CE"]),
    ("6.7", true, ["00", "C2 80", "E0 A0 80", "F0 90 80 80"]),
    ("6.8", false, ["F8 88 80 80 80", "FC 84 80 80 80 80"]),
    ("6.9", true, ["7F", "DF BF", "EF BF BF", "F4 8F BF BF"]),
    ("6.10", false, ["F7 BF BF BF", "FB BF BF BF BF", "FD BF BF BF BF BF"]),
    ("6.11", true, ["ED 9F BF", "EE 80 80", "EF BF BD", "F4 8F BF BF"]),
    ("6.11", false, ["F4 90 80 80"]),
    ("6.12", false, ["80", "BF", "80 BF", "80 BF 80", "80 BF 80 BF", "80 BF 80 BF 80", "80 BF 80 BF 80 BF", list(0x80...0xBF)]),
    ("6.13", false, [list(0xC0...0xDF, "20"), list(0xE0...0xEF, "20"), list(0xF0...0xF7, "20"), list(0xF8...0xFB, "20"), list(0xFC...0xFD, "20")]),
    ("6.14", false, incomplete), ("6.15", false, [incomplete.joined(separator: " ")]),
    ("6.16", false, ["FE", "FF", "FE FE FF FF"]),
    ("6.17", false, ["C0 AF", "E0 80 AF", "F0 80 80 AF", "F8 80 80 80 AF", "FC 80 80 80 80 AF"]),
    ("6.18", false, ["C1 BF", "E0 9F BF", "F0 8F BF BF", "F8 87 BF BF BF", "FC 83 BF BF BF BF"]),
    ("6.19", false, ["C0 80", "E0 80 80", "F0 80 80 80", "F8 80 80 80 80", "FC 80 80 80 80 80"]),
    ("6.20", false, ["ED A0 80", "ED AD BF", "ED AE 80", "ED AF BF", "ED B0 80", "ED BE 80", "ED BF BF"]),
    ("6.21", false, ["ED A0 80 ED B0 80", "ED A0 80 ED BF BF", "ED AD BF ED B0 80", "ED AD BF ED BF BF", "ED AE 80 ED B0 80", "ED AE 80 ED BF BF", "ED AF BF ED B0 80", "ED AF BF ED BF BF"]),
    // The last two characters of every plane, which nobody uses and everybody may send.
    ("6.22", true, ["EF BF BE", "EF BF BF"] + (0x1...0x10).flatMap { plane in
      [0xBE, 0xBF].map { last in
        let code = plane << 16 | 0xFF00 | (last | 0x40)
        return list([0xF0 | code >> 18, 0x80 | code >> 12 & 0x3F, 0x80 | code >> 6 & 0x3F, last])
      }
    }),
    ("6.23", true, ["EF BF B9", "EF BF BA", "EF BF BB", "EF BF BC", "EF BF BD", "EF BF BE", "EF BF BF"]),
  ]

  private static let incomplete = [
    "C0", "E0 80", "F0 80 80", "F8 80 80 80", "FC 80 80 80 80", "DF", "EF BF", "F7 BF BF", "FB BF BF BF", "FD BF BF BF BF",
  ]

  static let closes: [ProtocolCase] =
    ([1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999] as [UInt16]).map {
      ProtocolCase("7.7 close with \($0)", closing($0), close: $0)
    }
    + ([0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] as [UInt16]).map {
      ProtocolCase("7.9 close with \($0), which no one may send", closing($0), close: 1002)
    } + [
      ProtocolCase("7.13 close with 65535 and a reason", closing(65_535, Array("x".utf8)), close: 1002),
      ProtocolCase("7.1 nothing is answered after a close", closing(1000) + text("x") + ping([1]), close: 1000),
      ProtocolCase("7.1 nor between the pieces of a message", text("a", isFinal: false) + closing(1001) + more("b", isFinal: true), close: 1001),
      ProtocolCase("7.3 close without payload", RawSocket.frame(0x88, []), close: 1005),
      ProtocolCase("7.3 close with one byte", RawSocket.frame(0x88, [3]), close: 1002),
      ProtocolCase("7.3 close with a reason", closing(1000, Array("bye".utf8)), close: 1000),
      ProtocolCase("7.3 close with a reason of 123 bytes", closing(1000, Array(repeating: 0x2A, count: 123)), close: 1000),
      ProtocolCase("7.3 close with a reason of 124 bytes", closing(1000, Array(repeating: 0x2A, count: 124)), close: 1002),
      ProtocolCase("7.5 close with a reason that is no UTF-8", closing(1000, [0xCE, 0xBA, 0xED, 0xA0, 0x80]), close: 1007),
    ]

  static func bytes(_ hex: String) -> [UInt8] { hex.split(separator: " ").compactMap { UInt8($0, radix: 16) } }
}
