import ChatCrypto
import ChatJSON
import LeanCloudWire

extension LeanCloudEmulator {
  func checkOnline(_ call: RESTCall) throws(RESTError) -> JSONValue {
    let asked = (call.body["client_ids"] ?? call.body["peers"])?.array?.compactMap(\.string) ?? []
    guard asked.count <= 20 else { throw RESTError(code: 1, text: "at most 20 clients.") }
    return ["results": .strings(asked.filter(isOnline))]
  }

  func unreadCount(_ call: RESTCall) throws(RESTError) -> JSONValue {
    try unread(of: call.parameters.first ?? "", in: call.first("conv_id"))
  }

  func unread11(_ call: RESTCall) throws(RESTError) -> JSONValue {
    try unread(of: call.parameters.first ?? "", in: call.parameters.dropFirst().first)
  }

  private func unread(of client: String, in id: String?) throws(RESTError) -> JSONValue {
    if let id {
      guard let conversation = conversation(id) else {
        throw RESTError(status: 404, code: 4303, text: "CONVERSATION_NOT_FOUND")
      }
      return ["count": .int(Int64(conversation.unread(for: client).count))]
    }
    let all = (conversationsOfClient[Key(client)] ?? []).compactMap { conversations[$0] }
    return ["count": .int(Int64(all.reduce(0) { $0 + $1.unread(for: client).count }))]
  }

  func kickClient(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let client = call.parameters.first ?? call.body["client_id"]?.string else {
      throw RESTError(code: 1, text: "client_id is required.")
    }
    let reason = call.body["reason"]?.string ?? "KICKED_BY_APP"
    guard reason.count <= 20 || !limits else { throw RESTError(code: 1, text: "reason: at most 20 characters.") }
    kick(client, code: 4115, reason: reason)
    return .object([:])
  }

  func kick(_ client: String, code: Int64, reason: String) {
    for id in online[Key(client)] ?? [] {
      if let connection = connections[id] { end(client, on: connection, code: code, reason: reason) }
    }
  }

  /// A signature for a user who is logged in to the storage service.
  func signLogin(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let token = call.first("session_token") ?? call.body["session_token"]?.string,
      let user = users.values.first(where: { $0.sessionToken == token })
    else { throw RESTError(status: 401, code: 211, text: "Could not find user.") }
    let nonce = Hex.encode(randomBytes(8))
    let text = LeanCloudSignature.open(
      app: options.applicationID, client: user.objectID, timestamp: now, nonce: nonce)
    return [
      "signature": .string(LeanCloudSignature.sign(text, key: options.adminSecret)), "nonce": .string(nonce),
      "client_id": .string(user.objectID), "timestamp": .int(now),
    ]
  }

  func stats(_ call: RESTCall) throws(RESTError) -> JSONValue {
    ["result": ["online_user_count": .int(Int64(online.count)), "user_count_today": .int(Int64(online.count))]]
  }

  /// Events that a client missed, since a time.
  func missedNotifications(_ call: RESTCall) throws(RESTError) -> JSONValue {
    guard let client = call.first("client_id") else { throw RESTError(code: 1, text: "client_id is required.") }
    if call.access != .master {
      let token = call.request.headers["X-LC-IM-Session-Token"]
      guard let token, let issued = tokens[Key(token)], Key(issued.peer) == Key(client), issued.expiresAt > now else {
        throw RESTError(status: 401, code: 4112, text: "SESSION_TOKEN_EXPIRED")
      }
    }
    let since = call.number("start_ts") ?? 0
    let events = (notifications[Key(client)] ?? []).filter { ($0["serverTs"]?.int ?? 0) >= since }
    let list = JSONValue.array(events.map { .object($0) })
    if call.first("notification_type") != nil { return ["hasMore": false, "notifications": list] }
    return ["permanent": ["notifications": list], "droppable": ["notifications": []]]
  }

  func serverDate(_ call: RESTCall) throws(RESTError) -> JSONValue {
    ["__type": "Date", "iso": .string(LeanCloudID.iso(now))]
  }
}
