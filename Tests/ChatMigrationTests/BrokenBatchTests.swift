import Synchronization
import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("A batch that breaks in the middle")
struct BrokenBatchTests {
  @Test(
    "what a stopped or cut batch left over is written by the next run, not listed as refused",
    arguments: [ChatError.Kind.cancelled, .authentication, .network(.closed), .timeout])
  func leftOver(_ kind: ChatError.Kind) async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let archive = try await harness.pull()
    let half = HalfWritten(harness.destination, kind)
    do {
      _ = try await Loader(
        archive: archive, destination: half, ledger: try SQLiteLedger(at: harness.ledgerPath), clock: harness.clock
      ).run()
      // A passing reason is tried again by the run itself.
    } catch { #expect(error.kind == kind) }
    let summary = try await harness.load(archive)
    #expect(half.wasHit && summary.counts.refused == 0)
    #expect(try await harness.verify(archive).isEqual)
  }

  @Test("a refusal of the item itself is listed, and the rest goes on")
  func refusedItems() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let archive = try await harness.pull()
    let half = HalfWritten(harness.destination, .tooLarge(limit: nil, unit: .bytes))
    let summary = try await Loader(
      archive: archive, destination: half, ledger: try SQLiteLedger(at: harness.ledgerPath), clock: harness.clock
    ).run()
    #expect(half.wasHit && summary.counts.refused > 0)
    #expect(summary.counts.messages + summary.counts.refused == 120)
  }
}

/// Writes the first half of one batch and refuses the rest of it.
private final class HalfWritten: ForwardingDestination {
  let inner: any ChatDestination
  private let kind: ChatError.Kind
  private let hit = Mutex(false)

  init(_ inner: MemoryService, _ kind: ChatError.Kind) {
    self.inner = inner
    self.kind = kind
  }

  var wasHit: Bool { hit.withLock { $0 } }

  func putMessages(
    _ messages: [MessageRecord], in channel: ChannelID
  ) async throws(ChatError) -> [PutOutcome<MessageID>] {
    let isFirst = hit.withLock { hit in
      defer { hit = true }
      return !hit
    }
    guard isFirst else { return try await inner.putMessages(messages, in: channel) }
    let written = Array(messages.prefix(messages.count / 2))
    let outcomes = try await inner.putMessages(written, in: channel)
    let error = ChatError(kind, operation: .writeDestination)
    return outcomes + Array(repeating: .refused(error), count: messages.count - written.count)
  }
}
