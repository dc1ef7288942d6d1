import AllAdapters
import ChatEmulation
import ChatHarness
import ChatInterchange
import ChatJSON
import ChatTransport
import Foundation
import Synchronization
import Testing
import UnifiedChat

@testable import ChatMigration

/// Chats of many kinds, as neutral records.
private enum Chats {
  static let start: Int64 = 1_600_000_000_000
  static let users: [UserID] = ["ana", "bob", "cleo", "dan", "eve"]
  static let photo = Array("not a photo, but bytes".utf8)
  static let digest = "cddc7ff0af08fdbfe154308503f963028a75691c4aa5c411a70a2ad56e1d028a"

  static func lines() -> [JSONValue] {
    var records: [Record] = users.map {
      .user(UserRecord(user: User(id: $0, name: "Name of \($0)", customData: JSONText(unchecked: #"{"lang":"zh"}"#))))
    }
    records.append(.file(FileRecord(sha256: digest, name: "图.png", mimeType: "image/png", bytes: photo)))
    records += channel("5f0000000000000000000001", .group, users)
    records += channel("5f0000000000000000000002", .direct, Array(users.prefix(2)))
    records += channel("5f0000000000000000000003", .group, Array(users.suffix(3)))
    return records.map { $0.json() }
  }

  private static func channel(_ name: String, _ kind: ChannelKind, _ members: [UserID]) -> [Record] {
    let id = ChannelID(name)
    var channel = Channel(
      id: id, kind: kind, name: kind == .direct ? nil : "频道 \(name.suffix(1))",
      customData: JSONText(unchecked: #"{"topic":"x"}"#), createdAt: Timestamp(milliseconds: start), createdBy: members[0])
    channel.isDistinct = kind == .direct
    var records: [Record] = [.channel(ChannelRecord(channel: channel))]
    let messages = (0..<30).map { message($0, in: id, members) }
    for (index, user) in members.enumerated() {
      let mark = messages[index * 7 + 1].message
      records.append(
        .member(
          MemberRecord(
            channel: id,
            member: Member(
              user: User(id: user), role: kind == .direct ? .member : [.owner, .admin, .member][min(index, 2)],
              readPosition: mark.position))))
    }
    return records + messages.map { .message($0) }
  }

  static func message(_ number: Int, in channel: ChannelID, _ users: [UserID]) -> MessageRecord {
    let time = Timestamp(milliseconds: start + Int64(number - (number % 3 == 2 ? 1 : 0)) * 1000)
    let id = MessageID("\(channel.rawValue.suffix(4))-\(String(number + 1000))-abcdefgh")
    var message = Message(
      channel: channel, id: id, sender: users[number % users.count], position: MessagePosition(time: time, id: id),
      createdAt: time, content: content(number, users))
    if number % 5 == 1 { message.replyTo = Reply(id: MessageID("\(channel.rawValue.suffix(4))-\(String(number + 999))-abcdefgh")) }
    if number % 7 == 3 { message.mentions = Mentions(users: [users[0], users[1]]) }
    if number % 11 == 4 { message.editedAt = time + .seconds(5) }
    if number % 6 == 2 { message.customData = JSONText(unchecked: #"{"k":[1,2.5,"é"]}"#) }
    if number % 9 == 5 { message.reactions = [Reaction(key: "👍", users: [users[1], users[0]])] }
    return MessageRecord(message: message)
  }

  private static func content(_ number: Int, _ users: [UserID]) -> MessageContent {
    switch number % 10 {
    case 1: .image(Attachment(name: "图.png", mimeType: "image/png", sha256: digest, width: 3, height: 4))
    case 2: .custom(JSONText(unchecked: #"{"type":"order","n":1}"#))
    case 3: .location(Location(latitude: 31.25, longitude: 121.5, name: "上海"))
    case 5: .recalled(by: users[0], at: Timestamp(milliseconds: start + 5))
    case 6: .merged(title: "m", messages: [QuotedMessage(sender: users[1], content: .text("in"))])
    case 8: .text("same text")
    default: .text("你好 \(number) 👩‍👩‍👧‍👦")
    }
  }
}

/// A folder of its own that goes away, with an archive of the chats in it.
private final class Place {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.path + "/unifiedchat-pair-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { path + "/" + name }

  func chats() async throws -> String {
    let text = Chats.lines().map { $0.text() + "\n" }.joined()
    try Data(text.utf8).write(to: URL(fileURLWithPath: file("chats.jsonl")))
    let identity = Archive.Identity(id: "c0", vendor: "records", createdAt: Timestamp(milliseconds: Chats.start))
    let (archive, summary) = try await ArchiveLines.importing(
      file("chats.jsonl"), into: file("chats.uchat"), identity, at: Timestamp(milliseconds: Chats.start))
    try await archive.close()
    #expect(summary.unreadable == 0 && summary.newMessages == 90)
    return file("chats.uchat")
  }
}

/// A destination whose run is cut off at random calls, before or after they are done.
private final class CutOff: ForwardingDestination {
  let inner: any ChatDestination
  private let state: Mutex<(random: SeededGenerator, left: Int)>

  init(_ inner: any ChatDestination, seed: UInt64, cuts: Int) {
    self.inner = inner
    state = Mutex((SeededGenerator(seed: seed), cuts))
  }

  var cutsLeft: Int { state.withLock { $0.left } }

  private func cut<Value: Sendable>(_ body: () async throws(ChatError) -> Value) async throws(ChatError) -> Value {
    let moment = state.withLock { state -> UInt64 in
      let moment = state.random.next() % 6
      if moment < 2, state.left > 0 {
        state.left -= 1
        return moment
      }
      return 2
    }
    if moment == 0 { throw .cancelled(.writeDestination) }
    let value = try await body()
    if moment == 1 { throw .cancelled(.writeDestination) }
    return value
  }

  var limits: DestinationLimits {
    var limits = inner.limits
    limits.batch = min(limits.batch, 9)
    return limits
  }
  func putUsers(_ users: [UserRecord]) async throws(ChatError) -> [PutOutcome<UserID>] {
    try await cut { () async throws(ChatError) in try await inner.putUsers(users) }
  }
  func putChannel(
    _ channel: ChannelRecord, members: [MemberRecord]
  ) async throws(ChatError) -> PutOutcome<ChannelID> {
    try await cut { () async throws(ChatError) in try await inner.putChannel(channel, members: members) }
  }
  func putMessages(
    _ messages: [MessageRecord], in channel: ChannelID
  ) async throws(ChatError) -> [PutOutcome<MessageID>] {
    try await cut { () async throws(ChatError) in try await inner.putMessages(messages, in: channel) }
  }
  func finishChannel(_ channel: ChannelID, original: ChannelRecord, members: [MemberRecord]) async throws(ChatError) {
    try await cut { () async throws(ChatError) in
      try await inner.finishChannel(channel, original: original, members: members)
    }
  }
  func changeMessage(
    _ message: MessageRecord, id: MessageID, in channel: ChannelID
  ) async throws(ChatError) -> PutOutcome<MessageID> {
    try await cut { () async throws(ChatError) in try await inner.changeMessage(message, id: id, in: channel) }
  }
  func removeMessages(_ ids: [MessageID], in channel: ChannelID) async throws(ChatError) {
    try await cut { () async throws(ChatError) in try await inner.removeMessages(ids, in: channel) }
  }
  func removeMembers(_ users: [UserID], from channel: ChannelID) async throws(ChatError) {
    try await cut { () async throws(ChatError) in try await inner.removeMembers(users, from: channel) }
  }
}

@Suite("From every vendor to every other", .serialized)
struct PairMigrationTests {
  struct Pair: Sendable, CustomTestStringConvertible {
    var from: String
    var to: String
    var testDescription: String { "\(from) to \(to)" }
  }

  static let vendors = VendorService.names
  static let pairs = vendors.flatMap { from in vendors.filter { $0 != from }.map { Pair(from: from, to: $0) } }

  /// Runs until a run is not cut off, and verifies.
  private func run(
    _ source: VendorService?, _ archive: String, _ target: VendorService, seed: UInt64 = 0, rereads: Bool = false
  ) async throws -> FidelityReport {
    var options = MigrationOptions()
    options.extraction.rereads = rereads
    let cutOff = CutOff(try target.destination(), seed: seed, cuts: seed == 0 ? 0 : 20)
    while true {
      let run = MigrationRun(
        source: try source?.source(), archive: archive, destination: cutOff, readBack: try target.source(),
        options: options)
      do throws(ChatError) {
        let report = try await run.run()
        #expect(seed == 0 || cutOff.cutsLeft < 20, "nothing was cut off")
        return report
      } catch {
        guard error.kind == .cancelled else { throw error }
        options.extraction.rereads = false
      }
    }
  }

  private func explain(_ report: FidelityReport) -> Comment {
    let findings = (report.verification?.channels ?? []).flatMap { channel in
      channel.examples.map { "\($0.sign.rawValue) \(channel.channel) \($0.kind) \($0.id) \($0.what)" }
    }
    return "\(report.sentence)\n\(findings.joined(separator: "\n"))\n\(report.exceptions.map(\.reason))"
  }

  @Test("a file into each, and out of it into the others, cut off twenty times, arrives equal", arguments: pairs)
  func everyPair(_ pair: Pair) async throws {
    let place = try Place()
    let from = try VendorService(pair.from)
    let to = try VendorService(pair.to)
    let seeded = try await run(nil, try await place.chats(), from, seed: 3)
    #expect(seeded.verification?.isEqual == true && seeded.load.refused == 0, explain(seeded))
    let archive = place.file("between.uchat")
    let first = try await run(from, archive, to, seed: 5)
    #expect(first.verification?.isEqual == true && first.load.refused == 0, explain(first))
    #expect(first.verification?.totals.found == 90)

    try await change(from, archive)
    let second = try await run(from, archive, to, seed: 9, rereads: true)
    #expect(second.verification?.isEqual == true && second.load.refused == 0, explain(second))
    let reopened = try Archive.open(at: archive)
    let counts = try await reopened.counts()
    try await reopened.close()
    // Sendbird keeps a tombstone of what is deleted.
    #expect(counts.messages == (pair.from == "sendbird" ? 93 : 91))

    let rollback = try await MigrationRun(
      archive: archive, destination: try to.destination(), readBack: try to.source()
    ).rollback()
    // OpenIM removes neither accounts nor single chats; their messages go.
    if pair.to != "openim" { #expect(rollback.isComplete, "\(rollback.left)") }
    try await expectEmpty(to)

    let again = try await run(nil, archive, to)
    #expect(again.verification?.isEqual == true && again.load.refused == 0, explain(again))
    #expect(again.verification?.totals.found == again.verification?.totals.expected)
  }

  /// Two messages deleted, one recalled, three new, and one member left.
  private func change(_ service: VendorService, _ archivePath: String) async throws {
    let archive = try Archive.open(at: archivePath)
    let destination = try service.destination()
    for channel in try await archive.channels(limit: 10) where channel.stored.json.contains("频道 1") {
      let messages = try await archive.messages(in: channel.ordinal, limit: 100)
      try await destination.removeMessages([messages[4].id, messages[9].id], in: channel.id)
      var recalled = try messages[13].stored.message()
      recalled.message.content = .recalled(by: recalled.message.sender, at: Timestamp(milliseconds: Chats.start + 99))
      _ = try await destination.changeMessage(recalled, id: messages[13].id, in: channel.id)
      let new = (40..<43).map { number in
        let record = Chats.message(number, in: "5f0000000000000000000001", Chats.users)
        return MessageRecord(
          message: record.message,
          origin: Origin(vendor: "records", id: record.message.id?.rawValue ?? "", channel: record.message.channel))
      }.map { record in
        var record = record
        record.message.content = .text("new")
        return record
      }
      _ = try await destination.putMessages(new, in: channel.id)
      try await destination.removeMembers(["dan"], from: channel.id)
    }
    try await archive.close()
  }

  private func expectEmpty(_ service: VendorService) async throws {
    let source = try service.source()
    var cursor: Cursor?
    repeat {
      let page = try await source.channels(after: cursor)
      for channel in page.items {
        #expect(channel.channel.kind == .direct && service.vendor == "openim")
        #expect(try await source.messages(in: channel.channel.id, after: nil).items.isEmpty)
      }
      cursor = page.next
    } while cursor != nil
  }

  @Test("a plan names what is there and what will be lost, and writes nothing", arguments: pairs)
  func plan(_ pair: Pair) async throws {
    let place = try Place()
    let from = try VendorService(pair.from)
    let to = try VendorService(pair.to)
    _ = try await run(nil, try await place.chats(), from)
    let before = await to.host.records()
    let plan = try await MigrationRun(
      source: try from.source(), archive: place.file("none.uchat"), destination: try to.destination(),
      readBack: try to.source()
    ).plan()
    #expect(plan.users == 5 && plan.channels == 3 && plan.messages == 90 && plan.attachments == 9)
    #expect(plan.words().contains("90 messages will be written"))
    #expect(!FileManager.default.fileExists(atPath: place.file("none.uchat")))
    #expect(await to.host.records() == before)
    for endpoint in await EmulatorControl(to.host).coverage() where endpoint.calls > 0 {
      let isReading = ["GET ", "/auth/", "get_", "pull_"].contains { endpoint.endpoint.contains($0) }
      #expect(isReading, "\(endpoint.endpoint) was called \(endpoint.calls) times")
    }
    let report = try await run(from, place.file("real.uchat"), to)
    for loss in plan.losses where loss.loss.treatment != .keptElsewhere {
      #expect(report.fields.contains { $0.field == loss.loss.field }, "\(loss.loss)")
    }
    #expect(report.load.users == plan.users && report.load.channels == plan.channels)
    #expect(report.load.messages == plan.messages)
  }

  @Test("LeanCloud, archive, OpenIM, Sendbird, archive: the two archives differ by what the reports say, and no more")
  func chain() async throws {
    let place = try Place()
    let services = try Self.vendors.map { try VendorService($0) }
    _ = try await run(nil, try await place.chats(), services[0])
    var archives = [place.file("1.uchat"), place.file("2.uchat"), place.file("3.uchat")]
    let one = try await run(services[0], archives[0], services[1])
    let two = try await run(services[1], archives[1], services[2])
    #expect(one.verification?.isEqual == true, explain(one))
    #expect(two.verification?.isEqual == true, explain(two))
    _ = try await MigrationRun(source: try services[2].source(), archive: archives[2]).pull()
    let opened = try archives.map { try Archive.open(at: $0) }
    archives = []
    #expect(try await opened[0].counts().messages == opened[2].counts().messages)
    var (compared, answers) = (0, 0)
    let losses = [try services[1].destination(), try services[2].destination()]
    for last in try await opened[2].channels(limit: 10) {
      let lastOrigin = try #require(try last.stored.channel().origin)
      let middle = try #require(try await opened[1].channel(ChannelID(lastOrigin.id)))
      let middleOrigin = try #require(try middle.stored.channel().origin)
      let first = try #require(try await opened[0].channel(ChannelID(middleOrigin.id)))
      let messages = try await opened[2].messages(in: last.ordinal, limit: 100)
      var origins: [MessageID] = []
      for message in messages {
        let between = MessageID(try #require(try message.stored.message().origin).id)
        let stored = try #require(try await opened[1].messages(in: middle.ordinal, ids: [between])[between])
        origins.append(MessageID(try #require(try stored.stored.message().origin).id))
      }
      let firsts = Dictionary(uniqueKeysWithValues: zip(messages.map(\.id), origins))
      for (message, origin) in zip(messages, origins) {
        let record = try message.stored.message()
        let original = try #require(try await opened[0].messages(in: first.ordinal, ids: [origin])[origin])
        var expected = try original.stored.message().message
        var actual = record.message
        // An answer names its message as its own service does, after two migrations too.
        if let reply = actual.replyTo {
          answers += 1
          actual.replyTo = Reply(id: try #require(firsts[reply.id], "\(origin) answers \(reply.id)"))
        }
        expected.replyTo = expected.replyTo.map { Reply(id: $0.id) }
        let declared = losses.flatMap { $0.losses(of: .message(MessageRecord(message: expected))) }
        let comparison = Comparison(
          "message", expected: CarriedForm.message(expected.withoutDigests), actual: CarriedForm.message(actual.withoutDigests)
        ) { declared }
        #expect(comparison.unexplained.isEmpty, "\(origin): \(comparison.unexplained)")
        compared += 1
      }
      #expect(origins == (try await opened[0].messages(in: first.ordinal, limit: 100).map(\.id)))
    }
    #expect(compared == 90 && answers > 0)
  }
}

extension Message {
  /// Digests are compared by each verification; here sizes and names are.
  fileprivate var withoutDigests: Message {
    var copy = self
    copy.content = content.mappingAttachments { attachment in
      var attachment = attachment
      attachment.sha256 = nil
      attachment.size = nil
      return attachment
    }
    return copy
  }
}
