import ChatCrypto
import ChatInterchange
import ChatJSON
import Foundation
import UnifiedChat

/// Chats of every kind of content, several scripts, equal times, odd ids.
enum SampleChats {
  static let start: Int64 = 1_600_000_000_000

  static func fill(_ service: MemoryService, channels: Int = 4, messages: Int = 30) {
    let users = (0..<6).map { UserID("user-\($0)") } + ["caf\u{E9}", "cafe\u{301}", "a b", "a_b"]
    service.state.withLock { state in
      state.users = users.map {
        UserRecord(
          user: User(id: $0, name: "Name of \($0)", customData: JSONText(unchecked: #"{"lang":"zh"}"#)),
          raw: JSONText(unchecked: #"{"uid":"\#($0)","extra":1.0}"#))
      }
      for number in 0..<channels { state.channels.append(channel(number, users, messages)) }
      state.files["old://photo"] = Array("not a photo, but bytes".utf8)
      state.files["old://note"] = Array("note".utf8)
    }
  }

  static func channel(_ number: Int, _ users: [UserID], _ count: Int) -> MemoryService.StoredChannel {
    let id = ChannelID("channel \(number)")
    let isDirect = number % 4 == 1
    var channel = Channel(
      id: id, kind: isDirect ? .direct : .group, name: isDirect ? nil : "频道 \(number)",
      customData: JSONText(unchecked: #"{"topic":"x"}"#), createdAt: Timestamp(milliseconds: start),
      createdBy: users[0])
    channel.isDistinct = isDirect
    let own = isDirect ? Array(users.prefix(2)) : users
    let members = own.enumerated().map { index, user in
      MemberRecord(
        channel: id, member: Member(user: User(id: user), role: index == 0 ? .owner : .member))
    }
    return MemoryService.StoredChannel(
      record: ChannelRecord(channel: channel, raw: JSONText(unchecked: #"{"_id":"\#(number)"}"#)), members: members,
      messages: (0..<count).map { message($0, in: id, own) })
  }

  static func message(_ number: Int, in channel: ChannelID, _ users: [UserID]) -> MessageRecord {
    // Every third shares its millisecond with the one before; some are equal in all but their id.
    let time = Timestamp(milliseconds: start + Int64(number - (number % 3 == 2 ? 1 : 0)) * 1000)
    var message = Message(
      channel: channel, id: MessageID("\(channel)-\(number)"), sender: users[number % users.count],
      position: MessagePosition(time: time, number: Int64(number)), createdAt: time,
      content: content(number, users))
    if number % 5 == 1 { message.replyTo = Reply(id: MessageID("\(channel)-\(number - 1)")) }
    if number % 7 == 3 { message.mentions = Mentions(users: [users[0], users[1]]) }
    if number % 11 == 4 { message.editedAt = time + .seconds(5) }
    if number % 6 == 2 { message.customData = JSONText(unchecked: #"{"k": [1, 2.50, "é"]}"#) }
    if number % 9 == 5 { message.reactions = [Reaction(key: "👍", users: [users[1], users[0]])] }
    return MessageRecord(message: message, raw: JSONText(unchecked: #"{"n":\#(number),"future":null}"#))
  }

  static func content(_ number: Int, _ users: [UserID]) -> MessageContent {
    switch number % 10 {
    case 0: .text("你好 \(number) 👩‍👩‍👧‍👦")
    case 1: .image(Attachment(url: "old://photo", name: "图.png", mimeType: "image/png", width: 3, height: 4))
    case 2: .custom(JSONText(unchecked: #"{"type":"order","n":1}"#))
    case 3: .location(Location(latitude: 31.2304, longitude: 121.4737, name: "上海"))
    case 4: .unknown(kind: "77", raw: JSONText(unchecked: #"{"_lctype": 77, "odd":"\u0000"}"#))
    case 5: .recalled(by: users[0], at: nil)
    case 6: .merged(title: "m", messages: [QuotedMessage(sender: users[1], content: .text("in"))])
    case 7: .file(Attachment(url: "old://note", name: "note.txt"))
    case 8: .system(SystemNotice(kind: "memberJoined", subjects: [users[1]]))
    default: .text("same text")
    }
  }
}

/// A folder of its own that goes away.
final class Folder {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.path + "/unifiedchat-test-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { path + "/" + name }
}

/// A clock on which every sleep ends at once and moves the time.
final class LeapingClock: ChatClock {
  private let inner = ManualClock()
  var now: Timestamp { inner.now }

  func sleep(for duration: Duration) async throws {
    try Task.checkCancellation()
    inner.advance(by: duration)
    // Whom one waits for needs a thread, and there are few.
    await Task.yield()
  }
}
