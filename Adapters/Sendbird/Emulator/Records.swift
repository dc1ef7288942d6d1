import ChatInterchange
import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

// Neutral records in and out.
extension SendbirdEmulator {
  public func load(_ record: JSONValue, context: inout EmulatorContext) throws(EmulatorError) {
    now = context.now
    random = context.random
    defer { context.random = random }
    let parsed: Record
    do { parsed = try Record(json: record) } catch {
      throw EmulatorError(.invalidRecord, "\(error)")
    }
    switch parsed {
    case .user(let record): load(record)
    case .channel(let record): try load(record)
    case .member(let record): try load(record)
    case .file(let record):
      files[record.sha256] = StoredFile(
        name: record.name ?? "file", type: record.mimeType ?? "application/octet-stream", bytes: record.bytes)
    case .message(let record): try load(record)
    }
  }

  /// What is loaded, the service's owner has written.
  private var envelopes: EnvelopeReader { EnvelopeReader(key: EnvelopeKey(adminSecret: options.adminSecret)) }

  private func load(_ record: UserRecord) {
    let person = addPerson(record.user.id)
    let form = SendbirdUserForm(record, origin: record.origin, envelopes.key)
    person.nickname = form.nickname
    person.profileURL = form.profileURL
    person.metadata = form.metadata
    if case .offline(let seen?)? = record.user.presence { person.lastSeenAt = seen.milliseconds }
  }

  /// The vendor's URL of a channel whose original id it does not allow.
  private func url(of id: ChannelID) -> ChannelID { SendbirdMapping.channelURL(for: id) }

  private func load(_ record: ChannelRecord) throws(EmulatorError) {
    let channel = record.channel
    let url = url(of: channel.id)
    guard rooms[url] == nil else { throw EmulatorError(.invalidRecord, "/id: channel \(channel.id) is loaded already") }
    let room = Room(
      url: url, number: newNumber(), isOpen: channel.kind == .open, createdAt: channel.createdAt?.milliseconds ?? now,
      change: newChange())
    room.name = channel.name ?? ""
    room.coverURL = channel.coverURL ?? ""
    room.createdBy = channel.createdBy
    room.isFrozen = channel.isFrozen
    room.isDistinct = channel.isDistinct || channel.kind == .direct
    for (key, value) in channel.metadata.sorted(by: { $0.key < $1.key }) { room.metadata[key] = .string(value) }
    let isPlain = record.origin == nil && url == channel.id && [.direct, .group, .open].contains(channel.kind)
    if isPlain {
      room.data = channel.customData?.text ?? ""
    } else {
      let origin = record.origin ?? Origin(vendor: SendbirdErrors.vendor, id: channel.id.rawValue)
      room.data = SendbirdMapping.channelData(
        record, origin: origin, notes: SendbirdChannelNotes(), EnvelopeSigning(envelopes.key, .channel(url.rawValue)))
    }
    rooms[url] = room
  }

  private func loadedRoom(_ id: ChannelID) throws(EmulatorError) -> Room {
    guard let room = rooms[url(of: id)] else {
      throw EmulatorError(.invalidRecord, "/channel: no channel \(id) has been loaded")
    }
    return room
  }

  private func load(_ record: MemberRecord) throws(EmulatorError) {
    let room = try loadedRoom(record.channel)
    let member = record.member
    guard let person = people[member.user.id] else {
      throw EmulatorError(.invalidRecord, "/user: no user \(member.user.id) has been loaded")
    }
    guard !room.isOpen else { return makeOperatorIfAdmin(member, in: room) }
    switch member.state {
    case .left: return
    case .banned: room.banned[person.id] = Restriction(startAt: now, endAt: -1, description: "")
    case .joined, .invited:
      let membership = Membership(person, state: member.state.rawValue, at: member.joinedAt?.milliseconds ?? now)
      membership.readAt = member.readPosition?.major ?? now
      membership.deliveredAt = member.deliveredPosition?.major ?? membership.readAt
      room.members[person.id] = membership
      person.rooms[room.url] = room
      makeOperatorIfAdmin(member, in: room)
      if member.isMuted {
        room.muted[person.id] = Restriction(
          startAt: now, endAt: member.mutedUntil?.milliseconds ?? -1, description: "")
      }
      // An ordinary group holds a hundred.
      if room.members.count > SendbirdLimits.groupMembers { (room.isSuper, room.isDistinct) = (true, false) }
      staleRooms.insert(room.url)
    }
  }

  private func makeOperatorIfAdmin(_ member: Member, in room: Room) {
    if member.role == .admin || member.role == .owner { makeOperator(member.user.id, in: room) }
  }

