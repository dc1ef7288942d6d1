import ChatJSON
import Foundation
import LeanCloudAdapter
import LeanCloudWire
import Testing
import UnifiedChat

/// Messages of the 2014 model, whose library kept none and whose apps had tables of their own.
@Suite("An app's own table of the 2014 model")
struct PeerTableTests {
  typealias Folder = ExportTests.Folder
  static let time: Int64 = 1_404_203_400_000

  private func export(_ folder: Folder, _ name: String? = nil) throws -> LeanCloudExport {
    let path = name.map { folder.url.appendingPathComponent($0).path } ?? folder.url.path
    return try LeanCloudExport(path: path, http: Bench().host.transports.http)
  }

  private func texts(_ export: LeanCloudExport, _ channel: ChannelID) async throws -> [String?] {
    try await export.messages(in: channel, after: nil).items.map { record in
      if case .text(let text) = record.message.content { text } else { nil }
    }
  }

  static let tables: [(name: String, text: String)] = [
    (
      "table.csv",
      "\u{FEFF}From_Peer_ID,to-peer-id,Group ID,MSG,Time,messageId,mood\r\n"
        + "Tom,Jerry,,\"你好, \"\"Jerry\"\" 🐭\r\nsecond line\",1404203400000,m1,glad\r\n"
        + "\r\nJerry,Tom,,ok,2014-07-01T08:30:00.001Z,m2,\r\nTom,,g1,to all,1404203400002,m3,\r\n"
    ),
    (
      "any.jsonl",
      #"{"fromPeerId":"Tom","toPeerIds":["Jerry"],"message":"你好, \"Jerry\" 🐭\r\nsecond line","timestamp":1404203400000,"messageId":"m1","mood":"glad"}"#
        + "\n" + #"{"fromPeerId":"Jerry","toPeerId":"Tom","message":"ok","timestamp":"2014-07-01T08:30:00.001Z","messageId":"m2"}"#
        + "\n" + #"{"from_peer_id":"Tom","group":"g1","message":"to all","timestamp":1404203400002,"msgId":"m3"}"#
    ),
    (
      "peer-messages.json",
      #"[{"sender":"Tom","receiver":"Jerry","body":"你好, \"Jerry\" 🐭\r\nsecond line","ts":1404203400000,"id":"m1","mood":"glad"},"#
        + #"{"sender":"Jerry","receiver":"Tom","body":"ok","ts":1404203400001,"id":"m2"},"#
        + #"{"sender":"Tom","group":"g1","body":"to all","ts":1404203400002,"id":"m3"}]"#
    ),
  ]

  @Test("CSV, JSON Lines and an array say the same, under any usual names", arguments: tables.indices)
  func forms(_ index: Int) async throws {
    let folder = try Folder()
    try folder.write(Array(Self.tables[index].text.utf8), Self.tables[index].name)
    let groups: [JSONValue] = [["objectId": "g1", "m": ["Tom", "Jerry", "Spike"], "name": "cats"]]
    try folder.write(groups, "AVOSRealtimeGroups.jsonl")
    let export = try export(folder)
    let channels = try await export.channels(after: nil).items.map(\.channel)
    let pair = try #require(channels.first { $0.kind == .direct })
    #expect(channels.count == 2 && channels.contains { $0.id == "g1" && $0.name == "cats" })
    #expect(try await export.members(of: pair.id, after: nil).items.map(\.member.user.id) == ["Jerry", "Tom"])
    let records = try await export.messages(in: pair.id, after: nil).items
    #expect(records.map(\.message.id) == ["m1", "m2"])
    #expect(records.map(\.message.sender) == ["Tom", "Jerry"])
    #expect(records.map(\.message.createdAt.milliseconds) == [Self.time, Self.time + 1])
    #expect(try await texts(export, pair.id) == ["你好, \"Jerry\" 🐭\r\nsecond line", "ok"])
    #expect(try await texts(export, "g1") == ["to all"])
    #expect(records[0].raw?.text.contains(#""row":{"mood":"glad"}"#) == true)
  }

  @Test("rows without ids that two phones have are one message each, and two of one phone are two")
  func twoPhones() async throws {
    let folder = try Folder()
    let head = "fromPeerId,toPeerId,message,timestamp\n"
    let row = "Tom,Jerry,again,\(Self.time)\n"
    try folder.write(Array((head + row + row).utf8), "phone-1.csv")
    try folder.write(Array((head + row + "Tom,Jerry,new,\(Self.time + 1)\n").utf8), "phone-2.csv")
    let export = try export(folder)
    let channel = try #require(try await export.channels(after: nil).items.first?.channel.id)
    #expect(try await texts(export, channel) == ["again", "again", "new"])
  }

