import ChatCrypto
import ChatInterchange
import ChatJSON
import ChatTransport
import OpenIMWire
import UnifiedChat

/// A channel that came as a record, until its conversation is known.
struct OpenIMLoadedChannel: Sendable {
  var isDirect: Bool
  var groupID = ""
  var members: [String] = []
  /// "" while a direct channel has fewer than two members.
  var conversationID = ""
}

/// History as an operator would have written it into the database: ids, senders and times as they were, nothing pushed.
extension OpenIMEmulator {
  public func load(_ record: JSONValue, context: inout EmulatorContext) throws(EmulatorError) {
    let parsed: Record
    do { parsed = try Record(json: record) } catch {
      throw EmulatorError(.invalidRecord, "openim: \(error)")
    }
    switch parsed {
    case .user(let record): load(record, &context)
    case .channel(let record): try load(record, &context)
    case .member(let record): try load(record, &context)
    case .file(let record): load(record)
    case .message(let record): try load(record, &context)
    }
  }

  /// What is loaded, the service's owner has written.
  private var envelopes: EnvelopeReader { EnvelopeReader(key: EnvelopeKey(adminSecret: secret)) }

  private func load(_ record: UserRecord, _ context: inout EmulatorContext) {
    let id = record.user.id.rawValue
    let known = user(id) ?? addUser(id, nickname: "", context: &context)
    known.nickname = record.user.name ?? ""
    known.faceURL = record.user.avatarURL ?? ""
    known.ex = OpenIMExtra(origin: record.origin, customData: record.user.customData)
      .signed(by: record.origin.flatMap { _ in envelopes.key }, at: .user(id)).text
  }

  private func load(_ record: ChannelRecord, _ context: inout EmulatorContext) throws(EmulatorError) {
    let channel = record.channel
    let key = OpenIMKey(channel.id.rawValue)
    if channel.kind == .direct {
      if loadedChannels[key] == nil { loadedChannels[key] = OpenIMLoadedChannel(isDirect: true) }
      return
    }
    let id = OpenIMConversationID.groupID(of: channel.id.rawValue) ?? channel.id.rawValue
    let group = group(id) ?? OpenIMGroup(id: id, versionID: context.hex(24))
    if groups.updateValue(group, forKey: OpenIMKey(id)) == nil { groupOrder.append(id) }
    group.name = channel.name ?? ""
    group.faceURL = channel.coverURL ?? ""
    group.ex = OpenIMExtra(origin: record.origin, customData: channel.customData)
      .signed(by: record.origin.flatMap { _ in envelopes.key }, at: .channel(OpenIMConversationID.group(id))).text
    group.createTime = channel.createdAt?.milliseconds ?? context.now
    group.creator = channel.createdBy?.rawValue ?? ""
    group.status = channel.isFrozen ? OpenIMGroup.muted : OpenIMGroup.normal
    loadedChannels[key] = OpenIMLoadedChannel(
      isDirect: false, groupID: id, conversationID: OpenIMConversationID.group(id))
  }

  private func loaded(_ id: ChannelID, _ field: String) throws(EmulatorError) -> OpenIMLoadedChannel {
    if let channel = loadedChannels[OpenIMKey(id.rawValue)] { return channel }
    throw EmulatorError(.invalidRecord, "openim: /\(field): no channel \"\(id)\" was loaded before")
  }

  private func load(_ record: MemberRecord, _ context: inout EmulatorContext) throws(EmulatorError) {
    var channel = try loaded(record.channel, "channel")
    let id = record.member.user.id.rawValue
    let user = user(id) ?? addUser(id, nickname: record.member.user.name ?? "", context: &context)
    if channel.isDirect {
      guard !channel.members.contains(where: { $0.utf8.elementsEqual(id.utf8) }) else { return }
      guard channel.members.count < 2 else {
        throw EmulatorError(.invalidRecord, "openim: /user: a direct channel has two members")
      }
      channel.members.append(id)
      if channel.members.count == 2 { openDirect(&channel) }
      loadedChannels[OpenIMKey(record.channel.rawValue)] = channel
    } else if let group = group(channel.groupID), record.member.state == .joined {
      join(user, group, record.member, context.now)
    }
    if let position = record.member.readPosition, position.minor == 0, position.tail.isEmpty {
      user.sequences[OpenIMKey(channel.conversationID), default: .init()].hasRead = max(0, position.major)
    }
  }

  private func openDirect(_ channel: inout OpenIMLoadedChannel) {
    let id = OpenIMConversationID.single(channel.members[0], channel.members[1])
    channel.conversationID = id
    for (owner, peer) in [(0, 1), (1, 0)] {
      guard let user = user(channel.members[owner]), user[conversation: id] == nil else { continue }
      user[conversation: id] = OpenIMConversation(
        id: id, type: OpenIMSessionType.single, peer: channel.members[peer])
    }
  }

