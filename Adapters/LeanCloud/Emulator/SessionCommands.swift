import ChatCrypto
import ChatJSON
import ChatTransport
import LeanCloudWire

extension LeanCloudEmulator {
  /// How long a chat room is kept for a login whose socket dropped.
  static let roomMemory: Int64 = 30 * 60_000

  func openSession(_ frame: LeanCloudFrame, on connection: Connection) {
    let peer = frame.peerID ?? "anonymous-\(newObjectID())"
    if let code = refusal(of: frame, peer: peer) {
      return fail(code, to: frame, as: peer, on: connection)
    }
    let isFirstModel = !connection.codec.subprotocol.isNamed && frame["ua"] == nil
    let isReopen = frame.bool("r") ?? false
    var session = Session(
      peer: peer, tag: frame.string("tag"),
      deviceID: frame.string("deviceId") ?? frame.string("deviceToken"), token: Base64.urlEncode(randomBytes(24)),
      bitmap: frame.int("configBitmap") ?? 0, isFirstModel: isFirstModel)
    let issued = frame.string("st").flatMap { tokens[Key($0)] }
    if let issued {
      session.tag = session.tag ?? issued.tag
      session.deviceID = session.deviceID ?? issued.deviceID
    }
    guard settleConflict(of: session, isReopen: isReopen, frame, on: connection) else { return }
    if let index = connection.index(of: peer) { leaveOnline(connection.sessions.remove(at: index), connection) }
    if let old = frame.string("st") { tokens[Key(old)] = nil }
    let expires = now &+ sessionTTL &* 1000
    tokens[Key(session.token)] = IssuedToken(
      peer: peer, tag: session.tag, deviceID: session.deviceID, expiresAt: expires)
    let wasOnline = isOnline(peer)
    connection.sessions.append(session)
    connection.firstPeer = connection.firstPeer ?? peer
    online[Key(peer), default: []].append(connection.id)
    outputs.append(.setTimer("idle-\(connection.id.number)", dueAt: now &+ Self.idleLimit))
    if isReopen, let issued, let room = issued.room, issued.roomUntil > now { enter(room, peer, connection) }
    answerOpen(session, frame, on: connection)
    if !wasOnline { tellWatchers(of: peer, isOnline: true) }
  }

  private func answerOpen(_ session: Session, _ frame: LeanCloudFrame, on connection: Connection) {
    var opened = LeanCloudFrame("session", "opened")
    opened["serverTs"] = .int(now)
    if session.isFirstModel {
      let watched = frame.strings("sessionPeerIds")
      watch(watched, session.peer, connection)
      opened["onlineSessionPeerIds"] = .strings(watched.filter(isOnline))
    } else {
      opened["st"] = .string(session.token)
      opened["stTtl"] = .int(sessionTTL)
    }
    reply(opened, to: frame, as: session.peer, on: connection)
    if session.isFirstModel || connection.codec.subprotocol.version == 1 {
      pushOffline(session, on: connection)
    } else {
      pushUnread(session.peer, since: frame.int("lastUnreadNotifTime"), on: connection)
    }
    if !session.isFirstModel { pushBroadcasts(session, on: connection) }
    if session.has(.patch), let since = frame.int("lastPatchTime") {
      replayPatches(session, since: since, on: connection)
    }
  }

  /// Why a login is refused.
  private func refusal(of frame: LeanCloudFrame, peer: String) -> Int64? {
    if let app = frame.string("appId"), !options.openAuthentication, app != options.applicationID { return 4100 }
    guard Self.isClientID(peer) else { return 4103 }
    if disabled.contains(Key(peer)) { return 4106 }
    if let maximumClients, !isOnline(peer), online.count >= maximumClients { return 4113 }
    if let token = frame.string("st") {
      guard let issued = tokens[Key(token)], Key(issued.peer) == Key(peer), issued.expiresAt > now else { return 4112 }
      return nil
    }
    let watching = frame.strings("sessionPeerIds")
    return isSigned(
      frame,
      { app, time, nonce in
        LeanCloudSignature.open(app: app, client: peer, watching: watching, timestamp: time, nonce: nonce)
      }) ? nil : 4102
  }

  /// Whether the frame carries a valid signature, or needs none.
  func isSigned(
    _ frame: LeanCloudFrame, _ text: (_ app: String, _ timestamp: Int64, _ nonce: String) -> String
  ) -> Bool {
    guard let signature = frame.string("s") else { return !needsSignature }
    guard let time = frame.int("t"), let nonce = frame.string("n") else { return false }
    // Old signers use seconds, new ones milliseconds; six hours either way.
    let milliseconds = time < 100_000_000_000 ? time &* 1000 : time
    guard abs(now &- milliseconds) <= 6 * 3_600_000 else { return false }
    return LeanCloudSignature.sign(text(options.applicationID, time, nonce), key: options.adminSecret) == signature
  }

