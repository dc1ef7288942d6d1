import UnifiedChat

// What is sent: kinds of content, mentions, threads, quotes.

extension ConformanceSuite {
  static let sendContent: [ConformanceCase] = [
    ConformanceCase("SEND-12", "Every content kind survives the trip.", .s1) { context in
      let (alice, bob, channel, users) = try await context.pair()
      var sent: [Message] = []
      for content in contents(of: users.b.id) {
        do { sent.append(try await context.whileTimePasses { try await alice.send(MessageDraft(content), to: channel.id) }) } catch
          let error as ChatError
        {
          guard case .unsupported(let capability) = error.kind else { throw error }
          try context.expect(!(await alice.capabilities.has(capability)), "only what is absent is refused", observed: "\(error)")
        }
      }
      try context.expect(sent.count >= 2, "some kinds", observed: "\(sent.count)")
      let total = sent.count
      try await context.eventually("bob has all") {
        try await bob.history(of: channel.id, .newest(30)).messages.count >= total
      }
      let read = try await context.newest(30, of: channel.id, by: bob).filter { !$0.isNotice }
      for (mine, his) in zip(sent, read) {
        try context.expectEqual(his.content, mine.content, "the \(mine.content.kindName)")
      }
      let fresh = try await context.online(users.b, "fresh")
      let again = try await context.newest(30, of: channel.id, by: fresh).filter { !$0.isNotice }
      try context.expectEqual(again.map(\.content), sent.map(\.content), "every kind on a fresh device")
    },
    ConformanceCase("SEND-13", "An empty text is refused here, white space is not.", .s2) { context in
      let (alice, bob, channel, _) = try await context.pair()
      try await context.expectError("invalidArgument(text)") {
        _ = try await alice.send(.text(""), to: channel.id)
      } where: {
        $0 == .invalidArgument(field: "text")
      }
      let odd = [" ", "\n", "\u{200B}", "  two  ", "e\u{301}", "é", "👨‍👩‍👧‍👦", "\u{202E}rtl", "中文"]
      for text in odd { _ = try await alice.send(.text(text), to: channel.id) }
      // The newest page of a channel that is open comes from the cache, which the pushes fill.
      try await context.eventually("bob has all") {
        try await bob.history(of: channel.id, .newest(odd.count)).messages.count == odd.count
      }
      let read = try await bob.history(of: channel.id, .newest(odd.count)).messages
      for (message, text) in zip(read, odd) {
        guard case .text(let received) = message.content else { throw context.failure("a text", "\(message.content)") }
        try context.expect(
          received.utf8.elementsEqual(text.utf8), "the same bytes for \(Array(text.utf8))",
          observed: "\(Array(received.utf8))")
      }
      try context.expectEqual(read.count, odd.count, "messages read")
    },
    ConformanceCase("SEND-14", "A custom payload is preserved byte for byte.", .s1) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let odd = #"{"a":1, "a":2,  "b" : 1.0,"c":1e2,"d":"\u00e9\/","big":9007199254740993,"long":""#
      let payload = odd + String(repeating: "x", count: 4000 - odd.utf8.count - 2) + #""}"#
      try context.expectEqual(payload.utf8.count, 4000, "bytes")
      let probe = context.probe(bob)
      let sent = try await context.whileTimePasses {
        try await alice.send(MessageDraft(.custom(JSONText(unchecked: payload))), to: channel.id)
      }
      try await context.eventually("bob is told") { probe.received(in: channel.id).count == 1 }
      let fresh = try await context.online(users.b, "fresh")
      let copies: [(String, Message?)] = [
        ("what was sent", sent), ("bob's event", probe.received(in: channel.id).first),
        ("bob's history", try await context.newest(1, of: channel.id, by: bob).last),
        ("a fresh device", try await context.newest(1, of: channel.id, by: fresh).last),
        ("the service", try await context.serverMessages(channel.id).last),
      ]
      for (who, copy) in copies {
        guard case .custom(let received)? = copy?.content else {
          throw context.failure("a custom message at \(who)", "\(String(describing: copy?.content))")
        }
        try context.expectBytes(received.text, payload, "the payload at \(who)")
      }
    },
    ConformanceCase(
      "SEND-15", "A transient message reaches who is online and nobody else.", .s2, needs: [.messageTransient]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(bob)
      _ = try await context.whileTimePasses {
        try await alice.send(MessageDraft(.text("for now"), isTransient: true), to: channel.id)
      }
      try await context.eventually("bob hears it") {
        probe.received(in: channel.id).contains { $0.content == .text("for now") }
      }
      let fresh = try await context.online(users.b, "fresh")
      for reader in [alice, bob, fresh] {
        try context.expectEqual(
          try await context.newest(10, of: channel.id, by: reader).filter { $0.content == .text("for now") }.count, 0,
          "transient messages in history")
      }
      try context.expectEqual(try await context.serverMessages(channel.id).count, 0, "messages at the service")
      let unread = try await bob.cachedChannels(ChannelQuery(includesHidden: true, limit: .max)).first { $0.id == channel.id }
      // Where a device counts for itself, nothing was there to count.
      try context.expectEqual(unread?.unread.number ?? 0, 0, "unread")
    },
    ConformanceCase(
      "SEND-20", "A mention names whom it means.", .s2, needs: [.messageMention]
    ) { context in
      let (chats, users, channel) = try await context.group("alice", "bob", "carol")
      let mentions = [
        Mentions(users: [users[1].id]), Mentions(everyone: true), Mentions(users: [users[1].id, users[2].id]),
      ]
      var sent: [Message] = []
      // The names stand in no text.
      for (number, mention) in mentions.enumerated() {
        var draft = MessageDraft(.text("look \(number)"))
        draft.mentions = mention
        let ready = draft
        sent.append(try await context.whileTimePasses { try await chats[0].send(ready, to: channel.id) })
      }
      for (reader, who) in [(chats[1], "bob"), (chats[2], "carol"), (chats[0], "alice")] {
        try await context.shows(reader, channel.id, sent.map(\.content), who)
        let read = try await context.newest(3, of: channel.id, by: reader)
        for (message, mention) in zip(read, mentions) {
          try context.expectEqual(message.mentions.everyone, mention.everyone, "everyone, for \(who)")
          try context.expectEqual(Set(message.mentions.users), Set(mention.users), "mentioned users, for \(who)")
        }
      }
      // More than a vendor takes is refused, never cut.
      var many: [UserID] = []
      for number in 0..<20 { many.append(try await context.user("u\(number)").id) }
      many.append(users[1].id)
      let crowd = try await chats[0].createChannel(ChannelDraft(kind: .group, members: many, name: "crowd"))
      try await context.sees(chats[1], crowd.id)
      var draft = MessageDraft(.text("all of these"))
      draft.mentions = Mentions(users: many)
      let ready = draft
      do {
        _ = try await context.whileTimePasses { try await chats[0].send(ready, to: crowd.id) }
        try await context.eventually("bob has it") {
          try await chats[1].history(of: crowd.id, .newest(1)).messages.last?.content == .text("all of these")
        }
        let read = try await context.newest(1, of: crowd.id, by: chats[1]).last
        try context.expectEqual(Set(read?.mentions.users ?? []), Set(many), "twenty-one mentioned users")
      } catch let error as ChatError {
        guard case .tooLarge = error.kind else { throw error }
      }
    },
    ConformanceCase(
      "SEND-21", "A reply in a thread stays in its thread.", .s1, needs: [.messageThread], hooks: ["fail"]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let parent = try await context.say(alice, channel.id, ["parent"])[0]
      let parentID = try context.need(parent.id, "an id")
      let probe = context.probe(bob)
      try await context.inject(FaultRule("send", user: users.b.id, action: .fail(.permission())))
      var draft = MessageDraft(.text("reply"))
      draft.threadParent = parentID
      let pending = try await bob.enqueue(draft, to: channel.id)
      try await context.eventually("it failed") { probe.failed(in: channel.id).count == 1 }
      await bob.disconnect()
      let again = try await context.online(users.b)
      let mine = context.probe(again)
      _ = try await again.resend(try context.need(pending.localID, "a local id"))
      try await context.eventually("sent") { mine.sent(in: channel.id).count == 1 }
      for reader in [alice, again] {
        let replies = try await context.whileTimePasses { try await reader.thread(under: parent, .newest(10)) }
        try context.expectEqual(
          replies.messages.filter { $0.id != parentID }.map(\.content), [.text("reply")], "replies under the parent")
        let main = try await context.newest(10, of: channel.id, by: reader)
        try context.expect(!main.contains { $0.content == .text("reply") }, "the reply is not in the main list")
      }
      guard context.has(.messageRecall) else { return }
      _ = try await context.whileTimePasses { try await alice.recall(parent) }
      try await context.eventually("the parent is gone, or its tombstone there") {
        try await again.history(of: channel.id, .newest(10)).messages.allSatisfy { $0.id != parentID || $0.isRecalled }
      }
      let left = try await context.serverMessages(channel.id).filter { !$0.isRecalled }
      try context.expectEqual(left.map(\.content), [.text("reply")], "the reply stays")
      try context.expectEqual(left.first?.threadParent, parentID, "its parent")
    },
    ConformanceCase(
      "SEND-22", "A quote and a merged forward carry their own copy.", .s2, needs: [.messageQuote]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let quoted = try await context.say(alice, channel.id, ["what was said"])[0]
      let ready = try context.reply("about that", to: quoted)
      _ = try await context.whileTimePasses { try await bob.send(ready, to: channel.id) }
      if context.has(.messageEdit) { _ = try await alice.edit(quoted, to: .text("changed")) }
      let fresh = try await context.online(users.a, "fresh")
      for reader in [bob, fresh] {
        let read = try await context.newest(1, of: channel.id, by: reader).last
        try context.expectEqual(read?.content, .text("about that"), "the text")
        try context.expectEqual(read?.replyTo?.id, quoted.id, "the quoted message's id")
        try context.expectEqual(read?.replyTo?.quoted?.content, .text("what was said"), "the quoted text")
      }
      guard context.has(.messageMerge) else { return }
      let copies = (0..<20).map { number in
        QuotedMessage(
          sender: number % 2 == 0 ? users.a.id : users.b.id, senderName: "n\(number % 2)",
          createdAt: Timestamp(milliseconds: 1_700_000_000_000 + Int64(number)), content: .text("line \(number)"))
      }
      let merged = MessageContent.merged(title: "all of it", messages: copies)
      _ = try await context.whileTimePasses { try await alice.send(MessageDraft(merged), to: channel.id) }
      try await context.eventually("the other device has it") {
        if case .text? = try await fresh.history(of: channel.id, .newest(1)).messages.last?.content { false } else { true }
      }
      let read = try await context.newest(1, of: channel.id, by: fresh).last
      guard case .merged(let title, let messages)? = read?.content else {
        throw context.failure("a merged message", "\(read?.content.kindName ?? "none")")
      }
      try context.expectEqual(title, "all of it", "the title")
      try context.expectEqual(messages.map(\.content), copies.map(\.content), "the forwarded messages")
      try context.expectEqual(messages.map(\.sender), copies.map(\.sender), "their senders")
    },
  ]

  /// One of each kind that can be sent without a file.
  private static func contents(of user: UserID) -> [MessageContent] {
    var attachment = Attachment(url: "https://files.example/a.bin", name: "报告 1.pdf", size: 12, mimeType: "application/pdf")
    let file = MessageContent.file(attachment)
    attachment = Attachment(
      url: "https://files.example/a.png", name: "a.png", size: 120, mimeType: "image/png", width: 64, height: 48)
    let image = MessageContent.image(attachment)
    attachment = Attachment(
      url: "https://files.example/a.m4a", name: "a.m4a", size: 99, mimeType: "audio/mp4", durationMilliseconds: 3000)
    let audio = MessageContent.audio(attachment)
    attachment = Attachment(
      url: "https://files.example/a.mp4", name: "a.mp4", size: 1999, mimeType: "video/mp4", durationMilliseconds: 8000)
    return [
      .text("plain"), .custom(JSONText(unchecked: #"{"kind":"poll","n":1}"#)), .markdown("# head\n*text*"), file, image,
      audio, .video(attachment), .location(Location(latitude: 48.1371, longitude: 11.5754, name: "Marienplatz")),
      .card(user, name: "Bob", avatarURL: "https://files.example/b.png"),
      .sticker(JSONText(unchecked: #"{"index":3,"pack":"cats"}"#)),
    ]
  }
}
