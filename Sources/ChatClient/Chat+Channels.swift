import ChatCache
import UnifiedChat

extension Chat {
  public func createChannel(_ draft: ChannelDraft) async throws(ChatError) -> Channel {
    let checked = try Arguments.channel(draft, owner: user)
    let capabilities = try await ownCapabilities()
    switch checked.kind {
    case .direct: try capabilities.require(.channelDirect, for: .createChannel)
    case .open: try capabilities.require(.channelOpen, for: .createChannel)
    case .temporary: try capabilities.require(.channelTemporary, for: .createChannel)
    case .group, .service, .unknown: try capabilities.require(.channelGroup, for: .createChannel)
    }
    if checked.isDistinct, checked.kind != .direct {
      try capabilities.require(.channelGroupDistinct, for: .createChannel)
    }
    return try keepJoined(try await ask(await adapter.createChannel(checked)))
  }

  public func channel(_ id: ChannelID) async throws(ChatError) -> Channel {
    try Arguments.id(id, .fetchChannel)
    guard isOnline else {
      let known = try opened(.fetchChannel).read { session throws(ChatError) in try session.channel(id) }
      guard let known else {
        throw ChatError(.network(.offline), operation: .fetchChannel, detail: "not in the cache and not connected")
      }
      return known
    }
    return try keep(try await ask(await adapter.channel(id)))
  }

  /// From the server while connected, with what the cache knows beyond it; offline from the cache, in one page.
  public func channels(_ query: ChannelQuery, page: PageToken?) async throws(ChatError) -> Page<Channel> {
    try Arguments.limit(query.limit, .listChannels)
    guard isOnline else { return Page(items: Array(try cachedChannels(query).prefix(query.limit)), next: nil) }
    let isHidingHere = try await vendorCapabilities()[.channelHide] != .native
    let found = try await ask(await adapter.channels(query, page: page))
    var items: [Channel] = []
    for channel in found.items {
      let kept = try keep(channel)
      if isHidingHere, kept.isHidden, !query.includesHidden { continue }
      items.append(kept)
    }
    return Page(items: items, next: found.next)
  }

  /// The channels of the cache, without the network: the newest message first.
  public func cachedChannels(_ query: ChannelQuery = ChannelQuery(limit: .max)) throws(ChatError) -> [Channel] {
    let channels = try opened(.listChannels).read { session throws(ChatError) in try session.channels() }
    return channels.filter { channel in
      (query.includesHidden || !channel.isHidden)
        && (query.kinds?.contains(channel.kind) ?? true)
        && (query.nameContains.map { channel.name?.contains($0) ?? false } ?? true)
        && (!query.unreadOnly || (channel.unread.number ?? 0) > 0)
    }
  }

  public func updateChannel(_ id: ChannelID, _ changes: ChannelChanges) async throws(ChatError) -> Channel {
    if changes.customData != nil { try await require(.channelCustomData, .updateChannel) }
    return try keep(try await ask(await adapter.updateChannel(id, changes)))
  }

  public func setMetadata(_ values: [String: String?], of id: ChannelID) async throws(ChatError) {
    try await require(.channelMetadataKeys, .updateChannel)
    try await ask(await adapter.setMetadata(values, of: id))
  }

  public func deleteChannel(_ id: ChannelID) async throws(ChatError) {
    try await require(.channelDelete, .deleteChannel)
    try await ask(await adapter.deleteChannel(id))
    apply(.channelDeleted(id))
  }

  public func join(_ id: ChannelID) async throws(ChatError) -> Channel { try keepJoined(try await ask(await adapter.join(id))) }

  public func leave(_ id: ChannelID) async throws(ChatError) {
    try await ask(await adapter.leave(id))
    apply(.channelLeft(id, .left))
  }

  public func invite(_ users: [UserID], to id: ChannelID) async throws(ChatError) {
    try Arguments.users(users, .invite)
    try await ask(await adapter.invite(users, to: id))
  }

  public func answerInvitation(to id: ChannelID, accept: Bool) async throws(ChatError) {
    try await require(.memberInviteAcceptance, .join)
    try await ask(await adapter.answerInvitation(to: id, accept: accept))
  }

  public func removeMembers(_ users: [UserID], from id: ChannelID) async throws(ChatError) {
    try await require(.memberRemove, .removeMember)
    try Arguments.users(users, .removeMember)
    try await ask(await adapter.removeMembers(users, from: id))
  }

