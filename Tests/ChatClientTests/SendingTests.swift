import ChatCache
import Foundation
import Synchronization
import Testing
import UnifiedChat

@testable import ChatClient

/// A connected client over a scripted service with a channel `c`.
struct Bench {
  let adapter: ScriptedAdapter
  let chat: Chat
  let clock = ManualClock()
  let heard: Recorder

  init(
    _ adapter: ScriptedAdapter = ScriptedAdapter(emulated: [.messageIdempotentSend]), options: ChatOptions = ChatOptions(),
    connects: Bool = true, before: (ScriptedAdapter) async -> Void = { _ in }
  ) async throws {
    self.adapter = adapter
    var options = options
    options.seed = 1
    chat = Chat(adapter: adapter, clock: clock, options: options)
    heard = await Recorder(chat.events())
    await adapter.addChannel("c")
    await adapter.addChannel("d")
    await before(adapter)
    guard connects else { return }
    _ = try await chat.connect(as: "alice", credential: .none)
    await heard.first { $0.isUpToDate }
    await adapter.clearJournal()
  }

  /// Lets the clock run for those who wait for it, until `done`.
  func run<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
    let clock = clock
    let driver = Task {
      while !Task.isCancelled {
        if clock.nextWakeUp != nil { clock.advance(by: .seconds(1)) }
        await Task.yield()
      }
    }
    defer { driver.cancel() }
    return try await work()
  }

  func texts() async -> [String] { await adapter.messages["c"]?.map(\.words) ?? [] }
}

private let refused = ChatError(.permission(), operation: .send)
private let busy = ChatError(.rateLimited(retryAfter: .seconds(7)), operation: .send)
private let failing = ChatError(.server, operation: .send, retry: .now)

@Suite("Sending", .serialized, .timeLimit(.minutes(1)))
struct SendingTests {
  @Test("an answer that is lost after the commit leaves one message")
  func lostAnswer() async throws {
    let bench = try await Bench()
    await bench.adapter.script([.loseAnswer])
    let sent = try await bench.run { try await bench.chat.send(.text("once"), to: "c") }
    #expect(sent.id != nil && sent.state == .sent)
    #expect(await bench.texts() == ["once"])
    // Looked before any second send.
    #expect(await bench.adapter.journal.map { $0.prefix(7) } == ["send on", "history"])
    try await until { await bench.heard.lines == ["pending once", "updated once", "sent once"] }
  }

  @Test("a request that is lost before the commit is sent again, after looking")
  func lostRequest() async throws {
    let bench = try await Bench()
    await bench.adapter.write("earlier", push: true)
    await bench.heard.first { $0.isReceived("earlier") }
    await bench.adapter.script([.loseRequest])
    let sent = try await bench.run { try await bench.chat.send(.text("once"), to: "c") }
    #expect(await bench.texts() == ["earlier", "once"])
    #expect(await bench.adapter.journal == ["send once", "history newer 1 100", "send once"])
    #expect(sent.localID?.rawValue == sent.clientMessageID?.rawValue)
  }

  @Test("where the server keeps one copy itself, the same id is sent again without looking")
  func idempotent() async throws {
    let bench = try await Bench(ScriptedAdapter())
    await bench.adapter.script([.loseRequest])
    _ = try await bench.run { try await bench.chat.send(.text("once"), to: "c") }
    #expect(await bench.adapter.journal == ["send once", "send once"])
  }

