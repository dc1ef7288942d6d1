import ChatInterchange
import ChatJSON
import ChatTransport
import OpenIMWire
import Testing
import UnifiedChat

@testable import OpenIMEmulator

/// What was seen at the real server with a plain JSON client (`Golden/openim/real-server-json-probe.txt`).
@Suite("The emulator refuses as the server does")
struct OpenIMRefusalTests {
  let machine: Machine
  let admin: String
  let alice: String
  let ok = Machine.Received.text(#"{"errCode":0,"errMsg":"","errDlt":""}"#)

  init() throws {
    machine = try Machine()
    admin = machine.adminToken()
    machine.register(["alice", "bob"], admin: admin)
    alice = machine.userToken("alice", admin: admin)
  }

  @Test("an upgrade that fails: in the first message when a result is wanted, else with status 200", arguments: [
    ("token=garbage", 1503, "TokenMalformedError"), ("platformID=3", 1502, "TokenInvalidError"),
    ("sendID=bob", 1502, "TokenInvalidError"),
  ])
  func token(change: String, code: Int, name: String) {
    var query = "sendID=alice&token=\(alice)&platformID=5&operationID=o&isBackground=false&sdkType=js"
    let key = change.split(separator: "=")[0]
    query = query.split(separator: "&").map { $0.hasPrefix("\(key)=") ? change : String($0) }.joined(separator: "&")
    let shown = machine.open("/?\(query)&isMsgResp=true")
    guard case .text(let text)? = machine.next(shown) else { return #expect(Bool(false)) }
    #expect(text.hasPrefix(#"{"errCode":\#(code),"errMsg":"\#(name)","errDlt":""#))
    #expect(machine.next(shown) == .closed(nil))
    _ = machine.open("/?\(query)")
    #expect(machine.refusal?.status == 200)
    let refused = (try? JSONValue(parsing: machine.refusal?.body ?? []))?["errCode"]?.int
    #expect(refused == Int64(code))
  }

  @Test("bad arguments are refused before the upgrade, whatever is wanted", arguments: [
    ("token", 1602), ("platformID", 1602), ("sdkType=basic", 1602), ("isBackground", 500),
  ])
  func arguments(change: String, code: Int) {
    let query = "sendID=alice&token=\(alice)&platformID=5&operationID=o&isBackground=false&sdkType=js&isMsgResp=true"
    let parts = change.split(separator: "=")
    let changed = query.split(separator: "&").compactMap { pair -> String? in
      guard pair.hasPrefix("\(parts[0])=") else { return String(pair) }
      return parts.count == 2 ? change : nil
    }
    _ = machine.open("/?" + changed.joined(separator: "&"))
    #expect(machine.refusal?.status == 200)
    let refused = (try? JSONValue(parsing: machine.refusal?.body ?? []))?["errCode"]?.int
    #expect(refused == Int64(code))
  }

  @Test("a request as text, an unknown number, another sender: the link is cut without a word")
  func cuts() throws {
    for kind in 0..<3 {
      let id = machine.openJSON("alice", alice)
      #expect(machine.next(id) == ok)
      switch kind {
      case 0: machine.feed(.message(id, .text(#"{"reqIdentifier":1001}"#)))
      case 1:
        machine.send(
          OpenIMRequestFrame(operation: 1999, sender: "alice", operationID: "o", increment: "1", data: []), on: id)
      default: try machine.send(.newestSequences, ["userID": "alice"], on: id, as: "bob")
      }
      #expect(machine.next(id) == .closed(nil))
    }
  }

  @Test("a frame above 51,200 bytes closes with 1009")
  func oversize() {
    let id = machine.openJSON("alice", alice)
    #expect(machine.next(id) == ok)
    machine.feed(.message(id, .binary([UInt8](repeating: 0x20, count: 60_000))))
    #expect(machine.next(id) == .closed(1009))
  }

  @Test("the same token may connect twice; a newer one kicks both, and the old one answers 1506")
  func kick() throws {
    let one = machine.openJSON("alice", alice)
    let two = machine.openJSON("alice", alice)
    #expect(machine.next(one) == ok && machine.next(two) == ok)
    machine.context.now += 2000
    let newer = machine.userToken("alice", admin: admin)
    #expect(machine.next(one) == nil)
    let three = machine.openJSON("alice", newer)
    #expect(machine.next(three) == ok)
    for id in [one, two] {
      #expect(machine.next(id) == .frame(OpenIMResponseFrame(operation: 2002)))
      #expect(machine.next(id) == .closed(nil))
    }
    #expect(machine.post("/user/get_users_info", ["userIDs": []], token: alice)["errCode"] == 1506)
    let late = machine.openJSON("alice", alice)
    #expect(machine.next(late) == .text(#"{"errCode":1506,"errMsg":"TokenKickedError","errDlt":""}"#))
  }

  @Test("both envelopes work with and without compression, side by side in one chat", arguments: [
    "", "&compression=gzip", "&sdkType=js", "&sdkType=js&compression=gzip",
  ])
  func forms(query: String) throws {
    let bob = machine.userToken("bob", admin: admin)
    let one = machine.open("/?sendID=alice&token=\(alice)&platformID=5&operationID=o&isBackground=false\(query)")
    let two = machine.open("/?sendID=bob&token=\(bob)&platformID=5&operationID=o&isBackground=false")
    try machine.send(
      .send,
      [
        "sendID": "alice", "recvID": "bob", "clientMsgID": "c", "sessionType": 1, "msgFrom": 100, "contentType": 101,
        "content": "eyJjb250ZW50IjoiaGkifQ==",
      ], on: one, as: "alice")
    #expect(try machine.nextBody(one)?["clientMsgID"] == "c")
    for id in [one, two] {
      #expect(try machine.nextBody(id)?["msgs"]?["si_alice_bob"]?["Msgs"]?[0]?["content"] == "eyJjb250ZW50IjoiaGkifQ==")
    }
  }

  @Test("errors of a send leave the link open", arguments: [
    ("recvID", "nobody", 1, 1004), ("groupID", "nogroup", 3, 500), ("sendID", "bob", 1, 1002),
    ("recvID", "bob", 2, 1001),
  ])
  func sends(key: String, value: String, session: Int64, code: Int64) throws {
    let id = machine.openJSON("alice", alice)
    #expect(machine.next(id) == ok)
    var message: JSONObject = [
      "sendID": "alice", "recvID": "bob", "clientMsgID": "c", "sessionType": .int(session), "msgFrom": 100,
      "contentType": 101, "content": "e30=",
    ]
    message[key] = .string(value)
    try machine.send(.send, .object(message), on: id, as: "alice")
    #expect(machine.nextFrame(id)?.code == code)
    try machine.send(.newestSequences, ["userID": "alice"], on: id, as: "alice")
    #expect(machine.nextFrame(id)?.code == 0)
  }

  @Test("a silent link is cut after 30 seconds, one that pings is not")
  func idle() {
    let silent = machine.openJSON("alice", alice)
    let alive = machine.openJSON("alice", alice)
    #expect(machine.next(silent) == ok && machine.next(alive) == ok)
    let start = machine.context.now
    #expect(machine.timers["idle"] == start + 30_000)
    machine.context.now = start + 24_000
    machine.feed(.ping(alive))
    machine.context.now = start + 30_000
    machine.feed(.timer("idle"))
    #expect(machine.next(silent) == .closed(nil))
    #expect(machine.next(alive) == nil)
    #expect(machine.timers["idle"] == start + 54_000)
  }

  @Test("REST: missing headers, unknown paths, and data that is left out", arguments: [
    ("/user/get_users_info", "", 200, 1001), ("/user/no_such_call", "", 404, 0), ("/group/get_group_abstract_info", "", 404, 0),
  ])
  func rest(path: String, body: String, status: Int, code: Int64) {
    let response = machine.request("POST", path, body: Array("{}".utf8), headers: ["operationID": "o"])
    #expect(response.status == status)
    guard code != 0 else { return #expect(response.body == Array("404 page not found".utf8)) }
    #expect((try? JSONValue(parsing: response.body))?["errCode"] == .int(code))
  }

  @Test("registering twice is 1102 for the whole call; a user who registers is refused")
  func register() {
    let users: JSONValue = ["users": [["userID": "alice"], ["userID": "dave"]]]
    #expect(machine.post("/user/user_register", users, token: admin)["errCode"] == 1102)
    #expect(machine.post("/user/user_register", users, token: alice)["errCode"] == 1002)
    let illegal: JSONValue = ["users": [["userID": "a-b"]]]
    #expect(machine.post("/user/user_register", illegal, token: admin)["errDlt"] == "userID is legal")
    #expect(
      machine.post("/user/account_check", ["checkUserIDs": ["dave"]], token: admin)["data"]?["results"]?[0]?[
        "accountStatus"] == 0)
  }

  @Test("what the import refuses", arguments: [
    (107, #"{"title":"x"}"#, 1001), (109, #"{"latitude":1}"#, 1001), (101, #"{"content":""}"#, 500),
    (103, #"{"sourceUrl":"u","duration":0}"#, 500), (110, #"{"data":""}"#, 500),
  ] as [(Int64, String, Int64)])
  func imports(type: Int64, content: String, code: Int64) throws {
    let body: JSONValue = [
      "sendID": "alice", "recvID": "bob", "contentType": .int(type), "sessionType": 1,
      "content": try JSONValue(parsing: content),
    ]
    #expect(machine.post("/msg/send_msg", body, token: admin)["errCode"] == .int(code))
    #expect(machine.post("/msg/send_msg", body, token: alice)["errCode"] == 1002)
  }

  @Test("whatever bytes come, the machine answers or cuts")
  func mutations() throws {
    var random = EmulatorRandom(seed: 7)
    let lines = try Recording.lines("real-client-and-server-1.jsonl").filter { $0["k"] == "http" }
    for line in lines {
      var body = try #require(line["req"]).bytes()
      for _ in 0..<20 {
        let place = Int(random.next() % UInt64(body.count))
        body[place] = UInt8(truncatingIfNeeded: random.next())
        let response = machine.request(
          "POST", line["path"]?.string ?? "", body: body, headers: ["operationID": "o", "token": admin])
        #expect(response.status == 200 || response.status == 400)
      }
    }
    for _ in 0..<300 {
      let id = machine.openJSON("alice", alice)
      let bytes = (0..<Int(random.next() % 60)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      let frame = OpenIMRequestFrame(
        operation: [1001, 1002, 1003, 1005, 1006, 1007, 2004, 2005][Int(random.next() % 8)], sender: "alice",
        operationID: "o", increment: "1", data: bytes)
      machine.send(frame, on: id)
      #expect(machine.inbox[id]?.isEmpty == false)
    }
  }
}

@Suite("The emulator's state")
struct OpenIMStateTests {
  @Test("records come back as they were loaded, and a snapshot restores all of it")
  func records() throws {
    let machine = try Machine(options: EmulatorOptions())
    var loaded = Samples.users.map { Record.user($0) }
    loaded.append(.channel(Samples.groupRecord))
    loaded += [
      .member(Samples.member(Samples.group, "alice", .owner)), .member(Samples.member(Samples.group, "bob")),
    ]
    loaded.append(.channel(Samples.pairRecord))
    loaded += [.member(Samples.member(Samples.pair, "bob")), .member(Samples.member(Samples.pair, "alice"))]
    for (index, (_, content)) in Samples.contents.enumerated() {
      for channel in [Samples.group, Samples.pair] { loaded.append(.message(Samples.message(channel, index, content))) }
    }
    for record in loaded { try machine.emulator.load(record.json(), context: &machine.context) }
    let records = machine.emulator.records()
    let messages = try records.filter { $0["type"] == "message" }.map { try Record(json: $0) }
    #expect(messages.count == Samples.contents.count * 2)
    for case .message(let record) in messages {
      let number = Int(record.message.id?.rawValue.dropFirst() ?? "") ?? -1
      #expect(record.message.content == Samples.contents[number].1, "\(Samples.contents[number].0)")
      #expect(record.message.createdAt.milliseconds == Samples.start + Int64(number / 3))
    }
    #expect(records.count { $0["type"] == "member" } == 4)
    let copy = try Machine(options: EmulatorOptions())
    try copy.emulator.restore(machine.emulator.snapshot())
    #expect(copy.emulator.records() == records)
    #expect(copy.emulator.snapshot() == machine.emulator.snapshot())
  }

  @Test("a record that cannot be is refused by the name of its member", arguments: [
    (#"{"type":"message","channel":"x","createdAt":1,"content":{"kind":"text","text":"a"}}"#, "/channel"),
    (#"{"type":"member","channel":"x","user":"a"}"#, "/channel"), (#"{"type":"user"}"#, "/id"),
    (#"{"type":"song"}"#, "/type"),
  ])
  func bad(record: String, place: String) throws {
    let machine = try Machine()
    let error = #expect(throws: EmulatorError.self) {
      try machine.emulator.load(try JSONValue(parsing: record), context: &machine.context)
    }
    #expect(error?.kind == .invalidRecord)
    #expect(error?.description.contains(place) == true)
  }

  @Test("holes and placeholders close the sequence; a wrong setting is named")
  func holes() throws {
    let machine = try Machine(options: EmulatorOptions(adminSecret: "openIM123"))
    for record in [
      Record.user(Samples.users[0]), .user(Samples.users[1]), .channel(Samples.pairRecord),
      .member(Samples.member(Samples.pair, "alice")), .member(Samples.member(Samples.pair, "bob")),
    ] { try machine.emulator.load(record.json(), context: &machine.context) }
    for seq in [2, 5] as [Int64] {
      let record = Samples.message(Samples.pair, Int(seq), .text("\(seq)")) { $0.position = MessagePosition(sequence: seq) }
      try machine.emulator.load(Record.message(record).json(), context: &machine.context)
    }
    let range: JSONValue = ["conversationID": "si_alice_bob", "begin": 1, "end": 9, "num": 9]
    let data = machine.post(
      "/msg/pull_msg_by_seq", ["userID": "bob", "seqRanges": [range], "order": 0], token: machine.adminToken())["data"]
    let list = data?["msgs"]?["si_alice_bob"]?["Msgs"]?.array ?? []
    #expect(list.map { $0["seq"]?.int } == [1, 2, 3, 4, 5])
    #expect(list.map { $0["status"]?.int } == [4, 2, 4, 4, 2])
    #expect(throws: EmulatorError.self) { try Machine(options: EmulatorOptions(settings: ["colour": 1])) }
  }

  @Test("coverage names what was called, and what is not there")
  func coverage() throws {
    let machine = try Machine()
    let admin = machine.adminToken()
    _ = machine.post("/group/get_group_abstract_info", [:], token: admin)
    _ = machine.post("/nothing", [:], token: admin)
    let rows = machine.emulator.coverage
    #expect(rows.first { $0.endpoint == "POST /auth/get_admin_token" }?.calls == 1)
    let missing = "POST /group/get_group_abstract_info"
    #expect(
      rows.first { $0.endpoint == missing } == EmulatorCoverage(endpoint: missing, isImplemented: false, calls: 1))
    #expect(rows.contains { $0.endpoint == "POST (unknown path)" && !$0.isImplemented })
    #expect(Set(rows.map(\.endpoint)).count == rows.count)
  }
}
