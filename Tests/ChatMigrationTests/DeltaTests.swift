import Synchronization
import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("A second run carries what changed since the first")
struct DeltaTests {
  private func run(_ harness: MigrationHarness, rereads: Bool = true) -> MigrationRun {
    harness.run(refreshes: true, rereads: rereads)
  }

  /// 100 new, 10 edited, 5 deleted, 2 recalled; one member left and one came, one read further, one has a new name.
  private func change(_ service: MemoryService) {
    service.state.withLock { state in
      for index in 0..<10 { state.channels[0].messages[index * 2].message.edit("edited \(index)") }
      for index in [21, 23] {
        state.channels[0].messages[index].message.content = .recalled(by: "user-1", at: Timestamp(milliseconds: 1))
      }
      for index in [5, 4, 3, 2, 1] { state.channels[2].messages.remove(at: index) }
      let users = state.channels[3].members.map(\.member.user.id)
      for number in 30..<130 {
        state.channels[3].messages.append(SampleChats.message(number, in: state.channels[3].record.channel.id, users))
      }
      state.channels[2].members.remove(at: 3)
      state.users.append(UserRecord(user: User(id: "late", name: "Late")))
      state.channels[2].members.append(
        MemberRecord(channel: state.channels[2].record.channel.id, member: Member(user: User(id: "late"))))
      state.channels[0].members[1].member.readPosition = state.channels[0].messages[20].message.position
      state.users[0].user.name = "Another name"
      state.channels[1].messages[0].message.customData = JSONText(unchecked: #"{"k":2}"#)
    }
  }

  @Test("new, edited, recalled and deleted messages, members and profiles, and nothing else")
  func exact() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    #expect(try await run(harness).run().isPerfect)
    change(harness.source)
    harness.destination.state.withLock { $0.log = [:] }
    let report = try await run(harness).run()
    #expect(report.isPerfect, "\(report.markdown())")
    let log = harness.destination.state.withLock { $0.log }
    #expect(log["changeMessage"] == 13)
    #expect(log["removeMessages"] == 1 && log["removeMembers"] == 1)
    #expect(log["put"] == 100)
    #expect(report.load.messages == 4 * 30 + 100 - 5)
    let fresh = try MigrationHarness()
    fresh.source.state.withLock { [now = harness.source.state.withLock { $0 }] in $0 = now }
    #expect(try await run(fresh).run().isPerfect)
    let difference = differences(fresh, harness)
    #expect(difference.isEmpty && fresh.contents.count == harness.contents.count, "\(difference)")
  }

  /// The first lines that differ, since whole contents are long.
  private func differences(_ one: MigrationHarness, _ two: MigrationHarness) -> String {
    zip(one.contents, two.contents).filter { $0 != $1 }.prefix(3).map { "\($0)\n\($1)" }.joined(separator: "\n\n")
  }

