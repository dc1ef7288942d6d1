/// A limit of time that calls back. A task that sleeps in its place would have to be started and ended with each request,
/// on a thread that is woken for it.
public struct Alarm: Sendable {
  private let stop: @Sendable () -> Void

  init(_ stop: @escaping @Sendable () -> Void) { self.stop = stop }

  /// After this the action is not called, unless it has begun.
  public func cancel() { stop() }
}

extension ChatClock {
  /// Calls `action` once when `duration` has passed, unless the alarm is cancelled before. Be brief there: others wait
  /// for their time meanwhile.
  public func alarm(after duration: Duration, _ action: @escaping @Sendable () -> Void) -> Alarm {
    if self is SystemClock { return SystemAlarms.shared.alarm(after: duration, action) }
    let task = Task {
      guard (try? await sleep(for: duration)) != nil else { return }
      action()
    }
    return Alarm { task.cancel() }
  }
}
