import ChatJSON
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("Moving a whole app from the command line", .serialized)
struct MigrateTests {
  /// A tool with an archive of 80 messages and an emulator to write to.
  private func prepared(_ vendor: String) throws -> (Tool, RunningEmulator) {
    let tool = try Tool()
    try tool.write(KillTests.records(channels: 2, messages: 40), to: "r.jsonl")
    try tool.write("emulated-secret\n", to: "secret")
    #expect(try tool.run("archive", "import", "r.jsonl", "--to", "a.uchat").code == 0)
    let emulator = try RunningEmulator(vendor, in: tool)
    try tool.write(KillTests.configuration([(vendor, emulator.baseURL)]), to: "unifiedchat.json")
    return (tool, emulator)
  }

  @Test("plan, a run with a limit, the rest, the signs, the report and the way back")
  func wholeStory() throws {
    let (tool, emulator) = try prepared("sendbird")
    defer {
      emulator.stop()
      tool.remove()
    }
    let ends = ["--from", "a.uchat", "--to", "sendbird"]
    let files = ["plan.html", "plan.md", "plan.json"]
    let plan = try tool.run(["migrate", "plan"] + ends + files.flatMap { ["--report", $0] })
    #expect(plan.code == 0 && plan.output.contains("80 messages will be written"), "\(plan.errors)")
    let plans = try files.map { try String(contentsOf: tool.folder.appendingPathComponent($0), encoding: .utf8) }
    #expect(plans.allSatisfy { $0.contains("message.content") })
    #expect(plans[0].hasPrefix("<!doctype html>") && plans[1].hasPrefix("# Migration plan"))
    #expect(try JSONValue(parsing: plans[2])["messages"]?.int == 80)
    let wrong = try tool.run(["migrate", "plan"] + ends + ["--report", "plan.txt"])
    #expect(wrong.code == 2 && wrong.output.isEmpty, "\(wrong.errors)")

    try tool.write("user-1,member-1\n# a comment\nuser-2,member-2\n", to: "users.csv")
    let mapped = ends + ["--users", "users.csv", "--user-rule", "s/^user-(.*)$/u_$1/", "--audit", "audit.jsonl"]
    let limited = try tool.run(["migrate", "run"] + mapped + ["--max-messages", "30"])
    #expect(limited.code == 130)
    #expect(limited.errors.contains("go on with: unifiedchat migrate resume --from a.uchat --to sendbird"), "\(limited.errors)")
    let whole = try tool.run(["migrate", "run"] + mapped + ["--no-verify"])
    #expect(whole.code == 0, "\(whole.errors)\(whole.output)")
    let audit = try String(contentsOf: tool.folder.appendingPathComponent("audit.jsonl"), encoding: .utf8)
    let told = audit.split(separator: "\n").compactMap { try? JSONValue(parsing: String($0)) }
    let written = told.filter { $0["call"]?.string == "putMessage" && $0["to"] != nil }.compactMap { $0["from"]?.string }
    #expect(Set(written).count == 80)
    #expect(!audit.contains("你好"))

    let verified = try tool.run("verify", "--archive", "a.uchat", "--against", "sendbird")
    #expect(verified.code == 0, "\(verified.output)\(verified.errors)")
    let lines = verified.output.split(separator: "\n")
    #expect(lines.filter { $0.hasPrefix("= c0ffee") }.count == 2)
    #expect(lines.last == "The migration looks good: all 80 messages of records in 2 channels are on sendbird, none missing, none doubled.")

    let report = try tool.run(["migrate", "report"] + ends + ["--json", "--report", "r.html", "--report", "r.md"])
    #expect(report.code == 0)
    #expect(try JSONValue(parsing: report.output.trimmingCharacters(in: .whitespacesAndNewlines))["perfect"]?.bool == true)
    let page = try String(contentsOf: tool.folder.appendingPathComponent("r.html"), encoding: .utf8)
    #expect(page.hasPrefix("<!doctype html>") && !page.contains("http"))

    let other = try tool.run(["migrate", "run"] + ends + ["--ledger", "other.ledger"])
    #expect(other.code != 0 && other.errors.contains("--into-existing"), "\(other.errors)")
    let asked = try tool.run(["migrate", "rollback"] + ends)
    #expect(asked.code == 0 && asked.output.contains("would remove 2 channels, 80 messages and 8 accounts"), "\(asked.output)")
    let back = try tool.run(["migrate", "rollback"] + ends + ["--yes"])
    #expect(back.code == 0 && back.output.contains("nothing of the run is left"), "\(back.output)\(back.errors)")
    let gone = try tool.run("archive", "pull", "--profile", "sendbird", "--to", "after.uchat", "--json")
    #expect(try JSONValue(parsing: gone.output.trimmingCharacters(in: .whitespacesAndNewlines))["channels"]?.int == 0)
  }

