/// The members of a JSON object in document order. Keys are compared byte by byte, never by canonical
/// equivalence: two keys that differ only in Unicode normalisation are two members.
public struct JSONObject: Sendable {
  public typealias Member = (key: String, value: JSONValue)

  /// A member as it is stored: the compiler moves and destroys a struct faster than a tuple.
  struct Entry: Sendable {
    var key: String
    var value: JSONValue
  }

  private(set) var storage: [Entry]
  /// Places by key, kept once there are more than `indexThreshold` members; below it a scan is faster.
  private var index: [ByteKey: Int]?

  static let indexThreshold = 32

  public init() { storage = [] }

  /// Later members win over earlier ones with the same key, at the earlier one's place.
  public init(_ members: [Member]) { self.init(sequence: members) }

  public init(_ members: some Sequence<Member>) { self.init(sequence: members) }

  private init(sequence members: some Sequence<Member>) {
    self.init()
    storage.reserveCapacity(members.underestimatedCount)
    for member in members { self[member.key] = member.value }
  }

  /// Of members whose keys are known to differ; `index` is theirs if they are many.
  init(unique entries: [Entry], index: [ByteKey: Int]?) {
    storage = entries
    self.index = index
  }

  public var members: [Member] { storage.map { ($0.key, $0.value) } }
  public var count: Int { storage.count }
  public var isEmpty: Bool { storage.isEmpty }
  public var keys: [String] { storage.map(\.key) }

  /// Reads, replaces in place, appends, or (with nil) removes the member `key`.
  public subscript(key: String) -> JSONValue? {
    get { place(of: key).map { storage[$0].value } }
    set {
      switch (place(of: key), newValue) {
      case (let place?, let value?): storage[place].value = value
      case (let place?, nil): remove(at: place)
      case (nil, let value?): append(key, value)
      case (nil, nil): break
      }
    }
  }

  func place(of key: String) -> Int? {
    if let index { return index[ByteKey(key)] }
    return storage.firstIndex { ByteKey.equal($0.key, key) }
  }

  private mutating func append(_ key: String, _ value: JSONValue) {
    storage.append(Entry(key: key, value: value))
    if index != nil {
      index?[ByteKey(key)] = storage.count - 1
    } else if storage.count > Self.indexThreshold {
      reindex()
    }
  }

  private mutating func remove(at place: Int) {
    storage.remove(at: place)
    if index != nil { reindex() }
  }

  private mutating func reindex() {
    guard storage.count > Self.indexThreshold else {
      index = nil
      return
    }
    var fresh = [ByteKey: Int](minimumCapacity: storage.count)
    for (place, member) in storage.enumerated() { fresh[ByteKey(member.key)] = place }
    index = fresh
  }
}

extension JSONObject: Sequence {
  public struct Iterator: IteratorProtocol {
    private var rest: IndexingIterator<[Entry]>

    init(_ entries: [Entry]) { rest = entries.makeIterator() }

    public mutating func next() -> Member? { rest.next().map { ($0.key, $0.value) } }
  }

  public func makeIterator() -> Iterator { Iterator(storage) }

  public var underestimatedCount: Int { storage.count }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self.init(elements.map { (key: $0.0, value: $0.1) })
  }
}
