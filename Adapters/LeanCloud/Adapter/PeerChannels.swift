import ChatJSON
import LeanCloudWire
import UnifiedChat

extension LeanCloudPeerAdapter {
  /// A pair needs no call; a group is a room that its maker joins first.
  public func createChannel(_ draft: ChannelDraft) async throws(ChatError) -> Channel {
    let user = try requireUser(.createChannel)
    var others: [UserID] = []
    for member in draft.members where member != user && !others.contains(member) { others.append(member) }
    try LeanCloudLimits.checkPeers(others, .createChannel)
    switch draft.kind {
    case .direct:
      guard let peer = others.first, others.count == 1 else {
        throw ChatError(
          .invalidArgument(field: "members"), operation: .createChannel, detail: "a direct channel has one other member"
        )
      }
      return pair(user, peer)
    case .group where !draft.isDistinct, .open: break
    case .group: throw .unsupported(.channelGroupDistinct, operation: .createChannel)
    case .service, .temporary, .unknown:
      throw ChatError(
        .invalidArgument(field: "kind"), operation: .createChannel, detail: "this model has no such channel")
    }
    if draft.customData != nil { throw .unsupported(.channelCustomData, operation: .createChannel) }
    let id = try await enter(nil, isOpen: draft.kind == .open, .createChannel)
    if !others.isEmpty { try await invite(others, to: id) }
    return group(id, kind: draft.kind)
  }

  private func pair(_ user: UserID, _ peer: UserID) -> Channel {
    Channel(
      id: LeanCloudPair.channel(user, peer), kind: .direct, isDistinct: true, memberCount: 2, peer: peer,
      myState: .joined)
  }

  private func group(_ id: ChannelID, kind: ChannelKind = .group) -> Channel {
    Channel(id: id, kind: kind, myState: .joined)
  }

  /// Without an id a new room is made.
  private func enter(
    _ id: ChannelID?, isOpen: Bool, _ operation: ChatError.Operation
  ) async throws(ChatError) -> ChannelID {
    let user = try requireUser(operation)
    var fields = JSONObject()
    fields["roomId"] = id.map { .string($0.rawValue) }
    if isOpen { fields["transient"] = true }
    Self.add(try await sign("join", [rest.appID, user.rawValue, id?.rawValue ?? "", ""], user, operation), to: &fields)
    let answer = try await ask("room", "join", fields, operation)
    guard let room = answer.string("roomId") else {
      throw ChatError(.protocolViolation, operation: operation, detail: "joined without roomId")
    }
    echoes.joined.insert(ChannelID(room))
    return ChannelID(room)
  }

  /// A group's row in the storage service shows whether it exists and whether this user is in it.
  public func channel(_ id: ChannelID) async throws(ChatError) -> Channel {
    let user = try requireUser(.fetchChannel)
    if let peers = LeanCloudPair.peers(of: id) {
      guard let peer = peers.first(where: { $0 != user }), peers.contains(user) else {
        throw ChatError(.permission(), operation: .fetchChannel, detail: "this user is no peer of the pair")
      }
      return pair(user, peer)
    }
    let answer = try await rest.call(
      "GET", "/1.1/classes/AVOSRealtimeGroups/\(LeanCloudREST.percent(id.rawValue))", key: .app,
      operation: .fetchChannel)
    let members = answer["m"]?.array?.compactMap(\.string).map { UserID($0) } ?? []
    guard members.contains(user) else {
      throw ChatError(.permission(), operation: .fetchChannel, detail: "this user is no member of \(id)")
    }
    return group(id, kind: answer["tr"]?.bool == true ? .open : .group)
  }

  public func channels(_ query: ChannelQuery, page: PageToken?) async throws(ChatError) -> Page<Channel> {
    throw .unsupported(.channelQuery, operation: .listChannels)
  }

  public func updateChannel(_ id: ChannelID, _ changes: ChannelChanges) async throws(ChatError) -> Channel {
    throw .unsupported(.channelCustomData, operation: .updateChannel)
  }

  public func markRead(_ id: ChannelID, upTo position: MessagePosition?) async throws(ChatError) {
    throw .unsupported(.unreadMarkAt, operation: .markRead)
  }

  public func join(_ id: ChannelID) async throws(ChatError) -> Channel {
    guard LeanCloudPair.peers(of: id) == nil else { return try await channel(id) }
    return group(try await enter(id, isOpen: false, .join))
  }

  public func leave(_ id: ChannelID) async throws(ChatError) {
    // Before the answer: an invitation can overtake the task that takes it.
    let wasIn = echoes.joined.remove(id) != nil
    do { _ = try await ask("room", "leave", ["roomId": .string(id.rawValue)], .leave) } catch {
      if wasIn { echoes.joined.insert(id) }
      throw error
    }
  }

  public func invite(_ users: [UserID], to id: ChannelID) async throws(ChatError) {
    try await change("invite", users, id, .invite)
  }

  public func removeMembers(_ users: [UserID], from id: ChannelID) async throws(ChatError) {
    try await change("kick", users, id, .removeMember)
  }

  private func change(
    _ action: String, _ users: [UserID], _ id: ChannelID, _ operation: ChatError.Operation
  ) async throws(ChatError) {
    let user = try requireUser(operation)
    try LeanCloudLimits.checkPeers(users, operation)
    let names = users.map(\.rawValue)
    var fields: JSONObject = ["roomId": .string(id.rawValue), "roomPeerIds": .strings(names)]
    let signed = try await sign(
      action, [rest.appID, user.rawValue, id.rawValue, LeanCloudSignature.joined(names)], user, operation)
    Self.add(signed, to: &fields)
    let answer = try await ask("room", action, fields, operation)
    let accepted = Set(answer.strings("roomPeerIds").map { UserID($0) })
    guard users.allSatisfy(accepted.contains) else {
      throw ChatError(.permission(), operation: operation, detail: "some of the users were refused")
    }
  }

  // MARK: Pushes

  func presenceTold(_ frame: LeanCloudFrame) async {
    let presence: Presence = frame.string("status") == "on" ? .online : .offline(lastSeen: nil)
    for name in frame.strings("sessionPeerIds") where watched.contains(UserID(name)) {
      if subscriptionsInFlight > 0 { toldMeanwhile.insert(UserID(name)) }
      await line.publish(ChatEvent(.presenceChanged(UserID(name), presence)))
    }
  }

  func roomTold(_ frame: LeanCloudFrame) async {
    guard let name = frame.string("roomId") else { return }
    let id = ChannelID(name)
    let actor = frame.string("byPeerId").map { UserID($0) }
    let users = frame.strings("roomPeerIds").map { UserID($0) }
    switch frame.operation {
    case "joined":
      guard echoes.joined.insert(id).inserted else { return }
      await line.publish(ChatEvent(.channelJoined(group(id))))
    case "left", "reject":
      echoes.joined.remove(id)
      await line.publish(ChatEvent(.channelLeft(id, actor == me ? .left : .removed(by: actor))))
    case "members-joined":
      for user in users where user != me {
        await line.publish(ChatEvent(.memberJoined(id, Member(user: User(id: user)))))
      }
    case "members-left":
      // The frame does not say who did it.
      for user in users where user != me { await line.publish(ChatEvent(.memberLeft(id, user, .unknown))) }
    default: break
    }
  }
}
