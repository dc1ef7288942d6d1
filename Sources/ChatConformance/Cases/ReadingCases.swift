import ChatClient
import UnifiedChat

// Receipts, unread numbers and typing.
extension ConformanceSuite {
  static let receipt: [ConformanceCase] = [
    ConformanceCase("RCPT-01", "Reading moves my messages to read.", .s1, needs: [.receiptRead]) { context in
      let (alice, bob, channel, users) = try await context.direct()
      let probe = context.probe(alice)
      let sent = try await context.say(alice, channel.id, 5)
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      let reachesMiddle = context.capabilities[.unreadMarkAt] == .native
      let mark = try context.need(sent[reachesMiddle ? 2 : 4].position, "a position")
      try await bob.markRead(channel.id, upTo: mark)
      try await context.eventually("alice is told") { !probe.reads(by: users.b.id, in: channel.id).isEmpty }
      try await context.quiet()
      let told = probe.reads(by: users.b.id, in: channel.id)
      try context.expectEqual(told.count, 1, "times that it was told")
      let read = sent.filter { ($0.position ?? .init(sequence: .max)) <= told[0] }
      try context.expectEqual(read.count, reachesMiddle ? 3 : 5, "messages read")
    },
    ConformanceCase("RCPT-02", "A watermark never goes back.", .s1, needs: [.receiptRead]) { context in
      let (alice, bob, channel, users) = try await context.direct()
      let probe = context.probe(alice)
      let sent = try await context.say(alice, channel.id, 3)
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      try await bob.markRead(channel.id, upTo: try context.need(sent[2].position, "a position"))
      try await context.eventually("alice is told") { !probe.reads(by: users.b.id, in: channel.id).isEmpty }
      try await bob.markRead(channel.id, upTo: try context.need(sent[0].position, "a position"))
      try await context.quiet()
      try context.expectEqual(probe.reads(by: users.b.id, in: channel.id).count, 1, "changes told")
      try await context.unreadBecomes(0, of: channel.id, on: bob)
      guard context.offers("reorder"), context.capabilities[.unreadMarkAt] == .native else { return }
      // Two marks that change places on their way: the lower one comes last.
      let more = try await context.say(alice, channel.id, 4)
      try await context.shows(bob, channel.id, (sent + more).map(\.content), "bob")
      try await context.quiet()
      let told = probe.reads(by: users.b.id, in: channel.id).count
      try await context.inject(
        FaultRule("any", user: users.a.id, times: 2, phase: .beforePush, action: .reorder(2)))
      for place in [1, 3] {
        try await bob.markRead(channel.id, upTo: try context.need(more[place].position, "a position"))
        try await context.quiet()
      }
      let highest = try context.need(more[3].position, "a position")
      try await context.eventually("the higher one is told") {
        probe.reads(by: users.b.id, in: channel.id).dropFirst(told).contains { $0 >= highest }
      }
      try await context.removeRules()
      try await context.quiet()
      try context.expectEqual(probe.reads(by: users.b.id, in: channel.id).count, told + 1, "changes told in all")
    },
    ConformanceCase("RCPT-03", "Delivered is not read.", .s2, needs: [.receiptDelivered]) { context in
      let (alice, bob, channel, users) = try await context.direct()
      let probe = context.probe(alice)
      let sent = try await context.say(alice, channel.id, ["arrived"])[0]
      let position = try context.need(sent.position, "a position")
      try await context.eventually("it is delivered") {
        probe.deliveries(to: users.b.id, in: channel.id).contains { $0 >= position }
      }
      try await context.quiet()
      try context.expectEqual(probe.reads(by: users.b.id, in: channel.id).count, 0, "reads told")
      try context.expectEqual(probe.deliveries(to: users.a.id, in: channel.id).count, 0, "own devices do not count")
      try context.expectEqual(await bob.state, .connected, "bob")
    },
    ConformanceCase("RCPT-04", "Receipts missed offline are fetched.", .s2, needs: [.receiptRead]) { context in
      let (alice, bob, channel, users) = try await context.direct()
      let sent = try await context.say(alice, channel.id, 2)
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      let probe = context.probe(alice)
      await alice.suspend()
      try await bob.markRead(channel.id, upTo: try context.need(sent[1].position, "a position"))
      await alice.resume()
      let position = try context.need(sent[1].position, "a position")
      try await context.eventually("alice learns of it") {
        probe.reads(by: users.b.id, in: channel.id).contains { $0 >= position }
      }
    },
    ConformanceCase("RCPT-05", "Where groups have no receipts nothing is invented.", .s2) { context in
      if context.has(.receiptGroupReaders) { throw CaseSkip(reason: .rule("receipt.groupReaders is there")) }
      // Three members: a channel of two may be a pair to the vendor.
      let (chats, users, channel) = try await context.group("alice", "bob", "carol")
      let probe = context.probe(chats[0])
      let sent = try await context.say(chats[0], channel.id, ["to a group"])[0]
      for reader in chats.dropFirst() {
        try await context.shows(reader, channel.id, [.text("to a group")], "a member")
        if context.has(.unreadChannel) { try await reader.markRead(channel.id, upTo: nil) }
      }
      try await context.quiet()
      let shown = try await context.newest(1, of: channel.id, by: chats[0]).last
      try context.expectEqual(shown?.id, sent.id, "the message")
      try context.expectEqual(shown?.state, .sent, "the state")
      for user in users.dropFirst() {
        try context.expectEqual(probe.reads(by: user.id, in: channel.id).count, 0, "reads told")
        try context.expectEqual(probe.deliveries(to: user.id, in: channel.id).count, 0, "deliveries told")
      }
    },
    ConformanceCase(
      "RCPT-06", "My read on another device is not the peer's read.", .s1,
      needs: [.receiptRead, .connectionMultiDevice]
    ) { context in
      let (alice, bob, channel, users) = try await context.direct()
      let tablet = try await context.online(users.a, "tablet")
      let probe = context.probe(alice)
      try await context.say(bob, channel.id, ["from bob"])
      try await context.say(alice, channel.id, ["from alice"])
      try await context.shows(tablet, channel.id, [.text("from bob"), .text("from alice")])
      try await tablet.markRead(channel.id, upTo: nil)
      try await context.quiet()
      try context.expectEqual(probe.reads(by: users.b.id, in: channel.id).count, 0, "reads of the peer")
    },
  ]

