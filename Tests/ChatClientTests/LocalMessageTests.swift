import ChatCache
import Testing
import UnifiedChat

@testable import ChatClient

@Suite("Messages of this device alone", .serialized, .timeLimit(.minutes(1)))
struct LocalMessageTests {
  /// Every page to one end; none is over the limit.
  private func walk(_ chat: Chat, _ direction: HistoryQuery.Direction, _ limit: Int) async throws -> [String] {
    var query = HistoryQuery(anchor: direction == .older ? .newest : .oldest, direction: direction, limit: limit)
    var texts: [String] = []
    for _ in 0..<100 {
      let page = try await chat.history(of: "c", query)
      let words = page.messages.map(\.words)
      #expect(words.count <= limit)
      texts = direction == .older ? words + texts : texts + words
      guard let next = direction == .older ? page.older : page.newer else { return texts }
      query.anchor = .cursor(next)
    }
    Issue.record("the pages have no end")
    return texts
  }

  /// Six messages of the server; notes before all, two behind the second, one behind the last.
  private func furnished() async throws -> (Bench, [String]) {
    let bench = try await Bench()
    try await bench.chat.insertLocal(.text("zero"), in: "c")
    for number in 1...6 {
      let message = await bench.adapter.write("\(number)", push: true)
      await bench.heard.first { $0.isReceived(message.words) }
      if number == 2 { for words in ["two and a half", "two and more"] { try await bench.chat.insertLocal(.text(words), in: "c") } }
    }
    try await bench.chat.insertLocal(.text("the end"), in: "c")
    return (bench, ["zero", "1", "2", "two and a half", "two and more", "3", "4", "5", "6", "the end"])
  }

  /// The numbers after `history`: none but those of messages of the server may be asked for.
  private func anchors(_ bench: Bench) async -> Set<String> {
    Set(await bench.adapter.journal.compactMap { line in
      let parts = line.split(separator: " ")
      return parts.first == "history" ? String(parts[2]) : nil
    })
  }

  @Test("every page size in both directions gives everything once, in its place", arguments: [1, 2, 3, 4, 7, 50], [true, false])
  func pages(_ limit: Int, _ isForward: Bool) async throws {
    let (bench, expected) = try await furnished()
    #expect(try await walk(bench.chat, isForward ? .newer : .older, limit) == expected)
    #expect(await anchors(bench).isSubset(of: ["newest", "0", "1", "2", "3", "4", "5", "6"]))
    // All of it again without the link, from where the newest is known: behind it nobody knows of an end then.
    guard !isForward else { return }
    await bench.adapter.clearJournal()
    await bench.adapter.cutLink()
    #expect(try await walk(bench.chat, .older, limit) == expected)
    #expect(await bench.adapter.journal == [])
  }

  @Test("a page of them alone leads on from where it stands, whatever comes meanwhile", arguments: 1...3)
  func onlyTheirs(_ limit: Int) async throws {
    let bench = try await Bench()
    for number in 1...4 {
      let message = await bench.adapter.write("\(number)", push: true)
      await bench.heard.first { $0.isReceived(message.words) }
    }
    for words in ["a", "b", "c"] { try await bench.chat.insertLocal(.text(words), in: "c") }
    let page = try await bench.chat.history(of: "c", .newest(limit))
    #expect(page.messages.count { !$0.isLocalOnly } == 0)
    for number in 5...9 {
      let message = await bench.adapter.write("\(number)", push: true)
      await bench.heard.first { $0.isReceived(message.words) }
    }
    var texts = page.messages.map(\.words)
    var next = page.older
    while let cursor = next {
      let older = try await bench.chat.history(of: "c", HistoryQuery(anchor: .cursor(cursor), direction: .older, limit: limit))
      texts = older.messages.map(\.words) + texts
      next = older.older
    }
    #expect(texts == ["1", "2", "3", "4", "a", "b", "c"])
  }

