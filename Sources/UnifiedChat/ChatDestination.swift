/// Writes what a source read: original senders, and original times where the vendor allows.
///
/// Writing the same item again is harmless, or `existing` tells what is there already.
public protocol ChatDestination: Sendable {
  var vendor: VendorName { get }
  var capabilities: CapabilitySet { get }
  var limits: DestinationLimits { get }
  /// Tells the key with which it signs what it keeps beside items; another one cannot read that back as its own. nil
  /// where nothing is signed.
  var signingKey: String? { get }

  /// What writing `record` cannot keep as it is. Without network, and true to what the put does.
  func losses(of record: Record) -> [Loss]

  /// Creates users, or updates those that exist. One outcome an item, in order.
  func putUsers(_ users: [UserRecord]) async throws(ChatError) -> [PutOutcome<UserID>]
  /// Told before `putChannel` that an earlier run made `channel` of the original that `origin` names: it is gone on
  /// with, whatever its members have made of what that run noted in it.
  func resume(_ channel: ChannelID, of origin: Origin) async
  /// Creates the channel with its members and roles, or completes the one that exists. `channel.channel.id` is the
  /// original id; the destination's id may differ.
  func putChannel(
    _ channel: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) -> PutOutcome<ChannelID>
  /// Stores the bytes and returns the attachment as it will be read back.
  func putAttachment(
    _ attachment: Attachment, bytes: [UInt8], in channel: ChannelID
  ) async throws(ChatError) -> Attachment
  /// At most `limits.batch` messages in ascending position. Ids are the original ones; senders and mentions are already
  /// those of the destination, and so are reply targets and thread parents that it holds: no message answers another one
  /// of the same call. One outcome an item, in order.
  func putMessages(
    _ messages: [MessageRecord], in channel: ChannelID
  ) async throws(ChatError) -> [PutOutcome<MessageID>]
  /// After the last message of a channel: read positions by user, the channel's final state.
  func finishChannel(_ channel: ChannelID, original: ChannelRecord, members: [MemberRecord]) async throws(ChatError)

  /// What is in `channel` already, by original id: asked before a channel that a killed run may have touched.
  func existing(
    in channel: ChannelID, after cursor: Cursor?
  ) async throws(ChatError) -> SourcePage<ExistingMessage>

  // What follows changes or removes what an earlier run wrote, and is harmless when done twice: what is gone already
  // is no error. A destination that has no such call leaves the default, which throws `.unsupported`; the difference is
  // then listed.

  /// Puts `message`, which was edited or recalled at its source, in the place of `id`. Fields as in `putMessages`.
  func changeMessage(
    _ message: MessageRecord, id: MessageID, in channel: ChannelID
  ) async throws(ChatError) -> PutOutcome<MessageID>
  /// Removes messages for all, without leaving a tombstone where the vendor can.
  func removeMessages(_ ids: [MessageID], in channel: ChannelID) async throws(ChatError)
  /// Takes users out of a channel. Their messages stay.
  func removeMembers(_ users: [UserID], from channel: ChannelID) async throws(ChatError)
  /// Removes a channel with its members and messages.
  func removeChannel(_ channel: ChannelID) async throws(ChatError)
  /// Removes the accounts of users.
  func removeUsers(_ users: [UserID]) async throws(ChatError)
}

extension ChatDestination {
  public var signingKey: String? { nil }

  public func resume(_ channel: ChannelID, of origin: Origin) async {}

  public func changeMessage(
    _ message: MessageRecord, id: MessageID, in channel: ChannelID
  ) async throws(ChatError) -> PutOutcome<MessageID> { throw .unsupported(.messageEdit, operation: .writeDestination) }

  public func removeMessages(_ ids: [MessageID], in channel: ChannelID) async throws(ChatError) {
    throw .unsupported(.messageRecall, operation: .writeDestination)
  }

  public func removeMembers(_ users: [UserID], from channel: ChannelID) async throws(ChatError) {
    throw .unsupported(.memberRemove, operation: .writeDestination)
  }

  public func removeChannel(_ channel: ChannelID) async throws(ChatError) {
    throw .unsupported(.channelDelete, operation: .writeDestination)
  }

  /// There is no capability of accounts: writing users as they are stands for it.
  public func removeUsers(_ users: [UserID]) async throws(ChatError) {
    throw .unsupported(.destinationSender, operation: .writeDestination)
  }
}

public struct ExistingMessage: Sendable, Hashable {
  public var origin: Origin
  public var id: MessageID

  public init(origin: Origin, id: MessageID) {
    self.origin = origin
    self.id = id
  }
}

public struct DestinationLimits: Sendable, Hashable {
  /// Messages a call.
  public var batch: Int
  /// Of a call, how many go into one request; nil: all. For estimates.
  public var messagesPerRequest: Int?
  public var usersPerRequest: Int?
  /// Channels written at once.
  public var parallelChannels: Int
  /// UTF-8 bytes of a text; nil: none known.
  public var textBytes: Int?
  public var membersPerChannel: Int?
  public var userIDBytes: Int?
  public var attachmentBytes: Int64?
  /// Whether messages may come in any order, because their times alone decide where they stand.
  public var takesAnyOrder: Bool

  public init(
    batch: Int, messagesPerRequest: Int? = nil, usersPerRequest: Int? = nil, parallelChannels: Int = 4,
    textBytes: Int? = nil, membersPerChannel: Int? = nil, userIDBytes: Int? = nil, attachmentBytes: Int64? = nil,
    takesAnyOrder: Bool = false
  ) {
    self.batch = batch
    self.messagesPerRequest = messagesPerRequest
    self.usersPerRequest = usersPerRequest
    self.parallelChannels = parallelChannels
    self.textBytes = textBytes
    self.membersPerChannel = membersPerChannel
    self.userIDBytes = userIDBytes
    self.attachmentBytes = attachmentBytes
    self.takesAnyOrder = takesAnyOrder
  }
}

public enum PutOutcome<ID: Sendable & Hashable>: Sendable, Hashable {
  case written(ID)
  /// It was there already; nothing changed.
  case existed(ID)
  case refused(ChatError)
  /// Deliberately not written, as `losses(of:)` says.
  case skipped(Loss)

  public var id: ID? {
    switch self {
    case .written(let id), .existed(let id): id
    case .refused, .skipped: nil
    }
  }
}

/// One field or feature of one item that does not cross as it is.
public struct Loss: Sendable, Hashable {
  public enum Treatment: String, Sendable, Hashable, CaseIterable {
    /// In another place of the destination, from which the vendor's source reads it back as it was.
    case keptElsewhere
    /// Something of it is there, and reads back differently.
    case degraded
    /// Nothing of it reads back, or what the destination puts in its place.
    case dropped
  }

  /// Dotted path in the record form, which verification matches by prefix: `message.content` also stands for
  /// `message.content.attachment.name`, and `user` alone for everything of a user, its presence included.
  ///
  /// Compared are `user.{name,avatarURL,customData}`,
  /// `channel.{kind,name,coverURL,customData,metadata,distinct,frozen,createdAt,createdBy}`, `channel.members` (members
  /// that the destination adds of its own accord), `member.{role,state,joinedAt,muted,mutedUntil}` and
  /// `message.{sender,createdAt,content,mentions,replyTo,threadParent,customType,customData,reactions,editedAt}`.
  public var field: String
  public var treatment: Treatment
  /// What was done, in a few words; the same text for the same kind of loss.
  public var explanation: String

  public init(field: String, treatment: Treatment, explanation: String) {
    self.field = field
    self.treatment = treatment
    self.explanation = explanation
  }
}
