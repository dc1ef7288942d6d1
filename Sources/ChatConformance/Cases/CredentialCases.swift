import ChatClient
import Synchronization
import UnifiedChat

extension ConformanceSuite {
  static let credential: [ConformanceCase] = [
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
    ConformanceCase(
      "AUTH-02", "An expired credential at the first connect asks the provider once and connects.", .s1,
      needs: [.authTokenRenewal], hooks: ["expireCredential"]
    ) { context in
      let user = try await context.userWithToken()
      let provider = TestProvider { _ in try await context.harness.issueCredential(for: user.id) }
      let chat = try await context.device(user, credentials: provider)
      let probe = context.probe(chat)
      try await context.expire(user)
      _ = try await context.whileTimePasses { try await chat.connect(as: user.id, credential: user.credential) }
      try context.expectEqual(provider.calls, 1, "what the provider was asked")
      try context.expectEqual(await chat.state, .connected, "the state")
      try await context.quiet()
      try context.expectEqual(probe.count { $0 == .credentialRequested }, 1, "credentialRequested")
      try context.expectEqual(probe.count { $0 == .credentialRenewed }, 1, "credentialRenewed")
    },
    ConformanceCase(
      "AUTH-03", "A token that expires in the middle of a send costs nothing.", .s1, needs: [.authTokenRenewal],
      hooks: ["expireCredential"]
    ) { context in
      let user = try await context.user("alice")
      let other = try await context.user("bob")
      let provider = TestProvider { _ in try await context.harness.issueCredential(for: user.id) }
      let chat = try await context.online(user, credentials: provider)
      let channel = try await chat.createChannel(ChannelDraft(kind: .group, members: [other.id], name: "expiring"))
      let probe = context.probe(chat)
      try await context.inject(FaultRule("send", user: user.id, channel: nil, action: .act(.expireCredential)))
      let sent = try await context.whileTimePasses { try await chat.send(.text("in between"), to: channel.id) }
      try context.expectEqual(try await context.serverMessages(channel.id).map(\.id), [sent.id], "at the service")
      try context.expectEqual(probe.failed(in: channel.id).count, 0, "failures shown")
      await context.harness.pass(.seconds(2))
      _ = try await context.channel(channel.id, by: chat)
      try context.expect(provider.calls <= 1, "the provider asked once at most", observed: "\(provider.calls)")
    },
    ConformanceCase(
      "AUTH-04", "A provider that keeps returning dead tokens ends in refused.", .s1, needs: [.authTokenRenewal],
      hooks: ["expireCredential"]
    ) { context in
      let user = try await context.userWithToken()
      let provider = TestProvider { _ in user.credential }
      let chat = try await context.device(user, credentials: provider)
      try await chat.open(for: user.id)
      try await context.expire(user)
      let pending = try await chat.enqueue(.text("later"), to: "somewhere")
      try await context.expectErrorInTime("authentication") {
        _ = try await chat.connect(as: user.id, credential: user.credential)
      } where: {
        $0 == .authentication
      }
      try context.expect((1...2).contains(provider.calls), "one or two questions", observed: "\(provider.calls)")
      try context.expectEqual(await chat.state, .refused(.credentialExpired), "the state")
      let waiting = try await chat.waitingMessages(in: "somewhere")
      try context.expectEqual(waiting.map(\.localID), [pending.localID], "what waits")
      try context.expectEqual(waiting.map(\.state), [.pending], "its state")
    },
    ConformanceCase(
      "AUTH-05", "A provider that throws or hangs is bounded.", .s2, needs: [.authTokenRenewal],
      hooks: ["expireCredential"]
    ) { context in
      struct Broken: Error {}
      let user = try await context.userWithToken()
      let throwing = try await context.device(user, credentials: TestProvider { _ in throw Broken() })
      try await context.expire(user)
      try await context.expectErrorInTime("authentication, since the provider throws") {
        _ = try await throwing.connect(as: user.id, credential: user.credential)
      } where: {
        $0 == .authentication
      }
      try context.expectEqual(await throwing.state, .refused(.credentialExpired), "the state")
      let clock = context.harness.clock
      let hanging = TestProvider { _ in
        try await clock.sleep(for: .seconds(86_400))
        return .none
      }
      let waiting = try await context.device(user, "tablet", credentials: hanging)
      let started = clock.now
      try await context.expectErrorInTime("an end, since the provider hangs", within: .seconds(300)) {
        _ = try await waiting.connect(as: user.id, credential: user.credential)
      } where: {
        $0 == .authentication || $0 == .timeout
      }
      let waited = clock.now - started
      try context.expect(waited >= .seconds(29) && waited <= .seconds(60), "its limit of 30 seconds", observed: "\(waited)")
      try context.expectEqual(await waiting.state, .refused(.credentialExpired), "the state after the limit")
      let leaving = try await context.device(user, "leaving", credentials: hanging)
      let connecting = Task { try await leaving.connect(as: user.id, credential: user.credential) }
      try await context.eventually("the provider is asked", within: .seconds(20)) { hanging.calls == 2 }
      try await context.whileTimePasses(within: .seconds(1), step: .milliseconds(100)) { await leaving.disconnect() }
      try await context.expectErrorInTime("cancelled", within: .seconds(1)) { _ = try await connecting.value } where: {
        $0 == .cancelled
      }
      try context.expectEqual(await leaving.state, .disconnected(.requested), "the state of who left")
    },
    ConformanceCase(
      "AUTH-06", "Fifty requests meet one renewal.", .s2, needs: [.authTokenRenewal], hooks: ["expireCredential"]
    ) { context in
      let user = try await context.userWithToken()
      let other = try await context.user("bob")
      let provider = TestProvider { _ in try await context.harness.issueCredential(for: user.id) }
      let chat = try await context.online(user, credentials: provider)
      let channel = try await chat.createChannel(ChannelDraft(kind: .group, members: [other.id], name: "asked"))
      let asked = provider.calls
      let probe = context.probe(chat)
      try await context.expire(user)
      let found = try await context.whileTimePasses {
        try await withThrowingTaskGroup(of: ChannelID.self) { group in
          for _ in 0..<50 { group.addTask { try await chat.channel(channel.id).id } }
          return try await group.reduce(into: []) { $0.append($1) }
        }
      }
      try context.expectEqual(found.count, 50, "successes")
      try context.expectEqual(provider.calls - asked, 1, "what the provider was asked")
      try await context.quiet()
      try context.expectEqual(probe.count { $0 == .credentialRequested }, 1, "credentialRequested")
      try context.expectEqual(probe.count { $0 == .credentialRenewed }, 1, "credentialRenewed")
    },
    ConformanceCase("AUTH-07", "Revocation while connected is final.", .s1, hooks: ["revokeCredential"]) { context in
      let (alice, _, _, users) = try await context.pair()
      try await context.perform(.user(.revokeCredential, users.a.id))
      try await context.eventually("refused", within: .seconds(1)) {
        if case .refused = await alice.state { true } else { false }
      }
      let allowed: [ConnectionState] = [
        .refused(.credentialInvalid), .refused(.kickedByAdmin), .refused(.kickedByOtherDevice),
      ]
      try context.expect(allowed.contains(await alice.state), "a final reason", observed: "\(await alice.state)")
      let mark = await context.mark()
      try await context.expectError("authentication without the network") {
        _ = try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: "x"))
      } where: {
        $0 == .authentication || $0 == .network(.offline)
      }
      try context.expectEqual(await context.framesOfClients(since: mark), 0, "frames after the refusal")
    },
    ConformanceCase("AUTH-11", "Logout works without the server.", .s1, hooks: ["stall"]) { context in
      let user = try await context.user("alice")
      let chat = try await context.online(user)
      try await context.perform(.stall(user.id))
      try await context.expire(user)
      try await context.whileTimePasses(within: .seconds(2)) { await chat.disconnect() }
      try context.expectEqual(await chat.state, .disconnected(.requested), "the state")
      try await context.perform(.resume(user.id))
    },
    ConformanceCase("AUTH-12", "A disabled user is told so.", .s2, hooks: ["disableUser"]) { context in
      if context.harness.differences.contains(.usersCannotBeDisabled) {
        throw CaseSkip(reason: .rule("usersCannotBeDisabled"))
      }
      let user = try await context.user("alice")
      let chat = try await context.online(user)
      try await context.perform(.user(.disableUser, user.id))
      try await context.eventually("refused while connected") { await chat.state == .refused(.userDisabled) }
      let fresh = try await context.device(user, "tablet")
      try await context.expectErrorInTime("authentication or permission") {
        _ = try await fresh.connect(as: user.id, credential: user.credential)
      } where: {
        if case .permission = $0 { true } else { $0 == .authentication }
      }
      try context.expectEqual(await fresh.state, .refused(.userDisabled), "the state at connect")
    },
    ConformanceCase("AUTH-13", "User ids are compared byte by byte.", .s1) { context in
      let ids = ["\u{C5}ngstr", "A\u{30A}ngstr", "auth13a", "AUTH13A", "auth13a "]
      var online: [(id: String, chat: Chat)] = []
      for id in ids {
        let user: TestUser
        // An id outside of the vendor's alphabet is refused, not changed.
        do { user = try await context.user(exactly: id) } catch let error as ChatError {
          guard case .invalidArgument = error.kind else { throw error }
          continue
        }
        guard user.id.rawValue.utf8.elementsEqual(id.utf8) else { continue }
        let chat = try await context.device(user)
        do {
          let own = try await context.whileTimePasses { try await chat.connect(as: user.id, credential: user.credential) }
          try context.expectBytes(own.id.rawValue, id, "the own id")
          online.append((id, chat))
        } catch let error as ChatError {
          guard case .invalidArgument = error.kind else { throw error }
        }
      }
      try context.expect(online.count >= 2, "at least the two plain ids", observed: "\(online.count)")
      for (id, chat) in online {
        _ = try await chat.enqueue(.text("of \(id)"), to: "nowhere")
        try await chat.setDraft(id, of: "draft")
      }
      for (id, chat) in online { try context.expectBytes(try await chat.draft(of: "draft"), id, "the draft of its own cache") }
    },
  ]
}

extension CaseContext {
  /// Lets the user's credential expire, a moment before anything else happens: a token that is issued within the same
  /// second may be the same token.
  func expire(_ user: TestUser) async throws {
    try await perform(.user(.expireCredential, user.id))
    await harness.pass(.seconds(2))
  }

  /// A user who brings a token: where the service asks for none, nothing can expire before the first login.
  func userWithToken() async throws -> TestUser {
    let user = try await user("alice")
    guard case .token = user.credential else { throw CaseSkip(reason: .rule("no token is brought")) }
    return user
  }

  /// Frames and requests of clients; 0 where the wire cannot be seen.
  func framesOfClients(since mark: UInt64) async -> Int {
    await harness.faults?.wire(since: mark).count { $0.isFromClient && $0.kind != "close" } ?? 0
  }
}
