import ChatJSON
import ChatTransport
import OpenIMWire

extension OpenIMEmulator {
  // MARK: Messages of users

  /// Checks a message and gives it what the server gives: its id, and times that the client left open.
  func prepare(
    _ data: OpenIMMessageData, sender: OpenIMUser, unknownGroup: OpenIMErrorTable.Row = .serverInternal,
    _ step: inout OpenIMStep
  ) throws(OpenIMFault) -> OpenIMMessageData {
    switch data.sessionType {
    case OpenIMSessionType.single: try checkSingle(data, sender)
    case OpenIMSessionType.group: try checkGroup(data, sender, unknownGroup, now: step.now)
    case OpenIMSessionType.service: try checkService(data, sender)
    default: throw OpenIMFault(.arguments, "unknown sessionType")
    }
    var data = data
    data.serverMsgID = step.context.hex(32)
    if data.sendTime == 0 { data.sendTime = step.now }
    if data.createTime == 0 { data.createTime = step.now }
    data.seq = 0
    data.isRead = false
    if data.contentType == OpenIMContentType.typing, data.options?.isEmpty == false {
      for key in OpenIMOptions.transient { data.options?[key] = false }
    }
    return data
  }

  private func checkSingle(_ data: OpenIMMessageData, _ sender: OpenIMUser) throws(OpenIMFault) {
    guard let receiver = user(data.recvID) else { throw OpenIMFault(.notFound) }
    guard !OpenIMContentType.isNotice(data.contentType), sender.managerLevel < 2 else { return }
    if receiver.black(sender.id) != nil { throw OpenIMFault(.blocked) }
    if friendsOnly, receiver.friends[sender.id] == nil { throw OpenIMFault(.notFriends) }
    let id = OpenIMConversationID.single(data.sendID, data.recvID)
    let option = receiver[conversation: id]?.recvMsgOpt ?? 0
    if option == 1 || receiver.globalRecvMsgOpt == 1 { throw OpenIMFault(.arguments, "message is not sent") }
  }

  /// Only the service itself speaks there.
  private func checkService(_ data: OpenIMMessageData, _ sender: OpenIMUser) throws(OpenIMFault) {
    guard user(data.recvID) != nil else { throw OpenIMFault(.notFound) }
    guard sender.managerLevel >= Self.notificationAccount else {
      throw OpenIMFault(.arguments, "sendID is not a notification account")
    }
  }

  private func checkGroup(
    _ data: OpenIMMessageData, _ sender: OpenIMUser, _ unknownGroup: OpenIMErrorTable.Row, now: Int64
  ) throws(OpenIMFault) {
    guard let group = group(data.groupID) else { throw OpenIMFault(unknownGroup) }
    guard group.status != OpenIMGroup.dismissed else { throw OpenIMFault(.dismissed) }
    if sender.managerLevel >= 2 { return }
    guard let member = group[member: sender.id] else { throw OpenIMFault(.notInGroup) }
    guard !OpenIMContentType.isNotice(data.contentType), member.role < OpenIMRole.owner else { return }
    if member.muteEndTime > now { throw OpenIMFault(.mutedMember) }
    if group.status == OpenIMGroup.muted, member.role < OpenIMRole.admin { throw OpenIMFault(.mutedGroup) }
  }

  /// Stores a prepared message, if it is one to store, and pushes it.
  func deliver(_ data: OpenIMMessageData, _ step: inout OpenIMStep) {
    let id = data.conversationID
    var data = data
    if data.option("history") { data.seq = store(data, in: id, now: step.now) }
    push(data, in: id, isNotice: false, to: recipients(of: data), &step)
    if !data.atUserIDList.isEmpty { markMentioned(data, in: id, &step) }
  }

