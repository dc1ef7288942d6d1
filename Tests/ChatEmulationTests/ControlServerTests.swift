import ChatEmulation
import ChatJSON
import ChatTransport
import Testing

@Suite("The control interface over HTTP")
struct ControlServerTests {
  let host: EmulatorHost
  let control: ControlServer

  init() throws {
    host = try EmulatorHost(EmulatorFactory(EchoEmulator.self), clock: .virtual(start: 1_000_000), journal: .on)
    control = try ControlServer(host.control)
  }

  func call(_ method: String, _ path: String, _ body: String = "", token: String? = nil) async -> (Int, JSONValue) {
    let request = """
      \(method) \(path) HTTP/1.1\r
      Authorization: Bearer \(token ?? control.token)\r
      Content-Length: \(body.utf8.count)\r
      Connection: close\r
      \r
      \(body)
      """
    let answer = await RawSocket.exchange(request, port: control.port).text
    let status = answer.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    let start = answer.range(of: "\r\n\r\n")?.upperBound ?? answer.endIndex
    return (status, (try? JSONValue(parsing: String(answer[start...]))) ?? .null)
  }

  func open(_ user: String) async throws -> any WebSocketConnection {
    let connection = try await host.transports.webSocket.connect(WebSocketRequest("ws://h/ws?user=\(user)"))
    #expect(try await connection.receive() == .text("hello \(user)"))
    return connection
  }

  @Test("every call needs the token of this run; the page needs none and holds none")
  func token() async throws {
    let (status, error) = await call("GET", "/control/v1/rules", token: "wrong")
    #expect(status == 401)
    #expect(error["error"]?["kind"] == "unauthorized")
    let page = await RawSocket.exchange("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", port: control.port).text
    #expect(page.contains("<title>Emulator</title>"))
    #expect(!page.contains(control.token))
    #expect(try ControlServer(host.control).token != control.token)
  }

  @Test("a rule given as JSON fires, and the list tells how often")
  func rules() async throws {
    let rule = #"{"match":{"op":"send","clientID":"b","times":null},"phase":"afterCommit","do":["drop"]}"#
    let (status, added) = await call("POST", "/control/v1/rules", rule)
    #expect(status == 200)
    let alice = try await open("alice")
    for text in ["a", "b", "c"] { try await alice.send(.text(text)) }
    #expect(try await alice.receive() == .text("a"))
    #expect(try await alice.receive() == .text("c"))
    let (_, list) = await call("GET", "/control/v1/rules")
    #expect(list[0]?["hits"] == 1)
    #expect(list[0]?["missed"] == false)
    #expect(list[0]?["do"] == ["drop"])
    #expect(await call("DELETE", "/control/v1/rules/\(added["id"]?.int ?? 0)").0 == 200)
    #expect(await call("DELETE", "/control/v1/rules/99").0 == 404)
  }

  struct ActionCase: Sendable, CustomTestStringConvertible {
    var json: String
    var action: FaultRule.Action
    var testDescription: String { json }

    init(_ json: String, _ action: FaultRule.Action) {
      self.json = json
      self.action = action
    }
  }

