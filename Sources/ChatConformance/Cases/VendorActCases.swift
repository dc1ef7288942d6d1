import ChatClient
import Foundation
import UnifiedChat

// What needs more of a vendor than calls of the contract: acts of its service, its own calls, its exports, its TLS.
extension ConformanceSuite {
  static let vendorActs: [ConformanceCase] = [
    ConformanceCase(
      "CHAN-15", "A service channel can be read and not written.", .s3, needs: [.channelService]
    ) { context in
      let acts = try context.vendorActs()
      let a = try await context.user("alice")
      let b = try await context.user("bob")
      let alice = try await context.online(a)
      let bob = try await context.online(b)
      let probes = [context.probe(alice), context.probe(bob)]
      let named = try await acts.announce(["welcome", "closed on Sunday"], to: [a.id, b.id])
      var seen: [ChannelID] = []
      for (chat, probe) in zip([alice, bob], probes) {
        try await context.eventually("what the service says is told") { probe.serviceWords == ["welcome", "closed on Sunday"] }
        let told = try context.need(probe.serviceChannels.first, "the channel of the service")
        try context.expect(named == nil || named == told, "the channel that was made", observed: "\(told)")
        try context.expectEqual(try await context.channel(told, by: chat).kind, .service, "its kind")
        let read = try await context.newest(10, of: told, by: chat).compactMap(\.content.words)
        try context.expectEqual(read, ["welcome", "closed on Sunday"], "its history")
        seen.append(told)
      }
      let channels = seen
      if context.differs(.serviceHearsReaders) {
        let heard = try await context.whileTimePasses { try await bob.send(.text("to the service"), to: channels[1]) }
        try context.expect(heard.id != nil, "an acknowledgement")
      } else {
        let error = try await context.expectErrorInTime("permission") {
          _ = try await bob.send(.text("to the service"), to: channels[1])
        } where: {
          if case .permission = $0 { true } else { false }
        }
        try context.expect(!error.isRetryable, "a final refusal", observed: "\(error.retry)")
      }
      try await context.quiet()
      let fresh = try await context.online(a, "fresh")
      for (reader, channel) in [(alice, channels[0]), (fresh, channels[0])] {
        let words = try await context.newest(10, of: channel, by: reader).compactMap(\.content.words)
        try context.expectEqual(words, ["welcome", "closed on Sunday"], "what another reader sees")
      }
      try await context.expectErrorInTime("no client makes such a channel") {
        _ = try await alice.createChannel(ChannelDraft(kind: .service, name: "mine"))
      } where: {
        switch $0 {
        case .permission, .invalidArgument(field: "kind"), .unsupported(.channelService): true
        default: false
        }
      }
    },
    ConformanceCase(
      "MEMB-11", "A request to join waits for a decision.", .s3, needs: [.memberJoinRequest]
    ) { context in
      let acts = try context.vendorActs()
      let (chats, users, channel) = try await context.group("alice", "bob")
      let c = try await context.user("carol")
      let carol = try await context.online(c)
      let faces = try (chats + [carol]).map { try context.need($0.vendorAdapter(as: (any ChatAdapter).self), "an adapter") }
      let (owner, admin, asking) = (faces[0], faces[1], faces[2])
      try await context.whileTimePasses { try await chats[0].setRole(.admin, of: users[1].id, in: channel.id) }
      try await acts.closeDoor(of: channel.id, by: owner)
      try await context.say(chats[0], channel.id, ["before"])
      let probe = context.probe(carol)
      try await context.expectErrorInTime("permission to come in without asking") {
        _ = try await carol.join(channel.id)
      } where: {
        if case .permission = $0 { true } else { false }
      }
      for (round, accept) in [false, true].enumerated() {
        try await acts.askToJoin(channel.id, "please, \(round)", by: asking)
        for manager in [owner, admin] {
          let seen = try await acts.openRequests(seenBy: manager).filter { $0.channel == channel.id }
          try context.expectEqual(seen.map(\.user), [c.id], "open requests")
          try context.expectEqual(seen.map(\.text), ["please, \(round)"], "their words")
        }
        try context.expect(
          try await !context.serverMembers(channel.id).contains { $0.user.id == c.id }, "no member while it is open")
        try await acts.answer(c.id, channel.id, accept: accept, by: accept ? admin : owner)
        try await context.expectErrorInTime("conflict for a second decision") {
          try await acts.answer(c.id, channel.id, accept: !accept, by: accept ? owner : admin)
        } where: {
          $0 == .conflict
        }
        try context.expectEqual(
          try await acts.openRequests(seenBy: owner).count, 0, "open requests after the decision")
        try context.expectEqual(
          try await context.serverMembers(channel.id).contains { $0.user.id == c.id }, accept, "a member afterwards")
      }
      try await context.eventually("carol is told, once") { probe.joined(channel.id).count == 1 }
      try await context.say(carol, channel.id, ["I am in"])
      try await context.eventually("all hear her") {
        try await chats[1].history(of: channel.id, .newest(1)).messages.last?.content == .text("I am in")
      }
      try context.expectEqual(probe.joined(channel.id).count, 1, "joined")
    },
    ConformanceCase("SEC-02", "A bad certificate is refused.", .s1, hooks: ["tls"]) { context in
      let user = try await context.user("alice")
      let mark = await context.mark()
      for certificate in BadCertificate.allCases {
        let adapter = try await context.harness.makeAdapter(
          TestDevice(name: "sec-02-\(certificate.rawValue)", clock: context.harness.clock), facing: certificate)
        let probe = EventProbe(adapter)
        let error = try await context.expectErrorInTime("network(tls): \(certificate.rawValue)") {
          _ = try await adapter.connect(as: user.id, credential: user.credential)
        } where: {
          $0 == .network(.tls)
        }
        for secret in context.secrets { try context.expect(!"\(error)".contains(secret), "no secret in the error") }
        // Nothing goes on behind the caller's back, least of all without TLS.
        try await context.pass(.seconds(30))
        guard case .disconnected = await adapter.state else {
          throw context.failure("the state disconnected", "\(await adapter.state)")
        }
        try context.expect(!probe.connectionStates.contains(.connected), "never connected")
        await adapter.disconnect()
      }
      try context.expectEqual(await context.framesOfClients(since: mark), 0, "requests to the service without TLS")
    },
    ConformanceCase(
      "MIGR-23", "The vendor's own export files are a source.", .s1, needs: [.sourceReadAll]
    ) { context in
      guard let acts = context.harness.acts, acts.exportForms > 0 else {
        throw CaseSkip(reason: .rule("the vendor exports no files"))
      }
      let (alice, bob, pair, users) = try await context.direct()
      let group = try await alice.createChannel(ChannelDraft(kind: .group, members: [users.b.id], name: "群 group"))
      try await context.say(alice, pair.id, ["to you", "e\u{301} 👩‍👩‍👧"])
      try await context.say(bob, group.id, ["to all", "gone"])
      var rich = MessageDraft(.text("with data"))
      rich.customData = JSONText(unchecked: #"{"k":[1,2]}"#)
      if context.has(.messageMention) { rich.mentions = Mentions(users: [users.b.id]) }
      let draft = rich
      let sent = try await context.whileTimePasses { try await alice.send(draft, to: group.id) }
      if context.has(.messageReaction) { _ = try await context.whileTimePasses { try await bob.addReaction("👍", to: sent) } }
      if context.has(.messageEdit) { _ = try await context.whileTimePasses { try await alice.edit(sent, to: .text("edited")) } }
      await context.harness.pass(.seconds(2))
      let live = try await Everything(of: try await context.harness.makeSource(), context)
      try context.expect(live.messages.values.reduce(0) { $0 + $1.count } >= 5, "messages at the live source")
      for form in 0..<acts.exportForms {
        let folder = context.file("export-\(form)")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let source = try await context.whileTimePasses { try await acts.export(to: folder, form: form) }
        let mark = await context.mark()
        let files = try await Everything(of: source, context)
        if context.offers("journal") {
          try context.expectEqual(await context.framesOfClients(since: mark), 0, "requests while files are read")
        }
        try context.expectEqual(files.unreadable, [], "what cannot be read")
        try context.expectEqual(files.channels, live.channels, "channels")
        try context.expectEqual(files.members, live.members, "members")
        for (channel, messages) in live.messages {
          let found = files.messages[channel] ?? []
          try context.expectEqual(found.map(\.id), messages.map(\.id), "messages of \(channel)")
          for (one, other) in zip(messages, found) {
            for (field, isEqual) in comparison(one, other) where !isEqual {
              try context.expect(
                acts.absentFromExports.contains(field), "a difference that is declared", observed: "\(field) of \(one.content)")
            }
          }
        }
      }
    },
  ]
}

/// All that a source has, in an order that does not depend on it.
private struct Everything {
  var channels: Set<String> = []
  var members: [ChannelID: Set<UserID>] = [:]
  var messages: [ChannelID: [Message]] = [:]
  var unreadable: [String] = []

