import ChatJSON
import ChatTransport
import OpenIMWire

extension OpenIMEmulator {
  static let authHandlers: [String: Handler] = [
    "/auth/get_admin_token": { emulator, call, step in try emulator.adminToken(call, &step) },
    "/auth/get_user_token": { emulator, call, step in try emulator.userToken(call, &step) },
    "/auth/parse_token": { emulator, call, step in try emulator.parseToken(call, &step) },
    "/auth/force_logout": { emulator, call, step in try emulator.forceLogout(call, &step) },
  ]

  static let userHandlers: [String: Handler] = [
    "/user/user_register": { emulator, call, step in try emulator.register(call, &step) },
    "/user/get_users_info": { emulator, call, _ in
      ["usersInfo": call.strings("userIDs").compactMap { emulator.user($0)?.info }.orNull]
    },
    "/user/update_user_info": { emulator, call, step in try emulator.updateUser(call, keepEmpty: false, &step) },
    "/user/update_user_info_ex": { emulator, call, step in try emulator.updateUser(call, keepEmpty: true, &step) },
    "/user/set_global_msg_recv_opt": { emulator, call, _ in try emulator.setGlobalOption(call) },
    "/user/get_users": { emulator, call, _ in try emulator.pageOfUsers(call) },
    "/user/get_all_users_uid": { emulator, call, _ in
      let page = try OpenIMPage(call.body)
      return [
        "total": JSONValue(emulator.userOrder.count),
        "userIDs": page.slice(emulator.userOrder).map { .string($0) }.orNull,
      ]
    },
    "/user/account_check": { emulator, call, _ in
      [
        "results": call.strings("checkUserIDs").map { id in
          ["userID": .string(id), "accountStatus": .int(emulator.user(id) == nil ? 0 : 1)]
        }.orNull
      ]
    },
    "/user/get_users_online_status": { emulator, call, _ in try emulator.onlineDetails(call) },
    "/user/get_users_status": { emulator, call, _ in
      ["statusList": call.strings("userIDs").map { emulator.status(of: $0) }.orNull]
    },
  ]

  // MARK: Tokens

  private func tokenAnswer(_ token: String) -> JSONValue {
    ["token": .string(token), "expireTimeSeconds": .int(OpenIMToken.lifetimeSeconds)]
  }

  private func adminToken(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    guard call.string("secret").utf8.elementsEqual(secret.utf8) else {
      throw OpenIMFault(.noPermission, "secret invalid")
    }
    guard call.string("userID").utf8.elementsEqual(admin.utf8) else {
      throw OpenIMFault(.arguments, "userID is error")
    }
    return tokenAnswer(issueToken(admin, platform: OpenIMPlatform.admin, now: step.now))
  }

  private func userToken(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    try call.needAdmin()
    let platform = call.int("platformID")
    guard platform != OpenIMPlatform.admin else { throw OpenIMFault(.noPermission, "platformID invalid") }
    guard OpenIMPlatform.isKnown(platform) else { throw OpenIMFault(.arguments, "platformID is invalid") }
    guard let user = user(try call.needed("userID")) else { throw OpenIMFault(.notFound) }
    guard user.managerLevel != 2 else { throw OpenIMFault(.noPermission, "app admin is not allowed") }
    guard user.managerLevel < Self.notificationAccount else {
      throw OpenIMFault(.arguments, "app account can't get token")
    }
    return tokenAnswer(issueToken(user.id, platform: platform, now: step.now))
  }

  /// Here the number is the moment of expiry, unlike in the two calls above.
  private func parseToken(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let token = try call.needed("token")
    let caller = try caller(token, now: step.now)
    let expiry = OpenIMToken(reading: token)?.expiresAt ?? 0
    return [
      "userID": .string(caller.userID), "platformID": .int(caller.platform), "expireTimeSeconds": .int(expiry),
    ]
  }

