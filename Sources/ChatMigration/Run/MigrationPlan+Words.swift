import UnifiedChat

extension MigrationPlan {
  /// The plan as a text for people: what will happen, what it takes, and what will not be the same.
  public func words() -> String {
    var lines = ["From \(source) to \(destination). Nothing has been written.", "", "What will happen:"]
    lines.append("  \(counted(users, "user")) will get an account, or the profile they have here.")
    let kinds = channelsByKind.sorted { $0.key < $1.key }.map { counted($0.value, "\($0.key) channel") }
    lines.append("  \(list(kinds)) will be made, with \(counted(members, "membership")).")
    lines.append("  \(counted(messages, "message")) will be written in their order, each once.")
    if reactionMessages > 0 {
      lines.append("  \(counted(reactionMessages, "reaction")) will each become a message that answers.")
    }
    if attachments > 0 {
      lines.append("  \(counted(attachments, "attachment")) (\(Self.size(attachmentBytes))) will be stored there.")
    }
    if leftOut > 0 { lines.append("  \(counted(leftOut, "user or message", "users and messages")) are left out by the filter.") }
    if unreadable > 0 {
      lines.append("  \(counted(unreadable, "item")) of the source cannot be read and will be listed, not written.")
    }
    for collision in collisions.prefix(20) {
      lines.append("  Refused: \(collision.originals.map(\.rawValue).joined(separator: " and ")) would be one, \(collision.destination).")
    }
    if !collisions.isEmpty { lines.append("  A run begins only when the mapping of users gives each an id of their own.") }
    for list in notCarried {
      lines.append("  \(counted(list.count, "row")) of \(list.kind) stay in the archive: no destination has a place for them.")
    }
    for thing in notRead { lines.append("  Not read at the source: \(thing).") }
    if envelopes > 0 {
      lines.append(
        "  \(counted(envelopes, "envelope")) of an import without a signature of this admin secret will be taken for "
          + "\(envelopes == 1 ? "its writer's" : "their writers'") own data; pulled again with --delta --trust-unsigned-envelopes they are believed.")
    }
    lines += [
      "", "What it takes:",
      "  \(counted(requests, "writing request")), about \(Self.duration(estimate)) at "
        + "\(Self.number(requestsPerSecond)) a second.",
    ]
    lines += ["", "What will not be the same:"]
    let treatments: [(Loss.Treatment, String)] = [
      (.dropped, "lost"), (.degraded, "changed"), (.keptElsewhere, "kept in another place, and read back as it was"),
    ]
    for (treatment, words) in treatments {
      for counted in losses where counted.loss.treatment == treatment { lines.append(line(counted, words)) }
    }
    for counted in overLimit { lines.append(line(counted, "over a limit")) }
    if losses.isEmpty && overLimit.isEmpty { lines.append("  Nothing: everything has a place there.") }
    return lines.map(\.inert).joined(separator: "\n")
  }

  private func line(_ counted: CountedLoss, _ words: String) -> String {
    let examples = counted.examples.prefix(3).joined(separator: ", ")
    return "  \(counted.count) × \(counted.loss.field) \(words): \(counted.loss.explanation)"
      + (examples.isEmpty ? "" : " (for example \(examples))")
  }

  private func counted(_ count: Int, _ one: String, _ many: String? = nil) -> String {
    "\(count) \(count == 1 ? one : many ?? one + "s")"
  }

  private func list(_ parts: [String]) -> String {
    guard let last = parts.last else { return "No channel" }
    return parts.count == 1 ? last : parts.dropLast().joined(separator: ", ") + " and " + last
  }

  private static func size(_ bytes: Int64) -> String {
    bytes < 10_000 ? "\(bytes) bytes" : bytes < 10_000_000 ? "\(bytes / 1000) kB" : "\(bytes / 1_000_000) MB"
  }

  private static func number(_ value: Double) -> String {
    value == value.rounded() && abs(value) < 1e15 ? "\(Int(value))" : "\(value)"
  }

  private static func duration(_ duration: Duration) -> String {
    let seconds = max(1, duration.components.seconds)
    func words(_ number: Int64, _ unit: String) -> String { "\(number) \(unit)\(number == 1 ? "" : "s")" }
    return seconds < 60
      ? words(seconds, "second") : seconds < 7200 ? words(seconds / 60, "minute") : words(seconds / 3600, "hour")
  }
}
