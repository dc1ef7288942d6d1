import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

/// Sendbird's server for v3 clients and the Platform API, as a deterministic machine.
///
/// Settings: `dedupRequestID` (a second send with a known `req_id` answers with the first message; default false, since
/// the vendor does not say), `autoCreateUsers` (an unknown user is created at login; default true),
/// `historyForNewMembers` (who joins sees older messages; default true), `autoAcceptInvitations` (default true),
/// `hugeGap` (messages that make a gap huge; default 300), `maxRequestsPerSecond` and `maxMessagesPerSecond` (rates that
/// answer 500910 and 900200; default: none, since the vendor's depend on the plan), `webhookURL` (a URL of this machine
/// that is told what happens; default: none), `webhooks` (which categories, without the kind of channel; default: all),
/// `pushURL` (a URL of this machine that plays the push services; default: none), `pushWhileOnline` (push also to those
/// who have a socket; default false), `requireFileAuth` (files of messages are given only with the key of a session or
/// of the application; default false).
public final class SendbirdEmulator: VendorEmulator {
  public static let vendor = "sendbird"
  public var baseURL: String

  let options: EmulatorOptions
  let settings: EmulatorSettings
  var people: [UserID: Person] = [:]
  /// By `order`.
  var peopleInOrder: [Person] = []
  var rooms: [ChannelID: Room] = [:]
  var distinctRooms: [Key: ChannelID] = [:]
  var sessions: [Key: Session] = [:]
  var connections: [EmulatorConnectionID: Connection] = [:]
  var connectionsByUser: [UserID: [EmulatorConnectionID]] = [:]
  var files: [String: StoredFile] = [:]
  var exports: [JSONValue] = []
  var announcements: [JSONObject] = []
  var scheduled: [JSONObject] = []
  var reportLogs: [JSONValue] = []
  /// Bans and mutes of all channels of a custom type.
  var typeRestrictions: [Key: [UserID: Restriction]] = [:]
  /// Open channels that were deleted: entering one is another error than entering what never was.
  var deletedRooms: Set<ChannelID> = []
  /// Ids that records gave to messages, by channel.
  var loadedIDs: [Key: Int64] = [:]
  /// Channels whose unread numbers are not counted yet.
  var staleRooms: Set<ChannelID> = []
  var nextMessageID: Int64 = 7_000_000_000
  var nextNumber: Int64 = 100_000_000
  /// Counts every change that a changelog shows.
  var changeNumber: Int64 = 0
  var calls: [String: Int] = [:]
  var rates: [String: (second: Int64, count: Int)] = [:]
  var webhooks: SendbirdWebhooks { settings.webhooks }
  var waitingCalls: [EmulatorCall] = []
  var pendingCalls: [UInt64: SendbirdPendingCall] = [:]
  var lastCall: UInt64 = 0

  // Of the input at hand.
  var now: Int64 = 0
  var random = EmulatorRandom(seed: 0)
  var outputs: [EmulatorOutput] = []
  var needsTimers = false

  public init(options: EmulatorOptions) throws(EmulatorError) {
    self.options = options
    settings = try EmulatorSettings(options.settings)
    baseURL = options.baseURL
    for user in options.users {
      let person = addPerson(UserID(user.id))
      person.nickname = user.id
      person.accessToken = user.token.isEmpty ? nil : user.token
    }
  }

  public func handle(_ input: EmulatorInput, context: inout EmulatorContext) -> [EmulatorOutput] {
    borrow(&context) {
      switch input {
      case .http(let id, let request): outputs.append(.respond(id, respond(to: request)))
      case .open(let id, let request): open(id, request)
      case .message(let id, .text(let text)): receive(text, from: id)
      case .message, .ping: break
      case .timer(let name): timerIsDue(name)
      case .closed(let id, _): disconnected(id)
      }
    }
  }

  /// Timers are no part of a snapshot: whoever restored one sets them at the first input.
  private func setTimers() {
    needsTimers = false
    for item in announcements where item.text("status") == "scheduled" {
      guard let id = item.text("unique_id"), let at = item.number("scheduled_at") else { continue }
      outputs.append(.setTimer(Self.announcementTimer + id, dueAt: at))
    }
    for job in scheduled where job.text("status") == "scheduled" {
      guard let id = job.number("scheduled_id"), let zone = job.text("scheduled_timezone"),
        let at = job.text("scheduled_dt").flatMap({ Self.time($0, zone: zone) })
      else { continue }
      outputs.append(.setTimer(Self.scheduleTimer + String(id), dueAt: at))
    }
  }

  private func timerIsDue(_ name: String) {
    if name.hasPrefix(Self.announcementTimer) {
      announcementIsDue(String(name.dropFirst(Self.announcementTimer.count)))
    } else if name.hasPrefix(Self.scheduleTimer) {
      scheduledMessageIsDue(String(name.dropFirst(Self.scheduleTimer.count)))
    }
  }

  /// Lends time and randomness to `body` and collects what it puts out.
  func borrow(_ context: inout EmulatorContext, _ body: () -> Void) -> [EmulatorOutput] {
    now = context.now
    random = context.random
    if !staleRooms.isEmpty { recountStaleRooms() }
    if needsTimers { setTimers() }
    body()
    context.random = random
    defer { outputs = [] }
    return outputs
  }

