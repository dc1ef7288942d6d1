import Foundation
import Synchronization
import Testing
import UnifiedChat

@testable import ChatCache
@testable import ChatClient

/// SQLITE_FULL.
private let full: Int32 = 13

extension LocalCache {
  /// Refuses every change from now on, or takes them again.
  fileprivate func refuseWrites(_ refuses: Bool) {
    guard refuses else { return inject(nil) }
    inject { sql in sql == "BEGIN" ? nil : full }
  }
}

extension Bench {
  fileprivate func lose() async throws {
    let lost = ChatEvent.Kind.connectionChanged(.reconnecting(attempt: 1))
    let before = await heard.events.count { $0.kind == lost }
    await adapter.cutLink()
    try await until { await heard.events.count { $0.kind == lost } > before }
  }

  fileprivate func restore() async throws {
    let before = await heard.events.count { $0.isUpToDate }
    await adapter.restoreLink()
    try await until { await heard.events.count { $0.isUpToDate } > before }
  }

  fileprivate func shown() async throws -> [String] {
    try await chat.history(of: "c", .newest(100)).messages.map(\.words)
  }
}

@Suite("Where a list is ahead of the pushes", .serialized, .timeLimit(.minutes(1)))
struct AheadTests {
  enum Way: CaseIterable, Sendable { case channel, channels, changedEvent, page, message }
  enum Loss: CaseIterable, Sendable { case link, session, kill }

  private final class Folder {
    let path = FileManager.default.temporaryDirectory.appending(path: "ahead-\(UUID())").path
    deinit { try? FileManager.default.removeItem(atPath: path) }
  }

  private func look(_ way: Way, _ chat: Chat, _ adapter: ScriptedAdapter) async throws {
    switch way {
    case .channel: _ = try await chat.channel("c")
    case .channels: _ = try await chat.channels(ChannelQuery(), page: nil)
    case .changedEvent:
      await adapter.publish(.channelChanged(try await adapter.channel("c")))
      try await until { try await chat.cachedChannels().contains { $0.lastMessage?.words == "3" } }
    case .page:
      // Not answered by what is live.
      let place = HistoryQuery.Anchor.position(MessagePosition(sequence: 3))
      _ = try await chat.history(of: "c", HistoryQuery(anchor: place, direction: .newer, limit: 1, isInclusive: true))
      _ = try await chat.message("m3", in: "c")
    case .message: _ = try await chat.message("m3", in: "c")
    }
  }

  @Test("what lies before is in the history, and told, when the pushes are lost", arguments: Way.allCases, Loss.allCases)
  func lost(_ way: Way, _ loss: Loss) async throws {
    let folder = Folder()
    let options = ChatOptions(cacheLocation: .directory(folder.path))
    let adapter = ScriptedAdapter(emulated: [.messageIdempotentSend])
    let bench = try await Bench(adapter, options: options)
    await adapter.write("1", push: true)
    await bench.heard.first { $0.isReceived("1") }
    // Their pushes are on the way, and get lost.
    for number in 2...3 { await adapter.write("\(number)") }
    try await look(way, bench.chat, adapter)
    var next = bench
    switch loss {
    case .link:
      try await bench.lose()
      try await bench.restore()
    case .session:
      await bench.chat.disconnect()
      _ = try await bench.chat.connect(as: "alice", credential: .none)
      try await until { await bench.heard.events.count { $0.isUpToDate } == 2 }
    case .kill:
      // The file as it is, without the farewell of a `disconnect`.
      let copy = Folder()
      try FileManager.default.copyItem(atPath: folder.path, toPath: copy.path)
      await bench.chat.disconnect()
      next = try await Bench(adapter, options: ChatOptions(cacheLocation: .directory(copy.path)))
    }
    #expect(try await next.shown() == ["1", "2", "3"])
    let backfilled = await next.heard.events.compactMap { if case .messagesBackfilled("c", let count) = $0.kind { count } else { nil } }
    #expect(backfilled.reduce(0, +) == 2)
    await adapter.clearJournal()
    // All of it is known now, and nothing is left in doubt.
    #expect(try await next.shown() == ["1", "2", "3"])
    #expect(await adapter.journal == [])
    await adapter.write("4", push: true)
    await next.heard.first { $0.isReceived("4") }
    try await next.lose()
    await adapter.write("5")
    try await next.restore()
    #expect(await adapter.journal.filter { $0.hasPrefix("history") } == ["history newer 4 100"])
  }

