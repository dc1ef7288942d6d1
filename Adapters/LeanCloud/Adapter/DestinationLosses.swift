import LeanCloudWire
import UnifiedChat

extension LeanCloudDestination {
  public func losses(of record: Record) -> [Loss] {
    switch record {
    case .user(let record): hasProfile(record) ? [] : [Self.noAccount]
    case .file: []
    case .channel(let record): losses(of: record.channel)
    case .member(let record): losses(of: record.member)
    case .message(let record): losses(of: record.message)
    }
  }

  private static let noAccount = Loss(
    field: "user", treatment: .dropped, explanation: "without a profile; a client needs no account there")

  /// Whether there is anything to write of a user.
  func hasProfile(_ record: UserRecord) -> Bool {
    let user = record.user
    return !record.isPlaceholder && (user.name != nil || user.avatarURL != nil || user.customData != nil)
  }

  private func kept(_ field: String, _ explanation: String) -> Loss {
    Loss(field: field, treatment: .keptElsewhere, explanation: explanation)
  }

  private func losses(of channel: Channel) -> [Loss] {
    var losses: [Loss] = []
    if channel.createdAt != nil { losses.append(kept("channel.createdAt", "the service sets its own; kept in attr")) }
    if channel.createdBy != nil { losses.append(kept("channel.createdBy", "kept in attr")) }
    if channel.isFrozen { losses.append(kept("channel.isFrozen", "no such state; kept in attr")) }
    if channel.isDistinct { losses.append(kept("channel.isDistinct", "imported as an own conversation; kept in attr")) }
    switch channel.kind {
    case .direct: losses.append(kept("channel.kind", "a conversation of two that is not unique; kept in attr"))
    case .temporary, .unknown: losses.append(kept("channel.kind", "becomes a group; kept in attr"))
    case .group, .open, .service: break
    }
    return losses
  }

  private func losses(of member: Member) -> [Loss] {
    var losses: [Loss] = []
    func drop(_ field: String, _ explanation: String) {
      losses.append(Loss(field: field, treatment: .dropped, explanation: explanation))
    }
    if member.state != .joined { drop("member.state", "only present members are stored") }
    if member.joinedAt != nil { drop("member.joinedAt", "the service keeps no time of joining") }
    if member.readPosition != nil { drop("member.readPosition", "only the client itself can mark as read") }
    if member.deliveredPosition != nil { drop("member.deliveredPosition", "only the client itself can acknowledge") }
    if member.isMuted, member.mutedUntil != nil {
      losses.append(Loss(field: "member.mutedUntil", treatment: .degraded, explanation: "silenced without end"))
    }
    if case .unknown = member.role {
      losses.append(Loss(field: "member.role", treatment: .degraded, explanation: "becomes an ordinary member"))
    }
    return losses
  }

  private func losses(of message: Message) -> [Loss] {
    let place = "kept in _lcattrs"
    var losses = [kept("message.createdAt", "the service sets its own time; \(place)")]
    if message.editedAt != nil { losses.append(kept("message.editedAt", place)) }
    if message.sender == nil { losses.append(kept("message.sender", "written as \(Self.service); \(place)")) }
    if message.senderName != nil { losses.append(kept("message.senderName", place)) }
    if message.replyTo != nil { losses.append(kept("message.replyTo", place)) }
    if message.threadParent != nil { losses.append(kept("message.threadParent", place)) }
    if message.customType != nil { losses.append(kept("message.customType", place)) }
    if !message.reactions.isEmpty { losses.append(kept("message.reactions", place)) }
    if message.mentions.users.count > Self.mentionLimit {
      losses.append(kept("message.mentions", "at most \(Self.mentionLimit) are told; all \(place)"))
    }
    if let data = message.customData, LeanCloudBody.spreadable(data) == nil {
      losses.append(kept("message.customData", "as text; \(place)"))
    }
    switch message.content {
    case .text, .image, .audio, .video, .file, .location: break
    default: losses.append(kept("message.content", "a readable text in its place; \(place)"))
    }
    return losses
  }
}
