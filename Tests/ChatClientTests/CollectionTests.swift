import ChatCache
import Testing
import UnifiedChat

@testable import ChatClient

/// A subscriber of a live list that applies the differences to a list of its own, as a view does.
actor Mirror<Snapshot: LiveSnapshot> {
  private(set) var items: [Snapshot.Item] = []
  private(set) var snapshot: Snapshot?
  private(set) var batches: [ListDiff] = []
  private var task: Task<Void, Never>?

  init(_ updates: ListUpdates<Snapshot>) async {
    task = Task { [weak self] in for await update in updates { await self?.take(update) } }
  }

  private func take(_ update: ListUpdate<Snapshot>) {
    update.diff.apply(to: &items, new: update.items)
    snapshot = update.snapshot
    batches.append(update.diff)
  }

  /// The list that the differences made is the one that was told.
  var isTrue: Bool { items == snapshot?.items }
  func has(_ other: Snapshot) -> Bool { isTrue && snapshot == other }

  deinit { task?.cancel() }
}

extension Mirror where Snapshot == MessageListSnapshot {
  var words: [String] { items.map(\.message.words) }
  func says(_ words: [String], isLoaded: Bool = true) -> Bool {
    self.words == words && snapshot?.isLoaded == isLoaded && snapshot?.problem == nil
  }
  func ends(with word: String) -> Bool { words.last == word && snapshot?.hasNewer == false }
}

extension Bench {
  func list(_ options: MessageListOptions = MessageListOptions()) async throws -> (
    MessageCollection, Mirror<MessageListSnapshot>
  ) {
    let list = await chat.messageCollection(in: "c", options)
    let mirror = await Mirror(list.updates)
    try await list.load()
    return (list, mirror)
  }
}

private func numbers(_ range: ClosedRange<Int>) -> [String] { range.map { "\($0)" } }

@Suite("A live list of messages", .serialized, .timeLimit(.minutes(1)))
struct MessageCollectionTests {
  @Test("shows the newest page, grows to the beginning, and follows what comes")
  func grows() async throws {
    let bench = try await Bench { adapter in for number in 1...70 { await adapter.write("\(number)") } }
    let (list, mirror) = try await bench.list()
    #expect(list.items.map(\.message.words) == numbers(41...70) && list.snapshot.hasOlder)
    #expect(try await list.loadOlder() == 30)
    #expect(try await list.loadOlder() == 10)
    #expect(try await list.loadOlder() == 0)
    await bench.adapter.write("71", push: true)
    try await until { await mirror.words == numbers(1...71) }
    #expect(await mirror.isTrue)
    #expect(!list.snapshot.hasOlder && !list.snapshot.hasNewer)
    #expect(await mirror.batches.allSatisfy { $0.moved.isEmpty })
  }

