import ChatCrypto
import ChatJSON
import UnifiedChat

/// The key with which an import signs its envelopes, drawn from the admin secret of the service that it writes to.
///
/// Whoever writes a message may fill the field that an envelope stands in. Only who has the app's secret can sign one,
/// so a tool knows an import's envelope from a member's imitation. Another secret gives another key: what was signed
/// before a secret was changed can no longer be checked.
public struct EnvelopeKey: Sendable, Hashable, HoldsSecret {
  private let bytes: [UInt8]

  /// nil without a secret.
  public init?(adminSecret: String?) {
    guard let adminSecret, !adminSecret.isEmpty else { return nil }
    bytes = HMAC.sha256(key: Array(adminSecret.utf8), message: Array("unifiedchat envelope key 1".utf8))
  }

  /// Tells two keys apart without giving one away: 16 hex digits.
  public var fingerprint: String {
    Hex.encode(HMAC.sha256(key: bytes, message: Array("fingerprint".utf8)).prefix(8))
  }

  /// The members of `envelope` that are signed; others may be added by anybody and mean nothing to an import.
  static let signedMembers = ["v", "vendor", "id", "channel", "kept"]

  private func tag(_ envelope: JSONObject, at place: EnvelopePlace) -> [UInt8] {
    var signed = JSONObject()
    for name in Self.signedMembers { signed[name] = envelope[name] }
    let message = JSONValue.array([
      "unifiedchat envelope 1", .array(place.parts.map { .string($0) }), .object(signed),
    ])
    return HMAC.sha256(key: bytes, message: message.canonicalBytes())
  }

  /// What stands in the envelope as `sig`: 43 characters of base64url.
  public func signature(of envelope: JSONObject, at place: EnvelopePlace) -> String {
    Base64.urlEncode(tag(envelope, at: place))
  }

  func holds(_ signature: String, for envelope: JSONObject, at place: EnvelopePlace) -> Bool {
    guard let told = Base64.urlDecode(signature) else { return false }
    return SecureBytes.areEqual(told, tag(envelope, at: place))
  }
}

/// What an envelope belongs to at the service. It is signed with it, so that a copy of a good envelope is worth nothing
/// on another item.
public struct EnvelopePlace: Sendable, Hashable {
  let parts: [String]

  private init(_ parts: String...) { self.parts = parts }

  /// - Parameters:
  ///   - sender: as the service knows it; "" for nobody.
  ///   - time: the service's own time of the message where an import sets it.
  ///   - body: the whole body where the time says nothing.
  public static func message(channel: String, sender: String, time: Int64? = nil, body: String = "") -> EnvelopePlace {
    EnvelopePlace("message", channel, sender, time.map { String($0) } ?? "", body)
  }

  /// - Parameter id: "" while the service has not yet said what it is.
  public static func channel(_ id: String) -> EnvelopePlace { EnvelopePlace("channel", id) }
  public static func user(_ id: String) -> EnvelopePlace { EnvelopePlace("user", id) }
  /// What is kept of one user in one channel.
  public static func member(_ user: String, channel: String) -> EnvelopePlace {
    EnvelopePlace("member", channel, user)
  }
}

/// With what, and for which place, an envelope is signed.
public struct EnvelopeSigning: Sendable, Hashable {
  public var key: EnvelopeKey
  public var place: EnvelopePlace

  /// nil without a key.
  public init?(_ key: EnvelopeKey?, _ place: EnvelopePlace) {
    guard let key else { return nil }
    self.key = key
    self.place = place
  }
}

/// Why an envelope is not believed.
public enum EnvelopeFinding: String, Sendable, Hashable, CaseIterable {
  /// It has no signature: somebody made it, or an earlier version wrote it.
  case unsigned
  /// Its signature is not one of this admin secret for this item: a copy, a forgery, or the secret was changed.
  case otherSignature
  /// There is no admin secret to check it with.
  case noKey

  /// One line for a report: what was found, and what the item was taken for.
  public var explanation: String {
    let mend = "; --trust-unsigned-envelopes believes it"
    return switch self {
    case .unsigned: "an import's envelope without a signature, taken for the writer's own data" + mend
    case .otherSignature: "an import's envelope that this admin secret did not sign here, taken for the writer's own data" + mend
    case .noKey: "an import's envelope, and no admin secret to check it with; taken for the writer's own data" + mend
    }
  }
}

/// How a tool reads envelopes: believing those that its key has signed for where they stand.
public struct EnvelopeReader: Sendable, Hashable {
  /// nil: nothing can be checked.
  public var key: EnvelopeKey?
  /// Believes all, as for loads of versions that did not sign, or after the admin secret was changed.
  public var trustsUnsigned: Bool

  public init(key: EnvelopeKey?, trustsUnsigned: Bool = false) {
    self.key = key
    self.trustsUnsigned = trustsUnsigned
  }

  /// With the key of the profile's admin secret, as the person has said.
  public init(_ environment: AdapterEnvironment) {
    self.init(
      key: EnvelopeKey(adminSecret: environment.adminSecret), trustsUnsigned: environment.trustsUnsignedEnvelopes)
  }

  /// nil for an envelope that is to be believed.
  /// - Parameter place: asked for only where there is a signature to check: a whole body costs a digest.
  public func finding(of envelope: JSONObject, at place: @autoclosure () -> EnvelopePlace) -> EnvelopeFinding? {
    if trustsUnsigned { return nil }
    guard let signature = envelope[Provenance.signatureMember]?.string else { return .unsigned }
    guard let key else { return .noKey }
    return key.holds(signature, for: envelope, at: place()) ? nil : .otherSignature
  }
}

extension UnreadableRecord {
  /// The kind of what stands for an envelope that is not believed. The item itself was read.
  public static let envelopeKind = "envelope"

  /// - Parameter kind: of the item that the envelope stands at, for example `message`.
  public init(envelopeOf kind: String, id: String?, channel: ChannelID? = nil, _ finding: EnvelopeFinding) {
    self.init(
      kind: Self.envelopeKind, id: id, channel: channel, reason: "\(kind): \(finding.explanation)")
  }

  /// Whether the item itself was read, and only its envelope not believed.
  public var isEnvelope: Bool { kind == Self.envelopeKind }
}
