import ChatInterchange
import ChatJSON
import UnifiedChat

/// What a channel that came in meant for the cache.
public enum ChannelChange: Sendable, Hashable {
  case unchanged
  /// Not known before, or left before.
  case joined(Channel)
  case updated(Channel)
}

extension CacheSession {
  /// Stores what the vendor says of a channel of this user.
  ///
  /// Its last message becomes a message of the cache. An unread number or read position that the vendor leaves out
  /// does not erase what is known.
  public func merge(_ channel: Channel) throws(ChatError) -> ChannelChange {
    try touchChannel(channel.id)
    let known = try self.channel(channel.id)
    let wasMember = known != nil ? try isMember(of: channel.id) : false
    try database.run(
      "UPDATE channels SET is_known = 1, is_member = ?, created_at = ?, payload = ?, view = ? WHERE id = ?",
      [
        SQLValue(channel.myState.map { $0 == .joined || $0 == .invited } ?? true),
        SQLValue(channel.createdAt?.milliseconds), .text(ChannelRow.payload(channel)),
        .text(ChannelRow.view(channel)), .text(channel.id.rawValue),
      ])
    if let position = channel.myReadPosition { _ = try raiseReadMark(position, of: channel.id) }
    // An unsent message of this device is settled by its own answer or look-up, which tell those who wait for it.
    if let last = channel.lastMessage, let position = last.position, try pendingTwin(of: last) == nil {
      _ = try merge(last, from: .read)
      // An island of one message: what lies before it is unknown.
      if last.threadParent == nil { try cover(CachedRange(low: position, high: position), in: channel.id) }
    }
    // After the mark, and after the message that it counts.
    if channel.unread != .unknown {
      _ = try setUnread(try besideDueMark(channel.unread, of: channel.id), of: channel.id)
    }
    guard let now = try self.channel(channel.id) else { return .unchanged }
    if known == nil || !wasMember { return try isMember(of: channel.id) ? .joined(now) : .unchanged }
    return now == known ? .unchanged : .updated(now)
  }

  /// A channel with the last message that is known; nil when it was never described.
  public func channel(_ id: ChannelID) throws(ChatError) -> Channel? {
    let found = try database.first(
      "SELECT \(ChannelRow.columns) FROM channels WHERE id = ? AND is_known = 1", [.text(id.rawValue)]
    ) { row throws(ChatError) in try ChannelRow.channel(row) }
    guard var channel = found ?? nil else { return nil }
    channel.lastMessage = try lastMessage(in: id)
    return channel
  }

  /// Channels of which the user is a member, the one with the newest message first, then by creation, then by id.
  public func channels() throws(ChatError) -> [Channel] {
    var channels = try database.all(
      "SELECT \(ChannelRow.columns) FROM channels WHERE is_known = 1 AND is_member = 1 ORDER BY id"
    ) { row throws(ChatError) in try ChannelRow.channel(row) }.compactMap(\.self)
    for place in channels.indices { channels[place].lastMessage = try lastMessage(in: channels[place].id) }
    return channels.sorted { left, right in
      let leftTime = left.lastMessage?.createdAt ?? left.createdAt ?? Timestamp(milliseconds: .min)
      let rightTime = right.lastMessage?.createdAt ?? right.createdAt ?? Timestamp(milliseconds: .min)
      return leftTime == rightTime ? left.id < right.id : leftTime > rightTime
    }
  }

  public func isMember(of id: ChannelID) throws(ChatError) -> Bool {
    try database.first("SELECT is_member FROM channels WHERE id = ? AND is_known = 1", [.text(id.rawValue)]) {
      row throws(ChatError) in row.flag(0)
    } ?? false
  }

  /// The user is no member any more; messages stay until the cache is cleared.
  /// - Returns: false when they were none.
  public func leave(_ id: ChannelID) throws(ChatError) -> Bool {
    guard try isMember(of: id) else { return false }
    try database.run("UPDATE channels SET is_member = 0 WHERE id = ?", [.text(id.rawValue)])
    return true
  }

  /// Removes the messages of a channel and what is known of its gaps; what waits to be sent stays.
  public func forgetMessages(of id: ChannelID) throws(ChatError) {
    let rows = try database.all(
      "SELECT row FROM messages WHERE channel = ? AND (id IS NOT NULL OR after_major IS NOT NULL)", [.text(id.rawValue)]
    ) { row throws(ChatError) in row.int(0) }
    for row in rows {
      try unindex(row)
      try database.run("DELETE FROM messages WHERE row = ?", [.int(row)])
    }
    if !rows.isEmpty { database.hasErased = true }
    try database.run("DELETE FROM ranges WHERE channel = ?", [.text(id.rawValue)])
  }