  /// Members who were mentioned have it in their conversation record, until they reset it.
  private func markMentioned(_ data: OpenIMMessageData, in id: String, _ step: inout OpenIMStep) {
    guard data.sessionType == OpenIMSessionType.group, let group = group(data.groupID) else { return }
    let everyone = data.atUserIDList.contains(OpenIMElements.everyone)
    let named = Set(data.atUserIDList.map(OpenIMKey.init))
    for member in group.sortedMembers where !member.userID.utf8.elementsEqual(data.sendID.utf8) {
      let isNamed = named.contains(OpenIMKey(member.userID))
      guard everyone || isNamed else { continue }
      setAtType(
        everyone ? (isNamed ? OpenIMAtType.everyoneAndMe : OpenIMAtType.everyone) : OpenIMAtType.me, of: member.userID,
        in: id, &step)
    }
  }

  func setAtType(_ type: Int64, of userID: String, in id: String, _ step: inout OpenIMStep) {
    guard let user = user(userID), let record = user[conversation: id], record.groupAtType != type else { return }
    user[conversation: id]?.groupAtType = type
    tellConversationsChanged(user, [id], &step)
  }

  /// Gives the next number; lifts the sender's read mark; a first message makes the conversation's records.
  @discardableResult
  func store(_ data: OpenIMMessageData, in id: String, now: Int64) -> Int64 {
    let log = log(id)
    var stored = data
    stored.seq = log.maxSeq + 1
    log.messages.append(stored)
    log.lastStoredAt = now
    if let sender = user(data.sendID) { sender.sequences[OpenIMKey(id), default: .init()].hasRead = stored.seq }
    if !data.isNotice { makeRecords(for: data, in: id, isFirst: stored.seq == 1) }
    return stored.seq
  }

  private func makeRecords(for data: OpenIMMessageData, in id: String, isFirst: Bool) {
    if data.sessionType == OpenIMSessionType.group {
      guard isFirst, let group = group(data.groupID) else { return }
      for member in group.sortedMembers { makeGroupRecord(of: member.userID, group.id) }
    } else {
      // An account of the service has no list of its own.
      let isService = data.sessionType == OpenIMSessionType.service
      for (owner, peer) in [(data.recvID, data.sendID)] + (isService ? [] : [(data.sendID, data.recvID)]) {
        guard let user = user(owner), user[conversation: id] == nil else { continue }
        user[conversation: id] = OpenIMConversation(id: id, type: data.sessionType, peer: peer)
      }
    }
  }

  func makeGroupRecord(of userID: String, _ groupID: String) {
    let id = OpenIMConversationID.group(groupID)
    guard let user = user(userID), user[conversation: id] == nil else { return }
    user[conversation: id] = OpenIMConversation(id: id, type: OpenIMSessionType.group, groupID: groupID)
  }

  // MARK: Pushing

  enum Recipients {
    case users([String])
    case group(OpenIMGroup)
  }

  private func recipients(of data: OpenIMMessageData) -> Recipients {
    if data.sessionType == OpenIMSessionType.group, let group = group(data.groupID) { return .group(group) }
    let receivers = data.recvID.utf8.elementsEqual(data.sendID.utf8) ? [] : [data.recvID]
    return .users(data.option("senderSync") ? receivers + [data.sendID] : receivers)
  }

  /// The sockets of the recipients, in the order in which they were opened.
  private func sockets(_ recipients: Recipients) -> [OpenIMConnection] {
    let found: [OpenIMConnection]
    switch recipients {
    case .users(let ids): found = ids.flatMap { user($0)?.connections ?? [] }.compactMap { connections[$0] }
    case .group(let group): found = connections.values.filter { group[member: $0.user.id] != nil }
    }
    return found.filter { !($0.isBackground && $0.platform == OpenIMPlatform.iOS) }.sorted { $0.id < $1.id }
  }

