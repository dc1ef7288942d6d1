import ChatInterchange
import Testing
import UnifiedChat

@testable import ChatMigration

/// Something that goes wrong at the destination behind our back.
struct PlantedDifference: Sendable, CustomTestStringConvertible {
  var testDescription: String
  var plant: @Sendable (inout MemoryService.State) -> Void
  var what: String
  var sign: VerifySign = .different

  /// In the third channel, message number 12.
  static func message(
    _ name: String, _ what: String, _ change: @escaping @Sendable (inout Message) -> Void
  ) -> PlantedDifference {
    PlantedDifference(
      testDescription: name, plant: { state in change(&state.channels[index(state)].messages[12].message) }, what: what)
  }

  /// Channels may be made in any order.
  static func index(_ state: MemoryService.State) -> Int {
    state.channels.firstIndex { $0.record.origin?.id == "channel 2" } ?? 0
  }

  static let all: [PlantedDifference] = [
    .message("one character", "message.content.text") { $0.content = .text("你好 12 x") },
    .message("a form that Unicode calls equal", "message.customType") { $0.customType = "é" },
    .message("one millisecond", "message.createdAt") { $0.createdAt.milliseconds += 1 },
    .message("another sender", "message.sender") { $0.sender = "user-0" },
    .message("a lost edit", "message.editedAt") { $0.editedAt = Timestamp(milliseconds: 1) },
    .message("a mention too much", "message.mentions") { $0.mentions.everyone = true },
    .message("custom data added", "message.customData") { $0.customData = JSONText(unchecked: "{}") },
    .message("a reaction added", "message.reactions") { $0.reactions = [Reaction(key: "x", users: ["user-1"])] },
    .message("a reply to another message", "message.replyTo") { $0.replyTo = Reply(id: "nowhere") },
    PlantedDifference(
      testDescription: "one missing", plant: { state in state.channels[index(state)].messages.remove(at: 12) },
      what: "missing", sign: .missing),
    PlantedDifference(
      testDescription: "one doubled",
      plant: { state in
        let index = index(state)
        var copy = state.channels[index].messages[12]
        copy.message.id = "again"
        state.channels[index].messages.append(copy)
      }, what: "doubled"),
    PlantedDifference(
      testDescription: "two swapped", plant: { state in state.channels[index(state)].messages.swapAt(12, 13) },
      what: "order"),
    PlantedDifference(
      testDescription: "one from nowhere",
      plant: { state in
        let index = index(state)
        var copy = state.channels[index].messages[12]
        copy.origin = nil
        copy.message.content = .text("who am I")
        state.channels[index].messages.append(copy)
      }, what: "not in the archive", sign: .extra),
    PlantedDifference(
      testDescription: "a changed file",
      plant: { state in
        for key in state.files.keys where state.files[key]?.count == 4 { state.files[key]?[0] ^= 1 }
      }, what: "message.content.attachment.sha256"),
    PlantedDifference(
      testDescription: "a file that is gone", plant: { $0.files = [:] }, what: "no such file", sign: .failed),
    PlantedDifference(
      testDescription: "another role",
      plant: { state in state.channels[index(state)].members[3].member.role = .admin }, what: "member.role"),
    PlantedDifference(
      testDescription: "a member gone", plant: { state in state.channels[index(state)].members.remove(at: 3) },
      what: "missing"),
    PlantedDifference(
      testDescription: "a member too much",
      plant: { state in
        let index = index(state)
        var copy = state.channels[index].members[3]
        copy.member.user.id = "intruder"
        state.channels[index].members.append(copy)
      }, what: "not in the archive"),
    PlantedDifference(
      testDescription: "another name of the channel",
      plant: { state in state.channels[index(state)].record.channel.name = "other" }, what: "channel.name"),
  ]
}

@Suite("Verification finds every difference")
struct VerifyTests {
  @Test("a planted difference is found", arguments: PlantedDifference.all)
  func planted(_ difference: PlantedDifference) async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let archive = try await harness.pull()
    try await harness.load(archive)
    harness.destination.state.withLock { difference.plant(&$0) }
    let result = try await harness.verify(archive)
    #expect(!result.isEqual)
    let channel = try #require(result.channels.first { $0.channel == "channel 2" })
    #expect(channel.sign == difference.sign)
    #expect(channel.examples.contains { $0.what.contains(difference.what) }, "\(channel.examples)")
    #expect(result.sentence.hasPrefix("The migration is NOT equal"))
    let digestsTell = ["message.", "missing", "doubled", "order", "not in"].contains { difference.what.hasPrefix($0) }
    if digestsTell, channel.memberProblems == 0 { #expect(!channel.digestsAreEqual) }
  }

  @Test("a wrong or missing user is found")
  func users() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let archive = try await harness.pull()
    try await harness.load(archive)
    harness.destination.state.withLock {
      $0.users[2].user.name = "x"
      $0.users.remove(at: 5)
    }
    let result = try await harness.verify(archive)
    #expect(result.userProblems == 2 && !result.isEqual)
    #expect(result.userExamples.map(\.what) == ["user.name", "missing"])
  }

  @Test("a declared loss explains its difference, and nothing else")
  func declared() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    harness.destination.state.withLock {
      $0.degrade = { record in
        guard !record.message.reactions.isEmpty else { return [] }
        record.message.reactions = []
        return [Loss(field: "message.reactions", treatment: .dropped, explanation: "no reactions")]
      }
    }
    let archive = try await harness.pull()
    let summary = try await harness.load(archive)
    let result = try await harness.verify(archive)
    #expect(result.isEqual && result.channels.allSatisfy(\.digestsAreEqual))
    let loss = try #require(summary.losses.first { $0.loss.field == "message.reactions" })
    #expect(loss.count == result.explained["message.reactions"])
    #expect(!loss.examples.isEmpty)
    harness.destination.state.withLock { $0.channels[0].messages[5].message.createdAt.milliseconds += 1 }
    #expect(try await harness.verify(archive).isEqual == false)
  }

  @Test("a loss that is not declared is an error")
  func undeclared() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    harness.destination.state.withLock {
      $0.degrade = { record in
        record.message.reactions = []
        return []
      }
    }
    let archive = try await harness.pull()
    try await harness.load(archive)
    let result = try await harness.verify(archive)
    #expect(!result.isEqual && result.unexplained.keys.contains("message.reactions"))
  }

  @Test("what is said to be kept elsewhere has to read back")
  func keptElsewhere() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    harness.destination.state.withLock {
      $0.degrade = { record in
        record.message.customData = nil
        return [Loss(field: "message.customData", treatment: .keptElsewhere, explanation: "in the envelope")]
      }
    }
    let archive = try await harness.pull()
    try await harness.load(archive)
    #expect(try await harness.verify(archive).isEqual == false)
  }

  @Test("equal messages in the same millisecond are two on both sides")
  func duplicates() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    harness.source.state.withLock { state in
      for number in 0..<5 {
        var copy = state.channels[0].messages[29]
        copy.message.id = MessageID("copy-\(number)")
        state.channels[0].messages.append(copy)
      }
    }
    let archive = try await harness.pull()
    try await harness.load(archive)
    #expect(harness.destination.state.withLock { $0.channels.reduce(0) { $0 + $1.messages.count } } == 125)
    #expect(try await harness.verify(archive).isEqual)
  }

  @Test("verification writes nothing")
  func readsOnly() async throws {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    let archive = try await harness.pull()
    try await harness.load(archive)
    let writes = harness.destination.writes
    _ = try await harness.verify(archive)
    #expect(harness.destination.writes == writes)
  }
}
