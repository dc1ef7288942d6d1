import Foundation
import Synchronization
import UnifiedChat

/// How much of the suite runs, and on what.
public struct ConformanceOptions: Sendable {
  public var groups: Set<String>
  public var cases: Set<String>
  public var seed: UInt64
  public var repeats: Int
  public var failFast: Bool
  /// Wall-clock limit of one case.
  public var caseLimit: Duration

  public init(
    groups: Set<String> = [], cases: Set<String> = [], seed: UInt64 = 20_261_130, repeats: Int = 1,
    failFast: Bool = false, caseLimit: Duration = .seconds(60)
  ) {
    self.groups = groups
    self.cases = cases
    self.seed = seed
    self.repeats = repeats
    self.failFast = failFast
    self.caseLimit = caseLimit
  }

  func includes(_ candidate: ConformanceCase) -> Bool {
    (groups.isEmpty || groups.contains(candidate.group)) && (cases.isEmpty || cases.contains(candidate.id))
  }
}

public struct CaseResult: Sendable, Hashable {
  public var id: String
  public var title: String
  public var severity: ConformanceCase.Severity
  public var verdict: Verdict
  public var milliseconds: Int64
  /// The command that repeats it.
  public var replay: String
}

/// One adapter on one target.
public struct AdapterReport: Sendable, Hashable {
  public var adapter: String
  public var target: ConformanceTarget
  public var capabilities: CapabilitySet
  public var results: [CaseResult]

  public var failed: Bool { results.contains { $0.verdict.breaksRun } }

  public func count(_ name: String) -> Int { results.count { $0.verdict.name == name } }
}

/// Runs the cases, each against its own fresh service.
public struct ConformanceRunner: Sendable {
  public var options: ConformanceOptions

  public init(options: ConformanceOptions = ConformanceOptions()) { self.options = options }

  /// - Parameter makeHarness: called once a case, with the seed of the run.
  public func run(
    adapter: String, target: ConformanceTarget,
    makeHarness: @Sendable (UInt64) async throws -> any ConformanceHarness,
    progress: (@Sendable (CaseResult) -> Void)? = nil
  ) async -> AdapterReport {
    var report = AdapterReport(adapter: adapter, target: target, capabilities: CapabilitySet([:]), results: [])
    for round in 0..<max(1, options.repeats) {
      for candidate in ConformanceSuite.cases where options.includes(candidate) {
        let started = ContinuousClock.now
        var capabilities = CapabilitySet([:])
        var verdict: Verdict
        do {
          let harness = try await makeHarness(options.seed &+ UInt64(round))
          capabilities = harness.capabilities
          verdict = await self.verdict(of: candidate, on: harness)
        } catch { verdict = .error("set-up: \(error)") }
        report.capabilities = capabilities
        let result = CaseResult(
          id: candidate.id, title: candidate.title, severity: candidate.severity, verdict: verdict,
          milliseconds: (ContinuousClock.now - started).wholeMilliseconds,
          replay: "unifiedchat conformance --adapter \(adapter) --target \(target.rawValue) --case \(candidate.id) "
            + "--seed \(options.seed &+ UInt64(round))")
        report.results.append(result)
        progress?(result)
        if options.failFast, verdict.breaksRun { return report }
      }
    }
    return report
  }

  private func verdict(of candidate: ConformanceCase, on harness: any ConformanceHarness) async -> Verdict {
    for capability in candidate.needs where !harness.capabilities.has(capability) {
      await harness.cleanUp()
      return .skip(.absent(capability))
    }
    for hook in candidate.hooks where harness.faults?.hooks.contains(hook) != true {
      await harness.cleanUp()
      return .skip(.noHook(hook))
    }
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("conformance-\(UUID().uuidString)")
    do { try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true) } catch {
      return .error("no folder for caches: \(error)")
    }
    let context = CaseContext(id: candidate.id, harness: harness, directory: directory)
    let verdict = await limited(candidate, context)
    await context.end()
    return verdict
  }

  /// The case's verdict, or a failure once the limit has passed: a case that cannot be cancelled is left behind.
  private func limited(_ candidate: ConformanceCase, _ context: CaseContext) async -> Verdict {
    let limit = options.caseLimit
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
      return .pass
    } catch let failure as CaseFailure {
      return .fail(failure)
    } catch let error as ChatError {
      return .fail(context.failure("no error", "\(error)"))
    } catch {
      return .error("\(error)")
    }
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
