import ChatInterchange
import ChatJSON
import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("What is known at second hand yields to what the service told")
struct SecondHandTests {
  /// What somebody says of one message and of its channel. `at` nil: the service itself.
  private struct Said {
    var text: String
    var at: Int64?
    var members: [UserID] = ["alice", "bob"]

    var service: MemoryService {
      func raw(_ row: JSONObject) -> JSONText {
        JSONText(unchecked: JSONValue.object(at.map { SecondHand.mark(row, at: $0) } ?? row).text())
      }
      let service = MemoryService(vendor: "old")
      let time = Timestamp(milliseconds: 1_594_000_000_000)
      let message = Message(
        channel: "c", id: "m", sender: "alice", position: MessagePosition(time: time, id: "m"), createdAt: time,
        content: .text(text))
      service.state.withLock { state in
        state.channels = [
          MemoryService.StoredChannel(
            record: ChannelRecord(channel: Channel(id: "c", kind: .group, name: text), raw: raw(["id": "c"])),
            members: members.map { MemberRecord(channel: "c", member: Member(user: User(id: $0))) },
            messages: [MessageRecord(message: message, raw: raw(["id": "m"]))])
        ]
      }
      return service
    }
  }

  private func state(_ archive: Archive) async throws -> [String] {
    let channel = try #require(try await archive.channels(limit: 1).first)
    let message = try #require(try await archive.messages(in: channel.ordinal, limit: 1).first).stored.message()
    guard case .text(let text) = message.message.content else { return [] }
    let members = try await archive.members(of: channel.ordinal, limit: 10).map { try $0.member().member.user.id.rawValue }
    return [try channel.stored.channel().channel.name ?? "", text] + members
  }

  struct Case: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var first: Int64?
    var second: Int64?
    var keepsFirst: Bool
  }

  static let cases: [Case] = [
    Case(testDescription: "the service, then a device", first: nil, second: 900, keepsFirst: true),
    Case(testDescription: "a device, then the service", first: 900, second: nil, keepsFirst: false),
    Case(testDescription: "an older device, then a newer one", first: 0, second: 900, keepsFirst: false),
    Case(testDescription: "a newer device, then an older one", first: 900, second: 5, keepsFirst: true),
    Case(testDescription: "two that know the same", first: 5, second: 5, keepsFirst: true),
    Case(testDescription: "the service, twice", first: nil, second: nil, keepsFirst: true),
  ]

  @Test("the better of two stays, whichever came first, and a list of members goes with its channel", arguments: cases)
  func order(_ order: Case) async throws {
    let harness = try MigrationHarness()
    let archive = try Archive.create(
      at: harness.archivePath, Archive.Identity(tool: "test", vendor: "old", createdAt: harness.clock.now))
    let first = Said(text: "first", at: order.first)
    let second = Said(text: "second", at: order.second, members: ["alice", "carol"])
    _ = try await archive.importing(first.service, clock: harness.clock)
    let summary = try await archive.importing(second.service, clock: harness.clock)
    #expect(summary.messages == 0 && summary.channels == 0)
    #expect(summary.replaced == (order.keepsFirst ? 0 : 2))
    let kept = try await state(archive)
    switch (order.keepsFirst, order.second) {
    case (false, _): #expect(kept == ["second", "second", "alice", "carol"])
    case (true, .some): #expect(kept == ["first", "first", "alice", "bob"])
    // Of the service's own lists what is new joins, as ever.
    case (true, nil): #expect(kept == ["first", "first", "alice", "bob", "carol"])
    }
    #expect(try await archive.verify().isWhole)
    #expect(try await archive.importing(second.service, clock: harness.clock) == MergeSummary())
  }

  @Test("a pull over an import of a device takes the service's word, and an import read in its place does not")
  func pulled() async throws {
    for (told, expected) in [(Said(text: "told", at: nil), "told"), (Said(text: "guessed", at: 0), "device")] {
      let harness = try MigrationHarness()
      let archive = try Archive.create(
        at: harness.archivePath, Archive.Identity(tool: "test", vendor: "old", createdAt: harness.clock.now))
      _ = try await archive.importing(Said(text: "device", at: 900).service, clock: harness.clock)
      let options = ExtractionOptions(refreshes: true)
      _ = try await Extractor(source: told.service, archive: archive, options: options, clock: harness.clock).run()
      #expect(try await state(archive).prefix(2) == [expected, expected])
      try await archive.close()
    }
  }

  @Test("only a mark in its place is one")
  func marks() {
    let row: JSONObject = ["a": 1]
    #expect(SecondHand.knowledge(of: JSONValue.object(SecondHand.mark(row, at: 7, ["of": "x"])).text()) == 7)
    #expect(SecondHand.knowledge(of: JSONValue.object(SecondHand.mark(row, at: -7)).text()) == 0)
    #expect(SecondHand.knowledge(of: #"{"a":1,"_secondHand":{"at":7}}"#) == nil)
    #expect(SecondHand.knowledge(of: nil) == nil)
    #expect(SecondHand.replaces(nil, with: "{}") == false)
  }
}
