import ChatJSON
import OpenIMWire
import UnifiedChat

extension OpenIMAdapter {
  /// One push, to its end; the next one waits, so that the order of the server is the order of the events.
  func handle(_ push: OpenIMLink.Push) async {
    switch push {
    case .message(let id, let data, let isNotice, let operationID):
      let channel = ChannelID(id)
      // Also what goes beside the stream of messages comes twice after some failures.
      guard isNotice || data.contentType != OpenIMContentType.typing else { return typing(data, in: channel) }
      guard await accept(data, in: channel, isNotice: isNotice) else { return }
      if isNotice {
        await handleNotice(data, isOwn: trace.isOwn(operationID))
      } else {
        received(data, in: channel)
      }
    case .presence(let tips): tellPresence(tips)
    case .kicked, .ended: break
    }
  }

  /// False for what was told before. What a number shows to be missing is told first.
  private func accept(_ data: OpenIMMessageData, in channel: ChannelID, isNotice: Bool) async -> Bool {
    guard data.seq > 0 else { return true }
    let known = newest[channel]
    if let known, data.seq <= known { return false }
    newest[channel] = data.seq
    guard let last = told(known, in: channel, isNotice: isNotice), data.seq > last + 1 else { return true }
    let generation = generation
    if isNotice {
      tell(.missedEvents(in: channels(besideNotices: channel)), .local)
    } else {
      // A chat that the user had removed comes back with all that it had: told is what was sent since the login. By the
      // server's clock, of which this push is the only sign.
      let isNew = known == nil && !begun.contains(channel)
      let since = isNew ? data.sendTime - (clock.now.milliseconds - enteredAt.milliseconds) - 10_000 : .min
      await fill(last + 1...data.seq - 1, in: channel, since: since)
    }
    return generation == self.generation
  }

  /// The last number of `channel`; nil where it is not known what came before. A pair's conversation that was not there
  /// at the login, and a group that began since, have told everything from the first one on.
  private func told(_ last: Int64?, in channel: ChannelID, isNotice: Bool) -> Int64? {
    if let last, last > 0 { return last }
    guard !isNotice else { return nil }
    return begun.contains(channel) || OpenIMConversationID.groupID(of: channel.rawValue) == nil ? 0 : nil
  }

  /// A hole, as pushes leave it that overtake one another or are lost: the message behind it waits until those before
  /// it were fetched. What is too much for one pull the client reads for itself.
  ///
  /// - Parameter since: ms; what was sent before is no news.
  private func fill(_ hole: ClosedRange<Int64>, in channel: ChannelID, since: Int64) async {
    let generation = generation
    guard hole.upperBound - hole.lowerBound < Self.pullSize,
      let found = try? await pull(channel, hole, count: Self.pullSize, for: .history)
    else {
      if generation == self.generation { tell(.missedEvents(in: [channel]), .local) }
      return
    }
    guard generation == self.generation else { return }
    let missing = found.messages.filter { hole.contains($0.seq) }
    // Deleted ones come as placeholders: fewer than were asked for is not all there was.
    if missing.count < hole.count { tell(.missedEvents(in: [channel]), .local) }
    for data in missing where data.sendTime >= since { received(data, in: channel) }
  }

  // MARK: Messages

  private func received(_ data: OpenIMMessageData, in channel: ChannelID) {
    noteBurnable(data, in: channel)
    let isMine = userID.map { data.sendID.utf8.elementsEqual($0.rawValue.utf8) } ?? false
    if isMine, data.msgFrom != 200 {
      sent(data, in: channel)
      if let waiter = sends.removeValue(forKey: ClientMessageID(data.clientMsgID)) {
        return waiter.fulfil(.success(data))
      }
    }
    guard let message = data.message(in: channel.rawValue) else { return }
    if !isMine, let me = userID, message.mentions.everyone || message.mentions.users.contains(me) {
      mentioned[channel] = max(mentioned[channel] ?? 0, data.seq)
    }
    if let sender = message.sender { endTyping(OpenIMParticipant(channel: channel, user: sender)) }
    let isPrivate = data.sessionType == OpenIMSessionType.single || data.sessionType == OpenIMSessionType.service
    if data.seq == 1, !isMine, isPrivate { tellFirst(of: channel, data) }
    tell(.messageReceived(message), isMine ? .echo : .live)
    if !isMine, data.seq > 0, data.option("unreadCount") { tellUnread(channel) }
  }

  /// A single chat that somebody else has begun.
  private func tellFirst(of id: ChannelID, _ data: OpenIMMessageData) {
    guard data.sessionType == OpenIMSessionType.single else {
      return tell(.channelJoined(Self.serviceChannel(id, account: UserID(data.sendID))))
    }
    var channel = Channel(id: id, kind: .direct, memberCount: 2, peer: UserID(data.sendID))
    channel.isDistinct = true
    channel.myRole = .member
    channel.myState = .joined
    tell(.channelJoined(channel))
  }

