import ChatJSON
import LeanCloudWire
import UnifiedChat

extension LeanCloudAdapter {
  static let typingLife = Duration.seconds(10)

  func handle(_ frame: LeanCloudFrame) async {
    // Of somebody else: not for this client.
    if let peer = frame.peerID, let me, UserID(peer) != me { return }
    switch frame.command {
    case "direct": await received(frame)
    case "patch": await patched(frame)
    case "rcp": await receipt(frame)
    case "unread": await unreadTold(frame)
    case "conv": await changed(frame)
    default: break
    }
  }

  func publish(_ kind: ChatEvent.Kind, _ source: ChatEvent.Source = .live, cursor: Cursor? = nil) async {
    await line.publish(ChatEvent(kind, source: source, cursor: cursor))
  }

  // MARK: Messages

  private func received(_ frame: LeanCloudFrame) async {
    guard let channel = frame.string("cid") else { return }
    let id = ChannelID(channel)
    let sender = frame.string("fromPeerId").map { UserID($0) }
    if let isTyping = LeanCloudMapping.typing(frame) {
      if let sender, sender != me { await typing(isTyping, sender, in: id) }
      return
    }
    guard let stored = LeanCloudMapping.stored(direct: frame, channel: channel), echoes.isNew(MessageID(stored.id))
    else {
      return
    }
    var message = LeanCloudMapping.message(stored)
    // Not stored: it has no place in the history.
    if frame.bool("transient") == true { message.position = nil }
    let isOwn = sender == me
    if let sender, !isOwn { await typing(false, sender, in: id) }
    let counts = !isOwn && frame.bool("transient") != true && frame.int("convType") != 2
    // Before it is told, so that whoever hears of it and asks for the number gets it with this message.
    if counts {
      unread.arrived(
        LeanCloudUnread.Arrival(
          id: MessageID(stored.id), timestamp: stored.timestamp,
          isMention: message.mentions.everyone || me.map { message.mentions.users.contains($0) } ?? false), in: id)
    }
    await publish(.messageReceived(message), isOwn ? .echo : .live)
    guard counts else { return }
    await publishUnread(id)
    // Delivered: takes it off the offline queue, and tells a sender who asked.
    let fields: JSONObject = ["cid": .string(channel), "mid": .string(stored.id)]
    try? await line.tell(self.frame("ack", nil, fields), .markRead)
  }

  /// A replay may tell many at once: only with the last one all of them are told.
  private func patched(_ frame: LeanCloudFrame) async {
    let changes = (frame["patches"]?.array ?? []).compactMap { LeanCloudMapping.stored(patch: $0) }
    for time in changes.compactMap(\.patchTimestamp) + [frame.int("lastPatchTime")].compactMap(\.self) {
      patches.saw(time)
    }
    let cursor = patches.cursor
    for (index, stored) in changes.enumerated() {
      let message = LeanCloudMapping.message(stored)
      await publish(
        message.isRecalled ? .messageRecalled(message) : .messageUpdated(message),
        cursor: index == changes.count - 1 ? cursor : nil)
      if message.isRecalled, unread.recalled(MessageID(stored.id), in: message.channel) {
        await publishUnread(message.channel)
      }
    }
  }

  private func receipt(_ frame: LeanCloudFrame) async {
    guard let channel = frame.string("cid"), let time = frame.int("t"), let user = frame.string("from") else { return }
    let position =
      frame.string("id").map { MessagePosition(time: Timestamp(milliseconds: time), id: MessageID($0)) }
      ?? MessagePosition(major: time, minor: 0, tail: "~")
    let isRead = frame.bool("read") ?? false
    await publish(
      isRead
        ? .readChanged(ChannelID(channel), UserID(user), position)
        : .deliveredChanged(ChannelID(channel), UserID(user), position))
  }

  // MARK: Typing

