import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

// Who is told what.
extension SendbirdEmulator {
  func push(_ frame: SendbirdFrame, to id: EmulatorConnectionID) { outputs.append(.send(id, .text(frame.text))) }

  func push(_ frame: SendbirdFrame, to person: Person) {
    for id in connectionsByUser[person.id] ?? [] { push(frame, to: id) }
  }

  /// Those of the channel who have a socket, in order of their creation; never a scan of the longer of both lists.
  func present(in room: Room) -> [Person] {
    if room.isOpen {
      return room.participants.keys.compactMap { people[$0] }.sorted { $0.order < $1.order }
    }
    let users: [Person]
    if room.members.count < connectionsByUser.count {
      users = room.members.values.filter { $0.isJoined && connectionsByUser[$0.person.id] != nil }.map(\.person)
    } else {
      users = connectionsByUser.keys.compactMap { id in
        room.members[id].flatMap { $0.isJoined ? $0.person : nil }
      }
    }
    return users.sorted { $0.order < $1.order }
  }

  /// The sockets of `person` that hear of `room`: for an open channel, those that entered it.
  func sockets(of person: Person, in room: Room) -> [EmulatorConnectionID] {
    let all = connectionsByUser[person.id] ?? []
    guard room.isOpen else { return all }
    return all.filter { room.participants[person.id]?.contains($0.number) == true }
  }

  func event(_ category: Int64, in room: Room, _ data: JSONObject) -> SendbirdFrame {
    SendbirdFrame(
      "SYEV",
      [
        "cat": .int(category), "channel_url": .string(room.url.rawValue),
        "channel_type": .string(room.isOpen ? "open" : "group"), "channel_id": .int(room.number),
        "is_super": .bool(room.isSuper), "ts": .int(now), "data": .object(data),
      ])
  }

  /// `SYEV` to all who are present, and to `others` who are not members (any more, or yet).
  func announce(
    _ category: Int64, in room: Room, _ data: JSONObject, except: UserID? = nil, also others: [Person] = []
  ) {
    tellWebhook(event: category, in: room, data)
    let frame = event(category, in: room, data)
    var told: Set<UserID> = []
    for person in present(in: room) + others where person.id != except && told.insert(person.id).inserted {
      for id in room.isOpen ? sockets(of: person, in: room) : connectionsByUser[person.id] ?? [] { push(frame, to: id) }
    }
  }

  /// A stored message to all who are present. The sending socket alone gets its `req_id`.
  func broadcast(
    _ message: StoredMessage, in room: Room, command: String, from socket: EmulatorConnectionID?, requestID: String,
    extra: JSONObject = JSONObject()
  ) {
    tellWebhook(command == message.type ? .messageSend : .messageUpdate, in: room, message: message)
    let wire = wire(message, in: room)
    func frame(_ id: String) -> SendbirdFrame {
      var frame = wire.frame(command, requestID: id, isSuper: room.isSuper)
      frame.payload["channel_id"] = .int(room.number)
      frame.payload.fill(from: extra)
      return frame
    }
    // The acknowledgement goes first: a client that waits for it knows its message before anything else.
    if let socket {
      var ack = frame(requestID)
      if !room.isOpen, let sender = message.sender { ack.payload["unread_cnt"] = unreadCount(of: sender) }
      push(ack, to: socket)
    }
    let shared = frame("")
    for person in present(in: room) {
      let blocks = message.sender.map { person.blocked.contains($0.id) } ?? false
      guard !blocks else { continue }
      for id in sockets(of: person, in: room) where id != socket {
        var own = shared
        if !room.isOpen { own.payload["unread_cnt"] = unreadCount(of: person) }
        push(own, to: id)
      }
    }
    if command == message.type { pushNotifications(of: message, in: room) }
    if command == message.type, room.pinned.last == message.id {
      announce(SendbirdCategory.pinsChanged, in: room, pins(of: room))
    }
  }

  func touch(_ room: Room) {
    room.lastChange = newChange()
    room.lastChangeAt = now
  }

  func counts(_ room: Room) -> JSONObject {
    ["member_count": .int(Int64(room.members.count)), "joined_member_count": .int(room.joinedCount)]
  }

  func recordChange(of message: StoredMessage, in room: Room) {
    room.changes.append(Change(number: newChange(), at: now, messageID: message.id))
  }
}
