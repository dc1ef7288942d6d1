import ChatClient
import ChatJSON
import UnifiedChat

// Limits, text and clocks.
extension ConformanceSuite {
  static let limit: [ConformanceCase] = [
    ConformanceCase("LIMIT-01", "Text at the limit, one below, one above, in the vendor's unit.", .s1) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let characters = context.harness.limits["text.characters"]
      guard let limit = characters ?? context.harness.limits["frame.bytes"] else {
        throw CaseSkip(reason: .rule("no limit of texts is known"))
      }
      let unit: ChatError.LimitUnit = characters == nil ? .bytes : .characters
      // What is tried is large: nobody keeps it but who reads it in the end.
      for chat in [alice, bob] { await chat.disconnect() }
      let writer = try await context.bareWriter(users.a, in: channel.id)
      for character in ["a", "字", "🙂"] as [Character] {
        // Where a frame is limited, what is around the text belongs to the vendor: the longest is looked for.
        let full = characters == nil ? try await writer.longestText(of: character, limit) : Int(limit)
        let least = characters == nil ? Int(limit) / (2 * String(character).utf8.count) : Int(limit)
        try context.expect(full >= least, "at least \(least) \(character)", observed: "\(full)")
        // What is counted in a frame grows by a digit now and then, so that a little room is left there.
        let slack = characters == nil ? 2 : 0
        let texts = [full - slack - 1, full - slack].map { String(repeating: character, count: $0) }
        for text in texts { _ = try await writer.send(text) }
        let reader = try await context.online(users.b, "reader-\(String(character).utf8.count)")
        try await context.eventually("the same texts of about \(full) \(character)") {
          try await context.newest(2, of: channel.id, by: reader).map(\.content) == texts.map { .text($0) }
        }
        await reader.disconnect()
        try await context.idle()
        let mark = await context.mark()
        let error = try await context.expectErrorInTime("tooLarge(\(limit), \(unit))") {
          _ = try await writer.send(String(repeating: character, count: full + 1))
        } where: {
          $0 == .tooLarge(limit: limit, unit: unit)
        }
        try context.expect(!error.isRetryable, "a final refusal")
        if context.offers("journal") {
          try context.expectEqual(try await context.requests("send", since: mark).count, 0, "frames of the refused text")
        }
      }
      try context.expectEqual(await writer.adapter.state, .connected, "the connection")
      await writer.adapter.disconnect()
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
      let characters = context.harness.limits["text.characters"]
      guard characters != nil || context.harness.limits["frame.bytes"] != nil else {
        throw CaseSkip(reason: .rule("no limit of texts is known"))
      }
      let (alice, bob, channel, users) = try await context.pair()
      guard let limit = characters else {
        for chat in [alice, bob] { await chat.disconnect() }
        let writer = try await context.bareWriter(users.a, in: channel.id)
        // Bytes: so many emoji of four bytes fit as a quarter of the letters of one.
        let letters = try await writer.longestText(of: "a", context.harness.limits["frame.bytes"] ?? 0)
        let emoji = try await writer.longestText(of: "👍", context.harness.limits["frame.bytes"] ?? 0)
        await writer.adapter.disconnect()
        return try context.expect(abs(letters - 4 * emoji) < 16, "four bytes each", observed: "\(letters) and \(emoji)")
      }
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
  /// An adapter without a client, which sends texts under ids of one length.
  func bareWriter(_ user: TestUser, in channel: ChannelID) async throws -> BareWriter {
    let adapter = try await harness.makeAdapter(TestDevice(name: "\(id.lowercased())-bare", clock: harness.clock))
    _ = try await adapter.connect(as: user.id, credential: user.credential)
    return BareWriter(adapter: adapter, channel: channel, context: self)
  }

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

struct BareWriter: Sendable {
  let adapter: any ChatAdapter
  let channel: ChannelID
  let context: CaseContext
  private let count = Counter()

  init(adapter: any ChatAdapter, channel: ChannelID, context: CaseContext) {
    self.adapter = adapter
    self.channel = channel
    self.context = context
  }

  func send(_ text: String) async throws -> Message {
    count.add()
    // Four digits, so that every frame has the same around its text.
    let id = "\(context.id.lowercased())-\(1000 + count.value)"
    let message = OutgoingMessage(
      channel: channel, localID: LocalID(id), clientMessageID: ClientMessageID(id), draft: .text(text))
    return try await context.whileTimePasses { try await adapter.send(message) }
  }

  /// How often a character may stand in a text whose frame is limited. What is tried and taken is sent.
  func longestText(of character: Character, _ limit: Int64) async throws -> Int {
    let size = String(character).utf8.count
    func fits(_ count: Int) async throws -> Bool {
      do { _ = try await send(String(repeating: character, count: count)) } catch let error as ChatError {
        guard case .tooLarge = error.kind else { throw error }
        return false
      }
      return true
    }
    // What is around a text is most often little.
    var (low, high) = (max(1, (Int(limit) - 1024) / size), Int(limit) / size + 1)
    if try await !fits(low) { (low, high) = (1, low) }
    while high - low > 1 {
      let middle = (low + high) / 2
      if try await fits(middle) { low = middle } else { high = middle }
    }
    return low
  }
}
