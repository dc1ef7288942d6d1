import ChatJSON
import UnifiedChat

/// What a destination keeps beside an imported item, in a text field of the vendor that the app may use too:
///
///     {"unifiedchat": {"v": 1, "vendor": …, "id": …, "channel": …, "kept": {…}}, "data": "…"}
///
/// `kept` holds, by their record names, the fields that the vendor cannot carry in its own form; `data` is the item's
/// own custom data as text. Reading it back gives the original item, so that a second migration starts from the truth.
public struct Provenance: Sendable, Hashable {
  public var origin: Origin
  public var kept: JSONObject

  static let marker = "unifiedchat"

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

  public func json() -> JSONValue {
    var object = JSONObject()
    object["v"] = 1
    object["vendor"] = .string(origin.vendor.rawValue)
    object["id"] = .string(origin.id)
    object["channel"] = origin.channel.map { .string($0.rawValue) }
    if !kept.isEmpty { object["kept"] = .object(kept) }
    return .object(object)
  }

  /// The text for the vendor's field.
  public func wrap(_ customData: JSONText?) -> String {
    var object = JSONObject()
    object[Self.marker] = json()
    object["data"] = customData.map { .string($0.text) }
    return JSONValue.object(object).text()
  }

  /// Splits a vendor's text field into what we put there and what is the app's own. A text that is not ours comes
  /// back whole as custom data, an empty one as nil.
  public static func unwrap(_ text: String) -> (provenance: Provenance?, customData: JSONText?) {
    guard !text.isEmpty else { return (nil, nil) }
    guard text.contains(marker), let json = try? JSONValue(parsing: text), let own = json[marker],
      let provenance = Provenance(own)
    else { return (nil, JSONText(unchecked: text)) }
    return (provenance, json["data"]?.string.map { JSONText(unchecked: $0) })
  }

  /// nil when `json` is not what `json()` writes.
  public init?(_ json: JSONValue) {
    guard json["v"]?.int == 1, let vendor = json["vendor"]?.string, let id = json["id"]?.string, !id.isEmpty
    else { return nil }
    self.init(
      origin: Origin(
        vendor: VendorName(vendor), id: id, channel: json["channel"]?.string.map { ChannelID($0) }),
      kept: json["kept"]?.object ?? JSONObject())
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

/// Whose word an envelope is. It stands in a field that whoever writes the message may fill, with any client.
public enum EnvelopeTrust: Sendable {
  /// Of the message's sender: believed in what a sender may say. Clients read so, or anybody could write in the name
  /// of another.
  case sender
  /// Of a tool with the app's secret: believed in everything. For reading a history back that an import has written.
  case importer
}
