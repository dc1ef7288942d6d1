import ChatJSON
import SendbirdWire
import UnifiedChat

/// A read mark at a message before the newest one. Sendbird marks up to now, so that this one stays with the client
/// until the messages behind it have been seen too.
struct SendbirdHeldMark: Sendable, Equatable {
  var position: MessagePosition
  /// Of those that the server counts as unread, how many the mark covers.
  var covered: Int
  /// The server's own mark then: when it moves, everything is read.
  var serverMark: MessagePosition?
}

extension SendbirdAdapter {
  /// A mark at an older message is held back while newer messages exist: the next mark, when they have been seen, says
  /// it all. Until then unread numbers of this connection leave out what the mark covers.
  public func markRead(_ id: ChannelID, upTo position: MessagePosition?) async throws(ChatError) {
    // Open channels have neither receipts nor unread numbers.
    if entered.contains(id) { return }
    if let position {
      let newest = try await history(of: id, .newest(1)).messages.last
      if let newest, let last = newest.position, last > position, newest.sender != user {
        return try await hold(position, in: id)
      }
    }
    _ = try await ask("READ", ["channel_url": .string(id.rawValue)], id: newRequestID(), .markRead)
    releaseMark(id)
    publish(.unreadChanged(id, .exact(0)), source: .local)
  }

  private func hold(_ position: MessagePosition, in id: ChannelID) async throws(ChatError) {
    let mine = epoch
    while true {
      let (before, released) = (heldMarks[id], releasedMarks[id])
      if let known = before?.position, known >= position { return }
      let channel = try await serverView(id)
      // No more than a person can have left unread: the number comes from the wire.
      guard let unread = channel.unread.number.map({ min($0, Int(Int32.max)) }), unread > 0 else { return }
      if let mark = channel.myReadPosition, mark >= position { return }
      let known = before?.serverMark == channel.myReadPosition ? before : nil
      let covered: Int
      if let start = known?.position ?? channel.myReadPosition {
        covered = try await (known?.covered ?? 0) + unreadMessages(after: start, upTo: position, in: id, atMost: unread)
      } else {
        covered = try await unread - unreadMessages(after: position, upTo: nil, in: id, atMost: unread)
      }
      // Another mark, or a message of one's own, while the server was asked: what it said then is no longer so. Each
      // turn needs one more of these.
      guard epoch == mine else { throw .cancelled(.markRead) }
      guard heldMarks[id] == before, releasedMarks[id] == released else { continue }
      let left = max(0, unread - covered)
      heldMarks[id] = SendbirdHeldMark(position: position, covered: unread - left, serverMark: channel.myReadPosition)
      publish(.unreadChanged(id, .exact(left)), source: .local)
      return
    }
  }

  /// The channel as the server sees it, without what is held back.
  private func serverView(_ id: ChannelID) async throws(ChatError) -> Channel {
    let json = try await call("GET", group(id), .fetchChannel)
    guard let user, let channel = SendbirdView.channel(json, me: user) else { throw Self.malformed(.fetchChannel) }
    return channel
  }

  /// How many of others' messages there are behind `start`, up to and with `end` (nil: the newest); more than `limit`
  /// are not looked for.
  private func unreadMessages(
    after start: MessagePosition, upTo end: MessagePosition?, in id: ChannelID, atMost limit: Int
  ) async throws(ChatError) -> Int {
    var (count, place) = (0, start)
    while count < limit {
      let query = HistoryQuery(anchor: .position(place), direction: .newer, limit: SendbirdLimits.page)
      let answer = try await history(of: id, query)
      let (page, hasMore) = (answer.messages, answer.newer != nil)
      let within = page.prefix { message in end.map { end in message.position.map { $0 <= end } ?? false } ?? true }
      count += within.count { $0.sender != user && !$0.isRecalled }
      guard within.count == page.count, hasMore, let last = page.last?.position, last > place else { break }
      place = last
    }
    return min(count, limit)
  }

  /// What the server does not know of the own mark.
  func applyHeldMark(to channel: inout Channel) {
    guard let held = heldMarks[channel.id] else { return }
    guard channel.myReadPosition == held.serverMark else { return releaseMark(channel.id) }
    channel.myReadPosition = held.position
    if case .exact(let number) = channel.unread { channel.unread = .exact(max(0, number - held.covered)) }
  }

  /// The user's own message or mark at the server covers every held one, before the number beside it is read.
  func releaseMark(by frame: SendbirdFrame) {
    guard ["READ", "MESG", "FILE"].contains(frame.command), let url = frame.payload.text("channel_url"),
      let sender = frame.payload.object("user").flatMap({ $0.text("guest_id") ?? $0.text("user_id") }),
      UserID(sender) == user
    else { return }
    releaseMark(ChannelID(url))
  }

  /// The server's own mark covers it, or nobody is there any more to have it.
  func releaseMark(_ id: ChannelID) {
    heldMarks[id] = nil
    releasedMarks[id, default: 0] &+= 1
  }

  /// The server's total, less what held marks cover.
  func total(_ number: Int64) -> Int {
    max(0, Int(clamping: max(0, number)) - heldMarks.values.reduce(0) { $0 + $1.covered })
  }

  /// The server lifts the mark of whoever sends, for all devices.
  func sendingReads(_ id: ChannelID) {
    guard !openChannels.contains(id) else { return }
    releaseMark(id)
    publish(.unreadChanged(id, .exact(0)), source: .echo)
  }
}
