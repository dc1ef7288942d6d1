import ChatCrypto
import Foundation
import UnifiedChat

/// Reactions as messages of their own, for services whose clients show no reactions: each answers the message that it is
/// about, at the same time, by whom it is from.
///
/// Its id follows from what it says, so that a run that is started again finds what it wrote.
enum ReactionForm {
  /// Of the messages, so that an app can tell them from what people wrote.
  static let customType = "reaction"
  static let mark = "~reaction~"

  static func id(of key: String, by user: UserID, on message: MessageID) -> MessageID {
    let digest = Hex.encode(Digest.sha256(Array(user.rawValue.utf8) + [0] + Array(key.utf8)))
    return MessageID(message.rawValue + mark + digest.prefix(16))
  }

  /// The message that the reaction `id` is about; nil for what is no reaction.
  static func message(of id: MessageID) -> MessageID? {
    id.rawValue.range(of: mark, options: .backwards).map { MessageID(String(id.rawValue[..<$0.lowerBound])) }
  }

  /// What is written beside `record`, whose reactions have the ids of their users at the destination.
  /// - Parameter originals: the users' own ids, in the same order: ids of reactions are made of those.
  static func messages(of record: MessageRecord, reactions: [Reaction], originals: [Reaction]) -> [MessageRecord] {
    guard let target = record.message.id, let origin = record.origin else { return [] }
    return zip(reactions, originals).flatMap { reaction, original in
      zip(reaction.users, original.users).map { user, own in
        let id = id(of: reaction.key, by: own, on: target)
        var message = Message(
          channel: record.message.channel, id: id, sender: user, position: record.message.position,
          createdAt: record.message.createdAt, content: .text(reaction.key))
        message.replyTo = Reply(id: target)
        message.customType = customType
        return MessageRecord(
          message: message, origin: Origin(vendor: origin.vendor, id: id.rawValue, channel: origin.channel))
      }
    }
  }
}

extension Loss {
  static let reactionMessages = Loss(
    field: "message.reactions", treatment: .degraded,
    explanation: "each reaction is a message of its own that answers this one, as wanted")
  static let lostReactions = Loss(
    field: "message.reactions", treatment: .dropped, explanation: "the message that they are on was not written")
  static let lateReactions = Loss(
    field: "message.reactions", treatment: .dropped,
    explanation: "reactions changed after the message was written; the destination could not follow")
}
