import ChatCrypto
import ChatInterchange
import ChatJSON
import UnifiedChat

/// The body of a message: the string that travels as `msg` or `data`, a typed message of the vendor where there is one.
///
/// What the vendor has no place for goes into `_lcattrs` beside the app's own attributes, as one member:
/// `"unifiedchat": {"v": 1, "kept": {…}}`, with `vendor`, `id`, `channel` and a signature too where the message was
/// imported. The service sets the time itself, so it is signed with the whole body: who copies it can only repeat an own
/// message.
///
/// - Source: wire reference §6.
public enum LeanCloudBody {
  /// The types of `_lctype`.
  public enum Kind {
    public static let text: Int64 = -1
    public static let image: Int64 = -2
    public static let audio: Int64 = -3
    public static let video: Int64 = -4
    public static let location: Int64 = -5
    public static let file: Int64 = -6
    public static let recalled: Int64 = -127
  }

  /// The member of `_lcattrs` (and of a channel's `attr`) that is ours.
  public static let marker = "unifiedchat"
  /// The member of the unified custom data that holds what stood beside the known members of a typed message.
  public static let extraMembers = "_lcmembers"

  /// A body as it travels. `bytes` is set for binary messages, whose `text` is then the base64 of them.
  public struct Encoded: Sendable, Hashable {
    public var text: String
    public var isBinary: Bool
    public var mentions: [String]
    public var mentionsAll: Bool
  }

  public static let recalledText = #"{"_lctype":-127}"#
}

// MARK: Writing

extension LeanCloudBody {
  /// The body of `message`. `keeping` names fields that the receiving place cannot carry natively beside the ones that
  /// never can; `origin` is written into the envelope, which is signed by the writer of an import.
  public static func encode(
    _ message: Message, origin: Origin? = nil, keeping: Set<MessageField> = [], maximumMentions: Int = .max,
    signedBy signer: LeanCloudSigner? = nil
  ) -> Encoded {
    var kept = keptFields(of: message, keeping: keeping)
    let native = nativeMentions(of: message, maximum: maximumMentions, kept: &kept)
    let whole = kept.isEmpty && origin == nil ? wholeBody(of: message) : nil
    if let whole {
      return Encoded(
        text: whole.text, isBinary: whole.isBinary, mentions: native, mentionsAll: message.mentions.everyone)
    }
    // The number of an own type is in its body, which is not the body any more.
    kept["customType"] = message.value(of: .customType)
    var object = JSONObject()
    if !writeContent(message.content, to: &object) {
      if message.isRecalled {
        object["_lctype"] = .int(Kind.recalled)
      } else {
        object["_lctype"] = .int(Kind.text)
        object["_lctext"] = .string(fallbackText(of: message.content))
      }
      kept["content"] = message.content.json()
    }
    writeAttributes(of: message, kept: kept, origin: origin, signer, to: &object)
    return Encoded(
      text: JSONValue.object(object).text(), isBinary: false, mentions: native,
      mentionsAll: message.mentions.everyone)
  }

  private static func nativeMentions(of message: Message, maximum: Int, kept: inout JSONObject) -> [String] {
    let users = message.mentions.users.map(\.rawValue)
    guard users.count > maximum else { return users }
    kept["mentions"] = message.mentions.json()
    return Array(users.prefix(maximum))
  }

  /// Fields without a place of their own in this vendor.
  private static func keptFields(of message: Message, keeping: Set<MessageField>) -> JSONObject {
    let homeless: Set<MessageField> = [.senderName, .replyTo, .threadParent, .reactions]
    var kept = JSONObject()
    for field in MessageField.allCases where homeless.contains(field) || keeping.contains(field) {
      kept[field.rawValue] = message.value(of: field)
    }
    if keeping.contains(.sender), message.sender == nil { kept["sender"] = .null }
    if !typeIsNative(message) { kept["customType"] = message.value(of: .customType) }
    if let data = message.customData, spreadable(data) == nil { kept["customData"] = .string(data.text) }
    return kept
  }

  /// The custom type is the number of an app's own typed message.
  private static func typeIsNative(_ message: Message) -> Bool {
    guard case .custom(let data) = message.content, let json = try? JSONValue(parsing: data.text) else { return false }
    return isOwnType(json, of: message)
  }

