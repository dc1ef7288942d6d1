import UnifiedChat

/// What a run has done, so that the next one does only what is missing.
///
/// The unit of work is a channel, leased by one worker; within it a watermark, which moves only after the destination
/// has confirmed. Each `commit` is all or nothing. Other stores than SQLite may keep it, for many workers at once.
public protocol Ledger: Sendable {
  /// - Parameter rules: what decides which items are written and how (filter, mapping); "" for none.
  /// - Throws: `.conflict` if the ledger belongs to another archive or destination, or was begun by other rules.
  func bind(
    archive: String, vendor: VendorName, destination: VendorName, rules: String
  ) async throws(ChatError)
  /// A note of the run itself, by name; nil removes it.
  func note(_ name: String) async throws(ChatError) -> String?
  func setNote(_ name: String, _ value: String?) async throws(ChatError)

  /// Whether this process may do `stage`, which one at a time may; true if it has it already. A claim ends with its
  /// process.
  func claim(_ stage: String) async throws(ChatError) -> Bool
  func abandon(_ stage: String) async throws(ChatError)

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
  /// - Parameter created: original ids of those whose accounts this run made.
  func commit(usersUpTo ordinal: Int64, created: [UserID], _ tally: LoadTally) async throws(ChatError)
  func original(ofUser destination: UserID) async throws(ChatError) -> UserID?

  // MARK: Channels

  /// Makes a unit of each channel that has none, and opens finished ones that have grown or changed.
  func register(_ channels: [ChannelExtent]) async throws(ChatError)
  /// A channel with work to do that nobody else has leased; nil when there is none. A lease ends with its process.
  func lease(by owner: String) async throws(ChatError) -> ChannelUnit?
  func release(_ channel: Int64) async throws(ChatError)
  func unit(_ channel: Int64) async throws(ChatError) -> ChannelUnit?
  /// The channel is about to be made: should it be there next time, this run made it.
  func intend(_ channel: Int64) async throws(ChatError)
  /// The channel is there as `destination`.
  /// - Parameter isOwn: whether this run made it.
  /// - Throws: `.conflict` if another channel is.
  func commit(
    _ channel: Int64, createdAs destination: ChannelID, asGroup: Bool, isOwn: Bool, _ tally: LoadTally
  ) async throws(ChatError)
  /// The work on the channel is over: written up to `change`, or, as `tally` says, not to be written.
  func commit(
    _ channel: Int64, endedAs state: ChannelUnit.State, change: Int64, _ tally: LoadTally
  ) async throws(ChatError)
  func original(ofChannel destination: ChannelID) async throws(ChatError) -> Int64?

  // MARK: Messages

  /// Ids at the destination of those that are known to be there.
  func destinations(of messages: [MessageID], in channel: Int64) async throws(ChatError) -> [MessageID: MessageID]
  func originals(of messages: [MessageID], in channel: Int64) async throws(ChatError) -> [MessageID: MessageID]
  /// Ids at the destination of the messages that reactions to `message` became, by the ids that were made for them.
  func reactions(to message: MessageID, in channel: Int64) async throws(ChatError) -> [MessageID: MessageID]
  /// Found at the destination, without moving the watermark.
  func commit(found: [MessageID: MessageID], in channel: Int64, areOwn: Bool) async throws(ChatError)
  /// All up to `ordinal` is confirmed.
  /// - Parameter own: originals of those that this run wrote.
  func commit(
    _ channel: Int64, upTo ordinal: Int64, ids: [MessageID: MessageID], own: Set<MessageID>, _ tally: LoadTally
  ) async throws(ChatError)

  // MARK: Changes

