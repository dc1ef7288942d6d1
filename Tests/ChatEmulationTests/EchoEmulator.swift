import ChatJSON
import ChatTransport

/// A small vendor that uses everything a host offers.
///
/// HTTP: `/echo` answers method, URL and body; `/silent` never answers; `/late/NAME` sets timer NAME for one second
/// later and answers then; `/random` answers one random number; `/size/N` answers N bytes; other paths answer 404.
/// WebSocket: `/ws?user=NAME` takes the first offered protocol, without a user it refuses with status 200 and JSON, and
/// `/mute` forgets to answer. Text is echoed; `close`, `cut`, `all TEXT`, `timer MS NAME` and `stop NAME` are commands.
struct EchoEmulator: VendorEmulator {
  static let vendor = "echo"

  var baseURL: String
  private(set) var journal: [String] = []
  private var users: [EmulatorConnectionID: String] = [:]
  private var waiting: [String: EmulatorExchangeID] = [:]
  private var stored: [JSONValue] = []
  private var calls = 0

  init(options: EmulatorOptions) throws(EmulatorError) {
    if let unknown = options.settings.keys.sorted().first {
      throw EmulatorError(.invalidOption, "setting \(unknown) is unknown; echo has none")
    }
    baseURL = options.baseURL
  }

  mutating func handle(_ input: EmulatorInput, context: inout EmulatorContext) -> [EmulatorOutput] {
    switch input {
    case .http(let id, let request): return answer(id, request, &context)
    case .open(let id, let request): return open(id, request)
    case .message(let id, .text(let text)): return command(id, text, context)
    case .message(let id, .binary(let bytes)): return [.send(id, .binary(bytes))]
    case .ping(let id): return [.send(id, .text("pinged"))]
    case .closed(let id, let close):
      let user = users.removeValue(forKey: id) ?? "nobody"
      journal.append("closed \(user) \(close.code.map(String.init) ?? "cut")")
      return [.cancelTimer("left by \(user)")]
    case .timer(let name):
      journal.append("timer \(name) at \(context.now)")
      guard let id = waiting.removeValue(forKey: name) else { return [] }
      return [.respond(id, HTTPResponse(status: 200, body: Array(name.utf8)))]
    }
  }

  private mutating func answer(
    _ id: EmulatorExchangeID, _ request: HTTPRequest, _ context: inout EmulatorContext
  ) -> [EmulatorOutput] {
    calls += 1
    let path = Self.path(of: request.url)
    switch path.first {
    case "echo":
      let head = Array("\(request.method) \(request.url) ".utf8)
      return [.respond(id, HTTPResponse(status: 200, headers: ["X-Echo": "yes"], body: head + request.body))]
    case "journal": return [.respond(id, HTTPResponse(status: 200, body: Array(journal.joined(separator: "\n").utf8)))]
    case "silent": return []
    case "late":
      let name = path.last ?? ""
      waiting[name] = id
      return [.setTimer(name, dueAt: context.now + 1000)]
    case "random": return [.respond(id, HTTPResponse(status: 200, body: Array("\(context.random.next())".utf8)))]
    case "size":
      let count = path.last.flatMap { Int($0) } ?? 0
      return [.respond(id, HTTPResponse(status: 200, body: (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }))]
    default: return [.respond(id, HTTPResponse(status: 404))]
    }
  }

  private mutating func open(_ id: EmulatorConnectionID, _ request: WebSocketRequest) -> [EmulatorOutput] {
    if Self.path(of: request.url).first == "mute" { return [] }
    guard let user = Self.query("user", of: request.url) else {
      let body = JSONValue.object(["errCode": 1001])
      return [.reject(id, HTTPResponse(status: 200, headers: ["Content-Type": "application/json"], body: body.bytes()))]
    }
    users[id] = user
    return [.accept(id, subprotocol: request.subprotocols.first), .send(id, .text("hello \(user)"))]
  }

  private mutating func command(
    _ id: EmulatorConnectionID, _ text: String, _ context: EmulatorContext
  ) -> [EmulatorOutput] {
    let words = text.split(separator: " ").map(String.init)
    switch words.first {
    case "close":
      return [.send(id, .text("bye")), .close(id, WebSocketClose(code: 4001, reason: "asked")), .send(id, .text("lost"))]
    case "cut": return [.cut(id), .setTimer("left by \(users[id] ?? "")", dueAt: context.now)]
    case "all": return users.keys.sorted().map { .send($0, .text(text)) }
    case "timer": return [.setTimer(words.last ?? "", dueAt: context.now + (words.count > 1 ? Int64(words[1]) ?? 0 : 0))]
    case "stop": return [.cancelTimer(words.last ?? "")]
    default: return [.send(id, .text(text))]
    }
  }

