import ChatEmulation
import ChatJSON
import ChatTransport
import OpenIMWire
import Testing
import UnifiedChat

@testable import OpenIMAdapter

extension ChatHarness {
  /// A call of the server's admin.
  @discardableResult
  func admin(_ path: String, _ body: JSONValue) async throws -> JSONValue {
    let token = try await post(
      "/auth/get_admin_token", ["secret": "s3cret", "userID": "imAdmin"], token: nil)["data"]?["token"]?.string
    return try await post(path, body, token: token)
  }

  private func post(_ path: String, _ body: JSONValue, token: String?) async throws -> JSONValue {
    var request = HTTPRequest("POST", "http://openim.example:10002\(path)", body: body.bytes())
    request.headers = ["operationID": "admin"]
    request.headers["token"] = token
    return try JSONValue(parsing: try await host.transports.http.send(request).body)
  }
}

@Suite("What happened while nobody looked", .timeLimit(.minutes(5)))
struct OpenIMChangelogTests {
  let harness: ChatHarness

  init() throws { harness = try ChatHarness() }

  @Test("recalls and own deletions since a token, and nothing twice")
  func changes() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    var sent: [Message] = []
    for index in 0..<4 {
      sent.append(try await alice.send(ChatHarness.text("\(index)", ClientMessageID("c\(index)"), in: channel.id)))
    }
    let start = try await bob.changes(in: channel.id, since: nil)
    #expect(start.updated.isEmpty && start.removed.isEmpty && !start.hasMore)
    let tombstone = try await alice.recall(sent[1])
    try await bob.deleteForMe([sent[2]])
    let page = try await bob.changes(in: channel.id, since: start.next)
    #expect(page.updated == [tombstone])
    #expect(page.removed == [sent[2].id].compactMap(\.self))
    #expect(!page.hasMore)
    let rest = try await bob.changes(in: channel.id, since: page.next)
    #expect(rest.updated.isEmpty && rest.removed.isEmpty)
    #expect(rest.next == page.next)
    // The other one's deletion is nobody else's.
    let other = try await alice.changes(in: channel.id, since: Cursor("0.0"))
    #expect(other.updated == [tombstone] && other.removed.isEmpty)
  }

  @Test("many notices come in pages, also after a new connection")
  func pages() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    var sent: [Message] = []
    for index in 0..<2 {
      sent.append(try await alice.send(ChatHarness.text("\(index)", ClientMessageID("c\(index)"), in: channel.id)))
    }
    let one = try await alice.recall(sent[0])
    // Each receipt is a notice as well.
    for _ in 0..<100 { try await bob.markRead(channel.id, upTo: sent[1].position) }
    let two = try await alice.recall(sent[1])
    let later = try await harness.connected("bob")
    let first = try await later.changes(in: channel.id, since: Cursor("0.0"))
    #expect(first.updated == [one] && first.hasMore)
    let second = try await later.changes(in: channel.id, since: first.next)
    #expect(second.updated == [two] && !second.hasMore)
  }

  @Test("a token that is none is refused, and a foreign channel too", arguments: ["", "x", "1", "-1.0", "1.2.3"])
  func wrong(token: String) async throws {
    let alice = try await harness.connected("alice")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    let error = await #expect(throws: ChatError.self) {
      try await alice.changes(in: channel.id, since: Cursor(token))
    }
    #expect(error?.kind == .invalidArgument(field: "since"))
    let carol = try await harness.connected("carol")
    await #expect(throws: ChatError.self) { try await carol.changes(in: channel.id, since: nil) }
  }

  @Test("a notice that was lost is told as missed events of the channels beside it")
  func lostNotice() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    var sent: [Message] = []
    for index in 0..<3 {
      sent.append(try await alice.send(ChatHarness.text("\(index)", ClientMessageID("c\(index)"), in: channel.id)))
    }
    _ = try await alice.recall(sent[0])
    let start = try await bob.changes(in: channel.id, since: Cursor("1.0"))
    _ = try await EmulatorControl(harness.host)
      .add(FaultRule(FaultRule.Match("push", user: "bob"), at: .beforePush, do: .drop))
    let lost = try await alice.recall(sent[1])
    var events = bob.events().makeAsyncIterator()
    _ = try await alice.recall(sent[2])
    let missed = await first(&events) { if case .missedEvents = $0 { true } else { false } }
    #expect(missed?.kind == .missedEvents(in: [channel.id]))
    #expect(try await bob.changes(in: channel.id, since: start.next).updated.contains(lost))
  }
}

