import AllAdapters
import ChatConformance
import ChatEmulation
import ChatJSON
import ChatTransport
import Synchronization
import UnifiedChat

extension ConformanceActs: VendorActs {}

/// An adapter against its vendor's emulator, fresh for each case.
public final class EmulatorHarness: ConformanceHarness {
  public let target: ConformanceTarget
  public let capabilities: CapabilitySet
  public let differences: Set<DeclaredDifference>
  public let declaredSkips: [String: String]
  public let limits: [String: Int64]
  public let paths: [String: String]
  public let odd: [String: [String: String]]
  public let codes: [Int: String]
  public let errorBody: (text: String, code: String)?
  public let signingSecret: String? = adminSecret
  public let seed: UInt64

  private let entry: AdapterRegistry.Entry
  private let profile: Profile
  private let exclusive: [String: String]
  private let json: [String: String]
  private let host: EmulatorHost
  private let server: EmulatorServer?
  private let time: any ChatClock
  private let control: EmulatorFaults
  private let transports: Transports
  private let vendor: String
  /// Live as long as the adapters that face them.
  private let badServers = Mutex<[OpenSSLServer]>([])

  public static let applicationID = "conformance-app"
  private static let adminSecret = "conformance-admin-secret"

  /// - Parameters:
  ///   - vendor: a name of the registry; `model` one of its models, nil for the usual one.
  ///   - target: `inproc` without sockets, or `loopback`; both on a virtual clock.
  ///   - limits: the vendor's own, but for measuring.
  ///   - clock: of the service and, unless a device has its own, of the clients; nil stands still until a case lets
  ///     time pass, also over sockets, so that a busy machine makes nothing late.
  ///   - journal: frames are looked at and kept, to be printed; off for measuring.
  public init(
    vendor: String, model: String?, target: ConformanceTarget, seed: UInt64, limits: EmulatorOptions.Limits = .real,
    clock: (any ChatClock)? = nil, journal: JournalSettings = JournalSettings(limit: 5000, keepsBytes: true)
  ) async throws {
    guard let factory = AllAdapters.emulator(for: vendor) else {
      throw ChatError(
        .invalidArgument(field: "adapter"), operation: .emulate, detail: "no emulator is called \"\(vendor)\"")
    }
    self.target = target
    self.seed = seed
    let options = EmulatorOptions(
      seed: seed, limits: limits, applicationID: Self.applicationID, adminSecret: Self.adminSecret, baseURL: "http://\(vendor).test")
    let time = clock ?? ManualClock()
    host = try EmulatorHost(factory, options: options, clock: .shared(time), journal: journal)
    self.time = time
    let facts = AllAdapters.facts(of: vendor, model: model)
    control = EmulatorFaults(host: host, isOnSockets: target == .loopback, settings: facts.settings)
    paths = facts.paths
    odd = facts.odd
    codes = facts.codes
    errorBody = facts.errorBody
    exclusive = facts.exclusive
    json = facts.json
    differences = Set(facts.differences.compactMap { DeclaredDifference(rawValue: $0) })
    self.limits = facts.limits
    declaredSkips = AllAdapters.declaredSkips(of: vendor, model: model)
    server = target == .loopback ? try await EmulatorServer(host) : nil
    self.vendor = vendor
    transports = target == .loopback ? .system() : host.transports
    entry = try AllAdapters.registry(transports: transports).entry(for: VendorName(vendor))
    capabilities = entry.capabilities[model ?? ""] ?? CapabilitySet([:])
    profile = Self.profile(vendor: vendor, model: model, baseURL: server?.baseURL ?? "http://\(vendor).test")
  }

  /// A profile that leads to an emulator at `baseURL`.
  public static func profile(
    vendor: String, model: String?, baseURL: String, applicationID: String = applicationID
  ) -> Profile {
    Profile(
      name: vendor, vendor: VendorName(vendor), model: model, appID: applicationID,
      endpoints: .init(
        api: baseURL, realtime: "ws" + baseURL.dropFirst("http".count), router: baseURL))
  }

  public var clock: any ChatClock { time }

