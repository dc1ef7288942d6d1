import UnifiedChat

/// Throws for a whole call because of one message in it.
struct Poisoned: ForwardingDestination {
  let inner: any ChatDestination
  let message: MessageID

  static func destination() -> MemoryService { MemoryService(vendor: "new") }

  func putMessages(
    _ messages: [MessageRecord], in channel: ChannelID
  ) async throws(ChatError) -> [PutOutcome<MessageID>] {
    if messages.contains(where: { $0.message.id == message }) {
      throw ChatError(.invalidArgument(field: "content"), operation: .writeDestination)
    }
    return try await inner.putMessages(messages, in: channel)
  }
}
