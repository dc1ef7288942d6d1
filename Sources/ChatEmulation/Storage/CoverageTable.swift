import ChatTransport

extension Sequence<EmulatorCoverage> {
  /// A table for people: what was called, most first; then what is missing and was asked for.
  public func table() -> String {
    let rows = sorted { ($1.calls, $0.endpoint) < ($0.calls, $1.endpoint) }
    let implemented = rows.filter(\.isImplemented)
    let missing = rows.filter { !$0.isImplemented }
    let width = rows.map { "\($0.calls)".count }.max() ?? 1
    func lines(_ rows: [EmulatorCoverage]) -> [String] {
      rows.map { row in
        let calls = "\(row.calls)"
        return String(repeating: " ", count: width - calls.count + 2) + calls + "  " + row.endpoint
      }
    }
    var text = ["implemented: \(implemented.count) endpoints, \(implemented.count { $0.calls > 0 }) of them called"]
    text += lines(implemented)
    if !missing.isEmpty { text += ["not implemented, asked for all the same:"] + lines(missing) }
    return text.joined(separator: "\n")
  }
}