  @Test("following goes on until a signal or the cut-over, and ends with a verified zero lag")
  func followed() throws {
    let (tool, target) = try prepared("openim")
    let source = try RunningEmulator("leancloud", in: tool, load: "r.jsonl")
    defer {
      target.stop()
      source.stop()
      tool.remove()
    }
    try tool.write(
      KillTests.configuration([("openim", target.baseURL), ("leancloud", source.baseURL)]), to: "unifiedchat.json")
    let archive = try tool.run("migrate", "follow", "--from", "a.uchat", "--to", "openim", "--cut-over", "now")
    #expect(archive.code == 2 && archive.errors.contains("--from"), "\(archive.errors)")

    let words = ["migrate", "follow", "--from", "leancloud", "--to", "openim", "--cut-over", "now", "--every", "3600"]
    let output = Pipe()
    let errors = Pipe()
    let run = try tool.start(words, output: output, errors: errors)
    var line = ""
    while !line.contains("\n"), let bytes = try output.fileHandleForReading.read(upToCount: 1), !bytes.isEmpty {
      line += String(decoding: bytes, as: UTF8.self)
    }
    #expect(line.contains("look 1 through everything: lag 80 (80 new, 0 changed, 0 removed)"), "\(line)")
    // It now waits an hour for its next look.
    kill(run.processIdentifier, SIGINT)
    run.waitUntilExit()
    let told = String(decoding: try errors.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    #expect(run.terminationStatus == 130)
    #expect(told.contains("go on with: unifiedchat migrate follow --from leancloud --to openim --cut-over now"), "\(told)")

    try tool.write("", to: "now")
    let end = try tool.run(words)
    #expect(end.code == 0, "\(end.output)\(end.errors)")
    #expect(end.output.contains("lag 0 (0 new, 0 changed, 0 removed)\ncut over: lag 0, verified. The migration looks good: all 80"), "\(end.output)")
  }

  @Test("an archive can be searched and read, in Chinese too, and redacted")
  func reading() throws {
    let tool = try Tool()
    defer { tool.remove() }
    try tool.write(KillTests.records(channels: 2, messages: 40), to: "r.jsonl")
    #expect(try tool.run("archive", "import", "r.jsonl", "--to", "a.uchat").code == 0)
    for (words, count) in [("你", 52), ("好 TEXT", 52), ("0-31", 1), ("again", 28), ("好好", 0)] {
      let found = try tool.run("archive", "search", "a.uchat", words, "--limit", "100")
      #expect(found.output.split(separator: "\n").count == count, "\(words): \(found.output)")
      #expect(found.code == (count == 0 ? 1 : 0))
    }
    let channel = "c0ffee00c0ffee00c0ffee01"
    let last = try tool.run("archive", "show", "a.uchat", "--channel", channel, "--last", "--limit", "2")
    #expect(last.output.split(separator: "\n").last?.contains("again") == true, "\(last.output)")
    #expect(try tool.run("archive", "show", "a.uchat", "--user", "user-3").output.contains(channel))

    let redacted = try tool.run(
      "archive", "redact", "a.uchat", "--to", "b.uchat", "--drop-user", "user-3", "--mask-bodies")
    #expect(redacted.code == 0 && redacted.output.contains("7 users, 2 channels, 14 members, 70 messages"), "\(redacted.output)")
    let exported = try tool.run("archive", "export", "b.uchat", "--to", "b.jsonl")
    #expect(exported.code == 0)
    let text = try String(contentsOf: tool.folder.appendingPathComponent("b.jsonl"), encoding: .utf8)
    #expect(!text.contains("user-3") && !text.contains("你好") && text.contains("····"))
    #expect(try tool.run("archive", "verify", "b.uchat").code == 0)
  }
}
