import Foundation
import Synchronization

/// Milliseconds since 1970-01-01T00:00:00Z.
public struct Timestamp: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
  public var milliseconds: Int64

  public init(milliseconds: Int64) { self.milliseconds = milliseconds }

  public init(from decoder: any Decoder) throws { milliseconds = try decoder.singleValueContainer().decode(Int64.self) }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(milliseconds)
  }

  public static func < (left: Timestamp, right: Timestamp) -> Bool { left.milliseconds < right.milliseconds }

  /// Saturates at the ends of `Int64`.
  public static func + (left: Timestamp, right: Duration) -> Timestamp {
    let (sum, overflow) = left.milliseconds.addingReportingOverflow(right.wholeMilliseconds)
    return Timestamp(milliseconds: overflow ? (right < .zero ? .min : .max) : sum)
  }

  public static func - (left: Timestamp, right: Timestamp) -> Duration {
    let (difference, overflow) = left.milliseconds.subtractingReportingOverflow(right.milliseconds)
    return .milliseconds(overflow ? (left < right ? .min : .max) : difference)
  }

  public var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }

  /// RFC 3339 in UTC with milliseconds, exact. Outside of the Gregorian calendar (1582-10-15) and the year 9999:
  /// the number of milliseconds.
  public var description: String {
    guard Self.written.contains(milliseconds) else { return "\(milliseconds) ms" }
    let fraction = ((milliseconds % 1000) + 1000) % 1000
    let second = Date(timeIntervalSince1970: Double((milliseconds - fraction) / 1000)).ISO8601Format()
    let digits = String(fraction)
    return "\(second.dropLast()).\(String(repeating: "0", count: 3 - digits.count))\(digits)Z"
  }

  private static let written: ClosedRange<Int64> = -12_219_292_800_000...253_402_300_799_999
}

extension Duration {
  /// Rounded towards zero; saturates at the ends of `Int64`.
  public var wholeMilliseconds: Int64 {
    let (seconds, attoseconds) = components
    let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, carried) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000_000_000)
    return carried ? (seconds < 0 ? .min : .max) : sum
  }
}

/// The only source of time in adapters, client and migration.
public protocol ChatClock: Sendable {
  var now: Timestamp { get }
  /// - Throws: `CancellationError` when the task is cancelled.
  func sleep(for duration: Duration) async throws
}

public struct SystemClock: ChatClock {
  public init() {}

  public var now: Timestamp { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)) }

  public func sleep(for duration: Duration) async throws {
    // The one place where real time passes; everything else takes a clock.
    try await SystemAlarms.shared.sleep(for: duration)
  }
}

/// A clock that stands still until it is told: tests and in-process emulators share one.
public final class ManualClock: ChatClock {
  private struct Sleeper {
    var id: UInt64
    var dueAt: Timestamp
    var continuation: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var now: Timestamp
    var nextID: UInt64 = 0
    var sleepers: [Sleeper] = []
    var cancelledEarly: Set<UInt64> = []
  }

  private let state: Mutex<State>

  public init(start: Timestamp = Timestamp(milliseconds: 1_767_225_600_000)) { state = Mutex(State(now: start)) }

  public var now: Timestamp { state.withLock { $0.now } }

  /// When the earliest sleeper wakes; nil when nobody sleeps.
  public var nextWakeUp: Timestamp? { state.withLock { $0.sleepers.map(\.dueAt).min() } }

  /// Moves time forward and wakes, in order of their time, those who are due.
  public func advance(by duration: Duration) { advance(to: now + duration) }

  public func advance(to time: Timestamp) {
    let due = state.withLock { state in
      if time > state.now { state.now = time }
      let due = state.sleepers.filter { $0.dueAt <= state.now }
      state.sleepers.removeAll { $0.dueAt <= state.now }
      return due.sorted { ($0.dueAt, $0.id) < ($1.dueAt, $1.id) }
    }
    for sleeper in due { sleeper.continuation.resume() }
  }

  public func sleep(for duration: Duration) async throws {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let outcome: Result<Void, any Error>? = state.withLock { state in
          if state.cancelledEarly.remove(id) != nil || Task.isCancelled { return .failure(CancellationError()) }
          if duration <= .zero { return .success(()) }
          state.sleepers.append(Sleeper(id: id, dueAt: state.now + duration, continuation: continuation))
          return nil
        }
        if let outcome { continuation.resume(with: outcome) }
      }
    } onCancel: {
      let sleeper: Sleeper? = state.withLock { state in
        guard let index = state.sleepers.firstIndex(where: { $0.id == id }) else {
          state.cancelledEarly.insert(id)
          return nil
        }
        return state.sleepers.remove(at: index)
      }
      sleeper?.continuation.resume(throwing: CancellationError())
    }
  }
}
