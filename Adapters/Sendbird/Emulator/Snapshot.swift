import ChatCrypto
import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

// The whole state as one JSON value, and back. Connections are not part of it.
extension SendbirdEmulator {
  public func snapshot() -> JSONValue {
    [
      "format": 1, "nextMessageID": .int(nextMessageID), "nextNumber": .int(nextNumber),
      "changeNumber": .int(changeNumber), "people": .array(peopleInOrder.map(snapshot)),
      "rooms": .array(rooms.values.sorted { $0.number < $1.number }.map(snapshot)),
      "sessions": .array(
        sessions.sorted { $0.key < $1.key }.map { key, session in
          [
            "key": .string(key.rawValue), "user": .string(session.user.rawValue), "expiring": .bool(session.isExpiring),
            "fault": session.fault.map { .int($0) } ?? .null,
          ]
        }),
      "files": .array(
        files.sorted { $0.key < $1.key }.map { key, file in
          [
            "key": .string(key), "name": .string(file.name), "type": .string(file.type),
            "bytes": .string(Base64.encode(file.bytes)), "protected": .bool(file.isProtected),
          ]
        }),
      "deletedRooms": .array(deletedRooms.sorted().map { .string($0.rawValue) }),
      "exports": .array(exports), "announcements": .array(announcements.map { .object($0) }),
      "scheduled": .array(scheduled.map { .object($0) }), "reports": .array(reportLogs),
      "typeRestrictions": .array(
        typeRestrictions.sorted { $0.key < $1.key }.map { [.string($0.key.rawValue), snapshot($0.value)] }),
    ]
  }

  private func snapshot(_ person: Person) -> JSONValue {
    [
      "id": .string(person.id.rawValue), "order": .int(person.order), "nickname": .string(person.nickname),
      "profileURL": .string(person.profileURL), "metadata": .object(person.metadata),
      "isActive": .bool(person.isActive),
      "createdAt": .int(person.createdAt), "lastSeenAt": .int(person.lastSeenAt),
      "hasEverLoggedIn": .bool(person.hasEverLoggedIn), "accessToken": person.accessToken.map { .string($0) } ?? .null,
      "sessionTokens": .object(
        JSONObject(person.sessionTokens.sorted { $0.key < $1.key }.map { ($0.key.rawValue, .int($0.value)) })),
      "languages": .array(person.preferredLanguages), "discoveryKeys": .array(person.discoveryKeys),
      "autoAccept": .bool(person.autoAccept), "pushPreference": .object(person.pushPreference),
      "pushTemplate": .string(person.pushTemplate),
      "pushTokens": .object(
        JSONObject(
          person.pushTokens.sorted { $0.key < $1.key }
            .map { ($0.key, .array($0.value.map { .string($0.rawValue) })) })),
      "blocked": .array(person.blocked.sorted().map { .string($0.rawValue) }),
      "friends": .array(person.friends.map { .string($0.rawValue) }),
      "friendChanges": .array(person.friendChanges.map { [.int($0.number), .string($0.user.rawValue)] }),
      "discoveries": .object(person.discoveries), "allowsDiscovery": .bool(person.allowsDiscovery),
      "bot": person.bot.map { .object($0) } ?? .null,
      "lost": .object(
        JSONObject(
          person.lost.sorted { $0.key < $1.key }.map { ($0.key.rawValue, [.int($0.value.number), .int($0.value.at)]) })),
    ]
  }

