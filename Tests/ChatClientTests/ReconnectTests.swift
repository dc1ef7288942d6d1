import ChatCache
import Testing
import UnifiedChat

@testable import ChatClient

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

  @Test("a missed message that a change of its channel showed before the link was back is told, behind newer pushes too")
  func previewWhileAway() async throws {
    let bench = try await Bench()
    await bench.adapter.write("1", push: true)
    await bench.heard.first { $0.isReceived("1") }
    await lose(bench)
    for number in 2...3 { await bench.adapter.write("\(number)") }
    await bench.adapter.holdHistory(true)
    var channel = try await bench.adapter.channel("c")
    channel.name = "renamed"
    await bench.adapter.publish(.channelChanged(channel))
    await bench.heard.first { if case .channelChanged = $0.kind { true } else { false } }
    await bench.adapter.restoreLink()
    await bench.heard.first { $0.kind == .connectionChanged(.connected) }
    await bench.adapter.write("4", push: true)
    await bench.heard.first { $0.isReceived("4") }
    await bench.adapter.holdHistory(false)
    try await until { await bench.heard.events.count { $0.isUpToDate } == 2 }
    #expect(await bench.heard.lines == ["received 1", "received 4", "backfilled 2"])
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
    let bench = try await Bench(ScriptedAdapter(hasLog: true)) { adapter in
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

  private func edited(_ message: Message) -> Message {
    var edited = message
    edited.content = .text("edited")
    edited.editedAt = Timestamp(milliseconds: 1_767_225_700_000)
    return edited
  }

  /// Three messages of which a page was read, and a log of edits.
  private func three(
    _ before: (ScriptedAdapter) async -> Void = { _ in }
  ) async throws -> (bench: Bench, page: MessagePage) {
    let bench = try await Bench(ScriptedAdapter(hasLog: true)) { adapter in
      for number in 1...3 { await adapter.write("\(number)") }
      await before(adapter)
    }
    return (bench, try await bench.chat.history(of: "c", .newest(10)))
  }

  private func secondIsEdited(_ bench: Bench) async throws {
    #expect(try await bench.chat.history(of: "c", .newest(10)).messages.map(\.words) == ["1", "edited", "3"])
  }

  @Test("an edit that comes while a log of edits begins anew is in the log or in what is read")
  func editAtNewLog() async throws {
    let (bench, page) = try await three()
    try await until { await bench.adapter.changeTokens > 0 }
    let cache = try #require(await bench.chat.cache)
    try cache.write { session throws(ChatError) in try session.setCursor("unknown by now", "changes", of: "c") }
    await lose(bench)
    await bench.adapter.editBeforeNextLog(edited(page.messages[1]))
    try await restore(bench)
    try await secondIsEdited(bench)
  }

  @Test("an edit that was made without a link is learnt, though its log was never followed before")
  func editBeforeFirstLog() async throws {
    let (bench, page) = try await three {
      await $0.refuseNextLog(ChatError(.network(.closed), operation: .changelog))
    }
    try await until { await !bench.adapter.willRefuseLog }
    await lose(bench)
    await bench.adapter.replace(edited(page.messages[1]))
    try await restore(bench)
    try await secondIsEdited(bench)
  }

  @Test("a push before the catch-up takes no token that would hide what was edited without a link")
  func pushBeforeCatchUp() async throws {
    let (bench, page) = try await three {
      await $0.refuseNextLog(ChatError(.network(.closed), operation: .changelog))
    }
    try await until { await !bench.adapter.willRefuseLog }
    await lose(bench)
    await bench.adapter.replace(edited(page.messages[1]))
    await bench.adapter.holdChannels(true)
    let before = await bench.heard.events.count { $0.isUpToDate }
    await bench.adapter.restoreLink()
    try await until { await bench.adapter.isHolding }
    let tokens = await bench.adapter.changeTokens
    await bench.adapter.write("4", push: true)
    await bench.heard.first { $0.isReceived("4") }
    // A second push, so that what the first one began has had its turn.
    await bench.adapter.write("5", push: true)
    await bench.heard.first { $0.isReceived("5") }
    #expect(await bench.adapter.changeTokens == tokens)
    await bench.adapter.holdChannels(false)
    try await until { await bench.heard.events.count { $0.isUpToDate } > before }
    #expect(
      try await bench.chat.history(of: "c", .newest(10)).messages.map(\.words) == ["1", "edited", "3", "4", "5"])
  }

  @Test("a log whose first token comes after a lost link is not believed to tell of the time without one")
  func lateFirstToken() async throws {
    let (bench, page) = try await three { await $0.holdChanges(true) }
    try await until { await bench.adapter.isHolding }
    await lose(bench)
    await bench.adapter.replace(edited(page.messages[1]))
    let before = await bench.heard.events.count { $0.isUpToDate }
    await bench.adapter.restoreLink()
    await bench.heard.first { $0.kind == .connectionChanged(.connected) }
    await bench.adapter.holdChanges(false)
    try await until { await bench.heard.events.count { $0.isUpToDate } > before }
    try await secondIsEdited(bench)
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
    let bench = try await Bench(ScriptedAdapter(hasLog: true), options: ChatOptions(catchUpPage: page)) { adapter in
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
