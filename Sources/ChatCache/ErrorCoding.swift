import ChatJSON
import UnifiedChat

/// The stored form of a failed message's error.
extension ChatError {
  func storedText() -> String {
    var object = JSONObject()
    object["kind"] = .string(kind.name)
    object["operation"] = .string(operation.rawValue)
    object["detail"] = detail.isEmpty ? nil : .string(detail)
    switch kind {
    case .permission(let byHook): object["byHook"] = .bool(byHook)
    case .invalidArgument(let field): object["argument"] = .string(field)
    case .rateLimited(let wait): object["wait"] = wait.map { .int($0.wholeMilliseconds) }
    case .tooLarge(let limit, let unit):
      object["limit"] = limit.map { .int($0) }
      object["unit"] = .string(unit.rawValue)
    case .network(let reason): object["argument"] = .string(reason.rawValue)
    case .storage(let reason): object["argument"] = .string(reason.rawValue)
    case .unsupported(let capability): object["argument"] = .string(capability.rawValue)
    case .authentication, .notFound, .conflict, .timeout, .server, .protocolViolation, .cancelled: break
    }
    switch retry {
    case .never: break
    case .now: object["retry"] = "now"
    case .after(let wait): object["retry"] = .int(wait.wholeMilliseconds)
    case .afterRenewal: object["retry"] = "afterRenewal"
    }
    object["vendor"] = vendor?.stored()
    return JSONValue.object(object).text()
  }

  /// What cannot be read any more becomes `.storage(.other)`: the message stays failed.
  init(storedText text: String) {
    guard let object = (try? JSONValue(parsing: text))?.object, let kind = Kind(stored: object) else {
      self.init(.storage(.other), operation: .cache, detail: "the stored error cannot be read")
      return
    }
    var retry = RetryAdvice.never
    switch object["retry"] {
    case .string("now"): retry = .now
    case .string("afterRenewal"): retry = .afterRenewal
    case .int(let wait): retry = .after(.milliseconds(wait))
    default: break
    }
    self.init(
      kind, operation: object["operation"]?.string.flatMap { Operation(rawValue: $0) } ?? .send, retry: retry,
      vendor: object["vendor"]?.object.map { VendorFault(stored: $0) }, detail: object["detail"]?.string ?? "")
  }
}

extension ChatError.Kind {
  fileprivate init?(stored object: JSONObject) {
    let argument = object["argument"]?.string ?? ""
    switch object["kind"]?.string {
    case "authentication": self = .authentication
    case "permission": self = .permission(byHook: object["byHook"]?.bool ?? false)
    case "notFound": self = .notFound
    case "invalidArgument": self = .invalidArgument(field: argument)
    case "conflict": self = .conflict
    case "rateLimited": self = .rateLimited(retryAfter: object["wait"]?.int.map { .milliseconds($0) })
    case "tooLarge":
      self = .tooLarge(
        limit: object["limit"]?.int,
        unit: object["unit"]?.string.flatMap { ChatError.LimitUnit(rawValue: $0) } ?? .items)
    case "network": self = .network(ChatError.NetworkReason(rawValue: argument) ?? .other)
    case "timeout": self = .timeout
    case "server": self = .server
    case "protocolViolation": self = .protocolViolation
    case "storage": self = .storage(ChatError.StorageReason(rawValue: argument) ?? .other)
    case "unsupported":
      guard let capability = Capability(rawValue: argument) else { return nil }
      self = .unsupported(capability)
    case "cancelled": self = .cancelled
    default: return nil
    }
  }
}

extension ChatError.VendorFault {
  fileprivate func stored() -> JSONValue {
    var object = JSONObject()
    object["vendor"] = .string(vendor.rawValue)
    object["code"] = code.map { .string($0) }
    object["message"] = message.map { .string($0) }
    object["httpStatus"] = httpStatus.map { .int(Int64($0)) }
    object["requestID"] = requestID.map { .string($0) }
    return .object(object)
  }

  fileprivate init(stored object: JSONObject) {
    self.init(
      vendor: VendorName(object["vendor"]?.string ?? ""), code: object["code"]?.string,
      message: object["message"]?.string, httpStatus: object["httpStatus"]?.int.flatMap { Int(exactly: $0) },
      requestID: object["requestID"]?.string)
  }
}
