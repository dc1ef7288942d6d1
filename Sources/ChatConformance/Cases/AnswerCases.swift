import ChatCache
import ChatClient
import ChatJSON
import UnifiedChat

// What a service answers: in which order, how late, how large, and with which refusal.
extension ConformanceSuite {
  static let answer: [ConformanceCase] = [
    ConformanceCase(
      "HIST-15", "Vendor page order is hidden.", .s2, needs: [.historyBackward], hooks: ["patch", "journal"], tags: [.wire]
    ) { context in
      guard let place = context.harness.paths["history.list"] else { throw CaseSkip(reason: .rule("pages stand elsewhere")) }
      let (alice, _, channel, users) = try await context.pair()
      let sent = try await context.say(alice, channel.id, 8)
      let first = try await context.online(users.b, "first")
      try await context.quiet()
      let mark = await context.mark()
      let read = try await context.newest(6, of: channel.id, by: first)
      try context.expectEqual(read.map(\.id), sent.suffix(6).map(\.id), "the page")
      let answers = (await context.harness.faults?.wire(since: mark) ?? []).filter {
        !$0.isFromClient && $0.operation == "history"
      }
      let page = try context.need(
        answers.compactMap { try? JSONValue(parsing: $0.bytes)[pointer: place]?.array }.first { $0.count > 2 },
        "a page on the wire")
      let odd = [page.reversed(), Array(page.dropFirst(2) + page.prefix(2)), page.sorted { $0.text() > $1.text() }]
      for (number, items) in odd.enumerated() {
        let reader = try await context.online(users.b, "reader\(number)")
        try await context.quiet()
        try await context.inject(
          FaultRule("history", user: users.b.id, phase: .beforeReply, action: .patch([place: .array(Array(items))])))
        let read = try await context.newest(6, of: channel.id, by: reader)
        try context.expectEqual(read.map(\.id), sent.suffix(6).map(\.id), "the page in order \(number)")
        try await context.removeRules()
      }
    },
    ConformanceCase(
      "HIST-13", "Retention is an end, not a gap.", .s2, needs: [.historyBackward],
      hooks: ["setting.retention", "virtualTime", "journal"]
    ) { context in
      try await context.perform(.setting("retention"))
      let (alice, bob, channel, users) = try await context.pair()
      let old = try await context.say(alice, channel.id, ["old 1", "old 2", "old 3"])
      try await context.shows(bob, channel.id, old.map(\.content), "bob")
      await alice.suspend()
      await bob.suspend()
      try await context.pass(.seconds(40 * 86_400), step: .seconds(86_400))
      await alice.resume()
      await bob.resume()
      for chat in [alice, bob] { try await context.eventually("connected") { await chat.state == .connected } }
      let new = try await context.say(alice, channel.id, ["new 1", "new 2"])
      let fresh = try await context.online(users.b, "fresh")
      let read = try await context.wholeHistory(of: channel.id, by: fresh, page: 2)
      try context.expectEqual(read.map(\.id), new.map(\.id), "what a fresh device reads, to its end")
      // Who has seen them keeps them.
      let kept = try await context.wholeHistory(of: channel.id, by: bob, page: 2)
      try context.expectEqual(kept.map(\.id), (old + new).map(\.id), "what a device keeps")
      // The end is known: neither of them asks again for what is not there.
      try await context.quiet()
      let mark = await context.mark()
      for chat in [fresh, bob] { _ = try await context.wholeHistory(of: channel.id, by: chat, page: 2) }
      try context.expectEqual(try await context.requests("history", since: mark).count, 0, "requests behind the end")
      context.exempt("G3")
    },
    ConformanceCase(
      "RECON-04", "A sequence hole of the server is asked once.", .s2, needs: [.historySequence],
      hooks: ["patch", "journal"], tags: [.wire]
    ) { context in
      guard let list = context.harness.paths["pull.list"] else { throw CaseSkip(reason: .rule("pages stand elsewhere")) }
      let (alice, bob, channel, users) = try await context.pair()
      try await context.say(alice, channel.id, ["known"])
      try await context.shows(bob, channel.id, [.text("known")], "bob")
      await bob.suspend()
      let sent = try await context.say(alice, channel.id, 12)
      // Three in the middle are never answered: each removal moves what is behind it, so that every second one goes.
      // Answers that are shorter stay as they are.
      let place = context.place(list, in: channel.id)
      let changes = Dictionary(uniqueKeysWithValues: (4...6).map { ("\(place)/\($0)", JSONValue?.none) })
      try await context.inject(
        FaultRule("history", user: users.b.id, times: nil, phase: .beforeReply, action: .patch(changes), mustFire: false))
      await bob.resume()
      try await context.eventually("the newest message is known") {
        try await bob.history(of: channel.id, .newest(1)).messages.last?.id == sent.last?.id
      }
      try await context.idle()
      let before = await context.mark()
      let read = try await context.wholeHistory(of: channel.id, by: bob, page: 5)
      let expected = ["known"] + (0..<12).filter { ![4, 6, 8].contains($0) }.map(String.init)
      try context.expectEqual(read.map(\.content), expected.map { .text($0) }, "both sides of the hole")
      let asked = try await context.requests("history", by: users.b.id, since: before).count
      try context.expect(asked <= 4, "the hole is asked for once at the most", observed: "\(asked) requests")
      try await context.quiet()
      let mark = await context.mark()
      let again = try await context.wholeHistory(of: channel.id, by: bob, page: 5)
      try context.expectEqual(again.map(\.id), read.map(\.id), "the same again")
      try context.expectEqual(try await context.requests("history", since: mark).count, 0, "requests when it opens again")
      context.exempt("G3")
    },
    ConformanceCase(
      "RECON-05", "A page of only my own messages proves nothing.", .s1, needs: [.messageIdempotentSend], hooks: ["delay"]
    ) { context in
      let a = try await context.user("alice")
      let b = try await context.user("bob")
      let alice = try await context.online(a)
      let bob = try await context.online(b) { $0.catchUpPage = 5 }
      let channel = try await alice.createChannel(ChannelDraft(kind: .group, members: [b.id], name: "own"))
      try await context.sees(bob, channel.id)
      try await context.say(alice, channel.id, ["known"])
      try await context.shows(bob, channel.id, [.text("known")], "bob")
      await bob.suspend()
      let his = try await context.say(alice, channel.id, (0..<15).map { "his \($0)" })
      for number in 0..<6 { _ = try await bob.enqueue(.text("mine \(number)"), to: channel.id) }
      // What was missed is asked for after the own messages have gone out.
      try await context.inject(FaultRule("history", action: .delay(.seconds(3)), mustFire: false))
      await bob.resume()
      try await context.eventually("the own ones are sent", within: .seconds(120)) {
        try await bob.waitingMessages(in: channel.id).isEmpty
      }
      let expected = [.text("known")] + his.map(\.content) + (0..<6).map { MessageContent.text("mine \($0)") }
      try context.expectEqual(try await context.serverMessages(channel.id).map(\.content), expected, "at the service")
      try await context.shows(bob, channel.id, expected, "bob")
      let read = try await context.wholeHistory(of: channel.id, by: bob, page: 4)
      try context.expectEqual(read.map(\.content), expected, "everything without a hole")
    },
    ConformanceCase("ERR-06", "All vendor error shapes are understood.", .s2, hooks: ["fail", "journal"], tags: [.wire]) {
      context in
      guard let code = context.harness.codes.keys.sorted().first else { throw CaseSkip(reason: .rule("no codes are known")) }
      let (alice, _, channel, users) = try await context.pair()
      func isKept(_ error: ChatError, _ what: String) throws {
        try context.expectEqual(error.vendor?.code, "\(code)", "the code in \(what)")
        try context.expect(!error.isRetryable, "final in \(what)", observed: "\(error.retry)")
      }
      try await context.inject(FaultRule("send", user: users.a.id, action: .refuse(code: code)))
      try isKept(
        try await context.expectErrorInTime("the refusal of a send") {
          _ = try await alice.send(.text("refused"), to: channel.id)
        } where: { _ in true }, "the answer to a send")
      try await context.removeRules()
      // Whatever goes by a request here, with the meaning that the service gives it.
      let calls: [(String, @Sendable () async throws -> Void)] = [
        ("users", { _ = try await alice.users([users.b.id, "err-06-other"]) }),
        ("the channel", { _ = try await alice.channel(channel.id) }),
        ("members", { _ = try await alice.members(of: channel.id, limit: 5, page: nil) }),
      ]
      var refused = 0
      for (what, call) in calls {
        try await context.quiet()
        let mark = await context.mark()
        do { try await context.whileTimePasses { try await call() } } catch let error as ChatError {
          // Not every model has every call.
          guard case .unsupported = error.kind else { throw error }
          continue
        }
        guard let asked = try await context.requests(since: mark).first(where: { $0.operation != "ping" }) else { continue }
        try await context.inject(FaultRule(asked.operation, action: .refuse(code: code)))
        try isKept(
          try await context.expectErrorInTime("the refusal of \(what)") { try await call() } where: { _ in true },
          "the answer to \(what)")
        refused += 1
        try await context.removeRules()
        try context.expectEqual(await alice.state, .connected, "the state after \(what)")
      }
      try context.expect(refused > 0, "a request that can be refused")
    },
    ConformanceCase(
      "SEC-04", "A redirect to another host is not followed with a credential.", .s1, hooks: ["http", "journal"], tags: [.wire]
    ) { context in
      let user = try await context.user("alice")
      let chat = try await context.online(user)
      try await context.quiet()
      for operation in ["other", "channelQuery", "member"] {
        try await context.inject(
          FaultRule(
            operation, times: nil, action: .http(status: 302, headers: ["Location": "http://elsewhere.test/steal"]),
            mustFire: false))
      }
      let mark = await context.mark()
      do {
        _ = try await context.whileTimePasses(within: .seconds(300), step: .seconds(2)) {
          try await chat.users([user.id, "sec-04-other"])
        }
        let frames = await context.harness.faults?.wire(since: mark) ?? []
        guard !frames.contains(where: { $0.kind == "http" }) else { throw context.failure("an error", "none") }
        throw CaseSkip(reason: .rule("requests go by frames"))
      } catch is ChatError {
        // In process every host leads to the emulator: whoever followed would have asked it again.
        let asked = try await context.requests(since: mark).filter { $0.kind == "http" }
        try context.expectEqual(asked.count, 1, "requests")
      }
      try await context.removeRules()
      try context.expectEqual(await chat.state, .connected, "the state")
    },
    ConformanceCase("FILE-08", "A link that is refused is a typed error, and works again later.", .s2, needs: [.fileUpload],
      hooks: ["http", "journal"]
    ) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let bytes = [UInt8](repeating: 5, count: 3000)
      let content = MessageContent.file(
        Attachment(name: "link.bin", mimeType: "application/octet-stream", source: .bytes(bytes)))
      _ = try await context.whileTimePasses { try await alice.send(MessageDraft(content), to: channel.id) }
      try await context.eventually("bob has it") {
        try await bob.history(of: channel.id, .newest(1)).messages.last?.content.attachment?.url != nil
      }
      let attachment = try context.need(
        try await context.newest(1, of: channel.id, by: bob).last?.content.attachment, "an attachment")
      try await context.inject(FaultRule("file", action: .http(status: 403)))
      let mark = await context.mark()
      do {
        let read = try await context.whileTimePasses { try await bob.download(attachment, limit: 10_000) }
        try context.expect(read == bytes, "the same bytes by a new link", observed: "\(read.count) bytes")
      } catch let error as ChatError {
        let isTyped = if case .permission = error.kind { true } else { error.kind == .notFound || error.kind == .authentication }
        try context.expect(isTyped, "permission, notFound or authentication", observed: "\(error)")
      }
      try context.expect(try await context.requests("file", since: mark).count <= 3, "renewed once at most")
      try await context.removeRules()
      let again = try await context.whileTimePasses { try await bob.download(attachment, limit: 10_000) }
      try context.expect(again == bytes, "the same bytes later", observed: "\(again.count) bytes")
    },
    ConformanceCase("FILE-05", "At the size limit, and one above.", .s2, needs: [.fileUpload], hooks: ["journal"]) { context in
      guard let limit = context.harness.limits["file.bytes"] else { throw CaseSkip(reason: .rule("no limit of files is known")) }
      let (alice, _, channel, _) = try await context.pair()
      func content(_ size: Int64) -> MessageContent {
        .file(
          Attachment(
            name: "large.bin", mimeType: "application/octet-stream", source: .bytes([UInt8](repeating: 1, count: Int(size)))))
      }
      let mark = await context.mark()
      let above = content(limit + 1)
      let error = try await context.expectErrorInTime("tooLarge") {
        _ = try await alice.send(MessageDraft(above), to: channel.id)
      } where: {
        $0 == .tooLarge(limit: limit, unit: .bytes)
      }
      try context.expect(!error.isRetryable, "a final refusal", observed: "\(error.retry)")
      try context.expectEqual(try await context.requests("file", since: mark).count, 0, "uploads of what is too large")
      let full = content(limit)
      let sent = try await context.whileTimePasses { try await alice.send(MessageDraft(full), to: channel.id) }
      try context.expectEqual(sent.content.attachment?.size, limit, "the size")
    },
    ConformanceCase("DEL-11", "A recall leaves no copy of the file.", .s2, needs: [.fileUpload, .messageRecall]) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let words = "bytes-of-a-file-that-was-recalled"
      let content = MessageContent.file(
        Attachment(name: "unsaid-name.txt", mimeType: "text/plain", source: .bytes(Array(words.utf8))))
      let sent = try await context.whileTimePasses { try await alice.send(MessageDraft(content), to: channel.id) }
      try await context.eventually("bob has it") {
        try await bob.history(of: channel.id, .newest(1)).messages.last?.content.attachment?.url != nil
      }
      let attachment = try context.need(
        try await context.newest(1, of: channel.id, by: bob).last?.content.attachment, "an attachment")
      let read = try await context.whileTimePasses { try await bob.download(attachment, limit: 10_000) }
      try context.expectEqual(String(decoding: read, as: UTF8.self), words, "the file")
      // Nobody else may hold the file open whose bytes are read.
      _ = try await context.whileTimePasses { try await alice.recall(sent) }
      try await context.eventually("the recall is learnt") {
        try await bob.history(of: channel.id, .newest(1)).messages.allSatisfy(\.isRecalled)
      }
      for chat in [alice, bob] {
        let folder = try context.details(of: chat).folder
        await chat.disconnect()
        try context.expect(!(try contains(folder, words)), "no bytes of it in any file")
        try context.expect(!(try contains(folder, "unsaid-name")), "nor its name")
      }
    },
    ConformanceCase("META-05", "A vendor text field that is not JSON is kept as text.", .s2, hooks: ["patch"], tags: [.wire]) {
      context in
      guard let place = context.harness.paths["channel.data"] else {
        throw CaseSkip(reason: .rule("the vendor has no such place"))
      }
      let (alice, _, channel, users) = try await context.pair()
      for text in ["hello", "[1", "{\"a\":", "\u{1}\u{2} 4 KB " + String(repeating: "~", count: 4000)] {
        try await context.quiet()
        try await context.inject(
          FaultRule("channelQuery", user: users.a.id, phase: .beforeReply, action: .patch([place: .string(text)])))
        let read = try await context.channel(channel.id, by: alice)
        try context.expectBytes(read.customData?.text, text, "the text of \(text.utf8.count) bytes")
        try await context.removeRules()
      }
      try context.expectEqual(await alice.state, .connected, "the state")
    },
    ConformanceCase("LIMIT-03", "The member limit is told.", .s2) { context in
      guard let limit = context.harness.limits["group.members"] else {
        throw CaseSkip(reason: .rule("no limit of members is known"))
      }
      let a = try await context.user("alice")
      let alice = try await context.online(a)
      let others = (1..<Int(limit)).map { UserID("m\($0)") }
      let full = try await context.whileTimePasses {
        try await alice.createChannel(ChannelDraft(kind: .group, members: Array(others.prefix(50)), name: "full"))
      }
      for start in stride(from: 50, to: others.count, by: 50) {
        let some = Array(others[start..<min(others.count, start + 50)])
        try await context.whileTimePasses { try await alice.invite(some, to: full.id) }
      }
      try await context.expectErrorInTime("tooLarge or a refusal above the limit") {
        try await alice.invite(["one-too-many"], to: full.id)
      } where: {
        switch $0 {
        case .tooLarge, .permission: true
        default: $0 == .invalidArgument(field: "members") || $0 == .conflict
        }
      }
      try context.expectEqual(try await context.serverMembers(full.id).count, Int(limit), "members at the limit")
      try context.expectEqual(await alice.state, .connected, "the state")
    },
    ConformanceCase("LIMIT-09", "A large honest answer is read.", .s2, tags: [.wire]) { context in
      let (alice, _, channel, users) = try await context.pair()
      let size = Int(min(context.harness.limits["text.characters"] ?? context.harness.limits["frame.bytes"] ?? 3000, 3000))
      let texts = (0..<60).map { "\($0) " + String(repeating: "x", count: size - 8) }
      try await context.say(alice, channel.id, texts)
      let fresh = try await context.online(users.b, "fresh")
      let read = try await context.newest(60, of: channel.id, by: fresh)
      try context.expect(read.map(\.content) == texts.map { .text($0) }, "all of it", observed: "\(read.count) messages")
    },
    ConformanceCase("TIME-04", "All time forms of a vendor are the same instant to the millisecond.", .s1, tags: [.wire]) {
      context in
      // A time that shows what is cut off.
      await context.harness.pass(.milliseconds(1787))
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(bob)
      let sent = try await context.say(alice, channel.id, ["when"])[0]
      try await context.eventually("bob is told") { probe.received(in: channel.id).count == 1 }
      let fresh = try await context.online(users.b, "fresh")
      var times: [(String, Timestamp?)] = [
        ("the push", probe.received(in: channel.id).first?.createdAt),
        ("history", try await context.newest(1, of: channel.id, by: fresh).last?.createdAt),
        ("the service", try await context.serverMessages(channel.id).last?.createdAt),
      ]
      if context.has(.channelQuery) {
        times.append(
          ("the list", try await context.wholeList(of: fresh, page: 10).first { $0.id == channel.id }?.lastMessage?.createdAt))
      }
      for (who, time) in times { try context.expectEqual(time, sent.createdAt, "the time in \(who)") }
      let away = (context.harness.clock.now - sent.createdAt).wholeMilliseconds
      try context.expect((0..<10_000).contains(away), "milliseconds since 1970", observed: "\(sent.createdAt)")
      try context.expectEqual(probe.received(in: channel.id).first?.editedAt, nil, "never edited")
      // A channel's time may come in seconds, but from everywhere as the same.
      let made = try await context.channel(channel.id, by: alice).createdAt
      if let made {
        try context.expect(
          abs((sent.createdAt - made).wholeMilliseconds) < 10_000, "the channel's time is one of now", observed: "\(made)")
        try context.expectEqual(try await context.channel(channel.id, by: fresh).createdAt, made, "for another device")
      }
    },
    ConformanceCase(
      "UNRD-07", "An inconsistent server pair gives zero.", .s2, needs: [.unreadChannel], hooks: ["patch", "virtualTime"],
      tags: [.wire]
    ) { context in
      // In process: over sockets the body is compressed, and cannot be changed on its way.
      guard let change = context.harness.odd["readAboveMax"] else {
        throw CaseSkip(reason: .rule("the service sends no pair"))
      }
      let (alice, _, channel, users) = try await context.pair()
      try await context.say(alice, channel.id, 3)
      let places = try context.places(change, in: channel.id)
      let fresh = try await context.device(users.b, "fresh")
      let probe = context.probe(fresh)
      try await context.inject(
        FaultRule("channelQuery", user: users.b.id, times: nil, phase: .beforeReply, action: .patch(places), mustFire: false))
      _ = try await context.whileTimePasses { try await fresh.connect(as: users.b.id, credential: users.b.credential) }
      try await context.sees(fresh, channel.id)
      try await context.unreadBecomes(0, of: channel.id, on: fresh)
      try context.expect(probe.unread(in: channel.id).allSatisfy { ($0.number ?? 0) >= 0 }, "never below zero")
      try context.expectEqual(await fresh.state, .connected, "the state")
    },
    ConformanceCase("CHAN-10", "Very many channels are workable.", .s2, tags: [.stress]) { context in
      let cache = try LocalCache(
        CacheIdentity(vendor: "ideal", app: "", user: "chan-10"), at: .directory(context.file("channels")))
      let total = 20_000
      for start in stride(from: 0, to: total, by: 2000) {
        try cache.write { session throws(ChatError) in
          for number in start..<start + 2000 {
            _ = try session.merge(
              Channel(
                id: ChannelID("c\(number)"), kind: .group, name: "channel \(number)",
                createdAt: Timestamp(milliseconds: Int64(number))))
          }
        }
      }
      let all = try cache.read { session throws(ChatError) in try session.channels() }
      try context.expectEqual(all.count, total, "channels")
      for _ in 0..<3 {
        try cache.write { session throws(ChatError) in _ = try session.setUnread(.exact(7), of: "c10000") }
        let one = try cache.read { session throws(ChatError) in try session.channel("c10000") }
        try context.expectEqual(one?.unread, .exact(7), "one among many")
      }
      cache.close()
    },
  ]
}
