/// A destination that passes everything on, so that what changes one thing of another destination says only that. It
/// passes on what the protocol has defaults for, too.
public protocol ForwardingDestination: ChatDestination {
  var inner: any ChatDestination { get }
}

extension ForwardingDestination {
  public var vendor: VendorName { inner.vendor }
  public var capabilities: CapabilitySet { inner.capabilities }
  public var limits: DestinationLimits { inner.limits }
  public var signingKey: String? { inner.signingKey }
  public func losses(of record: Record) -> [Loss] { inner.losses(of: record) }

  public func putUsers(_ users: [UserRecord]) async throws(ChatError) -> [PutOutcome<UserID>] {
    try await inner.putUsers(users)
  }
  public func resume(_ channel: ChannelID, of origin: Origin) async { await inner.resume(channel, of: origin) }
  public func putChannel(
    _ channel: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) -> PutOutcome<ChannelID> { try await inner.putChannel(channel, members: members) }
  public func putAttachment(
    _ attachment: Attachment, bytes: [UInt8], in channel: ChannelID
  ) async throws(ChatError) -> Attachment { try await inner.putAttachment(attachment, bytes: bytes, in: channel) }
  public func putMessages(
    _ messages: [MessageRecord], in channel: ChannelID
  ) async throws(ChatError) -> [PutOutcome<MessageID>] { try await inner.putMessages(messages, in: channel) }
  public func finishChannel(
    _ channel: ChannelID, original: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) { try await inner.finishChannel(channel, original: original, members: members) }
  public func existing(
    in channel: ChannelID, after cursor: Cursor?
  ) async throws(ChatError) -> SourcePage<ExistingMessage> { try await inner.existing(in: channel, after: cursor) }

  public func changeMessage(
    _ message: MessageRecord, id: MessageID, in channel: ChannelID
  ) async throws(ChatError) -> PutOutcome<MessageID> {
    try await inner.changeMessage(message, id: id, in: channel)
  }
  public func removeMessages(_ ids: [MessageID], in channel: ChannelID) async throws(ChatError) {
    try await inner.removeMessages(ids, in: channel)
  }
  public func removeMembers(_ users: [UserID], from channel: ChannelID) async throws(ChatError) {
    try await inner.removeMembers(users, from: channel)
  }
  public func removeChannel(_ channel: ChannelID) async throws(ChatError) { try await inner.removeChannel(channel) }
  public func removeUsers(_ users: [UserID]) async throws(ChatError) { try await inner.removeUsers(users) }
}
