import ChatInterchange
import ChatJSON
import ChatTransport
import LeanCloudWire
import Synchronization
import UnifiedChat

/// The REST side of the service for one app: keys, hosts, errors. Tries nothing twice.
struct LeanCloudREST: Sendable {
  enum Key: Sendable { case app, master }

  var http: any HTTPClient
  var appID: String
  var appKey: String?
  var masterKey: String?
  var timeout: Duration
  var log: (@Sendable (Profile.LogLevel, String) -> Void)?
  let hosts: LeanCloudHosts
  /// For what imports keep beside items.
  let envelopes: EnvelopeReader

  init(profile: Profile, environment: AdapterEnvironment, http: any HTTPClient) {
    self.http = http
    appID = profile.appID ?? ""
    appKey = environment.appKey
    masterKey = environment.adminSecret
    timeout = profile.retry.requestTimeout
    log = environment.log
    envelopes = EnvelopeReader(environment)
    hosts = LeanCloudHosts(profile: profile, clock: environment.clock)
  }

  /// One request; the answer's JSON.
  ///
  /// - Parameter path: from the root, percent-encoded: `/1.2/rtm/messages`.
  func call(
    _ method: String, _ path: String, query: [(String, String)] = [], body: JSONValue? = nil, key: Key,
    headers: [HTTPHeaders.Field] = [], operation: ChatError.Operation
  ) async throws(ChatError) -> JSONValue {
    let base = try await hosts.api(http: http, appID: appID, timeout: timeout, operation: operation)
    var request = HTTPRequest(method, base + path + Self.encode(query), timeout: timeout)
    request.headers["X-LC-Id"] = appID
    request.headers["X-LC-Key"] = try keyText(key, operation)
    request.headers["Accept"] = "application/json"
    for field in headers { request.headers.fields.append(field) }
    if let body {
      request.headers["Content-Type"] = "application/json"
      request.body = body.bytes()
    }
    let response = try await send(request, operation)
    log?(.debug, "\(method) \(path.prefix { $0 != "?" }) \(response.status)")
    return try Self.read(response, operation)
  }

  private func keyText(_ key: Key, _ operation: ChatError.Operation) throws(ChatError) -> String {
    switch key {
    case .app:
      if let appKey { return appKey }
      if let masterKey { return masterKey + ",master" }
      throw ChatError(
        .invalidArgument(field: "credentials.appKey"), operation: operation,
        detail: "the profile names no appKey, which REST calls of a client need")
    case .master:
      if let masterKey { return masterKey + ",master" }
      throw ChatError(
        .invalidArgument(field: "credentials.admin"), operation: operation,
        detail: "the profile names no admin credential: the master key of the app")
    }
  }

  func send(
    _ request: HTTPRequest, _ operation: ChatError.Operation,
    progress: (@Sendable (TransferProgress) -> Void)? = nil
  ) async throws(ChatError) -> HTTPResponse {
    do { return try await http.send(request, progress: progress) } catch {
      throw LeanCloudFault.error(error, operation: operation)
    }
  }

  /// A status of 2xx may still carry an error.
  static func read(_ response: HTTPResponse, _ operation: ChatError.Operation) throws(ChatError) -> JSONValue {
    let json = try? JSONValue(parsing: response.body, limits: LeanCloudJSON.limits)
    let isSuccess = (200...299).contains(response.status)
    if isSuccess, let json, json["error"] == nil || json["code"] == nil { return json }
    if isSuccess, response.body.isEmpty { return .object(JSONObject()) }
    throw LeanCloudFault.error(response, json, operation: operation)
  }

  static func encode(_ query: [(String, String)]) -> String {
    guard !query.isEmpty else { return "" }
    return "?" + query.map { "\($0.0)=\(percent($0.1))" }.joined(separator: "&")
  }

  /// Everything but RFC 3986's unreserved characters is escaped.
  static func percent(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case 48...57, 65...90, 97...122, 45, 46, 95, 126: bytes.append(byte)
      default: bytes += [37, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// Where the service lives: from the profile, else from the app router, else by the rule of the international region.
final class LeanCloudHosts: Sendable {
  private let profileAPI: String?
  private let profileRouter: String?
  private let clock: any ChatClock
  private let found = Mutex<(api: String, router: String, until: Timestamp)?>(nil)

  init(profile: Profile, clock: any ChatClock) {
    profileAPI = profile.endpoints.api.map(Self.trimmed)
    profileRouter = (profile.endpoints.router ?? profile.endpoints.api).map(Self.trimmed)
    self.clock = clock
  }

  private static func trimmed(_ text: String) -> String {
    var text = text
    while text.hasSuffix("/") { text.removeLast() }
    return text
  }

  func api(
    http: any HTTPClient, appID: String, timeout: Duration, operation: ChatError.Operation
  ) async throws(ChatError) -> String {
    if let profileAPI { return profileAPI }
    return await discover(http, appID, timeout).api
  }

  func router(http: any HTTPClient, appID: String, timeout: Duration) async -> String {
    if let profileRouter { return profileRouter }
    return await discover(http, appID, timeout).router
  }

  private func discover(_ http: any HTTPClient, _ appID: String, _ timeout: Duration) async -> (
    api: String, router: String
  ) {
    if let known = found.withLock({ $0 }), known.until > clock.now { return (known.api, known.router) }
    let request = HTTPRequest(
      "GET", "https://app-router.com/2/route" + LeanCloudREST.encode([("appId", appID)]), timeout: timeout)
    guard let response = try? await http.send(request), response.status == 200,
      let json = try? JSONValue(parsing: response.body), let api = json["api_server"]?.string,
      let router = json["rtm_router_server"]?.string
    else {
      let short = appID.prefix(8).lowercased()
      return ("https://\(short).api.lncldglobal.com", "https://\(short).rtm.lncldglobal.com")
    }
    let result = (api: "https://" + api, router: "https://" + router)
    let ttl = Duration.seconds(json["ttl"]?.int ?? 3600)
    found.withLock { $0 = (result.api, result.router, clock.now + ttl) }
    return result
  }
}
