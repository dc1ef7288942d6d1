import Synchronization
import UnifiedChat

/// An adapter around another one: passes everything on, so that what breaks one rule says only that.
protocol ForwardingAdapter: ChatAdapter {
  var inner: any ChatAdapter { get }
}

extension ForwardingAdapter {
  static var capabilities: CapabilitySet { CapabilitySet([:]) }
  var vendor: VendorName { inner.vendor }
  var capabilities: CapabilitySet { get async { await inner.capabilities } }
  var state: ConnectionState { get async { await inner.state } }
  var currentUser: User? { get async { await inner.currentUser } }
  func events() -> ChatEventStream { inner.events() }

  func connect(as user: UserID, credential: Credential) async throws(ChatError) -> User {
    try await inner.connect(as: user, credential: credential)
  }
  func continueChanges(from cursor: Cursor) async { await inner.continueChanges(from: cursor) }
  func disconnect() async { await inner.disconnect() }
  func suspend() async { await inner.suspend() }
  func resume() async { await inner.resume() }
  func registerPush(token: String) async throws(ChatError) { try await inner.registerPush(token: token) }
  func unregisterPush(token: String) async throws(ChatError) { try await inner.unregisterPush(token: token) }
  func users(_ ids: [UserID]) async throws(ChatError) -> [User] { try await inner.users(ids) }
  func updateProfile(name: String?, avatarURL: String?, customData: JSONText?) async throws(ChatError) -> User {
    try await inner.updateProfile(name: name, avatarURL: avatarURL, customData: customData)
  }
  func presence(of users: [UserID]) async throws(ChatError) -> [UserID: Presence] {
    try await inner.presence(of: users)
  }
  func subscribePresence(of users: [UserID]) async throws(ChatError) { try await inner.subscribePresence(of: users) }
  func unsubscribePresence(of users: [UserID]) async throws(ChatError) {
    try await inner.unsubscribePresence(of: users)
  }
  func block(_ user: UserID) async throws(ChatError) { try await inner.block(user) }
  func unblock(_ user: UserID) async throws(ChatError) { try await inner.unblock(user) }

  func createChannel(_ draft: ChannelDraft) async throws(ChatError) -> Channel { try await inner.createChannel(draft) }
  func channel(_ id: ChannelID) async throws(ChatError) -> Channel { try await inner.channel(id) }
  func channels(_ query: ChannelQuery, page: PageToken?) async throws(ChatError) -> Page<Channel> {
    try await inner.channels(query, page: page)
  }
  func updateChannel(_ id: ChannelID, _ changes: ChannelChanges) async throws(ChatError) -> Channel {
    try await inner.updateChannel(id, changes)
  }
  func setMetadata(_ values: [String: String?], of id: ChannelID) async throws(ChatError) {
    try await inner.setMetadata(values, of: id)
  }
  func deleteChannel(_ id: ChannelID) async throws(ChatError) { try await inner.deleteChannel(id) }
  func join(_ id: ChannelID) async throws(ChatError) -> Channel { try await inner.join(id) }
  func leave(_ id: ChannelID) async throws(ChatError) { try await inner.leave(id) }
  func invite(_ users: [UserID], to id: ChannelID) async throws(ChatError) { try await inner.invite(users, to: id) }
  func answerInvitation(to id: ChannelID, accept: Bool) async throws(ChatError) {
    try await inner.answerInvitation(to: id, accept: accept)
  }
  func removeMembers(_ users: [UserID], from id: ChannelID) async throws(ChatError) {
    try await inner.removeMembers(users, from: id)
  }
  func members(of id: ChannelID, limit: Int, page: PageToken?) async throws(ChatError) -> Page<Member> {
    try await inner.members(of: id, limit: limit, page: page)
  }
  func setRole(_ role: MemberRole, of user: UserID, in id: ChannelID) async throws(ChatError) {
    try await inner.setRole(role, of: user, in: id)
  }
  func mute(_ user: UserID, in id: ChannelID, for duration: Duration?) async throws(ChatError) {
    try await inner.mute(user, in: id, for: duration)
  }
  func unmute(_ user: UserID, in id: ChannelID) async throws(ChatError) { try await inner.unmute(user, in: id) }
  func ban(_ user: UserID, from id: ChannelID, for duration: Duration?) async throws(ChatError) {
    try await inner.ban(user, from: id, for: duration)
  }
  func unban(_ user: UserID, from id: ChannelID) async throws(ChatError) { try await inner.unban(user, from: id) }
  func setFrozen(_ isFrozen: Bool, _ id: ChannelID) async throws(ChatError) { try await inner.setFrozen(isFrozen, id) }
  func setHidden(_ isHidden: Bool, _ id: ChannelID) async throws(ChatError) { try await inner.setHidden(isHidden, id) }
  func setPinned(_ isPinned: Bool, _ id: ChannelID) async throws(ChatError) { try await inner.setPinned(isPinned, id) }
  func setNotificationLevel(_ level: NotificationLevel, of id: ChannelID) async throws(ChatError) {
    try await inner.setNotificationLevel(level, of: id)
  }
  func markRead(_ id: ChannelID, upTo position: MessagePosition?) async throws(ChatError) {
    try await inner.markRead(id, upTo: position)
  }
  func setTyping(_ isTyping: Bool, in id: ChannelID) async throws(ChatError) { try await inner.setTyping(isTyping, in: id) }
  func totalUnread() async throws(ChatError) -> UnreadCount { try await inner.totalUnread() }

