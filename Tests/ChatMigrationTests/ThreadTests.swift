import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("Threads")
struct ThreadTests {
  /// Every second message is a reply of the thread; the parent stands in the middle of its replies.
  private func fill(_ service: MemoryService, replies: Int) {
    let users: [UserID] = ["ann", "ben"]
    let id: ChannelID = "long"
    let parent: MessageID = "parent"
    let messages = (0..<replies * 2).map { number in
      let isParent = number == replies
      var message = Message(
        channel: id, id: isParent ? parent : MessageID("m\(number)"), sender: users[number % 2],
        position: MessagePosition(time: Timestamp(milliseconds: Int64(number)), number: 0), createdAt: Timestamp(milliseconds: Int64(number)),
        content: .text("\(number)"))
      if number % 2 == 1, !isParent { message.threadParent = parent }
      return MessageRecord(message: message)
    }
    service.state.withLock { state in
      state.users = users.map { UserRecord(user: User(id: $0)) }
      let channel = ChannelRecord(channel: Channel(id: id, kind: .group))
      let members = users.map { MemberRecord(channel: id, member: Member(user: User(id: $0))) }
      state.channels = [MemoryService.StoredChannel(record: channel, members: members, messages: messages)]
    }
  }

  private func run(_ harness: MigrationHarness, _ filter: MigrationFilter) async throws -> FidelityReport {
    var options = MigrationOptions()
    options.extraction.filter = filter
    options.load.rules = LoadRules(filter: filter)
    return try await MigrationRun(
      source: harness.source, archive: harness.archivePath, destination: harness.destination,
      readBack: harness.destination, ledger: harness.ledgerPath, options: options, clock: harness.clock
    ).run()
  }

  @Test("one of five thousand replies keeps its links; those that come before their parent are counted")
  func long() async throws {
    let harness = try MigrationHarness(MemoryService(vendor: "new", batch: 500, pageSize: 1000))
    fill(harness.source, replies: 5000)
    let report = try await run(harness, MigrationFilter())
    #expect(report.verification?.isEqual == true && report.load.messages == 10_000, "\(report.words())")
    #expect(report.fields.first { $0.field == "message.threadParent" }?.degraded == 2500)
    let written = harness.destination.state.withLock { $0.channels[0].messages }
    #expect(written.map(\.message.content) == (0..<10_000).map { .text("\($0)") })
    let parent = try #require(written.first { $0.origin?.id == "parent" }?.message.id)
    #expect(written.count { $0.message.threadParent == parent } == 2500)
    // Before it was there they name it as its source does.
    #expect(written.count { $0.message.threadParent == "parent" } == 2500)
  }

  @Test("a thread by itself is it and its replies, and nothing else")
  func alone() async throws {
    let harness = try MigrationHarness()
    fill(harness.source, replies: 20)
    let report = try await run(harness, MigrationFilter(thread: "parent"))
    #expect(report.verification?.isEqual == true, "\(report.words())")
    let written = harness.destination.state.withLock { $0.channels[0].messages }
    #expect(written.count == 21)
    #expect(written.allSatisfy { $0.message.threadParent != nil || $0.origin?.id == "parent" })
    let place = try #require(written.firstIndex { $0.origin?.id == "parent" })
    // Those before it name it as its source does.
    #expect(written[..<place].allSatisfy { $0.message.threadParent == "parent" })
    #expect(written[(place + 1)...].allSatisfy { $0.message.threadParent == written[place].message.id })
  }
}
