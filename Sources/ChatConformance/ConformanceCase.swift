import UnifiedChat

/// One numbered case of the specification.
public struct ConformanceCase: Sendable {
  public enum Severity: String, Sendable, Hashable, CaseIterable {
    /// Loses, duplicates, reorders or leaks data, or never ends.
    case s1 = "S1"
    /// A wrong state that heals or misleads.
    case s2 = "S2"
    /// Inconvenience.
    case s3 = "S3"
  }

  public enum Tag: String, Sendable, Hashable, CaseIterable {
    /// About bytes: the ideal service, which has none, is skipped.
    case wire
    /// Too long for every change; runs with `--level stress`.
    case stress
    /// Leaves the client as a killed process leaves it.
    case kill
  }

  /// `SEND-03`
  public var id: String
  public var title: String
  public var severity: Severity
  /// An absent one skips the case.
  public var needs: [Capability]
  /// Canonical hook names; a target that lacks one skips the case.
  public var hooks: [String]
  public var tags: Set<Tag>
  var body: @Sendable (CaseContext) async throws -> Void

  init(
    _ id: String, _ title: String, _ severity: Severity, needs: [Capability] = [],
    hooks: [String] = [], tags: Set<Tag> = [], _ body: @escaping @Sendable (CaseContext) async throws -> Void
  ) {
    self.id = id
    self.title = title
    self.severity = severity
    self.needs = needs
    self.hooks = hooks
    self.tags = tags
    self.body = body
  }

  /// `SEND`
  public var group: String { String(id.prefix { $0 != "-" }) }
}

/// Why a case did not run. There is no other reason.
public enum SkipReason: Sendable, Hashable, CustomStringConvertible {
  case absent(Capability)
  case noHook(String)
  case rule(String)
  case profile(String)

  public var description: String {
    switch self {
    case .absent(let capability): "absent(\(capability.rawValue))"
    case .noHook(let hook): "noHook(\(hook))"
    case .rule(let rule): "rule(\(rule))"
    case .profile(let profile): "profile(\(profile))"
    }
  }
}

/// An expectation that did not hold.
public struct CaseFailure: Error, Sendable, Hashable, CustomStringConvertible {
  public var expected: String
  public var observed: String
  /// The step of the case.
  public var place: String

  public var description: String { "\(place): expected \(expected), observed \(observed)" }
}

/// What is said of a case in the end.
public enum Verdict: Sendable, Hashable {
  case pass
  /// Differs from the model as the closed table says.
  case passDeclared([DeclaredDifference])
  case fail(CaseFailure)
  /// The harness or the set-up broke.
  case error(String)
  case skip(SkipReason)
  /// Failed, as the file of known failures says.
  case knownFailure(CaseFailure, issue: String)
  /// Listed there, and passed: the entry is to be removed.
  case unexpectedPass(issue: String)
  /// Live only: failed first and passed when repeated.
  case flaky(CaseFailure)

  /// As reports write them.
  public static let names = ["pass", "pass-declared", "fail", "error", "skip", "xfail", "xpass", "flaky"]

  public var name: String {
    switch self {
    case .pass: "pass"
    case .passDeclared: "pass-declared"
    case .fail: "fail"
    case .error: "error"
    case .skip: "skip"
    case .knownFailure: "xfail"
    case .unexpectedPass: "xpass"
    case .flaky: "flaky"
    }
  }

  /// Whether the run fails because of it.
  public var breaksRun: Bool {
    switch self {
    case .pass, .passDeclared, .skip, .knownFailure, .flaky: false
    case .fail, .error, .unexpectedPass: true
    }
  }
}

/// Thrown by a case that finds out on its way that it cannot run here.
struct CaseSkip: Error {
  var reason: SkipReason
}

/// Thrown by a control interface that cannot do what is asked.
public struct NoHook: Error, Sendable, Hashable {
  public var name: String
  public init(_ name: String) { self.name = name }
}
