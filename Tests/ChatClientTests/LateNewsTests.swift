import ChatCache
import Testing
import UnifiedChat

@testable import ChatClient

@Suite("A connect whose events are read late", .serialized, .timeLimit(.minutes(1)))
struct LateEventTests {
  @Test("is up to date, however late its own events come", arguments: [
    [ConnectionState.connecting, .connected],
    [.reconnecting(attempt: 1), .connected],
    [.refused(.protocolRefused), .connecting, .connected],
  ])
  func late(_ states: [ConnectionState]) async throws {
    let bench = try await Bench(connects: false)
    await bench.adapter.holdChannels(true)
    _ = try await bench.chat.connect(as: "alice", credential: .none)
    // As if the pump had not read them before `connect` returned.
    for state in states { await bench.chat.connectionChanged(to: state) }
    await bench.adapter.holdChannels(false)
    await bench.heard.first { $0.isUpToDate }
    #expect(await bench.chat.isOnline)
    await bench.adapter.write("1", push: true)
    await bench.heard.first { $0.isReceived("1") }
  }
}

@Suite("A channel list on its way", .serialized, .timeLimit(.minutes(1)))
struct ListOnItsWayTests {
  @Test("takes away no channel that was joined after it was asked for, and each that was not", arguments: [true, false])
  func joined(afterAsking: Bool) async throws {
    let bench = try await Bench(connects: false)
    let joined = Channel(id: "new", kind: .group, name: "new", myRole: .member, myState: .joined)
    if afterAsking {
      // Known as joined from before, so that the list alone would take it away.
      try await bench.chat.open(for: "alice")
      _ = await bench.chat.stored(ChatEvent(.channelJoined(joined)))
    }
    await bench.adapter.holdChannels(true)
    _ = try await bench.chat.connect(as: "alice", credential: .none)
    while await !bench.adapter.isHolding { await Task.yield() }
    if afterAsking { _ = await bench.chat.stored(ChatEvent(.channelJoined(joined))) }
    await bench.adapter.holdChannels(false)
    await bench.heard.first { $0.isUpToDate }
    if !afterAsking {
      _ = await bench.chat.stored(ChatEvent(.channelJoined(joined)))
      await bench.chat.startSync()
      await bench.heard.first { if case .channelLeft("new", _) = $0.kind { true } else { false } }
    }
    let known = try await bench.chat.cachedChannels(ChannelQuery())
    #expect(known.contains { $0.id == joined.id } == afterAsking)
  }
}

@Suite("A message that is shown before it is pushed", .serialized, .timeLimit(.minutes(1)))
struct ShownFirstTests {
  @Test("by a page of history, is told as received once, when its push comes")
  func page() async throws {
    let bench = try await Bench()
    await bench.adapter.write("1", push: true)
    await bench.heard.first { $0.isReceived("1") }
    let behind = await bench.adapter.write("2")
    let late = await bench.adapter.write("3")
    // Nothing of the cache answers this one.
    let query = HistoryQuery(anchor: .position(MessagePosition(sequence: 2)), direction: .newer, limit: 5, isInclusive: true)
    _ = try await bench.chat.message(try #require(behind.id), in: "c")
    _ = try await bench.chat.message(try #require(late.id), in: "c")
    _ = try await bench.chat.history(of: "c", query)
    for _ in 1...2 { for message in [behind, late] { await bench.adapter.publish(.messageReceived(message)) } }
    await bench.adapter.write("4", push: true)
    await bench.heard.first { $0.isReceived("4") }
    let lines = await bench.heard.lines
    #expect(lines == ["received 1", "received 2", "received 3", "received 4"])
  }

  @Test("as the newest one of its channel, is told as received, also behind a newer one")
  func preview() async throws {
    let bench = try await Bench()
    let first = await bench.adapter.write("1")
    _ = try await bench.chat.channel("c")
    let second = await bench.adapter.write("2")
    _ = try await bench.chat.channel("c")
    await bench.adapter.publish(.messageReceived(second))
    await bench.adapter.publish(.messageReceived(first))
    await bench.adapter.write("3", push: true)
    await bench.heard.first { $0.isReceived("3") }
    #expect(await bench.heard.lines == ["received 2", "received 1", "received 3"])
  }

  @Test("by the catch-up, was told with it and is not told again")
  func catchUp() async throws {
    let bench = try await Bench()
    await bench.adapter.write("1", push: true)
    await bench.heard.first { $0.isReceived("1") }
    await bench.adapter.cutLink()
    await bench.heard.first { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) }
    let missed = await bench.adapter.write("2")
    await bench.adapter.restoreLink()
    await bench.heard.first { $0.kind == .messagesBackfilled("c", count: 1) }
    await bench.adapter.publish(.messageReceived(missed))
    await bench.adapter.write("3", push: true)
    await bench.heard.first { $0.isReceived("3") }
    #expect(await bench.heard.lines == ["received 1", "backfilled 1", "received 3"])
  }

  @Test("not at all, and heard between two losses, is not counted as missed after the second")
  func betweenLosses() async throws {
    let bench = try await Bench()
    await bench.adapter.write("1", push: true)
    await bench.heard.first { $0.isReceived("1") }
    await bench.adapter.holdHistory(true)
    await bench.adapter.cutLink()
    await bench.adapter.write("2")
    await bench.adapter.restoreLink()
    await bench.adapter.write("3", push: true)
    await bench.heard.first { $0.isReceived("3") }
    let before = await bench.heard.events.count { $0.isUpToDate }
    await bench.adapter.restoreLink()
    await bench.adapter.holdHistory(false)
    try await until { await bench.heard.events.count { $0.isUpToDate } > before }
    let lines = await bench.heard.lines
    #expect(lines == ["received 1", "received 3", "backfilled 1"])
  }
}

@Suite("A page that is read before the catch-up", .serialized, .timeLimit(.minutes(1)))
struct EarlyPageTests {
  @Test("tells what was missed, and the catch-up does not tell it again", arguments: [true, false])
  func early(_ listsNewest: Bool) async throws {
    let bench = try await Bench()
    await bench.adapter.write("1", push: true)
    await bench.heard.first { $0.isReceived("1") }
    _ = try await bench.chat.history(of: "c", .newest(5))
    await bench.adapter.cutLink()
    await bench.heard.first { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) }
    for number in 2...4 { await bench.adapter.write("\(number)") }
    await bench.adapter.holdChannels(true)
    let before = await bench.heard.events.count { $0.isUpToDate }
    await bench.adapter.restoreLink()
    try await until { await bench.adapter.isHolding }
    if listsNewest { _ = try await bench.chat.channel("c") }
    await bench.adapter.write("5", push: true)
    await bench.heard.first { $0.isReceived("5") }
    let page = try await bench.chat.history(of: "c", .after(MessagePosition(sequence: 1), limit: 3))
    #expect(page.messages.map(\.words) == ["2", "3", "4"])
    await bench.adapter.holdChannels(false)
    try await until { await bench.heard.events.count { $0.isUpToDate } > before }
    let told = await bench.heard.lines.filter { !$0.hasPrefix("updated") }
    #expect(told == ["received 1", "received 5", "backfilled 3"])
  }
}
