import ChatJSON
import SendbirdWire
import UnifiedChat

// What the server says of its own accord, one frame after the other.
extension SendbirdAdapter {
  func handleEvent(_ frame: SendbirdFrame, _ mine: UInt64) async {
    guard epoch == mine, let user else { return }
    releaseMark(by: frame)
    noteUnread(frame.payload)
    if frame.payload.text("channel_type") == "open", let url = frame.payload.text("channel_url") {
      openChannels.insert(ChannelID(url))
    }
    switch frame.command {
    case "MESG", "FILE", "ADMM", "BRDM": await received(frame, me: user)
    case "MEDI", "FEDI", "AEDI": updated(frame)
    case "DELM": deleted(frame)
    case "READ": read(frame, me: user)
    case "DLVR": delivered(frame, me: user)
    case "MRCT": await reacted(frame, mine)
    case "SYEV": await systemEvent(frame, mine, me: user)
    default: break
    }
  }

  /// `unread_cnt` rides on any frame; the newest wins, the first value only seeds.
  func noteUnread(_ payload: JSONObject) {
    guard let count = payload.object("unread_cnt"), let all = count.number("all") else { return }
    let time = count.number("ts") ?? 0
    guard time >= unreadTime else { return }
    unreadTime = time
    defer { unreadTotalTold = all }
    if let told = unreadTotalTold, told != all { publish(.totalUnreadChanged(.exact(total(all)))) }
  }

  // MARK: Messages

  private func received(_ frame: SendbirdFrame, me: UserID) async {
    guard let message = SendbirdView.message(frame), let id = message.id, told.insert("M\(id)") else { return }
    if let sender = message.sender { endTyping(sender, in: message.channel) }
    publish(.messageReceived(message), source: message.sender == me ? .echo : .live)
    if message.sender == me { sendingReads(message.channel) }
    // Feeds delivery receipts; the vendor's client sends it for every message of somebody else in a group.
    guard message.sender != me, frame.payload.text("channel_type") != "open", frame.payload.flag("is_super") != true
    else {
      return
    }
    let number = frame.payload["msg_id"] ?? .null
    let payload: JSONObject = ["channel_url": .string(message.channel.rawValue), "msg_id": number, "req_id": ""]
    try? await transmit(SendbirdFrame("MACK", payload), .markRead)
  }

  private func updated(_ frame: SendbirdFrame) {
    guard let message = SendbirdView.message(frame), let id = message.id,
      told.insert("U\(id)/\(frame.payload.number("updated_at") ?? 0)")
    else { return }
    publish(.messageUpdated(message))
  }

  private func deleted(_ frame: SendbirdFrame) {
    guard let url = frame.payload.text("channel_url"), let number = frame.payload.number("msg_id"),
      told.insert("D\(number)")
    else { return }
    // The frame says no more than the id: where the message stood, the client knows.
    let time = frame.payload.number("ts").map { Timestamp(milliseconds: $0) }
    let tombstone = Message(
      channel: ChannelID(url), id: MessageID(String(number)), sender: nil, createdAt: time ?? clock.now,
      content: .recalled(by: nil, at: time))
    publish(.messageRecalled(tombstone))
  }

  private func reacted(_ frame: SendbirdFrame, _ mine: UInt64) async {
    guard let url = frame.payload.text("channel_url"), let number = frame.payload.number("msg_id") else { return }
    let (channel, id) = (ChannelID(url), MessageID(String(number)))
    // The frame tells one change; the event shows all reactions. A later frame of the same message that waits already
    // shows this one's as well.
    waitingReactions[id, default: 1] -= 1
    if let more = waitingReactions[id], more > 0 { return }
    waitingReactions[id] = nil
    do throws(ChatError) {
      let message = try await self.message(id, in: channel)
      if epoch == mine { publish(.reactionsChanged(channel, id, message.reactions)) }
    } catch { untold(in: channel, mine, error) }
  }

  /// What an event should have told could not be fetched: whoever listens reads the channel again. Nothing is said of
  /// a channel or message that is out of reach, or where the link was lost, whose return tells of everything.
  private func untold(in channel: ChannelID, _ mine: UInt64, _ error: ChatError) {
    guard epoch == mine else { return }
    switch error.kind {
    case .notFound, .permission: return
    default: publish(.missedEvents(in: [channel]))
    }
  }

