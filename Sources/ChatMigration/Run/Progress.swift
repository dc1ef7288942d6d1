import Synchronization
import UnifiedChat

/// How far a run has come.
public struct MigrationProgress: Sendable, Hashable {
  public enum Phase: String, Sendable, Hashable, CaseIterable {
    case pullUsers, pullChannels, pullMessages, pullRows, sealArchive
    case loadUsers, loadChannels
    case verifyUsers, verifyChannels
    case planning, rollBack

    /// For a person.
    public var words: String {
      switch self {
      case .pullUsers: "reading users"
      case .pullChannels: "reading channels"
      case .pullMessages: "reading messages"
      case .pullRows: "reading rows"
      case .sealArchive: "sealing the archive"
      case .loadUsers: "writing users"
      case .loadChannels: "writing messages"
      case .verifyUsers: "checking users"
      case .verifyChannels: "checking messages"
      case .planning: "planning"
      case .rollBack: "removing channels"
      }
    }

    /// What `done` and `total` count.
    public var unit: String {
      switch self {
      case .pullUsers, .loadUsers, .verifyUsers: "users"
      case .pullChannels, .rollBack: "channels"
      case .pullMessages, .loadChannels, .verifyChannels, .planning: "messages"
      case .pullRows: "rows"
      case .sealArchive: "archives"
      }
    }
  }

  public var phase: Phase
  public var done: Int
  /// nil where nobody knows.
  public var total: Int?
  /// Units a second since the phase began, without what an earlier run had done.
  public var rate: Double
  public var elapsed: Duration
  /// True for the last report of the phase.
  public var isFinished: Bool

  /// How long the rest takes at this rate; nil where that is unknown.
  public var remaining: Duration? {
    guard let total, rate > 0, total >= done else { return nil }
    return .seconds(Double(total - done) / rate)
  }
}

/// Counts, and tells those who listen. A slow listener misses reports and slows nobody.
public final class ProgressReporter: Sendable {
  private struct State {
    var listeners: [AsyncStream<MigrationProgress>.Continuation] = []
    var current: MigrationProgress?
    var startedAt = Timestamp(milliseconds: 0)
    /// Done before this run.
    var head = 0
  }

  private let clock: any ChatClock
  private let state = Mutex(State())

  public init(clock: any ChatClock = SystemClock()) { self.clock = clock }

  /// Reports from now on, the newest 64 of them while nobody reads. Ends with `finish()`.
  public func updates() -> AsyncStream<MigrationProgress> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: MigrationProgress.self, bufferingPolicy: .bufferingNewest(64))
    state.withLock { $0.listeners.append(continuation) }
    return stream
  }

  /// - Parameter head: how much an earlier run has done already.
  func begin(_ phase: MigrationProgress.Phase, total: Int?, head: Int = 0) {
    let now = clock.now
    publish { state in
      state.startedAt = now
      state.head = head
      state.current = MigrationProgress(
        phase: phase, done: head, total: total, rate: 0, elapsed: .zero, isFinished: false)
    }
  }

  func add(_ count: Int) {
    let now = clock.now
    publish { state in
      guard var current = state.current else { return }
      current.done += count
      current.elapsed = now - state.startedAt
      let seconds = Double(current.elapsed.wholeMilliseconds) / 1000
      current.rate = seconds > 0 ? Double(current.done - state.head) / seconds : 0
      state.current = current
    }
  }

  func end() {
    publish { state in state.current?.isFinished = true }
  }

  /// Ends every stream.
  public func finish() {
    for listener in state.withLock({ $0.listeners }) { listener.finish() }
  }

  private func publish(_ change: (inout State) -> Void) {
    let (progress, listeners) = state.withLock { state in
      change(&state)
      return (state.current, state.listeners)
    }
    guard let progress else { return }
    for listener in listeners { listener.yield(progress) }
  }
}
