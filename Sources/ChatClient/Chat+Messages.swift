import ChatCache
import UnifiedChat

extension Chat {
  public func upload(
    _ attachment: Attachment, for channel: ChannelID, progress: (@Sendable (_ sent: Int64, _ total: Int64) -> Void)?
  ) async throws(ChatError) -> Attachment {
    try await require(.fileUpload, .upload)
    guard attachment.source != nil else {
      throw ChatError(.invalidArgument(field: "source"), operation: .upload, detail: "no bytes to upload")
    }
    return try await ask(await adapter.upload(attachment, for: channel, progress: progress))
  }

  public func download(_ attachment: Attachment, limit: Int64) async throws(ChatError) -> [UInt8] {
    try await ask(await adapter.download(attachment, limit: limit))
  }

  /// Changes what a message says. One that has not left yet is changed before it leaves; one of this device alone is
  /// changed here, whether the vendor can edit or not.
  public func edit(_ original: Message, to draft: MessageDraft) async throws(ChatError) -> Message {
    if original.isLocalOnly, let changed = try editLocal(original, to: draft) { return changed }
    try draft.check(try await ownCapabilities())
    if original.id == nil, let localID = original.localID { return try editWaiting(localID, to: draft) }
    try await require(.messageEdit, .edit)
    let edited = try await ask(await adapter.edit(original, to: draft))
    apply(.messageUpdated(edited))
    return try current(edited)
  }

  private func editWaiting(_ localID: LocalID, to draft: MessageDraft) throws(ChatError) -> Message {
    let cache = try opened(.edit)
    guard let changed = try cache.write({ session throws(ChatError) in try session.replaceDraft(draft, of: localID) })
    else {
      throw ChatError(
        .invalidArgument(field: "state"), operation: .edit, detail: "it is on its way; edit it once it is sent")
    }
    if changed.content.attachment?.url == nil { stopUpload(of: localID) }
    publish(.messageUpdated(changed), .local)
    return changed
  }

  /// Takes back for all. One that has not left yet is cancelled, and one of this device alone is removed; both come back
  /// as cancelled. Taking back twice is no error. Copies of the same send that the service stores beside it are taken back
  /// with it: they would come to light once it is gone.
  public func recall(_ message: Message) async throws(ChatError) -> Message {
    if message.isLocalOnly { return try removeLocal(message) }
    if message.id == nil, let localID = message.localID { return try await recallWaiting(message, localID) }
    try await require(.messageRecall, .recall)
    let copies = try opened(.recall).read { session throws(ChatError) in try session.copies(of: message) }
    for copy in copies where !copy.isRecalled {
      do throws(ChatError) { apply(.messageRecalled(try await ask(await adapter.recall(copy)))) } catch {
        // Gone already, by whomever.
        guard error.kind == .conflict || error.kind == .notFound else { throw error }
      }
    }
    var tombstone = message
    do throws(ChatError) { tombstone = try await ask(await adapter.recall(message)) } catch {
      // Another device, or a try whose answer was lost, was first.
      guard error.kind == .conflict || error.kind == .notFound, let id = message.id,
        let known = try opened(.recall).read({ session throws(ChatError) in
          try session.message(id, in: message.channel)
        }), known.isRecalled
      else { throw error }
      return known
    }
    apply(.messageRecalled(tombstone))
    return try current(tombstone)
  }

  private func recallWaiting(_ message: Message, _ localID: LocalID) async throws(ChatError) -> Message {
    guard try await cancel(localID) else {
      throw ChatError(
        .invalidArgument(field: "state"), operation: .recall, detail: "it is on its way; recall it once it is sent")
    }
    var cancelled = message
    cancelled.state = .cancelled
    return cancelled
  }

  /// Hidden on all of the user's devices where the vendor has it, else on this one. A message that was never sent, and
  /// one of this device alone, is removed.
  public func deleteForMe(_ messages: [Message]) async throws(ChatError) {
    let committed = messages.filter { $0.id != nil }
    if !committed.isEmpty, try await vendorCapabilities()[.messageDeleteForMe] == .native {
      try await ask(await adapter.deleteForMe(committed))
    }
    for message in messages {
      if let id = message.id {
        apply(.messageHidden(message.channel, id))
      } else if message.isLocalOnly {
        _ = try removeLocal(message)
      } else if let localID = message.localID {
        _ = try await cancel(localID)
      }
    }
  }

  /// Removes everything that is in the channel now, on all of the user's devices; with it, on this one, the messages that
  /// it has alone. What waits to be sent stays.
  public func clearHistory(of channel: ChannelID) async throws(ChatError) {
    try await require(.historyClear, .clearHistory)
    try await ask(await adapter.clearHistory(of: channel))
    let newest = try opened(.clearHistory).read { session throws(ChatError) in try session.newestPosition(in: channel) }
    if let newest { apply(.historyCleared(channel, upTo: newest)) }
    let gone = try opened(.clearHistory).write { session throws(ChatError) in
      try session.clearLocal(channel, upTo: .highest)
    }
    guard gone > 0 else { return }
    purgeErased()
    publish(.messagesBackfilled(channel, count: 0), .local)
  }

  public func addReaction(_ key: String, to message: Message) async throws(ChatError) -> [Reaction] {
    try await require(.messageReaction, .react)
    return keep(try await ask(await adapter.addReaction(key, to: message)), of: message)
  }

  public func removeReaction(_ key: String, from message: Message) async throws(ChatError) -> [Reaction] {
    try await require(.messageReaction, .react)
    return keep(try await ask(await adapter.removeReaction(key, from: message)), of: message)
  }

  private func keep(_ reactions: [Reaction], of message: Message) -> [Reaction] {
    // A standing connection tells the change too, in its order among those of others; the answer could overtake one.
    if !isOnline, let id = message.id { apply(.reactionsChanged(message.channel, id, reactions)) }
    return reactions
  }

  /// Keeps data of this device with a message, never on a wire. It survives edits and goes with a recall.
  /// - Throws: `.notFound` for a message that is not in the cache.
  @discardableResult
  public func setLocalExtension(_ data: JSONText?, of message: Message) throws(ChatError) -> Message {
    let changed = try opened(.cache).write { session throws(ChatError) in
      try session.setLocalExtension(data, of: message)
    }
    guard let changed else { throw ChatError(.notFound, operation: .cache, detail: "the message is not in the cache") }
    return changed
  }

  /// The message as the cache has it now.
  private func current(_ message: Message) throws(ChatError) -> Message {
    guard let id = message.id else { return message }
    return try opened(.fetchMessage).read { session throws(ChatError) in
      try session.message(id, in: message.channel)
    } ?? message
  }
}
