import ChatJSON
import ChatTransport
import OpenIMWire

/// The vendor's server (gateway, REST, object store) as one deterministic machine.
///
/// One base URL serves all three: a WebSocket on any path, REST under its paths, stored bytes under `/object/` and
/// `/emulated-store/`. Known to differ from a real server: what a queue would do some milliseconds later (storing,
/// pushing) happens at once, and the answer of a send still comes before the push.
public final class OpenIMEmulator: VendorEmulator {
  public static let vendor = "openim"

  public var baseURL: String
  let options: EmulatorOptions
  let secret: String
  let admin: String
  /// How long a connection may be silent, ms; 0: for ever.
  let idleTimeout: Int64
  let loginPolicy: OpenIMLoginPolicy
  /// Tokens of one platform that stay good where the policy kicks nobody.
  let tokensPerPlatform: Int
  /// Whether single chats are for friends only.
  let friendsOnly: Bool

  var users: [OpenIMKey: OpenIMUser] = [:]
  var userOrder: [String] = []
  var groups: [OpenIMKey: OpenIMGroup] = [:]
  var groupOrder: [String] = []
  var logs: [OpenIMKey: OpenIMConversationLog] = [:]
  var tokens = OpenIMTokenStore()
  var connections: [EmulatorConnectionID: OpenIMConnection] = [:]
  var objects = OpenIMObjectStore()
  var calls: [String: Int] = [:]
  /// Channels of loaded records by their original ids.
  var loadedChannels: [OpenIMKey: OpenIMLoadedChannel] = [:]
  var idleTimerIsSet = false
  let webhooks: OpenIMWebhooks
  var waitingCalls: [EmulatorCall] = []
  var pendingSends: [UInt64: OpenIMPendingSend] = [:]
  var lastCall: UInt64 = 0

  /// `limits == .real`: 51,200 bytes a frame, 1,000 elements a list, legal user ids only.
  var limitsAreReal: Bool { options.limits == .real }
  static let maximumFrame = 51_200
  static let maximumList = 1000

  public init(options: EmulatorOptions) throws(EmulatorError) {
    let settings = try OpenIMSettings(options.settings)
    self.options = options
    baseURL = options.baseURL
    secret = options.adminSecret
    admin = settings.adminUserID
    loginPolicy = settings.loginPolicy
    tokensPerPlatform = settings.tokensPerPlatform
    friendsOnly = settings.friendsOnly
    webhooks = settings.webhooks
    idleTimeout = settings.idleTimeout ?? (options.limits == .real ? 30_000 : 0)
    var context = EmulatorContext(now: 0, random: EmulatorRandom(seed: options.seed ^ 0x6F70_656E_696D))
    addUser(admin, nickname: admin, managerLevel: 2, context: &context)
    for (id, token) in options.users {
      if users[OpenIMKey(id)] == nil { addUser(id, nickname: id, context: &context) }
      tokens.preset(token, for: id)
    }
  }

  public func handle(_ input: EmulatorInput, context: inout EmulatorContext) -> [EmulatorOutput] {
    var step = OpenIMStep(context: context)
    switch input {
    case .http(let id, let request): answer(id, request, &step)
    case .open(let id, let request): open(id, request, &step)
    case .message(let id, let message): receive(id, message, &step)
    case .ping(let id): touch(id, step.now)
    case .closed(let id, _): close(id, &step)
    case .timer(let name): if name == Self.idleTimer { cutIdle(&step) }
    }
    context = step.context
    return step.outputs
  }

  @discardableResult
  func addUser(
    _ id: String, nickname: String, faceURL: String = "", ex: String = "", managerLevel: Int64 = 0,
    context: inout EmulatorContext
  ) -> OpenIMUser {
    let user = OpenIMUser(
      id: id, nickname: nickname, faceURL: faceURL, ex: ex, createTime: context.now, managerLevel: managerLevel,
      versionIDs: (context.hex(24), context.hex(24), context.hex(24), context.hex(24)))
    users[OpenIMKey(id)] = user
    userOrder.append(id)
    return user
  }

  func user(_ id: String) -> OpenIMUser? { users[OpenIMKey(id)] }
  func group(_ id: String) -> OpenIMGroup? { groups[OpenIMKey(id)] }

  func log(_ id: String) -> OpenIMConversationLog {
    let key = OpenIMKey(id)
    if let log = logs[key] { return log }
    let log = OpenIMConversationLog(id: id)
    logs[key] = log
    return log
  }

  func count(_ endpoint: String) { calls[endpoint, default: 0] += 1 }

  // MARK: Control

