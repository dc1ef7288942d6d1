import ChatTransport

/// Whose requests a server answers: those of programs that addressed this server, not those that a page of somewhere
/// else makes a browser send.
///
/// A page on the web can reach a port of the reader's machine in two ways. It can ask for it by address: the browser
/// then names the page in `Origin`. Or its own name can lead to 127.0.0.1: the browser then takes both for the same
/// origin, and only `Host` shows the foreign name.
public struct EmulatorAccess: Sendable, Hashable {
  /// Names by which clients may address this server, without port. Numeric addresses and `localhost` always count.
  public var hosts: [String]
  /// Where pages may come from that use this server, for example `https://app.example`. Pages of this machine
  /// (`http://localhost:3000`) always may; pages from files, whose origin is `null`, only if that is in the list.
  public var origins: [String]

  public init(hosts: [String] = [], origins: [String] = []) {
    self.hosts = hosts.map { $0.lowercased() }
    self.origins = origins.map { $0.lowercased() }
  }

  /// Why a request is not answered, with the mend; nil when it is.
  func refusal(of head: HTTPRequestHead) -> String? {
    let hosts = head.headers.fields.filter { $0.name.lowercased() == "host" }.map(\.value)
    for authority in hosts + (Self.authority(ofAbsolute: head.target).map { [$0] } ?? []) {
      guard let name = Self.host(of: authority), isServed(name) else {
        return "this server is not called that; to serve that host name, start the emulator with --allow-host"
      }
    }
    for field in head.headers.fields where field.name.lowercased() == "origin" {
      guard isAllowed(origin: field.value.lowercased()) else {
        return "pages of that origin may not use this server; to let them, start the emulator with --allow-origin"
      }
    }
    return nil
  }

  private func isServed(_ name: String) -> Bool {
    Self.isThisMachine(name) || Self.isNumeric(name) || hosts.contains(name)
  }

  private func isAllowed(origin: String) -> Bool {
    if origins.contains(origin) { return true }
    guard let authority = Self.authority(ofAbsolute: origin), let name = Self.host(of: authority) else { return false }
    return Self.isThisMachine(name)
  }

  private static func isThisMachine(_ name: String) -> Bool {
    name == "localhost" || name.hasSuffix(".localhost") || name == "::1" || (name.hasPrefix("127.") && isNumeric(name))
  }

  /// A name that leads elsewhere tomorrow is no number.
  private static func isNumeric(_ name: String) -> Bool {
    if name.contains(":") { return name.allSatisfy { $0.isHexDigit || $0 == ":" || $0 == "." } }
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts.allSatisfy { part in
      part.utf8.allSatisfy { (48...57).contains($0) } && UInt8(part) != nil
    }
  }

  /// `h:1` of `http://h:1/path`; nil for what is no absolute URL.
  private static func authority(ofAbsolute url: String) -> String? {
    guard !url.hasPrefix("/"), let mark = url.range(of: "://") else { return nil }
    return String(url[mark.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" })
  }

  /// Lower case, without port, brackets and the dot of a full name; nil for what is no authority.
  private static func host(of authority: String) -> String? {
    let text = authority.lowercased()
    if text.hasPrefix("[") {
      guard let end = text.firstIndex(of: "]") else { return nil }
      return String(text[text.index(after: text.startIndex)..<end])
    }
    let name = text.prefix { $0 != ":" }
    return name.isEmpty || text.contains("@") ? nil : String(name.last == "." ? name.dropLast() : name)
  }
}
