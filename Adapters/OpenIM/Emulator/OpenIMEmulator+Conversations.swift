import ChatJSON
import ChatTransport
import OpenIMWire

extension OpenIMEmulator {
  static let conversationHandlers: [String: Handler] = [
    "/conversation/get_all_conversations": { emulator, call, _ in
      let user = try emulator.selfUser(call, "ownerUserID")
      return ["conversations": user.conversationIDs.compactMap { emulator.record(user, $0) }.orNull]
    },
    "/conversation/get_conversation": { emulator, call, _ in
      let user = try emulator.selfUser(call, "ownerUserID")
      guard let record = emulator.record(user, call.string("conversationID")) else { throw OpenIMFault(.notFound) }
      return ["conversation": record]
    },
    "/conversation/get_conversations": { emulator, call, _ in
      let user = try emulator.selfUser(call, "ownerUserID")
      return ["conversations": call.strings("conversationIDs").compactMap { emulator.record(user, $0) }.orNull]
    },
    "/conversation/get_owner_conversation": { emulator, call, _ in
      let user = try emulator.selfUser(call)
      let page = try OpenIMPage(call.body)
      return [
        "total": JSONValue(user.conversationIDs.count),
        "conversations": page.slice(user.conversationIDs).compactMap { emulator.record(user, $0) }.orNull,
      ]
    },
    "/conversation/set_conversations": { emulator, call, step in try emulator.setConversations(call, &step) },
    "/conversation/get_incremental_conversations": { emulator, call, _ in
      let user = try emulator.selfUser(call)
      return .object(emulator.incremental(user.conversationLog, call.body) { emulator.record(user, $0) })
    },
    "/conversation/get_full_conversation_ids": { emulator, call, _ in
      let user = try emulator.selfUser(call)
      return emulator.fullIDs(user.conversationLog, "conversationIDs", user.conversationIDs, call)
    },
    "/conversation/get_pinned_conversation_ids": { emulator, call, _ in
      let user = try emulator.selfUser(call)
      let pinned = user.conversationIDs.filter { user[conversation: $0]?.isPinned == true }
      return ["conversationIDs": pinned.map { .string($0) }.orNull]
    },
    "/conversation/get_not_notify_conversation_ids": { emulator, call, _ in
      let user = try emulator.selfUser(call)
      let quiet = user.conversationIDs.filter { (user[conversation: $0]?.recvMsgOpt ?? 0) != 0 }
      return ["conversationIDs": quiet.map { .string($0) }.orNull]
    },
    "/conversation/get_sorted_conversation_list": { emulator, call, _ in try emulator.sortedConversations(call) },
    "/conversation/delete_conversations": { emulator, call, step in try emulator.deleteConversations(call, &step) },
    "/conversation/update_conversations_by_user": { emulator, call, step in
      let user = try emulator.selfUser(call)
      guard let ex = call.body["ex"]?.string else { return nil }
      for id in user.conversationIDs { user[conversation: id]?.ex = ex }
      emulator.tellConversationsChanged(user, user.conversationIDs, &step)
      return nil
    },
    "/jssdk/get_active_conversations": { emulator, call, _ in try emulator.activeConversations(call) },
    "/jssdk/get_conversations": { emulator, call, _ in
      let user = try emulator.selfUser(call, "ownerUserID")
      return emulator.drawn(user, call.strings("conversationIDs"))
    },
  ]

  private func record(_ user: OpenIMUser, _ id: String) -> JSONValue? {
    user[conversation: id]?.json(owner: user.id)
  }

