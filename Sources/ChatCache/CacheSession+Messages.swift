import ChatInterchange
import ChatJSON
import UnifiedChat

/// What a message that came in meant for the cache.
public enum MessageChange: Sendable, Hashable {
  /// Known already, older than what is known, or cleared by the user.
  case unchanged
  /// `replies`: of the tombstone of something that was never here, what quoted it.
  case inserted(Message, replies: [Message] = [])
  case updated(Message)
  /// `wasCountable`: before, it counted as unread for those who had not read it. `replies`: what quoted it, and has its
  /// words no more.
  case recalled(Message, wasCountable: Bool, replies: [Message])
  /// A message of this device was pending and is committed now.
  case sent(Message)
  /// A second copy of one send: kept out of sight, this one stays.
  case duplicate(of: MessageID)
}

/// How much a copy of a message knows.
public enum MessageOrigin: Sendable, Hashable {
  /// As it was when it was made: a push, an acknowledgement.
  case event
  /// Read from the server just now: reactions are those of now.
  case read
}

extension CacheSession {
  /// Brings a committed message together with what is known. Any order and any number of calls with the same
  /// messages ends in the same rows: a recall beats everything, a later edit beats an earlier one, and of two copies
  /// of one send the lower position stays.
  ///
  /// A message without id or position changes nothing.
  public func merge(_ message: Message, from origin: MessageOrigin = .event) throws(ChatError) -> MessageChange {
    guard let id = message.id, let position = message.position else { return .unchanged }
    try touchChannel(message.channel)
    if let cleared = try clearedPosition(of: message.channel), position <= cleared { return .unchanged }
    let message = try withoutRecalledQuote(message)
    let known = try row(of: id, in: message.channel)
    if let twin = try twin(of: message), twin.row != known?.row {
      return try join(message, twin: twin, known: known)
    }
    guard let known else {
      let isHidden = try self.isHidden(id, in: message.channel)
      _ = try write(message, visibility: isHidden ? .hidden : .visible)
      // The tombstone of something that was never here itself, but in quotes.
      let replies = message.isRecalled ? try eraseQuotes(of: message) : []
      guard !isHidden else { return .unchanged }
      return .inserted(message, replies: replies)
    }
    return try update(known, with: message, from: origin)
  }

  /// The acknowledgement of a send of this device: the row of `localID` becomes `message`.
  public func confirm(_ localID: LocalID, as message: Message) throws(ChatError) -> MessageChange {
    let message = try withoutRecalledQuote(message)
    guard let id = message.id, message.position != nil, let pending = try row(of: localID) else {
      return try merge(message)
    }
    if pending.message.id == id { return try update(pending, with: message, from: .event) }
    guard pending.message.id == nil else { return try merge(message) }
    return try promote(pending, to: message, replacing: try row(of: id, in: message.channel))
  }

  /// The row of this device's own send that `message` would settle.
  func pendingTwin(of message: Message) throws(ChatError) -> MessageRow? {
    guard let twin = try twin(of: message), twin.message.id == nil else { return nil }
    return twin
  }

  /// Another row of the same send: same sender and client id in the same channel.
  private func twin(of message: Message) throws(ChatError) -> MessageRow? {
    guard let sender = message.sender, let client = message.clientMessageID else { return nil }
    // A copy that is kept as a duplicate is no twin: the visible one is.
    return try database.first(
      """
      SELECT \(MessageRow.columns) FROM messages
      WHERE channel = ? AND sender = ? AND client_id = ? AND visibility <> 'duplicate' AND id IS NOT ?
      ORDER BY id IS NULL DESC, major, minor, tail LIMIT 1
      """,
      [
        .text(message.channel.rawValue), .text(sender.rawValue), .text(client.rawValue),
        SQLValue(message.id?.rawValue),
      ]
    ) { row throws(ChatError) in try MessageRow(row) }
  }

