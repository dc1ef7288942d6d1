/// What `unifiedchat.json` says (`Schemas/config.schema.json`).
public struct ChatConfiguration: Sendable, Hashable {
  /// The name of the profile in use: the one value that switches vendors.
  public var use: String
  public var profiles: [String: Profile]

  public init(use: String, profiles: [String: Profile]) {
    self.use = use
    self.profiles = profiles
  }
}

/// One way to reach one app at one vendor.
public struct Profile: Sendable, Hashable {
  public var name: String
  public var vendor: VendorName
  /// A variant of the vendor's model, where it has several.
  public var model: String?
  public var appID: String?
  public var endpoints: Endpoints
  public var credentials: Credentials
  public var cache: CacheSettings
  public var retry: RetrySettings
  public var logLevel: LogLevel
  /// The vendor's own switches, checked by its registry entry.
  public var options: [String: JSONText]

  /// Absent endpoints are the vendor's own cloud.
  public struct Endpoints: Sendable, Hashable {
    public var api: String?
    public var realtime: String?
    public var router: String?

    public init(api: String? = nil, realtime: String? = nil, router: String? = nil) {
      self.api = api
      self.realtime = realtime
      self.router = router
    }
  }

  public struct Credentials: Sendable, Hashable {
    /// The public key of the app, where the vendor has one beside the id.
    public var appKey: SecretReference?
    /// The token of the user who connects.
    public var token: SecretReference?
    /// API token, server secret or master key: for sources and destinations only.
    public var admin: SecretReference?

    public init(appKey: SecretReference? = nil, token: SecretReference? = nil, admin: SecretReference? = nil) {
      self.appKey = appKey
      self.token = token
      self.admin = admin
    }
  }

  public struct CacheSettings: Sendable, Hashable {
    /// nil: the platform's usual place for caches.
    public var directory: String?
    /// nil: no limit.
    public var maxBytes: Int64?

    public init(directory: String? = nil, maxBytes: Int64? = nil) {
      self.directory = directory
      self.maxBytes = maxBytes
    }
  }

  public struct RetrySettings: Sendable, Hashable {
    /// nil: without end, as an app in a tunnel wants.
    public var maxAttempts: Int?
    public var baseDelay: Duration
    public var maxDelay: Duration
    public var requestTimeout: Duration

    public init(
      maxAttempts: Int? = nil, baseDelay: Duration = .seconds(1), maxDelay: Duration = .seconds(30),
      requestTimeout: Duration = .seconds(10)
    ) {
      self.maxAttempts = maxAttempts
      self.baseDelay = baseDelay
      self.maxDelay = maxDelay
      self.requestTimeout = requestTimeout
    }
  }

  public enum LogLevel: String, Sendable, Hashable, CaseIterable { case off, error, info, debug }

  public init(
    name: String, vendor: VendorName, model: String? = nil, appID: String? = nil, endpoints: Endpoints = Endpoints(),
    credentials: Credentials = Credentials(), cache: CacheSettings = CacheSettings(),
    retry: RetrySettings = RetrySettings(), logLevel: LogLevel = .error, options: [String: JSONText] = [:]
  ) {
    self.name = name
    self.vendor = vendor
    self.model = model
    self.appID = appID
    self.endpoints = endpoints
    self.credentials = credentials
    self.cache = cache
    self.retry = retry
    self.logLevel = logLevel
    self.options = options
  }
}

/// Where a secret is, not the secret.
public enum SecretReference: Sendable, Hashable {
  case environment(String)
  case file(String)
  case keychain(String)
  /// Allowed with a warning: a secret that stands in the file itself.
  case literal(String)
}
