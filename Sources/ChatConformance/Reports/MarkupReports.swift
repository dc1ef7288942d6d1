import UnifiedChat

/// A run as JUnit XML: a suite for each adapter, target and group.
public enum JUnitReport {
  public static func make(_ reports: [AdapterReport]) -> String {
    var lines = [#"<?xml version="1.0" encoding="UTF-8"?>"#, #"<testsuites name="conformance \#(ConformanceSuite.version)">"#]
    for report in reports {
      for group in ConformanceSuite.groups {
        let results = report.results.filter { $0.id.hasPrefix(group + "-") }
        guard !results.isEmpty else { continue }
        lines.append(head("\(report.adapter).\(report.target.rawValue).\(group)", results))
        for result in results { lines += testCase(result, report) }
        lines.append("  </testsuite>")
      }
    }
    return (lines + ["</testsuites>", ""]).joined(separator: "\n")
  }

  private static func head(_ name: String, _ results: [CaseResult]) -> String {
    let counts = [["fail", "xpass"], ["error"], ["skip"]].map { names in
      results.count { names.contains($0.verdict.name) }
    }
    let seconds = Double(results.reduce(0) { $0 + $1.milliseconds }) / 1000
    return #"  <testsuite name="\#(Markup.escape(name))" tests="\#(results.count)" failures="\#(counts[0])" "#
      + #"errors="\#(counts[1])" skipped="\#(counts[2])" time="\#(seconds)">"#
  }

  private static func testCase(_ result: CaseResult, _ report: AdapterReport) -> [String] {
    let open = #"    <testcase classname="conformance.\#(report.adapter).\#(report.target.rawValue)" "#
      + #"name="\#(Markup.escape("\(result.id) \(result.title)"))" time="\#(Double(result.milliseconds) / 1000)""#
    let text = Markup.escape(TextReport.explanation(result.verdict))
    switch result.verdict {
    case .pass: return [open + "/>"]
    case .passDeclared, .knownFailure, .flaky:
      return [open + ">", "      <system-out>\(result.verdict.name): \(text)</system-out>", "    </testcase>"]
    case .fail, .unexpectedPass:
      let evidence = Markup.escape(([result.replay] + result.transcript).joined(separator: "\n").prefix(4096).description)
      return [
        open + ">",
        #"      <failure type="\#(result.severity.rawValue)" message="\#(text)">\#(evidence)</failure>"#,
        "    </testcase>",
      ]
    case .error:
      return [
        open + ">", #"      <error message="\#(text)">\#(Markup.escape(result.replay))</error>"#, "    </testcase>",
      ]
    case .skip: return [open + ">", #"      <skipped message="\#(text)"/>"#, "    </testcase>"]
    }
  }
}

/// A run as one HTML page that needs nothing else: a row a case, a column an adapter.
public enum HTMLReport {
  public static func make(_ reports: [AdapterReport], title: String) -> String {
    let head = reports.map { "<th>\(Markup.escape("\($0.adapter) \($0.target.rawValue)"))</th>" }.joined()
    let rows = ConformanceSuite.cases.map { candidate in
      let cells = reports.map { report in
        // Of a case that ran several times, the round that failed.
        let rounds = report.results.filter { $0.id == candidate.id }
        return cell(rounds.first { $0.verdict.breaksRun } ?? rounds.first)
      }.joined()
      return "<tr><th>\(candidate.id)</th><td>\(candidate.severity.rawValue)</td>"
        + "<td>\(Markup.escape(candidate.title))</td>\(cells)</tr>"
    }
    return """
      <!doctype html>
      <html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
      <title>\(Markup.escape(title))</title>
      <style>
      body{font:15px/1.45 system-ui,sans-serif;margin:2rem;color:#1a1a1a;background:#fff}
      table{border-collapse:collapse}td,th{padding:.3rem .6rem;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}
      .pass,.pass-declared{color:#0a6b2d}.fail,.error,.xpass{color:#a40000;font-weight:600}.skip{color:#666}
      @media(prefers-color-scheme:dark){body{color:#eee;background:#161616}td,th{border-color:#333}
      .pass,.pass-declared{color:#6fdc8c}.fail,.error,.xpass{color:#ff8389}.skip{color:#a8a8a8}}
      </style>
      <h1>\(Markup.escape(title))</h1>
      <table><thead><tr><th>case</th><th>severity</th><th>title</th>\(head)</tr></thead>
      <tbody>
      \(rows.joined(separator: "\n"))
      </tbody></table></html>

      """
  }

  private static func cell(_ result: CaseResult?) -> String {
    guard let result else { return "<td></td>" }
    let text = Markup.escape(TextReport.explanation(result.verdict))
    let evidence = result.transcript.isEmpty
      ? "" : "<details><summary>frames</summary><pre>\(Markup.escape(result.transcript.joined(separator: "\n")))</pre></details>"
    let again = result.verdict.breaksRun ? "<br><code>\(Markup.escape(result.replay))</code>" : ""
    return #"<td class="\#(result.verdict.name)">\#(result.verdict.name)\#(text.isEmpty ? "" : "<br>\(text)")\#(again)\#(evidence)</td>"#
  }
}

enum Markup {
  /// For text and attribute values; characters that XML cannot hold become U+FFFD.
  static func escape(_ text: String) -> String {
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      case "\t", "\n", "\r": escaped += "&#\(scalar.value);"
      default:
        let isAllowed = scalar.value >= 0x20 && !(0xFFFE...0xFFFF).contains(scalar.value)
        escaped.unicodeScalars.append(isAllowed ? scalar : "\u{FFFD}")
      }
    }
    return escaped
  }
}
