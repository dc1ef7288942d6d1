import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("Every file that a command writes is its owner's alone", .serialized)
struct FileModeTests {
  /// Each writes into an empty folder that has `r.jsonl`; `#` parts commands.
  static let commands: [String] = [
    "config init",
    "seed --to s.jsonl --json",
    "archive import r.jsonl --to a.uchat # archive export a.uchat --to x.jsonl # archive redact a.uchat --to b.uchat --mask-bodies",
    "seed --to s.jsonl # archive import s.jsonl --to files.uchat",
    "conformance --adapter ideal --case SEND-03 --json c.json --junit c.xml --html c.html",
  ]

  @Test("whatever the mask of the process says", arguments: commands, ["000", "022"])
  func alone(_ commands: String, _ mask: String) throws {
    let tool = try Tool()
    defer { tool.remove() }
    try tool.write(KillTests.records(channels: 1, messages: 3), to: "r.jsonl")
    for command in commands.split(separator: "#") {
      try run(mask, command.split(separator: " ").map(String.init), in: tool)
    }
    try expectPrivate(tool, except: ["r.jsonl"])
  }

  @Test("a whole move, with ledger, audit, reports, cache and the emulators' states", arguments: ["000", "022"])
  func move(_ mask: String) throws {
    let tool = try Tool()
    defer { tool.remove() }
    try tool.write(KillTests.records(channels: 1, messages: 3), to: "r.jsonl")
    try tool.write("emulated-secret\n", to: "secret")
    let output = Pipe()
    let emulator = try tool.start(
      mask: mask, ["emulate", "--vendor", "openim", "--limits", "off", "--app", "kill-app", "--data", "state", "--user", "alice:t", "--user", "bob:b"],
      output: output)
    var line = ""
    while !line.contains("\n"), let byte = try output.fileHandleForReading.read(upToCount: 1), !byte.isEmpty {
      line += String(decoding: byte, as: UTF8.self)
    }
    let url = line.split(separator: " ").last.map { $0.trimmingCharacters(in: .newlines) } ?? ""
    let configuration = KillTests.configuration([("openim", url)])
      .replacingOccurrences(of: #""credentials": {"#, with: #""cache": {"directory": "cache"}, "credentials": {"token": {"file": "token"}, "#)
    try tool.write("t", to: "token")
    try tool.write(configuration, to: "unifiedchat.json")
    try run(mask, ["archive", "import", "r.jsonl", "--to", "a.uchat"], in: tool)
    let reports = ["r.json", "r.md", "r.html"].flatMap { ["--report", $0] }
    try run(mask, ["migrate", "run", "--from", "a.uchat", "--to", "openim", "--audit", "audit.jsonl"] + reports, in: tool)
    try run(mask, ["verify", "--archive", "a.uchat", "--against", "openim", "--combined", "signs"], in: tool)
    try run(mask, ["archive", "pull", "--to", "again.uchat"], in: tool)
    try run(mask, ["chat", "--as", "alice", "--with", "bob"], in: tool)
    // The shell is gone: this is the emulator, which saves its state when it ends.
    emulator.terminate()
    emulator.waitUntilExit()
    try expectPrivate(tool, except: ["r.jsonl", "secret", "token", "unifiedchat.json"])
    let names = try FileManager.default.subpathsOfDirectory(atPath: tool.folder.path)
    for name in ["a.uchat.openim.ledger", "audit.jsonl", "r.html", "signs", "state/openim.state"] {
      #expect(names.contains(name), "\(name)")
    }
    #expect(names.contains { $0.hasPrefix("cache/") })
  }

  static let outputs: [[String]] = [
    ["config", "init", "--config", "link"], ["seed", "--to", "link"], ["archive", "import", "r.jsonl", "--to", "link"],
    ["archive", "export", "a.uchat", "--to", "link"], ["archive", "redact", "a.uchat", "--to", "link", "--mask-bodies"],
    ["conformance", "--adapter", "ideal", "--case", "SEND-03", "--json", "link"],
    ["conformance", "--adapter", "ideal", "--case", "SEND-03", "--html", "link"],
    ["conformance", "--adapter", "ideal", "--case", "SEND-03", "--junit", "link"],
  ]

  @Test("a link in the place of a result is refused, and what it leads to stays as it is", arguments: outputs, [true, false])
  func links(_ words: [String], leadsToFile: Bool) throws {
    let tool = try Tool()
    defer { tool.remove() }
    try tool.write(KillTests.records(channels: 1, messages: 1), to: "r.jsonl")
    if words.contains("a.uchat") { #expect(try tool.run("archive", "import", "r.jsonl", "--to", "a.uchat").code == 0) }
    let victim = tool.folder.appendingPathComponent("victim")
    if leadsToFile { try tool.write("mine", to: "victim") }
    try FileManager.default.createSymbolicLink(
      atPath: tool.folder.appendingPathComponent("link").path, withDestinationPath: "victim")
    let outcome = try tool.run(words)
    #expect(outcome.code != 0, "\(outcome.output)")
    #expect(outcome.errors.contains("link"), "\(outcome.errors)")
    #expect(FileManager.default.contents(atPath: victim.path) == (leadsToFile ? Data("mine".utf8) : nil))
  }

  @Test("what a killed run left beside a result, with a mode of its own, is not written into")
  func leftovers() throws {
    let tool = try Tool()
    defer { tool.remove() }
    let part = tool.folder.appendingPathComponent("s.jsonl.part")
    try tool.write("old", to: "s.jsonl.part")
    chmod(part.path, 0o666)
    let reader = try FileHandle(forReadingFrom: part)
    #expect(try tool.run("seed", "--to", "s.jsonl").code == 0)
    #expect(try reader.readToEnd() == Data("old".utf8))
    try expectPrivate(tool, except: [])
  }

  // MARK: Tools

  private func run(_ mask: String, _ words: [String], in tool: Tool) throws {
    let process = try tool.start(mask: mask, words)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0, "\(words)")
  }

  private func expectPrivate(_ tool: Tool, except own: [String]) throws {
    for name in try FileManager.default.subpathsOfDirectory(atPath: tool.folder.path)
    where !own.contains(name) && !name.hasPrefix(".out-") && !name.hasPrefix(".err-") {
      var information = stat()
      #expect(lstat(tool.folder.appendingPathComponent(name).path, &information) == 0)
      #expect(information.st_mode & 0o077 == 0, "\(name) has mode \(String(information.st_mode & 0o777, radix: 8))")
    }
  }
}

extension Tool {
  /// As `start`, under a mask for the modes of new files.
  func start(mask: String, _ arguments: [String], output: Any? = nil) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", "umask \(mask) && exec \"$0\" \"$@\"", Self.path] + arguments
    process.currentDirectoryURL = folder
    process.standardOutput = output ?? FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    process.standardInput = FileHandle.nullDevice
    try process.run()
    return process
  }
}
