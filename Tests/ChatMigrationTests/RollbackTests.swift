import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("Taking a run back")
struct RollbackTests {
  private func run(_ harness: MigrationHarness, _ options: MigrationOptions = MigrationOptions()) -> MigrationRun {
    MigrationRun(
      source: harness.source, archive: harness.archivePath, destination: harness.destination,
      readBack: harness.destination, ledger: harness.ledgerPath, options: options, clock: harness.clock)
  }

  /// A channel, a message in it and an account that were there before.
  private func prefill(_ service: MemoryService) {
    service.state.withLock { state in
      state.users = [UserRecord(user: User(id: "user-0", name: "was here"))]
      let channel = Channel(id: "own", kind: .group, name: "was here")
      var stored = MemoryService.StoredChannel(record: ChannelRecord(channel: channel))
      stored.messages = [
        MessageRecord(
          message: Message(
            channel: "own", id: "m0", sender: "user-0", createdAt: Timestamp(milliseconds: 5), content: .text("old")))
      ]
      state.channels = [stored]
    }
  }

  @Test("removes what the run made, and leaves what was there before", arguments: [false, true])
  func exact(killed: Bool) async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    prefill(harness.destination)
    _ = try await run(harness).run()
    if killed {
      let start = harness.destination.calls
      harness.destination.setFault { _, number, _ in
        number == start + 3 ? ChatError(.cancelled, operation: .writeDestination) : nil
      }
      await #expect(throws: ChatError.self) { _ = try await run(harness).rollback() }
      harness.destination.setFault(nil)
    }
    let summary = try await run(harness).rollback()
    #expect(summary.isComplete)
    if !killed { #expect(summary.channels == 4 && summary.users == 9) }
    harness.destination.state.withLock { state in
      #expect(state.users.map(\.user.id) == ["user-0"])
      #expect(state.channels.map(\.record.channel.id) == ["own"])
      #expect(state.channels[0].messages.map(\.message.id) == ["m0"])
    }
    // The ledger is as new.
    #expect(try await run(harness).run().isPerfect)
  }

  @Test("of a run that was killed half-way, too", arguments: [9, 14, 21, 30])
  func halfWay(_ point: Int) async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    prefill(harness.destination)
    harness.destination.setFault { _, number, committed in
      number >= point && committed ? ChatError(.cancelled, operation: .writeDestination) : nil
    }
    await #expect(throws: ChatError.self) { _ = try await run(harness).run() }
    harness.destination.setFault(nil)
    // What the killed call did is found by the next run; it is this ledger's all the same.
    _ = try await run(harness).run()
    #expect(try await run(harness).rollback().isComplete)
    harness.destination.state.withLock { state in
      #expect(state.channels.map(\.record.channel.id) == ["own"])
    }
  }

  @Test("what the destination cannot remove is listed, and stays in the ledger")
  func rigid() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    _ = try await run(harness).run()
    harness.destination.state.withLock { $0.isRigid = true }
    let summary = try await run(harness).rollback()
    #expect(!summary.isComplete && summary.channels == 0 && summary.left.count == summary.leftCount)
    harness.destination.state.withLock { $0.isRigid = false }
    #expect(try await run(harness).rollback().channels == 4)
    harness.destination.state.withLock { #expect($0.channels.isEmpty && $0.users.isEmpty) }
  }

  @Test("accounts stay where that is wanted")
  func keepingUsers() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    _ = try await run(harness).run()
    #expect(try await run(harness).rollback(keepsUsers: true).users == 0)
    harness.destination.state.withLock { #expect($0.channels.isEmpty && $0.users.count == 10) }
  }
}

@Suite("A run keeps to its bounds")
struct SafetyTests {
  private func run(_ harness: MigrationHarness, _ options: MigrationOptions) -> MigrationRun {
    MigrationRun(
      source: harness.source, archive: harness.archivePath, destination: harness.destination,
      readBack: harness.destination, ledger: harness.ledgerPath, options: options, clock: harness.clock)
  }

