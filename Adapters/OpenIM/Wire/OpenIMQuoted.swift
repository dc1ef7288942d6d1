import ChatJSON
import UnifiedChat

/// The message object of the vendor's client (`MsgStruct`), as it stands in quotes and merged messages.
public enum OpenIMQuoted {
  /// Which member holds the element of a content type.
  private static let elements: [Int64: String] = [
    101: "textElem", 102: "pictureElem", 103: "soundElem", 104: "videoElem", 105: "fileElem", 106: "atTextElem",
    107: "mergeElem", 108: "cardElem", 109: "locationElem", 110: "customElem", 114: "quoteElem", 115: "faceElem",
    117: "advancedTextElem", 118: "markdownTextElem",
  ]

  static func json(_ reply: Reply) -> JSONValue {
    var object = json(reply.quoted ?? QuotedMessage(content: .text("")))
    if case .object(var members) = object {
      members["serverMsgID"] = .string(reply.id.rawValue)
      object = .object(members)
    }
    return object
  }

  static func json(_ quoted: QuotedMessage) -> JSONValue {
    let encoded = OpenIMElements.encode(quoted.content)
    let time = JSONValue.int(quoted.createdAt?.milliseconds ?? 0)
    var object: JSONObject = [
      "clientMsgID": "", "serverMsgID": .string(quoted.id?.rawValue ?? ""), "createTime": time, "sendTime": time,
      "sessionType": 0, "sendID": .string(quoted.sender?.rawValue ?? ""), "recvID": "", "msgFrom": 100,
      "contentType": .int(encoded.type), "senderPlatformID": 0,
      "senderNickname": .string(quoted.senderName ?? ""), "senderFaceUrl": "", "groupID": "", "content": "",
      "seq": 0, "isRead": false, "status": 2,
    ]
    if let member = elements[encoded.type] { object[member] = encoded.content } else {
      object["content"] = .string(String(decoding: encoded.bytes, as: UTF8.self))
    }
    return .object(object)
  }

  /// nil when there is no quoted message, or one without an id.
  static func reply(_ json: JSONValue?, _ depth: Int) -> Reply? {
    guard let json, json.object != nil,
      let id = OpenIMElements.nonEmpty(json["serverMsgID"]) ?? OpenIMElements.nonEmpty(json["clientMsgID"])
    else { return nil }
    var quoted = message(json, depth)
    quoted.id = nil
    let isEmpty = quoted.sender == nil && quoted.content == .text("")
    quoted.id = MessageID(id)
    return Reply(id: MessageID(id), quoted: isEmpty ? nil : quoted)
  }

  static func message(_ json: JSONValue, _ depth: Int) -> QuotedMessage {
    let type = json["contentType"]?.int ?? 0
    let time = json["sendTime"]?.int ?? 0
    return QuotedMessage(
      id: (OpenIMElements.nonEmpty(json["serverMsgID"]) ?? OpenIMElements.nonEmpty(json["clientMsgID"]))
        .map { MessageID($0) },
      sender: OpenIMElements.nonEmpty(json["sendID"]).map { UserID($0) },
      senderName: OpenIMElements.nonEmpty(json["senderNickname"]),
      createdAt: time > 0 ? Timestamp(milliseconds: time) : nil, content: content(type, json, depth))
  }

  private static func content(_ type: Int64, _ json: JSONValue, _ depth: Int) -> MessageContent {
    if let member = elements[type], let element = json[member]?.object,
      let decoded = OpenIMElements.decode(type, element, depth: depth)
    {
      return decoded.content
    }
    let text = json["content"]?.string ?? ""
    if let object = (try? JSONValue(parsing: text))?.object,
      let decoded = OpenIMElements.decode(type, object, depth: depth)
    {
      return decoded.content
    }
    return OpenIMElements.unknown(type, Array(text.utf8))
  }
}
