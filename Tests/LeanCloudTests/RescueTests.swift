import ChatEmulation
import ChatJSON
import LeanCloudAdapter
import LeanCloudWire
import Testing
import UnifiedChat

/// Everything that an app holds, read with the master key.
@Suite("The rescue", .timeLimit(.minutes(1)))
struct RescueTests {
  static let day: Int64 = 86_400_000

  func source(_ bench: Bench, _ options: [String: JSONText] = [:], model: String? = nil) throws -> LeanCloudSource {
    try LeanCloudSource(
      profile: bench.profile(options, model: model), environment: bench.environment(), transports: bench.host.transports
    )
  }

  func channels(_ source: some ChatSource) async throws -> [Channel] {
    var all: [Channel] = []
    var cursor: Cursor?
    repeat {
      let page = try await source.channels(after: cursor)
      all += page.items.map(\.channel)
      cursor = page.next
    } while cursor != nil
    return all
  }

  func members(_ source: some ChatSource, _ channel: ChannelID) async throws -> [Member] {
    var all: [Member] = []
    var cursor: Cursor?
    repeat {
      let page = try await source.members(of: channel, after: cursor)
      all += page.items.map(\.member)
      cursor = page.next
    } while cursor != nil
    return all
  }

  func messages(
    _ source: some ChatSource, _ channel: ChannelID
  ) async throws -> (messages: [Message], unreadable: [UnreadableRecord]) {
    var all: [Message] = []
    var unreadable: [UnreadableRecord] = []
    var cursor: Cursor?
    repeat {
      let page = try await source.messages(in: channel, after: cursor)
      all += page.items.map(\.message)
      unreadable += page.unreadable
      cursor = page.next
    } while cursor != nil
    return (all, unreadable)
  }

  func message(_ index: Int, in channel: String = "c", at time: Int64, from sender: String = "bob") -> JSONValue {
    [
      "type": "message", "channel": .string(channel), "id": .string("m\(index)"), "sender": .string(sender),
      "createdAt": .int(time), "content": ["kind": "text", "text": .string("\(index)")],
    ]
  }

  @Test("two thousand and five hundred messages of one millisecond come whole and in order, over three pages")
  func oneMillisecond() async throws {
    let bench = try Bench()
    try await bench.load(
      [["type": "channel", "id": "c", "kind": "group"]] + (0..<2500).map { message($0, at: 1_600_000_000_000) })
    let found = try await messages(source(bench), ChannelID(LeanCloudID.objectID(for: "c"))).messages
    #expect(found.count == 2500)
    let positions = found.compactMap(\.position)
    #expect(zip(positions, positions.dropFirst()).allSatisfy { $0 < $1 })
  }

  @Test("workers that share by time and by channel read everything once")
  func shares() async throws {
    let bench = try Bench()
    let names = (0..<12).map { "c\($0)" }
    try await bench.load(
      names.map { ["type": "channel", "id": .string($0), "kind": "group"] }
        + names.flatMap { name in (0..<30).map { message($0, in: name, at: 1_600_000_000_000 + Int64($0) * 1000) } })
    var seen: [ChannelID: [MessageID]] = [:]
    let middle = JSONText(unchecked: "\"\(LeanCloudID.iso(1_600_000_010_000))\"")
    for share in ["1/3", "2/3", "3/3"] {
      for window in ["until", "from"] {
        let worker = try source(bench, ["share": JSONText(unchecked: "\"\(share)\""), window: middle])
        for channel in try await channels(worker) {
          let found = try await messages(worker, channel.id).messages
          #expect(found.count == (window == "until" ? 10 : 20))
          seen[channel.id, default: []] += found.compactMap(\.id)
        }
      }
    }
    #expect(seen.count == 12)
    for ids in seen.values {
      #expect(ids.count == 30)
      #expect(Set(ids).count == 30)
    }
  }

