import UnifiedChat

/// What crossed, what crossed otherwise, and what did not (`Schemas/archive.schema.json`).
///
/// Names fields and ids, never contents, so that it may be passed on.
public struct FidelityReport: Sendable, Hashable {
  /// One field of the unified model over all items.
  public struct Field: Sendable, Hashable {
    public var field: String
    /// Items that have it; nil where they were not counted.
    public var present: Int?
    public var keptElsewhere = 0
    public var degraded = 0
    public var dropped = 0
    /// Different at the destination although nothing said so; nil without a verification.
    public var undeclared: Int?
    /// What was done instead.
    public var explanations: [String] = []
    /// Ids of items, at most five.
    public var examples: [String] = []

    /// Items whose field is as it was, in its own place.
    public var kept: Int? {
      present.map { max(0, $0 - keptElsewhere - degraded - dropped - (undeclared ?? 0)) }
    }
  }

  /// Longer lists are cut; the totals are whole.
  public static let listLimit = 1000

  public var tool: String
  public var createdAt: Timestamp
  public var archive: Archive.Identity
  public var archiveDigest: String?
  public var archiveCounts: ArchiveCounts
  public var destination: VendorName
  public var load: LoadCounts
  public var fields: [Field]
  /// nil when nothing was read back.
  public var verification: VerifyResult?
  public var exceptions: [LoadException]
  public var unreadable: [UnreadableRecord]
  /// What stays in the archive because no destination has a place for it, by the vendor's name of the list.
  public var notCarried: [VendorRowCount]
  /// What of the app the source did not read.
  public var notRead: [String]
  /// Envelopes of imports at the source that were not believed, so that their items are as their writers made them.
  public var envelopes: [UnreadableRecord]

  /// Gathers what archive and ledger know, and what a verification found.
  public static func make(
    archive: Archive, ledger: any Ledger, destination: VendorName, verification: VerifyResult?,
    tool: String = "unifiedchat", at time: Timestamp
  ) async throws(ChatError) -> FidelityReport {
    FidelityReport(
      tool: tool, createdAt: time, archive: try await archive.identity(), archiveDigest: try await archive.digest(),
      archiveCounts: try await archive.counts(), destination: destination, load: try await ledger.counts(),
      fields: fields(of: try await ledger.losses(), verification), verification: verification,
      exceptions: try await ledger.exceptions(after: 0, limit: listLimit),
      unreadable: try await archive.unreadable(limit: listLimit, envelopes: false),
      notCarried: try await archive.rowCounts(),
      notRead: try await archive.leftOut(),
      envelopes: try await archive.unreadable(limit: listLimit, envelopes: true))
  }

  private static func fields(of losses: [CountedLoss], _ verification: VerifyResult?) -> [Field] {
    var fields = Field.all(of: losses, present: verification?.fieldCounts ?? [:])
    for (path, count) in verification?.unexplained ?? [:] {
      // What lies within a counted field belongs to it.
      let name = fields.keys.filter { path.isPath(within: $0) }.max { $0.utf8.count < $1.utf8.count } ?? path
      var field = fields[name] ?? Field(field: name)
      field.undeclared = (field.undeclared ?? 0) + count
      fields[name] = field
    }
    if verification != nil {
      fields = fields.mapValues { field in
        var field = field
        field.undeclared = field.undeclared ?? 0
        return field
      }
    }
    return Field.sorted(fields)
  }

  /// True when everything was read back and is equal but for declared losses, and nothing was unreadable or refused.
  public var isPerfect: Bool {
    verification?.isEqual == true && load.refused == 0 && archiveCounts.unreadable == 0
  }

  /// Nothing known is wrong: nothing refused or unreadable, and equal if it was read back. What was not read back is
  /// not proved.
  public var isGood: Bool { verification?.isEqual != false && load.refused == 0 && archiveCounts.unreadable == 0 }

  /// One sentence for the last line.
  public var sentence: String {
    guard let verification else {
      return "Not verified: \(load.messages) messages of \(archive.vendor) are written to \(destination), none was read "
        + "back."
    }
    return verification.sentence(from: archive.vendor, to: destination)
  }
}

extension FidelityReport.Field {
  /// By name: those of which something is lost, and those that were counted.
  static func all(of losses: [CountedLoss], present: [String: Int]) -> [String: Self] {
    var fields: [String: Self] = [:]
    for (name, count) in present { fields[name] = Self(field: name, present: count) }
    for counted in losses {
      var field = fields[counted.loss.field] ?? Self(field: counted.loss.field)
      switch counted.loss.treatment {
      case .keptElsewhere: field.keptElsewhere += counted.count
      case .degraded: field.degraded += counted.count
      case .dropped: field.dropped += counted.count
      }
      field.explanations.append("\(counted.loss.treatment.rawValue): \(counted.loss.explanation)")
      field.examples += counted.examples.prefix(5 - min(5, field.examples.count))
      fields[counted.loss.field] = field
    }
    return fields
  }

  static func sorted(_ fields: [String: Self]) -> [Self] {
    fields.values.sorted { $0.field.utf8.lexicographicallyPrecedes($1.field.utf8) }
  }
}
