import ChatCache
import ChatClient
import ChatCrypto
import ChatJSON
import ChatMigration
import UnifiedChat

// Odd frames on their way to a client.
extension ConformanceSuite {
  static let frames: [ConformanceCase] = [
    ConformanceCase(
      "RECV-06", "A message type from a newer client is shown as a placeholder and kept byte for byte.", .s1,
      hooks: ["patch"], tags: [.wire]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      // The service holds the text that is not shown.
      context.exempt("G3")
      let told: Message
      var device = "phone"
      if let changes = context.harness.odd["history.unknownType"] {
        // A vendor whose pushes have no type has one in its pages.
        // The last one stands in the list of channels too, as it is.
        try await context.say(alice, channel.id, ["to be changed", "last"])
        let places = try context.places(changes, in: channel.id)
        try await context.inject(
          FaultRule("history", user: users.b.id, times: nil, phase: .beforeReply, action: .patch(places), mustFire: false))
        device = "fresh"
        let fresh = try await context.online(users.b, device)
        told = try context.need(try await context.newest(2, of: channel.id, by: fresh).first, "the message in a page")
        await fresh.disconnect()
      } else {
        let probe = context.probe(bob)
        let sent = try await context.sayOdd("unknownType", by: alice, to: users.b, in: channel.id).odd
        try await context.eventually("it is told") { probe.received(in: channel.id).contains { $0.id == sent.id } }
        told = try context.need(probe.received(in: channel.id).first { $0.id == sent.id }, "the message")
        await bob.disconnect()
      }
      guard case .unknown(let kind, let raw) = told.content else {
        throw context.failure("an unknown content", "\(told.content)")
      }
      try context.expect(!kind.isEmpty, "the name of its type")
      // Numbers are as they came; so is white space, where the body is a document of its own.
      let forms = ["\"zz\" : [1.0, 1e2, 9007199254740993]", "\"zz\":[1.0,1e2,9007199254740993]"]
      try context.expect(forms.contains { raw.text.contains($0) }, "the same bytes", observed: raw.text)
      let again = try await context.device(users.b, device)
      try await again.open(for: users.b.id)
      let cached = try await again.history(of: channel.id, .newest(5)).messages.first { $0.id == told.id }
      try context.expectEqual(cached?.content, told.content, "after a restart")
      // And in an archive, as a source would give it.
      let service = IdealService(clock: context.harness.clock)
      let kept = try await context.archived(told, service)
      try context.expectEqual(kept?.content, told.content, "in an archive")
    },
    ConformanceCase(
      "RECV-08", "Numbers above 2^53 are exact.", .s1, hooks: ["patch"], tags: [.wire]
    ) { context in
      let (alice, bob, _, users) = try await context.pair()
      context.exempt("G3")
      context.exempt("G2")
      let probe = context.probe(bob, readsCache: false)
      let device = try context.details(of: bob)
      let cache = try LocalCache(device.identity, at: .directory(device.folder))
      defer { cache.close() }
      let numbers = [9_007_199_254_740_993, 4_611_686_018_427_387_905, Int64.max, Int64.min] as [Int64]
      for place in ["time", "number"] where context.harness.paths[place] != nil {
        for number in numbers where place == "time" || number > 0 {
          // A channel of its own: what is newest in it is nobody else's business.
          let channel = try await alice.createChannel(
            ChannelDraft(kind: .group, members: [users.b.id], name: "\(place) \(number)"))
          try await context.sees(bob, channel.id)
          try await context.changePush(to: users.b.id, in: channel.id, [place: .int(number)])
          let text = try await context.say(alice, channel.id, ["\(place) \(number)"])[0].content
          try await context.eventually("it is told: \(place) \(number)") {
            probe.received(in: channel.id).contains { $0.content == text }
          }
          let told = try context.need(probe.received(in: channel.id).first { $0.content == text }, "the message")
          func exact(_ message: Message?, _ where_: String) throws {
            if place == "time" { return try context.expectEqual(message?.createdAt.milliseconds, number, "the time \(where_)") }
            let numbers = [message?.position?.major, message?.position?.minor, message?.id.flatMap { Int64($0.rawValue) }]
            try context.expect(numbers.contains(number), "\(number) \(where_)", observed: "\(numbers)")
          }
          try exact(told, "as told")
          let id = try context.need(told.id, "an id")
          try exact(
            try cache.read { session throws(ChatError) in try session.message(id, in: channel.id) }, "in the cache")
          try exact(try await context.archived(told, IdealService(clock: context.harness.clock)), "in an archive")
          try await context.removeRules()
        }
        // No Int64 holds it: whatever becomes of that message, the next one arrives.
        let last = try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: "\(place) beyond"))
        try await context.sees(bob, last.id)
        try await context.changePush(to: users.b.id, in: last.id, [place: try JSONValue(parsing: "18446744073709551615")])
        try await context.say(alice, last.id, ["beyond"])
        try await context.stillHears(bob, alice, last.id)
        try await context.removeRules()
      }
    },
    ConformanceCase("UNICODE-04", "A lone surrogate escape.", .s1, hooks: ["patch", "raw", "journal"], tags: [.wire]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      context.exempt("G3")
      let probe = context.probe(bob)
      let (sent, next) = try await context.sayOdd("loneSurrogate", by: alice, to: users.b, in: channel.id)
      try await context.eventually("both are told") {
        Set([sent.id, next.id]).isSubset(of: Set(probe.received(in: channel.id).map(\.id)))
      }
      let odd = probe.received(in: channel.id).first { $0.id == sent.id }
      // Shown with a replacement character, or kept as it came.
      let shown: String? =
        switch odd?.content {
        case .text(let text)?: text
        case .unknown(_, let raw)?, .custom(let raw)?: raw.text
        default: nil
        }
      try context.expect(
        shown?.contains("\u{FFFD} half") == true || shown?.contains(#"\ud83d half"#) == true, "the half of a pair, kept",
        observed: "\(odd?.content as Any)")
      try context.expectEqual(await bob.state, .connected, "the connection")
    },
    ConformanceCase("UNICODE-09", "Escapes in keys.", .s2, hooks: ["patch", "raw", "journal"], tags: [.wire]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      context.exempt("G3")
      let probe = context.probe(bob)
      let sent = try await context.sayOdd("escapedKeys", by: alice, to: users.b, in: channel.id).odd
      try await context.eventually("it is told") { probe.received(in: channel.id).contains { $0.id == sent.id } }
      try context.expectEqual(
        probe.received(in: channel.id).first { $0.id == sent.id }?.content, .text("escaped"), "the text")
    },
    ConformanceCase("UNICODE-06", "Ill-formed UTF-8 in a frame.", .s1, hooks: ["corrupt"], tags: [.wire]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      context.exempt("G3")
      // The last bytes of the header, and several places of the payload.
      for offset in [12, 20, 33, 47] {
        try await context.inject(
          FaultRule("push", user: users.b.id, phase: .beforePush, action: .corrupt(offset: offset)))
        try await context.say(alice, channel.id, ["spoilt at \(offset) 字字字字字字"])
        try await context.stillHears(bob, alice, channel.id)
      }
    },
    ConformanceCase("LIMIT-08", "Deep and wide JSON is bounded.", .s1, hooks: ["raw"], tags: [.wire]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      context.exempt("G3")
      let wide = "{" + (0..<100_000).map { "\"k\($0)\":\($0)" }.joined(separator: ",") + "}"
      let prefix = context.harness.paths["push.prefix"] ?? ""
      let frames = [
        String(repeating: "[", count: 100_000), "{\"a\":" + String(repeating: "{\"a\":", count: 50_000),
        prefix + String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000), wide, prefix + wide,
        "\"" + String(repeating: "x", count: 2_000_000) + "\"",
      ]
      for frame in frames {
        // As a text, and as each kind of binary message that vendors use.
        let bytes = Array(frame.utf8)
        for action in [.raw(frame), .rawBytes(bytes), .rawBytes(try Gzip.compress(bytes))] as [FaultRule.Action] {
          try await context.inject(FaultRule("push", user: users.b.id, phase: .beforePush, action: action))
          try await context.say(alice, channel.id, ["behind \(bytes.count) bytes"])
          try await context.stillHears(bob, alice, channel.id)
        }
      }
    },
    ConformanceCase(
      "SEC-05", "Compressed bombs are bounded.", .s1, hooks: ["raw", "http", "journal"], tags: [.wire]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      context.exempt("G3")
      // More than anybody takes, from a thousandth of it.
      let bomb = try Gzip.compress([UInt8](repeating: 0x20, count: 300 << 20), level: 9)
      try context.expect(bomb.count * 500 < 300 << 20, "a bomb", observed: "\(bomb.count) bytes")
      try await context.inject(FaultRule("push", user: users.b.id, phase: .beforePush, action: .rawBytes(bomb)))
      try await context.say(alice, channel.id, ["behind the bomb"])
      try await context.stillHears(bob, alice, channel.id)
      let calls: [(String, @Sendable () async throws -> Void)] = [
        ("a page", { _ = try await bob.history(of: channel.id, HistoryQuery(anchor: .oldest, direction: .newer, limit: 3)) }),
        ("a channel", { _ = try await bob.channel(channel.id) }),
        ("people", { _ = try await bob.users([users.a.id, "sec-05-nobody"]) }),
      ]
      for operation in ["history", "channelQuery", "member", "other", "changelog"] {
        try await context.inject(
          FaultRule(
            operation, times: nil, action: .http(status: 200, headers: ["Content-Encoding": "gzip"], body: bomb),
            mustFire: false))
      }
      for (what, call) in calls {
        try await context.quiet()
        let mark = await context.mark()
        do {
          try await context.whileTimePasses(within: .seconds(300), step: .seconds(2)) { try await call() }
          // Frames are asked elsewhere; what was answered by a bomb is no answer.
          let asked = try await context.requests(since: mark).filter { $0.kind == "http" }
          try context.expect(asked.isEmpty, "no answer out of a bomb", observed: "\(what): \(asked.map(\.operation))")
        } catch let error as ChatError {
          if case .unsupported = error.kind { continue }
          let isBound = if case .tooLarge = error.kind { true } else { error.kind == .protocolViolation }
          try context.expect(isBound, "tooLarge or protocolViolation for \(what)", observed: "\(error)")
          try context.expect(!error.isRetryable, "not asked for again", observed: "\(error.retry)")
        }
      }
      _ = await context.harness.faults?.removeRules()
      try await context.stillHears(bob, alice, channel.id)
    },
  ]
}

