import ChatEmulation
import ChatJSON
import ChatTransport
import SendbirdWire
import Testing

@testable import SendbirdEmulator

/// The machine alone, with a URL that plays the push services: what it would be told comes back at once.
private final class PushLab {
  let machine: SendbirdEmulator
  private var context = EmulatorContext(now: 0, random: EmulatorRandom(seed: 1))
  private var number: UInt64 = 0

  /// ana writes, bob has a device and no socket; `talk` is their group, with cleo.
  init(_ settings: [String: JSONValue] = [:], at time: Int64 = Lab.start) throws {
    let url: [String: JSONValue] = ["pushURL": "http://127.0.0.1:9/push"]
    machine = try SendbirdEmulator(
      options: EmulatorOptions(
        applicationID: "APP", adminSecret: "secret", baseURL: "http://sendbird.test",
        settings: url.merging(settings) { $1 }))
    context.now = time
    for id in ["ana", "bob", "cleo"] {
      call("POST", "users", ["user_id": .string(id), "nickname": .string(id.uppercased()), "profile_url": ""])
    }
    call("POST", "users/bob/push/gcm", ["gcm_reg_token": "device-1"])
    call("POST", "group_channels", ["user_ids": ["ana", "bob", "cleo"], "channel_url": "talk", "name": "Talk"])
  }

  @discardableResult
  func call(_ method: String, _ path: String, _ body: JSONValue? = nil) -> JSONValue {
    number += 1
    var request = HTTPRequest(method, "http://sendbird.test/v3/\(path)", headers: ["Api-Token": "secret"])
    if let body { request.body = body.bytes() }
    for case .respond(_, let response) in machine.handle(.http(EmulatorExchangeID(number), request), context: &context) {
      return (try? JSONValue(parsing: response.body)) ?? .null
    }
    return .null
  }

  func wait(seconds: Int64) { context.now += seconds * 1000 }

  func logIn(_ user: String) {
    number += 1
    let request = WebSocketRequest("ws://sendbird.test/?ai=APP&user_id=\(user)")
    _ = machine.handle(.open(EmulatorConnectionID(number), request), context: &context)
  }

  /// What the services are told of a message.
  func pushes(_ more: JSONObject = JSONObject(), to channel: String = "group_channels/talk") -> [JSONValue] {
    var body: JSONObject = ["message_type": "MESG", "user_id": "ana", "message": "hello"]
    for (name, value) in more { body[name] = value }
    _ = machine.takeCalls()
    #expect(call("POST", "\(channel)/messages", .object(body))["error"] == nil)
    return machine.takeCalls().map { call in
      #expect(call.request.url == "http://127.0.0.1:9/push" && call.request.method == "POST")
      return (try? JSONValue(parsing: call.request.body)) ?? .null
    }
  }
}

private struct Silence: Sendable, CustomTestStringConvertible {
  var testDescription: String
  var calls: [(call: String, body: JSONValue)] = []
  var message = JSONObject()
  var pushes = 0
}

private func preference(_ body: JSONValue) -> [(call: String, body: JSONValue)] {
  [("PUT users/bob/push_preference", body)]
}