  @Test("a second try whose first one was stored says nothing of what came behind it", arguments: [true, false])
  func storedEarlier(_ isRead: Bool) async throws {
    let bench = try await Bench(ScriptedAdapter())
    if isRead { _ = try await bench.chat.history(of: "c", .newest(5)) }
    await bench.adapter.script([.loseAnswer])
    try await bench.chat.enqueue(.text("own"), to: "c")
    try await until { await bench.texts() == ["own"] && bench.clock.nextWakeUp != nil }
    await bench.adapter.cutLink()
    await bench.heard.first { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) }
    for number in 1...3 { await bench.adapter.write("\(number)") }
    let before = await bench.heard.events.count { $0.isUpToDate }
    await bench.adapter.restoreLink()
    try await bench.run {
      try await until { try await bench.chat.unsentCount() == 0 }
      try await until { await bench.heard.events.count { $0.isUpToDate } > before }
    }
    #expect(try await bench.chat.history(of: "c", .newest(10)).messages.map(\.words) == ["own", "1", "2", "3"])
    #expect(await bench.texts() == ["own", "1", "2", "3"])
  }

  @Test("where nothing can be looked up, the outcome stays unknown and nothing is sent twice")
  func parked() async throws {
    let bench = try await Bench(ScriptedAdapter(without: [.messageClientID, .messageIdempotentSend]))
    await bench.adapter.script([.loseAnswer])
    await #expect(throws: ChatError.self) {
      try await bench.run { try await bench.chat.send(.text("perhaps"), to: "c") }
    }
    #expect(try await bench.chat.waitingMessages(in: "c").map(\.state) == [.unknown])
    let next = try await bench.chat.send(.text("next"), to: "c")
    #expect(next.state == .sent)
    #expect(await bench.adapter.journal == ["send perhaps", "send next"])
  }

  @Test("a final refusal fails one message and frees the queue")
  func finalRefusal() async throws {
    let bench = try await Bench()
    await bench.adapter.script([.commit, .commit, .refuse(refused)])
    for number in 1...6 { try await bench.chat.enqueue(.text("\(number)"), to: "c") }
    await bench.heard.first { if case .messageSent(let message) = $0.kind { message.words == "6" } else { false } }
    #expect(await bench.texts() == ["1", "2", "4", "5", "6"])
    #expect(try await bench.chat.waitingMessages(in: "c").map(\.state) == [.failed(refused)])
  }

  @Test("an error that passes holds the channel's queue and no other")
  func passingError() async throws {
    let bench = try await Bench()
    await bench.adapter.script([.commit, .refuse(busy), .refuse(failing)])
    for number in 1...5 { try await bench.chat.enqueue(.text("\(number)"), to: "c") }
    // The clock stands still: the other channel does not wait for this one.
    for number in 1...5 { _ = try await bench.chat.send(.text("d\(number)"), to: "d") }
    try await until { await bench.adapter.journal.contains("send 2") }
    #expect(await bench.texts() == ["1"])
    _ = try await bench.run { try await bench.chat.send(.text("6"), to: "c") }
    #expect(await bench.texts() == ["1", "2", "3", "4", "5", "6"])
    #expect(await bench.adapter.messages["d"]?.count == 5)
  }

  @Test("waits as long as the server asks")
  func retryAfter() async throws {
    let bench = try await Bench()
    await bench.adapter.script([.refuse(busy)])
    let start = bench.clock.now
    _ = try await bench.run { try await bench.chat.send(.text("x"), to: "c") }
    #expect(bench.clock.now - start >= .seconds(7) && bench.clock.now - start <= .seconds(9))
  }

  @Test("an echo before the answer, twice, is one change from pending to sent")
  func echoFirst() async throws {
    let bench = try await Bench()
    await bench.adapter.script([.echoFirst])
    let sent = try await bench.chat.send(.text("hi"), to: "c")
    await bench.adapter.release()
    _ = try await bench.chat.send(.text("after"), to: "c")
    try await until { await bench.heard.lines.count >= 4 }
    #expect(await bench.heard.lines == ["pending hi", "sent hi", "pending after", "sent after"])
    #expect(sent.localID != nil)
    #expect(try await bench.chat.history(of: "c", .newest(5)).messages.map(\.words) == ["hi", "after"])
  }

  @Test("an echo without an answer settles the message and stops the second try")
  func echoOnly() async throws {
    let bench = try await Bench()
    await bench.adapter.script([.echoOnly])
    let sent = try await bench.run { try await bench.chat.send(.text("hi"), to: "c") }
    #expect(sent.id == "m1")
    _ = try await bench.run { try await bench.chat.send(.text("after"), to: "c") }
    #expect(await bench.texts() == ["hi", "after"])
  }

  @Test("a second try that is refused as a duplicate means sent")
  func duplicateRefusal() async throws {
    let bench = try await Bench(ScriptedAdapter())
    await bench.adapter.script([.loseAnswer, .refuse(ChatError(.conflict, operation: .send))])
    let sent = try await bench.run { try await bench.chat.send(.text("hi"), to: "c") }
    #expect(sent.id == "m1")
    #expect(await bench.texts() == ["hi"])
  }

  @Test("a resend keeps the identity and takes the last place; five presses are one")
  func resend() async throws {
    let bench = try await Bench()
    await bench.adapter.script([.commit, .refuse(refused)])
    _ = try await bench.chat.send(.text("1"), to: "c")
    let second = try await bench.chat.enqueue(.text("2"), to: "c")
    _ = try await bench.chat.send(.text("3"), to: "c")
    let localID = try #require(second.localID)
    for _ in 1...5 { try await bench.chat.resend(localID) }
    await bench.heard.first { if case .messageSent(let message) = $0.kind { message.words == "2" } else { false } }
    #expect(await bench.texts() == ["1", "3", "2"])
    #expect(try await bench.chat.history(of: "c", .newest(5)).messages.last?.localID == localID)
    #expect(try await bench.chat.waitingMessages(in: "c") == [])
  }

  @Test("what is written offline is pending at once and goes out in order")
  func offline() async throws {
    let bench = try await Bench()
    await bench.adapter.cutLink()
    await bench.heard.first { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) }
    for number in 1...20 { try await bench.chat.enqueue(.text("\(number)"), to: number % 2 == 0 ? "c" : "d") }
    #expect(try await bench.chat.waitingMessages(in: "c").map(\.state) == Array(repeating: .pending, count: 10))
    await bench.adapter.restoreLink()
    _ = try await bench.run { try await bench.chat.send(.text("last"), to: "c") }
    _ = try await bench.run { try await bench.chat.send(.text("last"), to: "d") }
    #expect(await bench.texts() == (1...10).map { "\($0 * 2)" } + ["last"])
    #expect(await bench.adapter.messages["d"]?.map(\.words) == (1...10).map { "\($0 * 2 - 1)" } + ["last"])
  }

  @Test("cancelling works before a message has left and not after")
  func cancel() async throws {
    let bench = try await Bench()
    await bench.adapter.script([.hold])
    let flying = try await bench.chat.enqueue(.text("flying"), to: "c")
    let waiting = try await bench.chat.enqueue(.text("waiting"), to: "c")
    try await until { await !bench.adapter.journal.isEmpty }
    #expect(try await bench.chat.cancel(try #require(waiting.localID)))
    #expect(try await !bench.chat.cancel(try #require(flying.localID)))
    await bench.adapter.release()
    _ = try await bench.chat.send(.text("end"), to: "c")
    #expect(await bench.texts() == ["flying", "end"])
    try await until { await bench.heard.lines.contains("cancelled waiting") }
  }

  @Test("an edit of what has not left changes what is sent; a recall takes it back")
  func editWaiting() async throws {
    let bench = try await Bench()
    await bench.adapter.cutLink()
    await bench.heard.first { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) }
    let first = try await bench.chat.enqueue(.text("draft"), to: "c")
    let second = try await bench.chat.enqueue(.text("nonsense"), to: "c")
    _ = try await bench.chat.edit(first, to: .text("better"))
    _ = try await bench.chat.edit(first, to: .text("best"))
    _ = try await bench.chat.recall(second)
    await bench.adapter.restoreLink()
    _ = try await bench.run { try await bench.chat.send(.text("end"), to: "c") }
    #expect(await bench.texts() == ["best", "end"])
  }

  @Test("files are uploaded first, and once")
  func files() async throws {
    let bench = try await Bench()
    await bench.adapter.script([.loseRequest])
    let draft = MessageDraft(.file(Attachment(name: "a.txt", source: .bytes([1, 2, 3]))))
    let sent = try await bench.run { try await bench.chat.send(draft, to: "c") }
    #expect(sent.content.attachment?.url == "https://files/a.txt")
    #expect(await bench.adapter.journal.count { $0.hasPrefix("upload") } == 1)
  }

  @Test("a message that waited too long fails and is not sent")
  func expired() async throws {
    let bench = try await Bench()
    await bench.adapter.cutLink()
    await bench.heard.first { $0.kind == .connectionChanged(.reconnecting(attempt: 1)) }
    try await bench.chat.enqueue(.text("old"), to: "c")
    bench.clock.advance(by: .seconds(4 * 86_400))
    await bench.adapter.restoreLink()
    await bench.heard.first { if case .messageFailed = $0.kind { true } else { false } }
    #expect(await bench.texts() == [])
  }

  struct Refused: CustomTestStringConvertible, Sendable {
    var draft: MessageDraft
    var kind: ChatError.Kind
    var testDescription: String { "\(draft.content.kindName) \(kind.name)" }
  }

  @Test(
    "refuses what says nothing or what the vendor has not, before anything is stored",
    arguments: [
      Refused(draft: .text(""), kind: .invalidArgument(field: "text")),
      Refused(draft: MessageDraft(.file(Attachment(name: "a"))), kind: .invalidArgument(field: "attachment")),
      Refused(draft: MessageDraft(.location(Location(latitude: .nan, longitude: 0))), kind: .invalidArgument(field: "latitude")),
      Refused(draft: MessageDraft(.custom(JSONText(unchecked: "{"))), kind: .invalidArgument(field: "content")),
      Refused(draft: MessageDraft(.recalled(by: nil, at: nil)), kind: .invalidArgument(field: "content")),
      Refused(draft: MessageDraft(.text("x"), threadParent: "m1"), kind: .unsupported(.messageThread)),
      Refused(draft: MessageDraft(.merged(title: "t", messages: [])), kind: .invalidArgument(field: "messages")),
    ])
  func arguments(_ refused: Refused) async throws {
    let bench = try await Bench(ScriptedAdapter(without: [.messageThread]))
    let error = await #expect(throws: ChatError.self) { try await bench.chat.send(refused.draft, to: "c") }
    #expect(error?.kind == refused.kind)
    #expect(await bench.heard.lines == [])
    #expect(await bench.adapter.journal == [])
  }

  @Test("white space and an empty text beside a payload are sent")
  func whiteSpace() async throws {
    let bench = try await Bench()
    for text in [" ", "\n", "\u{200B}"] { _ = try await bench.chat.send(.text(text), to: "c") }
    _ = try await bench.chat.send(MessageDraft(.text(""), customData: JSONText(unchecked: "{\"a\":1}")), to: "c")
    #expect(await bench.texts() == [" ", "\n", "\u{200B}", ""])
  }

  @Test("the same client id on purpose is one message with the first content")
  func sameClientID() async throws {
    let bench = try await Bench()
    let first = OutgoingMessage(channel: "c", localID: "l1", clientMessageID: "k", draft: .text("first"))
    let second = OutgoingMessage(channel: "c", localID: "l2", clientMessageID: "k", draft: .text("second"))
    let one = try await bench.chat.send(first)
    let two = try await bench.chat.send(second)
    #expect(one.id == two.id)
    #expect(await bench.texts() == ["first"])
  }

  @Test("a cancelled task stops waiting, not the send")
  func cancelledTask() async throws {
    let bench = try await Bench()
    await bench.adapter.script([.hold])
    let sending = Task { try await bench.chat.send(.text("tracked"), to: "c") }
    try await until { await !bench.adapter.journal.isEmpty }
    sending.cancel()
    let error = await #expect(throws: ChatError.self) { try await sending.value }
    #expect(error?.kind == .cancelled)
    await bench.adapter.release()
    await bench.heard.first { if case .messageSent = $0.kind { true } else { false } }
    #expect(await bench.texts() == ["tracked"])
  }

  @Test("one hundred quick sends in ten channels keep their order")
  func hundred() async throws {
    let bench = try await Bench()
    for number in 0..<100 { try await bench.chat.enqueue(.text("\(number)"), to: ChannelID("x\(number % 10)")) }
    for channel in 0..<10 { _ = try await bench.chat.send(.text("end"), to: ChannelID("x\(channel)")) }
    for channel in 0..<10 {
      let texts = await bench.adapter.messages[ChannelID("x\(channel)")]?.map(\.words)
      #expect(texts == (0..<10).map { "\($0 * 10 + channel)" } + ["end"])
    }
  }
}

