import ChatEmulation
import ChatJSON
import ChatTransport
import LeanCloudWire
import Testing

@Suite("The emulator, by frames")
struct EmulatorTests {
  @Test("two clients open, create, send, receive and read history")
  func conversation() async throws {
    let bench = try Bench()
    let tom = try await bench.login("Tom")
    let jerry = try await bench.login("Jerry")
    let started = try await tom.ask("conv", "start", ["m": ["Jerry", "Tom"], "unique": true, "attr": ["name": "n"]])
    #expect(started.operation == "started")
    let cid = try #require(started.string("cid"))
    #expect(LeanCloudID.isObjectID(cid))
    #expect(try await jerry.next("conv", "joined").string("initBy") == "Tom")
    let again = try await jerry.ask("conv", "start", ["m": ["Tom"], "unique": true])
    #expect(again.string("cid") == cid)

    let text = #"{"_lctype":-1,"_lctext":"你好 😀"}"#
    let ack = try await tom.ask(
      "direct", nil, ["cid": .string(cid), "msg": .string(text), "r": true, "dt": "one", "mentionPids": ["Jerry"]])
    let mid = try #require(ack.string("uid"))
    #expect(LeanCloudID.isMessageID(mid))
    let push = try await jerry.next("direct")
    #expect(push.string("id") == mid)
    #expect(push.string("msg") == text)
    #expect(push.strings("mentionPids") == ["Jerry"])
    #expect(push.peerID == "Jerry")

    let repeated = try await tom.ask("direct", nil, ["cid": .string(cid), "msg": .string(text), "dt": "one"])
    #expect(repeated.string("uid") == mid)

    try await jerry.tell("ack", nil, ["cid": .string(cid), "mid": .string(mid)])
    let receipt = try await tom.next("rcp")
    #expect(receipt.string("id") == mid)
    #expect(receipt["read"] == nil)
    try await jerry.tell("read", nil, ["convs": [["cid": .string(cid), "mid": .string(mid)]]])
    #expect(try await tom.next("rcp").bool("read") == true)

    let logs = try await jerry.ask("logs", nil, ["cid": .string(cid), "l": 10])
    #expect(logs["logs"]?.array?.count == 1)
    #expect(logs["logs"]?[0]?["msgId"]?.string == mid)
    let found = try await jerry.ask("conv", "query", ["where": ["objectId": .string(cid)], "flag": 2])
    #expect(found["results"]?[0]?["msg_mid"]?.string == mid)
    #expect(found["results"]?[0]?["m"]?.array?.count == 2)
  }

  @Test("history pages in both directions, in the order of time and id, and by REST the other way round")
  func history() async throws {
    let bench = try Bench()
    let tom = try await bench.login("Tom")
    let cid = try #require(try await tom.ask("conv", "start", ["m": ["Jerry"]]).string("cid"))
    var ids: [String] = []
    for index in 0..<7 {
      let ack = try await tom.ask("direct", nil, ["cid": .string(cid), "msg": .string("message \(index)")])
      ids.append(try #require(ack.string("uid")))
    }
    func logs(_ fields: JSONObject) async throws -> [String] {
      var fields = fields
      fields["cid"] = .string(cid)
      let answer = try await tom.ask("logs", nil, fields)
      return answer["logs"]?.array?.compactMap { $0["msgId"]?.string } ?? []
    }
    let times =
      try await tom.ask("logs", nil, ["cid": .string(cid), "l": 20])["logs"]?.array?
      .compactMap { $0["timestamp"]?.int } ?? []
    #expect(try await logs(["l": 3]) == Array(ids[4...6]))
    #expect(try await logs(["limit": 2, "t": .int(times[4]), "mid": .string(ids[4])]) == Array(ids[2...3]))
    #expect(
      try await logs(["l": 2, "t": .int(times[4]), "mid": .string(ids[4]), "direction": "NEW"]) == Array(ids[5...6]))
    #expect(
      try await logs(["l": 2, "t": .int(times[4]), "mid": .string(ids[4]), "direction": "NEW", "tIncluded": true])
        == Array(ids[4...5]))
    #expect(try await logs(["l": 3, "direction": "NEW"]) == Array(ids[0...2]))

