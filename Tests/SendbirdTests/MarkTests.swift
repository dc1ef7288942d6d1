import ChatEmulation
import ChatTransport
import SendbirdAdapter
import Testing
import UnifiedChat

@Suite("Read marks of Sendbird", .timeLimit(.minutes(1)))
struct SendbirdMarkTests {
  private func unread(_ kind: ChatEvent.Kind, _ channel: ChannelID) -> UnreadCount? {
    if case .unreadChanged(channel, let count) = kind { count } else { nil }
  }

  /// `count` messages of bob's, each a millisecond after the other.
  private func messages(_ count: Int, _ lab: Lab, _ bob: SendbirdAdapter, _ channel: ChannelID) async throws -> [Message] {
    var sent: [Message] = []
    for number in 0..<count {
      await lab.host.advance(by: .milliseconds(5))
      sent.append(try await bob.say("\(number)", in: channel, id: ClientMessageID("b\(number)-\(await lab.host.now)")))
    }
    return sent
  }

  @Test("a mark in the middle counts, though the vendor knows none; the next one at the end goes to the server")
  func held() async throws {
    let lab = try Lab()
    let (ana, bob) = (try await lab.connected("ana"), try await lab.connected("bob"))
    let channel = try await ana.createChannel(.direct(with: "bob"))
    let sent = try await messages(13, lab, bob, channel.id)
    #expect(try await ana.channel(channel.id).unread == .exact(13))
    let events = ana.events()
    try await ana.markRead(channel.id, upTo: sent[9].position)
    #expect(await events.first { unread($0.kind, channel.id) } == .exact(3))
    // A lower one gives nothing back.
    try await ana.markRead(channel.id, upTo: sent[4].position)
    let seen = try await ana.channel(channel.id)
    #expect(seen.unread == .exact(3) && seen.myReadPosition == sent[9].position)
    #expect(try await ana.totalUnread() == .exact(3))
    // The server has been told nothing.
    let other = try await lab.connected("ana")
    #expect(try await other.channel(channel.id).unread == .exact(13))
    let more = try await messages(2, lab, bob, channel.id)
    #expect(try await ana.channel(channel.id).unread == .exact(5))
    try await ana.markRead(channel.id, upTo: more[1].position)
    for device in [ana, other] {
      #expect(try await device.channel(channel.id).unread == .exact(0))
      #expect(try await device.totalUnread() == .exact(0))
    }
  }

  @Test("marks that climb, with messages of one's own and more than a page between them, count exactly")
  func climbing() async throws {
    let lab = try Lab()
    let (ana, bob) = (try await lab.connected("ana"), try await lab.connected("bob"))
    let channel = try await ana.createChannel(.direct(with: "bob"))
    let first = try await messages(3, lab, bob, channel.id)
    try await ana.markRead(channel.id, upTo: first[2].position)
    let sent = try await messages(230, lab, bob, channel.id)
    _ = try await bob.recall(sent[20])
    for place in [0, 1, 19, 20, 150, 228, 100] {
      try await ana.markRead(channel.id, upTo: sent[place].position)
      let highest = max(place, place == 100 ? 228 : 0)
      let seen = try await ana.channel(channel.id)
      let left = sent[(highest + 1)...].count - (highest < 20 ? 1 : 0)
      #expect(seen.unread == .exact(left), "after the mark at \(place)")
      #expect(seen.myReadPosition == sent[highest].position)
    }
  }

  @Test("of two marks at once the higher one stays, whichever is answered last")
  func twoAtOnce() async throws {
    let lab = try Lab()
    let (ana, bob) = (try await lab.connected("ana"), try await lab.connected("bob"))
    let channel = try await ana.createChannel(.direct(with: "bob"))
    for _ in 0..<20 {
      let sent = try await messages(9, lab, bob, channel.id)
      async let high: Void = ana.markRead(channel.id, upTo: sent[6].position)
      async let low: Void = ana.markRead(channel.id, upTo: sent[2].position)
      _ = try await (high, low)
      let seen = try await ana.channel(channel.id)
      #expect(seen.unread == .exact(2) && seen.myReadPosition == sent[6].position)
      await lab.host.advance(by: .milliseconds(5))
      try await ana.markRead(channel.id, upTo: nil)
    }
  }

  @Test("own messages in other channels do not keep a mark from being counted")
  func busyElsewhere() async throws {
    let lab = try Lab()
    let (ana, bob) = (try await lab.connected("ana"), try await lab.connected("bob"))
    let channel = try await ana.createChannel(.direct(with: "bob"))
    let other = try await ana.createChannel(ChannelDraft(kind: .group, members: ["bob"], name: "other"))
    let sent = try await messages(5, lab, bob, channel.id)
    // One own message there for each request that the mark makes: with one count for all channels it would ask for ever.
    let asked = Task { try await ana.markRead(channel.id, upTo: sent[2].position) }
    let busy = Task {
      var number = 0
      while !Task.isCancelled {
        number += 1
        _ = try await ana.say("mine", in: other.id, id: ClientMessageID("a\(number)"))
      }
    }
    try await asked.value
    busy.cancel()
    _ = try? await busy.value
    #expect(try await ana.channel(channel.id).unread == .exact(2))
  }

  @Test("a mark that can't be counted just now takes nothing from the one before")
  func failing() async throws {
    let lab = try Lab()
    let (ana, bob) = (try await lab.connected("ana"), try await lab.connected("bob"))
    let channel = try await ana.createChannel(.direct(with: "bob"))
    let sent = try await messages(6, lab, bob, channel.id)
    try await ana.markRead(channel.id, upTo: sent[1].position)
    try await lab.host.control.add(FaultRule(.init("channelQuery"), do: .http(HTTPResponse(status: 500))))
    await #expect(throws: ChatError.self) { try await ana.markRead(channel.id, upTo: sent[3].position) }
    let seen = try await ana.channel(channel.id)
    #expect(seen.unread == .exact(4) && seen.myReadPosition == sent[1].position)
  }

  @Test("an own message reads what came before it, on the sending device and on the other one")
  func sendingReads() async throws {
    let lab = try Lab()
    let (phone, bob) = (try await lab.connected("ana"), try await lab.connected("bob"))
    let desk = try await lab.connected("ana")
    let channel = try await phone.createChannel(.direct(with: "bob"))
    let sent = try await messages(4, lab, bob, channel.id)
    try await phone.markRead(channel.id, upTo: sent[1].position)
    #expect(try await phone.channel(channel.id).unread == .exact(2))
    let (atPhone, atDesk) = (phone.events(), desk.events())
    await lab.host.advance(by: .milliseconds(5))
    _ = try await desk.say("mine", in: channel.id, id: "a1")
    for (device, stream) in [(phone, atPhone), (desk, atDesk)] {
      #expect(await stream.first { unread($0.kind, channel.id) } == .exact(0))
      #expect(try await device.channel(channel.id).unread == .exact(0))
    }
  }
}
