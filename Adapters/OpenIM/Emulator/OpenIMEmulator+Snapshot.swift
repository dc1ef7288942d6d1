import ChatCrypto
import ChatJSON
import ChatTransport
import OpenIMWire

extension OpenIMEmulator {
  // MARK: Saving

  public func snapshot() -> JSONValue {
    [
      "users": .array(userOrder.compactMap { user($0) }.map { $0.snapshot }),
      "groups": .array(groupOrder.compactMap { group($0) }.map { $0.snapshot }),
      "logs": .array(
        logs.values.sorted { $0.id.utf8.lexicographicallyPrecedes($1.id.utf8) }.map { log in
          [
            "id": .string(log.id), "time": .int(log.lastStoredAt),
            "messages": .array(log.messages.map { $0?.frameJSON ?? .null }),
          ]
        }),
      "tokens": .array(
        tokens.entries.sorted { $0.key.text < $1.key.text }.map { token, entry in
          [
            "token": .string(token.text), "user": .string(entry.userID),
            "platform": entry.platform.map { .int($0) } ?? .null, "state": .string(entry.state.rawValue),
          ]
        }),
      "blobs": .array(
        objects.blobs.sorted { $0.key < $1.key }.map { hash, file in
          [
            "hash": .string(hash), "type": .string(file.mimeType), "data": .string(Base64.encode(file.bytes)),
          ]
        }),
      "names": .array(
        objects.names.sorted { $0.key.text < $1.key.text }.map { [.string($0.key.text), .string($0.value)] }),
      "channels": .array(
        loadedChannels.sorted { $0.key.text < $1.key.text }.map { id, channel in
          [
            "id": .string(id.text), "direct": .bool(channel.isDirect), "group": .string(channel.groupID),
            "members": .array(channel.members.map { .string($0) }), "conversation": .string(channel.conversationID),
          ]
        }),
    ]
  }

  // MARK: Putting back

  /// Uploads on their way and call counts are not part of it.
  public func restore(_ snapshot: JSONValue) throws(EmulatorError) {
    guard let savedUsers = snapshot["users"]?.array, let savedGroups = snapshot["groups"]?.array,
      let savedLogs = snapshot["logs"]?.array, let savedTokens = snapshot["tokens"]?.array
    else { throw EmulatorError(.invalidSnapshot, "openim: users, groups, logs or tokens are missing") }
    let newUsers = try savedUsers.map { (json) throws(EmulatorError) in try OpenIMUser(snapshot: json) }
    let newGroups = try savedGroups.map { (json) throws(EmulatorError) in try OpenIMGroup(snapshot: json) }
    users = Dictionary(newUsers.map { (OpenIMKey($0.id), $0) }) { _, last in last }
    userOrder = newUsers.map(\.id)
    groups = Dictionary(newGroups.map { (OpenIMKey($0.id), $0) }) { _, last in last }
    groupOrder = newGroups.map(\.id)
    for user in newUsers {
      for friend in user.friends.all { users[OpenIMKey(friend.userID)]?.heldBy.insert(OpenIMKey(user.id)) }
    }
    connections = [:]
    logs = [:]
    for saved in savedLogs { restoreLog(saved) }
    tokens = OpenIMTokenStore()
    for saved in savedTokens {
      tokens.add(
        saved["token"]?.string ?? "", saved["user"]?.string ?? "", platform: saved["platform"]?.int,
        state: saved["state"]?.string.flatMap { OpenIMTokenStore.State(rawValue: $0) } ?? .normal)
    }
    restoreObjects(snapshot)
    restoreChannels(snapshot)
  }

  private func restoreLog(_ saved: JSONValue) {
    let log = log(saved["id"]?.string ?? "")
    log.lastStoredAt = saved["time"]?.int ?? 0
    log.messages = (saved["messages"]?.array ?? []).map { $0.isNull ? nil : OpenIMMessageData(json: $0) }
  }

  private func restoreObjects(_ snapshot: JSONValue) {
    objects = OpenIMObjectStore()
    for saved in snapshot["blobs"]?.array ?? [] {
      objects.blobs[saved["hash"]?.string ?? ""] = OpenIMObjectStore.File(
        bytes: Base64.decode(saved["data"]?.string ?? "") ?? [], mimeType: saved["type"]?.string ?? "")
    }
    for saved in snapshot["names"]?.array ?? [] {
      if let name = saved[0]?.string, let hash = saved[1]?.string { objects.names[OpenIMKey(name)] = hash }
    }
  }

