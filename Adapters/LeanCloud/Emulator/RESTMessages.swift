import ChatJSON
import LeanCloudWire

extension LeanCloudEmulator {
  // MARK: Sending

  func sendMessage(_ call: RESTCall) throws(RESTError) -> JSONValue {
    try send(call.body, to: try found(call), receivers: call.body["to_clients"]?.array?.compactMap(\.string))
  }

  func send(
    _ body: JSONObject, to conversation: Conversation, receivers: [String]?
  ) throws(RESTError) -> JSONValue {
    guard let from = body["from_client"]?.string, !from.isEmpty else {
      throw RESTError(code: 1, text: "from_client is required.")
    }
    let mentions = body["mention_client_ids"]?.array?.compactMap(\.string) ?? []
    guard mentions.count <= 20 || !limits else { throw RESTError(code: 1, text: "mention_client_ids: at most 20.") }
    return try post(
      Posting(
        from: from, data: try text(body["message"]), isTransient: body["transient"]?.bool ?? false,
        mentions: mentions, mentionsAll: body["mention_all"]?.bool ?? false, receivers: receivers,
        copiesToSender: body["no_sync"]?.bool != true), conversation)
  }

  func sendMessage11(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let body = call.body
    guard let id = body["conv_id"]?.string, let conversation = conversation(id) else {
      throw RESTError(status: 404, code: 4303, text: "CONVERSATION_NOT_FOUND")
    }
    guard let from = body["from_peer"]?.string else { throw RESTError(code: 1, text: "from_peer is required.") }
    return try post(
      Posting(
        from: from, data: try text(body["message"]), isTransient: body["transient"]?.bool ?? true,
        mentions: body["mentionPids"]?.array?.compactMap(\.string) ?? [],
        mentionsAll: body["mentionAll"]?.bool ?? false, receivers: body["to_peers"]?.array?.compactMap(\.string),
        copiesToSender: body["no_sync"]?.bool != true), conversation)
  }

  /// A body is a string; an object is taken as its text.
  func text(_ value: JSONValue?) throws(RESTError) -> String {
    guard let value, !value.isNull else { throw RESTError(code: 1, text: "message is required.") }
    return value.string ?? value.text()
  }

  private func post(_ posting: Posting, _ conversation: Conversation) throws(RESTError) -> JSONValue {
    if let end = conversation.expiresAt, end <= now {
      throw RESTError(code: 4323, text: "TEMPORARY_CONVERSATION_EXPIRED")
    }
    let message: StoredMessage = post(posting, to: conversation)
    return ["msg-id": .string(message.id), "timestamp": .int(message.timestamp)]
  }

  // MARK: Changing

  func located(
    _ conversation: Conversation, _ id: String?, timestamp: Int64?, from: String?
  ) throws(RESTError) -> Int {
    guard let id, let index = conversation.index(of: id) else {
      throw RESTError(status: 404, code: 4404, text: "MESSAGE_NOT_FOUND")
    }
    let message = conversation.messages[index]
    guard timestamp == nil || timestamp == message.timestamp else {
      throw RESTError(status: 404, code: 4404, text: "MESSAGE_NOT_FOUND")
    }
    guard from == nil || Key(from ?? "") == Key(message.from) else {
      throw RESTError(status: 403, code: 4403, text: "MESSAGE_OWNERSHIP_REQUIRED")
    }
    return index
  }

  func editMessage(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try found(call)
    let index = try located(
      conversation, call.parameters.last, timestamp: call.body["timestamp"]?.int,
      from: call.body["from_client"]?.string)
    let old = conversation.messages[index]
    change(
      conversation, at: index,
      Edit(data: try text(call.body["message"]), mentions: old.mentions, mentionsAll: old.mentionsAll), except: nil)
    return .object([:])
  }

  func recallMessage(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try found(call)
    let index = try located(
      conversation, call.parameters.last, timestamp: call.body["timestamp"]?.int,
      from: call.body["from_client"]?.string)
    change(conversation, at: index, Edit(isRecall: true), except: nil)
    return .object([:])
  }

  func patch11(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let body = call.body
    guard let id = body["conv_id"]?.string, let conversation = conversation(id) else {
      throw RESTError(status: 404, code: 4303, text: "CONVERSATION_NOT_FOUND")
    }
    let index = try located(
      conversation, body["msg_id"]?.string, timestamp: body["timestamp"]?.int, from: body["from_peer"]?.string)
    let isRecall = body["recall"]?.bool ?? false
    let edit = isRecall ? Edit(isRecall: true) : Edit(data: try text(body["message"]))
    change(conversation, at: index, edit, except: nil)
    return .object([:])
  }

