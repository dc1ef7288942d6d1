import ChatCrypto
import UnifiedChat

/// A small chat that has everything that goes wrong in migrations: several languages, replies, mentions, files, a
/// location, custom payloads, edits, recalls, honest duplicates, equal times, emoji outside the basic plane.
public enum SampleData {
  static let alice = UserID("alice")
  static let bob = UserID("bob")
  static let mei = UserID("mei")
  static let omar = UserID("omar")

  /// In loading order.
  public static var records: [Record] {
    users + files + team.records + pair.records + quiet.records
  }

  private static var users: [Record] {
    [
      User(id: alice, name: "Alice Ä. Quinn", avatarURL: "https://example.com/alice.png"),
      User(id: bob, name: "Bob", customData: JSONText(unchecked: #"{"team":"blue"}"#)),
      User(id: mei, name: "梅"),
      User(id: omar, name: "عمر"),
    ].map { .user(UserRecord(user: $0)) }
  }

  private static let picture = Hex.decode(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
      + "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082") ?? []
  private static let notes = Array("Meeting notes\n- ship it 🚀\n- 发货\n".utf8)

  private static func hash(_ bytes: [UInt8]) -> String { Hex.encode(Digest.sha256(bytes)) }

  private static var files: [Record] {
    [("dot.png", "image/png", picture), ("notes.txt", "text/plain", notes)].map { name, type, bytes in
      .file(FileRecord(sha256: hash(bytes), name: name, mimeType: type, bytes: bytes))
    }
  }

  private static var team: Conversation {
    var talk = Conversation("team", kind: .group, name: "Team 团队", members: [alice, bob, mei, omar])
    talk.say(alice, .text("Good morning everyone"))
    talk.say(mei, .text("早上好，大家好！"))
    talk.say(omar, .text("صباح الخير"), sameTime: true)
    talk.say(bob, .text("ok"), sameTime: true)
    talk.say(bob, .text("ok"), sameTime: true)
    talk.say(alice, .text("Flags and families: 🏳️‍🌈 👩‍👩‍👧‍👦 𝄞 😀"))
    talk.say(bob, .text("@mei can you look at this?")) { $0.mentions = Mentions(users: [mei]) }
    talk.say(mei, .text("看到了，谢谢"), replyTo: 6)
    talk.say(mei, .image(attachment("dot.png", "image/png", picture, width: 1, height: 1)))
    talk.say(omar, .file(attachment("notes.txt", "text/plain", notes)))
    talk.say(alice, .location(Location(latitude: 31.2304, longitude: 121.4737, name: "外滩")))
    talk.say(bob, .custom(JSONText(unchecked: #"{"poll":"lunch?","options":["面","rice"],"big":9007199254740993}"#)))
    talk.say(alice, .text("The meeting is at 15:00")) { $0.editedAt = $0.createdAt + .seconds(30) }
    talk.say(bob, .recalled(by: bob, at: nil))
    talk.say(mei, .text("everyone, please read")) { $0.mentions = Mentions(everyone: true) }
    talk.say(omar, .text("line one\nline two\t\"quoted\" \\ back")) {
      $0.customData = JSONText(unchecked: #"{"k": 1.0, "k2":"\u00e9"}"#)
    }
    return talk
  }

  private static var pair: Conversation {
    var talk = Conversation("pair", kind: .direct, name: nil, members: [alice, mei])
    for (index, text) in ["你好", "Hello Mei", "今天吃什么？", "Noodles 🍜", "好"].enumerated() {
      talk.say(index % 2 == 0 ? mei : alice, .text(text))
    }
    talk.say(alice, .text("See you"), replyTo: 2)
    return talk
  }

  private static var quiet: Conversation { Conversation("quiet", kind: .group, name: "Nobody spoke", members: [bob, omar]) }

  private static func attachment(
    _ name: String, _ type: String, _ bytes: [UInt8], width: Int? = nil, height: Int? = nil
  ) -> Attachment {
    Attachment(
      name: name, size: Int64(bytes.count), mimeType: type, sha256: hash(bytes), width: width, height: height)
  }
}

/// Builds the records of one channel in order.
private struct Conversation {
  var records: [Record] = []
  private let name: String
  private let channel: ChannelID
  private var ids: [MessageID] = []
  private var time: Int64 = 1_700_000_000_000

  init(_ name: String, kind: ChannelKind, name title: String?, members: [UserID]) {
    self.name = name
    channel = SeedID.channel("sample/\(name)")
    var record = Channel(id: channel, kind: kind, name: title, isDistinct: kind == .direct)
    record.createdAt = Timestamp(milliseconds: time)
    record.createdBy = members.first
    if kind == .group { record.customData = JSONText(unchecked: #"{"topic":"\#(name)"}"#) }
    records = [.channel(ChannelRecord(channel: record))]
    for (index, user) in members.enumerated() {
      let role: MemberRole = kind == .direct ? .member : index == 0 ? .owner : index == 1 ? .admin : .member
      records.append(.member(MemberRecord(channel: channel, member: Member(user: User(id: user), role: role))))
    }
  }

  mutating func say(
    _ sender: UserID, _ content: MessageContent, sameTime: Bool = false, replyTo: Int? = nil,
    _ change: (inout Message) -> Void = { _ in }
  ) {
    if !sameTime { time += 1000 }
    var message = Message(
      channel: channel, id: SeedID.message("sample/\(name)/\(ids.count)"), sender: sender,
      createdAt: Timestamp(milliseconds: time), content: content)
    if let replyTo { message.replyTo = Reply(id: ids[replyTo]) }
    change(&message)
    ids.append(message.id ?? "")
    records.append(.message(MessageRecord(message: message)))
  }
}
