import ChatEmulation
import ChatInterchange
import ChatJSON
import ChatTransport
import OpenIMEmulator
import OpenIMWire
import Testing
import UnifiedChat

@testable import OpenIMAdapter

/// Adapters of several users at one emulator in process.
struct ChatHarness {
  let host: EmulatorHost
  let profile: Profile
  let clock = ManualClock(start: Timestamp(milliseconds: 1_767_225_600_000))

  init(users: [String] = ["alice", "bob", "carol"], settings: [String: JSONValue] = [:]) throws {
    let options = EmulatorOptions(
      users: users.map { (id: $0, token: "tok-\($0)") }, adminSecret: "s3cret", settings: settings)
    host = try EmulatorHost(EmulatorFactory(OpenIMEmulator.self), options: options, clock: .virtual)
    profile = Profile(name: "test", vendor: "openim", endpoints: Profile.Endpoints(api: "http://openim.example:10002"))
  }

  func environment(_ provider: (any CredentialProvider)? = nil) -> AdapterEnvironment {
    AdapterEnvironment(adminSecret: "s3cret", clock: clock, credentials: provider)
  }

  func adapter(provider: (any CredentialProvider)? = nil) throws -> OpenIMAdapter {
    try OpenIMAdapter(profile: profile, environment: environment(provider), transports: host.transports)
  }

  func connected(_ user: UserID) async throws -> OpenIMAdapter {
    let adapter = try adapter()
    _ = try await adapter.connect(as: user, credential: .token("tok-\(user)"))
    return adapter
  }

  /// Lets the adapters' clock pass on to whatever is due next, once `condition` is true and until `body` has its result.
  ///
  /// It passes by `limit` at most: by less than the 18 s after which links are asked for a sign of life, so that a slow
  /// machine loses none. Before the condition it stands, so that no request is late that is still on its way.
  func whileTimePasses<Value: Sendable>(
    atMost limit: Duration = .seconds(15), once condition: @escaping @Sendable () async -> Bool = { true },
    _ body: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let end = clock.now + limit
    let passing = Task {
      var mayPass = false
      while !Task.isCancelled {
        if !mayPass { mayPass = await condition() }
        if mayPass, let due = clock.nextWakeUp, due <= end { clock.advance(to: due) }
        // Real time, so that a wait does not take a core from the tests beside it; nothing depends on how long it is.
        try? await Task.sleep(for: .milliseconds(1))
      }
    }
    defer { passing.cancel() }
    return try await body()
  }

  /// Messages with these numbers in the chat of alice and bob, as a server that has them.
  func load(_ seqs: [Int64]) async throws -> ChannelID {
    let control = EmulatorControl(host)
    try await control.load(Record.channel(Samples.pairRecord).json())
    for user in ["alice", "bob"] as [UserID] {
      try await control.load(Record.member(Samples.member(Samples.pair, user)).json())
    }
    for seq in seqs {
      let record = Samples.message(Samples.pair, Int(seq), .text("\(seq)")) { $0.position = MessagePosition(sequence: seq) }
      try await control.load(Record.message(record).json())
    }
    return "si_alice_bob"
  }

  /// A send of one text.
  static func text(_ text: String, _ id: ClientMessageID, in channel: ChannelID) -> OutgoingMessage {
    OutgoingMessage(channel: channel, localID: LocalID(id.rawValue), clientMessageID: id, draft: .text(text))
  }
}

/// Reads a stream until an event is there that `matches`; the test's time limit ends a wait in vain.
func first(
  _ iterator: inout ChatEventStream.AsyncIterator, _ matches: (ChatEvent.Kind) -> Bool
) async -> ChatEvent? {
  while let event = await iterator.next() { if matches(event.kind) { return event } }
  return nil
}

@Suite("The adapter against the emulator", .timeLimit(.minutes(5)))
struct OpenIMAdapterTests {
  let harness: ChatHarness

  init() throws { harness = try ChatHarness() }

