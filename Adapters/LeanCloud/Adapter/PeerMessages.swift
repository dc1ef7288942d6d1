import ChatJSON
import LeanCloudWire
import UnifiedChat

extension LeanCloudPeerAdapter {
  /// Apps of 2014 sent bare texts: a text without anything beside it is sent so, unless it could be taken for JSON.
  private static func body(of message: Message) -> String {
    let encoded = LeanCloudBody.encode(message).text
    guard case .text(let text) = message.content, message.customData == nil, message.customType == nil,
      message.replyTo == nil, message.mentions.isEmpty, (try? JSONValue(parsing: text)) == nil
    else { return encoded }
    return text
  }

  public func send(_ message: OutgoingMessage) async throws(ChatError) -> Message {
    let user = try requireUser(.send)
    let draft = message.draft
    if draft.threadParent != nil { throw .unsupported(.messageThread, operation: .send) }
    if !draft.mentions.isEmpty { throw .unsupported(.messageMention, operation: .send) }
    if draft.replyTo != nil { throw .unsupported(.messageQuote, operation: .send) }
    if draft.content.attachment != nil { throw .unsupported(.fileByURL, operation: .send) }
    if case .text(let text) = draft.content, text.isEmpty, draft.customData == nil {
      throw ChatError(.invalidArgument(field: "text"), operation: .send, detail: "an empty text")
    }
    var sent = Message(
      channel: message.channel, sender: user, createdAt: Timestamp(milliseconds: 0), content: draft.content,
      customType: draft.customType, customData: draft.customData)
    var fields = try address(of: message.channel, user, .send)
    fields["msg"] = .string(Self.body(of: sent))
    sent.localID = message.localID
    sent.clientMessageID = message.clientMessageID
    if draft.isTransient {
      // No acknowledgement comes for what is not stored.
      fields["transient"] = true
      try await line.tell(frame("direct", nil, fields), .send)
      sent.createdAt = environment.clock.now
      return sent
    }
    fields["r"] = true
    let ack = try await ask("direct", nil, fields, .send)
    guard let id = ack.string("uid"), let time = ack.int("t") else {
      throw ChatError(.protocolViolation, operation: .send, detail: "an acknowledgement without id or time")
    }
    sent.id = MessageID(id)
    sent.createdAt = Timestamp(milliseconds: time)
    sent.position = MessagePosition(time: sent.createdAt, id: MessageID(id))
    await remember(MessageID(id), message.channel)
    return sent
  }

  private func remember(_ id: MessageID, _ channel: ChannelID) async {
    _ = echoes.isNew(id)
    sentTo[id] = channel
    sentOrder.append(id)
    if sentOrder.count > 2000 {
      for old in sentOrder.prefix(1000) { sentTo[old] = nil }
      sentOrder.removeFirst(1000)
    }
    guard let early = earlyReceipts.firstIndex(where: { $0.id == id }) else { return }
    await receipt(earlyReceipts.remove(at: early).frame)
  }

  private func address(
    of channel: ChannelID, _ user: UserID, _ operation: ChatError.Operation
  ) throws(ChatError) -> JSONObject {
    guard let peers = LeanCloudPair.peers(of: channel) else { return ["roomId": .string(channel.rawValue)] }
    guard peers.contains(user), let peer = peers.first(where: { $0 != user }) else {
      throw ChatError(.permission(), operation: operation, detail: "this user is no peer of the pair")
    }
    return ["toPeerIds": .strings([peer.rawValue])]
  }

  public func setTyping(_ isTyping: Bool, in id: ChannelID) async throws(ChatError) {
    let user = try requireUser(.typing)
    var fields = try address(of: id, user, .typing)
    fields["msg"] = .string(LeanCloudMapping.typingBody(isTyping))
    fields["transient"] = true
    try await line.tell(frame("direct", nil, fields), .typing)
  }

  // MARK: History, by REST

  public func history(of channel: ChannelID, _ query: HistoryQuery) async throws(ChatError) -> MessagePage {
    guard query.direction == .older else { throw .unsupported(.historyForward, operation: .history) }
    let anchor = try LeanCloudAnchor(query)
    let limit = max(1, query.limit)
    var found = try await read(channel, anchor, older: true, count: limit + 1)
    // An unknown channel has an empty history too; a group's row tells the difference.
    if found.isEmpty { _ = try await self.channel(channel) }
    let hasMore = found.count > limit
    if hasMore { found.removeFirst() }
    var newer: Cursor?
    if let anchor {
      let edge = found.last.map { LeanCloudAnchor(timestamp: $0.timestamp, id: $0.id, isInclusive: false) }
      let probe = edge ?? LeanCloudAnchor(timestamp: anchor.timestamp, id: anchor.id, isInclusive: !query.isInclusive)
      if try await !read(channel, probe, older: false, count: 1).isEmpty {
        newer = Cursor("\(probe.timestamp)/\(probe.id)")
      }
    }
    return MessagePage(
      messages: found.map { LeanCloudMapping.message($0) },
      older: hasMore ? found.first.map { Cursor("\($0.timestamp)/\($0.id)") } : nil, newer: newer)
  }