  func operation(of input: EmulatorInput) -> EmulatorOperation {
    switch input {
    case .http(_, let request): EmulatorOperation("history", vendorName: "\(request.method) \(Self.path(of: request.url).first ?? "/")")
    case .open(_, let request): EmulatorOperation("auth", vendorName: "open", user: Self.query("user", of: request.url))
    case .message(let id, .text(let text)):
      EmulatorOperation("send", vendorName: "text", user: users[id], clientID: text)
    case .message(let id, _): EmulatorOperation("send", vendorName: "binary", user: users[id])
    case .ping(let id): EmulatorOperation("ping", vendorName: "ping", user: users[id])
    case .closed(let id, _): EmulatorOperation("other", vendorName: "closed", user: users[id])
    case .timer(let name): EmulatorOperation("other", vendorName: "timer \(name)")
    }
  }

  func operation(of output: EmulatorOutput) -> EmulatorOperation {
    switch output {
    case .respond: EmulatorOperation("history", vendorName: "response")
    case .send(let id, .text(let text)):
      EmulatorOperation(text.hasPrefix("all") ? "push" : "ack", vendorName: "text", user: users[id], clientID: text)
    case .send(let id, _): EmulatorOperation("ack", vendorName: "binary", user: users[id])
    default: EmulatorOperation("other", vendorName: "control")
    }
  }

  func refusal(of input: EmulatorInput, as failure: EmulatorFailure) -> [EmulatorOutput]? {
    guard case .message(let id, _) = input else { return nil }
    return [.send(id, .text("refused \(failure.kind)"))]
  }

  /// Binary frames are JSON with every byte changed: something that only this vendor can read.
  func content(of message: WebSocketMessage, on connection: EmulatorConnectionID, isInbound: Bool) -> JSONValue? {
    guard case .binary(let bytes) = message else { return nil }
    return try? JSONValue(parsing: bytes.map { ~$0 })
  }

  func message(
    _ content: JSONValue, like message: WebSocketMessage, on connection: EmulatorConnectionID, isInbound: Bool
  ) -> WebSocketMessage? { .binary(content.bytes().map { ~$0 }) }

  mutating func perform(_ action: EmulatorAction, context: inout EmulatorContext) throws(EmulatorError)
    -> [EmulatorOutput]
  {
    guard case .kick(let user) = action else { throw EmulatorError(.unsupported, "echo only kicks") }
    return users.filter { $0.value == user }.keys.sorted().map { .close($0, WebSocketClose(code: 4111, reason: "kicked")) }
  }

  mutating func load(_ record: JSONValue, context: inout EmulatorContext) throws(EmulatorError) {
    guard record["type"]?.string != nil else { throw EmulatorError(.invalidRecord, "/type is missing") }
    stored.append(record)
  }

  func records() -> [JSONValue] { stored }

  var coverage: [EmulatorCoverage] {
    [
      EmulatorCoverage(endpoint: "GET /echo", isImplemented: true, calls: calls),
      EmulatorCoverage(endpoint: "GET /missing", isImplemented: false, calls: 0),
    ]
  }

  func snapshot() -> JSONValue { ["stored": .array(stored), "calls": .int(Int64(calls))] }

  mutating func restore(_ snapshot: JSONValue) throws(EmulatorError) {
    guard let stored = snapshot["stored"]?.array, let calls = snapshot["calls"]?.int else {
      throw EmulatorError(.invalidSnapshot, "/stored or /calls is missing")
    }
    self.stored = stored
    self.calls = Int(calls)
    users = [:]
    waiting = [:]
  }

  static func path(of url: String) -> [String] {
    let afterScheme = url.split(separator: "://", maxSplits: 1).last ?? ""
    let path = afterScheme.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)[0]
    return path.split(separator: "/").dropFirst().map(String.init)
  }

  static func query(_ name: String, of url: String) -> String? {
    let parts = url.split(separator: "?", maxSplits: 1)
    guard parts.count == 2 else { return nil }
    return parts[1].split(separator: "&").first { $0.hasPrefix("\(name)=") }.map { String($0.dropFirst(name.count + 1)) }
  }
}
