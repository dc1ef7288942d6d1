import ChatJSON
import ChatTransport
import Foundation
import LeanCloudAdapter
import LeanCloudEmulator
import LeanCloudWire
import Synchronization
import Testing
import UnifiedChat

/// As much of JSON Schema 2020-12 as `Schemas/leancloud/frame.schema.json` uses.
struct FrameSchema: Sendable {
  let root: JSONValue

  init() throws {
    let file = GoldenTests.folder.appending(path: "../../../Schemas/leancloud/frame.schema.json")
    root = try JSONValue(parsing: Array(try Data(contentsOf: file)), limits: JSONLimits(size: .max))
  }

  enum Side: String, Sendable, CaseIterable { case client, server }

  /// Each kind of command of one side, by `cmd/op`.
  func kinds(_ side: Side) -> [(name: String, schema: JSONValue)] {
    let all = root["$defs"]?[side.rawValue]?["allOf"]?[1]?["anyOf"]?.array ?? []
    return all.compactMap { kind in kind["title"]?.string.map { ($0, kind) } }
  }

  func fits(_ frame: LeanCloudFrame, _ side: Side) -> Bool {
    fits(.object(frame.object), ["$ref": .string("#/$defs/\(side.rawValue)")])
  }

  static let keywords: Set<String> = [
    "$ref", "allOf", "anyOf", "const", "enum", "type", "required", "properties", "propertyNames",
    "additionalProperties", "items", "minLength", "minimum",
  ]
  static let words: Set<String> = ["$schema", "$defs", "title", "description"]

  func fits(_ value: JSONValue, _ schema: JSONValue) -> Bool {
    guard let object = schema.object else { return schema.bool ?? false }
    return object.allSatisfy { fits(value, keyword: $0.key, $0.value, object) }
  }

  private func fits(_ value: JSONValue, keyword: String, _ wanted: JSONValue, _ schema: JSONObject) -> Bool {
    switch keyword {
    case "$ref": fits(value, root["$defs"]?[wanted.string?.split(separator: "/").last.map(String.init) ?? ""] ?? false)
    case "allOf": wanted.array?.allSatisfy { fits(value, $0) } ?? false
    case "anyOf": wanted.array?.contains { fits(value, $0) } ?? false
    case "const": value == wanted
    case "enum": wanted.array?.contains(value) ?? false
    case "type": (wanted.array ?? [wanted]).contains { $0.string.map { isType($0, value) } ?? false }
    case "required": value.object.map { object in wanted.array?.allSatisfy { object[$0.string ?? ""] != nil } ?? false } ?? true
    case "properties":
      value.object?.allSatisfy { member in wanted[member.key].map { fits(member.value, $0) } ?? true } ?? true
    case "propertyNames": value.object?.allSatisfy { fits(.string($0.key), wanted) } ?? true
    case "additionalProperties":
      wanted.bool == true || value.object?.allSatisfy { schema["properties"]?[$0.key] != nil } ?? true
    case "items": value.array?.allSatisfy { fits($0, wanted) } ?? true
    case "minLength": value.string.map { $0.unicodeScalars.count >= wanted.int ?? 0 } ?? true
    case "minimum": value.int.map { $0 >= wanted.int ?? .min } ?? true
    default: Self.words.contains(keyword)
    }
  }

  private func isType(_ name: String, _ value: JSONValue) -> Bool {
    switch name {
    case "object": value.object != nil
    case "array": value.array != nil
    case "string": value.string != nil
    case "integer": value.int != nil
    case "boolean": value.bool != nil
    default: false
    }
  }
}

extension LeanCloudFrame {
  var kindName: String { operation.isEmpty ? command : "\(command)/\(operation)" }
}

/// What passes on the sockets of one sub-protocol, in both directions.
final class FrameTap: WebSocketClient {
  let inner: any WebSocketClient
  private let frames = Mutex<[(side: FrameSchema.Side, frame: LeanCloudFrame)]>([])

