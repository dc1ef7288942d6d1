import Foundation
import UnifiedChat

/// What must not be in a copy of an archive that is handed on.
public struct RedactionRules: Sendable, Hashable {
  /// They, their messages and memberships, and every mention of their ids.
  public var droppedUsers: Set<UserID>
  /// Whether texts become as many dots, and attachments and custom data go.
  public var masksBodies: Bool

  public init(droppedUsers: Set<UserID> = [], masksBodies: Bool = false) {
    self.droppedUsers = droppedUsers
    self.masksBodies = masksBodies
  }
}

extension Archive {
  /// A new archive at `path` with what `rules` let through. What vendors sent (`raw`) never comes along, since anything
  /// may stand in it; neither do the vendor's own rows, items that could not be read, nor files that no message of the copy names.
  ///
  /// A text of somebody else that names a dropped user stays as it is. The copy appears when it is whole: what ends
  /// before, by an error, a full disk or a kill, leaves nothing at `path`, and is simply done again.
  /// - Throws: `.conflict` if something is at `path` already.
  public func redacted(to path: String, _ rules: RedactionRules, at time: Timestamp) async throws(ChatError) -> Archive {
    try PrivateFile.refuseLink(path, operation: .archive)
    for there in [path, path + ".files"] where PrivateFile.exists(there) {
      throw PrivateFile.failure(EEXIST, there, .archive)
    }
    let lock = try ProcessLock(path + ".lock", operation: .archive)
    defer { lock.release(removesFile: true) }
    let part = path + ".part"
    Self.remove(part)
    do throws(ChatError) {
      try await redact(to: part, rules, at: time)
      if PrivateFile.exists(part + ".files"), rename(part + ".files", path + ".files") != 0 {
        throw PrivateFile.failure(errno, path + ".files", .archive)
      }
      guard rename(part, path) == 0 else { throw PrivateFile.failure(errno, path, .archive) }
    } catch {
      Self.remove(part)
      // Without its archive it is of no use to anybody.
      if !PrivateFile.exists(path) { try? FileManager.default.removeItem(atPath: path + ".files") }
      throw error
    }
    return try Archive.open(at: path)
  }

  /// An archive with all that belongs to it.
  static func remove(_ path: String) {
    for left in [path, path + "-wal", path + "-shm"] { unlink(left) }
    try? FileManager.default.removeItem(atPath: path + ".files")
  }

  private func redact(to path: String, _ rules: RedactionRules, at time: Timestamp) async throws(ChatError) {
    var identity = try identity()
    identity = Identity(tool: identity.tool, vendor: identity.vendor, app: identity.app, createdAt: time)
    let copy = try Archive.create(at: path, identity)
    do throws(ChatError) { try await copyAll(to: copy, rules, at: time) } catch {
      // The first failure is the one to tell.
      try? await copy.close()
      throw error
    }
    try await copy.close()
  }

  private func copyAll(to copy: Archive, _ rules: RedactionRules, at time: Timestamp) async throws(ChatError) {
    try await copyUsers(to: copy, rules)
    var after: Int64 = 0
    while let channel = try channels(after: after, limit: 1).first {
      after = channel.ordinal
      try await copyChannel(channel, to: copy, rules)
    }
    var missing = try leftOut()
    let kinds = try rowCounts().map(\.kind)
    if !kinds.isEmpty {
      missing.append("rows of \(kinds.joined(separator: ", ")), which a redacted copy never has")
    }
    try await copy.put(leftOut: missing, replaces: true)
    try await copy.complete(at: time)
  }

  private func copyUsers(to copy: Archive, _ rules: RedactionRules) async throws(ChatError) {
    var after: Int64 = 0
    while true {
      let page = try users(after: after, limit: 500)
      guard let last = page.last else { return }
      after = last.ordinal
      var batch = ImportBatch()
      for user in page where !rules.droppedUsers.contains(user.id) {
        var record = try user.stored.user()
        record.raw = nil
        if rules.masksBodies { record.user.customData = nil }
        batch.users.append(UserRow(record))
      }
      _ = try await copy.commit(batch)
    }
  }

