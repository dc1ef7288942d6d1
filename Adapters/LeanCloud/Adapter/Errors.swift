import ChatJSON
import ChatTransport
import LeanCloudWire
import UnifiedChat

/// What the service and the transport say, as `ChatError`. Wrapped once, here.
enum LeanCloudFault {
  /// An `error` frame, an `ack` or a `closed` with a code. The code may stand in a nested `error`.
  static func error(_ frame: LeanCloudFrame, operation: ChatError.Operation) -> ChatError? {
    let nested = frame["error"]
    guard let code = frame.int("code") ?? nested?["code"]?.int else {
      return frame.command == "error" || frame.operation == "error"
        ? ChatError(.protocolViolation, operation: operation, detail: "an error without a code") : nil
    }
    if frame.command == "ack", code == 0 { return nil }
    let reason = frame.string("reason") ?? nested?["detail"]?.string
    return LeanCloudErrors.error(code: Int(clamping: code), reason: reason, operation: operation)
  }

  static func error(_ response: HTTPResponse, _ json: JSONValue?, operation: ChatError.Operation) -> ChatError {
    let retryAfter = response.retryAfter
    let reason = json?["error"]?.string
    guard let code = json?["code"]?.int else { return error(status: response.status, retryAfter, reason, operation) }
    var error = LeanCloudErrors.error(
      code: Int(clamping: code), reason: reason, status: response.status, operation: operation)
    // The answer to an unknown path has code 1, which otherwise names a wrong parameter.
    if response.status == 404, code == 1 { error.kind = .notFound }
    if response.status == 429 {
      error.kind = .rateLimited(retryAfter: retryAfter)
      error.retry = .after(retryAfter ?? .seconds(60))
    }
    return error
  }

  private static func error(
    status: Int, _ retryAfter: Duration?, _ reason: String?, _ operation: ChatError.Operation
  ) -> ChatError {
    let kind: ChatError.Kind
    var retry: ChatError.RetryAdvice?
    switch status {
    case 401: kind = .authentication
    case 403: kind = .permission()
    case 404: kind = .notFound
    case 413: kind = .tooLarge(limit: nil, unit: .bytes)
    case 429: kind = .rateLimited(retryAfter: retryAfter)
    case 502...504:
      kind = .server
      retry = .now
    case 500...599: kind = .server
    default: kind = .protocolViolation
    }
    return ChatError(
      kind, operation: operation, retry: retry,
      vendor: ChatError.VendorFault(vendor: LeanCloudErrors.vendor, message: reason, httpStatus: status))
  }

  static func error(_ error: TransportError, operation: ChatError.Operation) -> ChatError {
    let kind: ChatError.Kind
    switch error.kind {
    case .timeout: kind = .timeout
    case .cancelled: return .cancelled(operation)
    case .unresolvedHost, .unreachable: kind = .network(.unreachable)
    case .refused: kind = .network(.refused)
    case .tls: kind = .network(.tls)
    case .closed: kind = .network(.closed)
    case .invalidURL: kind = .invalidArgument(field: "endpoints")
    case .tooLarge(let limit): kind = .tooLarge(limit: Int64(limit), unit: .bytes)
    case .upgradeRefused(let response):
      return self.error(response, try? JSONValue(parsing: response.body), operation: operation)
    case .protocolViolation: kind = .protocolViolation
    case .other: kind = .network(.other)
    }
    return ChatError(kind, operation: operation, detail: error.description)
  }

  /// A close code of the service ends a session for good, or is one of those after which clients come back.
  static func refusal(code: Int) -> RefusalReason? {
    switch code {
    case 4100: .appDisabled
    case 4102: .credentialInvalid
    case 4103, 4110: .protocolRefused
    case 4106: .userDisabled
    case 4101, 4111: .kickedByOtherDevice
    case 4115: .kickedByAdmin
    default: nil
    }
  }
}
