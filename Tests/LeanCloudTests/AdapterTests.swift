import ChatEmulation
import ChatJSON
import LeanCloudAdapter
import LeanCloudWire
import Testing
import UnifiedChat

@Suite("The adapter on the emulator")
struct AdapterTests {
  @Test(
    "connect, create, send, receive, history, over every sub-protocol",
    arguments: ["protobuf2", "proto2base64", "json"])
  func journey(_ name: String) async throws {
    let bench = try Bench()
    let options = ["protocol": JSONText(unchecked: "\"\(name)\"")]
    let alice = try await bench.connect("alice", options)
    let bob = try await bench.connect("bob", options)
    let channel = try await alice.adapter.createChannel(.direct(with: "bob"))
    #expect(channel.kind == .direct)
    #expect(channel.peer == "bob")
    let joined = await bob.next { if case .channelJoined(let channel) = $0.kind { channel } else { nil } }
    #expect(joined?.id == channel.id)
    #expect(try await bob.adapter.createChannel(.direct(with: "alice")).id == channel.id)

    let sent = try await alice.adapter.send(alice.text("héllo 😀", to: channel.id))
    let received = await bob.nextMessage()
    #expect(received?.id == sent.id)
    #expect(received?.position == sent.position)
    #expect(received?.sender == "alice")
    #expect(text(received) == "héllo 😀")
    let again = try await alice.adapter.send(alice.text("héllo 😀", to: channel.id))
    #expect(again.id == sent.id)

    let page = try await bob.adapter.history(of: channel.id, .newest(10))
    #expect(page.messages.map(\.id) == [sent.id])
    #expect(page.older == nil)
    #expect(page.newer == nil)
    await alice.adapter.disconnect()
    #expect(await alice.adapter.state == .disconnected(.requested))
  }

  @Test(
    "history pages meet without a gap, whatever the limit, in both directions", arguments: [1, 3, 50, 100, 130, 500])
  func history(_ limit: Int) async throws {
    let bench = try Bench()
    try await bench.load(
      [["type": "channel", "id": "c", "kind": "group"], ["type": "member", "channel": "c", "user": "alice"]]
        + (0..<260).map { index in
          [
            "type": "message", "channel": "c", "id": .string("m\(index)"), "sender": "bob",
            // A hundred of them share one millisecond.
            "createdAt": .int(1_600_000_000_000 + Int64(index < 100 ? 0 : index)),
            "content": ["kind": "text", "text": .string("\(index)")],
          ]
        })
    let alice = try await bench.connect("alice")
    let id = ChannelID(LeanCloudID.objectID(for: "c"))
    var backward: [Message] = []
    var query = HistoryQuery(limit: limit)
    while true {
      let page = try await alice.adapter.history(of: id, query)
      #expect(page.messages.count <= limit)
      backward = page.messages + backward
      guard let older = page.older else { break }
      query = HistoryQuery(anchor: .cursor(older), direction: .older, limit: limit)
    }
    #expect(backward.count == 260)
    let positions = backward.compactMap(\.position)
    #expect(zip(positions, positions.dropFirst()).allSatisfy { $0 < $1 })

    var forward: [Message] = []
    query = HistoryQuery(anchor: .oldest, direction: .newer, limit: limit)
    while true {
      let page = try await alice.adapter.history(of: id, query)
      forward += page.messages
      guard let newer = page.newer else { break }
      query = HistoryQuery(anchor: .cursor(newer), direction: .newer, limit: limit)
    }
    #expect(forward == backward)

    let middle = try #require(backward[130].position)
    let around = try await alice.adapter.history(of: id, .before(middle, limit: limit))
    #expect(around.messages == Array(backward[..<130].suffix(limit)))
    #expect(around.newer != nil)
    #expect((around.older == nil) == (limit >= 130))
  }