  init(_ inner: any WebSocketClient) { self.inner = inner }

  var seen: [(side: FrameSchema.Side, frame: LeanCloudFrame)] { frames.withLock { $0 } }

  func connect(_ request: WebSocketRequest) async throws(TransportError) -> any WebSocketConnection {
    let subprotocol = request.subprotocols.first.flatMap { LeanCloudSubprotocol(name: $0) } ?? .unnamed
    return Link(inner: try await inner.connect(request), tap: self, codec: LeanCloudCodec(subprotocol))
  }

  func note(_ message: WebSocketMessage, _ side: FrameSchema.Side, _ codec: LeanCloudCodec) {
    let frame: LeanCloudFrame?
    switch message {
    case .text(let text): frame = try? codec.decode(.text(text))
    case .binary(let bytes): frame = try? codec.decode(.binary(bytes))
    }
    // What cannot be read fits nothing.
    frames.withLock { $0.append((side, frame ?? LeanCloudFrame("unreadable"))) }
  }

  private struct Link: WebSocketConnection {
    let inner: any WebSocketConnection
    let tap: FrameTap
    let codec: LeanCloudCodec
    var subprotocol: String? { inner.subprotocol }
    func send(_ message: WebSocketMessage) async throws(TransportError) {
      tap.note(message, .client, codec)
      try await inner.send(message)
    }
    func receive() async throws(WebSocketClose) -> WebSocketMessage {
      let message = try await inner.receive()
      tap.note(message, .server, codec)
      return message
    }
    func ping() async throws(TransportError) { try await inner.ping() }
    func close(code: UInt16, reason: String) async { await inner.close(code: code, reason: reason) }
  }
}

@Suite("Frames fit their schema, which lets through nothing else", .timeLimit(.minutes(1)))
struct LeanCloudSchemaTests {
  let schema: FrameSchema

  init() throws { schema = try FrameSchema() }

  func expectFits(_ frames: [(side: FrameSchema.Side, frame: LeanCloudFrame)]) {
    for (side, frame) in frames {
      #expect(schema.fits(frame, side), "\(side.rawValue) \(frame.kindName): \(JSONValue.object(frame.object).text())")
    }
  }

  func seen(_ frames: [(side: FrameSchema.Side, frame: LeanCloudFrame)], _ side: FrameSchema.Side) -> Set<String> {
    Set(frames.filter { $0.side == side }.map(\.frame.kindName))
  }

  // MARK: The schema itself

  @Test("the schema says nothing that the test beside it does not understand")
  func keywords() {
    func check(_ schema: JSONValue, isMap: Bool) {
      for member in schema.object ?? [:] {
        if !isMap {
          #expect(FrameSchema.keywords.contains(member.key) || FrameSchema.words.contains(member.key), "\(member.key)")
        }
        let holdsNames = ["properties", "$defs"].contains(member.key) && !isMap
        if !["required", "enum", "const", "type"].contains(member.key) || isMap {
          for item in member.value.array ?? [] { check(item, isMap: false) }
          check(member.value, isMap: holdsNames)
        }
      }
    }
    check(schema.root, isMap: false)
  }

