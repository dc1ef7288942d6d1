import ChatJSON
import UnifiedChat

/// A message as REST and frames show it. The two differ in the name of the id (`message_id`, `msg_id`), in the
/// place of file properties (nested, flat) and in the spelling of the sender; both are read anywhere.
public struct SendbirdMessage: Sendable, Hashable {
  public var id: Int64
  /// `MESG`, `FILE`, `ADMM`, `BRDM`, or what a newer server calls it.
  public var type: String
  public var channelURL: ChannelID
  /// Of an open channel; else of a group.
  public var isOpen: Bool
  public var requestID: String
  /// Milliseconds.
  public var createdAt: Int64
  /// Milliseconds; 0 if never edited.
  public var updatedAt: Int64
  public var text: String
  /// The app's own text: `data` of texts, `custom` or `file.data` of files.
  public var data: String
  public var customType: String
  /// nil for admin messages.
  public var user: SendbirdUser?
  public var senderRole: String
  /// `users` or `channel`.
  public var mentionType: String
  public var mentionedUsers: [SendbirdUser]
  public var file: SendbirdFile?
  public var metaArrays: [SendbirdMetaArray]
  public var reactions: [SendbirdReaction]
  public var thread: SendbirdThread?
  /// 0 for messages outside threads.
  public var parentID: Int64
  public var parentInfo: JSONObject?
  public var isReplyToChannel: Bool
  public var isRemoved: Bool
  public var isSilent: Bool
  /// Texts by language.
  public var translations: JSONObject
  public var mentionTemplate: String
  /// What else came, in order.
  public var unknown: JSONObject

  public init(id: Int64, type: String, channelURL: ChannelID, createdAt: Int64) {
    self.id = id
    self.type = type
    self.channelURL = channelURL
    self.createdAt = createdAt
    isOpen = false
    requestID = ""
    updatedAt = 0
    text = ""
    data = ""
    customType = ""
    senderRole = ""
    mentionType = "users"
    mentionedUsers = []
    metaArrays = []
    reactions = []
    parentID = 0
    isReplyToChannel = false
    isRemoved = false
    isSilent = false
    translations = JSONObject()
    mentionTemplate = ""
    unknown = JSONObject()
  }

  /// nil without an id. `command` names the type of a frame, which has none inside.
  public init?(_ json: JSONObject, command: String) {
    guard let id = json.number("message_id") ?? json.number("msg_id") else { return nil }
    let type = json.text("type").flatMap { Self.types.contains($0) ? $0 : nil }
    self.init(
      id: id, type: command.isEmpty ? json.text("type") ?? "" : Self.types(ofCommand: command) ?? type ?? command,
      channelURL: ChannelID(json.text("channel_url") ?? ""),
      createdAt: json.number("created_at") ?? json.number("ts") ?? 0)
    isOpen = json.text("channel_type") == "open"
    requestID = json.text("req_id") ?? ""
    updatedAt = json.number("updated_at") ?? 0
    text = json.text("message") ?? ""
    data = json.text("data") ?? ""
    customType = json.text("custom_type") ?? ""
    user = json.object("user").flatMap(SendbirdUser.init)
    senderRole = json.object("user")?.text("role") ?? ""
    mentionType = json.text("mention_type") ?? "users"
    mentionedUsers = json.list("mentioned_users").compactMap { $0.object.flatMap(SendbirdUser.init) }
    if self.type == "FILE" {
      file = SendbirdFile(json)
      data = json.object("file")?.text("data") ?? json.text("custom") ?? data
    }
    metaArrays = SendbirdMetaArray.read(json)
    reactions = json.list("reactions").compactMap { $0.object.flatMap(SendbirdReaction.init) }
    thread = json.object("thread_info").flatMap(SendbirdThread.init)
    parentID = json.number("parent_message_id") ?? 0
    parentInfo = json.object("parent_message_info")
    isReplyToChannel = json.flag("is_reply_to_channel") ?? false
    isRemoved = json.flag("is_removed") ?? false
    isSilent = json.flag("silent") ?? false
    translations = json.object("translations") ?? JSONObject()
    mentionTemplate = json.text("mentioned_message_template") ?? ""
    unknown = json.without(Self.known)
  }

  public init?(_ json: JSONObject) { self.init(json, command: "") }

  private static let types: Set<String> = ["MESG", "FILE", "ADMM", "BRDM"]

  private static func types(ofCommand command: String) -> String? {
    switch command {
    case "MESG", "MEDI": "MESG"
    case "FILE", "FEDI": "FILE"
    case "ADMM", "AEDI": "ADMM"
    case "BRDM": "BRDM"
    default: nil
    }
  }

  static let known: Set<String> = [
    "message_id", "msg_id", "type", "channel_url", "channel_type", "channel_id", "is_super", "ts", "req_id",
    "created_at", "updated_at", "message", "data", "custom_type", "user", "mention_type", "mentioned_users", "file",
    "url", "name", "size", "custom", "thumbnails", "require_auth", "metaarray", "metaarray_key_order",
    "sorted_metaarray", "reactions", "thread_info", "parent_message_id", "root_message_id", "parent_message_info",
    "is_reply_to_channel", "is_removed", "silent", "unread_cnt", "old_values", "translations", "is_op_msg",
    "is_guest_msg", "message_survival_seconds", "force_update_last_message", "mentioned_message_template",
    "message_retention_hour", "og_tag", "message_events",
  ]
}

