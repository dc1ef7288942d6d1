import ChatCrypto
import ChatInterchange
import ChatJSON
import ChatTransport
import LeanCloudWire
import UnifiedChat

/// Writes conversations and messages over REST with the master key.
///
/// No endpoint takes a past time, so a message gets the server's time and keeps its own in `_lcattrs`, where
/// `LeanCloudSource` finds it again. Messages go one by one, in order. The service does not deduplicate them: ask
/// `existing` before a channel that was begun.
public struct LeanCloudDestination: ChatDestination {
  public let vendor: VendorName = "leancloud"
  public let capabilities = LeanCloudCapabilities.conversation
  let rest: LeanCloudREST
  private let clock: any ChatClock
  let kinds = LeanCloudKinds()
  public var signingKey: String? { rest.envelopes.key?.fingerprint }

  static let memberLimit = 500
  static let mentionLimit = 20

  public var limits: DestinationLimits {
    DestinationLimits(
      batch: 50, messagesPerRequest: 1, usersPerRequest: 1, parallelChannels: 4, membersPerChannel: Self.memberLimit,
      userIDBytes: 64)
  }

  public init(profile: Profile, environment: AdapterEnvironment, transports: Transports) throws(ChatError) {
    guard try LeanCloudModel(profile) == .conversation else {
      throw ChatError(
        .invalidArgument(field: "model"), operation: .writeDestination, detail: "the 2014 model takes no imports")
    }
    clock = environment.clock
    rest = LeanCloudREST(profile: profile, environment: environment, http: transports.http)
    guard !rest.appID.isEmpty else {
      throw ChatError(
        .invalidArgument(field: "appID"), operation: .writeDestination, detail: "the profile names no appID")
    }
  }

  func call(
    _ method: String, _ path: String, query: [(String, String)] = [], _ body: JSONObject? = nil
  ) async throws(ChatError) -> JSONValue {
    try await rest.call(
      method, path, query: query, body: body.map { .object($0) }, key: .master, operation: .writeDestination)
  }

  // MARK: Users

  /// Whoever has a profile gets a row of `_User` named by the client id; a client without one needs nothing.
  public func putUsers(_ users: [UserRecord]) async throws(ChatError) -> [PutOutcome<UserID>] {
    var outcomes: [PutOutcome<UserID>] = []
    for record in users {
      let user = record.user
      if user.id.rawValue.unicodeScalars.count > 64 {
        let error = ChatError(
          .invalidArgument(field: "userID"), operation: .writeDestination,
          detail: "a client id has at most 64 characters")
        outcomes.append(.refused(error))
      } else if !hasProfile(record) {
        outcomes.append(.existed(user.id))
      } else {
        outcomes.append(try await put(record))
      }
    }
    return outcomes
  }

  private func put(_ record: UserRecord) async throws(ChatError) -> PutOutcome<UserID> {
    let user = record.user
    let condition: JSONValue = ["username": .string(user.id.rawValue)]
    let found = try await call("GET", "/1.1/classes/_User", query: [("where", condition.text()), ("limit", "1")])
    var columns = LeanCloudUser.columns(user, origin: record.origin, keepsID: true, rest.envelopes.key)
    if let id = found["results"]?[0]?["objectId"]?.string {
      _ = try await call("PUT", "/1.1/users/\(LeanCloudREST.percent(id))", columns)
      return .existed(user.id)
    }
    columns["username"] = .string(user.id.rawValue)
    // Nobody logs in with it: clients need no account.
    columns["password"] = .string(Hex.encode(SecureBytes.random(24)))
    _ = try await call("POST", "/1.1/users", columns)
    return .written(user.id)
  }

  // MARK: Channels

  public func putChannel(
    _ channel: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) -> PutOutcome<ChannelID> {
    let origin = channel.origin ?? Origin(vendor: "unknown", id: channel.channel.id.rawValue)
    let joined = members.filter { $0.member.state == .joined }
    var existing = try await find(origin)
    // Who writes the attributes of a conversation, writes over what is noted there; it is noted anew.
    if existing == nil, let known = kinds.resumed(origin), try await exists(known) { existing = (known.rawValue, false) }
    let id: String
    if let existing { id = existing.id } else { id = try await create(channel.channel, origin, members: joined) }
    if existing?.isSealed != true { try await seal(id, channel.channel, origin) }
    try await complete(id, channel.channel, members: joined)
    return existing == nil ? .written(ChannelID(id)) : .existed(ChannelID(id))
  }

  public func resume(_ channel: ChannelID, of origin: Origin) async { kinds.resume(channel, of: origin) }

