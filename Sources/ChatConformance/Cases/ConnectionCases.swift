import Synchronization
import UnifiedChat

extension ConformanceSuite {
  static let connection: [ConformanceCase] = [
    ConformanceCase("CONN-01", "A first connect passes through connecting to connected, once.", .s1) { context in
      let user = try await context.user("alice")
      let chat = try await context.device(user)
      let probe = context.probe(chat)
      try context.expectEqual(await chat.state, .disconnected(.initial), "the state before")
      let own = try await chat.connect(as: user.id, credential: user.credential)
      try context.expectEqual(own.id, user.id, "the own user")
      try context.expectEqual(await chat.currentUser?.id, user.id, "the current user")
      try await context.eventually("the trace is complete") { probe.connectionStates.count >= 2 }
      try context.expectEqual(probe.connectionStates, [.connecting, .connected], "the trace")
    },
    ConformanceCase("CONN-02", "Connecting twice yields one session.", .s2) { context in
      let user = try await context.user("alice")
      let other = try await context.user("other")
      let chat = try await context.device(user)
      let probe = context.probe(chat)
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
    },
    ConformanceCase("CONN-06", "After disconnect returns there is silence.", .s2) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let probe = context.probe(alice)
      async let sending: Void = {
        for number in 0..<100 { _ = try await bob.send(.text("\(number)"), to: channel.id) }
      }()
      await alice.disconnect()
      let count = probe.events.count
      try await sending
      for _ in 0..<20 { await context.harness.settle() }
      let late = probe.events.dropFirst(count).filter { event in
        // What was published before the return may still be on its way to this reader.
        if case .connectionChanged(.disconnected(.requested)) = event.kind { false } else { event.source == .live }
      }
      let all = try await context.serverMessages(channel.id)
      try context.expectEqual(all.count, 100, "messages at the service")
      try context.expect(late.count < 100, "no event after the return", observed: "\(late.count) events")
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
      "AUTH-01", "A wrong credential is refused once.", .s1, needs: [.authToken]
    ) { context in
      let user = try await context.user("alice")
      let chat = try await context.device(user)
      let probe = context.probe(chat)
      let error = try await context.expectError("authentication") {
        _ = try await chat.connect(as: user.id, credential: .token("not-the-token"))
      } where: {
        $0 == .authentication
      }
      try context.expect(error.retry == .never, "the refusal is final", observed: "\(error.retry)")
      try await context.eventually("refused is told") { probe.connectionStates.count >= 2 }
      try context.expectEqual(
        probe.connectionStates, [.connecting, .refused(.credentialInvalid)], "the trace")
      await context.harness.pass(.seconds(600))
      await context.harness.settle()
      try context.expectEqual(probe.connectionStates.count, 2, "changes of state after ten minutes")
    },
  ]
}
