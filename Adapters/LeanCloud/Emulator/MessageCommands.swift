import ChatCrypto
import ChatJSON
import LeanCloudWire

/// One message on its way in, from a socket or from REST.
struct Posting {
  var from: String
  var data: String
  var isBinary = false
  var isTransient = false
  var wantsReceipt = false
  var token: String?
  var mentions: [String] = []
  var mentionsAll = false
  /// The socket that must not get it back.
  var except: Connection?
  /// Only these; nil: everybody in the conversation.
  var receivers: [String]?
  var copiesToSender = true
  /// From a subscriber to a service conversation.
  var isUplink = false
  /// Where the id was told before.
  var id: String?

  /// To the service itself: no other subscriber sees it.
  mutating func becomeUplink() {
    isUplink = true
    receivers = [from]
  }
}

extension LeanCloudEmulator {
  static let offlineLimit = 100
  static let firstModelOfflineLimit = 50

  func direct(_ call: Call) {
    let frame = call.frame
    if frame["toPeerIds"] != nil || frame["roomId"] != nil { return directToPeers(call) }
    let isTransient = frame.bool("transient") ?? false
    guard let id = frame.string("cid"), let conversation = conversation(id) else {
      return answerDirect(code: 4401, call, isTransient)
    }
    if let code = refusalToSend(call.peer, conversation) { return answerDirect(code: code, call, isTransient) }
    let isBinary = frame["binaryMsg"] != nil
    guard let data = frame.string("binaryMsg") ?? frame.string("msg") else {
      return answerDirect(code: 4114, call, isTransient)
    }
    var posting = Posting(
      from: call.peer, data: data, isBinary: isBinary, isTransient: isTransient,
      wantsReceipt: frame.bool("r") ?? false, token: frame.string("dt"), mentions: frame.strings("mentionPids"),
      mentionsAll: frame.bool("mentionAll") ?? false, except: call.connection)
    if conversation.kind == .service { posting.becomeUplink() }
    if !isBinary, words.refuses(data) { return answerDirect(code: 4402, call, isTransient) }
    if frame.bool("will") == true { return keepWill(posting, conversation, call) }
    let message = post(posting, to: conversation)
    if !isTransient || call.session.has(.ackTransient) { answerDirect(message, conversation, call) }
    if !isTransient { censor(message.id, in: conversation) }
  }

  /// Acknowledged now, sent when the login drops.
  private func keepWill(_ posting: Posting, _ conversation: Conversation, _ call: Call) {
    guard let index = call.connection.index(of: call.peer) else { return }
    let message = StoredMessage(id: newMessageID(), from: call.peer, timestamp: now, data: posting.data)
    call.connection.sessions[index].wills.append(
      Session.Will(conversation: conversation.id, id: message.id, data: posting.data, isBinary: posting.isBinary))
    answerDirect(message, conversation, call)
  }

  func executeWills(of session: Session) {
    for will in session.wills {
      guard let conversation = conversation(will.conversation), refusalToSend(session.peer, conversation) == nil else {
        continue
      }
      var posting = Posting(from: session.peer, data: will.data, isBinary: will.isBinary)
      posting.id = will.id
      if conversation.kind == .service { posting.becomeUplink() }
      post(posting, to: conversation)
    }
  }

  private func answerDirect(_ message: StoredMessage, _ conversation: Conversation, _ call: Call) {
    var ack = LeanCloudFrame("ack")
    ack["cid"] = conversation.kind.isFirstModel ? nil : .string(conversation.id)
    ack["uid"] = .string(message.id)
    ack["t"] = .int(message.timestamp)
    reply(ack, to: call)
  }

  private func answerDirect(code: Int64, _ call: Call, _ isTransient: Bool) {
    if isTransient, !call.session.has(.ackTransient) { return }
    var ack = LeanCloudFrame("ack")
    ack["cid"] = call.frame["cid"]
    ack["code"] = .int(code)
    ack["reason"] = .string(LeanCloudErrors.row(Int(code)).name)
    // The app's own word beside the service's.
    if code == 4402 { ack["appCode"] = .int(WordRules.hookCode) }
    reply(ack, to: call)
  }

