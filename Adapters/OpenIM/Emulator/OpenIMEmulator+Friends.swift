import ChatJSON
import ChatTransport
import OpenIMWire

/// Friends are not held yet: every list is empty. Black lists are, because sending depends on them.
extension OpenIMEmulator {
  static let friendHandlers: [String: Handler] = [
    "/friend/get_friend_list": { emulator, call, _ in
      _ = try emulator.selfUser(call)
      _ = try OpenIMPage(call.body)
      return ["friendsInfo": .null, "total": 0]
    },
    "/friend/get_friend_id": { emulator, call, _ in
      _ = try emulator.selfUser(call)
      return ["friendIDs": .null]
    },
    "/friend/get_friend_apply_list": { emulator, call, _ in
      _ = try emulator.selfUser(call)
      return ["FriendRequests": .null, "total": 0]
    },
    "/friend/get_self_friend_apply_list": { emulator, call, _ in
      _ = try emulator.selfUser(call)
      return ["friendRequests": .null, "total": 0]
    },
    "/friend/get_incremental_friends": { emulator, call, _ in
      let user = try emulator.selfUser(call)
      var answer = emulator.incremental(user.friendLog, call.body) { _ in nil }
      answer["sortVersion"] = 0
      return .object(answer)
    },
    "/friend/get_full_friend_user_ids": { emulator, call, _ in
      let user = try emulator.selfUser(call)
      return emulator.fullIDs(user.friendLog, "userIDs", [], call)
    },
    "/friend/is_friend": { _, _, _ in ["inUser1Friends": false, "inUser2Friends": false] },
    "/friend/add_black": { emulator, call, step in try emulator.setBlack(call, true, &step) },
    "/friend/remove_black": { emulator, call, step in try emulator.setBlack(call, false, &step) },
    "/friend/get_black_list": { emulator, call, _ in try emulator.blackList(call) },
  ]

  private func setBlack(
    _ call: OpenIMCall, _ isBlack: Bool, _ step: inout OpenIMStep
  ) throws(OpenIMFault) -> JSONValue? {
    let owner = try selfUser(call, "ownerUserID")
    let other = try call.needed("blackUserID")
    guard user(other) != nil else { throw OpenIMFault(.userNotFound) }
    owner.blacks.removeAll { $0.utf8.elementsEqual(other.utf8) }
    if isBlack { owner.blacks.append(other) }
    let detail: JSONValue = ["fromToUserID": ["fromUserID": .string(owner.id), "toUserID": .string(other)]]
    notify(
      Notice(type: isBlack ? 1207 : 1208, detail: detail, sender: owner.id, kind: .unreliable),
      receiver: owner.id, &step)
    return nil
  }

  private func blackList(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    let owner = try selfUser(call)
    let page = try OpenIMPage(call.body)
    let blacks = page.slice(owner.blacks).map { id -> JSONValue in
      let other = user(id)
      return [
        "ownerUserID": .string(owner.id), "createTime": 0,
        "blackUserInfo": [
          "userID": .string(id), "nickname": .string(other?.nickname ?? ""),
          "faceURL": .string(other?.faceURL ?? ""), "ex": .string(other?.ex ?? ""),
        ],
        "addSource": 0, "operatorUserID": .string(owner.id), "ex": "",
      ]
    }
    return ["blacks": blacks.orNull, "total": JSONValue(owner.blacks.count)]
  }
}
