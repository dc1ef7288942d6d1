import ChatCache
import Testing
import UnifiedChat

@testable import ChatClient

@Suite("What users of other clients ran into", .serialized, .timeLimit(.minutes(1)))
struct FieldReportTests {
  @Test("five times in the background and back, and one send is one new message in every list")
  func background() async throws {
    let bench = try await Bench { adapter in for number in 1...5 { await adapter.write("\(number)") } }
    let (list, mirror) = try await bench.list()
    for round in 1...5 {
      await bench.chat.suspend()
      await bench.heard.first { $0.kind == .connectionChanged(.suspended) }
      let before = await bench.heard.events.count { $0.isUpToDate }
      await bench.chat.resume()
      try await until { await bench.heard.events.count { $0.isUpToDate } > before }
      if round == 3 { try await bench.chat.enqueue(.text("mine"), to: "c") }
    }
    try await until {
      // A send that the suspension cut off waits before it is tried again.
      if bench.clock.nextWakeUp != nil { bench.clock.advance(by: .seconds(1)) }
      return list.items.last?.message.state == .sent
    }
    try await until { await mirror.ends(with: "mine") }
    #expect(await mirror.words == ["1", "2", "3", "4", "5", "mine"])
    // Looked at as batches: it was put in once, and changed at most from pending to sent and by an echo.
    let batches = await mirror.batches
    #expect(batches.dropFirst().flatMap(\.inserted).filter { $0 == 5 }.count == 1)
    #expect(batches.flatMap(\.updated).filter { $0 == 5 }.count <= 2)
    #expect(batches.dropFirst().flatMap(\.removed) == [])
  }

  @Test("two hundred steps back and forth over five hundred messages show each once and end with all", arguments: 0..<3)
  func randomWalk(_ seed: UInt64) async throws {
    let bench = try await Bench { adapter in for number in 1...500 { await adapter.write("\(number)") } }
    var dice = JitterSource(seed: seed)
    var shown = try await bench.chat.history(
      of: "c", HistoryQuery(anchor: .position(MessagePosition(sequence: 250)), direction: .newer, limit: 3)).messages
    for _ in 0..<200 {
      let (isOlder, limit) = (dice.next() < 0.5, 1 + Int(dice.next() * 9))
      guard let edge = (isOlder ? shown.first : shown.last)?.position else { break }
      let query = isOlder ? HistoryQuery.before(edge, limit: limit) : .after(edge, limit: limit)
      let page = try await bench.chat.history(of: "c", query).messages
      shown = isOlder ? page + shown : shown + page
    }
    while let first = shown.first?.position, first.major > 1 {
      shown = try await bench.chat.history(of: "c", .before(first, limit: 50)).messages + shown
    }
    while let last = shown.last?.position, last.major < 500 {
      shown += try await bench.chat.history(of: "c", .after(last, limit: 50)).messages
    }
    #expect(shown.map(\.words) == (1...500).map { "\($0)" })
  }

  @Test("a channel that is joined shows its history in a list that was open before, without anything done")
  func joined() async throws {
    let bench = try await Bench { adapter in
      await adapter.removeChannel("c")
      for number in 1...3 { await adapter.write("\(number)") }
    }
    let list = await bench.chat.messageCollection(in: "c")
    await #expect(throws: ChatError.self) { try await list.load() }
    await bench.adapter.addChannel("c")
    await bench.adapter.publish(
      .channelJoined(Channel(id: "c", kind: .group, name: "c", myRole: .member, myState: .joined)))
    try await until { list.items.map(\.message.words) == ["1", "2", "3"] }
    #expect(list.snapshot.problem == nil)
  }

  @Test("a page with nothing but own known messages closes no hole that the server says is there")
  func ownEchoes() async throws {
    let bench = try await Bench(options: ChatOptions(catchUpPage: 2))
    await bench.adapter.write("1", push: true)
    await bench.heard.first { $0.isReceived("1") }
    for number in 2...3 { _ = try await bench.chat.send(.text("\(number)"), to: "c") }
    await bench.adapter.cutLink()
    await bench.heard.first { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) }
    for number in 4...9 { await bench.adapter.write("\(number)") }
    let before = await bench.heard.events.count { $0.isUpToDate }
    await bench.adapter.restoreLink()
    try await until { await bench.heard.events.count { $0.isUpToDate } > before }
    #expect(try await bench.chat.history(of: "c", .newest(20)).messages.map(\.words) == (1...9).map { "\($0)" })
  }
}
