import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

// What the state looks like on the wire.
extension SendbirdEmulator {
  func json(of person: Person) -> SendbirdUser {
    SendbirdUser(
      id: person.id, nickname: person.nickname, profileURL: person.profileURL, metadata: person.metadata,
      isActive: person.isActive, isOnline: connectionsByUser[person.id] != nil, lastSeenAt: person.lastSeenAt,
      createdAt: person.createdAt)
  }

  /// With what only the Platform API shows.
  func adminJSON(of person: Person) -> JSONObject {
    var json = json(of: person).json
    json["discovery_keys"] = .array(person.discoveryKeys)
    json["preferred_languages"] = .array(person.preferredLanguages)
    json["has_ever_logged_in"] = .bool(person.hasEverLoggedIn)
    json["access_token"] = .string(person.accessToken ?? "")
    json["session_tokens"] = .array(
      person.sessionTokens.sorted { $0.key < $1.key }.map {
        ["session_token": .string($0.key.rawValue), "expires_at": .int($0.value)]
      })
    return json
  }

  func json(of membership: Membership, in room: Room, for viewer: Person?) -> SendbirdMember {
    let person = membership.person
    let mute = activeMute(of: person.id, in: room)
    return SendbirdMember(
      user: json(of: person), state: membership.state, role: membership.isOperator ? "operator" : "",
      isMuted: mute != nil, mutedEndAt: mute?.endAt, isBlockedByMe: viewer?.blocked.contains(person.id) ?? false,
      isBlockingMe: viewer.map { person.blocked.contains($0.id) } ?? false)
  }

  func activeMute(of user: UserID, in room: Room) -> Restriction? {
    room.muted[user].flatMap { $0.isOver(at: now) ? nil : $0 }
  }

  func activeBan(of user: UserID, in room: Room) -> Restriction? {
    room.banned[user].flatMap { $0.isOver(at: now) ? nil : $0 }
  }

  struct ChannelView {
    var members = false
    var readReceipts = false
    var deliveryReceipts = false
    var metadata = true

    init(members: Bool = false, readReceipts: Bool = false, deliveryReceipts: Bool = false) {
      self.members = members
      self.readReceipts = readReceipts
      self.deliveryReceipts = deliveryReceipts
    }

    init(_ query: SendbirdQuery) {
      members = query.bool("show_member") ?? false
      readReceipts = query.bool("show_read_receipt") ?? false
      deliveryReceipts = query.bool("show_delivery_receipt") ?? false
      metadata = query.bool("show_metadata") ?? true
    }

    static let full = ChannelView(members: true, readReceipts: true, deliveryReceipts: true)
  }

  func json(of room: Room, for viewer: Person?, _ view: ChannelView = .full) -> JSONObject {
    var channel = SendbirdChannel(url: room.url, createdAt: room.createdAt / 1000, isGroup: !room.isOpen)
    channel.name = room.name
    channel.coverURL = room.coverURL
    channel.data = room.data
    channel.customType = room.customType
    channel.isFrozen = room.isFrozen
    channel.operators = room.operators.compactMap { people[$0].map { self.json(of: $0) } }
    if view.metadata { channel.metadata = room.metadata }
    let creator = room.createdBy.flatMap { people[$0] }.map { self.json(of: $0).json }
    if room.isOpen {
      channel.participantCount = Int64(room.participants.count)
    } else {
      fill(&channel, of: room, for: viewer, view)
    }
    var json = channel.json
    json["created_by"] = creator.map { .object($0) } ?? .null
    json["max_length_message"] = .int(Int64(SendbirdLimits.messageLength))
    json["message_survival_seconds"] = .int(room.survivalSeconds)
    json["ts"] = .int(now)
    for (name, value) in pins(of: room) { json[name] = value }
    if room.isOpen {
      json["is_ephemeral"] = .bool(room.isEphemeral)
      json["is_dynamic_partitioned"] = false
      json["last_message"] = nil
    } else {
      addGroupExtras(&json, of: room, for: viewer)
    }
    return json
  }