  private static func isOwnType(_ json: JSONValue, of message: Message) -> Bool {
    guard let type = json["_lctype"]?.int, type > 0 else { return false }
    return message.customType == String(type) && message.customData?.text == json["_lcattrs"]?.text()
  }

  /// Bodies that are sent as they are, byte for byte: an app's own typed message, a plain JSON document, and what was
  /// not understood when it was read.
  private static func wholeBody(of message: Message) -> (text: String, isBinary: Bool)? {
    switch message.content {
    case .custom(let data):
      guard let json = try? JSONValue(parsing: data.text) else { return nil }
      if isOwnType(json, of: message) { return (data.text, false) }
      let isPlain = json["_lctype"] == nil && (json.object != nil || json.array != nil)
      return isPlain && message.customData == nil && message.customType == nil ? (data.text, false) : nil
    case .unknown("binary", let raw):
      guard let base64 = (try? JSONValue(parsing: raw.text))?.string, message.customData == nil else { return nil }
      return (base64, true)
    case .unknown(let kind, let raw):
      guard let type = (try? JSONValue(parsing: raw.text))?["_lctype"]?.int, String(type) == kind, !isKnown(type)
      else { return nil }
      return message.customData == nil ? (raw.text, false) : nil
    case .recalled: return message.customData == nil ? (recalledText, false) : nil
    default: return nil
    }
  }

  private static func isKnown(_ type: Int64) -> Bool {
    type > 0 || (Kind.file...Kind.text).contains(type) || type == Kind.recalled
  }

  /// Writes `_lctype` and its members; false where the vendor has no such kind.
  private static func writeContent(_ content: MessageContent, to object: inout JSONObject) -> Bool {
    switch content {
    case .text(let text):
      object["_lctype"] = .int(Kind.text)
      object["_lctext"] = .string(text)
    case .image(let attachment): write(attachment, as: Kind.image, to: &object)
    case .audio(let attachment): write(attachment, as: Kind.audio, to: &object)
    case .video(let attachment): write(attachment, as: Kind.video, to: &object)
    case .file(let attachment): write(attachment, as: Kind.file, to: &object)
    case .location(let location):
      object["_lctype"] = .int(Kind.location)
      object["_lctext"] = location.name.map { .string($0) }
      object["_lcloc"] = ["longitude": JSONValue(location.longitude), "latitude": JSONValue(location.latitude)]
    case .recalled(nil, nil): object["_lctype"] = .int(Kind.recalled)
    default: return false
    }
    return true
  }

  private static func write(_ attachment: Attachment, as type: Int64, to object: inout JSONObject) {
    object["_lctype"] = .int(type)
    object["_lctext"] = attachment.leanCloudCaption.map { .string($0) }
    object["_lcfile"] = .object(attachment.leanCloudFile())
  }

  /// What a reader with another client sees in place of content that the vendor has no kind for.
  private static func fallbackText(of content: MessageContent) -> String {
    switch content {
    case .markdown(let text): text
    case .card(let user, let name, _): "[card] \(name ?? user.rawValue)"
    case .merged(let title, let messages): "[\(messages.count)] \(title)"
    case .system(let notice): notice.text ?? "[\(notice.kind)]"
    default: "[\(content.kindName)]"
    }
  }

  private static func writeAttributes(
    of message: Message, kept: JSONObject, origin: Origin?, _ signer: LeanCloudSigner?, to object: inout JSONObject
  ) {
    var attributes = message.customData.flatMap { spreadable($0) }
    if let extra = attributes?[extraMembers]?.object {
      attributes?[extraMembers] = nil
      for member in extra where object[member.key] == nil { object[member.key] = member.value }
      if attributes?.isEmpty == true { attributes = nil }
    }
    if !kept.isEmpty || origin != nil {
      attributes = attributes ?? JSONObject()
      attributes?[marker] = Provenance.json(origin: origin, kept: kept)
    }
    object["_lcattrs"] = attributes.map { .object($0) }
    guard !kept.isEmpty || origin != nil, let signer else { return }
    let place = place(of: object, channel: signer.channel, from: signer.from)
    attributes?[marker] = Provenance.json(origin: origin, kept: kept, EnvelopeSigning(signer.key, place))
    object["_lcattrs"] = attributes.map { .object($0) }
  }

