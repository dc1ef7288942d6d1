/// Where a URL leads. Strict: what is not plainly an absolute URL of the schemes asked for is refused before any byte
/// leaves, and so are URLs that carry a user name or a password.
struct Endpoint: Sendable, Hashable {
  /// Lower-case.
  var scheme: String
  /// Without the brackets of an IPv6 address.
  var host: String
  var port: Int
  var isSecure: Bool
  /// Path and query as the request line has them, never empty.
  var target: String

  /// What errors and logs may name.
  var peer: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

  /// The value of a `Host` field: the port only where it is not the scheme's own.
  var authority: String {
    if port != (isSecure ? 443 : 80) { return peer }
    return host.contains(":") ? "[\(host)]" : host
  }

  /// Whether the host is this machine by its name or address alone.
  var isLoopback: Bool {
    let name = host.lowercased()
    return name == "localhost" || name.hasSuffix(".localhost") || name == "::1" || name.hasPrefix("127.")
  }

  static func http(_ url: String) throws(TransportError) -> Endpoint {
    try Endpoint(url, plain: "http", secure: "https")
  }

  static func webSocket(_ url: String) throws(TransportError) -> Endpoint {
    try Endpoint(url, plain: "ws", secure: "wss")
  }

  private init(_ url: String, plain: String, secure: String) throws(TransportError) {
    // A space or a control byte would end the request line and begin another.
    guard url.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw Self.invalid("characters other than printable ASCII must be percent-encoded")
    }
    guard let mark = url.range(of: "://") else { throw Self.invalid("not an absolute URL") }
    scheme = url[..<mark.lowerBound].lowercased()
    guard scheme == plain || scheme == secure else {
      throw Self.invalid("the scheme is neither \(plain) nor \(secure)")
    }
    isSecure = scheme == secure
    let rest = url[mark.upperBound...].prefix { $0 != "#" }
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    let path = rest[authority.endIndex...]
    target = path.hasPrefix("/") ? String(path) : "/" + path
    guard !authority.contains("@") else { throw Self.invalid("credentials do not belong into a URL") }
    (host, port) = try Self.hostAndPort(authority, defaultPort: isSecure ? 443 : 80)
  }

  private static func hostAndPort(
    _ authority: Substring, defaultPort: Int
  ) throws(TransportError) -> (String, Int) {
    let host: Substring
    let rest: Substring
    if authority.hasPrefix("[") {
      guard let end = authority.firstIndex(of: "]") else { throw invalid("the address lacks its bracket") }
      host = authority[authority.index(after: authority.startIndex)..<end]
      rest = authority[authority.index(after: end)...]
      guard host.allSatisfy({ $0.isHexDigit || $0 == ":" || $0 == "." }) else { throw invalid("not an IPv6 address") }
    } else {
      host = authority.prefix { $0 != ":" }
      rest = authority[host.endIndex...]
      guard host.allSatisfy({ $0.isLetter || $0.isNumber || "-._".contains($0) }) else {
        throw invalid("the host has characters that no host has")
      }
    }
    guard !host.isEmpty else { throw invalid("the host is missing") }
    if rest.isEmpty || rest == ":" { return (String(host), defaultPort) }
    guard rest.first == ":", rest.dropFirst().allSatisfy(\.isNumber), let port = Int(rest.dropFirst()),
      (1...65_535).contains(port)
    else { throw invalid("the port is not a number of 1…65535") }
    return (String(host), port)
  }

  private static func invalid(_ detail: String) -> TransportError {
    TransportError(.invalidURL, detail: detail, nothingSent: true)
  }
}

extension HTTPHeaders {
  /// Refuses fields that would end early or begin another: a wire would read them as something else.
  func checkWireForm(peer: String) throws(TransportError) {
    for field in fields {
      let nameIsToken = !field.name.isEmpty && field.name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x3A }
      let valueIsLine = field.value.utf8.allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }
      guard nameIsToken, valueIsLine else {
        throw TransportError(
          .other, peer: peer, detail: "a header field has a character that no header may have", nothingSent: true)
      }
    }
  }

  func contains(_ name: String) -> Bool { self[name] != nil }
}
