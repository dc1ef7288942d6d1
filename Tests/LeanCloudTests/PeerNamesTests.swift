import ChatEmulation
import LeanCloudAdapter
import LeanCloudWire
import Testing
import UnifiedChat

/// Each name of the clients of 2014 that the vocabulary names, by what it did.
@Suite("The names of 2014", .timeLimit(.minutes(1)))
struct PeerNamesTests {
  func connect(_ bench: Bench, _ user: UserID) async throws -> Client { try await PeerTests().connect(bench, user) }

  /// The other one's answer to a message stands behind everything that came before it.
  func fence(_ one: Client, _ other: Client, _ channel: ChannelID, _ id: String) async throws {
    _ = try await other.adapter.send(other.text("fence \(id)", to: channel, id: id))
    _ = await one.next { event -> Bool? in
      if case .messageReceived(let message) = event.kind, text(message) == "fence \(id)" { true } else { nil }
    }
  }

  @Test("watchPeers and unwatch: who comes and goes is told while watched, and not after")
  func watching() async throws {
    let bench = try Bench()
    let tom = try await connect(bench, "Tom")
    try await tom.adapter.subscribePresence(of: ["Jerry"])
    let jerry = try await connect(bench, "Jerry")
    func presence() async -> Presence? {
      await tom.next { if case .presenceChanged("Jerry", let presence) = $0.kind { presence } else { nil } }
    }
    #expect(await presence() == .online)
    #expect(try await tom.adapter.presence(of: ["Jerry", "Nobody"])["Jerry"] == .online)
    await jerry.adapter.disconnect()
    #expect(await presence() == .offline(lastSeen: nil))
    try await tom.adapter.unsubscribePresence(of: ["Jerry"])
    let again = try await connect(bench, "Jerry")
    let pair = try await tom.adapter.createChannel(.direct(with: "Jerry"))
    _ = try await again.adapter.send(again.text("here", to: pair.id))
    // The message is the next thing of all: nothing was told of the coming.
    let next = await tom.next { event -> String? in
      switch event.kind {
      case .presenceChanged: "presence"
      case .messageReceived(let message): text(message)
      default: nil
      }
    }
    #expect(next == "here")
  }

  @Test("sendMessage:isTransient: what is transient reaches who is there, and stands in no history", arguments: [true, false])
  func transient(_ isTransient: Bool) async throws {
    let bench = try Bench()
    let tom = try await connect(bench, "Tom")
    let jerry = try await connect(bench, "Jerry")
    let pair = try await tom.adapter.createChannel(.direct(with: "Jerry"))
    var outgoing = tom.text("now", to: pair.id)
    outgoing.draft.isTransient = isTransient
    let sent = try await tom.adapter.send(outgoing)
    #expect((sent.id == nil) == isTransient)
    #expect(text(await jerry.nextMessage()) == "now")
    try await fence(tom, jerry, pair.id, "f-1")
    let history = try await tom.adapter.history(of: pair.id, .newest(10)).messages
    #expect(history.compactMap { text($0) } == (isTransient ? ["fence f-1"] : ["now", "fence f-1"]))
  }

