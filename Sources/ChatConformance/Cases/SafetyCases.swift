import ChatCache
import ChatClient
import Foundation
import UnifiedChat

// What must stay inside, and what is on disk.
extension ConformanceSuite {
  static let security: [ConformanceCase] = [
    ConformanceCase("SEC-01", "Planted secrets stay inside.", .s1, hooks: ["fail"]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      for number in 0..<10 { context.plant(secret: "planted-words-\(number)-of-a-message") }
      for number in 0..<10 { try await context.say(alice, channel.id, ["planted-words-\(number)-of-a-message"]) }
      try await context.inject(FaultRule("send", user: users.a.id, action: .fail(.permission())))
      do { _ = try await context.whileTimePasses { try await alice.send(.text("planted-words-0-of-a-message"), to: channel.id) } } catch
        let error as ChatError
      {
        for secret in context.secrets { try context.expect(!"\(error)".contains(secret), "no secret in an error") }
      }
      try context.expect(!"\(users.a.credential)".contains("planted"), "a credential prints nothing")
      for secret in context.secrets { try context.expect(!"\(users.a)".contains(secret) || secret.hasPrefix("planted"), "nor a user") }
      await bob.suspend()
      await bob.resume()
      try await context.eventually("connected") { await bob.state == .connected }
      // The logs, at the most verbose level, are read after every case.
    },
    ConformanceCase("SEC-03", "Cache files are for their owner.", .s2) { context in
      let (alice, _, channel, _) = try await context.pair()
      try await context.say(alice, channel.id, ["private"])
      let folder = try context.details(of: alice).folder
      let files = try FileManager.default.contentsOfDirectory(atPath: folder)
      try context.expect(!files.isEmpty, "cache files")
      func mode(_ path: String) throws -> Int {
        (try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue ?? 0
      }
      try context.expectEqual(try mode(folder) & 0o077, 0, "rights of others on the folder")
      for file in files { try context.expectEqual(try mode(folder + "/" + file) & 0o077, 0, "rights of others on \(file)") }
    },
    ConformanceCase(
      "SEC-06", "Text from the server is never code, path or query.", .s1
    ) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let odd = [
        "'; DROP TABLE messages; --", "\" OR 1=1", "%s%n%d", "\u{1B}[31mred\u{7}", "../../etc/passwd", "<script>1</script>",
        "{{7*7}}", "$(reboot)", "NEAR(a b)", "?*:[]",
      ]
      try await context.travels(odd)
      try await context.say(alice, channel.id, odd)
      try await context.shows(bob, channel.id, odd.map { .text($0) }, "bob")
      for text in odd {
        let found = try await bob.searchCache(CacheSearch(text)).items.map(\.content)
        try context.expect(found.contains(.text(text)), "found by its own text: \(text.debugDescription)", observed: "\(found)")
      }
      guard context.has(.channelCustomData) else { return }
      let renamed = try await alice.updateChannel(channel.id, ChannelChanges(name: odd[0]))
      try context.expectBytes(renamed.name, odd[0], "the name")
    },
    ConformanceCase(
      "SEC-08", "A client id from another sender cannot settle my message.", .s1, hooks: ["delay"]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(alice)
      try await context.inject(FaultRule("send", user: users.a.id, action: .delay(.seconds(3))))
      let mine = OutgoingMessage(
        channel: channel.id, localID: "sec-08-same", clientMessageID: "sec-08-same", draft: .text("mine"))
      let sending = Task { try await alice.send(mine) }
      try await context.quiet()
      let forged = OutgoingMessage(
        channel: channel.id, localID: "sec-08-same", clientMessageID: "sec-08-same", draft: .text("forged"))
      _ = try await context.whileTimePasses(within: .seconds(1)) { try await bob.send(forged) }
      try await context.quiet()
      let waiting = try await alice.waitingMessages(in: channel.id)
      try context.expectEqual(waiting.map(\.content), [.text("mine")], "what still waits")
      try context.expectEqual(probe.sent(in: channel.id).count, 0, "messages settled")
      let sent = try await context.whileTimePasses { try await sending.value }
      try context.expectEqual(sent.content, .text("mine"), "the own message")
      try context.expectEqual(sent.sender, users.a.id, "its sender")
      try context.expectEqual(
        Set(try await context.serverMessages(channel.id).map(\.content)), [.text("mine"), .text("forged")], "at the service")
    },
  ]

