import UnifiedChat

extension FidelityReport {
  public func markdown() -> String { page.markdown() }

  /// One page that needs nothing but itself.
  public func html() -> String { page.html() }

  // MARK: Parts

  private var page: ReportPage {
    ReportPage(title: "Fidelity report", sentence: sentence, isGood: isPerfect, summary: summary, tables: tables)
  }

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
    tables += [.notCarried(notCarried), .notRead(notRead)]
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
        field.counts + [
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
}

extension FidelityReport.Field {
  /// Its name, how many items have it, and what becomes of it in how many of them.
  var counts: [String] {
    [
      field, present.map { "\($0)" } ?? "", kept.map { "\($0)" } ?? "", "\(keptElsewhere)", "\(degraded)", "\(dropped)",
    ]
  }
}
