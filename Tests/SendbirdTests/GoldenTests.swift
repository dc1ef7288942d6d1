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
  var context = EmulatorContext(now: 1_796_030_000_000, random: EmulatorRandom(seed: 1))
  /// Frames to each socket, and statuses by request.
  var frames: [Int64: [SendbirdFrame]] = [:]
  var statuses: [Int64: Int] = [:]
  private var ended: Set<Int64> = []
  private let start: Int64 = 1_796_030_000_000

  init() throws {
    machine = try SendbirdEmulator(
      options: EmulatorOptions(
        users: [("alice", "tok-alice"), ("bob", "tok-bob")], applicationID: "APP", baseURL: "http://sendbird.test"))
  }

  mutating func play(_ line: JSONObject) {
    context.now = start + (line.number("ms") ?? 0)
    let socket = line.number("c") ?? 0
    let id = EmulatorConnectionID(UInt64(socket))
    switch line.text("k") {
    case "ws-open": give(.open(id, WebSocketRequest(line.text("url") ?? "")))
    case "ws<": give(.message(id, .text(line.text("text") ?? "")))
    case "ws-close", "ws-closed":
      if ended.insert(socket).inserted { give(.closed(id, WebSocketClose())) }
    case "http<":
      let exchange = EmulatorExchangeID(UInt64(line.number("n") ?? 0))
      give(.http(exchange, Self.request(line)))
    default: break
    }
  }

  private mutating func give(_ input: EmulatorInput) {
    for output in machine.handle(input, context: &context) {
      switch output {
      case .send(let id, .text(let text)):
        frames[Int64(id.number), default: []] += SendbirdFrame.parse(text).compactMap { try? $0.get() }
      case .respond(let id, let response): statuses[Int64(id.number)] = response.status
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
    #expect(count > 150)
  }

  @Test("its side of the conversation, said again, gets the same answers")
  func replay() throws {
    let lines = try Recording.lines(Self.name)
    var replay = try Replay()
    for line in lines { replay.play(line) }
    for line in lines where line.text("k") == "http>" {
      let number = line.number("n") ?? 0
      #expect(replay.statuses[number].map(Int64.init) == line.number("status"), "request \(number)")
    }
    var answers = 0
    for line in lines where line.text("k") == "ws>" {
      for case .success(let frame) in SendbirdFrame.parse(line.text("text") ?? "") {
        guard let id = frame.requestID else { continue }
        let own = replay.frames[line.number("c") ?? 0]?.first { $0.requestID == id }
        #expect(own?.command == frame.command, "\(frame.command) \(id)")
        #expect(own?.payload["msg_id"] == frame.payload["msg_id"])
        answers += 1
      }
    }
    #expect(answers > 35)
  }

  @Test("all that its own API was asked held")
  func checks() throws {
    let checks = try Recording.lines(Self.name).filter { $0.text("k") == "check" }
    #expect(checks.count >= 42)
    for check in checks { #expect(check.flag("ok") == true, "\(check.text("name") ?? "")") }
  }
}
