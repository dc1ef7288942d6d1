import ChatJSON
import Foundation
import Testing
import UnifiedChat

@testable import ChatClient

/// A registry of two vendors that exist nowhere.
private func registry() -> AdapterRegistry {
  func entry(_ vendor: VendorName, _ rules: ProfileRules) -> AdapterRegistry.Entry {
    let refuse = ChatError(.notFound, operation: .configuration)
    return AdapterRegistry.Entry(
      vendor: vendor, capabilities: [:], rules: rules,
      makeAdapter: { _, _ throws(ChatError) in throw refuse }, makeSource: { _, _ throws(ChatError) in throw refuse },
      makeDestination: { _, _ throws(ChatError) in throw refuse })
  }
  return AdapterRegistry([
    entry("cloudy", ProfileRules(models: ["old", "new"], needsAppID: true, needsAppKey: true, options: ["signed": "x"])),
    entry("homely", ProfileRules(needsAPIEndpoint: true)),
  ])
}

private func read(_ text: String) -> ConfigurationFile.Reading {
  ConfigurationFile.read(Array(text.utf8), registry: registry(), folder: "/etc/chat")
}

@Suite("The configuration file")
struct ConfigurationTests {
  static let whole = """
    {"$schema": "config.schema.json", "use": "b", "profiles": {
      "a": {"vendor": "cloudy", "model": "old", "appID": "42", "credentials": {"appKey": {"env": "KEY"},
        "token": {"file": "token.txt"}, "admin": {"keychain": "admin"}}, "log": "debug", "options": {"signed": [1.0]},
        "cache": {"directory": "cache", "maxBytes": 5000000},
        "retry": {"maxAttempts": 5, "baseDelaySeconds": 0.5, "maxDelaySeconds": 8, "requestTimeoutSeconds": 3}},
      "b": {"vendor": "homely", "endpoints": {"api": "http://127.0.0.1:10002", "realtime": "ws://[::1]:10001"}}}}
    """

  @Test("is read whole")
  func whole() throws {
    let reading = read(Self.whole)
    #expect(reading.problems == [])
    let configuration = try #require(reading.configuration)
    let profile = try configuration.profile("a")
    #expect(profile.credentials.token == .file("/etc/chat/token.txt"))
    #expect(profile.credentials.appKey == .environment("KEY"))
    #expect(profile.cache == Profile.CacheSettings(directory: "/etc/chat/cache", maxBytes: 5_000_000))
    #expect(profile.retry.baseDelay == .milliseconds(500) && profile.retry.maxAttempts == 5)
    #expect(profile.options["signed"]?.text == "[1.0]")
    #expect(profile.logLevel == .debug)
    #expect(try configuration.profile().vendor == "homely")
  }

  struct Wrong: CustomTestStringConvertible, Sendable {
    var profile: String
    var place: String
    var says: String
    var testDescription: String { profile }
  }

