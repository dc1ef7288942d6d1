/// A value with a secret inside. It prints as `‹redacted›` wherever Swift prints values: in strings, inside other
/// values, in dumps, mirrors, logs and failed expectations. Types say what else may show by their `description`.
public protocol HoldsSecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {}

extension HoldsSecret {
  /// What stands in a secret's place.
  public static var redacted: String { "‹redacted›" }

  public var description: String { Self.redacted }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: [(label: String?, value: Any)]()) }
}

extension Credential: HoldsSecret {
  public var description: String {
    switch self {
    case .none: "none"
    case .token: "token \(Self.redacted)"
    }
  }
}

extension SignedOperation: HoldsSecret {}

extension SecretReference: HoldsSecret {
  public var description: String {
    switch self {
    case .environment(let name): "environment variable \(name)"
    case .file(let path): "file \(path)"
    case .keychain(let item): "keychain item \(item)"
    case .literal: "literal \(Self.redacted)"
    }
  }
}

extension AdapterEnvironment: HoldsSecret {
  public var description: String { "environment of \(device), \(Self.redacted)" }
}
