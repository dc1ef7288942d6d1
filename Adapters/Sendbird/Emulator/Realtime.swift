import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

// What clients say over the WebSocket.
extension SendbirdEmulator {
  func receive(_ text: String, from id: EmulatorConnectionID) {
    for case .success(let frame) in SendbirdFrame.parse(text) {
      guard let connection = connections[id], let person = people[connection.user] else { return }
      do { try handle(frame, from: id, connection, person) } catch {
        var json = error.json
        json["req_id"] = .string(frame.requestID ?? "")
        push(SendbirdFrame("EROR", json), to: id)
      }
    }
  }

  private func handle(
    _ frame: SendbirdFrame, from id: EmulatorConnectionID, _ connection: Connection, _ person: Person
  ) throws(SendbirdFault) {
    count("WS \(frame.command)", isImplemented: Self.commands.contains(frame.command))
    if frame.command == "PING" { return pong(frame, to: id) }
    if frame.command == "LOGI" { return try refresh(frame, from: id, person) }
    if let fault = sessions[connection.key]?.fault { throw SendbirdFault(fault, Self.words(of: fault)) }
    switch frame.command {
    case "MESG", "FILE": try send(frame, from: id, person)
    case "MEDI", "FEDI": try edit(frame, from: id, person)
    case "READ": try read(frame, from: id, person)
    case "MACK": acknowledge(frame, person)
    case "TPST", "TPEN": type(frame, person)
    case "ENTR": try enter(frame, from: id, person)
    case "EXIT": try exit(frame, from: id, person)
    default: throw SendbirdFault(400404, "Unknown command.")
    }
  }

  static let commands: Set<String> = [
    "PING", "LOGI", "MESG", "FILE", "MEDI", "FEDI", "READ", "MACK", "TPST", "TPEN", "ENTR", "EXIT",
  ]

  private func pong(_ frame: SendbirdFrame, to id: EmulatorConnectionID) {
    var json: JSONObject = ["ts": .int(now), "sts": .int(now)]
    json["id"] = frame.payload["id"]
    push(SendbirdFrame("PONG", json), to: id)
  }

  func roomOfFrame(_ frame: SendbirdFrame) throws(SendbirdFault) -> Room {
    guard let url = frame.payload.text("channel_url"), let room = rooms[ChannelID(url)] else {
      throw SendbirdFault(900500, "Channel not found.")
    }
    return room
  }

  private func send(
    _ frame: SendbirdFrame, from id: EmulatorConnectionID, _ person: Person
  ) throws(SendbirdFault) {
    let room = try roomOfFrame(frame)
    if isOverRate("MESG \(person.id)", limit: settings.maxMessagesPerSecond) {
      throw SendbirdFault(900200, "Too many messages.")
    }
    let requestID = frame.requestID ?? ""
    let dedupKey = Key("\(person.id.rawValue)\u{1F}\(requestID)")
    if settings.dedupRequestID, let known = room.requestIDs[dedupKey], let message = room.messageByID[known] {
      let wire = wire(message, in: room)
      return push(wire.frame(frame.command, requestID: requestID, isSuper: room.isSuper), to: id)
    }
    try mayWrite(person, in: room)
    let payload = frame.payload
    let draft = MessageInput(frame: payload, type: frame.command)
    let message = try store(draft, in: room, from: person, requestID: requestID)
    if !requestID.isEmpty { room.requestIDs[dedupKey] = message.id }
    broadcast(message, in: room, command: frame.command, from: id, requestID: requestID)
    tellThread(of: message, in: room)
  }

