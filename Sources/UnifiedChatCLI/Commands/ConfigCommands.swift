import AllAdapters
import Foundation

/// `unifiedchat config …`
enum ConfigCommands {
  static let command = Command(
    name: "config", summary: "check the configuration file, or write a first one", children: [check, initialise])

  private static let check = Command(
    name: "check", summary: "report everything that is wrong at once", options: [Settings.configOption],
    examples: ["unifiedchat config check --config unifiedchat.json"]
  ) { invocation in
    let settings = try Settings(invocation)
    for profile in settings.configuration.profiles.values.sorted(by: { $0.name < $1.name }) {
      Secrets.warn(profile.credentials)
    }
    let names = settings.configuration.profiles.keys.sorted().map { name in
      name == settings.configuration.use ? "\(name) (in use)" : name
    }
    Standard.line("no errors; profiles: \(names.joined(separator: ", "))")
    return .success
  }

  private static let initialise = Command(
    name: "init", summary: "write a configuration with a profile for each vendor's emulator",
    options: [Settings.configOption], examples: ["unifiedchat config init"]
  ) { invocation in
    let path = invocation.value("config") ?? "unifiedchat.json"
    guard !FileManager.default.fileExists(atPath: path) else {
      throw Failure(.configuration, "\(path) exists; it is left as it is. Name another file with --config")
    }
    try Files.write(Array(template.utf8), to: path)
    Standard.line("\(path) written; start the emulators with: unifiedchat emulate --vendor NAME --port N")
    return .success
  }

  private static let template = """
    {
      "use": "sendbird",
      "profiles": {
        "sendbird": {
          "vendor": "sendbird",
          "appID": "emulated-app",
          "endpoints": { "api": "http://127.0.0.1:7001", "realtime": "ws://127.0.0.1:7001" },
          "credentials": { "token": { "env": "CHAT_TOKEN" }, "admin": { "env": "CHAT_ADMIN_SECRET" } }
        },
        "openim": {
          "vendor": "openim",
          "endpoints": { "api": "http://127.0.0.1:7002", "realtime": "ws://127.0.0.1:7002" },
          "credentials": { "token": { "env": "CHAT_TOKEN" }, "admin": { "env": "CHAT_ADMIN_SECRET" } }
        },
        "leancloud": {
          "vendor": "leancloud",
          "appID": "emulated-app",
          "endpoints": {
            "api": "http://127.0.0.1:7003", "realtime": "ws://127.0.0.1:7003", "router": "http://127.0.0.1:7003"
          },
          "credentials": { "appKey": { "env": "CHAT_APP_KEY" }, "admin": { "env": "CHAT_ADMIN_SECRET" } }
        }
      }
    }

    """
}
