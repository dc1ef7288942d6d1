import Synchronization
import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("Answers name their message as the destination does")
struct AnswerTests {
  /// What each of 25 messages answers, by number, and their seconds.
  struct Shape: Sendable, CustomTestStringConvertible {
    let name: String
    let answers: [Int: Int]
    var times: [Int] = []
    /// Answers that must be written before what they answer: where the order of writing counts, and in any order.
    var early: Set<Int> = []
    var alwaysEarly: Set<Int> = []
    var testDescription: String { name }
  }

  static let shapes = [
    Shape(name: "to the one before", answers: [1: 0, 5: 4]),
    Shape(name: "each to the one before", answers: [1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 5]),
    Shape(name: "all to the first", answers: Dictionary(uniqueKeysWithValues: (1..<25).map { ($0, 0) })),
    Shape(name: "across calls", answers: [12: 3, 24: 0, 13: 12]),
    Shape(name: "in one millisecond", answers: [2: 1, 3: 1, 4: 2], times: Array(repeating: 7, count: 25)),
    Shape(name: "before its message", answers: [3: 6, 8: 7], early: [3]),
    Shape(name: "to one another", answers: [3: 4, 4: 3, 6: 4], alwaysEarly: [3]),
    Shape(name: "to itself", answers: [3: 3, 4: 3], alwaysEarly: [3]),
  ]

  private func service(_ shape: Shape, isThread: Bool) -> MemoryService {
    let service = MemoryService(vendor: "old")
    let channel = ChannelID("channel")
    let users = (0..<2).map { UserID("user-\($0)") }
    service.state.withLock { state in
      state.users = users.map { UserRecord(user: User(id: $0)) }
      var stored = MemoryService.StoredChannel(
        record: ChannelRecord(
          channel: Channel(id: channel, kind: .group, createdAt: Timestamp(milliseconds: SampleChats.start))),
        members: users.map { MemberRecord(channel: channel, member: Member(user: User(id: $0))) })
      stored.messages = (0..<25).map { number in
        let seconds = shape.times.isEmpty ? number : shape.times[number]
        let time = Timestamp(milliseconds: SampleChats.start + Int64(seconds) * 1000)
        var message = Message(
          channel: channel, id: MessageID("old-\(number)"), sender: users[number % 2],
          position: MessagePosition(time: time, number: Int64(number)), createdAt: time, content: .text("\(number)"))
        if let target = shape.answers[number].map({ MessageID("old-\($0)") }) {
          if isThread { message.threadParent = target } else {
            message.replyTo = Reply(id: target, quoted: QuotedMessage(id: target, content: .text("said")))
          }
        }
        return MessageRecord(message: message)
      }
      state.channels = [stored]
    }
    return service
  }

  private func check(_ harness: MigrationHarness, _ shape: Shape, inAnyOrder: Bool) throws {
    let messages = harness.destination.state.withLock { $0.channels[0].messages }
    #expect(messages.map(\.message.content) == (0..<25).map { .text("\($0)") })
    for (number, target) in shape.answers {
      let message = messages[number].message
      let ids = [message.replyTo?.id, message.replyTo?.quoted?.id, message.threadParent].compactMap(\.self)
      let isEarly = shape.alwaysEarly.contains(number) || !inAnyOrder && shape.early.contains(number)
      let wanted = isEarly ? MessageID("old-\(target)") : try #require(messages[target].message.id)
      #expect(!ids.isEmpty && ids.allSatisfy { $0 == wanted }, "\(number) answers \(ids), not \(wanted)")
    }
  }

  @Test("whatever the answers are like, and in the order of their messages", arguments: Self.shapes, [true, false])
  func mapped(_ shape: Shape, inAnyOrder: Bool) async throws {
    for isThread in [true, false] {
      let harness = try MigrationHarness(MemoryService(vendor: "new", takesAnyOrder: inAnyOrder))
      let source = service(shape, isThread: isThread)
      harness.source.state.withLock { state in state = source.state.withLock { $0 } }
      let archive = try await harness.pull()
      try await harness.load(archive)
      try check(harness, shape, inAnyOrder: inAnyOrder)
      #expect(try await harness.verify(archive).isEqual)
    }
  }

