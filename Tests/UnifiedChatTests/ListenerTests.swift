import Testing
import UnifiedChat

@Suite("Listeners and streams", .timeLimit(.minutes(1)))
struct ListenerTests {
  actor Ears: ConnectionListener, ChannelListener, MessageListener {
    private(set) var heard: [String] = []
    func connectionChanged(_ state: ConnectionState) { heard.append("connection") }
    func channelDeleted(_ channel: ChannelID) { heard.append("channel") }
    func messageReceived(_ message: Message) { heard.append("message") }
  }

  private func publish(to hub: EventHub) {
    hub.publish(ChatEvent(.connectionChanged(.connected), source: .local))
    hub.publish(ChatEvent(.channelDeleted("c"), source: .live))
    let message = Message(channel: "c", sender: "bob", createdAt: Timestamp(milliseconds: 0), content: .text("t"))
    hub.publish(ChatEvent(.messageReceived(message), source: .live))
  }

  @Test("one object listens in three ways under one identifier, and one call removes them all")
  func threeWays() async {
    let (hub, ears) = (EventHub(), Ears())
    let registry = ListenerRegistry(hub: hub)
    let (connection, channel, message): (any ConnectionListener, any ChannelListener, any MessageListener) = (ears, ears, ears)
    registry.add(connection, identifier: "me")
    registry.add(channel, identifier: "me")
    registry.add(message, identifier: "me")
    publish(to: hub)
    while await ears.heard.count < 3 { await Task.yield() }
    #expect(await Set(ears.heard) == ["connection", "channel", "message"])
    registry.remove(identifier: "me")
    var after = hub.events().makeAsyncIterator()
    publish(to: hub)
    for _ in 0..<3 { _ = await after.next() }
    #expect(await ears.heard.count == 3)
  }

  @Test("a second reader of one stream ends, and the first still hears")
  func secondReader() async {
    let hub = EventHub()
    let stream = hub.events()
    let first = Task { await stream.first { _ in true } }
    let second = Task { await stream.first { _ in true } }
    // Whoever came second has nothing, and says so without an event.
    await withTaskGroup(of: ChatEvent?.self) { group in
      group.addTask { await first.value }
      group.addTask { await second.value }
      let early = await group.next()
      #expect(early == .some(nil))
      hub.publish(ChatEvent(.channelDeleted("c"), source: .live))
      #expect(await group.next()??.kind == .channelDeleted("c"))
    }
  }

  @Test("what a vendor said is one line of 200 characters at most, and acts on no terminal")
  func oneLine() {
    let fault = ChatError.VendorFault(
      vendor: "v", code: "1\u{1B}[2J\n", message: "a\u{7}" + String(repeating: "e\u{301}", count: 1000))
    let text = ChatError(.server, operation: .send, vendor: fault).description
    #expect(!text.unicodeScalars.contains { $0.properties.generalCategory == .control })
    #expect((fault.message?.unicodeScalars.count ?? 0) == 200)
  }
}
