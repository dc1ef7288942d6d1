import ChatJSON
import LeanCloudWire

// Service conversations: subscribers, messages to some of them, broadcasts to all.

extension LeanCloudEmulator {
  /// Broadcasts to the subscribers of a service conversation: a minute, and a day.
  static let broadcastsPerMinute = 30
  static let broadcastsPerDay = 1000
  /// Messages to everybody of the app: a minute, and a day.
  static let appBroadcastsPerMinute = 10
  static let appBroadcastsPerDay = 30
  static let receiversPerMessage = 20

  private func service(_ call: RESTCall) throws(RESTError) -> Conversation {
    let conversation = try found(call)
    guard conversation.kind == .service else { throw RESTError(code: 4313, text: "SYSTEM_CONVERSATION_REQUIRED") }
    return conversation
  }

  // MARK: Subscribers

  func addSubscriber(_ call: RESTCall) throws(RESTError) -> JSONValue {
    try subscribe(call.body["client_id"]?.string, to: try service(call))
  }

  func subscribe(_ client: String?, to conversation: Conversation) throws(RESTError) -> JSONValue {
    guard let client, Self.isClientID(client) else { throw RESTError(code: 1, text: "client_id is required.") }
    addMember(client, to: conversation)
    return .object([:])
  }

  func removeSubscriber(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try service(call)
    if let client = call.parameters.last { removeMember(client, from: conversation) }
    return .object([:])
  }

  func listSubscribers(_ call: RESTCall) throws(RESTError) -> JSONValue { subscribers(of: try service(call), call) }

  /// At most fifty, by client; `client_id` is the last one of the page before.
  func subscribers(of conversation: Conversation, _ call: RESTCall) -> JSONValue {
    let all = conversation.members.list.sorted { Key($0) < Key($1) }
    let start = call.first("client_id").flatMap { last in all.firstIndex { Key($0) > Key(last) } ?? all.count } ?? 0
    let limit = Int(clamping: min(max(call.number("limit") ?? 50, 1), 50))
    return .array(all[start...].prefix(limit).map { subscription(of: $0, conversation) })
  }

  private func subscription(of client: String, _ conversation: Conversation) -> JSONValue {
    [
      "timestamp": .int(conversation.joinedAt[Key(client)] ?? conversation.createdAt), "subscriber": .string(client),
      "conv_id": .string(conversation.id),
    ]
  }

  func countSubscribers(_ call: RESTCall) throws(RESTError) -> JSONValue {
    ["count": .int(Int64(try service(call).members.count))]
  }

  /// What one client is subscribed to: by time and id, from a place on, `old` backwards.
  func clientServices(_ call: RESTCall) throws(RESTError) -> JSONValue {
    services(of: call.parameters.first ?? "", call)
  }

  func services(of client: String, _ call: RESTCall) -> JSONValue {
    let isBackward = call.first("direction") == "old"
    let all = (conversationsOfClient[Key(client)] ?? []).compactMap { conversations[$0] }
      .filter { $0.kind == .service }
      .map { (place: Place(timestamp: $0.joinedAt[Key(client)] ?? $0.createdAt, id: Key($0.id)), conversation: $0) }
      .sorted { isBackward ? $0.place > $1.place : $0.place < $1.place }
    var rest = all[...]
    if let time = call.number("timestamp") {
      let start = Place(timestamp: time, id: Key(call.first("conv_id") ?? ""))
      rest = rest.drop { isBackward ? $0.place >= start : $0.place <= start }
    }
    let limit = Int(clamping: min(max(call.number("limit") ?? 50, 1), 50))
    return .array(rest.prefix(limit).map { subscription(of: client, $0.conversation) })
  }

  // MARK: Messages to some

  func sendServiceMessage(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try service(call)
    let receivers = call.body["to_clients"]?.array?.compactMap(\.string) ?? []
    guard !receivers.isEmpty, receivers.count <= Self.receiversPerMessage || !limits else {
      throw RESTError(code: 1, text: "to_clients: 1 to \(Self.receiversPerMessage).")
    }
    return try send(call.body, to: conversation, receivers: receivers)
  }

  /// What one subscriber sees of the conversation without the broadcasts.
  func subscriberMessages(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try service(call)
    return personalHistory(of: call.parameters.last ?? "", in: conversation, call)
  }

