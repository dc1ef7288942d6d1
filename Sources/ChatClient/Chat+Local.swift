import ChatCache
import UnifiedChat

// Messages of this device alone: a notice of the app, a greeting, what was imported from elsewhere. The cache keeps them
// for all vendors, and no adapter ever sees one.

extension Chat {
  /// Puts a message into a channel on this device alone: it is on no wire, in no outbox and on no other device.
  ///
  /// It is `.sent`, has a `localID` and neither id nor position (`isLocalOnly`), and counts as unread for nobody. It is
  /// shown in pages of history (within their limit), in live lists, as the last message of its channel, and found by a
  /// search. It survives a restart, reading again and repairing, and is not evicted by `cache.maxBytes`, since nobody could
  /// bring it again; it goes with `deleteForMe`, `recall` (both remove it), `clearHistory`, a cleared or deleted channel
  /// and `clearCachedData`, and is lost with a damaged file. `edit` changes it here. Works without a link, also in a
  /// channel of which nothing is known yet.
  ///
  /// Told as `messagesBackfilled` with the source `local`: nobody received anything.
  /// - Parameters:
  ///   - draft: any content, whether the vendor has it or not; a file by its `url`, of which nothing is read.
  ///   - sender: who is shown as its sender; nil: the connected user.
  ///   - time: when it was made; nil: now, behind the newest known message. It stands behind the newest cached message
  ///     that is not newer, or before all cached ones. The place is chosen once: what is found before it later, a hole
  ///     that is closed for instance, comes before it, and what is newer after it, whatever their times.
  /// - Throws: `.invalidArgument` for an empty text, bytes without a url, a thread, a transient draft, a message without
  ///   content; `.storage` when it cannot be stored.
  @discardableResult
  public func insertLocal(
    _ draft: MessageDraft, by sender: UserID? = nil, in channel: ChannelID, at time: Timestamp? = nil
  ) async throws(ChatError) -> Message {
    try Arguments.id(channel, .cache)
    try draft.checkLocal()
    let made = Message(
      channel: channel, localID: LocalID(options.makeID()), sender: sender, createdAt: time ?? clock.now,
      content: draft.content, mentions: draft.mentions, replyTo: draft.replyTo, customType: draft.customType,
      customData: draft.customData)
    let message = try opened(.cache).write { session throws(ChatError) in
      var message = made
      message.sender = sender ?? session.owner
      return try session.insertLocal(message, at: time)
    }
    publish(.messagesBackfilled(channel, count: 1), .local)
    return message
  }

  /// - Returns: nil when it is not of this device alone.
  func editLocal(_ original: Message, to draft: MessageDraft) throws(ChatError) -> Message? {
    guard let localID = original.localID else { return nil }
    try draft.checkLocal()
    let now = clock.now
    let changed = try opened(.edit).write { session throws(ChatError) in
      try session.editLocal(localID, to: draft, at: now)
    }
    guard let changed else { return nil }
    purgeErased()
    publish(.messageUpdated(changed), .local)
    return changed
  }

  /// Removing twice is no error.
  func removeLocal(_ message: Message) throws(ChatError) -> Message {
    var gone = message
    gone.state = .cancelled
    guard let localID = message.localID else { return gone }
    let removed = try opened(.recall).write { session throws(ChatError) in try session.removeLocal(localID) }
    guard removed != nil else { return gone }
    purgeErased()
    publish(.messageCancelled(gone), .local)
    return gone
  }
}
