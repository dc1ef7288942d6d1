import ChatCrypto
import ChatJSON
import ChatTransport
import LeanCloudWire
import UnifiedChat

extension LeanCloudAdapter {
  /// What this client can do, as the official ones say it: edits, temporary conversations, acknowledged transient
  /// messages, kept notifications, partial results.
  private static let configBitmap: Int64 = 1 | 2 | 8 | 16 | 32

  public func connect(as user: UserID, credential: Credential) async throws(ChatError) -> User {
    let begin = continuesFrom
    continuesFrom = nil
    try LeanCloudLimits.check(user, .connect)
    await line.attach(self)
    if me != user {
      let state = await line.state
      switch state {
      case .disconnected, .refused: reset(for: user)
      default: throw ChatError(.conflict, operation: .connect, detail: "connected as another user; disconnect first")
      }
    }
    if let begin { patches.begin(after: begin) }
    self.credential = credential
    logins &+= 1
    return try await line.connect(as: user)
  }

  private func reset(for user: UserID?) {
    me = user
    room = nil
    unread = LeanCloudUnread()
    echoes = LeanCloudEchoes()
    for timer in typing.values { timer.cancel() }
    typing = [:]
    patches = LeanCloudPatchClock()
  }

  public func disconnect() async {
    let known = logins
    await line.disconnect()
    if logins == known { reset(for: nil) }
  }

  public func continueChanges(from cursor: Cursor) { continuesFrom = cursor }

  public func suspend() async { await line.suspend() }
  public func resume() async { await line.resume() }

  // MARK: Opening

  /// The signature of one operation, where the app signs.
  func sign(
    _ operation: String, _ fields: [String], for user: UserID, _ failing: ChatError.Operation
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

  func add(_ signed: SignedOperation?, to fields: inout JSONObject) {
    guard let signed else { return }
    fields["s"] = .string(signed.signature)
    fields["t"] = .int(signed.timestamp)
    fields["n"] = .string(signed.nonce)
  }

  /// A user of the storage service is signed in by its session token.
  private func loginSignature(_ user: UserID) async throws(ChatError) -> SignedOperation? {
    if let signed = try await sign("login", [rest.appID, user.rawValue, ""], for: user, .connect) { return signed }
    guard case .token(let token) = credential else { return nil }
    let answer = try await rest.call(
      "POST", "/1.1/rtm/sign", body: ["session_token": .string(token)], key: .app, operation: .connect)
    guard let signature = answer["signature"]?.string, let nonce = answer["nonce"]?.string,
      let timestamp = answer["timestamp"]?.int
    else { throw ChatError(.protocolViolation, operation: .connect, detail: "no signature was given for the token") }
    return SignedOperation(signature: signature, timestamp: timestamp, nonce: nonce)
  }

  // MARK: Push, presence, profiles

  public func registerPush(token: String) async throws(ChatError) {
    _ = try await ask(
      "report", "upload", ["initiative": true, "type": "token", "data": .string(token)], .registerPush)
  }

  public func unregisterPush(token: String) async throws(ChatError) {
    _ = try await ask("report", "upload", ["initiative": true, "type": "token", "data": ""], .registerPush)
  }

  /// The service keeps no profiles: every well-formed id is a user.
  public func users(_ ids: [UserID]) async throws(ChatError) -> [User] {
    ids.filter { LeanCloudLimits.isValid($0) }.map { User(id: $0) }
  }

  public func updateProfile(
    name: String?, avatarURL: String?, customData: JSONText?
  ) async throws(ChatError) -> User {
    throw ChatError(.permission(), operation: .updateUser, detail: "the service keeps no profiles; the app does")
  }

  public func presence(of users: [UserID]) async throws(ChatError) -> [UserID: Presence] {
    var result: [UserID: Presence] = [:]
    var rest = users[...]
    while !rest.isEmpty {
      let part = rest.prefix(LeanCloudLimits.presenceQuery)
      rest = rest.dropFirst(LeanCloudLimits.presenceQuery)
      let answer = try await ask(
        "session", "query", ["sessionPeerIds": .strings(part.map(\.rawValue))], .presence)
      let online = Set(answer.strings("onlineSessionPeerIds").map { UserID($0) })
      for user in part { result[user] = online.contains(user) ? .online : .offline(lastSeen: nil) }
    }
    return result
  }
}

extension LeanCloudAdapter: LeanCloudLineDelegate {
  func openFrame(isReopen: Bool, token: String?) async throws(ChatError) -> LeanCloudFrame {
    let user = try requireUser(.connect)
    var fields: JSONObject = [
      "appId": .string(rest.appID), "ua": "unifiedchat/1", "r": .bool(isReopen),
      "configBitmap": .int(Self.configBitmap), "lastPatchTime": .int(patches.since ?? environment.clock.now.milliseconds),
    ]
    // Without the time of the last notice the server tells all numbers anew: what another device has read meanwhile
    // would not be among the changes.
    unread = LeanCloudUnread()
    if let token {
      fields["st"] = .string(token)
    } else {
      fields["deviceId"] = .string(environment.device)
      fields["tag"] = tag.map { .string($0) }
      add(try await loginSignature(user), to: &fields)
    }
    return frame("session", "open", fields)
  }

  var changeCursor: Cursor? { patches.cursor }

  func opened(_ frame: LeanCloudFrame) {
    patches.begin(at: frame.int("serverTs") ?? environment.clock.now.milliseconds)
  }

  /// With the old session token the server knows the room; after a full login it must be entered again.
  func restore(line: LeanCloudLine, usedToken: Bool) async throws(ChatError) {
    guard let room, let me else { return }
    let fields: JSONObject = ["cid": .string(room.rawValue), "m": .strings([me.rawValue])]
    _ = try await line.ask(frame("conv", "add", fields), .connect)
  }
}

/// What the vendor bounds, checked before anything leaves.
enum LeanCloudLimits {
  static let clientID = 64
  /// Of the 2014 model; bytes.
  static let peerID = 50
  static let historyPage = 100
  /// Channels that one notice of unread numbers names at most.
  static let unreadNotice = 50
  /// How long an app's signing server may take.
  static let signing: Duration = .seconds(30)
  static let presenceQuery = 50
  static let channelPage = 100

  static func isValid(_ user: UserID) -> Bool { (1...clientID).contains(user.rawValue.unicodeScalars.count) }

  static func check(_ user: UserID, _ operation: ChatError.Operation) throws(ChatError) {
    guard isValid(user) else {
      throw ChatError(
        .invalidArgument(field: "userID"), operation: operation, detail: "a client id has 1 to \(clientID) characters")
    }
  }

  static func check(_ users: [UserID], _ operation: ChatError.Operation) throws(ChatError) {
    for user in users { try check(user, operation) }
  }

  static func isPeer(_ user: UserID) -> Bool { (1...peerID).contains(user.rawValue.utf8.count) }

  static func checkPeers(_ users: [UserID], _ operation: ChatError.Operation) throws(ChatError) {
    guard users.allSatisfy(isPeer) else {
      throw ChatError(
        .invalidArgument(field: "userID"), operation: operation, detail: "a peer id has 1 to \(peerID) bytes")
    }
  }
}