  static let unread: [ConformanceCase] = [
    ConformanceCase(
      "UNRD-01", "Unread counts what others wrote after my mark.", .s1, needs: [.unreadChannel]
    ) { context in
      let (alice, bob, channel, _) = try await context.pair()
      await bob.suspend()
      let sent = try await context.say(alice, channel.id, 20)
      await bob.resume()
      try await context.unreadBecomes(20, of: channel.id, on: bob)
      if context.has(.unreadTotal) {
        try context.expectEqual(try await context.whileTimePasses { try await bob.totalUnread().number }, 20, "the badge")
      }
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      try await bob.markRead(channel.id, upTo: nil)
      try await context.unreadBecomes(0, of: channel.id, on: bob)
      let described = try await context.channel(channel.id, by: bob)
      try context.expectEqual(described.unread, .exact(0), "unread as the service says")
    },
    ConformanceCase(
      "UNRD-02", "Two clients marking read at once end at the higher mark.", .s1,
      needs: [.connectionMultiDevice, .unreadMarkAt]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let tablet = try await context.online(users.b, "tablet")
      try await context.sees(tablet, channel.id)
      for _ in 0..<4 {
        let sent = try await context.say(alice, channel.id, 4)
        let last = sent[3].id
        for device in [bob, tablet] {
          try await context.eventually("both devices have all") {
            try await device.history(of: channel.id, .newest(1)).messages.last?.id == last
          }
        }
        let (high, low) = (
          try context.need(sent[3].position, "a position"), try context.need(sent[1].position, "a position")
        )
        async let first: Void = bob.markRead(channel.id, upTo: high)
        async let second: Void = tablet.markRead(channel.id, upTo: low)
        _ = try await (first, second)
        for device in [bob, tablet] { try await context.unreadBecomes(0, of: channel.id, on: device) }
        // A mark never falls, however late the lower one comes.
        try? await tablet.markRead(channel.id, upTo: low)
        try await context.quiet()
        for device in [bob, tablet] {
          try await context.unreadBecomes(0, of: channel.id, on: device, "unread after the lower mark")
          let seen = try await device.cachedChannels().first { $0.id == channel.id }?.unread
          try context.expectEqual(seen, .exact(0), "unread, and it stays")
        }
      }
    },
    ConformanceCase(
      "UNRD-03", "My own message from another device is never unread.", .s1,
      needs: [.unreadChannel, .connectionMultiDevice]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let tablet = try await context.online(users.b, "tablet")
      try await context.say(alice, channel.id, 2)
      try await context.unreadBecomes(2, of: channel.id, on: bob)
      await bob.suspend()
      let mine = try await context.say(tablet, channel.id, 3)
      await bob.resume()
      try await context.eventually("bob has them") {
        try await bob.history(of: channel.id, .newest(1)).messages.last?.id == mine[2].id
      }
      let expected = context.has(.unreadSendClears) ? 0 : 2
      try await context.unreadBecomes(expected, of: channel.id, on: bob, "unread after own messages")
      try await context.unreadBecomes(expected, of: channel.id, on: tablet, "unread on the sending device")
    },
    ConformanceCase(
      "UNRD-04", "Marking on one device clears the other.", .s1, needs: [.unreadChannel, .connectionMultiDevice]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let tablet = try await context.online(users.b, "tablet")
      try await context.sees(tablet, channel.id)
      let sent = try await context.say(alice, channel.id, 3)
      for device in [bob, tablet] {
        try await context.shows(device, channel.id, sent.map(\.content))
        try await context.unreadBecomes(3, of: channel.id, on: device)
      }
      try await bob.markRead(channel.id, upTo: nil)
      try await context.unreadBecomes(0, of: channel.id, on: tablet, "unread on the other device")
      await tablet.suspend()
      let more = try await context.say(alice, channel.id, ["more"])
      try await context.eventually("bob has it") {
        try await bob.history(of: channel.id, .newest(1)).messages.last?.id == more[0].id
      }
      try await bob.markRead(channel.id, upTo: nil)
      await tablet.resume()
      try await context.unreadBecomes(0, of: channel.id, on: tablet, "unread after being away")
    },
    ConformanceCase(
      "UNRD-05", "Recalling an unread message lowers, a read one does not.", .s2,
      needs: [.unreadChannel, .messageRecall]
    ) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let read = try await context.say(alice, channel.id, 3)
      try await context.shows(bob, channel.id, read.map(\.content), "bob")
      try await bob.markRead(channel.id, upTo: nil)
      try await context.unreadBecomes(0, of: channel.id, on: bob)
      let unread = try await context.say(alice, channel.id, ["4", "5", "6"])
      try await context.unreadBecomes(3, of: channel.id, on: bob)
      _ = try await alice.recall(read[1])
      try await context.quiet()
      try await context.unreadBecomes(3, of: channel.id, on: bob, "unread after a read one is recalled")
      _ = try await alice.recall(unread[1])
      try await context.unreadBecomes(2, of: channel.id, on: bob, "unread after an unread one is recalled")
    },
    ConformanceCase("UNRD-06", "Somebody else's receipt does not touch my number.", .s1, needs: [.unreadChannel]) {
      context in
      let (chats, users, channel) = try await context.group("alice", "bob", "carol")
      let sent = try await context.say(chats[1], channel.id, 4)
      try await context.unreadBecomes(4, of: channel.id, on: chats[0])
      for reader in chats.dropFirst() {
        try await context.shows(reader, channel.id, sent.map(\.content), "a reader")
        try await reader.markRead(channel.id, upTo: nil)
      }
      try await context.quiet()
      try await context.unreadBecomes(4, of: channel.id, on: chats[0], "alice's unread")
      var total = 4
      if context.has(.channelDirect) {
        let pair = try await chats[0].createChannel(.direct(with: users[1].id))
        _ = try await chats[1].createChannel(.direct(with: users[0].id))
        let mine = try await context.say(chats[0], pair.id, ["from alice"])
        let his = try await context.say(chats[1], pair.id, ["from bob", "and more"])
        try await context.unreadBecomes(2, of: pair.id, on: chats[0])
        try await context.shows(chats[1], pair.id, (mine + his).map(\.content), "bob")
        try await chats[1].markRead(pair.id, upTo: nil)
        try await context.quiet()
        try await context.unreadBecomes(2, of: pair.id, on: chats[0], "alice's unread of the pair")
        total += 2
      }
      guard context.has(.unreadTotal) else { return }
      let told = try await context.whileTimePasses { try await chats[0].totalUnread() }
      try context.expectEqual(told.number, total, "alice's total")
    },
    ConformanceCase(
      "UNRD-08", "Before the first sync the number is unknown.", .s2, needs: [.unreadChannel]
    ) { context in
      let (alice, _, channel, users) = try await context.pair()
      try await context.say(alice, channel.id, 7)
      let fresh = try await context.device(users.b, "fresh")
      let probe = context.probe(fresh)
      try await fresh.open(for: users.b.id)
      try context.expectEqual(
        try await fresh.cachedChannels().map(\.unread).filter { $0 != .unknown }.count, 0, "numbers before anything is known")
      let list = await fresh.channelCollection()
      try context.expectEqual(list.snapshot.unread, .unknown, "the sum before the first sync")
      _ = try await fresh.connect(as: users.b.id, credential: users.b.credential)
      try await context.unreadBecomes(7, of: channel.id, on: fresh)
      let zeros = probe.unread(in: channel.id).filter { $0 == .exact(0) }
        + probe.joined(channel.id).map(\.unread).filter { $0 == .exact(0) }
      try context.expectEqual(zeros.count, 0, "times that 0 was told")
      await fresh.disconnect()
      let warm = try await context.device(users.b, "fresh")
      try await warm.open(for: users.b.id)
      let cached = try await warm.cachedChannels().first { $0.id == channel.id }
      try context.expectEqual(cached?.unread, .exact(7), "the cached number is shown")
    },
    ConformanceCase("UNRD-09", "A query does not erase an event's value.", .s1, needs: [.unreadChannel]) { context in
      let (alice, bob, channel, _) = try await context.pair()
      try await context.say(alice, channel.id, 3)
      try await context.unreadBecomes(3, of: channel.id, on: bob)
      _ = try await context.wholeList(of: bob, page: 10)
      _ = try await context.channel(channel.id, by: bob)
      try await context.unreadBecomes(3, of: channel.id, on: bob, "unread after queries")
      try await context.say(alice, channel.id, ["more"])
      try await context.unreadBecomes(4, of: channel.id, on: bob, "unread after one more")
    },
    ConformanceCase(
      "UNRD-10", "A mark made offline counts what it saw.", .s1, needs: [.unreadChannel, .unreadMarkAt]
    ) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let seen = try await context.say(alice, channel.id, 10)
      try await context.shows(bob, channel.id, seen.map(\.content), "bob")
      await bob.suspend()
      try await bob.markRead(channel.id, upTo: try context.need(seen[9].position, "a position"))
      try await context.say(alice, channel.id, ["11", "12", "13"])
      await bob.resume()
      try await context.unreadBecomes(3, of: channel.id, on: bob)
    },
    ConformanceCase("UNRD-12", "The total is the sum by rule.", .s2, needs: [.unreadTotal]) { context in
      let (alice, bob, first, users) = try await context.pair()
      var channels = [first]
      for name in ["second", "third"] {
        channels.append(
          try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: name)))
        try await context.sees(bob, channels[channels.count - 1].id)
      }
      for (number, channel) in channels.enumerated() { try await context.say(alice, channel.id, number + 1) }
      for (number, channel) in channels.enumerated() {
        try await context.unreadBecomes(number + 1, of: channel.id, on: bob)
      }
      let total = try await context.whileTimePasses { try await bob.totalUnread() }
      try context.expectEqual(total.number, 6, "the total")
      try await bob.markRead(channels[2].id, upTo: nil)
      try await context.eventually("the total follows") { try await bob.totalUnread().number == 3 }
    },
    ConformanceCase(
      "UNRD-13", "A mention counts once and ends with reading.", .s2, needs: [.unreadMention, .messageMention]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      @Sendable func mention(_ text: String, _ mentions: Mentions) async throws -> Message {
        var draft = MessageDraft(.text(text))
        draft.mentions = mentions
        let ready = draft
        return try await context.whileTimePasses { try await alice.send(ready, to: channel.id) }
      }
      @Sendable func number() async throws -> Int { try await context.channel(channel.id, by: bob).unreadMentions.number ?? 0 }
      func read(_ last: String) async throws {
        try await context.eventually("bob has it") {
          try await bob.history(of: channel.id, .newest(1)).messages.last?.content == .text(last)
        }
        try await bob.markRead(channel.id, upTo: nil)
        try await context.eventually("it ends with reading") { try await bob.channel(channel.id).unreadMentions.number == 0 }
      }
      _ = try await mention("look, bob", Mentions(users: [users.b.id]))
      try await context.say(alice, channel.id, ["plain"])
      try await context.eventually("bob has a mention") { try await number() >= 1 }
      try context.expectEqual(try await number(), 1, "unread mentions")
      try await read("plain")
      // A mention of everybody is one of bob.
      _ = try await mention("all of you", Mentions(everyone: true))
      try await context.eventually("bob has a mention of all") { try await number() >= 1 }
      try context.expectEqual(try await number(), 1, "unread mentions of all")
      try await read("all of you")
      // One of somebody else is none of bob's.
      _ = try await mention("not you", Mentions(users: [users.a.id]))
      try await context.eventually("bob has it") {
        try await bob.history(of: channel.id, .newest(1)).messages.last?.content == .text("not you")
      }
      try context.expectEqual(try await number(), 0, "mentions of somebody else")
      try await read("not you")
      if context.has(.messageEdit) {
        // Named once, however often the message changes.
        let edited = try await mention("bob, look", Mentions(users: [users.b.id]))
        try await context.eventually("bob has a mention") { try await number() >= 1 }
        var draft = MessageDraft(.text("bob, look here"))
        draft.mentions = Mentions(users: [users.b.id])
        let ready = draft
        _ = try await context.whileTimePasses { try await alice.edit(edited, to: ready) }
        try await context.eventually("the edit is known") {
          try await bob.history(of: channel.id, .newest(1)).messages.last?.content == .text("bob, look here")
        }
        try context.expectEqual(try await number(), 1, "unread mentions, edited once")
        try await read("bob, look here")
      }
      if context.has(.messageRecall) {
        let gone = try await mention("bob, forget it", Mentions(users: [users.b.id]))
        try await context.eventually("bob has a mention") { try await number() >= 1 }
        _ = try await context.whileTimePasses { try await alice.recall(gone) }
        try await context.eventually("the recall is known") {
          try await !bob.history(of: channel.id, .newest(3)).messages.contains { $0.id == gone.id && !$0.isRecalled }
        }
        // A vendor that has a flag and no number may keep it until the channel is read.
        try context.expect(try await number() <= 1, "one mention at the most", observed: "\(try await number())")
        try await bob.markRead(channel.id, upTo: nil)
        try await context.eventually("it ends with reading") { try await number() == 0 }
      }
    },
  ]

  static let typing: [ConformanceCase] = [
    ConformanceCase("TYPE-01", "Typing starts and stops once.", .s3, needs: [.typing]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let (atAlice, atBob) = (context.probe(alice), context.probe(bob))
      try await context.idle()
      let mark = await context.mark()
      for _ in 0..<20 {
        try await alice.setTyping(true, in: channel.id)
        await context.harness.pass(.milliseconds(200))
      }
      try await context.eventually("bob sees it") { atBob.typing(by: users.a.id, in: channel.id) == [true] }
      try await alice.setTyping(false, in: channel.id)
      try await context.eventually("bob sees the end") {
        atBob.typing(by: users.a.id, in: channel.id) == [true, false]
      }
      try await context.quiet()
      try context.expectEqual(atBob.typing(by: users.a.id, in: channel.id), [true, false], "what bob was told")
      try context.expectEqual(atAlice.typing(by: users.a.id, in: channel.id), [], "own typing")
      guard context.offers("journal") else { return }
      // Whatever the vendor calls it: twenty key strokes are one frame, and its end another.
      let frames = try await context.requests(since: mark).filter {
        $0.user == users.a.id && $0.operation != "ping" && $0.kind != "ping"
      }
      try context.expect((1...2).contains(frames.count), "one or two frames", observed: "\(frames.map(\.operation))")
    },
    ConformanceCase("TYPE-02", "Typing without a stop expires.", .s3, needs: [.typing]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(bob)
      try await alice.setTyping(true, in: channel.id)
      try await context.eventually("bob sees it") { probe.typing(by: users.a.id, in: channel.id) == [true] }
      try await context.pass(.seconds(30), step: .seconds(1))
      try await context.eventually("an end by itself", within: .zero) {
        probe.typing(by: users.a.id, in: channel.id) == [true, false]
      }
      await bob.disconnect()
      let count = probe.events.count
      try await alice.setTyping(true, in: channel.id)
      try await context.quiet()
      try context.expectEqual(probe.events(after: count).count { $0.source == .live }, 0, "events after disconnect")
    },
    ConformanceCase("TYPE-03", "A message ends typing.", .s3, needs: [.typing]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(bob)
      try await alice.setTyping(true, in: channel.id)
      try await context.eventually("bob sees it") { probe.typing(by: users.a.id, in: channel.id) == [true] }
      try await context.say(alice, channel.id, ["said"])
      try await context.eventually("the message came") { probe.received(in: channel.id).count == 1 }
      try context.expectEqual(probe.typing(by: users.a.id, in: channel.id), [true, false], "the end of typing")
      let kinds = probe.events.map(\.kind)
      let end = kinds.firstIndex { if case .typingEnded = $0 { true } else { false } }
      let message = kinds.firstIndex { if case .messageReceived = $0 { true } else { false } }
      try context.expect((end ?? .max) <= (message ?? .min) + 1, "before or with the message")
      try await context.pass(.seconds(20), step: .seconds(1))
      try context.expectEqual(probe.typing(by: users.a.id, in: channel.id).count, 2, "no second end")
    },
    ConformanceCase("TYPE-04", "Typing leaves no trace.", .s2, needs: [.typing]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(bob)
      try await alice.setTyping(true, in: channel.id)
      try await context.eventually("bob sees it") { probe.typing(by: users.a.id, in: channel.id) == [true] }
      try await context.quiet()
      try context.expectEqual(probe.received(in: channel.id).count, 0, "messages told")
      let fresh = try await context.online(users.b, "fresh")
      for reader in [alice, bob, fresh] {
        let read = try await context.newest(10, of: channel.id, by: reader).filter { !$0.isNotice }
        try context.expectEqual(read.count, 0, "messages in history")
      }
      if context.has(.unreadChannel) { try await context.unreadBecomes(0, of: channel.id, on: bob) }
      try context.expectEqual(try await context.serverMessages(channel.id).count, 0, "messages at the service")
    },
  ]
}