  @Test("a destination that holds channels is left alone, unless that is wanted")
  func nonEmpty() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    harness.destination.state.withLock { state in
      state.channels = [.init(record: ChannelRecord(channel: Channel(id: "own", kind: .group)))]
    }
    var options = MigrationOptions(refusesNonEmpty: true)
    let error = await #expect(throws: ChatError.self) { _ = try await run(harness, options).run() }
    #expect(error?.kind == .conflict && harness.destination.writes == 0)
    options.refusesNonEmpty = false
    #expect(try await run(harness, options).run().isPerfect)
    // It is this ledger's now.
    options.refusesNonEmpty = true
    let other = try MigrationHarness()
    SampleChats.fill(other.source)
    _ = try await run(other, options).run()
    #expect(try await run(other, options).run().isPerfect)
  }

  @Test("a run stops at its limit, and the next ones go on to the end", arguments: [7, 30])
  func limit(_ messages: Int) async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    var options = MigrationOptions()
    options.load.limits = RunLimits(messages: messages * 3)
    var runs = 0
    var isDone = false
    while !isDone, runs < 60 {
      runs += 1
      let before = harness.destination.state.withLock { $0.log["put"] ?? 0 }
      do throws(ChatError) {
        _ = try await run(harness, options).run()
        isDone = true
      } catch { #expect(error.kind == .cancelled && error.detail.contains("limit")) }
      #expect(harness.destination.state.withLock { $0.log["put"] ?? 0 } - before <= messages * 3)
    }
    #expect(runs >= 120 / (messages * 3))
    #expect(try await run(harness, MigrationOptions()).run().isPerfect)
  }

  @Test("users whom a mapping would melt into one are told before anything is written")
  func collisions() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    var options = MigrationOptions()
    options.load.users = UserMapping(rule: try UserMapping.Rule(pattern: "^user-[0-9]$", template: "user"))
    let error = await #expect(throws: ChatError.self) { _ = try await run(harness, options).run() }
    #expect(error?.kind == .conflict && error?.detail.contains("user-0 and user-1") == true)
    #expect(harness.destination.writes == 0)
    options.load.users.rule = try UserMapping.Rule(pattern: "^user-([0-9])$", template: "member_$1")
    let report = try await run(harness, options).run()
    #expect(report.isPerfect, "\(report.markdown())")
    #expect(harness.destination.state.withLock { $0.users.contains { $0.user.id == "member_3" } })
    #expect(throws: ChatError.self) { _ = try UserMapping.Rule(pattern: "(", template: "") }
  }

  @Test("each write stands in the audit log, and no text of a message does")
  func audit() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let path = harness.folder.file("audit.jsonl")
    _ = try await run(harness, MigrationOptions(auditPath: path)).run()
    let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
    #expect(lines.filter { $0.contains(#""call":"putMessage""#) }.count == 120)
    #expect(lines.filter { $0.contains(#""call":"putChannel""#) }.count == 4)
    #expect(!lines.contains { $0.contains("same text") || $0.contains("你好") })
  }

  @Test("what a filter leaves out never arrives, and is listed")
  func filtered() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    var options = MigrationOptions()
    var filter = MigrationFilter(excludedChannels: ["channel 2"], excludedUsers: ["user-1"])
    filter.kinds = ["text", "image", "system"]
    options.load.rules = LoadRules(filter: filter)
    let report = try await run(harness, options).run()
    #expect(report.verification?.isEqual == true && report.load.refused == 0, "\(report.markdown())")
    harness.destination.state.withLock { state in
      #expect(state.channels.count == 3 && !state.users.contains { $0.user.id == "user-1" })
      for channel in state.channels {
        #expect(!channel.members.contains { $0.member.user.id == "user-1" })
        for record in channel.messages {
          #expect(filter.admits(record.message) && !record.message.namedUsers.contains("user-1"))
        }
      }
    }
    // The verification goes by the rules of the run, and another run by others is refused.
    #expect(try await run(harness, MigrationOptions()).verify().verification?.isEqual == true)
    options.load.rules = LoadRules()
    await #expect(throws: ChatError.self) { _ = try await run(harness, options).load() }
  }

  @Test("roles, channel ids and mentions in texts follow the mapping")
  func mapped() async throws {
    let harness = try MigrationHarness()
    harness.source.state.withLock { state in
      state.users = ["ann", "anna"].map { UserRecord(user: User(id: $0, name: "\($0)")) }
      var channel = SampleChats.channel(0, ["ann", "anna"], 1)
      channel.messages[0].message.content = .text("@ann and @anna, not @annabel or a@ann-x; @ann")
      channel.messages[0].message.mentions = Mentions(users: ["ann", "anna"])
      state.channels = [channel]
    }
    var options = MigrationOptions()
    options.load.users = UserMapping(explicit: ["ann": "u1", "anna": "u2"])
    options.load.rules = LoadRules(channels: ["channel 0": "room-0"], roles: ["owner": "admin"])
    let report = try await run(harness, options).run()
    #expect(report.isPerfect, "\(report.markdown())")
    harness.destination.state.withLock { state in
      #expect(state.channels[0].messages[0].message.content == .text("@u1 and @u2, not @annabel or a@ann-x; @u1"))
      #expect(state.channels[0].messages[0].message.mentions.users == ["u1", "u2"])
      #expect(state.channels[0].members[0].member.role == .admin)
    }
    #expect(report.fields.contains { $0.field == "message.content.text" && $0.degraded == 1 })
  }

  @Test("attachments stay where they are if that is wanted, and are listed")
  func linked() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    var options = MigrationOptions()
    options.load.rules = LoadRules(attachments: .link)
    let report = try await run(harness, options).run()
    #expect(report.verification?.isEqual == true)
    #expect(harness.destination.state.withLock { $0.files.isEmpty })
    #expect(report.load.skipped == 24)
  }
}

