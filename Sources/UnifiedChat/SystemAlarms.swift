import Synchronization

/// Wakes those who sleep on the system's clock.
///
/// Most sleepers are limits of time that are cancelled long before they are due, one with each request. A timer of the
/// system for each would cost a thread's wake-up; here only the one that is due first has such a timer, and to sleep
/// and to be cancelled are a matter of a lock.
final class SystemAlarms: Sendable {
  static let shared = SystemAlarms()

  private let state = Mutex(State())
  private let wait: @Sendable (ContinuousClock.Instant) async -> Void

  /// - Parameter wait: the system's timer; it may return early.
  init(
    wait: @escaping @Sendable (ContinuousClock.Instant) async -> Void = {
      try? await Task.sleep(until: $0, clock: .continuous)
    }
  ) {
    self.wait = wait
  }

  private struct State {
    var queue = SleeperQueue()
    /// When the timers of the system ring that are set, the next one last: each was earlier than all before it.
    var rings: [ContinuousClock.Instant] = []

    /// True when a timer must be set for `due`.
    mutating func mustRing(at due: ContinuousClock.Instant) -> Bool {
      if let next = rings.last, next <= due { return false }
      rings.append(due)
      return true
    }
  }

  /// - Throws: `CancellationError` when the task is cancelled.
  func sleep(for duration: Duration) async throws {
    guard duration > .zero else { return try Task.checkCancellation() }
    let due = ContinuousClock.now.advanced(by: duration)
    let sleeper = Sleeper()
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        if sleeper.begin({ continuation.resume(with: $0) }) { add(sleeper, due: due) }
      }
    } onCancel: {
      cancel(sleeper)
    }
  }

  /// Calls `action` after that time, on a thread that others wait for.
  func alarm(after duration: Duration, _ action: @escaping @Sendable () -> Void) -> Alarm {
    let sleeper = Sleeper()
    _ = sleeper.begin { result in if case .success = result { action() } }
    add(sleeper, due: ContinuousClock.now.advanced(by: max(.zero, duration)))
    return Alarm { [self] in cancel(sleeper) }
  }

  private func cancel(_ sleeper: Sleeper) {
    if sleeper.end(.failure(CancellationError())) { state.withLock { $0.queue.noteEnd() } }
  }

  private func add(_ sleeper: Sleeper, due: ContinuousClock.Instant) {
    let mustRing = state.withLock { state in
      state.queue.add(sleeper, due: due)
      return state.mustRing(at: due)
    }
    if mustRing { ring(at: due) }
  }

  /// Nobody owns this task: it belongs to the process, like the clock.
  private func ring(at time: ContinuousClock.Instant) {
    Task.detached { [self] in
      // The system's timer does ring a little early at times. Nobody cancels this task.
      while ContinuousClock.now < time { await wait(time) }
      wakeDue()
    }
  }

  private func wakeDue() {
    let now = ContinuousClock.now
    let (due, next) = state.withLock { state in
      // Later timers that are set stay so, and are not set again.
      while let ring = state.rings.last, ring <= now { state.rings.removeLast() }
      let due = state.queue.takeDue(at: now)
      let next = state.queue.nextDue.flatMap { state.mustRing(at: $0) ? $0 : nil }
      return (due, next)
    }
    for sleeper in due { _ = sleeper.end(.success(())) }
    if let next { ring(at: next) }
  }
}

/// One who sleeps. Both the clock and a cancellation may end it; the first counts.
private final class Sleeper: Sendable {
  typealias Wake = @Sendable (Result<Void, any Error>) -> Void

  private enum State {
    case new
    case asleep(Wake)
    case over
  }

  private let state = Mutex(State.new)

  var isOver: Bool { state.withLock { if case .over = $0 { true } else { false } } }

  /// False when it was cancelled before; `wake` has been called then.
  func begin(_ wake: @escaping Wake) -> Bool {
    let begins = state.withLock { state in
      guard case .new = state else { return false }
      state = .asleep(wake)
      return true
    }
    if !begins { wake(.failure(CancellationError())) }
    return begins
  }

  /// True when it slept until now.
  func end(_ result: Result<Void, any Error>) -> Bool {
    let wake = state.withLock { state -> Wake? in
      defer { state = .over }
      if case .asleep(let wake) = state { return wake }
      return nil
    }
    wake?(result)
    return wake != nil
  }
}

/// Sleepers by time. Those that have ended stay until they come to the front or are the most.
private struct SleeperQueue {
  private typealias Entry = (due: ContinuousClock.Instant, sleeper: Sleeper)

  /// A binary heap, the earliest first.
  private var entries: [Entry] = []
  private var ended = 0

  var nextDue: ContinuousClock.Instant? { entries.first?.due }

  mutating func add(_ sleeper: Sleeper, due: ContinuousClock.Instant) {
    entries.append((due, sleeper))
    var child = entries.count - 1
    while child > 0, entries[child].due < entries[(child - 1) / 2].due {
      entries.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  /// Takes all out that are due, and the ended ones before the first that is not.
  mutating func takeDue(at now: ContinuousClock.Instant) -> [Sleeper] {
    var due: [Sleeper] = []
    while let first = entries.first, first.due <= now || first.sleeper.isOver {
      if first.due <= now { due.append(first.sleeper) }
      removeFirst()
    }
    return due
  }

  /// One of the sleepers was cancelled.
  mutating func noteEnd() {
    ended += 1
    guard ended > 64, ended * 2 > entries.count else { return }
    ended = 0
    let live = entries.filter { !$0.sleeper.isOver }
    entries = []
    for entry in live { add(entry.sleeper, due: entry.due) }
  }

  private mutating func removeFirst() {
    entries.swapAt(0, entries.count - 1)
    entries.removeLast()
    var parent = 0
    while let least = [2 * parent + 1, 2 * parent + 2].filter({ $0 < entries.count })
      .min(by: { entries[$0].due < entries[$1].due }), entries[least].due < entries[parent].due
    {
      entries.swapAt(least, parent)
      parent = least
    }
  }
}
