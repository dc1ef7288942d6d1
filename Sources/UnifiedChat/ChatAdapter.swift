// The four faces of a chat service. An adapter translates and nothing else: it does not cache, does not retry a send,
// does not count unread; the client does that once for all. What an adapter cannot do it leaves to the defaults at
// the end of this file, which throw `.unsupported` before any byte leaves.

/// One live session of one user. Calls are serialised; several connections live side by side.
public protocol ChatConnecting: Sendable {
  /// What this vendor can do at all.
  static var capabilities: CapabilitySet { get }

  var vendor: VendorName { get }
  /// What the connected server can do: never more than the static set.
  var capabilities: CapabilitySet { get async }
  var state: ConnectionState { get async }
  var currentUser: User? { get async }

  /// Opens the session and returns the own user. A second call for the same user joins the first; for another one it
  /// throws `.conflict`.
  /// - Throws: `.authentication` (state `refused`), `.network` and `.timeout` (state `disconnected`, nothing runs on),
  ///   `.cancelled` when `disconnect` came first.
  func connect(as user: UserID, credential: Credential) async throws(ChatError) -> User

  /// The next session begins where an earlier one ended: edits and recalls since then are told as events, also those
  /// that are known. Without effect where the vendor replays none, and on a session that is there.
  /// - Parameter cursor: of the last event that was stored; one that is none of this adapter is passed over.
  func continueChanges(from cursor: Cursor) async

  /// Ends the session; afterwards no event comes. Works without the server.
  func disconnect() async

  /// Closes the socket and keeps the session, as an app in the background wants.
  func suspend() async
  func resume() async

  func registerPush(token: String) async throws(ChatError)
  func unregisterPush(token: String) async throws(ChatError)

  /// In the order asked, split by the vendor's maximum. Unknown users are left out.
  func users(_ ids: [UserID]) async throws(ChatError) -> [User]
  func updateProfile(name: String?, avatarURL: String?, customData: JSONText?) async throws(ChatError) -> User
  func presence(of users: [UserID]) async throws(ChatError) -> [UserID: Presence]
  func subscribePresence(of users: [UserID]) async throws(ChatError)
  func unsubscribePresence(of users: [UserID]) async throws(ChatError)
  func block(_ user: UserID) async throws(ChatError)
  func unblock(_ user: UserID) async throws(ChatError)
}

public protocol ChatChanneling: Sendable {
  /// The existing channel when `draft` names a direct or distinct one that exists.
  func createChannel(_ draft: ChannelDraft) async throws(ChatError) -> Channel
  /// - Throws: `.notFound`, or `.permission` for a foreign channel.
  func channel(_ id: ChannelID) async throws(ChatError) -> Channel
  /// Channels of which the user is a member (or joined, for open ones).
  func channels(_ query: ChannelQuery, page: PageToken?) async throws(ChatError) -> Page<Channel>
  func updateChannel(_ id: ChannelID, _ changes: ChannelChanges) async throws(ChatError) -> Channel
  /// nil removes a key.
  func setMetadata(_ values: [String: String?], of id: ChannelID) async throws(ChatError)
  func deleteChannel(_ id: ChannelID) async throws(ChatError)

  func join(_ id: ChannelID) async throws(ChatError) -> Channel
  func leave(_ id: ChannelID) async throws(ChatError)
  func invite(_ users: [UserID], to id: ChannelID) async throws(ChatError)
  func answerInvitation(to id: ChannelID, accept: Bool) async throws(ChatError)
  func removeMembers(_ users: [UserID], from id: ChannelID) async throws(ChatError)
  /// Joined and invited members, in a stable order.
  func members(of id: ChannelID, limit: Int, page: PageToken?) async throws(ChatError) -> Page<Member>
  func setRole(_ role: MemberRole, of user: UserID, in id: ChannelID) async throws(ChatError)
  /// nil: until unmuted.
  func mute(_ user: UserID, in id: ChannelID, for duration: Duration?) async throws(ChatError)
  func unmute(_ user: UserID, in id: ChannelID) async throws(ChatError)
  func ban(_ user: UserID, from id: ChannelID, for duration: Duration?) async throws(ChatError)
  func unban(_ user: UserID, from id: ChannelID) async throws(ChatError)
  func setFrozen(_ isFrozen: Bool, _ id: ChannelID) async throws(ChatError)

