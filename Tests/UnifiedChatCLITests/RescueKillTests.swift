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

/// A service that is read into an archive and killed again and again, with a crowd of messages in one millisecond.
@Suite("A rescue killed anywhere ends whole", .serialized)
struct RescueKillTests {
  struct Size: Sendable, CustomTestStringConvertible {
    var messages: Int
    /// As many of them have one and the same time.
    var crowd: Int
    var kills: Int
    /// The longest that a run is let be.
    var milliseconds: UInt32
    var testDescription: String { "\(messages) messages, \(crowd) of one millisecond, \(kills) kills" }
  }

  /// The large one takes minutes, so it runs where it is asked for.
  static var sizes: [Size] {
    let small = Size(messages: 3000, crowd: 2000, kills: 5, milliseconds: 300)
    let large = Size(messages: 100_000, crowd: 2000, kills: 20, milliseconds: 2000)
    return ProcessInfo.processInfo.environment["UNIFIEDCHAT_STRESS"] == "1" ? [small, large] : [small]
  }

  /// One channel holds the crowd, the others share the rest; every third message repeats a text.
  static func write(_ size: Size, in tool: Tool) throws {
    let channels = 10
    var lines: [JSONValue] = (0..<20).map { Record.user(UserRecord(user: User(id: UserID("user-\($0)")))).json() }
    let ids = (0..<channels).map { ChannelID("c0ffee00c0ffee00c0ffee0\($0)") }
    for id in ids {
      lines.append(Record.channel(ChannelRecord(channel: Channel(id: id, kind: .group))).json())
      for user in 0..<20 {
        let member = Member(user: User(id: UserID("user-\(user)")))
        lines.append(Record.member(MemberRecord(channel: id, member: member)).json())
      }
    }
    for number in 0..<size.messages {
      let isInCrowd = number < size.crowd
      let channel = isInCrowd ? 0 : number % channels
      let name = String(number)
      let message = Message(
        channel: ids[channel], id: MessageID("msg-" + name + String(repeating: "x", count: 18 - name.utf8.count)),
        sender: UserID("user-\(number % 20)"),
        createdAt: Timestamp(milliseconds: isInCrowd ? 1_600_000_000_000 : 1_500_000_000_000 + Int64(number / 2)),
        content: .text(number % 3 == 0 ? "again" : "text \(number) 你好"))
      lines.append(Record.message(MessageRecord(message: message)).json())
    }
    try tool.write(lines.map { $0.text() + "\n" }.joined(), to: "r.jsonl")
    try tool.write("emulated-secret\n", to: "secret")
  }

  @Test("complete, and equal to an archive that was let be", arguments: sizes)
  func pull(_ size: Size) throws {
    let tool = try Tool()
    defer { tool.remove() }
    try Self.write(size, in: tool)
    let emulator = try Self.emulator(in: tool)
    defer {
      emulator.process.terminate()
      emulator.process.waitUntilExit()
    }
    let profile = """
      {"use": "app", "profiles": {"app": {"vendor": "leancloud", "appID": "kill-app",
        "endpoints": {"api": "\(emulator.baseURL)"}, "credentials": {"admin": {"file": "secret"}, "appKey": {"file": "secret"}}}}}
      """
    try tool.write(profile, to: "unifiedchat.json")
    let check = try tool.run("archive", "pull", "--to", "killed.uchat", "--check")
    #expect(check.code == 0 && check.output.contains("keys and endpoints are right"), "\(check.errors)")
    let lines = check.output.split(separator: "\n")
    #expect(lines.count { $0.contains("a pull takes about") } == 1, "\(check.output)")
    #expect(lines.contains { $0.hasSuffix("requests, files not counted, at 30.0 requests a second") }, "\(check.output)")
    #expect(lines.contains { $0.hasPrefix("messages: ") && !$0.contains("not told") }, "\(check.output)")
    let kills = try Self.kill(["archive", "pull", "--to", "killed.uchat"], in: tool, size)
    let last = try tool.run("archive", "pull", "--to", "killed.uchat")
    #expect(last.code == 0, "after \(kills) kills: \(last.errors)")
    #expect(try tool.run("archive", "pull", "--to", "whole.uchat").code == 0)
    let verified = try tool.run("archive", "verify", "whole.uchat", "--copy", "killed.uchat")
    #expect(verified.code == 0, "after \(kills) kills: \(verified.output)\(verified.errors)")
    #expect(verified.output.contains("\(size.messages) messages"), "\(verified.output)")
  }

  /// The emulator as a process of its own, which outlives the kills.
  private static func emulator(in tool: Tool) throws -> (process: Process, baseURL: String) {
    let pipe = Pipe()
    let process = try tool.start(
      ["emulate", "--vendor", "leancloud", "--limits", "off", "--app", "kill-app", "--load", "r.jsonl"], output: pipe)
    var line = ""
    while !line.contains("\n"), let bytes = try pipe.fileHandleForReading.read(upToCount: 1), !bytes.isEmpty {
      line += String(decoding: bytes, as: UTF8.self)
    }
    return (process, line.split(separator: " ").last.map { $0.trimmingCharacters(in: .newlines) } ?? "")
  }

  /// Starts the command and kills it, again and again, at moments that the kill's number decides; a run that ends by
  /// itself ends the loop.
  private static func kill(_ words: [String], in tool: Tool, _ size: Size) throws -> Int {
    for kill in 0..<size.kills {
      let process = try tool.start(words)
      // Real time is the point here: the moment is to fall anywhere in the run.
      usleep(20_000 + UInt32(kill * 7919 % 997) * size.milliseconds)
      guard process.isRunning else { return kill }
      Foundation.kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
    }
    return size.kills
  }
}
