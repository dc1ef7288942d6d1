import ChatJSON
import UnifiedChat

// A reply carries a copy of what it answers. What was recalled is not to be read there either.
extension CacheSession {
  /// How much earlier than what it quotes a reply may claim to have been written, in ms: clocks of devices differ.
  private static let clockError: Int64 = 86_400_000

  /// Takes the words of a recalled message out of the replies that quote it, those that are still to be sent too.
  /// - Returns: the replies as they are now.
  func eraseQuotes(of recalled: Message) throws(ChatError) -> [Message] {
    guard let id = recalled.id else { return [] }
    let start = MessageRow.rows(at: Timestamp(milliseconds: max(recalled.createdAt.milliseconds, 0) - Self.clockError)).lowerBound
    // The text of the id finds the few rows that are worth reading.
    let candidates = try database.all(
      "SELECT \(MessageRow.columns) FROM messages WHERE row >= ? AND channel = ? AND instr(payload, ?) > 0",
      [.int(start), .text(recalled.channel.rawValue), .text(JSONValue.string(id.rawValue).text())]
    ) { row throws(ChatError) in try MessageRow(row) }
    var changed: [Message] = []
    for candidate in candidates {
      guard candidate.message.replyTo?.id == id,
        let next = candidate.message.replyTo?.without(recalled.content), next != candidate.message.replyTo
      else { continue }
      var message = candidate.message
      message.replyTo = next
      try rewrite(candidate.row, as: message)
      if let localID = message.localID { try setReply(next, ofOutbox: localID) }
      if candidate.visibility == .visible { changed.append(message) }
    }
    return changed
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
