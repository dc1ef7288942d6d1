import ChatCrypto
import ChatInterchange
import ChatJSON
import ChatTransport
import LeanCloudWire
import UnifiedChat

// Neutral records in and out. Ids that this vendor could not have made get one that is always the same for them, so
// that records may refer to one another in any run.

extension LeanCloudEmulator {
  public func load(_ record: JSONValue, context: inout EmulatorContext) throws(EmulatorError) {
    borrow(context)
    defer { _ = giveBack(&context) }
    let parsed: Record
    do { parsed = try Record(json: record) } catch { throw EmulatorError(.invalidRecord, error.description) }
    switch parsed {
    case .user(let user): try load(user)
    case .channel(let channel): try load(channel)
    case .member(let member): try load(member)
    case .file(let file): load(file)
    case .message(let message): try load(message)
    }
  }

  /// What is loaded, the service's owner has written.
  private var envelopes: EnvelopeReader { EnvelopeReader(key: EnvelopeKey(adminSecret: options.adminSecret)) }

  private func invalid(_ field: String, _ reason: String) -> EmulatorError {
    EmulatorError(.invalidRecord, "/\(field): \(reason)")
  }

  private func client(_ id: UserID, _ field: String) throws(EmulatorError) -> String {
    guard Self.isClientID(id.rawValue) else { throw invalid(field, "a client id has 1 to 64 characters") }
    return id.rawValue
  }

  private func load(_ record: UserRecord) throws(EmulatorError) {
    let id = try client(record.user.id, "id")
    // Whoever was never registered has no row of a user; the client id alone is enough to chat.
    if record.isPlaceholder { return }
    let columns = LeanCloudUser.columns(record.user, origin: record.origin, envelopes.key)
    let old = users[Key(id)]
    addUser(
      UserRow(
        objectID: id, username: id, columns: columns, sessionToken: old?.sessionToken, createdAt: old?.createdAt ?? now,
        updatedAt: now))
  }

  func channelID(_ id: ChannelID) -> String { aliases[Key(id.rawValue)] ?? LeanCloudID.objectID(for: id.rawValue) }

  private func load(_ record: ChannelRecord) throws(EmulatorError) {
    let channel = record.channel
    let kind = loadsFirstModel ? firstModelKind(channel.kind) : try currentKind(channel.kind)
    let id = channelID(channel.id)
    let conversation =
      conversation(id) ?? Conversation(id: id, kind: kind, createdAt: channel.createdAt?.milliseconds ?? now)
    var kept = JSONObject()
    if channel.isFrozen { kept["frozen"] = true }
    conversation.columns = LeanCloudConversation.columns(
      customData: channel.customData, kept: kept, origin: record.origin,
      EnvelopeSigning(envelopes.key, .channel(id)))
    conversation.columns["name"] = channel.name.map { .string($0) }
    conversation.columns["coverURL"] = channel.coverURL.map { .string($0) }
    if !channel.metadata.isEmpty {
      let sorted = channel.metadata.sorted { Key($0.key) < Key($1.key) }
      conversation.columns["metadata"] = .object(JSONObject(sorted.map { ($0.key, .string($0.value)) }))
    }
    conversation.creator = try channel.createdBy.map { (id) throws(EmulatorError) in try client(id, "createdBy") } ?? ""
    conversation.isUnique = kind == .normal && (channel.isDistinct || channel.kind == .direct)
    if kind == .temporary {
      conversation.ttl = 86_400
      conversation.expiresAt = now &+ 86_400_000
    }
    add(conversation)
  }

  private func firstModelKind(_ kind: ChannelKind) -> Conversation.Kind { kind == .direct ? .pair : .group }

  private func currentKind(_ kind: ChannelKind) throws(EmulatorError) -> Conversation.Kind {
    switch kind {
    case .direct, .group: .normal
    case .open: .room
    case .service: .service
    case .temporary: .temporary
    case .unknown(let name): throw invalid("kind", "this vendor has no channels of kind \"\(name)\"")
    }
  }

  private func located(_ id: ChannelID) throws(EmulatorError) -> Conversation {
    guard let conversation = conversation(channelID(id)) else {
      throw invalid("channel", "no channel \"\(id)\" was loaded before")
    }
    return conversation
  }

