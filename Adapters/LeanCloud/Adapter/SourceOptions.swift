import ChatCrypto
import LeanCloudWire
import Synchronization
import UnifiedChat

/// What a profile's `options` say to the source, beside what they say to a client.
///
/// `from`, `until` and `share` let several workers read one app, each into an archive of its own; the archives are
/// merged afterwards.
public struct LeanCloudSourceOptions: Sendable, Hashable {
  /// The column of `_User` that holds the client id.
  var userIDColumn = "objectId"
  /// Only messages sent at this time or later.
  var from: Timestamp?
  /// Only messages sent before this time.
  var until: Timestamp?
  /// The part of the channels that this worker reads: number `index` (from 0) of `count`.
  var index: UInt32 = 0
  var count: UInt32 = 1
  /// Whether the history of the whole app is searched for conversations that have no row any more.
  var sweeps = true
  /// Whose read marks are asked for: one request a member.
  var readMarks = ReadMarks.direct
  /// Whether it is read what single subscribers of service conversations were sent and wrote: two requests for a
  /// silent subscriber, three and more for others. Broadcasts are read in any case.
  var serviceHistories = true
  /// Whether password hashes, salts and logins of third parties stay in the raw rows of users.
  var keepsUserSecrets = true
  /// The vendor's limit of an ordinary plan; 120 on a development plan, up to 9,000 on others.
  var requestsPerMinute = 1800
  /// In place of `https://domain` of attachments whose own address is dead.
  var fileDomain: String?

  enum ReadMarks: String, Sendable, CaseIterable { case none, direct, all }

  static let names: [String: String] = [
    "userIDColumn": "the column of _User that holds the client id (objectId)",
    "from": "archive: only messages of this time or later, as 2026-07-01T00:00:00.000Z",
    "until": "archive: only messages before this time",
    "share": "archive: the part of the channels that this worker reads, as 2/5",
    "deletedConversations": "archive: search the whole history for conversations without a row (true)",
    "readMarks": "archive: ask for read marks of none, direct (the default) or all channels",
    "serviceHistories": "archive: read what single subscribers of service conversations were sent (true)",
    "userSecrets": "archive: keep (the default) or redact password hashes and third-party logins of users",
    "requestsPerMinute": "archive: how many message requests the plan allows (1800; development plan 120)",
    "fileDomain": "archive: where files lie now, as https://files.example.com, if old addresses are dead",
  ]

  init() {}

  init(_ profile: Profile) throws(ChatError) {
    userIDColumn = try LeanCloudProfile.text("userIDColumn", profile) ?? userIDColumn
    from = try Self.time("from", profile)
    until = try Self.time("until", profile)
    if let share = try LeanCloudProfile.text("share", profile) { try readShare(share) }
    sweeps = try Self.value("deletedConversations", profile, "true or false", Bool.self) ?? sweeps
    serviceHistories =
      try Self.value("serviceHistories", profile, "true or false", Bool.self) ?? serviceHistories
    if let name = try LeanCloudProfile.text("readMarks", profile) {
      guard let marks = ReadMarks(rawValue: name) else { throw Self.invalid("readMarks", "none, direct or all") }
      readMarks = marks
    }
    switch try LeanCloudProfile.text("userSecrets", profile) ?? "keep" {
    case "keep": keepsUserSecrets = true
    case "redact": keepsUserSecrets = false
    default: throw Self.invalid("userSecrets", "keep or redact")
    }
    if let number = try Self.value("requestsPerMinute", profile, "a positive integer", Int.self) {
      guard number > 0 else { throw Self.invalid("requestsPerMinute", "a positive integer") }
      requestsPerMinute = number
    }
    fileDomain = try LeanCloudProfile.text("fileDomain", profile)
  }

