import ChatCrypto
import Foundation
import UnifiedChat

/// Public chat logs that can be turned into neutral records.
public enum SeedFormat: String, Sendable, Hashable, CaseIterable {
  /// `*.raw.txt` with `*.annotation.txt`: one group channel a day, replies from the annotations.
  case ubuntuIRC = "ubuntu-irc"
  /// `*_dev.json` and the like: one direct channel a dialogue.
  case kdconv = "kdconv-zh"
  /// `<language>.<topic>.yml`: one direct channel a conversation.
  case chatterbot = "chatterbot-multilang"
  /// The import format of another service: users, channels, members, messages, reactions.
  case streamImport = "stream-import-sample"
  /// Neutral records already (`*.jsonl`, `Schemas/records.schema.json`).
  case records
}

/// Why a log could not be read: which file, which line, and what to do.
public struct SeedError: Error, Sendable, Hashable, CustomStringConvertible {
  public var file: String
  public var line: Int?
  public var reason: String

  public init(file: String, line: Int? = nil, reason: String) {
    self.file = file
    self.line = line
    self.reason = reason
  }

  public var description: String { file + (line.map { ":\($0)" } ?? "") + ": " + reason }
}

/// What a conversion read and what it made of it. Every item read is in one of the numbers.
public struct SeedSummary: Sendable, Hashable {
  public var users = 0
  public var channels = 0
  public var members = 0
  public var messages = 0
  public var files = 0
  public var replies = 0
  /// Items of the source for which records have no place, by kind.
  public var leftOut: [String: Int] = [:]

  public init() {}

  public mutating func count(_ record: Record) {
    switch record {
    case .user: users += 1
    case .channel: channels += 1
    case .member: members += 1
    case .file: files += 1
    case .message(let message):
      messages += 1
      if message.message.replyTo != nil { replies += 1 }
    }
  }
}

/// Where records go, one by one, in loading order.
public typealias RecordSink = (Record) throws -> Void

/// Turns a folder of logs into records. Ids, and times where the source has none, are made from names and places
/// alone, so that the same input gives the same records.
public enum SeedConverter {
  /// The formats found in `path`: the folder itself, or its sub-folders, or one `.jsonl` file.
  /// - Throws: `SeedError` when nothing there is known.
  public static func formats(at path: String) throws -> [(format: SeedFormat, path: String)] {
    if path.hasSuffix(".jsonl") { return [(.records, path)] }
    let names = try entries(of: path)
    if let format = format(of: names) { return [(format, path)] }
    let below = try names.sorted().compactMap { name -> (SeedFormat, String)? in
      let folder = path + "/" + name
      var isFolder: ObjCBool = false
      guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else { return nil }
      return format(of: try entries(of: folder)).map { ($0, folder) }
    }
    guard !below.isEmpty else {
      let known = SeedFormat.allCases.map(\.rawValue).joined(separator: ", ")
      throw SeedError(file: path, reason: "no known log is here; known forms: \(known)")
    }
    return below
  }

  /// Converts everything at `path`.
  @discardableResult
  public static func convert(at path: String, to sink: RecordSink) throws -> SeedSummary {
    var summary = SeedSummary()
    for (format, folder) in try formats(at: path) {
      let counting: RecordSink = { record in
        summary.count(record)
        try sink(record)
      }
      let leftOut: [String: Int]
      switch format {
      case .ubuntuIRC: leftOut = try UbuntuIRC.convert(folder, to: counting)
      case .kdconv: leftOut = try KdConv.convert(folder, to: counting)
      case .chatterbot: leftOut = try Chatterbot.convert(folder, to: counting)
      case .streamImport: leftOut = try StreamImport.convert(folder, to: counting)
      case .records: leftOut = try RecordLines.read(folder, to: counting)
      }
      summary.leftOut.merge(leftOut, uniquingKeysWith: +)
    }
    return summary
  }

  private static func format(of names: [String]) -> SeedFormat? {
    if names.contains(where: { $0.hasSuffix(".raw.txt") }) { return .ubuntuIRC }
    if names.contains(where: { $0.hasSuffix("_dev.json") }) { return .kdconv }
    if names.contains(where: { $0.hasSuffix(".yml") }) { return .chatterbot }
    if names.contains("data.json") { return .streamImport }
    if names.contains(where: { $0.hasSuffix(".jsonl") }) { return .records }
    return nil
  }

  static func entries(of folder: String) throws -> [String] {
    do { return try FileManager.default.contentsOfDirectory(atPath: folder) } catch {
      throw SeedError(file: folder, reason: "cannot be read; name a folder of logs or a .jsonl file")
    }
  }

  static func text(of file: String) throws -> String {
    guard let data = FileManager.default.contents(atPath: file) else {
      throw SeedError(file: file, reason: "cannot be read")
    }
    guard let text = String(validating: data, as: UTF8.self) else { throw SeedError(file: file, reason: "not UTF-8") }
    return text
  }
}

/// Ids in forms that every vendor takes.
enum SeedID {
  /// 24 hex digits.
  static func channel(_ name: String) -> ChannelID {
    ChannelID(String(Hex.encode(Digest.md5(Array(name.utf8))).prefix(24)))
  }

  /// 22 characters of the URL-safe alphabet.
  static func message(_ name: String) -> MessageID {
    MessageID(String(Base64.urlEncode(Digest.md5(Array(name.utf8))).prefix(22)))
  }
}
