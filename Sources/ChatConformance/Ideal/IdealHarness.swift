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

  public var clock: any ChatClock { manual }
  public var faults: (any FaultControl)? { control }

  public func makeUser(_ name: String) async throws -> TestUser {
    let user = UserID(name)
    await service.register(User(id: user, name: name), token: "token-\(name)")
    return TestUser(id: user, credential: .token("token-\(name)"))
  }

  public func makeAdapter(device: String) async throws -> any ChatAdapter { IdealAdapter(service: service) }
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
  let hooks: Set<String> = ["closeSocket", "afterCommit", "drop", "fail", "duplicate"]

  func inject(_ rule: FaultRule) async throws { await service.arm(rule) }
  func removeRules() async -> [FaultRule] { await service.disarm() }
}