  /// Members that are null or absent do not change. A record that does not exist yet is made.
  private func setConversations(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let changes = call.body["conversation"] ?? .null
    let id = changes["conversationID"]?.string ?? ""
    let type = changes["conversationType"]?.int ?? 0
    guard !id.isEmpty, type > 0 else { throw OpenIMFault(.arguments, "conversation must not be nil") }
    for userID in call.strings("userIDs") {
      try call.needSelf(userID)
      guard let user = user(userID) else { throw OpenIMFault(.notFound) }
      let old = user[conversation: id]
      var record =
        old
        ?? OpenIMConversation(
          id: id, type: type, peer: peer(of: userID, id, changes), groupID: changes["groupID"]?.string ?? "")
      Self.apply(changes, to: &record)
      guard old == nil || old?.json(owner: "") != record.json(owner: "") else { continue }
      user[conversation: id] = record
      tellConversationsChanged(user, [id], &step)
      if let isPrivate = changes["isPrivateChat"]?.bool, type == OpenIMSessionType.single,
        old?.isPrivateChat ?? false != isPrivate
      {
        setPrivate(isPrivate, id, of: user, &step)
      }
    }
    return nil
  }

  /// Both users of a single chat have it private or none, and each is told.
  private func setPrivate(_ isPrivate: Bool, _ id: String, of user: OpenIMUser, _ step: inout OpenIMStep) {
    guard let record = user[conversation: id], let peer = self.user(record.peer) else { return }
    if peer[conversation: id] == nil {
      peer[conversation: id] = OpenIMConversation(id: id, type: OpenIMSessionType.single, peer: user.id)
    }
    peer[conversation: id]?.isPrivateChat = isPrivate
    peer[conversation: id]?.burnDuration = record.burnDuration
    let detail: JSONValue = [
      "recvID": .string(peer.id), "sendID": .string(user.id), "isPrivate": .bool(isPrivate),
      "conversationID": .string(id),
    ]
    notify(
      Notice(type: OpenIMNotice.privateChatSet, detail: detail, sender: user.id, kind: .alsoMessage),
      receiver: peer.id, &step)
  }

  private func deleteConversations(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let user = try selfUser(call, "ownerUserID")
    let ids = call.strings("conversationIDs")
    guard (call.int("needDeleteTime") == 0) != ids.isEmpty else {
      throw OpenIMFault(.arguments, "needDeleteTime and conversationIDs cannot both be empty or set")
    }
    let before = call.int("needDeleteTime")
    let meant = ids.isEmpty ? user.conversationIDs.filter { (logs[OpenIMKey($0)]?.lastStoredAt ?? 0) < before } : ids
    let known = meant.filter { user[conversation: $0] != nil }
    for id in known { user[conversation: id] = nil }
    let detail: JSONValue = ["userID": .string(user.id), "conversationIDs": .array(known.map { .string($0) })]
    notify(
      Notice(type: OpenIMNotice.conversationsDeleted, detail: detail, sender: user.id, kind: .unreliable),
      receiver: user.id, &step)
    return nil
  }

  /// Pinned ones first, then by the newest message.
  private func sortedConversations(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    let user = try selfUser(call)
    let page = try OpenIMPage(call.body)
    let wanted = call.strings("conversationIDs")
    let list = (wanted.isEmpty ? user.conversationIDs : wanted).compactMap { user[conversation: $0] }
    let sorted = list.map { (record: $0, time: lastMessage(of: user, in: $0.id)?.sendTime ?? 0) }.sorted {
      $0.record.isPinned != $1.record.isPinned ? $0.record.isPinned : ($0.time, $1.record.id) > ($1.time, $0.record.id)
    }.map(\.record)
    func unread(_ record: OpenIMConversation) -> Int64 {
      max(0, maxSeq(user, record.id) - (user.sequences[OpenIMKey(record.id)]?.hasRead ?? 0))
    }
    let elements = page.slice(sorted).map { record -> JSONValue in
      [
        "conversationID": .string(record.id), "recvMsgOpt": .int(record.recvMsgOpt),
        "unreadCount": .int(unread(record)), "IsPinned": .bool(record.isPinned),
        "msgInfo": messageInfo(of: user, in: record.id),
      ]
    }
    return [
      "conversationTotal": JSONValue(sorted.count), "unreadTotal": .int(sorted.map(unread).reduce(0, +)),
      "conversationElems": elements.orNull,
    ]
  }