  // MARK: Receipts

  private func read(_ frame: SendbirdFrame, me: UserID) {
    guard let url = frame.payload.text("channel_url"), let time = frame.payload.number("ts"),
      let who = frame.payload.object("user").flatMap(SendbirdUser.init)?.id,
      let position = SendbirdMapping.position(time)
    else { return }
    publish(.readChanged(ChannelID(url), who, position))
    if who == me { publish(.unreadChanged(ChannelID(url), .exact(0)), source: .echo) }
  }

  private func delivered(_ frame: SendbirdFrame, me: UserID) {
    guard let url = frame.payload.text("channel_url") else { return }
    for (who, time) in frame.payload.object("updated") ?? JSONObject() where UserID(who) != me {
      guard let time = time.int, let position = SendbirdMapping.position(time) else { continue }
      publish(.deliveredChanged(ChannelID(url), UserID(who), position))
    }
  }

  // MARK: Channels

  private func systemEvent(_ frame: SendbirdFrame, _ mine: UInt64, me: UserID) async {
    guard let url = frame.payload.text("channel_url") else { return }
    let channel = ChannelID(url)
    let data = frame.payload.object("data") ?? JSONObject()
    let time = frame.payload.number("ts") ?? .max
    switch frame.payload.number("cat") {
    case SendbirdCategory.joined: await membersJoined(channel, people(data, "users"), mine, me, since: time)
    case SendbirdCategory.invited: await invited(channel, data, mine, me, since: time)
    case SendbirdCategory.left:
      for member in people(data, "users") { memberLeft(channel, member.user.id, .left, me) }
    case SendbirdCategory.invitationDeclined:
      if let user = data.object("invitee").flatMap(SendbirdUser.init) { memberLeft(channel, user.id, .left, me) }
    case SendbirdCategory.banned:
      if let user = SendbirdUser(data) { memberLeft(channel, user.id, .banned(by: nil), me) }
    case SendbirdCategory.muted, SendbirdCategory.unmuted: muteChanged(channel, frame, data)
    case SendbirdCategory.operatorsChanged: operatorsChanged(channel, people(data, "operators"))
    case SendbirdCategory.entered:
      if let user = SendbirdMember(data), user.user.id != me {
        publish(.memberJoined(channel, SendbirdMapping.member(user)))
      }
    case SendbirdCategory.exited:
      if let user = SendbirdUser(data), user.id != me { publish(.memberLeft(channel, user.id, .left)) }
    case SendbirdCategory.typingStarted:
      if let user = SendbirdUser(data), user.id != me { startTyping(user.id, in: channel) }
    case SendbirdCategory.typingEnded:
      if let user = SendbirdUser(data) { endTyping(user.id, in: channel) }
    case SendbirdCategory.frozen, SendbirdCategory.unfrozen, SendbirdCategory.propertyChanged,
      SendbirdCategory.metadataChanged, SendbirdCategory.hidden, SendbirdCategory.unhidden:
      await tellChannel(channel, mine, since: time)
    case SendbirdCategory.deleted:
      entered.remove(channel)
      releaseMark(channel)
      publish(.channelDeleted(channel))
    default: break
    }
  }

  private func people(_ data: JSONObject, _ key: String) -> [SendbirdMember] {
    let list = data.list(key).compactMap { $0.object.flatMap(SendbirdMember.init) }
    return list.isEmpty ? [SendbirdMember(data)].compactMap(\.self) : list
  }

  private func tellChannel(_ id: ChannelID, _ mine: UInt64, since time: Int64) async {
    guard let channel = await snapshot(id, mine), epoch == mine else { return }
    publish(.channelChanged(Self.asOf(time, channel)))
  }

  /// The channel as it is now. Who is an operator now may have an event of its own to come, so it is not noted here.
  private func snapshot(_ id: ChannelID, _ mine: UInt64) async -> Channel? {
    let known = operators[id]
    defer { operators[id] = known }
    do throws(ChatError) { return try await channel(id) } catch {
      untold(in: id, mine, error)
      return nil
    }
  }

