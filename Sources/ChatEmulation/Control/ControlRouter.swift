import ChatJSON
import ChatTransport
import UnifiedChat

/// Maps the calls of the control interface to `EmulatorControl`.
struct ControlRouter: Sendable {
  let control: EmulatorControl

  static func path(of url: String) -> String {
    let afterScheme = url.split(separator: "://", maxSplits: 1).last ?? ""
    let target = afterScheme.drop { $0 != "/" }
    return String(target.prefix { $0 != "?" })
  }

  static func query(_ name: String, of url: String) -> String? {
    guard let start = url.firstIndex(of: "?") else { return nil }
    let pairs = url[url.index(after: start)...].split(separator: "&")
    return pairs.first { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.count + 1)) }
  }

  static func failure(_ status: Int, _ kind: String, _ message: String) -> HTTPResponse {
    respond(["error": ["kind": .string(kind), "message": .string(message)]], status: status)
  }

  private static func respond(_ json: JSONValue, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, headers: ["Content-Type": "application/json"], body: json.bytes())
  }

  func answer(_ request: HTTPRequest) async -> HTTPResponse {
    let prefix = "/control/v1/"
    let path = Self.path(of: request.url)
    guard path.hasPrefix(prefix) else { return Self.failure(404, "notFound", "calls begin with \(prefix)") }
    do throws(EmulatorControlError) {
      if request.method == "POST", path == prefix + "load" { return Self.respond(try await load(request.body)) }
      if request.method == "POST", path == prefix + "store/read" { return await records() }
      let body = try Self.parse(request.body)
      let parts = path.dropFirst(prefix.count).split(separator: "/").map(String.init)
      let call = ([request.method] + parts).joined(separator: " ")
      return Self.respond(try await carryOut(call, parts, body, request.url))
    } catch {
      switch error {
      case .noHook: return Self.failure(409, "noHook", error.description)
      case .notFound: return Self.failure(404, "notFound", error.description)
      case .invalid: return Self.failure(400, "invalid", error.description)
      case .emulator: return Self.failure(422, "emulator", error.description)
      }
    }
  }

  private static func parse(_ body: [UInt8]) throws(EmulatorControlError) -> JSONValue {
    if body.isEmpty { return [:] }
    do throws(JSONError) {
      return try JSONValue(parsing: body, limits: JSONLimits(size: .max))
    } catch {
      throw .invalid(error.description)
    }
  }

  private func carryOut(
    _ call: String, _ parts: [String], _ body: JSONValue, _ url: String
  ) async throws(EmulatorControlError) -> JSONValue {
    switch call {
    case "POST rules": return ["id": JSONValue(try await control.add(try FaultRule(json: body)))]
    case "GET rules": return .array(await control.rules().map(\.json))
    case "DELETE rules": await control.removeRules()
    case "POST await": return ["matched": .bool(try await wait(body))]
    case "POST gate":
      let id = try await control.closeGate(
        try text(body, "name"), try FaultRule.Match(json: body["match"] ?? [:]), at: try FaultRule.phase(body["phase"]))
      return ["id": JSONValue(id)]
    case "POST clock": try await setClock(body)
    case "GET clock": break
    case "POST sessions query": return .array(await control.sessions(of: body["user"]?.string).map(\.json))
    case "POST sessions act": try await control.act(try sessionAction(body), on: try text(body, "user"))
    case "POST credentials": try await control.perform(try credentialAction(body))
    case "POST server": try await serve(body)
    case "POST settings":
      guard let object = body.object else { throw .invalid("settings are an object") }
      try await control.apply(settings: Dictionary(object.members.map { ($0.key, $0.value) }) { $1 })
    case "POST store write":
      for record in body.array ?? [body] { try await control.load(record) }
    case "POST raw":
      guard let id = body["session"]?.uint else { throw .invalid("session must be a connection's number") }
      try await control.push(try FaultRule.Action.message(body), to: EmulatorConnectionID(id))
    case "GET journal":
      let since = Self.query("since", of: url).flatMap(UInt64.init) ?? 0
      return .array(await control.journal(since: since).map(\.json))
    case "DELETE journal": await control.clearJournal()
    case "POST snapshot": return await control.snapshot()
    case "POST restore": try await control.restore(body)
    case "POST reset": try await control.reset()
    case "GET coverage": return .array(await control.coverage().map(\.json))
    case "GET summary": return await summary()
    default: return try await carryOutNumbered(parts, call)
    }
    return ["now": .int(await control.now())]
  }

  /// Calls with a number or name in their path.
  private func carryOutNumbered(_ parts: [String], _ call: String) async throws(EmulatorControlError) -> JSONValue {
    if call.hasPrefix("DELETE rules "), let id = parts.last.flatMap(UInt64.init) {
      try await control.removeRule(id)
    } else if call.hasPrefix("POST gate "), parts.count == 3, parts[2] == "open" {
      await control.openGate(parts[1])
    } else {
      throw .notFound(call)
    }
    return [:]
  }

  private func text(_ body: JSONValue, _ key: String) throws(EmulatorControlError) -> String {
    guard let text = body[key]?.string else { throw .invalid("\(key) must be a text") }
    return text
  }

  private func wait(_ body: JSONValue) async throws(EmulatorControlError) -> Bool {
    await control.wait(
      for: try FaultRule.Match(json: body), count: body["count"]?.int.flatMap { Int(exactly: $0) } ?? 1,
      since: body["since"]?.uint ?? 0, timeout: .milliseconds(body["timeout_ms"]?.int ?? 10_000))
  }

  private func setClock(_ body: JSONValue) async throws(EmulatorControlError) {
    if let skew = body["skew_ms"]?.int { await control.setSkew(.milliseconds(skew)) }
    switch body["mode"]?.string {
    case "virtual": await control.host.setClock(.virtual(start: await control.now()))
    case "real": await control.host.setClock(.real)
    case nil: break
    default: throw .invalid("mode must be virtual or real")
    }
    if let time = body["set_ms"]?.int { await control.setClock(time) }
    if let step = body["advance_ms"]?.int { await control.advance(by: .milliseconds(step)) }
  }

  private func sessionAction(_ body: JSONValue) throws(EmulatorControlError) -> EmulatorSessionAction {
    if let code = body["action"]?["close"]?.int.flatMap({ UInt16(exactly: $0) }) { return .end(.clean(code: code)) }
    let name = try text(body, "action")
    switch name {
    case "kill": return .end(.abrupt)
    case "halfClose": return .end(.halfClose)
    case "stall": return .stall()
    case "resume": return .resume
    default:
      guard let action = FaultRule.UserAction(rawValue: name) else { throw .noHook(name) }
      return .act(action)
    }
  }

  private func credentialAction(_ body: JSONValue) throws(EmulatorControlError) -> EmulatorAction {
    let user = try text(body, "user")
    switch try text(body, "action") {
    case "expire": return .expireCredential(user: user)
    case "revoke": return .revokeCredential(user: user)
    case "disableUser": return .disableUser(user: user)
    case let other: throw .noHook("credentials \(other)")
    }
  }

  private func serve(_ body: JSONValue) async throws(EmulatorControlError) {
    switch try text(body, "action") {
    case "restart": try await control.restart(keepingState: body["keepState"]?.bool ?? true)
    case "pause": await control.pause()
    case "resume":
      await control.resume()
      await control.refuseConnections(false)
    case "refuseConnections": await control.refuseConnections(true)
    case let other: throw .noHook("server \(other)")
    }
  }

  /// Neutral JSON Lines in the body; an error names the line.
  private func load(_ body: [UInt8]) async throws(EmulatorControlError) -> JSONValue {
    var count = 0
    for (index, line) in body.split(separator: 10, omittingEmptySubsequences: false).enumerated() where !line.isEmpty {
      do throws(EmulatorControlError) {
        try await control.load(try Self.parse(Array(line)))
        count += 1
      } catch {
        throw .invalid("line \(index + 1): \(error.description)")
      }
    }
    return ["records": JSONValue(count)]
  }

  private func records() async -> HTTPResponse {
    var lines: [UInt8] = []
    for record in await control.records() { lines += record.bytes() + [10] }
    return HTTPResponse(status: 200, headers: ["Content-Type": "application/x-ndjson"], body: lines)
  }

  private func summary() async -> JSONValue {
    [
      "vendor": .string(control.host.vendor), "now": .int(await control.now()),
      "connections": JSONValue(await control.host.openConnections),
      "pendingRequests": JSONValue(await control.host.pendingExchanges),
      "rules": .array(await control.rules().map(\.json)),
      "sessions": .array(await control.sessions().map(\.json)),
      "coverage": .array(await control.coverage().map(\.json)),
    ]
  }
}

extension EmulatorCoverage {
  var json: JSONValue {
    ["endpoint": .string(endpoint), "isImplemented": .bool(isImplemented), "calls": JSONValue(calls)]
  }
}
