import ChatInterchange
import ChatJSON
import Foundation
import Testing
import UnifiedChat

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// SplitMix64, so that the points of a run can be repeated by its seed.
private struct Seeded: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}

/// A vendor's emulator as a process of its own, which outlives the kills.
struct RunningEmulator {
  let process: Process
  let baseURL: String

  init(_ vendor: String, in tool: Tool, load: String? = nil) throws {
    let pipe = Pipe()
    var words = ["emulate", "--vendor", vendor, "--limits", "off", "--app", "kill-app"]
    if let load { words += ["--load", load] }
    process = try tool.start(words, output: pipe)
    var line = ""
    while !line.contains("\n"), let bytes = try pipe.fileHandleForReading.read(upToCount: 1), !bytes.isEmpty {
      line += String(decoding: bytes, as: UTF8.self)
    }
    baseURL = line.split(separator: " ").last.map { $0.trimmingCharacters(in: .newlines) } ?? ""
  }

  func stop() {
    process.terminate()
    process.waitUntilExit()
  }
}

@Suite("Killed anywhere and started again, nothing is lost and nothing is twice", .serialized)
struct KillTests {
  private static let points = 20

  /// Six channels of 250 messages, honest duplicates in the same millisecond among them.
  static func records(channels: Int = 6, messages: Int = 250) -> String {
    var lines: [JSONValue] = (0..<8).map { Record.user(UserRecord(user: User(id: UserID("user-\($0)")))).json() }
    for channel in 0..<channels {
      let id = ChannelID("c0ffee00c0ffee00c0ffee0\(channel)")
      lines.append(Record.channel(ChannelRecord(channel: Channel(id: id, kind: .group, name: "n\(channel)"))).json())
      for user in 0..<8 {
        let member = Member(user: User(id: UserID("user-\(user)")), role: user == 0 ? .owner : .member)
        lines.append(Record.member(MemberRecord(channel: id, member: member)).json())
      }
      for number in 0..<messages {
        let name = "\(channel)-\(number)"
        let message = Message(
          channel: id, id: MessageID("msg-" + name + String(repeating: "x", count: 18 - name.utf8.count)),
          sender: UserID("user-\(number % 8)"),
          createdAt: Timestamp(milliseconds: 1_600_000_000_000 + Int64(number / 3) * 1000),
          content: .text(number % 3 == 0 ? "again" : "text \(name) 你好 😀"))
        lines.append(Record.message(MessageRecord(message: message)).json())
      }
    }
    return lines.map { $0.text() + "\n" }.joined()
  }

  static func configuration(_ profiles: [(vendor: String, baseURL: String)]) -> String {
    let entries = profiles.map { vendor, baseURL in
      let socket = "ws" + baseURL.dropFirst(4)
      return """
        "\(vendor)": {"vendor": "\(vendor)", "appID": "kill-app",
          "endpoints": {"api": "\(baseURL)", "realtime": "\(socket)", "router": "\(baseURL)"},
          "credentials": {"admin": {"file": "secret"}, "appKey": {"file": "secret"}}}
        """
    }
    return "{\"use\": \"\(profiles[0].vendor)\", \"profiles\": {\(entries.joined(separator: ","))}}"
  }

  /// Starts the command, kills it after a seeded moment, and again; a run that ends by itself ends the loop.
  private static func killing(
    _ words: [String], in tool: Tool, seed: UInt64, points: Int = points, longest milliseconds: UInt32 = 220
  ) throws -> Int {
    var random = Seeded(state: seed)
    for kill in 0..<points {
      let process = try tool.start(words)
      // Real time is the point here: the moment is to fall anywhere in the run.
      usleep(UInt32.random(in: 5_000...(milliseconds * 1000), using: &random))
      guard process.isRunning else { return kill }
      Foundation.kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
    }
    return points
  }

  @Test("a load killed at random points ends equal", arguments: [("openim", UInt64(11)), ("sendbird", 12)])
  func load(vendor: String, seed: UInt64) throws {
    let tool = try Tool()
    defer { tool.remove() }
    try tool.write(Self.records(), to: "r.jsonl")
    try tool.write("emulated-secret\n", to: "secret")
    #expect(try tool.run("archive", "import", "r.jsonl", "--to", "a.uchat").code == 0)
    let emulator = try RunningEmulator(vendor, in: tool)
    defer { emulator.stop() }
    try tool.write(Self.configuration([(vendor, emulator.baseURL)]), to: "unifiedchat.json")
    let words = ["migrate", "run", "--from", "a.uchat", "--to", vendor, "--no-verify"]
    let kills = try Self.killing(words, in: tool, seed: seed)
    let last = try tool.run(["migrate", "resume"] + words.dropFirst(2).dropLast() + ["--json"])
    #expect(last.code == 0, "after \(kills) kills, seed \(seed): \(last.errors)")
    let verified = try tool.run("verify", "--archive", "a.uchat", "--against", vendor)
    #expect(verified.code == 0, "after \(kills) kills, seed \(seed): \(verified.output)")
    #expect(verified.output.contains("1500"), "\(verified.output)")
  }

  struct Pair: Sendable, CustomTestStringConvertible {
    var from: String
    var to: String
    var testDescription: String { "\(from) to \(to)" }
  }

