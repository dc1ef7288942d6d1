import ChatJSON
import Foundation
import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("Plan, run and report")
struct ReportTests {
  /// A destination that drops reactions and refuses one message.
  static func lossyDestination() -> MemoryService {
    let service = MemoryService(vendor: "new")
    service.state.withLock {
      $0.degrade = { record in
        guard !record.message.reactions.isEmpty else { return [] }
        record.message.reactions = []
        return [Loss(field: "message.reactions", treatment: .dropped, explanation: "no reactions")]
      }
      $0.refuse = { record in
        record.message.id == "channel 2-13" ? ChatError(.permission(), operation: .writeDestination) : nil
      }
    }
    return service
  }

  func run(_ harness: MigrationHarness, source: Bool = true) -> MigrationRun {
    MigrationRun(
      source: source ? harness.source : nil, app: "app", archive: harness.archivePath,
      destination: harness.destination, readBack: harness.destination, clock: harness.clock)
  }

  @Test("one call pulls, loads, verifies and reports, and the next one changes nothing")
  func wholeRun() async throws {
    let harness = try MigrationHarness(Self.lossyDestination())
    SampleChats.fill(harness.source)
    let report = try await run(harness).run()
    let verification = try #require(report.verification)
    #expect(verification.isEqual && !report.isPerfect)
    #expect(report.exceptions.map(\.id) == ["channel 2-13"])
    let reactions = try #require(report.fields.first { $0.field == "message.reactions" })
    #expect(reactions.dropped == reactions.present && reactions.kept == 0 && reactions.undeclared == 0)
    #expect((1...5).contains(reactions.examples.count))
    let content = try #require(report.fields.first { $0.field == "message.content" })
    #expect(content.present == 119 && content.kept == 119)
    let writes = harness.destination.writes
    #expect(try await run(harness).resume() == report.made(at: harness.clock.now))
    #expect(harness.destination.writes == writes)
    let names = try FileManager.default.contentsOfDirectory(atPath: harness.folder.path).sorted()
    #expect(
      names == ["chats.archive", "chats.archive.files", "chats.archive.new.ledger", "chats.archive.new.ledger.lock"])
  }

  @Test("the report is what its schema says")
  func schema() async throws {
    let harness = try MigrationHarness(Self.lossyDestination())
    SampleChats.fill(harness.source)
    harness.source.state.withLock { $0.files["old://note"] = nil }
    _ = try await run(harness).run()
    harness.destination.state.withLock { state in
      state.channels[1].messages.removeLast()
      state.users[0].user.name = "x"
    }
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let schema = try JSONValue(parsing: Array(Data(contentsOf: root.appending(path: "Schemas/archive.schema.json"))))
    let check = SchemaCheck(root: schema)
    let verified = try await run(harness).verify()
    #expect(!verified.unreadable.isEmpty && verified.verification?.isEqual == false)
    #expect(check.problems(verified.json()) == [])
    #expect(check.problems(try await run(harness).report().json()) == [])
    #expect(check.problems(["tool": 1]).contains("/tool: no string"))
  }

  @Test("no text of a page can become markup")
  func escaping() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    harness.source.state.withLock { state in
      state.channels[0].messages[0].message.id = "<script>alert(1)</script> | x"
      state.channels[0].messages[1].message.replyTo = nil
    }
    harness.destination.state.withLock {
      $0.refuse = { record in
        record.message.id?.rawValue.hasPrefix("<") == true
          ? ChatError(.permission(), operation: .writeDestination) : nil
      }
    }
    let report = try await run(harness).run()
    #expect(!report.html().contains("<script>"))
    #expect(report.html().contains("&lt;script&gt;"))
    #expect(report.markdown().contains("\\| x"))
  }

  @Test("a plan writes nothing and predicts what the run does")
  func plan() async throws {
    let harness = try MigrationHarness(Self.lossyDestination())
    SampleChats.fill(harness.source)
    let plan = try await run(harness).plan()
    #expect(harness.destination.writes == 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: harness.folder.path).isEmpty)
    #expect(plan.users == 10 && plan.channels == 4 && plan.messages == 120)
    #expect(plan.channelsByKind == ["group": 3, "direct": 1])
    #expect(plan.estimate > .zero)
    let report = try await run(harness).run()
    #expect(report.archiveCounts.messages == plan.messages && report.archiveCounts.users == plan.users)
    let dropped = report.fields.first { $0.field == "message.reactions" }?.dropped
    #expect(plan.losses.first { $0.loss.field == "message.reactions" }?.count == dropped)
    let second = try await run(harness, source: false).plan()
    #expect(second.messages == plan.messages && second.losses == plan.losses && second.requests == plan.requests)
    #expect(second.fields == plan.fields)
  }

  @Test("a plan tells field by field what the report tells afterwards, as JSON, Markdown and one page of HTML")
  func planByField() async throws {
    let harness = try MigrationHarness(Self.lossyDestination())
    // What a destination refuses nobody knows before.
    harness.destination.state.withLock { $0.refuse = nil }
    SampleChats.fill(harness.source)
    harness.source.state.withLock { state in
      state.rows = [VendorRow(kind: "de<vices", id: "1", raw: JSONText(unchecked: "{}"))]
      state.leftOut = ["statistics"]
    }
    // From the archive, which knows what is not carried.
    try await harness.pull().close()
    let plan = try await run(harness, source: false).plan()
    let report = try await run(harness).run()
    func counts(_ fields: [FidelityReport.Field]) -> [[String]] {
      fields.filter { $0.field.hasPrefix("message.") }.map { field in
        [field.field] + [field.present ?? -1, field.keptElsewhere, field.degraded, field.dropped].map(String.init)
      }
    }
    #expect(counts(plan.fields) == counts(report.fields) && plan.fields.count > 5)
    #expect(plan.fields.contains { $0.dropped > 0 && $0.kept == ($0.present ?? 0) - $0.dropped })
    #expect(plan.json()["fields"]?.array?.count == plan.fields.count)
    let schema = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(
      path: "../../Schemas/plan.schema.json")
    #expect(SchemaCheck(root: try JSONValue(parsing: Array(Data(contentsOf: schema)))).problems(plan.json()) == [])
    for page in [plan.markdown(), plan.html()] {
      for word in plan.fields.map(\.field) + ["Nothing has been written", "Migration plan", "statistics"] {
        #expect(page.contains(word), "\(word)")
      }
    }
    #expect(plan.markdown().contains("de<vices") && plan.html().contains("de&lt;vices"))
  }

  @Test("a plan goes by the mapping of users: ids, mentions in texts, and whom it would melt into one", arguments: [true, false])
  func planWithMapping(fromArchive: Bool) async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    harness.source.state.withLock { state in
      state.channels[0].messages[10].message.content = .text("hello @user-1 and @user-10")
      state.channels[0].messages[10].message.mentions = Mentions(users: ["user-1"])
    }
    func run(_ mapping: UserMapping) -> MigrationRun {
      var options = MigrationOptions()
      options.load.users = mapping
      return MigrationRun(
        source: fromArchive ? nil : harness.source, archive: harness.archivePath, destination: harness.destination,
        readBack: harness.destination, ledger: harness.ledgerPath, options: options, clock: harness.clock)
    }
    if fromArchive { try await harness.pull().close() }
    var mapping = UserMapping(
      explicit: ["user-5": "five"], rule: try UserMapping.Rule(pattern: "^user-([0-4])$", template: "u"))
    let melting = try await run(mapping).plan()
    #expect(melting.collisions.map(\.destination) == ["u"])
    #expect(melting.collisions.first?.originals == ["user-0", "user-1", "user-2", "user-3", "user-4"])
    #expect(melting.words().contains("user-0 and user-1") && melting.html().contains("A run would be refused"))
    #expect(melting.json()["collisions"]?[0]?["destination"]?.string == "u")
    mapping.rule = try UserMapping.Rule(pattern: "^user-([0-4])$", template: "u$1")
    let plan = try await run(mapping).plan()
    #expect(plan.collisions.isEmpty && plan.losses.first { $0.loss == .mappedUser }?.count == 6)
    #expect(plan.losses.first { $0.loss == .rewrittenMention }?.count == 1)
    #expect(harness.destination.writes == 0)
    var options = MigrationOptions()
    options.load.users = mapping
    let report = try await MigrationRun(
      source: harness.source, archive: harness.archivePath, destination: harness.destination,
      readBack: harness.destination, ledger: harness.ledgerPath, options: options, clock: harness.clock
    ).run()
    for name in ["user.id", "message.content.text"] {
      let (before, after) = (plan.fields.first { $0.field == name }, report.fields.first { $0.field == name })
      #expect(before?.degraded == after?.degraded && before?.keptElsewhere == after?.keptElsewhere && after != nil, "\(name)")
    }
  }

  @Test("a plan names what exceeds a limit")
  func overLimit() async throws {
    let harness = try MigrationHarness(MemoryService(vendor: "new", userIDBytes: 5))
    SampleChats.fill(harness.source)
    let plan = try await run(harness).plan()
    #expect(plan.overLimit.map(\.count) == [7])
  }

  @Test("progress counts up to the end of each phase")
  func progress() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let run = run(harness)
    let updates = run.progress.updates()
    let listening = Task { await updates.reduce(into: [MigrationProgress]()) { $0.append($1) } }
    _ = try await run.run()
    run.progress.finish()
    let ends = await listening.value.filter(\.isFinished)
    // A listener that is slow may miss some, never the last.
    #expect(ends.last?.phase == .verifyChannels)
    #expect(ends.allSatisfy { $0.total == nil || $0.done == $0.total })
  }

  @Test("cancelling ends the run with what is confirmed stored, and the next one ends equal")
  func cancelling() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let cancelled = run(harness)
    let task = Task { try await cancelled.run() }
    harness.destination.setFault { call, number, committed in
      if call == "putMessages", committed, number > 10 { task.cancel() }
      return nil
    }
    let error = await #expect(throws: ChatError.self) { _ = try await task.value }
    #expect(error?.kind == .cancelled)
    harness.destination.setFault(nil)
    #expect(try await run(harness).run().isPerfect)
  }
}

extension FidelityReport {
  fileprivate func made(at time: Timestamp) -> FidelityReport {
    var copy = self
    copy.createdAt = time
    return copy
  }
}
