import ChatEmulation
import ChatJSON
import ChatTransport
import LeanCloudAdapter
import Testing
import UnifiedChat

/// What a session holds goes with it.
@Suite("Nothing is left behind", .timeLimit(.minutes(1)))
struct LeftoverTests {
  enum Model: String, CaseIterable, Sendable { case conversation, session }

  private func adapter(_ model: Model, _ bench: Bench, _ provider: (any CredentialProvider)? = nil) throws -> any ChatAdapter {
    let (profile, environment) = (bench.profile(model: model.rawValue), bench.environment(credentials: provider))
    return switch model {
    case .conversation:
      try LeanCloudAdapter(profile: profile, environment: environment, transports: bench.host.transports)
    case .session:
      try LeanCloudPeerAdapter(profile: profile, environment: environment, transports: bench.host.transports)
    }
  }

  /// Until no socket is open and nobody sleeps on the client's clock; the time limit ends a wait in vain.
  private func waitUntilNothingIsLeft(_ bench: Bench) async throws {
    while true {
      let isClean = await bench.host.openConnections == 0 && bench.clock.nextWakeUp == nil
      if isClean { return }
      // Real time: nothing depends on how long it is.
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  @Test("a login that is refused leaves neither socket nor timer", arguments: Model.allCases)
  func refusedLogin(model: Model) async throws {
    let bench = try Bench()
    _ = try await bench.host.control.add(
      FaultRule(FaultRule.Match("auth", direction: .inbound), do: .fail(EmulatorFailure("authentication")), times: nil))
    let alice = try adapter(model, bench)
    await #expect(throws: ChatError.self) { try await alice.connect(as: "alice", credential: .none) }
    try await waitUntilNothingIsLeft(bench)
  }

  @Test("a login that nobody answers leaves neither socket nor timer", arguments: Model.allCases)
  func silentLogin(model: Model) async throws {
    let bench = try Bench()
    _ = try await bench.host.control.add(
      FaultRule(FaultRule.Match("auth", direction: .inbound), do: .drop, times: nil))
    let alice = try adapter(model, bench)
    let connecting = Task { try await alice.connect(as: "alice", credential: .none) }
    while bench.clock.nextWakeUp == nil { try await Task.sleep(for: .milliseconds(1)) }
    // A try after the other in vain, and its answer's time with each.
    let passing = Task {
      while !Task.isCancelled {
        if let due = bench.clock.nextWakeUp { bench.clock.advance(to: due) }
        try? await Task.sleep(for: .milliseconds(1))
      }
    }
    let error = await #expect(throws: ChatError.self) { try await connecting.value }
    passing.cancel()
    #expect(error?.kind == .timeout)
    try await waitUntilNothingIsLeft(bench)
  }

  @Test("leaving in the middle of a login leaves neither socket nor timer", arguments: Model.allCases)
  func leavingAtLogin(model: Model) async throws {
    let bench = try Bench()
    _ = try await bench.host.control.add(
      FaultRule(FaultRule.Match("auth", direction: .inbound), do: .drop, times: nil))
    let alice = try adapter(model, bench)
    let connecting = Task { try await alice.connect(as: "alice", credential: .none) }
    while bench.clock.nextWakeUp == nil { try await Task.sleep(for: .milliseconds(1)) }
    await alice.disconnect()
    let error = await #expect(throws: ChatError.self) { try await connecting.value }
    #expect(error?.kind == .cancelled)
    try await waitUntilNothingIsLeft(bench)
  }

  @Test("typing, sending and leaving leave neither socket nor timer", arguments: Model.allCases)
  func leaving(model: Model) async throws {
    let bench = try Bench()
    let (alice, bob) = (Client(adapter: try adapter(model, bench)), Client(adapter: try adapter(model, bench)))
    for (client, user) in [(alice, "alice"), (bob, "bob")] as [(Client, UserID)] {
      _ = try await client.adapter.connect(as: user, credential: .none)
    }
    let channel = try await alice.adapter.createChannel(.direct(with: "bob"))
    for number in 0..<5 {
      try await alice.adapter.setTyping(true, in: channel.id)
      _ = await bob.next { if case .typingStarted(channel.id, "alice") = $0.kind { true } else { nil } }
      _ = try await alice.adapter.send(alice.text("hi", to: channel.id, id: "c-\(number)"))
      _ = await bob.next { if case .typingEnded(channel.id, "alice") = $0.kind { true } else { nil } }
    }
    try await alice.adapter.setTyping(true, in: channel.id)
    _ = await bob.next { if case .typingStarted(channel.id, "alice") = $0.kind { true } else { nil } }
    await alice.adapter.disconnect()
    await bob.adapter.disconnect()
    try await waitUntilNothingIsLeft(bench)
  }

  @Test("a kick leaves neither socket nor timer")
  func kicked() async throws {
    let bench = try Bench()
    let alice = try await bench.connect("alice")
    try await bench.host.control.perform(.kick(user: "alice"))
    _ = await alice.next { if case .connectionChanged(.refused) = $0.kind { true } else { nil } }
    try await waitUntilNothingIsLeft(bench)
  }

  /// A signing server that does not answer while its clock stands.
  struct Hanging: CredentialProvider {
    let clock: ManualClock
    func credential(for user: UserID) async throws -> Credential { .none }
    func sign(_ operation: String, fields: [String], for user: UserID) async throws -> SignedOperation? {
      try await clock.sleep(for: .seconds(86_400))
      return nil
    }
  }

  @Test("a signing server that hangs is given up after thirty seconds", arguments: Model.allCases)
  func hangingSigner(model: Model) async throws {
    let bench = try Bench()
    let alice = try adapter(model, bench, Hanging(clock: bench.clock))
    let start = bench.clock.now
    let connecting = Task { try await alice.connect(as: "alice", credential: .none) }
    while bench.clock.nextWakeUp != start + .seconds(30) { try await Task.sleep(for: .milliseconds(1)) }
    bench.clock.advance(by: .seconds(30))
    let error = await #expect(throws: ChatError.self) { try await connecting.value }
    #expect(error?.kind == .authentication)
    try await waitUntilNothingIsLeft(bench)
  }

  @Test("what is not stored has no place in the history", arguments: Model.allCases)
  func transient(model: Model) async throws {
    let bench = try Bench()
    let (alice, bob) = (Client(adapter: try adapter(model, bench)), Client(adapter: try adapter(model, bench)))
    for (client, user) in [(alice, "alice"), (bob, "bob")] as [(Client, UserID)] {
      _ = try await client.adapter.connect(as: user, credential: .none)
    }
    let channel = try await alice.adapter.createChannel(.direct(with: "bob"))
    var outgoing = alice.text("for now", to: channel.id)
    outgoing.draft.isTransient = true
    let sent = try await alice.adapter.send(outgoing)
    let heard = await bob.nextMessage()
    #expect(heard?.content == .text("for now") && heard?.position == nil && sent.position == nil)
    #expect(try await bob.adapter.history(of: channel.id, .newest()).messages.isEmpty)
  }

  @Test("in the 2014 model an id has at most fifty bytes, and a longer one is refused before the network")
  func longIDs() async throws {
    let bench = try Bench()
    let longest = UserID(String(repeating: "é", count: 25))
    let long = UserID(longest.rawValue + "x")
    let alice = try adapter(.session, bench)
    let error = await #expect(throws: ChatError.self) { try await alice.connect(as: long, credential: .none) }
    #expect(error?.kind == .invalidArgument(field: "userID"))
    #expect(await bench.host.coverage.allSatisfy { $0.calls == 0 })
    #expect(try await alice.connect(as: longest, credential: .none).id == longest)
    let pair = await #expect(throws: ChatError.self) { try await alice.createChannel(.direct(with: long)) }
    #expect(pair?.kind == .invalidArgument(field: "userID"))
    #expect(try await alice.users([longest, long]).map(\.id) == [longest])
    await alice.disconnect()
  }
}
