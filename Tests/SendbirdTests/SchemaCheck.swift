import ChatJSON
import Foundation
import SendbirdWire
import Testing

/// As much of JSON Schema 2020-12 as `Schemas/sendbird` uses. A word that is not known here is a problem itself, so that
/// nothing is skipped unseen.
struct SchemaCheck: Sendable {
  let root: JSONValue

  /// Words that say nothing of a value.
  private static let remarks: Set<String> = ["$schema", "$id", "$defs", "title", "description", "then", "else"]

  /// Places where `value` is not what `schema` allows.
  func problems(_ value: JSONValue, _ schema: JSONValue, at path: String = "") -> [String] {
    if let all = schema.bool { return all ? [] : ["\(path): must not be"] }
    var found: [String] = []
    for (word, rule) in schema.object ?? JSONObject() where !Self.remarks.contains(word) {
      switch word {
      case "$ref": found += problems(value, target(rule), at: path)
      case "allOf": for each in rule.array ?? [] { found += problems(value, each, at: path) }
      case "anyOf":
        let tries = (rule.array ?? []).map { problems(value, $0, at: path) }
        if !tries.contains([]) { found.append("\(path): none of \(tries.count), \(tries.last?.first ?? "")") }
      case "not": if problems(value, rule, at: path).isEmpty { found.append("\(path): must not be so") }
      case "if":
        let branch = schema[problems(value, rule, at: path).isEmpty ? "then" : "else"]
        if let branch { found += problems(value, branch, at: path) }
      case "enum": if rule.array?.contains(value) != true { found.append("\(path): \(value.text().prefix(40)) not in enum") }
      case "const": if value != rule { found.append("\(path): not \(rule.text())") }
      case "type":
        let types = rule.array?.compactMap(\.string) ?? [rule.string ?? ""]
        if !types.contains(where: { isOfType(value, $0) }) { found.append("\(path): no \(types.joined(separator: "|"))") }
      default: found += bounds(value, word, rule, schema, at: path)
      }
    }
    return found
  }

  private func target(_ reference: JSONValue) -> JSONValue {
    root["$defs"]?[String((reference.string ?? "").dropFirst("#/$defs/".count))] ?? false
  }

  private func isOfType(_ value: JSONValue, _ type: String) -> Bool {
    switch type {
    case "string": value.string != nil
    case "boolean": value.bool != nil
    case "integer": value.int != nil
    case "number": value.int != nil || value.double != nil
    case "array": value.array != nil
    case "object": value.object != nil
    case "null": value.isNull
    default: false
    }
  }

  /// Words that bind values of one type alone.
  private func bounds(
    _ value: JSONValue, _ word: String, _ rule: JSONValue, _ schema: JSONValue, at path: String
  ) -> [String] {
    let limit = rule.int ?? 0
    func unless(_ holds: Bool?) -> [String] { holds ?? true ? [] : ["\(path): \(word) \(rule.text().prefix(60))"] }
    switch word {
    case "minLength": return unless(value.string.map { $0.unicodeScalars.count >= limit })
    case "maxLength": return unless(value.string.map { $0.unicodeScalars.count <= limit })
    case "pattern":
      guard let text = value.string else { return [] }
      return unless(text.range(of: rule.string ?? "", options: .regularExpression) != nil)
    case "minimum": return unless(value.int.map { $0 >= limit })
    case "maximum": return unless(value.int.map { $0 <= limit })
    case "exclusiveMinimum": return unless(value.double.map { $0 > Double(limit) })
    case "minItems": return unless(value.array.map { $0.count >= limit })
    case "maxItems": return unless(value.array.map { $0.count <= limit })
    case "maxProperties": return unless(value.object.map { $0.count <= limit })
    case "items": return (value.array ?? []).enumerated().flatMap { problems($1, rule, at: "\(path)/\($0)") }
    case "required":
      guard let object = value.object else { return [] }
      return (rule.array ?? []).compactMap(\.string).filter { object[$0] == nil }.map { "\(path): lacks \($0)" }
    case "properties":
      return (rule.object ?? JSONObject()).flatMap { name, own in
        value.object?[name].map { problems($0, own, at: "\(path)/\(name)") } ?? []
      }
    case "additionalProperties":
      let known = schema["properties"]?.object ?? JSONObject()
      return (value.object ?? JSONObject()).filter { known[$0.key] == nil }.flatMap { name, member in
        problems(member, rule, at: "\(path)/\(name)")
      }
    default: return ["\(path): the schema says \(word), which is not understood"]
    }
  }
}

/// `Schemas/sendbird`, read once.
enum SendbirdSchemas {
  static let rest = load("rest")
  static let frames = load("frames")

  /// Calls that the schema describes: method, and the path below `/v3` with its parts in braces.
  static let calls: [String] = rest.root["properties"]?["call"]?["enum"]?.array?.compactMap(\.string) ?? []

  /// What is said of each call: schemas of `request` and `response`.
  static let byCall: [String: [JSONValue]] = {
    var table: [String: [JSONValue]] = [:]
    for rule in rest.root["$defs"]?["success"]?["allOf"]?.array ?? [] {
      for call in rule["if"]?["properties"]?["call"]?["enum"]?.array?.compactMap(\.string) ?? [] {
        table[call, default: []].append(rule["then"]?["properties"] ?? false)
      }
    }
    return table
  }()

  private static let byShape: [String: [String]] = Dictionary(grouping: calls, by: shape)

  private static func load(_ name: String) -> SchemaCheck {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let data = try? Data(contentsOf: root.appending(path: "Schemas/sendbird/\(name).schema.json"))
    return SchemaCheck(root: data.flatMap { try? JSONValue(parsing: Array($0)) } ?? false)
  }

  private static func shape(_ call: String) -> String {
    let parts = call.split(separator: " ")
    let path = parts.last?.split(separator: "/") ?? []
    return "\(parts.first ?? "") \(path.count) \(path.first ?? "")"
  }

  /// `GET /group_channels/{url}/messages` for a method and a URL or path; nil where no schema is.
  static func call(_ method: String, _ url: String) -> String? {
    var path = SendbirdTarget(url).path[...]
    if path.first == "v3" { path = path.dropFirst() }
    if path.first == "sdk" { path = path.dropFirst() }
    let fitting = (byShape["\(method) \(path.count) \(path.first ?? "")"] ?? []).filter { call in
      zip(call.split(separator: " ")[1].split(separator: "/"), path).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
    }
    return fitting.min { $0.count { $0 == "{" } < $1.count { $0 == "{" } }
  }

  /// What is wrong with one call; an answer that reports an error must be one.
  static func problems(_ call: String, request: JSONValue?, response: JSONValue) -> [String] {
    if let error = response["error"], error == .bool(true) {
      return rest.problems(response, ["$ref": "#/$defs/error"], at: "\(call) error")
    }
    guard let rules = byCall[call] else { return ["\(call): no schema"] }
    var found: [String] = []
    for rule in rules {
      if let own = rule["response"] { found += rest.problems(response, own, at: "\(call) response") }
      if let own = rule["request"], let request { found += rest.problems(request, own, at: "\(call) request") }
    }
    return found
  }

  static func problems(_ frame: SendbirdFrame, isClient: Bool) -> [String] {
    let value: JSONValue = [
      "from": isClient ? "client" : "server", "command": .string(frame.command), "payload": .object(frame.payload),
    ]
    return frames.problems(value, frames.root, at: frame.command)
  }
}
