import ChatJSON
import ChatTransport
import OpenIMWire

/// Friends and requests to become one (reference §6.2). A friendship has two sides, each with its own remark; one side
/// may end alone.
extension OpenIMEmulator {
  static let friendHandlers: [String: Handler] = [
    "/friend/add_friend": { emulator, call, step in try emulator.askForFriendship(call, &step) },
    "/friend/add_friend_response": { emulator, call, step in try emulator.answerFriendship(call, &step) },
    "/friend/get_friend_apply_list": { emulator, call, _ in
      let list = try emulator.selfUser(call).friendRequests
      return try emulator.page(of: list, call, "FriendRequests")
    },
    "/friend/get_self_friend_apply_list": { emulator, call, _ in
      let list = emulator.sentRequests(of: try emulator.selfUser(call))
      return try emulator.page(of: list, call, "friendRequests")
    },
    "/friend/get_self_unhandled_apply_count": { emulator, call, _ in
      let open = try emulator.selfUser(call).friendRequests.filter {
        $0.handleResult == OpenIMHandling.open && $0.createTime > call.int("time")
      }
      return ["count": JSONValue(open.count)]
    },
    "/friend/get_designated_friend_apply": { emulator, call, _ in
      let (from, to) = (try call.needed("fromUserID"), try call.needed("toUserID"))
      let found = emulator.user(to)?.friendRequests.filter { $0.from.utf8.elementsEqual(from.utf8) } ?? []
      return ["friendRequests": found.map { emulator.info($0) }.orNull]
    },
    "/friend/get_friend_list": { emulator, call, _ in
      let user = try emulator.selfUser(call)
      let page = try OpenIMPage(call.body)
      let list = page.slice(user.friends.all).map { emulator.info($0, of: user) }
      return ["friendsInfo": list.orNull, "total": JSONValue(user.friends.count)]
    },
    "/friend/get_designated_friends": { emulator, call, _ in
      let owner = try emulator.selfUser(call, "ownerUserID")
      let found = call.strings("friendUserIDs").compactMap { owner.friends[$0] }.map { emulator.info($0, of: owner) }
      return ["friendsInfo": found.orNull]
    },
    "/friend/get_specified_friends_info": { emulator, call, _ in try emulator.specifiedFriends(call) },
    "/friend/get_friend_id": { emulator, call, _ in
      ["friendIDs": try emulator.selfUser(call).friends.all.map { .string($0.userID) }.orNull]
    },
    "/friend/is_friend": { emulator, call, _ in
      let (one, two) = (call.string("userID1"), call.string("userID2"))
      return [
        "inUser1Friends": .bool(emulator.user(one)?.friends[two] != nil),
        "inUser2Friends": .bool(emulator.user(two)?.friends[one] != nil),
      ]
    },
    "/friend/update_friends": { emulator, call, step in try emulator.updateFriends(call, &step) },
    "/friend/set_friend_remark": { emulator, call, step in try emulator.setRemark(call, &step) },
    "/friend/delete_friend": { emulator, call, step in try emulator.deleteFriend(call, &step) },
    "/friend/import_friend": { emulator, call, step in try emulator.importFriends(call, &step) },
    "/friend/get_incremental_friends": { emulator, call, _ in
      let user = try emulator.selfUser(call)
      var answer = emulator.incremental(user.friendLog, call.body) { id in
        user.friends[id].map { emulator.info($0, of: user) }
      }
      answer["sortVersion"] = 0
      return .object(answer)
    },
    "/friend/get_full_friend_user_ids": { emulator, call, _ in
      let user = try emulator.selfUser(call)
      return emulator.fullIDs(user.friendLog, "userIDs", user.friends.all.map(\.userID), call)
    },
    "/friend/add_black": { emulator, call, step in try emulator.setBlack(call, true, &step) },
    "/friend/remove_black": { emulator, call, step in try emulator.setBlack(call, false, &step) },
    "/friend/get_black_list": { emulator, call, _ in
      let owner = try emulator.selfUser(call)
      let page = try OpenIMPage(call.body)
      let list = page.slice(owner.blacks).map { emulator.info($0, of: owner) }
      return ["blacks": list.orNull, "total": JSONValue(owner.blacks.count)]
    },
    "/friend/get_specified_blacks": { emulator, call, _ in
      let owner = try emulator.selfUser(call, "ownerUserID")
      let found = call.strings("userIDList").compactMap { owner.black($0) }.map { emulator.info($0, of: owner) }
      return ["blacks": found.orNull, "total": JSONValue(found.count)]
    },
    "/friend/get_incremental_blacks": { emulator, call, _ in
      let user = try emulator.selfUser(call)
      return .object(
        emulator.incremental(user.blackLog, call.body) { id in user.black(id).map { emulator.info($0, of: user) } })
    },
  ]

