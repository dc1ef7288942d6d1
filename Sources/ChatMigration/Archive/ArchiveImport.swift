import ChatInterchange
import ChatJSON
import UnifiedChat

/// What an import took in.
public struct ImportSummary: Sendable, Hashable {
  public var lines = 0
  public var newMessages = 0
  /// Of `<file>.rows.jsonl`.
  public var rows = 0
  /// Lines that are no record: kept in the archive as unreadable.
  public var unreadable = 0
}

extension ArchiveLines {
  /// Fills a new archive from JSON Lines, or merges them into one that is there: what is there by id is replaced,
  /// what is new is appended.
  ///
  /// A line that is no record is listed as unreadable and the import goes on; a channel must come before its members
  /// and messages.
  /// - Parameter identity: who made the archive, where no `<file>.manifest.json` tells.
  public static func importing(
    _ path: String, into archivePath: String, _ identity: Archive.Identity, at time: Timestamp
  ) async throws(ChatError) -> (archive: Archive, summary: ImportSummary) {
    let lines = try LineReader(FileReader(path, operation: .archive))
    if try PrivateFile.prefix(path, count: 16, operation: .archive) == Array("SQLite format 3\0".utf8) {
      throw Self.wrongInput(path, "is a database and no JSON Lines; an archive needs no import, archive export writes lines")
    }
    let manifest = try readManifest(path)
    let isNew = (PrivateFile.size(archivePath) ?? 0) == 0
    let archive = try Archive.openOrCreate(at: archivePath, manifest?.identity ?? identity)
    let importer = LineImporter(archive: archive, path: path)
    do throws(ChatError) {
      while let line = try lines.next() {
        if Task.isCancelled { throw ChatError.cancelled(.archive) }
        try await importer.take(line)
      }
      try importer.requireRecords()
      try await importer.flush()
    } catch {
      // What was no import leaves no archive of nothing.
      if isNew, importer.isEmpty {
        try? await archive.close()
        Archive.remove(archivePath)
      }
      throw error
    }
    try await archive.put(unreadable: manifest?.unreadable ?? [])
    try await archive.put(leftOut: manifest?.leftOut ?? [], replaces: false)
    try await importer.takeRows(of: path + ".rows.jsonl")
    try await archive.complete(at: manifest?.identity.completedAt ?? time)
    return (archive, importer.summary)
  }

  fileprivate static func wrongInput(_ path: String, _ detail: String) -> ChatError {
    ChatError(.invalidArgument(field: "input"), operation: .configuration, detail: "\(path): \(detail)")
  }

  private static func readManifest(
    _ path: String
  ) throws(ChatError) -> (identity: Archive.Identity, unreadable: [UnreadableRecord], leftOut: [String])? {
    let path = path + ".manifest.json"
    guard PrivateFile.exists(path) else { return nil }
    let bytes = try PrivateFile.read(path, operation: .archive)
    guard let json = try? JSONValue(parsing: bytes), let id = json["id"]?.string,
      let vendor = json["vendor"]?.string, let created = json["createdAt"]?.int
    else {
      throw ChatError(
        .invalidArgument(field: "manifest"), operation: .archive,
        detail: "\(path): no manifest of an archive; remove it to import the lines without")
    }
    var identity = Archive.Identity(
      id: id, tool: json["tool"]?.string ?? "", vendor: VendorName(vendor), app: json["app"]?.string,
      createdAt: Timestamp(milliseconds: created))
    identity.completedAt = json["completedAt"]?.int.map { Timestamp(milliseconds: $0) }
    return (
      identity, (json["unreadable"]?.array ?? []).compactMap { UnreadableRecord(json: $0) },
      (json["leftOut"]?.array ?? []).compactMap(\.string)
    )
  }
}

/// Gathers lines into transactions.
private final class LineImporter {
  private let archive: Archive
  private var batch = ImportBatch()
  private var channels: [ChannelID: Int64] = [:]
  private(set) var summary = ImportSummary()
  private let path: String
  private var firstFault = ""
  /// Lines without a record before it is clear that the file is something else.
  private static let patience = 1000

  init(archive: Archive, path: String) {
    self.archive = archive
    self.path = path
  }

  /// No line so far was a record.
  var isEmpty: Bool { summary.unreadable == summary.lines }

  /// - Throws: for a file of lines none of which is a record.
  func requireRecords() throws(ChatError) {
    guard summary.lines > 0, isEmpty else { return }
    throw ArchiveLines.wrongInput(path, "no line of it is a record; \(firstFault)")
  }

  func take(_ line: [UInt8]) async throws(ChatError) {
    if summary.lines == Self.patience { try requireRecords() }
    summary.lines += 1
    let record: Record
    do { record = try Record(json: try JSONValue(parsing: line, limits: JSONLimits(size: LineReader.maximumLength))) } catch {
      return unreadable("\(error)", line)
    }
    switch record {
    case .user(let record): batch.users.append(UserRow(record))
    case .channel(let record): try await begin(record)
    case .member(let record):
      guard let channel = try await ordinal(of: record.channel) else {
        return unreadable("its channel \(record.channel) does not come before it", line)
      }
      batch.members[channel, default: []].append(MemberRow(record))
    case .file(let record):
      let stored = try await archive.files.store(record.bytes)
      batch.files.append(FetchedFile(stored: stored, url: nil, name: record.name, mimeType: record.mimeType))
    case .message(let record):
      guard let channel = try await ordinal(of: record.message.channel), let row = MessageRow(record) else {
        return unreadable("its channel does not come before it, or it has no id", line)
      }
      batch.messages[channel, default: []].append(row)
    }
    batch.count += 1
    if batch.count >= 2000 { try await flush() }
  }

