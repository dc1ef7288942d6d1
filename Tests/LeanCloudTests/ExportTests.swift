import ChatCrypto
import ChatJSON
import Foundation
import LeanCloudAdapter
import LeanCloudWire
import Testing
import UnifiedChat

/// Files that were exported by hand, read without any account.
@Suite("Exported files")
struct ExportTests {
  /// A folder that is gone with the test.
  final class Folder {
    let url: URL
    init() throws {
      url = FileManager.default.temporaryDirectory.appendingPathComponent("export-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }
    func write(_ bytes: [UInt8], _ name: String) throws { try Data(bytes).write(to: url.appendingPathComponent(name)) }
    func write(_ lines: [JSONValue], _ name: String) throws {
      try write(Array(lines.map { $0.text() + "\n" }.joined().utf8), name)
    }
    deinit { try? FileManager.default.removeItem(at: url) }
  }

  static let conversation = "5f0000000000000000000001"
  static let conversations: [JSONValue] = [
    [
      "objectId": .string(conversation), "name": "Tom & Jerry", "m": ["Tom", "Jerry"], "unique": true, "c": "Tom",
      "attr": ["k": 1], "own": "column", "createdAt": "2020-07-01T00:00:00.000Z",
      "updatedAt": "2020-07-02T00:00:00.000Z",
    ],
    ["objectId": "5f0000000000000000000002", "sys": true, "name": "news", "updatedAt": "2020-07-02T00:00:00.000Z"],
  ]

  static func message(_ number: Int, _ text: String, in channel: String = conversation, from: String = "Tom")
    -> JSONValue
  {
    [
      "msg-id": .string(LeanCloudID.messageID(for: "m\(number)", channel: channel)), "conv-id": .string(channel),
      "timestamp": .int(1_594_000_000_000 + Int64(number / 2)), "from": .string(from), "is-conv": true,
      "is-room": false,
      "bin": false, "data": .string("{\"_lctype\":-1,\"_lctext\":\"\(text)\"}"),
    ]
  }

  func export(_ folder: Folder) throws -> LeanCloudExport {
    try LeanCloudExport(path: folder.url.path, http: Bench().host.transports.http)
  }

  @Test(
    "lines, arrays and query answers say the same, plain and compressed",
    arguments: ["jsonl", "json", "results.json", "jsonl.gz", "json.gz"])
  func forms(_ form: String) async throws {
    let folder = try Folder()
    func write(_ rows: [JSONValue], _ name: String) throws {
      var bytes: [UInt8]
      switch form.prefix(while: { $0 != "." }) {
      case "jsonl": bytes = Array(rows.map { $0.text() + "\n" }.joined().utf8)
      case "results": bytes = JSONValue.object(["results": .array(rows)]).bytes()
      default: bytes = JSONValue.array(rows).bytes()
      }
      if form.hasSuffix("gz") { bytes = try Gzip.compress(bytes) }
      try folder.write(bytes, "\(name).\(form)")
    }
    try write(Self.conversations, "_Conversation")
    try write(
      [["objectId": "Tom", "username": "tom", "nickname": "Tom C.", "updatedAt": "2020-07-02T00:00:00.000Z"]], "_User")
    try write(
      [["cid": .string(Self.conversation), "clientId": "Jerry", "role": "Manager", "objectId": "r1"]],
      "_ConversationMemberInfo")
    try write((0..<5).map { Self.message($0, "\($0)") }, "messages-2020")
    let export = try export(folder)
    let check = try await export.check()
    #expect(check.channels == 2)
    #expect(check.users == 1)
    #expect(check.messages == 5)
    let users = try await export.users(after: nil)
    #expect(users.items.map(\.user.name) == ["Tom C."])
    #expect(users.unreadable == [])
    let channels = try await export.channels(after: nil).items.map(\.channel)
    #expect(channels.map(\.kind) == [.direct, .service])
    #expect(channels.first?.name == "Tom & Jerry")
    #expect(channels.first?.customData?.text.contains("_columns") == true)
    let members = try await export.members(of: ChannelID(Self.conversation), after: nil).items.map(\.member)
    #expect(members.map(\.user.id) == ["Tom", "Jerry"])
    #expect(members.map(\.role) == [.member, .admin])
    let messages = try await export.messages(in: ChannelID(Self.conversation), after: nil)
    #expect(messages.items.count == 5)
    let positions = messages.items.compactMap(\.message.position)
    #expect(zip(positions, positions.dropFirst()).allSatisfy { $0 < $1 })
  }

  @Test("pages of history that overlap give each message once, and the later file's text")
  func overlap() async throws {
    let folder = try Folder()
    try folder.write((0..<2000).map { Self.message($0, "old") }, "messages-1.jsonl")
    try folder.write((1500..<2600).map { Self.message($0, "new") }, "messages-2.jsonl")
    let export = try export(folder)
    var found: [Message] = []
    var cursor: Cursor?
    repeat {
      let page = try await export.messages(in: ChannelID(Self.conversation), after: cursor)
      found += page.items.map(\.message)
      cursor = page.next
    } while cursor != nil
    #expect(found.count == 2600)
    #expect(Set(found.compactMap(\.id)).count == 2600)
    #expect(found.filter { text($0) == "new" }.count == 1100)
    let channel = try #require(try await export.channels(after: nil).items.first)
    #expect(channel.channel.id.rawValue == Self.conversation)
    #expect(try await export.members(of: channel.channel.id, after: nil).items.map(\.member.user.id) == ["Tom"])
  }

  @Test("the header of an import file names the class, and a pair of the 2014 model is recognised by its digest")
  func headerAndPair() async throws {
    let folder = try Folder()
    let lines = "#filetype:JSON-streaming {\"type\":\"Class\",\"class\":\"_User\"}\n{\"objectId\":\"u1\"}\n"
    try folder.write(Array(lines.utf8), "part-0.jsonl")
    var message = Self.message(1, "hi", in: LeanCloudID.pair("Tom", "Jerry")).object ?? [:]
    message["is-conv"] = false
    message["to"] = "Jerry"
    try folder.write([.object(message)], "saved.jsonl")
    let export = try export(folder)
    #expect(try await export.users(after: nil).items.map(\.user.id) == ["u1"])
    let pair = try #require(try await export.channels(after: nil).items.first?.channel)
    #expect(pair.kind == .direct)
    #expect(try await export.members(of: pair.id, after: nil).items.map(\.member.user.id) == ["Jerry", "Tom"])
    #expect(try await export.messages(in: pair.id, after: nil).items.count == 1)
  }

  @Test("damaged lines are listed and nothing else is lost; session tokens are never kept")
  func damaged() async throws {
    let folder = try Folder()
    let user: JSONValue = ["objectId": "u", "username": "u", "password": "hash", "salt": "s", "sessionToken": "tok"]
    try folder.write([user], "_User.jsonl")
    try folder.write(Array("{\"msg-id\":\n[1]\n\(Self.message(1, "whole").text())".utf8), "saved.jsonl")
    let export = try export(folder)
    let users = try await export.users(after: nil)
    #expect(users.unreadable.count == 2)
    let raw = try #require(users.items.first?.raw?.text)
    #expect(raw.contains("hash"))
    #expect(!raw.contains("tok"))
    #expect(try await export.messages(in: ChannelID(Self.conversation), after: nil).items.count == 1)
  }

  @Test("a path without anything of chat is refused, and so is one that is not there")
  func refusals() throws {
    let folder = try Folder()
    #expect { _ = try export(folder) } throws: { ($0 as? ChatError)?.kind == .invalidArgument(field: "path") }
    #expect { _ = try LeanCloudExport(path: "/nowhere/at/all", http: Bench().host.transports.http) } throws: { error in
      (error as? ChatError)?.kind == .notFound
    }
    try folder.write([0x1F, 0x8B, 8, 0, 1, 2] as [UInt8], "_User.jsonl.gz")
    #expect { _ = try export(folder) } throws: { ($0 as? ChatError)?.kind == .protocolViolation }
  }

  @Test("a profile names the folder, and needs no account")
  func profile() async throws {
    let folder = try Folder()
    try folder.write(Self.conversations, "_Conversation.jsonl")
    let bench = try Bench()
    let entry = LeanCloudVendor.entry(transports: bench.host.transports)
    let path = JSONText(unchecked: JSONValue.string(folder.url.path).text())
    let source = try entry.makeSource(bench.profile(["export": path]), bench.environment())
    #expect(try await source.channels(after: nil).items.count == 2)
  }
}