  /// One login of a client for each tag: a user's login ends the other one, an automatic reopen does not.
  private func settleConflict(
    of session: Session, isReopen: Bool, _ frame: LeanCloudFrame, on connection: Connection
  ) -> Bool {
    guard let tag = session.tag else { return true }
    for id in online[Key(session.peer)] ?? [] {
      guard let other = connections[id], let index = other.index(of: session.peer),
        other.sessions[index].tag == tag, id != connection.id,
        session.deviceID == nil || other.sessions[index].deviceID != session.deviceID
      else { continue }
      if isReopen {
        var closed = LeanCloudFrame("session", "closed")
        closed["code"] = 4111
        closed["reason"] = "SESSION_CONFLICT"
        reply(closed, to: frame, as: session.peer, on: connection)
        return false
      }
      end(session.peer, on: other, code: 4111, reason: "SESSION_CONFLICT")
    }
    return true
  }

  /// Ends a login with a pushed `closed`; its token is void.
  func end(_ peer: String, on connection: Connection, code: Int64, reason: String) {
    guard let index = connection.index(of: peer) else { return }
    let session = connection.sessions.remove(at: index)
    if session.isFirstModel { return close(connection, code: UInt16(clamping: code), reason: reason) }
    var closed = LeanCloudFrame("session", "closed")
    closed.peerID = peer
    closed["code"] = .int(code)
    closed["reason"] = .string(reason)
    if connection.codec.subprotocol.isNamed { closed["service"] = 2 }
    send(closed, to: connection)
    tokens[Key(session.token)] = nil
    endSession(session, on: connection, keepsRoom: false)
    forgetFirst(peer, on: connection)
  }

  private func forgetFirst(_ peer: String, on connection: Connection) {
    if connection.firstPeer.map(Key.init) == Key(peer) { connection.firstPeer = connection.sessions.first?.peer }
  }

  func closeSession(_ call: Call) {
    reply(LeanCloudFrame("session", "closed"), to: call)
    guard let index = call.connection.index(of: call.peer) else { return }
    let session = call.connection.sessions.remove(at: index)
    tokens[Key(session.token)] = nil
    endSession(session, on: call.connection, keepsRoom: false)
    forgetFirst(call.peer, on: call.connection)
  }

  /// The login is not online any more. The caller has taken it off its connection, or the connection is gone.
  func endSession(_ session: Session, on connection: Connection, keepsRoom: Bool) {
    if let room = session.room, let conversation = conversation(room) {
      conversation.present.remove(session.peer)
      if keepsRoom {
        tokens[Key(session.token)]?.room = room
        tokens[Key(session.token)]?.roomUntil = now &+ Self.roomMemory
      }
    }
    leaveOnline(session, connection)
    if !isOnline(session.peer) { tellWatchers(of: session.peer, isOnline: false) }
  }

  private func leaveOnline(_ session: Session, _ connection: Connection) {
    online[Key(session.peer)]?.removeAll { $0 == connection.id }
    if online[Key(session.peer)]?.isEmpty == true { online[Key(session.peer)] = nil }
    for peer in session.watched { watchers[peer]?.remove(connection.id) }
  }

  func querySessions(_ call: Call) {
    let asked = call.frame.strings("sessionPeerIds")
    var frame = LeanCloudFrame("session", "query-result")
    frame["onlineSessionPeerIds"] = .strings(asked.filter(isOnline))
    reply(frame, to: call)
  }

  func refreshSession(_ call: Call) {
    guard let old = call.frame.string("st"), let issued = tokens[Key(old)], Key(issued.peer) == Key(call.peer),
      let index = call.connection.index(of: call.peer)
    else { return fail(4112, to: call) }
    let token = Base64.urlEncode(randomBytes(24))
    tokens[Key(old)] = nil
    var renewed = issued
    renewed.expiresAt = now &+ sessionTTL &* 1000
    tokens[Key(token)] = renewed
    call.connection.sessions[index].token = token
    var frame = LeanCloudFrame("session", "refreshed")
    frame["st"] = .string(token)
    frame["stTtl"] = .int(sessionTTL)
    reply(frame, to: call)
  }

  // MARK: Watching (2014 model)

  func watch(_ call: Call) {
    let peers = call.frame.strings("sessionPeerIds")
    let isValid = isSigned(call.frame) { app, time, nonce in
      LeanCloudSignature.open(app: app, client: call.peer, watching: peers, timestamp: time, nonce: nonce)
    }
    guard isValid else { return fail(4102, to: call) }
    watch(peers, call.peer, call.connection)
    var frame = LeanCloudFrame("session", "added")
    frame["onlineSessionPeerIds"] = .strings(peers.filter(isOnline))
    reply(frame, to: call)
  }

  private func watch(_ peers: [String], _ peer: String, _ connection: Connection) {
    guard let index = connection.index(of: peer) else { return }
    for other in peers {
      connection.sessions[index].watched.insert(Key(other))
      watchers[Key(other), default: []].insert(connection.id)
    }
  }

