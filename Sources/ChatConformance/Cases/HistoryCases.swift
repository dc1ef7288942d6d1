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
      if context.harness.capabilities.has(.historyForward) {
        let forward = try await context.wholeHistory(of: channel, by: reader, page: 20, direction: .newer)
        try context.expectEqual(forward.map(\.id), sent, "all messages, forward")
      }
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
      guard context.harness.capabilities.has(.historyForward) else { return }
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
  ]

  /// A channel with so many messages, a reader without a cache of it, and the ids in the order of sending.
  private static func filled(_ context: CaseContext, _ count: Int, keepingTime: Bool = false) async throws
    -> (channel: ChannelID, reader: Chat, sent: [MessageID?])
  {
    let (alice, _, channel, users) = try await context.pair()
    var sent: [MessageID?] = []
    for number in 0..<count {
      sent.append(try await context.whileTimePasses { try await alice.send(.text("\(number)"), to: channel.id) }.id)
      if !keepingTime, number % 5 == 0 { await context.harness.pass(.milliseconds(1)) }
    }
    return (channel.id, try await context.online(users.b, "reader"), sent)
  }
}
