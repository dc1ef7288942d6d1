import ChatCrypto
import ChatJSON
import ChatTransport
import LeanCloudWire

/// What a request may do.
enum Access: Int, Comparable {
  case anybody, app, master
  static func < (left: Access, right: Access) -> Bool { left.rawValue < right.rawValue }
}

/// One request, taken apart.
struct RESTCall {
  var parameters: [String] = []
  var query: [(String, String)]
  var body: JSONObject
  var request: HTTPRequest
  var access: Access

  func first(_ key: String) -> String? { query.first { $0.0 == key }?.1 }
  func number(_ key: String) -> Int64? { first(key).flatMap { Int64($0) } }
  /// Some clients write `True`.
  func flag(_ key: String) -> Bool? { first(key).map { $0.lowercased() == "true" || $0 == "1" } }

  /// A JSON object in the query.
  func object(_ key: String) -> JSONObject?? {
    guard let text = first(key) else { return .some(nil) }
    guard let object = (try? JSONValue(parsing: text))?.object else { return nil }
    return .some(object)
  }
}

/// A refusal with the vendor's code.
struct RESTError: Error {
  var status = 400
  var code: Int64
  var text: String

  static func notFound(_ text: String = "Object not found.") -> RESTError {
    RESTError(status: 404, code: 101, text: text)
  }
}

extension HTTPResponse {
  static func leanCloud(_ value: JSONValue, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, headers: ["Content-Type": "application/json;charset=utf-8"], body: value.bytes())
  }

  static func leanCloud(_ status: Int, code: Int64, _ text: String) -> HTTPResponse {
    leanCloud(["code": .int(code), "error": .string(text)], status: status)
  }
}

struct Route: Sendable {
  var method: String
  var pattern: [String]
  var access: Access
  /// Counts against the limit of messages a minute.
  var isMetered: Bool
  var run: @Sendable (LeanCloudEmulator, RESTCall) throws(RESTError) -> HTTPResponse

  init(
    _ method: String, _ pattern: String, _ access: Access, isMetered: Bool = false,
    _ run: @escaping @Sendable (LeanCloudEmulator) -> (RESTCall) throws(RESTError) -> JSONValue
  ) {
    self.init(
      method, pattern, access, isMetered: isMetered,
      response: { (emulator, call) throws(RESTError) in
        .leanCloud(try run(emulator)(call))
      })
  }

  init(
    _ method: String, _ pattern: String, _ access: Access, isMetered: Bool = false,
    response: @escaping @Sendable (LeanCloudEmulator, RESTCall) throws(RESTError) -> HTTPResponse
  ) {
    self.method = method
    self.pattern = pattern.split(separator: "/").map(String.init)
    self.access = access
    self.isMetered = isMetered
    run = response
  }

  var name: String { "\(method) /\(pattern.joined(separator: "/"))" }

  func parameters(_ path: [String]) -> [String]? {
    var values: [String] = []
    for (wanted, part) in zip(pattern, path) {
      if wanted.hasPrefix("{") { values.append(part) } else if wanted != part { return nil }
    }
    return values
  }
}

/// Routes by method and number of segments.
struct RouteTable: Sendable {
  private var routes: [String: [Route]] = [:]
  let all: [Route]

  init(_ all: [Route]) {
    self.all = all
    for route in all { routes["\(route.method) \(route.pattern.count)", default: []].append(route) }
  }

  func find(_ method: String, _ path: [String]) -> (Route, [String])? {
    for route in routes["\(method) \(path.count)"] ?? [] {
      if let parameters = route.parameters(path) { return (route, parameters) }
    }
    return nil
  }
}

extension LeanCloudEmulator {
  /// REST messages a minute of an ordinary plan.
  static let messagesPerMinute = 1800

