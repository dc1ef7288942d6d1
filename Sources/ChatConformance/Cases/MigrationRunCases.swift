import ChatMigration
import Foundation
import Synchronization
import UnifiedChat

extension ConformanceSuite {
  static let migrationRuns: [ConformanceCase] = [
    ConformanceCase(
      "MIGR-04", "A dry run writes nothing and predicts.", .s1, needs: [.destinationSender]
    ) { context in
      let sample = try await MigrationSample(clock: context.harness.clock)
      let run = MigrationRun(
        source: sample.source, archive: context.file("planned"), destination: try await context.harness.makeDestination(),
        clock: context.harness.clock)
      let mark = await context.mark()
      let plan = try await context.whileTimePasses(within: .seconds(600)) { try await run.plan() }
      try context.expectEqual(await context.framesOfClients(since: mark), 0, "requests to the destination")
      let wanted = sample.messages.values.reduce(0) { $0 + $1.count }
      try context.expectEqual(plan.messages, wanted, "messages planned")
      try context.expectEqual(plan.channels, sample.messages.count, "channels planned")
      let report = try await context.whileTimePasses(within: .seconds(3600)) { try await run.run() }
      try context.expectEqual(report.load.messages, plan.messages, "messages written")
      try context.expectEqual(report.load.channels, plan.channels, "channels written")
    },
    ConformanceCase(
      "MIGR-05", "A second run carries only the difference.", .s2, needs: [.destinationSender, .destinationIdempotent]
    ) { context in
      let sample = try await MigrationSample(clock: context.harness.clock)
      let source = LaterSource(inner: sample.source)
      let destination = CountingDestination(try await context.harness.makeDestination())
      var options = MigrationOptions()
      options.extraction.refreshes = true
      options.extraction.rereads = true
      let run = MigrationRun(
        source: source, archive: context.file("twice"), destination: destination,
        readBack: try await context.harness.makeSource(), options: options, clock: context.harness.clock)
      try expectEqual(context, try await context.whileTimePasses(within: .seconds(3600)) { try await run.run() })
      destination.forget()
      _ = try await context.whileTimePasses(within: .seconds(3600)) { try await run.run() }
      try context.expectEqual(destination.written, [], "written when nothing changed")
      try context.expectEqual(destination.changed, [], "changed when nothing changed")
      try await compare(context, sample)
      // Three new ones, two edited, one recalled.
      await sample.write(["new 1", "new 2", "new 3"], to: "sample_1")
      source.isLater.add()
      destination.forget()
      let report = try await context.whileTimePasses(within: .seconds(3600)) { try await run.run() }
      try context.expectEqual(destination.written.sorted(), ["new 1", "new 2", "new 3"], "written by the second run")
      let channel = try await context.migrated("sample_0")
      let arrived = try await context.serverMessages(channel)
      let texts = arrived.map(\.content)
      // A destination that cannot change what it has says so.
      let isNamed = !report.exceptions.isEmpty || report.fields.contains { $0.degraded + $0.dropped > 0 }
      for (place, text) in LaterSource.edits {
        let old = (sample.messages["sample_0"] ?? [])[place].content
        try context.expect(
          texts.contains(.text(text)) && !texts.contains(old) || isNamed, "the edit arrives, or the report says so",
          observed: report.sentence)
      }
      let recalled = (sample.messages["sample_0"] ?? [])[LaterSource.recalled].content
      let isThere = texts.contains(recalled)
      try context.expect(!isThere || isNamed, "the recall arrives, or the report says so", observed: report.sentence)
      try context.expect(destination.changed.count <= 3, "nothing else is touched", observed: "\(destination.changed)")
      try context.expectEqual(
        try await context.serverMessages(try await context.migrated("sample_1")).suffix(3).map(\.content),
        ["new 1", "new 2", "new 3"].map { .text($0) }, "the new ones")
    },
    ConformanceCase(
      "MIGR-09", "Recalls and edits arrive as final state.", .s2, needs: [.sourceReadAll, .messageRecall]
    ) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let sent = try await context.say(alice, channel.id, ["stays", "recalledwords", "before the edit", "last"])
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      _ = try await alice.recall(sent[1])
      var expected: [MessageContent] = [.text("stays"), .text("before the edit"), .text("last")]
      if context.has(.messageEdit) {
        _ = try await alice.edit(sent[2], to: .text("after the edit"))
        expected[1] = .text("after the edit")
      }
      let service = IdealService(clock: context.harness.clock)
      try expectEqual(context, try await context.movedOut(to: service, "final"))
      let arrived = await service.messages(in: channel.id).map(\.message).filter { message in
        if case .system = message.content { false } else { !message.isRecalled }
      }
      try context.expectEqual(arrived.map(\.content), expected, "what arrived")
      try context.expect(!(try contains(context.file("final"), "recalledwords")), "the recalled words are in no archive")
    },
    ConformanceCase(
      "MIGR-11", "Identity maps are total, injective and reusable.", .s1, needs: [.destinationSender]
    ) { context in
      let service = IdealService(clock: context.harness.clock)
      let users = ["a b", "a_b", "A_b", String(repeating: "l", count: 200), "名字"].map { UserID($0) }
      let id = ChannelID("migr-11")
      let texts = users.indices.map { "from \($0)" }
      try await IdealDestination(service: service).fill(id, users, users.indices.map { ($0, texts[$0]) })
      let report = try await context.movedIn(service, "mapped")
      try context.expectEqual(report.load.messages, users.count, "messages")
      let channel = try await context.migrated(id)
      let arrived = try await context.serverMessages(channel)
      try context.expectEqual(arrived.map(\.content), texts.map { .text($0) }, "texts in order")
      try context.expectEqual(Set(arrived.compactMap(\.sender)).count, users.count, "five users stay five")
    },
    ConformanceCase(
      "MIGR-14", "Rate limits slow the run, not break it.", .s2, needs: [.destinationSender], hooks: ["fail"]
    ) { context in
      let sample = try await MigrationSample(clock: context.harness.clock)
      for nth in [2, 4] {
        try await context.inject(
          FaultRule("send", nth: nth, action: .fail(.rateLimited(retryAfter: nil)), mustFire: false))
        try await context.inject(
          FaultRule("member", nth: nth, action: .fail(.rateLimited(retryAfter: nil)), mustFire: false))
      }
      let run = MigrationRun(
        source: sample.source, archive: context.file("limited"), destination: try await context.harness.makeDestination(),
        readBack: try await context.harness.makeSource(), clock: context.harness.clock)
      try expectEqual(
        context, try await context.whileTimePasses(within: .seconds(3600), step: .seconds(1)) { try await run.run() })
      try await compare(context, sample)
    },
    ConformanceCase(
      "MIGR-17", "Verify finds each planted difference.", .s1, needs: [.destinationSender]
    ) { context in
      let sample = try await MigrationSample(clock: context.harness.clock)
      let destination = try await context.harness.makeDestination()
      let run = MigrationRun(
        source: sample.source, archive: context.file("planted"), destination: destination,
        readBack: try await context.harness.makeSource(), clock: context.harness.clock)
      try expectEqual(context, try await context.whileTimePasses(within: .seconds(3600)) { try await run.run() })
      for plant in TamperingSource.Plant.allCases where plant != .unreadable {
        let looking = MigrationRun(
          archive: context.file("planted"), destination: destination,
          readBack: TamperingSource(inner: try await context.harness.makeSource(), plant: plant), clock: context.harness.clock)
        let report = try await context.whileTimePasses(within: .seconds(3600)) { try await looking.verify() }
        try context.expect(!report.isPerfect, "the planted difference is found: \(plant)", observed: report.sentence)
      }
    },
    ConformanceCase(
      "MIGR-19", "One bad record does not stop the run.", .s2, needs: [.destinationSender]
    ) { context in
      let sample = try await MigrationSample(clock: context.harness.clock)
      let run = MigrationRun(
        source: TamperingSource(inner: sample.source, plant: .unreadable), archive: context.file("bad"),
        destination: try await context.harness.makeDestination(), clock: context.harness.clock)
      let report = try await context.whileTimePasses(within: .seconds(3600)) { try await run.run() }
      try context.expect(!report.unreadable.isEmpty, "the bad record is listed")
      try await compare(context, sample)
    },
    ConformanceCase(
      "MIGR-21", "Messages of unknown users arrive.", .s2, needs: [.destinationSender]
    ) { context in
      let service = IdealService(clock: context.harness.clock)
      let id = ChannelID("migr-21")
      let users = ["migr21ann", "migr21ben", "migr21ghost"].map { UserID($0) }
      try await IdealDestination(service: service).fill(
        id, Array(users.prefix(2)), [(0, "one"), (1, "two")], strangers: [(users[2], "of a ghost")])
      let report = try await context.movedIn(service, "ghosts")
      let channel = try await context.migrated(id)
      let arrived = try await context.serverMessages(channel)
      try context.expectEqual(arrived.map(\.content), [.text("one"), .text("two"), .text("of a ghost")], "texts")
      try context.expectEqual(Set(arrived.compactMap(\.sender)).count, 3, "three authors")
      try context.expectEqual(report.load.messages, 3, "messages")
    },
    ConformanceCase(
      "MIGR-24", "Filters are obeyed.", .s2, needs: [.destinationSender]
    ) { context in
      let sample = try await MigrationSample(clock: context.harness.clock)
      var options = MigrationOptions()
      options.extraction.filter.excludedChannels = ["sample_1"]
      options.extraction.filter.excludedUsers = ["moved_ben"]
      let run = MigrationRun(
        source: sample.source, archive: context.file("filtered"), destination: try await context.harness.makeDestination(),
        options: options, clock: context.harness.clock)
      let mark = await context.mark()
      _ = try await context.whileTimePasses(within: .seconds(3600)) { try await run.run() }
      let channel = try await context.migrated("sample_0")
      let arrived = try await context.serverMessages(channel)
      let wanted = (sample.messages["sample_0"] ?? []).filter { $0.sender != "moved_ben" }
      try context.expectEqual(arrived.map(\.content), wanted.map(\.content), "what arrived")
      guard context.offers("journal") else { return }
      for entry in try await context.requests(since: mark) {
        let text = String(decoding: entry.bytes, as: UTF8.self)
        try context.expect(!text.contains("sample_1") && !text.contains("moved_ben"), "nothing excluded in a request")
      }
    },
    ConformanceCase(
      "MIGR-25", "A thread keeps its links.", .s2, needs: [.destinationSender, .messageThread]
    ) { context in
      let service = IdealService(clock: context.harness.clock)
      let id = ChannelID("migr-25")
      let users = ["migr25ann", "migr25ben"].map { UserID($0) }
      let destination = IdealDestination(service: service)
      try await destination.fill(id, users, [(0, "parent"), (1, "other")])
      let parent = await service.messages(in: id).first?.message.id
      var records: [MessageRecord] = []
      for number in 0..<60 {
        var reply = Message(
          channel: id, id: MessageID("reply\(number)"), sender: users[number % 2],
          createdAt: Timestamp(milliseconds: 1_700_000_100_000 + Int64(number) * 1000), content: .text("reply \(number)"))
        reply.threadParent = parent
        records.append(MessageRecord(message: reply))
      }
      let ready = records
      _ = try await destination.putMessages(ready, in: id)
      try expectEqual(context, try await context.movedIn(service, "thread"))
      let arrived = try await context.serverMessages(try await context.migrated(id))
      let there = arrived.first { $0.content == .text("parent") }?.id
      let replies = arrived.filter { $0.threadParent != nil }
      try context.expectEqual(replies.count, 60, "replies")
      let strays = replies.filter { $0.threadParent != there }.map { "\($0.content) under \($0.threadParent as Any)" }
      try context.expect(strays.isEmpty, "all under \(there as Any)", observed: "\(strays.count), as \(strays.first ?? "")")
    },
    ConformanceCase(
      "MIGR-26", "A target that already has the data is recognised.", .s1,
      needs: [.destinationSender, .destinationIdempotent]
    ) { context in
      let sample = try await MigrationSample(clock: context.harness.clock)
      func run(_ ledger: String) async throws -> FidelityReport {
        let run = MigrationRun(
          source: sample.source, archive: context.file("lost"), destination: try await context.harness.makeDestination(),
          readBack: try await context.harness.makeSource(), ledger: context.file(ledger), clock: context.harness.clock)
        return try await context.whileTimePasses(within: .seconds(3600)) { try await run.run() }
      }
      try expectEqual(context, try await run("first.ledger"))
      // Another ledger that knows nothing, as after the first one was lost.
      try expectEqual(context, try await run("second.ledger"))
      try await compare(context, sample)
    },
  ]
}

