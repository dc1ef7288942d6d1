import UnifiedChat

/// How often a run tries again what failed for a reason that passes.
public struct PaceSettings: Sendable, Hashable {
  /// Failures in a row of one request before the run gives up.
  public var attempts: Int
  /// Refusals for pace in a row of one request before the run gives up.
  public var limitedAttempts: Int
  public var baseDelay: Duration
  public var maxDelay: Duration

  public init(
    attempts: Int = 8, limitedAttempts: Int = 100, baseDelay: Duration = .milliseconds(500),
    maxDelay: Duration = .seconds(30)
  ) {
    self.attempts = attempts
    self.limitedAttempts = limitedAttempts
    self.baseDelay = baseDelay
    self.maxDelay = maxDelay
  }
}

/// Keeps all requests of a run to what the vendor allows.
///
/// A refusal for pace stops everybody for as long as the vendor says and doubles the distance between requests, which
/// then shrinks by a fiftieth with each success. Other passing failures are tried again after a growing, random delay.
actor Pacer {
  private let clock: any ChatClock
  private let settings: PaceSettings
  private var random: SeededGenerator
  private var interval: Duration = .zero
  private var nextStart = Timestamp(milliseconds: .min)
  private var pausedUntil = Timestamp(milliseconds: .min)
  /// Refusals for pace so far.
  private(set) var refusals = 0

  init(clock: any ChatClock, settings: PaceSettings = PaceSettings(), seed: UInt64 = 1) {
    self.clock = clock
    self.settings = settings
    random = SeededGenerator(seed: seed)
  }

  /// Does `body` until it succeeds or fails for good.
  nonisolated func perform<Value: Sendable>(
    _ operation: ChatError.Operation, _ body: () async throws(ChatError) -> Value
  ) async throws(ChatError) -> Value {
    var attempt = 0
    while true {
      try await admit(operation)
      do throws(ChatError) {
        let value = try await body()
        await succeeded()
        return value
      } catch {
        attempt += 1
        try await recover(from: error, attempt: attempt)
      }
    }
  }

  /// Returns when the next request may start.
  func admit(_ operation: ChatError.Operation) async throws(ChatError) {
    while true {
      if Task.isCancelled { throw .cancelled(operation) }
      let now = clock.now
      let start = max(now, max(nextStart, pausedUntil))
      guard start > now else {
        nextStart = now + interval
        return
      }
      if pausedUntil <= start { nextStart = start + interval }
      try await sleep(start - now, operation)
      // Whoever waited for its slot has it, unless a refusal has come meanwhile.
      if pausedUntil <= clock.now { return }
    }
  }

  func succeeded() {
    interval = interval * 49 / 50
    if interval < .milliseconds(1) { interval = .zero }
  }

  /// Waits as long as `error` advises.
  /// - Throws: `error` where no later try can help, or too many have failed.
  func recover(from error: ChatError, attempt: Int) async throws(ChatError) {
    if case .rateLimited(let told) = error.kind {
      guard attempt < settings.limitedAttempts else { throw error }
      return slowDown(told)
    }
    guard attempt < settings.attempts else { throw error }
    switch error.retry {
    case .never, .afterRenewal: throw error
    case .after(let wait): try await sleep(wait, error.operation)
    case .now: try await sleep(backOff(attempt), error.operation)
    }
  }

  private func slowDown(_ told: Duration?) {
    refusals += 1
    let until = clock.now + (told ?? .seconds(1))
    // Requests that were under way together are refused together, and count as one sign.
    if pausedUntil <= clock.now { interval = min(max(interval * 2, .milliseconds(20)), .seconds(5)) }
    pausedUntil = max(pausedUntil, until)
  }

  private func backOff(_ attempt: Int) -> Duration {
    let ceiling = min(settings.baseDelay * (1 << min(attempt - 1, 16)), settings.maxDelay)
    return .milliseconds(Int64.random(in: 0...max(ceiling.wholeMilliseconds, 0), using: &random))
  }

  private func sleep(_ duration: Duration, _ operation: ChatError.Operation) async throws(ChatError) {
    do { try await clock.sleep(for: duration) } catch { throw .cancelled(operation) }
  }
}

/// SplitMix64: the same delays for the same seed.
struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
