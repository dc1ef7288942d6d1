import ChatEmulation
import ChatInterchange
import ChatJSON
import ChatTransport
import Foundation
import SendbirdAdapter
import SendbirdWire
import Testing
import UnifiedChat

private func user(_ id: String) -> UserRecord {
  UserRecord(user: User(id: UserID(id)), origin: Origin(vendor: "other", id: id))
}

private func message(_ number: Int, by sender: String, in channel: ChannelID) -> MessageRecord {
  MessageRecord(
    message: Message(
      channel: channel, id: MessageID("m\(number)"), sender: UserID(sender),
      createdAt: Timestamp(milliseconds: 1_400_000_000_000 + Int64(number)), content: .text("\(number)")),
    origin: Origin(vendor: "other", id: "m\(number)", channel: channel))
}

@Suite("Sendbird as a destination, at its limits", .timeLimit(.minutes(1)))
struct SendbirdDestinationTests {
  private let channel = ChannelRecord(
    channel: Channel(id: "full_room", kind: .group, name: "Full"), origin: Origin(vendor: "other", id: "full_room"))

  private func members(_ count: Int) -> [MemberRecord] {
    (0..<count).map { MemberRecord(channel: "full_room", member: Member(user: User(id: UserID("m\($0)")))) }
  }

  private func ids(_ lab: Lab) async throws -> [String] {
    var (ids, token): ([String], String) = ([], "")
    repeat {
      let json = try await lab.rest("GET", "group_channels/full_room/members?limit=100&token=\(token)").json
      ids += json["members"]?.array?.compactMap { $0["user_id"]?.string } ?? []
      token = json["next"]?.string ?? ""
    } while !token.isEmpty
    return ids.sorted()
  }

  @Test(
    "senders who are no members take the free seats in turn, and the channel ends with its own members",
    arguments: [95, 99, 100])
  func guests(count: Int) async throws {
    let lab = try Lab()
    let strangers = (0..<20).map { "s\($0)" }
    let destination = try lab.entry.makeDestination(lab.profile(), lab.adminEnvironment)
    _ = try await destination.putUsers((0..<count).map { user("m\($0)") } + strangers.map(user))
    let id = try #require(try await destination.putChannel(channel, members: members(count)).id)
    let messages = (0..<100).map {
      message($0, by: $0 % 3 == 0 ? "m\($0 % count)" : strangers[$0 % 20], in: "full_room")
    }
    let outcomes = try await destination.putMessages(messages, in: id)
    #expect(outcomes.allSatisfy { if case .written = $0 { true } else { false } })
    // A channel with all seats taken is a super group from its start.
    let isSuper = try await lab.rest("GET", "group_channels/full_room").json["is_super"]?.bool
    #expect(isSuper == (count == 100))
    try await destination.finishChannel(id, original: channel, members: members(count))
    #expect(try await ids(lab) == (0..<count).map { "m\($0)" }.sorted())
    let source = try lab.entry.makeSource(lab.profile(), lab.adminEnvironment)
    let read = try await source.messages(in: id, after: nil).items
    #expect(read.map(\.message.sender) == messages.map(\.message.sender))
    #expect(try await source.channels(after: nil).items.first?.channel.name == "Full")
  }

  @Test("guests of a killed run leave when another one ends, and whoever joined meanwhile stays")
  func guestsOfAKilledRun() async throws {
    let lab = try Lab()
    let first = try lab.entry.makeDestination(lab.profile(), lab.adminEnvironment)
    _ = try await first.putUsers([user("m0"), user("stranger"), user("fresh")])
    let id = try #require(try await first.putChannel(channel, members: members(1)).id)
    _ = try await first.putMessages([message(0, by: "stranger", in: "full_room")], in: id)
    #expect(try await ids(lab) == ["m0", "stranger"])
    // Somebody comes at Sendbird itself before the next run.
    try await lab.rest("POST", "group_channels/full_room/invite", ["user_ids": ["fresh"]])
    let second = try lab.entry.makeDestination(lab.profile(), lab.adminEnvironment)
    _ = try await second.putChannel(channel, members: members(1))
    _ = try await second.putMessages([message(0, by: "stranger", in: "full_room")], in: id)
    try await second.finishChannel(id, original: channel, members: members(1))
    #expect(try await ids(lab) == ["fresh", "m0"])
  }