/// A source that changes one thing of what it reads.
private struct TamperingSource: ForwardingSource {
  enum Plant: String, CaseIterable { case character, missing, doubled, swapped, time, unreadable }

  let inner: any ChatSource
  let plant: Plant

  func messages(in channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MessageRecord> {
    var page = try await inner.messages(in: channel, after: cursor)
    // Once, in the first page of a channel that is long enough.
    guard cursor == nil, page.items.count > 20 else { return page }
    switch plant {
    case .character:
      if case .text(let text) = page.items[9].message.content { page.items[9].message.content = .text(text + ".") }
    case .missing: page.items.remove(at: 9)
    case .doubled: page.items.insert(page.items[9], at: 10)
    case .swapped: page.items.swapAt(9, 12)
    case .time:
      page.items[9].message.createdAt = page.items[9].message.createdAt + .milliseconds(1)
    case .unreadable:
      page.unreadable.append(
        UnreadableRecord(kind: "message", id: "bad", channel: channel, reason: "wrong types", raw: JSONText(unchecked: "{}")))
    }
    return page
  }
}

/// A source in which, from some moment on, two messages are edited and one is recalled.
private struct LaterSource: ForwardingSource {
  static let edits = [3: "edited, the first", 5: "edited, the second"]
  static let recalled = 9

