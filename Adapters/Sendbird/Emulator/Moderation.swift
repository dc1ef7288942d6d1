import ChatJSON
import SendbirdWire
import UnifiedChat

// Bans and mutes of all channels of a custom type, where a user is banned or muted, and reports.
extension SendbirdEmulator {
  static let moderationRoutes: [Route] =
    [
      Route("GET", "users/{user}/ban") { (e, c) throws(SendbirdFault) in
        try e.restrictions(c, "banned_channels") { $0.banned }
      },
      Route("GET", "users/{user}/mute") { (e, c) throws(SendbirdFault) in
        try e.restrictions(c, "muted_channels") { $0.muted }
      },
      Route("POST", "report/users/{id}") { (e, c) throws(SendbirdFault) in try e.report(c, "user") },
      Route("GET", "report/users/{id}") { (e, c) throws(SendbirdFault) in try e.reports(c, "user") },
    ]
    + ["ban", "mute"].flatMap { kind in
      let base = "applications/settings_by_channel_custom_type/{type}/\(kind)"
      return [
        Route("POST", base) { (e, c) throws(SendbirdFault) in try e.restrictType(c, kind) },
        Route("GET", base) { (e, c) throws(SendbirdFault) in try e.listTypeRestrictions(c, kind) },
        Route("DELETE", base) { (e, c) throws(SendbirdFault) in try e.liftTypeRestrictions(c, kind) },
      ]
    }
    + ["group_channels", "open_channels"].flatMap { kind in
      [
        Route("POST", "report/\(kind)/{url}") { (e, c) throws(SendbirdFault) in try e.report(c, kind) },
        Route("GET", "report/\(kind)/{url}") { (e, c) throws(SendbirdFault) in try e.reports(c, kind) },
        Route("POST", "report/\(kind)/{url}/messages/{id}") { (e, c) throws(SendbirdFault) in
          try e.report(c, kind)
        },
        Route("GET", "report/\(kind)/{url}/messages/{id}") { (e, c) throws(SendbirdFault) in
          try e.reports(c, kind)
        },
      ]
    }

  // MARK: By custom type

  private func typeKey(_ kind: String, _ type: String) -> Key { Key("\(kind)\u{1F}\(type)") }

  func isRestricted(_ user: UserID, _ kind: String, in room: Room) -> Bool {
    guard !room.customType.isEmpty, let found = typeRestrictions[typeKey(kind, room.customType)]?[user] else {
      return false
    }
    return !found.isOver(at: now)
  }

  private func restrictType(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    let list = kind == "ban" ? "banned_list" : "muted_list"
    var found: [(Person, Restriction)] = []
    for item in call.body.list(list) {
      let person = try person(item["user_id"]?.string ?? "")
      let seconds = item.object?.number("seconds") ?? -1
      guard seconds >= -1 else { throw SendbirdFault(400106, "seconds must be -1 or more.") }
      let restriction = restriction(seconds: seconds, description: item["description"]?.string ?? "")
      found.append((person, restriction))
    }
    guard !found.isEmpty else { throw SendbirdFault(400105, "\(list) is missing.") }
    let key = typeKey(kind, call.parameter("type"))
    for (person, restriction) in found { typeRestrictions[key, default: [:]][person.id] = restriction }
    return .json([list: .array(found.map { .object(json(of: $0.0, $0.1, kind == "ban" ? "banned" : "muted")) })])
  }

  private func listTypeRestrictions(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    let all = (typeRestrictions[typeKey(kind, call.parameter("type"))] ?? [:]).filter { !$0.value.isOver(at: now) }
      .sorted { $0.key < $1.key }
    let (page, next) = try page(all, call, limit: try pageLimit(call)) { $0.key.rawValue }
    let items = page.compactMap { user, restriction in
      people[user].map { JSONValue.object(json(of: $0, restriction, kind == "ban" ? "banned" : "muted")) }
    }
    return .json([kind == "ban" ? "banned_list" : "muted_list": .array(items), "next": .string(next)])
  }

  private func liftTypeRestrictions(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    let key = typeKey(kind, call.parameter("type"))
    for id in call.texts("user_ids") { typeRestrictions[key]?[UserID(id)] = nil }
    return .empty
  }

  /// The channels in which a user is banned or muted.
  private func restrictions(
    _ call: Call, _ name: String, _ table: (Room) -> [UserID: Restriction]
  ) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    let person = try person(call.parameter("user"))
    var found: [(room: Room, restriction: Restriction)] = []
    for room in rooms.values {
      if let restriction = table(room)[person.id], !restriction.isOver(at: now) { found.append((room, restriction)) }
    }
    found.sort { $0.room.url < $1.room.url }
    let (page, next) = try page(found, call, limit: try pageLimit(call)) { $0.room.url.rawValue }
    let items = page.map { room, restriction -> JSONValue in
      [
        "start_at": .int(restriction.startAt), "end_at": .int(restriction.endAt),
        "description": .string(restriction.description), "channel": .object(json(of: room, for: nil)),
      ]
    }
    return .json([name: .array(items), "next": .string(next)])
  }

  // MARK: Reports

  private static let reportCategories: Set<String> = ["spam", "harassing", "suspicious", "inappropriate"]

  private func report(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    guard let category = call.text("report_category"), Self.reportCategories.contains(category) else {
      throw SendbirdFault(400111, "report_category is missing or unknown.")
    }
    var reporter = call.sessionUser
    if reporter == nil, let id = call.text("reporting_user_id") { reporter = try person(id) }
    var log: JSONObject = [
      "report_type": .string(kind == "user" ? "user" : call.parameters["id"] == nil ? "channel" : "message"),
      "report_category": .string(category), "report_description": .string(call.text("report_description") ?? ""),
      "created_at": .int(now),
    ]
    log["reporting_user"] = reporter.map { .object(json(of: $0).json) } ?? .null
    var offender: Person?
    if kind == "user" {
      offender = try person(call.parameter("id"))
      if let url = call.text("channel_url"), let room = rooms[ChannelID(url)] {
        log["channel"] = .object(json(of: room, for: nil, ChannelView()))
      }
    } else {
      let room = try channel(call, kind)
      log["channel"] = .object(json(of: room, for: nil, ChannelView()))
      if let id = call.parameters["id"] {
        guard let message = Int64(id).flatMap({ room.messageByID[$0] }), !message.isRemoved else {
          throw SendbirdFault(400201, "Message not found.")
        }
        log["reported_message"] = .object(wire(message, in: room).json)
        offender = message.sender
      }
    }
    log["offending_user"] = offender.map { .object(json(of: $0).json) } ?? .null
    reportLogs.append(.object(log))
    return .json(log)
  }

  private func reports(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    let found = reportLogs.enumerated().filter { _, log in
      if kind == "user" {
        return log["offending_user"]?["user_id"]?.string.map { Key($0) } == Key(call.parameter("id"))
      }
      guard log["channel"]?["channel_url"]?.string.map({ Key($0) }) == Key(call.parameter("url")) else { return false }
      return call.parameters["id"].map { Int64($0) == log["reported_message"]?["message_id"]?.int } ?? true
    }
    let (page, next) = try page(found, call, limit: try pageLimit(call)) { String($0.offset) }
    return .json(["report_logs": .array(page.map(\.element)), "next": .string(next)])
  }
}
