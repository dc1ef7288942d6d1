import ChatInterchange
import ChatJSON
import UnifiedChat

/// How a channel is put into columns and back.
enum ChannelRow {
  static let columns = """
    id, payload, view, unread, unread_is_least, read_major, read_minor, read_tail, is_pinned_here, is_hidden_here
    """

  /// nil for a channel that is only heard of.
  static func channel(_ row: Row) throws(ChatError) -> Channel? {
    guard !row.isNull(1) else { return nil }
    var channel: Channel
    do {
      guard case .channel(let record) = try Record(json: try JSONValue(parsing: row.bytes(1))) else {
        throw RecordError(path: "/type", reason: "no channel")
      }
      channel = record.channel
    } catch {
      throw ChatError(.storage(.corrupt), operation: .cache, detail: "channel \(row.text(0)): \(error)")
    }
    if let view = try? JSONValue(parsing: row.bytes(2)).object { read(view, into: &channel) }
    channel.unread = unread(row.optionalInt(3), isLeast: row.flag(4))
    channel.myReadPosition = MessagePosition(row, from: 5)
    channel.isPinned = channel.isPinned || row.flag(8)
    channel.isHidden = channel.isHidden || row.flag(9)
    return channel
  }

  static func payload(_ channel: Channel) -> String { Record.channel(ChannelRecord(channel: channel)).json().text() }

  /// What the record does not hold: the user's own view as the vendor tells it.
  static func view(_ channel: Channel) -> String {
    var object = JSONObject()
    object["memberCount"] = channel.memberCount.map { .int(Int64($0)) }
    object["peer"] = channel.peer.map { .string($0.rawValue) }
    object["mentions"] = channel.unreadMentions.number.map { .int(Int64($0)) }
    if case .atLeast = channel.unreadMentions { object["mentionsAtLeast"] = true }
    object["role"] = channel.myRole.map { .string($0.recordName) }
    object["state"] = channel.myState.map { .string($0.rawValue) }
    if channel.isPinned { object["pinned"] = true }
    if channel.isHidden { object["hidden"] = true }
    object["notifications"] = channel.notificationLevel.map { .string($0.rawValue) }
    return JSONValue.object(object).text()
  }

  private static func read(_ view: JSONObject, into channel: inout Channel) {
    channel.memberCount = view["memberCount"]?.int.flatMap { Int(exactly: $0) }
    channel.peer = view["peer"]?.string.map { UserID($0) }
    channel.unreadMentions = unread(view["mentions"]?.int, isLeast: view["mentionsAtLeast"]?.bool ?? false)
    channel.myRole = view["role"]?.string.map { MemberRole(recordName: $0) }
    channel.myState = view["state"]?.string.flatMap { MembershipState(rawValue: $0) }
    channel.isPinned = view["pinned"]?.bool ?? false
    channel.isHidden = view["hidden"]?.bool ?? false
    channel.notificationLevel = view["notifications"]?.string.flatMap { NotificationLevel(rawValue: $0) }
  }

  static func unread(_ number: Int64?, isLeast: Bool) -> UnreadCount {
    guard let number else { return .unknown }
    let count = Int(clamping: max(0, number))
    return isLeast ? .atLeast(count) : .exact(count)
  }
}

extension UnreadCount {
  /// Never below zero, whatever a server says.
  var stored: (number: SQLValue, isLeast: SQLValue) {
    switch self {
    case .unknown: (.null, .int(0))
    case .exact(let number): (.int(Int64(max(0, number))), .int(0))
    case .atLeast(let number): (.int(Int64(max(0, number))), .int(1))
    }
  }
}
