#if os(Linux)
  import CWebSockets

  /// WebSockets over libwebsockets, all of a process on one thread.
  ///
  /// - Extensions are not offered. TLS certificates and names are verified; redirects are refusals.
  /// - Proxies of the environment are not used.
  /// - Of the request's fields, those of the handshake itself (`Connection`, `Upgrade`, `Sec-WebSocket-…`) are ours and
  ///   not taken over. `Host` is, but over TLS it must be the URL's own, and no IPv6 address: `.invalidURL`.
  /// - Of a name's addresses, each but the last has two seconds to answer.
  /// - A refused upgrade gives `.upgradeRefused` with the status, the fields whose names libwebsockets knows (in lower
  ///   case) and the body, as far as it came within a quarter of a second of the head and is not longer than 64 KiB.
  /// - Pings are answered by the library. Of several in one go it answers the first, and a masked frame of a server,
  ///   which RFC 6455 calls an error, it takes as any other. The close codes 1012 to 1014 it shows as 1002.
  /// - Path and query may have about 2,000 bytes, all fields together 32 KiB.
  public final class LWSWebSocketClient: WebSocketClient {
    private let certificateAuthorities: String?
    private let resolve: @Sendable (String) -> [String]
    private let longestAttempt: Duration

    /// Bytes of all fields. The library's buffer holds more, but must not be seen to be full: it would then use a
    /// connection that it has freed.
    private static let longestFields = 32 << 10

    /// - Parameter certificateAuthorities: path of a PEM file to trust instead of the system's authorities.
    public convenience init(certificateAuthorities: String? = nil) {
      self.init(certificateAuthorities: certificateAuthorities, resolve: Resolver.addresses, longestAttempt: .seconds(2))
    }

    /// - Parameters:
    ///   - resolve: a name's addresses, in the order in which they are tried; may block.
    ///   - longestAttempt: how long each of them but the last may stay silent.
    init(
      certificateAuthorities: String?, resolve: @escaping @Sendable (String) -> [String], longestAttempt: Duration
    ) {
      self.certificateAuthorities = certificateAuthorities
      self.resolve = resolve
      self.longestAttempt = longestAttempt
    }

    public func connect(_ request: WebSocketRequest) async throws(TransportError) -> any WebSocketConnection {
      let endpoint = try Endpoint.webSocket(request.url)
      try check(request, endpoint)
      guard let engine = LWSEngine.shared else {
        throw TransportError(.other, peer: endpoint.peer, detail: "libwebsockets does not start", nothingSent: true)
      }
      let link = LWSLink(
        request, endpoint: endpoint, certificateAuthorities: certificateAuthorities, engine: engine, resolve: resolve,
        longestAttempt: longestAttempt)
      let result = await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          link.open(continuation)
          // A task that was cancelled before has had its handler called already, when there was nothing to cancel.
          if Task.isCancelled { link.cancelOpening() }
        }
      } onCancel: {
        link.cancelOpening()
      }
      return LWSWebSocketConnection(link, subprotocol: try result.get())
    }

    private func check(_ request: WebSocketRequest, _ endpoint: Endpoint) throws(TransportError) {
      try request.headers.checkWireForm(peer: endpoint.peer)
      let host = request.headers["Host"] ?? endpoint.authority
      // libwebsockets verifies the certificate against this field, cut at its first colon.
      if endpoint.isSecure, host.hasPrefix("[") || request.headers["Host"].map({ $0 != endpoint.authority }) == true {
        let detail = "over TLS, Host must be the URL's own and a name, not an IPv6 address"
        throw TransportError(.invalidURL, peer: endpoint.peer, detail: detail, nothingSent: true)
      }
      guard endpoint.target.utf8.count <= cws_client_longest_path(), host.utf8.count <= cws_client_longest_host() else {
        throw TransportError(.invalidURL, peer: endpoint.peer, detail: "the URL is too long", nothingSent: true)
      }
      let fieldBytes = request.headers.fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
      guard fieldBytes <= Self.longestFields else {
        throw TransportError(.other, peer: endpoint.peer, detail: "the header is too long", nothingSent: true)
      }
      let areTokens = request.subprotocols.allSatisfy { name in
        !name.isEmpty && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ",") }
      }
      guard areTokens else {
        throw TransportError(.other, peer: endpoint.peer, detail: "a subprotocol is not a word", nothingSent: true)
      }
    }
  }

  /// An open WebSocket. When the last reference goes, the link is closed with 1001.
  private final class LWSWebSocketConnection: WebSocketConnection {
    let subprotocol: String?
    private let link: LWSLink

    init(_ link: LWSLink, subprotocol: String?) {
      self.link = link
      self.subprotocol = subprotocol
    }

    deinit { link.close(code: 1001, reason: "") }

    func send(_ message: WebSocketMessage) async throws(TransportError) {
      switch message {
      case .text(var text): try await link.send(text.withUTF8 { LWSFrame.text(UnsafeRawBufferPointer($0)) }).get()
      case .binary(let bytes): try await link.send(bytes.withUnsafeBytes { LWSFrame.binary($0) }).get()
      }
    }

    func ping() async throws(TransportError) { try link.ping() }

    func roundTrip() async throws(TransportError) { try await link.roundTrip().get() }

    func receive() async throws(WebSocketClose) -> WebSocketMessage { try await link.receive().get() }

    func close(code: UInt16, reason: String) async { link.close(code: code, reason: reason) }
  }
#endif
