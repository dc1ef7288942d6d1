import ChatTransport

extension Sequence<EmulatorCoverage> {
  /// A table for people: what was called, most first; then what is missing.
  public func table() -> String {
    let all = sorted { ($1.calls, $0.endpoint) < ($0.calls, $1.endpoint) }
    let implemented = all.filter(\.isImplemented)
    let called = implemented.filter { $0.calls > 0 }
    let missing = all.filter { !$0.isImplemented }
    let width = all.map { "\($0.calls)".count }.max() ?? 1
    func lines(_ rows: [EmulatorCoverage]) -> [String] {
      rows.map { row in
        let calls = "\(row.calls)"
        return String(repeating: " ", count: width - calls.count + 2) + calls + "  " + row.endpoint
      }
    }
    var text = ["implemented: \(implemented.count) endpoints, \(called.count) of them called"]
    text += lines(called)
    if !missing.isEmpty { text += ["not implemented:"] + lines(missing) }
    return text.joined(separator: "\n")
  }
}
