import ChatJSON
import OpenIMWire
import UnifiedChat

/// REST objects as unified values.
enum OpenIMMapping {
  static func role(_ level: Int64?) -> MemberRole {
    switch level {
    case OpenIMRole.owner: .owner
    case OpenIMRole.admin: .admin
    case OpenIMRole.member: .member
    case let other: .unknown(other.map(String.init) ?? "")
    }
  }

  static func roleLevel(_ role: MemberRole) -> Int64 {
    switch role {
    case .owner: OpenIMRole.owner
    case .admin: OpenIMRole.admin
    case .member: OpenIMRole.member
    case .unknown(let name): Int64(name) ?? OpenIMRole.member
    }
  }

  static func user(_ json: JSONValue) -> User? {
    OpenIMSource.userRecord(json, .client)?.record.user
      ?? json["userID"]?.string.map { User(id: UserID($0), name: json["nickname"]?.nonEmptyString) }
  }

  static func member(_ json: JSONValue, now: Timestamp) -> Member? {
    guard let id = json["userID"]?.string else { return nil }
    let end = json["muteEndTime"]?.int ?? 0
    return Member(
      user: User(
        id: UserID(id), name: json["nickname"]?.nonEmptyString, avatarURL: json["faceURL"]?.nonEmptyString),
      role: role(json["roleLevel"]?.int), joinedAt: json["joinTime"]?.int.map { Timestamp(milliseconds: $0) },
      isMuted: end > now.milliseconds, mutedUntil: end > now.milliseconds ? Timestamp(milliseconds: end) : nil)
  }

  /// A group as a channel, without one user's view.
  static func channel(group json: JSONValue) -> Channel? {
    guard var channel = OpenIMSource.channelRecord(group: json, .client)?.record.channel else { return nil }
    channel.memberCount = json["memberCount"]?.int.flatMap { Int(exactly: $0) }
    return channel
  }
}
