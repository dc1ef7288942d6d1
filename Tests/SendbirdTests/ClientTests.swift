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

  static let node = program("node")

  private static func program(_ name: String) -> String? {
    let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
    return folders.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// A headless Chromium: `chromium-headless-shell` or `chromium` in `PATH`.
  static let browser = program("chromium-headless-shell") ?? program("chromium")

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
  func wholeFlow() async throws { try await run("flow.js", [:], [OfficialClient.recording].compactMap(\.self)) }

  @Test(
    "with its cache in a browser's database it has what it kept, catches up, and loses and doubles nothing",
    .enabled(
      if: OfficialClient.isHere && OfficialClient.browser != nil,
      "needs node and a headless Chromium in PATH, and the vendor's SendBird.min.js 3.1.33 named by UNIFIEDCHAT_SENDBIRD_JS"),
    .timeLimit(.minutes(4)))
  func localCache() async throws {
    try await run("browser.js", ["hugeGap": 20], [OfficialClient.browser].compactMap(\.self))
  }

  private func run(_ script: String, _ settings: [String: JSONValue], _ more: [String]) async throws {
    let host = try EmulatorHost(
      EmulatorFactory(SendbirdEmulator.self),
      options: EmulatorOptions(
        users: [("alice", "tok-alice"), ("bob", "tok-bob")], applicationID: "APP", adminSecret: "secret",
        settings: settings))
    let server = try await EmulatorServer(host)
    let control = try ControlServer(EmulatorControl(host))
    let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Golden/sendbird/client")
    let run = try await OfficialClient.run(
      folder.appending(path: script),
      [OfficialClient.path, String(server.port), control.baseURL, control.token] + more)
    await control.stop()
    await server.stop()
    let bad = run.output.split(separator: "\n").filter { !$0.hasPrefix("ok ") }
    #expect(run.status == 0, "\(bad.joined(separator: "\n"))")
  }
}
