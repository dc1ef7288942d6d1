import ChatCrypto
import ChatInterchange
import ChatJSON
import ChatTransport
import OpenIMWire
import UnifiedChat

/// Writes history as the admin: `send_msg` with the original time and sender, one message of a channel after the other.
///
/// The server gives sequence numbers in the order of arrival and does not deduplicate, so a channel's messages must
/// come in order, from one writer, and `existing` must be asked before a channel that a stopped run may have touched.
/// Each item's origin, and what the server has no place for, stands in `ex`.
public actor OpenIMDestination: ChatDestination {
  public nonisolated let vendor: VendorName = "openim"
  public nonisolated var capabilities: CapabilitySet { OpenIMCapabilities.native }
  public nonisolated let limits = DestinationLimits(batch: 100, messagesPerRequest: 1, parallelChannels: 16)

  public nonisolated var signingKey: String? { key?.fingerprint }

  let admin: OpenIMAdmin
  let source: OpenIMSource
  /// Groups made or completed by this run, by the members that they are to have in the end.
  private var written: [ChannelID: Kind] = [:]
  /// Made by earlier runs, as their ledger says.
  private var resumed: [Origin: ChannelID] = [:]

  enum Kind {
    case group(String)
    case pair([String])
  }

  /// Elements of a list in one call; the server takes 1,000.
  static let listSize = 500

  public init(
    profile: Profile, environment: AdapterEnvironment, transports: Transports
  ) throws(ChatError) {
    admin = try OpenIMAdmin(profile: profile, environment: environment, http: transports.http)
    source = OpenIMSource(admin: admin, clock: environment.clock)
  }

  nonisolated var key: EnvelopeKey? { admin.envelopes.key }
  nonisolated var view: EnvelopeView { .tool(admin.envelopes) }

  @discardableResult
  func call(_ path: String, _ body: JSONValue) async throws(ChatError) -> JSONValue {
    try await admin.call(path, body, for: .writeDestination)
  }

  // MARK: What cannot be kept as it is

  public nonisolated func losses(of record: Record) -> [Loss] {
    switch record {
    case .user(let record): Self.losses(of: record)
    case .channel(let record): OpenIMKeeping.losses(of: record.channel)
    case .member(let record): OpenIMKeeping.losses(of: record.member)
    case .file: []
    case .message(let record): Self.losses(of: record.message)
    }
  }

  private static func losses(of record: UserRecord) -> [Loss] {
    guard OpenIMKeeping.userID(record.user.id) != record.user.id.rawValue else { return [] }
    return [
      Loss(
        field: "user.id", treatment: .keptElsewhere,
        explanation: "ids hold letters, digits and _ only; the original one is kept in the user's ex")
    ]
  }

  private static func losses(of message: Message) -> [Loss] {
    let outgoing = Self.outgoing(message, sender: message.sender?.rawValue ?? "", origin: nil)
    return outgoing.extra.kept.keys.map { field in
      Loss(field: "message.\(field)", treatment: .keptElsewhere, explanation: "kept in the message's ex")
    }
  }

  /// A time of 0 is what the import takes for "now".
  private static func outgoing(_ message: Message, sender: String, origin: Origin?) -> OpenIMOutgoing {
    var outgoing = OpenIMOutgoing(message, sender: sender, form: .import, origin: origin)
    if message.createdAt.milliseconds == 0 { outgoing.extra.kept["createdAt"] = 0 }
    return outgoing
  }

  // MARK: Users

  public func putUsers(_ users: [UserRecord]) async throws(ChatError) -> [PutOutcome<UserID>] {
    var outcomes: [PutOutcome<UserID>] = []
    for start in stride(from: 0, to: users.count, by: Self.listSize) {
      outcomes += try await putSome(Array(users[start..<min(users.count, start + Self.listSize)]))
    }
    return outcomes
  }

  private func putSome(_ users: [UserRecord]) async throws(ChatError) -> [PutOutcome<UserID>] {
    let wanted = users.map { wire($0) }
    let ids = wanted.map { $0["userID"] ?? "" }
    let data = try await call("/user/get_users_info", ["userIDs": .array(ids)])
    var known: [UserID: JSONValue] = [:]
    for json in data["usersInfo"]?.array ?? [] {
      if let id = json["userID"]?.string { known[UserID(id)] = json }
    }
    var fresh: [JSONValue] = []
    var seen: Set<UserID> = []
    for user in wanted {
      let id = UserID(user["userID"]?.string ?? "")
      if known[id] == nil, seen.insert(id).inserted { fresh.append(.object(user)) }
    }
    if !fresh.isEmpty { try await call("/user/user_register", ["users": .array(fresh)]) }
    var outcomes: [PutOutcome<UserID>] = []
    for user in wanted {
      let id = UserID(user["userID"]?.string ?? "")
      guard let old = known[id] else {
        outcomes.append(.written(id))
        continue
      }
      if user.allSatisfy({ old[$0.key] == $0.value }) {
        outcomes.append(.existed(id))
      } else {
        try await call("/user/update_user_info_ex", ["userInfo": .object(user)])
        outcomes.append(.written(id))
      }
    }
    return outcomes
  }

  private func wire(_ record: UserRecord) -> JSONObject {
    var kept = JSONObject()
    if record.user.name == "" { kept["name"] = "" }
    if record.user.avatarURL == "" { kept["avatarURL"] = "" }
    if record.isPlaceholder { kept["placeholder"] = true }
    let origin = record.origin ?? Origin(vendor: "unknown", id: record.user.id.rawValue)
    let id = OpenIMKeeping.userID(record.user.id)
    let extra = OpenIMExtra(origin: origin, kept: kept, customData: record.user.customData)
      .signed(by: key, at: .user(id))
    return [
      "userID": .string(id), "nickname": .string(record.user.name ?? ""),
      "faceURL": .string(record.user.avatarURL ?? ""), "ex": .string(extra.text),
    ]
  }

  // MARK: Channels

  public func resume(_ channel: ChannelID, of origin: Origin) { resumed[origin] = channel }

  public func putChannel(
    _ channel: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) -> PutOutcome<ChannelID> {
    let people = members.map(\.member)
    let isPair = channel.channel.kind == .direct && people.count == 2
    do throws(ChatError) {
      return isPair ? try await putPair(channel, people) : try await putGroup(channel, people)
    } catch {
      if Self.mustStop(error) { throw error }
      return .refused(error)
    }
  }

  /// What another item would meet as well, or whose outcome is unknown.
  static func mustStop(_ error: ChatError) -> Bool {
    switch error.kind {
    case .network, .timeout, .cancelled, .rateLimited, .authentication: true
    case .server: error.isRetryable && error.vendor?.code == nil
    default: false
    }
  }

  private func origin(of record: ChannelRecord) -> Origin {
    record.origin ?? Origin(vendor: "unknown", id: record.channel.id.rawValue)
  }

  private func putPair(
    _ record: ChannelRecord, _ people: [Member]
  ) async throws(ChatError) -> PutOutcome<ChannelID> {
    let users = people.map { OpenIMKeeping.userID($0.user.id) }
    let id = OpenIMConversationID.single(users[0], users[1])
    written[ChannelID(id)] = .pair(users)
    var kept = OpenIMKeeping.kept(of: record.channel, asGroup: false)
    kept["members"] = .object(
      JSONObject(zip(users, people).map { (key: $0, value: .object(OpenIMKeeping.keptInDirect($1))) }))
    let extra = OpenIMExtra(origin: origin(of: record), kept: kept, customData: record.channel.customData)
      .signed(by: key, at: .channel(id))
    let old = try await call(
      "/conversation/get_conversations", ["ownerUserID": .string(users[0]), "conversationIDs": [.string(id)]])
    // A user may have hidden the chat meanwhile, which is no change of it.
    var there = OpenIMExtra(old["conversations"]?[0]?["ex"]?.string ?? "")
    there.notes = JSONObject()
    if there == extra { return .existed(ChannelID(id)) }
    for (user, peer) in [(users[0], users[1]), (users[1], users[0])] {
      try await call(
        "/conversation/set_conversations",
        [
          "userIDs": [.string(user)],
          "conversation": [
            "conversationID": .string(id), "conversationType": .int(OpenIMSessionType.single),
            "userID": .string(peer), "groupID": "", "ex": .string(extra.text),
          ],
        ])
    }
    return .written(ChannelID(id))
  }

  private func putGroup(
    _ record: ChannelRecord, _ people: [Member]
  ) async throws(ChatError) -> PutOutcome<ChannelID> {
    let origin = origin(of: record)
    let (group, known) = try await group(for: record.channel.id, origin)
    let id = ChannelID(OpenIMConversationID.group(group))
    written[id] = .group(group)
    if let old = known {
      let present = Set(try await memberIDs(of: group).map { UserID($0) })
      let missing = people.filter { !present.contains(UserID(OpenIMKeeping.userID($0.user.id))) && $0.state != .invited }
      try await add(missing, to: group)
      let owner = old["ownerUserID"]?.string ?? ""
      try await keepMembers(people, in: group, owner: owner, importerOwns: owner == admin.userID)
      return .existed(id)
    }
    try await create(group, record, origin, people)
    return .written(id)
  }

  /// The group that is or becomes the import of `channel`, with what the server says of it.
  ///
  /// The server gives no id twice and never wakes a dismissed group, so that a channel whose import was rolled back gets
  /// another id, one that is no other channel's own: the readable part of `chat#2`, and a digest.
  private func group(
    for channel: ChannelID, _ origin: Origin
  ) async throws(ChatError) -> (id: String, known: JSONValue?) {
    let first = OpenIMKeeping.groupID(of: channel)
    for number in 1...Self.loadsOfOneChannel {
      let id = number == 1 ? first : OpenIMKeeping.groupID(of: ChannelID("\(first)#\(number)"))
      let answer = try await call("/group/get_groups_info", ["groupIDs": [.string(id)]])
      guard let old = answer["groupInfos"]?[0] else { return (id, nil) }
      // 2: dismissed.
      if old["status"]?.int == 2 { continue }
      let place = EnvelopePlace.channel(OpenIMConversationID.group(id))
      let (extra, finding) = OpenIMExtra.read(old["ex"]?.string ?? "", view, at: place)
      // Who writes the data of a group, writes over what is noted there.
      if extra.origin == origin || resumed[origin]?.rawValue == OpenIMConversationID.group(id) { return (id, old) }
      if number > 1 { continue }
      if let finding { throw Self.notBelieved(finding) }
      throw ChatError(
        .conflict, operation: .writeDestination, detail: "a group of this id exists and is no import of this channel")
    }
    throw ChatError(
      .conflict, operation: .writeDestination,
      detail: "\(Self.loadsOfOneChannel) groups of this id were dismissed; map the channel to another id")
  }

  private static let loadsOfOneChannel = 50

  private static func notBelieved(_ finding: EnvelopeFinding) -> ChatError {
    ChatError(
      .conflict, operation: .writeDestination, detail: "a group of this id exists, with \(finding.explanation)")
  }

  private func memberIDs(of group: String) async throws(ChatError) -> [String] {
    let data = try await call("/group/get_group_member_user_id", ["groupID": .string(group)])
    return (data["userIDs"]?.array ?? []).compactMap(\.string)
  }

  /// A channel without an owner gets the admin as its owner: every group must have one, and any member would gain
  /// powers by it.
  private func create(
    _ group: String, _ record: ChannelRecord, _ origin: Origin, _ people: [Member]
  ) async throws(ChatError) {
    let present = people.filter { $0.state != .invited }
    let owner = present.first { $0.role == .owner }
    let admins = present.filter { $0.role == .admin || ($0.role == .owner && $0.user.id != owner?.user.id) }
    let others = present.filter { $0.role != .admin && $0.role != .owner }
    let extra = OpenIMExtra(
      origin: origin, kept: OpenIMKeeping.kept(of: record.channel, asGroup: true),
      customData: record.channel.customData
    ).signed(by: key, at: .channel(OpenIMConversationID.group(group)))
    let firstAdmins = admins.prefix(Self.listSize).map { JSONValue.string(OpenIMKeeping.userID($0.user.id)) }
    let firstOthers = others.prefix(Self.listSize)
    try await call(
      "/group/create_group",
      [
        "ownerUserID": .string(owner.map { OpenIMKeeping.userID($0.user.id) } ?? admin.userID),
        "adminUserIDs": .array(firstAdmins),
        "memberUserIDs": .array(firstOthers.map { .string(OpenIMKeeping.userID($0.user.id)) }),
        "groupInfo": [
          "groupID": .string(group), "groupName": .string(record.channel.name ?? ""), "notification": "",
          "introduction": "", "faceURL": .string(record.channel.coverURL ?? ""), "ex": .string(extra.text),
          "groupType": 2, "needVerification": 0, "lookMemberInfo": 0, "applyMemberFriend": 0,
        ],
        "sendMessage": false,
      ])
    try await add(Array(admins.dropFirst(Self.listSize)), to: group)
    try await add(Array(others.dropFirst(Self.listSize)), to: group)
    try await keepMembers(
      people, in: group, owner: owner.map { OpenIMKeeping.userID($0.user.id) } ?? admin.userID,
      importerOwns: owner == nil)
  }

  private func add(_ people: [Member], to group: String) async throws(ChatError) {
    try await add(people.map { OpenIMKeeping.userID($0.user.id) }, to: group)
  }

  private func add(_ ids: [String], to group: String) async throws(ChatError) {
    for start in stride(from: 0, to: ids.count, by: Self.listSize) {
      let some = ids[start..<min(ids.count, start + Self.listSize)]
      try await call(
        "/group/invite_user_to_group",
        [
          "groupID": .string(group), "invitedUserIDs": .array(some.map { .string($0) }), "reason": "",
          "sendMessage": false,
        ])
    }
  }

  /// What the server has no place for, in each member's `ex`; and roles of those who were invited one by one.
  private func keepMembers(
    _ people: [Member], in group: String, owner: String, importerOwns: Bool
  ) async throws(ChatError) {
    var entries: [JSONValue] = people.filter { $0.state != .invited }.map { member in
      let id = OpenIMKeeping.userID(member.user.id)
      // The server has one owner; a second one is an admin there.
      let kept = OpenIMKeeping.kept(of: member, keepsRole: member.role == .owner && id != owner)
      let extra = OpenIMExtra(kept: kept).signed(by: key, at: .member(id, channel: group))
      var entry: JSONObject = ["groupID": .string(group), "userID": .string(id), "ex": .string(extra.text)]
      if member.role == .admin { entry["roleLevel"] = .int(OpenIMRole.admin) }
      return .object(entry)
    }
    if importerOwns {
      let extra = OpenIMExtra(kept: ["importer": true]).signed(by: key, at: .member(admin.userID, channel: group))
      entries.append(["groupID": .string(group), "userID": .string(admin.userID), "ex": .string(extra.text)])
    }
    for start in stride(from: 0, to: entries.count, by: Self.listSize) {
      let some = Array(entries[start..<min(entries.count, start + Self.listSize)])
      try await call("/group/set_group_member_info", ["members": .array(some)])
    }
  }

  // MARK: Files

  public func putAttachment(
    _ attachment: Attachment, bytes: [UInt8], in channel: ChannelID
  ) async throws(ChatError) -> Attachment {
    var attachment = attachment
    let digest = Hex.encode(Digest.sha256(bytes))
    let name = "\(admin.userID)/import/\(digest)/\(attachment.name.map(OpenIMUploader.safeName) ?? "file")"
    let admin = admin
    let uploader = OpenIMUploader(rest: admin.rest) { (path, body) async throws(ChatError) in
      try await admin.call(path, body, for: .upload)
    }
    attachment.url = try await uploader.upload(
      bytes, to: OpenIMUploader.Target(name: name, mimeType: attachment.mimeType ?? "", cause: "msg-file"), nil)
    attachment.source = nil
    return attachment
  }

  // MARK: Messages

  public func putMessages(
    _ messages: [MessageRecord], in channel: ChannelID
  ) async throws(ChatError) -> [PutOutcome<MessageID>] {
    let kind = try await kind(of: channel)
    var outcomes: [PutOutcome<MessageID>] = []
    outcomes.reserveCapacity(messages.count)
    for record in messages {
      do throws(ChatError) {
        outcomes.append(.written(try await put(record, in: channel, kind)))
      } catch {
        // One that may be taken later must not come behind those that follow it, and may be there already, whatever
        // the server said: who asks looks first, and begins again where it stands.
        if Self.mustStop(error) || error.isRetryable { throw error }
        outcomes.append(.refused(error))
      }
    }
    return outcomes
  }

  private func kind(of channel: ChannelID) async throws(ChatError) -> Kind {
    if let known = written[channel] { return known }
    if let group = OpenIMConversationID.groupID(of: channel.rawValue) { return .group(group) }
    let members = try await source.members(of: channel, after: nil)
    let kind = Kind.pair(members.items.map(\.member.user.id.rawValue))
    written[channel] = kind
    return kind
  }

  private func put(
    _ record: MessageRecord, in channel: ChannelID, _ kind: Kind
  ) async throws(ChatError) -> MessageID {
    let message = record.message
    let origin =
      record.origin
      ?? Origin(vendor: "unknown", id: message.id?.rawValue ?? message.clientMessageID?.rawValue ?? "-", channel: message.channel)
    // A notice of the service has no sender there; here the admin speaks, or in a pair its first member.
    let sender = message.sender?.rawValue ?? nobody(kind)
    var outgoing = Self.outgoing(message, sender: sender, origin: origin)
    // Lets read marks be placed by the order of the origin.
    if let position = message.position { outgoing.extra.kept["position"] = .string(position.description) }
    let place = OpenIMMessageData.place(
      in: channel.rawValue, sender: sender, time: message.createdAt.milliseconds, outgoing.extra)
    outgoing.extra = outgoing.extra.signed(by: key, at: place)
    let body = Self.body(message, sender: sender, outgoing, kind)
    let data: JSONValue
    do { data = try await call("/msg/send_msg", body) } catch {
      guard case .group(let group) = kind, error.vendor?.code == "1203" else { throw error }
      // Who wrote and left: a member while the history is written; `finishChannel` takes them out again.
      try await add([sender], to: group)
      data = try await call("/msg/send_msg", body)
    }
    guard let id = data["serverMsgID"]?.string else {
      throw ChatError(.protocolViolation, operation: .writeDestination, detail: "no message id in the answer")
    }
    if message.isRecalled { try await revoke(id, by: sender, in: channel) }
    return MessageID(id)
  }

  private func nobody(_ kind: Kind) -> String {
    if case .pair(let users) = kind { users.first ?? admin.userID } else { admin.userID }
  }

  private static func body(_ message: Message, sender: String, _ outgoing: OpenIMOutgoing, _ kind: Kind) -> JSONValue {
    var body: JSONObject = [
      "sendID": .string(sender), "recvID": "", "groupID": "", "senderNickname": .string(message.senderName ?? ""),
      "senderFaceURL": "", "senderPlatformID": .int(OpenIMPlatform.admin), "content": outgoing.element.content,
      "contentType": .int(outgoing.element.type), "isOnlineOnly": false, "notOfflinePush": true,
      "sendTime": .int(message.createdAt.milliseconds), "ex": .string(outgoing.extra.text),
    ]
    switch kind {
    case .group(let group):
      body["sessionType"] = .int(OpenIMSessionType.group)
      body["groupID"] = .string(group)
    case .pair(let users):
      body["sessionType"] = .int(OpenIMSessionType.single)
      body["recvID"] = .string(users.first { !$0.utf8.elementsEqual(sender.utf8) } ?? sender)
    }
    return .object(body)
  }

  /// A tombstone is a message that was sent and taken back. It is the newest one, since nobody else writes.
  private func revoke(_ id: String, by sender: String, in channel: ChannelID) async throws(ChatError) {
    let sender = try await revoker(for: sender, in: channel)
    let seqs = try await call(
      "/msg/get_conversations_has_read_and_max_seq",
      ["userID": .string(sender), "conversationIDs": [.string(channel.rawValue)]])
    let last = seqs["seqs"]?[channel.rawValue]?["maxSeq"]?.int ?? 0
    let data = try await call(
      "/msg/pull_msg_by_seq",
      [
        "userID": .string(sender), "order": 0,
        "seqRanges": [
          ["conversationID": .string(channel.rawValue), "begin": .int(max(1, last - 9)), "end": .int(last), "num": 10]
        ],
      ])
    let messages = data["msgs"]?[channel.rawValue]?["Msgs"]?.array ?? []
    guard let seq = messages.first(where: { $0["serverMsgID"]?.string == id })?["seq"]?.int else {
      // The server answers before it stores; and who asks again looks first, and finds it then.
      throw ChatError(
        .protocolViolation, operation: .writeDestination, retry: .after(.seconds(1)),
        detail: "a tombstone was written and is not among the newest messages of \(channel) yet")
    }
    try await revoke(seq, by: sender, in: channel)
  }

  func revoke(_ seq: Int64, by sender: String, in channel: ChannelID) async throws(ChatError) {
    try await call(
      "/msg/revoke_msg",
      [
        "userID": .string(try await revoker(for: sender, in: channel)), "conversationID": .string(channel.rawValue),
        "seq": .int(seq),
      ])
  }

  /// The admin spoke for nobody and need not have the conversation; then a member takes it back.
  private func revoker(for sender: String, in channel: ChannelID) async throws(ChatError) -> String {
    guard sender.utf8.elementsEqual(admin.userID.utf8) else { return sender }
    return try await source.reader(of: channel) ?? sender
  }
}