  func unwatch(_ call: Call) {
    guard let index = call.connection.index(of: call.peer) else { return }
    for other in call.frame.strings("sessionPeerIds") {
      call.connection.sessions[index].watched.remove(Key(other))
      watchers[Key(other)]?.remove(call.connection.id)
    }
    reply(LeanCloudFrame("session", "removed"), to: call)
  }

  private func tellWatchers(of peer: String, isOnline: Bool) {
    for id in (watchers[Key(peer)] ?? []).sorted() {
      guard let connection = connections[id] else { continue }
      for session in connection.sessions where session.watched.contains(Key(peer)) && Key(session.peer) != Key(peer) {
        var frame = LeanCloudFrame("presence")
        frame.peerID = session.peer
        frame["status"] = .string(isOnline ? "on" : "off")
        frame["sessionPeerIds"] = .strings([peer])
        send(frame, to: connection)
      }
    }
  }

  // MARK: What waits for a login

  /// Unread counts of at most fifty conversations, newest first.
  private func pushUnread(_ peer: String, since: Int64?, on connection: Connection) {
    var waiting: [(conversation: Conversation, count: Int, mentioned: Bool, last: StoredMessage)] = []
    for id in conversationsOfClient[Key(peer)] ?? [] {
      guard let conversation = conversations[id], conversation.kind == .normal || conversation.kind == .service,
        (conversation.lastMessageAt ?? .min) > (since ?? .min)
      else { continue }
      expireHistory(of: conversation)
      let unread = conversation.unread(for: peer)
      if let last = unread.last { waiting.append((conversation, unread.count, unread.mentioned, last)) }
    }
    guard !waiting.isEmpty else { return }
    waiting.sort { ($0.last.timestamp, Key($0.conversation.id)) > ($1.last.timestamp, Key($1.conversation.id)) }
    var frame = LeanCloudFrame("unread")
    frame.peerID = peer
    frame["convs"] = .array(
      waiting.prefix(50).map { unreadTuple($0.conversation, $0.count, $0.mentioned, last: $0.last) })
    frame["notifTime"] = .int(now)
    if connection.codec.subprotocol.isNamed { frame["service"] = 2 }
    send(frame, to: connection)
  }

  func unreadTuple(_ conversation: Conversation, _ count: Int, _ mentioned: Bool, last: StoredMessage?) -> JSONValue {
    var tuple = JSONObject()
    tuple["cid"] = .string(conversation.id)
    tuple["unread"] = .int(Int64(count))
    if let last {
      tuple["mid"] = .string(last.id)
      tuple["timestamp"] = .int(last.timestamp)
      tuple["from"] = .string(last.from)
      tuple[last.isBinary ? "binaryMsg" : "data"] = .string(last.data)
      tuple["patchTimestamp"] = last.patchTimestamp.map { .int($0) }
    }
    if mentioned { tuple["mentioned"] = true }
    tuple["convType"] = .int(conversation.kind.number)
    return .object(tuple)
  }

  /// The stored messages themselves, for version 1 and the 2014 model.
  private func pushOffline(_ session: Session, on connection: Connection) {
    let waiting = undelivered[Key(session.peer)] ?? []
    var rest: [(conversation: String, id: String)] = []
    for item in waiting {
      guard let conversation = conversation(item.conversation), let index = conversation.index(of: item.id) else {
        continue
      }
      guard conversation.kind.isFirstModel == session.isFirstModel else {
        rest.append(item)
        continue
      }
      var frame = directFrame(conversation.messages[index], in: conversation)
      frame["offline"] = true
      frame["hasMore"] = false
      frame.peerID = session.peer
      if connection.codec.subprotocol.isNamed { frame["service"] = 2 }
      send(frame, to: connection)
    }
    undelivered[Key(session.peer)] = rest.isEmpty ? nil : rest
  }

  private func replayPatches(_ session: Session, since: Int64, on connection: Connection) {
    var items: [(time: Int64, item: JSONValue)] = []
    for id in conversationsOfClient[Key(session.peer)] ?? [] {
      guard let conversation = conversations[id] else { continue }
      for patch in conversation.patches.reversed() {
        if patch.time <= since { break }
        guard let index = conversation.index(of: patch.id.text) else { continue }
        items.append((patch.time, patchItem(conversation.messages[index], in: conversation)))
      }
    }
    guard !items.isEmpty else { return }
    // Those of one millisecond in the order in which they were made.
    items.reverse()
    items.sort { $0.time < $1.time }
    var frame = LeanCloudFrame("patch", "modify")
    frame.peerID = session.peer
    frame["patches"] = .array(items.map(\.item))
    frame["lastPatchTime"] = .int(items.last?.time ?? now)
    if connection.codec.subprotocol.isNamed { frame["service"] = 2 }
    send(frame, to: connection)
  }
}
