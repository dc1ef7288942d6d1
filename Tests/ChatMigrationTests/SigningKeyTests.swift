import ChatInterchange
import Foundation
import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("A ledger and the key that its runs sign with")
struct SigningKeyTests {
  private func run(_ harness: MigrationHarness, trusting: Bool = false) -> MigrationRun {
    var options = MigrationOptions()
    options.trustsUnsignedEnvelopes = trusting
    return MigrationRun(
      source: harness.source, archive: harness.archivePath, destination: harness.destination,
      readBack: harness.destination, ledger: harness.ledgerPath, options: options, clock: harness.clock)
  }

  @Test("is not gone on with under another one, nor after a version that signed nothing, unless that is said")
  func otherKey() async throws {
    for first in [String?.none, "one"] {
      let harness = try MigrationHarness()
      SampleChats.fill(harness.source)
      harness.destination.state.withLock { $0.signingKey = first }
      #expect(try await run(harness).run().verification?.isEqual == true)
      harness.destination.state.withLock { $0.signingKey = "two" }
      let writes = harness.destination.writes
      for step in [{ _ = try await run(harness).load() }, { _ = try await run(harness).verify() }] as [() async throws -> Void] {
        let error = await #expect(throws: ChatError.self) { try await step() }
        #expect(error?.kind == .conflict && error?.detail.contains("--trust-unsigned-envelopes") == true)
      }
      #expect(harness.destination.writes == writes)
      #expect(try await run(harness, trusting: true).run().verification?.isEqual == true)
      // Neither key fits all that is there now: that has to be said each time.
      for key in [first, "two"].compactMap(\.self) {
        harness.destination.state.withLock { $0.signingKey = key }
        let error = await #expect(throws: ChatError.self) { try await run(harness).verify() }
        #expect(error?.detail.contains("several admin secrets") == true)
        #expect(try await run(harness, trusting: true).verify().verification?.isEqual == true)
      }
    }
  }
}

@Suite("A redacted copy")
struct WholeRedactionTests {
  @Test("that was stopped leaves nothing behind, and is made when it is asked for again")
  func stopped() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let archive = try await harness.pull()
    let target = harness.folder.file("copy.archive")
    let rules = RedactionRules(masksBodies: true)
    let stopped = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      _ = try await archive.redacted(to: target, rules, at: Timestamp(milliseconds: 1))
    }
    await #expect(throws: ChatError.self) { try await stopped.value }
    let names = try FileManager.default.contentsOfDirectory(atPath: harness.folder.path)
    #expect(!names.contains { $0.hasPrefix("copy.archive") }, "\(names)")
    // A killed one leaves its half, which is in nobody's way.
    try Data("half".utf8).write(to: URL(fileURLWithPath: target + ".part"))
    let copy = try await archive.redacted(to: target, rules, at: Timestamp(milliseconds: 1))
    #expect(try await copy.counts().messages == archive.counts().messages)
    #expect(try await copy.isComplete())
    try await copy.close()
    await #expect(throws: ChatError.self) { _ = try await archive.redacted(to: target, rules, at: Timestamp(milliseconds: 1)) }
    try await archive.close()
  }
}
