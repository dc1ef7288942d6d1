import ChatJSON
import Foundation
import Synchronization
import Testing
import UnifiedChat

@testable import ChatMigration

@Suite("What belongs to chat and has no place among the records")
struct VendorRowTests {
  static func row(_ kind: String, _ id: String, user: UserID? = nil, channel: ChannelID? = nil, _ text: String = "x")
    -> VendorRow
  {
    // With what another writing of the same JSON would change.
    VendorRow(
      kind: kind, id: id, user: user, channel: channel,
      raw: JSONText(unchecked: "{\"b\": 1.0, \"a\":\"\(text)\\u00e9\", \"a\":[ ]}"))
  }

  /// 20 devices (pages have seven), a friend, and what a filter may leave out.
  static let rows =
    (10..<30).map { row("devices", "\($0)") } + [
      row("friends", "1", user: "user-1"), row("notes", "1", channel: "channel 1"),
      // Two ids that differ in their Unicode form alone.
      row("devices", "e\u{301}"), row("devices", "\u{e9}"),
    ]

  final class Pages: Sendable {
    let count = Mutex(0)
    func next() -> Int {
      count.withLock { count in
        count += 1
        return count
      }
    }
  }

  func prepared() throws -> MigrationHarness {
    let harness = try MigrationHarness()
    SampleChats.fill(harness.source)
    harness.source.state.withLock {
      $0.rows = Self.rows
      $0.leftOut = ["broadcasts", "statistics"]
    }
    return harness
  }

  func all(_ archive: Archive, of kind: String? = nil) async throws -> [VendorRow] {
    var found: [VendorRow] = []
    while true {
      let page = try await archive.rows(of: kind, after: found.last, limit: 3)
      if page.isEmpty { return found }
      found += page
    }
  }

  @Test("a pull keeps each row byte for byte, counts them by kind, and names what it does not read")
  func pull() async throws {
    let harness = try prepared()
    let archive = try await harness.pull()
    let found = try await all(archive)
    #expect(Set(found) == Set(Self.rows) && found.count == Self.rows.count)
    #expect(try await archive.rowCounts().map { "\($0.kind) \($0.count)" } == ["devices 22", "friends 1", "notes 1"])
    #expect(try await all(archive, of: "friends").map(\.user) == ["user-1"])
    #expect(try await archive.leftOut() == ["broadcasts", "statistics"])
    #expect(try await archive.verify().isWhole)
  }

  @Test("the digest covers every member of a row", arguments: ["kind", "id", "user", "channel", "raw"])
  func digest(_ column: String) async throws {
    let harness = try prepared()
    let archive = try await harness.pull()
    try await archive.close()
    let database = try Database(path: harness.archivePath, mode: .readWrite, operation: .archive)
    try database.run("UPDATE vendor_rows SET \(column) = 'other' WHERE kind = 'friends'")
    database.close()
    let verification = try await Archive.open(at: harness.archivePath).verify()
    #expect(verification.findings.map(\.id) == ["digest.rows", "digest"])
  }

  @Test("a row that is gone from the archive is found missing, the last one too")
  func missing() async throws {
    let harness = try prepared()
    harness.source.state.withLock { $0.rows = [Self.row("devices", "1")] }
    let archive = try await harness.pull()
    try await archive.close()
    let database = try Database(path: harness.archivePath, mode: .readWrite, operation: .archive)
    try database.execute("DELETE FROM vendor_rows")
    database.close()
    let verification = try await Archive.open(at: harness.archivePath).verify()
    #expect(!verification.isWhole)
  }

