import UnifiedChat

extension FidelityReport {
  /// The report for a terminal: what is not as it was, what is wrong, and one sentence at the end. The other forms list
  /// every channel.
  public func words() -> String {
    var lines = [
      "\(load.users) users, \(load.channels) channels and \(load.messages) messages of \(archive.vendor) are on "
        + "\(destination)."
    ]
    let changed = fields.filter { $0.keptElsewhere + $0.degraded + $0.dropped > 0 }
    if !changed.isEmpty { lines += ["", "Not in their own place there:"] + changed.map(Self.line) }
    let findings = self.findings
    if !findings.isEmpty { lines += ["", "Not equal:"] + Self.cut(findings) }
    if !exceptions.isEmpty {
      lines += ["", "Refused and skipped (\(load.refused) and \(load.skipped)):"]
      lines += Self.cut(exceptions.map { "\($0.outcome.rawValue) \($0.kind) \($0.id): \($0.reason)" })
    }
    if !unreadable.isEmpty {
      lines += ["", "Unreadable at the source (\(archiveCounts.unreadable)):"]
      lines += Self.cut(unreadable.map { "\($0.kind) \($0.id ?? ""): \($0.reason)" })
    }
    if !notCarried.isEmpty {
      lines += ["", "Kept in the archive and not carried, since no destination has a place for it:"]
      lines += notCarried.map { "  \($0.count) × \($0.kind)" }
    }
    if !notRead.isEmpty { lines += ["", "Not read at the source:"] + notRead.map { "  \($0)" } }
    if !envelopes.isEmpty {
      lines += ["", "Not believed at the source (\(archiveCounts.envelopes)):"]
      lines += Self.cut(envelopes.map { "\($0.id ?? ""): \($0.reason)" })
    }
    if let verification, verification.envelopes > 0 {
      lines += ["", "Not believed at the destination (\(verification.envelopes)):"]
      lines += Self.cut(verification.envelopeExamples.map { "\($0.kind) \($0.id): \($0.what)" })
    }
    return (lines + ["", sentence]).map(\.inert).joined(separator: "\n")
  }

  private static let shown = 10

  private static func cut(_ lines: [String]) -> [String] {
    lines.prefix(shown).map { "  \($0)" } + (lines.count > shown ? ["  … and more: --report FILE lists them"] : [])
  }

  private static func line(_ field: Field) -> String {
    let counts = [
      (field.keptElsewhere, "kept elsewhere"), (field.degraded, "degraded"), (field.dropped, "dropped"),
    ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
    let reasons = field.explanations.map { $0.split(separator: ": ", maxSplits: 1).last.map(String.init) ?? $0 }
    return "  \(field.field): \(counts.joined(separator: ", ")) (\(reasons.joined(separator: "; ")))"
  }

  private var findings: [String] {
    guard let verification else { return [] }
    return verification.userExamples.map { "\($0.sign.rawValue) user \($0.id) \($0.what)" }
      + verification.channels.flatMap { channel in
        (channel.failure.map { ["! \(channel.channel) \($0)"] } ?? [])
          + channel.examples.map { "\($0.sign.rawValue) \(channel.channel) \($0.kind) \($0.id) \($0.what)" }
      }
  }
}
