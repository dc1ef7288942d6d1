import UnifiedChat

extension IdealService {
  func send(_ outgoing: OutgoingMessage, session: Int) throws(ChatError) -> Message {
    let user = try self.session(session, .send)
    let id = outgoing.channel
    try strike("send", user: user, channel: id, phase: .received)
    try mayWrite(user, id, .send)
    let key = IdealChannel.SendKey(sender: user, id: outgoing.clientMessageID)
    if let known = channels[id]?.sent[key], let index = channels[id]?.index(of: known),
      let message = channels[id]?.messages[index]
    {
      return message
    }
    let draft = outgoing.draft
    var message = Message(
      channel: id, id: MessageID("m\(nextNumber())"), clientMessageID: outgoing.clientMessageID, sender: user,
      senderName: users[user]?.name, createdAt: clock.now, content: draft.content)
    message.mentions = draft.mentions
    message.replyTo = draft.replyTo
    message.threadParent = draft.threadParent
    message.customType = draft.customType
    message.customData = draft.customData
    if draft.isTransient {
      deliver(message, in: id, by: user, except: session)
      return message
    }
    message = commit(message, key: key)
    // The sender has seen what was there before.
    let hadUnread = (channels[id]?.unread(for: user) ?? 0) > 0
    moveRead(user, in: id, to: message.position)
    deliver(message, in: id, by: user, except: session)
    if hadUnread { tell(user, .unreadChanged(id, .exact(0))) }
    try strike("send", user: user, channel: id, phase: .afterCommit)
    return message
  }

  private func mayWrite(_ user: UserID, _ id: ChannelID, _ operation: ChatError.Operation) throws(ChatError) {
    let channel = try joined(id, user, operation)
    let member = channel.memberships[user]
    if member?.isMuted == true, member?.mutedUntil.map({ $0 > clock.now }) ?? true {
      throw ChatError(.permission(), operation: operation, detail: "muted in \(id)")
    }
    if channel.channel.isFrozen, member?.role == .member {
      throw ChatError(.permission(), operation: operation, detail: "\(id) is frozen")
    }
    if channel.channel.kind == .direct, let peer = channel.members.first(where: { $0 != user }),
      blocks[peer]?.contains(user) == true
    {
      throw ChatError(.permission(), operation: operation, detail: "blocked by the other member")
    }
  }

  func commit(_ message: Message, key: IdealChannel.SendKey?) -> Message {
    var message = message
    let sequence = (channels[message.channel]?.lastSequence ?? 0) + 1
    message.position = MessagePosition(sequence: sequence)
    channels[message.channel]?.lastSequence = sequence
    channels[message.channel]?.messages.append(message)
    if let key, let id = message.id { channels[message.channel]?.sent[key] = id }
    return message
  }

  private func deliver(_ message: Message, in id: ChannelID, by sender: UserID, except: Int) {
    for member in channels[id]?.members ?? [] {
      let source: ChatEvent.Source = member == sender ? .echo : .live
      var copies = 1
      if case .duplicate(let count) = firing("push", user: member, channel: id, phase: .beforePush) { copies = count }
      for _ in 0..<copies { tell(member, .messageReceived(message), source: source, except: except) }
      if member != sender, channels[id]?.channel.kind != .open, let count = channels[id]?.unread(for: member) {
        tell(member, .unreadChanged(id, .exact(count)))
      }
      if channels[id]?.views[member]?.isHidden == true { channels[id]?.views[member]?.isHidden = false }
    }
  }

  // MARK: Reading

  func history(_ id: ChannelID, _ query: HistoryQuery, session: Int, thread: MessageID? = nil) throws(ChatError)
    -> MessagePage
  {
    let user = try self.session(session, .history)
    try strike("history", user: user, channel: id, phase: .received)
    guard query.limit >= 1 else { throw ChatError(.invalidArgument(field: "limit"), operation: .history) }
    let channel = try joined(id, user, .history)
    let visible = channel.messages.filter { message in
      channel.isVisible(message, to: user) && (thread == nil || message.threadParent == thread)
    }
    let range = try Self.range(of: query, in: visible)
    let messages = Array(visible[range])
    let before = messages.first?.position ?? Self.edge(query)
    let after = messages.last?.position ?? Self.edge(query)
    return MessagePage(
      messages: messages,
      older: range.lowerBound > 0 ? before.map { Cursor($0.description) } : nil,
      newer: range.upperBound < visible.count ? after.map { Cursor($0.description) } : nil)
  }

