import ChatEmulation
import ChatJSON
import ChatTransport
import OpenIMAdapter
import OpenIMWire
import Synchronization
import Testing
import UnifiedChat

/// A network that can be taken away, and that remembers who tried.
final class Gate: WebSocketClient {
  private struct State {
    var isClosed = false
    var tries = 0
  }

  private let inner: any WebSocketClient
  private let state = Mutex(State())

  init(_ inner: any WebSocketClient) { self.inner = inner }

  var tries: Int { state.withLock { $0.tries } }
  func set(closed: Bool) { state.withLock { $0.isClosed = closed } }

  func connect(_ request: WebSocketRequest) async throws(TransportError) -> any WebSocketConnection {
    let isClosed = state.withLock { state in
      state.tries += 1
      return state.isClosed
    }
    if isClosed { throw TransportError(.refused) }
    return try await inner.connect(request)
  }
}

/// What users of this vendor's clients reported over the years, each as it must not be here.
@Suite("What went wrong elsewhere", .timeLimit(.minutes(5)))
struct OpenIMFieldReportTests {
  let harness: ChatHarness

  init() throws { harness = try ChatHarness() }

  private func numbers(_ page: MessagePage) -> [Int64] { page.messages.compactMap { $0.position?.major } }

  // MARK: Doubles