public struct SendbirdFile: Sendable, Hashable {
  public var url: String
  public var name: String
  public var type: String
  public var size: Int64
  public var requiresAuthentication: Bool
  public var thumbnails: [Thumbnail]

  public struct Thumbnail: Sendable, Hashable {
    public var url: String
    /// The size asked for, and the one made; pixels.
    public var width: Int64?
    public var height: Int64?
    public var realWidth: Int64?
    public var realHeight: Int64?

    public init(
      url: String, width: Int64? = nil, height: Int64? = nil, realWidth: Int64? = nil, realHeight: Int64? = nil
    ) {
      self.url = url
      self.width = width
      self.height = height
      self.realWidth = realWidth
      self.realHeight = realHeight
    }
  }

  public init(
    url: String, name: String, type: String, size: Int64, requiresAuthentication: Bool = false,
    thumbnails: [Thumbnail] = []
  ) {
    self.url = url
    self.name = name
    self.type = type
    self.size = size
    self.requiresAuthentication = requiresAuthentication
    self.thumbnails = thumbnails
  }

  /// Of a message: the nested `file` wins over flat members.
  init?(_ json: JSONObject) {
    let nested = json.object("file").flatMap { $0.isEmpty ? nil : $0 }
    guard let url = nested?.text("url") ?? json.text("url") else { return nil }
    self.init(
      url: url, name: nested?.text("name") ?? json.text("name") ?? "",
      type: nested?.text("type") ?? (nested == nil ? json.text("type") : nil) ?? "",
      size: nested?.number("size") ?? json.number("size") ?? 0,
      requiresAuthentication: json.flag("require_auth") ?? false)
    thumbnails = json.list("thumbnails").compactMap { value in
      guard let object = value.object, let url = object.text("url") else { return nil }
      return Thumbnail(
        url: url, width: object.number("width"), height: object.number("height"),
        realWidth: object.number("real_width"), realHeight: object.number("real_height"))
    }
  }

  public var thumbnailJSON: JSONValue {
    .array(
      thumbnails.map { thumbnail in
        var json: JSONObject = ["url": .string(thumbnail.url)]
        json["width"] = thumbnail.width.map { .int($0) }
        json["height"] = thumbnail.height.map { .int($0) }
        json["real_width"] = thumbnail.realWidth.map { .int($0) }
        json["real_height"] = thumbnail.realHeight.map { .int($0) }
        return .object(json)
      })
  }
}

/// One of at most five keyed lists of strings beside a message.
public struct SendbirdMetaArray: Sendable, Hashable {
  public var key: String
  public var values: [String]

  public init(key: String, values: [String]) {
    self.key = key
    self.values = values
  }

  /// `sorted_metaarray` wins over `metaarray` with its order.
  static func read(_ json: JSONObject) -> [SendbirdMetaArray] {
    if let sorted = json["sorted_metaarray"]?.array {
      return sorted.compactMap { item in
        item["key"]?.string.map { SendbirdMetaArray(key: $0, values: item.object?.texts("value") ?? []) }
      }
    }
    guard let map = json.object("metaarray") else {
      return json.list("metaarray").compactMap { item in
        item["key"]?.string.map { SendbirdMetaArray(key: $0, values: item.object?.texts("value") ?? []) }
      }
    }
    let order = json["metaarray_key_order"]?.array?.compactMap(\.string) ?? map.keys
    return order.map { SendbirdMetaArray(key: $0, values: map.texts($0)) }
  }

  public var json: JSONValue { ["key": .string(key), "value": .array(values.map { .string($0) })] }
}

public struct SendbirdReaction: Sendable, Hashable {
  public var key: String
  public var users: [UserID]
  /// Milliseconds.
  public var updatedAt: Int64

  public init(key: String, users: [UserID], updatedAt: Int64) {
    self.key = key
    self.users = users
    self.updatedAt = updatedAt
  }

  init?(_ json: JSONObject) {
    guard let key = json.text("key") else { return nil }
    self.init(
      key: key, users: json.texts("user_ids").map { UserID($0) }, updatedAt: json.number("updated_at") ?? 0)
  }

  public var json: JSONValue {
    ["key": .string(key), "user_ids": .array(users.map { .string($0.rawValue) }), "updated_at": .int(updatedAt)]
  }
}

/// What a thread's parent tells about its replies.
public struct SendbirdThread: Sendable, Hashable {
  public var replyCount: Int64
  public var mostReplies: [SendbirdUser]
  /// Milliseconds.
  public var lastRepliedAt: Int64
  public var updatedAt: Int64

  public init(replyCount: Int64, mostReplies: [SendbirdUser], lastRepliedAt: Int64, updatedAt: Int64) {
    self.replyCount = replyCount
    self.mostReplies = mostReplies
    self.lastRepliedAt = lastRepliedAt
    self.updatedAt = updatedAt
  }

  init(_ json: JSONObject) {
    self.init(
      replyCount: json.number("reply_count") ?? 0,
      mostReplies: json.list("most_replies").compactMap { $0.object.flatMap(SendbirdUser.init) },
      lastRepliedAt: json.number("last_replied_at") ?? 0, updatedAt: json.number("updated_at") ?? 0)
  }

  public var json: JSONObject {
    [
      "reply_count": .int(replyCount), "most_replies": .array(mostReplies.map { .object($0.json) }),
      "last_replied_at": .int(lastRepliedAt), "updated_at": .int(updatedAt),
    ]
  }
}
