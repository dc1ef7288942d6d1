import ChatJSON
import UnifiedChat

/// The element inside `content`, both ways (reference §4.1). Keys in the order of the vendor's client.
public enum OpenIMElements {
  /// Where a message is written to: a socket takes anything, the admin's import only some types, and those filled.
  public enum Form: Sendable, Hashable { case socket, `import` }

  public struct Encoded: Sendable, Hashable {
    public var type: Int64
    public var content: JSONValue
    /// Repeated in the message's own list, which the server reads.
    public var mentioned: [String]
    /// Set for content that must leave byte for byte.
    public var raw: [UInt8]?

    init(_ type: Int64, _ content: JSONObject, mentioned: [String] = [], raw: [UInt8]? = nil) {
      self.type = type
      self.content = .object(content)
      self.mentioned = mentioned
      self.raw = raw
    }

    public var bytes: [UInt8] { raw ?? content.bytes() }
  }

  /// The id that mentions everybody.
  public static let everyone = "AtAllTag"

  public static func encode(
    _ content: MessageContent, mentions: Mentions = Mentions(), replyTo: Reply? = nil, form: Form = .socket
  ) -> Encoded {
    let encoded = native(content, mentions: mentions, replyTo: replyTo, form: form)
    if form == .import, !OpenIMContentType.importable.contains(encoded.type) { return fallback(content) }
    return encoded
  }

  private static func native(
    _ content: MessageContent, mentions: Mentions, replyTo: Reply?, form: Form
  ) -> Encoded {
    switch content {
    // The import refuses an empty text; the true one stands in `ex` then.
    case .text(let text): return textual(form == .import && text.isEmpty ? " " : text, mentions, replyTo)
    case .markdown(let text):
      return Encoded(
        OpenIMContentType.markdown, ["content": .string(form == .import && text.isEmpty ? " " : text)])
    case .image(let attachment): return picture(attachment, form)
    case .audio(let attachment): return voice(attachment, form)
    case .video(let attachment): return video(attachment, form)
    case .file(let attachment): return file(attachment, form)
    case .location(let place):
      return Encoded(
        OpenIMContentType.location,
        [
          "description": .string(place.name ?? ""), "longitude": JSONValue(place.longitude),
          "latitude": JSONValue(place.latitude),
        ])
    case .card(let user, let name, let avatar):
      return Encoded(
        OpenIMContentType.card,
        [
          "userID": .string(user.rawValue), "nickname": .string(name ?? ""), "faceURL": .string(avatar ?? ""),
          "ex": "",
        ])
    case .sticker(let data):
      if let object = (try? JSONValue(parsing: data.text))?.object, object["index"] != nil, object["data"] != nil {
        return Encoded(OpenIMContentType.face, object)
      }
      return Encoded(OpenIMContentType.face, ["index": 0, "data": .string(data.text)])
    case .custom(let data): return custom(data)
    case .merged(let title, let messages):
      return Encoded(
        OpenIMContentType.merger,
        [
          "title": .string(title), "abstractList": .array(messages.map { .string(abstract(of: $0)) }),
          "multiMessage": .array(messages.map { OpenIMQuoted.json($0) }),
        ])
    case .unknown(let kind, let raw):
      if let type = Int64(kind) {
        return Encoded(type, (try? JSONValue(parsing: raw.text))?.object ?? [:], raw: Array(raw.text.utf8))
      }
      return fallback(content)
    case .system, .recalled: return fallback(content)
    }
  }

  private static func textual(_ text: String, _ mentions: Mentions, _ replyTo: Reply?) -> Encoded {
    if !mentions.isEmpty {
      let users = (mentions.everyone ? [everyone] : []) + mentions.users.map(\.rawValue)
      var content: JSONObject = [
        "text": .string(text), "atUserList": .array(users.map { .string($0) }),
        "atUsersInfo": .array(users.map { ["atUserID": .string($0), "groupNickname": ""] }),
      ]
      content["quoteMessage"] = replyTo.map { OpenIMQuoted.json($0) }
      content["isAtSelf"] = false
      return Encoded(OpenIMContentType.atText, content, mentioned: users)
    }
    if let replyTo {
      return Encoded(
        OpenIMContentType.quote, ["text": .string(text), "quoteMessage": OpenIMQuoted.json(replyTo)])
    }
    return Encoded(OpenIMContentType.text, ["content": .string(text)])
  }

  private static func custom(_ data: JSONText) -> Encoded {
    if let object = (try? JSONValue(parsing: data.text))?.object, isWholeCustom(object) {
      return Encoded(OpenIMContentType.custom, object)
    }
    return Encoded(
      OpenIMContentType.custom, ["data": .string(data.text), "description": "", "extension": ""])
  }

