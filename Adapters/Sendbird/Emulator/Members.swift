import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

// Who is in a channel, and what they may do.
extension SendbirdEmulator {
  static let memberRoutes: [Route] = {
    let group = "group_channels/{url}"
    var routes: [Route] = [
      Route("POST", "\(group)/invite") { (e, c) throws(SendbirdFault) in try e.invite(c) },
      Route("PUT", "\(group)/accept") { (e, c) throws(SendbirdFault) in try e.accept(c) },
      Route("PUT", "\(group)/decline") { (e, c) throws(SendbirdFault) in try e.decline(c) },
      Route("PUT", "\(group)/join") { (e, c) throws(SendbirdFault) in try e.join(c) },
      Route("PUT", "\(group)/leave") { (e, c) throws(SendbirdFault) in try e.leave(c) },
      Route("PUT", "\(group)/hide") { (e, c) throws(SendbirdFault) in try e.hide(c) },
      Route("DELETE", "\(group)/hide") { (e, c) throws(SendbirdFault) in try e.unhide(c) },
      Route("PUT", "\(group)/reset_user_history") { (e, c) throws(SendbirdFault) in try e.resetHistory(c) },
      Route("GET", "\(group)/members") { (e, c) throws(SendbirdFault) in try e.listMembers(c) },
      Route("GET", "\(group)/members/{user}") { (e, c) throws(SendbirdFault) in try e.fetchMember(c) },
      Route("POST", "\(group)/typing") { (e, c) throws(SendbirdFault) in try e.typing(c, true) },
      Route("DELETE", "\(group)/typing") { (e, c) throws(SendbirdFault) in try e.typing(c, false) },
      Route("POST", "\(group)/screenshot") { (e, c) throws(SendbirdFault) in
        _ = try e.memberRoom(c)
        return .empty
      },
    ]
    for kind in ["group_channels", "open_channels"] {
      routes += [
        Route("GET", "\(kind)/{url}/operators") { (e, c) throws(SendbirdFault) in try e.listOperators(c, kind) },
        Route("POST", "\(kind)/{url}/operators") { (e, c) throws(SendbirdFault) in try e.addOperators(c, kind) },
        Route("DELETE", "\(kind)/{url}/operators") { (e, c) throws(SendbirdFault) in try e.removeOperators(c, kind) },
        Route("POST", "\(kind)/{url}/ban") { (e, c) throws(SendbirdFault) in try e.ban(c, kind) },
        Route("PUT", "\(kind)/{url}/ban/{user}") { (e, c) throws(SendbirdFault) in try e.ban(c, kind) },
        Route("GET", "\(kind)/{url}/ban") { (e, c) throws(SendbirdFault) in try e.listBanned(c, kind) },
        Route("GET", "\(kind)/{url}/ban/{user}") { (e, c) throws(SendbirdFault) in try e.fetchBan(c, kind) },
        Route("DELETE", "\(kind)/{url}/ban/{user}") { (e, c) throws(SendbirdFault) in try e.unban(c, kind) },
        Route("POST", "\(kind)/{url}/mute") { (e, c) throws(SendbirdFault) in try e.mute(c, kind) },
        Route("GET", "\(kind)/{url}/mute") { (e, c) throws(SendbirdFault) in try e.listMuted(c, kind) },
        Route("GET", "\(kind)/{url}/mute/{user}") { (e, c) throws(SendbirdFault) in try e.fetchMute(c, kind) },
        Route("DELETE", "\(kind)/{url}/mute/{user}") { (e, c) throws(SendbirdFault) in try e.unmute(c, kind) },
      ]
    }
    return routes
  }()

  // MARK: Coming and going

  func tellInvitations(_ users: [Person], in room: Room, by inviter: Person?) {
    let guests = users.filter { $0 !== inviter && room.members[$0.id] != nil }
    guard !guests.isEmpty else { return }
    var data = counts(room)
    data["inviter"] = inviter.map { .object(json(of: $0).json) } ?? .null
    data["invitees"] = .array(
      guests.compactMap { guest in room.members[guest.id].map { .object(json(of: $0, in: room, for: nil).json) } })
    data["invited_at"] = .int(now)
    announce(SendbirdCategory.invited, in: room, data, also: guests)
    let joined = guests.filter { room.members[$0.id]?.isJoined == true }
    if !joined.isEmpty { tellJoined(joined, in: room) }
  }

