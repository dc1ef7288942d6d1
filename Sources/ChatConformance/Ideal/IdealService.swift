import UnifiedChat

/// The semantic model as a program: a chat service in memory, without a wire. What the suite expects of an adapter is
/// what this one does.
public actor IdealService {
  public nonisolated let clock: any ChatClock

  var users: [UserID: User] = [:]
  var channels: [ChannelID: IdealChannel] = [:]
  var tokens: [UserID: String] = [:]
  var files: [String: [UInt8]] = [:]
  var blocks: [UserID: Set<UserID>] = [:]
  var sessions: [Int: Session] = [:]
  var presenceWatchers: [UserID: Set<Int>] = [:]
  var faults: [ArmedFault] = []
  /// Of imported messages: where they came from, and back.
  var origins: [ChannelID: [MessageID: Origin]] = [:]
  var originIDs: [ChannelID: [Origin: MessageID]] = [:]
  private var counter: Int64 = 0

  /// One live device.
  struct Session {
    var user: UserID
    var hub: EventHub
    /// Told when the service ends the session.
    var ended: @Sendable (SessionEnd) async -> Void
  }

  enum SessionEnd: Sendable { case linkLost, refused(RefusalReason) }

  struct ArmedFault {
    var rule: FaultRule
    var seen = 0
    var fired = 0
  }

  public init(clock: any ChatClock = SystemClock()) { self.clock = clock }

  func nextNumber() -> Int64 {
    counter += 1
    return counter
  }

  // MARK: Users and sessions

  public func register(_ user: User, token: String) {
    users[user.id] = user
    tokens[user.id] = token
  }

  func open(_ user: UserID, credential: Credential, hub: EventHub, ended: @escaping @Sendable (SessionEnd) async -> Void)
    throws(ChatError) -> (session: Int, user: User)
  {
    try strike("auth", user: user, channel: nil, phase: .received)
    guard let known = users[user] else { throw ChatError(.notFound, operation: .connect, detail: "no such user") }
    guard case .token(let token) = credential, token == tokens[user] else {
      throw ChatError(.authentication, operation: .connect, detail: "the token is not this user's")
    }
    let session = Int(nextNumber())
    let wasOnline = sessions.values.contains { $0.user == user }
    sessions[session] = Session(user: user, hub: hub, ended: ended)
    if !wasOnline { tellPresence(of: user, .online) }
    return (session, known)
  }

  func close(_ session: Int) {
    guard let closed = sessions.removeValue(forKey: session) else { return }
    for user in presenceWatchers.keys { presenceWatchers[user]?.remove(session) }
    if !sessions.values.contains(where: { $0.user == closed.user }) {
      tellPresence(of: closed.user, .offline(lastSeen: clock.now))
    }
  }

  /// Ends every session of `user` for good, or cuts its links.
  func end(_ user: UserID, _ end: SessionEnd) async {
    let ending = sessions.filter { $0.value.user == user }
    for id in ending.keys { sessions[id] = nil }
    for session in ending.values { await session.ended(end) }
  }

  func revoke(_ user: UserID) async {
    tokens[user] = "revoked-\(nextNumber())"
    await end(user, .refused(.credentialInvalid))
  }

  func session(_ id: Int, _ operation: ChatError.Operation) throws(ChatError) -> UserID {
    guard let session = sessions[id] else { throw ChatError(.network(.closed), operation: operation) }
    return session.user
  }

  private func tellPresence(of user: UserID, _ presence: Presence) {
    for id in presenceWatchers[user] ?? [] { sessions[id]?.hub.publish(ChatEvent(.presenceChanged(user, presence))) }
  }

  func isOnline(_ user: UserID) -> Bool { sessions.values.contains { $0.user == user } }

  func watch(_ watched: [UserID], _ on: Bool, session: Int) {
    for user in watched {
      if on { presenceWatchers[user, default: []].insert(session) } else { presenceWatchers[user]?.remove(session) }
    }
  }

  // MARK: Telling

  /// Publishes to every device of `user`; `except` is the device that caused it.
  func tell(_ user: UserID, _ kind: ChatEvent.Kind, source: ChatEvent.Source = .live, except: Int? = nil) {
    for (id, session) in sessions where session.user == user && id != except {
      session.hub.publish(ChatEvent(kind, source: source))
    }
  }

  func tellMembers(of channel: ChannelID, _ kind: ChatEvent.Kind, except: Int? = nil) {
    for member in channels[channel]?.members ?? [] { tell(member, kind, except: except) }
  }

  // MARK: Access

  func joined(_ id: ChannelID, _ user: UserID, _ operation: ChatError.Operation) throws(ChatError) -> IdealChannel {
    guard let channel = channels[id] else {
      throw ChatError(.notFound, operation: operation, detail: "no channel \(id)")
    }
    guard channel.memberships[user]?.state == .joined else {
      throw ChatError(.permission(), operation: operation, detail: "not a member of \(id)")
    }
    return channel
  }

  func requireAdmin(_ id: ChannelID, _ user: UserID, _ operation: ChatError.Operation) throws(ChatError) {
    let role = try joined(id, user, operation).memberships[user]?.role
    guard role == .owner || role == .admin else {
      throw ChatError(.permission(), operation: operation, detail: "needs an admin of \(id)")
    }
  }

  // MARK: Faults

  /// Lets the first matching rule of this phase act: throws what the caller is to see.
  func strike(
    _ operation: String, user: UserID, channel: ChannelID?, phase: FaultRule.Phase
  ) throws(ChatError) {
    guard let action = firing(operation, user: user, channel: channel, phase: phase) else { return }
    let failing: ChatError.Operation = operation == "auth" ? .connect : operation == "history" ? .history : .send
    switch action {
    case .fail(let kind): throw ChatError(kind, operation: failing, detail: "injected")
    case .drop: throw ChatError(.timeout, operation: failing, detail: "injected: no answer")
    case .closeSocket:
      let ending = sessions.filter { $0.value.user == user }
      for id in ending.keys { sessions[id] = nil }
      // Told after this call, as a client learns of a cut link after its own request has failed.
      Task { for session in ending.values { await session.ended(.linkLost) } }
      throw ChatError(.network(.closed), operation: failing, detail: "injected: link cut")
    default: break
    }
  }

  func firing(
    _ operation: String, user: UserID, channel: ChannelID?, phase: FaultRule.Phase
  ) -> FaultRule.Action? {
    for index in faults.indices {
      let rule = faults[index].rule
      guard rule.operation == operation, rule.phase == phase, rule.user.map({ $0 == user }) ?? true,
        rule.channel.map({ $0 == channel }) ?? true
      else { continue }
      faults[index].seen += 1
      guard faults[index].seen >= rule.nth, rule.times.map({ faults[index].fired < $0 }) ?? true else { continue }
      faults[index].fired += 1
      return rule.action
    }
    return nil
  }

  func arm(_ rule: FaultRule) { faults.append(ArmedFault(rule: rule)) }

  func disarm() -> [FaultRule] {
    let silent = faults.filter { $0.fired == 0 && $0.rule.mustFire }.map(\.rule)
    faults = []
    return silent
  }
}
