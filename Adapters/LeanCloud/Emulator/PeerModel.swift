import ChatJSON
import LeanCloudWire

// The 2014 model: peers that write to peers, and groups. It shares sockets, storage and history with the current one
// and nothing else: the two do not see one another's messages.

extension LeanCloudEmulator {
  static let firstModelFrameBytes = 5000

  func directToPeers(_ call: Call) {
    let frame = call.frame
    let isTransient = frame.bool("transient") ?? false
    guard let data = frame.string("msg") else { return fail(4114, to: call) }
    var posting = Posting(
      from: call.peer, data: data, isTransient: isTransient, wantsReceipt: frame.bool("r") ?? false,
      except: call.connection)
    if let id = frame.string("roomId") {
      guard let room = conversation(id), room.kind == .group else { return fail(4401, to: call) }
      guard room.members.contains(call.peer) else { return fail(4317, to: call) }
      return acknowledgeToSender(post(posting, to: room), call, isTransient)
    }
    let receivers = frame.strings("toPeerIds")
    guard !receivers.isEmpty, receivers.allSatisfy(Self.isClientID) else { return fail(4401, to: call) }
    if needsSignature, !receivers.allSatisfy({ call.session.watched.contains(Key($0)) }) { return fail(4401, to: call) }
    posting.copiesToSender = true
    var last: StoredMessage?
    for receiver in receivers { last = post(posting, to: pair(call.peer, receiver)) }
    if let last { acknowledgeToSender(last, call, isTransient) }
  }

  private func acknowledgeToSender(_ message: StoredMessage, _ call: Call, _ isTransient: Bool) {
    if isTransient { return }
    var ack = LeanCloudFrame("ack")
    ack["uid"] = .string(message.id)
    ack["t"] = .int(message.timestamp)
    reply(ack, to: call)
  }

  /// The conversation of two peers, made when they first write.
  func pair(_ one: String, _ other: String) -> Conversation {
    let id = LeanCloudID.pair(one, other)
    if let found = conversation(id) { return found }
    let pair = Conversation(id: id, kind: .pair, createdAt: now)
    pair.members = OrderedKeys([one, other])
    add(pair)
    return pair
  }

  func acknowledgeFirstModel(_ ids: [String], _ call: Call) {
    let wanted = Set(ids.map(Key.init))
    undelivered[Key(call.peer)]?.removeAll { wanted.contains(Key($0.id)) }
    for key in conversationsOfClient[Key(call.peer)] ?? [] {
      guard let conversation = conversations[key], conversation.kind.isFirstModel else { continue }
      for id in ids {
        guard let index = conversation.index(of: id) else { continue }
        let message = conversation.messages[index]
        conversation.messages[index].ackAt = message.ackAt ?? now
        guard message.wantsReceipt, Key(message.from) != Key(call.peer) else { continue }
        var frame = LeanCloudFrame("rcp")
        frame["id"] = .string(message.id)
        frame["t"] = .int(message.timestamp)
        push(frame, to: message.from) { session, _ in session.isFirstModel }
      }
    }
  }

  // MARK: Groups

  func performRoom(_ operation: String, _ call: Call) {
    if operation == "join" { return joinRoom(call) }
    guard let id = call.frame.string("roomId"), let room = conversation(id), room.kind == .group else {
      return fail(4401, to: call)
    }
    guard room.members.contains(call.peer) else { return fail(4317, to: call) }
    switch operation {
    case "leave":
      removeMember(call.peer, from: room)
      replyRoom("left", room, [], call)
      tell(room, "members-left", [call.peer], except: nil)
    case "invite": invite(call, room)
    case "kick": kick(call, room)
    default: fail(4114, to: call)
    }
  }

  private func joinRoom(_ call: Call) {
    let asked = call.frame.string("roomId")
    let isValid = isSigned(call.frame) { app, time, nonce in
      LeanCloudSignature.change(
        app: app, client: call.peer, channel: asked ?? "", members: [], timestamp: time, nonce: nonce, action: .join)
    }
    guard isValid else { return fail(4302, to: call) }
    let room: Conversation
    if let asked {
      guard let found = conversation(asked), found.kind == .group else { return fail(4401, to: call) }
      room = found
    } else {
      room = Conversation(id: newObjectID(), kind: .group, createdAt: now)
      room.creator = call.peer
      room.isTransientGroup = call.frame.bool("transient") ?? false
      add(room)
    }
    guard room.members.count < Self.memberLimit || room.isTransientGroup else { return fail(4304, to: call) }
    let isNew = !room.members.contains(call.peer)
    addMember(call.peer, to: room)
    replyRoom("joined", room, [], call)
    if isNew { tell(room, "members-joined", [call.peer], except: call.peer) }
  }

  private func invite(_ call: Call, _ room: Conversation) {
    let targets = OrderedKeys(call.frame.strings("roomPeerIds")).list.filter(Self.isClientID)
    guard isSignedRoom(call, room, targets, .invite) else { return fail(4302, to: call) }
    let new = targets.filter { !room.members.contains($0) }
    guard room.members.count + new.count <= Self.memberLimit || room.isTransientGroup else {
      return fail(4304, to: call)
    }
    for member in new { addMember(member, to: room) }
    replyRoom("invited", room, targets, call)
    for member in new {
      var frame = LeanCloudFrame("room", "joined")
      frame["roomId"] = .string(room.id)
      frame["byPeerId"] = .string(call.peer)
      push(frame, to: member) { session, _ in session.isFirstModel }
    }
    if !new.isEmpty { tell(room, "members-joined", new, except: nil) }
  }

  private func kick(_ call: Call, _ room: Conversation) {
    let targets = OrderedKeys(call.frame.strings("roomPeerIds")).list
    guard isSignedRoom(call, room, targets, .kick) else { return fail(4302, to: call) }
    let gone = targets.filter { room.members.contains($0) }
    for member in gone { removeMember(member, from: room) }
    replyRoom("kicked", room, gone, call)
    for member in gone {
      var frame = LeanCloudFrame("room", "left")
      frame["roomId"] = .string(room.id)
      frame["byPeerId"] = .string(call.peer)
      push(frame, to: member) { session, _ in session.isFirstModel }
    }
    if !gone.isEmpty { tell(room, "members-left", gone, except: nil) }
  }

  private func isSignedRoom(
    _ call: Call, _ room: Conversation, _ members: [String], _ action: LeanCloudSignature.Action
  ) -> Bool {
    isSigned(call.frame) { app, time, nonce in
      LeanCloudSignature.change(
        app: app, client: call.peer, channel: room.id, members: members, timestamp: time, nonce: nonce, action: action)
    }
  }

  private func replyRoom(_ operation: String, _ room: Conversation, _ peers: [String], _ call: Call) {
    var frame = LeanCloudFrame("room", operation)
    frame["roomId"] = .string(room.id)
    frame["byPeerId"] = .string(call.peer)
    if !peers.isEmpty { frame["roomPeerIds"] = .strings(peers) }
    reply(frame, to: call)
  }

  private func tell(_ room: Conversation, _ operation: String, _ peers: [String], except: String?) {
    var frame = LeanCloudFrame("room", operation)
    frame["roomId"] = .string(room.id)
    frame["roomPeerIds"] = .strings(peers)
    for member in room.members.list where except.map(Key.init) != Key(member) {
      push(frame, to: member) { session, _ in session.isFirstModel }
    }
  }
}
