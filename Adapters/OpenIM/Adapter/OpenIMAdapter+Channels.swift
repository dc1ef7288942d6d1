import ChatJSON
import OpenIMWire
import UnifiedChat

extension OpenIMAdapter {
  // MARK: Creating

  public func createChannel(_ draft: ChannelDraft) async throws(ChatError) -> Channel {
    switch draft.kind {
    case .direct: return try await createDirect(draft)
    case .group where !draft.isDistinct: return try await createGroup(draft)
    case .group: throw .unsupported(.channelGroupDistinct, operation: .createChannel)
    case .open: throw .unsupported(.channelOpen, operation: .createChannel)
    case .temporary: throw .unsupported(.channelTemporary, operation: .createChannel)
    case .service:
      throw ChatError(.permission(), operation: .createChannel, detail: "the service makes these by speaking")
    case .unknown(let kind):
      throw ChatError(.invalidArgument(field: "kind"), operation: .createChannel, detail: "no kind \(kind)")
    }
  }

  private func createDirect(_ draft: ChannelDraft) async throws(ChatError) -> Channel {
    let me = try me(.createChannel)
    let others = Set(draft.members).subtracting([me])
    guard others.count == 1, let peer = others.first else {
      throw ChatError(
        .invalidArgument(field: "members"), operation: .createChannel, detail: "a direct channel has one other member")
    }
    guard draft.name == nil, draft.coverURL == nil, draft.customData == nil else {
      throw ChatError(
        .invalidArgument(field: "name"), operation: .createChannel,
        detail: "single chats of this vendor have no name, cover or custom data")
    }
    guard try await users([peer]).first != nil else {
      throw ChatError(.notFound, operation: .createChannel, detail: "no user \(peer)")
    }
    let id = ChannelID(OpenIMConversationID.single(me.rawValue, peer.rawValue))
    try await setConversation(id, [:], for: .createChannel)
    note(id)
    return try await channel(id)
  }

  /// Without the vendor's tip message ("… created the group"): it would take a number, count as unread, and stand in
  /// the history where other vendors have nothing. Members are told by the notice beside the conversation.
  private func createGroup(_ draft: ChannelDraft) async throws(ChatError) -> Channel {
    let me = try me(.createChannel)
    var seen: Set<UserID> = [me]
    let others = draft.members.filter { seen.insert($0).inserted }
    let ex = draft.customData.map { OpenIMExtra(customData: $0).text } ?? ""
    let data = try await call(
      "/group/create_group",
      [
        "memberUserIDs": .array(others.map { .string($0.rawValue) }), "adminUserIDs": .null,
        "ownerUserID": .string(me.rawValue),
        "groupInfo": [
          "groupID": "", "groupName": .string(draft.name ?? ""), "notification": "", "introduction": "",
          "faceURL": .string(draft.coverURL ?? ""), "ex": .string(ex), "creatorUserID": .string(me.rawValue),
          "groupType": 2, "needVerification": 0, "lookMemberInfo": 0, "applyMemberFriend": 0,
        ],
        "sendMessage": false,
      ], for: .createChannel)
    guard let group = data["groupInfo"], let channel = OpenIMMapping.channel(group: group) else {
      throw ChatError(.protocolViolation, operation: .createChannel, detail: "no group in the answer")
    }
    begun.insert(channel.id)
    note(channel.id)
    return try await self.channel(channel.id)
  }

  func note(_ id: ChannelID) { if newest[id] == nil { newest[id] = 0 } }

  func forgetNumber(of id: ChannelID) {
    newest[id] = nil
    begun.remove(id)
  }

  /// Members that are not named stay as they are.
  func setConversation(
    _ id: ChannelID, _ changes: JSONObject, for operation: ChatError.Operation
  ) async throws(ChatError) {
    let me = try me(operation)
    var conversation = changes
    conversation["conversationID"] = .string(id.rawValue)
    if let group = OpenIMConversationID.groupID(of: id.rawValue) {
      conversation["conversationType"] = .int(OpenIMSessionType.group)
      conversation["groupID"] = .string(group)
      conversation["userID"] = ""
    } else if let account = OpenIMConversationID.account(in: id.rawValue, of: me.rawValue) {
      conversation["conversationType"] = .int(OpenIMSessionType.service)
      conversation["userID"] = .string(account)
      conversation["groupID"] = ""
    } else {
      conversation["conversationType"] = .int(OpenIMSessionType.single)
      conversation["userID"] = .string(try peer(of: id, operation).rawValue)
      conversation["groupID"] = ""
    }
    try await call(
      "/conversation/set_conversations",
      ["userIDs": [.string(me.rawValue)], "conversation": .object(conversation)], for: operation)
  }

