import ChatJSON
import OpenIMWire
import UnifiedChat

extension OpenIMAdapter {
  /// A group that wants an application is asked by `requestToJoin`.
  /// - Throws: `.permission` for such a group, before anything is asked of its owner.
  public func join(_ id: ChannelID) async throws(ChatError) -> Channel {
    let me = try me(.join)
    let group = try group(id, .join)
    let known = try await call("/group/get_groups_info", ["groupIDs": [.string(group)]], for: .join)
    guard let info = known["groupInfos"]?[0] else {
      throw ChatError(.notFound, operation: .join, detail: "no channel \(id)")
    }
    guard info["needVerification"]?.int == OpenIMJoinRule.free.rawValue else {
      throw ChatError(.permission(), operation: .join, detail: "this group wants an application")
    }
    try await call(
      "/group/join_group",
      [
        "groupID": .string(group), "reqMessage": "", "joinSource": 3, "inviterUserID": .string(me.rawValue),
        "ex": "",
      ], for: .join)
    note(id)
    return try await channel(id)
  }

  public func leave(_ id: ChannelID) async throws(ChatError) {
    let me = try me(.leave)
    try await call(
      "/group/quit_group", ["groupID": .string(try group(id, .leave)), "userID": .string(me.rawValue)], for: .leave)
    forgetNumber(of: id)
  }

  public func invite(_ users: [UserID], to id: ChannelID) async throws(ChatError) {
    try await call(
      "/group/invite_user_to_group",
      [
        "groupID": .string(try group(id, .invite)), "invitedUserIDs": .array(users.map { .string($0.rawValue) }),
        "reason": "", "sendMessage": false,
      ], for: .invite)
  }

  public func removeMembers(_ users: [UserID], from id: ChannelID) async throws(ChatError) {
    try await call(
      "/group/kick_group",
      [
        "groupID": .string(try group(id, .removeMember)),
        "kickedUserIDs": .array(users.map { .string($0.rawValue) }), "reason": "", "sendMessage": false,
      ], for: .removeMember)
  }

  /// Pages are numbered at the vendor; a page larger than its 200 is made of several.
  public func members(of id: ChannelID, limit: Int, page: PageToken?) async throws(ChatError) -> Page<Member> {
    let me = try me(.listMembers)
    guard let group = OpenIMConversationID.groupID(of: id.rawValue) else {
      let peer = try peer(of: id, .listMembers)
      let people = try await users([me, peer])
      let mark = await readMark(of: peer, in: id)
      return Page(items: people.map { Member(user: $0, readPosition: $0.id == peer ? mark : nil) }, next: nil)
    }
    guard let mark = OpenIMMemberMark(page), limit >= 1 else {
      throw ChatError(.invalidArgument(field: "page"), operation: .listMembers)
    }
    // One page of the vendor holds the rows from `start` on when its size divides `start`.
    let size = min(limit, 200)
    var (list, total) = try await memberRows(of: group, at: mark.next - mark.next % size, size)
    var start = mark.next
    if mark.next > 0, total != mark.total {
      start = try await place(behind: mark, of: group, size, total)
      (list, total) = try await memberRows(of: group, at: start - start % size, size)
    }
    var row = start - start % size
    var found: [Member] = []
    var walk = PageWalk()
    while let first = list.first {
      // A server without an end of pages repeats its first one.
      try walk.advance(to: first.text(), .listMembers)
      found += list.dropFirst(max(0, start - row)).compactMap { OpenIMMapping.member($0, now: clock.now) }
      row += size
      guard found.count < limit, row < total else { break }
      (list, total) = try await memberRows(of: group, at: row, size)
    }
    let items = Array(found.prefix(limit))
    let end = start + items.count
    guard end < total, let last = items.last else { return Page(items: items, next: nil) }
    return Page(items: items, next: OpenIMMemberMark(next: end, total: total, last: last.user.id).token)
  }