  /// The vendor's three strings, as an app of theirs may have filled them.
  private static func isWholeCustom(_ object: JSONObject) -> Bool {
    object.count == 3 && ["data", "description", "extension"].allSatisfy { object[$0]?.string != nil }
  }

  /// Readable where the vendor has no form: the exact content stands in `ex`.
  private static func fallback(_ content: MessageContent) -> Encoded {
    Encoded(
      OpenIMContentType.custom,
      [
        "data": .string(JSONValue.object(["kind": .string(content.kindName)]).text()),
        "description": .string(readable(content)), "extension": "",
      ])
  }

  private static func readable(_ content: MessageContent) -> String {
    switch content {
    case .location(let place): "[location] \(place.name ?? "") \(place.latitude),\(place.longitude)"
    case .card(let user, let name, _): "[card] \(name ?? user.rawValue)"
    case .merged(let title, let messages): ([title] + messages.map(abstract(of:))).joined(separator: "\n")
    case .system(let notice): notice.text ?? "[\(notice.kind)]"
    case .recalled: "[recalled]"
    default: "[\(content.kindName)]"
    }
  }

  private static func abstract(of quoted: QuotedMessage) -> String {
    let name = quoted.senderName ?? quoted.sender?.rawValue ?? ""
    return "\(name): \(quoted.content.searchableText ?? "[\(quoted.content.kindName)]")"
  }

  // MARK: Attachments

  /// The import refuses zeros and empty texts; the true ones stand in `ex` then.
  private static func number(_ value: Int64?, _ form: Form) -> JSONValue {
    .int(form == .import ? max(1, value ?? 0) : value ?? 0)
  }

  private static func text(_ value: String?, _ form: Form, else placeholder: String) -> JSONValue {
    let value = value ?? ""
    return .string(form == .import && value.isEmpty ? placeholder : value)
  }

  private static func seconds(_ attachment: Attachment) -> Int64? {
    // Rounded up, so that a short sound is not one of no length.
    attachment.durationMilliseconds.map { $0 > 0 ? ($0 - 1) / 1000 + 1 : 0 }
  }

  private static func picture(_ attachment: Attachment, _ form: Form) -> Encoded {
    func picture(_ url: String?, _ width: Int?, _ height: Int?, size: Int64?) -> JSONValue {
      [
        "uuid": .string(attachment.sha256 ?? ""), "type": text(attachment.mimeType, form, else: "image"),
        "size": .int(size ?? 0), "width": number(width.map(Int64.init), form),
        "height": number(height.map(Int64.init), form), "url": text(url, form, else: "about:blank"),
      ]
    }
    let source = picture(attachment.url, attachment.width, attachment.height, size: attachment.size)
    let snapshot = attachment.thumbnails.first.map { picture($0.url, $0.width, $0.height, size: nil) }
    return Encoded(
      OpenIMContentType.picture,
      [
        "sourcePath": "", "sourcePicture": source, "bigPicture": source, "snapshotPicture": snapshot ?? source,
      ])
  }

  private static func voice(_ attachment: Attachment, _ form: Form) -> Encoded {
    Encoded(
      OpenIMContentType.voice,
      [
        "uuid": .string(attachment.sha256 ?? ""), "soundPath": "",
        "sourceUrl": text(attachment.url, form, else: "about:blank"), "dataSize": .int(attachment.size ?? 0),
        "duration": number(seconds(attachment), form), "soundType": .string(attachment.mimeType ?? ""),
      ])
  }

  private static func video(_ attachment: Attachment, _ form: Form) -> Encoded {
    let snapshot = attachment.thumbnails.first
    return Encoded(
      OpenIMContentType.video,
      [
        "videoPath": "", "videoUUID": .string(attachment.sha256 ?? ""),
        "videoUrl": text(attachment.url, form, else: "about:blank"),
        "videoType": text(attachment.mimeType, form, else: "video"), "videoSize": number(attachment.size, form),
        "duration": number(seconds(attachment), form), "snapshotPath": "", "snapshotUUID": "", "snapshotSize": 0,
        "snapshotUrl": text(snapshot?.url, form, else: "about:blank"),
        "snapshotWidth": number(snapshot?.width.map(Int64.init), form),
        "snapshotHeight": number(snapshot?.height.map(Int64.init), form), "snapshotType": "",
      ])
  }

  private static func file(_ attachment: Attachment, _ form: Form) -> Encoded {
    Encoded(
      OpenIMContentType.file,
      [
        "filePath": "", "uuid": .string(attachment.sha256 ?? ""),
        "sourceUrl": text(attachment.url, form, else: "about:blank"),
        "fileName": text(attachment.name, form, else: "file"), "fileSize": number(attachment.size, form),
        "fileType": .string(attachment.mimeType ?? ""),
      ])
  }
}