  private func exists(_ channel: ChannelID) async throws(ChatError) -> Bool {
    do throws(ChatError) {
      _ = try await call("GET", "/1.1/classes/_Conversation/\(LeanCloudREST.percent(channel.rawValue))")
      return true
    } catch {
      guard error.kind == .notFound else { throw error }
      return false
    }
  }

  /// The conversation that an import made of `origin`. Any member can write the same names into another conversation,
  /// so they count only where they are signed; a run that was killed may have left one that is signed for no id yet.
  private func find(_ origin: Origin) async throws(ChatError) -> (id: String, isSealed: Bool)? {
    var condition: JSONObject = [
      "attr.unifiedchat.id": .string(origin.id), "attr.unifiedchat.vendor": .string(origin.vendor.rawValue),
    ]
    var unsealed: String?
    var walk = PageWalk()
    while true {
      let query = [("where", JSONValue.object(condition).text()), ("order", "objectId"), ("limit", "100")]
      let found = try await call("GET", "/1.1/classes/_Conversation", query: query)
      let rows = (found["results"]?.array ?? []).compactMap(\.object)
      for row in rows {
        guard let id = row["objectId"]?.string else { continue }
        if LeanCloudConversation.finding(of: row, rest.envelopes) == nil { return (id, true) }
        // A member who read the envelope before it was sealed may have copied it, but then is the row's creator; what
        // the master key made has none.
        guard row["c"]?.string?.isEmpty ?? true else { continue }
        if LeanCloudConversation.finding(of: row, rest.envelopes, isNew: true) == nil { unsealed = unsealed ?? id }
      }
      guard rows.count == 100, let last = rows.last?["objectId"]?.string else { break }
      try walk.advance(to: last, .writeDestination)
      condition["objectId"] = ["$gt": .string(last)]
    }
    return unsealed.map { ($0, false) }
  }

  /// Signs what is kept for the id that the service gave. Before, a member could copy it into another conversation.
  private func seal(_ id: String, _ channel: Channel, _ origin: Origin) async throws(ChatError) {
    let signing = EnvelopeSigning(rest.envelopes.key, .channel(id))
    let columns = LeanCloudConversation.columns(
      customData: channel.customData, kept: kept(of: channel), origin: origin, signing)
    _ = try await call(
      "PUT", "/1.2/rtm/\(Self.path(of: channel.kind))/\(LeanCloudREST.percent(id))", ["attr": columns["attr"] ?? .null])
  }

  private static func path(of kind: ChannelKind) -> String {
    switch kind {
    case .open: "chatrooms"
    case .service: "service-conversations"
    default: "conversations"
    }
  }

  private func create(
    _ channel: Channel, _ origin: Origin, members: [MemberRecord]
  ) async throws(ChatError) -> String {
    var body = LeanCloudConversation.columns(
      customData: channel.customData, kept: kept(of: channel), origin: origin,
      EnvelopeSigning(rest.envelopes.key, .channel("")))
    body["name"] = channel.name.map { .string($0) }
    body["coverURL"] = channel.coverURL.map { .string($0) }
    if !channel.metadata.isEmpty {
      body["metadata"] = .object(
        JSONObject(channel.metadata.sorted { $0.key < $1.key }.map { ($0.key, .string($0.value)) }))
    }
    let ids = members.map(\.member.user.id.rawValue)
    let path = Self.path(of: channel.kind)
    if path == "conversations" {
      body["m"] = .strings(ids.prefix(Self.memberLimit))
      // An imported conversation must not fall together with another one of the same members.
      body["unique"] = false
    }
    let answer = try await call("POST", "/1.2/rtm/\(path)", body)
    guard let id = answer["objectId"]?.string else {
      throw ChatError(.protocolViolation, operation: .writeDestination, detail: "a conversation without objectId")
    }
    return id
  }

  /// What the vendor sets itself when a conversation is made.
  private func kept(of channel: Channel) -> JSONObject {
    var kept = JSONObject()
    kept["createdAt"] = channel.createdAt.map { .int($0.milliseconds) } ?? .null
    kept["createdBy"] = channel.createdBy.map { .string($0.rawValue) } ?? .null
    if !Self.hasForm(channel.kind) || channel.kind == .direct { kept["kind"] = .string(channel.kind.recordName) }
    if channel.isFrozen { kept["frozen"] = true }
    if channel.isDistinct { kept["distinct"] = true }
    return kept
  }

  private static func hasForm(_ kind: ChannelKind) -> Bool {
    switch kind {
    case .direct, .group, .open, .service: true
    case .temporary, .unknown: false
    }
  }

