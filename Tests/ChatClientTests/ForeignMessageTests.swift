import Testing
import UnifiedChat

@testable import ChatCache
@testable import ChatClient

@Suite("A message that is not for this user", .timeLimit(.minutes(1)))
struct ForeignMessageTests {
  private func isDescribed(_ channel: ChannelID, _ bench: Bench) async -> Bool {
    guard await bench.adapter.journal.contains("channel \(channel)") else { return false }
    return await bench.chat.held.isEmpty
  }

  private func texts(_ bench: Bench) async throws -> [String] {
    let cache = try #require(await bench.chat.cache)
    return try cache.read { session throws(ChatError) in try session.search(CacheSearch("for")) }.items.map(\.words)
  }

  @Test("of a channel that they left is neither told nor kept; what was there before stays")
  func left() async throws {
    let bench = try await Bench()
    await bench.adapter.addChannel("old")
    await bench.adapter.write("for all", in: "old", push: true)
    await bench.heard.first { $0.isReceived("for all") }
    await bench.adapter.removeChannel("old")
    await bench.adapter.publish(.channelLeft("old", .removed(by: "bob")))
    await bench.heard.first { if case .channelLeft("old", _) = $0.kind { true } else { false } }
    await bench.adapter.clearJournal()
    await bench.adapter.write("for others", in: "old", push: true)
    try await until { await isDescribed("old", bench) }
    await bench.adapter.write("for me", push: true)
    await bench.heard.first { $0.isReceived("for me") }
    try await until { try await texts(bench) == ["for me", "for all"] }
    #expect(await !bench.heard.events.contains { $0.isReceived("for others") })
    #expect(Set(try await bench.chat.cachedChannels().map(\.id)) == ["c", "d"])
  }

  @Test("of a channel that nobody knows is thrown away; one that the server does not tell of just now is shown")
  func unknown() async throws {
    let bench = try await Bench()
    await bench.adapter.write("for nobody", in: "foreign", push: true)
    try await until { await isDescribed("foreign", bench) }
    await bench.adapter.refuseChannel(ChatError(.network(.closed), operation: .fetchChannel))
    await bench.adapter.write("for a moment unknown", in: "new", push: true)
    await bench.heard.first { $0.isReceived("for a moment unknown") }
    #expect(await !bench.heard.events.contains { $0.isReceived("for nobody") })
    #expect(try await texts(bench) == ["for a moment unknown"])
  }

  @Test("is thrown away too when it comes behind a newer one")
  func behind() async throws {
    let bench = try await Bench()
    await bench.adapter.refuseChannel(ChatError(.permission(), operation: .fetchChannel))
    let late = await bench.adapter.write("for nobody", in: "foreign")
    await bench.adapter.holdDescriptions(true)
    await bench.adapter.write("for nobody either", in: "foreign", push: true)
    await bench.adapter.publish(.messageReceived(late))
    try await until { try await texts(bench).count == 2 }
    await bench.adapter.holdDescriptions(false)
    try await until { await isDescribed("foreign", bench) }
    #expect(try await texts(bench) == [])
    #expect(await !bench.heard.events.contains { $0.kind.channel == "foreign" })
  }

  @Test("of a channel that they joined again is told, after the channel")
  func again() async throws {
    let bench = try await Bench()
    await bench.adapter.addChannel("old")
    await bench.adapter.write("for all", in: "old", push: true)
    await bench.heard.first { $0.isReceived("for all") }
    await bench.adapter.publish(.channelLeft("old", .left))
    await bench.heard.first { if case .channelLeft("old", _) = $0.kind { true } else { false } }
    await bench.adapter.write("for me again", in: "old", push: true)
    await bench.heard.first { $0.isReceived("for me again") }
    let kinds = await bench.heard.events.map(\.kind)
    let joined = try #require(kinds.lastIndex { if case .channelJoined(let channel) = $0 { channel.id == "old" } else { false } })
    let told = try #require(kinds.lastIndex { if case .messageReceived(let message) = $0 { message.channel == "old" } else { false } })
    #expect(joined < told)
  }
}
