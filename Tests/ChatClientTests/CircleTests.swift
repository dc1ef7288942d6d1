import Testing
import UnifiedChat

@testable import ChatClient

@Suite("A server whose pages lead to one another without end", .serialized, .timeLimit(.minutes(1)))
struct CircleTests {
  private func isStandstill(_ error: any Error) -> Bool { (error as? ChatError)?.kind == .protocolViolation }

  @Test("is left with an error by a history in either direction", arguments: [HistoryQuery.Direction.older, .newer])
  func history(_ direction: HistoryQuery.Direction) async throws {
    let bench = try await Bench()
    await bench.adapter.leadInCircles(true)
    await bench.adapter.clearJournal()
    await #expect {
      let start = MessagePosition(sequence: 50)
      _ = try await bench.chat.history(
        of: "c", HistoryQuery(anchor: .position(start), direction: direction, limit: 10))
    } throws: {
      isStandstill($0)
    }
    #expect(await bench.adapter.journal.count { $0.hasPrefix("history") } < 10)
    await bench.adapter.leadInCircles(false)
    await bench.adapter.write("there", push: true)
    await bench.heard.first { $0.isReceived("there") }
  }

  @Test("is left with an error when the cache is compared with it")
  func comparison() async throws {
    let bench = try await Bench()
    await bench.adapter.leadInCircles(true)
    await bench.adapter.clearJournal()
    await #expect { _ = try await bench.chat.compareWithServer("c") } throws: { isStandstill($0) }
    #expect(await bench.adapter.journal.count { $0.hasPrefix("history") } < 10)
  }

  @Test("ends a catch-up, which says that it is not up to date; the next one goes on")
  func sync() async throws {
    let bench = try await Bench()
    await bench.adapter.write("1", push: true)
    await bench.heard.first { $0.isReceived("1") }
    await bench.adapter.cutLink()
    await bench.heard.first { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) }
    await bench.adapter.write("2")
    await bench.adapter.leadInCircles(true)
    await bench.adapter.clearJournal()
    await bench.adapter.restoreLink()
    await bench.heard.first { $0.kind == .syncChanged(.idle) }
    #expect(await bench.adapter.journal.count < 30)
    await bench.adapter.leadInCircles(false)
    let before = await bench.heard.events.count { $0.isUpToDate }
    await bench.adapter.cutLink()
    try await until { await bench.adapter.state != .connected }
    await bench.adapter.restoreLink()
    try await until { await bench.heard.events.count { $0.isUpToDate } > before }
    #expect(try await bench.chat.history(of: "c", .newest(5)).messages.map(\.words) == ["1", "2"])
  }
}
