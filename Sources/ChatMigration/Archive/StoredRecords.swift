import ChatInterchange
import ChatJSON
import UnifiedChat

/// A record as an archive holds it: the mapped form and what the vendor sent.
public struct StoredRecord: Sendable, Hashable {
  /// Canonical JSON without `raw`.
  public var json: String
  public var raw: String?

  init(json: String, raw: String?) {
    self.json = json
    self.raw = raw
  }

  init(_ record: Record) {
    var bare = record
    raw = bare.takeRaw()?.text
    json = String(decoding: bare.json().canonicalBytes(), as: UTF8.self)
  }

  /// - Throws: `.storage(.corrupt)` when the archive holds something that is no record.
  public func record() throws(ChatError) -> Record {
    do {
      var record = try Record(json: try JSONValue(parsing: json))
      record.putRaw(raw.map { JSONText(unchecked: $0) })
      return record
    } catch {
      throw ChatError(.storage(.corrupt), operation: .archive, detail: "the archive holds no record: \(error)")
    }
  }

  public func user() throws(ChatError) -> UserRecord {
    guard case .user(let record) = try record() else { throw mismatch("user") }
    return record
  }

  public func channel() throws(ChatError) -> ChannelRecord {
    guard case .channel(let record) = try record() else { throw mismatch("channel") }
    return record
  }

  public func member() throws(ChatError) -> MemberRecord {
    guard case .member(let record) = try record() else { throw mismatch("member") }
    return record
  }

  public func message() throws(ChatError) -> MessageRecord {
    guard case .message(let record) = try record() else { throw mismatch("message") }
    return record
  }

  private func mismatch(_ expected: String) -> ChatError {
    ChatError(.storage(.corrupt), operation: .archive, detail: "the archive holds another record as \(expected)")
  }
}

extension Record {
  fileprivate mutating func takeRaw() -> JSONText? {
    let raw = self.raw
    putRaw(nil)
    return raw
  }

  fileprivate var raw: JSONText? {
    switch self {
    case .user(let record): record.raw
    case .channel(let record): record.raw
    case .member(let record): record.raw
    case .message(let record): record.raw
    case .file: nil
    }
  }

  fileprivate mutating func putRaw(_ raw: JSONText?) {
    switch self {
    case .user(var record):
      record.raw = raw
      self = .user(record)
    case .channel(var record):
      record.raw = raw
      self = .channel(record)
    case .member(var record):
      record.raw = raw
      self = .member(record)
    case .message(var record):
      record.raw = raw
      self = .message(record)
    case .file: break
    }
  }
}

/// A user on its way into an archive.
struct UserRow: Sendable {
  var id: UserID
  var isPlaceholder: Bool
  var stored: StoredRecord

  init(_ record: UserRecord) {
    id = record.user.id
    isPlaceholder = record.isPlaceholder
    stored = StoredRecord(.user(record))
  }

  /// Somebody of whom only the id is known.
  static func placeholder(_ id: UserID) -> UserRow { UserRow(UserRecord(user: User(id: id), isPlaceholder: true)) }
}

struct ChannelRow: Sendable {
  var id: ChannelID
  var kind: String
  /// Who made it, and the other one of a direct channel.
  var people: [UserID]
  var stored: StoredRecord

  init(_ record: ChannelRecord) {
    id = record.channel.id
    people = [record.channel.createdBy, record.channel.peer].compactMap(\.self)
    kind = record.channel.kind.recordName
    stored = StoredRecord(.channel(record))
  }
}

struct MemberRow: Sendable {
  var user: UserID
  var stored: StoredRecord

  init(_ record: MemberRecord) {
    user = record.member.user.id
    stored = StoredRecord(.member(record))
  }
}

struct MessageRow: Sendable {
  var id: MessageID
  var sender: UserID?
  /// Everybody whom the message names, the sender too.
  var people: Set<UserID>
  var createdAt: Timestamp
  var kind: String
  var stored: StoredRecord

  /// nil for a message without id, which no archive can hold.
  init?(_ record: MessageRecord) {
    guard let id = record.message.id else { return nil }
    self.id = id
    sender = record.message.sender
    people = Set(record.message.reactions.flatMap(\.users))
    if let sender { people.insert(sender) }
    createdAt = record.message.createdAt
    kind = record.message.content.kindName
    stored = StoredRecord(.message(record))
  }
}

/// A channel as an archive holds it.
public struct ArchivedChannel: Sendable, Hashable {
  /// The archive's own number of the channel, 1 and up.
  public var ordinal: Int64
  public var id: ChannelID
  /// The record name of the kind.
  public var kind: String
  public var stored: StoredRecord
  /// These are nil until the archive is complete.
  public var messages: Int?
  public var firstAt: Timestamp?
  public var lastAt: Timestamp?
  public var digest: String?
}

/// A message as an archive holds it.
public struct ArchivedMessage: Sendable, Hashable {
  /// Counts up within the channel.
  public var ordinal: Int64
  public var id: MessageID
  public var stored: StoredRecord
}

public struct ArchivedUser: Sendable, Hashable {
  public var ordinal: Int64
  public var id: UserID
  public var stored: StoredRecord
}

/// How many of what an archive holds.
public struct ArchiveCounts: Sendable, Hashable {
  public var users = 0
  /// Of the users, those without a record of their own.
  public var placeholders = 0
  public var channels = 0
  public var members = 0
  public var messages = 0
  public var files = 0
  public var fileBytes: Int64 = 0
  public var unreadable = 0
  /// Envelopes of imports that were not believed; their items are among the others.
  public var envelopes = 0

  public init() {}
}
