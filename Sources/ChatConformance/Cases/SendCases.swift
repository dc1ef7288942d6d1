import ChatJSON
import UnifiedChat

// What becomes of a send: lost answers, refusals, order, resending.

extension ConformanceSuite {
  static let send: [ConformanceCase] = [
    ConformanceCase("SEND-01", "A send returns a pending message at once and ends as sent.", .s1) { context in
      let (alice, _, channel, _) = try await context.pair()
      let probe = context.probe(alice)
      let pending = try await alice.enqueue(.text("hello"), to: channel.id)
      try context.expectEqual(pending.state, .pending, "the state at once")
      try context.expect(pending.localID != nil && pending.id == nil, "a local id and no id")
      try await context.eventually("sent") { probe.sent(in: channel.id).count == 1 }
      try await context.quiet()
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
      "SEND-03", "An acknowledgement lost after commit leaves one message.", .s1, hooks: ["closeSocket", "afterCommit"]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let atBob = context.probe(bob)
      let mark = await context.mark()
      try await context.inject(
        FaultRule("send", user: users.a.id, channel: channel.id, phase: .afterCommit, action: .closeSocket))
      guard context.has(.messageIdempotentSend) else {
        // Nothing to match by: the outcome stays unknown, and nothing is sent a second time.
        _ = try await alice.enqueue(.text("once"), to: channel.id)
        try await context.eventually("the outcome is unknown") {
          try await alice.waitingMessages(in: channel.id).map(\.state) == [.unknown]
        }
        try await context.eventually("bob has it") { atBob.received(in: channel.id).count == 1 }
        try await context.pass(.seconds(120), step: .seconds(5))
        try context.expectEqual(try await context.requests("send", by: users.a.id, since: mark).count, 1, "sends")
        try context.expectEqual(try await context.serverMessages(channel.id).count, 1, "messages at the service")
        return
      }
      let sent = try await context.whileTimePasses { try await alice.send(.text("once"), to: channel.id) }
      try context.expectEqual(sent.state, .sent, "the state")
      let stored = try await context.serverMessages(channel.id)
      try context.expectEqual(stored.map(\.id), [sent.id], "messages at the service")
      try await context.eventually("bob has it") { atBob.received(in: channel.id).count == 1 }
      try context.expectEqual(atBob.received(in: channel.id).map(\.id), [sent.id], "what bob was told")
      guard context.offers("journal"), context.harness.capabilities[.messageIdempotentSend] != .native else { return }
      // Where the service would store it twice, the client looks before it sends again.
      let mine = try await context.requests(since: mark).filter { $0.user == nil || $0.user == users.a.id }.map(\.operation)
      let sends = mine.indices.filter { mine[$0] == "send" }
      if sends.count > 1 {
        try context.expect(mine[sends[0]..<sends[1]].contains("history"), "a look before the second send", observed: "\(mine)")
      }
    },
    ConformanceCase(
      "SEND-04", "A send lost before commit is sent again.", .s1, needs: [.messageIdempotentSend],
      hooks: ["closeSocket"]
    ) { context in
      let (alice, _, channel, users) = try await context.pair()
      let probe = context.probe(alice)
      try await context.inject(
        FaultRule("send", user: users.a.id, channel: channel.id, phase: .received, action: .closeSocket))
      let pending = try await alice.enqueue(.text("again"), to: channel.id)
      try await context.eventually("sent") { probe.sent(in: channel.id).count == 1 }
      let stored = try await context.serverMessages(channel.id)
      try context.expectEqual(stored.count, 1, "messages at the service")
      try context.expectEqual(probe.sent(in: channel.id).first?.localID, pending.localID, "the local id")
    },
    ConformanceCase(
      "SEND-05", "A late acknowledgement settles the message.", .s1, needs: [.messageIdempotentSend], hooks: ["delay"]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let atBob = context.probe(bob)
      let mine = context.probe(alice)
      try await context.inject(
        FaultRule("send", user: users.a.id, phase: .beforeReply, action: .delay(.seconds(75))))
      let sent = try await context.whileTimePasses(within: .seconds(300), step: .seconds(1)) {
        try await alice.send(.text("late"), to: channel.id)
      }
      try context.expectEqual(sent.state, .sent, "the state")
      try await context.pass(.seconds(80), step: .seconds(5))
      try context.expectEqual(mine.sent(in: channel.id).map(\.id), [sent.id], "told as sent, once")
      try context.expectEqual(mine.failed(in: channel.id).count, 0, "never told as failed")
      try context.expectEqual(try await context.serverMessages(channel.id).map(\.id), [sent.id], "at the service")
      try await context.eventually("bob has it", within: .seconds(120), step: .seconds(1)) {
        try await bob.history(of: channel.id, .newest(5)).messages.map(\.id) == [sent.id]
      }
      try context.expect(atBob.received(in: channel.id).count <= 1, "told once at most")
    },
    ConformanceCase(
      "SEND-06", "A retry refused as a double means sent.", .s1, needs: [.messageIdempotentSend],
      hooks: ["drop", "fail"]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let known = try await context.say(alice, channel.id, ["known"])
      let probe = context.probe(alice)
      try await context.inject(FaultRule("send", user: users.a.id, phase: .beforeReply, action: .drop))
      // Who looks first finds the message and asks nothing twice. Where a look can be told that there is nothing, the
      // second try is made, and refused.
      if let changes = context.harness.odd["emptyHistory"] {
        let places = try context.places(changes, in: channel.id)
        try await context.inject(FaultRule("history", user: users.a.id, phase: .beforeReply, action: .patch(places)))
        try await context.inject(FaultRule("send", user: users.a.id, nth: 2, action: .fail(.conflict)))
      }
      let sent = try await context.whileTimePasses(within: .seconds(300), step: .seconds(1)) {
        try await alice.send(.text("twice"), to: channel.id)
      }
      try context.expectEqual(sent.state, .sent, "the state")
      try context.expectEqual(
        try await context.serverMessages(channel.id).map(\.id), known.map(\.id) + [sent.id], "at the service")
      try context.expectEqual(probe.failed(in: channel.id).count, 0, "failures")
      try await context.shows(bob, channel.id, [.text("known"), .text("twice")], "bob")
    },
    ConformanceCase(
      "SEND-07", "A final refusal fails one message and frees the queue.", .s1, hooks: ["fail"]
    ) { context in
      let (alice, _, channel, users) = try await context.pair()
      let probe = context.probe(alice)
      try await context.inject(
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
    ConformanceCase(
      "SEND-09", "A retryable error holds the channel's queue, not the others.", .s1, needs: [.messageIdempotentSend],
      hooks: ["fail"]
    ) { context in
      let (alice, _, channel, users) = try await context.pair()
      let other = try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: "other"))
      let probe = context.probe(alice)
      try await context.inject(
        FaultRule("send", user: users.a.id, channel: channel.id, nth: 3, times: 2, action: .fail(.server)))
      for number in 0..<8 {
        _ = try await alice.enqueue(.text("\(number)"), to: channel.id)
        _ = try await alice.enqueue(.text("\(number)"), to: other.id)
      }
      try await context.eventually("the other channel is done") { probe.sent(in: other.id).count == 8 }
      try await context.eventually("this one too, or its queue is free", within: .seconds(300), step: .seconds(1)) {
        probe.sent(in: channel.id).count + probe.failed(in: channel.id).count == 8
      }
      let expected = (0..<8).map { MessageContent.text("\($0)") }
      try context.expectEqual(try await context.serverMessages(other.id).map(\.content), expected, "the other channel")
      // A refusal that the vendor calls final is not tried again, but what is sent keeps its order.
      let failed = Set(probe.failed(in: channel.id).map(\.content))
      try context.expectEqual(
        try await context.serverMessages(channel.id).map(\.content), expected.filter { !failed.contains($0) },
        "this channel")
      for message in probe.failed(in: channel.id) {
        guard case .failed(let error) = message.state else { throw context.failure("a failed state", "\(message.state)") }
        try context.expect(!error.isRetryable, "only a final refusal fails", observed: "\(error)")
      }
    },
    ConformanceCase("SEND-10", "Cancelling before the wire removes, after the wire cannot.", .s2, hooks: ["delay"]) {
      context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(alice)
      await alice.suspend()
      let pending = try await alice.enqueue(.text("never"), to: channel.id)
      let localID = try context.need(pending.localID, "a local id")
      try context.expect(try await alice.cancel(localID), "a cancelled message")
      try context.expectEqual(try await alice.waitingMessages(in: channel.id).count, 0, "what waits")
      await alice.resume()
      try await context.eventually("connected") { await alice.state == .connected }
      try await context.inject(FaultRule("send", user: users.a.id, phase: .beforeReply, action: .delay(.seconds(2))))
      let flying = try await alice.enqueue(.text("too late"), to: channel.id)
      try await context.eventually("it left") {
        try await bob.history(of: channel.id, .newest(1)).messages.last?.content == .text("too late")
      }
      try context.expect(try await !alice.cancel(try context.need(flying.localID, "a local id")), "too late to cancel")
      try await context.eventually("sent") { probe.sent(in: channel.id).count == 1 }
      try context.expectEqual(
        try await context.serverMessages(channel.id).map(\.content), [.text("too late")], "at the service")
    },
    ConformanceCase(
      "SEND-11", "A process kill between cache write and acknowledgement leaves one message.", .s1,
      needs: [.messageIdempotentSend], hooks: ["stall"], tags: [.kill]
    ) { context in
      for point in ["before the wire", "before the commit", "after the commit"] {
        let (alice, _, channel, users) = try await context.pair()
        switch point {
        case "before the wire": await alice.suspend()
        case "before the commit": try await context.inject(FaultRule("send", user: users.a.id, action: .drop))
        default:
          try await context.inject(FaultRule("send", user: users.a.id, phase: .beforeReply, action: .drop))
        }
        let pending = try await alice.enqueue(.text(point), to: channel.id)
        try await context.quiet()
        let next = try await context.killed(alice, "phone")
        await alice.disconnect()
        let probe = context.probe(next)
        _ = try await context.whileTimePasses { try await next.connect(as: users.a.id, credential: users.a.credential) }
        try await context.eventually("sent, killed \(point)", within: .seconds(300), step: .seconds(1)) {
          try await next.waitingMessages(in: channel.id).isEmpty
        }
        try context.expectEqual(
          try await context.serverMessages(channel.id).map(\.content), [.text(point)], "at the service")
        try context.expectEqual(probe.failed(in: channel.id).count, 0, "failures")
        let shown = try await context.newest(5, of: channel.id, by: next)
        try context.expectEqual(shown.map(\.localID), [pending.localID], "the local id, killed \(point)")
      }
    },
    ConformanceCase("SEND-16", "Sending where I am not a member is permission.", .s2) { context in
      let (_, _, channel, _) = try await context.pair()
      let stranger = try await context.online(try await context.user("carol"))
      let probe = context.probe(stranger)
      let error = try await context.expectErrorInTime("permission or notFound") {
        _ = try await stranger.send(.text("let me in"), to: channel.id)
      } where: {
        if case .permission = $0 { true } else { $0 == .notFound }
      }
      try context.expect(!error.isRetryable, "a final refusal", observed: "\(error.retry)")
      if context.harness.target != .ideal { try context.expect(error.vendor?.code != nil, "the vendor's code", observed: "\(error)") }
      try await context.eventually("it failed") { probe.failed(in: channel.id).count == 1 }
      try context.expectEqual(try await context.serverMessages(channel.id).count, 0, "messages at the service")
    },
    ConformanceCase("SEND-17", "A manual resend keeps the place and the identity.", .s1, hooks: ["fail"]) { context in
      let (alice, _, channel, users) = try await context.pair()
      let probe = context.probe(alice)
      try await context.inject(
        FaultRule("send", user: users.a.id, channel: channel.id, nth: 2, action: .fail(.permission())))
      for text in ["1", "2", "3"] { _ = try await alice.enqueue(.text(text), to: channel.id) }
      try await context.eventually("one failed") {
        probe.failed(in: channel.id).count == 1 && probe.sent(in: channel.id).count == 2
      }
      let failed = try context.need(probe.failed(in: channel.id).first, "the failed message")
      let localID = try context.need(failed.localID, "its local id")
      for _ in 0..<5 { _ = try await alice.resend(localID) }
      try await context.eventually("sent") { probe.sent(in: channel.id).count == 3 }
      try await context.quiet()
      try context.expectEqual(
        try await context.serverMessages(channel.id).map(\.content), [.text("1"), .text("3"), .text("2")],
        "the order at the service")
      try context.expectEqual(probe.sent(in: channel.id).last?.localID, localID, "the local id")
      try context.expectEqual(try await alice.waitingMessages(in: channel.id).count, 0, "what waits")
      try await context.shows(alice, channel.id, [.text("1"), .text("3"), .text("2")], "alice")
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
    ConformanceCase(
      "SEND-19", "A failed message that becomes possible later goes out once.", .s2, needs: [.memberMute]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(bob)
      try await alice.mute(users.b.id, in: channel.id, for: nil)
      let pending = try await bob.enqueue(.text("later"), to: channel.id)
      try await context.eventually("it failed") { probe.failed(in: channel.id).count == 1 }
      try await alice.unmute(users.b.id, in: channel.id)
      try await context.pass(.seconds(60), step: .seconds(5))
      try context.expectEqual(try await context.serverMessages(channel.id).count, 0, "nothing goes out by itself")
      _ = try await bob.resend(try context.need(pending.localID, "a local id"))
      try await context.eventually("sent") { probe.sent(in: channel.id).count == 1 }
      try context.expectEqual(
        try await context.serverMessages(channel.id).map(\.content), [.text("later")], "at the service")
    },
    ConformanceCase(
      "SEND-23", "The same client id on purpose is stored once.", .s1, needs: [.messageIdempotentSend]
    ) { context in
      let (alice, _, channel, _) = try await context.pair()
      func outgoing(_ text: String) -> OutgoingMessage {
        OutgoingMessage(
          channel: channel.id, localID: "send-23-same", clientMessageID: "send-23-same", draft: .text(text))
      }
      let first = outgoing("first")
      let one = try await context.whileTimePasses { try await alice.send(first) }
      await context.harness.pass(.seconds(1))
      let second = outgoing("second")
      let two = try await context.whileTimePasses { try await alice.send(second) }
      try context.expectEqual(two.id, one.id, "the message of both calls")
      try context.expectEqual(
        try await context.serverMessages(channel.id).map(\.content), [.text("first")], "at the service")
    },
  ]
}
