import AllAdapters
import ChatEmulation
import ChatHarness
import ChatInterchange
import ChatJSON
import ChatMigration
import ChatTransport
import Foundation
import UnifiedChat

/// Moving an app from LeanCloud to another vendor, against a Python script that does the same moves through the same
/// REST on the same emulators (`Tests/Peers/migrate.py`). Ours keeps an archive and a ledger meanwhile; the script keeps
/// everything in memory. Then the same with more messages: the rate must not fall.
///
/// `UNIFIEDCHAT_MIGRATION_SIZES=10000,100000,1000000` names other sizes, `UNIFIEDCHAT_BENCH_MESSAGES` a single
/// one as for the other benchmarks; the script is run at the first one only.
let migrationBenchmarks: [Benchmark] = ["sendbird", "openim"].map { target in
  Benchmark(name: "migrate.\(target)") {
    var comparisons: [Comparison] = []
    var first: Double?
    for size in sizes {
      let move = try await Move(messages: size, target: target)
      let ours = try await move.ours()
      if let first {
        comparisons.append(
          Comparison(
            what: "\(size) messages, LeanCloud to \(target)", peer: "the same with \(sizes[0])", ours: ours, theirs: first,
            unit: "msg/s", goal: 0.8))
      } else {
        first = ours
        comparisons.append(
          Comparison(
            what: "\(size) messages, LeanCloud to \(target)", peer: "Python, 8 threads, keep-alive", ours: ours,
            theirs: try await move.peers(), unit: "msg/s", goal: 10))
      }
      await move.end()
    }
    return comparisons
  }
}

private let sizes: [Int] = {
  let environment = ProcessInfo.processInfo.environment
  let text =
    environment["UNIFIEDCHAT_MIGRATION_SIZES"] ?? environment["UNIFIEDCHAT_BENCH_MESSAGES"] ?? "10000,100000"
  let sizes = text.split(separator: ",").compactMap { Int($0) }
  return sizes.isEmpty ? [10_000] : sizes
}()

private struct BenchmarkFailure: Error, CustomStringConvertible { var description: String }

/// An emulated LeanCloud with chats in it, and where they go.
private struct Move {
  private static let secret = "benchmark-secret"
  private static let app = "benchmark-app"

  let messages: Int
  let target: String
  private let folder: String
  private let source: EmulatorServer

  init(messages: Int, target: String) async throws {
    self.messages = messages
    self.target = target
    folder = FileManager.default.temporaryDirectory.path + "/unifiedchat-bench-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let host = try EmulatorHost(try Self.factory("leancloud"), options: Self.options)
    try Self.writeChats(messages, to: folder + "/chats.jsonl")
    _ = try await host.load(contentsOf: folder + "/chats.jsonl")
    source = try await EmulatorServer(host)
  }

  func end() async {
    await source.stop()
    try? FileManager.default.removeItem(atPath: folder)
  }

  private static func factory(_ vendor: String) throws -> EmulatorFactory {
    guard let factory = AllAdapters.emulator(for: vendor) else {
      throw BenchmarkFailure(description: "no emulator is called \(vendor)")
    }
    return factory
  }

  private static var options: EmulatorOptions {
    EmulatorOptions(limits: .off, applicationID: app, adminSecret: secret)
  }

  /// A thousand messages a channel, twenty people in each.
  private static func writeChats(_ count: Int, to path: String) throws {
    var lines: [UInt8] = []
    func add(_ record: Record) { lines += record.json().bytes() + [UInt8(ascii: "\n")] }
    for user in 0..<200 { add(.user(UserRecord(user: User(id: UserID("user\(user)"), name: "User \(user)")))) }
    for channel in 0..<max(1, count / 1000) {
      let id = ChannelID(String(format: "c0ffee%018d", channel))
      let people = (0..<20).map { UserID("user\((channel * 7 + $0) % 200)") }
      add(.channel(ChannelRecord(channel: Channel(id: id, kind: .group, name: "Channel \(channel)"))))
      for (index, user) in people.enumerated() {
        add(.member(MemberRecord(channel: id, member: Member(user: User(id: user), role: index == 0 ? .owner : .member))))
      }
      for number in 0..<min(1000, count) {
        let message = Message(
          channel: id, id: MessageID(String(format: "m%05d-%015d", channel, number)), sender: people[number % 20],
          createdAt: Timestamp(milliseconds: 1_600_000_000_000 + Int64(number) * 1000),
          content: .text("message \(number) of channel \(channel), as long as people write: 你好, how is everything?"))
        add(.message(MessageRecord(message: message)))
      }
    }
    try Data(lines).write(to: URL(fileURLWithPath: path))
  }

  /// Messages a second, by the clock.
  func ours() async throws -> Double {
    let server = try await EmulatorServer(EmulatorHost(try Self.factory(target), options: Self.options))
    let registry = AllAdapters.registry(transports: .system())
    let from = EmulatorHarness.profile(
      vendor: "leancloud", model: nil, baseURL: source.baseURL, applicationID: Self.app)
    let to = EmulatorHarness.profile(vendor: target, model: nil, baseURL: server.baseURL, applicationID: Self.app)
    let environment = AdapterEnvironment(appKey: "key", adminSecret: Self.secret, device: "bench")
    let run = MigrationRun(
      source: try registry.entry(for: "leancloud").makeSource(from, environment),
      archive: folder + "/\(messages).uchat",
      destination: try registry.entry(for: VendorName(target)).makeDestination(to, environment))
    let start = Measure.clock.now
    let report = try await run.run()
    let seconds = (Measure.clock.now - start).seconds
    await server.stop()
    guard report.load.messages == messages else {
      throw BenchmarkFailure(description: "\(report.load.messages) of \(messages) messages arrived")
    }
    return Double(messages) / seconds
  }

  func peers() async throws -> Double {
    let server = try await EmulatorServer(EmulatorHost(try Self.factory(target), options: Self.options))
    let plan: JSONValue = [
      "source": ["url": .string(source.baseURL), "app": .string(Self.app), "secret": .string(Self.secret)],
      "target": ["vendor": .string(target), "url": .string(server.baseURL), "secret": .string(Self.secret)],
    ]
    let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("Tests/Peers/migrate.py")
    let answer = try await Self.python(script.path, input: plan.bytes())
    await server.stop()
    guard let json = try? JSONValue(parsing: answer), let seconds = json["seconds"]?.double,
      json["messages"]?.int == Int64(messages)
    else { throw BenchmarkFailure(description: "the script moved something else: \(answer)") }
    return Double(messages) / seconds
  }

  private static func python(_ script: String, input: [UInt8]) async throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", script]
    let (stdin, stdout) = (Pipe(), Pipe())
    process.standardInput = stdin
    process.standardOutput = stdout
    try process.run()
    try stdin.fileHandleForWriting.write(contentsOf: Data(input))
    try stdin.fileHandleForWriting.close()
    // On a thread of its own: this process serves the script meanwhile.
    let output: Data = await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        let data = (try? stdout.fileHandleForReading.readToEnd()) ?? nil
        process.waitUntilExit()
        continuation.resume(returning: data ?? Data())
      }
    }
    return String(decoding: output, as: UTF8.self)
  }
}
