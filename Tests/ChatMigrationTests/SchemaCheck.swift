import ChatJSON

/// As much of JSON Schema as the schemas of reports and plans use.
struct SchemaCheck {
  let root: JSONValue

  /// Paths where `value` is not what `schema` allows.
  func problems(_ value: JSONValue, _ schema: JSONValue? = nil, at path: String = "") -> [String] {
    var schema = schema ?? root
    if let reference = schema["$ref"]?.string {
      schema = root["$defs"]?[String(reference.dropFirst("#/$defs/".count))] ?? .null
    }
    var problems: [String] = []
    if let allowed = schema["enum"]?.array, !allowed.contains(value) { problems.append("\(path): not in enum") }
    switch schema["type"]?.string {
    case "string"?: if value.string == nil { problems.append("\(path): no string") }
    case "boolean"?: if value.bool == nil { problems.append("\(path): no boolean") }
    case "integer"?:
      guard let number = value.int else { return problems + ["\(path): no integer"] }
      if let least = schema["minimum"]?.int, number < least { problems.append("\(path): too small") }
    case "number"?: if value.double == nil { problems.append("\(path): no number") }
    case "array"?:
      guard let items = value.array else { return problems + ["\(path): no array"] }
      if let most = schema["maxItems"]?.int, items.count > most { problems.append("\(path): too many items") }
      for (index, item) in items.enumerated() {
        problems += self.problems(item, schema["items"], at: "\(path)/\(index)")
      }
    case "object"?:
      guard let object = value.object else { return problems + ["\(path): no object"] }
      for key in schema["required"]?.array ?? [] where object[key.string ?? ""] == nil {
        problems.append("\(path): lacks \(key.string ?? "")")
      }
      for (key, member) in object {
        guard let own = schema["properties"]?[key] ?? schema["additionalProperties"], own != .bool(false) else {
          problems.append("\(path)/\(key): unknown")
          continue
        }
        problems += self.problems(member, own, at: "\(path)/\(key)")
      }
    default: if schema["enum"] == nil { problems.append("\(path): schema says nothing") }
    }
    return problems
  }
}
