import Foundation
import Testing
import UnifiedChat

@testable import ChatCache
@testable import ChatClient

@Suite("Where changes of messages stand is kept from process to process", .serialized, .timeLimit(.minutes(1)))
struct KeptChangesTests {
  private final class Folder {
    let path = FileManager.default.temporaryDirectory.appending(path: "changes-\(UUID())").path
    deinit { try? FileManager.default.removeItem(atPath: path) }
  }

  private let folder = Folder()
  private var options: ChatOptions { ChatOptions(cacheLocation: .directory(folder.path)) }

  /// An edit of the message that says `text`, with a cursor.
  private func edit(_ text: String, to new: String, _ cursor: Cursor?, _ bench: Bench) async throws {
    var message = try #require(await bench.adapter.messages["c"]?.first { $0.words == text })
    message.content = .text(new)
    // Of two edits the later one counts; without a cursor it is the last one.
    message.editedAt = Timestamp(milliseconds: 1_767_225_700_000 + (cursor.flatMap { Int64($0.rawValue) } ?? 100))
    bench.adapter.hub.publish(ChatEvent(.messageUpdated(message), cursor: cursor))
    await bench.heard.first { if case .messageUpdated(let told) = $0.kind { told.words == new } else { false } }
  }

  /// What the next process tells its adapter before it connects.
  private func next(_ bench: Bench, as user: UserID = "alice") async throws -> [Cursor] {
    await bench.chat.disconnect()
    let adapter = ScriptedAdapter(emulated: [.messageIdempotentSend])
    let later = try await Bench(adapter, options: options, connects: false)
    _ = try await later.chat.connect(as: user, credential: .none)
    let continued = await adapter.continued
    await later.chat.disconnect()
    return continued
  }

  private func prepared() async throws -> Bench {
    let bench = try await Bench(options: options)
    #expect(await bench.adapter.continued == [])
    await bench.adapter.write("one", push: true)
    await bench.heard.first { $0.isReceived("one") }
    return bench
  }

  @Test("the cursor of the last stored event, whatever events without one come behind it")
  func kept() async throws {
    let bench = try await prepared()
    try await edit("one", to: "two", "7", bench)
    try await edit("one", to: "three", "8", bench)
    try await edit("one", to: "four", nil, bench)
    #expect(try await next(bench) == ["8"])
    // It stays until another one comes, and is nobody else's.
    #expect(try await next(Bench(options: options, connects: false)) == ["8"])
    #expect(try await next(Bench(options: options, connects: false), as: "bob") == [])
  }

  @Test("of an event that changes nothing too, since it is known")
  func known() async throws {
    let bench = try await prepared()
    try await edit("one", to: "two", "7", bench)
    let message = try #require(try await bench.chat.history(of: "c", .newest(1)).messages.last)
    bench.adapter.hub.publish(ChatEvent(.messageUpdated(message), cursor: "9"))
    await bench.adapter.write("behind", push: true)
    await bench.heard.first { $0.isReceived("behind") }
    #expect(try await next(bench) == ["9"])
  }

  @Test("no cursor behind events that got lost: they are asked for again")
  func lost() async throws {
    let bench = try await prepared()
    try await edit("one", to: "two", "7", bench)
    bench.adapter.hub.publish(ChatEvent(.overflow(dropped: 3)))
    try await edit("one", to: "three", "8", bench)
    #expect(try await next(bench) == ["7"])
  }

  @Test("no cursor of an event that could not be stored, nor of any behind it")
  func fullDisk() async throws {
    let bench = try await prepared()
    try await edit("one", to: "two", "7", bench)
    let cache = try #require(await bench.chat.cache)
    try cache.limitPages(to: 1)
    let large = String(repeating: "large ", count: 50_000)
    try await edit("one", to: large, "8", bench)
    try cache.limitPages(to: 1_000_000)
    try await edit("one", to: "three", "9", bench)
    #expect(try await next(bench) == ["7"])
  }
}
