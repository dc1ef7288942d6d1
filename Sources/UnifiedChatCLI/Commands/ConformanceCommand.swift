import ChatConformance
import ChatHarness
import ChatJSON
import Foundation
import Synchronization
import UnifiedChat

/// `unifiedchat conformance`
enum ConformanceCommand {
  /// Adapter names: a vendor, or a vendor and one of its models.
  static let adapters: [(name: String, vendor: String, model: String?)] = [
    ("ideal", "ideal", nil), ("sendbird", "sendbird", nil), ("openim", "openim", nil), ("leancloud", "leancloud", nil),
    ("leancloud-session", "leancloud", "session"),
  ]

  static let command = Command(
    name: "conformance", summary: "run the same cases against every adapter",
    options: [
      .value("adapter", "NAMES", "comma between: \(adapters.map(\.name).joined(separator: ", ")) (default all)"),
      .value("target", "NAME", "inproc on a virtual clock, or loopback (default inproc)", choices: ["inproc", "loopback"]),
      .value("group", "NAME", "only this group", repeatable: true),
      .value("case", "ID", "only this case", repeatable: true),
      .value("seed", "N", "repeat a run exactly (default 20261130)"),
      .value("repeat", "N", "run everything so often (default 1)"),
      .flag("fail-fast", "stop at the first failure"),
      .value("json", "FILE", "write the report as JSON"), .value("junit", "FILE", "write the report as JUnit XML"),
      .value("html", "FILE", "write the report as one HTML page"),
      .flag("list", "list the cases and end"), .flag("ascii", "plain ASCII"),
    ],
    examples: [
      "unifiedchat conformance --adapter openim --case SEND-03",
      "unifiedchat conformance --target loopback --html report.html",
    ], run: run)

  private static func run(_ invocation: Invocation) async throws -> ExitCode {
    if invocation.has("list") {
      for candidate in ConformanceSuite.cases {
        Standard.line("\(candidate.id)  \(candidate.severity.rawValue)  \(candidate.title)")
      }
      return .success
    }
    let options = try options(invocation)
    let target: ConformanceTarget = invocation.value("target") == "loopback" ? .loopback : .inproc
    let started = SystemClock().now
    var reports: [AdapterReport] = []
    for adapter in try chosen(invocation) {
      let isIdeal = adapter.vendor == "ideal"
      let report = await ConformanceRunner(options: options).run(
        adapter: adapter.name, target: isIdeal ? .ideal : target
      ) { seed in
        if isIdeal { return IdealHarness(seed: seed) }
        return try await EmulatorHarness(vendor: adapter.vendor, model: adapter.model, target: target, seed: seed)
      } progress: { result in
        if result.verdict.breaksRun { Standard.error("\(adapter.name) \(result.id): \(result.verdict.name)") }
      }
      reports.append(report)
      if options.failFast, report.failed { break }
    }
    Standard.line(TextReport.make(reports, ascii: invocation.has("ascii")))
    let milliseconds = (SystemClock().now - started).wholeMilliseconds
    try write(reports, invocation, options.seed, started, milliseconds)
    return reports.contains(where: \.failed) ? .different : .success
  }

  private static func options(_ invocation: Invocation) throws -> ConformanceOptions {
    var options = ConformanceOptions()
    options.groups = Set(invocation.all("group"))
    options.cases = Set(invocation.all("case"))
    if let seed = try invocation.integer("seed", in: 0...Int.max) { options.seed = UInt64(seed) }
    options.repeats = try invocation.integer("repeat", in: 1...10_000) ?? 1
    options.failFast = invocation.has("fail-fast")
    let known = Set(ConformanceSuite.cases.map(\.id))
    for id in options.cases where !known.contains(id) {
      let near = Nearest.name(to: id, among: known.sorted()).map { "; did you mean \($0)?" } ?? ""
      throw Failure(.usage, "no case is called \(id)\(near) --list shows them")
    }
    for group in options.groups where !ConformanceSuite.groups.contains(group) {
      throw Failure(.usage, "no group is called \(group); there are \(ConformanceSuite.groups.joined(separator: ", "))")
    }
    return options
  }

  private static func chosen(_ invocation: Invocation) throws -> [(name: String, vendor: String, model: String?)] {
    guard let names = invocation.value("adapter") else { return adapters }
    return try names.split(separator: ",").map { name in
      guard let adapter = adapters.first(where: { $0.name == name }) else {
        let near = Nearest.name(to: String(name), among: adapters.map(\.name)).map { "; did you mean \($0)?" } ?? ""
        throw Failure(.usage, "no adapter is called \"\(name)\"\(near)")
      }
      return adapter
    }
  }

  private static func write(
    _ reports: [AdapterReport], _ invocation: Invocation, _ seed: UInt64, _ started: Timestamp, _ milliseconds: Int64
  ) throws {
    if let file = invocation.value("json") {
      let json = JSONReport.make(reports, seed: seed, started: started, milliseconds: milliseconds)
      try Files.write(json.bytes() + [0x0A], to: file)
    }
    if let file = invocation.value("junit") { try Files.write(Array(JUnitReport.make(reports).utf8), to: file) }
    if let file = invocation.value("html") {
      let page = HTMLReport.make(reports, title: "Conformance \(ConformanceSuite.version), seed \(seed)")
      try Files.write(Array(page.utf8), to: file)
    }
  }
}

/// Files that appear only when they are whole.
enum Files {
  static func write(_ bytes: [UInt8], to path: String) throws {
    do { try Data(bytes).write(to: URL(fileURLWithPath: path), options: .atomic) } catch {
      throw Failure(.storage, "\(path): cannot be written: \(error.localizedDescription)")
    }
  }
}
