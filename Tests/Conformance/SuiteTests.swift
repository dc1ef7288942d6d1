import ChatHarness
import ChatJSON
import Foundation
import Testing
import UnifiedChat

@testable import ChatConformance

@Suite("The suite itself")
struct SuiteTests {
  @Test("case ids are unique, and each names a group and a number")
  func ids() {
    let ids = ConformanceSuite.cases.map(\.id)
    #expect(Set(ids).count == ids.count)
    #expect(ids.count >= 30)
    for id in ids { #expect(id.wholeMatch(of: /[A-Z]+-[0-9]{2}/) != nil, "\(id)") }
  }

  @Test("the ideal service passes every case, and skips only what it declares absent")
  func ideal() async {
    let report = await ConformanceRunner().run(adapter: "ideal", target: .ideal) { IdealHarness(seed: $0) }
    for result in report.results where result.verdict.breaksRun {
      Issue.record("\(result.id) \(result.title): \(result.verdict)")
    }
    let declared = IdealHarness(seed: 1).declaredSkips
    for result in report.results {
      switch result.verdict {
      case .skip(.absent(let capability)): #expect(!report.capabilities.has(capability))
      case .skip(.rule(let rule)): #expect(declared[result.id] != nil, "\(result.id) is skipped: \(rule)")
      case .skip(.noHook(let hook)): #expect(Self.missingHooks.contains(hook), "\(result.id) needs \(hook)")
      case .skip(.profile): #expect(ConformanceSuite.cases.first { $0.id == result.id }?.tags.contains(.stress) == true)
      case .pass, .passDeclared: #expect(declared[result.id] == nil, "\(result.id) runs on the model")
      case .fail, .error, .knownFailure, .unexpectedPass, .flaky: break
      }
    }
  }

  /// What a service without a wire, that answers at once, cannot do.
  static let missingHooks: Set<String> = [
    "wire", "tls", "file", "goaway", "http", "journal", "member", "refuseConnections", "reorder", "restart",
    "setting.retention", "stall", "virtualTime", "delay", "beforeReply", "clock.server", "disableUser",
  ]

  @Test("every capability that can be called is needed or looked at by a case")
  func capabilities() {
    // Not part of a face of the contract: an adapter that declares one shows it in its own tests.
    let withoutCall: Set<Capability> = [
      .channelBurnDuration, .fileResume, .contactFriends,
      .storageEncryptedAtRest, .sourceDelta,
    ]
    // Cases that need something else look closer where these are declared.
    let lookedAt: Set<Capability> = [
      .channelGroup, .messageRecallTombstone, .messageClientID, .destinationTime, .presenceSubscribe, .unreadSendClears,
      .messageMerge, .messageDeleteForMe, .channelDraft, .receiptGroupReaders, .searchLocal, .messageLocalExtension,
    ]
    let shown = Set(ConformanceSuite.written.flatMap(\.needs)).union(lookedAt)
    for capability in Capability.allCases where !shown.contains(capability) {
      #expect(withoutCall.contains(capability), "no case is about \(capability.rawValue)")
    }
  }

  @Test("a level leaves out what it says, and a named case runs at any level")
  func levels() {
    let stress = ConformanceCase("CONN-98", "t", .s1, tags: [.stress]) { _ in }
    let small = ConformanceCase("CONN-99", "t", .s2) { _ in }
    var options = ConformanceOptions(level: .full)
    #expect(options.levelSkip(stress) == .profile("full") && options.levelSkip(small) == nil)
    options.level = .quick
    #expect(options.levelSkip(stress) == .profile("quick") && options.levelSkip(small) == .profile("quick"))
    options.cases = ["CONN-98"]
    #expect(options.levelSkip(stress) == nil)
  }

  @Test("a known failure is put up with until its day, and its passing is told")
  func knownFailures() async {
    let failing = ConformanceCase("CONN-98", "t", .s1) { try $0.expect(false, "true") }
    let passing = ConformanceCase("CONN-99", "t", .s1) { _ in }
    let entries = [("CONN-98", "9999-01-01"), ("CONN-99", "9999-01-01")].map {
      KnownFailure(adapter: "ideal", id: $0.0, issue: "#1", until: $0.1)
    }
    var options = ConformanceOptions(knownFailures: entries)
    let report = await ConformanceRunner(options: options, cases: [failing, passing]).run(
      adapter: "ideal", target: .ideal
    ) { IdealHarness(seed: $0) }
    #expect(report.results.map(\.verdict.name) == ["xfail", "xpass"])
    #expect(report.failed)
    options.knownFailures[0].until = "2020-01-01"
    let late = await ConformanceRunner(options: options, cases: [failing]).run(adapter: "ideal", target: .ideal) {
      IdealHarness(seed: $0)
    }
    #expect(late.results.map(\.verdict.name) == ["fail"])
  }

  @Test("a case that meets a declared difference says so, and one that skips by itself names the reason")
  func verdicts() async {
    let cases = [
      ConformanceCase("CONN-97", "t", .s1) { context in
        try context.expect(!context.differs(.usersNeedNoRegistration), "the model itself differs in nothing")
      },
      ConformanceCase("CONN-99", "t", .s1, tags: [.wire]) { _ in },
    ]
    let report = await ConformanceRunner(cases: cases).run(adapter: "ideal", target: .ideal) { IdealHarness(seed: $0) }
    #expect(report.results.map(\.verdict) == [.pass, .skip(.noHook("wire"))])
  }

  @Test("a case that gives up on its way fails, unless its skip is declared, and then the report says why")
  func declaredSkips() async {
    let cases = ["CONN-98", "LIMIT-01"].map { id in
      ConformanceCase(id, "t", .s1, needs: [.channelGroup]) { _ in throw CaseSkip(reason: .rule("x")) }
    }
    let report = await ConformanceRunner(cases: cases).run(adapter: "ideal", target: .ideal) { IdealHarness(seed: $0) }
    #expect(report.results.map(\.verdict.name) == ["fail", "skip"])
    #expect(TextReport.explanation(report.results[0].verdict).contains("channel.group"))
    #expect(TextReport.make([report]).contains("LIMIT-01: the model has no limits"))
  }

  @Test(
    "random scripts with faults agree with the model",
    arguments: [("ideal", nil), ("sendbird", nil), ("openim", nil), ("leancloud", "session")] as [(String, String?)])
  func model(vendor: String, model: String?) async throws {
    for seed in [1, 2] as [UInt64] {
      let run = ModelRun(seed: seed) { seed in
        if vendor == "ideal" { return IdealHarness(seed: seed) }
        return try await EmulatorHarness(vendor: vendor, model: model, target: .inproc, seed: seed)
      }
      // The seed says it all; a search for a shorter script, each try a whole run, would seem to have no end.
      let divergence = try await run.check(.random(steps: 120, seed: seed), shrinks: false)
      #expect(divergence == nil, "\(divergence.map(String.init(describing:)) ?? "")")
    }
  }

  @Test("a wrong script shrinks to the step that shows it")
  func shrinking() async throws {
    let run = ModelRun(seed: 1) { LosingHarness(base: IdealHarness(seed: $0)) }
    let divergence = try await run.check(.random(steps: 60, seed: 7))
    let steps = try #require(divergence).script.steps
    #expect(steps.count <= 2, "\(steps)")
  }

  @Test("a run has the same verdicts as JSON, JUnit, HTML and text")
  func reports() async throws {
    let report = AdapterReport(
      adapter: "a<b", target: .inproc, capabilities: CapabilitySet([:]),
      results: [
        CaseResult(
          id: "SEND-01", title: "t & t", severity: .s1,
          verdict: .fail(CaseFailure(expected: "1", observed: "<2>", place: "SEND-01 step 1")), milliseconds: 5,
          replay: "again"),
        CaseResult(
          id: "SEND-02", title: "u", severity: .s2, verdict: .skip(.absent(.typing)), milliseconds: 0, replay: "again"),
      ])
    let json = JSONReport.make([report], seed: 1, started: Timestamp(milliseconds: 0), milliseconds: 5)
    #expect(json["adapters"]?[0]?["totals"]?["fail"]?.int == 1)
    #expect(json["adapters"]?[0]?["cases"]?[1]?["skip"]?.string == "absent(typing)")
    let junit = JUnitReport.make([report])
    #expect(junit.contains(#"failures="1""#) && junit.contains("a&lt;b") && junit.contains("&lt;2&gt;"))
    let html = HTMLReport.make([report], title: "x")
    #expect(html.contains("a&lt;b") && !html.contains("<2>") && html.contains("<code>again</code>"))
    #expect(TextReport.make([report]).contains("again: again"))
    #expect(report.failed)
  }
}

/// A service that loses every message whose text ends in 5.
private struct LosingHarness: ConformanceHarness {
  let base: IdealHarness

