import ChatJSON
import ChatTransport
import SendbirdWire
import UnifiedChat

/// What a sender says, by frame, by REST or by migration: three spellings of the same.
struct MessageInput {
  var type: String
  var text: String
  var data: String
  var customType: String
  var mentionType: String
  var mentions: [String]
  var file: SendbirdFile?
  var metaArrays: [SendbirdMetaArray]
  var parentID: Int64
  var isReplyToChannel: Bool
  var isSilent: Bool
  var isPinned: Bool
  var mentionTemplate: String
  /// nil when the sender says nothing of it.
  var pushOption: String?
  var sendsPush: Bool?
  /// Whether every array beside the message had the form of one.
  var hasGoodArrays: Bool
  /// Languages that the text is wanted in.
  var languages: [String]
  var hasText: Bool

  init(frame json: JSONObject, type: String) {
    self.init(common: json, type: type)
    if type == "FILE" {
      data = json.text("custom") ?? json.text("data") ?? ""
      file = SendbirdFile(
        url: json.text("url") ?? "", name: json.text("name") ?? "", type: json.text("type") ?? "",
        size: json.number("size") ?? 0, requiresAuthentication: json.flag("require_auth") ?? false,
        thumbnails: Self.thumbnails(json))
    }
  }

  init(rest json: JSONObject) {
    self.init(common: json, type: json.text("message_type") ?? "")
    isSilent = json.flag("is_silent") ?? json.flag("silent") ?? false
    if type == "FILE" {
      data = json.text("custom_field") ?? json.text("data") ?? ""
      file = SendbirdFile(
        url: json.text("url") ?? "", name: json.text("file_name") ?? "", type: json.text("file_type") ?? "",
        size: json.number("file_size") ?? 0, requiresAuthentication: json.flag("require_auth") ?? false,
        thumbnails: Self.thumbnails(json))
    }
  }

  private init(common json: JSONObject, type: String) {
    self.type = type
    hasText = json.text("message") != nil
    text = json.text("message") ?? ""
    data = json.text("data") ?? ""
    customType = json.text("custom_type") ?? ""
    mentionType = json.text("mention_type") ?? "users"
    mentions = json.texts("mentioned_user_ids")
    let arrays = json["sorted_metaarray"]?.array ?? json["metaarray"]?.array ?? []
    metaArrays = arrays.compactMap { item in
      item["key"]?.string.map { SendbirdMetaArray(key: $0, values: item.object?.texts("value") ?? []) }
    }
    hasGoodArrays = arrays.allSatisfy(MetaArrays.isGood) && metaArrays.count == Set(metaArrays.map { Key($0.key) }).count
    pushOption = json.text("push_option")
    sendsPush = json.flag("send_push")
    parentID = json.number("parent_message_id") ?? json.number("root_message_id") ?? 0
    isReplyToChannel = json.flag("reply_to_channel") ?? false
    isSilent = json.flag("silent") ?? false
    isPinned = json.flag("pin_message") ?? false
    mentionTemplate = json.text("mentioned_message_template") ?? ""
    languages = json.texts("target_langs") + json.texts("translation_target_langs")
  }

  private static func thumbnails(_ json: JSONObject) -> [SendbirdFile.Thumbnail] {
    json.list("thumbnails").compactMap { value in
      guard let object = value.object, let url = object.text("url") else { return nil }
      return SendbirdFile.Thumbnail(
        url: url, width: object.number("width"), height: object.number("height"),
        realWidth: object.number("real_width"), realHeight: object.number("real_height"))
    }
  }
}

