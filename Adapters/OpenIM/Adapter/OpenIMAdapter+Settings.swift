import ChatJSON
import OpenIMWire
import UnifiedChat

/// What a user keeps with a channel for themself, on the server.
extension OpenIMAdapter {
  // MARK: Push

  /// The server holds one token of a user and platform.
  public func registerPush(token: String) async throws(ChatError) {
    guard !token.isEmpty else { throw ChatError(.invalidArgument(field: "token"), operation: .registerPush) }
    try await setPush(token, seconds: 0)
  }

  /// There is no call that forgets a token: an empty one that ends after a second takes its place.
  public func unregisterPush(token: String) async throws(ChatError) { try await setPush("", seconds: 1) }

  private func setPush(_ token: String, seconds: Int64) async throws(ChatError) {
    try await call(
      "/third/fcm_update_token",
      [
        "platformID": .int(platform), "fcmToken": .string(token),
        "account": .string(try me(.registerPush).rawValue), "expireTime": .int(seconds),
      ], for: .registerPush)
  }

  // MARK: Hiding

  /// Hidden until somebody writes again: the number of the newest message is kept in the `ex` of the user's own
  /// conversation record, so that all devices of the user see it.
  public func setHidden(_ isHidden: Bool, _ id: ChannelID) async throws(ChatError) {
    let (record, newest) = try await ownRecord(of: id, .hideChannel)
    var extra = OpenIMExtra(record?["ex"]?.string ?? "")
    extra.notes[Self.hiddenMark] = isHidden ? .int(newest) : nil
    try await setConversation(id, ["ex": .string(extra.text)], for: .hideChannel)
  }

  static let hiddenMark = "hiddenUpTo"

  private func ownRecord(
    of id: ChannelID, _ operation: ChatError.Operation
  ) async throws(ChatError) -> (record: JSONValue?, newest: Int64) {
    let me = try me(operation)
    let data = try await call(
      "/jssdk/get_conversations",
      ["ownerUserID": .string(me.rawValue), "conversationIDs": [.string(id.rawValue)]], for: operation)
    let drawn = data["conversations"]?[0]
    return (drawn?["conversation"], drawn?["maxSeq"]?.int ?? 0)
  }

  /// What the record of a conversation says of it, for its owner.
  static func apply(record: JSONValue, newest: Int64, to channel: inout Channel) {
    channel.isPinned = record["isPinned"]?.bool ?? false
    channel.notificationLevel = (record["recvMsgOpt"]?.int ?? 0) == 0 ? .all : NotificationLevel.none
    switch record["groupAtType"]?.int ?? 0 {
    case OpenIMAtType.me, OpenIMAtType.everyone, OpenIMAtType.everyoneAndMe: channel.unreadMentions = .atLeast(1)
    default: channel.unreadMentions = .exact(0)
    }
    if let mark = OpenIMExtra(record["ex"]?.string ?? "").notes[hiddenMark]?.int { channel.isHidden = newest <= mark }
  }

  // MARK: Mentions

  /// Reading to the end settles the mention, as the vendor's client does it by a call of its own.
  func settleMention(in id: ChannelID, readUpTo seq: Int64) async throws(ChatError) {
    guard let end = mentioned[id], seq >= max(end, newest[id] ?? 0) else { return }
    try await setConversation(id, ["groupAtType": .int(OpenIMAtType.none)], for: .markRead)
    if mentioned[id] == end { mentioned[id] = nil }
  }
}
