import ChatEmulation
import ChatJSON
import ChatTransport
import SendbirdAdapter
import SendbirdWire
import Testing
import UnifiedChat

/// Issues session tokens, and counts.
private actor Issuer: CredentialProvider {
  let lab: Lab
  private(set) var asked = 0
  private let isRefused: Bool

  init(lab: Lab, isRefused: Bool = false) {
    self.lab = lab
    self.isRefused = isRefused
  }

  func credential(for user: UserID) async throws -> Credential {
    asked += 1
    if isRefused { throw ChatError(.cancelled, operation: .renewCredential) }
    return .token(try await lab.rest("POST", "users/\(user)/token", [:]).json["token"]?.string ?? "")
  }
}

/// A token server that does not answer while its clock stands, or gives a token that is dead.
private struct Useless: CredentialProvider {
  let clock: ManualClock
  var hangs = false

  func credential(for user: UserID) async throws -> Credential {
    if hangs { try await clock.sleep(for: .seconds(86_400)) }
    return .token("dead")
  }
}

@Suite("Sendbird sessions of the adapter")
struct SendbirdSessionTests {
  @Test("suspended it has no link and hears nothing; resumed it logs in by its key and says what it may have missed")
  func suspendAndResume() async throws {
    let lab = try Lab()
    let (ana, bob) = (try await lab.connected("ana"), try await lab.connected("bob"))
    let lobby = try await bob.createChannel(ChannelDraft(kind: .open, name: "lobby"))
    let events = bob.events()
    let channel = try await ana.createChannel(.direct(with: "bob"))
    _ = await events.first { if case .channelJoined(let joined) = $0.kind { joined } else { nil } }
    await bob.suspend()
    #expect(await bob.state == .suspended)
    await #expect { try await bob.say("x", in: channel.id, id: "c0") } throws: {
      ($0 as? ChatError)?.kind == .network(.offline)
    }
    let missed = try await ana.say("while away", in: channel.id, id: "c1")
    await bob.resume()
    let kinds = await events.collect(until: .connectionChanged(.connected))
    // The login itself tells how much is unread.
    #expect(
      kinds == [
        .connectionChanged(.suspended), .connectionChanged(.reconnecting(attempt: 1)),
        .totalUnreadChanged(.exact(1)), .missedEvents(in: nil), .connectionChanged(.connected),
      ])
    #expect(!kinds.contains { if case .messageReceived = $0 { true } else { false } })
    #expect(try await bob.history(of: channel.id, .newest(1)).messages.last?.id == missed.id)
    // The open channel was entered again before the connection counted.
    #expect(try await bob.say("still in", in: lobby.id, id: "c2").content == .text("still in"))
  }

  @Test("for one expiry the provider is asked once, and no event of that time is lost or told twice")
  func renewalLosesNothing() async throws {
    let lab = try Lab(users: [("bob", "tok")])
    let issuer = Issuer(lab: lab)
    let ana = try await lab.connected("ana")
    let bob = lab.adapter(credentials: issuer)
    _ = try await bob.connect(as: "bob", credential: .token("tok"))
    let channel = try await ana.createChannel(.direct(with: "bob"))
    let events = bob.events()
    for number in 0..<30 {
      if number == 10 { try await EmulatorControl(lab.host).perform(.expireCredential(user: "bob")) }
      _ = try await ana.say("\(number)", in: channel.id, id: ClientMessageID("c\(number)"))
    }
    var texts: [String] = []
    var renewals: [ChatEvent.Kind] = []
    for await event in events {
      switch event.kind {
      case .messageReceived(let message): texts.append(message.content.searchableText ?? "")
      case .credentialRequested, .credentialRenewed, .connectionChanged: renewals.append(event.kind)
      default: break
      }
      if texts.count == 30, renewals.count >= 2 { break }
    }
    #expect(texts == (0..<30).map(String.init))
    #expect(renewals == [.credentialRequested, .credentialRenewed])
    #expect(await issuer.asked == 1)
    #expect(try await bob.say("mine", in: channel.id, id: "b1").sender == "bob")
  }

  @Test("a token that is expired at the first login is asked for once, and then the login succeeds")
  func expiredAtLogin() async throws {
    let lab = try Lab(users: [("bob", "tok")])
    let issuer = Issuer(lab: lab)
    let bob = lab.adapter(credentials: issuer)
    #expect(try await bob.connect(as: "bob", credential: .token("old")).id == "bob")
    #expect(await issuer.asked == 1)
  }

  @Test("where the app renews tokens, one that is refused has run out", .timeLimit(.minutes(1)), arguments: [true, false])
  func useless(hangs: Bool) async throws {
    let lab = try Lab(users: [("bob", "tok")])
    let clock = ManualClock()
    let bob = lab.adapter(credentials: Useless(clock: clock, hangs: hangs), clock: clock)
    let connecting = Task { try await bob.connect(as: "bob", credential: .token("old")) }
    if hangs {
      // Real time: nothing depends on how long it is.
      while clock.nextWakeUp != clock.now + .seconds(30) { try await Task.sleep(for: .milliseconds(1)) }
      clock.advance(by: .seconds(30))
    }
    let error = await #expect(throws: ChatError.self) { try await connecting.value }
    #expect(error?.kind == .authentication && error?.retry == .never)
    #expect(await bob.state == .refused(.credentialExpired))
    while clock.nextWakeUp != nil { try await Task.sleep(for: .milliseconds(1)) }
  }

  @Test("leaving while the token server is asked ends the asking", .timeLimit(.minutes(1)))
  func leavingWhileAsked() async throws {
    let lab = try Lab(users: [("bob", "tok")])
    let clock = ManualClock()
    let bob = lab.adapter(credentials: Useless(clock: clock, hangs: true), clock: clock)
    let connecting = Task { try await bob.connect(as: "bob", credential: .token("old")) }
    while clock.nextWakeUp != clock.now + .seconds(30) { try await Task.sleep(for: .milliseconds(1)) }
    await bob.disconnect()
    await #expect(throws: ChatError.self) { try await connecting.value }
    #expect(await bob.state == .disconnected(.requested))
    while clock.nextWakeUp != nil { try await Task.sleep(for: .milliseconds(1)) }
  }

  @Test("when nobody gives a token the session ends, once and for good")
  func noToken() async throws {
    let lab = try Lab(users: [("bob", "tok")])
    let issuer = Issuer(lab: lab, isRefused: true)
    let bob = lab.adapter(credentials: issuer)
    _ = try await bob.connect(as: "bob", credential: .token("tok"))
    let events = bob.events()
    try await EmulatorControl(lab.host).perform(.expireCredential(user: "bob"))
    let kinds = await events.collect(until: .connectionChanged(.refused(.credentialExpired)))
    #expect(kinds == [.credentialRequested, .connectionChanged(.refused(.credentialExpired))])
    #expect(await issuer.asked == 1)
  }

  @Test("an expired key is renewed with the token in hand, and nobody is asked")
  func expiredKey() async throws {
    let lab = try Lab(users: [("bob", "tok")])
    let issuer = Issuer(lab: lab)
    let bob = lab.adapter(credentials: issuer)
    _ = try await bob.connect(as: "bob", credential: .token("tok"))
    let channel = try await bob.createChannel(ChannelDraft())
    let session = try #require(await EmulatorControl(lab.host).sessions(of: "bob").first)
    try await EmulatorControl(lab.host).push(
      .text("EXPR{\"expires_in\":0,\"reason\":400309}\n"), to: session.connection)
    #expect(try await bob.say("on", in: channel.id, id: "c1").content == .text("on"))
    #expect(await issuer.asked == 0)
    #expect(await bob.state == .connected)
  }

  @Test("the configured retry policy counts, not what the login proposes", .timeLimit(.minutes(1)))
  func retryPolicy() async throws {
    let lab = try Lab()
    let clock = ManualClock()
    let adapter = SendbirdAdapter(
      profile: lab.profile(.init(maxAttempts: 3, baseDelay: .seconds(2), maxDelay: .seconds(3))),
      environment: AdapterEnvironment(clock: clock), transports: lab.host.transports)
    _ = try await adapter.connect(as: "ana", credential: .none)
    let events = adapter.events()
    let control = EmulatorControl(lab.host)
    await control.refuseConnections(true)
    try await control.act(.end(.abrupt), on: "ana")
    var kinds: [ChatEvent.Kind] = []
    for await event in events {
      kinds.append(event.kind)
      if event.kind == .connectionChanged(.disconnected(.gaveUp)) { break }
      if case .connectionChanged(.reconnecting(let attempt)) = event.kind, attempt > 1 {
        let wait: Duration = attempt == 2 ? .seconds(2) : .seconds(3)
        // Each client waits at a pace of its own, from a half to the whole; nothing else wakes anybody then.
        while clock.nextWakeUp.map({ $0 < clock.now + wait / 2 || $0 > clock.now + wait }) ?? true { await Task.yield() }
        clock.advance(by: wait)
      }
    }
    #expect(
      kinds == [
        .connectionChanged(.reconnecting(attempt: 1)), .connectionChanged(.reconnecting(attempt: 2)),
        .connectionChanged(.reconnecting(attempt: 3)), .connectionChanged(.disconnected(.gaveUp)),
      ])
  }
}