  @Test("a source keeps to the plan's requests a minute by itself, and waits for the next minute")
  func pace() async throws {
    let bench = try Bench()
    try await bench.load([["type": "channel", "id": "c", "kind": "group"], message(0, at: 1_600_000_000_000)])
    let slow = try source(bench, ["requestsPerMinute": JSONText(unchecked: "3")])
    let id = ChannelID(LeanCloudID.objectID(for: "c"))
    for _ in 0..<3 { _ = try await slow.messages(in: id, after: nil) }
    async let fourth = slow.messages(in: id, after: nil)
    // The fourth sleeps on the clock of the test, which only moves here.
    while bench.clock.nextWakeUp == nil { await Task.yield() }
    bench.clock.advance(by: .seconds(60))
    #expect(try await fourth.items.count == 1)
    #expect { _ = try source(bench, ["requestsPerMinute": JSONText(unchecked: "0")]) } throws: { error in
      (error as? ChatError)?.kind == .invalidArgument(field: "options.requestsPerMinute")
    }
  }

  @Test("a conversation that the service has deleted is found by its messages, with those who wrote in it")
  func deleted() async throws {
    let bench = try Bench()
    let bob = try await bench.connect("bob")
    let alice = try await bench.connect("alice")
    let channel = try await alice.adapter.createChannel(ChannelDraft(members: ["bob"], name: "n"))
    _ = try await bob.adapter.send(bob.text("still here", to: channel.id))
    #expect(try await bench.rest("DELETE", "/1.1/classes/_Conversation/\(channel.id)").status == 200)
    let found = try await channels(source(bench))
    #expect(found.map(\.id) == [channel.id])
    #expect(found.map(\.name) == [nil])
    #expect(try await members(source(bench), channel.id).map(\.user.id) == ["bob"])
    #expect(try await messages(source(bench), channel.id).messages.count == 1)
    let without = try source(bench, ["deletedConversations": JSONText(unchecked: "false")])
    #expect(try await channels(without) == [])
  }

  @Test("pairs and groups of the 2014 model are found in both models", arguments: [nil, "session"])
  func firstModel(_ model: String?) async throws {
    let bench = try Bench()
    let tom = try await PeerTests().connect(bench, "Tom")
    let jerry = try await PeerTests().connect(bench, "Jerry")
    let pair = try await tom.adapter.createChannel(.direct(with: "Jerry"))
    let room = try await tom.adapter.createChannel(ChannelDraft(members: ["Jerry"]))
    _ = try await tom.adapter.send(tom.text("to you", to: pair.id))
    _ = try await jerry.adapter.send(jerry.text("to me?", to: pair.id, id: "c-2"))
    _ = try await tom.adapter.send(tom.text("to all", to: room.id, id: "c-3"))
    let source = try source(bench, model: model)
    let found = try await channels(source)
    #expect(Set(found.map(\.id)) == [pair.id, room.id])
    #expect(found.first { $0.id == pair.id }?.kind == .direct)
    #expect(try await members(source, pair.id).map(\.user.id) == ["Jerry", "Tom"])
    #expect(Set(try await members(source, room.id).map(\.user.id)) == ["Jerry", "Tom"])
    #expect(try await messages(source, pair.id).messages.count == 2)
    #expect(try await messages(source, room.id).messages.count == 1)
  }

  @Test("chat rooms, and service conversations with their subscribers over several pages")
  func services() async throws {
    let bench = try Bench()
    let made = try await bench.rest("POST", "/1.2/rtm/service-conversations", ["name": "news"])
    let id = try #require(made.body["objectId"]?.string)
    for number in 0..<60 {
      let path = "/1.2/rtm/service-conversations/\(id)/subscribers"
      #expect(try await bench.rest("POST", path, ["client_id": .string("s\(number)")]).status == 200)
    }
    let message: JSONValue = ["from_client": "editor", "message": "{\"_lctype\":-1,\"_lctext\":\"hello\"}"]
    #expect(try await bench.rest("POST", "/1.2/rtm/service-conversations/\(id)/broadcasts", message).status == 200)
    let room = try await bench.rest("POST", "/1.2/rtm/chatrooms", ["name": "room"])
    let roomID = try #require(room.body["objectId"]?.string)
    #expect(try await bench.rest("POST", "/1.2/rtm/chatrooms/\(roomID)/messages", message).status == 200)
    let source = try source(bench)
    let found = try await channels(source)
    #expect(Set(found.map(\.kind)) == [.service, .open])
    #expect(try await members(source, ChannelID(id)).count == 60)
    #expect(try await messages(source, ChannelID(id)).messages.count == 1)
    #expect(try await messages(source, ChannelID(roomID)).messages.count == 1)
  }

  @Test("blocks and silences come as members' states, and read marks from the unread counts")
  func states() async throws {
    let bench = try Bench()
    let alice = try await bench.connect("alice")
    let bob = try await bench.connect("bob")
    let direct = try await alice.adapter.createChannel(.direct(with: "bob"))
    var sent: [Message] = []
    for number in 0..<4 {
      sent.append(try await alice.adapter.send(alice.text("\(number)", to: direct.id, id: "c-\(number)")))
    }
    try await bob.adapter.markRead(direct.id, upTo: sent[1].position)
    _ = await alice.next { if case .readChanged = $0.kind { true } else { nil } }
    let group = try await alice.adapter.createChannel(ChannelDraft(members: ["bob", "carol"], name: nil))
    try await alice.adapter.mute("carol", in: group.id, for: nil)
    try await alice.adapter.ban("bob", from: group.id, for: nil)
    let source = try source(bench)
    let pair = try await members(source, direct.id)
    #expect(pair.first { $0.user.id == "bob" }?.readPosition == sent[1].position)
    #expect(pair.first { $0.user.id == "alice" }?.readPosition == sent[3].position)
    let crowd = try await members(source, group.id)
    #expect(crowd.first { $0.user.id == "carol" }?.isMuted == true)
    #expect(crowd.first { $0.user.id == "bob" }?.state == .banned)
    let quiet = try self.source(bench, ["readMarks": JSONText(unchecked: "\"none\"")])
    #expect(try await members(quiet, direct.id).allSatisfy { $0.readPosition == nil })
  }

  @Test("what retention took is named with dates, where it took anything")
  func retention() async throws {
    let bench = try Bench { $0.settings = ["retentionDays": 180] }
    let start = Bench.start
    try await bench.load([
      ["type": "channel", "id": "c", "kind": "group", "createdAt": .int(start - 400 * Self.day)],
      message(0, at: start - 390 * Self.day), message(1, at: start - 200 * Self.day),
      message(2, at: start - 10 * Self.day),
      ["type": "channel", "id": "young", "kind": "group", "createdAt": .int(start - 20 * Self.day)],
      message(3, in: "young", at: start - 10 * Self.day),
      ["type": "channel", "id": "silent", "kind": "group", "createdAt": .int(start - 400 * Self.day)],
      message(4, in: "silent", at: start - 300 * Self.day),
    ])
    let source = try source(bench)
    let check = try await source.check()
    #expect(
      check.notes.contains { $0.contains("nothing older than \(Timestamp(milliseconds: start - 10 * Self.day))") })
    let old = try await messages(source, ChannelID(LeanCloudID.objectID(for: "c")))
    #expect(old.messages.count == 1)
    let gap = try #require(old.unreadable.first)
    #expect(gap.reason.contains("\(Timestamp(milliseconds: start - 400 * Self.day))"))
    #expect(gap.reason.contains("\(Timestamp(milliseconds: start - 10 * Self.day))"))
    #expect(try await messages(source, ChannelID(LeanCloudID.objectID(for: "young"))).unreadable == [])
    #expect(try await messages(source, ChannelID(LeanCloudID.objectID(for: "silent"))).unreadable.count == 1)
  }

  @Test("where the server keeps more than half a year nothing is said to be missing")
  func paidHistory() async throws {
    let bench = try Bench()
    try await bench.load([
      ["type": "channel", "id": "c", "kind": "group", "createdAt": .int(Bench.start - 400 * Self.day)],
      message(0, at: Bench.start - 390 * Self.day), message(1, at: Bench.start),
    ])
    #expect(try await messages(source(bench), ChannelID(LeanCloudID.objectID(for: "c"))).unreadable == [])
  }

  @Test("third-party logins of users stay in the raw row, or are left out when the profile says so; tokens always are")
  func secrets() async throws {
    let bench = try Bench { $0.users = [(id: "alice", token: "tok-alice")] }
    let change: JSONValue = ["authData": ["weixin": ["openid": "o", "access_token": "a"]]]
    #expect(try await bench.rest("PUT", "/1.1/users/alice", change).status == 200)
    let kept = try #require(try await source(bench).users(after: nil).items.first?.raw?.text)
    #expect(kept.contains("openid"))
    #expect(!kept.contains("tok-alice"))
    let redacting = try source(bench, ["userSecrets": JSONText(unchecked: "\"redact\"")])
    let redacted = try #require(try await redacting.users(after: nil).items.first?.raw?.text)
    #expect(!redacted.contains("openid"))
    #expect(try await redacting.check().notes.contains { $0.contains("left out") })
    #expect(try await source(bench).check().notes.contains { $0.contains("password hashes") })
  }

  @Test("a file whose old address is dead is fetched from where its row says that it is")
  func movedFile() async throws {
    let bench = try Bench()
    let alice = try await bench.connect("alice")
    let channel = try await alice.adapter.createChannel(.direct(with: "bob"))
    let file = Attachment(name: "n.txt", mimeType: "text/plain", source: .bytes(Array("kept".utf8)))
    let stored = try await alice.adapter.upload(file, for: channel.id, progress: nil)
    let url = try #require(stored.url)
    let key = try #require(url.split(separator: "/").last.map(String.init))
    let old = Attachment(url: "\(Bench.base)/\(key)", name: "n.txt")
    let pieces = Pieces()
    try await source(bench).download(old) { (bytes) async throws(ChatError) in await pieces.add(bytes) }
    #expect(await pieces.bytes == Array("kept".utf8))
  }
}

actor Pieces {
  private(set) var bytes: [UInt8] = []
  func add(_ more: [UInt8]) { bytes += more }
}
