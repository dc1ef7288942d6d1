import ChatJSON
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("Several processes and impatient people", .serialized)
struct SharedRunTests {
  /// What the audit log says was written, by original id, in the order of its lines.
  private func written(_ tool: Tool, _ outcome: String) throws -> [String] {
    try String(contentsOf: tool.folder.appendingPathComponent("audit.jsonl"), encoding: .utf8).split(separator: "\n")
      .compactMap { try? JSONValue(parsing: String($0)) }
      .filter { $0["call"]?.string == "putMessage" && $0["outcome"]?.string == outcome }
      .compactMap { $0["from"]?.string }
  }

  @Test("three processes on one ledger, one of them killed, do everything, and nothing twice", arguments: ["openim", "sendbird"])
  func shared(vendor: String) throws {
    let tool = try Tool()
    let emulator = try RunningEmulator(vendor, in: tool)
    defer {
      emulator.stop()
      tool.remove()
    }
    try tool.write(KillTests.records(channels: 10, messages: 120), to: "r.jsonl")
    try tool.write("emulated-secret\n", to: "secret")
    #expect(try tool.run("archive", "import", "r.jsonl", "--to", "a.uchat").code == 0)
    try tool.write(KillTests.configuration([(vendor, emulator.baseURL)]), to: "unifiedchat.json")
    let words = ["migrate", "run", "--from", "a.uchat", "--to", vendor, "--share", "--parallel", "1", "--audit", "audit.jsonl"]
    let processes = try (0..<3).map { _ in try tool.start(words) }
    // Once the first line is written somebody has begun; whoever is killed then may hold a channel.
    while try !FileManager.default.fileExists(atPath: tool.folder.appendingPathComponent("audit.jsonl").path)
      || written(tool, "written").isEmpty
    {
      guard processes.contains(where: \.isRunning) else { break }
      usleep(2000)
    }
    kill(processes[0].processIdentifier, SIGKILL)
    for process in processes { process.waitUntilExit() }
    #expect(processes[1].terminationStatus == 0 && processes[2].terminationStatus == 0)
    let last = try tool.run(words)
    #expect(last.code == 0, "\(last.output)\(last.errors)")
    let messages = try written(tool, "written")
    #expect(Set(messages).count == messages.count)
    // What the killed process wrote last may have found no line.
    #expect(messages.count > 1000)
    let verified = try tool.run("verify", "--archive", "a.uchat", "--against", vendor)
    #expect(verified.code == 0, "\(verified.output)\(verified.errors)")
    #expect(verified.output.contains("all 1200 messages"), "\(verified.output)")
  }

  @Test("a run that does not share is kept out while another one is at the ledger")
  func excluded() throws {
    let tool = try Tool()
    defer { tool.remove() }
    try tool.write(KillTests.records(channels: 1, messages: 3), to: "r.jsonl")
    try tool.write("emulated-secret\n", to: "secret")
    #expect(try tool.run("archive", "import", "r.jsonl", "--to", "a.uchat").code == 0)
    let silence = try SilentServer()
    defer { silence.stop() }
    try tool.write(KillTests.configuration([("sendbird", silence.baseURL)]), to: "unifiedchat.json")
    let words = ["migrate", "run", "--from", "a.uchat", "--to", "sendbird", "--into-existing"]
    let first = try tool.start(words)
    silence.waitForCaller()
    let second = try tool.run(words)
    #expect(second.code == 6 && second.errors.contains("a.uchat"), "\(second.code) \(second.errors)")
    kill(first.processIdentifier, SIGKILL)
    first.waitUntilExit()
  }

