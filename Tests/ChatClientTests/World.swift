import ChatCache
import ChatConformance
import UnifiedChat

@testable import ChatClient

/// The ideal service, a clock that stands still, and clients on it.
struct World {
  let clock = ManualClock()
  let service: IdealService

  init() async {
    service = IdealService(clock: clock)
    for name in ["alice", "bob", "carol"] { await service.register(User(id: UserID(name), name: name), token: name) }
  }

  func chat(_ options: ChatOptions = ChatOptions()) -> Chat {
    Chat(adapter: IdealAdapter(service: service), clock: clock, options: options)
  }

  func connected(_ user: UserID, _ options: ChatOptions = ChatOptions()) async throws -> Chat {
    let chat = chat(options)
    _ = try await chat.connect(as: user, credential: .token(user.rawValue))
    return chat
  }

  /// A group of alice and bob.
  func group(by chat: Chat) async throws -> ChannelID {
    try await chat.createChannel(ChannelDraft(members: ["bob"], name: "room")).id
  }
}

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
