import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

/// REST calls, for clients and for tools alike: what differs is the credential.
struct SendbirdREST: Sendable {
  enum Credential: Sendable {
    case apiToken(String)
    case sessionKey(String)
    /// Only for a new session key.
    case accessToken(String)
  }

  let http: any HTTPClient
  let host: String
  let appID: String
  let timeout: Duration
  let clock: any ChatClock
  /// Of `POST …/migration` and uploads, which carry more than other calls.
  var longTimeout: Duration { max(timeout, .seconds(60)) }

  init(profile: Profile, environment: AdapterEnvironment, transports: Transports) {
    http = transports.http
    host = SendbirdProfile.apiHost(profile)
    appID = profile.appID ?? ""
    timeout = profile.retry.requestTimeout
    clock = environment.clock
  }

  /// - Throws: the vendor's code by the table of `SendbirdErrors`; transport failures as `.network` and `.timeout`.
  func call(
    _ method: String, _ path: [String], query: SendbirdQuery = SendbirdQuery(), body: JSONObject? = nil,
    as credential: Credential, operation: ChatError.Operation
  ) async throws(ChatError) -> JSONObject {
    var request = self.request(method, path, query, credential)
    if let body {
      request.headers["Content-Type"] = "application/json"
      request.body = JSONValue.object(body).bytes()
    }
    return try await send(request, operation: operation)
  }

  func upload(
    _ path: [String], _ form: SendbirdMultipart, boundary: String, as credential: Credential,
    operation: ChatError.Operation, progress: (@Sendable (TransferProgress) -> Void)? = nil
  ) async throws(ChatError) -> JSONObject {
    var request = self.request("POST", path, SendbirdQuery(), credential)
    request.timeout = longTimeout
    request.headers["Content-Type"] = "multipart/form-data; boundary=\(boundary)"
    request.body = form.encode(boundary: boundary)
    return try await send(request, operation: operation, progress: progress)
  }

  private func request(
    _ method: String, _ path: [String], _ query: SendbirdQuery, _ credential: Credential
  ) -> HTTPRequest {
    var url = "\(host)/v3/" + path.map { PercentCoding.encode($0) }.joined(separator: "/")
    let text = query.text
    if !text.isEmpty { url += "?\(text)" }
    var request = HTTPRequest(method, url, timeout: path.first == "migration" ? longTimeout : timeout)
    request.headers["SendBird"] = "JS,UnifiedChat,3.1.33,\(appID)"
    request.headers["SB-User-Agent"] = "JS%2Fc3.1.33%2F%2F%2F"
    request.headers["Request-Sent-Timestamp"] = String(clock.now.milliseconds)
    switch credential {
    case .apiToken(let token): request.headers["Api-Token"] = token
    case .sessionKey(let key): request.headers["Session-Key"] = key
    case .accessToken(let token):
      request.headers["App-Id"] = appID
      request.headers["Access-Token"] = token
    }
    return request
  }

  private func send(
    _ request: HTTPRequest, operation: ChatError.Operation,
    progress: (@Sendable (TransferProgress) -> Void)? = nil
  ) async throws(ChatError) -> JSONObject {
    let response: HTTPResponse
    do { response = try await http.send(request, progress: progress) } catch { throw Self.error(error, operation) }
    let json = (try? JSONValue(parsing: response.body, limits: SendbirdJSON.limits))?.object
    if let json, let fault = SendbirdFault(json, httpStatus: response.status) {
      throw SendbirdErrors.error(
        code: fault.code, message: fault.message, operation: operation, httpStatus: response.status,
        retryAfter: Self.retryAfter(response))
    }
    guard (200..<400).contains(response.status) else {
      throw SendbirdErrors.error(
        code: 0, message: nil, operation: operation, httpStatus: response.status, retryAfter: Self.retryAfter(response))
    }
    guard let json else {
      throw ChatError(.protocolViolation, operation: operation, detail: "the answer is not a JSON object")
    }
    return json
  }

  private static func retryAfter(_ response: HTTPResponse) -> Duration? {
    // The vendor's own field may have a fraction.
    let own = response.headers["X-RateLimit-RetryAfter"].flatMap { Double($0) }
    return own.flatMap { $0 >= 0 && $0 < 86_400 ? .milliseconds(Int64($0 * 1000)) : nil } ?? response.retryAfter
  }

  /// The bytes behind an attachment's URL.
  func download(_ url: String, limit: Int64, headers: HTTPHeaders = [:]) async throws(ChatError) -> [UInt8] {
    try await Self.download(url, limit: limit, headers: headers, by: http, timeout: longTimeout)
  }

  static func download(
    _ url: String, limit: Int64, headers: HTTPHeaders = [:], by http: any HTTPClient, timeout: Duration
  ) async throws(ChatError) -> [UInt8] {
    let response: HTTPResponse
    var request = HTTPRequest("GET", url, headers: headers, timeout: timeout)
    // What is too much is not even received.
    request.maxResponseSize = min(request.maxResponseSize, Int(clamping: max(0, limit)))
    do { response = try await http.send(request) } catch {
      throw Self.error(error, .download)
    }
    guard (200..<300).contains(response.status) else {
      throw SendbirdErrors.error(code: 0, message: nil, operation: .download, httpStatus: response.status)
    }
    guard response.body.count <= limit else {
      throw ChatError(.tooLarge(limit: limit, unit: .bytes), operation: .download)
    }
    return response.body
  }

  static func error(_ error: TransportError, _ operation: ChatError.Operation) -> ChatError {
    let kind: ChatError.Kind
    switch error.kind {
    case .timeout: kind = .timeout
    case .cancelled: kind = .cancelled
    case .refused: kind = .network(.refused)
    case .unresolvedHost, .unreachable: kind = .network(.unreachable)
    case .tls: kind = .network(.tls)
    case .closed: kind = .network(.closed)
    case .tooLarge(let limit): kind = .tooLarge(limit: Int64(limit), unit: .bytes)
    case .invalidURL: kind = .invalidArgument(field: "endpoint")
    case .protocolViolation: kind = .protocolViolation
    case .upgradeRefused(let response):
      return SendbirdErrors.error(code: 0, message: nil, operation: operation, httpStatus: response.status)
    case .other: kind = .network(.other)
    }
    return ChatError(kind, operation: operation, detail: error.description)
  }
}
