/// Reads everything that a service holds, with admin credentials.
///
/// Cursors are stable: a reading may stop and go on days later in another process. Each method reads the whole list
/// from the start when `after` is nil.
public protocol ChatSource: Sendable {
  var vendor: VendorName { get }
  var capabilities: CapabilitySet { get }

  /// One cheap request that shows that keys and endpoints are right, with the counts that the vendor tells.
  func check() async throws(ChatError) -> SourceCheck

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
  /// How many requests a whole reading takes at that rate, where the source can tell; files not counted.
  public var requests: Int?
  /// What the reader of the check should know, one line each.
  public var notes: [String]
  /// What of the app this source does not read, one thing each: stands in the archive and in reports.
  public var leftOut: [String]

  public init(
    users: Int? = nil, channels: Int? = nil, messages: Int? = nil, requestsPerSecond: Double? = nil,
    requests: Int? = nil, notes: [String] = [], leftOut: [String] = []
  ) {
    self.users = users
    self.channels = channels
    self.messages = messages
    self.requestsPerSecond = requestsPerSecond
    self.requests = requests
    self.notes = notes
    self.leftOut = leftOut
  }
}
