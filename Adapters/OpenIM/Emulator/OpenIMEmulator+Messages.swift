import ChatJSON
import ChatTransport
import OpenIMWire

extension OpenIMEmulator {
  static let messageHandlers: [String: Handler] = [
    "/msg/newest_seq": { emulator, call, _ in
      ["maxSeqs": .object(emulator.newestSequences(of: try emulator.selfUser(call)))]
    },
    "/msg/pull_msg_by_seq": { emulator, call, _ in
      emulator.pulled(of: try emulator.selfUser(call), call.body, form: .rest)
    },
    "/msg/get_conversations_has_read_and_max_seq": { emulator, call, _ in
      let seqs = emulator.readAndMax(of: try emulator.selfUser(call), only: call.strings("conversationIDs"))
      return ["seqs": .object(seqs), "pinnedConversationIDs": .null]
    },
    "/msg/mark_conversation_as_read": { emulator, call, step in try emulator.markRead(call, &step) },
    "/msg/mark_msgs_as_read": { emulator, call, step in try emulator.markMessagesRead(call, &step) },
    "/msg/set_conversation_has_read_seq": { emulator, call, step in try emulator.setHasRead(call, &step) },
    "/msg/revoke_msg": { emulator, call, step in try emulator.revoke(call, &step) },
    "/msg/delete_msgs": { emulator, call, step in try emulator.deleteMessages(call, &step) },
    "/msg/clear_conversation_msg": { emulator, call, step in
      try emulator.clear(call, call.strings("conversationIDs"), &step)
    },
    "/msg/user_clear_all_msg": { emulator, call, step in
      try emulator.clear(call, try emulator.selfUser(call).conversationIDs, &step)
    },
    "/msg/delete_msg_phsical_by_seq": { emulator, call, _ in
      try call.needAdmin()
      let log = emulator.log(try call.needed("conversationID"))
      for seq in (call.body["seqs"]?.array ?? []).compactMap(\.int) { log[seq] = nil }
      return nil
    },
    "/msg/delete_msg_physical": { emulator, call, _ in
      try call.needAdmin()
      for id in call.strings("conversationIDs") {
        let log = emulator.log(id)
        for seq in stride(from: Int64(1), through: log.maxSeq, by: 1) {
          if let data = log[seq], data.sendTime < call.int("timestamp") { log[seq] = nil }
        }
      }
      return nil
    },
    "/msg/get_server_time": { _, _, step in ["serverTime": .int(step.now)] },
    "/msg/search_msg": { emulator, call, _ in try emulator.searchMessages(call) },
  ]

  /// A conversation of the caller's, with its log.
  private func owned(
    _ call: OpenIMCall
  ) throws(OpenIMFault) -> (user: OpenIMUser, id: String, log: OpenIMConversationLog) {
    let user = try selfUser(call)
    let id = try call.needed("conversationID")
    guard user[conversation: id] != nil else { throw OpenIMFault(.notFound) }
    return (user, id, log(id))
  }

  // MARK: Reading

  private func markRead(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let (user, id, log) = try owned(call)
    let wanted = call.int("hasReadSeq")
    guard wanted >= 1 else { throw OpenIMFault(.arguments, "hasReadSeq must be greater than 0") }
    guard wanted <= log.maxSeq else { throw OpenIMFault(.arguments, "hasReadSeq must not be bigger than maxSeq") }
    let old = user.sequences[OpenIMKey(id)]?.hasRead ?? 0
    let given = (call.body["seqs"]?.array ?? []).compactMap(\.int)
    user.sequences[OpenIMKey(id), default: .init()].hasRead = max(old, wanted)
    let fresh = old < wanted ? Set(old + 1...wanted) : []
    announceRead(user, id, log, seqs: fresh.union(given).sorted(), hasRead: wanted, &step)
    return nil
  }

  private func markMessagesRead(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let (user, id, log) = try owned(call)
    let seqs = (call.body["seqs"]?.array ?? []).compactMap(\.int)
    guard let last = seqs.last, seqs.allSatisfy({ (1...max(1, log.maxSeq)).contains($0) }) else {
      throw OpenIMFault(.arguments, "seqs must not be empty")
    }
    let old = user.sequences[OpenIMKey(id)]?.hasRead ?? 0
    user.sequences[OpenIMKey(id), default: .init()].hasRead = max(old, last)
    announceRead(user, id, log, seqs: seqs, hasRead: max(old, last), &step)
    return nil
  }

