import ChatJSON

/// JSON text for comparing values: members sorted, no white space, numbers as they are.
enum JSONValueText {
  static func canonical(_ text: String) throws -> String { sorted(try JSONValue(parsing: text)).text() }

  private static func sorted(_ value: JSONValue) -> JSONValue {
    if let object = value.object {
      let members = object.members.map { ($0.key, sorted($0.value)) }
      return .object(JSONObject(members.sorted { $0.0.utf8.lexicographicallyPrecedes($1.0.utf8) }))
    }
    if let array = value.array { return .array(array.map(sorted)) }
    return value
  }
}