  /// Removes a channel and everything in it.
  public func deleteChannel(_ id: ChannelID) throws(ChatError) {
    let rows = try database.all("SELECT row FROM messages WHERE channel = ?", [.text(id.rawValue)]) {
      row throws(ChatError) in row.int(0)
    }
    for row in rows { try unindex(row) }
    if !rows.isEmpty { database.hasErased = true }
    try database.run("DELETE FROM channels WHERE id = ?", [.text(id.rawValue)])
    for table in ["cursors", "hidden"] {
      try database.run("DELETE FROM \(table) WHERE channel = ?", [.text(id.rawValue)])
    }
  }

  /// Makes sure that messages of the channel have something to belong to.
  func touchChannel(_ id: ChannelID) throws(ChatError) {
    try database.run("INSERT OR IGNORE INTO channels (id) VALUES (?)", [.text(id.rawValue)])
  }

  // MARK: Read marks and unread numbers

  /// Moves the user's own read mark up, never down.
  /// - Returns: false when it stood there or higher.
  public func raiseReadMark(_ position: MessagePosition, of id: ChannelID) throws(ChatError) -> Bool {
    try touchChannel(id)
    if let known = try readMark(of: id), position <= known { return false }
    try database.run(
      "UPDATE channels SET read_major = ?, read_minor = ?, read_tail = ? WHERE id = ?",
      position.values + [.text(id.rawValue)])
    return true
  }

  public func readMark(of id: ChannelID) throws(ChatError) -> MessagePosition? {
    try database.first("SELECT read_major, read_minor, read_tail FROM channels WHERE id = ?", [.text(id.rawValue)]) {
      row throws(ChatError) in MessagePosition(row, from: 0)
    } ?? nil
  }

  /// Notes whether the server has still to be told the read mark.
  public func setMarkDue(_ isDue: Bool, of id: ChannelID) throws(ChatError) {
    try database.run("UPDATE channels SET mark_is_due = ? WHERE id = ?", [SQLValue(isDue), .text(id.rawValue)])
  }

  /// Whether the server has still to be told the read mark.
  public func isMarkDue(of id: ChannelID) throws(ChatError) -> Bool {
    try database.first("SELECT mark_is_due FROM channels WHERE id = ?", [.text(id.rawValue)]) { row throws(ChatError) in
      row.flag(0)
    } ?? false
  }

  /// The unread number that the server tells, or the one counted here while it does not know how far the user has read.
  public func besideDueMark(_ told: UnreadCount, of id: ChannelID) throws(ChatError) -> UnreadCount {
    guard try isMarkDue(of: id), try ranges(of: id).last?.isLive == true, let counted = try countedUnread(of: id)
    else { return told }
    // A server that does not know of the mark counts more; one that another device told of a higher one, less.
    if case .exact(let number) = told { return .exact(min(number, counted)) }
    return .exact(counted)
  }

  public func dueMarks() throws(ChatError) -> [(channel: ChannelID, position: MessagePosition)] {
    try database.all(
      "SELECT id, read_major, read_minor, read_tail FROM channels WHERE mark_is_due = 1 AND read_major IS NOT NULL"
    ) { row throws(ChatError) in (ChannelID(row.text(0)), MessagePosition(row, from: 1) ?? .lowest) }
  }

  public func unread(of id: ChannelID) throws(ChatError) -> UnreadCount {
    try database.first("SELECT unread, unread_is_least FROM channels WHERE id = ?", [.text(id.rawValue)]) {
      row throws(ChatError) in ChannelRow.unread(row.optionalInt(0), isLeast: row.flag(1))
    } ?? .unknown
  }

  /// - Returns: false when it was so already.
  public func setUnread(_ count: UnreadCount, of id: ChannelID) throws(ChatError) -> Bool {
    try touchChannel(id)
    guard try unread(of: id) != count else { return false }
    let stored = count.stored
    try database.run(
      "UPDATE channels SET unread = ?, unread_is_least = ? WHERE id = ?",
      [stored.number, stored.isLeast, .text(id.rawValue)])
    return true
  }

