import ChatCrypto
import ChatJSON
import LeanCloudWire

extension LeanCloudEmulator {
  static let memberLimit = 500
  static let temporaryMemberLimit = 10

  func performConversation(_ operation: String, _ call: Call) {
    switch operation {
    case "start": return start(call)
    case "query": return query(call)
    default: break
    }
    guard let id = call.frame.string("cid") ?? call.frame.strings("cids").first, let conversation = conversation(id)
    else { return fail(4303, to: call) }
    if let end = conversation.expiresAt, end <= now { return fail(4323, to: call) }
    switch operation {
    case "add": add(call, conversation)
    case "remove": remove(call, conversation)
    case "count": countMembers(call, conversation)
    case "update": update(call, conversation)
    case "mute", "unmute": mute(call, conversation, isMuted: operation == "mute")
    case "max-read": maximumRead(call, conversation)
    case "is-member": isMember(call)
    case "members": roomMembers(call, conversation)
    case "member-info-update": updateMemberInfo(call, conversation)
    case "add-shutup", "remove-shutup": silence(call, conversation, isSilenced: operation == "add-shutup")
    case "query-shutup": querySilenced(call, conversation)
    case "check-shutup": checkSilenced(call, conversation)
    default: fail(4114, to: call)
    }
  }

  // MARK: Creating

  private func start(_ call: Call) {
    let others = OrderedKeys(call.frame.strings("m")).list
    let isValid = isSigned(call.frame) { app, time, nonce in
      LeanCloudSignature.start(app: app, client: call.peer, members: others, timestamp: time, nonce: nonce)
    }
    guard isValid else { return fail(4302, to: call) }
    guard others.allSatisfy(Self.isClientID) else { return fail(4103, "a member id is malformed", to: call) }
    let kind: Conversation.Kind =
      call.frame.bool("tempConv") == true ? .temporary : call.frame.bool("transient") == true ? .room : .normal
    var members = OrderedKeys(others)
    members.insert(call.peer)
    let limit = kind == .temporary ? Self.temporaryMemberLimit : Self.memberLimit
    if kind != .room, members.count > limit { return fail(4304, to: call) }
    let conversation: Conversation
    var isNew = true
    if kind != .room, call.frame.bool("unique") == true, let found = uniqueConversation(of: members, kind) {
      conversation = found
      isNew = false
    } else {
      conversation = make(kind, members: members, creator: call.peer, columns: call.frame["attr"]?.object, call.frame)
    }
    var frame = LeanCloudFrame("conv", "started")
    frame["cid"] = .string(conversation.id)
    frame["cdate"] = .string(LeanCloudID.iso(conversation.createdAt))
    frame["uniqueId"] = conversation.uniqueID.map { .string($0) }
    if kind == .temporary { frame["tempConvTTL"] = conversation.ttl.map { .int($0) } }
    reply(frame, to: call)
    if kind == .room { return enter(conversation.id, call.peer, call.connection) }
    if isNew { announceStart(conversation, by: call.peer) }
  }

  /// A temporary one is unique among the temporary ones, as long as it lives.
  func uniqueConversation(of members: OrderedKeys, _ kind: Conversation.Kind = .normal) -> Conversation? {
    uniqueConversations[Key(uniqueID(of: members, kind))].flatMap { conversation($0) }
      .flatMap { ($0.expiresAt ?? .max) > now ? $0 : nil }
  }

  func uniqueID(of members: OrderedKeys, _ kind: Conversation.Kind = .normal) -> String {
    let digest = Hex.encode(Digest.md5(Array(LeanCloudSignature.joined(members.list).utf8)))
    return kind == .temporary ? "_tmp:" + digest : digest
  }

  private func make(
    _ kind: Conversation.Kind, members: OrderedKeys, creator: String, columns: JSONObject?, _ frame: LeanCloudFrame
  ) -> Conversation {
    let id = kind == .temporary ? "_tmp:\(Base64.urlEncode(randomBytes(16)))" : newObjectID()
    let conversation = Conversation(id: id, kind: kind, createdAt: now)
    conversation.creator = creator
    conversation.columns = Self.writable(columns ?? JSONObject())
    if kind != .room {
      conversation.members = members
      for member in members.list { conversation.joinedAt[Key(member)] = now }
    }
    if kind == .temporary {
      let ttl = min(max(frame.int("tempConvTTL") ?? 86_400, 1), 30 * 86_400)
      conversation.ttl = ttl
      conversation.expiresAt = now &+ ttl &* 1000
    }
    if kind != .room, frame.bool("unique") == true { makeUnique(conversation) }
    add(conversation)
    return conversation
  }

