import UnifiedChat

/// The identity of a message in a list: the same from the moment it is written to its end, whatever ids it gets.
public enum MessageItemID: Sendable, Hashable {
  /// Written on this device.
  case local(LocalID)
  case server(MessageID)

  public init(_ message: Message) {
    if let localID = message.localID { self = .local(localID) } else { self = .server(message.id ?? "") }
  }
}

/// A message with what follows from the marks of others.
public struct MessageItem: Sendable, Hashable, Identifiable {
  public var id: MessageItemID
  public var message: Message
  /// The connected user wrote it.
  public var isOwn: Bool
  /// Of an own message: the others who have it, as far as the vendor tells. Who has read it has it.
  public var deliveredTo: Set<UserID>
  /// Of an own message: the others who have read up to it or further.
  public var readBy: Set<UserID>
}

/// Which messages a list shows. All that is set has to hold.
public struct MessageFilter: Sendable {
  public var senders: Set<UserID>?
  /// The values of `MessageContent.kindName`.
  public var kinds: Set<String>?
  public var customTypes: Set<String>?
  /// An app's own condition. It is asked often, and on no particular thread.
  public var condition: (@Sendable (Message) -> Bool)?

  public init(
    senders: Set<UserID>? = nil, kinds: Set<String>? = nil, customTypes: Set<String>? = nil,
    condition: (@Sendable (Message) -> Bool)? = nil
  ) {
    self.senders = senders
    self.kinds = kinds
    self.customTypes = customTypes
    self.condition = condition
  }

  func admits(_ message: Message) -> Bool {
    if let senders, !(message.sender.map { senders.contains($0) } ?? false) { return false }
    if let kinds, !kinds.contains(message.content.kindName) { return false }
    if let customTypes, !(message.customType.map { customTypes.contains($0) } ?? false) { return false }
    return condition?(message) ?? true
  }
}

/// What a list of messages shows at one moment.
public struct MessageListSnapshot: LiveSnapshot {
  /// Ascending; messages that the server has not confirmed are last, in the order of their making.
  public var items: [MessageItem] = []
  public var hasOlder = false
  /// Newer ones exist or may exist: the list stands in the past, or is being caught up with.
  public var hasNewer = false
  /// The first page is here.
  public var isLoaded = false
  /// Others who are writing now.
  public var typing: Set<UserID> = []
  /// Why the first page could not be read; it is tried again when the link is back.
  public var problem: ChatError?
}

public struct MessageListOptions: Sendable {
  /// Where a list begins.
  public enum Start: Sendable, Hashable {
    case newest
    /// Around it, as much on each side.
    case message(MessageID)
    case position(MessagePosition)
    /// Around the first message that is not older.
    case time(Timestamp)
  }

  public var start: Start
  /// Messages of the first page, and of each step in a direction.
  public var pageSize: Int
  public var filter: MessageFilter
  /// The list is that of the replies under this message; nil: the main list.
  public var thread: Message?

  public init(
    start: Start = .newest, pageSize: Int = 30, filter: MessageFilter = MessageFilter(), thread: Message? = nil
  ) {
    self.start = start
    self.pageSize = max(1, pageSize)
    self.filter = filter
    self.thread = thread
  }
}