  private func restoreChannels(_ snapshot: JSONValue) {
    loadedChannels = [:]
    for saved in snapshot["channels"]?.array ?? [] {
      loadedChannels[OpenIMKey(saved["id"]?.string ?? "")] = OpenIMLoadedChannel(
        isDirect: saved["direct"]?.bool ?? false, groupID: saved["group"]?.string ?? "",
        members: strings(saved["members"]), conversationID: saved["conversation"]?.string ?? "")
    }
  }
}

extension OpenIMVersionLog {
  fileprivate var snapshot: JSONValue {
    [
      "id": .string(id), "version": .int(version),
      "changes": .array(changes.map { [.int($0.version), .string($0.key), .string($0.change.rawValue)] }),
    ]
  }

  fileprivate init(snapshot: JSONValue?) {
    self.init(id: snapshot?["id"]?.string ?? "")
    for saved in snapshot?["changes"]?.array ?? [] {
      version = (saved[0]?.int ?? 1) &- 1
      record(saved[2]?.string.flatMap { Change(rawValue: $0) } ?? .update, saved[1]?.string ?? "")
    }
    version = snapshot?["version"]?.int ?? 1
  }
}

extension OpenIMUser {
  fileprivate var snapshot: JSONValue {
    let marks = sequences.sorted { $0.key.text < $1.key.text }.map { id, sequence -> JSONValue in
      [
        "id": .string(id.text), "read": .int(sequence.hasRead), "min": .int(sequence.min), "max": .int(sequence.max),
        "hidden": .array(sequence.hidden.sorted().map { .int($0) }),
      ]
    }
    return [
      "info": info, "conversations": .array(conversationIDs.compactMap { self[conversation: $0]?.json(owner: id) }),
      "sequences": .array(marks), "groups": .array(groups.map { .string($0.text) }),
      "blacks": .array(blacks.map { [.string($0.userID), .int($0.createTime), .string($0.ex)] }),
      "friends": .array(friends.all.map(\.snapshot)), "friendRequests": .array(friendRequests.map(\.snapshot)),
      "askedFriends": .array(askedFriends.map { .string($0) }),
      "askedGroups": .array(askedGroups.map { .string($0.text) }), "commands": .array(commands.map(\.json)),
      "configuration": .array(
        configuration.sorted { $0.key.text.utf8.lexicographicallyPrecedes($1.key.text.utf8) }.map {
          [.string($0.key.text), .string($0.value)]
        }),
      "pushTokens": .array(
        pushTokens.sorted { $0.key < $1.key }.map {
          [.int($0.key), .string($0.value.token), .int($0.value.expiresAt)]
        }), "badge": .int(badge),
      "conversationLog": conversationLog.snapshot, "groupLog": groupLog.snapshot, "friendLog": friendLog.snapshot,
      "blackLog": blackLog.snapshot,
    ]
  }

  fileprivate convenience init(snapshot: JSONValue) throws(EmulatorError) {
    guard let info = snapshot["info"], let id = info["userID"]?.string else {
      throw EmulatorError(.invalidSnapshot, "openim: a user without an id")
    }
    self.init(
      id: id, nickname: info["nickname"]?.string ?? "", faceURL: info["faceURL"]?.string ?? "",
      ex: info["ex"]?.string ?? "", createTime: info["createTime"]?.int ?? 0,
      managerLevel: info["appMangerLevel"]?.int ?? 0, versionIDs: ("", "", "", ""))
    globalRecvMsgOpt = info["globalRecvMsgOpt"]?.int ?? 0
    for saved in snapshot["conversations"]?.array ?? [] { restore(OpenIMConversation(snapshot: saved)) }
    for saved in snapshot["sequences"]?.array ?? [] {
      sequences[OpenIMKey(saved["id"]?.string ?? "")] = OpenIMUserSequence(
        hasRead: saved["read"]?.int ?? 0, min: saved["min"]?.int ?? 0, max: saved["max"]?.int ?? 0,
        hidden: Set((saved["hidden"]?.array ?? []).compactMap(\.int)))
    }
    groups = (snapshot["groups"]?.array ?? []).compactMap(\.string).map(OpenIMKey.init)
    restoreRelations(snapshot)
    conversationLog = OpenIMVersionLog(snapshot: snapshot["conversationLog"])
    groupLog = OpenIMVersionLog(snapshot: snapshot["groupLog"])
    friendLog = OpenIMVersionLog(snapshot: snapshot["friendLog"])
    blackLog = OpenIMVersionLog(snapshot: snapshot["blackLog"])
  }