  /// In single chats both are told; in groups only the reader's own devices.
  private func announceRead(
    _ user: OpenIMUser, _ id: String, _ log: OpenIMConversationLog, seqs: [Int64], hasRead: Int64,
    _ step: inout OpenIMStep
  ) {
    let peer = user[conversation: id]?.peer ?? ""
    let isSingle = user[conversation: id]?.type == OpenIMSessionType.single
    if isSingle {
      for seq in seqs where log[seq]?.sendID.utf8.elementsEqual(user.id.utf8) == false {
        log[seq]?.isRead = true
        log[seq]?.status = OpenIMMessageStatus.sent
      }
    }
    let detail: JSONValue = [
      "markAsReadUserID": .string(user.id), "conversationID": .string(id),
      "seqs": isSingle ? seqs.map { .int($0) }.orNull : .null, "hasReadSeq": .int(hasRead),
    ]
    notify(
      Notice(
        type: OpenIMNotice.read, detail: detail, sender: user.id, kind: isSingle ? .stored : .unreliable),
      receiver: isSingle ? peer : user.id, &step)
  }

  /// May move the mark back; the one call that restores read state for any user.
  private func setHasRead(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let (user, id, log) = try owned(call)
    let wanted = call.int("hasReadSeq")
    guard wanted >= 0, wanted <= log.maxSeq else { throw OpenIMFault(.arguments, "hasReadSeq is invalid") }
    user.sequences[OpenIMKey(id), default: .init()].hasRead = wanted
    let detail: JSONValue = [
      "markAsReadUserID": .string(user.id), "conversationID": .string(id), "seqs": .null,
      "hasReadSeq": .int(wanted),
    ]
    notify(
      Notice(type: OpenIMNotice.read, detail: detail, sender: user.id, kind: .unreliable), receiver: user.id, &step)
    return nil
  }

  // MARK: Taking back

  private func revoke(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let (user, id, log) = try owned(call)
    let seq = call.int("seq")
    guard let data = log[seq] else { throw OpenIMFault(.notFound) }
    guard data.contentType != OpenIMNotice.revoked else { throw OpenIMFault(.alreadyRevoked) }
    let isOwn = data.sendID.utf8.elementsEqual(user.id.utf8)
    var role: Int64 = 0
    if data.sessionType == OpenIMSessionType.group {
      role = group(data.groupID)?[member: user.id]?.role ?? 0
      let other = group(data.groupID)?[member: data.sendID]?.role ?? OpenIMRole.member
      guard isOwn || call.caller?.isAdmin == true || (role >= OpenIMRole.admin && role > other) else {
        throw OpenIMFault(.noPermission)
      }
    } else if !isOwn, call.caller?.isAdmin != true {
      throw OpenIMFault(.noPermission)
    }
    log[seq] = revoked(data, by: user, role: role, now: step.now)
    let detail: JSONValue = [
      "revokerUserID": .string(user.id), "clientMsgID": .string(data.clientMsgID), "revokeTime": .int(step.now),
      "sesstionType": .int(data.sessionType), "seq": .int(seq), "conversationID": .string(id),
      "isAdminRevoke": .bool(!isOwn),
    ]
    let notice = Notice(type: OpenIMNotice.revoked, detail: detail, sender: user.id, kind: .stored)
    if let group = group(data.groupID), data.sessionType == OpenIMSessionType.group {
      notify(notice, group: group, &step)
    } else {
      notify(notice, receiver: user[conversation: id]?.peer ?? user.id, &step)
    }
    return nil
  }

  /// The stored message keeps its number and ids; its content becomes another one than that of the notice.
  private func revoked(
    _ data: OpenIMMessageData, by user: OpenIMUser, role: Int64, now: Int64
  ) -> OpenIMMessageData {
    var data = data
    let detail: JSONValue = [
      "revokerID": .string(user.id), "revokerRole": .int(role), "clientMsgID": .string(data.clientMsgID),
      "revokerNickname": .string(user.nickname), "revokeTime": .int(now),
      "sourceMessageSendTime": .int(data.sendTime), "sourceMessageSendID": .string(data.sendID),
      "sourceMessageSenderNickname": .string(data.senderNickname), "sessionType": .int(data.sessionType),
      "seq": .int(data.seq), "ex": "",
    ]
    data.contentType = OpenIMNotice.revoked
    data.content = OpenIMNotice.content(detail: detail)
    data.status = OpenIMMessageStatus.sent
    return data
  }