  /// From the server while connected, else from the cache in one page.
  public func members(of id: ChannelID, limit: Int, page: PageToken?) async throws(ChatError) -> Page<Member> {
    try Arguments.limit(limit, .listMembers)
    guard isOnline else {
      let known = try opened(.listMembers).read { session throws(ChatError) in try session.members(of: id) }
      return Page(items: Array(known.prefix(limit)), next: nil)
    }
    try await require(.memberList, .listMembers)
    let found = try await ask(await adapter.members(of: id, limit: limit, page: page))
    try learn(found.items, of: id, isWhole: page == nil && found.next == nil, .backfill)
    return found
  }

  public func setRole(_ role: MemberRole, of user: UserID, in id: ChannelID) async throws(ChatError) {
    try await require(.memberRoles, .setRole)
    try await ask(await adapter.setRole(role, of: user, in: id))
  }

  public func mute(_ user: UserID, in id: ChannelID, for duration: Duration?) async throws(ChatError) {
    try await require(.memberMute, .mute)
    try await ask(await adapter.mute(user, in: id, for: duration))
  }

  public func unmute(_ user: UserID, in id: ChannelID) async throws(ChatError) {
    try await require(.memberMute, .mute)
    try await ask(await adapter.unmute(user, in: id))
  }

  public func ban(_ user: UserID, from id: ChannelID, for duration: Duration?) async throws(ChatError) {
    try await require(.memberBan, .ban)
    try await ask(await adapter.ban(user, from: id, for: duration))
  }

  public func unban(_ user: UserID, from id: ChannelID) async throws(ChatError) {
    try await require(.memberBan, .ban)
    try await ask(await adapter.unban(user, from: id))
  }

  public func setFrozen(_ isFrozen: Bool, _ id: ChannelID) async throws(ChatError) {
    try await require(.channelFreeze, .freeze)
    try await ask(await adapter.setFrozen(isFrozen, id))
  }

  /// On all devices where the vendor has it, else on this one.
  public func setHidden(_ isHidden: Bool, _ id: ChannelID) async throws(ChatError) {
    if try await vendorCapabilities()[.channelHide] == .native { return try await ask(await adapter.setHidden(isHidden, id)) }
    try changeHere(id) { session throws(ChatError) in try session.setHiddenHere(isHidden, id) }
  }

  /// On all devices where the vendor has it, else on this one.
  public func setPinned(_ isPinned: Bool, _ id: ChannelID) async throws(ChatError) {
    if try await vendorCapabilities()[.channelPin] == .native { return try await ask(await adapter.setPinned(isPinned, id)) }
    try changeHere(id) { session throws(ChatError) in try session.setPinnedHere(isPinned, id) }
  }

  public func setNotificationLevel(_ level: NotificationLevel, of id: ChannelID) async throws(ChatError) {
    try await require(.channelNotificationLevel, .updateChannel)
    try await ask(await adapter.setNotificationLevel(level, of: id))
  }

  /// A hint: dropped while there is no link.
  public func setTyping(_ isTyping: Bool, in id: ChannelID) async throws(ChatError) {
    try await require(.typing, .typing)
    guard isOnline else { return }
    guard isTyping else {
      // Nobody was told of a start that has not ended.
      guard typingTold.removeValue(forKey: id) != nil else { return }
      return try await ask(await adapter.setTyping(false, in: id))
    }
    // One hint for many key strokes: others keep it for its lifetime.
    if let told = typingTold[id], clock.now - told < options.typingLifetime / 2, clock.now >= told { return }
    typingTold[id] = clock.now
    do throws(ChatError) { try await ask(await adapter.setTyping(true, in: id)) } catch {
      typingTold[id] = nil
      throw error
    }
  }

  // MARK: Of this device alone

  public func draft(of id: ChannelID) throws(ChatError) -> String? {
    try opened(.cache).read { session throws(ChatError) in try session.draft(of: id) }
  }

  /// Keeps an unsent text with the channel; nil removes it.
  public func setDraft(_ text: String?, of id: ChannelID) throws(ChatError) {
    try opened(.cache).write { session throws(ChatError) in try session.setDraft(text, of: id) }
  }

  public func localExtension(of id: ChannelID) throws(ChatError) -> JSONText? {
    try opened(.cache).read { session throws(ChatError) in try session.localExtension(of: id) }
  }

  /// Keeps data of this device with the channel, never on a wire; nil removes it.
  public func setLocalExtension(_ data: JSONText?, of id: ChannelID) throws(ChatError) {
    try opened(.cache).write { session throws(ChatError) in try session.setLocalExtension(data, of: id) }
  }