  func send(_ message: OutgoingMessage) async throws(ChatError) -> Message { try await inner.send(message) }
  func upload(
    _ attachment: Attachment, for channel: ChannelID, progress: (@Sendable (_ sent: Int64, _ total: Int64) -> Void)?
  ) async throws(ChatError) -> Attachment { try await inner.upload(attachment, for: channel, progress: progress) }
  func download(_ attachment: Attachment, limit: Int64) async throws(ChatError) -> [UInt8] {
    try await inner.download(attachment, limit: limit)
  }
  func history(of channel: ChannelID, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    try await inner.history(of: channel, query)
  }
  func message(_ id: MessageID, in channel: ChannelID) async throws(ChatError) -> Message {
    try await inner.message(id, in: channel)
  }
  func changes(in channel: ChannelID, since: Cursor?) async throws(ChatError) -> ChangePage {
    try await inner.changes(in: channel, since: since)
  }
  func edit(_ original: Message, to draft: MessageDraft) async throws(ChatError) -> Message {
    try await inner.edit(original, to: draft)
  }
  func recall(_ message: Message) async throws(ChatError) -> Message { try await inner.recall(message) }
  func deleteForMe(_ messages: [Message]) async throws(ChatError) { try await inner.deleteForMe(messages) }
  func clearHistory(of channel: ChannelID) async throws(ChatError) { try await inner.clearHistory(of: channel) }
  func addReaction(_ key: String, to message: Message) async throws(ChatError) -> [Reaction] {
    try await inner.addReaction(key, to: message)
  }
  func removeReaction(_ key: String, from message: Message) async throws(ChatError) -> [Reaction] {
    try await inner.removeReaction(key, from: message)
  }
  func thread(under parent: Message, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    try await inner.thread(under: parent, query)
  }
  func search(_ text: String, in channel: ChannelID?, limit: Int, page: PageToken?) async throws(ChatError)
    -> Page<Message>
  {
    try await inner.search(text, in: channel, limit: limit, page: page)
  }
}

/// An adapter whose events go through a function on their way.
protocol RetellingAdapter: ForwardingAdapter {
  var retelling: Retelling { get }
}

extension RetellingAdapter {
  func events() -> ChatEventStream { retelling.hub.events() }
}

/// A mutant of what is heard alone.
struct Retold: RetellingAdapter {
  let inner: any ChatAdapter
  let retelling: Retelling

  init(_ inner: any ChatAdapter, _ retell: @escaping @Sendable (ChatEvent) async -> [ChatEvent]) {
    self.inner = inner
    retelling = Retelling(inner, retell)
  }
}

/// Passes the events of `inner` on through `retell`, as long as the object that holds it lives.
final class Retelling: Sendable {
  let hub = EventHub()
  private let task: Task<Void, Never>

  init(_ inner: any ChatAdapter, _ retell: @escaping @Sendable (ChatEvent) async -> [ChatEvent]) {
    let (events, hub) = (inner.events(), hub)
    task = Task {
      for await event in events {
        for told in await retell(event) { hub.publish(told) }
      }
    }
  }

  deinit { task.cancel() }
}

/// A mutex that can be captured.
final class Mutex2<Value: Sendable>: Sendable {
  private let mutex: Mutex<Value>
  init(_ value: Value) { mutex = Mutex(value) }
  func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result { mutex.withLock { body(&$0) } }
}
