import ChatJSON
import UnifiedChat

/// What Sendbird's codes mean. One row a code; a code that no row knows is `.server` and is kept.
public enum SendbirdErrors {
  public static let vendor: VendorName = "sendbird"

  public struct Row: Sendable {
    public var kind: ChatError.Kind
    public var retry: ChatError.RetryAdvice?
    /// What the vendor says of it, and where: [DOC] its documentation, [SDK] its JavaScript client, [SDK-iOS] its iOS
    /// headers, [SDK4] its later clients.
    public var meaning: String

    init(_ kind: ChatError.Kind, _ meaning: String, retry: ChatError.RetryAdvice? = nil) {
      self.kind = kind
      self.retry = retry
      self.meaning = meaning
    }
  }

  public static let table: [Int64: Row] = rest.merging(socket) { $1 }.merging(local) { $1 }

  /// Codes of REST answers and of `LOGI`.
  static let rest: [Int64: Row] = [
    400100: Row(.invalidArgument(field: "body"), "string expected [DOC]"),
    400101: Row(.invalidArgument(field: "body"), "number expected [DOC]"),
    400102: Row(.invalidArgument(field: "body"), "list expected [DOC]"),
    400103: Row(.invalidArgument(field: "body"), "JSON expected [DOC]"),
    400104: Row(.invalidArgument(field: "body"), "boolean expected [DOC]"),
    400105: Row(.invalidArgument(field: "body"), "parameter missing [DOC]"),
    400106: Row(.invalidArgument(field: "body"), "negative number not allowed [DOC]"),
    400107: Row(.invalidArgument(field: "body"), "positive number not allowed [DOC]"),
    400108: Row(.permission(), "not authorised for this resource, also: not a member [DOC]"),
    400109: Row(.invalidArgument(field: "page"), "page token expired [DOC]"),
    400110: Row(.invalidArgument(field: "body"), "value too long [DOC]"),
    400111: Row(.invalidArgument(field: "body"), "invalid value, also: bad page or changelog token [DOC]"),
    400112: Row(.invalidArgument(field: "body"), "incompatible values [DOC]"),
    400113: Row(.invalidArgument(field: "body"), "value out of range [DOC]"),
    400114: Row(.invalidArgument(field: "url"), "bad resource URL [DOC]"),
    400151: Row(.invalidArgument(field: "body"), "forbidden character [DOC]"),
    400201: Row(.notFound, "no such user, channel or message [DOC]"),
    400202: Row(.conflict, "exists already [DOC]"),
    400203: Row(.tooLarge(limit: nil, unit: .items), "too many items [DOC]"),
    400300: Row(.authentication, "user deactivated [DOC]"),
    400301: Row(.authentication, "user not found at login [DOC]"),
    400302: Row(.authentication, "access or session token invalid or expired [DOC]", retry: .afterRenewal),
    400303: Row(.authentication, "session key invalid [DOC]"),
    400304: Row(.authentication, "application not found [DOC]"),
    400305: Row(.invalidArgument(field: "user"), "user id too long [DOC]"),
    400306: Row(.permission(), "plan quota exceeded [DOC]"),
    400307: Row(.permission(), "domain not allowed [DOC]"),
    400309: Row(.authentication, "session key expired [DOC]", retry: .afterRenewal),
    400310: Row(.authentication, "session token revoked [DOC]"),
    400401: Row(.authentication, "bad Api-Token [DOC]"),
    400402: Row(.invalidArgument(field: "body"), "parameters missing [DOC]"),
    400403: Row(.invalidArgument(field: "body"), "body is not JSON [DOC]"),
    400404: Row(.invalidArgument(field: "url"), "no such endpoint [DOC]"),
    400500: Row(.rateLimited(retryAfter: nil), "too many sockets of the user [DOC]"),
    400501: Row(.rateLimited(retryAfter: nil), "too many sockets of the application [DOC]"),
    400700: Row(.permission(), "sending is blocked [DOC]"),
    400701: Row(.permission(), "blocker invites the blocked [DOC]"),
    400702: Row(.permission(), "blocked invites the blocker [DOC]"),
    400750: Row(.permission(), "banned from the channel [DOC]"),
    400751: Row(.permission(), "banned from channels of this custom type [DOC]"),
    400920: Row(.invalidArgument(field: "body"), "combination not accepted [DOC]"),
    400930: Row(.invalidArgument(field: "url"), "endpoint gone [DOC]"),
    403100: Row(.permission(), "application unavailable, HTTP 403 [DOC]"),
    409000: Row(.conflict, "conflict [SDK-iOS]"),
    503000: Row(.server, "unavailable [SDK-iOS]", retry: .after(.seconds(1))),
    500601: Row(.server, "push token registration failed [DOC]", retry: .now),
    500602: Row(.server, "push token removal failed [DOC]", retry: .now),
    500901: Row(.server, "internal error [DOC]", retry: .now),
    500910: Row(.rateLimited(retryAfter: nil), "rate limited, HTTP 429 [DOC]"),
  ]

