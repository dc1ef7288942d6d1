import ChatJSON
import ChatTransport
import OpenIMWire

extension OpenIMEmulator {
  static let memberHandlers: [String: Handler] = [
    "/group/get_group_member_list": { emulator, call, _ in try emulator.memberList(call) },
    "/group/get_group_members_info": { emulator, call, _ in
      let group = try emulator.neededGroup(call)
      let found = call.strings("userIDs").compactMap { group[member: $0] }.map { emulator.memberInfo(group, $0) }
      return ["members": found.orNull]
    },
    "/group/get_group_member_user_id": { emulator, call, _ in
      let group = try emulator.neededGroup(call)
      return ["userIDs": group.sortedMembers.map { .string($0.userID) }.orNull]
    },
    "/group/invite_user_to_group": { emulator, call, step in try emulator.invite(call, &step) },
    "/group/kick_group": { emulator, call, step in try emulator.kickMembers(call, &step) },
    "/group/quit_group": { emulator, call, step in try emulator.quit(call, &step) },
    "/group/transfer_group": { emulator, call, step in try emulator.transfer(call, &step) },
    "/group/mute_group_member": { emulator, call, step in try emulator.muteMember(call, true, &step) },
    "/group/cancel_mute_group_member": { emulator, call, step in try emulator.muteMember(call, false, &step) },
    "/group/set_group_member_info": { emulator, call, step in try emulator.setMemberInfo(call, &step) },
    "/group/get_incremental_group_members_batch": { emulator, call, _ in try emulator.incrementalMembers(call) },
    "/group/get_full_group_member_user_ids": { emulator, call, _ in
      let group = try emulator.neededGroup(call)
      return emulator.fullIDs(group.memberLog, "userIDs", group.sortedMembers.map(\.userID), call)
    },
  ]

  private func memberList(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    let group = try neededGroup(call)
    let page = try OpenIMPage(call.body)
    let wanted: Set<Int64>?
    switch call.int("filter") {
    case 1: wanted = [OpenIMRole.owner]
    case 2: wanted = [OpenIMRole.admin]
    case 3: wanted = [OpenIMRole.member]
    case 4: wanted = [OpenIMRole.admin, OpenIMRole.member]
    case 5: wanted = [OpenIMRole.owner, OpenIMRole.admin]
    default: wanted = nil
    }
    let keyword = call.string("keyword")
    var found = group.sortedMembers
    if let wanted { found.removeAll { !wanted.contains($0.role) } }
    if !keyword.isEmpty {
      found.removeAll { !$0.userID.contains(keyword) && user($0.userID)?.nickname.contains(keyword) != true }
    }
    return [
      "total": JSONValue(found.count), "members": page.slice(found).map { memberInfo(group, $0) }.orNull,
    ]
  }

  private func invite(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let group = try neededGroup(call)
    guard group.status != OpenIMGroup.dismissed else { throw OpenIMFault(.dismissed) }
    guard let caller = call.caller, caller.isAdmin || group[member: caller.userID] != nil else {
      throw OpenIMFault(.noPermission)
    }
    let ids = call.strings("invitedUserIDs")
    guard !ids.isEmpty, Set(ids.map(OpenIMKey.init)).count == ids.count else {
      throw OpenIMFault(.arguments, "invitedUserIDs empty or repeated")
    }
    for id in ids where user(id) == nil { throw OpenIMFault(.userNotFound) }
    let fresh = ids.filter { group[member: $0] == nil }
    guard !fresh.isEmpty else { return nil }
    if group.needVerification == Verification.everybody, !caller.isAdmin,
      (group[member: caller.userID]?.role ?? 0) < OpenIMRole.admin
    {
      for id in fresh {
        let request = OpenIMGroupRequest(
          userID: id, reqMsg: call.string("reason"), reqTime: step.now, joinSource: 2, inviterUserID: caller.userID)
        apply(request, to: group, &step)
      }
      return nil
    }
    for id in fresh { add(id, to: group, role: OpenIMRole.member, by: caller.userID, now: step.now) }
    let invited = fresh.map { memberInfo(group, $0) }
    tell(
      group, OpenIMNotice.memberInvited, call, tipClass(call), &step,
      more: ["invitedUserList": .array(invited), "inviterUser": memberInfo(group, caller.userID)])
    return nil
  }

  private func kickMembers(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let group = try neededGroup(call)
    try needManager(call, of: group)
    let ids = call.strings("kickedUserIDs")
    guard !ids.isEmpty else { throw OpenIMFault(.arguments, "kickedUserIDs empty") }
    let own = call.caller.flatMap { group[member: $0.userID]?.role } ?? OpenIMRole.owner
    for id in ids {
      guard let member = group[member: id] else { throw OpenIMFault(.notInGroup) }
      guard member.role != OpenIMRole.owner, call.caller?.isAdmin == true || member.role < own else {
        throw OpenIMFault(.noPermission)
      }
    }
    let kicked = ids.map { memberInfo(group, $0) }
    let last = log(OpenIMConversationID.group(group.id)).maxSeq
    for id in ids { remove(id, from: group, lastSeq: last) }
    tell(
      group, OpenIMNotice.memberKicked, call, tipClass(call), &step, more: ["kickedUserList": .array(kicked)],
      also: ids)
    return nil
  }