  @Test(
    "actions are read from JSON",
    arguments: [
      ActionCase(#"{"delay":5}"#, .delay(.milliseconds(5))),
      ActionCase(#"{"delay":{"ms":5,"jitter_ms":2}}"#, .delay(.milliseconds(5), jitter: .milliseconds(2))),
      ActionCase(#"{"duplicate":3}"#, .duplicate(times: 3)),
      ActionCase(#"{"duplicate":{"times":2,"gap_ms":7}}"#, .duplicate(times: 2, gap: .milliseconds(7))),
      ActionCase(#"{"reorder":{"window":4,"shuffled":true}}"#, .reorder(window: 4, shuffled: true)),
      ActionCase(#"{"fail":"permission"}"#, .fail(EmulatorFailure("permission"))),
      ActionCase(#"{"fail":{"kind":"server","code":900,"shape":2}}"#, .fail(EmulatorFailure("server", code: 900, shape: 2))),
      ActionCase(
        #"{"http":{"status":429,"headers":{"Retry-After":"1"},"body":{"code":7}}}"#,
        .http(HTTPResponse(status: 429, headers: ["Retry-After": "1"], body: Array(#"{"code":7}"#.utf8)))),
      ActionCase(#"{"truncateBody":9}"#, .truncateBody(9)),
      ActionCase(#"{"closeSocket":"abrupt"}"#, .closeSocket(.abrupt)),
      ActionCase(#"{"closeSocket":{"clean":1001,"reason":"x"}}"#, .closeSocket(.clean(code: 1001, reason: "x"))),
      ActionCase(#""stall""#, .stall),
      ActionCase(
        #"{"patch":[{"op":"replace","path":"/a","value":null},{"op":"remove","path":"/b"}]}"#,
        .patch(["/a": .some(.null), "/b": Optional<JSONValue>.none])),
      ActionCase(#""kick""#, .act(.kick)),
      ActionCase(#"{"raw":{"base64":"AAE="}}"#, .raw(.binary([0, 1]))),
      ActionCase(#"{"fragment":[1,2]}"#, .fragment([1, 2])),
      ActionCase(#"{"corrupt":{"offset":1,"xor":128}}"#, .corrupt(offset: 1, xor: 128)),
    ])
  func actions(_ test: ActionCase) throws {
    let rule = try FaultRule(json: try JSONValue(parsing: #"{"match":{"op":"send"},"do":[\#(test.json)]}"#))
    #expect(rule.actions == [test.action])
    #expect(rule.times == 1)
  }

  @Test(
    "what is wrong or can't be done is said",
    arguments: [
      ("POST", "rules", #"{"do":[{"compress":1}]}"#, 409, "noHook"), ("POST", "rules", #"{"do":[{"halfClose":1}]}"#, 409, "noHook"),
      ("POST", "rules", #"{"do":[]}"#, 400, "invalid"), ("POST", "rules", #"{"do":["drop"],"phase":"later"}"#, 400, "invalid"),
      ("POST", "rules", #"{"match":{"nth":0},"do":["drop"]}"#, 400, "invalid"), ("POST", "rules", "{", 400, "invalid"),
      ("POST", "rules", #"{"match":{"device":"phone"},"do":["drop"]}"#, 409, "noHook"),
      ("POST", "rules", #"{"do":[{"closeSocket":"halfClose"}]}"#, 409, "noHook"),
      ("POST", "credentials", #"{"user":"alice","action":"expire"}"#, 422, "emulator"),
      ("POST", "credentials", #"{"user":"alice","action":"issue"}"#, 409, "noHook"),
      ("POST", "store/write", #"{"id":"u"}"#, 422, "emulator"), ("POST", "settings", #"{"colour":1}"#, 422, "emulator"),
      ("POST", "raw", #"{"session":77,"text":"x"}"#, 404, "notFound"), ("GET", "nothing", "", 404, "notFound"),
      ("POST", "server", #"{"action":"fly"}"#, 409, "noHook"), ("POST", "restore", "{}", 422, "emulator"),
      ("POST", "load", "{\"type\":\"a\"}\n{}", 400, "invalid"),
    ])
  func refusals(_ method: String, _ path: String, _ body: String, _ status: Int, _ kind: String) async {
    let (found, json) = await call(method, "/control/v1/" + path, body)
    #expect(found == status)
    #expect(json["error"]?["kind"] == .string(kind))
  }

  @Test("gates, waits, clock, sessions and raw frames work by HTTP")
  func steps() async throws {
    _ = await call("POST", "/control/v1/gate", #"{"name":"g","match":{"op":"send","clientID":"a"},"phase":"received"}"#)
    let alice = try await open("alice")
    try await alice.send(.text("a"))
    let (_, matched) = await call("POST", "/control/v1/await", #"{"op":"send","direction":"in","count":1,"timeout_ms":9000}"#)
    #expect(matched["matched"] == true)
    let (_, late) = await call("POST", "/control/v1/await", #"{"op":"ack","clientID":"a","timeout_ms":1}"#)
    #expect(late["matched"] == false)
    _ = await call("POST", "/control/v1/gate/g/open")
    #expect(try await alice.receive() == .text("a"))
    let (_, clock) = await call("POST", "/control/v1/clock", #"{"advance_ms":250}"#)
    #expect(clock["now"] == 1_000_250)
    let (_, sessions) = await call("POST", "/control/v1/sessions/query", #"{"user":"alice"}"#)
    #expect(sessions[0]?["user"] == "alice")
    _ = await call("POST", "/control/v1/raw", #"{"session":\#(sessions[0]?["connection"]?.int ?? 0),"text":"pushed"}"#)
    #expect(try await alice.receive() == .text("pushed"))
    _ = await call("POST", "/control/v1/sessions/act", #"{"user":"alice","action":"kill"}"#)
    let close = await #expect(throws: WebSocketClose.self) { try await alice.receive() }
    #expect(close?.code == nil)
    let (_, journal) = await call("GET", "/control/v1/journal?since=3")
    #expect(journal[0]?["index"] == 4)
    #expect(journal[0]?["op"] == "send")
  }

  @Test("state is written, read, kept and brought back by HTTP")
  func state() async throws {
    _ = await call("POST", "/control/v1/load", "{\"type\":\"a\"}\n\n{\"type\":\"b\"}\n")
    let (_, snapshot) = await call("POST", "/control/v1/snapshot")
    #expect(await call("POST", "/control/v1/store/write", #"[{"type":"c"}]"#).0 == 200)
    #expect(await host.records().count == 3)
    #expect(await call("POST", "/control/v1/restore", snapshot.text()).0 == 200)
    #expect(await host.records() == [["type": "a"], ["type": "b"]])
    _ = await call("POST", "/control/v1/reset")
    #expect(await host.records() == [])
    let (_, summary) = await call("GET", "/control/v1/summary")
    #expect(summary["vendor"] == "echo")
    #expect(summary["coverage"]?.array?.count == 2)
  }
}
