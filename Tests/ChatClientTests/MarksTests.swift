import ChatCache
import Testing
import UnifiedChat

@testable import ChatClient

@Suite("Receipts, live and missed", .serialized, .timeLimit(.minutes(1)))
struct MarksTests {
  private func place(_ number: Int64) -> MessagePosition { MessagePosition(sequence: number) }

  private func member(_ user: UserID, read: Int64? = nil, delivered: Int64? = nil) -> Member {
    Member(
      user: User(id: user, name: "\(user)!"), state: .joined, readPosition: read.map(place),
      deliveredPosition: delivered.map(place))
  }

  /// What was told of marks, as words.
  private func marks(_ bench: Bench) async -> [String] {
    await bench.heard.events.compactMap { event in
      switch event.kind {
      case .readChanged(_, let user, let position): "\(user) read \(position.major)"
      case .deliveredChanged(_, let user, let position): "\(user) has \(position.major)"
      default: nil
      }
    }
  }

  /// Two own messages in a direct channel with bob, everything up to date.
  private func bench(_ adapter: ScriptedAdapter = ScriptedAdapter(), kind: ChannelKind = .direct) async throws -> Bench {
    let bench = try await Bench(adapter) { await $0.addChannel("c", kind: kind) }
    for words in ["one", "two"] { _ = try await bench.chat.send(.text(words), to: "c") }
    return bench
  }

