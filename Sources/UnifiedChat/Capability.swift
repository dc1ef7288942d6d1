/// What an adapter may or may not be able to do. The raw value is the key in reports and documents.
public enum Capability: String, Sendable, Hashable, CaseIterable, Comparable {
  // Connection and identity
  case connectionResume = "connection.resume"
  case connectionMultiDevice = "connection.multiDevice"
  case connectionKickReason = "connection.kickReason"
  case authToken = "auth.token"
  case authTokenRenewal = "auth.tokenRenewal"
  case authSignature = "auth.signature"
  case presenceQuery = "presence.query"
  case presenceSubscribe = "presence.subscribe"
  case pushRegister = "push.register"

  // Channels
  case channelDirect = "channel.direct"
  case channelGroup = "channel.group"
  case channelGroupDistinct = "channel.groupDistinct"
  case channelOpen = "channel.open"
  case channelService = "channel.service"
  case channelTemporary = "channel.temporary"
  case channelQuery = "channel.query"
  case channelChangelog = "channel.changelog"
  case channelCustomData = "channel.customData"
  case channelMetadataKeys = "channel.metadataKeys"
  case channelHide = "channel.hide"
  case channelPin = "channel.pin"
  case channelNotificationLevel = "channel.notificationLevel"
  case channelFreeze = "channel.freeze"
  case channelDelete = "channel.delete"
  case channelDraft = "channel.draft"
  case channelBurnDuration = "channel.burnDuration"

  // Members
  case memberList = "member.list"
  case memberInviteAcceptance = "member.inviteAcceptance"
  case memberJoinRequest = "member.joinRequest"
  case memberRemove = "member.remove"
  case memberRoles = "member.roles"
  case memberOwnerRole = "member.ownerRole"
  case memberMute = "member.mute"
  case memberBan = "member.ban"
  case userBlock = "user.block"

  // Messages
  case messageMention = "message.mention"
  case messageQuote = "message.quote"
  case messageThread = "message.thread"
  case messageMerge = "message.merge"
  case messageClientID = "message.clientID"
  case messageIdempotentSend = "message.idempotentSend"
  case messageEdit = "message.edit"
  case messageRecall = "message.recall"
  case messageRecallTombstone = "message.recallTombstone"
  case messageDeleteForMe = "message.deleteForMe"
  case messageReaction = "message.reaction"
  case messageTransient = "message.transient"
  case messageLocalExtension = "message.localExtension"

  // Receipts, unread, typing
  case receiptDelivered = "receipt.delivered"
  case receiptRead = "receipt.read"
  case receiptGroupReaders = "receipt.groupReaders"
  case unreadChannel = "unread.channel"
  case unreadMarkAt = "unread.markAt"
  case unreadTotal = "unread.total"
  case unreadMention = "unread.mention"
  case unreadSendClears = "unread.sendClears"
  case typing = "typing"

  // History, files, search
  case historyBackward = "history.backward"
  case historyForward = "history.forward"
  case historySequence = "history.sequence"
  case historyChangelog = "history.changelog"
  case historyClear = "history.clear"
  case fileUpload = "file.upload"
  case fileResume = "file.resume"
  case fileByURL = "file.byURL"
  case searchLocal = "search.local"
  case searchServer = "search.server"

  // Migration
  case sourceReadAll = "source.readAll"
  case sourceDelta = "source.delta"
  case destinationTime = "destination.time"
  case destinationSender = "destination.sender"
  case destinationIdempotent = "destination.idempotent"

  // Contacts and storage
  case contactFriends = "contact.friends"
  case storageEncryptedAtRest = "storage.encryptedAtRest"

  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

