import ChatJSON
import ChatTransport
import OpenIMWire

extension OpenIMEmulator {
  static let groupHandlers: [String: Handler] = [
    "/group/create_group": { emulator, call, step in try emulator.createGroup(call, &step) },
    "/group/get_groups_info": { emulator, call, _ in
      ["groupInfos": call.strings("groupIDs").compactMap { emulator.group($0)?.info }.orNull]
    },
    "/group/get_groups": { emulator, call, _ in try emulator.searchGroups(call) },
    "/group/get_joined_group_list": { emulator, call, _ in try emulator.joinedGroups(call) },
    "/group/set_group_info_ex": { emulator, call, step in try emulator.setGroupInfo(call, call.body, &step) },
    "/group/set_group_info": { emulator, call, step in
      try emulator.setGroupInfo(call, call.body["groupInfoForSet"] ?? .null, &step)
    },
    "/group/dismiss_group": { emulator, call, step in try emulator.dismissGroup(call, &step) },
    "/group/mute_group": { emulator, call, step in try emulator.muteGroup(call, true, &step) },
    "/group/cancel_mute_group": { emulator, call, step in try emulator.muteGroup(call, false, &step) },
    "/group/get_incremental_join_groups": { emulator, call, _ in try emulator.incrementalGroups(call) },
    "/group/get_full_join_group_ids": { emulator, call, _ in
      let user = try emulator.selfUser(call)
      return emulator.fullIDs(user.groupLog, "groupIDs", user.groups.map(\.text), call)
    },
  ]

  /// The user named by `userID`, who must be the caller or let the admin ask.
  func selfUser(_ call: OpenIMCall, _ key: String = "userID") throws(OpenIMFault) -> OpenIMUser {
    let id = try call.needed(key)
    try call.needSelf(id)
    guard let user = user(id) else { throw OpenIMFault(.notFound) }
    return user
  }

  func neededGroup(_ call: OpenIMCall) throws(OpenIMFault) -> OpenIMGroup {
    guard let group = group(try call.needed("groupID")) else { throw OpenIMFault(.groupNotFound) }
    return group
  }

  /// Owner, admins and the server's admin manage a group.
  func needManager(_ call: OpenIMCall, of group: OpenIMGroup) throws(OpenIMFault) {
    guard group.status != OpenIMGroup.dismissed else { throw OpenIMFault(.dismissed) }
    guard let caller = call.caller else { throw OpenIMFault(.noPermission) }
    if caller.isAdmin { return }
    guard let member = group[member: caller.userID], member.role >= OpenIMRole.admin else {
      throw OpenIMFault(.noPermission)
    }
  }

  // MARK: Creating

  private func createGroup(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let info = call.body["groupInfo"] ?? .null
    guard info["groupType"]?.int == 2 else { throw OpenIMFault(.arguments, "groupType is not supported") }
    let owner = call.string("ownerUserID")
    guard !owner.isEmpty else { throw OpenIMFault(.arguments, "no group owner") }
    try call.needSelf(owner)
    let admins = call.strings("adminUserIDs")
    let everyone = [owner] + admins + call.strings("memberUserIDs")
    guard Set(everyone.map(OpenIMKey.init)).count == everyone.count else {
      throw OpenIMFault(.arguments, "group member repeated")
    }
    for id in everyone where user(id) == nil { throw OpenIMFault(.userNotFound, "user not found") }
    let group = try newGroup(info, owner: owner, operator: call.caller?.userID ?? owner, &step)
    for (index, id) in everyone.enumerated() {
      let role = index == 0 ? OpenIMRole.owner : index <= admins.count ? OpenIMRole.admin : OpenIMRole.member
      add(id, to: group, role: role, by: call.caller?.userID ?? owner, now: step.now)
    }
    // Creation is the first version of the member list.
    group.memberLog = OpenIMVersionLog(id: group.memberLog.id)
    announceCreation(of: group, call, &step)
    return ["groupInfo": group.info]
  }

