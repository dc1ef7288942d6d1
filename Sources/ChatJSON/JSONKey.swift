/// A key as it stands in the document: valid until the reader is used again. Compare it; keep `text`, not the key.
public struct JSONKey {
  @usableFromInline let start: UnsafePointer<UInt8>
  @usableFromInline let count: Int

  @inlinable init(start: UnsafePointer<UInt8>, count: Int) {
    self.start = start
    self.count = count
  }

  public var text: String { String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self) }

  @inlinable public static func == (key: JSONKey, name: StaticString) -> Bool {
    guard key.count == name.utf8CodeUnitCount else { return false }
    let one = UnsafeRawPointer(key.start)
    let two = UnsafeRawPointer(name.utf8Start)
    var index = 0
    while index &+ 8 <= key.count {
      guard
        one.loadUnaligned(fromByteOffset: index, as: UInt64.self)
          == two.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      else { return false }
      index &+= 8
    }
    while index < key.count {
      guard key.start[index] == name.utf8Start[index] else { return false }
      index &+= 1
    }
    return true
  }

  /// Lets `switch key { case "text": … }` compare bytes.
  @inlinable public static func ~= (name: StaticString, key: JSONKey) -> Bool { key == name }
}
