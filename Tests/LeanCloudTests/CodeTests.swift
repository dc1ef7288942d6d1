import ChatEmulation
import ChatJSON
import ChatTransport
import LeanCloudAdapter
import LeanCloudEmulator
import LeanCloudWire
import Testing
import UnifiedChat

/// Every code that the server gives of itself, by what leads to it.
@Suite("Codes of the realtime service", .timeLimit(.minutes(1)))
struct CodeTests {
  /// alice and bob are members, carol is none; alice made it.
  struct Scene {
    var bench: Bench
    var alice: RawSocket
    var bob: RawSocket
    var carol: RawSocket
    var group: String
    var room: String
    var message: (id: String, time: Int64)
  }

  func scene(_ settings: [String: JSONValue] = [:]) async throws -> Scene {
    let bench = try Bench { $0.settings = settings }
    let made = try await bench.rest("POST", "/1.2/rtm/conversations", ["m": ["alice", "bob"], "c": "alice"])
    let group = try #require(made.body["objectId"]?.string)
    let room = try #require(try await bench.rest("POST", "/1.2/rtm/chatrooms", ["name": "room"]).body["objectId"]?.string)
    let path = "/1.2/rtm/conversations/\(group)/messages"
    let sent = try await bench.rest("POST", path, ["from_client": "alice", "message": "first"]).body
    return Scene(
      bench: bench, alice: try await Self.login("alice", bench), bob: try await Self.login("bob", bench),
      carol: try await Self.login("carol", bench), group: group, room: room,
      message: (try #require(sent["msg-id"]?.string), try #require(sent["timestamp"]?.int)))
  }

  /// Signed, which an app that does not ask for it does not mind.
  static func login(_ peer: String, _ bench: Bench) async throws -> RawSocket {
    let text = LeanCloudSignature.open(
      app: "emulated-app", client: peer, watching: [], timestamp: Bench.start, nonce: "n")
    return try await bench.login(
      peer,
      fields: [
        "ua": "test", "configBitmap": 187, "t": .int(Bench.start), "n": "n",
        "s": .string(LeanCloudSignature.sign(text, key: "emulated-secret")),
      ])
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var code: Int64
    var what: String
    var settings: [String: JSONValue] = [:]
    var run: @Sendable (Scene) async throws -> LeanCloudFrame
    var testDescription: String { "\(code) \(what)" }
  }

  static let none: JSONValue = "5f0000000000000000000009"

  static func patch(_ scene: Scene, _ change: JSONObject = [:]) -> JSONObject {
    var item: JSONObject = [
      "cid": .string(scene.group), "mid": .string(scene.message.id), "timestamp": .int(scene.message.time),
      "recall": false, "data": "new",
    ]
    for member in change { item[member.key] = member.value }
    return ["patches": [.object(item)]]
  }

  static func many(_ numbers: Range<Int>) -> JSONValue { .array(numbers.map { .string("u\($0)") }) }

  /// A command for so many clients, as many in a frame as it holds; the last answer.
  static func inParts(
    _ count: Int, _ ask: (JSONValue) async throws -> LeanCloudFrame
  ) async throws -> LeanCloudFrame {
    var answer = LeanCloudFrame("none")
    for start in stride(from: 0, to: count, by: 300) { answer = try await ask(many(start..<min(start + 300, count))) }
    return answer
  }

  static let cases: [Case] = [
    Case(code: 4112, what: "refreshing with a token that is none") { scene in
      try await scene.alice.ask("session", "refresh", ["st": "none"])
    },
    Case(code: 4302, what: "making a conversation unsigned", settings: ["signature": true]) { scene in
      try await scene.alice.ask("conv", "start", ["m": ["bob"]])
    },
    Case(code: 4546, what: "blocking unsigned", settings: ["signature": true]) { scene in
      try await scene.alice.ask("blacklist", "block", ["srcCid": .string(scene.group), "toPids": ["bob"]])
    },
    Case(code: 4303, what: "counting what is not there") { scene in
      try await scene.alice.ask("conv", "count", ["cid": none])
    },
    Case(code: 4304, what: "more members of a temporary conversation than there may be") { scene in
      try await scene.alice.ask("conv", "start", ["m": many(0..<10), "tempConv": true])
    },
    Case(code: 4304, what: "inviting more than there may be") { scene in
      try await inParts(499) { try await scene.alice.ask("conv", "add", ["cid": .string(scene.group), "m": $0]) }
    },
    Case(code: 4306, what: "changing a temporary conversation") { scene in
      let made = try await scene.alice.ask("conv", "start", ["m": ["bob"], "tempConv": true])
      return try await scene.alice.ask("conv", "update", ["cid": made["cid"] ?? .null, "attr": ["name": "n"]])
    },
    Case(code: 4308, what: "inviting others to a service") { scene in
      let service = try await ServiceTests().service(scene.bench)
      return try await scene.alice.ask("conv", "add", ["cid": .string(service), "m": ["bob"]])
    },
    Case(code: 4310, what: "a condition that nobody understands") { scene in
      try await scene.alice.ask("conv", "query", ["where": ["m": ["$near": 1]]])
    },
    Case(code: 4312, what: "the history of others") { scene in
      try await scene.carol.ask("logs", nil, ["cid": .string(scene.group)])
    },
    Case(code: 4315, what: "writing when silenced for a time") { scene in
      let path = "/1.2/rtm/conversations/\(scene.group)/temporary-silenceds"
      _ = try await scene.bench.rest("POST", path, ["client_id": "alice", "ttl": 60])
      return try await scene.alice.ask("direct", nil, ["cid": .string(scene.group), "msg": "m"])
    },
    Case(code: 4317, what: "writing where one is no member") { scene in
      try await scene.carol.ask("direct", nil, ["cid": .string(scene.group), "msg": "m"])
    },
    Case(code: 4317, what: "a role for somebody who is no member") { scene in
      let info: JSONValue = ["pid": "carol", "role": "Manager"]
      return try await scene.alice.ask(
        "conv", "member-info-update", ["cid": .string(scene.group), "targetClientId": "carol", "info": info])
    },
    Case(code: 4320, what: "giving a role without having one") { scene in
      let info: JSONValue = ["pid": "bob", "role": "Manager"]
      return try await scene.bob.ask(
        "conv", "member-info-update", ["cid": .string(scene.group), "targetClientId": "bob", "info": info])
    },
    Case(code: 4321, what: "a role that is none") { scene in
      let info: JSONValue = ["pid": "bob", "role": "King"]
      return try await scene.alice.ask(
        "conv", "member-info-update", ["cid": .string(scene.group), "targetClientId": "bob", "info": info])
    },
    Case(code: 4323, what: "a temporary conversation beyond its time") { scene in
      let made = try await scene.alice.ask("conv", "start", ["m": ["bob"], "tempConv": true, "tempConvTTL": 60])
      await scene.bench.host.advance(by: .seconds(61))
      return try await scene.alice.ask("direct", nil, ["cid": made["cid"] ?? .null, "msg": "late"])
    },
    Case(code: 4325, what: "roles where the app has none", settings: ["roles": false]) { scene in
      let info: JSONValue = ["pid": "bob", "role": "Manager"]
      return try await scene.alice.ask(
        "conv", "member-info-update", ["cid": .string(scene.group), "targetClientId": "bob", "info": info])
    },
    Case(code: 4401, what: "writing to what is not there") { scene in
      try await scene.alice.ask("direct", nil, ["cid": none, "msg": "m"])
    },
    Case(code: 4402, what: "a word that the app refuses", settings: ["refusedWords": "casino, lottery"]) { scene in
      try await scene.alice.ask("direct", nil, ["cid": .string(scene.group), "msg": "the lottery"])
    },
    Case(code: 4403, what: "editing another one's message") { scene in
      try await scene.bob.ask("patch", "modify", patch(scene))
    },
    Case(code: 4404, what: "editing what is not there") { scene in
      try await scene.alice.ask("patch", "modify", patch(scene, ["mid": "none"]))
    },
    Case(code: 4405, what: "editing to a word that the app refuses", settings: ["refusedWords": "casino"]) { scene in
      try await scene.alice.ask("patch", "modify", patch(scene, ["data": "a casino"]))
    },
    Case(code: 4406, what: "editing where that is off", settings: ["edit": false]) { scene in
      try await scene.alice.ask("patch", "modify", patch(scene))
    },
    Case(code: 4407, what: "recalling where that is off", settings: ["recall": false]) { scene in
      try await scene.alice.ask("patch", "modify", patch(scene, ["recall": true]))
    },
    Case(code: 4543, what: "more blocks than there may be") { scene in
      try await inParts(501) {
        try await scene.alice.ask("blacklist", "block", ["srcCid": .string(scene.group), "toPids": $0])
      }
    },
    Case(code: 4544, what: "blocks where the app has none", settings: ["blacklist": false]) { scene in
      try await scene.alice.ask("blacklist", "block", ["srcCid": .string(scene.group), "toPids": ["bob"]])
    },
    Case(code: 4548, what: "inviting who is blocked") { scene in
      _ = try await scene.alice.ask("blacklist", "block", ["srcCid": .string(scene.group), "toPids": ["carol"]])
      return try await scene.alice.ask("conv", "add", ["cid": .string(scene.group), "m": ["carol"]])
    },
    Case(code: 4561, what: "more silences than there may be") { scene in
      try await inParts(501) {
        try await scene.alice.ask("conv", "add-shutup", ["cid": .string(scene.group), "m": $0])
      }
    },
    Case(code: 4563, what: "writing when silenced for good") { scene in
      _ = try await scene.alice.ask("conv", "add-shutup", ["cid": .string(scene.group), "m": ["bob"]])
      return try await scene.bob.ask("direct", nil, ["cid": .string(scene.group), "msg": "m"])
    },
  ]

  @Test("what leads to a code gets it with its name", arguments: cases)
  func code(_ test: Case) async throws {
    let scene = try await scene(test.settings)
    let answer = try await test.run(scene)
    #expect(answer["code"]?.int == test.code)
    #expect(answer.string("reason") == LeanCloudErrors.row(Int(test.code)).name)
    if test.code == 4402 { #expect(answer["appCode"]?.int == 40_000) }
    // What was refused has changed nothing for whoever asks for it rightly.
    #expect(try await scene.bob.ask("session", "query", ["sessionPeerIds": ["bob"]]).operation == "query-result")
  }

  @Test(
    "a login that is refused is told why",
    arguments: [
      (4100, ["appId": "other"], [:]), (4103, ["peerId": .string(String(repeating: "x", count: 65))], [:]),
      (4112, ["st": "none", "r": true], [:]), (4102, [:], ["signature": true]), (4113, [:], ["maximumClients": 1]),
    ] as [(Int64, JSONObject, [String: JSONValue])])
  func logins(_ code: Int64, _ fields: JSONObject, _ settings: [String: JSONValue]) async throws {
    let bench = try Bench { $0.settings = settings }
    if code == 4113 { _ = try await bench.login("somebody") }
    let socket = try await bench.socket()
    var open: JSONObject = ["appId": "emulated-app", "ua": "test", "peerId": "alice"]
    for member in fields { open[member.key] = member.value }
    #expect(try await socket.ask("session", "open", open)["code"]?.int == code)
    if code == 4113 {
      // Who is there already may come again.
      let again = try await bench.socket()
      #expect(try await again.ask("session", "open", ["appId": "emulated-app", "ua": "test", "peerId": "somebody"]).operation == "opened")
    }
  }

  @Test("a page from elsewhere is closed, one of the list and a client that is no browser are not")
  func origin() async throws {
    let bench = try Bench { $0.settings = ["origins": "app.example, other.example"] }
    for (origin, isLet) in [("https://app.example", true), ("https://app.example:8080", true), ("https://evil.example", false), (nil, true)] {
      var request = WebSocketRequest("ws://leancloud.example/", subprotocols: ["lc.json.3"])
      request.headers["Origin"] = origin
      let link = try await bench.host.transports.webSocket.connect(request)
      let socket = RawSocket(link: link, codec: LeanCloudCodec(LeanCloudSubprotocol(.json)))
      if isLet {
        #expect(try await socket.ask("session", "open", ["appId": "emulated-app", "ua": "t", "peerId": "a"]).operation == "opened")
      } else {
        let close = await #expect(throws: WebSocketClose.self) { _ = try await link.receive() }
        #expect(close?.code == 4110)
      }
    }
  }

  @Test(
    "filtered words are masked for everybody, and the author is told why",
    arguments: [
      ("{\"_lctype\":-1,\"_lctext\":\"darn it\",\"_lcattrs\":{\"darn\":\"darn\"}}", "{\"_lctype\":-1,\"_lctext\":\"*** it\",\"_lcattrs\":{\"darn\":\"darn\"}}"),
      ("darn darn", "*** ***"),
    ])
  func filtered(_ said: String, _ kept: String) async throws {
    let scene = try await scene(["filteredWords": "darn"])
    let ack = try await scene.alice.ask("direct", nil, ["cid": .string(scene.group), "msg": .string(said)])
    #expect(ack.string("uid") != nil)
    for socket in [scene.alice, scene.bob] {
      let item = try await socket.next("patch")["patches"]?[0]
      #expect(item?["data"]?.string == kept)
      #expect(item?["patchCode"]?.int == 4408)
      #expect(item?["mid"]?.string == ack.string("uid"))
    }
    let seen = try await scene.bob.ask("logs", nil, ["cid": .string(scene.group), "l": 1])["logs"]?[0]?["data"]?.string
    #expect(seen == kept)
    // What has no such word stays, and nobody is told anything.
    _ = try await scene.alice.ask("direct", nil, ["cid": .string(scene.group), "msg": "clean"])
    _ = try await scene.alice.ask("direct", nil, ["cid": .string(scene.group), "msg": "darn", "transient": true])
    _ = try await scene.alice.ask("direct", nil, ["cid": .string(scene.group), "msg": "darn last"])
    #expect(try await scene.alice.next("patch")["patches"]?[0]?["data"]?.string == "*** last")
  }

  @Test("the adapter shows the author what the filter made of the message")
  func filteredForTheAuthor() async throws {
    let bench = try Bench { $0.settings = ["filteredWords": "darn"] }
    let alice = try await bench.connect("alice")
    let channel = try await alice.adapter.createChannel(.direct(with: "bob"))
    let sent = try await alice.adapter.send(alice.text("darn it", to: channel.id))
    let changed = await alice.next { if case .messageUpdated(let message) = $0.kind { message } else { nil } }
    #expect(changed?.id == sent.id && text(changed) == "*** it")
  }

  @Test("REST says the same codes")
  func rest() async throws {
    let scene = try await scene(["roles": false])
    let base = "/1.2/rtm/conversations/\(scene.group)"
    func code(_ method: String, _ path: String, _ body: JSONValue? = nil) async throws -> Int64? {
      try await scene.bench.rest(method, path, body).body["code"]?.int
    }
    #expect(try await code("GET", "/1.2/rtm/chatrooms/\(scene.group)/members") == 4316)
    #expect(try await code("GET", "/1.2/rtm/conversations/\(scene.room)/members") == 4314)
    #expect(try await code("POST", base + "/member-infos", ["clientId": "bob", "role": "Manager"]) == 4325)
    #expect(try await code("POST", base + "/permanent-silenceds", ["client_ids": Self.many(0..<501)]) == 4561)
    #expect(try await code("POST", base + "/blacklists", ["client_ids": Self.many(0..<501)]) == 4543)
    #expect(try await code("POST", base + "/members", ["client_ids": Self.many(0..<499)]) == 4304)
  }
}
