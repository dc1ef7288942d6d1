/// The query of a URL, undecoded, so that lists split at their own commas and not at those of their elements.
public struct SendbirdQuery: Sendable {
  private var items: [(name: String, value: String)] = []

  public init() {}

  public init(parsing query: some StringProtocol) {
    for item in query.split(separator: "&") {
      let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      items.append((PercentCoding.decode(parts[0]), parts.count == 2 ? String(parts[1]) : ""))
    }
  }

  public var names: [String] { items.map(\.name) }

  /// The decoded value; nil when the parameter is absent.
  public subscript(name: String) -> String? {
    items.first { $0.name == name }.map { PercentCoding.decode($0.value) }
  }

  /// The elements of a list-valued parameter; empty when it is absent or "".
  public func list(_ name: String) -> [String] {
    guard let item = items.first(where: { $0.name == name }), !item.value.isEmpty else { return [] }
    return item.value.split(separator: ",", omittingEmptySubsequences: false).map { PercentCoding.decode($0) }
  }

  public func int(_ name: String) -> Int64? { self[name].flatMap { Int64($0) } }

  public func bool(_ name: String) -> Bool? {
    switch self[name] {
    case "true", "1": true
    case "false", "0": false
    default: nil
    }
  }

  public mutating func add(_ name: String, _ value: String) { items.append((name, PercentCoding.encode(value))) }
  public mutating func add(_ name: String, _ value: Int64) { items.append((name, String(value))) }
  public mutating func add(_ name: String, _ value: Bool) { items.append((name, value ? "true" : "false")) }

  public mutating func add(_ name: String, list: [String]) {
    items.append((name, list.map { PercentCoding.encode($0) }.joined(separator: ",")))
  }

  /// `a=1&b=2`, without the question mark.
  public var text: String { items.map { "\(PercentCoding.encode($0.name))=\($0.value)" }.joined(separator: "&") }
}

/// A URL taken apart: `path` holds the decoded segments.
public struct SendbirdTarget: Sendable {
  /// `http://127.0.0.1:7001`
  public var origin: String
  public var path: [String]
  public var query: SendbirdQuery

  public init(_ url: String) {
    let parts = url.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var rest = parts[0]
    if let hash = rest.firstIndex(of: "#") { rest = rest[..<hash] }
    var start = rest.startIndex
    if let scheme = rest.firstRange(of: "://") { start = scheme.upperBound }
    let slash = rest[start...].firstIndex(of: "/") ?? rest.endIndex
    origin = String(rest[..<slash])
    path = rest[slash...].split(separator: "/").map { PercentCoding.decode($0) }
    query = SendbirdQuery(parsing: parts.count == 2 ? parts[1] : "")
  }
}

/// The encoding of `encodeURIComponent`, which the official clients use.
public enum PercentCoding {
  private static let plain: Set<UInt8> = Set(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!~*'()".utf8)
  private static let digits = Array("0123456789ABCDEF".utf8)

  public static func encode(_ text: some StringProtocol) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.utf8.count)
    for byte in text.utf8 {
      if plain.contains(byte) {
        bytes.append(byte)
      } else {
        bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// A `%` that starts no escape stays as it is; bytes that are no UTF-8 become U+FFFD.
  public static func decode(_ text: some StringProtocol) -> String {
    let source = Array(text.utf8)
    guard source.contains(UInt8(ascii: "%")) else { return String(text) }
    var bytes: [UInt8] = []
    var index = 0
    while index < source.count {
      if source[index] == UInt8(ascii: "%"), index + 2 < source.count, let high = value(source[index + 1]),
        let low = value(source[index + 2])
      {
        bytes.append(high << 4 | low)
        index += 3
      } else {
        bytes.append(source[index])
        index += 1
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