  @Test("keeps one identity from pending to sent, in the same place, after everything confirmed")
  func identity() async throws {
    let bench = try await Bench { adapter in for number in 1...3 { await adapter.write("\(number)") } }
    let (list, mirror) = try await bench.list()
    await bench.adapter.script([.hold])
    let pending = try await bench.chat.enqueue(.text("mine"), to: "c")
    try await until { await mirror.words == ["1", "2", "3", "mine"] }
    let id = MessageItemID.local(try #require(pending.localID))
    #expect(list.items.last?.id == id && list.items.last?.message.state == .pending)
    await bench.adapter.write("4", push: true)
    try await until { await mirror.words == ["1", "2", "3", "4", "mine"] }
    await bench.adapter.release()
    try await until { list.items.last?.message.state == .sent }
    #expect(list.items.last?.id == id)
    try await until { await mirror.has(list.snapshot) }
    // Never taken out and put in again.
    let touched = await mirror.batches.flatMap(\.removed)
    #expect(touched == [])
  }

  @Test("one hundred quick sends are each replaced in place")
  func hundred() async throws {
    let bench = try await Bench()
    let (list, mirror) = try await bench.list()
    for number in 1...100 { try await bench.chat.enqueue(.text("\(number)"), to: "c") }
    try await until { list.items.count == 100 && list.items.allSatisfy { $0.message.state == .sent } }
    #expect(list.items.map(\.message.words) == numbers(1...100))
    try await until { await mirror.snapshot == list.snapshot }
    #expect(await mirror.isTrue)
  }

  @Test("pages of any size in both directions give each message once, while new ones arrive", arguments: [1, 7, 50, 100])
  func pages(_ size: Int) async throws {
    let bench = try await Bench { adapter in for number in 1...120 { await adapter.write("\(number)") } }
    let (list, mirror) = try await bench.list(MessageListOptions(start: .message("m60"), pageSize: size))
    #expect(list.items.contains { $0.message.id == "m60" })
    for number in 121...150 {
      await bench.adapter.write("\(number)", push: true)
      if number % 2 == 0 { try await list.loadOlder() } else { try await list.loadNewer() }
    }
    while list.snapshot.hasOlder { try await list.loadOlder() }
    while list.snapshot.hasNewer { try await list.loadNewer() }
    try await until { await mirror.words == numbers(1...150) }
    #expect(await mirror.isTrue)
  }

  @Test("begins around a message or a time, and does not show what waits until it is at the end")
  func around() async throws {
    let bench = try await Bench { adapter in for number in 1...90 { await adapter.write("\(number)") } }
    let time = try #require(await bench.adapter.messages["c"]?[39].createdAt)
    for start in [MessageListOptions.Start.message("m40"), .time(time), .position(MessagePosition(sequence: 40))] {
      let (list, _) = try await bench.list(MessageListOptions(start: start, pageSize: 10))
      #expect(list.items.map(\.message.words) == numbers(35...44), "\(start)")
      #expect(list.snapshot.hasOlder && list.snapshot.hasNewer)
      await list.close()
    }
    let (list, mirror) = try await bench.list(MessageListOptions(start: .message("m80"), pageSize: 10))
    await bench.adapter.cutLink()
    await bench.heard.first { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) }
    try await bench.chat.enqueue(.text("unsent"), to: "c")
    #expect(!list.items.map(\.message.words).contains("unsent"))
    await bench.adapter.restoreLink()
    while list.snapshot.hasNewer { try await list.loadNewer() }
    try await until { await mirror.words == numbers(75...90) + ["unsent"] }
    try await until { list.items.last?.message.state == .sent }
    try await list.jump(to: .newest)
    try await until { await mirror.words == numbers(82...90) + ["unsent"] }
  }

