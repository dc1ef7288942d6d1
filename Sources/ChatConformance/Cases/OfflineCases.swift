import ChatClient
import UnifiedChat

// Offline work, reconnection and gaps.
extension ConformanceSuite {
  static let offline: [ConformanceCase] = [
    ConformanceCase("OFFL-01", "What is written offline goes out in order.", .s1) { context in
      let (alice, _, first, users) = try await context.pair()
      var channels = [first.id]
      for name in ["second", "third"] {
        channels.append(
          try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: name)).id)
      }
      await alice.suspend()
      for number in 0..<21 {
        let pending = try await alice.enqueue(.text("\(number)"), to: channels[number % 3])
        try context.expectEqual(pending.state, .pending, "pending from the first moment")
      }
      for channel in channels {
        try context.expectEqual(try await alice.waitingMessages(in: channel).count, 7, "what waits")
      }
      await alice.resume()
      let places = channels
      try await context.eventually("all are sent", within: .seconds(300), step: .seconds(1)) {
        for channel in places where try await !alice.waitingMessages(in: channel).isEmpty { return false }
        return true
      }
      for (place, channel) in channels.enumerated() {
        try context.expectEqual(
          try await context.serverMessages(channel).map(\.content),
          stride(from: place, to: 21, by: 3).map { .text("\($0)") }, "the order at the service")
      }
    },
    ConformanceCase("OFFL-02", "The queue survives a restart.", .s1, tags: [.kill]) { context in
      let (alice, _, first, users) = try await context.pair()
      let second = try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: "second"))
      await alice.suspend()
      var localIDs: [LocalID?] = []
      for number in 0..<10 {
        localIDs.append(
          try await alice.enqueue(.text("\(number)"), to: number % 2 == 0 ? first.id : second.id).localID)
      }
      let next = try await context.killed(alice, "phone")
      await alice.disconnect()
      try await next.open(for: users.a.id)
      let waiting = try await next.waitingMessages(in: first.id) + next.waitingMessages(in: second.id)
      try context.expectEqual(Set(waiting.map(\.localID)), Set(localIDs), "local ids")
      _ = try await next.connect(as: users.a.id, credential: users.a.credential)
      for (place, channel) in [first.id, second.id].enumerated() {
        try await context.eventually("sent", within: .seconds(120), step: .seconds(1)) {
          try await next.waitingMessages(in: channel).isEmpty
        }
        try context.expectEqual(
          try await context.serverMessages(channel).map(\.content),
          stride(from: place, to: 10, by: 2).map { .text("\($0)") }, "the order at the service")
      }
    },
    ConformanceCase("OFFL-03", "A queue entry ends by rule.", .s2) { context in
      let (alice, _, channel, _) = try await context.pair()
      let probe = context.probe(alice)
      await alice.suspend()
      let pending = try await alice.enqueue(.text("too old"), to: channel.id)
      try context.clock(of: alice).setOffset(.seconds(3 * 86_400 + 60))
      await alice.resume()
      try await context.eventually("it failed") { probe.failed(in: channel.id).count == 1 }
      try context.expectEqual(try await context.serverMessages(channel.id).count, 0, "messages at the service")
      _ = try await alice.resend(try context.need(pending.localID, "a local id"))
      try await context.quiet()
      try context.clock(of: alice).setOffset(.zero)
      _ = try await alice.resend(try context.need(pending.localID, "a local id"))
      try await context.eventually("sent when the user wants it") { probe.sent(in: channel.id).count == 1 }
    },
    ConformanceCase("OFFL-04", "Editing or recalling a pending message changes what is sent.", .s2) { context in
      let (alice, _, channel, _) = try await context.pair()
      await alice.suspend()
      var first = try await alice.enqueue(.text("draft"), to: channel.id)
      let second = try await alice.enqueue(.text("regretted"), to: channel.id)
      for text in ["better", "best"] { first = try await alice.edit(first, to: .text(text)) }
      let gone = try await alice.recall(second)
      try context.expectEqual(gone.state, .cancelled, "the recalled one")
      await alice.resume()
      try await context.eventually("sent") { try await alice.waitingMessages(in: channel.id).isEmpty }
      try context.expectEqual(
        try await context.serverMessages(channel.id).map(\.content), [.text("best")], "messages at the service")
    },
    ConformanceCase("OFFL-05", "Longer away than the vendor's offline window loses nothing.", .s1) { context in
      let (alice, bob, channel, users) = try await context.pair()
      var others: [ChannelID] = []
      for number in 0..<12 {
        let made = try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: "c\(number)"))
        others.append(made.id)
        try await context.sees(bob, made.id)
      }
      try await context.say(alice, channel.id, ["known"])
      try await context.shows(bob, channel.id, [.text("known")], "bob")
      await bob.suspend()
      let sent = try await context.say(alice, channel.id, 130)
      for other in others { try await context.say(alice, other, ["news"]) }
      await bob.resume()
      try await context.eventually("connected") { await bob.state == .connected }
      let newest = sent.last?.id
      try await context.eventually("the newest message is known", within: .seconds(120), step: .seconds(1)) {
        try await bob.history(of: channel.id, .newest(1)).messages.last?.id == newest
      }
      let read = try await context.wholeHistory(of: channel.id, by: bob, page: 40)
      try context.expectEqual(read.map(\.content), [.text("known")] + sent.map(\.content), "the long channel")
      for other in others { try await context.shows(bob, other, [.text("news")]) }
      guard context.has(.unreadChannel) else { return }
      try await context.eventually("the unread number is exact or a lower bound") {
        let unread = try await bob.cachedChannels().first { $0.id == channel.id }?.unread
        return switch unread {
        case .exact(let number)?: number == 131 || number == 130
        case .atLeast(let number)?: number <= 131 && number > 0
        default: false
        }
      }
    },
    ConformanceCase(
      "OFFL-06", "Marks made offline follow their own rule: the latest alone.", .s3, needs: [.unreadChannel]
    ) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let sent = try await context.say(alice, channel.id, 4)
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      await bob.suspend()
      for message in sent { try await bob.markRead(channel.id, upTo: message.position) }
      let mark = await context.mark()
      await bob.resume()
      try await context.eventually("connected") { await bob.state == .connected }
      try await context.unreadBecomes(0, of: channel.id, on: bob)
      try await context.eventually("the service knows") { try await bob.channel(channel.id).unread == .exact(0) }
      if context.offers("journal") {
        let told = try await context.requests("read", since: mark)
        try context.expect(told.count <= 1, "one mark told", observed: "\(told.count)")
      }
    },
    ConformanceCase(
      "OFFL-07", "A channel that disappeared while I wrote fails my messages kindly.", .s2, needs: [.memberRemove]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(bob)
      await bob.suspend()
      let pending = try await bob.enqueue(.text("keep my words"), to: channel.id)
      try await alice.removeMembers([users.b.id], from: channel.id)
      await bob.resume()
      try await context.eventually("it failed", within: .seconds(120), step: .seconds(1)) {
        probe.failed(in: channel.id).count == 1
      }
      let failed = try context.need(probe.failed(in: channel.id).first, "the failed message")
      try context.expectEqual(failed.localID, pending.localID, "the message")
      try context.expectEqual(failed.content, .text("keep my words"), "its words")
      guard case .failed(let error) = failed.state else { throw context.failure("a failed state", "\(failed.state)") }
      try context.expect(!error.isRetryable, "a final refusal", observed: "\(error)")
    },
  ]

  static let reconnection: [ConformanceCase] = [
    ConformanceCase("RECON-01", "What I missed arrives once and in order.", .s1) { context in
      let (alice, bob, channel, _) = try await context.pair()
      try await context.say(alice, channel.id, ["known"])
      try await context.shows(bob, channel.id, [.text("known")], "bob")
      let probe = context.probe(bob)
      await bob.suspend()
      let sent = try await context.say(alice, channel.id, 50)
      await bob.resume()
      let expected = [.text("known")] + sent.map(\.content)
      try await context.eventually("bob has all") {
        try await bob.history(of: channel.id, .newest(60)).messages.map(\.content) == expected
      }
      try await context.quiet()
      try context.expectEqual(
        probe.events.count { event in
          if case .messageReceived(let message) = event.kind, message.channel == channel.id { event.source == .live } else { false }
        }, 0, "told as live")
      try context.expectEqual(
        probe.received(in: channel.id).count + probe.backfilled(in: channel.id), 50, "each told once")
    },
    ConformanceCase("RECON-02", "A cached island does not hide the sea.", .s1) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let first = try await context.say(alice, channel.id, 5)
      try await context.shows(bob, channel.id, first.map(\.content), "bob")
      await bob.disconnect()
      let more = try await context.say(alice, channel.id, (5..<25).map(String.init))
      let again = try await context.online(try context.details(of: bob).user)
      // The cached page is shown first; what is missing comes behind it.
      let newest = more.last?.id
      try await context.eventually("the newest message is known") {
        try await again.history(of: channel.id, .newest(1)).messages.last?.id == newest
      }
      let read = try await context.wholeHistory(of: channel.id, by: again, page: 5)
      try context.expectEqual(read.map(\.id), (first + more).map(\.id), "everything without a hole")
    },
    ConformanceCase(
      "RECON-03", "A connection lost during catch-up leaves an honest gap.", .s1, hooks: ["closeSocket"]
    ) { context in
      let (alice, bob, channel, _) = try await context.pair()
      try await context.say(alice, channel.id, ["known"])
      try await context.shows(bob, channel.id, [.text("known")], "bob")
      await bob.suspend()
      let sent = try await context.say(alice, channel.id, 30)
      try await context.inject(
        FaultRule("history", action: .closeSocket))
      await bob.resume()
      try await context.pass(.seconds(3))
      try await context.eventually("connected", within: .seconds(120), step: .seconds(1)) { await bob.state == .connected }
      let newest = sent.last?.id
      try await context.eventually("the newest message is known", within: .seconds(120), step: .seconds(1)) {
        try await bob.history(of: channel.id, .newest(1)).messages.last?.id == newest
      }
      let expected = ["known"] + sent.indices.map(String.init)
      try context.expectEqual(
        try await context.wholeHistory(of: channel.id, by: bob, page: 7).map(\.content), expected.map { .text($0) },
        "everything without a hole")
    },
    ConformanceCase("RECON-06", "Everything that changed is learnt, nothing else is reported.", .s1) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let sent = try await context.say(alice, channel.id, 20)
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      let probe = context.probe(bob)
      await bob.suspend()
      await context.harness.pass(.seconds(30))
      var expected = sent.map(\.content)
      if context.has(.messageEdit) {
        _ = try await alice.edit(sent[4], to: .text("edited"))
        expected[4] = .text("edited")
      }
      var gone: Set<MessageID> = []
      if context.has(.messageRecall) {
        _ = try await alice.recall(sent[7])
        gone.insert(try context.need(sent[7].id, "an id"))
      }
      let c = try await context.user("carol")
      try await alice.invite([c.id], to: channel.id)
      if context.has(.channelCustomData) { _ = try await alice.updateChannel(channel.id, ChannelChanges(name: "renamed")) }
      let fresh = try await context.say(alice, channel.id, (20..<40).map(String.init))
      await bob.resume()
      let (kept, removed, total) = (expected, gone, sent.count + fresh.count)
      try await context.eventually("bob is up to date", within: .seconds(60)) {
        let read = try await bob.history(of: channel.id, .newest(60)).messages.filter { !$0.isNotice }
        guard read.count == total else { return false }
        for (message, content) in zip(read, kept) where message.content != content {
          guard let id = message.id, removed.contains(id), message.isRecalled else { return false }
        }
        return true
      }
      if context.has(.channelCustomData) {
        try await context.eventually("the new name is known") {
          try await bob.cachedChannels().first { $0.id == channel.id }?.name == "renamed"
        }
      }
      let updates = probe.updated(in: channel.id).compactMap(\.id).filter { id in !gone.contains(id) }
      try context.expect(updates.allSatisfy { $0 == sent[4].id }, "no update of unchanged messages", observed: "\(updates)")
      try context.expectEqual(users.b.id, try context.details(of: bob).user.id, "bob")
    },
    ConformanceCase(
      "RECON-07", "A refused change-log token falls back to a full comparison.", .s1,
      needs: [.historyChangelog, .messageRecall], hooks: ["fail", "journal"]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let sent = try await context.say(alice, channel.id, 6)
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      // Once, so that a token is stored.
      let mark = await context.mark()
      await bob.suspend()
      await bob.resume()
      try await context.eventually("connected") { await bob.state == .connected }
      try await context.quiet()
      guard try await !context.requests("changelog", by: users.b.id, since: mark).isEmpty else {
        throw CaseSkip(reason: .rule("a catch-up asks with no token"))
      }
      await bob.suspend()
      _ = try await alice.recall(sent[2])
      try await context.inject(
        FaultRule("changelog", user: users.b.id, action: .fail(.invalidArgument(field: "token"))))
      await bob.resume()
      try await context.eventually("the deletion is learnt") {
        try await bob.history(of: channel.id, .newest(10)).messages.filter { !$0.isRecalled }.count == 5
      }
      try await context.removeRules()
      // A new token was stored: the next absence is asked for with it.
      await bob.suspend()
      _ = try await alice.recall(sent[3])
      await bob.resume()
      try await context.eventually("the next deletion too") {
        try await bob.history(of: channel.id, .newest(10)).messages.filter { !$0.isRecalled }.count == 4
      }
    },
    ConformanceCase("RECON-09", "A flapping path keeps one socket.", .s1, hooks: ["journal"]) { context in
      let user = try await context.user("alice")
      let chat = try await context.online(user)
      for round in 0..<50 {
        await chat.suspend()
        await context.harness.pass(.milliseconds(100))
        await chat.resume()
        await context.harness.pass(.milliseconds(100))
        // The old one may still be closing.
        try await context.eventually("one socket at most in round \(round)", within: .seconds(1)) {
          try await context.sockets(of: user) <= 1
        }
      }
      try await context.eventually("connected at the end") { await chat.state == .connected }
      try context.expectEqual(try await context.sockets(of: user), 1, "sockets")
    },
    ConformanceCase(
      "RECON-11", "Back from the background in the middle of a send.", .s1, needs: [.messageIdempotentSend],
      hooks: ["delay"]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(alice)
      try await context.inject(FaultRule("send", user: users.a.id, phase: .beforeReply, action: .delay(.seconds(3))))
      _ = try await alice.enqueue(.text("in between"), to: channel.id)
      try await context.eventually("it left") {
        try await bob.history(of: channel.id, .newest(1)).messages.last?.content == .text("in between")
      }
      await alice.suspend()
      try await context.pass(.seconds(5))
      await alice.resume()
      try await context.eventually("sent") { try await alice.waitingMessages(in: channel.id).isEmpty }
      try context.expectEqual(
        try await context.serverMessages(channel.id).map(\.content), [.text("in between")], "at the service")
      try context.expectEqual(probe.failed(in: channel.id).count, 0, "failures")
    },
  ]

  static let concurrency: [ConformanceCase] = [
    ConformanceCase("CONC-01", "Many concurrent connects, disconnects and path changes end well.", .s1) { context in
      let user = try await context.user("alice")
      let chat = try await context.device(user)
      // Its trace is looked at when the case ends.
      _ = context.probe(chat)
      try await context.whileTimePasses(within: .seconds(600), step: .seconds(1)) {
        await withTaskGroup(of: Void.self) { group in
          for number in 0..<200 {
            group.addTask {
              switch number % 4 {
              case 0: _ = try? await chat.connect(as: user.id, credential: user.credential)
              case 1: await chat.suspend()
              case 2: await chat.resume()
              default: if number % 12 == 3 { await chat.disconnect() }
              }
            }
          }
        }
      }
      _ = try await context.whileTimePasses {
        await chat.disconnect()
        return try await chat.connect(as: user.id, credential: user.credential)
      }
      try context.expectEqual(await chat.state, .connected, "the state at the end")
      if context.offers("journal") {
        try await context.eventually("one socket") { try await context.sockets(of: user) == 1 }
      }
    },
    ConformanceCase("CONC-02", "One hundred sends in ten channels at once.", .s1) { context in
      let (alice, _, first, users) = try await context.pair()
      var channels = [first.id]
      for number in 1..<10 {
        channels.append(
          try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: "c\(number)")).id)
      }
      let places = channels
      try await withThrowingTaskGroup(of: Void.self) { group in
        for channel in places {
          group.addTask { for number in 0..<10 { _ = try await alice.enqueue(.text("\(number)"), to: channel) } }
        }
        try await group.waitForAll()
      }
      try await context.eventually("all are sent", within: .seconds(300), step: .seconds(1)) {
        for channel in places where try await !alice.waitingMessages(in: channel).isEmpty { return false }
        return true
      }
      for channel in channels {
        try context.expectEqual(
          try await context.serverMessages(channel).map(\.content), (0..<10).map { .text("\($0)") }, "the order")
      }
    },
    ConformanceCase("CONC-03", "Calling the SDK from inside a listener works.", .s2) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let replies = ReplyingListener(chat: bob)
      bob.listeners.add(replies, identifier: "replying")
      try await context.say(alice, channel.id, ["question"])
      try await context.shows(alice, channel.id, [.text("question"), .text("answer")], "alice")
      try await context.eventually("the listener read history too") { replies.read == 1 }
      try await context.say(alice, channel.id, ["again"])
      try await context.quiet()
      try context.expectEqual(replies.read, 1, "a listener that removed itself hears no more")
    },
    ConformanceCase("CONC-04", "A cancelled task stops and frees.", .s2, hooks: ["delay"]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      try await context.inject(FaultRule("send", user: users.a.id, phase: .beforeReply, action: .delay(.seconds(2))))
      let sending = Task { try await alice.send(.text("tracked"), to: channel.id) }
      try await context.eventually("it left") {
        try await bob.history(of: channel.id, .newest(1)).messages.last?.content == .text("tracked")
      }
      sending.cancel()
      let error = try await context.expectError("cancelled") { _ = try await sending.value } where: { $0 == .cancelled }
      try context.expectEqual(error.operation, .send, "the operation")
      try await context.eventually("the outbox keeps track") { try await alice.waitingMessages(in: channel.id).isEmpty }
      try context.expectEqual(try await context.serverMessages(channel.id).count, 1, "messages at the service")
    },
    ConformanceCase("CONC-07", "Twenty devices in one process.", .s3) { context in
      var chats: [Chat] = []
      var users: [TestUser] = []
      for number in 0..<20 {
        users.append(try await context.user("u\(number)"))
        chats.append(try await context.online(users[number]))
      }
      let channel = try await chats[0].createChannel(
        ChannelDraft(kind: .group, members: users.dropFirst().map(\.id), name: "many"))
      for chat in chats.dropFirst() { try await context.sees(chat, channel.id) }
      try await context.say(chats[7], channel.id, ["to all"])
      for chat in chats { try await context.shows(chat, channel.id, [.text("to all")]) }
      await chats[3].disconnect()
      for (number, chat) in chats.enumerated() where number != 3 {
        try context.expectEqual(await chat.state, .connected, "device \(number)")
      }
    },
  ]
}

/// Answers, reads history and removes itself, all from inside the callback.
private final class ReplyingListener: MessageListener {
  private let chat: Chat
  private let count = Counter()

  init(chat: Chat) { self.chat = chat }

  var read: Int { count.value }

  func messageReceived(_ message: Message) async {
    guard (try? await chat.send(.text("answer"), to: message.channel)) != nil,
      (try? await chat.history(of: message.channel, .newest(5))) != nil
    else { return }
    count.add()
    chat.listeners.remove(identifier: "replying")
  }
}