  /// The vendor's own rows; the file is there only where an archive had some.
  func takeRows(of path: String) async throws(ChatError) {
    guard PrivateFile.exists(path) else { return }
    let lines = try LineReader(FileReader(path, operation: .archive))
    var rows: [VendorRow] = []
    var number = 0
    while let line = try lines.next() {
      if Task.isCancelled { throw ChatError.cancelled(.archive) }
      number += 1
      if let row = VendorRow(line: line) {
        rows.append(row)
      } else {
        summary.unreadable += 1
        let record = UnreadableRecord(
          kind: "line", id: "rows \(number)", reason: "line \(number) of the rows is no row",
          raw: JSONText(unchecked: String(decoding: line, as: UTF8.self)))
        try await archive.put(unreadable: [record])
      }
      if rows.count >= 500 { try await put(&rows) }
    }
    try await put(&rows)
  }

  private func put(_ rows: inout [VendorRow]) async throws(ChatError) {
    _ = try await archive.put(rows: rows, replaces: true)
    summary.rows += rows.count
    rows = []
  }

  private func unreadable(_ reason: String, _ line: [UInt8]) {
    summary.unreadable += 1
    if firstFault.isEmpty { firstFault = "line \(summary.lines): \(reason)" }
    batch.unreadable.append(
      UnreadableRecord(
        kind: "line", id: "\(summary.lines)", reason: "line \(summary.lines): \(reason)",
        raw: JSONText(unchecked: String(decoding: line, as: UTF8.self))))
  }

  /// A channel gets its number at once, since what follows it needs it.
  private func begin(_ record: ChannelRecord) async throws(ChatError) {
    batch.channels.append(ChannelRow(record))
    try await flush()
  }

  private func ordinal(of channel: ChannelID) async throws(ChatError) -> Int64? {
    if let known = channels[channel] { return known }
    let found = try await archive.channel(channel)?.ordinal
    channels[channel] = found
    return found
  }

  func flush() async throws(ChatError) {
    summary.newMessages += try await archive.commit(batch)
    batch = ImportBatch()
  }
}

/// Rows of every kind that are committed together.
struct ImportBatch: Sendable {
  var users: [UserRow] = []
  var channels: [ChannelRow] = []
  var members: [Int64: [MemberRow]] = [:]
  var files: [FetchedFile] = []
  var messages: [Int64: [MessageRow]] = [:]
  var unreadable: [UnreadableRecord] = []
  var count = 0
}

extension Archive {
  /// Returns how many messages were new.
  func commit(_ batch: ImportBatch) throws(ChatError) -> Int {
    try database.transaction { () throws(ChatError) in
      for row in batch.users { try put(row) }
      for row in batch.channels { try put(row) }
      for channel in batch.members.keys.sorted() {
        for row in batch.members[channel] ?? [] { try put(row, channel: channel) }
      }
      for file in batch.files { try put(file) }
      var new = 0
      for channel in batch.messages.keys.sorted() { new += try put(batch.messages[channel] ?? [], channel: channel) }
      for record in batch.unreadable { try put(record) }
      return new
    }
  }

  func put(unreadable records: [UnreadableRecord]) throws(ChatError) {
    try database.transaction { () throws(ChatError) in for record in records { try put(record) } }
  }
}

/// The lines of a file, without their ends. A last line without an end counts; empty ones do not.
final class LineReader {
  /// A line longer than this is no record of ours: a file of 512 MiB as base64 is shorter.
  static let maximumLength = 768 << 20

  private let file: FileReader
  private var buffer: [UInt8] = []
  private var start = 0
  private var isAtEnd = false

  init(_ file: FileReader) { self.file = file }

  func next() throws(ChatError) -> [UInt8]? {
    while true {
      var searched = start
      while true {
        if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
          let line = trimmed(buffer[start..<end])
          start = end + 1
          if line.isEmpty { break }
          return line
        }
        searched = buffer.count - start
        buffer.removeFirst(start)
        start = 0
        if isAtEnd { return lastLine() }
        guard buffer.count <= Self.maximumLength else {
          throw ChatError(
            .tooLarge(limit: Int64(Self.maximumLength), unit: .bytes), operation: .archive,
            detail: "a line is longer than \(Self.maximumLength >> 20) MiB")
        }
        if let piece = try file.next() { buffer += piece } else { isAtEnd = true }
      }
    }
  }

  private func lastLine() -> [UInt8]? {
    let line = trimmed(buffer[...])
    buffer = []
    return line.isEmpty ? nil : line
  }

  private func trimmed(_ line: ArraySlice<UInt8>) -> [UInt8] {
    Array(line.last == UInt8(ascii: "\r") ? line.dropLast() : line)
  }
}