  func tellJoined(_ users: [Person], in room: Room) {
    var data = counts(room)
    data["users"] = .array(
      users.compactMap { user in room.members[user.id].map { .object(json(of: $0, in: room, for: nil).json) } })
    data["joined_ts"] = .int(now / 1000)
    announce(SendbirdCategory.joined, in: room, data)
  }

  private func invite(_ call: Call) throws(SendbirdFault) -> Answer {
    let (room, mine) = try memberRoom(call)
    if call.sessionUser != nil, mine?.isJoined != true { throw SendbirdFault(400108, "Not authorized. Not a member.") }
    let ids = call.texts("user_ids").isEmpty ? call.texts("users") : call.texts("user_ids")
    if hasRealLimits, ids.count > SendbirdLimits.inviteBatch { throw SendbirdFault(400203, "Too many user_ids.") }
    var guests: [Person] = []
    for id in ids {
      let person = try person(id)
      if activeBan(of: person.id, in: room) != nil, call.sessionUser != nil {
        throw SendbirdFault(400750, "User is banned.")
      }
      if room.members[person.id] == nil { guests.append(person) }
    }
    try mayInvite(guests, call.sessionUser)
    let (states, hidings) = try (statuses(call, .invitation), statuses(call, .hiding))
    let most = room.isSuper ? SendbirdLimits.superGroupMembers : SendbirdLimits.groupMembers
    if hasRealLimits, room.members.count + guests.count > most {
      throw SendbirdFault(400203, "A channel has at most \(most) members.")
    }
    let inviter = call.sessionUser ?? call.text("inviter_id").flatMap { people[UserID($0)] }
    if !guests.isEmpty { setDistinct(false, room) }
    add(guests, to: room, by: inviter, statuses: states, hidings: hidings)
    touch(room)
    tellInvitations(guests, in: room, by: inviter)
    return .json(json(of: room, for: call.sessionUser, ChannelView(members: !room.isSuper)))
  }

  private func accept(_ call: Call) throws(SendbirdFault) -> Answer {
    let room = try room(call)
    let person = try actingPerson(call)
    guard let mine = room.members[person.id] else { throw SendbirdFault(400108, "Not invited.") }
    if !mine.isJoined {
      try checkAccessCode(call, room)
      mine.state = "joined"
      mine.invitation = nil
      (mine.joinedAt, mine.readAt, mine.deliveredAt) = (now, now, now)
      touch(room)
      tellJoined([person], in: room)
    }
    return .json(json(of: room, for: person))
  }

  private func decline(_ call: Call) throws(SendbirdFault) -> Answer {
    let room = try room(call)
    let person = try actingPerson(call)
    guard let mine = room.members[person.id], !mine.isJoined else { throw SendbirdFault(400108, "Not invited.") }
    let inviter = mine.inviter.flatMap { people[$0] }
    drop(person, from: room)
    announce(
      SendbirdCategory.invitationDeclined, in: room,
      [
        "inviter": inviter.map { .object(json(of: $0).json) } ?? .null, "invitee": .object(json(of: person).json),
      ], also: [person])
    return .empty
  }

  private func join(_ call: Call) throws(SendbirdFault) -> Answer {
    let room = try room(call)
    let person = try actingPerson(call)
    guard room.isPublic || call.isAdmin else { throw SendbirdFault(400108, "The channel is not public.") }
    try mayEnter(person, room)
    try checkAccessCode(call, room)
    if room.members[person.id] == nil {
      setDistinct(false, room)
      add([person], to: room, by: person, statuses: [:])
      touch(room)
      tellJoined([person], in: room)
    }
    return .json(json(of: room, for: person))
  }

  private func checkAccessCode(_ call: Call, _ room: Room) throws(SendbirdFault) {
    guard room.accessCode.isEmpty || Key(call.text("access_code") ?? "") == Key(room.accessCode) || call.isAdmin else {
      throw SendbirdFault(400108, "Wrong access code.")
    }
  }

  func mayEnter(_ person: Person, _ room: Room) throws(SendbirdFault) {
    if activeBan(of: person.id, in: room) != nil { throw SendbirdFault(400750, "You are banned from the channel.") }
    if isRestricted(person.id, "ban", in: room) {
      throw SendbirdFault(400751, "You are banned from channels of this custom type.")
    }
  }

