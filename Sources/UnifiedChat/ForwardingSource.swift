/// A source that passes everything on, so that what changes one thing of another source says only that.
public protocol ForwardingSource: ChatSource {
  var inner: any ChatSource { get }
}

extension ForwardingSource {
  public var vendor: VendorName { inner.vendor }
  public var capabilities: CapabilitySet { inner.capabilities }
  public func check() async throws(ChatError) -> SourceCheck { try await inner.check() }
  public func estimate() async throws(ChatError) -> SourceEstimate? { try await inner.estimate() }
  public func users(after cursor: Cursor?) async throws(ChatError) -> SourcePage<UserRecord> {
    try await inner.users(after: cursor)
  }
  public func channels(after cursor: Cursor?) async throws(ChatError) -> SourcePage<ChannelRecord> {
    try await inner.channels(after: cursor)
  }
  public func members(of channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MemberRecord> {
    try await inner.members(of: channel, after: cursor)
  }
  public func messages(
    in channel: ChannelID, after cursor: Cursor?
  ) async throws(ChatError) -> SourcePage<MessageRecord> { try await inner.messages(in: channel, after: cursor) }
  public func rows(after cursor: Cursor?) async throws(ChatError) -> SourcePage<VendorRow> {
    try await inner.rows(after: cursor)
  }
  public func download(
    _ attachment: Attachment, to sink: @escaping @Sendable ([UInt8]) async throws(ChatError) -> Void
  ) async throws(ChatError) { try await inner.download(attachment, to: sink) }
}
