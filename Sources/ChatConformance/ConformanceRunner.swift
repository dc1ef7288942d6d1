import ChatClient
import Foundation
import Synchronization
import UnifiedChat

/// What came of one case on one adapter.
public struct CaseResult: Sendable, Hashable {
  /// `SEND-03`
  public var id: String
  public var title: String
  public var severity: ConformanceCase.Severity
  public var verdict: Verdict
  /// Of this machine's time, set-up and invariants included; a virtual hour takes none.
  public var milliseconds: Int64
  /// The command that repeats it.
  public var replay: String
  /// Of a case that failed: the frames, without secrets.
  public var transcript: [String]

  public init(
    id: String, title: String, severity: ConformanceCase.Severity, verdict: Verdict, milliseconds: Int64,
    replay: String, transcript: [String] = []
  ) {
    self.id = id
    self.title = title
    self.severity = severity
    self.verdict = verdict
    self.milliseconds = milliseconds
    self.replay = replay
    self.transcript = transcript
  }
}

/// One adapter on one target.
public struct AdapterReport: Sendable, Hashable {
  /// A vendor, or a vendor and one of its models; of a live service, its profile.
  public var adapter: String
  public var target: ConformanceTarget
  /// What an app can do with it; empty when no case got as far as a service.
  public var capabilities: CapabilitySet
  /// In the order of the specification, whichever ended first; a repeated run appends its rounds.
  public var results: [CaseResult]

  public init(adapter: String, target: ConformanceTarget, capabilities: CapabilitySet, results: [CaseResult]) {
    self.adapter = adapter
    self.target = target
    self.capabilities = capabilities
    self.results = results
  }

  /// Whether a verdict breaks the run.
  public var failed: Bool { results.contains { $0.verdict.breaksRun } }

  /// How many verdicts have this name; see `Verdict.names`.
  public func count(_ name: String) -> Int { results.count { $0.verdict.name == name } }
}

/// Runs the cases, each against its own fresh service.
public struct ConformanceRunner: Sendable {
  public var options: ConformanceOptions
  public var cases: [ConformanceCase]

  public init(options: ConformanceOptions = ConformanceOptions(), cases: [ConformanceCase]? = nil) {
    self.options = options
    self.cases = cases ?? (options.cases.isEmpty ? ConformanceSuite.cases : ConformanceSuite.written)
  }

  /// - Parameter makeHarness: called once a case, with the seed of the run.
  public func run(
    adapter: String, target: ConformanceTarget,
    makeHarness: @escaping @Sendable (UInt64) async throws -> any ConformanceHarness,
    progress: (@Sendable (CaseResult) -> Void)? = nil
  ) async -> AdapterReport {
    var report = AdapterReport(adapter: adapter, target: target, capabilities: CapabilitySet([:]), results: [])
    for round in 0..<max(1, options.repeats) {
      let seed = options.seed &+ UInt64(round)
      let chosen = cases.filter { options.includes($0) }
      let results = await withTaskGroup(of: (Int, CaseResult, CapabilitySet?).self) { group in
        var waiting = chosen.enumerated().makeIterator()
        func startNext() {
          guard let (index, candidate) = waiting.next() else { return }
          group.addTask {
            let (result, capabilities) = await self.result(of: candidate, adapter, target, seed, makeHarness)
            return (index, result, capabilities)
          }
        }
        for _ in 0..<max(1, options.workers) { startNext() }
        var results: [(Int, CaseResult, CapabilitySet?)] = []
        for await done in group {
          results.append(done)
          progress?(done.1)
          if options.failFast, done.1.verdict.breaksRun { break }
          startNext()
        }
        return results.sorted { $0.0 < $1.0 }
      }
      report.results += results.map(\.1)
      report.capabilities = results.compactMap(\.2).last ?? report.capabilities
      if options.failFast, report.failed { return report }
    }
    return report
  }

  private func result(
    of candidate: ConformanceCase, _ adapter: String, _ target: ConformanceTarget, _ seed: UInt64,
    _ makeHarness: @escaping @Sendable (UInt64) async throws -> any ConformanceHarness
  ) async -> (CaseResult, CapabilitySet?) {
    let started = ContinuousClock.now
    var outcome = await once(candidate, seed, makeHarness)
    if target == .live { outcome = await repeated(outcome, candidate, seed, makeHarness) }
    let result = CaseResult(
      id: candidate.id, title: candidate.title, severity: candidate.severity,
      verdict: known(outcome.verdict, of: candidate, adapter),
      milliseconds: (ContinuousClock.now - started).wholeMilliseconds,
      replay: "unifiedchat conformance \(Self.place(adapter, target)) --case \(candidate.id) --seed \(seed)",
      transcript: outcome.transcript)
    return (result, outcome.capabilities)
  }

  private struct Outcome {
    var verdict: Verdict
    var capabilities: CapabilitySet?
    var transcript: [String] = []
  }

  /// A live service may stumble: a failure counts only when it comes again twice.
  private func repeated(
    _ first: Outcome, _ candidate: ConformanceCase, _ seed: UInt64,
    _ makeHarness: @Sendable (UInt64) async throws -> any ConformanceHarness
  ) async -> Outcome {
    guard case .fail(let failure) = first.verdict else { return first }
    for _ in 0..<2 {
      var again = await once(candidate, seed, makeHarness)
      if again.verdict.breaksRun { continue }
      again.verdict = .flaky(failure)
      return again
    }
    return first
  }