  /// - Throws: `.notFound` for what is no single chat of this user.
  func peer(of id: ChannelID, _ operation: ChatError.Operation) throws(ChatError) -> UserID {
    guard let peer = OpenIMConversationID.peer(in: id.rawValue, of: try me(operation).rawValue) else {
      throw ChatError(.notFound, operation: operation, detail: "no channel \(id)")
    }
    return UserID(peer)
  }

  func group(_ id: ChannelID, _ operation: ChatError.Operation) throws(ChatError) -> String {
    guard let group = OpenIMConversationID.groupID(of: id.rawValue) else {
      let me = try me(operation).rawValue
      guard OpenIMConversationID.peer(in: id.rawValue, of: me) == nil,
        OpenIMConversationID.account(in: id.rawValue, of: me) == nil
      else { throw ChatError(.permission(), operation: operation, detail: "this channel keeps its members") }
      throw ChatError(.notFound, operation: operation, detail: "no channel \(id)")
    }
    return group
  }

  // MARK: Reading

  public func channel(_ id: ChannelID) async throws(ChatError) -> Channel {
    let me = try me(.fetchChannel)
    guard let group = OpenIMConversationID.groupID(of: id.rawValue) else {
      return OpenIMConversationID.isService(id.rawValue) ? try await service(id) : try await single(id)
    }
    let data = try await call("/group/get_groups_info", ["groupIDs": [.string(group)]], for: .fetchChannel)
    guard let json = data["groupInfos"]?[0], json["status"]?.int != 2,
      var channel = OpenIMMapping.channel(group: json)
    else { throw ChatError(.notFound, operation: .fetchChannel, detail: "no channel \(id)") }
    let own = try await call(
      "/group/get_group_members_info", ["groupID": .string(group), "userIDs": [.string(me.rawValue)]],
      for: .fetchChannel)
    guard let member = own["members"]?[0] else {
      throw ChatError(.permission(), operation: .fetchChannel, detail: "no member of \(id)")
    }
    channel.myRole = OpenIMMapping.role(member["roleLevel"]?.int)
    channel.myState = .joined
    channel.unread = .exact(0)
    if let drawn = try await drawn([id]).first { complete(&channel, with: drawn) }
    return channel
  }

  /// What an account of the service has said to this user.
  private func service(_ id: ChannelID) async throws(ChatError) -> Channel {
    let me = try me(.fetchChannel)
    guard let account = OpenIMConversationID.account(in: id.rawValue, of: me.rawValue),
      let drawn = try await drawn([id]).first
    else { throw ChatError(.notFound, operation: .fetchChannel, detail: "no channel \(id)") }
    var channel = Self.serviceChannel(id, account: UserID(account))
    complete(&channel, with: drawn)
    return channel
  }

  static func serviceChannel(_ id: ChannelID, account: UserID) -> Channel {
    var channel = Channel(id: id, kind: .service, peer: account)
    channel.myRole = .member
    channel.myState = .joined
    return channel
  }

  /// Single chats exist between any two users, also before the first message.
  private func single(_ id: ChannelID) async throws(ChatError) -> Channel {
    let peer = try peer(of: id, .fetchChannel)
    var channel = Channel(id: id, kind: .direct, memberCount: 2, peer: peer)
    channel.isDistinct = true
    channel.myRole = .member
    channel.myState = .joined
    channel.unread = .exact(0)
    if let drawn = try await drawn([id]).first { complete(&channel, with: drawn) } else {
      guard try await users([peer]).first != nil else {
        throw ChatError(.notFound, operation: .fetchChannel, detail: "no channel \(id)")
      }
    }
    return channel
  }

  /// What the vendor's light client draws its list from: conversation, last message, numbers.
  private func drawn(_ ids: [ChannelID]) async throws(ChatError) -> [JSONValue] {
    let me = try me(.fetchChannel)
    var found: [JSONValue] = []
    for start in stride(from: 0, to: ids.count, by: 200) {
      let some = ids[start..<min(ids.count, start + 200)]
      let data = try await call(
        "/jssdk/get_conversations",
        [
          "ownerUserID": .string(me.rawValue), "conversationIDs": .array(some.map { .string($0.rawValue) }),
        ], for: .fetchChannel)
      found += data["conversations"]?.array ?? []
    }
    return found
  }

