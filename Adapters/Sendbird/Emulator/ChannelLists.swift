import ChatJSON
import SendbirdWire
import UnifiedChat

// Lists of channels, with the client's query options, and the channel changelog.
extension SendbirdEmulator {
  func listGroups(_ call: Call) throws(SendbirdFault) -> Answer {
    let viewer = call.sessionUser
    let filter = try ChannelFilter(call.query, viewer: viewer, isMine: false)
    // A client sees public channels and its own; the Platform API sees all.
    let candidates = rooms.values.filter { room in
      guard !room.isOpen else { return false }
      guard let viewer else { return true }
      let isMine = room.members[viewer.id] != nil
      return isMine || (room.isPublic && call.query["public_membership_mode"] != "joined")
    }
    return try list(candidates, filter, call, viewer: viewer)
  }

  func listMine(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    let filter = try ChannelFilter(call.query, viewer: person, isMine: true)
    return try list(Array(person.rooms.values), filter, call, viewer: person)
  }

  private func list(
    _ candidates: [Room], _ filter: ChannelFilter, _ call: Call, viewer: Person?
  ) throws(SendbirdFault) -> Answer {
    let sorted = filter.sort(candidates.filter { filter.matches($0, in: self) })
    let (page, next) = try page(sorted, call, limit: try pageLimit(call)) { $0.url.rawValue }
    let view = ChannelView(call.query)
    return .json([
      "channels": .array(page.map { .object(json(of: $0, for: viewer, view)) }), "next": .string(next), "ts": .int(now),
    ])
  }

  func listOpen(_ call: Call) throws(SendbirdFault) -> Answer {
    let name = call.query["name_contains"]
    let url = call.query["url_contains"]
    let urls = Set(call.query.list("channel_urls").map { ChannelID($0) })
    let types = Set(call.query.list("custom_types").map { Key($0) })
    let found = rooms.values.filter { room in
      room.isOpen && (urls.isEmpty || urls.contains(room.url))
        && (types.isEmpty || types.contains(Key(room.customType)))
        && (name.map { room.name.containsIgnoringCase($0) } ?? true)
        && (url.map { room.url.rawValue.contains($0) } ?? true)
        && (call.query.bool("show_frozen") ?? true || !room.isFrozen)
    }
    let sorted = ChannelFilter.byCreation(found)
    let view = ChannelView(call.query)
    let (page, next) = try page(sorted, call, limit: try pageLimit(call)) { $0.url.rawValue }
    return .json([
      "channels": .array(page.map { .object(json(of: $0, for: call.sessionUser, view)) }), "next": .string(next),
      "ts": .int(now),
    ])
  }

  func listParticipants(_ call: Call) throws(SendbirdFault) -> Answer {
    let room = try channel(call, "open_channels")
    let (page, next) = try page(present(in: room), call, limit: try pageLimit(call)) { $0.id.rawValue }
    let people = page.map { person in
      var json = json(of: person).json
      json["is_muted"] = .bool(activeMute(of: person.id, in: room) != nil)
      return JSONValue.object(json)
    }
    return .json(["participants": .array(people), "next": .string(next)])
  }

  /// Channels of the user that changed after a time or a token; a token is the number of the last change seen.
  func channelChanges(_ call: Call) throws(SendbirdFault) -> Answer {
    let person = try ownPerson(call)
    let limit = 100
    var (since, sinceTime): (Int64, Int64) = (0, .min)
    if let token = call.query["token"], !token.isEmpty {
      guard let number = Int64(token), (0...changeNumber).contains(number) else {
        throw SendbirdFault(400111, "Invalid token.")
      }
      since = number
    } else if let time = call.query.int("change_ts") {
      sinceTime = time
    }
    let filter = try ChannelFilter(call.query, viewer: person, isMine: true)
    var changes: [(number: Int64, room: Room?, url: ChannelID)] =
      person.rooms.values.filter {
        $0.lastChange > since && $0.lastChangeAt > sinceTime && filter.matchesKind($0)
      }.map { ($0.lastChange, $0, $0.url) }
    changes += person.lost.filter { $0.value.number > since && $0.value.at > sinceTime && person.rooms[$0.key] == nil }
      .map { ($0.value.number, nil, $0.key) }
    changes.sort { $0.number < $1.number }
    let page = changes.prefix(limit)
    let view = ChannelView(call.query)
    return .json([
      "updated": .array(page.compactMap { $0.room.map { .object(json(of: $0, for: person, view)) } }),
      "deleted": .array(page.filter { $0.room == nil }.map { .string($0.url.rawValue) }),
      "has_more": .bool(changes.count > limit),
      "next": .string(String(page.last?.number ?? (sinceTime == .min ? since : changeNumber))),
    ])
  }
}

