import UnifiedChat

extension ConformanceSuite {
  static let channel: [ConformanceCase] = [
    ConformanceCase(
      "CHAN-01", "A direct channel is the same for both, whatever the order of ids.", .s1, needs: [.channelDirect]
    ) { context in
      let a = try await context.user("alice")
      let b = try await context.user("bob")
      let alice = try await context.online(a)
      let bob = try await context.online(b)
      let first = try await alice.createChannel(ChannelDraft(kind: .direct, members: [a.id, b.id]))
      let second = try await bob.createChannel(ChannelDraft(kind: .direct, members: [b.id, a.id]))
      let third = try await alice.createChannel(.direct(with: b.id))
      try context.expectEqual([second.id, third.id], [first.id, first.id], "the ids of the same channel")
      try context.expectEqual(first.kind, .direct, "the kind")
      _ = try await alice.send(.text("hello"), to: first.id)
      let page = try await bob.history(of: second.id, .newest(10))
      try context.expectEqual(page.messages.map(\.content), [.text("hello")], "what the other one reads")
    },
    ConformanceCase(
      "CHAN-03", "Odd member lists have defined results.", .s2, needs: [.channelDirect]
    ) { context in
      let a = try await context.user("alice")
      let b = try await context.user("bob")
      let c = try await context.user("carol")
      let alice = try await context.online(a)
      let plain = try await alice.createChannel(.direct(with: b.id))
      let doubled = try await alice.createChannel(ChannelDraft(kind: .direct, members: [a.id, b.id, b.id]))
      try context.expectEqual(doubled.id, plain.id, "the channel of a doubled member")
      for members in [[a.id], [a.id, a.id], [a.id, b.id, c.id], []] {
        try await context.expectError("invalidArgument(members) for \(members.count) members") {
          _ = try await alice.createChannel(ChannelDraft(kind: .direct, members: members))
        } where: {
          $0 == .invalidArgument(field: "members")
        }
      }
    },
    ConformanceCase(
      "CHAN-04", "Different member sets give different distinct groups.", .s1, needs: [.channelGroupDistinct]
    ) { context in
      let a = try await context.user("alice")
      let others = [try await context.user("b"), try await context.user("c"), try await context.user("d")].map(\.id)
      let alice = try await context.online(a)
      var ids: [ChannelID] = []
      let lists = [[0, 1], [0, 2], [1, 0], [0, 1, 0], [2, 0]]
      for list in lists {
        let draft = ChannelDraft(kind: .group, members: list.map { others[$0] }, isDistinct: true)
        ids.append(try await alice.createChannel(draft).id)
      }
      try context.expectEqual(Set(ids).count, 2, "channels for two member sets")
      try context.expect(ids[0] == ids[2] && ids[0] == ids[3], "order and doubles do not matter")
      try context.expect(ids[1] == ids[4] && ids[0] != ids[1], "different sets are different channels")
    },
    ConformanceCase("CHAN-07", "A channel made by somebody else shows up once.", .s2) { context in
      let a = try await context.user("alice")
      let b = try await context.user("bob")
      let alice = try await context.online(a)
      let bob = try await context.online(b)
      let probe = context.probe(alice)
      let made = try await bob.createChannel(ChannelDraft(kind: .group, members: [a.id], name: "made by bob"))
      try await context.eventually("the channel is told") {
        probe.count { if case .channelJoined(let channel) = $0 { channel.id == made.id } else { false } } == 1
      }
      _ = try await bob.send(.text("first"), to: made.id)
      try await context.eventually("the message is told") { probe.received(in: made.id).count == 1 }
      let events = probe.events.map(\.kind)
      let joined = events.firstIndex { if case .channelJoined(let channel) = $0 { channel.id == made.id } else { false } }
      let message = events.firstIndex { if case .messageReceived = $0 { true } else { false } }
      try context.expect((joined ?? .max) < (message ?? .min), "the channel comes before its message")
      let count = probe.count { if case .channelJoined(let channel) = $0 { channel.id == made.id } else { false } }
      try context.expectEqual(count, 1, "times that the channel was told")
    },
    ConformanceCase(
      "CHAN-08", "The channel list is totally ordered, with ties and empty channels.", .s2, needs: [.channelQuery]
    ) { context in
      let a = try await context.user("alice")
      let b = try await context.user("bob")
      let alice = try await context.online(a)
      var made: [ChannelID] = []
      for number in 0..<23 {
        let channel = try await alice.createChannel(
          ChannelDraft(kind: .group, members: [b.id], name: "channel \(number)"))
        made.append(channel.id)
        if number % 3 != 0 { _ = try await alice.send(.text("in \(number)"), to: channel.id) }
        if number % 4 == 0 { await context.harness.pass(.milliseconds(3)) }
      }
      var listed: [Channel] = []
      var page: PageToken?
      repeat {
        let result = try await alice.channels(ChannelQuery(limit: 7), page: page)
        listed += result.items
        page = result.next
      } while page != nil && listed.count < 100
      try context.expectEqual(listed.count, made.count, "channels listed")
      try context.expectEqual(Set(listed.map(\.id)), Set(made), "the channels listed")
      let expected = listed.sorted { left, right in
        let (l, r) = (activity(left), activity(right))
        return l == r ? left.id < right.id : l > r
      }
      try context.expectEqual(listed.map(\.id), expected.map(\.id), "the order of the list")
    },
    ConformanceCase(
      "CHAN-11", "An unknown channel is notFound, a foreign one is permission or notFound.", .s2
    ) { context in
      let (alice, _, channel, _) = try await context.pair()
      let stranger = try await context.online(try await context.user("carol"))
      for id in [ChannelID("no-such-channel"), ChannelID("000000000000000000000000")] {
        try await context.expectError("notFound for an unknown channel") { _ = try await alice.channel(id) } where: {
          $0 == .notFound || $0 == .invalidArgument(field: "channel")
        }
      }
      try await context.expectError("permission or notFound for a foreign channel") {
        _ = try await stranger.history(of: channel.id, .newest(5))
      } where: {
        if case .permission = $0 { true } else { $0 == .notFound }
      }
    },
  ]

  private static func activity(_ channel: Channel) -> Int64 {
    (channel.lastMessage?.createdAt ?? channel.createdAt)?.milliseconds ?? 0
  }
}
