import Foundation
import Testing
import UnifiedChat

@testable import ChatCache

@Suite("Files of older versions")
struct VersionTests {
  private static let golden = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Golden/cache")
  private static let identity = CacheIdentity(vendor: "openim", app: "golden", user: "alice")

  /// The last one is of version 3 too, from before there was an application id.
  private static let files = (1..<Int(CacheMigrations.current)).map { "version-\($0)" } + ["without-application-id"]

  /// A copy of a file that an older program wrote, where the present one looks for it.
  private func folder(_ name: String) throws -> (Folder, path: String) {
    let folder = Folder()
    try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: true)
    let path = folder.path + "/" + Self.identity.fileName
    try FileManager.default.copyItem(atPath: Self.golden.appending(path: "\(name).sqlite").path, toPath: path)
    return (folder, path)
  }

  @Test("there is one of each version before the present one")
  func complete() throws {
    for version in 1..<Int(CacheMigrations.current) {
      #expect(FileManager.default.fileExists(atPath: Self.golden.appending(path: "version-\(version).sqlite").path))
    }
  }

  @Test("open with everything in them: messages, unsent ones, ranges, local data, search", arguments: files)
  func opens(_ name: String) throws {
    let (folder, path) = try folder(name)
    #expect(CacheFile(path: path).header()?.applicationID == (name == "version-3" ? CacheMigrations.applicationID : 0))
    for _ in 1...2 {
      let cache = try LocalCache(Self.identity, at: folder.location)
      #expect(cache.recovery == nil)
      #expect(try cache.report().schemaVersion == Int(CacheMigrations.current))
      #expect(try cache.integrity() == "ok")
      #expect(
        try cache.texts(in: "si_alice_bob") == [
          "你好，我们明天见", "重跑gen-itgc后", "hello from bob", "天", "Café au lait", "明天几点", "ok 😀",
        ])
      #expect(try cache.found("明天") == ["明天几点", "你好，我们明天见"])
      #expect(try cache.found("天") == ["明天几点", "天", "你好，我们明天见"])
      #expect(try cache.found("cafe") == ["Café au lait"])
      #expect(try cache.found("未发") == ["未发送"])
      let (waiting, next, note, ranges) = try cache.read { session throws(ChatError) in
        (
          try session.waitingMessages(in: "si_alice_bob"), try session.nextInOutbox(of: "si_alice_bob"),
          try session.message("8ad3e753ed81719469761647e8c534bc", in: "si_alice_bob")?.localExtension,
          try session.ranges(of: "si_alice_bob")
        )
      }
      #expect(waiting.map(\.localID) == ["local-1", "local-2"] && next?.localID == "local-1")
      #expect(waiting.last?.state == .failed(ChatError(.notFound, operation: .send)))
      #expect(note?.text == "{\"note\":1}" && !ranges.isEmpty)
      cache.close()
    }
    #expect(CacheFile(path: path).header() == CacheHeader(version: CacheMigrations.current, applicationID: CacheMigrations.applicationID))
  }

  @Test("are the old ones or the new ones when the disk is full in the middle", arguments: files)
  func interrupted(_ name: String) throws {
    let (folder, path) = try folder(name)
    let database = try Database(path: path, mode: .create)
    try database.setUp()
    let pages = try #require(try database.first("PRAGMA page_count") { row throws(ChatError) in row.int(0) })
    let header = try CacheMigrations.header(of: database)
    // Version 1 needs more room than there is; the others are refused at the very end.
    if header.version == 1 {
      try database.query("PRAGMA max_page_count = \(pages)") { _ throws(ChatError) in }
    } else {
      database.injected = { $0 == "COMMIT" ? 13 : nil }  // SQLITE_FULL
    }
    let error = #expect(throws: ChatError.self) { try CacheMigrations.run(on: database) }
    #expect(error?.kind == .storage(.full))
    #expect(try CacheMigrations.header(of: database) == header)
    try database.query("PRAGMA max_page_count = 1000000") { _ throws(ChatError) in }
    database.injected = nil
    try CacheMigrations.run(on: database)
    #expect(try LocalCache(Self.identity, at: folder.location).found("明天").count == 2)
  }
}

