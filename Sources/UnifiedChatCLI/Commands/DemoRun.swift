import AllAdapters
import ChatInterchange
import ChatJSON
import ChatSamples
import Dispatch
import Foundation
import UnifiedChat

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The steps of a demo; the program itself does each, as a user would call it.
struct DemoRun {
  let work: DemoFolder
  let services: DemoServices
  let data: String?

  /// A row of the table at the end.
  private struct Row {
    var step: String
    var users = ""
    var channels = ""
    var members = ""
    var messages = ""
    var digest = ""
    var losses = ""
    var seconds: String
    var isGood: Bool
  }

  func run() async throws -> ExitCode {
    var rows: [Row] = []
    rows.append(try await seed())
    try await services.addChatters(work)
    try services.writeConfiguration(work, use: "leancloud")
    rows.append(try pull(expecting: rows[0]))
    for vendor in ["openim", "sendbird"] {
      rows.append(try migrate(to: vendor))
      rows.append(try verify(vendor))
    }
    rows.append(try conformance())
    for vendor in ["leancloud", "openim", "sendbird"] { rows.append(try chat(vendor)) }
    show(rows)
    return rows.allSatisfy(\.isGood) ? .success : .different
  }

  // MARK: Steps

  private func seed() async throws -> Row {
    Standard.line("\n== seed the emulator that is to be left")
    let started = ContinuousClock.now
    let summary = try SeedCommand.write(from: data, to: work.file("seed.jsonl"))
    let loaded = try await services.services["leancloud"]?.host.load(contentsOf: work.file("seed.jsonl")) ?? 0
    let records = summary.users + summary.channels + summary.members + summary.messages + summary.files
    for (kind, count) in summary.leftOut { Standard.line("left out, no record has a place for it: \(count) \(kind)") }
    return Row(
      step: "seed", users: "\(summary.users)", channels: "\(summary.channels)", members: "\(summary.members)",
      messages: "\(summary.messages)", seconds: seconds(since: started), isGood: loaded == records)
  }

  private func pull(expecting seed: Row) throws -> Row {
    Standard.line("\n== archive: unifiedchat archive pull --profile leancloud --to rescue.uchat")
    let started = ContinuousClock.now
    let (code, output) = try call(["archive", "pull", "--profile", "leancloud", "--to", "rescue.uchat", "--json"])
    let json = output.last.flatMap { try? JSONValue(parsing: $0) }
    func number(_ key: String) -> String { json?[key]?.int.map(String.init) ?? "?" }
    var row = Row(
      step: "archive", users: number("users"), channels: number("channels"), members: number("members"),
      messages: number("messages"), seconds: seconds(since: started), isGood: code == 0)
    row.losses = "\(number("unreadable")) unreadable"
    row.isGood = row.isGood && row.channels == seed.channels && row.members == seed.members
      && row.messages == seed.messages && number("unreadable") == "0"
    return row
  }

  private func migrate(to vendor: String) throws -> Row {
    Standard.line("\n== migrate: unifiedchat migrate run --from rescue.uchat --to \(vendor)")
    let started = ContinuousClock.now
    let (code, _) = try call([
      "migrate", "run", "--from", "rescue.uchat", "--to", vendor, "--no-verify", "--report", "load-\(vendor).json",
      "--json",
    ])
    return Row(step: "load into \(vendor)", seconds: seconds(since: started), isGood: code == 0 || code == 1)
  }

  private func verify(_ vendor: String) throws -> Row {
    Standard.line("\n== verify: unifiedchat verify --archive rescue.uchat --against \(vendor)")
    let started = ContinuousClock.now
    let (code, output) = try call([
      "verify", "--archive", "rescue.uchat", "--against", vendor, "--report", "report-\(vendor).html",
      "--report", "report-\(vendor).json", "--json",
    ])
    let json = output.last.flatMap { try? JSONValue(parsing: $0) }
    return Self.row(json, vendor, seconds(since: started), isGood: code == 0)
  }

