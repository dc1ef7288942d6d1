import ChatJSON
import LeanCloudWire
import UnifiedChat

/// Wire values to unified ones.
enum LeanCloudMapping {
  /// The reserved type of the transient message that tells typing; never shown, never stored.
  static let typingType: Int64 = -9001

  static func typingBody(_ isTyping: Bool) -> String {
    JSONValue.object(["_lctype": .int(typingType), "typing": .bool(isTyping)]).text()
  }

  /// nil when `frame` is a message like any other.
  static func typing(_ frame: LeanCloudFrame) -> Bool? {
    guard frame.bool("transient") == true, let text = frame.string("msg"), text.utf8.count < 100,
      let json = try? JSONValue(parsing: text), json["_lctype"]?.int == typingType
    else { return nil }
    return json["typing"]?.bool ?? false
  }

  /// The message, or without our envelope where that is damaged.
  static func message(_ stored: LeanCloudStoredMessage) -> Message {
    if let decoded = try? LeanCloudBody.decode(stored) { return decoded.message }
    let id = MessageID(stored.id)
    let time = Timestamp(milliseconds: stored.timestamp)
    return Message(
      channel: ChannelID(stored.channel), id: id, sender: UserID(stored.from),
      position: MessagePosition(time: time, id: id), createdAt: time,
      content: .unknown(kind: "damaged", raw: JSONText(unchecked: stored.data)))
  }

  /// A pushed `direct`.
  static func stored(direct frame: LeanCloudFrame, channel: String) -> LeanCloudStoredMessage? {
    guard let id = frame.string("id"), let time = frame.int("timestamp"),
      let data = frame.string("msg") ?? frame.string("binaryMsg")
    else { return nil }
    return LeanCloudStoredMessage(
      channel: channel, id: id, from: frame.string("fromPeerId") ?? "", timestamp: time, data: data,
      isBinary: frame["msg"] == nil, patchTimestamp: frame.int("patchTimestamp"),
      mentions: frame.strings("mentionPids"), mentionsAll: frame.bool("mentionAll") ?? false)
  }

  /// An item of `logs`.
  static func stored(log item: JSONValue, channel: String) -> LeanCloudStoredMessage? {
    guard let id = item["msgId"]?.string, let time = item["timestamp"]?.int, let data = item["data"]?.string else {
      return nil
    }
    return LeanCloudStoredMessage(
      channel: channel, id: id, from: item["from"]?.string ?? "", timestamp: time, data: data,
      isBinary: item["bin"]?.bool ?? false, patchTimestamp: item["patchTimestamp"]?.int,
      mentions: item["mentionPids"]?.array?.compactMap(\.string) ?? [],
      mentionsAll: item["mentionAll"]?.bool ?? false)
  }

  /// An item of `patch`.
  static func stored(patch item: JSONValue) -> LeanCloudStoredMessage? {
    guard let channel = item["cid"]?.string, let id = item["mid"]?.string, let time = item["timestamp"]?.int else {
      return nil
    }
    let isRecall = item["recall"]?.bool ?? false
    return LeanCloudStoredMessage(
      channel: channel, id: id, from: item["from"]?.string ?? "", timestamp: time,
      data: isRecall
        ? LeanCloudBody.recalledText : item["data"]?.string ?? item["binaryMsg"]?.string ?? LeanCloudBody.recalledText,
      isBinary: !isRecall && item["data"] == nil && item["binaryMsg"] != nil,
      patchTimestamp: item["patchTimestamp"]?.int, mentions: item["mentionPids"]?.array?.compactMap(\.string) ?? [],
      mentionsAll: item["mentionAll"]?.bool ?? false)
  }

  /// The last message that a conversation object carries with flag bit 1.
  static func lastMessage(of object: JSONObject, in channel: ChannelID) -> Message? {
    guard let id = object["msg_mid"]?.string, let time = object["msg_timestamp"]?.int, let data = object["msg"]?.string
    else { return nil }
    return message(
      LeanCloudStoredMessage(
        channel: channel.rawValue, id: id, from: object["msg_from"]?.string ?? "", timestamp: time, data: data,
        isBinary: object["bin"]?.bool ?? false, patchTimestamp: object["patch_timestamp"]?.int,
        mentions: object["mention_pids"]?.array?.compactMap(\.string) ?? [],
        mentionsAll: object["mention_all"]?.bool ?? false))
  }

  /// A watermark that names a time alone stands after every message of that time.
  static func watermark(_ time: Int64?) -> MessagePosition? {
    time.flatMap { $0 > 0 ? MessagePosition(major: $0, minor: 0, tail: "~") : nil }
  }
}
