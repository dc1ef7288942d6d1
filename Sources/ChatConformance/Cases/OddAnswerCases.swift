import ChatCache
import ChatClient
import ChatJSON
import UnifiedChat

// Odd answers of a service, and what heals after them.
extension ConformanceSuite {
  static let oddAnswers: [ConformanceCase] = [
    ConformanceCase("ERR-04", "A truncated body is a network error.", .s2, hooks: ["truncateBody", "journal"], tags: [.wire]) { context in
      let (alice, _, channel, users) = try await context.pair()
      let sent = try await context.say(alice, channel.id, 6)
      for size in [0, 1, 25] {
        let reader = try await context.online(users.b, "reader\(size)")
        let mark = await context.mark()
        try await context.inject(
          FaultRule(
            "history", user: users.b.id, phase: .beforeReply, action: .truncateBody(size), mustFire: false))
        do {
          _ = try await context.whileTimePasses(within: .seconds(300), step: .seconds(1)) {
            try await reader.history(of: channel.id, .newest(10))
          }
        } catch let error as ChatError {
          // A body of nothing, or of a byte, may as well be a whole one that breaks the protocol.
          try context.expect(
            error.isRetryable || error.kind == .protocolViolation, "it may be tried again, cut at \(size)",
            observed: "\(error)")
        }
        _ = await context.harness.faults?.removeRules()
        guard try await !context.requests("history", by: users.b.id, since: mark).isEmpty else {
          throw CaseSkip(reason: .rule("no user asks for a history by itself"))
        }
        try await context.eventually("connected", within: .seconds(300), step: .seconds(1)) {
          await reader.state == .connected
        }
        try await context.shows(reader, channel.id, sent.map(\.content), "reader, cut at \(size)")
      }
      guard context.has(.messageIdempotentSend) else { return }
      try await context.inject(
        FaultRule("send", user: users.a.id, phase: .beforeReply, action: .truncateBody(9)))
      let last = try await context.whileTimePasses(within: .seconds(300), step: .seconds(1)) {
        try await alice.send(.text("once"), to: channel.id)
      }
      try context.expectEqual(
        try await context.serverMessages(channel.id).map(\.id), sent.map(\.id) + [last.id], "messages at the service")
    },
    ConformanceCase(
      "ERR-05", "Replies find their requests only by their serial.", .s1, hooks: ["reorder", "duplicate"], tags: [.wire]
    ) { context in
      let (alice, _, first, users) = try await context.pair()
      let second = try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: "second"))
      let places = [first.id, second.id]
      for (round, action) in [FaultRule.Action.reorder(2), .duplicate(3)].enumerated() {
        try await context.inject(
          FaultRule("send", user: users.a.id, times: 2, phase: .beforeReply, action: action))
        async let one = alice.send(.text("\(round) first"), to: places[0])
        async let two = alice.send(.text("\(round) second"), to: places[1])
        for _ in 0..<20 {
          await context.harness.pass(.milliseconds(250))
          try await context.quiet(4)
        }
        let sent = try await [one, two]
        try context.expectEqual(sent.map(\.content), [.text("\(round) first"), .text("\(round) second")], "what was answered")
        for (message, place) in zip(sent, places) {
          let stored = try await context.serverMessages(place).last
          try context.expectEqual(message.id, stored?.id, "the id of \(message.content)")
        }
        try await context.removeRules()
      }
    },
    ConformanceCase(
      "CONN-12", "A restarted server is not stampeded.", .s2, hooks: ["restart", "refuseConnections", "journal", "virtualTime"]
    ) { context in
      var chats: [Chat] = []
      for number in 0..<30 { chats.append(try await context.online(try await context.user("u\(number)"))) }
      // A link that is lost is tried again at once, as the vendors' clients do; what must be spread are the tries after
      // that, while the server is away and when it is back.
      try await context.perform(.refuseConnections(true))
      try await context.perform(.restart)
      for _ in 0..<20 {
        await context.harness.pass(.milliseconds(500))
        try await context.quiet(6)
      }
      try await context.perform(.refuseConnections(false))
      let mark = await context.mark()
      let start = context.harness.clock.now
      let all = chats
      // Small steps: what wakes within one is seen at its end.
      try await context.eventually("all are back", within: .seconds(120), step: .milliseconds(20)) {
        let opened = try await context.requests(since: mark).count { $0.kind == "open" }
        guard opened >= 30 else { return false }
        for chat in all where await chat.state != .connected { return false }
        return true
      }
      let times = try await context.requests(since: mark).filter { $0.kind == "open" }.map {
        ($0.time - start).wholeMilliseconds
      }
      try context.expect(times.count >= 30, "an attempt each", observed: "\(times.count)")
      let busiest = times.map { first in times.count { (first..<first + 1000).contains($0) } }.max() ?? 0
      try context.expect(
        busiest * 10 <= times.count * 6, "attempts that are spread", observed: "\(busiest) of \(times.count) within a second")
    },
    ConformanceCase(
      "DEL-10", "A recalled quoted message empties its quotes.", .s2, needs: [.messageQuote, .messageRecall]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let quoted = try await context.say(alice, channel.id, ["regretted-words"])[0]
      try await context.shows(bob, channel.id, [quoted.content], "bob")
      let ready = try context.reply("about that", to: quoted)
      let reply = try await context.whileTimePasses { try await bob.send(ready, to: channel.id) }
      try await context.shows(alice, channel.id, [quoted.content, .text("about that")], "alice")
      // One that is still to be sent says no more than one that is sent.
      await bob.suspend()
      let second = try context.reply("and about it again", to: quoted)
      _ = try await bob.enqueue(second, to: channel.id)
      let probe = context.probe(alice)
      _ = try await context.whileTimePasses { try await alice.recall(quoted) }
      await bob.resume()
      try await context.eventually("bob's second reply is sent", within: .seconds(120)) {
        try await bob.waitingMessages(in: channel.id).isEmpty
      }
      for reader in [alice, bob] {
        try await context.eventually("the replies stay, the quoted one and its words are gone") {
          let read = try await reader.history(of: channel.id, .newest(5)).messages
          let replies = read.filter { $0.replyTo?.id == quoted.id }
          return replies.count == 2 && replies.contains { $0.id == reply.id && $0.content == .text("about that") }
            && replies.allSatisfy { $0.replyTo?.quoted.map { Self.isErased($0.content) } ?? true }
            && !read.contains { $0.id == quoted.id && !$0.isRecalled }
        }
      }
      try await context.eventually("the reply is told as changed") {
        probe.updated(in: channel.id).contains { $0.id == reply.id }
      }
      for chat in [alice, bob] {
        let folder = try context.details(of: chat).folder
        await chat.disconnect()
        try context.expect(!(try contains(folder, "regretted-words")), "no such words in any file")
      }
      // Who never saw it may find the service's copy of the words in the reply, unless the service shows a tombstone.
      guard context.has(.messageRecallTombstone) else { return }
      let fresh = try await context.online(users.b, "fresh")
      let read = try await context.wholeHistory(of: channel.id, by: fresh, page: 10)
      try context.expect(
        read.filter { $0.replyTo?.id == quoted.id }.allSatisfy { $0.replyTo?.quoted.map { Self.isErased($0.content) } ?? true },
        "no words in the quotes of a fresh device", observed: "\(read.compactMap(\.replyTo?.quoted?.content))")
    },
    ConformanceCase(
      "ERR-01", "Codes of the vendor's table have their kinds.", .s2, hooks: ["fail"], tags: [.wire]
    ) { context in
      let (_, _, channel, users) = try await context.pair()
      guard !context.harness.codes.isEmpty else { throw CaseSkip(reason: .rule("no codes are known")) }
      let adapter = try await context.harness.makeAdapter(TestDevice(name: "err-01-bare", clock: context.harness.clock))
      _ = try await adapter.connect(as: users.a.id, credential: users.a.credential)
      for (code, kind) in context.harness.codes.sorted(by: { $0.key < $1.key }) {
        try await context.inject(FaultRule("send", user: users.a.id, action: .refuse(code: code)))
        let message = OutgoingMessage(
          channel: channel.id, localID: LocalID("err-01-\(code)"), clientMessageID: ClientMessageID("err-01-\(code)"),
          draft: .text("refused"))
        let error = try await context.expectErrorInTime(kind) { _ = try await adapter.send(message) } where: {
          $0.name == kind
        }
        try context.expectEqual(error.vendor?.code, "\(code)", "the code")
        try context.expect(!error.isRetryable, "\(code) is final", observed: "\(error.retry)")
      }
      try context.expectEqual(await adapter.state, .connected, "the state")
      await adapter.disconnect()
    },
    ConformanceCase("ERR-12", "Success with an error inside is an error.", .s1, hooks: ["http"], tags: [.wire]) { context in
      guard let (body, code) = context.harness.errorBody else { throw CaseSkip(reason: .rule("requests go by frames")) }
      let user = try await context.user("alice")
      let chat = try await context.online(user)
      try await context.quiet()
      for operation in ["channelQuery", "other", "member"] {
        try await context.inject(
          FaultRule(
            operation, times: nil,
            action: .http(status: 200, headers: ["Content-Type": "application/json"], body: Array(body.utf8)),
            mustFire: false))
      }
      let error = try await context.expectErrorInTime("an error", within: .seconds(300)) {
        _ = try await chat.users(["err-12-somebody"])
      } where: { _ in
        true
      }
      try context.expectEqual(error.vendor?.code, code, "the code inside")
      _ = await context.harness.faults?.removeRules()
      try context.expectEqual(await chat.state, .connected, "the state")
      _ = try await context.whileTimePasses { try await chat.users([user.id]) }
    },
    ConformanceCase(
      "META-06", "A newer server's channel field is no error.", .s2, hooks: ["patch"], tags: [.wire]
    ) { context in
      guard let place = context.harness.paths["channel.unknown"] else {
        throw CaseSkip(reason: .rule("the vendor has no such place"))
      }
      let (alice, _, channel, _) = try await context.pair()
      try await context.quiet()
      try await context.inject(
        FaultRule("channelQuery", phase: .beforeReply, action: .patch([place: ["deep": [1, nil, ["x": true]]]])))
      let read = try await context.channel(channel.id, by: alice)
      try context.expectEqual(read.id, channel.id, "the channel")
      try context.expectEqual(read.name, channel.name, "its name")
    },
    ConformanceCase(
      "UNRD-11", "A wrong counter is healed by marking.", .s2, needs: [.unreadChannel], hooks: ["patch"], tags: [.wire]
    ) { context in
      guard let place = context.harness.paths["channel.unread"] else {
        throw CaseSkip(reason: .rule("the service sends no number"))
      }
      let (alice, bob, channel, _) = try await context.pair()
      let sent = try await context.say(alice, channel.id, 2)
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      try await bob.markRead(channel.id, upTo: nil)
      try await context.unreadBecomes(0, of: channel.id, on: bob)
      try await context.inject(FaultRule("channelQuery", phase: .beforeReply, action: .patch([place: .int(7)])))
      _ = try await context.channel(channel.id, by: bob)
      try await context.unreadBecomes(7, of: channel.id, on: bob, "the wrong number")
      try await context.removeRules()
      try await bob.markRead(channel.id, upTo: nil)
      try await context.unreadBecomes(0, of: channel.id, on: bob, "unread after marking")
    },
    ConformanceCase(
      "RECON-08", "A token that does not advance stops the loop.", .s1, needs: [.historyChangelog],
      hooks: ["patch", "journal"], tags: [.wire]
    ) { context in
      guard let changes = context.harness.odd["standingToken"] else {
        throw CaseSkip(reason: .rule("the vendor has no token"))
      }
      let (alice, bob, channel, users) = try await context.pair()
      let sent = try await context.say(alice, channel.id, 3)
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      // Until there is a token, nothing is asked with one.
      try await context.idle()
      await bob.suspend()
      let places = try context.places(changes, in: channel.id)
      try await context.inject(
        FaultRule(
          "changelog", user: users.b.id, times: nil, phase: .beforeReply, action: .patch(places), mustFire: false))
      let mark = await context.mark()
      await bob.resume()
      try await context.eventually("connected") { await bob.state == .connected }
      try await context.eventually("the log is asked") {
        try await !context.requests("changelog", since: mark).isEmpty
      }
      try await context.idle()
      try await context.pass(.seconds(60))
      let asked = try await context.requests("changelog", since: mark).count
      try context.expect((1...12).contains(asked), "an end to the asking", observed: "\(asked) requests")
      try await context.stillHears(bob, alice, channel.id)
    },
    ConformanceCase("RECON-10", "Catch-up of many channels is complete.", .s2, tags: [.stress]) { context in
      let (alice, bob, first, users) = try await context.pair()
      var channels = [first.id]
      for number in 1..<60 {
        channels.append(
          try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: "c\(number)")).id)
      }
      for channel in channels { try await context.sees(bob, channel) }
      await bob.suspend()
      for channel in channels { try await context.say(alice, channel, 10) }
      await bob.resume()
      try await context.eventually("connected") { await bob.state == .connected }
      for channel in channels { try await context.shows(bob, channel, (0..<10).map { .text("\($0)") }, "bob") }
    },
  ]
}

extension ConformanceSuite {
  private static func isErased(_ content: MessageContent) -> Bool { if case .recalled = content { true } else { false } }
}
