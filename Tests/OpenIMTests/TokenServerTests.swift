import ChatEmulation
import ChatTransport
import OpenIMAdapter
import OpenIMWire
import Testing
import UnifiedChat

/// A token server that does not answer while its clock stands.
struct HangingProvider: CredentialProvider {
  let clock: ManualClock

  func credential(for user: UserID) async throws -> Credential {
    try await clock.sleep(for: .seconds(86_400))
    return .none
  }
}

@Suite("Token servers and the end of a session", .timeLimit(.minutes(5)))
struct OpenIMTokenServerTests {
  let harness: ChatHarness

  init() throws { harness = try ChatHarness() }

  /// Turns, until nothing but what is meant is left on the clock.
  private func wait(until condition: () -> Bool) async throws {
    // Real time: nothing depends on how long it is.
    while !condition() { try await Task.sleep(for: .milliseconds(1)) }
  }

  @Test("a token server that hangs is given up after thirty seconds, and nothing of it is left")
  func hanging() async throws {
    let alice = try harness.adapter(provider: HangingProvider(clock: harness.clock))
    _ = try await EmulatorControl(harness.host).add(
      FaultRule(FaultRule.Match("auth"), do: .fail(EmulatorFailure("authentication", code: 1501)), times: nil))
    let start = harness.clock.now
    let connecting = Task { try await alice.connect(as: "alice", credential: .token("old")) }
    try await wait { harness.clock.nextWakeUp == start + .seconds(30) }
    harness.clock.advance(by: .seconds(30))
    let error = await #expect(throws: ChatError.self) { try await connecting.value }
    #expect(error?.kind == .authentication)
    #expect(await alice.state == .refused(.credentialExpired))
    try await wait { harness.clock.nextWakeUp == nil }
  }

  @Test("leaving while the token server is asked ends the asking")
  func leaving() async throws {
    let alice = try harness.adapter(provider: HangingProvider(clock: harness.clock))
    let start = harness.clock.now
    let connecting = Task { try await alice.connect(as: "alice", credential: .none) }
    try await wait { harness.clock.nextWakeUp == start + .seconds(30) }
    await alice.disconnect()
    let error = await #expect(throws: ChatError.self) { try await connecting.value }
    #expect(error?.kind == .cancelled)
    #expect(await alice.state == .disconnected(.requested))
    try await wait { harness.clock.nextWakeUp == nil }
  }

  @Test("after a kick every call is refused before a byte of it leaves")
  func kicked() async throws {
    let alice = try await harness.connected("alice")
    let channel = try await alice.createChannel(ChannelDraft(members: ["bob"], name: "G"))
    let sent = try await alice.send(ChatHarness.text("1", "c1", in: channel.id))
    var events = alice.events().makeAsyncIterator()
    let control = EmulatorControl(harness.host)
    try await control.perform(.kick(user: "alice"))
    _ = await first(&events) { $0 == .connectionChanged(.refused(.kickedByOtherDevice)) }
    let rule = try await control.add(
      FaultRule(
        FaultRule.Match(direction: .inbound), do: .http(HTTPResponse(status: 503)), times: nil, mustFire: false))
    let calls: [@Sendable () async throws -> Void] = [
      { _ = try await alice.channel(channel.id) }, { _ = try await alice.channels(ChannelQuery(), page: nil) },
      { _ = try await alice.createChannel(.direct(with: "bob")) },
      { _ = try await alice.updateChannel(channel.id, ChannelChanges(name: "H")) },
      { try await alice.deleteChannel(channel.id) }, { try await alice.leave(channel.id) },
      { try await alice.invite(["carol"], to: channel.id) },
      { _ = try await alice.members(of: channel.id, limit: 10, page: nil) },
      { _ = try await alice.send(ChatHarness.text("2", "c2", in: channel.id)) },
      { _ = try await alice.history(of: channel.id, .newest()) }, { _ = try await alice.recall(sent) },
      { try await alice.deleteForMe([sent]) }, { try await alice.clearHistory(of: channel.id) },
      { try await alice.markRead(channel.id, upTo: sent.position) },
      { try await alice.setTyping(true, in: channel.id) }, { _ = try await alice.totalUnread() },
      { _ = try await alice.users(["bob"]) }, { _ = try await alice.presence(of: ["bob"]) },
      { _ = try await alice.changes(in: channel.id, since: nil) }, { _ = try await alice.friends() },
    ]
    for call in calls {
      let error = await #expect(throws: ChatError.self) { try await call() }
      #expect(error?.kind == .authentication)
    }
    #expect(await control.rules().first { $0.id == rule }?.hits == 0)
  }

  @Test("the stream of what happens to contacts ends with the adapter")
  func contactStream() async throws {
    var alice: OpenIMAdapter? = try await harness.connected("alice")
    let stream = try #require(await alice?.contactEvents())
    await alice?.disconnect()
    alice = nil
    for await _ in stream {}
  }
}
