import UnifiedChat

/// A table of a report, before it has a form.
private struct ReportTable {
  var title: String
  /// Said when there are no rows.
  var nothing: String
  var columns: [String]
  var rows: [[String]]
}

extension FidelityReport {
  public func markdown() -> String {
    var lines = ["# Fidelity report", "", sentence, ""]
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
  public func html() -> String {
    var body = "<h1>Fidelity report</h1>\n<p class=\"\(isPerfect ? "good" : "bad")\">\(Self.escaped(sentence))</p>\n<dl>"
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
      <html lang="en"><head><meta charset="utf-8"><title>Fidelity report</title>
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

  // MARK: Parts

  private var summary: [(String, String)] {
    [
      ("From", "\(archive.vendor) \(archive.app ?? "")"), ("To", destination.rawValue),
      ("Archive", "\(archive.id), digest \(archiveDigest ?? "none")"),
      (
        "In the archive",
        "\(archiveCounts.users) users, \(archiveCounts.channels) channels, \(archiveCounts.members) members, "
          + "\(archiveCounts.messages) messages, \(archiveCounts.files) files"
      ),
      (
        "Written",
        "\(load.users) users, \(load.channels) channels, \(load.messages) messages; \(load.refused) refused, "
          + "\(load.skipped) skipped, \(load.late) changed later and could not follow"
      ), ("Made", "\(createdAt) by \(tool)"),
    ]
  }

  private var tables: [ReportTable] {
    var tables = [fieldTable]
    if let verification { tables += [channelTable(verification), findingTable(verification)] }
    tables.append(
      ReportTable(
        title: "Refused and skipped", nothing: "Nothing was refused or skipped.",
        columns: ["kind", "outcome", "id", "reason"],
        rows: exceptions.map { [$0.kind, $0.outcome.rawValue, $0.id, $0.reason] }))
    tables.append(
      ReportTable(
        title: "Unreadable at the source", nothing: "Everything could be read.",
        columns: ["kind", "channel", "id", "reason"],
        rows: unreadable.map { [$0.kind, $0.channel?.rawValue ?? "", $0.id ?? "", $0.reason] }))
    tables.append(
      ReportTable(
        title: "Kept in the archive and not carried", nothing: "The archive holds records alone.",
        columns: ["list of the vendor", "rows"], rows: notCarried.map { [$0.kind, "\($0.count)"] }))
    tables.append(
      ReportTable(
        title: "Not read at the source", nothing: "The source names nothing that it leaves out.", columns: ["what"],
        rows: notRead.map { [$0] }))
    tables.append(
      ReportTable(
        title: "Envelopes that were not believed", nothing: "Every envelope of an import is signed.",
        columns: ["where", "channel", "id", "reason"],
        rows: envelopes.map { ["source", $0.channel?.rawValue ?? "", $0.id ?? "", $0.reason] }
          + (verification?.envelopeExamples ?? []).map { ["destination", "", $0.id, $0.what] }))
    tables.append(
      ReportTable(
        title: "Not compared", nothing: "", columns: ["field", "why"],
        rows: CarriedForm.notCompared.map { [$0.field, $0.reason] }))
    return tables
  }

  private var fieldTable: ReportTable {
    ReportTable(
      title: "Fields", nothing: "No field was lost.",
      columns: [
        "field", "present", "kept", "kept elsewhere", "degraded", "dropped", "undeclared", "what was done", "examples",
      ],
      rows: fields.map { field in
        [
          field.field, field.present.map { "\($0)" } ?? "", field.kept.map { "\($0)" } ?? "",
          "\(field.keptElsewhere)", "\(field.degraded)", "\(field.dropped)",
          field.undeclared.map { "\($0)" } ?? "", field.explanations.joined(separator: "; "),
          field.examples.joined(separator: ", "),
        ]
      })
  }

  private func channelTable(_ verification: VerifyResult) -> ReportTable {
    ReportTable(
      title: "Channels", nothing: "No channel was compared.",
      columns: ["", "channel", "there", "expected", "found", "missing", "doubled", "different", "listed", "digest"],
      rows: verification.channels.map { channel in
        [
          channel.sign.rawValue, channel.channel.rawValue, channel.destination?.rawValue ?? "", "\(channel.expected)",
          "\(channel.found)", "\(channel.missing)", "\(channel.doubled)", "\(channel.different)",
          "\(channel.excepted)", channel.digestsAreEqual ? "equal" : "not equal",
        ]
      })
  }

  private func findingTable(_ verification: VerifyResult) -> ReportTable {
    let findings =
      verification.userExamples.map { ("", $0) }
      + verification.channels.flatMap { channel in channel.examples.map { (channel.channel.rawValue, $0) } }
    return ReportTable(
      title: "Findings", nothing: "Nothing differs but what was declared.",
      columns: ["", "kind", "channel", "id", "what"],
      rows: findings.prefix(Self.listLimit).map { [$0.1.sign.rawValue, $0.1.kind, $0.0, $0.1.id, $0.1.what] })
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
