import ChatInterchange
import ChatJSON
import SendbirdWire
import UnifiedChat

// Channels and their members.
extension SendbirdAdapter {
  private static let view: [(String, Bool)] = [
    ("show_member", true), ("show_read_receipt", true), ("show_delivery_receipt", true), ("show_metadata", true),
  ]

  private func viewQuery() -> SendbirdQuery {
    var query = SendbirdQuery()
    for (name, value) in Self.view { query.add(name, value) }
    return query
  }

  func group(_ id: ChannelID, _ more: String...) -> [String] { ["group_channels", id.rawValue] + more }
  func open(_ id: ChannelID, _ more: String...) -> [String] { ["open_channels", id.rawValue] + more }
  /// A call below the path of a channel of either kind. Nothing in an id tells the kind: what no group knows may be an
  /// open channel, and once found it stays known as one.
  func call(
    _ method: String, at id: ChannelID, _ more: [String], query: SendbirdQuery = SendbirdQuery(),
    body: JSONObject? = nil, _ operation: ChatError.Operation
  ) async throws(ChatError) -> JSONObject {
    func path() -> [String] { [openChannels.contains(id) ? "open_channels" : "group_channels", id.rawValue] + more }
    do { return try await call(method, path(), query: query, body: body, operation) } catch {
      guard error.kind == .notFound, !openChannels.contains(id), await isOpen(id) else { throw error }
    }
    return try await call(method, path(), query: query, body: body, operation)
  }

  private func isOpen(_ id: ChannelID) async -> Bool {
    guard let json = try? await call("GET", open(id), .fetchChannel), json.text("channel_url") != nil else {
      return false
    }
    openChannels.insert(id)
    return true
  }

  func channel(_ json: JSONObject, _ operation: ChatError.Operation) throws(ChatError) -> Channel {
    guard let user, var channel = SendbirdView.channel(json, me: user) else { throw Self.malformed(operation) }
    if channel.kind == .open { openChannels.insert(channel.id) }
    noteCleared(channel.id, json.number("ts_message_offset") ?? 0)
    applyHeldMark(to: &channel)
    operators[channel.id] = Set(
      json.list("operators").compactMap { $0.object.flatMap(SendbirdUser.init)?.id })
    return channel
  }

  /// The vendor tells no device that another one cleared the history: the channel's next view shows it.
  private func noteCleared(_ id: ChannelID, _ offset: Int64) {
    guard offset > historyOffsets[id] ?? 0, let position = SendbirdMapping.position(offset) else { return }
    historyOffsets[id] = offset
    publish(.historyCleared(id, upTo: position), source: .catchUp)
  }

  // MARK: Create, fetch, list

  public func createChannel(_ draft: ChannelDraft) async throws(ChatError) -> Channel {
    let me = try session(.createChannel).user
    var body = JSONObject()
    body["name"] = .string(draft.name ?? "")
    body["cover_url"] = draft.coverURL.map { .string($0) }
    body["data"] = draft.customData.map { .string($0.text) }
    var others: [UserID] = []
    for user in draft.members where user != me && !others.contains(user) { others.append(user) }
    switch draft.kind {
    case .open:
      body["operators"] = [.string(me.rawValue)]
      let json = try await call("POST", ["open_channels"], body: body, .createChannel)
      return try await join(try channel(json, .createChannel).id)
    case .direct:
      guard others.count == 1 else {
        throw ChatError(
          .invalidArgument(field: "members"), operation: .createChannel, detail: "a direct channel has two")
      }
      body["is_distinct"] = true
    case .group: body["is_distinct"] = .bool(draft.isDistinct)
    case .service: throw .unsupported(.channelService, operation: .createChannel)
    case .temporary: throw .unsupported(.channelTemporary, operation: .createChannel)
    case .unknown:
      throw ChatError(.invalidArgument(field: "kind"), operation: .createChannel, detail: "no kind of Sendbird's")
    }
    let isSuper = others.count >= SendbirdLimits.groupMembers
    if isSuper { (body["is_super"], body["is_distinct"]) = (true, false) }
    let first = others.prefix(SendbirdLimits.inviteBatch - 1)
    body["user_ids"] = .array(([me] + first).map { .string($0.rawValue) })
    // Without it, unknown users are left out in silence.
    body["strict"] = true
    let created = try channel(try await createGroup(body), .createChannel)
    guard others.count > first.count else { return created }
    try await invite(Array(others.dropFirst(first.count)), to: created.id)
    return try await channel(created.id)
  }

