import ChatInterchange
import ChatJSON
import OpenIMWire
import UnifiedChat

extension OpenIMDestination {
  public func existing(
    in channel: ChannelID, after cursor: Cursor?
  ) async throws(ChatError) -> SourcePage<ExistingMessage> {
    let page = try await source.pull(channel, after: cursor)
    var items: [ExistingMessage] = []
    for data in page.messages {
      guard let read = data.read(in: channel.rawValue, view), let origin = read.origin else { continue }
      // A run that was stopped between the two has sent a tombstone and not taken it back.
      if read.message.isRecalled, data.contentType != OpenIMNotice.revoked {
        try await revoke(data.seq, by: data.sendID, in: channel)
      }
      items.append(ExistingMessage(origin: origin, id: MessageID(data.serverMsgID)))
    }
    return SourcePage(items: items, next: page.next)
  }

  public func finishChannel(
    _ channel: ChannelID, original: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) {
    let people = members.map(\.member)
    try await setReadMarks(of: people, in: channel)
    guard let group = OpenIMConversationID.groupID(of: channel.rawValue) else { return }
    try await mute(people, in: group)
    try await takeOut(people, from: group)
    if original.channel.isFrozen {
      try await call("/group/mute_group", ["groupID": .string(group)])
    }
  }

  // MARK: Read marks

  /// Positions of the origin become numbers here: that of the last message that does not come after the mark.
  private func setReadMarks(of people: [Member], in channel: ChannelID) async throws(ChatError) {
    let marked = people.filter { $0.readPosition != nil && $0.state == .joined }
    guard !marked.isEmpty else { return }
    let order = try await originalOrder(in: channel)
    guard !order.isEmpty else { return }
    let admin = admin
    _ = try await concurrently(marked, width: 8) { (member) async throws(ChatError) in
      guard let position = member.readPosition else { return }
      let seq = Self.sequence(of: position, in: order)
      _ = try await admin.call(
        "/msg/set_conversation_has_read_seq",
        [
          "userID": .string(OpenIMKeeping.userID(member.user.id)), "conversationID": .string(channel.rawValue),
          "hasReadSeq": .int(seq),
        ], for: .writeDestination)
    }
  }

  /// Original positions with the numbers that they have here, ascending.
  private func originalOrder(
    in channel: ChannelID
  ) async throws(ChatError) -> [(position: MessagePosition, seq: Int64)] {
    var order: [(position: MessagePosition, seq: Int64)] = []
    var cursor: Cursor?
    repeat {
      let page = try await source.pull(channel, after: cursor)
      for data in page.messages where data.read(in: channel.rawValue, view)?.origin != nil {
        guard let text = OpenIMExtra(data.ex).kept["position"]?.string, let position = MessagePosition(text) else {
          continue
        }
        order.append((position, data.seq))
      }
      cursor = page.next
    } while cursor != nil
    return order
  }

  private static func sequence(of position: MessagePosition, in order: [(position: MessagePosition, seq: Int64)]) -> Int64 {
    var (low, high) = (0, order.count)
    while low < high {
      let middle = (low + high) / 2
      if order[middle].position <= position { low = middle + 1 } else { high = middle }
    }
    return low == 0 ? 0 : order[low - 1].seq
  }

  // MARK: Final state of members

  private func mute(_ people: [Member], in group: String) async throws(ChatError) {
    for member in people where member.isMuted && member.state == .joined {
      // A mute without an end is one of a hundred years.
      var seconds: Int64 = 3_153_600_000
      if let until = member.mutedUntil {
        seconds = (until.milliseconds - source.clock.now.milliseconds) / 1000
        guard seconds > 0 else { continue }
      }
      try await call(
        "/group/mute_group_member",
        [
          "groupID": .string(group), "userID": .string(OpenIMKeeping.userID(member.user.id)),
          "mutedSeconds": .int(seconds),
        ])
    }
  }

  /// Those who were members only so that their messages could be written.
  private func takeOut(_ people: [Member], from group: String) async throws(ChatError) {
    let stay = Set(people.filter { $0.state == .joined }.map { UserID(OpenIMKeeping.userID($0.user.id)) })
    let data = try await call("/group/get_group_member_user_id", ["groupID": .string(group)])
    let extra = (data["userIDs"]?.array ?? []).compactMap(\.string).filter {
      !stay.contains(UserID($0)) && $0 != admin.userID
    }
    for start in stride(from: 0, to: extra.count, by: Self.listSize) {
      let some = extra[start..<min(extra.count, start + Self.listSize)]
      try await call(
        "/group/kick_group",
        [
          "groupID": .string(group), "kickedUserIDs": .array(some.map { .string($0) }), "reason": "",
          "sendMessage": false,
        ])
    }
  }
}
