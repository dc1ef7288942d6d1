import ChatInterchange
import ChatJSON
import UnifiedChat

/// What is compared of a record, as JSON whose paths are the names that a `Loss` may use.
///
/// Documents of apps are compared by value, not by white space. Sets (mentions, reactions) have an order of their own.
enum CarriedForm {
  /// What no verification compares, and why: shown in every report.
  static let notCompared: [(field: String, reason: String)] = [
    ("message.id", "the destination gives its own; the original one pairs the messages"),
    ("message.clientMessageID", "of the sending device; means nothing after the move"),
    ("message.position", "the destination's own; the order of messages is compared instead"),
    ("message.senderName", "a copy of the sender's profile, which is compared itself"),
    ("message.replyTo.quoted", "a copy of another message, which is compared itself"),
    ("message.content.attachment.url", "an address, which changes; the bytes are compared by SHA-256"),
    ("message.content.attachment.thumbnails", "made anew by the destination"),
    ("channel.memberCount", "a number that follows from the members, who are compared"),
    ("member.deliveredPosition", "of a moment; the read position is compared, by the last message that it covers"),
    ("user.presence", "of the moment"),
  ]

  static func message(_ message: Message) -> JSONObject {
    var object = JSONObject()
    for field in MessageField.allCases {
      switch field {
      case .senderName: break
      case .content: object["content"] = content(message.content)
      case .mentions: object["mentions"] = message.mentions.isEmpty ? JSONValue?.none : sorted(message.mentions).json()
      case .replyTo: object["replyTo"] = message.replyTo.map { .string($0.id.rawValue) }
      case .customData: object["customData"] = message.customData.map(document)
      case .reactions: object["reactions"] = reactions(message.reactions)
      default: object[field.rawValue] = message.value(of: field)
      }
    }
    return object
  }

  static func user(_ user: User) -> JSONObject {
    var object = JSONObject()
    object["name"] = user.name.map { .string($0) }
    object["avatarURL"] = user.avatarURL.map { .string($0) }
    object["customData"] = user.customData.map(document)
    return object
  }

  static func channel(_ channel: Channel) -> JSONObject {
    var object = Record.channel(ChannelRecord(channel: channel)).json().object ?? JSONObject()
    for key in ["type", "id"] { object[key] = nil }
    object["customData"] = channel.customData.map(document)
    return object
  }

  static func member(_ record: MemberRecord) -> JSONObject {
    var object = Record.member(record).json().object ?? JSONObject()
    for key in ["type", "channel", "user", "readPosition", "deliveredPosition", "raw"] { object[key] = nil }
    // What is at its default is left out of the record, and is a value all the same.
    object["role"] = .string(record.member.role.recordName)
    object["state"] = .string(record.member.state.rawValue)
    return object
  }

  private static func content(_ content: MessageContent) -> JSONValue {
    let bare = content.mappingAttachments { attachment in
      var attachment = attachment
      attachment.url = nil
      attachment.thumbnails = []
      return attachment
    }
    var json = bare.json().object ?? JSONObject()
    if let data = json["data"]?.string { json["data"] = document(JSONText(unchecked: data)) }
    if var attachment = json["attachment"]?.object, let metadata = attachment["metadata"]?.string {
      attachment["metadata"] = document(JSONText(unchecked: metadata))
      json["attachment"] = .object(attachment)
    }
    return .object(json)
  }

  private static func document(_ text: JSONText) -> JSONValue {
    (try? JSONValue(parsing: text.text)) ?? .string(text.text)
  }

  private static func sorted(_ mentions: Mentions) -> Mentions {
    Mentions(users: Set(mentions.users).sorted(), everyone: mentions.everyone)
  }

  private static func reactions(_ reactions: [Reaction]) -> JSONValue? {
    guard !reactions.isEmpty else { return nil }
    let sorted = reactions.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    return .array(sorted.map { Reaction(key: $0.key, users: $0.users.sorted()).json() })
  }
}

extension MessageField {
  /// Whether verification compares it.
  var isCompared: Bool { self != .senderName }
}

/// What is the same on both sides, and what is not.
struct Comparison {
  /// A difference that no loss explains.
  var unexplained: [FieldDifference] = []
  /// Paths of differences that losses explain, with the loss.
  var explained: [(path: String, loss: Loss)] = []
  /// What goes into the digests: without what losses explain.
  var expectedLine: [UInt8]
  var actualLine: [UInt8]

  /// - Parameter losses: asked for only if something differs.
  init(_ root: String, expected: JSONObject, actual: JSONObject, losses: () -> [Loss]) {
    expectedLine = JSONValue.object(expected).canonicalBytes()
    actualLine = JSONValue.object(actual).canonicalBytes()
    guard expectedLine != actualLine else { return }
    var paths: [FieldDifference] = []
    FieldDifference.find(root, .object(expected), .object(actual), into: &paths)
    let accepted = losses().filter { $0.treatment != .keptElsewhere }
    for difference in paths {
      if let loss = accepted.first(where: { difference.path.isPath(within: $0.field) }) {
        explained.append((difference.path, loss))
      } else {
        unexplained.append(difference)
      }
    }
    guard !explained.isEmpty else { return }
    let hidden = explained.map(\.path)
    expectedLine = JSONValue.object(expected.hiding(hidden, root)).canonicalBytes()
    actualLine = JSONValue.object(actual.hiding(hidden, root)).canonicalBytes()
  }
}

/// One place where both sides differ. Holds no content: reports may be passed on.
struct FieldDifference: Sendable, Hashable {
  enum Kind: String, Sendable, Hashable { case missing, added, changed }

  var path: String
  var kind: Kind

  static func find(_ path: String, _ expected: JSONValue?, _ actual: JSONValue?, into found: inout [FieldDifference]) {
    switch (expected, actual) {
    case (.object(let one)?, .object(let two)?):
      for key in one.keys { find("\(path).\(key)", one[key], two[key], into: &found) }
      for key in two.keys where one[key] == nil { find("\(path).\(key)", nil, two[key], into: &found) }
    case (let one?, let two?): if one != two { found.append(FieldDifference(path: path, kind: .changed)) }
    case (nil, _?): found.append(FieldDifference(path: path, kind: .added))
    case (_?, nil): found.append(FieldDifference(path: path, kind: .missing))
    case (nil, nil): break
    }
  }
}

extension String {
  /// Whether this path is `field` or lies within it.
  func isPath(within field: String) -> Bool { self == field || hasPrefix(field + ".") }
}

extension JSONObject {
  /// Without the members at `paths`, which begin with `root`.
  fileprivate func hiding(_ paths: [String], _ root: String) -> JSONObject {
    var copy = JSONObject()
    for (key, value) in self {
      let path = "\(root).\(key)"
      guard !paths.contains(path) else { continue }
      if case .object(let inner) = value, paths.contains(where: { $0.isPath(within: path) }) {
        copy[key] = .object(inner.hiding(paths, path))
      } else {
        copy[key] = value
      }
    }
    return copy
  }
}