  private func fill(_ channel: inout SendbirdChannel, of room: Room, for viewer: Person?, _ view: ChannelView) {
    guard var group = channel.group else { return }
    group.isDistinct = room.isDistinct
    group.isSuper = room.isSuper
    group.isBroadcast = room.isBroadcast
    group.isPublic = room.isPublic
    group.isEphemeral = room.isEphemeral
    group.memberCount = Int64(room.members.count)
    group.joinedMemberCount = room.joinedCount
    if view.members {
      // A super group's members come by their own list; the channel shows the first hundred of them.
      let shown = room.isSuper ? SendbirdLimits.page : Int.max
      group.members = membersByName(room).prefix(shown).map { json(of: $0, in: room, for: viewer) }
    }
    let hasReceipts = !room.isSuper && !room.isBroadcast
    if view.readReceipts, hasReceipts { group.readReceipts = receipts(room, \.readAt) }
    if view.deliveryReceipts, hasReceipts { group.deliveryReceipts = receipts(room, \.deliveredAt) }
    let mine = viewer.flatMap { room.members[$0.id] }
    group.unreadCount = mine.map { shownUnread($0, in: room) } ?? 0
    group.unreadMentions = mine?.mentions ?? 0
    if let last = room.lastMessage, last.createdAt > (mine?.historyOffset ?? 0) {
      group.lastMessage = wire(last, in: room)
    }
    group.userLastRead = mine?.readAt ?? 0
    group.historyOffset = mine?.historyOffset ?? 0
    group.memberState = mine?.state ?? "none"
    group.myRole = mine?.isOperator == true ? "operator" : ""
    group.hiddenState = mine?.hiddenState ?? "unhidden"
    group.isHidden = group.hiddenState != "unhidden"
    group.pushTriggerOption = mine?.pushTrigger ?? "default"
    group.inviter = mine?.inviter.flatMap { people[$0] }.map(json)
    group.invitedAt = mine?.invitedAt ?? 0
    channel.group = group
  }

  private func addGroupExtras(_ json: inout JSONObject, of room: Room, for viewer: Person?) {
    let mine = viewer.flatMap { room.members[$0.id] }
    json["is_exclusive"] = false
    json["is_discoverable"] = .bool(room.isDiscoverable)
    json["is_access_code_required"] = .bool(!room.accessCode.isEmpty)
    json["is_muted"] = .string(viewer.flatMap { activeMute(of: $0.id, in: room) } == nil ? "unmuted" : "muted")
    json["is_push_enabled"] = .bool(mine?.pushTrigger != "off")
    json["count_preference"] = .string(mine?.countPreference ?? "all")
    json["joined_ts"] = .int((mine?.joinedAt ?? 0) / 1000)
    json["sms_fallback"] = [:]
    json["disappearing_message"] = ["message_survival_seconds": -1, "is_triggered_by_message_read": false]
    json["channel"] = [
      "channel_url": .string(room.url.rawValue), "name": .string(room.name), "cover_url": .string(room.coverURL),
      "data": .string(room.data), "custom_type": .string(room.customType), "created_at": .int(room.createdAt / 1000),
      "max_length_message": .int(Int64(SendbirdLimits.messageLength)), "member_count": .int(Int64(room.members.count)),
    ]
  }

  private func receipts(_ room: Room, _ path: KeyPath<Membership, Int64>) -> JSONObject {
    JSONObject(
      room.members.values.filter(\.isJoined).sorted { $0.person.order < $1.person.order }
        .map { (key: $0.person.id.rawValue, value: JSONValue.int($0[keyPath: path])) })
  }

  func membersByName(_ room: Room) -> [Membership] {
    room.members.values.map { ($0, Array($0.person.nickname.utf8)) }.sorted {
      $0.1 == $1.1 ? $0.0.person.id < $1.0.person.id : $0.1.lexicographicallyPrecedes($1.1)
    }.map(\.0)
  }

  /// Super groups stop counting at a hundred.
  func shownUnread(_ membership: Membership, in room: Room) -> Int64 {
    membership.isJoined ? (room.isSuper ? min(membership.unread, 100) : membership.unread) : 0
  }

