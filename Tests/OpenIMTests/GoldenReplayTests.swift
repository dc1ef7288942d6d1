import ChatCrypto
import ChatJSON
import ChatTransport
import Foundation
import OpenIMWire
import Testing

/// What was recorded, line by line.
enum Recording {
  static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Golden/openim")

  static func lines(_ name: String) throws -> [JSONValue] {
    try String(decoding: Data(contentsOf: folder.appending(path: name)), as: UTF8.self)
      .split(separator: "\n").map { try JSONValue(parsing: String($0)) }
  }
}

/// Brings values of both sides to one form: numbers as text, ids and times of the server as marks, and JSON inside
/// `content` opened. The order of members stays.
struct Normaliser {
  func callAsFunction(_ value: JSONValue, key: String = "") -> JSONValue {
    switch value {
    case .int(let number): return text(String(number))
    case .string(let string): return key == "content" ? content(string) : text(string)
    case .array(let elements): return .array(sorted(elements.map { self($0) }))
    case .object(let object):
      return .object(JSONObject(object.map { (key: $0.key, value: self($0.value, key: $0.key)) }))
    default: return value
    }
  }

  private func text(_ text: String) -> JSONValue {
    if text.count == 32 || text.count == 24, Hex.decode(text) != nil { return "ID" }
    if let number = Int64(text), number > 1_700_000_000_000 { return "TIME" }
    return .string(text)
  }

  /// Members come in the order of a map on the real server.
  private func sorted(_ elements: [JSONValue]) -> [JSONValue] {
    guard elements.allSatisfy({ $0["userID"]?.string != nil }) else { return elements }
    return elements.sorted { ($0["userID"]?.string ?? "") < ($1["userID"]?.string ?? "") }
  }

  private func content(_ base64: String) -> JSONValue {
    guard let bytes = Base64.decode(base64), let json = try? JSONValue(parsing: bytes) else { return .string(base64) }
    guard let detail = json["detail"]?.string, let inner = try? JSONValue(parsing: detail) else { return self(json) }
    return ["detail": self(inner)]
  }
}

/// The client names list versions by ids that its server made; here they become those of the emulator.
final class VersionIDs {
  private var ours: [String: String] = [:]

  func learn(recorded: JSONValue, answered: JSONValue) {
    if let one = recorded["versionID"]?.string, let two = answered["versionID"]?.string { ours[one] = two }
    for member in recorded.object ?? [:] {
      if let other = answered[member.key] { learn(recorded: member.value, answered: other) }
    }
  }

  func translate(_ value: JSONValue) -> JSONValue {
    switch value {
    case .string(let text): .string(ours[text] ?? text)
    case .array(let elements): .array(elements.map(translate))
    case .object(let object): .object(JSONObject(object.map { (key: $0.key, value: translate($0.value)) }))
    default: value
    }
  }
}

@Suite("The recorded traffic of a real client and a real server")
struct GoldenReplayTests {
  let machine: Machine
  let admin: String
  let versions = VersionIDs()

  init() throws {
    machine = try Machine()
    admin = machine.adminToken()
    machine.register(["alice", "bob", "carol"], admin: admin)
  }

  @Test("tokens are the ones that the real server issued at that second")
  func tokens() throws {
    let uris = try Recording.lines("real-client-and-server-1.jsonl").compactMap { $0["uri"]?.string }
    for (user, uri) in zip(["alice", "bob"], uris) {
      let token = machine.userToken(user, platform: 7, admin: admin)
      #expect(uri.contains("token=\(token)&"))
    }
  }

  @Test("first login, messages, read marks, a group, logout; then a JSON client; then a login with history")
  func everything() throws {
    for user in ["alice", "bob"] { _ = machine.userToken(user, platform: 7, admin: admin) }
    try replay("real-client-and-server-1.jsonl")
    try sendWhatTheProbeSent()
    machine.context.now = 1_796_021_519_000
    var player = try Recording.lines("real-client-and-server-2.jsonl")
    // These were issued later than the ones before; their own times say when.
    for user in ["alice", "bob"] {
      guard let uri = player.compactMap({ $0["uri"]?.string }).first(where: { $0.contains("sendID=\(user)&") }),
        let token = uri.split(separator: "&").first(where: { $0.hasPrefix("token=") })?.dropFirst(6),
        let claims = OpenIMToken(reading: String(token))
      else { throw Missing() }
      machine.context.now = (claims.issuedAt + 5) * 1000
      #expect(machine.userToken(user, platform: 7, admin: admin) == token)
    }
    player = try Recording.lines("real-client-and-server-2.jsonl")
    try replay(player)
  }

  struct Missing: Error {}

  private func replay(_ name: String) throws { try replay(try Recording.lines(name)) }

