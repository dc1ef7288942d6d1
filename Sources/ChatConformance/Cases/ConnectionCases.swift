import ChatClient
import Synchronization
import UnifiedChat

extension ConformanceSuite {
  static let connection: [ConformanceCase] = [
    ConformanceCase("CONN-01", "A first connect passes through connecting to connected, once.", .s1) { context in
      let user = try await context.user("alice")
      let chat = try await context.device(user)
      let probe = context.probe(chat)
      try context.expectEqual(await chat.state, .disconnected(.initial), "the state before")
      let mark = await context.mark()
      let own = try await chat.connect(as: user.id, credential: user.credential)
      try context.expectEqual(own.id, user.id, "the own user")
      try context.expectEqual(await chat.currentUser?.id, user.id, "the current user")
      try await context.eventually("the trace is complete") { probe.connectionStates.count >= 2 }
      try context.expectEqual(probe.connectionStates, [.connecting, .connected], "the trace")
      try await context.expectOneSession(of: user, since: mark)
    },
    ConformanceCase("CONN-02", "Connecting twice yields one session.", .s2) { context in
      let user = try await context.user("alice")
      let other = try await context.user("other")
      let chat = try await context.device(user)
      let probe = context.probe(chat)
      let mark = await context.mark()
      let users = try await withThrowingTaskGroup(of: User.self) { group in
        for _ in 0..<5 { group.addTask { try await chat.connect(as: user.id, credential: user.credential) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      let again = try await chat.connect(as: user.id, credential: user.credential)
      try context.expect((users + [again]).allSatisfy { $0.id == user.id }, "every call returns the own user")
      try await context.eventually("connected is told") { probe.connectionStates.contains(.connected) }
      try context.expectEqual(probe.connectionStates, [.connecting, .connected], "the trace of all calls")
      try await context.expectError("conflict for another user") {
        _ = try await chat.connect(as: other.id, credential: other.credential)
      } where: {
        $0 == .conflict
      }
      try context.expectEqual(await chat.state, .connected, "the state after the refusal")
      try await context.expectOneSession(of: user, since: mark)
    },
    ConformanceCase("CONN-06", "After disconnect returns there is silence.", .s2) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let probe = context.probe(alice)
      async let sending: Void = {
        for number in 0..<100 { _ = try await bob.send(.text("\(number)"), to: channel.id) }
      }()
      await alice.disconnect()
      // What was published before the return may still be on its way to this reader; the end is the last of it.
      try await context.eventually("the end is told") {
        probe.connectionStates.last == .disconnected(.requested)
      }
      let told = probe.events.count
      try await sending
      try await context.quiet()
      try context.expectEqual(probe.events(after: told).map(\.kind), [], "events after the return")
      try context.expectEqual(try await context.serverMessages(channel.id).count, 100, "messages at the service")
      try context.expectEqual(await alice.state, .disconnected(.requested), "the state")
    },
    ConformanceCase("CONN-14", "Two accounts in one process share nothing.", .s1) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let atAlice = context.probe(alice)
      let atBob = context.probe(bob)
      _ = try await alice.send(.text("to bob"), to: channel.id)
      try await context.eventually("bob has it") { atBob.received(in: channel.id).count == 1 }
      try context.expectEqual(atAlice.received(in: channel.id).count, 0, "messages received by their sender")
      await alice.disconnect()
      try context.expectEqual(await bob.state, .connected, "bob's state")
      try context.expectEqual(await bob.currentUser?.id, users.b.id, "bob's user")
      _ = try await bob.send(.text("still here"), to: channel.id)
    },
    ConformanceCase(
      "CONN-03", "An unreachable endpoint fails the first connect and leaves nothing running.", .s2,
      hooks: ["refuseConnections", "journal"]
    ) { context in
      let user = try await context.user("alice")
      let chat = try await context.device(user)
      try await context.perform(.refuseConnections(true))
      let error = try await context.expectErrorInTime("network") {
        _ = try await chat.connect(as: user.id, credential: user.credential)
      } where: {
        if case .network = $0 { true } else { $0 == .timeout }
      }
      try context.expect(error.isRetryable, "an error that may be tried again", observed: "\(error.retry)")
      let mark = await context.mark()
      try await context.pass(.seconds(600), step: .seconds(30))
      try context.expectEqual(try await context.requests(since: mark).count, 0, "attempts within ten minutes")
      guard case .disconnected(.failed) = await chat.state else {
        throw context.failure("disconnected after a failure", "\(await chat.state)")
      }
      try await context.perform(.refuseConnections(false))
      // A socket takes a moment to be listened to again.
      for _ in 0..<10 where await chat.state != .connected {
        do {
          _ = try await context.whileTimePasses { try await chat.connect(as: user.id, credential: user.credential) }
        } catch let error as ChatError where error.isRetryable { try await context.quiet() }
      }
      try context.expectEqual(await chat.state, .connected, "the state once it accepts")
    },
    ConformanceCase(
      "CONN-04", "A server that accepts the socket and never answers the login times out.", .s1,
      hooks: ["drop", "journal"]
    ) { context in
      let user = try await context.user("alice")
      let chat = try await context.device(user)
      try await context.inject(FaultRule("auth", action: .drop))
      let started = context.harness.clock.now
      try await context.expectErrorInTime("timeout") {
        _ = try await chat.connect(as: user.id, credential: user.credential)
      } where: {
        $0 == .timeout
      }
      // The limit of a call is ten seconds. Time passes here by the second, and faster than a busy machine works.
      let waited = context.harness.clock.now - started
      try context.expect(waited >= .seconds(9), "ten seconds", observed: "\(waited)")
      if context.offers("virtualTime") { try context.expect(waited <= .seconds(30), "not much more", observed: "\(waited)") }
      try await context.eventually("the socket is closed") { try await context.sockets(of: user) == 0 }
      guard case .disconnected(.failed) = await chat.state else {
        throw context.failure("disconnected after a failure", "\(await chat.state)")
      }
    },
    ConformanceCase("CONN-05", "Disconnect during connecting wins.", .s1, hooks: ["delay", "journal"]) { context in
      let user = try await context.user("alice")
      let chat = try await context.device(user)
      let probe = context.probe(chat)
      try await context.inject(FaultRule("auth", action: .delay(.seconds(3))))
      let mark = await context.mark()
      async let connecting = context.expectError("cancelled") {
        _ = try await chat.connect(as: user.id, credential: user.credential)
      } where: {
        $0 == .cancelled
      }
      try await context.eventually("the login is on its way") {
        try await !context.requests("auth", by: user.id, since: mark).isEmpty
      }
      try await context.whileTimePasses { await chat.disconnect() }
      try await context.pass(.seconds(10))
      _ = try await connecting
      try context.expectEqual(await chat.state, .disconnected(.requested), "the state")
      try context.expect(!probe.connectionStates.contains(.connected), "never connected")
    },
    ConformanceCase("CONN-07", "A silent peer is detected by the dead timer.", .s1, hooks: ["stall"]) { context in
      let (alice, _, channel, users) = try await context.pair()
      let probe = context.probe(alice)
      try await context.perform(.stall(users.a.id))
      try await context.eventually("the silence is noticed", within: .seconds(900), step: .seconds(5)) {
        probe.connectionStates.contains(.reconnecting(attempt: 1))
      }
      try await context.perform(.resume(users.a.id))
      try await context.eventually("connected again", within: .seconds(900), step: .seconds(2)) {
        await alice.state == .connected
      }
      try await context.say(alice, channel.id, ["after the silence"])
    },
    ConformanceCase(
      "CONN-08", "A link that the server closes is opened again, and what was on its way arrives at most once.", .s1,
      hooks: ["closeSocket"]
    ) { context in
      let (alice, _, channel, users) = try await context.pair()
      let probe = context.probe(alice)
      for number in 0..<5 { _ = try await alice.enqueue(.text("\(number)"), to: channel.id) }
      // Half closed where there are sockets: the server says no more and still hears.
      if context.offers("halfClose") {
        try await context.perform(.halfClose(users.a.id))
      } else {
        try await context.perform(.close(users.a.id, code: 1001))
      }
      try await context.eventually("connected again", within: .seconds(300), step: .seconds(1)) {
        await alice.state == .connected && probe.connectionStates.contains(.reconnecting(attempt: 1))
      }
      try await context.eventually("every send has an outcome", within: .seconds(300), step: .seconds(1)) {
        try await alice.waitingMessages(in: channel.id).allSatisfy { $0.state == .unknown }
      }
      let stored = try await context.serverMessages(channel.id).map(\.content)
      try context.expectEqual(Set(stored).count, stored.count, "different messages at the service")
      let waiting = try await alice.waitingMessages(in: channel.id).count
      try context.expect(waiting == 0 || !context.has(.messageIdempotentSend), "no outcome stays unknown")
      try context.expect(stored.count + waiting >= 5, "all arrive", observed: "\(stored)")
    },
    ConformanceCase(
      "CONN-09", "A kick by a second login ends the first session for good.", .s1, needs: [.connectionKickReason],
      hooks: ["journal"]
    ) { context in
      let user = try await context.user("alice")
      let first = try await context.online(user, isExclusive: true)
      var second: (chat: Chat, probe: EventProbe)?
      if context.differs(.loginExcludesNobody) {
        try await context.perform(.user(.kickByAdmin, user.id))
      } else {
        let newer = try await context.replacing(user)
        second = (newer, context.probe(newer))
      }
      try await context.eventually("the first session is refused") {
        if case .refused = await first.state { true } else { false }
      }
      let expected: [ConnectionState] =
        context.differs(.kickNamesAdmin)
        ? [.refused(.kickedByAdmin), .refused(.credentialInvalid)] : [.refused(.kickedByOtherDevice)]
      try context.expect(expected.contains(await first.state), "\(expected)", observed: "\(await first.state)")
      let mark = await context.mark()
      func opened() async throws -> Int { try await context.requests(since: mark).count { $0.kind == "open" } }
      if let second {
        // In steps that leave the newer one time to answer pings.
        for _ in 0..<300 {
          await context.harness.pass(.seconds(1))
          try await context.quiet(6)
        }
        try await context.eventually("the second session stays") { await second.chat.state == .connected }
        // A busy machine may make it late with a ping, and come back by itself; nobody pushes it out.
        let returns = second.probe.connectionStates.count { if case .reconnecting = $0 { true } else { false } }
        try context.expect(try await opened() <= returns, "no attempt of the first one", observed: "\(try await opened())")
        // In longer steps it would be taken for silent.
        await second.chat.disconnect()
      }
      let before = try await opened()
      try await context.pass(.seconds(3300), step: .seconds(20))
      try context.expectEqual(try await opened(), before, "attempts within the hour")
      // Its process starts again, with what it has stored.
      await first.disconnect()
      let restarted = try await context.device(user, isExclusive: true)
      try await restarted.open(for: user.id)
      try await context.pass(.seconds(120), step: .seconds(10))
      try context.expectEqual(try await opened(), before, "attempts after a restart")
    },
    ConformanceCase(
      "CONN-10", "An automatic reopen does not throw out the newer device.", .s1,
      needs: [.connectionKickReason, .connectionMultiDevice]
    ) { context in
      if context.harness.differences.contains(.loginExcludesNobody) {
        throw CaseSkip(reason: .rule("loginExcludesNobody"))
      }
      let user = try await context.user("alice")
      let first = try await context.online(user, isExclusive: true)
      await first.suspend()
      let second = try await context.replacing(user)
      await first.resume()
      try await context.eventually("the older one is refused") {
        await first.state == .refused(.kickedByOtherDevice)
      }
      try context.expectEqual(await second.state, .connected, "the newer one")
    },
    ConformanceCase("CONN-11", "A drain request moves the session without losing a message.", .s1, hooks: ["goaway"]) {
      context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(alice)
      for number in 0..<20 {
        if number == 10 {
          let moved = try await context.canPerform(.user(.goaway, users.a.id))
          if !moved { try await context.perform(.cut(users.a.id)) }
        }
        try await context.say(bob, channel.id, ["\(number)"])
        await context.harness.pass(.milliseconds(10))
      }
      try await context.eventually("connected again") {
        await alice.state == .connected && probe.connectionStates.contains(.reconnecting(attempt: 1))
      }
      try await context.shows(alice, channel.id, (0..<20).map { .text("\($0)") }, "alice")
      // A page that was read may show what the catch-up tells of only now.
      @Sendable func told() -> Int { probe.received(in: channel.id).count + probe.backfilled(in: channel.id) }
      try await context.eventually("all messages told") { told() >= 20 }
      try context.expectEqual(told(), 20, "messages told, each once")
      try context.expectEqual(
        probe.connectionStates.count { if case .reconnecting = $0 { true } else { false } }, 1, "reconnections")
    },
    ConformanceCase("CONN-13", "The flight-mode cycle returns to connected.", .s1) { context in
      let (alice, _, channel, users) = try await context.pair()
      for round in 0..<20 {
        await alice.suspend()
        try context.expectEqual(await alice.state, .suspended, "the state while the path is down")
        let pending = try await alice.enqueue(.text("\(round)"), to: channel.id)
        await context.harness.pass(.seconds(5))
        await alice.resume()
        try await context.eventually("connected again", within: .seconds(10)) { await alice.state == .connected }
        if context.offers("journal") {
          try context.expectEqual(try await context.sockets(of: users.a), 1, "sockets")
        }
        try await context.eventually("sent") {
          try await !alice.waitingMessages(in: channel.id).contains { $0.localID == pending.localID }
        }
      }
      try context.expectEqual(
        try await context.serverMessages(channel.id).map(\.content), (0..<20).map { .text("\($0)") },
        "messages at the service")
    },
    ConformanceCase(
      "CONN-15", "Frames split anywhere are put together.", .s1, hooks: ["fragment"], tags: [.wire]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(bob)
      try await context.inject(
        FaultRule("push", user: users.b.id, times: nil, phase: .beforePush, action: .fragment([1, 125, 126])))
      let texts = (0..<10).map { "\($0) " + String(repeating: "字", count: 100) }
      try await context.say(alice, channel.id, texts)
      try await context.eventually("all arrive") { probe.received(in: channel.id).count == texts.count }
      try context.expectEqual(probe.received(in: channel.id).map(\.content), texts.map { .text($0) }, "the texts")
    },
    ConformanceCase("CONN-16", "Every reconnecting ends.", .s1, hooks: ["stall", "refuseConnections"]) { context in
      let user = try await context.user("alice")
      let chat = try await context.online(user)
      let probe = context.probe(chat)
      for round in 0..<20 {
        let returns = probe.returns
        switch (UInt64(round) &+ context.harness.seed) % 5 {
        case 0: try await context.perform(.cut(user.id))
        case 1: try await context.perform(.close(user.id, code: 1000))
        case 2: try await context.perform(.close(user.id, code: 1011))
        case 3: try await context.perform(.restart)
        default:
          try await context.perform(.refuseConnections(true))
          try await context.perform(.cut(user.id))
          try await context.pass(.seconds(7))
          try await context.perform(.refuseConnections(false))
        }
        // The state alone may still be the one from before the loss, which a device on a socket learns later.
        try await context.eventually("the reconnecting of round \(round) ends", within: .seconds(60), step: .seconds(1)) {
          probe.returns > returns && probe.connectionStates.last == .connected
        }
        try context.expectEqual(await chat.state, .connected, "the state after round \(round)")
      }
    },
    ConformanceCase(
      "CONN-17", "A drop is followed by the short way back in.", .s2, needs: [.connectionResume],
      hooks: ["journal", "expireCredential"], tags: [.wire]
    ) { context in
      let user = try await context.user("alice")
      let provider = TestProvider { _ in try await context.harness.issueCredential(for: user.id) }
      let chat = try await context.online(user, credentials: provider)
      let probe = context.probe(chat)
      let asked = provider.calls
      let mark = await context.mark()
      try await context.perform(.cut(user.id))
      try await context.comesBack(chat, probe, times: 1)
      let resumed = try await context.requests("resume", since: mark)
      try context.expect(!resumed.isEmpty, "a resumed session")
      if case .token(let secret) = user.credential {
        try context.expect(
          !resumed.contains { String(decoding: $0.bytes, as: UTF8.self).contains(secret) }, "no secret of the user in it")
      }
      try context.expectEqual(try await context.requests("auth", since: mark).count, 0, "logins from the start")
      try context.expectEqual(provider.calls, asked, "what the provider was asked")
      // What was stored is good no more, which the service says when it is shown: then the full way is taken, once.
      await chat.suspend()
      try await context.expire(user)
      let second = await context.mark()
      await chat.resume()
      try await context.comesBack(chat, probe, times: 2)
      try await context.quiet()
      // Whatever the vendor calls them: the stored one is shown once, and then another login made.
      let logins = try await context.requests(since: second).filter {
        ["auth", "resume"].contains($0.operation) && $0.kind != "http"
      }
      try context.expectEqual(logins.count, 2, "logins, the refused one with them")
      try context.expect(provider.calls <= asked + 1, "the provider asked once at most", observed: "\(provider.calls)")
    },
    ConformanceCase("CONN-18", "Presence is asked in lots and told in time.", .s3, needs: [.presenceQuery]) {
      context in
      var users: [TestUser] = []
      for number in 0..<30 { users.append(try await context.user("u\(number)")) }
      let ids = users.map(\.id)
      let asking = try await context.online(users[0])
      let other = try await context.online(users[17])
      let found = try await context.whileTimePasses { try await asking.presence(of: ids) }
      let online = ids.filter { found[$0] == .online }
      try context.expectEqual(online, [ids[0], ids[17]], "who is online")
      let probe = context.probe(asking)
      let isTold = context.has(.presenceSubscribe)
      if isTold { try await asking.subscribePresence(of: [ids[17]]) }
      await other.disconnect()
      try await context.eventually("the other one is gone") {
        if case .offline? = try await asking.presence(of: [ids[17]])[ids[17]] { true } else { false }
      }
      guard isTold else { return }
      @Sendable func told() -> Int { probe.count { if case .presenceChanged(ids[17], .offline) = $0 { true } else { false } } }
      try await context.eventually("it is told") { told() >= 1 }
      try await asking.unsubscribePresence(of: [ids[17]])
      let before = probe.count { if case .presenceChanged(ids[17], _) = $0 { true } else { false } }
      _ = try await other.connect(as: users[17].id, credential: users[17].credential)
      try await context.quiet()
      let after = probe.count { if case .presenceChanged(ids[17], _) = $0 { true } else { false } }
      try context.expectEqual(after, before, "events after unsubscribing")
      try context.expectEqual(told(), 1, "times that it was told")
    },
  ]
}

extension CaseContext {
  /// Waits until a device that lost its connection has it again, so often since `probe` began to listen.
  func comesBack(_ chat: Chat, _ probe: EventProbe, times: Int = 1) async throws {
    try await eventually("connected again, \(times) times in all") {
      probe.returns >= times && probe.connectionStates.last == .connected
    }
    try await eventually("connected") { await chat.state == .connected }
  }

  /// Another installation that logs in with a fresh credential in the way that pushes out the first one, where the
  /// vendor has such a way.
  func replacing(_ user: TestUser) async throws -> Chat {
    // A token of the same second may be the same token.
    await harness.pass(.seconds(2))
    let credential = try await harness.issueCredential(for: user.id)
    let folder = file("replacing")
    let chat = try await device(user, "newer phone", isExclusive: true) { $0.cacheLocation = .directory(folder) }
    _ = try await whileTimePasses { try await chat.connect(as: user.id, credential: credential) }
    return chat
  }
}

extension EventProbe {
  /// How often the device had its connection again after a loss.
  fileprivate var returns: Int {
    let states = connectionStates
    return zip(states, states.dropFirst()).count { before, after in
      guard after == .connected else { return false }
      if case .reconnecting = before { return true }
      return false
    }
  }
}

extension CaseContext {
  /// One socket and one login, where the service can be asked.
  fileprivate func expectOneSession(of user: TestUser, since mark: UInt64) async throws {
    guard offers("journal") else { return }
    try await idle()
    try expectEqual(try await sockets(of: user), 1, "sockets")
    try expectEqual(try await requests(since: mark).count { $0.kind == "open" }, 1, "links that were opened")
  }
}
