import UnifiedChat

/// Where a message stands of which the server knows nothing: behind everything up to a position, in the order of time
/// among those that stand there too.
///
/// It orders, and is no position: nothing can be asked of a server with it, and it is in no range and no mark.
public struct LocalPlace: Sendable, Hashable, Comparable {
  /// That of a message of the server, or what was chosen before the first known one. Not to leave the cache.
  fileprivate let position: MessagePosition
  /// The row of the message: its time, and a counter. The lowest is the message itself that has the position.
  fileprivate let row: Int64

  fileprivate init(position: MessagePosition, row: Int64) {
    self.position = position
    self.row = row
  }

  /// The message at `position` itself.
  public init(of position: MessagePosition) { self.init(position: position, row: .min) }
  /// The end of all that stands behind `position` and before the next one.
  public init(behind position: MessagePosition) { self.init(position: position, row: .max) }

  /// Behind everything.
  public static let last = LocalPlace(behind: .highest)

  /// Whether it is behind the message at `other`.
  public func isBehind(_ other: MessagePosition) -> Bool { other <= position }

  public static func < (left: Self, right: Self) -> Bool {
    left.position == right.position ? left.row < right.row : left.position < right.position
  }

  var values: [SQLValue] { position.values + [.int(row)] }
}

extension LocalPlace: LosslessStringConvertible {
  /// `row/major/minor/tail`
  public var description: String { "\(row)/\(position)" }

  public init?(_ description: String) {
    let parts = description.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let row = Int64(parts[0]), let position = MessagePosition(String(parts[1])) else { return nil }
    self.init(position: position, row: row)
  }
}

/// A message with its place in a list, whoever has it.
public struct LocalMessage: Sendable, Hashable {
  public var message: Message
  /// nil: the message has a position.
  public var place: LocalPlace?

  /// Puts messages of this device alone among those of the server; both are ascending.
  public static func merge(_ messages: [Message], _ local: [LocalMessage]) -> [LocalMessage] {
    guard !local.isEmpty else { return messages.map { LocalMessage(message: $0) } }
    var merged: [LocalMessage] = []
    var rest = local[...]
    for message in messages {
      if let position = message.position {
        while let place = rest.first?.place, !place.isBehind(position) { merged.append(rest.removeFirst()) }
      }
      merged.append(LocalMessage(message: message))
    }
    return merged + rest
  }
}

// Messages that the user or the app put into a channel on this device. They are rows without id and position, which is
// what everything that speaks of ranges, unread numbers and the server asks for; their place is in columns of its own.
extension CacheSession {
  /// Stores a message of this device alone, behind the newest known message, or behind the newest one that is not newer
  /// than `time`; where none is known, before all that are. It stays behind that one: whatever is found later before it
  /// comes before, and what comes later after.
  /// - Returns: the message, as it is kept.
  public func insertLocal(_ message: Message, at time: Timestamp? = nil) throws(ChatError) -> Message {
    try touchChannel(message.channel)
    var message = try withoutRecalledQuote(message)
    message.id = nil
    message.position = nil
    message.clientMessageID = nil
    message.threadParent = nil
    message.localOrder = nil
    message.state = .sent
    let place = try localPlace(at: time, in: message.channel)
    let stored = try insert(message)
    guard let localID = stored.localID, let row = try row(of: localID) else { return stored }
    try database.run(
      "UPDATE messages SET after_major = ?, after_minor = ?, after_tail = ? WHERE row = ?",
      place.values + [.int(row.row)])
    return row.message
  }

  private func localPlace(at time: Timestamp?, in channel: ChannelID) throws(ChatError) -> MessagePosition {
    let start = try clearedPosition(of: channel) ?? .lowest
    guard let time else { return try newestPosition(in: channel) ?? start }
    let known = """
      SELECT major, minor, tail FROM messages
      WHERE channel = ? AND major IS NOT NULL AND visibility = 'visible' AND thread_parent IS NULL
      """
    let before = try database.first(
      known + " AND created_at <= ? ORDER BY major DESC, minor DESC, tail DESC LIMIT 1",
      [.text(channel.rawValue), .int(time.milliseconds)]
    ) { row throws(ChatError) in MessagePosition(row, from: 0) } ?? nil
    if let before { return before }
    let first = try database.first(known + " ORDER BY major, minor, tail LIMIT 1", [.text(channel.rawValue)]) {
      row throws(ChatError) in MessagePosition(row, from: 0)
    } ?? nil
    let isWhole = try ranges(of: channel).first?.isAtStart ?? false
    guard let first, !isWhole else { return start }
    // Directly before the first known one: behind whatever older is read later.
    return max(start, MessagePosition(major: first.major, minor: first.minor == .min ? .min : first.minor - 1, tail: ""))
  }

