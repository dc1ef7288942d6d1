import ChatCrypto
import ChatEmulation
import ChatInterchange
import ChatJSON
import ChatTransport
import OpenIMAdapter
import OpenIMEmulator
import Testing
import UnifiedChat

/// An emulator in process, and what tools hold of it.
struct ToolHarness {
  let host: EmulatorHost
  let profile: Profile
  let environment: AdapterEnvironment
  let source: OpenIMSource
  let destination: OpenIMDestination

  init() throws {
    host = try EmulatorHost(
      EmulatorFactory(OpenIMEmulator.self), options: EmulatorOptions(adminSecret: "s3cret"), clock: .virtual)
    profile = Profile(
      name: "test", vendor: "openim", endpoints: Profile.Endpoints(api: "http://openim.example:10002"))
    environment = AdapterEnvironment(
      adminSecret: "s3cret", clock: ManualClock(start: Timestamp(milliseconds: 1_767_225_600_000)))
    source = try OpenIMSource(profile: profile, environment: environment, transports: host.transports)
    destination = try OpenIMDestination(profile: profile, environment: environment, transports: host.transports)
  }

  func users() async throws -> [UserRecord] { try await all { try await source.users(after: $0) } }
  func channels() async throws -> [ChannelRecord] { try await all { try await source.channels(after: $0) } }

  func members(of channel: ChannelID) async throws -> [MemberRecord] {
    try await all { try await source.members(of: channel, after: $0) }
  }

  func messages(in channel: ChannelID) async throws -> [MessageRecord] {
    try await all { try await source.messages(in: channel, after: $0) }
  }

  private func all<Item>(_ page: (Cursor?) async throws -> SourcePage<Item>) async throws -> [Item] {
    var items: [Item] = []
    var cursor: Cursor?
    repeat {
      let page = try await page(cursor)
      items += page.items
      cursor = page.next
    } while cursor != nil
    return items
  }
}

enum OpenIMDigestForTests {
  static func hex(_ text: String) -> String { Hex.encode(Digest.sha256(Array(text.utf8))) }
}

/// Records of another vendor.
enum Samples {
  static let origin: VendorName = "elsewhere"
  static let group: ChannelID = "5f1a-group"
  static let pair: ChannelID = "pair-1"

  static func user(_ id: UserID, _ change: (inout User) -> Void = { _ in }) -> UserRecord {
    var user = User(id: id, name: id.rawValue.uppercased())
    change(&user)
    return UserRecord(user: user, origin: Origin(vendor: origin, id: id.rawValue))
  }