  private func restoreRelations(_ snapshot: JSONValue) {
    func list(_ key: String) -> [JSONValue] { snapshot[key]?.array ?? [] }
    blacks = list("blacks").map {
      OpenIMBlack(userID: $0[0]?.string ?? "", createTime: $0[1]?.int ?? 0, ex: $0[2]?.string ?? "")
    }
    for saved in list("friends") {
      let friend = OpenIMFriend(snapshot: saved)
      friends[friend.userID] = friend
    }
    friendRequests = list("friendRequests").map { OpenIMFriendRequest(snapshot: $0) }
    askedFriends = list("askedFriends").compactMap(\.string)
    askedGroups = list("askedGroups").compactMap(\.string).map(OpenIMKey.init)
    commands = list("commands").map { OpenIMCommand(snapshot: $0) }
    for saved in list("configuration") { configuration[OpenIMKey(saved[0]?.string ?? "")] = saved[1]?.string }
    for saved in list("pushTokens") {
      guard let platform = saved[0]?.int else { continue }
      pushTokens[platform] = OpenIMPushToken(token: saved[1]?.string ?? "", expiresAt: saved[2]?.int ?? 0)
    }
    badge = snapshot["badge"]?.int ?? 0
  }
}

extension OpenIMConversation {
  fileprivate init(snapshot: JSONValue) {
    func text(_ key: String) -> String { snapshot[key]?.string ?? "" }
    func int(_ key: String) -> Int64 { snapshot[key]?.int ?? 0 }
    self.init(
      id: text("conversationID"), type: int("conversationType"), peer: text("userID"), groupID: text("groupID"))
    recvMsgOpt = int("recvMsgOpt")
    isPinned = snapshot["isPinned"]?.bool ?? false
    attachedInfo = text("attachedInfo")
    isPrivateChat = snapshot["isPrivateChat"]?.bool ?? false
    groupAtType = int("groupAtType")
    ex = text("ex")
    burnDuration = int("burnDuration")
    minSeq = int("minSeq")
    maxSeq = int("maxSeq")
    msgDestructTime = int("msgDestructTime")
    isMsgDestruct = snapshot["isMsgDestruct"]?.bool ?? false
  }
}

extension OpenIMGroup {
  fileprivate var snapshot: JSONValue {
    let list = sortedMembers.map { member -> JSONValue in
      [
        "userID": .string(member.userID), "role": .int(member.role), "joinTime": .int(member.joinTime),
        "nickname": .string(member.nickname), "faceURL": .string(member.faceURL),
        "joinSource": .int(member.joinSource), "operator": .string(member.operatorUserID),
        "ex": .string(member.ex), "muteEndTime": .int(member.muteEndTime),
        "inviter": .string(member.inviterUserID),
      ]
    }
    return [
      "info": info, "members": .array(list), "memberLog": memberLog.snapshot,
      "requests": .array(requests.map(\.snapshot)),
    ]
  }

  fileprivate convenience init(snapshot: JSONValue) throws(EmulatorError) {
    guard let info = snapshot["info"], let id = info["groupID"]?.string else {
      throw EmulatorError(.invalidSnapshot, "openim: a group without an id")
    }
    self.init(id: id, versionID: "")
    func text(_ key: String) -> String { info[key]?.string ?? "" }
    func int(_ key: String) -> Int64 { info[key]?.int ?? 0 }
    (name, notification, introduction) = (text("groupName"), text("notification"), text("introduction"))
    (faceURL, owner, ex, creator) = (text("faceURL"), text("ownerUserID"), text("ex"), text("creatorUserID"))
    (createTime, status, needVerification) = (int("createTime"), int("status"), int("needVerification"))
    (lookMemberInfo, applyMemberFriend) = (int("lookMemberInfo"), int("applyMemberFriend"))
    (notificationUpdateTime, notificationUserID) = (int("notificationUpdateTime"), text("notificationUserID"))
    for saved in snapshot["members"]?.array ?? [] { restore(saved) }
    memberLog = OpenIMVersionLog(snapshot: snapshot["memberLog"])
    requests = (snapshot["requests"]?.array ?? []).map { OpenIMGroupRequest(snapshot: $0) }
  }

  private func restore(_ saved: JSONValue) {
    func text(_ key: String) -> String { saved[key]?.string ?? "" }
    func int(_ key: String) -> Int64 { saved[key]?.int ?? 0 }
    self[member: text("userID")] = OpenIMGroupMember(
      userID: text("userID"), role: int("role"), joinTime: int("joinTime"), nickname: text("nickname"),
      faceURL: text("faceURL"), joinSource: int("joinSource"), operatorUserID: text("operator"), ex: text("ex"),
      muteEndTime: int("muteEndTime"), inviterUserID: text("inviter"))
  }
}
