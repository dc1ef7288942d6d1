/// The bytes of one message or of a part of it, read from front to back. Offsets count from the whole input.
struct ProtobufInput {
  private let base: UnsafePointer<UInt8>
  private(set) var position: Int
  let end: Int

  /// `bytes` must outlive the input.
  init(_ bytes: UnsafeBufferPointer<UInt8>, _ range: Range<Int>? = nil) {
    // An empty buffer has perhaps no base and is never read.
    base = bytes.baseAddress ?? UnsafePointer(bitPattern: 1).unsafelyUnwrapped
    position = range?.lowerBound ?? 0
    end = range?.upperBound ?? bytes.count
  }

  private init(base: UnsafePointer<UInt8>, _ range: Range<Int>) {
    self.base = base
    position = range.lowerBound
    end = range.upperBound
  }

  var isAtEnd: Bool { position >= end }

  func part(_ range: Range<Int>) -> ProtobufInput { ProtobufInput(base: base, range) }

  func buffer(_ range: Range<Int>) -> UnsafeBufferPointer<UInt8> {
    UnsafeBufferPointer(start: base + range.lowerBound, count: range.count)
  }

  func error(_ reason: JSONError.Reason, at offset: Int) -> JSONError { JSONError(reason, offset: offset) }

  /// Ten bytes at most; the tenth holds one bit.
  mutating func varint() throws(JSONError) -> UInt64 {
    let start = position
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while position < end {
      let byte = base[position]
      if shift == 63, byte > 1 { throw error(.protobuf(.varintTooLong), at: start) }
      value |= UInt64(byte & 0x7F) &<< shift
      position += 1
      if byte < 0x80 { return value }
      shift += 7
    }
    throw error(.unexpectedEnd, at: end)
  }

  mutating func fixed32() throws(JSONError) -> UInt32 {
    let range = try take(4)
    return UInt32(littleEndian: UnsafeRawPointer(base + range.lowerBound).loadUnaligned(as: UInt32.self))
  }

  mutating func fixed64() throws(JSONError) -> UInt64 {
    let range = try take(8)
    return UInt64(littleEndian: UnsafeRawPointer(base + range.lowerBound).loadUnaligned(as: UInt64.self))
  }

  /// The payload of a length-delimited field.
  mutating func delimited() throws(JSONError) -> Range<Int> {
    let start = position
    let length = try varint()
    guard let count = Int(exactly: length), count <= end - position else {
      throw error(.protobuf(.lengthBeyondEnd), at: start)
    }
    return try take(count)
  }

  private mutating func take(_ count: Int) throws(JSONError) -> Range<Int> {
    guard end - position >= count else { throw error(.unexpectedEnd, at: end) }
    let range = position..<position + count
    position = range.upperBound
    return range
  }

  mutating func tag() throws(JSONError) -> (number: UInt32, type: WireType) {
    let start = position
    let tag = try varint()
    guard let type = WireType(rawValue: UInt8(truncatingIfNeeded: tag & 7)) else {
      throw error(.protobuf(.wireType(UInt8(truncatingIfNeeded: tag & 7))), at: start)
    }
    guard (1...536_870_911).contains(tag >> 3) else { throw error(.protobuf(.fieldNumber(tag >> 3)), at: start) }
    return (UInt32(truncatingIfNeeded: tag >> 3), type)
  }

  /// Passes over the payload of a field whose tag began at `start`. Groups are passed over without recursion.
  mutating func skip(_ number: UInt32, _ type: WireType, from start: Int, depthLimit: Int) throws(JSONError) {
    var open: [UInt32] = []
    var (number, type, start) = (number, type, start)
    while true {
      switch type {
      case .varint: _ = try varint()
      case .fixed64: _ = try take(8)
      case .fixed32: _ = try take(4)
      case .lengthDelimited: _ = try delimited()
      case .startGroup:
        guard open.count < depthLimit else { throw error(.tooDeep(limit: depthLimit), at: start) }
        open.append(number)
      case .endGroup:
        guard open.popLast() == number else { throw error(.protobuf(.unbalancedGroup), at: start) }
      }
      if open.isEmpty { return }
      start = position
      (number, type) = try tag()
    }
  }
}
