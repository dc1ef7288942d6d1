import ChatInterchange
import SendbirdWire
import UnifiedChat

/// What Sendbird cannot keep in a form of its own. All that is `keptElsewhere` comes back by `SendbirdSource`.
enum SendbirdLosses {
  static func of(_ record: Record, _ key: EnvelopeKey?) -> [Loss] {
    switch record {
    case .user(let record): SendbirdUserForm(record, origin: record.origin, key).losses
    case .channel(let record): channel(record.channel)
    case .member(let record): member(record.member)
    case .message(let record): message(record)
    case .file: []
    }
  }

  private static let inData = "in the channel's data, beside the app's own"
  private static let inEnvelope = "in the message's data, beside the app's own"

  private static func kept(_ field: String, _ explanation: String) -> Loss {
    Loss(field: field, treatment: .keptElsewhere, explanation: explanation)
  }

  private static func channel(_ channel: Channel) -> [Loss] {
    var losses: [Loss] = []
    switch channel.kind {
    case .direct, .group, .open: break
    default: losses.append(kept("channel.kind", "a group; the original kind \(inData)"))
    }
    if channel.createdAt != nil { losses.append(kept("channel.createdAt", inData)) }
    if channel.createdBy != nil { losses.append(kept("channel.createdBy", inData)) }
    if let name = channel.name, name.unicodeScalars.count > SendbirdLimits.nameLength {
      losses.append(kept("channel.name", "cut to 191 characters; whole \(inData)"))
    }
    if let url = channel.coverURL, url.unicodeScalars.count > SendbirdLimits.urlLength {
      losses.append(kept("channel.coverURL", inData))
    }
    if !channel.metadata.isEmpty, !SendbirdMapping.fits(channel.metadata) {
      losses.append(kept("channel.metadata", inData))
    }
    return losses
  }

  private static func member(_ member: Member) -> [Loss] {
    var losses: [Loss] = []
    switch member.role {
    case .owner: losses.append(kept("member.role", "owner becomes operator; the role stands \(inData)"))
    case .unknown: losses.append(kept("member.role", "no role at Sendbird; it stands \(inData)"))
    case .admin, .member: break
    }
    if member.state == .left || member.state == .banned {
      losses.append(kept("member.state", "not a member at Sendbird; the state stands \(inData)"))
    }
    if member.joinedAt != nil { losses.append(kept("member.joinedAt", inData)) }
    if member.isMuted { losses.append(kept("member.muted", "muted for the time that is left; exactly \(inData)")) }
    return losses
  }

  private static func message(_ record: MessageRecord) -> [Loss] {
    let message = record.message
    let origin = record.origin ?? Origin(vendor: SendbirdErrors.vendor, id: message.id?.rawValue ?? "")
    let form = SendbirdForm(message, purpose: .migration(origin))
    var losses: [Loss] = []
    for field in form.kept.sorted(by: { $0.rawValue < $1.rawValue }) {
      switch field {
      case .content: losses.append(content(message))
      // Mentions of users are Sendbird's own; what stands in the envelope is a second copy.
      case .mentions where !message.mentions.everyone: break
      case .mentions: losses.append(kept("message.mentions", "the mention of everyone \(inEnvelope)"))
      case .senderName: losses.append(kept("message.senderName", inEnvelope))
      default: losses.append(kept("message.\(field.rawValue)", inEnvelope))
      }
    }
    return losses
  }

  private static func content(_ message: Message) -> Loss {
    switch message.content {
    case .text(let text):
      text.isEmpty
        ? kept("message.content", "an empty text becomes a space; it stands \(inEnvelope)")
        : kept("message.content", "cut to 5000 characters; whole \(inEnvelope)")
    case .image, .audio, .video, .file:
      kept("message.content.attachment", "what Sendbird's file lacks (digest, measures) stands \(inEnvelope)")
    default:
      kept("message.content", "\(message.content.kindName) becomes a readable text; exactly \(inEnvelope)")
    }
  }
}
