import SendbirdWire
import Synchronization
import UnifiedChat

/// One answer that somebody waits for: the first settlement counts, before or after the wait begins.
final class SendbirdWaiter: Sendable {
  typealias Outcome = Result<SendbirdFrame, ChatError>

  private struct State {
    var outcome: Outcome?
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
