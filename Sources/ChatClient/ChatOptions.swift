import ChatCache
import Foundation
import UnifiedChat

/// How a `Chat` behaves; the defaults are right for an app.
public struct ChatOptions: Sendable {
  public var cacheLocation: CacheLocation
  /// Keeps the caches of several apps at one vendor apart.
  public var app: String
  /// Bytes that the cache may take; nil: no limit. Old and read messages go first, unsent ones never.
  public var cacheLimit: Int64?
  /// What `connect(as:)` uses.
  public var credential = Credential.none
  /// Asked by `connect(as:)` instead.
  public var credentials: (any CredentialProvider)?
  /// How sends are tried again.
  public var retry: Profile.RetrySettings
  /// After each connect, whether the channel list is read and compared with the cache.
  public var syncsChannels: Bool
  /// Channels whose missed messages are fetched at the same time.
  public var parallelCatchUps: Int
  /// Messages that a catch-up asks for at once.
  public var catchUpPage: Int
  /// An unsent message older than this is not sent any more but fails, so that the user decides.
  public var outboxLifetime: Duration
  /// A typing hint ends by itself after this.
  public var typingLifetime: Duration
  /// Events kept for a slow subscriber before it is told of an overflow.
  public var eventCapacity: Int
  /// Makes local ids: different in every call, also of other devices.
  public var makeID: @Sendable () -> String
  /// Seeds the jitter of retries; nil: random.
  public var seed: UInt64?
  /// One line a call, without secrets and bodies.
  public var log: (@Sendable (Profile.LogLevel, String) -> Void)?

  public init(
    cacheLocation: CacheLocation = .memory, app: String = "", cacheLimit: Int64? = nil, retry: Profile.RetrySettings = Profile.RetrySettings(),
    syncsChannels: Bool = true, parallelCatchUps: Int = 4, catchUpPage: Int = 100,
    outboxLifetime: Duration = .seconds(3 * 86_400), typingLifetime: Duration = .seconds(10),
    eventCapacity: Int = 4096, makeID: @escaping @Sendable () -> String = { UUID().uuidString.lowercased() },
    seed: UInt64? = nil, log: (@Sendable (Profile.LogLevel, String) -> Void)? = nil
  ) {
    self.cacheLocation = cacheLocation
    self.app = app
    self.cacheLimit = cacheLimit
    self.retry = retry
    self.syncsChannels = syncsChannels
    self.parallelCatchUps = max(1, parallelCatchUps)
    self.catchUpPage = max(1, catchUpPage)
    self.outboxLifetime = outboxLifetime
    self.typingLifetime = typingLifetime
    self.eventCapacity = eventCapacity
    self.makeID = makeID
    self.seed = seed
    self.log = log
  }
}
