import ChatCache
import ChatClient
import ChatJSON
import UnifiedChat

// What the cache makes of odd rows and of copies.
extension ConformanceSuite {
  static let cacheRows: [ConformanceCase] = [
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
      let found = try await fresh.searchCache(CacheSearch("twice")).items
      try context.expectEqual(found.map(\.id), [ids[0]], "what is found")
      guard context.has(.messageRecall) else { return }
      // Whoever takes one back takes both back: the other copy must not come to light.
      let writer = try await context.online(users.a, "writer")
      let shown = try context.need(try await context.newest(5, of: channel.id, by: writer).first { $0.id == ids[0] }, "the message")
      _ = try await context.whileTimePasses { try await writer.recall(shown) }
      for reader in [fresh, writer, try await context.online(users.b, "late")] {
        try await context.eventually("nobody reads it any more") {
          try await reader.history(of: channel.id, .newest(5)).messages.allSatisfy(\.isRecalled)
        }
      }
      let left = try await context.serverMessages(channel.id).filter { !$0.isRecalled }
      try context.expectEqual(left.map(\.content), [], "what the service still shows")
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
      let words = kept.map(\.content).filter { if case .text = $0 { true } else { false } }
      try context.expect(words.count < 30, "something was evicted", observed: "\(words.count) of 30 kept")
      try context.expectEqual(words, texts.suffix(words.count).map { .text($0) }, "the newest stay")
      // What went is a gap: no range claims it.
      if let lowest = kept.compactMap(\.position).min() {
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
      let (alice, bob, channel, _) = try await context.pair()
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
    },
  ]
}
