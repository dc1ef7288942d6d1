import ChatCache
import Foundation
import UnifiedChat

extension Chat {
  /// A client for the profile in use: the vendor is a value of the configuration.
  ///
  /// The adapter comes from `registry`, the cache lies where the profile says or in the platform's folder for caches,
  /// and `connect(as:)` uses the profile's token.
  /// - Parameters:
  ///   - profile: another profile than the one in use.
  ///   - credentials: asked for a credential, and for a new one when it expires.
  ///   - options: `cacheLocation`, `app` and `retry` of it are replaced by what the profile says.
  /// - Throws: `.invalidArgument` for an unknown profile or vendor and for a secret that is not there.
  public init(
    configuration: ChatConfiguration, registry: AdapterRegistry, profile name: String? = nil,
    clock: any ChatClock = SystemClock(), credentials: (any CredentialProvider)? = nil, device: String = "device",
    options: ChatOptions = ChatOptions()
  ) throws(ChatError) {
    let profile = try configuration.profile(name)
    let entry = try registry.entry(for: profile.vendor)
    var environment = AdapterEnvironment(
      clock: clock, credentials: credentials, device: device, seed: options.seed, log: options.log)
    environment.appKey = try profile.credentials.appKey?.resolve(field: "credentials/appKey")
    let adapter = try entry.makeAdapter(profile, environment)
    var options = options
    options.retry = profile.retry
    options.app = profile.appID ?? profile.endpoints.api ?? ""
    options.cacheLocation = .directory(try profile.cacheDirectory())
    options.cacheLimit = profile.cache.maxBytes
    if let token = profile.credentials.token {
      options.credential = .token(try token.resolve(field: "credentials/token"))
    }
    options.credentials = credentials
    self.init(adapter: adapter, clock: clock, options: options)
  }

  /// Connects with the credential of the configuration: of the provider if there is one, else the profile's token.
  public func connect(as user: UserID) async throws(ChatError) -> User {
    guard let provider = options.credentials else { return try await connect(as: user, credential: options.credential) }
    let credential: Credential
    do { credential = try await provider.credential(for: user) } catch {
      throw ChatError(
        .authentication, operation: .renewCredential, detail: "the app's credential provider failed: \(type(of: error))")
    }
    return try await connect(as: user, credential: credential)
  }
}

extension ChatConfiguration {
  /// The profile `name`, or the one in use.
  /// - Throws: `.invalidArgument` that names the nearest one.
  public func profile(_ name: String? = nil) throws(ChatError) -> Profile {
    let wanted = name ?? use
    if let profile = profiles[wanted] { return profile }
    let names = profiles.keys.sorted()
    let hint = NearestName.of(wanted, in: names).map { "did you mean \"\($0)\"?" } ?? "known: \(names.joined(separator: ", "))"
    throw ChatError(
      .invalidArgument(field: "use"), operation: .configuration, detail: "there is no profile \"\(wanted)\"; \(hint)")
  }
}

extension Profile {
  /// Where caches of this profile lie.
  /// - Throws: `.storage` where the platform has no folder for caches and the profile names none.
  public func cacheDirectory() throws(ChatError) -> String {
    if let directory = cache.directory { return directory }
    guard let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first else {
      throw ChatError(
        .storage(.denied), operation: .configuration, detail: "no folder for caches here; set cache.directory")
    }
    return caches.appending(path: "UnifiedChat").path
  }
}
