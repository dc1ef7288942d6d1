import ChatConformance
import ChatHarness
import Testing
import UnifiedChat

/// The whole suite on every adapter, in process and over sockets.
@Suite("Every adapter passes the suite", .serialized)
struct AdapterSuiteTests {
  struct Subject: Sendable, CustomTestStringConvertible {
    var vendor: String
    var model: String?
    var target: ConformanceTarget

    var name: String { model.map { "\(vendor)-\($0)" } ?? vendor }
    var testDescription: String { "\(name), \(target.rawValue)" }
  }

  static let subjects: [Subject] = [ConformanceTarget.inproc, .loopback].flatMap { target in
    [("sendbird", nil), ("openim", nil), ("leancloud", nil), ("leancloud", "session")].map {
      Subject(vendor: $0.0, model: $0.1, target: target)
    }
  }

  @Test("no case fails, and only what is declared absent is skipped", arguments: subjects)
  func passes(_ subject: Subject) async {
    let report = await ConformanceRunner().run(adapter: subject.name, target: subject.target) { seed in
      try await EmulatorHarness(vendor: subject.vendor, model: subject.model, target: subject.target, seed: seed)
    }
    #expect(report.results.count == ConformanceSuite.cases.count)
    for result in report.results {
      switch result.verdict {
      case .pass: break
      case .skip(.absent(let capability)):
        #expect(!report.capabilities.has(capability), "\(result.id) skips a capability that is declared")
      case .skip(.rule), .skip(.profile): break
      // The emulators have every hook that a case asks for.
      case .skip(let reason): Issue.record("\(result.id) was skipped: \(reason)")
      case .fail, .error: Issue.record("\(result.id) \(result.title): \(result.verdict); again: \(result.replay)")
      }
    }
  }
}