  @Test("every command and operation of the table has a kind, and every field of a kind stands in the table")
  func table() throws {
    let file = GoldenTests.folder.appending(path: "../../../Schemas/leancloud/commands.fields.json")
    let table = try JSONValue(parsing: Array(try Data(contentsOf: file)), limits: JSONLimits(size: .max))
    func fields(_ message: String) -> Set<String> {
      Set((table["messages"]?[message]?.array ?? []).compactMap { $0["name"]?.string })
    }
    let all = FrameSchema.Side.allCases.flatMap { schema.kinds($0) }
    let operations = Set(all.compactMap { $0.name.split(separator: "/").dropFirst().first.map(String.init) })
    // Push and queries that live on the same socket are no part of chat; no source shows the rest in use.
    let others: Set<String> = [
      "conflict", "subscribe", "subscribed", "unsubscribe", "unsubscribed", "is-subscribed",
    ]
    for operation in table["enums"]?["OpType"]?.object ?? [:] {
      let name = operation.key.replacing("_", with: "-")
      #expect(operations.contains(name) != others.contains(name), "\(name)")
    }
    let commands = Set(all.compactMap { $0.name.split(separator: "/").first.map(String.init) })
    let push: Set<String> = ["login", "data", "loggedin", "logout", "loggedout", "pubsub"]
    for command in table["enums"]?["CommandType"]?.object ?? [:] {
      #expect(commands.contains(command.key) != push.contains(command.key), "\(command.key)")
    }
    let envelope = fields("GenericCommand")
    for (name, kind) in all {
      let command = name.split(separator: "/").first.map(String.init) ?? ""
      let own = fields(command.prefix(1).uppercased() + command.dropFirst() + "Command")
      for names in kind["propertyNames"]?["anyOf"]?.array ?? [] {
        for field in names["enum"]?.array ?? [] {
          // `level` and `read` are members of JSON clients alone.
          let isOfJSON = ["direct level", "ack read"].contains("\(name) \(field.string ?? "")")
          #expect(own.contains(field.string ?? "") || envelope.contains(field.string ?? "") || isOfJSON, "\(name) \(field)")
        }
      }
    }
  }

  // MARK: Recorded frames

  @Test("every frame of the recorded conversations fits the side that said it", arguments: GoldenTests.files)
  func recorded(_ file: String) throws {
    let (codec, entries) = try GoldenTests().entries(file)
    var frames: [(side: FrameSchema.Side, frame: LeanCloudFrame)] = []
    for entry in entries {
      guard let side = entry["from"]?.string.flatMap({ FrameSchema.Side(rawValue: $0) }) else { continue }
      frames.append((side, try codec.decode(GoldenTests().payload(entry))))
    }
    #expect(frames.count >= 20)
    expectFits(frames)
  }

  @Test("a recorded frame with another member, one less, or one of another type does not fit", arguments: GoldenTests.files)
  func spoilt(_ file: String) throws {
    let (codec, entries) = try GoldenTests().entries(file)
    for entry in entries {
      guard let side = entry["from"]?.string.flatMap({ FrameSchema.Side(rawValue: $0) }) else { continue }
      let frame = try codec.decode(GoldenTests().payload(entry))
      if frame.isPing { continue }
      var more = frame
      more["surprise"] = 1
      #expect(!schema.fits(more, side), "\(frame.kindName) takes any member")
      for member in frame.object where member.key != "where" && member.key != "attr" && member.key != "attrModified" {
        var other = frame
        other[member.key] = .array([.array([.object(["no": "such value"])])])
        #expect(!schema.fits(other, side), "\(frame.kindName): \(member.key) takes any value")
      }
      let kind = schema.kinds(side).first { $0.name == frame.kindName }
      for required in kind?.schema["required"]?.array ?? [] {
        var less = frame
        less[required.string ?? ""] = nil
        #expect(!schema.fits(less, side), "\(frame.kindName) needs no \(required)")
      }
    }
  }

  // MARK: What is said here

  static let protocols = LeanCloudSubprotocol.Format.allCases.map(\.rawValue)

  func client(_ user: UserID, _ bench: Bench, _ tap: FrameTap, _ options: [String: JSONText], session: Bool) async throws
    -> Client
  {
    let transports = Transports(http: bench.host.transports.http, webSocket: tap)
    let profile = bench.profile(options, model: session ? "session" : nil)
    let adapter: any ChatAdapter =
      session
      ? try LeanCloudPeerAdapter(profile: profile, environment: bench.environment(), transports: transports)
      : try LeanCloudAdapter(profile: profile, environment: bench.environment(), transports: transports)
    let client = Client(adapter: adapter)
    _ = try await adapter.connect(as: user, credential: .none)
    return client
  }

