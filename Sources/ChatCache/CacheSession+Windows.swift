import ChatInterchange
import UnifiedChat

/// A part of a channel that the cache holds without holes, as a live list shows it.
public struct CachedWindow: Sendable {
  /// Ascending.
  public var messages: [Message]
  public var hasOlder: Bool
  /// Newer ones may exist: known to, or not known not to.
  public var hasNewer: Bool

  public init(messages: [Message], hasOlder: Bool, hasNewer: Bool) {
    self.messages = messages
    self.hasOlder = hasOlder
    self.hasNewer = hasNewer
  }
}

/// What a list of channels is ordered and filtered by, without the rest of the channel.
public struct ChannelKey: Sendable, Hashable {
  public var id: ChannelID
  public var kind: ChannelKind
  public var name: String?
  public var createdAt: Timestamp?
  /// When the newest message in sight was made.
  public var lastMessageAt: Timestamp?
  public var unread: UnreadCount
  public var isPinned: Bool
  public var isHidden: Bool
  public var isSilenced: Bool

  public init(
    id: ChannelID, kind: ChannelKind, name: String? = nil, createdAt: Timestamp? = nil,
    lastMessageAt: Timestamp? = nil, unread: UnreadCount = .unknown, isPinned: Bool = false, isHidden: Bool = false,
    isSilenced: Bool = false
  ) {
    self.id = id
    self.kind = kind
    self.name = name
    self.createdAt = createdAt
    self.lastMessageAt = lastMessageAt
    self.unread = unread
    self.isPinned = isPinned
    self.isHidden = isHidden
    self.isSilenced = isSilenced
  }
}

extension CacheSession {
  /// What is known without holes from `low` to `high`, or as far up as is known when `high` is nil.
  /// - Returns: nil when nothing is known at `low` any more.
  public func window(
    of channel: ChannelID, from low: MessagePosition, to high: MessagePosition?
  ) throws(ChatError) -> CachedWindow? {
    let ranges = try ranges(of: channel)
    guard let range = ranges.first(where: { $0.contains(low) }) else { return nil }
    let top = min(high ?? range.high, range.high)
    let shown = CachedRange(low: low, high: max(low, top))
    var messages = try messages(in: channel, .newer, of: low, inclusive: true, within: shown, limit: .max)
    if high == nil, !range.isLive { messages += try ownMessages(in: channel, behind: range.high) }
    let edge = LocalPlace(of: low)
    let local = try localMessages(in: channel, from: edge, to: high.map { LocalPlace(behind: $0) } ?? .last)
    let older = try self.messages(in: channel, .older, of: low, within: range, limit: 1)
    let newer =
      high == nil ? [] : try self.messages(in: channel, .newer, of: top, within: range, limit: 1)
    let hasOlderLocal = try hasLocal(.older, than: edge, in: channel)
    return CachedWindow(
      messages: LocalMessage.merge(messages, local).map(\.message), hasOlder: !range.isAtStart || !older.isEmpty || hasOlderLocal,
      hasNewer: !range.isLive || !newer.isEmpty)
  }

  /// What this device sent behind the known part, which a lost link has ended before it: a list that follows goes on
  /// showing it, as it did while it was on its way. Looks at the newest messages alone, however many came meanwhile.
  private func ownMessages(in channel: ChannelID, behind end: MessagePosition) throws(ChatError) -> [Message] {
    let rest = CachedRange(low: end, high: .highest)
    return try messages(in: channel, .older, of: .highest, within: rest, limit: 50).filter {
      $0.localID != nil && $0.sender == owner && $0.position != end
    }
  }

  /// The keys of all channels of which the user is a member.
  public func channelKeys() throws(ChatError) -> [ChannelKey] {
    try database.all(Self.keyQuery + " WHERE is_known = 1 AND is_member = 1") { row throws(ChatError) in Self.key(row) }
  }

  /// - Returns: nil when the user is no member of it, or it was never described.
  public func channelKey(_ id: ChannelID) throws(ChatError) -> ChannelKey? {
    try database.first(Self.keyQuery + " WHERE is_known = 1 AND is_member = 1 AND id = ?", [.text(id.rawValue)]) {
      row throws(ChatError) in Self.key(row)
    }
  }

  /// The last message is found by a step of the page index, so that all of it costs no more than a walk through the
  /// channels, and no JSON is taken apart in full.
  private static let keyQuery = """
    SELECT id, json_extract(payload, '$.kind'), json_extract(payload, '$.name'), created_at, unread, unread_is_least,
      is_pinned_here OR coalesce(json_extract(view, '$.pinned'), 0),
      is_hidden_here OR coalesce(json_extract(view, '$.hidden'), 0),
      json_extract(view, '$.notifications'),
      coalesce(
        (SELECT here.created_at FROM
          (SELECT h.created_at, h.after_major, h.after_minor, h.after_tail FROM messages h
            WHERE h.channel = channels.id AND h.after_major IS NOT NULL
            ORDER BY h.after_major DESC, h.after_minor DESC, h.after_tail DESC, h.row DESC LIMIT 1) here
          WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.channel = channels.id AND m.major IS NOT NULL
            AND m.visibility = 'visible' AND m.thread_parent IS NULL
            AND (m.major, m.minor, m.tail) > (here.after_major, here.after_minor, here.after_tail))),
        (SELECT m.created_at FROM messages m WHERE m.channel = channels.id AND m.major IS NOT NULL
          AND m.visibility = 'visible' AND m.thread_parent IS NULL
          ORDER BY m.major DESC, m.minor DESC, m.tail DESC LIMIT 1))
    FROM channels
    """

  private static func key(_ row: Row) -> ChannelKey {
    ChannelKey(
      id: ChannelID(row.text(0)), kind: ChannelKind(recordName: row.text(1)), name: row.optionalText(2),
      createdAt: row.optionalInt(3).map { Timestamp(milliseconds: $0) },
      lastMessageAt: row.optionalInt(9).map { Timestamp(milliseconds: $0) },
      unread: ChannelRow.unread(row.optionalInt(4), isLeast: row.flag(5)), isPinned: row.flag(6),
      isHidden: row.flag(7), isSilenced: row.optionalText(8) == NotificationLevel.none.rawValue)
  }
}
