import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("What was exported elsewhere joins an archive")
struct MergeTests {
  /// The source has lost the first ten messages of each channel; the export has them, and lacks the last five.
  private func prepared() async throws -> (MigrationHarness, Archive, MemoryService) {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let export = MemoryService(vendor: "old")
    export.state.withLock { [now = harness.source.state.withLock { $0 }] in $0 = now }
    harness.source.state.withLock { state in
      for index in state.channels.indices { state.channels[index].messages.removeFirst(10) }
    }
    export.state.withLock { state in
      for index in state.channels.indices { state.channels[index].messages.removeLast(5) }
      state.users.append(UserRecord(user: User(id: "gone", name: "Gone")))
    }
    return (harness, try await harness.pull(), export)
  }

  @Test("older messages come before newer ones, nothing is twice, and a second import adds nothing")
  func older() async throws {
    let (harness, archive, export) = try await prepared()
    let summary = try await archive.importing(export, clock: harness.clock)
    #expect(summary.messages == 40 && summary.users == 1 && summary.reordered == 4 && summary.unreadable == 0)
    for channel in try await archive.channels(limit: 10) {
      let ids = try await archive.messages(in: channel.ordinal, limit: 100).map(\.id.rawValue)
      #expect(ids == (0..<30).map { "\(channel.id)-\($0)" })
    }
    #expect(try await archive.verify().isWhole)
    let again = try await archive.importing(export, clock: harness.clock)
    #expect(again == MergeSummary())
    _ = try await harness.load(archive)
    let result = try await harness.verify(archive)
    #expect(result.isEqual && result.totals.found == 120)
  }

  @Test("a ledger that went by the old order does not go on with the new one")
  func reordered() async throws {
    let (harness, archive, export) = try await prepared()
    _ = try await harness.load(archive)
    _ = try await archive.importing(export, clock: harness.clock)
    let error = await #expect(throws: ChatError.self) { _ = try await harness.load(archive) }
    #expect(error?.kind == .conflict)
  }

  @Test("a copy without a user and without texts holds neither")
  func redacted() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let archive = try await harness.pull()
    let rules = RedactionRules(droppedUsers: ["user-1"], masksBodies: true)
    let copy = try await archive.redacted(to: harness.folder.file("copy"), rules, at: harness.clock.now)
    #expect(try await copy.verify().isWhole)
    #expect(try await copy.counts().files == 0)
    #expect(try await copy.user("user-1") == nil)
    for channel in try await copy.channels(limit: 10) {
      for stored in try await copy.messages(in: channel.ordinal, limit: 100) {
        let message = try stored.stored.message()
        #expect(message.raw == nil && !message.message.namedUsers.contains("user-1"))
        if case .text(let text) = message.message.content { #expect(text.allSatisfy { $0 == "·" }) }
      }
    }
  }

  @Test("an archive of an earlier version is brought up to date, and keeps what it holds", arguments: [1, 2])
  func earlierVersion(_ version: Int) async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let archive = try await harness.pull()
    let digest = try await archive.digest()
    try await archive.close()
    let database = try Database(path: harness.archivePath, mode: .readWrite, operation: .archive)
    try database.execute("DROP TABLE vendor_rows; DELETE FROM cursors WHERE list = 'rows'")
    if version == 1 { try database.execute("DROP TABLE changes; DROP TABLE seen") }
    try database.execute("PRAGMA user_version = \(version)")
    database.close()
    let opened = try Archive.open(at: harness.archivePath)
    #expect(try await opened.digest() == digest)
    #expect(try await opened.lastChange() == 0)
    #expect(try await opened.rowCounts().isEmpty)
    #expect(try await opened.verify().isWhole)
    // What came with the new form can be kept in it.
    harness.source.state.withLock { $0.rows = [VendorRow(kind: "devices", id: "1", raw: JSONText(unchecked: "{}"))] }
    let options = ExtractionOptions(refreshes: true)
    _ = try await Extractor(source: harness.source, archive: opened, options: options, clock: harness.clock).run()
    #expect(try await opened.rowCounts().map(\.count) == [1])
    #expect(try await opened.digest() != digest)
  }
}
