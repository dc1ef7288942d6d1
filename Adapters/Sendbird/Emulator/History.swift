import ChatJSON
import SendbirdWire
import UnifiedChat

// Reading messages: lists around a point, changelogs, the gap check, search.
extension SendbirdEmulator {
  /// Which messages a request wants, and which its user may see.
  struct MessageFilter {
    var oldest: Int64
    var types: Set<String>
    var customTypes: Set<Key>?
    var senders: Set<UserID>
    var replyType: String
    var includesRemoved: Bool
    var parentID: Int64
    var operators: Set<UserID>?
    var operatorsOnly = false

    func matches(_ message: StoredMessage) -> Bool {
      if message.createdAt <= oldest || (message.isRemoved && !includesRemoved) { return false }
      if parentID != 0 {
        if message.id != parentID, message.parentID != parentID { return false }
      } else if message.parentID != 0 {
        if replyType == "none" { return false }
        if replyType == "only_reply_to_channel", !message.isReplyToChannel { return false }
      }
      if !types.isEmpty, !types.contains(message.type) { return false }
      if let customTypes, !customTypes.contains(Key(message.customType)) { return false }
      if !senders.isEmpty, !(message.sender.map { senders.contains($0.id) } ?? false) { return false }
      if let operators, let sender = message.sender, operators.contains(sender.id) != operatorsOnly { return false }
      return true
    }
  }

  private func filter(_ call: Call, _ room: Room, _ mine: Membership?) -> MessageFilter {
    let query = call.query
    // An empty element is how a query asks for messages without a custom type.
    let types = query["custom_types"] == "" ? [""] : query.list("custom_types")
    var custom: Set<Key>? = Set((types + [query["custom_type"]].compactMap(\.self)).map { Key($0) })
    if custom?.isEmpty == true || custom?.contains("*") == true { custom = nil }
    let mode = query["operator_filter"] ?? "all"
    return MessageFilter(
      oldest: mine?.historyOffset ?? .min,
      types: Set([query["message_type"]].compactMap(\.self).filter { !$0.isEmpty && $0 != "*" }), customTypes: custom,
      senders: Set((query.list("sender_ids") + [query["sender_id"]].compactMap(\.self)).map { UserID($0) }),
      replyType: query["include_reply_type"] ?? "none",
      includesRemoved: call.isAdmin && query.bool("including_removed") == true,
      parentID: query.int("parent_message_id") ?? query.int("root_message_id") ?? 0,
      operators: mode == "all" ? nil : Set(room.operators), operatorsOnly: mode == "operator")
  }

  func listMessages(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let (room, mine) = try visible(call, kind)
    let query = call.query
    let filter = filter(call, room, mine)
    let before = try messageLimit(query, "prev_limit")
    let after = try messageLimit(query, "next_limit")
    // Places before `low` are older than the anchor, from `high` on newer; between are those at the anchor.
    let low: Int
    let high: Int
    if let text = query["message_id"], !text.isEmpty, text != "0" || query["message_ts"] == nil {
      guard let id = Int64(text), let anchor = room.messageByID[id] else {
        throw SendbirdFault(400201, "Message not found.")
      }
      low = room.index(of: anchor.createdAt, anchor.id)
      high = low + 1
    } else {
      guard let time = query.int("message_ts") else {
        throw SendbirdFault(400105, "message_ts or message_id is missing.")
      }
      low = room.index(of: time, .min)
      high = time == .max ? room.messages.count : room.index(of: time &+ 1, .min)
    }
    var found = older(room, below: low, before, filter)
    if query.bool("include") ?? true { found += room.messages[low..<high].filter(filter.matches) }
    found += newer(room, from: high, after, filter)
    if query.bool("reverse") == true { found.reverse() }
    let shape = SendbirdMessage.Shape(query)
    return .json(["messages": .array(found.map { .object(wire($0, in: room).json(shape)) })])
  }

  private func messageLimit(_ query: SendbirdQuery, _ name: String) throws(SendbirdFault) -> Int {
    guard let text = query[name] else { return 15 }
    guard let limit = Int(text), limit >= 0, !hasRealLimits || limit <= SendbirdLimits.messagePage else {
      throw SendbirdFault(400113, "\(name) must be 0 to \(SendbirdLimits.messagePage).")
    }
    return limit
  }

  /// The last `limit` matches below `place`, ascending.
  private func older(_ room: Room, below place: Int, _ limit: Int, _ filter: MessageFilter) -> [StoredMessage] {
    var found: [StoredMessage] = []
    var index = place - 1
    while index >= 0, found.count < limit {
      let message = room.messages[index]
      if message.createdAt <= filter.oldest { break }
      if filter.matches(message) { found.append(message) }
      index -= 1
    }
    return found.reversed()
  }

  private func newer(_ room: Room, from place: Int, _ limit: Int, _ filter: MessageFilter) -> [StoredMessage] {
    var found: [StoredMessage] = []
    var index = place
    while index < room.messages.count, found.count < limit {
      if filter.matches(room.messages[index]) { found.append(room.messages[index]) }
      index += 1
    }
    return found
  }

  // MARK: Changelog and gap check

