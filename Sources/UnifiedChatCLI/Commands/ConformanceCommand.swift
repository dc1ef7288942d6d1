import AllAdapters
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
    name: "conformance", summary: "run the same cases against every adapter, or against a live service",
    options: [
      .value("adapter", "NAMES", "comma between: \(adapters.map(\.name).joined(separator: ", ")) (default all)"),
      .value("target", "NAME", "inproc, or loopback over sockets (default inproc)", choices: ["inproc", "loopback"]),
      Settings.configOption,
      .value("profile", "NAME", "the live service of this profile, with its keys; what is made there is removed again"),
      .value("group", "NAME", "only this group", repeatable: true),
      .value("case", "ID", "only this case", repeatable: true),
      .value(
        "level", "NAME", "quick: what loses data; full: all but stress; stress: all (default full)",
        choices: ConformanceOptions.Level.allCases.map(\.rawValue)),
      .value("seed", "N", "repeat a run exactly (default 20261130)"),
      .value("repeat", "N", "run everything so often (default 1)"),
      .value("scale", "N", "multiply the sizes of what only --level stress runs (default 1; 20: a million messages)"),
      .value("workers", "N", "cases at the same time (default 2; 1 with --fail-fast and --profile)"),
      .flag("fail-fast", "stop at the first failure"),
      .value("known-failures", "FILE", "JSON list of {adapter, case, issue, until}: put up with until that day"),
      .value("json", "FILE", "write the report as JSON"), .value("junit", "FILE", "write the report as JUnit XML"),
      .value("html", "FILE", "write the report as one HTML page"),
      .value("model", "N", "instead of the cases: N random operations of several clients, compared with a model"),
      .flag("list", "list the cases and end"), .flag("counts", "with --list: the cases of each group"),
      .flag("ascii", "plain ASCII"),
    ],
    examples: [
      "unifiedchat conformance --adapter openim --case SEND-03",
      "unifiedchat conformance --target loopback --html report.html",
      "unifiedchat conformance --profile staging --group SEND",
    ],
    details: "A failing case prints its frames, without secrets, and the command that repeats it.", run: run)

  private static func run(_ invocation: Invocation) async throws -> ExitCode {
    if invocation.has("list") { return list(counts: invocation.has("counts")) }
    let options = try options(invocation)
    if let steps = try invocation.integer("model", in: 1...1_000_000) { return try await model(invocation, options, steps) }
    let started = SystemClock().now
    let reports = invocation.has("profile")
      ? [try await live(invocation, options)] : try await emulated(invocation, options)
    Standard.line(TextReport.make(reports, ascii: invocation.has("ascii")))
    let milliseconds = (SystemClock().now - started).wholeMilliseconds
    try write(reports, invocation, options.seed, started, milliseconds)
    return reports.contains(where: \.failed) ? .different : .success
  }

  private static func list(counts: Bool) -> ExitCode {
    if counts {
      for group in ConformanceSuite.groups {
        Standard.line("\(group)  \(ConformanceSuite.cases.count { $0.group == group })")
      }
    } else {
      for candidate in ConformanceSuite.cases {
        Standard.line("\(candidate.id)  \(candidate.severity.rawValue)  \(candidate.title)")
      }
    }
    return .success
  }

  // MARK: Where

  private static func emulated(_ invocation: Invocation, _ options: ConformanceOptions) async throws -> [AdapterReport] {
    let target: ConformanceTarget = invocation.value("target") == "loopback" ? .loopback : .inproc
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
    return reports
  }

  private static func live(_ invocation: Invocation, _ options: ConformanceOptions) async throws -> AdapterReport {
    let settings = try Settings(invocation)
    let profile = try settings.profile(named: invocation.value("profile"))
    let entry = try settings.registry.entry(for: profile.vendor)
    let environment = try settings.environment(profile, device: "conformance")
    let facts = AllAdapters.facts(of: profile.vendor.rawValue, model: profile.model)
    return await ConformanceRunner(options: options).run(adapter: profile.name, target: .live) { seed in
      LiveHarness(
        entry: entry, profile: profile, environment: environment, facts: (facts.differences, facts.limits), seed: seed)
    } progress: { result in
      Standard.error("\(profile.name) \(result.id): \(result.verdict.name)")
    }
  }

  /// Random scripts of 200 operations each, until there were so many; a divergence ends the run with the shortest
  /// script that shows it.
  private static func model(_ invocation: Invocation, _ options: ConformanceOptions, _ steps: Int) async throws -> ExitCode {
    let target: ConformanceTarget = invocation.value("target") == "loopback" ? .loopback : .inproc
    for adapter in try chosen(invocation) {
      var done = 0
      var seed = options.seed
      while done < steps {
        let count = min(200, steps - done)
        let run = ModelRun(seed: seed) { seed in
          if adapter.vendor == "ideal" { return IdealHarness(seed: seed) }
          return try await EmulatorHarness(vendor: adapter.vendor, model: adapter.model, target: target, seed: seed)
        }
        if let divergence = try await run.check(.random(steps: count, seed: seed)) {
          Standard.line("\(adapter.name): seed \(seed)\n\(divergence)")
          return .different
        }
        (done, seed) = (done + count, seed &+ 1)
      }
      Standard.line("\(adapter.name): \(done) random operations agree with the model")
    }
    return .success
  }

  private static func chosen(_ invocation: Invocation) throws -> [(name: String, vendor: String, model: String?)] {
    guard let names = invocation.value("adapter") else { return adapters }
    guard names.contains(where: { $0 != "," }) else {
      throw Failure(.usage, "--adapter names none; there are \(adapters.map(\.name).joined(separator: ", "))")
    }
    return try names.split(separator: ",").map { name in
      guard let adapter = adapters.first(where: { $0.name == name }) else {
        let near = Nearest.name(to: String(name), among: adapters.map(\.name)).map { "; did you mean \($0)?" } ?? ""
        throw Failure(.usage, "no adapter is called \"\(name)\"\(near)")
      }
      return adapter
    }
  }

  // MARK: What

  private static func options(_ invocation: Invocation) throws -> ConformanceOptions {
    for name in ["json", "junit", "html"] {
      if let file = invocation.value(name) { try Files.requireWritable(file) }
    }
    var options = ConformanceOptions()
    options.groups = Set(invocation.all("group"))
    options.cases = Set(invocation.all("case"))
    options.level = invocation.value("level").flatMap { .init(rawValue: $0) } ?? .full
    if let seed = try invocation.integer("seed", in: 0...Int.max) { options.seed = UInt64(seed) }
    options.repeats = try invocation.integer("repeat", in: 1...10_000) ?? 1
    options.scale = try invocation.integer("scale", in: 1...1000) ?? 1
    options.failFast = invocation.has("fail-fast")
    let usual = options.failFast || invocation.has("profile") ? 1 : 2
    options.workers = try invocation.integer("workers", in: 1...64) ?? usual
    if let file = invocation.value("known-failures") { options.knownFailures = try knownFailures(file) }
    let known = Set(ConformanceSuite.written.map(\.id))
    for id in options.cases where !known.contains(id) {
      let near = Nearest.name(to: id, among: known.sorted()).map { "; did you mean \($0)?" } ?? ""
      throw Failure(.usage, "no case is called \(id)\(near) --list shows them")
    }
    for group in options.groups where !ConformanceSuite.groups.contains(group) {
      throw Failure(.usage, "no group is called \(group); there are \(ConformanceSuite.groups.joined(separator: ", "))")
    }
    guard ConformanceRunner(options: options).cases.contains(where: { options.includes($0) }) else {
      throw Failure(.usage, "no case is in all of the groups and cases that are named; --list shows them")
    }
    return options
  }

  private static func knownFailures(_ file: String) throws -> [KnownFailure] {
    let wrong = Failure(
      .configuration,
      "\(file): expected a JSON list of objects with adapter, case, issue and until (such as \"2027-01-31\")")
    guard let data = try? Data(contentsOf: URL(fileURLWithPath: file)) else {
      throw Failure(.configuration, "\(file): cannot be read")
    }
    guard let list = (try? JSONValue(parsing: Array(data)))?.array else { throw wrong }
    return try list.map { entry in
      guard let adapter = entry["adapter"]?.string, let id = entry["case"]?.string, let issue = entry["issue"]?.string,
        let until = entry["until"]?.string, until.wholeMatch(of: /[0-9]{4}-[0-9]{2}-[0-9]{2}/) != nil
      else { throw wrong }
      return KnownFailure(adapter: adapter, id: id, issue: issue, until: until)
    }
  }

  // MARK: Reports

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
