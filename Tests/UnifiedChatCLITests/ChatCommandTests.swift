import ChatJSON
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// An emulator as a process of its own, and a folder with a configuration for two users of it.
final class ChatTown {
  let tool: Tool
  let vendor: String
  private let emulator: Process

  init(_ vendor: String = "openim") throws {
    tool = try Tool()
    self.vendor = vendor
    let pipe = Pipe()
    emulator = try tool.start(
      [
        "emulate", "--vendor", vendor, "--limits", "off", "--app", "town", "--user", "alice:tok-alice", "--user",
        "bob:tok-bob",
      ], output: pipe)
    var line = ""
    while !line.contains("\n"), let bytes = try pipe.fileHandleForReading.read(upToCount: 1), !bytes.isEmpty {
      line += String(decoding: bytes, as: UTF8.self)
    }
    let baseURL = line.split(separator: " ").last.map { $0.trimmingCharacters(in: .newlines) } ?? ""
    try tool.write("emulated-secret\n", to: "secret")
    for user in ["alice", "bob"] {
      try tool.write("tok-\(user)\n", to: "token-\(user)")
      try tool.write(
        """
        {"use": "town", "profiles": {"town": {"vendor": "\(vendor)", "appID": "town",
          "endpoints": {"api": "\(baseURL)", "realtime": "ws\(baseURL.dropFirst(4))", "router": "\(baseURL)"},
          "credentials": {"token": {"file": "token-\(user)"}, "appKey": {"file": "secret"}, "admin": {"file": "secret"}},
          "cache": {"directory": "cache-\(user)"}}}}
        """, to: "\(user).json")
    }
  }

  deinit {
    emulator.terminate()
    emulator.waitUntilExit()
    tool.remove()
  }

  /// `unifiedchat chat --json` as a user types it, with what it printed.
  func chat(_ user: String, _ lines: [String], _ more: String...) throws -> (code: Int32, events: [JSONValue], errors: String) {
    let input = tool.folder.appendingPathComponent("input-\(UUID())")
    try Data(lines.map { $0 + "\n" }.joined().utf8).write(to: input)
    let names = ["out", "err"].map { tool.folder.appendingPathComponent("\($0)-\(UUID())") }
    for name in names { _ = FileManager.default.createFile(atPath: name.path, contents: nil) }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Tool.path)
    process.arguments =
      ["chat", "--config", "\(user).json", "--as", user, "--with", user == "alice" ? "bob" : "alice", "--json"] + more
    process.currentDirectoryURL = tool.folder
    process.standardInput = try FileHandle(forReadingFrom: input)
    process.standardOutput = try FileHandle(forWritingTo: names[0])
    process.standardError = try FileHandle(forWritingTo: names[1])
    try process.run()
    process.waitUntilExit()
    let events = try String(contentsOf: names[0], encoding: .utf8).split(separator: "\n")
      .compactMap { try? JSONValue(parsing: String($0)) }
    return (process.terminationStatus, events, try String(contentsOf: names[1], encoding: .utf8))
  }
}

extension [JSONValue] {
  func texts(_ event: String) -> [String] { filter { $0["event"]?.string == event }.compactMap { $0["text"]?.string } }
}

/// One who stays, and is told of what the others do.
final class LiveChat {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private var rest = ""

  init(_ user: String, with peer: String, in town: ChatTown) throws {
    process.executableURL = URL(fileURLWithPath: Tool.path)
    process.arguments = ["chat", "--config", "\(user).json", "--as", user, "--with", peer, "--json"]
    process.currentDirectoryURL = town.tool.folder
    process.standardInput = input
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    try hears("connected") { $0["text"] == "connected" }
  }

  func type(_ line: String) throws { try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8)) }

  /// Reads on until a line that `isIt`; the end of the output is a failure.
  @discardableResult
  func hears(_ what: String, _ isIt: (JSONValue) -> Bool) throws -> JSONValue {
    while true {
      while let end = rest.firstIndex(of: "\n") {
        let line = String(rest[..<end])
        rest = String(rest[rest.index(after: end)...])
        if let event = try? JSONValue(parsing: line), isIt(event) { return event }
      }
      let bytes = take()
      guard !bytes.isEmpty else { throw Silence(what: what) }
      rest += String(decoding: bytes, as: UTF8.self)
    }
  }

  /// What is there, as soon as something is; nothing at the end, or where a minute brings nothing.
  private func take() -> [UInt8] {
    let place = output.fileHandleForReading.fileDescriptor
    var wanted = pollfd(fd: place, events: Int16(POLLIN), revents: 0)
    guard poll(&wanted, 1, 60_000) > 0 else { return [] }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = read(place, &bytes, bytes.count)
    return Array(bytes.prefix(max(0, count)))
  }

  func leave() throws -> Int32 {
    try input.fileHandleForWriting.close()
    while !take().isEmpty { continue }
    process.waitUntilExit()
    return process.terminationStatus
  }

  deinit { if process.isRunning { process.terminate() } }

  struct Silence: Error { var what: String }
}

