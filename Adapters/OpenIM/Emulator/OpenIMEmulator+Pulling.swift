import ChatJSON
import OpenIMWire

extension OpenIMEmulator {
  /// The same messages as a frame's body and as a REST answer.
  enum PullForm { case frame, rest }

  /// Visible numbers of a conversation for one user; empty when it has none or is not theirs.
  func visible(_ user: OpenIMUser, _ id: String) -> ClosedRange<Int64>? {
    guard mayRead(user, id), let log = logs[OpenIMKey(id)] else { return nil }
    let sequence = user.sequences[OpenIMKey(id)] ?? OpenIMUserSequence()
    let low = max(1, sequence.min)
    let high = sequence.max > 0 ? min(sequence.max, log.maxSeq) : log.maxSeq
    return low <= high ? low...high : nil
  }

  /// A conversation in the user's list, the notices beside one, or the user's own notices.
  private func mayRead(_ user: OpenIMUser, _ id: String) -> Bool {
    guard OpenIMConversationID.isNotice(id) else { return user[conversation: id] != nil }
    if id.utf8.elementsEqual(OpenIMConversationID.notices(user.id, user.id).utf8) { return true }
    let rest = id.dropFirst(2)
    return user[conversation: "si_" + rest] != nil || user[conversation: "sg_" + rest] != nil
  }

  func maxSeq(_ user: OpenIMUser, _ id: String) -> Int64 {
    let stored = logs[OpenIMKey(id)]?.maxSeq ?? 0
    let own = user.sequences[OpenIMKey(id)]?.max ?? 0
    return own > 0 ? min(own, stored) : stored
  }

  func newestSequences(of user: OpenIMUser) -> JSONObject {
    var found = JSONObject()
    func add(_ id: String) {
      let max = maxSeq(user, id)
      if max > 0 { found[id] = .int(max) }
    }
    for id in user.conversationIDs {
      add(id)
      add(OpenIMConversationID.twin(of: id))
    }
    add(OpenIMConversationID.notices(user.id, user.id))
    return found
  }

  func readAndMax(of user: OpenIMUser, only ids: [String]) -> JSONObject {
    var found = JSONObject()
    // Of those that are named the numbers come whether the user has them or not (the server's own code).
    for id in ids.isEmpty ? user.conversationIDs : ids {
      let max = maxSeq(user, id)
      guard max > 0 || !ids.isEmpty else { continue }
      found[id] = [
        "maxSeq": .int(max), "hasReadSeq": .int(user.sequences[OpenIMKey(id)]?.hasRead ?? 0),
        "maxSeqTime": .int(logs[OpenIMKey(id)]?.lastStoredAt ?? 0),
      ]
    }
    return found
  }

  /// One message as `user` sees it.
  func seen(_ seq: Int64, in log: OpenIMConversationLog, by user: OpenIMUser) -> OpenIMMessageData {
    guard var data = log[seq] else { return log.placeholder(seq) }
    if user.sequences[OpenIMKey(log.id)]?.hidden.contains(seq) == true {
      data.content = []
      data.status = OpenIMMessageStatus.deleted
    }
    return data
  }

  /// The newest `num` of each range, oldest first; notices whole.
  func pulled(of user: OpenIMUser, _ request: JSONValue, form: PullForm) -> JSONValue {
    var messages = JSONObject()
    var notices = JSONObject()
    for range in request["seqRanges"]?.array ?? [] {
      guard let id = range["conversationID"]?.string, let visible = visible(user, id),
        let log = logs[OpenIMKey(id)]
      else { continue }
      let end = range["end"]?.int ?? 0
      var low = max(visible.lowerBound, range["begin"]?.int ?? 0)
      let high = min(visible.upperBound, end)
      guard low <= high else { continue }
      let isNotice = OpenIMConversationID.isNotice(id)
      let count = range["num"]?.int ?? 0
      if !isNotice, count > 0, high - low >= count { low = high - count + 1 }
      let list = (low...high).map { seen($0, in: log, by: user) }
      let entry = pulledEntry(list, isEnd: visible.upperBound <= end, endSeq: 0, form)
      if isNotice { notices[id] = entry } else { messages[id] = entry }
    }
    return pulledAnswer(messages, notices)
  }

  /// Exactly the listed numbers that are visible.
  func pulledLists(of user: OpenIMUser, _ request: JSONValue) -> JSONValue {
    var messages = JSONObject()
    var notices = JSONObject()
    let isDescending = request["order"]?.int == 1
    for item in request["conversations"]?.array ?? [] {
      guard let id = item["conversationID"]?.string, let log = logs[OpenIMKey(id)],
        let visible = visible(user, id)
      else { continue }
      let seqs = (item["seqs"]?.array ?? []).compactMap(\.int)
      let list = seqs.filter { visible.contains($0) }.sorted().map { seen($0, in: log, by: user) }
      let isEnd = seqs.contains { isDescending ? $0 < visible.lowerBound : $0 > visible.upperBound }
      let end = isDescending ? visible.lowerBound : visible.upperBound
      let entry = pulledEntry(list, isEnd: isEnd, endSeq: isEnd ? end : 0, .frame)
      if OpenIMConversationID.isNotice(id) { notices[id] = entry } else { messages[id] = entry }
    }
    return pulledAnswer(messages, notices)
  }

  private func pulledEntry(
    _ list: [OpenIMMessageData], isEnd: Bool, endSeq: Int64, _ form: PullForm
  ) -> JSONValue {
    let messages = list.map { form == .frame ? $0.frameJSON : $0.restJSON }
    return ["Msgs": messages.isEmpty ? .null : .array(messages), "isEnd": .bool(isEnd), "endSeq": .int(endSeq)]
  }

  private func pulledAnswer(_ messages: JSONObject, _ notices: JSONObject) -> JSONValue {
    var answer = JSONObject()
    if !messages.isEmpty { answer["msgs"] = .object(messages) }
    if !notices.isEmpty { answer["notificationMsgs"] = .object(notices) }
    return .object(answer)
  }

  /// The newest message of each conversation that the user still sees.
  func lastMessage(of user: OpenIMUser, in id: String) -> OpenIMMessageData? {
    guard let visible = visible(user, id), let log = logs[OpenIMKey(id)] else { return nil }
    var seq = visible.upperBound
    while seq >= visible.lowerBound {
      let data = seen(seq, in: log, by: user)
      if !data.isPlaceholder { return data }
      seq -= 1
    }
    return nil
  }

  func lastMessages(of user: OpenIMUser, _ ids: [String]) -> JSONObject {
    var found = JSONObject()
    for id in ids { found[id] = lastMessage(of: user, in: id)?.frameJSON }
    return found
  }
}
