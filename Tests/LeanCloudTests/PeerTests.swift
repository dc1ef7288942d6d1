import LeanCloudAdapter
import Testing
import UnifiedChat

@Suite("The 2014 model")
struct PeerTests {
  func connect(_ bench: Bench, _ user: UserID) async throws -> Client {
    let adapter = try LeanCloudPeerAdapter(
      profile: bench.profile(model: "session"), environment: bench.environment(), transports: bench.host.transports)
    let client = Client(adapter: adapter)
    _ = try await adapter.connect(as: user, credential: .none)
    return client
  }

  @Test("peers write to one another, and history is read over REST")
  func peers() async throws {
    let bench = try Bench()
    let tom = try await connect(bench, "Tom")
    try await tom.adapter.subscribePresence(of: ["Jerry"])
    let jerry = try await connect(bench, "Jerry")
    let presence = await tom.next {
      if case .presenceChanged("Jerry", let presence) = $0.kind { presence } else { nil }
    }
    #expect(presence == .online)
    let channel = try await tom.adapter.createChannel(.direct(with: "Jerry"))
    #expect(try await jerry.adapter.createChannel(.direct(with: "Tom")).id == channel.id)
    var sent: [Message] = []
    for index in 0..<5 {
      sent.append(try await tom.adapter.send(tom.text("hi \(index)", to: channel.id, id: "c-\(index)")))
      #expect(text(await jerry.nextMessage()) == "hi \(index)")
    }
    let delivered = await tom.next { event -> MessagePosition? in
      if case .deliveredChanged(channel.id, "Jerry", let position) = event.kind { position } else { nil }
    }
    #expect(delivered == sent[0].position)
    let page = try await jerry.adapter.history(of: channel.id, .newest(2))
    #expect(page.messages.map(\.id) == sent.suffix(2).map(\.id))
    let older = try await jerry.adapter.history(
      of: channel.id, HistoryQuery(anchor: .cursor(try #require(page.older)), limit: 10))
    #expect(older.messages.map(\.id) == sent.prefix(3).map(\.id))
    #expect(older.older == nil)
    #expect(older.newer != nil)
  }

  @Test("groups are joined, left, invited to and kicked from")
  func groups() async throws {
    let bench = try Bench()
    let tom = try await connect(bench, "Tom")
    let jerry = try await connect(bench, "Jerry")
    let room = try await tom.adapter.createChannel(ChannelDraft(members: ["Jerry"]))
    let joined = await jerry.next { if case .channelJoined(let channel) = $0.kind { channel.id } else { nil } }
    #expect(joined == room.id)
    _ = try await jerry.adapter.send(jerry.text("yo", to: room.id))
    #expect(text(await tom.nextMessage()) == "yo")
    try await tom.adapter.removeMembers(["Jerry"], from: room.id)
    let left = await jerry.next { if case .channelLeft(room.id, let reason) = $0.kind { reason } else { nil } }
    #expect(left == .removed(by: "Tom"))
    await #expect { _ = try await jerry.adapter.send(jerry.text("again", to: room.id)) } throws: { error in
      (error as? ChatError)?.kind == .permission()
    }
  }

  @Test("what was sent while a peer was away comes when it is back")
  func offline() async throws {
    let bench = try Bench()
    let tom = try await connect(bench, "Tom")
    let channel = try await tom.adapter.createChannel(.direct(with: "Jerry"))
    _ = try await tom.adapter.send(tom.text("are you there?", to: channel.id))
    let jerry = try await connect(bench, "Jerry")
    let event = await jerry.next { if case .messageReceived = $0.kind { $0 } else { nil } }
    #expect(event?.source == .catchUp)
  }
}
