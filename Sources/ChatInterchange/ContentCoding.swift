import ChatJSON
import UnifiedChat

extension MessageContent {
  /// `{"kind": …, …}`; documents of vendors and apps stand as text, because their bytes are part of their meaning.
  ///
  /// What is written can always be read again, whatever a vendor let through: a place that is none is written as
  /// unknown, a size below zero not at all.
  public func json() -> JSONValue {
    if case .location(let location) = self, !location.latitude.isFinite || !location.longitude.isFinite {
      let raw = #"{"latitude":"\#(location.latitude)","longitude":"\#(location.longitude)"}"#
      return MessageContent.unknown(kind: kindName, raw: JSONText(unchecked: raw)).json()
    }
    var object = JSONObject()
    object["kind"] = .string(kindName)
    switch self {
    case .text(let text), .markdown(let text): object["text"] = .string(text)
    case .image(let attachment), .audio(let attachment), .video(let attachment), .file(let attachment):
      object["attachment"] = attachment.json()
    case .location(let location):
      object["latitude"] = JSONValue(location.latitude)
      object["longitude"] = JSONValue(location.longitude)
      object["name"] = location.name.map { .string($0) }
    case .card(let user, let name, let avatarURL):
      object["user"] = .string(user.rawValue)
      object["name"] = name.map { .string($0) }
      object["avatarURL"] = avatarURL.map { .string($0) }
    case .sticker(let data), .custom(let data): object["data"] = .string(data.text)
    case .merged(let title, let messages):
      object["title"] = .string(title)
      object["messages"] = .array(messages.map { $0.json() })
    case .system(let notice): notice.write(to: &object)
    case .recalled(let user, let time):
      object["by"] = user.map { .string($0.rawValue) }
      object["at"] = time.map { .int($0.milliseconds) }
    case .unknown(let kind, let raw):
      object["vendorKind"] = .string(kind)
      object["raw"] = .string(raw.text)
    }
    return .object(object)
  }

  public init(json: JSONValue) throws(RecordError) { self = try MessageContent.read(json, path: "", depth: 0) }

  /// Merged messages may hold merged messages; deeper than this is no record of ours.
  private static let maximumDepth = 16

  static func read(_ json: JSONValue, path: String, depth: Int) throws(RecordError) -> MessageContent {
    guard depth < maximumDepth else { throw RecordError(path: path, reason: "merged deeper than \(maximumDepth)") }
    let reader = try RecordReader(json, path: path)
    switch try reader.string("kind") {
    case "text": return .text(try reader.string("text"))
    case "markdown": return .markdown(try reader.string("text"))
    case "image": return .image(try reader.attachment("attachment"))
    case "audio": return .audio(try reader.attachment("attachment"))
    case "video": return .video(try reader.attachment("attachment"))
    case "file": return .file(try reader.attachment("attachment"))
    case "location":
      return .location(
        Location(
          latitude: try reader.double("latitude"), longitude: try reader.double("longitude"),
          name: try reader.optionalString("name")))
    case "card":
      return .card(
        UserID(try reader.string("user")), name: try reader.optionalString("name"),
        avatarURL: try reader.optionalString("avatarURL"))
    case "sticker": return .sticker(JSONText(unchecked: try reader.string("data")))
    case "custom": return .custom(JSONText(unchecked: try reader.string("data")))
    case "merged":
      var messages: [QuotedMessage] = []
      for (index, value) in try reader.optionalArray("messages").enumerated() {
        messages.append(try QuotedMessage.read(value, path: "\(path)/messages/\(index)", depth: depth + 1))
      }
      return .merged(title: try reader.string("title"), messages: messages)
    case "system": return .system(try SystemNotice(reader))
    case "recalled":
      return .recalled(
        by: try reader.optionalString("by").map { UserID($0) }, at: try reader.optionalTime("at"))
    case "unknown":
      return .unknown(kind: try reader.string("vendorKind"), raw: JSONText(unchecked: try reader.string("raw")))
    case let other: throw RecordError(path: reader.path("kind"), reason: "no content is of kind \"\(other)\"")
    }
  }
}