  @Test(
    "names the place and the mend of each mistake",
    arguments: [
      Wrong(profile: #"{"vendor": "clowdy"}"#, place: "/vendor", says: "did you mean \"cloudy\"?"),
      Wrong(profile: #"{"vendor": "xyz"}"#, place: "/vendor", says: "known vendors: cloudy, homely"),
      Wrong(profile: #"{}"#, place: "/vendor", says: "missing"),
      Wrong(profile: #"{"vendor": 7}"#, place: "/vendor", says: "must be a string"),
      Wrong(profile: #"[]"#, place: "", says: "must be an object"),
      Wrong(profile: #"{"vendor": "homely"}"#, place: "/endpoints/api", says: "name your server"),
      Wrong(
        profile: #"{"vendor": "homely", "endpoints": {"api": "ws://h"}}"#, place: "/endpoints/api", says: "https://host"),
      Wrong(
        profile: #"{"vendor": "homely", "endpoints": {"api": "http://h", "relatime": "ws://h"}}"#,
        place: "/endpoints/relatime", says: "did you mean \"realtime\"?"),
      Wrong(profile: #"{"vendor": "homely", "model": "old"}"#, place: "/model", says: "remove it"),
      Wrong(profile: #"{"vendor": "cloudy", "model": "ol"}"#, place: "/model", says: "did you mean \"old\"?"),
      Wrong(profile: #"{"vendor": "cloudy", "model": "old"}"#, place: "/appID", says: "missing"),
      Wrong(profile: #"{"vendor": "cloudy", "appID": "1"}"#, place: "/credentials/appKey", says: "missing"),
      Wrong(profile: #"{"vendor": "cloudy", "appid": "1"}"#, place: "/appid", says: "did you mean \"appID\"?"),
      Wrong(profile: #"{"vendor": "cloudy", "options": {"singed": 1}}"#, place: "/options/singed", says: "\"signed\""),
      Wrong(profile: #"{"vendor": "homely", "log": "loud"}"#, place: "/log", says: "known levels"),
      Wrong(profile: #"{"vendor": "homely", "retry": {"maxAttempts": 0}}"#, place: "/retry/maxAttempts", says: "at least 1"),
      Wrong(
        profile: #"{"vendor": "homely", "retry": {"baseDelaySeconds": "1"}}"#, place: "/retry/baseDelaySeconds",
        says: "seconds"),
      Wrong(
        profile: #"{"vendor": "homely", "retry": {"baseDelaySeconds": 60}}"#, place: "/retry/maxDelaySeconds",
        says: "shorter"),
      Wrong(profile: #"{"vendor": "homely", "cache": {"maxBytes": 1e3}}"#, place: "/cache/maxBytes", says: "whole number"),
      Wrong(
        profile: #"{"vendor": "homely", "credentials": {"token": {"enf": "A"}}}"#, place: "/credentials/token/enf",
        says: "did you mean \"env\"?"),
      Wrong(
        profile: #"{"vendor": "homely", "credentials": {"token": {"env": "A", "file": "b"}}}"#,
        place: "/credentials/token", says: "exactly one"),
      Wrong(
        profile: #"{"vendor": "homely", "credentials": {"token": ""}}"#, place: "/credentials/token", says: "empty"),
    ])
  func mistakes(_ wrong: Wrong) {
    let reading = read(#"{"use": "p", "profiles": {"p": \#(wrong.profile)}}"#)
    #expect(reading.configuration == nil)
    let hit = reading.errors.first { $0.place == "/profiles/p" + wrong.place }
    #expect(hit?.description.contains(wrong.says) == true, "\(reading.problems)")
  }

  @Test("tells all mistakes at once, and a literal secret as a warning")
  func together() {
    let reading = read(
      #"{"uze": 1, "profiles": {"p": {"vendor": "nobody", "credentials": {"token": "s3cr3t"}, "log": 5}}}"#)
    #expect(
      reading.problems.map(\.place) == [
        "/uze", "/use", "/profiles/p/credentials/token", "/profiles/p/log", "/profiles/p/vendor",
      ])
    #expect(reading.warnings.map(\.place) == ["/profiles/p/credentials/token"])
    #expect(!reading.problems.description.contains("s3cr3t"))
  }

  @Test(
    "warns of a way that is not encrypted, but for this machine",
    arguments: [
      ("http://chat.example", "ws://chat.example:1", ["api", "realtime"]),
      ("https://chat.example", "wss://chat.example", []), ("http://localhost:1", "ws://127.0.0.1:1", []),
      ("http://[::1]:1", "ws://127.evil.example", ["realtime"]),
    ])
  func plain(_ api: String, _ realtime: String, _ places: [String]) {
    let reading = read(
      #"{"use": "p", "profiles": {"p": {"vendor": "homely", "endpoints": {"api": "\#(api)", "realtime": "\#(realtime)"}}}}"#)
    #expect(reading.configuration != nil)
    #expect(reading.warnings.map(\.place) == places.map { "/profiles/p/endpoints/" + $0 })
  }

  @Test("knows the profile that was meant")
  func use() throws {
    let reading = read(#"{"use": "pord", "profiles": {"prod": {"vendor": "homely", "endpoints": {"api": "http://h"}}}}"#)
    #expect(reading.errors.map(\.description) == ["error at /use: there is no profile \"pord\"; did you mean \"prod\"?"])
  }

  @Test(
    "tells line and column where it is no JSON",
    arguments: [
      ("{\n  \"use\": \"a\",\n  \"ü\": tru\n}", "line 3, column 11"), ("", "line 1, column 1"),
      ("{\"use\": \"a\",}", "line 1, column 13"),
    ])
  func syntax(_ text: String, _ place: String) {
    let reading = read(text)
    #expect(reading.errors.map(\.place) == [place])
  }

  @Test("a missing file is one line")
  func missing() {
    let reading = ConfigurationFile.read(path: "/nowhere/unifiedchat.json", registry: registry())
    #expect(
      reading.problems.map(\.description) == [
        "error at /nowhere/unifiedchat.json: there is no such file; make one, or name another with --config"
      ])
  }

  @Test("allows the keys that its schema allows")
  func schema() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let file = try Data(contentsOf: root.appending(path: "Schemas/config.schema.json"))
    let schema = try JSONValue(parsing: Array(file))
    func keys(_ object: JSONValue?) -> Set<String> { Set(object?.object?["properties"]?.object?.keys ?? []) }
    let definitions = try #require(schema.object?["$defs"]?.object)
    #expect(keys(schema) == Set(ConfigurationChecker.keys[""] ?? []))
    for (name, allowed) in ConfigurationChecker.keys where !name.isEmpty {
      let definition = definitions[name]
      let object = definition?.object?["oneOf"]?.array?.last ?? definition
      #expect(keys(object) == Set(allowed), "\(name)")
    }
  }
}

@Suite("Secrets")
struct SecretTests {
  @Test("come from the environment and from files, without the line end of an editor")
  func sources() throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "secret-\(UUID())").path
    defer { try? FileManager.default.removeItem(atPath: path) }
    for (text, secret) in [("abc\n", "abc"), ("abc", "abc"), ("a b\r\n", "a b"), ("abc\n\n", "abc\n")] {
      try Data(text.utf8).write(to: URL(filePath: path))
      #expect(try SecretReference.file(path).resolve(field: "token") == secret)
    }
    #expect(try SecretReference.environment("T").resolve(field: "token", environment: ["T": "x"]) == "x")
    try Data("\n".utf8).write(to: URL(filePath: path))
    #expect(throws: ChatError.self) { try SecretReference.file(path).resolve(field: "token") }
  }

  @Test("that are not there are named with the mend")
  func missing() {
    let error = #expect(throws: ChatError.self) {
      try SecretReference.environment("MY_TOKEN").resolve(field: "credentials/token", environment: [:])
    }
    #expect(error?.kind == .invalidArgument(field: "credentials/token"))
    #expect(error?.detail == "environment variable MY_TOKEN is not set; export it")
  }
}

@Suite("The nearest name")
struct NearestNameTests {
  @Test("is found by the fewest changes, and only when near", arguments: [
    ("firsst", "first"), ("secnod", "second"), ("THIRD", "third"), ("thrid", "third"), ("elsewhere", nil),
  ])
  func nearest(_ name: String, _ expected: String?) {
    #expect(NearestName.of(name, in: ["first", "second", "third"]) == expected)
  }
}
