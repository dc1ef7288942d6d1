import ChatEmulation
import ChatTransport
import OpenIMAdapter
import Testing
import UnifiedChat

/// The vendor's number is the newest number less the one that was read, which is not always what is unread.
@Suite("Unread numbers and read marks", .timeLimit(.minutes(5)))
struct OpenIMUnreadTests {
  let harness: ChatHarness

  init() throws { harness = try ChatHarness() }

  private func unread(_ kind: ChatEvent.Kind, _ channel: ChannelID) -> UnreadCount? {
    if case .unreadChanged(channel, let count) = kind { count } else { nil }
  }

  /// Messages of bob's in a new chat with alice, and alice's own adapter.
  private func chat(_ count: Int) async throws -> (
    alice: OpenIMAdapter, bob: OpenIMAdapter, channel: ChannelID, sent: [Message]
  ) {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(.direct(with: "bob")).id
    let stream = alice.events()
    var sent: [Message] = []
    for index in 0..<count {
      sent.append(try await bob.send(ChatHarness.text("\(index)", ClientMessageID("b\(index)"), in: channel)))
    }
    var events = stream.makeAsyncIterator()
    _ = await first(&events) { unread($0, channel) == .exact(count) }
    return (alice, bob, channel, sent)
  }

  @Test("a lower mark after a higher one changes nothing, on no device")
  func markNeverFalls() async throws {
    let (phone, bob, channel, sent) = try await chat(4)
    let desk = try await harness.connected("alice")
    let (atPhone, atDesk, atBob) = (phone.events(), desk.events(), bob.events())
    try await phone.markRead(channel, upTo: sent[3].position)
    try await desk.markRead(channel, upTo: sent[1].position)
    _ = try await bob.send(ChatHarness.text("last", "last", in: channel))
    for stream in [atPhone, atDesk] {
      var counts: [UnreadCount] = []
      for await event in stream {
        if let count = unread(event.kind, channel) { counts.append(count) }
        if case .messageReceived = event.kind { break }
      }
      #expect(!counts.isEmpty && counts.allSatisfy { $0 == .exact(0) })
    }
    for device in [phone, desk] { #expect(try await device.channel(channel).unread == .exact(1)) }
    #expect(try await harness.connected("alice").channel(channel).myReadPosition == sent[3].position)
    await bob.disconnect()
    var marks: [MessagePosition] = []
    for await event in atBob {
      if case .readChanged(channel, "alice", let position) = event.kind { marks.append(position) }
      if event.kind == .connectionChanged(.disconnected(.requested)) { break }
    }
    #expect(marks == [sent[3].position])
  }

  @Test("an unread message that is taken back is unread no more; a read one changes no number")
  func recalled() async throws {
    let (alice, bob, channel, sent) = try await chat(4)
    try await alice.markRead(channel, upTo: sent[0].position)
    let stream = alice.events()
    _ = try await bob.recall(sent[0])
    _ = try await bob.recall(sent[2])
    var counts: [UnreadCount] = []
    for await event in stream {
      if let count = unread(event.kind, channel) { counts.append(count) }
      if counts.last == .exact(2) { break }
    }
    #expect(counts.allSatisfy { $0 == .exact(3) || $0 == .exact(2) })
    #expect(try await alice.channel(channel).unread == .exact(2))
    #expect(try await alice.channels(ChannelQuery(), page: nil).items.first?.unread == .exact(2))
    #expect(try await alice.totalUnread() == .exact(2))
    _ = try await bob.send(ChatHarness.text("next", "next", in: channel))
    var events = stream.makeAsyncIterator()
    #expect(await first(&events) { unread($0, channel) == .exact(3) } != nil)
  }

  @Test("a chat whose only message was taken back has nothing unread, also for a device that has just come")
  func onlyOne() async throws {
    let (alice, bob, channel, sent) = try await chat(1)
    let stream = alice.events()
    _ = try await bob.recall(sent[0])
    var events = stream.makeAsyncIterator()
    #expect(await first(&events) { unread($0, channel) == .exact(0) } != nil)
    let fresh = try await harness.connected("alice")
    #expect(try await fresh.channel(channel).unread == .exact(0))
    #expect(try await fresh.totalUnread() == .exact(0))
  }

  @Test("what was taken back while nobody was here is learnt from the log of changes")
  func recalledMeanwhile() async throws {
    let (alice, bob, channel, sent) = try await chat(3)
    let start = try await alice.changes(in: channel, since: nil).next
    await alice.suspend()
    _ = try await bob.recall(sent[1])
    let stream = alice.events()
    await alice.resume()
    var events = stream.makeAsyncIterator()
    _ = await first(&events) { $0 == .connectionChanged(.connected) }
    let page = try await alice.changes(in: channel, since: start)
    #expect(page.updated.map(\.id) == [sent[1].id])
    #expect(await first(&events) { unread($0, channel) != nil }?.kind == .unreadChanged(channel, .exact(2)))
    #expect(try await alice.channel(channel).unread == .exact(2))
  }

  @Test("an own message reads what came before it, on the sending device and on the other one")
  func sendingReads() async throws {
    let (phone, _, channel, _) = try await chat(2)
    let desk = try await harness.connected("alice")
    let streams = [phone.events(), desk.events()]
    _ = try await desk.send(ChatHarness.text("mine", "a1", in: channel))
    for stream in streams {
      var events = stream.makeAsyncIterator()
      #expect(await first(&events) { unread($0, channel) == .exact(0) } != nil)
    }
  }
}

@Suite("Pushes that come in another order, or not at all", .timeLimit(.minutes(5)))
struct OpenIMHoleTests {
  let harness: ChatHarness

