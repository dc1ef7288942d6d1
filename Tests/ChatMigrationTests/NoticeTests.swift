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