  @Test("after hours offline shows what the server has, and every edit once")
  func offline() async throws {
    let bench = try await Bench(ScriptedAdapter(hasLog: true), options: ChatOptions(catchUpPage: 24)) { adapter in
      for number in 1...40 { await adapter.write("\(number)") }
    }
    let (list, mirror) = try await bench.list(MessageListOptions(pageSize: 40))
    try await until { await bench.adapter.changeTokens > 0 }
    await bench.adapter.cutLink()
    await bench.heard.first { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) }
    let before = list.items
    for number in 41...90 { await bench.adapter.write("\(number)") }
    for place in 0..<5 {
      var edited = before[place].message
      edited.content = .text("edited \(place)")
      edited.editedAt = Timestamp(milliseconds: 1_767_225_700_000)
      await bench.adapter.replace(edited)
    }
    var gone = before[10].message
    gone.content = .recalled(by: "bob", at: nil)
    await bench.adapter.replace(gone)
    await bench.adapter.restoreLink()
    try await until { await mirror.ends(with: "90") }
    #expect(list.items.count == 90 && list.items[10].message.isRecalled)
    #expect((0..<5).allSatisfy { list.items[$0].message.words == "edited \($0)" })
    let updated = await mirror.batches.dropFirst().flatMap(\.updated).filter { $0 < 40 }
    #expect(updated.sorted() == [0, 1, 2, 3, 4, 10])
    #expect(await mirror.isTrue)
  }

  @Test("goes on after the history was cleared")
  func cleared() async throws {
    let bench = try await Bench { adapter in for number in 1...5 { await adapter.write("\(number)") } }
    let (_, mirror) = try await bench.list()
    await bench.adapter.publish(.historyCleared("c", upTo: MessagePosition(sequence: 5)))
    try await until { await mirror.says([]) }
    _ = try await bench.chat.send(.text("6"), to: "c")
    await bench.adapter.write("7", push: true)
    try await until { await mirror.words == ["6", "7"] }
  }

  @Test("loads by itself once the link is there")
  func later() async throws {
    let bench = try await Bench(connects: false) { adapter in for number in 1...5 { await adapter.write("\(number)") } }
    try await bench.chat.open(for: "alice")
    let list = await bench.chat.messageCollection(in: "c")
    let mirror = await Mirror(list.updates)
    await #expect(throws: ChatError.self) { try await list.load() }
    try await until { await mirror.snapshot?.problem != nil }
    _ = try await bench.chat.connect(as: "alice", credential: .none)
    try await until { await mirror.says(numbers(1...5)) }
  }

  @Test("filters, and a step goes on until something passes")
  func filters() async throws {
    let bench = try await Bench { adapter in
      for number in 1...100 { await adapter.write("\(number)", by: number == 3 || number == 99 ? "carol" : "bob") }
    }
    let (list, mirror) = try await bench.list(MessageListOptions(pageSize: 10, filter: MessageFilter(senders: ["carol"])))
    #expect(list.items.map(\.message.words) == ["99"])
    #expect(try await list.loadOlder() == 1)
    try await until { await mirror.words == ["3", "99"] }
    await bench.adapter.write("101", by: "bob", push: true)
    await bench.adapter.write("102", by: "carol", push: true)
    try await until { await mirror.words == ["3", "99", "102"] }
  }

  @Test("receipts follow the marks of others, and a mark of one's own is none")
  func receipts() async throws {
    let bench = try await Bench()
    let (list, _) = try await bench.list()
    for number in 1...3 { _ = try await bench.chat.send(.text("\(number)"), to: "c") }
    await bench.adapter.publish(.deliveredChanged("c", "bob", MessagePosition(sequence: 3)))
    await bench.adapter.publish(.readChanged("c", "bob", MessagePosition(sequence: 2)))
    await bench.adapter.publish(.readChanged("c", "alice", MessagePosition(sequence: 3)))
    // Late and lower: it takes nothing back.
    await bench.adapter.publish(.readChanged("c", "bob", MessagePosition(sequence: 1)))
    try await until { list.items.map(\.readBy) == [["bob"], ["bob"], []] }
    #expect(list.items.map(\.deliveredTo) == [["bob"], ["bob"], ["bob"]])
  }

  @Test("typing ends by a message, and by time")
  func typing() async throws {
    let bench = try await Bench()
    let (_, mirror) = try await bench.list()
    await bench.adapter.publish(.typingStarted("c", "bob"))
    await bench.adapter.publish(.typingStarted("c", "carol"))
    try await until { await mirror.snapshot?.typing == ["bob", "carol"] }
    await bench.adapter.write("hi", by: "bob", push: true)
    try await until { await mirror.snapshot?.typing == ["carol"] }
    try await bench.run { try await until { await mirror.snapshot?.typing == [] } }
  }

  @Test("a slow subscriber gets one batch, not one for each message")
  func slow() async throws {
    let bench = try await Bench()
    let (list, _) = try await bench.list()
    var iterator = list.updates.makeAsyncIterator()
    _ = await iterator.next()
    for number in 1...50 { await bench.adapter.write("\(number)", push: true) }
    try await until { list.items.count == 50 }
    let batch = await iterator.next()
    #expect(batch?.diff.inserted == Array(0..<50) && batch?.items.count == 50)
  }
}

@Suite("A live list of channels", .serialized, .timeLimit(.minutes(1)))
struct ChannelCollectionTests {
  private func names(_ list: ChannelCollection) -> [String] { list.items.map(\.id.rawValue) }

  @Test("has the newest message first, pinned ones before, and follows")
  func follows() async throws {
    let bench = try await Bench { adapter in
      await adapter.write("1", in: "c")
      await adapter.write("2", in: "d")
      await adapter.addChannel("e")
    }
    let list = await bench.chat.channelCollection()
    let mirror = await Mirror(list.updates)
    try await until { names(list) == ["d", "c", "e"] }
    await bench.adapter.write("3", in: "c", push: true)
    try await until { names(list) == ["c", "d", "e"] }
    #expect(list.items.first?.lastMessage?.words == "3")
    await bench.adapter.write("4", in: "e", push: true)
    try await until { names(list) == ["e", "c", "d"] }
    await bench.adapter.publish(.channelLeft("c", .left))
    try await until { names(list) == ["e", "d"] }
    await bench.adapter.publish(.channelJoined(Channel(id: "f", kind: .direct, unread: .exact(3))))
    await bench.adapter.publish(.unreadChanged("e", .exact(2)))
    try await until { list.snapshot.unread == .exact(5) && list.snapshot.total == 3 }
    try await until { await mirror.snapshot == list.snapshot }
    #expect(await mirror.isTrue)
  }

