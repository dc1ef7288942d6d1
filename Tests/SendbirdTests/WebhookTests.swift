import ChatCrypto
import ChatEmulation
import ChatJSON
import ChatTransport
import Synchronization
import Testing
import UnifiedChat

@testable import SendbirdEmulator

/// The app's own server: keeps what it is told, and fails as often as it should.
private final class Backend: HTTPClient {
  private struct State {
    var requests: [HTTPRequest] = []
    var failures = 0
  }

  private let state = Mutex(State())

  init(failing times: Int = 0) { state.withLock { $0.failures = times } }

  var requests: [HTTPRequest] { state.withLock { $0.requests } }
  var bodies: [JSONValue] { requests.compactMap { try? JSONValue(parsing: $0.body) } }
  var categories: [String] { bodies.compactMap { $0["category"]?.string } }

  func send(
    _ request: HTTPRequest, progress: (@Sendable (TransferProgress) -> Void)?
  ) async throws(TransportError) -> HTTPResponse {
    let fails = state.withLock { state in
      state.requests.append(request)
      guard state.failures > 0 else { return false }
      state.failures -= 1
      return true
    }
    return HTTPResponse(status: fails ? 500 : 200)
  }

  /// Until so many calls have come; the test's time limit ends a wait in vain.
  func wait(for count: Int) async throws {
    // Real time: nothing depends on how long it is.
    while requests.count < count { try await Task.sleep(for: .milliseconds(1)) }
  }
}

@Suite("Webhooks of Sendbird", .timeLimit(.minutes(1)))
struct SendbirdWebhookTests {
  private func lab(_ backend: Backend, _ more: [String: JSONValue] = [:]) async throws -> Lab {
    let lab = try Lab(
      settings: ["webhookURL": "http://127.0.0.1:9/hook"].merging(more, uniquingKeysWith: { $1 }))
    await lab.host.setCaller(backend)
    try await lab.makeUsers("ana", "bob", "carl")
    return lab
  }

  @Test("the app's server hears of channels, members, messages and receipts, signed with the application's token")
  func everything() async throws {
    let backend = Backend()
    let lab = try await lab(backend)
    let ana = try await lab.logIn("ana")
    let made = try await lab.rest(
      "POST", "group_channels", ["user_ids": ["ana", "bob"], "channel_url": "talk", "name": "Talk"], as: .key(await ana.key))
    #expect(made.status == 200)
    _ = try await ana.say("hello", in: "talk")
    let id = try #require(try await lab.rest("GET", "group_channels/talk/messages?message_ts=0&next_limit=5&prev_limit=0").json["messages"]?[0]?["message_id"]?.int)
    try await lab.rest("PUT", "group_channels/talk/messages/\(id)", ["message_type": "MESG", "message": "hello!"])
    try await lab.rest("DELETE", "group_channels/talk/messages/\(id)")
    try await lab.rest("POST", "group_channels/talk/invite", ["user_ids": ["carl"]])
    _ = try await ana.ask("READ", ["channel_url": "talk"])
    try await lab.rest("PUT", "group_channels/talk/leave", ["user_ids": ["bob"]])
    try await lab.rest("PUT", "group_channels/talk", ["name": "Talks"])
    try await lab.rest("PUT", "group_channels/talk/freeze", ["freeze": true])
    try await lab.rest("DELETE", "group_channels/talk")
    let expected = [
      "create", "invite", "join", "message_send", "message_update", "message_delete", "invite", "join", "message_read",
      "leave", "changed", "freeze_unfreeze", "remove",
    ]
    try await backend.wait(for: expected.count)
    // Each call is a task of its own: they may overtake one another.
    #expect(backend.categories.sorted() == expected.map { "group_channel:\($0)" }.sorted())
    for request in backend.requests {
      let signature = HMAC.sha256(key: Array("secret".utf8), message: request.body)
      #expect(request.headers["x-sendbird-signature"] == Hex.encode(signature))
      #expect(request.url == "http://127.0.0.1:9/hook" && request.method == "POST")
    }
    let sent = try #require(backend.bodies.first { $0["category"] == "group_channel:message_send" })
    #expect(sent["sender"]?["user_id"] == "ana" && sent["payload"]?["message"] == "hello")
    #expect(sent["payload"]?["message_id"]?.int == id && sent["app_id"] == "APP")
    #expect(sent["channel"]?["channel_url"] == "talk" && sent["members"]?.array?.count == 2)
  }

  @Test("of open channels it hears who comes and goes, and only of what it asked for")
  func chosen() async throws {
    let backend = Backend()
    let lab = try await lab(backend, ["webhooks": ["create", "enter", "exit"]])
    let ana = try await lab.logIn("ana")
    try await lab.rest("POST", "open_channels", ["channel_url": "lobby"])
    _ = try await ana.ask("ENTR", ["channel_url": "lobby"])
    _ = try await ana.say("nobody is told of this", in: "lobby")
    _ = try await ana.ask("EXIT", ["channel_url": "lobby"])
    try await backend.wait(for: 3)
    #expect(Set(backend.categories) == ["open_channel:create", "open_channel:enter", "open_channel:exit"])
    #expect(backend.requests.count == 3)
  }

  @Test("a call that fails is made three times at most", arguments: [1, 2, 5])
  func tries(failures: Int) async throws {
    let backend = Backend(failing: failures)
    let lab = try await lab(backend, ["webhooks": ["create"]])
    try await lab.rest("POST", "open_channels", ["channel_url": "lobby"])
    try await backend.wait(for: min(3, failures + 1))
    // What follows waits behind all that the first one caused.
    try await lab.rest("POST", "open_channels", ["channel_url": "second"])
    try await backend.wait(for: min(3, failures + 1) + (failures > 3 ? min(3, failures - 3 + 1) : 1))
    let first = backend.bodies.count { $0["channel"]?["channel_url"] == "lobby" }
    #expect(first == min(3, failures + 1))
    #expect(Set(backend.requests.map(\.body)).count == 2)
  }

  @Test(
    "a wrong setting is named",
    arguments: [
      ["webhookURL": "http://example.com"], ["pushURL": "https://127.0.0.1/push"], ["pushWhileOnline": "yes"], ["webhookURL": "http://127.0.0.1.example.com/x"], ["webhookURL": 1],
      ["webhooks": "create"], ["webhooks": ["nonsense"]],
    ] as [[String: JSONValue]])
  func wrongSettings(settings: [String: JSONValue]) throws {
    let error = #expect(throws: EmulatorError.self) { try SendbirdEmulator(options: EmulatorOptions(settings: settings)) }
    #expect(error?.description.contains(settings.keys.first ?? "?") == true)
  }
}