extension CaseContext {
  /// A JSON Pointer of the vendor's facts, for one channel.
  func place(_ path: String, in channel: ChannelID) -> String {
    path.replacing(
      "{channel}", with: channel.rawValue.replacing("~", with: "~0").replacing("/", with: "~1"))
  }

  /// Changes of the vendor's facts, for one channel: values are JSON.
  func places(_ changes: [String: String], in channel: ChannelID) throws -> [String: JSONValue?] {
    var places: [String: JSONValue?] = [:]
    for (path, text) in changes { places.updateValue(try JSONValue(parsing: text), forKey: place(path, in: channel)) }
    return places
  }

  /// Says "to be changed", which a user gets as the odd message of this name, and then "next", which they get as it is.
  /// Skips the case where the vendor has no such message.
  func sayOdd(
    _ name: String, by writer: Chat, to user: TestUser, in channel: ChannelID
  ) async throws -> (odd: Message, next: Message) {
    guard let changes = harness.odd[name] else { throw CaseSkip(reason: .rule("the vendor has no such frame")) }
    let texts = changes.filter { $0.key.hasPrefix("~") }
    guard texts.isEmpty else { return try await sayRewritten(texts, by: writer, to: user, in: channel) }
    try await inject(FaultRule("push", user: user.id, phase: .beforePush, action: .patch(try places(changes, in: channel))))
    let odd = try await say(writer, channel, ["to be changed"])[0]
    return (odd, try await say(writer, channel, ["next"])[0])
  }

