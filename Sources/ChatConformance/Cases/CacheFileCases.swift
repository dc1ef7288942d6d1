import ChatCache
import ChatClient
import ChatJSON
import Foundation
import UnifiedChat

// Files of older versions, upgrades that end in the middle, and disks that are full.
extension ConformanceSuite {
  static let cacheFiles: [ConformanceCase] = [
    ConformanceCase("CACHE-03", "A schema upgrade keeps old rows.", .s1) { context in
      try context.expectEqual(
        OldCaches.versions, Array(1..<LocalCache.schemaVersion), "versions before the present one, each with a file")
      for version in OldCaches.versions {
        let folder = try context.oldCache(version)
        for round in 1...2 {
          let cache = try LocalCache(OldCaches.identity, at: .directory(folder))
          try context.expect(cache.recovery == nil, "nothing to be rebuilt")
          let report = try cache.report()
          try context.expectEqual(report.schemaVersion, LocalCache.schemaVersion, "the version, opened \(round) times")
          try context.expectEqual(report.integrity, "ok", "the check of the file")
          let found = try OldRows(of: cache)
          try context.expectEqual(found, .expected, "what was in version \(version), opened \(round) times")
          for (words, hits) in [("明天", 2), ("cafe", 1), ("未发", 1), ("grandmother", 0)] {
            let number = try cache.read { session throws(ChatError) in
              try session.search(CacheSearch(words, limit: 100)).items.count
            }
            try context.expectEqual(number, hits, "found for \(words)")
          }
          cache.close()
        }
      }
    },
    ConformanceCase(
      "CACHE-04", "A kill in the middle of an upgrade loses nothing.", .s1, tags: [.kill]
    ) { context in
      for version in OldCaches.versions {
        let folder = try context.oldCache(version)
        var copies: [String] = []
        var trouble: (any Error)?
        let cache = try LocalCache(OldCaches.identity, directory: folder) { run in
          context.harness.betweenStatements?(run)
          // What a process that is killed now leaves behind.
          do { copies.append(try context.copy(folder)) } catch { trouble = error }
        }
        cache.close()
        if let trouble { throw trouble }
        try context.expect(copies.count >= 3, "several statements", observed: "\(copies.count)")
        for (number, copy) in copies.enumerated() {
          let next = try LocalCache(OldCaches.identity, at: .directory(copy))
          try context.expect(next.recovery == nil, "nothing to be rebuilt after statement \(number) of version \(version)")
          try context.expectEqual(
            try OldRows(of: next), .expected, "rows, killed after statement \(number) of version \(version)")
          next.close()
        }
      }
    },
    ConformanceCase("CACHE-06", "A full disk is an error, not a corpse.", .s1) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let known = try await context.say(alice, channel.id, 3)
      try await context.shows(bob, channel.id, known.map(\.content), "bob")
      let probe = context.probe(bob, readsCache: false)
      let disk = try context.need(await bob.openCache, "an open cache")
      // The file may not grow any more, and what is written needs more than its free places.
      try disk.limitPages(to: 1)
      let letters = context.longText
      try await context.say(alice, channel.id, (0..<8).map { "\($0) \(letters)" })
      try await context.eventually("what cannot be stored is shown") { probe.received(in: channel.id).count == 8 }
      let mark = await context.mark()
      var refused: ChatError?
      for number in 0..<60 where refused == nil {
        do { _ = try await bob.enqueue(.text("\(number) \(letters)"), to: channel.id) } catch let error as ChatError {
          refused = error
        }
      }
      try context.expectEqual(refused?.kind, .storage(.full), "the error of a send that cannot be written")
      if context.offers("journal") {
        try await context.quiet()
        let frames = try await context.requests("send", by: users.b.id, since: mark)
        try context.expect(
          !frames.contains { String(decoding: $0.bytes, as: UTF8.self).contains("59 \(letters)") }, "nothing of it on the wire")
      }
      try context.expectEqual(try disk.integrity(), "ok", "the check of the file")
      let read = try await bob.history(of: channel.id, .newest(3)).messages
      try context.expect(!read.isEmpty, "what is there is read on")
      // There is room again: no restart is needed.
      try disk.limitPages(to: 1_000_000)
      let waiting = try await bob.waitingMessages(in: channel.id).count
      let last = try await context.say(alice, channel.id, ["there is room"])[0].id
      try await context.eventually("what is written now goes out", within: .seconds(300), step: .seconds(1)) {
        try await bob.waitingMessages(in: channel.id).isEmpty
      }
      _ = try await context.whileTimePasses { try await bob.send(.text("and back"), to: channel.id) }
      let truth = try await context.serverMessages(channel.id)
      try context.expect(truth.contains { $0.id == last } && waiting >= 0, "all of it at the service")
      try await context.eventually("everything without a hole", within: .seconds(120), step: .seconds(1)) {
        try await bob.history(of: channel.id, .newest(truth.count + 5)).messages.map(\.id) == truth.map(\.id)
      }
      try context.expectEqual(
        Set(probe.received(in: channel.id).compactMap(\.id)).count, probe.received(in: channel.id).count, "each told once")
      try Self.upgradeOnFullDisk(context)
    },
  ]

  /// The file of the oldest version needs more room to be upgraded than there is: it stays as it was.
  private static func upgradeOnFullDisk(_ context: CaseContext) throws {
    let folder = try context.oldCache(1)
    // Enough of them that their places in the search index need new pages.
    try LocalCache.run(
      """
      INSERT INTO channels (id) VALUES ('other');
      WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 600)
      INSERT INTO messages (row, channel, id, sender, major, minor, tail, created_at, state, payload)
      SELECT 1000 + n, 'other', 'o' || n, 'bob', n, 0, '', 1796037970000 + n, 'sent',
        '{"channel":"other","id":"o' || n || '","position":"' || n || '/0/","sender":"bob","createdAt":'
        || (1796037970000 + n) || ',"content":{"kind":"text","text":"words ' || n || ' of message ' || (n * 7919) || '"}}'
      FROM numbers;
      """, onFile: LocalCache.path(of: OldCaches.identity, in: folder))
    var isFirst = true
    var refused: ChatError?
    do {
      try LocalCache(OldCaches.identity, directory: folder) { run in
        if isFirst { try? run("PRAGMA max_page_count = 1") }
        isFirst = false
      }.close()
    } catch { refused = error }
    try context.expectEqual(refused?.kind, .storage(.full), "the error of an upgrade without room")
    let cache = try LocalCache(OldCaches.identity, at: .directory(folder))
    try context.expect(cache.recovery == nil, "nothing to be rebuilt")
    try context.expectEqual(try OldRows(of: cache), .expected, "rows, upgraded when there is room")
    cache.close()
  }
}

