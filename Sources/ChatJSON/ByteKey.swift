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

  @inline(never) private static func sameBytes(_ left: String, _ right: String) -> Bool {
    let same = left.utf8.withContiguousStorageIfAvailable { one in
      right.utf8.withContiguousStorageIfAvailable { two in one.elementsEqual(two) }
    }
    return (same ?? nil) ?? left.utf8.elementsEqual(right.utf8)
  }
}