  static let cache: [ConformanceCase] = [
    ConformanceCase("CACHE-01", "Reading never waits for the network.", .s1, hooks: ["stall"]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let sent = try await context.say(alice, channel.id, 30)
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      await bob.suspend()
      let before = context.harness.clock.now
      let read = try await bob.history(of: channel.id, .newest(20))
      try context.expectEqual(read.messages.map(\.id), sent.suffix(20).map(\.id), "the cached page")
      try context.expectEqual(context.harness.clock.now, before, "no time passed")
      try context.expectEqual(try await bob.searchCache(CacheSearch("17")).items.count, 1, "search works too")
      await bob.resume()
      try await context.eventually("connected") { await bob.state == .connected }
      try await context.perform(.stall(users.b.id))
      let again = try await bob.history(of: channel.id, .newest(20))
      try context.expectEqual(again.messages.map(\.id), sent.suffix(20).map(\.id), "the cached page while the server is silent")
      try await context.perform(.resume(users.b.id))
    },
    ConformanceCase("CACHE-02", "The cache of one user is never shown to another.", .s1) { context in
      let ids = ["cache02a", "CACHE02A", "cache02a/../cache02b", "cache02\u{E9}", "cache02e\u{301}", String(repeating: "u", count: 45)]
      let shared = context.file("shared")
      var drafts: [(user: TestUser, text: String)] = []
      for id in ids {
        let user: TestUser
        do { user = try await context.user(exactly: id) } catch let error as ChatError {
          guard case .invalidArgument = error.kind else { throw error }
          continue
        }
        let chat = try await context.device(user) { $0.cacheLocation = .directory(shared) }
        try await chat.open(for: user.id)
        try context.expectEqual(try await chat.draft(of: "secrets"), nil, "a draft of somebody else")
        try context.expectEqual(try await chat.waitingMessages(in: "secrets").count, 0, "messages of somebody else")
        try context.expectEqual(try await chat.cachedChannels().count, 0, "channels of somebody else")
        try context.expectEqual(try await chat.searchCache(CacheSearch("hidden")).items.count, 0, "search hits of somebody else")
        try await chat.setDraft("of \(id)", of: "secrets")
        _ = try await chat.enqueue(.text("hidden \(id)"), to: "secrets")
        await chat.disconnect()
        drafts.append((user, "of \(id)"))
      }
      try context.expect(drafts.count >= 3, "several users", observed: "\(drafts.count)")
      let files = try FileManager.default.contentsOfDirectory(atPath: shared).filter { $0.hasSuffix(".sqlite") }
      try context.expectEqual(files.count, drafts.count, "files, one a user")
      // What a service gave to one: a channel, its messages and members.
      let owner = drafts[0].user
      let partner = try await context.user("partner")
      let first = try await context.online(owner) { $0.cacheLocation = .directory(shared) }
      let channel = try await first.createChannel(ChannelDraft(kind: .group, members: [partner.id], name: "owned"))
      try await context.say(first, channel.id, ["ownedwords"])
      try await context.shows(first, channel.id, [.text("ownedwords")], "the owner")
      await first.disconnect()
      for (user, _) in drafts.dropFirst() {
        let chat = try await context.device(user) { $0.cacheLocation = .directory(shared) }
        try await chat.open(for: user.id)
        try context.expectEqual(try await chat.cachedChannels().count, 0, "channels of another user")
        try context.expectEqual(try await chat.searchCache(CacheSearch("ownedwords")).items.count, 0, "messages of another user")
        let page = try? await chat.history(of: channel.id, .newest(5))
        try context.expectEqual(page?.messages.count ?? 0, 0, "history of another user")
        await chat.disconnect()
      }
      for (user, text) in drafts {
        let chat = try await context.device(user) { $0.cacheLocation = .directory(shared) }
        try await chat.open(for: user.id)
        try context.expectBytes(try await chat.draft(of: "secrets"), text, "the own draft")
      }
    },
    ConformanceCase("CACHE-05", "A cache from the future is refused and left alone.", .s2) { context in
      let (alice, _, channel, users) = try await context.pair()
      try await context.say(alice, channel.id, ["old"])
      let device = try context.details(of: alice)
      await alice.disconnect()
      let files = try FileManager.default.contentsOfDirectory(atPath: device.folder).filter { $0.hasSuffix(".sqlite") }
      let path = device.folder + "/" + (try context.need(files.first, "a cache file"))
      // `user_version` stands at byte 60 of the header, big-endian.
      var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
      try context.expect(bytes.count > 100, "a database")
      bytes[60] = 0x7F
      try Data(bytes).write(to: URL(fileURLWithPath: path))
      let next = try await context.device(users.a)
      try await context.expectError("storage(newerVersion)") { try await next.open(for: users.a.id) } where: {
        $0 == .storage(.newerVersion)
      }
      try context.expect([UInt8](try Data(contentsOf: URL(fileURLWithPath: path))) == bytes, "the file is as it was")
      // The file of this device is one that does not open.
      context.exempt("cache")
      let fresh = try await context.device(users.a, "other")
      _ = try await fresh.connect(as: users.a.id, credential: users.a.credential)
      try await context.shows(fresh, channel.id, [.text("old")], "with a fresh cache")
    },
    ConformanceCase("CACHE-07", "A damaged file is set aside and rebuilt.", .s1) { context in
      for (offset, length) in [(0, 16), (4096 + 10, 2000), (20_000, 2000)] {
        let (alice, bob, channel, users) = try await context.pair()
        let sent = try await context.say(bob, channel.id, 20)
        try await context.shows(alice, channel.id, sent.map(\.content), "alice")
        let device = try context.details(of: alice)
        await alice.disconnect()
        let files = try FileManager.default.contentsOfDirectory(atPath: device.folder).filter { $0.hasSuffix(".sqlite") }
        let path = device.folder + "/" + (try context.need(files.first, "a cache file"))
        var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        for place in offset..<min(bytes.count, offset + length) { bytes[place] = bytes[place] ^ 0x5A }
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        let next = try await context.online(users.a)
        try await context.shows(next, channel.id, sent.map(\.content), "alice after the damage at \(offset)")
        if offset == 0 { try context.expect(await next.cacheRecovery != nil, "a recovery that is told") }
      }
    },
    ConformanceCase("CACHE-10", "Clearing leaves nothing behind.", .s1) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let planted = (0..<10).map { "plantedwords\($0)" }
      try await context.say(alice, channel.id, planted)
      try await context.shows(bob, channel.id, planted.map { .text($0) }, "bob")
      try await bob.setDraft("planteddraft", of: channel.id)
      let folder = try context.details(of: bob).folder
      await bob.suspend()
      try await bob.clearCachedData()
      for text in planted + ["planteddraft"] {
        try context.expect(!(try contains(folder, text)), "nothing of \(text) in any file")
      }
      let again = try await context.device(users.b)
      try await again.open(for: users.b.id)
      try context.expectEqual(try await again.cachedChannels().count, 0, "cached channels")
      try await context.shows(alice, channel.id, planted.map { .text($0) }, "alice")
    },
    ConformanceCase("CACHE-11", "Any order of the same events ends in the same rows.", .s1) { context in
      var random = Dice(seed: context.harness.seed)
      let me = UserID("cache-11-me")
      for round in 0..<20 {
        let history = Self.events(round, me, &random)
        var dumps: Set<[String]> = []
        for _ in 0..<6 {
          let cache = try LocalCache(CacheIdentity(vendor: "ideal", app: "", user: me), at: .memory)
          var order = history
          order.shuffle(using: &random)
          // An event again, as after a reconnect.
          for message in order + order.prefix(3) {
            _ = try cache.write { session throws(ChatError) in try session.merge(message) }
          }
          dumps.insert(
            try cache.read { session throws(ChatError) in
              try session.messages(
                in: "c", .newer, of: .lowest, inclusive: true, within: CachedRange(low: .lowest, high: .highest),
                limit: .max
              ).map { "\($0.id?.rawValue ?? "") \($0.content) \($0.editedAt?.milliseconds ?? 0)" }
            })
          cache.close()
        }
        try context.expectEqual(dumps.count, 1, "tables after round \(round)")
      }
    },
    ConformanceCase("CACHE-12", "Equal times do not overwrite each other.", .s1) { context in
      let (channel, reader, sent) = try await filled(context, 40, keepingTime: true)
      _ = try await context.wholeHistory(of: channel, by: reader, page: 9)
      let user = try context.details(of: reader).user
      await reader.disconnect()
      let again = try await context.device(user, "reader")
      try await again.open(for: user.id)
      let cached = try await again.history(of: channel, .newest(100))
      try context.expectEqual(cached.messages.map(\.id), sent, "rows after a restart")
    },
  ]

  /// Messages with edits and recalls of one channel, as events bring them.
  private static func events(_ round: Int, _ me: UserID, _ random: inout Dice) -> [Message] {
    var all: [Message] = []
    for number in 0..<6 {
      let time = Timestamp(milliseconds: 1_700_000_000_000 + Int64(number) * 1000)
      var message = Message(
        channel: "c", id: MessageID("m\(number)"), sender: number % 2 == 0 ? "other" : me,
        position: MessagePosition(time: time, number: Int64(number)), createdAt: time, content: .text("text \(number)"))
      all.append(message)
      for edit in 0..<Int(random.next() % 3) {
        message.content = .text("text \(number) edit \(edit)")
        message.editedAt = time + .milliseconds(10 * (edit + 1))
        all.append(message)
      }
      if random.next() % 4 == 0 {
        message.content = .recalled(by: message.sender, at: time)
        // A tombstone says nothing of edits.
        message.editedAt = nil
        all.append(message)
      }
    }
    return all
  }
}