  private func complete(_ channel: inout Channel, with drawn: JSONValue) {
    let (newest, read) = (drawn["maxSeq"]?.int ?? 0, drawn["readSeq"]?.int ?? 0)
    Self.apply(record: drawn["conversation"] ?? .null, newest: newest, to: &channel)
    let known = mentioned[channel.id] ?? 0
    if (channel.unreadMentions.number ?? 0) > 0 {
      mentioned[channel.id] = max(known, newest)
    } else if known <= newest {
      mentioned[channel.id] = nil
    }
    if channel.kind == .direct { learnBurning(drawn["conversation"] ?? .null, of: channel.id) }
    if channel.kind == .service { channel.name = drawn["user"]?["nickname"]?.nonEmptyString }
    if channel.kind == .service { channel.coverURL = drawn["user"]?["faceURL"]?.nonEmptyString }
    if let last = drawn["lastMsg"], !last.isNull { noteRecalled(OpenIMMessageData(json: last), in: channel.id) }
    channel.unread = .exact(unread(in: channel.id, newest: newest, read: read))
    channel.myReadPosition = read > 0 ? MessagePosition(sequence: read) : nil
    if let last = drawn["lastMsg"], !last.isNull {
      channel.lastMessage = OpenIMMessageData(json: last).message(in: channel.id.rawValue)
    }
  }

  public func channels(_ query: ChannelQuery, page: PageToken?) async throws(ChatError) -> Page<Channel> {
    let all = try await everyChannel().filter { channel in
      (query.kinds?.contains(channel.kind) ?? true)
        && (query.nameContains.map { channel.name?.contains($0) == true } ?? true)
        && (!query.unreadOnly || (channel.unread.number ?? 0) > 0) && (query.includesHidden || !channel.isHidden)
    }
    var matching: [Channel] = []
    for channel in all {
      if let members = query.members, !members.isSubset(of: try await memberIDs(of: channel.id)) { continue }
      matching.append(channel)
    }
    matching.sort { OpenIMChannelOrder.precedes($0, $1, query.order) }
    return try OpenIMChannelOrder.page(of: matching, query, after: page)
  }

  /// Conversations, and groups in which nothing was said yet.
  private func everyChannel() async throws(ChatError) -> [Channel] {
    let me = try me(.listChannels)
    let data = try await call(
      "/conversation/get_all_conversations", ["ownerUserID": .string(me.rawValue)], for: .listChannels)
    var groups: [ChannelID: Channel] = [:]
    let mine = try await everyPage(
      "/group/get_joined_group_list", ["fromUserID": .string(me.rawValue)], "groups", for: .listChannels)
    for json in mine where json["status"]?.int != 2 {
      if var channel = OpenIMMapping.channel(group: json) {
        channel.myRole = json["ownerUserID"]?.string == me.rawValue ? .owner : nil
        channel.myState = .joined
        channel.unread = .exact(0)
        groups[channel.id] = channel
      }
    }
    var singles: [Channel] = []
    for json in data["conversations"]?.array ?? [] {
      guard let id = json["conversationID"]?.string, let peer = json["userID"]?.string else { continue }
      if json["conversationType"]?.int == OpenIMSessionType.service {
        singles.append(Self.serviceChannel(ChannelID(id), account: UserID(peer)))
      }
      guard json["conversationType"]?.int == OpenIMSessionType.single else { continue }
      var channel = Channel(id: ChannelID(id), kind: .direct, memberCount: 2, peer: UserID(peer))
      channel.isDistinct = true
      channel.myRole = .member
      channel.myState = .joined
      singles.append(channel)
    }
    var channels = singles + groups.values
    var drawn: [ChannelID: JSONValue] = [:]
    for json in try await self.drawn(channels.map(\.id)) {
      if let id = json["conversation"]?["conversationID"]?.string { drawn[ChannelID(id)] = json }
    }
    for index in channels.indices {
      if let json = drawn[channels[index].id] { complete(&channels[index], with: json) }
    }
    return channels
  }

  private func memberIDs(of id: ChannelID) async throws(ChatError) -> Set<UserID> {
    guard let group = OpenIMConversationID.groupID(of: id.rawValue) else {
      let me = try me(.listChannels)
      if OpenIMConversationID.isService(id.rawValue) { return [me] }
      return [me, try peer(of: id, .listChannels)]
    }
    let data = try await call("/group/get_group_member_user_id", ["groupID": .string(group)], for: .listChannels)
    return Set((data["userIDs"]?.array ?? []).compactMap(\.string).map { UserID($0) })
  }