  @Test("an edit, a recall, typing and read marks come as events, once")
  func changes() async throws {
    let bench = try Bench()
    let alice = try await bench.connect("alice")
    let bob = try await bench.connect("bob")
    let channel = try await alice.adapter.createChannel(.direct(with: "bob"))
    let sent = try await alice.adapter.send(alice.text("one", to: channel.id))
    _ = await bob.nextMessage()
    let edited = try await alice.adapter.edit(sent, to: .text("two"))
    let seen = await bob.next { if case .messageUpdated(let message) = $0.kind { message } else { nil } }
    #expect(seen?.id == sent.id)
    #expect(text(seen) == "two")
    #expect(seen?.editedAt == edited.editedAt)

    try await bob.adapter.markRead(channel.id, upTo: sent.position)
    let mark = await alice.next { event -> MessagePosition? in
      if case .readChanged(channel.id, "bob", let position) = event.kind { position } else { nil }
    }
    #expect(mark == sent.position)

    try await bob.adapter.setTyping(true, in: channel.id)
    let typist = await alice.next { if case .typingStarted(channel.id, let user) = $0.kind { user } else { nil } }
    #expect(typist == "bob")
    _ = try await bob.adapter.send(bob.text("done", to: channel.id, id: "c-2"))
    let stopped = await alice.next { if case .typingEnded(channel.id, let user) = $0.kind { user } else { nil } }
    #expect(stopped == "bob")

    _ = try await alice.adapter.recall(sent)
    let tombstone = await bob.next { if case .messageRecalled(let message) = $0.kind { message } else { nil } }
    #expect(tombstone?.id == sent.id)
    #expect(tombstone?.position == sent.position)
    let kept = try await bob.adapter.message(try #require(sent.id), in: channel.id)
    #expect(kept.isRecalled)
  }

  @Test("members come and go, each told once to each side")
  func members() async throws {
    let bench = try Bench()
    let alice = try await bench.connect("alice")
    let bob = try await bench.connect("bob")
    let carol = try await bench.connect("carol")
    let channel = try await alice.adapter.createChannel(ChannelDraft(members: ["bob"], name: "n"))
    try await alice.adapter.invite(["carol"], to: channel.id)
    let invited = await carol.next { if case .channelJoined(let channel) = $0.kind { channel } else { nil } }
    #expect(invited?.name == "n")
    let seen = await bob.next {
      if case .memberJoined(channel.id, let member) = $0.kind { member.user.id } else { nil }
    }
    #expect(seen == "carol")
    #expect(
      try await bob.adapter.members(of: channel.id, limit: 2, page: nil).items.map(\.user.id) == ["alice", "bob"])
    try await alice.adapter.removeMembers(["carol"], from: channel.id)
    let gone = await carol.next { if case .channelLeft(channel.id, let reason) = $0.kind { reason } else { nil } }
    #expect(gone == .removed(by: "alice"))
    let told = await bob.next { if case .memberLeft(channel.id, "carol", let reason) = $0.kind { reason } else { nil } }
    #expect(told == .removed(by: "alice"))
    try await bob.adapter.leave(channel.id)
    let left = await alice.next { if case .memberLeft(channel.id, "bob", let reason) = $0.kind { reason } else { nil } }
    #expect(left == .left)
    await #expect { _ = try await carol.adapter.channel(channel.id) } throws: {
      ($0 as? ChatError)?.kind == .permission()
    }
    await #expect { _ = try await carol.adapter.channel("nowhere") } throws: { ($0 as? ChatError)?.kind == .notFound }
    await #expect { _ = try await carol.adapter.send(carol.text("x", to: channel.id)) } throws: { error in
      (error as? ChatError)?.kind == .permission() && (error as? ChatError)?.vendor?.code == "4317"
    }
  }

  @Test("a lost socket is opened again with the session token, and what was missed is announced first")
  func reconnect() async throws {
    let bench = try Bench()
    let alice = try await bench.connect("alice")
    let bob = try await bench.connect("bob")
    let channel = try await alice.adapter.createChannel(.direct(with: "bob"))
    try await bench.host.control.act(.end(.abrupt), on: "alice")
    _ = try await bob.adapter.send(bob.text("meanwhile", to: channel.id))
    let missed = await bench.whileTimePasses {
      await alice.next { if case .missedEvents(let channels) = $0.kind { channels ?? [] } else { nil } }
    }
    #expect(missed == [])
    #expect(await alice.adapter.state == .connected)
    _ = try await bob.adapter.send(bob.text("later", to: channel.id, id: "c-2"))
    #expect(text(await alice.nextMessage()) == "later")
  }

  @Test("a conflict and a kick are final; goaway only moves the session")
  func endings() async throws {
    let bench = try Bench()
    let alice = try await bench.connect("alice")
    try await bench.host.control.perform(.goaway(user: "alice"))
    let again = await alice.next { if case .connectionChanged(.reconnecting) = $0.kind { true } else { nil } }
    #expect(again == true)
    _ = await bench.whileTimePasses {
      await alice.next { if case .connectionChanged(.connected) = $0.kind { true } else { nil } }
    }
    try await bench.host.control.perform(.kick(user: "alice"))
    let refused = await alice.next { event -> RefusalReason? in
      if case .connectionChanged(.refused(let reason)) = event.kind { reason } else { nil }
    }
    #expect(refused == .kickedByOtherDevice)
    await bench.pass(seconds: 5)
    #expect(await alice.adapter.state == .refused(.kickedByOtherDevice))
  }

  @Test("an expired session token leads the long way in, once")
  func expiry() async throws {
    let bench = try Bench()
    let alice = try await bench.connect("alice")
    try await bench.host.control.perform(.expireCredential(user: "alice"))
    try await bench.host.control.act(.end(.abrupt), on: "alice")
    let renewed = await bench.whileTimePasses {
      await alice.next { if case .credentialRenewed = $0.kind { true } else { nil } }
    }
    #expect(renewed == true)
    _ = await alice.next { if case .connectionChanged(.connected) = $0.kind { true } else { nil } }
  }

  @Test("a message above 5 KB is refused before it leaves, and the link stays")
  func tooLarge() async throws {
    let bench = try Bench()
    let alice = try await bench.connect("alice")
    let channel = try await alice.adapter.createChannel(.direct(with: "bob"))
    await #expect {
      _ = try await alice.adapter.send(alice.text(String(repeating: "x", count: 5200), to: channel.id))
    } throws: { error in
      (error as? ChatError)?.kind == .tooLarge(limit: 5120, unit: .bytes)
    }
    _ = try await alice.adapter.send(alice.text("short", to: channel.id, id: "c-2"))
  }

  @Test("a file goes up, travels in a message and comes down again")
  func files() async throws {
    let bench = try Bench()
    let alice = try await bench.connect("alice")
    let bob = try await bench.connect("bob")
    let channel = try await alice.adapter.createChannel(.direct(with: "bob"))
    let bytes = Array("the bytes".utf8)
    let file = Attachment(
      name: "n.txt", mimeType: "text/plain", durationMilliseconds: 1500, metadata: JSONText(unchecked: #"{"a": 1}"#),
      source: .bytes(bytes))
    let stored = try await alice.adapter.upload(file, for: channel.id, progress: nil)
    let message = OutgoingMessage(
      channel: channel.id, localID: "l", clientMessageID: "l", draft: MessageDraft(.file(stored)))
    _ = try await alice.adapter.send(message)
    let received = try #require(await bob.nextMessage()?.content.attachment)
    #expect(received == stored)
    #expect(try await bob.adapter.download(received, limit: 100) == bytes)
  }
}
