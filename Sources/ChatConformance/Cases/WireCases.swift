import ChatCache
import ChatClient
import ChatJSON
import Foundation
import UnifiedChat

// Odd bytes from the server: frames are changed on their way to a client, at the places that the vendor's facts name.
extension ConformanceSuite {
  static let wire: [ConformanceCase] = [
    ConformanceCase(
      "RECV-07", "Unknown JSON members harm nothing.", .s1, hooks: ["patch"], tags: [.wire]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(bob)
      try await context.changePush(
        to: users.b.id, in: channel.id, ["unknown": ["deep": [1, "x", nil, ["more": true]]]])
      try await context.say(alice, channel.id, ["with unknown members"])
      try await context.eventually("it is told") { probe.received(in: channel.id).count == 1 }
      try context.expectEqual(probe.received(in: channel.id).map(\.content), [.text("with unknown members")], "the text")
      try context.expectEqual(await bob.state, .connected, "the connection")
    },
    ConformanceCase(
      "RECV-14", "No number from a server can stop the process.", .s1, hooks: ["patch"], tags: [.wire]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      context.exempt("G3")
      context.exempt("G6")
      let odd: [JSONValue?] = [
        .int(.max), .int(.min), .int(-1), .int(0), try JSONValue(parsing: "1e308"), try JSONValue(parsing: "1.5"), .string("12"), .bool(true), .null,
        Optional<JSONValue>.none,
      ]
      for place in ["time", "id"] where context.harness.paths[place] != nil {
        for value in odd {
          try await context.changePush(to: users.b.id, in: channel.id, [place: value])
          try await context.say(alice, channel.id, ["odd \(place)"])
          try await context.quiet(6)
          try await context.removeRules()
          // Whatever was made of it: the next message arrives, perhaps over a new link.
          let next = try await context.say(alice, channel.id, ["next"])[0].id
          let fresh = context.probe(bob, readsCache: false)
          try await context.eventually("the link stands", within: .seconds(120), step: .seconds(1)) {
            await bob.state == .connected
          }
          let last = try await context.say(alice, channel.id, ["last"])[0].id
          try await context.eventually("the next message is told") {
            fresh.events.contains { event in
              if case .messageReceived(let message) = event.kind { message.id == last || message.id == next }
              else if case .messagesBackfilled = event.kind { true } else { false }
            }
          }
        }
      }
      try context.expectEqual(await alice.state, .connected, "the other one")
    },
    ConformanceCase(
      "RECV-09", "A malformed push harms only itself.", .s1, hooks: ["truncateBody"], tags: [.wire]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      context.exempt("G3")
      for size in [0, 1, 7, 40] {
        try await context.inject(
          FaultRule("push", user: users.b.id, phase: .beforePush, action: .truncateBody(size)))
        try await context.say(alice, channel.id, ["cut at \(size)"])
        try await context.quiet(6)
        let probe = context.probe(bob)
        try await context.eventually("the link stands", within: .seconds(120), step: .seconds(1)) {
          await bob.state == .connected
        }
        let next = try await context.say(alice, channel.id, ["whole"])[0].id
        try await context.eventually("the next message is told") {
          probe.received(in: channel.id).contains { $0.id == next } || probe.backfilled(in: channel.id) > 0
        }
      }
    },
    ConformanceCase(
      "TIME-03", "Odd timestamps are numbers.", .s1, hooks: ["patch"], tags: [.wire]
    ) { context in
      guard context.harness.paths["time"] != nil else { throw CaseSkip(reason: .rule("times stand elsewhere")) }
      let (alice, bob, channel, users) = try await context.pair()
      context.exempt("G3")
      context.exempt("G6")
      for value in [0, -1, 1, 253_402_300_799_000, Int64.max, 1_700_000_000] as [Int64] {
        try await context.changePush(to: users.b.id, in: channel.id, ["time": .int(value)])
        try await context.say(alice, channel.id, ["at \(value)"])
        try await context.quiet(4)
        try await context.removeRules()
      }
      try context.expectEqual(await bob.state, .connected, "the connection")
      let fresh = try await context.online(users.b, "fresh")
      let read = try await context.wholeHistory(of: channel.id, by: fresh, page: 4)
      try context.expectEqual(read.count, 6, "messages on a fresh device")
    },
    ConformanceCase(
      "SEC-07", "A message for another user is not accepted.", .s1, hooks: ["patch", "raw", "journal"], tags: [.wire]
    ) { context in
      // The service holds what this device throws away.
      context.exempt("G3")
      let (chats, users, channel) = try await context.group("alice", "bob")
      let (alice, bob) = (chats[0], chats[1])
      let c = try await context.user("carol")
      let carol = try await context.online(c)
      let left = try await alice.createChannel(ChannelDraft(kind: .group, members: [users[1].id, c.id], name: "left"))
      let foreign = try await alice.createChannel(ChannelDraft(kind: .group, members: [c.id], name: "never bob's"))
      for chat in [bob, carol] { try await context.sees(chat, left.id) }
      try await context.sees(carol, foreign.id)
      try await context.say(alice, left.id, ["before"])
      try await context.shows(bob, left.id, [.text("before")], "bob")
      let probe = context.probe(bob)
      if context.has(.memberRemove) {
        try await context.whileTimePasses { try await alice.removeMembers([users[1].id], from: left.id) }
      } else {
        try await context.whileTimePasses { try await bob.leave(left.id) }
      }
      try await context.eventually("bob is told") { probe.left(left.id).count == 1 }
      // Frames that the service sends to somebody else: of a channel that bob left, and of one that was never his.
      for place in [left.id, foreign.id] {
        try await context.idle()
        let mark = await context.mark()
        try await context.say(alice, place, ["not for bob"])
        let frame = try await context.pushed(to: c.id, saying: "not for bob", since: mark)
        try await context.inject(
          FaultRule(
            "push", user: users[1].id, channel: channel.id, phase: .beforePush,
            action: frame.isText ? .raw(String(decoding: frame.bytes, as: UTF8.self)) : .rawBytes(frame.bytes)))
        try await context.stillHears(bob, alice, channel.id)
        try await context.idle()
        try await context.removeRules()
      }
      // A frame of bob's own channel that is addressed to alice.
      if context.harness.paths["peer"] != nil {
        try await context.changePush(to: users[1].id, in: channel.id, ["peer": .string(users[0].id.rawValue)])
        try await context.say(alice, channel.id, ["not for bob: peer"])
        try await context.quiet()
        try await context.removeRules()
        try await context.stillHears(bob, alice, channel.id)
      }
      let told = probe.events.compactMap { event -> String? in
        if case .messageReceived(let message) = event.kind { message.content.searchableText } else { nil }
      }
      try context.expect(!told.contains { $0.hasPrefix("not for bob") }, "bob is told nothing of it", observed: "\(told)")
      try context.expectEqual(try await bob.searchCache(CacheSearch("not for bob")).items.map(\.content), [], "what is cached")
      let rows = try await bob.cachedChannels(ChannelQuery(includesHidden: true, limit: .max)).filter { $0.myState != .left }
      try context.expect(
        !rows.contains { $0.id == left.id || $0.id == foreign.id }, "no channel that is not bob's", observed: "\(rows.map(\.id))")
      // A frame that names somebody else as its receiver is nobody's news; what names a channel is.
      if context.harness.paths["peer"] == nil {
        try context.expect(context.log.contains { $0.contains("dropped") }, "a line of the log about it")
      }
    },
    ConformanceCase(
      "ORDER-04", "Sequence beats time.", .s1, needs: [.historySequence, .destinationTime]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      try await context.say(alice, channel.id, ["first"])
      let destination = try await context.harness.makeDestination()
      let old = Message(
        channel: channel.id, id: "order-04-old", sender: users.a.id, createdAt: Timestamp(milliseconds: 1_600_000_000_000),
        content: .text("imported"))
      let outcomes = try await context.whileTimePasses {
        try await destination.putMessages(
          [MessageRecord(message: old, origin: Origin(vendor: "elsewhere", id: "order-04", channel: "c"))], in: channel.id)
      }
      try context.expect(outcomes.first?.id != nil, "imported", observed: "\(outcomes)")
      try await context.say(alice, channel.id, ["last"])
      let fresh = try await context.online(users.b, "fresh")
      let read = try await context.newest(10, of: channel.id, by: fresh).filter { !$0.isNotice }
      try context.expectEqual(read.map(\.content), [.text("first"), .text("imported"), .text("last")], "the order")
      try context.expectEqual(read[1].createdAt, old.createdAt, "the time is kept")
      try context.expectEqual(await bob.state, .connected, "bob")
      // The import is told to nobody.
      context.exempt("G3")
    },
  ]

