import UnifiedChat

/// Throws for a whole call because of one message in it.
struct Poisoned: ChatDestination {
  let inner: MemoryService
  let message: MessageID

  static func destination() -> MemoryService { MemoryService(vendor: "new") }

  var vendor: VendorName { inner.vendor }
  var capabilities: CapabilitySet { inner.capabilities }
  var limits: DestinationLimits { inner.limits }
  func losses(of record: Record) -> [Loss] { inner.losses(of: record) }
  func putUsers(_ users: [UserRecord]) async throws(ChatError) -> [PutOutcome<UserID>] {
    try await inner.putUsers(users)
  }
  func putChannel(
    _ channel: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) -> PutOutcome<ChannelID> { try await inner.putChannel(channel, members: members) }
  func putAttachment(
    _ attachment: Attachment, bytes: [UInt8], in channel: ChannelID
  ) async throws(ChatError) -> Attachment { try await inner.putAttachment(attachment, bytes: bytes, in: channel) }

  func putMessages(
    _ messages: [MessageRecord], in channel: ChannelID
  ) async throws(ChatError) -> [PutOutcome<MessageID>] {
    if messages.contains(where: { $0.message.id == message }) {
      throw ChatError(.invalidArgument(field: "content"), operation: .writeDestination)
    }
    return try await inner.putMessages(messages, in: channel)
  }

  func finishChannel(
    _ channel: ChannelID, original: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) { try await inner.finishChannel(channel, original: original, members: members) }
  func existing(
    in channel: ChannelID, after cursor: Cursor?
  ) async throws(ChatError) -> SourcePage<ExistingMessage> { try await inner.existing(in: channel, after: cursor) }
}