  // MARK: Changing

  public func updateChannel(_ id: ChannelID, _ changes: ChannelChanges) async throws(ChatError) -> Channel {
    let group = try group(id, .updateChannel)
    var body: JSONObject = ["groupID": .string(group)]
    body["groupName"] = changes.name.map { .string($0) }
    body["faceURL"] = changes.coverURL.map { .string($0) }
    if let customData = changes.customData {
      let now = try await call("/group/get_groups_info", ["groupIDs": [.string(group)]], for: .updateChannel)
      body["ex"] = .string(
        OpenIMExtra.replacing(customData: customData, in: now["groupInfos"]?[0]?["ex"]?.string ?? ""))
    }
    try await call("/group/set_group_info_ex", .object(body), for: .updateChannel)
    return try await channel(id)
  }

  public func deleteChannel(_ id: ChannelID) async throws(ChatError) {
    try await call(
      "/group/dismiss_group",
      ["groupID": .string(try group(id, .deleteChannel)), "deleteMember": true, "sendMessage": .null],
      for: .deleteChannel)
    forgetNumber(of: id)
  }

  public func setFrozen(_ isFrozen: Bool, _ id: ChannelID) async throws(ChatError) {
    try await call(
      isFrozen ? "/group/mute_group" : "/group/cancel_mute_group", ["groupID": .string(try group(id, .freeze))],
      for: .freeze)
  }

  public func setPinned(_ isPinned: Bool, _ id: ChannelID) async throws(ChatError) {
    try await setConversation(id, ["isPinned": .bool(isPinned)], for: .pinChannel)
  }

  /// The vendor knows all and none.
  public func setNotificationLevel(_ level: NotificationLevel, of id: ChannelID) async throws(ChatError) {
    let option: Int64
    switch level {
    case .all: option = 0
    case .none: option = 2
    case .mentions:
      throw ChatError(
        .invalidArgument(field: "level"), operation: .updateChannel, detail: "this vendor has no mentions level")
    }
    try await setConversation(id, ["recvMsgOpt": .int(option)], for: .updateChannel)
  }

  public func totalUnread() async throws(ChatError) -> UnreadCount {
    let me = try me(.unread)
    let muted = try await call(
      "/conversation/get_not_notify_conversation_ids", ["userID": .string(me.rawValue)], for: .unread)
    let quiet = Set((muted["conversationIDs"]?.array ?? []).compactMap(\.string).map { ChannelID($0) })
    let data = try await live(.unread).request(
      .readAndMaxSequences, ["userID": .string(me.rawValue)], for: .unread)
    var total = 0
    for entry in data["seqs"]?.object ?? [:] where !quiet.contains(ChannelID(entry.key)) {
      let (newest, read) = (entry.value["maxSeq"]?.int ?? 0, entry.value["hasReadSeq"]?.int ?? 0)
      total = Int(clamping: Int64(total).adding(Int64(unread(in: ChannelID(entry.key), newest: newest, read: read))))
    }
    return .exact(total)
  }

  // MARK: Reading on, typing

  public func markRead(_ id: ChannelID, upTo position: MessagePosition?) async throws(ChatError) {
    let me = try me(.markRead)
    let seq: Int64
    if let position { seq = position.major } else {
      let data = try await live(.markRead).request(
        .readAndMaxSequences,
        ["userID": .string(me.rawValue), "conversationIDs": [.string(id.rawValue)]], for: .markRead)
      seq = data["seqs"]?[id.rawValue]?["maxSeq"]?.int ?? 0
    }
    guard seq >= 1 else { return }
    try await call(
      "/msg/mark_conversation_as_read",
      [
        "userID": .string(me.rawValue), "conversationID": .string(id.rawValue), "hasReadSeq": .int(seq),
        "seqs": [],
      ], for: .markRead)
    try await settleMention(in: id, readUpTo: seq)
  }

  public func setTyping(_ isTyping: Bool, in id: ChannelID) async throws(ChatError) {
    var data = try outgoingData(in: id, .typing)
    data.contentType = OpenIMContentType.typing
    data.content = Array(#"{"msgTips":"\#(isTyping ? "yes" : "no")"}"#.utf8)
    data.options = JSONObject(OpenIMOptions.transient.map { (key: $0, value: .bool(false)) })
    _ = try await live(.typing).request(.send, data.frameJSON, for: .typing)
  }
}