private final class Lines: Sendable {
  private let lines = Mutex<[String]>([])
  func add(_ line: String) { lines.withLock { $0.append(line) } }
  var all: [String] { lines.withLock { $0 } }
}

@Suite("Two processes on one cache", .serialized, .timeLimit(.minutes(1)))
struct SharedCacheTests {
  @Test("send what either has written once, and both learn the outcome")
  func shared() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "shared-\(UUID())").path
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let problems = Lines()
    let options = ChatOptions(
      cacheLocation: .directory(folder),
      log: { level, line in
        if level == .error { problems.add(line) }
      })
    let adapter = ScriptedAdapter(emulated: [.messageIdempotentSend])
    let app = try await Bench(adapter, options: options)
    let other = Chat(adapter: adapter, clock: app.clock, options: options)
    _ = try await other.connect(as: "alice", credential: .none)
    await adapter.script([.hold])
    let first = Task { try await app.chat.send(.text("of the app"), to: "c") }
    try await until { await adapter.journal.contains("send of the app") }
    // The row is on its way in one process; the other one may neither send it nor overtake it.
    let second = Task { try await other.send(.text("of the extension"), to: "c") }
    let elsewhere = Task { try await other.send(.text("in another channel"), to: "d") }
    try await until { try await other.waitingMessages(in: "d").count == 1 }
    for _ in 1...5 { app.clock.advance(by: .seconds(1)) }
    for _ in 1...200 { await Task.yield() }
    #expect(await app.texts() == [])
    await adapter.release()
    let sent = try await app.run {
      // Waited for where the test's end is seen; then the values are there.
      try await until { await bench(adapter, has: 3) }
      try await until { try await app.chat.unsentCount() == 0 }
      return [try await first.value, try await second.value, try await elsewhere.value]
    }
    #expect(sent.allSatisfy { $0.state == .sent })
    #expect(problems.all == [])
    #expect(await app.texts() == ["of the app", "of the extension"])
    #expect(await adapter.messages["d"]?.map(\.words) == ["in another channel"])
    #expect(try await other.unsentCount() == 0)
  }

  private func bench(_ adapter: ScriptedAdapter, has count: Int) async -> Bool {
    await adapter.messages.values.reduce(0) { $0 + $1.count } == count
  }
}
