import ChatJSON
import LeanCloudWire
import UnifiedChat

/// Rows of classes and items of histories as records: the same for REST and for files of an export.
enum LeanCloudRows {
  enum Read<Value> {
    case success(Value)
    case failure(UnreadableRecord)
  }

  /// Session tokens let whoever has one log in as the user; nobody needs them after a move.
  private static let neverKept = ["sessionToken"]
  private static let secrets = ["password", "salt", "authData"]

  static func user(_ row: JSONObject, _ options: LeanCloudSourceOptions) -> Read<UserRecord> {
    let read = LeanCloudUser.user(row, idColumn: options.userIDColumn)
    var kept = row
    for name in neverKept + (options.keepsUserSecrets ? [] : secrets) { kept[name] = nil }
    let raw = JSONText(unchecked: JSONValue.object(kept).text())
    guard !read.user.id.rawValue.isEmpty else {
      return .failure(UnreadableRecord(kind: "user", reason: "no \(options.userIDColumn)", raw: raw))
    }
    return .success(UserRecord(user: read.user, origin: read.origin, raw: raw))
  }

  static func channel(_ row: JSONObject) -> Read<ChannelRecord> {
    let raw = JSONText(unchecked: JSONValue.object(row).text())
    guard let read = LeanCloudConversation.channel(row) else {
      return .failure(UnreadableRecord(kind: "channel", reason: "no objectId", raw: raw))
    }
    return .success(ChannelRecord(channel: read.channel, origin: read.origin, raw: raw))
  }

  /// An item of REST history.
  static func message(_ row: JSONValue, in channel: ChannelID) -> Read<MessageRecord> {
    let raw = JSONText(unchecked: row.text())
    guard let stored = LeanCloudStoredMessage(history: row, channel: channel.rawValue) else {
      return .failure(
        UnreadableRecord(
          kind: "message", id: row["msg-id"]?.string, channel: channel, reason: "msg-id, timestamp or data is missing",
          raw: raw))
    }
    do {
      let decoded = try LeanCloudBody.decode(stored, .importer)
      return .success(MessageRecord(message: decoded.message, origin: decoded.origin, raw: raw))
    } catch {
      return .failure(
        UnreadableRecord(kind: "message", id: stored.id, channel: channel, reason: error.description, raw: raw))
    }
  }
}
