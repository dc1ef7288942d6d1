import ChatJSON
import OpenIMWire
import UnifiedChat

/// Recalls and deletions since a token. The server has no such log of its own; the notices that told of them are kept
/// with numbers, beside the conversation and among the user's own, and are read again from there.
extension OpenIMAdapter {
  /// Where a reading has come to in both.
  private struct Token {
    var beside: Int64
    var own: Int64

    var cursor: Cursor { Cursor("\(beside).\(own)") }

    init(beside: Int64, own: Int64) {
      self.beside = beside
      self.own = own
    }

    init?(_ cursor: Cursor) {
      let parts = cursor.rawValue.split(separator: ".", omittingEmptySubsequences: false).map { Int64($0) }
      guard parts.count == 2, let beside = parts[0], let own = parts[1], beside >= 0, own >= 0 else { return nil }
      self.init(beside: beside, own: own)
    }
  }

  /// Numbers of notices read at once.
  private static let noticeWindow: Int64 = 100
  /// The vendor's client asks for so many numbers at once.
  private static let fetchSize = 50

  /// A message that was removed for everybody by the server's admin leaves no id, and so is not among the removed.
  public func changes(in channel: ChannelID, since: Cursor?) async throws(ChatError) -> ChangePage {
    let me = try me(.changelog).rawValue
    let beside = OpenIMConversationID.twin(of: channel.rawValue)
    let own = OpenIMConversationID.notices(me, me)
    guard let since else {
      _ = try await bounds(of: channel, .changelog)
      let now = Token(beside: newest[ChannelID(beside)] ?? 0, own: newest[ChannelID(own)] ?? 0)
      return ChangePage(updated: [], removed: [], next: now.cursor, hasMore: false)
    }
    guard let start = Token(since) else {
      throw ChatError(.invalidArgument(field: "since"), operation: .changelog)
    }
    let data = try await live(.changelog).request(
      .pullRanges,
      [
        "userID": .string(me),
        "seqRanges": [Self.range(beside, after: start.beside), Self.range(own, after: start.own)], "order": 0,
      ], for: .changelog)
    let notices = data["notificationMsgs"]
    let (first, firstEnd) = part(notices?[beside], beside, after: start.beside)
    let (second, secondEnd) = part(notices?[own], own, after: start.own)
    let seqs = Self.changed(first + second, in: channel)
    let known = recalled[channel]
    let (updated, removed) = try await states(of: seqs, in: channel)
    if recalled[channel] != known { tellUnread(channel) }
    return ChangePage(
      updated: updated, removed: removed, next: Token(beside: firstEnd.next, own: secondEnd.next).cursor,
      hasMore: !firstEnd.isLast || !secondEnd.isLast)
  }

  private static func range(_ id: String, after seq: Int64) -> JSONValue {
    [
      "conversationID": .string(id), "begin": .int(seq.adding(1)), "end": .int(seq.adding(noticeWindow)),
      "num": .int(noticeWindow),
    ]
  }

  /// The notices of one window, and where the next one starts.
  private func part(
    _ entry: JSONValue?, _ id: String, after seq: Int64
  ) -> (notices: [OpenIMMessageData], end: (next: Int64, isLast: Bool)) {
    let end = seq.adding(Self.noticeWindow)
    let notices = (entry?["Msgs"]?.array ?? []).map { OpenIMMessageData(json: $0) }
    let last = notices.map(\.seq).max() ?? seq
    let isLast = entry == nil ? (newest[ChannelID(id)] ?? 0) <= end : entry?["isEnd"]?.bool ?? false
    return (notices, isLast ? (max(seq, last), true) : (end, false))
  }

  /// Numbers of the channel's messages that notices name.
  private static func changed(_ notices: [OpenIMMessageData], in channel: ChannelID) -> [Int64] {
    var seqs: Set<Int64> = []
    for notice in notices {
      guard let detail = OpenIMNotice.detail(of: notice.content),
        detail["conversationID"]?.string.map({ ChannelID($0) }) == channel
      else { continue }
      switch notice.contentType {
      case OpenIMNotice.revoked: if let seq = detail["seq"]?.int { seqs.insert(seq) }
      case OpenIMNotice.deleted: seqs.formUnion((detail["seqs"]?.array ?? []).compactMap(\.int))
      default: break
      }
    }
    return seqs.sorted()
  }

  private func states(
    of seqs: [Int64], in channel: ChannelID
  ) async throws(ChatError) -> (updated: [Message], removed: [MessageID]) {
    var updated: [Message] = []
    var removed: [MessageID] = []
    for start in stride(from: 0, to: seqs.count, by: Self.fetchSize) {
      let some = Array(seqs[start..<min(seqs.count, start + Self.fetchSize)])
      for data in try await fetch(some, in: channel) {
        if data.isPlaceholder {
          if !data.serverMsgID.isEmpty { removed.append(MessageID(data.serverMsgID)) }
        } else if let message = data.message(in: channel.rawValue) {
          updated.append(message)
        }
      }
    }
    return (updated, removed)
  }

  // MARK: Lost notices

  /// The channels beside which notices stand; nil: the user's own, which may be about any.
  func channels(besideNotices id: ChannelID) -> [ChannelID]? {
    let rest = id.rawValue.utf8.dropFirst(2)
    let candidates = ["si_", "sg_", "sn_"].map { ChannelID($0 + String(decoding: Array(rest), as: UTF8.self)) }
    let known = candidates.filter { newest[$0] != nil }
    return known.isEmpty ? nil : known
  }
}
