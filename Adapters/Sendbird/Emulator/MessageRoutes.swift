import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

extension SendbirdEmulator {
  static let messageRoutes: [Route] =
    [
      Route("PUT", "group_channels/{url}/messages/mark_as_read") { (e, c) throws(SendbirdFault) in try e.markAsRead(c)
      },
      Route("PUT", "group_channels/{url}/messages/mark_as_delivered") { (e, c) throws(SendbirdFault) in
        try e.markAsDelivered(c)
      },
      Route("GET", "group_channels/{url}/messages/unread_count") { (e, c) throws(SendbirdFault) in try e.unreadCounts(c)
      },
      Route("GET", "group_channels/{url}/messages_gap") { (e, c) throws(SendbirdFault) in try e.messagesGap(c) },
      Route("POST", "storage/file") { (e, c) throws(SendbirdFault) in
        try e.upload(c, isProtected: e.settings.requireFileAuth)
      },
      Route("POST", "storage/profile_image") { (e, c) throws(SendbirdFault) in try e.upload(c, isProtected: false) },
      Route("GET", "search/messages") { (e, c) throws(SendbirdFault) in try e.search(c) },
    ]
    + ["group_channels", "open_channels"].flatMap { kind in
      let base = "\(kind)/{url}/messages"
      return [
        Route("GET", "\(base)/total_count") { (e, c) throws(SendbirdFault) in try e.totalCount(c, kind) },
        Route("GET", "\(base)/changelogs") { (e, c) throws(SendbirdFault) in try e.messageChanges(c, kind) },
        Route("POST", base) { (e, c) throws(SendbirdFault) in try e.postMessage(c, kind) },
        Route("GET", base) { (e, c) throws(SendbirdFault) in try e.listMessages(c, kind) },
        Route("GET", "\(base)/{id}") { (e, c) throws(SendbirdFault) in try e.fetchMessage(c, kind) },
        Route("PUT", "\(base)/{id}") { (e, c) throws(SendbirdFault) in try e.updateMessage(c, kind) },
        Route("DELETE", "\(base)/{id}") { (e, c) throws(SendbirdFault) in try e.deleteMessage(c, kind) },
        Route("POST", "\(base)/{id}/sorted_metaarray") { (e, c) throws(SendbirdFault) in try e.setMetaArrays(c, kind) },
        Route("PUT", "\(base)/{id}/sorted_metaarray") { (e, c) throws(SendbirdFault) in try e.setMetaArrays(c, kind) },
        Route("DELETE", "\(base)/{id}/sorted_metaarray") { (e, c) throws(SendbirdFault) in
          try e.deleteMetaArrays(c, kind)
        },
        Route("GET", "\(base)/{id}/reactions") { (e, c) throws(SendbirdFault) in try e.listReactions(c, kind) },
        Route("POST", "\(base)/{id}/reactions") { (e, c) throws(SendbirdFault) in try e.react(c, kind, adds: true) },
        Route("DELETE", "\(base)/{id}/reactions") { (e, c) throws(SendbirdFault) in try e.react(c, kind, adds: false) },
      ]
    }

  // MARK: One message

  /// The channel, seen by somebody who may see it.
  func visible(_ call: Call, _ kind: String) throws(SendbirdFault) -> (Room, Membership?) {
    let room = try channel(call, kind)
    return room.isOpen ? (room, nil) : try memberRoom(call)
  }

  func message(_ call: Call, in room: Room) throws(SendbirdFault) -> StoredMessage {
    guard let id = Int64(call.parameter("id")), let message = room.messageByID[id], !message.isRemoved else {
      throw SendbirdFault(400201, "Message not found.")
    }
    return message
  }

  private func answer(_ message: StoredMessage, in room: Room, _ shape: SendbirdMessage.Shape = .init()) -> Answer {
    .json(wire(message, in: room).json(shape))
  }

  private func postMessage(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let room = try channel(call, kind)
    var body = call.body
    if call.multipart?["file"] != nil { body = try bodyOfUpload(call) }
    let input = MessageInput(rest: body)
    guard input.type != "ADMM" || call.isAdmin else { throw SendbirdFault(400108, "Not authorized.") }
    var sender: Person?
    if input.type != "ADMM" {
      let person = try actingPerson(call)
      guard room.isOpen || room.members[person.id]?.isJoined == true else {
        throw SendbirdFault(400108, "Not authorized. The sender is not a member.")
      }
      // Over the socket the same refusal has another code.
      if isBlocked(person, in: room) { throw SendbirdFault(400700, "The receiver blocked the sender.") }
      if call.sessionUser != nil, !room.isOpen { try mayWrite(person, in: room) }
      sender = person
    }
    if let dedup = body.text("dedup_id"), let known = room.requestIDs[Key("dedup\u{1F}\(dedup)")],
      let message = room.messageByID[known]
    {
      return answer(message, in: room)
    }
    let time = call.isAdmin ? body.number("created_at") : nil
    let message = try store(
      input, in: room, from: sender, at: time, marksRead: body.flag("mark_as_read") ?? true)
    if let dedup = body.text("dedup_id") { room.requestIDs[Key("dedup\u{1F}\(dedup)")] = message.id }
    broadcast(message, in: room, command: message.type, from: nil, requestID: "")
    tellThread(of: message, in: room)
    return answer(message, in: room)
  }

