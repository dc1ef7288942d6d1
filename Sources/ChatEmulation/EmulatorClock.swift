import Foundation

/// Where an emulator's time comes from.
public enum EmulatorClock: Sendable, Hashable {
  /// Stands still but for `EmulatorHost.advance(by:)` and `setClock(_:)`; starts at `start` (ms since 1970).
  case virtual(start: Int64)
  /// The machine's wall clock.
  case real

  /// 2026-01-01T00:00:00Z: a virtual clock that any run can repeat.
  public static let virtual = EmulatorClock.virtual(start: 1_767_225_600_000)

  static func wallTime() -> Int64 { Int64(Date().timeIntervalSince1970 * 1000) }
}

extension Duration {
  /// Whole milliseconds, rounded down, within the range of `Int64`.
  var milliseconds: Int64 {
    let (seconds, attoseconds) = components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, sumOverflow) = product.addingReportingOverflow(attoseconds / 1_000_000_000_000_000)
    return sumOverflow ? .max : sum
  }
}

extension Int64 {
  /// The sum, held at the ends of the range: times and delays come from outside.
  func addingClamped(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? (other < 0 ? .min : .max) : sum
  }
}
