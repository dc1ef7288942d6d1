import Foundation
import Testing

@testable import ChatCache

@Suite("The schema of the cache")
struct SchemaTests {
  @Test("is in the program what it is in Schemas/cache.sql")
  func sameText() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let file = try String(contentsOf: root.appending(path: "Schemas/cache.sql"), encoding: .utf8)
    #expect(CacheSchema.sql == file, "copy Schemas/cache.sql into Sources/ChatCache/CacheSchema.swift")
  }
}
