import ChatEmulation
import ChatJSON
import ChatTransport
import SendbirdAdapter
import Testing
import UnifiedChat

@Suite("Walks through Sendbird's lists while things change", .timeLimit(.minutes(1)))
struct SendbirdListWalkTests {
  /// Channels of ana's, each with a message, the newest last.
  private func channels(_ count: Int, _ lab: Lab) async throws -> (ana: SendbirdAdapter, made: [ChannelID]) {
    let ana = try await lab.connected("ana")
    try await lab.makeUsers("bob")
    var made: [ChannelID] = []
    for number in 0..<count {
      let channel = try await ana.createChannel(ChannelDraft(members: ["bob"], name: "c\(number)"))
      made.append(channel.id)
      await lab.host.advance(by: .milliseconds(5))
      _ = try await ana.say("\(number)", in: channel.id, id: ClientMessageID("c\(number)"))
    }
    return (ana, made)
  }

  /// The whole list, four at a time; `between` runs after the first page.
  private func walk(
    _ ana: SendbirdAdapter, _ between: (_ firstPage: [ChannelID]) async throws -> Void
  ) async throws -> [ChannelID] {
    var seen: [ChannelID] = []
    var page: PageToken?
    repeat {
      let result = try await ana.channels(ChannelQuery(limit: 4), page: page)
      if page == nil { try await between(result.items.map(\.id)) }
      seen += result.items.map(\.id)
      page = result.next
    } while page != nil && seen.count < 100
    return seen
  }

  @Test("a channel that moves to the top meanwhile is given once, or told by what moved it")
  func moves() async throws {
    let lab = try Lab()
    let (ana, made) = try await channels(15, lab)
    let seen = try await walk(ana) { first in
      for (number, id) in [first[3], first[1], made[2]].enumerated() {
        await lab.host.advance(by: .milliseconds(5))
        _ = try await ana.say("again", in: id, id: ClientMessageID("again\(number)"))
      }
    }
    #expect(Set(seen).count == seen.count)
    #expect(Set(seen).union([made[2]]) == Set(made))
  }

  @Test("channels of one millisecond, and those where nothing was said, are all given once")
  func ties() async throws {
    let lab = try Lab()
    let ana = try await lab.connected("ana")
    var made: Set<ChannelID> = []
    for number in 0..<13 {
      let channel = try await ana.createChannel(ChannelDraft(name: "c\(number)"))
      made.insert(channel.id)
      if number % 3 > 0 { _ = try await ana.say("\(number)", in: channel.id, id: ClientMessageID("c\(number)")) }
    }
    let seen = try await walk(ana) { _ in }
    #expect(seen.count == 13 && Set(seen) == made)
  }

  @Test("a page token of something else is an invalid argument")
  func foreignToken() async throws {
    let lab = try Lab()
    let ana = try await lab.connected("ana")
    for token in ["", "x", "[]", #"["",1,[]]"#] {
      let error = await #expect(throws: ChatError.self) {
        try await ana.channels(ChannelQuery(), page: PageToken(token))
      }
      #expect(error?.kind == .invalidArgument(field: "page"))
    }
  }

  @Test("a history that one device clears is cleared on the other one with its next view of the channel, once")
  func cleared() async throws {
    let lab = try Lab()
    let (phone, bob) = (try await lab.connected("ana"), try await lab.connected("bob"))
    let desk = try await lab.connected("ana")
    let channel = try await phone.createChannel(.direct(with: "bob"))
    _ = try await bob.say("old", in: channel.id, id: "b1")
    await lab.host.advance(by: .milliseconds(5))
    let (atPhone, atDesk) = (phone.events(), desk.events())
    try await phone.clearHistory(of: channel.id)
    _ = try await phone.channel(channel.id)
    for _ in 0..<2 { _ = try await desk.channels(ChannelQuery(), page: nil) }
    for (device, stream) in [(phone, atPhone), (desk, atDesk)] {
      await device.disconnect()
      let kinds = await stream.collect(until: .connectionChanged(.disconnected(.requested)))
      #expect(kinds.count { if case .historyCleared(channel.id, _) = $0 { true } else { false } } == 1)
    }
  }

  @Test("a gateway's page in place of an answer may be asked for again", arguments: [500, 502, 503, 504])
  func gatewayPage(status: Int) async throws {
    let lab = try Lab()
    let ana = try await lab.connected("ana")
    let page = HTTPResponse(
      status: status, headers: ["Content-Type": "text/html"], body: Array("<html>Bad Gateway</html>".utf8))
    _ = try await EmulatorControl(lab.host).add(FaultRule(FaultRule.Match(direction: .inbound), do: .http(page)))
    let error = await #expect(throws: ChatError.self) { try await ana.channels(ChannelQuery(), page: nil) }
    #expect(error?.kind == .server && error?.retry == .after(.seconds(1)))
    #expect(error?.vendor?.httpStatus == status)
    #expect(try await ana.channels(ChannelQuery(), page: nil).items.isEmpty)
  }
}
