import ChatJSON
import UnifiedChat

/// What a destination keeps beside an imported item, in a text field of the vendor that the app may use too:
///
///     {"unifiedchat": {"v": 1, "vendor": …, "id": …, "channel": …, "kept": {…}, "sig": "…"}, "data": "…"}
///
/// `kept` holds, by their record names, the fields that the vendor cannot carry in its own form; `data` is the item's
/// own custom data as text. Reading it back gives the original item, so that a second migration starts from the truth.
/// `sig` is by `EnvelopeKey`; what clients write into messages of their own has none.
public struct Provenance: Sendable, Hashable {
  /// Where the item was before.
  public var origin: Origin
  /// By name, what the vendor has no place for.
  public var kept: JSONObject
  /// As it was read; not checked by itself.
  public var signature: String?

  static let marker = "unifiedchat"
  public static let signatureMember = "sig"

  public init(origin: Origin, kept: JSONObject = JSONObject()) {
    self.origin = origin
    self.kept = kept
  }

  /// Keeps those of `fields` that are not at their default.
  public init(origin: Origin, of message: Message, keeping fields: Set<MessageField>) {
    var kept = JSONObject()
    for field in MessageField.allCases where fields.contains(field) { kept[field.rawValue] = message.value(of: field) }
    self.init(origin: origin, kept: kept)
  }

  /// Signed anew where there is a key for it.
  public func json(_ signing: EnvelopeSigning? = nil) -> JSONValue {
    Self.json(origin: origin, kept: kept, signature: signature, signing)
  }

  /// The envelope with or without an origin.
  public static func json(
    origin: Origin?, kept: JSONObject, signature: String? = nil, _ signing: EnvelopeSigning? = nil
  ) -> JSONValue {
    var object = JSONObject()
    object["v"] = 1
    object["vendor"] = origin.map { .string($0.vendor.rawValue) }
    object["id"] = origin.map { .string($0.id) }
    object["channel"] = origin?.channel.map { .string($0.rawValue) }
    if !kept.isEmpty || origin == nil { object["kept"] = .object(kept) }
    let signature = signing.map { $0.key.signature(of: object, at: $0.place) } ?? signature
    object[signatureMember] = signature.map { .string($0) }
    return .object(object)
  }

  /// The text for the vendor's field.
  public func wrap(_ customData: JSONText?, _ signing: EnvelopeSigning? = nil) -> String {
    var object = JSONObject()
    object[Self.marker] = json(signing)
    object["data"] = customData.map { .string($0.text) }
    return JSONValue.object(object).text()
  }

  /// Splits a vendor's text field into what stands there in our form and what is the app's own, whoever wrote it. A
  /// text that is not in our form comes back whole as custom data, an empty one as nil.
  public static func unwrap(_ text: String) -> (provenance: Provenance?, customData: JSONText?) {
    guard !text.isEmpty else { return (nil, nil) }
    guard text.contains(marker), let json = try? JSONValue(parsing: text), let own = json[marker],
      let provenance = Provenance(own)
    else { return (nil, JSONText(unchecked: text)) }
    return (provenance, json["data"]?.string.map { JSONText(unchecked: $0) })
  }

  /// What a vendor's text field says once the app's own custom data in it is replaced: an envelope, with all that is
  /// noted in it, stays. For a text without one it is the custom data alone.
  public static func replacing(customData: JSONText, in text: String) -> String {
    guard unwrap(text).provenance != nil, var object = (try? JSONValue(parsing: text))?.object else {
      return customData.text
    }
    object["data"] = .string(customData.text)
    return JSONValue.object(object).text()
  }

  /// The same for a tool: an envelope that is not believed is custom data like any other, and `finding` says why.
  public static func unwrap(
    _ text: String, by reader: EnvelopeReader, at place: EnvelopePlace
  ) -> (provenance: Provenance?, customData: JSONText?, finding: EnvelopeFinding?) {
    let (provenance, customData) = unwrap(text)
    guard let provenance, let own = provenance.json().object else { return (nil, customData, nil) }
    guard let finding = reader.finding(of: own, at: place) else { return (provenance, customData, nil) }
    return (nil, JSONText(unchecked: text), finding)
  }

  /// nil when `json` is not what `json()` writes.
  public init?(_ json: JSONValue) {
    guard json["v"]?.int == 1, let vendor = json["vendor"]?.string, let id = json["id"]?.string, !id.isEmpty
    else { return nil }
    self.init(
      origin: Origin(
        vendor: VendorName(vendor), id: id, channel: json["channel"]?.string.map { ChannelID($0) }),
      kept: json["kept"]?.object ?? JSONObject())
    signature = json[Self.signatureMember]?.string
  }

  /// Whether `kept` names what only the service may say of a message, so that a sender's word is not enough for it.
  public static func exceedsSender(_ kept: JSONObject) -> Bool {
    if kept.contains(where: { entry in !MessageField.ofSender.contains { $0.rawValue == entry.key } }) { return true }
    let kind = kept["content"]?["kind"]?.string
    return kind == "system" || kind == "recalled"
  }

  /// Puts the kept fields over what the vendor itself says of `message`, as far as `trust` goes.
  public func apply(to message: inout Message, _ trust: EnvelopeTrust) throws(RecordError) {
    let reader = try RecordReader(.object(kept), path: "/unifiedchat/kept")
    switch trust {
    case .importer: try message.overlay(reader, Set(MessageField.allCases))
    case .sender:
      let native = message.content
      try message.overlay(reader, MessageField.ofSender)
      switch message.content {
      // Those are the service's to say.
      case .system, .recalled: message.content = native
      default: break
      }
    }
  }
}

/// Whose word an envelope is.
public enum EnvelopeTrust: Sendable, Hashable {
  /// Of the message's sender: believed in what a sender may say. Clients read so, or anybody could write in the name
  /// of another.
  case sender
  /// Of a tool with the app's secret: believed in everything. For what an `EnvelopeReader` has found to be signed.
  case importer
}

/// Who reads an envelope, which decides how much of it is believed.
public enum EnvelopeView: Sendable, Hashable {
  /// An app's client, which has no secret to check a signature with.
  case client
  case tool(EnvelopeReader)

  /// How far an envelope of a message is believed; nil: not at all, it is the writer's own data.
  ///
  /// - Parameters:
  ///   - isDraft: in the form that clients write for what the vendor has no form for. It claims no origin, so that its
  ///     sender's word is enough, and it is believed so far.
  public func trust(
    _ envelope: JSONObject, at place: @autoclosure () -> EnvelopePlace, isDraft: Bool
  ) -> (trust: EnvelopeTrust?, finding: EnvelopeFinding?) {
    guard case .tool(let reader) = self else { return (.sender, nil) }
    guard let finding = reader.finding(of: envelope, at: place()) else { return (.importer, nil) }
    guard isDraft else { return (nil, finding) }
    return (.sender, Provenance.exceedsSender(envelope["kept"]?.object ?? JSONObject()) ? finding : nil)
  }
}
