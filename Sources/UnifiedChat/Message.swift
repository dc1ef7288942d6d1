/// One message.
///
/// Two values are the same message when their `id` is equal within the channel, or their `clientMessageID` and sender.
public struct Message: Sendable, Hashable {
  public var channel: ChannelID
  /// nil while pending or failed.
  public var id: MessageID?
  /// Set on messages that this device sent.
  public var localID: LocalID?
  public var clientMessageID: ClientMessageID?
  /// nil for notices of the service.
  public var sender: UserID?
  public var senderName: String?
  /// nil while pending or failed: such messages sort after all committed ones, by `localOrder`.
  public var position: MessagePosition?
  /// The creation counter of this device among pending and failed messages.
  public var localOrder: Int64?
  /// Server time, or the local one while pending; never used for order.
  public var createdAt: Timestamp
  public var content: MessageContent
  public var mentions: Mentions
  /// The message that this one answers, with its copy where the vendor carries one.
  public var replyTo: Reply?
  /// Set on replies of a thread (`message.thread`).
  public var threadParent: MessageID?
  public var customType: String?
  /// One JSON document of the app beside the content.
  public var customData: JSONText?
  public var reactions: [Reaction]
  public var editedAt: Timestamp?
  public var state: MessageState
  /// Local to this device and user; never on a wire.
  public var localExtension: JSONText?

  public init(
    channel: ChannelID, id: MessageID? = nil, localID: LocalID? = nil, clientMessageID: ClientMessageID? = nil,
    sender: UserID?, senderName: String? = nil, position: MessagePosition? = nil, localOrder: Int64? = nil,
    createdAt: Timestamp, content: MessageContent, mentions: Mentions = Mentions(), replyTo: Reply? = nil,
    threadParent: MessageID? = nil, customType: String? = nil, customData: JSONText? = nil,
    reactions: [Reaction] = [], editedAt: Timestamp? = nil, state: MessageState = .sent,
    localExtension: JSONText? = nil
  ) {
    self.channel = channel
    self.id = id
    self.localID = localID
    self.clientMessageID = clientMessageID
    self.sender = sender
    self.senderName = senderName
    self.position = position
    self.localOrder = localOrder
    self.createdAt = createdAt
    self.content = content
    self.mentions = mentions
    self.replyTo = replyTo
    self.threadParent = threadParent
    self.customType = customType
    self.customData = customData
    self.reactions = reactions
    self.editedAt = editedAt
    self.state = state
    self.localExtension = localExtension
  }

  public var isRecalled: Bool { if case .recalled = content { true } else { false } }
}

/// How far an outgoing message has come. Received messages are `sent`.
public enum MessageState: Sendable, Hashable {
  case pending
  /// The acknowledgement was lost; a look-up is on its way.
  case unknown
  case sent
  case failed(ChatError)
  case cancelled
}

public struct Mentions: Sendable, Hashable {
  public var users: [UserID]
  public var everyone: Bool

  public init(users: [UserID] = [], everyone: Bool = false) {
    self.users = users
    self.everyone = everyone
  }

  public var isEmpty: Bool { users.isEmpty && !everyone }
}

public struct Reply: Sendable, Hashable {
  public var id: MessageID
  public var quoted: QuotedMessage?

  public init(id: MessageID, quoted: QuotedMessage? = nil) {
    self.id = id
    self.quoted = quoted
  }
}

public struct Reaction: Sendable, Hashable {
  public var key: String
  public var users: [UserID]

  public init(key: String, users: [UserID]) {
    self.key = key
    self.users = users
  }
}

/// What an app wants to say.
public struct MessageDraft: Sendable, Hashable {
  public var content: MessageContent
  public var mentions: Mentions
  public var replyTo: Reply?
  public var threadParent: MessageID?
  public var customType: String?
  public var customData: JSONText?
  /// For those online only, not stored (`message.transient`).
  public var isTransient: Bool

  public init(
    _ content: MessageContent, mentions: Mentions = Mentions(), replyTo: Reply? = nil, threadParent: MessageID? = nil,
    customType: String? = nil, customData: JSONText? = nil, isTransient: Bool = false
  ) {
    self.content = content
    self.mentions = mentions
    self.replyTo = replyTo
    self.threadParent = threadParent
    self.customType = customType
    self.customData = customData
    self.isTransient = isTransient
  }

  public static func text(_ text: String) -> MessageDraft { MessageDraft(.text(text)) }
}

/// One try of one send, as the client hands it to an adapter.
public struct OutgoingMessage: Sendable, Hashable {
  public var channel: ChannelID
  public var localID: LocalID
  public var clientMessageID: ClientMessageID
  /// Attachments are uploaded already: their `url` is set.
  public var draft: MessageDraft
  /// 1 for the first try.
  public var attempt: Int

  public init(
    channel: ChannelID, localID: LocalID, clientMessageID: ClientMessageID, draft: MessageDraft, attempt: Int = 1
  ) {
    self.channel = channel
    self.localID = localID
    self.clientMessageID = clientMessageID
    self.draft = draft
    self.attempt = attempt
  }
}

/// Which part of a channel's history.
public struct HistoryQuery: Sendable, Hashable {
  public enum Anchor: Sendable, Hashable {
    /// Backward from the newest, forward from the oldest.
    case newest, oldest
    case position(MessagePosition)
    /// A cursor of an earlier page: exclusive, stable for the life of the channel.
    case cursor(Cursor)
  }

  public enum Direction: String, Sendable, Hashable, CaseIterable { case older, newer }

  public var anchor: Anchor
  public var direction: Direction
  /// 1 or more, also above the vendor's page.
  public var limit: Int
  /// Whether a message at the position itself is part of the answer.
  public var isInclusive: Bool

  public init(
    anchor: Anchor = .newest, direction: Direction = .older, limit: Int = 30, isInclusive: Bool = false
  ) {
    self.anchor = anchor
    self.direction = direction
    self.limit = limit
    self.isInclusive = isInclusive
  }

  public static func newest(_ limit: Int = 30) -> HistoryQuery { HistoryQuery(limit: limit) }

  public static func before(_ position: MessagePosition, limit: Int = 30) -> HistoryQuery {
    HistoryQuery(anchor: .position(position), direction: .older, limit: limit)
  }

  public static func after(_ position: MessagePosition, limit: Int = 30) -> HistoryQuery {
    HistoryQuery(anchor: .position(position), direction: .newer, limit: limit)
  }
}

/// Messages in ascending position, whatever the direction of the query and the vendor's own order.
public struct MessagePage: Sendable, Hashable {
  public var messages: [Message]
  /// nil: nothing older (newer) existed when the page was read.
  public var older: Cursor?
  public var newer: Cursor?

  public init(messages: [Message], older: Cursor?, newer: Cursor?) {
    self.messages = messages
    self.older = older
    self.newer = newer
  }
}

/// Edits and recalls of a channel since a token (`history.changelog`).
public struct ChangePage: Sendable, Hashable {
  public var updated: [Message]
  /// Gone without a tombstone at the vendor.
  public var removed: [MessageID]
  public var next: Cursor
  public var hasMore: Bool

  public init(updated: [Message], removed: [MessageID], next: Cursor, hasMore: Bool) {
    self.updated = updated
    self.removed = removed
    self.next = next
    self.hasMore = hasMore
  }
}