  // MARK: Asking

  private func askForFriendship(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let from = try selfUser(call, "fromUserID")
    let to = try other(call, "toUserID", than: from)
    guard from.friends[to.id] == nil || to.friends[from.id] == nil else {
      throw OpenIMFault(.alreadyFriends, "already friends has f")
    }
    var request = OpenIMFriendRequest(
      from: from.id, to: to.id, reqMsg: call.string("reqMsg"), createTime: step.now)
    request.ex = call.string("ex")
    to.friendRequests.removeAll { $0.from.utf8.elementsEqual(from.id.utf8) }
    to.friendRequests.append(request)
    from.askedFriends.removeAll { $0.utf8.elementsEqual(to.id.utf8) }
    from.askedFriends.append(to.id)
    let detail: JSONValue = ["fromToUserID": Self.pair(from.id, to.id), "request": info(request)]
    notify(
      Notice(type: OpenIMNotice.friendAsked, detail: detail, sender: from.id, kind: .unreliable), receiver: to.id,
      &step)
    return nil
  }

  /// - Throws: 1101 for nobody, 1301 for the user themself.
  private func other(_ call: OpenIMCall, _ key: String, than user: OpenIMUser) throws(OpenIMFault) -> OpenIMUser {
    let id = try call.needed(key)
    guard !id.utf8.elementsEqual(user.id.utf8) else { throw OpenIMFault(.addedYourself, "can not add yourself") }
    guard let other = self.user(id) else { throw OpenIMFault(.userNotFound) }
    return other
  }

  static func pair(_ from: String, _ to: String) -> JSONValue {
    ["fromUserID": .string(from), "toUserID": .string(to)]
  }

  /// By the one who was asked.
  private func answerFriendship(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let to = try selfUser(call, "toUserID")
    let result = call.int("handleResult")
    guard result == OpenIMHandling.agreed || result == OpenIMHandling.refused else {
      throw OpenIMFault(.arguments, "req.HandleResult != -1/1")
    }
    let from = try call.needed("fromUserID")
    guard let index = to.friendRequests.firstIndex(where: { $0.from.utf8.elementsEqual(from.utf8) }),
      let asker = user(from)
    else { throw OpenIMFault(.notFound) }
    guard to.friendRequests[index].handleResult == OpenIMHandling.open else {
      throw OpenIMFault(.friendRequestHandled, "friend request handled")
    }
    to.friendRequests[index].handleResult = result
    to.friendRequests[index].handlerUserID = to.id
    to.friendRequests[index].handleMsg = call.string("handleMsg")
    to.friendRequests[index].handleTime = step.now
    let request = info(to.friendRequests[index])
    if result == OpenIMHandling.agreed {
      befriend(asker, to, source: OpenIMFriend.applied, by: from, now: step.now)
      tellAgreed(asker.id, to.id, handleMsg: call.string("handleMsg"), request: request, &step)
    } else {
      let detail: JSONValue = [
        "fromToUserID": Self.pair(from, to.id), "handleMsg": .string(call.string("handleMsg")), "request": request,
      ]
      notify(
        Notice(type: OpenIMNotice.friendRefused, detail: detail, sender: to.id, kind: .unreliable), receiver: from,
        &step)
    }
    return nil
  }

  /// Both sides; a side that stands already stays as it is.
  private func befriend(_ one: OpenIMUser, _ two: OpenIMUser, source: Int64, by operatorID: String, now: Int64) {
    for (owner, friend) in [(one, two), (two, one)] where owner.friends[friend.id] == nil {
      owner.friends[friend.id] = OpenIMFriend(
        userID: friend.id, createTime: now / 1000, addSource: source, operatorUserID: operatorID)
      owner.friendLog.record(.insert, friend.id)
      friend.heldBy.insert(OpenIMKey(owner.id))
    }
  }

