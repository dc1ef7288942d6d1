import ChatJSON
import Foundation
import Testing

@Suite("What is meant otherwise is told before anything is done")
struct ClumsyUseTests {
  private func prepared() throws -> Tool {
    let tool = try Tool()
    try tool.write(KillTests.records(channels: 2, messages: 2), to: "r.jsonl")
    #expect(try tool.run("archive", "import", "r.jsonl", "--to", "a.uchat").code == 0)
    try tool.write("emulated-secret\n", to: "secret")
    try tool.write(KillTests.configuration([("openim", "http://127.0.0.1:9")]), to: "unifiedchat.json")
    return tool
  }

  static let wrongInputs = [("a.uchat", "is a database"), ("unifiedchat.json", "no line of it is a record"), ("nofile", "nofile")]

  @Test("a file of another form is no import, and leaves no archive of nothing", arguments: wrongInputs)
  func wrongInput(name: String, words: String) throws {
    let tool = try prepared()
    defer { tool.remove() }
    let outcome = try tool.run("archive", "import", name, "--to", "new.uchat")
    #expect(outcome.code == (name == "nofile" ? 6 : 3) && outcome.errors.contains(words), "\(outcome.errors)")
    #expect(!FileManager.default.fileExists(atPath: tool.folder.appendingPathComponent("new.uchat").path))
    // An archive that is there stays as it is.
    let before = try tool.run("archive", "show", "a.uchat", "--json").output
    _ = try tool.run("archive", "import", name, "--to", "a.uchat")
    #expect(try tool.run("archive", "show", "a.uchat", "--json").output == before)
  }

  @Test("a file that holds nothing of a vendor is no export of it")
  func wrongExport() throws {
    let tool = try prepared()
    defer { tool.remove() }
    let outcome = try tool.run("archive", "import", "unifiedchat.json", "--export", "leancloud", "--to", "new.uchat")
    #expect(outcome.code != 0, "\(outcome.output)")
    #expect(!FileManager.default.fileExists(atPath: tool.folder.appendingPathComponent("new.uchat").path))
  }

  static let filters: [([String], Int32, String)] = [
    (["--kind", "txet"], 2, "did you mean text"), (["--since", "2026"], 2, "1970"),
    (["--since", "2026-11-30", "--until", "2026-11-01"], 2, "nothing lies between"),
    (["--channel", "c0ffee00c0ffee00c0ffee0X"], 3, "did you mean c0ffee00c0ffee00c0ffee0"),
    (["--exclude-channel", "nosuch"], 3, "archive show lists them"),
  ]

  @Test("a filter that can match nothing is questioned", arguments: filters)
  func filter(words: [String], code: Int32, told: String) throws {
    let tool = try prepared()
    defer { tool.remove() }
    let outcome = try tool.run(["migrate", "plan", "--from", "a.uchat", "--to", "openim"] + words)
    #expect(outcome.code == code && outcome.errors.contains(told), "\(outcome.code) \(outcome.errors)")
  }

  static let show = [["--user", "user-1", "--channel", "x"], ["--last"], ["--since", "2026-11-30"]]

  @Test("options that would do nothing are refused", arguments: show)
  func ignored(words: [String]) throws {
    let tool = try prepared()
    defer { tool.remove() }
    #expect(try tool.run(["archive", "show", "a.uchat"] + words).code == 2)
  }

  @Test("signs and a JSON report do not share standard output")
  func oneOutput() throws {
    let tool = try prepared()
    defer { tool.remove() }
    let outcome = try tool.run("verify", "--archive", "a.uchat", "--against", "openim", "--json", "--combined", "-")
    #expect(outcome.code == 2 && outcome.errors.contains("standard output"), "\(outcome.errors)")
  }

  @Test("a reader who has had enough is no failure")
  func closedPipe() throws {
    let tool = try Tool()
    defer { tool.remove() }
    let pipe = Pipe()
    try pipe.fileHandleForReading.close()
    let process = try tool.start(["seed", "--to", "-"], output: pipe)
    process.waitUntilExit()
    #expect(process.terminationReason == .exit && process.terminationStatus == 0)
  }

  @Test("a secret that others can read is warned of, and an address that no run would take is an error")
  func configuration() throws {
    let tool = try prepared()
    defer { tool.remove() }
    let secret = tool.folder.appendingPathComponent("secret").path
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secret)
    #expect(try tool.run("config", "check").errors.isEmpty)
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: secret)
    let outcome = try tool.run("config", "check")
    #expect(outcome.code == 0 && outcome.errors.contains("others on this machine can read"), "\(outcome.errors)")
    for (address, told) in [("http://user:pw@127.0.0.1:9", "user name"), ("http://127.0.0.1:99999", "port")] {
      try tool.write(KillTests.configuration([("openim", address)]), to: "unifiedchat.json")
      let wrong = try tool.run("config", "check")
      #expect(wrong.code == 3 && wrong.errors.contains(told) && !wrong.errors.contains("pw@"), "\(wrong.errors)")
    }
  }

  @Test("an id from elsewhere moves no cursor and breaks no line")
  func inertIDs() throws {
    let tool = try prepared()
    defer { tool.remove() }
    let hostile = "ch\\u001b]0;PWNED\\u0007\\u001b[2J\\nforged line\\u202e"
    try tool.write(
      """
      {"type":"user","id":"u"}
      {"type":"channel","id":"\(hostile)","kind":"group"}
      {"type":"message","channel":"\(hostile)","id":"m","sender":"u","createdAt":1,"content":{"kind":"recalled"}}

      """, to: "h.jsonl")
    #expect(try tool.run("archive", "import", "h.jsonl", "--to", "h.uchat").code == 0)
    for words in [
      ["archive", "show", "h.uchat"], ["archive", "show", "h.uchat", "--channel", "ch\u{1B}x\nforged line"],
      ["migrate", "plan", "--from", "h.uchat", "--to", "openim", "--channel", "ch\u{1B}x\nforged line"],
    ] {
      let outcome = try tool.run(words)
      let text = outcome.output + outcome.errors
      #expect(!text.contains("\u{1B}") && !text.contains("\u{202E}"), "\(words)")
      #expect(!text.split(separator: "\n").contains { $0.hasPrefix("forged") }, "\(words)")
    }
  }

  @Test("a line from a pipe that was not sent is no success")
  func unsent() throws {
    let town = try ChatTown("sendbird")
    let long = try town.chat("alice", [String(repeating: "x", count: 6000)], "--history", "0")
    #expect(long.code == 5, "\(long.errors)")
    #expect(try town.chat("alice", ["/file /nonexistent"], "--history", "0").code == 5)
    #expect(try town.chat("bob", ["hi"], "--history", "0").code == 0)
  }
}
