import Synchronization
import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("Notices of the service")
struct NoticeTests {
  private func isNotice(_ content: MessageContent) -> Bool { if case .system = content { true } else { false } }

  @Test(
    "are kept, put into words or left out, as wanted; the report counts them, and so does the plan",
    arguments: LoadRules.SystemMessages.allCases)
  func chosen(_ choice: LoadRules.SystemMessages) async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let wanted = harness.source.state.withLock { $0.channels.flatMap(\.messages) }
    let notices = wanted.filter { isNotice($0.message.content) }
    #expect(notices.count > 4)
    let rules = LoadRules(system: choice)
    let plan = try await harness.run(rules).plan()
    let report = try await harness.run(rules).run()
    #expect(report.verification?.isEqual == true, "\(report.words())")
    let written = harness.destination.state.withLock { $0.channels.flatMap(\.messages) }
    let kept = written.filter { isNotice($0.message.content) }
    switch choice {
    case .notice:
      #expect(kept.count == notices.count && written.count == wanted.count)
    case .text:
      let texts = Set(notices.compactMap(\.message.id?.rawValue))
      let there = written.filter { texts.contains($0.origin?.id ?? "") }
      #expect(kept.isEmpty && written.count == wanted.count && there.count == notices.count)
      #expect(there.allSatisfy { $0.message.content == .text("user-1 joined") }, "\(there.map(\.message.content))")
      #expect(report.fields.contains { $0.field == "message.content" && $0.degraded == notices.count })
      #expect(plan.losses.first { $0.loss == .noticeInWords }?.count == notices.count)
    case .drop:
      #expect(kept.isEmpty && written.count == wanted.count - notices.count)
      #expect(plan.messages == written.count && plan.leftOut == notices.count)
      #expect(report.load.messages == written.count)
    }
    // A later run goes by the same rules, and has nothing to do.
    let again = try await harness.run(rules, rereads: true).run()
    #expect(again.verification?.isEqual == true)
    #expect(harness.destination.state.withLock { $0.channels.flatMap(\.messages).count } == written.count)
  }

  @Test("are counted alike wherever a run was killed and started again", arguments: 2..<14)
  func killed(_ point: Int) async throws {
    func losses(killedAt point: Int?) async throws -> [CountedLoss] {
      let harness = try MigrationHarness()
      SampleChats.fill(harness.source, channels: 2)
      let archive = try await harness.pull()
      let wasHit = Mutex(point == nil)
      harness.destination.setFault { _, number, committed in
        guard committed, number >= point ?? .max, !wasHit.withLock({ $0 }) else { return nil }
        wasHit.withLock { $0 = true }
        return ChatError(.cancelled, operation: .writeDestination)
      }
      let options = LoadOptions(rules: LoadRules(system: .text))
      if point != nil { await #expect(throws: ChatError.self) { try await harness.load(archive, options) } }
      let summary = try await harness.load(archive, options)
      #expect(wasHit.withLock { $0 })
      return summary.losses.filter { $0.loss == .noticeInWords }
    }
    let fresh = try await losses(killedAt: nil)
    #expect(fresh.map(\.count) == [6])
    #expect(try await losses(killedAt: point).map(\.count) == [6])
  }

  @Test("of somebody who gets the id of another are put into words where that other is left out")
  func mapped() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source, channels: 1)
    harness.source.state.withLock { state in
      for index in state.channels[0].messages.indices { state.channels[0].messages[index].message.sender = "user-1" }
    }
    let rules = LoadRules(filter: MigrationFilter(excludedUsers: ["old"]), system: .text)
    let mapping = UserMapping(explicit: ["user-1": "old"])
    let archive = try await harness.pull()
    let summary = try await harness.load(archive, LoadOptions(users: mapping, rules: rules))
    let written = harness.destination.state.withLock { $0.channels.flatMap(\.messages) }
    #expect(written.count == 30 && !written.contains { isNotice($0.message.content) })
    #expect(summary.losses.first { $0.loss == .noticeInWords }?.count == 3)
    #expect(written.count { $0.message.content == .text("old joined") } == 3)
  }

  @Test("say who did what to whom", arguments: [
    (SystemNotice(kind: "memberJoined", subjects: ["ann", "ben"]), "ann, ben joined"),
    (SystemNotice(kind: "memberJoined", actor: "eve", subjects: ["ann"]), "ann joined (by eve)"),
    (SystemNotice(kind: "memberLeft", actor: "ann", subjects: ["ann"]), "ann left"),
    (SystemNotice(kind: "memberLeft", actor: "ann"), "ann left"),
    (SystemNotice(kind: "channelCreated", actor: "ann"), "The channel was made by ann"),
    (SystemNotice(kind: "channelChanged"), "The channel was changed"),
    (SystemNotice(kind: "memberJoined"), "[memberJoined]"),
    (SystemNotice(kind: "other", actor: "ann"), "[other] ann"),
    (SystemNotice(kind: "other", actor: "ann", text: "said"), "said"),
  ])
  func words(_ notice: SystemNotice, _ words: String) { #expect(notice.words == words) }

  @Test("the rules of a ledger remember the choice, and older ones know none")
  func remembered() {
    #expect(LoadRules(system: .text).text.contains(#""system":"text""#))
    #expect(LoadRules().text.isEmpty && !LoadRules(reactions: .messages).text.contains("system"))
  }
}
