import ChatJSON
import ChatTransport
import Foundation
import SendbirdEmulator
import SendbirdWire
import Testing

/// The lines of a recording, by `Tests/Golden/sendbird/README.md`.
private enum Recording {
  static func lines(_ name: String, from file: String = #filePath) throws -> [JSONObject] {
    let tests = URL(filePath: file).deletingLastPathComponent().deletingLastPathComponent()
    let text = try String(contentsOf: tests.appending(path: "Golden/sendbird/\(name)"), encoding: .utf8)
    return try text.split(separator: "\n").map { try JSONValue(parsing: String($0)).asObject() }
  }
}

/// The emulator as the machine that it is: no sockets, no tasks, one input after the other.
private struct Replay {
  var machine: SendbirdEmulator
  var context = EmulatorContext(now: 0, random: EmulatorRandom(seed: 1))
  /// Frames to each socket, and answers by request.
  var frames: [Int64: [SendbirdFrame]] = [:]
  var answers: [Int64: HTTPResponse] = [:]
  private var ended: Set<Int64> = []
  private var start: Int64 = 0
  /// Refusals that the recording asked the emulator for, until each has been given.
  private var refusals: [(operation: String, user: String, failure: EmulatorFailure)] = []

  init() throws {
    machine = try SendbirdEmulator(
      options: EmulatorOptions(
        users: [("alice", "tok-alice"), ("bob", "tok-bob")], applicationID: "APP", adminSecret: "secret",
        baseURL: "http://sendbird.test"))
  }

  mutating func play(_ line: JSONObject) throws {
    context.now = start + (line.number("ms") ?? 0)
    let socket = line.number("c") ?? 0
    let id = EmulatorConnectionID(UInt64(socket))
    switch line.text("k") {
    case "start": start = line.number("time") ?? 0
    case "ws-open": give(.open(id, WebSocketRequest(line.text("url") ?? "")))
    case "ws<": give(.message(id, .text(line.text("text") ?? "")))
    case "ws-close", "ws-closed":
      if ended.insert(socket).inserted { give(.closed(id, WebSocketClose())) }
    case "http<":
      let exchange = EmulatorExchangeID(UInt64(line.number("n") ?? 0))
      give(.http(exchange, Self.request(line)))
    case "act": try act(line.text("path") ?? "", line.object("body") ?? JSONObject())
    default: break
    }
  }

  /// What the flow did to the emulator behind the client's back.
  private mutating func act(_ path: String, _ body: JSONObject) throws {
    let user = body.text("user") ?? ""
    switch (path, body.text("action")) {
    case ("rules", _):
      let match = body.object("match") ?? JSONObject()
      let kind = body.list("do").first?["fail"]?["kind"]?.string ?? ""
      refusals.append((match.text("op") ?? "", match.text("user") ?? "", EmulatorFailure(kind)))
    case ("credentials", "expire"): carryOut(try machine.perform(.expireCredential(user: user), context: &context))
    case ("credentials", "revoke"): carryOut(try machine.perform(.revokeCredential(user: user), context: &context))
    default: break  // The end of a link stands in the recording; frames that were put in came from nobody.
    }
  }

  private mutating func give(_ input: EmulatorInput) {
    let meaning = machine.operation(of: input)
    let place = refusals.firstIndex { $0.operation == meaning.name && $0.user == meaning.user }
    if let place, let refused = machine.refusal(of: input, as: refusals[place].failure) {
      refusals.remove(at: place)
      return carryOut(refused)
    }
    carryOut(machine.handle(input, context: &context))
  }

  private mutating func carryOut(_ outputs: [EmulatorOutput]) {
    for output in outputs {
      switch output {
      case .send(let id, .text(let text)):
        frames[Int64(id.number), default: []] += SendbirdFrame.parse(text).compactMap { try? $0.get() }
      case .respond(let id, let response): answers[Int64(id.number)] = response
      default: break
      }
    }
  }

