import Synchronization
import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("An estimate is made for those who ask for it alone")
struct EstimateTests {
  /// A source whose estimate is expensive.
  final class Expensive: ForwardingSource {
    let inner: any ChatSource
    let asked = Mutex(0)
    init(_ inner: any ChatSource) { self.inner = inner }

    func estimate() async throws(ChatError) -> SourceEstimate? {
      asked.withLock { $0 += 1 }
      return SourceEstimate(messages: 1, isExact: false, requests: 7)
    }
  }

  @Test("not by a pull of which each file fails, a later look, a plan or a load")
  func neverAsked() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source, channels: 1)
    let source = Expensive(harness.source)
    let checks = Mutex(0)
    harness.source.setFault { call, _, committed in
      if call == "check", !committed { checks.withLock { $0 += 1 } }
      return call == "download" ? ChatError(.timeout, operation: .download) : nil
    }
    let archive = try Archive.openOrCreate(
      at: harness.archivePath, Archive.Identity(vendor: "old", createdAt: harness.clock.now))
    for options in [ExtractionOptions(), ExtractionOptions(refreshes: true), ExtractionOptions(rereads: true)] {
      _ = try await Extractor(source: source, archive: archive, options: options, clock: harness.clock).run()
    }
    // Once a pass, and for each of the six files that fail.
    #expect(checks.withLock { $0 } >= 9)
    let run = MigrationRun(
      source: source, archive: harness.archivePath, destination: harness.destination,
      readBack: Expensive(harness.destination), ledger: harness.ledgerPath, options: MigrationOptions(),
      clock: harness.clock)
    try await archive.close()
    _ = try await run.plan()
    _ = try await run.load()
    #expect(source.asked.withLock { $0 } == 0)
    // A source that wraps another tells what that one says; one that knows nothing of it says so.
    #expect(try await Wrapped(inner: source).estimate()?.requests == 7)
    #expect(try await harness.source.estimate() == nil)
  }

  struct Wrapped: ForwardingSource { let inner: any ChatSource }
}
