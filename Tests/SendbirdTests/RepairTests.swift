import ChatEmulation
import ChatJSON
import ChatTransport
import SendbirdAdapter
import SendbirdWire
import Testing
import UnifiedChat

/// Gives a token that the server has just issued, and counts.
private actor Issuer: CredentialProvider {
  let lab: Lab
  private(set) var asked = 0
  init(lab: Lab) { self.lab = lab }
  func credential(for user: UserID) async throws -> Credential {
    asked += 1
    return .token(try await lab.rest("POST", "users/\(user)/token", [:]).json["token"]?.string ?? "")
  }
}

extension Lab {
  /// The next such operation is refused, once.
  fileprivate func refuseOnce(_ operation: String, _ kind: String, user: String? = nil) async throws {
    var rule = FaultRule(FaultRule.Match(operation, user: user), at: .received)
    rule.actions = [.fail(EmulatorFailure(kind))]
    rule.times = 1
    _ = try await EmulatorControl(host).add(rule)
  }
}

@Suite("What the Sendbird adapter makes good")
struct SendbirdRepairTests {
  private let bytes: [UInt8] = [1, 2, 3]

  @Test("an upload whose session expired renews it and goes up, as every other call does")
  func upload() async throws {
    let lab = try Lab(users: [("ana", "tok")])
    let issuer = Issuer(lab: lab)
    let ana = lab.adapter(credentials: issuer)
    _ = try await ana.connect(as: "ana", credential: .token("tok"))
    let channel = try await ana.createChannel(ChannelDraft())
    try await lab.refuseOnce("file", "authentication")
    let attachment = Attachment(name: "f", mimeType: "a/b", source: .bytes(bytes))
    let uploaded = try await ana.upload(attachment, for: channel.id, progress: nil)
    #expect(uploaded.url != nil)
    #expect(await issuer.asked == 1)
  }

  @Test("who is banned from an open channel is in it no more, in his lists too")
  func banned() async throws {
    let lab = try Lab()
    let (ana, bob) = (try await lab.connected("ana"), try await lab.connected("bob"))
    let lobby = try await ana.createChannel(ChannelDraft(kind: .open, name: "lobby"))
    _ = try await bob.join(lobby.id)
    let events = bob.events()
    try await ana.ban("bob", from: lobby.id, for: nil)
    _ = await events.collect { if case .channelLeft(lobby.id, _) = $0 { true } else { false } }
    #expect(try await bob.channels(ChannelQuery(kinds: [.open]), page: nil).items.isEmpty)
    try await EmulatorControl(lab.host).act(.end(.abrupt), on: "bob")
    let kinds = await events.collect(until: .connectionChanged(.connected))
    #expect(!kinds.contains { if case .channelLeft = $0 { true } else { false } })
  }

  @Test("open channels of a session that ended are not those of the next one")
  func nextSession() async throws {
    let lab = try Lab(users: [("bob", "tok")])
    let ana = try await lab.connected("ana")
    let lobby = try await ana.createChannel(ChannelDraft(kind: .open, name: "lobby"))
    let bob = lab.adapter()
    _ = try await bob.connect(as: "bob", credential: .token("tok"))
    _ = try await bob.join(lobby.id)
    let events = bob.events()
    try await EmulatorControl(lab.host).perform(.revokeCredential(user: "bob"))
    _ = await events.collect(until: .connectionChanged(.refused(.kickedByAdmin)))
    _ = try await bob.connect(as: "cleo", credential: .none)
    #expect(try await bob.channels(ChannelQuery(kinds: [.open]), page: nil).items.isEmpty)
  }

  @Test("a joining whose channel could not be fetched is told by the second frame, and the gap is told at once")
  func joining() async throws {
    let lab = try Lab()
    let (ana, bob) = (try await lab.connected("ana"), try await lab.connected("bob"))
    let events = bob.events()
    try await lab.refuseOnce("channelQuery", "rateLimited", user: "bob")
    let channel = try await ana.createChannel(.direct(with: "bob"))
    let kinds = await events.collect { if case .channelJoined = $0 { true } else { false } }
    #expect(kinds.contains(.missedEvents(in: [channel.id])))
  }

