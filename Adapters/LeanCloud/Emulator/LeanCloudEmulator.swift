import ChatCrypto
import ChatJSON
import ChatTransport
import LeanCloudWire

/// LeanCloud's realtime service, its routers, and the parts of storage REST that chat needs, as one machine.
///
/// Both models are served: conversations (clients since 2014's end) and peers with groups (AVSession, AVGroup).
/// The machine is confined to its host's actor; it is a class so that no input copies its state.
///
/// Settings: `appKey` (string; absent: any key but the master key counts as the app's), `sessionTTL` (seconds),
/// `signature` (bool: logins and changes of members must be signed), `clientRates` (bool: the silent limits of
/// commands per minute), `edit` and `recall` (bool, true: allowed), `retentionDays` (absent: history is kept for ever),
/// `blacklist`, `roles` (bool, true: the app has the feature), `origins` (hosts that a browser's page may come from,
/// separated by commas; absent: any), `filteredWords` (separated by commas: become `***`, and the author is told),
/// `refusedWords` (separated by commas: the app's hook refuses a message with one of them), `maximumClients` (positive:
/// more logins are refused), `model` (`conversation` or `session`: what loaded
/// channels become).
public final class LeanCloudEmulator: VendorEmulator {
  public static let vendor = "leancloud"

  public var baseURL: String

  let options: EmulatorOptions
  let appKey: String?
  let sessionTTL: Int64
  let needsSignature: Bool
  let hasClientRates: Bool
  let allowsEdit: Bool
  let allowsRecall: Bool
  let loadsFirstModel: Bool
  let hasBlacklist: Bool
  let hasRoles: Bool
  let origins: [String]?
  let words: WordRules
  let maximumClients: Int64?
  /// Milliseconds that history is kept.
  let retention: Int64?
  var limits: Bool { options.limits == .real }

  // Lent by the host for one input.
  var now: Int64 = 0
  var random = EmulatorRandom(seed: 0)
  var outputs: [EmulatorOutput] = []

  // Realtime
  var connections: [EmulatorConnectionID: Connection] = [:]
  /// Sockets on which a client is logged in.
  var online: [Key: [EmulatorConnectionID]] = [:]
  var tokens: [Key: IssuedToken] = [:]
  /// Who watches whom (2014 model).
  var watchers: [Key: Set<EmulatorConnectionID>] = [:]
  /// Messages for clients that are not online, by client.
  var undelivered: [Key: [(conversation: String, id: String)]] = [:]
  var disabled: Set<Key> = []

  // Data
  var conversations: [Key: Conversation] = [:]
  /// Ids in the order of creation.
  var conversationOrder: [String] = []
  /// Without a row, and still in history.
  var forgotten: [Key: Conversation] = [:]
  var conversationsOfClient: [Key: Set<Key>] = [:]
  /// Hash of the member set to the conversation.
  var uniqueConversations: [Key: String] = [:]
  /// Loaded channel ids that stand for another one.
  var aliases: [Key: String] = [:]
  var users: [Key: UserRow] = [:]
  var userOrder: [String] = []
  var files: [Key: FileRow] = [:]
  var fileOrder: [String] = []
  var filesByKey: [Key: String] = [:]
  /// Uploads that are under way.
  var filesByToken: [Key: String] = [:]
  var installations: [Key: ClassRow] = [:]
  /// `_Followee`, `_Follower`, `_FriendshipRequest`, by object id.
  var relations: [Key: ClassRow] = [:]
  var broadcasts: [Broadcast] = []
  /// Which broadcasts a client has had.
  var toldBroadcasts: [Key: Set<Key>] = [:]
  /// Conversations that a client does not want.
  var blockedByClient: [Key: OrderedKeys] = [:]
  /// Events that a client missed, for the notification feed.
  var notifications: [Key: [JSONObject]] = [:]
  /// Every message of the app by time, made when it is asked for.
  var appHistory: [(place: Place, conversation: String)] = []
  var appHistoryIsStale = true

  // Bookkeeping
  var rates = RateBook()
  var calls: [String: Int] = [:]
  var unknownCalls: [String: Int] = [:]

  public init(options: EmulatorOptions) throws(EmulatorError) {
    let settings = Settings(options.settings)
    self.options = options
    baseURL = options.baseURL
    appKey = try settings.string("appKey")
    sessionTTL = try settings.positive("sessionTTL") ?? 172_800
    needsSignature = try settings.bool("signature") ?? false
    hasClientRates = try settings.bool("clientRates") ?? false
    allowsEdit = try settings.bool("edit") ?? true
    allowsRecall = try settings.bool("recall") ?? true
    hasBlacklist = try settings.bool("blacklist") ?? true
    hasRoles = try settings.bool("roles") ?? true
    origins = try settings.string("origins").map(WordRules.list)
    words = WordRules(
      filtered: try settings.string("filteredWords").map(WordRules.list) ?? [],
      refused: try settings.string("refusedWords").map(WordRules.list) ?? [])
    maximumClients = try settings.positive("maximumClients")
    retention = try settings.positive("retentionDays").map {
      $0.multipliedReportingOverflow(by: 86_400_000).partialValue
    }
    switch try settings.string("model") ?? "conversation" {
    case "conversation": loadsFirstModel = false
    case "session": loadsFirstModel = true
    case let other:
      throw EmulatorError(.invalidOption, "setting model is \"\(other)\"; it may be conversation or session")
    }
    try settings.refuseUnknown()
    for user in options.users {
      guard Self.isClientID(user.id) else {
        throw EmulatorError(.invalidOption, "user id \"\(user.id)\" is not between 1 and 64 characters")
      }
      addUser(UserRow(objectID: user.id, username: user.id, sessionToken: user.token, createdAt: 0, updatedAt: 0))
    }
  }

