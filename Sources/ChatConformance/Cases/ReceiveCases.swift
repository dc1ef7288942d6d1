import ChatClient
import Synchronization
import UnifiedChat

extension ConformanceSuite {
  static let receive: [ConformanceCase] = [
    ConformanceCase("RECV-01", "A received message is complete.", .s1) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(bob)
      var draft = MessageDraft(.text("complete"))
      draft.customData = JSONText(unchecked: #"{"k":1}"#)
      let sent = try await alice.send(draft, to: channel.id)
      try await context.eventually("bob was told") { probe.received(in: channel.id).count == 1 }
      let event = probe.events.first { if case .messageReceived = $0.kind { true } else { false } }
      try context.expectEqual(event?.source, .live, "the source")
      let message = probe.received(in: channel.id).first
      try context.expectEqual(message?.id, sent.id, "the id")
      try context.expect(message?.position != nil, "a position")
      try context.expectEqual(message?.sender, users.a.id, "the sender")
      try context.expectEqual(message?.createdAt, sent.createdAt, "the time")
      try context.expectEqual(message?.customData, draft.customData, "the custom data")
    },
    ConformanceCase(
      "RECV-02", "My own message from my other device is mine.", .s1, needs: [.connectionMultiDevice]
    ) { context in
      let (alice, _, channel, users) = try await context.pair()
      let tablet = try await context.online(users.a, "tablet")
      let probe = context.probe(tablet)
      let sent = try await alice.send(.text("mine"), to: channel.id)
      try await context.eventually("the tablet was told") { probe.received(in: channel.id).count == 1 }
      let event = probe.events.first { if case .messageReceived = $0.kind { true } else { false } }
      try context.expectEqual(event?.source, .echo, "the source")
      try context.expectEqual(probe.received(in: channel.id).first?.sender, users.a.id, "the sender")
      try context.expectEqual(probe.received(in: channel.id).first?.id, sent.id, "the id")
    },
    ConformanceCase(
      "RECV-03", "A push repeated is one event.", .s1, hooks: ["duplicate"]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(bob)
      try await context.harness.faults?.inject(
        FaultRule("push", user: users.b.id, phase: .beforePush, action: .duplicate(3)))
      _ = try await alice.send(.text("first"), to: channel.id)
      _ = try await alice.send(.text("second"), to: channel.id)
      try await context.eventually("both are told") { probe.received(in: channel.id).count >= 2 }
      try await context.quiet()
      try context.expectEqual(
        probe.received(in: channel.id).map(\.content), [.text("first"), .text("second")], "what bob was told")
      let rows = try await bob.history(of: channel.id, .newest(10)).messages
      try context.expectEqual(rows.count, 2, "rows")
    },
    ConformanceCase("RECV-11", "A listener registered again replaces itself.", .s2) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let counts = (0..<11).map { _ in CountingListener() }
      for listener in counts.prefix(10) { bob.listeners.add(listener, identifier: "one") }
      bob.listeners.add(counts[10], identifier: "two")
      _ = try await alice.send(.text("count me"), to: channel.id)
      try await context.eventually("both are told") { counts[9].count == 1 && counts[10].count == 1 }
      try context.expectEqual(counts.prefix(9).map(\.count).reduce(0, +), 0, "events at replaced listeners")
      bob.listeners.remove(identifier: "two")
      _ = try await alice.send(.text("count one"), to: channel.id)
      try await context.eventually("the one is told") { counts[9].count == 2 }
      try context.expectEqual(counts[10].count, 1, "events at the removed listener")
    },
    ConformanceCase(
      "RECV-12", "Messages that arrive while nothing is open are there when it opens.", .s1
    ) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let probe = context.probe(bob)
      for number in 0..<20 { _ = try await alice.send(.text("\(number)"), to: channel.id) }
      try await context.eventually("all are told") { probe.received(in: channel.id).count == 20 }
      // Once the device knows the channel from its beginning, showing it asks nobody.
      try await context.shows(bob, channel.id, (0..<20).map { .text("\($0)") }, "bob")
      _ = try await context.say(alice, channel.id, ["20"])
      try await context.eventually("it is told") { probe.received(in: channel.id).count == 21 }
      try await context.idle()
      let mark = await context.mark()
      let page = try await bob.history(of: channel.id, .newest(50))
      try context.expectEqual(page.messages.map(\.content), (0...20).map { .text("\($0)") }, "the messages")
      try await context.idle()
      if context.offers("journal") {
        try context.expectEqual(try await context.requests("history", since: mark).count, 0, "pages asked for")
      }
    },
    ConformanceCase("RECV-04", "Pushes out of order end in order.", .s1, hooks: ["reorder"]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      try await context.say(alice, channel.id, ["0"])
      try await context.shows(bob, channel.id, [.text("0")], "bob")
      let probe = context.probe(bob)
      try await context.inject(
        FaultRule("push", user: users.b.id, times: 3, phase: .beforePush, action: .reorder(3)))
      try await context.say(alice, channel.id, ["1", "2", "3"])
      try await context.shows(bob, channel.id, ["0", "1", "2", "3"].map { .text($0) }, "bob")
      try await context.quiet()
      // Nothing that comes late claims to be the newest one.
      let positions = probe.received(in: channel.id).compactMap(\.position)
      try context.expect(zip(positions, positions.dropFirst()).allSatisfy { $0 < $1 }, "received messages in order")
      try context.expectEqual(
        probe.received(in: channel.id).count + probe.backfilled(in: channel.id), 3, "messages told, each once")
    },
    ConformanceCase("RECV-05", "A message of an unknown channel brings the channel first.", .s2) { context in
      let a = try await context.user("alice")
      let b = try await context.user("bob")
      let alice = try await context.online(a)
      let bob = try await context.online(b)
      let probe = context.probe(bob)
      let kind: ChannelKind = context.has(.channelDirect) ? .direct : .group
      let channel = try await alice.createChannel(ChannelDraft(kind: kind, members: [b.id]))
      try await context.say(alice, channel.id, ["hello"])
      try await context.eventually("the message is told") {
        probe.events.contains { if case .messageReceived = $0.kind { true } else { false } }
      }
      let kinds = probe.events.map(\.kind)
      let message = try context.need(
        kinds.firstIndex { if case .messageReceived = $0 { true } else { false } }, "the message")
      let joined = kinds.firstIndex { if case .channelJoined = $0 { true } else { false } }
      try context.expect((joined ?? .max) < message, "the channel before its message")
    },
    ConformanceCase("RECV-10", "A slow subscriber hurts nobody and loses nothing silently.", .s1) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let small = try await context.online(users.b, "small") { $0.eventCapacity = 8 }
      try await context.sees(small, channel.id)
      // A subscriber that does not take anything until all is over.
      let slow = small.events()
      let prompt = context.probe(small)
      let other = context.probe(bob)
      try await context.say(alice, channel.id, 40)
      try await context.eventually("the other device has all") { other.received(in: channel.id).count == 40 }
      try await context.shows(small, channel.id, (0..<40).map { .text("\($0)") }, "the device")
      try context.expect(prompt.received(in: channel.id).count <= 40, "the prompt one is told each once at most")
      let collected = Mutex<[ChatEvent]>([])
      let reader = Task { for await event in slow { collected.withLock { $0.append(event) } } }
      defer { reader.cancel() }
      try await context.eventually("the slow one learns of its loss") {
        collected.withLock { $0.contains { if case .overflow(let count) = $0.kind { count > 0 } else { false } } }
      }
      let first = collected.withLock { $0.prefix { if case .overflow = $0.kind { false } else { true } } }
      try context.expectEqual(first.count, 8, "events before the loss")
    },
    ConformanceCase("RECV-13", "System notices become events or notices, never text.", .s2) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let c = try await context.user("carol")
      let probe = context.probe(bob)
      try await alice.invite([c.id], to: channel.id)
      if context.has(.channelCustomData) { _ = try await alice.updateChannel(channel.id, ChannelChanges(name: "renamed")) }
      try await context.eventually("bob is told") { probe.memberJoined(c.id, in: channel.id) == 1 }
      let read = try await context.newest(20, of: channel.id, by: bob)
      for message in read {
        guard case .system = message.content else { throw context.failure("notices only", "\(message.content)") }
      }
      for message in probe.received(in: channel.id) {
        guard case .system = message.content else { throw context.failure("notices only", "\(message.content)") }
      }
      let fresh = try await context.online(users.b, "fresh")
      try await context.sees(fresh, channel.id)
      // A vendor may count its notices, but nothing else is there to count.
      let unread = try await context.channel(channel.id, by: bob).unread.number ?? 0
      try context.expect(unread <= read.count, "no unread number but for notices", observed: "\(unread)")
    },
  ]
}

private final class CountingListener: MessageListener {
  private let seen = Mutex(0)
  var count: Int { seen.withLock { $0 } }
  func messageReceived(_ message: Message) async { seen.withLock { $0 += 1 } }
}
