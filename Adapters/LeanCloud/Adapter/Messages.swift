import ChatInterchange
import ChatJSON
import ChatTransport
import LeanCloudWire
import UnifiedChat

extension LeanCloudAdapter {
  // MARK: Sending

  public func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    let user = try requireUser(.send)
    try Self.check(message.draft)
    var sent = Self.message(of: message.draft, in: message.channel, by: user)
    let body = LeanCloudBody.encode(sent)
    var fields: JSONObject = [
      "cid": .string(message.channel.rawValue), "dt": .string(message.clientMessageID.rawValue),
    ]
    fields[body.isBinary ? "binaryMsg" : "msg"] = .string(body.text)
    if message.draft.isTransient { fields["transient"] = true } else { fields["r"] = true }
    if !body.mentions.isEmpty { fields["mentionPids"] = .strings(body.mentions) }
    if body.mentionsAll { fields["mentionAll"] = true }
    let ack = try await ask("direct", nil, fields, .send)
    guard let id = ack.string("uid"), let time = ack.int("t") else {
      throw ChatError(.protocolViolation, operation: .send, detail: "an acknowledgement without id or time")
    }
    sent.id = MessageID(id)
    sent.localID = message.localID
    sent.clientMessageID = message.clientMessageID
    sent.createdAt = Timestamp(milliseconds: time)
    if !message.draft.isTransient { sent.position = MessagePosition(time: sent.createdAt, id: MessageID(id)) }
    _ = echoes.isNew(MessageID(id))
    return sent
  }

  private static func check(_ draft: MessageDraft) throws(ChatError) {
    switch draft.content {
    case .text(let text) where text.isEmpty && draft.customData == nil:
      throw ChatError(.invalidArgument(field: "text"), operation: .send, detail: "an empty text")
    case .recalled, .system:
      throw ChatError(.invalidArgument(field: "content"), operation: .send, detail: "only the service says that")
    default: break
    }
    if draft.threadParent != nil { throw .unsupported(.messageThread, operation: .send) }
    if let attachment = draft.content.attachment, attachment.url == nil {
      throw ChatError(.invalidArgument(field: "url"), operation: .send, detail: "the attachment is not uploaded")
    }
  }

  private static func message(of draft: MessageDraft, in channel: ChannelID, by user: UserID) -> Message {
    Message(
      channel: channel, sender: user, createdAt: Timestamp(milliseconds: 0), content: draft.content,
      mentions: draft.mentions, replyTo: draft.replyTo, customType: draft.customType, customData: draft.customData)
  }

  // MARK: History

  public func history(of channel: ChannelID, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    let anchor = try LeanCloudAnchor(query)
    let limit = max(1, query.limit)
    // One more than asked shows whether there is more.
    var found = try await read(channel, anchor, older: query.direction == .older, count: limit + 1)
    let hasMore = found.count > limit
    if hasMore { if query.direction == .older { found.removeFirst() } else { found.removeLast() } }
    var older: Cursor?
    var newer: Cursor?
    switch query.direction {
    case .older:
      older = hasMore ? found.first.map(Self.cursor) : nil
      newer = try await isBeyond(anchor, query, channel, found.last, older: false)
    case .newer:
      newer = hasMore ? found.last.map(Self.cursor) : nil
      older = try await isBeyond(anchor, query, channel, found.first, older: true)
    }
    return MessagePage(messages: found.map { LeanCloudMapping.message($0) }, older: older, newer: newer)
  }

  private static func cursor(_ message: LeanCloudStoredMessage) -> Cursor {
    Cursor("\(message.timestamp)/\(message.id)")
  }

  /// The cursor towards the side from which the page was read: nil when it began at that end.
  private func isBeyond(
    _ anchor: LeanCloudAnchor?, _ query: HistoryQuery, _ channel: ChannelID, _ edge: LeanCloudStoredMessage?,
    older: Bool
  ) async throws(ChatError) -> Cursor? {
    guard let anchor else { return nil }
    let start = edge.map { LeanCloudAnchor(timestamp: $0.timestamp, id: $0.id, isInclusive: false) }
    // An empty page: what lies at the anchor itself counts as the other side, unless it was asked for.
    let probe = start ?? LeanCloudAnchor(timestamp: anchor.timestamp, id: anchor.id, isInclusive: !query.isInclusive)
    guard try await !read(channel, probe, older: older, count: 1).isEmpty else { return nil }
    return edge.map(Self.cursor) ?? Cursor("\(anchor.timestamp)/\(anchor.id)")
  }

  /// `count` stored messages next to the anchor, ascending.
  func read(
    _ channel: ChannelID, _ anchor: LeanCloudAnchor?, older: Bool, count: Int
  ) async throws(ChatError) -> [LeanCloudStoredMessage] {
    var found: [LeanCloudStoredMessage] = []
    var anchor = anchor
    while found.count < count {
      let wanted = min(count - found.count, LeanCloudLimits.historyPage)
      var fields: JSONObject = [
        "cid": .string(channel.rawValue), "l": .int(Int64(wanted)), "limit": .int(Int64(wanted)),
        "direction": older ? "OLD" : "NEW",
      ]
      if let anchor {
        fields["t"] = .int(anchor.timestamp)
        if !anchor.id.isEmpty { fields["mid"] = .string(anchor.id) }
        if anchor.isInclusive { fields["tIncluded"] = true }
      }
      let answer = try await ask("logs", nil, fields, .history)
      let page = (answer["logs"]?.array ?? []).compactMap {
        LeanCloudMapping.stored(log: $0, channel: channel.rawValue)
      }.sorted { one, two in
        // Whatever order a page comes in.
        one.timestamp == two.timestamp
          ? one.id.utf8.lexicographicallyPrecedes(two.id.utf8) : one.timestamp < two.timestamp
      }
      found = older ? page + found : found + page
      guard page.count == wanted, let edge = older ? page.first : page.last else { break }
      anchor = LeanCloudAnchor(timestamp: edge.timestamp, id: edge.id, isInclusive: false)
    }
    return found
  }

  /// The service finds no message by its id alone: the history is walked back from the newest.
  public func message(_ id: MessageID, in channel: ChannelID) async throws(ChatError) -> Message {
    var anchor: LeanCloudAnchor?
    var walk = PageWalk()
    while true {
      try walk.advance(to: anchor.map { "\($0.timestamp) \($0.id)" } ?? "", .fetchMessage)
      let page = try await read(channel, anchor, older: true, count: LeanCloudLimits.historyPage)
      if let found = page.first(where: { MessageID($0.id) == id }) { return LeanCloudMapping.message(found) }
      guard page.count == LeanCloudLimits.historyPage, let first = page.first else { break }
      anchor = LeanCloudAnchor(timestamp: first.timestamp, id: first.id, isInclusive: false)
    }
    throw ChatError(.notFound, operation: .fetchMessage, detail: "no message \(id) in \(channel)")
  }

  // MARK: Edit and recall

  public func edit(_ original: Message, to draft: MessageDraft) async throws(ChatError) -> Message {
    let user = try requireUser(.edit)
    try Self.check(draft)
    var edited = Self.message(of: draft, in: original.channel, by: user)
    edited.replyTo = draft.replyTo ?? original.replyTo
    let body = LeanCloudBody.encode(edited)
    var item = try Self.patch(of: original, .edit)
    item["recall"] = false
    item[body.isBinary ? "binaryMsg" : "data"] = .string(body.text)
    if !body.mentions.isEmpty { item["mentionPids"] = .strings(body.mentions) }
    item["mentionAll"] = .bool(body.mentionsAll)
    let time = try await modify(item, .edit)
    edited.id = original.id
    edited.position = original.position
    edited.createdAt = original.createdAt
    edited.clientMessageID = original.clientMessageID
    edited.localID = original.localID
    edited.editedAt = time
    return edited
  }

  public func recall(_ message: Message) async throws(ChatError) -> Message {
    var item = try Self.patch(of: message, .recall)
    item["recall"] = true
    let time = try await modify(item, .recall)
    var tombstone = message
    tombstone.content = .recalled(by: nil, at: time)
    tombstone.mentions = Mentions()
    tombstone.replyTo = nil
    tombstone.customData = nil
    tombstone.customType = nil
    tombstone.editedAt = nil
    return tombstone
  }

  private static func patch(of message: Message, _ operation: ChatError.Operation) throws(ChatError) -> JSONObject {
    guard let id = message.id, let position = message.position else {
      throw ChatError(.invalidArgument(field: "message"), operation: operation, detail: "the message is not committed")
    }
    return [
      "cid": .string(message.channel.rawValue), "mid": .string(id.rawValue), "timestamp": .int(position.major),
    ]
  }

  private func modify(_ item: JSONObject, _ operation: ChatError.Operation) async throws(ChatError) -> Timestamp {
    let answer = try await ask(
      "patch", "modify", ["patches": [.object(item)], "lastPatchTime": .int(patches.last)], operation)
    let time = answer.int("lastPatchTime") ?? answer.int("serverTs")
    if let time { patches.saw(time) }
    return Timestamp(milliseconds: time ?? environment.clock.now.milliseconds)
  }

  // MARK: Files

  public func upload(
    _ attachment: Attachment, for channel: ChannelID, progress: (@Sendable (_ sent: Int64, _ total: Int64) -> Void)?
  ) async throws(ChatError) -> Attachment {
    let bytes = try LeanCloudBytes.of(attachment)
    var stored = attachment
    stored.url = try await LeanCloudFiles(rest: rest, key: .app).upload(
      attachment, bytes: bytes, operation: .upload, progress: progress)
    stored.size = Int64(bytes.count)
    stored.source = nil
    return stored
  }

  public func download(_ attachment: Attachment, limit: Int64) async throws(ChatError) -> [UInt8] {
    try await LeanCloudFiles(rest: rest, key: .app).download(attachment, limit: limit, operation: .download)
  }
}

