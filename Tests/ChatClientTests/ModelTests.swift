import ChatCache
import Testing
import UnifiedChat

@testable import ChatClient

@Suite("The flow of an app", .timeLimit(.minutes(1)))
struct AppFlowTests {
  @MainActor
  @Test("connect, list the channels, open one, read, write, react to what comes, leave no trace")
  func flow() async throws {
    let world = await World()
    let bob = try await world.connected("bob")
    // What an app does, from here on.
    let chat = world.chat()
    _ = try await chat.connect(as: "alice", credential: .token("alice"))
    let channels = ChannelListModel(await chat.channelCollection())
    let following = Task { await channels.follow() }
    let id = try await bob.createChannel(ChannelDraft(members: ["alice"], name: "lunch")).id
    _ = try await bob.send(.text("hungry?"), to: id)
    try await until { channels.items.first?.lastMessage?.words == "hungry?" }
    let room = MessageListModel(await chat.messageCollection(in: id))
    let reading = Task { await room.follow() }
    try await until { room.items.map(\.message.words) == ["hungry?"] }
    try await room.collection.markRead()
    try await chat.enqueue(.text("always"), to: id)
    try await until { room.items.map(\.message.words) == ["hungry?", "always"] && room.items[1].message.state == .sent }
    try await until { channels.unread == .exact(0) }
    _ = try await bob.send(.text("12:30"), to: id)
    try await until { room.items.count == 3 && channels.items.first?.lastMessage?.words == "12:30" }
    #expect(try await chat.searchCache(CacheSearch("12:30")).items.count == 1)
    following.cancel()
    reading.cancel()
    try await chat.clearCachedData()
    await bob.disconnect()
  }

  final class Listener: MessageListener {
    let received: @Sendable (String) async -> Void
    init(_ received: @escaping @Sendable (String) async -> Void) { self.received = received }
    func messageReceived(_ message: Message) async { await received(message.words) }
  }

  actor Heard {
    var lines: [String] = []
    func add(_ line: String) { lines.append(line) }
  }

  @Test("a listener registered ten times under one name hears each event once")
  func listeners() async throws {
    let bench = try await Bench()
    let heard = Heard()
    for _ in 1...10 { bench.chat.listeners.add(Listener { await heard.add($0) }, identifier: "room") }
    bench.chat.listeners.add(Listener { await heard.add("other \($0)") }, identifier: "other")
    for number in 1...3 { await bench.adapter.write("\(number)", push: true) }
    try await until { await heard.lines.count == 6 }
    bench.chat.listeners.remove(identifier: "other")
    await bench.adapter.write("4", push: true)
    await bench.heard.first { $0.isReceived("4") }
    try await until { await heard.lines.contains("4") }
    #expect(await heard.lines.filter { !$0.hasPrefix("other") } == ["1", "2", "3", "4"])
  }
}
