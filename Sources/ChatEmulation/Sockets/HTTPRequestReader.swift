import ChatTransport

/// The head of one request, with the target as it stood on the wire.
package struct HTTPRequestHead: Equatable {
  package var method: String
  /// Not decoded and not normalised: a `%2F` in an id must reach the machine as it was sent.
  package var target: String
  /// Minor version of HTTP/1.
  var minorVersion: Int
  package var headers: HTTPHeaders

  /// True when `name` lists `token` among its comma-separated values.
  func lists(_ token: String, in name: String) -> Bool {
    headers.fields.contains { field in
      field.name.lowercased() == name
        && field.value.split(separator: ",").contains { $0.trimmingSpaces.lowercased() == token }
    }
  }

  var keepsAlive: Bool { minorVersion == 0 ? lists("keep-alive", in: "connection") : !lists("close", in: "connection") }

  var isUpgrade: Bool {
    method == "GET" && minorVersion >= 1 && lists("websocket", in: "upgrade") && lists("upgrade", in: "connection")
  }
}

extension Substring {
  var trimmingSpaces: Substring {
    var text = self
    while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
    while let last = text.last, last == " " || last == "\t" { text.removeLast() }
    return text
  }
}

/// Reads HTTP/1 requests from a connection, one after the other (RFC 9112): bodies by length or chunked.
package struct HTTPRequestReader {
  package enum Event: Equatable {
    /// The head asks for `100 Continue` before its body.
    case expectsContinue
    case request(HTTPRequestHead, body: [UInt8])
    /// The connection is to be closed after an answer with this status.
    case failure(status: Int, reason: String)
  }

  private enum Phase {
    case head, length(Int), chunkSize, chunk(Int), chunkEnd, trailers
  }

  static let headLimit = 64 << 10
  /// Fields of one head.
  static let fieldLimit = 256

  let bodyLimit: Int
  private var phase = Phase.head
  private var head: HTTPRequestHead?
  private var body: [UInt8] = []
  private var scanned = 0

  /// The head of a request is there, and its body is arriving.
  var hasHead: Bool { if case .head = phase { false } else { true } }
  /// A request has begun and is not complete.
  var isInside: Bool { hasHead || scanned > 0 }
  var heldBytes: Int { body.count }

  package init(bodyLimit: Int) { self.bodyLimit = bodyLimit }

  /// The next event, or nil when more bytes are needed.
  package mutating func next(_ input: inout InputBuffer) -> Event? {
    while true {
      switch phase {
      case .head:
        guard let event = readHead(&input) else { continue }
        return event.wrapped
      case .length(let missing):
        if missing == 0 { return finish() }
        guard take(missing, &input, then: { .length($0) }) else { return nil }
      case .chunk(let missing):
        if missing == 0 { phase = .chunkEnd; continue }
        guard take(missing, &input, then: { .chunk($0) }) else { return nil }
      case .chunkSize, .chunkEnd, .trailers:
        guard let line = readLine(&input) else {
          return input.count > Self.headLimit ? failure(400, "a line of the body is too long") : nil
        }
        if let event = handle(line: line) { return event }
      }
    }
  }

  /// An event, or the lack of bytes: what ends the loop of `next`.
  private enum Outcome {
    case event(Event), needsMore
    var wrapped: Event? { if case .event(let event) = self { event } else { nil } }
  }

  /// Moves what is there of `missing` bytes into the body; false when nothing is there.
  private mutating func take(_ missing: Int, _ input: inout InputBuffer, then next: (Int) -> Phase) -> Bool {
    if input.isEmpty { return false }
    let part = input.take(missing)
    body.append(contentsOf: part)
    phase = next(missing - part.count)
    return true
  }

  private mutating func finish() -> Event? {
    guard let head else { return failure(400, "no head") }
    defer {
      self = HTTPRequestReader(bodyLimit: bodyLimit)
    }
    return .request(head, body: body)
  }

  private func failure(_ status: Int, _ reason: String) -> Event { .failure(status: status, reason: reason) }

  /// Nil: the head is read and the body follows.
  private mutating func readHead(_ input: inout InputBuffer) -> Outcome? {
    while input.count >= 2, input[0] == 13, input[1] == 10 { input.consume(2) }
    guard let end = input.end(of: [13, 10, 13, 10], from: scanned - 3) else {
      scanned = input.count
      return input.count > Self.headLimit ? .event(failure(431, "the header fields are too long")) : .needsMore
    }
    guard end <= Self.headLimit else { return .event(failure(431, "the header fields are too long")) }
    scanned = 0
    let bytes = input.take(end)
    // The request line, the fields and the blank line.
    guard bytes.count(where: { $0 == 10 }) <= Self.fieldLimit + 2 else {
      return .event(failure(431, "there are too many header fields"))
    }
    guard let head = Self.parse(head: bytes) else { return .event(failure(400, "malformed head")) }
    self.head = head
    return prepareBody(head)
  }

  private mutating func prepareBody(_ head: HTTPRequestHead) -> Outcome? {
    let lengths = Set(head.headers.fields.filter { $0.name.lowercased() == "content-length" }.map(\.value))
    let codings = head.headers.fields.filter { $0.name.lowercased() == "transfer-encoding" }.map(\.value)
    if let coding = codings.first {
      // What two readers of the same bytes could understand in two ways is refused (RFC 9112 §6.1, §11.2).
      guard lengths.isEmpty else { return .event(failure(400, "both a length and a transfer coding")) }
      guard codings.count == 1, head.minorVersion >= 1 else { return .event(failure(400, "an unclear transfer coding")) }
      guard coding.lowercased() == "chunked" else { return .event(failure(501, "unknown transfer coding")) }
      phase = .chunkSize
    } else {
      guard lengths.count <= 1 else { return .event(failure(400, "two lengths")) }
      let text = lengths.first ?? "0"
      guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else {
        return .event(failure(400, "the length is no number"))
      }
      guard let length = Int(text), length <= bodyLimit else { return .event(failure(413, "the body is too large")) }
      phase = .length(length)
      if length == 0 { return nil }
      body.reserveCapacity(min(length, 1 << 20))
    }
    return head.minorVersion >= 1 && head.lists("100-continue", in: "expect") ? .event(.expectsContinue) : nil
  }

  /// One line without its CRLF.
  private func readLine(_ input: inout InputBuffer) -> ArraySlice<UInt8>? {
    guard let end = input.end(of: [13, 10]) else { return nil }
    return input.take(end).dropLast(2)
  }

  private mutating func handle(line: ArraySlice<UInt8>) -> Event? {
    switch phase {
    case .chunkEnd:
      guard line.isEmpty else { return failure(400, "a chunk is longer than it said") }
      phase = .chunkSize
    case .trailers:
      if line.isEmpty { return finish() }
    default:
      guard let size = Self.chunkSize(line) else { return failure(400, "a chunk's size is no number") }
      guard size <= bodyLimit - body.count else { return failure(413, "the body is too large") }
      phase = size == 0 ? .trailers : .chunk(size)
    }
    return nil
  }

  /// Hex digits alone, then at most blanks and an extension: `+5` and `0x5` are numbers for some readers and not for
  /// others.
  private static func chunkSize(_ line: ArraySlice<UInt8>) -> Int? {
    let digits = line.prefix { byte in
      (48...57).contains(byte) || (65...70).contains(byte) || (97...102).contains(byte)
    }
    let rest = line.dropFirst(digits.count).drop { $0 == 32 || $0 == 9 }
    guard !digits.isEmpty, rest.isEmpty || rest.first == UInt8(ascii: ";"), !rest.contains(13), !rest.contains(10) else {
      return nil
    }
    return Int(String(decoding: digits, as: UTF8.self), radix: 16)
  }

  private static func parse(head: ArraySlice<UInt8>) -> HTTPRequestHead? {
    let pieces = head.dropLast(2).split(separator: 10, omittingEmptySubsequences: false).dropLast()
    // A line ends in CR LF. A bare CR or LF, or a NUL, is the end of a line for some readers and not for others.
    guard pieces.allSatisfy({ $0.last == 13 && !$0.dropLast().contains(13) && !$0.contains(0) }) else { return nil }
    let lines = pieces.map { $0.dropLast() }
    guard let first = lines.first else { return nil }
    let words = first.split(separator: 32, omittingEmptySubsequences: false)
    guard words.count == 3, !words[0].isEmpty, words[0].allSatisfy(isToken) else { return nil }
    // Repaired, it would be another target.
    guard let target = String(validating: words[1], as: UTF8.self) else { return nil }
    guard target.hasPrefix("/") || target.contains("://") || target == "*" else { return nil }
    let minor: Int
    switch String(decoding: words[2], as: UTF8.self) {
    case "HTTP/1.1": minor = 1
    case "HTTP/1.0": minor = 0
    default: return nil
    }
    var fields: [HTTPHeaders.Field] = []
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else { return nil }
      guard line[..<colon].allSatisfy(isToken) else { return nil }
      let value = Substring(decoding: line[(colon + 1)...], as: UTF8.self).trimmingSpaces
      fields.append(HTTPHeaders.Field(String(decoding: line[..<colon], as: UTF8.self), String(value)))
    }
    // Two hosts are two opinions on whom the request is for.
    guard fields.count(where: { $0.name.lowercased() == "host" }) <= 1 else { return nil }
    let method = String(decoding: words[0], as: UTF8.self)
    return HTTPRequestHead(method: method, target: target, minorVersion: minor, headers: HTTPHeaders(fields))
  }

  private static func isToken(_ byte: UInt8) -> Bool {
    switch byte {
    case 48...57, 65...90, 97...122: true
    default: Array("!#$%&'*+-.^_`|~".utf8).contains(byte)
    }
  }
}
