import Synchronization
import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("Reactions as messages of their own")
struct ReactionTests {
  private func run(_ harness: MigrationHarness, rereads: Bool = false) -> MigrationRun {
    harness.run(LoadRules(filter: MigrationFilter(excludedUsers: ["user-5"]), reactions: .messages), rereads: rereads)
  }

  private func reactions(_ service: MemoryService) -> [MessageRecord] {
    service.state.withLock { $0.channels.flatMap(\.messages) }.filter { $0.message.customType == "reaction" }
  }

  @Test("each answers its message, right behind it, by whom it is from, and the report says so")
  func written() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let plan = try await run(harness).plan()
    let report = try await run(harness).run()
    #expect(report.verification?.isEqual == true, "\(report.words())")
    // Messages 5, 14 and 23 of each of four channels, by two users each; one sender of them is left out.
    let field = try #require(report.fields.first { $0.field == "message.reactions" })
    let written = reactions(harness.destination)
    #expect(field.degraded * 2 == written.count && field.degraded > 8)
    #expect(plan.losses.first { $0.loss == .reactionMessages }?.count == field.degraded)
    #expect(report.load.messages == report.verification?.totals.found)
    for channel in harness.destination.state.withLock({ $0.channels }) {
      var last: MessageRecord?
      for message in channel.messages {
        #expect(message.message.reactions.isEmpty)
        guard message.message.customType == "reaction" else {
          last = message
          continue
        }
        #expect(message.message.content == .text("👍") && message.message.createdAt == last?.message.createdAt)
        #expect(message.message.replyTo?.id == last?.message.id)
      }
    }
  }

  @Test("those on a message that is refused are not written, and the report counts them")
  func refused() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    harness.destination.state.withLock { state in
      state.refuse = { record in
        guard record.origin?.id == "channel 0-14" else { return nil }
        return ChatError(.tooLarge(limit: nil, unit: .bytes), operation: .writeDestination)
      }
    }
    let report = try await run(harness).run()
    let targets = reactions(harness.destination).compactMap(\.message.replyTo?.id)
    let there = Set(harness.destination.state.withLock { $0.channels.flatMap(\.messages) }.compactMap(\.message.id))
    #expect(!targets.isEmpty && targets.allSatisfy(there.contains))
    #expect(report.exceptions.contains { $0.reason == Loss.lostReactions.explanation }, "\(report.exceptions)")
  }

  @Test("a run that is killed and started again writes each once", arguments: stride(from: 8, to: 40, by: 4).map { $0 })
  func killed(_ point: Int) async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let wasHit = Mutex(false)
    harness.destination.setFault { _, number, committed in
      guard number >= point, committed == (point % 8 == 0), !wasHit.withLock({ $0 }) else { return nil }
      wasHit.withLock { $0 = true }
      return ChatError(.cancelled, operation: .writeDestination)
    }
    do { _ = try await run(harness).run() } catch { #expect(error.kind == .cancelled) }
    #expect(wasHit.withLock { $0 })
    harness.destination.setFault(nil)
    #expect(try await run(harness).run().verification?.isEqual == true)
    let fresh = try MigrationHarness()
    SampleChats.fill(fresh.source)
    _ = try await run(fresh).run()
    #expect(harness.contents == fresh.contents)
  }

  @Test("late ones whose answer is lost are there once")
  func lateAndLost() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    _ = try await run(harness).run()
    harness.source.state.withLock { state in
      state.channels[0].messages[14].message.reactions = [Reaction(key: "好", users: ["user-1", "user-2"])]
    }
    // The first message that the second run writes is stored, and its answer lost.
    let isFirst = Mutex(true)
    harness.destination.setFault { operation, _, committed in
      guard operation == "putMessages", committed, isFirst.withLock({ $0 }) else { return nil }
      isFirst.withLock { $0 = false }
      return ChatError(.timeout, operation: .writeDestination)
    }
    let report = try await run(harness, rereads: true).run()
    #expect(!isFirst.withLock { $0 })
    #expect(report.verification?.isEqual == true, "\(report.words())")
    #expect(reactions(harness.destination).count { $0.message.content == .text("好") } == 2)
  }

  @Test("one that is taken back later goes, a new one comes, and one that goes missing is found")
  func changed() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    _ = try await run(harness).run()
    let before = reactions(harness.destination).count
    harness.source.state.withLock { state in
      state.channels[0].messages[14].message.reactions = [
        Reaction(key: "👍", users: ["user-0"]), Reaction(key: "好", users: ["user-2"]),
      ]
      state.channels[2].messages[23].message.reactions = []
    }
    let report = try await run(harness, rereads: true).run()
    #expect(report.verification?.isEqual == true, "\(report.words())")
    let now = reactions(harness.destination)
    #expect(now.count == before - 2 && now.contains { $0.message.content == .text("好") })
    harness.destination.state.withLock { state in
      let index = state.channels[0].messages.firstIndex { $0.message.customType == "reaction" } ?? 0
      state.channels[0].messages.remove(at: index)
    }
    let verified = try await run(harness).verify()
    #expect(verified.verification?.totals.missing == 1 && verified.verification?.isEqual == false)
  }

  @Test("rules of a ledger from before there was a choice are the same rules")
  func older() {
    let rules = LoadRules(roles: ["admin": "owner"])
    #expect(!rules.text.contains("reactions"))
    #expect(LoadRules(reactions: .messages).text.contains(#""reactions":"messages""#))
  }
}
