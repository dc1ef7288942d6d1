import Foundation
import Synchronization

/// Tries requests again where that can help and can't harm.
///
/// - A request of which nothing was sent is tried again whatever it is; otherwise only one that may be repeated:
///   GET, HEAD, OPTIONS, TRACE, PUT and DELETE, or what `HTTPRequest.mayRepeat` says.
/// - Failures of the network and timeouts are tried again; failures of TLS, limits and broken answers are not.
/// - Of the statuses, 408, 429, 500, 502, 503 and 504 are tried again. After 429 the server has done nothing, so that
///   it is tried again whatever the request is.
/// - `Retry-After` of the server goes before the wait of our own. When all tries failed, the last outcome stands.
public final class RetryingHTTPClient: HTTPClient {
  public typealias Sleep = @Sendable (Duration) async throws -> Void

  private let base: any HTTPClient
  private let policy: RetryPolicy
  private let random: Mutex<any RandomNumberGenerator & Sendable>
  private let now: @Sendable () -> Int64
  private let sleep: Sleep

  /// - Parameters:
  ///   - now: ms since 1970, for dates in `Retry-After`.
  ///   - sleep: returns after that time; throws when the task is cancelled.
  public init(
    _ base: any HTTPClient, policy: RetryPolicy = RetryPolicy(),
    random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator(),
    now: @escaping @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970 * 1000) },
    // Waiting is the very purpose; tests give another.
    sleep: @escaping Sleep = { try await Task.sleep(for: $0) }
  ) {
    self.base = base
    self.policy = policy
    self.random = Mutex(random)
    self.now = now
    self.sleep = sleep
  }

  public func send(
    _ request: HTTPRequest, progress: (@Sendable (TransferProgress) -> Void)?
  ) async throws(TransportError) -> HTTPResponse {
    var failures = 0
    while true {
      let outcome: Result<HTTPResponse, TransportError>
      do throws(TransportError) {
        outcome = .success(try await base.send(request, progress: progress))
      } catch {
        outcome = .failure(error)
      }
      failures += 1
      guard failures < policy.attempts, let delay = delay(after: outcome, of: request, failures: failures) else {
        return try outcome.get()
      }
      do { try await sleep(delay) } catch {
        throw TransportError(.cancelled, detail: "cancelled between two tries", nothingSent: outcome.nothingSent)
      }
    }
  }

  /// How long to wait before the next try, or nil if there is to be none.
  private func delay(
    after outcome: Result<HTTPResponse, TransportError>, of request: HTTPRequest, failures: Int
  ) -> Duration? {
    switch outcome {
    case .success(let response):
      guard Self.statuses.contains(response.status), response.status == 429 || request.isRepeatable else { return nil }
      guard let asked = response.headers["Retry-After"].flatMap({ RetryPolicy.retryAfter($0, now: now()) }) else {
        break
      }
      return asked <= policy.longestRetryAfter ? asked : nil
    case .failure(let error):
      guard Self.mayPass(error.kind), error.nothingSent || request.isRepeatable else { return nil }
    }
    return random.withLock { policy.delay(afterFailures: failures, using: &$0) }
  }

  private static let statuses: Set<Int> = [408, 429, 500, 502, 503, 504]

  private static func mayPass(_ kind: TransportError.Kind) -> Bool {
    switch kind {
    case .unresolvedHost, .refused, .unreachable, .timeout, .closed: true
    case .invalidURL, .tls, .cancelled, .upgradeRefused, .tooLarge, .protocolViolation, .other: false
    }
  }
}

extension HTTPRequest {
  /// The caller's word, or else whether the method is idempotent (RFC 9110 §9.2.2).
  var isRepeatable: Bool { mayRepeat ?? (isSafe || method == "PUT" || method == "DELETE") }
}

extension Result where Success == HTTPResponse, Failure == TransportError {
  /// An answer proves that something was sent.
  fileprivate var nothingSent: Bool { if case .failure(let error) = self { error.nothingSent } else { false } }
}
