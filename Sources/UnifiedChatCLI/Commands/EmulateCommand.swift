import AllAdapters
import ChatEmulation
import ChatJSON
import ChatTransport
import Foundation

/// `unifiedchat emulate`
enum EmulateCommand {
  static let command = Command(
    name: "emulate", summary: "run a vendor's emulator on this machine",
    options: [
      .value("vendor", "NAME", "whose", required: true, choices: AllAdapters.emulators.map(\.vendor)),
      .value("port", "N", "0 takes a free one (default 0)"),
      .value("control-port", "N", "serve the control interface there; its token is printed once"),
      .value("listen", "ADDRESS", "another address than 127.0.0.1; other machines can then reach it"),
      .value("allow-host", "NAME", "also serve clients that call this machine by that name", repeatable: true),
      .value("allow-origin", "ORIGIN", "also serve web pages from there, https://app.example", repeatable: true),
      .value("data", "DIR", "keep the state there between runs"),
      .value("load", "FILE", "neutral records (JSON Lines), loaded at the start", repeatable: true),
      .value("user", "ID:TOKEN", "a user that exists from the start", repeatable: true),
      .value("auth", "MODE", "open lets anybody in", choices: ["open", "required"]),
      .value("limits", "MODE", "the vendor's rates and sizes (default real)", choices: ["real", "off"]),
      .value("app", "ID", "application id (default emulated-app)"),
      .value("admin-secret-file", "FILE", "file with the admin secret (default: emulated-secret)"),
      .value("set", "NAME=JSON", "a switch of the vendor", repeatable: true),
      .value("seed", "N", "makes ids and jitter repeatable (default 1)"),
      .flag("coverage", "at the end, print which endpoints were called and which do not exist"),
    ],
    examples: [
      "unifiedchat emulate --vendor openim --port 10002 --user alice:tok-alice",
      "unifiedchat emulate --vendor leancloud --load chats.jsonl --data ./state --coverage",
    ], run: run)

  private static func run(_ invocation: Invocation) async throws -> ExitCode {
    guard let factory = AllAdapters.emulator(for: invocation.value("vendor") ?? "") else { return .usage }
    var settings = EmulatorRunSettings(
      address: invocation.value("listen") ?? "127.0.0.1",
      port: UInt16(try invocation.integer("port", in: 0...65535) ?? 0))
    settings.controlPort = try invocation.integer("control-port", in: 0...65535).map { UInt16($0) }
    settings.dataDirectory = invocation.value("data")
    settings.recordFiles = invocation.all("load")
    settings.printsCoverage = invocation.has("coverage")
    settings.access = EmulatorAccess(hosts: invocation.all("allow-host"), origins: invocation.all("allow-origin"))
    if settings.controlPort != nil { settings.journal = .on }
    try await EmulatorServer.run(factory, options: try options(invocation), settings: settings) { event in
      show(event, vendor: factory.vendor)
    }
    return .success
  }

  private static func options(_ invocation: Invocation) throws -> EmulatorOptions {
    var options = EmulatorOptions()
    options.seed = UInt64(try invocation.integer("seed", in: 0...Int.max) ?? 1)
    options.limits = invocation.value("limits") == "off" ? .off : .real
    options.openAuthentication = invocation.value("auth") == "open"
    if let app = invocation.value("app") { options.applicationID = app }
    if let file = invocation.value("admin-secret-file") { options.adminSecret = try Secrets.read(file: file) }
    for pair in invocation.all("user") {
      let parts = pair.split(separator: ":", maxSplits: 1).map(String.init)
      guard parts.count == 2 else { throw Failure(.usage, "--user takes ID:TOKEN, for example alice:tok-alice") }
      options.users.append((id: parts[0], token: parts[1]))
    }
    for pair in invocation.all("set") {
      let parts = pair.split(separator: "=", maxSplits: 1).map(String.init)
      guard parts.count == 2, let value = try? JSONValue(parsing: parts[1]) else {
        // Of the value nothing: it may be a secret.
        throw Failure(
          .usage, "--set takes NAME=JSON, for example historyForNewcomers=true; \"\(parts.first ?? "")\" has no JSON value")
      }
      options.settings[parts[0]] = value
    }
    return options
  }

  private static func show(_ event: EmulatorServer.RunEvent, vendor: String) {
    switch event {
    case .warning(let text): Standard.error("warning: \(text)")
    case .restored(let file): Standard.error("state restored from \(file)")
    case .loaded(let file, let records): Standard.error("\(records) records loaded from \(file)")
    case .listening(let baseURL, let control):
      Standard.line("\(vendor) emulator ready at \(baseURL)")
      if let control { Standard.line("control at \(control.baseURL) with token \(control.token)") }
    case .saved(let file): Standard.error("state saved to \(file)")
    case .coverage(let table): Standard.line(table)
    }
  }
}
