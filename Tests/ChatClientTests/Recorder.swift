import UnifiedChat

/// What one subscriber has been told.
actor Recorder {
  private(set) var events: [ChatEvent] = []
  private var task: Task<Void, Never>?
  private var waiting: [Int: (matches: (ChatEvent) -> Bool, continuation: CheckedContinuation<Void, Never>)] = [:]
  private var lastWaiter = 0

  init(_ stream: ChatEventStream) async {
    task = Task { [weak self] in for await event in stream { await self?.add(event) } }
  }

  private func add(_ event: ChatEvent) {
    events.append(event)
    for (number, waiter) in waiting where waiter.matches(event) {
      waiting[number] = nil
      waiter.continuation.resume()
    }
  }

  /// Returns at once when such an event came already, and without one when the test's time is up.
  func first(where matches: @escaping @Sendable (ChatEvent) -> Bool) async {
    if events.contains(where: matches) || Task.isCancelled { return }
    lastWaiter += 1
    let number = lastWaiter
    await withTaskCancellationHandler {
      await withCheckedContinuation { waiting[number] = (matches, $0) }
    } onCancel: {
      Task { await self.giveUp(number) }
    }
  }

  private func giveUp(_ number: Int) { waiting.removeValue(forKey: number)?.continuation.resume() }

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

/// Lets the others run until `condition` holds, or the test's time is up.
func until(isolation: isolated (any Actor)? = #isolation, _ condition: () async throws -> Bool) async throws {
  while try await !condition() {
    try Task.checkCancellation()
    await Task.yield()
  }
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
