import ChatInterchange
import ChatJSON
import UnifiedChat

extension OpenIMMessageData {
  /// A message as it was read.
  public struct Read: Sendable, Hashable {
    public var message: Message
    /// What an import left in `ex`.
    public var origin: Origin?
    /// Why an envelope in `ex` is not believed.
    public var finding: EnvelopeFinding?
  }

  /// The unified message as a client shows it; nil for what is never shown: placeholders of the sequence, typing hints.
  public func message(in conversationID: String) -> Message? { read(in: conversationID, .client)?.message }

  /// What an import signs its envelope in a message for. The service tells the time that the import gave, unless it was
  /// one that it does not take: that one is among what is kept.
  public static func place(
    in conversationID: String, sender: String, time: Int64, _ extra: OpenIMExtra
  ) -> EnvelopePlace {
    .message(channel: conversationID, sender: sender, time: extra.kept["createdAt"] == nil ? time : nil)
  }

  /// What was kept in `ex` is put back, as far as `view` believes it. A kept field that cannot be read leaves the vendor's
  /// own form standing. nil for what is never shown.
  public func read(in conversationID: String, _ view: EnvelopeView) -> Read? {
    guard !isPlaceholder, contentType != OpenIMContentType.typing else { return nil }
    var message = ownMessage(in: conversationID)
    let extra = OpenIMExtra(ex)
    message.customData = extra.customData
    let (trust, finding) = extra.trust(
      view, at: Self.place(in: conversationID, sender: sendID, time: sendTime, extra))
    if trust == nil { message.customData = JSONText(unchecked: ex) }
    let origin = trust == nil ? nil : extra.origin
    if case .recalled = message.content {
      // A tombstone keeps its identity and nothing that was said, unless an import kept the original notice.
      message.customData = nil
      guard case .importer? = trust, origin != nil else {
        return Read(message: message, origin: origin, finding: finding)
      }
    }
    var restored = message
    if let trust, (try? extra.apply(to: &restored, trust)) != nil { message = restored }
    return Read(message: message, origin: origin, finding: finding)
  }

  private func ownMessage(in conversationID: String) -> Message {
    var message = Message(
      channel: ChannelID(conversationID), id: serverMsgID.isEmpty ? nil : MessageID(serverMsgID),
      clientMessageID: clientMsgID.isEmpty ? nil : ClientMessageID(clientMsgID),
      sender: sendID.isEmpty ? nil : UserID(sendID), senderName: senderNickname.isEmpty ? nil : senderNickname,
      position: seq > 0 ? MessagePosition(sequence: seq) : nil, createdAt: Timestamp(milliseconds: sendTime),
      content: .text(""))
    if contentType == OpenIMNotice.revoked {
      message.content = revoked
    } else if OpenIMContentType.isNotice(contentType) {
      message.content = .system(systemNotice)
      message.sender = nil
      message.senderName = nil
    } else {
      let decoded = OpenIMElements.decode(type: contentType, content: content)
      message.content = decoded.content
      message.mentions = decoded.mentions
      message.replyTo = decoded.replyTo
    }
    return message
  }

  /// A revoked message in history has other keys than the notice that told of it (reference §4.2).
  private var revoked: MessageContent {
    let detail = OpenIMNotice.detail(of: content)
    let revoker = detail?["revokerID"]?.string ?? detail?["revokerUserID"]?.string
    let time = detail?["revokeTime"]?.int
    return .recalled(
      by: revoker.flatMap { $0.isEmpty ? nil : UserID($0) }, at: time.map { Timestamp(milliseconds: $0) })
  }

  private var systemNotice: SystemNotice {
    let detail = OpenIMNotice.detail(of: content) ?? .object([:])
    var notice = SystemNotice(kind: "other", raw: JSONText(unchecked: detail.text()))
    func user(_ member: JSONValue?) -> UserID? { member?["userID"]?.string.map { UserID($0) } }
    func users(_ key: String) -> [UserID] { (detail[key]?.array ?? []).compactMap { user($0) } }
    notice.actor = user(detail["opUser"])
    switch contentType {
    case OpenIMNotice.groupCreated:
      notice.kind = "channelCreated"
      notice.subjects = users("memberList")
    case OpenIMNotice.memberInvited:
      notice.kind = "memberJoined"
      notice.subjects = users("invitedUserList")
    case OpenIMNotice.memberEntered:
      notice.kind = "memberJoined"
      notice.subjects = [user(detail["entrantUser"])].compactMap(\.self)
      notice.actor = notice.subjects.first
    case OpenIMNotice.memberKicked:
      notice.kind = "memberLeft"
      notice.subjects = users("kickedUserList")
    case OpenIMNotice.memberQuit:
      notice.kind = "memberLeft"
      notice.subjects = [user(detail["quitUser"])].compactMap(\.self)
      notice.actor = notice.subjects.first
    case OpenIMNotice.groupInfoSet, OpenIMNotice.announcementSet, OpenIMNotice.groupNameSet,
      OpenIMNotice.groupMuted, OpenIMNotice.groupUnmuted, OpenIMNotice.groupDismissed, OpenIMNotice.ownerTransferred:
      notice.kind = "channelChanged"
    case OpenIMNotice.memberMuted, OpenIMNotice.memberUnmuted:
      notice.kind = "action"
      notice.subjects = [user(detail["mutedUser"])].compactMap(\.self)
    case OpenIMContentType.announcement:
      notice.actor = UserID(sendID)
      notice.text = detail["text"]?.string
    default:
      notice.text = detail["text"]?.string
    }
    return notice
  }
}

/// A unified message as the vendor takes it.
public struct OpenIMOutgoing: Sendable, Hashable {
  public var element: OpenIMElements.Encoded
  public var extra: OpenIMExtra

  /// The message's content in the vendor's form, and what the form cannot hold in `ex`: what was written is read
  /// again, and each field that differs is kept, so that nothing is lost by a slip of the mapping.
  public init(_ message: Message, sender: String, form: OpenIMElements.Form, origin: Origin? = nil) {
    var message = message
    if message.senderName?.isEmpty == true { message.senderName = nil }
    element = OpenIMElements.encode(
      message.content, mentions: message.mentions, replyTo: message.replyTo, form: form)
    extra = OpenIMExtra(origin: origin, customData: message.customData)
    if Self.isPlain(message, sender: sender) { return }
    var back = OpenIMMessageData()
    back.sendID = sender
    back.senderNickname = message.senderName ?? ""
    back.sendTime = message.createdAt.milliseconds
    back.contentType = element.type
    back.content = element.bytes
    guard let read = back.message(in: message.channel.rawValue) else { return }
    for field in MessageField.allCases where field != .customData {
      let wanted = message.value(of: field)
      if wanted != read.value(of: field) { extra.kept[field.rawValue] = wanted ?? .null }
    }
  }

  /// The most frequent kind of message, which is written as it is.
  private static func isPlain(_ message: Message, sender: String) -> Bool {
    guard case .text(let text) = message.content, !text.isEmpty, message.mentions.isEmpty, message.replyTo == nil else { return false }
    return message.threadParent == nil && message.customType == nil && message.reactions.isEmpty
      && message.editedAt == nil && message.sender?.rawValue.utf8.elementsEqual(sender.utf8) == true
  }
}
