import ChatJSON
import LeanCloudWire

// What changes a conversation that is there, silences and blocks its members, and tells its state.

extension LeanCloudEmulator {
  // MARK: Changing

  func update(_ call: Call, _ conversation: Conversation) {
    guard conversation.kind != .temporary, let asked = call.frame["attr"]?.object else { return fail(4306, to: call) }
    guard conversation.members.contains(call.peer) || conversation.present.contains(call.peer) else {
      return fail(4317, to: call)
    }
    let changed = apply(asked, to: conversation)
    var frame = LeanCloudFrame("conv", "updated")
    frame["cid"] = .string(conversation.id)
    frame["udate"] = .string(LeanCloudID.iso(conversation.updatedAt))
    frame["attrModified"] = .object(changed)
    reply(frame, to: call)
    announceUpdate(asked, changed, conversation, by: call.peer, except: call)
  }

  /// Writes columns, dotted keys too; gives the top-level columns that changed as they are now.
  func apply(_ asked: JSONObject, to conversation: Conversation) -> JSONObject {
    var changed = JSONObject()
    for member in asked {
      let path = member.key.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
      guard let column = path.first, !Self.managedColumns.contains(column) else { continue }
      conversation.columns[column] = Self.setting(member.value, at: path.dropFirst(), in: conversation.columns[column])
      changed[column] = conversation.columns[column] ?? .null
    }
    conversation.updatedAt = max(now, conversation.updatedAt &+ 1)
    return changed
  }

  static func setting(_ value: JSONValue, at path: ArraySlice<String>, in old: JSONValue?) -> JSONValue? {
    guard let key = path.first else { return value["__op"]?.string == "Delete" || value.isNull ? nil : value }
    var object = old?.object ?? JSONObject()
    object[key] = setting(value, at: path.dropFirst(), in: object[key])
    return .object(object)
  }

  func announceUpdate(
    _ asked: JSONObject, _ changed: JSONObject, _ conversation: Conversation, by actor: String, except call: Call?
  ) {
    var frame = LeanCloudFrame("conv", "updated")
    frame["cid"] = .string(conversation.id)
    frame["initBy"] = .string(actor)
    frame["attr"] = .object(asked)
    frame["attrModified"] = .object(changed)
    frame["udate"] = .string(LeanCloudID.iso(conversation.updatedAt))
    frame["serverTs"] = .int(now)
    frame["notificationType"] = 1
    let listeners = conversation.kind == .room ? conversation.present.list : conversation.members.list
    for member in listeners {
      push(frame, to: member, except: Key(member) == Key(actor) ? call?.connection.id : nil)
    }
  }

  func mute(_ call: Call, _ conversation: Conversation, isMuted: Bool) {
    if isMuted { conversation.pushMuted.insert(call.peer) } else { conversation.pushMuted.remove(call.peer) }
    conversation.updatedAt = now
    var frame = LeanCloudFrame("conv", "updated")
    frame["cid"] = .string(conversation.id)
    frame["udate"] = .string(LeanCloudID.iso(now))
    reply(frame, to: call)
  }

  /// Clients that a list of silences or blocks holds, by the guide.
  static func listLimit(of conversation: Conversation) -> Int { conversation.kind == .room ? 10_000 : 500 }

  /// Whether the list of silences holds these too. Those that have run out take no place.
  func holds(silences clients: [String], _ conversation: Conversation) -> Bool {
    let silenced = conversation.silenced.filter { $0.value > now }
    return !limits || clients.count { silenced[Key($0)] == nil } + silenced.count <= Self.listLimit(of: conversation)
  }

  func holds(blocks clients: [String], _ conversation: Conversation) -> Bool {
    let new = clients.count { !conversation.blocked.contains($0) }
    return !limits || new + conversation.blocked.count <= Self.listLimit(of: conversation)
  }

