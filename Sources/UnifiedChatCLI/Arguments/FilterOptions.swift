import ChatMigration
import Foundation
import UnifiedChat

/// Which items are wanted: the same words for pulling, planning and loading.
enum FilterOptions {
  static let specs: [OptionSpec] = [
    .value("channel", "ID", "only this channel", repeatable: true),
    .value("exclude-channel", "ID", "not this channel", repeatable: true),
    .value("exclude-user", "ID", "nothing of this user", repeatable: true),
    .value("since", "TIME", "messages from here on: 2026-11-30, 2026-11-30T08:00:00Z, or milliseconds since 1970"),
    .value("until", "TIME", "messages before this"),
    .value("kind", "NAME", "only contents of this kind: text, image, file, …", repeatable: true),
    .value("thread", "ID", "only this message and the replies of its thread"),
  ]

  static func filter(_ invocation: Invocation) throws -> MigrationFilter {
    var filter = MigrationFilter()
    if invocation.has("channel") { filter.channels = Set(invocation.all("channel").map { ChannelID($0) }) }
    filter.excludedChannels = Set(invocation.all("exclude-channel").map { ChannelID($0) })
    filter.excludedUsers = Set(invocation.all("exclude-user").map { UserID($0) })
    filter.since = try time("since", invocation)
    filter.until = try time("until", invocation)
    filter.thread = invocation.value("thread").map { MessageID($0) }
    if invocation.has("kind") { filter.kinds = Set(invocation.all("kind")) }
    return filter
  }

  /// A day is its first millisecond in UTC.
  static func time(_ name: String, _ invocation: Invocation) throws -> Timestamp? {
    guard let text = invocation.value(name) else { return nil }
    if let milliseconds = Int64(text) { return Timestamp(milliseconds: milliseconds) }
    let formatter = ISO8601DateFormatter()
    for options: ISO8601DateFormatter.Options in [
      [.withInternetDateTime], [.withInternetDateTime, .withFractionalSeconds], [.withFullDate],
    ] {
      formatter.formatOptions = options
      guard let date = formatter.date(from: text) else { continue }
      guard let milliseconds = Int64(exactly: (date.timeIntervalSince1970 * 1000).rounded()) else { break }
      return Timestamp(milliseconds: milliseconds)
    }
    throw Failure(
      .usage, "--\(name) takes 2026-11-30, 2026-11-30T08:00:00Z or milliseconds since 1970, not \"\(text)\"")
  }
}
