import ChatCrypto
import ChatJSON
import ChatTransport
import OpenIMWire

/// Accounts that the service itself speaks as, and what it says beside conversations (reference §6.1, §6.4).
extension OpenIMEmulator {
  static let accountHandlers: [String: Handler] = [
    "/user/add_notification_account": { emulator, call, step in try emulator.addAccount(call, &step) },
    "/user/update_notification_account": { emulator, call, _ in try emulator.updateAccount(call) },
    "/user/search_notification_account": { emulator, call, _ in try emulator.searchAccounts(call) },
    "/msg/send_business_notification": { emulator, call, step in try emulator.sendBusinessNotice(call, &step) },
    "/msg/send_simple_msg": { emulator, call, step in try emulator.sendSimple(call, &step) },
  ]

  /// Ordinary users stand below; the server's admins at 2.
  static let notificationAccount: Int64 = 3
  static let robotAccount: Int64 = 4

  private func addAccount(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    try call.needAdmin()
    let level = call.int("appMangerLevel")
    guard level == Self.notificationAccount || level == Self.robotAccount else {
      throw OpenIMFault(.arguments, "app level not supported")
    }
    var id = call.string("userID")
    if id.isEmpty { repeat { id = String(step.context.random.next() >> 32) } while user(id) != nil }
    guard user(id) == nil else { throw OpenIMFault(.registeredAlready, "userID registered already") }
    let account = addUser(
      id, nickname: call.string("nickName"), faceURL: call.string("faceURL"), managerLevel: level,
      context: &step.context)
    return info(account)
  }

  private func account(_ id: String) throws(OpenIMFault) -> OpenIMUser {
    guard let account = user(id) else { throw OpenIMFault(.notFound) }
    guard account.managerLevel >= Self.notificationAccount else {
      throw OpenIMFault(.arguments, "userID is not a notification account")
    }
    return account
  }

  private func updateAccount(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    try call.needAdmin()
    let account = try account(try call.needed("userID"))
    if !call.string("nickName").isEmpty { account.nickname = call.string("nickName") }
    if !call.string("faceURL").isEmpty { account.faceURL = call.string("faceURL") }
    return nil
  }

  private func searchAccounts(_ call: OpenIMCall) throws(OpenIMFault) -> JSONValue? {
    try call.needAdmin()
    let page = try OpenIMPage(call.body)
    let keyword = call.string("keyword")
    let found = userOrder.compactMap { user($0) }.filter { account in
      account.managerLevel >= Self.notificationAccount
        && (keyword.isEmpty || account.id.contains(keyword) || account.nickname.contains(keyword))
    }
    return [
      "total": JSONValue(found.count), "notificationAccounts": page.slice(found).map { info($0) }.orNull,
    ]
  }

  private func info(_ account: OpenIMUser) -> JSONValue {
    [
      "userID": .string(account.id), "faceURL": .string(account.faceURL), "nickName": .string(account.nickname),
      "appMangerLevel": .int(account.managerLevel),
    ]
  }

  // MARK: Saying something

  /// A notice with a key and data of the app's own, to one user or to the members of one group.
  private func sendBusinessNotice(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    try call.needAdmin()
    let (userID, groupID) = (call.string("recvUserID"), call.string("recvGroupID"))
    guard userID.isEmpty != groupID.isEmpty else {
      throw OpenIMFault(.arguments, "recvUserID and recvGroupID cannot be empty or both set")
    }
    let sender = try call.needed("sendUserID")
    guard user(sender) != nil else { throw OpenIMFault(.userNotFound) }
    let detail: JSONValue = ["key": .string(try call.needed("key")), "data": .string(call.string("data"))]
    let kind: NoticeClass = call.bool("sendMsg") ? .alsoMessage : call.int("reliabilityLevel") == 2 ? .stored : .unreliable
    let notice = Notice(type: OpenIMNotice.business, detail: detail, sender: sender, kind: kind)
    let sent: OpenIMMessageData
    if groupID.isEmpty {
      guard user(userID) != nil else { throw OpenIMFault(.userNotFound) }
      sent = notify(notice, receiver: userID, &step)
    } else {
      sent = notify(notice, group: try neededGroup(groupID), &step)
    }
    return Self.sendAnswer(sent)
  }

  func neededGroup(_ id: String) throws(OpenIMFault) -> OpenIMGroup {
    guard let group = group(id) else { throw OpenIMFault(.groupNotFound) }
    return group
  }

  static func sendAnswer(_ sent: OpenIMMessageData) -> JSONValue {
    [
      "serverMsgID": .string(sent.serverMsgID), "clientMsgID": .string(sent.clientMsgID),
      "sendTime": .int(sent.sendTime),
    ]
  }

  /// Markdown from a robot; where it goes stands in the URL, as JSON in base64.
  private func sendSimple(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    guard let key = call.query["key"], let bytes = Base64.decode(key) ?? Base64.urlDecode(key),
      let place = try? JSONValue(parsing: bytes)
    else { throw OpenIMFault(.arguments, "key is no base64 of JSON") }
    var data = OpenIMMessageData()
    data.sendID = place["sendID"]?.string ?? ""
    data.recvID = place["recvID"]?.string ?? ""
    data.groupID = place["groupID"]?.string ?? ""
    data.sessionType = data.groupID.isEmpty ? OpenIMSessionType.single : OpenIMSessionType.group
    if data.groupID.isEmpty, !call.string("sendID").isEmpty { data.recvID = call.string("sendID") }
    guard let sender = user(data.sendID) else { throw OpenIMFault(.notFound) }
    data.senderNickname = sender.nickname
    data.senderFaceURL = sender.faceURL
    data.contentType = OpenIMContentType.markdown
    data.content = JSONValue.object(["content": .string(call.string("content"))]).bytes()
    data.clientMsgID = step.context.hex(32)
    data.msgFrom = 100
    data.createTime = step.now
    data.ex = call.string("ex")
    let prepared = try prepare(data, sender: sender, &step)
    deliver(prepared, &step)
    return Self.sendAnswer(prepared)
  }
}