  private func copyChannel(
    _ channel: ArchivedChannel, to copy: Archive, _ rules: RedactionRules
  ) async throws(ChatError) {
    var record = try channel.stored.channel()
    record.raw = nil
    if let creator = record.channel.createdBy, rules.droppedUsers.contains(creator) { record.channel.createdBy = nil }
    if let peer = record.channel.peer, rules.droppedUsers.contains(peer) { record.channel.peer = nil }
    if rules.masksBodies {
      record.channel.customData = nil
      record.channel.metadata = [:]
    }
    var first = ImportBatch()
    first.channels.append(ChannelRow(record))
    _ = try await copy.commit(first)
    guard let target = try await copy.channel(channel.id)?.ordinal else { return }
    try await copyMembers(of: channel.ordinal, to: copy, target, rules)
    var after: Int64 = 0
    while true {
      if Task.isCancelled { throw ChatError.cancelled(.archive) }
      let page = try messages(in: channel.ordinal, after: after, limit: 500)
      guard let last = page.last else { return }
      after = last.ordinal
      var batch = ImportBatch()
      for stored in page {
        guard let message = rules.redacted(try stored.stored.message()) else { continue }
        for attachment in message.message.content.attachments {
          if let file = try await carry(attachment, to: copy) { batch.files.append(file) }
        }
        if let row = MessageRow(message) { batch.messages[target, default: []].append(row) }
      }
      _ = try await copy.commit(batch)
    }
  }

  private func copyMembers(
    of channel: Int64, to copy: Archive, _ target: Int64, _ rules: RedactionRules
  ) async throws(ChatError) {
    var last: UserID?
    while true {
      let page = try members(of: channel, after: last, limit: 500)
      guard !page.isEmpty else { return }
      var batch = ImportBatch()
      for stored in page {
        var record = try stored.member()
        last = record.member.user.id
        record.raw = nil
        if !rules.droppedUsers.contains(record.member.user.id) { batch.members[target, default: []].append(MemberRow(record)) }
      }
      _ = try await copy.commit(batch)
    }
  }

  /// The bytes of an attachment, if they are here, in the store of another archive.
  func carry(_ attachment: Attachment, to copy: Archive) async throws(ChatError) -> FetchedFile? {
    guard let sha256 = attachment.sha256, let bytes = try files.bytes(of: sha256) else { return nil }
    let stored =
      copy.files.contains(sha256)
      ? StoredFile(sha256: sha256, size: Int64(bytes.count)) : try await copy.files.store(bytes)
    return FetchedFile(stored: stored, url: nil, name: attachment.name, mimeType: attachment.mimeType)
  }
}

extension RedactionRules {
  /// nil for a message that is left out.
  func redacted(_ record: MessageRecord) -> MessageRecord? {
    if let sender = record.message.sender, droppedUsers.contains(sender) { return nil }
    var message = record.message.removingUsers(droppedUsers)
    if masksBodies {
      message.content = message.content.masked
      message.customData = nil
      message.replyTo?.quoted = nil
    }
    return MessageRecord(message: message, origin: record.origin)
  }
}

extension MessageContent {
  /// Of the same kind as far as that says nothing of what was written.
  fileprivate var masked: MessageContent {
    switch self {
    case .text(let text): .text(Self.dots(text))
    case .markdown(let text): .markdown(Self.dots(text))
    case .image, .audio, .video, .file: mappingAttachments { _ in Attachment() }
    case .location: .location(Location(latitude: 0, longitude: 0))
    case .merged(let title, let messages):
      .merged(
        title: Self.dots(title),
        messages: messages.map { quoted in
          var quoted = quoted
          quoted.content = quoted.content.masked
          return quoted
        })
    case .system(var notice): { () -> MessageContent in
      notice.text = nil
      notice.raw = nil
      return .system(notice)
    }()
    case .recalled: self
    case .card, .sticker, .custom, .unknown: .text("·")
    }
  }

  private static func dots(_ text: String) -> String { String(repeating: "·", count: text.count) }
}