  private func typing(_ isTyping: Bool, _ user: UserID, in channel: ChannelID) async {
    let key = TypingKey(channel: channel, user: user)
    let known = typing.removeValue(forKey: key)
    known?.cancel()
    guard isTyping else {
      if known != nil { await publish(.typingEnded(channel, user)) }
      return
    }
    let clock = environment.clock
    typing[key] = Task { [weak self] in
      do { try await clock.sleep(for: Self.typingLife) } catch { return }
      await self?.typingExpired(key)
    }
    if known == nil { await publish(.typingStarted(channel, user)) }
  }

  private func typingExpired(_ key: TypingKey) async {
    // Cancelled after its sleep: it has ended already, or begun anew.
    guard !Task.isCancelled else { return }
    typing[key] = nil
    await publish(.typingEnded(key.channel, key.user))
  }

  // MARK: Channels

  private func changed(_ frame: LeanCloudFrame) async {
    guard let name = frame.string("cid") else { return }
    let id = ChannelID(name)
    let actor = frame.string("initBy").flatMap { $0.isEmpty ? nil : UserID($0) }
    let users = frame.strings("m").map { UserID($0) }
    switch frame.operation {
    case "joined": await joined(id)
    case "members-joined": await membersJoined(users, id, by: actor)
    case "left": await departed(id, by: actor)
    case "members-left": await membersLeft(users, id, by: actor)
    case "updated":
      if let channel = try? await channel(id, .fetchChannel) { await publish(.channelChanged(channel)) }
    case "member-info-changed": await roleChanged(frame["info"], id)
    case "members-shutuped", "members-unshutuped":
      for user in users {
        let member = Member(user: User(id: user), isMuted: frame.operation == "members-shutuped")
        await publish(.memberChanged(id, member))
      }
    case "blocked":
      echoes.joined.remove(id)
      echoes.banned.insert(name)
      await publish(.channelLeft(id, .banned(by: actor)))
    case "members-blocked":
      for user in users where user != me {
        echoes.banned.insert("\(name) \(user)")
        await publish(.memberLeft(id, user, .banned(by: actor)))
      }
    default: break
    }
  }

  /// This user became a member by somebody else's doing.
  private func joined(_ id: ChannelID) async {
    guard echoes.joined.insert(id).inserted else { return }
    echoes.ownLeaves.remove(id)
    guard let channel = try? await channel(id, .fetchChannel) else { return }
    await publish(.channelJoined(channel))
  }

  private func membersJoined(_ users: [UserID], _ id: ChannelID, by actor: UserID?) async {
    guard let me else { return }
    guard users.contains(me) else {
      for user in users { await publish(.memberJoined(id, Member(user: User(id: user)))) }
      return
    }
    // The list of a channel's beginning, or of an own joining: the channel itself is the news.
    if actor == me, echoes.ownJoins.remove(id) != nil || echoes.startsInFlight > 0 {
      echoes.joined.insert(id)
      return
    }
    await joined(id)
  }

  private func departed(_ id: ChannelID, by actor: UserID?) async {
    echoes.joined.remove(id)
    echoes.ownJoins.remove(id)
    if echoes.banned.remove(id.rawValue) != nil { return }
    if actor == me {
      if echoes.ownLeaves.remove(id) == nil { await publish(.channelLeft(id, .left)) }
      return
    }
    await publish(.channelLeft(id, .removed(by: actor)))
  }

  private func membersLeft(_ users: [UserID], _ id: ChannelID, by actor: UserID?) async {
    for user in users {
      if user == me {
        if actor == me { await departed(id, by: actor) }
        continue
      }
      if echoes.banned.remove("\(id) \(user)") != nil { continue }
      await publish(.memberLeft(id, user, actor == user ? .left : .removed(by: actor)))
    }
  }

  private func roleChanged(_ info: JSONValue?, _ id: ChannelID) async {
    guard let user = info?["pid"]?.string, let role = info?["role"]?.string else { return }
    await publish(
      .memberChanged(id, Member(user: User(id: UserID(user)), role: LeanCloudConversation.role(named: role))))
  }
}
