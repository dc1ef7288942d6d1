import ChatJSON
import Foundation
import UnifiedChat

/// One thing that is wrong or doubtful in a configuration file.
public struct ConfigurationProblem: Sendable, Hashable, CustomStringConvertible {
  public enum Severity: String, Sendable, Hashable, CaseIterable { case error, warning }

  public var severity: Severity
  /// A JSON Pointer (`/profiles/demo/vendor`), or `line 3, column 7` where the file is no JSON, or its path.
  public var place: String
  public var what: String
  public var mend: String

  public init(_ severity: Severity = .error, at place: String, _ what: String, mend: String) {
    self.severity = severity
    self.place = place
    self.what = what
    self.mend = mend
  }

  /// One line: what, where, and the mend.
  public var description: String { "\(severity.rawValue) at \(place.isEmpty ? "/" : place): \(what); \(mend)" }
}

/// Reads `unifiedchat.json` (`Schemas/config.schema.json`) and reports everything that is wrong with it at once.
public enum ConfigurationFile {
  public struct Reading: Sendable {
    /// nil when there are errors.
    public var configuration: ChatConfiguration?
    /// Errors and warnings in the order of the file.
    public var problems: [ConfigurationProblem]

    public var errors: [ConfigurationProblem] { problems.filter { $0.severity == .error } }
    public var warnings: [ConfigurationProblem] { problems.filter { $0.severity == .warning } }
  }

  /// Reads the file at `path`. Relative paths in it are taken from its folder.
  public static func read(path: String, registry: AdapterRegistry) -> Reading {
    var isFolder: ObjCBool = false
    let exists = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
    guard !isFolder.boolValue, let data = FileManager.default.contents(atPath: path) else {
      let problem = ConfigurationProblem(
        at: path, isFolder.boolValue ? "is a folder" : exists ? "the file cannot be read" : "there is no such file",
        mend: exists && !isFolder.boolValue
          ? "make it readable for this user" : "make one, or name another with --config")
      return Reading(configuration: nil, problems: [problem])
    }
    // Not by NSString, which traps on Linux for a name of one character.
    let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? ""
    return read(Array(data), registry: registry, folder: folder)
  }

  /// - Parameter folder: where relative paths start; "" is the working directory.
  public static func read(_ bytes: [UInt8], registry: AdapterRegistry, folder: String = "") -> Reading {
    let json: JSONValue
    do throws(JSONError) {
      json = try JSONValue(parsing: bytes, limits: JSONLimits(duplicateKeys: .reject))
    } catch {
      return Reading(configuration: nil, problems: [syntax(error, in: bytes)])
    }
    var checker = ConfigurationChecker(registry: registry, folder: folder)
    let configuration = checker.configuration(json)
    let isUsable = !checker.problems.contains { $0.severity == .error }
    return Reading(configuration: isUsable ? configuration : nil, problems: checker.problems)
  }

  /// - Throws: `.invalidArgument` whose detail has every error, one a line.
  public static func load(path: String, registry: AdapterRegistry) throws(ChatError) -> ChatConfiguration {
    let reading = read(path: path, registry: registry)
    guard let configuration = reading.configuration else {
      throw ChatError(
        .invalidArgument(field: reading.errors.first?.place ?? path), operation: .configuration,
        detail: "\(path): " + reading.errors.map(\.description).joined(separator: "\n"))
    }
    return configuration
  }

  private static func syntax(_ error: JSONError, in bytes: [UInt8]) -> ConfigurationProblem {
    guard let offset = error.offset else {
      return ConfigurationProblem(at: error.path, "not JSON: \(error)", mend: "correct it there")
    }
    let before = bytes.prefix(offset)
    let line = before.count { $0 == UInt8(ascii: "\n") } + 1
    let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
    // Characters, not bytes: what an editor counts.
    let column = String(decoding: before[lineStart...], as: UTF8.self).count + 1
    return ConfigurationProblem(
      at: "line \(line), column \(column)", "not JSON: \(error)", mend: "correct it there")
  }
}

/// The nearest of some names, for "did you mean".
enum NearestName {
  /// nil when none is near: more than a third of the letters would change.
  static func of(_ name: String, in names: [String]) -> String? {
    let best = names.map { (name: $0, distance: distance(name.lowercased(), $0.lowercased())) }
      .min { ($0.distance, $0.name) < ($1.distance, $1.name) }
    guard let best, best.distance <= max(1, max(name.count, best.name.count) / 3) else { return nil }
    return best.name
  }

  /// Insertions, deletions, replacements and swaps of neighbours.
  static func distance(_ left: String, _ right: String) -> Int {
    let (left, right) = (Array(left), Array(right))
    var twoAgo = [Int](repeating: 0, count: right.count + 1)
    var previous = Array(0...right.count)
    for (row, character) in left.enumerated() {
      var current = [row + 1]
      for (column, other) in right.enumerated() {
        var cost = min(previous[column] + (character == other ? 0 : 1), previous[column + 1] + 1, current[column] + 1)
        if row > 0, column > 0, character == right[column - 1], left[row - 1] == other {
          cost = min(cost, twoAgo[column - 1] + 1)
        }
        current.append(cost)
      }
      (twoAgo, previous) = (previous, current)
    }
    return previous[right.count]
  }
}
