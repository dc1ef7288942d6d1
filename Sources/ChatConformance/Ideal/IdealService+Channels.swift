import UnifiedChat

extension IdealService {
  func create(_ draft: ChannelDraft, session: Int) throws(ChatError) -> Channel {
    let creator = try self.session(session, .createChannel)
    try strike("channelCreate", user: creator, channel: nil, phase: .received)
    var others: [UserID] = []
    for user in draft.members where user != creator && !others.contains(user) { others.append(user) }
    for user in others where users[user] == nil {
      throw ChatError(.notFound, operation: .createChannel, detail: "no user \(user)")
    }
    if draft.kind == .direct, others.count != 1 {
      throw ChatError(
        .invalidArgument(field: "members"), operation: .createChannel, detail: "a direct channel has one other member")
    }
    guard [.direct, .group, .open].contains(draft.kind) else {
      throw ChatError(.invalidArgument(field: "kind"), operation: .createChannel, detail: "clients cannot create it")
    }
    let distinct = draft.kind == .direct || draft.isDistinct
    if distinct, let existing = distinctChannel(draft.kind, Set(others + [creator])) {
      return channels[existing]?.seen(by: creator) ?? Channel(id: existing, kind: draft.kind)
    }
    let id = ChannelID("ideal-\(nextNumber())")
    var channel = Channel(id: id, kind: draft.kind, name: draft.name, coverURL: draft.coverURL)
    channel.customData = draft.customData
    channel.isDistinct = distinct
    channel.createdAt = clock.now
    channel.createdBy = creator
    channels[id] = IdealChannel(channel: channel)
    admit(creator, to: id, role: draft.kind == .direct ? .member : .owner)
    for user in others { admit(user, to: id, role: .member) }
    for user in [creator] + others { tellJoined(user, id, except: session) }
    return channels[id]?.seen(by: creator) ?? channel
  }

  private func distinctChannel(_ kind: ChannelKind, _ members: Set<UserID>) -> ChannelID? {
    channels.values.first {
      $0.channel.isDistinct && $0.channel.kind == kind && Set($0.members) == members
    }?.channel.id
  }

  func admit(_ user: UserID, to id: ChannelID, role: MemberRole) {
    guard channels[id]?.memberships[user]?.state != .joined else { return }
    let known = users[user] ?? User(id: user)
    // Read before the channel is written: both at once is a conflict of access.
    let newest = channels[id]?.messages.last?.position
    channels[id]?.members.append(user)
    channels[id]?.joinNumbers[user] = nextNumber()
    channels[id]?.memberships[user] = Member(user: known, role: role, joinedAt: clock.now, readPosition: newest)
  }

  private func tellJoined(_ user: UserID, _ id: ChannelID, except: Int? = nil) {
    guard let channel = channels[id]?.seen(by: user) else { return }
    tell(user, .channelJoined(channel), except: except)
  }

  func channel(_ id: ChannelID, session: Int) throws(ChatError) -> Channel {
    let user = try self.session(session, .fetchChannel)
    if let channel = channels[id], channel.channel.kind == .open { return channel.seen(by: user) }
    return try joined(id, user, .fetchChannel).seen(by: user)
  }

  func list(_ query: ChannelQuery, page: PageToken?, session: Int) throws(ChatError) -> Page<Channel> {
    let user = try self.session(session, .listChannels)
    let all = channels.values
      .filter { $0.memberships[user]?.state == .joined }
      .map { $0.seen(by: user) }
      .filter { matches($0, query) }
      .sorted { Self.precedes($0, $1, query.order) }
    var rest = all[...]
    if let page {
      // The token names the last channel shown and its place then, so that one that moved up meanwhile is not missed.
      guard let start = Self.place(page) else {
        throw ChatError(.invalidArgument(field: "page"), operation: .listChannels)
      }
      rest = all.drop { !Self.precedes(start, $0, query.order) }[...]
    }
    let items = Array(rest.prefix(query.limit))
    let hasMore = rest.count > items.count
    return Page(items: items, next: hasMore ? items.last.map(Self.token) : nil)
  }