  private func load(_ record: MemberRecord) throws(EmulatorError) {
    let conversation = try located(record.channel)
    let member = record.member
    let id = try client(member.user.id, "user")
    guard member.state == .joined else {
      if member.state == .banned { conversation.blocked.insert(id) }
      // Invitations and former members are no state of this vendor.
      return
    }
    if limits, conversation.members.count >= Self.memberLimit, !conversation.members.contains(id) {
      throw invalid("channel", "\"\(record.channel)\" has \(Self.memberLimit) members already")
    }
    let last = conversation.messages.last?.place
    addMember(id, to: conversation)
    conversation.joinedAt[Key(id)] = member.joinedAt?.milliseconds ?? conversation.createdAt
    conversation.marks[Key(id)] = Marks(
      read: member.readPosition.map { place($0, conversation) } ?? last,
      delivered: member.deliveredPosition.map { place($0, conversation) })
    if let role = LeanCloudConversation.roleName(member.role), role != "Member" {
      setRole(role, of: id, in: conversation)
    }
    if member.isMuted { conversation.silenced[Key(id)] = member.mutedUntil?.milliseconds ?? .max }
    if conversation.isUnique { remakeUnique(conversation) }
    if conversation.kind == .pair, conversation.members.count == 2 { renamePair(conversation, record.channel) }
  }

  private func place(_ position: MessagePosition, _ conversation: Conversation) -> Place {
    Place(
      timestamp: position.major, id: Key(LeanCloudID.messageID(for: position.tail, channel: conversation.id)))
  }

  private func remakeUnique(_ conversation: Conversation) {
    if let old = conversation.uniqueID, uniqueConversations[Key(old)] == conversation.id {
      uniqueConversations[Key(old)] = nil
    }
    makeUnique(conversation)
  }

  /// A pair of the 2014 model is found by the digest of its peers.
  private func renamePair(_ old: Conversation, _ loaded: ChannelID) {
    let members = old.members.list
    let new = pair(members[0], members[1])
    guard new.id != old.id else { return }
    new.columns = old.columns
    if var attributes = new.columns["attr"]?.object, let envelope = attributes[LeanCloudBody.marker] {
      attributes[LeanCloudBody.marker] = Provenance.json(
        origin: Provenance(envelope)?.origin, kept: envelope["kept"]?.object ?? JSONObject(),
        EnvelopeSigning(envelopes.key, .channel(new.id)))
      new.columns["attr"] = .object(attributes)
    }
    delete(old)
    aliases[Key(loaded.rawValue)] = new.id
  }

  private func load(_ record: FileRecord) {
    let file = FileRow(
      objectID: LeanCloudID.objectID(for: "file:\(record.sha256)"), key: record.sha256,
      name: record.name ?? record.sha256,
      mimeType: record.mimeType ?? "application/octet-stream",
      metaData: ["size": .int(Int64(record.bytes.count)), "sha256": .string(record.sha256)], bytes: record.bytes,
      createdAt: now)
    add(file)
    filesByKey[Key(file.key)] = file.objectID
  }

  private func load(_ record: MessageRecord) throws(EmulatorError) {
    let conversation = try located(record.message.channel)
    var message = record.message
    guard let id = message.id else { throw invalid("id", "missing") }
    if let sender = message.sender { _ = try client(sender, "sender") }
    let ownID = LeanCloudID.messageID(for: id.rawValue, channel: conversation.id)
    if let reply = message.replyTo {
      message.replyTo?.id = MessageID(LeanCloudID.messageID(for: reply.id.rawValue, channel: conversation.id))
    }
    if let parent = message.threadParent {
      message.threadParent = MessageID(LeanCloudID.messageID(for: parent.rawValue, channel: conversation.id))
    }
    try attach(&message)
    let stored = storedForm(of: message, id: ownID, in: conversation.id, origin: record.origin)
    guard conversation.insert(stored) else { throw invalid("id", "\"\(id)\" was loaded before") }
    if let time = stored.patchTimestamp { conversation.patches.append((time, Key(ownID))) }
    conversation.lastImported = max(conversation.lastImported ?? stored.place, stored.place)
    appHistoryIsStale = true
  }