// Storing and changing messages.
extension SendbirdEmulator {
  func check(_ input: MessageInput, in room: Room) throws(SendbirdFault) {
    guard ["MESG", "FILE", "ADMM"].contains(input.type) else {
      throw SendbirdFault(400111, "message_type must be MESG, FILE or ADMM.")
    }
    if input.type == "FILE" {
      guard let file = input.file, !file.url.isEmpty else { throw SendbirdFault(400105, "url is missing.") }
    } else if !input.hasText {
      throw SendbirdFault(400105, "message is missing.")
    }
    guard ["users", "channel"].contains(input.mentionType) else { throw SendbirdFault(900025, "Bad mention_type.") }
    if hasRealLimits {
      try check(length: input.text, SendbirdLimits.messageLength, "message")
      try check(length: input.customType, SendbirdLimits.customTypeLength, "custom_type")
    }
    guard input.hasGoodArrays else { throw SendbirdFault(900029, "An array needs a key and a list of texts.") }
    try check(arrays: input.metaArrays)
    guard ["default", "suppress", nil].contains(input.pushOption) else {
      throw SendbirdFault(900026, "Bad push_option.")
    }
    if input.isPinned, room.pinned.count >= Self.pinLimit { throw SendbirdFault(400203, "Too many pinned messages.") }
    if input.parentID != 0, room.messageByID[input.parentID] == nil {
      throw SendbirdFault(400201, "Parent message not found.")
    }
  }

  /// As many keys, and values under each, as a message may have.
  func check(arrays: [SendbirdMetaArray]) throws(SendbirdFault) {
    guard hasRealLimits else { return }
    if arrays.count > SendbirdLimits.metaArrays { throw SendbirdFault(900027, "Too many keys in metaarray.") }
    for array in arrays {
      if array.values.count > SendbirdLimits.metaArrayValues {
        throw SendbirdFault(900028, "Too many values in metaarray.")
      }
      if array.key.unicodeScalars.count > SendbirdLimits.metadataKeyLength {
        throw SendbirdFault(900029, "A key of metaarray is too long.")
      }
    }
  }

  func check(length text: String, _ limit: Int, _ field: String) throws(SendbirdFault) {
    if hasRealLimits, text.unicodeScalars.count > limit {
      throw SendbirdFault(400110, "\(field) is longer than \(limit).")
    }
  }

  /// Stores a new message and counts it, without telling anybody. `time` is set by back-dating and migration.
  func store(
    _ input: MessageInput, in room: Room, from sender: Person?, requestID: String = "", at time: Int64? = nil,
    marksRead: Bool = true
  ) throws(SendbirdFault) -> StoredMessage {
    try check(input, in: room)
    let message = StoredMessage(id: newMessageID(), type: input.type, createdAt: time ?? now)
    fill(message, input, sender: sender, requestID: requestID)
    if !room.isEphemeral { room.insert(message) }
    count(message, in: room, marksRead: marksRead)
    touch(room)
    // Told by the message's broadcast, behind the message itself.
    if input.isPinned, !room.isEphemeral { room.pinned.append(message.id) }
    return message
  }

  func fill(_ message: StoredMessage, _ input: MessageInput, sender: Person?, requestID: String) {
    message.requestID = requestID
    message.text = input.text
    message.data = input.data
    message.customType = input.customType
    message.sender = sender
    message.mentionType = input.mentionType
    message.mentions = input.mentions.map { UserID($0) }.filter { people[$0] != nil }
    message.file = input.file
    message.metaArrays = input.metaArrays
    message.parentID = input.parentID
    message.isReplyToChannel = input.isReplyToChannel
    message.isSilent = input.isSilent
    message.mentionTemplate = input.mentionTemplate
    message.translations = translations(of: input.text, into: input.languages)
    // Notices push only when they are told to.
    message.pushes = input.pushOption != "suppress" && input.sendsPush ?? (input.type != "ADMM")
  }

  /// Raises the unread numbers of the others, and lifts the sender's own mark.
  private func count(_ message: StoredMessage, in room: Room, marksRead: Bool) {
    guard !room.isOpen else { return }
    for membership in room.members.values where membership.isJoined {
      if membership.person === message.sender {
        guard marksRead else { continue }
        membership.readAt = max(membership.readAt, message.createdAt)
        membership.deliveredAt = max(membership.deliveredAt, message.createdAt)
        membership.unread = 0
        membership.mentions = 0
      } else if !message.isSilent, message.createdAt > membership.readAt || message.createdAt == now {
        membership.unread &+= 1
        if message.mentions(membership.person.id) { membership.mentions &+= 1 }
      }
      if membership.hiddenState == "hidden_allow_auto_unhide", !message.isSilent { membership.hiddenState = "unhidden" }
    }
  }

