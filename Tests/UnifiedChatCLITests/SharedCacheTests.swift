import ChatJSON
import Foundation
import Testing

@Suite("Two processes on one cache", .timeLimit(.minutes(3)))
struct SharedCacheProcessTests {
  @Test("send what each was given, once and in its order, and neither meets a locked database")
  func together() throws {
    let town = try ChatTown()
    // The first one makes the file.
    #expect(try town.chat("alice", ["begin"]).code == 0)
    let runs = try ["a", "b"].map { name in
      try town.tool.write((0..<60).map { "\(name)-\($0)\n" }.joined(), to: "lines-\(name)")
      let errors = town.tool.folder.appendingPathComponent("errors-\(name)")
      _ = FileManager.default.createFile(atPath: errors.path, contents: nil)
      let process = Process()
      process.executableURL = URL(fileURLWithPath: Tool.path)
      process.arguments = ["chat", "--config", "alice.json", "--as", "alice", "--with", "bob", "--json", "--history", "0"]
      process.currentDirectoryURL = town.tool.folder
      process.standardInput = try FileHandle(forReadingFrom: town.tool.folder.appendingPathComponent("lines-\(name)"))
      process.standardOutput = FileHandle.nullDevice
      process.standardError = try FileHandle(forWritingTo: errors)
      try process.run()
      return (process: process, errors: errors)
    }
    for run in runs {
      run.process.waitUntilExit()
      let errors = try String(contentsOf: run.errors, encoding: .utf8)
      #expect(run.process.terminationStatus == 0 && !errors.contains("locked"), "\(errors)")
    }
    #expect(try town.tool.run("archive", "pull", "--config", "bob.json", "--to", "all.uchat").code == 0)
    #expect(try town.tool.run("archive", "export", "all.uchat", "--to", "all.jsonl").code == 0)
    let sent = try String(contentsOf: town.tool.folder.appendingPathComponent("all.jsonl"), encoding: .utf8)
      .split(separator: "\n").compactMap { try? JSONValue(parsing: String($0)) }.compactMap { $0["content"]?["text"]?.string }
    #expect(sent.count == 121)
    for name in ["a", "b"] { #expect(sent.filter { $0.hasPrefix(name + "-") } == (0..<60).map { "\(name)-\($0)" }) }
    let verified = try town.tool.run("cache", "verify", "--config", "alice.json", "--as", "alice", "--online")
    #expect(verified.code == 0, "\(verified.output)\(verified.errors)")
  }
}
