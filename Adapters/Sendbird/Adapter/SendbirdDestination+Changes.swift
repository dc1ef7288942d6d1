import ChatInterchange
import ChatJSON
import SendbirdWire
import UnifiedChat

/// What changes or takes back what an import wrote. What is gone already is no error.
extension SendbirdDestination {
  /// The Platform API edits a text and its data; the file of a message stays, so a message that becomes another kind of
  /// one is beyond it.
  public func changeMessage(
    _ message: MessageRecord, id: MessageID, in channel: ChannelID
  ) async throws(ChatError) -> PutOutcome<MessageID> {
    let form = form(message, in: channel)
    let path = [try await kind(of: channel), channel.rawValue, "messages", id.rawValue]
    let old = try await admin.call("GET", path)
    guard old.text("type") == form.type, form.file.map({ $0.url == old.object("file")?.text("url") }) ?? true else {
      throw .unsupported(.messageEdit, operation: .writeDestination)
    }
    var body: JSONObject = [
      "message_type": .string(form.type), "data": .string(form.data), "custom_type": .string(form.customType),
      "mention_type": "users", "mentioned_user_ids": .array(form.mentions.users.map { .string($0.rawValue) }),
    ]
    if form.file == nil { body["message"] = .string(form.text) }
    _ = try await admin.call("PUT", path, body: body)
    return .skipped(
      Loss(
        field: "message.editedAt", treatment: .degraded,
        explanation: "changed after it was written; the service notes the time of that"))
  }

  public func removeMessages(_ ids: [MessageID], in channel: ChannelID) async throws(ChatError) {
    let kind = try await kind(of: channel)
    for id in ids {
      try await ignoringAbsence { () throws(ChatError) in
        _ = try await admin.call("DELETE", [kind, channel.rawValue, "messages", id.rawValue])
      }
    }
  }

  public func removeMembers(_ users: [UserID], from channel: ChannelID) async throws(ChatError) {
    try await ignoringAbsence { () async throws(ChatError) in
      let present = try await admin.allMembers(of: channel)
      try await remove(users.filter(present.contains), from: channel)
    }
    places[channel]?.members.subtract(users)
    places[channel]?.guests.subtract(users)
  }

  public func removeChannel(_ channel: ChannelID) async throws(ChatError) {
    try await ignoringAbsence { () throws(ChatError) in
      _ = try await admin.call("DELETE", [try await kind(of: channel), channel.rawValue])
    }
    places[channel] = nil
  }

  public func removeUsers(_ users: [UserID]) async throws(ChatError) {
    for user in users {
      try await ignoringAbsence { () throws(ChatError) in
        _ = try await admin.call("DELETE", ["users", user.rawValue])
      }
    }
  }

  private func kind(of channel: ChannelID) async throws(ChatError) -> String {
    if let place = places[channel] { return place.isOpen ? "open_channels" : "group_channels" }
    return try await admin.channel(channel).isOpen ? "open_channels" : "group_channels"
  }

  private func ignoringAbsence(_ body: () async throws(ChatError) -> Void) async throws(ChatError) {
    do throws(ChatError) { try await body() } catch { guard error.kind == .notFound else { throw error } }
  }
}
