import ChatEmulation
import ChatJSON
import ChatTransport
import SendbirdAdapter
import Testing
import UnifiedChat

/// Adapters of one lab.
extension Lab {
  func profile(_ retry: Profile.RetrySettings = .init()) -> Profile {
    Profile(
      name: "test", vendor: "sendbird", appID: "APP",
      endpoints: .init(api: "http://sendbird.test", realtime: "ws://sendbird.test"), retry: retry)
  }

  func adapter(credentials: (any CredentialProvider)? = nil, clock: any ChatClock = ManualClock()) -> SendbirdAdapter {
    SendbirdAdapter(
      profile: profile(), environment: AdapterEnvironment(clock: clock, credentials: credentials),
      transports: host.transports)
  }

  func connected(_ user: UserID, token: String? = nil) async throws -> SendbirdAdapter {
    let adapter = adapter()
    _ = try await adapter.connect(as: user, credential: token.map { .token($0) } ?? .none)
    return adapter
  }

  var entry: AdapterRegistry.Entry { SendbirdVendor.entry(transports: host.transports) }
  var adminEnvironment: AdapterEnvironment { AdapterEnvironment(adminSecret: "secret", clock: ManualClock()) }
}

extension SendbirdAdapter {
  func say(_ text: String, in channel: ChannelID, id: ClientMessageID) async throws -> Message {
    try await send(
      OutgoingMessage(channel: channel, localID: LocalID(id.rawValue), clientMessageID: id, draft: .text(text)))
  }
}

extension ChatEventStream {
  /// The kinds of all events up to and with `last`.
  func collect(until last: ChatEvent.Kind) async -> [ChatEvent.Kind] { await collect { $0 == last } }

  func collect(until isLast: (ChatEvent.Kind) -> Bool) async -> [ChatEvent.Kind] {
    var kinds: [ChatEvent.Kind] = []
    for await event in self {
      kinds.append(event.kind)
      if isLast(event.kind) { break }
    }
    return kinds
  }

  /// The first event of interest.
  func first<Found>(_ pick: (ChatEvent) -> Found?) async -> Found? {
    for await event in self { if let found = pick(event) { return found } }
    return nil
  }
}

