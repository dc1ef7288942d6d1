import ChatJSON
import ChatMigration
import ChatSamples
import Foundation
import UnifiedChat

/// `unifiedchat seed`
enum SeedCommand {
  static let command = Command(
    name: "seed", summary: "turn public chat logs into neutral records that every emulator loads",
    options: [
      .value("from", "PATH", "a folder of logs; without it, the built-in sample"),
      .value("to", "FILE", "where the JSON Lines go (- for standard output)", required: true),
      Command.json,
    ],
    examples: [
      "unifiedchat seed --from logs/ubuntu-irc --to irc.jsonl",
      "unifiedchat seed --to sample.jsonl && unifiedchat emulate --vendor leancloud --load sample.jsonl",
    ],
    details: "Known logs: \(SeedFormat.allCases.map(\.rawValue).joined(separator: ", ")). The form is found by looking.",
    run: run)

  private static func run(_ invocation: Invocation) async throws -> ExitCode {
    let target = invocation.value("to") ?? "-"
    let summary = try write(from: invocation.value("from"), to: target)
    if Files.isStandardOutput(target) {
      // The records stand there; a summary among them would be one line too many.
      if invocation.json { Standard.error(json(summary).text()) }
    } else if invocation.json {
      Standard.line(json(summary).text())
    } else {
      Standard.line(
        "\(target): \(summary.users) users, \(summary.channels) channels, \(summary.members) members, "
          + "\(summary.messages) messages (\(summary.replies) replies), \(summary.files) files")
      for (kind, count) in summary.leftOut.sorted(by: { $0.key < $1.key }) {
        Standard.line("left out, no record has a place for it: \(count) of kind \(kind)")
      }
    }
    return .success
  }

  /// Converts to a file, which appears only when it is whole. A pipe or a device is written as it is.
  static func write(from source: String?, to target: String) throws -> SeedSummary {
    try Files.requireWritable(target)
    let isStream = Files.isStandardOutput(target) || Files.isStream(target)
    let file: FileWriter?
    do { file = isStream ? nil : try FileWriter(target + ".part", operation: .archive) } catch {
      throw Failure(.storage, "cannot be written: \(error.detail); name a folder that exists and is yours")
    }
    // A reader of standard output who has had enough is no failure.
    let handle = isStream && !Files.isStandardOutput(target) ? FileHandle(forWritingAtPath: target) : nil
    guard handle != nil || file != nil || Files.isStandardOutput(target) else {
      throw Failure(.storage, "\(target): cannot be opened for writing")
    }
    func flush(_ bytes: [UInt8]) throws {
      if let file { return try file.write(bytes) }
      if let handle { try handle.write(contentsOf: bytes) } else { Standard.write(bytes, to: .output) }
    }
    var buffer: [UInt8] = []
    var summary = SeedSummary()
    do {
      let sink: RecordSink = { record in
        buffer += RecordLines.line(record)
        if buffer.count > 1 << 20 {
          try flush(buffer)
          buffer.removeAll(keepingCapacity: true)
        }
      }
      if let source {
        summary = try SeedConverter.convert(at: source, to: sink)
      } else {
        for record in SampleData.records {
          summary.count(record)
          try sink(record)
        }
      }
      try flush(buffer)
      try handle?.close()
      try file?.finish(movingTo: target)
    } catch {
      // What is not whole goes with its writer.
      if error is SeedError { throw error }
      if let error = error as? ChatError { throw Failure(.storage, error.detail) }
      throw Failure(.storage, "\(target): \(error.localizedDescription)")
    }
    return summary
  }

  private static func json(_ summary: SeedSummary) -> JSONValue {
    var left = JSONObject()
    for (kind, count) in summary.leftOut.sorted(by: { $0.key < $1.key }) { left[kind] = .int(Int64(count)) }
    return [
      "users": .int(Int64(summary.users)), "channels": .int(Int64(summary.channels)),
      "members": .int(Int64(summary.members)), "messages": .int(Int64(summary.messages)),
      "replies": .int(Int64(summary.replies)), "files": .int(Int64(summary.files)), "leftOut": .object(left),
    ]
  }
}
