import Testing
import UnifiedChat

@testable import ChatCache

@Suite("Messages in the cache")
struct MergeTests {
  private func edited(_ message: Message, _ words: String, at time: Int64) -> Message {
    var edited = message
    edited.content = .text(words)
    edited.editedAt = Timestamp(milliseconds: time)
    return edited
  }

  private func recalled(_ message: Message) -> Message {
    var gone = message
    gone.content = .recalled(by: message.sender, at: nil)
    return gone
  }

  @Test("the same message twice is one row and one change")
  func twice() throws {
    let cache = try makeCache()
    let changes = try cache.write { session throws(ChatError) in
      [try session.merge(text("a", 1)), try session.merge(text("a", 1)), try session.merge(text("a", 1), from: .read)]
    }
    #expect(changes == [.inserted(text("a", 1)), .unchanged, .unchanged])
  }

  @Test("a thousand messages of one millisecond are a thousand rows in a stable order")
  func oneMillisecond() throws {
    let cache = try makeCache()
    let time = Timestamp(milliseconds: 5)
    try cache.write { session throws(ChatError) in
      for number in (0..<1000).reversed() {
        let id = MessageID("id\(number)")
        _ = try session.merge(
          Message(
            channel: "c", id: id, sender: "bob", position: MessagePosition(time: time, number: Int64(number)),
            createdAt: time, content: .text("\(number)")))
      }
    }
    #expect(try cache.texts() == (0..<1000).map { "\($0)" })
  }

  @Test("positions with equal times are ordered by the bytes of their ids, also those beyond ASCII")
  func bytes() throws {
    let cache = try makeCache()
    let time = Timestamp(milliseconds: 5)
    let ids = ["é", "e\u{301}", "Z", "a", "\u{10000}", "\u{FFFD}", "", "ab"]
    try cache.write { session throws(ChatError) in
      for id in ids where !id.isEmpty {
        _ = try session.merge(
          Message(
            channel: "c", id: MessageID(id), sender: "bob", position: MessagePosition(time: time, id: MessageID(id)),
            createdAt: time, content: .text(id)))
      }
    }
    let sorted = ids.filter { !$0.isEmpty }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    #expect(try cache.texts().map { Array($0.utf8) } == sorted.map { Array($0.utf8) })
  }

  @Test("any order of the same events ends in the same rows", arguments: 0..<40)
  func convergence(_ seed: Int) throws {
    var random = Seeded(seed: UInt64(seed) &+ 1)
    let first = text("one", 1), second = text("two", 2), third = text("three", 3, client: "k")
    let copy = text("three", 4, client: "k")
    var events = [
      first, second, third, copy, edited(first, "one!", at: 10), edited(first, "one!!", at: 20),
      recalled(second), edited(second, "two?", at: 30), first, third, edited(third, "3", at: 5),
    ]
    events.shuffle(using: &random)
    let cache = try makeCache()
    try cache.write { session throws(ChatError) in for event in events { _ = try session.merge(event) } }
    #expect(try cache.texts() == ["one!!", "recalled", "3"])
    #expect(try cache.found("one") == ["one!!"])
    #expect(try cache.found("two") == [])
  }

  @Test("two stored copies of one send show as one, the lower position")
  func duplicates() throws {
    for order in [[5, 9], [9, 5]] as [[Int64]] {
      let cache = try makeCache()
      try cache.write { session throws(ChatError) in
        for sequence in order { _ = try session.merge(text("x", sequence, client: "k")) }
      }
      let ids = try cache.read { session throws(ChatError) in
        try session.messages(in: "c", .older, of: .highest, within: CachedRange(low: .lowest, high: .highest), limit: 9)
      }.map(\.id)
      #expect(ids == ["m5"])
    }
  }

  @Test("the same client id of two senders, or in two channels, is two messages")
  func sameClientID() throws {
    let cache = try makeCache()
    try cache.write { session throws(ChatError) in
      _ = try session.merge(text("a", 1, by: "bob", client: "k"))
      _ = try session.merge(text("b", 2, by: "carol", client: "k"))
      _ = try session.merge(text("c", 3, by: "bob", in: "d", id: "x", client: "k"))
    }
    #expect(try cache.texts() == ["a", "b"])
    #expect(try cache.texts(in: "d") == ["c"])
  }