  /// Frame 2001 with one message; the status of a pushed message is "sent".
  func push(
    _ data: OpenIMMessageData, in id: String, isNotice: Bool, to recipients: Recipients, _ step: inout OpenIMStep
  ) {
    let sockets = connections.isEmpty ? [] : sockets(recipients)
    guard !sockets.isEmpty else { return }
    var data = data
    if data.status == OpenIMMessageStatus.sending { data.status = OpenIMMessageStatus.sent }
    let entry: JSONValue = ["Msgs": .array([data.frameJSON])]
    let messages: JSONValue = .object(JSONObject([(key: id, value: entry)]))
    let body: JSONValue = .object(JSONObject([(key: isNotice ? "notificationMsgs" : "msgs", value: messages)]))
    guard let bytes = try? OpenIMBody.push.encode(body) else { return }
    let frame = OpenIMResponseFrame(
      operation: OpenIMOperation.push.rawValue, operationID: step.operationID, data: bytes)
    var encoded: [OpenIMCodec: [UInt8]] = [:]
    for socket in sockets {
      let message = encoded[socket.codec] ?? socket.codec.encode(frame)
      encoded[socket.codec] = message
      step.outputs.append(.send(socket.id, .binary(message)))
    }
  }

  // MARK: Notices of the system

  /// How a notice travels (reference §4.3).
  enum NoticeClass { case unreliable, stored, alsoMessage }

  struct Notice {
    var type: Int64
    var detail: JSONValue
    var sender: String
    var kind: NoticeClass
    /// Shown by an offline push where the server is configured so.
    var pushInfo: JSONObject = [:]
  }

  /// Between two users, or to one (`receiver == sender`).
  @discardableResult
  func notify(_ notice: Notice, receiver: String, _ step: inout OpenIMStep) -> OpenIMMessageData {
    var data = noticeData(notice, &step)
    data.recvID = receiver
    data.sessionType = OpenIMSessionType.single
    let everyone = receiver.utf8.elementsEqual(notice.sender.utf8) ? [receiver] : [receiver, notice.sender]
    if notice.kind == .alsoMessage { deliverCopy(of: data, to: .users(everyone), &step) }
    pushNotice(data, notice, in: OpenIMConversationID.notices(notice.sender, receiver), to: .users(everyone), &step)
    return data
  }

  @discardableResult
  func notify(
    _ notice: Notice, group: OpenIMGroup, also extra: [String] = [], _ step: inout OpenIMStep
  ) -> OpenIMMessageData {
    var data = noticeData(notice, &step)
    data.recvID = group.id
    data.groupID = group.id
    data.sessionType = OpenIMSessionType.group
    if notice.kind == .alsoMessage { deliverCopy(of: data, to: .group(group), &step) }
    let id = OpenIMConversationID.notices(ofGroup: group.id)
    pushNotice(data, notice, in: id, to: .group(group), &step)
    // Those who are no members any more are told too.
    if !extra.isEmpty { push(data, in: id, isNotice: true, to: .users(extra), &step) }
    return data
  }

  private func noticeData(_ notice: Notice, _ step: inout OpenIMStep) -> OpenIMMessageData {
    var data = OpenIMMessageData()
    data.sendID = notice.sender
    data.clientMsgID = step.context.hex(32)
    data.serverMsgID = step.context.hex(32)
    data.msgFrom = 200
    data.contentType = notice.type
    data.content = OpenIMNotice.content(detail: notice.detail)
    data.sendTime = step.now
    data.createTime = step.now
    data.offlinePushInfo = notice.pushInfo
    data.options = JSONObject(
      OpenIMOptions.notice(stored: notice.kind == .stored, alsoMessage: notice.kind == .alsoMessage)
        .map { ($0.key, .bool($0.value)) })
    return data
  }

  /// The copy that takes a number in the conversation itself and counts as unread.
  private func deliverCopy(of data: OpenIMMessageData, to recipients: Recipients, _ step: inout OpenIMStep) {
    var copy = data
    copy.options = ["offlinePush": false, "unreadCount": true]
    let id = copy.conversationID
    copy.seq = store(copy, in: id, now: step.now)
    push(copy, in: id, isNotice: false, to: recipients, &step)
  }

  private func pushNotice(
    _ data: OpenIMMessageData, _ notice: Notice, in id: String, to recipients: Recipients, _ step: inout OpenIMStep
  ) {
    var data = data
    if notice.kind == .stored { data.seq = store(data, in: id, now: step.now) }
    push(data, in: id, isNotice: true, to: recipients, &step)
  }
}