  private func newGroup(
    _ info: JSONValue, owner: String, operator creator: String, _ step: inout OpenIMStep
  ) throws(OpenIMFault) -> OpenIMGroup {
    var id = info["groupID"]?.string ?? ""
    if id.isEmpty {
      repeat { id = String(step.context.random.next() >> 32) } while group(id) != nil
    } else if group(id) != nil {
      throw OpenIMFault(.groupExists, "group id existed")
    }
    let group = OpenIMGroup(id: id, versionID: step.context.hex(24))
    func text(_ key: String) -> String { info[key]?.string ?? "" }
    group.name = text("groupName")
    group.notification = text("notification")
    group.introduction = text("introduction")
    group.faceURL = text("faceURL")
    group.ex = text("ex")
    group.owner = owner
    group.creator = text("creatorUserID").isEmpty ? creator : text("creatorUserID")
    group.createTime = step.now
    group.needVerification = info["needVerification"]?.int ?? 0
    group.lookMemberInfo = info["lookMemberInfo"]?.int ?? 0
    group.applyMemberFriend = info["applyMemberFriend"]?.int ?? 0
    groups[OpenIMKey(id)] = group
    groupOrder.append(id)
    return group
  }

  /// The group's tips name the operator alone as member (observed).
  private func announceCreation(of group: OpenIMGroup, _ call: OpenIMCall, _ step: inout OpenIMStep) {
    let op = call.caller.map { memberInfo(group, $0.userID) } ?? .null
    var owner = memberInfo(group, group.owner)
    // The owner's name is empty there (observed).
    if case .object(var members) = owner {
      members["nickname"] = ""
      owner = .object(members)
    }
    let detail: JSONValue = [
      "group": group.info, "opUser": op, "memberList": op.isNull ? .null : [op],
      "operationTime": .int(group.createTime), "groupOwnerUser": owner, "groupMemberVersion": 0,
      "groupMemberVersionID": "",
    ]
    let info: JSONObject = [
      "title": "create group title", "desc": "create group desc", "ex": "create group ext",
    ]
    notify(
      Notice(
        type: OpenIMNotice.groupCreated, detail: detail, sender: call.caller?.userID ?? group.owner,
        kind: tipClass(call), pushInfo: info), group: group, &step)
  }

  /// `sendMessage: false` keeps the tips out of the conversation.
  func tipClass(_ call: OpenIMCall) -> NoticeClass {
    call.body["sendMessage"]?.bool == false ? .unreliable : .alsoMessage
  }

  func add(_ id: String, to group: OpenIMGroup, role: Int64, by operatorID: String, now: Int64) {
    group[member: id] = OpenIMGroupMember(
      userID: id, role: role, joinTime: now, operatorUserID: operatorID, inviterUserID: operatorID)
    group.memberLog.record(.insert, id)
    guard let user = user(id) else { return }
    user.groups.append(OpenIMKey(group.id))
    user.groupLog.record(.insert, group.id)
    let conversation = OpenIMConversationID.group(group.id)
    user.sequences[OpenIMKey(conversation)]?.max = 0
    if logs[OpenIMKey(conversation)]?.messages.isEmpty == false { makeGroupRecord(of: id, group.id) }
  }

  /// What a former member still sees ends at `lastSeq`.
  func remove(_ id: String, from group: OpenIMGroup, lastSeq: Int64) {
    group[member: id] = nil
    group.memberLog.record(.delete, id)
    guard let user = user(id) else { return }
    user.groups.removeAll { $0 == OpenIMKey(group.id) }
    user.groupLog.record(.delete, group.id)
    let conversation = OpenIMKey(OpenIMConversationID.group(group.id))
    user.sequences[conversation, default: .init()].max = lastSeq
  }

  func memberInfo(_ group: OpenIMGroup, _ id: String) -> JSONValue {
    guard let member = group[member: id] else {
      // The server's admin acts without being a member.
      return memberInfo(group, OpenIMGroupMember(userID: id, role: 0, joinTime: 0, joinSource: 0))
    }
    return memberInfo(group, member)
  }

