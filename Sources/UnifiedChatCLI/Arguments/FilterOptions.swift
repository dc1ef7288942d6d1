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
    if invocation.has("kind") { filter.kinds = Set(try invocation.all("kind").map(kind)) }
    if let since = filter.since, let until = filter.until, since >= until {
      throw Failure(.usage, "--since \(since) is not before --until \(until): nothing lies between")
    }
    return filter
  }

  private static let kinds = [
    "text", "markdown", "image", "audio", "video", "file", "location", "card", "sticker", "custom", "merged", "system",
    "recalled", "unknown",
  ]

  private static func kind(_ name: String) throws -> String {
    guard !kinds.contains(name) else { return name }
    let near = Nearest.name(to: name, among: kinds).map { "; did you mean \($0)?" } ?? ""
    throw Failure(.usage, "--kind \(name): no content is of this kind\(near) Known: \(kinds.joined(separator: ", "))")
  }

  /// - Throws: for a channel that is wanted, or not wanted, and that the archive does not hold.
  static func requireKnownChannels(_ invocation: Invocation, in path: String) async throws {
    let names = invocation.all("channel") + invocation.all("exclude-channel")
    guard !names.isEmpty else { return }
    let archive = try Archive.open(at: path, checks: false)
    var unknown: [String] = []
    for name in names where try await archive.channel(ChannelID(name)) == nil { unknown.append(name) }
    let near = try await archive.channels(limit: 1000).map(\.id.rawValue)
    try await archive.close()
    guard let name = unknown.first else { return }
    let guess = Nearest.name(to: name, among: near).map { "; did you mean \($0)?" } ?? "; archive show lists them"
    throw Failure(.configuration, "\(path) holds no channel \(name.inert)\(guess.inert)")
  }

  /// A day is its first millisecond in UTC.
  static func time(_ name: String, _ invocation: Invocation) throws -> Timestamp? {
    guard let text = invocation.value(name) else { return nil }
    if let milliseconds = Int64(text) {
      // A year or a day in digits alone would be some moment of 1970.
      guard milliseconds >= 100_000_000_000 || milliseconds == 0 else {
        throw Failure(.usage, "--\(name) \(text) would be of 1970: write a day as 2026-11-30")
      }
      return Timestamp(milliseconds: milliseconds)
    }
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