  /// The rescue from LeanCloud has tests of its own, above and in `RescueKillTests`.
  static let pairs = [
    Pair(from: "openim", to: "leancloud"), Pair(from: "sendbird", to: "leancloud"),
    Pair(from: "openim", to: "sendbird"), Pair(from: "sendbird", to: "openim"),
  ]

  @Test("a whole move killed at random points ends equal", arguments: pairs)
  func move(_ pair: Pair) throws {
    let isStress = ProcessInfo.processInfo.environment["UNIFIEDCHAT_STRESS"] == "1"
    let (channels, messages, kills) = isStress ? (6, 2000, Self.points) : (2, 40, 6)
    let tool = try Tool()
    defer { tool.remove() }
    try tool.write(Self.records(channels: channels, messages: messages), to: "r.jsonl")
    try move(pair, channels * messages, in: tool, seed: 31, points: kills)
  }

  /// Moves the records of `r.jsonl`, killed again and again, and reads all `messages` of them back.
  private func move(
    _ pair: Pair, _ messages: Int, in tool: Tool, seed: UInt64, points: Int, longest milliseconds: UInt32 = 220
  ) throws {
    try tool.write("emulated-secret\n", to: "secret")
    let source = try RunningEmulator(pair.from, in: tool, load: "r.jsonl")
    defer { source.stop() }
    let target = try RunningEmulator(pair.to, in: tool)
    defer { target.stop() }
    try tool.write(
      Self.configuration([(pair.from, source.baseURL), (pair.to, target.baseURL)]), to: "unifiedchat.json")
    let words = ["--from", pair.from, "--to", pair.to, "--archive", "m.uchat"]
    let done = try Self.killing(
      ["migrate", "run", "--no-verify"] + words, in: tool, seed: seed, points: points, longest: milliseconds)
    let last = try tool.run(["migrate", "resume", "--json"] + words)
    #expect(last.code == 0, "after \(done) kills: \(last.errors)")
    let verified = try tool.run("verify", "--archive", "m.uchat", "--against", pair.to)
    #expect(verified.code == 0, "after \(done) kills: \(verified.output.suffix(2000))")
    #expect(verified.output.contains("all \(messages) messages"), "\(verified.output.suffix(2000))")
  }

  /// Real logs from everywhere to everywhere: `make pairs`. They lie in the folder that UNIFIEDCHAT_DATA names.
  struct RealMove: Sendable, CustomTestStringConvertible {
    var logs: String
    var pair: Pair
    var path: String {
      let usual = Tool.root.deletingLastPathComponent().appendingPathComponent("shared/data").path
      return (ProcessInfo.processInfo.environment["UNIFIEDCHAT_DATA"] ?? usual) + "/\(logs)"
    }
    var testDescription: String { "\(logs), \(pair)" }
  }

  static let realMoves: [RealMove] = {
    guard ProcessInfo.processInfo.environment["UNIFIEDCHAT_STRESS"] == "1" else { return [] }
    let vendors = ["leancloud", "openim", "sendbird"]
    let pairs = vendors.flatMap { from in vendors.filter { $0 != from }.map { Pair(from: from, to: $0) } }
    return ["kdconv-zh", "ubuntu-irc"].flatMap { logs in pairs.map { RealMove(logs: logs, pair: $0) } }
  }()

  @Test(
    "real logs moved from everywhere to everywhere, killed twenty times",
    .enabled(if: !realMoves.isEmpty, "takes half an hour: make pairs"), arguments: realMoves)
  func real(_ move: RealMove) throws {
    // Who asks for these moves is not told that nothing was moved by a green test.
    try #require(FileManager.default.fileExists(atPath: move.path), "no logs at \(move.path): UNIFIEDCHAT_DATA names their folder")
    let tool = try Tool()
    defer { tool.remove() }
    #expect(try tool.run("seed", "--from", move.path, "--to", "r.jsonl").code == 0)
    let sent = try String(contentsOf: tool.folder.appendingPathComponent("r.jsonl"), encoding: .utf8)
      .split(separator: "\n").count { $0.contains("\"type\":\"message\"") }
    try #require(sent > 0)
    try self.move(move.pair, sent, in: tool, seed: 20, points: 20, longest: 6000)
  }

  @Test("a pull killed at random points gives the same archive as one that was let be", arguments: [UInt64(21)])
  func pull(seed: UInt64) throws {
    let tool = try Tool()
    defer { tool.remove() }
    try tool.write(Self.records(), to: "r.jsonl")
    try tool.write("emulated-secret\n", to: "secret")
    let emulator = try RunningEmulator("leancloud", in: tool, load: "r.jsonl")
    defer { emulator.stop() }
    try tool.write(Self.configuration([("leancloud", emulator.baseURL)]), to: "unifiedchat.json")
    let kills = try Self.killing(["archive", "pull", "--to", "killed.uchat"], in: tool, seed: seed)
    #expect(try tool.run("archive", "pull", "--to", "killed.uchat").code == 0)
    #expect(try tool.run("archive", "pull", "--to", "whole.uchat").code == 0)
    let verified = try tool.run("archive", "verify", "whole.uchat", "--copy", "killed.uchat")
    #expect(verified.code == 0, "after \(kills) kills, seed \(seed): \(verified.output)\(verified.errors)")
    #expect(verified.output.contains("1500 messages"), "\(verified.output)")
  }
}
