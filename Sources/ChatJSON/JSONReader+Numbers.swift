extension JSONReader {
  /// A number as it stands in the document.
  struct RawNumber {
    var start: UnsafePointer<UInt8>
    var count: Int
    var kind: Kind
    enum Kind {
      case int(Int64)
      case uint(UInt64)
      case text(isInteger: Bool)
    }
  }

  /// Consumes an integer of 1 to 17 digits that begins with none of minus and zero and ends before the document does;
  /// nil, and nothing consumed, for any other value.
  @inline(__always) mutating func readPlainInteger() -> Int64? {
    guard end - cursor >= 18, cursor.pointee &- 0x31 < 9 else { return nil }
    var place = cursor
    var magnitude: UInt64 = 0
    if let eight = ByteScan.eightDigits(ByteScan.load(place)) {
      magnitude = eight
      place += 8
    }
    while place - cursor < 18, place.pointee.isDigit {
      magnitude = magnitude &* 10 &+ UInt64(place.pointee &- 0x30)
      place += 1
    }
    guard place - cursor < 18, !Self.continuesNumber(place.pointee) else { return nil }
    cursor = place
    return Int64(truncatingIfNeeded: magnitude)
  }

  /// Consumes a number (RFC 8259 §6) whose first byte, a minus or a digit, is under the cursor.
  @inline(__always) mutating func scanNumber() throws(JSONError) -> RawNumber {
    let start = cursor
    var place = cursor
    let negative = place.pointee == UInt8(ascii: "-")
    if negative { place += 1 }
    let digits = place
    var magnitude: UInt64 = 0
    while end - place >= 8, let eight = ByteScan.eightDigits(ByteScan.load(place)) {
      magnitude = magnitude &* 100_000_000 &+ eight
      place += 8
    }
    while place < end, place.pointee.isDigit {
      // Wraps beyond 19 digits; `exact` below looks again then.
      magnitude = magnitude &* 10 &+ UInt64(place.pointee &- 0x30)
      place += 1
    }
    let count = place - digits
    guard count > 0, count == 1 || digits.pointee != 0x30 else { throw badNumber(digits, count) }
    if place < end, Self.continuesNumber(place.pointee) {
      try scanFraction(&place)
      cursor = place
      return RawNumber(start: start, count: place - start, kind: .text(isInteger: false))
    }
    cursor = place
    let kind = Self.exact(magnitude, negative, digits, count)
    return RawNumber(start: start, count: place - start, kind: kind)
  }

  @inline(__always) private static func continuesNumber(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: ".") || byte | 0x20 == UInt8(ascii: "e")
  }

  @inline(__always)
  private static func exact(
    _ wrapped: UInt64, _ negative: Bool, _ digits: UnsafePointer<UInt8>, _ count: Int
  ) -> RawNumber.Kind {
    if count > 18 { return exactLong(negative, digits, count) }
    // "-0" keeps its sign only as text.
    if negative { return wrapped == 0 ? .text(isInteger: true) : .int(-Int64(truncatingIfNeeded: wrapped)) }
    return .int(Int64(truncatingIfNeeded: wrapped))
  }

  private static func exactLong(_ negative: Bool, _ digits: UnsafePointer<UInt8>, _ count: Int) -> RawNumber.Kind {
    var magnitude: UInt64 = 0
    for index in 0..<count {
      let (product, high) = magnitude.multipliedReportingOverflow(by: 10)
      let (sum, carry) = product.addingReportingOverflow(UInt64(digits[index] &- 0x30))
      if high || carry { return .text(isInteger: true) }
      magnitude = sum
    }
    if negative {
      guard magnitude <= Int64.min.magnitude else { return .text(isInteger: true) }
      return .int(Int64(truncatingIfNeeded: 0 &- magnitude))
    }
    return Int64(exactly: magnitude).map { .int($0) } ?? .uint(magnitude)
  }

  @inline(never) private func badNumber(_ digits: UnsafePointer<UInt8>, _ count: Int) -> JSONError {
    if count == 0 {
      return digits < end ? failure(.invalidNumber, at: digits) : failure(.unexpectedEnd, at: end)
    }
    return failure(.invalidNumber, at: digits)
  }

  @inline(never) private func scanFraction(_ place: inout UnsafePointer<UInt8>) throws(JSONError) {
    if place.pointee == UInt8(ascii: ".") {
      place += 1
      try skipDigits(&place)
    }
    guard place < end, place.pointee | 0x20 == UInt8(ascii: "e") else { return }
    place += 1
    if place < end, place.pointee == UInt8(ascii: "+") || place.pointee == UInt8(ascii: "-") { place += 1 }
    try skipDigits(&place)
  }

  /// At least one digit.
  private func skipDigits(_ place: inout UnsafePointer<UInt8>) throws(JSONError) {
    guard place < end else { throw failure(.unexpectedEnd, at: end) }
    guard place.pointee.isDigit else { throw failure(.invalidNumber, at: place) }
    while place < end, place.pointee.isDigit { place += 1 }
  }

  func text(_ raw: RawNumber) -> String {
    String(decoding: UnsafeBufferPointer(start: raw.start, count: raw.count), as: UTF8.self)
  }
}
