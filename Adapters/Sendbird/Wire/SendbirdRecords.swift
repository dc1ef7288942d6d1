import ChatCrypto
import ChatInterchange
import ChatJSON
import UnifiedChat

/// What a user record becomes: nickname, picture and at most five metadata items.
///
/// Custom data and the original's identity stand, as one text cut into pieces, in metadata items `unifiedchat0…4`.
public struct SendbirdUserForm: Sendable, Hashable {
  public var nickname: String
  public var profileURL: String
  public var metadata: JSONObject
  /// What found no place.
  public var losses: [Loss]

  static let prefix = "unifiedchat"

  /// The metadata items that hold the pieces of the envelope, in order.
  public static let keys = (0..<SendbirdLimits.metadataItems).map { "\(prefix)\($0)" }

  /// - Parameter key: nil for what users write of themselves.
  public init(_ record: UserRecord, origin: Origin?, _ key: EnvelopeKey?) {
    let user = record.user
    let signing = EnvelopeSigning(key, .user(user.id.rawValue))
    losses = []
    var kept = JSONObject()
    nickname = user.name ?? ""
    if nickname.isEmpty, user.name != nil { kept["name"] = "" }
    if nickname.unicodeScalars.count > SendbirdLimits.nicknameLength {
      kept["name"] = .string(nickname)
      nickname = String(String.UnicodeScalarView(nickname.unicodeScalars.prefix(SendbirdLimits.nicknameLength)))
      losses.append(
        Loss(field: "user.name", treatment: .keptElsewhere, explanation: "cut to 80 characters; whole in metadata"))
    }
    profileURL = user.avatarURL ?? ""
    if profileURL.isEmpty, user.avatarURL != nil { kept["avatarURL"] = "" }
    if profileURL.unicodeScalars.count > SendbirdLimits.urlLength {
      profileURL = ""
      losses.append(Loss(field: "user.avatarURL", treatment: .dropped, explanation: "longer than 2048 characters"))
    }
    if record.isPlaceholder { kept["placeholder"] = true }
    metadata = JSONObject()
    guard origin != nil || !kept.isEmpty || user.customData != nil else { return }
    let source = origin ?? Origin(vendor: SendbirdErrors.vendor, id: user.id.rawValue)
    if let items = Self.cut(Provenance(origin: source, kept: kept).wrap(user.customData, signing)) {
      metadata = items
      if user.customData != nil {
        losses.append(
          Loss(field: "user.customData", treatment: .keptElsewhere, explanation: "in metadata items, as text in pieces")
        )
      }
    } else {
      metadata = Self.cut(Provenance(origin: source, kept: kept).wrap(nil, signing)) ?? JSONObject()
      losses.append(
        Loss(field: "user.customData", treatment: .dropped, explanation: "longer than the 950 characters of metadata"))
    }
  }

  /// Pieces of at most 190 characters; nil when they would be more than five.
  private static func cut(_ text: String) -> JSONObject? {
    var rest = Substring(text).unicodeScalars
    var items = JSONObject()
    while !rest.isEmpty {
      guard items.count < SendbirdLimits.metadataItems else { return nil }
      let piece = rest.prefix(SendbirdLimits.metadataValueLength)
      items["\(prefix)\(items.count)"] = .string(String(String.UnicodeScalarView(piece)))
      rest = rest.dropFirst(piece.count)
    }
    return items
  }

  static func envelope(_ metadata: JSONObject) -> (Provenance?, JSONText?) {
    var text = ""
    for index in 0..<SendbirdLimits.metadataItems { text += metadata.text("\(prefix)\(index)") ?? "" }
    guard !text.isEmpty else { return (nil, nil) }
    let (provenance, customData) = Provenance.unwrap(text)
    return provenance == nil ? (nil, nil) : (provenance, customData)
  }
}

extension SendbirdMapping {
  public static func user(_ wire: SendbirdUser) -> User { userRecord(wire, raw: nil, .client).record.user }

  /// With the reason why an envelope in the metadata is not believed.
  public static func userRecord(
    _ wire: SendbirdUser, raw: JSONObject?, _ view: EnvelopeView
  ) -> (record: UserRecord, finding: EnvelopeFinding?) {
    var user = User(
      id: wire.id, name: wire.nickname.isEmpty ? nil : wire.nickname,
      avatarURL: wire.profileURL.isEmpty ? nil : wire.profileURL)
    if let isOnline = wire.isOnline {
      let seen = wire.lastSeenAt > 0 ? Timestamp(milliseconds: wire.lastSeenAt) : nil
      user.presence = isOnline ? .online : .offline(lastSeen: seen)
    }
    var (provenance, customData) = SendbirdUserForm.envelope(wire.metadata)
    var finding: EnvelopeFinding?
    var (isSelf, isOwn) = (false, false)
    if let known = provenance, let envelope = known.json().object {
      isSelf = known.origin.vendor == SendbirdErrors.vendor && known.origin.id == wire.id.rawValue
      // Users write such an envelope of themselves, unsigned, which says nothing that is not theirs to say. One with a
      // signature is an import's, and is believed for the signature alone.
      isOwn = isSelf && envelope[Provenance.signatureMember] == nil
      if case .tool(let reader) = view, !isOwn {
        finding = reader.finding(of: envelope, at: .user(wire.id.rawValue))
        if finding != nil { (provenance, customData) = (nil, nil) }
      }
    }
    if let provenance {
      user.customData = customData
      if let name = provenance.kept.text("name"), name.isEmpty || name.hasPrefix(wire.nickname) { user.name = name }
      if wire.profileURL.isEmpty, provenance.kept.text("avatarURL") == "" { user.avatarURL = "" }
    } else if !wire.metadata.isEmpty {
      user.customData = JSONText(unchecked: JSONValue.object(wire.metadata).text())
    }
    let record = UserRecord(
      user: user, isPlaceholder: !isOwn && provenance?.kept.flag("placeholder") ?? false,
      origin: isSelf ? nil : provenance?.origin,
      raw: raw.map { JSONText(unchecked: JSONValue.object($0).text()) })
    return (record, finding)
  }
}