extension CaseContext {
  /// A folder with the file of an older version, and in it what such a file may hold besides: a tombstone, a message of
  /// an unknown kind, one without a sender, a hidden one and a hole.
  fileprivate func oldCache(_ version: Int) throws -> String {
    let folder = file("old-\(version)-\(UUID().uuidString.prefix(8))")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let path = LocalCache.path(of: OldCaches.identity, in: folder)
    let bytes = try need(OldCaches.bytes(version: version), "a file of version \(version)")
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    try LocalCache.run(Self.oddRows, onFile: path)
    return folder
  }

  /// Rows of all versions; the search index is made anew by an upgrade.
  private static let oddRows = """
    UPDATE meta SET value = 'golden' WHERE key = 'vendor';
    INSERT INTO messages (row, channel, id, sender, major, minor, tail, created_at, state, is_recalled, is_countable,
      visibility, payload)
    VALUES
      (101, 'si_alice_bob', 'gone', 'bob', 20, 0, '', 1796037960020, 'sent', 1, 0, 'visible',
        '{"channel":"si_alice_bob","id":"gone","position":"20/0/","sender":"bob","createdAt":1796037960020,'
        || '"content":{"kind":"recalled","by":"bob"}}'),
      (102, 'si_alice_bob', 'odd', NULL, 21, 0, '', 1796037960021, 'sent', 0, 0, 'visible',
        '{"channel":"si_alice_bob","id":"odd","position":"21/0/","createdAt":1796037960021,'
        || '"content":{"kind":"unknown","vendorKind":"9999","raw":"{\\"zz\\" : 1.0}"}}'),
      (103, 'si_alice_bob', 'unseen', 'bob', 22, 0, '', 1796037960022, 'sent', 0, 1, 'hidden',
        '{"channel":"si_alice_bob","id":"unseen","position":"22/0/","sender":"bob","createdAt":1796037960022,'
        || '"content":{"kind":"text","text":"grandmother"}}');
    INSERT INTO hidden VALUES ('si_alice_bob', 'unseen');
    INSERT INTO ranges VALUES ('si_alice_bob', 20, 0, '', 22, 0, '');
    """

  /// The files of a folder as they are now.
  fileprivate func copy(_ folder: String) throws -> String {
    let copy = file("copy-\(UUID().uuidString)")
    try FileManager.default.copyItem(atPath: folder, toPath: copy)
    return copy
  }

  /// A text that fills a page of a database, and is short enough for every vendor.
  fileprivate var longText: String {
    String(repeating: "long words ", count: 3000 / 11)
  }
}

/// What an old file holds, in the words of the present.
private struct OldRows: Equatable {
  var texts: [String]
  var waiting: [String]
  var extensions: [String]
  var ranges: [String]
  var next: LocalID?

  static let expected = OldRows(
    texts: [
      "你好，我们明天见", "重跑gen-itgc后", "hello from bob", "天", "Café au lait", "明天几点", "ok 😀", "(recalled)",
      #"(unknown 9999 {"zz" : 1.0})"#,
    ],
    waiting: ["local-1 未发送 pending", "local-2 refused words failed"], extensions: [#"{"note":1}"#],
    ranges: ["…4", "20…22"], next: "local-1")

  init(texts: [String], waiting: [String], extensions: [String], ranges: [String], next: LocalID?) {
    self.texts = texts
    self.waiting = waiting
    self.extensions = extensions
    self.ranges = ranges
    self.next = next
  }

  init(of cache: LocalCache) throws(ChatError) {
    let channel: ChannelID = "si_alice_bob"
    self = try cache.read { session throws(ChatError) in
      let messages = try session.messages(
        in: channel, .newer, of: .lowest, inclusive: true, within: CachedRange(low: .lowest, high: .highest), limit: .max)
      return OldRows(
        texts: messages.map { Self.words($0.content) },
        waiting: try session.waitingMessages(in: channel).map {
          "\($0.localID?.rawValue ?? "") \(Self.words($0.content)) \($0.state == .pending ? "pending" : "failed")"
        },
        extensions: messages.compactMap { $0.localExtension?.text },
        ranges: try session.ranges(of: channel).map { "\($0.isAtStart ? "" : "\($0.low.major)")…\($0.high.major)" },
        next: try session.nextInOutbox(of: channel)?.localID)
    }
  }

  private static func words(_ content: MessageContent) -> String {
    switch content {
    case .text(let text): text
    case .recalled: "(recalled)"
    case .unknown(let kind, let raw): "(unknown \(kind) \(raw.text))"
    default: "(\(content.kindName))"
    }
  }
}
