import ChatCrypto
import ChatJSON
import ChatTransport
import OpenIMWire
import Testing

@testable import OpenIMEmulator

@Suite("Requests and handshakes of the gateway that few clients make")
struct RareGatewayTests {
  let machine: Machine
  let admin: String
  let ok = Machine.Received.text(#"{"errCode":0,"errMsg":"","errDlt":""}"#)

  init() throws {
    machine = try Machine()
    admin = machine.adminToken()
    machine.register(["alice", "bob"], admin: admin)
  }

  private func connect(_ user: String, platform: Int64 = 5) -> EmulatorConnectionID {
    let id = machine.openJSON(user, machine.userToken(user, platform: platform, admin: admin), platform: platform)
    #expect(machine.next(id) == ok)
    return id
  }

  private func say(_ words: String, _ id: String, on alice: EmulatorConnectionID) throws {
    // Her own device hears of what she sent as well.
    while machine.next(alice) != nil {}
    let content = Base64.encode(Array(#"{"content":"\#(words)"}"#.utf8))
    try machine.send(
      .send,
      [
        "sendID": "alice", "recvID": "bob", "clientMsgID": .string(id), "sessionType": 1, "msgFrom": 100,
        "contentType": 101, "content": .string(content),
      ], on: alice, as: "alice")
    #expect(try machine.nextBody(alice)?["clientMsgID"] == .string(id))
  }

  @Test("1007 gives the newest message of each conversation that the user has, and to nobody else")
  func lastMessages() throws {
    let (alice, bob) = (connect("alice"), connect("bob", platform: 2))
    try say("one", "c1", on: alice)
    try say("two", "c2", on: alice)
    while machine.next(bob) != nil {}
    try machine.send(
      .lastMessages, ["userID": "bob", "conversationIDs": ["si_alice_bob", "si_bob_carol"]], on: bob, as: "bob")
    let found = try machine.nextBody(bob)?["msgs"]?.object
    #expect(found?.keys.map(\.self) == ["si_alice_bob"])
    #expect(found?["si_alice_bob"]?["clientMsgID"] == "c2" && found?["si_alice_bob"]?["seq"] == 2)
    try machine.send(.lastMessages, ["userID": "alice", "conversationIDs": ["si_alice_bob"]], on: bob, as: "bob")
    #expect(machine.nextFrame(bob)?.code == 1002)
  }

  @Test("2004: nothing is pushed to an iPhone in the background, other platforms get it all the same", arguments: [
    (1, false), (2, true), (5, true),
  ] as [(Int64, Bool)])
  func background(platform: Int64, isPushed: Bool) throws {
    let (alice, bob) = (connect("alice"), connect("bob", platform: platform))
    try machine.send(.background, ["userID": "bob", "isBackground": true], on: bob, as: "bob")
    #expect(machine.nextFrame(bob)?.code == 0)
    try say("while away", "c1", on: alice)
    #expect((machine.nextFrame(bob)?.operation == 2001) == isPushed)
    try machine.send(.background, ["userID": "bob", "isBackground": false], on: bob, as: "bob")
    #expect(machine.nextFrame(bob)?.operation == 2004)
    try say("back", "c2", on: alice)
    #expect(machine.nextFrame(bob)?.operation == 2001)
  }

  @Test("a handshake whose parameters are packed into one is the same handshake")
  func packed() throws {
    let token = machine.userToken("alice", admin: admin)
    let fields: JSONValue = [
      "token": .string(token), "userID": "alice", "platformID": 5, "operationID": "o", "sendResponse": true,
    ]
    let id = machine.open("/?v=" + Base64.urlEncode(fields.bytes()))
    #expect(machine.next(id) == ok)
    try machine.send(.newestSequences, ["userID": "alice"], on: id, as: "alice")
    #expect(machine.nextFrame(id)?.code == 0)
  }

  @Test("what is packed and can't be read is refused before the upgrade", arguments: [
    "%25%25", Base64.urlEncode(Array("no json".utf8)), Base64.urlEncode(Array("[1]".utf8)),
  ])
  func unreadable(packed: String) {
    _ = machine.open("/?v=" + packed)
    #expect(machine.refusal?.status == 200)
    #expect((try? JSONValue(parsing: machine.refusal?.body ?? []))?["errCode"] == 1602)
  }

  @Test("a token of another secret is unknown, one that was never issued is not there, an old one has expired", arguments: [
    ("another", 3600, 1505), ("openIM123", 3600, 1507), ("openIM123", -1, 1501),
  ] as [(String, Int64, Int64)])
  func tokens(secret: String, lifetime: Int64, code: Int64) {
    let now = machine.context.now / 1000
    let token = OpenIMToken(userID: "alice", platform: 5, expiresAt: now + lifetime, issuedAt: now - 10)
      .signed(with: secret)
    let answer = machine.post("/user/get_users_info", ["userIDs": ["alice"]], token: token)
    #expect(answer["errCode"] == .int(code))
    let id = machine.openJSON("alice", token)
    guard case .text(let text)? = machine.next(id) else {
      Issue.record("no first message")
      return
    }
    #expect(text.hasPrefix(#"{"errCode":\#(code),"#))
    #expect(machine.next(id) == .closed(nil))
  }
}
