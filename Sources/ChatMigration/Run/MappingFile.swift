import ChatJSON
import Foundation
import UnifiedChat

/// A file of pairs, old and new: `old,new` a line (a tab will do; lines that begin with `#` are comments), or one JSON
/// object.
public enum MappingFile {
  /// - Throws: `.invalidArgument(field: "mapping")` with the line that is wrong; `.storage`.
  public static func read(_ path: String) throws(ChatError) -> [(old: String, new: String)] {
    let bytes = try PrivateFile.read(path, operation: .plan)
    if bytes.first(where: { $0 > 0x20 }) == UInt8(ascii: "{") { return try readObject(bytes, path) }
    var pairs: [(old: String, new: String)] = []
    var seen: Set<[UInt8]> = []
    let lines = String(decoding: bytes, as: UTF8.self).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    for (index, line) in lines.enumerated() where !line.allSatisfy(\.isWhitespace) && !line.hasPrefix("#") {
      let parts = line.split(separator: line.contains("\t") ? "\t" : ",", omittingEmptySubsequences: false)
        .map { $0.trimmingCharacters(in: .whitespaces) }
      guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }) else {
        throw wrong(path, "line \(index + 1) is not \"old,new\"")
      }
      guard seen.insert(Array(parts[0].utf8)).inserted else {
        throw wrong(path, "line \(index + 1) maps \"\(parts[0])\" a second time")
      }
      pairs.append((parts[0], parts[1]))
    }
    return pairs
  }

  private static func readObject(_ bytes: [UInt8], _ path: String) throws(ChatError) -> [(old: String, new: String)] {
    guard let object = try? JSONValue(parsing: bytes).object else { throw wrong(path, "no JSON object") }
    var pairs: [(old: String, new: String)] = []
    for (key, value) in object {
      guard let new = value.string, !new.isEmpty else { throw wrong(path, "the value of \"\(key)\" is no text") }
      pairs.append((key, new))
    }
    return pairs
  }

  private static func wrong(_ path: String, _ what: String) -> ChatError {
    ChatError(.invalidArgument(field: "mapping"), operation: .plan, detail: "\(path): \(what)")
  }
}
