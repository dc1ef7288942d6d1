/// Writes one JSON document into a growing buffer, without white space. Commas and colons come by themselves.
///
/// The caller keeps the grammar: a key before each value inside an object, each container closed. Whatever is
/// written, memory stays safe.
/// ```swift
/// var writer = JSONWriter()
/// writer.beginObject()
/// writer.member("msgId", id)
/// writer.member("text", text)
/// writer.endObject()
/// let bytes = writer.finish()
/// ```
public struct JSONWriter: ~Copyable {
  private var base: UnsafeMutablePointer<UInt8>
  private var capacity: Int
  public private(set) var count = 0
  /// True after a value and after a closing bracket: the next item needs a comma before it.
  private var commaDue = false

  public init(capacity: Int = 512) {
    self.capacity = max(capacity, 64)
    base = .allocate(capacity: self.capacity)
  }

  deinit { base.deallocate() }

  /// What has been written so far.
  public func bytes() -> [UInt8] {
    let (source, length) = (base, count)
    return Array(unsafeUninitializedCapacity: length) { buffer, initialized in
      buffer.baseAddress?.update(from: source, count: length)
      initialized = length
    }
  }

  /// Forgets what was written and keeps the memory for the next document.
  public mutating func removeAll() {
    count = 0
    commaDue = false
  }

  public func withUnsafeBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    body(UnsafeBufferPointer(start: base, count: count))
  }

  // MARK: Containers

  @inline(__always) public mutating func beginObject() { open(UInt8(ascii: "{")) }
  @inline(__always) public mutating func endObject() { close(UInt8(ascii: "}")) }
  @inline(__always) public mutating func beginArray() { open(UInt8(ascii: "[")) }
  @inline(__always) public mutating func endArray() { close(UInt8(ascii: "]")) }

  @inline(__always) private mutating func open(_ bracket: UInt8) {
    reserve(2)
    separate()
    put(bracket)
    commaDue = false
  }

  @inline(__always) private mutating func close(_ bracket: UInt8) {
    reserve(1)
    put(bracket)
    commaDue = true
  }

  public mutating func key(_ key: String) {
    write(key)
    reserve(1)
    put(UInt8(ascii: ":"))
    commaDue = false
  }

  /// A key known at compile time.
  public mutating func key(_ key: StaticString) {
    key.withUTF8Buffer { writeString($0) }
    reserve(1)
    put(UInt8(ascii: ":"))
    commaDue = false
  }

  // MARK: Values

  public mutating func writeNull() { writeVerbatim("null") }
  public mutating func write(_ value: Bool) { writeVerbatim(value ? "true" : "false") }

  public mutating func write(_ value: Int64) {
    reserve(24)
    separate()
    if value < 0 { put(UInt8(ascii: "-")) }
    putDigits(value.magnitude)
  }

  public mutating func write(_ value: UInt64) {
    reserve(24)
    separate()
    putDigits(value)
  }

  public mutating func write(_ value: Int) { write(Int64(value)) }

  public mutating func write(_ value: String) {
    let done: Void? = value.utf8.withContiguousStorageIfAvailable { writeString($0) }
    if done == nil { Array(value.utf8).withUnsafeBufferPointer { writeString($0) } }
  }

  public mutating func write(_ value: JSONNumber) { writeVerbatim(value.text) }

  /// The bytes of a whole JSON value, as `JSONReader.readRaw()` gives them, unchecked.
  public mutating func writeRaw(_ bytes: [UInt8]) {
    reserve(bytes.count + 1)
    separate()
    bytes.withUnsafeBufferPointer { append($0) }
  }

  private mutating func writeVerbatim(_ text: String) {
    var text = text
    text.withUTF8 {
      reserve($0.count + 1)
      separate()
      append($0)
    }
  }

  // MARK: Bytes

  @inline(__always) private mutating func separate() {
    if commaDue { put(UInt8(ascii: ",")) }
    commaDue = true
  }

  /// Room for `extra` more bytes; `put` and `append` rely on it.
  @inline(__always) private mutating func reserve(_ extra: Int) {
    if capacity &- count < extra { grow(extra) }
  }

  @inline(never) private mutating func grow(_ extra: Int) {
    let larger = max(capacity * 2, count + extra)
    let fresh = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
    fresh.update(from: base, count: count)
    base.deallocate()
    base = fresh
    capacity = larger
  }

  @inline(__always) private mutating func put(_ byte: UInt8) {
    base[count] = byte
    count &+= 1
  }

  @inline(__always) private mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
    guard let source = bytes.baseAddress else { return }
    (base + count).update(from: source, count: bytes.count)
    count &+= bytes.count
  }

  private mutating func putDigits(_ value: UInt64) {
    var digits = 1
    var bound: UInt64 = 10
    while digits < 20, value >= bound {
      digits &+= 1
      let (next, overflow) = bound.multipliedReportingOverflow(by: 10)
      if overflow { break }
      bound = next
    }
    var rest = value
    var place = count &+ digits
    repeat {
      place &-= 1
      let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
      base[place] = 0x30 &+ UInt8(truncatingIfNeeded: digit)
      rest = quotient
    } while rest > 0
    count &+= digits
  }

  /// Escapes the quote, the backslash and control characters, nothing else (RFC 8259 §7).
  private mutating func writeString(_ bytes: UnsafeBufferPointer<UInt8>) {
    reserve(bytes.count &+ 3)
    separate()
    put(UInt8(ascii: "\""))
    if let source = bytes.baseAddress { escape(source, bytes.count) }
    reserve(1)
    put(UInt8(ascii: "\""))
  }

  @inline(__always) private mutating func escape(_ source: UnsafePointer<UInt8>, _ length: Int) {
    var index = 0
    while index < length {
      if length &- index >= 8 {
        let word = ByteScan.load(source + index)
        if ByteScan.stringSpecial(word) == 0 {
          UnsafeMutableRawPointer(base + count).storeBytes(of: word.littleEndian, as: UInt64.self)
          count &+= 8
          index &+= 8
          continue
        }
      }
      let byte = source[index]
      index &+= 1
      if byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
        put(byte)
      } else {
        putEscape(byte)
        reserve(length &- index &+ 1)
      }
    }
  }

  @inline(never) private mutating func putEscape(_ byte: UInt8) {
    reserve(6)
    put(UInt8(ascii: "\\"))
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): put(byte)
    case 0x08: put(UInt8(ascii: "b"))
    case 0x09: put(UInt8(ascii: "t"))
    case 0x0A: put(UInt8(ascii: "n"))
    case 0x0C: put(UInt8(ascii: "f"))
    case 0x0D: put(UInt8(ascii: "r"))
    default:
      put(UInt8(ascii: "u"))
      put(UInt8(ascii: "0"))
      put(UInt8(ascii: "0"))
      put(Self.hex(byte >> 4))
      put(Self.hex(byte & 15))
    }
  }

  private static func hex(_ nibble: UInt8) -> UInt8 { nibble < 10 ? 0x30 &+ nibble : 0x57 &+ nibble }
}