  func deleteMessage(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try found(call)
    let index = try located(
      conversation, call.parameters.last, timestamp: call.number("timestamp"), from: call.first("from_client"))
    delete(index, conversation)
    return .object([:])
  }

  func deleteLog11(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let id = call.first("convid"), let conversation = conversation(id) ?? forgotten[Key(id)] else {
      throw .notFound()
    }
    delete(
      try located(conversation, call.first("msgid"), timestamp: call.number("timestamp"), from: call.first("from")),
      conversation)
    return .object([:])
  }

  func delete(_ index: Int, _ conversation: Conversation) {
    let message = conversation.messages.remove(at: index)
    conversation.timeByID[Key(message.id)] = nil
    appHistoryIsStale = true
  }

  /// A whole record as history gives it; id and time stay.
  func rewriteLog11(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let id = (call.body["conv-id"] ?? call.body["convid"])?.string, let conversation = conversation(id) else {
      throw .notFound()
    }
    let index = try located(
      conversation, call.body["msg-id"]?.string, timestamp: call.body["timestamp"]?.int, from: nil)
    if let data = call.body["data"]?.string { conversation.messages[index].data = data }
    if let from = call.body["from"]?.string { conversation.messages[index].from = from }
    return .object([:])
  }

  // MARK: History

  func conversationMessages(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let conversation = try found(call)
    try check(call, conversation, client: call.first("client_id"))
    return history(conversation, call)
  }

  func history11(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let id = call.first("convid") else {
      // With the master key: what one client wrote, or everything of the app.
      guard call.access == .master else { throw RESTError(code: 1, text: "convid is required.") }
      let client = call.first("from").map(Key.init)
      return appHistoryPage(call) { client == nil || Key($0.from) == client }
    }
    guard let conversation = conversation(id) ?? forgotten[Key(id)] else {
      if call.access == .master, let (service, client) = subscription(withHistory: id) {
        return personalHistory(of: client, in: service, call)
      }
      // The first model has no object of a pair before its first message.
      return .array([])
    }
    try check(call, conversation, client: call.first("peerid"))
    // What one subscriber was sent or wrote stands in a history of its own.
    return history(conversation, call) { $0.receivers.isEmpty }
  }

  /// The history of a subscriber has the digest of conversation and client for its id.
  private func subscription(withHistory id: String) -> (service: Conversation, client: String)? {
    for name in conversationOrder {
      guard let conversation = conversation(name), conversation.kind == .service else { continue }
      for client in conversation.members.list
      where Key(LeanCloudID.historyDigest(of: name, client: client)) == Key(id) {
        return (conversation, client)
      }
    }
    return nil
  }

  /// Without the broadcasts.
  func personalHistory(of client: String, in service: Conversation, _ call: RESTCall) -> JSONValue {
    let client = Key(client)
    return history(service, call) { message in message.receivers.contains { Key($0) == client } }
  }

  /// A client reads the history of its own conversations, signed where the app asks for it.
  private func check(_ call: RESTCall, _ conversation: Conversation, client: String?) throws(RESTError) {
    if call.access == .master { return }
    guard let client else { throw RESTError(status: 401, code: 401, text: "Unauthorized.") }
    guard conversation.members.contains(client) else {
      throw RESTError(status: 403, code: 4312, text: "CONVERSATION_LOG_REJECTED")
    }
    guard needsSignature else { return }
    guard let nonce = call.first("nonce"), let time = call.number("signature_ts") else {
      throw RESTError(status: 401, code: 4302, text: "CONVERSATION_SIGNATURE_FAILED")
    }
    let text = LeanCloudSignature.history(
      app: options.applicationID, client: client, channel: conversation.id, nonce: nonce, timestamp: time)
    guard call.first("signature") == LeanCloudSignature.sign(text, key: options.adminSecret) else {
      throw RESTError(status: 401, code: 4302, text: "CONVERSATION_SIGNATURE_FAILED")
    }
  }

  private func range(_ call: RESTCall) -> HistoryRange {
    HistoryRange(
      start: call.number("timestamp") ?? call.number("max_ts"), startID: call.first("msgid"),
      includesStart: call.flag("include_start") ?? false, stop: call.number("till_timestamp"),
      stopID: call.first("till_msgid"), includesStop: call.flag("include_stop") ?? false,
      isForward: call.flag("reversed") ?? false)
  }

