import Foundation
import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("Loading an archive")
struct LoadTests {
  /// What an undisturbed run makes of the sample.
  static func reference(_ make: () -> MemoryService) async throws -> [String] {
    let harness = try MigrationHarness(make())
    SampleChats.fill(harness.source, messages: 15)
    try await harness.load(try await harness.pull())
    return harness.contents
  }

  @Test("all that the source had is at the destination, in order, once")
  func everything() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let archive = try await harness.pull()
    let summary = try await harness.load(archive)
    #expect(summary.counts.messages == 120 && summary.written == 120 && summary.counts.users == 10)
    #expect(summary.counts.finishedChannels == 4 && summary.counts.refused == 0)
    let result = try await harness.verify(archive)
    #expect(result.isEqual, "\(result.sentence) \(result.channels.flatMap(\.examples))")
    #expect(result.channels.allSatisfy { $0.sign == .equal && $0.digestsAreEqual })
    #expect(result.usersFound == 10)
    #expect(result.sentence.hasPrefix("The migration looks good"))
  }

  @Test("a second run writes nothing")
  func secondRun() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let archive = try await harness.pull()
    try await harness.load(archive)
    let writes = harness.destination.writes
    #expect(try await harness.load(archive).written == 0)
    #expect(harness.destination.writes == writes)
  }

  @Test("a run that is killed at any request, before or after its commit, and run again ends equal",
    arguments: [true, false])
  func killedAnywhere(idempotent: Bool) async throws {
    let make = { MemoryService(vendor: "new", idempotent: idempotent) }
    let expected = try await Self.reference(make)
    var random = SeededGenerator(seed: 20)
    for _ in 0..<20 {
      let harness = try MigrationHarness(make())
      SampleChats.fill(harness.source, messages: 15)
      let archive = try await harness.pull()
      // Killed again and again, each time a little further, until nothing is left to do.
      while true {
        let stop = harness.destination.calls + Int.random(in: 1...40, using: &random)
        let afterCommit = Bool.random(using: &random)
        harness.destination.setFault { _, number, committed in
          number >= stop && committed == afterCommit
            ? ChatError(.authentication, operation: .writeDestination, detail: "killed") : nil
        }
        do {
          try await harness.load(archive)
          break
        } catch let error as ChatError where error.detail == "killed" {}
      }
      harness.destination.setFault(nil)
      #expect(harness.contents == expected)
      #expect(try await harness.verify(archive).isEqual)
    }
  }

  @Test("cut connections, server errors and refusals for pace slow the run and do not break it")
  func faults() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let archive = try await harness.pull()
    harness.destination.setFault { call, number, committed in
      // A cut comes after the commit, before the news of it.
      if committed { return number % 7 == 3 ? ChatError(.network(.closed), operation: .writeDestination) : nil }
      if number % 5 == 0 { return ChatError(.rateLimited(retryAfter: .seconds(2)), operation: .writeDestination) }
      return number % 11 == 4 ? ChatError(.server, operation: .writeDestination, retry: .now) : nil
    }
    let before = harness.clock.now
    let summary = try await harness.load(archive)
    harness.destination.setFault(nil)
    #expect(summary.counts.messages == 120 && summary.slowDowns > 3)
    #expect(harness.clock.now - before >= .seconds(2))
    let result = try await harness.verify(archive)
    #expect(result.isEqual, "\(result.sentence)")
  }

  @Test("a lost ledger does not double what is there")
  func lostLedger() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let archive = try await harness.pull()
    try await harness.load(archive)
    for name in ["", "-wal", "-shm", ".lock"] {
      try? FileManager.default.removeItem(atPath: harness.ledgerPath + name)
    }
    #expect(try await harness.load(archive).written == 0)
    #expect(try await harness.verify(archive).isEqual)
  }

  @Test("a refused message is listed and the others cross")
  func refused() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    harness.destination.state.withLock {
      $0.refuse = { record in
        record.message.id == "channel 2-13"
          ? ChatError(.tooLarge(limit: 5, unit: .bytes), operation: .writeDestination) : nil
      }
    }
    let archive = try await harness.pull()
    let summary = try await harness.load(archive)
    #expect(summary.counts.messages == 119 && summary.counts.refused == 1)
    let result = try await harness.verify(archive)
    #expect(result.isEqual && result.totals.excepted == 1 && result.totals.missing == 0)
    #expect(result.sentence.contains("1 listed as refused"))
  }

  @Test("one message that fails its whole batch is found and listed")
  func poisonedBatch() async throws {
    let harness = try MigrationHarness(Poisoned.destination())
    SampleChats.fill(harness.source)
    let archive = try await harness.pull()
    let ledger = try SQLiteLedger(at: harness.ledgerPath)
    let destination = Poisoned(inner: harness.destination, message: "channel 0-17")
    let loader = Loader(archive: archive, destination: destination, ledger: ledger, clock: harness.clock)
    let summary = try await loader.run()
    #expect(summary.counts.messages == 119)
    #expect(try await ledger.exceptions(after: 0, limit: 9).map(\.id) == ["channel 0-17"])
  }

  @Test("users whose ids are too long, refused or collide stay different users")
  func userIDs() async throws {
    let harness = try MigrationHarness(MemoryService(vendor: "new", userIDBytes: 5))
    SampleChats.fill(harness.source)
    let archive = try await harness.pull()
    let summary = try await harness.load(archive)
    #expect(summary.counts.users == 10)
    let ids = harness.destination.state.withLock { $0.users.map(\.user.id) }
    #expect(Set(ids).count == 10 && ids.allSatisfy { $0.rawValue.utf8.count <= 5 })
    #expect(summary.losses.contains { $0.loss.field == "user.id" && $0.count == 7 })
    #expect(try await harness.verify(archive).isEqual)
  }

  @Test("a map chosen by hand is obeyed")
  func explicitMap() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let archive = try await harness.pull()
    try await harness.load(archive, LoadOptions(users: UserMapping(explicit: ["user-1": "alice"])))
    #expect(harness.destination.state.withLock { $0.users.contains { $0.user.id == "alice" } })
    #expect(try await harness.verify(archive).isEqual)
  }

  @Test("two direct channels of one pair stay two")
  func repeatedDirect() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source, channels: 6)
    let archive = try await harness.pull()
    let summary = try await harness.load(archive)
    #expect(summary.counts.channels == 6 && summary.counts.messages == 180)
    #expect(summary.losses.contains { $0.loss == .repeatedDirectChannel && $0.count == 1 })
    #expect(try await harness.verify(archive).isEqual)
  }

  @Test("a ledger of another archive is refused, and so is a second run at the same time")
  func wrongLedger() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let archive = try await harness.pull()
    let ledger = try SQLiteLedger(at: harness.ledgerPath)
    try await ledger.bind(archive: "else", vendor: "old", destination: "new", rules: "")
    await #expect(throws: ChatError.self) {
      _ = try await Loader(archive: archive, destination: harness.destination, ledger: ledger).run()
    }
    let error = #expect(throws: ChatError.self) { _ = try SQLiteLedger(at: harness.ledgerPath) }
    #expect(error?.kind == .storage(.busy))
  }

  @Test("an archive that is not complete is not loaded")
  func incomplete() async throws {
    let harness = try MigrationHarness()
    let identity = Archive.Identity(id: "77", vendor: "old", createdAt: harness.clock.now)
    let archive = try Archive.create(at: harness.archivePath, identity)
    let error = await #expect(throws: ChatError.self) { try await harness.load(archive) }
    #expect(error?.kind == .conflict)
    #expect(harness.destination.writes == 0)
  }
}
