import ChatCache
import Foundation
import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("A cache, an archive or a ledger that cannot be used says what, where and the mend, and is not touched")
struct StoreFaultTests {
  enum Fault: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case otherProgram, otherTables, newerVersion, truncated, damagedPage, damagedEverywhere, folder, link
    var testDescription: String { rawValue }

    /// What a cache answers by setting the file aside and beginning anew, with what waited to be sent.
    var isDamage: Bool { [.truncated, .damagedPage, .damagedEverywhere].contains(self) }

    var kind: ChatError.Kind {
      switch self {
      case .newerVersion: .storage(.newerVersion)
      case .truncated, .damagedPage, .damagedEverywhere: .storage(.corrupt)
      case .otherProgram, .otherTables, .folder, .link: .storage(.denied)
      }
    }
  }

  /// Another program's file is no damage for a cache, which would set that aside; for the others it is "no archive".
  private func kind(_ store: Store, _ fault: Fault) -> ChatError.Kind {
    let isForeign = fault == .otherProgram || fault == .otherTables
    return store != .cache && isForeign ? .storage(.corrupt) : fault.kind
  }

  private static let mends = ["another", "newer", "take a copy", "put a copy", "name", "move", "use that one"]

  @Test("whatever is wrong with it", arguments: Store.allCases, Fault.allCases)
  func fault(_ store: Store, _ fault: Fault) async throws {
    let folder = try Folder()
    let path = try await store.make(in: folder)
    try inflict(fault, on: path)
    let before = try contents(path)
    if store == .cache, fault.isDamage { return try setAside(path, before) }
    do {
      _ = try await store.holdsAll(path)
      Issue.record("it opens")
    } catch let error as ChatError {
      #expect(error.kind == kind(store, fault), "\(error)")
      #expect(error.detail.contains(path), "\(error.detail)")
      #expect(Self.mends.contains { error.detail.contains($0) } || fault == .folder, "\(error.detail)")
      #expect(!error.detail.contains("\n"))
    }
    #expect(try contents(path) == before)
  }

  @Test("put right, it has everything that it had", arguments: Store.allCases, [Fault.otherProgram, .newerVersion])
  func mended(_ store: Store, _ fault: Fault) async throws {
    let folder = try Folder()
    let path = try await store.make(in: folder)
    let (id, version) = try header(path)
    try inflict(fault, on: path)
    await #expect(throws: ChatError.self) { _ = try await store.holdsAll(path) }
    try pragma("application_id = \(id)", path)
    try pragma("user_version = \(version)", path)
    #expect(try await store.holdsAll(path))
  }

  @Test("for a user who may not write it", .enabled(if: geteuid() != 0), arguments: [Store.cache, .ledger])
  func readOnly(_ store: Store) async throws {
    let folder = try Folder()
    let path = try await store.make(in: folder)
    chmod(path, 0o400)
    let before = try contents(path)
    do {
      if store == .ledger { _ = try SQLiteLedger(at: path) } else { _ = try await store.holdsAll(path) }
      Issue.record("it opens")
    } catch let error as ChatError {
      #expect(error.kind == .storage(.denied), "\(error)")
      #expect(error.detail.contains(path))
    }
    #expect(try contents(path) == before)
    chmod(path, 0o600)
    #expect(try await store.holdsAll(path))
  }

  @Test("each has an application id of its own")
  func ids() async throws {
    var seen: Set<Int> = []
    for store in Store.allCases {
      let folder = try Folder()
      let id = try header(try await store.make(in: folder)).id
      #expect(id != 0)
      seen.insert(id)
    }
    #expect(seen.count == Store.allCases.count)
  }

  // MARK: Faults

  private func inflict(_ fault: Fault, on path: String) throws {
    let url = URL(fileURLWithPath: path)
    switch fault {
    case .otherProgram: try pragma("application_id = 5", path)
    case .otherTables:
      try FileManager.default.removeItem(at: url)
      try Data().write(to: url)
      let database = try Database(path: path, mode: .readWrite, operation: .archive)
      try database.execute("CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('mine')")
    case .newerVersion: try pragma("user_version = 999", path)
    case .truncated: truncate(path, off_t(try contents(path).count / 2))
    case .damagedPage, .damagedEverywhere:
      var bytes = try contents(path)
      let middle = bytes.count / 2 / 4096 * 4096
      let places = fault == .damagedPage ? middle..<middle + 4096 : 8192..<bytes.count
      // What was written first waits to be sent; it is in front.
      for place in places where fault == .damagedPage || place / 4096 % 2 == 1 { bytes[place] = 0xAA }
      try Data(bytes).write(to: url)
    case .folder:
      try FileManager.default.removeItem(at: url)
      try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
    case .link:
      try FileManager.default.moveItem(atPath: path, toPath: path + ".moved")
      try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path + ".moved")
    }
  }

  private func pragma(_ text: String, _ path: String) throws {
    try Database(path: path, mode: .readWrite, operation: .archive).execute("PRAGMA \(text)")
  }

  private func header(_ path: String) throws -> (id: Int, version: Int) {
    let bytes = try contents(path)
    func field(_ place: Int) -> Int { bytes[place..<place + 4].reduce(0) { $0 << 8 | Int($1) } }
    return (field(68), field(60))
  }

  private func contents(_ path: String) throws -> [UInt8] {
    var isFolder: ObjCBool = false
    if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue { return [] }
    return Array(try Data(contentsOf: URL(fileURLWithPath: path)))
  }

  /// A damaged cache opens: the old file stays beside the new one.
  private func setAside(_ path: String, _ before: [UInt8]) throws {
    let cache = try LocalCache(Store.identity, at: .directory((path as NSString).deletingLastPathComponent))
    defer { cache.close() }
    let recovery = try #require(cache.recovery)
    let kept = try contents(recovery.quarantined)
    // SQLite's counters of changes, which the look itself moves on.
    let counters = [24..<28, 92..<96]
    let changed = kept.count == before.count
      ? kept.indices.filter { place in kept[place] != before[place] && !counters.contains { $0.contains(place) } } : []
    #expect(kept.count == before.count && changed.isEmpty, "\(changed.count) bytes from \(changed.first ?? -1) to \(changed.last ?? -1)")
    #expect(try Store.waiting(cache).count == recovery.savedMessages)
    #expect(try cache.integrity() == "ok")
  }
}