  private func replay(_ lines: [JSONValue]) throws {
    var sockets: [String: EmulatorConnectionID] = [:]
    for (index, line) in lines.enumerated() {
      let place = Comment("line \(index + 1)")
      let user = line["user"]?.string ?? ""
      switch line["k"]?.string {
      case "ws-open":
        let uri = try #require(line["uri"]?.string)
        let name = try #require(uri.firstMatch(of: #/sendID=([a-z]+)&/#)?.1)
        // A drop by the network comes before the login after it.
        if let old = sockets[String(name)] { machine.feed(.closed(old, WebSocketClose())) }
        let id = machine.open(uri)
        #expect(machine.refusal == nil, place)
        sockets[String(name)] = id
      case "ws<": try send(line, on: try #require(sockets[user]))
      case "ws>": try expect(line, on: try #require(sockets[user]), place)
      case "http": try compare(line, place)
      default: break
      }
    }
    for (user, id) in sockets {
      let rest = (machine.inbox[id] ?? []).filter { $0 != .closed(nil) }
      #expect(rest.isEmpty, "\(user) was told more than by the real server")
    }
  }

  private func send(_ line: JSONValue, on id: EmulatorConnectionID) throws {
    let operation = try #require(line["id"]?.int.flatMap { OpenIMOperation(rawValue: $0) })
    machine.send(
      OpenIMRequestFrame(
        operation: operation.rawValue, sender: line["sendID"]?.string ?? "", operationID: line["op"]?.string ?? "",
        increment: line["incr"]?.string ?? "",
        data: try operation.request?.encode(Self.plain(try #require(line["body"]))) ?? []), on: id)
  }

  /// The recording writes 64-bit numbers as text and enums by name.
  private static func plain(_ value: JSONValue, key: String = "") -> JSONValue {
    let numbers = ["seq", "seqs", "sendTime", "createTime", "begin", "end", "num"]
    switch value {
    case .string("PullOrderDesc"): return 1
    case .string(let text): return numbers.contains(key) ? .int(Int64(text) ?? 0) : value
    case .array(let elements): return .array(elements.map { plain($0, key: key) })
    case .object(let object):
      return .object(JSONObject(object.map { (key: $0.key, value: plain($0.value, key: $0.key)) }))
    default: return value
    }
  }

  private func expect(_ line: JSONValue, on id: EmulatorConnectionID, _ place: Comment) throws {
    let frame = try #require(machine.nextFrame(id), place)
    #expect(frame.operation == line["id"]?.int, place)
    #expect(frame.increment == line["incr"]?.string, place)
    #expect(frame.operationID == line["op"]?.string, place)
    #expect(frame.code == line["err"]?.int, place)
    #expect(frame.message == line["msg"]?.string, place)
    let body = try OpenIMOperation(rawValue: frame.operation)?.answer?.decode(frame.data) ?? [:]
    let normalise = Normaliser()
    #expect(normalise(body) == normalise(try #require(line["body"])), place)
  }

  private func compare(_ line: JSONValue, _ place: Comment) throws {
    var headers: HTTPHeaders = [:]
    for (name, value) in line["hdr"]?.object?.members ?? [] { headers[name] = value.string ?? value[0]?.string }
    let asked = versions.translate(try #require(line["req"]))
    let response = machine.request(
      line["m"]?.string ?? "", line["path"]?.string ?? "", body: asked.bytes(), headers: headers)
    #expect(Int64(response.status) == line["status"]?.int, place)
    #expect(response.headers["Content-Encoding"] == "gzip", place)
    let body = try JSONValue(parsing: try Gzip.decompress(response.body, limit: 1 << 20))
    versions.learn(recorded: try #require(line["resp"]), answered: body)
    let normalise = Normaliser()
    // The text, so that the order of members counts too.
    let (answered, recorded) = (normalise(body).text(), normalise(try #require(line["resp"])).text())
    #expect(answered == recorded, place)
  }

  // MARK: The JSON client between the recordings

  private func sendWhatTheProbeSent() throws {
    let tokens = ["alice", "bob"].map { machine.userToken($0, admin: admin) }
    let alice = machine.openJSON("alice", tokens[0])
    let bob = machine.openJSON("bob", tokens[1])
    for id in [alice, bob] { #expect(machine.next(id) == .text(#"{"errCode":0,"errMsg":"","errDlt":""}"#)) }
    machine.feed(.message(alice, .text(#"{"type":"ping"}"#)))
    #expect(machine.next(alice) == .text(#"{"type":"pong","body":null}"#))
    try machine.send(.newestSequences, ["userID": "alice"], on: alice, as: "alice")
    #expect(
      try machine.nextBody(alice)?["maxSeqs"] == ["sg_g1": 2, "si_alice_bob": 3, "n_alice_bob": 1])
    let longText = String(repeating: "y", count: 3000)
    for (index, text) in [" js one", " js one again", " ", " \(longText)"].enumerated() {
      machine.context.now = 1_796_021_496_501 + Int64(index) * 1000
      let content = #"{"content": "\#(text.dropFirst())"}"#
      let client = ["cid-js-1", "cid-js-1", "", "cid-js-5"][index]
      let message: JSONValue = [
        "sendID": "alice", "recvID": "bob", "clientMsgID": .string(client), "senderPlatformID": 5,
        "senderNickname": "alice", "sessionType": 1, "msgFrom": 100, "contentType": 101,
        "content": .string(Base64.encode(Array(content.utf8))), "status": 1,
      ]
      try machine.send(.send, message, on: alice, as: "alice")
      let answer = try #require(try machine.nextBody(alice))
      #expect(answer["serverMsgID"]?.string?.count == 32)
      let seq = Int64(4 + index)
      for id in [alice, bob] {
        let pushed = try machine.nextBody(id)?["msgs"]?["si_alice_bob"]?["Msgs"]?[0]
        #expect(pushed?["seq"] == .int(seq))
        #expect(pushed?["status"] == 2)
        #expect(pushed?["serverMsgID"] == answer["serverMsgID"])
      }
    }
    machine.context.now = 1_796_021_503_865
    for id in [alice, bob] { machine.feed(.closed(id, WebSocketClose())) }
  }
}