  /// With a seed of each device's own: what is drawn by chance is not drawn alike by all.
  private func environment(device: String) -> AdapterEnvironment {
    let own = device.utf8.reduce(seed ^ 0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    return AdapterEnvironment(
      appKey: "conformance-key", adminSecret: Self.adminSecret, clock: time, device: device, seed: own)
  }

  public func issueCredential(for user: UserID) async throws -> Credential {
    try await entry.issueCredential(user, profile, environment(device: "token-server"))
  }

  public func makeUser(_ name: String) async throws -> TestUser {
    let destination = try await makeDestination()
    let outcomes = try await destination.putUsers([UserRecord(user: User(id: UserID(name), name: name))])
    // A vendor whose alphabet is smaller stores another id than the one asked for.
    var user = UserID(name)
    switch outcomes.first {
    case .refused(let error): throw error
    case .written(let id), .existed(let id): user = id
    case .skipped, nil: break
    }
    let credential = try await entry.issueCredential(user, profile, environment(device: "token-server"))
    return TestUser(id: user, credential: credential)
  }

  /// What writes is the vendor's, whatever model its clients speak; what reads has to know where that model keeps it.
  private var adminProfile: Profile {
    var profile = profile
    profile.model = nil
    return profile
  }

  public var acts: (any VendorActs)? {
    ConformanceActs(vendor: vendor, profile: profile, environment: environment(device: "acts"), http: transports.http)
  }

  public func makeAdapter(_ device: TestDevice, facing certificate: BadCertificate) async throws -> any ChatAdapter {
    let server = try await OpenSSLServer.start(
      name: certificate == .otherHost ? "elsewhere.test" : "localhost", isExpired: certificate == .expired)
    badServers.withLock { $0.append(server) }
    let transports = Transports.trusting(certificate == .selfSigned ? nil : server.certificate)
    let entry = try AllAdapters.registry(transports: transports).entry(for: VendorName(vendor))
    var profile = profile
    let host = "localhost:\(server.port)"
    profile.endpoints = .init(api: "https://\(host)", realtime: "wss://\(host)", router: "https://\(host)")
    return try entry.makeAdapter(profile, environment(of: device))
  }

  private func environment(of device: TestDevice) -> AdapterEnvironment {
    var environment = environment(device: device.name)
    environment.clock = device.clock
    environment.credentials = device.credentials
    environment.log = device.log
    return environment
  }

  public func makeAdapter(_ device: TestDevice) async throws -> any ChatAdapter {
    var profile = profile
    var more = device.isExclusive ? exclusive : [:]
    if device.usesJSON { more.merge(json) { first, _ in first } }
    for (name, value) in more { profile.options[name] = JSONText(unchecked: value) }
    return try entry.makeAdapter(profile, environment(of: device))
  }

  public func makeSource() async throws -> any ChatSource {
    try entry.makeSource(profile, environment(device: "source"))
  }

  public func makeDestination() async throws -> any ChatDestination {
    try entry.makeDestination(adminProfile, environment(device: "destination"))
  }

  public var faults: (any FaultControl)? { control }

  public func settle() async {
    await host.quiesce()
    for _ in 0..<8 { await Task.yield() }
    if target == .loopback {
      // Sockets are outside of this process' control: a turn of real time lets them move.
      try? await Task.sleep(for: .milliseconds(1))
    }
  }

  public func pass(_ duration: Duration) async {
    guard target == .loopback else { return await host.advance(by: duration) }
    var left = duration
    while left > .zero {
      let step = min(left, .seconds(1))
      await host.advance(by: step)
      left -= step
      // What woke writes to sockets, and the answer comes in real time.
      try? await Task.sleep(for: .milliseconds(2))
    }
  }

  public func leftovers() async -> [String] {
    var lines: [String] = []
    let sockets = await host.openConnections
    if sockets > 0 { lines.append("\(sockets) sockets") }
    let requests = await host.pendingExchanges
    if requests > 0 { lines.append("\(requests) requests without an answer") }
    return lines
  }

  public func unexpectedCalls() async -> [String] {
    await host.control.coverage().filter { !$0.isImplemented && $0.calls > 0 }.map { "\($0.calls) x \($0.endpoint)" }
  }

  public func transcript(limit: Int) async -> [String] {
    let entries = await host.control.journal()
    return Transcript.lines(entries.suffix(limit))
  }

  public func cleanUp() async { await server?.stop() }
}

extension Transports {
  /// The platform's own; on Linux they trust who vouches for a certificate in this file.
  fileprivate static func trusting(_ authorities: String?) -> Transports {
    #if os(Linux)
      Transports(
        http: CurlHTTPClient(certificateAuthorities: authorities),
        webSocket: LWSWebSocketClient(certificateAuthorities: authorities))
    #else
      .system()
    #endif
  }
}