  /// What no JSON value can say is written into the text of the frame: the user gets the copy of somebody else, changed.
  private func sayRewritten(
    _ texts: [String: String], by writer: Chat, to user: TestUser, in channel: ChannelID
  ) async throws -> (odd: Message, next: Message) {
    let c = try await self.user("carol")
    let carol = try await online(c)
    try await writer.invite([c.id], to: channel)
    try await sees(carol, channel)
    try await idle()
    try await inject(FaultRule("push", user: user.id, channel: channel, phase: .beforePush, action: .drop))
    let mark = await mark()
    let odd = try await say(writer, channel, ["to be changed"])[0]
    var text = String(decoding: try await pushed(to: c.id, saying: "to be changed", since: mark).bytes, as: UTF8.self)
    for (old, new) in texts {
      try expect(text.contains(old.dropFirst()), "\(old.dropFirst()) in the frame", observed: text)
      text = text.replacing(old.dropFirst(), with: new)
    }
    try await removeRules()
    try await inject(FaultRule("push", user: user.id, channel: channel, phase: .beforePush, action: .raw(text)))
    return (odd, try await say(writer, channel, ["next"])[0])
  }

  /// The frame by which a user was told these words; it may come compressed or as binary.
  func pushed(to user: UserID, saying words: String, since mark: UInt64) async throws -> WireEntry {
    try await quiet()
    let frames = (await harness.faults?.wire(since: mark) ?? []).filter {
      !$0.isFromClient && $0.operation == "push" && $0.user == user && $0.kind == "message"
    }
    let readable = frames.first { String(decoding: $0.bytes, as: UTF8.self).contains(words) }
    return try need(readable ?? frames.last, "a frame to \(user)")
  }