  init(of source: any ChatSource, _ context: CaseContext) async throws {
    for record in try await Self.all(context, { try await source.channels(after: $0) }, &unreadable) {
      let id = record.channel.id
      channels.insert("\(id) \(record.channel.kind) \(record.channel.name ?? "")")
      let found = try await Self.all(context, { try await source.members(of: id, after: $0) }, &unreadable)
      members[id] = Set(found.map(\.member.user.id))
      messages[id] = try await Self.all(context, { try await source.messages(in: id, after: $0) }, &unreadable).map(\.message)
    }
    _ = try await Self.all(context, { try await source.users(after: $0) }, &unreadable)
  }

  private static func all<Item: Sendable>(
    _ context: CaseContext, _ page: @escaping @Sendable (Cursor?) async throws -> SourcePage<Item>, _ unreadable: inout [String]
  ) async throws -> [Item] {
    var items: [Item] = []
    var cursor: Cursor?
    repeat {
      let after = cursor
      let next = try await context.whileTimePasses { try await page(after) }
      items += next.items
      unreadable += next.unreadable.map { "\($0.kind) \($0.id ?? ""): \($0.reason)" }
      cursor = next.next
    } while cursor != nil
    return items
  }
}

extension EventProbe {
  fileprivate var serviceChannels: [ChannelID] {
    events.compactMap { event in
      switch event.kind {
      case .messageReceived(let message) where message.content.words != nil: message.channel
      default: nil
      }
    }
  }

  fileprivate var serviceWords: [String] {
    events.compactMap { event in
      if case .messageReceived(let message) = event.kind { message.content.words } else { nil }
    }
  }
}

extension MessageContent {
  /// What is said by a text, or by a notice of the service.
  fileprivate var words: String? {
    switch self {
    case .text(let text): text
    case .system(let notice): notice.text
    default: nil
    }
  }
}

extension CaseContext {
  /// Skips the case where a target has none, as a live service.
  fileprivate func vendorActs() throws -> any VendorActs {
    guard let acts = harness.acts else { throw CaseSkip(reason: .noHook("acts")) }
    return acts
  }
}
