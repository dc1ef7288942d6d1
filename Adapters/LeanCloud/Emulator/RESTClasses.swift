import ChatCrypto
import ChatJSON
import LeanCloudWire

// The storage classes that chat uses: `_Conversation`, `_User`, `_File`, `_ConversationMemberInfo`, `_SysMessage`,
// `_Installation`, `_Followee`, `_Follower`, `_FriendshipRequest`, and of the 2014 model `AVOSRealtimeGroups`. Other
// classes are not found.

extension LeanCloudEmulator {
  /// The largest page of a query and of a scan.
  static let largestPage = 1000

  /// Every row of a class in the order of its creation.
  private func rows(of name: String) throws(RESTError) -> [(id: String, row: JSONObject)] {
    switch name {
    case "_Conversation":
      return conversationOrder.compactMap { conversation($0) }
        .filter { !$0.kind.isFirstModel && $0.kind != .temporary }.map { ($0.id, $0.object()) }
    case "AVOSRealtimeGroups":
      return conversationOrder.compactMap { conversation($0) }.filter { $0.kind == .group }
        .map { ($0.id, $0.object()) }
    case "_User": return userOrder.compactMap { users[Key($0)] }.map { ($0.objectID, $0.object) }
    case "_File": return fileOrder.compactMap { files[Key($0)] }.map { ($0.objectID, object(of: $0)) }
    case "_ConversationMemberInfo": return memberInfoRows()
    case "_SysMessage": return uplinkRows()
    case "_Installation": return installations.values.map { ($0.objectID, $0.object) }.sorted { Key($0.0) < Key($1.0) }
    case "_Followee", "_Follower", "_FriendshipRequest":
      return relations(of: name).map { ($0.objectID, $0.object) }
    default: throw RESTError(status: 404, code: 101, text: "Class or object doesn't exists.")
    }
  }

  private func memberInfoRows() -> [(id: String, row: JSONObject)] {
    conversationOrder.compactMap { conversation($0) }.flatMap { conversation in
      conversation.roles.sorted { $0.key < $1.key }.map { entry in
        var row = JSONObject()
        row["objectId"] = .string(entry.value.infoID)
        row["cid"] = .string(conversation.id)
        row["clientId"] = .string(entry.key.text)
        row["role"] = .string(entry.value.role)
        row["createdAt"] = .string(LeanCloudID.iso(conversation.createdAt))
        row["updatedAt"] = .string(LeanCloudID.iso(conversation.updatedAt))
        return (entry.value.infoID, row)
      }
    }
  }

  /// What subscribers wrote to a service conversation.
  private func uplinkRows() -> [(id: String, row: JSONObject)] {
    conversationOrder.compactMap { conversation($0) }.filter { $0.kind == .service }.flatMap { conversation in
      conversation.messages.filter { $0.isUplink }.map { message in
        let id = LeanCloudID.objectID(for: "uplink:\(message.id)")
        var row = JSONObject()
        row["objectId"] = .string(id)
        row["ackAt"] = .int(message.ackAt ?? 0)
        row["bin"] = .bool(message.isBinary)
        row["conv"] = ["__type": "Pointer", "className": "_Conversation", "objectId": .string(conversation.id)]
        row["data"] = .string(message.data)
        row["from"] = .string(message.from)
        row["fromIp"] = .string(message.fromIP)
        row["msgId"] = .string(message.id)
        row["timestamp"] = .int(message.timestamp)
        row["createdAt"] = .string(LeanCloudID.iso(message.timestamp))
        row["updatedAt"] = row["createdAt"]
        return (id, row)
      }
    }
  }

  private static let masterClasses: Set<String> = [
    "_User", "_ConversationMemberInfo", "_Installation", "_SysMessage", "_Followee", "_Follower", "_FriendshipRequest",
  ]

  private func mayRead(_ name: String, _ call: RESTCall) throws(RESTError) {
    if name == "_ConversationMemberInfo", holdsSession(call) { return }
    if Self.masterClasses.contains(name), call.access != .master {
      throw RESTError(status: 403, code: 403, text: "Forbidden to find by class permissions.")
    }
  }

  /// A client that is logged in to the realtime service shows its session token.
  func holdsSession(_ call: RESTCall) -> Bool {
    guard let client = call.first("client_id"), let token = call.request.headers["X-LC-IM-Session-Token"],
      let issued = tokens[Key(token)]
    else { return false }
    return Key(issued.peer) == Key(client) && issued.expiresAt > now
  }

