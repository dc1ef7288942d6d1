import ChatJSON
import ChatTransport
import LeanCloudWire
import UnifiedChat

/// One session of one user of the conversation model, over `lc.protobuf2.3` (or JSON, by the profile).
///
/// Calls may come from anywhere; pushes are handled one at a time, in the order of the socket.
public actor LeanCloudAdapter: ChatAdapter {
  public static let capabilities = LeanCloudCapabilities.conversation

  public nonisolated let vendor: VendorName = "leancloud"
  nonisolated let hub = EventHub()
  let line: LeanCloudLine
  let rest: LeanCloudREST
  let profile: Profile
  let environment: AdapterEnvironment
  let tag: String?

  var credential: Credential = .none
  var me: UserID?
  /// The chat room that this login is in: entered again after a reconnect.
  var room: ChannelID?
  /// What is known of changes of messages, for replay after a reconnect.
  var patches = LeanCloudPatchClock()
  /// Where an earlier process ended.
  var continuesFrom: Cursor?
  var unread = LeanCloudUnread()
  var echoes = LeanCloudEchoes()
  var typing: [TypingKey: Task<Void, Never>] = [:]
  /// Counts logins: a disconnect that one overtakes must not forget its user.
  var logins: UInt64 = 0

  struct TypingKey: Hashable {
    var channel: ChannelID
    var user: UserID
  }

  public init(profile: Profile, environment: AdapterEnvironment, transports: Transports) throws(ChatError) {
    guard let appID = profile.appID, !appID.isEmpty else {
      throw ChatError(.invalidArgument(field: "appID"), operation: .configuration, detail: "the profile names no appID")
    }
    let subprotocol = try LeanCloudProfile.subprotocol(profile)
    tag = try LeanCloudProfile.text("tag", profile)
    self.profile = profile
    self.environment = environment
    rest = LeanCloudREST(profile: profile, environment: environment, http: transports.http)
    let settings = LeanCloudLineSettings(
      subprotocol: subprotocol, pingInterval: subprotocol.format == .json ? .seconds(60) : .seconds(180),
      timeout: profile.retry.requestTimeout, retry: profile.retry)
    line = LeanCloudLine(
      settings: settings, rest: rest, profile: profile, environment: environment, webSocket: transports.webSocket,
      hub: hub)
  }

  public nonisolated func events() -> ChatEventStream { hub.events() }
  public var capabilities: CapabilitySet { Self.capabilities }
  public var state: ConnectionState { get async { await line.state } }
  public var currentUser: User? { me.map { User(id: $0) } }

  /// Who is connected.
  func requireUser(_ operation: ChatError.Operation) throws(ChatError) -> UserID {
    guard let me else { throw ChatError(.network(.offline), operation: operation, detail: "not connected") }
    return me
  }

  /// A command of the present session.
  func ask(
    _ command: String, _ name: String?, _ fields: JSONObject, _ operation: ChatError.Operation
  ) async throws(ChatError) -> LeanCloudFrame {
    try await line.ask(frame(command, name, fields), operation)
  }

  func frame(_ command: String, _ name: String?, _ fields: JSONObject) -> LeanCloudFrame {
    var frame = LeanCloudFrame(command, name)
    for member in fields { frame[member.key] = member.value }
    frame.peerID = me?.rawValue
    return frame
  }
}

/// What this connection did itself or heard already, so that each change is told once.
struct LeanCloudEchoes: Sendable {
  private(set) var seen: [MessageID] = []
  private var seenSet: Set<MessageID> = []
  /// Channels that this connection made, joined or left: their pushes tell it nothing new.
  var ownJoins: Set<ChannelID> = []
  var ownLeaves: Set<ChannelID> = []
  var startsInFlight = 0
  var joined: Set<ChannelID> = []
  var banned: Set<String> = []

  /// False when the message was heard before. Remembers the last two thousand.
  mutating func isNew(_ id: MessageID) -> Bool {
    guard seenSet.insert(id).inserted else { return false }
    seen.append(id)
    if seen.count > 4000 {
      for old in seen.prefix(2000) { seenSet.remove(old) }
      seen.removeFirst(2000)
    }
    return true
  }
}
