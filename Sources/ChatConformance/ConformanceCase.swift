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

  /// `SEND-03`
  public var id: String
  public var title: String
  public var severity: Severity
  /// An absent one skips the case.
  public var needs: [Capability]
  /// Canonical hook names; a target that lacks one skips the case.
  public var hooks: [String]
  var body: @Sendable (CaseContext) async throws -> Void

  init(
    _ id: String, _ title: String, _ severity: Severity, needs: [Capability] = [], hooks: [String] = [],
    _ body: @escaping @Sendable (CaseContext) async throws -> Void
  ) {
    self.id = id
    self.title = title
    self.severity = severity
    self.needs = needs
    self.hooks = hooks
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

public enum Verdict: Sendable, Hashable {
  case pass
  case fail(CaseFailure)
  /// The harness or the set-up broke.
  case error(String)
  case skip(SkipReason)

  public var name: String {
    switch self {
    case .pass: "pass"
    case .fail: "fail"
    case .error: "error"
    case .skip: "skip"
    }
  }

  public var breaksRun: Bool {
    switch self {
    case .pass, .skip: false
    case .fail, .error: true
    }
  }
}
