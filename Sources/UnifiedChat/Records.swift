// What tools move: users, channels, members, messages and files, free of any vendor. The JSON form is described by
// `Schemas/records.schema.json`.

public enum Record: Sendable, Hashable {
  case user(UserRecord)
  case channel(ChannelRecord)
  case member(MemberRecord)
  case file(FileRecord)
  case message(MessageRecord)
}

/// Where an item was before it came to where it was read: what a destination keeps beside the item, so that reading
/// it back leads to the original.
public struct Origin: Sendable, Hashable {
  public var vendor: VendorName
  /// The id at that vendor.
  public var id: String
  /// The channel's id there; nil for users and channels.
  public var channel: ChannelID?

  public init(vendor: VendorName, id: String, channel: ChannelID? = nil) {
    self.vendor = vendor
    self.id = id
    self.channel = channel
  }

  /// By bytes, as all ids: two originals whose ids differ in their Unicode form alone are two.
  public static func == (left: Self, right: Self) -> Bool {
    left.vendor == right.vendor && left.channel == right.channel && left.id.utf8.elementsEqual(right.id.utf8)
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(vendor)
    hasher.combine(channel)
    // Equal bytes have equal characters.
    hasher.combine(id)
  }
}

public struct UserRecord: Sendable, Hashable {
  public var user: User
  /// Deleted at the vendor, or never registered and known only as an author.
  public var isPlaceholder: Bool
  public var origin: Origin?
  /// As received.
  public var raw: JSONText?

  public init(user: User, isPlaceholder: Bool = false, origin: Origin? = nil, raw: JSONText? = nil) {
    self.user = user
    self.isPlaceholder = isPlaceholder
    self.origin = origin
    self.raw = raw
  }
}

/// A channel without the view of one user (`unread`, `isPinned` and the like are at their defaults).
public struct ChannelRecord: Sendable, Hashable {
  public var channel: Channel
  public var origin: Origin?
  public var raw: JSONText?

  public init(channel: Channel, origin: Origin? = nil, raw: JSONText? = nil) {
    self.channel = channel
    self.origin = origin
    self.raw = raw
  }
}

public struct MemberRecord: Sendable, Hashable {
  public var channel: ChannelID
  public var member: Member
  public var raw: JSONText?

  public init(channel: ChannelID, member: Member, raw: JSONText? = nil) {
    self.channel = channel
    self.member = member
    self.raw = raw
  }
}

/// Bytes that attachments name by their SHA-256. Comes before the messages that use it.
public struct FileRecord: Sendable, Hashable {
  /// 64 lower-case hex digits of the bytes.
  public var sha256: String
  public var name: String?
  public var mimeType: String?
  public var bytes: [UInt8]

  public init(sha256: String, name: String? = nil, mimeType: String? = nil, bytes: [UInt8]) {
    self.sha256 = sha256
    self.name = name
    self.mimeType = mimeType
    self.bytes = bytes
  }
}

public struct MessageRecord: Sendable, Hashable {
  public var message: Message
  public var origin: Origin?
  public var raw: JSONText?

  public init(message: Message, origin: Origin? = nil, raw: JSONText? = nil) {
    self.message = message
    self.origin = origin
    self.raw = raw
  }
}

/// A row of a vendor's own that belongs to chat and has no place among the records, as received. An archive keeps it; no
/// destination gets it.
public struct VendorRow: Sendable, Hashable {
  /// The vendor's name of the list in which it stands: `_Installation`.
  public var kind: String
  /// Of the row, unique in its list; compared by bytes.
  public var id: String
  /// Whose it is, where it says.
  public var user: UserID?
  public var channel: ChannelID?
  /// Everybody whom the row names by ids of another kind than `UserID`, as far as the source found out who that is: a
  /// filter asks it. Told by the source alone; an archive does not keep it, and equal rows may differ in it.
  public var people: [UserID] = []
  public var raw: JSONText

  public init(
    kind: String, id: String, user: UserID? = nil, channel: ChannelID? = nil, people: [UserID] = [], raw: JSONText
  ) {
    self.kind = kind
    self.id = id
    self.user = user
    self.channel = channel
    self.people = people
    self.raw = raw
  }

  public static func == (left: Self, right: Self) -> Bool {
    left.kind == right.kind && left.id.utf8.elementsEqual(right.id.utf8) && left.user == right.user
      && left.channel == right.channel && left.raw == right.raw
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    // Equal bytes have equal characters.
    hasher.combine(id)
  }
}

/// Something that a source could not read or did not believe, kept so that it is reported and not lost.
public struct UnreadableRecord: Sendable, Hashable {
  /// `user`, `channel`, `member`, `message`, `file` or `row`; `envelope` for what stands beside an item that was read.
  public var kind: String
  public var id: String?
  public var channel: ChannelID?
  public var reason: String
  public var raw: JSONText?

  public init(kind: String, id: String? = nil, channel: ChannelID? = nil, reason: String, raw: JSONText? = nil) {
    self.kind = kind
    self.id = id
    self.channel = channel
    self.reason = reason
    self.raw = raw
  }
}

/// One page of a source. `next == nil` is the end.
public struct SourcePage<Item: Sendable>: Sendable {
  public var items: [Item]
  public var unreadable: [UnreadableRecord]
  public var next: Cursor?

  public init(items: [Item], unreadable: [UnreadableRecord] = [], next: Cursor?) {
    self.items = items
    self.unreadable = unreadable
    self.next = next
  }
}