@Suite("What a user keeps with a channel", .timeLimit(.minutes(5)))
struct OpenIMChannelViewTests {
  let harness: ChatHarness

  init() throws { harness = try ChatHarness() }

  @Test("a hidden channel is hidden on the user's other devices too, until somebody writes")
  func hide() async throws {
    let phone = try await harness.connected("alice")
    let desk = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await phone.createChannel(.direct(with: "bob"))
    _ = try await bob.send(ChatHarness.text("1", "c1", in: channel.id))
    var events = desk.events().makeAsyncIterator()
    try await phone.setHidden(true, channel.id)
    // What the message changed may be told after it too.
    let told = await first(&events) { if case .channelChanged(let seen) = $0 { seen.isHidden } else { false } }
    #expect(told != nil)
    #expect(try await desk.channels(ChannelQuery(), page: nil).items.isEmpty)
    #expect(try await desk.channels(ChannelQuery(includesHidden: true), page: nil).items.map(\.id) == [channel.id])
    #expect(try await bob.channel(channel.id).isHidden == false)
    _ = try await bob.send(ChatHarness.text("2", "c2", in: channel.id))
    #expect(try await desk.channels(ChannelQuery(), page: nil).items.map(\.id) == [channel.id])
    try await phone.setHidden(true, channel.id)
    try await desk.setHidden(false, channel.id)
    #expect(try await phone.channel(channel.id).isHidden == false)
  }

  @Test(
    "a mention is a flag of the channel until it was read to its end, whether its push is here yet or not",
    arguments: [true, false], [true, false])
  func mention(everyone: Bool, isPushLate: Bool) async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(ChannelDraft(members: ["bob", "carol"]))
    _ = try await alice.send(ChatHarness.text("first", "c0", in: channel.id))
    #expect(try await bob.channel(channel.id).unreadMentions == .exact(0))
    var outgoing = ChatHarness.text("", "c1", in: channel.id)
    outgoing.draft = MessageDraft(
      .text("you"), mentions: everyone ? Mentions(everyone: true) : Mentions(users: ["bob"]))
    let control = EmulatorControl(harness.host)
    // Requests of HTTP go on.
    if isPushLate { try await control.act(.stall(), on: "bob") }
    let sent = try await alice.send(outgoing)
    #expect(try await bob.channel(channel.id).unreadMentions == .atLeast(1))
    try await bob.markRead(channel.id, upTo: MessagePosition(sequence: 1))
    #expect(try await bob.channel(channel.id).unreadMentions == .atLeast(1))
    if isPushLate { try await control.act(.resume, on: "bob") }
    try await bob.markRead(channel.id, upTo: sent.position)
    #expect(try await bob.channel(channel.id).unreadMentions == .exact(0))
    #expect(try await alice.channel(channel.id).unreadMentions == .exact(0))
  }

  @Test("a device token is kept by the server, and replaced when it is taken back")
  func push() async throws {
    let alice = try await harness.connected("alice")
    func tokens() async -> JSONValue? {
      let users = await harness.host.snapshot()["machine"]?["users"]?.array ?? []
      return users.first { $0["info"]?["userID"] == "alice" }?["pushTokens"]
    }
    try await alice.registerPush(token: "device-1")
    #expect(await tokens() == [[5, "device-1", 0]])
    try await alice.unregisterPush(token: "device-1")
    let ended = await tokens()?[0]
    #expect(ended?[1] == "")
    #expect(ended?[2] != 0)
    await #expect(throws: ChatError.self) { try await alice.registerPush(token: "") }
  }

  @Test("what an account of the service says is a channel to read, and to nobody to write")
  func service() async throws {
    let alice = try await harness.connected("alice")
    try await harness.admin(
      "/user/add_notification_account", ["userID": "news", "nickName": "News", "faceURL": "", "appMangerLevel": 3])
    var events = alice.events().makeAsyncIterator()
    let sent = try await harness.admin(
      "/msg/send_msg",
      [
        "sendID": "news", "recvID": "alice", "contentType": 1400, "sessionType": 4,
        "content": ["notificationName": "News", "text": "hello", "mixType": 0],
      ])
    #expect(sent["errCode"] == 0)
    let joined = await first(&events) { if case .channelJoined = $0 { true } else { false } }
    guard case .channelJoined(let told)? = joined?.kind else { throw ChatError.cancelled(.join) }
    #expect(told.kind == .service)
    let listed = try await alice.channels(ChannelQuery(kinds: [.service]), page: nil).items
    let channel = try #require(listed.first)
    #expect(channel.id == told.id && channel.name == "News" && channel.peer == "news" && channel.unread == .exact(1))
    let page = try await alice.history(of: channel.id, .newest())
    guard case .system(let notice)? = page.messages.first?.content else { throw ChatError.cancelled(.history) }
    #expect(notice.text == "hello")
    #expect(notice.actor == "news")
    try await alice.markRead(channel.id, upTo: page.messages.first?.position)
    #expect(try await alice.channel(channel.id).unread == .exact(0))
    try await alice.setPinned(true, channel.id)
    #expect(try await alice.channel(channel.id).isPinned)
    for refused in [
      { _ = try await alice.send(ChatHarness.text("hi", "c1", in: channel.id)) },
      { _ = try await alice.createChannel(ChannelDraft(kind: .service)) }, { try await alice.leave(channel.id) },
    ] as [@Sendable () async throws -> Void] {
      let error = await #expect(throws: ChatError.self) { try await refused() }
      #expect(error?.kind == .permission())
    }
  }
}

