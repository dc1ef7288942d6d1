import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

// Sending, changing and finding messages.
extension SendbirdAdapter {
  // MARK: Send

  public func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    guard !message.draft.isTransient else { throw .unsupported(.messageTransient, operation: .send) }
    let me = try session(.send).user
    let form = SendbirdForm(draft(message, sender: me), purpose: .live(id: message.clientMessageID.rawValue))
    try check(form, .send)
    var payload = fields(form)
    payload["channel_url"] = .string(message.channel.rawValue)
    if form.type == "FILE" {
      payload["custom"] = .string(form.data)
      if let file = form.file {
        payload["url"] = .string(file.url)
        payload["name"] = .string(file.name)
        payload["type"] = .string(file.type)
        payload["size"] = .int(file.size)
        payload["thumbnails"] = file.thumbnailJSON
        if file.requiresAuthentication { payload["require_auth"] = true }
      }
    } else {
      payload["message"] = .string(form.text)
      payload["data"] = .string(form.data)
    }
    if let parent = message.draft.threadParent {
      guard let id = Int64(parent.rawValue) else {
        throw ChatError(
          .invalidArgument(field: "threadParent"), operation: .send, detail: "no message id of Sendbird's")
      }
      payload["parent_message_id"] = .int(id)
      payload["root_message_id"] = .int(id)
    }
    let id = message.clientMessageID.rawValue
    let frame = try await ask(form.type, payload, id: id, .send)
    guard var sent = SendbirdView.message(frame), sent.position != nil else { throw Self.malformed(.send) }
    sent.localID = message.localID
    sent.clientMessageID = message.clientMessageID
    if sent.channel.rawValue.isEmpty { sent.channel = message.channel }
    sendingReads(sent.channel)
    return sent
  }

  private func draft(_ message: OutgoingMessage, sender: UserID) -> Message {
    Message(
      channel: message.channel, sender: sender, createdAt: clock.now, content: message.draft.content,
      mentions: message.draft.mentions, replyTo: message.draft.replyTo, customType: message.draft.customType,
      customData: message.draft.customData)
  }

  private func fields(_ form: SendbirdForm) -> JSONObject {
    var fields: JSONObject = [
      "mention_type": .string(form.mentions.everyone ? "channel" : "users"),
      "mentioned_user_ids": .array(form.mentions.users.map { .string($0.rawValue) }),
    ]
    if !form.customType.isEmpty { fields["custom_type"] = .string(form.customType) }
    return fields
  }

  /// What the server would refuse is refused before it is sent, with the limit in the error.
  private func check(_ form: SendbirdForm, _ operation: ChatError.Operation) throws(ChatError) {
    if form.kept.contains(.content), form.type == "MESG", form.text.unicodeScalars.count >= SendbirdLimits.messageLength
    {
      throw ChatError(
        .tooLarge(limit: Int64(SendbirdLimits.messageLength), unit: .characters), operation: operation,
        detail: "a text has at most \(SendbirdLimits.messageLength) characters")
    }
    if form.type == "FILE", form.file?.url.isEmpty ?? true {
      throw ChatError(.invalidArgument(field: "url"), operation: operation, detail: "upload the attachment first")
    }
  }

  // MARK: Files

  public func upload(
    _ attachment: Attachment, for channel: ChannelID, progress: (@Sendable (Int64, Int64) -> Void)?
  ) async throws(ChatError) -> Attachment {
    let bytes = try SendbirdFiles.bytes(of: attachment)
    let limit = SendbirdLimits.uploadMiB << 20
    guard Int64(bytes.count) <= limit else {
      throw ChatError(.tooLarge(limit: limit, unit: .bytes), operation: .upload)
    }
    _ = try session(.upload)
    let form = SendbirdFiles.form(attachment, bytes: bytes, channel: channel, wantsThumbnail: true)
    var relay: (@Sendable (TransferProgress) -> Void)?
    if let progress { relay = { progress($0.sent, $0.sentTotal) } }
    let (rest, listener, boundary) = (rest, relay, SendbirdFiles.boundary(bytes))
    let json = try await renewing(.upload) { (key) async throws(ChatError) in
      try await rest.upload(
        ["storage", "file"], form, boundary: boundary, as: key, operation: .upload, progress: listener)
    }
    var uploaded = try SendbirdFiles.uploaded(attachment, json)
    uploaded.size = json.number("file_size") ?? Int64(bytes.count)
    return uploaded
  }

  public func download(_ attachment: Attachment, limit: Int64) async throws(ChatError) -> [UInt8] {
    guard let url = attachment.url else { throw ChatError(.invalidArgument(field: "url"), operation: .download) }
    let isProtected = SendbirdFile.isProtected(attachment) && SendbirdProfile.isOwn(url, profile)
    guard isProtected, let fileKey else { return try await rest.download(url, limit: limit) }
    var query = SendbirdQuery()
    query.add("auth", fileKey)
    return try await rest.download(url + (url.contains("?") ? "&" : "?") + query.text, limit: limit)
  }

  // MARK: Change

  public func edit(_ original: Message, to draft: MessageDraft) async throws(ChatError) -> Message {
    let (id, me) = (try number(original.id, .edit), try session(.edit).user)
    var message = original
    (message.content, message.mentions, message.replyTo) = (
      draft.content, draft.mentions, draft.replyTo ?? original.replyTo
    )
    (message.customType, message.customData, message.sender) = (
      draft.customType, draft.customData, original.sender ?? me
    )
    let form = SendbirdForm(message, purpose: .live(id: original.clientMessageID?.rawValue ?? ""))
    let wasFile = original.content.attachment != nil
    guard wasFile == (form.type == "FILE"), !wasFile || original.content.attachment?.url == form.file?.url else {
      throw ChatError(
        .invalidArgument(field: "content"), operation: .edit,
        detail: "Sendbird cannot change a text into a file or back")
    }
    try check(form, .edit)
    var payload = fields(form)
    payload["channel_url"] = .string(original.channel.rawValue)
    payload["msg_id"] = .int(id)
    payload["data"] = .string(form.data)
    payload["custom_type"] = .string(form.customType)
    if form.type != "FILE" { payload["message"] = .string(form.text) }
    let frame = try await ask(wasFile ? "FEDI" : "MEDI", payload, id: newRequestID(), .edit)
    guard let edited = SendbirdView.message(frame) else { throw Self.malformed(.edit) }
    return edited
  }

  func number(_ id: MessageID?, _ operation: ChatError.Operation) throws(ChatError) -> Int64 {
    guard let id, let number = Int64(id.rawValue) else {
      throw ChatError(.invalidArgument(field: "id"), operation: operation, detail: "no message id of Sendbird's")
    }
    return number
  }

  public func recall(_ message: Message) async throws(ChatError) -> Message {
    let id = try number(message.id, .recall)
    _ = try await call("DELETE", at: message.channel, ["messages", String(id)], .recall)
    var tombstone = message
    tombstone.content = .recalled(by: user, at: clock.now)
    (tombstone.mentions, tombstone.replyTo, tombstone.customType, tombstone.customData) = (Mentions(), nil, nil, nil)
    tombstone.reactions = []
    return tombstone
  }

  public func clearHistory(of channel: ChannelID) async throws(ChatError) {
    let json = try await call("PUT", group(channel, "reset_user_history"), body: JSONObject(), .clearHistory)
    if let time = json.number("ts_message_offset"), let position = SendbirdMapping.position(time) {
      historyOffsets[channel] = max(time, historyOffsets[channel] ?? 0)
      publish(.historyCleared(channel, upTo: position), source: .local)
    }
  }

  // MARK: Reactions

  public func addReaction(_ key: String, to message: Message) async throws(ChatError) -> [Reaction] {
    let path = group(message.channel, "messages", String(try number(message.id, .react)), "reactions")
    _ = try await call("POST", path, body: ["reaction": .string(key)], .react)
    return try await reactions(of: message)
  }

  public func removeReaction(_ key: String, from message: Message) async throws(ChatError) -> [Reaction] {
    let path = group(message.channel, "messages", String(try number(message.id, .react)), "reactions")
    var query = SendbirdQuery()
    query.add("reaction", key)
    _ = try await call("DELETE", path, query: query, .react)
    return try await reactions(of: message)
  }

  private func reactions(of message: Message) async throws(ChatError) -> [Reaction] {
    guard let id = message.id else { return [] }
    return try await self.message(id, in: message.channel).reactions
  }

  // MARK: Find

  public func message(_ id: MessageID, in channel: ChannelID) async throws(ChatError) -> Message {
    let number = try number(id, .fetchMessage)
    var query = SendbirdQuery()
    SendbirdHistory.addShape(&query)
    let json = try await call("GET", at: channel, ["messages", String(number)], query: query, .fetchMessage)
    guard let message = SendbirdView.message(json) else { throw Self.malformed(.fetchMessage) }
    return message
  }

  public func history(of channel: ChannelID, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    try await page(channel, query, thread: nil)
  }

  public func thread(under parent: Message, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    try await page(parent.channel, query, thread: try number(parent.id, .history))
  }

  private func page(
    _ channel: ChannelID, _ query: HistoryQuery, thread: Int64?
  ) async throws(ChatError) -> MessagePage {
    let reader = SendbirdHistory(thread: thread) { (query) async throws(ChatError) in
      try await self.call("GET", at: channel, ["messages"], query: query, .history).list("messages")
    }
    let page = try await reader.page(query)
    // A page never runs ahead of the events of what is in it.
    await eventsTold()
    return MessagePage(
      messages: page.messages.map { SendbirdMapping.message($0.wire, raw: $0.raw) }, older: page.older,
      newer: page.newer)
  }

  public func changes(in channel: ChannelID, since: Cursor?) async throws(ChatError) -> ChangePage {
    var query = SendbirdQuery()
    if let since { query.add("token", since.rawValue) } else { query.add("change_ts", loginTime) }
    SendbirdHistory.addShape(&query)
    let json = try await call("GET", at: channel, ["messages", "changelogs"], query: query, .changelog)
    guard let next = json.text("next") else { throw Self.malformed(.changelog) }
    let hasMore = json.flag("has_more") ?? false
    guard since != nil else {
      // The token of now: what happened since login was told already, or will be read.
      if hasMore {
        return ChangePage(updated: [], removed: [], next: try await lastToken(channel, next), hasMore: false)
      }
      return ChangePage(updated: [], removed: [], next: Cursor(next), hasMore: false)
    }
    let removed = json.list("deleted").compactMap { item -> MessageID? in
      item.object?.number("message_id").map { MessageID(String($0)) } ?? item.string.map { MessageID($0) }
    }
    return ChangePage(
      updated: json.list("updated").compactMap { $0.object.flatMap(SendbirdView.message) }, removed: removed,
      next: Cursor(next), hasMore: hasMore)
  }

  private func lastToken(_ channel: ChannelID, _ first: String) async throws(ChatError) -> Cursor {
    var token = Cursor(first)
    var walk = PageWalk()
    while true {
      try walk.advance(to: token.rawValue, .changelog)
      let page = try await changes(in: channel, since: token)
      guard page.hasMore, page.next != token else { return page.next }
      token = page.next
    }
  }

  public func search(
    _ text: String, in channel: ChannelID?, limit: Int, page: PageToken?
  ) async throws(ChatError) -> Page<Message> {
    var query = SendbirdQuery()
    query.add("limit", Int64(max(1, min(limit, SendbirdLimits.page))))
    query.add("query", text)
    if let channel { query.add("channel_url", channel.rawValue) }
    if let page { query.add("after", page.rawValue) }
    query.add("sort_field", "ts")
    query.add("exact_match", false)
    let json = try await call("GET", ["search", "messages"], query: query, .search)
    let messages = json.list("results").compactMap { $0.object.flatMap(SendbirdView.message) }
    let next = json.flag("has_next") == true ? json.text("end_cursor") : nil
    return Page(items: messages, next: next.flatMap { $0.isEmpty ? nil : PageToken($0) })
  }
}
