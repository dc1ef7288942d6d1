/// Reads one JSON document from borrowed bytes, value by value, without building a tree.
///
/// The caller asks for what it expects; anything else throws and never traps. Errors carry the offset and the path,
/// which is found again from the bytes only when an error is thrown, so that reading pays nothing for it.
/// ```swift
/// try reader.beginObject()
/// while let key = try reader.nextKey() {
///   switch key {
///   case "msgId": id = try reader.readInt64()
///   case "text": text = try reader.readString()
///   default: try reader.skipValue()
///   }
/// }
/// ```
public struct JSONReader: ~Copyable {
  @usableFromInline let base: UnsafePointer<UInt8>
  @usableFromInline let end: UnsafePointer<UInt8>
  @usableFromInline var cursor: UnsafePointer<UInt8>
  @usableFromInline var depth = 0
  /// True between the opening of a container and its first item: the one place where no comma is due.
  @usableFromInline var atStart = false
  public let limits: JSONLimits
  @usableFromInline var scratch: UnsafeMutablePointer<UInt8>?
  @usableFromInline var scratchCapacity = 0
  /// How many bytes the last unescaped string has in the scratch buffer.
  @usableFromInline var unescapedCount = 0
  @usableFromInline let hasSmallTexts: Bool

  @usableFromInline init(base: UnsafePointer<UInt8>, count: Int, limits: JSONLimits) {
    self.base = base
    self.end = base + count
    self.cursor = base
    self.limits = limits
    hasSmallTexts = SmallText.isKnownForm
  }

  @inlinable deinit { scratch?.deallocate() }

  /// Runs `body` over a document and checks that nothing but white space follows what it read.
  @inlinable public static func read<Result>(
    _ bytes: [UInt8], limits: JSONLimits = JSONLimits(),
    _ body: (inout JSONReader) throws(JSONError) -> Result
  ) throws(JSONError) -> Result {
    try bytes.withUnsafeBufferPointer { buffer throws(JSONError) in
      try read(buffer, limits: limits, body)
    }
  }

  /// As above, over bytes that live as long as the call.
  @inlinable public static func read<Result>(
    _ buffer: UnsafeBufferPointer<UInt8>, limits: JSONLimits = JSONLimits(),
    _ body: (inout JSONReader) throws(JSONError) -> Result
  ) throws(JSONError) -> Result {
    guard buffer.count <= limits.size else {
      throw JSONError(.tooLarge(limit: limits.size), offset: max(limits.size, 0))
    }
    guard let base = buffer.baseAddress, buffer.count > 0 else { throw JSONError(.unexpectedEnd, offset: 0) }
    var reader = JSONReader(base: base, count: buffer.count, limits: limits)
    let result = try body(&reader)
    try reader.finish()
    return result
  }

  /// The offset of the next byte to be read.
  public var offset: Int { cursor - base }

  @usableFromInline func finish() throws(JSONError) {
    var place = cursor
    while place < end, Self.isSpace(place.pointee) { place += 1 }
    if place < end { throw JSONError(.trailingBytes, offset: place - base) }
  }

  // MARK: Bytes

  @inline(__always) static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
  }

  /// The next byte that is no white space, not consumed.
  @inline(__always) mutating func peek() throws(JSONError) -> UInt8 {
    while cursor < end {
      let byte = cursor.pointee
      if byte > 0x20 || !Self.isSpace(byte) { return byte }
      cursor += 1
    }
    throw failure(.unexpectedEnd, at: end)
  }

  @inline(__always) mutating func expect(_ byte: UInt8) throws(JSONError) {
    let found = try peek()
    guard found == byte else { throw failure(.unexpectedByte(found), at: cursor) }
    cursor += 1
  }

  /// An error at `place`, with the path of what holds `inner`, or else of what holds the place itself.
  @inline(never) func failure(
    _ reason: JSONError.Reason, at place: UnsafePointer<UInt8>, inside inner: UnsafePointer<UInt8>? = nil
  ) -> JSONError {
    let bytes = UnsafeBufferPointer(start: base, count: end - base)
    let path = JSONLocator.path(in: bytes, at: (inner ?? place) - base)
    return JSONError(reason, path: path, offset: place - base)
  }

  /// An error about the value that begins at the cursor.
  @inline(never) func mismatch(_ expected: String, _ found: UInt8) -> JSONError {
    switch found {
    case UInt8(ascii: "\""): failure(.wrongType(expected: expected, found: "string"), at: cursor)
    case UInt8(ascii: "{"): failure(.wrongType(expected: expected, found: "object"), at: cursor)
    case UInt8(ascii: "["): failure(.wrongType(expected: expected, found: "array"), at: cursor)
    case UInt8(ascii: "t"), UInt8(ascii: "f"): failure(.wrongType(expected: expected, found: "bool"), at: cursor)
    case UInt8(ascii: "n"): failure(.wrongType(expected: expected, found: "null"), at: cursor)
    case UInt8(ascii: "-"), 0x30...0x39: failure(.wrongType(expected: expected, found: "number"), at: cursor)
    default: failure(.unexpectedByte(found), at: cursor)
    }
  }

  @inline(__always) mutating func literal(_ text: StaticString) throws(JSONError) {
    let count = text.utf8CodeUnitCount
    guard end - cursor >= count else { throw wrongLiteral(text) }
    var index = 0
    while index < count {
      if cursor[index] != text.utf8Start[index] { throw wrongLiteral(text) }
      index &+= 1
    }
    cursor += count
  }

  @inline(never) private func wrongLiteral(_ text: StaticString) -> JSONError {
    var index = 0
    while cursor + index < end, cursor[index] == text.utf8Start[index] { index &+= 1 }
    let place = cursor + index
    return place < end ? failure(.unexpectedByte(place.pointee), at: place) : failure(.unexpectedEnd, at: end)
  }
}
