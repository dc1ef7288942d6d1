import ChatJSON

/// Members as the official clients read them: absent, null and wrongly typed ones are all "not there".
extension JSONObject {
  public func text(_ key: String) -> String? { self[key]?.string }

  /// An integer, also one that travels as text (`deleted` lists, some queries) or with an empty fraction.
  public func number(_ key: String) -> Int64? {
    switch self[key] {
    case .int(let value): value
    case .string(let text): Int64(text)
    case .number(let number): Int64(exactly: number.double)
    default: nil
    }
  }

  /// Booleans, `0|1`, and the words that the vendor uses for two of its flags.
  public func flag(_ key: String) -> Bool? {
    switch self[key] {
    case .bool(let value): value
    case .int(let value): value != 0
    case .string("true"), .string("muted"): true
    case .string("false"), .string("unmuted"): false
    default: nil
    }
  }

  public func list(_ key: String) -> [JSONValue] { self[key]?.array ?? [] }

  public func texts(_ key: String) -> [String] { list(key).compactMap(\.string) }

  public func object(_ key: String) -> JSONObject? { self[key]?.object }

  /// The members whose keys are not in `known`, in order: what a newer server adds.
  public func without(_ known: Set<String>) -> JSONObject {
    JSONObject(members.filter { !known.contains($0.key) })
  }

  /// Adds the members of `other` that are not here.
  public mutating func fill(from other: JSONObject) {
    for member in other where self[member.key] == nil { self[member.key] = member.value }
  }
}