  @Test("under a rate that it exceeds, an import waits as long as it is told and comes to its end")
  func rateLimit() async throws {
    let lab = try Lab(settings: ["maxRequestsPerSecond": 5])
    let clock = ManualClock(start: Timestamp(milliseconds: Lab.start))
    let destination = try lab.entry.makeDestination(
      lab.profile(), AdapterEnvironment(adminSecret: "secret", clock: clock))
    let work = Task { try await destination.putUsers((0..<40).map { user("u\($0)") }) }
    // Both clocks go on together whenever somebody waits.
    let driver = Task {
      while !Task.isCancelled {
        if clock.nextWakeUp != nil {
          await lab.host.advance(by: .seconds(1))
          clock.advance(by: .seconds(1))
        }
        await Task.yield()
      }
    }
    defer { driver.cancel() }
    let outcomes = try await work.value
    #expect(outcomes == (0..<40).map { .written(UserID("u\($0)")) })
    #expect(clock.now >= Timestamp(milliseconds: Lab.start + 7000))
  }

  @Test("a rate limit that never ends is told in the end")
  func endlessRateLimit() async throws {
    struct Refusing: HTTPClient {
      func send(
        _ request: HTTPRequest, progress: (@Sendable (TransferProgress) -> Void)?
      ) async throws(TransportError) -> HTTPResponse {
        HTTPResponse(
          status: 429, headers: ["Retry-After": "3"],
          body: Array(#"{"error":true,"code":500910,"message":"Too many requests."}"#.utf8))
      }
    }
    let lab = try Lab()
    let clock = ManualClock()
    let entry = SendbirdVendor.entry(
      transports: Transports(http: Refusing(), webSocket: lab.host.transports.webSocket))
    let source = try entry.makeSource(lab.profile(), AdapterEnvironment(adminSecret: "secret", clock: clock))
    let work = Task { try await source.check() }
    let driver = Task {
      while !Task.isCancelled {
        if let next = clock.nextWakeUp { clock.advance(to: next) }
        await Task.yield()
      }
    }
    defer { driver.cancel() }
    await #expect { try await work.value } throws: {
      ($0 as? ChatError)?.kind == .rateLimited(retryAfter: .seconds(3)) && ($0 as? ChatError)?.vendor?.code == "500910"
    }
  }
}

@Suite("Sendbird's export files as a source")
struct SendbirdExportTests {
  /// Exports of one kind, as bytes of the file behind the link.
  private func export(_ lab: Lab, _ kind: String, from: Int64 = Lab.start - 1000, to: Int64) async throws -> [UInt8] {
    let asked = try await lab.rest("POST", "export/\(kind)", ["start_ts": .int(from), "end_ts": .int(to)]).json
    let done = try await lab.rest("GET", "export/\(kind)/\(asked["request_id"]?.string ?? "")").json
    return try await lab.host.transports.http.send(HTTPRequest("GET", done["file"]?["url"]?.string ?? "")).body
  }

  private func messages(_ source: any ChatSource, _ channel: ChannelID) async throws -> [MessageRecord] {
    var (items, cursor): ([MessageRecord], Cursor?) = ([], nil)
    repeat {
      let page = try await source.messages(in: channel, after: cursor)
      #expect(page.unreadable.isEmpty)
      items += page.items
      cursor = page.next
    } while cursor != nil
    return items
  }

