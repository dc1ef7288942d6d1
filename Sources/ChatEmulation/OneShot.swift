import Synchronization

/// One value that one task waits for; the first `fulfil` wins, before or after the wait begins.
final class OneShot<Value: Sendable>: Sendable {
  private enum State {
    case empty
    case waiting(CheckedContinuation<Value, Never>)
    case filled(Value)
  }

  private let state = Mutex(State.empty)

  var isFilled: Bool { state.withLock { if case .filled = $0 { true } else { false } } }

  /// True when `value` is the one that counts.
  @discardableResult
  func fulfil(_ value: Value) -> Bool {
    let (won, waiter): (Bool, CheckedContinuation<Value, Never>?) = state.withLock { state in
      switch state {
      case .empty:
        state = .filled(value)
        return (true, nil)
      case .waiting(let waiter):
        state = .filled(value)
        return (true, waiter)
      case .filled: return (false, nil)
      }
    }
    waiter?.resume(returning: value)
    return won
  }

  /// The value; `cancelled` when the calling task is cancelled first.
  func wait(cancelled: Value) async -> Value {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let ready: Value? = state.withLock { state in
          if case .filled(let value) = state { return value }
          if Task.isCancelled {
            state = .filled(cancelled)
            return cancelled
          }
          state = .waiting(continuation)
          return nil
        }
        if let ready { continuation.resume(returning: ready) }
      }
    } onCancel: {
      fulfil(cancelled)
    }
  }
}
