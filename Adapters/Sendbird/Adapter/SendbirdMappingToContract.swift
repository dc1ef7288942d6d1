import ChatInterchange
import ChatJSON
import SendbirdWire
import UnifiedChat

// Wire values as the contract's, seen by the connected user.
enum SendbirdView {
  /// A channel of an imported kind shows as that kind.
  static func channel(_ json: JSONObject, me: UserID) -> Channel? {
    guard let wire = SendbirdChannel(json) else { return nil }
    var channel =
      (try? SendbirdMapping.channelRecord(wire, raw: json, .client))?.record.channel ?? Channel(id: wire.url, kind: .group)
    channel.id = wire.url
    if channel.createdAt == nil { channel.createdAt = Timestamp(milliseconds: wire.createdAt &* 1000) }
    guard let group = wire.group else {
      channel.memberCount = wire.participantCount.flatMap { Int(exactly: $0) }
      channel.isDistinct = false
      return channel
    }
    channel.isDistinct = group.isDistinct
    channel.memberCount = Int(exactly: group.joinedMemberCount)
    if channel.kind == .direct { channel.peer = group.members?.first { $0.user.id != me }?.user.id }
    if let last = group.lastMessage {
      channel.lastMessage = SendbirdMapping.message(last, raw: json.object("last_message") ?? JSONObject())
    }
    // Super groups stop counting at a hundred.
    channel.unread = group.unreadCount.map { count(group.isSuper && $0 >= 100, $0) } ?? .unknown
    channel.unreadMentions = group.unreadMentions.map { count(false, $0) } ?? .unknown
    channel.myRole = group.myRole.map { $0 == "operator" ? .admin : .member }
    channel.myState = group.memberState == "joined" ? .joined : group.memberState == "invited" ? .invited : nil
    channel.myReadPosition = group.userLastRead.flatMap(SendbirdMapping.position)
    channel.isHidden = group.hiddenState != "unhidden"
    channel.notificationLevel = level(group.pushTriggerOption)
    return channel
  }

  private static func count(_ isLowerBound: Bool, _ number: Int64) -> UnreadCount {
    let number = Int(clamping: max(0, number))
    return isLowerBound ? .atLeast(number) : .exact(number)
  }

  private static func level(_ option: String?) -> NotificationLevel? {
    switch option {
    case "off": NotificationLevel.none
    case "mention_only": .mentions
    case nil: nil
    default: .all
    }
  }

  static func option(_ level: NotificationLevel) -> String {
    switch level {
    case .all: "all"
    case .mentions: "mention_only"
    case .none: "off"
    }
  }

  static func message(_ json: JSONObject) -> Message? {
    SendbirdMessage(json).map { SendbirdMapping.message($0, raw: json) }
  }

  static func message(_ frame: SendbirdFrame) -> Message? {
    SendbirdMessage(frame.payload, command: frame.command).map { SendbirdMapping.message($0, raw: frame.payload) }
  }
}
