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
      let listed = try await context.wholeList(of: alice, page: 7)
      try context.expectEqual(listed.count, made.count, "channels listed")
      try context.expectEqual(Set(listed.map(\.id)), Set(made), "the channels listed")
      let expected = listed.sorted { left, right in
        let (l, r) = (left.activity, right.activity)
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
    ConformanceCase(
      "CHAN-02", "Simultaneous creation of a direct channel makes one.", .s1, needs: [.channelDirect]
    ) { context in
      let a = try await context.user("alice")
      let alice = try await context.online(a)
      for number in 0..<6 {
        let b = try await context.user("bob\(number)")
        let bob = try await context.online(b)
        async let first = alice.createChannel(.direct(with: b.id))
        async let second = bob.createChannel(.direct(with: a.id))
        let ids = try await [first.id, second.id]
        try context.expectEqual(ids[0], ids[1], "the id for both, round \(number)")
      }
    },
    ConformanceCase(
      "CHAN-05", "Changing the members of a distinct group follows the declared rule.", .s2,
      needs: [.channelGroupDistinct]
    ) { context in
      let (chats, users, _) = try await context.group("alice", "bob", "carol", "dora")
      let draft = ChannelDraft(kind: .group, members: [users[1].id, users[2].id], isDistinct: true)
      let first = try await chats[0].createChannel(draft)
      try context.expect(first.isDistinct, "a distinct channel")
      try await chats[0].invite([users[3].id], to: first.id)
      try await context.sees(chats[3], first.id)
      let again = try await chats[0].createChannel(draft)
      if context.differs(.distinctSurvivesMemberChange) {
        try context.expectEqual(again.id, first.id, "the channel of the old members")
      } else {
        try context.expect(again.id != first.id, "a new channel for the old members")
        let changed = try await context.channel(first.id, by: chats[0])
        try context.expect(!changed.isDistinct, "the first channel is distinct no more")
      }
    },
    ConformanceCase("CHAN-06", "Creating with an unknown user fails and leaves nothing.", .s2) { context in
      let alice = try await context.online(try await context.user("alice"))
      func list() async throws -> [ChannelID] {
        context.has(.channelQuery) ? try await context.wholeList(of: alice, page: 20).map(\.id) : []
      }
      let before = try await list()
      let draft = ChannelDraft(kind: .group, members: ["chan-06-nobody-at-all"], name: "with nobody")
      if context.differs(.usersNeedNoRegistration) {
        _ = try await alice.createChannel(draft)
        return
      }
      try await context.expectError("notFound or invalidArgument(members)") { _ = try await alice.createChannel(draft) } where: {
        $0 == .notFound || $0 == .invalidArgument(field: "members")
      }
      try await context.quiet()
      try context.expectEqual(try await list(), before, "the list")
    },
    ConformanceCase(
      "CHAN-09", "Paging a list that is being reordered loses nobody.", .s1, needs: [.channelQuery]
    ) { context in
      let a = try await context.user("alice")
      let b = try await context.user("bob")
      let alice = try await context.online(a)
      let bob = try await context.online(b)
      let probe = context.probe(alice)
      var made: [ChannelID] = []
      for number in 0..<15 {
        let channel = try await alice.createChannel(
          ChannelDraft(kind: .group, members: [b.id], name: "c\(number)"))
        made.append(channel.id)
        _ = try await alice.send(.text("\(number)"), to: channel.id)
        await context.harness.pass(.milliseconds(5))
      }
      var seen: [ChannelID] = []
      var page: PageToken?
      var pages = 0
      repeat {
        let result = try await alice.channels(ChannelQuery(limit: 4), page: page)
        seen += result.items.map(\.id)
        page = result.next
        pages += 1
        if pages == 1 {
          // One that was shown, and one that is still to come.
          for moved in [result.items[3].id, made[2]] {
            try await context.sees(bob, moved)
            _ = try await context.whileTimePasses { try await bob.send(.text("again"), to: moved) }
            try await context.eventually("it is told") { probe.received(in: moved).count == 1 }
          }
          await context.harness.pass(.milliseconds(5))
        }
      } while page != nil && pages < 20
      // A channel that moved to the top while it was not shown yet is told by its message.
      let moved = Set(made.filter { !probe.received(in: $0).isEmpty })
      try context.expectEqual(Set(seen).union(moved), Set(made), "all channels, listed or told")
      try context.expectEqual(Set(seen).count, seen.count, "channels listed once")
      try context.expectEqual(
        Set(try await alice.cachedChannels(ChannelQuery(limit: .max)).map(\.id)).isSuperset(of: made), true, "all are cached")
    },
    ConformanceCase("CHAN-12", "Deletion for all closes the channel everywhere.", .s2, needs: [.channelDelete]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let tablet = try await context.online(users.a, "tablet")
      try await context.sees(tablet, channel.id)
      let probes = [alice, tablet, bob].map { context.probe($0) }
      try await alice.deleteChannel(channel.id)
      for (probe, who) in zip(probes, ["alice", "alice's tablet", "bob"]) {
        try await context.eventually("\(who) is told") {
          probe.deleted(channel.id) == 1 || !probe.left(channel.id).isEmpty
        }
      }
      try await context.quiet()
      for probe in probes { try context.expectEqual(probe.deleted(channel.id), 1, "times that it was told") }
      try await context.expectErrorInTime("notFound") { _ = try await bob.send(.text("too late"), to: channel.id) } where: {
        if case .permission = $0 { true } else { $0 == .notFound }
      }
    },
    ConformanceCase("CHAN-13", "A hidden channel comes back with its next message.", .s3, needs: [.channelHide, .channelQuery]) { context in
      let (alice, bob, channel, _) = try await context.pair()
      try await context.say(bob, channel.id, ["before"])
      try await context.shows(alice, channel.id, [.text("before")], "alice")
      try await alice.setHidden(true, channel.id)
      try context.expect(
        try await !context.wholeList(of: alice, page: 20).contains { $0.id == channel.id }, "it is not listed")
      try context.expect(
        try await context.wholeList(of: alice, page: 20, ChannelQuery(includesHidden: true)).contains { $0.id == channel.id },
        "it is listed among hidden ones")
      try await context.say(bob, channel.id, ["again"])
      try await context.eventually("it is listed again") {
        try await alice.channels(ChannelQuery(limit: 20), page: nil).items.contains { $0.id == channel.id }
      }
    },
    ConformanceCase(
      "CHAN-14", "An open channel is entered again after a reconnect.", .s1, needs: [.channelOpen],
      hooks: ["closeSocket"]
    ) { context in
      let a = try await context.user("alice")
      let b = try await context.user("bob")
      let alice = try await context.online(a)
      let bob = try await context.online(b)
      let room = try await alice.createChannel(ChannelDraft(kind: .open, name: "room"))
      _ = try await bob.join(room.id)
      _ = try await alice.join(room.id)
      let probe = context.probe(bob)
      _ = try await context.whileTimePasses { try await alice.send(.text("one"), to: room.id) }
      try await context.eventually("bob hears") { probe.received(in: room.id).count == 1 }
      try await context.perform(.cut(b.id))
      try await context.eventually("bob is back") {
        await bob.state == .connected && probe.connectionStates.contains(.connected)
      }
      _ = try await context.whileTimePasses { try await alice.send(.text("two"), to: room.id) }
      try await context.eventually("bob hears again") {
        probe.received(in: room.id).map(\.content) == [.text("one"), .text("two")]
      }
    },
    ConformanceCase(
      "CHAN-16", "A temporary channel ends at its time.", .s3, needs: [.channelTemporary], hooks: ["virtualTime"]
    ) { context in
      let a = try await context.user("alice")
      let b = try await context.user("bob")
      let alice = try await context.online(a)
      let channel = try await alice.createChannel(ChannelDraft(kind: .temporary, members: [b.id]))
      try context.expectEqual(channel.kind, .temporary, "the kind")
      try await context.say(alice, channel.id, ["while it lasts"])
      await alice.suspend()
      try await context.pass(.seconds(3 * 86_400), step: .seconds(21_600))
      await alice.resume()
      try await context.eventually("connected") { await alice.state == .connected }
      try await context.expectErrorInTime("notFound") { _ = try await alice.send(.text("too late"), to: channel.id) } where: {
        $0 == .notFound
      }
    },
    ConformanceCase(
      "CHAN-17", "A pin survives a reinstall where it is native and stays on its device elsewhere.", .s3,
      needs: [.channelPin]
    ) { context in
      let (alice, _, channel, users) = try await context.pair()
      try await alice.setPinned(true, channel.id)
      try context.expect(try await context.channel(channel.id, by: alice).isPinned, "pinned")
      let fresh = try await context.online(users.a, "fresh")
      let isPinned = try await context.channel(channel.id, by: fresh).isPinned
      try context.expectEqual(isPinned, context.capabilities[.channelPin] == .native, "pinned on a fresh device")
      try await alice.setPinned(false, channel.id)
      try context.expect(try await !context.channel(channel.id, by: alice).isPinned, "not pinned any more")
    },
    ConformanceCase("CHAN-18", "A frozen channel lets operators speak only.", .s2, needs: [.channelFreeze]) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let probe = context.probe(bob)
      try await alice.setFrozen(true, channel.id)
      try await context.eventually("bob is told") { probe.changed(channel.id).contains { $0.isFrozen } }
      let error = try await context.expectErrorInTime("permission") {
        _ = try await bob.send(.text("may I?"), to: channel.id)
      } where: {
        if case .permission = $0 { true } else { false }
      }
      try context.expect(!error.isRetryable, "a final refusal")
      try await context.say(alice, channel.id, ["operators may"])
      try await alice.setFrozen(false, channel.id)
      try await context.eventually("bob is told again") { probe.changed(channel.id).last?.isFrozen == false }
      try await context.say(bob, channel.id, ["me too"])
      try context.expectEqual(
        try await context.serverMessages(channel.id).map(\.content), [.text("operators may"), .text("me too")],
        "messages at the service")
    },
    ConformanceCase(
      "CHAN-19", "The notification level is kept per user and channel.", .s3, needs: [.channelNotificationLevel]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      try await alice.setNotificationLevel(.none, of: channel.id)
      try await context.eventually("the level is kept") {
        try await alice.channel(channel.id).notificationLevel == NotificationLevel.none
      }
      let tablet = try await context.online(users.a, "tablet")
      try context.expectEqual(
        try await context.channel(channel.id, by: tablet).notificationLevel, NotificationLevel.none, "on another device")
      let other = try await context.channel(channel.id, by: bob).notificationLevel
      try context.expect(other != NotificationLevel.none, "bob's level is his own")
      let probe = context.probe(alice)
      try await context.say(bob, channel.id, ["still arrives"])
      try await context.eventually("the message arrives") { probe.received(in: channel.id).count == 1 }
      try await alice.setNotificationLevel(.all, of: channel.id)
      try await context.eventually("and back") { try await alice.channel(channel.id).notificationLevel == .all }
    },
    ConformanceCase(
      "CHAN-20", "Channel changes made while I was away come by delta.", .s2, needs: [.channelChangelog]
    ) { context in
      let (alice, bob, first, users) = try await context.pair()
      var channels = [first.id]
      for number in 1..<12 {
        channels.append(
          try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: "c\(number)")).id)
      }
      for channel in channels { try await context.sees(bob, channel) }
      try await context.quiet()
      let probe = context.probe(bob)
      await bob.suspend()
      await context.harness.pass(.seconds(5))
      for channel in channels[1...3] { _ = try await alice.updateChannel(channel, ChannelChanges(name: "renamed")) }
      var made: [ChannelID] = []
      for name in ["new 1", "new 2"] {
        made.append(try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: name)).id)
      }
      if context.has(.channelDelete) { try await alice.deleteChannel(channels[4]) }
      if context.has(.memberRemove) { try await alice.removeMembers([users.b.id], from: channels[5]) }
      let mark = await context.mark()
      await bob.resume()
      let (all, new) = (channels, made)
      try await context.eventually("what is new is told") {
        all[1...3].allSatisfy { id in probe.changed(id).contains { $0.name == "renamed" } }
          && new.allSatisfy { probe.joined($0).count == 1 }
      }
      @Sendable func isGone(_ id: ChannelID) -> Bool { probe.deleted(id) + probe.left(id).count > 0 }
      if context.has(.channelDelete) { try await context.eventually("the deletion is told") { isGone(all[4]) } }
      if context.has(.memberRemove) { try await context.eventually("the removal is told") { isGone(all[5]) } }
      try await context.quiet()
      for id in [channels[0]] + channels[6...] {
        try context.expectEqual(probe.joined(id).count + probe.left(id).count + probe.deleted(id), 0, "events of what stayed")
        try context.expect(!probe.changed(id).contains { $0.name == "renamed" }, "no new name for what stayed")
      }
      for id in channels[1...3] { try context.expectEqual(probe.joined(id).count, 0, "a renamed channel is no new one") }
      for id in channels[4...5] { try context.expect(probe.deleted(id) + probe.left(id).count <= 1, "told once") }
      guard context.offers("journal") else { return }
      // A list in full would be read channel by channel.
      let asked = try await context.requests(since: mark).count { ["channelQuery", "changelog"].contains($0.operation) }
      try context.expect(asked <= 10, "a few requests", observed: "\(asked)")
    },
  ]
}