  public func perform(
    _ action: EmulatorAction, context: inout EmulatorContext
  ) throws(EmulatorError) -> [EmulatorOutput] {
    switch action {
    case .kick: throw EmulatorError(.unsupported, "sendbird lets a user have several sessions; kick by admin instead")
    case .goaway: throw EmulatorError(.unsupported, "sendbird v3 has no such frame")
    case .kickByAdmin(let user), .revokeCredential(let user):
      return borrow(&context) { endSessions(of: UserID(user), code: 400310) }
    case .expireCredential(let user): return borrow(&context) { expireToken(of: UserID(user)) }
    case .disableUser(let user):
      return borrow(&context) {
        guard let person = people[UserID(user)] else { return }
        person.isActive = false
        endSessions(of: person.id, code: 400300)
      }
    }
  }

  // MARK: Small things

  func message(id: Int64) -> Int64 {
    nextMessageID = max(nextMessageID, id &+ 1)
    return id
  }

  func newMessageID() -> Int64 {
    nextMessageID &+= 1
    return nextMessageID
  }

  func newNumber() -> Int64 {
    nextNumber &+= 1
    return nextNumber
  }

  func newChange() -> Int64 {
    changeNumber &+= 1
    return changeNumber
  }

  /// `count` hex digits.
  func hex(_ count: Int) -> String {
    var text = ""
    while text.utf8.count < count {
      let digits = String(random.next(), radix: 16)
      text += String(repeating: "0", count: max(0, 16 - digits.utf8.count)) + digits
    }
    return String(text.prefix(count))
  }

  @discardableResult
  func addPerson(_ id: UserID) -> Person {
    if let person = people[id] { return person }
    let person = Person(id: id, order: newNumber(), createdAt: now / 1000)
    people[id] = person
    peopleInOrder.append(person)
    return person
  }

  var hasRealLimits: Bool { options.limits == .real }
}

/// What `EmulatorOptions.settings` may say.
struct EmulatorSettings {
  var dedupRequestID = false
  var autoCreateUsers = true
  var historyForNewMembers = true
  var autoAcceptInvitations = true
  var hugeGap: Int64 = 300
  var maxRequestsPerSecond: Int64?
  var maxMessagesPerSecond: Int64?
  var webhooks = SendbirdWebhooks()
  /// "" for none.
  var pushURL = ""
  var pushWhileOnline = false
  var requireFileAuth = false

  init(_ settings: [String: JSONValue]) throws(EmulatorError) {
    for (name, value) in settings.sorted(by: { $0.key < $1.key }) {
      switch name {
      case "dedupRequestID": dedupRequestID = try Self.bool(name, value)
      case "autoCreateUsers": autoCreateUsers = try Self.bool(name, value)
      case "historyForNewMembers": historyForNewMembers = try Self.bool(name, value)
      case "autoAcceptInvitations": autoAcceptInvitations = try Self.bool(name, value)
      case "hugeGap": hugeGap = try Self.positive(name, value)
      case "maxRequestsPerSecond": maxRequestsPerSecond = try Self.positive(name, value)
      case "maxMessagesPerSecond": maxMessagesPerSecond = try Self.positive(name, value)
      case "webhookURL": webhooks.url = try Self.ownURL(name, value)
      case "pushURL": pushURL = try Self.ownURL(name, value)
      case "pushWhileOnline": pushWhileOnline = try Self.bool(name, value)
      case "requireFileAuth": requireFileAuth = try Self.bool(name, value)
      case "webhooks": webhooks.categories = try Self.categories(value)
      default:
        throw EmulatorError(
          .invalidOption,
          "setting \(name) is unknown; sendbird has dedupRequestID, autoCreateUsers, historyForNewMembers, "
            + "autoAcceptInvitations, hugeGap, maxRequestsPerSecond, maxMessagesPerSecond, webhookURL, webhooks, pushURL, "
            + "pushWhileOnline, requireFileAuth")
      }
    }
  }

  /// Only this machine is called.
  private static func ownURL(_ name: String, _ value: JSONValue) throws(EmulatorError) -> String {
    let hosts = ["http://127.0.0.1", "http://localhost", "http://[::1]"]
    guard let url = value.string,
      hosts.contains(where: { url == $0 || url.hasPrefix($0 + ":") || url.hasPrefix($0 + "/") })
    else { throw EmulatorError(.invalidOption, "setting \(name) must be an http URL of this machine") }
    return url
  }

  private static func categories(_ value: JSONValue) throws(EmulatorError) -> Set<SendbirdWebhooks.Category> {
    let found = (value.array ?? []).map { $0.string.flatMap { SendbirdWebhooks.Category(rawValue: $0) } }
    guard value.array != nil, !found.contains(nil) else {
      let names = SendbirdWebhooks.Category.allCases.map(\.rawValue).joined(separator: ", ")
      throw EmulatorError(.invalidOption, "setting webhooks must be a list of: \(names)")
    }
    return Set(found.compactMap(\.self))
  }

  private static func bool(_ name: String, _ value: JSONValue) throws(EmulatorError) -> Bool {
    guard let bool = value.bool else { throw EmulatorError(.invalidOption, "setting \(name) must be true or false") }
    return bool
  }

  private static func positive(_ name: String, _ value: JSONValue) throws(EmulatorError) -> Int64 {
    guard let number = value.int, number > 0 else {
      throw EmulatorError(.invalidOption, "setting \(name) must be a positive integer")
    }
    return number
  }
}

struct StoredFile {
  var name: String
  var type: String
  var bytes: [UInt8]
  /// Given only to whoever shows a key.
  var isProtected = false
}
