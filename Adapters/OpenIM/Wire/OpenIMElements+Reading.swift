import ChatJSON
import ChatCrypto
import UnifiedChat

extension OpenIMElements {
  public struct Decoded: Sendable, Hashable {
    public var content: MessageContent
    public var mentions = Mentions()
    public var replyTo: Reply?

    init(_ content: MessageContent, mentions: Mentions = Mentions(), replyTo: Reply? = nil) {
      self.content = content
      self.mentions = mentions
      self.replyTo = replyTo
    }
  }

  /// Merged messages may hold merged messages; what lies deeper than this is kept unread.
  static let maximumDepth = 8

  /// What `content` says. What is not understood comes as `.unknown` with the type's number and the bytes as they are.
  public static func decode(type: Int64, content: [UInt8]) -> Decoded {
    guard let object = (try? JSONValue(parsing: content))?.object, let decoded = decode(type, object, depth: 0) else {
      return Decoded(unknown(type, content))
    }
    return decoded
  }

  static func unknown(_ type: Int64, _ content: [UInt8]) -> MessageContent {
    let text = String(validating: content, as: UTF8.self)
    let raw = text ?? JSONValue.object(["@base64": .string(Base64.encode(content))]).text()
    return .unknown(kind: String(type), raw: JSONText(unchecked: raw))
  }

  static func decode(_ type: Int64, _ object: JSONObject, depth: Int) -> Decoded? {
    guard depth < maximumDepth else { return nil }
    switch type {
    case OpenIMContentType.text: return object["content"]?.string.map { Decoded(.text($0)) }
    case OpenIMContentType.markdown: return object["content"]?.string.map { Decoded(.markdown($0)) }
    case OpenIMContentType.advancedText: return object["text"]?.string.map { Decoded(.text($0)) }
    case OpenIMContentType.picture: return picture(object).map { Decoded(.image($0)) }
    case OpenIMContentType.voice: return voice(object).map { Decoded(.audio($0)) }
    case OpenIMContentType.video: return video(object).map { Decoded(.video($0)) }
    case OpenIMContentType.file: return file(object).map { Decoded(.file($0)) }
    case OpenIMContentType.atText: return atText(object, depth)
    case OpenIMContentType.quote: return quote(object, depth)
    case OpenIMContentType.merger: return merger(object, depth)
    case OpenIMContentType.card:
      guard let user = object["userID"]?.string else { return nil }
      return Decoded(
        .card(UserID(user), name: nonEmpty(object["nickname"]), avatarURL: nonEmpty(object["faceURL"])))
    case OpenIMContentType.location:
      guard let latitude = object["latitude"]?.double, let longitude = object["longitude"]?.double else { return nil }
      return Decoded(
        .location(Location(latitude: latitude, longitude: longitude, name: nonEmpty(object["description"]))))
    case OpenIMContentType.face: return face(object)
    case OpenIMContentType.custom, OpenIMContentType.customNotTriggering, OpenIMContentType.customOnlineOnly:
      return custom(object)
    default: return nil
    }
  }

  static func nonEmpty(_ value: JSONValue?) -> String? {
    guard let text = value?.string, !text.isEmpty else { return nil }
    return text
  }

  private static func positive(_ value: JSONValue?) -> Int64? {
    guard let number = value?.int, number > 0 else { return nil }
    return number
  }

  private static func size(_ value: JSONValue?) -> Int? { positive(value).flatMap { Int(exactly: $0) } }

  private static func milliseconds(_ value: JSONValue?) -> Int64? {
    guard let seconds = positive(value) else { return nil }
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    return overflow ? nil : product
  }

  // MARK: Text

  private static func atText(_ object: JSONObject, _ depth: Int) -> Decoded? {
    guard let text = object["text"]?.string else { return nil }
    let users = (object["atUserList"]?.array ?? []).compactMap(\.string)
    let mentions = Mentions(
      users: users.filter { $0 != everyone }.map { UserID($0) }, everyone: users.contains(everyone))
    return Decoded(.text(text), mentions: mentions, replyTo: OpenIMQuoted.reply(object["quoteMessage"], depth + 1))
  }

