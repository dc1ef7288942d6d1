import ChatCache
import ChatInterchange
import Foundation
import Testing
import UnifiedChat

@testable import ChatMigration

/// The three files that hold what is nowhere else, made and opened as their programs do it.
enum Store: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case cache, archive, ledger

  var testDescription: String { rawValue }

  static let identity = CacheIdentity(vendor: "test", app: "app", user: "me")
  private static let unsent = (1...5).map { "unsent \($0)" }

  /// A closed file with something in it; its path.
  func make(in folder: Folder) async throws -> String {
    switch self {
    case .cache:
      let cache = try LocalCache(Self.identity, at: .directory(folder.path))
      try Self.fill(cache)
      cache.close()
      return try #require(cache.path)
    case .archive:
      let service = MemoryService()
      SampleChats.fill(service, messages: 100)
      let identity = Archive.Identity(id: "77", vendor: "memory", createdAt: Timestamp(milliseconds: 0))
      let archive = try Archive.create(at: folder.file("a.uchat"), identity)
      _ = try await Extractor(source: service, archive: archive, clock: LeapingClock()).run()
      try await archive.close()
      return archive.path
    case .ledger:
      let path = folder.file("l.ledger")
      let ledger = try SQLiteLedger(at: path)
      try await ledger.bind(archive: "77", vendor: "old", destination: "new", rules: "")
      for number in 0..<2000 { _ = try await ledger.assign(UserID("user \(number)"), oneOf: [UserID("new \(number)")]) }
      try await ledger.close()
      return path
    }
  }

  static func fill(_ cache: LocalCache) throws {
    try cache.write { session throws(ChatError) in
      for (number, words) in unsent.enumerated() { try enqueue(words, Int64(number), session) }
    }
    for batch in 0..<4 as Range<Int64> {
      try cache.write { session throws(ChatError) in
        for number in 1...250 as ClosedRange<Int64> { _ = try session.merge(message(batch * 250 + number)) }
      }
    }
  }

  static func enqueue(_ words: String, _ number: Int64, _ session: CacheSession) throws(ChatError) {
    _ = try session.enqueue(
      OutboxEntry(
        localID: LocalID("l\(number)"), channel: "c", clientMessageID: ClientMessageID("k\(number)"), draft: .text(words),
        createdAt: Timestamp(milliseconds: number)))
  }

  static func message(_ number: Int64) -> Message {
    Message(
      channel: "c", id: MessageID("m\(number)"), sender: "bob", position: MessagePosition(sequence: number),
      createdAt: Timestamp(milliseconds: 1000 + number), content: .text("words of \(number)"))
  }

  /// Opens the file and looks at everything that `make` put in.
  /// - Returns: whether it is there: with the cache, what waits to be sent.
  func holdsAll(_ path: String) async throws -> Bool {
    switch self {
    case .cache:
      let cache = try LocalCache(Self.identity, at: .directory((path as NSString).deletingLastPathComponent))
      defer { cache.close() }
      return try Self.waiting(cache) == Self.unsent
    case .archive:
      let archive = try Archive.open(at: path)
      let isWhole = try await archive.verify().isWhole
      let count = try await archive.counts().messages
      try await archive.close()
      return isWhole && count == 400
    case .ledger:
      let ledger = try SQLiteLedger(at: path, creates: false)
      let last = try await ledger.original(ofUser: "new 1999")
      try await ledger.close()
      return last == "user 1999"
    }
  }

  static func waiting(_ cache: LocalCache) throws -> [String] {
    try cache.read { session throws(ChatError) in try session.waitingMessages(in: "c") }
      .map { $0.content.searchableText ?? "" }
  }
}
