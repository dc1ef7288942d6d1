import ChatInterchange
import ChatJSON
import OpenIMWire
import UnifiedChat

/// A member through whom a conversation is read.
struct OpenIMReader: Sendable {
  var user: String
  /// Smaller numbers are out of this user's sight.
  var lowest: Int64
}

// The server shows a conversation through one of its users, and shows no more than that user has left of it: whoever
// clears a conversation moves the first number that they see, and what they delete they get as a placeholder.
extension OpenIMSource {
  public func messages(
    in channel: ChannelID, after cursor: Cursor?
  ) async throws(ChatError) -> SourcePage<MessageRecord> {
    let page = try await pull(channel, after: cursor)
    var result = SourcePage<MessageRecord>(items: [], next: page.next)
    if let cleared = page.unseen {
      result.unreadable.append(
        UnreadableRecord(
          kind: "message", id: "\(cleared.lowerBound)-\(cleared.upperBound)", channel: channel,
          reason: "numbers \(cleared.lowerBound) to \(cleared.upperBound) are out of sight of every member who was asked: "
            + "cleared, or no longer kept"))
    }
    for data in page.messages {
      if data.isPlaceholder {
        // A hole has no id; a message that was deleted has one.
        guard !data.serverMsgID.isEmpty else { continue }
        result.unreadable.append(
          UnreadableRecord(
            kind: "message", id: data.serverMsgID, channel: channel, reason: "deleted by every member who was asked"))
      } else if let read = data.read(in: channel.rawValue, view) {
        let record = MessageRecord(
          message: read.message, origin: read.origin,
          raw: read.origin == nil ? JSONText(unchecked: data.restJSON.text()) : nil)
        result.add(record, "message", id: data.serverMsgID, in: channel, read.finding)
      }
    }
    return result
  }

  struct Pulled {
    var messages: [OpenIMMessageData]
    var next: Cursor?
    /// Numbers that nobody who was asked sees.
    var unseen: ClosedRange<Int64>?
  }

