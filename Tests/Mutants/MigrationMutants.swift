import Foundation
import UnifiedChat

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
        record.message.customType = nil
        record.message.customData = nil
        record.message.mentions = Mentions()
        return record
      }, in: channel)
  }
}