  let inner: any ChatSource
  let isLater = Counter()

  func messages(in channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MessageRecord> {
    var page = try await inner.messages(in: channel, after: cursor)
    guard channel == "sample_0", cursor == nil, isLater.value > 0 else { return page }
    for (place, text) in Self.edits where page.items.indices.contains(place) {
      page.items[place].message.content = .text(text)
      page.items[place].message.editedAt = page.items[place].message.createdAt + .seconds(60)
    }
    if page.items.indices.contains(Self.recalled) {
      page.items[Self.recalled].message.content = .recalled(by: nil, at: nil)
    }
    return page
  }
}

/// Notes what is written and changed.
private final class CountingDestination: ForwardingDestination {
  let inner: any ChatDestination
  private let notes = Mutex<(written: [String], changed: [String])>(([], []))

  init(_ inner: any ChatDestination) { self.inner = inner }

  var written: [String] { notes.withLock { $0.written } }
  var changed: [String] { notes.withLock { $0.changed } }
  func forget() { notes.withLock { $0 = ([], []) } }

  func putMessages(_ messages: [MessageRecord], in channel: ChannelID) async throws(ChatError) -> [PutOutcome<MessageID>] {
    let outcomes = try await inner.putMessages(messages, in: channel)
    notes.withLock { notes in
      for (record, outcome) in zip(messages, outcomes) {
        if case .written = outcome { notes.written.append(record.message.content.searchableText ?? "") }
      }
    }
    return outcomes
  }

  func changeMessage(
    _ message: MessageRecord, id: MessageID, in channel: ChannelID
  ) async throws(ChatError) -> PutOutcome<MessageID> {
    notes.withLock { $0.changed.append(message.message.content.searchableText ?? "recalled") }
    return try await inner.changeMessage(message, id: id, in: channel)
  }
  func removeMessages(_ ids: [MessageID], in channel: ChannelID) async throws(ChatError) {
    notes.withLock { $0.changed += ids.map { "removed \($0)" } }
    try await inner.removeMessages(ids, in: channel)
  }
}
