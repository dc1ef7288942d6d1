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

@Suite("After a lost link", .serialized, .timeLimit(.minutes(1)))
struct ReconnectTests {
  private func lose(_ bench: Bench) async {
    await bench.adapter.cutLink()
    await bench.heard.first { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) }
  }

  private func restore(_ bench: Bench) async throws {
    let before = await bench.heard.events.count { $0.isUpToDate }
    await bench.adapter.restoreLink()
    try await until { await bench.heard.events.count { $0.isUpToDate } > before }
  }

  @Test("what was missed arrives once, in order, and not as received")
  func missed() async throws {
    let bench = try await Bench(options: ChatOptions(catchUpPage: 20))
    await bench.adapter.write("1", push: true)
    await bench.heard.first { $0.isReceived("1") }
    await lose(bench)
    for number in 2...51 { await bench.adapter.write("\(number)") }
    try await restore(bench)
    await bench.adapter.write("52", push: true)
    await bench.heard.first { $0.isReceived("52") }
    let received = await bench.heard.lines.filter { $0.hasPrefix("received") }
    #expect(received == ["received 1", "received 52"])
    let backfilled = await bench.heard.lines.filter { $0.hasPrefix("backfilled") }
    #expect(backfilled == ["backfilled 20", "backfilled 20", "backfilled 10"])
    await bench.adapter.clearJournal()
    let page = try await bench.chat.history(of: "c", .newest(52))
    #expect(page.messages.map(\.words) == (1...52).map { "\($0)" })
  }

  @Test("a link that breaks during the catch-up leaves exactly what was not fetched as a gap")
  func honestGap() async throws {
    let bench = try await Bench(options: ChatOptions(catchUpPage: 10))
    await bench.adapter.write("1", push: true)
    await bench.heard.first { $0.isReceived("1") }
    await lose(bench)
    for number in 2...51 { await bench.adapter.write("\(number)") }
    // The third page fails.
    await bench.adapter.failHistoryAfter(2, ChatError(.network(.closed), operation: .history))
    await bench.adapter.restoreLink()
    await bench.heard.first { $0.kind == .syncChanged(.idle) }
    await bench.adapter.clearJournal()
    try await lose2(bench)
    try await restore(bench)
    let asked = await bench.adapter.journal.filter { $0.hasPrefix("history") }
    #expect(asked.first == "history newer 21 10")
    #expect(try await bench.chat.history(of: "c", .newest(60)).messages.count == 51)
  }

  private func lose2(_ bench: Bench) async throws {
    let count = await bench.heard.events.count { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) }
    await bench.adapter.cutLink()
    try await until {
      await bench.heard.events.count { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) } > count
    }
  }

  @Test("pushes that overlap the catch-up leave no double")
  func overlap() async throws {
    let bench = try await Bench(options: ChatOptions(catchUpPage: 20))
    await bench.adapter.write("1", push: true)
    await bench.heard.first { $0.isReceived("1") }
    await lose(bench)
    for number in 2...40 { await bench.adapter.write("\(number)") }
    await bench.adapter.holdHistory(true)
    await bench.adapter.restoreLink()
    await bench.heard.first { $0.kind == .connectionChanged(.connected) }
    for number in 41...60 { await bench.adapter.write("\(number)", push: true) }
    await bench.heard.first { $0.isReceived("60") }
    await bench.adapter.holdHistory(false)
    try await until { await bench.heard.events.count { $0.isUpToDate } == 2 }
    let page = try await bench.chat.history(of: "c", .newest(100))
    #expect(page.messages.map(\.words) == (1...60).map { "\($0)" })
    #expect(await bench.heard.lines.count { $0.hasPrefix("received") } == 21)
  }

  @Test("own messages beyond a hole prove nothing")
  func ownEchoes() async throws {
    let bench = try await Bench()
    await bench.adapter.write("1", push: true)
    await bench.heard.first { $0.isReceived("1") }
    // Committed before the own one, its push lost with the link.
    await bench.adapter.write("lost")
    _ = try await bench.chat.send(.text("own"), to: "c")
    await lose(bench)
    try await restore(bench)
    #expect(try await bench.chat.history(of: "c", .newest(10)).messages.map(\.words) == ["1", "lost", "own"])
  }

  @Test("an edit and a recall made meanwhile are learnt as one update each")
  func changes() async throws {
    let bench = try await Bench { adapter in
      for number in 1...5 { await adapter.write("\(number)") }
    }
    let page = try await bench.chat.history(of: "c", .newest(5))
    try await until { await bench.adapter.changeTokens > 0 }
    await lose(bench)
    for time in 1...3 {
      var edited = page.messages[1]
      edited.content = .text("two \(time)")
      edited.editedAt = Timestamp(milliseconds: 1_767_225_700_000 + Int64(time))
      await bench.adapter.replace(edited)
    }
    var gone = page.messages[3]
    gone.content = .recalled(by: "bob", at: nil)
    await bench.adapter.replace(gone)
    try await restore(bench)
    let lines = await bench.heard.lines
    #expect(lines == ["updated two 3", "recalled"])
    #expect(try await bench.chat.history(of: "c", .newest(5)).messages.map(\.words) == ["1", "two 3", "3", "recalled", "5"])
  }

  @Test("channels that came and went meanwhile are told")
  func channels() async throws {
    let bench = try await Bench()
    await lose(bench)
    await bench.adapter.removeChannel("d")
    await bench.adapter.addChannel("e")
    try await restore(bench)
    let told = await bench.heard.events.compactMap { event -> String? in
      guard event.source == .catchUp else { return nil }
      switch event.kind {
      case .channelJoined(let channel): return "joined \(channel.id)"
      case .channelLeft(let channel, _): return "left \(channel)"
      default: return nil
      }
    }
    #expect(told == ["joined c", "joined d", "joined e", "left d"])
  }

  @Test("a log of edits that begins anew takes away what is gone, and nothing that is pushed while a page is under way", arguments: [1, 2, 100])
  func newLog(_ page: Int) async throws {
    let bench = try await Bench(options: ChatOptions(catchUpPage: page)) { adapter in
      for number in 1...4 { await adapter.write("\(number)") }
    }
    _ = try await bench.chat.history(of: "c", .newest(10))
    try await until { await bench.adapter.changeTokens > 0 }
    let cache = try #require(await bench.chat.cache)
    try cache.write { session throws(ChatError) in try session.setCursor("unknown by now", "changes", of: "c") }
    await lose(bench)
    await bench.adapter.holdChannels(true)
    let before = await bench.heard.events.count { $0.isUpToDate }
    await bench.adapter.restoreLink()
    try await until { await bench.adapter.isHolding }
    // From here on the channel is live.
    await bench.adapter.write("5", push: true)
    await bench.heard.first { $0.isReceived("5") }
    await bench.adapter.remove("m2")
    await bench.adapter.holdHistory(true)
    await bench.adapter.holdChannels(false)
    while await bench.heard.events.count(where: { $0.isUpToDate }) == before {
      // One before each answer, of which no answer knows.
      if await bench.adapter.isHolding {
        let number = await bench.heard.events.count + 1000
        let pushed = Message(
          channel: "c", id: MessageID("p\(number)"), sender: "bob", position: MessagePosition(sequence: Int64(number)),
          createdAt: Timestamp(milliseconds: 1_767_225_700_000), content: .text("pushed \(number)"))
        await bench.adapter.publish(.messageReceived(pushed))
        await bench.heard.first { $0.isReceived("pushed \(number)") }
        await bench.adapter.release()
      }
      try Task.checkCancellation()
      await Task.yield()
    }
    let shown = try await bench.chat.history(of: "c", .newest(100)).messages
    #expect(shown.filter(\.isRecalled).map(\.id) == ["m2"])
    #expect(shown.count { $0.words.hasPrefix("pushed") } > 1)
  }

  @Test("a read mark set offline is told to the server when the link is back, the latest only")
  func marks() async throws {
    let bench = try await Bench()
    for number in 1...3 { await bench.adapter.write("\(number)", push: true) }
    await bench.heard.first { $0.isReceived("3") }
    await lose(bench)
    try await bench.chat.markRead("c", upTo: MessagePosition(sequence: 1))
    try await bench.chat.markRead("c", upTo: MessagePosition(sequence: 2))
    try await restore(bench)
    #expect(await bench.adapter.journal.filter { $0.hasPrefix("markRead") } == ["markRead 2"])
  }

  @Test("after disconnect no event comes")
  func silence() async throws {
    let bench = try await Bench()
    await bench.chat.disconnect()
    try await until { await bench.heard.events.last?.kind == .connectionChanged(.disconnected(.requested)) }
    let count = await bench.heard.events.count
    await bench.adapter.write("late", push: true)
    await bench.adapter.publish(.typingStarted("c", "bob"))
    for _ in 1...100 { await Task.yield() }
    #expect(await bench.heard.events.count == count)
  }
}

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