  @Test("after a kill at any call too", arguments: [true, false], Array(2..<12))
  func killed(inAnyOrder: Bool, at point: Int) async throws {
    for committed in [true, false] {
      let shape = Self.shapes[1]
      let harness = try MigrationHarness(MemoryService(vendor: "new", takesAnyOrder: inAnyOrder))
      let source = service(shape, isThread: false)
      harness.source.state.withLock { state in state = source.state.withLock { $0 } }
      let archive = try await harness.pull()
      let wasHit = Mutex(false)
      harness.destination.setFault { _, number, isCommitted in
        guard number == point, committed == isCommitted else { return nil }
        wasHit.withLock { $0 = true }
        return ChatError(.cancelled, operation: .writeDestination)
      }
      do { try await harness.load(archive) } catch { #expect(error is ChatError) }
      #expect(wasHit.withLock { $0 })
      harness.destination.setFault(nil)
      try await harness.load(archive)
      try check(harness, shape, inAnyOrder: inAnyOrder)
    }
  }

  @Test(
    "those that were written too early are counted alike, wherever a run was killed", arguments: [5, 6, 7], [true, false])
  func countedOnce(_ index: Int, inAnyOrder: Bool) async throws {
    let shape = Self.shapes[index]
    // Who of a circle came first in any order, only the run knows that wrote it.
    if inAnyOrder, shape.name == "to one another" { return }
    func prepared() throws -> MigrationHarness {
      let harness = try MigrationHarness(MemoryService(vendor: "new", takesAnyOrder: inAnyOrder))
      let source = service(shape, isThread: false)
      harness.source.state.withLock { state in state = source.state.withLock { $0 } }
      return harness
    }
    func astray(_ summary: LoadSummary) -> CountedLoss? { summary.losses.first { $0.loss == .answerAstray } }
    let fresh = try prepared()
    let archive = try await fresh.pull()
    // A plan knows the order, too.
    let plan = try await Planner.plan(
      archive, fresh.destination, LoadOptions(), nil, ProgressReporter(clock: fresh.clock))
    let expected = astray(try await fresh.load(archive))
    #expect(plan.losses.first { $0.loss == .answerAstray }?.count == expected?.count)
    #expect((expected?.count ?? 0) == (inAnyOrder ? shape.alwaysEarly : shape.early.union(shape.alwaysEarly)).count)
    for point in 3..<10 {
      let harness = try prepared()
      let archive = try await harness.pull()
      harness.destination.setFault { _, number, isCommitted in
        number == point && isCommitted ? ChatError(.cancelled, operation: .writeDestination) : nil
      }
      do { try await harness.load(archive) } catch { #expect(error is ChatError) }
      harness.destination.setFault(nil)
      #expect(astray(try await harness.load(archive)) == expected, "killed at call \(point)")
    }
  }

  @Test("to a message that is written in a later call of its batch, which reactions fill")
  func behindReactions() async throws {
    let harness = try MigrationHarness(MemoryService(vendor: "new", batch: 4, takesAnyOrder: true))
    let shape = Shape(name: "", answers: [0: 3, 2: 3])
    let source = service(shape, isThread: false)
    harness.source.state.withLock { state in
      state = source.state.withLock { $0 }
      state.channels[0].messages[1].message.reactions = (0..<3).map {
        Reaction(key: "\($0)", users: ["user-0", "user-1"])
      }
    }
    let archive = try await harness.pull()
    let summary = try await harness.load(archive, LoadOptions(rules: LoadRules(reactions: .messages)))
    #expect(!summary.losses.contains { $0.loss == .answerAstray })
    let written = harness.destination.state.withLock { $0.channels[0].messages }
    let target = try #require(written.first { $0.message.content == .text("3") && $0.origin?.id == "old-3" }?.message.id)
    for number in [0, 2] {
      #expect(written.first { $0.origin?.id == "old-\(number)" }?.message.replyTo?.id == target)
    }
    #expect(written.count == 31)
    #expect(try await harness.verify(archive).isEqual)
  }

  @Test("an edit keeps what its message answers")
  func edited() async throws {
    let harness = try MigrationHarness()
    let shape = Self.shapes[0]
    let source = service(shape, isThread: false)
    harness.source.state.withLock { state in state = source.state.withLock { $0 } }
    try await harness.load(try await harness.pull())
    harness.source.state.withLock { state in
      state.channels[0].messages[5].message.editedAt = Timestamp(milliseconds: SampleChats.start + 999_999)
    }
    let archive = try await harness.pull(rereading: true)
    try await harness.load(archive)
    #expect(harness.destination.state.withLock { $0.log["changeMessage"] } == 1)
    try check(harness, shape, inAnyOrder: false)
  }
}