  private func messageInfo(of user: OpenIMUser, in id: String) -> JSONValue {
    guard let data = lastMessage(of: user, in: id) else { return .null }
    let group = group(data.groupID)
    let isMine = data.sendID.utf8.elementsEqual(user.id.utf8)
    let shown = group == nil ? self.user(isMine ? data.recvID : data.sendID) : self.user(data.sendID)
    return [
      "serverMsgID": .string(data.serverMsgID), "clientMsgID": .string(data.clientMsgID),
      "sessionType": .int(data.sessionType), "sendID": .string(data.sendID), "recvID": .string(data.recvID),
      "senderName": .string(shown?.nickname ?? ""), "faceURL": .string(shown?.faceURL ?? ""),
      "groupID": .string(data.groupID), "groupName": .string(group?.name ?? ""),
      "groupFaceURL": .string(group?.faceURL ?? ""), "groupType": .int(group == nil ? 0 : 2),
      "groupMemberCount": .int(Int64(group?.members.count ?? 0)), "LatestMsgRecvTime": .int(data.sendTime),
      "msgFrom": .int(data.msgFrom), "contentType": .int(data.contentType),
      "content": .string(String(decoding: data.content, as: UTF8.self)), "ex": .string(data.ex),
    ]
  }

  /// One call may name both users of a single chat, so the other one follows from the id.
  private func peer(of userID: String, _ id: String, _ changes: JSONValue) -> String {
    OpenIMConversationID.peer(in: id, of: userID) ?? changes["userID"]?.string ?? ""
  }

  private static func apply(_ changes: JSONValue, to record: inout OpenIMConversation) {
    if let pinned = changes["isPinned"]?.bool { record.isPinned = pinned }
    if let option = changes["recvMsgOpt"]?.int { record.recvMsgOpt = option }
    if let isPrivate = changes["isPrivateChat"]?.bool { record.isPrivateChat = isPrivate }
    if let burn = changes["burnDuration"]?.int { record.burnDuration = burn }
    if let at = changes["groupAtType"]?.int { record.groupAtType = at }
    if let ex = changes["ex"]?.string { record.ex = ex }
    if let info = changes["attachedInfo"]?.string { record.attachedInfo = info }
    if let time = changes["msgDestructTime"]?.int { record.msgDestructTime = time }
    if let destruct = changes["isMsgDestruct"]?.bool { record.isMsgDestruct = destruct }
    if let low = changes["minSeq"]?.int { record.minSeq = low }
    if let high = changes["maxSeq"]?.int { record.maxSeq = high }
  }

  // MARK: What a light client draws

  private func activeConversations(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    let user = try selfUser(call, "ownerUserID")
    let count = Int(clamping: max(1, call.int("count")))
    let newest = user.conversationIDs
      .filter { maxSeq(user, $0) > 0 }
      .map { (id: $0, time: logs[OpenIMKey($0)]?.lastStoredAt ?? 0) }
      .sorted { ($0.time, $1.id) > ($1.time, $0.id) }
    return drawn(user, newest.prefix(count).map(\.id))
  }

  private func drawn(_ user: OpenIMUser, _ ids: [String]) -> JSONValue {
    var unread: Int64 = 0
    let list = ids.compactMap { id -> JSONValue? in
      guard let record = user[conversation: id] else { return nil }
      let max = maxSeq(user, id)
      let read = user.sequences[OpenIMKey(id)]?.hasRead ?? 0
      if record.recvMsgOpt < 2 { unread += Swift.max(0, max - read) }
      return [
        "conversation": record.json(owner: user.id), "lastMsg": lastMessage(of: user, in: id)?.restJSON ?? .null,
        "user": self.user(record.peer)?.info ?? .null, "friend": .null,
        "group": group(record.groupID)?.info ?? .null, "maxSeq": .int(max), "readSeq": .int(read),
      ]
    }
    return ["unreadCount": .int(unread), "conversations": list.orNull]
  }
}
