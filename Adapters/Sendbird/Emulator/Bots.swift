import ChatJSON
import SendbirdWire
import UnifiedChat

// Users that the application speaks through. Nobody is called back: what a bot hears, its owner reads elsewhere.
extension SendbirdEmulator {
  static let botRoutes: [Route] = [
    Route("POST", "bots") { (e, c) throws(SendbirdFault) in try e.createBot(c) },
    Route("GET", "bots") { (e, c) throws(SendbirdFault) in try e.listBots(c) },
    Route("GET", "bots/{id}") { (e, c) throws(SendbirdFault) in .json(e.json(ofBot: try e.bot(c))) },
    Route("PUT", "bots/{id}") { (e, c) throws(SendbirdFault) in try e.updateBot(c) },
    Route("DELETE", "bots/{id}") { (e, c) throws(SendbirdFault) in
      try e.remove(try e.bot(c))
      return .empty
    },
    Route("POST", "bots/{id}/channels") { (e, c) throws(SendbirdFault) in try e.botJoins(c) },
    Route("DELETE", "bots/{id}/channels") { (e, c) throws(SendbirdFault) in
      let bot = try e.bot(c)
      for room in bot.roomsInOrder { e.leave(room, bot) }
      return .empty
    },
    Route("DELETE", "bots/{id}/channels/{url}") { (e, c) throws(SendbirdFault) in
      let room = try e.room(c)
      let bot = try e.bot(c)
      guard room.members[bot.id] != nil else { throw SendbirdFault(400108, "Not a member.") }
      e.leave(room, bot)
      return .empty
    },
    Route("POST", "bots/{id}/send") { (e, c) throws(SendbirdFault) in try e.botSpeaks(c) },
  ]

  private static let botSettings: [String: JSONValue] = [
    "bot_callback_url": "", "is_privacy_mode": true, "enable_mark_as_read": true, "show_member": false,
    "channel_invitation_preference": 0, "bot_type": "",
  ]

  private func bot(_ call: Call) throws(SendbirdFault) -> Person {
    try requireAdmin(call)
    guard let person = people[UserID(call.parameter("id"))], person.bot != nil else {
      throw SendbirdFault(400201, "Bot not found.")
    }
    return person
  }

  private func json(ofBot person: Person) -> JSONObject {
    var json: JSONObject = [
      "bot_userid": .string(person.id.rawValue), "bot_nickname": .string(person.nickname),
      "bot_profile_url": .string(person.profileURL),
    ]
    json.fill(from: person.bot ?? JSONObject())
    return ["bot": .object(json)]
  }

  private func createBot(_ call: Call) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    guard let id = call.text("bot_userid"), !id.isEmpty, let name = call.text("bot_nickname") else {
      throw SendbirdFault(400105, "bot_userid or bot_nickname is missing.")
    }
    guard id.unicodeScalars.count <= SendbirdLimits.userIDLength else {
      throw SendbirdFault(400110, "bot_userid is too long.")
    }
    guard people[UserID(id)] == nil else { throw SendbirdFault(400202, "\"bot_userid\" violates unique constraint.") }
    try check(length: name, SendbirdLimits.nicknameLength, "bot_nickname")
    let person = addPerson(UserID(id))
    person.bot = JSONObject()
    apply(call, toBot: person)
    return .json(json(ofBot: person))
  }

  private func apply(_ call: Call, toBot person: Person) {
    person.nickname = call.text("bot_nickname") ?? person.nickname
    person.profileURL = call.text("bot_profile_url") ?? person.profileURL
    var settings = person.bot ?? JSONObject()
    for (name, standard) in Self.botSettings.sorted(by: { $0.key < $1.key }) {
      settings[name] = call.body[name] ?? settings[name] ?? standard
    }
    person.bot = settings
    person.autoAccept = settings.number("channel_invitation_preference") != 1
  }

  private func updateBot(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try bot(call)
    if let name = call.text("bot_nickname") { try check(length: name, SendbirdLimits.nicknameLength, "bot_nickname") }
    apply(call, toBot: person)
    return .json(json(ofBot: person))
  }

  private func listBots(_ call: Call) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    let (page, next) = try page(peopleInOrder.filter { $0.bot != nil }, call, limit: try pageLimit(call)) {
      $0.id.rawValue
    }
    return .json(["bots": .array(page.map { .object(json(ofBot: $0)) }), "next": .string(next)])
  }

  private func botJoins(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try bot(call)
    var joined: [Room] = []
    for url in call.texts("channel_urls") {
      guard let room = rooms[ChannelID(url)], !room.isOpen else { throw SendbirdFault(400201, "Channel not found.") }
      joined.append(room)
    }
    for room in joined where room.members[person.id] == nil {
      setDistinct(false, room)
      add([person], to: room, by: nil, statuses: [person.id: "joined"])
      touch(room)
      tellJoined([person], in: room)
    }
    return .json(["channels": .array(joined.map { .object(json(of: $0, for: nil)) })])
  }

  private func botSpeaks(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try bot(call)
    guard let url = call.text("channel_url"), let room = rooms[ChannelID(url)] else {
      throw SendbirdFault(400201, "Channel not found.")
    }
    guard room.isOpen || room.members[person.id]?.isJoined == true else {
      throw SendbirdFault(400108, "Not authorized. The bot is not a member.")
    }
    if isBlocked(person, in: room) { throw SendbirdFault(400700, "The receiver blocked the bot.") }
    var body = call.body
    body["message_type"] = body["message_type"] ?? "MESG"
    let message = try store(
      MessageInput(rest: body), in: room, from: person, marksRead: call.flag("mark_as_read") ?? true)
    broadcast(message, in: room, command: message.type, from: nil, requestID: "")
    tellThread(of: message, in: room)
    return .json(["message": .object(wire(message, in: room).json)])
  }
}