  /// The channel is fetched after its event: a message that came meanwhile has an event of its own, and must not be
  /// known before it.
  private static func asOf(_ time: Int64, _ channel: Channel) -> Channel {
    guard let last = channel.lastMessage, last.createdAt.milliseconds >= time else { return channel }
    var channel = channel
    channel.lastMessage = nil
    (channel.unread, channel.unreadMentions) = (.unknown, .unknown)
    return channel
  }

  private func joinKey(_ channel: ChannelID, _ user: UserID) -> Key { Key("\(channel)\u{1F}\(user)") }

  /// Invitations that are accepted by themselves come as an invitation and as a joining: one event.
  private func membersJoined(
    _ channel: ChannelID, _ members: [SendbirdMember], _ mine: UInt64, _ me: UserID, since time: Int64
  ) async {
    for member in members where joined.insert(joinKey(channel, member.user.id)).inserted {
      if member.user.id == me {
        guard let full = await snapshot(channel, mine), epoch == mine else {
          // The second frame of the pair may tell it.
          joined.remove(joinKey(channel, me))
          continue
        }
        publish(.channelJoined(Self.asOf(time, full)))
      } else {
        publish(.memberJoined(channel, SendbirdMapping.member(member)))
      }
    }
    if joined.count > 20_000 { joined = [] }
  }

  private func invited(
    _ channel: ChannelID, _ data: JSONObject, _ mine: UInt64, _ me: UserID, since time: Int64
  ) async {
    let inviter = data.object("inviter").flatMap(SendbirdUser.init)?.id
    let invitees = data.list("invitees").compactMap { $0.object.flatMap(SendbirdMember.init) }
    await membersJoined(channel, invitees.filter { $0.state == "joined" }, mine, me, since: time)
    for invitee in invitees where invitee.state != "joined" {
      if invitee.user.id == me {
        publish(.invited(channel, by: inviter))
      } else {
        publish(.memberJoined(channel, SendbirdMapping.member(invitee)))
      }
    }
  }

  private func memberLeft(_ channel: ChannelID, _ user: UserID, _ reason: DepartureReason, _ me: UserID) {
    joined.remove(joinKey(channel, user))
    if user == me {
      entered.remove(channel)
      releaseMark(channel)
    }
    if user == me { publish(.channelLeft(channel, reason)) } else { publish(.memberLeft(channel, user, reason)) }
  }

  private func muteChanged(_ channel: ChannelID, _ frame: SendbirdFrame, _ data: JSONObject) {
    guard let wire = SendbirdMember(data) else { return }
    var member = SendbirdMapping.member(wire)
    member.role = operators[channel]?.contains(wire.user.id) == true ? .admin : .member
    member.isMuted = frame.payload.number("cat") == SendbirdCategory.muted
    if member.isMuted, let end = data.number("end_at"), end > 0 { member.mutedUntil = Timestamp(milliseconds: end) }
    publish(.memberChanged(channel, member))
  }

  /// The frame has the whole new list; who is told are those who came to it or went from it. Where the old list is not
  /// known, all of the new one.
  private func operatorsChanged(_ channel: ChannelID, _ list: [SendbirdMember]) {
    let before = operators[channel] ?? []
    let now = Set(list.map(\.user.id))
    operators[channel] = now
    for wire in list where !before.contains(wire.user.id) {
      var member = SendbirdMapping.member(wire)
      member.role = .admin
      publish(.memberChanged(channel, member))
    }
    for user in before.subtracting(now).sorted() { publish(.memberChanged(channel, Member(user: User(id: user)))) }
  }

  // MARK: Typing

  private static let typingLife: Duration = .seconds(10)

  private func startTyping(_ user: UserID, in channel: ChannelID) {
    let key = joinKey(channel, user)
    let known = typists[key]
    known?.cancel()
    let clock = self.clock
    typists[key] = Task { [weak self] in
      guard (try? await clock.sleep(for: Self.typingLife)) != nil, !Task.isCancelled else { return }
      await self?.endTyping(user, in: channel)
    }
    if known == nil { publish(.typingStarted(channel, user)) }
  }

  func endTyping(_ user: UserID, in channel: ChannelID) {
    guard let task = typists.removeValue(forKey: joinKey(channel, user)) else { return }
    task.cancel()
    publish(.typingEnded(channel, user))
  }
}