  private func join(_ user: OpenIMUser, _ group: OpenIMGroup, _ member: Member, _ now: Int64) {
    let isNew = group[member: user.id] == nil
    var entry = OpenIMGroupMember(userID: user.id, role: OpenIMRole.member, joinTime: now)
    entry.joinTime = member.joinedAt?.milliseconds ?? now
    switch member.role {
    case .owner:
      entry.role = OpenIMRole.owner
      group.owner = user.id
    case .admin: entry.role = OpenIMRole.admin
    case .member, .unknown: entry.role = OpenIMRole.member
    }
    if member.isMuted { entry.muteEndTime = member.mutedUntil?.milliseconds ?? .max }
    group[member: user.id] = entry
    guard isNew else { return }
    user.groups.append(OpenIMKey(group.id))
    user.groupLog.record(.insert, group.id)
    makeGroupRecord(of: user.id, group.id)
  }

  private func load(_ record: FileRecord) {
    let digest = OpenIMUpload.hash(ofParts: [Hex.encode(Digest.md5(record.bytes))])
    objects.blobs[digest] = OpenIMObjectStore.File(bytes: record.bytes, mimeType: record.mimeType ?? "")
    objects.names[OpenIMKey(Self.loadedName(record.sha256))] = digest
  }

  private static func loadedName(_ sha256: String) -> String { "loaded/\(sha256)" }

  private func load(_ record: MessageRecord, _ context: inout EmulatorContext) throws(EmulatorError) {
    let channel = try loaded(record.message.channel, "channel")
    guard !channel.conversationID.isEmpty else {
      throw EmulatorError(
        .invalidRecord, "openim: /channel: \"\(record.message.channel)\" is direct and has no two members yet")
    }
    var message = record.message
    if let sha256 = message.content.attachment?.sha256,
      objects.names[OpenIMKey(Self.loadedName(sha256))] != nil
    {
      message.content.attachment?.url = objectURL(Self.loadedName(sha256), baseURL)
    }
    let sender = message.sender?.rawValue ?? admin
    if user(sender) == nil { addUser(sender, nickname: message.senderName ?? "", context: &context) }
    var data = OpenIMMessageData()
    data.sendID = sender
    if channel.isDirect {
      data.sessionType = OpenIMSessionType.single
      data.recvID = channel.members.first { !$0.utf8.elementsEqual(sender.utf8) } ?? sender
    } else {
      data.sessionType = OpenIMSessionType.group
      data.groupID = channel.groupID
    }
    fill(&data, message, record.origin, in: channel.conversationID, &context)
    try append(data, message.position, to: channel.conversationID)
  }

  private func fill(
    _ data: inout OpenIMMessageData, _ message: Message, _ origin: Origin?, in conversation: String,
    _ context: inout EmulatorContext
  ) {
    let outgoing = OpenIMOutgoing(message, sender: data.sendID, form: .socket, origin: origin)
    data.clientMsgID = message.clientMessageID?.rawValue ?? context.hex(32)
    data.serverMsgID = message.id?.rawValue ?? context.hex(32)
    data.senderNickname = message.senderName ?? user(data.sendID)?.nickname ?? ""
    data.msgFrom = 100
    data.contentType = outgoing.element.type
    data.content = outgoing.element.bytes
    data.atUserIDList = outgoing.element.mentioned
    data.sendTime = message.createdAt.milliseconds
    data.createTime = message.createdAt.milliseconds
    data.status = OpenIMMessageStatus.sent
    let place = OpenIMMessageData.place(
      in: conversation, sender: data.sendID, time: data.sendTime, outgoing.extra)
    data.ex = outgoing.extra.signed(by: envelopes.key, at: place).text
    guard case .recalled(let revoker, let time) = message.content else { return }
    let detail: JSONValue = [
      "revokerID": .string(revoker?.rawValue ?? ""), "revokerRole": 0, "clientMsgID": .string(data.clientMsgID),
      "revokerNickname": "", "revokeTime": .int(time?.milliseconds ?? data.sendTime),
      "sourceMessageSendTime": .int(data.sendTime), "sourceMessageSendID": .string(data.sendID),
      "sourceMessageSenderNickname": .string(data.senderNickname), "sessionType": .int(data.sessionType),
      "seq": 0, "ex": "",
    ]
    data.contentType = OpenIMNotice.revoked
    data.content = OpenIMNotice.content(detail: detail)
  }

