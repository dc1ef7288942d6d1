import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

// Login, session keys and the WebSocket's life.
extension SendbirdEmulator {
  /// A WebSocket is always let in; a refusal is a `LOGI` with an error and the end of the link.
  func open(_ id: EmulatorConnectionID, _ request: WebSocketRequest) {
    outputs.append(.accept(id, subprotocol: nil))
    count("WS login", isImplemented: true)
    let query = SendbirdTarget(request.url).query
    do {
      let (person, key) = try logIn(query, headers: request.headers)
      connections[id] = Connection(user: person.id, key: key)
      connectionsByUser[person.id, default: []].append(id)
      person.lastSeenAt = 0
      person.hasEverLoggedIn = true
      outputs.append(.send(id, .text(SendbirdFrame("LOGI", welcome(person, key: key)).text)))
    } catch {
      outputs.append(.send(id, .text(SendbirdFrame("LOGI", error.json).text)))
      outputs.append(.close(id, WebSocketClose(code: 1000, reason: "")))
    }
  }

  private func logIn(
    _ query: SendbirdQuery, headers: HTTPHeaders
  ) throws(SendbirdFault) -> (Person, Key) {
    if let application = query["ai"], application != options.applicationID, !options.openAuthentication {
      throw SendbirdFault(400304, "Application not found.")
    }
    let isExpiring = query.bool("expiring_session") ?? false
    if let key = query["key"] ?? headers["SENDBIRD-WS-AUTH"], query["user_id"] == nil {
      return (try person(ofSession: Key(key)), Key(key))
    }
    guard let id = query["user_id"], !id.isEmpty else { throw SendbirdFault(400301, "User not found.") }
    guard id.unicodeScalars.count <= SendbirdLimits.userIDLength else {
      throw SendbirdFault(400305, "user_id is too long.")
    }
    let person = try knownPerson(UserID(id))
    try check(token: query["access_token"] ?? headers["SENDBIRD-WS-TOKEN"], of: person)
    return (person, newSession(person.id, isExpiring: isExpiring))
  }

  private func knownPerson(_ id: UserID) throws(SendbirdFault) -> Person {
    guard let person = people[id] else {
      guard settings.autoCreateUsers else { throw SendbirdFault(400301, "User not found.") }
      return addPerson(id)
    }
    guard person.isActive else { throw SendbirdFault(400300, "User is deactivated.") }
    return person
  }

  /// If any token exists for a user, a valid one must be shown. `null` and `undefined` are what the JavaScript client
  /// sends for "no token".
  func check(token: String?, of person: Person) throws(SendbirdFault) {
    if options.openAuthentication { return }
    let given = token.flatMap { ["", "null", "undefined"].contains($0) ? nil : $0 }
    guard person.accessToken != nil || !person.sessionTokens.isEmpty else { return }
    if let given, let own = person.accessToken, Key(own) == Key(given) { return }
    if let given, let expiry = person.sessionTokens[Key(given)], expiry > now { return }
    throw SendbirdFault(400302, "Access token is invalid or expired.")
  }

  func newSession(_ user: UserID, isExpiring: Bool) -> Key {
    let key = Key(hex(40))
    sessions[key] = Session(user: user, isExpiring: isExpiring)
    return key
  }

  /// The user of a session key, for REST and reconnects.
  func person(ofSession key: Key) throws(SendbirdFault) -> Person {
    guard let session = sessions[key] else { throw SendbirdFault(400303, "Session key is invalid.") }
    if let fault = session.fault { throw SendbirdFault(fault, Self.words(of: fault)) }
    guard let person = people[session.user] else { throw SendbirdFault(400301, "User not found.") }
    guard person.isActive else { throw SendbirdFault(400300, "User is deactivated.") }
    return person
  }

  static func words(of code: Int64) -> String {
    switch code {
    case 400302: "Session token is expired."
    case 400309: "Session key is expired."
    case 400310: "Session token is revoked."
    default: "User is deactivated."
    }
  }