  static func isClientID(_ text: String) -> Bool { (1...64).contains(text.unicodeScalars.count) }

  // MARK: Input

  public func handle(_ input: EmulatorInput, context: inout EmulatorContext) -> [EmulatorOutput] {
    borrow(context)
    switch input {
    case .http(let id, let request): outputs.append(.respond(id, answer(request)))
    case .open(let id, let request): open(id, request)
    case .message(let id, let message): receive(message, on: id)
    case .ping(let id): connections[id]?.lastActivity = now
    case .closed(let id, _): dropped(id)
    case .timer(let name): timerFired(name)
    }
    return giveBack(&context)
  }

  func borrow(_ context: EmulatorContext) {
    now = context.now
    random = context.random
    outputs = []
  }

  func giveBack(_ context: inout EmulatorContext) -> [EmulatorOutput] {
    context.random = random
    defer { outputs = [] }
    return outputs
  }

  // MARK: Ids

  func randomBytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    while bytes.count < count {
      withUnsafeBytes(of: random.next().littleEndian) { bytes.append(contentsOf: $0) }
    }
    return Array(bytes.prefix(count))
  }

  func newMessageID() -> String { Base64.urlEncode(randomBytes(16)) }
  func newObjectID() -> String { Hex.encode(randomBytes(12)) }

  func count(_ endpoint: String, isKnown: Bool = true) {
    if isKnown { calls[endpoint, default: 0] += 1 } else { unknownCalls[endpoint, default: 0] += 1 }
  }

  // MARK: Data

  func addUser(_ row: UserRow) {
    if users.updateValue(row, forKey: Key(row.objectID)) == nil { userOrder.append(row.objectID) }
  }

  func add(_ conversation: Conversation) {
    guard conversations.updateValue(conversation, forKey: Key(conversation.id)) == nil else { return }
    conversationOrder.append(conversation.id)
    for member in conversation.members.list {
      conversationsOfClient[Key(member), default: []].insert(Key(conversation.id))
    }
  }

  /// A temporary conversation beyond its time is gone.
  func conversation(_ id: String) -> Conversation? { conversations[Key(id)] }

  func addMember(_ client: String, to conversation: Conversation) {
    guard conversation.members.insert(client) else { return }
    conversation.joinedAt[Key(client)] = now
    if let last = conversation.messages.last {
      conversation.marks[Key(client), default: Marks()].read = last.place
    }
    conversationsOfClient[Key(client), default: []].insert(Key(conversation.id))
  }

  func removeMember(_ client: String, from conversation: Conversation) {
    guard conversation.members.remove(client) else { return }
    conversation.joinedAt[Key(client)] = nil
    conversation.marks[Key(client)] = nil
    conversation.roles[Key(client)] = nil
    conversationsOfClient[Key(client)]?.remove(Key(conversation.id))
  }
}

/// Vendor settings, checked by name and type.
final class Settings {
  private let values: [String: JSONValue]
  private var known: Set<String> = []

  init(_ values: [String: JSONValue]) { self.values = values }

  func string(_ key: String) throws(EmulatorError) -> String? { try value(key, "a string") { $0.string } }
  func bool(_ key: String) throws(EmulatorError) -> Bool? { try value(key, "true or false") { $0.bool } }

  func positive(_ key: String) throws(EmulatorError) -> Int64? {
    try value(key, "a positive integer") { $0.int.flatMap { $0 > 0 ? $0 : nil } }
  }

  private func value<T>(
    _ key: String, _ expected: String, _ read: (JSONValue) -> T?
  ) throws(EmulatorError) -> T? {
    known.insert(key)
    guard let value = values[key] else { return nil }
    guard let result = read(value) else { throw EmulatorError(.invalidOption, "setting \(key) must be \(expected)") }
    return result
  }

  func refuseUnknown() throws(EmulatorError) {
    if let odd = values.keys.filter({ !known.contains($0) }).min() {
      throw EmulatorError(
        .invalidOption, "there is no setting \"\(odd)\"; known: \(known.sorted().joined(separator: ", "))")
    }
  }
}

/// Calls by window, of one minute if nothing else is said.
struct RateBook: Sendable {
  private var windows: [Key: (number: Int64, count: Int)] = [:]

  /// False when `limit` calls of `name` were made in this window of so many milliseconds.
  mutating func take(_ name: String, limit: Int, now: Int64, window length: Int64 = 60_000) -> Bool {
    let number = now / length
    let key = Key(name)
    var window = windows[key] ?? (number, 0)
    if window.number != number { window = (number, 0) }
    window.count += 1
    windows[key] = window
    return window.count <= limit
  }
}
