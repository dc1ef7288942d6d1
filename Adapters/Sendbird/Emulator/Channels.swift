import ChatCrypto
import ChatJSON
import SendbirdWire
import UnifiedChat

extension SendbirdEmulator {
  static let channelRoutes: [Route] =
    [
      Route("POST", "group_channels") { (e, c) throws(SendbirdFault) in try e.createGroup(c) },
      Route("GET", "group_channels") { (e, c) throws(SendbirdFault) in try e.listGroups(c) },
      Route("GET", "users/{user}/my_group_channels") { (e, c) throws(SendbirdFault) in try e.listMine(c) },
      Route("GET", "users/{user}/my_group_channels/changelogs") { (e, c) throws(SendbirdFault) in
        try e.channelChanges(c)
      },
      Route("PUT", "users/{user}/my_group_channels/leave") { (e, c) throws(SendbirdFault) in try e.leaveAll(c) },
      Route("POST", "open_channels") { (e, c) throws(SendbirdFault) in try e.createOpen(c) },
      Route("GET", "open_channels") { (e, c) throws(SendbirdFault) in try e.listOpen(c) },
      Route("GET", "open_channels/{url}/participants") { (e, c) throws(SendbirdFault) in try e.listParticipants(c) },
    ]
    + ["group_channels", "open_channels"].flatMap { kind in
      [
        Route("GET", "\(kind)/{url}") { (e, c) throws(SendbirdFault) in try e.fetchChannel(c, kind) },
        Route("PUT", "\(kind)/{url}") { (e, c) throws(SendbirdFault) in try e.updateChannel(c, kind) },
        Route("DELETE", "\(kind)/{url}") { (e, c) throws(SendbirdFault) in try e.deleteChannel(c, kind) },
        Route("PUT", "\(kind)/{url}/freeze") { (e, c) throws(SendbirdFault) in try e.freeze(c, kind) },
        Route("GET", "\(kind)/{url}/metadata") { (e, c) throws(SendbirdFault) in try e.metadata(c, kind) },
        Route("POST", "\(kind)/{url}/metadata") { (e, c) throws(SendbirdFault) in
          try e.setMetadata(c, kind, isNew: true)
        },
        Route("PUT", "\(kind)/{url}/metadata") { (e, c) throws(SendbirdFault) in
          try e.setMetadata(c, kind, isNew: false)
        },
        Route("PUT", "\(kind)/{url}/metadata/{key}") { (e, c) throws(SendbirdFault) in
          try e.setMetadata(c, kind, isNew: false)
        },
        Route("DELETE", "\(kind)/{url}/metadata") { (e, c) throws(SendbirdFault) in try e.deleteMetadata(c, kind) },
        Route("DELETE", "\(kind)/{url}/metadata/{key}") { (e, c) throws(SendbirdFault) in try e.deleteMetadata(c, kind)
        },
        Route("GET", "\(kind)/{url}/metacounter") { (e, c) throws(SendbirdFault) in try e.counters(c, kind) },
        Route("POST", "\(kind)/{url}/metacounter") { (e, c) throws(SendbirdFault) in
          try e.setCounters(c, kind, isNew: true)
        },
        Route("PUT", "\(kind)/{url}/metacounter") { (e, c) throws(SendbirdFault) in
          try e.setCounters(c, kind, isNew: false)
        },
        Route("PUT", "\(kind)/{url}/metacounter/{key}") { (e, c) throws(SendbirdFault) in
          try e.setCounters(c, kind, isNew: false)
        },
        Route("DELETE", "\(kind)/{url}/metacounter") { (e, c) throws(SendbirdFault) in try e.deleteCounter(c, kind) },
        Route("DELETE", "\(kind)/{url}/metacounter/{key}") { (e, c) throws(SendbirdFault) in
          try e.deleteCounter(c, kind)
        },
      ]
    }

  func channel(_ call: Call, _ kind: String) throws(SendbirdFault) -> Room {
    guard let room = rooms[ChannelID(call.parameter("url"))], room.isOpen == (kind == "open_channels") else {
      throw SendbirdFault(400201, "Channel not found.")
    }
    return room
  }

  // MARK: Creation

  /// The members' ids sorted by bytes, with the custom type: equal for equal sets in any order.
  func distinctKey(_ users: [UserID], customType: String) -> Key {
    let parts = Set(users).sorted().map { Hex.encode(Array($0.rawValue.utf8)) } + [customType]
    return Key(parts.joined(separator: "/"))
  }