  private func join(_ message: Message, twin: MessageRow, known: MessageRow?) throws(ChatError) -> MessageChange {
    guard let twinID = twin.message.id, let twinPosition = twin.message.position else {
      return try promote(twin, to: message, replacing: known)
    }
    if let known, known.visibility == .duplicate {
      // Out of sight, and yet its words are to go.
      return message.isRecalled ? try update(known, with: message, from: .event) : .unchanged
    }
    guard let id = message.id, let position = message.position else { return .unchanged }
    if twinPosition <= position {
      try keepAsDuplicate(message, known: known, of: twinID)
      return .duplicate(of: twinID)
    }
    // The later one was seen first: now it gives way.
    let change: MessageChange
    if let known { change = try update(known, with: message, from: .event) } else { change = .inserted(try insert(message)) }
    try keepAsDuplicate(twin.message, known: twin, of: id)
    return change
  }

  private func keepAsDuplicate(_ message: Message, known: MessageRow?, of id: MessageID) throws(ChatError) {
    let row: Int64
    if let known { row = known.row } else { row = try write(message, visibility: .duplicate) }
    try unindex(row)
    try database.run(
      "UPDATE messages SET visibility = 'duplicate', duplicate_of = ?, local_id = NULL WHERE row = ?",
      [.text(id.rawValue), .int(row)])
  }

  /// Other copies of one send, which the service stored beside the one that is shown.
  public func copies(of message: Message) throws(ChatError) -> [Message] {
    guard let id = message.id, let known = try row(of: id, in: message.channel)?.message, let sender = known.sender,
      let client = known.clientMessageID
    else { return [] }
    return try database.all(
      """
      SELECT \(MessageRow.columns) FROM messages
      WHERE channel = ? AND sender = ? AND client_id = ? AND visibility = 'duplicate' AND duplicate_of = ?
      """,
      [.text(message.channel.rawValue), .text(sender.rawValue), .text(client.rawValue), .text(id.rawValue)]
    ) { row throws(ChatError) in try MessageRow(row).message }
  }

  private func promote(
    _ pending: MessageRow, to committed: Message, replacing known: MessageRow?
  ) throws(ChatError) -> MessageChange {
    var message = known.map { Self.newer($0.message, committed) } ?? committed
    message.localID = pending.message.localID
    message.clientMessageID = message.clientMessageID ?? pending.message.clientMessageID
    message.localExtension = pending.message.localExtension ?? known?.message.localExtension
    message.state = .sent
    message.localOrder = nil
    // The echo came as a message of its own before the acknowledgement: one row remains.
    if let known { try delete(known) }
    try rewrite(pending.row, as: message)
    if let localID = message.localID { try removeFromOutbox(localID) }
    return .sent(message)
  }

  private static func newer(_ known: Message, _ other: Message) -> Message {
    if known.isRecalled { return known }
    if other.isRecalled { return other }
    return (other.editedAt?.milliseconds ?? .min) > (known.editedAt?.milliseconds ?? .min) ? other : known
  }

  private func update(
    _ known: MessageRow, with message: Message, from origin: MessageOrigin
  ) throws(ChatError) -> MessageChange {
    var next = known.message
    let isEdit = (message.editedAt?.milliseconds ?? .min) > (next.editedAt?.milliseconds ?? .min)
    if known.message.isRecalled {
      return .unchanged
    } else if message.isRecalled {
      next = Self.tombstone(of: known.message, as: message)
    } else if isEdit {
      next = message
      next.localID = known.message.localID
      next.localExtension = known.message.localExtension
      next.state = known.message.state
      // A place in the channel is kept by an edit.
      next.position = known.message.position
      next.createdAt = known.message.createdAt
    } else if origin == .read {
      next.reactions = message.reactions
    }
    next.clientMessageID = known.message.clientMessageID ?? message.clientMessageID
    next.sender = next.sender ?? known.message.sender
    guard next != known.message else { return .unchanged }
    try rewrite(known.row, as: next)
    if message.isRecalled { database.hasErased = true }
    let replies = message.isRecalled ? try eraseQuotes(of: next) : []
    guard known.visibility == .visible else { return .unchanged }
    return message.isRecalled
      ? .recalled(next, wasCountable: known.message.isCountable, replies: replies) : .updated(next)
  }

  /// What remains of a recalled message: who, where and when, and nothing of what it said.
  private static func tombstone(of known: Message, as recalled: Message) -> Message {
    Message(
      channel: known.channel, id: known.id, localID: known.localID, clientMessageID: known.clientMessageID,
      sender: known.sender ?? recalled.sender, senderName: known.senderName, position: known.position,
      createdAt: known.createdAt, content: recalled.content, threadParent: known.threadParent)
  }

