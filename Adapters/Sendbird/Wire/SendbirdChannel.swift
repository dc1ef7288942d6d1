import ChatJSON
import UnifiedChat

/// A group or open channel as REST shows it. What is relative to a user is so to the session's one.
public struct SendbirdChannel: Sendable, Hashable {
  public var url: ChannelID
  public var name: String
  public var coverURL: String
  public var data: String
  public var customType: String
  /// Seconds.
  public var createdAt: Int64
  public var createdBy: UserID?
  public var isFrozen: Bool
  /// nil: the server did not tell.
  public var metadata: JSONObject?
  public var operators: [SendbirdUser]
  /// Group channels only; nil for open ones.
  public var group: Group?
  /// Open channels only.
  public var participantCount: Int64?
  public var unknown: JSONObject

  public struct Group: Sendable, Hashable {
    public var isDistinct = false
    public var isSuper = false
    public var isBroadcast = false
    public var isPublic = false
    public var isEphemeral = false
    public var memberCount: Int64 = 0
    public var joinedMemberCount: Int64 = 0
    /// nil unless asked for with `show_member`.
    public var members: [SendbirdMember]?
    public var unreadCount: Int64?
    public var unreadMentions: Int64?
    public var lastMessage: SendbirdMessage?
    /// Milliseconds by user id.
    public var readReceipts: JSONObject?
    public var deliveryReceipts: JSONObject?
    public var userLastRead: Int64?
    /// What is older is hidden from the user; milliseconds.
    public var historyOffset: Int64 = 0
    /// `joined`, `invited`, `none`.
    public var memberState: String?
    public var myRole: String?
    public var isHidden = false
    public var hiddenState = "unhidden"
    public var pushTriggerOption: String?
    public var inviter: SendbirdUser?
    /// Milliseconds.
    public var invitedAt: Int64?

    public init() {}
  }

  public init(url: ChannelID, createdAt: Int64, isGroup: Bool) {
    self.url = url
    name = ""
    coverURL = ""
    data = ""
    customType = ""
    self.createdAt = createdAt
    isFrozen = false
    operators = []
    group = isGroup ? Group() : nil
    unknown = JSONObject()
  }

  /// nil without a URL. A channel with neither members nor counts of members is an open one.
  public init?(_ json: JSONObject) {
    guard let url = json.text("channel_url"), !url.isEmpty else { return nil }
    self.init(url: ChannelID(url), createdAt: json.number("created_at") ?? 0, isGroup: Self.isGroup(json))
    name = json.text("name") ?? ""
    coverURL = json.text("cover_url") ?? ""
    data = json.text("data") ?? ""
    customType = json.text("custom_type") ?? ""
    createdBy = json.object("created_by").flatMap(SendbirdUser.init)?.id
    isFrozen = json.flag("freeze") ?? false
    metadata = json.object("metadata")
    operators = json.list("operators").compactMap { $0.object.flatMap(SendbirdUser.init) }
    participantCount = json.number("participant_count")
    if group != nil { group = Group(json) }
    unknown = json.without(Self.known)
  }

  private static func isGroup(_ json: JSONObject) -> Bool {
    json["participant_count"] == nil || json["member_count"] != nil || json["members"] != nil
  }

  static let known: Set<String> = [
    "channel_url", "name", "cover_url", "data", "custom_type", "created_at", "created_by", "freeze", "metadata",
    "operators", "participant_count", "is_distinct", "is_super", "is_broadcast", "is_public", "is_ephemeral",
    "member_count", "joined_member_count", "members", "unread_message_count", "unread_mention_count", "last_message",
    "read_receipt", "delivery_receipt", "user_last_read", "ts_message_offset", "member_state", "my_role", "is_hidden",
    "hidden_state", "push_trigger_option", "inviter", "invited_at",
  ]

  public var json: JSONObject {
    var json: JSONObject = [
      "channel_url": .string(url.rawValue), "name": .string(name), "cover_url": .string(coverURL),
      "data": .string(data), "custom_type": .string(customType), "created_at": .int(createdAt),
      "freeze": .bool(isFrozen), "operators": .array(operators.map { .object($0.json) }),
    ]
    json["metadata"] = metadata.map { .object($0) }
    json["participant_count"] = participantCount.map { .int($0) }
    group?.write(to: &json)
    json.fill(from: unknown)
    return json
  }
}

extension SendbirdChannel.Group {
  init(_ json: JSONObject) {
    self.init()
    isDistinct = json.flag("is_distinct") ?? false
    isSuper = json.flag("is_super") ?? false
    isBroadcast = json.flag("is_broadcast") ?? false
    isPublic = json.flag("is_public") ?? false
    isEphemeral = json.flag("is_ephemeral") ?? false
    memberCount = json.number("member_count") ?? 0
    joinedMemberCount = json.number("joined_member_count") ?? 0
    members = json["members"]?.array?.compactMap { $0.object.flatMap(SendbirdMember.init) }
    unreadCount = json.number("unread_message_count")
    unreadMentions = json.number("unread_mention_count")
    lastMessage = json.object("last_message").flatMap(SendbirdMessage.init)
    readReceipts = json.object("read_receipt")
    deliveryReceipts = json.object("delivery_receipt")
    userLastRead = json.number("user_last_read")
    historyOffset = json.number("ts_message_offset") ?? 0
    memberState = json.text("member_state")
    myRole = json.text("my_role")
    isHidden = json.flag("is_hidden") ?? false
    hiddenState = json.text("hidden_state") ?? "unhidden"
    pushTriggerOption = json.text("push_trigger_option")
    inviter = json.object("inviter").flatMap(SendbirdUser.init)
    invitedAt = json.number("invited_at")
  }

  func write(to json: inout JSONObject) {
    json["is_distinct"] = .bool(isDistinct)
    json["is_super"] = .bool(isSuper)
    json["is_broadcast"] = .bool(isBroadcast)
    json["is_public"] = .bool(isPublic)
    json["is_ephemeral"] = .bool(isEphemeral)
    json["member_count"] = .int(memberCount)
    json["joined_member_count"] = .int(joinedMemberCount)
    json["members"] = members.map { .array($0.map { .object($0.json) }) }
    json["unread_message_count"] = unreadCount.map { .int($0) }
    json["unread_mention_count"] = unreadMentions.map { .int($0) }
    json["last_message"] = lastMessage.map { .object($0.json) } ?? .null
    json["read_receipt"] = readReceipts.map { .object($0) }
    json["delivery_receipt"] = deliveryReceipts.map { .object($0) }
    json["user_last_read"] = userLastRead.map { .int($0) }
    json["ts_message_offset"] = .int(historyOffset)
    json["member_state"] = memberState.map { .string($0) }
    json["my_role"] = myRole.map { .string($0) }
    json["is_hidden"] = .bool(isHidden)
    json["hidden_state"] = .string(hiddenState)
    json["push_trigger_option"] = pushTriggerOption.map { .string($0) }
    json["inviter"] = inviter.map { .object($0.json) } ?? .null
    json["invited_at"] = invitedAt.map { .int($0) }
  }
}
