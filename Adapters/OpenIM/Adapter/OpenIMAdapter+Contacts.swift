import ChatJSON
import OpenIMWire
import UnifiedChat

/// Somebody in a user's friend list.
public struct OpenIMContact: Sendable, Hashable {
  public var user: User
  /// The owner's own name for them; "" for none.
  public var remark: String
  public var isPinned: Bool
  public var since: Timestamp
}

/// A request to become a friend or a member of a group.
public struct OpenIMApplication: Sendable, Hashable {
  public enum Answer: Int64, Sendable, Hashable { case open = 0, agreed = 1, refused = -1 }

  /// Who asks.
  public var from: UserID
  /// Who is asked; nil for a group.
  public var to: UserID?
  /// The group; nil for a friendship.
  public var channel: ChannelID?
  public var text: String
  public var answer: Answer
  public var answerText: String
  public var askedAt: Timestamp
}

/// What happens beside the contract's events.
public enum OpenIMContactEvent: Sendable, Hashable {
  case friendAsked(by: UserID, OpenIMApplication)
  /// The other side's answer to an own request, or the own answer on another device.
  case friendAnswered(UserID, agreed: Bool)
  case friendAdded(UserID)
  case friendRemoved(by: UserID, UserID)
  /// Name, picture, remark or pin of these changed.
  case friendsChanged([UserID])
  case blocked(UserID)
  case unblocked(UserID)
  case joinAsked(ChannelID, OpenIMApplication)
  case joinAnswered(ChannelID, UserID, agreed: Bool)
  /// A key and data of the app's own, sent by its backend.
  case business(key: String, data: String)
}

/// What this vendor has beyond the contract. Reached from a client by `chat.vendorAdapter(as: OpenIMAdapter.self)`.
///
/// Friendship has two sides: an agreed request makes both, removing ends the own one. Groups that want applications
/// are joined by `requestToJoin`; their owner and admins answer.
public protocol OpenIMContacts: Sendable {
  /// From now on, for each caller its own stream; it ends with the last reference to the adapter.
  func contactEvents() async -> AsyncStream<OpenIMContactEvent>

  /// Pinned ones first, then in the order in which they became friends.
  func friends() async throws(ChatError) -> [OpenIMContact]
  /// - Throws: `.conflict` for one who is a friend already, `.notFound`, `.invalidArgument` for oneself.
  func requestFriendship(of user: UserID, text: String) async throws(ChatError)
  /// Received ones, the newest first.
  func friendRequests() async throws(ChatError) -> [OpenIMApplication]
  /// Own ones, the newest first.
  func sentFriendRequests() async throws(ChatError) -> [OpenIMApplication]
  /// - Throws: `.conflict` when it was answered before.
  func answerFriendRequest(from user: UserID, accept: Bool, text: String) async throws(ChatError)
  /// nil leaves what is there.
  func setFriend(_ user: UserID, remark: String?, isPinned: Bool?) async throws(ChatError)
  func removeFriend(_ user: UserID) async throws(ChatError)
  func blockedUsers() async throws(ChatError) -> [User]

  /// Asks owner and admins of a group; where the group lets everybody in, the user is a member afterwards.
  func requestToJoin(_ channel: ChannelID, text: String) async throws(ChatError)
  /// Requests to groups that this user manages, the newest first.
  func joinRequests() async throws(ChatError) -> [OpenIMApplication]
  func sentJoinRequests() async throws(ChatError) -> [OpenIMApplication]
  func answerJoinRequest(of user: UserID, to channel: ChannelID, accept: Bool, text: String) async throws(ChatError)
  /// Who may come in without being asked: everybody, those whom a member invites, or nobody.
  func setJoining(_ rule: OpenIMJoinRule, of channel: ChannelID) async throws(ChatError)
}

/// How users become members of a group (`needVerification`).
public enum OpenIMJoinRule: Int64, Sendable, Hashable, CaseIterable {
  /// Those who ask need an answer; those who are invited are members at once.
  case applicationOrInvitation = 0
  /// Also whom an ordinary member invites.
  case application = 1
  case free = 2
}

extension OpenIMAdapter: OpenIMContacts {
  // MARK: Friends

  public func friends() async throws(ChatError) -> [OpenIMContact] {
    try await everyPage("/friend/get_friend_list", ["userID": .string(try me(.fetchUser).rawValue)], "friendsInfo")
      .compactMap { json in
        guard let user = json["friendUser"].flatMap(OpenIMMapping.user) else { return nil }
        // Seconds, here alone.
        let (time, overflow) = (json["createTime"]?.int ?? 0).multipliedReportingOverflow(by: 1000)
        return OpenIMContact(
          user: user, remark: json["remark"]?.string ?? "", isPinned: json["isPinned"]?.bool ?? false,
          since: Timestamp(milliseconds: overflow ? 0 : time))
      }
  }