@Suite("Chat from the terminal", .timeLimit(.minutes(3)))
struct ChatCommandTests {
  @Test("sends lines, shows history, searches, goes from one channel to another, sends files", arguments: ["openim", "sendbird", "leancloud"])
  func talk(vendor: String) throws {
    let town = try ChatTown(vendor)
    let first = try town.chat("alice", ["hello bob", "//not a command", "明天见", "/nonsense"])
    #expect(first.code == 0, "\(first.errors)")
    #expect(first.events.texts("pending") == ["hello bob", "/not a command", "明天见"])
    #expect(first.events.texts("sent") == ["hello bob", "/not a command", "明天见"])
    #expect(first.events.texts("problem").count == 1)
    try town.tool.write("some bytes", to: "notes.txt")
    let second = try town.chat("bob", ["/search 明", "/file notes.txt", "/channels", "answer"])
    #expect(second.code == 0, "\(second.errors)")
    #expect(second.events.texts("history") == ["hello bob", "/not a command", "明天见"])
    #expect(second.events.texts("hit") == ["明天见"])
    #expect(second.events.texts("sent") == ["notes.txt", "answer"])
    #expect(second.events.contains { $0["event"]?.string == "channel" })
    let third = try town.chat("alice", ["/edit nothing"], "--history", "2")
    #expect(third.events.texts("history") == ["notes.txt", "answer"])
  }

  @Test(
    "two who are there at once see messages, typing, receipts, edits, files and their progress as they happen",
    arguments: ["openim", "sendbird", "leancloud"])
  func live(vendor: String) throws {
    let town = try ChatTown(vendor)
    let alice = try LiveChat("alice", with: "bob", in: town)
    let bob = try LiveChat("bob", with: "alice", in: town)
    try alice.type("are you there?")
    try bob.hears("the message") { $0["event"] == "received" && $0["text"] == "are you there?" }
    try bob.type("/typing")
    try alice.hears("typing") { $0["event"] == "typing" && $0["user"] == "bob" && $0["isTyping"] == true }
    try bob.type("/read")
    try alice.hears("the receipt") { $0["event"] == "read" && $0["user"] == "bob" }
    try bob.type("yes")
    try alice.hears("the answer") { $0["event"] == "received" && $0["text"] == "yes" }
    if vendor != "openim" {
      try bob.type("/edit yes!")
      try alice.hears("the edit") { $0["event"] == "updated" && $0["text"] == "yes!" }
    }
    try bob.type("/recall")
    try alice.hears("the recall") { $0["event"] == "recalled" }
    try Data(repeating: 7, count: 300_000).write(to: town.tool.folder.appendingPathComponent("photo.png"))
    try alice.type("/file photo.png")
    let progress = try alice.hears("progress") { $0["event"] == "progress" && $0["sent"] == $0["total"] }
    #expect(progress["name"] == "photo.png" && progress["total"]?.int ?? 0 >= 300_000)
    try bob.hears("the file") { $0["event"] == "received" && $0["kind"] == "image" }
    #expect(try alice.leave() == 0 && bob.leave() == 0)
  }

  @Test("the cache of a user is shown, searched, checked, mended and emptied without a connection")
  func cache() throws {
    let town = try ChatTown()
    _ = try town.chat("alice", ["我们明天几点见", "lunch at noon", "明天"])
    func run(_ words: String...) throws -> Tool.Outcome {
      try town.tool.run(["cache", words[0], "--config", "alice.json", "--as", "alice"] + words.dropFirst())
    }
    let stats = try run("stats", "--json")
    let object = try JSONValue(parsing: stats.output)
    #expect(object["messages"]?.int == 3 && object["unsent"]?.int == 0 && object["integrity"]?.string == "ok")
    let hits = try run("search", "明天")
    #expect(hits.code == 0 && hits.output.contains("«明天»") && hits.output.contains("我们«明天»几点见"), "\(hits.output)")
    #expect(try run("search", "nowhere").code == 1)
    #expect(try run("search", "lun", "--order", "relevance", "--kind", "text", "--from", "alice").output.contains("«lun»ch"))
    let verified = try run("verify", "--online")
    #expect(verified.code == 0 && verified.output.contains("3 on the server, 0 missing, 0 surplus"), "\(verified.output)\(verified.errors)")
    let repaired = try run("repair")
    #expect(repaired.code == 0 && repaired.output.contains("3 messages in the index"), "\(repaired.output)")
    #expect(try run("clear", "--yes").code == 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: town.tool.folder.path + "/cache-alice") == [])
    let none = try run("stats")
    #expect(none.code == 6 && none.errors.contains("there is no cache of alice"))
  }

