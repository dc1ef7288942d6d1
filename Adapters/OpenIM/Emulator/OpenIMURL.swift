/// The parts of a request's URL, decoded. Nothing of it can fail: what is not there is empty.
struct OpenIMURL {
  /// Without the query, still percent-encoded, from the first slash.
  var rawPath: String
  var path: String
  var query: [String: String] = [:]

  init(_ url: String) {
    var rest = url[...]
    if let scheme = rest.range(of: "://") {
      rest = rest[scheme.upperBound...]
      rest = rest.firstIndex(where: { $0 == "/" || $0 == "?" }).map { rest[$0...] } ?? ""
    }
    let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    rawPath = parts.first.map(String.init) ?? ""
    path = Self.decode(rawPath, plusIsSpace: false)
    guard parts.count == 2 else { return }
    for pair in parts[1].split(separator: "&") {
      let halves = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = Self.decode(String(halves[0]), plusIsSpace: true)
      if query[name] == nil {
        query[name] = halves.count == 2 ? Self.decode(String(halves[1]), plusIsSpace: true) : ""
      }
    }
  }

  private static func decode(_ text: String, plusIsSpace: Bool) -> String {
    guard text.utf8.contains(where: { $0 == UInt8(ascii: "%") || $0 == UInt8(ascii: "+") }) else { return text }
    var bytes: [UInt8] = []
    var iterator = Array(text.utf8)[...]
    while let byte = iterator.popFirst() {
      if byte == UInt8(ascii: "%"), iterator.count >= 2,
        let value = UInt8(String(decoding: iterator.prefix(2), as: UTF8.self), radix: 16)
      {
        bytes.append(value)
        iterator = iterator.dropFirst(2)
      } else {
        bytes.append(byte == UInt8(ascii: "+") && plusIsSpace ? UInt8(ascii: " ") : byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