  private func fetchMessage(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let (room, _) = try visible(call, kind)
    return answer(try message(call, in: room), in: room, SendbirdMessage.Shape(call.query))
  }

  /// A message that the session's user may change: an own one, in a channel that was not left. The Platform API may
  /// change any.
  private func changeable(_ call: Call, _ kind: String) throws(SendbirdFault) -> (Room, StoredMessage) {
    let room = try channel(call, kind)
    if let person = call.sessionUser, !room.isOpen, room.members[person.id]?.isJoined != true {
      throw SendbirdFault(400108, "Not authorized. Not a member.")
    }
    let message = try message(call, in: room)
    if let person = call.sessionUser, message.sender !== person { throw SendbirdFault(400108, "Not the owner.") }
    return (room, message)
  }

  private func updateMessage(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let (room, message) = try changeable(call, kind)
    let old = try change(message, in: room, by: call.body)
    let command = message.type == "FILE" ? "FEDI" : message.type == "ADMM" ? "AEDI" : "MEDI"
    broadcast(message, in: room, command: command, from: nil, requestID: "", extra: ["old_values": .object(old)])
    return answer(message, in: room)
  }

  private func deleteMessage(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let room = try channel(call, kind)
    let message = try message(call, in: room)
    if let person = call.sessionUser, message.sender !== person, !room.operators.contains(person.id) {
      throw SendbirdFault(400108, "Not authorized. Not the owner of the message.")
    }
    remove(message, in: room)
    return .empty
  }

  private func setMetaArrays(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let (room, message) = try changeable(call, kind)
    let input = MessageInput(rest: call.body)
    guard input.hasGoodArrays else { throw SendbirdFault(900029, "An array needs a key and a list of texts.") }
    var arrays = message.metaArrays
    for item in input.metaArrays {
      let place = arrays.firstIndex { Key($0.key) == Key(item.key) }
      switch (call.text("mode"), place) {
      case ("remove", let place?):
        arrays[place].values.removeAll { value in item.values.contains { Key($0) == Key(value) } }
      case ("add", let place?): arrays[place].values += item.values
      case (nil, .some): throw SendbirdFault(400202, "The key exists already.")
      case ("remove", nil): break
      default: arrays.append(item)
      }
    }
    try check(arrays: arrays)
    message.metaArrays = arrays
    recordChange(of: message, in: room)
    return .json(["sorted_metaarray": .array(message.metaArrays.map(\.json))])
  }

  private func deleteMetaArrays(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let (room, message) = try changeable(call, kind)
    let keys = Set(call.query.list("keys").map { Key($0) })
    message.metaArrays.removeAll { keys.isEmpty || keys.contains(Key($0.key)) }
    recordChange(of: message, in: room)
    return .json(["sorted_metaarray": .array(message.metaArrays.map(\.json))])
  }

  // MARK: Reactions

  private func listReactions(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let (room, _) = try visible(call, kind)
    guard !room.isOpen else { throw SendbirdFault(900090, "Group channels only.") }
    let message = try message(call, in: room)
    return .json(
      JSONObject(message.reactions.map { ($0.key, .array($0.users.map { .string($0.rawValue) })) }))
  }

  private func react(_ call: Call, _ kind: String, adds: Bool) throws(SendbirdFault) -> Answer {
    let (room, _) = try visible(call, kind)
    guard !room.isOpen else { throw SendbirdFault(900090, "Group channels only.") }
    let message = try message(call, in: room)
    let person = try actingPerson(call)
    guard let key = call.text("reaction"), !key.isEmpty else { throw SendbirdFault(400105, "reaction is missing.") }
    try check(length: key, SendbirdLimits.reactionKeyLength, "reaction")
    let place = message.reactions.firstIndex { Key($0.key) == Key(key) }
    let has = place.map { message.reactions[$0].users.contains(person.id) } ?? false
    guard has != adds else {
      throw adds ? SendbirdFault(400202, "The reaction exists already.") : SendbirdFault(400201, "No such reaction.")
    }
    let reactedAt = max(now, (message.reactions.map(\.updatedAt).max() ?? 0) &+ 1)
    if adds {
      if let place {
        message.reactions[place].users.append(person.id)
        message.reactions[place].updatedAt = reactedAt
      } else {
        message.reactions.append(SendbirdReaction(key: key, users: [person.id], updatedAt: reactedAt))
      }
    } else if let place {
      message.reactions[place].users.removeAll { $0 == person.id }
      if message.reactions[place].users.isEmpty { message.reactions.remove(at: place) }
    }
    recordChange(of: message, in: room)
    let json: JSONObject = [
      "user_id": .string(person.id.rawValue), "operation": .string(adds ? "ADD" : "DELETE"), "success": true,
      "msg_id": .int(message.id), "reaction": .string(key), "updated_at": .int(reactedAt),
    ]
    var frame = json
    frame["channel_url"] = .string(room.url.rawValue)
    frame["channel_type"] = "group"
    for other in present(in: room) { push(SendbirdFrame("MRCT", frame), to: other) }
    return .json(json)
  }