  func queryClass(_ call: RESTCall) throws(RESTError) -> JSONValue {
    try queryRows(call.parameters.first ?? "", call)
  }

  func queryUsers(_ call: RESTCall) throws(RESTError) -> JSONValue { try queryRows("_User", call) }

  private func queryRows(_ name: String, _ call: RESTCall) throws(RESTError) -> JSONValue {
    try mayRead(name, call)
    let found = try matching(name, call)
    var result = JSONObject()
    let skip = Int(clamping: max(call.number("skip") ?? 0, 0))
    let order = call.first("order") ?? "createdAt"
    let byID = Dictionary(found.map { (Key($0.id), $0.row) }, uniquingKeysWith: { first, _ in first })
    if call.first("limit") != "0" {
      let ids = Where.sort(found, by: order).dropFirst(skip).prefix(Self.pageSize(call))
      result["results"] = .array(ids.compactMap { byID[Key($0)].map { .object($0) } })
    } else {
      result["results"] = []
    }
    if call.first("count") == "1" { result["count"] = .int(Int64(found.count)) }
    return .object(result)
  }

  private func matching(_ name: String, _ call: RESTCall) throws(RESTError) -> [(id: String, row: JSONObject)] {
    guard let condition = call.object("where") else { throw RESTError(code: 107, text: "where is not a JSON object.") }
    guard let condition else { return try rows(of: name) }
    if name == "_Conversation" {
      guard let found = find(where: condition, order: "createdAt") else {
        throw RESTError(code: 102, text: "where cannot be read.")
      }
      return found.map { ($0.id, $0.object()) }
    }
    var matching: [(id: String, row: JSONObject)] = []
    for item in try rows(of: name) {
      guard let isMatch = Where.matches(item.row, condition) else {
        throw RESTError(code: 102, text: "where cannot be read.")
      }
      if isMatch { matching.append(item) }
    }
    return matching
  }

  /// By object id, from a cursor; the end has none.
  func scanClass(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let name = call.parameters.first ?? ""
    let all = try matching(name, call).sorted { Key($0.id) < Key($1.id) }
    var start = 0
    if let cursor = call.first("cursor") {
      guard let last = Base64.urlDecode(cursor).flatMap({ String(validating: $0, as: UTF8.self) }) else {
        throw RESTError(code: 1, text: "cursor is invalid.")
      }
      start = all.firstIndex { Key($0.id) > Key(last) } ?? all.count
    }
    let page = all[start...].prefix(Self.pageSize(call))
    var result = JSONObject()
    result["results"] = .array(
      page.map { item in
        var row = item.row
        // A scan of files tells the key, not the address.
        if name == "_File" { row["url"] = nil }
        return .object(row)
      })
    if start + page.count < all.count, let last = page.last {
      result["cursor"] = .string(Base64.urlEncode(Array(last.id.utf8)))
    }
    return .object(result)
  }

  func getRow(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let name = call.parameters.first ?? ""
    let id = call.parameters.last ?? ""
    try mayRead(name, call)
    switch name {
    case "_Conversation":
      guard let conversation = conversation(id) else { throw .notFound() }
      return .object(conversation.object())
    case "_User":
      guard let user = users[Key(id)] else { throw .notFound() }
      return .object(user.object)
    default:
      guard let item = try rows(of: name).first(where: { Key($0.id) == Key(id) }) else { throw .notFound() }
      return .object(item.row)
    }
  }

  // MARK: Writing

  func createRow(_ call: RESTCall) throws(RESTError) -> JSONValue {
    switch call.parameters.first {
    case "_Conversation":
      let members = call.body["m"]?.array ?? call.body["m"]?["objects"]?.array ?? []
      let kind: Conversation.Kind =
        call.body["tr"]?.bool == true ? .room : call.body["sys"]?.bool == true ? .service : .normal
      return .object(try create(kind, call.body, members: members.compactMap(\.string)).object())
    case "_User": return try createUser(call)
    default: throw RESTError(status: 404, code: 101, text: "Class or object doesn't exists.")
    }
  }

  func updateRow(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let id = call.parameters.last ?? ""
    if call.parameters.first == "_User" { return try updateUser(call) }
    guard call.parameters.first == "_Conversation", let conversation = conversation(id) else { throw .notFound() }
    if let operation = call.body["m"] { try changeMembers(conversation, operation) }
    let changes = apply(call.body, to: conversation)
    announceUpdate(call.body, changes, conversation, by: "", except: nil)
    return ["objectId": .string(id), "updatedAt": .string(LeanCloudID.iso(conversation.updatedAt))]
  }