  @Test("a user connects, and a wrong token is refused with the vendor's code")
  func connect() async throws {
    let alice = try harness.adapter()
    #expect(try await alice.connect(as: "alice", credential: .token("tok-alice")).id == "alice")
    #expect(await alice.state == .connected)
    let other = try harness.adapter()
    let error = await #expect(throws: ChatError.self) {
      try await other.connect(as: "bob", credential: .token("garbage"))
    }
    #expect(error?.kind == .authentication)
    #expect(error?.vendor?.code == "1503")
    #expect(await other.state == .refused(.credentialInvalid))
    await alice.disconnect()
    #expect(await alice.state == .disconnected(.requested))
  }

  @Test("a direct channel is one channel, whoever makes it; messages reach the other with the same identity")
  func direct() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let one = try await alice.createChannel(.direct(with: "bob"))
    let two = try await bob.createChannel(.direct(with: "alice"))
    #expect(one.id == two.id)
    #expect(one.peer == "bob")
    var events = bob.events().makeAsyncIterator()
    let sent = try await alice.send(ChatHarness.text("hello", "c1", in: one.id))
    #expect(sent.position == MessagePosition(sequence: 1))
    #expect(sent.clientMessageID == "c1")
    let event = await first(&events) { if case .messageReceived = $0 { true } else { false } }
    guard case .messageReceived(let message)? = event?.kind else { throw ChatError.cancelled(.history) }
    #expect(event?.source == .live)
    #expect(message.id == sent.id)
    #expect(message.content == .text("hello"))
    #expect(message.sender == "alice")
    #expect(try await bob.history(of: one.id, .newest()).messages.map(\.id) == [sent.id])
    #expect(try await bob.channel(one.id).unread == .exact(1))
    try await bob.markRead(one.id, upTo: message.position)
    #expect(try await bob.channel(one.id).unread == .exact(0))
  }

  @Test("the user's other device gets the message as an echo, the sending one not at all")
  func echo() async throws {
    let phone = try await harness.connected("alice")
    let desk = try await harness.connected("alice")
    let channel = try await phone.createChannel(.direct(with: "bob"))
    var onPhone = phone.events().makeAsyncIterator()
    var onDesk = desk.events().makeAsyncIterator()
    _ = try await phone.send(ChatHarness.text("one", "c1", in: channel.id))
    let event = await first(&onDesk) { if case .messageReceived = $0 { true } else { false } }
    #expect(event?.source == .echo)
    _ = try await desk.send(ChatHarness.text("two", "c2", in: channel.id))
    let other = await first(&onPhone) { if case .messageReceived = $0 { true } else { false } }
    guard case .messageReceived(let message)? = other?.kind else { throw ChatError.cancelled(.history) }
    #expect(message.content == .text("two"))
  }

  @Test("a group: members, roles, invitation, removal, leaving, and what each of them is told")
  func group() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let carol = try await harness.connected("carol")
    var toBob = bob.events().makeAsyncIterator()
    var toCarol = carol.events().makeAsyncIterator()
    let made = try await alice.createChannel(
      ChannelDraft(members: ["bob"], name: "G", customData: JSONText(unchecked: #"{"a":1}"#)))
    #expect(made.myRole == .owner)
    #expect(made.customData?.text == #"{"a":1}"#)
    let joined = await first(&toBob) { if case .channelJoined = $0 { true } else { false } }
    guard case .channelJoined(let seen)? = joined?.kind else { throw ChatError.cancelled(.join) }
    #expect(seen.id == made.id)
    #expect(seen.myRole == .member)
    try await alice.invite(["carol"], to: made.id)
    #expect(await first(&toCarol) { if case .channelJoined = $0 { true } else { false } } != nil)
    let entered = await first(&toBob) { if case .memberJoined = $0 { true } else { false } }
    guard case .memberJoined(_, let member)? = entered?.kind else { throw ChatError.cancelled(.join) }
    #expect(member.user.id == "carol")
    try await alice.setRole(.admin, of: "bob", in: made.id)
    let people = try await alice.members(of: made.id, limit: 2, page: nil)
    #expect(people.items.map(\.user.id) == ["alice", "bob"])
    #expect(people.items.map(\.role) == [.owner, .admin])
    #expect(try await alice.members(of: made.id, limit: 2, page: people.next).items.map(\.user.id) == ["carol"])
    try await bob.removeMembers(["carol"], from: made.id)
    let left = await first(&toCarol) { if case .channelLeft = $0 { true } else { false } }
    #expect(left?.kind == .channelLeft(made.id, .removed(by: "bob")))
    let error = await #expect(throws: ChatError.self) {
      try await carol.send(ChatHarness.text("still here", "c9", in: made.id))
    }
    #expect(error?.kind == .permission())
    try await bob.leave(made.id)
    #expect(try await alice.members(of: made.id, limit: 10, page: nil).items.map(\.user.id) == ["alice"])
  }

  @Test("history pages in both directions, for any limit, without loss or repetition", arguments: [3, 50, 100, 250])
  func history(limit: Int) async throws {
    let channel = try await harness.load(Array(1...120))
    let alice = try await harness.connected("alice")
    let sent = (1...120).map { MessageID("m\($0)") }
    var backward: [MessageID?] = []
    var page = try await alice.history(of: channel, .newest(limit))
    #expect(page.newer == nil)
    while true {
      #expect(page.messages.map(\.position).compactMap(\.self).isSorted)
      backward = page.messages.map(\.id) + backward
      guard let cursor = page.older else { break }
      page = try await alice.history(
        of: channel, HistoryQuery(anchor: .cursor(cursor), direction: .older, limit: limit))
    }
    #expect(backward == sent)
    var forward: [MessageID?] = []
    page = try await alice.history(of: channel, HistoryQuery(anchor: .oldest, direction: .newer, limit: limit))
    #expect(page.older == nil)
    while true {
      forward += page.messages.map(\.id)
      guard let cursor = page.newer else { break }
      page = try await alice.history(
        of: channel, HistoryQuery(anchor: .cursor(cursor), direction: .newer, limit: limit))
    }
    #expect(forward == sent)
  }

  @Test("a recalled message is a tombstone at its place, for both")
  func recall() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    var events = bob.events().makeAsyncIterator()
    let sent = try await alice.send(ChatHarness.text("oops", "c1", in: channel.id))
    let tombstone = try await alice.recall(sent)
    #expect(tombstone.isRecalled)
    #expect(tombstone.position == sent.position)
    #expect(tombstone.id == sent.id)
    let event = await first(&events) { if case .messageRecalled = $0 { true } else { false } }
    #expect(event?.kind == .messageRecalled(tombstone))
    #expect(try await bob.history(of: channel.id, .newest()).messages == [tombstone])
    let again = await #expect(throws: ChatError.self) { try await alice.recall(sent) }
    #expect(again?.kind == .conflict)
  }

  @Test("what is deleted for me is gone for me alone; placeholders are never shown")
  func deleteForMe() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    var sent: [Message] = []
    for index in 0..<3 {
      sent.append(try await alice.send(ChatHarness.text("\(index)", ClientMessageID("c\(index)"), in: channel.id)))
    }
    try await alice.deleteForMe([sent[0], sent[2]])
    let page = try await alice.history(of: channel.id, .newest())
    #expect(page.messages.map(\.id) == [sent[1].id])
    #expect(page.older == nil)
    #expect(try await bob.history(of: channel.id, .newest()).messages.count == 3)
    try await alice.clearHistory(of: channel.id)
    #expect(try await alice.history(of: channel.id, .newest()).messages.isEmpty)
    #expect(
      try await alice.history(of: channel.id, HistoryQuery(anchor: .oldest, direction: .newer)).messages.isEmpty)
  }

  @Test("typing starts once, ends with a message or by itself")
  func typing() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    var events = bob.events().makeAsyncIterator()
    try await alice.setTyping(true, in: channel.id)
    try await alice.setTyping(true, in: channel.id)
    #expect(await first(&events) { _ in true }?.kind == .typingStarted(channel.id, "alice"))
    _ = try await alice.send(ChatHarness.text("done", "c1", in: channel.id))
    #expect(await first(&events) { _ in true }?.kind == .typingEnded(channel.id, "alice"))
    #expect(try await bob.history(of: channel.id, .newest()).messages.count == 1)
  }

  @Test("an attachment travels with its bytes")
  func files() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    let bytes = Array("some bytes".utf8)
    let attachment = Attachment(name: "a b.txt", mimeType: "text/plain", source: .bytes(bytes))
    let uploaded = try await alice.upload(attachment, for: channel.id, progress: nil)
    var outgoing = ChatHarness.text("", "c1", in: channel.id)
    outgoing.draft = MessageDraft(.file(uploaded))
    let sent = try await alice.send(outgoing)
    #expect(sent.content == .file(uploaded))
    let read = try await bob.history(of: channel.id, .newest()).messages.first
    #expect(read?.content == .file(uploaded))
    #expect(try await bob.download(uploaded, limit: 100) == bytes)
    await #expect(throws: ChatError.self) { try await bob.download(uploaded, limit: 3) }
  }

  @Test("content of every kind that clients send comes back as it was", arguments: Samples.contents.map(\.1).filter {
    switch $0 {
    case .system, .recalled: false
    default: true
    }
  })
  func content(_ content: MessageContent) async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(ChannelDraft(members: ["bob"]))
    var outgoing = ChatHarness.text("", "c1", in: channel.id)
    outgoing.draft = MessageDraft(
      content, mentions: Mentions(users: ["bob"], everyone: true), replyTo: Reply(id: "m0", quoted: Samples.quoted),
      customType: "t", customData: JSONText(unchecked: #"{"x": [1,2]}"#))
    let sent = try await alice.send(outgoing)
    let read = try #require(try await bob.history(of: channel.id, .newest(1)).messages.last)
    #expect(read.content == content)
    #expect(read.mentions == outgoing.draft.mentions)
    #expect(read.replyTo == outgoing.draft.replyTo)
    #expect(read.customType == "t")
    #expect(read.customData == outgoing.draft.customData)
    #expect(sent.content == content)
  }

  @Test("a message beyond the gateway's frame is refused before a byte leaves, and the link stays")
  func tooLarge() async throws {
    let alice = try await harness.connected("alice")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    let error = await #expect(throws: ChatError.self) {
      try await alice.send(ChatHarness.text(String(repeating: "x", count: 60_000), "c1", in: channel.id))
    }
    #expect(error?.kind == .tooLarge(limit: 51_200, unit: .bytes))
    #expect(try await alice.send(ChatHarness.text("small", "c2", in: channel.id)).position?.major == 1)
  }

  @Test("a newer token ends the session of the older one, once and for all")
  func kick() async throws {
    let alice = try await harness.connected("alice")
    var events = alice.events().makeAsyncIterator()
    try await EmulatorControl(harness.host).perform(.kick(user: "alice"))
    let event = await first(&events) { if case .connectionChanged = $0 { true } else { false } }
    #expect(event?.kind == .connectionChanged(.refused(.kickedByOtherDevice)))
    let error = await #expect(throws: ChatError.self) { try await alice.channels(ChannelQuery(), page: nil) }
    #expect(error != nil)
  }

  struct Fixed: CredentialProvider {
    let harness: ChatHarness
    func credential(for user: UserID) async throws -> Credential {
      try await OpenIMVendor.entry(transports: harness.host.transports)
        .issueCredential(user, harness.profile, harness.environment())
    }
  }

  @Test("an expired token is renewed once, by the provider, and the call goes through")
  func renewal() async throws {
    let alice = try harness.adapter(provider: Fixed(harness: harness))
    _ = try await alice.connect(as: "alice", credential: .token("tok-alice"))
    var events = alice.events().makeAsyncIterator()
    try await EmulatorControl(harness.host).perform(.expireCredential(user: "alice"))
    #expect(try await alice.users(["bob"]).map(\.id) == ["bob"])
    #expect(await first(&events) { $0 == .credentialRenewed } != nil)
    let late = try harness.adapter()
    let error = await #expect(throws: ChatError.self) {
      try await late.connect(as: "alice", credential: .token("tok-alice"))
    }
    #expect(error?.vendor?.code == "1501")
    #expect(await late.state == .refused(.credentialExpired))
  }

  @Test("channels are listed by their last message, in pages")
  func list() async throws {
    let alice = try await harness.connected("alice")
    let empty = try await alice.createChannel(ChannelDraft(members: [], name: "empty"))
    await harness.host.advance(by: .seconds(1))
    let bob = try await alice.createChannel(.direct(with: "bob"))
    _ = try await alice.send(ChatHarness.text("1", "c1", in: bob.id))
    await harness.host.advance(by: .seconds(1))
    let carol = try await alice.createChannel(.direct(with: "carol"))
    _ = try await alice.send(ChatHarness.text("2", "c2", in: carol.id))
    let page = try await alice.channels(ChannelQuery(limit: 2), page: nil)
    #expect(page.items.map(\.id) == [carol.id, bob.id])
    let rest = try await alice.channels(ChannelQuery(limit: 2), page: page.next)
    #expect(rest.items.map(\.id) == [empty.id])
    #expect(rest.next == nil)
    #expect(page.items.first?.lastMessage?.content == .text("2"))
    #expect(try await alice.channels(ChannelQuery(kinds: [.direct]), page: nil).items.count == 2)
  }
}

