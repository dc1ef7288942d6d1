import ChatJSON
import Foundation
import UnifiedChat

/// Walks the JSON of a configuration, keeps what is right and collects what is not.
struct ConfigurationChecker {
  let registry: AdapterRegistry
  let folder: String
  var problems: [ConfigurationProblem] = []

  /// The keys that may stand in each object; a test compares them with the schema.
  static let keys: [String: [String]] = [
    "": ["$schema", "use", "profiles"],
    "profile": [
      "vendor", "model", "appID", "endpoints", "credentials", "cache", "retry", "log", "options",
    ],
    "endpoints": ["api", "realtime", "router"],
    "credentials": ["appKey", "token", "admin"],
    "secret": ["env", "file", "keychain"],
    "cache": ["directory", "maxBytes"],
    "retry": ["maxAttempts", "baseDelaySeconds", "maxDelaySeconds", "requestTimeoutSeconds"],
  ]

  mutating func configuration(_ json: JSONValue) -> ChatConfiguration? {
    guard let root = object(json, at: "", keys: Self.keys[""]) else { return nil }
    _ = string(root, "$schema", at: "")
    let use = requiredString(root, "use", at: "")
    var profiles: [String: Profile] = [:]
    if let json = root["profiles"] {
      for member in object(json, at: "/profiles", keys: nil)?.members ?? [] {
        profiles[member.key] = profile(member.value, name: member.key, at: "/profiles\(JSONPointer.escape(member.key))")
      }
      let names = json.object?.keys ?? []
      if names.isEmpty, json.object != nil { add("/profiles", "no profile", "describe at least one vendor") }
      if let use, !names.isEmpty, !names.contains(use) {
        add("/use", "there is no profile \"\(use)\"", suggest(use, names, "profiles"))
      }
    } else {
      add("/profiles", "missing", "add an object with one profile per app and vendor")
    }
    return use.map { ChatConfiguration(use: $0, profiles: profiles) }
  }

  private mutating func profile(_ json: JSONValue, name: String, at place: String) -> Profile? {
    guard let object = object(json, at: place, keys: Self.keys["profile"]) else { return nil }
    guard let vendor = requiredString(object, "vendor", at: place) else { return nil }
    var profile = Profile(name: name, vendor: VendorName(vendor))
    profile.model = string(object, "model", at: place)
    profile.appID = string(object, "appID", at: place)
    profile.endpoints = endpoints(object["endpoints"], at: place + "/endpoints")
    profile.credentials = credentials(object["credentials"], at: place + "/credentials")
    profile.cache = cache(object["cache"], at: place + "/cache")
    profile.retry = retry(object["retry"], at: place + "/retry")
    if let level = string(object, "log", at: place) {
      let levels = Profile.LogLevel.allCases.map(\.rawValue)
      if let known = Profile.LogLevel(rawValue: level) {
        profile.logLevel = known
      } else {
        add(place + "/log", "\"\(level)\" is no log level", suggest(level, levels, "levels"))
      }
    }
    if let options = object["options"] {
      for member in self.object(options, at: place + "/options", keys: nil)?.members ?? [] {
        profile.options[member.key] = JSONText(unchecked: member.value.text())
      }
    }
    checkRules(profile, at: place)
    return profile
  }

  /// What the vendor itself demands and allows.
  private mutating func checkRules(_ profile: Profile, at place: String) {
    guard let entry = registry.entries.first(where: { $0.vendor == profile.vendor }) else {
      let known = registry.entries.map(\.vendor.rawValue)
      return add(
        place + "/vendor", "no vendor is called \"\(profile.vendor)\"",
        suggest(profile.vendor.rawValue, known, "vendors"))
    }
    let rules = entry.rules
    if let model = profile.model, !rules.models.contains(model) {
      add(
        place + "/model", rules.models.isEmpty ? "\(profile.vendor) has no models" : "no model is called \"\(model)\"",
        rules.models.isEmpty ? "remove it" : suggest(model, rules.models, "models"))
    }
    if rules.needsAppID, profile.appID == nil {
      add(place + "/appID", "missing", "\(profile.vendor) needs the id of the app")
    }
    if rules.needsAPIEndpoint, profile.endpoints.api == nil {
      add(place + "/endpoints/api", "missing", "\(profile.vendor) has no cloud of its own: name your server")
    }
    if rules.needsAppKey, profile.credentials.appKey == nil {
      add(place + "/credentials/appKey", "missing", "\(profile.vendor) needs the key of the app")
    }
    let options = rules.options.keys.sorted()
    for name in profile.options.keys.sorted() where !options.contains(name) {
      add(
        "\(place)/options\(JSONPointer.escape(name))", "\(profile.vendor) has no such option",
        options.isEmpty ? "remove it" : suggest(name, options, "options"))
    }
  }