  /// Codes of `EROR`.
  static let socket: [Int64: Row] = [
    900010: Row(.authentication, "login required [SDK-iOS]"),
    900020: Row(.permission(), "not a member [SDK-iOS]"),
    900021: Row(.permission(), "user deactivated [SDK-iOS]"),
    900022: Row(.permission(), "not the message's owner [SDK-iOS]"),
    900023: Row(.permission(), "invited, not joined [SDK-iOS]"),
    900025: Row(.invalidArgument(field: "mentions"), "bad mention [SDK-iOS]"),
    900026: Row(.invalidArgument(field: "push_option"), "bad push option [SDK-iOS]"),
    900027: Row(.invalidArgument(field: "metaarray"), "too many keys [SDK-iOS]"),
    900028: Row(.invalidArgument(field: "metaarray"), "too many values [SDK-iOS]"),
    900029: Row(.invalidArgument(field: "metaarray"), "bad or too many arrays [SDK-iOS]"),
    900030: Row(.permission(), "guests not allowed [SDK-iOS]"),
    900040: Row(.permission(), "muted in the application [SDK-iOS]"),
    900041: Row(.permission(), "muted in the channel [SDK-iOS]"),
    900050: Row(.permission(), "channel frozen [SDK-iOS]"),
    900060: Row(.permission(byHook: true), "profanity [SDK-iOS]"),
    900061: Row(.permission(byHook: true), "banned URL [SDK-iOS]"),
    900065: Row(.permission(byHook: true), "restricted domain [SDK-iOS]"),
    900066: Row(.permission(byHook: true), "moderated file [SDK-iOS]"),
    900070: Row(.notFound, "channel deleted [SDK-iOS]"),
    900080: Row(.permission(), "the receiver blocked you [SDK-iOS]"),
    900081: Row(.permission(), "the receiver is deactivated [SDK-iOS]"),
    900090: Row(.invalidArgument(field: "channel"), "wrong kind of channel [SDK-iOS]"),
    900100: Row(.permission(), "banned [SDK-iOS]"),
    900200: Row(.rateLimited(retryAfter: nil), "too many messages [SDK-iOS]"),
    900300: Row(.notFound, "no such message [SDK-iOS]"),
    900400: Row(.tooLarge(limit: nil, unit: .items), "too many participants [SDK-iOS]"),
    900500: Row(.notFound, "no such channel [SDK-iOS]"),
  ]

