import ChatMigration
import Synchronization
import UnifiedChat

extension ConformanceSuite {
  static let migration: [ConformanceCase] = [
    ConformanceCase(
      "MIGR-01", "All messages arrive, in order, with their text, sender and time.", .s1, needs: [.sourceReadAll]) { context in
      try await leave(context)
      if context.capabilities.has(.destinationSender) { try await arrive(context) }
    },
    ConformanceCase(
      "MIGR-03", "Stopped anywhere and started again, the result is the same.", .s1,
      needs: [.destinationSender, .destinationIdempotent]
    ) { context in
      let sample = try await MigrationSample(clock: context.harness.clock)
      let destination = StoppingDestination(try await context.harness.makeDestination(), seed: context.harness.seed)
      var stops = 0
      while true {
        destination.goOn()
        let run = MigrationRun(
          source: sample.source, archive: context.file("stopped"), destination: destination,
          clock: context.harness.clock)
        do {
          _ = try await context.whileTimePasses(within: .seconds(3600)) { try await run.run() }
          break
        } catch let error as ChatError where error.detail == StoppingDestination.mark {
          stops += 1
          try context.expect(stops < 100, "a run that is stopped again and again gets on")
        }
      }
      try context.expect(stops >= 3, "several stops", observed: "\(stops)")
      try await verify(context, archive: "stopped", destination)
      try await compare(context, sample)
    },
  ]

  /// From this service into an archive and on into the ideal one.
  private static func leave(_ context: CaseContext) async throws {
    var sent: [ChannelID: [Message]] = [:]
    let (alice, bob, first, users) = try await context.pair()
    let second = try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: "second"))
    for number in 0..<60 {
      let (writer, channel) = (number % 3 == 0 ? bob : alice, number % 4 == 3 ? second.id : first.id)
      let message = try await writer.send(.text("\(number) 文 👩‍👩‍👧"), to: channel)
      sent[channel, default: []].append(message)
      if number % 5 == 0 { await context.harness.pass(.milliseconds(2)) }
    }
    let service = IdealService(clock: context.harness.clock)
    let run = MigrationRun(
      source: try await context.harness.makeSource(), archive: context.file("leaving"),
      destination: IdealDestination(service: service), readBack: IdealSource(service: service),
      clock: context.harness.clock)
    try expectEqual(context, try await context.whileTimePasses(within: .seconds(3600)) { try await run.run() })
    for (channel, messages) in sent {
      let arrived = await service.messages(in: channel).map(\.message).filter { !$0.isNotice }
      try context.expectEqual(arrived.map(\.content), messages.map(\.content), "texts in order")
      try context.expectEqual(arrived.map(\.sender), messages.map(\.sender), "senders")
      try context.expectEqual(arrived.map(\.createdAt), messages.map(\.createdAt), "times")
    }
  }

  /// From the ideal service through an archive into this one.
  private static func arrive(_ context: CaseContext) async throws {
    let sample = try await MigrationSample(clock: context.harness.clock)
    let run = MigrationRun(
      source: sample.source, archive: context.file("arriving"), destination: try await context.harness.makeDestination(),
      readBack: try await context.harness.makeSource(), clock: context.harness.clock)
    try expectEqual(context, try await context.whileTimePasses(within: .seconds(3600)) { try await run.run() })
    try await compare(context, sample)
  }

  static func verify(
    _ context: CaseContext, archive: String, _ destination: any ChatDestination
  ) async throws {
    let run = MigrationRun(
      archive: context.file(archive), destination: destination, readBack: try await context.harness.makeSource(),
      clock: context.harness.clock)
    try expectEqual(context, try await context.whileTimePasses(within: .seconds(3600)) { try await run.verify() })
  }

  static func expectEqual(_ context: CaseContext, _ report: FidelityReport) throws {
    let channels = report.verification?.channels ?? []
    try context.expect(
      report.isPerfect, "equal but for declared losses",
      observed: "\(report.sentence) \(channels.flatMap(\.examples).prefix(5)) \(report.unreadable.prefix(2))")
    try context.expect(!channels.isEmpty && channels.allSatisfy(\.digestsAreEqual), "equal digests of every channel")
  }

  /// What the service holds against the sample itself, without the verifier's help.
  static func compare(_ context: CaseContext, _ sample: MigrationSample) async throws {
    let source = try await context.harness.makeSource()
    var found: [String: ChannelID] = [:]
    var cursor: Cursor?
    repeat {
      let after = cursor
      let page = try await context.whileTimePasses { try await source.channels(after: after) }
      for record in page.items {
        // Without an origin of its own it still has the id that it came with.
        let original = record.origin?.id ?? record.channel.id.rawValue
        try context.expect(found[original] == nil, "one channel for \(original)")
        found[original] = record.channel.id
      }
      cursor = page.next
    } while cursor != nil
    for (channel, messages) in sample.messages {
      guard let id = found[channel.rawValue] else { throw context.failure("channel \(channel)", "none") }
      let arrived = try await context.serverMessages(id)
      try context.expectEqual(arrived.map(\.content), messages.map(\.content), "texts in order")
      try context.expectEqual(arrived.map(\.sender), messages.map(\.sender), "senders")
      guard context.capabilities.has(.destinationTime) else { continue }
      try context.expectEqual(arrived.map(\.createdAt), messages.map(\.createdAt), "times")
    }
  }
}

