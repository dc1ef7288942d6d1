import AllAdapters
import ChatCache
import ChatClient
import ChatEmulation
import Foundation
import Testing
import UnifiedChat

/// Edits and recalls that were made while the app was not running, where the vendor keeps no log of a channel but
/// replays them at the login.
@Suite("What changed while the app was not running", .timeLimit(.minutes(1)))
struct ChangesWhileAwayTests {
  private final class Folder {
    let path = FileManager.default.temporaryDirectory.appending(path: "away-\(UUID())").path
    deinit { try? FileManager.default.removeItem(atPath: path) }
  }

  private let service: VendorService
  private let folder = Folder()
  private let clock: ManualClock

  init() async throws {
    service = try VendorService("leancloud")
    clock = ManualClock(start: Timestamp(milliseconds: await service.host.now))
  }

  /// - Parameter offset: how far the device's clock is ahead.
  private func chat(_ user: UserID, cache: CacheLocation, clockAhead offset: Duration = .zero) async throws -> Chat {
    let own = ManualClock(start: clock.now + offset)
    let environment = AdapterEnvironment(
      appKey: "pair-key", adminSecret: "pair-secret", clock: own, device: "\(user)", seed: 7)
    let adapter = try service.entry.makeAdapter(service.profile, environment)
    let chat = Chat(adapter: adapter, clock: own, options: ChatOptions(cacheLocation: cache, seed: 7))
    _ = try await chat.connect(as: user, credential: .none)
    return chat
  }

  private func texts(_ chat: Chat, _ channel: ChannelID) async throws -> [String] {
    try await chat.history(of: channel, .newest(10)).messages.map { message in
      if case .text(let text) = message.content { text } else { message.isRecalled ? "recalled" : "?" }
    }
  }

  enum Farewell: String, Sendable, CaseIterable { case disconnect, kill }

  @Test("is in the cache of the next process, after a farewell and after a kill", arguments: Farewell.allCases, [-86_400, 0, 86_400] as [Int64])
  func learned(_ farewell: Farewell, _ seconds: Int64) async throws {
    let bob = try await chat("bob", cache: .memory)
    let alice = try await chat("alice", cache: .directory(folder.path), clockAhead: .seconds(seconds))
    let channel = try await bob.createChannel(.direct(with: "alice")).id
    var sent: [Message] = []
    for text in ["one", "two", "three"] { sent.append(try await bob.send(.text(text), to: channel)) }
    while try await texts(alice, channel) != ["one", "two", "three"] { await Task.yield() }

    var next = CacheLocation.directory(folder.path)
    let copy = Folder()
    switch farewell {
    case .disconnect: await alice.disconnect()
    case .kill:
      // The files as they are, without what a farewell would do.
      try FileManager.default.copyItem(atPath: folder.path, toPath: copy.path)
      await alice.disconnect()
      next = .directory(copy.path)
    }
    // Longer than what is asked for again anyhow; bob's link would be closed as idle by more at once.
    await service.host.advance(by: .seconds(200))
    _ = try await bob.edit(sent[0], to: .text("edited"))
    _ = try await bob.recall(sent[1])
    await service.host.advance(by: .seconds(200))
    _ = try await bob.send(.text("four"), to: channel)

    let later = try await chat("alice", cache: next, clockAhead: .seconds(seconds))
    let wanted = ["edited", "recalled", "three", "four"]
    while try await texts(later, channel) != wanted { await Task.yield() }
    // It is in the cache, for whoever opens it without a network.
    await later.disconnect()
    #expect(try await texts(later, channel) == wanted)
  }
}
