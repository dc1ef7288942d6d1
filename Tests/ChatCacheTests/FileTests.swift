import Foundation
import Testing
import UnifiedChat

@testable import ChatCache

@Suite("The file of the cache")
struct FileTests {
  private func mode(_ path: String) throws -> Int {
    try #require((FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue)
  }

  @Test("belongs to its owner alone, with its companions and its folder")
  func permissions() throws {
    let folder = Folder()
    let cache = try makeCache(folder.location)
    try cache.write { session throws(ChatError) in _ = try session.merge(text("a", 1)) }
    #expect(try mode(folder.path) == 0o700)
    #expect(folder.files.count == 3)
    for file in folder.files { #expect(try mode(folder.path + "/" + file) == 0o600, "\(file)") }
  }

  @Test("is another one for every other user, whatever the ids look like")
  func identities() throws {
    let folder = Folder()
    let users: [UserID] = ["A", "a", "a/../A", "caf\u{E9}", "cafe\u{301}", UserID(String(repeating: "x", count: 200)), "a:1"]
    for user in users {
      let cache = try makeCache(folder.location, user: user)
      try cache.write { session throws(ChatError) in _ = try session.merge(text("of \(user)", 1)) }
      cache.close()
    }
    #expect(folder.files.count == users.count)
    for user in users { #expect(try makeCache(folder.location, user: user).texts() == ["of \(user)"]) }
  }

  @Test("keeps everything over a restart, the outbox too")
  func restart() throws {
    let folder = Folder()
    let cache = try makeCache(folder.location)
    let draft = MessageDraft(.file(Attachment(name: "f", source: .bytes([0, 255]))), customData: JSONText(unchecked: "[1]"))
    try cache.write { session throws(ChatError) in
      _ = try session.merge(text("a", 1))
      _ = try session.enqueue(
        OutboxEntry(localID: "l", channel: "c", clientMessageID: "l", draft: draft, createdAt: Timestamp(milliseconds: 9)))
      try session.beginTry("l")
      _ = try session.fail("l", with: ChatError(.tooLarge(limit: 5, unit: .bytes), operation: .send, detail: "why"))
    }
    cache.close()
    let again = try makeCache(folder.location)
    #expect(again.recovery == nil)
    #expect(try again.texts() == ["a"])
    let (entry, waiting) = try again.read { session throws(ChatError) in
      (try session.outboxEntry("l"), try session.waitingMessages(in: "c"))
    }
    #expect(entry?.draft == draft && entry?.attempts == 1 && entry?.state == .failed && entry?.seen == position(1))
    #expect(
      waiting.map(\.state) == [.failed(ChatError(.tooLarge(limit: 5, unit: .bytes), operation: .send, detail: "why"))])
  }

  @Test("of a newer program is refused and not touched")
  func newer() throws {
    let folder = Folder()
    try makeCache(folder.location).close()
    let path = folder.path + "/" + (try #require(folder.files.first))
    let database = try Database(path: path, mode: .create)
    try database.execute("PRAGMA user_version = 999")
    let before = try Data(contentsOf: URL(filePath: path))
    let error = #expect(throws: ChatError.self) { try makeCache(folder.location) }
    #expect(error?.kind == .storage(.newerVersion))
    #expect(error?.detail.contains("version 999") == true)
    #expect(try Data(contentsOf: URL(filePath: path)) == before)
  }

  @Test("with a version that no program can have written is damaged, not newer")
  func impossibleVersion() throws {
    let folder = Folder()
    let cache = try makeCache(folder.location)
    try cache.write { session throws(ChatError) in
      _ = try session.enqueue(
        OutboxEntry(localID: "l", channel: "c", clientMessageID: "k", draft: .text("unsent"), createdAt: Timestamp(milliseconds: 1)))
    }
    cache.close()
    let url = URL(filePath: folder.path + "/" + (try #require(folder.files.first { $0.hasSuffix(".sqlite") })))
    var bytes = try Data(contentsOf: url)
    for place in 60..<64 { bytes[place] = 0xFF }
    try bytes.write(to: url)
    let rebuilt = try makeCache(folder.location)
    #expect(rebuilt.recovery?.savedMessages == 1)
    #expect(try rebuilt.read { session throws(ChatError) in try session.waitingMessages(in: "c") }.map(\.content) == [.text("unsent")])
    #expect(!folder.files.contains { $0.contains("rescue") })
  }

  @Test("is mended beside itself in a new file, whatever stands or leads away there", arguments: ["", "-wal"])
  func rescueBesideALink(_ suffix: String) throws {
    let folder = Folder()
    let cache = try makeCache(folder.location)
    try cache.write { session throws(ChatError) in
      _ = try session.enqueue(
        OutboxEntry(localID: "l", channel: "c", clientMessageID: "k", draft: .text("unsent"), createdAt: Timestamp(milliseconds: 1)))
    }
    cache.close()
    let name = try #require(folder.files.first { $0.hasSuffix(".sqlite") })
    let url = URL(filePath: folder.path + "/" + name)
    var bytes = try Data(contentsOf: url)
    for place in 60..<64 { bytes[place] = 0xFF }
    for place in 0..<16 { bytes[place] = 0 }
    try bytes.write(to: url)
    try Data("log".utf8).write(to: URL(filePath: url.path + "-wal"))
    // The rescue works on the file that was set aside.
    let elsewhere = folder.path + "/another-file"
    try Data("of somebody else".utf8).write(to: URL(filePath: elsewhere))
    try FileManager.default.createSymbolicLink(
      atPath: url.path + ".damaged-1.rescue" + suffix, withDestinationPath: elsewhere)
    let rebuilt = try makeCache(folder.location)
    #expect(rebuilt.recovery?.savedMessages == 1)
    #expect(try Data(contentsOf: URL(filePath: elsewhere)) == Data("of somebody else".utf8))
    #expect(!folder.files.contains { $0.contains("rescue") })
  }

  enum Damage: String, CaseIterable, Sendable { case header, schemaPage, middle, truncated, text }

  @Test("that is damaged is set aside; the outbox goes on where it can be read", arguments: Damage.allCases)
  func damaged(_ damage: Damage) throws {
    let folder = Folder()
    let cache = try makeCache(folder.location)
    try cache.write { session throws(ChatError) in
      for number in 1...5 as ClosedRange<Int64> {
        _ = try session.enqueue(
          OutboxEntry(
            localID: LocalID("l\(number)"), channel: "c", clientMessageID: ClientMessageID("k\(number)"), draft: .text("unsent \(number)"),
            createdAt: Timestamp(milliseconds: number)))
      }
      for number in 1...2000 as ClosedRange<Int64> { _ = try session.merge(text("words \(number)", number)) }
    }
    cache.close()
    let file = try #require(folder.files.first { $0.hasSuffix(".sqlite") })
    let url = URL(filePath: folder.path + "/" + file)
    var bytes = Array(try Data(contentsOf: url))
    switch damage {
    case .header: for place in 0..<100 { bytes[place] = 0xAA }
    case .schemaPage: for place in 100..<4096 { bytes[place] = 0x55 }
    // Behind the outbox, which was written first.
    case .middle: for place in bytes.count / 2..<bytes.count / 2 + 20_000 { bytes[place] = 0x33 }
    case .truncated: bytes.removeLast(bytes.count / 3)
    case .text: bytes = Array("this is no database\n".utf8)
    }
    try Data(bytes).write(to: url)
    let rebuilt = try makeCache(folder.location)
    let recovery = try #require(rebuilt.recovery)
    #expect(FileManager.default.fileExists(atPath: recovery.quarantined))
    #expect(try rebuilt.texts() == [])
    let unsent = try rebuilt.read { session throws(ChatError) in try session.waitingMessages(in: "c") }
    #expect(unsent.count == recovery.savedMessages)
    if damage == .middle || damage == .header {
      #expect(unsent.map(\.content) == (1...5).map { .text("unsent \($0)") })
    }
    // It lives: what comes next is kept.
    try rebuilt.write { session throws(ChatError) in _ = try session.merge(text("new", 1)) }
    rebuilt.close()
    #expect(try makeCache(folder.location).recovery == nil)
  }

  @Test("that is full refuses to write, is read on, and heals when there is room")
  func full() throws {
    let folder = Folder()
    let cache = try makeCache(folder.location)
    try cache.write { session throws(ChatError) in _ = try session.merge(text("before", 1)) }
    try cache.limitPages(to: 60)
    var number: Int64 = 2
    var refusal: ChatError?
    while refusal == nil, number < 10_000 {
      do throws(ChatError) {
        try cache.write { session throws(ChatError) in _ = try session.merge(text("filler \(number)", number)) }
        number += 1
      } catch { refusal = error }
    }
    #expect(refusal?.kind == .storage(.full))
    #expect(refusal?.detail.contains("free some disk space") == true)
    #expect(try cache.texts().count == Int(number) - 1)
    let unsent = OutboxEntry(
      localID: "l", channel: "c", clientMessageID: "l", draft: .text(String(repeating: "x", count: 200_000)),
      createdAt: Timestamp(milliseconds: 0))
    #expect(throws: ChatError.self) { try cache.write { session throws(ChatError) in _ = try session.enqueue(unsent) } }
    #expect(try cache.integrity() == "ok")
    try cache.limitPages(to: 1_000_000)
    try cache.write { session throws(ChatError) in
      _ = try session.enqueue(unsent)
      _ = try session.merge(text("after", number))
    }
    #expect(try cache.texts().last == "after")
  }

  @Test("two connections write at the same time, and neither is told that the other is there")
  func twoWriters() async throws {
    let folder = Folder()
    let caches = [try makeCache(folder.location), try makeCache(folder.location)]
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (writer, cache) in caches.enumerated() {
        group.addTask {
          for number in 0..<300 {
            try cache.write { session throws(ChatError) in
              _ = try session.merge(text("w", Int64(number * 2 + writer), id: MessageID("\(writer)-\(number)")))
            }
            if number % 50 == 0 { _ = try cache.texts() }
          }
        }
      }
      try await group.waitForAll()
    }
    for cache in caches { #expect(try cache.texts().count == 600) }
  }

  @Test("a read sees whole changes only")
  func wholeChanges() async throws {
    let folder = Folder()
    let writer = try makeCache(folder.location), reader = try makeCache(folder.location)
    func put(_ batch: Int) throws {
      try writer.write { session throws(ChatError) in
        for number in 1...20 as ClosedRange<Int64> {
          var message = text("batch \(batch)", number)
          message.editedAt = Timestamp(milliseconds: Int64(batch))
          _ = try session.merge(message)
        }
      }
    }
    try put(0)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { for batch in 1...30 { try put(batch) } }
      group.addTask {
        for _ in 1...100 {
          let batches = Set(try reader.texts())
          #expect(batches.count == 1)
        }
      }
      try await group.waitForAll()
    }
  }

  @Test("leaves nothing behind when it is erased, and the others alone")
  func erase() throws {
    let folder = Folder()
    let other = try makeCache(folder.location, user: "other")
    try other.write { session throws(ChatError) in _ = try session.merge(text("kept", 1)) }
    let cache = try makeCache(folder.location)
    try cache.write { session throws(ChatError) in
      for number in 1...40 as ClosedRange<Int64> { _ = try session.merge(text("geheim\(number)", number)) }
    }
    cache.close()
    try LocalCache.erase(CacheIdentity(vendor: "test", app: "app", user: me), at: folder.location)
    for file in folder.files {
      let bytes = try Data(contentsOf: URL(filePath: folder.path + "/" + file))
      #expect(bytes.range(of: Data("geheim".utf8)) == nil)
    }
    #expect(try other.texts() == ["kept"])
    #expect(try makeCache(folder.location).texts() == [])
  }

  @Test("holds no word of a recalled message once it is purged")
  func purged() throws {
    let folder = Folder()
    let cache = try makeCache(folder.location)
    try cache.write { session throws(ChatError) in
      for number in 1...50 as ClosedRange<Int64> { _ = try session.merge(text("ordinary \(number)", number)) }
      _ = try session.merge(text("verschwunden", 51))
      var gone = text("", 51)
      gone.content = .recalled(by: nil, at: nil)
      _ = try session.merge(gone)
    }
    try cache.purge()
    for file in folder.files where !file.hasSuffix("-shm") {
      let bytes = try Data(contentsOf: URL(filePath: folder.path + "/" + file))
      #expect(bytes.range(of: Data("verschwunden".utf8)) == nil, "\(file)")
    }
  }

  @Test("stays under its limit: what is old goes, as a gap, and what is unsent never")
  func trimmed() throws {
    let folder = Folder()
    let cache = try makeCache(folder.location)
    let filler = String(repeating: "lorem ipsum ", count: 40)
    try cache.write { session throws(ChatError) in
      for channel in ["old", "new"] as [ChannelID] {
        for number in 1...1500 as ClosedRange<Int64> {
          var message = text(filler, number, in: channel)
          message.createdAt = Timestamp(milliseconds: channel == "old" ? number : 1_000_000 + number)
          _ = try session.merge(message)
        }
        try session.cover(CachedRange(low: .lowest, high: .highest), in: channel)
      }
      _ = try session.enqueue(
        OutboxEntry(
          localID: "l", channel: "old", clientMessageID: "l", draft: .text("unsent"), createdAt: Timestamp(milliseconds: 0)))
    }
    #expect(cache.size > 2_000_000)
    try cache.trim(to: 1_500_000)
    #expect(cache.size <= 1_500_000)
    let (old, new, ranges, waiting) = try cache.read { session throws(ChatError) in
      (
        try session.count(in: "old"), try session.count(in: "new"), try session.ranges(of: "old"),
        try session.waitingMessages(in: "old")
      )
    }
    #expect(old < 1500 && new > old && new > 0)
    #expect(waiting.map(\.content) == [.text("unsent")])
    #expect(ranges.allSatisfy { !$0.isAtStart })
    #expect(try cache.integrity() == "ok")
  }

  @Test("of the first version gives its room back too")
  func trimmedOld() throws {
    let folder = Folder()
    try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: true)
    let identity = CacheIdentity(vendor: "openim", app: "golden", user: "alice")
    let golden = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Golden/cache/version-1.sqlite").path
    try FileManager.default.copyItem(atPath: golden, toPath: folder.path + "/" + identity.fileName)
    let cache = try LocalCache(identity, at: folder.location)
    let filler = String(repeating: "lorem ipsum ", count: 40)
    try cache.write { session throws(ChatError) in
      for number in 1...1500 as ClosedRange<Int64> { _ = try session.merge(text(filler, number, in: "new")) }
    }
    #expect(cache.size > 1_000_000)
    try cache.trim(to: 600_000)
    #expect(cache.size <= 600_000)
    // The second time it is a matter of pieces.
    try cache.write { session throws(ChatError) in
      for number in 2001...3500 as ClosedRange<Int64> { _ = try session.merge(text(filler, number, in: "new")) }
    }
    try cache.trim(to: 600_000)
    #expect(cache.size <= 600_000)
    let waiting = try cache.read { session throws(ChatError) in try session.waitingMessages(in: "si_alice_bob") }
    #expect(waiting.map(\.localID) == ["local-1", "local-2"])
    #expect(try cache.integrity() == "ok")
  }

  @Test("the log is emptied of recalled words although another connection is open, and later when that one reads")
  func purgedBesideAnother() throws {
    let folder = Folder()
    let cache = try makeCache(folder.location), other = try makeCache(folder.location)
    try cache.write { session throws(ChatError) in _ = try session.merge(text("verschwunden", 1)) }
    var gone = text("", 1)
    gone.content = .recalled(by: nil, at: nil)
    func holds() throws -> Bool {
      try folder.files.filter { !$0.hasSuffix("-shm") }.contains {
        try Data(contentsOf: URL(filePath: folder.path + "/" + $0)).range(of: Data("verschwunden".utf8)) != nil
      }
    }
    let reader = try Database(path: try #require(other.path), mode: .create)
    try reader.execute("BEGIN; SELECT count(*) FROM messages")
    try cache.write { session throws(ChatError) in _ = try session.merge(gone) }
    #expect(try !cache.purge())
    try reader.execute("COMMIT")
    #expect(try cache.purge() && !holds())
  }

  @Test("a folder that cannot be written is one clear line")
  func denied() {
    let error = #expect(throws: ChatError.self) { try makeCache(.directory("/proc/nowhere")) }
    #expect(error?.kind == .storage(.denied))
    #expect(error?.detail.contains("choose another cache.directory") == true)
  }
}

@Suite("Stored errors")
struct StoredErrorTests {
  @Test("come back as they were", arguments: [
    ChatError(.authentication, operation: .send, retry: .afterRenewal), ChatError(.permission(byHook: true), operation: .send),
    ChatError(.notFound, operation: .edit), ChatError(.invalidArgument(field: "é\"x"), operation: .send, detail: "d"),
    ChatError(.conflict, operation: .send), ChatError(.rateLimited(retryAfter: .seconds(7)), operation: .send),
    ChatError(.rateLimited(retryAfter: nil), operation: .send), ChatError(.tooLarge(limit: nil, unit: .items), operation: .send),
    ChatError(.network(.tls), operation: .send), ChatError(.timeout, operation: .send), ChatError(.server, operation: .send, retry: .now),
    ChatError(.protocolViolation, operation: .send), ChatError(.storage(.busy), operation: .cache),
    ChatError.unsupported(.typing, operation: .typing), ChatError.cancelled(.send),
    ChatError(.server, operation: .send, vendor: ChatError.VendorFault(vendor: "v", code: "9", message: "m", httpStatus: 500, requestID: "r")),
  ])
  func roundTrip(_ error: ChatError) {
    #expect(ChatError(storedText: error.storedText()) == error)
  }

  @Test("that cannot be read stay errors", arguments: ["", "{}", "[", #"{"kind":"new"}"#, #"{"kind":"unsupported","argument":"no"}"#])
  func unreadable(_ text: String) {
    #expect(ChatError(storedText: text).kind == .storage(.other))
  }
}