  @Test("a pull that ends among the rows goes on with them, and a killed one has whole pages")
  func resumed() async throws {
    let harness = try prepared()
    let pages = Pages()
    harness.source.setFault { call, _, _ in
      // The third page of rows.
      call == "rows" && pages.next() == 3 ? ChatError(.permission(), operation: .readSource) : nil
    }
    await #expect(throws: ChatError.self) { _ = try await harness.pull() }
    #expect(pages.count.withLock { $0 } == 3)
    let archive = try await harness.pull()
    // Four pages there are, of which two were here.
    #expect(pages.count.withLock { $0 } == 5)
    #expect(try await all(archive).count == Self.rows.count)
    let other = try prepared()
    #expect(try await other.pull().digest() == archive.digest())
  }

  @Test("read again from the start, a row takes its new form, a new one comes, and one that is gone stays")
  func again() async throws {
    let harness = try prepared()
    let archive = try await harness.pull()
    harness.source.state.withLock { state in
      state.rows = [Self.row("friends", "1", user: "user-2", "new"), Self.row("friends", "2")]
      state.leftOut = ["statistics"]
    }
    for rereads in [false, true] {
      let options = ExtractionOptions(refreshes: true, rereads: rereads)
      _ = try await Extractor(source: harness.source, archive: archive, options: options, clock: harness.clock).run()
      // A look at what is new leaves them: every row would have to be asked for.
      #expect(try await all(archive).count == Self.rows.count + (rereads ? 1 : 0))
      #expect(try await all(archive, of: "friends").map(\.user) == (rereads ? ["user-2", nil] : ["user-1"]))
      #expect(try await archive.leftOut() == (rereads ? ["statistics"] : ["broadcasts", "statistics"]))
    }
    #expect(try await archive.verify().isWhole)
  }

  @Test("the filter lets through what is nobody's, and of users and channels what is wanted")
  func filtered() async throws {
    let harness = try prepared()
    let archive = try Archive.create(
      at: harness.archivePath, Archive.Identity(vendor: "old", createdAt: harness.clock.now))
    var options = ExtractionOptions()
    options.filter = MigrationFilter(excludedChannels: ["channel 1"], excludedUsers: ["user-1"])
    _ = try await Extractor(source: harness.source, archive: archive, options: options, clock: harness.clock).run()
    #expect(try await archive.rowCounts().map(\.kind) == ["devices"])
  }

