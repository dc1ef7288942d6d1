import UnifiedChat

// A reply carries a copy of what it answers. What was recalled is not to be read there either.
extension CacheSession {
  /// Takes the words of a recalled message out of the replies that quote it, those that are still to be sent too.
  /// - Returns: the replies as they are now.
  func eraseQuotes(of recalled: Message) throws(ChatError) -> [Message] {
    guard let id = recalled.id else { return [] }
    let answers = try database.all(
      Self.answersQuery, [.text(recalled.channel.rawValue), .text(id.rawValue)]
    ) { row throws(ChatError) in try MessageRow(row) }
    var changed: [Message] = []
    for candidate in answers {
      guard let next = candidate.message.replyTo?.without(recalled.content), next != candidate.message.replyTo else { continue }
      var message = candidate.message
      message.replyTo = next
      try rewrite(candidate.row, as: message)
      database.hasErased = true
      if let localID = message.localID { try setReply(next, ofOutbox: localID) }
      if candidate.visibility == .visible { changed.append(message) }
    }
    return changed
  }

  private static let answersQuery =
    "SELECT \(MessageRow.columns) FROM messages WHERE channel = ? AND reply_to = ? ORDER BY row"

  /// How SQLite finds the answers to a message; a test keeps it an index walk.
  func planOfAnswers() throws(ChatError) -> [String] {
    try database.all("EXPLAIN QUERY PLAN " + Self.answersQuery, [.text("c"), .text("m")]) { row throws(ChatError) in
      row.text(3)
    }
  }

  /// The message as it may be stored: without the words of something that is known to be recalled.
  func withoutRecalledQuote(_ message: Message) throws(ChatError) -> Message {
    guard let reply = message.replyTo, reply.quoted != nil,
      let quoted = try row(of: reply.id, in: message.channel)?.message, quoted.isRecalled
    else { return message }
    var message = message
    message.replyTo = reply.without(quoted.content)
    return message
  }
}

extension Reply {
  /// The same reply, whose quote says of its words only that they are gone.
  fileprivate func without(_ tombstone: MessageContent) -> Reply {
    var reply = self
    reply.quoted?.content = tombstone
    return reply
  }
}
