import OpenIMWire

/// Which tokens the server knows, beside what their signature says (reference §1.3).
struct OpenIMTokenStore {
  enum State: String { case normal, kicked, expired }

  struct Entry {
    var userID: String
    /// nil: a token given at start, good for any platform.
    var platform: Int64?
    var state: State
  }

  private(set) var entries: [OpenIMKey: Entry] = [:]
  /// Tokens by user, so that a user's can be changed without looking at all.
  private var byUser: [OpenIMKey: [OpenIMKey]] = [:]

  subscript(token: String) -> Entry? { entries[OpenIMKey(token)] }

  mutating func preset(_ token: String, for userID: String) { add(token, userID, platform: nil) }

  mutating func add(_ token: String, _ userID: String, platform: Int64?, state: State = .normal) {
    let key = OpenIMKey(token)
    if entries[key] == nil { byUser[OpenIMKey(userID), default: []].append(key) }
    entries[key] = Entry(userID: userID, platform: platform, state: state)
  }

  /// A new token makes the older ones invalid that the policy excludes; open sockets go on until one with the new
  /// token connects.
  mutating func issue(
    _ token: String, _ userID: String, platform: Int64, policy: OpenIMLoginPolicy, keeping count: Int
  ) {
    let older = (byUser[OpenIMKey(userID)] ?? []).filter { key in
      guard let entry = entries[key], entry.state == .normal, let other = entry.platform else { return false }
      return policy == .everybody ? other == platform : policy.excludes(other, by: platform)
    }
    // The same second gives the same token, which is not its own predecessor.
    let others = older.filter { $0 != OpenIMKey(token) }
    for key in policy == .everybody ? others.dropLast(count - 1) : others[...] { entries[key]?.state = .kicked }
    add(token, userID, platform: platform)
  }

  mutating func setAll(_ state: State, of userID: String, platform: Int64? = nil) {
    for key in byUser[OpenIMKey(userID)] ?? [] where platform == nil || entries[key]?.platform == platform {
      entries[key]?.state = state
    }
  }

  mutating func removeAll(of userID: String) {
    for key in byUser.removeValue(forKey: OpenIMKey(userID)) ?? [] { entries[key] = nil }
  }
}

extension OpenIMEmulator {
  /// Who holds `token`.
  func caller(_ token: String, now: Int64) throws(OpenIMFault) -> OpenIMCaller {
    if let entry = tokens[token] {
      try check(entry)
      if let platform = entry.platform {
        let claims = try OpenIMToken(verifying: token, secret: secret)
        guard claims.expiresAt > now / 1000 else { throw OpenIMFault(.tokenExpired) }
        return caller(entry.userID, platform)
      }
      return caller(entry.userID, 0)
    }
    if options.openAuthentication { return OpenIMCaller(userID: admin, platform: 0, isAdmin: true) }
    let claims = try OpenIMToken(verifying: token, secret: secret)
    guard claims.expiresAt > now / 1000 else { throw OpenIMFault(.tokenExpired) }
    throw OpenIMFault(.tokenMissing)
  }

  private func check(_ entry: OpenIMTokenStore.Entry) throws(OpenIMFault) {
    switch entry.state {
    case .normal: return
    case .kicked: throw OpenIMFault(.tokenKicked)
    case .expired: throw OpenIMFault(.tokenExpired)
    }
  }

  private func caller(_ userID: String, _ platform: Int64) -> OpenIMCaller {
    OpenIMCaller(userID: userID, platform: platform, isAdmin: userID.utf8.elementsEqual(admin.utf8))
  }

  func issueToken(_ userID: String, platform: Int64, now: Int64) -> String {
    let token = OpenIMToken.issue(userID: userID, platform: platform, now: now / 1000).signed(with: secret)
    if platform == OpenIMPlatform.admin {
      // Older tokens of the admin stay good for a while, so that tools can run side by side.
      tokens.add(token, userID, platform: platform)
    } else {
      tokens.issue(token, userID, platform: platform, policy: loginPolicy, keeping: tokensPerPlatform)
    }
    return token
  }
}

/// Which logins of one user exclude each other (reference §1.5).
enum OpenIMLoginPolicy: Int64, Sendable {
  case everybody = 0
  case onePerPlatform = 1
  case onePerClass = 4
  /// Computers as many as there are; of all other devices one.
  case oneBesideComputers = 5

  func excludes(_ other: Int64, by platform: Int64) -> Bool {
    guard platform != OpenIMPlatform.admin, other != OpenIMPlatform.admin else { return false }
    switch self {
    case .everybody: return false
    case .onePerPlatform: return other == platform
    case .onePerClass: return OpenIMPlatform.classOf(other) == OpenIMPlatform.classOf(platform)
    case .oneBesideComputers:
      return OpenIMPlatform.classOf(other) != .computer && OpenIMPlatform.classOf(platform) != .computer
    }
  }
}