  private mutating func readShare(_ text: String) throws(ChatError) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let number = UInt32(parts[0]), let whole = UInt32(parts[1]), number >= 1, number <= whole
    else { throw Self.invalid("share", "a part and a whole, as 2/5") }
    index = number - 1
    count = whole
  }

  private static func time(_ name: String, _ profile: Profile) throws(ChatError) -> Timestamp? {
    guard let text = try LeanCloudProfile.text(name, profile) else { return nil }
    guard let time = LeanCloudID.milliseconds(iso: text) else {
      throw invalid(name, "a time as 2026-07-01T00:00:00.000Z")
    }
    return Timestamp(milliseconds: time)
  }

  private static func value<Value: Decodable>(
    _ name: String, _ profile: Profile, _ expected: String, _ type: Value.Type
  ) throws(ChatError) -> Value? {
    guard let value = profile.options[name] else { return nil }
    do { return try value.decode(Value.self) } catch { throw invalid(name, expected) }
  }

  private static func invalid(_ name: String, _ expected: String) -> ChatError {
    ChatError(.invalidArgument(field: "options.\(name)"), operation: .configuration, detail: "must be \(expected)")
  }

  /// Whether the channel is in this worker's part: decided by the id alone, so that all workers agree.
  func includes(_ channel: ChannelID) -> Bool {
    guard count > 1 else { return true }
    let digest = Digest.md5(Array(channel.rawValue.utf8))
    let number = digest.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    return number % count == index
  }

  /// What of an app a source with these settings does not read.
  var leftOut: [String] {
    var things = [
      "classes of the app's own, roles, cloud functions, LiveQuery, push records and statistics: no part of chat",
      "temporary conversations, whose messages the service does not keep, and transient messages",
      "silences for a time, which the service lists nowhere, and which conversations a client has blocked for itself",
      "delivery marks of members; bytes of files that no message names (their rows are kept)",
    ]
    switch readMarks {
    case .none: things.append("read marks of members (options.readMarks is none)")
    case .direct: things.append("read marks in channels of more than two members (options.readMarks is direct)")
    case .all: break
    }
    if !serviceHistories {
      things.append("what single subscribers of service conversations were sent (options.serviceHistories is false)")
    }
    if !sweeps {
      things.append(
        "conversations whose row is gone and of which only messages are left (options.deletedConversations is false)")
    }
    return things + part.map { "what is not of this part, by the reading that took it: \($0)" }
  }

  /// What the reader of a check should know of these settings.
  var notes: [String] { [secretsNote] + part.map { "only a part is read: \($0)" } }

  var secretsNote: String {
    keepsUserSecrets
      ? "raw rows of users hold password hashes and third-party logins: keep the archive as you keep those, or set options.userSecrets to redact"
      : "password hashes and third-party logins of users are left out, so users will have to set new passwords"
  }

  /// The part that one worker reads, as a fact about its reading alone: it stays true in an archive that was merged of
  /// several parts, and shows whether all of them are there.
  private var part: [String] {
    var parts: [String] = []
    switch (from, until) {
    case (let from?, let until?): parts.append("messages from \(from) on and before \(until) (options.from, options.until)")
    case (let from?, nil): parts.append("messages from \(from) on (options.from)")
    case (nil, let until?): parts.append("messages before \(until) (options.until)")
    case (nil, nil): break
    }
    if count > 1 { parts.append("part \(index + 1) of \(count) of the channels (options.share)") }
    return parts
  }
}

/// Keeps to a number of requests a minute, in the vendor's windows of whole minutes. Copies share it.
final class LeanCloudPace: Sendable {
  private let perMinute: Int
  private let clock: any ChatClock
  private let window = Mutex<(minute: Int64, count: Int)>((0, 0))

  init(perMinute: Int, clock: any ChatClock) {
    self.perMinute = perMinute
    self.clock = clock
  }

  /// Returns when one more request is allowed.
  func take() async throws(ChatError) {
    while true {
      let now = clock.now.milliseconds
      let minute = now / 60_000
      let isAllowed = window.withLock { window in
        if window.minute != minute { window = (minute, 0) }
        guard window.count < perMinute else { return false }
        window.count += 1
        return true
      }
      if isAllowed { return }
      do { try await clock.sleep(for: .milliseconds(60_000 - now % 60_000)) } catch { throw .cancelled(.readSource) }
    }
  }
}

/// Channels that a row has named already. Copies of a source share it.
final class LeanCloudKnownChannels: Sendable {
  private let ids = Mutex<Set<ChannelID>>([])

  @discardableResult
  func insert(_ id: ChannelID) -> Bool { ids.withLock { $0.insert(id).inserted } }
  func contains(_ id: ChannelID) -> Bool { ids.withLock { $0.contains(id) } }
}

/// What the vendor's retention has taken, with dates.
enum LeanCloudRetention {
  /// The vendor keeps history for about six months unless the plan says more.
  static let usual = Duration.seconds(180 * 86_400)
  /// When the service ends: 2027-01-12.
  static let end = Timestamp(milliseconds: 1_799_712_000_000)

  static func notes(oldest: Timestamp?, newest: Timestamp?, now: Timestamp) -> [String] {
    var notes: [String] = []
    if let oldest, let newest {
      notes.append("messages on the server: the oldest of \(oldest), the newest of \(newest)")
      if oldest >= now + (.zero - usual) {
        notes.append(
          "nothing older than \(oldest) is on the server: what was sent before is in exports and on devices only")
      }
    } else {
      notes.append("there is no message on the server")
    }
    notes.append("history lives six months unless paid for, and a conversation idle for six months is deleted")
    let left = (end - now).wholeMilliseconds / 86_400_000
    notes.append(
      left >= 0
        ? "the service ends on 2027-01-12: \(left) days are left" : "the service was announced to end on 2027-01-12")
    return notes
  }

  /// What stands in the report for a channel that lived before the oldest message that the server still has.
  ///
  /// Nothing is said where the server shows that it keeps more than six months.
  static func gap(of row: JSONRow, first: Timestamp?, channel: ChannelID, now: Timestamp) -> UnreadableRecord? {
    guard let created = row.createdAt, row.lastMessageAt != nil else { return nil }
    let horizon = now + (.zero - usual)
    guard created < horizon, first.map({ $0 >= horizon }) ?? true else { return nil }
    let until = first ?? row.lastMessageAt ?? now
    return UnreadableRecord(
      kind: "message", channel: channel,
      reason:
        "the server has nothing of the time from \(created) to \(until): anything sent then was deleted by its retention"
    )
  }

  struct JSONRow {
    var createdAt: Timestamp?
    var lastMessageAt: Timestamp?
  }
}