  /// The link is lost, `meanwhile` happens, and everything is caught up with.
  private func away(_ bench: Bench, _ meanwhile: () async -> Void) async throws {
    await bench.adapter.cutLink()
    await bench.heard.first { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) }
    await meanwhile()
    let before = await bench.heard.events.count { $0.isUpToDate }
    await bench.adapter.restoreLink()
    try await until { await bench.heard.events.count { $0.isUpToDate } > before }
  }

  @Test("what others read while the link was lost is told once it is back, once, and the list shows it")
  func missed() async throws {
    let bench = try await bench()
    let (list, mirror) = try await bench.list()
    try await away(bench) {
      await bench.adapter.setMembers([member("alice"), member("bob", read: 1, delivered: 2)])
    }
    #expect(await marks(bench) == ["bob read 1", "bob has 2"])
    try await until { list.items.map(\.readBy) == [["bob"], []] && list.items.map(\.deliveredTo) == [["bob"], ["bob"]] }
    // The same again, lower, and live: nothing new.
    try await away(bench) { await bench.adapter.setMembers([member("alice"), member("bob", read: 1, delivered: 1)]) }
    await bench.adapter.publish(.readChanged("c", "bob", place(1)))
    await bench.adapter.publish(.readChanged("c", "bob", place(2)))
    await bench.heard.first { $0.kind == .readChanged("c", "bob", MessagePosition(sequence: 2)) }
    #expect(await marks(bench) == ["bob read 1", "bob has 2", "bob read 2"])
    #expect(await mirror.isTrue)
  }

  @Test("nobody is asked once everything is read, and nobody where nothing was written")
  func asksLittle() async throws {
    let bench = try await bench()
    await bench.adapter.write("in the other channel", in: "d", push: true)
    await bench.heard.first { $0.isReceived("in the other channel") }
    await bench.adapter.publish(.readChanged("c", "bob", place(2)))
    await bench.heard.first { $0.kind == .readChanged("c", "bob", MessagePosition(sequence: 2)) }
    await bench.adapter.clearJournal()
    try await away(bench) {}
    #expect(await bench.adapter.journal.filter { $0.hasPrefix("members") } == [])
    _ = try await bench.chat.send(.text("three"), to: "c")
    try await away(bench) {}
    #expect(await bench.adapter.journal.filter { $0.hasPrefix("members") } == ["members c"])
  }

  struct Vendor: Sendable, CustomTestStringConvertible {
    var absent: [Capability]
    var kind: ChannelKind
    var isAsked: Bool
    var testDescription: String { "\(kind) without \(absent)" }
  }

  @Test("are asked for where the vendor tells them", arguments: [
    Vendor(absent: [], kind: .group, isAsked: true), Vendor(absent: [.receiptGroupReaders], kind: .group, isAsked: false),
    Vendor(absent: [.receiptGroupReaders], kind: .direct, isAsked: true), Vendor(absent: [.memberList], kind: .direct, isAsked: false),
    Vendor(absent: [.receiptRead, .receiptDelivered], kind: .direct, isAsked: false),
    Vendor(absent: [.receiptRead], kind: .direct, isAsked: true), Vendor(absent: [], kind: .open, isAsked: false),
  ])
  func vendors(_ vendor: Vendor) async throws {
    let bench = try await bench(ScriptedAdapter(without: vendor.absent), kind: vendor.kind)
    try await away(bench) {}
    #expect(await bench.adapter.journal.contains("members c") == vendor.isAsked)
  }

  @Test("a list of members that is refused ends no catching up; of a large one every page counts")
  func refusedAndLarge() async throws {
    let bench = try await bench(kind: .group)
    await bench.adapter.refuseMembers(ChatError(.permission(), operation: .listMembers))
    try await away(bench) {}
    await bench.adapter.refuseMembers(nil)
    try await away(bench) {
      await bench.adapter.setMembers((0..<250).map { member(UserID("u\($0)"), read: $0 == 249 ? 2 : nil) })
    }
    #expect(await marks(bench) == ["u249 read 2"])
  }

  struct Refusal: Sendable, CustomTestStringConvertible {
    var kind: ChatError.Kind
    var ends: Bool
    var testDescription: String { kind.name }
  }

  @Test("that the server keeps to itself end no catching up; a lost link does", arguments: [
    Refusal(kind: .server, ends: false), Refusal(kind: .rateLimited(retryAfter: .seconds(5)), ends: false),
    Refusal(kind: .protocolViolation, ends: false), Refusal(kind: .authentication, ends: false),
    Refusal(kind: .notFound, ends: false), Refusal(kind: .network(.closed), ends: true), Refusal(kind: .timeout, ends: true),
  ])
  func refusal(_ refusal: Refusal) async throws {
    let bench = try await bench()
    await bench.adapter.cutLink()
    await bench.heard.first { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) }
    await bench.adapter.write("missed")
    await bench.adapter.refuseMembers(ChatError(refusal.kind, operation: .listMembers))
    let before = await bench.heard.events.count
    await bench.adapter.restoreLink()
    try await until { await bench.heard.events.dropFirst(before).contains { $0.isUpToDate || $0.kind == .syncChanged(.idle) } }
    #expect(await bench.heard.events.dropFirst(before).contains { $0.isUpToDate } != refusal.ends)
    // The messages are there in any case.
    #expect(await bench.heard.events.contains { $0.kind == .messagesBackfilled("c", count: 1) })
    #expect(await bench.chat.behind["c"] == nil)
  }

  @Test("the own mark of another device counts, and lowers the unread number")
  func ownMark() async throws {
    let bench = try await bench()
    await bench.adapter.publish(.unreadChanged("c", .exact(0)))
    await bench.adapter.write("unread", push: true)
    await bench.heard.first { $0.kind == .unreadChanged("c", .exact(1)) }
    await bench.adapter.setMembers([member("alice", read: 3), member("bob")])
    _ = try await bench.chat.members(of: "c", limit: 10, page: nil)
    #expect(try await bench.chat.cachedChannels().first { $0.id == "c" }?.unread == .exact(0))
    await bench.heard.first { $0.kind == .unreadChanged("c", .exact(0)) && $0.source == .backfill }
    #expect(await marks(bench) == ["alice read 3"])
  }

  @Test("a list that is read by the app tells the marks that it brings, and never one of a channel without own words")
  func listed() async throws {
    let bench = try await bench()
    await bench.adapter.setMembers([member("alice"), member("bob", read: 2)])
    await bench.adapter.setMembers([member("alice"), member("bob", read: 9)], of: "d")
    for _ in 1...2 {
      for channel in ["c", "d"] as [ChannelID] { _ = try await bench.chat.members(of: channel, limit: 10, page: nil) }
    }
    // What is told later is told behind it.
    await bench.adapter.write("end", push: true)
    await bench.heard.first { $0.isReceived("end") }
    #expect(await marks(bench) == ["bob read 2"])
  }
}