  @Test("an edit of what a killed run wrote, and did not write down, is carried too")
  func aboveTheWatermark() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source, channels: 1)
    let batches = Mutex(0)
    harness.destination.setFault { call, _, committed in
      guard call == "putMessages", committed, batches.withLock({ $0 += 1; return $0 }) == 4 else { return nil }
      return ChatError(.cancelled, operation: .writeDestination)
    }
    let first = try await harness.pull()
    await #expect(throws: ChatError.self) { try await harness.load(first) }
    harness.destination.setFault(nil)
    let written = harness.destination.state.withLock { $0.channels[0].messages }
    let last = try #require(written.last { if case .text = $0.message.content { true } else { false } }?.origin?.id)
    harness.source.state.withLock { state in
      guard let place = state.channels[0].messages.firstIndex(where: { $0.message.id?.rawValue == last }) else { return }
      state.channels[0].messages[place].message.content = .text("edited since")
      state.channels[0].messages[place].message.editedAt = Timestamp(milliseconds: SampleChats.start + 900_000)
    }
    let second = try await harness.pull(rereading: true)
    try await harness.load(second)
    #expect(harness.destination.state.withLock { $0.log["changeMessage"] } == 1)
    #expect(try await harness.verify(second).isEqual)
  }

  @Test("a third run without changes writes no message and no profile")
  func idle() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    _ = try await run(harness).run()
    change(harness.source)
    _ = try await run(harness).run()
    harness.destination.state.withLock { $0.log = [:] }
    let before = harness.contents
    #expect(try await run(harness).run().isPerfect)
    #expect(harness.destination.state.withLock { $0.log } == [:])
    #expect(before == harness.contents)
  }

  @Test("killed at any call of the second run, the next one ends the same", arguments: Array(stride(from: 0, to: 24, by: 3)))
  func killed(_ point: Int) async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    _ = try await run(harness).run()
    change(harness.source)
    let start = harness.destination.calls
    harness.destination.setFault { _, number, committed in
      // Before it is done, or after.
      number == start + point && committed == (point % 2 == 0)
        ? ChatError(.cancelled, operation: .writeDestination) : nil
    }
    do { _ = try await run(harness).run() } catch { #expect(error.kind == .cancelled) }
    harness.destination.setFault(nil)
    #expect(try await run(harness).run().isPerfect)
    let fresh = try MigrationHarness()
    fresh.source.state.withLock { [now = harness.source.state.withLock { $0 }] in $0 = now }
    _ = try await run(fresh).run()
    let difference = differences(fresh, harness)
    #expect(difference.isEmpty && fresh.contents.count == harness.contents.count, "\(difference)")
  }

  @Test("a pull that is stopped in the middle of its second reading loses and removes nothing", arguments: [1, 4, 7, 10])
  func stoppedReading(_ point: Int) async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    _ = try await run(harness).pull()
    change(harness.source)
    let start = harness.source.calls
    harness.source.setFault { _, number, _ in
      number == start + point * 2 ? ChatError(.cancelled, operation: .readSource) : nil
    }
    await #expect(throws: ChatError.self) { _ = try await run(harness).pull() }
    harness.source.setFault(nil)
    _ = try await run(harness).pull()
    let archive = try Archive.open(at: harness.archivePath)
    let counts = try await archive.counts()
    #expect(counts.messages == 4 * 30 + 100 - 5)
    #expect(try await archive.verify().isWhole)
  }

  @Test("a destination that changes nothing keeps what it has, and the report says of which items")
  func rigid() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    _ = try await run(harness).run()
    change(harness.source)
    harness.destination.state.withLock { $0.isRigid = true }
    let report = try await run(harness).run()
    #expect(report.verification?.isEqual == true, "\(report.markdown())")
    // 13 changed, 5 removed, one member.
    #expect(report.load.late == 19)
    #expect(report.fields.contains { $0.field == "message" && $0.dropped == 13 && $0.degraded == 5 })
  }

  @Test("without a second reading only new messages are found, and what is old stays")
  func newOnly() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    _ = try await run(harness).run()
    change(harness.source)
    let summary = try await run(harness, rereads: false).pull()
    #expect(summary.newMessages == 100)
    let archive = try Archive.open(at: harness.archivePath)
    #expect(try await archive.counts().messages == 220)
  }

  @Test("what expired at the old end of a channel is not taken for deleted")
  func expired() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    _ = try await run(harness).run()
    harness.source.state.withLock { state in
      for index in state.channels.indices { state.channels[index].messages.removeFirst(12) }
    }
    let report = try await run(harness).run()
    #expect(report.isPerfect && report.load.messages == 120)
  }

  @Test("a message whose number is the last is not lost when that number was another's")
  func lastNumber() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    _ = try await run(harness).run()
    harness.source.state.withLock { state in
      let users = state.channels[0].members.map(\.member.user.id)
      state.channels[0].messages.removeLast()
      state.channels[0].messages.append(SampleChats.message(77, in: state.channels[0].record.channel.id, users))
    }
    let report = try await run(harness).run()
    #expect(report.isPerfect && report.load.messages == 120)
  }

  @Test("a second reading with a filter keeps what the filter leaves out")
  func filtered() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    _ = try await run(harness).run()
    harness.source.state.withLock { state in
      state.channels[0].messages[3].message.edit("edited")
      state.channels[1].messages[3].message.edit("edited, and left out")
    }
    var options = MigrationOptions()
    options.extraction.rereads = true
    options.extraction.filter = MigrationFilter(
      excludedChannels: ["channel 1"], excludedUsers: ["user-3"],
      until: Timestamp(milliseconds: SampleChats.start + 20_000), kinds: ["text", "file"])
    let summary = try await MigrationRun(
      source: harness.source, archive: harness.archivePath, options: options, clock: harness.clock
    ).pull()
    // Message 3 is the third user's, who is left out.
    #expect(summary.changed == 0 && summary.removed == 0 && summary.newMessages == 0)
    let archive = try Archive.open(at: harness.archivePath)
    let counts = try await archive.counts()
    #expect(counts.users == 10 && counts.channels == 4 && counts.messages == 120)
    #expect(try await archive.member("user-3", of: 1) != nil)
    #expect(try await archive.verify().isWhole)
    try await archive.close()
    // Without the filter what was left out comes along.
    #expect(try await run(harness).pull().changed == 2)
  }

  @Test("a refused change of a profile makes no second account, and is listed")
  func refusedProfile() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    #expect(try await run(harness).run().isPerfect)
    harness.source.state.withLock { $0.users[2].user.name = "A name that is refused" }
    let before = harness.destination.state.withLock { $0.users.map(\.user.id) }
    harness.destination.setFault { call, _, committed in
      call == "putUsers" && !committed
        ? ChatError(.invalidArgument(field: "nickname"), operation: .writeDestination) : nil
    }
    let report = try await run(harness).run()
    #expect(harness.destination.state.withLock { $0.users.map(\.user.id) } == before)
    #expect(report.exceptions.map(\.id) == ["user-2"] && report.load.refused == 1 && !report.isGood)
    let ledger = try SQLiteLedger(at: harness.ledgerPath)
    #expect(try await ledger.destinations(of: ["user-2"]) == ["user-2": "user-2"])
    try await ledger.close()
  }

  @Test("following ends with a pass that finds nothing, after the cut-over, and a verification")
  func following() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let passes = Passes()
    let source = harness.source
    let options = FollowOptions(interval: .seconds(1), passesPerRereading: 3) {
      let number = passes.next()
      source.state.withLock { state in
        guard number < 6 else { return }
        let users = state.channels[0].members.map(\.member.user.id)
        let id = state.channels[0].record.channel.id
        state.channels[0].messages.append(SampleChats.message(1000 + number, in: id, users))
      }
      return number >= 5
    }
    let report = try await run(harness).follow(options) { passes.add($0) }
    #expect(report.isPerfect)
    let seen = passes.all
    #expect(seen.last?.lag == 0 && seen.last?.isCutOver == true && seen.last?.isWhole == true)
    #expect(seen.map(\.new) == [121, 1, 1, 1, 1, 1, 0])
    #expect(report.load.messages == 126)
  }
}

/// Counts the passes of a following.
private final class Passes: Sendable {
  private let state = MutexBox(([FollowPass](), 0))

  func next() -> Int {
    state.with { state in
      defer { state.1 += 1 }
      return state.1
    }
  }
  func add(_ pass: FollowPass) { state.with { $0.0.append(pass) } }
  var all: [FollowPass] { state.with { $0.0 } }
}

extension Message {
  fileprivate mutating func edit(_ text: String) {
    content = .text(text)
    editedAt = createdAt + .seconds(60)
  }
}
