import ChatInterchange
import ChatJSON
import UnifiedChat

/// A conversation object, as it stands in `conv/results`, in the class `_Conversation` and in exports.
///
/// The unified custom data is the column `attr`; columns that the vendor does not know join it as the member
/// `_columns`. Name and cover are the columns `name` and `coverURL`, single keys the column `metadata` (the latter two
/// are ours: the vendor lets an app add columns).
///
/// - Source: wire reference §7.
public enum LeanCloudConversation {
  /// The member of the unified custom data that holds an app's own columns.
  public static let extraColumns = "_columns"

  private static let knownColumns: Set<String> = [
    "objectId", "name", "attr", "c", "m", "mu", "lm", "createdAt", "updatedAt", "unique", "uniqueId", "tr", "sys",
    "temp", "ttl", "conv_type", "muted", "joined", "joinedAt", "msg", "bin", "msg_mid", "msg_from", "msg_timestamp",
    "patch_timestamp", "mention_all", "mention_pids", "coverURL", "metadata", "ACL", "__type", "className",
  ]

  /// A conversation as it was read.
  public struct Read: Sendable, Hashable {
    public var channel: Channel
    /// Where it came from if it was imported by us.
    public var origin: Origin?
    /// Why an envelope in its `attr` is not believed.
    public var finding: EnvelopeFinding?
  }

  /// nil without an object id. A client believes what stands in `attr`: whoever may write there may rename the
  /// conversation, too.
  public static func channel(_ object: JSONObject, me: UserID? = nil, _ view: EnvelopeView = .client) -> Read? {
    guard let id = object["objectId"]?.string, !id.isEmpty else { return nil }
    let members = object["m"]?.array?.compactMap(\.string) ?? []
    let kind = kind(of: object, id: id, memberCount: members.count)
    var channel = Channel(
      id: ChannelID(id), kind: kind, name: object["name"]?.string, coverURL: object["coverURL"]?.string,
      isDistinct: object["unique"]?.bool == true, createdAt: date(object["createdAt"]),
      createdBy: object["c"]?.string.flatMap { $0.isEmpty ? nil : UserID($0) },
      memberCount: object["m"] == nil || kind == .open || kind == .service ? nil : members.count)
    for member in object["metadata"]?.object ?? JSONObject() {
      if let text = member.value.string { channel.metadata[member.key] = text }
    }
    if kind == .direct, let me { channel.peer = members.map { UserID($0) }.first { $0 != me } }
    if let me {
      // Absent where nobody has muted.
      let muted = object["mu"]?.array ?? []
      channel.notificationLevel = muted.contains { $0.string.map { UserID($0) } == me } ? NotificationLevel.none : .all
    }
    let (origin, finding) = readAttributes(of: object, view, into: &channel)
    return Read(channel: channel, origin: origin, finding: finding)
  }

  /// Where the envelope of an import is signed for: first for any conversation, since the service gives the id, then
  /// for its own.
  public static func finding(of object: JSONObject, _ reader: EnvelopeReader, isNew: Bool = false) -> EnvelopeFinding? {
    guard let envelope = object["attr"]?[LeanCloudBody.marker]?.object else { return .unsigned }
    return reader.finding(of: envelope, at: .channel(isNew ? "" : object["objectId"]?.string ?? ""))
  }

  private static func kind(of object: JSONObject, id: String, memberCount: Int) -> ChannelKind {
    if object["temp"]?.bool == true || id.hasPrefix("_tmp:") { return .temporary }
    if object["sys"]?.bool == true { return .service }
    if object["tr"]?.bool == true { return .open }
    if object["unique"]?.bool == true, memberCount == 2 { return .direct }
    return .group
  }

  private static func readAttributes(
    of object: JSONObject, _ view: EnvelopeView, into channel: inout Channel
  ) -> (origin: Origin?, finding: EnvelopeFinding?) {
    var attributes = object["attr"]?.object
    var origin: Origin?
    var finding: EnvelopeFinding?
    var kept: JSONObject?
    let envelope = attributes?[LeanCloudBody.marker]
    if envelope?["v"]?.int == 1, case .tool(let reader) = view { finding = Self.finding(of: object, reader) }
    if let envelope, envelope["v"]?.int == 1, finding == nil {
      origin = Provenance(envelope)?.origin
      kept = envelope["kept"]?.object
      attributes?[LeanCloudBody.marker] = nil
      if attributes?.isEmpty == true { attributes = nil }
    }
    let extra = object.members.filter { !knownColumns.contains($0.key) }
    if !extra.isEmpty {
      attributes = attributes ?? JSONObject()
      attributes?[extraColumns] = .object(JSONObject(extra))
    }
    channel.customData = attributes.map { JSONText(unchecked: JSONValue.object($0).text()) }
    if let kept { apply(kept, to: &channel) }
    return (origin, finding)
  }

  /// What an import could not give the conversation itself.
  private static func apply(_ kept: JSONObject, to channel: inout Channel) {
    if let text = kept["customData"]?.string { channel.customData = JSONText(unchecked: text) }
    if let kind = kept["kind"]?.string { channel.kind = ChannelKind(recordName: kind) }
    if let time = kept["createdAt"]?.int { channel.createdAt = Timestamp(milliseconds: time) }
    if kept["createdAt"]?.isNull == true { channel.createdAt = nil }
    if let user = kept["createdBy"]?.string { channel.createdBy = UserID(user) }
    if kept["createdBy"]?.isNull == true { channel.createdBy = nil }
    if let frozen = kept["frozen"]?.bool { channel.isFrozen = frozen }
    if let distinct = kept["distinct"]?.bool { channel.isDistinct = distinct }
  }

  public static func date(_ value: JSONValue?) -> Timestamp? {
    let text = value?.string ?? value?["iso"]?.string
    if let number = value?.int { return Timestamp(milliseconds: number) }
    return text.flatMap { LeanCloudID.milliseconds(iso: $0) }.map { Timestamp(milliseconds: $0) }
  }

  /// The columns that carry custom data: `attr` (nil when there is none) and an app's own columns.
  public static func columns(
    customData: JSONText?, kept: JSONObject = JSONObject(), origin: Origin? = nil, _ signing: EnvelopeSigning? = nil
  ) -> JSONObject {
    var columns = JSONObject()
    var kept = kept
    var attributes = customData.flatMap { LeanCloudBody.spreadable($0) }
    if let customData, attributes == nil { kept["customData"] = .string(customData.text) }
    if let extra = attributes?[extraColumns]?.object {
      attributes?[extraColumns] = nil
      if attributes?.isEmpty == true { attributes = nil }
      for member in extra where !knownColumns.contains(member.key) { columns[member.key] = member.value }
    }
    if !kept.isEmpty || origin != nil {
      attributes = attributes ?? JSONObject()
      attributes?[LeanCloudBody.marker] = Provenance.json(origin: origin, kept: kept, signing)
    }
    columns["attr"] = attributes.map { .object($0) }
    return columns
  }

  /// `Owner`, `Manager`, `Member`.
  public static func roleName(_ role: MemberRole) -> String? {
    switch role {
    case .owner: "Owner"
    case .admin: "Manager"
    case .member: "Member"
    case .unknown(let name): name.isEmpty ? nil : name
    }
  }

  public static func role(named name: String) -> MemberRole {
    switch name {
    case "Owner": .owner
    case "Manager": .admin
    case "Member": .member
    default: .unknown(name)
    }
  }
}