  private mutating func endpoints(_ json: JSONValue?, at place: String) -> Profile.Endpoints {
    guard let json, let object = object(json, at: place, keys: Self.keys["endpoints"]) else { return .init() }
    return Profile.Endpoints(
      api: url(object, "api", at: place, schemes: ["https", "http"]),
      realtime: url(object, "realtime", at: place, schemes: ["wss", "ws"]),
      router: url(object, "router", at: place, schemes: ["https", "http"]))
  }

  private mutating func credentials(_ json: JSONValue?, at place: String) -> Profile.Credentials {
    guard let json, let object = object(json, at: place, keys: Self.keys["credentials"]) else { return .init() }
    return Profile.Credentials(
      appKey: secret(object["appKey"], at: place + "/appKey"), token: secret(object["token"], at: place + "/token"),
      admin: secret(object["admin"], at: place + "/admin"))
  }

  private mutating func secret(_ json: JSONValue?, at place: String) -> SecretReference? {
    let mend = "write {\"env\": \"NAME\"}, {\"file\": \"path\"} or {\"keychain\": \"item\"}"
    guard let json else { return nil }
    if let literal = json.string {
      guard !literal.isEmpty else {
        add(place, "an empty secret", mend)
        return nil
      }
      problems.append(
        ConfigurationProblem(.warning, at: place, "a secret stands in the file itself", mend: mend))
      return .literal(literal)
    }
    guard let object = object(json, at: place, keys: Self.keys["secret"]) else { return nil }
    guard object.count == 1, let member = object.members.first, Self.keys["secret"]?.contains(member.key) == true else {
      // An unknown key has been told already.
      if object.keys.allSatisfy({ Self.keys["secret"]?.contains($0) == true }) {
        add(place, "needs exactly one of env, file, keychain", mend)
      }
      return nil
    }
    guard let value = requiredString(object, member.key, at: place) else { return nil }
    switch member.key {
    case "env": return .environment(value)
    case "file": return .file(absolute(value))
    default: return .keychain(value)
    }
  }

  private mutating func cache(_ json: JSONValue?, at place: String) -> Profile.CacheSettings {
    guard let json, let object = object(json, at: place, keys: Self.keys["cache"]) else { return .init() }
    return Profile.CacheSettings(
      directory: string(object, "directory", at: place).map { absolute($0) },
      maxBytes: wholeNumber(object, "maxBytes", at: place, atLeast: 1_000_000))
  }

  private mutating func retry(_ json: JSONValue?, at place: String) -> Profile.RetrySettings {
    var settings = Profile.RetrySettings()
    guard let json, let object = object(json, at: place, keys: Self.keys["retry"]) else { return settings }
    settings.maxAttempts = wholeNumber(object, "maxAttempts", at: place, atLeast: 1).map { Int(clamping: $0) }
    if let base = seconds(object, "baseDelaySeconds", at: place) { settings.baseDelay = base }
    if let limit = seconds(object, "maxDelaySeconds", at: place) { settings.maxDelay = limit }
    if let limit = seconds(object, "requestTimeoutSeconds", at: place) { settings.requestTimeout = limit }
    if settings.maxDelay < settings.baseDelay {
      add(place + "/maxDelaySeconds", "shorter than baseDelaySeconds", "make it at least as long")
    }
    return settings
  }

  // MARK: Values