  private func leave(_ call: Call) throws(SendbirdFault) -> Answer {
    let room = try room(call)
    var leaving: [Person] = []
    if let own = call.sessionUser {
      leaving = [own]
    } else if call.flag("should_leave_all") == true {
      leaving = room.members.values.map(\.person).sorted { $0.order < $1.order }
    } else {
      for id in call.texts("user_ids") + [call.text("user_id")].compactMap(\.self) { leaving.append(try person(id)) }
    }
    for person in leaving {
      guard room.members[person.id] != nil else { throw SendbirdFault(400108, "Not a member.") }
      leave(room, person)
    }
    return .empty
  }

  func leave(_ room: Room, _ person: Person) {
    drop(person, from: room)
    var data = json(of: person).json
    for (key, value) in counts(room) { data[key] = value }
    announce(SendbirdCategory.left, in: room, data, also: [person])
  }

  /// Takes the membership away without a word.
  func drop(_ person: Person, from room: Room) {
    setDistinct(false, room)
    room.members[person.id] = nil
    room.operators.removeAll { $0 == person.id }
    person.rooms[room.url] = nil
    person.lost[room.url] = (newChange(), now)
    touch(room)
  }

  func leaveAll(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    let type = call.text("custom_type")
    for room in person.roomsInOrder
    where type.map({ Key($0) == Key(room.customType) }) ?? true {
      leave(room, person)
    }
    return .empty
  }

  // MARK: Hiding

  private func mine(_ call: Call) throws(SendbirdFault) -> (Room, Membership) {
    let room = try room(call)
    let person = try actingPerson(call)
    guard let mine = room.members[person.id] else { throw SendbirdFault(400108, "Not a member.") }
    return (room, mine)
  }

  private func hide(_ call: Call) throws(SendbirdFault) -> Answer {
    let (room, mine) = try mine(call)
    let allows = call.flag("allow_auto_unhide") ?? true
    let clears = call.flag("hide_previous_messages") ?? false
    mine.hiddenState = allows ? "hidden_allow_auto_unhide" : "hidden_prevent_auto_unhide"
    if clears {
      mine.historyOffset = now
      (mine.unread, mine.mentions) = (0, 0)
    }
    touch(room)
    var frame = event(
      SendbirdCategory.hidden, in: room, ["allow_auto_unhide": .bool(allows), "hide_previous_messages": .bool(clears)])
    if clears { frame.payload["ts_message_offset"] = .int(mine.historyOffset) }
    push(frame, to: mine.person)
    return clears ? .json(["ts_message_offset": .int(mine.historyOffset)]) : .empty
  }

  private func unhide(_ call: Call) throws(SendbirdFault) -> Answer {
    let (room, mine) = try mine(call)
    mine.hiddenState = "unhidden"
    touch(room)
    push(event(SendbirdCategory.unhidden, in: room, JSONObject()), to: mine.person)
    return .empty
  }

  private func resetHistory(_ call: Call) throws(SendbirdFault) -> Answer {
    let (room, mine) = try mine(call)
    mine.historyOffset = now
    (mine.unread, mine.mentions) = (0, 0)
    touch(room)
    return .json(["ts_message_offset": .int(now)])
  }

  // MARK: Lists

  private func listMembers(_ call: Call) throws(SendbirdFault) -> Answer {
    let (room, _) = try memberRoom(call)
    let query = call.query
    let prefix = query["nickname_startswith"]
    var members = membersByName(room).filter { member in
      switch query["operator_filter"] {
      case "operator": if !member.isOperator { return false }
      case "nonoperator": if member.isOperator { return false }
      default: break
      }
      let isMuted = activeMute(of: member.person.id, in: room) != nil
      switch query["muted_member_filter"] {
      case "muted": if !isMuted { return false }
      case "unmuted": if isMuted { return false }
      default: break
      }
      switch query["member_state_filter"] {
      case "joined_only": if !member.isJoined { return false }
      case "invited_only": if member.isJoined { return false }
      case "invited_by_friend": if member.invitation != .byFriend { return false }
      case "invited_by_non_friend": if member.invitation != .byNonFriend { return false }
      default: break
      }
      return prefix.map { member.person.nickname.hasPrefix($0) } ?? true
    }
    if query["order"] == "operator_then_member_alphabetical" {
      members = members.filter(\.isOperator) + members.filter { !$0.isOperator }
    }
    let (page, next) = try page(members, call, limit: try pageLimit(call)) { $0.person.id.rawValue }
    let list = page.map { member in
      var wire = json(of: member, in: room, for: call.sessionUser)
      if query.bool("show_read_receipt") == true { wire.readAt = member.readAt }
      if query.bool("show_delivery_receipt") == true { wire.deliveredAt = member.deliveredAt }
      wire.joinedAt = member.joinedAt / 1000
      return JSONValue.object(wire.json)
    }
    return .json(["members": .array(list), "next": .string(next)])
  }