  public func requestFriendship(of user: UserID, text: String) async throws(ChatError) {
    try await call(
      "/friend/add_friend",
      [
        "fromUserID": .string(try me(.invite).rawValue), "toUserID": .string(user.rawValue),
        "reqMsg": .string(text), "ex": "",
      ], for: .invite)
  }

  public func friendRequests() async throws(ChatError) -> [OpenIMApplication] {
    try await everyPage(
      "/friend/get_friend_apply_list", ["userID": .string(try me(.fetchUser).rawValue)], "FriendRequests"
    ).compactMap(OpenIMApplication.init(friend:))
  }

  public func sentFriendRequests() async throws(ChatError) -> [OpenIMApplication] {
    try await everyPage(
      "/friend/get_self_friend_apply_list", ["userID": .string(try me(.fetchUser).rawValue)], "friendRequests"
    ).compactMap(OpenIMApplication.init(friend:))
  }

  public func answerFriendRequest(from user: UserID, accept: Bool, text: String) async throws(ChatError) {
    try await call(
      "/friend/add_friend_response",
      [
        "fromUserID": .string(user.rawValue), "toUserID": .string(try me(.join).rawValue),
        "handleResult": .int(accept ? 1 : -1), "handleMsg": .string(text),
      ], for: .join)
  }

  public func setFriend(_ user: UserID, remark: String?, isPinned: Bool?) async throws(ChatError) {
    try await call(
      "/friend/update_friends",
      [
        "ownerUserID": .string(try me(.updateUser).rawValue), "friendUserIDs": [.string(user.rawValue)],
        "remark": remark.map { .string($0) } ?? .null, "isPinned": isPinned.map { .bool($0) } ?? .null, "ex": .null,
      ], for: .updateUser)
  }

  public func removeFriend(_ user: UserID) async throws(ChatError) {
    try await call(
      "/friend/delete_friend",
      ["ownerUserID": .string(try me(.updateUser).rawValue), "friendUserID": .string(user.rawValue)],
      for: .updateUser)
  }

  public func blockedUsers() async throws(ChatError) -> [User] {
    try await everyPage("/friend/get_black_list", ["userID": .string(try me(.block).rawValue)], "blacks")
      .compactMap { $0["blackUserInfo"].flatMap(OpenIMMapping.user) }
  }

  // MARK: Groups

  public func requestToJoin(_ channel: ChannelID, text: String) async throws(ChatError) {
    let me = try me(.join)
    let group = try await existingGroup(channel)
    try await call(
      "/group/join_group",
      [
        "groupID": .string(group), "reqMessage": .string(text), "joinSource": 3,
        "inviterUserID": .string(me.rawValue), "ex": "",
      ], for: .join)
  }

  /// The server answers an unknown group as a fault of its own, so it is looked for first.
  func existingGroup(_ channel: ChannelID) async throws(ChatError) -> String {
    let group = try group(channel, .join)
    let known = try await call("/group/get_groups_info", ["groupIDs": [.string(group)]], for: .join)
    guard known["groupInfos"]?[0] != nil else {
      throw ChatError(.notFound, operation: .join, detail: "no channel \(channel)")
    }
    return group
  }

  public func joinRequests() async throws(ChatError) -> [OpenIMApplication] {
    try await everyPage(
      "/group/get_recv_group_applicationList",
      ["fromUserID": .string(try me(.listMembers).rawValue), "groupIDs": [], "handleResults": []], "groupRequests"
    ).compactMap(OpenIMApplication.init(group:))
  }

  public func sentJoinRequests() async throws(ChatError) -> [OpenIMApplication] {
    try await everyPage(
      "/group/get_user_req_group_applicationList",
      ["userID": .string(try me(.listMembers).rawValue), "groupIDs": [], "handleResults": []], "groupRequests"
    ).compactMap(OpenIMApplication.init(group:))
  }

  public func answerJoinRequest(
    of user: UserID, to channel: ChannelID, accept: Bool, text: String
  ) async throws(ChatError) {
    try await call(
      "/group/group_application_response",
      [
        "groupID": .string(try group(channel, .join)), "fromUserID": .string(user.rawValue),
        "handledMsg": .string(text), "handleResult": .int(accept ? 1 : -1),
      ], for: .join)
  }

  public func setJoining(_ rule: OpenIMJoinRule, of channel: ChannelID) async throws(ChatError) {
    try await call(
      "/group/set_group_info_ex",
      ["groupID": .string(try group(channel, .updateChannel)), "needVerification": .int(rule.rawValue)],
      for: .updateChannel)
  }

