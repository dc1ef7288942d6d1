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
