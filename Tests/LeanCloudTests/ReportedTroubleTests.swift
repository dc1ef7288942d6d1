import ChatEmulation
import ChatJSON
import LeanCloudAdapter
import LeanCloudWire
import Testing
import UnifiedChat

/// What users of the vendor's own libraries ran into.
@Suite("Troubles that users of the vendor's libraries reported", .timeLimit(.minutes(1)))
struct ReportedTroubleTests {
  @Test("the unread number of an event is kept, whether a query comes before it or after it", arguments: [true, false])
  func unreadAndQuery(_ queriesFirst: Bool) async throws {
    let bench = try Bench()
    let bob = try await bench.connect("bob")
    let channel = try await bob.adapter.createChannel(.direct(with: "alice"))
    for number in 0..<2 { _ = try await bob.adapter.send(bob.text("\(number)", to: channel.id, id: "c-\(number)")) }
    let alice = try await bench.connect("alice")
    if queriesFirst { _ = try await alice.adapter.channel(channel.id) }
    let told = await alice.next {
      if case .unreadChanged(channel.id, let count) = $0.kind { count.number } else { nil }
    }
    #expect(told == 2)
    for _ in 0..<3 { #expect(try await alice.adapter.channel(channel.id).unread.number == 2) }
    #expect(try await alice.adapter.channels(ChannelQuery(), page: nil).items.first?.unread.number == 2)
  }

  @Test("twenty messages while one was away: all are there, in order, and the unread number is twenty")
  func offline() async throws {
    let bench = try Bench()
    let bob = try await bench.connect("bob")
    let channel = try await bob.adapter.createChannel(.direct(with: "alice"))
    for number in 0..<20 { _ = try await bob.adapter.send(bob.text("\(number)", to: channel.id, id: "c-\(number)")) }
    let alice = try await bench.connect("alice")
    let told = await alice.next {
      if case .unreadChanged(channel.id, let count) = $0.kind { count.number } else { nil }
    }
    #expect(told == 20)
    let page = try await alice.adapter.history(of: channel.id, .newest(50))
    #expect(page.messages.map { text($0) } == (0..<20).map { "\($0)" })
  }

  @Test("in the 2014 model the twenty come by themselves, in order, once")
  func offlinePeers() async throws {
    let bench = try Bench()
    let tom = try await PeerTests().connect(bench, "Tom")
    let channel = try await tom.adapter.createChannel(.direct(with: "Jerry"))
    for number in 0..<20 { _ = try await tom.adapter.send(tom.text("\(number)", to: channel.id, id: "c-\(number)")) }
    let jerry = try await PeerTests().connect(bench, "Jerry")
    for number in 0..<20 { #expect(text(await jerry.nextMessage()) == "\(number)") }
    await jerry.adapter.disconnect()
    let again = try await PeerTests().connect(bench, "Jerry")
    _ = try await tom.adapter.send(tom.text("new", to: channel.id, id: "c-new"))
    #expect(text(await again.nextMessage()) == "new")
  }

  @Test("connecting and leaving a thousand times at once leaves an adapter that works")
  func storm() async throws {
    let bench = try Bench()
    let adapter = try LeanCloudAdapter(
      profile: bench.profile(), environment: bench.environment(), transports: bench.host.transports)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<1000 {
        group.addTask {
          switch number % 4 {
          case 0, 1: _ = try? await adapter.connect(as: "alice", credential: .none)
          case 2: await adapter.suspend()
          default: await adapter.disconnect()
          }
        }
      }
    }
    await adapter.disconnect()
    _ = try await adapter.connect(as: "alice", credential: .none)
    #expect(await adapter.state == .connected)
    let bob = try await bench.connect("bob")
    let channel = try await bob.adapter.createChannel(.direct(with: "alice"))
    let sent = try await bob.adapter.send(bob.text("to one socket", to: channel.id))
    let page = try await adapter.history(of: channel.id, .newest(5))
    #expect(page.messages.map(\.id) == [sent.id])
    #expect(await adapter.state == .connected)
  }

  @Test("after a reconnect the chat room is entered again before anybody is told to be connected")
  func room() async throws {
    let bench = try Bench()
    let alice = try await bench.connect("alice")
    let bob = try await bench.connect("bob")
    let room = try await alice.adapter.createChannel(ChannelDraft(kind: .open, name: "room"))
    _ = try await bob.adapter.join(room.id)
    // Without the token the server has forgotten the room.
    try await bench.host.control.perform(.expireCredential(user: "alice"))
    try await bench.host.control.act(.end(.abrupt), on: "alice")
    _ = await bench.whileTimePasses { await alice.next { if case .missedEvents = $0.kind { true } else { nil } } }
    _ = try await bob.adapter.send(bob.text("are you in?", to: room.id))
    #expect(text(await alice.nextMessage()) == "are you in?")
  }

  @Test(
    "a code at login is final, or asks for the credential once",
    arguments: [
      (4102, RefusalReason.credentialInvalid), (4106, .userDisabled), (4111, .kickedByOtherDevice),
      (4115, .kickedByAdmin), (4100, .appDisabled), (4103, .protocolRefused), (4110, .protocolRefused),
    ])
  func finalCodes(_ code: Int, _ reason: RefusalReason) async throws {
    let bench = try Bench()
    let alice = try await bench.connect("alice")
    try await bench.host.control.act(.end(.clean(code: UInt16(code))), on: "alice")
    let refused = await alice.next { event -> RefusalReason? in
      if case .connectionChanged(.refused(let reason)) = event.kind { reason } else { nil }
    }
    #expect(refused == reason)
    let upgrades = await bench.host.coverage.first { $0.endpoint == "WebSocket upgrade" }?.calls
    await bench.pass(seconds: 5)
    #expect(await bench.host.coverage.first { $0.endpoint == "WebSocket upgrade" }?.calls == upgrades)
    #expect(await alice.adapter.state == .refused(reason))
  }

  @Test("two devices of one tag: the older one is ended once, and neither comes back")
  func conflict() async throws {
    let bench = try Bench()
    let tag = ["tag": JSONText(unchecked: "\"phone\"")]
    let old = try await bench.connect("alice", device: "one", tag)
    let new = try await bench.connect("alice", device: "two", tag)
    let refused = await old.next { event -> RefusalReason? in
      if case .connectionChanged(.refused(let reason)) = event.kind { reason } else { nil }
    }
    #expect(refused == .kickedByOtherDevice)
    // A minute, in steps that a busy machine takes too.
    for _ in 0..<6 {
      await bench.host.advance(by: .seconds(10))
      bench.clock.advance(by: .seconds(10))
      for _ in 0..<20 { await Task.yield() }
    }
    #expect(await new.adapter.state == .connected)
    #expect(await old.adapter.state == .refused(.kickedByOtherDevice))
  }

  @Test("asked for twice, a distinct conversation is the same one, a temporary one too while it lives")
  func unique() async throws {
    let bench = try Bench()
    let alice = try await bench.connect("alice")
    for kind in [ChannelKind.group, .temporary] {
      let draft = ChannelDraft(kind: kind, members: ["bob", "carol"], isDistinct: true)
      let one = try await alice.adapter.createChannel(draft)
      let two = try await alice.adapter.createChannel(draft)
      #expect(one.id == two.id)
    }
    let draft = ChannelDraft(kind: .temporary, members: ["bob"], isDistinct: true)
    let first = try await alice.adapter.createChannel(draft)
    await bench.host.advance(by: .seconds(86_401))
    let bob = try await bench.connect("bob")
    let second = try await bob.adapter.createChannel(
      ChannelDraft(kind: .temporary, members: ["alice"], isDistinct: true))
    #expect(first.id != second.id)
  }

  @Test("roles are told as they were given: owner, manager, member")
  func roles() async throws {
    let bench = try Bench()
    let alice = try await bench.connect("alice")
    let channel = try await alice.adapter.createChannel(ChannelDraft(members: ["bob", "carol"], name: nil))
    try await alice.adapter.setRole(.owner, of: "alice", in: channel.id)
    try await alice.adapter.setRole(.admin, of: "bob", in: channel.id)
    let members = try await alice.adapter.members(of: channel.id, limit: 10, page: nil).items
    #expect(members.map(\.role) == [.owner, .admin, .member])
    let read = try await bench.source().members(of: channel.id, after: nil).items
    #expect(read.map(\.member.role).sorted { "\($0)" < "\($1)" } == [.admin, .member, .owner])
  }
}