  func memberInfo(_ group: OpenIMGroup, _ member: OpenIMGroupMember) -> JSONValue {
    let user = user(member.userID)
    return [
      "groupID": .string(group.id), "userID": .string(member.userID), "roleLevel": .int(member.role),
      "joinTime": .int(member.joinTime),
      "nickname": .string(member.nickname.isEmpty ? user?.nickname ?? "" : member.nickname),
      "faceURL": .string(member.faceURL.isEmpty ? user?.faceURL ?? "" : member.faceURL),
      "appMangerLevel": .int(user?.managerLevel ?? 0), "joinSource": .int(member.joinSource),
      "operatorUserID": .string(member.operatorUserID), "ex": .string(member.ex),
      "muteEndTime": .int(member.muteEndTime), "inviterUserID": .string(member.inviterUserID),
    ]
  }

  /// The parts that every group tip has.
  func tip(_ group: OpenIMGroup, _ call: OpenIMCall, _ step: OpenIMStep, _ more: JSONObject) -> JSONValue {
    var detail: JSONObject = [
      "group": group.info, "opUser": memberInfo(group, call.caller?.userID ?? ""), "operationTime": .int(step.now),
    ]
    for member in more { detail[member.key] = member.value }
    detail["groupMemberVersion"] = .int(group.memberLog.version)
    detail["groupMemberVersionID"] = .string(group.memberLog.id)
    return .object(detail)
  }

  func tell(
    _ group: OpenIMGroup, _ type: Int64, _ call: OpenIMCall, _ kind: NoticeClass, _ step: inout OpenIMStep,
    more: JSONObject = [:], also: [String] = []
  ) {
    let detail = tip(group, call, step, more)
    notify(
      Notice(type: type, detail: detail, sender: call.caller?.userID ?? group.owner, kind: kind), group: group,
      also: also, &step)
  }

  // MARK: Lists

  private func searchGroups(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    try call.needAdmin()
    let page = try OpenIMPage(call.body)
    let wantedID = call.string("groupID")
    let wantedName = call.string("groupName")
    let found = groupOrder.compactMap { group($0) }.filter { group in
      group.status != OpenIMGroup.dismissed && (wantedID.isEmpty || group.id == wantedID)
        && (wantedName.isEmpty || group.name.contains(wantedName))
    }
    let items = page.slice(found).map { group -> JSONValue in
      [
        "groupInfo": group.info, "groupOwnerUserName": .string(user(group.owner)?.nickname ?? ""),
        "groupOwnerUserID": .string(group.owner),
      ]
    }
    return ["total": JSONValue(found.count), "groups": items.orNull]
  }

  private func joinedGroups(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    let user = try selfUser(call, "fromUserID")
    let page = try OpenIMPage(call.body)
    return [
      "total": JSONValue(user.groups.count),
      "groups": page.slice(user.groups).compactMap { groups[$0]?.info }.orNull,
    ]
  }

  private func incrementalGroups(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    let user = try selfUser(call)
    var answer = incremental(user.groupLog, call.body) { self.group($0)?.info }
    answer["sortVersion"] = 0
    return .object(answer)
  }

  /// Changes since the version that the client names (reference §5.4).
  func incremental(
    _ log: OpenIMVersionLog, _ request: JSONValue, object: (String) -> JSONValue?
  ) -> JSONObject {
    let changes = log.since(id: request["versionID"]?.string ?? "", version: request["version"]?.int ?? 0)
    func keys(_ wanted: OpenIMVersionLog.Change) -> [String] {
      (changes ?? []).filter { $0.change == wanted }.map(\.key)
    }
    return [
      "version": .int(log.version), "versionID": .string(log.id), "full": .bool(changes == nil),
      "delete": keys(.delete).map { .string($0) }.orNull, "insert": keys(.insert).compactMap(object).orNull,
      "update": keys(.update).compactMap(object).orNull,
    ]
  }

