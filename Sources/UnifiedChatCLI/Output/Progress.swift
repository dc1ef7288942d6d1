import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Shows how far a long run has come: one line that rewrites itself on a terminal, a JSON line every second
/// elsewhere. Goes to standard error, so that results can be piped.
final class ProgressLine: Sendable {
  enum Style: Sendable { case terminal, json }

  private struct State {
    var phase = ""
    var startedAt = ContinuousClock.now
    var startedAtCount = 0
    var shownAt: ContinuousClock.Instant?
    var width = 0
  }

  private let style: Style
  private let state = Mutex(State())

  init() { style = isatty(2) == 1 ? .terminal : .json }

  /// `total` nil: unknown.
  func show(_ phase: String, done: Int, total: Int?, unit: String) {
    state.withLock { state in
      let now = ContinuousClock.now
      if state.phase != phase {
        finishLine(&state)
        state.phase = phase
        state.startedAt = now
        state.startedAtCount = done
        state.shownAt = nil
      }
      let isLast = total.map { done >= $0 } ?? false
      let pause: Duration = style == .terminal ? .milliseconds(100) : .seconds(1)
      if let shown = state.shownAt, now - shown < pause, !isLast { return }
      state.shownAt = now
      let seconds = (now - state.startedAt) / .seconds(1)
      let rate = seconds > 0.2 ? Double(done - state.startedAtCount) / seconds : nil
      write(phase, done, total, unit, rate, &state)
    }
  }

  func end() { state.withLock { finishLine(&$0) } }

  private func write(
    _ phase: String, _ done: Int, _ total: Int?, _ unit: String, _ rate: Double?, _ state: inout State
  ) {
    let left = total.map { Double($0 - done) }
    let eta = rate.flatMap { rate in rate > 0 ? left.map { Int(($0 / rate).rounded(.up)) } : nil }
    switch style {
    case .json:
      let parts = [
        "\"phase\":\"\(phase)\"", "\"done\":\(done)", total.map { "\"total\":\($0)" }, "\"unit\":\"\(unit)\"",
        rate.map { "\"per_second\":\(Int($0))" }, eta.map { "\"eta_seconds\":\($0)" },
      ]
      emit("{" + parts.compactMap(\.self).joined(separator: ",") + "}\n")
    case .terminal:
      var text = "\(phase): " + Self.bar(done, total) + "\(done)" + (total.map { " of \($0)" } ?? "") + " \(unit)"
      if let rate { text += ", \(Int(rate))/s" }
      if let eta, eta > 0 { text += ", \(Self.duration(eta)) left" }
      emit("\r" + text + String(repeating: " ", count: max(0, state.width - text.count)))
      state.width = text.count
    }
  }

  private func finishLine(_ state: inout State) {
    if style == .terminal, state.width > 0 { emit("\n") }
    state.width = 0
  }

  private func emit(_ text: String) { Standard.write(text, to: .error) }

  /// Twenty places, and nothing where the end is not known.
  static func bar(_ done: Int, _ total: Int?) -> String {
    guard let total, total > 0 else { return "" }
    let full = min(20, max(0, Int(Double(done) / Double(total) * 20)))
    return "[" + String(repeating: "#", count: full) + String(repeating: ".", count: 20 - full) + "] "
  }

  static func duration(_ seconds: Int) -> String {
    seconds < 60 ? "\(seconds)s" : seconds < 3600 ? "\(seconds / 60)m \(seconds % 60)s" : "\(seconds / 3600)h \(seconds / 60 % 60)m"
  }
}