  private mutating func add(_ place: String, _ what: String, _ mend: String) {
    problems.append(ConfigurationProblem(at: place, what, mend: mend))
  }

  private func suggest(_ name: String, _ names: [String], _ kind: String) -> String {
    if let near = NearestName.of(name, in: names) { return "did you mean \"\(near)\"?" }
    return names.isEmpty ? "no \(kind) are known" : "known \(kind): \(names.joined(separator: ", "))"
  }

  private mutating func object(_ json: JSONValue, at place: String, keys: [String]?) -> JSONObject? {
    guard let object = json.object else {
      add(place, "must be an object, not \(json.typeName)", "write {…}")
      return nil
    }
    for key in object.keys where keys.map({ !$0.contains(key) }) ?? false {
      add("\(place)\(JSONPointer.escape(key))", "unknown key", suggest(key, keys ?? [], "keys"))
    }
    return object
  }

  private mutating func string(_ object: JSONObject, _ key: String, at place: String) -> String? {
    guard let value = object[key] else { return nil }
    guard let text = value.string, !text.isEmpty else {
      add(
        "\(place)\(JSONPointer.escape(key))", value.string == nil ? "must be a string, not \(value.typeName)" : "is empty",
        "write a text in quotes, or remove the key")
      return nil
    }
    return text
  }

  private mutating func requiredString(_ object: JSONObject, _ key: String, at place: String) -> String? {
    if object[key] == nil { add("\(place)/\(key)", "missing", "add \"\(key)\": \"…\"") }
    return string(object, key, at: place)
  }

  private mutating func url(_ object: JSONObject, _ key: String, at place: String, schemes: [String]) -> String? {
    guard let text = string(object, key, at: place) else { return nil }
    let parts = URLComponents(string: text)
    guard let scheme = parts?.scheme, schemes.contains(scheme.lowercased()), parts?.host?.isEmpty == false else {
      add("\(place)/\(key)", "no URL of this kind", "write \(schemes[0])://host or \(schemes[1])://host:port")
      return nil
    }
    if parts?.user != nil || parts?.password != nil {
      add("\(place)/\(key)", "holds a user name or password", "credentials stand under \"credentials\", never in a URL")
    }
    if let port = parts?.port, !(1...65_535).contains(port) {
      add("\(place)/\(key)", "has the port \(port)", "ports go from 1 to 65535")
    }
    if scheme.lowercased() == schemes[1], let host = parts?.host, !Self.isThisMachine(host) {
      problems.append(
        ConfigurationProblem(
          .warning, at: "\(place)/\(key)", "not encrypted: tokens and messages can be read on the way",
          mend: "write \(schemes[0])://, unless the whole way is yours"))
    }
    return text
  }

  private static func isThisMachine(_ host: String) -> Bool {
    let name = host.lowercased().trimmingCharacters(in: ["[", "]"])
    return name == "localhost" || name.hasSuffix(".localhost") || name == "::1"
      || (name.hasPrefix("127.") && name.allSatisfy { $0.isNumber || $0 == "." })
  }

  private mutating func wholeNumber(
    _ object: JSONObject, _ key: String, at place: String, atLeast least: Int64
  ) -> Int64? {
    guard let value = object[key] else { return nil }
    guard let number = value.int, number >= least else {
      add("\(place)/\(key)", "must be a whole number of at least \(least)", "correct or remove it")
      return nil
    }
    return number
  }

  private mutating func seconds(_ object: JSONObject, _ key: String, at place: String) -> Duration? {
    guard let value = object[key] else { return nil }
    guard let number = value.double, number > 0, number <= 86_400 else {
      add("\(place)/\(key)", "must be a number of seconds above 0, at most a day", "correct or remove it")
      return nil
    }
    return .milliseconds(Int64(number * 1000))
  }

  private func absolute(_ path: String) -> String {
    let expanded = (path as NSString).expandingTildeInPath
    guard !expanded.hasPrefix("/"), !folder.isEmpty else { return expanded }
    return (folder as NSString).appendingPathComponent(expanded)
  }
}
