import ChatJSON
import LeanCloudWire
import UnifiedChat

extension LeanCloudAdapter {
  // MARK: Creating

  public func createChannel(_ draft: ChannelDraft) async throws(ChatError) -> Channel {
    let user = try requireUser(.createChannel)
    let others = try otherMembers(draft, user)
    var attributes = LeanCloudConversation.columns(customData: draft.customData)
    attributes["name"] = draft.name.map { .string($0) }
    attributes["coverURL"] = draft.coverURL.map { .string($0) }
    var members = (others + [user]).map(\.rawValue)
    members.sort { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    var fields: JSONObject = ["m": .strings(members)]
    if !attributes.isEmpty { fields["attr"] = .object(attributes) }
    switch draft.kind {
    case .direct: fields["unique"] = true
    case .group: fields["unique"] = .bool(draft.isDistinct)
    case .open: fields["transient"] = true
    case .temporary:
      fields["tempConv"] = true
      fields["unique"] = .bool(draft.isDistinct)
    case .service, .unknown:
      throw ChatError(
        .invalidArgument(field: "kind"), operation: .createChannel, detail: "clients cannot create such a channel")
    }
    let signed = try await sign(
      "start", [rest.appID, user.rawValue, members.joined(separator: ":")], for: user, .createChannel)
    add(signed, to: &fields)
    let id = try await start(fields)
    if draft.kind == .open { room = id }
    return try await channel(id, .createChannel)
  }

  private func otherMembers(_ draft: ChannelDraft, _ user: UserID) throws(ChatError) -> [UserID] {
    var others: [UserID] = []
    for member in draft.members where member != user && !others.contains(member) { others.append(member) }
    try LeanCloudLimits.check(others, .createChannel)
    if draft.kind == .direct, others.count != 1 {
      throw ChatError(
        .invalidArgument(field: "members"), operation: .createChannel, detail: "a direct channel has one other member")
    }
    return others
  }

  private func start(_ fields: JSONObject) async throws(ChatError) -> ChannelID {
    echoes.startsInFlight += 1
    defer { echoes.startsInFlight -= 1 }
    let started = try await ask("conv", "start", fields, .createChannel)
    guard let id = started.string("cid") else {
      throw ChatError(.protocolViolation, operation: .createChannel, detail: "started without cid")
    }
    echoes.ownJoins.insert(ChannelID(id))
    return ChannelID(id)
  }

  // MARK: Reading

  public func channel(_ id: ChannelID) async throws(ChatError) -> Channel { try await channel(id, .fetchChannel) }

  func channel(_ id: ChannelID, _ operation: ChatError.Operation) async throws(ChatError) -> Channel {
    let user = try requireUser(operation)
    let object = try await object(of: id, operation)
    let members = object["m"]?.array?.compactMap(\.string).map { UserID($0) }
    if let members, !members.contains(user) {
      throw ChatError(.permission(), operation: operation, detail: "this user is no member of \(id)")
    }
    guard let read = LeanCloudConversation.channel(object, me: user) else {
      throw ChatError(.protocolViolation, operation: operation, detail: "a conversation without objectId")
    }
    return seen(read.channel, object, user)
  }

  func object(of id: ChannelID, _ operation: ChatError.Operation) async throws(ChatError) -> JSONObject {
    var fields: JSONObject = ["flag": 2]
    if id.rawValue.hasPrefix("_tmp:") {
      fields["tempConvIds"] = .strings([id.rawValue])
    } else {
      fields["where"] = ["objectId": .string(id.rawValue)]
    }
    let answer = try await ask("conv", "query", fields, operation)
    // An unknown id is an empty list, not an error.
    guard let object = answer["results"]?[0]?.object else {
      throw ChatError(.notFound, operation: operation, detail: "no conversation \(id)")
    }
    return object
  }

  /// With this user's own view: last message, unread number, role by creation.
  func seen(_ channel: Channel, _ object: JSONObject, _ user: UserID) -> Channel {
    var channel = channel
    channel.lastMessage = LeanCloudMapping.lastMessage(of: object, in: channel.id)
    count(&channel)
    let isMember = object["m"]?.array?.contains { $0.string.map { UserID($0) } == user } ?? (room == channel.id)
    if isMember { channel.myState = .joined }
    return channel
  }

  // MARK: Changing

  public func updateChannel(_ id: ChannelID, _ changes: ChannelChanges) async throws(ChatError) -> Channel {
    var attributes = JSONObject()
    if let data = changes.customData {
      attributes = LeanCloudConversation.columns(customData: data)
    }
    attributes["name"] = changes.name.map { .string($0) }
    attributes["coverURL"] = changes.coverURL.map { .string($0) }
    if !attributes.isEmpty {
      _ = try await ask("conv", "update", ["cid": .string(id.rawValue), "attr": .object(attributes)], .updateChannel)
    }
    return try await channel(id, .updateChannel)
  }

  public func setMetadata(_ values: [String: String?], of id: ChannelID) async throws(ChatError) {
    var attributes = JSONObject()
    for (key, value) in values.sorted(by: { $0.key < $1.key }) {
      guard !key.isEmpty, !key.contains("."), !key.contains("$") else {
        throw ChatError(
          .invalidArgument(field: "metadata"), operation: .updateChannel,
          detail: "a key holds no dot and no dollar sign")
      }
      attributes["metadata.\(key)"] = value.map { .string($0) } ?? ["__op": "Delete"]
    }
    _ = try await ask("conv", "update", ["cid": .string(id.rawValue), "attr": .object(attributes)], .updateChannel)
  }

  /// All or none; the service has no level between.
  public func setNotificationLevel(_ level: NotificationLevel, of id: ChannelID) async throws(ChatError) {
    guard level != .mentions else {
      throw ChatError(
        .invalidArgument(field: "level"), operation: .updateChannel, detail: "a channel is muted or not")
    }
    _ = try await ask("conv", level == .none ? "mute" : "unmute", ["cid": .string(id.rawValue)], .updateChannel)
  }

  // MARK: Members

  public func join(_ id: ChannelID) async throws(ChatError) -> Channel {
    let user = try requireUser(.join)
    var fields: JSONObject = ["cid": .string(id.rawValue), "m": .strings([user.rawValue])]
    add(try await signChange("invite", id, [user], .join), to: &fields)
    echoes.ownJoins.insert(id)
    echoes.ownLeaves.remove(id)
    do { _ = try await ask("conv", "add", fields, .join) } catch {
      echoes.ownJoins.remove(id)
      throw error
    }
    var object = try await self.object(of: id, .join)
    if object["tr"]?.bool == true { room = id }
    guard let read = LeanCloudConversation.channel(object, me: user) else {
      throw ChatError(.protocolViolation, operation: .join, detail: "a conversation without objectId")
    }
    object["m"] = object["m"] ?? .strings([user.rawValue])
    return seen(read.channel, object, user)
  }

  func signChange(
    _ action: String, _ id: ChannelID, _ users: [UserID], _ operation: ChatError.Operation
  ) async throws(ChatError) -> SignedOperation? {
    let user = try requireUser(operation)
    let members = LeanCloudSignature.joined(users.map(\.rawValue))
    return try await sign(action, [rest.appID, user.rawValue, id.rawValue, members], for: user, operation)
  }

  public func leave(_ id: ChannelID) async throws(ChatError) {
    let user = try requireUser(.leave)
    echoes.ownLeaves.insert(id)
    echoes.ownJoins.remove(id)
    // Before the answer: an invitation can overtake the task that takes it.
    let wasIn = echoes.joined.remove(id) != nil
    do {
      _ = try await ask("conv", "remove", ["cid": .string(id.rawValue), "m": .strings([user.rawValue])], .leave)
    } catch {
      echoes.ownLeaves.remove(id)
      if wasIn { echoes.joined.insert(id) }
      throw error
    }
    if room == id { room = nil }
  }

  public func invite(_ users: [UserID], to id: ChannelID) async throws(ChatError) {
    try LeanCloudLimits.check(users, .invite)
    var fields: JSONObject = ["cid": .string(id.rawValue), "m": .strings(users.map(\.rawValue))]
    add(try await signChange("invite", id, users, .invite), to: &fields)
    try Self.requireAll(try await ask("conv", "add", fields, .invite), .invite)
  }

  public func removeMembers(_ users: [UserID], from id: ChannelID) async throws(ChatError) {
    var fields: JSONObject = ["cid": .string(id.rawValue), "m": .strings(users.map(\.rawValue))]
    add(try await signChange("kick", id, users, .removeMember), to: &fields)
    try Self.requireAll(try await ask("conv", "remove", fields, .removeMember), .removeMember)
  }

  /// A part that failed fails the call, with the code of the first failure.
  private static func requireAll(_ answer: LeanCloudFrame, _ operation: ChatError.Operation) throws(ChatError) {
    guard let failed = answer["failedPids"]?[0], let code = failed["code"]?.int else { return }
    throw LeanCloudErrors.error(
      code: Int(clamping: code), reason: failed["reason"]?.string, operation: operation,
      detail: "\(failed["pids"]?.array?.count ?? 0) of the users were refused")
  }

  /// The stored list, whole: the service gives it in one piece. Roles and marks are asked for beside it.
  public func members(of id: ChannelID, limit: Int, page: PageToken?) async throws(ChatError) -> Page<Member> {
    let user = try requireUser(.listMembers)
    let object = try await object(of: id, .listMembers)
    let ids = (object["m"]?.array ?? []).compactMap(\.string).map { UserID($0) }
    guard object["m"] == nil || ids.contains(user) else {
      throw ChatError(.permission(), operation: .listMembers, detail: "this user is no member of \(id)")
    }
    let sorted = ids.sorted()
    let start =
      page.map { token in
        sorted.firstIndex {
          $0.rawValue.utf8.lexicographicallyPrecedes(token.rawValue.utf8) == false && $0 != UserID(token.rawValue)
        } ?? sorted.count
      } ?? 0
    let part = sorted[start...].prefix(max(1, limit))
    let marks = try await marks(in: id)
    let roles = try await roles(in: id)
    let silenced = try await silenced(in: id)
    // The vendor's clients take whoever made the conversation for its owner, until a role names another one.
    let creator = roles.values.contains(.owner) ? nil : object["c"]?.string.map { UserID($0) }
    let members = part.map { id in
      let usual: MemberRole = creator == id ? .owner : .member
      var member = Member(user: User(id: id), role: roles[id] ?? usual)
      member.isMuted = silenced.contains(id)
      member.readPosition = marks[id]?.read
      member.deliveredPosition = marks[id]?.delivered
      return member
    }
    let hasMore = start + part.count < sorted.count
    return Page(items: members, next: hasMore ? part.last.map { PageToken($0.rawValue) } : nil)
  }

  private func marks(
    in id: ChannelID
  ) async throws(ChatError) -> [UserID: (read: MessagePosition?, delivered: MessagePosition?)] {
    let answer = try await ask(
      "conv", "max-read", ["cid": .string(id.rawValue), "queryAllMembers": true], .listMembers)
    var marks: [UserID: (read: MessagePosition?, delivered: MessagePosition?)] = [:]
    for tuple in answer["maxReadTuples"]?.array ?? [] {
      guard let user = tuple["pid"]?.string else { continue }
      marks[UserID(user)] = (
        LeanCloudMapping.watermark(tuple["maxReadTimestamp"]?.int),
        LeanCloudMapping.watermark(tuple["maxAckTimestamp"]?.int)
      )
    }
    return marks
  }

  private func silenced(in id: ChannelID) async throws(ChatError) -> Set<UserID> {
    var found: Set<UserID> = []
    var walk = PageWalk()
    var next = ""
    repeat {
      try walk.advance(to: next, .listMembers)
      var fields: JSONObject = ["cid": .string(id.rawValue), "limit": 100]
      if !next.isEmpty { fields["next"] = .string(next) }
      let answer = try await ask("conv", "query-shutup", fields, .listMembers)
      found.formUnion(answer.strings("m").map { UserID($0) })
      next = answer.string("next") ?? ""
    } while !next.isEmpty
    return found
  }

  /// Roles stand in a class of the storage service, readable with the session's token.
  private func roles(in id: ChannelID) async throws(ChatError) -> [UserID: MemberRole] {
    guard let token = await line.token, rest.appKey != nil else { return [:] }
    let condition: JSONValue = ["cid": .string(id.rawValue)]
    let user = try requireUser(.listMembers)
    let answer: JSONValue
    do {
      answer = try await rest.call(
        "GET", "/1.1/classes/_ConversationMemberInfo",
        query: [("client_id", user.rawValue), ("where", condition.text()), ("limit", "1000")], key: .app,
        headers: [.init("X-LC-IM-Session-Token", token)], operation: .listMembers)
    } catch {
      // An app without roles has no such class, and one without the feature does not let clients read it.
      if error.kind == .notFound || error.kind == .permission() { return [:] }
      throw error
    }
    var roles: [UserID: MemberRole] = [:]
    for row in answer["results"]?.array ?? [] {
      if let client = row["clientId"]?.string, let role = row["role"]?.string {
        roles[UserID(client)] = LeanCloudConversation.role(named: role)
      }
    }
    return roles
  }

  public func setRole(_ role: MemberRole, of user: UserID, in id: ChannelID) async throws(ChatError) {
    guard let name = LeanCloudConversation.roleName(role) else {
      throw ChatError(.invalidArgument(field: "role"), operation: .setRole, detail: "no role of the service")
    }
    _ = try await ask(
      "conv", "member-info-update",
      [
        "cid": .string(id.rawValue), "targetClientId": .string(user.rawValue),
        "info": ["pid": .string(user.rawValue), "role": .string(name)],
      ], .setRole)
  }

  /// A client silences without end; a time needs the admin API.
  public func mute(_ user: UserID, in id: ChannelID, for duration: Duration?) async throws(ChatError) {
    guard duration == nil else {
      throw ChatError(
        .invalidArgument(field: "duration"), operation: .mute, detail: "clients silence without end only")
    }
    try Self.requireAll(
      try await ask("conv", "add-shutup", ["cid": .string(id.rawValue), "m": .strings([user.rawValue])], .mute), .mute)
  }

  public func unmute(_ user: UserID, in id: ChannelID) async throws(ChatError) {
    try Self.requireAll(
      try await ask("conv", "remove-shutup", ["cid": .string(id.rawValue), "m": .strings([user.rawValue])], .mute),
      .mute)
  }

  public func ban(_ user: UserID, from id: ChannelID, for duration: Duration?) async throws(ChatError) {
    guard duration == nil else {
      throw ChatError(.invalidArgument(field: "duration"), operation: .ban, detail: "clients ban without end only")
    }
    try await changeBlacklist("block", user, id)
  }

  public func unban(_ user: UserID, from id: ChannelID) async throws(ChatError) {
    try await changeBlacklist("unblock", user, id)
  }

  private func changeBlacklist(_ name: String, _ user: UserID, _ id: ChannelID) async throws(ChatError) {
    var fields: JSONObject = ["srcCid": .string(id.rawValue), "toPids": .strings([user.rawValue])]
    add(try await signChange(name, id, [user], .ban), to: &fields)
    try Self.requireAll(try await ask("blacklist", name, fields, .ban), .ban)
  }

  // MARK: Typing

  public func setTyping(_ isTyping: Bool, in id: ChannelID) async throws(ChatError) {
    _ = try await ask(
      "direct", nil,
      [
        "cid": .string(id.rawValue), "msg": .string(LeanCloudMapping.typingBody(isTyping)), "transient": true,
      ], .typing)
  }
}
