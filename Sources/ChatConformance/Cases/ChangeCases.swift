import ChatCache
import ChatClient
import Foundation
import UnifiedChat

// Edits, recalls and what is deleted for one user alone.
extension ConformanceSuite {
  static let edit: [ConformanceCase] = [
    ConformanceCase("EDIT-01", "An edit reaches all, once.", .s1, needs: [.messageEdit]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let tablet = try await context.online(users.a, "tablet")
      try await context.sees(tablet, channel.id)
      let sent = try await context.say(alice, channel.id, ["before"])[0]
      for device in [alice, tablet, bob] { try await context.shows(device, channel.id, [.text("before")]) }
      let probes = [alice, tablet, bob].map { context.probe($0) }
      let edited = try await alice.edit(sent, to: .text("after"))
      try context.expect(edited.editedAt != nil, "a time of the edit")
      for device in [alice, tablet, bob] { try await context.shows(device, channel.id, [.text("after")]) }
      try await context.quiet()
      for probe in probes {
        try context.expectEqual(probe.updated(in: channel.id).map(\.content), [.text("after")], "what was told")
        try context.expectEqual(probe.updated(in: channel.id).first?.position, sent.position, "the position")
      }
      try context.expectEqual(try await bob.searchCache(CacheSearch("after")).items.map(\.id), [sent.id], "found by search")
      try context.expectEqual(try await bob.searchCache(CacheSearch("before")).items.count, 0, "old words found")
    },
    ConformanceCase(
      "EDIT-02", "An edit that overtakes its message wins.", .s1, needs: [.messageEdit], hooks: ["reorder"]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      try await context.say(alice, channel.id, ["0"])
      try await context.shows(bob, channel.id, [.text("0")], "bob")
      try await context.quiet()
      let probe = context.probe(bob)
      // The next two frames to bob change places: the message and its edit.
      try await context.inject(
        FaultRule("any", user: users.b.id, times: 2, phase: .beforePush, action: .reorder(2)))
      let sent = try await context.say(alice, channel.id, ["before"])[0]
      _ = try await alice.edit(sent, to: .text("after"))
      try await context.shows(bob, channel.id, [.text("0"), .text("after")], "bob")
      try await context.removeRules()
      try await context.quiet()
      try await context.shows(bob, channel.id, [.text("0"), .text("after")], "bob, later")
      try context.expectEqual(
        Set(probe.received(in: channel.id).compactMap(\.id)).count, probe.received(in: channel.id).count, "told once")
    },
    ConformanceCase(
      "EDIT-03", "The older of two edits never wins.", .s1, needs: [.messageEdit], hooks: ["reorder"]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let sent = try await context.say(alice, channel.id, ["0"])[0]
      try await context.shows(bob, channel.id, [.text("0")], "bob")
      try await context.quiet()
      let probe = context.probe(bob)
      try await context.inject(
        FaultRule("edit", user: users.b.id, times: 2, phase: .beforePush, action: .reorder(2)))
      let first = try await alice.edit(sent, to: .text("first"))
      await context.harness.pass(.milliseconds(20))
      _ = try await alice.edit(first, to: .text("second"))
      try await context.shows(bob, channel.id, [.text("second")], "bob")
      try await context.removeRules()
      try await context.quiet()
      try context.expectEqual(probe.updated(in: channel.id).map(\.content), [.text("second")], "what was told")
      // And once more from what is asked after an absence.
      await bob.suspend()
      await bob.resume()
      try await context.eventually("connected") { await bob.state == .connected }
      try await context.quiet()
      try context.expectEqual(probe.updated(in: channel.id).count, 1, "updates told")
      try await context.shows(bob, channel.id, [.text("second")], "bob, later")
    },
    ConformanceCase("EDIT-04", "Only the author edits.", .s2, needs: [.messageEdit]) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let sent = try await context.say(alice, channel.id, ["mine"])[0]
      try await context.shows(bob, channel.id, [.text("mine")], "bob")
      try await context.expectErrorInTime("permission") { _ = try await bob.edit(sent, to: .text("his")) } where: {
        if case .permission = $0 { true } else { false }
      }
      try context.expectEqual(try await context.serverMessages(channel.id).map(\.content), [.text("mine")], "at the service")
      try await context.shows(bob, channel.id, [.text("mine")], "bob")
    },
    ConformanceCase(
      "EDIT-05", "An edit made while I was away arrives as one update.", .s1, needs: [.messageEdit, .historyChangelog]
    ) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let sent = try await context.say(alice, channel.id, 5)
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      let probe = context.probe(bob)
      await bob.suspend()
      var first = sent[1]
      for text in ["a", "b", "c"] {
        first = try await alice.edit(first, to: .text(text))
        await context.harness.pass(.milliseconds(20))
      }
      _ = try await alice.edit(sent[3], to: .text("d"))
      await bob.resume()
      let expected = ["0", "c", "2", "d", "4"].map { MessageContent.text($0) }
      try await context.shows(bob, channel.id, expected, "bob")
      try await context.quiet()
      try context.expectEqual(
        Set(probe.updated(in: channel.id).map(\.content)), [.text("c"), .text("d")], "updates told")
      try context.expectEqual(probe.updated(in: channel.id).count, 2, "updates, each once")
    },
    ConformanceCase("EDIT-06", "Editing what cannot be edited is a typed error.", .s3, needs: [.messageEdit]) { context in
      let (alice, _, channel, _) = try await context.pair()
      await alice.suspend()
      let pending = try await alice.enqueue(.text("pending"), to: channel.id)
      let changed = try await alice.edit(pending, to: .text("changed before it left"))
      try context.expectEqual(changed.content, .text("changed before it left"), "the pending message")
      await alice.resume()
      try await context.eventually("sent") { try await alice.waitingMessages(in: channel.id).isEmpty }
      let stored = try await context.serverMessages(channel.id)
      try context.expectEqual(stored.map(\.content), [.text("changed before it left")], "at the service")
      guard context.has(.messageRecall) else { return }
      let sent = try await context.say(alice, channel.id, ["gone"])[0]
      _ = try await alice.recall(sent)
      try await context.expectErrorInTime("notFound or conflict") { _ = try await alice.edit(sent, to: .text("back")) } where: {
        if case .permission = $0 { true } else { $0 == .notFound || $0 == .conflict }
      }
    },
    ConformanceCase(
      "EDIT-07", "A lost edit acknowledgement is repeated safely.", .s2, needs: [.messageEdit], hooks: ["drop"]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let sent = try await context.say(alice, channel.id, ["before"])[0]
      try await context.shows(bob, channel.id, [.text("before")], "bob")
      let probe = context.probe(bob)
      try await context.inject(FaultRule("edit", user: users.a.id, phase: .beforeReply, action: .drop))
      do {
        _ = try await context.whileTimePasses(within: .seconds(300), step: .seconds(1)) {
          try await alice.edit(sent, to: .text("after"))
        }
      } catch let error as ChatError {
        try context.expect(error.isRetryable, "an error that may be tried again", observed: "\(error)")
        _ = try await context.whileTimePasses { try await alice.edit(sent, to: .text("after")) }
      }
      try await context.shows(bob, channel.id, [.text("after")], "bob")
      try context.expectEqual(
        try await context.serverMessages(channel.id).map(\.content), [.text("after")], "at the service")
      try context.expect(Set(probe.updated(in: channel.id).map(\.content)) == [.text("after")], "one change")
    },
  ]

  static let deletion: [ConformanceCase] = [
    ConformanceCase(
      "DEL-01", "A recall leaves a tombstone and nothing else.", .s1, needs: [.messageRecall]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let tablet = try await context.online(users.a, "tablet")
      try await context.sees(tablet, channel.id)
      let sent = try await context.say(alice, channel.id, ["first", "unutterablewords", "last"])
      for device in [alice, tablet, bob] { try await context.shows(device, channel.id, sent.map(\.content)) }
      // Nobody else may hold the file open whose bytes are read.
      let probes = [alice, tablet, bob].map { context.probe($0, readsCache: false) }
      _ = try await alice.recall(sent[1])
      for (device, probe) in zip([alice, tablet, bob], probes) {
        try await context.eventually("the recall is told") { probe.recalled(in: channel.id).count == 1 }
        let read = try await context.newest(5, of: channel.id, by: device)
        try context.expectEqual(read.map(\.id), sent.map(\.id), "the place stays")
        try context.expectEqual(read.map(\.isRecalled), [false, true, false], "the tombstone")
        try context.expectEqual(read[1].position, sent[1].position, "its position")
        try context.expectEqual(try await device.searchCache(CacheSearch("unutterablewords")).items.count, 0, "found")
      }
      let folder = try context.details(of: bob).folder
      await bob.disconnect()
      try context.expect(!(try contains(folder, "unutterablewords")), "the words are gone from the files")
    },
    ConformanceCase("DEL-02", "A recall while I was offline is learnt.", .s1, needs: [.messageRecall]) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let sent = try await context.say(alice, channel.id, ["one", "two", "three"])
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      await bob.suspend()
      _ = try await alice.recall(sent[1])
      await bob.resume()
      try await context.eventually("bob learns of it", within: .seconds(60)) {
        let read = try await bob.history(of: channel.id, .newest(5)).messages
        return read.filter { !$0.isRecalled }.map(\.content) == [.text("one"), .text("three")]
      }
    },
    ConformanceCase(
      "DEL-03", "A recall that overtakes its message keeps it dead.", .s1, needs: [.messageRecall], hooks: ["reorder"]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      try await context.say(alice, channel.id, ["0"])
      try await context.shows(bob, channel.id, [.text("0")], "bob")
      try await context.quiet()
      let probe = context.probe(bob)
      // The next two frames to bob change places: the message and its recall.
      try await context.inject(
        FaultRule("any", user: users.b.id, times: 2, phase: .beforePush, action: .reorder(2)))
      let sent = try await context.say(alice, channel.id, ["never seen"])[0]
      _ = try await context.whileTimePasses { try await alice.recall(sent) }
      try await context.quiet()
      try await context.removeRules()
      try await context.say(alice, channel.id, ["1"])
      try await context.eventually("bob is up to date") {
        try await bob.history(of: channel.id, .newest(5)).messages.filter { !$0.isRecalled }.map(\.content)
          == [.text("0"), .text("1")]
      }
      try context.expect(
        !probe.received(in: channel.id).contains { $0.content == .text("never seen") }, "never told as a text")
      try context.expect(probe.recalled(in: channel.id).count <= 1, "told once at most")
    },
    ConformanceCase("DEL-04", "Recalling the last message fixes the preview.", .s2, needs: [.messageRecall]) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let sent = try await context.say(alice, channel.id, ["before", "last"])
      try await context.shows(bob, channel.id, sent.map(\.content), "bob")
      _ = try await alice.recall(sent[1])
      for device in [alice, bob] {
        try await context.eventually("the preview follows") {
          guard let last = try await device.cachedChannels().first(where: { $0.id == channel.id })?.lastMessage else {
            return false
          }
          return last.isRecalled || last.content == .text("before")
        }
      }
      let listed = try await context.wholeList(of: bob, page: 10).first { $0.id == channel.id }
      try context.expect(listed?.lastMessage?.content != .text("last"), "the list too")
    },
    ConformanceCase(
      "DEL-05", "Recalling the only message leaves an empty, living channel.", .s2, needs: [.messageRecall]
    ) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let sent = try await context.say(alice, channel.id, ["only"])[0]
      try await context.shows(bob, channel.id, [.text("only")], "bob")
      _ = try await alice.recall(sent)
      try await context.unreadBecomes(0, of: channel.id, on: bob)
      try context.expect(
        try await context.wholeList(of: bob, page: 10).contains { $0.id == channel.id }, "the channel is listed")
      try await context.say(alice, channel.id, ["next"])
      try await context.unreadBecomes(1, of: channel.id, on: bob)
    },
    ConformanceCase("DEL-06", "Delete for me is for me.", .s2) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let tablet = try await context.online(users.a, "tablet")
      try await context.sees(tablet, channel.id)
      let sent = try await context.say(bob, channel.id, ["stays", "goes"])
      for device in [alice, tablet] { try await context.shows(device, channel.id, sent.map(\.content)) }
      let shown = try await context.newest(2, of: channel.id, by: alice)
      try await alice.deleteForMe([shown[1]])
      try await context.shows(alice, channel.id, [.text("stays")], "alice")
      try await context.shows(bob, channel.id, [.text("stays"), .text("goes")], "bob")
      await alice.disconnect()
      let again = try await context.online(users.a)
      try await context.shows(again, channel.id, [.text("stays")], "alice after a restart")
      // Where it is native, the other device follows when it reads anew.
      let fresh = try await context.online(users.a, "fresh")
      let isNative = context.capabilities[.messageDeleteForMe] == .native
      try await context.shows(
        fresh, channel.id, isNative ? [.text("stays")] : [.text("stays"), .text("goes")], "a fresh device")
      // The service keeps for others what this user does not see.
      context.exempt("G3")
    },
    ConformanceCase("DEL-07", "A message just sent can be recalled at once.", .s2, needs: [.messageRecall]) { context in
      let (alice, bob, channel, _) = try await context.pair()
      for number in 0..<3 {
        let sent = try await context.whileTimePasses { try await alice.send(.text("\(number)"), to: channel.id) }
        let tombstone = try await context.whileTimePasses(within: .seconds(10)) { try await alice.recall(sent) }
        try context.expect(tombstone.isRecalled, "a tombstone")
      }
      try await context.eventually("bob sees no words") {
        try await bob.history(of: channel.id, .newest(10)).messages.allSatisfy(\.isRecalled)
      }
    },
    ConformanceCase("DEL-08", "Who may recall is checked.", .s2, needs: [.messageRecall, .channelDirect]) { context in
      let (alice, bob, channel, _) = try await context.direct()
      let sent = try await context.say(alice, channel.id, ["mine"])[0]
      try await context.shows(bob, channel.id, [.text("mine")], "bob")
      try await context.expectErrorInTime("permission") { _ = try await bob.recall(sent) } where: {
        if case .permission = $0 { true } else { false }
      }
      try context.expectEqual(try await context.serverMessages(channel.id).map(\.content), [.text("mine")], "at the service")
      try await context.shows(bob, channel.id, [.text("mine")], "bob")
    },
    ConformanceCase(
      "DEL-09", "Recalling twice is not an error to the user.", .s3, needs: [.messageRecall]
    ) { context in
      let (alice, _, channel, users) = try await context.pair()
      let sent = try await context.say(alice, channel.id, ["gone"])[0]
      _ = try await alice.recall(sent)
      let again = try await context.whileTimePasses { try await alice.recall(sent) }
      try context.expect(again.isRecalled, "a tombstone again")
      let tablet = try await context.online(users.a, "tablet")
      let shown = try await context.newest(5, of: channel.id, by: tablet)
      try context.expect(shown.allSatisfy(\.isRecalled), "a tombstone or nothing")
    },
    ConformanceCase(
      "DEL-12", "A tombstone is there for who never saw the message.", .s2, needs: [.messageRecall]) { context in
      let (alice, _, channel, users) = try await context.pair()
      let sent = try await context.say(alice, channel.id, ["before", "oldwordsofalice", "after"])
      _ = try await alice.recall(sent[1])
      let mark = await context.mark()
      let fresh = try await context.online(users.b, "fresh")
      let read = try await context.newest(5, of: channel.id, by: fresh)
      if context.has(.messageRecallTombstone) {
        try context.expectEqual(read.map(\.id), sent.map(\.id), "the places")
        try context.expectEqual(read.map(\.isRecalled), [false, true, false], "the tombstone")
      } else {
        try context.expectEqual(read.map(\.id), [sent[0].id, sent[2].id], "neighbours without a gap")
      }
      guard context.offers("journal") else { return }
      let frames = await context.harness.faults?.wire(since: mark) ?? []
      try context.expect(
        !frames.contains { String(decoding: $0.bytes, as: UTF8.self).contains("oldwordsofalice") },
        "the old words are not on the wire")
    },
  ]

  /// Whether any file below `folder` holds these bytes.
  static func contains(_ folder: String, _ text: String) throws -> Bool {
    let wanted = Data(text.utf8)
    let files = FileManager.default.enumerator(atPath: folder)
    while let name = files?.nextObject() as? String {
      let path = folder + "/" + name
      var isFolder: ObjCBool = false
      guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), !isFolder.boolValue else { continue }
      if try Data(contentsOf: URL(fileURLWithPath: path)).range(of: wanted) != nil { return true }
    }
    return false
  }
}