/// A place in a history. An empty id means every message of that time.
struct LeanCloudAnchor: Sendable {
  var timestamp: Int64
  var id: String
  var isInclusive: Bool

  init(timestamp: Int64, id: String, isInclusive: Bool) {
    self.timestamp = timestamp
    self.id = id
    self.isInclusive = isInclusive
  }

  /// nil: from the end from which the direction leads.
  init?(_ query: HistoryQuery) throws(ChatError) {
    switch query.anchor {
    case .newest:
      guard query.direction == .older else {
        self.init(timestamp: .max, id: "", isInclusive: query.isInclusive)
        return
      }
      return nil
    case .oldest:
      guard query.direction == .newer else {
        self.init(timestamp: 0, id: "", isInclusive: query.isInclusive)
        return
      }
      return nil
    case .position(let position):
      let id = LeanCloudID.isMessageID(position.tail) ? position.tail : ""
      self.init(timestamp: position.major, id: id, isInclusive: query.isInclusive)
    case .cursor(let cursor):
      let parts = cursor.rawValue.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, let time = Int64(parts[0]) else {
        throw ChatError(.invalidArgument(field: "cursor"), operation: .history, detail: "no cursor of this adapter")
      }
      self.init(timestamp: time, id: String(parts[1]), isInclusive: query.isInclusive)
    }
  }
}