  /// All changes up to `number` are confirmed; `channel` 0 for those of users.
  /// - Parameters:
  ///   - gone: messages that are no longer at the destination.
  ///   - late: what the destination could not change.
  func commit(
    _ channel: Int64, changesUpTo number: Int64, gone: [MessageID], late: [LateLoss], _ tally: LoadTally
  ) async throws(ChatError)
  /// What the destination could not change of an item since it was written; `kind` as of an exception.
  func lateLosses(of kind: String, _ id: String, in channel: Int64) async throws(ChatError) -> [Loss]

  // MARK: Taking back

  /// What this run made and has not taken back, at most `limit` items, in the order of their channels.
  func ownChannels(limit: Int) async throws(ChatError) -> [OwnChannel]
  func ownMessages(in channel: Int64, limit: Int) async throws(ChatError) -> [MessageID: MessageID]
  func ownUsers(limit: Int) async throws(ChatError) -> [UserID: UserID]
  /// The channel, or what this run wrote into it, is no longer there.
  func forget(channel: Int64) async throws(ChatError)
  func forget(messages: [MessageID], in channel: Int64) async throws(ChatError)
  func forget(users: [UserID]) async throws(ChatError)
  /// Nothing is left of the run; a new one begins from the start.
  func reset() async throws(ChatError)

  // MARK: Accounts

  func losses() async throws(ChatError) -> [CountedLoss]
  /// What the destination refused or skipped, in the order of their happening.
  func exceptions(after number: Int64, limit: Int) async throws(ChatError) -> [LoadException]
  /// Whether the item was refused or skipped; `channel` is 0 for users.
  func exception(of kind: String, _ id: String, in channel: Int64) async throws(ChatError) -> LoadException?
  func counts() async throws(ChatError) -> LoadCounts
}

/// A channel with something of this run's in it.
public struct OwnChannel: Sendable, Hashable {
  /// The archive's number.
  public var channel: Int64
  public var destination: ChannelID
  /// Made by this run; else only messages in it are.
  public var isOwn: Bool

  public init(channel: Int64, destination: ChannelID, isOwn: Bool) {
    self.channel = channel
    self.destination = destination
    self.isOwn = isOwn
  }
}

/// What the destination could not change of one item after it was written.
public struct LateLoss: Sendable, Hashable {
  /// The kind of a message that a run removed again; `id` is then the destination's, since a vendor may keep a tombstone.
  public static let removed = "removed"

  /// The kind of a message that was changed as wanted, of which the vendor may tell more than wanted.
  public static let touched = "touched"

  /// `member`, `message`, `removed` or `touched`.
  public var kind: String
  public var id: String
  public var loss: Loss

  public init(kind: String, id: String, loss: Loss) {
    self.kind = kind
    self.id = id
    self.loss = loss
  }
}

/// How far a channel of the archive reaches.
public struct ChannelExtent: Sendable, Hashable {
  public var channel: Int64
  /// The number of its last message; 0 if it has none.
  public var lastMessage: Int64
  /// The number of its last change; 0 if it has none.
  public var lastChange: Int64

  public init(channel: Int64, lastMessage: Int64, lastChange: Int64 = 0) {
    self.channel = channel
    self.lastMessage = lastMessage
    self.lastChange = lastChange
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
  /// The number of the last change that the destination has confirmed.
  public var change: Int64
  /// An earlier run was about to make the channel.
  public var isIntended: Bool

  public init(
    channel: Int64, state: State, destination: ChannelID?, isGroup: Bool, watermark: Int64, change: Int64 = 0,
    isIntended: Bool = false
  ) {
    self.channel = channel
    self.state = state
    self.destination = destination
    self.isGroup = isGroup
    self.watermark = watermark
    self.change = change
    self.isIntended = isIntended
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
  /// Items that changed after they were written and could not be changed at the destination.
  public var late = 0

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

  /// An item that is not written, with the loss that says why.
  mutating func skip(_ loss: Loss, kind: String, id: String, channel: Int64) {
    add(loss, of: id)
    add(LoadException(kind: kind, outcome: .skipped, channel: channel, id: id, reason: loss.explanation))
  }

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
