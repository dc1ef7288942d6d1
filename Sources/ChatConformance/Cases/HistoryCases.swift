import ChatCache
import ChatClient
import UnifiedChat

extension ConformanceSuite {
  static let history: [ConformanceCase] = [
    ConformanceCase(
      "HIST-01", "Paging back returns everything once.", .s1, needs: [.historyBackward]
    ) { context in
      let (channel, reader, sent) = try await filled(context, 230)
      for page in [1, 7, 50, 100] {
        let read = try await context.wholeHistory(of: channel, by: reader, page: page)
        try context.expectEqual(read.map(\.id), sent, "all messages by pages of \(page)")
      }
      let user = try context.details(of: reader).user
      let bare = try await context.harness.makeAdapter(TestDevice(name: "hist-01-bare", clock: context.harness.clock))
      _ = try await bare.connect(as: user.id, credential: user.credential)
      let read = try await context.wholeHistory(of: channel, by: bare, page: 50)
      await bare.disconnect()
      try context.expectEqual(read.filter { !$0.isNotice }.map(\.id), sent, "all messages without the client's help")
    },
    ConformanceCase("HIST-02", "Paging forward mirrors paging back.", .s1, needs: [.historyForward]) { context in
      let (channel, reader, sent) = try await filled(context, 130)
      for page in [7, 50, 100] {
        let read = try await context.wholeHistory(of: channel, by: reader, page: page, direction: .newer)
        try context.expectEqual(read.map(\.id), sent, "all messages by pages of \(page)")
      }
    },
    ConformanceCase(
      "HIST-04", "Many messages in one millisecond page completely.", .s1, needs: [.historyBackward]
    ) { context in
      // The virtual clock stands still while they are sent, so that all have one time.
      let (channel, reader, sent) = try await filled(context, 150, keepingTime: true)
      let read = try await context.wholeHistory(of: channel, by: reader, page: 20)
      try context.expectEqual(read.map(\.id), sent, "all messages, backward")
      if context.capabilities.has(.historyForward) {
        let forward = try await context.wholeHistory(of: channel, by: reader, page: 20, direction: .newer)
        try context.expectEqual(forward.map(\.id), sent, "all messages, forward")
      }
      let second = try await context.online(try context.details(of: reader).user, "second")
      let again = try await context.wholeHistory(of: channel, by: second, page: 7)
      try context.expectEqual(again.map(\.id), sent, "all messages, on another device by other pages")
    },
    ConformanceCase("HIST-07", "Cursors are exclusive, anchors inclusive only when asked.", .s2) { context in
      let (channel, reader, sent) = try await filled(context, 12)
      let all = try await context.wholeHistory(of: channel, by: reader, page: 50)
      try context.expectEqual(all.map(\.id), sent, "all messages")
      guard let anchor = all[6].position else { throw context.failure("a position", "none") }
      let before = try await reader.history(
        of: channel, HistoryQuery(anchor: .position(anchor), direction: .older, limit: 3))
      try context.expectEqual(before.messages.map(\.id), Array(sent[3..<6]), "three before, exclusive")
      let inclusive = try await reader.history(
        of: channel, HistoryQuery(anchor: .position(anchor), direction: .older, limit: 3, isInclusive: true))
      try context.expectEqual(inclusive.messages.map(\.id), Array(sent[4..<7]), "three up to and with the anchor")
      let user = try context.details(of: reader).user
      let bare = try await context.harness.makeAdapter(TestDevice(name: "hist-07-bare", clock: context.harness.clock))
      _ = try await bare.connect(as: user.id, credential: user.credential)
      let page = try await bare.history(
        of: channel, HistoryQuery(anchor: .position(anchor), direction: .older, limit: 3))
      await bare.disconnect()
      try context.expectEqual(page.messages.map(\.id), Array(sent[3..<6]), "exclusive without the client's help")
      guard context.capabilities.has(.historyForward) else { return }
      let after = try await reader.history(
        of: channel, HistoryQuery(anchor: .position(anchor), direction: .newer, limit: 3))
      try context.expectEqual(after.messages.map(\.id), Array(sent[7..<10]), "three after, exclusive")
    },
    ConformanceCase("HIST-08", "Limits are mine, pages are the vendor's.", .s2) { context in
      let (channel, reader, sent) = try await filled(context, 230)
      let whole = try await reader.history(of: channel, .newest(1000))
      try context.expectEqual(whole.messages.map(\.id), sent, "a limit above any page")
      try context.expectEqual(whole.older, nil, "nothing is older")
      let one = try await reader.history(of: channel, .newest(1))
      try context.expectEqual(one.messages.map(\.id), [sent.last ?? nil], "a limit of one")
      for limit in [0, -1] {
        try await context.expectError("invalidArgument(limit) for \(limit)") {
          _ = try await reader.history(of: channel, .newest(limit))
        } where: {
          $0 == .invalidArgument(field: "limit")
        }
      }
    },
    ConformanceCase("HIST-09", "An empty channel has an end on both sides.", .s2) { context in
      let (alice, _, channel, _) = try await context.pair()
      let page = try await alice.history(of: channel.id, .newest(20))
      try context.expectEqual(page.messages.count, 0, "messages")
      try context.expect(page.older == nil && page.newer == nil, "an end on both sides")
    },
    ConformanceCase("HIST-03", "A window around a message.", .s2, needs: [.historyForward]) { context in
      let (channel, reader, sent) = try await filled(context, 30)
      let all = try await context.wholeHistory(of: channel, by: reader, page: 50)
      for index in [0, 15, 29] {
        let position = try context.need(all[index].position, "a position")
        let before = try await reader.history(
          of: channel, HistoryQuery(anchor: .position(position), direction: .older, limit: 4))
        let from = try await reader.history(
          of: channel, HistoryQuery(anchor: .position(position), direction: .newer, limit: 5, isInclusive: true))
        let window = (before.messages + from.messages).map(\.id)
        try context.expectEqual(
          window, Array(sent[max(0, index - 4)..<min(30, index + 5)]), "the window around \(index)")
      }
    },
    ConformanceCase("HIST-05", "History read while messages arrive is complete and has no doubles.", .s1) { context in
      let (alice, _, channel, users) = try await context.pair()
      let old = try await context.say(alice, channel.id, 60)
      let reader = try await context.online(users.b, "reader")
      let probe = context.probe(reader)
      var walked: [Message] = []
      var query = HistoryQuery.newest(10)
      var fresh: [Message] = []
      for _ in 0..<20 {
        let now = query
        let page = try await context.whileTimePasses { try await reader.history(of: channel.id, now) }
        walked = page.messages + walked
        fresh += try await context.say(alice, channel.id, ["new \(fresh.count)", "new \(fresh.count + 1)"])
        guard let next = page.older else { break }
        query.anchor = .cursor(next)
      }
      try context.expectEqual(walked.map(\.id), old.map(\.id), "the walk")
      let (total, expected) = (fresh.count, fresh.map(\.id))
      try await context.eventually("the new ones came") { probe.received(in: channel.id).count == total }
      try context.expectEqual(probe.received(in: channel.id).map(\.id), expected, "what came live")
    },
    ConformanceCase("HIST-06", "A cursor keeps its meaning.", .s1, needs: [.historyBackward]) { context in
      let (alice, _, channel, users) = try await context.pair()
      let sent = try await context.say(alice, channel.id, 20)
      let reader = try await context.online(users.b, "reader")
      let page = try await context.whileTimePasses { try await reader.history(of: channel.id, .newest(10)) }
      try context.expectEqual(page.messages.map(\.id), sent.suffix(10).map(\.id), "the first page")
      let cursor = try context.need(page.older, "a cursor")
      func olderStartsRight(_ chat: Chat, _ when: String) async throws {
        let query = HistoryQuery(anchor: .cursor(cursor), direction: .older, limit: 3)
        let older = try await context.whileTimePasses { try await chat.history(of: channel.id, query) }
        try context.expectEqual(older.messages.map(\.id), sent[7..<10].map(\.id), "older, \(when)")
      }
      try await olderStartsRight(reader, "at once")
      try await context.say(alice, channel.id, 15)
      try await olderStartsRight(reader, "after new messages")
      if context.has(.messageRecall) {
        _ = try await alice.recall(sent[10])
        try await context.quiet()
        try await olderStartsRight(reader, "after its message was recalled")
      }
      await reader.disconnect()
      let again = try await context.online(users.b, "reader")
      try await olderStartsRight(again, "after a restart")
      await context.harness.pass(.seconds(3600))
      let other = try await context.online(users.b, "other")
      try await olderStartsRight(other, "on another device")
    },
    ConformanceCase(
      "HIST-10", "A page of nothing visible makes progress.", .s1, needs: [.historyBackward, .messageRecall]
    ) { context in
      let (alice, _, channel, users) = try await context.pair()
      let first = try await context.say(alice, channel.id, ["first"])
      let gone = try await context.say(alice, channel.id, 40)
      let last = try await context.say(alice, channel.id, ["last"])
      for message in gone { _ = try await context.whileTimePasses { try await alice.recall(message) } }
      let reader = try await context.online(users.b, "reader")
      let read = try await context.wholeHistory(of: channel.id, by: reader, page: 7)
      try context.expectEqual(
        read.filter { !$0.isRecalled }.map(\.id), [first[0].id, last[0].id], "what is visible")
      try context.expect(read.count == 2 || read.count == 42, "all tombstones or none", observed: "\(read.count)")
    },
    ConformanceCase("HIST-12", "A random walk never returns a seen message.", .s1, needs: [.historyBackward]) { context in
      let (channel, reader, sent) = try await filled(context, 80)
      var random = Dice(seed: context.harness.seed)
      let hasForward = context.has(.historyForward)
      let start = try await context.whileTimePasses { try await reader.history(of: channel, .newest(5)) }
      // From the middle outwards where both ways are open, else back from the end.
      var seen = start.messages.map(\.id)
      var (older, newer) = (start.older, start.newer)
      if hasForward {
        let all = try await context.wholeHistory(of: channel, by: reader, page: 40)
        let position = try context.need(all[40].position, "a position")
        let middle = try await reader.history(
          of: channel, HistoryQuery(anchor: .position(position), direction: .older, limit: 1, isInclusive: true))
        seen = middle.messages.map(\.id)
        (older, newer) = (middle.older, middle.newer)
      }
      for _ in 0..<200 where older != nil || newer != nil {
        let goesBack = newer == nil || (older != nil && random.next() % 2 == 0)
        guard let cursor = goesBack ? older : newer else { break }
        let query = HistoryQuery(
          anchor: .cursor(cursor), direction: goesBack ? .older : .newer, limit: Int(random.next() % 9) + 1)
        let page = try await context.whileTimePasses { try await reader.history(of: channel, query) }
        for message in page.messages {
          try context.expect(!seen.contains(message.id), "a message that was not seen", observed: "\(message.content)")
        }
        seen = goesBack ? page.messages.map(\.id) + seen : seen + page.messages.map(\.id)
        if goesBack { older = page.older } else { newer = page.newer }
      }
      try context.expectEqual(seen, sent, "all messages at the end")
    },
    ConformanceCase("HIST-14", "Cleared history stays cleared.", .s2, needs: [.historyClear]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let tablet = try await context.online(users.a, "tablet")
      try await context.say(bob, channel.id, ["old 1", "old 2", "old 3"])
      for device in [alice, tablet] {
        try await context.shows(device, channel.id, [.text("old 1"), .text("old 2"), .text("old 3")])
      }
      try await alice.clearHistory(of: channel.id)
      try await context.shows(alice, channel.id, [], "alice")
      // A vendor may tell other devices nothing: they learn of it with their next view of the channel.
      _ = try await context.channel(channel.id, by: tablet)
      try await context.shows(tablet, channel.id, [], "alice's tablet")
      try await context.shows(bob, channel.id, [.text("old 1"), .text("old 2"), .text("old 3")], "bob")
      try context.expectEqual(try await alice.searchCache(.init("old")).items.count, 0, "what a search finds")
      try await context.say(bob, channel.id, ["new"])
      for device in [alice, tablet] { try await context.shows(device, channel.id, [.text("new")]) }
      let fresh = try await context.online(users.a, "fresh")
      try await context.shows(fresh, channel.id, [.text("new")], "a fresh device")
      // The service holds for others what this user has cleared.
      context.exempt("G3")
    },
  ]

  /// A channel with so many messages, a reader without a cache of it, and the ids in the order of sending.
  static func filled(_ context: CaseContext, _ count: Int, keepingTime: Bool = false) async throws
    -> (channel: ChannelID, reader: Chat, sent: [MessageID?])
  {
    let (alice, _, channel, users) = try await context.pair()
    let probe = context.probe(alice, readsCache: false)
    for number in 0..<count {
      _ = try await alice.enqueue(.text("\(number)"), to: channel.id)
      if !keepingTime, number % 5 == 0 { await context.harness.pass(.milliseconds(1)) }
    }
    // As long as they go out without it, no time passes.
    for _ in 0..<500 where probe.sent(in: channel.id).count < count { try await context.quiet(2) }
    try await context.eventually("all are sent", within: .seconds(1800), step: .seconds(1)) {
      probe.sent(in: channel.id).count == count
    }
    let sent = probe.sent(in: channel.id).map(\.id)
    try context.expectEqual(
      probe.sent(in: channel.id).map(\.content), (0..<count).map { .text("\($0)") }, "sent in order")
    return (channel.id, try await context.online(users.b, "reader"), sent)
  }
}
