import AllAdapters
import ChatEmulation
import ChatHarness
import ChatMigration
import ChatTransport
import Foundation
import Testing
import UnifiedChat

@Suite("A server whose pages never end is not asked for ever", .timeLimit(.minutes(2)))
struct EndlessPagesTests {
  /// A vendor's service with alice, bob and a channel of both, and lists that can be spoilt.
  private struct Town {
    let server: EndlessServer
    let service: VendorService
    let channel: ChannelID
    let clock = ManualClock()

    init(_ vendor: String) async throws {
      var spoilt: EndlessServer?
      service = try VendorService(vendor, clock: clock, device: "phone") { inner in
        let server = EndlessServer(inner)
        spoilt = server
        return server
      }
      server = try #require(spoilt)
      let destination = try service.destination()
      let people = ["alice", "bob", "carol"].map { User(id: UserID($0), name: $0) }
      _ = try await destination.putUsers(people.map { UserRecord(user: $0) })
      let record = ChannelRecord(channel: Channel(id: "original", kind: .group, name: "one"))
      let members = people.map { MemberRecord(channel: "original", member: Member(user: $0)) }
      let outcome = try await destination.putChannel(record, members: members)
      channel = try #require(outcome.id)
      let messages = (1...3).map { number in
        let message = Message(
          channel: channel, id: MessageID("m\(number)"), sender: "alice", createdAt: clock.now + .seconds(number - 60),
          content: .text("\(number)"))
        return MessageRecord(message: message, origin: Origin(vendor: "old", id: "m\(number)", channel: "original"))
      }
      _ = try await destination.putMessages(messages, in: channel)
    }

    func client() async throws -> any ChatAdapter {
      let adapter = try service.adapter()
      _ = try await adapter.connect(as: "alice", credential: try await service.credential(of: "alice"))
      return adapter
    }
  }

  struct List: Sendable, CustomTestStringConvertible {
    var vendor: String
    var name: String
    /// The part of an address by which the list is asked for.
    var address: String
    var testDescription: String { "\(vendor): \(name)" }
  }

  static let sources = [
    List(vendor: "sendbird", name: "users", address: "/users?"),
    List(vendor: "sendbird", name: "channels", address: "/group_channels?"),
    List(vendor: "sendbird", name: "members", address: "/members?"),
    List(vendor: "sendbird", name: "messages", address: "/messages?"),
    List(vendor: "openim", name: "users", address: "/user/get_users"),
    List(vendor: "openim", name: "groups", address: "/group/get_groups"),
    List(vendor: "openim", name: "members", address: "/group/get_group_member_list"),
    List(vendor: "openim", name: "messages", address: "/msg/pull_msg_by_seq"),
    List(vendor: "leancloud", name: "users", address: "/classes/_User?"),
    List(vendor: "leancloud", name: "conversations", address: "/classes/_Conversation?"),
    List(vendor: "leancloud", name: "messages", address: "/messages?"),
    List(vendor: "leancloud", name: "what is muted", address: "/permanent-silenceds?"),
  ]