/// The options of the two lists of group channels.
struct ChannelFilter {
  let query: SendbirdQuery
  let viewer: Person?
  let isMine: Bool
  let order: String
  let urls: Set<ChannelID>
  let types: Set<Key>
  let exactly: Set<UserID>
  let including: Set<UserID>

  init(_ query: SendbirdQuery, viewer: Person?, isMine: Bool) throws(SendbirdFault) {
    self.query = query
    self.viewer = viewer
    self.isMine = isMine
    order = query["order"] ?? "chronological"
    guard
      ["chronological", "latest_last_message", "channel_name_alphabetical", "metadata_value_alphabetical"].contains(
        order)
    else { throw SendbirdFault(400111, "Unknown order.") }
    urls = Set(query.list("channel_urls").map { ChannelID($0) })
    types = Set(query.list("custom_types").map { Key($0) })
    var exactly = Set(query.list("members_exactly_in").map { UserID($0) })
    if !exactly.isEmpty, isMine, let viewer { exactly.insert(viewer.id) }
    self.exactly = exactly
    including = Set(query.list("members_include_in").map { UserID($0) })
  }

  func matches(_ room: Room, in emulator: SendbirdEmulator) -> Bool {
    matchesKind(room) && matchesName(room) && matchesMembers(room) && matchesMine(room, emulator)
  }

  func matchesKind(_ room: Room) -> Bool {
    if !urls.isEmpty, !urls.contains(room.url) { return false }
    if !types.isEmpty, !types.contains(Key(room.customType)) { return false }
    if let prefix = query["custom_type_startswith"], !room.customType.hasPrefix(prefix) { return false }
    if query.bool("show_empty") == false, room.lastMessage == nil { return false }
    if query.bool("show_frozen") == false, room.isFrozen { return false }
    switch query["public_mode"] {
    case "public": if !room.isPublic { return false }
    case "private": if room.isPublic { return false }
    default: break
    }
    switch query["super_mode"] {
    case "super": if !room.isSuper { return false }
    case "nonsuper": if room.isSuper { return false }
    case "broadcast_only": if !room.isBroadcast { return false }
    default: break
    }
    switch query["distinct_mode"] {
    case "distinct": if !room.isDistinct { return false }
    case "nondistinct": if room.isDistinct { return false }
    default: break
    }
    if let after = query.int("created_after"), room.createdAt / 1000 <= after { return false }
    if let before = query.int("created_before"), room.createdAt / 1000 >= before { return false }
    if let key = query["metadata_key"] {
      guard let value = room.metadata.text(key) else { return false }
      let values = query.list("metadata_values")
      if !values.isEmpty, !values.contains(where: { Key($0) == Key(value) }) { return false }
      if let prefix = query["metadata_value_startswith"], !value.hasPrefix(prefix) { return false }
    }
    return matchesCounter(room)
  }

  private func matchesCounter(_ room: Room) -> Bool {
    guard let key = query["metacounter_key"] else { return true }
    guard let value = room.counters.number(key) else { return false }
    let values = query.list("metacounter_values").compactMap { Int64($0) }
    return (values.isEmpty || values.contains(value))
      && query.int("metacounter_value_gt").map { value > $0 } ?? true
      && query.int("metacounter_value_gte").map { value >= $0 } ?? true
      && query.int("metacounter_value_lt").map { value < $0 } ?? true
      && query.int("metacounter_value_lte").map { value <= $0 } ?? true
  }