  private func snapshot(_ room: Room) -> JSONValue {
    [
      "url": .string(room.url.rawValue), "number": .int(room.number), "isOpen": .bool(room.isOpen),
      "name": .string(room.name), "coverURL": .string(room.coverURL), "data": .string(room.data),
      "customType": .string(room.customType), "createdAt": .int(room.createdAt),
      "createdBy": room.createdBy.map { .string($0.rawValue) } ?? .null, "isDistinct": .bool(room.isDistinct),
      "isSuper": .bool(room.isSuper), "isBroadcast": .bool(room.isBroadcast), "isPublic": .bool(room.isPublic),
      "isDiscoverable": .bool(room.isDiscoverable), "isEphemeral": .bool(room.isEphemeral),
      "accessCode": .string(room.accessCode), "isFrozen": .bool(room.isFrozen), "survival": .int(room.survivalSeconds),
      "metadata": .object(room.metadata), "counters": .object(room.counters),
      "members": .array(room.members.values.sorted { $0.person.order < $1.person.order }.map(snapshot)),
      "operators": .array(room.operators.map { .string($0.rawValue) }), "muted": snapshot(room.muted),
      "banned": snapshot(room.banned), "messages": .array(room.messages.map(snapshot)),
      "changes": .array(room.changes.map { [.int($0.number), .int($0.at), .int($0.messageID)] }),
      "pinned": .array(room.pinned.map { .int($0) }), "lastChange": .int(room.lastChange),
      "lastChangeAt": .int(room.lastChangeAt),
      "requestIDs": .object(
        JSONObject(room.requestIDs.sorted { $0.key < $1.key }.map { ($0.key.rawValue, .int($0.value)) })),
      "dedupIDs": .array(room.dedupIDs.sorted().map { .string($0.rawValue) }),
    ]
  }

  private func snapshot(_ restrictions: [UserID: Restriction]) -> JSONValue {
    .array(
      restrictions.sorted { $0.key < $1.key }.map { user, restriction in
        [
          "user": .string(user.rawValue), "startAt": .int(restriction.startAt), "endAt": .int(restriction.endAt),
          "description": .string(restriction.description),
        ]
      })
  }

  private func snapshot(_ member: Membership) -> JSONValue {
    [
      "user": .string(member.person.id.rawValue), "state": .string(member.state), "joinedAt": .int(member.joinedAt),
      "invitedAt": .int(member.invitedAt), "inviter": member.inviter.map { .string($0.rawValue) } ?? .null,
      "readAt": .int(member.readAt), "deliveredAt": .int(member.deliveredAt), "unread": .int(member.unread),
      "mentions": .int(member.mentions), "hiddenState": .string(member.hiddenState),
      "historyOffset": .int(member.historyOffset), "pushTrigger": .string(member.pushTrigger),
      "countPreference": .string(member.countPreference), "pushSound": .string(member.pushSound),
      "invitation": member.invitation.map { .string($0.rawValue) } ?? .null,
    ]
  }

  /// The REST form holds all of a message; what it derives is left to be derived again.
  private func snapshot(_ message: StoredMessage) -> JSONValue {
    var wire = SendbirdMessage(
      id: message.id, type: message.type, channelURL: "", createdAt: message.createdAt)
    (wire.requestID, wire.updatedAt, wire.text, wire.data) = (
      message.requestID, message.updatedAt, message.text, message.data
    )
    (wire.customType, wire.mentionType, wire.file) = (message.customType, message.mentionType, message.file)
    (wire.metaArrays, wire.reactions, wire.parentID) = (message.metaArrays, message.reactions, message.parentID)
    (wire.isReplyToChannel, wire.isSilent, wire.isRemoved) = (
      message.isReplyToChannel, message.isSilent, message.isRemoved
    )
    (wire.translations, wire.mentionTemplate) = (message.translations, message.mentionTemplate)
    wire.mentionedUsers = message.mentions.map { SendbirdUser(id: $0) }
    wire.user = message.sender.map { SendbirdUser(id: $0.id) }
    return .object(wire.json)
  }

  // MARK: And back

