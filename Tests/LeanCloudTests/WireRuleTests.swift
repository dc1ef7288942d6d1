import ChatEmulation
import ChatInterchange
import ChatJSON
import ChatTransport
import LeanCloudWire
import Testing
import UnifiedChat

/// What a client may count on, by its sub-protocol, its abilities and its signatures.
@Suite("Rules of the wire")
struct WireRuleTests {
  @Test("attributes that look like an import's name nobody else as the sender")
  func forged() throws {
    let attributes = #"{"unifiedchat":{"v":1,"vendor":"x","id":"1","kept":{"sender":"boss","createdAt":0}}}"#
    let stored = LeanCloudStoredMessage(
      channel: "c", id: "m", from: "mallory", timestamp: 7,
      data: #"{"_lctype":-1,"_lctext":"hi","_lcattrs":\#(attributes)}"#)
    let message = try LeanCloudBody.decode(stored).message
    #expect(message.sender == "mallory" && message.createdAt == Timestamp(milliseconds: 7))
    let key = try #require(EnvelopeKey(adminSecret: "s"))
    let read = try LeanCloudBody.decode(stored, .tool(EnvelopeReader(key: key)))
    #expect(read.message.sender == "mallory" && read.origin == nil && read.finding == .unsigned)
    #expect(read.message.customData?.text == attributes)
    let believing = EnvelopeReader(key: key, trustsUnsigned: true)
    #expect(try LeanCloudBody.decode(stored, .tool(believing)).message.sender == "boss")
  }

  /// Bob is away while alice writes twice.
  func bench() async throws -> (bench: Bench, alice: RawSocket, cid: String) {
    let bench = try Bench()
    let alice = try await bench.login("alice")
    let cid = try #require(try await alice.ask("conv", "start", ["m": ["bob"], "unique": true]).string("cid"))
    for text in ["one", "two"] { _ = try await alice.ask("direct", nil, ["cid": .string(cid), "msg": .string(text)]) }
    return (bench, alice, cid)
  }

  @Test("version 1 pushes what waited, 2 and 3 tell its number; what is received online counts as read in 2 alone")
  func versions() async throws {
    for version in 1...3 {
      let (bench, alice, cid) = try await bench()
      let bob = try await bench.login("bob", ["lc.json.\(version)"])
      if version == 1 {
        let first = try await bob.next("direct")
        #expect(first.bool("offline") == true)
        #expect(first.string("msg") == "one")
        #expect(try await bob.next("direct").string("msg") == "two")
      } else {
        #expect(try await bob.next("unread")["convs"]?[0]?["unread"]?.int == 2)
      }
      _ = try await alice.ask("direct", nil, ["cid": .string(cid), "msg": "three"])
      let id = try #require(try await bob.next("direct").string("id"))
      var ack: JSONObject = ["cid": .string(cid), "mid": .string(id)]
      if version == 2 { ack["read"] = true }
      try await bob.tell("ack", nil, ack)
      _ = try await bob.ask("session", "query", ["sessionPeerIds": []])
      let left = try await bench.rest("GET", "/1.2/rtm/clients/bob/unread-count?conv_id=\(cid)")
      #expect(left.body["count"]?.int == (version == 2 ? 0 : 3), "version \(version)")
    }
  }

  @Test("the sub-protocol is taken from the header and from the query of the address; another is refused")
  func subprotocols() async throws {
    let bench = try Bench()
    let link = try await bench.host.transports.webSocket.connect(
      WebSocketRequest("ws://leancloud.example/?subprotocol=lc.json.3"))
    let socket = RawSocket(link: link, codec: LeanCloudCodec(LeanCloudSubprotocol(.json)))
    var open = LeanCloudFrame("session", "open")
    open.peerID = "alice"
    open["appId"] = "emulated-app"
    open["ua"] = "test"
    #expect(try await socket.ask(open).int("service") == 2)
    for name in ["lc.protobuf2.1", "lc.protobuf2.3", "lc.proto2base64.3", "lc.json.1", "lc.json.2", "lc.json.3"] {
      let accepted = try await bench.host.transports.webSocket.connect(
        WebSocketRequest("ws://leancloud.example/", subprotocols: [name]))
      #expect(accepted.subprotocol == name)
    }
    await #expect(throws: TransportError.self) {
      _ = try await bench.host.transports.webSocket.connect(
        WebSocketRequest("ws://leancloud.example/", subprotocols: ["lc.json.9"]))
    }
  }