  func unreadTotal(of person: Person, where isCounted: (Room) -> Bool = { _ in true }) -> Int64 {
    var total: Int64 = 0
    for room in person.rooms.values where isCounted(room) {
      if let membership = room.members[person.id] { total &+= shownUnread(membership, in: room) }
    }
    return total
  }

  /// `unread_cnt`: may ride on any frame.
  func unreadCount(of person: Person) -> JSONValue {
    var types = JSONObject()
    for (_, room) in person.rooms.sorted(by: { $0.key < $1.key }) where !room.customType.isEmpty {
      if let membership = room.members[person.id] {
        types[room.customType] = .int((types.number(room.customType) ?? 0) &+ shownUnread(membership, in: room))
      }
    }
    // The JavaScript client takes only what is newer than what it has, to the millisecond.
    let count: JSONObject = ["all": .int(unreadTotal(of: person)), "custom_types": .object(types)]
    if person.toldUnread.count != count { person.toldUnread = (count, max(now, person.toldUnread.at &+ 1)) }
    var told = count
    told["ts"] = .int(max(now, person.toldUnread.at))
    return .object(told)
  }

  func wire(_ message: StoredMessage, in room: Room) -> SendbirdMessage {
    var wire = SendbirdMessage(
      id: message.id, type: message.type, channelURL: room.url, createdAt: message.createdAt)
    wire.isOpen = room.isOpen
    wire.requestID = message.requestID
    wire.updatedAt = message.updatedAt
    wire.text = message.text
    wire.data = message.data
    wire.customType = message.customType
    wire.user = message.sender.map(json)
    wire.senderRole = message.sender.map { room.operators.contains($0.id) } == true ? "operator" : ""
    wire.mentionType = message.mentionType
    wire.mentionedUsers = message.mentions.compactMap { people[$0].map(json) }
    wire.file = message.file
    if let url = message.file?.url, url.hasPrefix("/files/") { wire.file?.url = baseURL + url }
    wire.metaArrays = message.metaArrays
    wire.reactions = message.reactions
    wire.parentID = message.parentID
    wire.isReplyToChannel = message.isReplyToChannel
    wire.isSilent = message.isSilent
    wire.isRemoved = message.isRemoved
    wire.translations = message.translations
    wire.mentionTemplate = message.mentionTemplate
    wire.thread = thread(of: message, in: room)
    if message.parentID != 0, let parent = room.messageByID[message.parentID] {
      wire.parentInfo = parentInfo(parent, in: room)
    }
    return wire
  }

  func thread(of message: StoredMessage, in room: Room) -> SendbirdThread? {
    let replies = message.replies.compactMap { room.messageByID[$0] }.filter { !$0.isRemoved }
    guard let last = replies.map(\.createdAt).max() else { return nil }
    var counts: [UserID: Int] = [:]
    for reply in replies { if let sender = reply.sender { counts[sender.id, default: 0] += 1 } }
    let most = counts.sorted { $0.value == $1.value ? $0.key < $1.key : $0.value > $1.value }.prefix(5)
    return SendbirdThread(
      replyCount: Int64(replies.count), mostReplies: most.compactMap { people[$0.key].map(json) }, lastRepliedAt: last,
      updatedAt: last)
  }

  /// Complete and typed, or the official client throws.
  private func parentInfo(_ parent: StoredMessage, in room: Room) -> JSONObject {
    var info: JSONObject = [
      "type": .string(parent.type), "message": .string(parent.text), "ts": .int(parent.createdAt),
      "created_at": .int(parent.createdAt), "message_id": .int(parent.id), "channel_url": .string(room.url.rawValue),
      "custom_type": .string(parent.customType), "data": .string(parent.file == nil ? parent.data : ""),
    ]
    if let sender = parent.sender { info["user"] = .object(json(of: sender).json) }
    if let file = parent.file {
      info["file"] = [
        "url": .string(file.url), "name": .string(file.name), "type": .string(file.type), "size": .int(file.size),
        "data": .string(parent.data),
      ]
      info["url"] = .string(file.url)
      info["name"] = .string(file.name)
      info["size"] = .int(file.size)
      info["thumbnails"] = file.thumbnailJSON
      info["require_auth"] = false
    }
    return info
  }
}