  static let invitation: [ConformanceCase] = [
    ConformanceCase(
      "MEMB-06", "Invite, accept, decline.", .s2, needs: [.memberInviteAcceptance], hooks: ["setting.invite.acceptance"]
    ) { context in
      try await context.perform(.setting("invite.acceptance"))
      let a = try await context.user("alice")
      let c = try await context.user("carol")
      let alice = try await context.online(a)
      let carol = try await context.online(c)
      let probe = context.probe(carol)
      let first = try await alice.createChannel(ChannelDraft(kind: .group, members: [c.id], name: "first"))
      let second = try await alice.createChannel(ChannelDraft(kind: .group, members: [c.id], name: "second"))
      try await context.eventually("carol is invited") {
        probe.count { if case .invited = $0 { true } else { false } } == 2
      }
      try await context.whileTimePasses { try await carol.answerInvitation(to: first.id, accept: true) }
      try await context.whileTimePasses { try await carol.answerInvitation(to: second.id, accept: false) }
      try await context.eventually("the members are right") {
        let one = try await alice.members(of: first.id, limit: 10, page: nil).items
        let two = try await alice.members(of: second.id, limit: 10, page: nil).items
        return one.contains { $0.user.id == c.id && $0.state == .joined } && !two.contains { $0.user.id == c.id }
      }
      try await context.say(carol, first.id, ["I am in"])
    },
    ConformanceCase(
      "META-03", "null, absent and empty are three things.", .s2, needs: [.channelCustomData]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let plain = try await context.channel(channel.id, by: bob)
      for text in [#"{"a":null}"#, #"{"a":""}"#, "{}"] {
        _ = try await alice.updateChannel(channel.id, ChannelChanges(customData: JSONText(unchecked: text)))
        let fresh = try await context.online(users.b, "fresh\(text.utf8.count)")
        let read = try await context.channel(channel.id, by: fresh).customData
        // Nothing and the empty object may be one to the vendor, but a member that is null or "" is there.
        if text == "{}" { try context.expect(read == nil || read?.text == "{}", "empty", observed: "\(read?.text ?? "none")") } else {
          try context.expectSameJSON(read, text, "custom data")
        }
      }
      try context.expect(plain.customData == nil || plain.customData?.text == "{}", "none before")
    },
    ConformanceCase("CACHE-08", "A busy database is waited for.", .s2) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let device = try context.details(of: bob)
      let other = try LocalCache(device.identity, at: .directory(device.folder))
      let texts = (0..<10).map { "\($0)" }
      // Another process that holds the write lock for a moment, again and again.
      let holder = Thread {
        // SQLite waits in real time, so the lock is held in real time.
        for _ in 0..<10 { try? other.write { _ in Thread.sleep(forTimeInterval: 0.03) } }
      }
      holder.start()
      try await context.say(alice, channel.id, texts)
      try await context.shows(bob, channel.id, texts.map { .text($0) }, "bob")
      while !holder.isFinished { try await context.quiet(6) }
      other.close()
    },
    ConformanceCase("CONC-05", "Two processes on one cache.", .s2) { context in
      let place = context.file("shared")
      let identity = CacheIdentity(vendor: "ideal", app: "", user: "conc-05")
      let caches = try (0..<2).map { _ in try LocalCache(identity, at: .directory(place)) }
      let failures = Counter()
      let writers = caches.enumerated().map { number, cache in
        Thread {
          for row in 0..<200 {
            let time = Timestamp(milliseconds: Int64(row * 2 + number))
            let message = Message(
              channel: "c", id: MessageID("m\(number)-\(row)"), sender: "somebody",
              position: MessagePosition(time: time, number: Int64(number)), createdAt: time, content: .text("\(row)"))
            do { try cache.write { session throws(ChatError) in _ = try session.merge(message) } } catch { failures.add() }
          }
        }
      }
      for writer in writers { writer.start() }
      while !writers.allSatisfy(\.isFinished) { try await context.quiet(6) }
      try context.expectEqual(failures.value, 0, "errors")
      for cache in caches {
        let count = try cache.read { session throws(ChatError) in
          try session.messages(
            in: "c", .newer, of: .lowest, inclusive: true, within: CachedRange(low: .lowest, high: .highest), limit: .max
          ).count
        }
        try context.expectEqual(count, 400, "rows")
        cache.close()
      }
    },
    ConformanceCase("CONC-06", "Reads during writes see whole changes.", .s2) { context in
      let place = context.file("batches")
      let identity = CacheIdentity(vendor: "ideal", app: "", user: "conc-06")
      let writer = try LocalCache(identity, at: .directory(place))
      let reader = try LocalCache(identity, at: .directory(place))
      let failures = Counter()
      let writing = Thread {
        for batch in 1...20 {
          do {
            try writer.write { session throws(ChatError) in
              for row in 0..<20 {
                let time = Timestamp(milliseconds: Int64(row))
                var message = Message(
                  channel: "c", id: MessageID("m\(row)"), sender: "somebody",
                  position: MessagePosition(time: time, number: 1), createdAt: time, content: .text("batch \(batch)"))
                message.editedAt = Timestamp(milliseconds: Int64(1000 + batch))
                _ = try session.merge(message)
              }
            }
          } catch { failures.add() }
        }
      }
      writing.start()
      var reads = 0
      while !writing.isFinished || reads < 20 {
        let texts = try reader.read { session throws(ChatError) in
          try session.messages(
            in: "c", .newer, of: .lowest, inclusive: true, within: CachedRange(low: .lowest, high: .highest), limit: .max
          ).map(\.content)
        }
        try context.expect(Set(texts).count <= 1, "one batch in a page", observed: "\(Set(texts))")
        reads += 1
        await Task.yield()
      }
      try context.expectEqual(failures.value, 0, "errors")
      writer.close()
      reader.close()
    },
    ConformanceCase("HIST-11", "Very many messages stay readable from anywhere.", .s2, tags: [.stress]) { context in
      let cache = try LocalCache(
        CacheIdentity(vendor: "ideal", app: "", user: "hist-11"), at: .directory(context.file("many")))
      let total = 200_000
      for start in stride(from: 0, to: total, by: 2000) {
        try cache.write { session throws(ChatError) in
          for number in start..<start + 2000 {
            let time = Timestamp(milliseconds: Int64(number / 3))
            _ = try session.merge(
              Message(
                channel: "c", id: MessageID("m\(number)"), sender: "somebody",
                position: MessagePosition(time: time, number: Int64(number)), createdAt: time, content: .text("\(number)")))
          }
          if start == 0 { try session.cover(CachedRange(low: .lowest, high: .highest), in: "c") }
        }
      }
      var random = Dice(seed: context.harness.seed)
      for _ in 0..<500 {
        let place = Int(random.next() % UInt64(total - 60)) + 55
        let position = MessagePosition(time: Timestamp(milliseconds: Int64(place / 3)), number: Int64(place))
        let page = try cache.read { session throws(ChatError) in
          try session.messages(
            in: "c", .older, of: position, within: CachedRange(low: .lowest, high: .highest), limit: 50)
        }
        try context.expectEqual(page.map(\.content), (place - 50..<place).map { .text("\($0)") }, "the page before \(place)")
      }
      cache.close()
    },
  ]
}

extension CaseContext {
  /// The next push of `channel` to a user carries other values at these named places; nil removes one. Places that the
  /// vendor does not have are left alone; skips the case when it has none.
  func changePush(to user: UserID, in channel: ChannelID, _ changes: [String: JSONValue?]) async throws {
    var places: [String: JSONValue?] = [:]
    for (name, value) in changes {
      guard let path = harness.paths[name] else { continue }
      places.updateValue(value, forKey: place(path, in: channel))
    }
    guard !places.isEmpty else { throw CaseSkip(reason: .rule("the vendor has no such place")) }
    try await inject(FaultRule("push", user: user, phase: .beforePush, action: .patch(places)))
  }
}
