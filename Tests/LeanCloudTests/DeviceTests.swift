import ChatCrypto
import ChatJSON
import ChatTransport
import Foundation
import LeanCloudAdapter
import LeanCloudWire
import Testing
import UnifiedChat

/// What the official libraries left on devices.
@Suite("Databases of devices")
struct DeviceTests {
  typealias Folder = ExportTests.Folder
  typealias Library = PhoneDatabase.Library
  typealias Phone = PhoneDatabase

  static let channel = ChannelID(PhoneDatabase.channel)
  static let start: Int64 = 1_594_000_000_000

  private func export(_ folder: Folder, _ name: String? = nil) throws -> LeanCloudExport {
    let path = name.map { folder.url.appendingPathComponent($0).path } ?? folder.url.path
    return try LeanCloudExport(path: path, http: Bench().host.transports.http)
  }

  private func phone(_ library: Library, _ folder: Folder, _ name: String = "phone") throws -> Phone {
    try Phone(library, at: folder.url.appendingPathComponent(name).path)
  }

  private func messages(_ export: LeanCloudExport, _ channel: ChannelID = Self.channel) async throws -> [MessageRecord] {
    try await export.messages(in: channel, after: nil).items
  }

  private func text(_ record: MessageRecord) -> String? {
    if case .text(let text) = record.message.content { text } else { nil }
  }