  func deleteSubscriberMessage(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try service(call)
    delete(
      try located(
        conversation, call.parameters.last, timestamp: call.number("timestamp"), from: call.first("from_client")),
      conversation)
    return .object([:])
  }

  // MARK: Broadcasts

  func broadcast(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try service(call)
    try takeBroadcast("subscribers", minute: Self.broadcastsPerMinute, day: Self.broadcastsPerDay)
    return try send(call.body, to: conversation, receivers: nil)
  }

  private func takeBroadcast(_ name: String, minute: Int, day: Int) throws(RESTError) {
    guard limits else { return }
    guard rates.take("broadcast \(name)", limit: minute, now: now),
      rates.take("broadcast \(name) a day", limit: day, now: now, window: 86_400_000)
    else { throw RESTError(status: 429, code: 429, text: "Too many broadcasts.") }
  }

  /// To everybody who is or comes online, until a time; kept apart from the histories.
  func broadcastToAll(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let body = call.body
    guard let id = body["conv_id"]?.string, let conversation = conversation(id), conversation.kind == .service else {
      throw RESTError(code: 4313, text: "SYSTEM_CONVERSATION_REQUIRED")
    }
    guard let from = (body["from_client"] ?? body["from_peer"])?.string, !from.isEmpty else {
      throw RESTError(code: 1, text: "from_client is required.")
    }
    let month: Int64 = 31 * 86_400_000
    let until = body["valid_till"]?.int ?? (now &+ month)
    guard until > now, until <= now &+ month || !limits else {
      throw RESTError(code: 1, text: "valid_till: at most a month.")
    }
    try takeBroadcast("everybody", minute: Self.appBroadcastsPerMinute, day: Self.appBroadcastsPerDay)
    let message = StoredMessage(id: newMessageID(), from: from, timestamp: now, data: try text(body["message"]))
    let isTransient = body["transient"]?.bool ?? false
    if !isTransient { broadcasts.append(Broadcast(conversation: id, message: message, validUntil: until)) }
    var frame = directFrame(message, in: conversation)
    if isTransient { frame["transient"] = true }
    for peer in online.keys.sorted() {
      push(frame, to: peer.text)
      if !isTransient { toldBroadcasts[peer, default: []].insert(Key(message.id)) }
    }
    return ["msg-id": .string(message.id), "timestamp": .int(message.timestamp)]
  }

  func listBroadcasts(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let wanted = call.first("conv_id").map(Key.init)
    let skip = Int(clamping: max(call.number("skip") ?? 0, 0))
    let found = broadcasts.filter { wanted == nil || Key($0.conversation) == wanted }.reversed()
    return .array(
      found.dropFirst(skip).prefix(Self.pageSize(call)).map { item in
        [
          "msg-id": .string(item.message.id), "timestamp": .int(item.message.timestamp),
          "from": .string(item.message.from), "data": .string(item.message.data), "conv-id": .string(item.conversation),
          "valid-till": .int(item.validUntil),
        ]
      })
  }

  func deleteBroadcast(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let id = call.parameters.last ?? call.first("mid"),
      let index = broadcasts.firstIndex(where: { Key($0.message.id) == Key(id) })
    else { throw RESTError(status: 404, code: 4404, text: "MESSAGE_NOT_FOUND") }
    broadcasts.remove(at: index)
    return .object([:])
  }

  /// A client that comes online gets what was said to everybody since it was last told.
  func pushBroadcasts(_ session: Session, on connection: Connection) {
    for item in broadcasts where item.validUntil > now {
      guard let conversation = conversation(item.conversation) else { continue }
      var told = toldBroadcasts[Key(session.peer)] ?? []
      guard told.insert(Key(item.message.id)).inserted else { continue }
      toldBroadcasts[Key(session.peer)] = told
      var frame = directFrame(item.message, in: conversation)
      frame.peerID = session.peer
      if connection.codec.subprotocol.isNamed { frame["service"] = 2 }
      send(frame, to: connection)
    }
  }
}

/// Something said to everybody of the app.
struct Broadcast: Sendable {
  var conversation: String
  var message: StoredMessage
  var validUntil: Int64
}
