import UnifiedChat

/// The ideal service as something to be tested: the cases are made on it.
public struct IdealHarness: ConformanceHarness {
  public let target = ConformanceTarget.ideal
  public let capabilities = IdealAdapter.capabilities
  public let seed: UInt64
  private let service: IdealService
  private let manual = ManualClock()
  private let control: IdealFaults

  public init(seed: UInt64) {
    self.seed = seed
    service = IdealService(clock: manual)
    control = IdealFaults(service: service)
  }

  public let declaredSkips = [
    "LIMIT-01": "the model has no limits",
    "UNICODE-10": "the model has no limits",
    "MIGR-13": "the model has no limits",
    "LIMIT-02": "no limit of ids is known",
    "LIMIT-03": "no limit of members that can be reached",
    "MIGR-23": "the vendor exports no files",
    "RCPT-05": "readers of groups are there, so that their absence cannot be shown",
  ]

  public var clock: any ChatClock { manual }
  public var faults: (any FaultControl)? { control }

  public func makeUser(_ name: String) async throws -> TestUser {
    let user = UserID(name)
    await service.register(User(id: user, name: name), token: "token-\(name)")
    return TestUser(id: user, credential: .token("token-\(name)"))
  }

  public func issueCredential(for user: UserID) async throws -> Credential { .token("token-\(user)") }

  public func makeAdapter(_ device: TestDevice) async throws -> any ChatAdapter { IdealAdapter(service: service) }
  public func makeSource() async throws -> any ChatSource { IdealSource(service: service) }
  public func makeDestination() async throws -> any ChatDestination { IdealDestination(service: service) }

  public func settle() async { for _ in 0..<8 { await Task.yield() } }

  public func pass(_ duration: Duration) async {
    let end = manual.now + duration
    // Those who wake may sleep again before the end.
    while let next = manual.nextWakeUp, next <= end {
      manual.advance(to: next)
      await settle()
    }
    manual.advance(to: end)
    await settle()
  }

  public func cleanUp() async {}
}

private struct IdealFaults: FaultControl {
  let service: IdealService
  let hooks: Set<String> = ["closeSocket", "afterCommit", "drop", "fail", "duplicate", "kickByAdmin", "revokeCredential"]

  func inject(_ rule: FaultRule) async throws {
    guard Self.operations.contains(rule.operation) else { throw NoHook(rule.operation) }
    await service.arm(rule)
  }

  /// What the service lets faults act on.
  private static let operations: Set<String> = ["auth", "send", "push", "history", "channelCreate"]

  func removeRules() async -> [FaultRule] { await service.disarm() }
  func wire(since index: UInt64) async -> [WireEntry] { [] }
  func sockets(of user: UserID) async -> Int { 0 }

  func perform(_ action: ServiceAction) async throws {
    switch action {
    case .cut(let user), .close(let user, _): await service.end(user, .linkLost)
    case .user(.kickByAdmin, let user): await service.end(user, .refused(.kickedByAdmin))
    case .user(.revokeCredential, let user): await service.revoke(user)
    default: throw NoHook(action.hook)
    }
  }
}
