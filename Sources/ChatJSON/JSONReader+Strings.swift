extension JSONReader {
  /// A string as it stands in the document: the bytes between the quotes.
  struct RawString {
    var start: UnsafePointer<UInt8>
    var count: Int
    var hasEscapes: Bool
    var isASCII: Bool
  }

  /// The count of the plain ASCII text of at most 15 bytes that begins at `start`, behind an opening quote, and ends
  /// with a quote; nil for any other, and near the end of the document. Most keys and many values are such.
  @inline(__always) func shortPlainCount(_ start: UnsafePointer<UInt8>) -> Int? {
    guard end - start >= 16 else { return nil }
    var count = ByteScan.firstFlag(ByteScan.notPlain(ByteScan.load(start)))
    if count == 8 { count &+= ByteScan.firstFlag(ByteScan.notPlain(ByteScan.load(start + 8))) }
    return count < 16 && start[count] == UInt8(ascii: "\"") ? count : nil
  }

  /// Consumes a string whose opening quote is under the cursor. Checks control characters and that each backslash is
  /// followed by something; escapes and UTF-8 are checked by whoever decodes.
  @inline(__always) mutating func scanString() throws(JSONError) -> RawString {
    let start = cursor + 1
    var place = start
    while end - place >= 8 {
      let flags = ByteScan.notPlain(ByteScan.load(place))
      if flags != 0 {
        place += ByteScan.firstFlag(flags)
        break
      }
      place += 8
    }
    if place < end, place.pointee == UInt8(ascii: "\"") {
      cursor = place + 1
      return RawString(start: start, count: place - start, hasEscapes: false, isASCII: true)
    }
    return try scanRest(start, place)
  }

  /// Goes on from `place`, up to which the string is plain ASCII.
  @inline(never) private mutating func scanRest(
    _ start: UnsafePointer<UInt8>, _ plainEnd: UnsafePointer<UInt8>
  ) throws(JSONError) -> RawString {
    var place = plainEnd
    var high: UInt64 = 0
    var hasEscapes = false
    while true {
      if end - place >= 8 {
        let word = ByteScan.load(place)
        let special = ByteScan.stringSpecial(word)
        if special == 0 {
          high |= word
          place += 8
          continue
        }
        let index = ByteScan.firstFlag(special)
        high |= word & ((1 &<< UInt64(truncatingIfNeeded: index &* 8)) &- 1)
        place += index
      } else if place == end {
        throw failure(.unexpectedEnd, at: end)
      }
      let byte = place.pointee
      if byte == UInt8(ascii: "\"") { break }
      if byte == UInt8(ascii: "\\") {
        guard end - place >= 2 else { throw failure(.unexpectedEnd, at: end) }
        hasEscapes = true
        // The byte after a backslash is never the end; a control or non-ASCII byte there fails in `unescape`.
        place += 2
        continue
      }
      if byte < 0x20 { throw failure(.controlCharacter(byte), at: place) }
      high |= UInt64(byte)
      place += 1
    }
    cursor = place + 1
    return RawString(
      start: start, count: place - start, hasEscapes: hasEscapes, isASCII: high & ByteScan.repeated(0x80) == 0)
  }

  @inline(__always) mutating func decode(_ raw: RawString) throws(JSONError) -> String {
    if raw.hasEscapes { return try decodeEscaped(raw) }
    if raw.isASCII, raw.count <= SmallText.capacity, end - raw.start >= 16, hasSmallTexts {
      return SmallText.make(raw.start, raw.count)
    }
    let bytes = UnsafeBufferPointer(start: raw.start, count: raw.count)
    return raw.isASCII ? String(decoding: bytes, as: UTF8.self) : try decodeUnicode(raw, bytes)
  }

  @inline(never) private mutating func decodeEscaped(_ raw: RawString) throws(JSONError) -> String {
    let count = try unescape(raw)
    let bytes = UnsafeBufferPointer(start: UnsafePointer(scratch), count: count)
    // An escape never yields a lone continuation or lead byte, so what is well-formed decoded was so in the raw.
    return try decodeUnicode(raw, bytes)
  }

  /// `bytes` as text; they stand for `raw`. `String` repairs ill-formed bytes, so that they are another text then:
  /// comparing is cheaper than checking them twice.
  @inline(__always)
  private func decodeUnicode(_ raw: RawString, _ bytes: UnsafeBufferPointer<UInt8>) throws(JSONError) -> String {
    let text = String(decoding: bytes, as: UTF8.self)
    guard text.utf8.count == bytes.count, ByteKey.holds(text, bytes) else { throw invalidUTF8(raw) }
    return text
  }

  @inline(never) func invalidUTF8(_ raw: RawString) -> JSONError {
    failure(.invalidUTF8, at: raw.start + (UTF8Check.firstInvalid(raw.start, raw.count) ?? 0))
  }

  /// Checks a string that nobody wants to have.
  mutating func validate(_ raw: RawString) throws(JSONError) {
    if raw.hasEscapes { _ = try unescape(raw) }
    if !raw.isASCII, UTF8Check.firstInvalid(raw.start, raw.count) != nil { throw invalidUTF8(raw) }
  }

  // MARK: Escapes

  /// Decodes the escapes of `raw` into the scratch buffer and returns the number of bytes there.
  mutating func unescape(_ raw: RawString) throws(JSONError) -> Int {
    // No escape is shorter than what it stands for, so the raw count is enough.
    let target = reserveScratch(raw.count)
    let stop = raw.start + raw.count
    var source = raw.start
    var count = 0
    while source < stop {
      if stop - source >= 8 {
        let word = ByteScan.load(source)
        if ByteScan.stringSpecial(word) == 0 {
          UnsafeMutableRawPointer(target + count).storeBytes(of: word.littleEndian, as: UInt64.self)
          count &+= 8
          source += 8
          continue
        }
      }
      let byte = source.pointee
      if byte != UInt8(ascii: "\\") {
        target[count] = byte
        count &+= 1
        source += 1
        continue
      }
      if let short = Self.shortEscape(source[1]) {
        target[count] = short
        count &+= 1
        source += 2
      } else {
        count &+= try unicodeEscape(&source, stop, target + count)
      }
    }
    unescapedCount = count
    return count
  }

  private mutating func reserveScratch(_ count: Int) -> UnsafeMutablePointer<UInt8> {
    if let scratch, scratchCapacity >= count { return scratch }
    scratch?.deallocate()
    scratchCapacity = max(count, 256)
    let fresh = UnsafeMutablePointer<UInt8>.allocate(capacity: scratchCapacity)
    scratch = fresh
    return fresh
  }

  private static func shortEscape(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): byte
    case UInt8(ascii: "b"): 0x08
    case UInt8(ascii: "f"): 0x0C
    case UInt8(ascii: "n"): 0x0A
    case UInt8(ascii: "r"): 0x0D
    case UInt8(ascii: "t"): 0x09
    default: nil
    }
  }

  /// Decodes `\uXXXX`, or a pair of them, at `source` and returns how many bytes it wrote.
  private func unicodeEscape(
    _ source: inout UnsafePointer<UInt8>, _ stop: UnsafePointer<UInt8>, _ target: UnsafeMutablePointer<UInt8>
  ) throws(JSONError) -> Int {
    guard let first = hexEscape(source, stop) else { throw failure(.invalidEscape, at: source) }
    let place = source
    source += 6
    if first & 0xFC00 == 0xD800, let second = hexEscape(source, stop), second & 0xFC00 == 0xDC00 {
      source += 6
      return encode(0x10000 &+ ((first & 0x3FF) << 10) &+ (second & 0x3FF), target)
    }
    guard first & 0xF800 == 0xD800 else { return encode(first, target) }
    guard limits.loneSurrogates == .replace else { throw failure(.loneSurrogate, at: place) }
    return encode(0xFFFD, target)
  }

  private func hexEscape(_ source: UnsafePointer<UInt8>, _ stop: UnsafePointer<UInt8>) -> UInt32? {
    guard stop - source >= 6, source[0] == UInt8(ascii: "\\"), source[1] == UInt8(ascii: "u") else { return nil }
    var value: UInt32 = 0
    for index in 2..<6 {
      let byte = source[index]
      let digit: UInt8
      switch byte {
      case 0x30...0x39: digit = byte &- 0x30
      case 0x41...0x46: digit = byte &- 0x37
      case 0x61...0x66: digit = byte &- 0x57
      default: return nil
      }
      value = value << 4 | UInt32(digit)
    }
    return value
  }

  private func encode(_ scalar: UInt32, _ target: UnsafeMutablePointer<UInt8>) -> Int {
    func tail(_ shift: UInt32) -> UInt8 { UInt8(truncatingIfNeeded: 0x80 | (scalar >> shift & 0x3F)) }
    switch scalar {
    case 0..<0x80:
      target[0] = UInt8(truncatingIfNeeded: scalar)
      return 1
    case 0x80..<0x800:
      target[0] = UInt8(truncatingIfNeeded: 0xC0 | scalar >> 6)
      target[1] = tail(0)
      return 2
    case 0x800..<0x10000:
      target[0] = UInt8(truncatingIfNeeded: 0xE0 | scalar >> 12)
      target[1] = tail(6)
      target[2] = tail(0)
      return 3
    default:
      target[0] = UInt8(truncatingIfNeeded: 0xF0 | scalar >> 18)
      target[1] = tail(12)
      target[2] = tail(6)
      target[3] = tail(0)
      return 4
    }
  }
}
