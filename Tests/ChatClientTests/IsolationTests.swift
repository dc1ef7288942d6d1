import ChatCache
import Foundation
import Testing
import UnifiedChat

@testable import ChatClient

/// A folder of its own that is gone with the object.
private final class Folder {
  let path = FileManager.default.temporaryDirectory.appending(path: "isolation-\(UUID())").path
  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The files whose bytes hold `word`.
  func files(with word: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path).filter { name in
      (FileManager.default.contents(atPath: path + "/" + name) ?? Data()).range(of: Data(word.utf8)) != nil
    }
  }
}

private struct Seeded: RandomNumberGenerator {
  var source: JitterSource
  init(seed: Int) { source = JitterSource(seed: UInt64(seed)) }
  mutating func next() -> UInt64 { UInt64(source.next() * 0x1p53) << 11 }
}

extension Chat {
  fileprivate var isAtRest: Bool { held.isEmpty && !isOnline && pump == nil }

  /// Begins a call while the cache is still that of `session`; what begins later belongs to the next user.
  fileprivate func begin(in session: Int, _ call: @Sendable (isolated Chat) async throws -> Void) async {
    guard self.session == session else { return }
    do { try await call(self) } catch { /* Cut off: that is the point. */ }
  }
}

@Suite("Nothing of one user is seen by the next", .serialized, .timeLimit(.minutes(2)))
struct IsolationTests {
  private static let secret = "geheimnis"

  /// What alice may have under way when she logs out.
  private func work(_ chat: Chat, _ session: Int, _ random: inout Seeded) -> [Task<Void, Never>] {
    let known = Message(channel: "hers", id: "m1", sender: "alice", position: MessagePosition(sequence: 1), createdAt: Timestamp(milliseconds: 1), content: .text(""))
    let secret = Self.secret
    var calls: [@Sendable (isolated Chat) async throws -> Void] = [
      { chat in _ = try await chat.history(of: "hers", .newest(20)) },
      { chat in _ = try await chat.history(of: "hers", HistoryQuery(anchor: .oldest, direction: .newer, limit: 50)) },
      { chat in _ = try await chat.send(.text("\(secret) unsent"), to: "hers") },
      { chat in _ = try await chat.enqueue(MessageDraft(.file(Attachment(name: "\(secret).txt", source: .bytes(Array(secret.utf8))))), to: "hers") },
      { chat in _ = try await chat.channels(ChannelQuery(), page: nil) },
      { chat in _ = try await chat.channel("hers") },
      { chat in _ = try await chat.members(of: "hers", limit: 10, page: nil) },
      { chat in _ = try await chat.message("m2", in: "hers") },
      { chat in _ = try await chat.edit(known, to: .text("\(secret) edited")) },
      { chat in _ = try await chat.recall(known) },
      { chat in try await chat.deleteForMe([known]) },
      { chat in try await chat.markRead("hers", upTo: nil) },
      { chat in try await chat.setPinned(true, "hers") },
      { chat in try chat.setDraft(secret, of: "hers") },
      { chat in _ = try await chat.repair("hers") },
      { chat in _ = try await chat.compareWithServer("hers") },
    ]
    calls.shuffle(using: &random)
    return calls.prefix(Int.random(in: 3...10, using: &random)).map { call in
      Task { await chat.begin(in: session, call) }
    }
  }