  /// A message as it stands in an archive.
  func archived(_ message: Message, _ service: IdealService) async throws -> Message? {
    let path = file("archived-\(message.id?.rawValue.count ?? 0)-\(message.channel.rawValue.hashValue)")
    let source = OneMessageSource(inner: IdealSource(service: service), message: message)
    _ = try await whileTimePasses { try await MigrationRun(source: source, archive: path, clock: self.harness.clock).pull() }
    let archive = try Archive.open(at: path)
    let found = try await archive.channel(message.channel)
    let messages = try await archive.messages(in: found?.ordinal ?? 0, limit: 10).map { try $0.stored.message().message }
    try await archive.close()
    return messages.first
  }

  /// A device gets the next message, over the same link or a new one.
  func stillHears(_ chat: Chat, _ writer: Chat, _ channel: ChannelID) async throws {
    try await quiet(6)
    let probe = probe(chat, readsCache: false)
    try await eventually("the link stands", within: .seconds(120), step: .seconds(1)) { await chat.state == .connected }
    let next = try await say(writer, channel, ["whole"])[0].id
    try await eventually("the next message is told") {
      probe.received(in: channel).contains { $0.id == next } || probe.backfilled(in: channel) > 0
    }
  }
}

/// One channel with one message.
private struct OneMessageSource: ForwardingSource {
  let inner: any ChatSource
  let message: Message

  func channels(after cursor: Cursor?) async throws(ChatError) -> SourcePage<ChannelRecord> {
    SourcePage(items: [ChannelRecord(channel: Channel(id: message.channel, kind: .group))], next: nil)
  }

  func members(of channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MemberRecord> {
    SourcePage(items: [], next: nil)
  }

  func messages(in channel: ChannelID, after cursor: Cursor?) async throws(ChatError) -> SourcePage<MessageRecord> {
    SourcePage(items: [MessageRecord(message: message)], next: nil)
  }
}
