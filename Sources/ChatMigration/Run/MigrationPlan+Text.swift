import UnifiedChat

extension MigrationPlan {
  /// The plan as a page to pass on before anything is done; names fields and ids, never contents.
  public func markdown() -> String { page.markdown() }

  /// One page that needs nothing but itself.
  public func html() -> String { page.html() }

  private var page: ReportPage {
    ReportPage(
      title: "Migration plan", sentence: sentence + " Nothing has been written.", isGood: lost == 0 && collisions.isEmpty,
      summary: summary, tables: tables)
  }

  /// How often something of an item will be lost.
  private var lost: Int {
    (losses + overLimit).reduce(0) { $0 + ($1.loss.treatment == .dropped ? $1.count : 0) }
  }

  private var sentence: String {
    if !collisions.isEmpty {
      return "A run would be refused: the mapping gives \(collisions.count) ids to more than one user."
    }
    if lost == 0 { return "All \(messages) messages of \(source) have a place on \(destination)." }
    return "\(messages) messages of \(source) can be written to \(destination); of \(lost) items something is lost."
  }

  private var summary: [(String, String)] {
    let kinds = channelsByKind.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
    return [
      ("From", source.rawValue), ("To", destination.rawValue), ("Users", "\(users)"),
      ("Channels", "\(channels)" + (kinds.isEmpty ? "" : " (\(kinds)), with \(members) memberships")),
      ("Messages", "\(messages)" + (reactionMessages == 0 ? "" : ", and \(reactionMessages) of reactions")),
      ("Attachments", "\(attachments), \(attachmentBytes) bytes"),
      ("Left out by the filter", "\(leftOut)"), ("Unreadable at the source", "\(unreadable)"),
      ("Writing requests", "\(requests), about \(estimate.components.seconds) s at \(requestsPerSecond) a second"),
    ]
  }

  private var tables: [ReportTable] {
    [
      ReportTable(
        title: "Fields", nothing: "There is no message.",
        columns: ["field", "present", "kept", "kept elsewhere", "degraded", "dropped", "what will be done", "examples"],
        rows: fields.map {
          $0.counts + [$0.explanations.joined(separator: "; "), $0.examples.joined(separator: ", ")]
        }),
      ReportTable(
        title: "Users whom the mapping would melt into one", nothing: "Each user has an id of their own.",
        columns: ["would be", "users"],
        rows: collisions.map { [$0.destination.rawValue, $0.originals.map(\.rawValue).joined(separator: ", ")] }),
      ReportTable(
        title: "Over a limit", nothing: "Nothing is over a limit of the destination.",
        columns: ["field", "items", "limit", "examples"],
        rows: overLimit.map {
          [$0.loss.field, "\($0.count)", $0.loss.explanation, $0.examples.prefix(5).joined(separator: ", ")]
        }),
      .notCarried(notCarried, nothing: "None is known; an archive counts them."), .notRead(notRead),
    ]
  }
}