  private func load(_ record: MessageRecord) throws(EmulatorError) {
    var message = record.message
    let room = try loadedRoom(message.channel)
    var sender: Person?
    if let id = message.sender {
      guard let person = people[id] else {
        throw EmulatorError(.invalidRecord, "/sender: no user \(id) has been loaded")
      }
      sender = person
    }
    let original = message.id?.rawValue ?? ""
    let id = newID(for: original, in: room)
    // Replies and threads name their parents by the ids that those got here.
    if let parent = message.replyTo?.id {
      message.replyTo?.id = loadedID(parent, in: room).map { MessageID(String($0)) } ?? parent
    }
    let purpose = record.origin.map { SendbirdPurpose.migration($0) } ?? .live(id: original)
    useLoadedFiles(&message)
    let place = SendbirdMapping.place(
      channel: room.url, sender: message.sender, time: message.createdAt.milliseconds)
    let form = SendbirdForm(message, purpose: purpose, EnvelopeSigning(envelopes.key, place))
    let stored = StoredMessage(id: id, type: form.type, createdAt: message.createdAt.milliseconds)
    stored.requestID = message.clientMessageID?.rawValue ?? ""
    stored.updatedAt = message.editedAt?.milliseconds ?? 0
    (stored.text, stored.data, stored.customType, stored.file) = (form.text, form.data, form.customType, form.file)
    stored.sender = sender
    stored.mentionType = form.mentions.everyone ? "channel" : "users"
    stored.mentions = form.mentions.users.filter { people[$0] != nil }
    stored.reactions = message.reactions.map { SendbirdReaction(key: $0.key, users: $0.users, updatedAt: now) }
    stored.parentID = message.threadParent.flatMap { loadedID($0, in: room) } ?? 0
    room.insert(stored)
    staleRooms.insert(room.url)
  }

  private func loadKey(_ id: String, _ room: Room) -> Key { Key("\(room.url.rawValue)\u{1F}\(id)") }

  /// A number that the record gives stays; any other id gets one.
  private func newID(for original: String, in room: Room) -> Int64 {
    if let number = Int64(original), number > 0, number < SendbirdLimits.newestTime, room.messageByID[number] == nil {
      nextMessageID = max(nextMessageID, number)
      return number
    }
    let id = newMessageID()
    if !original.isEmpty { loadedIDs[loadKey(original, room)] = id }
    return id
  }

  private func loadedID(_ id: MessageID, in room: Room) -> Int64? {
    if let number = Int64(id.rawValue), room.messageByID[number] != nil { return number }
    return loadedIDs[loadKey(id.rawValue, room)]
  }

  /// Attachments whose bytes were loaded are downloaded here. The address stands without its host, which is known
  /// later.
  private func useLoadedFiles(_ message: inout Message) {
    guard var attachment = message.content.attachment, let sha256 = attachment.sha256, files[sha256] != nil else {
      return
    }
    attachment.url = "/files/\(sha256)/\(PercentCoding.encode(attachment.name ?? "file"))"
    message.content.attachment = attachment
  }

  /// Unread numbers of channels that were loaded since the last input.
  func recountStaleRooms() {
    for url in staleRooms {
      guard let room = rooms[url] else { continue }
      if room.isDistinct { distinctRooms[distinctKey(Array(room.members.keys), customType: room.customType)] = url }
      for member in room.members.values { recount(member, in: room) }
    }
    staleRooms = []
  }

  public func records() -> [JSONValue] {
    let view = EnvelopeView.tool(envelopes)
    var records = peopleInOrder.map {
      Record.user(SendbirdMapping.userRecord(json(of: $0), raw: nil, view).record).json()
    }
    let sorted = rooms.values.sorted { $0.number < $1.number }
    var notes: [ChannelID: SendbirdChannelNotes] = [:]
    var imported: Set<ChannelID> = []
    for room in sorted {
      let json = json(of: room, for: nil)
      guard let wire = SendbirdChannel(json),
        let (found, note, _) = try? SendbirdMapping.channelRecord(wire, raw: json, view)
      else { continue }
      var record = found
      record.raw = nil
      notes[room.url] = note
      if record.origin != nil { imported.insert(room.url) }
      records.append(Record.channel(record).json())
    }
    for room in sorted {
      for member in room.members.values.sorted(by: { $0.person.order < $1.person.order }) {
        var wire = json(of: member, in: room, for: nil)
        (wire.readAt, wire.deliveredAt, wire.joinedAt) = (member.readAt, member.deliveredAt, member.joinedAt / 1000)
        let record = try? SendbirdMapping.memberRecord(
          wire, channel: room.url, notes: notes[room.url] ?? SendbirdChannelNotes(),
          isImported: imported.contains(room.url))
        if let record { records.append(Record.member(record).json()) }
      }
    }
    for room in sorted {
      for message in room.messages where !message.isRemoved {
        let json = wire(message, in: room).json
        guard let wire = SendbirdMessage(json),
          var record = try? SendbirdMapping.record(wire, raw: json, view).record
        else { continue }
        record.raw = nil
        records.append(Record.message(record).json())
      }
    }
    return records
  }
}