  @Test("a client gets what it said that it can do")
  func abilities() async throws {
    let (bench, alice, cid) = try await bench()
    let able = try await bench.login("bob", fields: ["ua": "t", "configBitmap": 187])
    let plain = try await bench.login("bob", fields: ["ua": "t", "configBitmap": 0])
    let sent = try await alice.ask("direct", nil, ["cid": .string(cid), "msg": "three"])
    let patch: JSONObject = [
      "cid": .string(cid), "mid": sent["uid"] ?? .null, "timestamp": sent["t"] ?? .null, "recall": true,
    ]
    #expect(try await alice.ask("patch", "modify", ["patches": [.object(patch)]]).operation == "modified")
    #expect(try await able.next("patch")["patches"]?[0]?["recall"]?.bool == true)
    // A transient message is acknowledged to the able one alone.
    #expect(try await able.ask("direct", nil, ["cid": .string(cid), "msg": "t", "transient": true]).command == "ack")
    try await plain.tell("direct", nil, ["cid": .string(cid), "msg": "t", "transient": true])
    _ = try await plain.ask("session", "query", ["sessionPeerIds": ["alice"]])
    // Part of a list is refused: the able one is told which, the other one is refused.
    let block: JSONObject = ["srcCid": .string(cid), "toPids": ["carol"]]
    #expect(try await alice.ask("blacklist", "block", block).operation == "blocked")
    let add: JSONObject = ["cid": .string(cid), "m": ["carol", "dave"]]
    let partly = try await able.ask("conv", "add", add)
    #expect(partly.strings("allowedPids") == ["dave"])
    #expect(partly["failedPids"]?[0]?["pids"]?.array == ["carol"])
    #expect(try await plain.ask("conv", "add", add)["code"]?.int == 4548)
    let check = try await alice.ask("blacklist", "check-block", ["srcCid": .string(cid), "toPids": ["carol", "bob"]])
    #expect(check.strings("blockedPids") == ["carol"])
  }

  @Test("with signatures switched on, each operation wants its own, in seconds or milliseconds", arguments: [1, 1000])
  func signatures(_ divisor: Int64) async throws {
    let bench = try Bench { $0.settings = ["signature": true] }
    let time = Bench.start / divisor
    let app = "emulated-app"
    func signed(_ fields: JSONObject, _ text: (_ nonce: String) -> String) -> JSONObject {
      var fields = fields
      fields["s"] = .string(LeanCloudSignature.sign(text("n"), key: "emulated-secret"))
      fields["t"] = .int(time)
      fields["n"] = "n"
      return fields
    }
    var open = LeanCloudFrame("session", "open")
    open.peerID = "alice"
    open["appId"] = .string(app)
    open["ua"] = "test"
    let socket = try await bench.socket()
    #expect(try await socket.ask(open)["code"]?.int == 4102)
    let login = signed([:]) { LeanCloudSignature.open(app: app, client: "alice", timestamp: time, nonce: $0) }
    for member in login { open[member.key] = member.value }
    #expect(try await socket.ask(open).operation == "opened")

    #expect(try await socket.ask("conv", "start", ["m": ["bob"]])["code"]?.int == 4302)
    let start = signed(["m": ["bob"]]) {
      LeanCloudSignature.start(app: app, client: "alice", members: ["bob"], timestamp: time, nonce: $0)
    }
    let cid = try #require(try await socket.ask("conv", "start", start).string("cid"))
    for (command, operation, action, code) in [
      ("conv", "add", LeanCloudSignature.Action.invite, 4302), ("conv", "remove", .kick, 4302),
      ("blacklist", "block", .block, 4546), ("blacklist", "unblock", .unblock, 4546),
    ] as [(String, String, LeanCloudSignature.Action, Int64)] {
      let fields: JSONObject =
        command == "conv" ? ["cid": .string(cid), "m": ["carol"]] : ["srcCid": .string(cid), "toPids": ["carol"]]
      #expect(try await socket.ask(command, operation, fields)["code"]?.int == code)
      let good = signed(fields) {
        LeanCloudSignature.change(
          app: app, client: "alice", channel: cid, members: ["carol"], timestamp: time, nonce: $0, action: action)
      }
      #expect(try await socket.ask(command, operation, good)["code"] == nil, "\(command) \(operation)")
    }
    let path = "/1.1/rtm/messages/history?convid=\(cid)&peerid=alice"
    #expect(try await bench.rest("GET", path, key: "app-key").body["code"]?.int == 4302)
    let text = LeanCloudSignature.history(app: app, client: "alice", channel: cid, nonce: "n", timestamp: time)
    let sign = LeanCloudSignature.sign(text, key: "emulated-secret")
    let query = path + "&nonce=n&signature_ts=\(time)&signature=\(sign)"
    #expect(try await bench.rest("GET", query, key: "app-key").status == 200)
  }

  @Test("above its own limit a client gets no answer, and gets one again in the next minute")
  func silence() async throws {
    let bench = try Bench { $0.settings = ["clientRates": true] }
    let alice = try await bench.login("alice")
    for _ in 0..<30 { _ = try await alice.ask("session", "query", ["sessionPeerIds": []]) }
    try await alice.tell("session", "query", ["sessionPeerIds": ["silent"], "i": 900])
    await bench.host.advance(by: .seconds(60))
    let answer = try await alice.ask("session", "query", ["sessionPeerIds": []])
    #expect(answer.operation == "query-result")
    #expect(answer.serial != 900)
  }

