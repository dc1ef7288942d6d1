import ChatCrypto
import ChatInterchange
import ChatJSON
import Foundation
import UnifiedChat

/// An archive as JSON Lines (`Schemas/records.schema.json`) and back.
///
/// What is no record stands beside the lines, so that everything that takes records takes the lines as they are: who
/// made the archive, and what could not be read, in `<file>.manifest.json`; the vendor's own rows, where there are any,
/// in `<file>.rows.jsonl` (`Schemas/vendor-row.schema.json`).
public enum ArchiveLines {
  /// What an export wrote.
  public struct Exported: Sendable, Hashable {
    public var records = 0
    /// Of what is no record, in `<file>.rows.jsonl`.
    public var rows = 0
    /// Digests of attachments that the archive names and whose bytes are not beside it.
    public var missingFiles: [String] = []
  }

  /// Writes users, channels with their members, then each channel's files and messages. Replaces what is there, but for
  /// an archive or a ledger.
  /// - Parameter inlinesFiles: whether the bytes of attachments come along, as base64 in `file` records.
  @discardableResult
  public static func export(
    _ archive: Archive, to path: String, inlinesFiles: Bool = true
  ) async throws(ChatError) -> Exported {
    try PrivateFile.requireReplaceable(path, operation: .archive)
    try PrivateFile.refuseDatabase(path, operation: .archive)
    var missing: [String] = []
    let output = LineWriter(try FileWriter(path + ".part", operation: .archive))
    try await exportUsers(archive, output)
    try await exportChannels(archive, output)
    if inlinesFiles { missing = try await exportFiles(archive, output) }
    try await exportMessages(archive, output)
    let rows = try await exportRows(archive, to: path + ".rows.jsonl")
    try PrivateFile.replace(
      path + ".manifest.json", with: try await manifest(of: archive, missing: missing).bytes() + [UInt8(ascii: "\n")],
      operation: .archive)
    try output.finish(movingTo: path)
    return Exported(records: output.count, rows: rows, missingFiles: missing)
  }

  private static func exportUsers(_ archive: Archive, _ output: LineWriter) async throws(ChatError) {
    var after: Int64 = 0
    while true {
      let page = try await archive.users(after: after, limit: 500)
      for user in page { try output.write(user.stored) }
      guard let last = page.last else { return }
      after = last.ordinal
    }
  }

  private static func exportChannels(_ archive: Archive, _ output: LineWriter) async throws(ChatError) {
    try await forEachChannel(archive) { channel throws(ChatError) in
      try output.write(channel.stored)
      var user: UserID?
      while true {
        let page = try await archive.members(of: channel.ordinal, after: user, limit: 500)
        for member in page { try output.write(member) }
        guard let last = page.last else { return }
        user = try last.member().member.user.id
      }
    }
  }

  private static func exportFiles(
    _ archive: Archive, _ output: LineWriter
  ) async throws(ChatError) -> [String] {
    var after = ""
    var missing: [String] = []
    while true {
      let page = try await archive.storedFiles(after: after, limit: 100)
      for file in page {
        guard let bytes = try archive.files.bytes(of: file.stored.sha256) else {
          missing.append(file.stored.sha256)
          continue
        }
        let record = FileRecord(
          sha256: file.stored.sha256, name: file.name, mimeType: file.mimeType, bytes: bytes)
        try output.write(Record.file(record).json().canonicalBytes())
      }
      guard let last = page.last else { return missing }
      after = last.stored.sha256
    }
  }

  private static func exportMessages(_ archive: Archive, _ output: LineWriter) async throws(ChatError) {
    try await forEachChannel(archive) { channel throws(ChatError) in
      var after: Int64 = 0
      while true {
        if Task.isCancelled { throw ChatError.cancelled(.archive) }
        let page = try await archive.messages(in: channel.ordinal, after: after, limit: 500)
        for message in page { try output.write(message.stored) }
        guard let last = page.last else { return }
        after = last.ordinal
      }
    }
  }

  /// Returns how many there are; without any, there is no file.
  private static func exportRows(_ archive: Archive, to path: String) async throws(ChatError) -> Int {
    try PrivateFile.requireReplaceable(path, operation: .archive)
    try PrivateFile.refuseDatabase(path, operation: .archive)
    let output = LineWriter(try FileWriter(path + ".part", operation: .archive))
    var last: VendorRow?
    while true {
      if Task.isCancelled { throw ChatError.cancelled(.archive) }
      let page = try await archive.rows(after: last, limit: 500)
      for row in page { try output.write(row.line) }
      guard let end = page.last else { break }
      last = end
    }
    try output.finish(movingTo: path)
    // Rows of an earlier export are not of this one.
    if output.count == 0 { unlink(path) }
    return output.count
  }

  private static func forEachChannel(
    _ archive: Archive, _ body: (ArchivedChannel) async throws(ChatError) -> Void
  ) async throws(ChatError) {
    var after: Int64 = 0
    while true {
      let page = try await archive.channels(after: after, limit: 100)
      for channel in page { try await body(channel) }
      guard let last = page.last else { return }
      after = last.ordinal
    }
  }

  private static func manifest(
    of archive: Archive, missing: [String]
  ) async throws(ChatError) -> JSONValue {
    let identity = try await archive.identity()
    var object = JSONObject()
    object["id"] = .string(identity.id)
    object["tool"] = .string(identity.tool)
    object["vendor"] = .string(identity.vendor.rawValue)
    object["app"] = identity.app.map { .string($0) }
    object["createdAt"] = .int(identity.createdAt.milliseconds)
    object["completedAt"] = identity.completedAt.map { .int($0.milliseconds) }
    object["digest"] = try await archive.digest().map { .string($0) }
    let lost = missing.map { UnreadableRecord(kind: "file", id: $0, reason: "its bytes are not beside the archive") }
    let leftOut = try await archive.leftOut()
    if !leftOut.isEmpty { object["leftOut"] = .array(leftOut.map { .string($0) }) }
    object["unreadable"] = .array((try await archive.unreadable(limit: .max) + lost).map { $0.json() })
    return .object(object)
  }
}

extension UnreadableRecord {
  func json() -> JSONValue {
    var object = JSONObject()
    object["kind"] = .string(kind)
    object["id"] = id.map { .string($0) }
    object["channel"] = channel.map { .string($0.rawValue) }
    object["reason"] = .string(reason)
    object["raw"] = raw.map { .string($0.text) }
    return .object(object)
  }

  init?(json: JSONValue) {
    guard let kind = json["kind"]?.string, let reason = json["reason"]?.string else { return nil }
    self.init(
      kind: kind, id: json["id"]?.string, channel: json["channel"]?.string.map { ChannelID($0) }, reason: reason,
      raw: json["raw"]?.string.map { JSONText(unchecked: $0) })
  }
}

/// Lines into one file, in large writes.
private final class LineWriter {
  private let file: FileWriter
  private var buffer: [UInt8] = []
  private(set) var count = 0

  init(_ file: FileWriter) { self.file = file }

  func write(_ line: [UInt8]) throws(ChatError) {
    buffer += line
    buffer.append(UInt8(ascii: "\n"))
    count += 1
    if buffer.count > 1 << 18 { try flush() }
  }

  func write(_ stored: StoredRecord) throws(ChatError) {
    guard stored.raw != nil else { return try write(Array(stored.json.utf8)) }
    try write(try stored.record().json().canonicalBytes())
  }

  private func flush() throws(ChatError) {
    try file.write(buffer)
    buffer.removeAll(keepingCapacity: true)
  }

  func finish(movingTo path: String) throws(ChatError) {
    try flush()
    try file.finish(movingTo: path)
  }
}
