import ChatJSON
import Foundation
import LeanCloudWire

/// Conditions of a query, over a row as it would be answered.
enum Where {
  /// nil when `condition` has an operator that is not served.
  static func matches(_ row: JSONObject, _ condition: JSONObject) -> Bool? {
    for member in condition {
      let result: Bool?
      switch member.key {
      case "$or": result = any(member.value, row)
      case "$and": result = all(member.value, row)
      default: result = matches(value(at: member.key, in: row), member.value)
      }
      guard let result else { return nil }
      if !result { return false }
    }
    return true
  }

  private static func any(_ value: JSONValue, _ row: JSONObject) -> Bool? {
    var found = false
    for item in value.array ?? [] {
      guard let condition = item.object, let result = matches(row, condition) else { return nil }
      found = found || result
    }
    return found
  }

  private static func all(_ value: JSONValue, _ row: JSONObject) -> Bool? {
    for item in value.array ?? [] {
      guard let condition = item.object, let result = matches(row, condition) else { return nil }
      if !result { return false }
    }
    return true
  }

  /// A dotted key goes into objects.
  static func value(at key: String, in row: JSONObject) -> JSONValue? {
    if let value = row[key] { return value }
    guard key.contains(".") else { return nil }
    var current: JSONValue? = .object(row)
    for part in key.split(separator: ".", omittingEmptySubsequences: false) { current = current?[String(part)] }
    return current
  }

  private static func matches(_ value: JSONValue?, _ condition: JSONValue) -> Bool? {
    guard let operators = condition.object, operators.keys.contains(where: { $0.hasPrefix("$") }) else {
      return equals(value, condition)
    }
    for member in operators where member.key != "$options" {
      guard let result = check(member.key, value, member.value, options: operators["$options"]?.string) else {
        return nil
      }
      if !result { return false }
    }
    return true
  }

  /// An array equals one of its elements too.
  private static func equals(_ value: JSONValue?, _ wanted: JSONValue) -> Bool {
    guard let value else { return wanted.isNull }
    if value == wanted { return true }
    if let one = comparable(value), let two = comparable(wanted), one == two { return true }
    return value.array?.contains(wanted) ?? false
  }

  private static func check(_ name: String, _ value: JSONValue?, _ wanted: JSONValue, options: String?) -> Bool? {
    switch name {
    case "$ne": return !equals(value, wanted)
    case "$exists": return (value != nil) == (wanted.bool ?? true)
    case "$in": return wanted.array.map { $0.contains { equals(value, $0) } }
    case "$nin": return wanted.array.map { !$0.contains { equals(value, $0) } }
    case "$all": return wanted.array.map { list in list.allSatisfy { value?.array?.contains($0) ?? false } }
    case "$size": return wanted.int.map { size in Int64(value?.array?.count ?? -1) == size }
    case "$regex":
      guard let pattern = wanted.string else { return nil }
      return value?.string.map { matches($0, pattern: pattern, options: options) } ?? false
    case "$lt", "$lte", "$gt", "$gte":
      guard let one = value.flatMap(comparable), let two = comparable(wanted) else { return false }
      switch name {
      case "$lt": return one < two
      case "$lte": return one <= two
      case "$gt": return one > two
      default: return one >= two
      }
    default: return nil
    }
  }

  private static func matches(_ text: String, pattern: String, options: String?) -> Bool {
    var flags: NSRegularExpression.Options = []
    if options?.contains("i") == true { flags.insert(.caseInsensitive) }
    guard let expression = try? NSRegularExpression(pattern: pattern, options: flags) else { return false }
    return expression.firstMatch(in: text, range: NSRange(text.startIndex..., in: text)) != nil
  }

  /// What sorts: numbers and dates before texts.
  enum Comparable: Swift.Comparable {
    case number(Double)
    case text(Key)
  }

  static func comparable(_ value: JSONValue) -> Comparable? {
    if let iso = value["iso"]?.string { return LeanCloudID.milliseconds(iso: iso).map { .number(Double($0)) } }
    if let number = value.double { return .number(number) }
    guard let text = value.string else { return nil }
    if text.utf8.count == 24, text.hasSuffix("Z"), let time = LeanCloudID.milliseconds(iso: text) {
      return .number(Double(time))
    }
    return .text(Key(text))
  }

  /// By a comma list of keys, `-` before one means descending; rows without the key come last.
  static func sort(_ rows: [(id: String, row: JSONObject)], by order: String) -> [String] {
    let keys = order.split(separator: ",").map { key -> (name: String, isDescending: Bool) in
      key.hasPrefix("-") ? (String(key.dropFirst()), true) : (String(key), false)
    }
    let prepared = rows.map { item in (item.id, keys.map { value(at: $0.name, in: item.row).flatMap(comparable) }) }
    return prepared.sorted { left, right in
      for (index, key) in keys.enumerated() {
        switch (left.1[index], right.1[index]) {
        case (let one?, let two?) where one != two: return key.isDescending ? one > two : one < two
        case (_?, nil): return true
        case (nil, _?): return false
        default: continue
        }
      }
      return Key(left.0) < Key(right.0)
    }.map(\.0)
  }
}

extension LeanCloudEmulator {
  /// Conversations that match, sorted; nil when the condition cannot be read. Temporary ones are never found.
  func find(where condition: JSONObject, order: String, viewer: String? = nil) -> [Conversation]? {
    var rows: [(id: String, row: JSONObject)] = []
    for conversation in candidates(condition) {
      guard !conversation.kind.isFirstModel, conversation.kind != .temporary else { continue }
      let row = conversation.object(viewer: viewer)
      guard let isMatch = Where.matches(row, condition) else { return nil }
      if isMatch { rows.append((conversation.id, row)) }
    }
    return Where.sort(rows, by: order).compactMap { self.conversation($0) }
  }

  /// The few conversations that can match, where an id or a member is asked for.
  private func candidates(_ condition: JSONObject) -> [Conversation] {
    if let id = condition["objectId"]?.string { return conversation(id).map { [$0] } ?? [] }
    if let ids = condition["objectId"]?["$in"]?.array {
      return ids.compactMap { $0.string.flatMap { conversation($0) } }
    }
    let member =
      condition["m"]?.string ?? condition["m"]?["$all"]?.array?.first?.string
      ?? condition["m"]?["$in"].flatMap {
        $0.array?.count == 1 ? $0.array?.first?.string : nil
      }
    if let member {
      return (conversationsOfClient[Key(member)] ?? []).sorted().compactMap { conversations[$0] }
    }
    return conversationOrder.compactMap { conversation($0) }
  }
}