  private func createGroup(_ call: Call) throws(SendbirdFault) -> Answer {
    var ids = call.texts("user_ids").isEmpty ? call.texts("users") : call.texts("user_ids")
    if let own = call.sessionUser { ids.insert(own.id.rawValue, at: 0) }
    if hasRealLimits, ids.count > SendbirdLimits.inviteBatch + 1 { throw SendbirdFault(400203, "Too many user_ids.") }
    let invited = try invitees(ids, isStrict: call.flag("strict") ?? false)
    let isSuper = call.flag("is_super") == true || call.flag("is_broadcast") == true
    let customType = call.text("custom_type") ?? ""
    let isDistinct = call.flag("is_distinct") == true && !isSuper
    let key = distinctKey(invited.map(\.id), customType: customType)
    let creator = call.sessionUser ?? call.text("inviter_id").flatMap { people[UserID($0)] }
    if isDistinct, let url = distinctRooms[key], let room = rooms[url] {
      var json = json(of: room, for: creator)
      json["is_created"] = false
      return .json(json)
    }
    try mayInvite(invited, call.sessionUser)
    let (states, hidings) = try (statuses(call, .invitation), statuses(call, .hiding))
    let room = try newRoom(call, isOpen: false)
    room.isDistinct = isDistinct
    room.isSuper = isSuper
    room.isBroadcast = call.flag("is_broadcast") ?? false
    room.isPublic = call.flag("is_public") ?? false
    room.isDiscoverable = call.flag("is_discoverable") ?? room.isPublic
    room.isEphemeral = call.flag("is_ephemeral") ?? false
    room.accessCode = call.text("access_code") ?? ""
    room.survivalSeconds = call.number("message_survival_seconds") ?? -1
    room.createdBy = creator?.id
    if isDistinct { distinctRooms[key] = room.url }
    add(invited, to: room, by: creator, statuses: states, hidings: hidings)
    for id in call.texts("operator_ids") where room.members[UserID(id)] != nil { makeOperator(UserID(id), in: room) }
    if call.texts("operator_ids").isEmpty, let own = call.sessionUser { makeOperator(own.id, in: room) }
    tellWebhook(.create, in: room, creator.map { ["inviter": .object(self.json(of: $0).json)] } ?? JSONObject())
    tellInvitations(invited, in: room, by: creator)
    var json = json(of: room, for: creator)
    json["is_created"] = true
    return .json(json)
  }

  private func invitees(_ ids: [String], isStrict: Bool) throws(SendbirdFault) -> [Person] {
    var seen: Set<UserID> = []
    var found: [Person] = []
    for id in ids where seen.insert(UserID(id)).inserted {
      guard let person = people[UserID(id)] else {
        // Whoever did not ask for strictness gets a channel of those who exist.
        if isStrict { throw SendbirdFault(400111, "user_ids holds an unknown user.") }
        continue
      }
      found.append(person)
    }
    return found
  }

  func newRoom(_ call: Call, isOpen: Bool) throws(SendbirdFault) -> Room {
    let number = newNumber()
    let url = call.text("channel_url") ?? "sendbird_\(isOpen ? "open" : "group")_channel_\(number)_\(hex(40))"
    try check(channelURL: url)
    guard rooms[ChannelID(url)] == nil else {
      throw SendbirdFault(400202, "\"channel_url\" violates unique constraint.")
    }
    let room = Room(url: ChannelID(url), number: number, isOpen: isOpen, createdAt: now, change: newChange())
    try apply(call, to: room)
    rooms[room.url] = room
    deletedRooms.remove(room.url)
    return room
  }

