import UnifiedChat

/// Changes of what may stand at several places of a message: in its content, in quoted and in merged messages.
extension MessageContent {
  /// Every user replaced by what `map` gives.
  func mappingUsers(_ map: (UserID) -> UserID) -> MessageContent {
    switch self {
    case .card(let user, let name, let avatarURL): .card(map(user), name: name, avatarURL: avatarURL)
    case .merged(let title, let messages):
      .merged(title: title, messages: messages.map { $0.mappingUsers(map) })
    case .system(var notice): { () -> MessageContent in
      notice.actor = notice.actor.map(map)
      notice.subjects = notice.subjects.map(map)
      return .system(notice)
    }()
    case .recalled(let by, let at): .recalled(by: by.map(map), at: at)
    default: self
    }
  }

  func removingUsers(_ gone: Set<UserID>) -> MessageContent {
    switch self {
    case .card(let user, _, _) where gone.contains(user): .text("")
    case .merged(let title, let messages):
      .merged(
        title: title,
        messages: messages.filter { $0.sender.map(gone.contains) != true }.map { $0.removingUsers(gone) })
    case .system(var notice): { () -> MessageContent in
      if let actor = notice.actor, gone.contains(actor) { notice.actor = nil }
      notice.subjects.removeAll(where: gone.contains)
      notice.text = nil
      notice.raw = nil
      return .system(notice)
    }()
    case .recalled(let by?, let at) where gone.contains(by): .recalled(by: nil, at: at)
    default: self
    }
  }

  /// Every attachment replaced by what `map` gives.
  func mappingAttachments(_ map: (Attachment) -> Attachment) -> MessageContent {
    if case .merged(let title, let messages) = self {
      let mapped = messages.map { quoted in
        var quoted = quoted
        quoted.content = quoted.content.mappingAttachments(map)
        return quoted
      }
      return .merged(title: title, messages: mapped)
    }
    guard let attachment else { return self }
    var changed = self
    changed.attachment = map(attachment)
    return changed
  }

  /// In the order of the content.
  var attachments: [Attachment] {
    if case .merged(_, let messages) = self { return messages.flatMap(\.content.attachments) }
    return attachment.map { [$0] } ?? []
  }

  /// Everybody whom the content names.
  var users: [UserID] {
    var found: [UserID] = []
    _ = mappingUsers {
      found.append($0)
      return $0
    }
    return found
  }
}

extension QuotedMessage {
  func removingUsers(_ gone: Set<UserID>) -> QuotedMessage {
    var copy = self
    copy.content = content.removingUsers(gone)
    return copy
  }

  func mappingUsers(_ map: (UserID) -> UserID) -> QuotedMessage {
    var copy = self
    copy.sender = sender.map(map)
    copy.content = content.mappingUsers(map)
    return copy
  }
}

extension Message {
  func mappingUsers(_ map: (UserID) -> UserID) -> Message {
    var copy = self
    copy.sender = sender.map(map)
    copy.content = content.mappingUsers(map)
    copy.mentions.users = mentions.users.map(map)
    copy.reactions = reactions.map { Reaction(key: $0.key, users: $0.users.map(map)) }
    copy.replyTo?.quoted = replyTo?.quoted?.mappingUsers(map)
    return copy
  }

  /// Without any trace of `gone` but in the text itself. Their own messages are not for this.
  func removingUsers(_ gone: Set<UserID>) -> Message {
    guard !gone.isEmpty, namedUsers.contains(where: gone.contains) else { return self }
    var copy = self
    copy.content = content.removingUsers(gone)
    copy.mentions.users.removeAll(where: gone.contains)
    copy.reactions = reactions.compactMap { reaction in
      let users = reaction.users.filter { !gone.contains($0) }
      return users.isEmpty ? nil : Reaction(key: reaction.key, users: users)
    }
    if let quoted = replyTo?.quoted {
      copy.replyTo?.quoted = quoted.sender.map(gone.contains) == true ? nil : quoted.removingUsers(gone)
    }
    return copy
  }

  /// Everybody whom the message names.
  var namedUsers: [UserID] {
    var found: [UserID] = []
    _ = mappingUsers {
      found.append($0)
      return $0
    }
    return found
  }
}
