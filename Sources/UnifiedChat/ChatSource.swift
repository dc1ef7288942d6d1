/// Reads everything that a service holds, with admin credentials.
///
/// Cursors are stable: a reading may stop and go on days later in another process. Each method reads the whole list
/// from the start when `after` is nil.
public protocol ChatSource: Sendable {
  var vendor: VendorName { get }
  var capabilities: CapabilitySet { get }

  /// A few cheap requests that show that keys and endpoints are right, with the counts that the vendor tells. A pull
  /// asks again whenever it wants to know whether the service still answers.
  func check() async throws(ChatError) -> SourceCheck
  /// How much a whole reading takes, where that needs more than the counts of a check: may look at the service in many
  /// places, so that only who wants to know it asks. Without an implementation, nil: nothing beyond the counts is known.
  func estimate() async throws(ChatError) -> SourceEstimate?

  /// Every user; for vendors without users, those who appear as members (found by the channels' reading).
  func users(after cursor: Cursor?) async throws(ChatError) -> SourcePage<UserRecord>
  func channels(after cursor: Cursor?) async throws(ChatError) -> SourcePage<ChannelRecord>
  func members(of channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MemberRecord>
  /// In ascending position across all pages. Recalled messages come as tombstones where the vendor keeps them.
  func messages(in channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MessageRecord>
  /// What belongs to chat and has no place among the records: devices, lists of friends. Without an implementation,
  /// nothing.
  func rows(after cursor: Cursor?) async throws(ChatError) -> SourcePage<VendorRow>
  /// The bytes of an attachment, in pieces of at most 1 MiB.
  func download(
    _ attachment: Attachment, to sink: @escaping @Sendable ([UInt8]) async throws(ChatError) -> Void
  ) async throws(ChatError)
}

extension ChatSource {
  public func estimate() async throws(ChatError) -> SourceEstimate? { nil }
  public func rows(after cursor: Cursor?) async throws(ChatError) -> SourcePage<VendorRow> {
    SourcePage(items: [], next: nil)
  }
}

public struct SourceCheck: Sendable, Hashable {
  public var users: Int?
  public var channels: Int?
  public var messages: Int?
  /// Requests a second that the vendor allows, where known.
  public var requestsPerSecond: Double?
  /// What the reader of the check should know, one line each.
  public var notes: [String]
  /// What of the app this source does not read, one thing each: stands in the archive and in reports.
  public var leftOut: [String]

  public init(
    users: Int? = nil, channels: Int? = nil, messages: Int? = nil, requestsPerSecond: Double? = nil,
    notes: [String] = [], leftOut: [String] = []
  ) {
    self.users = users
    self.channels = channels
    self.messages = messages
    self.requestsPerSecond = requestsPerSecond
    self.notes = notes
    self.leftOut = leftOut
  }
}

/// How much a whole reading takes.
public struct SourceEstimate: Sendable, Hashable {
  /// Of what the source's settings let through, before its shares.
  public var messages: Int
  /// Whether each of the messages was seen; else the number is worked out from some places.
  public var isExact: Bool
  /// How many requests a reading takes at the rate that `SourceCheck.requestsPerSecond` tells; files not counted.
  public var requests: Int
  /// What follows from that, one line each.
  public var notes: [String]

  public init(messages: Int, isExact: Bool, requests: Int, notes: [String] = []) {
    self.messages = messages
    self.isExact = isExact
    self.requests = requests
    self.notes = notes
  }
}
