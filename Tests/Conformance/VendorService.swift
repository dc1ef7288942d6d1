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

  init(_ vendor: String) throws {
    self.vendor = vendor
    let options = EmulatorOptions(
      seed: 7, limits: .off, applicationID: EmulatorHarness.applicationID, adminSecret: "pair-secret",
      baseURL: "http://\(vendor).test")
    host = try EmulatorHost(try #require(AllAdapters.emulator(for: vendor)), options: options)
    entry = try AllAdapters.registry(transports: host.transports).entry(for: VendorName(vendor))
    profile = EmulatorHarness.profile(vendor: vendor, model: nil, baseURL: "http://\(vendor).test")
  }

  private var environment: AdapterEnvironment {
    AdapterEnvironment(appKey: "pair-key", adminSecret: "pair-secret", device: "tools", seed: 7)
  }
  func source(trusting: Bool = false) throws -> any ChatSource {
    var environment = environment
    environment.trustsUnsignedEnvelopes = trusting
    return try entry.makeSource(profile, environment)
  }
  func destination() throws -> any ChatDestination { try entry.makeDestination(profile, environment) }
}