  /// A client that has the same list is told so (reference §5.4).
  func fullIDs(_ log: OpenIMVersionLog, _ key: String, _ ids: [String], _ call: OpenIMCall) -> JSONValue {
    let isEqual = call.body["idHash"]?.uint == OpenIMIDHash.of(ids)
    return [
      "version": .int(log.version), "versionID": .string(log.id), "equal": .bool(isEqual),
      key: isEqual ? .null : ids.map { .string($0) }.orNull,
    ]
  }

  // MARK: Changing

  private func setGroupInfo(
    _ call: OpenIMCall, _ info: JSONValue, _ step: inout OpenIMStep
  ) throws(OpenIMFault) -> JSONValue? {
    guard let group = group(info["groupID"]?.string ?? "") else { throw OpenIMFault(.groupNotFound) }
    try needManager(call, of: group)
    var type: Int64?
    func change(_ key: String, _ place: ReferenceWritableKeyPath<OpenIMGroup, String>, _ notice: Int64) {
      guard let text = info[key]?.string else { return }
      group[keyPath: place] = text
      if type != OpenIMNotice.groupNameSet { type = notice }
    }
    change("introduction", \.introduction, OpenIMNotice.groupInfoSet)
    change("faceURL", \.faceURL, OpenIMNotice.groupInfoSet)
    change("ex", \.ex, OpenIMNotice.groupInfoSet)
    change("notification", \.notification, OpenIMNotice.announcementSet)
    change("groupName", \.name, OpenIMNotice.groupNameSet)
    for (key, place) in [
      ("needVerification", \OpenIMGroup.needVerification), ("lookMemberInfo", \.lookMemberInfo),
      ("applyMemberFriend", \.applyMemberFriend),
    ] {
      if let number = info[key]?.int {
        group[keyPath: place] = number
        type = type ?? OpenIMNotice.groupInfoSet
      }
    }
    markChanged(group)
    guard let type else { return nil }
    if info["notification"]?.string != nil {
      group.notificationUpdateTime = step.now
      group.notificationUserID = call.caller?.userID ?? ""
    }
    tell(group, type, call, type == OpenIMNotice.groupInfoSet ? .unreliable : .alsoMessage, &step)
    if type == OpenIMNotice.announcementSet {
      let id = OpenIMConversationID.group(group.id)
      for member in group.sortedMembers { setAtType(OpenIMAtType.announcement, of: member.userID, in: id, &step) }
    }
    return nil
  }

  /// A group's own data is a change in its list of members, of nobody: clients take what a tip says of the group for old
  /// unless the number of that list goes up with it (observed; the server notes it so).
  private func markChanged(_ group: OpenIMGroup) { group.memberLog.record(.update, "") }

  private func dismissGroup(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let group = try neededGroup(call)
    guard group.status != OpenIMGroup.dismissed else { throw OpenIMFault(.dismissed) }
    guard let caller = call.caller, caller.isAdmin || caller.userID.utf8.elementsEqual(group.owner.utf8) else {
      throw OpenIMFault(.noPermission, "not group owner")
    }
    group.status = OpenIMGroup.dismissed
    tell(group, OpenIMNotice.groupDismissed, call, tipClass(call), &step)
    guard call.bool("deleteMember") else {
      markChanged(group)
      return nil
    }
    let last = log(OpenIMConversationID.group(group.id)).maxSeq
    for key in group.members.keys { remove(key.text, from: group, lastSeq: last) }
    return nil
  }

  private func muteGroup(
    _ call: OpenIMCall, _ isMuted: Bool, _ step: inout OpenIMStep
  ) throws(OpenIMFault) -> JSONValue? {
    let group = try neededGroup(call)
    try needManager(call, of: group)
    group.status = isMuted ? OpenIMGroup.muted : OpenIMGroup.normal
    markChanged(group)
    tell(group, isMuted ? OpenIMNotice.groupMuted : OpenIMNotice.groupUnmuted, call, .alsoMessage, &step)
    return nil
  }
}
