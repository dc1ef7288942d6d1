// Not yet built on Apple.
#if canImport(Darwin)
  import Synchronization

  /// One value that one task waits for. The first one counts, before or after the wait begins.
  final class Settlement<Value: Sendable>: Sendable {
    private struct State {
      var value: Value?
      var waiter: CheckedContinuation<Value, Never>?
    }

    private let state = Mutex(State())

    func settle(_ value: Value) {
      let waiter = state.withLock { state -> CheckedContinuation<Value, Never>? in
        guard state.value == nil else { return nil }
        state.value = value
        defer { state.waiter = nil }
        return state.waiter
      }
      waiter?.resume(returning: value)
    }

    /// `cancelled` counts as the value when the calling task is cancelled first.
    func wait(cancelled: Value) async -> Value {
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let ready = state.withLock { state -> Value? in
            if state.value == nil { state.waiter = continuation }
            return state.value
          }
          if let ready { continuation.resume(returning: ready) }
        }
      } onCancel: {
        settle(cancelled)
      }
    }
  }
#endif
