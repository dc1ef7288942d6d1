import ChatCache
import Testing
import UnifiedChat

@testable import ChatClient

@Suite("History through the cache", .serialized, .timeLimit(.minutes(1)))
struct HistoryTests {
  /// Pages to one end.
  private func walk(
    _ chat: Chat, _ direction: HistoryQuery.Direction, _ limit: Int
  ) async throws -> (pages: [[String]], texts: [String]) {
    var query = HistoryQuery(anchor: direction == .older ? .newest : .oldest, direction: direction, limit: limit)
    var pages: [[String]] = []
    while true {
      let page = try await chat.history(of: "c", query)
      pages.append(page.messages.map(\.words))
      guard let next = direction == .older ? page.older : page.newer else { break }
      query.anchor = .cursor(next)
      try #require(pages.count < 1000)
    }
    return (pages, direction == .older ? pages.reversed().flatMap(\.self) : pages.flatMap(\.self))
  }

  @Test("every page size in both directions gives everything once", arguments: [1, 7, 50, 100], [true, false])
  func pages(_ limit: Int, _ isForward: Bool) async throws {
    let bench = try await Bench { adapter in
      for number in 1...200 { await adapter.write("\(number)") }
    }
    let direction: HistoryQuery.Direction = isForward ? .newer : .older
    let fresh = try await walk(bench.chat, direction, limit)
    #expect(fresh.texts == (1...200).map { "\($0)" })
    // The end is known with the last full page, or by one page more.
    #expect(fresh.pages.count <= 200 / limit + 1)
    await bench.adapter.clearJournal()
    #expect(try await walk(bench.chat, direction, limit).texts == fresh.texts)
    // All of it is in the cache now.
    #expect(await bench.adapter.journal == [])
  }

  @Test("a limit above the vendor's page is filled by several requests")
  func limits() async throws {
    let bench = try await Bench { adapter in
      await adapter.limitPages(to: 20)
      for number in 1...55 { await adapter.write("\(number)") }
    }
    let page = try await bench.chat.history(of: "c", .newest(50))
    #expect(page.messages.map(\.words) == (6...55).map { "\($0)" })
    // The newest one came with the channel list.
    let journal = await bench.adapter.journal
    #expect(journal == ["history older 55 49", "history older 35 29", "history older 15 9"])
    for limit in [0, -1] {
      let error = await #expect(throws: ChatError.self) { try await bench.chat.history(of: "c", .newest(limit)) }
      #expect(error?.kind == .invalidArgument(field: "limit"))
    }
  }

  @Test("an empty channel has an end on both sides, asked once")
  func empty() async throws {
    let bench = try await Bench()
    for _ in 1...3 {
      let page = try await bench.chat.history(of: "c", .newest(10))
      #expect(page == MessagePage(messages: [], older: nil, newer: nil))
    }
    #expect(await bench.adapter.journal.count == 1)
  }

  @Test("a cached island does not hide the sea")
  func island() async throws {
    let bench = try await Bench { adapter in
      for number in 1...5 { await adapter.write("\(number)") }
    }
    _ = try await bench.chat.history(of: "c", .newest(5))
    await bench.chat.disconnect()
    for number in 6...25 { await bench.adapter.write("\(number)") }
    // Only the newest page is known behind the hole.
    let other = Chat(adapter: bench.adapter, clock: bench.clock)
    _ = try await other.connect(as: "alice", credential: .none)
    var texts: [String] = []
    var query = HistoryQuery.newest(5)
    while true {
      let page = try await other.history(of: "c", query)
      texts = page.messages.map(\.words) + texts
      guard let older = page.older else { break }
      query.anchor = .cursor(older)
    }
    #expect(texts == (1...25).map { "\($0)" })
  }