@Suite("Several processes on one ledger")
struct SharingTests {
  @Test("two loaders that share a ledger do everything once")
  func shared() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source, channels: 8, messages: 40)
    let archive = try await harness.pull()
    let loaders = try (0..<3).map { _ in
      Loader(
        archive: archive, destination: harness.destination,
        ledger: try SQLiteLedger(at: harness.ledgerPath, isShared: true), clock: harness.clock)
    }
    let written = try await withThrowingTaskGroup(of: Int.self) { group in
      for loader in loaders { group.addTask { try await loader.run().written } }
      return try await group.reduce(0, +)
    }
    #expect(written == 320)
    #expect(harness.destination.state.withLock { $0.log["put"] } == 320)
    for loader in loaders { try await (loader.ledger as? SQLiteLedger)?.close() }
    #expect(try await harness.verify(archive).isEqual)
  }

  @Test("who does not share keeps the others out, and is kept out by them")
  func excluded() throws {
    let harness = try MigrationHarness()
    let shared = try SQLiteLedger(at: harness.ledgerPath, isShared: true)
    #expect(throws: ChatError.self) { _ = try SQLiteLedger(at: harness.ledgerPath) }
    _ = try SQLiteLedger(at: harness.ledgerPath, isShared: true)
    withExtendedLifetime(shared) {}
  }

  @Test("the lease of a process that ended is another's")
  func abandoned() async throws {
    let harness = try MigrationHarness()
    let other = try SQLiteLedger(at: harness.ledgerPath, isShared: true)
    try await other.register([ChannelExtent(channel: 1, lastMessage: 5)])
    var gone: SQLiteLedger? = try SQLiteLedger(at: harness.ledgerPath, isShared: true)
    #expect(try await gone?.lease(by: "")?.channel == 1)
    #expect(try await other.lease(by: "") == nil)
    gone = nil
    #expect(try await other.lease(by: "")?.channel == 1)
  }
}
