import ChatInterchange
import ChatJSON
import UnifiedChat

/// Wire messages as the contract's, with the envelope of an import or of richer content taken off.
public enum SendbirdMapping {
  /// What a client shows. An envelope that cannot be read is shown as the custom data that it is.
  public static func message(_ wire: SendbirdMessage, raw: JSONObject) -> Message {
    if let read = try? record(wire, raw: raw, .client) { return read.record.message }
    var message = bare(wire, raw: raw)
    message.customData = JSONText(unchecked: wire.data)
    return message
  }

  /// What an import signs its envelope in the message for. The service lets nobody but an import set a time.
  public static func place(channel: ChannelID, sender: UserID?, time: Int64) -> EnvelopePlace {
    .message(channel: channel.rawValue, sender: sender?.rawValue ?? "", time: time)
  }

  /// What a tool reads: the original's identity comes back as `origin`. With the reason why an envelope in the message is
  /// not believed.
  /// - Throws: `RecordError` when the message holds an envelope of ours that makes no sense.
  public static func record(
    _ wire: SendbirdMessage, raw: JSONObject, _ view: EnvelopeView
  ) throws(RecordError) -> (record: MessageRecord, finding: EnvelopeFinding?) {
    var message = bare(wire, raw: raw)
    let (provenance, customData) = Provenance.unwrap(wire.data)
    message.customData = customData
    guard let provenance, let envelope = provenance.json().object else {
      return (MessageRecord(message: message, raw: text(raw)), nil)
    }
    let isImport = provenance.origin.vendor != SendbirdErrors.vendor || provenance.origin.channel != nil
    let (trust, finding) = view.trust(
      envelope, at: place(channel: wire.channelURL, sender: wire.user?.id, time: wire.createdAt), isDraft: !isImport)
    guard let trust else {
      message.customData = JSONText(unchecked: wire.data)
      return (MessageRecord(message: message, raw: text(raw)), finding)
    }
    let native = message
    if isImport, case .importer = trust { message.senderName = nil }
    if !wire.isRemoved { try overlay(provenance, trust, on: &message, native: native, wire: wire) }
    if message.customType?.hasPrefix(SendbirdForm.customTypePrefix) == true, provenance.kept["customType"] == nil {
      message.customType = nil
    }
    return (MessageRecord(message: message, origin: isImport ? provenance.origin : nil, raw: text(raw)), finding)
  }

  /// Kept fields win over the bare form, except where a change was made at Sendbird later.
  private static func overlay(
    _ provenance: Provenance, _ trust: EnvelopeTrust, on message: inout Message, native: Message, wire: SendbirdMessage
  ) throws(RecordError) {
    try provenance.apply(to: &message, trust)
    if provenance.kept["content"] != nil {
      let expected = SendbirdContent.form(of: message)
      if let file = wire.file, var attachment = message.content.attachment {
        attachment.url = file.url
        message.content.attachment = attachment
      } else if expected.type != wire.type || expected.text != wire.text {
        // Somebody's other client edited the readable text and left the envelope as it was.
        message.content = native.content
      }
    }
    if wire.updatedAt > 0 { message.editedAt = native.editedAt }
    if !wire.reactions.isEmpty { message.reactions = native.reactions }
  }

  private static func bare(_ wire: SendbirdMessage, raw: JSONObject) -> Message {
    var content =
      SendbirdContent.content(type: wire.type, text: wire.text, file: wire.file)
      ?? .unknown(kind: wire.type, raw: text(raw))
    if wire.isRemoved {
      content = .recalled(by: nil, at: wire.updatedAt > 0 ? Timestamp(milliseconds: wire.updatedAt) : nil)
    }
    let createdAt = Timestamp(milliseconds: wire.createdAt)
    return Message(
      channel: wire.channelURL, id: MessageID(String(wire.id)),
      clientMessageID: wire.requestID.isEmpty ? nil : ClientMessageID(wire.requestID), sender: wire.user?.id,
      senderName: wire.user.flatMap { $0.nickname.isEmpty ? nil : $0.nickname },
      position: MessagePosition(time: createdAt, number: wire.id), createdAt: createdAt, content: content,
      mentions: Mentions(users: wire.mentionedUsers.map(\.id), everyone: wire.mentionType == "channel"),
      threadParent: wire.parentID == 0 ? nil : MessageID(String(wire.parentID)),
      customType: wire.customType.isEmpty ? nil : wire.customType,
      reactions: wire.reactions.map { Reaction(key: $0.key, users: $0.users) },
      editedAt: wire.updatedAt > 0 ? Timestamp(milliseconds: wire.updatedAt) : nil)
  }

  private static func text(_ json: JSONObject) -> JSONText { JSONText(unchecked: JSONValue.object(json).text()) }
}
