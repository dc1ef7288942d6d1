import ChatJSON
import Foundation
import SendbirdWire
import UnifiedChat

// Pinned messages, translations, emoji, and messages of later.
extension SendbirdEmulator {
  static let extraRoutes: [Route] =
    [
      Route("GET", "emoji_categories") { (e, _) throws(SendbirdFault) in
        .json(["emoji_hash": "emulated", "emoji_categories": .array(e.emojiCategories.map { .object($0) })])
      },
      Route("GET", "emoji_categories/{id}") { (e, c) throws(SendbirdFault) in
        guard let category = e.emojiCategories.first(where: { $0.number("id").map(String.init) == c.parameter("id") })
        else { throw SendbirdFault(400201, "Category not found.") }
        return .json(category)
      },
      Route("GET", "emojis/{key}") { (e, c) throws(SendbirdFault) in
        let all = e.emojiCategories.flatMap { $0.list("emojis") }
        guard let emoji = all.first(where: { $0["key"]?.string == c.parameter("key") })?.object else {
          throw SendbirdFault(400201, "Emoji not found.")
        }
        return .json(emoji)
      },
    ]
    + ["group_channels", "open_channels"].flatMap { kind in
      let base = "\(kind)/{url}/messages/{id}"
      return [
        Route("POST", "\(base)/translation") { (e, c) throws(SendbirdFault) in try e.translate(c, kind) },
        Route("POST", "\(base)/pin") { (e, c) throws(SendbirdFault) in try e.pin(c, kind, true) },
        Route("DELETE", "\(base)/pin") { (e, c) throws(SendbirdFault) in try e.pin(c, kind, false) },
        Route("POST", "\(kind)/{url}/scheduled_messages") { (e, c) throws(SendbirdFault) in try e.schedule(c, kind) },
        Route("GET", "\(kind)/{url}/scheduled_messages") { (e, c) throws(SendbirdFault) in
          try e.listScheduled(c, kind)
        },
      ]
    }

  /// A few of the vendor's default keys; their pictures are not here.
  var emojiCategories: [JSONObject] {
    let keys = ["sendbird_emoji_heart_eyes", "sendbird_emoji_laughing", "sendbird_emoji_thumbsup"]
    let emojis = keys.map { key -> JSONValue in ["key": .string(key), "url": .string("\(baseURL)/emoji/\(key).png")] }
    return [["id": 1, "name": "sendbird_default", "url": "", "emojis": .array(emojis)]]
  }

  // MARK: Translations

  /// There is no translator here: the words themselves stand for their translation.
  func translations(of text: String, into languages: [String]) -> JSONObject {
    JSONObject(languages.map { (key: $0, value: JSONValue.string(text)) })
  }

  private func translate(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let (room, _) = try visible(call, kind)
    let message = try message(call, in: room)
    let languages = call.texts("target_langs")
    guard message.type == "MESG", !languages.isEmpty else { throw SendbirdFault(400105, "target_langs is missing.") }
    for (language, words) in translations(of: message.text, into: languages) {
      message.translations[language] = words
    }
    return .json(wire(message, in: room).json)
  }

  // MARK: Pins

  static let pinLimit = 10

  private func pin(_ call: Call, _ kind: String, _ isPinned: Bool) throws(SendbirdFault) -> Answer {
    let (room, mine) = try visible(call, kind)
    if call.sessionUser != nil, !room.isOpen, mine?.isJoined != true {
      throw SendbirdFault(400108, "Not authorized. Not a member.")
    }
    try setPinned(isPinned, try message(call, in: room), in: room)
    return .empty
  }

  func setPinned(_ isPinned: Bool, _ message: StoredMessage, in room: Room) throws(SendbirdFault) {
    guard room.pinned.contains(message.id) != isPinned else { return }
    if isPinned {
      guard room.pinned.count < Self.pinLimit else { throw SendbirdFault(400203, "Too many pinned messages.") }
      room.pinned.append(message.id)
    } else {
      room.pinned.removeAll { $0 == message.id }
    }
    touch(room)
    announce(SendbirdCategory.pinsChanged, in: room, pins(of: room))
  }

  /// Newest pin first.
  func pins(of room: Room) -> JSONObject {
    let latest = room.pinned.last.flatMap { room.messageByID[$0] }
    return [
      "pinned_message_ids": .array(room.pinned.reversed().map { .int($0) }),
      "latest_pinned_message": latest.map { .object(wire($0, in: room).json) } ?? .null,
    ]
  }

  // MARK: Later

  static let scheduleTimer = "scheduled/"