  func updateMemberInfo(_ call: Call, _ conversation: Conversation) {
    guard hasRoles else { return fail(4325, to: call) }
    guard let target = call.frame["info"]?["pid"]?.string ?? call.frame.string("targetClientId"),
      conversation.members.contains(target)
    else { return fail(4317, to: call) }
    guard let role = call.frame["info"]?["role"]?.string, ["Owner", "Manager", "Member"].contains(role) else {
      return fail(4321, to: call)
    }
    let mine = Self.rank(
      conversation.roles[Key(call.peer)]?.role ?? (Key(call.peer) == Key(conversation.creator) ? "Owner" : nil))
    guard mine >= 1, mine >= Self.rank(role) else { return fail(4320, to: call) }
    setRole(role, of: target, in: conversation)
    let info: JSONValue = [
      "pid": .string(target), "role": .string(role),
      "infoId": .string(conversation.roles[Key(target)]?.infoID ?? ""),
    ]
    var frame = LeanCloudFrame("conv", "member-info-updated")
    frame["cid"] = .string(conversation.id)
    frame["info"] = info
    reply(frame, to: call)
    announceRole(info, conversation, by: call.peer)
  }

  func setRole(_ role: String, of client: String, in conversation: Conversation) {
    let info = conversation.roles[Key(client)]?.infoID ?? newObjectID()
    conversation.roles[Key(client)] = (role, info)
  }

  func announceRole(_ info: JSONValue, _ conversation: Conversation, by actor: String) {
    for member in conversation.members.list {
      pushEvent("member-info-changed", conversation, to: member, by: actor, ["info": info])
    }
  }

  // MARK: Silence and block

  func silence(_ call: Call, _ conversation: Conversation, isSilenced: Bool) {
    guard mayModerate(call.peer, conversation) else { return fail(4320, to: call) }
    let targets = call.frame.strings("m")
    if isSilenced, !holds(silences: targets, conversation) { return fail(4561, to: call) }
    setSilenced(isSilenced ? .max : nil, targets, conversation, by: call.peer)
    replyMembers(isSilenced ? "shutup-added" : "shutup-removed", targets, [], conversation, call)
  }

  func setSilenced(_ until: Int64?, _ targets: [String], _ conversation: Conversation, by actor: String) {
    for target in targets { conversation.silenced[Key(target)] = until }
    let isSilenced = until != nil
    for target in targets {
      pushEvent(isSilenced ? "shutuped" : "unshutuped", conversation, to: target, by: actor)
    }
    for member in conversation.members.list {
      pushEvent(
        isSilenced ? "members-shutuped" : "members-unshutuped", conversation, to: member, by: actor,
        ["m": .strings(targets)])
    }
  }

  /// The creator and whoever has a role above member; in a conversation without roles, every member.
  func mayModerate(_ peer: String, _ conversation: Conversation) -> Bool {
    guard conversation.members.contains(peer) || Key(conversation.creator) == Key(peer) else { return false }
    return conversation.roles.isEmpty || Key(conversation.creator) == Key(peer)
      || Self.rank(conversation.roles[Key(peer)]?.role) >= 1
  }

  func querySilenced(_ call: Call, _ conversation: Conversation) {
    let limit = Int(clamping: min(max(call.frame.int("limit") ?? 50, 1), 100))
    let all = conversation.silenced.filter { $0.value > now }.keys.sorted()
    let start = call.frame.string("next").flatMap { next in all.firstIndex { $0 > Key(next) } ?? all.count } ?? 0
    let page = all[start...].prefix(limit).map(\.text)
    var frame = LeanCloudFrame("conv", "shutup-result")
    frame["m"] = .strings(page)
    if start + page.count < all.count { frame["next"] = page.last.map { .string($0) } }
    reply(frame, to: call)
  }

  func checkSilenced(_ call: Call, _ conversation: Conversation) {
    var frame = LeanCloudFrame("conv", "check-result")
    frame["cid"] = .string(conversation.id)
    frame["m"] = .strings(call.frame.strings("m").filter { (conversation.silenced[Key($0)] ?? 0) > now })
    reply(frame, to: call)
  }

  func performBlacklist(_ operation: String, _ call: Call) {
    guard let id = call.frame.string("srcCid"), let conversation = conversation(id) else { return fail(4303, to: call) }
    guard hasBlacklist else { return fail(4544, to: call) }
    if operation == "query" { return queryBlocked(call, conversation) }
    if operation == "check-block" {
      var frame = LeanCloudFrame("blacklist", "check-result")
      frame["srcCid"] = .string(id)
      frame["blockedPids"] = .strings(call.frame.strings("toPids").filter { conversation.blocked.contains($0) })
      return reply(frame, to: call)
    }
    let targets = call.frame.strings("toPids")
    let isBlocking = operation == "block"
    let isValid = isSigned(call.frame) { app, time, nonce in
      LeanCloudSignature.change(
        app: app, client: call.peer, channel: id, members: targets, timestamp: time, nonce: nonce,
        action: isBlocking ? .block : .unblock)
    }
    guard isValid else { return fail(4546, to: call) }
    guard mayModerate(call.peer, conversation) else { return fail(4320, to: call) }
    if isBlocking, !holds(blocks: targets, conversation) { return fail(4543, to: call) }
    setBlocked(isBlocking, targets, conversation, by: call.peer)
    var frame = LeanCloudFrame("blacklist", isBlocking ? "blocked" : "unblocked")
    frame["srcCid"] = .string(id)
    frame["allowedPids"] = .strings(targets)
    reply(frame, to: call)
  }