  /// What an envelope in `body` is signed for.
  private static func place(of body: JSONObject, channel: String, from: String) -> EnvelopePlace {
    var bare = body
    if var attributes = body["_lcattrs"]?.object, var envelope = attributes[marker]?.object {
      envelope[Provenance.signatureMember] = nil
      attributes[marker] = .object(envelope)
      bare["_lcattrs"] = .object(attributes)
    }
    let digest = Hex.encode(Digest.sha256(JSONValue.object(bare).canonicalBytes()))
    return .message(channel: channel, sender: from, body: digest)
  }

  /// The members of custom data that an object of the vendor can hold without losing a byte when it is written again.
  public static func spreadable(_ data: JSONText) -> JSONObject? {
    guard let json = try? JSONValue(parsing: data.text), let object = json.object, object[marker] == nil,
      json.text().utf8.elementsEqual(data.text.utf8)
    else { return nil }
    return object
  }
}

// MARK: Reading

/// One stored or pushed message, whatever the names of its members where it came from.
public struct LeanCloudStoredMessage: Sendable, Hashable {
  public var channel: String
  public var id: String
  public var from: String
  public var timestamp: Int64
  public var data: String
  public var isBinary: Bool
  public var patchTimestamp: Int64?
  public var mentions: [String]
  public var mentionsAll: Bool

  public init(
    channel: String, id: String, from: String, timestamp: Int64, data: String, isBinary: Bool = false,
    patchTimestamp: Int64? = nil, mentions: [String] = [], mentionsAll: Bool = false
  ) {
    self.channel = channel
    self.id = id
    self.from = from
    self.timestamp = timestamp
    self.data = data
    self.isBinary = isBinary
    self.patchTimestamp = patchTimestamp
    self.mentions = mentions
    self.mentionsAll = mentionsAll
  }
}

extension LeanCloudBody {
  /// A message as it was read.
  public struct Decoded: Sendable, Hashable {
    public var message: Message
    /// Where it came from if it was imported by us.
    public var origin: Origin?
    /// Why an envelope in it is not believed.
    public var finding: EnvelopeFinding?
  }

  /// The unified message. What an envelope in it keeps is put back, as far as `view` believes it.
  ///
  /// - Throws: when that envelope is damaged.
  public static func decode(
    _ stored: LeanCloudStoredMessage, _ view: EnvelopeView = .client
  ) throws(RecordError) -> Decoded {
    let id = MessageID(stored.id)
    let time = Timestamp(milliseconds: stored.timestamp)
    var message = Message(
      channel: ChannelID(stored.channel), id: id, sender: stored.from.isEmpty ? nil : UserID(stored.from),
      position: MessagePosition(time: time, id: id), createdAt: time, content: .text(stored.data),
      mentions: Mentions(users: stored.mentions.map { UserID($0) }, everyone: stored.mentionsAll))
    if stored.isBinary {
      message.content = .unknown(
        kind: "binary", raw: JSONText(unchecked: JSONValue.string(stored.data).text()))
    } else if let object = (try? JSONValue(parsing: stored.data))?.object {
      let read = try read(object, of: stored, view, into: &message)
      return Decoded(message: message, origin: read.origin, finding: read.finding)
    } else if (try? JSONValue(parsing: stored.data))?.array != nil {
      message.content = .custom(JSONText(unchecked: stored.data))
    }
    if let time = stored.patchTimestamp { message.editedAt = Timestamp(milliseconds: time) }
    return Decoded(message: message)
  }

