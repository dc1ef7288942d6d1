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
