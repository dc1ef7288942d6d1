import UnifiedChat

/// What a run has done, so that the next one does only what is missing.
///
/// The unit of work is a channel, leased by one worker; within it a watermark, which moves only after the destination
/// has confirmed. Each `commit` is all or nothing. Other stores than SQLite may keep it, for many workers at once.
public protocol Ledger: Sendable {
  /// - Throws: `.conflict` if the ledger belongs to another archive or destination.
  func bind(archive: String, vendor: VendorName, destination: VendorName) async throws(ChatError)

  // MARK: Users

  /// The archive's number of the last user who was dealt with.
  func userWatermark() async throws(ChatError) -> Int64
  /// Ids at the destination of those who have one.
  func destinations(of users: [UserID]) async throws(ChatError) -> [UserID: UserID]
  /// Gives `user` the first of `candidates` that nobody else has, unless it has an id already, and returns its id.
  /// - Throws: `.conflict` if others have them all.
  func assign(_ user: UserID, oneOf candidates: [UserID]) async throws(ChatError) -> UserID
  /// Another id than the assigned one, as the destination gave it.
  /// - Throws: `.conflict` if another user has it.
  func reassign(_ user: UserID, to destination: UserID) async throws(ChatError)
  func commit(usersUpTo ordinal: Int64, _ tally: LoadTally) async throws(ChatError)
  func original(ofUser destination: UserID) async throws(ChatError) -> UserID?

  // MARK: Channels

  /// Makes a unit of each channel that has none, and opens finished ones that have grown.
  func register(_ channels: [ChannelExtent]) async throws(ChatError)
  /// A channel with work to do that nobody else has leased; nil when there is none.
  func lease(by owner: String) async throws(ChatError) -> ChannelUnit?
  func release(_ channel: Int64) async throws(ChatError)
  func unit(_ channel: Int64) async throws(ChatError) -> ChannelUnit?
  /// The channel is there as `destination`.
  /// - Throws: `.conflict` if another channel is.
  func commit(
    _ channel: Int64, createdAs destination: ChannelID, asGroup: Bool, _ tally: LoadTally
  ) async throws(ChatError)
  /// The channel does not cross, and why stands in `tally`.
  func commit(_ channel: Int64, endedAs state: ChannelUnit.State, _ tally: LoadTally) async throws(ChatError)
  func original(ofChannel destination: ChannelID) async throws(ChatError) -> Int64?

  // MARK: Messages

  /// Ids at the destination of those that are known to be there.
  func destinations(of messages: [MessageID], in channel: Int64) async throws(ChatError) -> [MessageID: MessageID]
  func originals(of messages: [MessageID], in channel: Int64) async throws(ChatError) -> [MessageID: MessageID]
  /// Found at the destination, without moving the watermark.
  func commit(found: [MessageID: MessageID], in channel: Int64) async throws(ChatError)
  /// All up to `ordinal` is confirmed.
  func commit(
    _ channel: Int64, upTo ordinal: Int64, ids: [MessageID: MessageID], _ tally: LoadTally
  ) async throws(ChatError)

  // MARK: Accounts

  func losses() async throws(ChatError) -> [CountedLoss]
  /// What the destination refused or skipped, in the order of their happening.
  func exceptions(after number: Int64, limit: Int) async throws(ChatError) -> [LoadException]
  /// Whether the item was refused or skipped; `channel` is 0 for users.
  func exception(of kind: String, _ id: String, in channel: Int64) async throws(ChatError) -> LoadException?
  func counts() async throws(ChatError) -> LoadCounts
}

/// How far a channel of the archive reaches.
public struct ChannelExtent: Sendable, Hashable {
  public var channel: Int64
  /// The number of its last message; 0 if it has none.
  public var lastMessage: Int64

  public init(channel: Int64, lastMessage: Int64) {
    self.channel = channel
    self.lastMessage = lastMessage
  }
}

/// The state of one channel.
public struct ChannelUnit: Sendable, Hashable {
  public enum State: String, Sendable, Hashable, CaseIterable { case pending, created, finished, skipped, refused }

  /// The archive's number of the channel.
  public var channel: Int64
  public var state: State
  public var destination: ChannelID?
  /// A direct channel that had to become a group.
  public var isGroup: Bool
  /// The number of the last message that the destination has confirmed, refused ones included.
  public var watermark: Int64

  public init(channel: Int64, state: State, destination: ChannelID?, isGroup: Bool, watermark: Int64) {
    self.channel = channel
    self.state = state
    self.destination = destination
    self.isGroup = isGroup
    self.watermark = watermark
  }
}

/// A loss with the number of items that it touches.
public struct CountedLoss: Sendable, Hashable {
  public var loss: Loss
  public var count: Int
  /// Ids of the first items, at most `LoadTally.exampleLimit`.
  public var examples: [String]

  public init(loss: Loss, count: Int, examples: [String]) {
    self.loss = loss
    self.count = count
    self.examples = examples
  }
}

/// One item that did not cross.
public struct LoadException: Sendable, Hashable {
  public enum Outcome: String, Sendable, Hashable { case refused, skipped }

  /// Set by the ledger.
  public var number: Int64
  /// `user`, `channel`, `message` or `file`.
  public var kind: String
  public var outcome: Outcome
  /// The archive's number; 0 for users.
  public var channel: Int64
  public var id: String
  public var reason: String

  public init(
    kind: String, outcome: Outcome, channel: Int64 = 0, id: String, reason: String, number: Int64 = 0
  ) {
    self.number = number
    self.kind = kind
    self.outcome = outcome
    self.channel = channel
    self.id = id
    self.reason = reason
  }
}

public struct LoadCounts: Sendable, Hashable {
  public var users = 0
  public var channels = 0
  public var finishedChannels = 0
  public var messages = 0
  public var refused = 0
  public var skipped = 0

  public init() {}
}

/// What one commit adds to the accounts.
public struct LoadTally: Sendable, Hashable {
  public static let exampleLimit = 20

  public private(set) var losses: [Loss: CountedLoss] = [:]
  public private(set) var exceptions: [LoadException] = []
  /// Units that crossed.
  public var crossed = 0

  public init() {}

  public mutating func add(_ loss: Loss, of id: String) {
    var counted = losses[loss] ?? CountedLoss(loss: loss, count: 0, examples: [])
    counted.count += 1
    if counted.examples.count < Self.exampleLimit { counted.examples.append(id) }
    losses[loss] = counted
  }

  public mutating func add(_ exception: LoadException) { exceptions.append(exception) }

  public mutating func merge(_ other: LoadTally) {
    for counted in other.losses.values {
      var own = losses[counted.loss] ?? CountedLoss(loss: counted.loss, count: 0, examples: [])
      own.count += counted.count
      own.examples += counted.examples.prefix(Self.exampleLimit - own.examples.count)
      losses[counted.loss] = own
    }
    exceptions += other.exceptions
    crossed += other.crossed
  }
}
