import ChatInterchange
import ChatJSON
import ChatTransport
import LeanCloudWire
import UnifiedChat

/// Reads everything that chat holds of an app, with the master key: users, conversations of every kind with their own
/// columns, members with roles and silences, the whole history, files.
///
/// History lives six months at the vendor unless paid for, so what is not read in time is gone. All rows come with
/// their raw form.
public struct LeanCloudSource: ChatSource {
  public let vendor: VendorName = "leancloud"
  public let capabilities: CapabilitySet
  let rest: LeanCloudREST
  /// The column of `_User` that holds the client id.
  let userIDColumn: String
  let model: LeanCloudModel
  /// Rows and messages a request; the vendor's maximum.
  static let pageSize = 1000

  public init(profile: Profile, environment: AdapterEnvironment, transports: Transports) throws(ChatError) {
    model = try LeanCloudModel(profile)
    rest = LeanCloudREST(profile: profile, environment: environment, http: transports.http)
    guard !rest.appID.isEmpty else {
      throw ChatError(.invalidArgument(field: "appID"), operation: .readSource, detail: "the profile names no appID")
    }
    userIDColumn = try LeanCloudProfile.text("userIDColumn", profile) ?? "objectId"
    capabilities = model == .session ? LeanCloudCapabilities.session : LeanCloudCapabilities.conversation
  }

  /// Reads back what a destination with the same keys wrote.
  init(rest: LeanCloudREST) {
    self.rest = rest
    model = .conversation
    userIDColumn = "objectId"
    capabilities = LeanCloudCapabilities.conversation
  }

  public func check() async throws(ChatError) -> SourceCheck {
    let channels = try await count(model == .session ? "AVOSRealtimeGroups" : "_Conversation")
    let users = try await count("_User")
    return SourceCheck(
      users: users, channels: channels, requestsPerSecond: 30,
      notes: [
        "history lives six months at the vendor unless paid for; conversations idle for six months are deleted",
        "REST allows 1,800 message requests a minute on an ordinary plan, 120 on a development plan",
      ])
  }

  private func count(_ name: String) async throws(ChatError) -> Int? {
    let answer = try await rest.call(
      "GET", "/1.1/classes/\(name)", query: [("limit", "0"), ("count", "1")], key: .master, operation: .readSource)
    return answer["count"]?.int.flatMap { Int(exactly: $0) }
  }

  // MARK: Rows

  /// A page of a class by object id: such a cursor stays good for ever, a scan's dies after ten minutes.
  private func rows(
    _ name: String, after cursor: Cursor?, where condition: JSONObject = JSONObject()
  ) async throws(ChatError) -> (rows: [JSONObject], next: Cursor?) {
    var condition = condition
    if let cursor { condition["objectId"] = ["$gt": .string(cursor.rawValue)] }
    var query = [("order", "objectId"), ("limit", String(Self.pageSize))]
    if !condition.isEmpty { query.append(("where", JSONValue.object(condition).text())) }
    let answer = try await rest.call(
      "GET", "/1.1/classes/\(name)", query: query, key: .master, operation: .readSource)
    guard let results = answer["results"]?.array else {
      throw ChatError(.protocolViolation, operation: .readSource, detail: "\(name) came without results")
    }
    let rows = results.compactMap(\.object)
    return (rows, rows.last?["objectId"]?.string.map { Cursor($0) })
  }

  public func users(after cursor: Cursor?) async throws(ChatError) -> SourcePage<UserRecord> {
    let page = try await rows("_User", after: cursor)
    var items: [UserRecord] = []
    var unreadable: [UnreadableRecord] = []
    for row in page.rows {
      let read = LeanCloudUser.user(row, idColumn: userIDColumn)
      let raw = JSONText(unchecked: JSONValue.object(row).text())
      if read.user.id.rawValue.isEmpty {
        unreadable.append(UnreadableRecord(kind: "user", reason: "no \(userIDColumn)", raw: raw))
      } else {
        items.append(UserRecord(user: read.user, origin: read.origin, raw: raw))
      }
    }
    return SourcePage(items: items, unreadable: unreadable, next: page.next)
  }

  public func channels(after cursor: Cursor?) async throws(ChatError) -> SourcePage<ChannelRecord> {
    if model == .session { return try await firstModelChannels(after: cursor) }
    let page = try await rows("_Conversation", after: cursor)
    var items: [ChannelRecord] = []
    var unreadable: [UnreadableRecord] = []
    for row in page.rows {
      let raw = JSONText(unchecked: JSONValue.object(row).text())
      if let read = LeanCloudConversation.channel(row) {
        items.append(ChannelRecord(channel: read.channel, origin: read.origin, raw: raw))
      } else {
        unreadable.append(UnreadableRecord(kind: "channel", reason: "no objectId", raw: raw))
      }
    }
    return SourcePage(items: items, unreadable: unreadable, next: page.next)
  }