@Suite("Messages that vanish after they were read", .timeLimit(.minutes(5)))
struct OpenIMBurningTests {
  let harness: ChatHarness

  init() throws { harness = try ChatHarness() }

  @Test("vanish for both, some time after the other one has read them, and not before")
  func vanish() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    let stays = try await alice.send(ChatHarness.text("stays", "c0", in: channel.id))
    let (bobsEvents, alicesEvents) = (bob.events(), alice.events())
    var toBob = bobsEvents.makeAsyncIterator()
    var toAlice = alicesEvents.makeAsyncIterator()
    try await alice.setBurning(after: .seconds(5), of: channel.id)
    #expect(try await alice.burning(of: channel.id) == .seconds(5))
    #expect(try await bob.burning(of: channel.id) == .seconds(5))
    let secret = try await alice.send(ChatHarness.text("secret", "c1", in: channel.id))
    let id = try #require(secret.id)
    _ = await first(&toBob) { if case .messageReceived(let message) = $0 { message.id == id } else { false } }
    #expect(try await bob.history(of: channel.id, .newest()).messages.contains { $0.id == id })
    try await bob.markRead(channel.id, upTo: secret.position)
    _ = await first(&toAlice) { if case .readChanged = $0 { true } else { false } }
    // A wait that was begun need not have come to its clock yet, and then ends five seconds after the other one. No longer:
    // a request that waits must not time out.
    let hidden = try await harness.whileTimePasses(
      atMost: .seconds(11),
      once: {
        let (alices, bobs) = (await alice.burns, await bob.burns)
        return !alices.isEmpty && !bobs.isEmpty
      }
    ) {
      var all: [ChatEvent?] = []
      for stream in [bobsEvents, alicesEvents] {
        var events = stream.makeAsyncIterator()
        all.append(await first(&events) { $0 == .messageHidden(channel.id, id) })
      }
      return all
    }
    for (event, reader) in zip(hidden, [bob, alice]) {
      #expect(event != nil)
      let left = try await reader.history(of: channel.id, .newest()).messages.map(\.id)
      #expect(!left.contains(id) && left.contains(stays.id))
    }
    #expect(harness.clock.now.milliseconds >= 1_767_225_600_000 + 5000)
    try await alice.setBurning(after: nil, of: channel.id)
    #expect(try await bob.burning(of: channel.id) == nil)
  }

  @Test("what was read while nobody looked vanishes when its history is asked for")
  func later() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    try await alice.setBurning(after: .seconds(5), of: channel.id)
    let secret = try await alice.send(ChatHarness.text("secret", "c1", in: channel.id))
    let id = try #require(secret.id)
    await alice.disconnect()
    try await bob.markRead(channel.id, upTo: secret.position)
    let again = try await harness.connected("alice")
    let stream = again.events()
    #expect(try await again.history(of: channel.id, .newest()).messages.contains { $0.id == id })
    let hidden = try await harness.whileTimePasses {
      var events = stream.makeAsyncIterator()
      return await first(&events) { $0 == .messageHidden(channel.id, id) }
    }
    #expect(hidden != nil)
  }

  @Test("however often its history is read, a message vanishes once")
  func once() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    try await alice.setBurning(after: .seconds(5), of: channel.id)
    let secret = try await alice.send(ChatHarness.text("secret", "c1", in: channel.id))
    await alice.disconnect()
    try await bob.markRead(channel.id, upTo: secret.position)
    let again = try await harness.connected("alice")
    let stream = again.events()
    for _ in 0..<3 { _ = try await again.history(of: channel.id, .newest()) }
    let isGone: @Sendable () async -> Bool = {
      (try? await !again.history(of: channel.id, .newest()).messages.contains { $0.id == secret.id }) ?? false
    }
    // Real time: nothing depends on how long it is.
    try await harness.whileTimePasses { while await !isGone() { try await Task.sleep(for: .milliseconds(1)) } }
    let marker = try await again.send(ChatHarness.text("marker", "c2", in: channel.id))
    try await again.deleteForMe([marker])
    await again.disconnect()
    var hidden = 0
    for await event in stream {
      if case .messageHidden = event.kind { hidden += 1 }
      if event.kind == .connectionChanged(.disconnected(.requested)) { break }
    }
    #expect(hidden == 1)
  }

  @Test("groups have no such thing, and less than a second is refused")
  func refusals() async throws {
    let alice = try await harness.connected("alice")
    let group = try await alice.createChannel(ChannelDraft(members: ["bob"]))
    let error = await #expect(throws: ChatError.self) { try await alice.setBurning(after: .seconds(5), of: group.id) }
    #expect(error?.kind == .permission())
    let direct = try await alice.createChannel(.direct(with: "bob"))
    let short = await #expect(throws: ChatError.self) {
      try await alice.setBurning(after: .milliseconds(5), of: direct.id)
    }
    #expect(short?.kind == .invalidArgument(field: "duration"))
  }
}