  /// "Invalid value" of a strict creation is the vendor's word for a user who does not exist.
  private func createGroup(_ body: JSONObject) async throws(ChatError) -> JSONObject {
    do { return try await call("POST", ["group_channels"], body: body, .createChannel) } catch {
      guard error.vendor?.code == "400111" else { throw error }
      throw ChatError(.notFound, operation: .createChannel, vendor: error.vendor, detail: "a member does not exist")
    }
  }

  public func channel(_ id: ChannelID) async throws(ChatError) -> Channel {
    if !openChannels.contains(id) {
      do {
        return try channel(try await call("GET", group(id), query: viewQuery(), .fetchChannel), .fetchChannel)
      } catch {
        guard error.kind == .notFound else { throw error }
      }
    }
    return try openView(try await call("GET", open(id), query: viewQuery(), .fetchChannel), .fetchChannel)
  }

  private func openView(_ json: JSONObject, _ operation: ChatError.Operation) throws(ChatError) -> Channel {
    var channel = try channel(json, operation)
    if entered.contains(channel.id) { channel.myState = .joined }
    return channel
  }

  public func channels(_ query: ChannelQuery, page: PageToken?) async throws(ChatError) -> Page<Channel> {
    if query.kinds == [.open] { return try await enteredChannels(query) }
    let me = try session(.listChannels).user.rawValue
    var found: [Channel] = []
    var walk = PageWalk()
    var place = try SendbirdListPlace(page)
    while true {
      try walk.advance(to: place.token, .listChannels)
      let token = place.token
      let wanted = min(SendbirdLimits.page, query.limit - found.count)
      let json = try await call(
        "GET", ["users", me, "my_group_channels"], query: listQuery(query, token: token, limit: max(1, wanted)),
        .listChannels)
      for item in json.list("channels") {
        guard let object = item.object else { throw Self.malformed(.listChannels) }
        let channel = try channel(object, .listChannels)
        let isNew = query.order != .lastMessage || place.admits(channel)
        if isNew, query.kinds?.contains(channel.kind) ?? true { found.append(channel) }
      }
      place.token = json.text("next") ?? ""
      if place.token.isEmpty || found.count >= query.limit { break }
    }
    if place.token.isEmpty, query.kinds?.contains(.open) == true { found += try await enteredChannels(query).items }
    return Page(items: found, next: place.page)
  }

  private func listQuery(_ query: ChannelQuery, token: String, limit: Int) -> SendbirdQuery {
    var wire = SendbirdQuery()
    wire.add("token", token)
    wire.add("limit", Int64(limit))
    switch query.order {
    case .lastMessage: wire.add("order", "latest_last_message")
    case .name: wire.add("order", "channel_name_alphabetical")
    case .created: wire.add("order", "chronological")
    }
    for (name, value) in Self.view { wire.add(name, value) }
    wire.add("show_empty", true)
    wire.add("show_frozen", true)
    wire.add("member_state_filter", "all")
    wire.add("hidden_mode", query.includesHidden ? "all" : "unhidden_only")
    if query.unreadOnly { wire.add("unread_filter", "unread_message") }
    if let part = query.nameContains { wire.add("name_contains", part) }
    if let members = query.members, !members.isEmpty {
      wire.add("members_include_in", list: members.sorted().map(\.rawValue))
      wire.add("query_type", "AND")
    }
    if query.kinds == [.direct] { wire.add("distinct_mode", "distinct") }
    return wire
  }

  /// Open channels are joined by this connection or not at all, so the list is ours.
  private func enteredChannels(_ query: ChannelQuery) async throws(ChatError) -> Page<Channel> {
    var found: [Channel] = []
    for id in entered.sorted() { found.append(try await channel(id)) }
    if let part = query.nameContains { found = found.filter { $0.name?.contains(part) ?? false } }
    return Page(items: found, next: nil)
  }

  // MARK: Change

