import ChatJSON
import OpenIMWire
import UnifiedChat

extension OpenIMAdapter {
  /// The vendor takes 1,000 ids a call.
  private static let usersPerCall = 500

  public func users(_ ids: [UserID]) async throws(ChatError) -> [User] {
    var known: [UserID: User] = [:]
    for start in stride(from: 0, to: ids.count, by: Self.usersPerCall) {
      let some = ids[start..<min(ids.count, start + Self.usersPerCall)]
      let data = try await call(
        "/user/get_users_info", ["userIDs": .array(some.map { .string($0.rawValue) })], for: .fetchUser)
      for json in data["usersInfo"]?.array ?? [] {
        if let user = OpenIMMapping.user(json) { known[user.id] = user }
      }
    }
    return ids.compactMap { known[$0] }
  }

  public func updateProfile(
    name: String?, avatarURL: String?, customData: JSONText?
  ) async throws(ChatError) -> User {
    let me = try me(.updateUser)
    var info: JSONObject = ["userID": .string(me.rawValue)]
    info["nickname"] = name.map { .string($0) }
    info["faceURL"] = avatarURL.map { .string($0) }
    if let customData {
      let now = try await call("/user/get_users_info", ["userIDs": [.string(me.rawValue)]], for: .updateUser)
      info["ex"] = .string(
        OpenIMExtra.replacing(customData: customData, in: now["usersInfo"]?[0]?["ex"]?.string ?? ""))
    }
    try await call("/user/update_user_info_ex", ["userInfo": .object(info)], for: .updateUser)
    guard let user = try await users([me]).first else { throw ChatError(.notFound, operation: .updateUser) }
    currentUser = user
    return user
  }

  // MARK: Presence

  public func presence(of users: [UserID]) async throws(ChatError) -> [UserID: Presence] {
    let data = try await call(
      "/user/get_users_status",
      [
        "userID": .string(try me(.presence).rawValue), "userIDs": .array(users.map { .string($0.rawValue) }),
      ], for: .presence)
    var found: [UserID: Presence] = [:]
    for json in data["statusList"]?.array ?? [] {
      guard let id = json["userID"]?.string else { continue }
      found[UserID(id)] = json["status"]?.int == 1 ? .online : .offline(lastSeen: nil)
    }
    return found
  }

  public func subscribePresence(of users: [UserID]) async throws(ChatError) {
    let ids = JSONValue.array(users.map { .string($0.rawValue) })
    let tips = try await live(.presence).request(.presence, ["subscribeUserID": ids], for: .presence)
    watched.formUnion(users)
    tellPresence(tips)
  }

  public func unsubscribePresence(of users: [UserID]) async throws(ChatError) {
    let ids = JSONValue.array(users.map { .string($0.rawValue) })
    _ = try await live(.presence).request(.presence, ["unsubscribeUserID": ids], for: .presence)
    watched.subtract(users)
  }

  func tellPresence(_ tips: JSONValue) {
    for entry in tips["subscribers"]?.array ?? [] {
      guard let id = entry["userID"]?.string, watched.contains(UserID(id)) else { continue }
      let isOnline = entry["onlinePlatformIDs"]?.array?.isEmpty == false
      tell(.presenceChanged(UserID(id), isOnline ? .online : .offline(lastSeen: nil)))
    }
  }

  // MARK: Blocking

  public func block(_ user: UserID) async throws(ChatError) {
    let me = try me(.block)
    try await call(
      "/friend/add_black",
      ["ownerUserID": .string(me.rawValue), "blackUserID": .string(user.rawValue), "ex": ""], for: .block)
  }

  public func unblock(_ user: UserID) async throws(ChatError) {
    let me = try me(.block)
    try await call(
      "/friend/remove_black",
      ["ownerUserID": .string(me.rawValue), "blackUserID": .string(user.rawValue)], for: .block)
  }
}