  private func once(
    _ candidate: ConformanceCase, _ seed: UInt64,
    _ makeHarness: @Sendable (UInt64) async throws -> any ConformanceHarness
  ) async -> Outcome {
    if let reason = options.levelSkip(candidate) { return Outcome(verdict: .skip(reason)) }
    do {
      let harness = try await makeHarness(seed)
      return await judge(candidate, on: harness)
    } catch { return Outcome(verdict: .error("set-up: \(error)")) }
  }

  private func known(_ verdict: Verdict, of candidate: ConformanceCase, _ adapter: String) -> Verdict {
    let today = String(SystemClock().now.description.prefix(10))
    guard let entry = options.knownFailures.first(where: { $0.adapter == adapter && $0.id == candidate.id }) else {
      return verdict
    }
    switch verdict {
    case .fail(let failure) where entry.holds(on: today): return .knownFailure(failure, issue: entry.issue)
    case .pass, .passDeclared: return .unexpectedPass(issue: entry.issue)
    default: return verdict
    }
  }

  private func judge(_ candidate: ConformanceCase, on harness: any ConformanceHarness) async -> Outcome {
    if let reason = skip(candidate, on: harness) {
      await harness.cleanUp()
      return Outcome(verdict: .skip(reason), capabilities: ClientCapabilities.effective(harness.capabilities))
    }
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("conformance-\(UUID().uuidString)")
    do { try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true) } catch {
      await harness.cleanUp()
      return Outcome(verdict: .error("no folder for caches: \(error)"), capabilities: ClientCapabilities.effective(harness.capabilities))
    }
    let context = CaseContext(
      id: candidate.id, harness: harness, directory: directory, usesJSON: candidate.hooks.contains("patch"),
      scale: options.scale)
    var outcome = Outcome(verdict: await limited(candidate, context), capabilities: ClientCapabilities.effective(harness.capabilities))
    if outcome.verdict.breaksRun, options.transcriptLines > 0 {
      outcome.transcript = await harness.transcript(limit: options.transcriptLines)
    }
    await context.end()
    return outcome
  }

  /// The options that lead to the same service.
  private static func place(_ adapter: String, _ target: ConformanceTarget) -> String {
    switch target {
    case .ideal: "--adapter \(adapter)"
    case .live: "--profile \(adapter)"
    case .inproc, .loopback: "--adapter \(adapter) --target \(target.rawValue)"
    }
  }

  private func skip(_ candidate: ConformanceCase, on harness: any ConformanceHarness) -> SkipReason? {
    let capabilities = ClientCapabilities.effective(harness.capabilities)
    for capability in candidate.needs where !capabilities.has(capability) { return .absent(capability) }
    if harness.target == .ideal, candidate.tags.contains(.wire) { return .noHook("wire") }
    for hook in candidate.hooks where harness.faults?.hooks.contains(hook) != true { return .noHook(hook) }
    return nil
  }

  /// The case's verdict, or a failure once the limit has passed: a case that cannot be cancelled is left behind.
  private func limited(_ candidate: ConformanceCase, _ context: CaseContext) async -> Verdict {
    let limit = candidate.tags.contains(.stress) ? options.stressLimit * options.scale : options.caseLimit
    return await withCheckedContinuation { continuation in
      let answer = FirstVerdict(continuation)
      let work = Task { answer.give(await Self.judge(candidate, context)) }
      let watch = Task {
        // The wall-clock limit of a case is about this machine, not about the service's clock.
        try await Task.sleep(for: limit)
        answer.give(.fail(context.failure("the case ends within \(limit)", "it did not")))
        work.cancel()
      }
      Task {
        await work.value
        watch.cancel()
      }
    }
  }

  private static func judge(_ candidate: ConformanceCase, _ context: CaseContext) async -> Verdict {
    do {
      try await candidate.body(context)
      try await context.checkInvariants()
      return context.declared.isEmpty ? .pass : .passDeclared(context.declared)
    } catch let failure as CaseFailure {
      return .fail(failure)
    } catch let skip as CaseSkip {
      return .skipped(skip.reason, candidate, context)
    } catch let error as ChatError {
      return .fail(context.failure("no error", "\(error)"))
    } catch {
      return .error("\(error)")
    }
  }
}

extension Verdict {
  /// Of a case that gave up on its way: what runs is declared, so what has nothing to look at must be declared too.
  fileprivate static func skipped(_ reason: SkipReason, _ candidate: ConformanceCase, _ context: CaseContext) -> Verdict {
    guard case .rule(let rule) = reason else { return .skip(reason) }
    if let why = context.harness.declaredSkips[candidate.id] { return .skip(.rule(why)) }
    let declared = candidate.needs.isEmpty ? "a case for every adapter" : candidate.needs.map(\.rawValue).joined(separator: ", ")
    return .fail(context.failure("\(declared) is shown", "skipped without a declared reason: \(rule)"))
  }
}

/// Passes on the first of several verdicts.
private final class FirstVerdict: Sendable {
  private let waiting: Mutex<CheckedContinuation<Verdict, Never>?>

  init(_ continuation: CheckedContinuation<Verdict, Never>) { waiting = Mutex(continuation) }

  func give(_ verdict: Verdict) {
    let continuation = waiting.withLock { waiting in
      let first = waiting
      waiting = nil
      return first
    }
    continuation?.resume(returning: verdict)
  }
}
