import ChatCrypto
import ChatJSON
import ChatTransport
import Foundation
import OpenIMWire
import UnifiedChat

extension OpenIMAdapter {
  // MARK: Sending

  /// A message from here to `channel`, without content.
  func outgoingData(in channel: ChannelID, _ operation: ChatError.Operation) throws(ChatError) -> OpenIMMessageData {
    var data = OpenIMMessageData()
    data.sendID = try me(operation).rawValue
    data.senderPlatformID = platform
    data.senderNickname = currentUser?.name ?? ""
    data.senderFaceURL = currentUser?.avatarURL ?? ""
    data.msgFrom = 100
    data.createTime = clock.now.milliseconds
    data.status = OpenIMMessageStatus.sending
    data.clientMsgID = trace.next()
    if let group = OpenIMConversationID.groupID(of: channel.rawValue) {
      data.sessionType = OpenIMSessionType.group
      data.groupID = group
    } else if OpenIMConversationID.isService(channel.rawValue) {
      throw ChatError(.permission(), operation: operation, detail: "the service alone writes there")
    } else {
      data.sessionType = OpenIMSessionType.single
      data.recvID = try peer(of: channel, operation).rawValue
    }
    return data
  }

  public func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    let link = try live(.send)
    let data = try filled(message)
    let key = message.clientMessageID
    let waiter = OpenIMWaiter<Result<OpenIMMessageData, ChatError>>()
    sends[key] = waiter
    defer { if sends[key] === waiter { sends[key] = nil } }
    let answer: JSONValue
    do { answer = try await link.request(.send, data.frameJSON, for: .send) } catch {
      // The push alone proves the commit, as the vendor's own client has it.
      if case .success(let pushed)? = waiter.current { return committed(pushed, message) }
      throw try await explained(error, message.channel)
    }
    if message.draft.isTransient { return acknowledged(answer, data, message) }
    let pushed = await waiter.value(
      within: retry.requestTimeout, clock, late: .failure(ChatError(.timeout, operation: .send)),
      cancelled: .failure(.cancelled(.send)))
    switch pushed {
    case .success(let data): return committed(data, message)
    case .failure(let error):
      guard let found = try? await find(answer["serverMsgID"]?.string ?? "", in: message.channel, depth: 100) else {
        throw error
      }
      return committed(found, message)
    }
  }

  private func filled(_ message: OutgoingMessage) throws(ChatError) -> OpenIMMessageData {
    let draft = message.draft
    switch draft.content {
    case .system, .recalled:
      throw ChatError(.invalidArgument(field: "content"), operation: .send, detail: "clients do not send this kind")
    default: break
    }
    if draft.threadParent != nil { throw .unsupported(.messageThread, operation: .send) }
    var data = try outgoingData(in: message.channel, .send)
    let unified = Message(
      channel: message.channel, sender: UserID(data.sendID), senderName: currentUser?.name,
      createdAt: clock.now, content: draft.content, mentions: draft.mentions, replyTo: draft.replyTo,
      customType: draft.customType, customData: draft.customData)
    let outgoing = OpenIMOutgoing(unified, sender: data.sendID, form: .socket)
    data.clientMsgID = message.clientMessageID.rawValue
    data.contentType = outgoing.element.type
    data.content = outgoing.element.bytes
    data.atUserIDList = outgoing.element.mentioned
    data.ex = outgoing.extra.text
    data.offlinePushInfo = [:]
    if draft.isTransient {
      data.options = JSONObject(OpenIMOptions.transient.map { (key: $0, value: .bool(false)) })
    }
    markBurning(&data, in: message.channel)
    return data
  }

  private func committed(_ data: OpenIMMessageData, _ message: OutgoingMessage) -> Message {
    var committed =
      data.message(in: message.channel.rawValue)
      ?? Message(
        channel: message.channel, id: MessageID(data.serverMsgID), sender: UserID(data.sendID),
        createdAt: Timestamp(milliseconds: data.sendTime), content: message.draft.content)
    committed.localID = message.localID
    committed.clientMessageID = message.clientMessageID
    return committed
  }

  /// A message that is not stored has no number.
  private func acknowledged(
    _ answer: JSONValue, _ data: OpenIMMessageData, _ message: OutgoingMessage
  ) -> Message {
    var data = data
    data.serverMsgID = answer["serverMsgID"]?.string ?? ""
    data.sendTime = answer["sendTime"]?.int ?? data.createTime
    return committed(data, message)
  }

  /// The server answers an unknown group as a fault of its own.
  private func explained(_ error: ChatError, _ channel: ChannelID) async throws(ChatError) -> ChatError {
    guard error.vendor?.code == "500", let group = OpenIMConversationID.groupID(of: channel.rawValue) else {
      return error
    }
    let known = try? await call("/group/get_groups_info", ["groupIDs": [.string(group)]], for: .send)
    guard let known, known["groupInfos"]?[0] == nil else { return error }
    return ChatError(.notFound, operation: .send, vendor: error.vendor, detail: "no channel \(channel)")
  }

  // MARK: History

  /// Messages of one pull.
  static let pullSize: Int64 = 100

  struct Pulled {
    var messages: [OpenIMMessageData]
    /// Nothing newer exists than the end that was asked for.
    var isEnd: Bool
  }

  /// The newest `count` that are visible within the numbers, oldest first.
  func pull(
    _ channel: ChannelID, _ range: ClosedRange<Int64>, count: Int64, for operation: ChatError.Operation
  ) async throws(ChatError) -> Pulled {
    let body: JSONValue = [
      "userID": .string(try me(operation).rawValue),
      "seqRanges": [
        [
          "conversationID": .string(channel.rawValue), "begin": .int(range.lowerBound),
          "end": .int(range.upperBound), "num": .int(count),
        ]
      ],
      "order": 0,
    ]
    let data = try await live(operation).request(.pullRanges, body, for: operation)
    guard let entry = data["msgs"]?[channel.rawValue] else { return Pulled(messages: [], isEnd: true) }
    let messages = (entry["Msgs"]?.array ?? []).map { OpenIMMessageData(json: $0) }
    for data in messages {
      noteBurnable(data, in: channel)
      noteRecalled(data, in: channel)
    }
    return Pulled(
      messages: messages.sorted { $0.seq < $1.seq },
      isEnd: entry["isEnd"]?.bool ?? false)
  }

  public func history(of channel: ChannelID, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    guard query.limit >= 1 else { throw ChatError(.invalidArgument(field: "limit"), operation: .history) }
    let bounds = try await bounds(of: channel)
    let anchor = try Self.anchor(query, newest: bounds.newest)
    switch query.direction {
    case .older:
      return try await older(channel, below: query.isInclusive ? anchor.adding(1) : anchor, query.limit, bounds)
    case .newer:
      return try await newer(channel, above: query.isInclusive ? anchor.adding(-1) : anchor, query.limit, bounds)
    }
  }

  private static func anchor(_ query: HistoryQuery, newest: Int64) throws(ChatError) -> Int64 {
    switch query.anchor {
    case .newest: return newest.adding(query.direction == .older ? 1 : 0)
    case .oldest: return query.direction == .newer ? 0 : 1
    case .position(let position): return position.major
    case .cursor(let cursor):
      guard let position = MessagePosition(cursor.rawValue) else {
        throw ChatError(.invalidArgument(field: "cursor"), operation: .history)
      }
      return position.major
    }
  }

  struct Bounds {
    /// Below this the user has cleared the history.
    var oldest: Int64
    var newest: Int64
  }

  /// Also tells a foreign channel from an empty one.
  func bounds(
    of channel: ChannelID, _ operation: ChatError.Operation = .history
  ) async throws(ChatError) -> Bounds {
    let me = try me(operation)
    let data = try await live(operation).request(
      .readAndMaxSequences, ["userID": .string(me.rawValue), "conversationIDs": [.string(channel.rawValue)]],
      for: operation)
    if newest[channel] == nil {
      // Not known as this user's, and the server tells the numbers of any: the channel's own answer says whose it is.
      do { _ = try await self.channel(channel) } catch {
        var error = error
        error.operation = operation
        throw error
      }
    }
    return Bounds(oldest: 1, newest: data["seqs"]?[channel.rawValue]?["maxSeq"]?.int ?? 0)
  }

  private func older(
    _ channel: ChannelID, below anchor: Int64, _ limit: Int, _ bounds: Bounds
  ) async throws(ChatError) -> MessagePage {
    var found: [Message] = []
    var end = min(anchor.adding(-1), bounds.newest)
    // One more than asked for shows whether there is anything older.
    while end >= bounds.oldest, found.count <= limit {
      let count = min(Self.pullSize, Int64(clamping: limit - found.count) + 1)
      let page = try await pull(channel, bounds.oldest...end, count: count, for: .history)
      guard let first = page.messages.first?.seq, first <= end else { break }
      found = page.messages.compactMap { $0.message(in: channel.rawValue) } + found
      end = first - 1
    }
    let messages = Array(found.suffix(limit))
    let edge = (messages.last?.position?.major ?? anchor.adding(-1))
    return MessagePage(
      messages: messages, older: found.count > limit ? messages.first.flatMap(Self.cursor) : nil,
      newer: edge < bounds.newest ? Self.cursor(edge) : nil)
  }

  private func newer(
    _ channel: ChannelID, above anchor: Int64, _ limit: Int, _ bounds: Bounds
  ) async throws(ChatError) -> MessagePage {
    var found: [Message] = []
    var begin = max(anchor.adding(1), bounds.oldest)
    var window = Self.pullSize
    var empty = 0
    while begin <= bounds.newest, found.count <= limit {
      guard empty < Self.emptyWindows else { throw Self.nothingBelow(bounds.newest, in: channel) }
      let end = min(bounds.newest, begin.adding(window - 1))
      let page = try await pull(channel, begin...end, count: window, for: .history)
      found += page.messages.compactMap { $0.message(in: channel.rawValue) }
      // A stretch that the user has cleared is crossed in growing steps, and then read in small ones again.
      window = page.messages.isEmpty ? min(window * 4, 100_000) : Self.pullSize
      empty = page.messages.isEmpty ? empty + 1 : 0
      begin = end + 1
    }
    let messages = Array(found.prefix(limit))
    let first = messages.first?.position?.major ?? min(anchor, bounds.newest).adding(1)
    let hasOlder = first > 1 ? try await older(channel, below: first, 1, bounds).messages.isEmpty == false : false
    return MessagePage(
      messages: messages, older: hasOlder ? Self.cursor(first) : nil,
      newer: found.count > limit ? messages.last.flatMap(Self.cursor) : nil)
  }

  /// One after another without a message: the last of them are 100 000 numbers wide.
  private static let emptyWindows = 1000

  private static func nothingBelow(_ newest: Int64, in channel: ChannelID) -> ChatError {
    ChatError(
      .protocolViolation, operation: .history, detail: "the server has numbers up to \(newest) in \(channel), and no messages")
  }

  private static func cursor(_ message: Message) -> Cursor? { message.position.map { Cursor($0.description) } }
  private static func cursor(_ seq: Int64) -> Cursor { Cursor(MessagePosition(sequence: seq).description) }

  public func message(_ id: MessageID, in channel: ChannelID) async throws(ChatError) -> Message {
    guard let message = try await find(id.rawValue, in: channel, depth: .max)?.message(in: channel.rawValue) else {
      throw ChatError(.notFound, operation: .fetchMessage, detail: "no message \(id)")
    }
    return message
  }

  /// The vendor has no call by id, so the history is read backwards, at most `depth` numbers.
  private func find(_ id: String, in channel: ChannelID, depth: Int64) async throws(ChatError) -> OpenIMMessageData? {
    guard !id.isEmpty else { return nil }
    let bounds = try await bounds(of: channel)
    var end = bounds.newest
    while end >= 1, bounds.newest - end < depth {
      let page = try await pull(channel, 1...end, count: Self.pullSize, for: .fetchMessage)
      if let found = page.messages.first(where: { $0.serverMsgID.utf8.elementsEqual(id.utf8) }) {
        return found.isPlaceholder ? nil : found
      }
      guard let first = page.messages.first?.seq, first <= end else { return nil }
      end = first - 1
    }
    return nil
  }

  /// Exactly these numbers.
  func fetch(_ seqs: [Int64], in channel: ChannelID) async throws(ChatError) -> [OpenIMMessageData] {
    let body: JSONValue = [
      "userID": .string(try me(.fetchMessage).rawValue),
      "conversations": [
        ["conversationID": .string(channel.rawValue), "seqs": .array(seqs.map { .int($0) })]
      ],
      "order": 0,
    ]
    let data = try await live(.fetchMessage).request(.pullSequences, body, for: .fetchMessage)
    let messages = (data["msgs"]?[channel.rawValue]?["Msgs"]?.array ?? []).map { OpenIMMessageData(json: $0) }
    for data in messages { noteRecalled(data, in: channel) }
    return messages
  }

  // MARK: Taking back, deleting

  private func sequence(of message: Message, _ operation: ChatError.Operation) async throws(ChatError) -> Int64 {
    if let position = message.position { return position.major }
    guard let id = message.id, let found = try await find(id.rawValue, in: message.channel, depth: .max) else {
      throw ChatError(.notFound, operation: operation)
    }
    return found.seq
  }

  public func recall(_ message: Message) async throws(ChatError) -> Message {
    let me = try me(.recall)
    let seq = try await sequence(of: message, .recall)
    try await call(
      "/msg/revoke_msg",
      [
        "userID": .string(me.rawValue), "conversationID": .string(message.channel.rawValue), "seq": .int(seq),
      ], for: .recall)
    let stored = try await fetch([seq], in: message.channel).first
    guard let tombstone = stored?.message(in: message.channel.rawValue) else {
      throw ChatError(.protocolViolation, operation: .recall, detail: "no tombstone after the recall")
    }
    if seq > read[message.channel] ?? 0 { tellUnread(message.channel) }
    return tombstone
  }

  public func deleteForMe(_ messages: [Message]) async throws(ChatError) {
    let me = try me(.deleteMessage)
    var seqs: [ChannelID: [Int64]] = [:]
    for message in messages {
      seqs[message.channel, default: []].append(try await sequence(of: message, .deleteMessage))
    }
    for (channel, list) in seqs.sorted(by: { $0.key < $1.key }) {
      try await call(
        "/msg/delete_msgs",
        [
          "userID": .string(me.rawValue), "conversationID": .string(channel.rawValue),
          "seqs": .array(list.map { .int($0) }), "deleteSyncOpt": ["IsSyncSelf": true, "IsSyncOther": false],
        ], for: .deleteMessage)
    }
  }

  public func clearHistory(of channel: ChannelID) async throws(ChatError) {
    let me = try me(.clearHistory)
    try await call(
      "/msg/clear_conversation_msg",
      [
        "userID": .string(me.rawValue), "conversationIDs": [.string(channel.rawValue)],
        "deleteSyncOpt": ["IsSyncSelf": true, "IsSyncOther": false],
      ], for: .clearHistory)
  }

  // MARK: Files

  public func upload(
    _ attachment: Attachment, for channel: ChannelID, progress: (@Sendable (_ sent: Int64, _ total: Int64) -> Void)?
  ) async throws(ChatError) -> Attachment {
    let bytes = try Self.bytes(of: attachment)
    var uploaded = attachment
    // A long file takes its time, and pushes must not wait for it.
    uploaded.sha256 = await Task.detached { Hex.encode(Digest.sha256(bytes)) }.value
    uploaded.size = Int64(bytes.count)
    let owner = try me(.upload).rawValue
    let file = attachment.name.map(OpenIMUploader.safeName) ?? "file"
    let uploader = OpenIMUploader(rest: rest) { (path, body) async throws(ChatError) in
      try await self.call(path, body, for: .upload)
    }
    let digest = uploaded.sha256 ?? ""
    let target = OpenIMUploader.Target(
      name: "\(owner)/msg_file_\(trace.next())/\(file)", mimeType: attachment.mimeType ?? "", cause: "msg-file")
    let broken = brokenUploads.removeValue(forKey: digest)
    uploaded.url = try await uploader.upload(bytes, to: target, after: broken, progress) { broken in
      await self.keep(broken, of: digest)
    }
    uploaded.source = nil
    return uploaded
  }

  /// The same file asked for again goes on where it broke off, as long as the app runs.
  private func keep(_ broken: OpenIMUploader.Broken, of digest: String) { brokenUploads[digest] = broken }

  private static func bytes(of attachment: Attachment) throws(ChatError) -> [UInt8] {
    switch attachment.source {
    case .bytes(let bytes): return bytes
    case .path(let path):
      guard let data = FileManager.default.contents(atPath: path) else {
        throw ChatError(.storage(.other), operation: .upload, detail: "the file cannot be read")
      }
      return Array(data)
    case nil: throw ChatError(.invalidArgument(field: "source"), operation: .upload, detail: "nothing to upload")
    }
  }

  public func download(_ attachment: Attachment, limit: Int64) async throws(ChatError) -> [UInt8] {
    guard let url = attachment.url else { throw ChatError(.notFound, operation: .download, detail: "no URL") }
    return try await rest.download(url, limit: limit, for: .download)
  }
}

extension Int64 {
  /// The sum, held at the ends of the range: positions come from outside.
  func adding(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? (other < 0 ? .min : .max) : sum
  }
}