  private static func row(_ json: JSONValue?, _ vendor: String, _ seconds: String, isGood: Bool) -> Row {
    let check = json?["verification"]
    func number(_ pointer: String) -> String { check?[pointer: pointer]?.int.map(String.init) ?? "?" }
    var row = Row(step: "verify \(vendor)", seconds: seconds, isGood: isGood)
    row.users = number("/usersFound")
    row.channels = number("/signs/=")
    row.messages = number("/totals/found")
    if number("/totals/memberProblems") == "0" { row.members = json?["source"]?["members"]?.int.map(String.init) ?? "?" }
    row.digest = isGood ? "yes" : "NO"
    let fields = json?["fields"]?.array ?? []
    func sum(_ key: String) -> Int64 { fields.reduce(0) { $0 &+ ($1[key]?.int ?? 0) } }
    row.losses = "\(sum("keptElsewhere")) kept elsewhere, \(sum("degraded")) degraded, \(sum("dropped")) dropped"
    return row
  }

  private func conformance() throws -> Row {
    Standard.line("\n== conformance: unifiedchat conformance")
    let started = ContinuousClock.now
    let (code, output) = try call(["conformance", "--html", "conformance.html", "--json", "conformance.json"])
    for line in output { Standard.line(line) }
    return Row(step: "conformance", seconds: seconds(since: started), isGood: code == 0)
  }

  private func chat(_ vendor: String) throws -> Row {
    Standard.line("\n== chat on \(vendor): \"use\": \"\(vendor)\" in unifiedchat.json, then hello-chat")
    let started = ContinuousClock.now
    try services.writeConfiguration(work, use: vendor)
    let (code, output) = try call([], program: "hello-chat")
    for line in output.suffix(3) { Standard.line("  \(line)") }
    let isGood = code == 0 && output.contains { $0.contains("Hello from alice on \(vendor)") }
    return Row(step: "chat on \(vendor)", seconds: seconds(since: started), isGood: isGood)
  }

  // MARK: Tools

  /// Runs a program of this build in the demo's folder and returns its exit code and its output by lines.
  private func call(_ arguments: [String], program: String? = nil) throws -> (code: Int32, lines: [String]) {
    let own = URL(fileURLWithPath: ProcessInfo.processInfo.arguments[0]).resolvingSymlinksInPath()
    let process = Process()
    process.executableURL = program.map { own.deletingLastPathComponent().appendingPathComponent($0) } ?? own
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: work.path)
    let output = Pipe()
    process.standardOutput = output
    do { try process.run() } catch {
      throw Failure(.configuration, "\(process.executableURL?.path ?? "?") cannot be run: build it with make demo")
    }
    // Whoever ends the demo ends the step that it is at, too.
    let sources = [SIGINT, SIGTERM].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      let child = process.processIdentifier
      source.setEventHandler {
        kill(child, number)
        _exit(ExitCode.interrupted.rawValue)
      }
      source.resume()
      return source
    }
    defer {
      for source in sources { source.cancel() }
      for number in [SIGINT, SIGTERM] { signal(number, SIG_DFL) }
    }
    let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    return (process.terminationStatus, lines)
  }

  private func seconds(since started: ContinuousClock.Instant) -> String {
    String(format: "%.1f", (ContinuousClock.now - started) / .seconds(1))
  }

  private func show(_ rows: [Row]) {
    var table = Table(
      head: ["step", "users", "channels", "members", "messages", "digest equal", "losses", "seconds", "good"])
    for row in rows {
      table.rows.append([
        row.step, row.users, row.channels, row.members, row.messages, row.digest, row.losses, row.seconds,
        row.isGood ? "yes" : "NO",
      ])
    }
    Standard.line("\n" + table.text)
    Standard.line("\nreports: \(work.path)/report-openim.html, report-sendbird.html, conformance.html")
  }
}
