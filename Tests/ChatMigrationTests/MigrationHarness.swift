import ChatInterchange
import Foundation
import UnifiedChat

@testable import ChatMigration

/// One archive, one ledger, one destination.
struct MigrationHarness {
  let folder: Folder
  let clock = LeapingClock()
  let source = MemoryService(vendor: "old")
  let destination: MemoryService
  var archivePath: String { folder.file("chats.archive") }
  var ledgerPath: String { folder.file("chats.ledger") }

  init(_ destination: MemoryService = MemoryService(vendor: "new")) throws {
    folder = try Folder()
    self.destination = destination
  }

  func pull(rereading: Bool = false) async throws -> Archive {
    let identity = Archive.Identity(id: "77", vendor: "old", createdAt: clock.now)
    let archive = try Archive.openOrCreate(at: archivePath, identity)
    _ = try await Extractor(
      source: source, archive: archive, options: ExtractionOptions(rereads: rereading), clock: clock
    ).run()
    return archive
  }

  /// A whole run from source to destination.
  func run(_ rules: LoadRules? = nil, refreshes: Bool = false, rereads: Bool = false) -> MigrationRun {
    var options = MigrationOptions()
    options.extraction.refreshes = refreshes
    options.extraction.rereads = rereads
    options.load.rules = rules
    return MigrationRun(
      source: source, archive: archivePath, destination: destination, readBack: destination, ledger: ledgerPath,
      options: options, clock: clock)
  }

  @discardableResult
  func load(_ archive: Archive, _ options: LoadOptions = LoadOptions()) async throws -> LoadSummary {
    try await closing { ledger in
      try await Loader(
        archive: archive, destination: destination, ledger: ledger, options: options, clock: clock
      ).run()
    }
  }

  func verify(_ archive: Archive, _ options: VerifyOptions = VerifyOptions()) async throws -> VerifyResult {
    try await closing { ledger in
      try await Verifier(
        archive: archive, ledger: ledger, destination: destination, readBack: destination, options: options, clock: clock
      ).run()
    }
  }

  /// The lock of a ledger that is let go of alone may outlive the call by a moment.
  private func closing<Value>(_ body: (SQLiteLedger) async throws -> Value) async throws -> Value {
    let ledger = try SQLiteLedger(at: ledgerPath)
    do {
      let value = try await body(ledger)
      try await ledger.close()
      return value
    } catch {
      try? await ledger.close()
      throw error
    }
  }

  /// What the destination holds, in an order that does not depend on which channel was written first.
  var contents: [String] {
    destination.state.withLock { state in
      var lines: [String] = state.users.map { Record.user($0).json().text() }.sorted()
      let channels = state.channels.sorted { ($0.record.origin?.id ?? "") < ($1.record.origin?.id ?? "") }
      for channel in channels {
        var record = channel.record
        record.channel.id = "?"
        lines.append(Record.channel(record).json().text())
        lines += channel.members.map { member in
          var member = member
          member.channel = "?"
          return Record.member(member).json().text()
        }.sorted()
        let pairs = channel.messages.map { ($0.message.id, $0.origin.map { MessageID($0.id) }) }
        let origins = Dictionary(pairs, uniquingKeysWith: { one, _ in one })
        for message in channel.messages {
          var message = message
          // Ids differ from run to run, so an answer is told by where its message is from.
          message.message.replyTo = message.message.replyTo.map { Reply(id: (origins[$0.id] ?? nil) ?? "gone") }
          message.message.id = "?"
          message.message.channel = "?"
          // Numbers have holes where something was removed.
          message.message.position = nil
          lines.append(Record.message(message).json().text())
        }
      }
      return lines
    }
  }
}
