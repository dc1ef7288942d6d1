import ChatEmulation
import ChatJSON
import ChatTransport
import SendbirdWire
import Testing
import UnifiedChat

@testable import SendbirdEmulator

private let badBodies: [(body: JSONObject, code: Int64)] = [
  (["name": 5], 400100), (["name": ["a"]], 400100), (["message_survival_seconds": "soon"], 400101),
  (["user_ids": "ana"], 400102), (["operator_ids": ["ana": true]], 400102), (["is_distinct": "yes"], 400104),
  (["strict": 1], 400104), (["invitation_status": ["bob": "perhaps"]], 400111),
  (["hidden_status": ["bob: away"]], 400111),
]

private let arrays: [(arrays: JSONValue, code: Int64?)] = [
  (.array((0..<5).map { ["key": .string("k\($0)"), "value": ["v"]] }), nil),
  (.array((0..<6).map { ["key": .string("k\($0)"), "value": ["v"]] }), 900027),
  ([["key": "k", "value": .array(Array(repeating: "v", count: 100))]], nil),
  ([["key": "k", "value": .array(Array(repeating: "v", count: 101))]], 900028),
  ([["key": "k", "value": ["v"]], ["key": "k", "value": ["w"]]], 900029),
  ([["key": "k", "value": "v"]], 900029), ([["key": "k", "value": [1]]], 900029), ([["value": ["v"]]], 900029),
  ([["key": "", "value": ["v"]]], 900029), (["k"], 900029),
  ([["key": .string(String(repeating: "k", count: 129)), "value": []]], 900029),
]

@Suite("The codes of Sendbird's refusals")
struct SendbirdCodeTests {
  private func room(_ lab: Lab, _ users: String...) async throws -> String {
    let ids = JSONValue.array(users.map { .string($0) })
    let made = try await lab.rest("POST", "group_channels", ["user_ids": ids, "channel_url": "room"])
    return try #require(made.json["channel_url"]?.string)
  }

  @Test("a member of a body that is of another type is named by the code of the type", arguments: badBodies)
  func types(body: JSONObject, code: Int64) async throws {
    let lab = try Lab()
    try await lab.makeUsers("ana", "bob")
    var whole: JSONObject = ["user_ids": ["ana", "bob"], "channel_url": "room"]
    for (name, value) in body { whole[name] = value }
    #expect(try await lab.rest("POST", "group_channels", .object(whole)).json["code"]?.int == code)
    #expect(try await lab.rest("GET", "group_channels/room").json["code"]?.int == 400201)
  }

  @Test("nothing is what null stands for")
  func null() async throws {
    let lab = try Lab()
    try await lab.makeUsers("ana")
    let body: JSONValue = ["user_ids": ["ana"], "name": nil, "is_distinct": nil, "message_survival_seconds": nil]
    #expect(try await lab.rest("POST", "group_channels", body).status == 200)
  }

  @Test("an unknown user ends a strict creation and is left out of another", arguments: [true, false])
  func strict(isStrict: Bool) async throws {
    let lab = try Lab()
    try await lab.makeUsers("ana", "bob")
    let answer = try await lab.rest(
      "POST", "group_channels",
      ["user_ids": ["ana", "nobody", "bob"], "channel_url": "room", "strict": .bool(isStrict)]
    ).json
    #expect(answer["code"]?.int == (isStrict ? 400111 : nil))
    #expect(answer["member_count"]?.int == (isStrict ? nil : 2))
    #expect(try await lab.rest("GET", "group_channels").json["channels"]?.array?.count == (isStrict ? 0 : 1))
  }

