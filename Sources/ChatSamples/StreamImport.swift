import ChatJSON
import Foundation
import UnifiedChat

/// The import file of another service: an array of `{"type": …, "item": {…}}`.
///
/// Messages without a time get one second after the other from a made-up start. Members that users and channels have
/// beside those that records know go into custom data; devices have no record and are counted as left out.
enum StreamImport {
  static func convert(_ folder: String, to sink: RecordSink) throws -> [String: Int] {
    let file = folder + "/data.json"
    let json: JSONValue
    do { json = try JSONValue(parsing: try SeedConverter.text(of: file)) } catch let error as JSONError {
      throw SeedError(file: file, reason: "\(error)")
    }
    guard let items = json.array else { throw SeedError(file: file, reason: "not an array") }
    var state = State(file: file)
    for (index, entry) in items.enumerated() {
      guard let type = entry["type"]?.string, let item = entry["item"]?.object else {
        throw SeedError(file: file, reason: "element \(index) has no type or no item")
      }
      try state.take(type, item, index)
    }
    try state.flush(to: sink)
    return state.leftOut
  }

  private struct State {
    let file: String
    var records: [Record] = []
    var messages: [(message: Message, index: Int)] = []
    var leftOut: [String: Int] = [:]
    var time: Int64 = 1_640_995_200_000

    init(file: String) { self.file = file }

    mutating func take(_ type: String, _ item: JSONObject, _ index: Int) throws {
      switch type {
      case "user":
        let id = UserID(try string(item, "id", index))
        let rest = custom(item, without: ["id", "name", "image"])
        records.append(
          .user(
            UserRecord(
              user: User(
                id: id, name: item["name"]?.string, avatarURL: item["image"]?.string, customData: rest))))
      case "channel": try channel(item, index)
      case "member":
        let member = Member(user: User(id: UserID(try string(item, "user_id", index))))
        records.append(.member(MemberRecord(channel: try place(item, index, key: "channel_id"), member: member)))
      case "message": try message(item, index)
      case "reaction": try reaction(item, index)
      default: leftOut[type, default: 0] += 1
      }
    }

    private mutating func channel(_ item: JSONObject, _ index: Int) throws {
      let id = try place(item, index, key: "id")
      var channel = Channel(id: id, kind: item["id"] == nil ? .direct : .group, name: item["name"]?.string)
      channel.isDistinct = item["id"] == nil
      channel.createdBy = item["created_by"]?.string.map { UserID($0) }
      channel.customData = custom(item, without: ["id", "name", "created_by", "member_ids"])
      records.append(.channel(ChannelRecord(channel: channel)))
    }

    private mutating func message(_ item: JSONObject, _ index: Int) throws {
      time += 1000
      let created = item["created_at"]?.string.flatMap { try? Date($0, strategy: .iso8601) }
      let message = Message(
        channel: try place(item, index, key: "channel_id"),
        id: SeedID.message("stream/\(try string(item, "id", index))"), sender: UserID(try string(item, "user", index)),
        createdAt: created.map { Timestamp(milliseconds: Int64($0.timeIntervalSince1970 * 1000)) }
          ?? Timestamp(milliseconds: time),
        content: .text(try string(item, "text", index)))
      messages.append((message, index))
    }

    private mutating func reaction(_ item: JSONObject, _ index: Int) throws {
      let target = SeedID.message("stream/\(try string(item, "message_id", index))")
      let user = UserID(try string(item, "user_id", index))
      let key = try string(item, "type", index)
      guard let place = messages.firstIndex(where: { $0.message.id == target }) else {
        throw SeedError(file: file, reason: "element \(index) reacts to a message that is not there")
      }
      if let known = messages[place].message.reactions.firstIndex(where: { $0.key == key }) {
        messages[place].message.reactions[known].users.append(user)
      } else {
        messages[place].message.reactions.append(Reaction(key: key, users: [user]))
      }
    }

    func flush(to sink: RecordSink) throws {
      for record in records { try sink(record) }
      for (message, _) in messages { try sink(.message(MessageRecord(message: message))) }
    }

    private func string(_ item: JSONObject, _ key: String, _ index: Int) throws -> String {
      guard let value = item[key]?.string else { throw SeedError(file: file, reason: "element \(index) has no \(key)") }
      return value
    }

    /// A channel is named by id, or, when it is distinct, by its members.
    private func place(_ item: JSONObject, _ index: Int, key: String) throws -> ChannelID {
      if let id = item[key]?.string { return SeedID.channel("stream/\(id)") }
      guard let members = (item["channel_member_ids"] ?? item["member_ids"])?.array?.compactMap(\.string) else {
        throw SeedError(file: file, reason: "element \(index) names no channel")
      }
      return SeedID.channel("stream/" + members.sorted().joined(separator: ","))
    }

    private func custom(_ item: JSONObject, without known: Set<String>) -> JSONText? {
      let rest = item.members.filter { !known.contains($0.key) }
      return rest.isEmpty ? nil : JSONText(unchecked: JSONValue.object(JSONObject(rest)).text())
    }
  }
}
