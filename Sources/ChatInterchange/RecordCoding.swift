import ChatCrypto
import ChatJSON
import UnifiedChat

/// Why a JSON value is no record: which member, and what was expected.
public struct RecordError: Error, Sendable, Hashable, CustomStringConvertible {
  /// A JSON Pointer from the record's root.
  public var path: String
  public var reason: String

  public init(path: String, reason: String) {
    self.path = path
    self.reason = reason
  }

  public var description: String { "\(path.isEmpty ? "record" : path): \(reason)" }
}

/// The neutral JSON form of what tools move, one record a line (`Schemas/records.schema.json`).
///
/// Members that are nil, empty or at their default are left out, so that equal records give equal bytes. Custom data
/// stands as text (`customData`), because its bytes are part of its meaning.
extension Record {
  /// The value of `type`.
  public var typeName: String {
    switch self {
    case .user: "user"
    case .channel: "channel"
    case .member: "member"
    case .file: "file"
    case .message: "message"
    }
  }

  public func json() -> JSONValue {
    var object = JSONObject()
    object["type"] = .string(typeName)
    switch self {
    case .user(let record): record.write(to: &object)
    case .channel(let record): record.write(to: &object)
    case .member(let record): record.write(to: &object)
    case .file(let record): record.write(to: &object)
    case .message(let record): record.write(to: &object)
    }
    return .object(object)
  }

  public init(json: JSONValue) throws(RecordError) {
    let reader = try RecordReader(json, path: "")
    switch try reader.string("type") {
    case "user": self = .user(try UserRecord(reader))
    case "channel": self = .channel(try ChannelRecord(reader))
    case "member": self = .member(try MemberRecord(reader))
    case "file": self = .file(try FileRecord(reader))
    case "message": self = .message(try MessageRecord(reader))
    case let other:
      throw RecordError(path: "/type", reason: "\"\(other)\" is none of user, channel, member, file, message")
    }
  }
}

extension UserRecord {
  func write(to object: inout JSONObject) {
    user.write(to: &object)
    if isPlaceholder { object["placeholder"] = true }
    object["origin"] = origin?.json()
    object["raw"] = raw.map { .string($0.text) }
  }

  init(_ reader: RecordReader) throws(RecordError) {
    self.init(
      user: try User(reader), isPlaceholder: try reader.optionalBool("placeholder") ?? false,
      origin: try reader.origin(), raw: try reader.optionalText("raw"))
  }
}

extension ChannelRecord {
  func write(to object: inout JSONObject) {
    object["id"] = .string(channel.id.rawValue)
    object["kind"] = .string(channel.kind.recordName)
    object["name"] = channel.name.map { .string($0) }
    object["coverURL"] = channel.coverURL.map { .string($0) }
    object["customData"] = channel.customData.map { .string($0.text) }
    if !channel.metadata.isEmpty {
      let sorted = channel.metadata.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      object["metadata"] = .object(JSONObject(sorted.map { ($0.key, .string($0.value)) }))
    }
    if channel.isDistinct { object["distinct"] = true }
    if channel.isFrozen { object["frozen"] = true }
    object["createdAt"] = channel.createdAt.map { .int($0.milliseconds) }
    object["createdBy"] = channel.createdBy.map { .string($0.rawValue) }
    object["origin"] = origin?.json()
    object["raw"] = raw.map { .string($0.text) }
  }

  init(_ reader: RecordReader) throws(RecordError) {
    var channel = Channel(
      id: ChannelID(try reader.nonEmpty("id")), kind: ChannelKind(recordName: try reader.string("kind")))
    channel.name = try reader.optionalString("name")
    channel.coverURL = try reader.optionalString("coverURL")
    channel.customData = try reader.optionalText("customData")
    if let metadata = try reader.optionalObject("metadata") {
      for key in metadata.object.keys {
        // Text in Swift is equal in every Unicode form: the second of two such keys would replace the first one.
        guard channel.metadata[key] == nil else {
          throw RecordError(path: metadata.path(key), reason: "a second key that differs in its Unicode form alone")
        }
        channel.metadata[key] = try metadata.string(key)
      }
    }
    channel.isDistinct = try reader.optionalBool("distinct") ?? false
    channel.isFrozen = try reader.optionalBool("frozen") ?? false
    channel.createdAt = try reader.optionalTime("createdAt")
    channel.createdBy = try reader.optionalString("createdBy").map { UserID($0) }
    self.init(channel: channel, origin: try reader.origin(), raw: try reader.optionalText("raw"))
  }
}

extension MemberRecord {
  func write(to object: inout JSONObject) {
    object["channel"] = .string(channel.rawValue)
    object["user"] = .string(member.user.id.rawValue)
    if member.role != .member { object["role"] = .string(member.role.recordName) }
    if member.state != .joined { object["state"] = .string(member.state.rawValue) }
    object["joinedAt"] = member.joinedAt.map { .int($0.milliseconds) }
    if member.isMuted { object["muted"] = true }
    object["mutedUntil"] = member.mutedUntil.map { .int($0.milliseconds) }
    object["readPosition"] = member.readPosition.map { .string($0.description) }
    object["deliveredPosition"] = member.deliveredPosition.map { .string($0.description) }
    object["raw"] = raw.map { .string($0.text) }
  }

  init(_ reader: RecordReader) throws(RecordError) {
    var member = Member(user: User(id: UserID(try reader.nonEmpty("user"))))
    member.role = try reader.optionalString("role").map { MemberRole(recordName: $0) } ?? .member
    if let name = try reader.optionalString("state") {
      guard let state = MembershipState(rawValue: name) else {
        throw RecordError(path: reader.path("state"), reason: "\"\(name)\" is none of joined, invited, left, banned")
      }
      member.state = state
    }
    member.joinedAt = try reader.optionalTime("joinedAt")
    member.isMuted = try reader.optionalBool("muted") ?? false
    member.mutedUntil = try reader.optionalTime("mutedUntil")
    member.readPosition = try reader.optionalPosition("readPosition")
    member.deliveredPosition = try reader.optionalPosition("deliveredPosition")
    self.init(
      channel: ChannelID(try reader.nonEmpty("channel")), member: member, raw: try reader.optionalText("raw"))
  }
}

extension FileRecord {
  func write(to object: inout JSONObject) {
    object["sha256"] = .string(sha256)
    object["name"] = name.map { .string($0) }
    object["mimeType"] = mimeType.map { .string($0) }
    object["data"] = .string(Base64.encode(bytes))
  }

  init(_ reader: RecordReader) throws(RecordError) {
    guard let bytes = Base64.decode(try reader.string("data")) else {
      throw RecordError(path: reader.path("data"), reason: "not base64")
    }
    let sha256 = try reader.string("sha256")
    guard sha256 == Hex.encode(Digest.sha256(bytes)) else {
      throw RecordError(path: reader.path("sha256"), reason: "the bytes of data have another SHA-256")
    }
    self.init(
      sha256: sha256, name: try reader.optionalString("name"), mimeType: try reader.optionalString("mimeType"),
      bytes: bytes)
  }
}
