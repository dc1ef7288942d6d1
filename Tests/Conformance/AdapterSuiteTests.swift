import ChatConformance
import ChatHarness
import ChatJSON
import Foundation
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

  /// Over sockets, every run has the cases whose failure loses data; `UNIFIEDCHAT_SUITE=full` adds the others.
  static let isWhole = ProcessInfo.processInfo.environment["UNIFIEDCHAT_SUITE"] == "full"

  static let hasOpenSSL = FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl")

  /// What an adapter is known not to do yet, each with its issue and the day from which it counts.
  static let known: [KnownFailure] = {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("Golden/conformance-known-failures.json")
    // A file that cannot be read puts up with nothing, and a test says so.
    guard let data = try? Data(contentsOf: file), let list = (try? JSONValue(parsing: Array(data)))?.array else { return [] }
    return list.compactMap { entry in
      guard let adapter = entry["adapter"]?.string, let id = entry["case"]?.string, let issue = entry["issue"]?.string,
        let until = entry["until"]?.string
      else { return nil }
      return KnownFailure(adapter: adapter, id: id, issue: issue, until: until)
    }
  }()

  @Test("no case fails, and only what is declared absent is skipped", arguments: subjects)
  func passes(_ subject: Subject) async {
    let level: ConformanceOptions.Level = subject.target == .inproc || Self.isWhole ? .full : .quick
    let options = ConformanceOptions(level: level, knownFailures: Self.known, workers: 2)
    let report = await ConformanceRunner(options: options).run(adapter: subject.name, target: subject.target) { seed in
      try await EmulatorHarness(vendor: subject.vendor, model: subject.model, target: subject.target, seed: seed)
    }
    #expect(report.results.count == ConformanceSuite.cases.count)
    let declared = (try? await EmulatorHarness(
      vendor: subject.vendor, model: subject.model, target: .inproc, seed: 1).declaredSkips) ?? [:]
    for result in report.results {
      let maySkip = declared[result.id] != nil
      switch result.verdict {
      case .pass, .passDeclared, .knownFailure:
        #expect(!maySkip, "\(result.id) runs on \(subject.name): it need not stand in the list of skips")
      case .skip(.profile): break
      case .skip(.rule(let rule)): #expect(maySkip, "\(result.id) is skipped on \(subject.name): \(rule)")
      case .skip(.absent(let capability)):
        #expect(!report.capabilities.has(capability), "\(result.id) skips a capability that is declared")
      // Frames can be cut only where there are sockets, and hours pass only where there are none.
      case .skip(.noHook("fragment")) where subject.target == .inproc: break
      case .skip(.noHook("corrupt")) where subject.target == .inproc: break
      case .skip(.noHook("virtualTime")) where subject.target == .loopback: break
      // Certificates are shown by sockets, with the program that makes them.
      case .skip(.noHook("tls")): #expect(subject.target == .inproc || !Self.hasOpenSSL, "\(result.id) needs no skip here")
      // Messages end by age where the vendor says so.
      case .skip(.noHook("setting.retention")): #expect(["sendbird", "openim"].contains(subject.name), "\(result.id) has its setting")
      case .skip(let reason): Issue.record("\(result.id) was skipped: \(reason)")
      case .fail, .error, .flaky, .unexpectedPass:
        Issue.record(
          "\(result.id) \(result.title): \(result.verdict); again: \(result.replay)\n\(result.transcript.suffix(12).joined(separator: "\n"))")
      }
    }
  }
}
