import ChatEmulation
import ChatJSON
import ChatTransport
import Foundation
import SendbirdEmulator
import Testing

/// Where Node and the vendor's client are on this machine, if they are.
private enum OfficialClient {
  /// `SendBird.min.js` 3.1.33, at the root of the vendor's SDK repository. Never fetched, never kept here.
  static let path = ProcessInfo.processInfo.environment["UNIFIEDCHAT_SENDBIRD_JS"] ?? ""
  /// Where a new recording is wanted.
  static let recording = ProcessInfo.processInfo.environment["UNIFIEDCHAT_SENDBIRD_RECORDING"]

  static let node: String? = {
    let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
    return folders.map { "\($0)/node" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }()

  static var isHere: Bool { node != nil && FileManager.default.isReadableFile(atPath: path) }

  /// Runs the flow; returns how it ended and what it printed.
  static func run(_ script: URL, _ arguments: [String]) async throws -> (status: Int32, output: String) {
    let log = FileManager.default.temporaryDirectory.appending(path: "sendbird-client-\(UUID().uuidString).log")
    try Data().write(to: log)
    defer { try? FileManager.default.removeItem(at: log) }
    let process = Process()
    process.executableURL = URL(filePath: node ?? "")
    process.arguments = ["--experimental-websocket", "--no-warnings", script.path(percentEncoded: false)] + arguments
    let handle = try FileHandle(forWritingTo: log)
    (process.standardOutput, process.standardError) = (handle, handle)
    let status = try await withCheckedThrowingContinuation { continuation in
      process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
      do { try process.run() } catch { continuation.resume(throwing: error) }
    }
    try handle.close()
    return (status, try String(contentsOf: log, encoding: .utf8))
  }
}

@Suite("The official JavaScript client, running")
struct SendbirdClientTests {
  @Test(
    "it goes through its whole API on the emulator",
    .enabled(
      if: OfficialClient.isHere,
      "needs node in PATH, and the vendor's SendBird.min.js 3.1.33 named by UNIFIEDCHAT_SENDBIRD_JS"),
    .timeLimit(.minutes(3)))
  func wholeFlow() async throws {
    let host = try EmulatorHost(
      EmulatorFactory(SendbirdEmulator.self),
      options: EmulatorOptions(
        users: [("alice", "tok-alice"), ("bob", "tok-bob")], applicationID: "APP", adminSecret: "secret"))
    let server = try await EmulatorServer(host)
    let control = try ControlServer(EmulatorControl(host))
    let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Golden/sendbird/client/flow.js")
    let run = try await OfficialClient.run(
      script,
      [OfficialClient.path, String(server.port), control.baseURL, control.token]
        + [OfficialClient.recording].compactMap(\.self))
    await control.stop()
    await server.stop()
    let bad = run.output.split(separator: "\n").filter { !$0.hasPrefix("ok ") }
    #expect(run.status == 0, "\(bad.joined(separator: "\n"))")
  }
}