  /// Bytes that were loaded get this server's address.
  private func attach(_ message: inout Message) throws(EmulatorError) {
    guard var attachment = message.content.attachment else { return }
    if let sha256 = attachment.sha256, let id = filesByKey[Key(sha256)], let file = files[Key(id)] {
      attachment.url = address(of: file)
      attachment.name = attachment.name ?? file.name
      attachment.mimeType = attachment.mimeType ?? file.mimeType
      attachment.size = attachment.size ?? file.bytes.map { Int64($0.count) }
    }
    guard attachment.url != nil else {
      throw invalid("content/attachment", "neither a url nor the sha256 of a file that was loaded before")
    }
    message.content.attachment = attachment
  }

  private func storedForm(
    of message: Message, id: String, in conversation: String, origin: Origin?
  ) -> StoredMessage {
    var stored = StoredMessage(
      id: id, from: message.sender?.rawValue ?? "", timestamp: message.createdAt.milliseconds, data: "")
    if case .recalled(_, let time) = message.content {
      stored.data = LeanCloudBody.recalledText
      stored.isRecalled = true
      stored.patchTimestamp = time?.milliseconds ?? message.editedAt?.milliseconds
      return stored
    }
    let body = LeanCloudBody.encode(
      message, origin: origin,
      signedBy: LeanCloudSigner(envelopes.key, channel: conversation, from: stored.from))
    stored.data = body.text
    stored.isBinary = body.isBinary
    stored.mentions = body.mentions
    stored.mentionsAll = body.mentionsAll
    stored.patchTimestamp = message.editedAt?.milliseconds
    return stored
  }

  // MARK: Out

  public func records() -> [JSONValue] {
    var records: [JSONValue] = userOrder.compactMap { users[Key($0)] }.map {
      Record.user(UserRecord(user: LeanCloudUser.user($0.object, .tool(envelopes)).user)).json()
    }
    for id in fileOrder {
      guard let file = files[Key(id)], let bytes = file.bytes else { continue }
      let sha256 = Hex.encode(Digest.sha256(bytes))
      records.append(
        Record.file(FileRecord(sha256: sha256, name: file.name, mimeType: file.mimeType, bytes: bytes)).json())
    }
    for id in conversationOrder {
      if let conversation = conversation(id) { append(conversation, to: &records) }
    }
    return records
  }

  private func append(_ conversation: Conversation, to records: inout [JSONValue]) {
    guard let described = LeanCloudConversation.channel(conversation.object(), .tool(envelopes)) else { return }
    var channel = described.channel
    channel.memberCount = nil
    if conversation.kind == .pair { channel.kind = .direct }
    if conversation.kind == .group { channel.kind = .group }
    records.append(Record.channel(ChannelRecord(channel: channel, origin: described.origin)).json())
    for member in conversation.members.list { records.append(memberRecord(member, conversation)) }
    for stored in conversation.messages {
      guard let decoded = try? LeanCloudBody.decode(stored.wireForm(in: conversation.id), .tool(envelopes)) else {
        continue
      }
      records.append(Record.message(MessageRecord(message: decoded.message, origin: decoded.origin)).json())
    }
  }

  private func memberRecord(_ client: String, _ conversation: Conversation) -> JSONValue {
    let key = Key(client)
    var member = Member(user: User(id: UserID(client)))
    member.role = conversation.roles[key].map { LeanCloudConversation.role(named: $0.role) } ?? .member
    member.joinedAt = conversation.joinedAt[key].map { Timestamp(milliseconds: $0) }
    if let until = conversation.silenced[key], until > now {
      member.isMuted = true
      member.mutedUntil = until == .max ? nil : Timestamp(milliseconds: until)
    }
    func position(_ place: Place?) -> MessagePosition? {
      place.map { MessagePosition(time: Timestamp(milliseconds: $0.timestamp), id: MessageID($0.id.text)) }
    }
    member.readPosition = position(conversation.marks[key]?.read)
    member.deliveredPosition = position(conversation.marks[key]?.delivered)
    return Record.member(MemberRecord(channel: ChannelID(conversation.id), member: member)).json()
  }
}

extension StoredMessage {
  func wireForm(in channel: String) -> LeanCloudStoredMessage {
    LeanCloudStoredMessage(
      channel: channel, id: id, from: from, timestamp: timestamp, data: data, isBinary: isBinary,
      patchTimestamp: patchTimestamp, mentions: mentions, mentionsAll: mentionsAll)
  }
}
