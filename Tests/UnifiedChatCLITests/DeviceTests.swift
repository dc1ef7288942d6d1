import CSQLite
import ChatJSON
import Foundation
import Testing

@Suite("A phone's database joins a rescue, on the command line")
struct DeviceTests {
  private static let channel = "5f0000000000000000000001"

  private func phone(_ path: String, _ statements: [String]) throws {
    var handle: OpaquePointer?
    try #require(sqlite3_open(path, &handle) == SQLITE_OK)
    defer { sqlite3_close_v2(handle) }
    for statement in statements {
      let code = sqlite3_exec(handle, statement, nil, nil, nil)
      try #require(code == SQLITE_OK, "\(String(cString: sqlite3_errmsg(handle)))")
    }
  }

  private func message(_ id: String, _ time: Int64, _ text: String, patched: Int64 = 0, status: Int = 2) -> String {
    """
    INSERT INTO messages (conversation_id, message_id, timestamp, from_peer_id, updateAt, payload, status, breakpoint)
    VALUES ('\(Self.channel)', '\(id)', \(time), 'Tom', \(patched), CAST('{"_lctype":-1,"_lctext":"\(text)"}' AS BLOB),
    \(status), 0)
    """
  }

  private static let tables = [
    """
    CREATE TABLE messages (conversation_id VARCHAR(32) NOT NULL, message_id VARCHAR(32) NOT NULL, timestamp NUMBERIC,
    from_peer_id TEXT NOT NULL, receipt_timestamp NUMBERIC, readAt NUMBERIC, updateAt NUMBERIC, payload BLOB,
    status INTEGER, breakpoint INTEGER, dtoken VARCHAR(32), mentionAll INTEGER default 0, mentionList TEXT NULL,
    iType INTEGER default 0, PRIMARY KEY(conversation_id,message_id))
    """,
    "CREATE TABLE conversations (conversation_id VARCHAR(32) NOT NULL PRIMARY KEY, instanceData BLOB, members TEXT)",
    """
    INSERT INTO conversations VALUES ('\(channel)', '{"name":"猫和老鼠","updatedAt":"2020-07-02T00:00:00.000Z"}', '["Tom","Jerry"]')
    """,
  ]

  @Test("two phones and a page of the service become one archive that can be shown, searched and verified")
  func rescue() throws {
    let tool = try Tool()
    defer { tool.remove() }
    let start: Int64 = 1_594_000_000_000
    try phone(
      tool.folder.appendingPathComponent("com.avos.avoscloud.im.v2.Tom").path,
      Self.tables + [
        message("told", start + 2, "as Tom has it", patched: start + 9), message("both", start + 1, "奶酪 old"),
        message("oldest", start, "很久以前"), message("failed", start + 3, "never", status: 4),
      ])
    try phone(
      tool.folder.appendingPathComponent("jerry").path,
      Self.tables + [message("both", start + 1, "奶酪 new 🧀", patched: start + 900)])
    let page = """
      {"msg-id":"told","conv-id":"\(Self.channel)","timestamp":\(start + 2),"from":"Tom","is-conv":true,"bin":false,\
      "data":"{\\"_lctype\\":-1,\\"_lctext\\":\\"as the service has it\\"}"}
      """
    try tool.write(page + "\n", to: "messages-1.jsonl")
    func importing(_ name: String) throws -> Tool.Outcome {
      try tool.run("archive", "import", name, "--export", "leancloud", "--to", "r.uchat")
    }
    #expect(try importing("messages-1.jsonl").code == 0)
    let tom = try importing("com.avos.avoscloud.im.v2.Tom")
    #expect(tom.code == 0 && tom.output.contains("2 messages,"), "\(tom.output)\(tom.errors)")
    #expect(tom.output.contains("not read: com.avos.avoscloud.im.v2.Tom: 1 messages that never reached the service"))
    let jerry = try importing("jerry")
    #expect(jerry.code == 0 && jerry.output.contains("0 messages,"), "\(jerry.output)\(jerry.errors)")
    #expect(jerry.output.contains("1 took a better form"), "\(jerry.output)")

    let shown = try tool.run("archive", "show", "r.uchat", "--channel", Self.channel)
    let places = ["很久以前", "奶酪 new 🧀", "as the service has it"].map { shown.output.range(of: $0)?.lowerBound }
    #expect(places.allSatisfy { $0 != nil } && places.compactMap(\.self) == places.compactMap(\.self).sorted(), "\(shown.output)")
    #expect(!shown.output.contains("never") && !shown.output.contains("as Tom has it"))
    #expect(try tool.run("archive", "show", "r.uchat").output.contains("never reached the service"))
    #expect(try tool.run("archive", "search", "r.uchat", "奶酪").output.contains("奶酪"))
    #expect(try tool.run("archive", "verify", "r.uchat").code == 0)
    let json = try JSONValue(parsing: try tool.run("archive", "show", "r.uchat", "--json").output)
    #expect(json["notRead"]?.array?.count == 1)
  }

  @Test("a file that is no database of these libraries is an error with its name, and no archive is made")
  func refused() throws {
    let tool = try Tool()
    defer { tool.remove() }
    try phone(tool.folder.appendingPathComponent("other.db").path, ["CREATE TABLE notes (id TEXT)"])
    try tool.write("SQLite format 3\0and then nothing", to: "cut.db")
    for (name, says) in [("other.db", "none of LeanCloud's client libraries"), ("cut.db", "damaged or cut off")] {
      let outcome = try tool.run("archive", "import", name, "--export", "leancloud", "--to", "r.uchat")
      #expect(outcome.code != 0 && outcome.errors.contains(name) && outcome.errors.contains(says), "\(outcome.errors)")
      #expect(!FileManager.default.fileExists(atPath: tool.folder.appendingPathComponent("r.uchat").path))
    }
  }
}
