import ChatMigration
import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Shows how far a long run has come: on a terminal one bar for each stage, the last one of which rewrites itself;
/// elsewhere a JSON line every second. Goes to standard error, so that results can be piped.
final class ProgressLine: Sendable {
  enum Style: Sendable { case terminal, json }

  private struct State {
    var current: MigrationProgress?
    var startedAt = ContinuousClock.now
    /// Done when the stage began, by an earlier run.
    var head = 0
    var shownAt: ContinuousClock.Instant?
    var width = 0
  }

  private let style: Style
  private let state = Mutex(State())
  private let emit: @Sendable (String) -> Void

  convenience init() {
    self.init(isatty(2) == 1 ? .terminal : .json) { Standard.write($0, to: .error) }
  }

  init(_ style: Style, emit: @escaping @Sendable (String) -> Void) {
    self.style = style
    self.emit = emit
  }

  func show(_ progress: MigrationProgress, at now: ContinuousClock.Instant = .now) {
    state.withLock { state in
      if state.current?.phase != progress.phase {
        finishLine(&state)
        state.startedAt = now
        state.head = progress.done
        state.shownAt = nil
      }
      state.current = progress
      let pause: Duration = style == .terminal ? .milliseconds(100) : .seconds(1)
      if let shown = state.shownAt, now - shown < pause, !progress.isFinished { return }
      write(progress, now, &state)
    }
  }

  /// Says again how far the run is, so that one that waits is not taken for one that hangs.
  func tick(at now: ContinuousClock.Instant = .now) {
    state.withLock { state in
      guard let progress = state.current, !progress.isFinished, let shown = state.shownAt,
        now - shown >= .milliseconds(900)
      else { return }
      write(progress, now, &state)
    }
  }

  func end() {
    state.withLock { state in
      finishLine(&state)
      state.current = nil
    }
  }

  private func write(_ progress: MigrationProgress, _ now: ContinuousClock.Instant, _ state: inout State) {
    state.shownAt = now
    let seconds = (now - state.startedAt) / .seconds(1)
    let rate = seconds > 0.2 ? Double(progress.done - state.head) / seconds : nil
    let left = progress.total.map { Double($0 - progress.done) }
    let eta = rate.flatMap { rate in rate > 0 ? left.map { Int(min(($0 / rate).rounded(.up), 1e9)) } : nil }
    switch style {
    case .json: emit(Self.json(progress, rate, eta) + "\n")
    case .terminal:
      let text = Self.text(progress, rate, progress.isFinished ? Int(seconds) : eta)
      emit("\r" + text + String(repeating: " ", count: max(0, state.width - text.count)))
      state.width = text.count
    }
  }

  private static func json(_ progress: MigrationProgress, _ rate: Double?, _ eta: Int?) -> String {
    let parts = [
      "\"phase\":\"\(progress.phase.rawValue)\"", "\"done\":\(progress.done)", progress.total.map { "\"total\":\($0)" },
      "\"unit\":\"\(progress.phase.unit)\"", rate.map { "\"per_second\":\(Int($0))" }, eta.map { "\"eta_seconds\":\($0)" },
    ]
    return "{" + parts.compactMap(\.self).joined(separator: ",") + "}"
  }

  /// `seconds`: what is left, or what a finished stage took.
  private static func text(_ progress: MigrationProgress, _ rate: Double?, _ seconds: Int?) -> String {
    var text = progress.phase.words.padding(toLength: 20, withPad: " ", startingAt: 0) + bar(progress.done, progress.total)
    text += "\(progress.done)" + (progress.total.map { " of \($0)" } ?? "") + " \(progress.phase.unit)"
    if let rate, rate >= 1 { text += ", \(Int(rate))/s" }
    if let seconds, seconds > 0 { text += ", \(duration(seconds)) \(progress.isFinished ? "in all" : "left")" }
    return text
  }

  private func finishLine(_ state: inout State) {
    if style == .terminal, state.width > 0 { emit("\n") }
    state.width = 0
  }

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
