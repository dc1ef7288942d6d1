import UnifiedChat

/// Where the cases run.
public enum ConformanceTarget: String, Sendable, Hashable, CaseIterable {
  /// Without a wire.
  case ideal
  /// The adapter's own emulator, without sockets, on a virtual clock.
  case inproc
  /// The emulator on 127.0.0.1.
  case loopback
  /// The vendor's service, or a self-hosted server.
  case live
}

public struct TestUser: Sendable, Hashable {
  public var id: UserID
  public var credential: Credential

  public init(id: UserID, credential: Credential) {
    self.id = id
    self.credential = credential
  }
}

/// What an adapter brings to be tested, and nothing more. One harness is one fresh service: each case gets its own.
public protocol ConformanceHarness: Sendable {
  var target: ConformanceTarget { get }
  /// What the adapter declares.
  var capabilities: CapabilitySet { get }
  var clock: any ChatClock { get }
  /// A source of client ids, so that a run can be repeated.
  var seed: UInt64 { get }

  /// Registers a user where the vendor demands it. `name` is unique within the harness.
  func makeUser(_ name: String) async throws -> TestUser
  func makeAdapter(device: String) async throws -> any ChatAdapter
  func makeSource() async throws -> any ChatSource
  func makeDestination() async throws -> any ChatDestination
  /// nil where the service cannot be made to lie.
  var faults: (any FaultControl)? { get }
  /// Lets what is under way go on without moving the clock.
  func settle() async
  /// Moves time forward (virtual), or lets it pass (real).
  func pass(_ duration: Duration) async
  /// Removes what this harness made.
  func cleanUp() async
}

/// The fault interface in neutral words.
public protocol FaultControl: Sendable {
  /// What this target can do; a case that needs another hook is skipped with `noHook`.
  var hooks: Set<String> { get }
  func inject(_ rule: FaultRule) async throws
  /// Removes all rules and returns those that never fired.
  func removeRules() async -> [FaultRule]
}