@Suite("The Sendbird adapter")
struct SendbirdAdapterTests {
  @Test("connecting gives the own user, twice the same, and a second user conflicts")
  func connect() async throws {
    let lab = try Lab(users: [("ana", "tok")])
    let adapter = lab.adapter()
    #expect(try await adapter.connect(as: "ana", credential: .token("tok")).id == "ana")
    #expect(await adapter.state == .connected)
    #expect(try await adapter.connect(as: "ana", credential: .token("tok")).id == "ana")
    await #expect { try await adapter.connect(as: "bob", credential: .none) } throws: {
      ($0 as? ChatError)?.kind == .conflict
    }
    await adapter.disconnect()
    #expect(await adapter.state == .disconnected(.requested))
  }

  @Test("a wrong token refuses for good, with the vendor's code kept")
  func refused() async throws {
    let lab = try Lab(users: [("ana", "tok")])
    let adapter = lab.adapter()
    await #expect { try await adapter.connect(as: "ana", credential: .token("no")) } throws: {
      let error = $0 as? ChatError
      return error?.kind == .authentication && error?.vendor?.code == "400302" && error?.retry == .never
    }
    #expect(await adapter.state == .refused(.credentialInvalid))
  }

  @Test("a channel that is joined does not know a message before the message's own event")
  func joinedBeforeMessage() async throws {
    let lab = try Lab()
    let (ana, bob) = (try await lab.connected("ana"), try await lab.connected("bob"))
    let events = bob.events()
    let channel = try await ana.createChannel(.direct(with: "bob"))
    let sent = try await ana.say("at once", in: channel.id, id: "c1")
    let kinds = await events.collect { if case .messageReceived = $0 { true } else { false } }
    let joined = kinds.compactMap { if case .channelJoined(let channel) = $0 { channel } else { nil } }
    #expect(joined.map(\.id) == [channel.id])
    #expect(joined.first?.lastMessage == nil)
    guard case .messageReceived(let received)? = kinds.last else { throw WebSocketClose(reason: "no message") }
    #expect(received.id == sent.id)
  }

  @Test(
    "an admin's kick is final, and a deactivated user is told so",
    arguments: [
      (EmulatorAction.kickByAdmin(user: "ana"), RefusalReason.kickedByAdmin),
      (.disableUser(user: "ana"), .userDisabled),
    ])
  func kicked(action: EmulatorAction, reason: RefusalReason) async throws {
    let lab = try Lab()
    let ana = try await lab.connected("ana")
    let events = ana.events()
    try await EmulatorControl(lab.host).perform(action)
    #expect(await events.collect(until: .connectionChanged(.refused(reason))).count == 1)
  }

  @Test("members come and go with one event each, and open channels are entered again after a drop")
  func membership() async throws {
    let lab = try Lab()
    let (ana, bob) = (try await lab.connected("ana"), try await lab.connected("bob"))
    try await lab.makeUsers("cleo")
    let channel = try await ana.createChannel(ChannelDraft(members: ["bob"]))
    let events = bob.events()
    try await ana.invite(["cleo"], to: channel.id)
    try await ana.setRole(.admin, of: "bob", in: channel.id)
    try await ana.mute("cleo", in: channel.id, for: .seconds(60))
    try await ana.removeMembers(["cleo"], from: channel.id)
    let kinds = await events.collect { if case .memberLeft = $0 { true } else { false } }
    let names = kinds.compactMap { kind -> String? in
      switch kind {
      case .memberJoined(_, let member): "joined \(member.user.id)"
      case .memberChanged(_, let member): "\(member.user.id) \(member.role) \(member.isMuted)"
      case .memberLeft(_, let user, .banned): "left \(user)"
      default: nil
      }
    }
    #expect(names == ["joined cleo", "ana admin false", "bob admin false", "cleo member true", "left cleo"])
    #expect(try await bob.members(of: channel.id, limit: 10, page: nil).items.map(\.user.id) == ["ana", "bob"])

    let lobby = try await ana.createChannel(ChannelDraft(kind: .open, name: "lobby"))
    _ = try await bob.join(lobby.id)
    let again = bob.events()
    try await EmulatorControl(lab.host).act(.end(.abrupt), on: "bob")
    _ = await again.collect(until: .connectionChanged(.connected))
    _ = try await ana.say("still here?", in: lobby.id, id: "o1")
    let heard = await again.first { if case .messageReceived(let message) = $0.kind { message } else { nil } }
    #expect(heard?.content == .text("still here?"))
  }

  @Test("a text reaches the other one live and the own other device as an echo, once each")
  func send() async throws {
    let lab = try Lab()
    let (ana, phone, bob) = (
      try await lab.connected("ana"), try await lab.connected("ana"), try await lab.connected("bob")
    )
    let (mine, theirs) = (phone.events(), bob.events())
    let channel = try await ana.createChannel(.direct(with: "bob"))
    #expect(channel.kind == .direct)
    #expect(channel.peer == "bob")
    let sent = try await ana.say("hello \u{1F600}", in: channel.id, id: "c1")
    #expect(sent.clientMessageID == "c1")
    #expect(sent.content == .text("hello \u{1F600}"))
    for (events, source) in [(mine, ChatEvent.Source.echo), (theirs, .live)] {
      let received = await events.first { event -> (Message, ChatEvent.Source)? in
        if case .messageReceived(let message) = event.kind { (message, event.source) } else { nil }
      }
      #expect(received?.0.id == sent.id)
      #expect(received?.0.position == sent.position)
      #expect(received?.0.sender == "ana")
      #expect(received?.1 == source)
    }
    #expect(try await bob.createChannel(.direct(with: "ana")).id == channel.id)
    #expect(try await bob.channel(channel.id).unread == .exact(1))
    #expect(try await bob.totalUnread() == .exact(1))
  }

  @Test("history pages completely in both directions, also within one millisecond", arguments: [1, 7, 100, 450, 1000])
  func history(limit: Int) async throws {
    let lab = try Lab()
    let ana = try await lab.connected("ana")
    let channel = try await ana.createChannel(ChannelDraft())
    for number in 0..<450 {
      _ = try await ana.say("\(number)", in: channel.id, id: ClientMessageID("c\(number)"))
      if number % 150 == 149 { await lab.host.advance(by: .milliseconds(1)) }
    }
    func walk(_ start: HistoryQuery.Anchor, _ direction: HistoryQuery.Direction) async throws -> [String] {
      var found: [String] = []
      var anchor = start
      while true {
        let page = try await ana.history(
          of: channel.id, HistoryQuery(anchor: anchor, direction: direction, limit: limit))
        #expect(page.messages.count <= limit)
        let texts = page.messages.compactMap(\.content.searchableText)
        found = direction == .older ? texts + found : found + texts
        guard let next = direction == .older ? page.older : page.newer else { return found }
        #expect(!page.messages.isEmpty)
        anchor = .cursor(next)
      }
    }
    let all = (0..<450).map(String.init)
    #expect(try await walk(.newest, .older) == all)
    #expect(try await walk(.oldest, .newer) == all)
  }

  @Test(
    "content without a form at Sendbird travels in the envelope and is readable for others",
    arguments: [
      MessageContent.location(Location(latitude: 1.5, longitude: -2.25, name: "here")),
      .card("bob", name: "Bob", avatarURL: nil), .markdown("**b**"), .custom(JSONText(unchecked: #"{"a":1}"#)),
      .merged(title: "two", messages: [QuotedMessage(sender: "ana", content: .text("x"))]),
      .image(Attachment(url: "http://x/y.png", name: "y.png", size: 3, mimeType: "image/png", width: 4, height: 5)),
      .file(Attachment(url: "http://x/y.png", name: "y.png", size: 3, mimeType: "image/png")),
    ])
  func richContent(content: MessageContent) async throws {
    let lab = try Lab()
    let ana = try await lab.connected("ana")
    let channel = try await ana.createChannel(ChannelDraft())
    let draft = MessageDraft(
      content, replyTo: Reply(id: "7", quoted: nil), customData: JSONText(unchecked: #"{"mine":true}"#))
    let sent = try await ana.send(
      OutgoingMessage(channel: channel.id, localID: "l", clientMessageID: "c", draft: draft))
    #expect(sent.content == content)
    let read = try await ana.message(try #require(sent.id), in: channel.id)
    #expect(read.content == content)
    #expect(read.replyTo?.id == "7")
    #expect(read.customType == nil)
    #expect(read.customData?.text == #"{"mine":true}"#)
  }

  @Test("an edit replaces the text for all, a recall leaves a tombstone's event")
  func changes() async throws {
    let lab = try Lab()
    let (ana, bob) = (try await lab.connected("ana"), try await lab.connected("bob"))
    let events = bob.events()
    let channel = try await ana.createChannel(.direct(with: "bob"))
    let token = try await bob.changes(in: channel.id, since: nil).next
    let sent = try await ana.say("one", in: channel.id, id: "c1")
    let edited = try await ana.edit(sent, to: .text("two"))
    #expect(edited.content == .text("two"))
    #expect(edited.editedAt != nil)
    let seen = await events.first { if case .messageUpdated(let message) = $0.kind { message } else { nil } }
    #expect(seen?.content == .text("two"))
    #expect(seen?.position == sent.position)
    let tombstone = try await ana.recall(edited)
    #expect(tombstone.isRecalled && tombstone.position == sent.position)
    let gone = await events.first { if case .messageRecalled(let message) = $0.kind { message } else { nil } }
    #expect(gone?.id == sent.id)
    let changes = try await bob.changes(in: channel.id, since: token)
    #expect(changes.removed == [try #require(sent.id)])
    await #expect { try await ana.message(try #require(sent.id), in: channel.id) } throws: {
      ($0 as? ChatError)?.kind == .notFound
    }
  }

  @Test("a lost link is opened again at once and says that something may have been missed")
  func reconnect() async throws {
    let lab = try Lab()
    let (ana, bob) = (try await lab.connected("ana"), try await lab.connected("bob"))
    let events = bob.events()
    let channel = try await ana.createChannel(.direct(with: "bob"))
    _ = await events.first { if case .channelJoined(let joined) = $0.kind { joined } else { nil } }
    try await EmulatorControl(lab.host).act(.end(.abrupt), on: "bob")
    let kinds = await events.collect(until: .connectionChanged(.connected))
    #expect(
      kinds == [.connectionChanged(.reconnecting(attempt: 1)), .missedEvents(in: nil), .connectionChanged(.connected)])
    _ = try await ana.say("again", in: channel.id, id: "c9")
    let received = await events.first { if case .messageReceived(let message) = $0.kind { message } else { nil } }
    #expect(received?.content == .text("again"))
  }

  @Test("an expired token is renewed by asking once, and the refused call is made again")
  func renewal() async throws {
    actor Issuer: CredentialProvider {
      let lab: Lab
      var asked = 0
      init(lab: Lab) { self.lab = lab }
      func credential(for user: UserID) async throws -> Credential {
        asked += 1
        let json = try await lab.rest("POST", "users/\(user)/token", [:]).json
        return .token(json["token"]?.string ?? "")
      }
    }
    let lab = try Lab(users: [("ana", "tok")])
    let issuer = Issuer(lab: lab)
    let ana = lab.adapter(credentials: issuer)
    _ = try await ana.connect(as: "ana", credential: .token("tok"))
    let channel = try await ana.createChannel(ChannelDraft())
    try await EmulatorControl(lab.host).perform(.expireCredential(user: "ana"))
    async let one = ana.say("x", in: channel.id, id: "c1")
    async let two = ana.history(of: channel.id, .newest(5))
    _ = try await (one, two)
    #expect(await ana.state == .connected)
    #expect(await issuer.asked == 1)
  }

  @Test("files go up and come down byte for byte")
  func files() async throws {
    let lab = try Lab()
    let ana = try await lab.connected("ana")
    let channel = try await ana.createChannel(ChannelDraft())
    let bytes = (0..<5000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    let attachment = Attachment(name: "f.bin", mimeType: "application/x-f", source: .bytes(bytes))
    let uploaded = try await ana.upload(attachment, for: channel.id, progress: nil)
    #expect(uploaded.size == 5000)
    let sent = try await ana.send(
      OutgoingMessage(channel: channel.id, localID: "l", clientMessageID: "c", draft: MessageDraft(.file(uploaded))))
    let read = try await ana.message(try #require(sent.id), in: channel.id)
    #expect(try await ana.download(try #require(read.content.attachment), limit: 5000) == bytes)
  }
}
