import Testing
import UnifiedChat

@testable import ChatClient

@Suite("A server whose pages lead to one another without end", .serialized, .timeLimit(.minutes(1)))
struct CircleTests {
  private func isStandstill(_ error: any Error) -> Bool { (error as? ChatError)?.kind == .protocolViolation }

  @Test("is left with an error by a history in either direction", arguments: [HistoryQuery.Direction.older, .newer])
  func history(_ direction: HistoryQuery.Direction) async throws {
    let bench = try await Bench()
    await bench.adapter.leadInCircles(Set(ScriptedAdapter.List.allCases))
    await bench.adapter.clearJournal()
    await #expect {
      let start = MessagePosition(sequence: 50)
      _ = try await bench.chat.history(
        of: "c", HistoryQuery(anchor: .position(start), direction: direction, limit: 10))
    } throws: {
      isStandstill($0)
    }
    #expect(await bench.adapter.journal.count { $0.hasPrefix("history") } < 10)
    await bench.adapter.leadInCircles([])
    await bench.adapter.write("there", push: true)
    await bench.heard.first { $0.isReceived("there") }
  }

  @Test("is left with an error when the cache is compared with it")
  func comparison() async throws {
    let bench = try await Bench()
    await bench.adapter.leadInCircles(Set(ScriptedAdapter.List.allCases))
    await bench.adapter.clearJournal()
    await #expect { _ = try await bench.chat.compareWithServer("c") } throws: { isStandstill($0) }
    #expect(await bench.adapter.journal.count { $0.hasPrefix("history") } < 10)
  }

  /// One of the lists that a catch-up reads.
  struct CatchUp: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var list: ScriptedAdapter.List
    /// What of it the adapter's journal tells.
    var asked: String
    var without: [Capability] = []
    var hasLog = false
    /// The client had a token of the log of edits before the link was lost.
    var hasToken = true
  }

  static let catchUps = [
    CatchUp(testDescription: "the channels", list: .channels, asked: "channels"),
    CatchUp(testDescription: "the messages, forward", list: .history, asked: "history newer 1 "),
    CatchUp(
      testDescription: "the messages, backward", list: .history, asked: "history older newest ",
      without: [.historyForward]),
    CatchUp(testDescription: "the log of edits", list: .changes, asked: "changes ", hasLog: true),
    CatchUp(
      testDescription: "what is read again behind a first token", list: .history, asked: "history newer 1 ",
      hasLog: true, hasToken: false),
  ]

  @Test("ends a catch-up, which says that it is not up to date; the next one goes on", arguments: catchUps)
  func sync(_ catchUp: CatchUp) async throws {
    let adapter = ScriptedAdapter(
      without: catchUp.without, emulated: [.messageIdempotentSend], hasLog: catchUp.hasLog)
    let bench = try await Bench(adapter)
    // Two, with no hole between them: a range that can be read again.
    for text in ["1", "2"] {
      await adapter.write(text, push: true)
      await bench.heard.first { $0.isReceived(text) }
    }
    if catchUp.hasLog, catchUp.hasToken {
      _ = try await bench.chat.history(of: "c", .newest(1))
      try await until { await adapter.changeTokens > 0 }
    }
    await adapter.cutLink()
    await bench.heard.first { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) }
    await adapter.write("3")
    await adapter.leadInCircles([catchUp.list])
    await adapter.clearJournal()
    await adapter.restoreLink()
    await bench.heard.first { $0.kind == .syncChanged(.idle) }
    let journal = await adapter.journal
    #expect(await !adapter.isAskedForEver)
    #expect(journal.count < 30, "\(journal)")
    // It is this list that ended it.
    #expect(journal.contains { $0.hasPrefix(catchUp.asked) }, "\(journal)")
    await adapter.leadInCircles([])
    let before = await bench.heard.events.count { $0.isUpToDate }
    await adapter.cutLink()
    try await until { await adapter.state != .connected }
    await adapter.restoreLink()
    try await until { await bench.heard.events.count { $0.isUpToDate } > before }
    #expect(try await bench.chat.history(of: "c", .newest(5)).messages.map(\.words) == ["1", "2", "3"])
  }

  @Test(
    "does not hold a message whose acknowledgement was lost: it is looked for again later, and found",
    arguments: [[], [Capability.historyForward]])
  func lookUp(without absent: [Capability]) async throws {
    let adapter = ScriptedAdapter(without: absent, emulated: [.messageIdempotentSend])
    let bench = try await Bench(adapter)
    for number in 1...3 {
      await adapter.write("\(number)", push: true)
      await bench.heard.first { $0.isReceived("\(number)") }
    }
    await adapter.leadInCircles([.history])
    await adapter.clearJournal()
    await adapter.script([.loseAnswer])
    try await bench.chat.enqueue(.text("once"), to: "c")
    // The pages of the circle are asked for by other words.
    let beginning = absent.isEmpty ? "history newer 3 " : "history older newest "
    try await bench.run {
      try await until {
        if await adapter.isAskedForEver { return true }
        return await adapter.journal.count { $0.hasPrefix(beginning) } >= 2
      }
    }
    #expect(await !adapter.isAskedForEver)
    await adapter.leadInCircles([])
    try await bench.run { try await until { try await bench.chat.unsentCount() == 0 } }
    // Where reading back found it, the page that is shown follows.
    #expect(await bench.texts() == ["1", "2", "3", "once"])
  }
}