  /// Members, roles and silences that are not there yet.
  private func complete(_ id: String, _ channel: Channel, members: [MemberRecord]) async throws(ChatError) {
    let path = LeanCloudREST.percent(id)
    switch channel.kind {
    case .open: return
    case .service:
      for member in members {
        _ = try await call(
          "POST", "/1.2/rtm/service-conversations/\(path)/subscribers",
          ["client_id": .string(member.member.user.id.rawValue)])
      }
      return
    default: break
    }
    let ids = members.map(\.member.user.id.rawValue)
    if !ids.isEmpty {
      _ = try await call("POST", "/1.2/rtm/conversations/\(path)/members", ["client_ids": .strings(ids)])
    }
    for record in members {
      let client = record.member.user.id.rawValue
      if let role = LeanCloudConversation.roleName(record.member.role), ["Owner", "Manager"].contains(role) {
        _ = try await call(
          "POST", "/1.2/rtm/conversations/\(path)/member-infos", ["clientId": .string(client), "role": .string(role)])
      }
    }
    let silenced = members.filter(\.member.isMuted).map(\.member.user.id.rawValue)
    if !silenced.isEmpty {
      _ = try await call(
        "POST", "/1.2/rtm/conversations/\(path)/permanent-silenceds", ["client_ids": .strings(silenced)])
    }
  }

  public func putAttachment(
    _ attachment: Attachment, bytes: [UInt8], in channel: ChannelID
  ) async throws(ChatError) -> Attachment {
    var stored = attachment
    stored.url = try await LeanCloudFiles(rest: rest).upload(attachment, bytes: bytes, operation: .writeDestination)
    stored.source = nil
    return stored
  }

  // MARK: Messages

  public func putMessages(
    _ messages: [MessageRecord], in channel: ChannelID
  ) async throws(ChatError) -> [PutOutcome<MessageID>] {
    var outcomes: [PutOutcome<MessageID>] = []
    for record in messages {
      do { outcomes.append(.written(try await put(record, in: channel))) } catch {
        // What was refused for itself does not stop the rest; a broken line or a full minute does.
        switch error.kind {
        case .invalidArgument, .tooLarge, .permission: outcomes.append(.refused(error))
        default:
          if outcomes.isEmpty { throw error }
          outcomes += Array(repeating: .refused(error), count: messages.count - outcomes.count)
          return outcomes
        }
      }
    }
    return outcomes
  }

  func encoded(_ record: MessageRecord, in channel: ChannelID, from: String) -> LeanCloudBody.Encoded {
    let message = record.message
    let origin =
      record.origin ?? Origin(vendor: "unknown", id: message.id?.rawValue ?? "", channel: message.channel)
    return LeanCloudBody.encode(
      message, origin: origin, keeping: Self.keptFields, maximumMentions: Self.mentionLimit,
      signedBy: LeanCloudSigner(rest.envelopes.key, channel: channel.rawValue, from: from))
  }

  private func put(_ record: MessageRecord, in channel: ChannelID) async throws(ChatError) -> MessageID {
    let author = record.message.sender?.rawValue ?? Self.service
    let encoded = encoded(record, in: channel, from: author)
    let sender = JSONValue.string(author)
    let path = try await path(of: channel)
    var body: JSONObject = ["message": .string(encoded.text), "transient": false, "no_sync": true]
    if !encoded.mentions.isEmpty { body["mention_client_ids"] = .strings(encoded.mentions) }
    if encoded.mentionsAll { body["mention_all"] = true }
    let answer: JSONValue
    if path == "service-conversations" {
      // The newer path wants receivers, and a broadcast would be pushed to every subscriber.
      body["from_peer"] = sender
      body["conv_id"] = .string(channel.rawValue)
      answer = try await call("POST", "/1.1/rtm/messages", body)
    } else {
      body["from_client"] = sender
      answer = try await call("POST", "/1.2/rtm/\(path)/\(LeanCloudREST.percent(channel.rawValue))/messages", body)
    }
    guard let id = answer["msg-id"]?.string else {
      throw ChatError(.protocolViolation, operation: .writeDestination, detail: "a message without msg-id")
    }
    return MessageID(id)
  }

  /// The author of notices of the service.
  static let service = "_service"
  static let keptFields: Set<MessageField> = [.createdAt, .editedAt, .sender]

  public func finishChannel(
    _ channel: ChannelID, original: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) {}

  public func existing(in channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<
    ExistingMessage
  > {
    let source = LeanCloudSource(rest: rest, clock: clock)
    let page = try await source.messages(in: channel, after: cursor)
    let items = page.items.compactMap { record -> ExistingMessage? in
      guard let origin = record.origin, let id = record.message.id else { return nil }
      return ExistingMessage(origin: origin, id: id)
    }
    return SourcePage(items: items, next: page.next)
  }
}