  /// Whether `person` may send to `room` now.
  func mayWrite(_ person: Person, in room: Room) throws(SendbirdFault) {
    if activeBan(of: person.id, in: room) != nil || isRestricted(person.id, "ban", in: room) {
      throw SendbirdFault(900100, "You are banned from the channel.")
    }
    let isOperator = room.operators.contains(person.id)
    if room.isOpen {
      guard room.participants[person.id] != nil else { throw SendbirdFault(900020, "Not a participant.") }
    } else {
      guard let membership = room.members[person.id] else { throw SendbirdFault(900020, "Not a member.") }
      guard membership.isJoined else { throw SendbirdFault(900023, "You have not joined the channel yet.") }
    }
    if activeMute(of: person.id, in: room) != nil { throw SendbirdFault(900041, "You are muted in the channel.") }
    if isRestricted(person.id, "mute", in: room) {
      throw SendbirdFault(900040, "You are muted in channels of this custom type.")
    }
    if room.isFrozen, !isOperator { throw SendbirdFault(900050, "The channel is frozen.") }
    if room.isBroadcast, !isOperator { throw SendbirdFault(900030, "Only operators write in a broadcast channel.") }
    if isBlocked(person, in: room) { throw SendbirdFault(900080, "The receiver blocked you.") }
    if partner(of: person, in: room)?.isActive == false {
      throw SendbirdFault(900081, "The receiver is deactivated.")
    }
  }

  /// The other one of a group of two.
  private func partner(of person: Person, in room: Room) -> Person? {
    guard !room.isOpen, room.members.count == 2, room.members[person.id] != nil else { return nil }
    return room.members.values.first { $0.person !== person }?.person
  }

  /// Whether the one receiver of what `person` writes blocked him.
  func isBlocked(_ person: Person, in room: Room) -> Bool {
    partner(of: person, in: room)?.blocked.contains(person.id) ?? false
  }

  private func edit(
    _ frame: SendbirdFrame, from id: EmulatorConnectionID, _ person: Person
  ) throws(SendbirdFault) {
    let room = try roomOfFrame(frame)
    guard let number = frame.payload.number("msg_id"), let message = room.messageByID[number], !message.isRemoved
    else { throw SendbirdFault(900300, "Message not found.") }
    guard message.sender === person else { throw SendbirdFault(900022, "Not the owner of the message.") }
    let old = try change(message, in: room, by: frame.payload)
    broadcast(
      message, in: room, command: frame.command, from: id, requestID: frame.requestID ?? "",
      extra: ["old_values": .object(old)])
  }

  private func read(
    _ frame: SendbirdFrame, from id: EmulatorConnectionID, _ person: Person
  ) throws(SendbirdFault) {
    let room = try roomOfFrame(frame)
    guard let membership = room.members[person.id], membership.isJoined else {
      throw SendbirdFault(900020, "Not a member.")
    }
    markRead(membership, in: room, at: now)
    tellRead(person, in: room, from: id, requestID: frame.requestID ?? "")
  }

  func markRead(_ membership: Membership, in room: Room, at time: Int64) {
    membership.readAt = max(membership.readAt, time)
    membership.deliveredAt = max(membership.deliveredAt, membership.readAt)
    recount(membership, in: room)
    touch(room)
  }

  func tellRead(_ person: Person, in room: Room, from socket: EmulatorConnectionID?, requestID: String) {
    let at = room.members[person.id]?.readAt ?? now
    let receipt: JSONObject = ["user_id": .string(person.id.rawValue), "read_ts": .int(at)]
    tellWebhook(.messageRead, in: room, ["read_updates": [.object(receipt)]])
    func frame(_ id: String) -> SendbirdFrame {
      SendbirdFrame(
        "READ",
        [
          "req_id": .string(id), "channel_url": .string(room.url.rawValue), "channel_type": "group",
          "channel_id": .int(room.number), "ts": .int(at), "user": .object(json(of: person).frameJSON()),
        ])
    }
    if let socket {
      var ack = frame(requestID)
      ack.payload["unread_cnt"] = unreadCount(of: person)
      push(ack, to: socket)
    }
    // Super groups have no receipts: only the own devices learn of it.
    let audience = room.isSuper || room.isBroadcast ? [person] : present(in: room)
    for other in audience {
      for id in connectionsByUser[other.id] ?? [] where id != socket {
        var own = frame("")
        if other === person { own.payload["unread_cnt"] = unreadCount(of: person) }
        push(own, to: id)
      }
    }
  }

