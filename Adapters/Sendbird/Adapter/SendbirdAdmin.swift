import ChatInterchange
import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

/// The Platform API, as sources and destinations use it.
struct SendbirdAdmin: Sendable {
  let rest: SendbirdREST
  let token: String
  let operation: ChatError.Operation
  /// For what imports keep beside items.
  let envelopes: EnvelopeReader

  init(
    profile: Profile, environment: AdapterEnvironment, transports: Transports, operation: ChatError.Operation
  ) throws(ChatError) {
    guard let token = environment.adminSecret, !token.isEmpty else {
      throw ChatError(
        .invalidArgument(field: "credentials.admin"), operation: operation,
        detail: "profile \(profile.name) names no API token; add \"admin\" to its credentials")
    }
    rest = SendbirdREST(profile: profile, environment: environment, transports: transports)
    self.token = token
    self.operation = operation
    envelopes = EnvelopeReader(environment)
  }

  func call(
    _ method: String, _ path: [String], query: SendbirdQuery = SendbirdQuery(), body: JSONObject? = nil
  ) async throws(ChatError) -> JSONObject {
    try await patiently { () async throws(ChatError) in
      try await rest.call(method, path, query: query, body: body, as: .apiToken(token), operation: operation)
    }
  }

  func upload(_ path: [String], _ form: SendbirdMultipart, boundary: String) async throws(ChatError) -> JSONObject {
    try await patiently { () async throws(ChatError) in
      try await rest.upload(path, form, boundary: boundary, as: .apiToken(token), operation: .upload)
    }
  }

  /// How often a call that the vendor's rate refused is made again before the caller hears of it.
  private static let patience = 12

  /// Waits as long as a 429 says, else one second and then twice as long each time. One put of many users is many
  /// calls: given up at the first refusal, it would never come to its end under a rate that it exceeds.
  private func patiently(
    _ work: () async throws(ChatError) -> JSONObject
  ) async throws(ChatError) -> JSONObject {
    var pause: Duration = .seconds(1)
    for _ in 0..<Self.patience {
      do { return try await work() } catch {
        guard case .rateLimited(let told) = error.kind else { throw error }
        do { try await rest.clock.sleep(for: told ?? pause) } catch { throw .cancelled(operation) }
        pause = min(pause * 2, .seconds(30))
      }
    }
    return try await work()
  }

  /// The channel and whether it is an open one.
  func channel(_ id: ChannelID) async throws(ChatError) -> (json: JSONObject, isOpen: Bool) {
    do { return (try await call("GET", ["group_channels", id.rawValue]), false) } catch {
      guard error.kind == .notFound else { throw error }
    }
    return (try await call("GET", ["open_channels", id.rawValue]), true)
  }

  func members(of id: ChannelID, token: String) async throws(ChatError) -> (members: [JSONObject], next: String) {
    var query = SendbirdQuery()
    query.add("token", token)
    query.add("limit", Int64(SendbirdLimits.page))
    query.add("order", "member_nickname_alphabetical")
    query.add("show_member_is_muted", true)
    query.add("show_read_receipt", true)
    query.add("show_delivery_receipt", true)
    let json = try await call("GET", ["group_channels", id.rawValue, "members"], query: query)
    return (json.list("members").compactMap(\.object), json.text("next") ?? "")
  }

  func allMembers(of id: ChannelID) async throws(ChatError) -> Set<UserID> {
    var found: Set<UserID> = []
    var walk = PageWalk()
    var token = ""
    repeat {
      try walk.advance(to: token, .listMembers)
      let page = try await members(of: id, token: token)
      for json in page.members { if let user = SendbirdUser(json) { found.insert(user.id) } }
      token = page.next
    } while !token.isEmpty
    return found
  }

  /// Up to 200 messages after a position (all of that position's own if it is a time alone), ascending.
  func messages(
    in id: ChannelID, isOpen: Bool, after position: MessagePosition?, includingRemoved: Bool,
    limit: Int = SendbirdLimits.messagePage
  ) async throws(ChatError) -> [JSONObject] {
    let path = [isOpen ? "open_channels" : "group_channels", id.rawValue, "messages"]
    var query = SendbirdQuery()
    query.add("prev_limit", 0)
    query.add("next_limit", Int64(limit))
    query.add("reverse", false)
    SendbirdHistory.addShape(&query)
    if includingRemoved { query.add("including_removed", true) }
    guard let position else {
      query.add("message_ts", 0)
      query.add("include", true)
      return try await list(path, query)
    }
    if position.minor > 0 {
      var byID = query
      byID.add("message_id", position.minor)
      byID.add("include", false)
      do { return try await list(path, byID) } catch {
        guard error.kind == .notFound else { throw error }
      }
    }
    // A time alone, or a message that is gone: the time leads to the same place.
    query.add("message_ts", position.major)
    query.add("include", true)
    return try await list(path, query).filter { json in
      let id = json.number("message_id") ?? 0
      let time = Timestamp(milliseconds: json.number("created_at") ?? 0)
      return MessagePosition(time: time, number: id) > position
    }
  }

  private func list(_ path: [String], _ query: SendbirdQuery) async throws(ChatError) -> [JSONObject] {
    try await call("GET", path, query: query).list("messages").compactMap(\.object)
  }

  static func position(_ json: JSONObject) -> MessagePosition? {
    guard let id = json.number("message_id") else { return nil }
    return MessagePosition(time: Timestamp(milliseconds: json.number("created_at") ?? 0), number: id)
  }
}