  private static func edge(_ query: HistoryQuery) -> MessagePosition? {
    switch query.anchor {
    case .position(let position): position
    case .cursor(let cursor): MessagePosition(cursor.rawValue)
    case .newest, .oldest: nil
    }
  }

  private static func range(of query: HistoryQuery, in messages: [Message]) throws(ChatError) -> Range<Int> {
    let anchor: MessagePosition?
    switch query.anchor {
    case .newest:
      return query.direction == .older
        ? max(0, messages.count - query.limit)..<messages.count : messages.count..<messages.count
    case .oldest:
      return query.direction == .newer ? 0..<min(query.limit, messages.count) : 0..<0
    case .position, .cursor: anchor = edge(query)
    }
    guard let anchor else { throw ChatError(.invalidArgument(field: "cursor"), operation: .history) }
    let first = messages.partitioningIndex { ($0.position ?? anchor) >= anchor }
    let next = messages.partitioningIndex { ($0.position ?? anchor) > anchor }
    switch query.direction {
    case .older:
      let end = query.isInclusive ? next : first
      return max(0, end - query.limit)..<end
    case .newer:
      let start = query.isInclusive ? first : next
      return start..<min(messages.count, start + min(query.limit, messages.count))
    }
  }

  func message(_ message: MessageID, in id: ChannelID, session: Int) throws(ChatError) -> Message {
    let user = try self.session(session, .fetchMessage)
    let channel = try joined(id, user, .fetchMessage)
    guard let index = channel.index(of: message), channel.isVisible(channel.messages[index], to: user) else {
      throw ChatError(.notFound, operation: .fetchMessage, detail: "no message \(message) in \(id)")
    }
    return channel.messages[index]
  }

  func changes(_ id: ChannelID, since: Cursor?, session: Int) throws(ChatError) -> ChangePage {
    let user = try self.session(session, .changelog)
    let channel = try joined(id, user, .changelog)
    let now = Cursor(String(channel.changes.count))
    guard let since else { return ChangePage(updated: [], removed: [], next: now, hasMore: false) }
    guard let start = Int(since.rawValue), channel.changes.indices.contains(start) || start == channel.changes.count
    else { throw ChatError(.invalidArgument(field: "since"), operation: .changelog) }
    let changed = Set(channel.changes[start...])
    let updated = channel.messages.filter { $0.id.map { changed.contains($0) } ?? false }
    return ChangePage(updated: updated, removed: [], next: now, hasMore: false)
  }

  func find(_ text: String, in id: ChannelID?, limit: Int, session: Int) throws(ChatError) -> Page<Message> {
    let user = try self.session(session, .search)
    let places = channels.values.filter {
      $0.memberships[user]?.state == .joined && (id == nil || $0.channel.id == id)
    }
    let found = places.flatMap { channel in
      channel.messages.filter {
        channel.isVisible($0, to: user) && $0.content.searchableText?.contains(text) == true
      }
    }
    return Page(items: Array(found.sorted { $0.createdAt > $1.createdAt }.prefix(limit)), next: nil)
  }

  // MARK: Changing

  func changeMessage(
    _ message: MessageID, in id: ChannelID, _ operation: ChatError.Operation, session: Int, ownOnly: Bool,
    _ body: (inout Message, UserID) -> Void
  ) throws(ChatError) -> Message {
    let user = try self.session(session, operation)
    let channel = try joined(id, user, operation)
    guard let index = channel.index(of: message) else {
      throw ChatError(.notFound, operation: operation, detail: "no message \(message) in \(id)")
    }
    let isAdmin = channel.memberships[user]?.role == .owner || channel.memberships[user]?.role == .admin
    guard !ownOnly || channel.messages[index].sender == user || (operation == .recall && isAdmin) else {
      throw ChatError(.permission(), operation: operation, detail: "not this user's message")
    }
    guard !channel.messages[index].isRecalled else {
      throw ChatError(.notFound, operation: operation, detail: "the message was recalled")
    }
    var changed = channel.messages[index]
    body(&changed, user)
    channels[id]?.messages[index] = changed
    channels[id]?.changes.append(message)
    return changed
  }

