import Foundation
import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("Archives, ledgers and attachments are written to their own files alone")
struct LinkTests {
  @Test("a link in the place of a file is refused, and what it leads to is not touched")
  func links() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "links-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let victim = folder.appending(path: "victim").path
    let link = folder.appending(path: "link").path
    try Data("mine".utf8).write(to: URL(filePath: victim))
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: victim)
    let openings: [() throws -> Void] = [
      { _ = try FileWriter(link, operation: .writeDestination) },
      { try PrivateFile.create(link, operation: .writeDestination) },
      { _ = try Database(path: link, mode: .readWrite, operation: .writeDestination) },
      { _ = try ProcessLock(link) },
    ]
    for open in openings { #expect(throws: ChatError.self) { try open() } }
    #expect(FileManager.default.contents(atPath: victim) == Data("mine".utf8))
  }
}
