import ChatCrypto
import ChatInterchange
import ChatJSON
import LeanCloudAdapter
import LeanCloudWire
import Testing
import UnifiedChat

@Suite("Source and destination")
struct MigrationTests {
  static let bytes = Array("file bytes".utf8)
  static var sha256: String { Hex.encode(Digest.sha256(bytes)) }

  /// Every kind of content, beside every field that a message can have.
  static var messages: [Message] {
    let id = ChannelID(LeanCloudID.objectID(for: "c"))
    let contents: [MessageContent] = [
      .text("plain, 中文, 😀"), .text("the same"), .text("the same"), .text(""), .text(#"{"looks":"like json"}"#),
      .markdown("# title"), .location(Location(latitude: 31.25, longitude: -121.5, name: "here")),
      .card("carol", name: "Carol", avatarURL: nil), .custom(JSONText(unchecked: #"{ "a" : 1.0, "a" : 1e2 }"#)),
      .custom(JSONText(unchecked: #"{"_lctype":7,"own":true}"#)),
      .unknown(kind: "-99", raw: JSONText(unchecked: #"{"_lctype":-99,"x":1}"#)),
      .unknown(kind: "binary", raw: JSONText(unchecked: #""AAEC""#)),
      .merged(title: "two", messages: [QuotedMessage(sender: "bob", content: .text("q"))]),
      .system(SystemNotice(kind: "memberJoined", subjects: ["bob"])), .sticker(JSONText(unchecked: "[1]")),
      .image(
        Attachment(
          url: "http://x/y.png", name: "y.png", size: 3, width: 4, height: 5,
          metadata: JSONText(unchecked: #"{ "m":1}"#))),
      .audio(Attachment(url: "http://x/y.mp3", durationMilliseconds: 1_234)), .recalled(by: nil, at: nil),
    ]
    return contents.enumerated().map { index, content in
      let messageID = MessageID(LeanCloudID.messageID(for: "m\(index)", channel: id.rawValue))
      let time = Timestamp(milliseconds: 1_500_000_000_000 + Int64(index / 2))
      var message = Message(
        channel: id, id: messageID, sender: index == 13 ? nil : "alice",
        position: MessagePosition(time: time, id: messageID), createdAt: time, content: content)
      if index == 9 { message.customType = "7" }
      if index == 0 {
        message.mentions = Mentions(users: ["bob"], everyone: true)
        message.replyTo = Reply(id: messageID)
        message.customData = JSONText(unchecked: #"{"app":{"n":1.50}}"#)
        message.customType = "note"
        message.editedAt = time
        message.senderName = "Alice A."
        message.reactions = [Reaction(key: "+1", users: ["bob"])]
      }
      if index == 1 { message.customData = JSONText(unchecked: #"[ 1, 2 ]"#) }
      return message
    }
  }

  static var records: [Record] {
    var channel = Channel(id: ChannelID(LeanCloudID.objectID(for: "c")), kind: .group, name: "Name")
    channel.customData = JSONText(unchecked: #"{"k":"v"}"#)
    channel.createdAt = Timestamp(milliseconds: 1_400_000_000_000)
    channel.createdBy = "alice"
    channel.metadata = ["key": "value"]
    let members: [Member] = [
      Member(user: User(id: "alice"), role: .owner), Member(user: User(id: "bob"), role: .admin, isMuted: true),
    ]
    return [
      .user(
        UserRecord(
          user: User(id: "alice", name: "Alice", avatarURL: "http://x/a", customData: JSONText(unchecked: #"{"a":1}"#)))
      ),
      .channel(ChannelRecord(channel: channel)),
    ] + members.map { .member(MemberRecord(channel: channel.id, member: $0)) }
      + messages.map { .message(MessageRecord(message: $0)) }
  }

  func readAll(_ source: LeanCloudSource, _ channel: ChannelID) async throws -> [MessageRecord] {
    var all: [MessageRecord] = []
    var cursor: Cursor?
    repeat {
      let page = try await source.messages(in: channel, after: cursor)
      #expect(page.unreadable == [])
      all += page.items
      cursor = page.next
    } while cursor != nil
    return all
  }

  /// As reading back may give it: `receivedAt` and the like are the vendor's.
  func content(_ message: Message) -> JSONValue {
    var object = message.json().object ?? JSONObject()
    for key in ["channel", "id", "position"] { object[key] = nil }
    return .object(object)
  }

  @Test("everything that was loaded is read back, by REST and as truth")
  func source() async throws {
    let bench = try Bench()
    try await bench.load(Self.records.map { $0.json() })
    let source = try bench.source()
    #expect(try await source.check().channels == 1)
    let users = try await source.users(after: nil)
    #expect(
      users.items.map(\.user) == [
        User(id: "alice", name: "Alice", avatarURL: "http://x/a", customData: JSONText(unchecked: #"{"a":1}"#))
      ])
    let channel = try #require(try await source.channels(after: nil).items.first)
    guard case .channel(let loaded) = Self.records[1] else { return }
    var expected = loaded.channel
    expected.memberCount = 2
    #expect(channel.channel == expected)
    let members = try await source.members(of: channel.channel.id, after: nil).items
    #expect(members.map(\.member.role) == [.owner, .admin])
    #expect(members.map(\.member.isMuted) == [false, true])
    let messages = try await readAll(source, channel.channel.id)
    let wanted = Self.messages.sorted { ($0.position ?? .init(sequence: 0)) < ($1.position ?? .init(sequence: 0)) }
    #expect(messages.count == wanted.count)
    for (read, wanted) in zip(messages, wanted) { #expect(read.message.json() == wanted.json()) }

    let copy = try Bench()
    try await copy.load(await bench.host.records())
    #expect(await copy.host.records() == bench.host.records())
    let restored = try Bench()
    try await restored.host.restore(await bench.host.snapshot())
    #expect(await restored.host.records() == bench.host.records())
  }

  @Test("the destination keeps every field, and names what the service itself cannot hold")
  func destination() async throws {
    let bench = try Bench()
    let destination = try bench.destination()
    guard case .channel(let channel) = Self.records[1] else { return }
    let members = Self.records.compactMap { if case .member(let member) = $0 { member } else { nil } }
    _ = try await destination.putUsers([UserRecord(user: User(id: "alice", name: "Alice"))])
    let outcome = try await destination.putChannel(channel, members: members)
    let id = try #require(outcome.id)
    #expect(try await destination.putChannel(channel, members: members) == .existed(id))
    let records = Self.messages.map { MessageRecord(message: $0) }
    let outcomes = try await destination.putMessages(records, in: id)
    #expect(outcomes.allSatisfy { $0.id != nil })

    let source = try bench.source()
    #expect(try await source.users(after: nil).items.map(\.user.id) == ["alice"])
    let read = try await readAll(source, id)
    #expect(read.map(\.origin?.id) == records.map(\.message.id?.rawValue))
    for (back, put) in zip(read, records) {
      #expect(content(back.message) == content(put.message))
    }
    let existing = try await destination.existing(in: id, after: nil)
    #expect(existing.items.count == records.count)
    let reread = try #require(try await source.channels(after: nil).items.first?.channel)
    #expect(reread.createdAt == channel.channel.createdAt)
    #expect(reread.customData == channel.channel.customData)
    #expect(reread.metadata == channel.channel.metadata)
  }

  @Test("what a run wrote can be changed and removed, twice without harm")
  func changes() async throws {
    let bench = try Bench()
    let destination = try bench.destination()
    guard case .channel(let channel) = Self.records[1] else { return }
    let members = Self.records.compactMap { if case .member(let member) = $0 { member } else { nil } }
    _ = try await destination.putUsers([UserRecord(user: User(id: "alice", name: "Alice"))])
    let id = try #require(try await destination.putChannel(channel, members: members).id)
    let records = Self.messages.map { MessageRecord(message: $0) }
    let written = try await destination.putMessages(records, in: id).compactMap(\.id)
    var edited = records[1]
    edited.message.content = .text("edited")
    #expect(try await destination.changeMessage(edited, id: written[1], in: id) == .written(written[1]))
    var recalled = records[2]
    recalled.message.content = .recalled(by: nil, at: nil)
    #expect(try await destination.changeMessage(recalled, id: written[2], in: id) == .written(written[2]))
    let read = try await readAll(bench.source(), id)
    #expect(text(read[1].message) == "edited")
    #expect(read[1].origin?.id == records[1].message.id?.rawValue)
    #expect(read[2].message.isRecalled)
    #expect(read[2].origin?.id == records[2].message.id?.rawValue)

    for _ in 0..<2 {
      try await destination.removeMessages(Array(written.prefix(3)), in: id)
      #expect(try await readAll(bench.source(), id).count == records.count - 3)
      try await destination.removeMembers(["bob"], from: id)
      #expect(try await bench.source().members(of: id, after: nil).items.map(\.member.user.id) == ["alice"])
    }
    for _ in 0..<2 {
      try await destination.removeChannel(id)
      try await destination.removeUsers(["alice"])
      #expect(try await bench.source().users(after: nil).items.isEmpty)
      let page = try await bench.rest("GET", "/1.2/rtm/messages").body
      #expect(page.array == [])
    }
    guard case .refused(let error) = try await destination.changeMessage(edited, id: written[1], in: id) else {
      Issue.record("a message that is gone was changed")
      return
    }
    #expect(error.kind == .notFound)
  }

  @Test("a stored file is downloaded by the address that its message names")
  func file() async throws {
    let bench = try Bench()
    let file = Record.file(FileRecord(sha256: Self.sha256, name: "f.txt", mimeType: "text/plain", bytes: Self.bytes))
    try await bench.load([
      file.json(), ["type": "channel", "id": "c", "kind": "group"], ["type": "member", "channel": "c", "user": "a"],
      [
        "type": "message", "channel": "c", "id": "m", "sender": "a", "createdAt": 5,
        "content": ["kind": "file", "attachment": ["sha256": .string(Self.sha256)]],
      ],
    ])
    let source = try bench.source()
    let message = try #require(try await readAll(source, ChannelID(LeanCloudID.objectID(for: "c"))).first?.message)
    let attachment = try #require(message.content.attachment)
    #expect(attachment.name == "f.txt")
    let collector = Collector()
    try await source.download(attachment) { (bytes) async throws(ChatError) in await collector.add(bytes) }
    #expect(await collector.bytes == Self.bytes)
  }

  @Test("a wrong master key is an authentication error, and too many requests say when to come again")
  func refusals() async throws {
    let bench = try Bench()
    var environment = bench.environment()
    environment.adminSecret = "wrong"
    let source = try LeanCloudSource(
      profile: bench.profile(), environment: environment, transports: bench.host.transports)
    await #expect { _ = try await source.check() } throws: { ($0 as? ChatError)?.kind == .authentication }
    try await bench.load([["type": "channel", "id": "c", "kind": "group"]])
    let path = "/1.2/rtm/conversations/\(LeanCloudID.objectID(for: "c"))/messages"
    for _ in 0..<1800 { _ = try await bench.rest("GET", path) }
    await #expect {
      _ = try await bench.source().messages(in: ChannelID(LeanCloudID.objectID(for: "c")), after: nil)
    } throws: { error in
      if case .rateLimited(let wait?)? = (error as? ChatError)?.kind {
        wait > .zero && wait <= .seconds(60)
      } else {
        false
      }
    }
  }
}

private actor Collector {
  var bytes: [UInt8] = []
  func add(_ more: [UInt8]) { bytes += more }
}