  private func fetchMember(_ call: Call) throws(SendbirdFault) -> Answer {
    let (room, _) = try memberRoom(call)
    let member = room.members[UserID(call.parameter("user"))]
    return .json(["is_member": .bool(member?.isJoined ?? false), "state": .string(member?.state ?? "none")])
  }

  private func typing(_ call: Call, _ isTyping: Bool) throws(SendbirdFault) -> Answer {
    let (room, mine) = try memberRoom(call)
    if let own = call.sessionUser {
      let isOwn = call.texts("user_ids").allSatisfy { UserID($0) == own.id }
      guard isOwn, mine?.isJoined == true else { throw SendbirdFault(400108, "Not authorized.") }
    }
    for id in call.texts("user_ids") { tellTyping(try person(id), in: room, isTyping: isTyping) }
    return .empty
  }

  // MARK: Operators

  func makeOperator(_ user: UserID, in room: Room) {
    guard people[user] != nil, !room.operators.contains(user), room.isOpen || room.members[user] != nil else { return }
    room.operators.append(user)
    room.members[user]?.isOperator = true
  }

  private func tellOperators(_ room: Room) {
    touch(room)
    let operators = room.operators.compactMap { people[$0] }
    announce(
      SendbirdCategory.operatorsChanged, in: room, ["operators": .array(operators.map { .object(json(of: $0).json) })])
  }

  private func listOperators(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let (room, _) = try visible(call, kind)
    let (page, next) = try page(room.operators, call, limit: try pageLimit(call)) { $0.rawValue }
    return .json([
      "operators": .array(page.compactMap { people[$0] }.map { .object(json(of: $0).json) }), "next": .string(next),
    ])
  }

  private func addOperators(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let room = try channel(call, kind)
    try requireOperator(call, in: room)
    for id in call.texts("operator_ids") {
      let person = try person(id)
      guard room.isOpen || room.members[person.id] != nil else { throw SendbirdFault(400108, "Not a member.") }
      makeOperator(person.id, in: room)
    }
    tellOperators(room)
    return .empty
  }

  private func removeOperators(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let room = try channel(call, kind)
    try requireOperator(call, in: room)
    let ids = call.flag("delete_all") == true ? Set(room.operators) : Set(call.texts("operator_ids").map { UserID($0) })
    room.operators.removeAll { ids.contains($0) }
    for id in ids { room.members[id]?.isOperator = false }
    tellOperators(room)
    return .empty
  }

  // MARK: Bans and mutes

  /// v3 JavaScript sends the seconds of a ban as text.
  private func restriction(_ call: Call) throws(SendbirdFault) -> Restriction {
    let seconds = call.number("seconds") ?? -1
    guard seconds >= -1 else { throw SendbirdFault(400106, "seconds must be -1 or more.") }
    let description = call.text("description") ?? ""
    try check(length: description, SendbirdLimits.descriptionLength, "description")
    return restriction(seconds: seconds, description: description)
  }

