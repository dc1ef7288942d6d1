import ChatJSON
import UnifiedChat

/// What of an archive is written, and in which form. The ledger remembers the rules of a run, so that a later run and
/// the verification go by the same.
public struct LoadRules: Sendable, Hashable {
  /// What to do with the bytes of attachments.
  public enum Attachments: String, Sendable, Hashable, CaseIterable {
    /// Stored at the destination.
    case upload
    /// Left where they are; the message keeps the address.
    case link
  }

  /// What to do with reactions.
  public enum Reactions: String, Sendable, Hashable, CaseIterable {
    /// They stay with their message: as reactions where the service has them, else in its custom data.
    case data
    /// Each is a message that answers the one it is about, which every client shows.
    case messages
  }

  /// What to do with notices of the service: who came, who left, what was changed.
  public enum SystemMessages: String, Sendable, Hashable, CaseIterable {
    /// They stay what they are: in the service's own form where it has one, else in its custom data.
    case notice
    /// Each is a text that says the same, which every client shows.
    case text
    /// They are left out, and listed.
    case drop
  }

  /// What does not pass is listed as skipped.
  public var filter: MigrationFilter
  public var attachments: Attachments
  public var reactions: Reactions
  public var system: SystemMessages
  /// Ids of channels at the destination, where they are not to be the original ones.
  public var channels: [ChannelID: ChannelID]
  /// Roles by record name: `owner`, `admin`, `member`, or a vendor's own.
  public var roles: [String: String]
  /// Whether `@id` in a text follows the id of a mentioned user that the mapping changes.
  public var rewritesMentions: Bool

  public init(
    filter: MigrationFilter = MigrationFilter(), attachments: Attachments = .upload,
    reactions: Reactions = .data, system: SystemMessages = .notice, channels: [ChannelID: ChannelID] = [:],
    roles: [String: String] = [:], rewritesMentions: Bool = true
  ) {
    self.filter = filter
    self.attachments = attachments
    self.reactions = reactions
    self.system = system
    self.channels = channels
    self.roles = roles
    self.rewritesMentions = rewritesMentions
  }

  func admits(_ message: Message) -> Bool {
    if system == .drop, case .system = message.content { return false }
    return filter.admits(message)
  }

  /// The rules that `ledger` remembers, if it does.
  static func stored(in ledger: any Ledger) async throws(ChatError) -> LoadRules {
    guard let text = try await ledger.note("rules"), !text.isEmpty, let json = try? JSONValue(parsing: text) else {
      return LoadRules()
    }
    return LoadRules(json: json)
  }

  /// Empty for the default ones; else canonical JSON, equal for equal rules.
  var text: String {
    guard self != LoadRules() else { return "" }
    return String(decoding: json().canonicalBytes(), as: UTF8.self)
  }

  private func json() -> JSONValue {
    var object = JSONObject()
    object["attachments"] = .string(attachments.rawValue)
    // Left out by default, as in ledgers that were begun before there was a choice.
    if reactions != .data { object["reactions"] = .string(reactions.rawValue) }
    if system != .notice { object["system"] = .string(system.rawValue) }
    object["rewritesMentions"] = .bool(rewritesMentions)
    object["channels"] = Self.pairs(channels.map { ($0.key.rawValue, $0.value.rawValue) })
    object["roles"] = Self.pairs(roles.map { ($0.key, $0.value) })
    object["only"] = filter.channels.map { Self.list($0.map(\.rawValue)) }
    object["excludedChannels"] = Self.list(filter.excludedChannels.map(\.rawValue))
    object["excludedUsers"] = Self.list(filter.excludedUsers.map(\.rawValue))
    object["since"] = filter.since.map { .int($0.milliseconds) }
    object["until"] = filter.until.map { .int($0.milliseconds) }
    object["kinds"] = filter.kinds.map { Self.list(Array($0)) }
    object["thread"] = filter.thread.map { .string($0.rawValue) }
    return .object(object)
  }

