import UnifiedChat

/// How a record of the archive is handed to a destination; verification expects to read back the same.
struct DestinationForm: Sendable {
  /// The vendor that the archive is from.
  var vendor: VendorName
  var rules = LoadRules()

  func user(_ record: UserRecord, id: UserID) -> UserRecord {
    var copy = record
    copy.user.id = id
    copy.user.presence = nil
    copy.origin = Origin(vendor: vendor, id: record.user.id.rawValue)
    copy.raw = nil
    return copy
  }

  func channel(_ record: ChannelRecord, asGroup: Bool, users: [UserID: UserID]) -> ChannelRecord {
    var copy = record
    copy.channel.id = rules.channels[record.channel.id] ?? record.channel.id
    if let creator = record.channel.createdBy, !rules.filter.admits(creator) { copy.channel.createdBy = nil }
    copy.channel.createdBy = copy.channel.createdBy.map { users[$0] ?? $0 }
    copy.channel.peer = record.channel.peer.map { users[$0] ?? $0 }
    if asGroup {
      copy.channel.kind = .group
      copy.channel.isDistinct = false
      copy.channel.peer = nil
    }
    copy.origin = Origin(vendor: vendor, id: record.channel.id.rawValue)
    copy.raw = nil
    return copy
  }

  func member(_ record: MemberRecord, users: [UserID: UserID]) -> MemberRecord {
    var copy = record
    if let role = rules.roles[record.member.role.recordName] { copy.member.role = MemberRole(recordName: role) }
    copy.member.user.id = users[record.member.user.id] ?? record.member.user.id
    copy.raw = nil
    return copy
  }

  /// Reply target and thread parent are the original ones until it is written. Without reactions where those become messages.
  func message(_ record: MessageRecord, users: [UserID: UserID]) -> MessageRecord {
    let admitted = record.message.removingUsers(rules.filter.excludedUsers)
    var message = admitted.mappingUsers { users[$0] ?? $0 }
    if rules.rewritesMentions { rewriteMentions(of: admitted, in: &message, users) }
    if rules.reactions == .messages { message.reactions = [] }
    if isPutInWords(record.message), case .system(let notice) = message.content {
      message.content = .text(notice.words)
      message.sender = message.sender ?? notice.actor
    }
    let origin = Origin(vendor: vendor, id: message.id?.rawValue ?? "", channel: record.message.channel)
    return MessageRecord(message: message, origin: origin)
  }

  func isPutInWords(_ message: Message) -> Bool {
    guard rules.system == .text, case .system = message.content else { return false }
    return rules.admits(message)
  }

  /// What is written beside a message that the filter admits, in order: its reactions, where those become messages.
  func reactions(of record: MessageRecord, users: [UserID: UserID]) -> [MessageRecord] {
    guard rules.reactions == .messages, !record.message.reactions.isEmpty, rules.admits(record.message) else {
      return []
    }
    let admitted = record.message.removingUsers(rules.filter.excludedUsers).reactions
    let mapped = admitted.map { Reaction(key: $0.key, users: $0.users.map { users[$0] ?? $0 }) }
    return ReactionForm.messages(of: message(record, users: users), reactions: mapped, originals: admitted)
  }

  func reactionCount(of record: MessageRecord) -> Int { reactions(of: record, users: [:]).count }

  /// Whether a mention in the text has to follow the id of its user.
  func rewrites(_ message: Message, users: [UserID: UserID]) -> Bool {
    var copy = message
    rewriteMentions(of: message, in: &copy, users)
    return copy.content != message.content
  }

  private func rewriteMentions(of original: Message, in message: inout Message, _ users: [UserID: UserID]) {
    let changed = original.mentions.users.compactMap { user in
      users[user].flatMap { $0 == user ? nil : (old: "@" + user.rawValue, new: "@" + $0.rawValue) }
    }
    guard !changed.isEmpty else { return }
    switch message.content {
    case .text(let text): message.content = .text(Self.replacing(changed, in: text))
    case .markdown(let text): message.content = .markdown(Self.replacing(changed, in: text))
    default: break
    }
  }