  static let users = [
    user("alice") { $0.customData = JSONText(unchecked: #"{"lang":"zh"}"#) },
    user("bob") { $0.avatarURL = "https://example.com/b.png" }, user("carol") { $0.name = nil },
    user("d-[x]|") { $0.name = "" },
  ]

  static let groupRecord: ChannelRecord = {
    var channel = Channel(
      id: group, kind: .group, name: "G 群", coverURL: "https://example.com/g.png",
      customData: JSONText(unchecked: #"{"a": 1}"#), metadata: ["k": "v"])
    channel.createdAt = Timestamp(milliseconds: 1_500_000_000_000)
    channel.createdBy = "bob"
    return ChannelRecord(channel: channel, origin: Origin(vendor: origin, id: group.rawValue))
  }()

  static let pairRecord: ChannelRecord = {
    var channel = Channel(id: pair, kind: .direct, name: "two of us", customData: JSONText(unchecked: "[1]"))
    channel.createdAt = Timestamp(milliseconds: 1_500_000_000_001)
    return ChannelRecord(channel: channel, origin: Origin(vendor: origin, id: pair.rawValue))
  }()

  static func member(_ channel: ChannelID, _ id: UserID, _ role: MemberRole = .member, read: Int64? = nil) -> MemberRecord {
    var member = Member(user: User(id: id), role: role)
    member.joinedAt = Timestamp(milliseconds: 1_500_000_000_123)
    member.readPosition = read.map { MessagePosition(time: Timestamp(milliseconds: $0), id: "zz") }
    return MemberRecord(channel: channel, member: member)
  }

  static let start: Int64 = 1_600_000_000_000

  static let attachment = Attachment(
    url: "https://files.example.com/a.png", name: "a b.png", size: 12, mimeType: "image/png",
    sha256: String(repeating: "ab", count: 32), metadata: JSONText(unchecked: #"{"x":1}"#))

  static let quoted = QuotedMessage(
    id: "m0", sender: "bob", senderName: "BOB", createdAt: Timestamp(milliseconds: start), content: .text("hi"))

  /// One of each kind, with every field that a message may carry.
  static let contents: [(String, MessageContent)] = [
    ("text", .text("hello 👋🏽 世界")), ("empty text", .text("")), ("markdown", .markdown("# hi")),
    ("image", .image(attachment)), ("audio", .audio(Attachment(url: "https://e.com/a.mp3", durationMilliseconds: 1234))),
    ("video", .video(Attachment(url: "https://e.com/v.mp4", width: 10, height: 20))),
    ("file without a name", .file(Attachment(url: "https://e.com/f"))), ("no url", .file(Attachment(name: "f"))),
    ("location", .location(Location(latitude: 31.2, longitude: 121.5, name: "上海"))),
    ("card", .card("bob", name: "Bob", avatarURL: nil)), ("sticker", .sticker(JSONText(unchecked: #"{"s":1}"#))),
    ("custom", .custom(JSONText(unchecked: #"{"data": {"b":2}}"#))),
    ("merged", .merged(title: "log", messages: [quoted, quoted])),
    ("notice", .system(SystemNotice(kind: "memberJoined", actor: "bob", subjects: ["alice"]))),
    ("recalled", .recalled(by: "alice", at: Timestamp(milliseconds: start + 5))),
    ("unknown", .unknown(kind: "-99", raw: JSONText(unchecked: #"{"q": 1.50}"#))),
  ]

  static func message(
    _ channel: ChannelID, _ number: Int, _ content: MessageContent, sender: UserID? = "alice",
    _ change: (inout Message) -> Void = { _ in }
  ) -> MessageRecord {
    let time = Timestamp(milliseconds: start + Int64(number / 3))
    var message = Message(
      channel: channel, id: MessageID("m\(number)"), sender: sender, senderName: "A",
      position: MessagePosition(time: time, id: MessageID("m\(1_000_000 + number)")), createdAt: time,
      content: content)
    change(&message)
    return MessageRecord(
      message: message, origin: Origin(vendor: origin, id: "m\(number)", channel: channel))
  }
}

@Suite("History that is written and read back")
struct OpenIMMigrationTests {
  let harness: ToolHarness

  init() async throws {
    harness = try ToolHarness()
    _ = try await harness.destination.putUsers(Samples.users)
  }

  @Test("users come back with their custom data and origin; ids that the server refuses become legal ones")
  func users() async throws {
    let read = try await harness.users()
    #expect(read.map(\.origin?.id) == ["alice", "bob", "carol", "d-[x]|"])
    #expect(read[0].user == Samples.users[0].user)
    #expect(read[1].user == Samples.users[1].user)
    #expect(read[2].user.name == nil)
    #expect(read[3].user.name == "")
    #expect(read[3].user.id.rawValue.hasPrefix("d__x___"))
    #expect(harness.destination.losses(of: .user(Samples.users[3])).map(\.field) == ["user.id"])
    let again = try await harness.destination.putUsers(Samples.users)
    #expect(again == read.map { .existed($0.user.id) })
  }

  @Test("a group comes back with name, custom data, members, roles and the fields that the server has no place for")
  func group() async throws {
    let members = [
      Samples.member(Samples.group, "alice", .owner, read: Samples.start), Samples.member(Samples.group, "bob", .admin),
      Samples.member(Samples.group, "carol"),
    ]
    let outcome = try await harness.destination.putChannel(Samples.groupRecord, members: members)
    let id = try #require(outcome.id)
    #expect(outcome == .written("sg_5f1a-group"))
    #expect(try await harness.destination.putChannel(Samples.groupRecord, members: members) == .existed(id))
    let read = try await harness.channels()
    #expect(read.count == 1)
    #expect(read.first?.origin == Samples.groupRecord.origin)
    var expected = Samples.groupRecord.channel
    expected.id = id
    #expect(read.first?.channel == expected)
    let people = try await harness.members(of: id).map(\.member)
    #expect(people.map(\.user.id) == ["alice", "bob", "carol"])
    #expect(people.map(\.role) == [.owner, .admin, .member])
    #expect(people.allSatisfy { $0.joinedAt == Timestamp(milliseconds: 1_500_000_000_123) })
  }

  @Test("a group without an owner belongs to the importing admin, who is no member when it is read")
  func ownerless() async throws {
    let members = [Samples.member(Samples.group, "alice"), Samples.member(Samples.group, "bob")]
    let id = try #require(try await harness.destination.putChannel(Samples.groupRecord, members: members).id)
    #expect(try await harness.members(of: id).map(\.member.user.id) == ["alice", "bob"])
    #expect(try await harness.members(of: id).map(\.member.role) == [.member, .member])
  }

  @Test("a second owner, an unknown role and a mute that is over come back as they were; former members do not")
  func oddMembers() async throws {
    var members = [
      Samples.member(Samples.group, "alice", .owner), Samples.member(Samples.group, "bob", .owner),
      Samples.member(Samples.group, "carol", .unknown("guest")), Samples.member(Samples.group, "d-[x]|"),
    ]
    members[2].member.isMuted = true
    members[2].member.mutedUntil = Timestamp(milliseconds: 1_500_000_000_500)
    members[3].member.user = User(id: UserID(rawID("d-[x]|")))
    members[3].member.state = .left
    let id = try #require(try await harness.destination.putChannel(Samples.groupRecord, members: members).id)
    try await harness.destination.finishChannel(id, original: Samples.groupRecord, members: members)
    let read = try await harness.members(of: id).map(\.member)
    #expect(Dictionary(uniqueKeysWithValues: read.map { ($0.user.id, $0.role) }) == ["alice": .owner, "bob": .owner, "carol": .unknown("guest")])
    let carol = try #require(read.first { $0.user.id == "carol" })
    #expect(carol.isMuted)
    #expect(carol.mutedUntil == members[2].member.mutedUntil)
    #expect(harness.destination.losses(of: .member(members[3])).map(\.field).contains("member"))
  }

  /// The legal id that the destination gave.
  private func rawID(_ id: String) -> String { "d__x___" + String(OpenIMDigestForTests.hex(id).prefix(12)) }

  @Test("a direct channel comes back with what only groups have a place for")
  func pair() async throws {
    let members = [Samples.member(Samples.pair, "bob"), Samples.member(Samples.pair, "alice", .owner)]
    let outcome = try await harness.destination.putChannel(Samples.pairRecord, members: members)
    #expect(outcome == .written("si_alice_bob"))
    #expect(try await harness.destination.putChannel(Samples.pairRecord, members: members) == .existed("si_alice_bob"))
    let read = try await harness.channels()
    #expect(read.map(\.channel.id) == ["si_alice_bob"])
    var expected = Samples.pairRecord.channel
    expected.id = "si_alice_bob"
    #expect(read.first?.channel == expected)
    let people = try await harness.members(of: "si_alice_bob").map(\.member)
    #expect(people.map(\.role) == [.owner, .member])
  }

  @Test("every kind of message comes back field by field", arguments: [true, false])
  func messages(inGroup: Bool) async throws {
    let channel = inGroup ? Samples.group : Samples.pair
    let members = [Samples.member(channel, "alice"), Samples.member(channel, "bob")]
    let record = inGroup ? Samples.groupRecord : Samples.pairRecord
    let id = try #require(try await harness.destination.putChannel(record, members: members).id)
    var messages = Samples.contents.enumerated().map { Samples.message(channel, $0.offset, $0.element.1) }
    messages.append(Samples.message(channel, 20, .text("reply"), sender: "bob") { $0.replyTo = Reply(id: "m0") })
    messages.append(
      Samples.message(channel, 21, .text("quote")) { $0.replyTo = Reply(id: "m0", quoted: Samples.quoted) })
    messages.append(
      Samples.message(channel, 22, .text("@bob @all")) { $0.mentions = Mentions(users: ["bob"], everyone: true) })
    messages.append(
      Samples.message(channel, 23, .image(Samples.attachment), sender: nil) {
        $0.customType = "t"
        $0.customData = JSONText(unchecked: #"{"unifiedchat": 1}"#)
        $0.reactions = [Reaction(key: "👍", users: ["bob"])]
        $0.editedAt = Timestamp(milliseconds: Samples.start + 99)
        $0.threadParent = "m1"
      })
    messages.append(Samples.message(channel, 24, .text("epoch")) { $0.createdAt = Timestamp(milliseconds: 0) })
    let outcomes = try await harness.destination.putMessages(messages, in: id)
    #expect(outcomes.allSatisfy { $0.id != nil })
    let read = try await harness.messages(in: id)
    #expect(read.map(\.origin?.id) == messages.map { $0.origin?.id })
    #expect(read.map(\.message.id) == outcomes.map(\.id))
    for (original, back) in zip(messages, read) {
      for field in MessageField.allCases where field != .senderName {
        #expect(
          back.message.value(of: field) == original.message.value(of: field),
          "\(original.message.id!) \(original.message.content.kindName) \(field)")
      }
    }
    let existing = try await harness.destination.existing(in: id, after: nil)
    #expect(existing.items.map(\.origin.id) == messages.compactMap { $0.origin?.id })
  }

  @Test("whoever wrote without being a member is one only while the history is written")
  func formerMember() async throws {
    let members = [Samples.member(Samples.group, "alice")]
    let id = try #require(try await harness.destination.putChannel(Samples.groupRecord, members: members).id)
    let messages = [Samples.message(Samples.group, 1, .text("bye"), sender: "bob")]
    #expect(try await harness.destination.putMessages(messages, in: id).first?.id != nil)
    try await harness.destination.finishChannel(id, original: Samples.groupRecord, members: members)
    #expect(try await harness.members(of: id).map(\.member.user.id) == ["alice"])
    #expect(try await harness.messages(in: id).map(\.message.sender) == ["bob"])
  }

  @Test("read marks find their place by the order of the origin")
  func readMarks() async throws {
    let members = [
      Samples.member(Samples.group, "alice", read: Samples.start + 1), Samples.member(Samples.group, "bob"),
      Samples.member(Samples.group, "carol", read: Samples.start - 1),
    ]
    let id = try #require(try await harness.destination.putChannel(Samples.groupRecord, members: members).id)
    let messages = (0..<9).map { Samples.message(Samples.group, $0, .text("\($0)"), sender: "bob") }
    _ = try await harness.destination.putMessages(messages, in: id)
    try await harness.destination.finishChannel(id, original: Samples.groupRecord, members: members)
    let marks = try await harness.members(of: id).map(\.member.readPosition?.major)
    // Alice read the two milliseconds of three messages each; Bob's own messages count as read.
    #expect(marks == [6, 9, nil])
  }

  @Test("bytes are stored once and can be read")
  func files() async throws {
    let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
    let one = try await harness.destination.putAttachment(Samples.attachment, bytes: bytes, in: "sg_x")
    let two = try await harness.destination.putAttachment(Samples.attachment, bytes: bytes, in: "sg_x")
    #expect(one.url == two.url)
    let collected = Collected()
    try await harness.source.download(one) { (part) async throws(ChatError) in await collected.add(part) }
    #expect(await collected.bytes == bytes)
  }

  actor Collected {
    var bytes: [UInt8] = []
    func add(_ part: [UInt8]) { bytes += part }
  }

  @Test("a long channel is read to its end, page by page, from any cursor")
  func paging() async throws {
    let members = [Samples.member(Samples.group, "alice")]
    let id = try #require(try await harness.destination.putChannel(Samples.groupRecord, members: members).id)
    let messages = (0..<1203).map { Samples.message(Samples.group, $0, .text("\($0)")) }
    for start in stride(from: 0, to: messages.count, by: 100) {
      _ = try await harness.destination.putMessages(Array(messages[start..<min(start + 100, 1203)]), in: id)
    }
    #expect(try await harness.messages(in: id).map(\.origin?.id) == messages.map { $0.origin?.id })
    let first = try await harness.source.messages(in: id, after: nil)
    let second = try await harness.source.messages(in: id, after: first.next)
    #expect(second.items.first?.origin?.id == "m500")
  }

  private func post(_ path: String, _ body: JSONValue, token: String?) async throws -> JSONValue {
    var request = HTTPRequest("POST", "http://openim.example:10002\(path)", body: body.bytes())
    request.headers = ["operationID": "t"]
    request.headers["token"] = token
    return try JSONValue(parsing: try await harness.host.transports.http.send(request).body)
  }

  @Test("what an account of the service said is a channel of its own, with its one reader")
  func service() async throws {
    let login: JSONValue = ["secret": "s3cret", "userID": "imAdmin"]
    let token = try await post("/auth/get_admin_token", login, token: nil)["data"]?["token"]?.string
    // One account whose id sorts before that of its reader, and one after.
    for account in ["a0", "news"] {
      _ = try await post(
        "/user/add_notification_account",
        ["userID": .string(account), "nickName": "N", "faceURL": "", "appMangerLevel": 3], token: token)
      let body: JSONValue = [
        "sendID": .string(account), "recvID": "bob", "contentType": 1400, "sessionType": 4,
        "content": ["notificationName": "N", "text": "hello", "mixType": 0],
      ]
      #expect(try await post("/msg/send_msg", body, token: token)["errCode"] == 0)
    }
    let read = try await harness.channels()
    #expect(read.map(\.channel.id) == ["sn_a0_bob", "sn_bob_news"])
    #expect(read.allSatisfy { $0.channel.kind == .service })
    for channel in read.map(\.channel.id) {
      #expect(try await harness.members(of: channel).map(\.member.user.id) == ["bob"])
      let messages = try await harness.messages(in: channel)
      guard case .system(let notice)? = messages.first?.message.content else { throw ChatError.cancelled(.readSource) }
      #expect(messages.count == 1 && notice.text == "hello")
    }
  }

  private func pulls() async -> Int {
    await harness.host.coverage.first { $0.endpoint == "POST /msg/pull_msg_by_seq" }?.calls ?? 0
  }

  @Test("after a kill within a batch the next run finds what arrived, at one request for 500 messages, and writes the rest")
  func restart() async throws {
    let members = [Samples.member(Samples.group, "alice")]
    let id = try #require(try await harness.destination.putChannel(Samples.groupRecord, members: members).id)
    let messages = (0..<703).map { Samples.message(Samples.group, $0, .text("\($0)")) }
    // The first run is killed after 651 of them, with its ledger at 600.
    for start in stride(from: 0, to: 651, by: 100) {
      _ = try await harness.destination.putMessages(Array(messages[start..<min(start + 100, 651)]), in: id)
    }
    let next = try OpenIMDestination(
      profile: harness.profile, environment: harness.environment, transports: harness.host.transports)
    let before = await pulls()
    var found: Set<String> = []
    var cursor: Cursor?
    repeat {
      let page = try await next.existing(in: id, after: cursor)
      found.formUnion(page.items.map(\.origin.id))
      cursor = page.next
    } while cursor != nil
    #expect(await pulls() - before == 2)
    #expect(found.count == 651)
    let rest = messages.filter { !found.contains($0.origin?.id ?? "") }
    _ = try await next.putMessages(rest, in: id)
    #expect(try await harness.messages(in: id).map(\.origin?.id) == messages.map { $0.origin?.id })
  }
}
