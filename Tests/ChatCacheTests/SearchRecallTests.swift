import Testing
import UnifiedChat

@testable import ChatCache

/// What a search should find, by reading every text.
private struct PlainScan {
  let messages: [(message: Message, text: [UInt8])]

  init(_ messages: [Message]) {
    self.messages = messages.map { ($0, Array(SearchTerms.folded($0.content.searchableText ?? "").utf8)) }
  }

  func found(_ query: CacheSearch) -> [String] {
    let words = query.text.split(separator: " ").map { Array(SearchTerms.folded(String($0)).utf8) }
    let hits = messages.filter { message, text in
      words.allSatisfy { stands($0, in: text) }
        && (query.channel.map { $0 == message.channel } ?? true) && (query.sender.map { $0 == message.sender } ?? true)
        && (query.kinds.map { $0.contains(message.content.kindName) } ?? true)
        && (query.from.map { $0 <= message.createdAt } ?? true) && (query.until.map { message.createdAt < $0 } ?? true)
    }
    let ids = hits.map(\.message).sorted { $0.createdAt < $1.createdAt }.map { $0.id?.rawValue ?? "" }
    return query.order == .oldestFirst ? ids : ids.reversed()
  }

  /// Anywhere, but not from the middle of a word of letters and digits on.
  private func stands(_ word: [UInt8], in text: [UInt8]) -> Bool {
    guard let first = word.first, word.count <= text.count else { return false }
    return (0...text.count - word.count).contains { place in
      guard text[place..<place + word.count].elementsEqual(word) else { return false }
      return place == 0 || !(isLetter(first) && isLetter(text[place - 1]))
    }
  }

  private func isLetter(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte)
  }
}

@Suite("Search against a plain scan")
struct SearchRecallTests {
  /// Few characters, so that texts share many pairs; scripts and lengths mixed.
  private static func sample(_ random: inout Seeded) -> String {
    let han = Array("天地人你我他明日本語会议重要")
    let words = [
      "gen", "general", "GEN", "itgc", "ok", "v2", "release", "re", "2026", "a", "conversation", "conversely",
      "reconversation", "été",
    ]
    var text = ""
    for _ in 0..<Int.random(in: 1...5, using: &random) {
      switch Int.random(in: 0..<6, using: &random) {
      case 0: text += (words.randomElement(using: &random) ?? "") + [" ", "-", "", ", "].randomElement(using: &random)!  // not empty
      case 1: text += ["😀", "。", "！", "カナ", "한국"].randomElement(using: &random)!  // not empty
      default: for _ in 0..<Int.random(in: 1...6, using: &random) { text.append(han.randomElement(using: &random) ?? "天") }
      }
    }
    return text
  }

  private static func messages(_ count: Int, _ random: inout Seeded) -> [Message] {
    (0..<count).map { number in
      var message = ChatCacheTests.text(
        sample(&random), Int64(number), by: ["bob", "carol", me][number % 3], in: ["c", "d"][number % 2],
        id: MessageID("m\(number)"))
      // Not in the order of arrival.
      message.createdAt = Timestamp(milliseconds: 1_700_000_000_000 + Int64((number * 7919) % count) * 1000)
      if number % 11 == 0 { message.content = .file(Attachment(url: "u", name: message.content.searchableText)) }
      return message
    }
  }

  /// A piece of a text that stands there, or of two of them.
  private static func query(_ messages: [Message], _ random: inout Seeded) -> String {
    let text = Array(messages.randomElement(using: &random)?.content.searchableText ?? "")
    guard !text.isEmpty else { return "天" }
    let start = Int.random(in: 0..<text.count, using: &random)
    let end = min(text.count, start + Int.random(in: 1...4, using: &random))
    let piece = String(text[start..<end]).trimmingPrefix { $0 == " " }
    return piece.isEmpty ? "天" : String(piece)
  }

