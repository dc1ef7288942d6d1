import Foundation

/// Bytes as hexadecimal digits.
public enum Hex {
  /// Two lower-case digits a byte.
  public static func encode(_ bytes: some Collection<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count * 2)
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// The bytes, or nil for an odd number of digits or anything but `0-9a-fA-F`.
  public static func decode(_ text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    var high: UInt8?
    for character in text.utf8 {
      guard let digit = value(of: character) else { return nil }
      if let first = high {
        bytes.append(first << 4 | digit)
        high = nil
      } else {
        high = digit
      }
    }
    return high == nil ? bytes : nil
  }

  private static func value(of character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}

/// Bytes as base64 (RFC 4648 §4) and base64url (§5).
public enum Base64 {
  /// With padding, without line breaks.
  public static func encode(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

  /// The bytes, or nil for anything but padded base64 without white space.
  public static func decode(_ text: String) -> [UInt8]? {
    // Foundation reads padding alone as a byte.
    guard text.utf8.suffix(3).filter({ $0 == UInt8(ascii: "=") }).count < 3 else { return nil }
    return Data(base64Encoded: text).map(Array.init)
  }

  /// `-` and `_` for `+` and `/`, without padding.
  public static func urlEncode(_ bytes: [UInt8]) -> String {
    let text = encode(bytes).utf8.compactMap { character -> UInt8? in
      switch character {
      case UInt8(ascii: "+"): UInt8(ascii: "-")
      case UInt8(ascii: "/"): UInt8(ascii: "_")
      case UInt8(ascii: "="): nil
      default: character
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// The bytes, or nil for what is not base64url. Padding may be there or not.
  public static func urlDecode(_ text: String) -> [UInt8]? {
    var standard: [UInt8] = []
    for character in text.utf8 {
      switch character {
      case UInt8(ascii: "-"): standard.append(UInt8(ascii: "+"))
      case UInt8(ascii: "_"): standard.append(UInt8(ascii: "/"))
      case UInt8(ascii: "+"), UInt8(ascii: "/"): return nil
      default: standard.append(character)
      }
    }
    let isPadded = standard.last == UInt8(ascii: "=")
    while !isPadded, standard.count % 4 != 0 { standard.append(UInt8(ascii: "=")) }
    return decode(String(decoding: standard, as: UTF8.self))
  }
}