  /// With its pages of this address in a circle, the server is not asked for ever, and called by its name.
  private func ends(_ town: Town, _ address: String, _ body: () async throws -> Void) async throws {
    town.server.spoil(address)
    do { try await body() } catch let error as ChatError { #expect(error.kind == .protocolViolation, "\(error)") }
    #expect(town.server.requests < EndlessServer.patience)
  }

  @Test("when everything is read from it", arguments: sources)
  func source(_ list: List) async throws {
    let town = try await Town(list.vendor)
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("endless-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    func pull(_ name: String) async throws {
      let archive = try Archive.create(
        at: folder.appendingPathComponent(name).path,
        Archive.Identity(id: "1", vendor: VendorName(list.vendor), createdAt: town.clock.now))
      _ = try await Extractor(
        source: try town.service.source(), archive: archive, clock: town.clock
      ).run()
      try await archive.close()
    }
    try await ends(town, list.address) { try await pull("a.uchat") }
    #expect(town.server.requests > 0 || list.name == "what is muted")
    // Nothing was wrong but the pages.
    town.server.spoil(nil)
    try await pull("b.uchat")
  }

  struct Call: Sendable, CustomTestStringConvertible {
    var list: List
    var body: @Sendable (any ChatAdapter, ChannelID) async throws -> Void
    var testDescription: String { list.testDescription }

    init(_ vendor: String, _ name: String, _ address: String, _ body: @escaping @Sendable (any ChatAdapter, ChannelID) async throws -> Void) {
      list = List(vendor: vendor, name: name, address: address)
      self.body = body
    }
  }

  static let calls = [
    Call("sendbird", "channels", "/my_group_channels?") { adapter, _ in _ = try await adapter.channels(ChannelQuery(limit: 100_000), page: nil) },
    Call("sendbird", "members", "/members?") { adapter, channel in _ = try await adapter.members(of: channel, limit: 100_000, page: nil) },
    Call("sendbird", "changes", "/changelogs?") { adapter, channel in _ = try await adapter.changes(in: channel, since: nil) },
    Call("openim", "members", "/group/get_group_member_list") { adapter, channel in
      _ = try await adapter.members(of: channel, limit: 100_000, page: nil)
    },
    Call("openim", "channels", "/conversation/") { adapter, _ in _ = try await adapter.channels(ChannelQuery(limit: 100_000), page: nil) },
    Call("leancloud", "roles", "/classes/_ConversationMemberInfo") { adapter, channel in
      _ = try await adapter.members(of: channel, limit: 100_000, page: nil)
    },
  ]

  @Test("when a client asks for a list", arguments: calls)
  func client(_ call: Call) async throws {
    let town = try await Town(call.list.vendor)
    let adapter = try await town.client()
    try await ends(town, call.list.address) { try await call.body(adapter, town.channel) }
    town.server.spoil(nil)
    try await call.body(adapter, town.channel)
    await adapter.disconnect()
  }

  static let writings = [
    List(vendor: "sendbird", name: "messages", address: "/messages?"),
    List(vendor: "openim", name: "messages", address: "/msg/pull_msg_by_seq"),
    List(vendor: "leancloud", name: "conversations", address: "/classes/_Conversation?"),
    List(vendor: "leancloud", name: "messages", address: "/messages/history?"),
  ]

  @Test("when a destination looks for what it holds, changes and removes", arguments: writings)
  func destination(_ list: List) async throws {
    let town = try await Town(list.vendor)
    let destination = try town.service.destination()
    let record = ChannelRecord(channel: Channel(id: "original", kind: .group, name: "one"))
    let absent = MessageRecord(
      message: Message(channel: town.channel, id: "no", sender: "alice", createdAt: town.clock.now, content: .text("no")))
    let acts: [() async throws -> Void] = [
      { _ = try await destination.putChannel(record, members: []) },
      { _ = try await destination.changeMessage(absent, id: "absent", in: town.channel) },
      { try await destination.removeMessages(["absent"], in: town.channel) },
      { _ = try await destination.putMessages([absent], in: town.channel) },
      { try await destination.removeChannel(town.channel) },
    ]
    for (number, act) in acts.enumerated() {
      town.server.spoil(list.address)
      // What the vendor cannot do, or not with such an id, is refused before or after; not the point here.
      do { try await act() } catch is ChatError {}
      #expect(town.server.requests < EndlessServer.patience, "act \(number)")
    }
  }

  @Test("cursors that are nobody's are refused, whatever number is in them")
  func cursors() async throws {
    for vendor in VendorService.names {
      let source = try VendorService(vendor).source()
      let numbers = ["", "-1", "0", "9223372036854775807", "9223372036854775808", "18446744073709551615", "1e9", "é", "a/b/c", "%00"]
      for number in numbers + numbers.flatMap({ ["g" + $0, "u" + $0, $0 + "/" + $0, $0 + "/0/"] }) {
        let cursor = Cursor(number)
        _ = try? await source.users(after: cursor)
        _ = try? await source.channels(after: cursor)
        _ = try? await source.members(of: "sg_1", after: cursor)
        _ = try? await source.messages(in: "sg_1", after: cursor)
      }
    }
  }
}
