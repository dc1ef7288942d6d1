import Foundation
import UnifiedChat

extension ConformanceSuite {
  static let error: [ConformanceCase] = [
    ConformanceCase(
      "ERR-02", "An unknown code is kept.", .s2, hooks: ["fail"], tags: [.wire]
    ) { context in
      let (alice, _, channel, users) = try await context.pair()
      try await context.inject(FaultRule("send", user: users.a.id, action: .refuse(code: 987_654)))
      let error = try await context.expectErrorInTime("server") {
        _ = try await alice.send(.text("odd"), to: channel.id)
      } where: {
        $0 == .server
      }
      try context.expect(!error.isRetryable, "not to be tried again", observed: "\(error.retry)")
      try context.expectEqual(error.vendor?.code, "987654", "the code")
      try context.expectEqual(await alice.state, .connected, "the state")
      try await context.say(alice, channel.id, ["next"])
    },
    ConformanceCase("ERR-03", "A gateway's HTML is not JSON.", .s2, hooks: ["http", "journal"], tags: [.wire]) { context in
      let user = try await context.user("alice")
      let chat = try await context.online(user)
      try await context.quiet()
      let html = "<html><head><title>502 Bad Gateway</title></head><body>" + String(repeating: "nginx ", count: 200)
      for operation in ["channelQuery", "history", "channelCreate", "other", "changelog", "member"] {
        try await context.inject(
          FaultRule(
            operation, times: nil,
            action: .http(status: 502, headers: ["Content-Type": "text/html"], body: Array(html.utf8)), mustFire: false))
      }
      let mark = await context.mark()
      do {
        _ = try await context.whileTimePasses(within: .seconds(300), step: .seconds(2)) {
          try await chat.users([user.id, "err-03-other"])
        }
        let frames = await context.harness.faults?.wire(since: mark) ?? []
        // A vendor whose clients ask by frames has no gateway here.
        guard !frames.contains(where: { $0.kind == "http" }) else { throw context.failure("an error", "none") }
        throw CaseSkip(reason: .rule("requests go by frames"))
      } catch let error as ChatError {
        try context.expect(error.kind == .server, "server", observed: "\(error)")
        try context.expect(error.isRetryable, "it may be tried again", observed: "\(error.retry)")
        try context.expect("\(error)".utf8.count < 700, "an excerpt, not the page", observed: "\("\(error)".utf8.count) bytes")
      }
      try await context.removeRules()
      try context.expectEqual(await chat.state, .connected, "the state")
    },
    ConformanceCase("ERR-07", "A send that is never answered has a time limit and obeys it.", .s1, hooks: ["drop"]) {
      context in
      let (alice, _, channel, users) = try await context.pair()
      let adapter = try await context.harness.makeAdapter(TestDevice(name: "err-07-bare", clock: context.harness.clock))
      _ = try await adapter.connect(as: users.a.id, credential: users.a.credential)
      try await context.inject(FaultRule("send", user: users.a.id, action: .drop))
      let started = context.harness.clock.now
      let message = OutgoingMessage(channel: channel.id, localID: "err-07", clientMessageID: "err-07", draft: .text("lost"))
      let error = try await context.expectErrorInTime("timeout", within: .seconds(600)) {
        _ = try await adapter.send(message)
      } where: {
        $0 == .timeout || $0 == .network(.closed)
      }
      let waited = context.harness.clock.now - started
      try context.expect(waited <= .seconds(120), "an end within two minutes", observed: "\(waited)")
      try context.expect(error.isRetryable, "it may be tried again", observed: "\(error.retry)")
      await adapter.disconnect()
      try context.expectEqual(try await context.serverMessages(channel.id).count, 0, "messages at the service")
      try context.expectEqual(await alice.state, .connected, "the other device")
    },
    ConformanceCase("ERR-08", "Retries are counted and spaced.", .s2, hooks: ["drop", "fail", "journal"]) { context in
      let (_, _, channel, users) = try await context.pair()
      let retrying = try await context.online(users.a, "retrying") { $0.retry.maxAttempts = 4 }
      let probe = context.probe(retrying)
      try await context.inject(FaultRule("send", user: users.a.id, times: nil, action: .drop))
      let mark = await context.mark()
      _ = try await retrying.enqueue(.text("never"), to: channel.id)
      let isRepeated = context.has(.messageIdempotentSend)
      try await context.eventually("it ends", within: .seconds(1200), step: .seconds(1)) {
        isRepeated ? probe.failed(in: channel.id).count == 1
          : probe.failed(in: channel.id).count == 1 || probe.updated(in: channel.id).contains { $0.state == .unknown }
      }
      try await context.pass(.seconds(120), step: .seconds(2))
      let tries = try await context.requests("send", by: users.a.id, since: mark)
      // What cannot be looked up is not tried again: it may have arrived.
      try context.expectEqual(tries.count, isRepeated ? 4 : 1, "tries, as the policy says")
      for (number, (one, two)) in zip(tries, tries.dropFirst()).enumerated() {
        let gap = two.time - one.time
        // The time limit of a call, and a pause that may double with each try.
        let longest = Duration.seconds(30 + (1 << (number + 1)))
        try context.expect(gap >= .seconds(5) && gap <= longest, "5 s to \(longest) between tries", observed: "\(gap)")
      }
      try await context.removeRules()
      try await context.inject(FaultRule("send", user: users.a.id, action: .fail(.permission())))
      let second = await context.mark()
      let before = probe.failed(in: channel.id).count
      _ = try await retrying.enqueue(.text("refused"), to: channel.id)
      try await context.eventually("refused", within: .seconds(300)) { probe.failed(in: channel.id).count == before + 1 }
      try await context.pass(.seconds(60), step: .seconds(2))
      try context.expectEqual(
        try await context.requests("send", by: users.a.id, since: second).count, 1, "tries of what is refused for good")
    },
    ConformanceCase(
      "ERR-09", "Retry-After is obeyed.", .s2, needs: [.fileUpload], hooks: ["http", "journal"]
    ) { context in
      let (alice, _, channel, _) = try await context.pair()
      let probe = context.probe(alice)
      for (round, isDate) in [false, true].enumerated() {
        try await context.idle()
        // An upload goes by HTTP everywhere; the message that waits for it is tried again by the outbox.
        // A date counts from the service's own.
        let now = context.harness.clock.now
        let wanted = isDate ? Self.httpDate(now + .seconds(7)) : "7"
        let headers = isDate ? ["Retry-After": wanted, "Date": Self.httpDate(now)] : ["Retry-After": wanted]
        try await context.inject(FaultRule("file", action: .http(status: 429, headers: headers)))
        let content = MessageContent.file(
          Attachment(name: "slow.bin", mimeType: "application/octet-stream", source: .bytes([1, 2, 3])))
        let mark = await context.mark()
        _ = try await alice.enqueue(MessageDraft(content), to: channel.id)
        try await context.eventually("the first try", within: .seconds(30), step: .milliseconds(10)) {
          try await !context.requests("file", since: mark).isEmpty
        }
        try await context.quiet()
        try await context.pass(.milliseconds(6900), step: .milliseconds(100))
        try await context.quiet()
        try context.expectEqual(try await context.requests("file", since: mark).count, 1, "tries before \(wanted)")
        // Small steps: what wakes within one is seen at its end.
        for _ in 0..<300 where probe.sent(in: channel.id).count == round {
          await context.harness.pass(.milliseconds(50))
          try await context.quiet(6)
        }
        try context.expectEqual(probe.sent(in: channel.id).count, round + 1, "sent in the end")
        let tries = try await context.requests("file", since: mark)
        try context.expect(tries.count >= 2, "a second try", observed: "\(tries.count)")
        let waited = tries[1].time - tries[0].time
        // Over sockets, time passes while a frame is on its way.
        let longest: Duration = context.offers("virtualTime") ? .seconds(9) : .seconds(12)
        try context.expect(
          waited >= .seconds(7) && waited <= longest, "7 s to \(longest) between, for \(wanted)", observed: "\(waited)")
        try context.expectEqual(probe.failed(in: channel.id).count, 0, "failures told")
        try await context.removeRules()
      }
      try context.expectEqual(try await context.serverMessages(channel.id).count, 2, "messages at the service")
    },
    ConformanceCase("ERR-10", "An absent capability throws before the network.", .s1) { context in
      // Not connected: whatever reached for the network would throw `network`, not `unsupported`.
      let user = try await context.user("alice")
      let adapter = try await context.harness.makeAdapter(device: "\(user.id)-bare")
      let declared = context.harness.capabilities
      for (capability, call) in refusals(adapter) where !declared.has(capability) {
        try await context.expectError("unsupported(\(capability.rawValue))", call) { $0 == .unsupported(capability) }
      }
    },
    ConformanceCase("ERR-11", "Errors speak.", .s3) { context in
      let user = try await context.user("alice")
      let chat = try await context.online(user)
      let error = try await context.expectError("notFound") {
        _ = try await chat.channel("no-such-channel")
      } where: {
        if case .permission = $0 { true } else { $0 == .notFound || $0 == .invalidArgument(field: "channel") }
      }
      let text = "\(error)"
      try context.expect(text.contains(error.operation.rawValue), "the operation in the text", observed: text)
      try context.expect(text.contains(error.kind.name), "the kind in the text", observed: text)
      if case .token(let token) = user.credential {
        try context.expect(!text.contains(token), "no secret in the text")
      }
    },
  ]

