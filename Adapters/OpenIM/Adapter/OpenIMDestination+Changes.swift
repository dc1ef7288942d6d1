import ChatInterchange
import ChatJSON
import OpenIMWire
import UnifiedChat

/// What changes or takes back what an import wrote. What is gone already is no error.
///
/// The open server edits no message and removes no account; both stay `.unsupported`.
extension OpenIMDestination {
  /// A message that was recalled at its source is revoked in its sender's name.
  public func changeMessage(
    _ message: MessageRecord, id: MessageID, in channel: ChannelID
  ) async throws(ChatError) -> PutOutcome<MessageID> {
    guard message.message.isRecalled else { throw .unsupported(.messageEdit, operation: .writeDestination) }
    guard let place = try await places(of: [id], in: channel)[id] else {
      return .refused(ChatError(.notFound, operation: .writeDestination, detail: "the message is no longer there"))
    }
    if !place.isRevoked {
      try await call(
        "/msg/revoke_msg",
        ["userID": .string(place.sender), "conversationID": .string(channel.rawValue), "seq": .int(place.seq)])
    }
    return .skipped(
      Loss(
        field: "message", treatment: .degraded,
        explanation: "recalled after it was written; the server notes its own time and the sender, and no other change"))
  }

  /// Physically, for all.
  public func removeMessages(_ ids: [MessageID], in channel: ChannelID) async throws(ChatError) {
    let seqs = try await places(of: Set(ids), in: channel).values.map(\.seq).sorted()
    guard !seqs.isEmpty, let reader = try await source.reader(of: channel) else { return }
    for start in stride(from: 0, to: seqs.count, by: Self.listSize) {
      let part = seqs[start..<min(seqs.count, start + Self.listSize)]
      try await call(
        "/msg/delete_msgs",
        [
          "userID": .string(reader), "conversationID": .string(channel.rawValue),
          "seqs": .array(part.map { .int($0) }), "deleteSyncOpt": ["IsSyncSelf": false, "IsSyncOther": true],
        ])
    }
  }

  public func removeMembers(_ users: [UserID], from channel: ChannelID) async throws(ChatError) {
    guard let group = OpenIMConversationID.groupID(of: channel.rawValue) else {
      throw .unsupported(.memberRemove, operation: .writeDestination)
    }
    let data = try await call("/group/get_group_member_user_id", ["groupID": .string(group)])
    let present = Set((data["userIDs"]?.array ?? []).compactMap(\.string).map { UserID($0) })
    let leaving = users.map { UserID(OpenIMKeeping.userID($0)) }.filter(present.contains)
    for start in stride(from: 0, to: leaving.count, by: Self.listSize) {
      let some = leaving[start..<min(leaving.count, start + Self.listSize)]
      try await call(
        "/group/kick_group",
        [
          "groupID": .string(group), "kickedUserIDs": .array(some.map { .string($0.rawValue) }), "reason": "",
          "sendMessage": false,
        ])
    }
  }

  /// A group is dismissed with its members. A single chat is nobody's to remove: its messages are.
  public func removeChannel(_ channel: ChannelID) async throws(ChatError) {
    guard let group = OpenIMConversationID.groupID(of: channel.rawValue) else {
      throw .unsupported(.channelDelete, operation: .writeDestination)
    }
    let known = try await call("/group/get_groups_info", ["groupIDs": [.string(group)]])
    // 2: dismissed.
    guard let info = known["groupInfos"]?[0], info["status"]?.int != 2 else { return }
    try await call("/group/dismiss_group", ["groupID": .string(group), "deleteMember": true])
  }

  private struct Place {
    var seq: Int64
    var sender: String
    var isRevoked: Bool
  }

  /// The server finds messages by number only, so the conversation is read until all are found.
  private func places(
    of ids: Set<MessageID>, in channel: ChannelID
  ) async throws(ChatError) -> [MessageID: Place] {
    var found: [MessageID: Place] = [:]
    var cursor: Cursor?
    repeat {
      let page = try await source.pull(channel, after: cursor)
      for data in page.messages where !data.isPlaceholder {
        let id = MessageID(data.serverMsgID)
        guard ids.contains(id) else { continue }
        found[id] = Place(
          seq: data.seq, sender: data.sendID, isRevoked: data.contentType == OpenIMNotice.revoked)
      }
      cursor = page.next
    } while cursor != nil && found.count < ids.count
    return found
  }
}
