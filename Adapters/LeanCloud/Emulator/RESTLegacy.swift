import ChatJSON
import LeanCloudWire

// Version 1.1 of what 1.2 serves under other paths, and what a client does to conversations.

extension LeanCloudEmulator {
  private func conversation(named key: String, _ call: RESTCall) throws(RESTError) -> Conversation {
    guard let id = call.body[key]?.string ?? call.first(key), let conversation = conversation(id) else {
      throw RESTError(status: 404, code: 4303, text: "CONVERSATION_NOT_FOUND")
    }
    return conversation
  }

  private func service(_ call: RESTCall) throws(RESTError) -> Conversation {
    let conversation = try conversation(named: "conv_id", call)
    guard conversation.kind == .service else { throw RESTError(code: 4313, text: "SYSTEM_CONVERSATION_REQUIRED") }
    return conversation
  }

  // MARK: Service conversations

  func subscribe11(_ call: RESTCall) throws(RESTError) -> JSONValue {
    try subscribe(call.body["client_id"]?.string, to: try service(call))
  }

  func unsubscribe11(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try service(call)
    guard let client = call.first("client_id") ?? call.body["client_id"]?.string else {
      throw RESTError(code: 1, text: "client_id is required.")
    }
    removeMember(client, from: conversation)
    return .object([:])
  }

  func subscribers11(_ call: RESTCall) throws(RESTError) -> JSONValue { subscribers(of: try service(call), call) }

  func countSubscribers11(_ call: RESTCall) throws(RESTError) -> JSONValue {
    ["count": .int(Int64(try service(call).members.count))]
  }

  func subscribed11(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let client = call.first("client_id") else { throw RESTError(code: 1, text: "client_id is required.") }
    return services(of: client, call)
  }

  func broadcast11(_ call: RESTCall) throws(RESTError) -> JSONValue {
    var body = call.body
    body["from_client"] = body["from_client"] ?? body["from_peer"]
    return try send(body, to: try service(call), receivers: nil)
  }

  // MARK: Chat rooms

  func roomMembers11(_ call: RESTCall) throws(RESTError) -> JSONValue {
    ["result": .strings(try conversation(named: "gid", call).present.list.prefix(50))]
  }

  // MARK: Silence for a time

  func addTemporarySilence11(_ call: RESTCall) throws(RESTError) -> JSONValue {
    try silence(call, in: try conversation(named: "conv_id", call))
  }

  func removeTemporarySilence11(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try conversation(named: "conv_id", call)
    guard let client = call.body["client_id"]?.string ?? call.first("client_id") else {
      throw RESTError(code: 1, text: "client_id is required.")
    }
    setSilenced(nil, [client], conversation, by: "")
    return .object([:])
  }

  // MARK: What a client does not want

  /// A client that blocks a conversation cannot be added to it.
  func blockConversation(_ call: RESTCall) throws(RESTError) -> JSONValue {
    try requireBlacklist()
    let client = call.parameters.first ?? ""
    let conversation = try conversation(named: "conv_id", call)
    blockedByClient[Key(client), default: OrderedKeys()].insert(conversation.id)
    return .object([:])
  }

  func unblockConversation(_ call: RESTCall) throws(RESTError) -> JSONValue {
    try requireBlacklist()
    let conversation = try conversation(named: "conv_id", call)
    blockedByClient[Key(call.parameters.first ?? "")]?.remove(conversation.id)
    return .object([:])
  }

  func blockedConversations(_ call: RESTCall) throws(RESTError) -> JSONValue {
    try requireBlacklist()
    let all = (blockedByClient[Key(call.parameters.first ?? "")]?.list ?? []).sorted { Key($0) < Key($1) }
    let start = call.first("next").flatMap { next in all.firstIndex { Key($0) > Key(next) } ?? all.count } ?? 0
    let page = all[start...].prefix(Int(clamping: min(max(call.number("limit") ?? 10, 1), 100)))
    var object = JSONObject()
    object["conv_ids"] = .strings(page)
    if start + page.count < all.count { object["next"] = page.last.map { .string($0) } }
    return .object(object)
  }

  func requireBlacklist() throws(RESTError) {
    guard hasBlacklist else { throw RESTError(status: 403, code: 4544, text: "BLACKLIST_FEATURE_DISABLED") }
  }
}