  private func read(
    _ channel: ChannelID, _ anchor: LeanCloudAnchor?, older: Bool, count: Int
  ) async throws(ChatError) -> [LeanCloudStoredMessage] {
    let user = try requireUser(.history)
    let historyID = LeanCloudPair.historyID(of: channel)
    var found: [LeanCloudStoredMessage] = []
    var anchor = anchor
    while found.count < count {
      let wanted = min(count - found.count, 1000)
      var query = [("convid", historyID), ("peerid", user.rawValue), ("limit", String(wanted))]
      if !older { query.append(("reversed", "true")) }
      if let anchor {
        query.append(("max_ts", String(anchor.timestamp)))
        if !anchor.id.isEmpty { query.append(("msgid", anchor.id)) }
        if anchor.isInclusive { query.append(("include_start", "true")) }
      }
      if let signed = try await sign("history", [rest.appID, user.rawValue, historyID], user, .history) {
        query += [
          ("nonce", signed.nonce), ("signature_ts", String(signed.timestamp)), ("signature", signed.signature),
        ]
      }
      let answer = try await rest.call(
        "GET", "/1.1/rtm/messages/history", query: query, key: .app, operation: .history)
      let page = (answer.array ?? []).compactMap { LeanCloudStoredMessage(history: $0, channel: channel.rawValue) }
      // REST gives the newest first.
      found = older ? page.reversed() + found : found + page
      guard page.count == wanted, let edge = page.last else { break }
      anchor = LeanCloudAnchor(timestamp: edge.timestamp, id: edge.id, isInclusive: false)
    }
    return found
  }

  public func message(_ id: MessageID, in channel: ChannelID) async throws(ChatError) -> Message {
    var anchor: LeanCloudAnchor?
    var walk = PageWalk()
    while true {
      try walk.advance(to: anchor.map { "\($0.timestamp) \($0.id)" } ?? "", .fetchMessage)
      let page = try await read(channel, anchor, older: true, count: 100)
      if let found = page.first(where: { MessageID($0.id) == id }) { return LeanCloudMapping.message(found) }
      guard page.count == 100, let first = page.first else { break }
      anchor = LeanCloudAnchor(timestamp: first.timestamp, id: first.id, isInclusive: false)
    }
    throw ChatError(.notFound, operation: .fetchMessage, detail: "no message \(id) in \(channel)")
  }

  // MARK: Pushes

  func received(_ frame: LeanCloudFrame) async {
    guard let me, let sender = frame.string("fromPeerId").map({ UserID($0) }) else { return }
    let channel: ChannelID
    if let room = frame.string("roomId") {
      channel = ChannelID(room)
    } else {
      // The copy of an own message to another device does not say to whom it went.
      guard sender != me else { return }
      channel = LeanCloudPair.channel(me, sender)
    }
    if let isTyping = LeanCloudMapping.typing(frame) {
      if sender != me { await typed(isTyping, sender, in: channel) }
      return
    }
    guard let stored = LeanCloudMapping.stored(direct: frame, channel: channel.rawValue),
      echoes.isNew(MessageID(stored.id))
    else { return }
    if sender != me { await typed(false, sender, in: channel) }
    let source: ChatEvent.Source = sender == me ? .echo : frame.bool("offline") == true ? .catchUp : .live
    var message = LeanCloudMapping.message(stored)
    // Not stored: it has no place in the history.
    if frame.bool("transient") == true { message.position = nil }
    await line.publish(ChatEvent(.messageReceived(message), source: source))
    guard sender != me, frame.bool("transient") != true else { return }
    try? await line.tell(self.frame("ack", nil, ["ids": .strings([stored.id])]), .markRead)
  }

  /// A receipt names the message; whose it is follows from where it was sent, in a pair.
  func receipt(_ frame: LeanCloudFrame) async {
    guard let id = frame.string("id").map({ MessageID($0) }), let time = frame.int("t") else { return }
    guard let channel = sentTo[id] else {
      // The peer's receipt can overtake the task that is about to take the send's own answer. Another device's
      // message is never claimed: a bound keeps those from piling up.
      if earlyReceipts.count >= 256 { earlyReceipts.removeFirst() }
      return earlyReceipts.append((id, frame))
    }
    guard let peer = LeanCloudPair.peers(of: channel)?.first(where: { $0 != me }) else { return }
    let position = MessagePosition(time: Timestamp(milliseconds: time), id: id)
    await line.publish(ChatEvent(.deliveredChanged(channel, peer, position)))
  }

  private func typed(_ isTyping: Bool, _ user: UserID, in channel: ChannelID) async {
    let key = "\(channel)\u{0}\(user)"
    let known = typing.removeValue(forKey: key)
    known?.cancel()
    guard isTyping else {
      if known != nil { await line.publish(ChatEvent(.typingEnded(channel, user))) }
      return
    }
    let clock = environment.clock
    typing[key] = Task { [weak self] in
      do { try await clock.sleep(for: LeanCloudAdapter.typingLife) } catch { return }
      await self?.typingExpired(key, channel, user)
    }
    if known == nil { await line.publish(ChatEvent(.typingStarted(channel, user))) }
  }

  private func typingExpired(_ key: String, _ channel: ChannelID, _ user: UserID) async {
    // Cancelled after its sleep: it has ended already, or begun anew.
    guard !Task.isCancelled else { return }
    typing[key] = nil
    await line.publish(ChatEvent(.typingEnded(channel, user)))
  }
}