  @Test("what adapter and emulator say to one another, whatever the sub-protocol", arguments: protocols)
  func journey(_ name: String) async throws {
    let bench = try Bench()
    let tap = FrameTap(bench.host.transports.webSocket)
    let options = ["protocol": JSONText(unchecked: "\"\(name)\"")]
    let alice = try await client("alice", bench, tap, options, session: false)
    let bob = try await client("bob", bench, tap, options, session: false)
    let (me, you) = (alice.adapter, bob.adapter)
    let direct = try await me.createChannel(.direct(with: "bob"))
    let group = try await me.createChannel(ChannelDraft(members: ["bob", "carol"], name: "n"))
    try await me.invite(["dave"], to: group.id)
    try await me.removeMembers(["dave"], from: group.id)
    try await me.setRole(.admin, of: "bob", in: group.id)
    try await me.mute("carol", in: group.id, for: nil)
    _ = try await me.members(of: group.id, limit: 10, page: nil)
    try await me.unmute("carol", in: group.id)
    try await me.ban("carol", from: group.id, for: nil)
    try await me.unban("carol", from: group.id)
    _ = try await me.updateChannel(group.id, ChannelChanges(name: "m"))
    for level in [NotificationLevel.none, .all] { try await me.setNotificationLevel(level, of: group.id) }
    var mention = alice.text("look", to: group.id, id: "c-0")
    mention.draft.mentions = Mentions(users: ["bob"], everyone: true)
    let sent = try await me.send(mention)
    var passing = alice.text("passing", to: direct.id, id: "c-p")
    passing.draft.isTransient = true
    _ = try await me.send(passing)
    try await me.setTyping(true, in: direct.id)
    let wanted = try await me.send(alice.text("hi", to: direct.id, id: "c-1"))
    #expect(await bob.next { if case .messageReceived(let message) = $0.kind, message.id == wanted.id { true } else { nil } } == true)
    try await you.markRead(direct.id, upTo: wanted.position)
    _ = await alice.next { if case .readChanged = $0.kind { true } else { nil } }
    let edited = try await me.edit(sent, to: .text("seen"))
    _ = try await me.recall(edited)
    _ = await bob.next { if case .messageRecalled = $0.kind { true } else { nil } }
    _ = try await you.history(of: direct.id, HistoryQuery(anchor: .newest, direction: .older, limit: 5))
    _ = try await you.channels(ChannelQuery(), page: nil)
    _ = try await me.presence(of: ["bob", "nobody"])
    try await me.registerPush(token: "token")
    let room = try await me.createChannel(ChannelDraft(kind: .open, name: "room"))
    _ = try await you.join(room.id)
    _ = try await you.send(bob.text("in a room", to: room.id, id: "b-1"))
    _ = await alice.nextMessage()
    _ = try await me.createChannel(ChannelDraft(kind: .temporary, members: ["bob"]))
    let error = await #expect(throws: ChatError.self) { try await me.channel("5f0000000000000000000009") }
    #expect(error?.kind == .notFound)
    try await you.leave(group.id)
    // One who was away is told what came meanwhile, and reopens with the token.
    await you.suspend()
    _ = try await me.send(alice.text("while you were away", to: direct.id, id: "c-9"))
    await you.resume()
    _ = await bob.next { if case .missedEvents = $0.kind { true } else { nil } }
    await you.disconnect()
    try await bench.host.control.perform(.kickByAdmin(user: "alice"))
    _ = await alice.next { if case .connectionChanged(.refused) = $0.kind { true } else { nil } }

    expectFits(tap.seen)
    let said = seen(tap.seen, .client)
    #expect(
      said.isSuperset(of: [
        "session/open", "session/close", "session/query", "conv/start", "conv/add", "conv/remove", "conv/query",
        "conv/update", "conv/mute", "conv/unmute", "conv/member-info-update", "conv/add-shutup", "conv/remove-shutup",
        "blacklist/block", "blacklist/unblock", "direct", "ack", "read", "logs", "patch/modify", "report/upload",
      ]))
    let heard = seen(tap.seen, .server)
    #expect(
      heard.isSuperset(of: [
        "session/opened", "session/closed", "session/query-result", "conv/started", "conv/results", "conv/updated",
        "conv/joined", "conv/members-joined", "conv/members-left", "direct", "ack", "rcp", "logs", "patch/modify",
        "patch/modified", "report/uploaded",
      ]))
  }

  @Test("what adapter and emulator say in the model of 2014")
  func firstModel() async throws {
    let bench = try Bench()
    let tap = FrameTap(bench.host.transports.webSocket)
    let tom = try await client("Tom", bench, tap, [:], session: true)
    try await tom.adapter.subscribePresence(of: ["Jerry"])
    let jerry = try await client("Jerry", bench, tap, [:], session: true)
    let pair = try await tom.adapter.createChannel(.direct(with: "Jerry"))
    _ = try await tom.adapter.send(tom.text("hi", to: pair.id))
    #expect(text(await jerry.nextMessage()) == "hi")
    let group = try await tom.adapter.createChannel(ChannelDraft(members: ["Jerry"]))
    _ = try await tom.adapter.send(tom.text("all", to: group.id, id: "c-2"))
    #expect(text(await jerry.nextMessage()) == "all")
    try await tom.adapter.invite(["Mary"], to: group.id)
    try await tom.adapter.removeMembers(["Mary"], from: group.id)
    try await jerry.adapter.leave(group.id)
    try await tom.adapter.unsubscribePresence(of: ["Jerry"])
    _ = try await tom.adapter.presence(of: ["Jerry"])
    await jerry.adapter.disconnect()
    expectFits(tap.seen)
    #expect(
      seen(tap.seen, .client).isSuperset(of: [
        "session/open", "session/add", "session/remove", "session/query", "direct", "ack", "room/join", "room/invite",
        "room/kick", "room/leave",
      ]))
    #expect(
      seen(tap.seen, .server).isSuperset(of: [
        "session/opened", "session/added", "session/query-result", "direct", "ack", "presence", "room/joined",
        "room/invited", "room/kicked", "room/left", "room/members-joined",
      ]))
  }

  /// Fields with which each command of a client is served, refused, or sent to nobody.
  static func fields(_ command: String, _ channel: String, _ room: String, _ message: (id: String, time: Int64))
    -> [JSONObject]
  {
    let (cid, none): (JSONValue, JSONValue) = (.string(channel), "5f0000000000000000000009")
    let patch: JSONValue = [
      "cid": cid, "mid": .string(message.id), "timestamp": .int(message.time), "recall": false, "data": "new",
    ]
    switch command {
    case "session/query", "session/add", "session/remove": return [["sessionPeerIds": ["alice", "bob"]]]
    case "session/refresh": return [["st": "none"]]
    case "session/close": return [[:]]
    case "conv/start": return [["m": ["bob"]], ["transient": true, "m": []], ["tempConv": true, "m": ["bob"], "tempConvTTL": 60]]
    case "conv/query": return [["where": [:]], ["where": ["m": ["$no": 1]]], ["tempConvIds": ["_tmp:x"]]]
    case "conv/count", "conv/mute", "conv/unmute", "conv/members", "conv/query-shutup", "conv/max-read":
      return [["cid": cid], ["cid": none], ["cid": .string(room)]]
    case "conv/is-member": return [["cid": cid], ["cids": [cid, none]]]
    case "conv/update": return [["cid": cid, "attr": ["name": "x", "attr.a": 1]], ["cid": none, "attr": [:]]]
    case "conv/member-info-update":
      return [
        ["cid": cid, "targetClientId": "bob", "info": ["pid": "bob", "role": "Manager"]],
        ["cid": cid, "targetClientId": "nobody", "info": ["pid": "nobody", "role": "Member"]],
      ]
    case let name where name.hasPrefix("conv/"): return [["cid": cid, "m": ["bob"]], ["cid": none, "m": ["bob"]]]
    case "direct":
      return [
        ["cid": cid, "msg": "one", "r": true, "dt": "d", "mentionPids": ["bob"], "mentionAll": true], ["cid": none, "msg": "x"],
        ["cid": cid, "msg": "gone", "transient": true], ["cid": .string(room), "msg": "in the room"],
      ]
    case "ack": return [["cid": cid, "mid": .string(message.id)], ["cid": cid, "fromts": 0, "tots": .int(message.time)]]
    case "read": return [["convs": [["cid": cid, "timestamp": .int(message.time)]]], ["cids": [cid]]]
    case "logs": return [["cid": cid, "l": 5, "direction": "NEW"], ["cid": none, "limit": 5]]
    case "patch/modify": return [["patches": [patch], "lastPatchTime": 0], ["patches": [patch]]]
    case "patch/modified": return [["lastPatchTime": 0]]
    case "blacklist/query": return [["srcCid": cid], ["srcCid": none, "limit": 5]]
    case let name where name.hasPrefix("blacklist/"): return [["srcCid": cid, "toPids": ["dave"]], ["srcCid": none, "toPids": ["dave"]]]
    case "room/join": return [[:], ["roomId": "none"], ["transient": true]]
    case "room/leave": return [["roomId": "none"]]
    case "room/invite", "room/kick": return [["roomId": "none", "roomPeerIds": ["bob"]]]
    case "report/upload": return [["initiative": true, "type": "token", "data": "t"]]
    default: return []
    }
  }

  @Test("every command that the emulator serves gets an answer that fits, served or refused")
  func answers() async throws {
    let bench = try Bench()
    let tap = FrameTap(bench.host.transports.webSocket)
    func login(_ peer: String) async throws -> RawSocket {
      let link = try await tap.connect(WebSocketRequest("ws://leancloud.example/", subprotocols: ["lc.json.3"]))
      let socket = RawSocket(link: link, codec: LeanCloudCodec(LeanCloudSubprotocol(.json)))
      var open = LeanCloudFrame("session", "open")
      for member in ["appId": "emulated-app", "ua": "test", "configBitmap": 187] as JSONObject { open[member.key] = member.value }
      open.peerID = peer
      _ = try await socket.ask(open)
      return socket
    }
    let bob = try await login("bob")
    var alice = try await login("alice")
    let started = try await alice.ask("conv", "start", ["m": ["bob", "carol"], "attr": ["name": "n"]])
    let channel = try #require(started.string("cid"))
    let room = try #require(try await alice.ask("conv", "start", ["transient": true, "m": ["alice"]]).string("cid"))
    let ack = try await alice.ask("direct", nil, ["cid": .string(channel), "msg": "m"])
    let message = (id: try #require(ack.string("uid")), time: try #require(ack.int("t")))
    let commands = await bench.host.coverage.map(\.endpoint).filter { name in
      name == "direct" || name == "ack" || name == "read" || name == "logs"
        || (name.split(separator: "/").count == 2 && !name.contains(" ") && name != "session/open")
    }
    #expect(commands.count >= 36)
    // The last, since nothing comes after it.
    for command in commands.filter({ $0 != "session/close" }) + ["session/close"] {
      let parts = command.split(separator: "/").map(String.init)
      let all = Self.fields(command, channel, room, message)
      #expect(!all.isEmpty, "\(command) is not tried")
      for fields in all {
        let isAnswered = !["ack", "read", "patch/modified"].contains(command)
        if isAnswered {
          _ = try await alice.ask(parts[0], parts.count > 1 ? parts[1] : nil, fields)
        } else {
          try await alice.tell(parts[0], parts.count > 1 ? parts[1] : nil, fields)
        }
      }
    }
    alice = try await login("alice")
    // Whatever was pushed to the other one stands before this answer.
    _ = try await bob.ask("session", "query", ["sessionPeerIds": ["alice"]])
    expectFits(tap.seen)
    #expect(seen(tap.seen, .server).contains("error"))
  }
}