@Suite("What changed in the channel list", .timeLimit(.minutes(5)))
struct OpenIMChannelLogTests {
  @Test("new, changed and left channels since a token; what was said is no change")
  func changes() async throws {
    let harness = try ChatHarness()
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let group = try await alice.createChannel(ChannelDraft(members: ["bob"], name: "G"))
    let other = try await alice.createChannel(ChannelDraft(members: ["bob"], name: "H"))
    let start = try await bob.channelChanges(since: nil)
    #expect(start.isFull)
    let direct = try await alice.createChannel(.direct(with: "bob"))
    _ = try await alice.send(ChatHarness.text("1", "c1", in: direct.id))
    _ = try await alice.updateChannel(group.id, ChannelChanges(name: "G2"))
    try await alice.removeMembers(["bob"], from: other.id)
    let page = try await bob.channelChanges(since: start.next)
    #expect(!page.isFull)
    #expect(Set(page.changed) == [direct.id, group.id])
    #expect(page.removed == [other.id])
    _ = try await alice.send(ChatHarness.text("2", "c2", in: direct.id))
    let rest = try await bob.channelChanges(since: page.next)
    #expect(rest.changed.isEmpty && rest.removed.isEmpty && !rest.isFull)
    try await bob.setPinned(true, direct.id)
    #expect(try await bob.channelChanges(since: rest.next).changed == [direct.id])
    await #expect(throws: ChatError.self) { try await bob.channelChanges(since: "x") }
  }
}

@Suite("Friends and applications through the adapter", .timeLimit(.minutes(5)))
struct OpenIMContactTests {
  let harness: ChatHarness

  init() throws { harness = try ChatHarness() }

