import ChatJSON
import LeanCloudWire

// Devices, and who follows whom. Two who follow one another are friends.

extension LeanCloudEmulator {
  // MARK: Installations

  func createInstallation(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard call.body["deviceToken"]?.string != nil || call.body["installationId"]?.string != nil else {
      throw RESTError(code: 114, text: "deviceToken or installationId is required.")
    }
    let row = ClassRow(
      className: "_Installation", objectID: newObjectID(), columns: Self.writable(call.body), createdAt: now, updatedAt: now)
    installations[Key(row.objectID)] = row
    return ["objectId": .string(row.objectID), "createdAt": .string(LeanCloudID.iso(now))]
  }

  func updateInstallation(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let key = Key(call.parameters.last ?? "")
    guard var row = installations[key] else { throw .notFound() }
    for member in Self.writable(call.body) { row.columns[member.key] = member.value }
    row.updatedAt = now
    installations[key] = row
    return ["objectId": .string(row.objectID), "updatedAt": .string(LeanCloudID.iso(now))]
  }

  // MARK: Friends

  private static func pointer(_ user: String) -> JSONValue {
    ["__type": "Pointer", "className": "_User", "objectId": .string(user)]
  }

  /// The first parameter's user follows the last one's.
  func follow(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let (user, target) = try both(call)
    follow(user, target, attributes: Self.writable(call.body))
    return .object([:])
  }

  func unfollow(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let (user, target) = try both(call)
    for (key, row) in relations where Self.isLink(row, from: user, to: target) { relations[key] = nil }
    return .object([:])
  }

  private func both(_ call: RESTCall) throws(RESTError) -> (user: String, target: String) {
    let user = call.parameters.first ?? ""
    let target = call.parameters.last ?? ""
    guard users[Key(user)] != nil, users[Key(target)] != nil else { throw .notFound("Could not find user.") }
    guard call.access == .master || holds(call, user) else {
      throw RESTError(status: 401, code: 206, text: "The user is not logged in.")
    }
    return (user, target)
  }

  private func holds(_ call: RESTCall, _ user: String) -> Bool {
    guard let token = users[Key(user)]?.sessionToken else { return false }
    return call.request.headers["X-LC-Session"] == token
  }

  /// Either row of one following the other.
  private static func isLink(_ row: ClassRow, from user: String, to target: String) -> Bool {
    func names(_ column: String, _ user: String) -> Bool {
      row.columns[column]?["objectId"]?.string.map { Key($0) == Key(user) } ?? false
    }
    switch row.className {
    case "_Followee": return names("user", user) && names("followee", target)
    case "_Follower": return names("user", target) && names("follower", user)
    default: return false
    }
  }

  private func follow(_ user: String, _ target: String, attributes: JSONObject) {
    guard !relations.values.contains(where: { Self.isLink($0, from: user, to: target) }) else { return }
    addRelation("_Followee", ["user": Self.pointer(user), "followee": Self.pointer(target)], attributes)
    addRelation("_Follower", ["user": Self.pointer(target), "follower": Self.pointer(user)], JSONObject())
  }

  @discardableResult
  private func addRelation(_ name: String, _ columns: JSONObject, _ more: JSONObject) -> ClassRow {
    var columns = columns
    for member in more where columns[member.key] == nil { columns[member.key] = member.value }
    let row = ClassRow(className: name, objectID: newObjectID(), columns: columns, createdAt: now, updatedAt: now)
    relations[Key(row.objectID)] = row
    return row
  }

  func followees(_ call: RESTCall) throws(RESTError) -> JSONValue { links("_Followee", call) }
  func followers(_ call: RESTCall) throws(RESTError) -> JSONValue { links("_Follower", call) }

  /// By object id.
  func relations(of name: String) -> [ClassRow] {
    relations.values.filter { $0.className == name }.sorted { Key($0.objectID) < Key($1.objectID) }
  }

  private func links(_ name: String, _ call: RESTCall) -> JSONValue {
    let user = Key(call.parameters.first ?? "")
    let found = relations(of: name).filter { row in
      row.columns["user"]?["objectId"]?.string.map { Key($0) == user } ?? false
    }
    return ["results": .array(found.prefix(Self.pageSize(call)).map { .object($0.object) })]
  }

  /// Somebody asks to be a friend.
  func requestFriendship(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let user = call.body["user"]?["objectId"]?.string, let friend = call.body["friend"]?["objectId"]?.string,
      users[Key(user)] != nil, users[Key(friend)] != nil
    else { throw .notFound("Could not find user.") }
    var more = Self.writable(call.body)
    more["status"] = nil
    let row = addRelation(
      "_FriendshipRequest", ["user": Self.pointer(user), "friend": Self.pointer(friend), "status": "pending"], more)
    return ["objectId": .string(row.objectID), "createdAt": .string(LeanCloudID.iso(row.createdAt))]
  }

  func acceptFriendship(_ call: RESTCall) throws(RESTError) -> JSONValue { try settle(call, "accepted") }
  func declineFriendship(_ call: RESTCall) throws(RESTError) -> JSONValue { try settle(call, "declined") }

  private func settle(_ call: RESTCall, _ status: String) throws(RESTError) -> JSONValue {
    let key = Key(call.parameters.first ?? "")
    guard var row = relations[key], row.className == "_FriendshipRequest" else { throw .notFound() }
    row.columns["status"] = .string(status)
    row.updatedAt = now
    relations[key] = row
    if status == "accepted", let user = row.columns["user"]?["objectId"]?.string,
      let friend = row.columns["friend"]?["objectId"]?.string
    {
      follow(user, friend, attributes: ["friendStatus": true])
      follow(friend, user, attributes: ["friendStatus": true])
    }
    return ["objectId": .string(row.objectID), "updatedAt": .string(LeanCloudID.iso(now))]
  }
}
