import CSQLite
import ChatCache
import ChatClient
import Foundation
import UnifiedChat

/// The cache at its full size: reading, searching, inserting, against SQLite used bare and against what is promised.
///
/// Times are processor time of the thread: everything is in the page cache, so that nothing is waited for.
let cacheBenchmarks: [Benchmark] = [
  Benchmark(name: "cache.full") { try CacheSize.fromEnvironment().run() },
  Benchmark(name: "cache.insert") { [try insertRate()] },
  Benchmark(name: "channels.order") { try channelOrder() },
  Benchmark(name: "channels.cold") { [try coldChannels()] },
]

/// Against a promise, which is the peer: at least as good is a ratio of 1.
private func promised(_ what: String, _ milliseconds: Double, within limit: Double) -> Comparison {
  Comparison(
    what: what, peer: "the promise", ours: milliseconds, theirs: limit, unit: "ms", higherIsBetter: false, goal: 1)
}

private func milliseconds(_ body: () throws -> Void) rethrows -> Double {
  let start = Measure.processorTime()
  try body()
  return (Measure.processorTime() - start) * 1000
}

private func percentile(_ values: [Double], _ part: Double) -> Double {
  let sorted = values.sorted()
  return sorted.isEmpty ? .nan : sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))]
}

/// A folder that is gone with the object.
private final class Folder {
  let path = FileManager.default.temporaryDirectory.appending(path: "benchmark-\(UUID())").path
  deinit { try? FileManager.default.removeItem(atPath: path) }

  func cache() throws -> LocalCache {
    try LocalCache(CacheIdentity(vendor: "benchmark", app: "", user: "me"), at: .directory(path))
  }
}

/// Texts in which a few characters and words are frequent and most are rare, as in a language.
private struct Texts {
  private var state: UInt64 = 42
  private static let words = (0..<4000).map { "w\(String($0, radix: 36))" }

  mutating func number(below limit: Int) -> Int {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int((state >> 33) % UInt64(limit))
  }

  /// Small numbers often, large ones rarely.
  private mutating func skewed(below limit: Int) -> Int {
    let unit = (Double(number(below: 1 << 20)) + 1) / Double(1 << 20)
    return min(limit - 1, Int(pow(Double(limit), unit)) - 1)
  }

  mutating func han(_ count: Int) -> String {
    var text = ""
    for _ in 0..<count { text.unicodeScalars.append(Unicode.Scalar(0x4E00 + UInt32(skewed(below: 3000))) ?? "天") }
    return text
  }

  mutating func word() -> String { Self.words[skewed(below: Self.words.count)] }

  mutating func message() -> String {
    var text = han(4 + number(below: 20))
    for _ in 0..<number(below: 4) { text += " " + word() }
    return text
  }
}

private func message(_ number: Int, _ text: String, in channel: ChannelID) -> Message {
  let time = Timestamp(milliseconds: 1_700_000_000_000 + Int64(number) * 731)
  return Message(
    channel: channel, id: MessageID("m\(number)"), clientMessageID: ClientMessageID("k\(number)"),
    sender: UserID("u\(number % 200)"), position: MessagePosition(sequence: Int64(number)), createdAt: time,
    content: .text(text))
}

private struct CacheSize {
  /// `UNIFIEDCHAT_BENCH_MESSAGES`; by default a million.
  var count: Int

  static func fromEnvironment() -> CacheSize {
    let text = ProcessInfo.processInfo.environment["UNIFIEDCHAT_BENCH_MESSAGES"]
    return CacheSize(count: text.flatMap { Int($0) } ?? 1_000_000)
  }

  func run() throws -> [Comparison] {
    let folder = Folder()
    let cache = try folder.cache()
    try fill(cache)
    let path = cache.path ?? ""
    return try readNewest(cache, path) + search(cache, path)
  }

  /// Most in one channel, the rest in a hundred.
  private func channel(_ number: Int) -> ChannelID { number % 10 < 7 ? "big" : ChannelID("c\(number % 101)") }

