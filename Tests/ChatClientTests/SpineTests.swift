import ChatClient
import Testing
import UnifiedChat

@Suite("A chat over the ideal service", .timeLimit(.minutes(1)))
struct SpineTests {
  @Test("connects, creates, sends, receives and reads")
  func spine() async throws {
    let world = await World()
    let alice = try await world.connected("alice")
    let bob = try await world.connected("bob")
    let heard = await Recorder(bob.events())
    let channel = try await world.group(by: alice)
    let sent = try await alice.send(.text("hello"), to: channel)
    #expect(sent.id != nil && sent.position != nil && sent.state == .sent)
    await heard.first { $0.isReceived("hello") }
    #expect(await heard.lines == ["received hello"])
    let page = try await bob.history(of: channel, .newest(10))
    #expect(page.messages.map(\.id) == [sent.id])
    #expect(page.older == nil && page.newer == nil)
    let own = try await alice.history(of: channel, .newest(1))
    #expect(own.messages.map(\.localID) == [sent.localID])
  }

  @Test("tells a send as pending and sent, once each")
  func twoEvents() async throws {
    let world = await World()
    let alice = try await world.connected("alice")
    let channel = try await world.group(by: alice)
    let heard = await Recorder(alice.events())
    let pending = try await alice.enqueue(.text("one"), to: channel)
    #expect(pending.state == .pending && pending.id == nil)
    await heard.first { if case .messageSent = $0.kind { true } else { false } }
    #expect(await heard.lines == ["pending one", "sent one"])
  }
}