  /// Newest first, or with `reversed` oldest first.
  func history(
    _ conversation: Conversation, _ call: RESTCall, where accepts: (StoredMessage) -> Bool = { _ in true }
  ) -> JSONValue {
    expireHistory()
    let range = range(call)
    let found = conversation.page(range, limit: Self.pageSize(call), where: accepts)
    return .array((range.isForward ? found : found.reversed()).map { .object(historyItem($0, conversation)) })
  }

  /// Where a retention is set, what is older is not there any more.
  func expireHistory() {
    guard let retention else { return }
    let end = now &- retention
    for conversation in [conversations.values, forgotten.values].joined() { expire(conversation, before: end) }
  }

  /// The same for one conversation.
  func expireHistory(of conversation: Conversation) {
    if let retention { expire(conversation, before: now &- retention) }
  }

  private func expire(_ conversation: Conversation, before end: Int64) {
    let count = conversation.firstIndex(after: end, including: true)
    guard count > 0 else { return }
    for message in conversation.messages.prefix(count) { conversation.timeByID[Key(message.id)] = nil }
    conversation.messages.removeFirst(count)
    appHistoryIsStale = true
  }

  func historyItem(_ message: StoredMessage, _ conversation: Conversation) -> JSONObject {
    var item = JSONObject()
    item["timestamp"] = .int(message.timestamp)
    item["conv-id"] = .string(conversation.id)
    item["data"] = .string(message.data)
    item["from"] = .string(message.from)
    item["msg-id"] = .string(message.id)
    item["is-conv"] = .bool(!conversation.kind.isFirstModel)
    item["is-room"] = .bool(conversation.kind == .group)
    item["to"] = .string(receiver(of: message, conversation))
    item["bin"] = .bool(message.isBinary)
    item["from-ip"] = .string(message.fromIP)
    item["ack-at"] = message.ackAt.map { .int($0) }
    item["patch-timestamp"] = message.patchTimestamp.map { .int($0) }
    if message.mentionsAll { item["mention-all"] = true }
    if !message.mentions.isEmpty { item["mention-pids"] = .strings(message.mentions) }
    return item
  }

  /// In a pair of the 2014 model the other peer, else the conversation.
  private func receiver(of message: StoredMessage, _ conversation: Conversation) -> String {
    guard conversation.kind == .pair else { return conversation.id }
    return conversation.members.list.first { Key($0) != Key(message.from) } ?? message.from
  }

  func allMessages(_ call: RESTCall) throws(RESTError) -> JSONValue { appHistoryPage(call) { _ in true } }

  func clientMessages(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let client = Key(call.parameters.first ?? "")
    return appHistoryPage(call) { Key($0.from) == client }
  }

  /// Every message of the app, from one end towards the other.
  private func appHistoryPage(_ call: RESTCall, _ accepts: (StoredMessage) -> Bool) -> JSONValue {
    expireHistory()
    refreshAppHistory()
    let range = range(call)
    let limit = Self.pageSize(call)
    func place(_ time: Int64?, _ id: String?) -> Place? { time.map { Place(timestamp: $0, id: Key(id ?? "")) } }
    let start = place(range.start, range.startID)
    let stop = place(range.stop, range.stopID)
    var items: [JSONValue] = []
    var index =
      range.isForward
      ? start.map { firstInAppHistory($0) } ?? 0 : start.map { firstInAppHistory($0) } ?? appHistory.count
    if range.isForward != range.includesStart, range.startID != nil, index < appHistory.count,
      appHistory[index].place == start
    {
      index += 1
    }
    while items.count < limit {
      if !range.isForward { index -= 1 }
      guard appHistory.indices.contains(index) else { break }
      let entry = appHistory[index]
      if range.isForward { index += 1 }
      if let stop, range.isForward ? entry.place >= stop : entry.place <= stop,
        !range.includesStop || entry.place != stop
      {
        break
      }
      guard let conversation = conversation(entry.conversation) ?? forgotten[Key(entry.conversation)],
        let at = conversation.index(of: entry.place.id.text)
      else { continue }
      if accepts(conversation.messages[at]) {
        items.append(.object(historyItem(conversation.messages[at], conversation)))
      }
    }
    return .array(items)
  }

  private func refreshAppHistory() {
    guard appHistoryIsStale else { return }
    let all = conversationOrder.compactMap { conversation($0) } + forgotten.values
    appHistory = all.flatMap { conversation in
      conversation.messages.map { ($0.place, conversation.id) }
    }.sorted { $0.0 < $1.0 }
    appHistoryIsStale = false
  }

  private func firstInAppHistory(_ place: Place) -> Int {
    var low = 0
    var high = appHistory.count
    while low < high {
      let middle = (low + high) / 2
      if appHistory[middle].place < place { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