  /// Messages of this device alone that stand between two places, both left out; ascending. Those nearest to `high`
  /// when `direction` is older, else those nearest to `low`, at most `limit` of them.
  public func localMessages(
    in channel: ChannelID, from low: LocalPlace, to high: LocalPlace, _ direction: HistoryQuery.Direction = .newer,
    limit: Int = .max
  ) throws(ChatError) -> [LocalMessage] {
    let found = try database.all(
      Self.localQuery(direction),
      [.text(channel.rawValue)] + low.values + high.values + [.int(Int64(clamping: limit))]
    ) { row throws(ChatError) in
      let found = try MessageRow(row)
      return LocalMessage(
        message: found.message,
        place: LocalPlace(position: MessagePosition(row, from: MessageRow.columnCount) ?? .lowest, row: found.row))
    }
    return direction == .older ? found.reversed() : found
  }

  private static func localQuery(_ direction: HistoryQuery.Direction) -> String {
    let order = direction == .older ? " DESC" : ""
    return """
      SELECT \(MessageRow.columns), after_major, after_minor, after_tail FROM messages
      WHERE channel = ? AND after_major IS NOT NULL
        AND (after_major, after_minor, after_tail, row) > (?, ?, ?, ?)
        AND (after_major, after_minor, after_tail, row) < (?, ?, ?, ?)
      ORDER BY after_major\(order), after_minor\(order), after_tail\(order), row\(order) LIMIT ?
      """
  }

  /// Whether a message of this device alone stands before or behind a place.
  public func hasLocal(
    _ direction: HistoryQuery.Direction, than place: LocalPlace, in channel: ChannelID
  ) throws(ChatError) -> Bool {
    let (low, high) = direction == .older ? (LocalPlace(of: .lowest), place) : (place, .last)
    return try !localMessages(in: channel, from: low, to: high, direction, limit: 1).isEmpty
  }

  /// Changes what a message of this device alone says; its place, its time and what it answers stay.
  /// - Returns: the message as it is now; nil when there is none.
  public func editLocal(_ localID: LocalID, to draft: MessageDraft, at time: Timestamp) throws(ChatError) -> Message? {
    guard let known = try row(of: localID), known.message.isLocalOnly else { return nil }
    var message = known.message
    message.content = draft.content
    message.mentions = draft.mentions
    message.replyTo = draft.replyTo ?? message.replyTo
    message.customType = draft.customType
    message.customData = draft.customData
    message.editedAt = time
    message = try withoutRecalledQuote(message)
    try rewrite(known.row, as: message)
    database.hasErased = true
    return message
  }

  /// Removes a message of this device alone.
  /// - Returns: the message as it was; nil when there is none.
  public func removeLocal(_ localID: LocalID) throws(ChatError) -> Message? {
    guard let known = try row(of: localID), known.message.isLocalOnly else { return nil }
    try delete(known)
    database.hasErased = true
    return known.message
  }

  /// Removes the messages of this device alone that stand behind messages up to `position`.
  /// - Returns: how many there were.
  @discardableResult
  public func clearLocal(_ channel: ChannelID, upTo position: MessagePosition) throws(ChatError) -> Int {
    let gone = try localMessages(in: channel, from: LocalPlace(of: .lowest), to: LocalPlace(behind: position))
    for local in gone { if let localID = local.message.localID { _ = try removeLocal(localID) } }
    return gone.count
  }

  /// How SQLite finds messages of this device alone; a test keeps it an index walk.
  func planOfLocal(_ direction: HistoryQuery.Direction) throws(ChatError) -> [String] {
    try database.all(
      "EXPLAIN QUERY PLAN " + Self.localQuery(direction),
      [.text("c")] + LocalPlace(of: .lowest).values + LocalPlace.last.values + [.int(1)]
    ) { row throws(ChatError) in row.text(3) }
  }
}