  @Test("pins and hides on this device where the vendor does not")
  func pinned() async throws {
    let bench = try await Bench(ScriptedAdapter(emulated: [.channelPin, .channelHide])) { adapter in
      await adapter.write("1", in: "c")
      await adapter.write("2", in: "d")
    }
    let list = await bench.chat.channelCollection()
    try await until { names(list) == ["d", "c"] }
    try await bench.chat.setPinned(true, "c")
    try await until { names(list) == ["c", "d"] }
    try await bench.chat.setHidden(true, "d")
    try await until { names(list) == ["c"] }
  }

  @Test("filters and orders as asked", arguments: [
    (ChannelListOptions(order: .name), ["c", "a", "b"]), (ChannelListOptions(order: .created), ["c", "b", "a"]),
    (ChannelListOptions(order: .lastMessage), ["a", "b", "c"]), (ChannelListOptions(kinds: [.direct]), ["b"]),
    (ChannelListOptions(nameContains: "ALP"), ["c"]), (ChannelListOptions(unreadOnly: true), ["a"]),
    (ChannelListOptions(pageSize: 1), ["a"]),
  ])
  func options(_ options: ChannelListOptions, _ expected: [String]) {
    var order = ChannelOrder(options)
    func key(_ id: ChannelID, _ name: String, created: Int64, last: Int64?, unread: Int, _ kind: ChannelKind = .group)
      -> ChannelKey
    {
      ChannelKey(
        id: id, kind: kind, name: name, createdAt: Timestamp(milliseconds: created),
        lastMessageAt: last.map { Timestamp(milliseconds: $0) }, unread: .exact(unread), isPinned: false, isHidden: false,
        isSilenced: false)
    }
    order.replace(by: [
      key("a", "Beta", created: 1, last: 100, unread: 4), key("b", "gamma", created: 50, last: nil, unread: 0, .direct),
      key("c", "alpha", created: 60, last: 20, unread: 0),
    ])
    #expect(order.first(options.pageSize).map(\.rawValue) == expected)
  }

  @Test("one change after the other ends as sorting at once", arguments: 0..<6)
  func order(_ seed: Int) {
    var random = SplitMix(state: UInt64(seed))
    let options = ChannelListOptions(unreadOnly: seed % 2 == 1, pageSize: 1000)
    var order = ChannelOrder(options)
    var keys: [ChannelID: ChannelKey] = [:]
    for _ in 0..<2000 {
      let id = ChannelID("c\(Int.random(in: 0..<200, using: &random))")
      let key: ChannelKey? =
        Int.random(in: 0..<10, using: &random) == 0
        ? nil
        : ChannelKey(
          id: id, kind: .group, name: nil, createdAt: nil,
          lastMessageAt: Timestamp(milliseconds: Int64.random(in: 0..<50, using: &random)),
          unread: .exact(Int.random(in: 0..<2, using: &random)), isPinned: Bool.random(using: &random), isHidden: false,
          isSilenced: false)
      keys[id] = key
      order.update(id, to: key)
    }
    var whole = ChannelOrder(options)
    whole.replace(by: Array(keys.values))
    #expect(order.first(1000) == whole.first(1000) && order.count == whole.count)
  }
}

struct SplitMix: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

@Suite("The difference of two lists")
struct ListDiffTests {
  struct Element: Identifiable, Hashable {
    var id: Int
    var words: Int
  }

  @Test("applied to the first gives the second", arguments: 0..<60)
  func applied(_ seed: Int) {
    var random = SplitMix(state: UInt64(seed) &+ 99)
    let ids = Array(0..<30)
    func list() -> [Element] {
      var kept = ids.filter { _ in Int.random(in: 0..<3, using: &random) > 0 }
      if seed % 3 == 0 { kept.shuffle(using: &random) }
      return kept.map { Element(id: $0, words: Int.random(in: 0..<2, using: &random)) }
    }
    let (old, new) = (list(), list())
    let diff = ListDiff(from: old, to: new)
    var result = old
    diff.apply(to: &result, new: new)
    #expect(result == new)
    if seed % 3 != 0 { #expect(diff.moved.isEmpty) }
    #expect(ListDiff(from: new, to: new).isEmpty)
  }
}
