import ChatInterchange
import ChatJSON
import Foundation
import Testing
import UnifiedChat

@testable import ChatMigration

/// Messages of every kind of content with every field, by a seed.
private struct RandomChats {
  private var random: SeededGenerator
  private let users: [UserID] = ["ana", "bob", "cleo", "dan", "eve"]
  private let channel: ChannelID
  private let start: Int64 = 1_600_000_000_000
  private static let photo = Array("not a photo, but bytes".utf8)
  private static let digest = "cddc7ff0af08fdbfe154308503f963028a75691c4aa5c411a70a2ad56e1d028a"

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
    channel = ChannelID("5f00000000000000000000a\(seed % 10)")
  }

  mutating func lines(_ count: Int) -> String {
    var records: [Record] = users.map { .user(UserRecord(user: User(id: $0, name: "Name of \($0)"))) }
    records.append(.file(FileRecord(sha256: Self.digest, name: "图.png", mimeType: "image/png", bytes: Self.photo)))
    records.append(
      .channel(ChannelRecord(channel: Channel(id: channel, kind: .group, name: "频道", createdAt: Timestamp(milliseconds: start)))))
    for (index, user) in users.enumerated() {
      let member = Member(user: User(id: user), role: [.owner, .admin, .member][min(index, 2)])
      records.append(.member(MemberRecord(channel: channel, member: member)))
    }
    for number in 0..<count { records.append(.message(MessageRecord(message: message(number)))) }
    return records.map { $0.json().text() + "\n" }.joined()
  }

  private static func id(_ number: Int) -> MessageID { MessageID("prop-\(1000 + number)-abcdefghijklm") }

  private mutating func one(in choices: Int) -> Bool { random.next() % UInt64(choices) == 0 }
  private mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[Int(random.next() % UInt64(elements.count))]
  }

  private mutating func message(_ number: Int) -> Message {
    let time = Timestamp(milliseconds: start + Int64(number / 2) * 1000)
    var message = Message(
      channel: channel, id: Self.id(number), sender: one(in: 20) ? nil : pick(users),
      position: MessagePosition(time: time, id: Self.id(number)), createdAt: time, content: content(depth: 0))
    if one(in: 6) { message.senderName = text() }
    if one(in: 5) { message.mentions = Mentions(users: [users[0], pick(Array(users.dropFirst()))], everyone: one(in: 3)) }
    if number > 0, one(in: 4) { message.replyTo = Reply(id: Self.id(Int(random.next() % UInt64(number)))) }
    if number > 0, one(in: 9) { message.threadParent = Self.id(Int(random.next() % UInt64(number))) }
    if one(in: 6) { message.customType = pick(["order", "订单", "a b"]) }
    if one(in: 4) { message.customData = document() }
    if one(in: 5) {
      message.reactions = [
        Reaction(key: "👍", users: Array(users.prefix(2))), Reaction(key: text(), users: [pick(users)]),
      ]
    }
    if one(in: 6) { message.editedAt = time + .milliseconds(Int64(random.next() % 10_000_000)) }
    return message
  }

  private mutating func text() -> String {
    pick([
      "plain", "你好 👩‍👩‍👧‍👦", "caf\u{E9} cafe\u{301}", "@ana and @bob", " spaces \t\n", "مرحبا", "\"\\{}<>&'",
      "{\"_lctype\":-1}", "line\u{2028}separator", "\u{1B}[31m", "0", String(repeating: "长", count: 20),
    ])
  }

  private mutating func document() -> JSONText {
    pick([
      JSONText(unchecked: #"{"k":[1,2.5,"é",null,true],"big":9007199254740993}"#), JSONText(unchecked: "[]"),
      JSONText(unchecked: #""only text""#), JSONText(unchecked: #"{"":{"":{}}}"#), JSONText(unchecked: "17"),
    ])
  }

  private mutating func attachment() -> UnifiedChat.Attachment {
    var attachment = UnifiedChat.Attachment(name: pick(["图.png", "a b.txt", "x"]), mimeType: pick(["image/png", "audio/mp4", nil]))
    // The others are files whose bytes were lost before.
    if !one(in: 3) { attachment.sha256 = Self.digest }
    if one(in: 2) { (attachment.width, attachment.height) = (3, 4) }
    if one(in: 2) { attachment.durationMilliseconds = 1234 }
    if one(in: 4) { attachment.metadata = JSONText(unchecked: #"{"rotation":90}"#) }
    return attachment
  }

  private mutating func content(depth: Int) -> MessageContent {
    switch random.next() % (depth == 0 ? 16 : 13) {
    case 0: .markdown("**\(text())**")
    case 1: .image(attachment())
    case 2: .audio(attachment())
    case 3: .video(attachment())
    case 4: .file(attachment())
    case 5: .location(Location(latitude: pick([31.2304, -90, 0.1]), longitude: 121.4737, name: one(in: 2) ? text() : nil))
    case 6: .card(pick(users), name: one(in: 2) ? text() : nil, avatarURL: nil)
    case 7: .sticker(document())
    case 8: .custom(document())
    case 9: .unknown(kind: "77", raw: JSONText(unchecked: #"{"_lctype":77,"odd":"x"}"#))
    case 10: .text(pick(["", " ", String(repeating: "字", count: 5001), text()]))
    case 11, 12: .text(text())
    case 13: .recalled(by: one(in: 2) ? pick(users) : nil, at: one(in: 2) ? Timestamp(milliseconds: start + 5) : nil)
    case 14: .system(SystemNotice(kind: "memberJoined", actor: users[0], subjects: [pick(users)], text: text()))
    default:
      .merged(title: text(), messages: [
        QuotedMessage(sender: pick(users), createdAt: Timestamp(milliseconds: start), content: content(depth: 1)),
        QuotedMessage(content: content(depth: 1)),
      ])
    }
  }
}

@Suite("No difference between a source and a destination goes unreported", .serialized)
struct LossPropertyTests {
  /// All three vendors as destination of a file, and every pair of vendors.
  static let chains = VendorService.names.flatMap { from in VendorService.names.filter { $0 != from }.map { [from, $0] } }

  @Test(
    "random messages of every kind: each difference is named by a loss, and counted", .timeLimit(.minutes(5)), arguments: chains, [UInt64(1)])
  func accounted(_ chain: [String], seed: UInt64) async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/unifiedchat-loss-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    var chats = RandomChats(seed: seed)
    try Data(chats.lines(60).utf8).write(to: URL(fileURLWithPath: folder + "/chats.jsonl"))
    let identity = Archive.Identity(id: "c0", vendor: "records", createdAt: Timestamp(milliseconds: 1))
    let (archive, _) = try await ArchiveLines.importing(
      folder + "/chats.jsonl", into: folder + "/0.uchat", identity, at: Timestamp(milliseconds: 1))
    try await archive.close()
    for (step, vendor) in chain.enumerated() {
      let service = try VendorService(vendor)
      let run = MigrationRun(
        archive: "\(folder)/\(step).uchat", destination: try service.destination(), readBack: try service.source())
      let report = try await run.run()
      #expect(report.load.refused == 0, "\(vendor): \(report.exceptions)")
      #expect(report.verification?.isEqual == true, "\(vendor), seed \(seed): \(report.words())")
      _ = try await MigrationRun(source: try service.source(), archive: "\(folder)/\(step + 1).uchat").pull()
      try await compare("\(folder)/\(step).uchat", "\(folder)/\(step + 1).uchat", try service.destination(), report)
    }
  }

  /// Field by field, without the verifier's forms.
  private func compare(
    _ one: String, _ two: String, _ destination: any ChatDestination, _ report: FidelityReport
  ) async throws {
    let (before, after) = (try await messages(of: one), try await messages(of: two))
    let origins = Dictionary(
      after.compactMap { record in record.origin.map { ($0.id, record) } }, uniquingKeysWith: { first, _ in first })
    let ids = Dictionary(
      after.compactMap { record in record.origin.map { (record.message.id?.rawValue ?? "", $0.id) } },
      uniquingKeysWith: { first, _ in first })
    var counts: [String: Int] = [:]
    for record in before {
      let id = record.message.id?.rawValue ?? ""
      guard let found = origins[id] else {
        Issue.record("\(destination.vendor): \(id) is not there")
        continue
      }
      let losses = destination.losses(of: .message(record)).filter { $0.treatment != .keptElsewhere }
      for field in Self.differences(record.message, found.message, ids) {
        counts[field, default: 0] += 1
        #expect(
          losses.contains { $0.field == "message.\(field)" || $0.field.hasPrefix("message.\(field).") || $0.field == "message" },
          "\(destination.vendor): \(id) differs in \(field): \(record.message.value(of: field)) \(found.message.value(of: field))")
      }
    }
    for (field, count) in counts {
      let reported = report.fields.filter { $0.field == "message.\(field)" || $0.field.hasPrefix("message.\(field).") }
      #expect(reported.reduce(0) { $0 + $1.degraded + $1.dropped } >= count, "\(destination.vendor): \(field)")
    }
  }

  private func messages(of path: String) async throws -> [MessageRecord] {
    let archive = try Archive.open(at: path)
    var records: [MessageRecord] = []
    for channel in try await archive.channels(limit: 10) {
      records += try await archive.messages(in: channel.ordinal, limit: 1000).map { try $0.stored.message() }
    }
    try await archive.close()
    return records
  }

  private static func differences(_ one: Message, _ two: Message, _ originals: [String: String]) -> [String] {
    var found: [String] = []
    func check(_ field: String, _ isEqual: Bool) { if !isEqual { found.append(field) } }
    func original(_ id: MessageID?) -> String? { id.map { originals[$0.rawValue] ?? $0.rawValue } }
    check("sender", one.sender == two.sender)
    check("createdAt", one.createdAt == two.createdAt)
    check("editedAt", one.editedAt == two.editedAt)
    check("customType", one.customType?.utf8.elementsEqual(two.customType?.utf8 ?? "".utf8) ?? (two.customType == nil))
    check("customData", document(one.customData) == document(two.customData))
    check("mentions", Set(one.mentions.users) == Set(two.mentions.users) && one.mentions.everyone == two.mentions.everyone)
    check("replyTo", one.replyTo?.id.rawValue == original(two.replyTo?.id))
    check("threadParent", one.threadParent?.rawValue == original(two.threadParent))
    check("reactions", reactions(one) == reactions(two))
    check("content", content(one.content) == content(two.content))
    return found
  }

  private static func document(_ text: JSONText?) -> JSONValue? { text.flatMap { try? JSONValue(parsing: $0.text) } }

  private static func reactions(_ message: Message) -> Set<String> {
    Set(message.reactions.flatMap { reaction in reaction.users.map { "\($0) \(reaction.key)" } })
  }

  /// Without the addresses of bytes, and what a service finds out about them by itself.
  private static func content(_ content: MessageContent) -> JSONValue {
    content.mappingAttachments { attachment in
      var bare = UnifiedChat.Attachment(name: attachment.name)
      bare.metadata = attachment.metadata
      return bare
    }.json()
  }
}

extension Message {
  fileprivate func value(of name: String) -> String {
    MessageField(rawValue: name).flatMap { value(of: $0) }?.text() ?? "nothing"
  }
}
