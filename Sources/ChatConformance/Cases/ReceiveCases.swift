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
      for _ in 0..<20 { await context.harness.settle() }
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
      let page = try await bob.history(of: channel.id, .newest(50))
      try context.expectEqual(page.messages.map(\.content), (0..<20).map { .text("\($0)") }, "the messages")
    },
  ]
}

private final class CountingListener: MessageListener {
  private let seen = Mutex(0)
  var count: Int { seen.withLock { $0 } }
  func messageReceived(_ message: Message) async { seen.withLock { $0 += 1 } }
}