  func messageChanges(_ call: Call, _ kind: String) throws(SendbirdFault) -> Answer {
    let (room, mine) = try visible(call, kind)
    let start: Int
    if let token = call.query["token"], !token.isEmpty {
      guard let number = Int64(token), (0...changeNumber).contains(number) else {
        throw SendbirdFault(400111, "Invalid token.")
      }
      start = room.changes.partitioningIndex { $0.number > number }
    } else {
      guard let time = call.query.int("change_ts") else {
        throw SendbirdFault(400105, "change_ts or token is missing.")
      }
      start = room.changes.partitioningIndex { $0.at > time }
    }
    let page = room.changes[start...].prefix(100)
    var seen: Set<Int64> = []
    var (updated, deleted): ([JSONValue], [JSONValue]) = ([], [])
    let shape = SendbirdMessage.Shape(call.query)
    for change in page.reversed() where seen.insert(change.messageID).inserted {
      guard let message = room.messageByID[change.messageID], message.createdAt > mine?.historyOffset ?? .min else {
        continue
      }
      if message.isRemoved {
        deleted.append(["message_id": .int(message.id)])
      } else {
        updated.append(.object(wire(message, in: room).json(shape)))
      }
    }
    let next = page.last?.number ?? call.query["token"].flatMap { Int64($0) } ?? changeNumber
    return .json([
      "updated": .array(updated.reversed()), "deleted": .array(deleted.reversed()),
      "has_more": .bool(start + page.count < room.changes.count), "next": .string(String(next)),
    ])
  }

  func messagesGap(_ call: Call) throws(SendbirdFault) -> Answer {
    let (room, mine) = try memberRoom(call)
    let filter = filter(call, room, mine)
    let most = Int(clamping: call.query.int("huge_gap_threshold") ?? settings.hugeGap)
    let shape = SendbirdMessage.Shape(call.query)
    var isHuge = false
    func window(_ name: String) -> JSONValue {
      guard let from = call.query.int("\(name)_start_ts"), let to = call.query.int("\(name)_end_ts"), from < to else {
        return []
      }
      let found = room.messages[room.index(of: from, .min)..<room.index(of: to, .max)].filter(filter.matches)
      let missing = found.count - Int(clamping: call.query.int("\(name)_cache_count") ?? 0)
      guard missing > 0 else { return [] }
      if missing > most {
        isHuge = true
        return []
      }
      return .array(found.reversed().map { .object(wire($0, in: room).json(shape)) })
    }
    let (before, after) = (window("prev"), window("next"))
    return .json([
      "is_huge_gap": .bool(isHuge), "prev_messages": isHuge ? [] : before, "prev_hasmore": false,
      "next_messages": isHuge ? [] : after, "next_hasmore": false,
    ])
  }

  // MARK: Search

  private static func text(of message: StoredMessage, in field: String) -> String {
    switch field {
    case "message": message.text
    case "data": message.data
    case "custom_type": message.customType
    case "mentioned_message": message.mentionTemplate
    default: ""
    }
  }

  func search(_ call: Call) throws(SendbirdFault) -> Answer {
    guard let words = call.query["query"], !words.isEmpty else { throw SendbirdFault(400105, "query is missing.") }
    let viewer = call.sessionUser ?? call.query["user_id"].flatMap { people[UserID($0)] }
    let limit = try pageLimit(call, default: 20)
    let url = call.query["channel_url"].map { ChannelID($0) }
    let scope = viewer.map { Array($0.rooms.values) } ?? Array(rooms.values)
    let isExact = call.query.bool("exact_match") ?? false
    let fields = call.query["target_fields"].map { $0.split(separator: ",").map(String.init) } ?? ["message"]
    let customType = call.query["custom_type"].flatMap { $0.isEmpty ? nil : $0 }
    let first = call.query["message_ts_from"].flatMap { Int64($0) } ?? .min
    let last = call.query["message_ts_to"].flatMap { Int64($0) } ?? .max
    var hits: [(StoredMessage, Room)] = []
    for room in scope where !room.isOpen && (url == nil || room.url == url) {
      let oldest = viewer.flatMap { room.members[$0.id] }?.historyOffset ?? .min
      hits += room.messages.filter { message in
        guard !message.isRemoved, message.createdAt > oldest, message.createdAt >= first, message.createdAt <= last,
          customType.map({ Key($0) == Key(message.customType) }) ?? true
        else { return false }
        return fields.contains { field in
          let text = Self.text(of: message, in: field)
          return isExact ? Key(text) == Key(words) : text.containsIgnoringCase(words)
        }
      }.map { ($0, room) }
    }
    hits.sort { ($0.0.createdAt, $0.0.id) > ($1.0.createdAt, $1.0.id) }
    if call.query.bool("reverse") == true { hits.reverse() }
    var start = 0
    if let after = call.query["after"] ?? call.query["token"], !after.isEmpty {
      guard let place = Int(after), place >= 0 else { throw SendbirdFault(400111, "Invalid cursor.") }
      start = min(place, hits.count)
    }
    let end = min(hits.count, start + limit)
    let results = hits[start..<end].map { message, room in
      var json = wire(message, in: room).json
      json["channel"] = .object(self.json(of: room, for: viewer, ChannelView(members: true)))
      return JSONValue.object(json)
    }
    return .json([
      "total_count": .int(Int64(hits.count)), "results": .array(results), "start_cursor": .string(String(start)),
      "end_cursor": .string(end < hits.count ? String(end) : ""), "has_prev": .bool(start > 0),
      "has_next": .bool(end < hits.count),
    ])
  }
}