  @Test("ids that differ only in normalisation are two")
  func normalisation() throws {
    let cache = try makeCache()
    try cache.write { session throws(ChatError) in
      _ = try session.merge(text("composed", 1, id: "caf\u{E9}"))
      _ = try session.merge(text("decomposed", 2, id: "cafe\u{301}"))
      _ = try session.merge(text("other", 3, in: "caf\u{E9}"))
      _ = try session.merge(text("another", 3, in: "cafe\u{301}"))
    }
    #expect(try cache.texts() == ["composed", "decomposed"])
    #expect(try cache.texts(in: "cafe\u{301}") == ["another"])
  }

  @Test("extreme numbers are kept as they are")
  func extremes() throws {
    let cache = try makeCache()
    let numbers: [Int64] = [.min + 1, -1, 0, 9_007_199_254_740_993, .max]
    try cache.write { session throws(ChatError) in
      for number in numbers {
        _ = try session.merge(
          Message(
            channel: "c", id: MessageID("\(number)"), sender: "bob",
            position: MessagePosition(major: number, minor: number, tail: "\u{0}x"),
            createdAt: Timestamp(milliseconds: number), content: .text("\(number)")))
        _ = try session.setUnread(.exact(Int(number)), of: "c")
        _ = try session.addUnread(.max, of: "c")
        _ = try session.addUnread(.min, of: "c")
      }
    }
    #expect(try cache.texts() == numbers.map { "\($0)" })
    #expect(try cache.read { session throws(ChatError) in try session.unread(of: "c") } == .exact(0))
  }

  @Test("an unknown kind and a custom payload keep their bytes")
  func bytesOfPayloads() throws {
    let cache = try makeCache()
    let raw = JSONText(unchecked: #"{"a":1.0, "a" :1e2,"b":"\u00e9" }"#)
    var message = text("", 1)
    message.content = .unknown(kind: "77", raw: raw)
    message.customData = raw
    try cache.write { [message] session throws(ChatError) in _ = try session.merge(message) }
    let read = try cache.read { session throws(ChatError) in try session.message("m1", in: "c") }
    #expect(read == message)
  }

  @Test("local data survives an edit and goes with a recall")
  func localExtension() throws {
    let cache = try makeCache()
    let first = text("a", 1)
    let data = JSONText(unchecked: "{\"note\":1}")
    let (kept, gone) = try cache.write { session throws(ChatError) in
      _ = try session.merge(first)
      _ = try session.setLocalExtension(data, of: first)
      _ = try session.merge(edited(first, "b", at: 9))
      let kept = try session.message("m1", in: "c")?.localExtension
      _ = try session.merge(recalled(first))
      return (kept, try session.message("m1", in: "c")?.localExtension)
    }
    #expect(kept == data && gone == nil)
  }
}

/// SplitMix64: the same order for the same seed.
struct Seeded: RandomNumberGenerator {
  var state: UInt64
  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

@Suite("Gaps")
struct RangeTests {
  private func ranges(_ covered: [(Int64, Int64)]) throws -> [CachedRange] {
    try makeCache().write { session throws(ChatError) in
      for (low, high) in covered { try session.cover(CachedRange(low: position(low), high: position(high)), in: "c") }
      return try session.ranges(of: "c")
    }
  }

  @Test(
    "ranges that share a position become one",
    arguments: [
      ([(1, 3), (5, 7)], [(1, 3), (5, 7)]), ([(1, 3), (3, 7)], [(1, 7)]), ([(1, 3), (5, 7), (2, 6)], [(1, 7)]),
      ([(1, 9), (2, 3)], [(1, 9)]), ([(4, 4), (1, 2), (6, 8), (0, 10)], [(0, 10)]), ([(3, 1)], []),
    ] as [([(Int64, Int64)], [(Int64, Int64)])])
  func union(_ covered: [(Int64, Int64)], _ expected: [(Int64, Int64)]) throws {
    #expect(try ranges(covered) == expected.map { CachedRange(low: position($0.0), high: position($0.1)) })
  }

  @Test("a lost link ends what is live at the newest message of somebody else")
  func openGaps() throws {
    let cache = try makeCache()
    let result = try cache.write { session throws(ChatError) in
      for sequence in 1...3 as ClosedRange<Int64> { _ = try session.merge(text("x", sequence)) }
      _ = try session.merge(text("own", 4, by: me))
      try session.cover(CachedRange(low: position(1), high: .highest), in: "c")
      try session.cover(CachedRange(low: .lowest, high: .highest), in: "empty")
      let live = try session.openGaps()
      return (live, try session.ranges(of: "c"), try session.ranges(of: "empty"), try session.channelsBehind())
    }
    #expect(result.0 == ["c": position(3), "empty": .lowest])
    #expect(result.1 == [CachedRange(low: position(1), high: position(3))])
    #expect(result.2 == [CachedRange(low: .lowest, high: .lowest)])
    #expect(result.3 == ["c": position(3)])
  }