@Suite("Answers in a file of an older version")
struct OldAnswersTests {
  @Test("lose the words of what is recalled after the upgrade, damaged ones beside them do not stop it")
  func found() throws {
    let folder = Folder()
    let cache = try makeCache(folder.location)
    try cache.write { session throws(ChatError) in
      var reply = text("answer", 2, by: "carol")
      reply.replyTo = Reply(id: "m1", quoted: QuotedMessage(id: "m1", content: .text("regretted")))
      for message in [text("regretted", 1), reply, text("broken", 3)] { _ = try session.merge(message) }
    }
    cache.close()
    try LocalCache.run(
      """
      DROP INDEX messages_answers; ALTER TABLE messages DROP COLUMN reply_to; DROP INDEX messages_here;
      ALTER TABLE messages DROP COLUMN after_major; ALTER TABLE messages DROP COLUMN after_minor;
      ALTER TABLE messages DROP COLUMN after_tail; PRAGMA user_version = 3;
      UPDATE messages SET payload = '{"replyTo":' WHERE id = 'm3';
      """, onFile: try #require(cache.path))
    let upgraded = try LocalCache(cache.identity, at: folder.location)
    #expect(upgraded.recovery == nil)
    let change = try upgraded.write { session throws(ChatError) in
      var gone = text("", 1)
      gone.content = .recalled(by: "bob", at: nil)
      return try session.merge(gone)
    }
    guard case .recalled(_, _, let replies) = change else { throw ChatError.cancelled(.cache) }
    #expect(replies.map(\.content) == [.text("answer")])
    #expect(replies.first?.replyTo?.quoted?.content == .recalled(by: "bob", at: nil))
  }
}

@Suite("What a cache says of itself")
struct ReportTests {
  @Test("counts messages, holes and what is not sent, and what is proven to be there")
  func report() throws {
    let folder = Folder()
    let cache = try makeCache(folder.location)
    let proven = try cache.write { session throws(ChatError) in
      for number in 1...9 as ClosedRange<Int64> { _ = try session.merge(text("\(number)", number)) }
      try session.cover(CachedRange(low: .lowest, high: position(3)), in: "c")
      try session.cover(CachedRange(low: position(6), high: .highest), in: "c")
      _ = try session.hide("m7", in: "c")
      _ = try session.enqueue(
        OutboxEntry(localID: "l", channel: "c", clientMessageID: "l", draft: .text("u"), createdAt: Timestamp(milliseconds: 0)))
      return try session.provenIDs(in: "c")
    }
    let report = try cache.report()
    #expect(report.integrity == "ok" && report.messages == 9 && report.unsent == 1 && report.gaps == 1)
    #expect(report.channels.map(\.isWhole) == [false] && report.bytes > 0 && report.path == cache.path)
    #expect(proven == ["m1", "m2", "m3", "m6", "m8", "m9"])
    #expect(LocalCache.exists(cache.identity, at: folder.location))
    cache.close()
    try LocalCache.erase(cache.identity, at: folder.location)
    #expect(!LocalCache.exists(cache.identity, at: folder.location))
  }
}

@Suite("What the cache claims to know")
struct ConvergenceTests {
  /// One history, told in pieces of every kind and in any order, links lost in between.
  @Test("is there, whatever the order of pushes, pages and losses, and all of it in the end", arguments: 0..<12)
  func claims(_ seed: Int) throws {
    var random = Seeded(seed: UInt64(seed) &* 31 &+ 3)
    let cache = try makeCache()
    var server: [Message] = []
    var isOnline = false
    for step in 0..<120 {
      try cache.write { session throws(ChatError) in
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<5:
          let next = text("\(server.count)", Int64(server.count) + 1, by: Bool.random(using: &random) ? "bob" : me)
          server.append(next)
          // A push of the link, unless there is none.
          guard isOnline, let position = next.position else { return }
          _ = try session.merge(next)
          try session.cover(CachedRange(low: position, high: .highest), in: "c")
        case 5:
          try session.openGaps()
          isOnline = false
        case 6: isOnline = true
        case 7 where !server.isEmpty:
          // A message alone, as a list brings it.
          let one = server[Int.random(in: 0..<server.count, using: &random)]
          _ = try session.merge(one, from: .read)
          if let position = one.position { try session.cover(CachedRange(low: position, high: position), in: "c") }
        default:
          guard !server.isEmpty else { return }
          let start = Int.random(in: 0..<server.count, using: &random)
          let page = server[start..<min(server.count, start + Int.random(in: 1...12, using: &random))]
          for message in page.shuffled(using: &random) { _ = try session.merge(message, from: .read) }
          guard let first = page.first?.position, let last = page.last?.position else { return }
          let isEnd = page.endIndex == server.count && isOnline
          try session.cover(CachedRange(low: start == 0 ? .lowest : first, high: isEnd ? .highest : last), in: "c")
        }
      }
      if step % 4 == 3 { try expectClaims(cache, server, isOnline) }
    }
    try cache.write { session throws(ChatError) in
      for message in server.shuffled(using: &random) { _ = try session.merge(message, from: .read) }
      try session.cover(CachedRange(low: .lowest, high: .highest), in: "c")
    }
    #expect(try cache.texts() == server.map { $0.content.searchableText ?? "" })
  }

  private func expectClaims(_ cache: LocalCache, _ server: [Message], _ isOnline: Bool) throws {
    let (ranges, known) = try cache.read { session throws(ChatError) in
      let whole = CachedRange(low: .lowest, high: .highest)
      let known = try session.messages(in: "c", .newer, of: .lowest, within: whole, limit: .max)
      return (try session.ranges(of: "c"), Set(known.compactMap(\.id)))
    }
    for range in ranges {
      // What is live and lost is ended at once; nothing else may say so.
      #expect(isOnline || !range.isLive)
      for message in server {
        guard let id = message.id, let position = message.position, range.contains(position) else { continue }
        #expect(known.contains(id), "\(position) in \(range)")
      }
    }
    for (one, next) in zip(ranges, ranges.dropFirst()) { #expect(one.high < next.low) }
  }
}
