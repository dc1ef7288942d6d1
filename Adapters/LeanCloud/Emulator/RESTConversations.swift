import ChatJSON
import LeanCloudWire

extension LeanCloudEmulator {
  private func kind(of call: RESTCall) -> Conversation.Kind {
    let path = URLText.path(of: call.request.url)
    if path.contains("chatrooms") { return .room }
    return path.contains("service-conversations") ? .service : .normal
  }

  func found(_ call: RESTCall) throws(RESTError) -> Conversation {
    guard let id = call.parameters.first, let conversation = conversation(id) else {
      throw RESTError(status: 404, code: 4303, text: "CONVERSATION_NOT_FOUND")
    }
    return conversation
  }

  /// `client_ids` of a body, or of the query as a JSON array.
  private func clients(_ call: RESTCall) throws(RESTError) -> [String] {
    let value = call.body["client_ids"] ?? call.first("client_ids").flatMap { try? JSONValue(parsing: $0) }
    guard let list = value?.array?.compactMap(\.string), !list.isEmpty else {
      throw RESTError(code: 1, text: "client_ids is required.")
    }
    guard list.allSatisfy(Self.isClientID) else { throw RESTError(code: 4103, text: "INVALID_LOGIN") }
    return OrderedKeys(list).list
  }

  private func changed(_ conversation: Conversation) -> JSONValue {
    ["objectId": .string(conversation.id), "updatedAt": .string(LeanCloudID.iso(conversation.updatedAt))]
  }

  // MARK: The object

  func createConversation(_ call: RESTCall) throws(RESTError) -> JSONValue {
    .object(try create(kind(of: call), call.body, members: call.body["m"]?.array?.compactMap(\.string) ?? []).object())
  }

  func create(_ kind: Conversation.Kind, _ body: JSONObject, members: [String]) throws(RESTError) -> Conversation {
    let members = OrderedKeys(members)
    guard members.list.allSatisfy(Self.isClientID) else { throw RESTError(code: 4103, text: "INVALID_LOGIN") }
    guard members.count <= Self.memberLimit || !limits else { throw RESTError(code: 4304, text: "CONVERSATION_FULL") }
    let isUnique = kind == .normal && body["unique"]?.bool == true
    if isUnique, let found = uniqueConversation(of: members) { return found }
    let conversation = Conversation(id: newObjectID(), kind: kind, createdAt: now)
    conversation.creator = body["c"]?.string ?? ""
    conversation.columns = Self.writable(body)
    if kind == .normal { conversation.members = members }
    for member in conversation.members.list { conversation.joinedAt[Key(member)] = now }
    if isUnique { makeUnique(conversation) }
    add(conversation)
    let creator = conversation.creator
    for member in conversation.members.list { pushEvent("joined", conversation, to: member, by: creator) }
    return conversation
  }

  func listConversations(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let kind = kind(of: call)
    return .object(["results": .array(try query(call) { $0.kind == kind }.map { .object($0.object()) })])
  }

  func listAllConversations(_ call: RESTCall) throws(RESTError) -> JSONValue {
    .object(["results": .array(try query(call) { _ in true }.map { .object($0.object()) })])
  }

  func query(_ call: RESTCall, _ accepts: (Conversation) -> Bool) throws(RESTError) -> [Conversation] {
    guard let condition = call.object("where"),
      let all = find(where: condition ?? JSONObject(), order: call.first("order") ?? "createdAt")
    else { throw RESTError(code: 102, text: "where cannot be read.") }
    let skip = Int(clamping: max(call.number("skip") ?? 0, 0))
    return Array(all.filter(accepts).dropFirst(skip).prefix(Self.pageSize(call)))
  }

  /// Outside 1…1000 the default of 100 holds.
  static func pageSize(_ call: RESTCall) -> Int {
    let asked = call.number("limit") ?? 100
    return (1...1000).contains(asked) ? Int(clamping: asked) : 100
  }

  func getConversation(_ call: RESTCall) throws(RESTError) -> JSONValue { .object(try found(call).object()) }

  func updateConversation(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try found(call)
    let changes = apply(call.body, to: conversation)
    announceUpdate(call.body, changes, conversation, by: "", except: nil)
    return changed(conversation)
  }

  func deleteConversation(_ call: RESTCall) throws(RESTError) -> JSONValue {
    delete(try found(call))
    return .object([:])
  }

  /// The row goes; the messages stay in history until its end.
  func delete(_ conversation: Conversation) {
    let key = Key(conversation.id)
    if !conversation.messages.isEmpty { forgotten[key] = conversation }
    for member in conversation.members.list { conversationsOfClient[Key(member)]?.remove(key) }
    if let id = conversation.uniqueID { uniqueConversations[Key(id)] = nil }
    conversations[key] = nil
    conversationOrder.removeAll { Key($0) == key }
    appHistoryIsStale = true
  }

  // MARK: Members

  func addMembers(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try found(call)
    let new = try clients(call).filter { !conversation.members.contains($0) }
    guard conversation.members.count + new.count <= Self.memberLimit || !limits else {
      throw RESTError(code: 4304, text: "CONVERSATION_FULL")
    }
    let before = conversation.members.list
    for member in new { addMember(member, to: conversation) }
    conversation.updatedAt = now
    announceJoin(new, conversation, by: "", to: before)
    return changed(conversation)
  }

  func removeMembers(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try found(call)
    let gone = try clients(call).filter { conversation.members.contains($0) }
    for member in gone { removeMember(member, from: conversation) }
    conversation.updatedAt = now
    announceLeave(gone, conversation, by: "")
    return changed(conversation)
  }

