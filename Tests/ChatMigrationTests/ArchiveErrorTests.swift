import Foundation
import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("An archive that cannot be used says why")
struct ArchiveErrorTests {
  let folder: Folder
  let identity = Archive.Identity(vendor: "memory", createdAt: Timestamp(milliseconds: 0))

  init() throws { folder = try Folder() }

  /// A closed archive with some content.
  func closed(_ name: String) async throws -> String {
    let service = MemoryService()
    SampleChats.fill(service)
    let archive = try Archive.create(at: folder.file(name), identity)
    _ = try await Extractor(source: service, archive: archive, clock: LeapingClock()).run()
    try await archive.close()
    return archive.path
  }

  func failure(_ body: () async throws -> Void) async -> ChatError? {
    do { try await body() } catch { return error as? ChatError }
    return nil
  }

  @Test("a text file is no archive")
  func text() async throws {
    let path = folder.file("text")
    try Data(repeating: 65, count: 5000).write(to: URL(fileURLWithPath: path))
    let error = await failure { _ = try Archive.open(at: path) }
    #expect(error?.kind == .storage(.corrupt))
    #expect(error?.detail.contains("not an archive") == true)
  }

  @Test("another SQLite file is no archive")
  func otherDatabase() async throws {
    let path = try await closed("other")
    try Database(path: path, mode: .readWrite, operation: .archive).execute("PRAGMA application_id = 1")
    let error = await failure { _ = try Archive.open(at: path) }
    #expect(error?.kind == .storage(.corrupt))
    #expect(error?.detail.contains("not an archive") == true)
  }

  @Test("a newer form is named as such")
  func newer() async throws {
    let path = try await closed("newer")
    try Database(path: path, mode: .readWrite, operation: .archive).execute("PRAGMA user_version = 99")
    #expect(await failure { _ = try Archive.open(at: path) }?.kind == .storage(.newerVersion))
  }

  @Test("a truncated file is found at once", arguments: [50, 100, 4096, 8192, 20000])
  func truncated(length: Int) async throws {
    let path = try await closed("truncated")
    truncate(path, off_t(length))
    #expect(await failure { _ = try Archive.open(at: path) }?.kind == .storage(.corrupt))
  }

  @Test("a file with damaged pages gives an error and never a crash", arguments: 0..<20)
  func damaged(seed: UInt64) async throws {
    let path = try await closed("damaged")
    var random = SeededGenerator(seed: seed)
    var bytes = try Array(Data(contentsOf: URL(fileURLWithPath: path)))
    for _ in 0..<200 { bytes[Int.random(in: 100..<bytes.count, using: &random)] = .random(in: 0...255, using: &random) }
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    let error = await failure {
      let archive = try Archive.open(at: path)
      guard try await archive.verify().isWhole else {
        throw ChatError(.storage(.corrupt), operation: .archive)
      }
    }
    #expect(error?.kind == .storage(.corrupt))
  }

  @Test("a missing file, a folder and an existing target are told apart")
  func paths() async throws {
    let missing = await failure { _ = try Archive.open(at: folder.file("missing")) }
    #expect(missing?.kind == .storage(.denied))
    #expect(missing?.detail.contains("no such file") == true)
    #expect(await failure { _ = try Archive.open(at: folder.path) }?.kind == .storage(.denied))
    let path = try await closed("there")
    #expect(await failure { _ = try Archive.create(at: path, identity) }?.kind == .conflict)
  }

  @Test("a full disk stops the pull, and the pull goes on when there is room again")
  func fullDisk() async throws {
    let service = MemoryService()
    SampleChats.fill(service, messages: 100)
    let archive = try Archive.create(at: folder.file("full"), identity)
    try await archive.limitPages(40)
    let extractor = Extractor(source: service, archive: archive, clock: LeapingClock())
    let error = await failure { _ = try await extractor.run() }
    #expect(error?.kind == .storage(.full))
    #expect(error?.detail.contains("no space") == true)
    try await archive.limitPages(1_000_000)
    #expect(try await extractor.run().counts.messages == 400)
    #expect(try await archive.verify().isWhole)
  }

  @Test("an archive of another vendor is not mixed with this one")
  func otherVendor() async throws {
    let archive = try Archive.create(at: folder.file("other"), identity)
    let error = await failure { try await archive.require(vendor: "else", app: nil) }
    #expect(error?.kind == .invalidArgument(field: "vendor"))
  }

  @Test("the schema in the program is the schema in the documents")
  func schema() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let document = try String(contentsOf: root.appending(path: "Schemas/archive.sql"), encoding: .utf8)
    #expect(ArchiveSchema.sql + "\n" == document)
  }
}