extension [MessagePosition] {
  var isSorted: Bool { zip(self, dropFirst()).allSatisfy { $0 < $1 } }
}

@Suite("A link that breaks", .timeLimit(.minutes(5)))
struct OpenIMReconnectTests {
  let harness: ChatHarness

  init() throws { harness = try ChatHarness() }

  @Test("after a cut the adapter is back at once, tells of missed events, and misses nothing that is read then")
  func reconnect() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    _ = try await alice.send(ChatHarness.text("before", "c1", in: channel.id))
    var events = bob.events().makeAsyncIterator()
    try await EmulatorControl(harness.host).act(.end(.abrupt), on: "bob")
    let missed = await first(&events) { if case .missedEvents = $0 { true } else { false } }
    #expect(missed?.kind == .missedEvents(in: nil))
    #expect(await bob.state == .connected)
    _ = try await alice.send(ChatHarness.text("after", "c2", in: channel.id))
    let event = await first(&events) { if case .messageReceived = $0 { true } else { false } }
    guard case .messageReceived(let message)? = event?.kind else { throw ChatError.cancelled(.history) }
    #expect(message.content == .text("after"))
  }

  @Test("a push that was lost is fetched and told before the next one")
  func gap() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    var events = bob.events().makeAsyncIterator()
    _ = try await alice.send(ChatHarness.text("1", "c1", in: channel.id))
    // Else its push is the one that is lost.
    _ = await first(&events) { if case .messageReceived = $0 { true } else { false } }
    _ = try await EmulatorControl(harness.host)
      .add(FaultRule(FaultRule.Match("push", user: "bob"), at: .beforePush, do: .drop))
    _ = try await alice.send(ChatHarness.text("2", "c2", in: channel.id))
    _ = try await alice.send(ChatHarness.text("3", "c3", in: channel.id))
    for text in ["2", "3"] {
      let event = await first(&events) { if case .messageReceived = $0 { true } else { false } }
      guard case .messageReceived(let message)? = event?.kind else { throw ChatError.cancelled(.history) }
      #expect(message.content == .text(text))
    }
    #expect(try await bob.history(of: channel.id, .newest()).messages.map(\.content) == [.text("1"), .text("2"), .text("3")])
  }

  @Test("a send whose acknowledgement is lost is settled by its push")
  func lostAck() async throws {
    let alice = try await harness.connected("alice")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    _ = try await EmulatorControl(harness.host)
      .add(FaultRule(FaultRule.Match("ack", user: "alice"), at: .beforeReply, do: .drop))
    // Nothing but the own push can settle it, so the clock waits until that is there.
    let sent = try await harness.whileTimePasses(once: { await alice.newest[channel.id] == 1 }) {
      try await alice.send(ChatHarness.text("1", "c1", in: channel.id))
    }
    #expect(sent.position == MessagePosition(sequence: 1))
    #expect(try await alice.history(of: channel.id, .newest()).messages.count == 1)
  }

  @Test("a refusal by the server fails the call with its code")
  func refusal() async throws {
    let alice = try await harness.connected("alice")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    _ = try await EmulatorControl(harness.host)
      .add(FaultRule(FaultRule.Match("send"), do: .fail(EmulatorFailure("permission", code: 1302))))
    let error = await #expect(throws: ChatError.self) {
      try await alice.send(ChatHarness.text("1", "c1", in: channel.id))
    }
    #expect(error?.kind == .permission())
    #expect(error?.vendor?.code == "1302")
  }
}
