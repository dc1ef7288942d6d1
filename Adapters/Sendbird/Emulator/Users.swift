import ChatJSON
import SendbirdWire
import UnifiedChat

extension SendbirdEmulator {
  static let userRoutes: [Route] = [
    Route("POST", "users") { (e, c) throws(SendbirdFault) in try e.createUser(c) },
    Route("GET", "users") { (e, c) throws(SendbirdFault) in try e.listUsers(c) },
    Route("GET", "users/{user}") { (e, c) throws(SendbirdFault) in try e.fetchUser(c) },
    Route("PUT", "users/{user}") { (e, c) throws(SendbirdFault) in try e.updateUser(c) },
    Route("DELETE", "users/{user}") { (e, c) throws(SendbirdFault) in try e.deleteUser(c) },
    Route("POST", "users/{user}/token") { (e, c) throws(SendbirdFault) in try e.issueToken(c) },
    Route("DELETE", "users/{user}/token") { (e, c) throws(SendbirdFault) in try e.revokeTokens(c) },
    Route("POST", "users/{user}/session_key") { (e, c) throws(SendbirdFault) in try e.newSessionKey(c) },
    Route("POST", "users/{user}/block") { (e, c) throws(SendbirdFault) in try e.block(c) },
    Route("GET", "users/{user}/block") { (e, c) throws(SendbirdFault) in try e.listBlocked(c) },
    Route("DELETE", "users/{user}/block/{target}") { (e, c) throws(SendbirdFault) in try e.unblock(c) },
    Route("GET", "users/{user}/metadata") { (e, c) throws(SendbirdFault) in .json(try e.ownPerson(c).metadata) },
    Route("POST", "users/{user}/metadata") { (e, c) throws(SendbirdFault) in try e.setUserMetadata(c) },
    Route("PUT", "users/{user}/metadata") { (e, c) throws(SendbirdFault) in try e.setUserMetadata(c) },
    Route("PUT", "users/{user}/metadata/{key}") { (e, c) throws(SendbirdFault) in try e.setUserMetadata(c) },
    Route("DELETE", "users/{user}/metadata") { (e, c) throws(SendbirdFault) in try e.deleteUserMetadata(c) },
    Route("DELETE", "users/{user}/metadata/{key}") { (e, c) throws(SendbirdFault) in try e.deleteUserMetadata(c) },
    Route("GET", "users/{user}/channel_invitation_preference") { (e, c) throws(SendbirdFault) in
      .json(["auto_accept": .bool(try e.ownPerson(c).autoAccept)])
    },
    Route("PUT", "users/{user}/channel_invitation_preference") { (e, c) throws(SendbirdFault) in
      let person = try e.ownPerson(c)
      guard let accepts = c.flag("auto_accept") else { throw SendbirdFault(400105, "auto_accept is missing.") }
      person.autoAccept = accepts
      return .json(["auto_accept": .bool(person.autoAccept)])
    },
    Route("GET", "users/{user}/unread_message_count") { (e, c) throws(SendbirdFault) in try e.unreadMessages(c) },
    Route("GET", "users/{user}/unread_channel_count") { (e, c) throws(SendbirdFault) in try e.unreadChannels(c) },
    Route("GET", "users/{user}/unread_item_count") { (e, c) throws(SendbirdFault) in try e.unreadItems(c) },
    Route("GET", "users/{user}/group_channel_count") { (e, c) throws(SendbirdFault) in try e.groupChannelCount(c) },
    Route("PUT", "users/{user}/mark_as_read_all") { (e, c) throws(SendbirdFault) in try e.markAllRead(c) },
  ]

