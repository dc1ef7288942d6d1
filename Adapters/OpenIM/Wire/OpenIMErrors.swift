import ChatJSON
import UnifiedChat

/// What the vendor answers instead of data: its code, the stable name in `errMsg`, and the detail of `errDlt`.
public struct OpenIMFault: Error, Sendable, Hashable {
  public var code: Int64
  public var message: String
  public var detail: String

  public init(code: Int64, message: String, detail: String = "") {
    self.code = code
    self.message = message
    self.detail = detail
  }

  public init(_ row: OpenIMErrorTable.Row, _ detail: String = "") {
    self.init(code: row.code, message: row.name, detail: detail)
  }
}

/// Every code of the reference (§1.6) with its meaning for a program. An unknown code is `.server` with the code kept.
public enum OpenIMErrorTable {
  public struct Row: Sendable {
    public var code: Int64
    /// `errMsg`, where the server has a name.
    public var name: String
    public var kind: ChatError.Kind
    public var retry: ChatError.RetryAdvice?

    init(_ code: Int64, _ name: String, _ kind: ChatError.Kind, _ retry: ChatError.RetryAdvice? = nil) {
      self.code = code
      self.name = name
      self.kind = kind
      self.retry = retry
    }
  }

  /// Sources: codes and names from the server (reference §1.6), the client's own codes from its core (same section),
  /// kinds from the common table of meanings.
  public static let rows: [Row] = [
    Row(500, "ServerInternalError", .server, .after(.seconds(1))),
    Row(1001, "ArgsError", .invalidArgument(field: "")),
    Row(1002, "NoPermissionError", .permission()),
    Row(1003, "DuplicateKeyError", .conflict),
    Row(1004, "RecordNotFoundError", .notFound),
    Row(1050, "SecretNotChangedError", .permission()),
    Row(1101, "UserIDNotFoundError", .notFound),
    Row(1102, "RegisteredAlreadyError", .conflict),
    Row(1201, "GroupIDNotFoundError", .notFound),
    Row(1202, "GroupIDExisted", .conflict),
    Row(1203, "NotInGroupYetError", .permission()),
    Row(1204, "DismissedAlreadyError", .notFound),
    Row(1205, "", .invalidArgument(field: "groupType")),
    Row(1206, "GroupRequestHandled", .conflict),
    Row(1301, "CanNotAddYourselfError", .invalidArgument(field: "user")),
    Row(1302, "BlockedByPeer", .permission()),
    Row(1303, "NotPeersFriend", .permission()),
    Row(1304, "RelationshipAlreadyError", .conflict),
    Row(1305, "FriendRequestHandled", .conflict),
    Row(1401, "MessageHasReadDisable", .permission()),
    Row(1402, "MutedInGroup", .permission()),
    Row(1403, "MutedGroup", .permission()),
    Row(1404, "MsgAlreadyRevoke", .conflict),
    Row(1501, "TokenExpiredError", .authentication, .afterRenewal),
    Row(1502, "TokenInvalidError", .authentication),
    Row(1503, "TokenMalformedError", .authentication),
    Row(1504, "TokenNotValidYetError", .authentication),
    Row(1505, "TokenUnknownError", .authentication),
    Row(1506, "TokenKickedError", .authentication),
    Row(1507, "TokenNotExistError", .authentication),
    Row(1601, "ConnOverMaxNumLimit", .rateLimited(retryAfter: nil)),
    Row(1602, "args err, need token, sendID, platformID", .invalidArgument(field: "connection")),
    Row(1603, "PushMsgErr", .server, .after(.seconds(1))),
    Row(1604, "IOSBackgroundPushErr", .server, .after(.seconds(1))),
    Row(1701, "FileUploadedExpiredError", .notFound),
    Row(80000, "CallbackError", .permission(byHook: true)),
    Row(90002, "DatabaseError", .server, .after(.seconds(1))),
    Row(90004, "NetworkError", .server, .after(.seconds(1))),
    Row(90007, "DataError", .server),
    // Raised by the vendor's own client; they never come from a server, but apps and logs hold them.
    Row(10000, "NetworkError", .network(.other)),
    Row(10001, "NetworkTimeoutError", .timeout),
    Row(10002, "ArgsError", .invalidArgument(field: "")),
    Row(10003, "CtxDeadlineExceededError", .timeout),
    Row(10005, "UnknownCode", .server),
    Row(10006, "SdkInternalError", .server),
    Row(10007, "NoUpdateError", .conflict),
    Row(10008, "SDKNotInitError", .invalidArgument(field: "connection")),
    Row(10009, "SDKNotLoginError", .authentication),
    Row(10100, "UserIDNotFoundError", .notFound),
    Row(10101, "LoginOutError", .authentication),
    Row(10102, "LoginRepeatError", .conflict),
    Row(10200, "FileNotFoundError", .notFound),
    Row(10201, "MsgDeCompressionError", .protocolViolation),
    Row(10202, "MsgDecodeBinaryWsError", .protocolViolation),
    Row(10203, "MsgBinaryTypeNotSupportError", .protocolViolation),
    Row(10204, "MsgRepeatError", .conflict),
    Row(10205, "MsgContentTypeNotSupportError", .invalidArgument(field: "content")),
    Row(10206, "MsgHasNoSeqError", .conflict),
    Row(10207, "MsgHasDeletedError", .notFound),
    Row(10301, "NotSupportOptError", .invalidArgument(field: "channel")),
    Row(10302, "NotSupportTypeError", .invalidArgument(field: "channel")),
    Row(10303, "UnreadCountError", .server),
    Row(10400, "GroupIDNotFoundError", .notFound),
    Row(10401, "GroupTypeErr", .invalidArgument(field: "groupType")),
    // The chat business server beside the message server (login, register, verification codes).
    Row(10010, "ChatBusinessError", .invalidArgument(field: "account")),
    Row(10011, "ChatBusinessError", .invalidArgument(field: "account")),
    Row(10012, "ChatBusinessError", .invalidArgument(field: "account")),
    Row(10013, "ChatBusinessError", .invalidArgument(field: "account")),
    Row(10014, "ChatBusinessError", .invalidArgument(field: "account")),
  ]

