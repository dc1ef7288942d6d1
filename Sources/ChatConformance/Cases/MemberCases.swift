import ChatCache
import ChatClient
import UnifiedChat

extension ConformanceSuite {
  static let member: [ConformanceCase] = [
    ConformanceCase(
      "MEMB-01", "Adding and removing is reported once to each side.", .s2, needs: [.memberRemove]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let c = try await context.user("carol")
      let carol = try await context.online(c)
      let (atAlice, atBob, atCarol) = (context.probe(alice), context.probe(bob), context.probe(carol))
      try await alice.invite([c.id], to: channel.id)
      try await context.eventually("carol joined") { atCarol.joined(channel.id).count == 1 }
      try await context.eventually("bob is told") { atBob.memberJoined(c.id, in: channel.id) == 1 }
      try await alice.removeMembers([c.id], from: channel.id)
      try await context.eventually("carol is told that she is out") { atCarol.left(channel.id).count == 1 }
      try await context.eventually("bob is told that she is out") { atBob.memberLeft(c.id, in: channel.id).count == 1 }
      try await context.quiet()
      try context.expectEqual(atBob.memberJoined(c.id, in: channel.id), 1, "joins told to bob")
      try context.expectEqual(atBob.memberLeft(c.id, in: channel.id).count, 1, "departures told to bob")
      try context.expectEqual(atCarol.joined(channel.id).count, 1, "joins told to carol")
      if case .left? = atCarol.left(channel.id).first { throw context.failure("removed, not left", "left") }
      try context.expect(atAlice.memberJoined(c.id, in: channel.id) <= 1, "told once at most to who did it")
      let order = atBob.events.compactMap { event -> String? in
        switch event.kind {
        case .memberJoined(channel.id, let member) where member.user.id == c.id: "joined"
        case .memberLeft(channel.id, c.id, _): "left"
        default: nil
        }
      }
      try context.expectEqual(order, ["joined", "left"], "what bob was told, in order")
      try context.expectEqual(
        Set(try await context.serverMembers(channel.id).map(\.user.id)), [users.a.id, users.b.id], "members")
    },
    ConformanceCase(
      "MEMB-02", "A removed member receives and sends no more.", .s1, needs: [.memberRemove]
    ) { context in
      let (chats, users, channel) = try await context.group("alice", "bob", "carol")
      try await context.say(chats[1], channel.id, ["before"])
      let probe = context.probe(chats[2])
      try await context.shows(chats[2], channel.id, [.text("before")], "carol")
      try await chats[0].removeMembers([users[2].id], from: channel.id)
      try await context.eventually("carol is told") { probe.left(channel.id).count == 1 }
      let told = probe.received(in: channel.id).count
      try await context.say(chats[1], channel.id, (0..<5).map { "later \($0)" })
      try await context.quiet()
      try context.expectEqual(probe.received(in: channel.id).count, told, "messages told after the removal")
      try await context.expectErrorInTime("permission or notFound") {
        _ = try await chats[2].send(.text("let me in"), to: channel.id)
      } where: {
        if case .permission = $0 { true } else { $0 == .notFound }
      }
      try context.expectEqual(try await context.serverMessages(channel.id).count, 6, "messages at the service")
      // What was here before stays readable, and nothing of what came later gets here; also after a new login.
      func cached(_ chat: Chat) async throws -> [String] {
        try await chat.searchCache(CacheSearch("before")).items.compactMap(\.content.searchableText)
          + chat.searchCache(CacheSearch("later")).items.compactMap(\.content.searchableText)
      }
      try context.expectEqual(try await cached(chats[2]), ["before"], "what carol's cache holds")
      await chats[2].disconnect()
      let again = try await context.online(users[2])
      try await context.idle()
      try context.expectEqual(try await cached(again), ["before"], "what carol's cache holds after a new login")
      let page = try? await context.whileTimePasses { try await again.history(of: channel.id, .newest(20)) }
      try context.expect(
        (page?.messages ?? []).allSatisfy { $0.content == .text("before") || $0.isNotice || $0.state != .sent }, "nothing of later",
        observed: "\((page?.messages ?? []).map(\.content))")
    },
    ConformanceCase("MEMB-03", "Leaving is one event whatever the vendor calls it.", .s2) { context in
      let (chats, users, channel) = try await context.group("alice", "bob", "carol")
      let (atBob, atCarol) = (context.probe(chats[1]), context.probe(chats[2]))
      try await chats[1].leave(channel.id)
      try await context.eventually("bob is told") { atBob.left(channel.id).count == 1 }
      try await context.eventually("carol is told") { atCarol.memberLeft(users[1].id, in: channel.id).count == 1 }
      try await context.quiet()
      try context.expectEqual(atBob.left(channel.id), [.left], "what bob was told")
      // A vendor may tell others no reason.
      let told = atCarol.memberLeft(users[1].id, in: channel.id)
      try context.expect(told == [.left] || told == [.unknown], "carol is told once", observed: "\(told)")
      if context.differs(.ownerCannotLeave) {
        try await context.expectErrorInTime("permission for the owner") { try await chats[0].leave(channel.id) } where: {
          if case .permission = $0 { true } else { false }
        }
      }
    },
    ConformanceCase(
      "MEMB-04", "A long member list is complete while people leave.", .s2, needs: [.memberList]
    ) { context in
      let (alice, bob, channel, users) = try await context.pair()
      var others: [TestUser] = []
      for number in 0..<40 { others.append(try await context.user("u\(number)")) }
      for start in stride(from: 0, to: others.count, by: 10) {
        // A list in order of joining has the first ones on its first page.
        await context.harness.pass(.milliseconds(2))
        try await alice.invite(others[start..<start + 10].map(\.id), to: channel.id)
      }
      var seen: [UserID] = []
      var page: PageToken?
      var pages = 0
      repeat {
        let result = try await alice.members(of: channel.id, limit: 10, page: page)
        seen += result.items.map(\.user.id)
        page = result.next
        pages += 1
        if pages == 2 {
          // Two who were listed: whatever is counted from the beginning moves up.
          try await bob.leave(channel.id)
          if let listed = others.first(where: { seen.contains($0.id) }) {
            try await context.online(listed).leave(channel.id)
          }
        }
      } while page != nil && pages < 20
      let missing = Set(others.map(\.id) + [users.a.id]).subtracting(seen)
      try context.expect(missing.isEmpty, "everyone who stayed", observed: "\(seen.count) listed, not \(missing)")
      try context.expectEqual(Set(seen).count, seen.count, "each once")
    },
    ConformanceCase("MEMB-05", "Roles come back as written.", .s2, needs: [.memberRoles]) { context in
      let (chats, users, channel) = try await context.group("alice", "bob", "carol")
      let probe = context.probe(chats[2])
      try await chats[0].setRole(.admin, of: users[1].id, in: channel.id)
      try await context.eventually("it is told") {
        probe.memberChanges(users[1].id, in: channel.id).contains { $0.role == .admin }
          || probe.changed(channel.id).count > 0
      }
      let fresh = try await context.online(users[2], "fresh")
      for reader in [chats[0], fresh] {
        let members = try await context.wholeMembers(of: channel.id, by: reader)
        let roles = Dictionary(members.map { ($0.user.id, $0.role) }) { first, _ in first }
        try context.expectEqual(roles[users[1].id], .admin, "bob's role")
        try context.expectEqual(roles[users[2].id], .member, "carol's role")
        let highest: MemberRole = context.has(.memberOwnerRole) ? .owner : .admin
        try context.expectEqual(roles[users[0].id], highest, "alice's role")
      }
      try await chats[0].setRole(.member, of: users[1].id, in: channel.id)
      let after = try await context.wholeMembers(of: channel.id, by: chats[0]).first { $0.user.id == users[1].id }
      try context.expectEqual(after?.role, .member, "bob's role at the end")
    },
    ConformanceCase("MEMB-07", "A mute ends by itself.", .s2, needs: [.memberMute]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(alice)
      let isTimed = !context.differs(.mutesHaveNoEnd)
      if !isTimed {
        try await context.expectErrorInTime("invalidArgument(duration)") {
          try await alice.mute(users.b.id, in: channel.id, for: .seconds(600))
        } where: {
          $0 == .invalidArgument(field: "duration")
        }
      }
      try await alice.mute(users.b.id, in: channel.id, for: isTimed ? .seconds(600) : nil)
      try await context.expectErrorInTime("permission", within: .seconds(60)) {
        _ = try await bob.send(.text("muted"), to: channel.id)
      } where: {
        if case .permission = $0 { true } else { false }
      }
      let members = try await context.wholeMembers(of: channel.id, by: alice)
      if let member = members.first(where: { $0.user.id == users.b.id }), member.isMuted == false {
        throw context.failure("the list shows a muted member", "\(member)")
      }
      if isTimed {
        // A live service lets ten minutes pass for nobody.
        if context.harness.target == .live { throw CaseSkip(reason: .noHook("virtualTime")) }
        try await context.pass(.seconds(620), step: .seconds(20))
      } else {
        try await alice.unmute(users.b.id, in: channel.id)
      }
      try await context.say(bob, channel.id, ["free again"])
      try context.expectEqual(
        try await context.serverMessages(channel.id).map(\.content), [.text("free again")], "messages at the service")
      let told = probe.memberChanges(users.b.id, in: channel.id).compactMap(\.isMuted)
      try context.expect(told.count { $0 } <= 1 && told.count { !$0 } <= 1, "told once at most", observed: "\(told)")
    },
    ConformanceCase("MEMB-08", "A ban outlives a reconnect.", .s2, needs: [.memberBan]) { context in
      let (alice, bob, channel, users) = try await context.pair()
      let probe = context.probe(bob)
      try await alice.ban(users.b.id, from: channel.id, for: nil)
      try await context.eventually("bob is told") { !probe.left(channel.id).isEmpty }
      await bob.suspend()
      await bob.resume()
      try await context.eventually("bob is back") { await bob.state == .connected }
      try await context.expectErrorInTime("permission or notFound") { _ = try await bob.join(channel.id) } where: {
        if case .permission = $0 { true } else { $0 == .notFound }
      }
      let members = try await context.serverMembers(channel.id).map(\.user.id)
      try context.expect(!members.contains(users.b.id), "bob is no member", observed: "\(members)")
      try await alice.unban(users.b.id, from: channel.id)
      try await alice.invite([users.b.id], to: channel.id)
      try await context.eventually("bob is in again") { probe.joined(channel.id).count == 1 }
    },
    ConformanceCase("MEMB-09", "A block works in the declared direction only.", .s2, needs: [.userBlock]) { context in
      let (alice, bob, channel, users) = try await context.direct()
      try await context.say(bob, channel.id, ["before"])
      let probe = context.probe(alice)
      try await alice.block(users.b.id)
      try await context.expectErrorInTime("permission") {
        _ = try await bob.send(.text("blocked"), to: channel.id)
      } where: {
        if case .permission = $0 { true } else { false }
      }
      try await context.quiet()
      try context.expect(
        !probe.received(in: channel.id).contains { $0.content == .text("blocked") }, "alice is told nothing")
      try await alice.unblock(users.b.id)
      try await context.say(bob, channel.id, ["after"])
      try await context.eventually("alice hears again") {
        probe.received(in: channel.id).contains { $0.content == .text("after") }
      }
    },
    ConformanceCase("MEMB-10", "What a newcomer may read is the server's setting.", .s1) { context in
      // As the service begins, and where that can be switched, the other way too.
      var answers: Set<Bool> = []
      for isSwitched in context.offers("setting.history.newMembers") ? [false, true] : [false] {
        if isSwitched { try await context.perform(.setting("history.newMembers")) }
        let (alice, _, channel, _) = try await context.pair()
        try await context.say(alice, channel.id, 12)
        let c = try await context.user("carol")
        let carol = try await context.online(c)
        try await alice.invite([c.id], to: channel.id)
        try await context.sees(carol, channel.id)
        let page = try await context.whileTimePasses { try await carol.history(of: channel.id, .newest(50)) }
        let read = page.messages.filter { if case .text = $0.content { true } else { false } }
        // All or nothing, and nothing between.
        try context.expect(read.count == 12 || read.isEmpty, "all or nothing", observed: "\(read.count)")
        // A page that was read while the link came up may say that there could be more.
        try await context.eventually("nothing older") { try await carol.history(of: channel.id, .newest(50)).older == nil }
        answers.insert(read.isEmpty)
        try await context.say(alice, channel.id, ["new"])
        try await context.eventually("carol hears") {
          try await carol.history(of: channel.id, .newest(1)).messages.last?.content == .text("new")
        }
      }
      if context.offers("setting.history.newMembers") {
        try context.expectEqual(answers, [true, false], "the switch turns it round")
      }
      // A newcomer's cache claims an end that the service's own list does not have.
      context.exempt("G3")
    },
    ConformanceCase("MEMB-12", "There is always exactly one owner.", .s2, needs: [.memberOwnerRole]) { context in
      let (chats, users, channel) = try await context.group("alice", "bob", "carol")
      try await chats[0].setRole(.owner, of: users[1].id, in: channel.id)
      func owners(_ reader: Chat) async throws -> [UserID] {
        try await context.wholeMembers(of: channel.id, by: reader).filter { $0.role == .owner }.map(\.user.id)
      }
      try context.expectEqual(try await owners(chats[1]), [users[1].id], "the owner")
      let fresh = try await context.online(users[2], "fresh")
      try context.expectEqual(try await owners(fresh), [users[1].id], "the owner on a fresh device")
      try await chats[0].leave(channel.id)
      let stranger = try await context.user("dora")
      try await context.expectErrorInTime("invalidArgument or notFound for a stranger") {
        try await chats[1].setRole(.owner, of: stranger.id, in: channel.id)
      } where: {
        if case .invalidArgument = $0 { true } else if case .permission = $0 { true } else { $0 == .notFound }
      }
      try context.expectEqual(try await owners(chats[1]), [users[1].id], "the owner at the end")
    },
  ]
}
