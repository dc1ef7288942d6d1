import ChatJSON
import UnifiedChat

extension SendbirdMessage {
  /// Which parts of the REST form are shown: the shape flags of a request.
  public struct Shape: Sendable, Hashable {
    public var metaArrays: Bool
    public var reactions: Bool
    public var thread: Bool
    public var parent: Bool

    public init(metaArrays: Bool = true, reactions: Bool = true, thread: Bool = true, parent: Bool = true) {
      self.metaArrays = metaArrays
      self.reactions = reactions
      self.thread = thread
      self.parent = parent
    }

    public init(_ query: SendbirdQuery) {
      self.init(
        metaArrays: query.bool("with_sorted_meta_array") ?? false, reactions: query.bool("include_reactions") ?? false,
        thread: query.bool("include_thread_info") ?? false,
        parent: query.bool("include_parent_message_info") ?? false)
    }
  }

  /// The REST form with all parts.
  public var json: JSONObject { json(Shape()) }

  public func json(_ shape: Shape) -> JSONObject {
    var json: JSONObject = [
      "message_id": .int(id), "type": .string(type), "channel_url": .string(channelURL.rawValue),
      "channel_type": .string(isOpen ? "open" : "group"), "message": .string(text),
      "data": .string(file == nil ? data : ""),
      "custom_type": .string(customType), "created_at": .int(createdAt), "updated_at": .int(updatedAt),
    ]
    if let user {
      var sender = user.json
      sender["role"] = .string(senderRole)
      json["user"] = .object(sender)
    }
    json["mention_type"] = .string(mentionType)
    json["mentioned_users"] = .array(mentionedUsers.map { .object($0.json) })
    json["mentioned_message_template"] = .string(mentionTemplate)
    if shape.metaArrays { json["sorted_metaarray"] = .array(metaArrays.map(\.json)) }
    if shape.reactions { json["reactions"] = .array(reactions.map(\.json)) }
    if shape.thread, let thread { json["thread_info"] = .object(thread.json) }
    json["parent_message_id"] = .int(parentID)
    if shape.parent, let parentInfo { json["parent_message_info"] = .object(parentInfo) }
    json["is_reply_to_channel"] = .bool(isReplyToChannel)
    json["is_removed"] = .bool(isRemoved)
    json["silent"] = .bool(isSilent)
    json["is_op_msg"] = .bool(senderRole == "operator")
    json["translations"] = .object(translations)
    json["message_survival_seconds"] = -1
    json["req_id"] = .string(requestID)
    json["file"] = .object(fileJSON)
    if let file {
      json["thumbnails"] = file.thumbnailJSON
      json["require_auth"] = .bool(file.requiresAuthentication)
    }
    json.fill(from: unknown)
    return json
  }

  private var fileJSON: JSONObject {
    guard let file else { return JSONObject() }
    return [
      "url": .string(file.url), "name": .string(file.name), "type": .string(file.type), "size": .int(file.size),
      "data": .string(data),
    ]
  }

  /// The frame's form. `requestID` goes only into the copy for the sending socket; all others have "".
  public func frame(_ command: String, requestID: String, isSuper: Bool) -> SendbirdFrame {
    var json: JSONObject = [
      "msg_id": .int(id), "req_id": .string(requestID), "channel_url": .string(channelURL.rawValue),
      "channel_type": .string(isOpen ? "open" : "group"), "is_super": .bool(isSuper), "ts": .int(createdAt),
      "created_at": .int(createdAt), "updated_at": .int(updatedAt), "custom_type": .string(customType),
    ]
    if let file {
      json["url"] = .string(file.url)
      json["name"] = .string(file.name)
      json["type"] = .string(file.type)
      json["size"] = .int(file.size)
      json["custom"] = .string(data)
      json["thumbnails"] = file.thumbnailJSON
      json["require_auth"] = .bool(file.requiresAuthentication)
    } else {
      json["message"] = .string(text)
      json["data"] = .string(data)
    }
    if let user { json["user"] = .object(user.frameJSON(role: senderRole)) }
    json["mention_type"] = .string(mentionType)
    json["mentioned_users"] = .array(mentionedUsers.map { .object($0.json) })
    json["mentioned_message_template"] = .string(mentionTemplate)
    json["sorted_metaarray"] = .array(metaArrays.map(\.json))
    if parentID != 0 {
      json["parent_message_id"] = .int(parentID)
      json["root_message_id"] = .int(parentID)
      json["is_reply_to_channel"] = .bool(isReplyToChannel)
      if let parentInfo { json["parent_message_info"] = .object(parentInfo) }
    }
    json["silent"] = .bool(isSilent)
    json["translations"] = .object(translations)
    json["is_op_msg"] = .bool(senderRole == "operator")
    json["is_guest_msg"] = false
    json["message_survival_seconds"] = -1
    json["force_update_last_message"] = false
    json.fill(from: unknown)
    return SendbirdFrame(command, json)
  }
}
