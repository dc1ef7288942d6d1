/// The members of a JSON object in document order. Keys are compared byte by byte, never by canonical
/// equivalence: two keys that differ only in Unicode normalisation are two members.
public struct JSONObject: Sendable {
  public typealias Member = (key: String, value: JSONValue)

  @usableFromInline var storage: [Member]

  public init() { storage = [] }

  /// Later members win over earlier ones with the same key, at the earlier one's place.
  public init(_ members: [Member]) {
    storage = []
    storage.reserveCapacity(members.count)
    for member in members { self[member.key] = member.value }
  }

  public var members: [Member] { storage }
  public var count: Int { storage.count }
  public var isEmpty: Bool { storage.isEmpty }
  public var keys: [String] { storage.map(\.key) }

  /// Reads, replaces in place, appends, or (with nil) removes the member `key`.
  public subscript(key: String) -> JSONValue? {
    get { index(of: key).map { storage[$0].value } }
    set {
      switch (index(of: key), newValue) {
      case (let index?, let value?): storage[index].value = value
      case (let index?, nil): storage.remove(at: index)
      case (nil, let value?): storage.append((key, value))
      case (nil, nil): break
      }
    }
  }

  private func index(of key: String) -> Int? {
    storage.firstIndex { $0.key.utf8.elementsEqual(key.utf8) }
  }
}

extension JSONObject: Hashable {
  /// Equal when both hold the same members in any order.
  public static func == (left: JSONObject, right: JSONObject) -> Bool {
    left.count == right.count && left.storage.allSatisfy { right[$0.key] == $0.value }
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(count) }
}

extension JSONObject: Sequence {
  public func makeIterator() -> IndexingIterator<[Member]> { storage.makeIterator() }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self.init(elements.map { (key: $0.0, value: $0.1) })
  }
}