  /// The notice also stands as a message between both, from the one who agreed. Its versions are empty (observed).
  private func tellAgreed(
    _ asker: String, _ agreed: String, handleMsg: String, request: JSONValue, _ step: inout OpenIMStep
  ) {
    let detail: JSONValue = [
      "fromToUserID": Self.pair(asker, agreed), "handleMsg": .string(handleMsg), "friendVersion": 0,
      "friendVersionID": "", "request": request,
    ]
    notify(
      Notice(type: OpenIMNotice.friendAgreed, detail: detail, sender: agreed, kind: .alsoMessage), receiver: asker,
      &step)
  }

  /// By the server's admin; without anybody's consent.
  private func importFriends(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    try call.needAdmin()
    guard let owner = user(try call.needed("ownerUserID")) else { throw OpenIMFault(.userNotFound) }
    let ids = call.strings("friendUserIDs")
    guard !ids.contains(where: { $0.utf8.elementsEqual(owner.id.utf8) }) else {
      throw OpenIMFault(.addedYourself, "can not add yourself")
    }
    guard Set(ids.map(OpenIMKey.init)).count == ids.count else {
      throw OpenIMFault(.arguments, "friend userID repeated")
    }
    var friends: [OpenIMUser] = []
    for id in ids {
      guard let friend = user(id) else { throw OpenIMFault(.userNotFound) }
      friends.append(friend)
    }
    for friend in friends {
      befriend(owner, friend, source: OpenIMFriend.imported, by: call.caller?.userID ?? admin, now: step.now)
      tellAgreed(owner.id, friend.id, handleMsg: "", request: .null, &step)
    }
    return nil
  }

  // MARK: Changing

  private func updateFriends(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let owner = try selfUser(call, "ownerUserID")
    let ids = call.strings("friendUserIDs")
    guard !ids.isEmpty, Set(ids.map(OpenIMKey.init)).count == ids.count else {
      throw OpenIMFault(.arguments, "friendIDList is empty or repeated")
    }
    for id in ids where owner.friends[id] == nil { throw OpenIMFault(.notFound) }
    for id in ids {
      if let remark = call.body["remark"]?.string { owner.friends[id]?.remark = remark }
      if let pinned = call.body["isPinned"]?.bool { owner.friends[id]?.isPinned = pinned }
      if let ex = call.body["ex"]?.string { owner.friends[id]?.ex = ex }
      owner.friendLog.record(.update, id)
    }
    let detail: JSONValue = [
      "fromToUserID": Self.pair(owner.id, owner.id), "friendIDs": .array(ids.map { .string($0) }),
      "friendVersion": 0, "friendVersionID": "",
    ]
    notify(
      Notice(type: OpenIMNotice.friendsUpdated, detail: detail, sender: owner.id, kind: .unreliable),
      receiver: owner.id, &step)
    return nil
  }

  private func setRemark(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let owner = try selfUser(call, "ownerUserID")
    let id = try call.needed("friendUserID")
    guard owner.friends[id] != nil else { throw OpenIMFault(.notFound) }
    owner.friends[id]?.remark = call.string("remark")
    owner.friendLog.record(.update, id)
    let detail: JSONValue = [
      "fromToUserID": Self.pair(owner.id, id), "friendVersion": 0, "friendVersionID": "", "friendSortVersion": 0,
    ]
    notify(
      Notice(type: OpenIMNotice.friendRemarkSet, detail: detail, sender: owner.id, kind: .unreliable),
      receiver: owner.id, &step)
    return nil
  }

  /// The other side keeps its entry.
  private func deleteFriend(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let owner = try selfUser(call, "ownerUserID")
    let id = try call.needed("friendUserID")
    guard owner.friends[id] != nil else { throw OpenIMFault(.notFound) }
    owner.friends[id] = nil
    owner.friendLog.record(.delete, id)
    user(id)?.heldBy.remove(OpenIMKey(owner.id))
    let detail: JSONValue = [
      "fromToUserID": Self.pair(owner.id, id), "friendVersion": 0, "friendVersionID": "",
    ]
    notify(
      Notice(type: OpenIMNotice.friendDeleted, detail: detail, sender: owner.id, kind: .unreliable), receiver: id,
      &step)
    return nil
  }

  /// Friends learn of a new profile.
  func tellFriends(of user: OpenIMUser, _ step: inout OpenIMStep) {
    for key in user.heldBy.sorted(by: { $0.text.utf8.lexicographicallyPrecedes($1.text.utf8) }) {
      users[key]?.friendLog.record(.update, user.id)
      notify(
        Notice(
          type: OpenIMNotice.friendInfoUpdated, detail: ["userID": .string(user.id)], sender: user.id,
          kind: .unreliable), receiver: key.text, &step)
    }
  }

