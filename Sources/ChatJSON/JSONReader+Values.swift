extension JSONReader {
  // MARK: Containers

  public mutating func beginObject() throws(JSONError) {
    let byte = try peek()
    guard byte == UInt8(ascii: "{") else { throw mismatch("object", byte) }
    try descend()
  }

  public mutating func beginArray() throws(JSONError) {
    let byte = try peek()
    guard byte == UInt8(ascii: "[") else { throw mismatch("array", byte) }
    try descend()
  }

  @inline(__always) private mutating func descend() throws(JSONError) {
    guard depth < limits.depth else { throw failure(.tooDeep(limit: limits.depth), at: cursor) }
    depth &+= 1
    cursor += 1
    atStart = true
  }

  /// The key of the next member, its value being next to be read; nil, once, at the end of the object.
  ///
  /// Duplicate keys are all delivered, in order: the caller's later assignment wins.
  public mutating func nextKey() throws(JSONError) -> JSONKey? {
    if let key = nextPlainKey() { return key }
    return try nextAnyKey()
  }

  /// The usual case, without a call: a short plain key and no white space around it.
  @inline(__always) private mutating func nextPlainKey() -> JSONKey? {
    guard end - cursor >= 2, atStart || cursor[0] == UInt8(ascii: ",") else { return nil }
    let quote = atStart ? cursor : cursor + 1
    guard quote.pointee == UInt8(ascii: "\""), let count = shortPlainCount(quote + 1) else { return nil }
    let close = quote + 1 + count
    guard end - close >= 2, close[1] == UInt8(ascii: ":") else { return nil }
    cursor = close + 2
    atStart = false
    return JSONKey(start: quote + 1, count: count)
  }

  @inline(never) private mutating func nextAnyKey() throws(JSONError) -> JSONKey? {
    guard try nextItem(UInt8(ascii: "}")) else { return nil }
    guard cursor.pointee == UInt8(ascii: "\"") else {
      throw failure(.unexpectedByte(cursor.pointee), at: cursor)
    }
    let raw = try scanString()
    let key = raw.hasEscapes || !raw.isASCII ? try unusualKey(raw) : JSONKey(start: raw.start, count: raw.count)
    try expect(UInt8(ascii: ":"))
    return key
  }

  /// Whether another element follows in the array, being next to be read; false, once, at its end.
  public mutating func nextElement() throws(JSONError) -> Bool { try nextItem(UInt8(ascii: "]")) }

  /// Leaves the cursor at the next item, or past the closing bracket.
  @inline(__always) private mutating func nextItem(_ close: UInt8) throws(JSONError) -> Bool {
    var byte = try peek()
    if byte == close {
      cursor += 1
      depth &-= 1
      atStart = false
      return false
    }
    if atStart {
      atStart = false
      return true
    }
    guard byte == UInt8(ascii: ",") else { throw failure(.unexpectedByte(byte), at: cursor) }
    cursor += 1
    byte = try peek()
    // A bracket after a comma would otherwise be taken for the end at the next call.
    guard byte != close else { throw failure(.unexpectedByte(byte), at: cursor) }
    return true
  }

  @inline(never) private mutating func unusualKey(_ raw: RawString) throws(JSONError) -> JSONKey {
    try validate(raw)
    guard raw.hasEscapes, let scratch else { return JSONKey(start: raw.start, count: raw.count) }
    return JSONKey(start: UnsafePointer(scratch), count: unescapedCount)
  }

  /// The error for a required member that an object did not have. To be made after `nextKey()` returned nil.
  public func missing(_ key: String) -> JSONError {
    let offset = max(0, cursor - base - 1)
    let bytes = UnsafeBufferPointer(start: base, count: end - base)
    let path = JSONLocator.path(in: bytes, at: offset, ofContainer: true)
    return JSONError(.missing, path: path + JSONPointer.escape(key), offset: offset)
  }

  // MARK: Scalars

  public mutating func readString() throws(JSONError) -> String {
    if end - cursor >= 2, cursor.pointee == UInt8(ascii: "\""), hasSmallTexts,
      let count = shortPlainCount(cursor + 1)
    {
      let start = cursor + 1
      cursor = start + count + 1
      return SmallText.make(start, count)
    }
    return try readAnyString()
  }

  @inline(never) private mutating func readAnyString() throws(JSONError) -> String {
    let byte = try peek()
    guard byte == UInt8(ascii: "\"") else { throw mismatch("string", byte) }
    let raw = try scanString()
    return try decode(raw)
  }

  /// An integer written without fraction or exponent; `1.0` and `1e3` are of the wrong type.
  public mutating func readInt64() throws(JSONError) -> Int64 {
    if let value = readPlainInteger() { return value }
    let (place, number) = try readInteger()
    guard case .int(let value) = number else { throw outOfRange(place) }
    return value
  }

  public mutating func readUInt64() throws(JSONError) -> UInt64 {
    let (place, number) = try readInteger()
    switch number {
    case .uint(let value): return value
    case .int(let value) where value >= 0: return UInt64(truncatingIfNeeded: value)
    default: throw outOfRange(place)
    }
  }

  /// An integer of the width that the context wants, `.outOfRange` beyond it.
  public mutating func readInteger<Value: FixedWidthInteger>(as type: Value.Type = Value.self) throws(JSONError)
    -> Value
  {
    let (place, number) = try readInteger()
    let value: Value? =
      switch number {
      case .int(let value): Value(exactly: value)
      case .uint(let value): Value(exactly: value)
      case .text: nil
      }
    guard let value else { throw outOfRange(place) }
    return value
  }

  @inline(__always)
  private mutating func readInteger() throws(JSONError) -> (UnsafePointer<UInt8>, RawNumber.Kind) {
    let byte = try peek()
    guard byte.isDigit || byte == UInt8(ascii: "-") else { throw mismatch("integer", byte) }
    let place = cursor
    let raw = try scanNumber()
    if case .text(let isInteger) = raw.kind {
      guard isInteger else { throw failure(.wrongType(expected: "integer", found: "number"), at: place) }
      // "-0" is the one integer that stays text although it fits.
      if raw.count == 2 { return (place, .int(0)) }
    }
    return (place, raw.kind)
  }

  @inline(never) private func outOfRange(_ place: UnsafePointer<UInt8>) -> JSONError {
    failure(.outOfRange, at: place)
  }

  /// Any number as the nearest double, infinite beyond its range.
  public mutating func readDouble() throws(JSONError) -> Double {
    let byte = try peek()
    guard byte.isDigit || byte == UInt8(ascii: "-") else { throw mismatch("number", byte) }
    let raw = try scanNumber()
    switch raw.kind {
    case .int(let value): return Double(value)
    case .uint(let value): return Double(value)
    case .text: return Double(text(raw)) ?? .nan
    }
  }

  public mutating func readBool() throws(JSONError) -> Bool {
    let byte = try peek()
    switch byte {
    case UInt8(ascii: "t"):
      try literal("true")
      return true
    case UInt8(ascii: "f"):
      try literal("false")
      return false
    default: throw mismatch("bool", byte)
    }
  }

  /// Consumes a null if it is next, and tells whether it was.
  public mutating func readNull() throws(JSONError) -> Bool {
    guard try peek() == UInt8(ascii: "n") else { return false }
    try literal("null")
    return true
  }

  // MARK: Anything

  /// Consumes any value, checked as strictly as if it were read.
  public mutating func skipValue() throws(JSONError) {
    let floor = depth
    var kinds = BitStack()
    atStart = false
    repeat {
      if try skipStep(&kinds) { continue }
      while depth > floor {
        let close = kinds.top ? UInt8(ascii: "}") : UInt8(ascii: "]")
        guard try nextItem(close) else {
          kinds.pop()
          continue
        }
        if kinds.top { try skipKey() }
        break
      }
    } while depth > floor
  }

  /// Consumes a scalar, or the opening of a container and the key of its first member. True if a value is due.
  private mutating func skipStep(_ kinds: inout BitStack) throws(JSONError) -> Bool {
    let byte = try peek()
    switch byte {
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      let isObject = byte == UInt8(ascii: "{")
      try descend()
      guard try nextItem(isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else { return false }
      kinds.push(isObject)
      if isObject { try skipKey() }
      return true
    case UInt8(ascii: "\""):
      let raw = try scanString()
      if raw.hasEscapes || !raw.isASCII { try validate(raw) }
    case UInt8(ascii: "-"), 0x30...0x39: _ = try scanNumber()
    default: _ = try readScalar(byte)
    }
    return false
  }

  private mutating func skipKey() throws(JSONError) {
    guard cursor.pointee == UInt8(ascii: "\"") else {
      throw failure(.unexpectedByte(cursor.pointee), at: cursor)
    }
    let raw = try scanString()
    if raw.hasEscapes || !raw.isASCII { try validate(raw) }
    try expect(UInt8(ascii: ":"))
  }

  /// The bytes of the next value exactly as they stand, checked; `JSONWriter.writeRaw` writes them back.
  public mutating func readRaw() throws(JSONError) -> [UInt8] {
    _ = try peek()
    let start = cursor
    try skipValue()
    return Array(UnsafeBufferPointer(start: start, count: cursor - start))
  }
}

/// The kinds of the open containers, one bit each: 64 of them without a heap allocation.
private struct BitStack {
  private var word: UInt64 = 0
  private var used = 0
  private var full: [UInt64] = []

  var top: Bool { word & 1 == 1 }

  mutating func push(_ bit: Bool) {
    if used == 64 {
      full.append(word)
      (word, used) = (0, 0)
    }
    word = word &<< 1 | (bit ? 1 : 0)
    used &+= 1
  }

  mutating func pop() {
    word &>>= 1
    used &-= 1
    if used == 0, let below = full.popLast() { (word, used) = (below, 64) }
  }
}
