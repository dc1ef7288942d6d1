import ChatCache
import ChatClient
import ChatJSON
import Synchronization
import UnifiedChat

// Files, reactions, custom data and search.
extension ConformanceSuite {
  static let file: [ConformanceCase] = [
    ConformanceCase(
      "FILE-01", "Progress grows to the size and the message follows.", .s2, needs: [.fileUpload]
    ) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 / 256) }
      let progress = Mutex<[Int64]>([])
      let content = MessageContent.file(
        Attachment(name: "data.bin", mimeType: "application/octet-stream", source: .bytes(bytes)))
      let sent = try await context.whileTimePasses {
        try await alice.send(MessageDraft(content), to: channel.id) { done, _ in progress.withLock { $0.append(done) } }
      }
      let steps = progress.withLock { $0 }
      try context.expect(zip(steps, steps.dropFirst()).allSatisfy { $0 <= $1 }, "progress that grows", observed: "\(steps)")
      let attachment = try context.need(sent.content.attachment, "an attachment")
      try context.expectEqual(attachment.size, Int64(bytes.count), "the size")
      try await context.eventually("bob has it") {
        try await bob.history(of: channel.id, .newest(1)).messages.last?.content.attachment?.url != nil
      }
      let received = try context.need(
        try await context.newest(1, of: channel.id, by: bob).last?.content.attachment, "an attachment")
      let read = try await context.whileTimePasses { try await bob.download(received, limit: 10_000_000) }
      try context.expect(read == bytes, "the same bytes", observed: "\(read.count) bytes")
      try await context.expectErrorInTime("tooLarge") { _ = try await bob.download(received, limit: 1000) } where: {
        if case .tooLarge = $0 { true } else { false }
      }
    },
    ConformanceCase(
      "FILE-02", "Cancel stops the bytes.", .s2, needs: [.fileUpload], hooks: ["stall", "virtualTime"]
    ) { context in
      let (alice, _, channel, users) = try await context.pair()
      try await context.inject(FaultRule("file", action: .stall, mustFire: false))
      let content = MessageContent.file(Attachment(name: "big", source: .bytes([UInt8](repeating: 7, count: 100_000))))
      let pending = try await alice.enqueue(MessageDraft(content), to: channel.id)
      try await context.quiet()
      try context.expect(try await alice.cancel(try context.need(pending.localID, "a local id")), "cancelled in time")
      try await context.removeRules()
      try await context.perform(.resume(users.a.id))
      try await context.pass(.seconds(5))
      try context.expectEqual(try await context.serverMessages(channel.id).count, 0, "messages at the service")
      try context.expectEqual(try await alice.waitingMessages(in: channel.id).count, 0, "what waits")
      // The request that is held has no answer until its client gives up.
      try await context.pass(.seconds(120), step: .seconds(5))
    },
    ConformanceCase(
      "FILE-03", "Upload done, message failed: resend does not upload again.", .s1, needs: [.fileUpload],
      hooks: ["fail", "journal"]
    ) { context in
      let (alice, _, channel, users) = try await context.pair()
      let probe = context.probe(alice)
      try await context.inject(
        FaultRule("send", user: users.a.id, channel: channel.id, action: .fail(.permission())))
      let content = MessageContent.file(
        Attachment(name: "once.bin", mimeType: "application/octet-stream", source: .bytes([1, 2, 3, 4])))
      let pending = try await alice.enqueue(MessageDraft(content), to: channel.id)
      try await context.eventually("it failed") { probe.failed(in: channel.id).count == 1 }
      let mark = await context.mark()
      _ = try await alice.resend(try context.need(pending.localID, "a local id"))
      try await context.eventually("sent") { probe.sent(in: channel.id).count == 1 }
      try context.expectEqual(try await context.requests("file", since: mark).count, 0, "uploads after the failure")
      try context.expectEqual(try await context.serverMessages(channel.id).count, 1, "messages at the service")
    },
    ConformanceCase("FILE-04", "A file of no bytes.", .s3, needs: [.fileUpload]) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let content = MessageContent.file(Attachment(name: "empty", mimeType: "text/plain", source: .bytes([])))
      do {
        _ = try await context.whileTimePasses { try await alice.send(MessageDraft(content), to: channel.id) }
      } catch let error as ChatError {
        guard case .invalidArgument = error.kind else { throw error }
        return
      }
      try await context.eventually("bob has it") {
        try await bob.history(of: channel.id, .newest(1)).messages.last?.content.attachment != nil
      }
      let received = try context.need(
        try await context.newest(1, of: channel.id, by: bob).last?.content.attachment, "an attachment")
      try context.expectEqual(received.size ?? 0, 0, "the size")
      let read = try await context.whileTimePasses { try await bob.download(received, limit: 1000) }
      try context.expectEqual(read, [], "the bytes")
    },
    ConformanceCase("FILE-06", "Names are data.", .s1, needs: [.fileByURL]) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let names = [
        "../../x", "a/b", "emoji 👨‍👩‍👧.png", "CON", "\u{202E}gnp.exe", String(repeating: "长", count: 60) + ".txt", " spaced ",
      ]
      for name in names {
        let content = MessageContent.file(
          Attachment(url: "https://files.example/x", name: name, size: 3, mimeType: "text/plain"))
        _ = try await context.whileTimePasses { try await alice.send(MessageDraft(content), to: channel.id) }
      }
      try await context.eventually("bob has all") {
        try await bob.history(of: channel.id, .newest(names.count)).messages.count == names.count
      }
      let read = try await context.newest(names.count, of: channel.id, by: bob)
      for (message, name) in zip(read, names) {
        try context.expectBytes(message.content.attachment?.name, name, "the name")
      }
    },
    ConformanceCase(
      "FILE-07", "A connection lost in an upload makes one message all the same.", .s2, needs: [.fileUpload],
      hooks: ["closeSocket"]
    ) { context in
      let (alice, bob, channel, _) = try await context.pair()
      try await context.inject(FaultRule("file", action: .closeSocket))
      let bytes = [UInt8](repeating: 42, count: 50_000)
      let content = MessageContent.file(
        Attachment(name: "torn.bin", mimeType: "application/octet-stream", source: .bytes(bytes)))
      let sent = try await context.whileTimePasses(within: .seconds(300), step: .seconds(1)) {
        try await alice.send(MessageDraft(content), to: channel.id)
      }
      try context.expectEqual(try await context.serverMessages(channel.id).map(\.id), [sent.id], "at the service")
      let attachment = try context.need(sent.content.attachment, "an attachment")
      let read = try await context.whileTimePasses { try await bob.download(attachment, limit: 1_000_000) }
      try context.expect(read == bytes, "the same bytes", observed: "\(read.count) bytes")
    },
    ConformanceCase(
      "FILE-09", "An already uploaded file is not uploaded.", .s2, needs: [.fileByURL]
    ) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let mark = await context.mark()
      let attachment = Attachment(
        url: "https://files.example/there.pdf", name: "there.pdf", size: 4321, mimeType: "application/pdf")
      _ = try await context.whileTimePasses { try await alice.send(MessageDraft(.file(attachment)), to: channel.id) }
      try await context.eventually("bob has it") {
        try await bob.history(of: channel.id, .newest(1)).messages.last?.content.attachment != nil
      }
      let received = try await context.newest(1, of: channel.id, by: bob).last?.content.attachment
      try context.expectEqual(received?.url, attachment.url, "the URL")
      try context.expectEqual(received?.name, attachment.name, "the name")
      try context.expectEqual(received?.size, attachment.size, "the size")
      try context.expectEqual(received?.mimeType, attachment.mimeType, "the MIME type")
      if context.offers("journal") {
        try context.expectEqual(try await context.requests("file", since: mark).count, 0, "uploads")
      }
    },
    ConformanceCase("FILE-10", "A big upload delays no text of other channels.", .s2, needs: [.fileUpload], hooks: ["delay"]) {
      context in
      let (alice, _, channel, users) = try await context.pair()
      let other = try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: "other"))
      try await context.inject(FaultRule("file", action: .delay(.seconds(8))))
      let probe = context.probe(alice)
      let content = MessageContent.file(Attachment(name: "slow", source: .bytes([UInt8](repeating: 1, count: 5000))))
      _ = try await alice.enqueue(MessageDraft(content), to: channel.id)
      try await context.quiet(10)
      try await context.say(alice, other.id, ["meanwhile"])
      try context.expectEqual(probe.sent(in: channel.id).count, 0, "the file is still on its way")
      try await context.eventually("the file follows") { probe.sent(in: channel.id).count == 1 }
    },
  ]

  static let reaction: [ConformanceCase] = [
    ConformanceCase(
      "REACT-01", "Adding and removing aggregates.", .s2, needs: [.messageReaction]
    ) { context in
      let (chats, users, channel) = try await context.group("alice", "bob", "carol")
      let message = try await context.say(chats[0], channel.id, ["react"])[0]
      let id = try context.need(message.id, "an id")
      for chat in chats { try await context.shows(chat, channel.id, [.text("react")]) }
      let probe = context.probe(chats[0])
      _ = try await chats[0].addReaction("👍", to: message)
      _ = try await chats[1].addReaction("👍", to: message)
      _ = try await chats[2].addReaction("❤️", to: message)
      _ = try await chats[0].removeReaction("👍", from: message)
      let expected: Set<Reaction> = [
        Reaction(key: "👍", users: [users[1].id]), Reaction(key: "❤️", users: [users[2].id]),
      ]
      for chat in chats {
        try await context.eventually("the reactions arrive") {
          Set(try await chat.history(of: channel.id, .newest(1)).messages.last?.reactions ?? []) == expected
        }
      }
      let fresh = try await context.online(users[1], "fresh")
      let read = try await context.newest(1, of: channel.id, by: fresh).last
      try context.expectEqual(Set(read?.reactions ?? []), expected, "on a fresh device")
      let told = probe.reactions(of: id, in: channel.id)
      try context.expectEqual(told.count, Set(told.map { Set($0) }).count, "no event twice")
    },
    ConformanceCase("REACT-02", "The same reaction twice is one; keys are opaque.", .s2, needs: [.messageReaction]) {
      context in
      let (alice, _, channel, users) = try await context.pair()
      let message = try await context.say(alice, channel.id, ["react"])[0]
      for key in [":+1:", "👍🏽", "👨‍👩‍👧‍👦", String(repeating: "k", count: 60)] {
        for _ in 0..<2 {
          do { _ = try await alice.addReaction(key, to: message) } catch let error as ChatError {
            guard error.kind == .conflict else { throw error }
          }
        }
      }
      @Sendable func keys() async throws -> [String: [UserID]] {
        let read = try await context.newest(1, of: channel.id, by: alice).last?.reactions ?? []
        return Dictionary(read.map { ($0.key, $0.users) }) { first, _ in first }
      }
      try await context.eventually("four keys") { try await keys().count == 4 }
      try context.expect(try await keys().values.allSatisfy { $0 == [users.a.id] }, "one user each")
      for _ in 0..<2 {
        do { _ = try await alice.removeReaction(":+1:", from: message) } catch let error as ChatError {
          guard error.kind == .notFound || error.kind == .conflict else { throw error }
        }
      }
      try await context.eventually("three keys") { try await keys().count == 3 }
    },
    ConformanceCase(
      "REACT-03", "Two users at the same instant both count.", .s2, needs: [.messageReaction]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let message = try await context.say(alice, channel.id, ["react"])[0]
      try await context.shows(bob, channel.id, [.text("react")], "bob")
      async let first = alice.addReaction("👍", to: message)
      async let second = bob.addReaction("👍", to: message)
      _ = try await (first, second)
      for chat in [alice, bob] {
        try await context.eventually("both count") {
          let users = try await chat.history(of: channel.id, .newest(1)).messages.last?.reactions.first?.users ?? []
          return Set(users).count == 2
        }
      }
      _ = try await bob.removeReaction("👍", from: message)
      for chat in [alice, bob] {
        try await context.eventually("one is left") {
          try await chat.history(of: channel.id, .newest(1)).messages.last?.reactions
            == [Reaction(key: "👍", users: [users.a.id])]
        }
      }
    },
  ]

  static let meta: [ConformanceCase] = [
    ConformanceCase(
      "META-01", "Custom data comes back equal, unknown members included.", .s1, needs: [.channelCustomData]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let text = #"{"n":1,"f":1.5,"big":9007199254740993,"empty":"","list":[],"map":{},"clé":"值","deep":{"a":[1,{"b":true}]}}"#
      let data = JSONText(unchecked: text)
      _ = try await alice.updateChannel(channel.id, ChannelChanges(customData: data))
      let fresh = try await context.online(users.b, "fresh")
      for reader in [alice, fresh] {
        let read = try await context.channel(channel.id, by: reader).customData
        try context.expectSameJSON(read, text, "custom data")
      }
      try await context.eventually("bob has it") {
        guard let read = try await bob.channel(channel.id).customData else { return false }
        return read.text.contains("9007199254740993")
      }
    },
    ConformanceCase(
      "META-02", "Two users changing two keys keep both.", .s2, needs: [.channelMetadataKeys]
    ) { context in
      let (alice, bob, channel, _) = try await context.pair()
      for round in 0..<2 {
        async let first: Void = alice.setMetadata(["a\(round)": "from alice"], of: channel.id)
        async let second: Void = bob.setMetadata(["b\(round)": "from bob"], of: channel.id)
        _ = try await (first, second)
      }
      let read = try await context.channel(channel.id, by: alice).metadata
      for round in 0..<2 {
        try context.expectEqual(read["a\(round)"], "from alice", "alice's key \(round)")
        try context.expectEqual(read["b\(round)"], "from bob", "bob's key \(round)")
      }
      try await alice.setMetadata(["a0": nil], of: channel.id)
      let after = try await context.channel(channel.id, by: bob).metadata
      try context.expect(after["a0"] == nil && after["b0"] == "from bob", "one key removed", observed: "\(after)")
    },
    ConformanceCase(
      "META-04", "Local data stays local and survives.", .s1) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let sent = try await context.say(alice, channel.id, ["with a note", "to be recalled"])
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      let note = JSONText(unchecked: #"{"note":"secretnotebob"}"#)
      let mark = await context.mark()
      let shown = try await context.newest(2, of: channel.id, by: bob)
      for message in shown { try await bob.setLocalExtension(note, of: message) }
      let alone = try await bob.insertLocal(.text("secretnotebob between us"), in: channel.id)
      if context.has(.messageEdit) {
        _ = try await alice.edit(sent[0], to: .text("edited"))
        try await context.shows(bob, channel.id, [.text("edited"), .text("to be recalled"), alone.content], "bob")
      }
      await bob.disconnect()
      let again = try await context.online(users.b)
      let read = try await context.newest(3, of: channel.id, by: again)
      try context.expectEqual(read.first?.localExtension, note, "the note after an edit and a restart")
      try context.expectEqual(read.last, alone, "the message of this device alone after a restart, in its place")
      try context.expectEqual(
        try await again.searchCache(CacheSearch("between")).items.map(\.content), [alone.content], "found on this device")
      try await context.shows(alice, channel.id, read.dropLast().map(\.content), "alice has none of it")
      if context.has(.messageRecall) {
        _ = try await alice.recall(sent[1])
        try await context.eventually("the note goes with the message") {
          try await again.history(of: channel.id, .newest(3)).messages.allSatisfy { !$0.isRecalled || $0.localExtension == nil }
        }
      }
      let changed = try await again.edit(alone, to: .text("secretnotebob, other words"))
      try context.expectEqual(try await context.newest(1, of: channel.id, by: again), [changed], "changed here")
      try await again.deleteForMe([changed])
      try context.expect(
        try await context.newest(3, of: channel.id, by: again).allSatisfy { !$0.isLocalOnly }, "removed from this device")
      let frames = await context.harness.faults?.wire(since: mark) ?? []
      try context.expect(
        !frames.contains { String(decoding: $0.bytes, as: UTF8.self).contains("secretnotebob") }, "nothing on the wire")
    },
  ]

  static let search: [ConformanceCase] = [
    ConformanceCase("SRCH-01", "Chinese words of one, two and three characters are found.", .s1) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let texts = [
        "重跑gen-itgc后结果正常", "今天天气很好", "天气预报说明天下雨", "重新跑一遍", "后天见", "nothing here", "Étude in C", "跑步机",
      ]
      try await context.say(alice, channel.id, texts)
      try await context.shows(bob, channel.id, texts.map { .text($0) }, "bob")
      for word in ["跑", "重跑", "天气", "itgc", "后", "明天下", "itg", "天", "结果正常"] {
        let found = try await bob.searchCache(CacheSearch(word, limit: 50)).items.map(\.content)
        let expected = texts.filter { $0.contains(word) }.map { MessageContent.text($0) }
        try context.expectEqual(Set(found), Set(expected), "found for \(word)")
      }
    },
    ConformanceCase("SRCH-02", "What is recalled, hidden or edited away is not found.", .s1) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let sent = try await context.say(alice, channel.id, (0..<4).map { "needle number \($0)" })
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      var left = Set(sent.compactMap(\.id))
      if context.has(.messageRecall) {
        _ = try await alice.recall(sent[0])
        left.remove(try context.need(sent[0].id, "an id"))
      }
      if context.has(.messageEdit) {
        _ = try await alice.edit(sent[1], to: .text("something else"))
        left.remove(try context.need(sent[1].id, "an id"))
      }
      try await bob.deleteForMe([sent[2]])
      left.remove(try context.need(sent[2].id, "an id"))
      let wanted = left
      try await context.eventually("what is left is found") {
        Set(try await bob.searchCache(CacheSearch("needle")).items.compactMap(\.id)) == wanted
      }
      await bob.disconnect()
      let again = try await context.device(users.b)
      try await again.open(for: users.b.id)
      try context.expectEqual(
        Set(try await again.searchCache(CacheSearch("needle")).items.compactMap(\.id)), wanted, "after a restart")
      context.exempt("G3")
    },
    ConformanceCase("SRCH-03", "Folding follows the documented table.", .s3) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let texts = ["Grüße an ALLE", "ＦＵＬＬ width", "cafe\u{301}"]
      try await context.say(alice, channel.id, texts)
      try await context.shows(bob, channel.id, texts.map { .text($0) }, "bob")
      for (word, expected) in [("alle", 0), ("GRÜSSE", -1), ("full", 1), ("café", 2)] {
        let found = try await bob.searchCache(CacheSearch(word)).items.map(\.content)
        guard expected >= 0 else { continue }
        try context.expectEqual(found, [.text(texts[expected])], "found for \(word)")
      }
    },
    ConformanceCase("SRCH-04", "Results page stably in both orders with filters.", .s2) { context in
      let (alice, bob, channel, users) = try await context.pair()
      for number in 0..<12 {
        try await context.say(number % 3 == 0 ? bob : alice, channel.id, ["word \(number)"])
        await context.harness.pass(.milliseconds(5))
      }
      try await context.eventually("bob has all") { try await bob.history(of: channel.id, .newest(20)).messages.count == 12 }
      for oldestFirst in [true, false] {
        var query = CacheSearch("word", channel: channel.id, sender: users.a.id)
        query.limit = 3
        query.order = oldestFirst ? .oldestFirst : .newestFirst
        var found: [Message] = []
        var page: PageToken?
        repeat {
          let result = try await bob.searchCache(query, page: page)
          found += result.items
          page = result.next
          // What comes meanwhile does not move what is shown.
          if found.count == 3 { try await context.say(alice, channel.id, ["word late"]) }
        } while page != nil && found.count < 50
        let numbers = found.map(\.content).filter { $0 != .text("word late") }
        let expected = (0..<12).filter { $0 % 3 != 0 }.map { MessageContent.text("word \($0)") }
        try context.expectEqual(numbers, oldestFirst ? expected : expected.reversed(), "results, oldest first: \(oldestFirst)")
        try context.expectEqual(Set(found.map(\.id)).count, found.count, "each once")
      }
    },
    ConformanceCase("SRCH-05", "Query text is text.", .s1) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let odd = ["a\"b", "it's", "100%", "under_score", "star*", "NEAR(x y)", "this OR that", "-- comment", "🙂 smile", "(paren"]
      try await context.say(alice, channel.id, odd)
      try await context.shows(bob, channel.id, odd.map { .text($0) }, "bob")
      for text in odd {
        let found = try await bob.searchCache(CacheSearch(text)).items.map(\.content)
        try context.expect(found.contains(.text(text)), "\(text) is found", observed: "\(found)")
        try context.expect(found.count <= 2, "nothing else", observed: "\(found)")
      }
      for text in ["\"", "'", "%", "*", "_", "(", "NEAR", "--"] {
        let found = try await bob.searchCache(CacheSearch(text)).items.compactMap { $0.content.searchableText }
        try context.expect(
          found.allSatisfy { $0.lowercased().contains(text.lowercased()) }, "only what says \(text)", observed: "\(found)")
      }
    },
    ConformanceCase(
      "SRCH-06", "Server search equals local search on what both hold.", .s3, needs: [.searchServer]
    ) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let words = ["apple", "banana", "cherry"]
      try await context.say(alice, channel.id, (0..<12).map { "\(words[$0 % 3]) number \($0)" })
      try await context.eventually("bob has all") { try await bob.history(of: channel.id, .newest(20)).messages.count == 12 }
      for word in words {
        let local = try await bob.searchCache(CacheSearch(word)).items.map(\.id)
        let server = try await context.whileTimePasses { try await bob.search(word, in: channel.id, limit: 50, page: nil) }
        try context.expectEqual(Set(server.items.map(\.id)), Set(local), "found for \(word)")
      }
    },
  ]
}

extension CaseContext {
  /// Equal as JSON values, with exact numbers.
  func expectSameJSON(_ observed: JSONText?, _ expected: String, _ what: String) throws {
    step()
    guard let observed, let left = try? JSONValue(parsing: observed.text),
      let right = try? JSONValue(parsing: expected), left.canonicalBytes() == right.canonicalBytes()
    else { throw failure("\(what) = \(expected)", observed?.text ?? "none") }
  }
}
