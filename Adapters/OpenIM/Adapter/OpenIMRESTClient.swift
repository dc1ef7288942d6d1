import ChatJSON
import ChatTransport
import OpenIMWire
import Synchronization
import UnifiedChat

/// Calls of the REST API. Holds no state but a counter, so that any number of tasks may share it.
struct OpenIMRESTClient: Sendable {
  let http: any HTTPClient
  /// Without a slash at its end.
  let base: String
  let timeout: Duration
  let log: (@Sendable (Profile.LogLevel, String) -> Void)?
  let trace: OpenIMTrace

  init(http: any HTTPClient, base: String, timeout: Duration, environment: AdapterEnvironment) {
    self.http = http
    self.base = base.hasSuffix("/") ? String(base.dropLast()) : base
    self.timeout = timeout
    log = environment.log
    trace = OpenIMTrace(device: environment.device)
  }

  /// The `data` of the answer; an empty object where the call has none.
  func call(
    _ path: String, _ body: JSONValue, token: String?, for operation: ChatError.Operation
  ) async throws(ChatError) -> JSONValue {
    let id = trace.next()
    var request = HTTPRequest("POST", base + path, body: body.bytes(), timeout: timeout)
    request.headers = ["Content-Type": "application/json", "operationID": id]
    request.headers["token"] = token
    let response: HTTPResponse
    do { response = try await http.send(request) } catch { throw ChatError(error, for: operation) }
    log?(.debug, "openim POST \(path) \(response.status) \(id)")
    return try Self.data(of: response, for: operation, requestID: id)
  }

  private static func data(
    of response: HTTPResponse, for operation: ChatError.Operation, requestID: String
  ) throws(ChatError) -> JSONValue {
    do throws(OpenIMFault) {
      if let data = try OpenIMREST.data(of: response.body) { return data }
    } catch {
      var fault = OpenIMErrorTable.error(
        error, operation: operation, status: response.status == 200 ? nil : response.status, requestID: requestID)
      if response.status == 429 {
        // Whatever code stands in it.
        fault.kind = .rateLimited(retryAfter: response.retryAfter)
        fault.retry = fault.kind.usualAdvice
      }
      throw fault
    }
    throw unexpected(response, for: operation, requestID: requestID)
  }

  /// An answer without the vendor's envelope: from a proxy, or for a path that the server does not know.
  private static func unexpected(
    _ response: HTTPResponse, for operation: ChatError.Operation, requestID: String
  ) -> ChatError {
    let fault = ChatError.VendorFault(vendor: "openim", httpStatus: response.status, requestID: requestID)
    switch response.status {
    case 429:
      return ChatError(.rateLimited(retryAfter: response.retryAfter), operation: operation, vendor: fault)
    case 404:
      return ChatError(.server, operation: operation, vendor: fault, detail: "the server does not know this call")
    case 413: return ChatError(.tooLarge(limit: nil, unit: .bytes), operation: operation, vendor: fault)
    case 500...: return ChatError(.server, operation: operation, retry: .after(.seconds(1)), vendor: fault)
    default:
      return ChatError(
        .protocolViolation, operation: operation, vendor: fault, detail: "the answer is no envelope of this vendor")
    }
  }

  /// GET of stored bytes; follows the redirect to the store.
  func download(_ url: String, limit: Int64, for operation: ChatError.Operation) async throws(ChatError) -> [UInt8] {
    var url = url
    for _ in 0..<5 {
      let response: HTTPResponse
      var request = HTTPRequest("GET", url, timeout: timeout)
      // What is too much is not even received.
      request.maxResponseSize = min(request.maxResponseSize, Int(clamping: max(0, limit)))
      do { response = try await http.send(request) } catch {
        throw ChatError(error, for: operation)
      }
      if (301...308).contains(response.status), let next = response.headers["Location"] {
        url = next.hasPrefix("/") ? base + next : next
        continue
      }
      guard response.status == 200 else {
        let kind: ChatError.Kind =
          switch response.status {
          // A signed link whose time is over.
          case 401, 403: .permission()
          case 404, 410: .notFound
          default: .server
          }
        throw ChatError(
          kind, operation: operation, vendor: ChatError.VendorFault(vendor: "openim", httpStatus: response.status))
      }
      guard Int64(response.body.count) <= limit else {
        throw ChatError(.tooLarge(limit: limit, unit: .bytes), operation: operation)
      }
      return response.body
    }
    throw ChatError(.protocolViolation, operation: operation, detail: "the store redirects without end")
  }
}

/// Numbers the calls of one session, so that a log of ours and one of the server can be laid side by side, and so that
/// a push can be told to follow from an own call.
final class OpenIMTrace: Sendable {
  private let prefix: String
  private let count = Mutex<UInt64>(0)

  /// Two sessions of one device differ too.
  init(device: String) { prefix = "\(device)-\(String(UInt64.random(in: .min ... .max), radix: 36))-" }

  func isOwn(_ operationID: String) -> Bool { operationID.hasPrefix(prefix) }

  func next() -> String {
    let number = count.withLock {
      $0 &+= 1
      return $0
    }
    return "\(prefix)\(number)"
  }
}

extension ChatError {
  /// What a transport failure means.
  init(_ error: TransportError, for operation: ChatError.Operation) {
    let kind: ChatError.Kind =
      switch error.kind {
      case .timeout: .timeout
      case .cancelled: .cancelled
      case .tls: .network(.tls)
      case .refused: .network(.refused)
      case .unresolvedHost, .unreachable: .network(.unreachable)
      case .closed: .network(.closed)
      case .tooLarge(let limit): .tooLarge(limit: Int64(limit), unit: .bytes)
      case .invalidURL: .invalidArgument(field: "endpoints")
      case .protocolViolation, .upgradeRefused: .protocolViolation
      case .other: .network(.other)
      }
    self.init(kind, operation: operation, detail: "\(error)")
  }
}
