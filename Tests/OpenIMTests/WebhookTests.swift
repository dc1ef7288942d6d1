import ChatCrypto
import ChatJSON
import ChatTransport
import OpenIMWire
import Testing
import UnifiedChat

@testable import OpenIMEmulator

/// The app's own server is asked before a message goes out, and told afterwards.
@Suite("Webhooks of the emulated server")
struct OpenIMWebhookTests {
  let ok = Machine.Received.text(#"{"errCode":0,"errMsg":"","errDlt":""}"#)

  struct Stage {
    let machine: Machine
    let admin: String
    let alice: EmulatorConnectionID
    let bob: EmulatorConnectionID

    func send(_ text: String, increment: String = "1") throws {
      let content = JSONValue.object(["content": .string(text)]).bytes()
      try machine.send(
        .send,
        [
          "sendID": "alice", "recvID": "bob", "clientMsgID": .string(text), "sessionType": 1, "msgFrom": 100,
          "contentType": 101, "content": .string(content.base64),
        ], on: alice, as: "alice", increment: increment)
    }

    func answer(_ call: EmulatorCall, _ json: String?) {
      machine.answer(call, json.map { HTTPResponse(status: 200, body: Array($0.utf8)) })
    }

    func pushed(to id: EmulatorConnectionID) throws -> String? {
      let data = try machine.nextBody(id)?["msgs"]?["si_alice_bob"]?["Msgs"]?[0].map { OpenIMMessageData(json: $0) }
      return data.map { String(decoding: $0.content, as: UTF8.self) }
    }
  }

  func stage(_ hooks: [String], failedContinue: Bool = true) throws -> Stage {
    let machine = try Machine(
      options: EmulatorOptions(
        adminSecret: "openIM123",
        settings: [
          "webhookURL": "http://127.0.0.1:9/hook/", "webhooks": .array(hooks.map { .string($0) }),
          "webhookFailedContinue": .bool(failedContinue),
        ]))
    let admin = machine.adminToken()
    machine.register(["alice", "bob"], admin: admin)
    let sockets = ["alice", "bob"].map { machine.openJSON($0, machine.userToken($0, admin: admin)) }
    for id in sockets { #expect(machine.next(id) == ok) }
    return Stage(machine: machine, admin: admin, alice: sockets[0], bob: sockets[1])
  }

  static let allow = #"{"actionCode":0,"errCode":0,"errMsg":"","errDlt":"","nextCode":0}"#

  @Test("a message waits for the answer, and what came meanwhile waits behind it")
  func before() throws {
    let stage = try stage(["beforeSendSingleMsg", "afterSendSingleMsg"])
    try stage.send("one")
    try stage.send("two", increment: "2")
    let calls = stage.machine.emulator.takeCalls()
    #expect(calls.count == 1)
    #expect(calls[0].request.url == "http://127.0.0.1:9/hook/callbackBeforeSendSingleMsgCommand")
    #expect(calls[0].request.headers["operationID"] == "op")
    let body = try JSONValue(parsing: calls[0].request.body)
    #expect(body["callbackCommand"] == "callbackBeforeSendSingleMsgCommand")
    #expect(body["content"] == #"{"content":"one"}"#)
    #expect(body["recvID"] == "bob")
    #expect(stage.machine.next(stage.alice) == nil && stage.machine.next(stage.bob) == nil)
    stage.answer(calls[0], Self.allow)
    #expect(stage.machine.nextFrame(stage.alice)?.operation == 1003)
    #expect(try stage.pushed(to: stage.bob) == #"{"content":"one"}"#)
    let later = stage.machine.emulator.takeCalls()
    #expect(later.map { $0.request.url.split(separator: "/").last } == [
      "callbackAfterSendSingleMsgCommand", "callbackBeforeSendSingleMsgCommand",
    ])
    stage.answer(later[0], nil)
    stage.answer(later[1], Self.allow)
    #expect(try stage.pushed(to: stage.bob) == #"{"content":"two"}"#)
  }

