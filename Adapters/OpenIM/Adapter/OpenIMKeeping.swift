import ChatInterchange
import ChatJSON
import OpenIMWire
import UnifiedChat

/// What the destination keeps in `ex` of channels and members because the server has no place for it, and how the
/// source puts it back.
enum OpenIMKeeping {
  // MARK: Channels

  /// A group holds name, cover, custom data and frozen state itself; a single chat holds nothing.
  static func kept(of channel: Channel, asGroup: Bool) -> JSONObject {
    var kept = JSONObject()
    if asGroup ? channel.kind != .group : channel.kind != .direct {
      kept["kind"] = .string(channel.kind.recordName)
    }
    if channel.isDistinct { kept["distinct"] = true }
    // Null stands for "not known", which the server's own time of creation is not.
    kept["createdAt"] = channel.createdAt.map { .int($0.milliseconds) } ?? .null
    kept["createdBy"] = channel.createdBy.map { .string($0.rawValue) } ?? .null
    if !channel.metadata.isEmpty {
      kept["metadata"] = .object(
        JSONObject(channel.metadata.sorted { $0.key < $1.key }.map { (key: $0.key, value: .string($0.value)) }))
    }
    if asGroup {
      if channel.name == "" { kept["name"] = "" }
      if channel.coverURL == "" { kept["coverURL"] = "" }
      return kept
    }
    kept["name"] = channel.name.map { .string($0) }
    kept["coverURL"] = channel.coverURL.map { .string($0) }
    if channel.isFrozen { kept["frozen"] = true }
    return kept
  }

  static func restore(_ extra: OpenIMExtra, to channel: inout Channel) {
    channel.customData = extra.customData
    let kept = extra.kept
    if let kind = kept["kind"]?.string { channel.kind = ChannelKind(recordName: kind) }
    if let distinct = kept["distinct"]?.bool { channel.isDistinct = distinct }
    if let time = kept["createdAt"] { channel.createdAt = time.int.map { Timestamp(milliseconds: $0) } }
    if let user = kept["createdBy"] { channel.createdBy = user.string.map { UserID($0) } }
    if let name = kept["name"]?.string { channel.name = name }
    if let cover = kept["coverURL"]?.string { channel.coverURL = cover }
    if let frozen = kept["frozen"]?.bool { channel.isFrozen = frozen }
    for member in kept["metadata"]?.object ?? [:] {
      if let value = member.value.string { channel.metadata[member.key] = value }
    }
  }

  static func losses(of channel: Channel) -> [Loss] {
    let isDirect = channel.kind == .direct
    func kept(_ field: String, _ isThere: Bool) -> Loss? {
      isThere
        ? Loss(field: "channel.\(field)", treatment: .keptElsewhere, explanation: "kept in the channel's ex") : nil
    }
    return [
      kept("kind", channel.kind != .direct && channel.kind != .group), kept("distinct", channel.isDistinct),
      kept("createdAt", channel.createdAt != nil), kept("createdBy", channel.createdBy != nil),
      kept("metadata", !channel.metadata.isEmpty), kept("name", isDirect && channel.name != nil),
      kept("coverURL", isDirect && channel.coverURL != nil),
      kept("customData", isDirect && channel.customData != nil), kept("frozen", isDirect && channel.isFrozen),
    ].compactMap(\.self)
  }

  // MARK: Members

  /// - Parameter keepsRole: true where the server holds another role than the member's.
  static func kept(of member: Member, keepsRole: Bool = false) -> JSONObject {
    var kept = JSONObject()
    if case .unknown = member.role { kept["role"] = .string(member.role.recordName) }
    if keepsRole { kept["role"] = .string(member.role.recordName) }
    kept["joinedAt"] = member.joinedAt.map { .int($0.milliseconds) } ?? .null
    if member.isMuted || member.mutedUntil != nil {
      kept["mutedUntil"] = member.mutedUntil.map { .int($0.milliseconds) } ?? .null
    }
    // A mute with an end may be over when it is written.
    if member.isMuted, member.mutedUntil != nil { kept["muted"] = true }
    return kept
  }

  /// In a single chat there are no roles and nobody is muted, so all of it is kept.
  static func keptInDirect(_ member: Member) -> JSONObject {
    var kept = kept(of: member)
    if member.role != .member { kept["role"] = .string(member.role.recordName) }
    if member.isMuted { kept["muted"] = true }
    return kept
  }

  static func restore(_ kept: JSONObject, to member: inout Member) {
    if let role = kept["role"]?.string { member.role = MemberRole(recordName: role) }
    if let time = kept["joinedAt"] { member.joinedAt = time.int.map { Timestamp(milliseconds: $0) } }
    if let muted = kept["muted"]?.bool { member.isMuted = muted }
    if let until = kept["mutedUntil"] {
      member.mutedUntil = until.int.map { Timestamp(milliseconds: $0) }
    }
  }

  static func losses(of member: Member) -> [Loss] {
    var losses: [Loss] = []
    func add(_ field: String, _ treatment: Loss.Treatment, _ explanation: String) {
      losses.append(Loss(field: "member.\(field)", treatment: treatment, explanation: explanation))
    }
    func drop(_ explanation: String) {
      losses.append(Loss(field: "member", treatment: .dropped, explanation: explanation))
    }
    if case .unknown = member.role { add("role", .keptElsewhere, "kept in the member's ex") }
    switch member.state {
    case .joined: break
    case .left: drop("the server lists no former members")
    case .invited: drop("the server lists no invited users")
    case .banned: drop("the server has no bans")
    }
    if member.joinedAt != nil { add("joinedAt", .keptElsewhere, "kept in the member's ex") }
    if member.mutedUntil != nil { add("mutedUntil", .keptElsewhere, "kept in the member's ex") }
    if member.deliveredPosition != nil { add("deliveredPosition", .dropped, "the server keeps no such mark") }
    return losses
  }

  // MARK: Ids

  /// The server takes letters, digits and `_`. Other ids become readable ones with a digest, the same each time.
  static func userID(_ id: UserID) -> String {
    guard !OpenIMUserID.isLegal(id.rawValue) else { return id.rawValue }
    return legal(id.rawValue)
  }

  /// The part of a group channel's id after `sg_`; ids of any letters that a URL takes stay as they are.
  static func groupID(of channel: ChannelID) -> String {
    let id = OpenIMConversationID.groupID(of: channel.rawValue) ?? channel.rawValue
    let isPlain = id.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."):
        true
      default: false
      }
    }
    return isPlain && !id.isEmpty && id.utf8.count <= 64 ? id : legal(id)
  }

  private static func legal(_ id: String) -> String {
    let readable = id.unicodeScalars.prefix(40).map { scalar in
      OpenIMUserID.isLegal(String(scalar)) ? String(scalar) : "_"
    }
    return readable.joined() + "_" + String(OpenIMDigest.hex(id).prefix(12))
  }
}