  private func matchesName(_ room: Room) -> Bool {
    if let name = query["name"], Key(room.name) != Key(name) { return false }
    if let part = query["name_contains"], !room.name.containsIgnoringCase(part) { return false }
    if let prefix = query["name_startswith"], !room.name.hasPrefix(prefix) { return false }
    if let words = query["search_query"], !words.isEmpty {
      // The JavaScript client encodes the comma of this one list.
      let fields = query.list("search_fields").flatMap { $0.split(separator: ",").map(String.init) }
      let inName = fields.contains("channel_name") && room.name.containsIgnoringCase(words)
      let inMembers =
        fields.contains("member_nickname")
        && room.members.values.contains { $0.person.nickname.containsIgnoringCase(words) }
      if !inName, !inMembers { return false }
    }
    return true
  }

  private func matchesMembers(_ room: Room) -> Bool {
    if !exactly.isEmpty, Set(room.members.keys) != exactly { return false }
    if !including.isEmpty {
      let isAny = query["query_type"] == "OR"
      if isAny ? including.isDisjoint(with: room.members.keys) : !including.isSubset(of: room.members.keys) {
        return false
      }
    }
    let names = query.list("members_nickname")
    if !names.isEmpty, !room.members.values.contains(where: { names.contains($0.person.nickname) }) { return false }
    if let part = query["members_nickname_contains"],
      !room.members.values.contains(where: { $0.person.nickname.containsIgnoringCase(part) })
    {
      return false
    }
    if let prefix = query["members_nickname_startswith"],
      !room.members.values.contains(where: { $0.person.nickname.hasPrefix(prefix) })
    {
      return false
    }
    return true
  }

  private func matchesMine(_ room: Room, _ emulator: SendbirdEmulator) -> Bool {
    guard isMine, let viewer, let mine = room.members[viewer.id] else { return !isMine }
    switch query["hidden_mode"] ?? "unhidden_only" {
    case "unhidden_only": if mine.hiddenState != "unhidden" { return false }
    case "hidden_only": if mine.hiddenState == "unhidden" { return false }
    case "hidden_allow_auto_unhide", "hidden_prevent_auto_unhide":
      if mine.hiddenState != query["hidden_mode"] { return false }
    default: break
    }
    if query["unread_filter"] == "unread_message", emulator.shownUnread(mine, in: room) == 0 { return false }
    switch query["member_state_filter"] ?? "all" {
    case "joined_only": return mine.isJoined
    case "invited_only": return !mine.isJoined
    case "invited_by_friend": return mine.invitation == .byFriend
    case "invited_by_non_friend": return mine.invitation == .byNonFriend
    default: return true
    }
  }

  /// Empty channels by their creation, of which the wire tells whole seconds.
  private static func byTime(_ rooms: [Room]) -> [Room] {
    let timed: [(room: Room, at: Int64)] = rooms.map { ($0, $0.lastMessage?.createdAt ?? $0.createdAt / 1000 * 1000) }
    return timed.sorted { $0.at == $1.at ? $0.room.url < $1.room.url : $0.at > $1.at }.map(\.room)
  }

  private func byMetadata(_ rooms: [Room]) -> [Room] {
    let key = query["metadata_order_key"] ?? ""
    let valued: [(room: Room, value: Key)] = rooms.map { ($0, Key($0.metadata.text(key) ?? "")) }
    return valued.sorted { $0.value == $1.value ? $0.room.url < $1.room.url : $0.value < $1.value }.map(\.room)
  }

  func sort(_ rooms: [Room]) -> [Room] {
    switch order {
    case "latest_last_message":
      Self.byTime(rooms)
    case "channel_name_alphabetical":
      rooms.sorted { Key($0.name) == Key($1.name) ? $0.url < $1.url : Key($0.name) < Key($1.name) }
    case "metadata_value_alphabetical":
      byMetadata(rooms)
    default: Self.byCreation(rooms)
    }
  }

  /// The wire tells whole seconds: channels of one second stand in the order of their addresses, as whoever sorts what
  /// he was told has them.
  static func byCreation(_ rooms: some Sequence<Room>) -> [Room] {
    rooms.sorted { left, right in
      let seconds = (left: left.createdAt / 1000, right: right.createdAt / 1000)
      return seconds.left == seconds.right ? left.url < right.url : seconds.left > seconds.right
    }
  }
}

extension String {
  /// Whether `part` occurs, without regard to case.
  func containsIgnoringCase(_ part: String) -> Bool { part.isEmpty || lowercased().contains(part.lowercased()) }
}
