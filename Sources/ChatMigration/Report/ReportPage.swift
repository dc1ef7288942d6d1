import UnifiedChat

/// A table of a report, before it has a form.
struct ReportTable {
  var title: String
  /// Said when there are no rows.
  var nothing: String
  var columns: [String]
  var rows: [[String]]

  static func notCarried(_ rows: [VendorRowCount], nothing: String = "The archive holds records alone.") -> Self {
    Self(
      title: "Kept in the archive and not carried", nothing: nothing,
      columns: ["list of the vendor", "rows"], rows: rows.map { [$0.kind, "\($0.count)"] })
  }

  static func notRead(_ things: [String]) -> Self {
    Self(
      title: "Not read at the source", nothing: "The source names nothing that it leaves out.", columns: ["what"],
      rows: things.map { [$0] })
  }
}

/// A report before it has a form: one sentence, some facts, tables.
struct ReportPage {
  var title: String
  var sentence: String
  /// Whether there is nothing that a reader has to look at.
  var isGood: Bool
  var summary: [(String, String)]
  var tables: [ReportTable]

  func markdown() -> String {
    var lines = ["# \(title)", "", sentence, ""]
    for (name, value) in summary { lines.append("- \(name): \(Self.markdownCell(value))") }
    for table in tables {
      lines += ["", "## \(table.title)", ""]
      if table.rows.isEmpty {
        lines.append(table.nothing)
      } else {
        lines.append("| " + table.columns.joined(separator: " | ") + " |")
        lines.append("|" + table.columns.map { _ in "---" }.joined(separator: "|") + "|")
        lines += table.rows.map { "| " + $0.map(Self.markdownCell).joined(separator: " | ") + " |" }
      }
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// One page that needs nothing but itself.
  func html() -> String {
    var body = "<h1>\(Self.escaped(title))</h1>\n<p class=\"\(isGood ? "good" : "bad")\">\(Self.escaped(sentence))</p>\n<dl>"
    for (name, value) in summary { body += "<dt>\(Self.escaped(name))</dt><dd>\(Self.escaped(value))</dd>" }
    body += "</dl>\n"
    for table in tables {
      body += "<h2>\(Self.escaped(table.title))</h2>\n"
      if table.rows.isEmpty {
        body += "<p>\(Self.escaped(table.nothing))</p>\n"
        continue
      }
      body += "<table><tr>" + table.columns.map { "<th>\(Self.escaped($0))</th>" }.joined() + "</tr>\n"
      for row in table.rows { body += "<tr>" + row.map { "<td>\(Self.escaped($0))</td>" }.joined() + "</tr>\n" }
      body += "</table>\n"
    }
    return """
      <!doctype html>
      <html lang="en"><head><meta charset="utf-8"><title>\(Self.escaped(title))</title>
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <style>
      body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
      table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .3rem .6rem;
      border-bottom: 1px solid #8884; vertical-align: top; overflow-wrap: anywhere }
      dt { float: left; clear: left; width: 12rem; opacity: .7 } dd { margin-left: 12rem }
      .good, .bad { padding: .6rem 1rem; border-left: .4rem solid #2a8a3e; background: #2a8a3e22 }
      .bad { border-color: #c0392b; background: #c0392b22 }
      @media (prefers-color-scheme: dark) { body { background: #16181c; color: #e6e6e6 } }
      </style></head><body>
      \(body)</body></html>

      """
  }

  private static func markdownCell(_ text: String) -> String {
    String(text.flatMap { $0 == "|" ? "\\|" : $0.isNewline ? " " : String($0) })
  }

  private static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