  private func fill(_ cache: LocalCache) throws {
    var texts = Texts()
    for start in stride(from: 0, to: count, by: 5000) {
      let batch = (start..<min(count, start + 5000)).map { message($0, texts.message(), in: channel($0)) }
      try cache.write { session throws(ChatError) in
        for message in batch { _ = try session.merge(message, from: .read) }
        try session.cover(CachedRange(low: .lowest, high: .highest), in: "big")
      }
    }
  }

  private func readNewest(_ cache: LocalCache, _ path: String) throws -> [Comparison] {
    let whole = CachedRange(low: .lowest, high: .highest)
    func read() throws {
      let found = try cache.read { session throws(ChatError) in
        try session.messages(in: "big", .older, of: .highest, within: whole, limit: 50)
      }
      precondition(found.count == 50, "the page is there")
    }
    let times = try (0..<1000).map { _ in try milliseconds(read) }
    let bare = try BareSQLite(path)
    let peer = try (0..<1000).map { _ in
      try milliseconds {
        try bare.rows(
          """
          SELECT payload FROM messages WHERE channel = 'big' AND major IS NOT NULL AND visibility = 'visible'
            AND thread_parent IS NULL ORDER BY major DESC, minor DESC, tail DESC LIMIT 50
          """)
      }
    }
    return [
      promised("newest 50 of \(count) messages, p99", percentile(times, 0.99), within: 5),
      Comparison(
        what: "newest 50 as messages, median", peer: "SQLite, the bytes alone", ours: percentile(times, 0.5),
        theirs: percentile(peer, 0.5), unit: "ms", higherIsBetter: false),
    ]
  }

  private func search(_ cache: LocalCache, _ path: String) throws -> [Comparison] {
    var texts = Texts()
    // Other queries than the texts began with.
    for _ in 0..<1000 { _ = texts.message() }
    var queries: [CacheSearch] = []
    for place in 0..<600 {
      var query = CacheSearch(place % 4 == 3 ? texts.word() : texts.han(place % 4 + 1))
      switch place % 5 {
      case 3: query.channel = "c7"
      case 4: query.sender = "u7"
      default: break
      }
      queries.append(query)
    }
    func times(_ queries: [CacheSearch]) throws -> [Double] {
      try queries.map { query in
        try milliseconds { _ = try cache.read { session throws(ChatError) in try session.search(query) } }
      }
    }
    let ranked = try times(queries.prefix(200).map { query in
      var query = query
      query.order = .relevance
      return query
    })
    let times = try times(queries)
    let bare = try BareSQLite(path)
    let scans = try queries.prefix(9).map { query in
      try milliseconds {
        try bare.rows("SELECT payload FROM messages WHERE payload LIKE '%\(query.text)%' ORDER BY created_at DESC LIMIT 30")
      }
    }
    return [
      promised("search in \(count) messages, p99", percentile(times, 0.99), within: 5),
      promised("the best first, p99", percentile(ranked, 0.99), within: 5),
      Comparison(
        what: "search, median", peer: "LIKE over the messages", ours: percentile(times, 0.5),
        theirs: percentile(Array(scans), 0.5), unit: "ms", higherIsBetter: false, goal: 10),
    ]
  }
}

/// Messages a second into the cache, with search index, against the bare table without one.
private func insertRate() throws -> Comparison {
  let folder = Folder()
  let cache = try folder.cache()
  var texts = Texts()
  let messages = (0..<20_000).map { message($0, texts.message(), in: "c") }
  let ours = try milliseconds {
    for start in stride(from: 0, to: messages.count, by: 1000) {
      try cache.write { session throws(ChatError) in
        for message in messages[start..<start + 1000] { _ = try session.merge(message, from: .read) }
      }
    }
  }
  let bare = try BareSQLite(folder.path + "/bare.sqlite")
  try bare.rows("PRAGMA journal_mode = WAL")
  try bare.rows("CREATE TABLE m (row INTEGER PRIMARY KEY, channel TEXT, id TEXT, major INTEGER, payload TEXT)")
  try bare.rows("CREATE UNIQUE INDEX m_id ON m (channel, id)")
  try bare.rows("CREATE INDEX m_page ON m (channel, major)")
  let theirs = try milliseconds {
    for start in stride(from: 0, to: messages.count, by: 1000) {
      try bare.rows("BEGIN")
      for message in messages[start..<start + 1000] {
        let text = message.content.searchableText ?? ""
        try bare.rows("INSERT INTO m VALUES (NULL, 'c', '\(message.id?.rawValue ?? "")', \(message.position?.major ?? 0), '\(text)')")
      }
      try bare.rows("COMMIT")
    }
  }
  let count = Double(messages.count) * 1000
  return Comparison(
    what: "messages into the cache, searchable", peer: "bare table, no search", ours: count / ours,
    theirs: count / theirs, unit: "/s")
}