  func refusalToSend(_ client: String, _ conversation: Conversation) -> Int64? {
    if let end = conversation.expiresAt, end <= now { return 4323 }
    switch conversation.kind {
    case .room: if !conversation.present.contains(client) { return 4317 }
    default: if !conversation.members.contains(client) { return 4317 }
    }
    if let until = conversation.silenced[Key(client)], until > now { return until == .max ? 4563 : 4315 }
    return nil
  }

  /// Accepts a message: stores it, or gives the first answer again for a known token, and tells those concerned.
  @discardableResult
  func post(_ posting: Posting, to conversation: Conversation) -> StoredMessage {
    let tokenKey = posting.token.map { Key("\(posting.from)\u{0}\($0)") }
    if let tokenKey, let id = conversation.tokens[tokenKey], let index = conversation.index(of: id) {
      return conversation.messages[index]
    }
    // Times of one conversation increase, so that its order is the order of arrival whatever the ids.
    let time = max(now, (conversation.messages.last?.timestamp ?? .min) &+ (conversation.messages.isEmpty ? 0 : 1))
    var message = StoredMessage(
      id: posting.id ?? newMessageID(), from: posting.from, timestamp: time, data: posting.data, isBinary: posting.isBinary)
    message.mentions = posting.mentions
    message.mentionsAll = posting.mentionsAll
    message.wantsReceipt = posting.wantsReceipt
    if conversation.kind == .service {
      message.receivers = posting.receivers ?? []
      message.isUplink = posting.isUplink
    }
    if !posting.isTransient {
      if conversation.kind != .temporary || posting.token != nil { store(message, tokenKey, in: conversation) }
    }
    fanOut(message, posting, conversation)
    return message
  }

  private func store(_ message: StoredMessage, _ tokenKey: Key?, in conversation: Conversation) {
    _ = conversation.insert(message)
    appHistoryIsStale = true
    if let tokenKey { conversation.tokens[tokenKey] = message.id }
  }

  private func fanOut(_ message: StoredMessage, _ posting: Posting, _ conversation: Conversation) {
    var frame = directFrame(message, in: conversation)
    if posting.isTransient { frame["transient"] = true }
    let receivers: [String]
    if let named = posting.receivers {
      receivers = named
    } else {
      receivers = conversation.kind == .room ? conversation.present.list : conversation.members.list
    }
    let sender = Key(message.from)
    let isFirstModel = conversation.kind.isFirstModel
    for receiver in receivers {
      let isSender = Key(receiver) == sender
      if isSender, !posting.copiesToSender { continue }
      push(frame, to: receiver, except: isSender ? posting.except?.id : nil) { session, _ in
        guard session.isFirstModel == isFirstModel else { return false }
        if conversation.kind == .temporary, session.bitmap != 0, !session.has(.temporary) { return false }
        return conversation.kind != .room || session.room == conversation.id
      }
      if !isSender, !posting.isTransient, conversation.kind != .room, !isOnline(receiver) {
        queue(message, conversation, for: receiver)
      }
    }
  }

  /// Keeps a message for a client that is away; above the limit the oldest one goes.
  private func queue(_ message: StoredMessage, _ conversation: Conversation, for client: String) {
    let limit = conversation.kind.isFirstModel ? Self.firstModelOfflineLimit : Self.offlineLimit * 50
    undelivered[Key(client), default: []].append((conversation.id, message.id))
    if undelivered[Key(client), default: []].count > limit { undelivered[Key(client)]?.removeFirst() }
  }

  func directFrame(_ message: StoredMessage, in conversation: Conversation) -> LeanCloudFrame {
    var frame = LeanCloudFrame("direct")
    switch conversation.kind {
    case .pair: break
    case .group: frame["roomId"] = .string(conversation.id)
    default:
      frame["cid"] = .string(conversation.id)
      frame["convType"] = .int(conversation.kind.number)
    }
    frame["id"] = .string(message.id)
    frame["fromPeerId"] = .string(message.from)
    frame[message.isBinary ? "binaryMsg" : "msg"] = .string(message.data)
    frame["timestamp"] = .int(message.timestamp)
    frame["patchTimestamp"] = message.patchTimestamp.map { .int($0) }
    if !message.mentions.isEmpty { frame["mentionPids"] = .strings(message.mentions) }
    if message.mentionsAll { frame["mentionAll"] = true }
    return frame
  }

