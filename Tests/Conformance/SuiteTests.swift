import ChatJSON
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
    for result in report.results {
      if case .skip(let reason) = result.verdict, case .absent(let capability) = reason {
        #expect(!report.capabilities.has(capability))
      }
    }
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
    #expect(html.contains("a&lt;b") && !html.contains("<2>"))
    #expect(TextReport.make([report]).contains("again: again"))
    #expect(report.failed)
  }
}