  /// Counts again from the receipt; super groups no further than they show.
  func recount(_ membership: Membership, in room: Room) {
    (membership.unread, membership.mentions) = (0, 0)
    for message in room.messages.reversed() {
      if message.createdAt <= membership.readAt || (room.isSuper && membership.unread > 100) { break }
      guard isCounted(message, for: membership) else { continue }
      membership.unread &+= 1
      if message.mentions(membership.person.id) { membership.mentions &+= 1 }
    }
  }

  private func isCounted(_ message: StoredMessage, for membership: Membership) -> Bool {
    !message.isRemoved && !message.isSilent && message.sender !== membership.person
      && message.createdAt > membership.historyOffset
  }

  /// Applies an edit; returns `old_values`.
  func change(_ message: StoredMessage, in room: Room, by json: JSONObject) throws(SendbirdFault) -> JSONObject {
    let old: JSONObject = [
      "mention_type": .string(message.mentionType),
      "mentioned_user_ids": .array(message.mentions.map { .string($0.rawValue) }),
    ]
    let changed = try json.object("metaarray").map { (arrays) throws(SendbirdFault) in
      try MetaArrays.changed(message.metaArrays, by: arrays)
    }
    if let changed { try check(arrays: changed) }
    if let text = json.text("message") {
      try check(length: text, SendbirdLimits.messageLength, "message")
      message.text = text
    }
    if let data = json.text("data") ?? json.text("custom_field") { message.data = data }
    if let type = json.text("custom_type") {
      try check(length: type, SendbirdLimits.customTypeLength, "custom_type")
      message.customType = type
    }
    if let url = json.text("url") { message.file?.url = url }
    if let type = json.text("mention_type") { message.mentionType = type }
    if json["mentioned_user_ids"] != nil {
      message.mentions = json.texts("mentioned_user_ids").map { UserID($0) }.filter { people[$0] != nil }
    }
    if let changed { message.metaArrays = changed }
    message.updatedAt = max(now, message.updatedAt &+ 1)
    recordChange(of: message, in: room)
    touch(room)
    return old
  }

  func remove(_ message: StoredMessage, in room: Room) {
    message.isRemoved = true
    message.updatedAt = now
    room.pinned.removeAll { $0 == message.id }
    for membership in room.members.values where message.createdAt > membership.readAt { recount(membership, in: room) }
    recordChange(of: message, in: room)
    touch(room)
    tellWebhook(.messageDelete, in: room, message: message)
    let frame = SendbirdFrame(
      "DELM",
      [
        "msg_id": .int(message.id), "channel_url": .string(room.url.rawValue),
        "channel_type": .string(room.isOpen ? "open" : "group"), "channel_id": .int(room.number), "ts": .int(now),
      ])
    for person in present(in: room) { for id in sockets(of: person, in: room) { push(frame, to: id) } }
    tellThread(of: message, in: room)
  }

  /// `MTHD` after a reply was added or removed.
  func tellThread(of message: StoredMessage, in room: Room) {
    guard message.parentID != 0, let parent = room.messageByID[message.parentID] else { return }
    recordChange(of: parent, in: room)
    let thread =
      thread(of: parent, in: room)
      ?? SendbirdThread(replyCount: 0, mostReplies: [], lastRepliedAt: 0, updatedAt: now)
    let frame = SendbirdFrame(
      "MTHD",
      [
        "channel_url": .string(room.url.rawValue), "channel_type": .string(room.isOpen ? "open" : "group"),
        "root_message_id": .int(parent.id), "parent_message_id": .int(parent.id),
        "thread_info": .object(thread.json), "ts": .int(now),
      ])
    for person in present(in: room) { for id in sockets(of: person, in: room) { push(frame, to: id) } }
  }
}
