import ChatEmulation
import ChatJSON
import Testing
import UnifiedChat

@testable import LeanCloudAdapter

@Suite("Unread numbers of LeanCloud", .timeLimit(.minutes(1)))
struct LeanCloudUnreadTests {
  private func number(_ client: Client, _ channel: ChannelID, where fits: (Int) -> Bool = { _ in true }) async -> Int? {
    await client.next { event in
      if case .unreadChanged(channel, let count) = event.kind, let number = count.number, fits(number) { number } else { nil }
    }
  }

  @Test("where nothing is unread the number is nought; each message of another raises it, own and passing ones do not")
  func counting() async throws {
    let bench = try Bench()
    let (alice, bob) = (try await bench.connect("alice"), try await bench.connect("bob"))
    let channel = try await alice.adapter.createChannel(.direct(with: "bob"))
    #expect(try await bob.adapter.channel(channel.id).unread == .exact(0))
    for count in 1...3 {
      _ = try await alice.adapter.send(alice.text("\(count)", to: channel.id, id: "c-\(count)"))
      #expect(await number(bob, channel.id) == count)
    }
    var passing = alice.text("passing", to: channel.id, id: "c-t")
    passing.draft.isTransient = true
    _ = try await alice.adapter.send(passing)
    _ = try await bob.adapter.send(bob.text("mine", to: channel.id, id: "b-1"))
    #expect(try await bob.adapter.channel(channel.id).unread == .exact(3))
    #expect(try await bob.adapter.channels(ChannelQuery(unreadOnly: true), page: nil).items.map(\.id) == [channel.id])
    try await bob.adapter.markRead(channel.id, upTo: nil)
    #expect(await number(bob, channel.id) == 0)
    #expect(try await bob.adapter.channel(channel.id).unread == .exact(0))
  }

  @Test("a mark in the middle leaves what comes behind it, whether that came before the login or after it", arguments: [true, false])
  func middle(comesBefore: Bool) async throws {
    let bench = try Bench()
    let alice = try await bench.connect("alice")
    let channel = try await alice.adapter.createChannel(.direct(with: "bob"))
    var bob: Client?
    if !comesBefore { bob = try await bench.connect("bob") }
    var sent: [Message] = []
    for number in 0..<13 {
      await bench.host.advance(by: .milliseconds(1))
      sent.append(try await alice.adapter.send(alice.text("\(number)", to: channel.id, id: "c-\(number)")))
    }
    let reader = if let bob { bob } else { try await bench.connect("bob") }
    #expect(await number(reader, channel.id) { $0 == 13 } == 13)
    try await reader.adapter.markRead(channel.id, upTo: sent[9].position)
    #expect(await number(reader, channel.id) == 3)
    // A lower mark gives nothing back.
    try await reader.adapter.markRead(channel.id, upTo: sent[4].position)
    #expect(try await reader.adapter.channel(channel.id).unread == .exact(3))
    try await reader.adapter.markRead(channel.id, upTo: sent[12].position)
    #expect(try await reader.adapter.channel(channel.id).unread == .exact(0))
    #expect(await number(reader, channel.id) { $0 == 0 } == 0)
  }

