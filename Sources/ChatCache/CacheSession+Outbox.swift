import ChatInterchange
import ChatJSON
import UnifiedChat

/// A message on its way out.
public struct OutboxEntry: Sendable, Hashable {
  public enum State: String, Sendable, Hashable, CaseIterable {
    /// To be sent when its turn comes.
    case queued
    /// A try was begun and its outcome is not known: look before sending again.
    case flying
    /// The outcome cannot be learnt and a second try might double it: only the user decides.
    case parked
    /// Refused for good; kept for a resend.
    case failed
  }

  public var localID: LocalID
  public var channel: ChannelID
  public var clientMessageID: ClientMessageID
  public var draft: MessageDraft
  /// Local time of its making.
  public var createdAt: Timestamp
  /// Tries that were begun.
  public var attempts: Int
  public var state: State
  /// The newest position known before the first try.
  public var seen: MessagePosition?

  public init(
    localID: LocalID, channel: ChannelID, clientMessageID: ClientMessageID, draft: MessageDraft, createdAt: Timestamp,
    attempts: Int = 0, state: State = .queued, seen: MessagePosition? = nil
  ) {
    self.localID = localID
    self.channel = channel
    self.clientMessageID = clientMessageID
    self.draft = draft
    self.createdAt = createdAt
    self.attempts = attempts
    self.state = state
    self.seen = seen
  }
}

/// An outbox entry with its place in the queue.
struct OutboxRow {
  var turn: Int64
  var entry: OutboxEntry

  static let columns = """
    turn, local_id, channel, client_id, created_at, attempts, state, seen_major, seen_minor, seen_tail, payload,
    source_path, source_bytes
    """

  init(_ row: Row) throws(ChatError) {
    turn = row.int(0)
    let message: Message
    do {
      message = try Message(json: try JSONValue(parsing: row.bytes(10)))
    } catch {
      throw ChatError(.storage(.corrupt), operation: .cache, detail: "outbox row \(row.int(0)): \(error)")
    }
    var draft = MessageDraft(
      message.content, mentions: message.mentions, replyTo: message.replyTo, threadParent: message.threadParent,
      customType: message.customType, customData: message.customData)
    if !row.isNull(11) { draft.content.attachment?.source = .path(row.text(11)) }
    if !row.isNull(12) { draft.content.attachment?.source = .bytes(row.bytes(12)) }
    entry = OutboxEntry(
      localID: LocalID(row.text(1)), channel: message.channel, clientMessageID: ClientMessageID(row.text(3)),
      draft: draft, createdAt: Timestamp(milliseconds: row.int(4)), attempts: Int(clamping: row.int(5)),
      state: OutboxEntry.State(rawValue: row.text(6)) ?? .flying, seen: MessagePosition(row, from: 7))
  }
}

extension CacheSession {
  /// Stores an outgoing message and its pending row in one go, and returns the pending message.
  ///
  /// The same local id again, or the same client id while it is on its way or sent, changes nothing and returns
  /// what is there: pressing "send" twice is one message.
  public func enqueue(_ entry: OutboxEntry) throws(ChatError) -> Message {
    try touchChannel(entry.channel)
    if let known = try known(entry) { return known }
    var entry = entry
    entry.seen = try newestPosition(in: entry.channel)
    try insertOutbox(entry)
    var message = Message(
      channel: entry.channel, localID: entry.localID, clientMessageID: entry.clientMessageID, sender: user,
      localOrder: database.lastInsertedRow, createdAt: entry.createdAt, content: entry.draft.content,
      mentions: entry.draft.mentions, replyTo: entry.draft.replyTo, threadParent: entry.draft.threadParent,
      customType: entry.draft.customType, customData: entry.draft.customData, state: .pending)
    _ = try insert(message)
    message.content.attachment?.source = entry.draft.content.attachment?.source
    return message
  }

  private func known(_ entry: OutboxEntry) throws(ChatError) -> Message? {
    if let message = try message(entry.localID) { return message }
    return try database.first(
      "SELECT \(MessageRow.columns) FROM messages WHERE channel = ? AND sender = ? AND client_id = ?",
      [.text(entry.channel.rawValue), .text(user.rawValue), .text(entry.clientMessageID.rawValue)]
    ) { row throws(ChatError) in try MessageRow(row).message }
  }