  @Test("finds the same messages in the same order, whatever the query and the filters", arguments: 0..<3)
  func same(_ seed: Int) throws {
    var random = Seeded(seed: UInt64(seed) &* 77 &+ 5)
    let messages = Self.messages(250, &random)
    let cache = try makeCache()
    try cache.write { session throws(ChatError) in for message in messages { _ = try session.merge(message) } }
    let scan = PlainScan(messages)
    for _ in 0..<80 {
      var query = CacheSearch(Self.query(messages, &random), limit: 10_000)
      if Int.random(in: 0..<4, using: &random) == 0 { query.text += " " + Self.query(messages, &random) }
      if Bool.random(using: &random) { query.order = .oldestFirst }
      if Int.random(in: 0..<3, using: &random) == 0 { query.channel = "d" }
      if Int.random(in: 0..<3, using: &random) == 0 { query.sender = "carol" }
      if Int.random(in: 0..<4, using: &random) == 0 { query.kinds = ["file"] }
      if Int.random(in: 0..<4, using: &random) == 0 { query.from = Timestamp(milliseconds: 1_700_000_300_000) }
      if Int.random(in: 0..<4, using: &random) == 0 { query.until = Timestamp(milliseconds: 1_700_000_450_500) }
      let expected = scan.found(query)
      let found = try cache.read { session throws(ChatError) in try session.search(query) }.items
      #expect(found.map { $0.id?.rawValue ?? "" } == expected, "seed \(seed): \(query)")
    }
  }

  @Test("a word that is rare among those that begin like it is found whole, page by page", arguments: CacheSearch.Order.allCases)
  func rareAmongMany(_ order: CacheSearch.Order) throws {
    let cache = try makeCache()
    let isRare: (Int64) -> Bool = { $0 % 150 == 7 }
    try cache.write { session throws(ChatError) in
      for number in 0..<1200 as Range<Int64> {
        let words = isRare(number) ? "a conversation \(number)" : "they converse, reconversation \(number)"
        _ = try session.merge(text(words, number))
      }
    }
    var query = CacheSearch("Conversation", order: order, limit: 3)
    var found: [Int64] = []
    var token: PageToken?
    repeat {
      let page = try cache.read { session throws(ChatError) in try session.search(query, page: token) }
      found += page.items.compactMap { $0.position?.major }
      token = page.next
    } while token != nil
    let expected = (0..<1200 as Range<Int64>).filter(isRare)
    #expect(order == .oldestFirst ? found == expected : found.sorted() == expected)
    query = CacheSearch("co", order: order, limit: .max)
    let all = try cache.read { session throws(ChatError) in try session.search(query) }.items
    #expect(all.count == (order == .relevance ? 1000 : 1200))
  }

  @Test("ranks whole words, repeated ones and short texts higher, and pages without doubles")
  func ranked() throws {
    let texts = [
      "plan", "planning a long journey through many countries", "the plan of the plan", "no such word",
      String(repeating: "filler ", count: 30) + "plan",
    ]
    let cache = try makeCache()
    try cache.write { session throws(ChatError) in
      for (place, words) in texts.enumerated() { _ = try session.merge(text(words, Int64(place) + 1)) }
    }
    var query = CacheSearch("plan", order: .relevance, limit: 2)
    var found: [String] = []
    var token: PageToken?
    repeat {
      let page = try cache.write { session throws(ChatError) in
        let page = try session.search(query, page: token)
        // What comes between two pages changes neither.
        _ = try session.merge(text("plan plan plan", Int64(100 + found.count)))
        return page
      }
      found += page.items.map { $0.content.searchableText ?? "" }
      token = page.next
    } while token != nil
    #expect(found == [texts[2], texts[0], texts[4], texts[1]])
    query.limit = 1
    #expect(try cache.read { session throws(ChatError) in try session.search(query) }.items.first?.content == .text("plan plan plan"))
  }

  @Test(
    "sets off what was searched for as it is written",
    arguments: [
      ("明天", "我们明天见，明天！", ["明天", "明天"]), ("cafe", "Ein Café, CAFE", ["Café", "CAFE"]),
      ("天见", "明天见", ["天见"]), ("明天 天见", "明天见", ["明天见"]), ("full", "Ｆｕｌｌ", ["Ｆｕｌｌ"]), ("zz", "abc", []),
      ("👍", "ok 👍🏽", ["👍🏽"]), ("한", "한국", ["한"]), ("", "abc", []),
    ] as [(String, String, [String])])
  func highlights(_ query: String, _ text: String, _ expected: [String]) {
    #expect(CacheSearch(query).highlights(in: text).map { String(text[$0]) } == expected)
  }

  @Test("is made anew without loss")
  func rebuilt() throws {
    let cache = try SearchTests.filled()
    _ = try cache.write { session throws(ChatError) in
      try session.database.run("INSERT INTO search (search) VALUES ('delete-all')")
    }
    #expect(try cache.found("明天") == [])
    #expect(try cache.rebuildSearch() == SearchTests.texts.count)
    #expect(try cache.found("明天") == ["明天", "我们明天见"])
  }
}