  private func memberRows(
    of group: String, at row: Int, _ size: Int
  ) async throws(ChatError) -> (list: [JSONValue], total: Int) {
    let data = try await call(
      "/group/get_group_member_list",
      [
        "groupID": .string(group), "filter": 0, "keyword": "",
        "pagination": OpenIMAdmin.page(row / size + 1, size: size),
      ], for: .listMembers)
    return (data["members"]?.array ?? [], Int(clamping: data["total"]?.int ?? 0))
  }

  /// The rows moved up when somebody before them left: the next one is behind the last that was given, wherever that is
  /// now. Where it is gone itself, so many are given again as have left.
  private func place(
    behind mark: OpenIMMemberMark, of group: String, _ size: Int, _ total: Int
  ) async throws(ChatError) -> Int {
    var row = mark.next - 1 - (mark.next - 1) % size
    while row >= 0 {
      let (list, _) = try await memberRows(of: group, at: row, size)
      if let place = list.firstIndex(where: { $0["userID"]?.string?.utf8.elementsEqual(mark.last.rawValue.utf8) == true }) {
        return row + place + 1
      }
      row -= size
    }
    return max(0, mark.next - max(0, mark.total - total))
  }

  /// How far the other one of a pair has read: no call tells it, but what was read is marked in the messages. Looks at
  /// the newest fifty.
  private func readMark(of peer: UserID, in id: ChannelID) async -> MessagePosition? {
    var seq = othersRead[OpenIMParticipant(channel: id, user: peer)] ?? 0
    if let last = newest[id], last > seq,
      let pulled = try? await pull(id, max(1, last - 49)...last, count: 50, for: .listMembers)
    {
      for data in pulled.messages where data.isRead && UserID(data.sendID) != peer { seq = max(seq, data.seq) }
    }
    return seq > 0 ? MessagePosition(sequence: seq) : nil
  }

  public func setRole(_ role: MemberRole, of user: UserID, in id: ChannelID) async throws(ChatError) {
    let me = try me(.setRole)
    let group = try group(id, .setRole)
    if role == .owner {
      try await call(
        "/group/transfer_group",
        [
          "groupID": .string(group), "oldOwnerUserID": .string(me.rawValue),
          "newOwnerUserID": .string(user.rawValue),
        ], for: .setRole)
      return
    }
    guard role == .admin || role == .member else {
      throw ChatError(.invalidArgument(field: "role"), operation: .setRole)
    }
    try await call(
      "/group/set_group_member_info",
      [
        "members": [
          [
            "groupID": .string(group), "userID": .string(user.rawValue),
            "roleLevel": .int(OpenIMMapping.roleLevel(role)),
          ]
        ]
      ], for: .setRole)
  }

  /// Without an end: a hundred years, since the vendor wants seconds.
  public func mute(_ user: UserID, in id: ChannelID, for duration: Duration?) async throws(ChatError) {
    let seconds = duration.map { max(1, $0.components.seconds) } ?? 3_153_600_000
    try await call(
      "/group/mute_group_member",
      [
        "groupID": .string(try group(id, .mute)), "userID": .string(user.rawValue), "mutedSeconds": .int(seconds),
      ], for: .mute)
  }

  public func unmute(_ user: UserID, in id: ChannelID) async throws(ChatError) {
    try await call(
      "/group/cancel_mute_group_member",
      ["groupID": .string(try group(id, .mute)), "userID": .string(user.rawValue)], for: .mute)
  }
}

/// Where a list of members goes on.
private struct OpenIMMemberMark {
  var next: Int
  var total: Int
  /// The last one that was given.
  var last: UserID

  init(next: Int, total: Int, last: UserID) { (self.next, self.total, self.last) = (next, total, last) }

  /// nil for a token that is not ours.
  init?(_ page: PageToken?) {
    guard let page else {
      self.init(next: 0, total: 0, last: "")
      return
    }
    let parts = page.rawValue.split(separator: "/", maxSplits: 2)
    guard parts.count == 3, let next = Int(parts[0]), let total = Int(parts[1]), (1...1 << 40).contains(next),
      (0...1 << 40).contains(total)
    else { return nil }
    self.init(next: next, total: total, last: UserID(String(parts[2])))
  }

  var token: PageToken { PageToken("\(next)/\(total)/\(last)") }
}
