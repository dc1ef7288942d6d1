import ChatJSON
import SendbirdWire
import UnifiedChat

// Migration, data export and what else only the Platform API has.
extension SendbirdEmulator {
  static let platformRoutes: [Route] = [
    Route("POST", "migration/{url}") { (e, c) throws(SendbirdFault) in try e.migrate(c) },
    Route("POST", "export/{kind}") { (e, c) throws(SendbirdFault) in try e.requestExport(c) },
    Route("GET", "export/{kind}") { (e, c) throws(SendbirdFault) in try e.listExports(c) },
    Route("GET", "export/{kind}/{id}") { (e, c) throws(SendbirdFault) in try e.fetchExport(c) },
    Route("GET", "emoji_categories") { (_, _) throws(SendbirdFault) in
      .json(["emoji_hash": "emulated", "emoji_categories": []])
    },
  ]

  /// Endpoints of the vendor that are known and not emulated.
  static let missingRoutes: [Route] = [
    "GET users/{user}/friends", "POST users/{user}/friends", "DELETE users/{user}/friends",
    "GET users/{user}/friends/changelogs", "PUT users/{user}/friend_discoveries",
    "POST group_channels/{url}/messages/{id}/translation", "POST group_channels/{url}/messages/{id}/pin",
    "DELETE group_channels/{url}/messages/{id}/pin", "POST group_channels/{url}/scheduled_messages",
    "GET scheduled_messages", "POST polls", "GET polls", "GET polls/{id}", "PUT polls/{id}/vote",
    "POST report/group_channels/{url}", "POST report/users/{id}", "POST report/group_channels/{url}/messages/{id}",
    "POST announcements", "GET announcements", "POST bots", "GET bots", "POST bots/{id}/send",
    "POST privacy/gdpr", "GET applications/dau", "GET applications/mau", "GET applications/ccu",
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

  // MARK: Export

  private func requestExport(_ call: Call) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    let kind = call.parameter("kind")
    guard ["messages", "channels", "users", "failed_webhooks"].contains(kind) else {
      throw SendbirdFault(400111, "Unknown data_type.")
    }
    guard let from = call.number("start_ts"), let to = call.number("end_ts"), from < to else {
      throw SendbirdFault(400105, "start_ts and end_ts are missing or in the wrong order.")
    }
    if hasRealLimits, kind == "messages", to &- from > 31 * 86_400_000 {
      throw SendbirdFault(400113, "At most 31 days.")
    }
    let id = hex(32)
    let documents = exportDocuments(
      kind, from: from, to: to, urls: Set(call.texts("channel_urls").map { ChannelID($0) }))
    // The vendor's file is a zip of such documents; here they stand in one JSON array.
    files[id] = StoredFile(name: "\(kind).json", type: "application/json", bytes: JSONValue.array(documents).bytes())
    let json: JSONObject = [
      "request_id": .string(id), "data_type": .string(kind), "status": documents.isEmpty ? "no data" : "done",
      "format": "json", "csv_delimiter": ",", "timezone": "UTC", "created_at": .int(now), "start_ts": .int(from),
      "end_ts": .int(to), "channel_urls": .array(call.texts("channel_urls").map { .string($0) }), "sender_ids": [],
      "file": ["url": .string("\(baseURL)/files/\(id)/\(kind).json"), "expires_at": .int(now &+ 604_800_000)],
    ]
    exports.append(.object(json))
    var scheduled = json
    scheduled["status"] = "scheduled"
    scheduled["file"] = nil
    return .json(scheduled)
  }

  private func exportDocuments(_ kind: String, from: Int64, to: Int64, urls: Set<ChannelID>) -> [JSONValue] {
    let groups = rooms.values.filter { !$0.isOpen && (urls.isEmpty || urls.contains($0.url)) }.sorted {
      $0.url < $1.url
    }
    switch kind {
    case "messages":
      return groups.compactMap { room in
        let messages = room.messages[room.index(of: from, .min)..<room.index(of: to, .min)]
        guard !messages.isEmpty else { return nil }
        return [
          "messages": .array(messages.map { .object(wire($0, in: room).json) }),
          "channel": .object(json(of: room, for: nil)),
        ]
      }
    case "channels": return [["group_channels": .array(groups.map { .object(json(of: $0, for: nil)) })]]
    case "users":
      return [
        [
          "active_users": .array(peopleInOrder.filter(\.isActive).map { .object(adminJSON(of: $0)) }),
          "deactivated_users": .array(peopleInOrder.filter { !$0.isActive }.map { .object(adminJSON(of: $0)) }),
        ]
      ]
    default: return []
    }
  }

  private func listExports(_ call: Call) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    let all = exports.filter { $0["data_type"]?.string == call.parameter("kind") }
    let (page, next) = try page(all, call, limit: try pageLimit(call)) { $0["request_id"]?.string ?? "" }
    return .json(["exported_data": .array(page), "next": .string(next)])
  }

  private func fetchExport(_ call: Call) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    guard let export = exports.first(where: { $0["request_id"]?.string == call.parameter("id") })?.object else {
      throw SendbirdFault(400201, "Export not found.")
    }
    return .json(export)
  }
}