  @Test("a row that names somebody by another id is left out with them where the source says who that is")
  func filteredByOthersIDs() async throws {
    let harness = try MigrationHarness()
    let raw = JSONText(unchecked: #"{"follower": "5f01", "followee": "5f02"}"#)
    harness.source.state.withLock { state in
      state.rows = [
        VendorRow(kind: "friends", id: "1", people: ["user-1", "user-2"], raw: raw),
        VendorRow(kind: "friends", id: "2", people: ["user-2", "user-3"], raw: raw),
      ]
    }
    let archive = try Archive.create(
      at: harness.archivePath, Archive.Identity(vendor: "old", createdAt: harness.clock.now))
    var options = ExtractionOptions()
    options.filter = MigrationFilter(excludedUsers: ["user-1"])
    _ = try await Extractor(source: harness.source, archive: archive, options: options, clock: harness.clock).run()
    #expect(try await all(archive).map(\.id) == ["2"])
  }

  @Test("lines and back, the rows are the same ones, and so is the digest")
  func lines() async throws {
    let harness = try prepared()
    let archive = try await harness.pull()
    let path = harness.folder.file("lines.jsonl")
    let exported = try await ArchiveLines.export(archive, to: path)
    #expect(exported.rows == Self.rows.count)
    let (copy, summary) = try await ArchiveLines.importing(
      path, into: harness.folder.file("copy"), Archive.Identity(vendor: "old", createdAt: harness.clock.now),
      at: harness.clock.now)
    #expect(summary.rows == Self.rows.count && summary.unreadable == 0)
    #expect(try await copy.digest() == archive.digest())
    #expect(try await copy.leftOut() == archive.leftOut())
    let bytes = try Data(contentsOf: URL(filePath: path + ".rows.jsonl"))
    let schema = URL(filePath: #filePath).deletingLastPathComponent().appending(
      path: "../../Schemas/vendor-row.schema.json")
    let check = SchemaCheck(root: try JSONValue(parsing: Array(try Data(contentsOf: schema))))
    for line in bytes.split(separator: 10) { #expect(check.problems(try JSONValue(parsing: Array(line))) == []) }
    // Without rows there is no file of them, nor one of an earlier export.
    let plain = try MigrationHarness()
    SampleChats.fill(plain.source)
    try await ArchiveLines.export(try await plain.pull(), to: path)
    #expect(!FileManager.default.fileExists(atPath: path + ".rows.jsonl"))
  }

  @Test("a line that is no row is listed, and the others come")
  func brokenLine() async throws {
    let harness = try prepared()
    let path = harness.folder.file("lines.jsonl")
    try await ArchiveLines.export(try await harness.pull(), to: path)
    let broken = "{\"kind\":\"devices\"}\nnothing\n{\"kind\":\"devices\",\"id\":\"1\",\"raw\":\"{}\"}\n"
    try Data(broken.utf8).write(to: URL(filePath: path + ".rows.jsonl"))
    let (copy, summary) = try await ArchiveLines.importing(
      path, into: harness.folder.file("copy"), Archive.Identity(vendor: "old", createdAt: harness.clock.now),
      at: harness.clock.now)
    #expect(summary.unreadable == 2)
    #expect(try await copy.rowCounts().map(\.count) == [1])
    #expect(try await copy.unreadable(limit: 10).map(\.id) == ["rows 1", "rows 2"])
  }

  @Test("an export joins an archive: what is there stays as it is")
  func merged() async throws {
    let harness = try prepared()
    let archive = try await harness.pull()
    let export = MemoryService(vendor: "old")
    export.state.withLock { state in
      state.rows = [Self.row("friends", "1", "other"), Self.row("friends", "9")]
      state.leftOut = ["statistics", "things"]
    }
    let summary = try await archive.importing(export, clock: harness.clock)
    #expect(summary.rows == 1)
    #expect(try await all(archive, of: "friends").map(\.user) == ["user-1", nil])
    #expect(try await archive.leftOut() == ["broadcasts", "statistics", "things"])
    #expect(try await archive.verify().isWhole)
  }

  @Test("plan and report name what is not carried, with counts, and a redacted copy has none of it")
  func named() async throws {
    let harness = try prepared()
    let run = ReportTests().run(harness)
    let report = try await run.run()
    #expect(report.notCarried.map { "\($0.kind) \($0.count)" } == ["devices 22", "friends 1", "notes 1"])
    #expect(report.notRead == ["broadcasts", "statistics"])
    #expect(report.isGood)
    for text in [report.words(), report.markdown(), report.html()] {
      for word in ["devices", "22", "friends", "broadcasts", "statistics"] { #expect(text.contains(word)) }
    }
    #expect(report.json()["notCarried"]?[0]?["count"]?.int == 22)
    let archive = try Archive.open(at: harness.archivePath)
    let plan = try await Planner.plan(
      archive, harness.destination, LoadOptions(), nil, ProgressReporter(clock: harness.clock))
    #expect(plan.notCarried == report.notCarried)
    #expect(plan.words().contains("22 rows of devices stay in the archive"))
    let copy = try await archive.redacted(to: harness.folder.file("copy"), RedactionRules(), at: harness.clock.now)
    #expect(try await copy.rowCounts().isEmpty)
    // What was not read of the app is not in the copy either, and neither are the rows.
    #expect(
      try await copy.leftOut() == ["broadcasts", "statistics", "rows of devices, friends, notes, which a redacted copy never has"])
    let plain = try MigrationHarness()
    SampleChats.fill(plain.source)
    let bare = try await plain.pull().redacted(
      to: plain.folder.file("copy"), RedactionRules(), at: plain.clock.now)
    #expect(try await bare.leftOut() == [])
  }
}