  public func restore(_ snapshot: JSONValue) throws(EmulatorError) {
    guard snapshot["format"]?.int == 1, let root = snapshot.object else {
      throw EmulatorError(.invalidSnapshot, "/format is not 1")
    }
    (people, peopleInOrder, rooms, distinctRooms, sessions, connections) = ([:], [], [:], [:], [:], [:])
    (connectionsByUser, files, loadedIDs, staleRooms) = ([:], [:], [:], [])
    nextMessageID = root.number("nextMessageID") ?? 0
    nextNumber = root.number("nextNumber") ?? 0
    changeNumber = root.number("changeNumber") ?? 0
    deletedRooms = Set(root.texts("deletedRooms").map { ChannelID($0) })
    exports = root.list("exports")
    needsTimers = true
    announcements = root.list("announcements").compactMap(\.object)
    scheduled = root.list("scheduled").compactMap(\.object)
    reportLogs = root.list("reports")
    typeRestrictions = [:]
    for item in root.list("typeRestrictions") {
      if let key = item[0]?.string { typeRestrictions[Key(key)] = restrictions(item[1]?.array ?? []) }
    }
    for value in root.list("people") { try restorePerson(value) }
    for value in root.list("rooms") { try restoreRoom(value) }
    for value in root.list("sessions") {
      guard let json = value.object, let key = json.text("key"), let user = json.text("user") else { continue }
      sessions[Key(key)] = Session(
        user: UserID(user), isExpiring: json.flag("expiring") ?? false, fault: json.number("fault"))
    }
    for value in root.list("files") {
      guard let json = value.object, let key = json.text("key"), let bytes = Base64.decode(json.text("bytes") ?? "")
      else {
        throw EmulatorError(.invalidSnapshot, "/files holds an entry without key or bytes")
      }
      files[key] = StoredFile(
        name: json.text("name") ?? "", type: json.text("type") ?? "", bytes: bytes,
        isProtected: json.flag("protected") ?? false)
    }
  }

  private func restorePerson(_ value: JSONValue) throws(EmulatorError) {
    guard let json = value.object, let id = json.text("id") else {
      throw EmulatorError(.invalidSnapshot, "/people holds an entry without id")
    }
    let person = Person(id: UserID(id), order: json.number("order") ?? 0, createdAt: json.number("createdAt") ?? 0)
    person.nickname = json.text("nickname") ?? ""
    person.profileURL = json.text("profileURL") ?? ""
    person.metadata = json.object("metadata") ?? JSONObject()
    person.isActive = json.flag("isActive") ?? true
    person.lastSeenAt = json.number("lastSeenAt") ?? 0
    person.hasEverLoggedIn = json.flag("hasEverLoggedIn") ?? false
    person.accessToken = json.text("accessToken")
    for (token, expiry) in json.object("sessionTokens") ?? JSONObject() {
      person.sessionTokens[Key(token)] = expiry.int
    }
    person.preferredLanguages = json.list("languages")
    person.discoveryKeys = json.list("discoveryKeys")
    person.autoAccept = json.flag("autoAccept") ?? true
    person.pushPreference = json.object("pushPreference") ?? Person.defaultPushPreference
    person.pushTemplate = json.text("pushTemplate") ?? "default"
    for (kind, tokens) in json.object("pushTokens") ?? JSONObject() {
      person.pushTokens[kind] = tokens.array?.compactMap(\.string).map { Key($0) }
    }
    person.blocked = Set(json.texts("blocked").map { UserID($0) })
    person.friends = json.texts("friends").map { UserID($0) }
    person.friendChanges = json.list("friendChanges").map { ($0[0]?.int ?? 0, UserID($0[1]?.string ?? "")) }
    person.discoveries = json.object("discoveries") ?? JSONObject()
    person.allowsDiscovery = json.flag("allowsDiscovery") ?? true
    person.bot = json.object("bot")
    for (url, change) in json.object("lost") ?? JSONObject() {
      person.lost[ChannelID(url)] = (change[0]?.int ?? 0, change[1]?.int ?? 0)
    }
    people[person.id] = person
    peopleInOrder.append(person)
  }