  func setHidden(_ isHidden: Bool, _ id: ChannelID) async throws(ChatError)
  func setPinned(_ isPinned: Bool, _ id: ChannelID) async throws(ChatError)
  func setNotificationLevel(_ level: NotificationLevel, of id: ChannelID) async throws(ChatError)

  /// Everything up to `position` is read; nil means up to the newest.
  func markRead(_ id: ChannelID, upTo position: MessagePosition?) async throws(ChatError)
  func setTyping(_ isTyping: Bool, in id: ChannelID) async throws(ChatError)
  func totalUnread() async throws(ChatError) -> UnreadCount
}

public protocol ChatMessaging: Sendable {
  /// One try. Returns the committed message with id and position.
  /// - Throws: `.timeout` or `.network` when the outcome is unknown; the caller looks before it sends again.
  func send(_ message: OutgoingMessage) async throws(ChatError) -> Message

  /// Uploads the bytes of `attachment.source` and returns the attachment with its URL.
  func upload(
    _ attachment: Attachment, for channel: ChannelID, progress: (@Sendable (_ sent: Int64, _ total: Int64) -> Void)?
  ) async throws(ChatError) -> Attachment
  /// - Throws: `.tooLarge` above `limit` bytes.
  func download(_ attachment: Attachment, limit: Int64) async throws(ChatError) -> [UInt8]

  func history(of channel: ChannelID, _ query: HistoryQuery) async throws(ChatError) -> MessagePage
  func message(_ id: MessageID, in channel: ChannelID) async throws(ChatError) -> Message
  /// nil `since` gives the token of now and no changes.
  func changes(in channel: ChannelID, since: Cursor?) async throws(ChatError) -> ChangePage

  /// `original` is the message as known now; vendors need parts of it beside the id.
  func edit(_ original: Message, to draft: MessageDraft) async throws(ChatError) -> Message
  /// Takes back for all; returns the tombstone.
  func recall(_ message: Message) async throws(ChatError) -> Message
  func deleteForMe(_ messages: [Message]) async throws(ChatError)
  func clearHistory(of channel: ChannelID) async throws(ChatError)

  func addReaction(_ key: String, to message: Message) async throws(ChatError) -> [Reaction]
  func removeReaction(_ key: String, from message: Message) async throws(ChatError) -> [Reaction]
  func thread(under parent: Message, _ query: HistoryQuery) async throws(ChatError) -> MessagePage
  func search(_ text: String, in channel: ChannelID?, limit: Int, page: PageToken?) async throws(ChatError)
    -> Page<Message>
}

public protocol ChatListening: Sendable {
  /// A stream of its own per call, from now on. See `ChatEvent` for order and guarantees.
  func events() -> ChatEventStream
}

/// One vendor's service.
public protocol ChatAdapter: ChatConnecting, ChatChanneling, ChatMessaging, ChatListening {}

extension ChatConnecting {
  public func continueChanges(from cursor: Cursor) async {}
  public func suspend() async {}
  public func resume() async {}
  public func registerPush(token: String) async throws(ChatError) {
    throw .unsupported(.pushRegister, operation: .registerPush)
  }
  public func unregisterPush(token: String) async throws(ChatError) {
    throw .unsupported(.pushRegister, operation: .registerPush)
  }
  public func presence(of users: [UserID]) async throws(ChatError) -> [UserID: Presence] {
    throw .unsupported(.presenceQuery, operation: .presence)
  }
  public func subscribePresence(of users: [UserID]) async throws(ChatError) {
    throw .unsupported(.presenceSubscribe, operation: .presence)
  }
  public func unsubscribePresence(of users: [UserID]) async throws(ChatError) {
    throw .unsupported(.presenceSubscribe, operation: .presence)
  }
  public func block(_ user: UserID) async throws(ChatError) { throw .unsupported(.userBlock, operation: .block) }
  public func unblock(_ user: UserID) async throws(ChatError) { throw .unsupported(.userBlock, operation: .block) }
}