  // MARK: Delivered and read

  func acknowledge(_ call: Call) {
    let frame = call.frame
    if case let ids = frame.strings("ids"), !ids.isEmpty { return acknowledgeFirstModel(ids, call) }
    guard let id = frame.string("cid"), let conversation = conversation(id), conversation.members.contains(call.peer)
    else { return }
    let last: Int
    if let mid = frame.string("mid"), let index = conversation.index(of: mid) {
      last = index + 1
    } else if let until = frame.int("tots") {
      last = conversation.firstIndex(after: until, including: false)
    } else {
      return
    }
    guard last > 0 else { return }
    let place = conversation.messages[last - 1].place
    let old = conversation.marks[Key(call.peer)]?.delivered
    if let old, old >= place { return }
    conversation.marks[Key(call.peer), default: Marks()].delivered = place
    undelivered[Key(call.peer)]?.removeAll { item in
      Key(item.conversation) == Key(id) && (conversation.timeByID[Key(item.id)] ?? .max) <= place.timestamp
    }
    sendReceipts(conversation, from: old, upTo: last, by: call.peer, isRead: false)
    if frame.bool("read") == true { mark(conversation, readTo: last, by: call) }
  }

  /// Tells the senders of what was delivered or read, one watermark each.
  private func sendReceipts(
    _ conversation: Conversation, from old: Place?, upTo end: Int, by client: String, isRead: Bool
  ) {
    var start = 0
    if let old {
      start = conversation.lowerBound(old)
      if start < end, conversation.messages[start].place == old { start += 1 }
    }
    var newest: [Key: StoredMessage] = [:]
    for index in start..<max(start, end) where Key(conversation.messages[index].from) != Key(client) {
      if conversation.messages[index].ackAt == nil { conversation.messages[index].ackAt = now }
      if conversation.messages[index].wantsReceipt {
        newest[Key(conversation.messages[index].from)] = conversation.messages[index]
      }
    }
    for (sender, message) in newest.sorted(by: { $0.key < $1.key }) {
      var frame = LeanCloudFrame("rcp")
      frame["id"] = .string(message.id)
      frame["cid"] = conversation.kind.isFirstModel ? nil : .string(conversation.id)
      frame["t"] = .int(message.timestamp)
      frame["from"] = .string(client)
      if isRead { frame["read"] = true }
      let isSmall = conversation.members.count <= 2
      push(frame, to: sender.text) { session, _ in
        session.isFirstModel == conversation.kind.isFirstModel && (isSmall || session.has(.groupReceipts))
      }
    }
  }

  func read(_ call: Call) {
    var wanted: [(id: String, timestamp: Int64?, mid: String?)] = []
    for tuple in call.frame["convs"]?.array ?? [] {
      if let id = tuple["cid"]?.string { wanted.append((id, tuple["timestamp"]?.int, tuple["mid"]?.string)) }
    }
    for id in call.frame.strings("cids") + [call.frame.string("cid")].compactMap(\.self) {
      wanted.append((id, nil, nil))
    }
    for item in wanted {
      guard let conversation = conversation(item.id), conversation.members.contains(call.peer) else { continue }
      var end = conversation.messages.count
      if let mid = item.mid, let index = conversation.index(of: mid) {
        end = index + 1
      } else if let time = item.timestamp {
        end = conversation.firstIndex(after: time, including: false)
      }
      mark(conversation, readTo: end, by: call)
    }
    if call.frame.serial != nil { reply(LeanCloudFrame("read"), to: call) }
  }

  private func mark(_ conversation: Conversation, readTo end: Int, by call: Call) {
    guard end > 0 else { return }
    let place = conversation.messages[end - 1].place
    let old = conversation.marks[Key(call.peer)]?.read
    if let old, old >= place { return }
    conversation.marks[Key(call.peer), default: Marks()].read = place
    sendReceipts(conversation, from: old, upTo: end, by: call.peer, isRead: true)
    let unread = conversation.unread(for: call.peer)
    var frame = LeanCloudFrame("unread")
    frame["convs"] = [unreadTuple(conversation, unread.count, unread.mentioned, last: unread.last)]
    frame["notifTime"] = .int(now)
    push(frame, to: call.peer, except: call.connection.id) { session, connection in
      !session.isFirstModel && connection.codec.subprotocol.version >= 2
    }
  }