  // MARK: Unread

  /// The read mark, which never goes back.
  func lift(_ channel: ChannelID, to seq: Int64) {
    let mark = max(read[channel] ?? 0, seq)
    read[channel] = mark
    if let known = recalled[channel] {
      let left = known.filter { $0 > mark }
      recalled[channel] = left.isEmpty ? nil : left
    }
  }

  /// An own message is read, and at this vendor all before it too.
  private func sent(_ data: OpenIMMessageData, in channel: ChannelID) {
    guard data.seq > 0 else { return }
    let wasUnread = unread(in: channel, newest: data.seq - 1, read: read[channel] ?? 0) > 0
    lift(channel, to: data.seq)
    if wasUnread { tellUnread(channel) }
  }

  /// The vendor counts numbers; those that hold a tombstone are not unread.
  func unread(in channel: ChannelID, newest: Int64, read: Int64) -> Int {
    let tombstones = recalled[channel]?.count { $0 > read && $0 <= newest } ?? 0
    return max(0, Int(clamping: newest.adding(-max(0, read))) - tombstones)
  }

  func tellUnread(_ channel: ChannelID) {
    let count = unread(in: channel, newest: newest[channel] ?? 0, read: read[channel] ?? 0)
    tell(.unreadChanged(channel, .exact(count)))
  }

  /// - Returns: whether this lowers the number of unread messages.
  @discardableResult
  func noteRecalled(_ data: OpenIMMessageData, in channel: ChannelID) -> Bool {
    guard data.contentType == OpenIMNotice.revoked, data.seq > read[channel] ?? 0 else { return false }
    return recalled[channel, default: []].insert(data.seq).inserted
  }

  // MARK: Typing

  private func typing(_ data: OpenIMMessageData, in channel: ChannelID) {
    let typist = OpenIMParticipant(channel: channel, user: UserID(data.sendID))
    guard typist.user != userID else { return }
    guard (try? JSONValue(parsing: data.content))?["msgTips"]?.string == "yes" else { return endTyping(typist) }
    let isNew = typists[typist] == nil
    typists[typist]?.cancel()
    // The vendor's client lets a hint stand for some ten seconds.
    typists[typist] = Task { [clock] in
      guard (try? await clock.sleep(for: .seconds(10))) != nil, !Task.isCancelled else { return }
      self.endTyping(typist)
    }
    if isNew { tell(.typingStarted(channel, typist.user)) }
  }

  private func endTyping(_ typist: OpenIMParticipant) {
    guard let task = typists.removeValue(forKey: typist) else { return }
    task.cancel()
    tell(.typingEnded(typist.channel, typist.user))
  }

  // MARK: Notices

  private func handleNotice(_ data: OpenIMMessageData, isOwn: Bool) async {
    guard let detail = OpenIMNotice.detail(of: data.content) else { return }
    switch data.contentType {
    case OpenIMNotice.read: readMark(detail, isOwn: isOwn)
    // What this connection did itself it has told its caller.
    case OpenIMNotice.revoked: if !isOwn { await revoked(detail) }
    case OpenIMNotice.deleted: if !isOwn { await deleted(detail) }
    case OpenIMNotice.historyCleared: cleared(detail, isOwn: isOwn)
    case OpenIMNotice.privateChatSet:
      if !isOwn, let id = detail["conversationID"]?.string { await changed(ChannelID(id), nil) }
    case OpenIMNotice.conversationChanged where !isOwn:
      for id in detail["conversationIDList"]?.array ?? [] {
        if let id = id.string { await changed(ChannelID(id), nil) }
      }
    default:
      if handleContact(data.contentType, detail) { return }
      guard let group = detail["group"], let id = group["groupID"]?.string else { return }
      await groupNotice(data.contentType, detail, ChannelID(OpenIMConversationID.group(id)), isOwn: isOwn)
    }
  }

  private func readMark(_ detail: JSONValue, isOwn: Bool) {
    guard let id = detail["conversationID"]?.string, let user = detail["markAsReadUserID"]?.string,
      let seq = detail["hasReadSeq"]?.int
    else { return }
    let channel = ChannelID(id)
    burn(in: channel, upTo: seq, mine: UserID(user) != userID)
    let reader = OpenIMParticipant(channel: channel, user: UserID(user))
    let isMine = reader.user == userID
    // The server keeps the higher mark, but its notice names what was asked for.
    if seq > (isMine ? read[channel] : othersRead[reader]) ?? 0, !isOwn {
      tell(.readChanged(channel, reader.user, MessagePosition(sequence: seq)))
    }
    guard isMine else {
      othersRead[reader] = max(othersRead[reader] ?? 0, seq)
      return
    }
    lift(channel, to: seq)
    tellUnread(channel)
  }

