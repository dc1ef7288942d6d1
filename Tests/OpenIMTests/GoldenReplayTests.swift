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

  /// What the plain client did is known by its notes; what it was told stands there as it came.
  private func sendWhatTheProbeSent() throws {
    var probe = Probe(
      machine: machine, admin: admin, alice: machine.userToken("alice", admin: admin),
      bob: machine.userToken("bob", admin: admin))
    machine.context.now = 1_796_021_496_501
    try probe.run()
    machine.context.now = 1_796_021_503_865
    for id in probe.sockets.values { machine.feed(.closed(id, WebSocketClose())) }
  }
}

/// Refusals, cuts, doubles, kicks and a logout by force, in the order in which they were seen.
struct Probe {
  let machine: Machine
  let admin: String
  let alice: String
  let bob: String
  var sockets: [String: EmulatorConnectionID] = [:]
  private var done: Set<String> = []

  init(machine: Machine, admin: String, alice: String, bob: String) {
    self.machine = machine
    self.admin = admin
    self.alice = alice
    self.bob = bob
  }

  static let ok = #"{"errCode":0,"errMsg":"","errDlt":""}"#

  mutating func run() throws {
    let lines = try Recording.lines("json-probe.jsonl")
    sockets["B"] = machine.openJSON("bob", bob)
    #expect(machine.next(try #require(sockets["B"])) == .text(Self.ok))
    var newer = ""
    for (index, line) in lines.enumerated() {
      let who = line["who"]?.string ?? ""
      let what = line["what"]?.string ?? ""
      if let section = line["section"]?.string {
        if section == "same platform, new token" {
          machine.context.now += 2000
          newer = machine.userToken("alice", admin: admin)
        }
        try enter(section)
        continue
      }
      if what.isEmpty, line["text"]?.string == Self.ok { sockets[who] = machine.openJSON("alice", who == "A6" ? newer : alice) }
      if who == "old", line["text"] != nil { sockets[who] = machine.openJSON("alice", alice) }
      if !what.isEmpty, done.insert(what).inserted { try perform(what, on: try #require(sockets[who])) }
      try expect(line, on: try #require(sockets[who]), Comment("line \(index + 1)"))
    }
  }

  private func enter(_ section: String) throws {
    switch section {
    case "unknown id":
      machine.send(
        OpenIMRequestFrame(operation: 1999, sender: "alice", operationID: "o", increment: "11", data: []),
        on: try #require(sockets["A"]))
    case "wrong sendID in frame":
      try machine.send(.newestSequences, ["userID": "alice"], on: try #require(sockets["A2"]), as: "bob")
    case "oversized frame":
      machine.feed(.message(try #require(sockets["A3"]), .binary([UInt8](repeating: 0x20, count: 60_000))))
    case "force logout":
      #expect(machine.post("/auth/force_logout", ["platformID": 5, "userID": "bob"], token: admin)["errCode"] == 0)
      #expect(machine.post("/user/get_users_info", ["userIDs": []], token: bob)["errCode"] == 1506)
    default: break
    }
  }

  private func perform(_ what: String, on id: EmulatorConnectionID) throws {
    func send(_ number: Int, _ text: String, _ client: String, _ changes: JSONObject = [:]) throws {
      machine.context.now += 1000
      let content = #"{"content": "\#(text)"}"#
      var message: JSONObject = [
        "sendID": "alice", "recvID": "bob", "clientMsgID": .string(client), "senderPlatformID": 5,
        "senderNickname": "alice", "sessionType": 1, "msgFrom": 100, "contentType": 101,
        "content": .string(Base64.encode(Array(content.utf8))), "createTime": .int(machine.context.now - 1), "status": 1,
      ]
      for change in changes { message[change.key] = change.value }
      try machine.send(
        .send, .object(message), on: id, as: "alice", increment: String(number), operationID: "o\(number)")
    }
    switch what {
    case "ping-text": machine.feed(.message(id, .text(#"{"type":"ping"}"#)))
    case "1001 as text": machine.feed(.message(id, .text(#"{"reqIdentifier":1001,"sendID":"alice","msgIncr":"1"}"#)))
    case "1001 as binary":
      try machine.send(
        .newestSequences, ["userID": "alice"], on: id, as: "alice", increment: "2", operationID: "o2")
    case "send": try send(3, "js one", "cid-js-1")
    case "resend same clientMsgID": try send(4, "js one again", "cid-js-1")
    case "to unknown user": try send(5, "x", "cid-js-2", ["recvID": "nobody"])
    case "to unknown group": try send(6, "x", "cid-js-3", ["recvID": "", "groupID": "nogroup", "sessionType": 3])
    case "empty ids": try send(7, "", "")
    case "forged sendID": try send(8, "x", "cid-js-4", ["sendID": "bob"])
    case "3000 chars": try send(9, String(repeating: "y", count: 3000), "cid-js-5")
    case "1002":
      let range: JSONValue = ["conversationID": "si_alice_bob", "begin": 1, "end": 3, "num": 2]
      try machine.send(
        .pullRanges, ["userID": "alice", "seqRanges": [range]], on: id, as: "alice", increment: "10", operationID: "o10")
    default: break
    }
  }

  private func expect(_ line: JSONValue, on id: EmulatorConnectionID, _ place: Comment) throws {
    if let text = line["text"]?.string { return #expect(machine.next(id) == .text(text), place) }
    guard let recorded = line["frame"] else {
      return #expect(machine.next(id) == .closed(line["closed"]?.int.flatMap { UInt16(exactly: $0) }), place)
    }
    let frame = try #require(machine.nextFrame(id), place)
    #expect(frame.operation == recorded["reqIdentifier"]?.int, place)
    #expect(frame.increment == recorded["msgIncr"]?.string, place)
    #expect(frame.operationID == recorded["operationID"]?.string, place)
    #expect(frame.code == recorded["errCode"]?.int, place)
    #expect(frame.message == recorded["errMsg"]?.string, place)
    let body = OpenIMOperation(rawValue: frame.operation)?.answer
    let bytes = try #require(Base64.decode(recorded["data"]?.string ?? ""))
    // The notes hold the first part of long bodies only: what is there cannot be read as a whole.
    guard let told = try? body?.decode(bytes) ?? [:] else {
      return #expect(bytes.count > 100 && frame.data.count > bytes.count, place)
    }
    let normalise = Normaliser()
    #expect(normalise(try body?.decode(frame.data) ?? [:]) == normalise(told), place)
  }
}