  @Test("getGroup with an id and join: whoever knows the id comes in, the others are told, and writes and reads")
  func joining() async throws {
    let bench = try Bench()
    let tom = try await connect(bench, "Tom")
    let jerry = try await connect(bench, "Jerry")
    let group = try await tom.adapter.createChannel(ChannelDraft(members: []))
    let joined = try await jerry.adapter.join(group.id)
    #expect(joined.id == group.id && joined.kind == .group)
    let told = await tom.next { if case .memberJoined(group.id, let member) = $0.kind { member.user.id } else { nil } }
    #expect(told == "Jerry")
    _ = try await tom.adapter.send(tom.text("welcome", to: group.id))
    #expect(text(await jerry.nextMessage()) == "welcome")
    await #expect { _ = try await jerry.adapter.join("5f0000000000000000000009") } throws: { error in
      (error as? ChatError)?.kind == .notFound
    }
  }

  @Test("quit and kick: the others are told who is gone, and the one who was kicked by whom")
  func leaving() async throws {
    let bench = try Bench()
    let tom = try await connect(bench, "Tom")
    let jerry = try await connect(bench, "Jerry")
    let group = try await tom.adapter.createChannel(ChannelDraft(members: ["Jerry", "Mary"]))
    _ = await jerry.next { if case .channelJoined = $0.kind { true } else { nil } }
    func gone() async -> UserID? {
      await tom.next { if case .memberLeft(group.id, let user, _) = $0.kind { user } else { nil } }
    }
    try await tom.adapter.removeMembers(["Mary"], from: group.id)
    #expect(await gone() == "Mary")
    try await jerry.adapter.leave(group.id)
    #expect(await gone() == "Jerry")
    try await tom.adapter.invite(["Jerry"], to: group.id)
    #expect(await jerry.next { if case .channelJoined(let channel) = $0.kind { channel.id } else { nil } } == group.id)
    try await tom.adapter.removeMembers(["Jerry"], from: group.id)
    let left = await jerry.next { if case .channelLeft(group.id, let reason) = $0.kind { reason } else { nil } }
    #expect(left == .removed(by: "Tom"))
  }

  @Test("an open group is joined by whoever likes, and says so of itself")
  func openGroup() async throws {
    let bench = try Bench()
    let tom = try await connect(bench, "Tom")
    let jerry = try await connect(bench, "Jerry")
    let open = try await tom.adapter.createChannel(ChannelDraft(kind: .open))
    #expect(open.kind == .open)
    _ = try await jerry.adapter.join(open.id)
    #expect(try await jerry.adapter.channel(open.id).kind == .open)
    _ = try await jerry.adapter.send(jerry.text("hello", to: open.id))
    #expect(text(await tom.nextMessage()) == "hello")
  }

  @Test("paused and resumed: a lost link is told, what was sent meanwhile comes, and who is watched is watched again")
  func resumed() async throws {
    let bench = try Bench()
    let tom = try await connect(bench, "Tom")
    let jerry = try await connect(bench, "Jerry")
    try await tom.adapter.subscribePresence(of: ["Jerry"])
    let pair = try await tom.adapter.createChannel(.direct(with: "Jerry"))
    try await bench.host.control.act(.end(.abrupt), on: "Tom")
    _ = await tom.next { if case .connectionChanged(.reconnecting) = $0.kind { true } else { nil } }
    _ = try await jerry.adapter.send(jerry.text("meanwhile", to: pair.id))
    let seen = await bench.whileTimePasses { () -> [String] in
      var seen: [String] = []
      while seen.count < 3 {
        let name = await tom.next { event -> String? in
          switch event.kind {
          case .connectionChanged(.connected): "connected"
          case .missedEvents: "missed"
          case .messageReceived(let message): text(message)
          default: nil
          }
        }
        seen.append(name ?? "")
      }
      return seen
    }
    #expect(seen == ["connected", "missed", "meanwhile"])
    await jerry.adapter.disconnect()
    let presence = await tom.next {
      if case .presenceChanged("Jerry", .offline(let time)) = $0.kind { Presence.offline(lastSeen: time) } else { nil }
    }
    #expect(presence == .offline(lastSeen: nil))
  }

  /// As an app's own server signed in 2014: in seconds.
  struct Signer: CredentialProvider {
    var key = "emulated-secret"
    func credential(for user: UserID) async throws -> Credential { .none }
    func sign(_ operation: String, fields: [String], for user: UserID) async throws -> SignedOperation? {
      let time = Bench.start / 1000
      let action = ["join", "invite", "kick"].contains(operation) ? ":\(operation)" : ""
      let text = fields.joined(separator: ":") + ":\(time):nonce" + action
      return SignedOperation(signature: LeanCloudSignature.sign(text, key: key), timestamp: time, nonce: "nonce")
    }
  }

  @Test("signatureDelegate: open, watch, join, invite and kick are signed, and refused when they are signed wrongly")
  func signed() async throws {
    let bench = try Bench { $0.settings = ["signature": true] }
    func client(_ user: UserID, _ signer: Signer?) throws -> Client {
      Client(
        adapter: try LeanCloudPeerAdapter(
          profile: bench.profile(model: "session"), environment: bench.environment(credentials: signer),
          transports: bench.host.transports))
    }
    let tom = try client("Tom", Signer())
    let jerry = try client("Jerry", Signer())
    for (client, user) in [(tom, UserID("Tom")), (jerry, "Jerry")] {
      _ = try await client.adapter.connect(as: user, credential: .none)
    }
    try await tom.adapter.subscribePresence(of: ["Jerry", "Mary"])
    let pair = try await tom.adapter.createChannel(.direct(with: "Jerry"))
    _ = try await tom.adapter.send(tom.text("signed", to: pair.id))
    #expect(text(await jerry.nextMessage()) == "signed")
    let group = try await tom.adapter.createChannel(ChannelDraft(members: ["Jerry", "Mary"]))
    try await tom.adapter.removeMembers(["Mary"], from: group.id)
    _ = try await jerry.adapter.join(group.id)
    for signer in [nil, Signer(key: "wrong")] {
      let error = await #expect(throws: ChatError.self) {
        try await client("Mary", signer).adapter.connect(as: "Mary", credential: .none)
      }
      #expect(error?.kind == .authentication)
    }
  }
}
