import Testing
import UnifiedChat

@testable import ChatCache

@Suite("Search")
struct SearchTests {
  static let texts = [
    "重跑gen-itgc后", "我们明天见", "明天", "天", "Hello World", "hello-world", "Ｆｕｌｌ width", "Café au lait",
    "Cafe\u{301} noir", "100% sure", "snake_case", "O'Brien \"quoted\"", "NEAR(a OR b) -- *", "😀👍🏽 ok", "東京タワー",
    "한국어 메시지", "ภาษาไทย", "naïve a\u{0}b",
  ]

  static func filled() throws -> LocalCache {
    let cache = try makeCache()
    try cache.write { session throws(ChatError) in
      for (place, words) in texts.enumerated() { _ = try session.merge(text(words, Int64(place) + 1)) }
    }
    return cache
  }

  @Test(
    "finds words, and one, two and three characters where a script has no spaces",
    arguments: [
      ("重", ["重跑gen-itgc后"]), ("重跑", ["重跑gen-itgc后"]), ("后", ["重跑gen-itgc后"]), ("itgc", ["重跑gen-itgc后"]),
      ("重跑gen", ["重跑gen-itgc后"]), ("gen-itgc后", ["重跑gen-itgc后"]), ("天", ["天", "明天", "我们明天见"]),
      ("明天", ["明天", "我们明天见"]), ("明天见", ["我们明天见"]), ("们明", ["我们明天见"]), ("们天", []),
      ("hello", ["hello-world", "Hello World"]), ("HELLO WORLD", ["hello-world", "Hello World"]),
      ("hello-world", ["hello-world"]), ("wor", ["hello-world", "Hello World"]), ("full", ["Ｆｕｌｌ width"]),
      ("café", ["Cafe\u{301} noir", "Café au lait"]), ("cafe", ["Cafe\u{301} noir", "Café au lait"]),
      ("東京", ["東京タワー"]), ("タワ", ["東京タワー"]), ("메시", ["한국어 메시지"]), ("어", ["한국어 메시지"]), ("ไทย", ["ภาษาไทย"]),
      ("😀", ["😀👍🏽 ok"]), ("👍🏽", ["😀👍🏽 ok"]),
    ])
  func finds(_ query: String, _ expected: [String]) throws {
    #expect(try Self.filled().found(query) == expected)
  }

  @Test(
    "takes the text of a query to the letter",
    arguments: [
      ("%", ["100% sure"]), ("_", ["snake_case"]), ("'", ["O'Brien \"quoted\""]), ("\"", ["O'Brien \"quoted\""]),
      ("*", ["NEAR(a OR b) -- *"]), ("NEAR(", ["NEAR(a OR b) -- *"]), ("--", ["NEAR(a OR b) -- *"]),
      ("OR", ["NEAR(a OR b) -- *"]), ("\u{0}", ["naïve a\u{0}b"]), ("a\"b", []), ("terms:x", []), ("zzz", []),
    ])
  func literal(_ query: String, _ expected: [String]) throws {
    #expect(try Self.filled().found(query) == expected)
  }

  @Test("finds all that a plain scan finds, for every pair and triple of characters")
  func recall() throws {
    var random = Seeded(seed: 7)
    let letters = Array("天地玄黄宇宙洪荒日月")
    let all = (0..<400).map { number in
      String((0..<8).map { _ in letters[Int.random(in: 0..<10, using: &random)] }) + " \(number)"
    }
    let cache = try makeCache()
    try cache.write { session throws(ChatError) in
      for (place, words) in all.enumerated() { _ = try session.merge(text(words, Int64(place) + 1)) }
    }
    for length in 1...3 {
      for _ in 0..<30 {
        let query = String((0..<length).map { _ in letters[Int.random(in: 0..<10, using: &random)] })
        #expect(Set(try cache.found(query)) == Set(all.filter { $0.contains(query) }), "\(query)")
      }
    }
  }

  @Test("finds nothing of what was recalled, edited away, hidden or cleared, also not in the index")
  func erased() throws {
    let folder = Folder()
    let cache = try makeCache(folder.location)
    try cache.write { session throws(ChatError) in
      for sequence in 1...5 as ClosedRange<Int64> { _ = try session.merge(text("verborgen \(sequence)", sequence)) }
      _ = try session.merge(text("verborgen 6", 1, in: "d", id: "other"))
      var gone = text("", 1)
      gone.content = .recalled(by: nil, at: nil)
      _ = try session.merge(gone)
      var edited = text("anders", 2)
      edited.editedAt = Timestamp(milliseconds: 99)
      _ = try session.merge(edited)
      _ = try session.hide("m3", in: "c")
      _ = try session.clear("d", upTo: position(1))
    }
    #expect(try cache.found("verborgen") == ["verborgen 5", "verborgen 4"])
    cache.close()
    #expect(try makeCache(folder.location).found("verborgen") == ["verborgen 5", "verborgen 4"])
  }

  @Test("pages stay where they are while new messages come, in both orders")
  func stablePages() throws {
    for oldestFirst in [true, false] {
      let cache = try makeCache()
      try cache.write { session throws(ChatError) in
        for sequence in 1...500 as ClosedRange<Int64> {
          _ = try session.merge(text(sequence % 2 == 0 ? "even \(sequence)" : "odd", sequence))
        }
      }
      var found: [String] = []
      var token: PageToken?
      var next: Int64 = 1000
      repeat {
        let page = try cache.write { session throws(ChatError) in
          var query = CacheSearch("even", order: oldestFirst ? .oldestFirst : .newestFirst, limit: 30)
          query.until = Timestamp(milliseconds: 1501)
          _ = try session.merge(text("even new", next))
          return try session.search(query, page: token)
        }
        next += 1
        found += page.items.map { $0.content.searchableText ?? "" }
        token = page.next
      } while token != nil
      let expected = (1...250).map { "even \($0 * 2)" }
      #expect(found == (oldestFirst ? expected : expected.reversed()))
    }
  }
}
