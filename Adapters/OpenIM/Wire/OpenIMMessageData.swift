import ChatCrypto
import ChatJSON

/// `MsgData`: one message as frames and REST bodies carry it (reference §3).
public struct OpenIMMessageData: Sendable, Hashable {
  public var sendID = ""
  public var recvID = ""
  public var groupID = ""
  public var clientMsgID = ""
  public var serverMsgID = ""
  public var senderPlatformID: Int64 = 0
  public var senderNickname = ""
  public var senderFaceURL = ""
  public var sessionType: Int64 = 0
  /// 100 a user, 200 the system (or an import by the admin).
  public var msgFrom: Int64 = 0
  public var contentType: Int64 = 0
  /// UTF-8 JSON, unchecked: the server takes anything.
  public var content: [UInt8] = []
  public var seq: Int64 = 0
  public var sendTime: Int64 = 0
  public var createTime: Int64 = 0
  public var status: Int64 = 0
  public var isRead = false
  /// An absent key means true.
  public var options: JSONObject?
  public var offlinePushInfo: JSONObject?
  public var atUserIDList: [String] = []
  /// JSON text of the vendor's own client.
  public var attachedInfo = ""
  public var ex = ""
  /// Fields that the table does not know, as the transcoder keeps them.
  public var unknown: String?

  public init() {}

  /// Of a REST body or a transcoded frame; an absent or wrong member is zero, as Go's readers have it.
  public init(json: JSONValue) {
    func text(_ key: String) -> String { json[key]?.string ?? "" }
    func int(_ key: String) -> Int64 { json[key]?.int ?? 0 }
    sendID = text("sendID")
    recvID = text("recvID")
    groupID = text("groupID")
    clientMsgID = text("clientMsgID")
    serverMsgID = text("serverMsgID")
    senderPlatformID = int("senderPlatformID")
    senderNickname = text("senderNickname")
    senderFaceURL = text("senderFaceURL")
    sessionType = int("sessionType")
    msgFrom = int("msgFrom")
    contentType = int("contentType")
    content = Base64.decode(text("content")) ?? []
    seq = int("seq")
    sendTime = int("sendTime")
    createTime = int("createTime")
    status = int("status")
    isRead = json["isRead"]?.bool ?? false
    options = json["options"]?.object
    offlinePushInfo = json["offlinePushInfo"]?.object
    atUserIDList = (json["atUserIDList"]?.array ?? []).compactMap(\.string)
    attachedInfo = text("attachedInfo")
    ex = text("ex")
    unknown = json[ProtobufSchema.unknownMember]?.string
  }

  /// For the transcoder, which leaves zeros out itself.
  public var frameJSON: JSONValue {
    var object = commonMembers
    if let options, !options.isEmpty { object["options"] = .object(options) }
    object["offlinePushInfo"] = offlinePushInfo.map { .object($0) }
    if !atUserIDList.isEmpty { object["atUserIDList"] = .array(atUserIDList.map { .string($0) }) }
    object["attachedInfo"] = .string(attachedInfo)
    object["ex"] = .string(ex)
    object[ProtobufSchema.unknownMember] = unknown.map { .string($0) }
    return .object(object)
  }

  /// As REST answers have it: zeros written out, empty lists and messages null, an empty map left out.
  public var restJSON: JSONValue {
    var object = commonMembers
    if content.isEmpty { object["content"] = .null }
    if let options, !options.isEmpty { object["options"] = .object(options) }
    object["offlinePushInfo"] = offlinePushInfo.map { Self.restPushInfo($0) } ?? .null
    object["atUserIDList"] = atUserIDList.isEmpty ? .null : .array(atUserIDList.map { .string($0) })
    object["attachedInfo"] = .string(attachedInfo)
    object["ex"] = .string(ex)
    return .object(object)
  }

  private var commonMembers: JSONObject {
    JSONObject([
      ("sendID", .string(sendID)), ("recvID", .string(recvID)), ("groupID", .string(groupID)),
      ("clientMsgID", .string(clientMsgID)), ("serverMsgID", .string(serverMsgID)),
      ("senderPlatformID", .int(senderPlatformID)), ("senderNickname", .string(senderNickname)),
      ("senderFaceURL", .string(senderFaceURL)), ("sessionType", .int(sessionType)), ("msgFrom", .int(msgFrom)),
      ("contentType", .int(contentType)), ("content", .string(Base64.encode(content))), ("seq", .int(seq)),
      ("sendTime", .int(sendTime)), ("createTime", .int(createTime)), ("status", .int(status)),
      ("isRead", .bool(isRead)),
    ])
  }

  private static func restPushInfo(_ info: JSONObject) -> JSONValue {
    var full = JSONObject()
    for key in ["title", "desc", "ex", "iOSPushSound"] { full[key] = info[key] ?? "" }
    full["iOSBadgeCount"] = info["iOSBadgeCount"] ?? false
    full["signalInfo"] = info["signalInfo"] ?? ""
    return .object(full)
  }

  public func option(_ key: String) -> Bool { options?[key]?.bool ?? true }

  /// A notice travels beside the conversation: only an option that is there and false says so.
  public var isNotice: Bool { options?["isNotNotification"]?.bool == false }

  /// Deleted for the reader, or a hole: never shown.
  public var isPlaceholder: Bool { status >= OpenIMMessageStatus.deleted }

  /// The conversation that the message belongs to.
  public var conversationID: String {
    switch sessionType {
    case OpenIMSessionType.group, OpenIMSessionType.writeGroup:
      isNotice ? OpenIMConversationID.notices(ofGroup: groupID) : OpenIMConversationID.group(groupID)
    case OpenIMSessionType.service:
      isNotice ? OpenIMConversationID.notices(sendID, recvID) : OpenIMConversationID.service(sendID, recvID)
    default:
      isNotice ? OpenIMConversationID.notices(sendID, recvID) : OpenIMConversationID.single(sendID, recvID)
    }
  }
}