  private func quit(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let group = try neededGroup(call)
    let id = call.string("userID").isEmpty ? call.caller?.userID ?? "" : call.string("userID")
    try call.needSelf(id)
    guard let member = group[member: id] else { throw OpenIMFault(.notInGroup) }
    guard member.role != OpenIMRole.owner else { throw OpenIMFault(.noPermission, "group owner can't quit") }
    let info = memberInfo(group, member)
    remove(id, from: group, lastSeq: log(OpenIMConversationID.group(group.id)).maxSeq)
    tell(group, OpenIMNotice.memberQuit, call, .alsoMessage, &step, more: ["quitUser": info], also: [id])
    return nil
  }

  private func transfer(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let group = try neededGroup(call)
    let (old, new) = (call.string("oldOwnerUserID"), call.string("newOwnerUserID"))
    guard let caller = call.caller, caller.isAdmin || caller.userID.utf8.elementsEqual(group.owner.utf8) else {
      throw OpenIMFault(.noPermission)
    }
    guard group.owner.utf8.elementsEqual(old.utf8), group[member: new] != nil else { throw OpenIMFault(.arguments) }
    group[member: old]?.role = OpenIMRole.member
    group[member: new]?.role = OpenIMRole.owner
    group.owner = new
    for id in [old, new] { group.memberLog.record(.update, id) }
    tell(
      group, OpenIMNotice.ownerTransferred, call, .alsoMessage, &step,
      more: [
        "newGroupOwner": memberInfo(group, new), "oldGroupOwner": .string(old),
        "oldGroupOwnerInfo": memberInfo(group, old),
      ])
    return nil
  }

  private func muteMember(
    _ call: OpenIMCall, _ isMuted: Bool, _ step: inout OpenIMStep
  ) throws(OpenIMFault) -> JSONValue? {
    let group = try neededGroup(call)
    try needManager(call, of: group)
    let id = try call.needed("userID")
    guard let member = group[member: id] else { throw OpenIMFault(.notFound) }
    guard member.role != OpenIMRole.owner || call.caller?.isAdmin == true else { throw OpenIMFault(.noPermission) }
    let seconds = call.int("mutedSeconds")
    let (length, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    group[member: id]?.muteEndTime = isMuted ? step.now.clampedAdd(overflow ? .max : length) : 0
    group.memberLog.record(.update, id)
    var more: JSONObject = ["mutedUser": memberInfo(group, id)]
    if isMuted { more["mutedSeconds"] = .int(seconds) }
    tell(
      group, isMuted ? OpenIMNotice.memberMuted : OpenIMNotice.memberUnmuted, call, .alsoMessage, &step, more: more)
    return nil
  }

  private func setMemberInfo(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    for entry in call.body["members"]?.array ?? [] {
      guard let group = group(entry["groupID"]?.string ?? "") else { throw OpenIMFault(.groupNotFound) }
      let id = entry["userID"]?.string ?? ""
      guard group[member: id] != nil else { throw OpenIMFault(.notFound) }
      if call.caller?.userID.utf8.elementsEqual(id.utf8) != true || entry["roleLevel"]?.int != nil {
        try needManager(call, of: group)
      }
      set(entry, of: id, in: group, call, &step)
    }
    return nil
  }

  private func set(
    _ entry: JSONValue, of id: String, in group: OpenIMGroup, _ call: OpenIMCall, _ step: inout OpenIMStep
  ) {
    if let nickname = entry["nickname"]?.string { group[member: id]?.nickname = nickname }
    if let face = entry["faceURL"]?.string { group[member: id]?.faceURL = face }
    if let ex = entry["ex"]?.string { group[member: id]?.ex = ex }
    group.memberLog.record(.update, id)
    if let role = entry["roleLevel"]?.int, role == OpenIMRole.admin || role == OpenIMRole.member,
      group[member: id]?.role != OpenIMRole.owner
    {
      group[member: id]?.role = role
      tell(
        group, role == OpenIMRole.admin ? OpenIMNotice.memberMadeAdmin : OpenIMNotice.memberMadeOrdinary, call,
        .unreliable, &step, more: ["changedUser": memberInfo(group, id)])
    }
    tell(
      group, OpenIMNotice.memberInfoSet, call, .unreliable, &step, more: ["changedUser": memberInfo(group, id)])
  }

  private func incrementalMembers(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    var answers = JSONObject()
    for request in call.body["reqList"]?.array ?? [] {
      guard let id = request["groupID"]?.string, let group = group(id) else { continue }
      var answer = incremental(group.memberLog, request) { userID in
        group[member: userID].map { self.memberInfo(group, $0) }
      }
      let unchanged = answer["full"]?.bool == false && request["version"]?.int == group.memberLog.version
      answer["group"] = unchanged ? .null : group.info
      answer["sortVersion"] = 0
      answers[id] = .object(answer)
    }
    return ["respList": .object(answers)]
  }
}

extension Int64 {
  func clampedAdd(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }
}