  func listMembers(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try found(call)
    let isRoom = conversation.kind == .room
    // Each of the two kinds has its list under its own path.
    if kind(of: call) == .room, !isRoom { throw RESTError(code: 4316, text: "TRANSIENT_CONVERSATION_REQUIRED") }
    if kind(of: call) == .normal, isRoom { throw RESTError(code: 4314, text: "NORMAL_CONVERSATION_REQUIRED") }
    let list = isRoom ? Array(conversation.present.list.prefix(50)) : conversation.members.list
    return ["result": .strings(list)]
  }

  func onlineCount(_ call: RESTCall) throws(RESTError) -> JSONValue {
    ["result": .int(Int64(try found(call).present.count))]
  }

  func roomOnlines(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let id = call.first("gid"), let conversation = conversation(id) else { throw .notFound() }
    return ["result": .int(Int64(conversation.present.count))]
  }

  func addMutes(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try found(call)
    for client in try clients(call) { conversation.pushMuted.insert(client) }
    return changed(conversation)
  }

  func removeMutes(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try found(call)
    for client in try clients(call) { conversation.pushMuted.remove(client) }
    return changed(conversation)
  }

  func listMutes(_ call: RESTCall) throws(RESTError) -> JSONValue {
    ["result": .strings(try found(call).pushMuted.list)]
  }

  // MARK: Roles

  func setMemberInfo(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try found(call)
    guard hasRoles else { throw RESTError(code: 4325, text: "CONVERSATION_MEMBER_INFO_FEATURE_DISABLED") }
    let named = call.parameters.dropFirst().first.flatMap { info in
      conversation.roles.first { $0.value.infoID == info }?.key.text
    }
    guard let client = call.body["clientId"]?.string ?? named else {
      throw RESTError(code: 1, text: "clientId is required.")
    }
    guard let role = call.body["role"]?.string, ["Owner", "Manager", "Member"].contains(role) else {
      throw RESTError(code: 4321, text: "UNKNOWN_CONVERSATION_ROLE")
    }
    setRole(role, of: client, in: conversation)
    let info = conversation.roles[Key(client)]?.infoID ?? ""
    announceRole(["pid": .string(client), "role": .string(role), "infoId": .string(info)], conversation, by: "")
    return ["clientId": .string(client), "objectId": .string(info), "role": .string(role)]
  }

  func removeMemberInfo(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try found(call)
    guard let client = conversation.roles.first(where: { $0.value.infoID == call.parameters.last })?.key else {
      throw .notFound()
    }
    conversation.roles[client] = nil
    return .object([:])
  }

  func listMemberInfos(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try found(call)
    let wanted = call.first("role")
    let rows = conversation.roles.sorted { $0.key < $1.key }.filter { wanted == nil || $0.value.role == wanted }
    let skip = Int(clamping: max(call.number("skip") ?? 0, 0))
    return [
      "results": .array(
        rows.dropFirst(skip).prefix(Self.pageSize(call)).map {
          ["clientId": .string($0.key.text), "objectId": .string($0.value.infoID), "role": .string($0.value.role)]
        })
    ]
  }

  // MARK: Silence and block

  func addSilence(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let (conversation, clients) = (try found(call), try clients(call))
    guard holds(silences: clients, conversation) else {
      throw RESTError(code: 4561, text: LeanCloudErrors.row(4561).name)
    }
    setSilenced(.max, clients, conversation, by: "")
    return .object([:])
  }

  func removeSilence(_ call: RESTCall) throws(RESTError) -> JSONValue {
    setSilenced(nil, try clients(call), try found(call), by: "")
    return .object([:])
  }

  func listSilence(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let all = try found(call).silenced.filter { $0.value == .max }.keys.sorted().map(\.text)
    return page(all, call)
  }

  /// `limit` (10) and `next`: the last client of the page before.
  private func page(_ all: [String], _ call: RESTCall) -> JSONValue {
    let limit = Int(clamping: min(max(call.number("limit") ?? 10, 1), 100))
    let start = call.first("next").flatMap { next in all.firstIndex { Key($0) > Key(next) } ?? all.count } ?? 0
    let page = all[start...].prefix(limit)
    var object = JSONObject()
    object["client_ids"] = .strings(page)
    if start + page.count < all.count { object["next"] = page.last.map { .string($0) } }
    return .object(object)
  }

  func addTemporarySilence(_ call: RESTCall) throws(RESTError) -> JSONValue { try silence(call, in: try found(call)) }

  func silence(_ call: RESTCall, in conversation: Conversation) throws(RESTError) -> JSONValue {
    guard let client = call.body["client_id"]?.string, let ttl = call.body["ttl"]?.int, (1...86_400).contains(ttl)
    else {
      throw RESTError(code: 1, text: "client_id and a ttl of 1 to 86400 are required.")
    }
    setSilenced(now &+ ttl &* 1000, [client], conversation, by: "")
    return .object([:])
  }

  func removeTemporarySilence(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let client = call.first("client_id") else { throw RESTError(code: 1, text: "client_id is required.") }
    setSilenced(nil, [client], try found(call), by: "")
    return .object([:])
  }

  func addBlocks(_ call: RESTCall) throws(RESTError) -> JSONValue {
    try requireBlacklist()
    let (conversation, clients) = (try found(call), try clients(call))
    guard holds(blocks: clients, conversation) else {
      throw RESTError(code: 4543, text: LeanCloudErrors.row(4543).name)
    }
    setBlocked(true, clients, conversation, by: "")
    return .object([:])
  }

  func removeBlocks(_ call: RESTCall) throws(RESTError) -> JSONValue {
    try requireBlacklist()
    setBlocked(false, try clients(call), try found(call), by: "")
    return .object([:])
  }

  func listBlocks(_ call: RESTCall) throws(RESTError) -> JSONValue {
    try requireBlacklist()
    return page(try found(call).blocked.list.sorted { Key($0) < Key($1) }, call)
  }
}