// The lab begins at 2023-11-14 22:13:20 UTC, 23:13 in Berlin.
private let cases: [Silence] = [
  Silence(testDescription: "nothing is set", pushes: 1),
  Silence(testDescription: "push_option suppress", message: ["push_option": "suppress"]),
  Silence(testDescription: "send_push false", message: ["send_push": false]),
  Silence(testDescription: "a silent message", message: ["is_silent": true]),
  Silence(testDescription: "a notice", message: ["message_type": "ADMM"]),
  Silence(testDescription: "a notice that pushes", message: ["message_type": "ADMM", "send_push": true], pushes: 1),
  Silence(testDescription: "an own message", message: ["user_id": "bob"]),
  Silence(testDescription: "off for all", calls: preference(["push_trigger_option": "off"])),
  Silence(
    testDescription: "off for all, on for the channel",
    calls: preference(["push_trigger_option": "off"]) + [
      ("PUT users/bob/push_preference/talk", ["push_trigger_option": "all"])
    ], pushes: 1),
  Silence(
    testDescription: "off for the channel", calls: [("PUT users/bob/push_preference/talk", ["push_trigger_option": "off"])]),
  Silence(testDescription: "not enabled for the channel", calls: [("PUT users/bob/push_preference/talk", ["enable": false])]),
  Silence(testDescription: "mentions only", calls: preference(["push_trigger_option": "mention_only"])),
  Silence(
    testDescription: "mentions only, mentioned", calls: preference(["push_trigger_option": "mention_only"]),
    message: ["mentioned_user_ids": ["bob"]], pushes: 1),
  Silence(
    testDescription: "mentions only, all mentioned", calls: preference(["push_trigger_option": "mention_only"]),
    message: ["mention_type": "channel"], pushes: 1),
  Silence(
    testDescription: "the hours of rest",
    calls: preference(["do_not_disturb": true, "start_hour": 22, "start_min": 13, "end_hour": 22, "end_min": 14])),
  Silence(
    testDescription: "their end",
    calls: preference(["do_not_disturb": true, "start_hour": 22, "start_min": 0, "end_hour": 22, "end_min": 13]),
    pushes: 1),
  Silence(
    testDescription: "hours over midnight", calls: preference(["do_not_disturb": true, "start_hour": 22, "end_hour": 6])),
  Silence(
    testDescription: "hours of another zone",
    calls: preference(["do_not_disturb": true, "start_hour": 23, "end_hour": 6, "timezone": "Europe/Berlin"])),
  Silence(
    testDescription: "hours that are not switched on", calls: preference(["start_hour": 22, "end_hour": 6]), pushes: 1),
  Silence(
    testDescription: "a snooze",
    calls: preference([
      "snooze_enabled": true, "snooze_start_ts": .int(Lab.start - 1), "snooze_end_ts": .int(Lab.start + 1),
    ])),
  Silence(
    testDescription: "a snooze that is over",
    calls: preference([
      "snooze_enabled": true, "snooze_start_ts": .int(Lab.start - 9), "snooze_end_ts": .int(Lab.start - 1),
    ]), pushes: 1),
  Silence(testDescription: "the sender is blocked", calls: [("POST users/bob/block", ["target_id": "ana"])]),
  Silence(
    testDescription: "hidden for good", calls: [("PUT group_channels/talk/hide", ["user_id": "bob", "allow_auto_unhide": false])]),
  Silence(testDescription: "hidden until the next", calls: [("PUT group_channels/talk/hide", ["user_id": "bob"])], pushes: 1),
  Silence(testDescription: "the device is gone", calls: [("DELETE push/device_tokens/gcm/device-1", [:])]),
  Silence(testDescription: "preferences that were reset", calls: preference(["push_trigger_option": "off"]) + [
    ("DELETE users/bob/push_preference", [:])
  ], pushes: 1),
]

@Suite("Push at Sendbird")
struct SendbirdPushTests {
  @Test("who is offline and wants it is told, once a device", arguments: cases)
  fileprivate func wanted(_ silence: Silence) throws {
    let lab = try PushLab()
    for (call, body) in silence.calls {
      let parts = call.split(separator: " ").map(String.init)
      #expect(lab.call(parts[0], parts[1], body)["error"] == nil, "\(call)")
    }
    #expect(lab.pushes(silence.message).count == silence.pushes)
  }

  @Test("who has a socket is told only where the application says so; super groups and open channels never push")
  func audience() throws {
    let lab = try PushLab()
    lab.logIn("bob")
    #expect(lab.pushes().isEmpty)
    let eager = try PushLab(["pushWhileOnline": true])
    eager.logIn("bob")
    #expect(eager.pushes().count == 1)
    let other = try PushLab()
    other.call("POST", "group_channels", ["user_ids": ["ana", "bob"], "channel_url": "hall", "is_super": true])
    other.call("POST", "open_channels", ["channel_url": "lobby"])
    #expect(other.pushes(to: "group_channels/hall").isEmpty && other.pushes(to: "open_channels/lobby").isEmpty)
    #expect(try PushLab(["pushURL": "http://localhost/push"]).machine.takeCalls().isEmpty)
  }

