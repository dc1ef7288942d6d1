import ChatJSON
import Foundation
import UnifiedChat

/// Chinese dialogues of two: `[{"name": …, "messages": [{"message": …, "attrs": […]}]}]`.
///
/// The source has neither authors nor times: two users of each dialogue take turns, one message every ten seconds
/// from a made-up start. Attributes become custom data.
enum KdConv {
  static func convert(_ folder: String, to sink: RecordSink) throws -> [String: Int] {
    for name in try SeedConverter.entries(of: folder).filter({ $0.hasSuffix(".json") }).sorted() {
      let file = folder + "/" + name
      let json: JSONValue
      do { json = try JSONValue(parsing: Array(try SeedConverter.text(of: file).utf8)) } catch let error as JSONError {
        throw SeedError(file: file, reason: "\(error)")
      }
      guard let dialogues = json.array else { throw SeedError(file: file, reason: "not an array of dialogues") }
      for (index, dialogue) in dialogues.enumerated() {
        try convert(dialogue, "\(name.prefix { $0 != "." })-\(index)", index, file, to: sink)
      }
    }
    return [:]
  }

  private static func convert(
    _ dialogue: JSONValue, _ name: String, _ index: Int, _ file: String, to sink: RecordSink
  ) throws {
    guard let messages = dialogue["messages"]?.array else {
      throw SeedError(file: file, reason: "dialogue \(index) has no messages")
    }
    let start: Int64 = 1_577_836_800_000 + Int64(index) * 86_400_000
    let users = ["a", "b"].map { UserID("kd-\(name)-\($0)") }
    let channel = SeedID.channel("kdconv/\(name)")
    let title = dialogue["name"]?.string
    try DirectSeed.write(channel, users, name: title, createdAt: start, to: sink)
    for (turn, item) in messages.enumerated() {
      guard let text = item["message"]?.string else {
        throw SeedError(file: file, reason: "dialogue \(index), message \(turn) has no text")
      }
      var message = Message(
        channel: channel, id: SeedID.message("kdconv/\(name)/\(turn)"), sender: users[turn % 2],
        createdAt: Timestamp(milliseconds: start + Int64(turn) * 10_000), content: .text(text))
      if let attributes = item["attrs"] {
        let data = JSONValue.object(["attrs": attributes])
        message.customData = JSONText(unchecked: data.text())
      }
      try sink(.message(MessageRecord(message: message)))
    }
  }
}

/// A channel of two with its users and members.
enum DirectSeed {
  static func write(
    _ channel: ChannelID, _ users: [UserID], name: String?, createdAt: Int64, newUsers: [UserID]? = nil,
    to sink: RecordSink
  ) throws {
    for user in newUsers ?? users { try sink(.user(UserRecord(user: User(id: user, name: user.rawValue)))) }
    var record = Channel(id: channel, kind: .direct, name: name, isDistinct: true)
    record.createdAt = Timestamp(milliseconds: createdAt)
    record.createdBy = users.first
    try sink(.channel(ChannelRecord(channel: record)))
    for user in users {
      try sink(.member(MemberRecord(channel: channel, member: Member(user: User(id: user)))))
    }
  }
}
