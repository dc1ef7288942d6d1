/// How often a request is tried, and how long one waits between: exponential with full jitter.
public struct RetryPolicy: Sendable, Hashable {
  /// The first try included; 1 never tries again.
  public var attempts: Int
  /// The longest wait before the second try; it doubles with each further one.
  public var base: Duration
  /// No wait of our own is longer.
  public var cap: Duration
  /// A server that asks for a longer wait than this is not asked again: its answer is the outcome.
  public var longestRetryAfter: Duration

  public init(
    attempts: Int = 4, base: Duration = .milliseconds(250), cap: Duration = .seconds(20),
    longestRetryAfter: Duration = .seconds(60)
  ) {
    self.attempts = attempts
    self.base = base
    self.cap = cap
    self.longestRetryAfter = longestRetryAfter
  }

  /// A wait before the try after `failures` (≥ 1) failed ones, drawn evenly from nothing to
  /// `min(cap, base × 2^(failures − 1))`: clients that failed together do not come back together.
  public func delay(afterFailures failures: Int, using random: inout some RandomNumberGenerator) -> Duration {
    // Beyond 40 doublings every base is over every cap that makes sense, and nothing overflows.
    let doublings = min(max(1, failures) - 1, 40)
    let longest = min(cap.seconds, base.seconds * Double(1 << doublings))
    return longest > 0 ? .seconds(Double.random(in: 0...longest, using: &random)) : .zero
  }

  /// What a `Retry-After` field asks for: whole seconds, or a date counted from `now` (ms since 1970). A date that has
  /// passed is no wait. Nil for what is neither.
  public static func retryAfter(_ value: String, now: Int64) -> Duration? {
    let text = value.utf8.drop { $0 == 0x20 }
    let digits = text.prefix { (0x30...0x39).contains($0) }
    if !digits.isEmpty, text[digits.endIndex...].allSatisfy({ $0 == 0x20 }) {
      // More seconds than fit are more than anyone waits.
      return .seconds(Int64(String(Substring(digits))) ?? Int64(Int32.max))
    }
    guard let date = HTTPDate.milliseconds(value) else { return nil }
    return .milliseconds(max(0, date &- now))
  }
}
