import ChatJSON
import ChatTransport
import OpenIMWire

/// Messages written by the admin: how history is imported (reference §6.4, §8).
extension OpenIMEmulator {
  static let importHandlers: [String: Handler] = [
    "/msg/send_msg": { emulator, call, step in try emulator.sendAsAdmin(call, &step) },
    "/msg/batch_send_msg": { emulator, call, step in try emulator.sendToMany(call, &step) },
    "/msg/check_msg_is_send_success": { _, _, _ in ["status": .int(OpenIMMessageStatus.sent)] },
  ]

  private func sendAsAdmin(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    let data = try adminMessage(call, &step)
    guard !webhooks.enabled.isEmpty, let exchange = step.exchange else {
      return Self.sendAnswer(try send(data, &step))
    }
    guard let sender = user(data.sendID) else { throw OpenIMFault(.userNotFound) }
    // Answers by itself, now or when the app's server has.
    submit(try prepare(data, sender: sender, &step), from: .exchange(exchange.id, exchange.request), &step)
    step.exchange = nil
    return nil
  }

  private func send(
    _ data: OpenIMMessageData, _ step: inout OpenIMStep
  ) throws(OpenIMFault) -> OpenIMMessageData {
    guard let sender = user(data.sendID) else { throw OpenIMFault(.userNotFound) }
    let prepared = try prepare(data, sender: sender, &step)
    deliver(prepared, &step)
    return prepared
  }

  /// The time is kept; ids are made; the content is an object that the server writes again with sorted keys.
  private func adminMessage(
    _ call: OpenIMCall, _ step: inout OpenIMStep
  ) throws(OpenIMFault) -> OpenIMMessageData {
    try call.needAdmin()
    let type = call.int("contentType")
    guard let content = call.body["content"], content.object != nil else {
      throw OpenIMFault(.arguments, "content is not an object")
    }
    try OpenIMImportRules.check(type, content)
    var data = OpenIMMessageData()
    data.sendID = try call.needed("sendID")
    data.sessionType = type == OpenIMContentType.announcement ? OpenIMSessionType.service : call.int("sessionType")
    if data.sessionType == OpenIMSessionType.group { data.groupID = try call.needed("groupID") } else {
      data.recvID = try call.needed("recvID")
    }
    data.senderNickname = call.string("senderNickname")
    data.senderFaceURL = call.string("senderFaceURL")
    data.senderPlatformID = call.int("senderPlatformID")
    data.contentType = type
    data.content =
      type == OpenIMContentType.announcement
      ? OpenIMNotice.content(detail: content) : content.canonicalBytes()
    data.clientMsgID = step.context.hex(32)
    data.msgFrom = 200
    data.createTime = step.now
    data.sendTime = call.int("sendTime")
    data.ex = call.string("ex")
    if type == OpenIMContentType.atText { data.atUserIDList = strings(content["atUserList"]) }
    if case .object(let info)? = call.body["offlinePushInfo"] { data.offlinePushInfo = Self.pushInfo(info) }
    if call.bool("isOnlineOnly") {
      data.options = ["conversationUpdate": false, "history": false, "persistent": false, "senderSync": false]
    }
    if call.bool("notOfflinePush") { data.options = (data.options ?? [:]).adding("offlinePush", false) }
    return data
  }

  /// What the message's table knows of it, without zeros.
  private static func pushInfo(_ info: JSONObject) -> JSONObject {
    var known = JSONObject()
    for key in ["title", "desc", "ex", "iOSPushSound", "signalInfo"] {
      if let text = info[key]?.string, !text.isEmpty { known[key] = .string(text) }
    }
    if info["iOSBadgeCount"]?.bool == true { known["iOSBadgeCount"] = true }
    return known
  }

  /// One content to many single chats, with one client id for all.
  private func sendToMany(_ call: OpenIMCall, _ step: inout OpenIMStep) throws(OpenIMFault) -> JSONValue? {
    try call.needAdmin()
    let receivers = call.bool("isSendAll") ? userOrder.filter { $0 != admin } : call.strings("recvIDs")
    guard let first = receivers.first else { throw OpenIMFault(.arguments, "recvIDs is empty") }
    var single = call
    if case .object(var body) = call.body {
      body["sessionType"] = .int(OpenIMSessionType.single)
      body["recvID"] = .string(first)
      single.body = .object(body)
    }
    let template = try adminMessage(single, &step)
    var results: [JSONValue] = []
    var failed: [JSONValue] = []
    for receiver in receivers {
      var data = template
      data.recvID = receiver
      guard let sent = try? send(data, &step) else {
        failed.append(.string(receiver))
        continue
      }
      results.append([
        "serverMsgID": .string(sent.serverMsgID), "clientMsgID": .string(sent.clientMsgID),
        "sendTime": .int(sent.sendTime), "recvID": .string(receiver),
      ])
    }
    return ["results": results.orNull, "failedUserIDs": failed.orNull]
  }
}

extension JSONObject {
  fileprivate func adding(_ key: String, _ value: JSONValue) -> JSONObject {
    var copy = self
    copy[key] = value
    return copy
  }
}

/// What the import checks of each type's element: the named members must be there and not zero.
enum OpenIMImportRules {
  private static let picture = ["type", "width", "height", "url"]
  private static let needed: [Int64: [String]] = [
    101: ["content"], 102: ["sourcePicture", "bigPicture", "snapshotPicture"], 103: ["sourceUrl", "duration"],
    104: [
      "videoUrl", "videoType", "videoSize", "duration", "snapshotUrl", "snapshotWidth", "snapshotHeight",
    ],
    105: ["sourceUrl", "fileName", "fileSize"], 106: ["atUserList"], 110: ["data"], 114: [], 118: ["content"],
    1400: [],
  ]

  static func check(_ type: Int64, _ content: JSONValue) throws(OpenIMFault) {
    guard let members = needed[type] else { throw OpenIMFault(.arguments, "not support err contentType") }
    for member in members {
      guard let value = content[member], !isZero(value) else { throw missing(member) }
      guard type == OpenIMContentType.picture else { continue }
      for inner in picture where value[inner].map(isZero) ?? true { throw missing("\(member).\(inner)") }
    }
  }

  private static func isZero(_ value: JSONValue) -> Bool {
    switch value {
    case .null: true
    case .int(let number): number == 0
    case .string(let text): text.isEmpty
    case .array(let elements): elements.isEmpty
    default: false
    }
  }

  private static func missing(_ member: String) -> OpenIMFault {
    OpenIMFault(.serverInternal, "Key: '\(member)' Error: Field validation for '\(member)' failed on 'required'")
  }
}
