extension JSONValue: Hashable {
  /// Strings and keys by their bytes, numbers by their text, objects whatever the order of their members. Nesting
  /// needs no stack.
  public static func == (left: JSONValue, right: JSONValue) -> Bool {
    var pending: [(JSONValue, JSONValue)] = []
    guard sameShape(left, right, &pending) else { return false }
    while let (one, two) = pending.popLast() {
      guard sameShape(one, two, &pending) else { return false }
    }
    return true
  }

  /// Compares scalars and counts; what the containers hold is still to be compared and goes to `pending`.
  private static func sameShape(
    _ left: JSONValue, _ right: JSONValue, _ pending: inout [(JSONValue, JSONValue)]
  ) -> Bool {
    switch (left, right) {
    case (.null, .null): return true
    case (.bool(let one), .bool(let two)): return one == two
    case (.int(let one), .int(let two)): return one == two
    case (.uint(let one), .uint(let two)): return one == two
    case (.int(let small), .uint(let large)), (.uint(let large), .int(let small)):
      return UInt64(exactly: small) == large
    case (.number(let one), .number(let two)): return one == two
    case (.string(let one), .string(let two)): return ByteKey.equal(one, two)
    case (.array(let one), .array(let two)):
      guard one.count == two.count else { return false }
      pending.append(contentsOf: zip(one, two))
      return true
    case (.object(let one), .object(let two)): return one.sameKeys(two, &pending)
    default: return false
    }
  }

  public func hash(into hasher: inout Hasher) { hash(into: &hasher, levels: 4) }

  /// What lies deeper than `levels` does not count, so that nesting needs no stack.
  fileprivate func hash(into hasher: inout Hasher, levels: Int) {
    switch self {
    case .null: hasher.combine(0)
    case .bool(let value): hasher.combine(value)
    case .int(let value): hasher.combine(UInt64(bitPattern: value))
    case .uint(let value): hasher.combine(value)
    case .number(let value): hasher.combine(value)
    case .string(let value): ByteKey.hash(value, into: &hasher)
    case .array(let elements):
      hasher.combine(elements.count)
      if levels > 0 { for element in elements { element.hash(into: &hasher, levels: levels - 1) } }
    case .object(let object): object.hash(into: &hasher, levels: levels)
    }
  }
}

extension JSONObject: Hashable {
  /// Equal when both hold the same members in any order.
  public static func == (left: JSONObject, right: JSONObject) -> Bool {
    JSONValue.object(left) == JSONValue.object(right)
  }

  fileprivate func sameKeys(_ other: JSONObject, _ pending: inout [(JSONValue, JSONValue)]) -> Bool {
    guard count == other.count else { return false }
    for entry in storage {
      guard let place = other.place(of: entry.key) else { return false }
      pending.append((entry.value, other.storage[place].value))
    }
    return true
  }

  public func hash(into hasher: inout Hasher) { JSONValue.object(self).hash(into: &hasher) }

  /// The sum of the members' hashes, since their order does not count.
  fileprivate func hash(into hasher: inout Hasher, levels: Int) {
    hasher.combine(count)
    guard levels > 0 else { return }
    var sum = 0
    for entry in storage {
      var own = Hasher()
      ByteKey.hash(entry.key, into: &own)
      entry.value.hash(into: &own, levels: levels - 1)
      sum &+= own.finalize()
    }
    hasher.combine(sum)
  }
}