private func channelKeys(_ count: Int) -> [ChannelKey] {
  (0..<count).map { number in
    ChannelKey(
      id: ChannelID("channel-\(number)"), kind: .group, name: "name \((number * 7919) % count)",
      createdAt: Timestamp(milliseconds: Int64(number)),
      lastMessageAt: Timestamp(milliseconds: Int64((number * 104_729) % 1_000_003)), unread: .exact(number % 3),
      isPinned: number % 500 == 0)
  }
}

private func channelOrder() throws -> [Comparison] {
  let keys = channelKeys(10_000)
  var comparisons: [Comparison] = []
  for order in ChannelQuery.Order.allCases {
    var list = ChannelOrder(ChannelListOptions(order: order))
    let sorting = (0..<30).map { _ in milliseconds { list.replace(by: keys) } }
    comparisons.append(promised("sort 10,000 channels by \(order.rawValue)", percentile(sorting, 0.5), within: 20))
    var number = 0
    let again = (0..<2000).map { _ in
      milliseconds {
        number += 1
        var key = keys[(number * 31) % keys.count]
        key.lastMessageAt = Timestamp(milliseconds: 2_000_000 + Int64(number))
        key.name = "name \(number)"
        list.update(key.id, to: key)
      }
    }
    comparisons.append(promised("again after one message, p99", percentile(again, 0.99), within: 1))
  }
  return comparisons
}

/// From an opened file of 10,000 channels to the first 20 of them.
private func coldChannels() throws -> Comparison {
  let folder = Folder()
  let cache = try folder.cache()
  try cache.write { session throws(ChatError) in
    for number in 0..<10_000 {
      let id = ChannelID("channel-\(number)")
      _ = try session.merge(
        Channel(id: id, kind: .group, name: "name \(number)", lastMessage: message(number, "last", in: id), unread: .exact(1)))
    }
  }
  let times = try (0..<10).map { _ in
    try milliseconds {
      let keys = try cache.read { session throws(ChatError) in try session.channelKeys() }
      var order = ChannelOrder(ChannelListOptions())
      order.replace(by: keys)
      let first = try cache.read { session throws(ChatError) in
        var channels: [Channel?] = []
        for id in order.first(20) { channels.append(try session.channel(id)) }
        return channels
      }
      precondition(first.compactMap(\.self).count == 20, "the first page is there")
    }
  }
  return promised("first 20 of 10,000 cached channels", percentile(times, 0.5), within: 300)
}

/// SQLite as a program would use it that wants nothing of us.
private final class BareSQLite {
  struct Failure: Error { var text: String }
  private var handle: OpaquePointer?

  init(_ path: String) throws {
    guard sqlite3_open(path, &handle) == SQLITE_OK else { throw Failure(text: path) }
  }

  deinit { sqlite3_close(handle) }

  /// Runs a statement and touches the first column of each row.
  func rows(_ sql: String) throws {
    var statement: OpaquePointer?
    guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK else {
      throw Failure(text: String(cString: sqlite3_errmsg(handle)))
    }
    defer { sqlite3_finalize(statement) }
    while true {
      switch sqlite3_step(statement) {
      case SQLITE_ROW: keep(sqlite3_column_bytes(statement, 0))
      case SQLITE_DONE: return
      default: throw Failure(text: String(cString: sqlite3_errmsg(handle)))
      }
    }
  }
}