  private func createUser(_ call: Call) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    guard let id = call.text("user_id"), !id.isEmpty else { throw SendbirdFault(400105, "user_id is missing.") }
    guard id.unicodeScalars.count <= SendbirdLimits.userIDLength else {
      throw SendbirdFault(400110, "user_id is too long.")
    }
    guard call.text("nickname") != nil else { throw SendbirdFault(400105, "nickname is missing.") }
    guard call.text("profile_url") != nil || call.multipart != nil else {
      throw SendbirdFault(400105, "profile_url is missing.")
    }
    guard people[UserID(id)] == nil else { throw SendbirdFault(400202, "\"user_id\" violates unique constraint.") }
    if call.multipart?["profile_file"] == nil {
      let draft = Person(id: UserID(id), order: 0, createdAt: now / 1000)
      try apply(call, to: draft)
    }
    let person = addPerson(UserID(id))
    try apply(call, to: person)
    var json = adminJSON(of: person)
    json["is_created"] = true
    return .json(json)
  }

  func requireAdmin(_ call: Call) throws(SendbirdFault) {
    guard call.isAdmin else { throw SendbirdFault(400108, "Not authorized. Api-Token required.") }
  }

  private func apply(_ call: Call, to person: Person) throws(SendbirdFault) {
    if let name = call.text("nickname") {
      try check(length: name, SendbirdLimits.nicknameLength, "nickname")
      person.nickname = name
    }
    if let part = call.multipart?["profile_file"] { person.profileURL = try store(part).url }
    if let url = call.text("profile_url") {
      try check(length: url, SendbirdLimits.urlLength, "profile_url")
      person.profileURL = url
    }
    if let metadata = call.body.object("metadata") { person.metadata = try checked(metadata: metadata) }
    if call.flag("issue_access_token") == true { person.accessToken = hex(40) }
    if let languages = call.body["preferred_languages"]?.array { person.preferredLanguages = languages }
    if let keys = call.body["discovery_keys"]?.array { person.discoveryKeys = keys }
    if let seen = call.number("last_seen_at") { person.lastSeenAt = seen }
  }

  func checked(metadata: JSONObject) throws(SendbirdFault) -> JSONObject {
    guard metadata.allSatisfy({ $0.value.string != nil }) else {
      throw SendbirdFault(400100, "metadata values must be strings.")
    }
    guard hasRealLimits else { return metadata }
    guard metadata.count <= SendbirdLimits.metadataItems else {
      throw SendbirdFault(400203, "Too many metadata items.")
    }
    for (key, value) in metadata {
      guard !key.contains(",") else { throw SendbirdFault(400151, "Metadata keys may not contain commas.") }
      try check(length: key, SendbirdLimits.metadataKeyLength, "metadata key")
      try check(length: value.string ?? "", SendbirdLimits.metadataValueLength, "metadata value")
    }
    return metadata
  }

  private func listUsers(_ call: Call) throws(SendbirdFault) -> Answer {
    let limit = try pageLimit(call)
    let mode = call.query["active_mode"] ?? "activated"
    let ids = Set(call.query.list("user_ids").map { UserID($0) })
    let name = call.query["nickname"]
    let prefix = call.query["nickname_startswith"]
    let metadataKey = call.query["metadatakey"]
    let metadataValues = Set(call.query.list("metadatavalues_in").map { Key($0) })
    let showsBots = call.query.bool("show_bot") ?? true
    // The list is in creation order, so that the token is the last one's number and a page costs its own length.
    var found: [Person] = []
    var index = 0
    if let token = call.query["token"], !token.isEmpty {
      guard let last = Int64(token) else { throw SendbirdFault(400111, "Invalid token.") }
      index = peopleInOrder.partitioningIndex { $0.order > last }
    }
    let candidates =
      ids.isEmpty ? peopleInOrder[index...] : ids.compactMap { people[$0] }.sorted { $0.order < $1.order }[...]
    for person in candidates {
      if found.count > limit { break }
      if mode == "activated", !person.isActive { continue }
      if mode == "deactivated", person.isActive { continue }
      if let name, Key(person.nickname) != Key(name) { continue }
      if let prefix, !person.nickname.hasPrefix(prefix) { continue }
      if !showsBots, person.bot != nil { continue }
      if let metadataKey {
        guard let value = person.metadata.text(metadataKey) else { continue }
        if !metadataValues.isEmpty, !metadataValues.contains(Key(value)) { continue }
      }
      found.append(person)
    }
    let page = found.prefix(limit)
    let next = found.count > limit ? page.last.map { String($0.order) } ?? "" : ""
    let users = page.map { JSONValue.object(call.isAdmin ? adminJSON(of: $0) : json(of: $0).json) }
    return .json(["users": .array(users), "next": .string(next)])
  }

  private func fetchUser(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try person(call.parameter("user"))
    var json = call.isAdmin ? adminJSON(of: person) : json(of: person).json
    if call.query.bool("include_unread_count") == true {
      json["unread_message_count"] = .int(unreadTotal(of: person))
      json["unread_channel_count"] = .int(Int64(unreadRooms(of: person).count))
    }
    return .json(json)
  }

  private func updateUser(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    try apply(call, to: person)
    if call.isAdmin, let isActive = call.flag("is_active"), isActive != person.isActive {
      person.isActive = isActive
      if !isActive {
        endSessions(of: person.id, code: 400300)
        if call.flag("leave_all_when_deactivated") ?? true { for room in person.roomsInOrder { leave(room, person) } }
      }
    }
    if call.isAdmin, call.flag("issue_session_token") == true {
      person.sessionTokens[Key(hex(40))] = call.number("session_token_expires_at") ?? now &+ 604_800_000
    }
    for room in person.roomsInOrder { touch(room) }
    return .json(call.isAdmin ? adminJSON(of: person) : ownJSON(of: person))
  }

  /// With what a user sees of himself alone.
  private func ownJSON(of person: Person) -> JSONObject {
    var json = json(of: person).json
    json["preferred_languages"] = .array(person.preferredLanguages)
    return json
  }

  private func deleteUser(_ call: Call) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    try remove(try person(call.parameter("user")))
    return .empty
  }

  func remove(_ person: Person) throws(SendbirdFault) {
    endSessions(of: person.id, code: 400301)
    for room in person.roomsInOrder { leave(room, person) }
    people[person.id] = nil
    peopleInOrder.removeAll { $0 === person }
  }

  // MARK: Tokens

  private func issueToken(_ call: Call) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    let person = try person(call.parameter("user"))
    let token = Key(hex(40))
    let expiry = call.number("expires_at") ?? now &+ 604_800_000
    person.sessionTokens[token] = expiry
    return .json(["token": .string(token.rawValue), "expires_at": .int(expiry)])
  }

  private func revokeTokens(_ call: Call) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    let person = try person(call.parameter("user"))
    endSessions(of: person.id, code: 400310)
    return .empty
  }

  /// The one client call without a session key.
  private func newSessionKey(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try person(call.parameter("user"))
    if let application = call.headers["App-Id"], application != options.applicationID, !options.openAuthentication {
      throw SendbirdFault(400304, "Application not found.")
    }
    try check(token: call.headers["Access-Token"], of: person)
    return .json(["key": .string(newSession(person.id, isExpiring: call.flag("expiring_session") ?? false).rawValue)])
  }

  // MARK: Blocks

  private func block(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    var targets: [Person] = []
    for id in call.texts("user_ids") + [call.text("target_id")].compactMap(\.self) {
      targets.append(try self.person(id))
    }
    guard let first = targets.first else { throw SendbirdFault(400105, "target_id is missing.") }
    for target in targets {
      person.blocked.insert(target.id)
      tellBlock(SendbirdCategory.blocked, person, target)
    }
    if call.body["user_ids"] != nil { return .json(["users": .array(targets.map { .object(json(of: $0).json) })]) }
    return .json(json(of: first).json)
  }

  private func unblock(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    let target = try self.person(call.parameter("target"))
    person.blocked.remove(target.id)
    tellBlock(SendbirdCategory.unblocked, person, target)
    return .empty
  }

  private func tellBlock(_ category: Int64, _ blocker: Person, _ blockee: Person) {
    let data: JSONObject = ["blocker": .object(json(of: blocker).json), "blockee": .object(json(of: blockee).json)]
    let frame = SendbirdFrame("USEV", ["cat": .int(category), "ts": .int(now), "data": .object(data)])
    push(frame, to: blocker)
    push(frame, to: blockee)
  }

  private func listBlocked(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    let all =
      call.query["list"] == "blocking_me"
      ? peopleInOrder.filter { $0.blocked.contains(person.id) }
      : peopleInOrder.filter { person.blocked.contains($0.id) }
    let ids = Set(call.query.list("user_ids").map { UserID($0) })
    let values = Set(call.query.list("metadatavalues_in").map { Key($0) })
    let found = all.filter { person in
      guard ids.isEmpty || ids.contains(person.id) else { return false }
      guard let key = call.query["metadatakey"] else { return true }
      return person.metadata.text(key).map { values.isEmpty || values.contains(Key($0)) } ?? false
    }
    let (page, next) = try page(found, call, limit: try pageLimit(call)) { $0.id.rawValue }
    return .json(["users": .array(page.map { .object(json(of: $0).json) }), "next": .string(next)])
  }

  // MARK: Metadata

  private func setUserMetadata(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    var changes = call.body.object("metadata") ?? JSONObject()
    if let key = call.parameters["key"] { changes = [key: .string(call.text("value") ?? "")] }
    var metadata = person.metadata
    for (key, value) in changes { metadata[key] = value }
    person.metadata = try checked(metadata: metadata)
    return .json(changes)
  }

  private func deleteUserMetadata(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    if let key = call.parameters["key"] { person.metadata[key] = nil } else { person.metadata = JSONObject() }
    return .empty
  }

  // MARK: Unread

  private func isCounted(_ call: Call) -> (Room) -> Bool {
    let types = Set(call.query.list("custom_types").map { Key($0) })
    let mode = call.query["super_mode"] ?? "all"
    return { room in
      (types.isEmpty || types.contains(Key(room.customType)))
        && (mode == "all" || (mode == "super") == room.isSuper)
    }
  }

  func unreadRooms(of person: Person) -> [Room] {
    person.rooms.values.filter { room in room.members[person.id].map { shownUnread($0, in: room) > 0 } ?? false }
  }

  private func unreadMessages(_ call: Call) throws(SendbirdFault) -> Answer {
    .json(["unread_count": .int(unreadTotal(of: try ownPerson(call), where: isCounted(call)))])
  }

  private func unreadChannels(_ call: Call) throws(SendbirdFault) -> Answer {
    let isCounted = isCounted(call)
    return .json(["unread_count": .int(Int64(unreadRooms(of: try ownPerson(call)).count { isCounted($0) }))])
  }

  private func unreadItems(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    var json = JSONObject()
    for key in call.query.list("item_keys") {
      var total: Int64 = 0
      for room in person.rooms.values {
        guard let mine = room.members[person.id] else { continue }
        if key.hasPrefix("non_super"), room.isSuper { continue }
        if key.hasPrefix("super"), !room.isSuper { continue }
        if key.hasSuffix("unread_message_count") { total &+= shownUnread(mine, in: room) }
        if key.hasSuffix("unread_mention_count") { total &+= mine.mentions }
        if key.hasSuffix("invitation_count"), !mine.isJoined { total &+= 1 }
      }
      json[key] = .int(total)
    }
    return .json(json)
  }

  private func groupChannelCount(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    let state = call.query["state"] ?? "all"
    guard ["all", "joined", "invited", "invited_by_friend", "invited_by_non_friend"].contains(state) else {
      throw SendbirdFault(400111, "Unknown state.")
    }
    let count = person.rooms.values.count { room in
      let mine = room.members[person.id]
      return state == "all" || mine?.state == state || mine?.invitation?.rawValue == state
    }
    return .json(["group_channel_count": .int(Int64(count))])
  }

  private func markAllRead(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    let urls = call.body["channel_urls"]?.array?.compactMap(\.string).map { ChannelID($0) }
    for room in person.roomsInOrder where urls?.contains(room.url) ?? true {
      guard let mine = room.members[person.id], mine.isJoined else { continue }
      markRead(mine, in: room, at: now)
      tellRead(person, in: room, from: nil, requestID: "")
    }
    return .empty
  }
}

extension Array {
  /// The first index whose element satisfies `isAfter`, in an array where those come last.
  func partitioningIndex(where isAfter: (Element) -> Bool) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if isAfter(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