  private func revoked(_ detail: JSONValue) async {
    guard let id = detail["conversationID"]?.string, let seq = detail["seq"]?.int else { return }
    let channel = ChannelID(id)
    // The notice names no message id; the stored tombstone does.
    guard let stored = try? await fetch([seq], in: channel).first, let message = stored.message(in: id) else {
      return tell(.missedEvents(in: [channel]), .local)
    }
    tell(.messageRecalled(message))
    if seq > read[channel] ?? 0 { tellUnread(channel) }
  }

  private func deleted(_ detail: JSONValue) async {
    guard let id = detail["conversationID"]?.string else { return }
    let seqs = (detail["seqs"]?.array ?? []).compactMap(\.int)
    for data in (try? await fetch(seqs, in: ChannelID(id))) ?? [] where !data.serverMsgID.isEmpty {
      tell(.messageHidden(ChannelID(id), MessageID(data.serverMsgID)))
    }
  }

  private func cleared(_ detail: JSONValue, isOwn: Bool) {
    for id in (detail["conversationIDs"]?.array ?? []).compactMap(\.string) {
      let channel = ChannelID(id)
      lift(channel, to: newest[channel] ?? 0)
      if !isOwn { tell(.historyCleared(channel, upTo: MessagePosition(sequence: newest[channel] ?? 0))) }
    }
  }

  /// The whole channel as it is now; as the notice has it when it cannot be read.
  private func changed(_ id: ChannelID, _ group: JSONValue?) async {
    if let channel = try? await channel(id) { return tell(.channelChanged(channel)) }
    if let group, let channel = OpenIMMapping.channel(group: group) { tell(.channelChanged(channel)) }
  }

  private func groupNotice(_ type: Int64, _ detail: JSONValue, _ id: ChannelID, isOwn: Bool) async {
    let actor = detail["opUser"]?["userID"]?.string.map { UserID($0) }
    switch type {
    case OpenIMNotice.groupCreated:
      begun.insert(id)
      if !isOwn { await joined(id, detail) }
    case OpenIMNotice.memberInvited: await entered(id, detail, detail["invitedUserList"]?.array ?? [])
    case OpenIMNotice.memberEntered: await entered(id, detail, [detail["entrantUser"]].compactMap(\.self), isOwn: isOwn)
    case OpenIMNotice.memberKicked: left(id, detail["kickedUserList"]?.array ?? [], .removed(by: actor))
    case OpenIMNotice.memberQuit: left(id, [detail["quitUser"]].compactMap(\.self), .left, isOwn: isOwn)
    case OpenIMNotice.groupDismissed:
      forgetNumber(of: id)
      if !isOwn { tell(.channelDeleted(id)) }
    case OpenIMNotice.ownerTransferred:
      for key in ["oldGroupOwnerInfo", "newGroupOwner"] { memberChanged(id, detail[key]) }
    case OpenIMNotice.memberMuted, OpenIMNotice.memberUnmuted:
      if !isOwn { memberChanged(id, detail["mutedUser"]) }
    case OpenIMNotice.memberInfoSet: if !isOwn { memberChanged(id, detail["changedUser"]) }
    // A change of role is told by the member's notice that comes with it.
    case OpenIMNotice.memberMadeAdmin, OpenIMNotice.memberMadeOrdinary: break
    default: if !isOwn { await changed(id, detail["group"]) }
    }
  }

  private func joined(_ id: ChannelID, _ detail: JSONValue) async {
    note(id)
    if let channel = try? await channel(id) { return tell(.channelJoined(channel)) }
    if let group = detail["group"], let channel = OpenIMMapping.channel(group: group) { tell(.channelJoined(channel)) }
  }

  private func entered(_ id: ChannelID, _ detail: JSONValue, _ people: [JSONValue], isOwn: Bool = false) async {
    for member in people.compactMap({ OpenIMMapping.member($0, now: clock.now) }) {
      if member.user.id != userID { tell(.memberJoined(id, member)) } else if !isOwn { await joined(id, detail) }
    }
  }

  private func left(_ id: ChannelID, _ people: [JSONValue], _ reason: DepartureReason, isOwn: Bool = false) {
    for user in people.compactMap({ $0["userID"]?.string }).map({ UserID($0) }) {
      guard user == userID else {
        tell(.memberLeft(id, user, reason))
        continue
      }
      forgetNumber(of: id)
      read[id] = nil
      recalled[id] = nil
      if !isOwn { tell(.channelLeft(id, reason)) }
    }
  }

  private func memberChanged(_ id: ChannelID, _ json: JSONValue?) {
    guard let json, let member = OpenIMMapping.member(json, now: clock.now) else { return }
    tell(.memberChanged(id, member))
  }
}
