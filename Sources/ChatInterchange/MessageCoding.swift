import ChatJSON
import UnifiedChat

/// The fields of a message record that a vendor may be unable to carry, by their record names.
public enum MessageField: String, Sendable, Hashable, CaseIterable {
  case sender, senderName, createdAt, content, mentions, replyTo, threadParent, customType, customData, reactions
  case editedAt

  /// What the sender of a message says of it; of all else the vendor knows better.
  static let ofSender: Set<MessageField> = [
    .content, .mentions, .replyTo, .threadParent, .customType, .customData, .editedAt,
  ]
}

extension Message {
  /// The record form: what a vendor holds of the message, without `localID`, `state` and other matters of one device.
  public func json() -> JSONValue {
    var object = JSONObject()
    write(to: &object)
    return .object(object)
  }

  public init(json: JSONValue) throws(RecordError) { try self.init(RecordReader(json, path: "")) }

  func write(to object: inout JSONObject) {
    object["channel"] = .string(channel.rawValue)
    object["id"] = id.map { .string($0.rawValue) }
    object["clientMessageID"] = clientMessageID.map { .string($0.rawValue) }
    object["position"] = position.map { .string($0.description) }
    for field in MessageField.allCases { object[field.rawValue] = value(of: field) }
  }

  /// The record form of one field; nil when it is at its default.
  public func value(of field: MessageField) -> JSONValue? {
    switch field {
    case .sender: sender.map { .string($0.rawValue) }
    case .senderName: senderName.map { .string($0) }
    case .createdAt: .int(createdAt.milliseconds)
    case .content: content.json()
    // Spelt out, since a bare `nil` here would be taken for the JSON value null.
    case .mentions: mentions.isEmpty ? JSONValue?.none : mentions.json()
    case .replyTo: replyTo?.json()
    case .threadParent: threadParent.map { .string($0.rawValue) }
    case .customType: customType.map { .string($0) }
    case .customData: customData.map { .string($0.text) }
    case .reactions: reactions.isEmpty ? JSONValue?.none : .array(reactions.map { $0.json() })
    case .editedAt: editedAt.map { .int($0.milliseconds) }
    }
  }

  init(_ reader: RecordReader) throws(RecordError) {
    guard let content = reader.object["content"] else {
      throw RecordError(path: reader.path("content"), reason: "missing a content object")
    }
    self.init(
      channel: ChannelID(try reader.nonEmpty("channel")),
      id: try reader.optionalString("id").map { MessageID($0) },
      clientMessageID: try reader.optionalString("clientMessageID").map { ClientMessageID($0) },
      sender: try reader.optionalString("sender").map { UserID($0) },
      senderName: try reader.optionalString("senderName"), position: try reader.optionalPosition("position"),
      createdAt: Timestamp(milliseconds: try reader.int("createdAt")),
      content: try MessageContent.read(content, path: reader.path("content"), depth: 0),
      mentions: try reader.mentions(), replyTo: try reader.reply(),
      threadParent: try reader.optionalString("threadParent").map { MessageID($0) },
      customType: try reader.optionalString("customType"), customData: try reader.optionalText("customData"),
      reactions: try reader.reactions(), editedAt: try reader.optionalTime("editedAt"))
  }

  /// Puts `fields` of a record's object over this message; other members are left alone.
  mutating func overlay(_ reader: RecordReader, _ fields: Set<MessageField>) throws(RecordError) {
    for field in MessageField.allCases where fields.contains(field) && reader.object[field.rawValue] != nil {
      switch field {
      case .sender: sender = try reader.optionalString("sender").map { UserID($0) }
      case .senderName: senderName = try reader.optionalString("senderName")
      case .createdAt: createdAt = Timestamp(milliseconds: try reader.int("createdAt"))
      case .content:
        content = try MessageContent.read(reader.object["content"] ?? .null, path: reader.path("content"), depth: 0)
      case .mentions: mentions = try reader.mentions()
      case .replyTo: replyTo = try reader.reply()
      case .threadParent: threadParent = try reader.optionalString("threadParent").map { MessageID($0) }
      case .customType: customType = try reader.optionalString("customType")
      case .customData: customData = try reader.optionalText("customData")
      case .reactions: reactions = try reader.reactions()
      case .editedAt: editedAt = try reader.optionalTime("editedAt")
      }
    }
  }
}

extension MessageRecord {
  func write(to object: inout JSONObject) {
    message.write(to: &object)
    object["origin"] = origin?.json()
    object["raw"] = raw.map { .string($0.text) }
  }

  init(_ reader: RecordReader) throws(RecordError) {
    self.init(message: try Message(reader), origin: try reader.origin(), raw: try reader.optionalText("raw"))
  }
}

extension Mentions {
  public func json() -> JSONValue {
    var object = JSONObject()
    if !users.isEmpty { object["users"] = .array(users.map { .string($0.rawValue) }) }
    if everyone { object["everyone"] = true }
    return .object(object)
  }
}

extension Reply {
  public func json() -> JSONValue {
    var object = JSONObject()
    object["id"] = .string(id.rawValue)
    object["quoted"] = quoted?.json()
    return .object(object)
  }
}

extension Reaction {
  public func json() -> JSONValue {
    ["key": .string(key), "users": .array(users.map { .string($0.rawValue) })]
  }
}

extension RecordReader {
  func mentions() throws(RecordError) -> Mentions {
    guard let reader = try optionalObject("mentions") else { return Mentions() }
    return Mentions(users: try reader.users("users"), everyone: try reader.optionalBool("everyone") ?? false)
  }

  func reply() throws(RecordError) -> Reply? {
    guard let reader = try optionalObject("replyTo") else { return nil }
    var quoted: QuotedMessage?
    if let value = reader.object["quoted"], !value.isNull {
      quoted = try QuotedMessage.read(value, path: reader.path("quoted"), depth: 0)
    }
    return Reply(id: MessageID(try reader.nonEmpty("id")), quoted: quoted)
  }

  func reactions() throws(RecordError) -> [Reaction] {
    var reactions: [Reaction] = []
    for (index, value) in try optionalArray("reactions").enumerated() {
      let reader = try RecordReader(value, path: "\(path("reactions"))/\(index)")
      reactions.append(Reaction(key: try reader.string("key"), users: try reader.users("users")))
    }
    return reactions
  }
}
