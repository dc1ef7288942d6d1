import ChatCrypto
import ChatJSON
import ChatTransport

extension FaultRule {
  /// Reads a rule as the control interface takes it:
  ///
  /// `{"match": {"op", "direction", "user", "channel", "clientID", "vendorName", "where": {pointer: value}, "nth",
  /// "from", "every", "times", "probability"}, "phase", "do": [action…], "mustFire"}`; absent `times` is 1, null is endless.
  public init(json: JSONValue) throws(EmulatorControlError) {
    let match = json["match"] ?? [:]
    self.init(try Match(json: match), at: try Self.phase(json["phase"]))
    guard let steps = json["do"]?.array, !steps.isEmpty else { throw .invalid("/do must be an array of actions") }
    actions = []
    for step in steps { actions.append(try Action(json: step)) }
    nth = try Self.count(match["nth"], "nth")
    from = try Self.count(match["from"], "from")
    every = try Self.count(match["every"], "every")
    if let limit = match["times"] { times = limit.isNull ? nil : try Self.count(limit, "times") }
    probability = match["probability"]?.double
    mustFire = json["mustFire"]?.bool ?? true
  }

  static func phase(_ json: JSONValue?) throws(EmulatorControlError) -> Phase {
    guard let json else { return .received }
    guard let phase = json.string.flatMap(Phase.init) else {
      throw .invalid("/phase must be one of \(Phase.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return phase
  }

  private static func count(_ json: JSONValue?, _ name: String) throws(EmulatorControlError) -> Int? {
    guard let json, !json.isNull else { return nil }
    guard let number = json.int.flatMap({ Int(exactly: $0) }), number > 0 else {
      throw .invalid("/match/\(name) must be a whole number from 1 on")
    }
    return number
  }
}

extension FaultRule.Match {
  public init(json: JSONValue) throws(EmulatorControlError) {
    self.init(
      json["op"]?.string, user: json["user"]?.string, channel: json["channel"]?.string,
      clientID: json["clientID"]?.string, vendorName: json["vendorName"]?.string)
    if json["device"] != nil { throw .noHook("match by device") }
    if let text = json["direction"], !text.isNull {
      guard let direction = text.string.flatMap(FaultRule.Direction.init) else {
        throw .invalid("/match/direction must be in or out")
      }
      self.direction = direction
    }
    for (pointer, value) in json["where"]?.object?.members ?? [] { values[pointer] = value }
  }
}

extension FaultRule.Action {
  /// `{"name": parameters}`, or the name alone where an action has none.
  init(json: JSONValue) throws(EmulatorControlError) {
    if let name = json.string {
      self = try Self.make(name, [:])
    } else if let member = json.object?.members.first, json.object?.count == 1 {
      self = try Self.make(member.key, member.value)
    } else {
      throw .invalid("an action is {\"name\": parameters}")
    }
  }

  /// More would fill the memory rather than test a client.
  private static let mostCopies = 10_000

  private static func make(_ name: String, _ json: JSONValue) throws(EmulatorControlError) -> Self {
    switch name {
    case "delay": return .delay(try duration(json.int ?? json["ms"]?.int, name), jitter: .milliseconds(json["jitter_ms"]?.int ?? 0))
    case "drop": return .drop
    case "duplicate":
      let times = number(json, "times") ?? 1
      guard times <= mostCopies else { throw .invalid("duplicate: at most \(mostCopies) times") }
      return .duplicate(times: times, gap: .milliseconds(json["gap_ms"]?.int ?? 0))
    case "reorder": return .reorder(window: number(json, "window") ?? 2, shuffled: json["shuffled"]?.bool ?? false)
    case "fail": return .fail(try failure(json))
    case "http": return .http(try response(json))
    case "truncateBody": return .truncateBody(try required(number(json, "bytes"), name))
    case "closeSocket": return .closeSocket(try ending(json))
    case "stall": return .stall
    case "patch": return .patch(try changes(json))
    case "raw": return .raw(try message(json))
    case "fragment": return .fragment((json.array ?? []).compactMap { $0.int.flatMap { Int(exactly: $0) } })
    case "corrupt":
      let xor = json["xor"]?.int.flatMap { UInt8(exactly: $0) }
      return .corrupt(offset: try required(number(json, "offset"), name), xor: try required(xor, name))
    case "gate": return .gate(try required(json.string, name))
    default:
      guard let action = FaultRule.UserAction(rawValue: name) else { throw .noHook(name) }
      return .act(action)
    }
  }

  private static func required<Value>(_ value: Value?, _ name: String) throws(EmulatorControlError) -> Value {
    guard let value else { throw .invalid("\(name): a parameter is missing or wrong") }
    return value
  }

  private static func number(_ json: JSONValue, _ key: String) -> Int? {
    (json.int ?? json[key]?.int).flatMap { Int(exactly: $0) }
  }

  private static func duration(_ milliseconds: Int64?, _ name: String) throws(EmulatorControlError) -> Duration {
    .milliseconds(try required(milliseconds, name))
  }

  private static func failure(_ json: JSONValue) throws(EmulatorControlError) -> EmulatorFailure {
    EmulatorFailure(
      try required(json.string ?? json["kind"]?.string, "fail"), code: json["code"]?.int.flatMap { Int(exactly: $0) },
      shape: json["shape"]?.int.flatMap { Int(exactly: $0) })
  }

  private static func response(_ json: JSONValue) throws(EmulatorControlError) -> HTTPResponse {
    let status = try required(number(json, "status"), "http")
    var response = HTTPResponse(status: status)
    for (name, value) in json["headers"]?.object?.members ?? [] { response.headers[name] = value.string }
    if let body = json["body"] { response.body = body.string.map { Array($0.utf8) } ?? body.bytes() }
    return response
  }

  static func ending(_ json: JSONValue) throws(EmulatorControlError) -> FaultRule.Ending {
    switch json.string {
    case "abrupt": return .abrupt
    case "halfClose": return .halfClose
    default:
      let code = try required(json["clean"]?.int.flatMap { UInt16(exactly: $0) }, "closeSocket")
      return .clean(code: code, reason: json["reason"]?.string ?? "")
    }
  }

  /// As RFC 6902: `add` and `replace` set, `remove` removes.
  private static func changes(_ json: JSONValue) throws(EmulatorControlError) -> [String: JSONValue?] {
    var changes: [String: JSONValue?] = [:]
    for step in try required(json.array, "patch") {
      let path = try required(step["path"]?.string, "patch")
      switch step["op"]?.string {
      case "add", "replace": changes[path] = .some(try required(step["value"], "patch"))
      case "remove": changes[path] = .some(Optional<JSONValue>.none)
      default: throw .invalid("patch: op must be add, replace or remove")
      }
    }
    return changes
  }

  /// `{"text": …}` or `{"base64": …}`.
  static func message(_ json: JSONValue) throws(EmulatorControlError) -> WebSocketMessage {
    if let text = json["text"]?.string { return .text(text) }
    return .binary(try required(json["base64"]?.string.flatMap(Base64.decode), "raw"))
  }
}

extension FaultRuleStatus {
  var json: JSONValue {
    var object: JSONObject = [
      "id": JSONValue(id), "phase": .string(rule.phase.rawValue), "direction": .string(rule.direction.rawValue),
      "do": .array(rule.actions.map { .string($0.name) }), "matches": JSONValue(matches), "hits": JSONValue(hits),
      "mustFire": .bool(rule.mustFire), "missed": .bool(isMissed),
    ]
    object["op"] = rule.match.operation.map { .string($0) }
    object["failure"] = failure.map { .string($0) }
    return .object(object)
  }
}

extension JournalEntry {
  var json: JSONValue {
    var object: JSONObject = [
      "index": JSONValue(index), "time": .int(time), "direction": .string(direction.rawValue),
      "kind": .string(kind.rawValue), "op": .string(operation.name), "vendorName": .string(operation.vendorName),
      "size": JSONValue(size), "rules": .array(rules.map { JSONValue($0) }),
    ]
    object["connection"] = connection.map { JSONValue($0.number) }
    object["exchange"] = exchange.map { JSONValue($0.number) }
    object["user"] = operation.user.map { .string($0) }
    object["channel"] = operation.channel.map { .string($0) }
    object["clientID"] = operation.clientID.map { .string($0) }
    object["status"] = status.map { JSONValue($0) }
    object["bytes"] = bytes.map { .string(Base64.encode($0)) }
    return .object(object)
  }
}

extension EmulatorSession {
  var json: JSONValue {
    var object: JSONObject = [
      "connection": JSONValue(connection.number), "openedAt": .int(openedAt), "lastActivity": .int(lastActivity),
    ]
    object["user"] = user.map { .string($0) }
    return .object(object)
  }
}