  public func updateChannel(_ id: ChannelID, _ changes: ChannelChanges) async throws(ChatError) -> Channel {
    var body = JSONObject()
    body["name"] = changes.name.map { .string($0) }
    body["cover_url"] = changes.coverURL.map { .string($0) }
    if let customData = changes.customData {
      // An import's envelope stays, or a later run would take the channel for a stranger's.
      let now = try await call("GET", at: id, [], .updateChannel)
      body["data"] = .string(Provenance.replacing(customData: customData, in: now.text("data") ?? ""))
    }
    return try openView(try await call("PUT", at: id, [], body: body, .updateChannel), .updateChannel)
  }

  public func setMetadata(_ values: [String: String?], of id: ChannelID) async throws(ChatError) {
    let sorted = values.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    let kept = JSONObject(sorted.compactMap { item in item.value.map { (key: item.key, value: JSONValue.string($0)) } })
    if !kept.isEmpty {
      let body: JSONObject = ["metadata": .object(kept), "upsert": true]
      _ = try await call("PUT", at: id, ["metadata"], body: body, .updateChannel)
    }
    for (key, value) in sorted where value == nil {
      _ = try await call("DELETE", at: id, ["metadata", key], .updateChannel)
    }
  }

  public func deleteChannel(_ id: ChannelID) async throws(ChatError) {
    _ = try await call("DELETE", at: id, [], .deleteChannel)
    entered.remove(id)
  }

  public func setFrozen(_ isFrozen: Bool, _ id: ChannelID) async throws(ChatError) {
    _ = try await call("PUT", at: id, ["freeze"], body: ["freeze": .bool(isFrozen)], .freeze)
  }

  public func setHidden(_ isHidden: Bool, _ id: ChannelID) async throws(ChatError) {
    if isHidden {
      let body: JSONObject = ["hide_previous_messages": false, "allow_auto_unhide": true]
      _ = try await call("PUT", group(id, "hide"), body: body, .hideChannel)
    } else {
      _ = try await call("DELETE", group(id, "hide"), .hideChannel)
    }
  }

  public func setNotificationLevel(_ level: NotificationLevel, of id: ChannelID) async throws(ChatError) {
    let me = try session(.updateChannel).user.rawValue
    _ = try await call(
      "PUT", ["users", me, "push_preference", id.rawValue],
      body: ["push_trigger_option": .string(SendbirdView.option(level))], .updateChannel)
  }

  // MARK: Coming and going

  /// Enters an open channel, or joins a public group.
  public func join(_ id: ChannelID) async throws(ChatError) -> Channel {
    do throws(ChatError) {
      _ = try await ask("ENTR", ["channel_url": .string(id.rawValue)], id: newRequestID(), .join)
      entered.insert(id)
      openChannels.insert(id)
    } catch {
      guard error.vendor?.code == "900090" else { throw error }
      let me = try session(.join).user.rawValue
      return try channel(try await call("PUT", group(id, "join"), body: ["user_id": .string(me)], .join), .join)
    }
    return try await channel(id)
  }

  public func leave(_ id: ChannelID) async throws(ChatError) {
    if entered.contains(id) {
      _ = try await ask("EXIT", ["channel_url": .string(id.rawValue)], id: newRequestID(), .leave)
      entered.remove(id)
      return
    }
    let me = try session(.leave).user.rawValue
    _ = try await call("PUT", group(id, "leave"), body: ["user_id": .string(me)], .leave)
  }

  public func invite(_ users: [UserID], to id: ChannelID) async throws(ChatError) {
    for start in stride(from: 0, to: users.count, by: SendbirdLimits.inviteBatch) {
      let part = users[start..<min(users.count, start + SendbirdLimits.inviteBatch)]
      let body: JSONObject = ["user_ids": .array(part.map { .string($0.rawValue) })]
      _ = try await call("POST", group(id, "invite"), body: body, .invite)
    }
  }

  public func answerInvitation(to id: ChannelID, accept: Bool) async throws(ChatError) {
    let me = try session(.join).user.rawValue
    _ = try await call("PUT", group(id, accept ? "accept" : "decline"), body: ["user_id": .string(me)], .join)
  }

  /// A client of Sendbird has no other way to remove somebody than a ban, which is lifted at once.
  public func removeMembers(_ users: [UserID], from id: ChannelID) async throws(ChatError) {
    for user in users {
      let body: JSONObject = ["user_id": .string(user.rawValue), "description": "removed", "seconds": "1"]
      _ = try await call("POST", at: id, ["ban"], body: body, .removeMember)
      do { _ = try await call("DELETE", at: id, ["ban", user.rawValue], .removeMember) } catch {
        // The ban of a second is over by itself: he is out, and may come back.
        guard error.kind == .notFound else { throw error }
      }
    }
  }

