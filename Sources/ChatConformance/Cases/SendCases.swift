import UnifiedChat

extension ConformanceSuite {
  static let send: [ConformanceCase] = [
    ConformanceCase("SEND-01", "A send returns a pending message at once and ends as sent.", .s1) { context in
      let (alice, _, channel, _) = try await context.pair()
      let probe = context.probe(alice)
      let pending = try await alice.enqueue(.text("hello"), to: channel.id)
      try context.expectEqual(pending.state, .pending, "the state at once")
      try context.expect(pending.localID != nil && pending.id == nil, "a local id and no id")
      try await context.eventually("sent") { probe.sent(in: channel.id).count == 1 }
      for _ in 0..<20 { await context.harness.settle() }
      let mine = probe.events.filter { event in
        switch event.kind {
        case .messagePending, .messageSent, .messageFailed, .messageReceived: true
        default: false
        }
      }
      try context.expectEqual(mine.count, 2, "events about the message")
      let sent = probe.sent(in: channel.id).first
      try context.expect(sent?.id != nil && sent?.position != nil, "the sent message has id and position")
      try context.expectEqual(sent?.localID, pending.localID, "the local id")
      try context.expectEqual(sent?.state, .sent, "the state")
    },
    ConformanceCase("SEND-02", "All devices and members end with the same message.", .s1) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let atBob = context.probe(bob)
      var draft = MessageDraft(.text("同じ 👩‍👩‍👧"))
      if await alice.capabilities.has(.messageMention) { draft.mentions = Mentions(users: [users.b.id]) }
      let sent = try await alice.send(draft, to: channel.id)
      let newest = try await alice.history(of: channel.id, .newest(1)).messages.last
      try context.expectEqual(newest?.id, sent.id, "the newest message at once")
      try await context.eventually("bob was told") { atBob.received(in: channel.id).count == 1 }
      let fresh = try await context.online(users.b, "tablet")
      for (reader, copy) in [
        ("bob's event", atBob.received(in: channel.id).first),
        ("bob's history", try await bob.history(of: channel.id, .newest(1)).messages.last),
        ("a fresh device", try await fresh.history(of: channel.id, .newest(1)).messages.last),
      ] {
        try context.expectEqual(copy?.id, sent.id, "\(reader): id")
        try context.expectEqual(copy?.content, sent.content, "\(reader): content")
        try context.expectEqual(copy?.sender, users.a.id, "\(reader): sender")
        try context.expectEqual(copy?.createdAt, sent.createdAt, "\(reader): time")
        try context.expectEqual(copy?.position, sent.position, "\(reader): position")
        try context.expectEqual(copy?.mentions, draft.mentions, "\(reader): mentions")
      }
    },
    ConformanceCase(
      "SEND-03", "An acknowledgement lost after commit leaves one message.", .s1,
      needs: [.messageIdempotentSend], hooks: ["closeSocket", "afterCommit"]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let atBob = context.probe(bob)
      try await context.harness.faults?.inject(
        FaultRule("send", user: users.a.id, channel: channel.id, phase: .afterCommit, action: .closeSocket))
      let sent = try await context.whileTimePasses { try await alice.send(.text("once"), to: channel.id) }
      try context.expectEqual(sent.state, .sent, "the state")
      let stored = try await context.serverMessages(channel.id)
      try context.expectEqual(stored.map(\.id), [sent.id], "messages at the service")
      try await context.eventually("bob has it") { atBob.received(in: channel.id).count == 1 }
      try context.expectEqual(atBob.received(in: channel.id).map(\.id), [sent.id], "what bob was told")
    },
    ConformanceCase(
      "SEND-04", "A send lost before commit is sent again.", .s1, needs: [.messageIdempotentSend],
      hooks: ["closeSocket"]
    ) { context in
      let (alice, _, channel, users) = try await context.pair()
      let probe = context.probe(alice)
      try await context.harness.faults?.inject(
        FaultRule("send", user: users.a.id, channel: channel.id, phase: .received, action: .closeSocket))
      let pending = try await alice.enqueue(.text("again"), to: channel.id)
      try await context.eventually("sent") { probe.sent(in: channel.id).count == 1 }
      let stored = try await context.serverMessages(channel.id)
      try context.expectEqual(stored.count, 1, "messages at the service")
      try context.expectEqual(probe.sent(in: channel.id).first?.localID, pending.localID, "the local id")
    },
    ConformanceCase(
      "SEND-07", "A final refusal fails one message and frees the queue.", .s1, hooks: ["fail"]
    ) { context in
      let (alice, _, channel, users) = try await context.pair()
      let probe = context.probe(alice)
      try await context.harness.faults?.inject(
        FaultRule("send", user: users.a.id, channel: channel.id, nth: 3, action: .fail(.permission())))
      for number in 1...10 { _ = try await alice.enqueue(.text("\(number)"), to: channel.id) }
      try await context.eventually("nine are sent and one failed") {
        probe.sent(in: channel.id).count == 9
          && probe.count { if case .messageFailed = $0 { true } else { false } } == 1
      }
      let stored = try await context.serverMessages(channel.id).map(\.content)
      let expected = [1, 2, 4, 5, 6, 7, 8, 9, 10].map { MessageContent.text("\($0)") }
      try context.expectEqual(stored, expected, "messages at the service")
      let failed = probe.events.compactMap { event -> Message? in
        if case .messageFailed(let message) = event.kind { message } else { nil }
      }
      try context.expectEqual(failed.map(\.content), [.text("3")], "the failed message")
      guard case .failed(let error)? = failed.first?.state else { throw context.failure("a failed state", "another") }
      try context.expect(!error.isRetryable, "the refusal is final", observed: "\(error)")
    },
    ConformanceCase("SEND-08", "One hundred quick sends keep their order.", .s1) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let mine = context.probe(alice)
      let atBob = context.probe(bob)
      for number in 0..<100 { _ = try await alice.enqueue(.text("\(number)"), to: channel.id) }
      try await context.eventually("all are sent", within: .seconds(600)) { mine.sent(in: channel.id).count == 100 }
      let expected = (0..<100).map { MessageContent.text("\($0)") }
      let stored = try await context.serverMessages(channel.id).map(\.content)
      try context.expectEqual(stored, expected, "the order at the service")
      try await context.eventually("bob has all") { atBob.received(in: channel.id).count == 100 }
      try context.expectEqual(atBob.received(in: channel.id).map(\.content), expected, "the order of bob's events")
      try context.expectEqual(mine.count { if case .messageFailed = $0 { true } else { false } }, 0, "failures")
    },
    ConformanceCase("SEND-13", "An empty text is refused here, white space is not.", .s2) { context in
      let (alice, bob, channel, _) = try await context.pair()
      try await context.expectError("invalidArgument(text)") {
        _ = try await alice.send(.text(""), to: channel.id)
      } where: {
        $0 == .invalidArgument(field: "text")
      }
      let odd = [" ", "\n", "\u{200B}", "  two  ", "e\u{301}", "é", "👨‍👩‍👧‍👦", "\u{202E}rtl", "中文"]
      for text in odd { _ = try await alice.send(.text(text), to: channel.id) }
      // The newest page of a channel that is open comes from the cache, which the pushes fill.
      try await context.eventually("bob has all") {
        try await bob.history(of: channel.id, .newest(odd.count)).messages.count == odd.count
      }
      let read = try await bob.history(of: channel.id, .newest(odd.count)).messages
      for (message, text) in zip(read, odd) {
        guard case .text(let received) = message.content else { throw context.failure("a text", "\(message.content)") }
        try context.expect(
          received.utf8.elementsEqual(text.utf8), "the same bytes for \(Array(text.utf8))",
          observed: "\(Array(received.utf8))")
      }
      try context.expectEqual(read.count, odd.count, "messages read")
    },
    ConformanceCase("SEND-14", "A custom payload is preserved byte for byte.", .s1) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let payload = #"{"a":1, "a":2,  "b" : 1.0,"c":1e2,"d":"\u00e9\/","big":9007199254740993}"#
      _ = try await alice.send(MessageDraft(.custom(JSONText(unchecked: payload))), to: channel.id)
      let read = try await bob.history(of: channel.id, .newest(1)).messages.last
      guard case .custom(let received)? = read?.content else {
        throw context.failure("a custom message", "\(String(describing: read?.content))")
      }
      try context.expectEqual(received.text, payload, "the payload")
    },
    ConformanceCase(
      "SEND-18", "Two devices sending the same words at the same instant make two messages.", .s1,
      needs: [.connectionMultiDevice]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let tablet = try await context.online(users.a, "tablet")
      async let first = alice.send(.text("ok"), to: channel.id)
      async let second = tablet.send(.text("ok"), to: channel.id)
      let ids = try await [first.id, second.id]
      try context.expect(ids[0] != ids[1], "two ids")
      for device in [alice, tablet, bob] {
        try await context.eventually("every device has both") {
          try await device.history(of: channel.id, .newest(10)).messages.count >= 2
        }
      }
      let order = try await bob.history(of: channel.id, .newest(10)).messages.map(\.id)
      try context.expectEqual(Set(order), Set(ids), "both messages")
      for device in [alice, tablet] {
        let seen = try await device.history(of: channel.id, .newest(10)).messages.map(\.id)
        try context.expectEqual(seen, order, "the order on every device")
      }
    },
  ]
}