    let path = "/1.2/rtm/conversations/\(cid)/messages"
    let newest = try await bench.rest("GET", path + "?limit=2").body.array?.compactMap { $0["msg-id"]?.string }
    #expect(newest == [ids[6], ids[5]])
    let between = try await bench.rest(
      "GET", path + "?timestamp=\(times[3])&msgid=\(ids[3])&till_timestamp=\(times[1])&till_msgid=\(ids[1])")
    #expect(between.body.array?.compactMap { $0["msg-id"]?.string } == [ids[2]])
    let reversed = try await bench.rest("GET", path + "?reversed=true&limit=3&timestamp=\(times[0])&msgid=\(ids[0])")
    #expect(reversed.body.array?.compactMap { $0["msg-id"]?.string } == Array(ids[1...3]))
  }

  @Test("the first model: presence, direct messages, groups, by clients that send no serial")
  func peers() async throws {
    let bench = try Bench()
    let tom = try await bench.socket([])
    try await tom.tell("session", "open", ["appId": "emulated-app", "peerId": "Tom", "sessionPeerIds": ["Jerry"]])
    #expect(try await tom.next("session", "opened").strings("onlineSessionPeerIds") == [])
    let jerry = try await bench.socket([])
    try await jerry.tell("session", "open", ["appId": "emulated-app", "peerId": "Jerry", "sessionPeerIds": []])
    #expect(try await tom.next("presence").string("status") == "on")
    try await tom.tell("direct", nil, ["peerId": "Tom", "msg": "hi", "toPeerIds": ["Jerry"]])
    let ack = try await tom.next("ack")
    let push = try await jerry.next("direct")
    #expect(push.string("id") == ack.string("uid"))
    #expect(push["cid"] == nil)
    try await tom.tell("room", "join", ["peerId": "Tom"])
    let joined = try await tom.next("room", "joined")
    #expect(joined.string("byPeerId") == "Tom")
    let room = try #require(joined.string("roomId"))
    try await tom.tell("room", "invite", ["peerId": "Tom", "roomId": .string(room), "roomPeerIds": ["Jerry"]])
    #expect(try await tom.next("room", "invited").strings("roomPeerIds") == ["Jerry"])
    #expect(try await jerry.next("room", "joined").string("byPeerId") == "Tom")
    try await jerry.tell("direct", nil, ["peerId": "Jerry", "msg": "yo", "roomId": .string(room)])
    #expect(try await tom.next("direct").string("roomId") == room)
    try await tom.tell("room", "kick", ["peerId": "Tom", "roomId": .string(room), "roomPeerIds": ["Jerry"]])
    #expect(try await jerry.next("room", "left").string("byPeerId") == "Tom")
    try await jerry.tell("session", "close", ["peerId": "Jerry"])
    #expect(try await tom.next("presence").string("status") == "off")
    let log = try await bench.rest("GET", "/1/rtm/messages/logs?convid=\(LeanCloudID.pair("Tom", "Jerry"))")
    #expect(log.body[0]?["data"]?.string == "hi")
  }

  @Test("an edit and a recall reach the others and history; only the author may")
  func patch() async throws {
    let bench = try Bench()
    let tom = try await bench.login("Tom")
    let jerry = try await bench.login("Jerry")
    let cid = try #require(try await tom.ask("conv", "start", ["m": ["Jerry"]]).string("cid"))
    let ack = try await tom.ask("direct", nil, ["cid": .string(cid), "msg": "one"])
    let item: JSONObject = [
      "cid": .string(cid), "mid": ack["uid"] ?? .null, "timestamp": ack["t"] ?? .null, "recall": false, "data": "two",
    ]
    #expect(try await jerry.ask("patch", "modify", ["patches": [.object(item)]])["code"] == 4403)
    #expect(try await tom.ask("patch", "modify", ["patches": [.object(item)]]).operation == "modified")
    #expect(try await jerry.next("patch", "modify")["patches"]?[0]?["data"] == "two")
    var recall = item
    recall["recall"] = true
    recall["data"] = nil
    _ = try await tom.ask("patch", "modify", ["patches": [.object(recall)]])
    let pushed = try await jerry.next("patch", "modify")["patches"]?[0]
    #expect(pushed?["recall"] == true)
    #expect(pushed?["data"] == #"{"_lctype":-127}"#)
    recall["mid"] = "AAAAAAAAAAAAAAAAAAAAAA"
    #expect(try await tom.ask("patch", "modify", ["patches": [.object(recall)]])["code"] == 4404)
  }

  @Test("a user's login with the same tag ends the other one; an automatic reopen is refused")
  func conflict() async throws {
    let bench = try Bench()
    let first = try await bench.login("Tom", fields: ["ua": "t", "tag": "mobile", "deviceId": "a"])
    let second = try await bench.login("Tom", fields: ["ua": "t", "tag": "mobile", "deviceId": "b"])
    #expect(try await first.next("session", "closed")["code"] == 4111)
    let late = try await bench.socket()
    let refused = try await late.ask(
      "session", "open",
      ["appId": "emulated-app", "peerId": "Tom", "ua": "t", "tag": "mobile", "deviceId": "a", "r": true])
    #expect(refused.operation == "closed")
    #expect(refused["code"] == 4111)
    #expect(
      try await second.ask("session", "query", ["sessionPeerIds": ["Tom", "Mary"]]).strings("onlineSessionPeerIds") == [
        "Tom"
      ])
  }

  struct Refusal: Sendable, CustomTestStringConvertible {
    var name: String
    var command: String
    var operation: String?
    var fields: JSONObject
    var code: Int64
    var testDescription: String { name }
  }

  @Test(
    "refusals carry the vendor's codes",
    arguments: [
      Refusal(
        name: "unknown conversation", command: "conv", operation: "add", fields: ["cid": "x", "m": ["A"]], code: 4303),
      Refusal(name: "send to nowhere", command: "direct", fields: ["cid": "x", "msg": "m"], code: 4401),
      Refusal(name: "foreign history", command: "logs", fields: ["cid": "CID", "l": 1], code: 4312),
      Refusal(name: "send without membership", command: "direct", fields: ["cid": "CID", "msg": "m"], code: 4317),
      Refusal(name: "unknown command", command: "conv", operation: "fly", fields: ["cid": "CID"], code: 4114),
      Refusal(name: "old token", command: "session", operation: "refresh", fields: ["st": "old"], code: 4112),
      Refusal(
        name: "client id of 65 characters", command: "session", operation: "open",
        fields: ["appId": "emulated-app", "peerId": .string(String(repeating: "x", count: 65))], code: 4103),
      Refusal(
        name: "another app", command: "session", operation: "open", fields: ["appId": "other", "peerId": "x"],
        code: 4100),
    ])
  func refusals(_ refusal: Refusal) async throws {
    let bench = try Bench()
    let owner = try await bench.login("Owner")
    let cid = try #require(try await owner.ask("conv", "start", ["m": ["Friend"]]).string("cid"))
    let tom = try await bench.login("Tom")
    var fields = refusal.fields
    if fields["cid"] == "CID" { fields["cid"] = .string(cid) }
    let answer = try await tom.ask(refusal.command, refusal.operation, fields)
    #expect(answer["code"]?.int == refusal.code)
  }

  @Test("a frame above 5 KB closes the link with 4109, and noise with 4114")
  func badFrames() async throws {
    let bench = try Bench()
    let big = try await bench.login("Tom")
    try await big.link.send(.text(#"{"cmd":"direct","msg":""# + String(repeating: "x", count: 5200) + #""}"#))
    let tooLong = await #expect(throws: WebSocketClose.self) { _ = try await big.receive() }
    #expect(tooLong?.code == 4109)
    let noisy = try await bench.login("Jerry")
    try await noisy.link.send(.text("{not json"))
    let unreadable = await #expect(throws: WebSocketClose.self) { _ = try await noisy.receive() }
    #expect(unreadable?.code == 4114)
  }

  @Test("an idle link is closed with 4107, one without login with 4108; a ping keeps it")
  func idle() async throws {
    let bench = try Bench()
    let silent = try await bench.socket()
    let tom = try await bench.login("Tom")
    await bench.host.advance(by: .seconds(200))
    let unopened = await #expect(throws: WebSocketClose.self) { _ = try await silent.receive() }
    #expect(unopened?.code == 4108)
    try await tom.send(.ping)
    #expect(try await tom.receive().isPing)
    await bench.host.advance(by: .seconds(200))
    _ = try await tom.ask("session", "query", ["sessionPeerIds": []])
    await bench.host.advance(by: .seconds(400))
    let closed = await #expect(throws: WebSocketClose.self) { _ = try await tom.receive() }
    #expect(closed?.code == 4107)
  }
}
