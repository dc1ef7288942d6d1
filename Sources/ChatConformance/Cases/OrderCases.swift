import ChatCache
import ChatClient
import UnifiedChat

extension ConformanceSuite {
  static let order: [ConformanceCase] = [
    ConformanceCase("ORDER-01", "Everyone sees one order.", .s1) { context in
      let (channel, chats, _) = try await crowd(context, writers: 4, messages: 20)
      let truth = try await context.serverMessages(channel).map(\.id)
      try context.expectEqual(truth.count, 80, "messages at the service")
      for chat in chats {
        // Who was online may still have pushes on their way.
        try await context.eventually("everyone has all") {
          try await context.wholeHistory(of: channel, by: chat, page: 30).count >= truth.count
        }
        let read = try await context.wholeHistory(of: channel, by: chat, page: 30).map(\.id)
        try context.expectEqual(read, truth, "the order for everyone")
      }
    },
    ConformanceCase("ORDER-06", "Events of one channel come in order from many writers.", .s1) { context in
      let (channel, _, probe) = try await crowd(context, writers: 4, messages: 25)
      try await context.eventually("all are told") { probe.received(in: channel).count == 100 }
      let positions = probe.received(in: channel).compactMap(\.position)
      try context.expectEqual(positions.count, 100, "positions")
      try context.expect(zip(positions, positions.dropFirst()).allSatisfy { $0 < $1 }, "positions that grow")
    },
    ConformanceCase("ORDER-07", "An edit does not move a message.", .s2, needs: [.messageEdit]) { context in
      let (alice, bob, channel, _) = try await context.pair()
      var sent: [Message] = []
      for number in 0..<5 { sent.append(try await alice.send(.text("\(number)"), to: channel.id)) }
      let probe = context.probe(bob)
      let edited = try await alice.edit(sent[2], to: .text("edited"))
      try context.expectEqual(edited.position, sent[2].position, "the position")
      try context.expect(edited.editedAt != nil, "a time of the edit")
      try await context.eventually("bob was told") {
        probe.count { if case .messageUpdated = $0 { true } else { false } } == 1
      }
      for chat in [alice, bob] {
        let read = try await chat.history(of: channel.id, .newest(10)).messages
        try context.expectEqual(read.map(\.id), sent.map(\.id), "the order")
        // The line above makes sure that there are five.
        try context.expectEqual(read[2].content, .text("edited"), "the new content")
      }
    },
    ConformanceCase("ORDER-02", "The client clock has no say.", .s1) { context in
      let (alice, bob, channel, _) = try await context.pair()
      var contents: [MessageContent] = []
      for (number, offset) in [600, -600, 86_400, 0, -86_400].enumerated() {
        try context.clock(of: alice).setOffset(.seconds(offset))
        try await context.say(alice, channel.id, ["a\(number)"])
        try await context.say(bob, channel.id, ["b\(number)"])
        contents += [.text("a\(number)"), .text("b\(number)")]
      }
      try context.expectEqual(try await context.serverMessages(channel.id).map(\.content), contents, "the service's order")
      try await context.shows(alice, channel.id, contents, "alice")
      try await context.shows(bob, channel.id, contents, "bob")
      try context.clock(of: alice).setOffset(.seconds(-86_400))
      await alice.suspend()
      let pending = try await alice.enqueue(.text("pending"), to: channel.id)
      try context.expect(pending.position == nil, "no position while pending")
      try context.expectEqual(try await alice.waitingMessages(in: channel.id).count, 1, "after all confirmed ones")
      try context.clock(of: alice).setOffset(.zero)
      await alice.resume()
      try await context.shows(bob, channel.id, contents + [.text("pending")], "bob")
    },
    ConformanceCase(
      "ORDER-03", "A pending message moves once to where it was stored.", .s2, hooks: ["delay"]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(alice)
      try await context.inject(FaultRule("send", user: users.a.id, action: .delay(.seconds(2))))
      let pending = try await alice.enqueue(.text("mine"), to: channel.id)
      try await context.quiet(10)
      try await context.say(bob, channel.id, ["his"])
      try await context.eventually("sent") { probe.sent(in: channel.id).count == 1 }
      try await context.shows(alice, channel.id, [.text("his"), .text("mine")], "alice")
      let mine = probe.events.filter { event in
        switch event.kind {
        case .messagePending(let message), .messageSent(let message), .messageUpdated(let message),
          .messageFailed(let message), .messageCancelled(let message):
          message.localID == pending.localID
        default: false
        }
      }
      try context.expectEqual(mine.count, 2, "events of the pending message")
      try context.expectEqual(try await alice.waitingMessages(in: channel.id).count, 0, "what waits")
    },
    ConformanceCase("ORDER-05", "Ties break by the documented rule on every device.", .s1) { context in
      let (channel, reader, sent) = try await filled(context, 25, keepingTime: true)
      let read = try await context.wholeHistory(of: channel, by: reader, page: 6)
      let sorted = read.sorted { ($0.position ?? .lowest) < ($1.position ?? .lowest) }
      try context.expectEqual(read.map(\.id), sorted.map(\.id), "the order of positions")
      try context.expectEqual(read.map(\.id), sent, "the order of arrival")
      let truth = try await context.serverMessages(channel)
      try context.expectEqual(truth.map(\.id), read.map(\.id), "the service's order")
      try context.expectEqual(truth.map(\.position), read.map(\.position), "positions everywhere")
    },
  ]

  /// Writers that send at once into one channel, and a reader's events.
  private static func crowd(_ context: CaseContext, writers: Int, messages: Int) async throws
    -> (channel: ChannelID, chats: [Chat], probe: EventProbe)
  {
    var users: [TestUser] = []
    for number in 0...writers { users.append(try await context.user("u\(number)")) }
    var online: [Chat] = []
    for user in users { online.append(try await context.online(user)) }
    let chats = online
    let reader = chats[writers]
    let probe = context.probe(reader)
    let channel = try await chats[0].createChannel(
      ChannelDraft(kind: .group, members: users.dropFirst().map(\.id), name: "crowd"))
    try await context.eventually("everyone is in") {
      for chat in chats where (try? await chat.channel(channel.id)) == nil { return false }
      return true
    }
    let senders = chats.prefix(writers)
    try await context.whileTimePasses {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (index, chat) in senders.enumerated() {
          group.addTask {
            for number in 0..<messages { _ = try await chat.send(.text("\(index)-\(number)"), to: channel.id) }
          }
        }
        try await group.waitForAll()
      }
    }
    return (channel.id, chats, probe)
  }
}
