import UnifiedChat

/// What one subscriber has been told.
actor Recorder {
  private(set) var events: [ChatEvent] = []
  private var task: Task<Void, Never>?
  private var waiting: [(ChatEvent) -> Bool] = []
  private var continuations: [CheckedContinuation<Void, Never>] = []

  init(_ stream: ChatEventStream) async {
    task = Task { [weak self] in for await event in stream { await self?.add(event) } }
  }

  private func add(_ event: ChatEvent) {
    events.append(event)
    for place in waiting.indices.reversed() where waiting[place](event) {
      waiting.remove(at: place)
      continuations.remove(at: place).resume()
    }
  }

  /// Returns at once when such an event came already.
  func first(where matches: @escaping @Sendable (ChatEvent) -> Bool) async {
    if events.contains(where: matches) { return }
    await withCheckedContinuation { continuation in
      waiting.append(matches)
      continuations.append(continuation)
    }
  }

  /// The names of the events about messages, with the text.
  var lines: [String] {
    events.compactMap { event in
      switch event.kind {
      case .messagePending(let message): "pending \(message.words)"
      case .messageSent(let message): "sent \(message.words)"
      case .messageFailed(let message): "failed \(message.words)"
      case .messageCancelled(let message): "cancelled \(message.words)"
      case .messageReceived(let message): "received \(message.words)"
      case .messageUpdated(let message): "updated \(message.words)"
      case .messageRecalled: "recalled"
      case .messagesBackfilled(_, let count): "backfilled \(count)"
      default: nil
      }
    }
  }

  deinit { task?.cancel() }
}

extension Message {
  var words: String { content.searchableText ?? content.kindName }
}

extension ChatEvent {
  func isReceived(_ text: String) -> Bool {
    if case .messageReceived(let message) = kind { message.words == text } else { false }
  }

  var isUpToDate: Bool { kind == .syncChanged(.upToDate) }
}