  // MARK: Black lists

  private func setBlack(
    _ call: OpenIMCall, _ isBlack: Bool, _ step: inout OpenIMStep
  ) throws(OpenIMFault) -> JSONValue? {
    let owner = try selfUser(call, "ownerUserID")
    let other = try other(call, "blackUserID", than: owner)
    let wasBlack = owner.black(other.id) != nil
    owner.blacks.removeAll { $0.userID.utf8.elementsEqual(other.id.utf8) }
    if isBlack {
      owner.blacks.append(OpenIMBlack(userID: other.id, createTime: step.now / 1000, ex: call.string("ex")))
    }
    if isBlack || wasBlack { owner.blackLog.record(isBlack ? .insert : .delete, other.id) }
    notify(
      Notice(
        type: isBlack ? OpenIMNotice.blackAdded : OpenIMNotice.blackDeleted,
        detail: ["fromToUserID": Self.pair(owner.id, other.id)], sender: owner.id, kind: .unreliable),
      receiver: owner.id, &step)
    return nil
  }

  // MARK: Forms

  private func page(
    of requests: [OpenIMFriendRequest], _ call: OpenIMCall, _ key: String
  ) throws(OpenIMFault) -> JSONValue {
    let page = try OpenIMPage(call.body)
    let wanted = (call.body["handleResults"]?.array ?? []).compactMap(\.int)
    // The newest first.
    let found = requests.reversed().filter { wanted.isEmpty || wanted.contains($0.handleResult) }
    return .object(
      JSONObject([(key, page.slice(found).map { info($0) }.orNull), ("total", JSONValue(found.count))]))
  }

  private func sentRequests(of user: OpenIMUser) -> [OpenIMFriendRequest] {
    user.askedFriends.compactMap { id in
      self.user(id)?.friendRequests.first { $0.from.utf8.elementsEqual(user.id.utf8) }
    }
  }

  private func info(_ request: OpenIMFriendRequest) -> JSONValue {
    let (from, to) = (user(request.from), user(request.to))
    return [
      "fromUserID": .string(request.from), "fromNickname": .string(from?.nickname ?? ""),
      "fromFaceURL": .string(from?.faceURL ?? ""), "toUserID": .string(request.to),
      "toNickname": .string(to?.nickname ?? ""), "toFaceURL": .string(to?.faceURL ?? ""),
      "handleResult": .int(request.handleResult), "reqMsg": .string(request.reqMsg),
      "createTime": .int(request.createTime), "handlerUserID": .string(request.handlerUserID),
      "handleMsg": .string(request.handleMsg), "handleTime": .int(request.handleTime), "ex": .string(request.ex),
    ]
  }

  private func info(_ friend: OpenIMFriend, of owner: OpenIMUser) -> JSONValue {
    [
      "ownerUserID": .string(owner.id), "remark": .string(friend.remark), "createTime": .int(friend.createTime),
      "friendUser": user(friend.userID)?.info ?? .null, "addSource": .int(friend.addSource),
      "operatorUserID": .string(friend.operatorUserID), "ex": .string(friend.ex), "isPinned": .bool(friend.isPinned),
    ]
  }

  func publicInfo(_ id: String) -> JSONValue {
    let user = user(id)
    return [
      "userID": .string(id), "nickname": .string(user?.nickname ?? ""), "faceURL": .string(user?.faceURL ?? ""),
      "ex": .string(user?.ex ?? ""),
    ]
  }

  private func info(_ black: OpenIMBlack, of owner: OpenIMUser) -> JSONValue {
    [
      "ownerUserID": .string(owner.id), "createTime": .int(black.createTime),
      "blackUserInfo": publicInfo(black.userID), "addSource": 0, "operatorUserID": .string(owner.id),
      "ex": .string(black.ex),
    ]
  }

  private func specifiedFriends(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    let owner = try selfUser(call, "ownerUserID")
    let infos = call.strings("userIDList").compactMap { id -> JSONValue? in
      guard let user = user(id) else { return nil }
      return [
        "userInfo": user.info, "friendInfo": owner.friends[id].map { info($0, of: owner) } ?? .null,
        "blackInfo": owner.black(id).map { info($0, of: owner) } ?? .null,
      ]
    }
    return ["infos": infos.orNull]
  }
}
