import ChatCrypto
import ChatJSON
import ChatTransport
import LeanCloudWire

// Sockets: upgrade, frames in, frames out, idle links.

extension LeanCloudEmulator {
  /// A link without any inbound frame for so long is closed with 4107; the reference names no number, clients ping
  /// every 60 to 240 s.
  static let idleLimit: Int64 = 360_000
  /// A link on which nobody logs in is closed with 4108.
  static let loginLimit: Int64 = 60_000

  func open(_ id: EmulatorConnectionID, _ request: WebSocketRequest) {
    count("WebSocket upgrade")
    let offered =
      request.subprotocols + [URLText.query(of: request.url).first { $0.0 == "subprotocol" }?.1].compactMap(\.self)
    let chosen = offered.lazy.compactMap { LeanCloudSubprotocol(name: $0) }.first
    if chosen == nil, !offered.isEmpty {
      outputs.append(.reject(id, .leanCloud(400, code: 4114, "no sub-protocol of \(offered.count) is served")))
      return
    }
    let connection = Connection(id: id, codec: LeanCloudCodec(chosen ?? .unnamed), now: now)
    connections[id] = connection
    outputs.append(.accept(id, subprotocol: request.subprotocols.isEmpty ? nil : chosen?.name))
    // Only a browser names where its page comes from.
    if let origins, let origin = request.headers["Origin"], !origins.contains(URLText.host(of: origin)) {
      return close(connection, code: 4110, reason: "INVALID_ORIGIN")
    }
    outputs.append(.setTimer("idle-\(id.number)", dueAt: now &+ Self.loginLimit))
  }

  func receive(_ message: WebSocketMessage, on id: EmulatorConnectionID) {
    guard let connection = connections[id] else { return }
    connection.lastActivity = now
    let payload: LeanCloudPayload
    switch message {
    case .text(let text): payload = .text(text)
    case .binary(let bytes): payload = .binary(bytes)
    }
    if limits, payload.byteCount > LeanCloudErrors.maximumFrameBytes {
      return close(connection, code: 4109, reason: "FRAME_TOO_LONG")
    }
    guard let frame = try? connection.codec.decode(payload) else {
      return close(connection, code: 4114, reason: "UNPARSEABLE_RAW_MESSAGE")
    }
    if frame.isPing { return send(.ping, to: connection) }
    dispatch(frame, on: connection)
  }

  func timerFired(_ name: String) {
    guard name.hasPrefix("idle-"), let number = UInt64(name.dropFirst(5)),
      let connection = connections[EmulatorConnectionID(number)]
    else { return }
    if connection.sessions.isEmpty { return close(connection, code: 4108, reason: "LOGIN_TIMEOUT") }
    let due = connection.lastActivity &+ Self.idleLimit
    if due <= now { return close(connection, code: 4107, reason: "READ_TIMEOUT") }
    outputs.append(.setTimer(name, dueAt: due))
  }

  /// The socket is gone: its logins are offline until they reopen.
  func dropped(_ id: EmulatorConnectionID) {
    guard let connection = connections.removeValue(forKey: id) else { return }
    outputs.append(.cancelTimer("idle-\(id.number)"))
    for session in connection.sessions {
      endSession(session, on: connection, keepsRoom: true)
      executeWills(of: session)
    }
    for peer in watchers.keys { watchers[peer]?.remove(id) }
  }

  func close(_ connection: Connection, code: UInt16, reason: String) {
    outputs.append(.close(connection.id, WebSocketClose(code: code, reason: reason)))
  }

  // MARK: Output

  func send(_ frame: LeanCloudFrame, to connection: Connection) {
    guard let payload = try? connection.codec.encode(frame) else { return }
    switch payload {
    case .text(let text): outputs.append(.send(connection.id, .text(text)))
    case .binary(let bytes): outputs.append(.send(connection.id, .binary(bytes)))
    }
  }

  /// The answer to `request`; without a serial there is none, except for clients that never send one.
  func reply(_ frame: LeanCloudFrame, to request: LeanCloudFrame, as peer: String?, on connection: Connection) {
    var frame = frame
    frame["i"] = request.object["i"]
    if let peer { frame.peerID = peer }
    if connection.codec.subprotocol.isNamed { frame["service"] = 2 }
    send(frame, to: connection)
  }

  func fail(
    _ code: Int64, _ detail: String = "", to request: LeanCloudFrame, as peer: String?, on connection: Connection
  ) {
    var frame = LeanCloudFrame("error")
    frame["code"] = .int(code)
    frame["reason"] = .string(LeanCloudErrors.row(Int(code)).name)
    if !detail.isEmpty { frame["detail"] = .string(detail) }
    reply(frame, to: request, as: peer, on: connection)
  }

  /// A push to every login of `peer`, except the one on `excluded`.
  func push(
    _ frame: LeanCloudFrame, to peer: String, except excluded: EmulatorConnectionID? = nil,
    where accepts: (Session, Connection) -> Bool = { session, _ in !session.isFirstModel }
  ) {
    for id in online[Key(peer)] ?? [] where id != excluded {
      guard let connection = connections[id], let index = connection.index(of: peer),
        accepts(connection.sessions[index], connection)
      else { continue }
      var frame = frame
      frame.peerID = peer
      if connection.codec.subprotocol.isNamed { frame["service"] = 2 }
      send(frame, to: connection)
    }
  }

