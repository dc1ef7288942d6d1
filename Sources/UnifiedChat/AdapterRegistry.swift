/// The vendors that an app, a tool or a test has linked, by name. Transports are already inside the closures, so that
/// whoever holds a registry needs to know neither vendor nor wire.
public struct AdapterRegistry: Sendable {
  public struct Entry: Sendable {
    public var vendor: VendorName
    /// What the vendor can do, by model; "" is the default one.
    public var capabilities: [String: CapabilitySet]
    public var rules: ProfileRules
    public var makeAdapter: @Sendable (Profile, AdapterEnvironment) throws(ChatError) -> any ChatAdapter
    public var makeSource: @Sendable (Profile, AdapterEnvironment) throws(ChatError) -> any ChatSource
    public var makeDestination: @Sendable (Profile, AdapterEnvironment) throws(ChatError) -> any ChatDestination
    /// Asks the vendor's admin API for what lets an existing user connect; what an app's token server does. `.none`
    /// where the vendor lets any user in.
    public var issueCredential: @Sendable (UserID, Profile, AdapterEnvironment) async throws(ChatError) -> Credential
    /// Reads the files that the vendor's dashboard or its clients export, from a file or a folder, without any account;
    /// nil where nobody knows such files. Of the environment only the secret counts, which checks envelopes.
    public var readExport: (@Sendable (_ path: String, AdapterEnvironment) throws(ChatError) -> any ChatSource)?

    public init(
      vendor: VendorName, capabilities: [String: CapabilitySet], rules: ProfileRules,
      makeAdapter: @escaping @Sendable (Profile, AdapterEnvironment) throws(ChatError) -> any ChatAdapter,
      makeSource: @escaping @Sendable (Profile, AdapterEnvironment) throws(ChatError) -> any ChatSource,
      makeDestination: @escaping @Sendable (Profile, AdapterEnvironment) throws(ChatError) -> any ChatDestination,
      issueCredential: @escaping @Sendable (UserID, Profile, AdapterEnvironment) async throws(ChatError) -> Credential = {
        (_, _, _) async throws(ChatError) in .none
      },
      readExport: (@Sendable (_ path: String, AdapterEnvironment) throws(ChatError) -> any ChatSource)? = nil
    ) {
      self.vendor = vendor
      self.capabilities = capabilities
      self.rules = rules
      self.makeAdapter = makeAdapter
      self.makeSource = makeSource
      self.makeDestination = makeDestination
      self.issueCredential = issueCredential
      self.readExport = readExport
    }
  }

  public var entries: [Entry]

  public init(_ entries: [Entry]) { self.entries = entries }

  /// - Throws: `.configuration` errors that name the known vendors.
  public func entry(for vendor: VendorName) throws(ChatError) -> Entry {
    guard let entry = entries.first(where: { $0.vendor == vendor }) else {
      let known = entries.map(\.vendor.rawValue).joined(separator: ", ")
      throw ChatError(
        .invalidArgument(field: "vendor"), operation: .configuration,
        detail: "no vendor is called \"\(vendor)\"; known ones: \(known)")
    }
    return entry
  }
}

/// What a profile of one vendor must and may say.
public struct ProfileRules: Sendable, Hashable {
  /// Allowed values of `model`; empty: the key is not allowed.
  public var models: [String]
  public var needsAppID: Bool
  /// True where the vendor has no cloud of its own.
  public var needsAPIEndpoint: Bool
  /// True where clients and tools need the app's key.
  public var needsAppKey: Bool
  /// Names and one-line meanings of what may stand in `options`.
  public var options: [String: String]

  public init(
    models: [String] = [], needsAppID: Bool = false, needsAPIEndpoint: Bool = false, needsAppKey: Bool = false,
    options: [String: String] = [:]
  ) {
    self.models = models
    self.needsAppID = needsAppID
    self.needsAPIEndpoint = needsAPIEndpoint
    self.needsAppKey = needsAppKey
    self.options = options
  }
}

/// Secrets resolved, and what is injected.
public struct AdapterEnvironment: Sendable {
  public var appKey: String?
  public var adminSecret: String?
  public var clock: any ChatClock
  public var credentials: (any CredentialProvider)?
  /// Names one device among several of a user.
  public var device: String
  /// Seeds jitter and ids; nil: random.
  public var seed: UInt64?
  /// One line a call, without secrets and bodies.
  public var log: (@Sendable (Profile.LogLevel, String) -> Void)?
  /// Whether tools believe an import's envelope that `adminSecret` has not signed: written by a version that signed
  /// none, or before the secret was changed. Any member can write such a one.
  public var trustsUnsignedEnvelopes = false

  public init(
    appKey: String? = nil, adminSecret: String? = nil, clock: any ChatClock = SystemClock(),
    credentials: (any CredentialProvider)? = nil, device: String = "device", seed: UInt64? = nil,
    log: (@Sendable (Profile.LogLevel, String) -> Void)? = nil
  ) {
    self.appKey = appKey
    self.adminSecret = adminSecret
    self.clock = clock
    self.credentials = credentials
    self.device = device
    self.seed = seed
    self.log = log
  }
}
