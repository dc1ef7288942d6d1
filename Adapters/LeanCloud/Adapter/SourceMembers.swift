import ChatJSON
import LeanCloudWire
import UnifiedChat

extension LeanCloudSource {
  // MARK: Members

  /// All members at once: the vendor keeps at most 500. Subscribers of a service conversation come page by page. Of a
  /// conversation without a row, those who wrote in it.
  public func members(of channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MemberRecord>
  {
    if let cursor, cursor.rawValue.hasPrefix(Self.authors) {
      return try await authors(of: channel, after: Cursor(String(cursor.rawValue.dropFirst(Self.authors.count))))
    }
    if let cursor { return try await subscribers(of: channel, after: cursor.rawValue) }
    if LeanCloudPair.peers(of: channel) != nil { return pairMembers(channel) }
    guard let row = try await object(channel) else { return try await authors(of: channel, after: nil) }
    if row["sys"]?.bool == true { return try await subscribers(of: channel, after: nil) }
    guard row["tr"]?.bool != true || model == .session else { return SourcePage(items: [], next: nil) }
    return SourcePage(items: try await stored(row, channel), next: nil)
  }

  private func stored(_ row: JSONObject, _ channel: ChannelID) async throws(ChatError) -> [MemberRecord] {
    let roles = try await roles(of: channel)
    let silenced = try await clients("permanent-silenceds", of: channel)
    let members = (row["m"]?.array ?? []).compactMap(\.string).map { UserID($0) }
    let marks = try await readMarks(of: members, row, channel)
    var items = members.map { id in
      var member = Member(user: User(id: id), role: roles[id] ?? .member)
      member.isMuted = silenced.contains(id)
      member.readPosition = marks[id]
      return MemberRecord(channel: channel, member: member)
    }
    for id in try await clients("blacklists", of: channel).sorted() where !members.contains(id) {
      items.append(MemberRecord(channel: channel, member: Member(user: User(id: id), state: .banned)))
    }
    return items
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
      } catch  where error.kind == .notFound {
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

  /// A list of clients of a conversation; empty where the app does not use the feature.
  private func clients(_ list: String, of channel: ChannelID) async throws(ChatError) -> Set<UserID> {
    guard model == .conversation else { return [] }
    var found: Set<UserID> = []
    var walk = PageWalk()
    var next: String?
    repeat {
      try walk.advance(to: next ?? "", .readSource)
      var query = [("limit", "100")]
      if let next { query.append(("next", next)) }
      let answer: JSONValue
      do {
        answer = try await rest.call(
          "GET", "/1.2/rtm/conversations/\(LeanCloudREST.percent(channel.rawValue))/\(list)", query: query,
          key: .master, operation: .readSource)
      } catch {
        // 4544: the app has no blacklists; 404: the server has no such list.
        if error.kind == .notFound || error.vendor?.code == "4544" { return found }
        throw error
      }
      for client in answer["client_ids"]?.array ?? [] { if let id = client.string { found.insert(UserID(id)) } }
      next = answer["next"]?.string
    } while next != nil
    return found
  }

  // MARK: Without a row

  private static let authors = "authors:"

  private func authors(of channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MemberRecord>
  {
    let page = try await messages(in: channel, after: cursor)
    var seen: Set<UserID> = []
    var items: [MemberRecord] = []
    for sender in page.items.compactMap(\.message.sender) where seen.insert(sender).inserted {
      items.append(MemberRecord(channel: channel, member: Member(user: User(id: sender))))
    }
    return SourcePage(items: items, next: page.next.map { Cursor(Self.authors + $0.rawValue) })
  }

  // MARK: Read marks

  /// The service tells no marks over REST, but how many messages of a conversation a client has not read: the mark
  /// stands before that many of the newest ones of others.
  private func readMarks(
    of members: [UserID], _ row: JSONObject, _ channel: ChannelID
  ) async throws(ChatError) -> [UserID: MessagePosition] {
    switch options.readMarks {
    case .none: return [:]
    case .direct: guard members.count <= 2 else { return [:] }
    case .all: break
    }
    guard model == .conversation, row["lm"] != nil, !members.isEmpty else { return [:] }
    let path = "/1.2/rtm/conversations/\(LeanCloudREST.percent(channel.rawValue))/messages"
    let newest = try await metered(path, query: [("limit", String(Self.pageSize))])
      .compactMap { LeanCloudStoredMessage(history: $0, channel: channel.rawValue) }
    guard !newest.isEmpty else { return [:] }
    var marks: [UserID: MessagePosition] = [:]
    for member in members {
      let answer = try await rest.call(
        "GET", "/1.2/rtm/clients/\(LeanCloudREST.percent(member.rawValue))/unread-count",
        query: [("conv_id", channel.rawValue)], key: .master, operation: .readSource)
      guard let count = answer["count"]?.int else { continue }
      marks[member] = Self.mark(before: count, of: newest, for: member)
    }
    return marks
  }

  /// - Parameter newest: the newest messages, newest first. nil: the mark lies before them.
  static func mark(before count: Int64, of newest: [LeanCloudStoredMessage], for user: UserID) -> MessagePosition? {
    var left = count
    for message in newest {
      let isCounted = UserID(message.from) != user && message.data != LeanCloudBody.recalledText
      if isCounted, left > 0 {
        left -= 1
        continue
      }
      if left == 0 {
        return MessagePosition(time: Timestamp(milliseconds: message.timestamp), id: MessageID(message.id))
      }
    }
    return nil
  }

  // MARK: Service conversations

  private func subscribers(of channel: ChannelID, after last: String?) async throws(ChatError) -> SourcePage<
    MemberRecord
  > {
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
}