  /// One line for tables.
  public var meaning: String {
    switch self {
    case .connectionResume: "reopen a session without full authentication after a drop"
    case .connectionMultiDevice: "several sessions of one user at the same time"
    case .connectionKickReason: "the server says why it ended a session"
    case .authToken: "connect with a bearer token"
    case .authTokenRenewal: "renew a credential without losing the session object"
    case .authSignature: "per-operation signatures from a callback"
    case .presenceQuery: "ask which of some users are online"
    case .presenceSubscribe: "be told when they come and go"
    case .pushRegister: "register a device token for offline push"
    case .channelDirect: "one distinct two-person channel, independent of id order"
    case .channelGroup: "stored member list, many members"
    case .channelGroupDistinct: "same member set gives the same group"
    case .channelOpen: "join freely, no stored membership"
    case .channelService: "one-way system channel"
    case .channelTemporary: "channel that ends by itself after a TTL"
    case .channelQuery: "list with filters and orders, paged"
    case .channelChangelog: "what changed in my channel list since a token"
    case .channelCustomData: "one JSON object shared by the members"
    case .channelMetadataKeys: "update one key without touching the others"
    case .channelHide: "hide until the next message or for good"
    case .channelPin: "pin on top of the list"
    case .channelNotificationLevel: "all / mentions / none, per channel"
    case .channelFreeze: "only operators may send"
    case .channelDelete: "delete for everybody"
    case .memberList: "complete list with paging"
    case .memberInviteAcceptance: "invited user must accept"
    case .memberJoinRequest: "ask to join, operator decides"
    case .memberRemove: "remove another member"
    case .memberRoles: "at least two roles"
    case .memberOwnerRole: "exactly one transferable owner"
    case .memberMute: "silence one member, optional end"
    case .memberBan: "kept out until unbanned"
    case .userBlock: "user-to-user block"
    case .messageMention: "mention users or all"
    case .messageQuote: "reply that carries the quoted message"
    case .messageThread: "replies under a parent"
    case .messageMerge: "several messages forwarded as one"
    case .messageClientID: "client id comes back in ack, echo and history"
    case .messageIdempotentSend: "same client id twice is stored once"
    case .messageEdit: "change content later"
    case .messageRecall: "take back for all"
    case .messageRecallTombstone: "place of a recalled message remains after a fresh install"
    case .messageDeleteForMe: "remove for me on all my devices"
    case .messageReaction: "emoji reactions"
    case .messageTransient: "online-only, not stored"
    case .messageLocalExtension: "local-only data on a message, and local-only messages"
    case .receiptDelivered: "delivered watermark of others"
    case .receiptRead: "read watermark of others"
    case .receiptGroupReaders: "who read a group message"
    case .unreadChannel: "unread number per channel"
    case .unreadMarkAt: "mark read up to a chosen message, not just \"now\""
    case .unreadTotal: "total with mute rule"
    case .unreadMention: "unread mentions"
    case .unreadSendClears: "own send lifts the read mark"
    case .typing: "typing hint"
    case .historyBackward: "older pages"
    case .historyForward: "newer pages"
    case .historySequence: "gapless vendor sequence makes holes visible"
    case .historyChangelog: "edits and deletions since a token"
    case .historyClear: "clear my history on all my devices"
    case .fileUpload: "attachment message, upload with progress and cancel"
    case .fileResume: "continue an interrupted upload"
    case .fileByURL: "message from an already uploaded URL"
    case .searchLocal: "search over the cache"
    case .searchServer: "search on the server"
    case .sourceReadAll: "read everything with admin credentials"
    case .sourceDelta: "read changes since a watermark"
    case .destinationTime: "write with the original time"
    case .destinationSender: "write as the original sender"
    case .destinationIdempotent: "writing the same item twice is harmless"
    case .channelDraft: "an unsent text kept with the channel"
    case .channelBurnDuration: "messages that vanish after they were read"
    case .contactFriends: "friend requests and a friend list"
    case .storageEncryptedAtRest: "the cache is encrypted on disk"
    }
  }
}

/// How an adapter has a capability.
public enum CapabilityLevel: Sendable, Hashable, Comparable {
  case absent
  /// Made by the adapter or the client; the text says how, and where its limits are.
  case emulated(String)
  case native

  public var name: String {
    switch self {
    case .absent: "absent"
    case .emulated: "emulated"
    case .native: "native"
    }
  }

  private var rank: Int {
    switch self {
    case .absent: 0
    case .emulated: 1
    case .native: 2
    }
  }

  public static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }
}

/// The level of every capability. A live connection may only lower it.
public struct CapabilitySet: Sendable, Hashable {
  private var levels: [Capability: CapabilityLevel]

  /// What is not named is absent.
  public init(_ levels: [Capability: CapabilityLevel]) { self.levels = levels }

  public subscript(capability: Capability) -> CapabilityLevel { levels[capability] ?? .absent }

  public func has(_ capability: Capability) -> Bool { self[capability] != .absent }

  /// The lower level of each.
  public func reduced(by other: CapabilitySet) -> CapabilitySet {
    CapabilitySet(
      Dictionary(uniqueKeysWithValues: Capability.allCases.map { ($0, min(self[$0], other[$0])) }))
  }

  /// - Throws: `.unsupported` when `capability` is absent.
  public func require(_ capability: Capability, for operation: ChatError.Operation) throws(ChatError) {
    guard has(capability) else { throw .unsupported(capability, operation: operation) }
  }

  public func count(_ name: String) -> Int { Capability.allCases.count { self[$0].name == name } }
}