  @Test("what the files hold is what the Platform API tells: users, channels, members and messages")
  func sameAsTheAPI() async throws {
    let lab = try Lab()
    let (ana, bob) = (try await lab.connected("ana"), try await lab.connected("bob"))
    let channel = try await ana.createChannel(ChannelDraft(members: ["bob"], name: "Room"))
    for start in stride(from: 0, to: 600, by: 100) {
      let items = (start..<(start + 100)).map { number -> JSONValue in
        [
          "message_type": "MESG", "user_id": number % 2 == 0 ? "ana" : "bob", "message": .string("\(number)"),
          "timestamp": .int(Lab.start + Int64(number / 100)),
        ]
      }
      try await lab.rest("POST", "migration/\(channel.id)", ["messages": .array(items)])
    }
    await lab.host.advance(by: .milliseconds(6))
    let page = try await ana.history(of: channel.id, .newest(3)).messages
    _ = try await bob.edit(page[0], to: .text("edited"))
    let early = try await export(lab, "messages", to: Lab.start + 6)
    _ = try await ana.recall(page[1])
    await lab.host.advance(by: .milliseconds(10))
    let late = try await export(lab, "messages", from: Lab.start + 2, to: Lab.start + 1000)
    let files: [(String, [UInt8])] = [
      ("late.zip", late), ("early.zip", early), ("users.zip", try await export(lab, "users", to: Lab.start + 1000)),
      ("channels.zip", try await export(lab, "channels", to: Lab.start + 1000)),
    ]
    let source = try SendbirdExportSource(files: files, http: lab.host.transports.http)
    let api = try lab.entry.makeSource(lab.profile(), lab.adminEnvironment)
    #expect(try await source.check().messages == 600)
    let own = try await messages(source, channel.id)
    let theirs = try await messages(api, channel.id)
    #expect(own.map(\.message) == theirs.map(\.message))
    #expect(own.contains { $0.message.isRecalled })
    #expect(
      try await source.users(after: nil).items.map(\.user.id) == api.users(after: nil).items.map(\.user.id))
    let channels = try await source.channels(after: nil).items
    #expect(channels.map(\.channel) == (try await api.channels(after: nil)).items.map(\.channel))
    let members = try await source.members(of: channel.id, after: nil).items.map(\.member)
    #expect(members.map(\.user.id) == ["ana", "bob"])
    #expect(members.map(\.role) == [.admin, .admin] || members.map(\.role) == [.admin, .member])
  }

  @Test("files alone name users and channels that no list holds, and a profile reads them by path")
  func byPath() async throws {
    let lab = try Lab()
    let ana = try await lab.connected("ana")
    let channel = try await ana.createChannel(ChannelDraft(name: "Room"))
    let sent = try await ana.say("hi", in: channel.id, id: "c1")
    let path = FileManager.default.temporaryDirectory.appending(path: "export-\(UUID().uuidString).zip")
    defer { try? FileManager.default.removeItem(at: path) }
    try Data(try await export(lab, "messages", to: Lab.start + 1000)).write(to: path)
    var profile = lab.profile()
    profile.options["exportFiles"] = JSONText(unchecked: JSONValue.array([.string(path.path)]).text())
    let source = try lab.entry.makeSource(profile, AdapterEnvironment(clock: ManualClock()))
    #expect(try await source.users(after: nil).items.map(\.user.id) == ["ana"])
    #expect(try await source.channels(after: nil).items.map(\.channel.id) == [channel.id])
    #expect(try await messages(source, channel.id).map(\.message.id) == [sent.id])
    profile.options["exportFiles"] = JSONText(unchecked: "\"/nowhere/none.zip\"")
    #expect { try lab.entry.makeSource(profile, AdapterEnvironment(clock: ManualClock())) } throws: {
      ($0 as? ChatError)?.kind == .invalidArgument(field: "exportFiles")
    }
  }

  @Test(
    "a file that is no export is an error that names it; one bad item in a good file is told and the rest is read",
    arguments: ["not json", "{\"other\": 1}", "[]"])
  func damaged(text: String) async throws {
    let lab = try Lab()
    #expect {
      try SendbirdExportSource(files: [("bad.json", Array(text.utf8))], http: lab.host.transports.http)
    } throws: {
      ($0 as? ChatError)?.detail.hasPrefix("bad.json") == true
    }
    let mixed =
      #"{"messages":[{"message":"no id"},{"message_id":7,"type":"MESG","message":"x","created_at":5}],"#
      + #""channel":{"channel_url":"c","member_count":1,"members":[]}}"#
    let source = try SendbirdExportSource(files: [("m.json", Array(mixed.utf8))], http: lab.host.transports.http)
    #expect(try await source.users(after: nil).unreadable.map(\.kind) == ["message"])
    #expect(try await messages(source, "c").map(\.message.content) == [.text("x")])
    let withBroken = SendbirdZip.write([
      SendbirdZip.Entry(name: "a.json", bytes: Array("{".utf8)),
      SendbirdZip.Entry(name: "c.json", bytes: Array(mixed.utf8)),
    ])
    let zipped = try SendbirdExportSource(files: [("e.zip", withBroken)], http: lab.host.transports.http)
    #expect(try await zipped.users(after: nil).unreadable.map(\.kind) == ["file", "message"])
  }
}
