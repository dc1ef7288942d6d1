import ChatEmulation
import ChatJSON
import SendbirdAdapter
import Testing
import UnifiedChat

@Suite("Open channels by the adapter")
struct SendbirdOpenChannelTests {
  @Test("an open channel is read, moderated and left by the same calls as a group")
  func life() async throws {
    let lab = try Lab()
    let (ana, bob) = (try await lab.connected("ana"), try await lab.connected("bob"))
    let lobby = try await ana.createChannel(ChannelDraft(kind: .open, name: "lobby"))
    #expect(lobby.kind == .open && lobby.myState == .joined)
    #expect(try await bob.join(lobby.id).myState == .joined)
    let heard = ana.events()
    let sent = try await bob.say("hello", in: lobby.id, id: "c1")
    #expect(
      await heard.first { if case .messageReceived(let message) = $0.kind { message.id } else { nil } } == sent.id)
    #expect(try await ana.members(of: lobby.id, limit: 10, page: nil).items.map(\.user.id) == ["ana", "bob"])
    #expect(try await bob.history(of: lobby.id, .newest(5)).messages.map(\.id) == [sent.id])
    let edited = try await bob.edit(sent, to: .text("hello 2"))
    #expect(edited.content == .text("hello 2"))
    try await ana.setMetadata(["topic": "tea"], of: lobby.id)
    #expect(try await ana.updateChannel(lobby.id, ChannelChanges(name: "lounge")).name == "lounge")
    try await ana.mute("bob", in: lobby.id, for: .seconds(60))
    await #expect { try await bob.say("x", in: lobby.id, id: "c2") } throws: {
      ($0 as? ChatError)?.vendor?.code == "900041"
    }
    try await ana.unmute("bob", in: lobby.id)
    _ = try await ana.recall(edited)
    #expect(try await bob.channels(ChannelQuery(kinds: [.open]), page: nil).items.map(\.id) == [lobby.id])
    #expect(
      try await bob.channels(ChannelQuery(kinds: [.open, .group]), page: nil).items.map(\.id) == [lobby.id])
    try await bob.leave(lobby.id)
    #expect(try await bob.channels(ChannelQuery(kinds: [.open]), page: nil).items.isEmpty)
    try await ana.ban("bob", from: lobby.id, for: nil)
    await #expect { try await bob.join(lobby.id) } throws: { ($0 as? ChatError)?.kind == .permission() }
    try await ana.deleteChannel(lobby.id)
    await #expect { try await ana.channel(lobby.id) } throws: { ($0 as? ChatError)?.kind == .notFound }
  }

  @Test("a client that knows nothing but the id finds out that it is an open channel's")
  func kindIsFound() async throws {
    let lab = try Lab()
    let ana = try await lab.connected("ana")
    let lobby = try await ana.createChannel(ChannelDraft(kind: .open, name: "lobby"))
    let sent = try await ana.say("before", in: lobby.id, id: "c1")
    let bob = try await lab.connected("bob")
    #expect(try await bob.history(of: lobby.id, .newest(5)).messages.map(\.id) == [sent.id])
    let cleo = try await lab.connected("cleo")
    #expect(try await cleo.members(of: lobby.id, limit: 5, page: nil).items.map(\.user.id) == ["ana"])
    await #expect { try await cleo.history(of: "nowhere", .newest(5)) } throws: {
      ($0 as? ChatError)?.kind == .notFound
    }
  }
}
