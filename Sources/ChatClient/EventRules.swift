import ChatCache
import UnifiedChat

// What each event does to the cache, and which events are told because of it. Applying one twice tells it once.

extension CacheSession {
  /// - Returns: what is to be told; empty when everything was known.
  func apply(_ kind: ChatEvent.Kind) throws(ChatError) -> [ChatEvent.Kind] {
    switch kind {
    case .messageUpdated(let message): return try events(of: try merge(message), isNew: false)
    case .messageRecalled(let message): return try recalled(message)
    case .messageHidden(let channel, let id): return try hide(id, in: channel) ? [kind] : []
    case .historyCleared(let channel, let position):
      guard try clear(channel, upTo: position) else { return [] }
      return [kind] + (try recount(channel))
    case .reactionsChanged(let channel, let id, let reactions):
      let isNews = try setReactions(reactions, of: id, in: channel)
      // Of a message that is not here, nothing is known either way.
      let isHere = try message(id, in: channel) != nil
      return isNews || !isHere ? [kind] : []
    case .channelJoined, .channelLeft, .channelChanged, .channelDeleted, .unreadChanged: return try applyChannel(kind)
    case .memberJoined, .memberLeft, .memberChanged, .readChanged, .deliveredChanged: return try applyMember(kind)
    default: return [kind]
    }
  }

  private func applyChannel(_ kind: ChatEvent.Kind) throws(ChatError) -> [ChatEvent.Kind] {
    switch kind {
    case .channelJoined(let channel), .channelChanged(let channel):
      switch try merge(channel) {
      case .unchanged: return []
      case .joined(let now): return [.channelJoined(now)]
      case .updated(let now): return [.channelChanged(now)]
      }
    case .channelLeft(let channel, _):
      let isKnown = try self.channel(channel) != nil
      let wasMember = try leave(channel)
      return wasMember || !isKnown ? [kind] : []
    case .channelDeleted(let channel):
      let failed = try abandonOutbox(
        of: channel, because: ChatError(.notFound, operation: .send, detail: "the channel was deleted"))
      let isNews = try leave(channel)
      try forgetMessages(of: channel)
      return failed.map { .messageFailed($0) } + (isNews ? [kind] : [])
    case .unreadChanged(let channel, let count):
      let now = try besideDueMark(count, of: channel)
      return try setUnread(now, of: channel) ? [.unreadChanged(channel, now)] : []
    default: return [kind]
    }
  }

  private func applyMember(_ kind: ChatEvent.Kind) throws(ChatError) -> [ChatEvent.Kind] {
    switch kind {
    case .memberJoined(let channel, let member), .memberChanged(let channel, let member):
      return try merge(member, in: channel) ? [kind] : []
    case .memberLeft(let channel, let user, _):
      let known = try member(user, in: channel)
      let gone = Member(user: known?.user ?? User(id: user), state: .left)
      return try merge(gone, in: channel) ? [kind] : []
    case .readChanged(let channel, let user, let position) where user == owner:
      guard try raiseReadMark(position, of: channel) else { return [] }
      return [kind] + (try recount(channel))
    case .readChanged(let channel, let user, let position):
      return try raiseMark(\.readPosition, of: user, in: channel, to: position) ? [kind] : []
    case .deliveredChanged(let channel, let user, let position):
      return try raiseMark(\.deliveredPosition, of: user, in: channel, to: position) ? [kind] : []
    default: return [kind]
    }
  }

  /// What a change of a message means to those who listen. `isNew`: it comes as a new message, not as an edit.
  func events(of change: MessageChange, isNew: Bool) throws(ChatError) -> [ChatEvent.Kind] {
    switch change {
    case .unchanged, .duplicate: return []
    case .inserted(let message, let replies):
      let others = replies.map { ChatEvent.Kind.messageUpdated($0) }
      guard isNew else { return [.messageUpdated(message)] + others }
      return [.messageReceived(message)] + others + (message.isCountable ? try counted(message, 1) : [])
    case .updated(let message): return [.messageUpdated(message)]
    case .sent(let message): return [.messageSent(message)]
    case .recalled(let message, let wasCountable, let replies):
      return [.messageRecalled(message)] + replies.map { .messageUpdated($0) } + (wasCountable ? try counted(message, -1) : [])
    }
  }

  private func recalled(_ message: Message) throws(ChatError) -> [ChatEvent.Kind] {
    guard let id = message.id else { return [] }
    let known = try self.message(id, in: message.channel)
    if let known, known.isRecalled { return [] }
    var tombstone = message
    if !tombstone.isRecalled { tombstone.content = .recalled(by: nil, at: nil) }
    // A second copy of one send is out of sight, and has its place.
    if tombstone.position == nil { tombstone.position = try position(of: id, in: message.channel) }
    guard tombstone.position != nil else {
      // It overtook its message, and nobody says where that stood: when it comes, it stays out of sight.
      return try hide(id, in: message.channel) ? [.messageRecalled(tombstone)] : []
    }
    return try events(of: try merge(tombstone), isNew: false).map { kind in
      // One that was never seen comes as a tombstone, not as an edit.
      if case .messageUpdated(let now) = kind, now.id == id { .messageRecalled(now) } else { kind }
    }
  }

  /// The unread number after one message more or less, where it counts. A number of the vendor that comes later
  /// replaces it; one that comes with a message is to come after it.
  private func counted(
    _ message: Message, _ difference: Int
  ) throws(ChatError) -> [ChatEvent.Kind] {
    guard let position = message.position, message.sender != owner, message.threadParent == nil else { return [] }
    if let mark = try readMark(of: message.channel), position <= mark { return [] }
    guard let now = try addUnread(difference, of: message.channel) else { return [] }
    return [.unreadChanged(message.channel, now)]
  }

  /// Where the vendor lifts the read mark of whoever writes, what was there before an own message is read.
  func liftMark(by message: Message) throws(ChatError) -> [ChatEvent.Kind] {
    guard let position = message.position, try raiseReadMark(position, of: message.channel) else { return [] }
    return try recount(message.channel)
  }

  /// The unread number after the read mark moved: counted where the cache holds all of it, nothing when the mark is
  /// at the newest message, else what it was until the vendor says more.
  func recount(_ channel: ChannelID) throws(ChatError) -> [ChatEvent.Kind] {
    var number = try countedUnread(of: channel)
    if number == nil, let newest = try newestPosition(in: channel), let mark = try readMark(of: channel), mark >= newest {
      number = 0
    }
    guard let number, try setUnread(.exact(number), of: channel) else { return [] }
    return [.unreadChanged(channel, .exact(number))]
  }
}