  @Test(
    "interrupted while a service does not answer, it ends at once and says how to go on",
    arguments: [["archive", "pull", "--to", "p.uchat"], ["migrate", "run", "--from", "a.uchat", "--to", "sendbird"]])
  func interrupted(_ words: [String]) throws {
    let tool = try Tool()
    defer { tool.remove() }
    try tool.write(KillTests.records(channels: 1, messages: 3), to: "r.jsonl")
    try tool.write("emulated-secret\n", to: "secret")
    #expect(try tool.run("archive", "import", "r.jsonl", "--to", "a.uchat").code == 0)
    let silence = try SilentServer()
    defer { silence.stop() }
    try tool.write(KillTests.configuration([("sendbird", silence.baseURL)]), to: "unifiedchat.json")
    let errors = Pipe()
    let process = try tool.start(words, errors: errors)
    silence.waitForCaller()
    let asked = ContinuousClock.now
    kill(process.processIdentifier, SIGINT)
    process.waitUntilExit()
    // The request itself would wait for half a minute.
    #expect(ContinuousClock.now - asked < .seconds(15))
    #expect(process.terminationStatus == 130)
    let told = String(decoding: try errors.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    let command = words[0] == "migrate" ? "migrate resume --from a.uchat --to sendbird" : "archive pull --to p.uchat"
    #expect(told.contains("go on with: unifiedchat \(command)"), "\(told)")
  }

  #if os(Linux)
  @Test("on a terminal each stage has a bar of its own; elsewhere the lines are JSON")
  func progress() throws {
    let tool = try Tool()
    let emulator = try RunningEmulator("sendbird", in: tool)
    defer {
      emulator.stop()
      tool.remove()
    }
    try tool.write(KillTests.records(channels: 2, messages: 40), to: "r.jsonl")
    try tool.write("emulated-secret\n", to: "secret")
    #expect(try tool.run("archive", "import", "r.jsonl", "--to", "a.uchat").code == 0)
    try tool.write(KillTests.configuration([("sendbird", emulator.baseURL)]), to: "unifiedchat.json")
    let words = ["migrate", "run", "--from", "a.uchat", "--to", "sendbird"]
    let terminal = try Terminal()
    let run = try tool.start(words, errors: terminal.program)
    run.waitUntilExit()
    let shown = terminal.read()
    #expect(run.terminationStatus == 0)
    let lines = shown.components(separatedBy: "\r\n").map { $0.components(separatedBy: "\r").last ?? "" }
    for stage in ["writing users", "writing messages", "checking users", "checking messages"] {
      #expect(lines.filter { $0.hasPrefix(stage) && $0.contains("[####################]") }.count == 1, "\(lines)")
    }
    #expect(lines.contains { $0.hasPrefix("writing messages") && $0.contains("80 of 80 messages") }, "\(lines)")

    let again = try tool.run(words)
    #expect(again.code == 0)
    let reports = again.errors.split(separator: "\n").filter { !$0.hasPrefix("warning: ") }
      .map { try? JSONValue(parsing: String($0)) }
    #expect(!reports.isEmpty && reports.allSatisfy { $0?["phase"]?.string != nil && $0?["done"]?.int != nil }, "\(again.errors)")
  }
  #endif

  @Test("whom a filter leaves out reaches neither archive nor destination")
  func filtered() throws {
    let tool = try Tool()
    try tool.write(KillTests.records(channels: 2, messages: 40), to: "r.jsonl")
    try tool.write("emulated-secret\n", to: "secret")
    let source = try RunningEmulator("leancloud", in: tool, load: "r.jsonl")
    let target = try RunningEmulator("sendbird", in: tool)
    defer {
      source.stop()
      target.stop()
      tool.remove()
    }
    try tool.write(
      KillTests.configuration([("sendbird", target.baseURL), ("leancloud", source.baseURL)]), to: "unifiedchat.json")
    let run = try tool.run(
      "migrate", "run", "--from", "leancloud", "--to", "sendbird", "--exclude-user", "user-3", "--exclude-channel",
      "c0ffee00c0ffee00c0ffee01", "--report", "r.json")
    #expect(run.code == 0, "\(run.output)\(run.errors)")
    #expect(run.output.hasSuffix("all 35 messages of leancloud in 1 channels are on sendbird, none missing, none doubled.\n"), "\(run.output)")
    #expect(try tool.run("archive", "pull", "--profile", "sendbird", "--to", "b.uchat").code == 0)
    for archive in ["leancloud.uchat", "b.uchat"] {
      #expect(try tool.run("archive", "show", archive, "--user", "user-3").code == 3)
      #expect(try !tool.run("archive", "show", archive).output.contains("c0ffee00c0ffee00c0ffee01"))
    }
  }
}

/// Takes connections and never says a word.
private final class SilentServer: Sendable {
  let baseURL: String
  private let descriptor: Int32

  init() throws {
    #if canImport(Glibc)
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    // A program that never calls fails the test, and does not hang it.
    var patience = timeval(tv_sec: 60, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let port = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
        guard bind(descriptor, name, length) == 0, listen(descriptor, 16) == 0,
          getsockname(descriptor, name, &length) == 0
        else { return UInt16(0) }
        return pointer.pointee.sin_port.bigEndian
      }
    }
    try #require(port != 0)
    self.descriptor = descriptor
    baseURL = "http://127.0.0.1:\(port)"
  }

  func waitForCaller() { _ = accept(descriptor, nil, nil) }
  func stop() { close(descriptor) }
}

#if os(Linux)
/// A terminal that a program believes in.
private final class Terminal {
  let program: FileHandle
  private let descriptor: Int32

  init() throws {
    // The calls of POSIX for this are not in the Glibc module; these are what they do: TIOCSPTLCK and TIOCGPTN.
    descriptor = open("/dev/ptmx", O_RDWR | O_NOCTTY)
    var isLocked: Int32 = 0
    var number: Int32 = 0
    try #require(descriptor >= 0 && ioctl(descriptor, 0x4004_5431, &isLocked) == 0 && ioctl(descriptor, 0x8004_5430, &number) == 0)
    program = try #require(FileHandle(forUpdatingAtPath: "/dev/pts/\(number)"))
  }

  /// What has been written, which is less than a terminal holds back.
  func read() -> String {
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    var text: [UInt8] = []
    var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while Glibc.poll(&poll, 1, 0) > 0, poll.revents & Int16(POLLIN) != 0 {
      let count = Glibc.read(descriptor, &bytes, bytes.count)
      guard count > 0 else { break }
      text += bytes.prefix(count)
    }
    return String(decoding: text, as: UTF8.self)
  }

  deinit { close(descriptor) }
}
#endif
