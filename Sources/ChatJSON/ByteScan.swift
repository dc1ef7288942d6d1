/// Eight bytes looked at together. A flagged byte has its high bit set in the result; flags above the lowest one
/// may be false, the lowest one is exact.
enum ByteScan {
  @inline(__always) static func repeated(_ byte: UInt8) -> UInt64 { UInt64(byte) &* 0x0101_0101_0101_0101 }

  @inline(__always) static func load(_ pointer: UnsafePointer<UInt8>) -> UInt64 {
    UInt64(littleEndian: UnsafeRawPointer(pointer).loadUnaligned(as: UInt64.self))
  }

  /// What ends a run inside a JSON string: the quote, the backslash, a control character.
  ///
  /// Subtracting borrows into the high bit of a byte that is too small; bytes that had it before are masked out.
  @inline(__always) static func stringSpecial(_ word: UInt64) -> UInt64 {
    let quote = (word ^ repeated(UInt8(ascii: "\""))) &- repeated(1)
    let backslash = (word ^ repeated(UInt8(ascii: "\\"))) &- repeated(1)
    let control = word &- repeated(0x20)
    return (quote | backslash | control) & ~word & repeated(0x80)
  }

  /// As `stringSpecial`, and also the bytes of 0x80 and above: what ends a run of plain ASCII.
  @inline(__always) static func notPlain(_ word: UInt64) -> UInt64 {
    let quote = (word ^ repeated(UInt8(ascii: "\""))) &- repeated(1)
    let backslash = (word ^ repeated(UInt8(ascii: "\\"))) &- repeated(1)
    let control = word &- repeated(0x20)
    return (quote | backslash | control | word) & repeated(0x80)
  }

  /// The index of the lowest flagged byte, 8 if there is none.
  @inline(__always) static func firstFlag(_ flags: UInt64) -> Int { flags.trailingZeroBitCount &>> 3 }

  /// The number that eight digits stand for; nil if one of them is none.
  @inline(__always) static func eightDigits(_ word: UInt64) -> UInt64? {
    let digits = word &- repeated(0x30)
    // A digit has 3 as its high nibble, also after 6 is added to it.
    guard (word & (word &+ repeated(0x06)) & repeated(0xF0)) == repeated(0x30) else { return nil }
    // Neighbours are joined: 8 × 1 digit, 4 × 2, 2 × 4, 1 × 8.
    let pairs = (digits &* 10 &+ digits &>> 8) & 0x00FF_00FF_00FF_00FF
    let fours = (pairs &* 100 &+ pairs &>> 16) & 0x0000_FFFF_0000_FFFF
    return (fours &* 10_000 &+ fours &>> 32) & 0xFFFF_FFFF
  }
}

/// UTF-8 as RFC 3629 has it: no overlong form, no surrogate, nothing above U+10FFFF.
enum UTF8Check {
  /// The offset of the first byte of the first ill-formed sequence, or nil.
  static func firstInvalid(_ start: UnsafePointer<UInt8>, _ count: Int) -> Int? {
    var index = 0
    while index < count {
      if index &+ 8 <= count, ByteScan.load(start + index) & ByteScan.repeated(0x80) == 0 {
        index &+= 8
        continue
      }
      let length = sequenceLength(start + index, count &- index)
      if length == 0 { return index }
      index &+= length
    }
    return nil
  }

  /// The length of the well-formed sequence at `start`, 0 if there is none within `count` (at least 1) bytes.
  @inline(__always)
  private static func sequenceLength(_ start: UnsafePointer<UInt8>, _ count: Int) -> Int {
    let lead = start[0]
    switch lead {
    case 0..<0x80: return 1
    case 0xC2...0xDF: return count >= 2 && isTail(start[1]) ? 2 : 0
    case 0xE0...0xEF:
      guard count >= 3, isTail(start[1]), isTail(start[2]) else { return 0 }
      if lead == 0xE0 && start[1] < 0xA0 { return 0 }
      if lead == 0xED && start[1] > 0x9F { return 0 }
      return 3
    case 0xF0...0xF4:
      guard count >= 4, isTail(start[1]), isTail(start[2]), isTail(start[3]) else { return 0 }
      if lead == 0xF0 && start[1] < 0x90 { return 0 }
      if lead == 0xF4 && start[1] > 0x8F { return 0 }
      return 4
    default: return 0
    }
  }

  @inline(__always) private static func isTail(_ byte: UInt8) -> Bool { byte & 0xC0 == 0x80 }
}

extension UInt8 {
  @inline(__always) var isDigit: Bool { self &- 0x30 < 10 }
}