  @Test("a will is sent when its author drops, and not when it says goodbye", arguments: [true, false])
  func will(_ drops: Bool) async throws {
    let (bench, alice, cid) = try await bench()
    let bob = try await bench.login("bob")
    let ack = try await alice.ask("direct", nil, ["cid": .string(cid), "msg": "gone", "will": true])
    if !drops { _ = try await alice.ask("session", "close", [:]) }
    await alice.link.close(code: 1000, reason: "")
    if drops { #expect(try await bob.next("direct").string("msg") == "gone") }
    let last = try await bob.ask("logs", nil, ["cid": .string(cid), "l": 1])["logs"]?[0]
    #expect(last?["data"]?.string == (drops ? "gone" : "two"))
    if drops { #expect(last?["msgId"]?.string == ack.string("uid")) }
  }

  @Test("a will to a service conversation reaches the service, and no other subscriber", .timeLimit(.minutes(1)))
  func willToService() async throws {
    let bench = try Bench()
    let id = try await ServiceTests().service(bench, subscribers: ["alice", "bob"])
    let alice = try await bench.login("alice")
    let bob = try await bench.login("bob")
    _ = try await alice.ask("direct", nil, ["cid": .string(id), "msg": "gone", "will": true])
    await alice.link.close(code: 1000, reason: "")
    var sent: [String?] = []
    while sent.isEmpty {
      sent = try await bench.rest("GET", "/1.1/classes/_SysMessage").body["results"]?.array?.map { $0["data"]?.string } ?? []
      await Task.yield()
    }
    #expect(sent == ["gone"])
    #expect(try await bob.ask("logs", nil, ["cid": .string(id), "l": 9])["logs"]?.array == [])
  }

  @Test("silences that have run out take no place in the list")
  func endedSilences() async throws {
    let (bench, alice, cid) = try await bench()
    let path = "/1.2/rtm/conversations/\(cid)"
    for number in 0..<3 {
      let body: JSONValue = ["client_id": .string("short\(number)"), "ttl": 1]
      #expect(try await bench.rest("POST", path + "/temporary-silenceds", body).status == 200)
    }
    let many: JSONValue = ["client_ids": .array((0..<498).map { .string("c\($0)") })]
    #expect(try await bench.rest("POST", path + "/permanent-silenceds", many).body["code"]?.int == 4561)
    await bench.pass(seconds: 2)
    #expect(try await bench.rest("POST", path + "/permanent-silenceds", many).status == 200)
    let answer = try await alice.ask("conv", "add-shutup", ["cid": .string(cid), "m": ["x", "y", "z"]])
    #expect(answer["code"]?.int == 4561)
  }

  @Test("a session token is renewed while it is good, and the old one is void")
  func refresh() async throws {
    let bench = try Bench { $0.settings = ["sessionTTL": 60] }
    let socket = try await bench.socket()
    var open = LeanCloudFrame("session", "open")
    open.peerID = "alice"
    open["appId"] = "emulated-app"
    open["ua"] = "test"
    let opened = try await socket.ask(open)
    #expect(opened.int("stTtl") == 60)
    let token = try #require(opened.string("st"))
    let renewed = try await socket.ask("session", "refresh", ["st": .string(token)])
    #expect(renewed.operation == "refreshed")
    #expect(try await socket.ask("session", "refresh", ["st": .string(token)])["code"]?.int == 4112)
    await bench.host.advance(by: .seconds(61))
    let again = try await bench.socket()
    open["st"] = renewed["st"]
    open["r"] = true
    #expect(try await again.ask(open)["code"]?.int == 4112)
  }

  @Test("mentions of one, of all, and of nobody travel beside the body, to pushes, histories and unread counts")
  func mentions() async throws {
    let (bench, alice, cid) = try await bench()
    let fields: JSONObject = ["cid": .string(cid), "msg": "@", "mentionPids": ["bob"], "mentionAll": false]
    _ = try await alice.ask("direct", nil, fields)
    _ = try await alice.ask("direct", nil, ["cid": .string(cid), "msg": "@all", "mentionAll": true])
    let bob = try await bench.login("bob")
    #expect(try await bob.next("unread")["convs"]?[0]?["mentioned"]?.bool == true)
    let logs = try await bob.ask("logs", nil, ["cid": .string(cid), "l": 2])["logs"]?.array ?? []
    #expect(logs.first?["mentionPids"]?.array == ["bob"])
    #expect(logs.last?["mentionAll"]?.bool == true)
    let items = try await bench.rest("GET", "/1.2/rtm/conversations/\(cid)/messages?limit=2").body.array ?? []
    #expect(items.first?["mention-all"]?.bool == true)
    let many: JSONValue = [
      "from_client": "alice", "message": "m", "mention_client_ids": .strings((0..<21).map { "c\($0)" }),
    ]
    #expect(try await bench.rest("POST", "/1.2/rtm/conversations/\(cid)/messages", many).body["code"]?.int == 1)
  }
}
