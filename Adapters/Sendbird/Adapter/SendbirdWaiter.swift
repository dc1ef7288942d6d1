import SendbirdWire
import Synchronization
import UnifiedChat

/// One answer that somebody waits for: the first settlement counts, before or after the wait begins.
final class SendbirdWaiter: Sendable {
  typealias Outcome = Result<SendbirdFrame, ChatError>

  private struct State {
    var outcome: Outcome?
    /// The answer that has come and waits for its turn.
    var arrived: SendbirdFrame?
    var continuation: CheckedContinuation<Outcome, Never>?
  }

  private let state = Mutex(State())

  func settle(_ outcome: Outcome) {
    let continuation = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
      guard state.outcome == nil else { return nil }
      state.outcome = outcome
      defer { state.continuation = nil }
      return state.continuation
    }
    continuation?.resume(returning: outcome)
  }

  /// The answer is here, and is told in its turn: from now on no time-out and no lost link makes its outcome unknown.
  func arrive(_ frame: SendbirdFrame) { state.withLock { $0.arrived = $0.arrived ?? frame } }

  /// Gives up waiting, unless the answer is here already.
  func expire(_ error: ChatError) {
    guard state.withLock({ $0.arrived == nil }) else { return }
    settle(.failure(error))
  }

  /// No more turns will come: what is here already counts.
  func abandon(_ error: ChatError) {
    let arrived = state.withLock { $0.arrived }
    settle(arrived.map { .success($0) } ?? .failure(error))
  }

  /// For one caller. A cancelled task ends the wait.
  func outcome(_ operation: ChatError.Operation) async -> Outcome {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let ready = state.withLock { state -> Outcome? in
          if state.outcome == nil { state.continuation = continuation }
          return state.outcome
        }
        if let ready { continuation.resume(returning: ready) }
      }
    } onCancel: {
      settle(.failure(.cancelled(operation)))
    }
  }
}