  @Test("nothing is asked again once the pushes came, in whatever order", arguments: [[2, 3], [3, 2]])
  func came(_ order: [Int]) async throws {
    let bench = try await Bench()
    await bench.adapter.write("1", push: true)
    await bench.heard.first { $0.isReceived("1") }
    let late = [await bench.adapter.write("2"), await bench.adapter.write("3")]
    _ = try await bench.chat.channel("c")
    for number in order { await bench.adapter.publish(.messageReceived(late[number - 2])) }
    await bench.heard.first { $0.isReceived("\(order[1])") || $0.kind == .messagesBackfilled("c", count: 1) }
    await bench.adapter.clearJournal()
    try await bench.lose()
    await bench.adapter.write("4")
    try await bench.restore()
    #expect(await bench.adapter.journal.filter { $0.hasPrefix("history") } == ["history newer 3 100"])
    #expect(try await bench.shown() == ["1", "2", "3", "4"])
  }
}

@Suite("What the disk refuses", .serialized, .timeLimit(.minutes(1)))
struct RefusedTests {
  @Test("is fetched when it takes things again, whatever a list brought meanwhile", arguments: [true, false])
  func listBetween(_ cutsBefore: Bool) async throws {
    let bench = try await Bench()
    for number in 1...3 { await bench.adapter.write("\(number)", push: true) }
    await bench.heard.first { $0.isReceived("3") }
    let cache = try #require(await bench.chat.cache)
    cache.refuseWrites(true)
    for number in 4...5 { await bench.adapter.write("\(number)", push: true) }
    await bench.heard.first { $0.isReceived("5") }
    cache.refuseWrites(false)
    // Stores the newest message alone.
    _ = try await bench.chat.channel("c")
    if cutsBefore {
      try await bench.lose()
      try await bench.restore()
    }
    try await until { await bench.chat.sync == nil }
    await bench.adapter.write("6", push: true)
    await bench.heard.first { $0.isReceived("6") }
    try await until { try await bench.shown() == ["1", "2", "3", "4", "5", "6"] }
    try await until { await bench.chat.sync == nil }
    // Each was told when it came.
    #expect(await bench.heard.lines == (1...6).map { "received \($0)" })
  }

  enum Moment: CaseIterable, Sendable { case cut, restored, cutAndRestored, disconnect }

  @Test("of a lost link is not forgotten", arguments: Moment.allCases)
  func loss(_ moment: Moment) async throws {
    let bench = try await Bench()
    await bench.adapter.write("1", push: true)
    await bench.heard.first { $0.isReceived("1") }
    let cache = try #require(await bench.chat.cache)
    if moment != .restored { cache.refuseWrites(true) }
    if moment == .disconnect { await bench.chat.disconnect() } else { try await bench.lose() }
    if moment == .cut || moment == .disconnect { cache.refuseWrites(false) } else { cache.refuseWrites(true) }
    for number in 2...4 { await bench.adapter.write("\(number)") }
    if moment == .disconnect {
      _ = try await bench.chat.connect(as: "alice", credential: .none)
    } else {
      await bench.adapter.restoreLink()
      await bench.heard.first { $0.kind == .missedEvents(in: nil) }
    }
    // Where it is refused as well, it ends, and is not begun again and again.
    try await until { await bench.chat.sync == nil }
    cache.refuseWrites(false)
    await bench.adapter.write("5", push: true)
    await bench.heard.first { $0.isReceived("5") }
    try await until { try await bench.shown() == ["1", "2", "3", "4", "5"] }
    try await until { await bench.chat.sync == nil }
    let told = await bench.heard.lines.filter { $0.hasPrefix("backfilled") }
    #expect(told == ["backfilled 3"])
  }

