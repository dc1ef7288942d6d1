// Not yet built on Apple.
#if canImport(Darwin)
  import Foundation

  /// HTTP and WebSockets over `URLSession`, for Apple platforms.
  ///
  /// - Redirects are answers like others. Cookies, caches and stored credentials are not used. TLS certificates and
  ///   names are verified by the system.
  /// - Fields of one name come as one, with a comma between their values; `Connection`, `Content-Length`, `Host` and
  ///   `Upgrade` are the system's own and not taken over.
  /// - Whether a byte left is not known of most failures: `nothingSent` is true only where no connection was made.
  /// - A refused upgrade has its status and fields, not its body.
  public final class URLSessionTransport: HTTPClient, WebSocketClient {
    private let session: URLSession
    private let router = URLSessionRouter()

    /// The system's own limit of time would count the silence of an open WebSocket, and for HTTP only the time without
    /// a byte. Times are kept here instead.
    private static let never: Double = 7 * 24 * 3600

    public init() {
      let configuration = URLSessionConfiguration.ephemeral
      configuration.httpCookieStorage = nil
      configuration.httpShouldSetCookies = false
      configuration.urlCredentialStorage = nil
      configuration.urlCache = nil
      configuration.timeoutIntervalForRequest = Self.never
      configuration.timeoutIntervalForResource = Self.never
      session = URLSession(configuration: configuration, delegate: router, delegateQueue: nil)
    }

    /// The session keeps its delegate until then.
    deinit { session.finishTasksAndInvalidate() }

    public func send(
      _ request: HTTPRequest, progress: (@Sendable (TransferProgress) -> Void)?
    ) async throws(TransportError) -> HTTPResponse {
      let endpoint = try Endpoint.http(request.url)
      try request.headers.checkWireForm(peer: endpoint.peer)
      let wire = try Self.wire(request.url, request.headers, endpoint, method: request.method)
      let exchange = URLSessionExchange(request, peer: endpoint.peer, progress: progress)
      let task = task(for: wire, request)
      router.add(exchange, task)
      let result = await Self.perform(task, exchange.outcome, within: request.timeout, peer: endpoint.peer)
      return try result.get()
    }

    /// The system refuses a body, even one of no bytes, where the method has none.
    private func task(for wire: URLRequest, _ request: HTTPRequest) -> URLSessionTask {
      if request.body.isEmpty, !["POST", "PUT", "PATCH"].contains(request.method) {
        return session.dataTask(with: wire)
      }
      return session.uploadTask(with: wire, from: Data(request.body))
    }

    public func connect(_ request: WebSocketRequest) async throws(TransportError) -> any WebSocketConnection {
      let endpoint = try Endpoint.webSocket(request.url)
      try request.headers.checkWireForm(peer: endpoint.peer)
      var wire = try Self.wire(request.url, request.headers, endpoint, method: "GET")
      if !request.subprotocols.isEmpty {
        wire.setValue(request.subprotocols.joined(separator: ", "), forHTTPHeaderField: "Sec-WebSocket-Protocol")
      }
      let task = session.webSocketTask(with: wire)
      task.maximumMessageSize = request.maxMessageSize
      let link = URLSessionLink(task, peer: endpoint.peer)
      router.add(link, task)
      let result = await Self.perform(task, link.opening, within: request.timeout, peer: endpoint.peer)
      return URLSessionConnection(link, subprotocol: try result.get())
    }

    /// Starts a task and waits for its outcome, but no longer than `timeout`; what is given up is ended.
    private static func perform<Value: Sendable>(
      _ task: URLSessionTask, _ outcome: Settlement<Result<Value, TransportError>>, within timeout: Duration,
      peer: String
    ) async -> Result<Value, TransportError> {
      let alarm = Task {
        // A real limit of time, on the system's clock. Cancelled once the outcome is there.
        guard (try? await Task.sleep(for: timeout)) != nil else { return }
        outcome.settle(.failure(TransportError(.timeout, peer: peer)))
      }
      task.resume()
      let result = await outcome.wait(cancelled: .failure(TransportError(.cancelled, peer: peer)))
      alarm.cancel()
      if case .failure = result { task.cancel() }
      return result
    }

    private static func wire(
      _ url: String, _ headers: HTTPHeaders, _ endpoint: Endpoint, method: String
    ) throws(TransportError) -> URLRequest {
      guard let url = URL(string: url) else {
        throw TransportError(.invalidURL, peer: endpoint.peer, nothingSent: true)
      }
      var wire = URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: never)
      wire.httpMethod = method
      wire.httpShouldHandleCookies = false
      for field in headers.fields { wire.addValue(field.value, forHTTPHeaderField: field.name) }
      return wire
    }
  }

  extension HTTPResponse {
    init(_ answer: HTTPURLResponse, body: [UInt8]) {
      let fields = answer.allHeaderFields.compactMap { name, value in
        (name as? String).map { HTTPHeaders.Field($0, "\(value)") }
      }
      self.init(status: answer.statusCode, headers: HTTPHeaders(fields), body: body)
    }
  }

  extension TransportError {
    /// What the system's error means; its text may hold the URL and is not kept.
    init(system error: any Error, peer: String) {
      guard let code = (error as? URLError)?.code else {
        self.init(error is CancellationError ? .cancelled : .other, peer: peer)
        return
      }
      switch code {
      case .badURL, .unsupportedURL: self.init(.invalidURL, peer: peer, nothingSent: true)
      case .cannotFindHost, .dnsLookupFailed: self.init(.unresolvedHost, peer: peer, nothingSent: true)
      case .cannotConnectToHost: self.init(.refused, peer: peer, nothingSent: true)
      case .notConnectedToInternet, .dataNotAllowed, .internationalRoamingOff:
        self.init(.unreachable, peer: peer, nothingSent: true)
      case .secureConnectionFailed, .serverCertificateUntrusted, .serverCertificateHasBadDate,
        .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid, .clientCertificateRejected,
        .clientCertificateRequired:
        self.init(.tls, peer: peer, nothingSent: true)
      case .timedOut: self.init(.timeout, peer: peer)
      case .networkConnectionLost: self.init(.closed, peer: peer)
      case .cancelled: self.init(.cancelled, peer: peer)
      case .badServerResponse, .cannotDecodeContentData, .cannotDecodeRawData, .cannotParseResponse:
        self.init(.protocolViolation, peer: peer)
      default: self.init(.other, peer: peer, detail: "URL error \(code.rawValue)")
      }
    }
  }
#endif
