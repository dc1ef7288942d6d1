import UnifiedChat

/// How a record of the archive is handed to a destination; verification expects to read back the same.
struct DestinationForm: Sendable {
  /// The vendor that the archive is from.
  var vendor: VendorName

  func user(_ record: UserRecord, id: UserID) -> UserRecord {
    var copy = record
    copy.user.id = id
    copy.user.presence = nil
    copy.origin = Origin(vendor: vendor, id: record.user.id.rawValue)
    copy.raw = nil
    return copy
  }

  func channel(_ record: ChannelRecord, asGroup: Bool, users: [UserID: UserID]) -> ChannelRecord {
    var copy = record
    copy.channel.createdBy = record.channel.createdBy.map { users[$0] ?? $0 }
    copy.channel.peer = record.channel.peer.map { users[$0] ?? $0 }
    if asGroup {
      copy.channel.kind = .group
      copy.channel.isDistinct = false
      copy.channel.peer = nil
    }
    copy.origin = Origin(vendor: vendor, id: record.channel.id.rawValue)
    copy.raw = nil
    return copy
  }

  func member(_ record: MemberRecord, users: [UserID: UserID]) -> MemberRecord {
    var copy = record
    copy.member.user.id = users[record.member.user.id] ?? record.member.user.id
    copy.raw = nil
    return copy
  }

  /// Reply target and thread parent stay the original ones.
  func message(_ record: MessageRecord, users: [UserID: UserID]) -> MessageRecord {
    let message = record.message.mappingUsers { users[$0] ?? $0 }
    let origin = Origin(vendor: vendor, id: message.id?.rawValue ?? "", channel: message.channel)
    return MessageRecord(message: message, origin: origin)
  }
}

extension Loss {
  static let repeatedDirectChannel = Loss(
    field: "channel.kind", treatment: .degraded,
    explanation: "a further direct channel of the same two users becomes a group")
  static let missingBytes = Loss(
    field: "message.content.attachment", treatment: .degraded,
    explanation: "the archive has no bytes of the attachment; its address is kept")
  static let refusedBytes = Loss(
    field: "message.content.attachment", treatment: .degraded,
    explanation: "the destination refused the bytes of the attachment; its address is kept")
  static let mappedUser = Loss(
    field: "user.id", treatment: .keptElsewhere, explanation: "the id does not fit; it is mapped by the ledger")
}
