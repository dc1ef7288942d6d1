import ChatJSON
import SendbirdWire
import UnifiedChat

// Data export: a zip of JSON documents, in the shapes of published exports. Done by the time that anybody asks.
extension SendbirdEmulator {
  private static let day: Int64 = 86_400_000

  func requestExport(_ call: Call) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    let kind = call.parameter("kind")
    guard ["messages", "channels", "users", "failed_webhooks"].contains(kind) else {
      throw SendbirdFault(400111, "Unknown data_type.")
    }
    guard let from = call.number("start_ts"), let to = call.number("end_ts"), from < to else {
      throw SendbirdFault(400105, "start_ts and end_ts are missing or in the wrong order.")
    }
    let most: Int64? = kind == "messages" ? 31 : kind == "failed_webhooks" ? 2 : nil
    if hasRealLimits, let most, to &- from > most * Self.day { throw SendbirdFault(400113, "At most \(most) days.") }
    guard call.text("format") ?? "json" == "json" else { throw SendbirdFault(400111, "Only json is emulated.") }
    if hasRealLimits, call.texts("sender_ids").count > 10 || call.texts("exclude_sender_ids").count > 10 {
      throw SendbirdFault(400203, "At most 10 senders.")
    }
    let id = hex(32)
    let documents = exportDocuments(kind, from: from, to: to, call)
    files[id] = StoredFile(name: "\(kind).zip", type: "application/zip", bytes: SendbirdZip.write(documents))
    var json: JSONObject = [
      "request_id": .string(id), "data_type": .string(kind), "status": "scheduled", "format": "json",
      "csv_delimiter": ",", "timezone": "UTC", "created_at": .int(now), "start_ts": .int(from), "end_ts": .int(to),
    ]
    for name in ["channel_urls", "sender_ids", "user_ids"] {
      json[name] = .array(call.texts(name).map { .string($0) })
    }
    let scheduled = json
    json["status"] = documents.isEmpty ? "no data" : "done"
    if !documents.isEmpty {
      json["file"] = ["url": .string("\(baseURL)/files/\(id)/\(kind).zip"), "expires_at": .int(now &+ 7 * Self.day)]
    }
    exports.append(.object(json))
    return .json(scheduled)
  }

  private func exportDocuments(_ kind: String, from: Int64, to: Int64, _ call: Call) -> [SendbirdZip.Entry] {
    switch kind {
    case "messages": exportedMessages(from, to, call)
    case "channels": exportedChannels(from, to, call)
    case "users": exportedUsers(call)
    default: []
    }
  }

  private func exportedRooms(_ call: Call) -> [Room] {
    let urls = Set(call.texts("channel_urls").map { ChannelID($0) })
    let without = Set(call.texts("exclude_channel_urls").map { ChannelID($0) })
    let types = Set(call.texts("channel_custom_types").map { Key($0) })
    return rooms.values.filter { room in
      (urls.isEmpty || urls.contains(room.url)) && !without.contains(room.url)
        && (types.isEmpty || types.contains(Key(room.customType)))
    }.sorted { $0.url < $1.url }
  }

  /// One document a channel. Deleted messages are in it, with their text.
  private func exportedMessages(_ from: Int64, _ to: Int64, _ call: Call) -> [SendbirdZip.Entry] {
    let senders = Set(call.texts("sender_ids").map { UserID($0) })
    let without = Set(call.texts("exclude_sender_ids").map { UserID($0) })
    return exportedRooms(call).compactMap { room in
      let messages = room.messages[room.index(of: from, .min)..<room.index(of: to, .min)].filter { message in
        let sender = message.sender?.id
        return (senders.isEmpty || sender.map(senders.contains) ?? false)
          && !(sender.map(without.contains) ?? false)
      }
      guard !messages.isEmpty else { return nil }
      // Neither reactions nor threads' summaries are part of an export.
      let shape = SendbirdMessage.Shape(metaArrays: true, reactions: false, thread: false, parent: false)
      let document: JSONValue = [
        "messages": .array(messages.map { .object(wire($0, in: room).json(shape)) }),
        "channel": .object(exported(room)),
      ]
      return SendbirdZip.Entry(name: "\(room.url).json", bytes: document.bytes())
    }
  }

  private func exported(_ room: Room) -> JSONObject {
    var json = json(of: room, for: nil).without(["last_message", "ts"])
    json["members"] = .array(
      json.list("members").map { value in
        var member = value.object ?? JSONObject()
        member["name"] = member["nickname"]
        return .object(member)
      })
    return json
  }

  private func exportedChannels(_ from: Int64, _ to: Int64, _ call: Call) -> [SendbirdZip.Entry] {
    let all = exportedRooms(call).filter { (from..<to).contains($0.createdAt) }
    guard !all.isEmpty else { return [] }
    let document: JSONValue = [
      "group_channels": .array(all.filter { !$0.isOpen }.map { .object(exported($0)) }),
      "open_channels": .array(all.filter(\.isOpen).map { .object(exported($0)) }),
    ]
    return [SendbirdZip.Entry(name: "channels.json", bytes: document.bytes())]
  }

  private func exportedUsers(_ call: Call) -> [SendbirdZip.Entry] {
    let ids = Set(call.texts("user_ids").map { UserID($0) })
    let all = peopleInOrder.filter { ids.isEmpty || ids.contains($0.id) }
    guard !all.isEmpty else { return [] }
    func list(_ isActive: Bool) -> JSONValue {
      .array(
        all.filter { $0.isActive == isActive }.map { person in
          var json = adminJSON(of: person)
          json["last_seen_at"] = .string(Self.exportTime(person.lastSeenAt))
          return .object(json)
        })
    }
    let document: JSONValue = ["active_users": list(true), "deactivated_users": list(false)]
    return [SendbirdZip.Entry(name: "users.json", bytes: document.bytes())]
  }

  /// `2030-01-31 23:59:59+0000`; one second before 1970 stands for "never".
  static func exportTime(_ milliseconds: Int64) -> String {
    let text = Timestamp(milliseconds: milliseconds <= 0 ? -1000 : milliseconds).description
    return String(text.prefix(19)).replacing("T", with: " ") + "+0000"
  }

  func listExports(_ call: Call) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    let all = exports.filter { $0["data_type"]?.string == call.parameter("kind") }
    let (page, next) = try page(all, call, limit: try pageLimit(call)) { $0["request_id"]?.string ?? "" }
    return .json(["exported_data": .array(page), "next": .string(next)])
  }

  func fetchExport(_ call: Call) throws(SendbirdFault) -> Answer {
    try requireAdmin(call)
    let export = exports.first { item in
      item["request_id"]?.string == call.parameter("id") && item["data_type"]?.string == call.parameter("kind")
    }
    guard let json = export?.object else { throw SendbirdFault(400201, "Export not found.") }
    return .json(json)
  }
}
