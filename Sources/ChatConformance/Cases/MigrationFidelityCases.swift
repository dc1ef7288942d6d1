import ChatMigration
import Foundation
import Synchronization
import UnifiedChat

// What a report says, what a source does meanwhile, and what an archive keeps.
extension ConformanceSuite {
  static let migrationFidelity: [ConformanceCase] = [
    ConformanceCase(
      "MIGR-02", "Every difference is in the fidelity report.", .s1, needs: [.sourceReadAll, .destinationSender]
    ) { context in
      let service = IdealService(clock: context.harness.clock)
      let id = ChannelID("migr-02")
      let users = ["migr02ann", "migr02ben"].map { UserID($0) }
      let written = Self.richMessages(in: id, users)
      try await IdealDestination(service: service).fill(id, users, written)
      let report = try await context.movedIn(service, "rich")
      try context.expectEqual(report.load.messages, written.count, "messages written")
      let arrived = try await context.serverMessages(try await context.migrated(id))
      try context.expectEqual(arrived.count, written.count, "messages at the destination")
      let original = await service.messages(in: id).map(\.message)
      try Self.expectTallies(context, original, arrived, [report])
      try context.expect(report.fields.allSatisfy { ($0.undeclared ?? 0) == 0 }, "nothing undeclared", observed: "\(report.fields)")
    },
    ConformanceCase(
      "MIGR-06", "A source that changes during the run is caught up by follow.", .s1,
      needs: [.sourceReadAll, .destinationSender, .destinationIdempotent]
    ) { context in
      let sample = try await MigrationSample(clock: context.harness.clock)
      let run = MigrationRun(
        source: sample.source, archive: context.file("followed"),
        destination: try await context.harness.makeDestination(), readBack: try await context.harness.makeSource(),
        clock: context.harness.clock)
      let passes = Counter()
      let options = FollowOptions(interval: .seconds(5)) {
        passes.add()
        // People go on writing while the first passes run.
        if passes.value <= 2 { await sample.write(["late \(passes.value)", "later \(passes.value)"], to: "sample_0") }
        return passes.value > 3
      }
      let report = try await context.whileTimePasses(within: .seconds(3600)) {
        try await run.follow(options) { _ in }
      }
      try expectEqual(context, report)
      let arrived = try await context.serverMessages(try await context.migrated("sample_0")).map(\.content)
      let expected = (sample.messages["sample_0"] ?? []).map(\.content)
        + ["late 1", "later 1", "late 2", "later 2"].map { .text($0) }
      try context.expectEqual(arrived, expected, "everything, in order")
    },
    ConformanceCase(
      "MIGR-07", "Unknown and odd content reaches the archive byte for byte.", .s1, needs: [.sourceReadAll]
    ) { context in
      let service = IdealService(clock: context.harness.clock)
      let id = ChannelID("migr-07")
      let odd = Self.oddContents
      let written = odd.enumerated().map { number, content in
        Message(
          channel: id, id: MessageID("odd\(number)"), sender: "migr07ann",
          createdAt: Timestamp(milliseconds: 1_700_000_000_000 + Int64(number)), content: content)
      }
      try await IdealDestination(service: service).fill(id, ["migr07ann"], written)
      let path = context.file("odd")
      _ = try await context.whileTimePasses {
        try await MigrationRun(source: IdealSource(service: service), archive: path, clock: context.harness.clock).pull()
      }
      let kept = try await archived(path, id)
      try context.expectEqual(kept.map(\.content), odd, "contents in the archive")
      for (message, content) in zip(kept, odd) {
        try context.expectBytes(Self.rawText(message.content), Self.rawText(content) ?? "", "the bytes of a \(content.kindName)")
      }
      // What a client of this vendor sent as it liked comes out of its own source the same way.
      let (alice, _, channel, _) = try await context.pair()
      let payload = #"{"a":1, "a":2,  "b" : 1.0,"c":1e2,"d":"\u00e9\/","big":9007199254740993}"#
      _ = try await context.whileTimePasses {
        try await alice.send(MessageDraft(.custom(JSONText(unchecked: payload))), to: channel.id)
      }
      let own = context.file("own")
      let source = try await context.harness.makeSource()
      _ = try await context.whileTimePasses {
        try await MigrationRun(source: source, archive: own, clock: context.harness.clock).pull()
      }
      let payloads = try await archived(own, channel.id).compactMap { message in
        if case .custom(let text) = message.content { text.text } else { nil }
      }
      try context.expectEqual(payloads, [payload], "the payload in the archive")
    },
    ConformanceCase(
      "MIGR-08", "Attachments travel or are named.", .s1, needs: [.sourceReadAll, .fileUpload, .destinationSender]
    ) { context in
      let (alice, _, channel, _) = try await context.pair()
      let files = (0..<4).map { number in (0..<2000).map { UInt8(truncatingIfNeeded: $0 &* (number + 3)) } }
      for (number, bytes) in files.enumerated() {
        let content = MessageContent.file(
          Attachment(name: "f\(number).bin", mimeType: "application/octet-stream", source: .bytes(bytes)))
        _ = try await context.whileTimePasses { try await alice.send(MessageDraft(content), to: channel.id) }
      }
      // In process every address leads to the emulator, which does not know this one.
      context.exempt("G9")
      if context.has(.fileByURL) {
        let gone = MessageContent.file(
          Attachment(url: "http://gone.test/x.bin", name: "gone.bin", size: 9, mimeType: "application/octet-stream"))
        _ = try await context.whileTimePasses { try await alice.send(MessageDraft(gone), to: channel.id) }
      }
      let service = IdealService(clock: context.harness.clock)
      let report = try await context.movedOut(to: service, "files")
      let arrived = await service.messages(in: channel.id).map(\.message).compactMap(\.content.attachment)
      for (number, bytes) in files.enumerated() {
        let attachment = try context.need(arrived.first { $0.name == "f\(number).bin" }, "file \(number)")
        let stored = await service.stored(try context.need(attachment.url, "an address"))
        try context.expect(stored == bytes, "the same bytes of file \(number)", observed: "\(stored?.count ?? 0) bytes")
      }
      guard context.has(.fileByURL) else { return }
      try context.expect(arrived.contains { $0.name == "gone.bin" }, "the message of the lost file is there")
      let isNamed = report.exceptions.contains { $0.kind == "file" } || report.unreadable.contains { $0.kind == "file" }
      try context.expect(isNamed, "the lost file is in the report", observed: report.sentence)
    },
    ConformanceCase(
      "MIGR-12", "Channel kinds without counterpart are written or named, never silently another.", .s1,
      needs: [.sourceReadAll, .destinationSender]
    ) { context in
      let service = IdealService(clock: context.harness.clock)
      let destination = IdealDestination(service: service)
      let users = ["migr12ann", "migr12ben"].map { UserID($0) }
      let kinds: [ChannelKind] = [.group, .direct, .open, .temporary, .service]
      for kind in kinds {
        try await destination.fill(
          ChannelID("migr12_\(kind)"), users, [Self.message("one", 0, ChannelID("migr12_\(kind)"), users[0])], kind: kind)
      }
      let report = try await context.movedIn(service, "kinds")
      var changed: [String] = []
      for kind in kinds {
        let id = "migr12_\(kind)"
        if let refused = report.exceptions.first(where: { $0.kind == "channel" && $0.id == id }) {
          try context.expect(!refused.reason.isEmpty, "a reason why \(id) is refused")
          continue
        }
        let found = try context.need(await context.migratedChannel(ChannelID(id)), id).kind
        if found != kind { changed.append("\(kind) as \(found)") }
      }
      let named = report.fields.filter { "channel.kind".hasPrefix($0.field) }
        .reduce(0) { $0 + $1.keptElsewhere + $1.degraded + $1.dropped }
      try context.expect(named >= changed.count, "each in the report", observed: "\(named) named, changed: \(changed)")
    },
    ConformanceCase("MIGR-15", "Archive, JSON Lines, archive is the identity.", .s1, needs: [.sourceReadAll]) { context in
      let (alice, bob, channel, _) = try await context.pair()
      try await context.say(alice, channel.id, ["first", "第二 👩‍👩‍👧", "e\u{301}"])
      try await context.say(bob, channel.id, ["answer"])
      let (first, second) = (context.file("first"), context.file("second"))
      let source = try await context.harness.makeSource()
      _ = try await context.whileTimePasses {
        try await MigrationRun(source: source, archive: first, clock: context.harness.clock).pull()
      }
      let archive = try Archive.open(at: first)
      try await ArchiveLines.export(archive, to: context.file("first.jsonl"))
      let identity = try await archive.identity()
      let (again, summary) = try await ArchiveLines.importing(
        context.file("first.jsonl"), into: second, identity, at: context.harness.clock.now)
      try context.expectEqual(summary.unreadable, 0, "lines that cannot be read")
      try await ArchiveLines.export(again, to: context.file("second.jsonl"))
      try context.expectEqual(try await again.digest(), try await archive.digest(), "the digests")
      let texts = try ["first.jsonl", "second.jsonl"].map {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: context.file($0))))
      }
      try context.expect(texts[0] == texts[1], "the same bytes", observed: "\(texts[0].count) and \(texts[1].count)")
      try await archive.close()
      try await again.close()
    },
    ConformanceCase(
      "MIGR-18", "Rollback removes what this run made and nothing else.", .s2, needs: [.destinationSender]
    ) { context in
      let (alice, bob, channel, _) = try await context.pair()
      let before = try await context.say(alice, channel.id, ["was here before", "this too"])
      let sample = try await MigrationSample(clock: context.harness.clock)
      var options = MigrationOptions()
      options.refusesNonEmpty = false
      let destination = try await context.harness.makeDestination()
      let run = MigrationRun(
        source: sample.source, archive: context.file("rolled"), destination: destination, options: options,
        clock: context.harness.clock)
      _ = try await context.whileTimePasses(within: .seconds(3600)) { try await run.run() }
      let summary: RollbackSummary
      do {
        summary = try await context.whileTimePasses(within: .seconds(3600)) { try await run.rollback() }
      } catch let error as ChatError {
        guard case .unsupported = error.kind else { throw error }
        throw CaseSkip(reason: .rule("nothing can be removed there"))
      }
      try await context.shows(bob, channel.id, before.map(\.content), "bob")
      try context.expectEqual(
        try await context.serverMessages(channel.id).map(\.id), before.map(\.id), "what was there before")
      for id in sample.messages.keys where summary.leftCount == 0 {
        try context.expectEqual(try await context.migratedChannel(id)?.id, nil, "what the run made")
      }
      try context.expect(
        summary.channels + summary.messages + summary.leftCount > 0, "removed or listed", observed: "\(summary)")
    },
    ConformanceCase(
      "MIGR-13", "Limits of the target are met by rule.", .s2, needs: [.sourceReadAll, .destinationSender]
    ) { context in
      guard let limit = context.harness.limits["text.characters"] ?? context.harness.limits["frame.bytes"] else {
        throw CaseSkip(reason: .rule("no limit of texts is known"))
      }
      let service = IdealService(clock: context.harness.clock)
      let id = ChannelID("migr-13")
      let texts = ["short", String(repeating: "x", count: Int(limit) + 1), "after"]
      try await IdealDestination(service: service).fill(
        id, ["migr13ann"], texts.enumerated().map { message($1, $0, id, "migr13ann") })
      let report = try await context.movedIn(service, "long")
      let arrived = try await context.serverMessages(try await context.migrated(id))
      let there = arrived.contains { $0.content == .text(texts[1]) }
      let isNamed = report.exceptions.contains { $0.kind == "message" } || report.load.refused > 0
        || report.fields.contains { $0.field.hasPrefix("message.content") && $0.degraded + $0.dropped + $0.keptElsewhere > 0 }
      try context.expect(there || isNamed, "the long text whole, or in the report", observed: report.sentence)
      for text in [texts[0], texts[2]] {
        try context.expect(arrived.contains { $0.content == .text(text) }, "\"\(text)\" arrives")
      }
    },
    ConformanceCase(
      "MIGR-16", "There and back, what differs is in the reports.", .s2, needs: [.sourceReadAll, .destinationSender]
    ) { context in
      let service = IdealService(clock: context.harness.clock)
      let id = ChannelID("migr-16")
      let users = ["migr16ann", "migr16ben"].map { UserID($0) }
      let written = richMessages(in: id, users)
      try await IdealDestination(service: service).fill(id, users, written)
      let first = try await context.movedIn(service, "there")
      let home = IdealService(clock: context.harness.clock)
      let second = try await context.movedOut(to: home, "back")
      let channel = try await context.migrated(id)
      let returned = await home.messages(in: channel).map(\.message).filter { !$0.isNotice }
      let before = await service.messages(in: id).map(\.message)
      try context.expectEqual(returned.count, before.count, "messages that came back")
      try Self.expectTallies(context, before, returned, [first, second])
    },
    ConformanceCase(
      "MIGR-20", "Pairs and groups both come along.", .s2, needs: [.sourceReadAll, .channelDirect]
    ) { context in
      let (alice, bob, pair, users) = try await context.direct()
      try await context.say(alice, pair.id, ["to you alone"])
      try await context.say(bob, pair.id, ["and back"])
      let group = try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: "group"))
      try await context.say(alice, group.id, ["to all"])
      let service = IdealService(clock: context.harness.clock)
      try expectEqual(context, try await context.movedOut(to: service, "both"))
      for (channel, texts) in [(pair.id, ["to you alone", "and back"]), (group.id, ["to all"])] {
        let arrived = await service.messages(in: channel).map(\.message).filter { !$0.isNotice }
        try context.expectEqual(arrived.map(\.content), texts.map { .text($0) }, "the messages of \(channel)")
        try context.expect(
          arrived.allSatisfy { $0.sender == users.a.id || $0.sender == users.b.id }, "their writers",
          observed: "\(arrived.map(\.sender))")
      }
      let moved = try await IdealSource(service: service).channels(after: nil).items.map(\.channel)
      try context.expectEqual(moved.first { $0.id == pair.id }?.kind, .direct, "the kind of the pair")
      try context.expectEqual(moved.first { $0.id == group.id }?.kind, .group, "the kind of the group")
      for channel in [pair.id, group.id] {
        let members = try await IdealSource(service: service).members(of: channel, after: nil).items.map(\.member.user.id)
        try context.expectEqual(Set(members), [users.a.id, users.b.id], "the members of \(channel)")
      }
      let known = try await IdealSource(service: service).users(after: nil).items.map(\.user.id)
      try context.expect(
        Set(known).isSuperset(of: [users.a.id, users.b.id]), "everybody who wrote, with or without a profile", observed: "\(known)")
    },
    ConformanceCase(
      "MIGR-10", "Read marks come over where possible.", .s2, needs: [.sourceReadAll, .destinationSender]
    ) { context in
      let service = IdealService(clock: context.harness.clock)
      let id = ChannelID("migr-10")
      let users = ["migr10ann", "migr10ben"].map { UserID($0) }
      let ideal = IdealDestination(service: service)
      try await ideal.fill(id, users, (0..<10).map { message("text \($0)", $0, id, users[0]) })
      let record = try context.need(
        try await IdealSource(service: service).channels(after: nil).items.first { $0.channel.id == id }, "the channel")
      let written = await service.messages(in: id).map(\.message)
      try await ideal.finishChannel(
        id, original: record,
        members: [
          MemberRecord(channel: id, member: Member(user: User(id: users[1]), role: .member, readPosition: written[5].position))
        ])
      let report = try await context.movedIn(service, "marks")
      let there = try await context.migrated(id)
      let members = try await context.serverMembers(there)
      let arrived = try await context.serverMessages(there)
      try context.expectEqual(arrived.count, written.count, "messages")
      let mark = members.first { $0.user.id == users[1] }?.readPosition
      let read = arrived.count { message in mark.map { (message.position ?? .highest) <= $0 } ?? false }
      // A destination may keep the mark of the origin as it is.
      let line = report.fields.first { "member.readPosition".hasPrefix($0.field) }
      let isNamed = line.map { $0.keptElsewhere + $0.degraded + $0.dropped > 0 } ?? false
      try context.expect(read == 6 || mark == written[5].position || isNamed, "six are read, or a line about it", observed: "\(read), \(report.fields.map(\.field))")
    },
  ]

  private static func message(_ text: String, _ number: Int, _ channel: ChannelID, _ sender: UserID) -> Message {
    Message(
      channel: channel, id: MessageID("\(channel)-\(number)"), sender: sender,
      createdAt: Timestamp(milliseconds: 1_700_000_000_000 + Int64(number) * 1000), content: .text(text))
  }

  /// One message for each thing that may get lost.
  private static func richMessages(in id: ChannelID, _ users: [UserID]) -> [Message] {
    var all = (0..<9).map { message("message \($0)", $0, id, users[$0 % 2]) }
    all[1].reactions = [Reaction(key: "👍", users: users)]
    all[2].mentions = Mentions(users: [users[0]])
    all[3].customData = JSONText(unchecked: #"{"k":[1,2]}"#)
    all[4].editedAt = all[4].createdAt + .milliseconds(500)
    all[5].customType = "note"
    all[6].content = .custom(JSONText(unchecked: #"{"kind":"poll"}"#))
    all[7].content = .location(Location(latitude: 48.1, longitude: 11.5, name: "here"))
    all[8].mentions = Mentions(everyone: true)
    return all
  }

  static func comparison(_ before: Message, _ after: Message) -> [(field: String, isEqual: Bool)] {
    [
      ("message.sender", before.sender == after.sender), ("message.createdAt", before.createdAt == after.createdAt),
      ("message.content", before.content == after.content), ("message.mentions", before.mentions == after.mentions),
      ("message.customType", before.customType == after.customType),
      ("message.customData", before.customData?.text == after.customData?.text),
      ("message.reactions", before.reactions == after.reactions), ("message.editedAt", before.editedAt == after.editedAt),
    ]
  }

  /// Every difference is counted in a line of a report, and no line says that something was lost which is there.
  private static func expectTallies(
    _ context: CaseContext, _ before: [Message], _ after: [Message], _ reports: [FidelityReport]
  ) throws {
    let lines = reports.flatMap(\.fields).filter { $0.field.hasPrefix("message.") }
    let pairs = zip(before, after).map { comparison($0, $1) }
    for field in pairs.first?.map(\.field) ?? [] {
      let differing = pairs.count { pair in pair.contains { $0.field == field && !$0.isEqual } }
      let named = lines.filter { line in
        line.field == field || line.field.hasPrefix(field + ".") || field.hasPrefix(line.field + ".")
      }
      let lost = named.reduce(0) { $0 + $1.dropped + $1.degraded }
      let counted = named.reduce(lost) { $0 + $1.keptElsewhere }
      try context.expect(
        differing <= counted, "a line for each of \(differing) differences of \(field)",
        observed: "\(counted) in \(named.map(\.field))")
      try context.expect(
        lost <= differing, "a difference of \(field) for each of \(lost) lines", observed: "\(differing) differ")
    }
    let fields = Set(pairs.first?.map(\.field) ?? [])
    let others = lines.filter { line in
      line.dropped + line.degraded > 0 && !fields.contains { $0 == line.field || line.field.hasPrefix($0 + ".") }
    }
    try context.expect(others.isEmpty, "no line about what was never there", observed: "\(others.map(\.field))")
  }

  private static let oddContents: [MessageContent] = [
    .text("before\u{0}after"), .text("e\u{301}"), .text("é"), .text("\u{FFFF}\u{2028}\u{FEFF}"),
    .unknown(kind: "9999", raw: JSONText(unchecked: #"{"zz" : [1.0, 1e2, 9007199254740993], "zz":2}"#)),
    .unknown(kind: "77", raw: JSONText(unchecked: #"{"half":"\ud83d"}"#)),
    .custom(JSONText(unchecked: #"{ "b":1,"a":"\u0041" }"#)), .custom(JSONText(unchecked: "[1,2, 3]")),
  ]

  private static func rawText(_ content: MessageContent) -> String? {
    switch content {
    case .text(let text): text
    case .unknown(_, let raw), .custom(let raw): raw.text
    default: nil
    }
  }

  /// The messages of a channel in an archive, notices left out.
  private static func archived(_ path: String, _ channel: ChannelID) async throws -> [Message] {
    let archive = try Archive.open(at: path)
    var messages: [Message] = []
    if let kept = try await archive.channel(channel) {
      messages = try await archive.messages(in: kept.ordinal, limit: 1000).map { try $0.stored.message().message }
    }
    try await archive.close()
    return messages.filter { !$0.isNotice }
  }
}
