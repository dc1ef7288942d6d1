/// What went wrong, in terms that a program can act on. Act on `kind` and `retry`, never on text.
///
/// Secrets and message bodies cannot get into it: what a vendor says is cut to one line of 200 characters, and
/// `detail` is written by us.
public struct ChatError: Error, Sendable, Hashable {
  public enum Kind: Sendable, Hashable {
    /// The credential is wrong, expired or revoked; `retry` says whether a renewed one helps.
    case authentication
    /// The user may not do this. `byHook`: the app's own server refused.
    case permission(byHook: Bool = false)
    case notFound
    case invalidArgument(field: String)
    case conflict
    case rateLimited(retryAfter: Duration?)
    case tooLarge(limit: Int64?, unit: LimitUnit)
    case network(NetworkReason)
    case timeout
    /// The vendor's server failed, or sent a code that no table knows.
    case server
    /// The server sent something that the protocol does not allow.
    case protocolViolation
    case storage(StorageReason)
    /// The vendor cannot do this; thrown before any byte leaves.
    case unsupported(Capability)
    case cancelled
  }

  public enum LimitUnit: String, Sendable, Hashable { case bytes, characters, items }
  public enum NetworkReason: String, Sendable, Hashable { case unreachable, refused, closed, tls, offline, other }
  public enum StorageReason: String, Sendable, Hashable { case full, corrupt, denied, busy, newerVersion, other }

  public enum RetryAdvice: Sendable, Hashable {
    case never, now
    case after(Duration)
    /// Once the credential has been renewed.
    case afterRenewal
  }

  /// What the vendor itself said.
  public struct VendorFault: Sendable, Hashable {
    public var vendor: VendorName
    /// Exactly as sent.
    public var code: String?
    public var message: String?
    public var httpStatus: Int?
    public var requestID: String?

    public init(
      vendor: VendorName, code: String? = nil, message: String? = nil, httpStatus: Int? = nil, requestID: String? = nil
    ) {
      self.vendor = vendor
      self.code = code
      self.message = message.map(Self.oneLine)
      self.httpStatus = httpStatus
      self.requestID = requestID
    }

    static func oneLine(_ text: String) -> String {
      // By scalars: one character may be of any length. Control characters would act on a terminal.
      var line = String.UnicodeScalarView()
      for scalar in text.unicodeScalars.prefix(200) {
        let isControl = scalar.properties.generalCategory == .control || scalar.value == 0x2028 || scalar.value == 0x2029
        line.append(isControl ? " " : scalar)
      }
      return String(line)
    }
  }

  public enum Operation: String, Sendable, Hashable, CaseIterable {
    case connect, disconnect, renewCredential, registerPush, fetchUser, updateUser, presence, block
    case createChannel, fetchChannel, listChannels, updateChannel, deleteChannel, hideChannel, pinChannel
    case join, leave, invite, removeMember, listMembers, setRole, mute, ban, freeze
    case markRead, typing, unread
    case send, edit, recall, deleteMessage, react, history, fetchMessage, search, clearHistory, changelog
    case upload, download
    case readSource, writeDestination, archive, verify, plan
    case cache, configuration, emulate, encode, decode
  }

  public var kind: Kind
  public var operation: Operation
  public var retry: RetryAdvice
  public var vendor: VendorFault?
  /// One line of ours: what, where, and the mend. No secret, no body.
  public var detail: String

  public init(
    _ kind: Kind, operation: Operation, retry: RetryAdvice? = nil, vendor: VendorFault? = nil, detail: String = ""
  ) {
    self.kind = kind
    self.operation = operation
    self.retry = retry ?? kind.usualAdvice
    self.vendor = vendor
    self.detail = detail
  }

  public static func unsupported(_ capability: Capability, operation: Operation) -> ChatError {
    ChatError(
      .unsupported(capability), operation: operation, detail: "this vendor has no \(capability.rawValue)")
  }

  public static func cancelled(_ operation: Operation) -> ChatError { ChatError(.cancelled, operation: operation) }

  public var isRetryable: Bool { retry != .never }
}

extension ChatError.Kind {
  /// What to advise where a vendor's table does not say.
  public var usualAdvice: ChatError.RetryAdvice {
    switch self {
    case .rateLimited(let wait): .after(wait ?? .seconds(1))
    case .network, .timeout: .now
    case .storage(.busy): .now
    default: .never
    }
  }

  /// The case without its payload, as it stands in reports: `rateLimited`.
  public var name: String {
    switch self {
    case .authentication: "authentication"
    case .permission: "permission"
    case .notFound: "notFound"
    case .invalidArgument: "invalidArgument"
    case .conflict: "conflict"
    case .rateLimited: "rateLimited"
    case .tooLarge: "tooLarge"
    case .network: "network"
    case .timeout: "timeout"
    case .server: "server"
    case .protocolViolation: "protocolViolation"
    case .storage: "storage"
    case .unsupported: "unsupported"
    case .cancelled: "cancelled"
    }
  }
}

extension ChatError: CustomStringConvertible {
  public var description: String {
    var parts = ["\(operation.rawValue) failed: \(kind.name)"]
    switch kind {
    case .invalidArgument(let field): parts[0] += "(\(field))"
    case .unsupported(let capability): parts[0] += "(\(capability.rawValue))"
    case .network(let reason): parts[0] += "(\(reason.rawValue))"
    case .storage(let reason): parts[0] += "(\(reason.rawValue))"
    case .tooLarge(let limit?, let unit): parts[0] += "(limit \(limit) \(unit.rawValue))"
    default: break
    }
    if !detail.isEmpty { parts.append(detail) }
    if let vendor {
      let code = [vendor.code.map { "code \(VendorFault.oneLine($0))" }, vendor.httpStatus.map { "HTTP \($0)" }].compactMap(\.self)
      parts.append("\(vendor.vendor) \(code.joined(separator: ", "))" + (vendor.message.map { " \"\($0)\"" } ?? ""))
    }
    return parts.joined(separator: "; ")
  }
}
