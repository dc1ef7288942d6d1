import Foundation
import Testing

@Suite("The README says what is so")
struct ReadmeTests {
  private static func text(_ name: String) throws -> String {
    try String(contentsOf: Tool.root.appendingPathComponent(name), encoding: .utf8)
  }

  @Test("its program is the one that is built, in both languages", arguments: ["README.md", "README.zh-CN.md"])
  func program(readme: String) throws {
    let program = try Self.text("Sources/HelloChat/HelloChat.swift")
    #expect(try Self.text(readme).contains("```swift\n\(program)```"))
    #expect(program.split(separator: "\n", omittingEmptySubsequences: false).count <= 26)
  }

  @Test("its capability table is the one that the program prints")
  func capabilities() throws {
    let tool = try Tool()
    defer { tool.remove() }
    let table = try tool.run("capabilities", "--markdown").output
    #expect(try Self.text("README.md").contains("<!-- capabilities -->\n\(table)<!-- /capabilities -->"))
  }

  @Test("every command that it shows exists", arguments: ["README.md", "README.zh-CN.md"])
  func commands(readme: String) throws {
    let tool = try Tool()
    defer { tool.remove() }
    let lines = try Self.text(readme).split(separator: "\n").filter { $0.hasPrefix("unifiedchat ") }
    #expect(lines.count >= 6)
    for line in lines {
      let words = line.split(separator: " ").dropFirst().prefix { !$0.hasPrefix("-") && !$0.contains(".") }
      let outcome = try tool.run(words.map(String.init) + ["--help"])
      #expect(outcome.code == 0, "\(line)")
    }
  }

  @Test("every test that the vocabulary names exists")
  func vocabulary() throws {
    let sources = try ["Tests", "Sources/ChatConformance"].map { try Self.swift(under: $0) }.joined()
    let rows = try Self.text("Sources/UnifiedChat/UnifiedChat.docc/Vocabulary.md").split(separator: "\n")
      .filter { $0.hasPrefix("| ") }.compactMap { $0.split(separator: "|").last { !$0.allSatisfy(\.isWhitespace) } }
    #expect(rows.count > 80)
    for row in rows {
      for quoted in row.matches(of: /"([^"]+)"/) {
        // An ellipsis stands for the rest of the name.
        let name = quoted.1.split(separator: "…").first?.trimmingCharacters(in: .whitespaces) ?? ""
        #expect(!name.isEmpty && sources.contains(name), "\(quoted.1)")
      }
      for suite in row.matches(of: /\b[A-Z][A-Za-z]+Tests\b/) {
        let isTarget = FileManager.default.fileExists(atPath: Tool.root.appendingPathComponent("Tests/\(suite.0)").path)
        #expect(isTarget || sources.contains(" \(suite.0) "), "\(suite.0)")
      }
      for label in row.matches(of: /\b[A-Z]{3,}-[0-9]{2}\b/) { #expect(sources.contains("\"\(label.0)\""), "\(label.0)") }
    }
  }

  private static func swift(under folder: String) throws -> String {
    let start = Tool.root.appendingPathComponent(folder)
    let files = FileManager.default.enumerator(at: start, includingPropertiesForKeys: nil)
    return try (files?.compactMap { $0 as? URL } ?? []).filter { $0.pathExtension == "swift" }
      .map { try String(contentsOf: $0, encoding: .utf8) }.joined()
  }
}
