/// Eight bytes looked at together. A flagged byte has its high bit set in the result; flags above the lowest one
/// may be false, the lowest one is exact.
enum ByteScan {
  @inline(__always) static func repeated(_ byte: UInt8) -> UInt64 { UInt64(byte) &* 0x0101_0101_0101_0101 }

  @inline(__always) static func load(_ pointer: UnsafePointer<UInt8>) -> UInt64 {
    UInt64(littleEndian: UnsafeRawPointer(pointer).loadUnaligned(as: UInt64.self))
  }

  @inline(__always) static func equal(_ word: UInt64, _ byte: UInt8) -> UInt64 {
    let difference = word ^ repeated(byte)
    return (difference &- repeated(1)) & ~difference & repeated(0x80)
  }

  /// What ends a run inside a JSON string: the quote, the backslash, a control character.
  @inline(__always) static func stringSpecial(_ word: UInt64) -> UInt64 {
    let control = (word &- repeated(0x20)) & ~word & repeated(0x80)
    return control | equal(word, UInt8(ascii: "\"")) | equal(word, UInt8(ascii: "\\"))
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
