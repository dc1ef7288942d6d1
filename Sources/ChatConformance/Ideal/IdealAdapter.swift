import UnifiedChat

/// One device of one user at the ideal service.
public actor IdealAdapter: ChatAdapter {
  public static let capabilities = CapabilitySet(
    Dictionary(
      uniqueKeysWithValues: Capability.allCases.filter { !absent.contains($0) }.map { ($0, CapabilityLevel.native) }))

  /// What has no meaning without a wire, and what the model leaves to the client.
  static let absent: Set<Capability> = [
    .connectionResume, .authTokenRenewal, .authSignature, .pushRegister, .channelService, .channelTemporary,
    .channelChangelog, .memberInviteAcceptance, .memberJoinRequest, .messageLocalExtension, .fileResume,
    .searchLocal, .channelDraft, .channelBurnDuration, .contactFriends, .storageEncryptedAtRest,
    .receiptDelivered, .connectionKickReason,
  ]

  public nonisolated let vendor: VendorName = "ideal"
  private let service: IdealService
  private nonisolated let hub = EventHub()

  private var session: Int?
  private var user: User?
  private var credential = Credential.none
  /// The connect that is under way; later calls join it.
  private var connecting: (user: UserID, task: Task<Result<User, ChatError>, Never>)?
  public private(set) var state = ConnectionState.disconnected(.initial)

  public init(service: IdealService) { self.service = service }

  public var capabilities: CapabilitySet { Self.capabilities }
  public var currentUser: User? { user }
  public nonisolated func events() -> ChatEventStream { hub.events() }

  // MARK: Connection

  public func connect(as id: UserID, credential: Credential) async throws(ChatError) -> User {
    if let user, state == .connected || state == .suspended {
      guard user.id == id else {
        throw ChatError(.conflict, operation: .connect, detail: "connected as another user; disconnect first")
      }
      return user
    }
    if let connecting {
      guard connecting.user == id else { throw ChatError(.conflict, operation: .connect, detail: "another user connects") }
      return try await connecting.task.value.get()
    }
    let task = Task { () async -> Result<User, ChatError> in
      do throws(ChatError) { return .success(try await connectOnce(as: id, credential: credential)) } catch {
        return .failure(error)
      }
    }
    connecting = (id, task)
    defer { connecting = nil }
    return try await task.value.get()
  }

  private func connectOnce(as id: UserID, credential: Credential) async throws(ChatError) -> User {
    move(to: .connecting)
    self.credential = credential
    do throws(ChatError) {
      let user = try await open(id)
      // A disconnect may have come while the service was asked.
      guard state == .connecting else { throw ChatError.cancelled(.connect) }
      self.user = user
      move(to: .connected)
      return user
    } catch {
      if state == .connecting {
        move(to: error.kind == .authentication ? .refused(.credentialInvalid) : .disconnected(.failed(error)))
      }
      throw error
    }
  }

  private func open(_ id: UserID) async throws(ChatError) -> User {
    let opened = try await service.open(id, credential: credential, hub: hub) { [weak self] end in
      await self?.ended(end)
    }
    session = opened.session
    return opened.user
  }

  private func ended(_ end: IdealService.SessionEnd) async {
    session = nil
    switch end {
    case .refused(let reason): move(to: .refused(reason))
    case .linkLost:
      guard state == .connected else { return }
      await reopen()
    }
  }

  private func reopen() async {
    guard let id = user?.id else { return }
    move(to: .reconnecting(attempt: 1))
    do throws(ChatError) {
      _ = try await open(id)
      guard case .reconnecting = state else { return }
      move(to: .connected)
      hub.publish(ChatEvent(.missedEvents(in: nil), source: .local))
    } catch {
      move(to: .refused(.credentialInvalid))
    }
  }

  public func disconnect() async {
    if let session { await service.close(session) }
    session = nil
    user = nil
    move(to: .disconnected(.requested))
  }

  public func suspend() async {
    guard state == .connected, let session else { return }
    move(to: .suspended)
    self.session = nil
    await service.close(session)
  }

  public func resume() async {
    guard state == .suspended else { return }
    await reopen()
  }

  private func move(to next: ConnectionState) {
    guard next != state else { return }
    state = next
    hub.publish(ChatEvent(.connectionChanged(next), source: .local))
  }

  private func live(_ operation: ChatError.Operation) throws(ChatError) -> Int {
    if let session { return session }
    if case .refused = state { throw ChatError(.authentication, operation: operation, detail: "the session was refused") }
    throw ChatError(.network(.offline), operation: operation, detail: "not connected")
  }

  // MARK: Users

  public func users(_ ids: [UserID]) async throws(ChatError) -> [User] {
    _ = try live(.fetchUser)
    return await service.known(ids)
  }

  public func updateProfile(name: String?, avatarURL: String?, customData: JSONText?) async throws(ChatError) -> User {
    let updated = try await service.updateProfile(
      name: name, avatarURL: avatarURL, customData: customData, session: try live(.updateUser))
    user = updated
    return updated
  }

  public func presence(of users: [UserID]) async throws(ChatError) -> [UserID: Presence] {
    _ = try live(.presence)
    return await service.presence(of: users)
  }

  public func subscribePresence(of users: [UserID]) async throws(ChatError) {
    await service.watch(users, true, session: try live(.presence))
  }

  public func unsubscribePresence(of users: [UserID]) async throws(ChatError) {
    await service.watch(users, false, session: try live(.presence))
  }

  public func block(_ user: UserID) async throws(ChatError) {
    try await service.setBlocked(user, true, session: try live(.block))
  }

  public func unblock(_ user: UserID) async throws(ChatError) {
    try await service.setBlocked(user, false, session: try live(.block))
  }

  // MARK: Channels

  public func createChannel(_ draft: ChannelDraft) async throws(ChatError) -> Channel {
    try await service.create(draft, session: try live(.createChannel))
  }

  public func channel(_ id: ChannelID) async throws(ChatError) -> Channel {
    try await service.channel(id, session: try live(.fetchChannel))
  }

  public func channels(_ query: ChannelQuery, page: PageToken?) async throws(ChatError) -> Page<Channel> {
    try await service.list(query, page: page, session: try live(.listChannels))
  }

  public func updateChannel(_ id: ChannelID, _ changes: ChannelChanges) async throws(ChatError) -> Channel {
    try await service.change(id, session: try live(.updateChannel)) { channel in
      if let name = changes.name { channel.name = name }
      if let url = changes.coverURL { channel.coverURL = url }
      if let data = changes.customData { channel.customData = data }
    }
  }

  public func setMetadata(_ values: [String: String?], of id: ChannelID) async throws(ChatError) {
    _ = try await service.change(id, session: try live(.updateChannel)) { channel in
      for (key, value) in values { channel.metadata[key] = value }
    }
  }

  public func deleteChannel(_ id: ChannelID) async throws(ChatError) {
    try await service.delete(id, session: try live(.deleteChannel))
  }

  public func join(_ id: ChannelID) async throws(ChatError) -> Channel {
    try await service.join(id, session: try live(.join))
  }

  public func leave(_ id: ChannelID) async throws(ChatError) {
    try await service.leave(id, session: try live(.leave))
  }

  public func invite(_ users: [UserID], to id: ChannelID) async throws(ChatError) {
    try await service.invite(users, to: id, session: try live(.invite))
  }

  public func removeMembers(_ users: [UserID], from id: ChannelID) async throws(ChatError) {
    try await service.remove(users, from: id, session: try live(.removeMember))
  }

  public func members(of id: ChannelID, limit: Int, page: PageToken?) async throws(ChatError) -> Page<Member> {
    try await service.memberPage(id, limit: limit, page: page, session: try live(.listMembers))
  }

  public func setRole(_ role: MemberRole, of user: UserID, in id: ChannelID) async throws(ChatError) {
    let session = try live(.setRole)
    try await service.changeMember(user, in: id, .setRole, session: session) { $0.role = role }
    // There is one owner: whoever hands over becomes an admin.
    if role == .owner { try await service.resign(in: id, session: session, to: user) }
  }

  public func mute(_ user: UserID, in id: ChannelID, for duration: Duration?) async throws(ChatError) {
    let until = duration.map { service.clock.now + $0 }
    try await service.changeMember(user, in: id, .mute, session: try live(.mute)) {
      $0.isMuted = true
      $0.mutedUntil = until
    }
  }

  public func unmute(_ user: UserID, in id: ChannelID) async throws(ChatError) {
    try await service.changeMember(user, in: id, .mute, session: try live(.mute)) {
      $0.isMuted = false
      $0.mutedUntil = nil
    }
  }

  public func ban(_ user: UserID, from id: ChannelID, for duration: Duration?) async throws(ChatError) {
    try await service.remove([user], from: id, session: try live(.ban), banned: true)
  }

  public func unban(_ user: UserID, from id: ChannelID) async throws(ChatError) {
    try await service.changeMember(user, in: id, .ban, session: try live(.ban)) { $0.state = .left }
  }

  public func setFrozen(_ isFrozen: Bool, _ id: ChannelID) async throws(ChatError) {
    let session = try live(.freeze)
    try await service.requireAdmin(id, service.session(session, .freeze), .freeze)
    _ = try await service.change(id, session: session) { $0.isFrozen = isFrozen }
  }

  public func setHidden(_ isHidden: Bool, _ id: ChannelID) async throws(ChatError) {
    try await service.setView(id, session: try live(.hideChannel), .hideChannel) { $0.isHidden = isHidden }
  }

  public func setPinned(_ isPinned: Bool, _ id: ChannelID) async throws(ChatError) {
    try await service.setView(id, session: try live(.pinChannel), .pinChannel) { $0.isPinned = isPinned }
  }

  public func setNotificationLevel(_ level: NotificationLevel, of id: ChannelID) async throws(ChatError) {
    try await service.setView(id, session: try live(.updateChannel), .updateChannel) { $0.level = level }
  }

  public func markRead(_ id: ChannelID, upTo position: MessagePosition?) async throws(ChatError) {
    try await service.markRead(id, upTo: position, session: try live(.markRead))
  }

  public func setTyping(_ isTyping: Bool, in id: ChannelID) async throws(ChatError) {
    try await service.setTyping(isTyping, in: id, session: try live(.typing))
  }

  public func totalUnread() async throws(ChatError) -> UnreadCount {
    try await service.totalUnread(session: try live(.unread))
  }

  // MARK: Messages

  public func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    var sent = try await service.send(message, session: try live(.send))
    sent.localID = message.localID
    return sent
  }

  public func upload(
    _ attachment: Attachment, for channel: ChannelID, progress: (@Sendable (_ sent: Int64, _ total: Int64) -> Void)?
  ) async throws(ChatError) -> Attachment {
    _ = try live(.upload)
    guard case .bytes(let bytes) = attachment.source else {
      throw ChatError(.invalidArgument(field: "source"), operation: .upload, detail: "the model takes bytes only")
    }
    var uploaded = attachment
    uploaded.url = await service.store(bytes)
    uploaded.size = Int64(bytes.count)
    uploaded.source = nil
    progress?(Int64(bytes.count), Int64(bytes.count))
    return uploaded
  }

  public func download(_ attachment: Attachment, limit: Int64) async throws(ChatError) -> [UInt8] {
    guard let url = attachment.url, let bytes = await service.stored(url) else {
      throw ChatError(.notFound, operation: .download, detail: "no file at this URL")
    }
    guard Int64(bytes.count) <= limit else { throw ChatError(.tooLarge(limit: limit, unit: .bytes), operation: .download) }
    return bytes
  }

  public func history(of channel: ChannelID, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    try await service.history(channel, query, session: try live(.history))
  }

  public func message(_ id: MessageID, in channel: ChannelID) async throws(ChatError) -> Message {
    try await service.message(id, in: channel, session: try live(.fetchMessage))
  }

  public func changes(in channel: ChannelID, since: Cursor?) async throws(ChatError) -> ChangePage {
    try await service.changes(channel, since: since, session: try live(.changelog))
  }

  public func edit(_ original: Message, to draft: MessageDraft) async throws(ChatError) -> Message {
    let id = try Self.id(of: original, .edit)
    return try await service.edit(id, in: original.channel, to: draft, session: try live(.edit))
  }

  public func recall(_ message: Message) async throws(ChatError) -> Message {
    let id = try Self.id(of: message, .recall)
    return try await service.recall(id, in: message.channel, session: try live(.recall))
  }

  public func deleteForMe(_ messages: [Message]) async throws(ChatError) {
    try await service.hide(messages, session: try live(.deleteMessage))
  }

  public func clearHistory(of channel: ChannelID) async throws(ChatError) {
    try await service.clear(channel, session: try live(.clearHistory))
  }

  public func addReaction(_ key: String, to message: Message) async throws(ChatError) -> [Reaction] {
    let id = try Self.id(of: message, .react)
    return try await service.react(key, on: true, message: id, in: message.channel, session: try live(.react))
  }

  public func removeReaction(_ key: String, from message: Message) async throws(ChatError) -> [Reaction] {
    let id = try Self.id(of: message, .react)
    return try await service.react(key, on: false, message: id, in: message.channel, session: try live(.react))
  }

  public func thread(under parent: Message, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    let id = try Self.id(of: parent, .history)
    return try await service.history(parent.channel, query, session: try live(.history), thread: id)
  }

  public func search(_ text: String, in channel: ChannelID?, limit: Int, page: PageToken?) async throws(ChatError)
    -> Page<Message>
  {
    try await service.find(text, in: channel, limit: limit, session: try live(.search))
  }

  private static func id(of message: Message, _ operation: ChatError.Operation) throws(ChatError) -> MessageID {
    guard let id = message.id else {
      throw ChatError(.invalidArgument(field: "message"), operation: operation, detail: "it was never sent")
    }
    return id
  }
}