  @Test("while everything is caught up with begins nothing anew until it takes things again")
  func noLoop() async throws {
    let bench = try await Bench()
    await bench.adapter.write("1", push: true)
    await bench.heard.first { $0.isReceived("1") }
    let cache = try #require(await bench.chat.cache)
    try await bench.lose()
    await bench.adapter.holdChannels(true)
    await bench.adapter.clearJournal()
    await bench.adapter.restoreLink()
    try await until { await bench.adapter.isHolding }
    cache.refuseWrites(true)
    for number in 2...9 { await bench.adapter.write("\(number)", push: true) }
    await bench.heard.first { $0.isReceived("9") }
    await bench.adapter.holdChannels(false)
    try await until { await bench.chat.sync == nil }
    #expect(await bench.adapter.journal.count { $0 == "channels" } == 1)
    cache.refuseWrites(false)
    #expect(try await bench.shown().first == "1")
    try await until { try await bench.shown() == (1...9).map { "\($0)" } }
  }

  @Test("of an acknowledgement is asked again until it is taken, and the message goes once", arguments: [true, false])
  func acknowledgement(_ hasClientIDs: Bool) async throws {
    let absent: [Capability] = hasClientIDs ? [] : [.messageClientID, .messageIdempotentSend]
    let adapter = ScriptedAdapter(without: absent, emulated: hasClientIDs ? [.messageIdempotentSend] : [])
    let bench = try await Bench(adapter)
    await adapter.script([.hold])
    try await bench.chat.enqueue(.text("once"), to: "c")
    try await until { await adapter.isHolding }
    let cache = try #require(await bench.chat.cache)
    let refused = bench.clock.nextWakeUp
    cache.refuseWrites(true)
    await adapter.release()
    try await until { await bench.texts() == ["once"] && bench.clock.nextWakeUp != refused }
    cache.refuseWrites(false)
    try await bench.run { try await until { try await bench.chat.unsentCount() == 0 } }
    #expect(await bench.texts() == ["once"])
    #expect(await adapter.journal.filter { $0.hasPrefix("send") } == ["send once"])
    #expect(try await bench.chat.unconfirmedCount() == 0)
  }
}

@Suite("A disk that refuses now and then", .serialized, .timeLimit(.minutes(2)))
struct NowAndThenTests {
  /// Pushes of a channel come in order; what is under way when the link breaks is lost.
  private struct Wire {
    var queue: [Message] = []
    var isUp = true
    var restored = 0
    var written = 0
    var read: Set<MessageID> = []
  }

  private static let seeds = 0..<(Int(ProcessInfo.processInfo.environment["UNIFIEDCHAT_REFUSING_SEEDS"] ?? "") ?? 15)

  @Test("ends with everything in the cache, each told once and sent once", arguments: seeds)
  func random(_ seed: Int) async throws {
    var random = SplitMix(state: UInt64(seed))
    let bench = try await Bench(options: ChatOptions(catchUpPage: 3))
    _ = try await bench.chat.history(of: "c", .newest(5))
    let cache = try #require(await bench.chat.cache)
    cache.refuse(oneOf: 20, seed: UInt64(seed))
    let driver = Task { [clock = bench.clock] in
      while !Task.isCancelled {
        if clock.nextWakeUp != nil { clock.advance(by: .seconds(1)) }
        await Task.yield()
      }
    }
    defer { driver.cancel() }
    var wire = Wire()
    var own = 0
    for _ in 0..<80 { try await step(bench, &wire, &own, &random) }
    cache.inject(nil)
    if wire.isUp { await bench.adapter.cutLink() }
    await bench.adapter.restoreLink()
    try await settle(bench, restored: wire.restored + 1, seed)

    let server = await bench.adapter.messages["c"] ?? []
    let held = try await bench.chat.history(of: "c", .newest(500)).messages.map(\.words)
    let ranges = try cache.read { session throws(ChatError) in try session.ranges(of: "c") }
    #expect(held == server.map(\.words), "seed \(seed): \(ranges)")
    #expect(server.count { $0.sender == "alice" } == own, "seed \(seed)")
    let received = await bench.heard.events.compactMap { event -> MessageID? in
      if case .messageReceived(let message) = event.kind { message.id } else { nil }
    }
    #expect(Set(received).count == received.count, "seed \(seed)")
    let backfilled = await bench.heard.events.reduce(0) { sum, event in
      if case .messagesBackfilled(_, let count) = event.kind { sum + count } else { sum }
    }
    let lines = await bench.heard.lines
    // What the app has read from a page before its push was lost may be told no more.
    let told = received.count + backfilled
    #expect(told <= wire.written && told >= wire.written - wire.read.count, "seed \(seed): \(told) of \(wire.written); \(lines)")
    #expect(try cache.integrity() == "ok")
  }