  private func object(_ channel: ChannelID) async throws(ChatError) -> JSONObject {
    let name = model == .session ? "AVOSRealtimeGroups" : "_Conversation"
    let answer = try await rest.call(
      "GET", "/1.1/classes/\(name)/\(LeanCloudREST.percent(channel.rawValue))", key: .master, operation: .readSource)
    return answer.object ?? JSONObject()
  }

  // MARK: Members

  /// All members at once: the vendor keeps at most 500. Subscribers of a service conversation come page by page.
  public func members(of channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MemberRecord> {
    if let cursor { return try await subscribers(of: channel, after: cursor.rawValue) }
    if model == .session, LeanCloudPair.peers(of: channel) != nil { return pairMembers(channel) }
    let row = try await object(channel)
    if row["sys"]?.bool == true { return try await subscribers(of: channel, after: nil) }
    guard row["tr"]?.bool != true || model == .session else { return SourcePage(items: [], next: nil) }
    let roles = try await roles(of: channel)
    let silenced = try await silenced(in: channel)
    let items = (row["m"]?.array ?? []).compactMap(\.string).map { client in
      let id = UserID(client)
      var member = Member(user: User(id: id), role: roles[id] ?? .member)
      member.isMuted = silenced.contains(id)
      return MemberRecord(channel: channel, member: member)
    }
    return SourcePage(items: items, next: nil)
  }

  private func pairMembers(_ channel: ChannelID) -> SourcePage<MemberRecord> {
    let peers = LeanCloudPair.peers(of: channel) ?? []
    return SourcePage(
      items: peers.map { MemberRecord(channel: channel, member: Member(user: User(id: $0))) }, next: nil)
  }

  private func roles(of channel: ChannelID) async throws(ChatError) -> [UserID: MemberRole] {
    guard model == .conversation else { return [:] }
    var roles: [UserID: MemberRole] = [:]
    var walk = PageWalk()
    var cursor: Cursor?
    repeat {
      try walk.advance(to: cursor?.rawValue ?? "", .readSource)
      let page: (rows: [JSONObject], next: Cursor?)
      do {
        page = try await rows(
          "_ConversationMemberInfo", after: cursor, where: ["cid": .string(channel.rawValue)])
      } catch where error.kind == .notFound {
        // An app that never gave a role has no such class.
        return roles
      }
      for row in page.rows {
        if let client = row["clientId"]?.string, let role = row["role"]?.string {
          roles[UserID(client)] = LeanCloudConversation.role(named: role)
        }
      }
      cursor = page.next
    } while cursor != nil
    return roles
  }

  private func silenced(in channel: ChannelID) async throws(ChatError) -> Set<UserID> {
    guard model == .conversation else { return [] }
    var silenced: Set<UserID> = []
    var walk = PageWalk()
    var next: String?
    repeat {
      try walk.advance(to: next ?? "", .readSource)
      var query = [("limit", "100")]
      if let next { query.append(("next", next)) }
      let answer = try await rest.call(
        "GET", "/1.2/rtm/conversations/\(LeanCloudREST.percent(channel.rawValue))/permanent-silenceds", query: query,
        key: .master, operation: .readSource)
      for client in answer["client_ids"]?.array ?? [] { if let id = client.string { silenced.insert(UserID(id)) } }
      next = answer["next"]?.string
    } while next != nil
    return silenced
  }

  private func subscribers(of channel: ChannelID, after last: String?) async throws(ChatError) -> SourcePage<MemberRecord> {
    var query = [("limit", "50")]
    if let last { query.append(("client_id", last)) }
    let answer = try await rest.call(
      "GET", "/1.2/rtm/service-conversations/\(LeanCloudREST.percent(channel.rawValue))/subscribers", query: query,
      key: .master, operation: .readSource)
    var items: [MemberRecord] = []
    for row in answer.array ?? [] {
      guard let client = row["subscriber"]?.string else { continue }
      var member = Member(user: User(id: UserID(client)))
      member.joinedAt = row["timestamp"]?.int.map { Timestamp(milliseconds: $0) }
      items.append(MemberRecord(channel: channel, member: member, raw: JSONText(unchecked: row.text())))
    }
    return SourcePage(items: items, next: items.last.map { Cursor($0.member.user.id.rawValue) })
  }

  // MARK: Messages

  public func messages(in channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MessageRecord> {
    if model == .session { return try await firstModelMessages(in: channel, after: cursor) }
    let place = try LeanCloudCursor(cursor)
    let kind: String
    if let place { kind = place.kind } else { kind = Self.path(of: try await object(channel)) }
    let path = "/1.2/rtm/\(kind)/\(LeanCloudREST.percent(channel.rawValue))/messages"
    return try await history(path, query: [], in: channel, kind: kind, after: place)
  }

  private static func path(of row: JSONObject) -> String {
    if row["sys"]?.bool == true { return "service-conversations" }
    return row["tr"]?.bool == true ? "chatrooms" : "conversations"
  }

  /// Oldest first. Ends with an empty page, since a server may give fewer than asked.
  func history(
    _ path: String, query: [(String, String)], in channel: ChannelID, kind: String, after place: LeanCloudCursor?
  ) async throws(ChatError) -> SourcePage<MessageRecord> {
    var query = query + [("reversed", "true"), ("limit", String(Self.pageSize))]
    if let place {
      query.append(("timestamp", String(place.timestamp)))
      query.append(("msgid", place.id))
    }
    let answer = try await rest.call("GET", path, query: query, key: .master, operation: .readSource)
    guard let rows = answer.array else {
      throw ChatError(.protocolViolation, operation: .readSource, detail: "history is not an array")
    }
    var page = SourcePage<MessageRecord>(items: [], next: nil)
    for row in rows {
      read(row, channel, into: &page)
      if let time = row["timestamp"]?.int, let id = row["msg-id"]?.string {
        page.next = LeanCloudCursor(kind: kind, timestamp: time, id: id).cursor
      }
    }
    return page
  }

  private func read(_ row: JSONValue, _ channel: ChannelID, into page: inout SourcePage<MessageRecord>) {
    let raw = JSONText(unchecked: row.text())
    guard let stored = LeanCloudStoredMessage(history: row, channel: channel.rawValue) else {
      page.unreadable.append(
        UnreadableRecord(
          kind: "message", id: row["msg-id"]?.string, channel: channel, reason: "msg-id, timestamp or data is missing",
          raw: raw))
      return
    }
    do {
      let decoded = try LeanCloudBody.decode(stored)
      page.items.append(MessageRecord(message: decoded.message, origin: decoded.origin, raw: raw))
    } catch {
      page.unreadable.append(
        UnreadableRecord(kind: "message", id: stored.id, channel: channel, reason: error.description, raw: raw))
    }
  }

  // MARK: Files

  public func download(
    _ attachment: Attachment, to sink: @escaping @Sendable ([UInt8]) async throws(ChatError) -> Void
  ) async throws(ChatError) {
    let bytes = try await LeanCloudFiles(rest: rest).download(attachment, limit: .max, operation: .download)
    var rest = bytes[...]
    repeat {
      try await sink(Array(rest.prefix(1 << 20)))
      rest = rest.dropFirst(1 << 20)
    } while !rest.isEmpty
  }
}

/// Where the reading of a history stopped: `conversations/1700000000000/<message id>`.
struct LeanCloudCursor: Sendable, Hashable {
  var kind: String
  var timestamp: Int64
  var id: String

  init(kind: String, timestamp: Int64, id: String) {
    self.kind = kind
    self.timestamp = timestamp
    self.id = id
  }

  init?(_ cursor: Cursor?) throws(ChatError) {
    guard let cursor else { return nil }
    let parts = cursor.rawValue.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, let time = Int64(parts[1]) else {
      throw ChatError(.invalidArgument(field: "cursor"), operation: .readSource, detail: "no cursor of this source")
    }
    self.init(kind: String(parts[0]), timestamp: time, id: String(parts[2]))
  }

  var cursor: Cursor { Cursor("\(kind)/\(timestamp)/\(id)") }
}

extension LeanCloudStoredMessage {
  /// An item of REST history; its keys have hyphens. Patch time and mentions are in it where the server tells them.
  init?(history row: JSONValue, channel: String) {
    guard let id = row["msg-id"]?.string, let time = row["timestamp"]?.int, let data = row["data"]?.string else {
      return nil
    }
    self.init(
      channel: channel, id: id, from: row["from"]?.string ?? "", timestamp: time, data: data,
      isBinary: row["bin"]?.bool ?? false, patchTimestamp: row["patch-timestamp"]?.int,
      mentions: row["mention-pids"]?.array?.compactMap(\.string) ?? [],
      mentionsAll: row["mention-all"]?.bool ?? false)
  }
}
