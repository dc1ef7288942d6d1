import ChatEmulation
import ChatJSON
import ChatTransport
import Foundation
import SendbirdAdapter
import SendbirdWire
import Synchronization
import Testing
import UnifiedChat

/// What passes between an adapter and an emulator.
private final class Tap: HTTPClient, WebSocketClient {
  private struct State {
    var calls: [(call: String, request: JSONValue?, response: JSONValue?)] = []
    var frames: [(isClient: Bool, frame: SendbirdFrame)] = []
  }

  private let base: Transports
  private let state = Mutex(State())

  init(_ base: Transports) { self.base = base }

  var calls: [(call: String, request: JSONValue?, response: JSONValue?)] { state.withLock { $0.calls } }
  var frames: [(isClient: Bool, frame: SendbirdFrame)] { state.withLock { $0.frames } }

  func send(
    _ request: HTTPRequest, progress: (@Sendable (TransferProgress) -> Void)?
  ) async throws(TransportError) -> HTTPResponse {
    let response = try await base.http.send(request, progress: progress)
    let isJSON = request.headers["Content-Type"] == "application/json"
    // What lies elsewhere is the bytes of files.
    guard request.url.contains("/v3/") else { return response }
    let sent = isJSON ? try? JSONValue(parsing: request.body) : nil
    let answer = try? JSONValue(parsing: response.body)
    state.withLock { $0.calls.append(("\(request.method) \(request.url)", sent, answer)) }
    return response
  }

  func connect(_ request: WebSocketRequest) async throws(TransportError) -> any WebSocketConnection {
    Link(base: try await base.webSocket.connect(request), tap: self)
  }

  fileprivate func note(_ text: String, isClient: Bool) {
    for case .success(let frame) in SendbirdFrame.parse(text) { state.withLock { $0.frames.append((isClient, frame)) } }
  }

  private struct Link: WebSocketConnection {
    let base: any WebSocketConnection
    let tap: Tap
    var subprotocol: String? { base.subprotocol }
    func send(_ message: WebSocketMessage) async throws(TransportError) {
      if case .text(let text) = message { tap.note(text, isClient: true) }
      try await base.send(message)
    }
    func receive() async throws(WebSocketClose) -> WebSocketMessage {
      let message = try await base.receive()
      if case .text(let text) = message { tap.note(text, isClient: false) }
      return message
    }
    func ping() async throws(TransportError) { try await base.ping() }
    func close(code: UInt16, reason: String) async { await base.close(code: code, reason: reason) }
  }
}

@Suite("The schemas of Sendbird's bodies and frames")
struct SendbirdSchemaTests {
  @Test("the adapter makes no call and sends no frame that the schemas do not describe")
  func adapter() async throws {
    let lab = try Lab()
    let tap = Tap(lab.host.transports)
    let transports = Transports(http: tap, webSocket: tap)
    try await lab.makeUsers("bob", "cleo")
    let ana = SendbirdAdapter(
      profile: lab.profile(), environment: AdapterEnvironment(clock: ManualClock()), transports: transports)
    _ = try await ana.connect(as: "ana", credential: .none)
    try await everyCall(of: ana)
    let entry = SendbirdVendor.entry(transports: transports)
    try await everyCall(
      of: try entry.makeSource(lab.profile(), lab.adminEnvironment),
      try entry.makeDestination(lab.profile(), lab.adminEnvironment))
    await ana.disconnect()

    var used: Set<String> = []
    for item in tap.calls {
      let parts = item.call.split(separator: " ", maxSplits: 1).map(String.init)
      guard let call = SendbirdSchemas.call(parts[0], parts[1]) else {
        Issue.record("no schema: \(item.call)")
        continue
      }
      used.insert(call)
      let problems = SendbirdSchemas.problems(call, request: item.request, response: item.response ?? .null)
      #expect(problems.isEmpty, "\(problems.joined(separator: "\n"))")
    }
    #expect(used.count > 45)
    for (isClient, frame) in tap.frames {
      let problems = SendbirdSchemas.problems(frame, isClient: isClient)
      #expect(problems.isEmpty, "\(problems.joined(separator: "\n"))")
    }
    let sent = Set(tap.frames.filter(\.isClient).map(\.frame.command))
    #expect(sent.isSuperset(of: ["PING", "MESG", "FILE", "MEDI", "FEDI", "READ", "TPST", "TPEN", "ENTR", "EXIT"]))
    try write(tap)
  }