  private static func body(_ text: String) -> String { #"{"_lctype":-1,"_lctext":"\#(text)"}"# }

  // MARK: Reading

  @Test("each library's database gives conversations, members and messages exactly", arguments: Library.allCases)
  func exact(_ library: Library) async throws {
    let folder = try Folder()
    let phone = try phone(library, folder)
    try phone.addConversation(name: "汤姆 & 杰瑞 🐭")
    // Two of one millisecond, by id.
    try phone.add(.init(id: "b-2", time: Self.start, from: "杰瑞", body: Self.body("二 🧀"), mentions: ["Tom", "Spike"]))
    try phone.add(.init(id: "a-1", time: Self.start, body: Self.body("一")))
    try phone.add(.init(id: "c-3", time: Self.start + 1, body: Self.body("edited"), patched: Self.start + 500, mentionsAll: true))
    try phone.add(.init(id: "d-4", time: Self.start + 2, body: #"{"_lctype":-127}"#, patched: Self.start + 600))
    try phone.add(.init(id: "e-5", time: Self.start + 3, body: "plain, no JSON"))
    try phone.add(
      .init(id: "failed", time: Self.start + 4, body: Self.body("never sent"), status: library == .swift ? -1 : 4))
    phone.close()
    let export = try export(folder, "phone")
    let channel = try #require(try await export.channels(after: nil).items.first)
    #expect(channel.channel.id == Self.channel && channel.channel.name == "汤姆 & 杰瑞 🐭")
    #expect(channel.channel.kind == .group && channel.channel.createdBy == "Tom")
    #expect(channel.channel.createdAt == Timestamp(milliseconds: 1_593_561_600_000))
    #expect(channel.channel.customData?.text == #"{"k":1,"_columns":{"own":"column"}}"#)
    #expect(try await export.members(of: Self.channel, after: nil).items.map(\.member.user.id) == ["Tom", "杰瑞"])

    let found = try await messages(export)
    #expect(found.map(\.message.id) == ["a-1", "b-2", "c-3", "d-4", "e-5"])
    #expect(found.map(\.message.createdAt.milliseconds) == [0, 0, 1, 2, 3].map { Self.start + $0 })
    let positions = found.compactMap(\.message.position)
    #expect(zip(found, positions).allSatisfy { $1 == MessagePosition(time: $0.message.createdAt, id: $0.message.id ?? "") })
    #expect(positions.count == 5 && positions == positions.sorted())
    #expect(found.prefix(2).map(text) == ["一", "二 🧀"] && text(found[4]) == "plain, no JSON")
    #expect(found.map(\.message.sender) == ["Tom", "杰瑞", "Tom", "Tom", "Tom"])
    #expect(found[1].message.mentions.users == ["Tom", "Spike"] && found[2].message.mentions.everyone)
    #expect(found[2].message.editedAt?.milliseconds == Self.start + 500 && found[0].message.editedAt == nil)
    #expect(found[3].message.content == .recalled(by: nil, at: Timestamp(milliseconds: Self.start + 600)))
    let raw = try #require(found[2].raw.flatMap { try? JSONValue(parsing: $0.text) })
    #expect(raw["_secondHand"]?["at"]?.int == Self.start + 500)
    #expect(raw["_secondHand"]?["of"]?.string == library.rawValue)
    #expect(raw["_secondHand"]?["delivered"]?.int == Self.start + 8)

    let check = try await export.check()
    #expect(check.messages == 5 && check.channels == 1)
    #expect(check.leftOut == ["phone: 1 messages that never reached the service (failed on the device)"])
    #expect(try await export.users(after: nil).unreadable == [])
  }

  @Test("bytes that are no text are bytes in the archive too", arguments: [Library.swift, .java])
  func binary(_ library: Library) async throws {
    let folder = try Folder()
    let phone = try phone(library, folder)
    let bytes = library == .java ? [0, 255, 1, 254] : Array("\u{1}\u{2}é".utf8)
    try phone.add(.init(id: "b", time: Self.start, bytes: bytes))
    phone.close()
    let found = try await messages(export(folder))
    let raw = JSONText(unchecked: JSONValue.string(Base64.encode(bytes)).text())
    #expect(found.map(\.message.content) == [.unknown(kind: "binary", raw: raw)])
  }

  @Test("what the library marks as a gap is named once a conversation", arguments: Library.allCases)
  func gaps(_ library: Library) async throws {
    let folder = try Folder()
    let phone = try phone(library, folder)
    // Swift marks both ends of a run, the others the first message.
    let ends: Set<Int64> = library == .swift ? [0, 2, 3, 5, 6, 8] : [0, 3, 6]
    for number in 0..<9 as Range<Int64> {
      try phone.add(
        .init(id: "m\(number)", time: Self.start + number * 1000, body: Self.body("\(number)"), isMarked: ends.contains(number)))
    }
    phone.close()
    let first = Timestamp(milliseconds: Self.start + 2000)
    let last = Timestamp(milliseconds: Self.start + 6000)
    #expect(
      try await export(folder).check().leftOut == [
        "phone: of conversation \(PhoneDatabase.channel) the device may lack messages at 2 places, from \(first) to \(last)",
        "phone: of 1 conversations there may be messages before the first one that the device has",
      ])
  }

  @Test("rows that are none are listed one by one, and the others are there", arguments: Library.allCases)
  func faults(_ library: Library) async throws {
    let folder = try Folder()
    let phone = try phone(library, folder)
    try phone.add(.init(id: "whole", time: Self.start, body: Self.body("whole")))
    try phone.add(.init(id: "seconds", time: Self.start / 1000, body: Self.body("x")))
    try phone.add(.init(id: "nothing", time: Self.start + 1))
    if library != .swift {
      let bad = "UPDATE \(library == .java ? "messages" : "message") SET payload = x'ff00' WHERE message_id = 'latin'"
      try phone.add(.init(id: "latin", time: Self.start + 2, body: "x"))
      try phone.run(bad)
    }
    phone.close()
    let export = try export(folder)
    #expect(try await messages(export).map(\.message.id) == ["whole"])
    let unreadable = try await export.users(after: nil).unreadable
    let ids: Set = library == .swift ? ["seconds", "nothing"] : ["seconds", "nothing", "latin"]
    #expect(Set(unreadable.compactMap(\.id)) == ids)
    #expect(unreadable.allSatisfy { $0.kind == "message" && $0.channel == Self.channel && $0.reason.hasPrefix("phone: ") })
  }

  @Test("the newest message comes with a conversation that was never opened")
  func newest() async throws {
    let folder = try Folder()
    let phone = try phone(.swift, folder)
    let row = """
      {"objectId":"\(PhoneDatabase.channel)","m":["Tom"],"msg":"{\\"_lctype\\":-1,\\"_lctext\\":\\"told\\"}",\
      "msg_mid":"m1","msg_from":"Tom","msg_timestamp":\(Self.start)}
      """
    try phone.run("insert into conversation values(?,?,1,1,0)", .text(PhoneDatabase.channel), .blob(Array(row.utf8)))
    let last = """
      {"conversation_id":"\(PhoneDatabase.channel)","sent_timestamp":\(Self.start + 1),"message_id":"m2","from_peer_id":"Tom",\
      "content":"{\\"_lctype\\":-1,\\"_lctext\\":\\"kept\\"}","binary":false,"status":2,"breakpoint":false}
      """
    try phone.run("insert into last_message values(?,?,1)", .text(PhoneDatabase.channel), .blob(Array(last.utf8)))
    phone.close()
    #expect(try await messages(export(folder)).map(text) == ["told", "kept"])
  }

  @Test("an older table of the library for Objective-C lacks columns, and a conversation its archive")
  func older() async throws {
    let folder = try Folder()
    let phone = try phone(.objc, folder)
    try phone.run("drop table message")
    try phone.run(
      """
      create table message (message_id text, conversation_id text, from_peer_id text, timestamp real,
      receipt_timestamp real, payload blob, status integer, breakpoint bool, primary key(message_id))
      """)
    try phone.run(
      "insert into message values ('m', ?, 'Tom', 1594000000000.0, 0, ?, 2, 0)", .text(PhoneDatabase.channel),
      .blob(Array(Self.body("old").utf8)))
    try phone.run(
      """
      insert into conversation_v2 (conversation_id, name, creator, transient, members, create_at, raw_data)
      values (?, '旧', 'Tom', 0, 'Tom,Jerry', 1593561600.25, x'62706c697374')
      """, .text(PhoneDatabase.channel))
    phone.close()
    let export = try export(folder)
    let channel = try #require(try await export.channels(after: nil).items.first?.channel)
    #expect(channel.name == "旧" && channel.createdAt == Timestamp(milliseconds: 1_593_561_600_250))
    #expect(try await export.members(of: Self.channel, after: nil).items.map(\.member.user.id) == ["Tom", "Jerry"])
    #expect(try await messages(export).map(text) == ["old"])
  }

  // MARK: Several

  @Test("of several phones the later change wins, and what the service told stays above both")
  func several() async throws {
    let folder = try Folder()
    let old = try phone(.java, folder, "a-phone")
    let new = try phone(.objc, folder, "b-phone")
    try old.addConversation(name: "old name", members: ["Tom", "Jerry", "left"])
    try new.addConversation(name: "new name", updated: "2020-08-01T00:00:00.000Z")
    for (phone, name, patched) in [(old, "old", nil), (new, "new", Self.start + 900)] as [(Phone, String, Int64?)] {
      try phone.add(.init(id: "both", time: Self.start, body: Self.body(name), patched: patched))
      try phone.add(.init(id: "only-\(name)", time: Self.start + 1, body: Self.body(name)))
      try phone.add(
        .init(id: LeanCloudID.messageID(for: "m8", channel: PhoneDatabase.channel), time: 1_594_000_000_004,
          body: Self.body(name), patched: Self.start + 5000))
    }
    old.close()
    new.close()
    var export = try export(folder)
    #expect(try await export.channels(after: nil).items.map(\.channel.name) == ["new name"])
    #expect(try await export.members(of: Self.channel, after: nil).items.map(\.member.user.id) == ["Tom", "杰瑞"])
    #expect(Set(try await messages(export).map { "\($0.message.id?.rawValue ?? "")=\(text($0) ?? "")" }.prefix(3)) == [
      "both=new", "only-old=old", "only-new=new",
    ])
    try folder.write([ExportTests.message(8, "told")], "messages-1.jsonl")
    try folder.write(ExportTests.conversations, "_Conversation.jsonl")
    export = try self.export(folder)
    #expect(try await messages(export).map(text) == ["new", "new", "old", "told"])
    #expect(try await export.channels(after: nil).items.first?.channel.name == "Tom & Jerry")
  }

