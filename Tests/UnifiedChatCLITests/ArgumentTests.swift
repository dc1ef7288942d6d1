import Foundation
import Testing

@Suite("Wrong words get one clear line")
struct ArgumentTests {
  struct Case: CustomTestStringConvertible {
    var words: [String]
    var code: Int32
    var says: [String]
    var testDescription: String { words.joined(separator: " ") }
  }

  static let cases = [
    Case(words: ["emulat"], code: 2, says: ["no command \"emulat\"", "did you mean \"emulate\"?"]),
    Case(words: ["archive", "pul"], code: 2, says: ["did you mean \"pull\"?"]),
    Case(words: ["emulate", "--vendr", "openim"], code: 2, says: ["--vendr", "did you mean --vendor?"]),
    Case(words: ["emulate", "--zzzz"], code: 2, says: ["--zzzz.", "See unifiedchat emulate --help"]),
    Case(words: ["seed", "--version"], code: 2, says: ["--version"]),
    Case(words: ["emulate"], code: 2, says: ["needs --vendor"]),
    Case(words: ["emulate", "--vendor", "openm"], code: 2, says: ["openim", "not \"openm\""]),
    Case(words: ["emulate", "--vendor", "openim", "--port", "70000"], code: 2, says: ["--port", "65535", "70000"]),
    Case(words: ["emulate", "--vendor", "openim", "--user", "alice"], code: 2, says: ["ID:TOKEN"]),
    Case(words: ["emulate", "--vendor"], code: 2, says: ["--vendor needs a value"]),
    Case(words: ["emulate", "--vendor", "--port"], code: 2, says: ["--vendor needs a value"]),
    Case(words: ["conformance", "--adapter", ""], code: 2, says: ["--adapter names none"]),
    Case(words: ["conformance", "--case", "SEND-03", "--group", "MIGR"], code: 2, says: ["no case is in all"]),
    Case(words: ["seed", "--to", "a", "--to", "b"], code: 2, says: ["given twice"]),
    Case(words: ["seed", "--to", "x.jsonl", "surplus"], code: 2, says: ["surplus"]),
    Case(words: ["seed", "--from", "nowhere", "--to", "x.jsonl"], code: 3, says: ["nowhere", "cannot be read"]),
    Case(words: ["seed", "--to", "no/such/folder/x.jsonl"], code: 6, says: ["no/such/folder/x.jsonl"]),
    Case(words: ["conformance", "--case", "SEND-1"], code: 2, says: ["SEND-1", "did you mean SEND-"]),
    Case(words: ["conformance", "--adapter", "opnim"], code: 2, says: ["did you mean openim?"]),
    Case(words: ["archive", "show", "none.uchat"], code: 6, says: ["none.uchat"]),
    Case(words: ["archive", "pull", "--to", "a.uchat"], code: 3, says: ["unifiedchat.json"]),
    Case(words: ["chat", "--as", "alice"], code: 2, says: ["--with", "--channel"]),
    Case(words: ["cache", "stat", "--as", "alice"], code: 2, says: ["did you mean \"stats\"?"]),
    Case(words: ["cache", "search", "--as", "alice"], code: 2, says: ["needs WORDS"]),
    Case(words: ["migrate", "run", "--from", "a"], code: 2, says: ["needs --to"]),
    Case(words: ["migrate", "folow"], code: 2, says: ["did you mean \"follow\"?"]),
    Case(words: ["migrate", "follow", "--from", "a", "--to", "b"], code: 2, says: ["needs --cut-over"]),
    Case(
      words: ["migrate", "run", "--from", "a", "--to", "b", "--attachments", "lnk"], code: 2, says: ["upload, link"]),
    Case(words: ["archive", "search", "a.uchat"], code: 2, says: ["needs words"]),
    Case(words: ["archive", "import", "x", "--to", "y", "--export", "openim"], code: 2, says: ["exports of openim"]),
  ]