/// Chats on an ideal service of their own: groups and a pair, several scripts, equal texts, equal times.
struct MigrationSample {
  let source: IdealSource
  let messages: [ChannelID: [Message]]
  private let service: IdealService

  init(clock: any ChatClock) async throws {
    let service = IdealService(clock: clock)
    let destination = IdealDestination(service: service)
    let users = ["ada", "ben", "cyn"].map { UserID("moved_\($0)") }
    _ = try await destination.putUsers(users.map { UserRecord(user: User(id: $0, name: "Name of \($0)")) })
    var messages: [ChannelID: [Message]] = [:]
    for number in 0..<3 {
      let id = ChannelID("sample_\(number)")
      let isDirect = number == 2
      let members = isDirect ? Array(users.prefix(2)) : users
      var channel = Channel(id: id, kind: isDirect ? .direct : .group, createdAt: Timestamp(milliseconds: Self.start))
      if !isDirect { channel.name = "频道 \(number)" }
      channel.createdBy = users[0]
      channel.isDistinct = isDirect
      _ = try await destination.putChannel(
        ChannelRecord(channel: channel),
        members: members.enumerated().map { place, user in
          MemberRecord(channel: id, member: Member(user: User(id: user), role: place == 0 ? .owner : .member))
        })
      let wanted = (0..<40 + number * 70).map { Self.message($0, in: id, members) }
      for start in stride(from: 0, to: wanted.count, by: 50) {
        let batch = wanted[start..<min(wanted.count, start + 50)]
        _ = try await destination.putMessages(batch.map { MessageRecord(message: $0) }, in: id)
      }
      messages[id] = wanted
    }
    source = IdealSource(service: service)
    self.messages = messages
    self.service = service
  }

  /// Says more, after everything that is there.
  func write(_ texts: [String], to channel: ChannelID) async {
    let known = await service.messages(in: channel)
    let start = known.last?.message.createdAt ?? Timestamp(milliseconds: Self.start)
    let records = texts.enumerated().map { number, text in
      MessageRecord(
        message: Message(
          channel: channel, id: MessageID("\(channel)_\(known.count + number)_late"), sender: known.last?.message.sender,
          createdAt: start + .milliseconds(1000 * (number + 1)), content: .text(text)))
    }
    _ = try? await IdealDestination(service: service).putMessages(records, in: channel)
  }

  private static let start: Int64 = 1_700_000_000_000

  /// Every third has the time of the one before; some texts repeat.
  private static func message(_ number: Int, in channel: ChannelID, _ members: [UserID]) -> Message {
    let time = Timestamp(milliseconds: start + Int64(number - (number % 3 == 2 ? 1 : 0)) * 1000)
    let text = ["same", "\(number) 早上好", "\(number) e\u{301} 👨‍👩‍👧‍👦", " \(number)\n"][number % 4]
    return Message(
      channel: channel, id: MessageID("\(channel)_\(number)"), sender: members[number % members.count],
      createdAt: time, content: .text(text))
  }
}

/// Ends the run at seeded calls, before or after the service has stored what the call brought.
private final class StoppingDestination: ForwardingDestination {
  static let mark = "stopped here"

  let inner: any ChatDestination
  private let state: Mutex<State>

  private struct State {
    var random: Dice
    var calls = 0
    var stop = 0
    var rounds: UInt64 = 0
    var afterCommit = false
  }

  init(_ inner: any ChatDestination, seed: UInt64) {
    self.inner = inner
    state = Mutex(State(random: Dice(seed: seed)))
  }

  /// The next stop is some calls away, each time a little further: a new run asks again for what was not finished.
  func goOn() {
    state.withLock { state in
      state.rounds += 1
      state.stop = state.calls + 1 + Int(state.random.next() % (2 + state.rounds))
      state.afterCommit = state.random.next() & 1 == 0
    }
  }

  private func stopping<Value>(_ call: () async throws(ChatError) -> Value) async throws(ChatError) -> Value {
    // Whatever runs beside the one that stops ends too, as it would with its process.
    let (isOver, ends) = state.withLock { state in
      state.calls += 1
      return (state.calls > state.stop || state.calls == state.stop && !state.afterCommit, state.calls >= state.stop)
    }
    let error = ChatError(.authentication, operation: .writeDestination, retry: .never, detail: Self.mark)
    if isOver { throw error }
    let value = try await call()
    if ends { throw error }
    return value
  }

  func putUsers(_ users: [UserRecord]) async throws(ChatError) -> [PutOutcome<UserID>] {
    try await stopping { () throws(ChatError) in try await inner.putUsers(users) }
  }

  func putChannel(
    _ channel: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) -> PutOutcome<ChannelID> {
    try await stopping { () throws(ChatError) in try await inner.putChannel(channel, members: members) }
  }

  func putAttachment(
    _ attachment: Attachment, bytes: [UInt8], in channel: ChannelID
  ) async throws(ChatError) -> Attachment {
    try await stopping { () throws(ChatError) in
      try await inner.putAttachment(attachment, bytes: bytes, in: channel)
    }
  }

  func putMessages(
    _ messages: [MessageRecord], in channel: ChannelID
  ) async throws(ChatError) -> [PutOutcome<MessageID>] {
    try await stopping { () throws(ChatError) in try await inner.putMessages(messages, in: channel) }
  }

  func finishChannel(_ channel: ChannelID, original: ChannelRecord, members: [MemberRecord]) async throws(ChatError) {
    try await stopping { () throws(ChatError) in
      try await inner.finishChannel(channel, original: original, members: members)
    }
  }
}
