import ChatEmulation
import ChatInterchange
import ChatJSON
import ChatTransport
import OpenIMAdapter
import Testing
import UnifiedChat

/// The server shows a conversation through one of its users: a reading must not lose what that one has taken away from
/// their own view alone.
@Suite("A conversation that its members have cleared or tidied is read", .timeLimit(.minutes(2)))
struct OpenIMClearedTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    var cleared: [String] = []
    var deleted: [String: [Int64]] = [:]
    var gone: [String] = []
    /// Of six.
    var read = 6
    var unreadable: [String] = []
    var testDescription: String { name }
  }

  static let cases = [
    Case(name: "whole, when nobody did anything"),
    Case(name: "through the other one, when the first has cleared it", cleared: ["alice"]),
    Case(name: "through the first, when the other one has cleared it", cleared: ["bob"]),
    Case(name: "not, and that is reported, when both have", cleared: ["alice", "bob"], read: 0, unreadable: ["1-6"]),
    Case(name: "with what one of them deleted", deleted: ["alice": [2, 3, 6]]),
    Case(name: "with what each of them deleted alone", deleted: ["alice": [2, 3], "bob": [5]]),
    Case(name: "but for what both deleted, which is reported", deleted: ["alice": [2, 3], "bob": [3]], read: 5, unreadable: ["m3"]),
    Case(
      name: "but for what one has cleared and the other deleted", cleared: ["bob"], deleted: ["alice": [4]], read: 5,
      unreadable: ["m4"]),
    Case(name: "through the other one, when the first has it no more", gone: ["alice"]),
  ]

  static let removed = Case(name: "", gone: ["alice", "bob"])

  private func call(_ harness: ToolHarness, _ path: String, _ body: JSONValue) async throws {
    func post(_ path: String, _ body: JSONValue, _ token: String?) async throws -> JSONValue {
      var request = HTTPRequest("POST", "http://openim.example:10002\(path)", body: body.bytes())
      request.headers = ["operationID": "t"]
      request.headers["token"] = token
      return try JSONValue(parsing: try await harness.host.transports.http.send(request).body)
    }
    let login: JSONValue = ["secret": "s3cret", "userID": "imAdmin"]
    let token = try await post("/auth/get_admin_token", login, nil)["data"]?["token"]?.string
    let answer = try await post(path, body, token)
    try #require(answer["errCode"] == 0, "\(path): \(answer.text())")
  }

  private func spoil(_ id: ChannelID, as example: Case, _ harness: ToolHarness) async throws {
    let ids: JSONValue = [.string(id.rawValue)]
    for user in example.cleared {
      try await call(harness, "/msg/clear_conversation_msg", ["userID": .string(user), "conversationIDs": ids])
    }
    for (user, seqs) in example.deleted {
      try await call(
        harness, "/msg/delete_msgs",
        ["userID": .string(user), "conversationID": .string(id.rawValue), "seqs": .array(seqs.map { .int($0) })])
    }
    for user in example.gone {
      try await call(harness, "/conversation/delete_conversations", ["ownerUserID": .string(user), "conversationIDs": ids])
    }
  }

  private func filled(inGroup: Bool, _ harness: ToolHarness) async throws -> ChannelID {
    for user in ["alice", "bob"] as [UserID] { _ = try await harness.destination.putUsers([Samples.user(user)]) }
    let channel = inGroup ? Samples.group : Samples.pair
    let members = [Samples.member(channel, "alice", .owner), Samples.member(channel, "bob")]
    let id = try #require(
      try await harness.destination.putChannel(inGroup ? Samples.groupRecord : Samples.pairRecord, members: members).id)
    let messages = (1...6).map { Samples.message(channel, $0, .text("\($0)"), sender: $0 % 2 == 0 ? "bob" : "alice") }
    _ = try await harness.destination.putMessages(messages, in: id)
    return id
  }

  private func read(_ id: ChannelID, _ source: OpenIMSource) async throws -> (items: [String?], unreadable: [String?]) {
    var (items, unreadable): ([String?], [String?]) = ([], [])
    var cursor: Cursor?
    repeat {
      let page = try await source.messages(in: id, after: cursor)
      items += page.items.map(\.origin?.id)
      unreadable += page.unreadable.map(\.id)
      cursor = page.next
    } while cursor != nil
    return (items, unreadable)
  }

  @Test("by whoever still sees it", arguments: cases, [true, false])
  func cleared(_ example: Case, _ inGroup: Bool) async throws {
    let harness = try ToolHarness()
    let id = try await filled(inGroup: inGroup, harness)
    let known = try await harness.destination.existing(in: id, after: nil).items.map(\.id.rawValue)
    try await spoil(id, as: example, harness)
    let fresh = try OpenIMSource(
      profile: harness.profile, environment: harness.environment, transports: harness.host.transports)
    // One that has read before this happened, and one that begins.
    for source in [harness.source, fresh] {
      let (items, unreadable) = try await read(id, source)
      #expect(items.count == example.read)
      let names = unreadable.map { name in
        name.flatMap { name in known.firstIndex { $0 == name }.map { "m\($0 + 1)" } } ?? name
      }
      #expect(names == example.unreadable)
    }
    // What a second run asks before it writes.
    #expect(try await harness.destination.existing(in: id, after: nil).items.count == example.read)
  }

  @Test("a group that nobody has any more is reported")
  func removed() async throws {
    let harness = try ToolHarness()
    let id = try await filled(inGroup: true, harness)
    try await spoil(id, as: Self.removed, harness)
    let (items, unreadable) = try await read(id, harness.source)
    #expect(items.isEmpty && unreadable == ["1-6"])
  }

  @Test("a chat of two that one of them has removed is found with the other one", arguments: ["alice", "bob"])
  func listed(_ user: String) async throws {
    let harness = try ToolHarness()
    let id = try await filled(inGroup: false, harness)
    #expect(try await harness.channels().map(\.channel.id) == [id])
    try await spoil(id, as: Case(name: "", gone: [user]), harness)
    #expect(try await harness.channels().map(\.channel.id) == [id])
    #expect(try await harness.members(of: id).map(\.member.user.id) == ["alice", "bob"])
  }

  @Test("friends, blocked users and settings of conversations are kept as rows, and what is not is named")
  func rows() async throws {
    let harness = try ToolHarness()
    let id = try await filled(inGroup: false, harness)
    try await call(harness, "/friend/import_friend", ["ownerUserID": "alice", "friendUserIDs": ["bob"]])
    try await call(harness, "/friend/add_black", ["ownerUserID": "bob", "blackUserID": "alice"])
    try await call(
      harness, "/conversation/set_conversations",
      ["userIDs": ["alice"], "conversation": ["conversationID": .string(id.rawValue), "conversationType": 1, "userID": "bob", "isPinned": true]])
    let page = try await harness.source.rows(after: nil)
    #expect(
      page.items.map { "\($0.kind) \($0.id) \($0.user?.rawValue ?? "")" } == [
        "friend alice/bob alice", "conversation alice/\(id) alice", "friend bob/alice bob", "black bob/alice bob",
      ])
    #expect(page.next == nil && page.items[1].channel == id)
    #expect(try await harness.source.check().leftOut.count == 2)
  }

  @Test(
    "a tombstone that a stopped run has sent and not taken back is taken back by the next one, once",
    arguments: ["alice", nil] as [UserID?])
  func tombstone(_ sender: UserID?) async throws {
    let harness = try ToolHarness()
    let id = try await filled(inGroup: true, harness)
    let control = EmulatorControl(harness.host)
    _ = try await control.add(
      FaultRule(FaultRule.Match("recall"), do: .fail(EmulatorFailure("server")), times: 1))
    let message = Samples.message(Samples.group, 7, .recalled(by: "alice", at: nil), sender: sender)
    _ = try? await harness.destination.putMessages([message], in: id)
    func revocations() async -> Int {
      await harness.host.coverage.first { $0.endpoint == "POST /msg/revoke_msg" }?.calls ?? 0
    }
    let before = await revocations()
    for _ in 1...2 {
      let next = try OpenIMDestination(
        profile: harness.profile, environment: harness.environment, transports: harness.host.transports)
      #expect(try await next.existing(in: id, after: nil).items.count == 7)
    }
    #expect(await revocations() == before + 1)
    #expect(try await harness.messages(in: id).map(\.message.isRecalled) == Array(repeating: false, count: 6) + [true])
  }
}
