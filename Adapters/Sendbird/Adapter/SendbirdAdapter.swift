import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

/// One connection of one user to Sendbird, by the v3 protocol.
///
/// It translates: the socket's life, answers to requests, and events in the order in which they came. It keeps no
/// messages; what it remembers is what the vendor's protocol makes a client remember (open channels that were entered,
/// who is typing, what was told already).
public actor SendbirdAdapter: ChatAdapter {
  public static var capabilities: CapabilitySet { SendbirdCapabilities.all }

  public nonisolated var vendor: VendorName { SendbirdErrors.vendor }
  public var capabilities: CapabilitySet { SendbirdCapabilities.all }
  public internal(set) var state: ConnectionState = .disconnected(.initial)
  public internal(set) var currentUser: User?

  let profile: Profile
  let environment: AdapterEnvironment
  let transports: Transports
  let rest: SendbirdREST
  let hub = EventHub()
  var clock: any ChatClock { environment.clock }

  // The session.
  var user: UserID?
  var token: String?
  var sessionKey: String?
  /// Opens the files that the application protects.
  var fileKey: String?
  var loginTime: Int64 = 0
  var pingInterval: Duration = .seconds(15)
  var pongTimeout: Duration = .seconds(5)
  var connecting: Task<Result<User, ChatError>, Never>?
  var reconnecting: Task<Void, Never>?
  var renewal: Task<Bool, Never>?

  // The link. `epoch` names it: whatever belongs to an older one is ignored.
  var epoch: UInt64 = 0
  /// Counts links: a try that failed belongs to the same epoch as the next one.
  var linkNumber: UInt64 = 0
  var socket: (any WebSocketConnection)?
  var linkTasks: [Task<Void, Never>] = []
  var waiters: [Key: SendbirdWaiter] = [:]
  var lastSent: Timestamp = Timestamp(milliseconds: 0)
  var lastReceived: Timestamp = Timestamp(milliseconds: 0)
  var requestCounter: UInt64 = 0
  let requestPrefix: String
  let pace: Double

  // Events.
  var eventQueue: AsyncStream<Inbound>.Continuation?
  var told = RecentKeys(capacity: 4096)
  var joined: Set<Key> = []
  /// Frames of reactions that are read and not yet handled, by message.
  var waitingReactions: [MessageID: Int] = [:]
  var operators: [ChannelID: Set<UserID>] = [:]
  var typists: [Key: Task<Void, Never>] = [:]
  var entered: Set<ChannelID> = []
  /// Channels that are known to be open ones: their paths differ from those of groups.
  var openChannels: Set<ChannelID> = []
  /// Up to where this user has cleared a history, as far as it was told; milliseconds.
  var historyOffsets: [ChannelID: Int64] = [:]
  /// Read marks that the vendor has no word for.
  var heldMarks: [ChannelID: SendbirdHeldMark] = [:]
  /// Counts what covered the marks of each channel, so that who was asking meanwhile knows.
  var releasedMarks: [ChannelID: UInt64] = [:]
  var unreadTime: Int64 = 0
  var unreadTotalTold: Int64?

  /// What is handled in the order in which it came.
  enum Inbound: Sendable {
    case event(SendbirdFrame)
    /// An answer waits behind earlier events, so that whoever gets it has been told what came before. nil: nothing but
    /// the turn itself.
    case answer(Key, SendbirdFrame?)
  }

  public init(profile: Profile, environment: AdapterEnvironment, transports: Transports) {
    self.profile = profile
    self.environment = environment
    self.transports = transports
    rest = SendbirdREST(profile: profile, environment: environment, transports: transports)
    var random = SystemRandomNumberGenerator()
    requestPrefix = String(environment.seed ?? random.next(), radix: 36)
    pace = Self.pace(environment.seed)
  }

  public nonisolated func events() -> ChatEventStream { hub.events() }

  func publish(_ kind: ChatEvent.Kind, source: ChatEvent.Source = .live) {
    hub.publish(ChatEvent(kind, source: source))
  }

  func log(_ level: Profile.LogLevel, _ line: String) { environment.log?(level, "sendbird: \(line)") }

  /// `req_id`s of commands that no app names.
  func newRequestID() -> String {
    requestCounter &+= 1
    return "\(requestPrefix)-\(requestCounter)"
  }

  /// The session's key and user.
  /// - Throws: `.network(offline)` before `connect`.
  func session(_ operation: ChatError.Operation) throws(ChatError) -> (key: String, user: UserID) {
    guard let sessionKey, let user else {
      throw ChatError(.network(.offline), operation: operation, detail: "not connected")
    }
    return (sessionKey, user)
  }

  /// A REST call of the session. Where the key or the token expired, it is renewed once and the refused call made
  /// again: the server has done nothing of it.
  func call(
    _ method: String, _ path: [String], query: SendbirdQuery = SendbirdQuery(), body: JSONObject? = nil,
    _ operation: ChatError.Operation
  ) async throws(ChatError) -> JSONObject {
    let rest = rest
    return try await renewing(operation) { (key) async throws(ChatError) in
      try await rest.call(method, path, query: query, body: body, as: key, operation: operation)
    }
  }

  /// Does `work` with the session's key, and once more with the new one where the old one had expired.
  func renewing(
    _ operation: ChatError.Operation,
    _ work: @Sendable (SendbirdREST.Credential) async throws(ChatError) -> JSONObject
  ) async throws(ChatError) -> JSONObject {
    if let renewal { _ = await renewal.value }
    let key = try session(operation).key
    do { return try await work(.sessionKey(key)) } catch {
      guard await renewed(after: error) else { throw error }
    }
    return try await work(.sessionKey(try session(operation).key))
  }

  /// True when `error` was an expired session and the session is good again.
  func renewed(after error: ChatError) async -> Bool {
    guard let code = error.vendor?.code.flatMap({ Int64($0) }), [400302, 400309, 400310].contains(code) else {
      return false
    }
    return await renew(code)
  }
}

/// A text compared by its bytes.
struct Key: OpaqueID {
  let rawValue: String
  init(_ rawValue: String) { self.rawValue = rawValue }
}

/// The last so many keys, to tell what came twice.
struct RecentKeys {
  private var keys: Set<Key> = []
  private var ring: [Key] = []
  private var next = 0
  let capacity: Int

  init(capacity: Int) { self.capacity = capacity }

  /// True the first time.
  mutating func insert(_ text: String) -> Bool {
    let key = Key(text)
    guard keys.insert(key).inserted else { return false }
    if ring.count < capacity {
      ring.append(key)
    } else {
      keys.remove(ring[next])
      ring[next] = key
      next = (next + 1) % capacity
    }
    return true
  }
}
