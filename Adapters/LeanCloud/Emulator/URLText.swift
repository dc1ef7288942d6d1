/// The parts of a URL that the routes need.
enum URLText {
  /// Path segments, percent-decoded; one that is not UTF-8 stays as it is.
  static func path(of url: String) -> [String] {
    var rest = Substring(url)
    if let scheme = rest.range(of: "://") {
      rest = rest[scheme.upperBound...]
      rest = rest.firstIndex(of: "/").map { rest[$0...] } ?? ""
    }
    let path = rest.prefix { $0 != "?" && $0 != "#" }
    return path.split(separator: "/").map { decode($0, plusIsSpace: false) }
  }

  /// Without scheme and port, in lower case.
  static func host(of url: String) -> String {
    var rest = Substring(url)
    if let scheme = rest.range(of: "://") { rest = rest[scheme.upperBound...] }
    return rest.prefix { $0 != "/" && $0 != ":" }.lowercased()
  }

  static func query(of url: String) -> [(String, String)] {
    guard let start = url.firstIndex(of: "?") else { return [] }
    let query = url[url.index(after: start)...].prefix { $0 != "#" }
    return query.split(separator: "&").map { item in
      let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      return (decode(parts[0], plusIsSpace: true), parts.count > 1 ? decode(parts[1], plusIsSpace: true) : "")
    }
  }

  private static func decode(_ text: Substring, plusIsSpace: Bool) -> String {
    guard text.utf8.contains(where: { $0 == 37 || $0 == 43 }) else { return String(text) }
    var bytes: [UInt8] = []
    var iterator = Array(text.utf8)[...]
    while let byte = iterator.popFirst() {
      if byte == 37, iterator.count >= 2, let high = digit(iterator[iterator.startIndex]),
        let low = digit(iterator[iterator.startIndex + 1])
      {
        bytes.append(high << 4 | low)
        iterator = iterator.dropFirst(2)
      } else {
        bytes.append(byte == 43 && plusIsSpace ? 32 : byte)
      }
    }
    return String(validating: bytes, as: UTF8.self) ?? String(text)
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 48...57: byte - 48
    case 65...70: byte - 55
    case 97...102: byte - 87
    default: nil
    }
  }
}