  private func welcome(_ person: Person, key: Key) -> JSONObject {
    var json = json(of: person).json
    json["is_online"] = true
    json["preferred_languages"] = .array(person.preferredLanguages)
    json["key"] = .string(key.rawValue)
    json["ekey"] = .string(Self.mirrored(key.rawValue))
    json["login_ts"] = .int(now)
    json["ping_interval"] = 15
    json["pong_timeout"] = 5
    json["reconnect"] = ["interval": .number3, "max_interval": .number24, "mul": 2, "retry_cnt": 5]
    json["max_unread_cnt_on_super_group"] = 100
    json["profile_image_encryption"] = false
    json["concurrent_call_limit"] = 2
    json["back_off_delay"] = 10
    json["file_upload_size_limit"] = .int(SendbirdLimits.uploadMiB)
    json["use_reaction"] = true
    json["emoji_hash"] = "emulated"
    json["disable_supergroup_mack"] = false
    json["premium_feature_list"] = ["message_search", "delivery_receipt"]
    json["application_attributes"] = ["reactions", "allow_group_channel_create_from_sdk"]
    json["unread_cnt"] = unreadCount(of: person)
    return json
  }

  func disconnected(_ id: EmulatorConnectionID) {
    guard let connection = connections.removeValue(forKey: id) else { return }
    connectionsByUser[connection.user]?.removeAll { $0 == id }
    if connectionsByUser[connection.user]?.isEmpty == true {
      connectionsByUser[connection.user] = nil
      people[connection.user]?.lastSeenAt = now
    }
    for room in connection.entered.sorted().compactMap({ rooms[$0] })
    where room.isOpen && room.participants[connection.user]?.contains(id.number) == true {
      leaveOpenRoom(room, connection.user, id)
    }
  }

  // MARK: The ends of sessions

  /// Every session of the user ends: `EXPR`, then the link is closed.
  func endSessions(of user: UserID, code: Int64) {
    for (key, session) in sessions where session.user == user { sessions[key]?.fault = code }
    if code == 400310 { people[user]?.sessionTokens = [:] }
    for id in connectionsByUser[user] ?? [] {
      push(SendbirdFrame("EXPR", ["expires_in": 0, "reason": .int(code)]), to: id)
      outputs.append(.close(id, WebSocketClose(code: 1000, reason: "")))
    }
  }

  /// The token that the user holds is good no more: a new one is needed. Sockets stay and are told.
  func expireToken(of user: UserID) {
    guard let person = people[user] else { return }
    person.accessToken = person.accessToken.map { _ in "expired." + hex(16) }
    for token in person.sessionTokens.keys { person.sessionTokens[token] = 0 }
    if person.accessToken == nil, person.sessionTokens.isEmpty { person.sessionTokens[Key(hex(16))] = 0 }
    for (key, session) in sessions where session.user == user { sessions[key]?.fault = 400302 }
    for id in connectionsByUser[user] ?? [] {
      push(SendbirdFrame("EXPR", ["expires_in": 0, "reason": 400302]), to: id)
    }
  }

  /// `LOGI` from a client: a new key for a session whose key or token expired. The old key works on too, because the
  /// official client goes on with it.
  func refresh(_ frame: SendbirdFrame, from id: EmulatorConnectionID, _ person: Person) throws(SendbirdFault) {
    try check(token: frame.payload.text("token"), of: person)
    guard let connection = connections[id] else { return }
    sessions[connection.key]?.fault = nil
    let key = newSession(person.id, isExpiring: frame.payload.flag("expiring_session") ?? false)
    push(
      SendbirdFrame("LOGI", ["req_id": .string(frame.requestID ?? ""), "new_key": .string(key.rawValue)]), to: id)
  }
}

extension JSONValue {
  fileprivate static let number3 = JSONValue(3.0)
  fileprivate static let number24 = JSONValue(24.0)
}