  @Test("the line says what, where and the mend, and the exit code is the documented one", arguments: cases)
  func wrong(_ wrong: Case) throws {
    let tool = try Tool()
    defer { tool.remove() }
    let outcome = try tool.run(wrong.words)
    #expect(outcome.code == wrong.code)
    for text in wrong.says { #expect(outcome.errors.contains(text), "\(outcome.errors)") }
    #expect(outcome.errors.hasPrefix("unifiedchat: "))
    #expect(outcome.errors.split(separator: "\n").count == 1, "\(outcome.errors)")
  }

  @Test(
    "every command explains itself with an example",
    arguments: [
      ["emulate"], ["seed"], ["chat"], ["conformance"], ["archive", "pull"], ["archive", "show"], ["archive", "verify"],
      ["archive", "export"], ["archive", "import"], ["archive", "search"], ["archive", "redact"], ["migrate", "plan"],
      ["migrate", "run"], ["migrate", "resume"], ["migrate", "follow"], ["migrate", "rollback"], ["migrate", "report"],
      ["verify"], ["capabilities"], ["cache", "stats"], ["cache", "verify"], ["cache", "repair"], ["cache", "clear"],
      ["cache", "search"], ["config", "check"], ["config", "init"],
    ])
  func help(command: [String]) throws {
    let tool = try Tool()
    defer { tool.remove() }
    let outcome = try tool.run(command + ["--help"])
    #expect(outcome.code == 0)
    #expect(outcome.output.contains("Usage: unifiedchat \(command.joined(separator: " "))"))
    #expect(outcome.output.contains("Examples:"))
  }

  @Test("a configuration with many mistakes reports all of them, with paths")
  func configuration() throws {
    let tool = try Tool()
    defer { tool.remove() }
    try tool.write(
      #"{"use":"a","profiles":{"a":{"vendor":"sendbrd","apID":"x"},"b":{"vendor":"openim","retry":{"maxAttempts":"many"}}}}"#,
      to: "unifiedchat.json")
    let outcome = try tool.run("config", "check")
    #expect(outcome.code == 3)
    for text in ["sendbrd", "sendbird", "apID", "appID", "maxAttempts", "/profiles/b"] {
      #expect(outcome.errors.contains(text), "\(outcome.errors)")
    }
  }

  @Test("a first configuration passes its own check and is not overwritten")
  func firstConfiguration() throws {
    let tool = try Tool()
    defer { tool.remove() }
    #expect(try tool.run("config", "init").code == 0)
    #expect(try tool.run("config", "check").code == 0)
    let again = try tool.run("config", "init")
    #expect(again.code == 3 && again.errors.contains("exists"))
  }

  @Test("the sample survives a trip through an archive and back")
  func archiveRoundTrip() throws {
    let tool = try Tool()
    defer { tool.remove() }
    #expect(try tool.run("seed", "--to", "s.jsonl").code == 0)
    #expect(try tool.run("archive", "import", "s.jsonl", "--to", "a.uchat", "--vendor", "records").code == 0)
    #expect(try tool.run("archive", "export", "a.uchat", "--to", "b.jsonl").code == 0)
    #expect(try tool.run("archive", "import", "b.jsonl", "--to", "c.uchat").code == 0)
    let verified = try tool.run("archive", "verify", "a.uchat", "--copy", "c.uchat")
    #expect(verified.code == 0 && verified.output.contains("the copy is equal"), "\(verified.output)\(verified.errors)")
    let shown = try tool.run("archive", "show", "a.uchat")
    #expect(shown.output.contains("22 messages"))
  }

  @Test("a truncated archive is named and left as it is")
  func truncatedArchive() throws {
    let tool = try Tool()
    defer { tool.remove() }
    _ = try tool.run("seed", "--to", "s.jsonl")
    _ = try tool.run("archive", "import", "s.jsonl", "--to", "a.uchat")
    let file = tool.folder.appendingPathComponent("a.uchat")
    let bytes = try Data(contentsOf: file).prefix(9_000)
    try bytes.write(to: file)
    let outcome = try tool.run("archive", "show", "a.uchat")
    #expect(outcome.code == 6 && outcome.errors.contains("a.uchat"), "\(outcome.errors)")
    #expect(try Data(contentsOf: file) == bytes)
  }

  @Test("the version is that of the newest entry of the changelog")
  func version() throws {
    let tool = try Tool()
    defer { tool.remove() }
    let changes = try String(contentsOf: Tool.root.appendingPathComponent("CHANGELOG.md"), encoding: .utf8)
    let newest = try #require(changes.split(separator: "\n").first { $0.hasPrefix("## ") }?.split(separator: " "))
    #expect(try tool.run("--version").output == "unifiedchat \(newest[1])\n")
  }

  #if os(Linux)
    @Test("a full device is one clear error, and the device stays one", arguments: ["seed", "export"])
    func device(_ command: String) throws {
      let tool = try Tool()
      defer { tool.remove() }
      // A link: were it replaced, the machine would keep its device.
      let link = tool.folder.appendingPathComponent("full").path
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "/dev/full")
      _ = try tool.run("seed", "--to", "s.jsonl")
      _ = try tool.run("archive", "import", "s.jsonl", "--to", "a.uchat")
      let outcome = try tool.run(
        command == "seed" ? ["seed", "--to", "full"] : ["archive", "export", "a.uchat", "--to", "full"])
      #expect(outcome.code == 6 && outcome.errors.contains("full"), "\(outcome.errors)")
      #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "/dev/full")
    }
  #endif
}