  /// Counts one message more or less, not below zero; an unknown number stays unknown.
  /// - Returns: the new number when it changed.
  public func addUnread(_ difference: Int, of id: ChannelID) throws(ChatError) -> UnreadCount? {
    let next: UnreadCount
    switch try unread(of: id) {
    case .unknown: return nil
    case .exact(let number): next = .exact(max(0, number.addingSaturated(difference)))
    case .atLeast(let number): next = .atLeast(max(0, number.addingSaturated(difference)))
    }
    return try setUnread(next, of: id) ? next : nil
  }

  /// What others wrote after the read mark, counted here; nil when the cache does not hold all of it.
  public func countedUnread(of id: ChannelID) throws(ChatError) -> Int? {
    guard let mark = try readMark(of: id), let range = try ranges(of: id).last, range.contains(mark) else { return nil }
    let count = try database.first(
      """
      SELECT count(*) FROM messages
      WHERE channel = ? AND major IS NOT NULL AND visibility = 'visible' AND thread_parent IS NULL
        AND (major, minor, tail) > (?, ?, ?) AND is_countable = 1 AND sender IS NOT ?
      """, [.text(id.rawValue)] + mark.values + [.text(user.rawValue)]
    ) { row throws(ChatError) in row.int(0) }
    return count.map { Int(clamping: $0) }
  }

  // MARK: Of this device alone

  public func setPinnedHere(_ isPinned: Bool, _ id: ChannelID) throws(ChatError) {
    try touchChannel(id)
    try database.run("UPDATE channels SET is_pinned_here = ? WHERE id = ?", [SQLValue(isPinned), .text(id.rawValue)])
  }

  public func setHiddenHere(_ isHidden: Bool, _ id: ChannelID) throws(ChatError) {
    try touchChannel(id)
    try database.run("UPDATE channels SET is_hidden_here = ? WHERE id = ?", [SQLValue(isHidden), .text(id.rawValue)])
  }

  /// A channel that is hidden on this device stays so until its next message.
  public func showAgain(_ id: ChannelID) throws(ChatError) {
    try database.run(
      "UPDATE channels SET is_hidden_here = 0 WHERE id = ? AND is_hidden_here = 1", [.text(id.rawValue)])
  }

  public func setLocalExtension(_ data: JSONText?, of id: ChannelID) throws(ChatError) {
    try touchChannel(id)
    try database.run("UPDATE channels SET local_extension = ? WHERE id = ?", [SQLValue(data?.text), .text(id.rawValue)])
  }

  public func localExtension(of id: ChannelID) throws(ChatError) -> JSONText? {
    let text = try database.first("SELECT local_extension FROM channels WHERE id = ?", [.text(id.rawValue)]) {
      row throws(ChatError) in row.optionalText(0)
    }
    return (text ?? nil).map { JSONText(unchecked: $0) }
  }

  /// An unsent text kept with the channel; nil removes it.
  public func setDraft(_ text: String?, of id: ChannelID) throws(ChatError) {
    try touchChannel(id)
    try database.run("UPDATE channels SET draft = ? WHERE id = ?", [SQLValue(text), .text(id.rawValue)])
  }

  public func draft(of id: ChannelID) throws(ChatError) -> String? {
    try database.first("SELECT draft FROM channels WHERE id = ?", [.text(id.rawValue)]) { row throws(ChatError) in
      row.optionalText(0)
    } ?? nil
  }

  // MARK: Cursors

  public func cursor(_ name: String, of channel: ChannelID = "") throws(ChatError) -> Cursor? {
    try database.first(
      "SELECT value FROM cursors WHERE name = ? AND channel = ?", [.text(name), .text(channel.rawValue)]
    ) { row throws(ChatError) in Cursor(row.text(0)) }
  }

  public func setCursor(_ cursor: Cursor?, _ name: String, of channel: ChannelID = "") throws(ChatError) {
    if let cursor {
      try database.run(
        "INSERT OR REPLACE INTO cursors VALUES (?, ?, ?)",
        [.text(name), .text(channel.rawValue), .text(cursor.rawValue)])
    } else {
      try database.run("DELETE FROM cursors WHERE name = ? AND channel = ?", [.text(name), .text(channel.rawValue)])
    }
  }
}

extension Int {
  fileprivate func addingSaturated(_ other: Int) -> Int {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? (other < 0 ? .min : .max) : sum
  }
}
