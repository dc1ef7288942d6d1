import AllAdapters
import ChatEmulation
import ChatHarness
import ChatTransport
import Testing
import UnifiedChat

/// One vendor's service, in process.
struct VendorService {
  static let names = ["leancloud", "openim", "sendbird"]

  let vendor: String
  let host: EmulatorHost
  let entry: AdapterRegistry.Entry
  let profile: Profile
  let environment: AdapterEnvironment

  /// - Parameters:
  ///   - clock: of service and clients alike, where a test moves it.
  ///   - http: what stands between the clients and the service.
  init(
    _ vendor: String, clock: ManualClock? = nil, device: String = "tools",
    http: (any HTTPClient) -> any HTTPClient = { $0 }
  ) throws {
    self.vendor = vendor
    var environment = AdapterEnvironment(appKey: "pair-key", adminSecret: "pair-secret", device: device, seed: 7)
    if let clock { environment.clock = clock }
    self.environment = environment
    let options = EmulatorOptions(
      seed: 7, limits: .off, applicationID: EmulatorHarness.applicationID, adminSecret: "pair-secret",
      baseURL: "http://\(vendor).test")
    host = try EmulatorHost(
      try #require(AllAdapters.emulator(for: vendor)), options: options, clock: clock.map { .shared($0) } ?? .real)
    let transports = Transports(http: http(host.transports.http), webSocket: host.transports.webSocket)
    entry = try AllAdapters.registry(transports: transports).entry(for: VendorName(vendor))
    profile = EmulatorHarness.profile(vendor: vendor, model: nil, baseURL: "http://\(vendor).test")
  }

  func source(trusting: Bool = false) throws -> any ChatSource {
    var environment = environment
    environment.trustsUnsignedEnvelopes = trusting
    return try entry.makeSource(profile, environment)
  }
  func destination() throws -> any ChatDestination { try entry.makeDestination(profile, environment) }
  func adapter() throws -> any ChatAdapter { try entry.makeAdapter(profile, environment) }
  func credential(of user: UserID) async throws -> Credential { try await entry.issueCredential(user, profile, environment) }
}