  /// All pages of a list of the vendor.
  func everyPage(
    _ path: String, _ body: JSONObject, _ key: String, for operation: ChatError.Operation = .fetchUser
  ) async throws(ChatError) -> [JSONValue] {
    var found: [JSONValue] = []
    var walk = PageWalk()
    var number = 1
    while true {
      var body = body
      body["pagination"] = OpenIMAdmin.page(number, size: 200)
      let data = try await call(path, .object(body), for: operation)
      let page = data[key]?.array ?? []
      found += page
      // A server without an end of pages repeats its first one.
      if let first = page.first { try walk.advance(to: first.text(), operation) }
      if page.isEmpty || Int64(found.count) >= data["total"]?.int ?? 0 { return found }
      number += 1
    }
  }

  // MARK: Events

  public func contactEvents() -> AsyncStream<OpenIMContactEvent> {
    // A reader that falls behind by so many loses the oldest; the lists say how things stand.
    let (stream, feed) = AsyncStream.makeStream(of: OpenIMContactEvent.self, bufferingPolicy: .bufferingNewest(1024))
    lastContactStream &+= 1
    let number = lastContactStream
    contactStreams[number] = feed
    feed.onTermination = { [weak self] _ in Task { await self?.endContactStream(number) } }
    return stream
  }

  private func endContactStream(_ number: UInt64) { contactStreams[number] = nil }

  private func tellContact(_ event: OpenIMContactEvent) {
    for feed in contactStreams.values { feed.yield(event) }
  }

  /// True for a notice about people or from the app's backend.
  func handleContact(_ type: Int64, _ detail: JSONValue) -> Bool {
    let pair = detail["fromToUserID"]
    let from = pair?["fromUserID"]?.string.map { UserID($0) }
    let to = pair?["toUserID"]?.string.map { UserID($0) }
    switch type {
    case OpenIMNotice.friendAsked:
      if let from, let request = detail["request"].flatMap(OpenIMApplication.init(friend:)), from != userID {
        tellContact(.friendAsked(by: from, request))
      }
    case OpenIMNotice.friendAgreed, OpenIMNotice.friendRefused:
      guard let from, let to else { return true }
      let other = from == userID ? to : from
      tellContact(.friendAnswered(other, agreed: type == OpenIMNotice.friendAgreed))
      if type == OpenIMNotice.friendAgreed { tellContact(.friendAdded(other)) }
    case OpenIMNotice.friendDeleted: if let from, let to { tellContact(.friendRemoved(by: from, to)) }
    case OpenIMNotice.friendRemarkSet: if let to { tellContact(.friendsChanged([to])) }
    case OpenIMNotice.friendsUpdated:
      let ids = (detail["friendIDs"]?.array ?? []).compactMap(\.string).map { UserID($0) }
      tellContact(.friendsChanged(ids))
    case OpenIMNotice.friendInfoUpdated:
      if let id = detail["userID"]?.string { tellContact(.friendsChanged([UserID(id)])) }
    case OpenIMNotice.blackAdded: if let to { tellContact(.blocked(to)) }
    case OpenIMNotice.blackDeleted: if let to { tellContact(.unblocked(to)) }
    case OpenIMNotice.joinAsked:
      guard let request = detail["request"].flatMap(OpenIMApplication.init(group:)), let channel = request.channel,
        request.from != userID
      else { return true }
      tellContact(.joinAsked(channel, request))
    case OpenIMNotice.joinAgreed, OpenIMNotice.joinRefused:
      guard let request = detail["request"].flatMap(OpenIMApplication.init(group:)), let channel = request.channel
      else { return true }
      tellContact(.joinAnswered(channel, request.from, agreed: type == OpenIMNotice.joinAgreed))
    case OpenIMNotice.business:
      tellContact(.business(key: detail["key"]?.string ?? "", data: detail["data"]?.string ?? ""))
    default: return false
    }
    return true
  }
}

extension OpenIMApplication {
  init?(friend json: JSONValue) {
    guard let from = json["fromUserID"]?.string, let to = json["toUserID"]?.string else { return nil }
    self.init(
      from: UserID(from), to: UserID(to), channel: nil, text: json["reqMsg"]?.string ?? "",
      answer: Answer(rawValue: json["handleResult"]?.int ?? 0) ?? .open, answerText: json["handleMsg"]?.string ?? "",
      askedAt: Timestamp(milliseconds: json["createTime"]?.int ?? 0))
  }

  init?(group json: JSONValue) {
    guard let from = json["userInfo"]?["userID"]?.string, let group = json["groupInfo"]?["groupID"]?.string else {
      return nil
    }
    self.init(
      from: UserID(from), to: nil, channel: ChannelID(OpenIMConversationID.group(group)),
      text: json["reqMsg"]?.string ?? "", answer: Answer(rawValue: json["handleResult"]?.int ?? 0) ?? .open,
      answerText: json["handleMsg"]?.string ?? "", askedAt: Timestamp(milliseconds: json["reqTime"]?.int ?? 0))
  }
}