  @Test("what another device reads is read here too, also when it did so while this one was away")
  func otherDevice() async throws {
    let bench = try Bench()
    let (alice, phone) = (try await bench.connect("alice"), try await bench.connect("bob", device: "phone"))
    let desk = try await bench.connect("bob", device: "desk")
    let channel = try await alice.adapter.createChannel(.direct(with: "bob"))
    for away in [false, true] {
      _ = try await alice.adapter.send(alice.text("new", to: channel.id, id: "c-\(away)"))
      for device in [phone, desk] { #expect(await number(device, channel.id) { $0 == 1 } == 1) }
      if away { await desk.adapter.suspend() }
      try await phone.adapter.markRead(channel.id, upTo: nil)
      #expect(await number(phone, channel.id) == 0)
      if away {
        await desk.adapter.resume()
        _ = await desk.next { if case .missedEvents = $0.kind { true } else { nil } }
      } else {
        #expect(await number(desk, channel.id) == 0)
      }
      #expect(try await desk.adapter.channel(channel.id).unread == .exact(0))
    }
  }

  @Test("an unread message that is taken back is unread no more")
  func recalled() async throws {
    let bench = try Bench()
    let (alice, bob) = (try await bench.connect("alice"), try await bench.connect("bob"))
    let channel = try await alice.adapter.createChannel(.direct(with: "bob"))
    var sent: [Message] = []
    for number in 0..<3 {
      await bench.host.advance(by: .milliseconds(1))
      sent.append(try await alice.adapter.send(alice.text("\(number)", to: channel.id, id: "c-\(number)")))
    }
    #expect(await number(bob, channel.id) { $0 == 3 } == 3)
    try await bob.adapter.markRead(channel.id, upTo: sent[0].position)
    #expect(await number(bob, channel.id) == 2)
    _ = try await alice.adapter.recall(sent[0])
    _ = try await alice.adapter.recall(sent[1])
    #expect(await number(bob, channel.id) == 1)
    #expect(try await bob.adapter.channel(channel.id).unread == .exact(1))
  }

  @Test("a mention is a flag until it was read, told before the login or after it", arguments: [true, false])
  func mentions(comesBefore: Bool) async throws {
    let bench = try Bench()
    let alice = try await bench.connect("alice")
    let channel = try await alice.adapter.createChannel(ChannelDraft(members: ["bob", "carol"]))
    var bob: Client?
    if !comesBefore { bob = try await bench.connect("bob") }
    var outgoing = alice.text("look, bob", to: channel.id)
    outgoing.draft.mentions = Mentions(users: ["bob"])
    _ = try await alice.adapter.send(outgoing)
    _ = try await alice.adapter.send(alice.text("plain", to: channel.id, id: "c-2"))
    let reader = if let bob { bob } else { try await bench.connect("bob") }
    #expect(await number(reader, channel.id) { $0 == 2 } == 2)
    #expect(try await reader.adapter.channel(channel.id).unreadMentions == .exact(1))
    let carol = try await bench.connect("carol")
    #expect(await number(carol, channel.id) { $0 == 2 } == 2)
    #expect(try await carol.adapter.channel(channel.id).unreadMentions == .exact(0))
    try await reader.adapter.markRead(channel.id, upTo: nil)
    #expect(try await reader.adapter.channel(channel.id).unreadMentions == .exact(0))
  }

  @Test("whoever made a channel owns it, and a level that was lowered can be raised again")
  func ownerAndLevel() async throws {
    let bench = try Bench()
    let alice = try await bench.connect("alice")
    let channel = try await alice.adapter.createChannel(ChannelDraft(members: ["bob"]))
    let members = try await alice.adapter.members(of: channel.id, limit: 10, page: nil).items
    #expect(members.map(\.role) == [.owner, .member])
    try await alice.adapter.mute("bob", in: channel.id, for: nil)
    #expect(try await alice.adapter.members(of: channel.id, limit: 10, page: nil).items.map(\.isMuted) == [false, true])
    try await alice.adapter.setRole(.owner, of: "bob", in: channel.id)
    let after = try await alice.adapter.members(of: channel.id, limit: 10, page: nil).items
    #expect(after.map(\.role) == [.member, .owner])
    for level in [NotificationLevel.none, .all] {
      try await alice.adapter.setNotificationLevel(level, of: channel.id)
      #expect(try await alice.adapter.channel(channel.id).notificationLevel == level)
    }
    let sent = try await alice.adapter.send(alice.text("gone", to: channel.id))
    _ = try await alice.adapter.recall(sent)
    let error = await #expect(throws: ChatError.self) { try await alice.adapter.edit(sent, to: .text("back")) }
    #expect(error?.kind == .notFound)
  }

  @Test("a full notice may have left channels out: nothing is claimed of those until they are marked, and then all is")
  func fullNotice() async throws {
    let bench = try Bench()
    let alice = try await bench.connect("alice")
    var channels: [ChannelID] = []
    for number in 0..<53 {
      let channel = try await alice.adapter.createChannel(ChannelDraft(members: ["bob"], name: "\(number)"))
      // One has nothing unread: it is in no notice, however long that is.
      if number > 0 { _ = try await alice.adapter.send(alice.text("m", to: channel.id, id: "c-\(number)")) }
      channels.append(channel.id)
      await bench.host.advance(by: .milliseconds(1))
    }
    let bob = try await bench.connect("bob")
    _ = await number(bob, channels[52])
    // The notice names the fifty with the newest messages, in whatever order they are told.
    for id in channels[3...] { #expect(try await bob.adapter.channel(id).unread == .exact(1)) }
    for id in channels[..<3] {
      #expect(try await bob.adapter.channel(id).unread == .unknown)
      #expect(try await bob.adapter.channel(id).unreadMentions == .unknown)
    }
    // What comes in such a channel is no number yet.
    _ = try await alice.adapter.send(alice.text("more", to: channels[1], id: "c-more"))
    #expect(text(await bob.nextMessage()) == "more")
    #expect(try await bob.adapter.channel(channels[1]).unread == .unknown)
    for id in channels[..<3] {
      try await bob.adapter.markRead(id, upTo: nil)
      #expect(try await bob.adapter.channel(id).unread == .exact(0))
    }
    _ = try await alice.adapter.send(alice.text("again", to: channels[1], id: "c-again"))
    #expect(text(await bob.nextMessage()) == "again")
    #expect(try await bob.adapter.channel(channels[1]).unread == .exact(1))
    // The next login's notice is a short one, and tells all.
    for id in channels[3..<40] { try await bob.adapter.markRead(id, upTo: nil) }
    await bob.adapter.suspend()
    await bob.adapter.resume()
    _ = await bob.next { if case .missedEvents = $0.kind { true } else { nil } }
    _ = await number(bob, channels[52])
    #expect(try await bob.adapter.channel(channels[0]).unread == .exact(0))
    #expect(try await bob.adapter.channel(channels[1]).unread == .exact(1))
    #expect(try await bob.adapter.channel(channels[5]).unread == .exact(0))
  }

  @Test("a number that counts no message behind this device's own mark is what it has read", arguments: [
    (100, 0, 100, 0), (100, 0, 99, 0), (100, 0, 101, 2), (100, 1, 100, 2), (100, 1, 99, 0), (1, 1, 0, 0),
  ] as [(mark: Int64, left: Int, newest: Int64, number: Int)])
  func lateNumber(mark: Int64, left: Int, newest: Int64, number: Int) {
    var unread = LeanCloudUnread()
    unread.tell(4, upTo: mark, hasMention: false, in: "c")
    unread.read(upTo: mark, id: nil, left: left, in: "c")
    unread.tell(2, upTo: newest, hasMention: true, in: "c")
    #expect(unread["c"].number == number)
    #expect(unread["c"].hasMention == (number > 0))
  }
}