  func edit(_ message: MessageID, in id: ChannelID, to draft: MessageDraft, session: Int) throws(ChatError) -> Message {
    let now = clock.now
    let changed = try changeMessage(message, in: id, .edit, session: session, ownOnly: true) { message, _ in
      message.content = draft.content
      message.mentions = draft.mentions
      message.customType = draft.customType
      message.customData = draft.customData
      message.editedAt = now
    }
    tellMembers(of: id, .messageUpdated(changed), except: session)
    return changed
  }

  func recall(_ message: MessageID, in id: ChannelID, session: Int) throws(ChatError) -> Message {
    let now = clock.now
    let changed = try changeMessage(message, in: id, .recall, session: session, ownOnly: true) { message, user in
      message = message.tombstone(by: user, at: now)
    }
    tellMembers(of: id, .messageRecalled(changed), except: session)
    return changed
  }

  func react(_ key: String, on: Bool, message: MessageID, in id: ChannelID, session: Int) throws(ChatError) -> [Reaction] {
    let changed = try changeMessage(message, in: id, .react, session: session, ownOnly: false) { message, user in
      var users = message.reactions.first { $0.key == key }?.users ?? []
      users.removeAll { $0 == user }
      if on { users.append(user) }
      if let index = message.reactions.firstIndex(where: { $0.key == key }) {
        if users.isEmpty { message.reactions.remove(at: index) } else { message.reactions[index].users = users }
      } else if on {
        message.reactions.append(Reaction(key: key, users: users))
      }
    }
    tellMembers(of: id, .reactionsChanged(id, message, changed.reactions))
    return changed.reactions
  }

  func hide(_ messages: [Message], session: Int) throws(ChatError) {
    let user = try self.session(session, .deleteMessage)
    for message in messages {
      guard let id = message.id else { continue }
      _ = try joined(message.channel, user, .deleteMessage)
      channels[message.channel]?.hiddenMessages[user, default: []].insert(id)
      tell(user, .messageHidden(message.channel, id), except: session)
    }
  }

  func clear(_ id: ChannelID, session: Int) throws(ChatError) {
    let user = try self.session(session, .clearHistory)
    guard let newest = try joined(id, user, .clearHistory).messages.last?.position else { return }
    channels[id]?.clearedUpTo[user] = newest
    tell(user, .historyCleared(id, upTo: newest), except: session)
  }

  func markRead(_ id: ChannelID, upTo position: MessagePosition?, session: Int) throws(ChatError) {
    let user = try self.session(session, .markRead)
    let channel = try joined(id, user, .markRead)
    guard let position = position ?? channel.messages.last?.position else { return }
    let before = channel.memberships[user]?.readPosition
    moveRead(user, in: id, to: position)
    guard before.map({ position > $0 }) ?? true else { return }
    for member in channel.members { tell(member, .readChanged(id, user, position), except: session) }
    if let count = channels[id]?.unread(for: user) { tell(user, .unreadChanged(id, .exact(count))) }
  }

  func moveRead(_ user: UserID, in id: ChannelID, to position: MessagePosition?) {
    guard let position, channels[id]?.memberships[user]?.readPosition.map({ position > $0 }) ?? true else { return }
    channels[id]?.memberships[user]?.readPosition = position
  }

  func setTyping(_ isTyping: Bool, in id: ChannelID, session: Int) throws(ChatError) {
    let user = try self.session(session, .typing)
    for member in try joined(id, user, .typing).members where member != user {
      tell(member, isTyping ? .typingStarted(id, user) : .typingEnded(id, user))
    }
  }

  func totalUnread(session: Int) throws(ChatError) -> UnreadCount {
    let user = try self.session(session, .unread)
    return .exact(
      channels.values.reduce(0) { sum, channel in
        guard channel.memberships[user]?.state == .joined, channel.channel.kind != .open,
          channel.views[user]?.level != NotificationLevel.none
        else { return sum }
        return sum + channel.unread(for: user)
      })
  }
}

extension Message {
  /// What stays of a message that was taken back: its place, its author and its time.
  func tombstone(by user: UserID?, at time: Timestamp?) -> Message {
    Message(
      channel: channel, id: id, clientMessageID: clientMessageID, sender: sender, senderName: senderName,
      position: position, createdAt: createdAt, content: .recalled(by: user, at: time))
  }
}

extension Array {
  /// The first index for which `belongs` holds, given that it holds for all after it.
  func partitioningIndex(_ belongs: (Element) -> Bool) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if belongs(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
