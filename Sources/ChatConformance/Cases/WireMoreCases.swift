import ChatCache
import ChatClient
import ChatCrypto
import ChatJSON
import UnifiedChat

// Odd bytes, odd answers, and what the cache makes of odd rows.
extension ConformanceSuite {
  static let wireMore: [ConformanceCase] = [
    ConformanceCase(
      "RECV-06", "A message type from a newer client is shown as a placeholder and kept byte for byte.", .s1,
      hooks: ["patch"], tags: [.wire]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      // The service holds the text that the push does not show.
      context.exempt("G3")
      let probe = context.probe(bob)
      try await context.makeOdd("unknownType", to: users.b.id, in: channel.id)
      let sent = try await context.say(alice, channel.id, ["to be changed"])[0]
      try await context.eventually("it is told") { probe.received(in: channel.id).contains { $0.id == sent.id } }
      let told = probe.received(in: channel.id).first { $0.id == sent.id }
      guard case .unknown(let kind, let raw)? = told?.content else {
        throw context.failure("an unknown content", "\(told?.content as Any)")
      }
      try context.expect(!kind.isEmpty, "the name of its type")
      // White space and numbers too are as they came.
      try context.expect(raw.text.contains("\"zz\" : [1.0, 1e2, 9007199254740993]"), "the same bytes", observed: raw.text)
      await bob.disconnect()
      let again = try await context.device(users.b)
      try await again.open(for: users.b.id)
      let cached = try await again.history(of: channel.id, .newest(5)).messages.last
      try context.expectEqual(cached?.content, told?.content, "after a restart")
    },
    ConformanceCase(
      "RECV-08", "Numbers above 2^53 are exact.", .s1, hooks: ["patch"], tags: [.wire]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      context.exempt("G3")
      let probe = context.probe(bob, readsCache: false)
      for number in [9_007_199_254_740_993, 4_611_686_018_427_387_905] as [Int64] {
        try await context.changePush(to: users.b.id, in: channel.id, ["time": .int(number)])
        let sent = try await context.say(alice, channel.id, ["at \(number)"])[0]
        let text = sent.content
        try await context.eventually("it is told") { probe.received(in: channel.id).contains { $0.content == text } }
        let told = probe.received(in: channel.id).first { $0.content == text }
        try context.expectEqual(told?.createdAt.milliseconds, number, "the time")
      }
    },
    ConformanceCase("UNICODE-04", "A lone surrogate escape.", .s1, hooks: ["patch"], tags: [.wire]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      context.exempt("G3")
      let probe = context.probe(bob)
      try await context.makeOdd("loneSurrogate", to: users.b.id, in: channel.id)
      let sent = try await context.say(alice, channel.id, ["to be changed"])[0]
      let next = try await context.say(alice, channel.id, ["next"])[0]
      try await context.eventually("both are told") {
        Set([sent.id, next.id]).isSubset(of: Set(probe.received(in: channel.id).map(\.id)))
      }
      let odd = probe.received(in: channel.id).first { $0.id == sent.id }
      // Shown with a replacement character, or kept as it came.
      let shown: String? =
        switch odd?.content {
        case .text(let text)?: text
        case .unknown(_, let raw)?, .custom(let raw)?: raw.text
        default: nil
        }
      try context.expect(
        shown?.contains("\u{FFFD} half") == true || shown?.contains(#"\ud83d half"#) == true, "the half of a pair, kept",
        observed: "\(odd?.content as Any)")
      try context.expectEqual(await bob.state, .connected, "the connection")
    },
    ConformanceCase("UNICODE-09", "Escapes in keys.", .s2, hooks: ["patch"], tags: [.wire]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      context.exempt("G3")
      let probe = context.probe(bob)
      try await context.makeOdd("escapedKeys", to: users.b.id, in: channel.id)
      let sent = try await context.say(alice, channel.id, ["to be changed"])[0]
      try await context.eventually("it is told") { probe.received(in: channel.id).contains { $0.id == sent.id } }
      try context.expectEqual(
        probe.received(in: channel.id).first { $0.id == sent.id }?.content, .text("escaped"), "the text")
    },
    ConformanceCase("UNICODE-06", "Ill-formed UTF-8 in a frame.", .s1, hooks: ["corrupt"], tags: [.wire]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      context.exempt("G3")
      // The last bytes of the header, and several places of the payload.
      for offset in [12, 20, 33, 47] {
        try await context.inject(
          FaultRule("push", user: users.b.id, phase: .beforePush, action: .corrupt(offset: offset)))
        try await context.say(alice, channel.id, ["spoilt at \(offset) 字字字字字字"])
        try await context.stillHears(bob, alice, channel.id)
      }
    },
    ConformanceCase("LIMIT-08", "Deep and wide JSON is bounded.", .s1, hooks: ["raw"], tags: [.wire]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      context.exempt("G3")
      let wide = "{" + (0..<100_000).map { "\"k\($0)\":\($0)" }.joined(separator: ",") + "}"
      let frames = [
        String(repeating: "[", count: 100_000), "{\"a\":" + String(repeating: "{\"a\":", count: 50_000),
        "MESG" + String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000), wide, "MESG" + wide,
        "\"" + String(repeating: "x", count: 2_000_000) + "\"",
      ]
      for frame in frames {
        try await context.inject(FaultRule("push", user: users.b.id, phase: .beforePush, action: .raw(frame)))
        try await context.say(alice, channel.id, ["behind \(frame.utf8.count) bytes"])
        try await context.stillHears(bob, alice, channel.id)
      }
    },
    ConformanceCase("SEC-05", "Compressed bombs are bounded.", .s1, hooks: ["raw", "http"], tags: [.wire]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      context.exempt("G3")
      let bomb = try Gzip.compress([UInt8](repeating: 0x20, count: 128 << 20), level: 9)
      try await context.inject(FaultRule("push", user: users.b.id, phase: .beforePush, action: .rawBytes(bomb)))
      try await context.say(alice, channel.id, ["behind the bomb"])
      try await context.stillHears(bob, alice, channel.id)
      for operation in ["history", "channelQuery", "member"] {
        try await context.inject(
          FaultRule(
            operation, user: users.b.id, action: .http(status: 200, headers: ["Content-Encoding": "gzip"], body: bomb),
            mustFire: false))
      }
      // Whatever is asked ends, one way or the other.
      do {
        _ = try await context.whileTimePasses(within: .seconds(300), step: .seconds(2)) {
          try await bob.history(of: channel.id, HistoryQuery(anchor: .oldest, direction: .newer, limit: 3))
        }
      } catch is ChatError {}
      do {
        _ = try await context.whileTimePasses(within: .seconds(300), step: .seconds(2)) { try await bob.channel(channel.id) }
      } catch is ChatError {}
      _ = await context.harness.faults?.removeRules()
      try await context.stillHears(bob, alice, channel.id)
    },
    ConformanceCase("ERR-04", "A truncated body is a network error.", .s2, hooks: ["truncateBody"], tags: [.wire]) { context in
      let (alice, _, channel, users) = try await context.pair()
      let sent = try await context.say(alice, channel.id, 6)
      for size in [0, 1, 25] {
        let reader = try await context.online(users.b, "reader\(size)")
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
        try await context.eventually("connected", within: .seconds(300), step: .seconds(1)) {
          await reader.state == .connected
        }
        try await context.shows(reader, channel.id, sent.map(\.content), "reader, cut at \(size)")
      }
      guard context.has(.messageIdempotentSend) else { return }
      try await context.inject(
        FaultRule("send", user: users.a.id, phase: .beforeReply, action: .truncateBody(9), mustFire: false))
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
          FaultRule("send", user: users.a.id, times: 2, phase: .beforeReply, action: action, mustFire: false))
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
        _ = await context.harness.faults?.removeRules()
      }
    },
    ConformanceCase("DEDUP-03", "Two stored copies of one client id show as one.", .s1, tags: [.wire]) { context in
      let (alice, _, channel, users) = try await context.pair()
      await alice.disconnect()
      let adapter = try await context.harness.makeAdapter(
        TestDevice(name: "dedup-03-bare", clock: context.harness.clock))
      _ = try await adapter.connect(as: users.a.id, credential: users.a.credential)
      // A blind resend, as a client does that does not look first.
      let copy = OutgoingMessage(
        channel: channel.id, localID: "dedup-03", clientMessageID: "dedup-03-same", draft: .text("twice"))
      let ids = try await [
        context.whileTimePasses { try await adapter.send(copy).id }, context.whileTimePasses { try await adapter.send(copy).id },
      ]
      await adapter.disconnect()
      guard ids[0] != ids[1], try await context.serverMessages(channel.id).count == 2 else {
        throw CaseSkip(reason: .rule("the service stores a client id once"))
      }
      let stored = try await context.serverMessages(channel.id)
      guard stored[0].clientMessageID != nil, stored[0].clientMessageID == stored[1].clientMessageID else {
        throw CaseSkip(reason: .rule("the service tells no client id"))
      }
      // The lower one is shown; the service itself holds both.
      context.exempt("G3")
      let fresh = try await context.online(users.b, "fresh")
      // Who heard both pushes may have been told no client id; who reads anew is.
      try await context.shows(fresh, channel.id, [.text("twice")], "a fresh device")
      try context.expectEqual(
        try await context.newest(5, of: channel.id, by: fresh).map(\.id), [ids[0]], "the one that is shown")
    },
    ConformanceCase("DEDUP-04", "The same client id from two senders is two messages.", .s1, tags: [.wire]) { context in
      let (alice, bob, first, users) = try await context.pair()
      let second = try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: "second"))
      try await context.sees(bob, second.id)
      func outgoing(_ channel: ChannelID, _ text: String) -> OutgoingMessage {
        OutgoingMessage(channel: channel, localID: "dedup-04", clientMessageID: "dedup-04-same", draft: .text(text))
      }
      let bare = try await context.harness.makeAdapter(TestDevice(name: "dedup-04-bare", clock: context.harness.clock))
      _ = try await bare.connect(as: users.a.id, credential: users.a.credential)
      let (one, two) = (outgoing(first.id, "from alice"), outgoing(second.id, "elsewhere"))
      let other = outgoing(first.id, "from bob")
      _ = try await context.whileTimePasses { try await bare.send(one) }
      _ = try await context.whileTimePasses { try await bob.send(other) }
      do { _ = try await context.whileTimePasses { try await bare.send(two) } } catch let error as ChatError {
        // A vendor may hold one id for one message of all channels; it then says so.
        guard error.kind == .conflict else { throw error }
      }
      await bare.disconnect()
      let fresh = try await context.online(users.b, "fresh")
      for reader in [bob, fresh] {
        try await context.shows(reader, first.id, [.text("from alice"), .text("from bob")], "a reader")
      }
      let elsewhere = try await context.serverMessages(second.id).map(\.content)
      if !elsewhere.isEmpty { try await context.shows(fresh, second.id, [.text("elsewhere")], "the other channel") }
    },
    ConformanceCase(
      "DEDUP-05", "The same vendor id with other content is an update only if newer.", .s1
    ) { context in
      let cache = try LocalCache(CacheIdentity(vendor: "ideal", app: "", user: "dedup-05"), at: .memory)
      func row(_ text: String, editedAt: Int64?) -> Message {
        Message(
          channel: "c", id: "m", sender: "somebody", position: MessagePosition(sequence: 1),
          createdAt: Timestamp(milliseconds: 1000), content: .text(text),
          editedAt: editedAt.map { Timestamp(milliseconds: $0) })
      }
      let steps: [(row: Message, shown: String)] = [
        (row("first", editedAt: nil), "first"), (row("edited", editedAt: 2000), "edited"),
        (row("older edit", editedAt: 1500), "edited"), (row("same time", editedAt: 2000), "edited"),
        (row("as it was", editedAt: nil), "edited"), (row("newest", editedAt: 3000), "newest"),
      ]
      for (row, shown) in steps {
        let found = try cache.write { session throws(ChatError) in
          _ = try session.merge(row)
          return try session.message("m", in: "c")
        }
        try context.expectEqual(found?.content, .text(shown), "what is shown after \(row.content)")
      }
      cache.close()
    },
    ConformanceCase("CACHE-09", "Eviction takes the old and read, never the unsent.", .s2) { context in
      let (alice, _, channel, users) = try await context.pair()
      let texts = (0..<30).map { "\($0) " + String(repeating: "很长的内容", count: 60) }
      try await context.say(alice, channel.id, texts)
      await alice.suspend()
      for number in 0..<5 { _ = try await alice.enqueue(.text("pending \(number)"), to: channel.id) }
      let device = try context.details(of: alice)
      await alice.disconnect()
      let cache = try LocalCache(device.identity, at: .directory(device.folder))
      let limit = cache.size / 2
      try cache.trim(to: limit)
      let (kept, waiting, ranges) = try cache.read { session throws(ChatError) in
        (
          try session.messages(
            in: channel.id, .newer, of: .lowest, inclusive: true, within: CachedRange(low: .lowest, high: .highest),
            limit: .max
          ), try session.waitingMessages(in: channel.id), try session.ranges(of: channel.id)
        )
      }
      cache.close()
      try context.expectEqual(waiting.count, 5, "what is not sent")
      try context.expect(kept.count < 30, "something was evicted", observed: "\(kept.count) of 30 kept")
      // What went is a gap: no range claims it.
      let positions = kept.compactMap(\.position)
      if let lowest = positions.min() {
        try context.expect(ranges.allSatisfy { $0.low > .lowest || positions.isEmpty }, "no claim on what went", observed: "\(ranges)")
        try context.expect(
          ranges.allSatisfy { $0.low >= lowest }, "claims that begin with what is left", observed: "\(ranges), \(lowest)")
      }
      let again = try await context.online(users.a)
      try await context.eventually("the unsent ones go out", within: .seconds(120), step: .seconds(1)) {
        try await again.waitingMessages(in: channel.id).isEmpty
      }
      let read = try await context.wholeHistory(of: channel.id, by: again, page: 10).map(\.content)
      try context.expectEqual(
        read, texts.map { .text($0) } + (0..<5).map { .text("pending \($0)") }, "everything, read again")
    },
    ConformanceCase("CACHE-13", "Rows with missing optional fields are read as missing.", .s2) { context in
      let place = context.file("sparse")
      let identity = CacheIdentity(vendor: "ideal", app: "", user: "cache-13")
      let rows = [
        Message(
          channel: "c", id: "no-sender", sender: nil, position: MessagePosition(sequence: 1),
          createdAt: Timestamp(milliseconds: 0), content: .text("")),
        Message(
          channel: "c", id: "unknown", sender: "x", position: MessagePosition(sequence: 2),
          createdAt: Timestamp(milliseconds: -1), content: .unknown(kind: "12345", raw: JSONText(unchecked: "null"))),
        Message(
          channel: "c", id: "plain", sender: "x", position: MessagePosition(sequence: 3),
          createdAt: Timestamp(milliseconds: .max), content: .custom(JSONText(unchecked: ""))),
      ]
      for round in 0..<2 {
        let cache = try LocalCache(identity, at: .directory(place))
        if round == 0 {
          try cache.write { session throws(ChatError) in for row in rows { _ = try session.merge(row) } }
        }
        let read = try cache.read { session throws(ChatError) in
          try session.messages(
            in: "c", .newer, of: .lowest, inclusive: true, within: CachedRange(low: .lowest, high: .highest), limit: .max)
        }
        cache.close()
        try context.expectEqual(read.map(\.id), rows.map(\.id), "rows, opened \(round + 1) times")
        try context.expectEqual(read.map(\.content), rows.map(\.content), "their contents")
        try context.expect(read[0].sender == nil && read.allSatisfy { $0.senderName == nil }, "what is missing stays missing")
      }
    },
    ConformanceCase(
      "CACHE-14", "Holes can be found and mended by command.", .s3, needs: [.historyBackward]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let sent = try await context.say(alice, channel.id, 20)
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      let device = try context.details(of: bob)
      let other = try LocalCache(device.identity, at: .directory(device.folder))
      try other.write { session throws(ChatError) in
        for message in sent[5..<12] { if let id = message.id { try session.remove(id, in: channel.id) } }
      }
      other.close()
      let found = try await context.whileTimePasses { try await bob.compareWithServer(channel.id) }
      try context.expectEqual(Set(found.missing), Set(sent[5..<12].compactMap(\.id)), "the holes")
      try context.expect(!found.isEqual, "a difference")
      let mended = try await context.whileTimePasses { try await bob.repair(channel.id) }
      try context.expect(mended >= 7, "rows mended", observed: "\(mended)")
      let after = try await context.whileTimePasses { try await bob.compareWithServer(channel.id) }
      try context.expect(after.isEqual, "no difference any more", observed: "\(after)")
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      try context.expectEqual(users.b.id, device.user.id, "bob")
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
    ConformanceCase("DEL-10", "A recalled quoted message leaves its reply.", .s2, needs: [.messageQuote, .messageRecall]) {
      context in
      let (alice, bob, channel, users) = try await context.pair()
      let quoted = try await context.say(alice, channel.id, ["regretted words"])[0]
      var draft = MessageDraft(.text("about that"))
      draft.replyTo = Reply(
        id: try context.need(quoted.id, "an id"),
        quoted: QuotedMessage(
          id: quoted.id, sender: quoted.sender, senderName: quoted.senderName, createdAt: quoted.createdAt,
          content: quoted.content))
      let ready = draft
      let reply = try await context.whileTimePasses { try await bob.send(ready, to: channel.id) }
      _ = try await context.whileTimePasses { try await alice.recall(quoted) }
      let fresh = try await context.online(users.b, "fresh")
      for reader in [alice, bob, fresh] {
        try await context.eventually("the reply stays, the quoted one is gone") {
          let read = try await reader.history(of: channel.id, .newest(5)).messages
          return read.contains { $0.id == reply.id && $0.content == .text("about that") }
            && !read.contains { $0.id == quoted.id && !$0.isRecalled }
        }
      }
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
      await bob.suspend()
      let places = try changes.mapValues { Optional(try JSONValue(parsing: $0)) }
      try await context.inject(
        FaultRule(
          "changelog", user: users.b.id, times: nil, phase: .beforeReply, action: .patch(places), mustFire: false))
      let mark = await context.mark()
      await bob.resume()
      try await context.eventually("connected") { await bob.state == .connected }
      try await context.pass(.seconds(60))
      let asked = try await context.requests("changelog", since: mark).count
      try context.expect(asked <= 12, "an end to the asking", observed: "\(asked) requests")
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

extension CaseContext {
  /// The next push of `channel` to a user is the odd one of this name; skips the case where the vendor has none.
  func makeOdd(_ name: String, to user: UserID, in channel: ChannelID) async throws {
    guard let changes = harness.odd[name] else { throw CaseSkip(reason: .rule("the vendor has no such frame")) }
    let escaped = channel.rawValue.replacing("~", with: "~0").replacing("/", with: "~1")
    var places: [String: JSONValue?] = [:]
    for (path, text) in changes {
      places.updateValue(try JSONValue(parsing: text), forKey: path.replacing("{channel}", with: escaped))
    }
    try await inject(FaultRule("push", user: user, phase: .beforePush, action: .patch(places)))
  }

  /// A device gets the next message, over the same link or a new one.
  func stillHears(_ chat: Chat, _ writer: Chat, _ channel: ChannelID) async throws {
    try await quiet(6)
    let probe = probe(chat, readsCache: false)
    try await eventually("the link stands", within: .seconds(120), step: .seconds(1)) { await chat.state == .connected }
    let next = try await say(writer, channel, ["whole"])[0].id
    try await eventually("the next message is told") {
      probe.received(in: channel).contains { $0.id == next } || probe.backfilled(in: channel) > 0
    }
  }
}
