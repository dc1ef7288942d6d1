/// A string compared, ordered and hashed by its bytes: `String` would take canonically equivalent ids for one.
struct Key: Hashable, Comparable, Sendable {
  let text: String

  init(_ text: String) {
    var text = text
    text.makeContiguousUTF8()
    self.text = text
  }

  static func == (left: Key, right: Key) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }
  static func < (left: Key, right: Key) -> Bool { left.text.utf8.lexicographicallyPrecedes(right.text.utf8) }

  func hash(into hasher: inout Hasher) {
    let done: Void? = text.utf8.withContiguousStorageIfAvailable { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    if done == nil { for byte in text.utf8 { hasher.combine(byte) } }
  }
}

/// Strings in the order of their arrival, each once.
struct OrderedKeys: Sendable {
  private(set) var list: [String] = []
  private var set: Set<Key> = []

  init(_ texts: [String] = []) { for text in texts { insert(text) } }

  var count: Int { list.count }
  var isEmpty: Bool { list.isEmpty }
  func contains(_ text: String) -> Bool { set.contains(Key(text)) }

  @discardableResult
  mutating func insert(_ text: String) -> Bool {
    guard set.insert(Key(text)).inserted else { return false }
    list.append(text)
    return true
  }

  @discardableResult
  mutating func remove(_ text: String) -> Bool {
    guard set.remove(Key(text)) != nil else { return false }
    let key = Key(text)
    list.removeAll { Key($0) == key }
    return true
  }
}
