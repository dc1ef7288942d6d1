import AllAdapters
import ChatEmulation
import ChatHarness
import ChatInterchange
import ChatJSON
import ChatMigration
import ChatSamples
import ChatTransport
import Foundation
import UnifiedChat

/// `unifiedchat demo`: the main job on this machine, from nothing.
enum DemoCommand {
  static let command = Command(
    name: "demo", summary: "three emulators, seed, archive, migrate twice, verify, conformance, chat: on this machine",
    options: [
      .value("data", "PATH", "logs or neutral records (default: the built-in sample)"),
      .value("work", "DIR", "where everything is written, emptied first (default ./demo)"),
    ],
    examples: ["unifiedchat demo", "unifiedchat demo --data logs/ubuntu-irc"], run: run)

  private static func run(_ invocation: Invocation) async throws -> ExitCode {
    let work = try DemoFolder(invocation.value("work") ?? "demo")
    let services = try await DemoServices.start(in: work)
    let outcome: ExitCode
    do {
      outcome = try await DemoRun(work: work, services: services, data: invocation.value("data")).run()
    } catch {
      await services.stop()
      throw error
    }
    await services.stop()
    return outcome
  }
}

/// The folder of a demo. Only one that a demo made, or that does not exist, is emptied.
struct DemoFolder {
  let path: String
  private static let marker = ".unifiedchat-demo"

  init(_ path: String) throws {
    let files = FileManager.default
    let full = URL(fileURLWithPath: path).path
    if files.fileExists(atPath: full) {
      guard files.fileExists(atPath: full + "/" + Self.marker) else {
        throw Failure(.configuration, "\(path) is no demo's folder and is left alone; name another with --work")
      }
      try files.removeItem(atPath: full)
    }
    for folder in [full, full + "/secrets"] {
      try files.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }
    try PrivateFile.replace(full + "/" + Self.marker, with: [], operation: .archive)
    self.path = full
  }

  func file(_ name: String) -> String { path + "/" + name }

  func writeSecret(_ text: String, to name: String) throws {
    try PrivateFile.replace(file("secrets/" + name), with: Array(text.utf8), operation: .archive)
  }
}

/// The three emulators on free ports of 127.0.0.1, and the configuration that leads to them.
struct DemoServices {
  struct Service {
    var host: EmulatorHost
    var server: EmulatorServer
    var profile: Profile
    var environment: AdapterEnvironment
  }

  var services: [String: Service]

  static func start(in work: DemoFolder) async throws -> DemoServices {
    var services: [String: Service] = [:]
    for factory in AllAdapters.emulators {
      let secret = Base64Secret.make()
      let options = EmulatorOptions(
        limits: .off, applicationID: "demo-app", adminSecret: secret, baseURL: "http://127.0.0.1")
      let host = try EmulatorHost(factory, options: options)
      let server = try await EmulatorServer(host)
      let profile = EmulatorHarness.profile(
        vendor: factory.vendor, model: nil, baseURL: server.baseURL, applicationID: "demo-app")
      try work.writeSecret(secret, to: factory.vendor + ".admin")
      try work.writeSecret("demo-key", to: factory.vendor + ".key")
      services[factory.vendor] = Service(
        host: host, server: server, profile: profile,
        environment: AdapterEnvironment(appKey: "demo-key", adminSecret: secret, device: "demo"))
      Standard.line("\(factory.vendor) emulator at \(server.baseURL)")
    }
    return DemoServices(services: services)
  }

  func stop() async {
    for service in services.values { await service.server.stop() }
  }

  /// Registers alice and bob, who chat at the end, and keeps alice's token.
  func addChatters(_ work: DemoFolder) async throws {
    for (vendor, service) in services {
      let entry = try AllAdapters.registry().entry(for: VendorName(vendor))
      let destination = try entry.makeDestination(service.profile, service.environment)
      let users = ["alice", "bob"].map { UserRecord(user: User(id: UserID($0), name: $0.capitalized)) }
      _ = try await destination.putUsers(users)
      if case .token(let token) = try await entry.issueCredential("alice", service.profile, service.environment) {
        try work.writeSecret(token, to: vendor + ".alice")
      }
    }
  }

  /// `unifiedchat.json` with `vendor` in use.
  func writeConfiguration(_ work: DemoFolder, use vendor: String) throws {
    var profiles = JSONObject()
    for (name, service) in services.sorted(by: { $0.key < $1.key }) {
      var credentials: JSONObject = [
        "admin": ["file": .string(work.file("secrets/\(name).admin"))],
        "appKey": ["file": .string(work.file("secrets/\(name).key"))],
      ]
      if FileManager.default.fileExists(atPath: work.file("secrets/\(name).alice")) {
        credentials["token"] = ["file": .string(work.file("secrets/\(name).alice"))]
      }
      var endpoints: JSONObject = [:]
      endpoints["api"] = service.profile.endpoints.api.map { .string($0) }
      endpoints["realtime"] = service.profile.endpoints.realtime.map { .string($0) }
      endpoints["router"] = service.profile.endpoints.router.map { .string($0) }
      profiles[name] = [
        "vendor": .string(name), "appID": "demo-app", "endpoints": .object(endpoints),
        "credentials": .object(credentials), "cache": ["directory": .string(work.file("cache"))],
      ]
    }
    let json: JSONValue = ["use": .string(vendor), "profiles": .object(profiles)]
    try Files.write(json.bytes() + [0x0A], to: work.file("unifiedchat.json"))
  }
}

/// A secret for one demo.
enum Base64Secret {
  static func make() -> String {
    var generator = SystemRandomNumberGenerator()
    return (0..<4).map { _ in String(generator.next() as UInt64, radix: 36) }.joined()
  }
}
