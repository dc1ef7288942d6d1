import ChatJSON
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("What is written, and where")
struct OutputTests {
  /// A tool with an archive of four messages.
  private func prepared() throws -> Tool {
    let tool = try Tool()
    try tool.write(KillTests.records(channels: 2, messages: 2), to: "r.jsonl")
    #expect(try tool.run("archive", "import", "r.jsonl", "--to", "a.uchat").code == 0)
    return tool
  }

  static let outputs: [[String]] = [
    ["archive", "export", "a.uchat", "--to", "a.uchat"],
    ["seed", "--to", "a.uchat"],
    ["conformance", "--adapter", "ideal", "--case", "SEND-03", "--json", "a.uchat"],
    ["conformance", "--adapter", "ideal", "--case", "SEND-03", "--html", "a.uchat"],
    ["verify", "--archive", "a.uchat", "--against", "openim", "--combined", "a.uchat"],
  ]

  @Test("no result takes the place of an archive", arguments: outputs)
  func archiveStays(words: [String]) throws {
    let tool = try prepared()
    defer { tool.remove() }
    let outcome = try tool.run(words)
    #expect(outcome.code == 6 && outcome.errors.contains("a.uchat: is an archive"), "\(outcome.errors)")
    #expect(try tool.run("archive", "verify", "a.uchat").code == 0)
  }

  @Test("an archive is made where nothing is, and not in the place of a pipe or a link")
  func oddTargets() throws {
    let tool = try Tool()
    defer { tool.remove() }
    try tool.write(KillTests.records(channels: 1, messages: 1), to: "r.jsonl")
    try tool.write("", to: "empty")
    let pipe = tool.folder.appendingPathComponent("pipe").path
    #expect(mkfifo(pipe, 0o600) == 0)
    try FileManager.default.createSymbolicLink(
      atPath: tool.folder.appendingPathComponent("link").path, withDestinationPath: "empty")
    for name in ["pipe", "link"] {
      let outcome = try tool.run("archive", "import", "r.jsonl", "--to", name)
      #expect(outcome.code == 6 && outcome.errors.contains("\(name): is no regular file"), "\(outcome.errors)")
    }
    var information = stat()
    #expect(lstat(pipe, &information) == 0 && information.st_mode & S_IFMT == S_IFIFO)
  }

  @Test("attachments that are gone are told, counted and listed by an export")
  func missingFiles() throws {
    let tool = try Tool()
    defer { tool.remove() }
    #expect(try tool.run("seed", "--to", "s.jsonl").code == 0)
    #expect(try tool.run("archive", "import", "s.jsonl", "--to", "s.uchat").code == 0)
    try FileManager.default.removeItem(at: tool.folder.appendingPathComponent("s.uchat.files"))
    let outcome = try tool.run("archive", "export", "s.uchat", "--to", "x.jsonl")
    #expect(outcome.code == 1 && outcome.errors.contains("attachments are not there"), "\(outcome.errors)")
    let manifest = try Data(contentsOf: tool.folder.appendingPathComponent("x.jsonl.manifest.json"))
    let lost = try JSONValue(parsing: Array(manifest))["unreadable"]?.array ?? []
    #expect(lost.contains { $0["kind"]?.string == "file" })
    #expect(try tool.run("archive", "export", "s.uchat", "--to", "y.jsonl", "--no-files").code == 0)
  }

  @Test("records on standard output are records alone, and begin behind what stands there")
  func standardOutput() throws {
    let tool = try Tool()
    defer { tool.remove() }
    try tool.write("before\n", to: "log")
    let log = tool.folder.appendingPathComponent("log")
    let handle = try FileHandle(forWritingTo: log)
    try handle.seekToEnd()
    let process = try tool.start(["seed", "--to", "-", "--json"], output: handle)
    process.waitUntilExit()
    try handle.close()
    #expect(process.terminationStatus == 0)
    let lines = try String(contentsOf: log, encoding: .utf8).split(separator: "\n")
    #expect(lines.first == "before" && lines.count > 10)
    for line in lines.dropFirst() { #expect(try JSONValue(parsing: String(line))["type"] != nil) }
  }

  #if os(Linux)
    @Test(
      "a result that cannot be written is no success", arguments: [["capabilities", "--json"], ["--help"], ["--version"]])
    func full(words: [String]) throws {
      let tool = try Tool()
      defer { tool.remove() }
      let full = try #require(FileHandle(forWritingAtPath: "/dev/full"))
      let process = try tool.start(words, output: full)
      process.waitUntilExit()
      #expect(process.terminationStatus == 6)
    }

    @Test("errors and progress that cannot be shown change nothing", arguments: [["bogus"], ["archive", "import"]])
    func silent(words: [String]) throws {
      let tool = try prepared()
      defer { tool.remove() }
      let full = try #require(FileHandle(forWritingAtPath: "/dev/full"))
      let rest = words.count > 1 ? ["r.jsonl", "--to", "b.uchat"] : []
      let process = try tool.start(words + rest, errors: full)
      process.waitUntilExit()
      #expect(process.terminationReason == .exit && process.terminationStatus == (words.count > 1 ? 0 : 2))
    }
  #endif

  @Test("a case that is written and not counted yet runs when it is named")
  func heldCase() throws {
    let tool = try Tool()
    defer { tool.remove() }
    // Nothing to send to: the model has no sockets, and says so instead of "no such case".
    let outcome = try tool.run("conformance", "--adapter", "ideal", "--case", "FILE-02")
    #expect(outcome.code == 0 && outcome.output.contains("FILE"), "\(outcome.errors)")
  }

  @Test("a configuration may have a name of one character, and a folder is none", arguments: ["c", "."])
  func shortNames(name: String) throws {
    let tool = try Tool()
    defer { tool.remove() }
    if name == "c" { try tool.write(KillTests.configuration([("openim", "http://127.0.0.1:9")]), to: "c") }
    let outcome = try tool.run("config", "check", "--config", name)
    #expect(outcome.code == (name == "c" ? 0 : 3), "\(outcome.errors)")
    if name == "." { #expect(outcome.errors.contains("is a folder")) }
  }
}