  @Test("a damaged cache is told, set aside, and filled again from the server")
  func damaged() throws {
    let town = try ChatTown()
    _ = try town.chat("alice", (1...30).map { "line \($0)" })
    let folder = town.tool.folder.appendingPathComponent("cache-alice")
    let name = try #require(try FileManager.default.contentsOfDirectory(atPath: folder.path).first { $0.hasSuffix(".sqlite") })
    let file = try FileHandle(forUpdating: folder.appendingPathComponent(name))
    try file.seek(toOffset: 20_000)
    try file.write(contentsOf: Data(repeating: 0xAA, count: 30_000))
    try file.close()
    let words = ["--config", "alice.json", "--as", "alice"]
    let damaged = try town.tool.run(["cache", "verify"] + words)
    #expect(damaged.code == 1 && damaged.errors.contains("was damaged"), "\(damaged.output)\(damaged.errors)")
    let channel = "si_alice_bob"
    _ = try town.chat("alice", [], "--history", "3")
    let repaired = try town.tool.run(["cache", "repair", "--online", "--channel", channel] + words)
    #expect(repaired.code == 1 && repaired.output.contains("messages mended"), "\(repaired.output)\(repaired.errors)")
    #expect(try town.tool.run(["cache", "repair", "--online", "--channel", channel] + words).code == 0)
    #expect(try town.tool.run(["cache", "verify", "--online"] + words).output.contains("30 on the server, 0 missing, 0 surplus, 0 not fetched"))
  }
}

@Suite("A client killed anywhere", .serialized, .timeLimit(.minutes(15)))
struct ClientKillTests {
  /// `UNIFIEDCHAT_KILL_POINTS`; 50 by default, 1000 to be sure.
  private static let points = ProcessInfo.processInfo.environment["UNIFIEDCHAT_KILL_POINTS"].flatMap { Int($0) } ?? 50

  private struct Random {
    var state: UInt64
    mutating func next(below limit: UInt64) -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return (state >> 33) % limit
    }
  }

  @Test("sends what it has taken, once and in order, and its file is whole", arguments: [UInt64(31)])
  func killed(seed: UInt64) throws {
    let town = try ChatTown()
    var random = Random(state: seed)
    var taken: [String] = []
    for point in 0..<Self.points { taken += try kill(point, &random, town) }
    let last = try town.chat("alice", ["the end"])
    #expect(last.code == 0, "seed \(seed): \(last.errors)")
    taken.append("the end")
    let words = ["--config", "alice.json", "--as", "alice"]
    let verified = try town.tool.run(["cache", "verify", "--online"] + words)
    #expect(verified.code == 0 && verified.output.contains("file: ok"), "seed \(seed): \(verified.output)\(verified.errors)")
    // What the server has, read by somebody who has no cache, with the admin's eyes: doubles would show.
    #expect(try town.tool.run("archive", "pull", "--config", "bob.json", "--to", "all.uchat").code == 0)
    #expect(try town.tool.run("archive", "export", "all.uchat", "--to", "all.jsonl").code == 0)
    let sent = try String(contentsOf: town.tool.folder.appendingPathComponent("all.jsonl"), encoding: .utf8)
      .split(separator: "\n").compactMap { line -> String? in
        let record = try? JSONValue(parsing: String(line))
        return record?["content"]?["text"]?.string
      }
    #expect(Set(sent).count == sent.count, "seed \(seed): \(sent.count - Set(sent).count) doubles")
    let wanted = Set(taken)
    #expect(sent.filter { wanted.contains($0) } == taken, "seed \(seed): \(taken.count) taken, \(sent.count) sent")
    #expect(taken.count > Self.points)
  }

  /// One run of a busy client that ends by SIGKILL.
  /// - Returns: the lines that it said it has taken.
  private func kill(_ point: Int, _ random: inout Random, _ town: ChatTown) throws -> [String] {
    let output = town.tool.folder.appendingPathComponent("killed")
    _ = FileManager.default.createFile(atPath: output.path, contents: nil)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Tool.path)
    process.arguments = ["chat", "--config", "alice.json", "--as", "alice", "--with", "bob", "--json", "--history", "0"]
    process.currentDirectoryURL = town.tool.folder
    let input = Pipe()
    process.standardInput = input
    process.standardOutput = try FileHandle(forWritingTo: output)
    process.standardError = FileHandle.nullDevice
    try process.run()
    // More than it can send before it dies, and less than a pipe holds.
    let lines = (0..<40).map { "\(point)-\($0)\n" }.joined()
    try input.fileHandleForWriting.write(contentsOf: Data(lines.utf8))
    // It has begun to work; the moment is then anywhere in it. Real time is the point here.
    var said = ""
    while !said.contains("pending"), process.isRunning {
      usleep(2000)
      said = try String(contentsOf: output, encoding: .utf8)
    }
    usleep(UInt32(random.next(below: 40_000)))
    Foundation.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    return try String(contentsOf: output, encoding: .utf8).split(separator: "\n")
      .compactMap { try? JSONValue(parsing: String($0)) }.texts("pending")
  }
}
