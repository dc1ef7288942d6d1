import UnifiedChat

/// What a code of LeanCloud means to a program. Codes come as WebSocket close codes, in `error` and `ack` frames, in a
/// pushed `session/closed`, and as `code` of a REST body.
///
/// - Source: wire reference §11 (names), conformance model §1.15 (kinds); rows that neither names are our reading of the
///   name.
public struct LeanCloudErrorRow: Sendable, Hashable {
  public var name: String
  public var kind: ChatError.Kind
  /// nil: what is usual for the kind.
  public var advice: ChatError.RetryAdvice?
}

public enum LeanCloudErrors {
  public static let vendor: VendorName = "leancloud"

  /// The largest command, in bytes, before the server closes with 4109.
  public static let maximumFrameBytes = 5120

  /// The row of `code`; an unknown one is `.server`, not to be tried again.
  public static func row(_ code: Int) -> LeanCloudErrorRow {
    realtime[code] ?? storage[code] ?? LeanCloudErrorRow(name: "UNKNOWN", kind: .server, advice: .never)
  }

  public static func error(
    code: Int, reason: String? = nil, status: Int? = nil, operation: ChatError.Operation, detail: String = ""
  ) -> ChatError {
    let row = row(code)
    return ChatError(
      row.kind, operation: operation, retry: row.advice,
      vendor: ChatError.VendorFault(
        vendor: vendor, code: String(code), message: reason ?? row.name, httpStatus: status),
      detail: detail)
  }

  /// Every code of the realtime service.
  public static let realtime: [Int: LeanCloudErrorRow] = table([
    (1006, "ABNORMAL", .network(.closed), nil),
    (4100, "APP_NOT_AVAILABLE", .authentication, nil),
    (4101, "DUPLICATED_LOGIN", .conflict, nil),
    (4102, "SIGNATURE_FAILED", .authentication, nil),
    (4103, "INVALID_LOGIN", .invalidArgument(field: "userID"), nil),
    (4105, "SESSION_REQUIRED", .authentication, .now),
    (4106, "BLACKLISTED", .permission(), nil),
    (4107, "READ_TIMEOUT", .timeout, nil),
    (4108, "LOGIN_TIMEOUT", .timeout, nil),
    (4109, "FRAME_TOO_LONG", .tooLarge(limit: Int64(maximumFrameBytes), unit: .bytes), nil),
    (4110, "INVALID_ORIGIN", .permission(), nil),
    (4111, "SESSION_CONFLICT", .conflict, nil),
    (4112, "SESSION_TOKEN_EXPIRED", .authentication, .afterRenewal),
    (4113, "APP_QUOTA_EXCEEDED", .rateLimited(retryAfter: nil), nil),
    (4114, "UNPARSEABLE_RAW_MESSAGE", .protocolViolation, nil),
    (4115, "KICKED_BY_APP", .authentication, nil),
    (4116, "MESSAGE_SENT_QUOTA_EXCEEDED", .rateLimited(retryAfter: .seconds(60)), nil),
    (4117, "UNBIND_INSTALLATION_FAILED", .server, .now),
    (4200, "INTERNAL_ERROR", .server, .now),
    (4201, "SEND_MESSAGE_TIMEOUT", .timeout, nil),
    (4300, "CONVERSATION_INTERNAL_ERROR", .server, .now),
    (4301, "CONVERSATION_API_FAILED", .server, .now),
    (4302, "CONVERSATION_SIGNATURE_FAILED", .authentication, nil),
    (4303, "CONVERSATION_NOT_FOUND", .notFound, nil),
    (4304, "CONVERSATION_FULL", .tooLarge(limit: 500, unit: .items), nil),
    (4305, "CONVERSATION_REJECTED_BY_APP", .permission(byHook: true), nil),
    (4306, "CONVERSATION_UPDATE_FAILED", .server, .now),
    (4307, "CONVERSATION_READ_ONLY", .permission(), nil),
    (4308, "CONVERSATION_NOT_ALLOWED", .permission(), nil),
    (4309, "CONVERSATION_UPDATE_REJECTED", .permission(byHook: true), nil),
    (4310, "CONVERSATION_QUERY_FAILED", .server, .now),
    (4311, "CONVERSATION_LOG_FAILED", .server, .now),
    (4312, "CONVERSATION_LOG_REJECTED", .permission(), nil),
    (4313, "SYSTEM_CONVERSATION_REQUIRED", .invalidArgument(field: "channel"), nil),
    (4314, "NORMAL_CONVERSATION_REQUIRED", .invalidArgument(field: "channel"), nil),
    (4315, "CONVERSATION_BLACKLISTED", .permission(), nil),
    (4316, "TRANSIENT_CONVERSATION_REQUIRED", .invalidArgument(field: "channel"), nil),
    (4317, "CONVERSATION_MEMBERSHIP_REQUIRED", .permission(), nil),
    (4318, "CONVERSATION_API_QUOTA_EXCEEDED", .rateLimited(retryAfter: .seconds(60)), nil),
    (4320, "CONVERSATION_OPERATION_UNAUTHORIZED", .permission(), nil),
    (4321, "UNKNOWN_CONVERSATION_ROLE", .invalidArgument(field: "role"), nil),
    (4322, "CONVERSATION_MEMBER_IN_ROLE_FULL", .tooLarge(limit: nil, unit: .items), nil),
    (4323, "TEMPORARY_CONVERSATION_EXPIRED", .notFound, nil),
    (4324, "CONVERSATION_NEED_OWNER", .permission(), nil),
    (4325, "CONVERSATION_MEMBER_INFO_FEATURE_DISABLED", .permission(), nil),
    (4401, "INVALID_MESSAGING_TARGET", .notFound, nil),
    (4402, "MESSAGE_REJECTED_BY_APP", .permission(byHook: true), nil),
    (4403, "MESSAGE_OWNERSHIP_REQUIRED", .permission(), nil),
    (4404, "MESSAGE_NOT_FOUND", .notFound, nil),
    (4405, "MESSAGE_UPDATE_REJECTED_BY_APP", .permission(byHook: true), nil),
    (4406, "MESSAGE_EDIT_DISABLED", .permission(), nil),
    (4407, "MESSAGE_RECALL_DISABLED", .permission(), nil),
    (4408, "MESSAGE_MODIFIED_BY_CENSORSHIP", .permission(byHook: true), nil),
    (4543, "BLACKLIST_FULL", .tooLarge(limit: nil, unit: .items), nil),
    (4544, "BLACKLIST_FEATURE_DISABLED", .permission(), nil),
    (4546, "BLACKLIST_SIGNATURE_FAILED", .authentication, nil),
    (4548, "BLOCKED_BY_CONV", .permission(), nil),
    (4561, "SILIENCED_MEMBER_LIST_FULL", .tooLarge(limit: nil, unit: .items), nil),
    (4563, "SILIENCED", .permission(), nil),
    (5130, "OWNER_PROMOTION_NOT_ALLOWED", .permission(), nil),
  ])