  // MARK: Files

  @Test("the original is not touched, and what its log holds is read")
  func log() async throws {
    let folder = try Folder()
    let phone = try phone(.swift, folder)
    try phone.run("PRAGMA journal_mode = WAL")
    try phone.run("PRAGMA wal_autocheckpoint = 0")
    try phone.addConversation(name: "n")
    try phone.add(.init(id: "in-the-log", time: Self.start, body: Self.body("日志")))
    // As a device is copied: while the app runs, or after it was killed.
    let copy = try Folder()
    for suffix in ["", "-wal"] {
      try FileManager.default.copyItem(
        at: folder.url.appendingPathComponent("phone\(suffix)"), to: copy.url.appendingPathComponent("phone\(suffix)"))
    }
    let before = try ["phone", "phone-wal"].map { try Data(contentsOf: copy.url.appendingPathComponent($0)) }
    #expect(before[1].count > 4096)
    #expect(try await messages(export(copy)).map(text) == ["日志"])
    #expect(try ["phone", "phone-wal"].map { try Data(contentsOf: copy.url.appendingPathComponent($0)) } == before)
    #expect(try FileManager.default.contentsOfDirectory(atPath: copy.url.path).sorted() == ["phone", "phone-wal"])
    // One that does not go with it would be taken for an empty one.
    try copy.write(Array(repeating: 7, count: 8192) as [UInt8], "phone-wal")
    #expect { _ = try export(copy, "phone") } throws: { error in
      (error as? ChatError)?.kind == .storage(.corrupt) && "\(error)".contains("phone-wal: holds 8192 bytes")
    }
    try FileManager.default.removeItem(at: copy.url.appendingPathComponent("phone"))
    try copy.write(ExportTests.conversations, "_Conversation.jsonl")
    #expect(try await export(copy).check().leftOut == ["phone-wal: the log of a database that does not lie beside it"])
  }

  struct Spoiled: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var says: String
    var kind: ChatError.Kind
    var spoil: @Sendable (Folder) throws -> Void
  }

  static let spoilings: [Spoiled] = [
    Spoiled(testDescription: "cut off", says: "phone: is damaged or cut off", kind: .storage(.corrupt)) { folder in
      let url = folder.url.appendingPathComponent("phone")
      try Data(contentsOf: url).dropLast(6000).write(to: url)
    },
    Spoiled(testDescription: "overwritten", says: "phone: is damaged or cut off", kind: .storage(.corrupt)) { folder in
      let url = folder.url.appendingPathComponent("phone")
      var data = try Data(contentsOf: url)
      for index in 4096..<data.count { data[index] = 0xA5 }
      try data.write(to: url)
    },
    Spoiled(testDescription: "no database", says: "neither JSON", kind: .invalidArgument(field: "path")) { folder in
      try folder.write(Array("SQLite? No: \u{1}\u{2}".utf8), "phone")
    },
    Spoiled(
      testDescription: "of something else", says: "none of LeanCloud's client libraries (tables ZCHAT)",
      kind: .invalidArgument(field: "path")
    ) { folder in
      try FileManager.default.removeItem(at: folder.url.appendingPathComponent("phone"))
      let other = try Phone(.swift, at: folder.url.appendingPathComponent("phone").path)
      for table in ["message", "conversation", "last_message"] { try other.run("drop table \(table)") }
      try other.run("create table ZCHAT (id text)")
    },
    Spoiled(
      testDescription: "a view in place of the table", says: "none of LeanCloud's client libraries",
      kind: .invalidArgument(field: "path")
    ) { folder in
      let phone = try Phone(.swift, at: folder.url.appendingPathComponent("phone").path)
      try phone.run("drop table message")
      try phone.run(
        """
        create view message as with recursive n(x) as (select 1 union all select x + 1 from n) select 'c' as
        conversation_id, x as sent_timestamp, 'm' as message_id, 'b' as content from n
        """)
    },
    Spoiled(testDescription: "a link", says: "phone: is a symbolic link", kind: .storage(.denied)) { folder in
      let url = folder.url.appendingPathComponent("phone")
      try FileManager.default.moveItem(at: url, to: folder.url.appendingPathComponent("real"))
      try FileManager.default.createSymbolicLink(at: url, withDestinationURL: folder.url.appendingPathComponent("real"))
    },
    Spoiled(testDescription: "a link as the log", says: "phone-wal: is a symbolic link", kind: .storage(.denied)) { folder in
      try FileManager.default.createSymbolicLink(
        at: folder.url.appendingPathComponent("phone-wal"), withDestinationURL: URL(fileURLWithPath: "/dev/zero"))
    },
    Spoiled(testDescription: "a huge value", says: "more than 64 MiB", kind: .storage(.corrupt)) { folder in
      let phone = try Phone(.swift, at: folder.url.appendingPathComponent("phone").path)
      try phone.run("insert into message (conversation_id, sent_timestamp, message_id, content) values ('c', 1, 'm', zeroblob(67200000))")
    },
  ]

  @Test("what is spoiled is an error with the file's name and the mend", arguments: Self.spoilings)
  func spoiled(_ spoiled: Spoiled) throws {
    let folder = try Folder()
    let phone = try phone(.swift, folder)
    try phone.addConversation(name: "n")
    for number in 0..<40 as Range<Int64> {
      try phone.add(.init(id: "m\(number)", time: Self.start + number, body: Self.body(String(repeating: "很长", count: 60))))
    }
    phone.close()
    try spoiled.spoil(folder)
    #expect { _ = try export(folder, "phone") } throws: { error in
      guard let error = error as? ChatError, error.kind == spoiled.kind, error.detail.contains(spoiled.says) else {
        Issue.record("\(error)")
        return false
      }
      return true
    }
  }

  @Test("any bytes in a database are rows, faults or an error, and never the end of the program")
  func mutated() throws {
    let folder = try Folder()
    let phone = try phone(.objc, folder)
    try phone.addConversation(name: "n")
    for number in 0..<20 as Range<Int64> {
      try phone.add(.init(id: "m\(number)", time: Self.start + number, body: Self.body("x"), mentions: ["a", "b"]))
    }
    phone.close()
    let whole = Array(try Data(contentsOf: folder.url.appendingPathComponent("phone")))
    let archive = try PhoneDatabase.archived(["a": ["b", "c"] as NSArray, "d": "é漢" as NSString] as NSDictionary)
    var random = EmulatorRandom(seed: 20_260_112)
    for round in 0..<150 {
      var bytes = whole
      for _ in 0..<(1 + round % 8) { bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next()) }
      // The archive of a row, too, which is found by its beginning.
      if round % 2 == 0, let place = whole.firstRange(of: Array("bplist00".utf8)) {
        for _ in 0..<4 {
          let index = place.lowerBound + Int(random.next() % UInt64(archive.count))
          if bytes.indices.contains(index) { bytes[index] = UInt8(truncatingIfNeeded: random.next()) }
        }
      }
      try folder.write(bytes, "phone")
      _ = try? export(folder, "phone")
    }
  }
}
