import ChatJSON
import UnifiedChat

/// What of a source is wanted. What is not wanted reaches neither archive nor destination.
public struct MigrationFilter: Sendable, Hashable {
  /// nil: all.
  public var channels: Set<ChannelID>?
  public var excludedChannels: Set<ChannelID>
  public var excludedUsers: Set<UserID>
  /// From here on, this moment included.
  public var since: Timestamp?
  /// Up to here, this moment not included.
  public var until: Timestamp?
  /// Names of contents (`MessageContent.kindName`); nil: all.
  public var kinds: Set<String>?
  /// Of messages only this one and the replies of its thread; nil: all.
  public var thread: MessageID?

  public init(
    channels: Set<ChannelID>? = nil, excludedChannels: Set<ChannelID> = [], excludedUsers: Set<UserID> = [],
    since: Timestamp? = nil, until: Timestamp? = nil, kinds: Set<String>? = nil,
    thread: MessageID? = nil
  ) {
    self.channels = channels
    self.excludedChannels = excludedChannels
    self.excludedUsers = excludedUsers
    self.since = since
    self.until = until
    self.kinds = kinds
    self.thread = thread
  }

  public func admits(_ channel: ChannelID) -> Bool {
    channels?.contains(channel) != false && !excludedChannels.contains(channel)
  }

  public func admits(_ user: UserID) -> Bool { !excludedUsers.contains(user) }

  public func admits(_ message: Message) -> Bool {
    if let sender = message.sender, !admits(sender) { return false }
    if let since, message.createdAt < since { return false }
    if let until, message.createdAt >= until { return false }
    if let thread, message.id != thread, message.threadParent != thread { return false }
    return kinds?.contains(message.content.kindName) != false
  }

  /// Where people are left out, a row that names one of them anywhere is too. Whom a service names by ids of its own is
  /// recognised where the source says who that is.
  public func admits(_ row: VendorRow) -> Bool {
    if let channel = row.channel, !admits(channel) { return false }
    guard !excludedUsers.isEmpty else { return true }
    guard row.user.map(admits) ?? true, row.people.allSatisfy(admits), let json = try? JSONValue(parsing: row.raw.text) else { return false }
    return !names(json)
  }

  private func names(_ json: JSONValue) -> Bool {
    switch json {
    case .string(let text): excludedUsers.contains(UserID(text))
    case .array(let items): items.contains(where: names)
    case .object(let object): object.contains { names($0.value) }
    default: false
    }
  }
}