  @Test("a push that comes twice, or again by a pull, is one message and one event")
  func doubles() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    _ = try await EmulatorControl(harness.host)
      .add(FaultRule(FaultRule.Match("push", user: "bob"), at: .beforePush, do: .duplicate(times: 1, gap: .zero)))
    var events = bob.events().makeAsyncIterator()
    for text in ["one", "two"] {
      _ = try await alice.send(ChatHarness.text(text, ClientMessageID(text), in: channel.id))
    }
    var received: [MessageContent] = []
    while received.count < 2 {
      guard case .messageReceived(let message)? = await events.next()?.kind else { continue }
      received.append(message.content)
    }
    #expect(received == [.text("one"), .text("two")])
    #expect(try await bob.history(of: channel.id, .newest()).messages.count == 2)
  }

  @Test("a walk to and fro returns no row twice, and all of them in the end")
  func walk() async throws {
    let channel = try await harness.load(Array(1...150))
    let alice = try await harness.connected("alice")
    var random = EmulatorRandom(seed: 17)
    var page = try await alice.history(of: channel, .before(MessagePosition(sequence: 70), limit: 3))
    var seen = Set(numbers(page))
    var (older, newer) = (page.older, page.newer)
    while older != nil || newer != nil {
      let limit = Int(random.next() % 9) + 1
      let goesBack = newer == nil || (older != nil && random.next() % 2 == 0)
      guard let cursor = goesBack ? older : newer else { break }
      page = try await alice.history(
        of: channel,
        HistoryQuery(anchor: .cursor(cursor), direction: goesBack ? .older : .newer, limit: limit))
      let found = numbers(page)
      #expect(seen.isDisjoint(with: found))
      seen.formUnion(found)
      if goesBack { older = page.older } else { newer = page.newer }
    }
    #expect(seen == Set(1...150))
  }

  // MARK: Holes

  @Test("numbers that the server never used hide nothing on either side")
  func holes() async throws {
    let channel = try await harness.load([1, 2, 3, 153, 154])
    let alice = try await harness.connected("alice")
    #expect(numbers(try await alice.history(of: channel, .newest(10))) == [1, 2, 3, 153, 154])
    let forward = try await alice.history(of: channel, HistoryQuery(anchor: .oldest, direction: .newer, limit: 4))
    #expect(numbers(forward) == [1, 2, 3, 153])
    let back = try await alice.history(of: channel, .before(MessagePosition(sequence: 153), limit: 2))
    #expect(numbers(back) == [2, 3])
  }

  @Test("what was just sent is in a history that is read afresh")
  func sentIsThere() async throws {
    let alice = try await harness.connected("alice")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    for index in 0..<3 {
      let sent = try await alice.send(ChatHarness.text("\(index)", ClientMessageID("c\(index)"), in: channel.id))
      #expect(try await alice.history(of: channel.id, .newest(1)).messages.map(\.id) == [sent.id])
    }
  }

  @Test("a new member is told of the channel and sees what was said before")
  func newcomer() async throws {
    let alice = try await harness.connected("alice")
    let carol = try await harness.connected("carol")
    let channel = try await alice.createChannel(ChannelDraft(members: ["bob"]))
    let sent = try await alice.send(ChatHarness.text("before", "c1", in: channel.id))
    var events = carol.events().makeAsyncIterator()
    try await alice.invite(["carol"], to: channel.id)
    let joined = await first(&events) { if case .channelJoined = $0 { true } else { false } }
    guard case .channelJoined(let told)? = joined?.kind else { throw ChatError.cancelled(.join) }
    #expect(told.lastMessage?.id == sent.id)
    #expect(try await carol.history(of: channel.id, .newest()).messages.map(\.id) == [sent.id])
  }

  @Test("the client's clock has no say in order and time", arguments: [-600, 600])
  func clock(secondsOff: Int64) async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    let skew = max(0, -secondsOff)
    if secondsOff > 0 { harness.clock.advance(by: .seconds(secondsOff)) } else {
      await EmulatorControl(harness.host).setSkew(.seconds(skew))
    }
    let one = try await alice.send(ChatHarness.text("1", "c1", in: channel.id))
    let two = try await bob.send(ChatHarness.text("2", "c2", in: channel.id))
    let now = await harness.host.now + skew * 1000
    #expect(one.createdAt.milliseconds == now && two.createdAt.milliseconds == now)
    #expect(try await alice.history(of: channel.id, .newest()).messages.map(\.id) == [one.id, two.id])
  }

  // MARK: Unread

  @Test("own messages of another device are not unread, also after a new connection")
  func ownAreRead() async throws {
    let phone = try await harness.connected("alice")
    let channel = try await phone.createChannel(.direct(with: "bob"))
    let desk = try await harness.connected("alice")
    for index in 0..<5 {
      _ = try await desk.send(ChatHarness.text("\(index)", ClientMessageID("c\(index)"), in: channel.id))
    }
    #expect(try await phone.channel(channel.id).unread == .exact(0))
    let later = try await harness.connected("alice")
    #expect(try await later.channel(channel.id).unread == .exact(0))
    #expect(try await later.totalUnread() == .exact(0))
  }

  @Test("the other one's receipt changes no number of mine")
  func foreignReceipt() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    let mine = try await alice.send(ChatHarness.text("mine", "c1", in: channel.id))
    var events = alice.events().makeAsyncIterator()
    for index in 0..<3 {
      _ = try await bob.send(ChatHarness.text("\(index)", ClientMessageID("b\(index)"), in: channel.id))
    }
    // What the three messages themselves change has to be told before the receipt is sent.
    while let event = await events.next() {
      if case .unreadChanged(_, .exact(3)) = event.kind { break }
    }
    try await bob.markRead(channel.id, upTo: mine.position)
    var told: [ChatEvent.Kind] = []
    while let event = await events.next() {
      told.append(event.kind)
      if case .readChanged = event.kind { break }
    }
    let isUnread = { (kind: ChatEvent.Kind) in if case .unreadChanged = kind { true } else { false } }
    #expect(!told.contains(where: isUnread))
    #expect(try await alice.channel(channel.id).unread == .exact(3))
    #expect(try await alice.totalUnread() == .exact(3))
  }

  @Test("a read mark above the newest number is no negative count", arguments: [0, 99])
  func neverNegative(read: Int64) async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    _ = try await bob.send(ChatHarness.text("1", "b1", in: channel.id))
    _ = try await EmulatorControl(harness.host).add(
      FaultRule(
        FaultRule.Match(direction: .outbound, vendorName: "POST /jssdk/get_conversations"), at: .beforeReply,
        do: .patch(["/data/conversations/0/readSeq": .int(read)])))
    #expect(try await alice.channel(channel.id).unread == .exact(read == 0 ? 1 : 0))
  }

  @Test("marking read makes the number true, whatever it was")
  func badge() async throws {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    for index in 0..<7 {
      _ = try await bob.send(ChatHarness.text("\(index)", ClientMessageID("b\(index)"), in: channel.id))
    }
    let fresh = try await harness.connected("alice")
    #expect(try await fresh.channel(channel.id).unread == .exact(7))
    try await fresh.markRead(channel.id, upTo: nil)
    #expect(try await alice.channel(channel.id).unread == .exact(0))
    #expect(try await alice.totalUnread() == .exact(0))
  }

  // MARK: Links and tokens

  private func gated(_ user: UserID, provider: (any CredentialProvider)? = nil) throws -> (OpenIMAdapter, Gate) {
    let gate = Gate(harness.host.transports.webSocket)
    let adapter = try OpenIMAdapter(
      profile: harness.profile, environment: harness.environment(provider),
      transports: Transports(http: harness.host.transports.http, webSocket: gate))
    return (adapter, gate)
  }

  @Test("without a network one loop tries, with the vendor's pauses, and is back with the network")
  func backOff() async throws {
    let (bob, gate) = try gated("bob")
    _ = try await bob.connect(as: "bob", credential: .token("tok-bob"))
    gate.set(closed: true)
    var events = bob.events().makeAsyncIterator()
    try await EmulatorControl(harness.host).act(.end(.abrupt), on: "bob")
    var pauses: [Int64] = []
    var attempt = 0
    while attempt < 8 {
      guard case .connectionChanged(.reconnecting(let number))? = await events.next()?.kind else { continue }
      attempt += 1
      #expect(number == attempt)
      guard attempt > 1 else { continue }
      // Real time: the loop is about to sleep, and nothing depends on how soon.
      while harness.clock.nextWakeUp == nil { try await Task.sleep(for: .milliseconds(1)) }
      let due = try #require(harness.clock.nextWakeUp)
      pauses.append(due.milliseconds - harness.clock.now.milliseconds)
      if attempt == 8 { gate.set(closed: false) }
      harness.clock.advance(to: due)
    }
    // Each client at a pace of its own, from a half to the whole.
    for (pause, whole) in zip(pauses, [1000, 2000, 4000, 8000, 16_000, 1000, 2000]) {
      #expect(pause * 2 >= whole - 2 && pause <= whole)
    }
    #expect(pauses.count == 7)
    #expect(await first(&events) { $0 == .connectionChanged(.connected) } != nil)
    #expect(gate.tries == 9)
  }

  @Test("a token that the server does not take is final: one try, and none after it", arguments: 1502...1507)
  func finalCodes(code: Int) async throws {
    let (alice, gate) = try gated("alice")
    _ = try await EmulatorControl(harness.host).add(
      FaultRule(FaultRule.Match("auth"), do: .fail(EmulatorFailure("authentication", code: code)), times: nil))
    let error = await #expect(throws: ChatError.self) {
      try await alice.connect(as: "alice", credential: .token("tok-alice"))
    }
    #expect(error?.kind == .authentication && error?.retry == .never)
    #expect(error?.vendor?.code == String(code))
    #expect(await alice.state == .refused(code == 1506 ? .kickedByOtherDevice : .credentialInvalid))
    harness.clock.advance(by: .seconds(3600))
    for _ in 0..<64 { await Task.yield() }
    #expect(gate.tries == 1)
  }

  /// Gives one token, and counts.
  final class Provider: CredentialProvider {
    private let count = Mutex(0)
    var asked: Int { count.withLock { $0 } }

    func credential(for user: UserID) async throws -> Credential {
      count.withLock { $0 += 1 }
      return .token("tok-\(user)")
    }
  }

  @Test("an expired token asks the provider once, also when the new one is no better")
  func expired() async throws {
    let provider = Provider()
    let (alice, gate) = try gated("alice", provider: provider)
    _ = try await EmulatorControl(harness.host).add(
      FaultRule(FaultRule.Match("auth"), do: .fail(EmulatorFailure("authentication", code: 1501)), times: nil))
    let error = await #expect(throws: ChatError.self) {
      try await alice.connect(as: "alice", credential: .token("old"))
    }
    #expect(error?.vendor?.code == "1501")
    #expect(provider.asked == 1)
    #expect(gate.tries == 2)
    #expect(await alice.state == .refused(.credentialExpired))
  }

  @Test("one can log out with a token that has run out, and without a link")
  func logout() async throws {
    let alice = try await harness.connected("alice")
    try await EmulatorControl(harness.host).perform(.expireCredential(user: "alice"))
    await alice.disconnect()
    #expect(await alice.state == .disconnected(.requested))
    #expect(await alice.currentUser == nil)
  }

  @Test("who was kicked is not let in again by the same token")
  func kicked() async throws {
    let (alice, gate) = try gated("alice")
    _ = try await alice.connect(as: "alice", credential: .token("tok-alice"))
    var events = alice.events().makeAsyncIterator()
    try await EmulatorControl(harness.host).perform(.kick(user: "alice"))
    _ = await first(&events) { $0 == .connectionChanged(.refused(.kickedByOtherDevice)) }
    #expect(gate.tries == 1)
    let error = await #expect(throws: ChatError.self) {
      try await alice.connect(as: "alice", credential: .token("tok-alice"))
    }
    #expect(error?.vendor?.code == "1506")
  }

  @Test("a request that nobody answers fails in its time, and the next one is served")
  func halfOpen() async throws {
    let alice = try await harness.connected("alice")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    _ = try await alice.send(ChatHarness.text("1", "c1", in: channel.id))
    let control = EmulatorControl(harness.host)
    let rule = try await control.add(
      FaultRule(FaultRule.Match("history", direction: .inbound, user: "alice"), do: .drop))
    let isDropped: @Sendable () async -> Bool = { await control.rules().contains { $0.id == rule && $0.hits > 0 } }
    let error = await #expect(throws: ChatError.self) {
      try await harness.whileTimePasses(once: isDropped) { try await alice.history(of: channel.id, .newest()) }
    }
    #expect(error?.kind == .timeout)
    #expect(try await alice.history(of: channel.id, .newest()).messages.count == 1)
  }

  @Test("a message whose number is not known yet can be taken back at once")
  func recallAtOnce() async throws {
    let alice = try await harness.connected("alice")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    var sent = try await alice.send(ChatHarness.text("oops", "c1", in: channel.id))
    sent.position = nil
    #expect(try await alice.recall(sent).isRecalled)
  }
}
