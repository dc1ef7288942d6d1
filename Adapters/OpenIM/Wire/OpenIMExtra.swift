import ChatInterchange
import ChatJSON
import UnifiedChat

/// What we keep in the vendor's `ex` beside the app's own custom data: the origin of an imported item, and fields that
/// the vendor has no form for. Without either, `ex` is the custom data itself, so that other clients read it as ever.
public struct OpenIMExtra: Sendable, Hashable {
  public var origin: Origin?
  /// By record names, as in `Provenance`.
  public var kept: JSONObject
  /// Of `origin` and `kept`, by an import.
  public var signature: String?
  /// What clients of the record's owner note there for one another; outside of what is signed.
  public var notes: JSONObject
  public var customData: JSONText?

  public init(
    origin: Origin? = nil, kept: JSONObject = JSONObject(), customData: JSONText? = nil,
    notes: JSONObject = JSONObject()
  ) {
    self.origin = origin
    self.kept = kept
    self.customData = customData
    self.notes = notes
  }

  private static let marker = "unifiedchat"
  private static let notesMember = "notes"

  /// As an import writes it; unsigned without a key.
  public func signed(by key: EnvelopeKey?, at place: EnvelopePlace) -> OpenIMExtra {
    guard let key, !claimsNothing else { return self }
    var signed = self
    signed.signature = key.signature(of: envelope, at: place)
    return signed
  }

  private var envelope: JSONObject {
    Provenance.json(origin: origin, kept: kept, signature: signature).object ?? JSONObject()
  }

  private var claimsNothing: Bool { origin == nil && kept.isEmpty }

  public var text: String {
    let own = customData?.text ?? ""
    // A text of the app that looks like ours is wrapped, so that it comes back whole.
    if claimsNothing, notes.isEmpty, own.isEmpty == (customData == nil), !own.contains(Self.marker) { return own }
    var envelope = envelope
    if !notes.isEmpty { envelope[Self.notesMember] = .object(notes) }
    var object = JSONObject()
    object[Self.marker] = .object(envelope)
    object["data"] = customData.map { .string($0.text) }
    return JSONValue.object(object).text()
  }

  /// What stands there, whoever wrote it.
  public init(_ text: String) {
    self.init(customData: text.isEmpty ? nil : JSONText(unchecked: text))
    guard text.contains(Self.marker), let json = try? JSONValue(parsing: text), let own = json[Self.marker],
      own["v"]?.int == 1
    else { return }
    let provenance = Provenance(own)
    guard provenance != nil || own["kept"]?.object != nil else { return }
    origin = provenance?.origin
    kept = own["kept"]?.object ?? JSONObject()
    signature = own[Provenance.signatureMember]?.string
    notes = own[Self.notesMember]?.object ?? JSONObject()
    customData = json["data"]?.string.map { JSONText(unchecked: $0) }
  }

  /// What `text` says once the app's own custom data in it is replaced: what is kept beside it stays.
  public static func replacing(customData: JSONText, in text: String) -> String {
    var extra = OpenIMExtra(text)
    extra.customData = customData
    return extra.text
  }

  /// What a tool believes of it: an envelope that is not believed is custom data like any other. A client believes what
  /// stands at users, groups and members.
  public static func read(
    _ text: String, _ view: EnvelopeView, at place: @autoclosure () -> EnvelopePlace
  ) -> (extra: OpenIMExtra, finding: EnvelopeFinding?) {
    let extra = OpenIMExtra(text)
    guard !extra.claimsNothing, case .tool(let reader) = view,
      let finding = reader.finding(of: extra.envelope, at: place())
    else { return (extra, nil) }
    return (OpenIMExtra(customData: JSONText(unchecked: text)), finding)
  }

  /// Puts what was kept over what the vendor's own fields say of a message.
  public func apply(to message: inout Message, _ trust: EnvelopeTrust) throws(RecordError) {
    message.customData = customData
    guard !kept.isEmpty else { return }
    try Provenance(origin: origin ?? Origin(vendor: "openim", id: "-"), kept: kept).apply(to: &message, trust)
  }

  /// How far an envelope in a message is believed. Without an origin it is what clients write, too.
  func trust(
    _ view: EnvelopeView, at place: @autoclosure () -> EnvelopePlace
  ) -> (trust: EnvelopeTrust?, finding: EnvelopeFinding?) {
    claimsNothing ? (.sender, nil) : view.trust(envelope, at: place(), isDraft: origin == nil)
  }
}