/// What stands in the envelope of an imported channel's `data`, beside the channel's own fields: the original
/// membership where Sendbird's differs.
public struct SendbirdChannelNotes: Sendable, Hashable {
  /// Member records by user id, for those of whom Sendbird shows something else.
  public var members: JSONObject
  /// Users who are members only because they wrote.
  public var guests: [UserID]
  /// Server time of the import's end, ms: later read marks are real.
  public var importedAt: Int64?

  public init(members: JSONObject = JSONObject(), guests: [UserID] = [], importedAt: Int64? = nil) {
    self.members = members
    self.guests = guests
    self.importedAt = importedAt
  }

  public init(_ kept: JSONObject) {
    members = kept.object("members") ?? JSONObject()
    guests = kept.texts("guests").map { UserID($0) }
    importedAt = kept.number("importedAt")
  }

  /// Who of `members` looks different at Sendbird, with the fields that do.
  public static func differing(_ members: [MemberRecord]) -> JSONObject {
    var notes = JSONObject()
    for record in members {
      let member = record.member
      var note = JSONObject()
      guard case .object(let json) = Record.member(record).json() else { continue }
      for key in ["joinedAt", "muted", "mutedUntil", "readPosition", "deliveredPosition"] { note[key] = json[key] }
      if member.role != .member, member.role != .admin { note["role"] = json["role"] }
      if member.state != .joined, member.state != .invited {
        note["state"] = json["state"]
        note["role"] = json["role"]
      }
      if !note.isEmpty { notes[member.user.id.rawValue] = .object(note) }
    }
    return notes
  }
}

extension SendbirdMapping {
  static let channelFields = ["kind", "name", "coverURL", "distinct", "createdAt", "createdBy", "metadata"]

  /// The text for `data`, with what the channel's own fields cannot say.
  public static func channelData(
    _ record: ChannelRecord, origin: Origin, notes: SendbirdChannelNotes, _ signing: EnvelopeSigning?
  ) -> String {
    guard case .object(let json) = Record.channel(record).json() else { return "" }
    var kept = JSONObject()
    kept["kind"] = json["kind"]
    kept["createdAt"] = json["createdAt"]
    kept["createdBy"] = json["createdBy"]
    if record.channel.isDistinct { kept["distinct"] = true }
    if let name = record.channel.name, name.isEmpty || name.unicodeScalars.count > SendbirdLimits.nameLength {
      kept["name"] = .string(name)
    }
    if let url = record.channel.coverURL, url.isEmpty || url.unicodeScalars.count > SendbirdLimits.urlLength {
      kept["coverURL"] = .string(url)
    }
    if !record.channel.metadata.isEmpty, !fits(record.channel.metadata) { kept["metadata"] = json["metadata"] }
    if !notes.members.isEmpty { kept["members"] = .object(notes.members) }
    if !notes.guests.isEmpty { kept["guests"] = .array(notes.guests.map { .string($0.rawValue) }) }
    kept["importedAt"] = notes.importedAt.map { .int($0) }
    return Provenance(origin: origin, kept: kept).wrap(record.channel.customData, signing)
  }

  /// Whether channel metadata has a place of its own: five items, short keys without commas, short values.
  public static func fits(_ metadata: [String: String]) -> Bool {
    metadata.count <= SendbirdLimits.metadataItems
      && metadata.allSatisfy {
        !$0.key.contains(",") && $0.key.unicodeScalars.count <= SendbirdLimits.metadataKeyLength
          && $0.value.unicodeScalars.count <= SendbirdLimits.metadataValueLength
      }
  }

  public static func kind(_ wire: SendbirdChannel) -> ChannelKind {
    guard let group = wire.group else { return .open }
    return group.isDistinct && group.memberCount == 2 && !group.isSuper ? .direct : .group
  }