  private static let byCode = Dictionary(rows.map { ($0.code, $0) }) { first, _ in first }

  public static func row(_ code: Int64) -> Row? { byCode[code] }

  /// The error of a fault in the vendor's answer.
  public static func error(
    _ fault: OpenIMFault, operation: ChatError.Operation, status: Int? = nil, requestID: String? = nil
  ) -> ChatError {
    let row = row(fault.code)
    var kind = row?.kind ?? .server
    if case .invalidArgument(field: "") = kind { kind = .invalidArgument(field: operation.rawValue) }
    let message = fault.message.isEmpty ? row?.name : fault.message
    return ChatError(
      kind, operation: operation, retry: row?.retry,
      vendor: ChatError.VendorFault(
        vendor: "openim", code: String(fault.code), message: message, httpStatus: status, requestID: requestID))
  }
}

extension OpenIMErrorTable.Row {
  private static func known(_ code: Int64) -> Self {
    OpenIMErrorTable.row(code) ?? OpenIMErrorTable.Row(code, "", .server)
  }

  public static let serverInternal = known(500)
  public static let arguments = known(1001)
  public static let noPermission = known(1002)
  public static let duplicateKey = known(1003)
  public static let notFound = known(1004)
  public static let userNotFound = known(1101)
  public static let registeredAlready = known(1102)
  public static let groupNotFound = known(1201)
  public static let groupExists = known(1202)
  public static let notInGroup = known(1203)
  public static let dismissed = known(1204)
  public static let groupRequestHandled = known(1206)
  public static let addedYourself = known(1301)
  public static let blocked = known(1302)
  public static let notFriends = known(1303)
  public static let alreadyFriends = known(1304)
  public static let friendRequestHandled = known(1305)
  public static let mutedMember = known(1402)
  public static let mutedGroup = known(1403)
  public static let alreadyRevoked = known(1404)
  public static let tokenExpired = known(1501)
  public static let tokenInvalid = known(1502)
  public static let tokenMalformed = known(1503)
  public static let tokenUnknown = known(1505)
  public static let tokenKicked = known(1506)
  public static let tokenMissing = known(1507)
  public static let connectionArguments = known(1602)
  public static let callback = known(80000)
  public static let networkError = known(90004)
}
