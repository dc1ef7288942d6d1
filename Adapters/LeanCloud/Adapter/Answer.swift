import Synchronization
import UnifiedChat

/// A result that is given once and awaited by any number of tasks.
final class Answer<Value: Sendable>: Sendable {
  typealias Outcome = Result<Value, ChatError>

  private struct State {
    var outcome: Outcome?
    var waiters: [UInt64: CheckedContinuation<Outcome, Never>] = [:]
    var nextID: UInt64 = 0
  }

  private let state = Mutex(State())

  /// The first outcome stays.
  func fulfil(_ outcome: Outcome) {
    let waiters: [CheckedContinuation<Outcome, Never>] = state.withLock { state in
      guard state.outcome == nil else { return [] }
      state.outcome = outcome
      defer { state.waiters = [:] }
      return Array(state.waiters.values)
    }
    for waiter in waiters { waiter.resume(returning: outcome) }
  }

  /// - Throws: what the answer is, or `.cancelled` when the waiting task is cancelled.
  func wait(_ operation: ChatError.Operation) async throws(ChatError) -> Value {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let ready: Outcome? = state.withLock { state in
          if let outcome = state.outcome { return outcome }
          if Task.isCancelled { return .failure(.cancelled(operation)) }
          state.waiters[id] = continuation
          return nil
        }
        if let ready { continuation.resume(returning: ready) }
      }
    } onCancel: {
      let waiter = state.withLock { $0.waiters.removeValue(forKey: id) }
      waiter?.resume(returning: .failure(.cancelled(operation)))
    }
    return try outcome.get()
  }
}
