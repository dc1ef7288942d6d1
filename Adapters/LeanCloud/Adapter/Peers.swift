import ChatJSON
import ChatTransport
import LeanCloudWire
import UnifiedChat

/// The 2014 model: peers that write to peers, and groups (AVSession, AVGroup). JSON without a sub-protocol.
///
/// The service tells neither lists nor members nor read marks here; what it cannot do throws `.unsupported`.
public actor LeanCloudPeerAdapter: ChatAdapter {
  public static let capabilities = LeanCloudCapabilities.session

  public nonisolated let vendor: VendorName = "leancloud"
  nonisolated let hub = EventHub()
  let line: LeanCloudLine
  let rest: LeanCloudREST
  let environment: AdapterEnvironment

  var me: UserID?
  /// Watched again after a reconnect.
  var watched: [UserID] = []
  var subscriptionsInFlight = 0
  /// Whose presence a push told while a subscription was being asked for.
  var toldMeanwhile: Set<UserID> = []
  /// Where the last own messages went: a receipt names the message alone.
  var sentTo: [MessageID: ChannelID] = [:]
  var sentOrder: [MessageID] = []
  /// Receipts of messages whose own answer is not taken yet.
  var earlyReceipts: [(id: MessageID, frame: LeanCloudFrame)] = []
  var echoes = LeanCloudEchoes()
  var typing: [String: Task<Void, Never>] = [:]
  /// Counts logins: a disconnect that one overtakes must not forget its user.
  var logins: UInt64 = 0

  public init(profile: Profile, environment: AdapterEnvironment, transports: Transports) throws(ChatError) {
    guard let appID = profile.appID, !appID.isEmpty else {
      throw ChatError(.invalidArgument(field: "appID"), operation: .configuration, detail: "the profile names no appID")
    }
    self.environment = environment
    rest = LeanCloudREST(profile: profile, environment: environment, http: transports.http)
    let settings = LeanCloudLineSettings(
      subprotocol: .unnamed, pingInterval: .seconds(60), timeout: profile.retry.requestTimeout, retry: profile.retry)
    line = LeanCloudLine(
      settings: settings, rest: rest, profile: profile, environment: environment, webSocket: transports.webSocket,
      hub: hub)
  }

  public nonisolated func events() -> ChatEventStream { hub.events() }
  public var capabilities: CapabilitySet { Self.capabilities }
  public var state: ConnectionState { get async { await line.state } }
  public var currentUser: User? { me.map { User(id: $0) } }

  // MARK: Session

  public func connect(as user: UserID, credential: Credential) async throws(ChatError) -> User {
    try LeanCloudLimits.checkPeers([user], .connect)
    await line.attach(self)
    if me != user {
      switch await line.state {
      case .disconnected, .refused: reset(for: user)
      default: throw ChatError(.conflict, operation: .connect, detail: "connected as another user; disconnect first")
      }
    }
    logins &+= 1
    return try await line.connect(as: user)
  }

  private func reset(for user: UserID?) {
    me = user
    watched = []
    sentTo = [:]
    sentOrder = []
    earlyReceipts = []
    echoes = LeanCloudEchoes()
    for timer in typing.values { timer.cancel() }
    typing = [:]
  }

  public func disconnect() async {
    let known = logins
    await line.disconnect()
    if logins == known { reset(for: nil) }
  }

  public func suspend() async { await line.suspend() }
  public func resume() async { await line.resume() }

  public func users(_ ids: [UserID]) async throws(ChatError) -> [User] {
    ids.filter { LeanCloudLimits.isPeer($0) }.map { User(id: $0) }
  }

  public func updateProfile(
    name: String?, avatarURL: String?, customData: JSONText?
  ) async throws(ChatError) -> User {
    throw ChatError(.permission(), operation: .updateUser, detail: "the service keeps no profiles; the app does")
  }

  public func presence(of users: [UserID]) async throws(ChatError) -> [UserID: Presence] {
    var result: [UserID: Presence] = [:]
    for part in Self.parts(users) {
      let answer = try await ask("session", "query", ["sessionPeerIds": .strings(part.map(\.rawValue))], .presence)
      let online = Set(answer.strings("onlineSessionPeerIds").map { UserID($0) })
      for user in part { result[user] = online.contains(user) ? .online : .offline(lastSeen: nil) }
    }
    return result
  }

  private static func parts(_ users: [UserID]) -> [[UserID]] {
    stride(from: 0, to: users.count, by: LeanCloudLimits.presenceQuery).map {
      Array(users[$0..<min($0 + LeanCloudLimits.presenceQuery, users.count)])
    }
  }

  public func subscribePresence(of users: [UserID]) async throws(ChatError) {
    let user = try requireUser(.presence)
    for part in Self.parts(users) {
      var fields: JSONObject = ["sessionPeerIds": .strings(part.map(\.rawValue))]
      let signed = try await sign(
        "watch", [rest.appID, user.rawValue, LeanCloudSignature.joined(part.map(\.rawValue))], user, .presence)
      Self.add(signed, to: &fields)
      try await watch(part, fields)
    }
  }

  /// Pushes about the peers can overtake the task that takes the answer: they count from the asking on, and what they
  /// told is newer than the answer's list.
  private func watch(_ users: [UserID], _ fields: JSONObject) async throws(ChatError) {
    let new = users.filter { !watched.contains($0) }
    watched += new
    subscriptionsInFlight += 1
    defer {
      subscriptionsInFlight -= 1
      if subscriptionsInFlight == 0 { toldMeanwhile = [] }
    }
    let answer: LeanCloudFrame
    do { answer = try await ask("session", "add", fields, .presence) } catch {
      watched.removeAll(where: new.contains)
      throw error
    }
    for name in answer.strings("onlineSessionPeerIds").map({ UserID($0) }) where !toldMeanwhile.contains(name) {
      await line.publish(ChatEvent(.presenceChanged(name, .online)))
    }
  }

  public func unsubscribePresence(of users: [UserID]) async throws(ChatError) {
    watched.removeAll(where: users.contains)
    for part in Self.parts(users) {
      _ = try await ask("session", "remove", ["sessionPeerIds": .strings(part.map(\.rawValue))], .presence)
    }
  }

  // MARK: Tools

  func requireUser(_ operation: ChatError.Operation) throws(ChatError) -> UserID {
    guard let me else { throw ChatError(.network(.offline), operation: operation, detail: "not connected") }
    return me
  }

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

  /// Signatures of this model are over seconds; the provider knows by the operation's name.
  func sign(
    _ operation: String, _ fields: [String], _ user: UserID, _ failing: ChatError.Operation
  ) async throws(ChatError) -> SignedOperation? {
    guard let provider = environment.credentials else { return nil }
    do {
      return try await provider.sign(
        operation, fields: fields, for: user, within: LeanCloudLimits.signing, on: environment.clock)
    } catch {
      throw ChatError(
        .authentication, operation: failing, detail: "the credential provider refused to sign \(operation)")
    }
  }

  static func add(_ signed: SignedOperation?, to fields: inout JSONObject) {
    guard let signed else { return }
    fields["s"] = .string(signed.signature)
    fields["t"] = .int(signed.timestamp)
    fields["n"] = .string(signed.nonce)
  }
}

extension LeanCloudPeerAdapter: LeanCloudLineDelegate {
  func openFrame(isReopen: Bool, token: String?) async throws(ChatError) -> LeanCloudFrame {
    let user = try requireUser(.connect)
    let names = watched.map(\.rawValue)
    var fields: JSONObject = ["appId": .string(rest.appID), "sessionPeerIds": .strings(names)]
    let signed = try await sign(
      "login", [rest.appID, user.rawValue, LeanCloudSignature.joined(names)], user, .connect)
    Self.add(signed, to: &fields)
    return frame("session", "open", fields)
  }

  /// Groups are stored by the service, so nothing has to be entered again.
  func restore(line: LeanCloudLine, usedToken: Bool) async throws(ChatError) {}

  func handle(_ frame: LeanCloudFrame) async {
    // Of somebody else: not for this client.
    if let peer = frame.peerID, let me, UserID(peer) != me { return }
    switch frame.command {
    case "direct": await received(frame)
    case "presence": await presenceTold(frame)
    case "rcp": await receipt(frame)
    case "room": await roomTold(frame)
    default: break
    }
  }
}