  @Test("without ids each row is a message, the same each time, and one with the service's page beside it")
  func unnamed() async throws {
    let folder = try Folder()
    let rows = "fromPeerId,toPeerId,message,timestamp\nTom,Jerry,hi,1404203400000\nTom,Jerry,hi,1404203400000\nTom,Jerry,new,1404203400005\n"
    try folder.write(Array(rows.utf8), "t.csv")
    let pair = try #require(try await export(folder).channels(after: nil).items.first?.channel.id)
    let first = try await export(folder).messages(in: pair, after: nil).items.map(\.message.id)
    #expect(Set(first).count == 3)
    #expect(try await export(folder).messages(in: pair, after: nil).items.map(\.message.id) == first)
    #expect(try await export(folder).check().notes.contains { $0.hasPrefix("3 messages of the 2014 model") })
    let told: JSONValue = [
      "msg-id": "told", "conv-id": .string(LeanCloudID.pair("Tom", "Jerry")), "timestamp": 1_404_203_400_005,
      "from": "Tom", "to": "Jerry", "is-conv": false, "is-room": false, "bin": false, "data": "new",
    ]
    try folder.write([told], "messages-1.jsonl")
    let ids = try await export(folder).messages(in: pair, after: nil).items.map(\.message.id)
    #expect(ids.count == 3 && ids.last == "told")
  }

  static let mistakes: [(text: String, says: String)] = [
    ("", "is empty"),
    ("sent by,toPeerId,message,timestamp\n", "line 1: the header names no fromPeerId"),
    ("fromPeerId,message,timestamp\n", "line 1: the header names neither toPeerId nor groupId"),
    ("from,sender,to,message,timestamp\n", "line 1: two columns are fromPeerId"),
    ("from,to,text,ts\na,b,hi\n", "line 2: has 3 fields where the header has 4"),
    ("from,to,text,ts\na,b,\"x\ny\",1404203400000\na,b,hi,1404203400\n", "line 4: timestamp 1404203400 is no time in milliseconds"),
    ("from,to,text,ts\na,b,hi,yesterday\n", "line 2: timestamp \"yesterday\" is no time"),
    ("from,to,text,ts\n,b,hi,1404203400000\n", "line 2: fromPeerId is empty"),
    ("from,to,group,text,ts\na,b,g,hi,1404203400000\n", "line 2: toPeerId and groupId are both there"),
    ("from,to,group,text,ts\na,,,hi,1404203400000\n", "line 2: toPeerId and groupId are both empty"),
    ("from,to,text,ts\na,b,\"hi,1404203400000\n", "line 2: a quote is opened and never closed"),
    ("from,to,text,ts\na,b,\"hi\"x,1404203400000\n", "line 2: text stands behind a closing quote"),
    ("from,to,text,ts\na,b,hi,1404203400000\n\u{1}", "line 3: has 1 fields where the header has 4"),
  ]

  @Test("a table that is wrong is one error with file, line and the mend", arguments: mistakes.indices)
  func wrong(_ index: Int) throws {
    let folder = try Folder()
    try folder.write(Array(Self.mistakes[index].text.utf8), "t.csv")
    #expect { _ = try export(folder, "t.csv") } throws: { error in
      let detail = (error as? ChatError)?.detail ?? ""
      let isRight = detail.hasPrefix("t.csv: \(Self.mistakes[index].says)") && detail.contains("; ")
      if !isRight { Issue.record("\(detail)") }
      return isRight
    }
  }

  @Test("bytes that are no UTF-8, and JSON rows that are wrong, are told by line too; a foreign table is left")
  func others() async throws {
    let folder = try Folder()
    try folder.write(Array("from,to,text,ts\na,b,".utf8) + [0xFF, 0x0A], "t.csv")
    #expect { _ = try export(folder, "t.csv") } throws: { "\($0)".contains("t.csv: line 2: is not UTF-8") }
    try folder.write(Array(#"{"from":"a","to":"b","text":"x","ts":1404203400000}"#.utf8) + Array("\n[]\n".utf8), "peer-messages.jsonl")
    #expect { _ = try export(folder, "peer-messages.jsonl") } throws: {
      "\($0)".contains("peer-messages.jsonl: line 2: is no JSON object")
    }
    try FileManager.default.removeItem(at: folder.url.appendingPathComponent("peer-messages.jsonl"))
    try folder.write(Array("rank,score\n1,2\n".utf8), "t.csv")
    try folder.write(ExportTests.conversations, "_Conversation.jsonl")
    #expect(try await export(folder).check().leftOut == ["t.csv: a table without a column fromPeerId"])
  }
}
