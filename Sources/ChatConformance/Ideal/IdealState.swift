import UnifiedChat

/// One channel as the ideal service holds it.
struct IdealChannel: Sendable {
  var channel: Channel
  /// In order of joining.
  var members: [UserID] = []
  var memberships: [UserID: Member] = [:]
  /// Grows with every joining.
  var joinNumbers: [UserID: Int64] = [:]
  /// Ascending by sequence number; recalled ones stay as tombstones.
  var messages: [Message] = []
  var lastSequence: Int64 = 0
  /// What one user does not see any more.
  var hiddenMessages: [UserID: Set<MessageID>] = [:]
  var clearedUpTo: [UserID: MessagePosition] = [:]
  var views: [UserID: View] = [:]
  /// Every edit and recall in order, for the change log.
  var changes: [MessageID] = []
  /// (sender, client id) to id: the same send twice is stored once.
  var sent: [SendKey: MessageID] = [:]

  struct View: Sendable {
    var isPinned = false
    var isHidden = false
    var level: NotificationLevel = .all
  }

  struct SendKey: Hashable, Sendable {
    var sender: UserID
    var id: ClientMessageID
  }

  func index(of id: MessageID) -> Int? { messages.firstIndex { $0.id == id } }

  /// The first index whose position is not before `position`.
  func lowerBound(_ position: MessagePosition) -> Int {
    var low = 0
    var high = messages.count
    while low < high {
      let middle = (low + high) / 2
      if let other = messages[middle].position, other < position { low = middle + 1 } else { high = middle }
    }
    return low
  }

  func isVisible(_ message: Message, to user: UserID) -> Bool {
    if let id = message.id, hiddenMessages[user]?.contains(id) == true { return false }
    if let limit = clearedUpTo[user], let position = message.position, position <= limit { return false }
    return true
  }

  /// Countable messages of others after the user's read position.
  func unread(for user: UserID, mentionsOnly: Bool = false) -> Int {
    let start = memberships[user]?.readPosition.map { lowerBound($0) } ?? 0
    let read = memberships[user]?.readPosition
    return messages[start...].count { message in
      guard let position = message.position, read.map({ position > $0 }) ?? true else { return false }
      guard message.sender != user, !message.isRecalled, isVisible(message, to: user) else { return false }
      if case .system = message.content { return false }
      return !mentionsOnly || message.mentions.everyone || message.mentions.users.contains(user)
    }
  }

  func seen(by user: UserID) -> Channel {
    var seen = channel
    seen.memberCount = channel.kind == .open ? nil : members.count
    seen.peer = channel.kind == .direct ? members.first { $0 != user } : nil
    seen.lastMessage = messages.last { isVisible($0, to: user) }
    seen.unread = channel.kind == .open ? .exact(0) : .exact(unread(for: user))
    seen.unreadMentions = .exact(channel.kind == .open ? 0 : unread(for: user, mentionsOnly: true))
    seen.myRole = memberships[user]?.role
    seen.myState = memberships[user]?.state
    seen.myReadPosition = memberships[user]?.readPosition
    let view = views[user] ?? View()
    seen.isPinned = view.isPinned
    seen.isHidden = view.isHidden
    seen.notificationLevel = view.level
    return seen
  }
}