  @Test("each service gets its own form, with the vendor's block in it")
  func payloads() throws {
    let lab = try PushLab()
    lab.call("POST", "users/cleo/push/apns", ["apns_device_token": "device-2"])
    lab.call("PUT", "users/cleo/push_preference", ["push_sound": "bell"])
    lab.call("PUT", "users/cleo/push/template", ["name": "alternative"])
    let told = lab.pushes(["custom_type": "t", "mentioned_user_ids": ["cleo"]])
    #expect(told.map { $0["type"] } == ["gcm", "apns"] && told.map { $0["token"] } == ["device-1", "device-2"])
    // One carries texts only.
    let data = try #require(told.first?["payload"]?["data"])
    #expect(data["message"] == "ANA: hello")
    let first = try JSONValue(parsing: try #require(data["sendbird"]?.string))
    let second = try #require(told.last?["payload"]?["sendbird"])
    for (block, id) in [(first, "bob"), (second, "cleo")] {
      #expect(block["category"] == "messaging:offline_notification" && block["type"] == "MESG")
      #expect(block["app_id"] == "APP" && block["message"] == "hello" && block["custom_type"] == "t")
      #expect(block["created_at"]?.int == Lab.start && block["unread_message_count"] == 1)
      #expect(block["recipient"]?["id"]?.string == id && block["sender"]?["id"] == "ana")
      #expect(block["channel"] == ["channel_url": "talk", "name": "Talk", "custom_type": ""])
      #expect(block["mentioned_users"]?[0]?["user_id"] == "cleo")
    }
    #expect(second["recipient"]?["push_template"] == "alternative")
    let aps = try #require(told.last?["payload"]?["aps"])
    // Whoever wants no words on a locked screen gets none.
    #expect(aps["alert"] == "New message" && aps["badge"] == 1 && aps["sound"] == "bell")
  }

  @Test("a received payload can be confirmed: the sender sees it delivered")
  func delivered() throws {
    let lab = try PushLab()
    lab.wait(seconds: 9)
    let block = try JSONValue(parsing: try #require(lab.pushes().first?["payload"]?["data"]?["sendbird"]?.string))
    let time = try #require(block["created_at"])
    #expect(lab.call("GET", "group_channels/talk?show_delivery_receipt=true")["delivery_receipt"]?["bob"] != time)
    lab.call("PUT", "group_channels/talk/messages/mark_as_delivered", ["user_id": "bob", "ts": time])
    let channel = lab.call("GET", "group_channels/talk?show_delivery_receipt=true")
    #expect(channel["delivery_receipt"]?["bob"] == time)
  }

  @Test("a device belongs to whoever registered it, to all of them, or to the last alone")
  func devices() throws {
    let lab = try PushLab()
    lab.call("POST", "users/cleo/push/gcm", ["gcm_reg_token": "device-1"])
    func owners() -> [String] {
      (lab.call("GET", "push/device_tokens/gcm/device-1")["users"]?.array ?? []).compactMap { $0["user_id"]?.string }
    }
    #expect(owners() == ["bob", "cleo"])
    #expect(lab.pushes().count == 2)
    lab.call("POST", "users/cleo/push/gcm", ["gcm_reg_token": "device-1", "is_unique": true])
    #expect(owners() == ["cleo"])
    lab.call("DELETE", "push/device_tokens/gcm/device-1")
    #expect(lab.call("GET", "push/device_tokens/gcm/device-1")["code"]?.int == 400201)
    #expect(lab.call("GET", "push/device_tokens/pager/device-1")["code"]?.int == 400111)
  }

  @Test(
    "preferences are bounded",
    arguments: [
      (["push_trigger_option": "loud"], 400111), (["start_hour": 24], 400113), (["end_min": 60], 400113),
      (["start_min": -1], 400113), (["timezone": "Mars/Olympus"], 400111), (["do_not_disturb": "yes"], 400104),
    ] as [(JSONValue, Int64)])
  func bounds(body: JSONValue, code: Int64) throws {
    let lab = try PushLab()
    let before = lab.call("GET", "users/bob/push_preference")
    #expect(lab.call("PUT", "users/bob/push_preference", body)["code"]?.int == code)
    #expect(lab.call("GET", "users/bob/push_preference") == before)
    #expect(lab.call("PUT", "users/bob/count_preference/talk", ["count_preference": "some"])["code"]?.int == 400111)
    #expect(lab.call("PUT", "users/bob/push_preference/talk", ["push_sound": "ping"])["push_sound"] == "ping")
    #expect(lab.call("GET", "users/bob/push_preference/talk")["push_sound"] == "ping")
  }
}