  private static func read(
    _ object: JSONObject, of stored: LeanCloudStoredMessage, _ view: EnvelopeView, into message: inout Message
  ) throws(RecordError) -> (origin: Origin?, finding: EnvelopeFinding?) {
    let patched = stored.patchTimestamp.map { Timestamp(milliseconds: $0) }
    guard let type = object["_lctype"]?.int else {
      message.content = .custom(JSONText(unchecked: stored.data))
      message.editedAt = patched
      return (nil, nil)
    }
    message.content = content(of: type, object, text: stored.data, patched: patched)
    if type > 0 { message.customType = String(type) }
    if type != Kind.recalled { message.editedAt = patched }
    guard let envelope = envelope(in: object) else {
      readAttributes(of: type, object, object["_lcattrs"], into: &message)
      return (nil, nil)
    }
    let provenance = Provenance(.object(envelope))
    let (trust, finding) = view.trust(
      envelope, at: place(of: object, channel: stored.channel, from: stored.from), isDraft: provenance == nil)
    var attributes = object["_lcattrs"]?.object
    if trust != nil { attributes?[marker] = nil }
    readAttributes(of: type, object, attributes.flatMap { $0.isEmpty ? nil : .object($0) }, into: &message)
    guard let trust else { return (nil, finding) }
    try Provenance(
      origin: provenance?.origin ?? Origin(vendor: LeanCloudErrors.vendor, id: stored.id),
      kept: envelope["kept"]?.object ?? JSONObject()
    ).apply(to: &message, trust)
    return (provenance?.origin, finding)
  }

  private static func envelope(in object: JSONObject) -> JSONObject? {
    guard let envelope = object["_lcattrs"]?[marker]?.object, envelope["v"]?.int == 1 else { return nil }
    return envelope
  }

  private static func content(
    of type: Int64, _ object: JSONObject, text: String, patched: Timestamp?
  ) -> MessageContent {
    switch type {
    case Kind.text: return .text(object["_lctext"]?.string ?? "")
    case Kind.image: if let file = attachment(object) { return .image(file) }
    case Kind.audio: if let file = attachment(object) { return .audio(file) }
    case Kind.video: if let file = attachment(object) { return .video(file) }
    case Kind.file: if let file = attachment(object) { return .file(file) }
    case Kind.location:
      if let place = object["_lcloc"], let latitude = place["latitude"]?.double,
        let longitude = place["longitude"]?.double
      {
        return .location(Location(latitude: latitude, longitude: longitude, name: object["_lctext"]?.string))
      }
    case Kind.recalled: return .recalled(by: nil, at: patched)
    case 1...: return .custom(JSONText(unchecked: text))
    default: break
    }
    return .unknown(kind: String(type), raw: JSONText(unchecked: text))
  }

  private static func attachment(_ object: JSONObject) -> Attachment? {
    guard let file = object["_lcfile"]?.object, file["url"]?.string != nil else { return nil }
    return Attachment(leanCloudFile: file, caption: object["_lctext"]?.string)
  }

  private static let knownMembers: Set<String> = ["_lctype", "_lctext", "_lcattrs", "_lcfile", "_lcloc"]

  /// Makes custom data of what `_lcattrs` holds beside our envelope; members that belong to no known place join it, so
  /// that they cross to other vendors too. An app's own typed message holds all of it already.
  private static func readAttributes(
    of type: Int64, _ object: JSONObject, _ own: JSONValue?, into message: inout Message
  ) {
    var attributes = own?.object
    let isWhole: Bool
    if case .unknown = message.content { isWhole = true } else { isWhole = type > 0 }
    let extra = object.members.filter { !knownMembers.contains($0.key) }
    if !isWhole, !extra.isEmpty {
      attributes = attributes ?? JSONObject()
      attributes?[extraMembers] = .object(JSONObject(extra))
    }
    if case .unknown = message.content { return }
    if let attributes {
      message.customData = JSONText(unchecked: JSONValue.object(attributes).text())
    } else if let odd = object["_lcattrs"], odd.object == nil, !odd.isNull {
      // One page of the vendor's own documents calls it a JSON string.
      message.customData = JSONText(unchecked: odd.text())
    }
  }
}

/// Who signs what an import keeps in a message's body, and where the message goes.
public struct LeanCloudSigner: Sendable, Hashable {
  public var key: EnvelopeKey
  public var channel: String
  public var from: String

  /// nil without a key.
  public init?(_ key: EnvelopeKey?, channel: String, from: String) {
    guard let key else { return nil }
    self.key = key
    self.channel = channel
    self.from = from
  }
}
