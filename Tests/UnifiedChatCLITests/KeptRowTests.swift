import ChatJSON
import Foundation
import Testing

@Suite("What an archive keeps that is no record, on the command line")
struct KeptRowTests {
  @Test("rows of an export are counted, shown as they are, exported and imported, and what is left out is named")
  func rows() throws {
    let tool = try Tool()
    defer { tool.remove() }
    let device = #"{"objectId":"i1","deviceType":"ios","deviceToken":"t\u001b[31m"}"#
    let folder = tool.folder.appendingPathComponent("export")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try tool.write(device + "\n" + #"{"objectId":"i2","deviceType":"ios"}"# + "\n", to: "export/_Installation.jsonl")
    try tool.write(#"{"objectId":"t1"}"# + "\n", to: "export/_Todo.jsonl")
    // Nothing but such rows is worth an archive too.
    let imported = try tool.run("archive", "import", "export", "--export", "leancloud", "--to", "a.uchat")
    #expect(imported.code == 0, "\(imported.errors)")
    #expect(imported.output.contains("2 rows of the vendor's own"))
    #expect(imported.output.contains("not read: 1 rows of _Todo"))

    let shown = try tool.run("archive", "show", "a.uchat").output
    #expect(shown.contains("kept as the vendor gave it: 2 of _Installation"))
    #expect(shown.contains("not read: 1 rows of _Todo"))
    let json = try JSONValue(parsing: try tool.run("archive", "show", "a.uchat", "--json").output)
    #expect(json["rows"]?["_Installation"]?.int == 2)
    #expect(json["notRead"]?.array?.count == 1)
    let rows = try tool.run("archive", "show", "a.uchat", "--rows", "_Installation").output
    #expect(rows.split(separator: "\n").map(String.init).first == device)
    #expect(try tool.run("archive", "show", "a.uchat", "--rows", "_Installation", "--limit", "1").output == device + "\n")
    let part = try tool.run("archive", "show", "a.uchat", "--rows", "_Installation", "--limit", "1")
    #expect(part.errors.contains("1 more rows of _Installation are there; --limit 2 prints all"))
    #expect(try tool.run("archive", "show", "a.uchat", "--rows", "_Installation").errors.isEmpty)
    let none = try tool.run("archive", "show", "a.uchat", "--rows", "_Nothing")
    #expect(none.code == 3 && none.errors.contains("archive show lists what it holds"))
    #expect(try tool.run("archive", "show", "a.uchat", "--rows", "_Installation", "--user", "x").code == 2)

    #expect(try tool.run("archive", "export", "a.uchat", "--to", "l.jsonl").code == 0)
    let back = try tool.run("archive", "import", "l.jsonl", "--to", "b.uchat")
    #expect(back.output.contains("2 rows of the vendor's own"), "\(back.errors)")
    #expect(try tool.run("archive", "show", "b.uchat", "--rows", "_Installation").output == rows)
    #expect(try tool.run("archive", "verify", "b.uchat").code == 0)
  }
}
