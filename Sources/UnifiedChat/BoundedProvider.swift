import Synchronization

/// An app's token server may hang; whoever waits for it must not.
extension CredentialProvider {
  /// The provider's answer, if it comes within `limit` by `clock`. What the provider still does afterwards is cancelled.
  /// - Throws: `.authentication` when the provider throws, `.timeout` after the limit, `.cancelled`.
  public func credential(
    for user: UserID, within limit: Duration, on clock: any ChatClock
  ) async throws(ChatError) -> Credential {
    try await bounded(limit, clock) { try await self.credential(for: user) }
  }

  /// `sign(_:fields:for:)` within a limit of time.
  /// - Throws: as `credential(for:within:on:)`.
  public func sign(
    _ operation: String, fields: [String], for user: UserID, within limit: Duration, on clock: any ChatClock
  ) async throws(ChatError) -> SignedOperation? {
    try await bounded(limit, clock) { try await self.sign(operation, fields: fields, for: user) }
  }

  private func bounded<Value: Sendable>(
    _ limit: Duration, _ clock: any ChatClock, _ ask: @escaping @Sendable () async throws -> Value
  ) async throws(ChatError) -> Value {
    let first = FirstOutcome<Value>()
    let asking = Task {
      do { first.settle(.success(try await ask())) } catch {
        first.settle(.failure(ChatError(.authentication, operation: .renewCredential, detail: "the provider failed")))
      }
    }
    let alarm = clock.alarm(after: limit) {
      first.settle(.failure(ChatError(.timeout, operation: .renewCredential, detail: "the provider did not answer")))
    }
    defer {
      alarm.cancel()
      asking.cancel()
    }
    return try await first.value().get()
  }
}

/// The first of several outcomes, for one who waits.
private final class FirstOutcome<Value: Sendable>: Sendable {
  typealias Outcome = Result<Value, ChatError>

  private struct State {
    var outcome: Outcome?
    var waiter: CheckedContinuation<Outcome, Never>?
  }

  private let state = Mutex(State())

  func settle(_ outcome: Outcome) {
    let waiter = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
      guard state.outcome == nil else { return nil }
      state.outcome = outcome
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume(returning: outcome)
  }

  func value() async -> Outcome {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let ready = state.withLock { state -> Outcome? in
          if state.outcome == nil { state.waiter = continuation }
          return state.outcome
        }
        if let ready { continuation.resume(returning: ready) }
      }
    } onCancel: {
      settle(.failure(.cancelled(.renewCredential)))
    }
  }
}