  /// Every code of the storage service and REST.
  public static let storage: [Int: LeanCloudErrorRow] = table(
    [
      (1, "INTERNAL_OR_PARAMETER", .invalidArgument(field: "request"), nil),
      (100, "CONNECTION_FAILED", .network(.other), nil),
      (101, "OBJECT_NOT_FOUND", .notFound, nil),
      (103, "INVALID_CLASS_NAME", .invalidArgument(field: "class"), nil),
      (104, "MISSING_OBJECT_ID", .invalidArgument(field: "objectId"), nil),
      (105, "INVALID_KEY_NAME", .invalidArgument(field: "key"), nil),
      (106, "INVALID_POINTER", .invalidArgument(field: "pointer"), nil),
      (107, "INVALID_JSON", .invalidArgument(field: "json"), nil),
      (108, "INTERNAL_ONLY", .permission(), nil),
      (109, "CLASS_NOT_SHARED", .permission(), nil),
      (111, "INVALID_FIELD_TYPE", .invalidArgument(field: "type"), nil),
      (112, "INVALID_CHANNEL", .invalidArgument(field: "channel"), nil),
      (113, "MISSING_KEY", .invalidArgument(field: "key"), nil),
      (114, "INVALID_DEVICE_TOKEN", .invalidArgument(field: "deviceToken"), nil),
      (116, "OBJECT_TOO_LARGE", .tooLarge(limit: 16 << 20, unit: .bytes), nil),
      (117, "READ_ONLY_KEY", .permission(), nil),
      (119, "NOT_ALLOWED_FROM_CLIENTS", .permission(), nil),
      (120, "CACHE_MISS", .notFound, nil),
      (121, "INVALID_NESTED_KEY", .invalidArgument(field: "key"), nil),
      (122, "INVALID_FILE_NAME", .invalidArgument(field: "name"), nil),
      (123, "INVALID_ACL", .invalidArgument(field: "ACL"), nil),
      (124, "TIMEOUT", .timeout, nil),
      (125, "INVALID_EMAIL", .invalidArgument(field: "email"), nil),
      (126, "INVALID_USER_ID", .invalidArgument(field: "userID"), nil),
      (127, "INVALID_PHONE", .invalidArgument(field: "phone"), nil),
      (128, "INVALID_RELATION", .invalidArgument(field: "relation"), nil),
      (137, "UNIQUE_VIOLATED", .conflict, nil),
      (139, "INVALID_ROLE", .invalidArgument(field: "role"), nil),
      (140, "QUOTA_EXCEEDED", .rateLimited(retryAfter: nil), nil),
      (141, "ENGINE_TIMEOUT", .timeout, nil),
      (142, "REJECTED_BY_HOOK", .permission(byHook: true), nil),
      (145, "NO_LOCAL_STORAGE", .server, nil),
      (150, "FILE_CONVERSION_FAILED", .server, nil),
      (154, "THRESHOLD_EXCEEDED", .rateLimited(retryAfter: nil), nil),
      (160, "INSUFFICIENT_BALANCE", .permission(), nil),
      (200, "USERNAME_MISSING", .invalidArgument(field: "username"), nil),
      (201, "PASSWORD_MISSING", .invalidArgument(field: "password"), nil),
      (202, "USERNAME_TAKEN", .conflict, nil),
      (203, "EMAIL_TAKEN", .conflict, nil),
      (204, "EMAIL_MISSING", .invalidArgument(field: "email"), nil),
      (205, "EMAIL_NOT_FOUND", .notFound, nil),
      (206, "SESSION_MISSING", .authentication, nil),
      (207, "MUST_SIGN_UP", .authentication, nil),
      (208, "ACCOUNT_LINKED", .conflict, nil),
      (210, "PASSWORD_MISMATCH", .authentication, nil),
      (211, "USER_NOT_FOUND", .notFound, nil),
      (212, "PHONE_MISSING", .invalidArgument(field: "phone"), nil),
      (213, "PHONE_NOT_FOUND", .notFound, nil),
      (214, "PHONE_TAKEN", .conflict, nil),
      (215, "PHONE_UNVERIFIED", .permission(), nil),
      (216, "EMAIL_UNVERIFIED", .permission(), nil),
      (217, "INVALID_USERNAME", .invalidArgument(field: "username"), nil),
      (218, "INVALID_PASSWORD", .invalidArgument(field: "password"), nil),
      (219, "ACCOUNT_LOCKED", .authentication, nil),
      (221, "INVALID_OPEN_ID", .authentication, nil),
      (250, "LINKED_ID_MISSING", .invalidArgument(field: "authData"), nil),
      (251, "INVALID_LINKED_SESSION", .authentication, nil),
      (252, "UNSUPPORTED_SERVICE", .invalidArgument(field: "authData"), nil),
      (300, "QUERY_FAILED", .server, nil),
      (301, "QUERY_TOO_SLOW", .timeout, nil),
      (302, "QUERY_REFUSED", .invalidArgument(field: "where"), nil),
      (303, "DATABASE_READ_ONLY", .server, .now),
      (304, "DATABASE_BUSY", .server, .now),
      (305, "DATABASE_CONFLICT", .conflict, nil),
      (401, "UNAUTHORIZED", .authentication, nil),
      (403, "FORBIDDEN", .permission(), nil),
      (413, "PAYLOAD_TOO_LARGE", .tooLarge(limit: nil, unit: .bytes), nil),
      (429, "TOO_MANY_REQUESTS", .rateLimited(retryAfter: nil), nil),
      (430, "UPLOAD_RATE", .rateLimited(retryAfter: nil), nil),
      (431, "HOOK_RATE", .rateLimited(retryAfter: nil), nil),
      (502, "BAD_GATEWAY", .server, .now),
      (503, "UNAVAILABLE", .server, .now),
      (504, "APP_ARCHIVED", .permission(), nil),
      (511, "NETWORK_AUTHENTICATION", .authentication, nil),
      (524, "UPSTREAM_TIMEOUT", .timeout, nil),
      (529, "OVERLOADED", .rateLimited(retryAfter: nil), nil),
      (700, "UNKNOWN_QUERY_KEY", .invalidArgument(field: "where"), nil),
    ] + (600...608).map { ($0, "SMS", .server, nil) })

  private typealias Line = (Int, String, ChatError.Kind, ChatError.RetryAdvice?)

  private static func table(_ lines: [Line]) -> [Int: LeanCloudErrorRow] {
    Dictionary(
      lines.map { ($0.0, LeanCloudErrorRow(name: $0.1, kind: $0.2, advice: $0.3)) },
      uniquingKeysWith: { first, _ in first })
  }
}
