import ChatClient
import ChatCrypto
import ChatJSON
import UnifiedChat

// Odd frames on their way to a client.
extension ConformanceSuite {
  static let frames: [ConformanceCase] = [
    ConformanceCase(
      "RECV-06", "A message type from a newer client is shown as a placeholder and kept byte for byte.", .s1,
      hooks: ["patch"], tags: [.wire]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      // The service holds the text that the push does not show.
      context.exempt("G3")
      let probe = context.probe(bob)
      try await context.makeOdd("unknownType", to: users.b.id, in: channel.id)
      let sent = try await context.say(alice, channel.id, ["to be changed"])[0]
      try await context.eventually("it is told") { probe.received(in: channel.id).contains { $0.id == sent.id } }
      let told = probe.received(in: channel.id).first { $0.id == sent.id }
      guard case .unknown(let kind, let raw)? = told?.content else {
        throw context.failure("an unknown content", "\(told?.content as Any)")
      }
      try context.expect(!kind.isEmpty, "the name of its type")
      // White space and numbers too are as they came.
      try context.expect(raw.text.contains("\"zz\" : [1.0, 1e2, 9007199254740993]"), "the same bytes", observed: raw.text)
      await bob.disconnect()
      let again = try await context.device(users.b)
      try await again.open(for: users.b.id)
      let cached = try await again.history(of: channel.id, .newest(5)).messages.last
      try context.expectEqual(cached?.content, told?.content, "after a restart")
    },
    ConformanceCase(
      "RECV-08", "Numbers above 2^53 are exact.", .s1, hooks: ["patch"], tags: [.wire]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      context.exempt("G3")
      let probe = context.probe(bob, readsCache: false)
      for number in [9_007_199_254_740_993, 4_611_686_018_427_387_905] as [Int64] {
        try await context.changePush(to: users.b.id, in: channel.id, ["time": .int(number)])
        let sent = try await context.say(alice, channel.id, ["at \(number)"])[0]
        let text = sent.content
        try await context.eventually("it is told") { probe.received(in: channel.id).contains { $0.content == text } }
        let told = probe.received(in: channel.id).first { $0.content == text }
        try context.expectEqual(told?.createdAt.milliseconds, number, "the time")
      }
    },
    ConformanceCase("UNICODE-04", "A lone surrogate escape.", .s1, hooks: ["patch"], tags: [.wire]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      context.exempt("G3")
      let probe = context.probe(bob)
      try await context.makeOdd("loneSurrogate", to: users.b.id, in: channel.id)
      let sent = try await context.say(alice, channel.id, ["to be changed"])[0]
      let next = try await context.say(alice, channel.id, ["next"])[0]
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
    ConformanceCase("UNICODE-09", "Escapes in keys.", .s2, hooks: ["patch"], tags: [.wire]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      context.exempt("G3")
      let probe = context.probe(bob)
      try await context.makeOdd("escapedKeys", to: users.b.id, in: channel.id)
      let sent = try await context.say(alice, channel.id, ["to be changed"])[0]
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
    ConformanceCase("SEC-05", "Compressed bombs are bounded.", .s1, hooks: ["raw", "http"], tags: [.wire]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      context.exempt("G3")
      let bomb = try Gzip.compress([UInt8](repeating: 0x20, count: 128 << 20), level: 9)
      try await context.inject(FaultRule("push", user: users.b.id, phase: .beforePush, action: .rawBytes(bomb)))
      try await context.say(alice, channel.id, ["behind the bomb"])
      try await context.stillHears(bob, alice, channel.id)
      for operation in ["history", "channelQuery", "member"] {
        try await context.inject(
          FaultRule(
            operation, user: users.b.id, action: .http(status: 200, headers: ["Content-Encoding": "gzip"], body: bomb),
            mustFire: false))
      }
      // Whatever is asked ends, one way or the other.
      do {
        _ = try await context.whileTimePasses(within: .seconds(300), step: .seconds(2)) {
          try await bob.history(of: channel.id, HistoryQuery(anchor: .oldest, direction: .newer, limit: 3))
        }
      } catch is ChatError {}
      do {
        _ = try await context.whileTimePasses(within: .seconds(300), step: .seconds(2)) { try await bob.channel(channel.id) }
      } catch is ChatError {}
      _ = await context.harness.faults?.removeRules()
      try await context.stillHears(bob, alice, channel.id)
    },
  ]
}

extension CaseContext {
  /// The next push of `channel` to a user is the odd one of this name; skips the case where the vendor has none.
  func makeOdd(_ name: String, to user: UserID, in channel: ChannelID) async throws {
    guard let changes = harness.odd[name] else { throw CaseSkip(reason: .rule("the vendor has no such frame")) }
    let escaped = channel.rawValue.replacing("~", with: "~0").replacing("/", with: "~1")
    var places: [String: JSONValue?] = [:]
    for (path, text) in changes {
      places.updateValue(try JSONValue(parsing: text), forKey: path.replacing("{channel}", with: escaped))
    }
    try await inject(FaultRule("push", user: user, phase: .beforePush, action: .patch(places)))
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