  private static func quote(_ object: JSONObject, _ depth: Int) -> Decoded? {
    guard let text = object["text"]?.string else { return nil }
    return Decoded(.text(text), replyTo: OpenIMQuoted.reply(object["quoteMessage"], depth + 1))
  }

  private static func merger(_ object: JSONObject, _ depth: Int) -> Decoded? {
    guard let messages = object["multiMessage"]?.array else { return nil }
    return Decoded(
      .merged(
        title: object["title"]?.string ?? "", messages: messages.map { OpenIMQuoted.message($0, depth + 1) }))
  }

  private static func face(_ object: JSONObject) -> Decoded? {
    if object["index"]?.int == 0, object.count == 2, let data = object["data"]?.string,
      (try? JSONValue(parsing: data)) != nil
    {
      return Decoded(.sticker(JSONText(unchecked: data)))
    }
    return Decoded(.sticker(JSONText(unchecked: JSONValue.object(object).text())))
  }

  private static func custom(_ object: JSONObject) -> Decoded? {
    guard let data = object["data"]?.string else { return nil }
    let isPlain = nonEmpty(object["description"]) == nil && nonEmpty(object["extension"]) == nil
    if isPlain, (try? JSONValue(parsing: data)) != nil { return Decoded(.custom(JSONText(unchecked: data))) }
    return Decoded(.custom(JSONText(unchecked: JSONValue.object(object).text())))
  }

  // MARK: Attachments

  private static func picture(_ object: JSONObject) -> Attachment? {
    guard let source = object["sourcePicture"]?.object ?? object["bigPicture"]?.object else { return nil }
    var attachment = Attachment(
      url: nonEmpty(source["url"]), size: positive(source["size"]), mimeType: nonEmpty(source["type"]),
      sha256: digest(source["uuid"]), width: size(source["width"]), height: size(source["height"]))
    if let snapshot = object["snapshotPicture"]?.object, let url = nonEmpty(snapshot["url"]), url != attachment.url {
      attachment.thumbnails = [
        Attachment.Thumbnail(url: url, width: size(snapshot["width"]), height: size(snapshot["height"]))
      ]
    }
    return attachment
  }

  /// Our own uploads put the SHA-256 where the vendor has a random id.
  private static func digest(_ value: JSONValue?) -> String? {
    guard let text = value?.string, text.utf8.count == 64, Hex.decode(text) != nil else { return nil }
    return text
  }

  private static func voice(_ object: JSONObject) -> Attachment? {
    guard let url = object["sourceUrl"]?.string else { return nil }
    return Attachment(
      url: url.isEmpty ? nil : url, size: positive(object["dataSize"]), mimeType: nonEmpty(object["soundType"]),
      sha256: digest(object["uuid"]), durationMilliseconds: milliseconds(object["duration"]))
  }

  private static func video(_ object: JSONObject) -> Attachment? {
    guard let url = object["videoUrl"]?.string else { return nil }
    var attachment = Attachment(
      url: url.isEmpty ? nil : url, size: positive(object["videoSize"]), mimeType: nonEmpty(object["videoType"]),
      sha256: digest(object["videoUUID"]), durationMilliseconds: milliseconds(object["duration"]))
    if let snapshot = nonEmpty(object["snapshotUrl"]) {
      attachment.thumbnails = [
        Attachment.Thumbnail(
          url: snapshot, width: size(object["snapshotWidth"]), height: size(object["snapshotHeight"]))
      ]
    }
    return attachment
  }

  private static func file(_ object: JSONObject) -> Attachment? {
    guard let url = object["sourceUrl"]?.string else { return nil }
    return Attachment(
      url: url.isEmpty ? nil : url, name: nonEmpty(object["fileName"]), size: positive(object["fileSize"]),
      mimeType: nonEmpty(object["fileType"]), sha256: digest(object["uuid"]))
  }
}
