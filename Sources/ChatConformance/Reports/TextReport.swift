/// A run as a table for people: a row a group, a column an adapter.
public enum TextReport {
  public static func make(_ reports: [AdapterReport], ascii: Bool = false) -> String {
    let marks = ascii ? ("+", "x", "-", "~") : ("●", "✗", "○", "◐")
    let names = reports.map { "\($0.adapter).\($0.target.rawValue)" }
    var rows = [["", "cases"] + names]
    for group in ConformanceSuite.groups {
      let count = ConformanceSuite.cases.count { $0.group == group }
      let cells = reports.map { report in
        let results = report.results.filter { $0.id.hasPrefix(group + "-") }
        let passed = results.count { $0.verdict == .pass }
        let broken = results.count { $0.verdict.breaksRun }
        let skipped = results.count { $0.verdict.name == "skip" }
        let declared = results.count - passed - broken - skipped
        return [(passed, marks.0), (declared, marks.3), (broken, marks.1), (skipped, marks.2)]
          .filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: "  ")
      }
      if cells.contains(where: { !$0.isEmpty }) { rows.append([group, String(count)] + cells) }
    }
    var text = aligned(rows)
    for report in reports {
      for result in report.results where result.verdict.breaksRun {
        text += "\n\(result.severity.rawValue) \(report.adapter).\(report.target.rawValue) \(result.id) \(result.title)"
        text += "\n   \(explanation(result.verdict))\n   again: \(result.replay)"
        for line in result.transcript { text += "\n   | \(line)" }
      }
    }
    let declared = reports.flatMap { report in
      report.results.compactMap { result -> String? in
        guard case .skip(.rule(let why)) = result.verdict else { return nil }
        return "\(report.adapter).\(report.target.rawValue) \(result.id): \(why)"
      }
    }
    if !declared.isEmpty { text += "\nnothing to look at, as declared:\n   " + declared.joined(separator: "\n   ") }
    return text
  }

  static func explanation(_ verdict: Verdict) -> String {
    switch verdict {
    case .pass: ""
    case .passDeclared(let differences): differences.map(\.reason).joined(separator: "; ")
    case .fail(let failure): failure.description
    case .knownFailure(let failure, let issue): "\(issue): \(failure)"
    case .unexpectedPass(let issue): "passes now; remove it from the known failures (\(issue))"
    case .flaky(let failure): "passed when repeated; first: \(failure)"
    case .error(let text): "set-up: \(text)"
    case .skip(let reason): reason.description
    }
  }

  private static func aligned(_ rows: [[String]]) -> String {
    let widths = (rows.first ?? []).indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    return rows.map { row in
      row.indices.map { row[$0] + String(repeating: " ", count: widths[$0] - row[$0].count) }.joined(separator: "  ")
    }.joined(separator: "\n")
  }
}
