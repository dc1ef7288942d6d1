/// Bytes that arrived and were not consumed yet; consuming from the front costs nothing until much is consumed.
package struct InputBuffer {
  package init() {}

  private(set) var bytes: [UInt8] = []
  private(set) var start = 0

  var count: Int { bytes.count - start }
  var isEmpty: Bool { start == bytes.count }

  /// The byte at `offset` from the front; only for offsets below `count`.
  subscript(offset: Int) -> UInt8 { bytes[start + offset] }

  mutating func append(_ more: UnsafeRawBufferPointer) { bytes.append(contentsOf: more) }

  package mutating func append(_ more: [UInt8]) { bytes.append(contentsOf: more) }

  mutating func consume(_ count: Int) {
    start += min(count, self.count)
    if start == bytes.count {
      bytes.removeAll(keepingCapacity: bytes.capacity <= 1 << 16)
      start = 0
    } else if start > 1 << 16, start * 2 > bytes.count {
      bytes.removeFirst(start)
      start = 0
    }
  }

  /// The first `count` bytes, taken out.
  mutating func take(_ count: Int) -> ArraySlice<UInt8> {
    let slice = bytes[start..<start + min(count, self.count)]
    defer { consume(slice.count) }
    return slice
  }

  /// The offset just behind the first `pattern` that begins at `from` or later.
  func end(of pattern: [UInt8], from: Int = 0) -> Int? {
    guard count >= pattern.count, let first = pattern.first else { return nil }
    var index = start + max(0, from)
    while index + pattern.count <= bytes.count {
      if bytes[index] == first, bytes[index..<index + pattern.count].elementsEqual(pattern) {
        return index + pattern.count - start
      }
      index += 1
    }
    return nil
  }
}