  func makeUnique(_ conversation: Conversation) {
    conversation.isUnique = true
    let id = uniqueID(of: conversation.members, conversation.kind)
    conversation.uniqueID = id
    uniqueConversations[Key(id)] = conversation.id
  }

  private func announceStart(_ conversation: Conversation, by creator: String) {
    for member in conversation.members.list where Key(member) != Key(creator) {
      pushEvent("joined", conversation, to: member, by: creator)
    }
    for member in conversation.members.list {
      pushEvent("members-joined", conversation, to: member, by: creator, ["m": .strings(conversation.members.list)])
    }
  }

  /// Columns that a client may write: what the server manages is left out.
  static func writable(_ columns: JSONObject) -> JSONObject {
    JSONObject(columns.members.filter { !managedColumns.contains($0.key) })
  }

  static let managedColumns: Set<String> = [
    "objectId", "c", "m", "mu", "lm", "createdAt", "updatedAt", "unique", "uniqueId", "tr", "sys", "temp", "ttl",
    "conv_type",
  ]

  // MARK: Members

  private func add(_ call: Call, _ conversation: Conversation) {
    let targets = OrderedKeys(call.frame.strings("m")).list
    let isValid = isSigned(call.frame) { app, time, nonce in
      LeanCloudSignature.change(
        app: app, client: call.peer, channel: conversation.id, members: targets, timestamp: time, nonce: nonce,
        action: .invite)
    }
    guard isValid else { return fail(4302, to: call) }
    let joinsAlone = targets.map(Key.init) == [Key(call.peer)]
    switch conversation.kind {
    case .room:
      guard joinsAlone else { return fail(4317, to: call) }
      enter(conversation.id, call.peer, call.connection)
      return replyMembers("added", targets, [], conversation, call)
    case .service:
      guard joinsAlone else { return fail(4308, to: call) }
      addMember(call.peer, to: conversation)
      return replyMembers("added", targets, [], conversation, call)
    default: break
    }
    guard joinsAlone || conversation.members.contains(call.peer) else { return fail(4317, to: call) }
    func isBlocked(_ client: String) -> Bool {
      conversation.blocked.contains(client) || blockedByClient[Key(client)]?.contains(conversation.id) == true
    }
    let blocked = targets.filter(isBlocked)
    let allowed = targets.filter { !isBlocked($0) && Self.isClientID($0) }
    if allowed.isEmpty || (!blocked.isEmpty && !call.session.has(.partialResults)) { return fail(4548, to: call) }
    let new = allowed.filter { !conversation.members.contains($0) }
    let limit = conversation.kind == .temporary ? Self.temporaryMemberLimit : Self.memberLimit
    guard conversation.members.count + new.count <= limit else { return fail(4304, to: call) }
    let before = conversation.members.list
    for member in new { addMember(member, to: conversation) }
    conversation.updatedAt = now
    replyMembers("added", allowed, blocked, conversation, call)
    announceJoin(new, conversation, by: call.peer, to: before)
  }

  func announceJoin(_ new: [String], _ conversation: Conversation, by actor: String, to before: [String]) {
    guard !new.isEmpty else { return }
    for member in new where Key(member) != Key(actor) { pushEvent("joined", conversation, to: member, by: actor) }
    let isSelf = new.map(Key.init) == [Key(actor)]
    for member in before + (isSelf ? [actor] : []) {
      pushEvent("members-joined", conversation, to: member, by: actor, ["m": .strings(new)])
    }
  }