  /// Codes that the vendor's clients make themselves; a server never sends them, a log of a client may.
  static let local: [Int64: Row] = [
    800000: Row(.server, "unknown [SDK]"),
    800100: Row(.invalidArgument(field: "client"), "bad initialisation [SDK]"),
    800101: Row(.network(.offline), "connection required [SDK]"),
    800102: Row(.cancelled, "connection cancelled [SDK]"),
    800110: Row(.invalidArgument(field: "parameter"), "invalid parameter [SDK]"),
    800111: Row(.invalidArgument(field: "parameter"), "not supported [SDK4]"),
    800120: Row(.network(.other), "network [SDK]"),
    800121: Row(.network(.unreachable), "routing [SDK]"),
    800130: Row(.protocolViolation, "malformed data [SDK]"),
    800140: Row(.protocolViolation, "malformed error [SDK]"),
    800150: Row(.invalidArgument(field: "channel"), "wrong kind of channel [SDK]"),
    800160: Row(.rateLimited(retryAfter: .seconds(1)), "marked as read twice within a second [SDK]"),
    800170: Row(.conflict, "query in progress [SDK]"),
    800180: Row(.timeout, "acknowledgement [SDK]"),
    800190: Row(.timeout, "login [SDK]"),
    800200: Row(.network(.closed), "socket closed [SDK]"),
    800210: Row(.network(.refused), "socket failed [SDK]"),
    800220: Row(.network(.other), "request failed [SDK]"),
    800221: Row(.rateLimited(retryAfter: nil), "server overloaded [SDK4]"),
    800230: Row(.network(.other), "upload could not be cancelled [SDK]"),
    800240: Row(.cancelled, "upload or request cancelled [SDK]"),
    800250: Row(.timeout, "upload [SDK]"),
    800260: Row(.tooLarge(limit: nil, unit: .bytes), "file too large [SDK]"),
    800301: Row(.server, "timer [SDK]"),
    800302: Row(.server, "timer [SDK]"),
    800310: Row(.server, "timer, where one later client names it so [SDK4]"),
    800400: Row(.conflict, "pending [SDK]"),
    800500: Row(.authentication, "bad session token [SDK]"),
    800501: Row(.authentication, "session renewed, call again [SDK]", retry: .now),
    800502: Row(.authentication, "session not renewed [SDK]"),
    800600: Row(.cancelled, "collection disposed [SDK]"),
    800700: Row(.storage(.other), "local database [SDK]"),
  ]

  /// The contract's error for a code of the vendor.
  ///
  /// HTTP 429 is rate limiting whatever the code; `retryAfter` then goes into the kind and the advice.
  public static func error(
    code: Int64, message: String?, operation: ChatError.Operation, httpStatus: Int? = nil,
    retryAfter: Duration? = nil, detail: String = ""
  ) -> ChatError {
    let fault = ChatError.VendorFault(
      vendor: vendor, code: code == 0 ? nil : String(code), message: message, httpStatus: httpStatus)
    let row = table[code]
    var kind = row?.kind ?? kind(ofStatus: httpStatus)
    var retry = row?.retry
    if httpStatus == 429 { kind = .rateLimited(retryAfter: nil) }
    if case .rateLimited(let wait) = kind {
      kind = .rateLimited(retryAfter: retryAfter ?? wait)
      retry = nil
    }
    // A page of a gateway before the service, or a service that is down.
    if row == nil, kind == .server, let httpStatus, httpStatus >= 500 { retry = .after(.seconds(1)) }
    return ChatError(kind, operation: operation, retry: retry, vendor: fault, detail: detail)
  }

  /// For bodies without a code, and codes without a row.
  private static func kind(ofStatus status: Int?) -> ChatError.Kind {
    switch status {
    case 401: .authentication
    case 403: .permission()
    case 404: .notFound
    case 413: .tooLarge(limit: nil, unit: .bytes)
    case 429: .rateLimited(retryAfter: nil)
    default: .server
    }
  }
}

/// An error as the vendor's server says it.
public struct SendbirdFault: Error, Sendable, Hashable {
  public var code: Int64
  public var message: String
  public var httpStatus: Int

  public init(_ code: Int64, _ message: String, httpStatus: Int = 400) {
    self.code = code
    self.message = message
    self.httpStatus = httpStatus
  }

  /// nil for an object that reports no error. A 200 may carry one too.
  public init?(_ json: JSONObject, httpStatus: Int = 400) {
    guard let error = json["error"], error != .bool(false), !error.isNull else { return nil }
    self.init(json.number("code") ?? 0, json.text("message") ?? "", httpStatus: httpStatus)
  }

  public var json: JSONObject { ["error": true, "code": .int(code), "message": .string(message)] }
}