  @Test("the cached page comes while the server does not answer, and what is new comes as an event")
  func cachedFirst() async throws {
    let bench = try await Bench { adapter in
      for number in 1...30 { await adapter.write("\(number)") }
    }
    _ = try await bench.chat.history(of: "c", .newest(10))
    await bench.adapter.cutLink()
    await bench.heard.first { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) }
    for number in 31...33 { await bench.adapter.write("\(number)") }
    let offline = try await bench.chat.history(of: "c", .newest(5))
    #expect(offline.messages.map(\.words) == ["26", "27", "28", "29", "30"])
    await bench.adapter.holdHistory(true)
    await bench.adapter.restoreLink()
    await bench.heard.first { $0.kind == .connectionChanged(.connected) }
    let cached = try await bench.chat.history(of: "c", .newest(5))
    #expect(cached.messages.last?.words == "30" && cached.newer != nil)
    await bench.adapter.holdHistory(false)
    await bench.heard.first { $0.kind == .messagesBackfilled("c", count: 3) }
    try await until { await bench.heard.events.count { $0.isUpToDate } == 2 }
    let fresh = try await bench.chat.history(of: "c", .newest(5))
    #expect(fresh.messages.map(\.words) == ["29", "30", "31", "32", "33"] && fresh.newer == nil)
  }

  @Test("what is hidden or cleared never comes back")
  func hidden() async throws {
    let bench = try await Bench(ScriptedAdapter(without: [.messageDeleteForMe])) { adapter in
      for number in 1...20 { await adapter.write("\(number)") }
    }
    let all = try await bench.chat.history(of: "c", .newest(20)).messages
    try await bench.chat.deleteForMe(Array(all[5...14]))
    #expect(try await bench.chat.history(of: "c", .newest(8)).messages.map(\.words) == ["3", "4", "5", "16", "17", "18", "19", "20"])
    #expect(await !bench.adapter.journal.contains("deleteForMe"))
    await bench.adapter.publish(.historyCleared("c", upTo: MessagePosition(sequence: 17)))
    await bench.heard.first { if case .historyCleared = $0.kind { true } else { false } }
    let rest = try await bench.chat.history(of: "c", .newest(20))
    #expect(rest.messages.map(\.words) == ["18", "19", "20"] && rest.older == nil)
  }

  @Test("messages that arrive while nothing is open are there without a request")
  func arrived() async throws {
    let bench = try await Bench()
    _ = try await bench.chat.history(of: "c", .newest(5))
    for number in 1...20 { await bench.adapter.write("\(number)", push: true) }
    await bench.heard.first { $0.isReceived("20") }
    await bench.adapter.clearJournal()
    #expect(try await bench.chat.history(of: "c", .newest(30)).messages.count == 20)
    #expect(await bench.adapter.journal == [])
  }

  @Test("a foreign cursor is refused")
  func foreignCursor() async throws {
    let bench = try await Bench()
    let query = HistoryQuery(anchor: .cursor("17"), direction: .older, limit: 5)
    let error = await #expect(throws: ChatError.self) { try await bench.chat.history(of: "c", query) }
    #expect(error?.kind == .invalidArgument(field: "cursor"))
  }
}

@Suite("Comparing with the server", .serialized, .timeLimit(.minutes(1)))
struct RepairTests {
  @Test("keeps what a push brings while the server is asked, and takes away what was gone before", arguments: [true, false])
  func pushMeanwhile(_ mends: Bool) async throws {
    let bench = try await Bench { adapter in for number in 1...5 { await adapter.write("\(number)") } }
    _ = try await bench.chat.history(of: "c", .newest(10))
    await bench.adapter.remove("m2")
    await bench.adapter.holdHistory(true)
    let work = Task {
      if mends { return try await bench.chat.repair("c") }
      return try await bench.chat.compareWithServer("c").surplus.count
    }
    while await !bench.adapter.isHolding { await Task.yield() }
    // Told before the server's answer, which does not know it yet.
    let pushed = Message(
      channel: "c", id: "late", sender: "bob", position: MessagePosition(sequence: 9),
      createdAt: Timestamp(milliseconds: 1_767_225_700_000), content: .text("pushed"))
    await bench.adapter.publish(.messageReceived(pushed))
    await bench.heard.first { $0.isReceived("pushed") }
    await bench.adapter.holdHistory(false)
    #expect(try await work.value == 1)
    let kept = try await bench.chat.history(of: "c", .newest(10)).messages.map(\.words)
    #expect(kept == (mends ? ["1", "3", "4", "5", "pushed"] : ["1", "2", "3", "4", "5", "pushed"]))
  }
}