  private func matches(_ channel: Channel, _ query: ChannelQuery) -> Bool {
    if !query.includesHidden, channel.isHidden { return false }
    if let kinds = query.kinds, !kinds.contains(channel.kind) { return false }
    if let text = query.nameContains, channel.name?.contains(text) != true { return false }
    if query.unreadOnly, (channel.unread.number ?? 0) == 0 { return false }
    if let wanted = query.members, let all = channels[channel.id]?.members, !wanted.isSubset(of: Set(all)) {
      return false
    }
    return true
  }

  /// Newest message first (channels without one by creation), then by id.
  static func precedes(_ left: Channel, _ right: Channel, _ order: ChannelQuery.Order) -> Bool {
    switch order {
    case .lastMessage:
      let (a, b) = (activity(left), activity(right))
      return a == b ? left.id < right.id : a > b
    case .created:
      let (a, b) = (left.createdAt?.milliseconds ?? 0, right.createdAt?.milliseconds ?? 0)
      return a == b ? left.id < right.id : a > b
    case .name:
      let (a, b) = (left.name ?? "", right.name ?? "")
      return a == b ? left.id < right.id : a.utf8.lexicographicallyPrecedes(b.utf8)
    }
  }

  private static func activity(_ channel: Channel) -> Int64 {
    (channel.lastMessage?.createdAt ?? channel.createdAt)?.milliseconds ?? 0
  }

  private static func token(_ channel: Channel) -> PageToken {
    PageToken("\(activity(channel))|\(channel.createdAt?.milliseconds ?? 0)|\(channel.id)|\(channel.name ?? "")")
  }