  @Test("own messages alone prove nothing of what lies before them", arguments: 1...5)
  func ownAlone(_ count: Int64) throws {
    let high = try makeCache().write { session throws(ChatError) in
      for sequence in 2...(1 + count) { _ = try session.merge(text("own", sequence, by: me)) }
      try session.cover(CachedRange(low: .lowest, high: .highest), in: "c")
      return try session.openGaps()
    }
    #expect(high == ["c": .lowest])
  }

  struct Doubt: Sendable, CustomTestStringConvertible {
    var refused: [Int64] = []
    var ahead: [Int64] = []
    var expected: Int64
    var testDescription: String { "refused \(refused), ahead \(ahead): \(expected)" }
  }

  @Test("a lost link ends what is live before the first message that proves nothing, above where it begins", arguments: [
    Doubt(expected: 8), Doubt(refused: [5], expected: 4), Doubt(ahead: [6], expected: 5), Doubt(ahead: [7, 4, 8], expected: 3),
    Doubt(refused: [7], ahead: [5], expected: 4), Doubt(refused: [2], ahead: [1], expected: 8), Doubt(refused: [1, 6], expected: 5),
    Doubt(refused: [3], expected: 2), Doubt(refused: [99], ahead: [99], expected: 8),
  ])
  func doubts(_ doubt: Doubt) throws {
    let cache = try makeCache()
    let high = try cache.write { session throws(ChatError) -> [CachedRange] in
      for sequence in 2...8 as ClosedRange<Int64> { _ = try session.merge(text("x", sequence)) }
      try session.cover(CachedRange(low: position(2), high: .highest), in: "c")
      try session.noteAhead(doubt.ahead.map(position), of: "c")
      try session.openGaps(before: ["c": doubt.refused.map(position)])
      let once = try session.ranges(of: "c")
      // Used up: what is live later is not in doubt because of it.
      try session.cover(CachedRange(low: position(2), high: .highest), in: "c")
      try session.openGaps()
      return once + (try session.ranges(of: "c"))
    }
    #expect(high == [CachedRange(low: position(2), high: position(doubt.expected)), CachedRange(low: position(2), high: position(8))])
  }

  @Test("what waits behind a hole is shown by a list that follows, however many of others came meanwhile", arguments: [0, 49, 200, 1000], [true, false])
  func ownBehindHole(_ others: Int, _ hasIsland: Bool) throws {
    let cache = try makeCache()
    let shown = try cache.write { session throws(ChatError) -> [String]? in
      for sequence in 1...3 as ClosedRange<Int64> { _ = try session.merge(text("\(sequence)", sequence)) }
      try session.cover(CachedRange(low: position(1), high: position(3)), in: "c")
      for place in 0..<others { _ = try session.merge(text("other", 10 + Int64(place))) }
      let last = 10 + Int64(others)
      _ = try session.enqueue(
        OutboxEntry(localID: "l", channel: "c", clientMessageID: "k", draft: .text("own"), createdAt: Timestamp(milliseconds: 5)))
      _ = try session.confirm("l", as: text("own", last, by: me, client: "k"))
      // Around it, or before it, more is known.
      if hasIsland { try session.cover(CachedRange(low: position(max(9, last - 3)), high: position(last)), in: "c") }
      return try session.window(of: "c", from: position(1), to: nil)?.messages.map { $0.content.searchableText ?? "" }
    }
    #expect(shown == ["1", "2", "3", "own"])
  }

  @Test("forgetting cuts a range in two")
  func forget() throws {
    let ranges = try makeCache().write { session throws(ChatError) in
      try session.cover(CachedRange(low: .lowest, high: .highest), in: "c")
      try session.forget(between: position(4), and: position(9), in: "c")
      return try session.ranges(of: "c")
    }
    #expect(ranges == [CachedRange(low: .lowest, high: position(4)), CachedRange(low: position(9), high: .highest)])
  }

  @Test("a page is a walk along the index, whatever the size of the channel")
  func queryPlan() throws {
    let cache = try makeCache()
    let plan = try cache.read { session throws(ChatError) in
      try session.plan(of: .older) + session.plan(of: .newer)
    }
    #expect(plan.allSatisfy { $0.contains("messages_page") && !$0.contains("TEMP B-TREE") }, "\(plan)")
    #expect(!plan.isEmpty)
  }
}
