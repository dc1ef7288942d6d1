import Testing
import UnifiedChat

@testable import ChatCache

/// A message of this device alone, made at `time`, which is also its id.
private func note(_ words: String, at time: Int64 = 5000) -> Message {
  Message(
    channel: "c", localID: LocalID("l-\(words)"), sender: me, createdAt: Timestamp(milliseconds: time),
    content: .text(words))
}

@Suite("Messages of this device alone in the cache")
struct LocalMessageTests {
  /// Main list, with what this device alone has.
  private func merged(_ cache: LocalCache) throws -> [String] {
    try cache.read { session throws(ChatError) in
      let placed = try session.messages(
        in: "c", .newer, of: .lowest, within: CachedRange(low: .lowest, high: .highest), limit: 100)
      return LocalMessage.merge(
        placed, try session.localMessages(in: "c", from: LocalPlace(of: .lowest), to: .last))
    }.map { $0.message.content.searchableText ?? "" }
  }

  @Test("stay behind what they were put behind, whatever comes later before and after it")
  func place() throws {
    let cache = try makeCache()
    try cache.write { session throws(ChatError) in
      _ = try session.insertLocal(note("first of all"))
      _ = try session.merge(text("20", 20))
      _ = try session.insertLocal(note("second", at: 9000))
      _ = try session.insertLocal(note("third", at: 9001))
      _ = try session.merge(text("30", 30))
      _ = try session.merge(text("10", 10))
    }
    #expect(try merged(cache) == ["first of all", "10", "20", "second", "third", "30"])
  }

  @Test(
    "of a time stand behind the newest message that is not newer",
    arguments: [(1009, ["old", "10", "20"]), (1010, ["10", "old", "20"]), (1019, ["10", "old", "20"]), (1020, ["10", "20", "old"])]
      as [(Int64, [String])])
  func time(_ time: Int64, _ expected: [String]) throws {
    let cache = try makeCache()
    try cache.write { session throws(ChatError) in
      for number in [10, 20] as [Int64] { _ = try session.merge(text("\(number)", number)) }
      try session.cover(CachedRange(low: position(10), high: .highest), in: "c")
      _ = try session.insertLocal(note("old", at: time), at: Timestamp(milliseconds: time))
    }
    #expect(try merged(cache) == expected)
    // What is older than all that was known comes before it.
    try cache.write { session throws(ChatError) in _ = try session.merge(text("9", 9)) }
    #expect(try merged(cache) == ["9"] + expected)
  }

  @Test("are in no range, no mark, no number, no outbox and no proof, and widen none")
  func invisible() throws {
    let cache = try makeCache()
    func state() throws -> [String] {
      try cache.read { session throws(ChatError) in
        [
          "\(try session.ranges(of: "c"))", "\(String(describing: try session.newestPosition(in: "c")))",
          "\(String(describing: try session.newestOwnPosition(in: "c")))",
          "\(String(describing: try session.countedUnread(of: "c")))", "\(try session.provenIDs(in: "c"))",
          "\(try session.waitingMessages(in: "c"))", "\(try session.unconfirmedCount())", "\(try session.count(in: "c"))",
          "\(try session.channelsBehind())", "\(try session.unread(of: "c"))",
        ]
      }
    }
    try cache.write { session throws(ChatError) in
      for number in 1...3 as ClosedRange<Int64> { _ = try session.merge(text("\(number)", number)) }
      try session.cover(CachedRange(low: position(1), high: .highest), in: "c")
      _ = try session.raiseReadMark(position(1), of: "c")
    }
    let before = try state()
    try cache.write { session throws(ChatError) in
      _ = try session.insertLocal(note("now"))
      var foreign = note("of bob")
      foreign.sender = "bob"
      _ = try session.insertLocal(foreign)
      _ = try session.insertLocal(note("long ago", at: 1), at: Timestamp(milliseconds: 1))
    }
    #expect(try state() == before)
    // A lost link is caught up with from the newest message of the server.
    let gaps = try cache.write { session throws(ChatError) in try session.openGaps() }
    #expect(gaps == ["c": position(3)])
    let entry = OutboxEntry(
      localID: "out", channel: "c", clientMessageID: "out", draft: .text("out"), createdAt: Timestamp(milliseconds: 6000))
    let seen = try cache.write { session throws(ChatError) in
      _ = try session.enqueue(entry)
      return try session.outboxEntry("out")?.seen
    }
    #expect(seen == position(3))
    #expect(try cache.read { session throws(ChatError) in try session.waitingMessages(in: "c").map(\.localID) } == ["out"])
  }