  private static func place(_ token: PageToken) -> Channel? {
    let parts = token.rawValue.split(separator: "|", maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 4, let activity = Int64(parts[0]), let created = Int64(parts[1]) else { return nil }
    var channel = Channel(id: ChannelID(String(parts[2])), kind: .group, name: String(parts[3]))
    channel.createdAt = Timestamp(milliseconds: created)
    channel.lastMessage = Message(
      channel: channel.id, sender: nil, createdAt: Timestamp(milliseconds: activity), content: .text(""))
    return channel
  }

  func change(_ id: ChannelID, session: Int, _ body: (inout Channel) -> Void) throws(ChatError) -> Channel {
    let user = try self.session(session, .updateChannel)
    _ = try joined(id, user, .updateChannel)
    if var channel = channels[id]?.channel {
      body(&channel)
      channels[id]?.channel = channel
    }
    for member in channels[id]?.members ?? [] {
      if let seen = channels[id]?.seen(by: member) { tell(member, .channelChanged(seen), except: session) }
    }
    return try joined(id, user, .updateChannel).seen(by: user)
  }

  func delete(_ id: ChannelID, session: Int) throws(ChatError) {
    let user = try self.session(session, .deleteChannel)
    try requireAdmin(id, user, .deleteChannel)
    tellMembers(of: id, .channelDeleted(id), except: session)
    channels[id] = nil
  }

  // MARK: Members

  func join(_ id: ChannelID, session: Int) throws(ChatError) -> Channel {
    let user = try self.session(session, .join)
    guard let channel = channels[id] else { throw ChatError(.notFound, operation: .join, detail: "no channel \(id)") }
    guard channel.memberships[user]?.state != .banned, channel.channel.kind != .direct else {
      throw ChatError(.permission(), operation: .join, detail: "\(id) does not let this user in")
    }
    guard channel.memberships[user]?.state != .joined else { return channel.seen(by: user) }
    admit(user, to: id, role: .member)
    announce(user, in: id)
    return channels[id]?.seen(by: user) ?? channel.channel
  }

  private func announce(_ user: UserID, in id: ChannelID) {
    guard let channel = channels[id], channel.channel.kind != .open, let member = channel.memberships[user] else {
      return
    }
    for other in channel.members where other != user { tell(other, .memberJoined(id, member)) }
  }

  func invite(_ invited: [UserID], to id: ChannelID, session: Int) throws(ChatError) {
    let user = try self.session(session, .invite)
    let channel = try joined(id, user, .invite)
    for user in invited where users[user] == nil {
      throw ChatError(.notFound, operation: .invite, detail: "no user \(user)")
    }
    guard channel.channel.kind != .direct else {
      throw ChatError(.permission(), operation: .invite, detail: "a direct channel keeps its two members")
    }
    for user in invited where channels[id]?.memberships[user]?.state != .joined {
      admit(user, to: id, role: .member)
      channels[id]?.channel.isDistinct = false
      announce(user, in: id)
      tellJoined(user, id)
    }
  }

  func leave(_ id: ChannelID, session: Int) throws(ChatError) {
    let user = try self.session(session, .leave)
    _ = try joined(id, user, .leave)
    depart(user, from: id, .left, except: session)
  }

  func depart(_ user: UserID, from id: ChannelID, _ reason: DepartureReason, except: Int? = nil) {
    guard let channel = channels[id], channel.memberships[user]?.state == .joined else { return }
    channels[id]?.members.removeAll { $0 == user }
    channels[id]?.memberships[user]?.state = .left
    channels[id]?.channel.isDistinct = false
    tell(user, .channelLeft(id, reason), except: except)
    if channel.channel.kind != .open { tellMembers(of: id, .memberLeft(id, user, reason)) }
  }

  func remove(_ removed: [UserID], from id: ChannelID, session: Int, banned: Bool = false) throws(ChatError) {
    let user = try self.session(session, .removeMember)
    try requireAdmin(id, user, .removeMember)
    for target in removed {
      guard channels[id]?.memberships[target]?.state == .joined || banned else {
        throw ChatError(.notFound, operation: .removeMember, detail: "\(target) is no member of \(id)")
      }
      depart(target, from: id, banned ? .banned(by: user) : .removed(by: user), except: nil)
      if banned {
        channels[id]?.memberships[target, default: Member(user: User(id: target))].state = .banned
      }
    }
  }

  func memberPage(_ id: ChannelID, limit: Int, page: PageToken?, session: Int) throws(ChatError) -> Page<Member> {
    let user = try self.session(session, .listMembers)
    let channel = try joined(id, user, .listMembers)
    // By the number of joining, so that nobody is passed over when somebody before them leaves.
    let start = page.flatMap { Int64($0.rawValue) } ?? 0
    let rest = channel.members.filter { (channel.joinNumbers[$0] ?? 0) > start }
    let ids = rest.prefix(limit)
    let last = ids.last.flatMap { channel.joinNumbers[$0] }
    return Page(
      items: ids.compactMap { channel.memberships[$0] },
      next: rest.count > ids.count ? last.map { PageToken(String($0)) } : nil)
  }

  func changeMember(
    _ target: UserID, in id: ChannelID, _ operation: ChatError.Operation, session: Int,
    _ body: (inout Member) -> Void
  ) throws(ChatError) {
    let user = try self.session(session, operation)
    try requireAdmin(id, user, operation)
    guard var member = channels[id]?.memberships[target], member.state == .joined || operation == .ban else {
      throw ChatError(.notFound, operation: operation, detail: "\(target) is no member of \(id)")
    }
    body(&member)
    channels[id]?.memberships[target] = member
    tellMembers(of: id, .memberChanged(id, member), except: session)
  }

  func resign(in id: ChannelID, session: Int, to successor: UserID) throws(ChatError) {
    let user = try self.session(session, .setRole)
    guard user != successor, var member = channels[id]?.memberships[user], member.role == .owner else { return }
    member.role = .admin
    channels[id]?.memberships[user] = member
    tellMembers(of: id, .memberChanged(id, member), except: session)
  }

  func setView(_ id: ChannelID, session: Int, _ operation: ChatError.Operation, _ body: (inout IdealChannel.View) -> Void)
    throws(ChatError)
  {
    let user = try self.session(session, operation)
    _ = try joined(id, user, operation)
    var view = channels[id]?.views[user] ?? IdealChannel.View()
    body(&view)
    channels[id]?.views[user] = view
    if let seen = channels[id]?.seen(by: user) { tell(user, .channelChanged(seen), except: session) }
  }
}
