/// Base64 with the standard alphabet and padding (RFC 4648 §4).
enum Base64 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  static func encode(_ bytes: some Collection<UInt8>) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    var rest = bytes.makeIterator()
    while let first = rest.next() {
      let second = rest.next()
      let third = second == nil ? nil : rest.next()
      let word = UInt32(first) << 16 | UInt32(second ?? 0) << 8 | UInt32(third ?? 0)
      text.append(alphabet[Int(word >> 18)])
      text.append(alphabet[Int(word >> 12 & 63)])
      text.append(second == nil ? UInt8(ascii: "=") : alphabet[Int(word >> 6 & 63)])
      text.append(third == nil ? UInt8(ascii: "=") : alphabet[Int(word & 63)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Nil unless `text` is exactly what `encode` gives for some bytes.
  static func decode(_ text: String) -> [UInt8]? {
    let source = Array(text.utf8)
    guard source.count % 4 == 0 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(source.count / 4 * 3)
    var place = 0
    while place < source.count {
      guard decodeGroup(source[place..<place + 4], isLast: place + 4 == source.count, &bytes) else { return nil }
      place += 4
    }
    return bytes
  }

  private static func decodeGroup(_ group: ArraySlice<UInt8>, isLast: Bool, _ bytes: inout [UInt8]) -> Bool {
    let padding = group.reversed().prefix { $0 == UInt8(ascii: "=") }.count
    guard padding == 0 || isLast && padding <= 2 else { return false }
    var word: UInt32 = 0
    for byte in group.dropLast(padding) {
      guard let digit = digit(byte) else { return false }
      word = word << 6 | digit
    }
    word <<= UInt32(6 * padding)
    // Bits that no byte uses are zero.
    guard word & (padding == 0 ? 0 : padding == 1 ? 0xFF : 0xFFFF) == 0 else { return false }
    bytes.append(UInt8(truncatingIfNeeded: word >> 16))
    if padding < 2 { bytes.append(UInt8(truncatingIfNeeded: word >> 8)) }
    if padding < 1 { bytes.append(UInt8(truncatingIfNeeded: word)) }
    return true
  }

  private static func digit(_ byte: UInt8) -> UInt32? {
    switch byte {
    case 0x41...0x5A: UInt32(byte) - 0x41
    case 0x61...0x7A: UInt32(byte) - 0x61 + 26
    case 0x30...0x39: UInt32(byte) - 0x30 + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}
