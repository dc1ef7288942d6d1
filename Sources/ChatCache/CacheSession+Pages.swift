import UnifiedChat

extension CacheSession {
  /// Visible messages of the main list inside `range`, ascending: the `limit` newest ones below `position`, or the
  /// oldest ones above it. Walks the page index; the cost does not grow with the channel.
  public func messages(
    in channel: ChannelID, _ direction: HistoryQuery.Direction, of position: MessagePosition, inclusive: Bool = false,
    within range: CachedRange, limit: Int
  ) throws(ChatError) -> [Message] {
    guard limit > 0 else { return [] }
    // The nearer bound is the position, or the end of the range when that is nearer; a range's end is included.
    let bound: MessagePosition
    let includesBound: Bool
    switch direction {
    case .older:
      bound = min(position, range.high)
      includesBound = inclusive || range.high < position
    case .newer:
      bound = max(position, range.low)
      includesBound = inclusive || position < range.low
    }
    let farther = direction == .older ? range.low : range.high
    let found = try database.all(
      Self.pageQuery(direction, includesBound: includesBound),
      [.text(channel.rawValue)] + bound.values + farther.values + [.int(Int64(clamping: limit))]
    ) { row throws(ChatError) in try MessageRow(row).message }
    return direction == .older ? found.reversed() : found
  }

  private static func pageQuery(_ direction: HistoryQuery.Direction, includesBound: Bool) -> String {
    let near = (direction == .older ? "<" : ">") + (includesBound ? "=" : "")
    let far = direction == .older ? ">=" : "<="
    let order = direction == .older ? "major DESC, minor DESC, tail DESC" : "major, minor, tail"
    return """
      SELECT \(MessageRow.columns) FROM messages
      WHERE channel = ? AND major IS NOT NULL AND visibility = 'visible' AND thread_parent IS NULL
        AND (major, minor, tail) \(near) (?, ?, ?) AND (major, minor, tail) \(far) (?, ?, ?)
      ORDER BY \(order) LIMIT ?
      """
  }

  /// One committed message, hidden ones left out.
  public func message(_ id: MessageID, in channel: ChannelID) throws(ChatError) -> Message? {
    let found = try row(of: id, in: channel)
    return found?.visibility == .visible ? found?.message : nil
  }

  /// Where a committed message stands, also one that is out of sight.
  public func position(of id: MessageID, in channel: ChannelID) throws(ChatError) -> MessagePosition? {
    try row(of: id, in: channel)?.message.position
  }

  /// A message that this device sent, in whatever state.
  public func message(_ localID: LocalID) throws(ChatError) -> Message? { try row(of: localID)?.message }

  /// Pending, unknown and failed messages of this device in the order of their making.
  public func waitingMessages(in channel: ChannelID) throws(ChatError) -> [Message] {
    try database.all(
      """
      SELECT \(MessageRow.columns) FROM messages
      WHERE channel = ? AND id IS NULL AND after_major IS NULL ORDER BY local_order
      """,
      [.text(channel.rawValue)]
    ) { row throws(ChatError) in try MessageRow(row).message }
  }

  /// The newest visible message of the main list, of those that the server has and those of this device alone.
  public func lastMessage(in channel: ChannelID) throws(ChatError) -> Message? {
    let newest = try messages(
      in: channel, .older, of: .highest, inclusive: true,
      within: CachedRange(low: .lowest, high: .highest), limit: 1
    ).first
    let place = LocalPlace(of: newest?.position ?? .lowest)
    return try localMessages(in: channel, from: place, to: .last, .older, limit: 1).first?.message ?? newest
  }

  /// Replies under `parent` that are known, ascending.
  public func replies(under parent: MessageID, in channel: ChannelID) throws(ChatError) -> [Message] {
    try database.all(
      """
      SELECT \(MessageRow.columns) FROM messages
      WHERE channel = ? AND thread_parent = ? AND major IS NOT NULL AND visibility = 'visible'
      ORDER BY major, minor, tail
      """, [.text(channel.rawValue), .text(parent.rawValue)]
    ) { row throws(ChatError) in try MessageRow(row).message }
  }

