import ChatInterchange
import ChatJSON
import Foundation
import Testing
import UnifiedChat

@testable import ChatSamples

/// Real logs beside a checkout; absent from a clean clone.
private let dataFolder = URL(fileURLWithPath: #filePath)
  .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
  .appendingPathComponent("../shared/data").standardizedFileURL.path

private func hasLog(_ name: String) -> Bool { FileManager.default.fileExists(atPath: dataFolder + "/" + name) }

@Suite("Logs become records, and nothing of them is lost")
struct SeedTests {
  @Test("every line of the IRC log is one message, equal lines too", .enabled(if: hasLog("ubuntu-irc")))
  func ubuntu() throws {
    var ids: Set<MessageID> = []
    var times: [ChannelID: Timestamp] = [:]
    let summary = try SeedConverter.convert(at: dataFolder + "/ubuntu-irc") { record in
      guard case .message(let record) = record else { return }
      #expect(record.message.id.map { ids.insert($0).inserted } == true)
      let last = times.updateValue(record.message.createdAt, forKey: record.message.channel)
      #expect(last.map { $0 < record.message.createdAt } ?? true)
    }
    #expect(summary.messages == 72_226)
    #expect(summary.channels == 50)
    #expect(summary.leftOut.isEmpty)
    #expect(summary.replies > 15_000)
  }

  @Test("a dialogue is a direct channel with its attributes", .enabled(if: hasLog("kdconv-zh")))
  func kdconv() throws {
    var withData = 0
    let summary = try SeedConverter.convert(at: dataFolder + "/kdconv-zh") { record in
      if case .message(let record) = record, record.message.customData != nil { withData += 1 }
    }
    #expect(summary.channels == 300)
    #expect(summary.users == 600)
    #expect(summary.messages == 5_463)
    #expect(withData == 3_453)
  }

  @Test("exchanges of every language are read, folded and quoted lines too", .enabled(if: hasLog("chatterbot-multilang")))
  func chatterbot() throws {
    var texts: Set<String> = []
    let summary = try SeedConverter.convert(at: dataFolder + "/chatterbot-multilang") { record in
      if case .message(let record) = record, case .text(let text) = record.message.content { texts.insert(text) }
    }
    #expect(summary.channels > 2_000)
    #expect(texts.contains { $0.contains("only one carrion per  passenger.\" ") })
    #expect(texts.contains("שלום"))
  }

  @Test("another service's import file keeps reactions and counts what has no place", .enabled(if: hasLog("stream-import-sample")))
  func streamImport() throws {
    var reactions = 0
    let summary = try SeedConverter.convert(at: dataFolder + "/stream-import-sample") { record in
      if case .message(let record) = record { reactions += record.message.reactions.count }
    }
    #expect(summary.users == 4 && summary.channels == 3 && summary.members == 4 && summary.messages == 3)
    #expect(reactions == 3)
    #expect(summary.leftOut == ["device": 2])
  }

  @Test("the sample reads back from its lines")
  func sampleRoundTrip() throws {
    for record in SampleData.records {
      #expect(try Record(json: JSONValue(parsing: RecordLines.line(record))) == record)
    }
  }

  @Test("the sample holds what migrations break on")
  func sampleContent() {
    let messages = SampleData.records.compactMap { record -> Message? in
      if case .message(let record) = record { record.message } else { nil }
    }
    #expect(Set(messages.map(\.content.kindName)).isSuperset(of: ["text", "image", "file", "location", "custom", "recalled"]))
    #expect(messages.contains { $0.editedAt != nil })
    #expect(messages.contains { $0.replyTo != nil })
    #expect(messages.contains { $0.mentions.everyone })
    let times = messages.map { "\($0.channel)/\($0.createdAt.milliseconds)" }
    #expect(Set(times).count < times.count)
    #expect(Set(messages.map(\.id)).count == messages.count)
  }

  @Test(
    "a bad line is named by file, line and reason",
    arguments: [
      ("{", "unexpectedEnd"), ("[]", "must be an object"), (#"{"type":"poem"}"#, "none of user"),
      (#"{"type":"user"}"#, "/id"), (#"{"type":"message","channel":"c","createdAt":1}"#, "/content"),
      (#"{"type":"file","sha256":"00","data":"AA=="}"#, "/sha256"),
    ])
  func badLine(line: String, reason: String) throws {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("bad-\(UUID().uuidString).jsonl")
    defer { try? FileManager.default.removeItem(at: file) }
    try Data((#"{"type":"user","id":"a"}"# + "\n\n" + line + "\n").utf8).write(to: file)
    let error = #expect(throws: SeedError.self) { try RecordLines.read(file.path) { _ in } }
    #expect(error?.line == 3)
    #expect(error?.description.contains(reason) == true)
  }

  @Test("a folder without a known log is refused with the known ones")
  func unknownFolder() {
    let error = #expect(throws: SeedError.self) {
      try SeedConverter.convert(at: NSTemporaryDirectory() + "nowhere-\(UUID().uuidString)") { _ in }
    }
    #expect(error?.reason.contains("cannot be read") == true)
  }
}
