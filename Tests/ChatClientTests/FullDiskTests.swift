import Testing
import UnifiedChat

@testable import ChatCache
@testable import ChatClient

@Suite("A disk that is full for a while", .serialized, .timeLimit(.minutes(1)))
struct FullDiskTests {
  @Test("shows what comes, and has all of it in the cache once there is room")
  func full() async throws {
    let bench = try await Bench()
    for number in 1...3 { await bench.adapter.write("\(number)", push: true) }
    await bench.heard.first { $0.isReceived("3") }
    let list = await bench.chat.messageCollection(in: "c")
    try await list.load()
    let cache = try #require(await bench.chat.cache)
    try cache.limitPages(to: 1)
    // More than free places of the file hold.
    let large = String(repeating: "large ", count: 50_000)
    await bench.adapter.write(large, push: true)
    await bench.heard.first { $0.isReceived(large) }
    #expect(list.items.count == 3)
    await #expect(throws: ChatError.self) { try await bench.chat.enqueue(.text(large), to: "c") }
    try cache.limitPages(to: 1_000_000)
    await bench.adapter.write("5", push: true)
    try await until { list.items.map(\.message.words) == ["1", "2", "3", large, "5"] }
    #expect(try cache.integrity() == "ok")
    try await bench.chat.enqueue(.text("6"), to: "c")
    try await until { list.items.count == 6 && list.items.last?.message.state == .sent }
  }
}