  /// A client believes what stands in the channel's data: whoever may write there may rename the channel, too.
  public static func channelRecord(
    _ wire: SendbirdChannel, raw: JSONObject, _ view: EnvelopeView
  ) throws(RecordError) -> (record: ChannelRecord, notes: SendbirdChannelNotes, finding: EnvelopeFinding?) {
    var channel = Channel(id: wire.url, kind: kind(wire))
    channel.name = wire.name.isEmpty ? nil : wire.name
    channel.coverURL = wire.coverURL.isEmpty ? nil : wire.coverURL
    for (key, value) in wire.metadata ?? JSONObject() { channel.metadata[key] = value.string }
    channel.isDistinct = wire.group?.isDistinct ?? false
    channel.isFrozen = wire.isFrozen
    let (provenance, customData, finding) = envelope(wire, view)
    channel.customData = customData
    let rawText = JSONText(unchecked: JSONValue.object(raw).text())
    guard let provenance else {
      channel.createdAt = Timestamp(milliseconds: wire.createdAt &* 1000)
      channel.createdBy = wire.createdBy
      return (ChannelRecord(channel: channel, raw: rawText), SendbirdChannelNotes(), finding)
    }
    channel.isDistinct = false
    guard case .object(var json) = Record.channel(ChannelRecord(channel: channel)).json() else {
      throw RecordError(path: "", reason: "no channel")
    }
    for field in channelFields { if let value = provenance.kept[field] { json[field] = value } }
    guard case .channel(var record) = try Record(json: .object(json)) else {
      throw RecordError(path: "", reason: "no channel")
    }
    record.origin = provenance.origin
    record.raw = rawText
    return (record, SendbirdChannelNotes(provenance.kept), nil)
  }

  /// What an import left in the channel's data.
  public static func envelope(
    _ wire: SendbirdChannel, _ view: EnvelopeView
  ) -> (provenance: Provenance?, customData: JSONText?, finding: EnvelopeFinding?) {
    guard case .tool(let reader) = view else {
      let (provenance, customData) = Provenance.unwrap(wire.data)
      return (provenance, customData, nil)
    }
    return Provenance.unwrap(wire.data, by: reader, at: .channel(wire.url.rawValue))
  }

  /// One member as the original was. `isImported`: what Sendbird says of times is of the import, not of the member.
  public static func memberRecord(
    _ wire: SendbirdMember, channel: ChannelID, notes: SendbirdChannelNotes, isImported: Bool
  ) throws(RecordError) -> MemberRecord {
    var member = self.member(wire)
    if isImported {
      if (wire.readAt ?? 0) <= notes.importedAt ?? .max { member.readPosition = nil }
      (member.joinedAt, member.deliveredPosition) = (nil, nil)
      (member.isMuted, member.mutedUntil) = (false, nil)
    }
    // Whoever is a member now is none of those who had left.
    return try apply(notes.members.object(wire.user.id.rawValue)?.without(["state"]), to: member, channel)
  }

  /// Members of whom only the envelope knows: those who left or were banned.
  public static func absentMembers(
    _ notes: SendbirdChannelNotes, channel: ChannelID, present: Set<UserID>
  ) throws(RecordError) -> [MemberRecord] {
    var records: [MemberRecord] = []
    for (id, note) in notes.members where !present.contains(UserID(id)) && note["state"] != nil {
      records.append(try apply(note.object, to: Member(user: User(id: UserID(id))), channel))
    }
    return records
  }

  private static func apply(
    _ note: JSONObject?, to member: Member, _ channel: ChannelID
  ) throws(RecordError) -> MemberRecord {
    let plain = MemberRecord(channel: channel, member: member)
    guard let note, case .object(var json) = Record.member(plain).json() else { return plain }
    for (key, value) in note where key != "readPosition" || json[key] == nil { json[key] = value }
    guard case .member(var record) = try Record(json: .object(json)) else { return plain }
    record.member.user = member.user
    return record
  }

  public static func member(_ wire: SendbirdMember) -> Member {
    var member = Member(user: user(wire.user), role: wire.isOperator ? .admin : .member)
    member.state = wire.state == "invited" ? .invited : wire.state == "left" ? .left : .joined
    member.isMuted = wire.isMuted
    if wire.isMuted, let end = wire.mutedEndAt, end > 0 { member.mutedUntil = Timestamp(milliseconds: end) }
    member.joinedAt = wire.joinedAt.map { Timestamp(milliseconds: $0 &* 1000) }
    member.readPosition = wire.readAt.flatMap(position)
    member.deliveredPosition = wire.deliveredAt.flatMap(position)
    return member
  }

  /// Marks are times: all messages of that millisecond are on this side of it.
  public static func position(_ time: Int64) -> MessagePosition? {
    time > 0 ? MessagePosition(time: Timestamp(milliseconds: time), number: .max) : nil
  }
}

extension SendbirdMapping {
  /// The channel URL for an original id: itself where the vendor allows it, else `uc_` and a digest.
  public static func channelURL(for id: ChannelID) -> ChannelID {
    let bytes = id.rawValue.utf8
    let isPlain = bytes.allSatisfy {
      (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || $0 == 95
    }
    if isPlain, (4...SendbirdLimits.channelURLLength).contains(bytes.count) { return id }
    return ChannelID("uc_" + Hex.encode(Digest.sha256(Array(bytes)).prefix(24)))
  }
}
