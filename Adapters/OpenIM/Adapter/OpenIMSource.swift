import ChatInterchange
import ChatJSON
import ChatTransport
import OpenIMWire
import UnifiedChat

/// Reads a whole server as its admin.
///
/// Users and groups come by pages; single chats by the conversation lists of the users; messages by sequence number
/// through members of each conversation; what all who are asked have deleted or cleared is reported. Lists are
/// numbered pages at the vendor, so a reading wants a server that is not being filled at the same time; messages do
/// not mind.
public actor OpenIMSource: ChatSource {
  public nonisolated let vendor: VendorName = "openim"
  public nonisolated var capabilities: CapabilitySet { OpenIMCapabilities.native }

  let admin: OpenIMAdmin
  let clock: any ChatClock
  /// Through whom a conversation is read, the one who sees most of it first.
  var readers: [ChannelID: [OpenIMReader]] = [:]
  /// Of conversations in which the first of them has deleted something: all who may be asked.
  var others: [ChannelID: [OpenIMReader]] = [:]
  private var pairs: [ChannelID: [String]] = [:]
  /// The last page of each list that was read: its number, and what it began with.
  private var lastPages: [String: (number: Int, first: String)] = [:]

  static let userPage = 200
  static let groupPage = 100
  static let memberPage = 100
  static let messagePage: Int64 = 500
  static let width = 8
  /// Numbers behind it are nobody's, and products with them would not fit.
  private static let lastPage = 1 << 40

  init(admin: OpenIMAdmin, clock: any ChatClock) {
    self.admin = admin
    self.clock = clock
  }

  public init(
    profile: Profile, environment: AdapterEnvironment, transports: Transports
  ) throws(ChatError) {
    self.init(
      admin: try OpenIMAdmin(profile: profile, environment: environment, http: transports.http),
      clock: environment.clock)
  }

  func call(_ path: String, _ body: JSONValue) async throws(ChatError) -> JSONValue {
    try await admin.call(path, body, for: .readSource)
  }

  public func check() async throws(ChatError) -> SourceCheck {
    let page = OpenIMAdmin.page(1, size: 1)
    let users = try await call("/user/get_users", ["pagination": page])
    let groups = try await call("/group/get_groups", ["pagination": page])
    return SourceCheck(
      users: users["total"]?.int.flatMap { Int(exactly: $0) },
      channels: groups["total"]?.int.flatMap { Int(exactly: $0) },
      notes: ["channels counts the groups; single chats are found by reading the users' lists"],
      leftOut: OpenIMRows.leftOut)
  }

  // MARK: Users

  public func users(after cursor: Cursor?) async throws(ChatError) -> SourcePage<UserRecord> {
    let number = try pageNumber(cursor, prefix: "")
    let (users, isLast) = try await userPage(number, size: Self.userPage)
    var page = SourcePage<UserRecord>(items: [], next: isLast ? nil : Cursor(String(number + 1)))
    for json in users {
      guard let (record, finding) = Self.userRecord(json, view) else { continue }
      page.add(record, "user", id: record.user.id.rawValue, finding)
    }
    return page
  }

  /// - Throws: `.invalidArgument` for a cursor that is not ours.
  func pageNumber(_ cursor: Cursor?, prefix: String) throws(ChatError) -> Int {
    guard let cursor else { return 1 }
    guard cursor.rawValue.hasPrefix(prefix), let number = Int(cursor.rawValue.dropFirst(prefix.count)),
      (1...Self.lastPage).contains(number)
    else { throw ChatError(.invalidArgument(field: "cursor"), operation: .readSource) }
    return number
  }

  /// A server without an end of pages repeats one.
  private func requireNew(_ list: String, _ number: Int, _ first: JSONValue?) throws(ChatError) {
    guard let first = first?.text() else { return }
    if let last = lastPages[list], last.number == number - 1, last.first == first {
      throw ChatError(
        .protocolViolation, operation: .readSource, detail: "the server's list of \(list) does not move on: a page comes twice")
    }
    lastPages[list] = (number, first)
  }

  func userPage(_ number: Int, size: Int) async throws(ChatError) -> (users: [JSONValue], isLast: Bool) {
    let data = try await call("/user/get_users", ["pagination": OpenIMAdmin.page(number, size: size)])
    let users = data["users"]?.array ?? []
    try requireNew("users of \(size)", number, users.first)
    let total = data["total"]?.int ?? 0
    return (users, users.isEmpty || Int64(number) * Int64(size) >= total)
  }

  nonisolated var view: EnvelopeView { .tool(admin.envelopes) }

  static func userRecord(
    _ json: JSONValue, _ view: EnvelopeView
  ) -> (record: UserRecord, finding: EnvelopeFinding?)? {
    guard let id = json["userID"]?.string, (json["appMangerLevel"]?.int ?? 0) < 2 else { return nil }
    let (extra, finding) = OpenIMExtra.read(json["ex"]?.string ?? "", view, at: .user(id))
    var user = User(
      id: UserID(id), name: json["nickname"]?.nonEmptyString, avatarURL: json["faceURL"]?.nonEmptyString,
      customData: extra.customData)
    if let name = extra.kept["name"]?.string { user.name = name }
    if let avatar = extra.kept["avatarURL"]?.string { user.avatarURL = avatar }
    let record = UserRecord(
      user: user, isPlaceholder: extra.kept["placeholder"]?.bool ?? false, origin: extra.origin,
      raw: extra.origin == nil ? JSONText(unchecked: json.text()) : nil)
    return (record, finding)
  }

  // MARK: Channels

  /// First the groups, then the single chats of one page of users after another.
  public func channels(after cursor: Cursor?) async throws(ChatError) -> SourcePage<ChannelRecord> {
    if let cursor, cursor.rawValue.hasPrefix("u") {
      return try await singleChats(page: try pageNumber(cursor, prefix: "u"))
    }
    let number = try pageNumber(cursor, prefix: "g")
    let data = try await call("/group/get_groups", ["pagination": OpenIMAdmin.page(number, size: Self.groupPage)])
    let groups = (data["groups"]?.array ?? []).compactMap { $0["groupInfo"] }
    try requireNew("groups", number, groups.first)
    let isLast = groups.isEmpty || Int64(number) * Int64(Self.groupPage) >= data["total"]?.int ?? 0
    var page = SourcePage<ChannelRecord>(items: [], next: Cursor(isLast ? "u1" : "g\(number + 1)"))
    for group in groups {
      guard let (record, finding) = Self.channelRecord(group: group, view) else { continue }
      page.add(record, "channel", id: record.channel.id.rawValue, finding)
    }
    return page
  }

  static func channelRecord(
    group json: JSONValue, _ view: EnvelopeView
  ) -> (record: ChannelRecord, finding: EnvelopeFinding?)? {
    guard let id = json["groupID"]?.string else { return nil }
    let (extra, finding) = OpenIMExtra.read(
      json["ex"]?.string ?? "", view, at: .channel(OpenIMConversationID.group(id)))
    var channel = Channel(
      id: ChannelID(OpenIMConversationID.group(id)), kind: .group, name: json["groupName"]?.nonEmptyString,
      coverURL: json["faceURL"]?.nonEmptyString)
    channel.isFrozen = json["status"]?.int == 3
    channel.createdAt = json["createTime"]?.int.map { Timestamp(milliseconds: $0) }
    channel.createdBy = json["creatorUserID"]?.nonEmptyString.map { UserID($0) }
    OpenIMKeeping.restore(extra, to: &channel)
    let record = ChannelRecord(
      channel: channel, origin: extra.origin,
      raw: extra.origin == nil ? JSONText(unchecked: json.text()) : nil)
    return (record, finding)
  }

  private func singleChats(page number: Int) async throws(ChatError) -> SourcePage<ChannelRecord> {
    let (users, isLast) = try await userPage(number, size: Self.userPage)
    let ids = users.compactMap { $0["userID"]?.string }
    let admin = admin
    let lists = try await concurrently(ids, width: Self.width) { (id) async throws(ChatError) in
      try await admin.call("/conversation/get_all_conversations", ["ownerUserID": .string(id)], for: .readSource)
    }
    var page = SourcePage<ChannelRecord>(items: [], next: isLast ? nil : Cursor("u\(number + 1)"))
    let owned = try await ownedByFirst(Array(zip(ids, lists)))
    for (id, list) in zip(ids, lists) {
      for json in list["conversations"]?.array ?? [] where !owned.contains("\(id)/\(json["conversationID"]?.string ?? "")") {
        if let (record, finding) = Self.channelRecord(single: json, view) {
          page.add(record, "channel", id: record.channel.id.rawValue, finding)
        } else if let record = Self.channelRecord(service: json) {
          page.items.append(record)
        }
      }
    }
    return page
  }

  /// Both users list a chat; it is taken from the one whose id comes first, unless that one has removed it.
  /// - Returns: `owner/conversation` of those that the other one lists as well.
  private func ownedByFirst(_ lists: [(String, JSONValue)]) async throws(ChatError) -> Set<String> {
    func ids(_ list: JSONValue?) -> [String] { list?.array?.compactMap { $0["conversationID"]?.string } ?? [] }
    let here = Dictionary(lists.map { ($0.0, Set(ids($0.1["conversations"]))) }) { $1 }
    var asked: [String: Set<String>] = [:]
    var second: [(owner: String, peer: String, id: String)] = []
    for (owner, list) in lists {
      for json in list["conversations"]?.array ?? [] where json["conversationType"]?.int == OpenIMSessionType.single {
        guard let id = json["conversationID"]?.string, let peer = json["userID"]?.string,
          peer.utf8.lexicographicallyPrecedes(owner.utf8)
        else { continue }
        second.append((owner, peer, id))
        if here[peer] == nil { asked[peer, default: []].insert(id) }
      }
    }
    let admin = admin
    let peers = asked.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    let answers = try await concurrently(peers, width: Self.width) { (peer, ids) async throws(ChatError) in
      try await admin.call(
        "/conversation/get_conversations",
        ["ownerUserID": .string(peer), "conversationIDs": .array(ids.sorted().map { .string($0) })], for: .readSource)
    }
    let elsewhere = Dictionary(zip(peers.map(\.key), answers.map { Set(ids($0["conversations"])) })) { $1 }
    return Set(
      second.filter { (here[$0.peer] ?? elsewhere[$0.peer])?.contains($0.id) == true }.map { "\($0.owner)/\($0.id)" })
  }

  static func channelRecord(
    single json: JSONValue, _ view: EnvelopeView
  ) -> (record: ChannelRecord, finding: EnvelopeFinding?)? {
    guard json["conversationType"]?.int == OpenIMSessionType.single, let id = json["conversationID"]?.string,
      json["userID"]?.string != nil
    else { return nil }
    let (extra, finding) = OpenIMExtra.read(json["ex"]?.string ?? "", view, at: .channel(id))
    var channel = Channel(id: ChannelID(id), kind: .direct)
    // The app's own text there is one user's, not the channel's.
    if extra.origin != nil { OpenIMKeeping.restore(extra, to: &channel) }
    let record = ChannelRecord(
      channel: channel, origin: extra.origin,
      raw: extra.origin == nil ? JSONText(unchecked: json.text()) : nil)
    return (record, finding)
  }

  /// What a notification account said to one user.
  private static func channelRecord(service json: JSONValue) -> ChannelRecord? {
    guard json["conversationType"]?.int == OpenIMSessionType.service, let id = json["conversationID"]?.string else {
      return nil
    }
    return ChannelRecord(channel: Channel(id: ChannelID(id), kind: .service), raw: JSONText(unchecked: json.text()))
  }

  // MARK: Members

  public func members(of channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MemberRecord> {
    guard let group = OpenIMConversationID.groupID(of: channel.rawValue) else {
      return SourcePage(items: try await pairMembers(channel), next: nil)
    }
    let number = try pageNumber(cursor, prefix: "")
    let data = try await call(
      "/group/get_group_member_list",
      [
        "groupID": .string(group), "filter": 0, "keyword": "",
        "pagination": OpenIMAdmin.page(number, size: Self.memberPage),
      ])
    let list = data["members"]?.array ?? []
    try requireNew("members of \(group)", number, list.first)
    let now = clock.now
    let importer = admin.userID
    // An imported group without an owner is owned by the importing admin, who is no member of it for us.
    let found = list.compactMap { Self.member($0, of: group, now: now, view) }.filter {
      !($0.isImporter && $0.member.user.id == UserID(importer))
    }
    let members = try await withReadMarks(found.map(\.member), in: channel)
    let isLast = list.isEmpty || Int64(number) * Int64(Self.memberPage) >= data["total"]?.int ?? 0
    if isLast { lastPages["members of \(group)"] = nil }
    var page = SourcePage<MemberRecord>(items: [], next: isLast ? nil : Cursor(String(number + 1)))
    for (member, found) in zip(members, found) {
      page.add(
        MemberRecord(channel: channel, member: member), "member", id: member.user.id.rawValue, in: channel,
        found.finding)
    }
    return page
  }

  private static func member(
    _ json: JSONValue, of group: String, now: Timestamp, _ view: EnvelopeView
  ) -> (member: Member, isImporter: Bool, finding: EnvelopeFinding?)? {
    guard let id = json["userID"]?.string else { return nil }
    var member = Member(user: User(id: UserID(id), name: json["nickname"]?.nonEmptyString))
    member.role = OpenIMMapping.role(json["roleLevel"]?.int)
    member.joinedAt = json["joinTime"]?.int.map { Timestamp(milliseconds: $0) }
    if let end = json["muteEndTime"]?.int, end > now.milliseconds {
      member.isMuted = true
      member.mutedUntil = Timestamp(milliseconds: end)
    }
    let (extra, finding) = OpenIMExtra.read(json["ex"]?.string ?? "", view, at: .member(id, channel: group))
    OpenIMKeeping.restore(extra.kept, to: &member)
    return (member, extra.kept["importer"]?.bool == true, finding)
  }

  private func withReadMarks(_ members: [Member], in channel: ChannelID) async throws(ChatError) -> [Member] {
    let admin = admin
    return try await concurrently(members, width: Self.width) { (member) async throws(ChatError) in
      var member = member
      let data = try await admin.call(
        "/msg/get_conversations_has_read_and_max_seq",
        ["userID": .string(member.user.id.rawValue), "conversationIDs": [.string(channel.rawValue)]],
        for: .readSource)
      let read = data["seqs"]?[channel.rawValue]?["hasReadSeq"]?.int ?? 0
      member.readPosition = read > 0 ? MessagePosition(sequence: read) : nil
      return member
    }
  }

  private func pairMembers(_ channel: ChannelID) async throws(ChatError) -> [MemberRecord] {
    let pair = try await pair(of: channel)
    let isService = OpenIMConversationID.isService(channel.rawValue)
    var record = try await conversation(channel, of: pair[0], with: pair[1])
    if record == nil, !isService { record = try await conversation(channel, of: pair[1], with: pair[0]) }
    let (extra, _) = OpenIMExtra.read(record?["ex"]?.string ?? "", view, at: .channel(channel.rawValue))
    let kept = extra.kept["members"]?.object ?? [:]
    // The account of a service conversation is no user.
    let people = isService ? [pair[0]] : pair
    let members = people.map { id in
      var member = Member(user: User(id: UserID(id)))
      OpenIMKeeping.restore(kept[id]?.object ?? [:], to: &member)
      return member
    }
    return try await withReadMarks(members, in: channel).map { MemberRecord(channel: channel, member: $0) }
  }

  /// The two users of a single chat: the id alone is ambiguous, so those are taken of whom the first has the chat. Of a
  /// service conversation its user comes first, then the account.
  func pair(of channel: ChannelID) async throws(ChatError) -> [String] {
    if let known = pairs[channel] { return known }
    var pairs = OpenIMConversationID.possiblePairs(of: channel.rawValue)
    if OpenIMConversationID.isService(channel.rawValue) { pairs += pairs.map { ($0.1, $0.0) } }
    // Of a single chat both have it, unless one of them has removed it.
    let isService = OpenIMConversationID.isService(channel.rawValue)
    for (one, two) in pairs {
      var isTheirs = try await conversation(channel, of: one, with: two) != nil
      if !isTheirs, !isService { isTheirs = try await conversation(channel, of: two, with: one) != nil }
      guard isTheirs else { continue }
      self.pairs[channel] = [one, two]
      return [one, two]
    }
    throw ChatError(.notFound, operation: .readSource, detail: "nobody has this conversation")
  }

  /// The user's own record of it; nil where they have none, or it is one with somebody else.
  private func conversation(
    _ channel: ChannelID, of user: String, with peer: String
  ) async throws(ChatError) -> JSONValue? {
    do {
      let data = try await call(
        "/conversation/get_conversation", ["ownerUserID": .string(user), "conversationID": .string(channel.rawValue)])
      guard let record = data["conversation"], record["userID"]?.string?.utf8.elementsEqual(peer.utf8) == true else {
        return nil
      }
      return record
    } catch {
      guard error.kind == .notFound else { throw error }
      return nil
    }
  }

  public func download(
    _ attachment: Attachment, to sink: @escaping @Sendable ([UInt8]) async throws(ChatError) -> Void
  ) async throws(ChatError) {
    guard let url = attachment.url else { throw ChatError(.notFound, operation: .download) }
    let bytes = try await admin.rest.download(url, limit: .max, for: .download)
    for start in stride(from: 0, to: bytes.count, by: 1 << 20) {
      try await sink(Array(bytes[start..<min(bytes.count, start + 1 << 20)]))
    }
  }
}

extension JSONValue {
  /// nil for "", as the vendor writes what is not there.
  var nonEmptyString: String? {
    guard let string, !string.isEmpty else { return nil }
    return string
  }
}

extension SourcePage {
  /// An item, and what stands for an envelope in it that is not believed.
  mutating func add(
    _ item: Item, _ kind: String, id: String, in channel: ChannelID? = nil, _ finding: EnvelopeFinding?
  ) {
    items.append(item)
    if let finding { unreadable.append(UnreadableRecord(envelopeOf: kind, id: id, channel: channel, finding)) }
  }
}