  func check(channelURL url: String) throws(SendbirdFault) {
    let isPlain = url.utf8.allSatisfy {
      (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || $0 == 95 || $0 == 45
    }
    guard isPlain else { throw SendbirdFault(400151, "channel_url holds a forbidden character.") }
    guard (4...SendbirdLimits.channelURLLength).contains(url.utf8.count) else {
      throw SendbirdFault(400113, "channel_url must have 4 to \(SendbirdLimits.channelURLLength) characters.")
    }
  }

  private func apply(_ call: Call, to room: Room) throws(SendbirdFault) {
    if let name = call.text("name") {
      try check(length: name, SendbirdLimits.nameLength, "name")
      room.name = name
    }
    if let part = call.multipart?["cover_file"] { room.coverURL = try store(part).url }
    if let url = call.text("cover_url") {
      try check(length: url, SendbirdLimits.urlLength, "cover_url")
      room.coverURL = url
    }
    if let data = call.text("data") { room.data = data }
    if let type = call.text("custom_type") {
      try check(length: type, SendbirdLimits.customTypeLength, "custom_type")
      room.customType = type
    }
  }

  private func createOpen(_ call: Call) throws(SendbirdFault) -> Answer {
    let room = try newRoom(call, isOpen: true)
    room.createdBy = call.sessionUser?.id
    room.isEphemeral = call.flag("is_ephemeral") ?? false
    for id in call.texts("operators") + call.texts("operator_ids") where people[UserID(id)] != nil {
      makeOperator(UserID(id), in: room)
    }
    if room.operators.isEmpty, let own = call.sessionUser { makeOperator(own.id, in: room) }
    tellWebhook(.create, in: room, JSONObject())
    return .json(json(of: room, for: call.sessionUser))
  }

  // MARK: One channel

  private func fetchChannel(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let room = try channel(call, kind)
    let viewer = call.sessionUser ?? call.query["user_id"].flatMap { people[UserID($0)] }
    if !room.isOpen, let own = call.sessionUser, room.members[own.id] == nil, !room.isPublic {
      throw SendbirdFault(400108, "Not authorized. User is not a member of the channel.")
    }
    return .json(json(of: room, for: viewer, ChannelView(call.query)))
  }

  private func updateChannel(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let room = try channel(call, kind)
    try requireWriter(call, in: room)
    try apply(call, to: room)
    if let isPublic = call.flag("is_public") { room.isPublic = isPublic }
    if let isDiscoverable = call.flag("is_discoverable") { room.isDiscoverable = isDiscoverable }
    if let code = call.text("access_code") { room.accessCode = code }
    if let seconds = call.number("message_survival_seconds") { room.survivalSeconds = seconds }
    if let isDistinct = call.flag("is_distinct"), !room.isOpen { setDistinct(isDistinct && !room.isSuper, room) }
    if let name = ["operator_ids", "operators"].first(where: { call.body[$0]?.array != nil }) {
      room.operators = []
      for member in room.members.values { member.isOperator = false }
      for id in call.texts(name) { makeOperator(UserID(id), in: room) }
    }
    touch(room)
    announce(SendbirdCategory.propertyChanged, in: room, JSONObject())
    return .json(json(of: room, for: call.sessionUser))
  }

  /// Members of a group, operators of an open channel, or the Platform API.
  private func requireWriter(_ call: Call, in room: Room) throws(SendbirdFault) {
    guard let person = call.sessionUser else { return }
    if room.isOpen { return try requireOperator(call, in: room) }
    guard room.members[person.id]?.isJoined == true else {
      throw SendbirdFault(400108, "Not authorized. Not a member.")
    }
  }

  func setDistinct(_ isDistinct: Bool, _ room: Room) {
    guard room.isDistinct != isDistinct else { return }
    let key = distinctKey(Array(room.members.keys), customType: room.customType)
    if !isDistinct {
      for (key, url) in distinctRooms where url == room.url { distinctRooms[key] = nil }
    } else if distinctRooms[key] == nil {
      distinctRooms[key] = room.url
    } else {
      return
    }
    room.isDistinct = isDistinct
  }

  private func deleteChannel(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let room = try channel(call, kind)
    try requireOperator(call, in: room)
    announce(SendbirdCategory.deleted, in: room, JSONObject())
    setDistinct(false, room)
    for member in room.members.values.sorted(by: { $0.person.order < $1.person.order }) {
      member.person.rooms[room.url] = nil
      member.person.lost[room.url] = (newChange(), now)
    }
    rooms[room.url] = nil
    if room.isOpen { deletedRooms.insert(room.url) }
    return .empty
  }

  private func freeze(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let room = try channel(call, kind)
    try requireOperator(call, in: room)
    room.isFrozen = call.flag("freeze") ?? false
    touch(room)
    announce(
      room.isFrozen ? SendbirdCategory.frozen : SendbirdCategory.unfrozen, in: room, ["freeze": .bool(room.isFrozen)])
    return .json(json(of: room, for: call.sessionUser))
  }

  // MARK: Metadata

  private func answer(_ metadata: JSONObject?, _ call: Call) -> Answer {
    guard call.flag("include_ts") == true else { return .json(metadata ?? JSONObject()) }
    guard let metadata else { return .json(["ts": .int(now)]) }
    return .json(["metadata": .object(metadata), "ts": .int(now)])
  }

  private func metadata(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let (room, _) = try visible(call, kind)
    let keys = call.query.list("keys")
    return answer(keys.isEmpty ? room.metadata : room.metadata.only(keys), call)
  }

  private func setMetadata(_ call: Call, _ kind: String, isNew: Bool) throws(SendbirdFault) -> Answer {
    let room = try channel(call, kind)
    try requireWriter(call, in: room)
    var changes = call.body.object("metadata") ?? JSONObject()
    if let key = call.parameters["key"] { changes = [key: .string(call.text("value") ?? "")] }
    let (created, updated) = try split(changes, known: room.metadata, call, isNew: isNew)
    var metadata = room.metadata
    for (key, value) in created { metadata[key] = value }
    for (key, value) in updated { metadata[key] = value }
    room.metadata = try checked(metadata: metadata)
    touch(room)
    announce(SendbirdCategory.metadataChanged, in: room, ["created": .object(created), "updated": .object(updated)])
    var all = created
    all.fill(from: updated)
    return answer(all, call)
  }

  /// What is new and what changes. POST refuses keys that exist, PUT without `upsert` leaves out unknown ones.
  private func split(
    _ changes: JSONObject, known: JSONObject, _ call: Call, isNew: Bool
  ) throws(SendbirdFault) -> (created: JSONObject, updated: JSONObject) {
    var (created, updated) = (JSONObject(), JSONObject())
    let isUpsert = call.flag("upsert") ?? false
    for (key, value) in changes {
      if known[key] != nil {
        if isNew { throw SendbirdFault(400202, "The key exists already.") }
        updated[key] = value
      } else if isNew || isUpsert {
        created[key] = value
      }
    }
    return (created, updated)
  }

  private func deleteMetadata(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let room = try channel(call, kind)
    try requireWriter(call, in: room)
    let keys = call.parameters["key"].map { [$0] } ?? room.metadata.keys
    for key in keys { room.metadata[key] = nil }
    touch(room)
    announce(SendbirdCategory.metadataChanged, in: room, ["deleted": .array(keys.map { .string($0) })])
    return answer(nil, call)
  }

  private func counters(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let (room, _) = try visible(call, kind)
    let keys = call.query.list("keys")
    return .json(keys.isEmpty ? room.counters : room.counters.only(keys))
  }

  private func setCounters(_ call: Call, _ kind: String, isNew: Bool) throws(SendbirdFault) -> Answer {
    let room = try channel(call, kind)
    try requireWriter(call, in: room)
    var changes = call.body.object("metacounter") ?? JSONObject()
    if let key = call.parameters["key"] { changes = [key: .int(call.number("value") ?? 0)] }
    guard changes.allSatisfy({ $0.value.int != nil }) else { throw SendbirdFault(400101, "Counters must be integers.") }
    let (created, updated) = try split(changes, known: room.counters, call, isNew: isNew)
    if hasRealLimits, room.counters.count + created.count > SendbirdLimits.metadataItems {
      throw SendbirdFault(400203, "Too many counters.")
    }
    let sign: Int64? = call.text("mode") == "increase" ? 1 : call.text("mode") == "decrease" ? -1 : nil
    var results = JSONObject()
    for (key, value) in created.members + updated.members {
      let number = value.int ?? 0
      let result = sign.map { (room.counters.number(key) ?? 0) &+ $0 &* number } ?? number
      room.counters[key] = .int(result)
      results[key] = .int(result)
    }
    announce(
      SendbirdCategory.metacountersChanged, in: room,
      ["created": .object(results.only(created.keys)), "updated": .object(results.only(updated.keys))])
    return .json(results)
  }

  private func deleteCounter(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let room = try channel(call, kind)
    try requireWriter(call, in: room)
    let keys = call.parameters["key"].map { [$0] } ?? room.counters.keys
    for key in keys { room.counters[key] = nil }
    announce(SendbirdCategory.metacountersChanged, in: room, ["deleted": .array(keys.map { .string($0) })])
    return .empty
  }
}

extension JSONObject {
  func only(_ keys: [String]) -> JSONObject {
    JSONObject(keys.compactMap { key in self[key].map { (key: key, value: $0) } })
  }
}
