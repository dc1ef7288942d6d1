/// Header fields in order. Names compare without case and are sent as they were given.
public struct HTTPHeaders: Sendable, Hashable, ExpressibleByDictionaryLiteral {
  public struct Field: Sendable, Hashable {
    public var name: String
    public var value: String
    public init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  public var fields: [Field]

  public init(_ fields: [Field] = []) { self.fields = fields }

  public init(dictionaryLiteral elements: (String, String)...) { fields = elements.map { Field($0.0, $0.1) } }

  /// The first value of `name`; setting replaces every field of that name.
  public subscript(name: String) -> String? {
    get { fields.first { $0.name.lowercased() == name.lowercased() }?.value }
    set {
      fields.removeAll { $0.name.lowercased() == name.lowercased() }
      if let newValue { fields.append(Field(name, newValue)) }
    }
  }
}

/// One HTTP request with its whole body in memory.
public struct HTTPRequest: Sendable, Hashable {
  public var method: String
  /// Absolute, for example `https://api.example.com/v3/users?limit=10`.
  public var url: String
  public var headers: HTTPHeaders
  public var body: [UInt8]
  /// From the call to the last byte received: looking up the name, connecting and TLS count too.
  public var timeout: Duration
  /// Bytes of the answer's body, decoded, at most; a longer one is `.tooLarge`.
  public var maxResponseSize: Int

  public init(
    _ method: String, _ url: String, headers: HTTPHeaders = HTTPHeaders(), body: [UInt8] = [],
    timeout: Duration = .seconds(30), maxResponseSize: Int = 256 << 20
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
    self.timeout = timeout
    self.maxResponseSize = maxResponseSize
  }
}

extension HTTPRequest {
  /// Whether the method promises to change nothing (RFC 9110 §9.2.1).
  var isSafe: Bool { ["GET", "HEAD", "OPTIONS", "TRACE"].contains(method) }
}

public struct HTTPResponse: Sendable, Hashable {
  public var status: Int
  public var headers: HTTPHeaders
  public var body: [UInt8]

  public init(status: Int, headers: HTTPHeaders = HTTPHeaders(), body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}

/// Bytes moved so far of one request.
public struct TransferProgress: Sendable, Hashable {
  public var sent: Int64
  public var received: Int64
  /// The size of the body being sent, and of the one received where the server told.
  public var sentTotal: Int64
  public var receivedTotal: Int64?

  public init(sent: Int64, received: Int64, sentTotal: Int64, receivedTotal: Int64?) {
    self.sent = sent
    self.received = received
    self.sentTotal = sentTotal
    self.receivedTotal = receivedTotal
  }
}

/// Sends HTTP requests. A status is never an error here; cancelling the task ends the transfer.
public protocol HTTPClient: Sendable {
  func send(
    _ request: HTTPRequest, progress: (@Sendable (TransferProgress) -> Void)?
  ) async throws(TransportError) -> HTTPResponse
}

extension HTTPClient {
  public func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPResponse {
    try await send(request, progress: nil)
  }
}

/// Why bytes could not be moved. Never holds a URL's query, a header or a body.
public struct TransportError: Error, Sendable, Hashable, CustomStringConvertible {
  public enum Kind: Sendable, Hashable {
    case invalidURL, unresolvedHost, refused, unreachable, tls, timeout, closed, cancelled
    /// The server answered the upgrade with something else.
    case upgradeRefused(HTTPResponse)
    case tooLarge(limit: Int)
    case protocolViolation, other
  }

  public var kind: Kind
  /// `host:port`, for the reader of an error.
  public var peer: String
  public var detail: String
  /// True when no byte of the request can have reached the server: sending again is safe.
  public var nothingSent: Bool

  public init(_ kind: Kind, peer: String = "", detail: String = "", nothingSent: Bool = false) {
    self.kind = kind
    self.peer = peer
    self.detail = detail
    self.nothingSent = nothingSent
  }

  public var description: String {
    let name: String
    if case .upgradeRefused(let response) = kind {
      name = "upgrade refused, HTTP \(response.status)"
    } else {
      name = "\(kind)"
    }
    return [name, peer, detail].filter { !$0.isEmpty }.joined(separator: ": ")
  }
}
