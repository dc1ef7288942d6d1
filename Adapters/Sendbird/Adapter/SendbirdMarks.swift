import ChatJSON
import SendbirdWire
import UnifiedChat

/// A read mark at a message before the newest one. Sendbird marks up to now, so that this one stays with the client
/// until the messages behind it have been seen too.
struct SendbirdHeldMark: Sendable {
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
    heldMarks[id] = nil
    publish(.unreadChanged(id, .exact(0)), source: .local)
  }

  private func hold(_ position: MessagePosition, in id: ChannelID) async throws(ChatError) {
    if let known = heldMarks[id]?.position, known >= position { return }
    heldMarks[id] = nil
    let channel = try await channel(id)
    // No more than a person can have left unread: the number comes from the wire.
    guard let unread = channel.unread.number.map({ min($0, Int(Int32.max)) }), unread > 0 else { return }
    if let mark = channel.myReadPosition, mark >= position { return }
    let query = HistoryQuery(anchor: .position(position), direction: .newer, limit: unread + SendbirdLimits.page)
    let later = try await history(of: id, query).messages.count { $0.sender != user && !$0.isRecalled }
    heldMarks[id] = SendbirdHeldMark(
      position: position, covered: max(0, unread - later), serverMark: channel.myReadPosition)
    publish(.unreadChanged(id, .exact(min(unread, later))), source: .local)
  }

  /// What the server does not know of the own mark.
  func applyHeldMark(to channel: inout Channel) {
    guard let held = heldMarks[channel.id] else { return }
    guard channel.myReadPosition == held.serverMark else { return heldMarks[channel.id] = nil }
    channel.myReadPosition = held.position
    if case .exact(let number) = channel.unread { channel.unread = .exact(max(0, number - held.covered)) }
  }

  /// The user's own message or mark at the server covers every held one, before the number beside it is read.
  func releaseMark(by frame: SendbirdFrame) {
    guard ["READ", "MESG", "FILE"].contains(frame.command), let url = frame.payload.text("channel_url"),
      let sender = frame.payload.object("user").flatMap(SendbirdUser.init)?.id, sender == user
    else { return }
    heldMarks[ChannelID(url)] = nil
  }

  /// The server's total, less what held marks cover.
  func total(_ number: Int64) -> Int {
    max(0, Int(clamping: max(0, number)) - heldMarks.values.reduce(0) { $0 + $1.covered })
  }

  /// The server lifts the mark of whoever sends, for all devices.
  func sendingReads(_ id: ChannelID) {
    guard !openChannels.contains(id) else { return }
    heldMarks[id] = nil
    publish(.unreadChanged(id, .exact(0)), source: .echo)
  }
}
