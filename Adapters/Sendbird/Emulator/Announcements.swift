import ChatJSON
import SendbirdWire
import UnifiedChat

// Messages that the application sends into many channels at once, now or later.
extension SendbirdEmulator {
  static let announcementRoutes: [Route] = [
    Route("POST", "announcements") { (e, c) throws(SendbirdFault) in try e.announce(c) },
    Route("GET", "announcements") { (e, c) throws(SendbirdFault) in try e.listAnnouncements(c) },
    Route("GET", "announcements/{id}") { (e, c) throws(SendbirdFault) in
      .json(e.announcements[try e.announcementIndex(c)])
    },
    Route("PUT", "announcements/{id}") { (e, c) throws(SendbirdFault) in try e.changeAnnouncement(c) },
  ]

  private static let targets: Set<String> = [
    "sender_all_channels", "target_channels", "target_users_only_channels", "target_users_included_channels",
  ]

  private func announcementIndex(_ call: Call) throws(SendbirdFault) -> Int {
    try requireAdmin(call)
    let id = Key(call.parameter("id"))
    guard let index = announcements.firstIndex(where: { Key($0.text("unique_id") ?? "") == id }) else {
      throw SendbirdFault(400201, "Announcement not found.")
    }
    return index
  }

  private func announce(_ call: Call) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    guard let message = call.body.object("message"), let type = message.text("type"),
      message.text("content") != nil
    else {
      throw SendbirdFault(400105, "message is missing.")
    }
    guard ["MESG", "ADMM"].contains(type) else { throw SendbirdFault(400111, "message.type must be MESG or ADMM.") }
    guard let target = call.text("target_at"), Self.targets.contains(target) else {
      throw SendbirdFault(400111, "target_at is missing or unknown.")
    }
    if type == "MESG" { _ = try person(message.text("user_id") ?? "") }
    let id = call.text("unique_id") ?? hex(32)
    guard !announcements.contains(where: { Key($0.text("unique_id") ?? "") == Key(id) }) else {
      throw SendbirdFault(400202, "\"unique_id\" violates unique constraint.")
    }
    let at = call.number("scheduled_at") ?? 0
    var announcement: JSONObject = [
      "unique_id": .string(id), "announcement_group": .string(call.text("announcement_group") ?? ""),
      "message": .object(message), "target_at": .string(target),
      "target_list": .array(call.texts("target_list").map { .string($0) }),
      "target_channel_type": .string(call.text("target_channel_type") ?? "distinct"),
      "create_channel": .bool(call.flag("create_channel") ?? false),
      "create_channel_options": .object(call.body.object("create_channel_options") ?? JSONObject()),
      "enable_push": .bool(call.flag("enable_push") ?? true), "mark_as_read": .bool(call.flag("mark_as_read") ?? true),
      "scheduled_at": .int(at), "created_at": .int(now), "completed_at": 0, "sent_user_count": 0,
      "sent_channel_count": 0, "open_count": 0, "status": "scheduled",
    ]
    if at <= now { run(&announcement) }
    announcements.append(announcement)
    if at > now { outputs.append(.setTimer(Self.announcementTimer + id, dueAt: at)) }
    return .json(announcement)
  }

  static let announcementTimer = "announcement/"

  /// The time of a scheduled announcement has come.
  func announcementIsDue(_ id: String) {
    guard let index = announcements.firstIndex(where: { Key($0.text("unique_id") ?? "") == Key(id) }),
      announcements[index].text("status") == "scheduled"
    else { return }
    var announcement = announcements[index]
    run(&announcement)
    announcements[index] = announcement
  }

  private func run(_ announcement: inout JSONObject) {
    var channels: Int64 = 0
    var users: Set<UserID> = []
    let draft = announcement.object("message") ?? JSONObject()
    let sender = draft.text("user_id").flatMap { people[UserID($0)] }
    for room in targets(of: announcement, sender) {
      let input: JSONObject = [
        "message_type": .string(draft.text("type") ?? "ADMM"), "message": .string(draft.text("content") ?? ""),
        "custom_type": .string(draft.text("custom_type") ?? ""), "data": .string(draft.text("data") ?? ""),
        "send_push": .bool(announcement.flag("enable_push") ?? true),
      ]
      let isNotice = draft.text("type") == "ADMM"
      guard
        let message = try? store(
          MessageInput(rest: input), in: room, from: isNotice ? nil : sender,
          marksRead: announcement.flag("mark_as_read") ?? true)
      else { continue }
      broadcast(message, in: room, command: message.type, from: nil, requestID: "")
      channels += 1
      users.formUnion(room.members.keys.filter { $0 != sender?.id })
    }
    announcement["sent_channel_count"] = .int(channels)
    announcement["sent_user_count"] = .int(Int64(users.count))
    announcement["completed_at"] = .int(now)
    announcement["status"] = "done"
  }

  private func targets(of announcement: JSONObject, _ sender: Person?) -> [Room] {
    let list = announcement.texts("target_list")
    let isOfKind: (Room) -> Bool = { room in
      switch announcement.text("target_channel_type") {
      case "distinct": room.isDistinct
      case "non-distinct": !room.isDistinct
      default: true
      }
    }
    let own = sender?.roomsInOrder ?? []
    switch announcement.text("target_at") {
    case "target_channels": return list.compactMap { rooms[ChannelID($0)] }
    case "sender_all_channels": return own.filter(isOfKind)
    case "target_users_included_channels":
      let users = Set(list.map { UserID($0) })
      return own.filter { room in isOfKind(room) && room.members.keys.contains { users.contains($0) } }
    default:
      return list.compactMap { id in
        guard let sender, let other = people[UserID(id)] else { return nil }
        let pair: Set<UserID> = [sender.id, other.id]
        if let known = own.first(where: { isOfKind($0) && Set($0.members.keys) == pair }) { return known }
        guard announcement.flag("create_channel") == true else { return nil }
        return newPair(sender, other, announcement.object("create_channel_options") ?? JSONObject())
      }
    }
  }

  private func newPair(_ sender: Person, _ other: Person, _ options: JSONObject) -> Room? {
    let number = newNumber()
    let url = ChannelID("sendbird_group_channel_\(number)_\(hex(40))")
    let room = Room(url: url, number: number, isOpen: false, createdAt: now, change: newChange())
    (room.name, room.coverURL) = (options.text("name") ?? "", options.text("cover_url") ?? "")
    (room.customType, room.data) = (options.text("custom_type") ?? "", options.text("data") ?? "")
    room.createdBy = sender.id
    rooms[url] = room
    add([sender, other], to: room, by: sender, statuses: [:])
    if options.flag("distinct") ?? true { setDistinct(true, room) }
    tellInvitations([sender, other], in: room, by: sender)
    return room
  }

  private func changeAnnouncement(_ call: Call) throws(SendbirdFault) -> Answer {
    let index = try announcementIndex(call)
    let id = announcements[index].text("unique_id") ?? ""
    let status = announcements[index].text("status")
    let next: String
    switch (call.text("action"), status) {
    case ("remove", "scheduled"): next = "removed"
    case ("pause", "scheduled"): next = "paused"
    case ("cancel", "scheduled"), ("cancel", "paused"): next = "canceled"
    case ("resume", "paused"): next = "scheduled"
    case (nil, "scheduled"), (nil, "paused"): next = status ?? ""
    default: throw SendbirdFault(400920, "The announcement is \(status ?? "unknown").")
    }
    for name in ["announcement_group", "scheduled_at", "enable_push", "mark_as_read", "message"] {
      if let value = call.body[name] { announcements[index][name] = value }
    }
    announcements[index]["status"] = .string(next)
    outputs.append(.cancelTimer(Self.announcementTimer + id))
    if next == "scheduled" {
      let at = announcements[index].number("scheduled_at") ?? now
      if at > now { outputs.append(.setTimer(Self.announcementTimer + id, dueAt: at)) } else { announcementIsDue(id) }
    }
    return .json(announcements[index])
  }

  private func listAnnouncements(_ call: Call) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    let status = call.query["status"].map { Key($0) }
    let group = call.query["announcement_group"].map { Key($0) }
    let found = announcements.filter { item in
      (status.map { $0 == Key(item.text("status") ?? "") } ?? true)
        && (group.map { $0 == Key(item.text("announcement_group") ?? "") } ?? true)
    }
    let (page, next) = try page(found, call, limit: try pageLimit(call)) { $0.text("unique_id") ?? "" }
    return .json(["announcements": .array(page.map { .object($0) }), "next": .string(next)])
  }
}