  private func changeMembers(_ conversation: Conversation, _ operation: JSONValue) throws(RESTError) {
    let named = (operation["objects"]?.array ?? operation.array ?? []).compactMap(\.string)
    guard named.allSatisfy(Self.isClientID) else { throw RESTError(code: 4103, text: "INVALID_LOGIN") }
    let before = conversation.members.list
    if operation["__op"]?.string == "Remove" {
      let gone = named.filter { conversation.members.contains($0) }
      for member in gone { removeMember(member, from: conversation) }
      return announceLeave(gone, conversation, by: "")
    }
    let new = named.filter { !conversation.members.contains($0) }
    guard before.count + new.count <= Self.memberLimit || !limits else {
      throw RESTError(code: 4304, text: "CONVERSATION_FULL")
    }
    for member in new { addMember(member, to: conversation) }
    announceJoin(new, conversation, by: "", to: before)
  }

  func deleteRow(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard call.access == .master else { throw RESTError(status: 403, code: 403, text: "Forbidden.") }
    let id = call.parameters.last ?? ""
    switch call.parameters.first {
    case "_Conversation":
      guard let conversation = conversation(id) else { throw .notFound() }
      delete(conversation)
    case "_User": return try deleteUser(call)
    default: throw .notFound()
    }
    return .object([:])
  }

  func deleteUser(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let id = call.parameters.last ?? ""
    guard users.removeValue(forKey: Key(id)) != nil else { throw .notFound("Could not find user.") }
    userOrder.removeAll { Key($0) == Key(id) }
    return .object([:])
  }

  // MARK: Users

  func getUser(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let user = users[Key(call.parameters.first ?? "")] else { throw .notFound("Could not find user.") }
    return .object(user.object)
  }

  /// With the master key an import may bring its own object id.
  func createUser(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let username = call.body["username"]?.string, !username.isEmpty else {
      throw RESTError(code: 200, text: "Username is missing or empty.")
    }
    guard !users.values.contains(where: { Key($0.username) == Key(username) }) else {
      throw RESTError(code: 202, text: "Username has already been taken.")
    }
    let imported = call.access == .master ? call.body["objectId"]?.string : nil
    var columns = call.body
    for key in ["username", "password", "objectId"] { columns[key] = nil }
    let row = UserRow(
      objectID: imported ?? newObjectID(), username: username, columns: columns,
      sessionToken: Hex.encode(randomBytes(12)), createdAt: now, updatedAt: now)
    guard users[Key(row.objectID)] == nil else { throw RESTError(code: 137, text: "objectId exists.") }
    addUser(row)
    return [
      "objectId": .string(row.objectID), "createdAt": .string(LeanCloudID.iso(now)),
      "sessionToken": .string(row.sessionToken ?? ""),
    ]
  }

  func updateUser(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let id = call.parameters.last ?? ""
    guard var user = users[Key(id)] else { throw .notFound("Could not find user.") }
    let isOwn = user.sessionToken != nil && call.request.headers["X-LC-Session"] == user.sessionToken
    guard call.access == .master || isOwn else {
      throw RESTError(status: 401, code: 206, text: "The user is not logged in.")
    }
    for member in call.body
    where !["objectId", "createdAt", "updatedAt", "sessionToken", "password"].contains(member.key) {
      if member.key == "username" {
        user.username = member.value.string ?? user.username
        continue
      }
      user.columns[member.key] = member.value["__op"]?.string == "Delete" || member.value.isNull ? nil : member.value
    }
    user.updatedAt = now
    users[Key(id)] = user
    return ["objectId": .string(id), "updatedAt": .string(LeanCloudID.iso(now))]
  }

  /// Passwords are not kept: a user is let in by name, or by name and token where the emulator was started with one.
  func login(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let username = call.body["username"]?.string,
      let user = users.values.first(where: { Key($0.username) == Key(username) })
    else { throw .notFound("Could not find user.") }
    guard options.openAuthentication || call.body["password"]?.string == user.sessionToken else {
      throw RESTError(code: 210, text: "The username and password mismatch.")
    }
    var object = user.object
    object["sessionToken"] = user.sessionToken.map { .string($0) }
    return .object(object)
  }
}
