import ChatInterchange
import ChatJSON
import ChatTransport
import SendbirdAdapter
import Testing
import UnifiedChat

/// What a source of another vendor could give: every kind of content, and all that Sendbird has no place for.
private enum Original {
  static let users: [UserRecord] = [
    UserRecord(
      user: User(id: "ana", name: "Ana", avatarURL: "http://x/a.png"), origin: Origin(vendor: "other", id: "ana")),
    UserRecord(
      user: User(id: "bob", name: "", customData: JSONText(unchecked: #"{"age": 7}"#)),
      origin: Origin(vendor: "other", id: "bob")),
    UserRecord(user: User(id: "cle\u{301}o"), isPlaceholder: true, origin: Origin(vendor: "other", id: "cle\u{301}o")),
    UserRecord(user: User(id: "cl\u{E9}o", name: "NFC"), origin: Origin(vendor: "other", id: "cl\u{E9}o")),
  ]

  static let channel = ChannelRecord(
    channel: Channel(
      id: "a room/with ünusual id", kind: .group, name: "Room", customData: JSONText(unchecked: #"{"k":[1]}"#),
      metadata: ["topic": "x"], isFrozen: true, createdAt: Timestamp(milliseconds: 1_400_000_000_123), createdBy: "ana"),
    origin: Origin(vendor: "other", id: "a room/with ünusual id"))

  static let members: [MemberRecord] = [
    MemberRecord(
      channel: channel.channel.id,
      member: Member(
        user: User(id: "ana"), role: .owner, joinedAt: Timestamp(milliseconds: 1_400_000_000_200),
        readPosition: MessagePosition(time: Timestamp(milliseconds: 1_500_000_000_001), id: "m1"))),
    MemberRecord(channel: channel.channel.id, member: Member(user: User(id: "bob"), role: .admin, isMuted: true)),
    MemberRecord(channel: channel.channel.id, member: Member(user: User(id: "cle\u{301}o"), state: .left)),
  ]

  static let contents: [MessageContent] = [
    .text("plain"), .text(""), .text(String(repeating: "長", count: 6000)), .markdown("# h"),
    .location(Location(latitude: 0.1, longitude: 179.99, name: nil)), .card("bob", name: nil, avatarURL: "u"),
    .sticker(JSONText(unchecked: "{\"s\": 1}")), .custom(JSONText(unchecked: "[1,2]")),
    .merged(title: "t", messages: [QuotedMessage(id: "q", sender: "bob", content: .text("in"))]),
    .system(SystemNotice(kind: "memberJoined", actor: "ana", subjects: ["bob"], text: "joined")),
    .recalled(by: "ana", at: Timestamp(milliseconds: 5)),
    .unknown(kind: "-99", raw: JSONText(unchecked: "{\"x\":null}")),
    .file(
      Attachment(
        url: "http://x/f", name: "f", size: 2, mimeType: "image/png", sha256: String(repeating: "a", count: 64))),
    .audio(Attachment(url: "http://x/g.mp3", name: "g.mp3", size: 9, mimeType: "audio/mpeg")),
    .image(Attachment(name: "never uploaded.png")),
  ]

  static let messages: [MessageRecord] = contents.enumerated().map { index, content in
    var message = Message(
      channel: channel.channel.id, id: MessageID("m\(index)"), sender: ["ana", "bob", "cl\u{E9}o"][index % 3],
      senderName: index == 1 ? "Old name" : nil,
      createdAt: Timestamp(milliseconds: 1_500_000_000_000 + Int64(index / 4)), content: content)
    if case .system = content { message.sender = nil }
    if index == 0 {
      message.mentions = Mentions(users: ["bob", "ana"], everyone: true)
      message.replyTo = Reply(id: "m9", quoted: QuotedMessage(content: .text("q")))
      message.threadParent = "m8"
      message.customType = "their type"
      message.customData = JSONText(unchecked: #"{ "spaced" : "ü" }"#)
      message.reactions = [Reaction(key: "+1", users: ["bob"])]
      message.editedAt = Timestamp(milliseconds: 1_600_000_000_000)
    }
    return MessageRecord(
      message: message, origin: Origin(vendor: "other", id: "m\(index)", channel: channel.channel.id))
  }
}

@Suite("Migration into Sendbird and out of it")
struct SendbirdMigrationTests {
  private func everything<Item>(
    _ read: (Cursor?) async throws -> SourcePage<Item>
  ) async throws -> [Item] {
    var (items, cursor): ([Item], Cursor?) = ([], nil)
    repeat {
      let page = try await read(cursor)
      #expect(page.unreadable.isEmpty)
      items += page.items
      cursor = page.next
    } while cursor != nil
    return items
  }

  @Test("all that is written comes back as it was, and a second writing changes nothing")
  func roundTrip() async throws {
    let lab = try Lab()
    let destination = try lab.entry.makeDestination(lab.profile(), lab.adminEnvironment)
    let source = try lab.entry.makeSource(lab.profile(), lab.adminEnvironment)
    for round in 0..<2 {
      let users = try await destination.putUsers(Original.users)
      #expect(users == Original.users.map { round == 0 ? .written($0.user.id) : .existed($0.user.id) })
      let outcome = try await destination.putChannel(Original.channel, members: Original.members)
      let id = try #require(outcome.id)
      let messages = try await destination.putMessages(Original.messages, in: id)
      #expect(messages.count == Original.messages.count)
      #expect(
        messages.allSatisfy {
          if case .existed = $0 { round == 1 } else if case .written = $0 { round == 0 } else { false }
        })
      try await destination.finishChannel(id, original: Original.channel, members: Original.members)
    }

    let users = try await everything { try await source.users(after: $0) }
    #expect(Set(users.map(\.user.id)) == Set(Original.users.map(\.user.id)))
    for original in Original.users {
      let read = try #require(users.first { $0.user.id == original.user.id })
      #expect(read.user == original.user)
      #expect(read.origin == original.origin)
      #expect(read.isPlaceholder == original.isPlaceholder)
    }

    let channels = try await everything { try await source.channels(after: $0) }
    let channel = try #require(channels.first)
    #expect(channels.count == 1)
    #expect(channel.origin == Original.channel.origin)
    var expected = Original.channel.channel
    expected.id = channel.channel.id
    #expect(channel.channel == expected)

    let members = try await everything { try await source.members(of: channel.channel.id, after: $0) }
    #expect(members.count == Original.members.count)
    for original in Original.members {
      var read = try #require(members.first { $0.member.user.id == original.member.user.id }).member
      read.user = original.member.user
      #expect(read == original.member)
    }

    let messages = try await everything { try await source.messages(in: channel.channel.id, after: $0) }
    #expect(messages.map(\.origin?.id) == Original.messages.map(\.origin?.id))
    for (read, original) in zip(messages, Original.messages) {
      var message = read.message
      (message.id, message.channel, message.position) = (original.message.id, original.message.channel, nil)
      #expect(message == original.message, "\(original.message.content.kindName)")
    }
  }

  @Test("history of every size crosses in batches, with nothing lost and nothing doubled, over a killed run too")
  func resumed() async throws {
    let lab = try Lab(limits: .off)
    let users = (0..<150).map {
      UserRecord(user: User(id: UserID("u\($0)")), origin: Origin(vendor: "other", id: "u\($0)"))
    }
    let channel = ChannelRecord(
      channel: Channel(id: "big_room", kind: .group), origin: Origin(vendor: "other", id: "big_room"))
    let members = (0..<130).map { MemberRecord(channel: "big_room", member: Member(user: User(id: UserID("u\($0)")))) }
    let messages = (0..<950).map { number in
      MessageRecord(
        message: Message(
          channel: "big_room", id: MessageID("n\(number)"), sender: UserID("u\(number % 150)"),
          createdAt: Timestamp(milliseconds: 1_300_000_000_000 + Int64(number / 300)), content: .text("\(number)")),
        origin: Origin(vendor: "other", id: "n\(number)", channel: "big_room"))
    }
    for (start, end) in [(0, 500), (300, 950)] {
      // A new object each time: what the first one knew is gone.
      let destination = try lab.entry.makeDestination(lab.profile(), lab.adminEnvironment)
      _ = try await destination.putUsers(users)
      let id = try #require(try await destination.putChannel(channel, members: members).id)
      for first in stride(from: start, to: end, by: 100) {
        let batch = Array(messages[first..<min(end, first + 100)])
        let outcomes = try await destination.putMessages(batch, in: id)
        #expect(outcomes.allSatisfy { $0.id != nil })
      }
      if end == 950 { try await destination.finishChannel(id, original: channel, members: members) }
    }
    let source = try lab.entry.makeSource(lab.profile(), lab.adminEnvironment)
    let read = try await everything { try await source.messages(in: "big_room", after: $0) }
    #expect(read.map(\.message.content) == messages.map(\.message.content))
    #expect(try await everything { try await source.members(of: "big_room", after: $0) }.count == 130)
    let destination = try lab.entry.makeDestination(lab.profile(), lab.adminEnvironment)
    let existing = try await everything { try await destination.existing(in: "big_room", after: $0) }
    #expect(existing.map(\.origin.id) == messages.map { $0.message.id?.rawValue })
  }

  @Test("every difference between what is put and what is read is a loss by name")
  func losses() throws {
    let lab = try Lab()
    let destination = try lab.entry.makeDestination(lab.profile(), lab.adminEnvironment)
    let names = Set(Original.messages.flatMap { destination.losses(of: .message($0)) }.map(\.field))
    #expect(
      names == [
        "message.content", "message.content.attachment", "message.mentions", "message.replyTo", "message.threadParent",
        "message.reactions", "message.editedAt", "message.senderName",
      ])
    #expect(destination.losses(of: .message(Original.messages[3])).map(\.treatment) == [.keptElsewhere])
    let plain = MessageRecord(
      message: Message(channel: "c", id: "1", sender: "ana", createdAt: Timestamp(milliseconds: 1), content: .text("x"))
    )
    #expect(destination.losses(of: .message(plain)).isEmpty)
    let long = UserRecord(
      user: User(id: "x", customData: JSONText(unchecked: "\"\(String(repeating: "y", count: 2000))\"")))
    #expect(destination.losses(of: .user(long)).map(\.treatment) == [.dropped])
  }

  @Test("records that are loaded come out again, and a restored emulator holds the same")
  func records() async throws {
    let lab = try Lab()
    let all: [Record] =
      Original.users.map { .user($0) } + [.channel(Original.channel)]
      + Original.members.filter { $0.member.state == .joined }.map { .member($0) }
      + Original.messages.map { .message($0) }
    for record in all { try await lab.host.load(record.json()) }
    let out = await lab.host.records()
    #expect(out.count == all.count)
    let contents = try out.compactMap { json -> MessageContent? in
      if case .message(let record) = try Record(json: json) { record.message.content } else { nil }
    }
    #expect(contents == Original.messages.map(\.message.content))
    let snapshot = await lab.host.snapshot()
    try await lab.host.restore(snapshot)
    #expect(await lab.host.records() == out)
    await #expect(throws: (any Error).self) { try await lab.host.load(["type": "message", "channel": "none"]) }
  }
}