  @Test("a reaction whose message could not be fetched is a gap that is told")
  func reaction() async throws {
    let lab = try Lab()
    let (ana, bob) = (try await lab.connected("ana"), try await lab.connected("bob"))
    let channel = try await ana.createChannel(.direct(with: "bob"))
    let events = bob.events()
    let sent = try await ana.say("x", in: channel.id, id: "c1")
    _ = await events.first { if case .messageReceived(let message) = $0.kind { message } else { nil } }
    try await lab.refuseOnce("history", "server", user: "bob")
    _ = try await ana.addReaction("smile", to: sent)
    let told = await events.first { event -> [ChannelID]? in
      if case .missedEvents(let channels) = event.kind { channels } else { nil }
    }
    #expect(told == [channel.id])
  }

  @Test("own custom data takes no metadata of others away, and is refused where they leave no room")
  func customData() async throws {
    let lab = try Lab()
    let ana = try await lab.connected("ana")
    try await lab.rest("PUT", "users/ana/metadata", ["metadata": ["team": "red"], "upsert": true])
    let long = JSONText(unchecked: "{\"a\":\"\(String(repeating: "x", count: 300))\"}")
    #expect(try await ana.updateProfile(name: nil, avatarURL: nil, customData: long).customData == long)
    let short = JSONText(unchecked: "{\"b\":1}")
    #expect(try await ana.updateProfile(name: nil, avatarURL: nil, customData: short).customData == short)
    #expect(try await lab.rest("GET", "users/ana/metadata").json["team"]?.string == "red")
    let full = JSONText(unchecked: "{\"a\":\"\(String(repeating: "x", count: 750))\"}")
    await #expect { try await ana.updateProfile(name: nil, avatarURL: nil, customData: full) } throws: {
      if case .tooLarge? = ($0 as? ChatError)?.kind { true } else { false }
    }
    #expect(try await ana.users(["ana"]).first?.customData == short)
  }

  @Test("a file that the application protects is sent as such and opened by its key, which no other host is shown")
  func protected() async throws {
    let lab = try Lab(settings: ["requireFileAuth": true])
    let (ana, bob) = (try await lab.connected("ana"), try await lab.connected("bob"))
    let channel = try await ana.createChannel(.direct(with: "bob"))
    let events = bob.events()
    let attachment = Attachment(name: "f", mimeType: "a/b", source: .bytes(bytes))
    let uploaded = try await ana.upload(attachment, for: channel.id, progress: nil)
    let bare = HTTPRequest("GET", try #require(uploaded.url))
    #expect(try await lab.host.transports.http.send(bare).status == 403)
    _ = try await ana.send(
      OutgoingMessage(channel: channel.id, localID: "l", clientMessageID: "c", draft: MessageDraft(.file(uploaded))))
    let heard = await events.first { event -> UnifiedChat.Attachment? in
      if case .messageReceived(let message) = event.kind { message.content.attachment } else { nil }
    }
    #expect(heard == uploaded)
    #expect(try await bob.download(try #require(heard), limit: 10) == bytes)
    let source = try lab.entry.makeSource(lab.profile(), lab.adminEnvironment)
    let box = Box()
    try await source.download(uploaded) { await box.add($0) }
    #expect(await box.bytes == bytes)
    #expect(SendbirdProfile.isOwn("https://file-us-1.sendbird.com/x", lab.profile()))
    let foreign = [
      "https://evil.example/x", "https://evil.example/.sendbird.com", "https://a@evil.example\\.sendbird.com/",
      "https://evil.example/\u{301}.sendbird.com/x", "https://evil.example%2F.sendbird.com/x",
    ]
    for url in foreign {
      #expect(!SendbirdProfile.isOwn(url, lab.profile()), "\(url)")
    }
  }

  private actor Box {
    private(set) var bytes: [UInt8] = []
    func add(_ more: [UInt8]) { bytes += more }
  }

  @Test("a picture comes back with the thumbnail that the server made")
  func thumbnails() async throws {
    let lab = try Lab()
    let ana = try await lab.connected("ana")
    let channel = try await ana.createChannel(ChannelDraft())
    let picture = Attachment(name: "p.png", mimeType: "image/png", source: .bytes(bytes))
    let uploaded = try await ana.upload(picture, for: channel.id, progress: nil)
    #expect(uploaded.thumbnails.map(\.width) == [320])
    let sent = try await ana.send(
      OutgoingMessage(channel: channel.id, localID: "l", clientMessageID: "c", draft: MessageDraft(.image(uploaded))))
    let read = try await ana.message(try #require(sent.id), in: channel.id)
    #expect(read.content == .image(uploaded))
  }
}
