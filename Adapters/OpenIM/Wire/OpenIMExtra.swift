import ChatInterchange
import ChatJSON
import UnifiedChat

/// What we keep in the vendor's `ex` beside the app's own custom data: the origin of an imported item, and fields that
/// the vendor has no form for. Without either, `ex` is the custom data itself, so that other clients read it as ever.
public struct OpenIMExtra: Sendable, Hashable {
  public var origin: Origin?
  /// By record names, as in `Provenance`.
  public var kept: JSONObject
  public var customData: JSONText?

  public init(origin: Origin? = nil, kept: JSONObject = JSONObject(), customData: JSONText? = nil) {
    self.origin = origin
    self.kept = kept
    self.customData = customData
  }

  private static let marker = "unifiedchat"

  public var text: String {
    if let origin { return Provenance(origin: origin, kept: kept).wrap(customData) }
    let own = customData?.text ?? ""
    // A text of the app that looks like ours is wrapped, so that it comes back whole.
    if kept.isEmpty, own.isEmpty == (customData == nil), !own.contains(Self.marker) { return own }
    var object = JSONObject()
    object[Self.marker] = ["v": 1, "kept": .object(kept)]
    object["data"] = customData.map { .string($0.text) }
    return JSONValue.object(object).text()
  }

  public init(_ text: String) {
    let (provenance, customData) = Provenance.unwrap(text)
    if let provenance {
      self.init(origin: provenance.origin, kept: provenance.kept, customData: customData)
    } else if text.contains(Self.marker), let json = try? JSONValue(parsing: text), let own = json[Self.marker],
      own["v"]?.int == 1, let kept = own["kept"]?.object
    {
      self.init(kept: kept, customData: json["data"]?.string.map { JSONText(unchecked: $0) })
    } else {
      self.init(customData: customData)
    }
  }

  /// Puts what was kept over what the vendor's own fields say.
  public func apply(to message: inout Message, _ trust: EnvelopeTrust) throws(RecordError) {
    message.customData = customData
    guard !kept.isEmpty else { return }
    try Provenance(origin: origin ?? Origin(vendor: "openim", id: "-"), kept: kept).apply(to: &message, trust)
  }
}
