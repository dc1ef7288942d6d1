import ChatJSON
import SendbirdWire
import UnifiedChat

// Migration and what else only the Platform API has.
extension SendbirdEmulator {
  static let platformRoutes: [Route] = [
    Route("POST", "migration/{url}") { (e, c) throws(SendbirdFault) in try e.migrate(c) },
    Route("POST", "export/{kind}") { (e, c) throws(SendbirdFault) in try e.requestExport(c) },
    Route("GET", "export/{kind}") { (e, c) throws(SendbirdFault) in try e.listExports(c) },
    Route("GET", "export/{kind}/{id}") { (e, c) throws(SendbirdFault) in try e.fetchExport(c) },
    Route("GET", "applications/ccu") { (e, c) throws(SendbirdFault) in
      try e.requireAdmin(c)
      return .json(["ccu": .int(Int64(e.connections.count))])
    },
  ]

  /// Endpoints of the vendor that are known and not emulated.
  static let missingRoutes: [Route] = [
    "GET scheduled_messages", "POST polls", "GET polls", "GET polls/{id}", "PUT polls/{id}/vote",
    "POST privacy/gdpr", "GET applications/dau", "GET applications/mau", "GET applications/api_tokens",
  ].map { text in
    let parts = text.split(separator: " ", maxSplits: 1)
    return Route(String(parts[0]), String(parts[1]), nil)
  }

  // MARK: Migration

  private func migrate(_ call: Call) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    let room = try room(call)
    guard let items = call.body["messages"]?.array else { throw SendbirdFault(400105, "messages is missing.") }
    if hasRealLimits, items.count > SendbirdLimits.migrationBatch { throw SendbirdFault(400203, "Too many messages.") }
    // All or nothing: nothing is stored before every item has been looked at.
    var checked: [(input: MessageInput, sender: Person?, at: Int64, dedup: Key?)] = []
    for item in items {
      guard let json = item.object else { throw SendbirdFault(400103, "A message must be an object.") }
      let input = MessageInput(rest: json)
      try check(input, in: room)
      guard let time = json.number("timestamp"), time >= 0 else { throw SendbirdFault(400105, "timestamp is missing.") }
      checked.append((input, try migrationSender(json, input, room), time, json.text("dedup_id").map { Key($0) }))
    }
    var oldest = Int64.max
    var newest = Int64.min
    for item in checked {
      if let dedup = item.dedup, !room.dedupIDs.insert(dedup).inserted { continue }
      let message = StoredMessage(id: newMessageID(), type: item.input.type, createdAt: item.at)
      fill(message, item.input, sender: item.sender, requestID: "")
      room.insert(message)
      (oldest, newest) = (min(oldest, item.at), max(newest, item.at))
    }
    moveMarks(call, in: room, oldest: oldest, newest: newest)
    touch(room)
    return .empty
  }

  /// Nobody is created here, and a sender must be a member: the vendor requires it of sends by the Platform API, and
  /// says nothing of migration.
  private func migrationSender(_ json: JSONObject, _ input: MessageInput, _ room: Room) throws(SendbirdFault) -> Person?
  {
    guard input.type != "ADMM" else { return nil }
    guard let id = json.text("user_id") else { throw SendbirdFault(400105, "user_id is missing.") }
    let sender = try person(id)
    guard room.isOpen || room.members[sender.id] != nil else {
      throw SendbirdFault(400108, "The sender is not a member of the channel.")
    }
    return sender
  }

  /// `update_read_ts` and `rewind_read_ts`, in the body or, as old pages have it, in the query.
  private func moveMarks(_ call: Call, in room: Room, oldest: Int64, newest: Int64) {
    guard oldest <= newest, !room.isOpen else { return }
    let updates = call.flag("update_read_ts") ?? false
    let rewinds = call.flag("rewind_read_ts") ?? false
    guard updates || rewinds else { return }
    for member in room.members.values {
      if rewinds { member.readAt = min(member.readAt, oldest &- 1) }
      if updates { member.readAt = max(member.readAt, newest) }
      member.deliveredAt = max(member.deliveredAt, member.readAt)
      recount(member, in: room)
    }
  }
}
