import AllAdapters
import ChatConformance
import Synchronization
import UnifiedChat

/// An adapter against its vendor's service, or a server of one's own, with the keys of a profile.
///
/// Users are made under a prefix of this run. What was made is removed at the end as far as the contract reaches:
/// channels are deleted where the vendor can, else left by every user; users stay, since no call removes them.
public final class LiveHarness: ConformanceHarness {
  public let target = ConformanceTarget.live
  public let capabilities: CapabilitySet
  public let differences: Set<DeclaredDifference>
  public let declaredSkips: [String: String]
  public let limits: [String: Int64]
  public let seed: UInt64
  public let clock: any ChatClock = SystemClock()
  public var faults: (any FaultControl)? { nil }

  private let entry: AdapterRegistry.Entry
  private let profile: Profile
  private let environment: AdapterEnvironment
  private let prefix: String
  private let users = Mutex<[TestUser]>([])

  /// - Parameter environment: with the admin's secret; users are made with it.
  public init(
    entry: AdapterRegistry.Entry, profile: Profile, environment: AdapterEnvironment, facts: (Set<String>, [String: Int64]),
    seed: UInt64
  ) {
    self.entry = entry
    self.profile = profile
    self.environment = environment
    self.seed = seed
    capabilities = entry.capabilities[profile.model ?? ""] ?? CapabilitySet([:])
    differences = Set(facts.0.compactMap { DeclaredDifference(rawValue: $0) })
    limits = facts.1
    declaredSkips = AllAdapters.declaredSkips(of: profile.vendor.rawValue, model: profile.model).merging([
      "CACHE-02": "users are made under a prefix of this run", "AUTH-13": "users are made under a prefix of this run", "UNICODE-08": "users are made under a prefix of this run",
      "LIMIT-02": "users are made under a prefix of this run", "MIGR-23": "no export is asked of a live service",
    ]) { first, _ in first }
    // Unlike in any other run, so that nothing of an earlier one is in the way.
    prefix = "uc" + String(UInt64(max(0, SystemClock().now.milliseconds)), radix: 36)
  }

  public func makeUser(_ name: String) async throws -> TestUser {
    let id = UserID("\(prefix)-\(name)")
    let outcomes = try await makeDestination().putUsers([UserRecord(user: User(id: id, name: name))])
    var stored = id
    switch outcomes.first {
    case .refused(let error): throw error
    case .written(let written), .existed(let written): stored = written
    case .skipped, nil: break
    }
    let user = TestUser(id: stored, credential: try await issueCredential(for: stored))
    users.withLock { $0.append(user) }
    return user
  }

  public func issueCredential(for user: UserID) async throws -> Credential {
    try await entry.issueCredential(user, profile, environment(device: "token-server"))
  }

  private func environment(device: String) -> AdapterEnvironment {
    var environment = environment
    environment.device = device
    return environment
  }

  public func makeAdapter(_ device: TestDevice) async throws -> any ChatAdapter {
    var environment = environment(device: device.name)
    environment.clock = device.clock
    environment.credentials = device.credentials
    environment.log = device.log
    // A client never holds the admin's key.
    environment.adminSecret = nil
    return try entry.makeAdapter(profile, environment)
  }

  public func makeSource() async throws -> any ChatSource {
    try entry.makeSource(profile, environment(device: "source"))
  }

  public func makeDestination() async throws -> any ChatDestination {
    try entry.makeDestination(profile, environment(device: "destination"))
  }

  public func settle() async { try? await clock.sleep(for: .milliseconds(20)) }

  public func pass(_ duration: Duration) async {
    // Virtual hours are not waited for: cases that need them ask for the hook `virtualTime`.
    try? await clock.sleep(for: min(duration, .seconds(2)))
  }

  public func cleanUp() async {
    for user in users.withLock({ $0 }) {
      guard let adapter = try? await makeAdapter(TestDevice(name: "cleaning", clock: clock)),
        (try? await adapter.connect(as: user.id, credential: user.credential)) != nil
      else { continue }
      await removeChannels(of: adapter)
      await adapter.disconnect()
    }
    users.withLock { $0 = [] }
  }

  private func removeChannels(of adapter: any ChatAdapter) async {
    let query = ChannelQuery(includesHidden: true, limit: 100)
    guard let found = try? await adapter.channels(query, page: nil) else { return }
    for channel in found.items {
      if capabilities.has(.channelDelete), (try? await adapter.deleteChannel(channel.id)) != nil { continue }
      try? await adapter.leave(channel.id)
    }
  }
}
