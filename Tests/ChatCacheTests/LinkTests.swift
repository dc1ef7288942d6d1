import Foundation
import Testing
import UnifiedChat

@testable import ChatCache

@Suite("A cache is written to its own file alone")
struct LinkTests {
  @Test("a link in the place of the file is refused, and what it leads to is not touched")
  func link() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "links-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let victim = folder.appending(path: "victim").path
    let link = folder.appending(path: "cache.sqlite").path
    try Data("mine".utf8).write(to: URL(filePath: victim))
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: victim)
    let error = #expect(throws: ChatError.self) { try CacheFile(path: link).create() }
    if case .storage = error?.kind {} else { Issue.record("\(String(describing: error))") }
    #expect(FileManager.default.contents(atPath: victim) == Data("mine".utf8))
  }

  @Test("the file and its folder are the owner's alone")
  func modes() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "modes-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let path = folder.appending(path: "cache.sqlite").path
    try CacheFile(path: path).create()
    for (place, mode) in [(path, 0o600), (folder.path, 0o700)] {
      #expect(try FileManager.default.attributesOfItem(atPath: place)[.posixPermissions] as? Int == mode)
    }
  }
}
