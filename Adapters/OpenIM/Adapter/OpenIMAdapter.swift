import ChatJSON
import ChatTransport
import OpenIMWire
import UnifiedChat

/// One user's session at an OpenIM server, over the gateway's JSON form and REST.
///
/// Sequence numbers are the positions. A push that leaves a hole is told as missed events of its channel, so that the
/// client reads forward; placeholders that the server puts in holes are never shown.
public actor OpenIMAdapter: ChatAdapter {
  public static let capabilities = OpenIMCapabilities.native

  public nonisolated let vendor: VendorName = "openim"
  public var capabilities: CapabilitySet { Self.capabilities }
  public var state: ConnectionState { connectionState }
  public internal(set) var currentUser: User?

  nonisolated let hub = EventHub()
  let transports: Transports
  let clock: any ChatClock
  let credentials: (any CredentialProvider)?
  let trace: OpenIMTrace
  let rest: OpenIMRESTClient
  let gateway: String
  let platform: Int64
  let retry: Profile.RetrySettings
  let pace: Double

  var connectionState: ConnectionState = .disconnected(.initial)
  var userID: UserID?
  var token: String?
  var link: OpenIMLink?
  /// Changes with each connect and disconnect, so that what belongs to an earlier session knows it.
  var generation = 0
  var opening: Task<Result<User, ChatError>, Never>?
  var keeper: Task<Void, Never>?
  var renewal: Task<String?, Never>?

  /// The newest number told of each conversation, notices included, and the own read mark.
  var newest: [ChannelID: Int64] = [:]
  /// When the session, or its newest link, was opened; by the own clock.
  var enteredAt = Timestamp(milliseconds: 0)
  /// Groups that began in this session: there is nothing in them that was not pushed.
  var begun: Set<ChannelID> = []
  var read: [ChannelID: Int64] = [:]
  /// The read marks of others, as they were told.
  var othersRead: [OpenIMParticipant: Int64] = [:]
  /// Numbers after the read mark under which a tombstone stands: the server counts them as unread, people do not.
  var recalled: [ChannelID: Set<Int64>] = [:]
  /// Sends of this connection whose push has not come back yet.
  var sends: [ClientMessageID: OpenIMWaiter<Result<OpenIMMessageData, ChatError>>] = [:]
  var typists: [OpenIMParticipant: Task<Void, Never>] = [:]
  var watched: Set<UserID> = []
  /// Groups in which this user was mentioned and has not read to the end, with the number of that end as far as it was
  /// told: the record of a group may know of a message before its push is here.
  var mentioned: [ChannelID: Int64] = [:]
  /// Seconds after which messages of a single chat vanish, as far as records were read.
  var burning: [ChannelID: Int64] = [:]
  var burnable: [ChannelID: [Int64: OpenIMBurnable]] = [:]
  var burns: [UInt64: Task<Void, Never>] = [:]
  var lastBurn: UInt64 = 0
  var contactStreams: [UInt64: AsyncStream<OpenIMContactEvent>.Continuation] = [:]
  var lastContactStream: UInt64 = 0
  /// Uploads that broke off, by the hash of their file.
  var brokenUploads: [String: OpenIMUploader.Broken] = [:]

  public init(
    profile: Profile, environment: AdapterEnvironment, transports: Transports
  ) throws(ChatError) {
    self.transports = transports
    clock = environment.clock
    credentials = environment.credentials
    rest = OpenIMRESTClient(
      http: transports.http, base: try profile.apiBase(), timeout: profile.retry.requestTimeout,
      environment: environment)
    trace = rest.trace
    gateway = try profile.gatewayBase()
    platform = try profile.platform()
    retry = profile.retry
    pace = Self.pace(environment.seed)
  }

  deinit { for feed in contactStreams.values { feed.finish() } }

  public nonisolated func events() -> ChatEventStream { hub.events() }

  func tell(_ kind: ChatEvent.Kind, _ source: ChatEvent.Source = .live) {
    hub.publish(ChatEvent(kind, source: source))
  }

  func move(to next: ConnectionState) {
    guard next != connectionState, connectionState.canMove(to: next) else { return }
    connectionState = next
    tell(.connectionChanged(next), .local)
  }

  // MARK: What every call needs

  /// - Throws: `.authentication` after a refusal, until `connect`; `.network(.closed)` before the first one.
  func me(_ operation: ChatError.Operation) throws(ChatError) -> UserID {
    if case .refused = connectionState {
      throw ChatError(.authentication, operation: operation, detail: "the session was refused; connect again")
    }
    guard let userID else { throw ChatError(.network(.closed), operation: operation, detail: "not connected") }
    return userID
  }

  func live(_ operation: ChatError.Operation) throws(ChatError) -> OpenIMLink {
    _ = try me(operation)
    guard let link else { throw ChatError(.network(.closed), operation: operation, detail: "not connected") }
    return link
  }

  /// A REST call as the user; an expired token is renewed once.
  @discardableResult
  func call(
    _ path: String, _ body: JSONValue, for operation: ChatError.Operation
  ) async throws(ChatError) -> JSONValue {
    _ = try me(operation)
    guard let used = token else {
      throw ChatError(.network(.closed), operation: operation, detail: "not connected")
    }
    do { return try await rest.call(path, body, token: used, for: operation) } catch {
      guard error.kind == .authentication else { throw error }
      if error.retry == .afterRenewal, let fresh = await renewed(used) {
        return try await rest.call(path, body, token: fresh, for: operation)
      }
      await refuse(Self.refusal(of: error))
      throw error
    }
  }
}

/// Who types, or has read, where.
struct OpenIMParticipant: Hashable {
  var channel: ChannelID
  var user: UserID
}