  private func insertOutbox(_ entry: OutboxEntry) throws(ChatError) {
    let (path, bytes) = Self.stored(entry.draft.content.attachment?.source)
    try database.run(
      """
      INSERT INTO outbox (local_id, channel, client_id, created_at, attempts, state, seen_major, seen_minor, seen_tail,
        payload, source_path, source_bytes)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        .text(entry.localID.rawValue), .text(entry.channel.rawValue), .text(entry.clientMessageID.rawValue),
        .int(entry.createdAt.milliseconds), .int(Int64(entry.attempts)), .text(entry.state.rawValue),
      ] + MessagePosition.values(entry.seen) + [
        .text(payload(of: entry)), path, bytes,
      ])
  }

  private static func stored(_ source: AttachmentSource?) -> (path: SQLValue, bytes: SQLValue) {
    switch source {
    case .path(let value): (.text(value), .null)
    case .bytes(let value): (.null, .blob(value))
    case nil: (.null, .null)
    }
  }

  private func payload(of entry: OutboxEntry) -> String {
    Message(
      channel: entry.channel, sender: user, createdAt: entry.createdAt, content: entry.draft.content,
      mentions: entry.draft.mentions, replyTo: entry.draft.replyTo, threadParent: entry.draft.threadParent,
      customType: entry.draft.customType, customData: entry.draft.customData
    ).json().text()
  }

  /// An entry that was saved from a damaged file.
  func restore(_ row: OutboxRow) throws(ChatError) {
    var entry = row.entry
    // Positions of the old file mean nothing while the new one is empty, but those of the server stay true.
    let pending = try enqueue(entry)
    guard entry.state != .queued || entry.attempts > 0 else { return }
    entry.localID = pending.localID ?? entry.localID
    try setOutbox(entry.localID, state: entry.state, attempts: entry.attempts, seen: entry.seen)
    if entry.state == .failed {
      try setState(
        .failed(ChatError(.storage(.corrupt), operation: .send, detail: "its error was in a damaged file")),
        of: entry.localID)
    }
  }

  public func outboxEntry(_ localID: LocalID) throws(ChatError) -> OutboxEntry? {
    try database.first("SELECT \(OutboxRow.columns) FROM outbox WHERE local_id = ?", [.text(localID.rawValue)]) {
      row throws(ChatError) in try OutboxRow(row).entry
    }
  }

  /// Whose turn it is in a channel.
  public func nextInOutbox(of channel: ChannelID) throws(ChatError) -> OutboxEntry? {
    try database.first(
      """
      SELECT \(OutboxRow.columns) FROM outbox WHERE channel = ? AND state IN ('queued', 'flying') ORDER BY turn LIMIT 1
      """, [.text(channel.rawValue)]
    ) { row throws(ChatError) in try OutboxRow(row).entry }
  }

  /// Channels with messages to be sent.
  public func channelsWithOutbox() throws(ChatError) -> [ChannelID] {
    try database.all("SELECT channel FROM outbox WHERE state IN ('queued', 'flying') GROUP BY channel ORDER BY min(turn)") {
      row throws(ChatError) in ChannelID(row.text(0))
    }
  }

  /// A try begins: counted, and marked as one that may reach the server.
  public func beginTry(_ localID: LocalID) throws(ChatError) {
    try database.run(
      "UPDATE outbox SET attempts = attempts + 1, state = 'flying' WHERE local_id = ?", [.text(localID.rawValue)])
  }

  /// The last try certainly did not reach the server.
  public func requeue(_ localID: LocalID) throws(ChatError) {
    try database.run("UPDATE outbox SET state = 'queued' WHERE local_id = ?", [.text(localID.rawValue)])
    try setState(.pending, of: localID)
  }

  /// The outcome of the last try is not known.
  public func markUnknown(_ localID: LocalID, parked: Bool) throws(ChatError) -> Message? {
    try database.run(
      "UPDATE outbox SET state = ? WHERE local_id = ?", [.text(parked ? "parked" : "flying"), .text(localID.rawValue)])
    return try setState(.unknown, of: localID)
  }

  /// The server refused for good.
  public func fail(_ localID: LocalID, with error: ChatError) throws(ChatError) -> Message? {
    try database.run("UPDATE outbox SET state = 'failed' WHERE local_id = ?", [.text(localID.rawValue)])
    return try setState(.failed(error), of: localID)
  }

  /// Puts a failed or parked message at the end of its queue again, with the same ids.
  /// - Returns: the pending message; nil when it is not waiting for a resend.
  public func resend(_ localID: LocalID) throws(ChatError) -> Message? {
    guard var entry = try outboxEntry(localID), entry.state == .failed || entry.state == .parked,
      var message = try message(localID)
    else { return nil }
    // A parked one may have been committed, so that it is looked for; a refused one was not.
    entry.state = entry.state == .parked ? .flying : .queued
    try removeFromOutbox(localID)
    try insertOutbox(entry)
    message.localOrder = database.lastInsertedRow
    message.state = .pending
    return try store(message)
  }

  /// Removes a message that has not left yet.
  /// - Returns: the message as it was; nil when a try was begun or it is not in the outbox.
  public func cancel(_ localID: LocalID) throws(ChatError) -> Message? {
    guard let entry = try outboxEntry(localID), entry.state == .queued || entry.state == .failed,
      let row = try row(of: localID), row.message.id == nil
    else { return nil }
    try removeFromOutbox(localID)
    try delete(row)
    return row.message
  }

  /// Changes what a message says that has not left yet.
  /// - Returns: the message as it is now; nil when it is too late.
  public func replaceDraft(_ draft: MessageDraft, of localID: LocalID) throws(ChatError) -> Message? {
    guard var entry = try outboxEntry(localID), entry.state == .queued || entry.state == .failed,
      var message = try message(localID)
    else { return nil }
    // What it answers and the thread it stands in are no part of what it says.
    let place = entry.draft
    entry.draft = draft
    entry.draft.replyTo = draft.replyTo ?? place.replyTo
    entry.draft.threadParent = draft.threadParent ?? place.threadParent
    let (path, bytes) = Self.stored(draft.content.attachment?.source)
    try database.run(
      "UPDATE outbox SET payload = ?, source_path = ?, source_bytes = ? WHERE local_id = ?",
      [.text(payload(of: entry)), path, bytes, .text(localID.rawValue)])
    message.content = draft.content
    message.mentions = draft.mentions
    message.replyTo = entry.draft.replyTo
    message.threadParent = entry.draft.threadParent
    message.customType = draft.customType
    message.customData = draft.customData
    return try store(message)
  }

  /// What a message that is still to be sent answers, with its quote as it is now.
  func setReply(_ reply: Reply, ofOutbox localID: LocalID) throws(ChatError) {
    guard var entry = try outboxEntry(localID) else { return }
    entry.draft.replyTo = reply
    try database.run(
      "UPDATE outbox SET payload = ? WHERE local_id = ?", [.text(payload(of: entry)), .text(localID.rawValue)])
  }

  /// The attachment was uploaded: the bytes are not needed any more. Nothing happens when the message has another one
  /// by now.
  public func setUploaded(
    _ attachment: Attachment, inPlaceOf original: Attachment, of localID: LocalID
  ) throws(ChatError) {
    guard var entry = try outboxEntry(localID), entry.draft.content.attachment == original,
      var message = try message(localID)
    else { return }
    var attachment = attachment
    attachment.source = nil
    entry.draft.content.attachment = attachment
    try database.run(
      "UPDATE outbox SET payload = ?, source_path = NULL, source_bytes = NULL WHERE local_id = ?",
      [.text(payload(of: entry)), .text(localID.rawValue)])
    message.content.attachment = attachment
    _ = try store(message)
  }

  /// Fails everything that waits in a channel that is gone; the texts stay for copying.
  public func abandonOutbox(of channel: ChannelID, because error: ChatError) throws(ChatError) -> [Message] {
    let waiting = try database.all(
      "SELECT local_id FROM outbox WHERE channel = ? AND state <> 'failed' ORDER BY turn", [.text(channel.rawValue)]
    ) { row throws(ChatError) in LocalID(row.text(0)) }
    var failed: [Message] = []
    for localID in waiting {
      if let message = try fail(localID, with: error) { failed.append(message) }
    }
    return failed
  }

  func removeFromOutbox(_ localID: LocalID) throws(ChatError) {
    try database.run("DELETE FROM outbox WHERE local_id = ?", [.text(localID.rawValue)])
  }

  private func setOutbox(
    _ localID: LocalID, state: OutboxEntry.State, attempts: Int, seen: MessagePosition?
  ) throws(ChatError) {
    try database.run(
      "UPDATE outbox SET state = ?, attempts = ?, seen_major = ?, seen_minor = ?, seen_tail = ? WHERE local_id = ?",
      [.text(state.rawValue), .int(Int64(attempts))] + MessagePosition.values(seen) + [.text(localID.rawValue)])
  }

  @discardableResult
  private func setState(_ state: MessageState, of localID: LocalID) throws(ChatError) -> Message? {
    // A committed message does not fall back.
    guard var message = try message(localID), message.id == nil else { return nil }
    message.state = state
    try database.run(
      "UPDATE messages SET state = ?, error = ? WHERE local_id = ?",
      [.text(state.stored), SQLValue(state.storedError), .text(localID.rawValue)])
    return message
  }

  private func store(_ message: Message) throws(ChatError) -> Message? {
    guard let localID = message.localID, let known = try row(of: localID) else { return nil }
    try rewrite(known.row, as: message)
    return message
  }
}
