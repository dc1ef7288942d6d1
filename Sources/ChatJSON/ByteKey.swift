/// A string compared and hashed by its UTF-8 bytes. `String` itself takes canonically equivalent texts for equal.
struct ByteKey: Hashable, Sendable {
  let text: String

  init(_ text: String) { self.text = text }

  static func == (left: ByteKey, right: ByteKey) -> Bool { equal(left.text, right.text) }

  func hash(into hasher: inout Hasher) { Self.hash(text, into: &hasher) }

  static func hash(_ text: String, into hasher: inout Hasher) {
    let hashed: Void? = text.utf8.withContiguousStorageIfAvailable { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    if hashed == nil { Array(text.utf8).withUnsafeBytes { hasher.combine(bytes: $0) } }
    hasher.combine(0xFF as UInt8)
  }

  @inline(__always) static func equal(_ left: String, _ right: String) -> Bool {
    left.utf8.count == right.utf8.count && sameBytes(left, right)
  }

  /// The order of the bytes, a text before those that it begins.
  static func precedes(_ left: String, _ right: String) -> Bool {
    let contiguous = left.utf8.withContiguousStorageIfAvailable { one in
      right.utf8.withContiguousStorageIfAvailable { two in one.lexicographicallyPrecedes(two) }
    }
    return (contiguous ?? nil) ?? left.utf8.lexicographicallyPrecedes(right.utf8)
  }

  /// Whether `text` has exactly these bytes. The counts must be equal.
  @inline(__always) static func holds(_ text: String, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    text.utf8.withContiguousStorageIfAvailable { same($0, bytes) } ?? text.utf8.elementsEqual(bytes)
  }

  @inline(__always)
  private static func same(_ one: UnsafeBufferPointer<UInt8>, _ two: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let left = one.baseAddress, let right = two.baseAddress else { return one.count == two.count }
    var index = 0
    while one.count &- index >= 8 {
      if ByteScan.load(left + index) != ByteScan.load(right + index) { return false }
      index &+= 8
    }
    while index < one.count {
      if left[index] != right[index] { return false }
      index &+= 1
    }
    return true
  }

  @inline(never) private static func sameBytes(_ left: String, _ right: String) -> Bool {
    let same = right.utf8.withContiguousStorageIfAvailable { holds(left, $0) }
    return same ?? left.utf8.elementsEqual(right.utf8)
  }
}