  private func deleteMessages(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let (user, id, log) = try owned(call)
    let seqs = (call.body["seqs"]?.array ?? []).compactMap(\.int).filter { $0 >= 1 && $0 <= log.maxSeq }
    guard !seqs.isEmpty else { throw OpenIMFault(.arguments, "seqs is empty") }
    let detail: JSONValue = [
      "userID": .string(user.id), "conversationID": .string(id), "seqs": .array(seqs.map { .int($0) }),
    ]
    let notice = Notice(type: OpenIMNotice.deleted, detail: detail, sender: user.id, kind: .stored)
    if call.body["deleteSyncOpt"]?["IsSyncOther"]?.bool == true {
      for seq in seqs { log[seq] = nil }
      if let groupID = user[conversation: id]?.groupID, let group = group(groupID) {
        notify(notice, group: group, &step)
      } else {
        notify(notice, receiver: user[conversation: id]?.peer ?? user.id, &step)
      }
      return nil
    }
    user.sequences[OpenIMKey(id), default: .init()].hidden.formUnion(seqs)
    if call.body["deleteSyncOpt"]?["IsSyncSelf"]?.bool == true { notify(notice, receiver: user.id, &step) }
    return nil
  }

  private func clear(
    _ call: OpenIMCall, _ ids: [String], _ step: inout OpenIMStep
  ) throws(OpenIMFault) -> JSONValue? {
    let user = try selfUser(call)
    let known = ids.filter { user[conversation: $0] != nil }
    for id in known {
      let last = maxSeq(user, id)
      user.sequences[OpenIMKey(id), default: .init()].min = last + 1
      user.sequences[OpenIMKey(id)]?.hasRead = last
      user[conversation: id]?.minSeq = last + 1
    }
    tellConversationsChanged(user, known, &step)
    if call.body["deleteSyncOpt"]?["IsSyncSelf"]?.bool == true {
      let detail: JSONValue = [
        "userID": .string(user.id), "conversationIDs": .array(known.map { .string($0) }),
      ]
      notify(
        Notice(type: OpenIMNotice.historyCleared, detail: detail, sender: user.id, kind: .unreliable),
        receiver: user.id, &step)
    }
    return nil
  }

  func tellConversationsChanged(_ user: OpenIMUser, _ ids: [String], _ step: inout OpenIMStep) {
    let detail: JSONValue = [
      "userID": .string(user.id), "conversationIDList": .array(ids.map { .string($0) }),
    ]
    notify(
      Notice(type: OpenIMNotice.conversationChanged, detail: detail, sender: user.id, kind: .unreliable),
      receiver: user.id, &step)
  }

  // MARK: Searching

  /// No filter by conversation and no permission check, as in the open server.
  private func searchMessages(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    let page = try OpenIMPage(call.body)
    let (sender, receiver) = (call.string("sendID"), call.string("recvID"))
    let (type, session) = (call.int("contentType"), call.int("sessionType"))
    // A day of UTC.
    let day = call.string("sendTime")
    var found: [OpenIMMessageData] = []
    for log in logs.values where !OpenIMConversationID.isNotice(log.id) {
      found += log.messages.compactMap(\.self).filter { data in
        (sender.isEmpty || data.sendID == sender) && (receiver.isEmpty || data.recvID == receiver || data.groupID == receiver)
          && (type == 0 || data.contentType == type) && (session == 0 || data.sessionType == session)
          && (day.isEmpty || OpenIMDay.name(of: data.sendTime) == day)
      }
    }
    // The newest first; the call takes no order.
    found.sort { ($0.sendTime, $0.seq, $1.serverMsgID) > ($1.sendTime, $1.seq, $0.serverMsgID) }
    return ["chatLogs": page.slice(found).map { chatLog($0) }.orNull, "chatLogsNum": JSONValue(found.count)]
  }

  private func chatLog(_ data: OpenIMMessageData) -> JSONValue {
    let group = group(data.groupID)
    let entry: JSONValue = [
      "serverMsgID": .string(data.serverMsgID), "clientMsgID": .string(data.clientMsgID),
      "sendID": .string(data.sendID), "recvID": .string(group == nil ? data.recvID : data.groupID),
      "groupID": .string(data.groupID), "recvNickname": .string(user(data.recvID)?.nickname ?? ""),
      "senderPlatformID": .int(data.senderPlatformID), "senderNickname": .string(data.senderNickname),
      "senderFaceURL": .string(data.senderFaceURL), "groupName": .string(group?.name ?? ""),
      "sessionType": .int(data.sessionType), "msgFrom": .int(data.msgFrom), "contentType": .int(data.contentType),
      "content": .string(String(decoding: data.content, as: UTF8.self)), "status": .int(data.status),
      "sendTime": .int(data.sendTime), "createTime": .int(data.createTime), "ex": .string(data.ex),
      "groupFaceURL": .string(group?.faceURL ?? ""), "groupMemberCount": .int(Int64(group?.members.count ?? 0)),
      "seq": .int(data.seq), "groupOwner": .string(group?.owner ?? ""), "groupType": .int(group == nil ? 0 : 2),
    ]
    return ["chatLog": entry, "isRevoked": .bool(data.contentType == OpenIMNotice.revoked)]
  }
}
