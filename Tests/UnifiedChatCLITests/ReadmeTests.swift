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
}