  @Test("whatever is under way when she logs out, cleared or not", arguments: 0..<60)
  func schedules(_ seed: Int) async throws {
    var random = Seeded(seed: seed)
    let folder = Folder()
    let adapter = ScriptedAdapter(without: [.channelPin, .messageDeleteForMe], emulated: [.messageIdempotentSend])
    let chat = Chat(adapter: adapter, options: ChatOptions(cacheLocation: .directory(folder.path), catchUpPage: 5, seed: 1))
    await adapter.addChannel("hers")
    for number in 1...30 { await adapter.write("\(Self.secret) \(number)", in: "hers") }
    if Bool.random(using: &random) {
      // She was here before: there is something to catch up with.
      _ = try await chat.connect(as: "alice", credential: .none)
      _ = try await chat.history(of: "hers", .newest(5))
      await chat.disconnect()
      for number in 31...45 { await adapter.write("\(Self.secret) \(number)", in: "hers") }
    }
    if Bool.random(using: &random) { await adapter.holdChannels(true) }
    _ = try await chat.connect(as: "alice", credential: .none)
    if Bool.random(using: &random) { await adapter.holdHistory(true) }
    let tasks = work(chat, await chat.session, &random)
    for _ in 0..<Int.random(in: 0..<60, using: &random) { await Task.yield() }
    await adapter.write("\(Self.secret) pushed", in: "hers", push: true)
    for _ in 0..<Int.random(in: 0..<20, using: &random) { await Task.yield() }

    let erases = Bool.random(using: &random)
    if erases { try await chat.clearCachedData() } else { await chat.disconnect() }
    let heard = await Recorder(chat.events())
    await adapter.removeChannel("hers")
    await adapter.addChannel("his")
    _ = try await chat.connect(as: "bob", credential: .none)
    await adapter.holdHistory(false)
    await adapter.holdChannels(false)
    for task in tasks { await task.value }
    await heard.first { $0.isUpToDate }

    #expect(try await chat.cachedChannels().map(\.id) == ["his"])
    #expect(try await chat.searchCache(CacheSearch(Self.secret)).items == [])
    #expect(try await chat.searchCache(CacheSearch("unsent")).items == [])
    #expect(try await chat.waitingMessages(in: "hers") == [])
    #expect(try await chat.unsentCount() == 0)
    #expect(try await chat.draft(of: "hers") == nil)
    #expect(await heard.events.allSatisfy { $0.kind.channel != "hers" })
    let his = (await chat.cache?.path ?? "").split(separator: "/").last.map(String.init) ?? ""
    let rows = try await chat.cacheReport().channels.map(\.id)
    #expect(rows == ["his"], "seed \(seed)")
    await chat.disconnect()
    let files = try folder.files(with: Self.secret)
    #expect(!files.contains { $0.hasPrefix(his) }, "seed \(seed)")
    if erases { #expect(files == [], "seed \(seed)") }
  }

  @Test("what one user was told to be typing says nothing of the next one")
  func typing() async throws {
    let adapter = ScriptedAdapter()
    let chat = Chat(adapter: adapter, options: ChatOptions(seed: 1))
    _ = try await chat.connect(as: "alice", credential: .none)
    try await chat.setTyping(true, in: "c")
    try await chat.setTyping(true, in: "c")
    await chat.disconnect()
    _ = try await chat.connect(as: "bob", credential: .none)
    // She began, not he.
    try await chat.setTyping(false, in: "c")
    try await chat.setTyping(true, in: "c")
    #expect(await adapter.journal.filter { $0.hasPrefix("typing") } == ["typing true c", "typing true c"])
  }

  @Test("a connect that failed leaves nothing that the next user hears or keeps")
  func failedConnect() async throws {
    let adapter = ScriptedAdapter()
    let chat = Chat(adapter: adapter, options: ChatOptions(seed: 1))
    let heard = await Recorder(chat.events())
    await adapter.scriptConnects([ChatError(.authentication, operation: .connect)])
    await #expect(throws: ChatError.self) { try await chat.connect(as: "alice", credential: .none) }
    // Of a channel that has to be described first.
    await adapter.addChannel("hers")
    await adapter.write("\(Self.secret) 1", in: "hers", push: true)
    try await until {
      if await !chat.held.isEmpty { return true }
      return await heard.events.contains { $0.isReceived("\(Self.secret) 1") }
    }
    try await chat.open(for: "bob")
    #expect(await chat.isAtRest)
    let before = await heard.events.count
    await adapter.write("\(Self.secret) 2", in: "hers", push: true)
    await adapter.removeChannel("hers")
    await adapter.addChannel("his")
    _ = try await chat.connect(as: "bob", credential: .none)
    await heard.first { $0.isUpToDate }
    await adapter.write("for him", in: "his", push: true)
    await heard.first { $0.isReceived("for him") }
    #expect(await heard.events.dropFirst(before).allSatisfy { $0.kind.channel != "hers" })
    #expect(try await chat.cacheReport().channels.map(\.id) == ["his"])
  }

  @Test("a connect that was ended and fails late ends nothing of the one after it")
  func lateFailure() async throws {
    let adapter = ScriptedAdapter()
    await adapter.addChannel("c")
    let chat = Chat(adapter: adapter, options: ChatOptions(seed: 1))
    let heard = await Recorder(chat.events())
    await adapter.scriptConnects([ChatError(.network(.closed), operation: .connect)])
    await adapter.holdConnects(true)
    let first = Task { try await chat.connect(as: "alice", credential: .none) }
    try await until { await adapter.isHolding }
    let ending = Task { await chat.disconnect() }
    await ending.value
    await adapter.holdConnects(false)
    _ = try await chat.connect(as: "alice", credential: .none)
    await #expect(throws: ChatError.self) { try await first.value }
    #expect(await chat.isActive)
    await heard.first { $0.isUpToDate }
    await adapter.write("still here", push: true)
    await heard.first { $0.isReceived("still here") }
  }

  @Test("erasing erases, also when somebody else connects while it waits", arguments: ["bob", "alice"] as [UserID])
  func erasedMeanwhile(_ next: UserID) async throws {
    let folder = Folder()
    let adapter = ScriptedAdapter()
    let chat = Chat(adapter: adapter, options: ChatOptions(cacheLocation: .directory(folder.path), seed: 1))
    let heard = await Recorder(chat.events())
    await adapter.addChannel("hers")
    _ = try await chat.connect(as: "alice", credential: .none)
    await adapter.write("\(Self.secret) 1", in: "hers", push: true)
    await heard.first { $0.isReceived("\(Self.secret) 1") }
    await chat.disconnect()
    #expect(try folder.files(with: Self.secret) != [])
    await adapter.removeChannel("hers")
    await adapter.holdDisconnects(true)
    let erasing = Task { try await chat.clearCachedData() }
    try await until { await adapter.isHolding }
    await adapter.holdConnects(true)
    let coming = Task { try await chat.connect(as: next, credential: .none) }
    try await until { await chat.isActive }
    await adapter.holdConnects(false)
    await adapter.holdDisconnects(false)
    try await erasing.value
    #expect(try folder.files(with: Self.secret) == [])
    if next == "alice" {
      // Ended by what was asked before it.
      await #expect(throws: ChatError.self) { try await coming.value }
      _ = try await chat.connect(as: "alice", credential: .none)
    } else {
      _ = try await coming.value
    }
    #expect(await chat.isActive)
    #expect(try await chat.searchCache(CacheSearch(Self.secret)).items == [])
    await chat.disconnect()
  }
}