  private func acknowledge(_ frame: SendbirdFrame, _ person: Person) {
    guard let room = try? roomOfFrame(frame), let number = frame.payload.number("msg_id"),
      let message = room.messageByID[number]
    else { return }
    markDelivered(person, in: room, at: message.createdAt)
  }

  func markDelivered(_ person: Person, in room: Room, at time: Int64) {
    guard let membership = room.members[person.id], membership.isJoined, time > membership.deliveredAt,
      !room.isSuper, !room.isBroadcast
    else { return }
    membership.deliveredAt = time
    let frame = SendbirdFrame(
      "DLVR",
      [
        "channel_url": .string(room.url.rawValue), "channel_type": "group", "channel_id": .int(room.number),
        "updated": .object([person.id.rawValue: .int(time)]),
      ])
    for other in present(in: room) where other !== person { push(frame, to: other) }
  }

  private func type(_ frame: SendbirdFrame, _ person: Person) {
    guard let room = try? roomOfFrame(frame), room.members[person.id]?.isJoined == true else { return }
    tellTyping(person, in: room, isTyping: frame.command == "TPST")
  }

  func tellTyping(_ person: Person, in room: Room, isTyping: Bool) {
    announce(
      isTyping ? SendbirdCategory.typingStarted : SendbirdCategory.typingEnded, in: room, json(of: person).json,
      except: person.id)
  }

  // MARK: Open channels

  private func enter(
    _ frame: SendbirdFrame, from id: EmulatorConnectionID, _ person: Person
  ) throws(SendbirdFault) {
    if let url = frame.payload.text("channel_url"), deletedRooms.contains(ChannelID(url)) {
      throw SendbirdFault(900070, "The channel was deleted.")
    }
    let room = try roomOfFrame(frame)
    guard room.isOpen else { throw SendbirdFault(900090, "Not an open channel.") }
    try mayEnter(person, room)
    let isNew = room.participants[person.id] == nil
    if isNew, hasRealLimits, room.participants.count >= SendbirdLimits.participants {
      throw SendbirdFault(900400, "Too many participants.")
    }
    room.participants[person.id, default: []].insert(id.number)
    connections[id]?.entered.insert(room.url)
    answerEntry(frame, in: room, to: id)
    if isNew { announceEntry(SendbirdCategory.entered, person, in: room, except: id) }
  }

  private func exit(
    _ frame: SendbirdFrame, from id: EmulatorConnectionID, _ person: Person
  ) throws(SendbirdFault) {
    let room = try roomOfFrame(frame)
    guard room.isOpen else { throw SendbirdFault(900090, "Not an open channel.") }
    leaveOpenRoom(room, person.id, id)
    answerEntry(frame, in: room, to: id)
  }

  func leaveOpenRoom(_ room: Room, _ user: UserID, _ id: EmulatorConnectionID) {
    room.participants[user]?.remove(id.number)
    guard room.participants[user]?.isEmpty == true else { return }
    room.participants[user] = nil
    if let person = people[user] { announceEntry(SendbirdCategory.exited, person, in: room, except: id) }
  }

  private func answerEntry(_ frame: SendbirdFrame, in room: Room, to id: EmulatorConnectionID) {
    push(
      SendbirdFrame(
        frame.command,
        [
          "req_id": .string(frame.requestID ?? ""), "channel_url": .string(room.url.rawValue), "channel_type": "open",
          "participant_count": .int(Int64(room.participants.count)), "ts": .int(now),
        ]), to: id)
  }

  private func announceEntry(
    _ category: Int64, _ person: Person, in room: Room, except socket: EmulatorConnectionID
  ) {
    var data = json(of: person).json
    data["participant_count"] = .int(Int64(room.participants.count))
    data["edge_ts"] = .int(now)
    tellWebhook(event: category, in: room, ["users": [.object(json(of: person).json)]])
    let frame = event(category, in: room, data)
    for other in present(in: room) {
      for id in sockets(of: other, in: room) where id != socket { push(frame, to: id) }
    }
  }
}