  @Test("the adapter says notFound of a member who does not exist, and nothing is left")
  func strictAdapter() async throws {
    let lab = try Lab()
    let ana = try await lab.connected("ana")
    let draft = ChannelDraft(members: ["nobody"])
    await #expect { try await ana.createChannel(draft) } throws: {
      let error = $0 as? ChatError
      return error?.kind == .notFound && error?.vendor?.code == "400111" && error?.retry == .never
    }
    #expect(try await ana.channels(ChannelQuery(), page: nil).items.isEmpty)
  }

  @Test("a block keeps both from inviting the other, into new channels and old ones; the Platform API may")
  func blockedInvitations() async throws {
    let lab = try Lab()
    try await lab.makeUsers("cleo")
    let (ana, bob) = (try await lab.logIn("ana"), try await lab.logIn("bob"))
    let pair: JSONValue = ["user_ids": ["ana", "bob"], "is_distinct": true]
    let known = try await lab.rest("POST", "group_channels", pair).json["channel_url"]
    try await lab.rest("POST", "users/ana/block", ["target_id": "bob"], as: .key(await ana.key))
    for (client, other, code) in [(ana, "bob", 400701), (bob, "ana", 400702)] as [(LabClient, String, Int64)] {
      let key = Lab.Who.key(await client.key)
      let body: JSONValue = ["user_ids": [.string(other), "cleo"]]
      #expect(try await lab.rest("POST", "group_channels", body, as: key).json["code"]?.int == code)
      let own = try await lab.rest("POST", "group_channels", ["user_ids": ["cleo"]], as: key).json["channel_url"]?.string
      let place = "group_channels/\(try #require(own))"
      #expect(try await lab.rest("POST", "\(place)/invite", body, as: key).json["code"]?.int == code)
      #expect(try await lab.rest("GET", "\(place)/members").json["members"]?.array?.count == 2)
      // The pair's channel is there already: nobody is invited.
      #expect(try await lab.rest("POST", "group_channels", pair, as: key).json["channel_url"] == known)
      #expect(try await lab.rest("POST", "\(place)/invite", ["user_ids": [.string(other)]]).status == 200)
    }
  }

  @Test("a send to the one who blocked is 400700 over REST, 900080 over the socket, and nothing in a larger group")
  func blockedSends() async throws {
    let lab = try Lab()
    try await lab.makeUsers("ana", "cleo")
    let bob = try await lab.logIn("bob")
    let url = try await room(lab, "ana", "bob")
    try await lab.rest("POST", "users/ana/block", ["target_id": "bob"])
    func send(_ who: Lab.Who) async throws -> Int64? {
      let body: JSONValue = ["message_type": "MESG", "user_id": "bob", "message": "x"]
      return try await lab.rest("POST", "group_channels/\(url)/messages", body, as: who).json["code"]?.int
    }
    #expect(try await send(.admin) == 400700)
    #expect(try await send(.key(await bob.key)) == 400700)
    #expect(try await bob.say("x", in: url).payload.number("code") == 900080)
    #expect(try await lab.rest("GET", "group_channels/\(url)/messages/total_count").json["total"]?.int == 0)
    try await lab.rest("POST", "group_channels/\(url)/invite", ["user_ids": ["cleo"]])
    #expect(try await send(.admin) == nil)
    #expect(try await bob.say("x", in: url).command == "MESG")
  }

  @Test("arrays beside a message are bounded and well formed, over the socket, over REST and when they are changed", arguments: arrays)
  func metaArrays(arrays: JSONValue, code: Int64?) async throws {
    let lab = try Lab()
    let ana = try await lab.logIn("ana")
    let url = try await room(lab, "ana")
    let frame: JSONObject = [
      "channel_url": .string(url), "message": "x", "data": "", "mention_type": "users", "mentioned_user_ids": [],
      "metaarray": arrays,
    ]
    #expect(try await ana.ask("MESG", frame).payload.number("code") == code)
    let body: JSONValue = ["message_type": "MESG", "user_id": "ana", "message": "x", "sorted_metaarray": arrays]
    #expect(try await lab.rest("POST", "group_channels/\(url)/messages", body).json["code"]?.int == code)
    let plain = try #require(try await ana.say("plain", in: url).payload.number("msg_id"))
    let place = "group_channels/\(url)/messages/\(plain)"
    #expect(try await lab.rest("POST", "\(place)/sorted_metaarray", ["sorted_metaarray": arrays]).json["code"]?.int == code)
    // A change adds to what is there, so that the same key twice is two values of one array.
    guard code == nil || code == 900028 else { return }
    let other = try #require(try await ana.say("other", in: url).payload.number("msg_id"))
    let change: JSONObject = ["array": arrays, "mode": "add", "upsert": true]
    let edit: JSONObject = [
      "channel_url": .string(url), "msg_id": .int(other), "mention_type": "users", "mentioned_user_ids": [],
      "metaarray": .object(change),
    ]
    #expect(try await ana.ask("MEDI", edit).payload.number("code") == code)
  }

  @Test("a push option that is none of the vendor's refuses the send")
  func pushOption() async throws {
    let lab = try Lab()
    let ana = try await lab.logIn("ana")
    let url = try await room(lab, "ana")
    for (option, code) in [("default", nil), ("suppress", nil), ("shout", 900026)] as [(String, Int64?)] {
      let frame: JSONObject = [
        "channel_url": .string(url), "message": "x", "mention_type": "users", "mentioned_user_ids": [],
        "push_option": .string(option),
      ]
      #expect(try await ana.ask("MESG", frame).payload.number("code") == code)
    }
  }

  @Test("entering a deleted open channel is 900070, one that never was 900500, and one that is there again is entered")
  func deleted() async throws {
    let lab = try Lab()
    let ana = try await lab.logIn("ana")
    func enter() async throws -> Int64? { try await ana.ask("ENTR", ["channel_url": "lobby"]).payload.number("code") }
    #expect(try await enter() == 900500)
    try await lab.rest("POST", "open_channels", ["channel_url": "lobby"])
    #expect(try await enter() == nil)
    try await lab.rest("DELETE", "open_channels/lobby")
    #expect(try await enter() == 900070)
    // Also after the machine was saved and restored.
    let control = EmulatorControl(lab.host)
    try await control.restore(await control.snapshot())
    let again = try await lab.logIn("ana")
    #expect(try await again.ask("ENTR", ["channel_url": "lobby"]).payload.number("code") == 900070)
    try await lab.rest("POST", "open_channels", ["channel_url": "lobby"])
    #expect(try await again.ask("ENTR", ["channel_url": "lobby"]).payload.number("code") == nil)
  }

  @Test("a classic open channel takes a thousand participants")
  func participants() throws {
    let machine = try SendbirdEmulator(options: EmulatorOptions(applicationID: "APP"))
    var context = EmulatorContext(now: 0, random: EmulatorRandom(seed: 1))
    let socket = EmulatorConnectionID(1)
    _ = machine.handle(.open(socket, WebSocketRequest("ws://x/?ai=APP&user_id=ana")), context: &context)
    let room = Room(url: "lobby", number: 1, isOpen: true, createdAt: 0, change: 1)
    machine.rooms[room.url] = room
    for number in 0..<1000 { room.participants[UserID("u\(number)")] = [UInt64(number + 10)] }
    func enter() -> Int64? {
      let frame = SendbirdFrame("ENTR", ["channel_url": "lobby", "req_id": "r"])
      for case .send(socket, .text(let text)) in machine.handle(.message(socket, .text(frame.text)), context: &context) {
        for case .success(let answer) in SendbirdFrame.parse(text) where answer.requestID == "r" {
          return answer.payload.number("code")
        }
      }
      return 0
    }
    #expect(enter() == 900400)
    room.participants["u0"] = nil
    #expect(enter() == nil)
    // Who is in already may come with another socket.
    #expect(enter() == nil)
  }

  @Test("429 tells the limit, what is left, when the next span begins and how long to wait; the adapter waits so long")
  func rates() async throws {
    let lab = try Lab(settings: ["maxRequestsPerSecond": 2])
    var request = HTTPRequest("GET", "http://sendbird.test/v3/users")
    request.headers["Api-Token"] = "secret"
    var answers: [HTTPResponse] = []
    for _ in 0..<3 { answers.append(try await lab.host.transports.http.send(request)) }
    #expect(answers.map(\.status) == [200, 200, 429])
    #expect(answers.map { $0.headers["X-RateLimit-Limit"] } == ["2", "2", "2"])
    #expect(answers.map { $0.headers["X-RateLimit-Remaining"] } == ["1", "0", "0"])
    #expect(answers.map { $0.headers["X-RateLimit-Reset"] } == Array(repeating: String(Lab.start / 1000 + 1), count: 3))
    #expect(answers.map { $0.headers["X-RateLimit-RetryAfter"] } == [nil, nil, "1"])
    await lab.host.advance(by: .seconds(1))
    #expect(try await lab.host.transports.http.send(request).status == 200)
    let plain = try await (try Lab()).host.transports.http.send(request)
    #expect(plain.headers["X-RateLimit-Limit"] == nil)
  }

  @Test("a refusal that was asked for has the same fields, and the adapter takes its wait from them")
  func askedFor() async throws {
    let lab = try Lab()
    let ana = try await lab.connected("ana")
    var rule = FaultRule(FaultRule.Match("channelCreate"), at: .received)
    rule.actions = [.fail(EmulatorFailure("rateLimited"))]
    _ = try await EmulatorControl(lab.host).add(rule)
    await #expect { try await ana.createChannel(ChannelDraft()) } throws: {
      let error = $0 as? ChatError
      return error?.kind == .rateLimited(retryAfter: .seconds(1)) && error?.vendor?.httpStatus == 429
    }
  }
}