  // MARK: History

  func logs(_ call: Call) {
    let frame = call.frame
    guard let id = frame.string("cid"), let conversation = conversation(id) else { return fail(4303, to: call) }
    guard conversation.kind == .room || conversation.members.contains(call.peer) else { return fail(4312, to: call) }
    expireHistory(of: conversation)
    let asked = frame.int("l") ?? frame.int("limit") ?? 20
    let limit = Int(clamping: min(max(asked, 1), limits ? 100 : 1000))
    let isForward = frame.string("direction") == "NEW" || frame.int("direction") == 2
    let range = HistoryRange(
      start: frame.int("t"), startID: frame.string("mid"), includesStart: frame.bool("tIncluded") ?? false,
      stop: frame.int("tt"), stopID: frame.string("tmid"), includesStop: frame.bool("ttIncluded") ?? false,
      isForward: isForward)
    let type = frame.int("lctype")
    let peer = Key(call.peer)
    let found =
      conversation.kind == .temporary
      ? []
      : conversation.page(range, limit: limit) { message in
        let isForMe = message.receivers.isEmpty || message.receivers.contains { Key($0) == peer }
        return isForMe && (type == nil || Self.typeOf(message) == type)
      }
    var answer = LeanCloudFrame("logs")
    answer["cid"] = .string(id)
    answer["logs"] = .array(found.map { .object(logItem($0, conversation)) })
    reply(answer, to: call)
  }

  static func typeOf(_ message: StoredMessage) -> Int64? {
    message.isBinary ? nil : (try? JSONValue(parsing: message.data))?["_lctype"]?.int
  }

  private func logItem(_ message: StoredMessage, _ conversation: Conversation) -> JSONObject {
    var item = JSONObject()
    item["from"] = .string(message.from)
    item["data"] = .string(message.data)
    item["timestamp"] = .int(message.timestamp)
    item["msgId"] = .string(message.id)
    item["ackAt"] = message.ackAt.map { .int($0) }
    item["patchTimestamp"] = message.patchTimestamp.map { .int($0) }
    if message.mentionsAll { item["mentionAll"] = true }
    if !message.mentions.isEmpty { item["mentionPids"] = .strings(message.mentions) }
    if message.isBinary { item["bin"] = true }
    item["convType"] = .int(conversation.kind.number)
    return item
  }

  // MARK: Edit and recall

  func modify(_ call: Call) {
    let patches = call.frame["patches"]?.array ?? []
    guard !patches.isEmpty else { return fail(4404, to: call) }
    var last = now
    for patch in patches {
      let isRecall = patch["recall"]?.bool ?? false
      guard let id = patch["cid"]?.string, let conversation = conversation(id) else { return fail(4303, to: call) }
      guard let mid = patch["mid"]?.string, let index = conversation.index(of: mid) else { return fail(4404, to: call) }
      // Id and time name a message together.
      if let time = patch["timestamp"]?.int, time != conversation.messages[index].timestamp {
        return fail(4404, to: call)
      }
      guard Key(conversation.messages[index].from) == Key(call.peer) else { return fail(4403, to: call) }
      guard isRecall ? allowsRecall : allowsEdit else { return fail(isRecall ? 4407 : 4406, to: call) }
      // Chosen: no source says what becomes of an edit after a recall.
      guard isRecall || !conversation.messages[index].isRecalled else { return fail(4404, to: call) }
      if !isRecall, let data = patch["data"]?.string, words.refuses(data) { return fail(4405, to: call) }
      let edit = Edit(
        data: patch["binaryMsg"]?.string ?? patch["data"]?.string, isBinary: patch["binaryMsg"] != nil,
        mentions: (patch["mentionPids"] ?? patch["meintonPids"])?.array?.compactMap(\.string) ?? [],
        mentionsAll: patch["mentionAll"]?.bool ?? false, isRecall: isRecall)
      change(conversation, at: index, edit, except: call.connection)
      // The second one of a millisecond counts as later.
      last = max(last, conversation.messages[index].patchTimestamp ?? now)
    }
    var frame = LeanCloudFrame("patch", "modified")
    frame["lastPatchTime"] = .int(last)
    reply(frame, to: call)
  }