extension ChatChanneling {
  public func setMetadata(_ values: [String: String?], of id: ChannelID) async throws(ChatError) {
    throw .unsupported(.channelMetadataKeys, operation: .updateChannel)
  }
  public func deleteChannel(_ id: ChannelID) async throws(ChatError) {
    throw .unsupported(.channelDelete, operation: .deleteChannel)
  }
  public func answerInvitation(to id: ChannelID, accept: Bool) async throws(ChatError) {
    throw .unsupported(.memberInviteAcceptance, operation: .join)
  }
  public func members(of id: ChannelID, limit: Int, page: PageToken?) async throws(ChatError) -> Page<Member> {
    throw .unsupported(.memberList, operation: .listMembers)
  }
  public func removeMembers(_ users: [UserID], from id: ChannelID) async throws(ChatError) {
    throw .unsupported(.memberRemove, operation: .removeMember)
  }
  public func setRole(_ role: MemberRole, of user: UserID, in id: ChannelID) async throws(ChatError) {
    throw .unsupported(.memberRoles, operation: .setRole)
  }
  public func mute(_ user: UserID, in id: ChannelID, for duration: Duration?) async throws(ChatError) {
    throw .unsupported(.memberMute, operation: .mute)
  }
  public func unmute(_ user: UserID, in id: ChannelID) async throws(ChatError) {
    throw .unsupported(.memberMute, operation: .mute)
  }
  public func ban(_ user: UserID, from id: ChannelID, for duration: Duration?) async throws(ChatError) {
    throw .unsupported(.memberBan, operation: .ban)
  }
  public func unban(_ user: UserID, from id: ChannelID) async throws(ChatError) {
    throw .unsupported(.memberBan, operation: .ban)
  }
  public func setFrozen(_ isFrozen: Bool, _ id: ChannelID) async throws(ChatError) {
    throw .unsupported(.channelFreeze, operation: .freeze)
  }
  public func setHidden(_ isHidden: Bool, _ id: ChannelID) async throws(ChatError) {
    throw .unsupported(.channelHide, operation: .hideChannel)
  }
  public func setPinned(_ isPinned: Bool, _ id: ChannelID) async throws(ChatError) {
    throw .unsupported(.channelPin, operation: .pinChannel)
  }
  public func setNotificationLevel(_ level: NotificationLevel, of id: ChannelID) async throws(ChatError) {
    throw .unsupported(.channelNotificationLevel, operation: .updateChannel)
  }
  public func setTyping(_ isTyping: Bool, in id: ChannelID) async throws(ChatError) {
    throw .unsupported(.typing, operation: .typing)
  }
  public func totalUnread() async throws(ChatError) -> UnreadCount {
    throw .unsupported(.unreadTotal, operation: .unread)
  }
}

extension ChatMessaging {
  public func upload(
    _ attachment: Attachment, for channel: ChannelID, progress: (@Sendable (_ sent: Int64, _ total: Int64) -> Void)?
  ) async throws(ChatError) -> Attachment {
    throw .unsupported(.fileUpload, operation: .upload)
  }
  public func download(_ attachment: Attachment, limit: Int64) async throws(ChatError) -> [UInt8] {
    throw .unsupported(.fileUpload, operation: .download)
  }
  public func changes(in channel: ChannelID, since: Cursor?) async throws(ChatError) -> ChangePage {
    throw .unsupported(.historyChangelog, operation: .changelog)
  }
  public func edit(_ original: Message, to draft: MessageDraft) async throws(ChatError) -> Message {
    throw .unsupported(.messageEdit, operation: .edit)
  }
  public func recall(_ message: Message) async throws(ChatError) -> Message {
    throw .unsupported(.messageRecall, operation: .recall)
  }
  public func deleteForMe(_ messages: [Message]) async throws(ChatError) {
    throw .unsupported(.messageDeleteForMe, operation: .deleteMessage)
  }
  public func clearHistory(of channel: ChannelID) async throws(ChatError) {
    throw .unsupported(.historyClear, operation: .clearHistory)
  }
  public func addReaction(_ key: String, to message: Message) async throws(ChatError) -> [Reaction] {
    throw .unsupported(.messageReaction, operation: .react)
  }
  public func removeReaction(_ key: String, from message: Message) async throws(ChatError) -> [Reaction] {
    throw .unsupported(.messageReaction, operation: .react)
  }
  public func thread(under parent: Message, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    throw .unsupported(.messageThread, operation: .history)
  }
  public func search(_ text: String, in channel: ChannelID?, limit: Int, page: PageToken?) async throws(ChatError)
    -> Page<Message>
  {
    throw .unsupported(.searchServer, operation: .search)
  }
}