  private func remove(_ call: Call, _ conversation: Conversation) {
    let targets = OrderedKeys(call.frame.strings("m")).list
    let leavesAlone = targets.map(Key.init) == [Key(call.peer)]
    if !leavesAlone {
      let isValid = isSigned(call.frame) { app, time, nonce in
        LeanCloudSignature.change(
          app: app, client: call.peer, channel: conversation.id, members: targets, timestamp: time, nonce: nonce,
          action: .kick)
      }
      guard isValid else { return fail(4302, to: call) }
    }
    if conversation.kind == .room {
      leaveRoom(call.peer, call.connection)
      return replyMembers("removed", targets, [], conversation, call)
    }
    guard conversation.members.contains(call.peer) else { return fail(4317, to: call) }
    let rank = Self.rank(conversation.roles[Key(call.peer)]?.role)
    if !leavesAlone, !conversation.roles.isEmpty,
      targets.contains(where: { Self.rank(conversation.roles[Key($0)]?.role) > rank })
    {
      return fail(4320, to: call)
    }
    let gone = targets.filter { conversation.members.contains($0) }
    for member in gone { removeMember(member, from: conversation) }
    conversation.updatedAt = now
    replyMembers("removed", gone, [], conversation, call)
    announceLeave(gone, conversation, by: call.peer)
  }

  func announceLeave(_ gone: [String], _ conversation: Conversation, by actor: String) {
    guard !gone.isEmpty else { return }
    for member in gone where Key(member) != Key(actor) { pushEvent("left", conversation, to: member, by: actor) }
    let isSelf = gone.map(Key.init) == [Key(actor)]
    for member in conversation.members.list + (isSelf ? [actor] : []) {
      pushEvent("members-left", conversation, to: member, by: actor, ["m": .strings(gone)])
    }
  }

  static func rank(_ role: String?) -> Int {
    switch role {
    case "Owner": 2
    case "Manager": 1
    default: 0
    }
  }

  func replyMembers(
    _ operation: String, _ allowed: [String], _ failed: [String], _ conversation: Conversation, _ call: Call
  ) {
    var frame = LeanCloudFrame("conv", operation)
    frame["cid"] = .string(conversation.id)
    frame["allowedPids"] = .strings(allowed)
    if !failed.isEmpty {
      frame["failedPids"] = [["code": 4548, "reason": "BLOCKED_BY_CONV", "pids": .strings(failed)]]
    }
    frame["udate"] = .string(LeanCloudID.iso(conversation.updatedAt))
    reply(frame, to: call)
  }

  private func countMembers(_ call: Call, _ conversation: Conversation) {
    var frame = LeanCloudFrame("conv", "result")
    frame["cid"] = .string(conversation.id)
    frame["count"] = .int(Int64(conversation.kind == .room ? conversation.present.count : conversation.members.count))
    reply(frame, to: call)
  }

  private func isMember(_ call: Call) {
    let ids = call.frame.string("cid").map { [$0] } ?? call.frame.strings("cids")
    var frame = LeanCloudFrame("conv", "result")
    frame["results"] = .array(
      ids.map { id in
        guard let conversation = conversation(id) else { return false }
        return .bool(conversation.members.contains(call.peer) || conversation.present.contains(call.peer))
      })
    reply(frame, to: call)
  }

  private func roomMembers(_ call: Call, _ conversation: Conversation) {
    var frame = LeanCloudFrame("conv", "results")
    frame["cid"] = .string(conversation.id)
    let list = conversation.kind == .room ? conversation.present.list : conversation.members.list
    frame["m"] = .strings(list.prefix(50))
    reply(frame, to: call)
  }

  // MARK: Rooms

  /// One room for each login: entering leaves the one before.
  func enter(_ room: String, _ peer: String, _ connection: Connection) {
    guard let conversation = conversation(room), conversation.kind == .room,
      let index = connection.index(of: peer)
    else { return }
    if connection.sessions[index].room != room { leaveRoom(peer, connection) }
    connection.sessions[index].room = room
    conversation.present.insert(peer)
  }

  func leaveRoom(_ peer: String, _ connection: Connection) {
    guard let index = connection.index(of: peer), let room = connection.sessions[index].room else { return }
    connection.sessions[index].room = nil
    let elsewhere = (online[Key(peer)] ?? []).contains { id in
      guard let other = connections[id], let index = other.index(of: peer) else { return false }
      return other.sessions[index].room == room
    }
    if !elsewhere { conversation(room)?.present.remove(peer) }
  }
}
