import ChatJSON
import Foundation
import Testing

@Suite("What is secret is in no line and no file of any command", .serialized, .timeLimit(.minutes(3)))
struct PlantedSecretsTests {
  // Signs that every encoding changes.
  private static let admin = Planted(name: "admin secret", text: "planted+admin/7f3a==")
  private static let wrongAdmin = Planted(name: "wrong admin secret", text: "planted+wrong/admin/55e1==")
  private static let key = Planted(name: "app key", text: "planted+key/91c2==")
  private static let token = Planted(name: "token", text: "planted+token/44aa==")
  private static let wrongToken = Planted(name: "wrong token", text: "planted+wrong/token/0b17==")
  private static let secrets = [admin, wrongAdmin, key, token, wrongToken]
  private static let bodies = [
    Planted(name: "sent body", text: #"planted "body" <5d0e> 你好"#),
    Planted(name: "unsent body", text: #"planted "unsent" <e119> 你好"#),
    Planted(name: "imported body", text: #"planted "import" <77c0> 你好"#),
  ]

  /// A service that runs, what it prints in hand.
  private final class Service {
    let baseURL: String
    private let process: Process
    private let output = Pipe()
    private let errors: URL
    private var beginning = ""

    init(_ vendor: String, in tool: Tool) throws {
      errors = tool.folder.appendingPathComponent("errors-of-\(vendor)")
      _ = FileManager.default.createFile(atPath: errors.path, contents: nil)
      process = try tool.start(
        [
          "emulate", "--vendor", vendor, "--limits", "off", "--app", "town", "--admin-secret-file", "own-admin", "--data",
          "own-state-\(vendor)", "--control-port", "0", "--coverage", "--user", "alice:\(PlantedSecretsTests.token.text)",
          "--user", "bob:b",
        ], output: output, errors: try FileHandle(forWritingTo: errors))
      while beginning.split(separator: "\n").count < 2 || !beginning.hasSuffix("\n"),
        let byte = try output.fileHandleForReading.read(upToCount: 1), !byte.isEmpty
      { beginning += String(decoding: byte, as: UTF8.self) }
      let line = beginning.split(separator: "\n").first ?? ""
      baseURL = line.split(separator: " ").last.map(String.init) ?? ""
    }

    /// Ends it, with everything that it has said.
    func stop() throws -> String {
      process.terminate()
      process.waitUntilExit()
      let rest = try output.fileHandleForReading.readToEnd() ?? Data()
      return beginning + String(decoding: rest, as: UTF8.self) + (try String(contentsOf: errors, encoding: .utf8))
    }
  }

  private struct Town {
    let tool: Tool
    var evidence = Evidence()
    var codes: [String: Int32] = [:]
    /// The words of every run.
    var ran: [[String]] = []

    /// What the test itself wrote names its files so.
    static func isOwn(_ name: String) -> Bool { name.hasPrefix("own-") || name.hasPrefix(".out-") || name.hasPrefix(".err-") }

    mutating func run(_ place: String, _ words: [String], input: String? = nil) throws {
      let names = ["out", "err"].map { tool.folder.appendingPathComponent("own-\(place)-\($0)") }
      for name in names { _ = FileManager.default.createFile(atPath: name.path, contents: nil) }
      let process = Process()
      process.executableURL = URL(fileURLWithPath: Tool.path)
      process.arguments = words
      process.currentDirectoryURL = tool.folder
      process.standardOutput = try FileHandle(forWritingTo: names[0])
      process.standardError = try FileHandle(forWritingTo: names[1])
      try Data((input ?? "").utf8).write(to: tool.folder.appendingPathComponent("own-input"))
      process.standardInput = try FileHandle(forReadingFrom: tool.folder.appendingPathComponent("own-input"))
      try process.run()
      process.waitUntilExit()
      codes[place] = process.terminationStatus
      ran.append(words)
      evidence.add("\(place), output", try String(contentsOf: names[0], encoding: .utf8))
      evidence.add("\(place), errors", try String(contentsOf: names[1], encoding: .utf8))
    }

    /// `name` with the services at `urls`, whose secrets are those of the files.
    func configure(_ name: String, _ urls: [(profile: String, vendor: String, url: String)], admin: String, token: String) throws {
      let profiles = urls.map { profile, vendor, url in
        """
        "\(profile)": {"vendor": "\(vendor)", "appID": "town", "log": "debug",
          "endpoints": {"api": "\(url)", "realtime": "ws\(url.dropFirst(4))", "router": "\(url)"},
          "credentials": {"token": {"file": "\(token)"}, "appKey": {"file": "own-key"}, "admin": {"file": "\(admin)"}},
          "cache": {"directory": "cache"}}
        """
      }
      try tool.write("{\"use\": \"\(urls[0].profile)\", \"profiles\": {\(profiles.joined(separator: ","))}}", to: name)
    }
  }

  @Test("through every command, when it succeeds and when it fails")
  func everyCommand() throws {
    let tool = try Tool()
    defer { tool.remove() }
    var town = Town(tool: tool)
    for (secret, file) in [
      (Self.admin, "own-admin"), (Self.wrongAdmin, "own-wrong-admin"), (Self.key, "own-key"), (Self.token, "own-token"),
      (Self.wrongToken, "own-wrong-token"),
    ] { try tool.write(secret.text + "\n", to: file) }
    let openim = try Service("openim", in: tool)
    let sendbird = try Service("sendbird", in: tool)
    let urls = [("openim", "openim", openim.baseURL), ("sendbird", "sendbird", sendbird.baseURL)]
    try town.configure("unifiedchat.json", urls, admin: "own-admin", token: "own-token")
    try town.configure("wrong.json", urls, admin: "own-wrong-admin", token: "own-wrong-token")
    let dead = [("openim", "openim", "http://127.0.0.1:9"), ("sendbird", "sendbird", "http://127.0.0.1:9")]
    try town.configure("dead.json", dead, admin: "own-admin", token: "own-token")

    try succeed(&town)
    let cut = try cutLink(&town, openim)
    try fail(&town)
    town.evidence.add("emulate openim", cut)
    town.evidence.add("emulate sendbird", try sendbird.stop())
    town.ran.append(["emulate"])
    // A demo takes minutes, and no secret from outside: it draws its own.
    let missed = try Self.leaves(tool).filter { leaf in leaf != ["demo"] && !town.ran.contains { $0.starts(with: leaf) } }
    #expect(missed.isEmpty, "never run: \(missed)")

    let bad = town.codes.filter { ($0.value == 0) == $0.key.hasPrefix("failing") }
    #expect(bad.isEmpty, "\(bad)")
    try town.evidence.addFiles(of: tool.folder, except: Town.isOwn)
    #expect(town.evidence.pieces.count > 80)
    #expect(town.evidence.leaks(of: Self.secrets).isEmpty, "\(town.evidence.leaks(of: Self.secrets))")
    // Bodies stand where they are the product.
    let products = [
      "chat", "cut", "show", "search", "a.uchat", "b.uchat", "a.jsonl", "cache/", "bad.uchat", "sendbird.uchat", "followed.uchat",
    ]
    let leaks = town.evidence.leaks(of: Self.bodies) { place in
      !products.contains { place.hasPrefix($0) } || place.hasSuffix("errors") || place.hasSuffix(".ledger")
    }
    #expect(leaks.isEmpty, "\(leaks)")
    // The search looked where they are.
    for body in Self.bodies { #expect(!town.evidence.leaks(of: [body]).isEmpty, "\(body.name)") }
  }

  /// The words of every command that does something, as the tool's own help tells them.
  private static func leaves(_ tool: Tool, below path: [String] = []) throws -> [[String]] {
    let help = try tool.run(path + ["--help"])
    try #require(help.code == 0, "\(path)")
    let lines = help.output.split(separator: "\n", omittingEmptySubsequences: false)
    guard let start = lines.firstIndex(of: "Commands:") else { return [path] }
    let names = lines[(start + 1)...].prefix { $0.hasPrefix("  ") }.compactMap { $0.split(separator: " ").first.map(String.init) }
    try #require(!names.isEmpty, "\(path)")
    return try names.flatMap { try leaves(tool, below: path + [$0]) }
  }

  private func succeed(_ town: inout Town) throws {
    let chat = ["chat", "--as", "alice", "--with", "bob"]
    try town.run("chat, JSON", chat + ["--json"], input: Self.bodies[0].text + "\n/nonsense\n/search planted\n")
    try town.run("chat, lines", chat, input: "and more\n")
    try town.run("cache stats", ["cache", "stats", "--as", "alice", "--json"])
    try town.run("cache verify", ["cache", "verify", "--as", "alice", "--online"])
    try town.run("search in the cache", ["cache", "search", "--as", "alice", "planted", "--json"])
    try town.run("config check", ["config", "check"])
    try town.run("pull", ["archive", "pull", "--to", "a.uchat", "--json"])
    try town.run("pull check", ["archive", "pull", "--to", "a.uchat", "--check"])
    try town.run("show", ["archive", "show", "a.uchat"])
    try town.run("export", ["archive", "export", "a.uchat", "--to", "a.jsonl"])
    try town.run("import", ["archive", "import", "a.jsonl", "--to", "b.uchat"])
    try town.run("verify", ["archive", "verify", "a.uchat"])
    let ends = ["--from", "a.uchat", "--to", "sendbird"]
    let reports = ["report.json", "report.md", "report.html"].flatMap { ["--report", $0] }
    try town.run("plan", ["migrate", "plan"] + ends + ["--json"])
    try town.run("run", ["migrate", "run"] + ends + reports + ["--audit", "audit.jsonl", "--json"])
    try town.run("compare", ["verify", "--archive", "a.uchat", "--against", "sendbird", "--combined", "signs"] + reports)
    try town.run("search in an archive", ["archive", "search", "a.uchat", "planted", "--json"])
    try town.run("redact", ["archive", "redact", "a.uchat", "--to", "redacted.uchat", "--mask-bodies"])
    try town.run("resume", ["migrate", "resume"] + ends + ["--json"])
    try town.run("report", ["migrate", "report"] + ends + ["again.json", "again.md", "again.html"].flatMap { ["--report", $0] })
    try town.run("rollback", ["migrate", "rollback"] + ends + ["--yes", "--audit", "audit.jsonl", "--json"])
    try town.tool.write("", to: "own-cut-over")
    try town.run(
      "follow", ["migrate", "follow", "--from", "openim", "--to", "sendbird", "--archive", "followed.uchat", "--cut-over", "own-cut-over", "--json"])
    try town.run("chat, another vendor", chat + ["--profile", "sendbird"], input: Self.bodies[0].text + "\n")
    let own = ["--profile", "sendbird", "--as", "alice"]
    try town.run("cache repair", ["cache", "repair", "--json"] + own)
    try town.run("cache clear", ["cache", "clear", "--yes"] + own)
    try town.run("config init", ["config", "init", "--config", "another.json"])
    try town.run("seed", ["seed", "--to", "seed.jsonl", "--json"])
    try town.run("capabilities", ["capabilities", "--markdown"])
    let files = ["--json", "cases.json", "--junit", "cases.xml", "--html", "cases.html"]
    try town.run("conformance", ["conformance", "--adapter", "openim,sendbird", "--case", "SEND-03", "--case", "CONN-03"] + files)
  }

  /// A chat whose service goes away under it.
  private func cutLink(_ town: inout Town, _ service: Service) throws -> String {
    let errors = town.tool.folder.appendingPathComponent("own-cut-errors")
    _ = FileManager.default.createFile(atPath: errors.path, contents: nil)
    let (input, output) = (Pipe(), Pipe())
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Tool.path)
    process.arguments = ["chat", "--as", "alice", "--with", "bob", "--json"]
    process.currentDirectoryURL = town.tool.folder
    (process.standardInput, process.standardOutput) = (input, output)
    process.standardError = try FileHandle(forWritingTo: errors)
    try process.run()
    var said = ""
    func read(until word: String) throws {
      while !said.contains(word), let byte = try output.fileHandleForReading.read(upToCount: 1), !byte.isEmpty {
        said += String(decoding: byte, as: UTF8.self)
      }
    }
    try input.fileHandleForWriting.write(contentsOf: Data("before\n".utf8))
    try read(until: "\"sent\"")
    let told = try service.stop()
    try input.fileHandleForWriting.write(contentsOf: Data((Self.bodies[1].text + "\n").utf8))
    try read(until: "e119")
    process.terminate()
    try input.fileHandleForWriting.close()
    let rest = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    town.evidence.add("cut, output", said + String(decoding: rest, as: UTF8.self))
    town.evidence.add("cut, errors", try String(contentsOf: errors, encoding: .utf8))
    return told
  }

  private func fail(_ town: inout Town) throws {
    let wrong = ["--config", "wrong.json"]
    let ends = ["--from", "a.uchat", "--to", "sendbird"]
    func failing(_ place: String, _ words: [String], input: String? = nil) throws {
      try town.run("failing \(place)", words, input: input)
    }
    try failing("chat with a wrong token", ["chat", "--profile", "sendbird", "--as", "alice", "--with", "bob"] + wrong, input: "hi\n")
    try failing("chat without a service", ["chat", "--as", "alice", "--with", "bob", "--config", "dead.json"], input: "hi\n")
    try failing("pull with a wrong secret", ["archive", "pull", "--profile", "sendbird", "--to", "c.uchat"] + wrong)
    try failing("plan with a wrong secret", ["migrate", "plan"] + ends + wrong)
    try failing("run with a wrong secret", ["migrate", "run"] + ends + wrong + ["--ledger", "other.ledger", "--audit", "audit2.jsonl"])
    try failing("verify with a wrong secret", ["verify", "--archive", "a.uchat", "--against", "sendbird"] + wrong)
    try failing("run into what is not empty", ["migrate", "run"] + ends + ["--ledger", "third.ledger"])
    // Files whose contents are no business of an error.
    let body = Self.bodies[2].text.replacingOccurrences(of: "\"", with: "\\\"")
    let lines = [
      #"{"type":"user","id":"zoe"}"#,
      #"{"type":"message","channel":"c1","id":"m1","sender":"a","createdAt":"x","content":{"kind":"text","text":"\#(body)"}}"#,
      #"{"type":"message","channel":"c1","content":{"kind":"text","text":"\#(body)"#,
      #"{"type":"\#(body)"}"#, body,
    ]
    try town.tool.write(lines.map { $0 + "\n" }.joined(), to: "own-bad.jsonl")
    try failing("import of bad lines", ["archive", "import", "own-bad.jsonl", "--to", "bad.uchat"])
    try failing("search in no archive", ["archive", "search", "own-bad.jsonl", "words"])
    let secret = Self.token.text
    try town.tool.write("old,\(secret),third\n", to: "own-map.csv")
    try failing("mapping that is none", ["migrate", "plan"] + ends + ["--users", "own-map.csv"])
    let literals = [
      #"{"use":"a","profiles":{"a":{"vendor":"sendbird","appID":"x","credentials":{"token":{"\#(secret)":1}}}}}"#,
      #"{"use":"a","profiles":{"a":{"vendor":"sendbird","appID":"x","credentials":{"token":"\#(secret)","admin":{"file":["\#(secret)"]}}}}}"#,
      #"{"use":"a","profiles":{"a":{"vendor":"sendbird","appID":"x","endpoints":{"api":"https://u:\#(secret)@h/?token=\#(secret)"}}}}"#,
      #"{"use":"a","profiles":{"a":{"vendor":"sendbird","credentials":{"token":"\#(secret)"#,
      #"{"use":"a","profiles":{"a":{"vendor":"leancloud","appID":"x","credentials":{"appKey":"\#(secret)"},"options":{"masterKey":"\#(secret)"}}}}"#,
    ]
    for (number, text) in literals.enumerated() {
      try town.tool.write(text, to: "own-config-\(number)")
      try failing("configuration \(number)", ["config", "check", "--config", "own-config-\(number)"])
    }
    try failing("option that is none", ["chat", "--token=\(secret)"])
    try failing("user without an id", ["emulate", "--vendor", "openim", "--user", secret])
    try failing("setting that is none", ["emulate", "--vendor", "openim", "--set", "secret=\(secret)"])
  }

  @Test("the search finds what is planted, in each of its forms")
  func control() throws {
    let body = Self.bodies[0]
    for secret in Self.secrets + Self.bodies {
      for (form, bytes) in secret.forms {
        var evidence = Evidence()
        evidence.add("a log", "2026-01-01 GET /x " + String(decoding: bytes, as: UTF8.self) + " 200\n")
        #expect(!evidence.leaks(of: [secret]).isEmpty, "\(secret.name), \(form)")
      }
    }
    // Forms that others made.
    let told: [(Planted, String)] = [
      (body, "text=" + (body.text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")),
      (body, JSONValue.string(body.text).text()), (body, JSONValue.string(JSONValue.string(body.text).text()).text()),
      (Self.token, Data("user:\(Self.token.text)".utf8).base64EncodedString()),
      (Self.token, Data("\(Self.token.text):x".utf8).base64EncodedString()),
      (Self.token, #"{"token":"planted+token\/44aa=="}"#),
    ]
    for (secret, line) in told {
      var evidence = Evidence()
      evidence.add("a log", line)
      #expect(!evidence.leaks(of: [secret]).isEmpty, "\(line)")
    }
    var clean = Evidence()
    clean.add("a log", "GET /x token=‹redacted› planted+other/44aa==")
    #expect(clean.leaks(of: Self.secrets + Self.bodies).isEmpty)
  }
}