  /// A position that is a sequence number is kept, with holes before it; other messages come after the last one.
  private func append(
    _ data: OpenIMMessageData, _ position: MessagePosition?, to id: String
  ) throws(EmulatorError) {
    let log = log(id)
    var data = data
    data.seq = log.maxSeq + 1
    if let position, position.minor == 0, position.tail.isEmpty {
      guard position.major > log.maxSeq, position.major - log.maxSeq <= 100_000 else {
        throw EmulatorError(
          .invalidRecord,
          "openim: /position: \(position.major) does not come after \(log.maxSeq), by 100,000 at most")
      }
      while log.maxSeq < position.major - 1 { log.messages.append(nil) }
      data.seq = position.major
    }
    log.messages.append(data)
    log.lastStoredAt = data.sendTime
  }

  // MARK: The truth

  public func records() -> [JSONValue] {
    userRecords() + channelRecords() + fileRecords() + messageRecords()
  }

  private func userRecords() -> [JSONValue] {
    userOrder.compactMap { user($0) }.filter { $0.managerLevel < 2 }.map { user in
      let extra = OpenIMExtra.read(user.ex, .tool(envelopes), at: .user(user.id)).extra
      let record = UserRecord(
        user: User(
          id: UserID(user.id), name: user.nickname.isEmpty ? nil : user.nickname,
          avatarURL: user.faceURL.isEmpty ? nil : user.faceURL, customData: extra.customData),
        origin: extra.origin)
      return Record.user(record).json()
    }
  }

  private func channelRecords() -> [JSONValue] {
    var list: [JSONValue] = []
    for group in groupOrder.compactMap({ group($0) }) where group.status != OpenIMGroup.dismissed {
      let id = ChannelID(OpenIMConversationID.group(group.id))
      let extra = OpenIMExtra.read(
        group.ex, .tool(envelopes), at: .channel(OpenIMConversationID.group(group.id))).extra
      var channel = Channel(
        id: id, kind: .group, name: group.name.isEmpty ? nil : group.name,
        coverURL: group.faceURL.isEmpty ? nil : group.faceURL, customData: extra.customData)
      channel.isFrozen = group.status == OpenIMGroup.muted
      channel.createdAt = Timestamp(milliseconds: group.createTime)
      channel.createdBy = group.creator.isEmpty ? nil : UserID(group.creator)
      list.append(Record.channel(ChannelRecord(channel: channel, origin: extra.origin)).json())
      for member in group.sortedMembers { list.append(memberRecord(id, member, group)) }
    }
    for (id, pair) in singleChats() {
      let channel = Channel(id: ChannelID(id), kind: .direct)
      list.append(Record.channel(ChannelRecord(channel: channel)).json())
      for user in pair {
        let record = MemberRecord(channel: ChannelID(id), member: readMember(user, id))
        list.append(Record.member(record).json())
      }
    }
    return list
  }

  /// Each single chat once, with its two users.
  private func singleChats() -> [(id: String, users: [String])] {
    var seen: Set<OpenIMKey> = []
    return userOrder.compactMap { user($0) }.flatMap { user in
      user.conversationIDs.compactMap { id -> (String, [String])? in
        guard let record = user[conversation: id], record.type == OpenIMSessionType.single,
          seen.insert(OpenIMKey(id)).inserted
        else { return nil }
        return (id, [user.id, record.peer])
      }
    }
  }

  private func readMember(_ id: String, _ conversation: String) -> Member {
    let read = user(id)?.sequences[OpenIMKey(conversation)]?.hasRead ?? 0
    return Member(user: User(id: UserID(id)), readPosition: read > 0 ? MessagePosition(sequence: read) : nil)
  }

  private func memberRecord(_ channel: ChannelID, _ entry: OpenIMGroupMember, _ group: OpenIMGroup) -> JSONValue {
    var member = readMember(entry.userID, channel.rawValue)
    member.role =
      entry.role == OpenIMRole.owner ? .owner : entry.role == OpenIMRole.admin ? .admin : .member
    member.joinedAt = Timestamp(milliseconds: entry.joinTime)
    if entry.muteEndTime > 0 {
      member.isMuted = true
      member.mutedUntil = entry.muteEndTime == .max ? nil : Timestamp(milliseconds: entry.muteEndTime)
    }
    return Record.member(MemberRecord(channel: channel, member: member)).json()
  }

  private func fileRecords() -> [JSONValue] {
    objects.blobs.sorted { $0.key < $1.key }.map { _, file in
      Record.file(
        FileRecord(
          sha256: Hex.encode(Digest.sha256(file.bytes)), mimeType: file.mimeType.isEmpty ? nil : file.mimeType,
          bytes: file.bytes)
      ).json()
    }
  }

  private func messageRecords() -> [JSONValue] {
    let ids = logs.keys.map(\.text).filter { !OpenIMConversationID.isNotice($0) }
    return ids.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.flatMap { id in
      log(id).messages.compactMap(\.self).compactMap { data -> JSONValue? in
        guard let read = data.read(in: id, .tool(envelopes)) else { return nil }
        return Record.message(MessageRecord(message: read.message, origin: read.origin)).json()
      }
    }
  }
}
