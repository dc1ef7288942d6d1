import ChatInterchange
import ChatJSON
import UnifiedChat

/// What Sendbird itself can say of a message: text, file or notice, with the app's own text beside it.
///
/// Content without such a form becomes a text that people can read, and stands exactly in the envelope of `data`.
public struct SendbirdForm: Sendable, Hashable {
  /// `MESG`, `FILE` or `ADMM`.
  public var type: String
  public var text: String
  public var file: SendbirdFile?
  public var customType: String
  /// `data` of texts and notices, `custom` (`custom_field` in migration) of files.
  public var data: String
  public var mentions: Mentions
  /// The fields that stand in the envelope because Sendbird has no place for them here.
  public var kept: Set<MessageField>
}

/// Why a form is made: what can be said differs.
public enum SendbirdPurpose: Sendable, Hashable {
  /// A client sends or edits: threads are native; reactions, times and the like are none of the draft's business.
  case live(id: String)
  /// The migration call: it has no parent, no reactions and no time of an edit.
  case migration(Origin)
}

extension SendbirdForm {
  /// Custom types with this prefix are ours: they tell other clients what kind of content a fallback text stands for.
  static let customTypePrefix = "unifiedchat."

  /// - Parameter signing: nil for a client's message, and where the form alone is asked for.
  public init(_ message: Message, purpose: SendbirdPurpose, _ signing: EnvelopeSigning? = nil) {
    let native = SendbirdContent.form(of: message)
    type = native.type
    text = native.text
    file = native.file
    mentions = message.mentions
    kept = SendbirdContent.contentIsKept(message, in: native) ? [.content] : []
    if message.replyTo != nil { kept.insert(.replyTo) }
    var origin = Origin(vendor: SendbirdErrors.vendor, id: "draft")
    switch purpose {
    case .live(let id): origin.id = id.isEmpty ? "draft" : id
    case .migration(let source):
      origin = source
      kept.formUnion([.senderName, .threadParent, .reactions, .editedAt, .mentions])
    }
    customType = message.customType ?? ""
    if customType.unicodeScalars.count > SendbirdLimits.customTypeLength || message.customType == ""
      || customType.hasPrefix(Self.customTypePrefix)
    {
      kept.insert(.customType)
      customType = ""
    }
    if message.customType == nil, kept.contains(.content), type != "FILE" {
      customType = Self.customTypePrefix + message.content.kindName
    }
    kept = kept.filter { message.value(of: $0) != nil }
    var keepsNothing = kept.isEmpty
    if case .migration = purpose { keepsNothing = false }
    if keepsNothing, message.customData?.text != "" {
      data = message.customData?.text ?? ""
    } else {
      data = Provenance(origin: origin, of: message, keeping: kept).wrap(message.customData, signing)
    }
  }
}

extension SendbirdFile {
  private static let protection = "require_auth"

  /// Whether the file is given only with a key: the vendor's flag, which an attachment bears in its metadata.
  public static func isProtected(_ attachment: Attachment) -> Bool {
    attachment.metadata.flatMap(Self.object)?.flag(protection) ?? false
  }

  /// `metadata` with the flag set or taken away; what the app keeps beside it stays.
  public static func protecting(_ metadata: JSONText?, _ isProtected: Bool) -> JSONText? {
    let known = metadata.flatMap(Self.object)
    guard isProtected || known?[protection] != nil else { return metadata }
    var json = known ?? JSONObject()
    json[protection] = isProtected ? true : nil
    return json.isEmpty ? nil : JSONText(unchecked: JSONValue.object(json).text())
  }

  private static func object(_ text: JSONText) -> JSONObject? { (try? JSONValue(parsing: text.text))?.object }
}

enum SendbirdContent {
  /// Type, text and file of `message`, without its envelope.
  static func form(of message: Message) -> (type: String, text: String, file: SendbirdFile?) {
    guard message.sender != nil else { return ("ADMM", fallback(message.content), nil) }
    if let attachment = message.content.attachment, let url = attachment.url, !url.isEmpty {
      return ("FILE", "", file(attachment, url: url))
    }
    return ("MESG", fallback(message.content), nil)
  }

  private static func file(_ attachment: Attachment, url: String) -> SendbirdFile {
    SendbirdFile(
      url: url, name: attachment.name ?? "", type: attachment.mimeType ?? "", size: max(0, attachment.size ?? 0),
      requiresAuthentication: SendbirdFile.isProtected(attachment),
      thumbnails: attachment.thumbnails.map {
        SendbirdFile.Thumbnail(url: $0.url, width: $0.width.map(Int64.init), height: $0.height.map(Int64.init))
      })
  }

  /// Whether reading the bare form back would give another content.
  static func contentIsKept(
    _ message: Message, in form: (type: String, text: String, file: SendbirdFile?)
  ) -> Bool {
    var content = message.content
    content.attachment?.source = nil
    return content != self.content(type: form.type, text: form.text, file: form.file)
  }

  /// The content that a bare form means; nil for types that are not ours to know.
  static func content(type: String, text: String, file: SendbirdFile?) -> MessageContent? {
    switch type {
    case "MESG": return .text(text)
    case "ADMM", "BRDM": return .system(SystemNotice(kind: "other", text: text))
    case "FILE":
      guard let file else { return nil }
      let attachment = Attachment(
        url: file.url, name: file.name.isEmpty ? nil : file.name, size: file.size,
        mimeType: file.type.isEmpty ? nil : file.type,
        thumbnails: file.thumbnails.map {
          Attachment.Thumbnail(
            url: $0.url, width: $0.width.flatMap { Int(exactly: $0) }, height: $0.height.flatMap { Int(exactly: $0) })
        }, metadata: SendbirdFile.protecting(nil, file.requiresAuthentication))
      switch file.type.prefix(6) {
      case "image/": return .image(attachment)
      case "audio/": return .audio(attachment)
      case "video/": return .video(attachment)
      default: return .file(attachment)
      }
    default: return nil
    }
  }

  /// Words for clients that know nothing of the envelope. Never longer than a text may be, never empty.
  static func fallback(_ content: MessageContent) -> String {
    let words: String
    switch content {
    case .text(let text), .markdown(let text): words = text
    case .image(let file), .audio(let file), .video(let file), .file(let file):
      words = "[\(content.kindName)] \(file.name ?? "")"
    case .location(let place): words = "[location] \(place.name ?? "") \(place.latitude), \(place.longitude)"
    case .card(let user, let name, _): words = "[card] \(name ?? user.rawValue)"
    case .sticker: words = "[sticker]"
    case .custom: words = "[custom]"
    case .merged(let title, let messages):
      words = ([title] + messages.map { "\($0.senderName ?? "?"): \(fallback($0.content))" }).joined(separator: "\n")
    case .system(let notice): words = notice.text ?? "[\(notice.kind)]"
    case .recalled: words = "[recalled]"
    case .unknown(let kind, _): words = "[\(kind)]"
    }
    guard words.unicodeScalars.count > SendbirdLimits.messageLength else { return words.isEmpty ? " " : words }
    return String(String.UnicodeScalarView(words.unicodeScalars.prefix(SendbirdLimits.messageLength - 1))) + "…"
  }
}