  struct Edit {
    var data: String?
    var isBinary = false
    var mentions: [String] = []
    var mentionsAll = false
    var isRecall = false
    /// By the service's filter: the author is told as well, with a code.
    var isByService = false
  }

  func change(_ conversation: Conversation, at index: Int, _ edit: Edit, except: Connection?) {
    var message = conversation.messages[index]
    message.patchTimestamp = max(now, (message.patchTimestamp ?? .min) &+ 1)
    if edit.isRecall {
      message.isRecalled = true
      message.data = LeanCloudBody.recalledText
      message.isBinary = false
      message.mentions = []
      message.mentionsAll = false
    } else {
      message.data = edit.data ?? message.data
      message.isBinary = edit.isBinary
      message.mentions = edit.mentions
      message.mentionsAll = edit.mentionsAll
    }
    conversation.messages[index] = message
    conversation.patches.append((message.patchTimestamp ?? now, Key(message.id)))
    var frame = LeanCloudFrame("patch", "modify")
    var item = patchItem(message, in: conversation)
    if edit.isByService, var object = item.object {
      object["patchCode"] = 4408
      object["patchReason"] = .string(LeanCloudErrors.row(4408).name)
      item = .object(object)
    }
    frame["patches"] = [item]
    frame["lastPatchTime"] = .int(message.patchTimestamp ?? now)
    for member in conversation.kind == .room ? conversation.present.list : conversation.members.list {
      push(frame, to: member, except: Key(member) == Key(message.from) ? except?.id : nil) { session, _ in
        session.has(.patch)
      }
    }
  }

  func patchItem(_ message: StoredMessage, in conversation: Conversation) -> JSONValue {
    var item = JSONObject()
    item["cid"] = .string(conversation.id)
    item["mid"] = .string(message.id)
    item["timestamp"] = .int(message.timestamp)
    item["recall"] = .bool(message.isRecalled)
    item[message.isBinary ? "binaryMsg" : "data"] = .string(message.data)
    item["patchTimestamp"] = message.patchTimestamp.map { .int($0) }
    item["from"] = .string(message.from)
    if message.mentionsAll { item["mentionAll"] = true }
    if !message.mentions.isEmpty { item["mentionPids"] = .strings(message.mentions) }
    return .object(item)
  }
}

/// From one end towards the other; each end is exclusive unless it says otherwise, ids break ties.
struct HistoryRange {
  var start: Int64?
  var startID: String?
  var includesStart = false
  var stop: Int64?
  var stopID: String?
  var includesStop = false
  var isForward = false
}

extension Conversation {
  /// At most `limit` messages nearest to the range's start, ascending.
  func page(_ range: HistoryRange, limit: Int, where accepts: (StoredMessage) -> Bool = { _ in true })
    -> [StoredMessage]
  {
    let low: Int
    let high: Int
    if range.isForward {
      low = range.start.map { edge($0, range.startID, isLow: true, includes: range.includesStart) } ?? 0
      high = range.stop.map { edge($0, range.stopID, isLow: false, includes: range.includesStop) } ?? messages.count
    } else {
      high = range.start.map { edge($0, range.startID, isLow: false, includes: range.includesStart) } ?? messages.count
      low = range.stop.map { edge($0, range.stopID, isLow: true, includes: range.includesStop) } ?? 0
    }
    guard low < high else { return [] }
    var found: [StoredMessage] = []
    if range.isForward {
      for index in low..<high where found.count < limit && accepts(messages[index]) { found.append(messages[index]) }
      return found
    }
    var index = high
    while index > low, found.count < limit {
      index -= 1
      if accepts(messages[index]) { found.append(messages[index]) }
    }
    return found.reversed()
  }

  /// The first index inside (low end) or the first beyond (high end) a boundary. Without an id all messages of that
  /// time belong to the boundary.
  private func edge(_ time: Int64, _ id: String?, isLow: Bool, includes: Bool) -> Int {
    guard let id else { return firstIndex(after: time, including: isLow == includes) }
    let place = Place(timestamp: time, id: Key(id))
    let index = lowerBound(place)
    let isThere = index < messages.count && messages[index].place == place
    return isThere && isLow != includes ? index + 1 : index
  }
}