  func restriction(seconds: Int64, description: String) -> Restriction {
    let (span, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    let end = seconds < 0 || overflow ? -1 : now &+ span
    return Restriction(startAt: now, endAt: end, description: description)
  }

  func json(of person: Person, _ restriction: Restriction, _ type: String) -> JSONObject {
    var json = json(of: person).json
    json["description"] = .string(restriction.description)
    json["start_at"] = .int(restriction.startAt)
    json["end_at"] = .int(restriction.endAt)
    json["restriction_type"] = .string(type)
    json["remaining_duration"] = .int(restriction.endAt < 0 ? -1 : max(0, restriction.endAt &- now))
    return json
  }

  private func ban(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let room = try channel(call, kind)
    try requireOperator(call, in: room)
    let person = try person(call.parameters["user"] ?? call.text("user_id") ?? "")
    let restriction = try restriction(call)
    room.banned[person.id] = restriction
    let data = json(of: person, restriction, "banned")
    announce(SendbirdCategory.banned, in: room, data, also: [person])
    if room.members[person.id] != nil { drop(person, from: room) }
    room.participants[person.id] = nil
    return .json([
      "user": .object(json(of: person).json), "start_at": .int(restriction.startAt), "end_at": .int(restriction.endAt),
      "description": .string(restriction.description),
    ])
  }

  private func unban(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let room = try channel(call, kind)
    try requireOperator(call, in: room)
    let person = try person(call.parameter("user"))
    guard let ban = room.banned.removeValue(forKey: person.id), !ban.isOver(at: now) else {
      throw SendbirdFault(400201, "The user is not banned.")
    }
    announce(SendbirdCategory.unbanned, in: room, json(of: person).json, also: [person])
    return .empty
  }

  private func listBanned(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let (room, _) = try visible(call, kind)
    let all = room.banned.filter { !$0.value.isOver(at: now) }.sorted { $0.key < $1.key }
    let (page, next) = try page(all, call, limit: try pageLimit(call)) { $0.key.rawValue }
    let list = page.compactMap { user, restriction -> JSONValue? in
      guard let person = people[user] else { return nil }
      // The JavaScript client reads each user from the item itself, others from `user`.
      var item = json(of: person, restriction, "banned")
      item["user"] = .object(json(of: person).json)
      return .object(item)
    }
    return .json(["banned_list": .array(list), "total_ban_count": .int(Int64(all.count)), "next": .string(next)])
  }

  private func fetchBan(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let (room, _) = try visible(call, kind)
    let person = try person(call.parameter("user"))
    guard let restriction = activeBan(of: person.id, in: room) else {
      throw SendbirdFault(400201, "The user is not banned.")
    }
    var item = json(of: person, restriction, "banned")
    item["user"] = .object(json(of: person).json)
    return .json(item)
  }

  private func mute(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let room = try channel(call, kind)
    try requireOperator(call, in: room)
    let person = try person(call.text("user_id") ?? "")
    guard room.isOpen || room.members[person.id] != nil else { throw SendbirdFault(400108, "Not a member.") }
    let restriction = try restriction(call)
    room.muted[person.id] = restriction
    touch(room)
    announce(SendbirdCategory.muted, in: room, json(of: person, restriction, "muted"))
    return .json(json(of: room, for: call.sessionUser, ChannelView(members: !room.isSuper)))
  }

  private func unmute(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let room = try channel(call, kind)
    try requireOperator(call, in: room)
    let person = try person(call.parameter("user"))
    guard room.muted.removeValue(forKey: person.id) != nil else {
      throw SendbirdFault(400201, "The user is not muted.")
    }
    touch(room)
    announce(SendbirdCategory.unmuted, in: room, json(of: person).json)
    return .json(json(of: room, for: call.sessionUser, ChannelView(members: !room.isSuper)))
  }

  private func listMuted(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let (room, _) = try visible(call, kind)
    let all = room.muted.filter { !$0.value.isOver(at: now) }.sorted { $0.key < $1.key }
    let (page, next) = try page(all, call, limit: try pageLimit(call)) { $0.key.rawValue }
    let list = page.compactMap { user, restriction in
      people[user].map { JSONValue.object(json(of: $0, restriction, "muted")) }
    }
    return .json(["muted_list": .array(list), "total_mute_count": .int(Int64(all.count)), "next": .string(next)])
  }

  private func fetchMute(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let (room, _) = try visible(call, kind)
    let person = try person(call.parameter("user"))
    guard let restriction = activeMute(of: person.id, in: room) else { return .json(["is_muted": false]) }
    var json = json(of: person, restriction, "muted").only(["remaining_duration", "start_at", "end_at", "description"])
    json["is_muted"] = true
    return .json(json)
  }
}
