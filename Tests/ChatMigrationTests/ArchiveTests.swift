import ChatInterchange
import ChatJSON
import Foundation
import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("An archive holds what a source gave")
struct ArchiveTests {
  let folder: Folder
  let clock = LeapingClock()
  let identity = Archive.Identity(
    id: "0123", vendor: "memory", app: "app", createdAt: Timestamp(milliseconds: 1_700_000_000_000))

  init() throws { folder = try Folder() }

  func pulled(
    _ service: MemoryService, _ name: String = "a.archive", _ options: ExtractionOptions = ExtractionOptions()
  ) async throws -> Archive {
    let archive = try Archive.openOrCreate(at: folder.file(name), identity)
    _ = try await Extractor(source: service, archive: archive, options: options, clock: clock).run()
    return archive
  }

  @Test("every record comes back as it was, raw form included")
  func roundTrip() async throws {
    let service = MemoryService()
    SampleChats.fill(service)
    let archive = try await pulled(service)
    let counts = try await archive.counts()
    #expect(counts.users == 10 && counts.channels == 4 && counts.messages == 120 && counts.files == 2)
    #expect(counts.placeholders == 0 && counts.unreadable == 0)
    for stored in service.state.withLock({ $0.channels }) {
      let channel = try #require(try await archive.channel(stored.record.channel.id))
      #expect(try channel.stored.channel() == stored.record)
      let messages = try await archive.messages(in: channel.ordinal, limit: 1000)
      #expect(messages.count == stored.messages.count)
      for (read, original) in zip(messages, stored.messages) {
        var expected = original
        let hashes = try read.stored.message().message.content.attachments.map { ($0.sha256, $0.size) }
        var index = -1
        expected.message.content = expected.message.content.mappingAttachments {
          index += 1
          var attachment = $0
          (attachment.sha256, attachment.size) = hashes[index]
          return attachment
        }
        #expect(hashes.allSatisfy { $0.0?.count == 64 })
        #expect(try read.stored.message() == expected)
      }
    }
    #expect(try await archive.verify().isWhole)
    try await archive.close()
  }

  @Test("the file is the owner's alone and stands by itself once closed")
  func ownerOnly() async throws {
    let service = MemoryService()
    SampleChats.fill(service)
    let archive = try await pulled(service)
    try await archive.close()
    let attributes = try FileManager.default.attributesOfItem(atPath: archive.path)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    #expect(names == ["a.archive", "a.archive.files"])
    let again = try Archive.open(at: archive.path)
    #expect(try await again.counts().messages == 120)
  }

  @Test("a pull that is stopped at any request and started again gives the same archive")
  func stoppedAnywhere() async throws {
    let service = MemoryService()
    SampleChats.fill(service)
    let whole = try await pulled(service)
    let digest = try #require(try await whole.digest())
    let requests = service.calls
    // Channels read at the same time may fetch a shared file once or twice, so the last few requests vary.
    for stop in stride(from: 1, to: requests - 8, by: max(1, requests / 20)) {
      let name = "stopped-\(stop)"
      let start = service.calls
      service.setFault { _, number, _ in
        number - start >= stop ? ChatError(.authentication, operation: .readSource) : nil
      }
      await #expect(throws: ChatError.self) { _ = try await pulled(service, name) }
      service.setFault(nil)
      let archive = try await pulled(service, name)
      #expect(try await archive.digest() == digest)
    }
  }

  @Test("a second copy is proved equal, and a changed one is not")
  func copies() async throws {
    let service = MemoryService()
    SampleChats.fill(service)
    let one = try await pulled(service, "one")
    let two = try await pulled(service, "two")
    #expect(try await one.verify(against: two).isWhole)
    let channel = try #require(try await two.channels(limit: 1).first)
    try await two.change("UPDATE messages SET raw = raw || ' ' WHERE ordinal = 3 AND channel = \(channel.ordinal)")
    let result = try await one.verify(against: two)
    #expect(!result.isWhole)
    #expect(result.findings.contains { $0.reason.contains(channel.id.rawValue) })
  }

  @Test("a file whose bytes change, or that is gone, is found")
  func filesAreChecked() async throws {
    let service = MemoryService()
    SampleChats.fill(service)
    let archive = try await pulled(service)
    let file = try #require(try await archive.storedFiles(limit: 1).first)
    let path = try #require(archive.files.path(of: file.stored.sha256))
    try Data("x".utf8).write(to: URL(fileURLWithPath: path))
    #expect(try await archive.verify().findings.map(\.kind) == ["file"])
    try FileManager.default.removeItem(atPath: path)
    #expect(try await archive.verify().findings.map(\.kind) == ["file"])
  }

