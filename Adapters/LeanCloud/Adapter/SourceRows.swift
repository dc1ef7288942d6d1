import ChatInterchange
import ChatJSON
import LeanCloudWire
import UnifiedChat

/// Rows of classes and items of histories as records: the same for REST and for files of an export.
enum LeanCloudRows {
  enum Read<Value> {
    /// With what stands for an envelope in it that is not believed.
    case success(Value, UnreadableRecord? = nil)
    case failure(UnreadableRecord)
  }

  /// Session tokens let whoever has one log in as the user; nobody needs them after a move.
  private static let neverKept = ["sessionToken"]
  private static let secrets = ["password", "salt", "authData"]

  static func user(
    _ row: JSONObject, _ options: LeanCloudSourceOptions, _ envelopes: EnvelopeReader
  ) -> Read<UserRecord> {
    let read = LeanCloudUser.user(row, idColumn: options.userIDColumn, .tool(envelopes))
    var kept = row
    for name in neverKept + (options.keepsUserSecrets ? [] : secrets) { kept[name] = nil }
    let raw = JSONText(unchecked: JSONValue.object(kept).text())
    guard !read.user.id.rawValue.isEmpty else {
      return .failure(UnreadableRecord(kind: "user", reason: "no \(options.userIDColumn)", raw: raw))
    }
    return .success(
      UserRecord(user: read.user, origin: read.origin, raw: raw),
      read.finding.map { UnreadableRecord(envelopeOf: "user", id: read.user.id.rawValue, $0) })
  }

  static func channel(_ row: JSONObject, _ envelopes: EnvelopeReader) -> Read<ChannelRecord> {
    let raw = JSONText(unchecked: JSONValue.object(row).text())
    // The mark is no column of the app.
    var columns = row
    columns[SecondHand.member] = nil
    guard let read = LeanCloudConversation.channel(columns, .tool(envelopes)) else {
      return .failure(UnreadableRecord(kind: "channel", reason: "no objectId", raw: raw))
    }
    return .success(
      ChannelRecord(channel: read.channel, origin: read.origin, raw: raw),
      read.finding.map { UnreadableRecord(envelopeOf: "channel", id: read.channel.id.rawValue, $0) })
  }

  /// An item of REST history.
  static func message(
    _ row: JSONValue, in channel: ChannelID, _ envelopes: EnvelopeReader
  ) -> Read<MessageRecord> {
    let raw = JSONText(unchecked: row.text())
    guard let stored = LeanCloudStoredMessage(history: row, channel: channel.rawValue) else {
      return .failure(
        UnreadableRecord(
          kind: "message", id: row["msg-id"]?.string, channel: channel, reason: "msg-id, timestamp or data is missing",
          raw: raw))
    }
    do {
      let decoded = try LeanCloudBody.decode(stored, .tool(envelopes))
      return .success(
        MessageRecord(message: decoded.message, origin: decoded.origin, raw: raw),
        decoded.finding.map { UnreadableRecord(envelopeOf: "message", id: stored.id, channel: channel, $0) })
    } catch {
      return .failure(
        UnreadableRecord(kind: "message", id: stored.id, channel: channel, reason: error.description, raw: raw))
    }
  }
}

extension SourcePage {
  mutating func add(_ read: LeanCloudRows.Read<Item>) {
    switch read {
    case .success(let record, let envelope):
      items.append(record)
      if let envelope { unreadable.append(envelope) }
    case .failure(let record): unreadable.append(record)
    }
  }
}
