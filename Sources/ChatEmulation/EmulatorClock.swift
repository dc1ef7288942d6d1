import UnifiedChat

/// Where an emulator's time comes from.
public enum EmulatorClock: Sendable {
  /// Stands still but for `EmulatorHost.advance(by:)` and `setClock(_:)`; starts at `start` (ms since 1970).
  case virtual(start: Int64)
  /// A clock that others use too: the system's, or one that a test shares with its clients.
  case shared(any ChatClock)

  /// 2026-01-01T00:00:00Z: a virtual clock that any run can repeat.
  public static let virtual = EmulatorClock.virtual(start: 1_767_225_600_000)

  public static let real = EmulatorClock.shared(SystemClock())
}

extension Int64 {
  /// The sum, held at the ends of the range: times and delays come from outside.
  func addingClamped(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? (other < 0 ? .min : .max) : sum
  }
}