  public func perform(
    _ action: EmulatorAction, context: inout EmulatorContext
  ) throws(EmulatorError) -> [EmulatorOutput] {
    var step = OpenIMStep(context: context)
    switch action {
    case .kick(let user), .kickByAdmin(let user):
      tokens.setAll(.kicked, of: user)
      kick(user, where: { _ in true }, &step)
    case .expireCredential(let user): tokens.setAll(.expired, of: user)
    case .revokeCredential(let user):
      tokens.removeAll(of: user)
      kick(user, where: { _ in true }, &step)
    case .disableUser, .goaway:
      throw EmulatorError(.unsupported, "openim: the server has no such action")
    }
    context = step.context
    return step.outputs
  }
}

/// One input on its way: the time, the randomness, and what comes out.
struct OpenIMStep {
  var context: EmulatorContext
  var outputs: [EmulatorOutput] = []
  /// Of the request that is handled; pushes that it causes carry it.
  var operationID = ""
  /// The REST exchange that is handled; nil once its answer is left for later.
  var exchange: (id: EmulatorExchangeID, request: HTTPRequest)?

  init(context: EmulatorContext) { self.context = context }

  var now: Int64 { context.now }
}

extension EmulatorContext {
  /// `count` random hex digits.
  mutating func hex(_ count: Int) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    text.reserveCapacity(count)
    while text.count < count {
      var word = random.next()
      for _ in 0..<min(16, count - text.count) {
        text.append(digits[Int(word & 15)])
        word >>= 4
      }
    }
    return String(decoding: text, as: UTF8.self)
  }
}

/// The switches that this vendor adds.
struct OpenIMSettings {
  var adminUserID = OpenIMProfile.defaultAdmin
  var idleTimeout: Int64?
  var loginPolicy = OpenIMLoginPolicy.onePerPlatform
  var tokensPerPlatform = 30
  var friendsOnly = false
  var webhooks = OpenIMWebhooks()

  init(_ settings: [String: JSONValue]) throws(EmulatorError) {
    for (name, value) in settings.sorted(by: { $0.key < $1.key }) {
      switch name {
      case "adminUserID":
        guard let id = value.string, !id.isEmpty else {
          throw EmulatorError(.invalidOption, "openim: adminUserID must be a user id")
        }
        adminUserID = id
      case "idleTimeout":
        guard let timeout = value.int, timeout >= 0 else {
          throw EmulatorError(.invalidOption, "openim: idleTimeout must be milliseconds, 0 for none")
        }
        idleTimeout = timeout
      case "multiLogin":
        guard let policy = value.int.flatMap({ OpenIMLoginPolicy(rawValue: $0) }) else {
          throw EmulatorError(.invalidOption, "openim: multiLogin must be 0, 1, 4 or 5")
        }
        loginPolicy = policy
      case "maxNumOneEnd":
        guard let count = value.int.flatMap({ Int(exactly: $0) }), count >= 1 else {
          throw EmulatorError(.invalidOption, "openim: maxNumOneEnd must be 1 or more")
        }
        tokensPerPlatform = count
      case "friendVerify":
        guard let isOn = value.bool else {
          throw EmulatorError(.invalidOption, "openim: friendVerify must be true or false")
        }
        friendsOnly = isOn
      case "webhookURL": webhooks.url = try Self.webhookURL(value)
      case "webhooks": webhooks.enabled = try Self.hooks(value)
      case "webhookFailedContinue":
        guard let isOn = value.bool else {
          throw EmulatorError(.invalidOption, "openim: webhookFailedContinue must be true or false")
        }
        webhooks.failedContinue = isOn
      default:
        throw EmulatorError(
          .invalidOption,
          "openim: no setting is called \"\(name)\"; known ones: adminUserID, friendVerify, idleTimeout, maxNumOneEnd, "
            + "multiLogin, webhookFailedContinue, webhookURL, webhooks")
      }
    }
  }

  /// Only this machine is called.
  private static func webhookURL(_ value: JSONValue) throws(EmulatorError) -> String {
    let hosts = ["http://127.0.0.1", "http://localhost", "http://[::1]"]
    guard let url = value.string,
      hosts.contains(where: { url == $0 || url.hasPrefix($0 + ":") || url.hasPrefix($0 + "/") })
    else { throw EmulatorError(.invalidOption, "openim: webhookURL must be an http URL of this machine") }
    return url.hasSuffix("/") ? String(url.dropLast()) : url
  }

  private static func hooks(_ value: JSONValue) throws(EmulatorError) -> Set<OpenIMWebhooks.Hook> {
    let names = OpenIMWebhooks.Hook.allCases.map(\.rawValue).joined(separator: ", ")
    let hooks = (value.array ?? []).map { $0.string.flatMap { OpenIMWebhooks.Hook(rawValue: $0) } }
    guard value.array != nil, !hooks.contains(nil) else {
      throw EmulatorError(.invalidOption, "openim: webhooks must be a list of: \(names)")
    }
    return Set(hooks.compactMap(\.self))
  }
}
