import ChatJSON
import SendbirdWire
import UnifiedChat

// Users, presence, blocks and push.
extension SendbirdAdapter {
  public func users(_ ids: [UserID]) async throws(ChatError) -> [User] {
    try await wireUsers(ids, .fetchUser).map(SendbirdMapping.user)
  }

  private func wireUsers(_ ids: [UserID], _ operation: ChatError.Operation) async throws(ChatError) -> [SendbirdUser] {
    var found: [UserID: SendbirdUser] = [:]
    for start in stride(from: 0, to: ids.count, by: SendbirdLimits.page) {
      let part = ids[start..<min(ids.count, start + SendbirdLimits.page)]
      var query = SendbirdQuery()
      query.add("limit", Int64(SendbirdLimits.page))
      query.add("active_mode", "all")
      query.add("user_ids", list: part.map(\.rawValue))
      for item in try await call("GET", ["users"], query: query, operation).list("users") {
        if let user = item.object.flatMap(SendbirdUser.init) { found[user.id] = user }
      }
    }
    return ids.compactMap { found[$0] }
  }

  public func updateProfile(
    name: String?, avatarURL: String?, customData: JSONText?
  ) async throws(ChatError) -> User {
    let path = ["users", try session(.updateUser).user.rawValue]
    var body = JSONObject()
    body["nickname"] = name.map { .string($0) }
    body["profile_url"] = avatarURL.map { .string($0) }
    if let customData {
      let record = UserRecord(user: User(id: UserID(path[1]), customData: customData))
      let form = SendbirdUserForm(record, origin: nil, nil)
      guard !form.losses.contains(where: { $0.treatment == .dropped }) else {
        throw ChatError(.tooLarge(limit: 950, unit: .characters), operation: .updateUser, detail: "custom data")
      }
      try await replaceCustomData(form.metadata, path + ["metadata"])
    }
    let json = try await call("PUT", path, body: body, .updateUser)
    guard let wire = SendbirdUser(json) else { throw Self.malformed(.updateUser) }
    let user = SendbirdMapping.user(wire)
    currentUser = user
    return user
  }

  /// The other items of the user are somebody else's: they stay, and take up their room.
  private func replaceCustomData(_ pieces: JSONObject, _ path: [String]) async throws(ChatError) {
    let known = try await call("GET", path, .updateUser)
    let own = Set(SendbirdUserForm.keys)
    let others = known.keys.count { !own.contains($0) }
    guard others + pieces.count <= SendbirdLimits.metadataItems else {
      let room = max(0, SendbirdLimits.metadataItems - others) * SendbirdLimits.metadataValueLength
      throw ChatError(
        .tooLarge(limit: Int64(room), unit: .characters), operation: .updateUser,
        detail: "custom data: \(others) of the user's \(SendbirdLimits.metadataItems) metadata items are not ours")
    }
    _ = try await call("PUT", path, body: ["metadata": .object(pieces), "upsert": true], .updateUser)
    // Pieces of an earlier, longer text must not stay behind the new ones.
    for key in SendbirdUserForm.keys where known[key] != nil && pieces[key] == nil {
      _ = try await call("DELETE", path + [key], .updateUser)
    }
  }

  public func presence(of users: [UserID]) async throws(ChatError) -> [UserID: Presence] {
    var presence: [UserID: Presence] = [:]
    for user in try await wireUsers(users, .presence) { presence[user.id] = SendbirdMapping.user(user).presence }
    return presence
  }

  public func block(_ user: UserID) async throws(ChatError) {
    let me = try session(.block).user.rawValue
    _ = try await call("POST", ["users", me, "block"], body: ["target_id": .string(user.rawValue)], .block)
  }

  public func unblock(_ user: UserID) async throws(ChatError) {
    let me = try session(.block).user.rawValue
    _ = try await call("DELETE", ["users", me, "block", user.rawValue], .block)
  }

  /// Apple's service on Apple platforms, Google's elsewhere.
  private static var pushKind: (path: String, field: String) {
    #if canImport(Darwin)
      ("apns", "apns_device_token")
    #else
      ("gcm", "gcm_reg_token")
    #endif
  }

  public func registerPush(token: String) async throws(ChatError) {
    let me = try session(.registerPush).user.rawValue
    let kind = Self.pushKind
    let body: JSONObject = [kind.field: .string(token), "always_push": true]
    _ = try await call("POST", ["users", me, "push", kind.path], body: body, .registerPush)
  }

  public func unregisterPush(token: String) async throws(ChatError) {
    let me = try session(.registerPush).user.rawValue
    _ = try await call("DELETE", ["users", me, "push", Self.pushKind.path, token], .registerPush)
  }

  static func malformed(_ operation: ChatError.Operation) -> ChatError {
    ChatError(.protocolViolation, operation: operation, detail: "the answer lacks what the protocol promises")
  }
}