  @Test("the app's server refuses in its own words", arguments: [
    (#"{"actionCode":0,"errCode":5001,"errMsg":"no","nextCode":1}"#, 5001, "no"),
    (#"{"actionCode":0,"errCode":0,"errMsg":"","nextCode":1}"#, 80000, ""),
  ] as [(String, Int64, String)])
  func refusal(answer: String, code: Int64, message: String) throws {
    let stage = try stage(["beforeSendSingleMsg"])
    try stage.send("one")
    stage.answer(try #require(stage.machine.emulator.takeCalls().first), answer)
    let frame = try #require(stage.machine.nextFrame(stage.alice))
    #expect(frame.code == code && frame.message == message)
    #expect(stage.machine.next(stage.bob) == nil)
  }

  @Test("when the app's server is silent, the setting decides", arguments: [true, false])
  func silence(continues: Bool) throws {
    let stage = try stage(["beforeSendSingleMsg"], failedContinue: continues)
    try stage.send("one")
    stage.answer(try #require(stage.machine.emulator.takeCalls().first), nil)
    #expect(stage.machine.nextFrame(stage.alice)?.code == (continues ? 0 : 90004))
    #expect((try stage.pushed(to: stage.bob) != nil) == continues)
  }

  @Test("the app's server may change a message, and the sender is shown what became of it")
  func modify() throws {
    let stage = try stage(["beforeMsgModify"])
    try stage.send("bad word")
    let change = #"{"actionCode":0,"nextCode":0,"content":"{\"content\":\"***\"}","ex":"checked"}"#
    stage.answer(try #require(stage.machine.emulator.takeCalls().first), change)
    let answer = try #require(try stage.machine.nextBody(stage.alice))
    #expect(answer["modify"]?["ex"] == "checked")
    #expect(try stage.pushed(to: stage.bob) == #"{"content":"***"}"#)
  }

  @Test("the admin's call waits as well")
  func rest() throws {
    let stage = try stage(["beforeSendSingleMsg"])
    let body: JSONValue = [
      "sendID": "alice", "recvID": "bob", "contentType": 101, "sessionType": 1, "content": ["content": "hi"],
    ]
    #expect(stage.machine.post("/msg/send_msg", body, token: stage.admin) == .null)
    stage.answer(try #require(stage.machine.emulator.takeCalls().first), Self.allow)
    let response = try JSONValue(parsing: try #require(stage.machine.lastResponse?.body))
    #expect(response["data"]?["serverMsgID"]?.string?.count == 32)
    #expect(try stage.pushed(to: stage.bob) == #"{"content":"hi"}"#)
  }
}

@Suite("Webhooks through the host", .timeLimit(.minutes(5)))
struct OpenIMHostedWebhookTests {
  /// The app's own server: it does not like bad words.
  struct Backend: HTTPClient {
    func send(
      _ request: HTTPRequest, progress: (@Sendable (TransferProgress) -> Void)?
    ) async throws(TransportError) -> HTTPResponse {
      guard request.url == "http://127.0.0.1:9/callbackBeforeSendSingleMsgCommand" else { throw TransportError(.refused) }
      let isBad = String(decoding: request.body, as: UTF8.self).contains("bad word")
      let answer = isBad ? #"{"actionCode":0,"errCode":5001,"errMsg":"no","nextCode":1}"# : OpenIMWebhookTests.allow
      return HTTPResponse(status: 200, body: Array(answer.utf8))
    }
  }

  @Test("the host asks the app's server over HTTP, and the send that waits has its answer")
  func hosted() async throws {
    let harness = try ChatHarness(
      settings: ["webhookURL": "http://127.0.0.1:9", "webhooks": ["beforeSendSingleMsg", "afterSendSingleMsg"]])
    await harness.host.setCaller(Backend())
    let alice = try await harness.connected("alice")
    let channel = try await alice.createChannel(.direct(with: "bob"))
    let sent = try await alice.send(ChatHarness.text("good", "c1", in: channel.id))
    let error = await #expect(throws: ChatError.self) {
      try await alice.send(ChatHarness.text("a bad word", "c2", in: channel.id))
    }
    #expect(error?.vendor?.code == "5001")
    #expect(try await alice.history(of: channel.id, .newest()).messages.map(\.id) == [sent.id])
  }
}

extension [UInt8] {
  var base64: String { Base64.encode(self) }
}