  /// As RFC 9110 §5.6.7 writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
  private static func httpDate(_ time: Timestamp) -> String {
    let form = DateFormatter()
    form.locale = Locale(identifier: "en_US_POSIX")
    form.timeZone = TimeZone(identifier: "GMT")
    form.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return form.string(from: Date(timeIntervalSince1970: Double(time.milliseconds) / 1000))
  }

  /// One call for each capability that is asked for by a call of its own.
  private static func refusals(
    _ adapter: any ChatAdapter
  ) -> [(Capability, @Sendable () async throws -> Void)] {
    let id = ChannelID("c")
    let user = UserID("u")
    let message = Message(
      channel: id, id: "m", sender: user, position: MessagePosition(sequence: 1),
      createdAt: Timestamp(milliseconds: 0), content: .text("x"))
    return [
      (.pushRegister, { try await adapter.registerPush(token: "t") }),
      (.presenceQuery, { _ = try await adapter.presence(of: [user]) }),
      (.presenceSubscribe, { try await adapter.subscribePresence(of: [user]) }),
      (.userBlock, { try await adapter.block(user) }),
      (.channelMetadataKeys, { try await adapter.setMetadata(["k": "v"], of: id) }),
      (.channelDelete, { try await adapter.deleteChannel(id) }),
      (.channelFreeze, { try await adapter.setFrozen(true, id) }),
      (.channelNotificationLevel, { try await adapter.setNotificationLevel(.all, of: id) }),
      (.memberInviteAcceptance, { try await adapter.answerInvitation(to: id, accept: true) }),
      (.memberList, { _ = try await adapter.members(of: id, limit: 1, page: nil) }),
      (.memberRemove, { try await adapter.removeMembers([user], from: id) }),
      (.memberRoles, { try await adapter.setRole(.admin, of: user, in: id) }),
      (.memberMute, { try await adapter.mute(user, in: id, for: nil) }),
      (.memberBan, { try await adapter.ban(user, from: id, for: nil) }),
      (.typing, { try await adapter.setTyping(true, in: id) }),
      (.fileUpload, {
        _ = try await adapter.upload(Attachment(source: .bytes([1])), for: id, progress: nil)
      }),
      (.historyChangelog, { _ = try await adapter.changes(in: id, since: nil) }),
      (.historyClear, { try await adapter.clearHistory(of: id) }),
      (.messageEdit, { _ = try await adapter.edit(message, to: .text("y")) }),
      (.messageRecall, { _ = try await adapter.recall(message) }),
      (.messageReaction, { _ = try await adapter.addReaction("k", to: message) }),
      (.messageThread, { _ = try await adapter.thread(under: message, .newest(1)) }),
      (.searchServer, { _ = try await adapter.search("x", in: nil, limit: 1, page: nil) }),
    ]
  }
}