  private func restoreRoom(_ value: JSONValue) throws(EmulatorError) {
    guard let json = value.object, let url = json.text("url") else {
      throw EmulatorError(.invalidSnapshot, "/rooms holds an entry without url")
    }
    let room = Room(
      url: ChannelID(url), number: json.number("number") ?? 0, isOpen: json.flag("isOpen") ?? false,
      createdAt: json.number("createdAt") ?? 0, change: json.number("lastChange") ?? 0)
    room.lastChangeAt = json.number("lastChangeAt") ?? 0
    room.name = json.text("name") ?? ""
    room.coverURL = json.text("coverURL") ?? ""
    room.data = json.text("data") ?? ""
    room.customType = json.text("customType") ?? ""
    room.createdBy = json.text("createdBy").map { UserID($0) }
    room.isDistinct = json.flag("isDistinct") ?? false
    room.isSuper = json.flag("isSuper") ?? false
    room.isBroadcast = json.flag("isBroadcast") ?? false
    room.isPublic = json.flag("isPublic") ?? false
    room.isDiscoverable = json.flag("isDiscoverable") ?? false
    room.isEphemeral = json.flag("isEphemeral") ?? false
    room.accessCode = json.text("accessCode") ?? ""
    room.isFrozen = json.flag("isFrozen") ?? false
    room.survivalSeconds = json.number("survival") ?? -1
    room.metadata = json.object("metadata") ?? JSONObject()
    room.counters = json.object("counters") ?? JSONObject()
    room.operators = json.texts("operators").map { UserID($0) }
    room.pinned = json.list("pinned").compactMap(\.int)
    room.muted = restrictions(json.list("muted"))
    room.banned = restrictions(json.list("banned"))
    for value in json.list("members") { restoreMember(value, in: room) }
    for value in json.list("messages") { try restoreMessage(value, in: room) }
    room.changes = json.list("changes").map {
      Change(number: $0[0]?.int ?? 0, at: $0[1]?.int ?? 0, messageID: $0[2]?.int ?? 0)
    }
    for (id, number) in json.object("requestIDs") ?? JSONObject() { room.requestIDs[Key(id)] = number.int }
    room.dedupIDs = Set(json.texts("dedupIDs").map { Key($0) })
    rooms[room.url] = room
    if room.isDistinct { distinctRooms[distinctKey(Array(room.members.keys), customType: room.customType)] = room.url }
  }

  private func restrictions(_ list: [JSONValue]) -> [UserID: Restriction] {
    var restrictions: [UserID: Restriction] = [:]
    for json in list.compactMap(\.object) {
      restrictions[UserID(json.text("user") ?? "")] = Restriction(
        startAt: json.number("startAt") ?? 0, endAt: json.number("endAt") ?? -1,
        description: json.text("description") ?? "")
    }
    return restrictions
  }

  private func restoreMember(_ value: JSONValue, in room: Room) {
    guard let json = value.object, let person = people[UserID(json.text("user") ?? "")] else { return }
    let member = Membership(person, state: json.text("state") ?? "joined", at: json.number("joinedAt") ?? 0)
    member.isOperator = room.operators.contains(person.id)
    member.invitedAt = json.number("invitedAt") ?? 0
    member.inviter = json.text("inviter").map { UserID($0) }
    member.readAt = json.number("readAt") ?? 0
    member.deliveredAt = json.number("deliveredAt") ?? 0
    member.unread = json.number("unread") ?? 0
    member.mentions = json.number("mentions") ?? 0
    member.hiddenState = json.text("hiddenState") ?? "unhidden"
    member.historyOffset = json.number("historyOffset") ?? 0
    member.pushTrigger = json.text("pushTrigger") ?? "default"
    member.countPreference = json.text("countPreference") ?? "all"
    member.pushSound = json.text("pushSound") ?? "default"
    // Older snapshots do not say whose an open invitation is.
    let invitation = json.text("invitation").flatMap(Invitation.init) ?? .byNonFriend
    member.invitation = member.isJoined ? nil : invitation
    room.members[person.id] = member
    person.rooms[room.url] = room
  }

  private func restoreMessage(_ value: JSONValue, in room: Room) throws(EmulatorError) {
    guard let json = value.object, let wire = SendbirdMessage(json) else {
      throw EmulatorError(.invalidSnapshot, "/rooms holds a message without id")
    }
    let message = StoredMessage(id: wire.id, type: wire.type, createdAt: wire.createdAt)
    (message.requestID, message.updatedAt, message.text, message.data) = (
      wire.requestID, wire.updatedAt, wire.text, wire.data
    )
    (message.customType, message.mentionType, message.file) = (wire.customType, wire.mentionType, wire.file)
    (message.metaArrays, message.reactions, message.parentID) = (wire.metaArrays, wire.reactions, wire.parentID)
    (message.isReplyToChannel, message.isSilent, message.isRemoved) = (
      wire.isReplyToChannel, wire.isSilent, wire.isRemoved
    )
    (message.translations, message.mentionTemplate) = (wire.translations, wire.mentionTemplate)
    message.mentions = wire.mentionedUsers.map(\.id)
    message.sender = wire.user.flatMap { people[$0.id] }
    room.insert(message)
  }
}