  @Test("a friendship from its request to its end, with what each side is told")
  func friends() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    var toAlice = await alice.contactEvents().makeAsyncIterator()
    var toBob = await bob.contactEvents().makeAsyncIterator()
    try await alice.requestFriendship(of: "bob", text: "hi")
    guard case .friendAsked(let asker, let request)? = await toBob.next() else { throw ChatError.cancelled(.invite) }
    #expect(asker == "alice" && request.text == "hi" && request.answer == .open)
    #expect(try await bob.friendRequests() == [request])
    #expect(try await alice.sentFriendRequests() == [request])
    try await bob.answerFriendRequest(from: "alice", accept: true, text: "yes")
    #expect(await toAlice.next() == .friendAnswered("bob", agreed: true))
    #expect(await toAlice.next() == .friendAdded("bob"))
    let again = await #expect(throws: ChatError.self) {
      try await bob.answerFriendRequest(from: "alice", accept: true, text: "")
    }
    #expect(again?.kind == .conflict)
    #expect(again?.vendor?.code == "1305")
    #expect(try await alice.friends().map(\.user.id) == ["bob"])
    #expect(try await bob.friends().map(\.user.id) == ["alice"])
    try await alice.setFriend("bob", remark: "Bobby", isPinned: true)
    #expect(await toAlice.next() == .friendsChanged(["bob"]))
    let entry = try await alice.friends().first
    #expect(entry?.remark == "Bobby" && entry?.isPinned == true)
    _ = try await bob.updateProfile(name: "Robert", avatarURL: nil, customData: nil)
    #expect(await toAlice.next() == .friendsChanged(["bob"]))
    try await alice.removeFriend("bob")
    #expect(await toAlice.next() == .friendRemoved(by: "alice", "bob"))
    #expect(try await alice.friends().isEmpty)
    #expect(try await bob.friends().count == 1)
  }

  @Test("who is blocked cannot write, and stands in the list until unblocked")
  func blocks() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    try await bob.block("alice")
    #expect(try await bob.blockedUsers().map(\.id) == ["alice"])
    let error = await #expect(throws: ChatError.self) {
      try await alice.send(ChatHarness.text("1", "c1", in: channel.id))
    }
    #expect(error?.vendor?.code == "1302")
    try await bob.unblock("alice")
    #expect(try await bob.blockedUsers().isEmpty)
    _ = try await alice.send(ChatHarness.text("1", "c2", in: channel.id))
  }

  @Test("a group that wants an application: asked, told, agreed, joined")
  func applications() async throws {
    let alice = try await harness.connected("alice")
    let carol = try await harness.connected("carol")
    let channel = try await alice.createChannel(ChannelDraft(members: ["bob"], name: "G"))
    var toAlice = await alice.contactEvents().makeAsyncIterator()
    var toCarol = await carol.contactEvents().makeAsyncIterator()
    var events = carol.events().makeAsyncIterator()
    let refused = await #expect(throws: ChatError.self) { try await carol.join(channel.id) }
    #expect(refused?.kind == .permission())
    try await carol.requestToJoin(channel.id, text: "let me in")
    guard case .joinAsked(let asked, let request)? = await toAlice.next() else { throw ChatError.cancelled(.join) }
    #expect(asked == channel.id && request.from == "carol" && request.text == "let me in")
    #expect(try await alice.joinRequests().map(\.from) == ["carol"])
    #expect(try await carol.sentJoinRequests().map(\.answer) == [.open])
    try await alice.answerJoinRequest(of: "carol", to: channel.id, accept: true, text: "welcome")
    #expect(await toCarol.next() == .joinAnswered(channel.id, "carol", agreed: true))
    let joined = await first(&events) { if case .channelJoined = $0 { true } else { false } }
    #expect(joined != nil)
    #expect(try await carol.channel(channel.id).myState == .joined)
    try await alice.setJoining(.free, of: channel.id)
    let dave = try await harness.connected("bob")
    try await dave.leave(channel.id)
    #expect(try await dave.join(channel.id).id == channel.id)
    let nowhere = await #expect(throws: ChatError.self) { try await carol.requestToJoin("sg_none", text: "") }
    #expect(nowhere?.kind == .notFound)
  }

  @Test("what the app's backend says by key and data reaches the user")
  func business() async throws {
    let alice = try await harness.connected("alice")
    var events = await alice.contactEvents().makeAsyncIterator()
    try await harness.admin(
      "/msg/send_business_notification",
      ["key": "k", "data": "{}", "sendUserID": "bob", "recvUserID": "alice", "recvGroupID": "", "sendMsg": false])
    #expect(await events.next() == .business(key: "k", data: "{}"))
  }
}

@Suite("An upload that breaks off", .timeLimit(.minutes(5)))
struct OpenIMResumeTests {
  @Test("goes on where it stopped, when the same bytes are uploaded again", arguments: [false, true])
  func resume(isForgotten: Bool) async throws {
    let harness = try ChatHarness()
    let alice = try await harness.connected("alice")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    let part = 5 << 20
    let bytes = (0..<(2 * part + 10)).map { UInt8(truncatingIfNeeded: $0 / 7) }
    let attachment = Attachment(name: "big.bin", mimeType: "application/octet-stream", source: .bytes(bytes))
    let control = EmulatorControl(harness.host)
    _ = try await control.add(
      FaultRule(FaultRule.Match("file"), do: .http(HTTPResponse(status: 503)), nth: 4))
    await #expect(throws: ChatError.self) { try await alice.upload(attachment, for: channel.id, progress: nil) }
    await control.removeRules()
    if isForgotten { try await control.restart(keepingState: true) }
    let (stream, feed) = AsyncStream.makeStream(of: Int64.self)
    let uploaded = try await alice.upload(attachment, for: channel.id) { sent, _ in feed.yield(sent) }
    feed.finish()
    var steps: [Int64] = []
    for await step in stream { steps.append(step) }
    let whole = [Int64(part), Int64(2 * part), Int64(bytes.count)]
    #expect(steps == (isForgotten ? whole : Array(whole.dropFirst())))
    #expect(try await alice.download(uploaded, limit: .max) == bytes)
  }
}