  func answer(_ request: HTTPRequest) -> HTTPResponse {
    let path = URLText.path(of: request.url)
    guard let (route, parameters) = routes.find(request.method, path) else {
      count(Self.genericName(request.method, path), isKnown: false)
      return .leanCloud(404, code: 1, "The requested resource was not found.")
    }
    count(route.name)
    let access = self.access(of: request)
    guard access >= route.access else { return .leanCloud(401, code: 401, "Unauthorized.") }
    if limits, route.isMetered, !rates.take("messages", limit: Self.messagesPerMinute, now: now) {
      var response = HTTPResponse.leanCloud(429, code: 429, "Too many requests.")
      response.headers["Retry-After"] = String(60 - now / 1000 % 60)
      return response
    }
    var body = JSONObject()
    if !request.body.isEmpty, route.method != "GET", !route.pattern.contains("upload") {
      guard let object = (try? JSONValue(parsing: request.body))?.object else {
        return .leanCloud(400, code: 107, "Malformed json object.")
      }
      body = object
    }
    let call = RESTCall(
      parameters: parameters, query: URLText.query(of: request.url), body: body, request: request, access: access)
    do { return try route.run(self, call) } catch { return .leanCloud(error.status, code: error.code, error.text) }
  }

  /// A path without its ids, so that the coverage table stays short.
  private static func genericName(_ method: String, _ path: [String]) -> String {
    let parts = path.map { LeanCloudID.isObjectID($0) || LeanCloudID.isMessageID($0) ? "{id}" : $0 }
    return "\(method) /\(parts.prefix(6).joined(separator: "/"))"
  }

  // MARK: Keys

  private func access(of request: HTTPRequest) -> Access {
    let headers = request.headers
    let app = headers["X-LC-Id"] ?? headers["X-AVOSCloud-Application-Id"]
    guard let app, options.openAuthentication || app == options.applicationID else { return .anybody }
    if let master = headers["X-AVOSCloud-Master-Key"] { return isMaster(master) ? .master : .anybody }
    if let sign = headers["X-LC-Sign"] ?? headers["X-AVOSCloud-Request-Sign"] { return access(signed: sign) }
    guard let key = headers["X-LC-Key"] ?? headers["X-AVOSCloud-Application-Key"], !key.isEmpty else {
      return .anybody
    }
    if key.hasSuffix(",master") { return isMaster(String(key.dropLast(7))) ? .master : .anybody }
    return appKey == nil || appKey == key || options.openAuthentication ? .app : .anybody
  }

  private func isMaster(_ key: String) -> Bool { options.openAuthentication || key == options.adminSecret }

  private func access(signed text: String) -> Access {
    let parts = text.split(separator: ",").map(String.init)
    guard parts.count >= 2, let time = Int64(parts[1]) else { return .anybody }
    let isMaster = parts.count > 2 && parts[2] == "master"
    if options.openAuthentication { return isMaster ? .master : .app }
    guard let key = isMaster ? options.adminSecret : appKey else { return .app }
    guard LeanCloudSignature.requestSign(key: key, isMaster: isMaster, milliseconds: time) == text else {
      return .anybody
    }
    return isMaster ? .master : .app
  }

  // MARK: Routers

  private var host: String { String(baseURL[(baseURL.range(of: "://")?.upperBound ?? baseURL.startIndex)...]) }

  func appRoute(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let host = JSONValue.string(host)
    return [
      "ttl": 3600, "api_server": host, "engine_server": host, "push_server": host, "rtm_router_server": host,
      "push_router_server": host, "stats_server": host,
    ]
  }

  func realtimeRoute(_ call: RESTCall) throws(RESTError) -> JSONValue {
    if let app = call.first("appId"), !options.openAuthentication, app != options.applicationID {
      throw RESTError(status: 404, code: 4100, text: "APP_NOT_AVAILABLE")
    }
    let server = JSONValue.string((baseURL.hasPrefix("https") ? "wss://" : "ws://") + host + "/")
    return ["groupId": "g0", "server": server, "secondary": server, "ttl": 3600]
  }
}