extension IdealService {
  func known(_ ids: [UserID]) -> [User] { ids.compactMap { users[$0] } }

  func updateProfile(name: String?, avatarURL: String?, customData: JSONText?, session: Int) throws(ChatError) -> User {
    let id = try self.session(session, .updateUser)
    var user = users[id] ?? User(id: id)
    if let name { user.name = name }
    if let avatarURL { user.avatarURL = avatarURL }
    if let customData { user.customData = customData }
    users[id] = user
    return user
  }

  func presence(of ids: [UserID]) -> [UserID: Presence] {
    Dictionary(ids.map { ($0, isOnline($0) ? .online : .offline(lastSeen: nil)) }) { first, _ in first }
  }

  func setBlocked(_ other: UserID, _ isBlocked: Bool, session: Int) throws(ChatError) {
    let user = try self.session(session, .block)
    guard users[other] != nil else { throw ChatError(.notFound, operation: .block, detail: "no user \(other)") }
    if isBlocked { blocks[user, default: []].insert(other) } else { blocks[user]?.remove(other) }
  }

  func store(_ bytes: [UInt8]) -> String {
    let url = "ideal:///files/\(nextNumber())"
    files[url] = bytes
    return url
  }

  func stored(_ url: String) -> [UInt8]? { files[url] }
}