  @Test("pages lead back over the same messages in the other direction", arguments: 1...4)
  func thereAndBack(_ limit: Int) async throws {
    let (bench, expected) = try await furnished()
    _ = try await walk(bench.chat, .older, 50)
    let page = try await bench.chat.history(of: "c", .newest(limit))
    var place = page.older
    for _ in 0..<3 {
      guard let cursor = place else { break }
      let older = try await bench.chat.history(of: "c", HistoryQuery(anchor: .cursor(cursor), direction: .older, limit: limit))
      let edge = try #require(older.newer)
      let newer = try await bench.chat.history(of: "c", HistoryQuery(anchor: .cursor(edge), direction: .newer, limit: 50))
      let shown = older.messages.map(\.words) + newer.messages.map(\.words)
      #expect(shown == expected.suffix(shown.count))
      place = older.older
    }
    for wrong in ["beside:", "beside:x:1", "beside:99:1/2/3/", "beside:-1:1/1/1/", "beside:1:é"] {
      let error = await #expect(throws: ChatError.self) {
        try await bench.chat.history(of: "c", HistoryQuery(anchor: .cursor(Cursor(wrong)), direction: .older, limit: 1))
      }
      #expect(error?.kind == .invalidArgument(field: "cursor"))
    }
  }

  @Test("an empty channel shows them, with and without a link, and asks for nothing but its ends")
  func empty() async throws {
    let bench = try await Bench()
    for words in ["one", "two", "three"] { try await bench.chat.insertLocal(.text(words), in: "c") }
    for limit in 1...4 {
      #expect(try await walk(bench.chat, .older, limit) == ["one", "two", "three"])
      #expect(try await walk(bench.chat, .newer, limit) == ["one", "two", "three"])
    }
    #expect(await anchors(bench).isSubset(of: ["newest", "0"]))
    // Nothing at all is known of this one.
    await bench.adapter.cutLink()
    try await bench.chat.insertLocal(.text("alone"), in: "e")
    let page = try await bench.chat.history(of: "e", .newest(5))
    #expect(page.messages.map(\.words) == ["alone"] && page.older != nil && page.newer == nil)
    let list = await bench.chat.messageCollection(in: "e")
    try await until { list.items.map(\.message.words) == ["alone"] }
  }

  @Test("beside a hole they are shown on its near side, and the hole is asked for by the messages around it")
  func hole() async throws {
    let bench = try await Bench { adapter in for number in 1...3 { await adapter.write("\(number)") } }
    _ = try await bench.chat.history(of: "c", .newest(10))
    await bench.adapter.cutLink()
    try await bench.chat.insertLocal(.text("offline"), in: "c")
    for number in 4...9 { await bench.adapter.write("\(number)") }
    #expect(try await bench.chat.history(of: "c", .newest(2)).messages.map(\.words) == ["3", "offline"])
    await bench.adapter.clearJournal()
    await bench.adapter.restoreLink()
    await bench.heard.first { $0.kind == .messagesBackfilled("c", count: 6) }
    #expect(await anchors(bench) == ["3"])
    let expected = ["1", "2", "3", "offline", "4", "5", "6", "7", "8", "9"]
    #expect(try await walk(bench.chat, .older, 3) == expected)
    #expect(try await walk(bench.chat, .newer, 3) == expected)
  }

  @Test("what is older than all that is known stands before it, and only the server's own messages are asked for")
  func before() async throws {
    let bench = try await Bench { adapter in for number in 1...9 { await adapter.write("\(number)") } }
    // The channel list brought the last one.
    try await bench.chat.insertLocal(.text("old"), in: "c", at: Timestamp(milliseconds: 1))
    let expected = (1...8).map { "\($0)" } + ["old", "9"]
    for limit in [1, 2, 5] { #expect(try await walk(bench.chat, .older, limit) == expected) }
    #expect(await anchors(bench).isSubset(of: Set((1...9).map { "\($0)" } + ["newest"])))
  }

  @Test("nothing of them reaches the adapter, and nothing counts, waits, differs or is read again for them")
  func unseen() async throws {
    let (bench, _) = try await furnished()
    let chat = bench.chat
    #expect(await anchors(bench).isEmpty)
    let local = try #require(try await chat.history(of: "c", .newest(1)).messages.first)
    #expect(local.words == "the end" && local.isLocalOnly && local.state == .sent && local.sender == "alice")
    #expect(try await chat.waitingMessages(in: "c").isEmpty)
    #expect(try await chat.unconfirmedCount() == 0)
    let difference = try await chat.compareWithServer("c")
    #expect(difference.isEqual && difference.onServer == 6)
    _ = try await chat.repair("c")
    await bench.adapter.clearJournal()
    try await chat.markRead("c", upTo: nil)
    #expect(await bench.adapter.journal == ["markRead 6"])
    let list = await chat.messageCollection(in: "c")
    try await list.load()
    try await list.markRead()
    #expect(await bench.adapter.journal.allSatisfy { $0.hasPrefix("markRead 6") || $0.hasPrefix("history") || $0.hasPrefix("members") })
    #expect(try await chat.searchCache(CacheSearch("half")).items.map(\.words) == ["two and a half"])
    #expect(await bench.heard.lines.filter { $0.hasPrefix("received") }.count == 6)
    #expect(try await chat.cachedChannels().first { $0.id == "c" }?.lastMessage?.words == "the end")
    #expect(await bench.adapter.messages["c"]?.count == 6)
  }

  @Test("a list of a channel shows them in their places, at both ends, and follows what becomes of them")
  func list() async throws {
    let (bench, expected) = try await furnished()
    let list = await bench.chat.messageCollection(in: "c", MessageListOptions(pageSize: 2))
    try await list.load()
    #expect(list.items.map(\.message.words) == ["5", "6", "the end"])
    for _ in 0..<10 where list.snapshot.hasOlder { try await list.loadOlder() }
    #expect(list.items.map(\.message.words) == expected)
    let half = try #require(list.items.first { $0.message.words == "two and a half" }?.message)
    let more = try #require(list.items.first { $0.message.words == "two and more" }?.message)
    let edited = try await bench.chat.edit(half, to: .text("2.5"))
    #expect(edited.isLocalOnly && edited.localID == half.localID && edited.editedAt != nil)
    try await bench.chat.deleteForMe([more])
    #expect(try await bench.chat.recall(try #require(list.items.last?.message)).state == .cancelled)
    try await until { list.items.map(\.message.words) == ["zero", "1", "2", "2.5", "3", "4", "5", "6"] }
    #expect(await bench.adapter.journal.allSatisfy { !$0.contains("edit") && !$0.contains("recall") && !$0.contains("delete") })
  }

  @Test("reading again after edits were missed leaves them, and clearing takes them")
  func reread() async throws {
    let bench = try await Bench(ScriptedAdapter(hasLog: true)) { adapter in
      for number in 1...3 { await adapter.write("\(number)") }
    }
    _ = try await bench.chat.history(of: "c", .newest(10))
    try await until { await bench.adapter.changeTokens > 0 }
    let cache = try #require(await bench.chat.cache)
    // A token that the server does not know begins the log anew, and what is here is read again.
    try cache.write { session throws(ChatError) in try session.setCursor("unknown by now", "changes", of: "c") }
    try await bench.chat.insertLocal(.text("note"), in: "c")
    await bench.adapter.cutLink()
    await bench.adapter.remove("m2")
    await bench.adapter.restoreLink()
    await bench.heard.first { if case .messageRecalled(let gone) = $0.kind { gone.id == "m2" } else { false } }
    let page = try await bench.chat.history(of: "c", .newest(10))
    #expect(page.messages.map(\.words).last == "note" && page.messages.count == 4)
    try await bench.chat.clearHistory(of: "c")
    #expect(try await bench.chat.history(of: "c", .newest(10)).messages == [])
    try await bench.chat.insertLocal(.text("again"), in: "c")
    #expect(try await bench.chat.history(of: "c", .newest(10)).messages.map(\.words) == ["again"])
    try await bench.chat.clearHistory(of: "c")
    #expect(try await bench.chat.history(of: "c", .newest(10)).messages == [])
  }

  @Test("any content may be put there that needs no server; the rest is refused")
  func refused() async throws {
    let bench = try await Bench(ScriptedAdapter(without: [.messageQuote, .fileByURL, .messageEdit, .messageMention]))
    let chat = bench.chat
    let file = Attachment(url: "file:///a.txt", name: "a.txt")
    var draft = MessageDraft(.file(file), mentions: Mentions(everyone: true), replyTo: Reply(id: "m1"))
    draft.customData = JSONText(unchecked: "{}")
    let kept = try await chat.insertLocal(draft, by: "carol", in: "c", at: Timestamp(milliseconds: 7))
    #expect(kept.content == .file(file) && kept.sender == "carol" && kept.createdAt == Timestamp(milliseconds: 7))
    #expect(kept.replyTo?.id == "m1" && kept.customData?.text == "{}")
    let wrong: [(MessageDraft, String)] = [
      (.text(""), "text"), (MessageDraft(.file(Attachment(name: "a"))), "attachment"),
      (MessageDraft(.recalled(by: nil, at: nil)), "content"), (MessageDraft(.text("a"), threadParent: "m1"), "threadParent"),
      (MessageDraft(.text("a"), isTransient: true), "isTransient"),
      (MessageDraft(.custom(JSONText(unchecked: "{"))), "content"),
    ]
    for (draft, field) in wrong {
      let error = await #expect(throws: ChatError.self) { try await chat.insertLocal(draft, in: "c") }
      #expect(error?.kind == .invalidArgument(field: field))
    }
    let nowhere = await #expect(throws: ChatError.self) { try await chat.insertLocal(.text("a"), in: "") }
    #expect(nowhere?.kind == .invalidArgument(field: "channel"))
    #expect(await bench.adapter.journal == [])
  }
}