  public func members(of id: ChannelID, limit: Int, page: PageToken?) async throws(ChatError) -> Page<Member> {
    var found: [Member] = []
    var walk = PageWalk()
    var token = page?.rawValue ?? ""
    while true {
      try walk.advance(to: token, .listMembers)
      var query = SendbirdQuery()
      query.add("token", token)
      query.add("limit", Int64(max(1, min(SendbirdLimits.page, limit - found.count))))
      for (name, value) in Self.view.prefix(3) { query.add(name, value) }
      query.add("show_member_is_muted", true)
      query.add("order", "member_nickname_alphabetical")
      let json = try await people(of: id, query)
      found += (json.list("members") + json.list("participants")).compactMap { item in
        item.object.flatMap(SendbirdMember.init).map(SendbirdMapping.member)
      }
      token = json.text("next") ?? ""
      if token.isEmpty || found.count >= limit { break }
    }
    return Page(items: found, next: token.isEmpty ? nil : PageToken(token))
  }

  /// Members of a group, or those who are in an open channel.
  private func people(of id: ChannelID, _ query: SendbirdQuery) async throws(ChatError) -> JSONObject {
    if !openChannels.contains(id) {
      do { return try await call("GET", group(id, "members"), query: query, .listMembers) } catch {
        guard error.kind == .notFound, await isOpen(id) else { throw error }
      }
    }
    return try await call("GET", open(id, "participants"), query: query, .listMembers)
  }

  // MARK: What members may do

  public func setRole(_ role: MemberRole, of user: UserID, in id: ChannelID) async throws(ChatError) {
    switch role {
    case .admin:
      _ = try await call("POST", at: id, ["operators"], body: ["operator_ids": [.string(user.rawValue)]], .setRole)
    case .member:
      var query = SendbirdQuery()
      query.add("operator_ids", list: [user.rawValue])
      _ = try await call("DELETE", at: id, ["operators"], query: query, .setRole)
    case .owner: throw .unsupported(.memberOwnerRole, operation: .setRole)
    case .unknown:
      throw ChatError(
        .invalidArgument(field: "role"), operation: .setRole, detail: "Sendbird knows operators and others")
    }
  }

  private static func seconds(_ duration: Duration?) -> Int64 {
    duration.map { max(1, ($0.wholeMilliseconds &+ 999) / 1000) } ?? -1
  }

  public func mute(_ user: UserID, in id: ChannelID, for duration: Duration?) async throws(ChatError) {
    let body: JSONObject = ["user_id": .string(user.rawValue), "seconds": .int(Self.seconds(duration))]
    _ = try await call("POST", at: id, ["mute"], body: body, .mute)
  }

  public func unmute(_ user: UserID, in id: ChannelID) async throws(ChatError) {
    _ = try await call("DELETE", at: id, ["mute", user.rawValue], .mute)
  }

  public func ban(_ user: UserID, from id: ChannelID, for duration: Duration?) async throws(ChatError) {
    let body: JSONObject = ["user_id": .string(user.rawValue), "seconds": .string(String(Self.seconds(duration)))]
    _ = try await call("POST", at: id, ["ban"], body: body, .ban)
  }

  public func unban(_ user: UserID, from id: ChannelID) async throws(ChatError) {
    _ = try await call("DELETE", at: id, ["ban", user.rawValue], .ban)
  }

  // MARK: Typing

  public func setTyping(_ isTyping: Bool, in id: ChannelID) async throws(ChatError) {
    guard state == .connected else { throw ChatError(.network(.offline), operation: .typing, detail: "not connected") }
    let payload: JSONObject = ["channel_url": .string(id.rawValue), "time": .int(clock.now.milliseconds), "req_id": ""]
    try await transmit(SendbirdFrame(isTyping ? "TPST" : "TPEN", payload), .typing)
  }

  public func totalUnread() async throws(ChatError) -> UnreadCount {
    let me = try session(.unread).user.rawValue
    var query = SendbirdQuery()
    query.add("super_mode", "all")
    let json = try await call("GET", ["users", me, "unread_message_count"], query: query, .unread)
    guard let count = json.number("unread_count") else { throw Self.malformed(.unread) }
    return .exact(total(count))
  }
}
