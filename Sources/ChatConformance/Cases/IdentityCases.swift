import ChatClient
import UnifiedChat

// One message is one message, however often and from wherever it comes.
extension ConformanceSuite {
  static let identity: [ConformanceCase] = [
    ConformanceCase("DEDUP-01", "Push and pull of the same message are one.", .s1) { context in
      // By push then history, by history then push, and by a catch-up that overlaps both.
      let (alice, bob, channel, _) = try await context.pair()
      let probe = context.probe(bob)
      try await context.say(alice, channel.id, ["pushed"])
      try await context.shows(bob, channel.id, [.text("pushed")], "bob")
      _ = try await context.wholeHistory(of: channel.id, by: bob, page: 1)
      await bob.suspend()
      try await context.say(alice, channel.id, ["missed"])
      await bob.resume()
      try await context.say(alice, channel.id, ["after"])
      try await context.shows(bob, channel.id, ["pushed", "missed", "after"].map { .text($0) }, "bob")
      try await context.eventually("each is told") {
        probe.received(in: channel.id).count + probe.backfilled(in: channel.id) >= 3
      }
      try await context.idle()
      let told = probe.received(in: channel.id)
      try context.expectEqual(Set(told.compactMap(\.id)).count, told.count, "events, one a message")
      try context.expect(
        told.count + probe.backfilled(in: channel.id) == 3, "each told once",
        observed: "\(told.map(\.content)) and \(probe.backfilled(in: channel.id)) backfilled")
    },
    ConformanceCase(
      "DEDUP-02", "Acknowledgement and echo in either order are one change.", .s1, hooks: ["delay", "duplicate"]) { context in
      let (alice, _, channel, users) = try await context.pair()
      let probe = context.probe(alice)
      let steps: [(String, FaultRule?)] = [
        ("as it comes", nil),
        ("echo first", FaultRule("send", user: users.a.id, phase: .beforeReply, action: .delay(.seconds(1)))),
        ("two echoes", FaultRule("push", user: users.a.id, phase: .beforePush, action: .duplicate(2), mustFire: false)),
      ]
      for (number, step) in steps.enumerated() {
        if let rule = step.1 { try await context.inject(rule) }
        let sent = try await context.say(alice, channel.id, [step.0])[0]
        try await context.quiet()
        let events = probe.events.filter { event in
          switch event.kind {
          case .messagePending(let message), .messageSent(let message), .messageReceived(let message),
            .messageUpdated(let message):
            message.localID == sent.localID || message.id == sent.id
          default: false
          }
        }
        try context.expectEqual(events.count, 2, "events of the message, \(step.0)")
        try context.expectEqual(probe.sent(in: channel.id).count, number + 1, "messageSent, \(step.0)")
      }
    },
    ConformanceCase(
      "DEDUP-06", "An overlap of catch-up and live leaves no double.", .s1, hooks: ["delay"]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(bob)
      @Sendable func sum() -> Int { probe.received(in: channel.id).count + probe.backfilled(in: channel.id) }
      try await context.say(alice, channel.id, ["known"])
      try await context.shows(bob, channel.id, [.text("known")], "bob")
      // A page may show it before its push is told.
      try await context.eventually("the known one is told") { sum() == 1 }
      await bob.suspend()
      try await context.say(alice, channel.id, 12)
      try await context.inject(
        FaultRule("history", user: users.b.id, times: 2, action: .delay(.seconds(2)), mustFire: false))
      await bob.resume()
      try await context.eventually("connected") { await bob.state == .connected }
      try await context.say(alice, channel.id, (12..<20).map(String.init))
      try await context.shows(
        bob, channel.id, [.text("known")] + (0..<20).map { .text("\($0)") }, "bob")
      // What is shown may be told a moment later.
      try await context.eventually("each is told") { sum() >= 21 }
      try await context.idle()
      let told = probe.received(in: channel.id)
      try context.expectEqual(Set(told.compactMap(\.id)).count, told.count, "events, one a message")
      try context.expect(
        sum() == 21, "each told once", observed: "\(told.map(\.content)) and \(probe.backfilled(in: channel.id)) backfilled")
    },
    ConformanceCase(
      "DEDUP-07", "A continuity row is not a message.", .s2, needs: [.historySequence, .messageDeleteForMe]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let sent = try await context.say(alice, channel.id, 12)
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      try await bob.deleteForMe(Array(sent[3..<8]))
      let fresh = try await context.online(users.b, "fresh")
      let expected = (sent[..<3] + sent[8...]).map(\.id)
      try context.expectEqual(
        try await context.wholeHistory(of: channel.id, by: fresh, page: 4).map(\.id), expected, "pages of four")
      try context.expectEqual(
        try await context.wholeHistory(of: channel.id, by: fresh, page: 50).map(\.id), expected, "one page")
      context.exempt("G3")
    },
    ConformanceCase(
      "DEDUP-08", "One notice in two streams is one event.", .s2
    ) { context in
      let a = try await context.user("alice")
      let b = try await context.user("bob")
      let alice = try await context.online(a)
      let bob = try await context.online(b)
      let probe = context.probe(bob)
      let channel = try await alice.createChannel(ChannelDraft(kind: .group, members: [b.id], name: "noticed"))
      try await context.sees(bob, channel.id)
      try await context.say(alice, channel.id, ["hello"])
      try await context.shows(bob, channel.id, try await context.newest(5, of: channel.id, by: alice).map(\.content))
      try await context.quiet()
      try context.expectEqual(probe.joined(channel.id).count, 1, "times that the channel was told")
      let notices = try await context.newest(20, of: channel.id, by: bob).filter { $0.isNotice }
      try context.expectEqual(Set(notices.map(\.id)).count, notices.count, "notices, each once")
    },
  ]
}
