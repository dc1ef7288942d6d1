import Foundation
import UnifiedChat

/// A destination that passes everything on.
protocol ForwardingDestination: ChatDestination {
  var inner: any ChatDestination { get }
}

extension ForwardingDestination {
  var vendor: VendorName { inner.vendor }
  var capabilities: CapabilitySet { inner.capabilities }
  var limits: DestinationLimits { inner.limits }
  func losses(of record: Record) -> [Loss] { inner.losses(of: record) }
  func putUsers(_ users: [UserRecord]) async throws(ChatError) -> [PutOutcome<UserID>] {
    try await inner.putUsers(users)
  }
  func putChannel(_ channel: ChannelRecord, members: [MemberRecord]) async throws(ChatError) -> PutOutcome<ChannelID> {
    try await inner.putChannel(channel, members: members)
  }
  func putAttachment(_ attachment: Attachment, bytes: [UInt8], in channel: ChannelID) async throws(ChatError)
    -> Attachment
  {
    try await inner.putAttachment(attachment, bytes: bytes, in: channel)
  }
  func putMessages(_ messages: [MessageRecord], in channel: ChannelID) async throws(ChatError) -> [PutOutcome<MessageID>] {
    try await inner.putMessages(messages, in: channel)
  }
  func finishChannel(_ channel: ChannelID, original: ChannelRecord, members: [MemberRecord]) async throws(ChatError) {
    try await inner.finishChannel(channel, original: original, members: members)
  }
  func existing(in channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<ExistingMessage> {
    try await inner.existing(in: channel, after: cursor)
  }
}

struct ForgetsWritten: ForwardingDestination {
  let inner: any ChatDestination

  func putMessages(_ messages: [MessageRecord], in channel: ChannelID) async throws(ChatError) -> [PutOutcome<MessageID>] {
    try await inner.putMessages(
      messages.map { record in
        var record = record
        record.origin = Origin(vendor: "mutant", id: UUID().uuidString, channel: channel)
        return record
      }, in: channel)
  }

  func existing(in channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<ExistingMessage> {
    SourcePage(items: [], next: nil)
  }
}

struct LosesSilently: ForwardingDestination {
  let inner: any ChatDestination

  func putMessages(_ messages: [MessageRecord], in channel: ChannelID) async throws(ChatError) -> [PutOutcome<MessageID>] {
    try await inner.putMessages(
      messages.map { record in
        var record = record
        if case .text(let text) = record.message.content {
          record.message.content = .text(text.trimmingCharacters(in: .whitespacesAndNewlines))
        }
        return record
      }, in: channel)
  }
}