  private init(json: JSONValue) {
    self.init()
    attachments = json["attachments"]?.string.flatMap { Attachments(rawValue: $0) } ?? .upload
    reactions = json["reactions"]?.string.flatMap { Reactions(rawValue: $0) } ?? .data
    system = json["system"]?.string.flatMap { SystemMessages(rawValue: $0) } ?? .notice
    rewritesMentions = json["rewritesMentions"]?.bool ?? true
    for (old, new) in Self.pairs(json["channels"]) { channels[ChannelID(old)] = ChannelID(new) }
    for (old, new) in Self.pairs(json["roles"]) { roles[old] = new }
    filter.channels = json["only"].map { Set(Self.list($0).map { ChannelID($0) }) }
    filter.excludedChannels = Set(Self.list(json["excludedChannels"]).map { ChannelID($0) })
    filter.excludedUsers = Set(Self.list(json["excludedUsers"]).map { UserID($0) })
    filter.since = json["since"]?.int.map { Timestamp(milliseconds: $0) }
    filter.until = json["until"]?.int.map { Timestamp(milliseconds: $0) }
    filter.kinds = json["kinds"].map { Set(Self.list($0)) }
    filter.thread = json["thread"]?.string.map { MessageID($0) }
  }

  private static func list(_ names: [String]) -> JSONValue {
    .array(names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.map { .string($0) })
  }

  private static func list(_ json: JSONValue?) -> [String] { (json?.array ?? []).compactMap(\.string) }

  /// As a list of pairs: keys of an object would have to differ in more than their normal form.
  private static func pairs(_ pairs: [(String, String)]) -> JSONValue {
    .array(
      pairs.sorted { $0.0.utf8.lexicographicallyPrecedes($1.0.utf8) }.map { [.string($0.0), .string($0.1)] })
  }

  private static func pairs(_ json: JSONValue?) -> [(String, String)] {
    (json?.array ?? []).compactMap { pair in
      guard let old = pair[0]?.string, let new = pair[1]?.string else { return nil }
      return (old, new)
    }
  }
}

/// How much one run may write. What is left over is for the next run.
public struct RunLimits: Sendable, Hashable {
  public var users: Int?
  public var channels: Int?
  public var messages: Int?
  /// Of attachments that are uploaded.
  public var bytes: Int64?
  public var duration: Duration?

  public init(
    users: Int? = nil, channels: Int? = nil, messages: Int? = nil, bytes: Int64? = nil, duration: Duration? = nil
  ) {
    self.users = users
    self.channels = channels
    self.messages = messages
    self.bytes = bytes
    self.duration = duration
  }
}

/// Counts what a run writes against its limits.
actor RunBudget {
  private let limits: RunLimits
  private let clock: any ChatClock
  private let start: Timestamp
  private var users = 0
  private var channels = 0
  private var messages = 0
  private var bytes: Int64 = 0

  init(_ limits: RunLimits, clock: any ChatClock) {
    self.limits = limits
    self.clock = clock
    start = clock.now
  }

  /// Of `wanted` messages as many as may still be written, at least one.
  func reserve(messages wanted: Int) throws(ChatError) -> Int {
    try checkTime()
    let left = limits.messages.map { $0 - messages } ?? wanted
    guard left > 0 else { throw Self.reached("messages", "\(limits.messages ?? 0)") }
    let granted = min(wanted, left)
    messages += granted
    return granted
  }

  /// What comes along with a message that may be written: the next one waits for it.
  func spend(messages count: Int) { messages += count }

  func reserve(users wanted: Int) throws(ChatError) -> Int {
    try checkTime()
    let left = limits.users.map { $0 - users } ?? wanted
    guard left > 0 else { throw Self.reached("users", "\(limits.users ?? 0)") }
    let granted = min(wanted, left)
    users += granted
    return granted
  }

  func reserveChannel() throws(ChatError) {
    try checkTime()
    if let limit = limits.channels, channels >= limit { throw Self.reached("channels", "\(limit)") }
    channels += 1
  }

  func reserve(bytes count: Int64) throws(ChatError) {
    if let limit = limits.bytes, bytes &+ count > limit { throw Self.reached("bytes", "\(limit)") }
    bytes &+= count
  }

  private func checkTime() throws(ChatError) {
    guard let limit = limits.duration, clock.now - start >= limit else { return }
    throw Self.reached("seconds", "\(limit.components.seconds)")
  }

  private static func reached(_ what: String, _ limit: String) -> ChatError {
    ChatError(
      .cancelled, operation: .writeDestination,
      detail: "the limit of \(limit) \(what) a run is reached; what is written is kept, and the next run goes on")
  }
}