  /// One window of numbers.
  func pull(_ channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> Pulled {
    var after: Int64 = 0
    if let cursor {
      guard let seq = Int64(cursor.rawValue), seq >= 0, seq < .max - Self.messagePage else {
        throw ChatError(.invalidArgument(field: "cursor"), operation: .readSource)
      }
      after = seq
    }
    let isKnown = readers[channel] != nil
    let pulled = try await pull(channel, after: after)
    // Cleared or removed since the readers were chosen: somebody else may still see it.
    guard isKnown, pulled.unseen != nil || pulled.messages.isEmpty else { return pulled }
    forget(channel)
    return try await pull(channel, after: after)
  }

  private func forget(_ channel: ChannelID) { (readers[channel], others[channel]) = (nil, nil) }

  private func pull(_ channel: ChannelID, after: Int64) async throws(ChatError) -> Pulled {
    guard let reader = try await readers(of: channel).first else { return try await pullUnread(channel, after: after) }
    let start = min(max(after + 1, reader.lowest), .max - Self.messagePage)
    let end = start + Self.messagePage - 1
    guard let entry = try await window(start...end, of: channel, through: reader) else {
      // Nothing to be seen there: the end, or a stretch that is not kept.
      let last = try await newestNumber(of: channel, for: reader.user)
      let top = min(max(end, start), last)
      return Pulled(
        messages: [], next: end < last ? Cursor(String(end)) : nil, unseen: after < top ? after + 1...top : nil)
    }
    let messages = (entry["Msgs"]?.array ?? []).map { OpenIMMessageData(json: $0) }
    if let newest = messages.map(\.seq).max(), newest <= after, newest > 0 {
      throw ChatError(
        .protocolViolation, operation: .readSource,
        detail: "the messages of \(channel) do not move on: asked for those after \(after), the server gives up to \(newest)")
    }
    let first = messages.map(\.seq).filter { $0 > 0 }.min() ?? start
    return Pulled(
      messages: try await completed(messages, of: channel, besides: reader),
      next: entry["isEnd"]?.bool == true ? nil : Cursor(String(end)),
      unseen: first > after + 1 ? after + 1...first - 1 : nil)
  }

  /// Nobody who was asked has the conversation: what is in it is out of reach, if anything is.
  private func pullUnread(_ channel: ChannelID, after: Int64) async throws(ChatError) -> Pulled {
    guard let user = try await candidates(of: channel, page: 1, size: Self.fewMembers).users.first else {
      return Pulled(messages: [], next: nil)
    }
    let last = try await newestNumber(of: channel, for: user)
    return Pulled(messages: [], next: nil, unseen: after < last ? after + 1...last : nil)
  }

  private func newestNumber(of channel: ChannelID, for user: String) async throws(ChatError) -> Int64 {
    let seqs = try await call(
      "/msg/get_conversations_has_read_and_max_seq",
      ["userID": .string(user), "conversationIDs": [.string(channel.rawValue)]])
    return seqs["seqs"]?[channel.rawValue]?["maxSeq"]?.int ?? 0
  }

  private func window(
    _ numbers: ClosedRange<Int64>, of channel: ChannelID, through reader: OpenIMReader
  ) async throws(ChatError) -> JSONValue? {
    let data = try await call(
      "/msg/pull_msg_by_seq",
      [
        "userID": .string(reader.user), "order": 0,
        "seqRanges": [
          [
            "conversationID": .string(channel.rawValue), "begin": .int(numbers.lowerBound), "end": .int(numbers.upperBound),
            "num": .int(Self.messagePage),
          ]
        ],
      ])
    return data["msgs"]?[channel.rawValue]
  }

  /// With what the first reader has deleted as others still have it.
  private func completed(
    _ messages: [OpenIMMessageData], of channel: ChannelID, besides reader: OpenIMReader
  ) async throws(ChatError) -> [OpenIMMessageData] {
    var messages = messages
    func gone() -> [Int64] { messages.filter { $0.isPlaceholder && !$0.serverMsgID.isEmpty }.map(\.seq) }
    guard !gone().isEmpty else { return messages }
    for other in try await others(in: channel) where other.user != reader.user {
      let numbers = gone().filter { $0 >= other.lowest }
      guard let low = numbers.min(), let high = numbers.max() else { continue }
      let entry = try await window(low...high, of: channel, through: other)
      let seen = Dictionary(
        (entry?["Msgs"]?.array ?? []).map { OpenIMMessageData(json: $0) }.filter { !$0.isPlaceholder }.map { ($0.seq, $0) }
      ) { $1 }
      for (place, data) in messages.enumerated() where data.isPlaceholder { messages[place] = seen[data.seq] ?? data }
    }
    return messages
  }

  // MARK: Readers

  private static let fewMembers = 3
  /// Of more members of a group nobody is asked: what a hundred of them have cleared is as good as gone.
  private static let mostMembers = 300

  /// A member who has the conversation; nil when nobody has.
  func reader(of channel: ChannelID) async throws(ChatError) -> String? { try await readers(of: channel).first?.user }

  /// Asked one after the other until somebody sees all of it.
  private func readers(of channel: ChannelID) async throws(ChatError) -> [OpenIMReader] {
    if let known = readers[channel] { return known }
    var found: [OpenIMReader] = []
    var asked: Set<String> = []
    var (page, size) = (1, Self.fewMembers)
    search: while true {
      let (users, isLast) = try await candidates(of: channel, page: page, size: size)
      let before = asked.count
      for user in users where asked.insert(user).inserted {
        guard let reader = try await self.reader(user, of: channel) else { continue }
        found.append(reader)
        if reader.lowest <= 1 { break search }
      }
      // The first page of the longer ones begins with those of the short one; a later one with nobody new is no page.
      guard !isLast, asked.count < Self.mostMembers, asked.count > before || page == 1 else { break }
      (page, size) = size == Self.fewMembers ? (1, Self.memberPage) : (page + 1, size)
    }
    found.sort { $0.lowest < $1.lowest }
    // Where nobody has it yet, somebody may have it with the first message.
    if !found.isEmpty { readers[channel] = found }
    return found
  }

  /// Who else may have what one has deleted.
  private func others(in channel: ChannelID) async throws(ChatError) -> [OpenIMReader] {
    if let known = others[channel] { return known }
    var found: [OpenIMReader] = []
    for user in try await candidates(of: channel, page: 1, size: Self.fewMembers).users {
      if let reader = try await reader(user, of: channel) { found.append(reader) }
    }
    others[channel] = found
    return found
  }

  private func reader(_ user: String, of channel: ChannelID) async throws(ChatError) -> OpenIMReader? {
    let data = try await call(
      "/conversation/get_conversations",
      ["ownerUserID": .string(user), "conversationIDs": [.string(channel.rawValue)]])
    guard let record = data["conversations"]?.array?.first else { return nil }
    return OpenIMReader(user: user, lowest: max(record["minSeq"]?.int ?? 0, 1))
  }

  /// Who may have a conversation, the importing admin first.
  private func candidates(
    of channel: ChannelID, page: Int, size: Int
  ) async throws(ChatError) -> (users: [String], isLast: Bool) {
    guard let group = OpenIMConversationID.groupID(of: channel.rawValue) else {
      var users = try await pair(of: channel)
      if OpenIMConversationID.isService(channel.rawValue) { users.removeLast() }
      return (users, true)
    }
    let data = try await call(
      "/group/get_group_member_list",
      [
        "groupID": .string(group), "filter": 0, "keyword": "", "pagination": OpenIMAdmin.page(page, size: size),
      ])
    let users = (data["members"]?.array ?? []).compactMap { $0["userID"]?.string }
    let importer = admin.userID
    return (
      users.filter { $0 == importer } + users.filter { $0 != importer },
      users.isEmpty || Int64(page) * Int64(size) >= data["total"]?.int ?? 0
    )
  }
}