  /// Every method of the adapter that speaks to the server.
  private func everyCall(of ana: SendbirdAdapter) async throws {
    let pair = try await ana.createChannel(.direct(with: "bob"))
    let group = try await ana.createChannel(
      ChannelDraft(members: ["bob"], name: "Group", customData: JSONText(unchecked: "{\"a\":1}")))
    let text = try await ana.say("hello", in: pair.id, id: "c1")
    let attachment = Attachment(name: "f.txt", mimeType: "text/plain", source: .bytes([1, 2, 3]))
    let uploaded = try await ana.upload(attachment, for: pair.id, progress: nil)
    let file = try await ana.send(
      OutgoingMessage(channel: pair.id, localID: "l2", clientMessageID: "c2", draft: MessageDraft(.file(uploaded))))
    _ = try await ana.download(try #require(file.content.attachment), limit: 10)
    var mention = MessageDraft.text("@bob")
    mention.mentions = Mentions(users: ["bob"])
    mention.threadParent = text.id
    _ = try await ana.send(
      OutgoingMessage(channel: pair.id, localID: "l3", clientMessageID: "c3", draft: mention))
    _ = try await ana.edit(text, to: .text("changed"))
    _ = try await ana.edit(file, to: MessageDraft(.file(uploaded), customData: JSONText(unchecked: "{\"b\":2}")))
    _ = try await ana.addReaction("smile", to: text)
    _ = try await ana.removeReaction("smile", from: text)
    _ = try await ana.thread(under: text, .newest(5))
    _ = try await ana.history(of: pair.id, .newest(5))
    _ = try await ana.changes(in: pair.id, since: nil)
    _ = try await ana.search("changed", in: pair.id, limit: 5, page: nil)
    try await ana.markRead(pair.id, upTo: nil)
    try await ana.setTyping(true, in: pair.id)
    try await ana.setTyping(false, in: pair.id)
    _ = try await ana.totalUnread()
    try await ana.invite(["cleo"], to: group.id)
    _ = try await ana.members(of: group.id, limit: 5, page: nil)
    try await ana.setRole(.admin, of: "bob", in: group.id)
    try await ana.setRole(.member, of: "bob", in: group.id)
    try await ana.mute("bob", in: group.id, for: .seconds(5))
    try await ana.unmute("bob", in: group.id)
    try await ana.removeMembers(["cleo"], from: group.id)
    try await ana.ban("bob", from: group.id, for: nil)
    try await ana.unban("bob", from: group.id)
    try await ana.setFrozen(true, group.id)
    try await ana.setMetadata(["k": "v", "gone": nil], of: group.id)
    _ = try await ana.updateChannel(group.id, ChannelChanges(name: "Renamed"))
    try await ana.setNotificationLevel(.mentions, of: group.id)
    try await ana.setHidden(true, group.id)
    try await ana.setHidden(false, group.id)
    try await ana.clearHistory(of: pair.id)
    _ = try await ana.channels(ChannelQuery(), page: nil)
    _ = try await ana.recall(file)
    try await ana.leave(group.id)
    try await ana.block("bob")
    try await ana.unblock("bob")
    _ = try await ana.presence(of: ["bob"])
    _ = try await ana.updateProfile(name: "Ana", avatarURL: "http://x/a", customData: JSONText(unchecked: "{}"))
    try await ana.registerPush(token: "device")
    try await ana.unregisterPush(token: "device")
    let lobby = try await ana.createChannel(ChannelDraft(kind: .open, name: "lobby"))
    _ = try await ana.members(of: lobby.id, limit: 5, page: nil)
    _ = try await ana.say("hall", in: lobby.id, id: "c4")
    _ = try await ana.history(of: lobby.id, .newest(2))
    try await ana.leave(lobby.id)
    try await ana.deleteChannel(lobby.id)
  }

  private func everyCall(of source: any ChatSource, _ destination: any ChatDestination) async throws {
    let channel = ChannelRecord(channel: Channel(id: "imported", kind: .group, metadata: ["k": "v"], isFrozen: true))
    let members = [
      MemberRecord(channel: "imported", member: Member(user: User(id: "bob"), role: .admin, isMuted: true))
    ]
    let message = MessageRecord(
      message: Message(
        channel: "imported", id: "1", sender: "cleo", createdAt: Timestamp(milliseconds: 5), content: .text("x")),
      origin: Origin(vendor: "other", id: "1"))
    _ = try await destination.putUsers([
      UserRecord(user: User(id: "bob", name: "Bob")), UserRecord(user: User(id: "n")),
    ])
    let id = try #require(try await destination.putChannel(channel, members: members).id)
    _ = try await destination.putMessages([message], in: id)
    try await destination.finishChannel(id, original: channel, members: members)
    _ = try await destination.putChannel(channel, members: members)
    _ = try await source.check()
    _ = try await source.users(after: nil)
    _ = try await source.channels(after: nil)
    _ = try await source.channels(after: "o:")
    _ = try await source.members(of: id, after: nil)
    _ = try await source.messages(in: id, after: nil)
  }

  /// Samples for `Tests/Golden/sendbird`, where a folder for them is named.
  private func write(_ tap: Tap) throws {
    guard let folder = ProcessInfo.processInfo.environment["UNIFIEDCHAT_SENDBIRD_SAMPLES"] else { return }
    let calls = tap.calls.map { item -> String in
      var json: JSONObject = ["call": .string(item.call)]
      json["request"] = item.request
      json["response"] = item.response
      return JSONValue.object(json).text()
    }
    let frames = tap.frames.map { item -> String in
      let json: JSONValue = [
        "from": item.isClient ? "client" : "server", "command": .string(item.frame.command),
        "payload": .object(item.frame.payload),
      ]
      return json.text()
    }
    for (name, lines) in [("adapter-rest.jsonl", calls), ("adapter-frames.jsonl", frames)] {
      try (lines.joined(separator: "\n") + "\n").write(
        to: URL(filePath: folder).appending(path: name), atomically: true, encoding: .utf8)
    }
  }
}