  // MARK: Reading

  /// Everything up to `position`, or up to the newest known message, is read. Offline the mark is kept and told to
  /// the server when the link is back; it never moves down.
  public func markRead(_ id: ChannelID, upTo position: MessagePosition?) async throws(ChatError) {
    try Arguments.id(id, .markRead)
    let cache = try opened(.markRead)
    let newest = try cache.read { session throws(ChatError) in try session.newestPosition(in: id) }
    guard let mark = position ?? newest else {
      // Nothing is cached here: only the server knows what is the newest.
      return try await ask(await adapter.markRead(id, upTo: nil))
    }
    let kinds = try cache.write { session throws(ChatError) -> [ChatEvent.Kind] in
      let known = try session.readMark(of: id)
      let isNews = try session.raiseReadMark(mark, of: id)
      // Also where the mark stood there before: a wrong number is put right by marking. A lower one makes nothing due:
      // what the server is to know is the highest.
      if known.map({ mark >= $0 }) ?? true { try session.setMarkDue(true, of: id) }
      let recounted = try session.recount(id)
      return isNews ? [.readChanged(id, session.owner, mark)] + recounted : recounted
    }
    for kind in kinds { publish(kind, .local) }
    guard isOnline else { return }
    try await pushMark(mark, of: id)
  }

  /// Tells the server a read mark. A vendor that can only mark "now" is told when nothing newer is unseen.
  func pushMark(_ mark: MessagePosition, of id: ChannelID) async throws(ChatError) {
    let cache = try opened(.markRead)
    let newest = try cache.read { session throws(ChatError) in try session.newestPosition(in: id) }
    let marksAnywhere = try await vendorCapabilities()[.unreadMarkAt] == .native
    let isNewest = newest.map { $0 <= mark } ?? true
    guard marksAnywhere || isNewest else { return }
    do throws(ChatError) { try await ask(await adapter.markRead(id, upTo: marksAnywhere ? mark : nil)) } catch {
      // Kept as due: the next connect tells it.
      switch error.kind {
      case .network, .timeout, .cancelled: return
      default: throw error
      }
    }
    try cache.write { session throws(ChatError) in
      if try session.readMark(of: id) == mark { try session.setMarkDue(false, of: id) }
    }
  }

  public func totalUnread() async throws(ChatError) -> UnreadCount {
    try await require(.unreadTotal, .unread)
    if try await vendorCapabilities()[.unreadTotal] == .native, isOnline { return try await ask(await adapter.totalUnread()) }
    var total = 0
    var isLeast = false
    for channel in try cachedChannels(ChannelQuery(includesHidden: true)) where channel.notificationLevel != NotificationLevel.none {
      switch channel.unread {
      case .unknown: isLeast = true
      case .exact(let number): total += min(number, Int(Int32.max))
      case .atLeast(let number): (total, isLeast) = (total + min(number, Int(Int32.max)), true)
      }
    }
    return isLeast ? .atLeast(total) : .exact(total)
  }

  // MARK: Keeping

  /// The user is in it now, whatever a channel list that is on its way says.
  private func keepJoined(_ channel: Channel) throws(ChatError) -> Channel {
    joinedMeanwhile.insert(channel.id)
    return try keep(channel)
  }

  /// Stores what the server said of a channel, tells what is new, and returns it with what the cache knows beyond.
  private func keep(_ channel: Channel) throws(ChatError) -> Channel {
    for told in stored(ChatEvent(.channelChanged(channel), source: .local)) { publish(told.kind, told.source) }
    let kept = try opened(.fetchChannel).read { session throws(ChatError) in try session.channel(channel.id) }
    guard var kept else { return channel }
    // A last message that the vendor shows and the cache leaves out stays out.
    kept.unreadMentions = channel.unreadMentions
    return kept
  }

  func apply(_ kind: ChatEvent.Kind) {
    for told in stored(ChatEvent(kind, source: .local)) { publish(told.kind, told.source) }
  }

  private func changeHere(
    _ id: ChannelID, _ change: (CacheSession) throws(ChatError) -> Void
  ) throws(ChatError) {
    let changed = try opened(.updateChannel).write { session throws(ChatError) -> Channel? in
      let before = try session.channel(id)
      try change(session)
      let after = try session.channel(id)
      return after == before ? nil : after
    }
    if let changed { publish(.channelChanged(changed), .local) }
  }
}