  @Test("archive to JSON Lines to archive is equal to the byte")
  func jsonLines() async throws {
    let service = MemoryService()
    SampleChats.fill(service)
    service.state.withLock { $0.files["old://note"] = nil }
    let archive = try await pulled(service)
    #expect(try await archive.counts().unreadable > 0)
    let lines = folder.file("chats.jsonl")
    try await ArchiveLines.export(archive, to: lines)
    let copy = try await ArchiveLines.importing(
      lines, into: folder.file("copy"), identity, at: clock.now)
    #expect(copy.summary.unreadable == 0)
    #expect(try await archive.verify(against: copy.archive).isWhole)
    let again = folder.file("again.jsonl")
    try await ArchiveLines.export(copy.archive, to: again)
    #expect(try Data(contentsOf: URL(fileURLWithPath: lines)) == Data(contentsOf: URL(fileURLWithPath: again)))
  }

  @Test("a line that is no record is listed and the others are taken")
  func badLines() async throws {
    let lines = folder.file("bad.jsonl")
    let text = """
      {"type":"user","id":"u"}
      {"type":"channel","id":"c","kind":"group"}
      {"type":"message","channel":"c","id":"1","createdAt":5,"content":{"kind":"text","text":"a"}}
      {"type":"message","channel":"c","id":2,"createdAt":5,"content":{"kind":"text","text":"a"}}
      {"type":"message","channel":"other","id":"3","createdAt":5,"content":{"kind":"text","text":"a"}}
      {"type":
      """
    try Data(text.utf8).write(to: URL(fileURLWithPath: lines))
    let result = try await ArchiveLines.importing(lines, into: folder.file("bad"), identity, at: clock.now)
    #expect(result.summary == ImportSummary(lines: 6, newMessages: 1, unreadable: 3))
    #expect(try await result.archive.unreadable(limit: 10).map(\.id) == ["4", "5", "6"])
  }

  @Test("one reader can close while another goes on")
  func twoReaders() async throws {
    let service = MemoryService()
    SampleChats.fill(service)
    let one = try await pulled(service)
    let two = try Archive.open(at: one.path)
    #expect(try await two.counts().messages == 120)
    try await two.close()
    #expect(try await one.verify().isWhole)
    try await one.close()
    #expect(!FileManager.default.fileExists(atPath: one.path + "-wal"))
  }

  @Test("authors without a record of their own become placeholders")
  func placeholders() async throws {
    let service = MemoryService()
    SampleChats.fill(service)
    service.state.withLock { $0.users.removeFirst(3) }
    let counts = try await pulled(service).counts()
    #expect(counts.users == 10 && counts.placeholders == 3)
  }

  @Test("what the filter excludes is not in the archive")
  func filter() async throws {
    let service = MemoryService()
    SampleChats.fill(service)
    let filter = MigrationFilter(
      excludedChannels: ["channel 0"], excludedUsers: ["user-1"],
      since: Timestamp(milliseconds: SampleChats.start + 10_000))
    let archive = try await pulled(service, "f", ExtractionOptions(filter: filter))
    #expect(try await archive.counts().channels == 3)
    for channel in try await archive.channels(limit: 10) {
      for message in try await archive.messages(in: channel.ordinal, limit: 100) {
        let message = try message.stored.message().message
        #expect(message.sender != "user-1" && message.createdAt >= filter.since!)
      }
    }
  }

  @Test("a later pull adds what is new and nothing twice")
  func refresh() async throws {
    let service = MemoryService()
    SampleChats.fill(service, messages: 30)
    _ = try await pulled(service).close()
    let users = (0..<6).map { UserID("user-\($0)") }
    service.state.withLock { state in
      state.channels[0].messages += (30..<37).map { SampleChats.message($0, in: "channel 0", users) }
    }
    let archive = try await pulled(service, "a.archive", ExtractionOptions(refreshes: true))
    #expect(try await archive.counts().messages == 127)
    #expect(try await archive.verify().isWhole)
  }
}

extension Archive {
  /// Damages the archive as nobody should.
  func change(_ sql: String) throws { try database.execute(sql) }
}