  // MARK: Marks

  private func markAsRead(_ call: Call) throws(SendbirdFault) -> Answer {
    let room = try room(call)
    let person = try actingPerson(call)
    guard let mine = room.members[person.id], mine.isJoined else { throw SendbirdFault(400108, "Not a member.") }
    var time = now
    if let id = call.number("message_id"), let message = room.messageByID[id] { time = message.createdAt }
    if let given = call.number("timestamp") { time = given }
    markRead(mine, in: room, at: time)
    tellRead(person, in: room, from: nil, requestID: "")
    return .json(["ts": .int(mine.readAt), "unread_message_count": .int(shownUnread(mine, in: room))])
  }

  private func markAsDelivered(_ call: Call) throws(SendbirdFault) -> Answer {
    let room = try room(call)
    let person = try actingPerson(call)
    let time = call.number("ts") ?? now
    markDelivered(person, in: room, at: time)
    return .json(["ts": .int(time)])
  }

  private func unreadCounts(_ call: Call) throws(SendbirdFault) -> Answer {
    let (room, _) = try memberRoom(call)
    let ids = call.texts("user_ids").map { UserID($0) }
    let members = ids.isEmpty ? Array(room.members.values) : ids.compactMap { room.members[$0] }
    let counts = members.sorted { $0.person.order < $1.person.order }
      .map { (key: $0.person.id.rawValue, value: JSONValue.int(shownUnread($0, in: room))) }
    return .json(["unread": .object(JSONObject(counts))])
  }

  private func totalCount(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let (room, _) = try visible(call, kind)
    return .json(["total": .int(Int64(room.messages.count { !$0.isRemoved }))])
  }

  // MARK: Files

  private func upload(_ call: Call, isProtected: Bool) throws(SendbirdFault) -> Answer {
    guard let part = call.multipart?["file"] else { throw SendbirdFault(400105, "file is missing.") }
    let file = try store(part, isProtected: isProtected)
    return .json([
      "url": .string(file.url), "file_size": .int(file.size), "require_auth": .bool(isProtected),
      "thumbnails": SendbirdFile(
        url: file.url, name: "", type: "", size: 0, thumbnails: thumbnails(call, of: file.url)
      ).thumbnailJSON,
    ])
  }

  func store(
    _ part: SendbirdMultipart.Part, isProtected: Bool = false
  ) throws(SendbirdFault) -> (url: String, size: Int64) {
    let size = Int64(part.bytes.count)
    if hasRealLimits, size > SendbirdLimits.uploadMiB << 20 {
      throw SendbirdFault(400110, "The file is larger than \(SendbirdLimits.uploadMiB) MiB.", httpStatus: 413)
    }
    let key = hex(32)
    let name = part.fileName ?? "file"
    files[key] = StoredFile(
      name: name, type: part.mimeType ?? "application/octet-stream", bytes: part.bytes, isProtected: isProtected)
    return ("\(baseURL)/files/\(key)/\(PercentCoding.encode(name))", size)
  }

  /// No image is scaled here: the original stands for its thumbnails, which the vendor allows (`real_width` absent).
  private func thumbnails(_ call: Call, of url: String) -> [SendbirdFile.Thumbnail] {
    (1...3).compactMap { number in
      guard let text = call.multipart?.text("thumbnail\(number)") else { return nil }
      let sides = text.split(separator: ",").compactMap { Int64($0.filter { !$0.isWhitespace }) }
      return sides.count == 2 ? SendbirdFile.Thumbnail(url: url, width: sides[0], height: sides[1]) : nil
    }
  }

  /// A message whose file comes with it: every other field is a form field.
  private func bodyOfUpload(_ call: Call) throws(SendbirdFault) -> JSONObject {
    guard let part = call.multipart?["file"] else { return call.body }
    let file = try store(part, isProtected: settings.requireFileAuth)
    var body = call.body
    body["message_type"] = "FILE"
    (body["url"], body["file_size"]) = (.string(file.url), .int(file.size))
    body["require_auth"] = .bool(settings.requireFileAuth)
    body.fill(from: [
      "file_name": .string(part.fileName ?? "file"),
      "file_type": .string(part.mimeType ?? "application/octet-stream"),
    ])
    body["thumbnails"] = SendbirdFile(
      url: file.url, name: "", type: "", size: 0, thumbnails: thumbnails(call, of: file.url)
    ).thumbnailJSON
    return body
  }
}
