import ChatJSON
import UnifiedChat

/// A user as REST and frames show it. Frames spell three members differently (`guest_id`, `name`, `image`); both
/// spellings are read, the REST one wins.
public struct SendbirdUser: Sendable, Hashable {
  public var id: UserID
  public var nickname: String
  public var profileURL: String
  /// Strings by key.
  public var metadata: JSONObject
  public var isActive: Bool
  /// nil where the server does not say.
  public var isOnline: Bool?
  /// Milliseconds; 0 while online or never seen.
  public var lastSeenAt: Int64
  /// Seconds.
  public var createdAt: Int64?
  /// What else came, in order.
  public var unknown: JSONObject

  public init(
    id: UserID, nickname: String = "", profileURL: String = "", metadata: JSONObject = JSONObject(),
    isActive: Bool = true, isOnline: Bool? = nil, lastSeenAt: Int64 = 0, createdAt: Int64? = nil,
    unknown: JSONObject = JSONObject()
  ) {
    self.id = id
    self.nickname = nickname
    self.profileURL = profileURL
    self.metadata = metadata
    self.isActive = isActive
    self.isOnline = isOnline
    self.lastSeenAt = lastSeenAt
    self.createdAt = createdAt
    self.unknown = unknown
  }

  /// nil without a user id.
  public init?(_ json: JSONObject) {
    guard let id = json.text("user_id") ?? json.text("guest_id"), !id.isEmpty else { return nil }
    self.id = UserID(id)
    nickname = json.text("nickname") ?? json.text("name") ?? ""
    profileURL = json.text("profile_url") ?? json.text("image") ?? ""
    metadata = json.object("metadata") ?? JSONObject()
    isActive = json.flag("is_active") ?? true
    isOnline = json.flag("is_online")
    lastSeenAt = json.number("last_seen_at") ?? 0
    createdAt = json.number("created_at")
    unknown = json.without(Self.known)
  }

  static let known: Set<String> = [
    "user_id", "guest_id", "nickname", "name", "profile_url", "image", "metadata", "is_active", "is_online",
    "last_seen_at", "created_at", "require_auth_for_profile_image",
  ]

  /// The REST form.
  public var json: JSONObject {
    var json: JSONObject = [
      "user_id": .string(id.rawValue), "nickname": .string(nickname), "profile_url": .string(profileURL),
      "require_auth_for_profile_image": false, "metadata": .object(metadata), "is_active": .bool(isActive),
    ]
    if let isOnline { json["is_online"] = .bool(isOnline) }
    json["last_seen_at"] = .int(lastSeenAt)
    if let createdAt { json["created_at"] = .int(createdAt) }
    json.fill(from: unknown)
    return json
  }

  /// The form inside message and receipt frames.
  public func frameJSON(role: String = "") -> JSONObject {
    [
      "guest_id": .string(id.rawValue), "name": .string(nickname), "image": .string(profileURL), "role": .string(role),
      "is_active": .bool(isActive), "metadata": .object(metadata), "require_auth_for_profile_image": false,
    ]
  }
}

/// A user in a channel.
public struct SendbirdMember: Sendable, Hashable {
  public var user: SendbirdUser
  /// `joined`, `invited`, `left`, `none`.
  public var state: String
  /// `operator` or "".
  public var role: String
  public var isMuted: Bool
  /// Milliseconds; -1: for ever.
  public var mutedEndAt: Int64?
  public var isBlockedByMe: Bool
  public var isBlockingMe: Bool
  /// Milliseconds, with `show_read_receipt` and `show_delivery_receipt`.
  public var readAt: Int64?
  public var deliveredAt: Int64?
  /// Seconds.
  public var joinedAt: Int64?

  public init(
    user: SendbirdUser, state: String = "joined", role: String = "", isMuted: Bool = false, mutedEndAt: Int64? = nil,
    isBlockedByMe: Bool = false, isBlockingMe: Bool = false, readAt: Int64? = nil, deliveredAt: Int64? = nil,
    joinedAt: Int64? = nil
  ) {
    self.user = user
    self.state = state
    self.role = role
    self.isMuted = isMuted
    self.mutedEndAt = mutedEndAt
    self.isBlockedByMe = isBlockedByMe
    self.isBlockingMe = isBlockingMe
    self.readAt = readAt
    self.deliveredAt = deliveredAt
    self.joinedAt = joinedAt
  }

  public init?(_ json: JSONObject) {
    guard var user = SendbirdUser(json) else { return nil }
    user.unknown = user.unknown.without(Self.known)
    self.user = user
    state = json.text("state") ?? "joined"
    role = json.text("role") ?? ""
    isMuted = json.flag("is_muted") ?? false
    mutedEndAt = json.number("muted_end_at")
    isBlockedByMe = json.flag("is_blocked_by_me") ?? false
    isBlockingMe = json.flag("is_blocking_me") ?? false
    readAt = json.number("read_ts")
    deliveredAt = json.number("delivered_ts")
    joinedAt = json.number("joined_ts")
  }

  private static let known: Set<String> = [
    "state", "role", "is_muted", "muted_end_at", "is_blocked_by_me", "is_blocking_me", "read_ts", "delivered_ts",
    "joined_ts",
  ]

  public var isOperator: Bool { role == "operator" }

  public var json: JSONObject {
    var json = user.json
    json["state"] = .string(state)
    json["role"] = .string(role)
    json["is_muted"] = .bool(isMuted)
    if isMuted, let mutedEndAt { json["muted_end_at"] = .int(mutedEndAt) }
    json["is_blocked_by_me"] = .bool(isBlockedByMe)
    json["is_blocking_me"] = .bool(isBlockingMe)
    if let readAt { json["read_ts"] = .int(readAt) }
    if let deliveredAt { json["delivered_ts"] = .int(deliveredAt) }
    if let joinedAt { json["joined_ts"] = .int(joinedAt) }
    return json
  }
}
