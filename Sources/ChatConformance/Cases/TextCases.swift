import ChatClient
import ChatJSON
import UnifiedChat

// Limits, text and clocks.
extension ConformanceSuite {
  static let limit: [ConformanceCase] = [
    ConformanceCase("LIMIT-01", "Text at the limit, one below, one above, in the vendor's unit.", .s1) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let characters = context.harness.limits["text.characters"]
      guard let limit = characters ?? context.harness.limits["text.bytes"] else {
        throw CaseSkip(reason: .rule("no limit of texts is known"))
      }
      let unit: ChatError.LimitUnit = characters == nil ? .bytes : .characters
      let size = { (character: Character) in characters == nil ? String(character).utf8.count : 1 }
      for character in ["a", "字", "🙂"] as [Character] {
        let full = Int(limit) / size(character)
        let text = String(repeating: character, count: full)
        let sent = try await context.whileTimePasses { try await alice.send(.text(text), to: channel.id) }
        let sentID = sent.id
        try await context.eventually("bob has it") {
          try await bob.history(of: channel.id, .newest(1)).messages.last?.id == sentID
        }
        let read = try await context.newest(1, of: channel.id, by: bob).last
        try context.expect(read?.content == .text(text), "the same text of \(full) \(character)")
        let above = text + String(character)
        let mark = await context.mark()
        let error = try await context.expectErrorInTime("tooLarge") {
          _ = try await alice.send(.text(above), to: channel.id)
        } where: {
          if case .tooLarge(_, unit) = $0 { true } else { false }
        }
        try context.expect(!error.isRetryable, "a final refusal")
        if context.offers("journal") {
          try context.expectEqual(try await context.requests("send", since: mark).count, 0, "frames of the refused text")
        }
      }
      try context.expectEqual(await alice.state, .connected, "the connection")
    },
    ConformanceCase("LIMIT-02", "Ids at the limit.", .s2) { context in
      guard let limit = context.harness.limits["user.bytes"] else { throw CaseSkip(reason: .rule("no limit of ids is known")) }
      let longest = "limit02" + String(repeating: "x", count: Int(limit) - 7)
      let user = try await context.user(exactly: longest)
      let chat = try await context.device(user)
      let own = try await context.whileTimePasses { try await chat.connect(as: user.id, credential: user.credential) }
      try context.expectBytes(own.id.rawValue, longest, "the own id")
      let other = try await context.device(user, "above")
      try await context.expectErrorInTime("invalidArgument above the limit") {
        _ = try await other.connect(as: UserID(longest + "x"), credential: user.credential)
      } where: {
        if case .invalidArgument = $0 { true } else { false }
      }
    },
    ConformanceCase(
      "LIMIT-04", "A page size above the vendor's is cut up, not sent.", .s2, hooks: ["journal"], tags: [.wire]
    ) { context in
      let page = Int(context.harness.limits["page.history"] ?? 100)
      let count = page + 10
      let (channel, reader, sent) = try await filled(context, count, keepingTime: true)
      let mark = await context.mark()
      let read = try await context.whileTimePasses { try await reader.history(of: channel, .newest(page + 50)) }
      try context.expectEqual(read.messages.map(\.id), sent, "one list")
      let asked = try await context.requests("history", since: mark).count
      try context.expect(asked >= 2 && asked <= count / page + 3, "a few requests", observed: "\(asked)")
    },
    ConformanceCase("LIMIT-05", "Sending faster than allowed is paced.", .s2, hooks: ["virtualTime"]) { context in
      let (alice, _, channel, _) = try await context.pair()
      let probe = context.probe(alice)
      for number in 0..<80 { _ = try await alice.enqueue(.text("\(number)"), to: channel.id) }
      try await context.eventually("all are sent", within: .seconds(900), step: .seconds(1)) {
        probe.sent(in: channel.id).count == 80
      }
      try context.expectEqual(probe.failed(in: channel.id).count, 0, "failures that reach the app")
      try context.expectEqual(
        try await context.serverMessages(channel.id).map(\.content), (0..<80).map { .text("\($0)") }, "the order")
    },
    ConformanceCase("LIMIT-10", "Empty and huge lists of ids in one call.", .s3) { context in
      let a = try await context.user("alice")
      let alice = try await context.online(a)
      try await context.idle()
      let mark = await context.mark()
      try context.expectEqual(try await alice.users([]).count, 0, "users of an empty list")
      if context.offers("journal") {
        try context.expectEqual(await context.framesOfClients(since: mark), 0, "requests for an empty list")
      }
      var ids: [UserID] = [a.id]
      for number in 0..<5 { ids.append(try await context.user("u\(number)").id) }
      let many = (0..<300).map { ids[$0 % ids.count] }
      let found = try await context.whileTimePasses { try await alice.users(many).map(\.id) }
      try context.expectEqual(Set(found), Set(ids), "users found")
      if context.has(.presenceQuery) {
        let strangers = (0..<200).map { UserID("limit-10-\($0)") }
        let asked = ids + strangers
        let presence = try await context.whileTimePasses { try await alice.presence(of: asked) }
        try context.expectEqual(presence[a.id], .online, "the own presence")
      }
    },
  ]

  static let text: [ConformanceCase] = [
    ConformanceCase("UNICODE-01", "Emoji of four bytes, families, flags, skin tones.", .s1) { context in
      try await context.travels(["🙂", "👨‍👩‍👧‍👦", "🇩🇪🇨🇳", "👍🏽👍🏿", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "1️⃣", "a🙂b"])
      guard context.has(.channelCustomData) else { return }
      let (alice, _, channel, _) = try await context.pair()
      let name = "频道 👨‍👩‍👧‍👦 🇩🇪"
      let renamed = try await alice.updateChannel(channel.id, ChannelChanges(name: name))
      try context.expectBytes(renamed.name, name, "the channel's name")
      try context.expectBytes(try await context.channel(channel.id, by: alice).name, name, "the channel's name, read back")
    },
    ConformanceCase("UNICODE-02", "Right-to-left text, bidi controls and isolates.", .s2) { context in
      try await context.travels([
        "مرحبا 123 abc", "שלום עולם", "\u{202E}gnp.exe\u{202C}", "\u{2066}isolated\u{2069} and \u{2067}more\u{2069}",
        "\u{200F}mark\u{200E}",
      ])
    },
    ConformanceCase("UNICODE-03", "NUL in a text.", .s1) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let text = "before\u{0}after"
      do {
        let sent = try await context.whileTimePasses { try await alice.send(.text(text), to: channel.id) }
        try await context.eventually("bob has it") {
          try await bob.history(of: channel.id, .newest(1)).messages.last?.id == sent.id
        }
        let read = try await context.newest(1, of: channel.id, by: bob).last
        try context.expectBytes(read?.content.searchableText, text, "the text")
      } catch let error as ChatError {
        // Refused whole is legal; cut is not.
        guard case .invalidArgument = error.kind else { throw error }
        try context.expectEqual(try await context.serverMessages(channel.id).count, 0, "messages at the service")
      }
    },
    ConformanceCase("UNICODE-05", "Combining characters are not normalised.", .s1) { context in
      let marks = String(String.UnicodeScalarView((0..<60).map { _ in "\u{301}" as Unicode.Scalar }))
      try await context.travels(["e\u{301}", "é", "a" + marks, "\u{1100}\u{1161}\u{11A8}", "각", "Å", "A\u{30A}", "ﬁ"])
    },
    ConformanceCase("UNICODE-07", "Separators, BOM and noncharacters.", .s2) { context in
      try await context.travels([
        "a\u{2028}b", "a\u{2029}b", "\u{FEFF}bom", "x\u{FFFE}y", "x\u{FFFF}y", "x\u{10FFFF}y", "a\rb", "a\nb", "a\r\nb",
        "tab\tend", "\u{85}next",
      ])
    },
    ConformanceCase("UNICODE-08", "Ids with percent, slash, plus, space, question mark, emoji.", .s1) { context in
      var people: [TestUser] = []
      for id in ["u08%20x", "u08/y", "u08+z", "u08?q=1&r", "u08#h", "u08 space", "u08🙂"] {
        do { people.append(try await context.user(exactly: id)) } catch let error as ChatError {
          guard case .invalidArgument = error.kind else { throw error }
        }
      }
      people = people.filter { $0.id.rawValue.hasPrefix("u08") }
      guard people.count >= 2 else { throw CaseSkip(reason: .rule("such ids are mapped, not kept")) }
      var chats: [Chat] = []
      for person in people {
        let chat = try await context.device(person)
        do {
          let own = try await context.whileTimePasses { try await chat.connect(as: person.id, credential: person.credential) }
          try context.expectBytes(own.id.rawValue, person.id.rawValue, "the own id")
          chats.append(chat)
        } catch let error as ChatError {
          guard case .invalidArgument = error.kind else { throw error }
        }
      }
      guard chats.count >= 2 else { throw CaseSkip(reason: .rule("such ids are refused")) }
      let owners = try chats.map { try context.details(of: $0).user.id }
      let channel = try await chats[0].createChannel(
        ChannelDraft(kind: .group, members: Array(owners.dropFirst()), name: "odd ids"))
      for (chat, id) in zip(chats, owners) {
        try await context.sees(chat, channel.id)
        let sent = try await context.say(chat, channel.id, ["of \(id)"])[0]
        try context.expectBytes(sent.sender?.rawValue, id.rawValue, "the sender")
      }
      try await context.shows(chats[1], channel.id, owners.map { .text("of \($0)") })
      let read = try await context.newest(20, of: channel.id, by: chats[1])
      try context.expectEqual(read.map(\.sender), owners, "the senders")
    },
    ConformanceCase("UNICODE-10", "Lengths are counted as the vendor counts.", .s2) { context in
      guard let limit = context.harness.limits["text.characters"] ?? context.harness.limits["text.bytes"] else {
        throw CaseSkip(reason: .rule("no limit of texts is known"))
      }
      let (alice, bob, channel, _) = try await context.pair()
      let text = String(repeating: "👍", count: Int(limit) / 4)
      let sent = try await context.whileTimePasses { try await alice.send(.text(text), to: channel.id) }
      try await context.eventually("bob has it") {
        try await bob.history(of: channel.id, .newest(1)).messages.last?.id == sent.id
      }
      let read = try await context.newest(1, of: channel.id, by: bob).last
      try context.expect(read?.content == .text(text), "the same text")
    },
  ]

  static let time: [ConformanceCase] = [
    ConformanceCase(
      "TIME-01", "A server clock hours away changes nothing but labels.", .s1, hooks: ["clock.server"]
    ) { context in
      try await context.perform(.skew(.seconds(5 * 3600)))
      let (alice, bob, channel, _) = try await context.pair()
      let sent = try await context.say(alice, channel.id, 5)
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      if context.has(.unreadChannel) { try await context.unreadBecomes(5, of: channel.id, on: bob) }
      await bob.suspend()
      let more = try await context.say(alice, channel.id, ["5", "6"])
      await bob.resume()
      try await context.shows(bob, channel.id, (sent + more).map(\.content), "bob after being away")
      let offset = sent[0].createdAt - context.harness.clock.now
      try context.expect(abs(offset.wholeMilliseconds - 5 * 3_600_000) < 60_000, "the server's time", observed: "\(offset)")
      if context.has(.unreadChannel) {
        try await bob.markRead(channel.id, upTo: nil)
        try await context.unreadBecomes(0, of: channel.id, on: bob)
      }
    },
    ConformanceCase("TIME-02", "The client clock jumps during a session.", .s2) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let probe = context.probe(alice)
      for offset in [-86_400, 86_400, 0] {
        try context.clock(of: alice).setOffset(.seconds(offset))
        try await context.pass(.seconds(5))
        try await context.say(alice, channel.id, ["\(offset)"])
      }
      try await context.shows(bob, channel.id, [.text("-86400"), .text("86400"), .text("0")], "bob")
      try await context.quiet()
      try context.expectEqual(probe.connectionStates, [], "changes of state")
    },
    ConformanceCase(
      "TIME-05", "A token's expiry is judged by the server.", .s2, needs: [.authToken]
    ) { context in
      let user = try await context.user("alice")
      let chat = try await context.device(user)
      try context.clock(of: chat).setOffset(.seconds(366 * 86_400))
      _ = try await context.whileTimePasses { try await chat.connect(as: user.id, credential: user.credential) }
      try context.expectEqual(await chat.state, .connected, "the state with a clock a year ahead")
    },
    ConformanceCase(
      "TIME-06", "Time without message id is never a cursor.", .s1, hooks: ["journal", "patch"], tags: [.wire]
    ) { context in
      // All messages have one time: a cursor of times alone would lose or repeat some.
      let (channel, reader, sent) = try await filled(context, 23, keepingTime: true)
      let mark = await context.mark()
      for page in [1, 2, 5] {
        let read = try await context.wholeHistory(of: channel, by: reader, page: page)
        try context.expectEqual(read.map(\.id), sent, "pages of \(page)")
      }
      let fresh = try await context.online(try context.details(of: reader).user, "other")
      let read = try await context.wholeHistory(of: channel, by: fresh, page: 2)
      try context.expectEqual(read.map(\.id), sent, "another device, pages of 2")
      // Where a request is a frame that can be read: whichever names a time names a message too.
      guard let time = context.harness.paths["history.time"], let id = context.harness.paths["history.id"] else { return }
      var named = 0
      for entry in try await context.requests("history", since: mark) {
        guard let frame = try? JSONValue(parsing: entry.bytes), frame[pointer: time]?.int != nil else { continue }
        named += 1
        try context.expect(frame[pointer: id]?.string != nil, "an id beside the time", observed: frame.text())
      }
      try context.expect(named > 0, "requests that name a time")
    },
  ]
}

extension CaseContext {
  /// Each text arrives byte for byte: pushed, cached, read by a fresh device and at the service.
  func travels(_ texts: [String]) async throws {
    let (alice, bob, channel, users) = try await pair()
    try await say(alice, channel.id, texts)
    try await eventually("bob has all") {
      try await bob.history(of: channel.id, .newest(texts.count)).messages.count == texts.count
    }
    let fresh = try await online(users.b, "fresh")
    let readings = [
      ("sent", try await newest(texts.count, of: channel.id, by: alice)),
      ("received", try await newest(texts.count, of: channel.id, by: bob)),
      ("read by a fresh device", try await newest(texts.count, of: channel.id, by: fresh)),
      ("at the service", try await serverMessages(channel.id)),
    ]
    for (what, messages) in readings {
      try expectEqual(messages.count, texts.count, "messages \(what)")
      for (message, text) in zip(messages, texts) {
        guard case .text(let found) = message.content else { throw failure("a text \(what)", "\(message.content)") }
        try expectBytes(found, text, "the text \(what)")
      }
    }
  }
}
