import ChatCache
import Testing
import UnifiedChat

@testable import ChatClient

@Suite("Unread numbers, the same meaning for every vendor", .serialized, .timeLimit(.minutes(1)))
struct UnreadTests {
  private func unread(_ bench: Bench) async throws -> UnreadCount {
    try await bench.chat.cachedChannels().first { $0.id == "c" }?.unread ?? .unknown
  }

  private func told(_ bench: Bench, _ count: UnreadCount) async {
    await bench.heard.first { $0.kind == .unreadChanged("c", count) }
  }

  @Test("are unknown before anybody has said one, never nought")
  func unknown() async throws {
    let bench = try await Bench()
    await bench.adapter.write("1", push: true)
    await bench.heard.first { $0.isReceived("1") }
    #expect(try await unread(bench) == .unknown)
  }

  @Test("the order of a list without numbers and an event with one does not matter", arguments: [true, false])
  func order(_ eventFirst: Bool) async throws {
    let bench = try await Bench()
    if !eventFirst { _ = try await bench.chat.channels(ChannelQuery(), page: nil) }
    await bench.adapter.publish(.unreadChanged("c", .exact(2)))
    await told(bench, .exact(2))
    _ = try await bench.chat.channels(ChannelQuery(), page: nil)
    _ = try await bench.chat.channel("c")
    #expect(try await unread(bench) == .exact(2))
  }

