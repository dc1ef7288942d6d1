import UnifiedChat

/// How much of the suite runs, and how.
public struct ConformanceOptions: Sendable {
  public enum Level: String, Sendable, Hashable, CaseIterable {
    /// What loses data, without kills: seconds.
    case quick
    /// Everything but stress.
    case full
    case stress
  }

  public var groups: Set<String>
  public var cases: Set<String>
  public var level: Level
  public var seed: UInt64
  public var repeats: Int
  /// Multiplies the sizes of cases of stress.
  public var scale: Int
  public var failFast: Bool
  /// Wall-clock limits of one case, and of one of stress.
  public var caseLimit: Duration
  public var stressLimit: Duration
  public var knownFailures: [KnownFailure]
  /// Cases that run at the same time: each has a service of its own.
  public var workers: Int
  /// Lines of the wire's transcript that a failing case keeps.
  public var transcriptLines: Int

  public init(
    groups: Set<String> = [], cases: Set<String> = [], level: Level = .full, seed: UInt64 = 20_261_130,
    repeats: Int = 1, scale: Int = 1, failFast: Bool = false, caseLimit: Duration = .seconds(60),
    stressLimit: Duration = .seconds(600), knownFailures: [KnownFailure] = [], workers: Int = 1,
    transcriptLines: Int = 60
  ) {
    self.groups = groups
    self.cases = cases
    self.level = level
    self.seed = seed
    self.repeats = repeats
    self.scale = max(1, scale)
    self.failFast = failFast
    self.caseLimit = caseLimit
    self.stressLimit = stressLimit
    self.knownFailures = knownFailures
    self.workers = workers
    self.transcriptLines = transcriptLines
  }

  /// Whether it is in the groups and cases that are named; none named means all.
  public func includes(_ candidate: ConformanceCase) -> Bool {
    (groups.isEmpty || groups.contains(candidate.group)) && (cases.isEmpty || cases.contains(candidate.id))
  }

  /// Why the level leaves a case out; one that is named runs at any level.
  func levelSkip(_ candidate: ConformanceCase) -> SkipReason? {
    guard !cases.contains(candidate.id) else { return nil }
    switch level {
    case .stress: return nil
    case .full: return candidate.tags.contains(.stress) ? .profile("full") : nil
    case .quick:
      let isQuick = candidate.severity == .s1 && candidate.tags.isDisjoint(with: [.stress, .kill])
      return isQuick ? nil : .profile("quick")
    }
  }
}

/// A failure that is known, and until when it is put up with.
public struct KnownFailure: Sendable, Hashable {
  public var adapter: String
  public var id: String
  public var issue: String
  /// From this day on it counts again: `2027-01-31`.
  public var until: String

  public init(adapter: String, id: String, issue: String, until: String) {
    self.adapter = adapter
    self.id = id
    self.issue = issue
    self.until = until
  }

  /// - Parameter today: as `2026-11-30`.
  func holds(on today: String) -> Bool { today < until }
}
