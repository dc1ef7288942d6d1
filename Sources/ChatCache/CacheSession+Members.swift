import ChatInterchange
import ChatJSON
import UnifiedChat

extension CacheSession {
  /// Stores a member. Marks only move up; a profile that the vendor leaves out does not erase what is known.
  /// - Returns: false when nothing changed.
  public func merge(_ member: Member, in channel: ChannelID) throws(ChatError) -> Bool {
    try touchChannel(channel)
    let known = try self.member(member.user.id, in: channel)
    var next = member
    if let known {
      next.user.name = member.user.name ?? known.user.name
      next.user.avatarURL = member.user.avatarURL ?? known.user.avatarURL
      next.user.customData = member.user.customData ?? known.user.customData
      next.readPosition = Self.higher(member.readPosition, known.readPosition)
      next.deliveredPosition = Self.higher(member.deliveredPosition, known.deliveredPosition)
      next.joinedAt = member.joinedAt ?? known.joinedAt
    }
    // Presence passes; it is not kept.
    next.user.presence = nil
    let rows = Self.rows(of: next, in: channel)
    if let known, next == known, rows == Self.rows(of: known, in: channel) { return false }
    try database.run(
      "INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?, ?)",
      [
        .text(channel.rawValue), .text(next.user.id.rawValue), .text(next.state.rawValue), .text(rows.member.text()),
        .text(rows.user.text()),
      ])
    return true
  }

  /// The records tell Unicode forms of one text apart, as values of Swift don't.
  private static func rows(of member: Member, in channel: ChannelID) -> (member: JSONValue, user: JSONValue) {
    (
      Record.member(MemberRecord(channel: channel, member: member)).json(),
      Record.user(UserRecord(user: member.user)).json()
    )
  }

  /// Replaces the list of a channel by a complete one.
  public func replaceMembers(_ members: [Member], of channel: ChannelID) throws(ChatError) {
    try touchChannel(channel)
    let present = Set(members.map(\.user.id))
    for known in try self.members(of: channel) where !present.contains(known.user.id) {
      try database.run(
        "DELETE FROM members WHERE channel = ? AND user = ?",
        [.text(channel.rawValue), .text(known.user.id.rawValue)])
    }
    for member in members { _ = try merge(member, in: channel) }
  }

  /// - Returns: false when they were no member as far as known.
  public func removeMember(_ user: UserID, from channel: ChannelID) throws(ChatError) -> Bool {
    try database.run(
      "DELETE FROM members WHERE channel = ? AND user = ?", [.text(channel.rawValue), .text(user.rawValue)]) > 0
  }

  public func member(_ user: UserID, in channel: ChannelID) throws(ChatError) -> Member? {
    try database.first(
      "SELECT payload, profile FROM members WHERE channel = ? AND user = ?",
      [.text(channel.rawValue), .text(user.rawValue)]
    ) { row throws(ChatError) in try Self.member(row) }
  }

  /// Joined and invited members that are known, by user id.
  public func members(of channel: ChannelID) throws(ChatError) -> [Member] {
    try database.all(
      """
      SELECT payload, profile FROM members WHERE channel = ? AND state IN ('joined', 'invited') ORDER BY user
      """, [.text(channel.rawValue)]
    ) { row throws(ChatError) in try Self.member(row) }
  }

  /// Raises what another member has read or received.
  /// - Returns: false when it stood there or higher.
  public func raiseMark(
    _ mark: WritableKeyPath<Member, MessagePosition?>, of user: UserID, in channel: ChannelID, to position: MessagePosition
  ) throws(ChatError) -> Bool {
    var member = try self.member(user, in: channel) ?? Member(user: User(id: user))
    if let known = member[keyPath: mark], position <= known { return false }
    member[keyPath: mark] = position
    return try merge(member, in: channel)
  }

  private static func member(_ row: Row) throws(ChatError) -> Member {
    do {
      guard case .member(let record) = try Record(json: try JSONValue(parsing: row.bytes(0))),
        case .user(let profile) = try Record(json: try JSONValue(parsing: row.bytes(1)))
      else { throw RecordError(path: "/type", reason: "no member") }
      var member = record.member
      member.user = profile.user
      return member
    } catch {
      throw ChatError(.storage(.corrupt), operation: .cache, detail: "member row: \(error)")
    }
  }

  private static func higher(_ left: MessagePosition?, _ right: MessagePosition?) -> MessagePosition? {
    guard let left, let right else { return left ?? right }
    return max(left, right)
  }
}