  @Test("are found by a search and last in the list of channels, until something newer comes")
  func shown() throws {
    let cache = try makeCache()
    try cache.write { session throws(ChatError) in
      _ = try session.merge(Channel(id: "c", kind: .group))
      _ = try session.merge(text("1", 1))
      _ = try session.insertLocal(note("welcome home"))
    }
    #expect(try cache.found("welcome") == ["welcome home"])
    func last() throws -> (Message?, Timestamp?) {
      try cache.read { session throws(ChatError) in
        (try session.lastMessage(in: "c"), try session.channelKey("c")?.lastMessageAt)
      }
    }
    var (message, time) = try last()
    #expect(message?.content == .text("welcome home") && message?.isLocalOnly == true)
    #expect(time == Timestamp(milliseconds: 5000))
    try cache.write { session throws(ChatError) in _ = try session.merge(text("2", 2)) }
    (message, time) = try last()
    #expect(message?.id == "m2" && time == message?.createdAt)
  }

  @Test("are changed and removed by their local id, and nothing else is")
  func changed() throws {
    let cache = try makeCache()
    try cache.write { session throws(ChatError) in
      _ = try session.merge(text("1", 1))
      _ = try session.insertLocal(note("wrong words"))
      _ = try session.merge(text("2", 2))
      let edited = try session.editLocal("l-wrong words", to: .text("right words"), at: Timestamp(milliseconds: 6000))
      #expect(edited?.editedAt == Timestamp(milliseconds: 6000) && edited?.isLocalOnly == true)
    }
    #expect(try merged(cache) == ["1", "right words", "2"])
    #expect(try cache.found("wrong") == [] && cache.found("right") == ["right words"])
    let (gone, again) = try cache.write { session throws(ChatError) in
      (try session.removeLocal("l-wrong words"), try session.removeLocal("l-wrong words"))
    }
    #expect(gone?.content == .text("right words") && again == nil)
    #expect(try merged(cache) == ["1", "2"] && cache.found("right") == [])
    // What waits to be sent is not of this device alone.
    let entry = OutboxEntry(
      localID: "out", channel: "c", clientMessageID: "out", draft: .text("out"), createdAt: Timestamp(milliseconds: 6000))
    let touched = try cache.write { session throws(ChatError) in
      _ = try session.enqueue(entry)
      return (try session.removeLocal("out"), try session.editLocal("out", to: .text("x"), at: entry.createdAt))
    }
    #expect(touched.0 == nil && touched.1 == nil)
  }

  @Test("are cleared up to a place, stay when the cache is trimmed, and go with their channel")
  func cleared() throws {
    let cache = try makeCache()
    try cache.write { session throws(ChatError) in
      _ = try session.merge(text("1", 1))
      _ = try session.insertLocal(note("a"))
      _ = try session.merge(text("2", 2))
      _ = try session.insertLocal(note("b"))
      _ = try session.clear("c", upTo: position(1))
    }
    #expect(try merged(cache) == ["2", "b"])
    try cache.write { session throws(ChatError) in while try session.evictOldest() > 0 {} }
    #expect(try merged(cache) == ["b"])
    try cache.write { session throws(ChatError) in
      _ = try session.clear("c", upTo: position(9))
      _ = try session.insertLocal(note("c"))
    }
    #expect(try merged(cache) == ["c"])
    try cache.write { session throws(ChatError) in try session.forgetMessages(of: "c") }
    #expect(try merged(cache) == [])
  }

  @Test("survive a restart and a new search index, and lose the words of what was recalled")
  func kept() throws {
    let folder = Folder()
    var cache = try makeCache(folder.location)
    try cache.write { session throws(ChatError) in
      _ = try session.merge(text("regretted", 1))
      var answer = note("an answer")
      answer.replyTo = Reply(id: "m1", quoted: QuotedMessage(sender: "bob", content: .text("regretted")))
      _ = try session.insertLocal(answer)
      _ = try session.merge(text("2", 2))
    }
    cache.close()
    cache = try makeCache(folder.location)
    #expect(try merged(cache) == ["regretted", "an answer", "2"])
    try cache.rebuildSearch()
    #expect(try cache.found("answer") == ["an answer"])
    let quoted = try cache.write { session throws(ChatError) in
      var tombstone = text("", 1)
      tombstone.content = .recalled(by: "bob", at: nil)
      _ = try session.merge(tombstone)
      return try session.message("l-an answer")?.replyTo?.quoted?.content
    }
    #expect(quoted == .recalled(by: "bob", at: nil))
  }

  @Test("are found by a walk along their index, and their places order as text and back")
  func order() throws {
    let plan = try makeCache().read { session throws(ChatError) in
      try session.planOfLocal(.older) + session.planOfLocal(.newer)
    }
    #expect(plan.allSatisfy { $0.contains("messages_here") && !$0.contains("TEMP B-TREE") }, "\(plan)")
    let places = [LocalPlace(of: .lowest), LocalPlace(of: position(1)), LocalPlace(behind: position(1)), LocalPlace(of: position(2)), .last]
    #expect(places == places.sorted())
    for place in places { #expect(LocalPlace(place.description) == place) }
    for wrong in ["", "1", "1/2", "x/1/2/", "1/1/2"] { #expect(LocalPlace(wrong) == nil) }
  }
}
