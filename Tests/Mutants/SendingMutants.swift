import ChatClient
import UnifiedChat

// MARK: Connection

struct ReturnsAfterKick: RetellingAdapter {
  let inner: any ChatAdapter
  private let last = Mutex2<(user: UserID, credential: Credential)?>(nil)
  let retelling: Retelling

  init(_ inner: any ChatAdapter) {
    self.inner = inner
    let last = last
    retelling = Retelling(inner) { event in
      if case .connectionChanged(.refused) = event.kind, let login = last.withLock({ $0 }) {
        _ = try? await inner.connect(as: login.user, credential: login.credential)
      }
      return [event]
    }
  }

  func connect(as user: UserID, credential: Credential) async throws(ChatError) -> User {
    last.withLock { $0 = (user, credential) }
    return try await inner.connect(as: user, credential: credential)
  }
}

struct AsksAlways: ForwardingAdapter {
  let inner: any ChatAdapter
  let credentials: (any CredentialProvider)?

  func channel(_ id: ChannelID) async throws(ChatError) -> Channel {
    if let user = await inner.currentUser { _ = try? await credentials?.credential(for: user.id) }
    return try await inner.channel(id)
  }
}

struct SpeaksAfterDisconnect: ChatListening {
  private let hub = EventHub()

  init(_ chat: Chat) {
    let (events, hub) = (chat.events(), hub)
    // Ends with the events of its client; who listens keeps nothing else.
    Task {
      for await event in events {
        hub.publish(event)
        guard case .connectionChanged(.disconnected(.requested)) = event.kind else { continue }
        for _ in 0..<500 {
          // Moments of real time: whoever disconnected goes on meanwhile.
          try? await Task.sleep(for: .milliseconds(2))
          hub.publish(ChatEvent(.typingEnded("nowhere", "nobody")))
        }
      }
    }
  }

  func events() -> ChatEventStream { hub.events() }
}

// MARK: Sending

struct RefusesLate: ForwardingAdapter {
  let inner: any ChatAdapter

  func registerPush(token: String) async throws(ChatError) {
    _ = try await inner.users(["somebody"])
    try await inner.registerPush(token: token)
  }
}

struct ChangesText: ForwardingAdapter {
  let inner: any ChatAdapter
  let change: @Sendable (String) -> String

  func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    var message = message
    if case .text(let text) = message.draft.content { message.draft.content = .text(change(text)) }
    return try await inner.send(message)
  }
}

struct UploadsAgain: ForwardingAdapter {
  let inner: any ChatAdapter

  func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    if message.attempt > 1, message.draft.content.attachment != nil {
      _ = try await inner.upload(
        Attachment(name: "again", source: .bytes([1, 2, 3])), for: message.channel, progress: nil)
    }
    return try await inner.send(message)
  }
}

struct QueueGoesOn: ForwardingAdapter {
  let inner: any ChatAdapter
  let clock: any ChatClock

  func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    do throws(ChatError) { return try await inner.send(message) } catch {
      guard error.isRetryable else { throw error }
      // Says that it has gone, and sends it once the others have.
      Task {
        try await clock.sleep(for: .seconds(2))
        _ = try await inner.send(message)
      }
      return Message(
        channel: message.channel, id: "put-aside", localID: message.localID, clientMessageID: message.clientMessageID,
        sender: await inner.currentUser?.id, position: MessagePosition(sequence: 1), createdAt: clock.now,
        content: message.draft.content)
    }
  }
}
