import ChatCache
import ChatClient
import ChatJSON
import UnifiedChat

// What a device makes of its own rows when it comes back, and what excess costs.
extension ConformanceSuite {
  static let returning: [ConformanceCase] = [
    ConformanceCase(
      "RECON-12", "Channel rows that are worth nothing are fetched again, messages are kept.", .s2,
      needs: [.channelQuery], hooks: ["fail", "journal"], tags: [.wire]
    ) { context in
      let (alice, bob, first, users) = try await context.pair()
      var made = [first.id]
      for name in ["second", "third", "left"] {
        made.append(try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: name)).id)
      }
      let channels = made
      for channel in channels {
        try await context.sees(bob, channel)
        try await context.say(alice, channel, 4)
        try await context.shows(bob, channel, (0..<4).map { .text("\($0)") }, "bob")
      }
      let probe = context.probe(bob)
      await bob.suspend()
      // Whatever the device believes of its channels is wrong now, and no log of changes tells it so.
      let device = try context.details(of: bob)
      let other = try LocalCache(device.identity, at: .directory(device.folder))
      try other.write { session throws(ChatError) in
        for channel in try session.channels() {
          var wrong = channel
          wrong.name = "wrong"
          wrong.customData = JSONText(unchecked: #"{"wrong":true}"#)
          _ = try session.merge(wrong)
        }
      }
      other.close()
      if context.has(.memberRemove) { try await alice.removeMembers([users.b.id], from: channels[3]) }
      let added = try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: "added")).id
      try await context.inject(
        FaultRule(
          "changelog", user: users.b.id, times: nil, action: .fail(.invalidArgument(field: "token")), mustFire: false))
      let mark = await context.mark()
      await bob.resume()
      let isRemoved = context.has(.memberRemove)
      try await context.eventually("the rows are those of the service") {
        let rows = try await bob.cachedChannels(ChannelQuery(includesHidden: true, limit: .max))
        let names = Dictionary(rows.map { ($0.id, $0.name) }) { one, _ in one }
        return names[channels[0]] == first.name && names[channels[1]] == "second" && names[channels[2]] == "third"
          && names[added] == "added" && (names[channels[3]] == nil) == isRemoved
          && rows.allSatisfy { $0.customData?.text.contains("wrong") != true }
      }
      try await context.idle()
      for channel in channels.prefix(3) {
        let kept = try await bob.searchCache(CacheSearch("3")).items.filter { $0.channel == channel }
        try context.expectEqual(kept.count, 1, "messages kept")
      }
      // One look behind the newest known message of each at the most: what is there is not read again.
      let asked = try await context.requests("history", by: users.b.id, since: mark).count
      try context.expect(asked <= channels.count + 1, "no history read again", observed: "\(asked) requests")
      for channel in channels.prefix(3) {
        try context.expect(
          probe.received(in: channel).isEmpty && probe.backfilled(in: channel) == 0, "no message told again")
        try await context.shows(bob, channel, (0..<4).map { .text("\($0)") }, "bob")
      }
    },
    ConformanceCase(
      "RECON-13", "What lasts is learnt once, what passes is not.", .s3, needs: [.channelQuery], tags: [.wire]
    ) { context in
      let (alice, bob, first, users) = try await context.pair()
      let c = try await context.user("carol")
      var made = [first.id]
      for number in 1..<12 {
        made.append(try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: "c\(number)")).id)
      }
      let channels = made
      for channel in channels { try await context.sees(bob, channel) }
      let probe = context.probe(bob)
      await bob.suspend()
      // Notices that last.
      for channel in channels {
        try await context.whileTimePasses { try await alice.invite([c.id], to: channel) }
        if context.has(.channelCustomData) {
          for name in ["for a moment", "renamed"] {
            try await context.whileTimePasses {
              _ = try await alice.updateChannel(channel, ChannelChanges(name: name))
            }
          }
        }
      }
      // And one that does not.
      if context.has(.typing) { try await alice.setTyping(true, in: first.id) }
      await context.harness.pass(.seconds(30))
      await bob.resume()
      try await context.eventually("connected") { await bob.state == .connected }
      if context.has(.channelCustomData) {
        try await context.eventually("the last names are known") {
          let rows = try await bob.cachedChannels(ChannelQuery(includesHidden: true, limit: .max))
          return channels.allSatisfy { id in rows.first { $0.id == id }?.name == "renamed" }
        }
      }
      try await context.idle()
      for channel in channels {
        try context.expect(probe.memberJoined(c.id, in: channel) <= 1, "a member joins once")
        let names = probe.changed(channel).map(\.name)
        try context.expect(!names.contains("for a moment"), "nothing of what was for a moment", observed: "\(names)")
        try context.expect(
          zip(probe.changed(channel), probe.changed(channel).dropFirst()).allSatisfy { $0 != $1 }, "no change told twice",
          observed: "\(names)")
        try context.expectEqual(probe.joined(channel).count, 0, "told as new")
      }
      try context.expectEqual(probe.typing(by: users.a.id, in: first.id), [], "typing of long ago")
      if context.has(.memberList) {
        let members = try await context.wholeMembers(of: channels[5], by: bob)
        try context.expectEqual(Set(members.map(\.user.id)), [users.a.id, users.b.id, c.id], "the members")
      }
    },
    ConformanceCase(
      "LIMIT-06", "A server that stays silent about excess is not waited for in vain.", .s2,
      needs: [.messageIdempotentSend], hooks: ["drop", "journal", "virtualTime"], tags: [.wire]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(alice)
      // The sixth in a minute is not answered, nor whatever comes in the rest of it.
      try await context.inject(FaultRule("send", user: users.a.id, nth: 6, times: 2, action: .drop))
      let mark = await context.mark()
      let start = context.harness.clock.now
      for number in 0..<10 { _ = try await alice.enqueue(.text("\(number)"), to: channel.id) }
      try await context.eventually("all are sent", within: .seconds(300), step: .milliseconds(500)) {
        probe.sent(in: channel.id).count == 10
      }
      let took = context.harness.clock.now - start
      try context.expect(took <= .seconds(180), "an end within three minutes", observed: "\(took)")
      try context.expectEqual(probe.failed(in: channel.id).count, 0, "failures that reach the app")
      let tries = try await context.requests("send", by: users.a.id, since: mark)
      try context.expect((12...14).contains(tries.count), "two tries more than messages", observed: "\(tries.count)")
      // What is not answered is given time, and the next try too.
      let silent = Array(tries[5...7])
      for (one, next) in zip(silent, silent.dropFirst()) {
        try context.expect(next.time - one.time >= .seconds(5), "a pause before the next try", observed: "\(next.time - one.time)")
      }
      let expected = (0..<10).map { MessageContent.text("\($0)") }
      try context.expectEqual(try await context.serverMessages(channel.id).map(\.content), expected, "at the service")
      try await context.shows(bob, channel.id, expected, "bob")
    },
    ConformanceCase(
      "LIMIT-07", "Custom data at the limit, one below, one above.", .s2, needs: [.channelCustomData]
    ) { context in
      let (alice, _, channel, users) = try await context.pair()
      @Sendable func data(_ size: Int) -> JSONText {
        JSONText(unchecked: #"{"k":""# + String(repeating: "x", count: size - 8) + #""}"#)
      }
      @Sendable func put(_ size: Int) async throws {
        _ = try await alice.updateChannel(channel.id, ChannelChanges(customData: data(size)))
      }
      func kept(_ size: Int, _ what: String) async throws {
        let fresh = try await context.online(users.b, "fresh-\(what.utf8.count)-\(size)")
        try context.expectBytes(
          try await context.channel(channel.id, by: fresh).customData?.text, data(size).text, "\(what), \(size) bytes")
      }
      guard let frame = context.harness.limits["channel.frame.bytes"] else {
        // Nobody says where the end is: what an app may want to keep there is kept.
        try await context.whileTimePasses { try await put(20_000) }
        return try await kept(20_000, "without a limit")
      }
      // What is around it in the frame belongs to the vendor: the largest that is taken is looked for.
      var (fits, above) = (16, Int(frame))
      while above - fits > 1 {
        let middle = (fits + above) / 2
        do {
          try await context.whileTimePasses { try await put(middle) }
          fits = middle
        } catch let error as ChatError {
          guard case .tooLarge = error.kind else { throw error }
          above = middle
        }
      }
      try context.expect(fits > Int(frame) / 2, "most of a frame for the data", observed: "\(fits) of \(frame)")
      for size in [fits - 1, fits] {
        try await context.whileTimePasses { try await put(size) }
        try await kept(size, "at the limit")
      }
      try await context.idle()
      let mark = await context.mark()
      let refused = above
      let error = try await context.expectErrorInTime("tooLarge(\(frame), bytes)") { try await put(refused) } where: {
        $0 == .tooLarge(limit: frame, unit: .bytes)
      }
      try context.expect(!error.isRetryable, "a final refusal", observed: "\(error.retry)")
      if context.offers("journal") {
        try context.expectEqual(await context.framesOfClients(since: mark), 0, "frames of what is too large")
      }
      try await kept(fits, "the old value")
      try context.expectEqual(await alice.state, .connected, "the state")
    },
  ]
}