  var target: ConformanceTarget { base.target }
  var capabilities: CapabilitySet { base.capabilities }
  var clock: any ChatClock { base.clock }
  var seed: UInt64 { base.seed }
  var faults: (any FaultControl)? { base.faults }

  func makeUser(_ name: String) async throws -> TestUser { try await base.makeUser(name) }
  func issueCredential(for user: UserID) async throws -> Credential { try await base.issueCredential(for: user) }
  func makeAdapter(_ device: TestDevice) async throws -> any ChatAdapter { try await base.makeAdapter(device) }
  func makeDestination() async throws -> any ChatDestination { try await base.makeDestination() }
  func settle() async { await base.settle() }
  func pass(_ duration: Duration) async { await base.pass(duration) }
  func cleanUp() async { await base.cleanUp() }

  func makeSource() async throws -> any ChatSource { LosingSource(inner: try await base.makeSource()) }
}

private struct LosingSource: ForwardingSource {
  let inner: any ChatSource

  func messages(in channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MessageRecord> {
    var page = try await inner.messages(in: channel, after: cursor)
    page.items.removeAll { $0.message.content.searchableText?.hasSuffix("5") ?? false }
    return page
  }
}

@Suite("Old files in the suite")
struct OldCacheTests {
  @Test("are those of the golden folder, all of them", arguments: OldCaches.versions)
  func golden(_ version: Int) throws {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let golden = try Data(contentsOf: folder.appendingPathComponent("Golden/cache/version-\(version).sqlite"))
    #expect(try #require(OldCaches.bytes(version: version)) == Array(golden))
  }
}
