import ChatCache
import Foundation
import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("When the power goes between any two writes, the last good state is there")
struct PowerLossTests {
  /// What was left, in a folder that is gone with the value.
  private struct Remains {
    let folder: Folder
    let path: String

    /// - Parameter whole: the file that power was lost for, where attachments lie beside it: each is on the disk before a
    ///   row names it.
    init(_ pieces: (file: [UInt8], log: [UInt8]), _ name: String, beside whole: String? = nil) throws {
      folder = try Folder()
      path = folder.file(name)
      try Data(pieces.file).write(to: URL(fileURLWithPath: path))
      try Data(pieces.log).write(to: URL(fileURLWithPath: path + "-wal"))
      if let whole { try FileManager.default.copyItem(atPath: whole + ".files", toPath: path + ".files") }
    }
  }

  /// What the client keeps, after each of its steps: taken, tried, sent, received.
  @Test("of a cache: whole steps, unsent messages among them", arguments: PowerLoss.End.allCases)
  func cache(_ end: PowerLoss.End) throws {
    let folder = try Folder()
    let cache = try LocalCache(Store.identity, at: .directory(folder.path))
    let path = try #require(cache.path)
    var states: [(frames: Int, state: [String])] = [(try PowerLoss(path).frames, try state(cache))]
    for number in 1...6 as ClosedRange<Int64> {
      for step in 0..<4 {
        try cache.write { session throws(ChatError) in
          switch step {
          case 0: try Store.enqueue("unsent \(number)", number, session)
          case 1: try session.beginTry(LocalID("l\(number)"))
          case 2 where number % 2 == 0:
            var sent = Store.message(number)
            sent.clientMessageID = ClientMessageID("k\(number)")
            _ = try session.confirm(LocalID("l\(number)"), as: sent)
          default: _ = try session.merge(Store.message(100 + number * 4 + Int64(step)))
          }
        }
        states.append((try PowerLoss(path).frames, try state(cache)))
      }
    }
    let loss = try PowerLoss(path)
    #expect(loss.frames > 60)
    let name = (path as NSString).lastPathComponent
    // The first steps make the tables; a loss there leaves an empty cache.
    for frames in stride(from: end.offset, to: loss.frames, by: PowerLoss.End.allCases.count) {
      let remains = try Remains(loss.cut(after: frames, end), name)
      let copy = try LocalCache(Store.identity, at: .directory(remains.folder.path))
      let kept = loss.committed(within: frames)
      let expected = states.last { $0.frames <= kept }?.state ?? []
      #expect(try state(copy) == expected && copy.recovery == nil, "after frame \(frames)")
      if frames % 5 == 0 { #expect(try copy.integrity() == "ok", "after frame \(frames)") }
      copy.close()
    }
    for pages in stride(from: end.offset, to: 40, by: 3) {
      let remains = try Remains(loss.checkpointed(pages), name)
      let copy = try LocalCache(Store.identity, at: .directory(remains.folder.path))
      #expect(try state(copy) == states.last?.state && copy.recovery == nil, "with \(pages) pages in the file")
      copy.close()
    }
    cache.close()
  }

  private func state(_ cache: LocalCache) throws -> [String] {
    try cache.read { session throws(ChatError) in
      let whole = CachedRange(low: .lowest, high: .highest)
      let messages = try session.messages(in: "c", .newer, of: .lowest, within: whole, limit: .max)
      return try (messages + session.waitingMessages(in: "c")).map { "\($0.content.searchableText ?? "") \($0.state)" }
    }
  }

  @Test("of an archive: it opens whole, and the same pull goes on to the same end", arguments: PowerLoss.End.allCases)
  func archive(_ end: PowerLoss.End) async throws {
    let folder = try Folder()
    let service = MemoryService()
    SampleChats.fill(service, messages: 3)
    let identity = Archive.Identity(id: "77", vendor: "memory", createdAt: Timestamp(milliseconds: 0))
    let path = folder.file("a.uchat")
    let archive = try Archive.create(at: path, identity)
    _ = try await Extractor(source: service, archive: archive, clock: LeapingClock()).run()
    let loss = try PowerLoss(path)
    let whole = try await archive.verify()
    #expect(loss.frames > 20 && whole.isWhole)
    let cuts = end.places(in: loss).map { loss.cut(after: $0, end) } + (0..<3).map { loss.checkpointed($0 * 8 + end.offset) }
    var last = 0
    for (number, pieces) in cuts.enumerated() {
      let remains = try Remains(pieces, "a.uchat", beside: path)
      let copy = try Archive.open(at: remains.path)
      let messages = try await copy.counts().messages
      #expect(messages >= last || number >= end.places(in: loss).count, "cut \(number)")
      last = messages
      _ = try await Extractor(source: service, archive: copy, clock: LeapingClock()).run()
      let again = try await copy.verify(against: archive)
      #expect(again.findings == [] && again.counts.messages == whole.counts.messages, "cut \(number)")
      try await copy.close()
    }
    try await archive.close()
  }

  @Test("of a ledger: what was confirmed is known, and the same load goes on without doubles", arguments: PowerLoss.End.allCases)
  func ledger(_ end: PowerLoss.End) async throws {
    let harness = try MigrationHarness(MemoryService(vendor: "new", idempotent: true))
    SampleChats.fill(harness.source, messages: 3)
    let archive = try await harness.pull()
    let ledger = try SQLiteLedger(at: harness.ledgerPath)
    func load(_ ledger: SQLiteLedger) async throws -> LoadSummary {
      try await Loader(
        archive: archive, destination: harness.destination, ledger: ledger, options: LoadOptions(), clock: harness.clock
      ).run()
    }
    _ = try await load(ledger)
    let contents = harness.contents
    let loss = try PowerLoss(harness.ledgerPath)
    #expect(loss.frames > 20 && !contents.isEmpty)
    let cuts = end.places(in: loss).map { loss.cut(after: $0, end) } + (0..<3).map { loss.checkpointed($0 * 8 + end.offset) }
    var calls: [Int] = []
    for (number, pieces) in cuts.enumerated() {
      let remains = try Remains(pieces, "l.ledger")
      let copy = try SQLiteLedger(at: remains.path)
      let before = harness.destination.writes
      _ = try await load(copy)
      calls.append(harness.destination.writes - before)
      #expect(harness.contents == contents, "cut \(number)")
      try await copy.close()
    }
    // What the ledger knew after a loss is not written again: the later the loss, the less there is to do.
    let places = end.places(in: loss)
    #expect(calls[0] > 4 && calls[..<places.count] == calls[..<places.count].sorted(by: >)[...], "\(calls)")
    for (call, place) in zip(calls, places) where loss.committed(within: place) == loss.committed(within: loss.frames) {
      #expect(call == 0)
    }
    #expect(calls[places.count...].allSatisfy { $0 == 0 }, "\(calls)")
    try await ledger.close()
    try await archive.close()
  }
}
