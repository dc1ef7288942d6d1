import Foundation

/// The table that the benchmarks print.
enum Report {
  static let header = row("measured", "ours", "peer", "", "ratio", "goal")

  static func line(_ comparison: Comparison) -> String {
    row(
      comparison.what, value(comparison.ours, comparison.unit), value(comparison.theirs, comparison.unit),
      comparison.peer, String(format: "%.2f×", comparison.ratio),
      comparison.goal.map { String(format: "≥ %g× %@", $0, comparison.reachesGoal ? "reached" : "MISSED") } ?? "–")
  }

  private static func value(_ number: Double, _ unit: String) -> String {
    String(format: number < 10 ? "%.2f " : "%.0f ", number) + unit
  }

  private static func row(
    _ what: String, _ ours: String, _ theirs: String, _ peer: String, _ ratio: String, _ goal: String
  ) -> String {
    [pad(what, 44), pad(ours, 14), pad(theirs, 14), pad(peer, 28), pad(ratio, 9), goal].joined(separator: " ")
  }

  private static func pad(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }
}