extension Attachment {
  public func json() -> JSONValue {
    var object = JSONObject()
    object["url"] = url.map { .string($0) }
    object["name"] = name.map { .string($0) }
    object["size"] = size.map { .int($0) }
    object["mimeType"] = mimeType.map { .string($0) }
    object["sha256"] = sha256.map { .string($0) }
    object["width"] = Self.size(width)
    object["height"] = Self.size(height)
    object["duration"] = durationMilliseconds.map { .int($0) }
    if !thumbnails.isEmpty {
      object["thumbnails"] = .array(
        thumbnails.map { thumbnail in
          var object = JSONObject()
          object["url"] = .string(thumbnail.url)
          object["width"] = Self.size(thumbnail.width)
          object["height"] = Self.size(thumbnail.height)
          return .object(object)
        })
    }
    object["metadata"] = metadata.map { .string($0.text) }
    return .object(object)
  }

  private static func size(_ pixels: Int?) -> JSONValue? { pixels.flatMap { $0 < 0 ? nil : .int(Int64($0)) } }
}

extension RecordReader {
  func attachment(_ key: String) throws(RecordError) -> Attachment {
    guard let reader = try optionalObject(key) else {
      throw RecordError(path: path(key), reason: "missing an attachment object")
    }
    var attachment = Attachment(
      url: try reader.optionalString("url"), name: try reader.optionalString("name"),
      size: try reader.optionalInt("size"), mimeType: try reader.optionalString("mimeType"),
      sha256: try reader.optionalString("sha256"), width: try reader.optionalSize("width"),
      height: try reader.optionalSize("height"), durationMilliseconds: try reader.optionalInt("duration"),
      metadata: try reader.optionalText("metadata"))
    for (index, value) in try reader.optionalArray("thumbnails").enumerated() {
      let reader = try RecordReader(value, path: "\(reader.path("thumbnails"))/\(index)")
      attachment.thumbnails.append(
        Attachment.Thumbnail(
          url: try reader.string("url"), width: try reader.optionalSize("width"),
          height: try reader.optionalSize("height")))
    }
    return attachment
  }

  func optionalSize(_ key: String) throws(RecordError) -> Int? {
    guard let value = try optionalInt(key) else { return nil }
    guard let size = Int(exactly: value), size >= 0 else {
      throw RecordError(path: path(key), reason: "must be a size of 0 or more")
    }
    return size
  }
}

extension QuotedMessage {
  public func json() -> JSONValue {
    var object = JSONObject()
    object["id"] = id.map { .string($0.rawValue) }
    object["sender"] = sender.map { .string($0.rawValue) }
    object["senderName"] = senderName.map { .string($0) }
    object["createdAt"] = createdAt.map { .int($0.milliseconds) }
    object["content"] = content.json()
    return .object(object)
  }

  static func read(_ json: JSONValue, path: String, depth: Int) throws(RecordError) -> QuotedMessage {
    let reader = try RecordReader(json, path: path)
    guard let content = reader.object["content"] else {
      throw RecordError(path: reader.path("content"), reason: "missing a content object")
    }
    return QuotedMessage(
      id: try reader.optionalString("id").map { MessageID($0) },
      sender: try reader.optionalString("sender").map { UserID($0) },
      senderName: try reader.optionalString("senderName"), createdAt: try reader.optionalTime("createdAt"),
      content: try MessageContent.read(content, path: reader.path("content"), depth: depth))
  }
}

extension SystemNotice {
  func write(to object: inout JSONObject) {
    object["notice"] = .string(kind)
    object["actor"] = actor.map { .string($0.rawValue) }
    if !subjects.isEmpty { object["subjects"] = .array(subjects.map { .string($0.rawValue) }) }
    object["text"] = text.map { .string($0) }
    object["raw"] = raw.map { .string($0.text) }
  }

  init(_ reader: RecordReader) throws(RecordError) {
    self.init(
      kind: try reader.string("notice"), actor: try reader.optionalString("actor").map { UserID($0) },
      subjects: try reader.users("subjects"), text: try reader.optionalString("text"),
      raw: try reader.optionalText("raw"))
  }
}
