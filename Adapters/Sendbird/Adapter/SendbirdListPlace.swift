import ChatJSON
import SendbirdWire
import UnifiedChat

/// Where a walk through the list by newest message has come to: the server's token, and the channels given last.
///
/// A channel in which something is said meanwhile moves to the top, and the server's pages move down by one: what
/// stands before the last one given was given before, or is told by the message that moved it.
struct SendbirdListPlace {
  /// Empty at the beginning, and at the end.
  var token = ""
  /// Of the newest message in the channel given last; milliseconds.
  private var time: Int64?
  /// A page of those given last: nothing but the id tells channels of one time, or without a message, apart.
  private var given: [ChannelID] = []

  /// - Throws: `.invalidArgument` for a page token of something else.
  init(_ page: PageToken?) throws(ChatError) {
    guard let page else { return }
    guard let json = try? JSONValue(parsing: page.rawValue), let token = json[0]?.string, !token.isEmpty,
      let given = json[2]?.array
    else { throw ChatError(.invalidArgument(field: "page"), operation: .listChannels) }
    self.token = token
    time = json[1]?.int
    self.given = given.compactMap(\.string).map { ChannelID($0) }
  }

  /// nil at the end.
  var page: PageToken? {
    guard !token.isEmpty else { return nil }
    let parts: JSONValue = [
      .string(token), time.map { .int($0) } ?? .null, .array(given.map { .string($0.rawValue) }),
    ]
    return PageToken(parts.text())
  }

  /// False for one that was given before.
  mutating func admits(_ channel: Channel) -> Bool {
    let own = channel.lastMessage?.createdAt.milliseconds
    if let own, let time, own > time { return false }
    guard !given.contains(channel.id) else { return false }
    time = own ?? time
    given.append(channel.id)
    if given.count > SendbirdLimits.page { given.removeFirst() }
    return true
  }
}