  /// The form of v3 clients: a wall-clock time to the minute, in the time zone that is named, or UTC.
  private func schedule(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let room = try channel(call, kind)
    let person = try actingPerson(call)
    guard room.isOpen || room.members[person.id]?.isJoined == true else {
      throw SendbirdFault(400108, "Not authorized. Not a member.")
    }
    guard let text = call.text("message") else { throw SendbirdFault(400105, "message is missing.") }
    try check(length: text, SendbirdLimits.messageLength, "message")
    // The JavaScript client writes the zone behind the time: `2030-01-31 23:59 Europe/Berlin`.
    let written = (call.text("scheduled_dt") ?? "").split(separator: " ", maxSplits: 2).map(String.init)
    let zone = written.count == 3 ? written[2] : call.text("scheduled_timezone") ?? "UTC"
    let minute = written.prefix(2).joined(separator: " ")
    guard let at = Self.time(minute, zone: zone) else {
      throw SendbirdFault(400111, "scheduled_dt must be YYYY-MM-DD HH:MM and a time zone.")
    }
    guard at > now else { throw SendbirdFault(400113, "scheduled_dt has passed.") }
    var job = call.body.without(["metaarray"])
    // The client names the keys alone.
    let arrays = call.body.list("metaarray").map { item -> JSONValue in
      item.string.map { ["key": .string($0)] } ?? item
    }
    if !arrays.isEmpty { job["sorted_metaarray"] = .array(arrays) }
    let input = MessageInput(rest: job)
    guard input.hasGoodArrays else { throw SendbirdFault(900029, "An array needs a key and a list of texts.") }
    try check(arrays: input.metaArrays)
    if !arrays.isEmpty { job["sorted_metaarray"] = .array(input.metaArrays.map(\.json)) }
    if !input.mentions.isEmpty {
      job["mentioned_users"] = .array(
        input.mentions.compactMap { people[UserID($0)] }.map { .object(json(of: $0).json) })
    }
    let id = newNumber()
    job["scheduled_id"] = .int(id)
    job["scheduled_dt"] = .string(minute)
    job["scheduled_timezone"] = .string(zone)
    job["status"] = "scheduled"
    (job["created_at"], job["updated_at"]) = (.int(now), .int(now))
    job["channel_url"] = .string(room.url.rawValue)
    job["channel_type"] = .string(room.isOpen ? "open" : "group")
    job["user"] = .object(json(of: person).json)
    job["user_id"] = .string(person.id.rawValue)
    (job["error_code"], job["error_message"]) = (0, "")
    scheduled.append(job)
    outputs.append(.setTimer(Self.scheduleTimer + String(id), dueAt: at))
    return .json(job)
  }

  /// `2030-01-31 23:59` in a zone, as ms.
  static func time(_ text: String, zone: String) -> Int64? {
    let numbers = text.split { !$0.isNumber }.compactMap { Int($0) }
    guard numbers.count == 5, let zone = TimeZone(identifier: zone) ?? TimeZone(abbreviation: zone) else { return nil }
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = zone
    let parts = DateComponents(
      year: numbers[0], month: numbers[1], day: numbers[2], hour: numbers[3], minute: numbers[4])
    guard let date = calendar.date(from: parts), (1970...9999).contains(numbers[0]) else { return nil }
    return Int64(date.timeIntervalSince1970) * 1000
  }

  func scheduledMessageIsDue(_ id: String) {
    guard let index = scheduled.firstIndex(where: { $0.number("scheduled_id").map(String.init) == id }),
      scheduled[index].text("status") == "scheduled"
    else { return }
    var body = scheduled[index]
    body["message_type"] = "MESG"
    scheduled[index]["updated_at"] = .int(now)
    do throws(SendbirdFault) {
      guard let room = rooms[ChannelID(body.text("channel_url") ?? "")] else {
        throw SendbirdFault(400201, "Channel not found.")
      }
      let sender = try person(body.text("user_id") ?? "")
      try mayWrite(sender, in: room)
      let message = try store(MessageInput(rest: body), in: room, from: sender)
      broadcast(message, in: room, command: message.type, from: nil, requestID: "")
      scheduled[index]["status"] = "sent"
    } catch {
      scheduled[index]["status"] = "failed"
      (scheduled[index]["error_code"], scheduled[index]["error_message"]) = (.int(error.code), .string(error.message))
    }
  }

  private func listScheduled(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let room = try channel(call, kind)
    let found = scheduled.filter { job in
      guard Key(job.text("channel_url") ?? "") == Key(room.url.rawValue) else { return false }
      return call.sessionUser.map { Key(job.text("user_id") ?? "") == Key($0.id.rawValue) } ?? true
    }
    let (page, next) = try page(found, call, limit: try pageLimit(call)) { String($0.number("scheduled_id") ?? 0) }
    return .json(["scheduled_messages": .array(page.map { .object($0) }), "next": .string(next)])
  }
}