  private func forceLogout(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    try call.needAdmin()
    let id = try call.needed("userID")
    let platform = call.int("platformID")
    tokens.setAll(.kicked, of: id, platform: platform)
    kick(id, where: { $0.platform == platform }, &step)
    return nil
  }

  // MARK: Users

  private func register(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    try call.needAdmin()
    let entries = call.body["users"]?.array ?? []
    guard !entries.isEmpty else { throw OpenIMFault(.arguments, "users is empty") }
    var seen: Set<OpenIMKey> = []
    for entry in entries {
      let id = entry["userID"]?.string ?? ""
      guard !id.isEmpty else { throw OpenIMFault(.arguments, "userID is empty") }
      guard !limitsAreReal || OpenIMUserID.isLegal(id) else { throw OpenIMFault(.arguments, "userID is legal") }
      guard seen.insert(OpenIMKey(id)).inserted else { throw OpenIMFault(.arguments, "userID repeated") }
      guard user(id) == nil else { throw OpenIMFault(.registeredAlready, "userID registered already") }
    }
    for entry in entries {
      func text(_ key: String) -> String { entry[key]?.string ?? "" }
      addUser(
        text("userID"), nickname: text("nickname"), faceURL: text("faceURL"), ex: text("ex"),
        context: &step.context)
    }
    return nil
  }

  /// Only members that are there change; the older call also ignores empty ones.
  private func updateUser(
    _ call: OpenIMCall, keepEmpty: Bool, _ step: inout OpenIMStep
  ) throws(OpenIMFault) -> JSONValue? {
    guard let info = call.body["userInfo"], let id = info["userID"]?.string, !id.isEmpty else {
      throw OpenIMFault(.arguments, "userInfo is empty")
    }
    try call.needSelf(id)
    guard let user = user(id) else { throw OpenIMFault(.notFound) }
    func change(_ key: String, _ place: ReferenceWritableKeyPath<OpenIMUser, String>) {
      guard let text = info[key]?.string, keepEmpty || !text.isEmpty else { return }
      user[keyPath: place] = text
    }
    change("nickname", \.nickname)
    change("faceURL", \.faceURL)
    change("ex", \.ex)
    if let option = info["globalRecvMsgOpt"]?.int { user.globalRecvMsgOpt = option }
    notify(
      Notice(
        type: OpenIMNotice.userInfoUpdated, detail: ["userID": .string(id)], sender: id, kind: .unreliable),
      receiver: id, &step)
    tellFriends(of: user, &step)
    return nil
  }

  private func setGlobalOption(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    let id = try call.needed("userID")
    try call.needSelf(id)
    guard let user = user(id) else { throw OpenIMFault(.notFound) }
    guard (0...2).contains(call.int("globalRecvMsgOpt")) else { throw OpenIMFault(.arguments, "globalRecvMsgOpt") }
    user.globalRecvMsgOpt = call.int("globalRecvMsgOpt")
    return nil
  }

  /// Without the accounts of the system.
  private func pageOfUsers(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    let page = try OpenIMPage(call.body)
    let wantedID = call.string("userID")
    let wantedName = call.string("nickName")
    let found = userOrder.filter { id in
      guard let user = user(id), user.managerLevel < 2 else { return false }
      return (wantedID.isEmpty || id.contains(wantedID)) && (wantedName.isEmpty || user.nickname.contains(wantedName))
    }
    return [
      "total": JSONValue(found.count), "users": page.slice(found).compactMap { user($0)?.info }.orNull,
    ]
  }

  /// The data of this call is a list.
  private func onlineDetails(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    try call.needAdmin()
    return .array(
      call.strings("userIDs").map { id in
        let details = (user(id)?.connections ?? []).compactMap { connections[$0] }.map { connection -> JSONValue in
          [
            "platformID": .int(connection.platform), "connID": .string(String(connection.id.number)),
            "isBackground": .bool(connection.isBackground), "token": .string(connection.token),
          ]
        }
        return [
          "userID": .string(id), "status": .int(details.isEmpty ? 0 : 1), "detailPlatformStatus": details.orNull,
        ]
      })
  }
}
