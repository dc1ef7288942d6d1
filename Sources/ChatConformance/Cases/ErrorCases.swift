import ChatClient
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
    ConformanceCase("ERR-07", "What is never answered has a time limit and obeys it.", .s1, hooks: ["drop"]) { context in
      let (alice, _, channel, users) = try await context.pair()
      let stored = try await context.say(alice, channel.id, ["there"])[0]
      for (operation, call) in Self.calls(channel.id, stored, other: users.b.id) {
        // What a target cannot lie about is left to the others.
        let rule = FaultRule(operation, user: users.a.id, times: nil, action: .drop)
        do { try await context.harness.faults?.inject(rule) } catch is NoHook { continue }
        _ = await context.harness.faults?.removeRules()
        let name = "err-07-\(operation)"
        let adapter = try await context.harness.makeAdapter(TestDevice(name: name, clock: context.harness.clock))
        _ = try await context.whileTimePasses { try await adapter.connect(as: users.a.id, credential: users.a.credential) }
        try await context.inject(rule)
        let started = context.harness.clock.now
        var failure: ChatError?
        do { try await context.whileTimePasses(within: .seconds(600)) { try await call(adapter) } } catch let error as ChatError {
          failure = error
        }
        let waited = context.harness.clock.now - started
        let silent = await context.harness.faults?.removeRules() ?? []
        await adapter.disconnect()
        try context.expect(waited <= .seconds(120), "an end of \(operation) within two minutes", observed: "\(waited)")
        if case .unsupported? = failure?.kind { continue }
        // A call that asks by another name, or without naming its user, was answered.
        if failure == nil, !silent.isEmpty, operation != "send" { continue }
        let error = try context.need(failure, "an error of \(operation)")
        try context.expect(
          error.kind == .timeout || error.kind == .network(.closed), "timeout of \(operation)", observed: "\(error)")
        try context.expect(error.isRetryable, "it may be tried again", observed: "\(error.retry)")
      }
      try context.expectEqual(try await context.serverMessages(channel.id).map(\.id), [stored.id], "messages at the service")
      try context.expectEqual(await alice.state, .connected, "the other device")
      // Over sockets a request that a rule has swallowed stays open at the emulator when its client has given it up.
      context.exempt("G4")
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
      let mark = await context.mark()
      for (capability, call) in refusals(adapter) where !declared.has(capability) {
        try await context.expectError("unsupported(\(capability.rawValue))", call) { $0 == .unsupported(capability) }
      }
      // The client says the same of what it does not make itself, before its outbox takes it.
      let chat = try await context.device(user)
      try await chat.open(for: user.id)
      for (capability, call) in refusals(of: chat) where !context.has(capability) {
        try await context.expectError("unsupported(\(capability.rawValue)) of the client", call) { $0 == .unsupported(capability) }
      }
      try context.expectEqual(try await chat.unsentCount(), 0, "messages that wait")
      if context.offers("journal") { try context.expectEqual(try await context.requests(since: mark).count, 0, "frames") }
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

  /// Calls by the neutral name of what they ask.
  private static func calls(
    _ channel: ChannelID, _ stored: Message, other: UserID
  ) -> [(String, @Sendable (any ChatAdapter) async throws -> Void)] {
    let message = OutgoingMessage(channel: channel, localID: "err-07", clientMessageID: "err-07", draft: .text("lost"))
    return [
      ("send", { _ = try await $0.send(message) }),
      ("history", { _ = try await $0.history(of: channel, .newest(5)) }),
      ("channelCreate", { _ = try await $0.createChannel(ChannelDraft(kind: .group, members: [other], name: "never")) }),
      ("channelQuery", { _ = try await $0.channels(ChannelQuery(limit: 5), page: nil) }),
      ("member", { _ = try await $0.members(of: channel, limit: 5, page: nil) }),
      ("edit", { _ = try await $0.edit(stored, to: MessageDraft(.text("changed"))) }),
      ("recall", { _ = try await $0.recall(stored) }),
    ]
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

  /// What is asked for by a part of a message, a channel or a query.
  private static func refusals(of chat: Chat) -> [(Capability, @Sendable () async throws -> Void)] {
    let id = ChannelID("c")
    let quoted = Message(
      channel: id, id: "m", sender: "u", position: MessagePosition(sequence: 1), createdAt: Timestamp(milliseconds: 0),
      content: .text("x"))
    @Sendable func send(_ change: (inout MessageDraft) -> Void) async throws {
      var draft = MessageDraft(.text("x"))
      change(&draft)
      _ = try await chat.enqueue(draft, to: id)
    }
    return [
      (.messageTransient, { try await send { $0.isTransient = true } }),
      (.messageMention, { try await send { $0.mentions = Mentions(users: ["u"]) } }),
      (.messageThread, { try await send { $0.threadParent = "m" } }),
      (.messageQuote, { try await send { $0.replyTo = Reply(id: "m", quoted: nil) } }),
      (.channelOpen, { _ = try await chat.createChannel(ChannelDraft(kind: .open, name: "n")) }),
      (.channelTemporary, { _ = try await chat.createChannel(ChannelDraft(kind: .temporary, members: ["u"])) }),
      (.channelDelete, { try await chat.deleteChannel(id) }),
      (.channelMetadataKeys, { try await chat.setMetadata(["k": "v"], of: id) }),
      (.channelCustomData, {
        var changes = ChannelChanges()
        changes.customData = JSONText(unchecked: "{}")
        _ = try await chat.updateChannel(id, changes)
      }),
      (.channelFreeze, { try await chat.setFrozen(true, id) }),
      (.channelNotificationLevel, { try await chat.setNotificationLevel(.all, of: id) }),
      (.fileByURL, {
        try await send { $0.content = .file(Attachment(url: "https://files.test/f", name: "f", mimeType: "a/b")) }
      }),
      (.fileUpload, {
        try await send { $0.content = .file(Attachment(name: "f", mimeType: "a/b", source: .bytes([1]))) }
      }),
      (.messageMerge, {
        let copy = QuotedMessage(
          id: quoted.id, sender: quoted.sender, senderName: nil, createdAt: quoted.createdAt, content: quoted.content)
        try await send { $0.content = .merged(title: "t", messages: [copy]) }
      }),
      (.memberMute, { try await chat.mute("u", in: id, for: nil) }),
      (.memberBan, { try await chat.ban("u", from: id, for: nil) }),
      (.memberRoles, { try await chat.setRole(.admin, of: "u", in: id) }),
      (.memberRemove, { try await chat.removeMembers(["u"], from: id) }),
      (.memberInviteAcceptance, { try await chat.answerInvitation(to: id, accept: true) }),
      (.pushRegister, { try await chat.registerPush(token: "t") }),
      (.presenceQuery, { _ = try await chat.presence(of: ["u"]) }),
      (.presenceSubscribe, { try await chat.subscribePresence(of: ["u"]) }),
      (.userBlock, { try await chat.block("u") }),
      (.unreadTotal, { _ = try await chat.totalUnread() }),
      (.messageEdit, { _ = try await chat.edit(quoted, to: MessageDraft(.text("y"))) }),
      (.messageRecall, { _ = try await chat.recall(quoted) }),
      (.messageReaction, { _ = try await chat.addReaction("k", to: quoted) }),
      (.historyChangelog, { _ = try await chat.changes(in: id, since: nil) }),
      (.historyClear, { try await chat.clearHistory(of: id) }),
      (.typing, { try await chat.setTyping(true, in: id) }),
    ]
  }
}