  // MARK: Rows

  func row(of id: MessageID, in channel: ChannelID) throws(ChatError) -> MessageRow? {
    try database.first(
      "SELECT \(MessageRow.columns) FROM messages WHERE channel = ? AND id = ?",
      [.text(channel.rawValue), .text(id.rawValue)]
    ) { row throws(ChatError) in try MessageRow(row) }
  }

  func row(of localID: LocalID) throws(ChatError) -> MessageRow? {
    try database.first(
      "SELECT \(MessageRow.columns) FROM messages WHERE local_id = ?", [.text(localID.rawValue)]
    ) { row throws(ChatError) in try MessageRow(row) }
  }

  /// Inserts a message that is not known yet.
  func insert(_ message: Message) throws(ChatError) -> Message {
    _ = try write(message, visibility: .visible)
    return message
  }

  private func write(_ message: Message, visibility: MessageRow.Visibility) throws(ChatError) -> Int64 {
    let row = try freeRow(at: message.createdAt)
    try database.run(
      """
      INSERT INTO messages (channel, id, local_id, client_id, sender, major, minor, tail, local_order, created_at,
        edited_at, state, is_recalled, is_countable, thread_parent, error, local_extension, payload, reply_to, visibility,
        row)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """, Self.values(of: message) + [.text(visibility.rawValue), .int(row)])
    if visibility == .visible { try index(message, row: row) }
    return row
  }

  /// Replaces everything of a row but its visibility; one that is out of sight is not found by a search either.
  func rewrite(_ row: Int64, as message: Message) throws(ChatError) {
    let isInSight = try unindex(row)
    // The server's time replaces the local one: the message takes its place in the order of time.
    let next = MessageRow.holds(row, message.createdAt) ? row : try freeRow(at: message.createdAt)
    try database.run(
      """
      UPDATE messages SET channel = ?, id = ?, local_id = ?, client_id = ?, sender = ?, major = ?, minor = ?, tail = ?,
        local_order = ?, created_at = ?, edited_at = ?, state = ?, is_recalled = ?, is_countable = ?,
        thread_parent = ?, error = ?, local_extension = ?, payload = ?, reply_to = ?, row = ?
      WHERE row = ?
      """, Self.values(of: message) + [.int(next), .int(row)])
    if isInSight { try index(message, row: next) }
  }

  /// A row that no message has, in the order of time.
  private func freeRow(at time: Timestamp) throws(ChatError) -> Int64 {
    var rows = MessageRow.rows(at: time)
    while true {
      let last = try database.first(
        "SELECT max(row) FROM messages WHERE row BETWEEN ? AND ?", [.int(rows.lowerBound), .int(rows.upperBound)]
      ) { row throws(ChatError) in row.optionalInt(0) } ?? nil
      guard let last else { return rows.lowerBound }
      if last < rows.upperBound { return last + 1 }
      // A million in one millisecond: the next one takes the rest.
      rows = rows.upperBound + 1...rows.upperBound + MessageRow.rowsPerMillisecond
    }
  }

  private static func values(of message: Message) -> [SQLValue] {
    [
      .text(message.channel.rawValue), SQLValue(message.id?.rawValue), SQLValue(message.localID?.rawValue),
      SQLValue(message.clientMessageID?.rawValue), SQLValue(message.sender?.rawValue),
    ] + MessagePosition.values(message.position) + [
      SQLValue(message.localOrder), .int(message.createdAt.milliseconds), SQLValue(message.editedAt?.milliseconds),
      .text(message.state.stored), SQLValue(message.isRecalled), SQLValue(message.isCountable),
      SQLValue(message.threadParent?.rawValue), SQLValue(message.state.storedError),
      SQLValue(message.localExtension?.text), .text(message.json().text()), SQLValue(message.replyTo?.id.rawValue),
    ]
  }

  func delete(_ row: MessageRow) throws(ChatError) {
    try unindex(row.row)
    try database.run("DELETE FROM messages WHERE row = ?", [.int(row.row)])
  }
}