  /// Whole names only, the longest first: `@ann` is not the beginning of `@anna`.
  private static func replacing(_ names: [(old: String, new: String)], in text: String) -> String {
    let sorted = names.map { (old: Array($0.old.utf8), new: Array($0.new.utf8)) }.sorted { $0.old.count > $1.old.count }
    let bytes = Array(text.utf8)
    var result: [UInt8] = []
    var index = 0
    while index < bytes.count {
      let name =
        bytes[index] == UInt8(ascii: "@")
        ? sorted.first { bytes[index...].starts(with: $0.old) && endsWord(bytes, index + $0.old.count) } : nil
      result += name?.new ?? [bytes[index]]
      index += name?.old.count ?? 1
    }
    return String(decoding: result, as: UTF8.self)
  }

  private static func endsWord(_ bytes: [UInt8], _ index: Int) -> Bool {
    guard index < bytes.count else { return true }
    let next = bytes[index]
    return !(next >= 0x80 || next == UInt8(ascii: "_") || next == UInt8(ascii: "-")
      || (next | 0x20 >= UInt8(ascii: "a") && next | 0x20 <= UInt8(ascii: "z"))
      || (next >= UInt8(ascii: "0") && next <= UInt8(ascii: "9")))
  }
}

extension SystemNotice {
  /// The service's own words, or ours, which name people by their ids.
  var words: String {
    if let text, !text.isEmpty { return text }
    let who = subjects.isEmpty ? actor.map(\.rawValue) : subjects.map(\.rawValue).joined(separator: ", ")
    let other = actor.flatMap { subjects.isEmpty || subjects == [$0] ? nil : " (by \($0.rawValue))" } ?? ""
    return switch (kind, who) {
    case ("memberJoined", let who?): "\(who) joined\(other)"
    case ("memberLeft", let who?): "\(who) left\(other)"
    case ("channelCreated", _): "The channel was made" + (actor.map { " by \($0.rawValue)" } ?? "")
    case ("channelChanged", _): "The channel was changed" + (actor.map { " by \($0.rawValue)" } ?? "")
    default: "[\(kind)]" + (who.map { " \($0)" } ?? "")
    }
  }
}

extension Loss {
  static let repeatedDirectChannel = Loss(
    field: "channel.kind", treatment: .degraded,
    explanation: "a further direct channel of the same two users becomes a group")
  static let missingBytes = Loss(
    field: "message.content.attachment", treatment: .degraded,
    explanation: "the archive has no bytes of the attachment; its address is kept")
  static let refusedBytes = Loss(
    field: "message.content.attachment", treatment: .degraded,
    explanation: "the destination refused the bytes of the attachment; its address is kept")
  static let linkedBytes = Loss(
    field: "message.content.attachment", treatment: .degraded,
    explanation: "the attachment stays where it is, as wanted; its address is kept")
  static let filtered = Loss(field: "message", treatment: .dropped, explanation: "left out by the filter")
  static let filteredUser = Loss(field: "user", treatment: .dropped, explanation: "left out by the filter")
  static let filteredChannel = Loss(field: "channel", treatment: .dropped, explanation: "left out by the filter")
  static let rewrittenMention = Loss(
    field: "message.content.text", treatment: .degraded,
    explanation: "a mention in the text follows the new id of its user")
  static let answerAstray = Loss(
    field: "message.replyTo", treatment: .degraded,
    explanation: "what it answers was not there when it was written; it is named by its id at the source")
  static let replyAstray = Loss(
    field: "message.threadParent", treatment: .degraded,
    explanation: "the beginning of its thread was not there when it was written; it is named by its id at the source")
  static let noticeInWords = Loss(
    field: "message.content", treatment: .degraded,
    explanation: "a notice of the service is a text that says the same, as wanted")
  static let mappedRole = Loss(
    field: "member.role", treatment: .degraded, explanation: "another role, as the mapping says")
  static let lateChange = Loss(
    field: "message", treatment: .dropped,
    explanation: "changed at the source after it was written; the destination cannot change it")
  static let lateRemoval = Loss(
    field: "message", treatment: .degraded,
    explanation: "removed at the source after it was written; the destination cannot remove it")
  static let touched = Loss(
    field: "message.editedAt", treatment: .degraded,
    explanation: "changed after it was written; the service may note the time of that as an edit")
  static let tombstone = Loss(
    field: "message", treatment: .degraded, explanation: "removed at the destination, which may keep a tombstone")
  static let lateMember = Loss(
    field: "member", treatment: .degraded,
    explanation: "left the channel after it was written; the destination cannot remove members")
  static let mappedUser = Loss(
    field: "user.id", treatment: .keptElsewhere, explanation: "the id does not fit; it is mapped by the ledger")
}