  func isOnline(_ peer: String) -> Bool { online[Key(peer)]?.isEmpty == false }

  // MARK: Commands

  private func dispatch(_ frame: LeanCloudFrame, on connection: Connection) {
    let name = frame.operation.isEmpty ? frame.command : "\(frame.command)/\(frame.operation)"
    switch frame.command {
    case "echo":
      count(name)
      return reply(LeanCloudFrame("echo"), to: frame, as: nil, on: connection)
    case "session" where frame.operation == "open":
      count(name)
      return openSession(frame, on: connection)
    default: break
    }
    guard let peer = frame.peerID ?? connection.firstPeer, let index = connection.index(of: peer) else {
      count(name, isKnown: Self.commands.contains(name))
      return fail(4105, to: frame, as: frame.peerID, on: connection)
    }
    guard Self.commands.contains(name) else {
      count(name, isKnown: false)
      return fail(4114, "no command \(name)", to: frame, as: peer, on: connection)
    }
    count(name)
    // Above the limit the service is silent.
    if hasClientRates, !takesRate(frame, peer: peer) { return }
    let call = Call(frame: frame, connection: connection, peer: peer, session: connection.sessions[index])
    perform(call)
  }

  private func takesRate(_ frame: LeanCloudFrame, peer: String) -> Bool {
    switch frame.command {
    case "ack", "read", "echo": true
    case "direct": rates.take("direct \(peer)", limit: 60, now: now)
    case "logs": rates.take("logs \(peer)", limit: 120, now: now)
    default: rates.take("other \(peer)", limit: 30, now: now)
    }
  }

  /// What `perform` answers; anything else is counted as unknown.
  static let commands: Set<String> = [
    "session/close", "session/query", "session/refresh", "session/add", "session/remove", "conv/start", "conv/add",
    "conv/remove", "conv/query", "conv/count", "conv/update", "conv/mute", "conv/unmute", "conv/max-read",
    "conv/is-member", "conv/members", "conv/member-info-update", "conv/add-shutup", "conv/remove-shutup",
    "conv/query-shutup", "conv/check-shutup", "direct", "ack", "read", "logs", "patch/modify", "patch/modified",
    "blacklist/block", "blacklist/unblock", "blacklist/query", "blacklist/check-block", "room/join", "room/leave",
    "room/invite", "room/kick",
    "report/upload",
  ]

  private func perform(_ call: Call) {
    switch (call.frame.command, call.frame.operation) {
    case ("session", "close"): closeSession(call)
    case ("session", "query"): querySessions(call)
    case ("session", "refresh"): refreshSession(call)
    case ("session", "add"): watch(call)
    case ("session", "remove"): unwatch(call)
    case ("conv", let operation): performConversation(operation, call)
    case ("direct", _): direct(call)
    case ("ack", _): acknowledge(call)
    case ("read", _): read(call)
    case ("logs", _): logs(call)
    case ("patch", "modify"): modify(call)
    case ("blacklist", let operation): performBlacklist(operation, call)
    case ("room", let operation): performRoom(operation, call)
    case ("report", _): uploadToken(call)
    default: break
    }
  }
}

/// One command of one login.
struct Call {
  var frame: LeanCloudFrame
  var connection: Connection
  var peer: String
  var session: Session
}

extension LeanCloudEmulator {
  func reply(_ frame: LeanCloudFrame, to call: Call) {
    reply(frame, to: call.frame, as: call.peer, on: call.connection)
  }

  func fail(_ code: Int64, _ detail: String = "", to call: Call) {
    fail(code, detail, to: call.frame, as: call.peer, on: call.connection)
  }

  /// A push about a conversation, also kept for the notification feed of those who are away.
  func pushEvent(
    _ operation: String, _ conversation: Conversation, to peer: String, by actor: String,
    _ fields: JSONObject = JSONObject()
  ) {
    var frame = LeanCloudFrame("conv", operation)
    frame["cid"] = .string(conversation.id)
    frame["initBy"] = .string(actor)
    for member in fields { frame[member.key] = member.value }
    frame["udate"] = frame["udate"] ?? .string(LeanCloudID.iso(conversation.updatedAt))
    frame["serverTs"] = .int(now)
    frame["notificationType"] = 1
    if !isOnline(peer) { remember(frame.object, for: peer) }
    push(frame, to: peer)
  }

  /// Keeps the newest hundred events of a client.
  private func remember(_ event: JSONObject, for peer: String) {
    notifications[Key(peer), default: []].append(event)
    if notifications[Key(peer), default: []].count > 100 { notifications[Key(peer)]?.removeFirst() }
  }

  func uploadToken(_ call: Call) {
    let installation = call.frame.string("data")
    if let index = call.connection.index(of: call.peer) {
      call.connection.sessions[index].installation = installation
    }
    reply(LeanCloudFrame("report", "uploaded"), to: call)
  }
}