  /// Known messages of the main list in a range, in sight or not.
  public func count(in channel: ChannelID) throws(ChatError) -> Int {
    let count = try database.first(
      "SELECT count(*) FROM messages WHERE channel = ? AND id IS NOT NULL", [.text(channel.rawValue)]
    ) { row throws(ChatError) in row.int(0) }
    return Int(count ?? 0)
  }

  // MARK: What this user did to messages

  /// Keeps a message out of sight of this user, on this device.
  /// - Returns: false when it was hidden already.
  public func hide(_ id: MessageID, in channel: ChannelID) throws(ChatError) -> Bool {
    let isNew = try database.run(
      "INSERT OR IGNORE INTO hidden VALUES (?, ?)", [.text(channel.rawValue), .text(id.rawValue)]) > 0
    if let known = try row(of: id, in: channel), known.visibility == .visible {
      try unindex(known.row)
      try database.run("UPDATE messages SET visibility = 'hidden' WHERE row = ?", [.int(known.row)])
      database.hasErased = true
    }
    return isNew
  }

  func isHidden(_ id: MessageID, in channel: ChannelID) throws(ChatError) -> Bool {
    try database.first(
      "SELECT 1 FROM hidden WHERE channel = ? AND id = ?", [.text(channel.rawValue), .text(id.rawValue)]
    ) { _ throws(ChatError) in true } ?? false
  }

  /// Removes everything up to `position`, with what stands behind it and is of this device alone; it does not come back.
  /// - Returns: false when as much was cleared before.
  public func clear(_ channel: ChannelID, upTo position: MessagePosition) throws(ChatError) -> Bool {
    try touchChannel(channel)
    if let cleared = try clearedPosition(of: channel), position <= cleared { return false }
    let gone = try database.all(
      """
      SELECT row FROM messages WHERE channel = ? AND major IS NOT NULL AND (major, minor, tail) <= (?, ?, ?)
      """, [.text(channel.rawValue)] + position.values
    ) { row throws(ChatError) in row.int(0) }
    for row in gone {
      try unindex(row)
      try database.run("DELETE FROM messages WHERE row = ?", [.int(row)])
    }
    if !gone.isEmpty { database.hasErased = true }
    try clearLocal(channel, upTo: position)
    try database.run(
      "UPDATE channels SET cleared_major = ?, cleared_minor = ?, cleared_tail = ? WHERE id = ?",
      position.values + [.text(channel.rawValue)])
    // Nothing older exists for this user.
    try cover(CachedRange(low: .lowest, high: position), in: channel)
    return true
  }

  func clearedPosition(of channel: ChannelID) throws(ChatError) -> MessagePosition? {
    try database.first(
      "SELECT cleared_major, cleared_minor, cleared_tail FROM channels WHERE id = ?", [.text(channel.rawValue)]
    ) { row throws(ChatError) in MessagePosition(row, from: 0) } ?? nil
  }

  /// Data of this device on a message, committed or not; nil removes it.
  /// - Returns: the message as it is now; nil when it is not known.
  public func setLocalExtension(_ data: JSONText?, of message: Message) throws(ChatError) -> Message? {
    var found: MessageRow?
    if let id = message.id { found = try row(of: id, in: message.channel) }
    if found == nil, let localID = message.localID { found = try row(of: localID) }
    guard var found else { return nil }
    found.message.localExtension = data
    try database.run(
      "UPDATE messages SET local_extension = ? WHERE row = ?", [SQLValue(data?.text), .int(found.row)])
    return found.message
  }

  /// Replaces the reactions of a message.
  /// - Returns: false when nothing changed or the message is not known.
  public func setReactions(_ reactions: [Reaction], of id: MessageID, in channel: ChannelID) throws(ChatError) -> Bool {
    guard var known = try row(of: id, in: channel), known.message.reactions != reactions, !known.message.isRecalled
    else { return false }
    known.message.reactions = reactions
    try rewrite(known.row, as: known.message)
    return true
  }
}

extension CacheSession {
  /// How SQLite walks a page; a test keeps it an index walk.
  func plan(of direction: HistoryQuery.Direction) throws(ChatError) -> [String] {
    try database.all(
      "EXPLAIN QUERY PLAN " + Self.pageQuery(direction, includesBound: false),
      [.text("c")] + MessagePosition.lowest.values + MessagePosition.highest.values + [.int(1)]
    ) { row throws(ChatError) in row.text(3) }
  }
}
