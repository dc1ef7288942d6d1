import ChatJSON
import UnifiedChat

/// Order and pages of the channel list, which the vendor leaves to clients.
enum OpenIMChannelOrder {
  static func precedes(_ left: Channel, _ right: Channel, _ order: ChannelQuery.Order) -> Bool {
    switch order {
    case .lastMessage: return later(activity(left), activity(right), left, right)
    case .created:
      return later(left.createdAt?.milliseconds ?? 0, right.createdAt?.milliseconds ?? 0, left, right)
    case .name:
      let (one, two) = (left.name ?? "", right.name ?? "")
      return one.utf8.elementsEqual(two.utf8) ? left.id < right.id : one.utf8.lexicographicallyPrecedes(two.utf8)
    }
  }

  private static func later(_ one: Int64, _ two: Int64, _ left: Channel, _ right: Channel) -> Bool {
    one == two ? left.id < right.id : one > two
  }

  private static func activity(_ channel: Channel) -> Int64 {
    (channel.lastMessage?.createdAt ?? channel.createdAt)?.milliseconds ?? 0
  }

  /// A token names the last channel shown and its place then, so that one that moved up meanwhile is not missed.
  static func page(
    of channels: [Channel], _ query: ChannelQuery, after token: PageToken?
  ) throws(ChatError) -> Page<Channel> {
    var rest = channels[...]
    if let token {
      guard let start = place(token) else {
        throw ChatError(.invalidArgument(field: "page"), operation: .listChannels)
      }
      rest = channels.drop { !precedes(start, $0, query.order) }
    }
    let items = Array(rest.prefix(max(1, query.limit)))
    return Page(items: items, next: rest.count > items.count ? items.last.map(self.token) : nil)
  }

  private static func token(_ channel: Channel) -> PageToken {
    PageToken(
      JSONValue.array([
        .int(activity(channel)), .int(channel.createdAt?.milliseconds ?? 0), .string(channel.id.rawValue),
        .string(channel.name ?? ""),
      ]).text())
  }

  private static func place(_ token: PageToken) -> Channel? {
    guard let parts = try? JSONValue(parsing: token.rawValue), let activity = parts[0]?.int,
      let created = parts[1]?.int, let id = parts[2]?.string
    else { return nil }
    var channel = Channel(id: ChannelID(id), kind: .group, name: parts[3]?.string)
    channel.createdAt = Timestamp(milliseconds: created)
    channel.lastMessage = Message(
      channel: channel.id, sender: nil, createdAt: Timestamp(milliseconds: activity), content: .text(""))
    return channel
  }
}