  @Test("count from a mark that was set offline, while the server cannot be told of it", arguments: [true, false])
  func dueMark(_ tellsLate: Bool) async throws {
    // One that marks "now" only: it is not told while newer ones are unseen.
    let bench = try await Bench(ScriptedAdapter(emulated: [.unreadMarkAt])) { adapter in
      for number in 1...10 { await adapter.write("\(number)") }
    }
    _ = try await bench.chat.history(of: "c", .newest(20))
    await bench.adapter.publish(.unreadChanged("c", .exact(10)))
    await told(bench, .exact(10))
    await bench.adapter.cutLink()
    await bench.heard.first { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) }
    try await bench.chat.markRead("c", upTo: MessagePosition(sequence: 10))
    await told(bench, .exact(0))
    for number in 11...13 { await bench.adapter.write("\(number)") }
    let before = await bench.heard.events.count { $0.isUpToDate }
    await bench.adapter.restoreLink()
    if !tellsLate { await bench.adapter.publish(.unreadChanged("c", .exact(13))) }
    try await until { await bench.heard.events.count { $0.isUpToDate } > before }
    if tellsLate { await bench.adapter.publish(.unreadChanged("c", .exact(13))) }
    try await until { try await unread(bench) == .exact(3) }
    await bench.adapter.write("14", push: true)
    await told(bench, .exact(4))
    // Read to the end: the server can be told, and its number counts again.
    try await bench.chat.markRead("c", upTo: nil)
    #expect(await bench.adapter.journal.filter { $0.hasPrefix("markRead") } == ["markRead now"])
    await bench.adapter.publish(.unreadChanged("c", .exact(7)))
    await told(bench, .exact(7))
  }

  @Test("are the server's again after a mark that was lower than the one it knows")
  func lowerMark() async throws {
    let bench = try await Bench(ScriptedAdapter()) { adapter in
      for number in 1...10 { await adapter.write("\(number)") }
    }
    _ = try await bench.chat.history(of: "c", .newest(20))
    await bench.adapter.publish(.unreadChanged("c", .exact(10)))
    await told(bench, .exact(10))
    try await bench.chat.markRead("c", upTo: MessagePosition(sequence: 10))
    await told(bench, .exact(0))
    try await bench.chat.markRead("c", upTo: MessagePosition(sequence: 4))
    #expect(try await unread(bench) == .exact(0))
    await bench.adapter.publish(.unreadChanged("c", .exact(7)))
    await told(bench, .exact(7))
  }

  @Test("rise with what others write, and not with what oneself wrote elsewhere, notices and replies in threads")
  func counts() async throws {
    let bench = try await Bench(ScriptedAdapter(without: [.unreadSendClears]))
    await bench.adapter.publish(.unreadChanged("c", .exact(0)))
    await told(bench, .exact(0))
    await bench.adapter.write("by bob", by: "bob", push: true)
    await told(bench, .exact(1))
    var own = await bench.adapter.write("by me", by: "alice")
    await bench.adapter.publish(.messageReceived(own))
    own = await bench.adapter.write("notice", by: "bob")
    own.content = .system(SystemNotice(kind: "joined"))
    await bench.adapter.publish(.messageReceived(own))
    own = await bench.adapter.write("reply", by: "bob")
    own.threadParent = "m1"
    await bench.adapter.publish(.messageReceived(own))
    await bench.adapter.write("by carol", by: "carol", push: true)
    await told(bench, .exact(2))
    #expect(try await unread(bench) == .exact(2))
  }

  @Test("fall by one with the recall of what is unread, and by none with that of what is read")
  func recalled() async throws {
    let bench = try await Bench()
    await bench.adapter.publish(.unreadChanged("c", .exact(0)))
    await told(bench, .exact(0))
    let first = await bench.adapter.write("read", push: true)
    await told(bench, .exact(1))
    try await bench.chat.markRead("c", upTo: first.position)
    let second = await bench.adapter.write("unread", push: true)
    await bench.heard.first { $0.isReceived("unread") }
    #expect(try await unread(bench) == .exact(1))
    for var gone in [first, second] {
      gone.content = .recalled(by: "bob", at: nil)
      // Twice, as a push and its repetition.
      for _ in 1...2 { await bench.adapter.publish(.messageRecalled(gone)) }
    }
    try await until { try await unread(bench) == .exact(0) }
    await bench.adapter.write("end", push: true)
    await bench.heard.first { $0.isReceived("end") }
    #expect(try await unread(bench) == .exact(1))
  }

  @Test("a receipt of somebody else changes none; one's own from another device does")
  func receipts() async throws {
    let bench = try await Bench()
    await bench.adapter.publish(.unreadChanged("c", .exact(0)))
    for number in 1...3 { await bench.adapter.write("\(number)", push: true) }
    await told(bench, .exact(3))
    await bench.adapter.publish(.readChanged("c", "bob", MessagePosition(sequence: 3)))
    await bench.adapter.publish(.readChanged("c", "alice", MessagePosition(sequence: 2)))
    try await until { try await unread(bench) == .exact(1) }
    // A mark never moves down.
    await bench.adapter.publish(.readChanged("c", "alice", MessagePosition(sequence: 1)))
    await bench.adapter.write("4", push: true)
    await bench.heard.first { $0.isReceived("4") }
    #expect(try await unread(bench) == .exact(2))
  }

  @Test("marking puts a wrong number right, and none is ever below nought")
  func wrong() async throws {
    let bench = try await Bench()
    _ = try await bench.chat.history(of: "c", .newest(5))
    await bench.adapter.publish(.unreadChanged("c", .exact(7)))
    await told(bench, .exact(7))
    let last = await bench.adapter.write("1", push: true)
    await told(bench, .exact(8))
    try await bench.chat.markRead("c", upTo: last.position)
    #expect(try await unread(bench) == .exact(0))
    for number: Int in [-5, .min] {
      await bench.adapter.publish(.unreadChanged("c", .exact(number)))
      await bench.adapter.write("x", push: true)
    }
    try await until { (try await unread(bench)).number ?? -1 >= 0 }
  }

  @Test("what oneself writes, here or on another device, is after everything read where the vendor has it so", arguments: [true, false], [true, false])
  func ownWordsRead(_ clears: Bool, _ isHere: Bool) async throws {
    let bench = try await Bench(ScriptedAdapter(without: clears ? [] : [.unreadSendClears]))
    await bench.adapter.publish(.unreadChanged("c", .exact(0)))
    for number in 1...2 { await bench.adapter.write("\(number)", push: true) }
    await told(bench, .exact(2))
    if isHere {
      _ = try await bench.chat.send(.text("mine"), to: "c")
    } else {
      await bench.adapter.write("mine", by: "alice", push: true)
      await bench.heard.first { $0.isReceived("mine") }
    }
    if clears { await told(bench, .exact(0)) }
    #expect(try await unread(bench) == .exact(clears ? 0 : 2))
    await bench.adapter.write("after", push: true)
    await bench.heard.first { $0.isReceived("after") }
    #expect(try await unread(bench) == .exact(clears ? 1 : 3))
  }

  @Test("a reply of oneself in a thread clears nothing of the main list")
  func ownReply() async throws {
    let bench = try await Bench()
    await bench.adapter.publish(.unreadChanged("c", .exact(0)))
    let first = await bench.adapter.write("1", push: true)
    await told(bench, .exact(1))
    var draft = MessageDraft.text("reply")
    draft.threadParent = first.id
    _ = try await bench.chat.send(draft, to: "c")
    #expect(try await unread(bench) == .exact(1))
  }
}