  private func step(_ bench: Bench, _ wire: inout Wire, _ own: inout Int, _ random: inout SplitMix) async throws {
    switch Int.random(in: 0..<12, using: &random) {
    case 0...3:
      wire.written += 1
      let message = await bench.adapter.write("\(wire.written)")
      if wire.isUp { wire.queue.append(message) }
    case 4...6:
      for message in wire.queue.prefix(Int.random(in: 1...3, using: &random)) {
        await bench.adapter.publish(.messageReceived(message))
        wire.queue.removeFirst()
      }
    case 7:
      if wire.isUp { await bench.adapter.cutLink() } else { await bench.adapter.restoreLink() }
      wire.isUp.toggle()
      if wire.isUp { wire.restored += 1 }
      wire.queue = []
    case 8: await quietly { _ = try await bench.chat.channel("c") }
    case 9:
      let limit = Int.random(in: 1...6, using: &random)
      await quietly {
        wire.read.formUnion(try await bench.chat.history(of: "c", .newest(limit)).messages.compactMap(\.id))
      }
    case 10:
      let words = "own \(own)"
      await quietly {
        try await bench.chat.enqueue(.text(words), to: "c")
        own += 1
      }
    default: await quietly { _ = try await bench.chat.channels(ChannelQuery(), page: nil) }
    }
    for _ in 0..<Int.random(in: 0..<12, using: &random) { await Task.yield() }
  }

  private func quietly(_ call: () async throws -> Void) async {
    do { try await call() } catch { /* Refused: that is the point. */ }
  }

  /// Waits until nothing is under way.
  private func settle(_ bench: Bench, restored: Int, _ seed: Int) async throws {
    var rounds = 0
    while true {
      let isQuiet = await bench.chat.isQuiet
      let events = await bench.heard.events
      if isQuiet, events.count(where: { $0.kind == .missedEvents(in: nil) }) == restored,
        events.last(where: { if case .syncChanged = $0.kind { true } else { false } })?.isUpToDate == true
      {
        return
      }
      rounds += 1
      if rounds > 300_000 {
        let unrest = await bench.chat.unrest
        try #require(rounds == 0, "seed \(seed) hangs: \(unrest)")
      }
      await Task.yield()
    }
  }
}

extension LocalCache {
  /// Refuses one of so many changes, when it begins or when it ends.
  fileprivate func refuse(oneOf count: UInt64, seed: UInt64) {
    let dice = Dice(state: SplitMix(state: seed &+ 0x5EED))
    inject { sql in sql != "BEGIN" && dice.throw() % (2 * count) == 0 ? full : nil }
  }
}

/// Numbers of a seed for several tasks.
private final class Dice: Sendable {
  private let state: Mutex<SplitMix>
  init(state: SplitMix) { self.state = Mutex(state) }
  func `throw`() -> UInt64 { state.withLock { $0.next() } }
}

extension Chat {
  fileprivate var isQuiet: Bool {
    sync == nil && refreshes.isEmpty && workers.isEmpty && behind.isEmpty && isOnline && held.isEmpty
  }

  fileprivate var unrest: String {
    "online \(isOnline), sync \(sync != nil), refreshes \(refreshes.count), workers \(workers.count), behind \(behind), unstored \(unstored), due \(isLossDue), held \(held)"
  }
}