  func queryBlocked(_ call: Call, _ conversation: Conversation) {
    let limit = Int(clamping: min(max(call.frame.int("limit") ?? 50, 1), 100))
    let all = conversation.blocked.list.sorted { Key($0) < Key($1) }
    let start = call.frame.string("next").flatMap { next in all.firstIndex { Key($0) > Key(next) } ?? all.count } ?? 0
    let page = all[start...].prefix(limit)
    var frame = LeanCloudFrame("blacklist", "query-result")
    frame["srcCid"] = .string(conversation.id)
    frame["blockedPids"] = .strings(page)
    if start + page.count < all.count { frame["next"] = page.last.map { .string($0) } }
    reply(frame, to: call)
  }

  func setBlocked(_ isBlocked: Bool, _ targets: [String], _ conversation: Conversation, by actor: String) {
    for target in targets {
      if isBlocked { conversation.blocked.insert(target) } else { conversation.blocked.remove(target) }
      pushEvent(isBlocked ? "blocked" : "unblocked", conversation, to: target, by: actor)
    }
    for member in conversation.members.list {
      pushEvent(
        isBlocked ? "members-blocked" : "members-unblocked", conversation, to: member, by: actor,
        ["m": .strings(targets)])
    }
    guard isBlocked else { return }
    let gone = targets.filter { conversation.members.contains($0) }
    for member in gone { removeMember(member, from: conversation) }
    announceLeave(gone, conversation, by: actor)
  }

  // MARK: Reading

  func query(_ call: Call) {
    var frame = LeanCloudFrame("conv", "results")
    let flag = call.frame.int("flag") ?? 0
    let found: [Conversation]
    if case let ids = call.frame.strings("tempConvIds"), !ids.isEmpty {
      found = ids.compactMap { conversation($0) }.filter { ($0.expiresAt ?? .max) > now }
    } else {
      let limit = Int(clamping: min(max(call.frame.int("limit") ?? 10, 1), 1000))
      let skip = Int(clamping: max(call.frame.int("skip") ?? 0, 0))
      guard
        let all = find(
          where: call.frame["where"]?.object ?? JSONObject(), order: call.frame.string("sort") ?? "-lm",
          viewer: call.peer)
      else { return fail(4310, "where cannot be read", to: call) }
      found = Array(all.dropFirst(skip).prefix(limit))
    }
    frame["results"] = .array(
      found.map { conversation in
        .object(conversation.object(compact: flag & 1 != 0, withLastMessage: flag & 2 != 0, viewer: call.peer))
      })
    reply(frame, to: call)
  }

  func maximumRead(_ call: Call, _ conversation: Conversation) {
    guard conversation.members.contains(call.peer) else { return fail(4317, to: call) }
    var frame = LeanCloudFrame("conv", "max-read")
    frame["cid"] = .string(conversation.id)
    let others = conversation.members.list.filter { Key($0) != Key(call.peer) }
    func read(_ client: String) -> Int64 { conversation.marks[Key(client)]?.read?.timestamp ?? 0 }
    func delivered(_ client: String) -> Int64 {
      max(conversation.marks[Key(client)]?.delivered?.timestamp ?? 0, read(client))
    }
    if call.frame.bool("queryAllMembers") == true {
      frame["maxReadTuples"] = .array(
        others.map {
          [
            "pid": .string($0), "maxAckTimestamp": .int(delivered($0)), "maxReadTimestamp": .int(read($0)),
          ]
        })
    } else {
      let targets = call.frame.string("targetClientId").map { [$0] } ?? others
      frame["maxReadTimestamp"] = .int(targets.map(read).max() ?? 0)
      frame["maxAckTimestamp"] = .int(targets.map(delivered).max() ?? 0)
    }
    reply(frame, to: call)
  }
}