  private static func request(_ line: JSONObject) -> HTTPRequest {
    var request = HTTPRequest(line.text("method") ?? "", line.text("url") ?? "")
    for (name, value) in line.object("headers") ?? JSONObject() { request.headers[name] = value.string }
    let isForm = request.headers["Content-Type"]?.hasPrefix("multipart/") ?? false
    let body = line.text("body") ?? ""
    request.body = isForm ? body.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } : Array(body.utf8)
    return request
  }
}

@Suite("The official JavaScript client")
struct SendbirdGoldenTests {
  static let name = "javascript-3.1.33-and-emulator.jsonl"

  @Test("every frame of the recording is read, and written again as the same frame")
  func frames() throws {
    var count = 0
    for line in try Recording.lines(Self.name) {
      guard let text = line.text("text") else { continue }
      for piece in SendbirdFrame.parse(text) {
        let frame = try piece.get()
        #expect(SendbirdFrame.parse(frame.text) == [.success(frame)])
        count += 1
      }
    }
    #expect(count > 550)
  }

  @Test("its side of the conversation, said again, gets the same answers")
  func replay() throws {
    let lines = try Recording.lines(Self.name)
    var replay = try Replay()
    for line in lines { try replay.play(line) }
    var requests = 0
    for line in lines where line.text("k") == "http>" {
      let number = line.number("n") ?? 0
      let own = replay.answers[number]
      #expect(own.map { Int64($0.status) } == line.number("status"), "request \(number)")
      guard let body = line.text("body"), let then = (try? JSONValue(parsing: body))?.object else { continue }
      let now = try JSONValue(parsing: own?.body ?? []).object
      #expect(now.map { Set($0.keys) } == Set(then.keys), "request \(number)")
      requests += 1
    }
    #expect(requests > 250)
    #expect(try problems(lines, replay) == [])
    var answers = 0
    for line in lines where line.text("k") == "ws>" {
      for case .success(let frame) in SendbirdFrame.parse(line.text("text") ?? "") {
        guard let id = frame.requestID else { continue }
        // A message that is sent again has the same id, and an answer of its own.
        let socket = line.number("c") ?? 0
        let place = replay.frames[socket]?.firstIndex { $0.requestID == id }
        let own = place.flatMap { replay.frames[socket]?.remove(at: $0) }
        #expect(own?.command == frame.command, "\(frame.command) \(id)")
        #expect(own?.payload["msg_id"] == frame.payload["msg_id"])
        answers += 1
      }
    }
    #expect(answers > 90)
  }

  /// Where the client's requests and frames, as recorded, and our answers, as they are now, leave the schemas.
  private func problems(_ lines: [JSONObject], _ replay: Replay) throws -> [String] {
    var problems: [String] = []
    for line in lines {
      switch line.text("k") {
      case "http<":
        let number = line.number("n") ?? 0
        guard let body = replay.answers[number]?.body, let answer = try? JSONValue(parsing: body),
          (line.text("url") ?? "").contains("/v3/")
        else { continue }
        guard let call = SendbirdSchemas.call(line.text("method") ?? "", line.text("url") ?? "") else {
          problems.append("no schema: \(line.text("url") ?? "")")
          continue
        }
        let request = line.text("body").flatMap { try? JSONValue(parsing: $0) }
        problems += SendbirdSchemas.problems(call, request: request, response: answer).map { "\(number) \($0)" }
      case "ws<":
        for case .success(let frame) in SendbirdFrame.parse(line.text("text") ?? "") {
          problems += SendbirdSchemas.problems(frame, isClient: true)
        }
      default: break
      }
    }
    for frame in replay.frames.values.joined() { problems += SendbirdSchemas.problems(frame, isClient: false) }
    return problems
  }

  @Test("all that its own API was asked held")
  func checks() throws {
    let checks = try Recording.lines(Self.name).filter { $0.text("k") == "check" }
    #expect(checks.count >= 250)
    for check in checks { #expect(check.flag("ok") == true, "\(check.text("name") ?? "")") }
  }
}