  init() throws { harness = try ChatHarness() }

  /// What bob is told of texts of alice's, which the rule spoils; before them she wrote one that came, or nothing yet.
  private func told(
    _ action: FaultRule.Action, times: Int, _ more: [FaultRule] = [], in kind: ChannelKind = .direct, isNew: Bool = false
  ) async throws -> [ChatEvent.Kind] {
    let alice = try await harness.connected("alice")
    let bob = try await harness.connected("bob")
    let channel = try await alice.createChannel(
      kind == .direct ? .direct(with: "bob") : ChannelDraft(kind: .group, members: ["bob"], name: "new"))
    if !isNew { _ = try await alice.send(ChatHarness.text("0", "c0", in: channel.id)) }
    let stream = bob.events()
    let control = EmulatorControl(harness.host)
    for rule in more { _ = try await control.add(rule) }
    _ = try await control.add(
      FaultRule(FaultRule.Match("push", user: "bob"), at: .beforePush, do: action, times: times))
    for index in 1...4 {
      _ = try await alice.send(ChatHarness.text("\(index)", ClientMessageID("c\(index)"), in: channel.id))
    }
    var kinds: [ChatEvent.Kind] = []
    for await event in stream {
      switch event.kind {
      case .messageReceived(let message):
        kinds.append(event.kind)
        if message.content == .text("4") { return kinds }
      case .missedEvents: kinds.append(event.kind)
      default: break
      }
    }
    return kinds
  }

  private func texts(_ kinds: [ChatEvent.Kind]) -> [MessageContent] {
    kinds.compactMap { if case .messageReceived(let message) = $0, message.content != .text("0") { message.content } else { nil } }
  }

  @Test("messages that overtake one another are told once, in their order", arguments: [ChannelKind.direct, .group], [true, false])
  func reordered(_ kind: ChannelKind, _ isNew: Bool) async throws {
    let kinds = try await told(.reorder(window: 3), times: 3, in: kind, isNew: isNew)
    #expect(texts(kinds) == ["1", "2", "3", "4"].map { .text($0) })
    #expect(!kinds.contains { if case .missedEvents = $0 { true } else { false } })
  }

  @Test(
    "messages whose push is lost are fetched when the next one shows the hole, the first ones of a channel too",
    arguments: [ChannelKind.direct, .group], [true, false])
  func dropped(_ kind: ChannelKind, _ isNew: Bool) async throws {
    let kinds = try await told(.drop, times: 2, in: kind, isNew: isNew)
    #expect(texts(kinds) == ["1", "2", "3", "4"].map { .text($0) })
    #expect(!kinds.contains { if case .missedEvents = $0 { true } else { false } })
  }

  @Test("where the hole cannot be fetched, missed events are told before the message behind it")
  func notFetched() async throws {
    let refusal = FaultRule(
      FaultRule.Match("history", direction: .inbound, user: "bob"), do: .fail(EmulatorFailure("server")))
    let kinds = try await told(.drop, times: 2, [refusal])
    #expect(texts(kinds) == ["3", "4"].map { .text($0) })
    #expect(kinds.firstIndex { if case .missedEvents = $0 { true } else { false } } != nil)
  }

  @Test("a chat that was removed comes back with its new message, and what it had before is no news")
  func removedChat() async throws {
    let alice = try await harness.connected("alice")
    let channel = try await alice.createChannel(.direct(with: "bob")).id
    for index in 1...3 { _ = try await alice.send(ChatHarness.text("old \(index)", ClientMessageID("o\(index)"), in: channel)) }
    let answer = try await harness.admin(
      "/conversation/delete_conversations", ["ownerUserID": "bob", "conversationIDs": [.string(channel.rawValue)]])
    try #require(answer["errCode"] == 0)
    await harness.host.advance(by: .seconds(60))
    let bob = try await harness.connected("bob")
    let stream = bob.events()
    _ = try await EmulatorControl(harness.host).add(
      FaultRule(FaultRule.Match("push", user: "bob"), at: .beforePush, do: .drop, times: 1))
    for index in 1...2 { _ = try await alice.send(ChatHarness.text("\(index)", ClientMessageID("n\(index)"), in: channel)) }
    var told: [MessageContent] = []
    for await event in stream {
      guard case .messageReceived(let message) = event.kind else { continue }
      told.append(message.content)
      if message.content == .text("2") { break }
    }
    #expect(told == [.text("1"), .text("2")])
  }
}
