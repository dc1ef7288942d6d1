/// What kind of place a channel is.
public enum ChannelKind: Sendable, Hashable {
  /// Exactly two distinct members; one channel whatever the order of their ids.
  case direct
  /// A stored member list.
  case group
  /// Joined freely, no stored members, no unread, no receipts.
  case open
  /// Written by the service, read by users.
  case service
  /// Ends by itself.
  case temporary
  case unknown(String)
}

public enum NotificationLevel: String, Sendable, Hashable, CaseIterable { case all, mentions, none }

/// Unread messages of a channel.
public enum UnreadCount: Sendable, Hashable {
  /// Before the first sync.
  case unknown
  case exact(Int)
  /// At least so many: the vendor stopped counting.
  case atLeast(Int)

  public var number: Int? {
    switch self {
    case .unknown: nil
    case .exact(let number), .atLeast(let number): number
    }
  }
}

public struct Channel: Sendable, Hashable {
  public var id: ChannelID
  public var kind: ChannelKind
  public var name: String?
  public var coverURL: String?
  /// One JSON object, shared by the members.
  public var customData: JSONText?
  /// Single keys that change without touching the others (`channel.metadataKeys`).
  public var metadata: [String: String]
  public var isDistinct: Bool
  public var isFrozen: Bool
  public var createdAt: Timestamp?
  public var createdBy: UserID?
  /// nil where the vendor does not count.
  public var memberCount: Int?
  /// The other one of a direct channel, where known without asking.
  public var peer: UserID?

  // What follows is the connected user's own view.
  public var lastMessage: Message?
  public var unread: UnreadCount
  public var unreadMentions: UnreadCount
  public var myRole: MemberRole?
  public var myState: MembershipState?
  public var myReadPosition: MessagePosition?
  public var isPinned: Bool
  public var isHidden: Bool
  public var notificationLevel: NotificationLevel?

  public init(
    id: ChannelID, kind: ChannelKind, name: String? = nil, coverURL: String? = nil, customData: JSONText? = nil,
    metadata: [String: String] = [:], isDistinct: Bool = false, isFrozen: Bool = false, createdAt: Timestamp? = nil,
    createdBy: UserID? = nil, memberCount: Int? = nil, peer: UserID? = nil, lastMessage: Message? = nil,
    unread: UnreadCount = .unknown, unreadMentions: UnreadCount = .unknown, myRole: MemberRole? = nil,
    myState: MembershipState? = nil, myReadPosition: MessagePosition? = nil, isPinned: Bool = false,
    isHidden: Bool = false, notificationLevel: NotificationLevel? = nil
  ) {
    self.id = id
    self.kind = kind
    self.name = name
    self.coverURL = coverURL
    self.customData = customData
    self.metadata = metadata
    self.isDistinct = isDistinct
    self.isFrozen = isFrozen
    self.createdAt = createdAt
    self.createdBy = createdBy
    self.memberCount = memberCount
    self.peer = peer
    self.lastMessage = lastMessage
    self.unread = unread
    self.unreadMentions = unreadMentions
    self.myRole = myRole
    self.myState = myState
    self.myReadPosition = myReadPosition
    self.isPinned = isPinned
    self.isHidden = isHidden
    self.notificationLevel = notificationLevel
  }
}

/// What a new channel is made of.
public struct ChannelDraft: Sendable, Hashable {
  public var kind: ChannelKind
  /// The others; the creator is a member in any case.
  public var members: [UserID]
  public var name: String?
  public var coverURL: String?
  public var customData: JSONText?
  /// The same member set gives the same channel (`channel.groupDistinct`); a direct channel is distinct anyway.
  public var isDistinct: Bool

  public init(
    kind: ChannelKind = .group, members: [UserID] = [], name: String? = nil, coverURL: String? = nil,
    customData: JSONText? = nil, isDistinct: Bool = false
  ) {
    self.kind = kind
    self.members = members
    self.name = name
    self.coverURL = coverURL
    self.customData = customData
    self.isDistinct = isDistinct
  }

  public static func direct(with user: UserID) -> ChannelDraft { ChannelDraft(kind: .direct, members: [user]) }
}

/// What may be changed of a channel; nil leaves it.
public struct ChannelChanges: Sendable, Hashable {
  public var name: String?
  public var coverURL: String?
  public var customData: JSONText?

  public init(name: String? = nil, coverURL: String? = nil, customData: JSONText? = nil) {
    self.name = name
    self.coverURL = coverURL
    self.customData = customData
  }
}

/// Which channels, in which order.
public struct ChannelQuery: Sendable, Hashable {
  public enum Order: String, Sendable, Hashable, CaseIterable {
    /// Newest message first; channels without messages by their creation; equal ones by id, ascending.
    case lastMessage
    case name, created
  }

  public var order: Order
  /// nil: every kind in which the user is a member.
  public var kinds: Set<ChannelKind>?
  public var nameContains: String?
  public var members: Set<UserID>?
  public var unreadOnly: Bool
  public var includesHidden: Bool
  /// 1 or more; adapters split it by the vendor's page.
  public var limit: Int

  public init(
    order: Order = .lastMessage, kinds: Set<ChannelKind>? = nil, nameContains: String? = nil,
    members: Set<UserID>? = nil, unreadOnly: Bool = false, includesHidden: Bool = false, limit: Int = 30
  ) {
    self.order = order
    self.kinds = kinds
    self.nameContains = nameContains
    self.members = members
    self.unreadOnly = unreadOnly
    self.includesHidden = includesHidden
    self.limit = limit
  }
}

/// One page of a list. `next == nil` is the end; an empty page with a token makes progress.
public struct Page<Item: Sendable>: Sendable {
  public var items: [Item]
  public var next: PageToken?

  public init(items: [Item], next: PageToken?) {
    self.items = items
    self.next = next
  }
}
