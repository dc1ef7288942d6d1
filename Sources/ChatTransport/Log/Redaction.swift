import ChatJSON

/// Takes secrets out of what people read: header fields, query parameters and members of JSON.
///
/// Names decide, without regard to case: those in the list, and any that speaks of a token, key, secret, signature,
/// password, session, ticket, cookie or authorisation. What is hidden is replaced as a whole; its length does not show.
public enum Redaction {
  public static let mark = "…"

  /// Parts of names that make their values secret.
  private static let telling = [
    "token", "key", "secret", "sig", "password", "passwd", "session", "ticket", "cookie", "auth", "credential",
    "private",
  ]

  public static func isSecret(_ name: String) -> Bool {
    let name = name.lowercased()
    return telling.contains { name.contains($0) }
  }

  public static func headers(_ headers: HTTPHeaders) -> HTTPHeaders {
    HTTPHeaders(headers.fields.map { HTTPHeaders.Field($0.name, value(of: $0)) })
  }

  private static func value(of field: HTTPHeaders.Field) -> String {
    if isSecret(field.name) { return mark }
    // These hold URLs, whose queries may be signed.
    let isURL = ["location", "content-location", "referer", "link"].contains(field.name.lowercased())
    return isURL ? url(field.value) : printable(field.value)
  }

  /// Scheme, host, port and path as they are, without user information and fragment; of the query the names, and the
  /// values of those few that are known to be harmless.
  public static func url(_ url: String) -> String {
    guard let colon = url.range(of: "://") else { return mark }
    let rest = url[colon.upperBound...].prefix { $0 != "#" }
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    let host = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
    let path = rest[authority.endIndex...].prefix { $0 != "?" }
    let query = rest[path.endIndex...]
    return printable(url[..<colon.upperBound] + host + path)
      + (query.isEmpty ? "" : "?" + Self.query(query.dropFirst()))
  }

  /// Any JSON with the values of secret members hidden, at any depth.
  public static func json(_ value: JSONValue) -> JSONValue {
    switch value {
    case .object(let object):
      .object(JSONObject(object.members.map { ($0.key, isSecret($0.key) ? .string(mark) : json($0.value)) }))
    case .array(let elements): .array(elements.map(json))
    default: value
    }
  }

  private static let harmless: Set<String> = [
    "limit", "skip", "offset", "page", "size", "order", "count", "version", "protocol", "platform", "reverse",
    "include", "include_ts",
  ]

  private static func query(_ query: Substring) -> String {
    query.split(separator: "&").map { pair in
      let name = pair.prefix { $0 != "=" }
      let isShown = harmless.contains(name.lowercased())
      return printable(name)
        + (name.endIndex == pair.endIndex ? "" : isShown ? printable(pair[name.endIndex...]) : "=" + mark)
    }.joined(separator: "&")
  }

  /// One line stays one line whatever a URL holds.
  private static func printable(_ text: some StringProtocol) -> String {
    String(text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? "?" : Character($0) })
  }
}
